// SPDX-License-Identifier: GPL-2.0-only
/*
 * Receiving: who may write where, what lands, what is counted and when the
 * receiver is told. The appending itself is this program's own.
 */
#include "unit.h"

static int counted;
static void (*before_count)(void);

static u32 unit_add_return(u32 *p, u32 v)
{
	if (before_count)
		before_count();
	counted++;
	return *p += v;
}

/* A home that looks up where a byte is has none to find behind the last. */
static void unit_write(const struct hml_port *port, hml_mem_t mem, u64 offset,
		       const void *from, u32 n)
{
	assert_int_not_equal(n, 0);
	hml_mem_write(port, mem, offset, from, n);
}

/* Copies until one does not succeed; 0: all do. */
static u32 unreadable;

static bool unit_copy(const struct hml_port *port, hml_mem_t to_mem, u64 to,
		      hml_mem_t from_mem, u64 from, u32 n)
{
	assert_int_not_equal(n, 0);
	if (unreadable && !--unreadable)
		return false;
	return hml_mem_copy(port, to_mem, to, from_mem, from, n);
}

#define hml_mem_write	unit_write
#define hml_mem_copy	unit_copy
#undef HML_PORT_UNREADABLE
#define HML_PORT_UNREADABLE	1
#undef hml_atomic_add_return
#define hml_atomic_add_return(p, v)	unit_add_return(p, v)

#include "rx.c"

#define KEY		0x0123456789abcdefULL
#define TICKET_KEY	0xfedcba9876543210ULL
#define SLOTS		3
#define AREA		8192
#define BASE		1000
#define LENGTH		2000
#define ENTRIES		4	/* metadata entries, one more on either side */
#define NUMBER		1	/* of the slot with everything */
#define PLAIN		2	/* of the slot without metadata entries */

struct receiver {
	struct hml_nic nic;
	struct hml_slot *slots;
	u8 *area;
	struct hamlyn_metadata *entries;
	struct hml_nq nq;
	struct hml_stats stats;
	struct hml_sender sender;
	u8 data[LENGTH + 1];
};

static struct receiver *r;
static struct hamlyn_nq_entry nq_entries[4];
static struct hamlyn_nq_entry told[8];
static bool woke[8];
static u32 nr_told;
static bool nq_full;
static void (*before_append)(void);

/* What guard.c and the home were told of. */
static u32 guesses;
static u32 nr_rejected;
static struct {
	const struct hml_nic *nic;
	const struct hml_slot *slot;
	struct hamlyn_packet h;
	int reason;
	const struct hml_sender *sender;
} rejected;

bool hml_port_knew(const struct hml_nic *nic, const struct hamlyn_packet *h,
		   const struct hml_sender *sender)
{
	(void)nic;
	(void)h;
	(void)sender;
	return false;
}

void hml_guard_guess(struct hml_nic *nic, struct hml_sender *sender)
{
	assert_ptr_equal(nic, &r->nic);
	assert_ptr_equal(sender, &r->sender);
	guesses++;
}

void hml_port_rejected(struct hml_nic *nic, const struct hml_slot *slot,
		       const struct hamlyn_packet *h, int reason,
		       const struct hml_sender *sender)
{
	nr_rejected++;
	rejected.nic = nic;
	rejected.slot = slot;
	rejected.h = *h;
	rejected.reason = reason;
	rejected.sender = sender;
}

bool hml_nq_append(struct hml_nic *nic, struct hml_nq *nq,
		   struct hml_nq_place place,
		   const struct hamlyn_nq_entry *entry, bool wake)
{
	assert_ptr_equal(nic, &r->nic);
	assert_ptr_equal(nq, &r->nq);
	assert_true(nr_told < ARRAY_SIZE(told));
	if (before_append)
		before_append();
	assert_ptr_equal(place.entry, &nq_entries[place.cursor & r->nq.mask]);
	woke[nr_told] = wake;
	told[nr_told++] = *entry;
	return !nq_full;
}

static int setup(void **state)
{
	u64 rng = 1;
	u32 i;

	r = unit_zalloc(sizeof(*r));
	r->slots = unit_zalloc(SLOTS * sizeof(*r->slots));
	r->area = unit_alloc(AREA);
	r->entries = unit_alloc((ENTRIES + 2) * sizeof(*r->entries));
	memset(r->entries + 1, 0, ENTRIES * sizeof(*r->entries));
	r->nic.host = 1;
	r->nic.packet_size = LENGTH;
	r->nic.port.slots = unit_ref(r->slots);
	r->nic.port.slot_stride = sizeof(*r->slots);
	r->nic.port.max_slots = SLOTS;
	for (i = NUMBER; i <= PLAIN; i++) {
		struct hml_slot *slot = &r->slots[i];

		slot->live = 1;
		slot->key = KEY;
		slot->ticket_key = TICKET_KEY;
		slot->data.mem = unit_ref(r->area);
		slot->data.base = BASE;
		slot->data.length = LENGTH;
		slot->nq = unit_ref(&r->nq);
		slot->number = i;
	}
	r->slots[NUMBER].meta_count = ENTRIES;
	r->slots[NUMBER].meta_mem = unit_ref(r->entries);
	r->slots[NUMBER].meta_base = HAMLYN_METADATA_SIZE;
	r->slots[PLAIN].meta_mem = 1;	/* to be touched by nobody */
	r->nq.entries = unit_ref(nq_entries);
	r->nq.mask = ARRAY_SIZE(nq_entries) - 1;
	unit_random_fill(&rng, r->data, sizeof(r->data));
	r->sender.stats = &r->stats;
	nr_told = 0;
	nq_full = false;
	counted = 0;
	guesses = 0;
	nr_rejected = 0;
	before_append = NULL;
	before_count = NULL;
	unreadable = 0;
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(r->slots);
	free(r->area);
	free(r->entries);
	free(r);
	return 0;
}

static struct hamlyn_packet packet(u32 slot, u64 offset, u32 length)
{
	struct hamlyn_packet h = {
		.version = HAMLYN_PACKET_VERSION,
		.flags = HAMLYN_PACKET_SINGLE,
		.length = length,
		.host = 1,
		.source = 9,
		.slot = slot,
		.key = KEY,
		.offset = offset,
	};

	return h;
}

static struct hamlyn_packet fast_packet(u32 slot)
{
	struct hamlyn_packet h = packet(slot, 0, 0);

	h.flags |= HAMLYN_PACKET_FAST;
	h.meta_index = HAMLYN_META_FAST;
	h.word = 0xc0ffee0ddf00dULL;
	return h;
}

static int admit(const struct hamlyn_packet *h)
{
	const struct hml_slot *slot = &r->slots[h->slot];

	return admit_packet(slot, h, plain(slot, h));
}

/* Receive it with payload from data[], and metadata from its end. */
static void receive(const struct hamlyn_packet *h)
{
	struct hml_payload payload = {
		.flat = r->data,
		.meta = r->data + LENGTH - HAMLYN_MAX_METADATA,
	};

	r->sender.guessed = false;	/* each of another message */
	hml_rx(&r->nic, h, &payload, &r->sender);
}

static struct hamlyn_metadata *entry(u32 index)
{
	return &r->entries[1 + index];
}

static void assert_area_untouched_but(u64 offset, u64 length)
{
	assert_true(unit_all(r->area, UNIT_GUARD, BASE + offset));
	assert_true(unit_all(r->area + BASE + offset + length, UNIT_GUARD,
			     AREA - BASE - offset - length));
}

static void assert_nothing_happened(void)
{
	assert_area_untouched_but(0, 0);
	assert_true(unit_all(r->entries, UNIT_GUARD, HAMLYN_METADATA_SIZE));
	assert_true(unit_all(entry(0), 0, ENTRIES * HAMLYN_METADATA_SIZE));
	assert_true(unit_all(entry(ENTRIES), UNIT_GUARD, HAMLYN_METADATA_SIZE));
	assert_int_equal(nr_told, 0);
	assert_int_equal(r->stats.notifications, 0);
	assert_int_equal(r->stats.overruns, 0);
}

/* ---- admit_packet() ------------------------------------------------------ */

static void right_packet_is_admitted(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, LENGTH);

	(void)state;
	h.meta_index = ENTRIES - 1;
	h.meta_length = HAMLYN_MAX_METADATA;
	assert_int_equal(admit(&h), -1);
	h.flags = 0;
	h.delta = 0xffffffffU;
	assert_int_equal(admit(&h), -1);
	h.flags = HAMLYN_PACKET_NO_NOTIFY;
	assert_int_equal(admit(&h), -1);
}

static void packet_for_no_slot_is_rejected(void **state)
{
	struct hamlyn_packet h = packet(SLOTS, 0, 0);

	(void)state;
	receive(&h);
	assert_int_equal(nr_rejected, 1);
	assert_int_equal(rejected.reason, HAMLYN_REJECT_SLOT);
	assert_nothing_happened();
}

static void packet_for_a_dead_slot_is_rejected(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 0);

	(void)state;
	r->slots[NUMBER].live = 0;
	assert_int_equal(admit(&h), HAMLYN_REJECT_SLOT);
}

static void key_wrong_by_one_bit_is_rejected(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 0);
	u32 i;

	(void)state;
	for (i = 0; i < 64; i++) {
		h.key = KEY ^ 1ULL << i;
		assert_int_equal(admit(&h), HAMLYN_REJECT_KEY);
	}
}

static void key_of_zero_opens_only_a_slot_whose_key_is_zero(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 0);

	(void)state;
	h.key = 0;
	assert_int_equal(admit(&h), HAMLYN_REJECT_KEY);
	r->slots[NUMBER].key = 0;
	assert_int_equal(admit(&h), -1);
	h.key = 1;
	assert_int_equal(admit(&h), HAMLYN_REJECT_KEY);
}

static void each_unknown_packet_flag_is_rejected(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 8; i++) {
		struct hamlyn_packet h = packet(NUMBER, 0, 0);

		if (HAMLYN_PACKET_FLAGS & 1U << i)
			continue;
		h.flags |= 1U << i;
		assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
	}
}

static void each_other_version_is_rejected(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 256; i++) {
		struct hamlyn_packet h = packet(NUMBER, 0, 0);

		h.version = i;
		assert_int_equal(admit(&h), i == HAMLYN_PACKET_VERSION ?
				 -1 : HAMLYN_REJECT_FORMAT);
	}
}

static void each_reserved_bit_of_a_packet_is_rejected(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 0);
	u32 i;

	(void)state;
	for (i = 0; i < 32; i++) {
		h.reserved = 1U << i;
		assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
		h.flags = HAMLYN_PACKET_TICKET;
		h.ticket_key = TICKET_KEY;
		assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
	}
}

static void ticket_opens_in_place_of_the_key(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 0);

	(void)state;
	h.flags |= HAMLYN_PACKET_TICKET;
	h.key = 0;
	assert_int_equal(admit(&h), HAMLYN_REJECT_KEY);
	h.ticket_key = KEY;
	assert_int_equal(admit(&h), HAMLYN_REJECT_KEY);
	h.ticket_key = TICKET_KEY;
	assert_int_equal(admit(&h), -1);
	/* Without the flag it is a number like any other. */
	h.flags &= ~HAMLYN_PACKET_TICKET;
	assert_int_equal(admit(&h), HAMLYN_REJECT_KEY);
}

static void slot_that_demands_a_ticket_rejects_its_own_key(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 0);

	(void)state;
	r->slots[NUMBER].flags = HAMLYN_SLOT_TICKET_ONLY;
	assert_int_equal(admit(&h), HAMLYN_REJECT_TICKET);
	h.key++;
	assert_int_equal(admit(&h), HAMLYN_REJECT_TICKET);
	h.flags |= HAMLYN_PACKET_TICKET;
	assert_int_equal(admit(&h), HAMLYN_REJECT_KEY);
	h.ticket_key = TICKET_KEY;
	assert_int_equal(admit(&h), -1);
}

static void metadata_longer_than_60_bytes_is_rejected(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 0);

	(void)state;
	h.meta_length = 60;
	assert_int_equal(admit(&h), -1);
	h.meta_length = 61;
	assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
	h.meta_length = 0xffff;
	assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
}

static void packet_outside_the_area_by_one_byte_is_rejected(void **state)
{
	struct hamlyn_packet h;

	(void)state;
	h = packet(NUMBER, 0, LENGTH + 1);
	assert_int_equal(admit(&h), HAMLYN_REJECT_BOUNDS);
	h = packet(NUMBER, 1, LENGTH);
	assert_int_equal(admit(&h), HAMLYN_REJECT_BOUNDS);
	h = packet(NUMBER, LENGTH, 1);
	assert_int_equal(admit(&h), HAMLYN_REJECT_BOUNDS);
	h = packet(NUMBER, LENGTH, 0);
	assert_int_equal(admit(&h), -1);
	h = packet(NUMBER, LENGTH + 1, 0);
	assert_int_equal(admit(&h), HAMLYN_REJECT_BOUNDS);
	h = packet(NUMBER, LENGTH - 1, 1);
	assert_int_equal(admit(&h), -1);
}

static void packet_whose_end_wraps_is_rejected(void **state)
{
	struct hamlyn_packet h;

	(void)state;
	h = packet(NUMBER, ~0ULL, 1);
	assert_int_equal(admit(&h), HAMLYN_REJECT_BOUNDS);
	h = packet(NUMBER, ~0ULL, 2);
	assert_int_equal(admit(&h), HAMLYN_REJECT_BOUNDS);
	h = packet(NUMBER, ~0ULL - 0xfffffffeULL, 0xffffffffU);
	assert_int_equal(admit(&h), HAMLYN_REJECT_BOUNDS);
	/* The byte right before the message area. */
	h = packet(NUMBER, -1ULL, 1);
	assert_int_equal(admit(&h), HAMLYN_REJECT_BOUNDS);
	h = packet(NUMBER, -(u64)BASE, 1);
	assert_int_equal(admit(&h), HAMLYN_REJECT_BOUNDS);
	h = packet(NUMBER, ~0ULL, 0);
	assert_int_equal(admit(&h), HAMLYN_REJECT_BOUNDS);
}

static void metadata_index_out_of_range_by_one_is_rejected(void **state)
{
	static const u32 wrong[] = {
		ENTRIES, ENTRIES + 1, 0x02000000U, 0x80000000U, 0xffffffffU,
	};
	struct hamlyn_packet h = packet(NUMBER, 0, 0);
	u32 i;

	(void)state;
	for (i = 0; i < ENTRIES; i++) {
		h.meta_index = i;
		assert_int_equal(admit(&h), -1);
	}
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		h.meta_index = wrong[i];
		assert_int_equal(admit(&h), HAMLYN_REJECT_METADATA);
		h.flags = HAMLYN_PACKET_NO_NOTIFY;
		assert_int_equal(admit(&h), HAMLYN_REJECT_METADATA);
		h.flags = HAMLYN_PACKET_SINGLE;
	}
}

static void slot_without_entries_takes_single_packets_without_metadata(void **state)
{
	struct hamlyn_packet h = packet(PLAIN, 0, LENGTH);

	(void)state;
	assert_int_equal(admit(&h), -1);
	h.meta_length = 1;
	assert_int_equal(admit(&h), HAMLYN_REJECT_METADATA);
	h = packet(PLAIN, 0, 0);
	h.meta_index = 1;
	assert_int_equal(admit(&h), HAMLYN_REJECT_METADATA);
	h = packet(PLAIN, 0, 0);
	h.meta_index = HAMLYN_META_FAST;
	assert_int_equal(admit(&h), HAMLYN_REJECT_METADATA);
}

static void slot_without_entries_rejects_what_would_have_to_be_counted(void **state)
{
	struct hamlyn_packet h = packet(PLAIN, 0, 0);

	(void)state;
	h.flags = 0;
	assert_int_equal(admit(&h), HAMLYN_REJECT_METADATA);
	h.delta = 1;
	assert_int_equal(admit(&h), HAMLYN_REJECT_METADATA);
	h.flags = HAMLYN_PACKET_SINGLE;
	assert_int_equal(admit(&h), HAMLYN_REJECT_METADATA);
	/* What is silent is not counted. */
	h.flags = HAMLYN_PACKET_NO_NOTIFY;
	assert_int_equal(admit(&h), -1);
	h.meta_length = 1;
	assert_int_equal(admit(&h), HAMLYN_REJECT_METADATA);
}

static void fast_packet_is_admitted_with_and_without_entries(void **state)
{
	struct hamlyn_packet h = fast_packet(NUMBER);

	(void)state;
	assert_int_equal(admit(&h), -1);
	h = fast_packet(PLAIN);
	assert_int_equal(admit(&h), -1);
	h.length = LENGTH;
	assert_int_equal(admit(&h), -1);
	h.length++;
	assert_int_equal(admit(&h), HAMLYN_REJECT_BOUNDS);
}

static void fast_packet_that_is_not_single_is_rejected(void **state)
{
	struct hamlyn_packet h = fast_packet(NUMBER);

	(void)state;
	h.flags = HAMLYN_PACKET_FAST;
	assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
	h.flags |= HAMLYN_PACKET_NO_NOTIFY;
	assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
}

static void fast_packet_with_metadata_is_rejected(void **state)
{
	struct hamlyn_packet h = fast_packet(NUMBER);

	(void)state;
	h.meta_length = 1;
	assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
}

static void fast_packet_with_a_metadata_index_is_rejected(void **state)
{
	struct hamlyn_packet h = fast_packet(NUMBER);

	(void)state;
	h.meta_index = 0;
	assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
	h.meta_index = HAMLYN_META_FAST - 1;
	assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
}

/* It would be counted in entry 2^32 - 1, which no slot has. */
static void fast_packet_with_a_delta_is_rejected(void **state)
{
	struct hamlyn_packet h = fast_packet(NUMBER);

	(void)state;
	h.delta = 1;
	assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
	h = fast_packet(PLAIN);
	h.delta = 0xffffffffU;
	assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
}

/* All that can be wrong behind the key, one after the other. */
static struct hamlyn_packet wrong_packet(u32 slot, u32 i)
{
	struct hamlyn_packet h = packet(slot, 0, 0);

	switch (i) {
	case 1:
		h.length = LENGTH + 1;
		break;
	case 2:
		h.offset = ~0ULL;
		break;
	case 3:
		h.meta_index = ENTRIES;
		break;
	case 4:
		h.meta_length = HAMLYN_MAX_METADATA + 1;
		break;
	case 5:
		h.flags = 0xff & ~HAMLYN_PACKET_TICKET;
		break;
	case 6:
		h = fast_packet(slot);
		h.flags = HAMLYN_PACKET_FAST;
		break;
	case 7:
		h.version = 77;
		break;
	}
	return h;
}

static void wrong_key_is_all_that_is_told_whatever_else_is_wrong(void **state)
{
	u32 i, slot;

	(void)state;
	for (slot = NUMBER; slot <= PLAIN; slot++) {
		for (i = 0; i < 8; i++) {
			struct hamlyn_packet h = wrong_packet(slot, i);

			h.key++;
			assert_int_equal(admit(&h), HAMLYN_REJECT_KEY);
			h.key--;
			h.flags |= HAMLYN_PACKET_TICKET;
			assert_int_equal(admit(&h), HAMLYN_REJECT_KEY);
			h.flags &= ~HAMLYN_PACKET_TICKET;
			r->slots[slot].flags = HAMLYN_SLOT_TICKET_ONLY;
			assert_int_equal(admit(&h), HAMLYN_REJECT_TICKET);
			r->slots[slot].flags = 0;
		}
	}
}

static void dead_slot_is_all_that_is_told_whatever_else_is_wrong(void **state)
{
	u32 i;

	(void)state;
	r->slots[NUMBER].live = 0;
	for (i = 0; i < 8; i++) {
		struct hamlyn_packet h = wrong_packet(NUMBER, i);

		assert_int_equal(admit(&h), HAMLYN_REJECT_SLOT);
		h.key++;
		assert_int_equal(admit(&h), HAMLYN_REJECT_SLOT);
	}
}

static void format_comes_before_bounds_and_bounds_before_metadata(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, LENGTH, 1);

	(void)state;
	h.meta_index = ENTRIES;
	assert_int_equal(admit(&h), HAMLYN_REJECT_BOUNDS);
	h.meta_length = 61;
	assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
	h.meta_length = 0;
	h.flags = 0x80;
	assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
	h.flags = HAMLYN_PACKET_SINGLE;
	h.version++;
	assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
	h.version--;
	h.reserved = 1;
	assert_int_equal(admit(&h), HAMLYN_REJECT_FORMAT);
}

/* ---- place() ------------------------------------------------------------- */

static void payload_lands_at_its_offset_and_nowhere_else(void **state)
{
	struct hamlyn_packet h = packet(PLAIN, 123, 456);

	(void)state;
	receive(&h);
	assert_memory_equal(r->area + BASE + 123, r->data, 456);
	assert_area_untouched_but(123, 456);
}

static void payload_as_long_as_the_area_fills_it_exactly(void **state)
{
	struct hamlyn_packet h = packet(PLAIN, 0, LENGTH);

	(void)state;
	receive(&h);
	assert_memory_equal(r->area + BASE, r->data, LENGTH);
	assert_area_untouched_but(0, LENGTH);
}

static void empty_packet_writes_nothing_but_is_told(void **state)
{
	struct hamlyn_packet h = packet(PLAIN, LENGTH, 0);
	struct hml_payload nothing = { 0 };

	(void)state;
	hml_rx(&r->nic, &h, &nothing, &r->sender);
	receive(&h);
	assert_area_untouched_but(0, 0);
	assert_int_equal(nr_told, 2);
	assert_int_equal(told[0].length, 0);
}

static void pieces_are_gathered_from_the_skipped_byte_on(void **state)
{
	struct hamlyn_packet h = packet(PLAIN, 50, 0);
	struct hml_piece pieces[4] = {
		{ unit_ref(r->data), 100, 10 },
		{ unit_ref(r->data) + 300, 0, 1 },
		{ unit_ref(r->data), 500, 30 },
		{ 0, 0, ~0ULL },	/* not of this packet */
	};
	struct hml_payload payload = { .piece = pieces };
	u32 skip, n;

	(void)state;
	for (skip = 0; skip < 10; skip++) {
		for (n = 1; n <= 41 - skip; n++) {
			u8 all[41];

			memcpy(all, r->data + 100, 10);
			all[10] = r->data[300];
			memcpy(all + 11, r->data + 500, 30);
			memset(r->area, UNIT_GUARD, AREA);
			payload.skip = skip;
			h.length = n;
			place(&r->nic, &r->slots[PLAIN], &h, &payload);
			assert_memory_equal(r->area + BASE + 50, all + skip, n);
			assert_area_untouched_but(50, n);
		}
	}
}

/* Whichever piece it is, and whatever would have been told: neither bytes nor metadata. */
static void what_cannot_be_read_is_not_told(void **state)
{
	struct hml_piece pieces[3] = {
		{ unit_ref(r->data), 100, 10 },
		{ unit_ref(r->data), 300, 1 },
		{ unit_ref(r->data), 500, 30 },
	};
	u8 word[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	struct hml_payload payload = { .piece = pieces, .meta = word };
	u32 at, delta;

	(void)state;
	for (at = 1; at <= 3; at++) {
		for (delta = 0; delta < 2; delta++) {
			struct hamlyn_packet h = packet(NUMBER, 50, 41);

			h.meta_length = sizeof(word);
			h.delta = delta;
			h.flags = delta ? 0 : HAMLYN_PACKET_SINGLE;
			unreadable = at;
			r->sender.unreadable = false;
			hml_rx(&r->nic, &h, &payload, &r->sender);
			assert_true(r->sender.unreadable);
			assert_int_equal(nr_told, 0);
			assert_int_equal(counted, 0);
			assert_int_equal(entry(0)->meta_length, 0);
		}
	}
	assert_int_equal(nr_rejected, 0);
	assert_int_equal(r->stats.notifications, 0);
}

static void source_and_destination_may_overlap(void **state)
{
	struct hamlyn_packet h = packet(PLAIN, 10, 500);
	struct hml_piece piece = { unit_ref(r->area), BASE, 500 };
	struct hml_payload payload = { .piece = &piece };

	(void)state;
	memcpy(r->area + BASE, r->data, 500);
	hml_rx(&r->nic, &h, &payload, &r->sender);
	assert_memory_equal(r->area + BASE + 10, r->data, 500);
}

/* ---- metadata ------------------------------------------------------------ */

static void metadata_lands_in_its_entry_and_no_other(void **state)
{
	u32 index;
	u16 n;

	(void)state;
	for (index = 0; index < ENTRIES; index++) {
		for (n = 1; n <= HAMLYN_MAX_METADATA; n++) {
			struct hamlyn_packet h = packet(NUMBER, 0, 0);
			struct hamlyn_metadata *m = entry(index);

			memset(r->entries, UNIT_GUARD,
			       (ENTRIES + 2) * sizeof(*r->entries));
			nr_told = 0;
			h.meta_index = index;
			h.meta_length = n;
			receive(&h);
			assert_memory_equal(m->user, r->data + LENGTH - 60, n);
			assert_true(unit_all(m->user + n, UNIT_GUARD, 60 - n));
			assert_int_equal(m->meta_length, n);
			m->meta_length = UNIT_GUARD * 0x01010101U;
			assert_true(unit_all(m->user + n, UNIT_GUARD,
					     sizeof(*m) - n));
			assert_true(unit_all(r->entries, UNIT_GUARD,
					     (1 + index) * sizeof(*m)));
			assert_true(unit_all(m + 1, UNIT_GUARD,
					     (ENTRIES - index) * sizeof(*m)));
		}
	}
}

static void packet_without_metadata_leaves_the_user_bytes_alone(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 10);

	(void)state;
	memset(entry(0)->user, UNIT_GUARD, HAMLYN_MAX_METADATA);
	h.flags = 0;
	h.delta = 5;
	receive(&h);
	assert_true(unit_all(entry(0)->user, UNIT_GUARD, HAMLYN_MAX_METADATA));
	assert_int_equal(entry(0)->accumulator, 5);
}

static void metadata_of_the_first_packet_survives_the_later_ones(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 10);

	(void)state;
	h.flags = 0;
	h.delta = 1;
	h.meta_length = 20;
	receive(&h);
	h.meta_length = 0;
	h.delta = 0xffffffffU;
	receive(&h);
	assert_int_equal(nr_told, 1);
	assert_int_equal(entry(0)->meta_length, 20);
	assert_memory_equal(entry(0)->user, r->data + LENGTH - 60, 20);
}

/* ---- count() ------------------------------------------------------------- */

static void single_packet_is_told_without_counting(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 0);

	(void)state;
	entry(0)->accumulator = 77;
	receive(&h);
	assert_int_equal(nr_told, 1);
	assert_int_equal(entry(0)->accumulator, 77);
}

static void single_packet_of_a_group_is_counted(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 0);

	(void)state;
	h.delta = 0x80000000U;
	receive(&h);
	assert_int_equal(nr_told, 0);
	assert_int_equal(entry(0)->accumulator, 0x80000000U);
	receive(&h);
	assert_int_equal(nr_told, 1);
	assert_int_equal(entry(0)->accumulator, 0);
}

/* The share of a group member happens to equal its count of packets. */
static void last_packet_with_delta_0_of_several_does_not_tell_early(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 0);

	(void)state;
	h.flags = 0;
	h.delta = 1;
	receive(&h);
	receive(&h);
	h.delta = 0;
	receive(&h);
	assert_int_equal(nr_told, 0);
	assert_int_equal(entry(0)->accumulator, 2);
	h.flags = HAMLYN_PACKET_SINGLE;
	h.delta = 0xfffffffeU;
	receive(&h);
	assert_int_equal(nr_told, 1);
}

static void packets_are_counted_in_any_order_and_told_at_the_end(void **state)
{
	/* Of one message of four packets; all their orders. */
	static const u32 deltas[4] = { 1, 1, 1, 0xfffffffdU };
	struct hamlyn_packet h = packet(NUMBER, 0, 0);
	u32 order, i;

	(void)state;
	h.flags = 0;
	h.meta_index = 2;
	for (order = 0; order < 256; order++) {
		u32 used = 0;

		for (i = 0; i < 4; i++)
			used |= 1U << ((order >> 2 * i) & 3);
		if (used != 15)
			continue;
		nr_told = 0;
		for (i = 0; i < 4; i++) {
			assert_int_equal(nr_told, 0);
			h.delta = deltas[(order >> 2 * i) & 3];
			receive(&h);
		}
		assert_int_equal(nr_told, 1);
		assert_int_equal(entry(2)->accumulator, 0);
	}
}

static void accumulator_wraps_at_2_to_the_32(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 0);

	(void)state;
	h.flags = 0;
	entry(0)->accumulator = 0xffffffffU;
	h.delta = 2;
	receive(&h);
	assert_int_equal(nr_told, 0);
	assert_int_equal(entry(0)->accumulator, 1);
	h.delta = 0xffffffffU;
	receive(&h);
	assert_int_equal(nr_told, 1);
}

static void entries_count_apart_from_each_other(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 0);

	(void)state;
	h.flags = 0;
	h.delta = 5;
	h.meta_index = 1;
	receive(&h);
	h.delta = -5;
	h.meta_index = 2;
	receive(&h);
	assert_int_equal(nr_told, 0);
	assert_int_equal(entry(1)->accumulator, 5);
	assert_int_equal(entry(2)->accumulator, (u32)-5);
}

static void silent_packet_neither_counts_nor_tells(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 40);

	(void)state;
	h.flags = HAMLYN_PACKET_SINGLE | HAMLYN_PACKET_NO_NOTIFY;
	receive(&h);
	h.flags = HAMLYN_PACKET_NO_NOTIFY;
	h.delta = 1;
	receive(&h);
	entry(0)->accumulator = 3;
	h.delta = -3;
	receive(&h);
	assert_int_equal(nr_told, 0);
	assert_int_equal(entry(0)->accumulator, 3);
	assert_memory_equal(r->area + BASE, r->data, 40);
}

static void silent_packet_may_carry_metadata(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 0);

	(void)state;
	h.flags |= HAMLYN_PACKET_NO_NOTIFY;
	h.meta_length = 4;
	receive(&h);
	assert_memory_equal(entry(0)->user, r->data + LENGTH - 60, 4);
	assert_int_equal(nr_told, 0);
}

/* ---- notify() ------------------------------------------------------------ */

static void notification_names_slot_entry_source_and_length(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 3, 44);

	(void)state;
	h.meta_index = 3;
	receive(&h);
	assert_int_equal(nr_told, 1);
	assert_int_equal(told[0].slot, NUMBER);
	assert_int_equal(told[0].index, 3);
	assert_int_equal(told[0].source, 9);
	assert_int_equal(told[0].length, 44);
	assert_int_equal(told[0].flags, HAMLYN_NQE_SINGLE);
	assert_int_equal(told[0].data, 4 * HAMLYN_METADATA_SIZE);
	assert_int_equal(r->stats.notifications, 1);
}

static void notification_of_several_packets_is_not_marked_single(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 7);

	(void)state;
	h.flags = 0;
	h.delta = 1;
	receive(&h);
	h.length = 8;
	h.delta = -1;
	receive(&h);
	assert_int_equal(nr_told, 1);
	assert_int_equal(told[0].flags, 0);
	assert_int_equal(told[0].length, 8);
}

static void notification_of_a_slot_without_entries_points_nowhere(void **state)
{
	struct hamlyn_packet h = packet(PLAIN, 0, 1);

	(void)state;
	h.word = 55;
	receive(&h);
	assert_int_equal(nr_told, 1);
	assert_int_equal(told[0].data, 0);
	assert_int_equal(told[0].index, 0);
}

static void fast_word_travels_in_the_notification(void **state)
{
	struct hamlyn_packet h = fast_packet(NUMBER);

	(void)state;
	h.length = 5;
	receive(&h);
	assert_int_equal(nr_told, 1);
	assert_int_equal(told[0].data, h.word);
	assert_int_equal(told[0].index, HAMLYN_META_FAST);
	assert_int_equal(told[0].flags, HAMLYN_NQE_FAST | HAMLYN_NQE_SINGLE);
	assert_memory_equal(r->area + BASE, r->data, 5);
	assert_true(unit_all(entry(0), 0, ENTRIES * HAMLYN_METADATA_SIZE));
}

static void silent_fast_packet_tells_nothing(void **state)
{
	struct hamlyn_packet h = fast_packet(NUMBER);

	(void)state;
	h.flags |= HAMLYN_PACKET_NO_NOTIFY;
	receive(&h);
	assert_int_equal(nr_told, 0);
}

static void slot_without_nq_counts_but_tells_nobody(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 1);

	(void)state;
	r->slots[NUMBER].nq = HML_NQ_NONE;
	receive(&h);
	h.delta = 1;
	receive(&h);
	assert_int_equal(nr_told, 0);
	assert_int_equal(entry(0)->accumulator, 1);
	assert_int_equal(r->stats.notifications, 0);
	assert_int_equal(r->stats.overruns, 0);
	assert_int_equal(r->slots[NUMBER].overruns, 0);
}

static void lost_notification_is_counted_with_slot_and_terminus(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 1);

	(void)state;
	nq_full = true;
	receive(&h);
	receive(&h);
	assert_int_equal(r->stats.notifications, 0);
	assert_int_equal(r->stats.overruns, 2);
	assert_int_equal(r->slots[NUMBER].overruns, 2);
	assert_int_equal(r->slots[PLAIN].overruns, 0);
}

static void quiet_packet_is_told_without_a_wake_and_the_next_one_with(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 1);

	(void)state;
	h.flags |= HAMLYN_PACKET_QUIET;
	receive(&h);
	assert_int_equal(nr_told, 1);
	assert_false(woke[0]);
	/* It is the sender's wish, and nothing of the receiver's entry. */
	assert_int_equal(told[0].flags, HAMLYN_NQE_SINGLE);
	h.flags &= ~HAMLYN_PACKET_QUIET;
	receive(&h);
	assert_int_equal(nr_told, 2);
	assert_true(woke[1]);
	h = fast_packet(NUMBER);
	receive(&h);
	h.flags |= HAMLYN_PACKET_QUIET;
	receive(&h);
	assert_true(woke[2]);
	assert_false(woke[3]);
	assert_int_equal(told[3].flags, HAMLYN_NQE_FAST | HAMLYN_NQE_SINGLE);
	assert_int_equal(r->stats.notifications, 4);
}

/* Of a group it is the one that closes it. */
static void packet_that_completes_the_message_decides_about_the_wake(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 1);
	u32 quiet;

	(void)state;
	for (quiet = 0; quiet < 2; quiet++) {
		h.flags = quiet ? 0 : HAMLYN_PACKET_QUIET;
		h.delta = 1;
		receive(&h);
		h.flags = quiet ? HAMLYN_PACKET_QUIET : 0;
		h.delta = -1;
		receive(&h);
		assert_int_equal(nr_told, quiet + 1);
		assert_int_equal(woke[quiet], !quiet);
	}
}

/* ---- hml_rx() ------------------------------------------------------------ */

static void expect_rejected(const struct hamlyn_packet *h,
			    const struct hml_slot *slot, int reason)
{
	u32 had = nr_rejected;

	receive(h);
	assert_int_equal(nr_rejected, had + 1);
	assert_ptr_equal(rejected.nic, &r->nic);
	assert_ptr_equal(rejected.slot, slot);
	assert_memory_equal(&rejected.h, h, sizeof(*h));
	assert_int_equal(rejected.reason, reason);
	assert_ptr_equal(rejected.sender, &r->sender);
	assert_int_equal(r->stats.rejects[reason],
			 1 + (reason == HAMLYN_REJECT_SLOT && had));
}

/* Where no lock may be taken it is as if such a packet had not come, but for a note. */
static void of_a_brief_sender_what_is_to_be_discarded_is_left(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 1, 2);

	(void)state;
	r->sender.brief = true;
	receive(&h);
	assert_false(r->sender.left);
	assert_int_equal(nr_told, 1);
	h.key++;
	receive(&h);
	assert_true(r->sender.left);
	assert_false(r->sender.guessed);
	r->sender.left = false;
	h = packet(SLOTS, 1, 2);
	receive(&h);
	assert_true(r->sender.left);
	assert_int_equal(nr_told, 1);
	assert_int_equal(nr_rejected, 0);
	assert_int_equal(guesses, 0);
	assert_int_equal(r->stats.rejects[HAMLYN_REJECT_KEY], 0);
	assert_int_equal(r->stats.rejects[HAMLYN_REJECT_SLOT], 0);
	assert_int_equal(r->slots[NUMBER].rejects[HAMLYN_REJECT_KEY], 0);
}

static void home_is_told_once_of_each_packet_that_is_discarded(void **state)
{
	struct hml_slot *slot = &r->slots[NUMBER];
	struct hamlyn_packet h;

	(void)state;
	h = packet(SLOTS, 5, 6);
	expect_rejected(&h, NULL, HAMLYN_REJECT_SLOT);
	h = packet(0, 5, 6);
	expect_rejected(&h, &r->slots[0], HAMLYN_REJECT_SLOT);
	h = packet(NUMBER, 1, 2);
	h.key++;
	expect_rejected(&h, slot, HAMLYN_REJECT_KEY);
	h = packet(NUMBER, LENGTH, 1);
	expect_rejected(&h, slot, HAMLYN_REJECT_BOUNDS);
	h = packet(NUMBER, 1, 2);
	h.meta_index = ENTRIES;
	expect_rejected(&h, slot, HAMLYN_REJECT_METADATA);
	h = packet(NUMBER, 1, 2);
	h.version = 0;
	expect_rejected(&h, slot, HAMLYN_REJECT_FORMAT);
	h = packet(NUMBER, 1, 2);
	slot->flags = HAMLYN_SLOT_TICKET_ONLY;
	expect_rejected(&h, slot, HAMLYN_REJECT_TICKET);
	slot->flags = 0;
	slot->mode = HAMLYN_SLOT_PARANOID_ONE_SHOT;
	entry(0)->key = KEY;
	entry(0)->high = LENGTH;
	expect_rejected(&h, slot, HAMLYN_REJECT_ONE_SHOT);
	assert_int_equal(nr_rejected, 8);
	/* One of them for a key, one for a ticket. */
	assert_int_equal(guesses, 2);
}

static void home_is_told_nothing_of_packets_that_land(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 4);

	(void)state;
	receive(&h);
	h.flags |= HAMLYN_PACKET_NO_NOTIFY;
	receive(&h);
	nq_full = true;
	h.flags &= ~HAMLYN_PACKET_NO_NOTIFY;
	receive(&h);
	assert_int_equal(nr_rejected, 0);
	assert_int_equal(guesses, 0);
}

static void rejected_packet_changes_nothing_but_the_counters(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 8; i++) {
		struct hamlyn_packet h = wrong_packet(NUMBER, i);

		h.delta = 1;
		h.meta_length += 4;
		if (i == 0)
			h.key ^= 1;
		receive(&h);
		assert_nothing_happened();
	}
}

static void rejects_are_counted_by_reason_with_slot_and_terminus(void **state)
{
	static const u64 expected[HAMLYN_REJECT_REASONS] = { 1, 1, 2, 1, 4, 0, 1 };
	struct hamlyn_packet h;
	u32 i;

	(void)state;
	for (i = 1; i < 8; i++) {
		h = wrong_packet(NUMBER, i);
		receive(&h);
	}
	h = packet(NUMBER, 0, 0);
	r->slots[NUMBER].flags = HAMLYN_SLOT_TICKET_ONLY;
	receive(&h);
	r->slots[NUMBER].flags = 0;
	h = packet(NUMBER, 0, 0);
	h.key ^= 1;
	receive(&h);
	r->slots[NUMBER].live = 0;
	receive(&h);
	for (i = 0; i < HAMLYN_REJECT_REASONS; i++) {
		assert_int_equal(r->stats.rejects[i], expected[i]);
		assert_int_equal(r->slots[NUMBER].rejects[i], expected[i]);
		assert_int_equal(r->slots[PLAIN].rejects[i], 0);
	}
}

static void slot_number_beyond_the_table_is_rejected(void **state)
{
	static const u32 wrong[] = { SLOTS, SLOTS + 1, 0x80000000U, 0xffffffffU };
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct hamlyn_packet h = packet(wrong[i], 0, 1);

		receive(&h);
		assert_int_equal(r->stats.rejects[HAMLYN_REJECT_SLOT], i + 1);
	}
	assert_nothing_happened();
	for (i = 0; i < SLOTS; i++)
		assert_int_equal(r->slots[i].rejects[HAMLYN_REJECT_SLOT], 0);
}

static void slot_that_was_never_made_is_rejected(void **state)
{
	struct hamlyn_packet h = packet(0, 0, 0);

	(void)state;
	h.key = 0;
	receive(&h);
	assert_int_equal(r->stats.rejects[HAMLYN_REJECT_SLOT], 1);
	assert_nothing_happened();
}

static void rekeyed_slot_rejects_the_old_key_and_takes_the_new(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 1);

	(void)state;
	r->slots[NUMBER].key = KEY + 1;
	receive(&h);
	assert_int_equal(nr_told, 0);
	h.key = KEY + 1;
	receive(&h);
	assert_int_equal(nr_told, 1);
}

static void check_data_and_metadata(void)
{
	assert_memory_equal(r->area + BASE, r->data, 100);
	assert_memory_equal(entry(0)->user, r->data + LENGTH - 60, 30);
	assert_int_equal(entry(0)->meta_length, 30);
}

static void check_count(void)
{
	check_data_and_metadata();
	assert_int_equal(entry(0)->accumulator, 0);
}

static void data_and_metadata_are_there_before_count_and_notification(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 100);

	(void)state;
	before_count = check_data_and_metadata;
	before_append = check_count;
	h.flags = 0;
	h.meta_length = 30;
	h.delta = 1;
	entry(0)->accumulator = 0xffffffffU;
	receive(&h);
	assert_int_equal(nr_told, 1);
	/* By the atomic addition of the home, which is a full barrier. */
	assert_int_equal(counted, 1);
}

static void slot_is_left_after_every_packet(void **state)
{
	struct hamlyn_packet h = packet(NUMBER, 0, 1);

	(void)state;
	receive(&h);
	h.key++;
	receive(&h);
	h.slot = SLOTS;
	receive(&h);
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

/* ---- hml_rx_plain() ------------------------------------------------------ */

static bool receive_plain(struct hml_single single)
{
	return hml_rx_plain(&r->nic, single, r->data, &r->sender);
}

/* As if nothing had been received yet. */
static void forget(void)
{
	memset(r->area, UNIT_GUARD, AREA);
	memset(&r->stats, 0, sizeof(r->stats));
	nr_told = 0;
	nr_rejected = 0;
	guesses = 0;
}

/* It takes just what hml_rx() takes and tells of, in the same way, and does nothing else. */
static void compare_ways(struct hml_single single)
{
	const struct hamlyn_packet h = hml_single_header(single);
	const struct hamlyn_nq_entry none = { .slot = HAMLYN_NONE };
	bool taken;

	forget();
	told[0] = none;
	taken = receive_plain(single);
	assert_int_equal(nr_rejected + guesses, 0);
	if (taken) {
		assert_int_equal(nr_told, 1);
		assert_int_equal(r->stats.notifications, 1);
		assert_memory_equal(r->area + BASE + single.offset, r->data, single.length);
		assert_area_untouched_but(single.offset, single.length);
		told[1] = told[0];
	} else {
		assert_nothing_happened();
	}
	forget();
	receive(&h);
	assert_int_equal(taken, !nr_rejected && nr_told);
	if (taken)
		assert_memory_equal(&told[0], &told[1], sizeof(told[0]));
	forget();
}

/* Offsets, lengths and entries at, and one beyond, what there is. */
static void compare_places(u32 slot, u64 key)
{
	static const u64 offsets[] = { 0, 1, LENGTH - 1, LENGTH, LENGTH + 1, ~0ULL };
	static const u32 lengths[] = { 0, 1, 16, LENGTH, LENGTH + 1 };
	u32 i, j, meta;

	for (i = 0; i < ARRAY_SIZE(offsets); i++)
		for (j = 0; j < ARRAY_SIZE(lengths); j++)
			for (meta = 0; meta <= ENTRIES + 1; meta++)
				compare_ways((struct hml_single) {
					.key = key, .offset = offsets[i],
					.length = lengths[j], .slot = slot,
					.meta_index = meta, .source = 9,
				});
}

static void plain_way_takes_what_the_other_one_takes(void **state)
{
	u32 slot;

	(void)state;
	for (slot = 0; slot <= SLOTS; slot++) {
		compare_places(slot, KEY);
		compare_places(slot, KEY + 1);
		compare_places(slot, TICKET_KEY);
		compare_places(slot, 0);
	}
}

static void plain_way_is_for_slots_that_a_key_alone_opens(void **state)
{
	struct hml_slot *slot = &r->slots[NUMBER];

	(void)state;
	slot->live = 0;
	compare_places(NUMBER, KEY);
	slot->live = 1;
	slot->flags = HAMLYN_SLOT_TICKET_ONLY;
	compare_places(NUMBER, KEY);
	slot->flags = 0;
	slot->mode = HAMLYN_SLOT_PARANOID_ONE_SHOT;
	compare_places(NUMBER, KEY);
	slot->mode = HAMLYN_SLOT_NORMAL;
	slot->nq = HML_NQ_NONE;
	compare_places(NUMBER, KEY);
}

static void plain_way_takes_one_message_an_arming(void **state)
{
	struct hml_slot *slot = &r->slots[NUMBER];
	const struct hml_single single = {
		.key = KEY, .offset = 10, .length = 16, .slot = NUMBER, .meta_index = 2,
		.source = 9,
	};

	(void)state;
	slot->mode = HAMLYN_SLOT_PARANOID_ONE_SHOT;
	entry(2)->key = KEY;
	entry(2)->low = 10;
	entry(2)->high = 26;
	assert_false(receive_plain(single));
	entry(2)->state = HAMLYN_META_ARMED;
	entry(2)->high = 25;
	assert_false(receive_plain(single));
	assert_int_equal(entry(2)->state, HAMLYN_META_ARMED);
	entry(2)->high = 26;
	assert_true(receive_plain(single));
	assert_int_equal(entry(2)->state, 0);
	assert_int_equal(entry(2)->length, 16);
	assert_false(receive_plain(single));
	assert_int_equal(nr_told, 1);
	assert_int_equal(nr_rejected, 0);
	assert_memory_equal(r->area + BASE + 10, r->data, 16);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(right_packet_is_admitted),
		TEST(packet_for_no_slot_is_rejected),
		TEST(packet_for_a_dead_slot_is_rejected),
		TEST(key_wrong_by_one_bit_is_rejected),
		TEST(key_of_zero_opens_only_a_slot_whose_key_is_zero),
		TEST(each_unknown_packet_flag_is_rejected),
		TEST(each_other_version_is_rejected),
		TEST(each_reserved_bit_of_a_packet_is_rejected),
		TEST(ticket_opens_in_place_of_the_key),
		TEST(slot_that_demands_a_ticket_rejects_its_own_key),
		TEST(metadata_longer_than_60_bytes_is_rejected),
		TEST(packet_outside_the_area_by_one_byte_is_rejected),
		TEST(packet_whose_end_wraps_is_rejected),
		TEST(metadata_index_out_of_range_by_one_is_rejected),
		TEST(slot_without_entries_takes_single_packets_without_metadata),
		TEST(slot_without_entries_rejects_what_would_have_to_be_counted),
		TEST(fast_packet_is_admitted_with_and_without_entries),
		TEST(fast_packet_that_is_not_single_is_rejected),
		TEST(fast_packet_with_metadata_is_rejected),
		TEST(fast_packet_with_a_metadata_index_is_rejected),
		TEST(fast_packet_with_a_delta_is_rejected),
		TEST(wrong_key_is_all_that_is_told_whatever_else_is_wrong),
		TEST(dead_slot_is_all_that_is_told_whatever_else_is_wrong),
		TEST(format_comes_before_bounds_and_bounds_before_metadata),

		TEST(payload_lands_at_its_offset_and_nowhere_else),
		TEST(payload_as_long_as_the_area_fills_it_exactly),
		TEST(empty_packet_writes_nothing_but_is_told),
		TEST(pieces_are_gathered_from_the_skipped_byte_on),
		TEST(what_cannot_be_read_is_not_told),
		TEST(source_and_destination_may_overlap),

		TEST(metadata_lands_in_its_entry_and_no_other),
		TEST(packet_without_metadata_leaves_the_user_bytes_alone),
		TEST(metadata_of_the_first_packet_survives_the_later_ones),

		TEST(single_packet_is_told_without_counting),
		TEST(single_packet_of_a_group_is_counted),
		TEST(last_packet_with_delta_0_of_several_does_not_tell_early),
		TEST(packets_are_counted_in_any_order_and_told_at_the_end),
		TEST(accumulator_wraps_at_2_to_the_32),
		TEST(entries_count_apart_from_each_other),
		TEST(silent_packet_neither_counts_nor_tells),
		TEST(silent_packet_may_carry_metadata),

		TEST(notification_names_slot_entry_source_and_length),
		TEST(notification_of_several_packets_is_not_marked_single),
		TEST(notification_of_a_slot_without_entries_points_nowhere),
		TEST(fast_word_travels_in_the_notification),
		TEST(silent_fast_packet_tells_nothing),
		TEST(slot_without_nq_counts_but_tells_nobody),
		TEST(lost_notification_is_counted_with_slot_and_terminus),

		TEST(quiet_packet_is_told_without_a_wake_and_the_next_one_with),
		TEST(packet_that_completes_the_message_decides_about_the_wake),

		TEST(of_a_brief_sender_what_is_to_be_discarded_is_left),
		TEST(home_is_told_once_of_each_packet_that_is_discarded),
		TEST(home_is_told_nothing_of_packets_that_land),
		TEST(rejected_packet_changes_nothing_but_the_counters),
		TEST(rejects_are_counted_by_reason_with_slot_and_terminus),
		TEST(slot_number_beyond_the_table_is_rejected),
		TEST(slot_that_was_never_made_is_rejected),
		TEST(rekeyed_slot_rejects_the_old_key_and_takes_the_new),
		TEST(data_and_metadata_are_there_before_count_and_notification),
		TEST(slot_is_left_after_every_packet),

		TEST(plain_way_takes_what_the_other_one_takes),
		TEST(plain_way_is_for_slots_that_a_key_alone_opens),
		TEST(plain_way_takes_one_message_an_arming),
	};

	return cmocka_run_group_tests_name("rx", tests, NULL, NULL);
}
