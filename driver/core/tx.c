// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Sending: copy and check a TRB, gather, segment into packets (H 2.3, 2.5). */
#include "guard.h"
#include "link.h"
#include "rx.h"
#include "tx.h"

static int check_trb(const struct hml_nic *nic, const struct hamlyn_trb *trb)
{
	if (trb->flags & ~HAMLYN_TRB_FLAGS || trb->length > HAMLYN_MAX_MESSAGE ||
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

/* Make a checked copy of one fragment. @f may change at any time: each word is read once. */
static int take_fragment(const struct hml_terminus *t,
			 const struct hamlyn_fragment *f, struct hml_piece *p)
{
	const struct hml_view *area;
	u32 tag = READ_ONCE(f->tag);

	p->offset = READ_ONCE(f->offset);
	p->length = READ_ONCE(f->length);
	if (READ_ONCE(f->reserved))
		return -EINVAL;
	if (unlikely(tag >= t->tag_count))
		return tag < HAMLYN_MAX_TAGS ? -ENXIO : -EINVAL;
	area = &t->tags[hml_index_nospec(tag, t->tag_count)];
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
		/* An empty piece would make a packet begin at its end. */
		if (p->length)
			n++;
	}
	return left ? -EINVAL : 0;
}

/* Take host and slot from the ticket, where only the NIC can write them. */
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

static_assert(HAMLYN_TRB_FAST << 1 == HAMLYN_PACKET_FAST &&
	      HAMLYN_TRB_NO_NOTIFY << 1 == HAMLYN_PACKET_NO_NOTIFY &&
	      HAMLYN_TRB_QUIET << 1 == HAMLYN_PACKET_QUIET &&
	      HAMLYN_TRB_TICKET << 1 == HAMLYN_PACKET_TICKET &&
	      (HAMLYN_TRB_FLAGS << 1 | HAMLYN_PACKET_SINGLE) ==
	      HAMLYN_PACKET_FLAGS,
	      "a packet has its request's flags");

/*
 * Header of the first packet. Returned as a value that sets every field: a struct
 * filled in by the callee would first be zeroed by kernels built to initialize
 * stack variables.
 */
static __always_inline struct hamlyn_packet
header_of(const struct hml_nic *nic, const struct hamlyn_trb *trb,
	  u64 ticket_key)
{
	return (struct hamlyn_packet) {
		.version = HAMLYN_PACKET_VERSION,
		.flags = trb->flags << 1 |
			 (trb->length <= nic->packet_size ?
			  HAMLYN_PACKET_SINGLE : 0),
		.meta_length = trb->meta_length,
		.length = trb->length,
		.host = trb->host,
		.source = nic->host,
		.slot = trb->slot,
		.meta_index = trb->meta_index,
		.key = trb->key,
		.offset = trb->offset,
		.word = trb->word,
		.delta = trb->delta,
		.reserved = 0,
		.ticket_key = ticket_key,
	};
}

static void discard_down(struct hml_nic *nic, const struct hamlyn_packet *h,
			 struct hml_sender *sender)
{
	sender->stats->rejects[HAMLYN_REJECT_DOWN]++;
	hml_port_trace_down(nic, h, sender);
}

void hml_tx_local(struct hml_nic *from, struct hml_nic *to, const struct hamlyn_packet *h,
		  const struct hml_payload *payload, struct hml_sender *sender)
{
	/* Also if it is @from: it may have gone down since, if the packet was kept back. */
	if (hml_link_up(to))
		hml_rx(to, h, payload, sender);
	else
		discard_down(from, h, sender);
}

static __always_inline void count_sent(struct hml_stats *stats, u32 length, bool last)
{
	stats->packets++;
	stats->bytes += length;
	if (last)
		stats->messages++;
}

/*
 * A NIC that is down discards packets without telling the sender (H 2.8). So does one that
 * is gone: then @path is HML_PATH_NONE. A packet that was not taken was not sent, and is
 * not counted. By values: see hml_packet_copy().
 */
static noinline bool xmit_in_doubt(struct hml_nic *nic, hml_path_t path,
				   struct hamlyn_packet h,
				   struct hml_payload payload,
				   struct hml_terminus *t, bool last)
{
	if (path == HML_PATH_NONE || !hml_link_up(nic)) {
		discard_down(nic, &h, &t->sender);
	} else if (!hml_port_xmit(nic, path, &h, &payload, &t->sender)) {
		WRITE_ONCE(t->stalled, true);
		return false;
	}
	count_sent(t->sender.stats, h.length, last);
	return true;
}

/* Return: false if the fabric does not take the packet now; @last of its message. */
static bool xmit(struct hml_nic *nic, hml_path_t path,
		 const struct hamlyn_packet *h,
		 const struct hml_payload *payload, struct hml_terminus *t,
		 bool last)
{
	if (likely(hml_port_direct(nic, path))) {
		count_sent(t->sender.stats, h->length, last);
		hml_port_carry(nic, path, h, payload, &t->sender);
		return true;
	}
	return xmit_in_doubt(nic, path, hml_packet_copy(h),
			     hml_payload_copy(payload), t, last) ||
	       !HML_PORT_STALLS;
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
	m->payload.piece = trb->fragments ? m->pieces : NULL;
	m->payload.skip = 0;
	if (trb->fragments)
		err = take_fragments(t, trb, tail, tail_size);
	else if (trb->length > tail_size)
		err = -EINVAL;
	if (err)
		return err;
	if (hml_port_route(nic, trb->host) == HML_PATH_NONE)
		return -EHOSTUNREACH;
	m->header = header_of(nic, trb, ticket_key);
	t->sender.guessed = false;
	t->sender.unreadable = false;
	m->left = trb->length;
	m->counter = trb->delta;
	WRITE_ONCE(t->busy, true);
	return 0;
}

static __always_inline bool send_flat_to(struct hml_nic *nic,
					 hml_path_t path,
					 struct hml_terminus *t,
					 const struct hamlyn_trb *trb,
					 u64 ticket_key, const void *meta,
					 const void *data)
{
	const struct hml_payload payload = {
		.meta = meta, .flat = data, .piece = NULL, .skip = 0,
	};
	const struct hamlyn_packet header = header_of(nic, trb, ticket_key);

	t->sender.guessed = false;
	return xmit(nic, path, &header, &payload, t, true);
}

int hml_tx_flat(struct hml_nic *nic, struct hml_terminus *t,
		struct hamlyn_trb *trb, const void *meta, const void *data)
{
	u64 ticket_key;
	hml_path_t path;
	int err = check_trb(nic, trb);

	if (likely(!err))
		err = take_ticket(t, trb, &ticket_key);
	if (unlikely(err))
		return err;
	path = hml_port_route(nic, trb->host);
	if (unlikely(path == HML_PATH_NONE))
		return -EHOSTUNREACH;
	if (unlikely(!send_flat_to(nic, path, t, trb, ticket_key, meta, data)))
		return HML_TX_NOT_NOW;
	return 0;
}

/* Advance the message to the packet after the one just sent. */
static void advance(struct hml_message *m, u32 sent)
{
	struct hml_payload *p = &m->payload;

	/* The offset must not wrap to the bottom of the area: keep it outside. */
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
	bool last = m->left <= nic->packet_size;
	u32 n = last ? m->left : nic->packet_size;

	m->header.delta = last ? m->counter : 1;
	m->header.length = n;
	/* The host existed when the message began, but may be gone by now. */
	if (unlikely(!xmit(nic, hml_port_route(nic, m->header.host), &m->header,
			   &m->payload, t, last)))
		return;
	m->left -= n;
	/* Nobody is told of a message of which a part is missing: do not send the rest. */
	if (last || (HML_PORT_UNREADABLE && unlikely(t->sender.unreadable))) {
		WRITE_ONCE(t->busy, false);
		return;
	}
	m->counter--;
	advance(m, n);
}

static const struct hamlyn_trb *wq_entry(const struct hml_terminus *t, u32 head)
{
	return (const void *)(t->entries +
			      ((u64)(head & t->mask) << t->entry_shift));
}

/*
 * Has the entry at position @head been posted? Its own cache line says so; no other
 * line has to move. Whatever the application writes there, an entry is taken once
 * and checked.
 */
static bool posted(const struct hamlyn_trb *trb, u32 head)
{
	/* B1: the sequence before the entry that it posts */
	return smp_load_acquire(&trb->sequence) == head + 1;
}

bool hml_tx_posted(const struct hml_terminus *t, u32 head)
{
	return posted(wq_entry(t, head), head);
}

bool hml_tx_pending(const struct hml_terminus *t)
{
	return READ_ONCE(t->busy) || hml_tx_posted(t, READ_ONCE(t->head));
}

/* Readers look at statuses only after there has been a failure; from then on all are set. */
static noinline void set_status(struct hml_terminus *t, int err)
{
	s32 *status = (s32 *)(t->status + 1) + (t->head & t->mask);

	/* Nearly always 0 replaces 0: do not take the cache line from its reader. */
	if (*status != err)
		smp_store_release(status, err);	/* B6: after the reads of its buffers */
	if (err) {
		t->sender.stats->failed++;
		WRITE_ONCE(t->status->failed,
			   hml_failed_next(t->status->failed));
	}
}

static void finish(struct hml_terminus *t, int err)
{
	if (unlikely(err) || unlikely(t->status->failed))
		set_status(t, err);
	WRITE_ONCE(t->head, t->head + 1);
}

/*
 * The sender reads that cache line, so write it rarely: once for all short messages of
 * a run, as nobody waits for their buffers, and at once for each long one. But publish at
 * least every half queue; otherwise a sender whose messages have all completed would still
 * see a full queue.
 */
static void tell_completed(struct hml_terminus *t)
{
	/* B6: all reads of the message before it counts as completed */
	smp_store_release(&t->status->completed, t->head);
}

/* An entry that was not taken now is not taken at all: as if nobody had looked. */
static __always_inline void conclude(struct hml_terminus *t, int err)
{
	if (likely(err != HML_TX_NOT_NOW))
		finish(t, err);
}

void hml_tx_abort(struct hml_terminus *t, int err)
{
	WRITE_ONCE(t->busy, false);
	WRITE_ONCE(t->stalled, false);
	finish(t, err);
	tell_completed(t);
}

/* The one copy of a TRB: each of its words is read once. */
static __always_inline struct hamlyn_trb copy_trb(const struct hamlyn_trb *trb)
{
	return (struct hamlyn_trb) {
		.host = READ_ONCE(trb->host),
		.slot = READ_ONCE(trb->slot),
		.key = READ_ONCE(trb->key),
		.offset = READ_ONCE(trb->offset),
		.length = READ_ONCE(trb->length),
		.delta = READ_ONCE(trb->delta),
		.meta_index = READ_ONCE(trb->meta_index),
		.word = READ_ONCE(trb->word),
		.meta_length = READ_ONCE(trb->meta_length),
		.fragments = READ_ONCE(trb->fragments),
		.flags = READ_ONCE(trb->flags),
		.ticket = READ_ONCE(trb->ticket),
	};
}

/* By value, like hml_packet_copy(). */
static noinline void begin_long(struct hml_nic *nic, struct hml_terminus *t,
				struct hamlyn_trb trb, const void *meta,
				const void *tail, u32 room)
{
	int err = hml_tx_begin(nic, t, &trb, meta, tail, room);

	if (unlikely(err))
		finish(t, err);
}

static void take_any(struct hml_nic *nic, struct hml_terminus *t,
		     const struct hamlyn_trb *entry)
{
	const u8 *tail = (const u8 *)(entry + 1);
	struct hamlyn_trb trb = copy_trb(entry);
	const u8 *meta = NULL;
	u32 room;

	hml_barrier();	/* keep the compiler from reading the entry again */
	if (trb.meta_length) {
		/* Even the smallest entry has room for the metadata. */
		meta = tail;
		tail += HAMLYN_TRB_METADATA_SPACE;
	}
	room = (const u8 *)entry + t->entry_size - tail;
	if (likely(!trb.fragments && trb.length <= room &&
		   trb.length <= nic->packet_size))
		conclude(t, hml_tx_flat(nic, t, &trb, meta, tail));
	else
		begin_long(nic, t, trb, meta, tail, room);
}

/* A TRB's meta_length, fragments and flags in one word, which is 0 in most. */
typedef u64 __attribute__((__may_alias__)) options_t;

static_assert(offsetof(struct hamlyn_trb, meta_length) % sizeof(options_t) == 0 &&
	      offsetof(struct hamlyn_trb, fragments) ==
	      offsetof(struct hamlyn_trb, meta_length) + 2 &&
	      offsetof(struct hamlyn_trb, flags) ==
	      offsetof(struct hamlyn_trb, meta_length) + 4,
	      "the options of a TRB are one word");

/* Does a posted request ask for nothing special? Most do not. */
static __always_inline bool plain_request(const struct hamlyn_trb *trb)
{
	if (READ_ONCE(*(const options_t *)&trb->meta_length))
		return false;
	return !(READ_ONCE(trb->word) | READ_ONCE(trb->delta) |
		 READ_ONCE(trb->ticket));
}

/* It was not sent after all; whoever sends it counts it again. */
static noinline bool unsent(struct hml_stats *stats, u32 length)
{
	stats->packets--;
	stats->bytes -= length;
	stats->messages--;
	return false;
}

/*
 * Words that were seen to be 0 count as 0 from here on, whatever they are now, so
 * the compiler can drop the code that handles them, here and in the receiver. None
 * of the other words has been read yet, and each is read once.
 */
static __always_inline bool send_plain(struct hml_nic *nic,
				       struct hml_terminus *t,
				       const struct hamlyn_trb *entry,
				       u64 length)
{
	const struct hml_single packet = {
		.key = READ_ONCE(entry->key),
		.offset = READ_ONCE(entry->offset),
		.length = length,
		.slot = READ_ONCE(entry->slot),
		.meta_index = READ_ONCE(entry->meta_index),
		.source = nic->host,
	};
	hml_path_t path = hml_port_route(nic, READ_ONCE(entry->host));

	if (unlikely(!hml_port_direct(nic, path) || hml_port_traces_packets()))
		return false;
	count_sent(t->sender.stats, length, true);
	return likely(hml_rx_plain(path, packet, entry + 1, &t->sender)) ||
	       unsent(t->sender.stats, length);
}

/* Return: false, with nothing done, if there is more to it; take_any() then starts over. */
static __always_inline bool take_plain(struct hml_nic *nic,
				       struct hml_terminus *t,
				       const struct hamlyn_trb *entry)
{
	u64 length = READ_ONCE(entry->length);

	if (unlikely(length > t->entry_size - sizeof(*entry) ||
		     length > nic->packet_size))
		return false;
	if (unlikely(!send_plain(nic, t, entry, length)))
		return false;
	finish(t, 0);
	return true;
}

static void take_next(struct hml_nic *nic, struct hml_terminus *t,
		      const struct hamlyn_trb *entry)
{
	/* Fetch the payload of a short message while the rest is checked. */
	hml_prefetch(entry + 1);
	if (!plain_request(entry) || unlikely(!take_plain(nic, t, entry)))
		take_any(nic, t, entry);
}

const struct hamlyn_trb *hml_tx_plain(const struct hml_terminus *t)
{
	const struct hamlyn_trb *entry = wq_entry(t, t->head);

	if (unlikely(t->sender.guard.until || t->busy || t->stalled ||
		     !posted(entry, t->head)))
		return NULL;
	hml_prefetch(entry + 1);
	return plain_request(entry) ? entry : NULL;
}

bool hml_tx_run_plain(struct hml_nic *nic, struct hml_terminus *t,
		      const struct hamlyn_trb *entry)
{
	if (unlikely(!take_plain(nic, t, entry)))
		return false;
	tell_completed(t);
	return true;
}

/* What became of a message that was sent in packets. */
static int outcome(const struct hml_terminus *t)
{
	return HML_PORT_UNREADABLE && unlikely(t->sender.unreadable) ? -EIO : 0;
}

/* Bytes sent since @before, but at least the share of a short packet. */
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
	u32 told = t->head;
	u32 sent;

	if (unlikely(t->stalled))
		WRITE_ONCE(t->stalled, false);
	for (sent = 0; sent < budget && *bytes > 0; sent++) {
		u64 before = t->sender.stats->bytes;

		if (unlikely(t->sender.guard.until) &&
		    hml_guard_paused(nic, &t->sender.guard))
			break;
		if (!t->busy) {
			const struct hamlyn_trb *entry = wq_entry(t, t->head);

			if (!posted(entry, t->head))
				break;
			take_next(nic, t, entry);
		}
		if (t->busy) {
			hml_tx_packet(nic, t);
			if (!t->busy) {
				finish(t, outcome(t));
				tell_completed(t);
			}
		}
		if (unlikely(t->stalled))
			break;
		if (unlikely(t->head - told > t->mask / 2)) {
			tell_completed(t);
			told = t->head;
		}
		*bytes -= cost(nic, t, before);
	}
	if (t->head != told)
		tell_completed(t);
	return sent;
}
