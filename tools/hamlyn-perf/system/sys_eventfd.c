// SPDX-License-Identifier: GPL-2.0-only
/*
 * Unprotected shared memory with eventfds for those who would rather sleep
 * than poll: one copy, and a system call on each side for each message that
 * finds its receiver asleep.
 */
#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "system/ring.h"

struct event_stage {
	struct ring_stage *rings;
	int fds[2];		/* [i]: what wakes side i */
};

struct event_chan {
	struct ring_chan ring;
	int own;
	int peer;
};

static inline struct event_chan *to_event(struct chan *chan)
{
	return container_of(to_ring(chan), struct event_chan, ring);
}

static void event_unmake(void *data)
{
	struct event_stage *stage = data;
	int i;

	for (i = 0; i < 2; i++)
		if (stage->fds[i] >= 0)
			close(stage->fds[i]);
	ring_stage_free(stage->rings);
	free(stage);
}

static void *event_make(const struct options *options)
{
	struct event_stage *stage = calloc(1, sizeof(*stage));
	int i;

	(void)options;
	if (!stage) {
		fail("out of memory");
		return NULL;
	}
	for (i = 0; i < 2; i++) {
		stage->fds[i] = eventfd(0, EFD_CLOEXEC);
		if (stage->fds[i] < 0)
			fail("no eventfd: %s", strerror(errno));
	}
	stage->rings = ring_stage_new();
	if (!stage->rings || stage->fds[0] < 0 || stage->fds[1] < 0) {
		event_unmake(stage);
		return NULL;
	}
	return stage;
}

static void event_close(struct chan *chan)
{
	ring_close(to_ring(chan));
	free(to_event(chan));
}

static struct chan *event_open(struct side *side, void *data)
{
	struct event_chan *event = calloc(1, sizeof(*event));
	struct event_stage *stage = data;

	if (!event) {
		fail("out of memory");
		return NULL;
	}
	event->own = stage->fds[side->id];
	event->peer = stage->fds[!side->id];
	if (ring_open(&event->ring, side, stage->rings, &sys_eventfd) < 0) {
		event_close(&event->ring.chan);
		return NULL;
	}
	return &event->ring.chan;
}

/* To be followed by a last look: either that one sees what came, or wake() sees us. */
static void lie_down(struct event_chan *event)
{
	__atomic_store_n(&event->ring.to->asleep.number, 1, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
}

static void get_up(struct event_chan *event)
{
	__atomic_store_n(&event->ring.to->asleep.number, 0, __ATOMIC_RELAXED);
}

/* An event left over only makes somebody look once more than he had to. */
static int nap(struct event_chan *event)
{
	uint64_t events;

	while (read(event->own, &events, sizeof(events)) != sizeof(events))
		if (errno != EINTR)
			return fail("cannot wait for an eventfd: %s", strerror(errno));
	return 0;
}

/* Wait until @there, which is looked at again after each event. */
static int sleep_until(struct event_chan *event, bool (*there)(struct ring_chan *ring))
{
	int ret = 0;

	while (!ret && !there(&event->ring)) {
		lie_down(event);
		if (!there(&event->ring))
			ret = nap(event);
		get_up(event);
	}
	return ret;
}

static bool has_room(struct ring_chan *ring)
{
	return !ring_full(ring);
}

static int wake(struct event_chan *event)
{
	uint64_t *asleep = &event->ring.from->asleep.number;
	const uint64_t one = 1;

	/* Pairs with the one in lie_down(): what we wrote comes before our look */
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (!__atomic_load_n(asleep, __ATOMIC_RELAXED) ||
	    !__atomic_exchange_n(asleep, 0, __ATOMIC_RELAXED))
		return 0;
	while (write(event->peer, &one, sizeof(one)) != sizeof(one))
		if (errno != EINTR)
			return fail("cannot write to an eventfd: %s", strerror(errno));
	return 0;
}

static void *event_reserve(struct chan *chan)
{
	if (ring_full(to_ring(chan)) && sleep_until(to_event(chan), has_room) < 0)
		return NULL;
	return chan_out(chan);
}

static int event_commit(struct chan *chan)
{
	ring_copy(to_ring(chan));
	ring_announce(to_ring(chan));
	return wake(to_event(chan));
}

static const void *event_take(struct chan *chan)
{
	if (!ring_there(to_ring(chan)) && sleep_until(to_event(chan), ring_there) < 0)
		return NULL;
	return ring_accept(to_ring(chan));
}

static int event_release(struct chan *chan)
{
	return ring_grant(to_ring(chan)) ? wake(to_event(chan)) : 0;
}

const struct system sys_eventfd = {
	.name = "eventfd",
	.what = "unprotected shared memory, an eventfd wakes the receiver",
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.make = event_make,
	.unmake = event_unmake,
	.open = event_open,
	.close = event_close,
	.prepare = ring_prepare,
	.reserve = event_reserve,
	.commit = event_commit,
	.take = event_take,
	.release = event_release,
};
