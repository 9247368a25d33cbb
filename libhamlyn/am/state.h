/* SPDX-License-Identifier: MIT */
/*
 * States of a message buffer (P 6.1, Table 1 and Figure 5). Free and received are the
 * states of the buffers that messages arrive in; those to send from are free, in
 * transmission, counting (a request, until its time-out) or waiting (a reply, until the
 * next request says that it arrived).
 */
#ifndef HAMLYN_AM_STATE_H
#define HAMLYN_AM_STATE_H

#include <stdint.h>

enum am_state {
	AM_FREE		= 0,	/* available for use */
	AM_TRANSMIT	= 1,	/* queued for transmission */
	AM_COUNTING	= 2,	/* a timer is counting down for it */
	AM_WAITING	= 3,	/* not available for reuse: saved to be reflected */
	AM_RECEIVED	= 4,	/* has data from the network */
	AM_STATES	= 5,
};

enum am_event {
	AM_EV_SEND	= 0,	/* the processor issues a request or a reply */
	AM_EV_SENT_REQUEST = 1,	/* the request has left */
	AM_EV_SENT_REPLY = 2,	/* the reply has left */
	AM_EV_TIMEOUT	= 3,	/* nobody answered in time */
	AM_EV_REPLY	= 4,	/* the matching reply was handled */
	AM_EV_DUPLICATE	= 5,	/* the request came again: reflect */
	AM_EV_NEW	= 6,	/* the next request came: the reply got through */
	AM_EV_ARRIVE	= 7,	/* the NIC filled it */
	AM_EV_HANDLED	= 8,	/* the handler has run */
	AM_EV_LOST	= 9,	/* the other process is gone */
	AM_EVENTS	= 10,
};

#define AM_INVALID	0xff

extern const uint8_t am_state_next[AM_STATES][AM_EVENTS];

/**
 * am_state_move() - the next state of a buffer
 * @state: of the buffer
 * @event: what happened to it
 *
 * Return: 1, or 0 if that cannot happen to a buffer in @state, which stays the same.
 */
static inline int am_state_move(uint8_t *state, enum am_event event)
{
	uint8_t next = am_state_next[*state][event];

	if (__builtin_expect(next == AM_INVALID, 0))
		return 0;
	*state = next;
	return 1;
}

#endif /* HAMLYN_AM_STATE_H */
