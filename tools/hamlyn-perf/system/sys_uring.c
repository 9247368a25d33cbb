// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unprotected shared memory with messages from io_uring to io_uring
 * (IORING_OP_MSG_RING) that say when to look: a system call to send, and to
 * receive one if the receiver sleeps, or none if it polls its completions.
 */
#include <string.h>
#include <unistd.h>

#include "system/ring.h"
#include "system/uring.h"
#include "base/wait.h"

#define COMPLETIONS	(4 * CHAN_MAX_COUNT)	/* more than can be under way */

enum {
	TOLD_FAILURE,		/* of a message of our own */
	TOLD_MESSAGE,
	TOLD_CREDIT,
};

struct uring_stage {
	struct ring_stage *rings;
	struct uring_made made[2];	/* [i]: of side i */
};

struct uring_chan {
	struct ring_chan ring;
	struct uring uring;
	int peer;
	bool spin;
	uint64_t arrived;	/* messages that we were told of */
};

static inline struct uring_chan *to_uring(struct chan *chan)
{
	return container_of(to_ring(chan), struct uring_chan, ring);
}

static const char *missing(const struct options *options)
{
	(void)options;
	return uring_missing();
}

static void stage_free(void *data)
{
	struct uring_stage *stage = data;
	int i;

	for (i = 0; i < 2; i++)
		if (stage->made[i].fd >= 0)
			close(stage->made[i].fd);
	ring_stage_free(stage->rings);
	free(stage);
}

static void *stage_make(const struct options *options)
{
	struct uring_stage *stage = calloc(1, sizeof(*stage));

	(void)options;
	if (!stage) {
		fail("out of memory");
		return NULL;
	}
	stage->made[1].fd = -1;
	if (uring_make(&stage->made[0], COMPLETIONS) < 0 ||
	    uring_make(&stage->made[1], COMPLETIONS) < 0) {
		stage_free(stage);
		return NULL;
	}
	stage->rings = ring_stage_new();
	if (!stage->rings) {
		stage_free(stage);
		return NULL;
	}
	return stage;
}

static void close_chan(struct chan *chan)
{
	uring_unmap(&to_uring(chan)->uring);
	ring_close(to_ring(chan));
	free(to_uring(chan));
}

static struct chan *open_chan(struct side *side, struct uring_stage *stage,
			      const struct system *system, bool spin)
{
	struct uring_chan *u = calloc(1, sizeof(*u));

	if (!u) {
		fail("out of memory");
		return NULL;
	}
	u->spin = spin;
	u->peer = stage->made[!side->id].fd;
	if (uring_map(&u->uring, &stage->made[side->id]) < 0 ||
	    ring_open(&u->ring, side, stage->rings, system) < 0) {
		close_chan(&u->ring.chan);
		return NULL;
	}
	return &u->ring.chan;
}

static struct chan *block_open(struct side *side, void *stage)
{
	return open_chan(side, stage, &sys_uring, false);
}

static struct chan *spin_open(struct side *side, void *stage)
{
	return open_chan(side, stage, &sys_uring_spin, true);
}

/* Read all completions that are there: 1 if there were any, 0, or -1. */
static int look(struct uring_chan *u)
{
	int32_t result;
	uint64_t data;
	int any = 0;

	while (uring_next(&u->uring, &data, &result)) {
		if (result < 0)
			return fail("an io_uring message failed: %s", strerror(-result));
		u->arrived += data == TOLD_MESSAGE;
		any = 1;
	}
	return any;
}

static int look_or_wait(struct uring_chan *u, struct wait *wait)
{
	int any = look(u);

	if (any)
		return any < 0 ? -1 : 0;
	if (u->spin)
		return wait_more(wait) ? 0 : -1;
	return uring_wait(&u->uring, u->ring.chan.side->options->timeout_s);
}

static int prepare(struct chan *chan)
{
	struct uring_chan *u = to_uring(chan);

	/* Credits for the end of the last stream, which nobody waited for. */
	if (look(u) < 0)
		return -1;
	u->arrived = 0;
	return ring_prepare(chan);
}

static void *reserve(struct chan *chan)
{
	struct wait wait = WAIT("reader of the ring");
	struct uring_chan *u = to_uring(chan);

	if (chan->stream && look(u) < 0)
		return NULL;
	while (ring_full(&u->ring))
		if (look_or_wait(u, &wait) < 0)
			return NULL;
	return chan_out(chan);
}

static int commit(struct chan *chan)
{
	struct uring_chan *u = to_uring(chan);

	ring_copy(&u->ring);
	ring_announce(&u->ring);
	return uring_tell(&u->uring, u->peer, TOLD_MESSAGE);
}

/*
 * What tells of a message may overtake another that does, when the kernel
 * has a worker send it: so they are counted, and the ring knows the order.
 */
static const void *take(struct chan *chan)
{
	struct wait wait = WAIT("io_uring message");
	struct uring_chan *u = to_uring(chan);

	while (u->arrived == u->ring.taken)
		if (look_or_wait(u, &wait) < 0)
			return NULL;
	if (!ring_there(&u->ring)) {
		fail("io_uring told of a message that is not there");
		return NULL;
	}
	return ring_accept(&u->ring);
}

static int release(struct chan *chan)
{
	struct uring_chan *u = to_uring(chan);

	return ring_grant(&u->ring) ? uring_tell(&u->uring, u->peer, TOLD_CREDIT) : 0;
}

/* They differ in how they wait. */
#define URING_METHODS					\
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE, \
	.missing = missing,				\
	.make = stage_make,				\
	.unmake = stage_free,				\
	.close = close_chan,				\
	.prepare = prepare,				\
	.reserve = reserve,				\
	.commit = commit,				\
	.take = take,					\
	.release = release

const struct system sys_uring = {
	.name = "io-uring",
	.what = "unprotected shared memory, an io_uring message wakes the receiver",
	.open = block_open,
	URING_METHODS,
};

const struct system sys_uring_spin = {
	.name = "io-uring-spin",
	.what = "the same, the receiver polls its completions",
	.open = spin_open,
	URING_METHODS,
};
