// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Receiving: admit, place, count, notify (H 2.2 - 2.7). */
#include "nic.h"

static int admit_metadata(const struct hml_slot *slot,
			  const struct hamlyn_packet *h)
{
	bool single = h->flags & HAMLYN_PACKET_SINGLE;

	if (h->flags & HAMLYN_PACKET_FAST) {
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

int hml_slot_admit(const struct hml_slot *slot, const struct hamlyn_packet *h)
{
	if (!slot || !smp_load_acquire(&slot->live))		/* B9 */
		return HAMLYN_REJECT_SLOT;
	if (h->key != READ_ONCE(slot->key))
		return HAMLYN_REJECT_KEY;
	if (h->flags & ~HAMLYN_PACKET_FLAGS ||
	    h->meta_length > HAMLYN_MAX_METADATA)
		return HAMLYN_REJECT_FORMAT;
	if (!hml_view_covers(slot->data.length, h->offset, h->length))
		return HAMLYN_REJECT_BOUNDS;
	return admit_metadata(slot, h);
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

static struct hamlyn_metadata *metadata(struct hml_nic *nic,
					const struct hml_slot *slot,
					const struct hamlyn_packet *h)
{
	u64 i = hml_index_nospec(h->meta_index, slot->meta_count);

	return hml_mem_at(&nic->port, slot->meta_mem,
			  slot->meta_base + i * HAMLYN_METADATA_SIZE);
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
	return !hml_atomic_add_return(&metadata(nic, slot, h)->accumulator,
				      h->delta);
}

static void place_metadata(struct hml_nic *nic, const struct hml_slot *slot,
			   const struct hamlyn_packet *h, const void *from)
{
	struct hamlyn_metadata *m = metadata(nic, slot, h);

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
	if (likely(hml_nq_append(nic, nq, &e))) {
		stats->notifications++;
	} else {
		stats->overruns++;
		hml_atomic_inc64(&slot->overruns);
	}
}

void hml_rx(struct hml_nic *nic, const struct hamlyn_packet *h,
	    const struct hml_payload *payload, struct hml_stats *stats)
{
	struct hml_slot *slot;
	int reject;

	slot = hml_port_slot(&nic->port, h->slot);
	reject = hml_slot_admit(slot, h);
	if (unlikely(reject >= 0)) {
		stats->rejects[reject]++;
		if (slot)
			hml_atomic_inc64(&slot->rejects[reject]);
		return;
	}
	place(nic, slot, h, payload);
	if (h->meta_length)
		place_metadata(nic, slot, h, payload->meta);
	if (count(nic, slot, h))
		notify(nic, slot, h, stats);
}
