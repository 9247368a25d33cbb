// SPDX-License-Identifier: MIT
/* The receiving end of a stream: buffers, and what arrives in them. */
#include <stdlib.h>

#include "stream/stream.h"

static struct h_stream_receiver *of(struct h_receiver *r)
{
	return (struct h_stream_receiver *)r;
}

/* ---- generations ---- */

struct h_generation *h__generation_of_two(struct h_stream_receiver *r, uint32_t number)
{
	if (r->gen[1].started && (int32_t)(number - r->gen[1].start) >= 0)
		return &r->gen[1];
	return &r->gen[0];
}

int h__generation_init(struct h_generation *g, struct h_receiver *r, uint32_t entries,
		       uint32_t buffer, enum h_need need)
{
	const struct h_receiver_attr attr = {
		.length = (size_t)entries * buffer,
		.entries = entries,
		.mode = HAMLYN_SLOT_PARANOID_ONE_SHOT,
		.flags = of(r)->slot_flags,
		.arrivals = entries + 1,	/* a watch */
	};
	uint32_t i;
	int err;

	*g = (struct h_generation) {
		.entries = entries,
		.buffer = buffer,
		.mask = entries - 1,
		.half = entries / 2,
		.most = entries - (entries + 3) / 4,
	};
	err = h__key(&g->key);
	if (err)
		return err;
	g->arrivals = calloc(entries, sizeof(*g->arrivals));
	if (!g->arrivals)
		return -ENOMEM;
	err = need == H_NEEDED ? h__place_init(&g->place, r, &attr) :
				 h__place_wish(&g->place, r, &attr, need == H_GROWN);
	if (err) {
		free(g->arrivals);
		return err;
	}
	for (i = 0; i < entries; i++)
		h__entry_grant(h__place_entry(&g->place, i), g->key,
			       (uint64_t)i * buffer, (i + 1ULL) * buffer);
	return 0;
}

int h__generation_exit(struct h_generation *g, struct h_receiver *r)
{
	int err = h__place_exit(&g->place, r);

	if (err)
		return err;
	h__budget_give(r->manager, g->grown);
	free(g->arrivals);
	return 0;
}

/* Its slot stays, and its memory with it, but nothing of it is looked at any more. */
void h__generation_abandon(struct h_generation *g, struct h_receiver *r)
{
	h__place_abandon(&g->place, r);
	free(g->arrivals);
	*g = (struct h_generation) {};
}

void h__generation_seed(const struct h_generation *g, struct h_seed *seed)
{
	struct h_seed_fields f = {
		.kind = H_SEED_STREAM,
		.entries = g->entries,
		.buffer = g->buffer,
	};

	h_slot_ticket(g->place.slot, 0, 0, 0, &f.ticket);
	f.ticket.key = g->key;
	h__seed_put(seed, &f);
}

/* ---- arrivals; the receiver is locked ---- */

/* What the entry's metadata says is copied, and is the other end's word. */
static bool read_note(const struct h_generation *g, uint32_t index,
		      struct h_note *note)
{
	const struct hamlyn_metadata *entry = h__place_entry(&g->place, index);
	unsigned char bytes[H_NOTE_BYTES];
	uint32_t length = h__read_once(&entry->meta_length);

	if (h__likely(length != H_NOTE_BYTES && length != H_LABELLED_NOTE_BYTES))
		return false;
	memcpy(bytes, entry->user, sizeof(bytes));
	note->flags = (uint32_t)h__get(bytes, 4);
	note->credits = (uint32_t)h__get(bytes + 4, 4);
	note->number = (uint32_t)h__get(bytes + 8, 4);
	note->more = h__get(bytes + 16, 8);
	note->labelled = length == H_LABELLED_NOTE_BYTES;
	return true;
}

uint32_t h__stream_label(struct h_stream_receiver *r, uint32_t number)
{
	const struct h_generation *g;
	unsigned char bytes[4];

	h_receiver_lock(&r->r);
	g = h__generation_of(r, number);
	memcpy(bytes, h__place_entry(&g->place, h__generation_index(g, number))->user +
	       H_NOTE_BYTES, sizeof(bytes));
	h_receiver_unlock(&r->r);
	return (uint32_t)h__get(bytes, 4);
}

int h__credit_ticket(const struct h_seed *seed, struct h_ticket *ticket, bool *may_shrink)
{
	struct h_seed_fields f;
	int err;

	err = h__seed_get(seed, H_SEED_CREDIT, &f);
	if (err)
		return err;
	if (f.entries != H_CREDITS || f.buffer != H_CREDIT_BYTES ||
	    f.ticket.length != (H_CREDITS + 1) * H_CREDIT_BYTES)
		return -EINVAL;
	*ticket = f.ticket;
	ticket->length = H_CREDIT_BYTES;
	*may_shrink = f.more & H_SEED_MAY_SHRINK;
	return 0;
}

static int take_hello(struct h_stream_receiver *r, const struct h_generation *g,
		      uint32_t index, uint32_t length)
{
	struct h_seed seed;

	if (r->connected || length != H_SEED_BYTES)
		return -EPROTO;
	memcpy(seed.bytes, h__generation_data(g, index), sizeof(seed));
	if (h__credit_ticket(&seed, &r->credit, &r->may_shrink))
		return -EPROTO;
	r->connected = true;
	r->watch_due = true;
	return 0;
}

/*
 * The receiver does not copy a message in one piece. What is said to come is not
 * believed: memory costs as much to send as the buffers that there are hold, so that nobody
 * has more set aside than a few times what it has sent.
 */
static bool wants_more(const struct h_stream_receiver *r,
		       const struct h_generation *g, uint64_t more)
{
	uint64_t all = (uint64_t)g->buffer * g->entries;

	return more >= (r->messages ? 1 : all / 2) && r->paid >= all &&
	       g->buffer < r->max_buffer && r->gens == 1;
}

/* Of each byte by itself, what is left of it: none borrows from the next one. */
static uint32_t bytes_less(uint32_t from, uint32_t bytes)
{
	const uint32_t tops = 0x80808080;

	return ((from | tops) - (bytes & ~tops)) ^ ((from ^ ~bytes) & tops);
}

/* Of each buffer: all that were sent, or all but the last. */
static int take_credits_seen(struct h_stream_receiver *r, uint32_t counts)
{
	if (bytes_less(r->credit_sent, counts) & ~0x01010101u)
		return -EPROTO;
	r->credit_seen = counts;
	return 0;
}

static int take_note(struct h_stream_receiver *r, struct h_generation *g,
		     uint32_t index, struct h_stream_arrival *a)
{
	struct h_note note;

	/* Most have none. */
	a->control = !a->length;
	if (h__likely(!read_note(g, index, &note)))
		return 0;
	if (take_credits_seen(r, note.credits))
		return -EPROTO;
	if (note.flags & ~H_NOTE_FLAGS)
		return -EPROTO;
	if (note.more & H_MORE_LABELLED)
		return -EPROTO;
	if (note.flags & H_NOTE_EMPTY && (!r->messages || a->length))
		return -EPROTO;
	a->more = note.more;
	a->control = note.flags & H_NOTE_HELLO ||
		     (!a->length && !(note.flags & H_NOTE_EMPTY));
	if (h__unlikely(note.labelled)) {
		if (!r->messages || a->control || note.flags & H_NOTE_FIN)
			return -EPROTO;
		a->more |= H_MORE_LABELLED;
	}
	if (wants_more(r, g, note.more))
		r->grow_due = true;
	if (note.flags & H_NOTE_FIN) {
		r->fin = true;
		h__stream_credit_fin(r);
	}
	return note.flags & H_NOTE_HELLO ?
	       take_hello(r, g, index, a->length) : 0;
}

/* Is the next record the first one of the next generation? */
static bool turn_over(struct h_stream_receiver *r)
{
	struct h_generation *g = &r->gen[1];
	struct h_note note;

	if (r->gens < 2 || r->arriving || !g->arrivals[0].here ||
	    !read_note(g, 0, &note))
		return false;
	if (!(note.flags & H_NOTE_START) || note.number != r->high)
		return false;
	g->start = r->high;
	g->started = true;
	h__stream_pay_anew(r);
	/* All before are nothing to the sender any more. */
	r->credited = r->high;
	r->arriving = 1;
	if (h__stream_shrinks(r)) {
		/* The application may not receive for long. */
		r->old_due = true;
		h_receiver_owes(&r->r, true);
	}
	return true;
}

void h__stream_pass_controls(struct h_stream_receiver *r)
{
	while (r->next != r->high && h__stream_arrival(r, r->next)->control)
		h__write_once(&r->next, r->next + 1);
	while (r->released != r->next && h__stream_arrival(r, r->released)->control)
		h__stream_release_one(r);
}

static void break_off(struct h_stream_receiver *r, const char *why)
{
	/* Each of its records may be such, and each may be looked at again and again. */
	if (r->broken)
		return;
	h__log(H_LOG_WARNING, "the other end of a stream to slot %u breaks the rules: %s",
	       h_slot_number(r->r.slot), why);
	r->broken = true;
}

/* As far as there is no gap. */
static void advance(struct h_stream_receiver *r)
{
	for (;;) {
		struct h_generation *g = &r->gen[r->arriving];
		uint32_t index = h__generation_index(g, r->high);
		struct h_stream_arrival *a = &g->arrivals[index];

		if (a->here != H_ARRIVED || r->fin || r->broken ||
		    (h__unlikely(r->gone) && r->high == r->last)) {
			if (turn_over(r))
				continue;
			break;
		}
		a->here = H_IN_ORDER;
		r->ahead--;
		r->paid += a->length;
		/* Nothing of a record that breaks the rules is handed out. */
		if (take_note(r, g, index, a)) {
			break_off(r, "a record makes no sense");
			break;
		}
		r->controls += a->control;
		h__write_once(&r->high, r->high + 1);
	}
	h__stream_pass_control(r);
}

static void arrived(struct h_stream_receiver *r, struct h_generation *g,
		    uint32_t index, uint32_t length)
{
	struct h_stream_arrival *a;

	if (index >= g->entries)
		return;
	a = &g->arrivals[index];
	if (a->here)
		return;
	if (length > g->buffer) {
		break_off(r, "a record is longer than its buffer");
		return;
	}
	*a = (struct h_stream_arrival) { .length = length, .here = H_ARRIVED };
	r->ahead++;
	advance(r);
}

static struct h_generation *generation_at(struct h_stream_receiver *r,
					  uint32_t slot)
{
	unsigned int i = r->gens;

	while (i--)
		if (r->gen[i].place.number == slot)
			return &r->gen[i];
	return NULL;
}

/*
 * No more than there was room for can be under way from one that is. Others have the key,
 * or it has taken away what its credits go to, and goes on sending: that is the end, too.
 */
static void is_gone(struct h_stream_receiver *r)
{
	unsigned int i;

	if (r->gone)
		return;
	r->last = r->high;
	for (i = 0; i < r->gens; i++)
		r->last += r->gen[i].entries;
	r->gone = true;
}

static __attribute__((noinline)) void
process_any(struct h_stream_receiver *r, const struct hamlyn_nq_entry *e)
{
	struct hamlyn_metadata *entry;
	struct h_generation *g;

	if (e->flags & HAMLYN_NQE_PEER_GONE) {
		is_gone(r);
		return;
	}
	g = generation_at(r, e->slot);
	if (!g || e->index >= g->entries)
		return;
	entry = h__place_entry(&g->place, e->index);
	/* Armed anew: process_overrun() was faster than this notification. */
	if (h__unlikely(h__load_acquire(&entry->state)))
		return;
	/* Not the notification's length: it may be of the record before. */
	arrived(r, g, e->index, h__read_once(&entry->length));
}

/*
 * The next one, with data and without a note, while nothing else is going on: as nearly all.
 * What advance() would find out about it is known. False: nothing was done.
 */
static inline bool process_plain(struct h_stream_receiver *r, const struct hamlyn_nq_entry *e)
{
	const struct h_generation *g = &r->gen[0];
	uint32_t high = r->high, index = h__generation_index(g, high), length;
	const struct hamlyn_metadata *entry = h__place_entry(&g->place, index);
	struct h_stream_arrival *a = &g->arrivals[index];

	/* While the entry is waited for: both are in the sender's cache. */
	__builtin_prefetch(h__generation_data(g, index));
	if (h__unlikely(e->index != index || h__load_acquire(&entry->state)))
		return false;
	length = h__read_once(&entry->length);
	if (h__unlikely(length - 1 >= g->buffer || a->here ||
			h__read_once(&entry->meta_length)))
		return false;
	a->length = length;
	a->here = H_IN_ORDER;
	a->control = 0;
	a->more = 0;
	r->paid += length;
	h__write_once(&r->high, high + 1);
	if (h__unlikely(r->ahead))
		advance(r);
	return true;
}

static void process_arrival(struct h_receiver *receiver,
			    const struct hamlyn_nq_entry *e)
{
	struct h_stream_receiver *r = of(receiver);
	bool plain = r->gens == 1 && r->gen[0].place.number == e->slot &&
		     !(e->flags & HAMLYN_NQE_PEER_GONE) && !(r->over | r->controls);

	if (h__unlikely(!plain || !process_plain(r, e)))
		process_any(r, e);
}

static void process_overrun(struct h_receiver *receiver)
{
	struct h_stream_receiver *r = of(receiver);
	unsigned int i;
	uint32_t j;

	for (i = 0; i < r->gens; i++)
		for (j = 0; j < r->gen[i].entries; j++) {
			struct h_generation *g = &r->gen[i];
			struct hamlyn_metadata *entry =
				h__place_entry(&g->place, j);

			if (!g->arrivals[j].here &&
			    !h__load_acquire(&entry->state))
				arrived(r, g, j, h__read_once(&entry->length));
		}
}

static bool anything(const struct h_stream_receiver *r)
{
	return r->next != r->high || r->left || r->fin || r->gone || r->broken;
}

static bool pending(const struct h_receiver *receiver)
{
	const struct h_stream_receiver *r =
		(const struct h_stream_receiver *)receiver;

	/* What is due is done in the application's calls. */
	return anything(r) ||
	       (r->connected && (r->watch_due || r->unwatched || r->grow_due));
}

const struct h_receiver_class h__stream_class = {
	.name = "stream receiver",
	.process_arrival = process_arrival,
	.process_overrun = process_overrun,
	.pending = pending,
	.settle = h__stream_settle,
};
