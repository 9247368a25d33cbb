// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the machine itself can do, without protection and without protocol.
 * Latency and rate: a bare hand-off of a cache line that one core writes and
 * the other one polls; what does not fit the line is copied once, with
 * memcpy(), to memory that both see. Bandwidth: "limit" is memcpy() on one
 * core with nobody receiving; "shm" is the copying and the hand-off together,
 * which is what a receiver that reads its messages leaves of it.
 */
#include "base/payload.h"
#include "system/ring.h"

struct shm_chan {
	struct ring_chan ring;
	unsigned char *copy;	/* for memcpy() alone */
	bool copied;
};

static inline struct shm_chan *to_shm(struct chan *chan)
{
	return container_of(to_ring(chan), struct shm_chan, ring);
}

static void *shm_make(const struct options *options)
{
	(void)options;
	return ring_stage_new();
}

static void shm_unmake(void *stage)
{
	ring_stage_free(stage);
}

static void shm_close(struct chan *chan)
{
	ring_close(to_ring(chan));
	free(to_shm(chan)->copy);
	free(to_shm(chan));
}

static struct chan *open_chan(struct side *side, struct ring_stage *stage,
			      const struct system *system)
{
	struct shm_chan *shm = calloc(1, sizeof(*shm));

	if (!shm) {
		fail("out of memory");
		return NULL;
	}
	shm->copy = chan_alloc(chan_room());
	if (!shm->copy || ring_open(&shm->ring, side, stage, system) < 0) {
		shm_close(&shm->ring.chan);
		return NULL;
	}
	return &shm->ring.chan;
}

static struct chan *limit_open(struct side *side, void *stage)
{
	return open_chan(side, stage, &sys_limit);
}

static struct chan *shm_open_chan(struct side *side, void *stage)
{
	return open_chan(side, stage, &sys_shm);
}

static int shm_commit(struct chan *chan)
{
	ring_copy(to_ring(chan));
	ring_announce(to_ring(chan));
	return 0;
}

static int memcpy_alone(struct chan *chan, uint64_t n)
{
	unsigned char *copy = to_shm(chan)->copy;
	uint64_t i;

	for (i = 0; i < n; i++) {
		memcpy(copy + chan->out_pos * chan->stride, chan_out(chan), chan->size);
		/* The compiler must believe that somebody looks at each copy. */
		__asm__ volatile("" : : "r"(copy) : "memory");
		chan->out_pos = chan_next(chan, chan->out_pos);
	}
	to_shm(chan)->copied = n >= chan->count;
	return 0;
}

/* What nobody received is looked at here, when no clock is running. */
static int limit_settle(struct chan *chan)
{
	const unsigned char *copy = to_shm(chan)->copy;
	uint32_t i;

	for (i = 0; to_shm(chan)->copied && i < chan->count; i++)
		if (payload_verify(copy + i * chan->stride, chan->size, i) < 0)
			return -1;
	to_shm(chan)->copied = false;
	return 0;
}

const struct system sys_shm = {
	.name = "shm",
	.what = "unprotected shared memory: memcpy and a bare hand-off",
	.tests = 1 << TEST_BW,
	.make = shm_make,
	.unmake = shm_unmake,
	.open = shm_open_chan,
	.close = shm_close,
	.prepare = ring_prepare,
	.reserve = ring_reserve,
	.commit = shm_commit,
	.take = ring_take,
	.release = ring_release,
};

const struct system sys_limit = {
	.name = "limit",
	.what = "the machine: bare cache-line hand-off; for bandwidth memcpy on one core",
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.make = shm_make,
	.unmake = shm_unmake,
	.open = limit_open,
	.close = shm_close,
	.settle = limit_settle,
	.prepare = ring_prepare,
	.reserve = ring_reserve,
	.commit = shm_commit,
	.take = ring_take,
	.release = ring_release,
	.solo = memcpy_alone,
};
