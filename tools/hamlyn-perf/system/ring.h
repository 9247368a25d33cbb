/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rings of messages in memory that two processes share, one each way, without
 * protection. What systems add to them is how one side wakes the other one.
 *
 * What fits a cache line travels in the line that announces it.
 */
#ifndef HAMLYN_PERF_RING_H
#define HAMLYN_PERF_RING_H

#include <string.h>

#include "system/chan.h"

#define RING_LINE_BYTES	128	/* two lines: cores fetch them in pairs */
#define RING_LINE_DATA	56

struct ring_line {
	uint64_t number;	/* of the message in here, from 1 on */
	unsigned char data[RING_LINE_DATA];
	unsigned char pad[RING_LINE_BYTES - RING_LINE_DATA - sizeof(uint64_t)];
};

_Static_assert(sizeof(struct ring_line) == RING_LINE_BYTES, "a line is a line");

struct ring {
	struct ring_line lines[CHAN_MAX_COUNT];
	struct ring_line credit;	/* written by the receiver */
	struct ring_line asleep;	/* number: 1 while the sender may sleep */
	unsigned char data[CHAN_BYTES];
};

/* [i]: what side i sends; private to the two sides. */
struct ring_stage {
	struct ring rings[2];
};

struct ring_chan {
	struct chan chan;
	struct ring *to;
	struct ring *from;
	uint64_t sent;
	uint64_t taken;
};

static inline struct ring_chan *to_ring(struct chan *chan)
{
	return container_of(chan, struct ring_chan, chan);
}

struct ring_stage *ring_stage_new(void);
void ring_stage_free(struct ring_stage *stage);
int ring_open(struct ring_chan *ring, struct side *side, struct ring_stage *stage,
	      const struct system *system);
void ring_close(struct ring_chan *ring);
int ring_prepare(struct chan *chan);
void *ring_reserve(struct chan *chan);		/* polls */
const void *ring_take(struct chan *chan);	/* polls */
int ring_release(struct chan *chan);

static inline bool ring_full(struct ring_chan *ring)
{
	return ring->chan.stream &&
	       ring->sent - __atomic_load_n(&ring->to->credit.number, __ATOMIC_ACQUIRE) >=
	       ring->chan.count;
}

static inline void ring_copy(struct ring_chan *ring)
{
	struct chan *chan = &ring->chan;

	if (chan->size > RING_LINE_DATA)
		memcpy(ring->to->data + chan->out_pos * chan->stride, chan_out(chan),
		       chan->size);
	else
		memcpy(ring->to->lines[chan->out_pos].data, chan_out(chan), chan->size);
}

static inline void ring_announce(struct ring_chan *ring)
{
	struct chan *chan = &ring->chan;

	__atomic_store_n(&ring->to->lines[chan->out_pos].number, ++ring->sent,
			 __ATOMIC_RELEASE);
	chan->out_pos = chan_next(chan, chan->out_pos);
}

static inline bool ring_there(struct ring_chan *ring)
{
	return __atomic_load_n(&ring->from->lines[ring->chan.in_pos].number,
			       __ATOMIC_ACQUIRE) == ring->taken + 1;
}

static inline const void *ring_accept(struct ring_chan *ring)
{
	struct chan *chan = &ring->chan;
	const void *buffer = chan->size > RING_LINE_DATA ? chan_in(chan) :
			     ring->from->lines[chan->in_pos].data;

	ring->taken++;
	chan->in_pos = chan_next(chan, chan->in_pos);
	return buffer;
}

/* Credits come rarely, yet before the sender stops. True if one came. */
static inline bool ring_grant(struct ring_chan *ring)
{
	if (!ring->chan.stream || ring->taken % ((ring->chan.count + 3) / 4))
		return false;
	__atomic_store_n(&ring->from->credit.number, ring->taken, __ATOMIC_RELEASE);
	return true;
}

#endif /* HAMLYN_PERF_RING_H */
