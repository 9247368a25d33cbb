// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the machine itself can do, without protection and without protocol.
 * Latency and rate: a bare hand-off of a cache line that one core writes and
 * the other one polls; what does not fit the line is copied once, with
 * memcpy(), to memory that both see. Bandwidth: "limit" is memcpy() on one
 * core with nobody receiving; "shm" is the copying and the hand-off together,
 * which is what a receiver that reads its messages leaves of it.
 */
#include <string.h>

#include "chan.h"
#include "crew.h"
#include "wait.h"

#define LINE_BYTES	128	/* two lines: cores fetch them in pairs */
#define LINE_DATA	56

struct line {
	uint64_t number;	/* of the message in here, from 1 on */
	unsigned char data[LINE_DATA];
	unsigned char pad[LINE_BYTES - LINE_DATA - sizeof(uint64_t)];
};

_Static_assert(sizeof(struct line) == LINE_BYTES, "a line is a line");

struct direction {
	struct line lines[CHAN_MAX_COUNT];
	struct line credit;	/* written by the receiver */
	unsigned char data[CHAN_BYTES];
};

struct shm_stage {
	struct direction directions[2];		/* [i]: what side i sends */
};

struct shm_chan {
	struct chan chan;
	struct direction *to;
	struct direction *from;
	unsigned char *copy;	/* for memcpy() alone */
	uint64_t sent;
	uint64_t taken;
};

static inline struct shm_chan *to_shm(struct chan *chan)
{
	return container_of(chan, struct shm_chan, chan);
}

static void *shm_make(const struct options *options)
{
	(void)options;
	return crew_shared_new(sizeof(struct shm_stage));
}

static void shm_unmake(void *stage)
{
	crew_shared_free(stage, sizeof(struct shm_stage));
}

static void shm_close(struct chan *chan)
{
	free(chan->out);
	free(to_shm(chan)->copy);
	free(to_shm(chan));
}

static struct chan *open_chan(struct side *side, struct shm_stage *stage,
			      const struct system *system)
{
	struct shm_chan *shm = calloc(1, sizeof(*shm));

	if (!shm) {
		fail("out of memory");
		return NULL;
	}
	shm->chan.system = system;
	shm->chan.side = side;
	shm->to = &stage->directions[side->id];
	shm->from = &stage->directions[!side->id];
	shm->chan.in = shm->from->data;
	shm->chan.out = chan_alloc(CHAN_BYTES);
	shm->copy = chan_alloc(CHAN_BYTES);
	if (!shm->chan.out || !shm->copy) {
		shm_close(&shm->chan);
		return NULL;
	}
	memset(shm->to, 0, sizeof(*shm->to));
	return &shm->chan;
}

static struct chan *limit_open(struct side *side, void *stage)
{
	return open_chan(side, stage, &sys_limit);
}

static struct chan *shm_open_chan(struct side *side, void *stage)
{
	return open_chan(side, stage, &sys_shm);
}

static int shm_prepare(struct chan *chan)
{
	struct shm_chan *shm = to_shm(chan);

	shm->sent = 0;
	shm->taken = 0;
	memset(shm->to->lines, 0, sizeof(shm->to->lines));
	shm->from->credit.number = 0;
	return 0;
}

static void *shm_reserve(struct chan *chan)
{
	struct wait wait = WAIT("reader of the ring");
	struct shm_chan *shm = to_shm(chan);

	while (chan->stream &&
	       shm->sent - __atomic_load_n(&shm->to->credit.number, __ATOMIC_ACQUIRE) >=
	       chan->count)
		if (!wait_more(&wait))
			return NULL;
	return chan_out(chan);
}

static int shm_commit(struct chan *chan)
{
	struct shm_chan *shm = to_shm(chan);
	struct line *line = &shm->to->lines[chan->out_pos];

	if (chan->size > LINE_DATA)
		memcpy(shm->to->data + chan->out_pos * chan->stride, chan_out(chan),
		       chan->size);
	else
		memcpy(line->data, chan_out(chan), chan->size);
	__atomic_store_n(&line->number, ++shm->sent, __ATOMIC_RELEASE);
	chan->out_pos = chan_next(chan, chan->out_pos);
	return 0;
}

static const void *shm_take(struct chan *chan)
{
	struct wait wait = WAIT("writer to the ring");
	struct shm_chan *shm = to_shm(chan);
	const struct line *line = &shm->from->lines[chan->in_pos];
	const void *buffer = chan->size > LINE_DATA ? chan_in(chan) : line->data;

	while (__atomic_load_n(&line->number, __ATOMIC_ACQUIRE) != shm->taken + 1)
		if (!wait_more(&wait))
			return NULL;
	shm->taken++;
	chan->in_pos = chan_next(chan, chan->in_pos);
	return buffer;
}

static int shm_release(struct chan *chan)
{
	struct shm_chan *shm = to_shm(chan);

	if (chan->stream && !(shm->taken % ((chan->count + 3) / 4)))
		__atomic_store_n(&shm->from->credit.number, shm->taken,
				 __ATOMIC_RELEASE);
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
	.prepare = shm_prepare,
	.reserve = shm_reserve,
	.commit = shm_commit,
	.take = shm_take,
	.release = shm_release,
};

const struct system sys_limit = {
	.name = "limit",
	.what = "the machine: bare cache-line hand-off; for bandwidth memcpy on one core",
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.make = shm_make,
	.unmake = shm_unmake,
	.open = limit_open,
	.close = shm_close,
	.prepare = shm_prepare,
	.reserve = shm_reserve,
	.commit = shm_commit,
	.take = shm_take,
	.release = shm_release,
	.solo = memcpy_alone,
};
