// SPDX-License-Identifier: GPL-2.0-only
/*
 * Properties of the whole core, sender to notification, over random inputs
 * and over threads. $HAMLYN_TEST_SEED chooses the inputs; a failing test
 * is repeated with the seed that the program prints first.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>

#include "unit.h"

/* Packets of tx.c come here first; from here some go on to the real hml_rx(). */
static void fabric(struct hml_nic *nic, const struct hamlyn_packet *h,
		   const struct hml_payload *payload,
		   struct hml_sender *sender);

#undef hml_port_carry
#define hml_port_carry(from, to, h, payload, sender) \
	fabric(to, h, payload, sender)

/* A home that looks up where a byte is has none to find behind the last. */
static bool unit_copy(const struct hml_port *port, hml_mem_t to_mem, u64 to,
		      hml_mem_t from_mem, u64 from, u32 n)
{
	assert_int_not_equal(n, 0);
	return hml_mem_copy(port, to_mem, to, from_mem, from, n);
}

#define hml_mem_copy	unit_copy

#include "tx.c"
#include "rx.c"
#include "notify.c"
#include "guard.c"
#include "link.c"

#define HOST		4
#define KEY		0x5ca1ab1e0ddba11ULL
#define TICKET_KEY	0xfab51cafab51caULL
#define SLOTS		4
#define NQ_ENTRIES	64
#define AREA		(64 * 1024)
#define ENTRIES		16
#define TAGS		8	/* send buffer areas */
#define SOURCE		8192	/* bytes of each */
#define WQ_ENTRIES	8
#define MAX_ENTRY	4096
#define MAX_PACKETS	12000	/* of 4 messages, 3000 bytes, a byte each */

struct captured {
	struct hamlyn_packet h;
	u8 meta[HAMLYN_MAX_METADATA];
	u8 *data;
};

struct world {
	struct hml_nic nic;
	struct hml_link link;
	struct hml_slot *slots;
	struct unit_nq nq;
	u8 *area;			/* all message areas are in it */
	struct hamlyn_metadata *entries;
	struct hml_terminus t;
	struct hml_stats stats;
	struct hml_ticket ticket;	/* for what is being sent */
	struct hamlyn_wq_control wq;
	u8 *wq_entries;
	u8 *source[TAGS];
	struct hml_view tags[TAGS];
	u64 rng;
};

static struct world *w;

static struct captured captured[MAX_PACKETS];
static u32 nr_captured;
static bool capture;

/* What goes straight on, added up as the receiver must add it up. */
static u32 sum_of_deltas;
static u32 nr_passed;

static void fabric(struct hml_nic *nic, const struct hamlyn_packet *h,
		   const struct hml_payload *payload,
		   struct hml_sender *sender)
{
	struct captured *c = &captured[nr_captured];
	const struct hml_piece *piece = payload->piece;
	u64 skip = payload->skip;
	u32 i;

	if (!capture) {
		hml_rx(nic, h, payload, sender);
		sum_of_deltas += h->delta;
		nr_passed++;
		return;
	}
	assert_true(nr_captured < MAX_PACKETS);
	nr_captured++;
	c->h = *h;
	memcpy(c->meta, payload->meta ? payload->meta : c->meta, h->meta_length);
	c->data = unit_zalloc(h->length);
	if (payload->flat) {
		memcpy(c->data, payload->flat, h->length);
		return;
	}
	for (i = 0; i < h->length; i++) {
		while (skip == piece->length) {
			piece++;
			skip = 0;
		}
		c->data[i] = *(u8 *)hml_mem_at(&nic->port, piece->mem,
					       piece->offset + skip++);
	}
}

static void forget_captured(void)
{
	while (nr_captured)
		free(captured[--nr_captured].data);
}

static u32 sleepers_woken;
static sem_t bell;

/* As a home does it: one wake for each arming. */
void hml_port_nq_wake(const struct hml_port *port, struct hml_nq *nq)
{
	(void)port;
	if (hml_atomic_cmpxchg(&nq->armed, 1, 0) != 1)
		return;
	hml_atomic_add_return(&sleepers_woken, 1);
	sem_post(&bell);
}

static u64 nr_rejected;

bool hml_port_knew(const struct hml_nic *nic, const struct hamlyn_packet *h,
		   const struct hml_sender *sender)
{
	(void)nic;
	(void)h;
	(void)sender;
	return false;
}

void hml_port_rejected(struct hml_nic *nic, const struct hml_slot *slot,
		       const struct hamlyn_packet *h, int reason,
		       const struct hml_sender *sender)
{
	(void)nic;
	(void)slot;
	(void)h;
	(void)reason;
	(void)sender;
	nr_rejected++;
}

static u64 below(u64 n)
{
	return unit_below(&w->rng, n);
}

static int setup(void **state)
{
	u32 i;

	w = unit_zalloc(sizeof(*w));
	w->rng = unit_seed();
	w->slots = unit_zalloc(SLOTS * sizeof(*w->slots));
	w->area = unit_alloc(AREA);
	w->entries = unit_alloc(ENTRIES * sizeof(*w->entries));
	unit_nq_init(&w->nq, NQ_ENTRIES, unit_random(&w->rng));
	w->nic.host = HOST;
	w->nic.packet_size = 1024;
	w->nic.port.slots = unit_ref(w->slots);
	w->nic.port.slot_stride = sizeof(*w->slots);
	w->nic.port.max_slots = SLOTS;
	w->nic.link = &w->link;
	w->t.sender.stats = &w->stats;
	w->t.wq = &w->wq;
	w->wq_entries = unit_zalloc(WQ_ENTRIES * MAX_ENTRY);
	w->t.entries = w->wq_entries;
	w->t.status = unit_zalloc(sizeof(*w->t.status) + WQ_ENTRIES * sizeof(s32));
	w->t.mask = WQ_ENTRIES - 1;
	for (i = 0; i < TAGS; i++) {
		w->source[i] = unit_zalloc(SOURCE);
		unit_random_fill(&w->rng, w->source[i], SOURCE);
	}
	w->t.tags = w->tags;
	w->t.tag_count = TAGS;
	w->t.tickets = &w->ticket;
	w->t.ticket_count = 1;
	capture = false;
	sem_init(&bell, 0, 0);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	u32 i;

	(void)state;
	forget_captured();
	sem_destroy(&bell);
	for (i = 0; i < TAGS; i++)
		free(w->source[i]);
	free(w->t.status);
	free(w->wq_entries);
	unit_nq_free(&w->nq);
	free(w->entries);
	free(w->area);
	free(w->slots);
	free(w);
	return 0;
}

/* ---- messages ------------------------------------------------------------ */

/* A group of messages that make one notification; most often of one. */
#define MAX_GROUP	40
#define SMALL_GROUP	4	/* whose messages may be long */

struct plan {
	u32 members;
	u32 slot;
	u32 meta_index;
	bool silent;
	bool quiet;
	bool fast;
	u64 word;
	u8 *model;			/* what the area must look like at the end */
	struct hamlyn_metadata *model_entries;
};

static void random_slot(struct hml_slot *slot)
{
	memset(slot, 0, sizeof(*slot));
	slot->live = 1;
	slot->key = KEY + below(3);
	slot->ticket_key = TICKET_KEY + below(3);
	slot->flags = below(4) ? 0 : HAMLYN_SLOT_TICKET_ONLY;
	slot->data.mem = unit_ref(w->area) + 17;
	slot->data.base = below(AREA / 4);
	slot->data.length = AREA / 2 + below(AREA / 8);
	slot->meta_mem = unit_ref(w->entries);
	slot->meta_base = below(3) * HAMLYN_METADATA_SIZE;
	slot->meta_count = 1 + below(ENTRIES - 4);
	slot->nq = unit_ref(&w->nq.nq);
}

static u64 random_length(u32 packet)
{
	switch (below(6)) {
	case 0:
		return 0;
	case 1:
		return packet - 1;
	case 2:
		return packet;
	case 3:
		return packet + 1;
	case 4:
		return packet * below(5);
	default:
		return below(3000);
	}
}

/* Fragments over random tags, some of them empty, and the bytes they name. */
static u32 random_fragments(struct hamlyn_fragment *f, u64 length, u8 *bytes)
{
	u32 n = 1 + below(HAMLYN_MAX_FRAGMENTS);
	u64 left = length;
	u32 i;

	for (i = 0; i < n; i++) {
		const struct hml_view *view;
		u64 part = i == n - 1 ? left : below(left + 1);

		if (i < n - 1 && !below(4))
			part = 0;
		f[i].tag = below(TAGS);
		f[i].reserved = 0;
		view = &w->t.tags[f[i].tag];
		f[i].offset = below(view->length - part + 1);
		f[i].length = part;
		memcpy(bytes, w->source[f[i].tag] + view->base + f[i].offset, part);
		bytes += part;
		left -= part;
	}
	return n;
}

/* A ticket for just that message: it needs nothing else of the request's. */
static void use_ticket(const struct hml_slot *slot, struct hamlyn_trb *trb)
{
	w->ticket = (struct hml_ticket) {
		.key = slot->ticket_key,
		.base = trb->offset - below(trb->offset + 1),
		.host = HOST,
		.slot = trb->slot,
	};
	w->ticket.length = trb->offset - w->ticket.base + trb->length +
			   below(100);
	trb->flags |= HAMLYN_TRB_TICKET;
	trb->host = unit_random(&w->rng);
	trb->slot = unit_random(&w->rng);
	trb->key = unit_random(&w->rng);
}

/* Bytes of the message area that are each member's own. */
static u64 room_of_each(const struct plan *p)
{
	return w->slots[p->slot].data.length /
	       (p->members > SMALL_GROUP ? MAX_GROUP : SMALL_GROUP);
}

static void send_member(struct plan *p, u32 member, u32 share, u64 length)
{
	struct hml_slot *slot = &w->slots[p->slot];
	struct hamlyn_fragment f[HAMLYN_MAX_FRAGMENTS];
	u64 room = room_of_each(p);
	u8 meta[HAMLYN_MAX_METADATA];
	u8 *bytes = unit_zalloc(length);
	u8 *tail = bytes;
	u64 tail_size = length;
	struct hamlyn_trb trb = {
		.host = HOST,
		.slot = p->slot,
		.key = slot->key,
		.length = length,
		.delta = share,
		.meta_index = p->meta_index,
		.word = p->word,
		.flags = (p->silent ? HAMLYN_TRB_NO_NOTIFY : 0) |
			 (p->quiet ? HAMLYN_TRB_QUIET : 0) |
			 (p->fast ? HAMLYN_TRB_FAST : 0),
	};

	/* Members do not overlap, so that their order does not matter. */
	trb.offset = member * room + below(room - length + 1);
	if (!p->fast)
		trb.meta_length = below(2) * below(HAMLYN_MAX_METADATA + 1);
	unit_random_fill(&w->rng, meta, sizeof(meta));
	if (below(3)) {
		trb.fragments = random_fragments(f, length, bytes);
		tail = (u8 *)f;
		tail_size = trb.fragments * sizeof(*f);
	} else {
		unit_random_fill(&w->rng, bytes, length);
	}
	memcpy(p->model + 17 + slot->data.base + trb.offset, bytes, length);
	if (slot->flags || !below(4))
		use_ticket(slot, &trb);
	assert_int_equal(hml_tx_begin(&w->nic, &w->t, &trb, meta, tail,
				      tail_size), 0);
	while (w->t.busy)
		hml_tx_packet(&w->nic, &w->t);
	free(bytes);
}

static void shuffle_captured(void)
{
	u32 i;

	for (i = nr_captured; i > 1; i--) {
		u32 k = below(i);
		struct captured c = captured[i - 1];

		captured[i - 1] = captured[k];
		captured[k] = c;
	}
}

/* Would a correct NIC tell the receiver before the last packet? */
static bool told_early(void)
{
	u32 sum = 0;
	u32 i;

	for (i = 0; i + 1 < nr_captured; i++) {
		sum += captured[i].h.delta;
		if (!sum)
			return true;
	}
	return false;
}

static void take_notification(const struct plan *p, u32 position)
{
	const struct hml_slot *slot = &w->slots[p->slot];
	struct hamlyn_nq_entry *e = &w->nq.entries[position & (NQ_ENTRIES - 1)];
	const struct hamlyn_packet *last = &captured[nr_captured - 1].h;

	assert_true(hml_nq_ready(&w->nic, &w->nq.nq, position));
	assert_int_equal(e->slot, p->slot);
	assert_int_equal(e->index, p->meta_index);
	assert_int_equal(e->source, last->source);
	assert_int_equal(e->length, last->length);
	if (p->fast) {
		assert_int_equal(e->data, p->word);
		assert_int_equal(e->flags, HAMLYN_NQE_FAST | HAMLYN_NQE_SINGLE);
	} else {
		assert_int_equal(e->data, slot->meta_base + p->meta_index *
				 HAMLYN_METADATA_SIZE);
		assert_int_equal(e->flags, last->flags & HAMLYN_PACKET_SINGLE ?
				 HAMLYN_NQE_SINGLE : 0);
	}
	w->nq.control->consumer = position + 1;
}

static void deliver(struct plan *p, struct captured *c)
{
	struct hml_piece pieces[2];
	struct hml_payload payload = {
		.meta = c->h.meta_length ? c->meta : NULL,
		.flat = c->data,
	};
	u32 split = below(c->h.length + 1);

	if (below(2)) {
		payload.flat = NULL;
		payload.piece = pieces;
		payload.skip = below(100);
		pieces[0].mem = unit_ref(c->data);
		pieces[0].offset = -payload.skip;
		pieces[0].length = split + payload.skip;
		pieces[1].mem = unit_ref(c->data) + split;
		pieces[1].offset = 0;
		pieces[1].length = ~0ULL;
		if (!split) {
			payload.piece++;
			payload.skip = 0;
		}
	}
	hml_rx(&w->nic, &c->h, &payload, &w->t.sender);
	if (c->h.meta_length) {
		struct hamlyn_metadata *m = &p->model_entries[p->meta_index];

		memcpy(m->user, c->meta, c->h.meta_length);
		m->meta_length = c->h.meta_length;
	}
}

/*
 * All begins with 2^32, which is 0. Whoever has a share may hand on part of it
 * to another sender (H 2.5). Nobody is left with 0: that is what an ordinary
 * message has.
 */
static void delegate(u32 *shares, u32 members)
{
	u32 n;

	shares[0] = 0;
	for (n = 1; n < members; n++) {
		u32 from = below(n);
		u32 part;

		/* A few packets' worth, or any part. */
		do {
			part = 1 + (below(3) ? below(0xffffffffU) : below(6));
		} while (part == shares[from]);
		shares[n] = part;
		shares[from] -= part;
	}
}

/* The messages of one plan, from terminus to notification. */
static void run_plan(struct plan *p)
{
	struct hml_slot *slot = &w->slots[p->slot];
	struct hamlyn_metadata *entries;
	u32 start = w->nq.nq.cursor;
	u32 shares[MAX_GROUP];
	u32 i;

	delegate(shares, p->members);
	capture = true;
	for (i = 0; i < p->members; i++) {
		u64 most = p->members > SMALL_GROUP ? 250 : 6000;
		u32 k = nr_captured;
		u64 length;

		/* Each sender cuts its messages as its own NIC does. */
		if (p->members > SMALL_GROUP)
			w->nic.packet_size = 1 + below(300);
		length = random_length(w->nic.packet_size);
		if (p->fast)
			length = below(w->nic.packet_size + 1);
		send_member(p, i, shares[i], length < most ? length : most);
		for (; k < nr_captured; k++)
			captured[k].h.source = 1000 + i;
	}
	capture = false;
	do {
		shuffle_captured();
	} while (p->members > 1 && told_early());

	entries = unit_alloc(ENTRIES * sizeof(*entries));
	memcpy(entries, w->entries, ENTRIES * sizeof(*entries));
	p->model_entries = (void *)((u8 *)entries + slot->meta_base);
	w->nq.nq.armed = 1;
	for (i = 0; i < nr_captured; i++) {
		assert_int_equal(w->nq.nq.cursor, start);
		assert_int_equal(w->nq.nq.armed, 1);
		deliver(p, &captured[i]);
	}
	assert_int_equal(w->nq.nq.cursor, p->silent ? start : start + 1);
	assert_int_equal(w->nq.nq.armed, p->silent || p->quiet);
	if (!p->silent)
		take_notification(p, start);
	assert_memory_equal(w->area, p->model, AREA);
	assert_memory_equal(w->entries, entries, ENTRIES * sizeof(*entries));
	free(entries);
	forget_captured();
}

static void clear_accumulators(void)
{
	u32 i;

	for (i = 0; i < ENTRIES; i++)
		w->entries[i].accumulator = 0;
}

static void random_world(void)
{
	u32 i;

	w->nic.packet_size = below(3) ? 1 + below(1500) : 16U << below(6);
	for (i = 0; i < SLOTS; i++)
		random_slot(&w->slots[i]);
	for (i = 0; i < TAGS; i++) {
		w->t.tags[i].base = below(100);
		w->t.tags[i].mem = unit_ref(w->source[i]);
		w->t.tags[i].length = 6000 + below(SOURCE - 6100 + 1);
	}
	unit_random_fill(&w->rng, w->entries, ENTRIES * sizeof(*w->entries));
	clear_accumulators();
	memset(w->area, UNIT_GUARD, AREA);
}

static void run_random_plans(u32 n, u32 fewest, u32 most)
{
	u32 i;

	for (i = 0; i < n; i++) {
		struct plan p = { .members = fewest + below(most - fewest + 1) };

		if (!(i % 8))
			random_world();
		p.slot = below(SLOTS);
		p.meta_index = below(w->slots[p.slot].meta_count);
		p.silent = !below(6);
		p.quiet = !below(4);
		if (p.members == 1 && !below(5)) {
			p.fast = true;
			p.word = unit_random(&w->rng);
			p.meta_index = HAMLYN_META_FAST;
		}
		p.model = unit_alloc(AREA);
		memcpy(p.model, w->area, AREA);
		run_plan(&p);
		free(p.model);
	}
	for (i = 0; i < HAMLYN_REJECT_REASONS; i++)
		assert_int_equal(w->stats.rejects[i], 0);
	assert_int_equal(w->stats.overruns, 0);
}

static void any_message_lands_whole_and_is_told_once_at_the_end(void **state)
{
	(void)state;
	run_random_plans(6000, 1, 1);
}

static void any_group_is_told_once_when_its_last_packet_is_there(void **state)
{
	(void)state;
	run_random_plans(3000, 2, SMALL_GROUP);
}

static void shares_handed_on_among_many_senders_are_told_of_once(void **state)
{
	(void)state;
	run_random_plans(800, SMALL_GROUP + 1, MAX_GROUP);
}

/* ---- several termini at a time ------------------------------------------- */

#define TERMINI	8

/* One member each, of fragments, all of them under way at the same time. */
static void begin_all(struct hml_terminus *t, struct hml_stats *stats,
		      struct plan *p, u32 *shares)
{
	const struct hml_slot *slot = &w->slots[p->slot];
	u64 room = slot->data.length / TERMINI;
	u32 i;

	for (i = 0; i < p->members; i++) {
		struct hamlyn_fragment f[HAMLYN_MAX_FRAGMENTS];
		u64 length = below(room < 3000 ? room : 3000);
		struct hamlyn_trb trb = {
			.host = HOST,
			.slot = p->slot,
			.key = slot->key,
			.offset = i * room + below(room - length + 1),
			.length = length,
			.delta = shares[i],
			.meta_index = p->meta_index,
		};

		memset(&t[i], 0, sizeof(t[i]));
		t[i].tags = w->tags;
		t[i].tag_count = TAGS;
		t[i].sender.stats = &stats[i];
		trb.fragments = random_fragments(f, length, p->model + 17 +
						 slot->data.base + trb.offset);
		assert_int_equal(hml_tx_begin(&w->nic, &t[i], &trb, NULL, f,
					      trb.fragments * sizeof(*f)), 0);
	}
}

static void interleave(struct hml_terminus *t, const struct plan *p)
{
	u32 told = 0, busy = p->members;
	u32 start = w->nq.nq.cursor;

	sum_of_deltas = 0;
	while (busy) {
		u32 i = below(p->members);

		if (!t[i].busy)
			continue;
		nr_passed = 0;
		hml_tx_packet(&w->nic, &t[i]);
		assert_int_equal(nr_passed, 1);
		busy -= !t[i].busy;
		/* With shares like these it may be 0 in between as well. */
		told += !sum_of_deltas;
		assert_int_equal(w->nq.nq.cursor - start, told);
	}
	assert_int_equal(sum_of_deltas, 0);
	w->nq.control->consumer = w->nq.nq.cursor;
}

static void termini_that_gather_at_the_same_time_do_not_mix(void **state)
{
	static struct hml_terminus t[TERMINI];
	struct hml_stats stats[TERMINI] = { 0 };
	u32 shares[TERMINI];
	u32 i;

	(void)state;
	for (i = 0; i < 1500; i++) {
		struct plan p = { .members = 2 + below(TERMINI - 1) };

		if (!(i % 8))
			random_world();
		p.slot = below(SLOTS);
		p.meta_index = below(w->slots[p.slot].meta_count);
		w->slots[p.slot].flags = 0;
		p.model = unit_alloc(AREA);
		memcpy(p.model, w->area, AREA);
		delegate(shares, p.members);
		begin_all(t, stats, &p, shares);
		interleave(t, &p);
		assert_memory_equal(w->area, p.model, AREA);
		free(p.model);
	}
	assert_int_equal(w->stats.overruns, 0);
}

static void accumulator_is_a_sum_modulo_2_to_the_32(void **state)
{
	struct hamlyn_packet h = {
		.version = HAMLYN_PACKET_VERSION,
		.meta_index = 3,
	};
	struct hml_payload nothing = { 0 };
	u32 sum, told = 0, expected = 0;
	u32 i;

	(void)state;
	random_world();
	w->slots[0].meta_count = 4;
	w->slots[0].flags = 0;
	h.key = w->slots[0].key;
	sum = unit_random(&w->rng);
	((struct hamlyn_metadata *)((u8 *)w->entries +
				    w->slots[0].meta_base))[3].accumulator = sum;
	for (i = 0; i < 20000; i++) {
		u32 start = w->nq.nq.cursor;

		h.delta = below(4) ? unit_random(&w->rng) : -sum;
		sum += h.delta;
		hml_rx(&w->nic, &h, &nothing, &w->t.sender);
		expected += !sum;
		told += w->nq.nq.cursor - start;
		w->nq.control->consumer = w->nq.nq.cursor;
		assert_int_equal(told, expected);
	}
	assert_true(told > 1000);
}

/* ---- admission ----------------------------------------------------------- */

static u64 edge(u64 value)
{
	switch (below(8)) {
	case 0:
		return value;
	case 1:
		return value + 1;
	case 2:
		return value - 1;
	case 3:
		return 0;
	case 4:
		return ~0ULL - below(3);
	case 5:
		return 1ULL << below(64);
	case 6:
		return -(u64)below(5000);
	default:
		return unit_random(&w->rng) % (value | 1);
	}
}

/* The rules of the format once more, in other words and wider numbers. */
static int verdict(const struct hml_slot *slot, const struct hamlyn_packet *h)
{
	bool single = h->flags & HAMLYN_PACKET_SINGLE;
	bool fast = h->flags & HAMLYN_PACKET_FAST;
	bool silent = h->flags & HAMLYN_PACKET_NO_NOTIFY;
	bool counted = !silent && !(single && !h->delta);

	if (!slot->live)
		return HAMLYN_REJECT_SLOT;
	if (h->flags & HAMLYN_PACKET_TICKET) {
		if (slot->ticket_key != h->ticket_key)
			return HAMLYN_REJECT_KEY;
	} else if (slot->flags == HAMLYN_SLOT_TICKET_ONLY) {
		return HAMLYN_REJECT_TICKET;
	} else if (slot->key != h->key) {
		return HAMLYN_REJECT_KEY;
	}
	if (h->version != 1 || h->reserved || h->flags > HAMLYN_PACKET_FLAGS ||
	    h->meta_length > 60)
		return HAMLYN_REJECT_FORMAT;
	if ((unsigned __int128)h->offset + h->length > slot->data.length)
		return HAMLYN_REJECT_BOUNDS;
	if (fast)
		return single && !h->meta_length && !h->delta &&
		       h->meta_index == 0xffffffffU ? -1 : HAMLYN_REJECT_FORMAT;
	if (!slot->meta_count && !h->meta_index && !h->meta_length && !counted)
		return -1;
	return h->meta_index < slot->meta_count ? -1 : HAMLYN_REJECT_METADATA;
}

static struct hamlyn_packet random_packet(u32 number)
{
	const struct hml_slot *slot = &w->slots[number];
	struct hamlyn_packet h = {
		.version = below(40) ? 1 : below(256),
		.flags = below(8) ? below(8) : below(256),
		.reserved = below(40) ? 0 : 1U << below(32),
		.ticket_key = below(16) ? slot->ticket_key :
					  slot->ticket_key ^ 1ULL << below(64),
		.meta_length = below(8) ? below(61) : edge(60),
		.slot = number,
		.key = below(16) ? slot->key : slot->key ^ 1ULL << below(64),
		.meta_index = below(4) ? edge(slot->meta_count) : 0xffffffffU,
		.offset = edge(slot->data.length),
		.word = unit_random(&w->rng),
		.delta = below(2) * below(3),
	};

	if (slot->flags && below(4))
		h.flags |= HAMLYN_PACKET_TICKET;
	h.length = below(2) ? edge(slot->data.length - h.offset) : below(200);
	if (!below(2))
		h.meta_length = 0;
	return h;
}

static void packet_lands_if_and_only_if_the_rules_say_so(void **state)
{
	u64 verdicts[HAMLYN_REJECT_REASONS + 1] = { 0 };
	u64 rejected_here = 0;
	static u8 data[AREA];
	struct hamlyn_packet h;
	u8 meta[HAMLYN_MAX_METADATA] = { 0 };
	struct hml_payload payload = { .flat = data, .meta = meta };
	u32 i;

	(void)state;
	memset(data, 0x11, AREA);
	for (i = 0; i < 30000; i++) {
		struct hml_slot *slot;
		u32 number = below(SLOTS);
		int expected;

		if (!(i % 64)) {
			random_world();
			w->slots[1].live = 0;
			w->slots[2].meta_count = 0;
			nr_rejected = 0;
			rejected_here = 0;
		}
		slot = &w->slots[number];
		slot->data.length = below(4) ? AREA / 2 : below(3);
		h = random_packet(number);
		expected = verdict(slot, &h);
		verdicts[expected + 1]++;
		assert_int_equal(admit_packet(slot, &h, plain(slot, &h)), expected);
		hml_rx(&w->nic, &h, &payload, &w->t.sender);
		rejected_here += expected >= 0;
		assert_int_equal(nr_rejected, rejected_here);
		if (expected < 0 && h.length) {
			u8 *at = w->area + 17 + slot->data.base + h.offset;

			assert_true(unit_all(at, 0x11, h.length));
			memset(at, UNIT_GUARD, h.length);
		}
		w->nq.control->consumer = w->nq.nq.cursor;
		if (!(i % 16))
			assert_true(unit_all(w->area, UNIT_GUARD, AREA));
	}
	assert_true(unit_all(w->area, UNIT_GUARD, AREA));
	for (i = 0; i <= HAMLYN_REJECT_REASONS; i++)
		/* The slots here are of normal mode, and the NIC is up. */
		if (i != HAMLYN_REJECT_ONE_SHOT + 1 &&
		    i != HAMLYN_REJECT_DOWN + 1)
			assert_true(verdicts[i] > 100);
}

/* ---- hostile work queue -------------------------------------------------- */

/*
 * Around each send buffer area lie secret bytes, which nothing hostile that
 * is written contains: one in a message area has been read where it must not.
 */
#define VIEW_BASE	512
#define VIEW_LENGTH	1000

static u64 not_secret(u64 v)
{
	u8 b[8];
	u32 i;

	memcpy(b, &v, 8);
	for (i = 0; i < 8; i++)
		b[i] = b[i] == UNIT_SECRET ? UNIT_SECRET + 1 : b[i];
	memcpy(&v, b, 8);
	return v;
}

static void hostile_world(u32 entry_size)
{
	u32 i;

	memset(w->area, UNIT_GUARD, AREA);
	for (i = 0; i < SLOTS; i++) {
		struct hml_slot *slot = &w->slots[i];

		memset(slot, 0, sizeof(*slot));
		slot->live = i != 3;
		slot->key = 0;		/* easily guessed */
		slot->ticket_key = TICKET_KEY;
		slot->flags = i == 2 ? HAMLYN_SLOT_TICKET_ONLY : 0;
		slot->data.mem = unit_ref(w->area);
		slot->data.base = i * AREA / SLOTS + 4096;
		slot->data.length = 3000;
		slot->meta_count = i ? 2 : 0;
		slot->meta_mem = unit_ref(w->entries);
		slot->meta_base = i * 2 * HAMLYN_METADATA_SIZE;
		slot->nq = i == 1 ? HML_NQ_NONE : unit_ref(&w->nq.nq);
	}
	memset(w->entries, 0, ENTRIES * sizeof(*w->entries));
	memset(w->entries, UNIT_GUARD, 2 * sizeof(*w->entries));
	memset(w->entries + 6, UNIT_GUARD, (ENTRIES - 6) * sizeof(*w->entries));
	for (i = 0; i < TAGS; i++) {
		memset(w->source[i], UNIT_SECRET, SOURCE);
		memset(w->source[i] + VIEW_BASE, 'v', VIEW_LENGTH);
		w->t.tags[i].mem = unit_ref(w->source[i]);
		w->t.tags[i].base = VIEW_BASE;
		w->t.tags[i].length = i == 6 ? 0 : VIEW_LENGTH;
	}
	/* A ticket for a part of that one, and of that one only. */
	w->ticket = (struct hml_ticket) { TICKET_KEY, 100, 2000, HOST, 2 };
	/* This one ends where its allocation ends. */
	w->t.tags[7].base = SOURCE - VIEW_LENGTH;
	memset(w->source[7] + SOURCE - VIEW_LENGTH, 'v', VIEW_LENGTH);
	w->t.entry_size = entry_size;
	w->t.entry_shift = __builtin_ctz(entry_size);
	w->t.entries = w->wq_entries + WQ_ENTRIES * (MAX_ENTRY - entry_size);
}

static void assert_hostile_world_intact(void)
{
	u8 *at = w->area;
	u32 i;

	assert_true(unit_all(w->entries, UNIT_GUARD, 2 * sizeof(*w->entries)));
	assert_true(unit_all(w->entries + 6, UNIT_GUARD,
			     (ENTRIES - 6) * sizeof(*w->entries)));
	for (i = 0; i < 3; i++) {
		u8 *begin = w->area + w->slots[i].data.base;
		u64 length = 3000;

		if (i == 2) {
			begin += w->ticket.base;
			length = w->ticket.length;
		}
		assert_true(unit_all(at, UNIT_GUARD, begin - at));
		assert_null(memchr(begin, UNIT_SECRET, length));
		at = begin + length;
	}
	assert_true(unit_all(at, UNIT_GUARD, w->area + AREA - at));
	/* Not in all of an entry: an accumulator may have any value. */
	for (i = 0; i < ENTRIES; i++)
		assert_null(memchr(w->entries[i].user, UNIT_SECRET,
				   HAMLYN_MAX_METADATA));
}

static struct hamlyn_trb hostile_request(u64 *rng)
{
	struct hamlyn_trb trb = {
		.host = unit_below(rng, 20) ? HOST : HOST + 1,
		.slot = unit_below(rng, SLOTS + 1),
		.key = !unit_below(rng, 20),
		.offset = unit_below(rng, 3) ? unit_below(rng, 3000) :
					       not_secret(unit_random(rng)),
		.length = unit_below(rng, 2) ? unit_below(rng, 4000) :
					       unit_below(rng, 300),
		.delta = unit_below(rng, 3),
		.meta_index = unit_below(rng, 3),
		.meta_length = unit_below(rng, 2) * unit_below(rng, 64),
		.fragments = unit_below(rng, 2) * unit_below(rng, 18),
		.flags = unit_below(rng, 20) ?
			 unit_below(rng, 2) * HAMLYN_TRB_NO_NOTIFY :
			 unit_random(rng),
	};

	if (!unit_below(rng, 4)) {
		trb.flags |= HAMLYN_TRB_TICKET;
		trb.ticket = !unit_below(rng, 6);
	}
	if (!unit_below(rng, 5)) {
		trb.flags |= HAMLYN_TRB_FAST;
		trb.meta_index = HAMLYN_META_FAST;
		trb.meta_length = 0;
		trb.delta = !unit_below(rng, 8);
		trb.word = not_secret(unit_random(rng));
	}
	return trb;
}

/* Most of them add up to @length, so that they get past the check. */
static void hostile_fragments(u64 *rng, struct hamlyn_fragment *f, u32 n,
			      u64 length)
{
	u32 i;

	for (i = 0; i < n; i++) {
		u64 part = length / (n - i);

		length -= part;
		f[i].tag = unit_below(rng, 30) ? unit_below(rng, 8) :
						 unit_random(rng);
		f[i].reserved = !unit_below(rng, 60);
		f[i].length = unit_below(rng, 60) ? part :
						    not_secret(unit_random(rng));
		f[i].offset = VIEW_LENGTH - part;
		switch (unit_below(rng, 40)) {
		case 0:
			f[i].offset++;
			break;
		case 1:
			f[i].offset = not_secret(unit_random(rng));
			break;
		case 2:
			f[i].offset = -unit_below(rng, 600);
			break;
		default:
			if (part <= VIEW_LENGTH)
				f[i].offset = unit_below(rng, VIEW_LENGTH - part + 1);
		}
	}
}

static void hostile_entry(u64 *rng, u8 *entry, u32 size)
{
	struct hamlyn_trb trb = hostile_request(rng);
	u32 behind = sizeof(trb) + (trb.meta_length ? 64 : 0);
	u32 fit = (size - behind) / sizeof(struct hamlyn_fragment);
	struct hamlyn_fragment f[18];
	u32 n = trb.fragments < 18 ? trb.fragments : 18;

	memset(entry, 'e', size);
	memcpy(entry, &trb, sizeof(trb));
	hostile_fragments(rng, f, n, trb.length);
	memcpy(entry + behind, f, (n < fit ? n : fit) * sizeof(*f));
}

static u32 run(u32 budget)
{
	s64 bytes = INT64_MAX;

	return hml_tx_run(&w->nic, &w->t, budget, &bytes);
}

static void hostile_requests_neither_write_nor_read_outside(void **state)
{
	static const s32 allowed[] = {
		0, -EINVAL, -ENXIO, -ERANGE, -EHOSTUNREACH, -ENOKEY,
	};
	u64 seen[ARRAY_SIZE(allowed)] = { 0 };
	u64 *rng = &w->rng;
	u32 round, i;

	(void)state;
	for (round = 0; round < 3000; round++) {
		u32 size = 128U << below(6);
		u32 failed = w->t.status->failed;
		u32 n = 1 + below(WQ_ENTRIES);
		u32 refused = 0;

		if (!(round % 16)) {
			hostile_world(size);
			w->nic.packet_size = 1 + below(700);
		}
		size = w->t.entry_size;
		for (i = 0; i < n; i++) {
			u8 *entry = (u8 *)w->t.entries +
				    size * (w->wq.producer & w->t.mask);

			hostile_entry(rng, entry, size);
			((struct hamlyn_trb *)entry)->sequence =
				++w->wq.producer;
		}
		while (hml_tx_pending(&w->t))
			assert_true(run(1 + below(9)));
		assert_int_equal(w->t.status->completed, w->wq.producer);
		for (i = 1; i <= n; i++) {
			s32 status = ((s32 *)(w->t.status + 1))
				     [(w->wq.producer - i) & w->t.mask];
			u32 k = 0;

			while (k < ARRAY_SIZE(allowed) && allowed[k] != status)
				k++;
			assert_true(k < ARRAY_SIZE(allowed));
			seen[k]++;
			refused += !!status;
		}
		assert_int_equal(w->t.status->failed - failed, refused);
		w->nq.control->consumer = w->nq.nq.cursor;
		assert_hostile_world_intact();
	}
	for (i = 0; i < ARRAY_SIZE(allowed); i++)
		assert_true(seen[i] > 100);
	assert_true(w->stats.bytes > 100000);
}

static void message_that_begins_outside_lands_nowhere(void **state)
{
	static u8 data[6000];
	u64 rejects = 0;
	u32 i;

	(void)state;
	for (i = 0; i < 5000; i++) {
		struct hml_slot *slot = &w->slots[0];
		struct hamlyn_trb trb = { .host = HOST, .delta = below(3) };

		if (!(i % 64))
			random_world();
		slot->flags = 0;
		trb.key = slot->key;
		trb.offset = below(2) ? -1 - below(6000) :
					slot->data.length + 1 + below(6000);
		trb.length = below(sizeof(data) + 1);
		assert_int_equal(hml_tx_begin(&w->nic, &w->t, &trb, NULL, data,
					      sizeof(data)), 0);
		while (w->t.busy)
			hml_tx_packet(&w->nic, &w->t);
		if (!(i % 16))
			assert_true(unit_all(w->area, UNIT_GUARD, AREA));
	}
	assert_true(unit_all(w->area, UNIT_GUARD, AREA));
	for (i = 0; i < HAMLYN_REJECT_REASONS; i++)
		rejects += w->stats.rejects[i];
	assert_int_equal(rejects, w->stats.packets);
	assert_int_equal(w->stats.rejects[HAMLYN_REJECT_BOUNDS], rejects);
}

static u32 stop_rewriting;
static u64 rewriter_seed;

/* Rewrites single words of the work queue, and now and then a whole entry. */
static void *rewrite(void *arg)
{
	u64 rng = rewriter_seed;
	u32 size = w->t.entry_size;
	u8 *entries = (u8 *)w->t.entries;
	u8 fresh[MAX_ENTRY];

	(void)arg;
	while (!READ_ONCE(stop_rewriting)) {
		u8 *entry = entries + size * unit_below(&rng, WQ_ENTRIES);
		struct hamlyn_trb *trb;
		u32 next;
		u64 i;

		hostile_entry(&rng, fresh, size);
		for (i = 0; i < size; i += 8) {
			u64 v;

			memcpy(&v, fresh + i, 8);
			if (!unit_below(&rng, 50))
				v = unit_random(&rng);
			/* What was a fragment may be sent as payload. */
			WRITE_ONCE(*(u64 *)(entry + i), not_secret(v));
		}
		/* Mostly what is next, or there would be no work. */
		next = READ_ONCE(w->t.status->completed);
		trb = (struct hamlyn_trb *)(entries + size * (next & w->t.mask));
		WRITE_ONCE(trb->sequence, unit_below(&rng, 50) ?
			   next + 1 : (u32)unit_random(&rng));
	}
	return NULL;
}

/* What never takes long on a sound core is given up after this time. */
#define PATIENCE_MS	20000

static u64 now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * 1000ULL + ts.tv_nsec / 1000000;
}

/* Enough has been sent and enough refused for the race to have been one. */
static bool race_is_over(u64 messages, u64 failed, u64 start)
{
	u64 ms = now_ms() - start;

	if (ms > PATIENCE_MS / 4)
		return true;
	return ms > 300 && w->stats.messages - messages > 200 &&
	       w->stats.failed - failed > 200;
}

static void requests_rewritten_while_they_are_read_stay_inside(void **state)
{
	static const u32 sizes[] = { 128, 256, 512, 1024 };
	pthread_t thread;
	u32 k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(sizes); k++) {
		u64 messages = w->stats.messages;
		u64 failed = w->stats.failed;
		u64 start = now_ms();
		u32 i;

		hostile_world(sizes[k]);
		w->nic.packet_size = 200;
		stop_rewriting = 0;
		rewriter_seed = unit_random(&w->rng);
		assert_int_equal(pthread_create(&thread, NULL, rewrite, NULL), 0);
		while (!race_is_over(messages, failed, start)) {
			for (i = 0; i < 100; i++)
				if (!run(1 + i % 7))
					sched_yield();
			WRITE_ONCE(w->nq.control->consumer, w->nq.nq.cursor);
		}
		WRITE_ONCE(stop_rewriting, 1);
		pthread_join(thread, NULL);
		assert_hostile_world_intact();
		assert_true(w->stats.messages > messages);
		assert_true(w->stats.failed > failed);
	}
}

/* ---- several threads and one notification queue -------------------------- */

#define APPENDERS	3

struct appender {
	pthread_t thread;
	u32 id;
	u32 total;
	u32 appended;
	u32 lost;
	u32 pace;
};

/* Every member of an entry follows from who appended it, and as which. */
static struct hamlyn_nq_entry stamped(u32 id, u32 i)
{
	u64 rng = ((u64)id << 32) + i;
	struct hamlyn_nq_entry e = { .slot = id, .index = i };

	e.data = unit_random(&rng);
	e.source = unit_random(&rng);
	e.length = unit_random(&rng);
	e.flags = unit_random(&rng) & HAMLYN_NQE_SINGLE;
	return e;
}

static u32 appenders_left;

static void *append_all(void *arg)
{
	struct appender *a = arg;
	u32 i;

	for (i = 0; i < a->total; i++) {
		struct hamlyn_nq_entry e = stamped(a->id, i);

		if (hml_nq_append(&w->nic, &w->nq.nq,
				  hml_nq_expect(&w->nic, &w->nq.nq, 0), &e, true))
			a->appended++;
		else
			a->lost++;
		if (a->pace && i % a->pace == 0)
			sched_yield();
	}
	hml_atomic_add_return(&appenders_left, -1);
	return NULL;
}

static void start_appenders(struct appender *a, u32 total, u32 pace)
{
	u32 i;

	appenders_left = APPENDERS;
	for (i = 0; i < APPENDERS; i++) {
		a[i].id = i;
		a[i].total = total;
		a[i].pace = pace;
		assert_int_equal(pthread_create(&a[i].thread, NULL, append_all,
						&a[i]), 0);
	}
}

/* What a reader found; checked by the main thread afterwards. */
struct reading {
	u32 taken;
	u32 overruns;
	u32 torn;
	u32 disordered;
	u32 unmarked;		/* gaps without an overrun before them */
	u32 next[APPENDERS];
	bool marked[APPENDERS];	/* an overrun since that one's last entry */
};

static void take_entry(struct reading *rd, const struct hamlyn_nq_entry *e)
{
	struct hamlyn_nq_entry expected;
	u32 i;

	if (e->flags & HAMLYN_NQE_OVERRUN) {
		rd->overruns++;
		for (i = 0; i < APPENDERS; i++)
			rd->marked[i] = true;
		if (e->slot != HAMLYN_NONE || e->index != HAMLYN_NONE ||
		    e->data || e->source || e->length)
			rd->torn++;
		return;
	}
	rd->taken++;
	if (e->slot >= APPENDERS) {
		rd->torn++;
		return;
	}
	expected = stamped(e->slot, e->index);
	expected.sequence = e->sequence;
	if (memcmp(&expected, e, sizeof(*e)))
		rd->torn++;
	if (e->index < rd->next[e->slot])
		rd->disordered++;
	else if (e->index > rd->next[e->slot] && !rd->marked[e->slot])
		rd->unmarked++;
	rd->next[e->slot] = e->index + 1;
	rd->marked[e->slot] = false;
}

/* Take what is there, as an application does it. */
static u32 drain(struct reading *rd, u32 position, u32 most)
{
	while (most--) {
		struct hamlyn_nq_entry *e = &w->nq.entries[position & w->nq.nq.mask];

		if (smp_load_acquire(&e->sequence) != position + 1) /* B3 */
			break;
		take_entry(rd, e);
		position++;
		smp_store_release(&w->nq.control->consumer, position); /* B4 */
	}
	return position;
}

/* @laziness: the reader sleeps after so many entries, so that overruns happen. */
static void race_appenders(u32 entries, u32 total, u32 pace, u32 laziness)
{
	struct appender a[APPENDERS] = { 0 };
	u32 start = unit_random(&w->rng);
	struct reading rd = { 0 };
	u32 position = start;
	u32 appended = 0, lost = 0;
	u32 i;

	unit_nq_free(&w->nq);
	unit_nq_init(&w->nq, entries, start);
	start_appenders(a, total, pace);
	while (READ_ONCE(appenders_left)) {
		position = drain(&rd, position, laziness);
		sched_yield();
	}
	for (i = 0; i < APPENDERS; i++) {
		pthread_join(a[i].thread, NULL);
		appended += a[i].appended;
		lost += a[i].lost;
		assert_int_equal(a[i].appended + a[i].lost, total);
	}
	position = drain(&rd, position, entries);
	assert_int_equal(position, w->nq.nq.cursor);
	assert_int_equal(rd.torn, 0);
	assert_int_equal(rd.disordered, 0);
	assert_int_equal(rd.unmarked, 0);
	assert_int_equal(rd.taken, appended);
	assert_int_equal(w->nq.ring->lost, lost);
	assert_int_equal(position - start, appended + rd.overruns);
	assert_true(rd.overruns <= lost);
	assert_true(!lost || rd.overruns);
	/* The end of each one's sequence: all of it, or a mark behind it. */
	for (i = 0; i < APPENDERS; i++)
		assert_true(rd.next[i] == total || rd.marked[i]);
}

static void appenders_that_race_lose_nothing_silently(void **state)
{
	static const u32 sizes[] = { 2, 4, 8, 64, 1024 };
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		race_appenders(sizes[i], 20000, 0, 0xffffffffU);
		race_appenders(sizes[i], 1000, 1, 0xffffffffU);
		race_appenders(sizes[i], 1000, 2, 1);
	}
}

static void queue_that_nobody_reads_keeps_the_first_and_counts_the_rest(void **state)
{
	(void)state;
	race_appenders(64, 5000, 0, 0);
	assert_true(w->nq.ring->lost >= 3 * 5000 - 63);
}

static void queue_with_room_for_all_loses_nothing(void **state)
{
	(void)state;
	race_appenders(65536, 20000, 0, 3);
	assert_int_equal(w->nq.ring->lost, 0);
}

static bool disarm(void)
{
	return hml_atomic_cmpxchg(&w->nq.nq.armed, 1, 0) == 1;
}

#define SLEEPER_ENTRIES	5000

enum sleep_result { WOKEN, NOTHING_CAME, LEFT_ASLEEP };

/* Sleep until woken; not for ever when all have gone without a word. */
static enum sleep_result sleep_armed(u32 position)
{
	u64 end = now_ms() + PATIENCE_MS;
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	for (;;) {
		bool gone = !READ_ONCE(appenders_left);
		bool ready;

		ts.tv_sec += 1;
		if (!sem_timedwait(&bell, &ts))
			return WOKEN;
		ready = hml_nq_ready(&w->nic, &w->nq.nq, position);
		if (gone && !ready && disarm())
			return NOTHING_CAME;
		if ((gone || now_ms() > end) && disarm())
			return LEFT_ASLEEP;
	}
}

/* The sleeper of H 2.6: arm, full barrier, look again, sleep. */
static void sleeper_is_never_left_asleep_and_woken_once_each_time(void **state)
{
	struct appender a[APPENDERS] = { 0 };
	struct reading rd = { 0 };
	u32 position = 7, woken = 0, missed = 0;
	u32 lost = 0;
	u32 i;

	(void)state;
	unit_nq_free(&w->nq);
	unit_nq_init(&w->nq, 16, position);
	sleepers_woken = 0;
	start_appenders(a, SLEEPER_ENTRIES, 3);
	while (READ_ONCE(appenders_left)) {
		position = drain(&rd, position, 0xffffffffU);
		WRITE_ONCE(w->nq.nq.armed, 1);
		smp_mb();					/* B5 */
		/* Whoever takes the flag first: the other one has rung. */
		if ((hml_nq_ready(&w->nic, &w->nq.nq, position) ||
		     !READ_ONCE(appenders_left)) && disarm())
			continue;
		switch (sleep_armed(position)) {
		case WOKEN:
			woken++;
			break;
		case NOTHING_CAME:
			break;
		case LEFT_ASLEEP:
			missed++;
			break;
		}
	}
	for (i = 0; i < APPENDERS; i++) {
		pthread_join(a[i].thread, NULL);
		lost += a[i].lost;
	}
	drain(&rd, position, 0xffffffffU);
	assert_int_equal(missed, 0);
	assert_int_equal(sleepers_woken, woken);
	assert_int_equal(sem_trywait(&bell), -1);
	assert_int_equal(rd.taken + lost, APPENDERS * SLEEPER_ENTRIES);
	assert_int_equal(rd.torn, 0);
	assert_int_equal(rd.unmarked, 0);
}

/* ---- several threads and one metadata entry ------------------------------ */

#define GROUP_ROUNDS	400
#define GROUP_PACKETS	4	/* of each thread and round */

static pthread_barrier_t starting_line;
static u32 group_told[GROUP_ROUNDS];

static void *send_share(void *arg)
{
	u32 id = *(u32 *)arg;
	struct hml_stats stats = { 0 };
	struct hml_sender sender = { .stats = &stats };
	u32 round, i;

	for (round = 0; round < GROUP_ROUNDS; round++) {
		u8 data[8];
		struct hml_payload payload = { .flat = data };
		struct hamlyn_packet h = {
			.version = HAMLYN_PACKET_VERSION,
			.key = KEY,
			.length = sizeof(data),
			.delta = 1,
		};

		memset(data, round, sizeof(data));
		pthread_barrier_wait(&starting_line);
		for (i = 0; i < GROUP_PACKETS; i++) {
			h.offset = (id * GROUP_PACKETS + i) * sizeof(data);
			/* The last one of thread 0 closes the whole group. */
			if (!id && i == GROUP_PACKETS - 1)
				h.delta = 1 - APPENDERS * GROUP_PACKETS;
			hml_rx(&w->nic, &h, &payload, &sender);
		}
		hml_atomic_add_return(&group_told[round], stats.notifications);
		stats.notifications = 0;
		pthread_barrier_wait(&starting_line);
	}
	return NULL;
}

static void group_sent_by_several_threads_is_told_once(void **state)
{
	pthread_t threads[APPENDERS];
	u32 ids[APPENDERS];
	u32 start, round, i;

	(void)state;
	random_world();
	w->slots[0].key = KEY;
	w->slots[0].flags = 0;
	unit_nq_free(&w->nq);
	unit_nq_init(&w->nq, 4096, 0);
	w->slots[0].nq = unit_ref(&w->nq.nq);
	memset(group_told, 0, sizeof(group_told));
	start = w->nq.nq.cursor;
	pthread_barrier_init(&starting_line, NULL, APPENDERS);
	for (i = 0; i < APPENDERS; i++) {
		ids[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, send_share,
						&ids[i]), 0);
	}
	for (i = 0; i < APPENDERS; i++)
		pthread_join(threads[i], NULL);
	pthread_barrier_destroy(&starting_line);
	assert_int_equal(w->nq.nq.cursor - start, GROUP_ROUNDS);
	for (round = 0; round < GROUP_ROUNDS; round++)
		assert_int_equal(group_told[round], 1);
	assert_true(unit_all(w->area + 17 + w->slots[0].data.base,
			     (u8)(GROUP_ROUNDS - 1),
			     APPENDERS * GROUP_PACKETS * 8));
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(any_message_lands_whole_and_is_told_once_at_the_end),
		TEST(any_group_is_told_once_when_its_last_packet_is_there),
		TEST(shares_handed_on_among_many_senders_are_told_of_once),
		TEST(termini_that_gather_at_the_same_time_do_not_mix),
		TEST(accumulator_is_a_sum_modulo_2_to_the_32),
		TEST(packet_lands_if_and_only_if_the_rules_say_so),
		TEST(hostile_requests_neither_write_nor_read_outside),
		TEST(message_that_begins_outside_lands_nowhere),
		TEST(requests_rewritten_while_they_are_read_stay_inside),
		TEST(appenders_that_race_lose_nothing_silently),
		TEST(queue_that_nobody_reads_keeps_the_first_and_counts_the_rest),
		TEST(queue_with_room_for_all_loses_nothing),
		TEST(sleeper_is_never_left_asleep_and_woken_once_each_time),
		TEST(group_sent_by_several_threads_is_told_once),
	};

	print_message("# HAMLYN_TEST_SEED=%llu\n", (unsigned long long)unit_seed());
	return cmocka_run_group_tests_name("property", tests, NULL, NULL);
}
