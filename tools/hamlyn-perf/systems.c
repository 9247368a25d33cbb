// SPDX-License-Identifier: GPL-2.0-only
/* The list of systems, and what their channels have in common. */
#include <errno.h>
#include <string.h>

#include "chan.h"
#include "payload.h"

/* The limit is last: a reader compares from left to right. */
const struct system *const systems[] = {
	&sys_hamlyn,
	&sys_hamlyn_block,
	&sys_fast,
	&sys_unix_stream,
	&sys_unix_seqpacket,
	&sys_pipe,
	&sys_shm,
	&sys_limit,
};

const size_t systems_count = ARRAY_SIZE(systems);

_Static_assert(ARRAY_SIZE(systems) <= SYSTEMS_MAX, "raise SYSTEMS_MAX");

const struct system *system_find(const char *name, size_t length)
{
	size_t i;

	for (i = 0; i < systems_count; i++)
		if (strlen(systems[i]->name) == length &&
		    !memcmp(systems[i]->name, name, length))
			return systems[i];
	return NULL;
}

bool system_takes(const struct system *system, enum test_kind test, size_t size)
{
	if (system->only_size && size != system->only_size)
		return false;
	if (system->max_size && size > system->max_size())
		return false;
	return system->tests & (1U << test);
}

/* Memory for private buffers; touched, so that no test pays for its pages. */
unsigned char *chan_alloc(size_t bytes)
{
	void *p;

	if (posix_memalign(&p, 4096, bytes)) {
		fail("no memory for %zu bytes of buffers", bytes);
		return NULL;
	}
	memset(p, 1, bytes);
	return p;
}

static void choose_geometry(struct chan *chan, enum test_kind test, size_t size)
{
	chan->size = size;
	chan->stream = test != TEST_LAT;
	chan->stride = (size + CHAN_ALIGN - 1) & ~((size_t)CHAN_ALIGN - 1);
	if (!chan->stride)
		chan->stride = CHAN_ALIGN;
	chan->count = 1;
	if (chan->stream) {
		chan->count = (uint32_t)(CHAN_WINDOW / chan->stride);
		if (chan->count < CHAN_MIN_COUNT)
			chan->count = CHAN_MIN_COUNT;
		if (chan->count > CHAN_MAX_COUNT)
			chan->count = CHAN_MAX_COUNT;
	}
	chan->out_pos = 0;
	chan->in_pos = 0;
}

/* Get ready for one test at one size. The first swap keeps the last apart. */
int chan_prepare(struct chan *chan, enum test_kind test, size_t size)
{
	uint64_t mine = (uint64_t)test << 32 | size;
	uint64_t theirs;
	uint32_t i;

	if (chan->system->settle && chan->system->settle(chan) < 0)
		return -1;
	if (pair_swap(chan->side, &mine, &theirs, sizeof(mine)) < 0)
		return -1;
	if (mine != theirs)
		return fail("the two processes lost step");
	choose_geometry(chan, test, size);
	if (chan->out)
		for (i = 0; i < chan->count; i++)
			payload_fill(chan->out + i * chan->stride, size, i);
	if (chan->system->prepare && chan->system->prepare(chan) < 0)
		return -1;
	return pair_swap(chan->side, &mine, &theirs, sizeof(mine));
}
