// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Sending: copy and check a TRB, gather, segment into packets (H 2.3, 2.5). */
#include "nic.h"

static int check_trb(const struct hml_nic *nic, const struct hamlyn_trb *trb)
{
	if (trb->flags & ~HAMLYN_TRB_FLAGS || trb->reserved ||
	    trb->length > HAMLYN_MAX_MESSAGE ||
	    trb->meta_length > HAMLYN_MAX_METADATA ||
	    trb->fragments > HAMLYN_MAX_FRAGMENTS ||
	    (trb->ticket && !(trb->flags & HAMLYN_TRB_TICKET)))
		return -EINVAL;
	if (!(trb->flags & HAMLYN_TRB_FAST))
		return trb->word ? -EINVAL : 0;
	/* A fast message is one packet, and the word is all its metadata. */
	if (trb->meta_index != HAMLYN_META_FAST || trb->meta_length ||
	    trb->delta || trb->length > nic->packet_size)
		return -EINVAL;
	return 0;
}

/* Checked copy of one fragment. @f may change any time: it is copied once. */
static int take_fragment(const struct hml_terminus *t,
			 const struct hamlyn_fragment *f, struct hml_piece *p)
{
	const struct hml_view *area;
	u32 tag = READ_ONCE(f->tag);

	p->offset = READ_ONCE(f->offset);
	p->length = READ_ONCE(f->length);
	if (tag >= HAMLYN_MAX_TAGS || READ_ONCE(f->reserved))
		return -EINVAL;
	area = &t->tags[hml_index_nospec(tag, HAMLYN_MAX_TAGS)];
	if (!area->length)
		return -ENXIO;
	if (!hml_view_covers(area->length, p->offset, p->length))
		return -ERANGE;
	p->offset = area->base + hml_index_nospec(p->offset, area->length + 1);
	p->mem = area->mem;
	return 0;
}

static int take_fragments(struct hml_terminus *t, const struct hamlyn_trb *trb,
			  const void *tail, u64 tail_size)
{
	const struct hamlyn_fragment *f = tail;
	u64 left = trb->length;
	u32 n = 0;
	u32 i;

	if (trb->fragments > tail_size / sizeof(*f))
		return -EINVAL;
	for (i = 0; i < trb->fragments; i++) {
		struct hml_piece *p = &t->message.pieces[n];
		int err = take_fragment(t, &f[i], p);

		if (err)
			return err;
		if (p->length > left)
			return -EINVAL;
		left -= p->length;
		/* An empty one would make a packet begin behind its end. */
		if (p->length)
			n++;
	}
	return left ? -EINVAL : 0;
}

/* Host and slot are the ticket's: they are in nobody's hands but ours. */
static int take_ticket(const struct hml_terminus *t, struct hamlyn_trb *trb,
		       u64 *key)
{
	const struct hml_ticket *k;

	*key = 0;
	if (likely(!(trb->flags & HAMLYN_TRB_TICKET)))
		return 0;
	if (trb->ticket >= t->ticket_count)
		return -ENOKEY;
	k = &t->tickets[hml_index_nospec(trb->ticket, t->ticket_count)];
	if (!k->key)
		return -ENOKEY;
	if (trb->offset < k->base ||
	    !hml_view_covers(k->length, trb->offset - k->base, trb->length))
		return -ERANGE;
	trb->host = k->host;
	trb->slot = k->slot;
	*key = k->key;
	return 0;
}

static void fill_header(const struct hml_nic *nic, struct hamlyn_packet *h,
			const struct hamlyn_trb *trb, u64 ticket_key)
{
	h->version = HAMLYN_PACKET_VERSION;
	h->flags = 0;
	if (trb->flags & HAMLYN_TRB_FAST)
		h->flags |= HAMLYN_PACKET_FAST;
	if (trb->flags & HAMLYN_TRB_NO_NOTIFY)
		h->flags |= HAMLYN_PACKET_NO_NOTIFY;
	if (trb->flags & HAMLYN_TRB_QUIET)
		h->flags |= HAMLYN_PACKET_QUIET;
	if (trb->flags & HAMLYN_TRB_TICKET)
		h->flags |= HAMLYN_PACKET_TICKET;
	if (trb->length <= nic->packet_size)
		h->flags |= HAMLYN_PACKET_SINGLE;
	h->meta_length = trb->meta_length;
	h->host = trb->host;
	h->source = nic->host;
	h->slot = trb->slot;
	h->meta_index = trb->meta_index;
	h->key = trb->key;
	h->offset = trb->offset;
	h->word = trb->word;
	h->reserved = 0;
	h->ticket_key = ticket_key;
}

/*
 * A NIC that is down discards, without a word to the sender (H 2.8). So does
 * one that is gone: @to is NULL.
 */
static void xmit(struct hml_nic *nic, struct hml_nic *to,
		 const struct hamlyn_packet *h,
		 const struct hml_payload *payload, struct hml_terminus *t)
{
	struct hml_stats *stats = t->sender.stats;

	stats->packets++;
	stats->bytes += h->length;
	if (likely(hml_link_up(nic) && to && (to == nic || hml_link_up(to)))) {
		hml_port_xmit(nic, to, h, payload, &t->sender);
	} else {
		stats->rejects[HAMLYN_REJECT_DOWN]++;
		hml_port_trace_down(nic, h, &t->sender);
	}
}

int hml_tx_begin(struct hml_nic *nic, struct hml_terminus *t,
		 struct hamlyn_trb *trb, const void *meta,
		 const void *tail, u64 tail_size)
{
	struct hml_message *m = &t->message;
	u64 ticket_key;
	int err = check_trb(nic, trb);

	if (!err)
		err = take_ticket(t, trb, &ticket_key);
	if (err)
		return err;
	m->payload.meta = meta;
	m->payload.flat = trb->fragments ? NULL : tail;
	m->payload.piece = m->pieces;
	m->payload.skip = 0;
	if (trb->fragments)
		err = take_fragments(t, trb, tail, tail_size);
	else if (trb->length > tail_size)
		err = -EINVAL;
	if (err)
		return err;
	if (!hml_port_route(nic, trb->host))
		return -EHOSTUNREACH;
	fill_header(nic, &m->header, trb, ticket_key);
	t->sender.guessed = false;
	m->left = trb->length;
	m->counter = trb->delta;
	WRITE_ONCE(t->busy, true);
	return 0;
}

int hml_tx_flat(struct hml_nic *nic, struct hml_terminus *t,
		struct hamlyn_trb *trb, const void *meta, const void *data)
{
	struct hml_payload payload = { .meta = meta, .flat = data };
	struct hamlyn_packet header;
	u64 ticket_key;
	struct hml_nic *to;
	int err = check_trb(nic, trb);

	if (likely(!err))
		err = take_ticket(t, trb, &ticket_key);
	if (unlikely(err))
		return err;
	to = hml_port_route(nic, trb->host);
	if (unlikely(!to))
		return -EHOSTUNREACH;
	fill_header(nic, &header, trb, ticket_key);
	t->sender.guessed = false;
	header.length = trb->length;
	header.delta = trb->delta;
	t->sender.stats->messages++;
	xmit(nic, to, &header, &payload, t);
	return 0;
}

/* Move the message on to the packet behind the one just sent. */
static void advance(struct hml_message *m, u32 sent)
{
	struct hml_payload *p = &m->payload;

	/* It must not come round to the bottom of the area: stay outside. */
	if (m->header.offset > U64_MAX - sent)
		m->header.offset = U64_MAX;
	else
		m->header.offset += sent;
	m->header.meta_length = 0;
	p->meta = NULL;
	if (p->flat) {
		p->flat = (const u8 *)p->flat + sent;
		return;
	}
	p->skip += sent;
	while (p->skip >= p->piece->length) {
		p->skip -= p->piece->length;
		p->piece++;
	}
}

void hml_tx_packet(struct hml_nic *nic, struct hml_terminus *t)
{
	struct hml_message *m = &t->message;
	u32 n = nic->packet_size;

	if (m->left <= n) {
		n = m->left;
		m->header.delta = m->counter;
		WRITE_ONCE(t->busy, false);
	} else {
		m->header.delta = 1;
		m->counter--;
	}
	m->header.length = n;
	m->left -= n;
	/* It was there when the message began, but may be gone. */
	xmit(nic, hml_port_route(nic, m->header.host), &m->header, &m->payload,
	     t);
	if (t->busy)
		advance(m, n);
	else
		t->sender.stats->messages++;
}

/*
 * Entries posted and not taken. A producer index that is further ahead than
 * there are entries, or behind, is its writer's mistake and means nothing
 * until the writer mends it.
 */
static u32 posted(const struct hml_terminus *t)
{
	u32 n = smp_load_acquire(&t->wq->producer) - READ_ONCE(t->head); /* B1 */

	return n <= t->mask + 1 ? n : 0;
}

bool hml_tx_pending(const struct hml_terminus *t)
{
	return READ_ONCE(t->busy) || posted(t);
}

static void set_status(struct hml_terminus *t, int err)
{
	s32 *status = (s32 *)(t->status + 1) + (t->head & t->mask);

	/* Nearly always 0 after 0: do not take the line from its reader. */
	if (*status != err)
		WRITE_ONCE(*status, err);
	if (unlikely(err)) {
		t->sender.stats->failed++;
		WRITE_ONCE(t->status->failed, t->status->failed + 1);
	}
}

static void finish(struct hml_terminus *t, int err)
{
	set_status(t, err);
	WRITE_ONCE(t->head, t->head + 1);
	smp_store_release(&t->status->completed, t->head);	/* B6 */
}

/* Take the next entry: one copy of the TRB, and nothing is read twice. */
static void take_next(struct hml_nic *nic, struct hml_terminus *t)
{
	const u8 *entry = t->entries +
			  ((u64)(t->head & t->mask) << t->entry_shift);
	const u8 *tail = entry + sizeof(struct hamlyn_trb);
	const u8 *meta = NULL;
	struct hamlyn_trb trb;
	u32 room;
	int err;

	memcpy(&trb, entry, sizeof(trb));
	hml_barrier();	/* the compiler must not read the entry again */
	if (trb.meta_length) {
		/* The smallest entry has room for the metadata. */
		meta = tail;
		tail += HAMLYN_TRB_METADATA_SPACE;
	}
	room = entry + t->entry_size - tail;
	if (!trb.fragments && trb.length <= room &&
	    trb.length <= nic->packet_size) {
		finish(t, hml_tx_flat(nic, t, &trb, meta, tail));
		return;
	}
	err = hml_tx_begin(nic, t, &trb, meta, tail, room);
	if (unlikely(err))
		finish(t, err);
}

/* What was sent since @before, and at least the share of a short packet. */
static s64 cost(const struct hml_nic *nic, const struct hml_terminus *t,
		u64 before)
{
	s64 bytes = t->sender.stats->bytes - before;
	s64 least = nic->packet_size / HML_PACKET_SHARE;

	return bytes > least ? bytes : least;
}

u32 hml_tx_run(struct hml_nic *nic, struct hml_terminus *t, u32 budget,
	       s64 *bytes)
{
	u32 sent;

	for (sent = 0; sent < budget && *bytes > 0; sent++) {
		u64 before = t->sender.stats->bytes;

		if (unlikely(t->sender.guard.until) &&
		    hml_guard_paused(nic, &t->sender.guard))
			break;
		if (!t->busy) {
			if (!posted(t))
				break;
			take_next(nic, t);
		}
		if (t->busy) {
			hml_tx_packet(nic, t);
			if (!t->busy)
				finish(t, 0);
		}
		*bytes -= cost(nic, t, before);
	}
	return sent;
}
