// SPDX-License-Identifier: GPL-2.0-only
/* Stache, with blocks as the shape likes. */
#include <stache.h>

#include "system.h"

const char *const system_name = "stache";

int system_start(void)
{
	stache_init(NULL);
	return TPPI_self_address;
}

void system_end(void)
{
	TPPI_barrier();
}

void system_barrier(void)
{
	TPPI_barrier();
}

double *system_memory(size_t bytes, int block)
{
	static char names[2];
	static int next;
	void *name = &names[next++];
	struct stache_place place = { .homes = STACHE_HOMES_STATIC,
				      .block_bytes = block };

	if (!TPPI_self_address)
		stache_publish(name, stache_malloc_place(bytes, &place));
	return stache_find(name);
}

void system_stored(double *start, size_t bytes)
{
	(void)start;
	(void)bytes;
}
