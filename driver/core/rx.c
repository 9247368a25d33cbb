// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Receiving: admit, place, count, notify (H 2.2 - 2.7).
 *
 * What few packets need is in functions of its own, which get the header by
 * value: where all of this is compiled into the sender a pointer to it would
 * keep the headers of all packets in memory and out of registers.
 */
#include "nic.h"

static int admit_metadata(const struct hml_slot *slot,
			  const struct hamlyn_packet *h)
{
	bool single = h->flags & HAMLYN_PACKET_SINGLE;

	/* It would never be over. */
	if (h->flags & HAMLYN_PACKET_NO_NOTIFY &&
	    slot->mode == HAMLYN_SLOT_PARANOID_ONE_SHOT)
		return HAMLYN_REJECT_FORMAT;
	if (h->flags & HAMLYN_PACKET_FAST) {
		/* No entry, so no secondary key. */
		if (slot->mode != HAMLYN_SLOT_NORMAL)
			return HAMLYN_REJECT_METADATA;
		if (!single || h->delta || h->meta_length ||
		    h->meta_index != HAMLYN_META_FAST)
			return HAMLYN_REJECT_FORMAT;
		return -1;
	}
	if (likely(slot->meta_count))
		return likely(h->meta_index < slot->meta_count) ?
			-1 : HAMLYN_REJECT_METADATA;
	/* Nowhere to put metadata and nowhere to count packets. */
	if (h->meta_length || h->meta_index)
		return HAMLYN_REJECT_METADATA;
	if ((!single || h->delta) && !(h->flags & HAMLYN_PACKET_NO_NOTIFY))
		return HAMLYN_REJECT_METADATA;
	return -1;
}

/*
 * What opens a slot that is not a plain one, or by what is not its key: a ticket
 * that came as a descriptor (H 6.5).
 */
static noinline int admit_special(const struct hml_slot *slot, u32 flags,
				  u64 key, u64 ticket_key)
{
	if (!smp_load_acquire(&slot->live))				/* B9 */
		return HAMLYN_REJECT_SLOT;
	if (flags & HAMLYN_PACKET_TICKET)
		return ticket_key &&	/* 0: nobody's */
		       ticket_key == READ_ONCE(slot->ticket_key) ?
			-1 : HAMLYN_REJECT_KEY;
	if (slot->flags & HAMLYN_SLOT_TICKET_ONLY)
		return HAMLYN_REJECT_TICKET;
	/* In the paranoid modes the metadata entry's key takes its place. */
	if (slot->mode == HAMLYN_SLOT_NORMAL && key != READ_ONCE(slot->key))
		return HAMLYN_REJECT_KEY;
	return -1;
}

/* One look at the state tells that only its key opens a slot: nearly all are so. */
static __always_inline bool plain(const struct hml_slot *slot,
				  const struct hamlyn_packet *h)
{
	return smp_load_acquire(&slot->state) == hml_slot_plain() && /* B9 */
	       !(h->flags & HAMLYN_PACKET_TICKET);
}

/*
 * May this packet touch what it names in this slot? Nothing else decides it but the
 * secondary tests of the paranoid modes, which can only refuse more. -1, or why not.
 */
static __always_inline int admit_packet(const struct hml_slot *slot,
					const struct hamlyn_packet *h,
					bool is_plain)
{
	int reject;

	if (likely(is_plain)) {
		if (unlikely(h->key != READ_ONCE(slot->key)))
			return HAMLYN_REJECT_KEY;
	} else {
		reject = admit_special(slot, h->flags, h->key, h->ticket_key);
		if (reject >= 0)
			return reject;
	}
	if (unlikely(h->version != HAMLYN_PACKET_VERSION || h->reserved ||
		     h->flags & ~HAMLYN_PACKET_FLAGS ||
		     h->meta_length > HAMLYN_MAX_METADATA))
		return HAMLYN_REJECT_FORMAT;
	if (unlikely(!hml_view_covers(slot->data.length, h->offset, h->length)))
		return HAMLYN_REJECT_BOUNDS;
	return admit_metadata(slot, h);
}

static struct hamlyn_metadata *metadata(struct hml_nic *nic,
					const struct hml_slot *slot,
					u32 index)
{
	u64 i = hml_index_nospec(index, slot->meta_count);

	return hml_mem_at(&nic->port, slot->meta_mem,
			  slot->meta_base + i * HAMLYN_METADATA_SIZE);
}

/*
 * The second half of the paranoid modes' tests (H 2.7). The limits are in the
 * owner's memory and may change at any time: each is read once, and what they
 * let in is inside the slot's own bounds whatever they say.
 */
static int admit_secondary(const struct hamlyn_metadata *m,
			   const struct hamlyn_packet *h)
{
	u64 low = READ_ONCE(m->low);
	u64 high = READ_ONCE(m->high);
	u64 key = READ_ONCE(m->key);

	/* 0: the entry was never granted to anybody. */
	if (!key || h->key != key)
		return HAMLYN_REJECT_KEY;
	if (high < low || h->offset < low ||
	    !hml_view_covers(high - low, h->offset - low, h->length))
		return HAMLYN_REJECT_BOUNDS;
	return -1;
}

/* Losing that often needs the owner's help: the word is in its memory. */
#define ONE_SHOT_TRIES	1000

/* Nobody else comes in. */
#define ONE_SHOT_ALONE	(HAMLYN_META_ARMED | HAMLYN_META_COMPLETE | 1)

/*
 * Paranoid one-shot: come in, as one more packet of the message that the entry
 * was armed for; @alone if it is the whole message, and two of them would be a
 * mixture. The word is the owner's to spoil, and only the owner loses.
 */
static bool one_shot_enter(struct hamlyn_metadata *m, bool alone)
{
	u32 tries;

	for (tries = 0; tries < ONE_SHOT_TRIES; tries++) {
		u32 state = smp_load_acquire(&m->state);	/* B10 */

		if (!(state & HAMLYN_META_ARMED) ||
		    state & HAMLYN_META_COMPLETE ||
		    (alone && state != HAMLYN_META_ARMED))
			return false;
		if (hml_atomic_cmpxchg(&m->state, state,
				       alone ? ONE_SHOT_ALONE : state + 1) ==
		    state)
			return true;
	}
	return false;
}

/*
 * Leave. The message is over when its last packet has arrived and all have
 * left; whoever sees both closes the entry and tells. So nothing is written
 * behind a notification, and an arming lets one notification through.
 */
static bool one_shot_leave(struct hamlyn_metadata *m, bool complete)
{
	u32 tries;

	for (tries = 0; tries < ONE_SHOT_TRIES; tries++) {
		u32 state = READ_ONCE(m->state);
		u32 next = state - 1;
		bool last;

		if (complete)
			next |= HAMLYN_META_COMPLETE;
		last = next == (HAMLYN_META_ARMED | HAMLYN_META_COMPLETE);
		if (hml_atomic_cmpxchg(&m->state, state, last ? 0 : next) ==
		    state)
			return last;
	}
	return false;
}

/* From checked pieces of wired memory. */
static noinline void gather(struct hml_nic *nic, hml_mem_t mem, u64 to,
			    const struct hml_piece *piece, u64 skip,
			    u32 left)
{
	while (left) {
		u64 there = piece->length - skip;
		u32 n = there < left ? there : left;

		hml_mem_copy(&nic->port, mem, to, piece->mem,
			     piece->offset + skip, n);
		to += n;
		left -= n;
		skip = 0;
		piece++;
	}
}

static __always_inline void place(struct hml_nic *nic,
				  const struct hml_slot *slot,
				  const struct hamlyn_packet *h,
				  const struct hml_payload *p)
{
	u64 to = slot->data.base +
		 hml_index_nospec(h->offset, slot->data.length + 1);

	if (!h->length)
		return;
	if (p->piece)
		gather(nic, slot->data.mem, to, p->piece, p->skip, h->length);
	else
		hml_mem_write(&nic->port, slot->data.mem, to, p->flat,
			      h->length);
}

/* Is this packet all of a message? */
static bool is_whole(const struct hamlyn_packet *h)
{
	return h->flags & HAMLYN_PACKET_SINGLE && !h->delta;
}

/*
 * Packet counting (H 2.5): is there anything to tell the receiver? The
 * accumulator is in memory that the application may rewrite at any time; it
 * decides about nothing but a notification of its owner.
 */
static bool count(struct hml_nic *nic, const struct hml_slot *slot,
		  const struct hamlyn_packet *h)
{
	if (h->flags & HAMLYN_PACKET_NO_NOTIFY)
		return false;
	if (is_whole(h))
		return true;
	/* Full barrier: whoever reads 0 here has everybody's data behind it. */
	return !hml_atomic_add_return(&metadata(nic, slot,
						h->meta_index)->accumulator,
				      h->delta);
}

static void place_metadata(struct hml_nic *nic, const struct hml_slot *slot,
			   const struct hamlyn_packet *h, const void *from)
{
	struct hamlyn_metadata *m = metadata(nic, slot, h->meta_index);

	memcpy(m->user, from, h->meta_length);
	WRITE_ONCE(m->meta_length, h->meta_length);
}

static __always_inline void notify(struct hml_nic *nic, struct hml_slot *slot,
				   struct hml_nq *nq, struct hml_nq_place place,
				   const struct hamlyn_packet *h,
				   struct hml_sender *sender)
{
	bool fast = h->flags & HAMLYN_PACKET_FAST;
	const struct hamlyn_nq_entry e = {
		/* Without metadata the base is 0, and the only index is 0. */
		.data = fast ? h->word :
			       slot->meta_base +
			       (u64)h->meta_index * HAMLYN_METADATA_SIZE,
		.slot = h->slot,
		.index = h->meta_index,
		.source = h->source,
		.length = h->length,
		.flags = (h->flags & HAMLYN_PACKET_SINGLE ?
			  HAMLYN_NQE_SINGLE : 0) | (fast ? HAMLYN_NQE_FAST : 0),
	};

	if (likely(hml_nq_append(nic, nq, place, &e,
				 !(h->flags & HAMLYN_PACKET_QUIET)))) {
		sender->stats->notifications++;
	} else {
		sender->stats->overruns++;
		hml_atomic_inc64(&slot->overruns);
	}
}

/* Which packet completes a message is known only when it is in its place. */
static void notify_late(struct hml_nic *nic, struct hml_slot *slot,
			const struct hamlyn_packet *h,
			struct hml_sender *sender)
{
	struct hml_nq *nq = hml_nq_deref(&nic->port, slot->nq);

	if (nq)
		notify(nic, slot, nq, hml_nq_expect(nic, nq), h, sender);
}

/*
 * Held back is who does not know a key. Who knows it and still goes wrong has
 * nothing to find out; nor has who names a slot that is not there, for nothing
 * opens that. Which slots there are is no secret: numbers that one is not given
 * are in use.
 */
static bool guessed(const struct hamlyn_packet *h, int reject)
{
	if (reject == HAMLYN_REJECT_TICKET)
		return true;
	/*
	 * Nobody chooses the key of a ticket. One that is void is late; and whom the owner
	 * has given one was let in by it: an entry's key is the owner's to change.
	 */
	return reject == HAMLYN_REJECT_KEY && !(h->flags & HAMLYN_PACKET_TICKET);
}

static noinline void discard(struct hml_nic *nic, struct hml_slot *slot,
			     struct hamlyn_packet h, int reject,
			     struct hml_sender *sender)
{
	sender->stats->rejects[reject]++;
	if (slot)
		hml_atomic_inc64(&slot->rejects[reject]);
	/* The packets of a message have one key, and are one guess. */
	if (guessed(&h, reject) && !sender->guessed) {
		sender->guessed = true;
		if (!hml_port_knew(nic, &h, sender))
			hml_guard_guess(nic, sender);
	}
	hml_port_rejected(nic, slot, &h, reject, sender);
}

static __always_inline void place_all(struct hml_nic *nic,
				      struct hml_slot *slot,
				      const struct hamlyn_packet *h,
				      const struct hml_payload *payload)
{
	place(nic, slot, h, payload);
	if (h->meta_length)
		place_metadata(nic, slot, h, payload->meta);
}

static noinline void accept_any(struct hml_nic *nic, struct hml_slot *slot,
				struct hamlyn_packet h,
				struct hml_payload payload,
				struct hml_sender *sender)
{
	place_all(nic, slot, &h, &payload);
	if (count(nic, slot, &h))
		notify_late(nic, slot, &h, sender);
}

/* A message of one packet that nobody counts: surely there is an entry to fill. */
static __always_inline bool notifies(const struct hamlyn_packet *h)
{
	return h->flags & HAMLYN_PACKET_SINGLE && !h->delta &&
	       !(h->flags & HAMLYN_PACKET_NO_NOTIFY);
}

static __always_inline void accept(struct hml_nic *nic, struct hml_slot *slot,
				   const struct hamlyn_packet *h,
				   const struct hml_payload *payload,
				   struct hml_sender *sender)
{
	struct hml_nq *nq = NULL;
	struct hml_nq_place next;

	if (likely(notifies(h)))
		nq = hml_nq_deref(&nic->port, slot->nq);
	if (unlikely(!nq)) {
		accept_any(nic, slot, hml_packet_copy(h), *payload, sender);
		return;
	}
	next = hml_nq_expect(nic, nq);
	place_all(nic, slot, h, payload);
	notify(nic, slot, nq, next, h, sender);
}

/* The message's length is known in its entry, also when its notification is lost. */
static void count_bytes(struct hamlyn_metadata *m,
			const struct hamlyn_packet *h)
{
	if (is_whole(h))
		WRITE_ONCE(m->length, h->length);
	else
		hml_atomic_add_return(&m->length, h->length);
}

/*
 * Who was refused behind the door leaves the entry as it was, or tells of the others'
 * message, not of its own.
 */
static noinline void one_shot_refused(struct hml_nic *nic,
				      struct hml_slot *slot,
				      struct hamlyn_metadata *m,
				      const struct hamlyn_packet *h,
				      struct hml_sender *sender)
{
	const struct hamlyn_packet nothing = {
		.slot = h->slot,
		.meta_index = h->meta_index,
	};

	if (is_whole(h))
		hml_atomic_cmpxchg(&m->state, ONE_SHOT_ALONE,
				   HAMLYN_META_ARMED);
	else if (one_shot_leave(m, false))
		notify_late(nic, slot, &nothing, sender);
}

static int accept_one_shot(struct hml_nic *nic, struct hml_slot *slot,
			   struct hamlyn_metadata *m,
			   const struct hamlyn_packet *h,
			   const struct hml_payload *payload,
			   struct hml_sender *sender)
{
	bool complete;
	int reject;

	if (!one_shot_enter(m, is_whole(h)))			/* B10 */
		return HAMLYN_REJECT_ONE_SHOT;
	/*
	 * Again: between the first look and the door the owner may have taken
	 * the entry away and armed it for somebody else.
	 */
	reject = admit_secondary(m, h);
	if (unlikely(reject >= 0)) {
		one_shot_refused(nic, slot, m, h, sender);
		return reject;
	}
	place_all(nic, slot, h, payload);
	complete = count(nic, slot, h);
	count_bytes(m, h);
	if (one_shot_leave(m, complete))
		notify_late(nic, slot, h, sender);
	return -1;
}

static int accept_paranoid(struct hml_nic *nic, struct hml_slot *slot,
			   const struct hamlyn_packet *h,
			   const struct hml_payload *payload,
			   struct hml_sender *sender)
{
	struct hamlyn_metadata *m = metadata(nic, slot, h->meta_index);
	int reject = admit_secondary(m, h);

	if (reject >= 0)
		return reject;
	if (slot->mode == HAMLYN_SLOT_PARANOID_ONE_SHOT)
		return accept_one_shot(nic, slot, m, h, payload, sender);
	place_all(nic, slot, h, payload);
	if (count(nic, slot, h))
		notify_late(nic, slot, h, sender);
	return -1;
}

/* Apart, so that plain packets need no registers for it. */
static noinline int receive_special(struct hml_nic *nic, struct hml_slot *slot,
				    struct hamlyn_packet h,
				    struct hml_payload payload,
				    struct hml_sender *sender)
{
	int reject = admit_packet(slot, &h, false);

	if (reject >= 0)
		return reject;
	if (slot->mode != HAMLYN_SLOT_NORMAL)
		return accept_paranoid(nic, slot, &h, &payload, sender);
	accept(nic, slot, &h, &payload, sender);
	return -1;
}

void hml_rx(struct hml_nic *nic, const struct hamlyn_packet *h,
	    const struct hml_payload *payload, struct hml_sender *sender)
{
	struct hml_slot *slot = hml_port_slot(&nic->port, h->slot);
	int reject = HAMLYN_REJECT_SLOT;

	if (likely(slot && plain(slot, h))) {
		reject = admit_packet(slot, h, true);
		if (likely(reject < 0)) {
			accept(nic, slot, h, payload, sender);
			return;
		}
	} else if (slot) {
		reject = receive_special(nic, slot, hml_packet_copy(h),
					 hml_payload_copy(payload),
					 sender);
	}
	if (reject >= 0)
		discard(nic, slot, hml_packet_copy(h), reject, sender);
}

int hml_slot_opens(struct hml_nic *nic, const struct hml_slot *slot, u64 key,
		   u32 meta_index, bool ticket)
{
	u64 right;

	if (!slot || !smp_load_acquire(&slot->live))		/* B9 */
		return HAMLYN_REJECT_SLOT;
	if (ticket)
		return key && key == READ_ONCE(slot->ticket_key) ?
			-1 : HAMLYN_REJECT_KEY;
	if (slot->flags & HAMLYN_SLOT_TICKET_ONLY)
		return HAMLYN_REJECT_TICKET;
	if (slot->mode == HAMLYN_SLOT_NORMAL)
		return key == READ_ONCE(slot->key) ? -1 : HAMLYN_REJECT_KEY;
	if (meta_index >= slot->meta_count)
		return HAMLYN_REJECT_METADATA;
	right = READ_ONCE(metadata(nic, slot, meta_index)->key);
	return right && key == right ? -1 : HAMLYN_REJECT_KEY;
}
