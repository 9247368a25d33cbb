// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tickets that are descriptors (H 6.5): what an imported one opens, and that
 * neither a key nor anything in a request takes its place.
 */
#include "unit_world.h"

#define INDEX	2		/* of the ticket in the key table */
#define FROM	300		/* what it is for */
#define BYTES	500

static struct hml_slot *slot;
static struct hml_ticket *ticket;

static int setup(void **state)
{
	world_setup(state);
	slot = &hosts[1].slots[1];
	ticket = &snd.tickets[INDEX];
	*ticket = (struct hml_ticket) {
		.key = WORLD_TICKET,
		.base = FROM,
		.length = BYTES,
		.host = 1,
		.slot = 1,
	};
	return 0;
}

/* By the ticket. No key, and neither host nor slot. */
static struct hamlyn_trb by_ticket(u64 offset, u64 length)
{
	return (struct hamlyn_trb) {
		.host = 12345,
		.slot = 54321,
		.flags = HAMLYN_TRB_TICKET,
		.ticket = INDEX,
		.offset = offset,
		.length = length,
	};
}

static s32 send(struct hamlyn_trb trb)
{
	return world_send(&snd, &trb);
}

static u64 rejects(int reason)
{
	return snd.stats.rejects[reason];
}

/* ---- access -------------------------------------------------------------- */

static void ticket_opens_the_slot_without_its_key(void **state)
{
	(void)state;
	assert_int_equal(send(by_ticket(FROM, 8)), 0);
	world_assert_landed(1, 1, FROM, 8);
	assert_int_equal(world_told(1), 1);
	assert_int_equal(world_rejected, 0);
}

static void ticket_opens_a_normal_slot_with_any_key(void **state)
{
	static const u64 keys[] = { 0, 1, WORLD_KEY, ~WORLD_KEY, U64_MAX };
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		struct hamlyn_trb trb = by_ticket(FROM, 8);

		trb.key = keys[i];
		assert_int_equal(send(trb), 0);
		assert_int_equal(world_told(1), i + 1);
	}
}

static void host_and_slot_are_the_tickets_and_not_the_requests(void **state)
{
	struct hamlyn_trb trb;
	u32 host, number;

	for (host = 0; host < WORLD_HOSTS; host++) {
		for (number = 1; number < WORLD_SLOTS; number++) {
			ticket->host = host;
			ticket->slot = number;
			trb = by_ticket(FROM, 8);
			trb.host = !host;
			trb.slot = number % 3 + 1;
			trb.key = WORLD_KEY;	/* it would get in there */
			assert_int_equal(send(trb), 0);
			world_assert_landed(host, number, FROM, 8);
			world_assert_landed(!host, number % 3 + 1, 0, 0);
			world_teardown(state);
			setup(state);
		}
	}
}

static void ticket_of_a_host_that_is_gone_reaches_nobody(void **state)
{
	struct hamlyn_trb trb = by_ticket(FROM, 8);

	(void)state;
	trb.host = 1;
	ticket->host = WORLD_HOSTS;
	assert_int_equal(send(trb), -EHOSTUNREACH);
	trb.length = 3 * WORLD_PACKET;
	assert_int_equal(send(trb), -EHOSTUNREACH);
	world_assert_nothing_landed();
}

static void ticket_works_for_every_kind_of_message(void **state)
{
	const struct hamlyn_fragment f = { .length = 3 * WORLD_PACKET + 1 };
	struct hamlyn_trb trb;
	static u8 source[4 * WORLD_PACKET];
	u32 i;

	(void)state;
	assert_int_equal(send(by_ticket(FROM, 3 * WORLD_PACKET + 1)), 0);
	world_assert_landed(1, 1, FROM, 3 * WORLD_PACKET + 1);
	assert_int_equal(world_told(1), 1);
	/* Fast. */
	world_clear(1, 1);
	trb = by_ticket(FROM, WORLD_PACKET);
	trb.flags |= HAMLYN_TRB_FAST;
	trb.meta_index = HAMLYN_META_FAST;
	trb.word = 99;
	assert_int_equal(send(trb), 0);
	world_assert_landed(1, 1, FROM, WORLD_PACKET);
	assert_int_equal(hosts[1].nq.entries[1].data, 99);
	/* Silent. */
	world_clear(1, 1);
	trb = by_ticket(FROM, 3 * WORLD_PACKET);
	trb.flags |= HAMLYN_TRB_NO_NOTIFY;
	assert_int_equal(send(trb), 0);
	world_assert_landed(1, 1, FROM, 3 * WORLD_PACKET);
	assert_int_equal(world_told(1), 2);
	/* Of fragments. */
	for (i = 0; i < sizeof(source); i++)
		source[i] = world_byte(i);
	world_clear(1, 1);
	snd.tags[0].mem = unit_ref(source);
	snd.tags[0].length = sizeof(source);
	trb = by_ticket(FROM, f.length);
	trb.fragments = 1;
	world_post(&snd, &trb);
	memcpy(snd.entries + 3 * WORLD_ENTRY + sizeof(trb), &f, sizeof(f));
	world_run(&snd, 100);
	world_assert_landed(1, 1, FROM, f.length);
	assert_int_equal(world_told(1), 3);
	assert_int_equal(world_rejected, 0);
}

/* ---- range --------------------------------------------------------------- */

static const struct {
	u64 base, length;		/* of the ticket */
	u64 offset, bytes;		/* of the message */
	s32 status;
} ranges[] = {
	{ FROM, BYTES, FROM, BYTES, 0 },
	{ FROM, BYTES, FROM, 0, 0 },
	{ FROM, BYTES, FROM + BYTES - 1, 1, 0 },
	{ FROM, BYTES, FROM + BYTES, 0, 0 },
	{ FROM, BYTES, FROM + 1, BYTES - 1, 0 },
	{ FROM, BYTES, FROM - 1, 1, -ERANGE },
	{ FROM, BYTES, FROM - 1, 0, -ERANGE },
	{ FROM, BYTES, FROM - 1, BYTES + 1, -ERANGE },
	{ FROM, BYTES, FROM, BYTES + 1, -ERANGE },
	{ FROM, BYTES, FROM + 1, BYTES, -ERANGE },
	{ FROM, BYTES, FROM + BYTES, 1, -ERANGE },
	{ FROM, BYTES, FROM + BYTES + 1, 0, -ERANGE },
	{ FROM, BYTES, 0, 1, -ERANGE },
	{ FROM, BYTES, U64_MAX, 0, -ERANGE },
	{ FROM, BYTES, U64_MAX, 1, -ERANGE },
	{ FROM, BYTES, U64_MAX - 299, FROM, -ERANGE },
	{ FROM, BYTES, U64_MAX - 10, FROM + 20, -ERANGE },
	{ 0, BYTES, U64_MAX, 1, -ERANGE },
	{ 0, BYTES, U64_MAX, 2, -ERANGE },
	{ 0, BYTES, BYTES - 1, 1, 0 },
	{ 0, BYTES, BYTES - 1, 2, -ERANGE },
	{ 0, WORLD_LENGTH, WORLD_LENGTH - 1, 1, 0 },
	{ FROM, 0, FROM, 0, 0 },
	{ FROM, 0, FROM, 1, -ERANGE },
	/* One that ends at the top of what can be named. */
	{ U64_MAX - 9, 9, U64_MAX - 9, 9, 0 },
	{ U64_MAX - 9, 9, U64_MAX - 9, 10, -ERANGE },
	{ U64_MAX - 9, 9, U64_MAX - 10, 1, -ERANGE },
	{ U64_MAX - 9, 9, 0, 1, -ERANGE },
	/* No ticket is made like this; what is before its base is outside. */
	{ FROM, U64_MAX, FROM - 1, 0, -ERANGE },
	{ FROM, U64_MAX, 0, 1, -ERANGE },
};

static void set_range(u32 i)
{
	ticket->base = ranges[i].base;
	ticket->length = ranges[i].length;
}

/* From the longest there is to a byte: the range decides, not the cutting. */
static void message_outside_the_tickets_range_by_a_byte_is_refused(void **state)
{
	static const u32 sizes[] = { 1024, 64, 63, 7, 1 };
	u32 i, k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(sizes); k++) {
		for (i = 0; i < ARRAY_SIZE(ranges); i++) {
			u64 packets = snd.stats.packets;
			s32 status;

			snd.nic->packet_size = sizes[k];
			set_range(i);
			status = send(by_ticket(ranges[i].offset,
						ranges[i].bytes));
			assert_int_equal(status, ranges[i].status);
			if (status)
				assert_int_equal(snd.stats.packets, packets);
			hosts[1].nq.control->consumer = world_told(1);
		}
	}
	/* What the ticket is for beyond the area is the slot's own business. */
	assert_true(unit_all(hosts[1].area[1], UNIT_GUARD, WORLD_BASE));
	assert_true(unit_all(hosts[1].area[1] + WORLD_BASE + WORLD_LENGTH,
			     UNIT_GUARD,
			     WORLD_AREA - WORLD_BASE - WORLD_LENGTH));
}

static void fast_message_outside_the_tickets_range_is_refused(void **state)
{
	u32 i;

	(void)state;
	snd.nic->packet_size = 1024;
	for (i = 0; i < ARRAY_SIZE(ranges); i++) {
		struct hamlyn_trb trb = by_ticket(ranges[i].offset,
						  ranges[i].bytes);

		trb.flags |= HAMLYN_TRB_FAST;
		trb.meta_index = HAMLYN_META_FAST;
		set_range(i);
		assert_int_equal(send(trb), ranges[i].status);
		hosts[1].nq.control->consumer = world_told(1);
	}
}

static void refused_message_sends_no_packet_of_what_would_be_inside(void **state)
{
	(void)state;
	assert_int_equal(send(by_ticket(FROM, BYTES + 1)), -ERANGE);
	assert_int_equal(send(by_ticket(FROM - 1, BYTES)), -ERANGE);
	assert_int_equal(snd.stats.packets, 0);
	assert_int_equal(snd.t.status->failed, 2);
	world_assert_nothing_landed();
}

static void wider_ticket_than_the_area_does_not_widen_the_area(void **state)
{
	(void)state;
	ticket->base = 0;
	ticket->length = U64_MAX;
	assert_int_equal(send(by_ticket(WORLD_LENGTH, 1)), 0);
	assert_int_equal(send(by_ticket(U64_MAX - 1, 1)), 0);
	assert_int_equal(rejects(HAMLYN_REJECT_BOUNDS), 2);
	world_assert_nothing_landed();
}

/* ---- the key table ------------------------------------------------------- */

static void index_without_a_ticket_is_refused(void **state)
{
	static const u32 wrong[] = {
		0, 1, 3, 4, 5, HAMLYN_MAX_TICKETS, 1U << 31, UINT32_MAX,
	};
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		struct hamlyn_trb trb = by_ticket(FROM, 8);

		trb.ticket = wrong[i];
		trb.host = 1;
		trb.slot = 1;
		trb.key = WORLD_KEY;
		assert_int_equal(send(trb), -ENOKEY);
		trb.length = 3 * WORLD_PACKET;
		assert_int_equal(send(trb), -ENOKEY);
	}
	assert_int_equal(snd.stats.packets, 0);
	world_assert_nothing_landed();
}

static void terminus_without_a_key_table_has_no_tickets(void **state)
{
	struct hamlyn_trb trb = by_ticket(FROM, 8);

	(void)state;
	snd.t.tickets = NULL;
	snd.t.ticket_count = 0;
	assert_int_equal(send(trb), -ENOKEY);
	trb.ticket = 0;
	assert_int_equal(send(trb), -ENOKEY);
}

static void table_ends_where_it_ends(void **state)
{
	struct hamlyn_trb trb = by_ticket(FROM, 8);
	struct hml_ticket *table = unit_zalloc(3 * sizeof(*table));

	(void)state;
	table[2] = *ticket;
	snd.t.tickets = table;
	snd.t.ticket_count = 3;
	assert_int_equal(send(trb), 0);
	trb.ticket = 3;
	assert_int_equal(send(trb), -ENOKEY);
	snd.t.ticket_count = 2;
	trb.ticket = 2;
	assert_int_equal(send(trb), -ENOKEY);
	free(table);
}

static void dropped_ticket_is_refused(void **state)
{
	(void)state;
	assert_int_equal(send(by_ticket(FROM, 8)), 0);
	memset(ticket, 0, sizeof(*ticket));
	assert_int_equal(send(by_ticket(0, 0)), -ENOKEY);
	/* Only its key tells. */
	*ticket = (struct hml_ticket) { 0, 0, U64_MAX, 1, 1 };
	assert_int_equal(send(by_ticket(FROM, 8)), -ENOKEY);
	assert_int_equal(world_told(1), 1);
}

/* The message under way has its copy: as with a binding (H 2.3). */
static void ticket_dropped_in_the_middle_is_for_the_next_message(void **state)
{
	struct hamlyn_trb trb = by_ticket(FROM, 3 * WORLD_PACKET);

	(void)state;
	world_post(&snd, &trb);
	world_run(&snd, 1);
	memset(ticket, 0, sizeof(*ticket));
	world_run(&snd, 100);
	world_assert_landed(1, 1, FROM, 3 * WORLD_PACKET);
	assert_int_equal(send(trb), -ENOKEY);
}

static void ticket_without_its_flag_is_malformed(void **state)
{
	struct hamlyn_trb trb = world_request(8);
	u32 i;

	(void)state;
	for (i = 0; i < 32; i++) {
		trb.ticket = 1U << i;
		assert_int_equal(send(trb), -EINVAL);
	}
	trb.ticket = 0;
	assert_int_equal(send(trb), 0);
}

/* ---- slots that demand one ----------------------------------------------- */

static void right_key_without_a_ticket_does_not_open_a_ticket_only_slot(void **state)
{
	struct hamlyn_trb trb = world_request(8);

	(void)state;
	slot->flags = HAMLYN_SLOT_TICKET_ONLY;
	assert_int_equal(send(trb), 0);
	trb.length = 3 * WORLD_PACKET;
	assert_int_equal(send(trb), 0);
	trb = world_request(8);
	trb.flags = HAMLYN_TRB_FAST;
	trb.meta_index = HAMLYN_META_FAST;
	assert_int_equal(send(trb), 0);
	trb = world_request(8);
	trb.flags = HAMLYN_TRB_NO_NOTIFY;
	assert_int_equal(send(trb), 0);
	/* Neither does the ticket key, as a key. */
	trb = world_request(8);
	trb.key = WORLD_TICKET;
	assert_int_equal(send(trb), 0);
	assert_int_equal(rejects(HAMLYN_REJECT_TICKET), 7);
	assert_int_equal(slot->rejects[HAMLYN_REJECT_TICKET], 7);
	world_assert_nothing_landed();
	assert_int_equal(send(by_ticket(FROM, 8)), 0);
	world_assert_landed(1, 1, FROM, 8);
}

static void wrong_key_at_a_ticket_only_slot_is_told_from_nothing(void **state)
{
	struct hamlyn_trb trb = world_request(8);

	(void)state;
	slot->flags = HAMLYN_SLOT_TICKET_ONLY;
	trb.key++;
	send(trb);
	assert_int_equal(rejects(HAMLYN_REJECT_TICKET), 1);
	trb.offset = U64_MAX;
	send(trb);
	assert_int_equal(rejects(HAMLYN_REJECT_TICKET), 2);
	slot->mode = HAMLYN_SLOT_PARANOID;
	send(trb);
	assert_int_equal(rejects(HAMLYN_REJECT_TICKET), 3);
	world_assert_nothing_landed();
}

static void ticket_key_is_no_key_of_an_ordinary_slot(void **state)
{
	struct hamlyn_trb trb = world_request(8);

	(void)state;
	trb.key = WORLD_TICKET;
	send(trb);
	assert_int_equal(rejects(HAMLYN_REJECT_KEY), 1);
	world_assert_nothing_landed();
}

static void ticket_of_another_slot_does_not_open_this_one(void **state)
{
	u32 bit;

	(void)state;
	for (bit = 0; bit < 64; bit++) {
		slot->ticket_key = WORLD_TICKET ^ 1ULL << bit;
		assert_int_equal(send(by_ticket(FROM, 8)), 0);
		assert_int_equal(rejects(HAMLYN_REJECT_KEY), bit + 1);
	}
	world_assert_nothing_landed();
}

/* It is not even a second try: the key of the request is right. */
static void void_ticket_with_the_right_key_is_rejected(void **state)
{
	struct hamlyn_trb trb = by_ticket(FROM, 8);

	(void)state;
	trb.key = WORLD_KEY;
	slot->ticket_key++;
	assert_int_equal(send(trb), 0);
	assert_int_equal(rejects(HAMLYN_REJECT_KEY), 1);
	world_assert_nothing_landed();
}

static void rekeying_makes_tickets_void_at_once(void **state)
{
	struct hamlyn_trb trb = by_ticket(FROM, 3 * WORLD_PACKET);

	(void)state;
	world_post(&snd, &trb);
	world_run(&snd, 1);
	slot->ticket_key = 5;
	world_run(&snd, 100);
	world_assert_landed(1, 1, FROM, WORLD_PACKET);
	assert_int_equal(rejects(HAMLYN_REJECT_KEY), 2);
	assert_int_equal(snd.t.status->failed, 0);
	ticket->key = 5;
	world_clear(1, 1);
	hosts[1].entries[1]->accumulator = 0;
	assert_int_equal(send(by_ticket(FROM, 8)), 0);
	world_assert_landed(1, 1, FROM, 8);
}

static void ticket_of_a_destroyed_slot_opens_nothing(void **state)
{
	(void)state;
	slot->live = 0;
	assert_int_equal(send(by_ticket(FROM, 8)), 0);
	assert_int_equal(rejects(HAMLYN_REJECT_SLOT), 1);
	world_assert_nothing_landed();
}

/* ---- paranoid modes ------------------------------------------------------ */

static void in_the_paranoid_modes_the_secondary_key_counts_as_well(void **state)
{
	struct hamlyn_metadata *m = hosts[1].entries[1];
	u32 mode, only;

	(void)state;
	m->high = WORLD_LENGTH;
	m->key = 42;
	for (mode = HAMLYN_SLOT_PARANOID;
	     mode <= HAMLYN_SLOT_PARANOID_ONE_SHOT; mode++) {
		for (only = 0; only < 2; only++) {
			struct hamlyn_trb trb = by_ticket(FROM, 8);
			u64 had = rejects(HAMLYN_REJECT_KEY);
			u32 told = world_told(1);

			slot->mode = mode;
			slot->flags = only ? HAMLYN_SLOT_TICKET_ONLY : 0;
			m->state = HAMLYN_META_ARMED;
			send(trb);
			trb.key = WORLD_KEY;
			send(trb);
			trb.key = WORLD_TICKET;
			send(trb);
			assert_int_equal(rejects(HAMLYN_REJECT_KEY), had + 3);
			assert_int_equal(world_told(1), told);
			world_assert_landed(1, 1, 0, 0);
			trb.key = 42;
			send(trb);
			assert_int_equal(world_told(1), told + 1);
			world_assert_landed(1, 1, FROM, 8);
			world_clear(1, 1);
		}
	}
}

static void in_the_paranoid_modes_the_secondary_limits_count_as_well(void **state)
{
	struct hamlyn_metadata *m = hosts[1].entries[1];
	struct hamlyn_trb trb = by_ticket(FROM, 8);

	(void)state;
	slot->mode = HAMLYN_SLOT_PARANOID;
	m->key = 42;
	m->low = FROM + 1;
	m->high = WORLD_LENGTH;
	trb.key = 42;
	send(trb);
	assert_int_equal(rejects(HAMLYN_REJECT_BOUNDS), 1);
	world_assert_nothing_landed();
}

static void secondary_key_alone_does_not_open_a_ticket_only_slot(void **state)
{
	struct hamlyn_metadata *m = hosts[1].entries[1];
	struct hamlyn_trb trb = world_request(8);

	(void)state;
	slot->mode = HAMLYN_SLOT_PARANOID;
	slot->flags = HAMLYN_SLOT_TICKET_ONLY;
	m->key = 42;
	m->high = WORLD_LENGTH;
	trb.key = 42;
	send(trb);
	assert_int_equal(rejects(HAMLYN_REJECT_TICKET), 1);
	world_assert_nothing_landed();
}

/* ---- forgery ------------------------------------------------------------- */

/* Whatever is in a request without the flag, the packet has no ticket. */
static void no_request_forges_a_ticket(void **state)
{
	u64 rng = unit_seed();
	u32 sent = 0;
	u32 i;

	(void)state;
	slot->flags = HAMLYN_SLOT_TICKET_ONLY;
	slot->ticket_key = 0;		/* what a packet without one carries */
	hosts[1].slots[2] = *slot;
	for (i = 0; i < 20000; i++) {
		struct hamlyn_trb trb;

		unit_random_fill(&rng, &trb, sizeof(trb));
		trb.host = 1;
		trb.slot = 1 + unit_below(&rng, 2);
		trb.length = unit_below(&rng, 3) * WORLD_PACKET;
		trb.offset = 0;
		trb.fragments = 0;
		trb.meta_length &= 63;
		trb.meta_index = 0;
		trb.word = 0;
		trb.ticket = 0;
		trb.flags = unit_below(&rng, 2) ? 1U << unit_below(&rng, 32) :
						  unit_below(&rng, 64);
		if (trb.flags & HAMLYN_TRB_TICKET)
			trb.ticket = INDEX + 1;	/* nothing there */
		sent += !send(trb);
	}
	assert_true(sent > 1000);
	assert_true(rejects(HAMLYN_REJECT_TICKET) > 1000);
	assert_int_equal(rejects(HAMLYN_REJECT_TICKET), snd.stats.packets);
	world_assert_nothing_landed();
}

static void request_with_the_packets_flag_is_malformed(void **state)
{
	struct hamlyn_trb trb = world_request(8);

	(void)state;
	trb.flags = HAMLYN_PACKET_TICKET;
	assert_int_equal(send(trb), -EINVAL);
}

static void headers_of_ordinary_messages_carry_no_ticket_key(void **state)
{
	struct hamlyn_trb trb = world_request(8);
	u64 key = 7;

	(void)state;
	assert_int_equal(take_ticket(&snd.t, &trb, &key), 0);
	assert_int_equal(key, 0);
	assert_int_equal(trb.host, 1);
	assert_int_equal(trb.slot, 1);
	trb = by_ticket(FROM, 8);
	assert_int_equal(take_ticket(&snd.t, &trb, &key), 0);
	assert_int_equal(key, WORLD_TICKET);
}

/* Between two of its own, a message by key is by key. */
static void ticket_of_one_message_is_not_the_next_ones(void **state)
{
	struct hamlyn_trb trb = world_request(3 * WORLD_PACKET);

	(void)state;
	slot->flags = HAMLYN_SLOT_TICKET_ONLY;
	send(by_ticket(FROM, 3 * WORLD_PACKET));
	assert_int_equal(world_told(1), 1);
	send(trb);
	trb.length = 8;
	send(trb);
	assert_int_equal(rejects(HAMLYN_REJECT_TICKET), 4);
	assert_int_equal(world_told(1), 1);
	world_assert_landed(1, 1, FROM, 3 * WORLD_PACKET);
}

/* ---- hml_slot_opens() ---------------------------------------------------- */

static int opens(u64 key, u32 meta_index)
{
	return hml_slot_opens(&hosts[1].nic, slot, key, meta_index, false);
}

static void no_key_opens_no_slot(void **state)
{
	(void)state;
	assert_int_equal(hml_slot_opens(&hosts[1].nic, NULL, WORLD_KEY, 0, false),
			 HAMLYN_REJECT_SLOT);
	slot->live = 0;
	assert_int_equal(opens(WORLD_KEY, 0), HAMLYN_REJECT_SLOT);
	slot->mode = HAMLYN_SLOT_PARANOID;
	assert_int_equal(opens(WORLD_KEY, WORLD_META), HAMLYN_REJECT_SLOT);
}

static void slots_key_and_no_other_opens_a_normal_slot(void **state)
{
	u32 bit;

	(void)state;
	assert_int_equal(opens(WORLD_KEY, 0), -1);
	/* The entry is of no interest there. */
	assert_int_equal(opens(WORLD_KEY, UINT32_MAX), -1);
	for (bit = 0; bit < 64; bit++)
		assert_int_equal(opens(WORLD_KEY ^ 1ULL << bit, 0),
				 HAMLYN_REJECT_KEY);
	assert_int_equal(opens(WORLD_TICKET, 0), HAMLYN_REJECT_KEY);
	slot->key = 1;
	assert_int_equal(opens(WORLD_KEY, 0), HAMLYN_REJECT_KEY);
}

static void ticket_key_and_nothing_else_opens_as_a_ticket(void **state)
{
	u32 mode;

	(void)state;
	for (mode = 0; mode <= HAMLYN_SLOT_PARANOID_ONE_SHOT; mode++) {
		slot->mode = mode;
		assert_int_equal(hml_slot_opens(&hosts[1].nic, slot,
						WORLD_TICKET, 0, true), -1);
		assert_int_equal(hml_slot_opens(&hosts[1].nic, slot, WORLD_KEY,
						0, true), HAMLYN_REJECT_KEY);
		assert_int_equal(hml_slot_opens(&hosts[1].nic, slot, 0, 0,
						true), HAMLYN_REJECT_KEY);
	}
	slot->ticket_key = 0;
	assert_int_equal(hml_slot_opens(&hosts[1].nic, slot, 0, 0, true),
			 HAMLYN_REJECT_KEY);
}

static void key_does_not_open_a_slot_that_demands_a_ticket(void **state)
{
	(void)state;
	slot->flags = HAMLYN_SLOT_TICKET_ONLY;
	assert_int_equal(opens(WORLD_KEY, 0), HAMLYN_REJECT_TICKET);
	assert_int_equal(opens(WORLD_TICKET, 0), HAMLYN_REJECT_TICKET);
	assert_int_equal(hml_slot_opens(&hosts[1].nic, slot, WORLD_TICKET, 0,
					true), -1);
}

static void entrys_key_and_no_other_opens_a_paranoid_slot(void **state)
{
	u32 mode, i;

	(void)state;
	for (i = 0; i + 1 < WORLD_META; i++)
		hosts[1].entries[1][i].key = 100 + i;
	for (mode = HAMLYN_SLOT_PARANOID;
	     mode <= HAMLYN_SLOT_PARANOID_ONE_SHOT; mode++) {
		slot->mode = mode;
		for (i = 0; i + 1 < WORLD_META; i++) {
			assert_int_equal(opens(100 + i, i), -1);
			assert_int_equal(opens(101 + i, i), HAMLYN_REJECT_KEY);
			assert_int_equal(opens(WORLD_KEY, i), HAMLYN_REJECT_KEY);
		}
		/* Granted to nobody, and 0 is no key. */
		assert_int_equal(opens(0, WORLD_META - 1), HAMLYN_REJECT_KEY);
		assert_int_equal(opens(0, 0), HAMLYN_REJECT_KEY);
		assert_int_equal(opens(100, WORLD_META), HAMLYN_REJECT_METADATA);
		assert_int_equal(opens(100, UINT32_MAX), HAMLYN_REJECT_METADATA);
	}
}

static void looking_whether_a_key_opens_changes_nothing(void **state)
{
	struct hml_slot before = *slot;

	(void)state;
	opens(WORLD_KEY, 0);
	opens(1, 0);
	assert_memory_equal(slot, &before, sizeof(before));
	assert_int_equal(world_rejected, 0);
	world_assert_nothing_landed();
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(ticket_opens_the_slot_without_its_key),
		TEST(ticket_opens_a_normal_slot_with_any_key),
		TEST(host_and_slot_are_the_tickets_and_not_the_requests),
		TEST(ticket_of_a_host_that_is_gone_reaches_nobody),
		TEST(ticket_works_for_every_kind_of_message),

		TEST(message_outside_the_tickets_range_by_a_byte_is_refused),
		TEST(fast_message_outside_the_tickets_range_is_refused),
		TEST(refused_message_sends_no_packet_of_what_would_be_inside),
		TEST(wider_ticket_than_the_area_does_not_widen_the_area),

		TEST(index_without_a_ticket_is_refused),
		TEST(terminus_without_a_key_table_has_no_tickets),
		TEST(table_ends_where_it_ends),
		TEST(dropped_ticket_is_refused),
		TEST(ticket_dropped_in_the_middle_is_for_the_next_message),
		TEST(ticket_without_its_flag_is_malformed),

		TEST(right_key_without_a_ticket_does_not_open_a_ticket_only_slot),
		TEST(wrong_key_at_a_ticket_only_slot_is_told_from_nothing),
		TEST(ticket_key_is_no_key_of_an_ordinary_slot),
		TEST(ticket_of_another_slot_does_not_open_this_one),
		TEST(void_ticket_with_the_right_key_is_rejected),
		TEST(rekeying_makes_tickets_void_at_once),
		TEST(ticket_of_a_destroyed_slot_opens_nothing),

		TEST(in_the_paranoid_modes_the_secondary_key_counts_as_well),
		TEST(in_the_paranoid_modes_the_secondary_limits_count_as_well),
		TEST(secondary_key_alone_does_not_open_a_ticket_only_slot),

		TEST(no_request_forges_a_ticket),
		TEST(request_with_the_packets_flag_is_malformed),
		TEST(headers_of_ordinary_messages_carry_no_ticket_key),
		TEST(ticket_of_one_message_is_not_the_next_ones),

		TEST(no_key_opens_no_slot),
		TEST(slots_key_and_no_other_opens_a_normal_slot),
		TEST(ticket_key_and_nothing_else_opens_as_a_ticket),
		TEST(key_does_not_open_a_slot_that_demands_a_ticket),
		TEST(entrys_key_and_no_other_opens_a_paranoid_slot),
		TEST(looking_whether_a_key_opens_changes_nothing),
	};

	return cmocka_run_group_tests_name("ticket", tests, NULL, NULL);
}
