// SPDX-License-Identifier: MIT
/*
 * Replies. The last one of each instance is saved, to be reflected when its request
 * comes again (P 5.2.1). Where a handler sends none the request is acknowledged, not at
 * once but with others: an acknowledgment is a message, too.
 */
#include "wire.h"

/* May the caller reply? Changes nothing if not. */
int am_can_reply(struct am *am, int dest)
{
	if (am_unlikely(!am->enabled))
		return am_fail(-ENOTCONN, "am_enable() was not called");
	if (am_unlikely(am->context != AM_IN_REQUEST))
		return am_fail(-EPERM, "only a request handler may reply");
	if (am_unlikely(am->replied))
		return am_fail(-EALREADY, "a request handler may reply once");
	if (am_unlikely(dest != HPAM_reply_dest))
		return am_fail(-EINVAL,
			       "the request is of process %d: no reply to process %d",
			       HPAM_reply_dest, dest);
	return 0;
}

static struct am_packet *saved(const struct am *am, int dest, uint32_t instance)
{
	return am_out_buffer(am, am_index(am, 1, (uint32_t)dest, instance));
}

void am_reply_leave(struct am *am, int dest, uint32_t instance)
{
	struct am_send *r = &am->peers[dest].reply[instance];

	am_wire_send(am, dest, am_index(am, 1, (uint32_t)dest, instance), r);
	am_state_move(&r->state, AM_EV_SENT_REPLY);
}

static int reply_to_self(struct am *am, const struct am_packet *packet,
			 const void *data)
{
	enum am_context before = am->context;
	struct am_packet copy = *packet;

	copy.source = (uint16_t)am->self;
	if (copy.kind == AM_MEMORY || copy.kind == AM_MEMORY_HPAM) {
		data = (const void *)(uintptr_t)copy.args[1];
	} else if (copy.kind == AM_MEDIUM) {
		/* Not the page that the request's data may be in. */
		if (copy.length)
			memcpy(am->scratch + am->page, data, copy.length);
		data = am->scratch + am->page;
	}
	am->context = AM_IN_REPLY;
	HPAM_reply_dest = -1;
	am_call((int)am->self, &copy, (void *)(uintptr_t)data);
	HPAM_reply_dest = (int)am->self;
	am->context = before;
	return 0;
}

/* The reply of the request handler that runs. */
int am_reply_send(struct am *am, const struct am_packet *packet, const void *data)
{
	uint32_t instance = am->reply_instance;
	int dest = HPAM_reply_dest;
	struct am_send *r = &am->peers[dest].reply[instance];

	am->replied = 1;
	am->stats.replies++;
	if (am_unlikely((uint32_t)dest == am->self))
		return reply_to_self(am, packet, data);
	am_wire_settle(am, r);
	am_state_move(&r->state, AM_EV_SEND);
	am_wire_fill(am, r, saved(am, dest, instance), packet, data, dest, 1, instance);
	if (!am->defer)
		am_reply_leave(am, dest, instance);
	return 0;
}

/* It was handled without a reply. */
void am_reply_owe(struct am *am, int dest, uint32_t instance)
{
	struct am_peer *peer = &am->peers[dest];
	struct am_send *r = &peer->reply[instance];

	am_wire_settle(am, r);
	r->size = 0;
	am_state_move(&r->state, AM_EV_SEND);
	am_state_move(&r->state, AM_EV_SENT_REPLY);
	if (!am->owing)
		am->owed_since = am_clock();
	if (!peer->owed)
		am->owing++;
	peer->owed |= 1U << instance;
	am->stats.acks++;
	/* Half of what may be under way: the sender need not wait. */
	if (++peer->owed_count >= (am->depth + 1) / 2)
		am_acks_send(am, dest);
}

static uint32_t ack_of(const struct am_peer *peer, uint32_t instance)
{
	return instance << 24 | (peer->reply[instance].seq & AM_SEQ24);
}

/*
 * Into the buffer of the first one's reply; the others' are not needed. Any of them is
 * acknowledged alone when its request comes again. Not saved: it is made anew then.
 */
static void send_acks(struct am *am, int dest, uint32_t which)
{
	struct am_peer *peer = &am->peers[dest];
	uint32_t first = (uint32_t)__builtin_ctz(which);
	struct am_send *r = &peer->reply[first];
	struct am_packet *p = saved(am, dest, first);
	uint32_t more[AM_MAX_ACKS - 1] = { 0 };
	uint32_t n = 0;

	for (which &= which - 1; which; which &= which - 1)
		more[n++] = ack_of(peer, (uint32_t)__builtin_ctz(which));
	*p = (struct am_packet){
		.seq = r->seq, .source = (uint16_t)am->self,
		.instance = (uint8_t)first, .kind = AM_ACK, .length = n,
	};
	memcpy(&p->handler, more, sizeof(p->handler));
	memcpy(p->args, more + 2, sizeof(p->args));
	if (am->reliable)
		p->check = am_header_sum(p, (uint32_t)dest, 1);
	r->size = AM_HEADER;
	am->stats.ack_messages++;
	am_wire_send(am, dest, am_index(am, 1, (uint32_t)dest, first), r);
	r->size = 0;
}

/* All that is owed to a process. */
void am_acks_send(struct am *am, int dest)
{
	struct am_peer *peer = &am->peers[dest];

	while (peer->owed) {
		uint32_t which = peer->owed;
		uint32_t some = 0;
		uint32_t n;

		for (n = 0; which && n < AM_MAX_ACKS; n++) {
			some |= which & -which;
			which &= which - 1;
		}
		peer->owed = which;
		send_acks(am, dest, some);
	}
	peer->owed_count = 0;
	am->owing--;
}

void am_acks_flush(struct am *am)
{
	uint32_t i;

	for (i = 0; i < am->procs && am->owing; i++)
		if (am->peers[i].owed)
			am_acks_send(am, (int)i);
}

/*
 * The request came again: the reply was lost, or slow. The requester cannot tell its
 * copies apart by their notifications from now on.
 */
void am_reply_reflect(struct am *am, int dest, uint32_t instance)
{
	struct am_peer *peer = &am->peers[dest];
	struct am_send *r = &peer->reply[instance];

	if (r->state != AM_WAITING)
		return;
	am->stats.reflections++;
	r->suspect = 1;
	if (!r->size) {
		if (peer->owed & 1U << instance) {
			am_acks_send(am, dest);
			return;
		}
		send_acks(am, dest, 1U << instance);
		return;
	}
	am_wire_settle(am, r);
	am_state_move(&r->state, AM_EV_DUPLICATE);
	am_reply_leave(am, dest, instance);
}
