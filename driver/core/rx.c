// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Receiving: admit, place, count, notify (H 2.2 - 2.7). */
#include "nic.h"

static int admit_metadata(const struct hml_slot *slot,
			  const struct hamlyn_packet *h)
{
	bool single = h->flags & HAMLYN_PACKET_SINGLE;

	/* It would never be over. */
	if (slot->mode == HAMLYN_SLOT_PARANOID_ONE_SHOT &&
	    h->flags & HAMLYN_PACKET_NO_NOTIFY)
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
	if (slot->meta_count)
		return h->meta_index < slot->meta_count ?
			-1 : HAMLYN_REJECT_METADATA;
	/* Nowhere to put metadata and nowhere to count packets. */
	if (h->meta_length || h->meta_index)
		return HAMLYN_REJECT_METADATA;
	if ((!single || h->delta) && !(h->flags & HAMLYN_PACKET_NO_NOTIFY))
		return HAMLYN_REJECT_METADATA;
	return -1;
}

/* What opens a slot: its key, or a ticket that came as a descriptor (H 6.5). */
static int admit_key(const struct hml_slot *slot, const struct hamlyn_packet *h)
{
	if (unlikely(h->flags & HAMLYN_PACKET_TICKET))
		return h->ticket_key &&	/* 0: nobody's */
		       h->ticket_key == READ_ONCE(slot->ticket_key) ?
			-1 : HAMLYN_REJECT_KEY;
	if (unlikely(slot->flags & HAMLYN_SLOT_TICKET_ONLY))
		return HAMLYN_REJECT_TICKET;
	/* In the paranoid modes the metadata entry's key takes its place. */
	if (slot->mode == HAMLYN_SLOT_NORMAL && h->key != READ_ONCE(slot->key))
		return HAMLYN_REJECT_KEY;
	return -1;
}

int hml_slot_admit(const struct hml_slot *slot, const struct hamlyn_packet *h)
{
	int reject;

	if (!slot || !smp_load_acquire(&slot->live))		/* B9 */
		return HAMLYN_REJECT_SLOT;
	reject = admit_key(slot, h);
	if (unlikely(reject >= 0))
		return reject;
	if (h->version != HAMLYN_PACKET_VERSION || h->reserved ||
	    h->flags & ~HAMLYN_PACKET_FLAGS ||
	    h->meta_length > HAMLYN_MAX_METADATA)
		return HAMLYN_REJECT_FORMAT;
	if (!hml_view_covers(slot->data.length, h->offset, h->length))
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

/*
 * Paranoid one-shot: come in, as one more packet of the message that the entry
 * was armed for. The word is the owner's to spoil, and only the owner loses.
 */
static bool one_shot_enter(struct hamlyn_metadata *m)
{
	u32 tries;

	for (tries = 0; tries < ONE_SHOT_TRIES; tries++) {
		u32 state = smp_load_acquire(&m->state);	/* B10 */

		if (!(state & HAMLYN_META_ARMED) ||
		    state & HAMLYN_META_COMPLETE)
			return false;
		if (hml_atomic_cmpxchg(&m->state, state, state + 1) == state)
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

static int admit_paranoid(const struct hml_slot *slot,
			  struct hamlyn_metadata *m,
			  const struct hamlyn_packet *h)
{
	int reject = admit_secondary(m, h);

	if (reject >= 0)
		return reject;
	if (slot->mode == HAMLYN_SLOT_PARANOID_ONE_SHOT && !one_shot_enter(m))
		return HAMLYN_REJECT_ONE_SHOT;
	return -1;
}

static void place(struct hml_nic *nic, const struct hml_slot *slot,
		  const struct hamlyn_packet *h, const struct hml_payload *p)
{
	u64 to = slot->data.base +
		 hml_index_nospec(h->offset, slot->data.length + 1);
	const struct hml_piece *piece = p->piece;
	u64 skip = p->skip;
	u32 left = h->length;

	if (!left)
		return;
	if (p->flat) {
		hml_mem_write(&nic->port, slot->data.mem, to, p->flat, left);
		return;
	}
	while (left) {
		u64 there = piece->length - skip;
		u32 n = there < left ? there : left;

		hml_mem_copy(&nic->port, slot->data.mem, to,
			     piece->mem, piece->offset + skip, n);
		to += n;
		left -= n;
		skip = 0;
		piece++;
	}
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
	if (h->flags & HAMLYN_PACKET_SINGLE && !h->delta)
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

static void notify(struct hml_nic *nic, struct hml_slot *slot,
		   const struct hamlyn_packet *h, struct hml_stats *stats)
{
	struct hamlyn_nq_entry e = {
		.slot = h->slot,
		.index = h->meta_index,
		.source = h->source,
		.length = h->length,
	};
	struct hml_nq *nq = hml_nq_deref(&nic->port, slot->nq);

	if (!nq)
		return;
	if (h->flags & HAMLYN_PACKET_SINGLE)
		e.flags |= HAMLYN_NQE_SINGLE;
	if (h->flags & HAMLYN_PACKET_FAST) {
		e.flags |= HAMLYN_NQE_FAST;
		e.data = h->word;
	} else if (slot->meta_count) {
		e.data = slot->meta_base +
			 (u64)h->meta_index * HAMLYN_METADATA_SIZE;
	}
	if (likely(hml_nq_append(nic, nq, &e,
				 !(h->flags & HAMLYN_PACKET_QUIET)))) {
		stats->notifications++;
	} else {
		stats->overruns++;
		hml_atomic_inc64(&slot->overruns);
	}
}

/*
 * Held back is who does not know a key. Who knows it and still goes wrong has
 * nothing to find out.
 */
static bool guessed(const struct hml_slot *slot, const struct hamlyn_packet *h,
		    int reject)
{
	/* Nobody chooses the key of a ticket: one that is void is no guess. */
	if (h->flags & HAMLYN_PACKET_TICKET &&
	    (!slot || slot->mode == HAMLYN_SLOT_NORMAL))
		return false;
	return reject == HAMLYN_REJECT_SLOT || reject == HAMLYN_REJECT_KEY ||
	       reject == HAMLYN_REJECT_TICKET;
}

static void discard(struct hml_nic *nic, struct hml_slot *slot,
		    const struct hamlyn_packet *h, int reject,
		    struct hml_sender *sender)
{
	sender->stats->rejects[reject]++;
	if (slot)
		hml_atomic_inc64(&slot->rejects[reject]);
	/* The packets of a message have one key, and are one guess. */
	if (guessed(slot, h, reject) && !sender->guessed) {
		sender->guessed = true;
		hml_guard_guess(nic, sender);
	}
	hml_port_rejected(nic, slot, h, reject, sender);
}

void hml_rx(struct hml_nic *nic, const struct hamlyn_packet *h,
	    const struct hml_payload *payload, struct hml_sender *sender)
{
	struct hml_slot *slot = hml_port_slot(&nic->port, h->slot);
	struct hamlyn_metadata *m = NULL;
	int reject = hml_slot_admit(slot, h);
	bool tell;

	if (likely(reject < 0) && slot->mode != HAMLYN_SLOT_NORMAL) {
		m = metadata(nic, slot, h->meta_index);
		reject = admit_paranoid(slot, m, h);
	}
	if (unlikely(reject >= 0)) {
		discard(nic, slot, h, reject, sender);
		return;
	}
	place(nic, slot, h, payload);
	if (h->meta_length)
		place_metadata(nic, slot, h, payload->meta);
	tell = count(nic, slot, h);
	if (m && slot->mode == HAMLYN_SLOT_PARANOID_ONE_SHOT)
		tell = one_shot_leave(m, tell);
	if (tell)
		notify(nic, slot, h, sender->stats);
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
