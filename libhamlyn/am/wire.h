/* SPDX-License-Identifier: MIT */
/* A message to another process's buffer. */
#ifndef HAMLYN_AM_WIRE_H
#define HAMLYN_AM_WIRE_H

#include <sched.h>

#include "am.h"
#include "../src/low/xxh.h"

#define AM_WIRE_TRIES	1000000

/*
 * The destination is in it: where a fabric damages headers, a message may come to
 * another process, all of whose keys are the program's. So is the direction, which only
 * the buffer tells that a message lies in: one wrong bit of the packet's offset, and a
 * reply lies where a request of the same instance belongs.
 */
static inline uint32_t am_header_sum(const struct am_packet *packet, uint32_t to,
				     int reply)
{
	const unsigned char *rest = (const unsigned char *)&packet->seq;
	uint64_t where = (uint64_t)to << 1 | !!reply;

	return (uint32_t)XXH3_64bits_withSeed(rest, AM_HEADER - sizeof(packet->check),
					      where);
}

static inline uint64_t am_data_sum(const void *data, uint32_t length)
{
	return XXH3_64bits(data, length);
}

#ifdef HAMLYN_AM_TEST_WIRE
/* A test's fabric: it calls am_wire_put() for what arrives. */
void am_test_wire(struct am *am, int dest, uint32_t index, const void *message,
		  uint32_t size, struct am_send *send);
#endif

/*
 * Once a work queue is full it takes the NIC to make room, not the other process; a
 * message that finds none for long counts as one that the fabric has lost.
 */
static inline int64_t am_wire_put(struct am *am, int dest, uint32_t index,
				  const void *message, uint32_t size)
{
	struct h_ticket ticket = am->peers[dest].ticket;
	uint32_t tries;
	int64_t handle = -EAGAIN;

	ticket.meta_index = index;
	ticket.base = size == AM_HEADER ?
		(uint64_t)index * AM_STRIDE :
		am->long_base + (uint64_t)index * am->stride;
	ticket.length = size;
	for (tries = 0; tries < AM_WIRE_TRIES; tries++) {
		handle = h_send_msg(am->terminus, &ticket, message, size, NULL,
				    0);
		if (am_likely(handle != -EAGAIN))
			break;
		sched_yield();
	}
	return handle;
}

/*
 * A message into the buffer that it is sent from, and is kept in. The length says whether
 * there are data: where NULL was given as their address we are ended by a signal, as by
 * any other where there is no memory. Else the header would tell of data that do not come.
 */
static inline void am_wire_fill(struct am *am, struct am_send *send,
				struct am_packet *p,
				const struct am_packet *packet,
				const void *data, int dest, int reply,
				uint32_t instance)
{
	*p = *packet;
	p->seq = send->seq;
	p->source = (uint16_t)am->self;
	p->instance = (uint8_t)instance;
	send->size = AM_HEADER;
	if (p->length) {
		memcpy(p + 1, data, p->length);
		send->size += p->length;
		am->stats.bytes += p->length;
		if (am->summed || send->suspect) {
			p->kind |= AM_SUMMED;
			p->args[4] = am_data_sum(p + 1, p->length);
		}
	}
	if (am->reliable)
		p->check = am_header_sum(p, (uint32_t)dest, reply);
}

static inline void am_wire_send(struct am *am, int dest, uint32_t index,
				struct am_send *send)
{
	const void *message = am_out_buffer(am, index);
	/* The same number on both sides: ours of them, theirs of us. */
	uint32_t there = am_index(am, index >= am_index(am, 1, 0, 0), am->self,
				  index & (am->depth - 1));

	am->stats.messages++;
	am->stats.doorbells += !am->terminus->corked;
#ifdef HAMLYN_AM_TEST_WIRE
	am_test_wire(am, dest, there, message, send->size, send);
#else
	send->handle = am_wire_put(am, dest, there, message, send->size);
#endif
}

/*
 * The NIC may still have to fetch what a buffer was sent from last; what fitted the
 * work queue entry it has.
 */
static inline void am_wire_settle(struct am *am, struct am_send *send)
{
	if (am_unlikely(send->handle >= 0 && send->size > am->terminus->inline_max))
		(void)h_send_wait(am->terminus, send->handle, 1000000000);
	send->handle = -1;
}

#endif /* HAMLYN_AM_WIRE_H */
