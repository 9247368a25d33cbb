// SPDX-License-Identifier: GPL-2.0-only
/* Rings in shared memory: set-up, and using them without anything to wake up. */
#include "load/crew.h"
#include "system/ring.h"
#include "base/wait.h"

struct ring_stage *ring_stage_new(void)
{
	return crew_shared_new(sizeof(struct ring_stage));
}

void ring_stage_free(struct ring_stage *stage)
{
	crew_shared_free(stage, sizeof(*stage));
}

int ring_open(struct ring_chan *ring, struct side *side, struct ring_stage *stage,
	      const struct system *system)
{
	ring->chan.system = system;
	ring->chan.side = side;
	ring->to = &stage->rings[side->id];
	ring->from = &stage->rings[!side->id];
	ring->chan.in = ring->from->data;
	ring->chan.out = chan_alloc(chan_room());
	if (!ring->chan.out)
		return -1;
	/* All of it that will be used: no test pays for pages. */
	memset(ring->to, 0, offsetof(struct ring, data) + chan_room());
	return 0;
}

void ring_close(struct ring_chan *ring)
{
	free(ring->chan.out);
}

int ring_prepare(struct chan *chan)
{
	struct ring_chan *ring = to_ring(chan);

	ring->sent = 0;
	ring->taken = 0;
	memset(ring->to->lines, 0, sizeof(ring->to->lines));
	ring->from->credit.number = 0;
	return 0;
}

void *ring_reserve(struct chan *chan)
{
	struct wait wait = WAIT("reader of the ring");
	struct ring_chan *ring = to_ring(chan);

	while (ring_full(ring))
		if (!wait_more(&wait))
			return NULL;
	return chan_out(chan);
}

const void *ring_take(struct chan *chan)
{
	struct wait wait = WAIT("writer to the ring");
	struct ring_chan *ring = to_ring(chan);

	while (!ring_there(ring))
		if (!wait_more(&wait))
			return NULL;
	return ring_accept(ring);
}

int ring_release(struct chan *chan)
{
	ring_grant(to_ring(chan));
	return 0;
}
