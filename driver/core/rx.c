// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Receiving: admit, place, count, notify (H 2.2 - 2.7).
 *
 * Code that few packets need is in out-of-line functions that take the header by
 * value: where all of this is inlined into the sender, passing a pointer would
 * force the header of every packet out of registers and into memory.
 */
#include "guard.h"
#include "notify.h"
#include "rx.h"

static int admit_metadata(const struct hml_slot *slot,
			  const struct hamlyn_packet *h)
{
	bool single = h->flags & HAMLYN_PACKET_SINGLE;

	/* The message would never complete. */
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
	/* No entry: nowhere to put metadata, and nowhere to count packets. */
	if (h->meta_length || h->meta_index)
		return HAMLYN_REJECT_METADATA;
	if ((!single || h->delta) && !(h->flags & HAMLYN_PACKET_NO_NOTIFY))
		return HAMLYN_REJECT_METADATA;
	return -1;
}

/*
 * Does the packet open a slot that is not plain, or by something other than the slot's
 * key: a ticket that was imported as a descriptor (H 6.5)?
 */
static noinline int admit_special(const struct hml_slot *slot, u32 flags,
				  u64 key, u64 ticket_key)
{
	if (!smp_load_acquire(&slot->live))	/* B9: before the reads of the slot */
		return HAMLYN_REJECT_SLOT;
	if (flags & HAMLYN_PACKET_TICKET)
		return ticket_key &&	/* 0: no ticket */
		       ticket_key == READ_ONCE(slot->ticket_key) ?
			-1 : HAMLYN_REJECT_KEY;
	if (slot->flags & HAMLYN_SLOT_TICKET_ONLY)
		return HAMLYN_REJECT_TICKET;
	/* In the paranoid modes the metadata entry's key replaces it. */
	if (slot->mode == HAMLYN_SLOT_NORMAL && key != READ_ONCE(slot->key))
		return HAMLYN_REJECT_KEY;
	return -1;
}

/* One load of the state tells that the key alone opens the slot, as for nearly all slots. */
static __always_inline bool plain(const struct hml_slot *slot,
				  const struct hamlyn_packet *h)
{
	return smp_load_acquire(&slot->state) == hml_slot_plain() && /* B9: before the slot */
	       !(h->flags & HAMLYN_PACKET_TICKET);
}

/* Is what it says of itself, and where it wants to go, of this slot? */
static __always_inline int admit_shape(const struct hml_slot *slot,
				       const struct hamlyn_packet *h)
{
	if (unlikely(h->version != HAMLYN_PACKET_VERSION || h->reserved ||
		     h->flags & ~HAMLYN_PACKET_FLAGS ||
		     h->meta_length > HAMLYN_MAX_METADATA))
		return HAMLYN_REJECT_FORMAT;
	if (unlikely(!hml_view_covers(slot->data.length, h->offset, h->length)))
		return HAMLYN_REJECT_BOUNDS;
	return admit_metadata(slot, h);
}

/*
 * May this packet touch what it names in this slot? This alone decides, together with the
 * secondary tests of the paranoid modes, which can only refuse more. Return: -1, or why not.
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
	return admit_shape(slot, h);
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
 * owner's memory and may change at any time: each is read once, and whatever
 * they say, a packet must also be inside the slot's own bounds.
 */
static int admit_secondary(const struct hamlyn_metadata *m,
			   const struct hamlyn_packet *h)
{
	u64 low = READ_ONCE(m->low);
	u64 high = READ_ONCE(m->high);
	u64 key = READ_ONCE(m->key);

	/* 0: the entry is granted to nobody. */
	if (!key || h->key != key)
		return HAMLYN_REJECT_KEY;
	if (h->offset < low || !hml_view_covers(high, h->offset, h->length))
		return HAMLYN_REJECT_BOUNDS;
	return -1;
}

/* To lose the race that often takes the owner's help: the word is in its memory. */
#define ONE_SHOT_TRIES	1000

/* Admits no other packet. */
#define ONE_SHOT_ALONE	(HAMLYN_META_ARMED | HAMLYN_META_COMPLETE | 1)

/*
 * Paranoid one-shot: enter as one more packet of the message that the entry was
 * armed for. The owner can corrupt the word, and only the owner loses by it.
 */
static bool one_shot_enter(struct hamlyn_metadata *m)
{
	u32 tries;

	for (tries = 0; tries < ONE_SHOT_TRIES; tries++) {
		u32 state = smp_load_acquire(&m->state);	/* B10: before the entry it arms */

		if (!(state & HAMLYN_META_ARMED) ||
		    state & HAMLYN_META_COMPLETE)
			return false;
		if (hml_atomic_cmpxchg(&m->state, state, state + 1) == state)
			return true;
	}
	return false;
}

/*
 * The packet is the whole message, so no other may be in progress, or the two would mix:
 * nobody is inside, or it stays outside.
 */
static __always_inline bool one_shot_enter_alone(struct hamlyn_metadata *m)
{
	return smp_load_acquire(&m->state) == HAMLYN_META_ARMED && /* B10: before the entry */
	       hml_atomic_cmpxchg(&m->state, HAMLYN_META_ARMED, ONE_SHOT_ALONE) ==
	       HAMLYN_META_ARMED;
}

/*
 * Leave. The message is over once its last packet has arrived and all packets
 * have left; the one that sees both closes the entry and notifies. So nothing is
 * written after the notification, and each arming yields at most one.
 */
static noinline bool one_shot_leave(struct hamlyn_metadata *m, bool complete)
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

/* Nobody else was inside, unless the owner has made it so. */
static __always_inline bool one_shot_leave_alone(struct hamlyn_metadata *m)
{
	return likely(hml_atomic_cmpxchg(&m->state, ONE_SHOT_ALONE, 0) == ONE_SHOT_ALONE) ||
	       one_shot_leave(m, true);
}

/* Copy from checked pieces of wired memory. Return: false if it cannot all be read. */
static noinline bool gather(struct hml_nic *nic, hml_mem_t mem, u64 to,
			    const struct hml_piece *piece, u64 skip,
			    u32 left)
{
	while (left) {
		u64 there = piece->length - skip;
		u32 n = there < left ? there : left;

		if (!hml_mem_copy(&nic->port, mem, to, piece->mem,
				  piece->offset + skip, n))
			return false;
		to += n;
		left -= n;
		skip = 0;
		piece++;
	}
	return true;
}

static __always_inline bool place(struct hml_nic *nic,
				  const struct hml_slot *slot,
				  const struct hamlyn_packet *h,
				  const struct hml_payload *p)
{
	u64 to = slot->data.base +
		 hml_index_nospec(h->offset, slot->data.length + 1);

	if (!h->length)
		return true;
	if (p->piece)
		return gather(nic, slot->data.mem, to, p->piece, p->skip,
			      h->length) || !HML_PORT_UNREADABLE;
	hml_mem_write(&nic->port, slot->data.mem, to, p->flat, h->length);
	return true;
}

/* Is this packet all of a message? */
static bool is_whole(const struct hamlyn_packet *h)
{
	return h->flags & HAMLYN_PACKET_SINGLE && !h->delta;
}

/*
 * Packet counting (H 2.5): is there anything to tell the receiver? The
 * accumulator is in memory that the application may rewrite at any time; all it
 * decides is whether its owner is notified.
 */
static bool count(struct hml_nic *nic, const struct hml_slot *slot,
		  const struct hamlyn_packet *h)
{
	if (h->flags & HAMLYN_PACKET_NO_NOTIFY)
		return false;
	if (is_whole(h))
		return true;
	/* Full barrier: the one that gets 0 here comes after everybody's data. */
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
		/* Without metadata entries the base is 0, and the only index is 0. */
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

/* Only once a packet has been placed is it known whether it completes the message. */
static void notify_late(struct hml_nic *nic, struct hml_slot *slot,
			const struct hamlyn_packet *h,
			struct hml_sender *sender)
{
	struct hml_nq *nq = hml_nq_deref(&nic->port, slot->nq);

	if (nq)
		notify(nic, slot, nq, hml_nq_expect(nic, nq, hml_port_taker(sender)), h, sender);
}

/*
 * Only a sender that does not know a key is guessing. One that knows it and fails for another
 * reason has nothing to find out, nor has one that names a slot that does not exist, as
 * nothing opens that. Which slots exist is no secret: the numbers that a caller is not given
 * are in use.
 */
static bool guessed(const struct hamlyn_packet *h, int reject)
{
	if (reject == HAMLYN_REJECT_TICKET)
		return true;
	/*
	 * A sender does not choose a ticket's key. If the ticket is void, the packet is late;
	 * if it is valid, the owner has admitted the sender, and it was the owner's doing that
	 * the entry's key (paranoid modes) has changed.
	 */
	return reject == HAMLYN_REJECT_KEY && !(h->flags & HAMLYN_PACKET_TICKET);
}

static noinline void discard(struct hml_nic *nic, struct hml_slot *slot,
			     struct hamlyn_packet h, int reject,
			     struct hml_sender *sender)
{
	if (sender->brief) {
		sender->left = true;
		return;
	}
	sender->stats->rejects[reject]++;
	if (slot)
		hml_atomic_inc64(&slot->rejects[reject]);
	/* All packets of a message have the same key: they are one guess. */
	if (guessed(&h, reject) && !sender->guessed) {
		sender->guessed = true;
		if (!hml_port_knew(nic, &h, sender))
			hml_guard_guess(nic, sender);
	}
	hml_port_rejected(nic, slot, &h, reject, sender);
}

/* Return: false if its bytes cannot be read. What was placed of them is never told of. */
static __always_inline bool place_all(struct hml_nic *nic,
				      struct hml_slot *slot,
				      const struct hamlyn_packet *h,
				      const struct hml_payload *payload,
				      struct hml_sender *sender)
{
	if (unlikely(!place(nic, slot, h, payload))) {
		sender->unreadable = true;
		return false;
	}
	if (h->meta_length)
		place_metadata(nic, slot, h, payload->meta);
	return true;
}

static noinline void accept_any(struct hml_nic *nic, struct hml_slot *slot,
				struct hamlyn_packet h,
				struct hml_payload payload,
				struct hml_sender *sender)
{
	if (place_all(nic, slot, &h, &payload, sender) && count(nic, slot, &h))
		notify_late(nic, slot, &h, sender);
}

/* A single packet that is not counted: an NQ entry is certain to be needed. */
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
	next = hml_nq_expect(nic, nq, hml_port_taker(sender));
	if (likely(place_all(nic, slot, h, payload, sender)))
		notify(nic, slot, nq, next, h, sender);
}

/* The entry has the message's length even if the notification is lost. */
static void count_bytes(struct hamlyn_metadata *m,
			const struct hamlyn_packet *h)
{
	if (is_whole(h))
		WRITE_ONCE(m->length, h->length);
	else
		hml_atomic_add_return(&m->length, h->length);
}

/*
 * A packet rejected, or found unreadable, after it entered must undo its entry, or, if it is
 * the last to leave, complete the notification on behalf of the others.
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
	bool complete, entered;
	int reject;

	entered = is_whole(h) ? one_shot_enter_alone(m) : one_shot_enter(m);
	if (!entered)				/* B10: entered before it is looked at again */
		return HAMLYN_REJECT_ONE_SHOT;
	/*
	 * Check again: between the first check and the entry the owner may have
	 * withdrawn the metadata entry and armed it for somebody else.
	 */
	reject = admit_secondary(m, h);
	if (unlikely(reject >= 0)) {
		one_shot_refused(nic, slot, m, h, sender);
		return reject;
	}
	if (unlikely(!place_all(nic, slot, h, payload, sender))) {
		one_shot_refused(nic, slot, m, h, sender);
		return -1;
	}
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
	if (place_all(nic, slot, h, payload, sender) && count(nic, slot, h))
		notify_late(nic, slot, h, sender);
	return -1;
}

/* Out of line, so that plain packets need no registers for it. */
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

/*
 * A message of one packet that asks for nothing special, as nearly all of what streams send. The
 * door and both looks as in accept_one_shot(); but that it notifies is known from the beginning.
 */
static __always_inline int accept_whole(struct hml_nic *nic, struct hml_slot *slot,
					struct hamlyn_metadata *m,
					const struct hamlyn_packet *h,
					const struct hml_payload *payload,
					struct hml_sender *sender)
{
	struct hml_nq *nq = hml_nq_deref(&nic->port, slot->nq);
	struct hml_nq_place next = { .cursor = 0 };
	int reject;

	if (unlikely(!one_shot_enter_alone(m)))	/* B10: entered before it is looked at again */
		return HAMLYN_REJECT_ONE_SHOT;
	reject = admit_secondary(m, h);
	if (unlikely(reject >= 0)) {
		hml_atomic_cmpxchg(&m->state, ONE_SHOT_ALONE, HAMLYN_META_ARMED);
		return reject;
	}
	if (likely(nq))
		next = hml_nq_expect(nic, nq, hml_port_taker(sender));
	/* No pieces: nothing of it is in memory that may be unreadable. */
	place_all(nic, slot, h, payload, sender);
	WRITE_ONCE(m->length, h->length);
	if (likely(one_shot_leave_alone(m)) && likely(nq))
		notify(nic, slot, nq, next, h, sender);
	return -1;
}

static hml_whole int receive_whole(struct hml_nic *nic, struct hml_slot *slot, struct hml_single s,
				   const void *meta, const void *flat,
				   struct hml_sender *sender)
{
	const struct hml_payload payload = {
		.meta = meta, .flat = flat, .piece = NULL, .skip = 0,
	};
	const struct hamlyn_packet h = hml_single_header(s);
	int reject = admit_shape(slot, &h);
	struct hamlyn_metadata *m;

	if (unlikely(reject >= 0))
		return reject;
	m = metadata(nic, slot, h.meta_index);
	reject = admit_secondary(m, &h);
	if (unlikely(reject >= 0))
		return reject;
	return accept_whole(nic, slot, m, &h, &payload, sender);
}

/*
 * One load of the state tells that the key of the entry alone opens the slot, once. What the
 * packet has beside that receive_whole() takes as given.
 */
static __always_inline bool takes_whole(const struct hml_slot *slot,
					const struct hamlyn_packet *h,
					const struct hml_payload *payload)
{
	return smp_load_acquire(&slot->state) == hml_slot_one_shot() && /* B9: before the slot */
	       h->flags == HAMLYN_PACKET_SINGLE && !h->delta && !h->reserved &&
	       h->version == HAMLYN_PACKET_VERSION && !payload->piece;
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
	} else if (slot && takes_whole(slot, h, payload)) {
		const struct hml_single s = {
			.key = h->key,
			.offset = h->offset,
			.length = h->length,
			.meta_length = h->meta_length,
			.slot = h->slot,
			.meta_index = h->meta_index,
			.source = h->source,
		};

		reject = receive_whole(nic, slot, s, payload->meta, payload->flat,
				       sender);
	} else if (slot) {
		reject = receive_special(nic, slot, hml_packet_copy(h),
					 hml_payload_copy(payload),
					 sender);
	}
	if (reject >= 0)
		discard(nic, slot, hml_packet_copy(h), reject, sender);
}

bool hml_rx_plain(struct hml_nic *nic, struct hml_single s, const void *flat,
		  struct hml_sender *sender)
{
	/* There is no metadata: nothing is read there. */
	const struct hml_payload payload = {
		.meta = flat, .flat = flat, .piece = NULL, .skip = 0,
	};
	const struct hamlyn_packet h = hml_single_header(s);
	struct hml_slot *slot = hml_port_slot(&nic->port, s.slot);
	struct hml_nq *nq;
	struct hml_nq_place next;

	if (unlikely(!slot || h.meta_length))
		return false;
	if (unlikely(!plain(slot, &h)))
		return takes_whole(slot, &h, &payload) &&
		       receive_whole(nic, slot, s, flat, flat, sender) < 0;
	nq = hml_nq_deref(&nic->port, slot->nq);
	if (unlikely(!nq || admit_packet(slot, &h, true) >= 0))
		return false;
	next = hml_nq_expect(nic, nq, hml_port_taker(sender));
	/* No pieces: nothing of it is in memory that may be unreadable. */
	place_all(nic, slot, &h, &payload, sender);
	notify(nic, slot, nq, next, &h, sender);
	return true;
}

int hml_slot_opens(struct hml_nic *nic, const struct hml_slot *slot, u64 key,
		   u32 meta_index, bool ticket)
{
	u64 right;

	if (!slot || !smp_load_acquire(&slot->live))	/* B9: before the reads of the slot */
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
