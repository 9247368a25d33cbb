// SPDX-License-Identifier: MIT
/* Requests: D under way to each process, each in a buffer of its own (P 5.2). */
#include "wire.h"

/* May the caller send a request there? Changes nothing if not. */
int am_can_request(struct am *am, int dest)
{
	if (am_unlikely(!am->enabled))
		return am_fail(-ENOTCONN, "am_enable() was not called");
	if (am_unlikely(am->context == AM_IN_REQUEST))
		return am_fail(-EPERM, "a request handler may only reply");
	if (am_unlikely(am->context != AM_MAIN))
		return am_fail(-EPERM, "a reply handler must not use the network");
	if (am_unlikely((uint32_t)dest >= am->procs))
		return am_fail(-EINVAL, "there is no process %d: 0 to %u are allowed",
			       dest, am->procs - 1);
	return am_likely(!am->peers[dest].lost) ? 0 : am_lost_error(am, dest);
}

/* One that is free, by the hint or by search. Return: 1, or 0. */
int am_request_try(struct am *am, int dest, uint32_t *instance)
{
	struct am_peer *peer = &am->peers[dest];
	uint32_t i;

	if (am_likely(peer->request[peer->hint].state == AM_FREE)) {
		*instance = peer->hint;
		return 1;
	}
	for (i = 0; i < am->depth; i++) {
		if (peer->request[i].state == AM_FREE) {
			*instance = i;
			return 1;
		}
	}
	return 0;
}

/* The same, and waits for one; serves the network meanwhile. */
int am_request_acquire(struct am *am, int dest, uint32_t *instance)
{
	if (am_likely(am_request_try(am, dest, instance)))
		return 0;
	am->stats.stalls++;
	do {
		am_serve(am);
		if (am_unlikely(am->peers[dest].lost))
			return am_lost_error(am, dest);
	} while (!am_request_try(am, dest, instance));
	return 0;
}

static void leave(struct am *am, int dest, uint32_t instance)
{
	struct am_send *r = &am->peers[dest].request[instance];

	am_wire_send(am, dest, am_index(am, 0, (uint32_t)dest, instance), r);
	r->stamp = 0;
	am_state_move(&r->state, AM_EV_SENT_REQUEST);
}

/* Fill the buffer of a free instance, and send it. */
void am_request_issue(struct am *am, int dest, uint32_t instance,
		      const struct am_packet *packet, const void *data,
		      uint8_t transfer)
{
	struct am_peer *peer = &am->peers[dest];
	struct am_send *r = &peer->request[instance];
	struct am_packet *p =
		am_out_buffer(am, am_index(am, 0, (uint32_t)dest, instance));

	am_wire_settle(am, r);
	am_state_move(&r->state, AM_EV_SEND);
	r->seq++;
	am_wire_fill(am, r, p, packet, data, dest, 0, instance);
	r->transfer = transfer;
	r->tries = 0;
	peer->hint = (instance + 1) & (am->depth - 1);
	am->counting++;
	am->stats.requests++;
	leave(am, dest, instance);
}

/* It was not answered in time. From now on a notification may be of an older message. */
void am_request_again(struct am *am, int dest, uint32_t instance)
{
	struct am_send *r = &am->peers[dest].request[instance];

	am_wire_settle(am, r);
	am_state_move(&r->state, AM_EV_TIMEOUT);
	if (r->tries < UINT8_MAX)
		r->tries++;
	r->suspect = 1;
	am->stats.retransmissions++;
	leave(am, dest, instance);
}

/* It was answered, and its handler has run. */
void am_request_done(struct am *am, struct am_peer *peer, uint32_t instance)
{
	struct am_send *r = &peer->request[instance];

	am_state_move(&r->state, AM_EV_REPLY);
	am->counting--;
	peer->hint = instance;
	if (r->transfer != AM_NO_TRANSFER &&
	    !--peer->segments[r->transfer])
		peer->free_transfers |= 1U << r->transfer;
}

int am_request_send(struct am *am, int dest, const struct am_packet *packet,
		    const void *data, uint8_t transfer)
{
	uint32_t instance;
	int rc = am_request_acquire(am, dest, &instance);

	if (am_unlikely(rc))
		return rc;
	am_request_issue(am, dest, instance, packet, data, transfer);
	return 0;
}
