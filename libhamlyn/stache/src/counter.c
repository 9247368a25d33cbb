// SPDX-License-Identifier: MIT
#include "named.h"

static void take(TPPI_NodeId src, int size)
{
	struct stache_named *named = stache_named_find(TPPI_recv_P(), KIND_COUNTER);
	void *wait = TPPI_recv_P();

	(void)size;
	TPPI_recv_P();
	stache_named_answer(src, wait, named->value++);
}

static void reset(TPPI_NodeId src, int size)
{
	struct stache_named *named = stache_named_find(TPPI_recv_P(), KIND_COUNTER);
	void *wait = TPPI_recv_P();

	(void)size;
	TPPI_recv_P();
	named->value = 0;
	stache_named_answer(src, wait, 0);
}

unsigned int stache_count(const void *name)
{
	return stache_named_ask(name, take, 0);
}

void stache_count_reset(const void *name)
{
	stache_named_ask(name, reset, 0);
}
