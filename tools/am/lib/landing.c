// SPDX-License-Identifier: GPL-2.0-only
/* Places for blocks, with guard bytes around. */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "gam.h"
#include "landing.h"
#include "world.h"

#define GUARD_BYTE	0xa5
#define GUARD		128	/* on each side; more than a cache line */

static size_t bytes_of(const struct landing *landing)
{
	return (size_t)am_procs() * LANDING_EACH * landing->stride;
}

void landing_open(struct landing *landing, size_t most)
{
	size_t procs = (size_t)am_procs();

	landing->most = most;
	landing->stride = (most + LANDING_ROOM + 2 * GUARD + 7) & ~(size_t)7;
	landing->base = world_alloc(bytes_of(landing));
	memset(landing->base, GUARD_BYTE, bytes_of(landing));
	landing->busy = world_alloc(procs);
	memset(landing->busy, 0, procs);
	landing->bases = world_alloc(procs * sizeof(*landing->bases));
	world_share_pointer(landing->base, landing->bases);
}

void landing_close(struct landing *landing)
{
	free(landing->base);
	free(landing->busy);
	free(landing->bases);
}

static int free_place(const struct landing *landing, int dest)
{
	int place;

	for (place = 0; place < LANDING_EACH; place++)
		if (!(landing->busy[dest] & (1 << place)))
			return place;
	return -1;
}

int landing_take(struct landing *landing, int dest)
{
	int place;

	WAIT_FOR((place = free_place(landing, dest)) >= 0);
	landing->busy[dest] |= (unsigned char)(1 << place);
	return place;
}

void landing_free(struct landing *landing, int dest, int place)
{
	if (dest < 0 || dest >= am_procs() || place < 0 || place >= LANDING_EACH ||
	    !(landing->busy[dest] & (1 << place)))
		die("place %d in process %d is freed and was not taken: a second reply?", place,
		    dest);
	landing->busy[dest] &= (unsigned char)~(1 << place);
}

bool landing_idle(const struct landing *landing)
{
	int p;

	for (p = 0; p < am_procs(); p++)
		if (landing->busy[p])
			return false;
	return true;
}

static size_t offset_of(const struct landing *landing, int source, int place, size_t at)
{
	return (size_t)(source * LANDING_EACH + place) * landing->stride + GUARD + at;
}

void *landing_there(const struct landing *landing, int dest, int place, size_t at)
{
	return (void *)(landing->bases[dest] + offset_of(landing, am_my_proc(), place, at));
}

void *landing_here(const struct landing *landing, int source, int place, size_t at)
{
	return landing->base + offset_of(landing, source, place, at);
}

/* The neighbourhood; all of it is looked at in landing_check_all(). */
void landing_wipe(const struct landing *landing, void *block, size_t n, const char *who)
{
	unsigned char *bytes = block;
	long wrong;

	if (bytes < landing->base + GUARD || bytes + n + GUARD > landing->base + bytes_of(landing))
		die("%s: the block is at %p, outside the memory for blocks", who, block);
	wrong = check_find_other(bytes - GUARD, GUARD, GUARD_BYTE);
	if (wrong >= 0)
		die("%s: byte %ld before the block has changed to 0x%02x", who, GUARD - wrong,
		    bytes[wrong - GUARD]);
	wrong = check_find_other(bytes + n, GUARD, GUARD_BYTE);
	if (wrong >= 0)
		die("%s: byte %ld behind the block has changed to 0x%02x", who, wrong,
		    bytes[n + (size_t)wrong]);
	memset(bytes, GUARD_BYTE, n);
}

void landing_check_all(const struct landing *landing, const char *who)
{
	long wrong = check_find_other(landing->base, bytes_of(landing), GUARD_BYTE);

	if (wrong >= 0)
		die("%s: byte %ld of the place for blocks from process %ld has changed to 0x%02x",
		    who, wrong % (long)landing->stride,
		    wrong / ((long)landing->stride * LANDING_EACH), landing->base[wrong]);
}
