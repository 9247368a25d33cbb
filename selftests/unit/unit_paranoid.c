// SPDX-License-Identifier: GPL-2.0-only
/*
 * The paranoid modes (H 2.7): secondary key and limits, and one shot. The
 * appending is this program's own; packets can be stopped half way.
 */
#include <pthread.h>
#include <sched.h>
#include <time.h>

#include "unit.h"

/* Run when a packet has been placed and not yet counted. */
static void (*half_way)(void);

static u32 unit_add_return(u32 *p, u32 v)
{
	return __atomic_add_fetch(p, v, __ATOMIC_SEQ_CST);
}

static void unit_write(const struct hml_port *port, hml_mem_t mem, u64 offset,
		       const void *from, u32 n)
{
	void (*hook)(void) = half_way;

	hml_mem_write(port, mem, offset, from, n);
	half_way = NULL;
	if (hook)
		hook();
}

/* Nothing that is in pieces can be read. */
static bool unreadable;

static bool unit_copy(const struct hml_port *port, hml_mem_t to_mem, u64 to,
		      hml_mem_t from_mem, u64 from, u32 n)
{
	return !unreadable && hml_mem_copy(port, to_mem, to, from_mem, from, n);
}

/* Races that are still to be lost: another one has changed the word. */
static u32 lose;

/* Run when a packet has been checked and is about to come in. */
static void (*at_the_door)(void);

static u32 unit_cmpxchg(u32 *p, u32 old, u32 new_value)
{
	void (*hook)(void) = at_the_door;

	at_the_door = NULL;
	if (hook)
		hook();
	if (!lose)
		return hml_atomic_cmpxchg(p, old, new_value);
	lose--;
	return old + 1;
}

#define hml_atomic_cmpxchg	unit_cmpxchg
#define hml_mem_write	unit_write
#define hml_mem_copy	unit_copy
#undef HML_PORT_UNREADABLE
#define HML_PORT_UNREADABLE	1
#undef hml_atomic_add_return
#define hml_atomic_add_return(p, v)	unit_add_return(p, v)

#include "rx.c"

#define KEY	0x1111222233334444ULL
#define SECOND	0x5555666677778888ULL
#define LENGTH	1000
#define LOW	100
#define HIGH	300
#define ENTRY	1

static struct hml_nic nic;
static struct hml_slot slot;
static struct hamlyn_metadata *entries;
static struct hamlyn_metadata *m;
static struct hml_nq nq;
static struct hml_stats stats;
static struct hml_sender sender = { .stats = &stats };
static u8 *area;
static u8 data[LENGTH];
static u32 told;
static struct hamlyn_nq_entry last;

bool hml_port_knew(const struct hml_nic *to, const struct hamlyn_packet *h,
		   const struct hml_sender *from)
{
	(void)to;
	(void)h;
	(void)from;
	return false;
}

void hml_guard_guess(struct hml_nic *to, struct hml_sender *from)
{
	(void)to;
	(void)from;
}

void hml_port_rejected(struct hml_nic *to, const struct hml_slot *s,
		       const struct hamlyn_packet *h, int reason,
		       const struct hml_sender *from)
{
	(void)to;
	(void)s;
	(void)h;
	(void)reason;
	(void)from;
}

bool hml_nq_append(struct hml_nic *to, struct hml_nq *queue,
		   struct hml_nq_place place,
		   const struct hamlyn_nq_entry *entry, bool wake)
{
	(void)to;
	(void)queue;
	(void)place;
	assert_true(wake);
	last = *entry;
	__atomic_add_fetch(&told, 1, __ATOMIC_SEQ_CST);
	return true;
}

static int setup(void **state)
{
	(void)state;
	area = unit_alloc(4096);
	entries = aligned_alloc(128, 4 * sizeof(*entries));
	memset(entries, 0, 4 * sizeof(*entries));
	memset(&stats, 0, sizeof(stats));
	memset(data, 7, sizeof(data));
	told = 0;
	lose = 0;
	half_way = NULL;
	at_the_door = NULL;
	unreadable = false;
	slot = (struct hml_slot) {
		.live = 1,
		.mode = HAMLYN_SLOT_PARANOID,
		.meta_count = 4,
		.key = KEY,
		.data = { .mem = unit_ref(area), .base = 1000, .length = LENGTH },
		.meta_mem = unit_ref(entries),
		.nq = unit_ref(&nq),
	};
	nic.port.slots = unit_ref(&slot);
	nic.port.slot_stride = sizeof(slot);
	nic.port.max_slots = 1;
	m = &entries[ENTRY];
	m->key = SECOND;
	m->low = LOW;
	m->high = HIGH;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	free(area);
	free(entries);
	return 0;
}

static struct hamlyn_packet packet(u64 offset, u32 length)
{
	return (struct hamlyn_packet) {
		.version = HAMLYN_PACKET_VERSION,
		.flags = HAMLYN_PACKET_SINGLE,
		.length = length,
		.meta_index = ENTRY,
		.key = SECOND,
		.offset = offset,
	};
}

static void receive(const struct hamlyn_packet *h)
{
	struct hml_payload payload = { .flat = data, .meta = data };

	hml_rx(&nic, h, &payload, &sender);
}

/* Received and told of, or rejected for @reason with nothing changed. */
static void expect(const struct hamlyn_packet *h, int reason)
{
	u64 before = reason < 0 ? 0 : stats.rejects[reason];
	u32 had = told;

	receive(h);
	if (reason < 0) {
		assert_int_equal(told, had + 1);
		return;
	}
	assert_int_equal(stats.rejects[reason], before + 1);
	assert_int_equal(told, had);
}

static void untouched(void)
{
	assert_true(unit_all(area, UNIT_GUARD, 4096));
}

static void secondary_key_supersedes_the_slots(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	h.key = KEY;
	expect(&h, HAMLYN_REJECT_KEY);
	untouched();
	h.key = SECOND;
	expect(&h, -1);
}

static void secondary_key_wrong_by_one_bit_is_rejected(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);
	u32 bit;

	(void)state;
	for (bit = 0; bit < 64; bit++) {
		h.key = SECOND ^ 1ULL << bit;
		expect(&h, HAMLYN_REJECT_KEY);
	}
	untouched();
}

static void each_entry_has_its_own_key(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	entries[2] = *m;
	entries[2].key = SECOND + 1;
	h.meta_index = 2;
	expect(&h, HAMLYN_REJECT_KEY);
	h.key = SECOND + 1;
	expect(&h, -1);
}

static void entry_without_a_key_lets_nobody_in(void **state)
{
	struct hamlyn_packet h = packet(0, 0);

	(void)state;
	h.meta_index = 0;
	h.key = 0;
	expect(&h, HAMLYN_REJECT_KEY);
}

static void packet_outside_the_secondary_limits_is_rejected(void **state)
{
	static const struct {
		u64 offset;
		u32 length;
		int reason;
	} cases[] = {
		{ LOW, HIGH - LOW, -1 },
		{ LOW, HIGH - LOW + 1, HAMLYN_REJECT_BOUNDS },
		{ LOW - 1, 1, HAMLYN_REJECT_BOUNDS },
		{ LOW - 1, HIGH - LOW + 1, HAMLYN_REJECT_BOUNDS },
		{ HIGH - 1, 1, -1 },
		{ HIGH - 1, 2, HAMLYN_REJECT_BOUNDS },
		{ HIGH, 0, -1 },
		{ HIGH, 1, HAMLYN_REJECT_BOUNDS },
		{ HIGH + 1, 0, HAMLYN_REJECT_BOUNDS },
		{ 0, 1, HAMLYN_REJECT_BOUNDS },
		{ U64_MAX, 1, HAMLYN_REJECT_BOUNDS },
	};
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		struct hamlyn_packet h = packet(cases[i].offset,
						cases[i].length);

		expect(&h, cases[i].reason);
	}
	assert_true(unit_all(area, UNIT_GUARD, 1000 + LOW));
	assert_true(unit_all(area + 1000 + HIGH, UNIT_GUARD, 500));
}

static void secondary_limits_do_not_widen_the_slots(void **state)
{
	struct hamlyn_packet h = packet(LENGTH - 1, 2);

	(void)state;
	m->low = 0;
	m->high = U64_MAX;
	expect(&h, HAMLYN_REJECT_BOUNDS);
	h = packet(LENGTH - 1, 1);
	expect(&h, -1);
}

static void limits_upside_down_let_nothing_in(void **state)
{
	struct hamlyn_packet h = packet(LOW + 50, 0);

	(void)state;
	m->low = LOW + 60;
	m->high = LOW + 40;
	expect(&h, HAMLYN_REJECT_BOUNDS);
}

static void fast_messages_have_no_entry_and_are_rejected(void **state)
{
	struct hamlyn_packet h = packet(LOW, 0);

	(void)state;
	h.flags |= HAMLYN_PACKET_FAST;
	h.meta_index = HAMLYN_META_FAST;
	expect(&h, HAMLYN_REJECT_METADATA);
	h.key = KEY;
	expect(&h, HAMLYN_REJECT_METADATA);
}

static void paranoid_entry_takes_message_after_message(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);
	u32 i;

	(void)state;
	for (i = 0; i < 5; i++)
		expect(&h, -1);
}

/* ---- one shot ------------------------------------------------------------- */

static void one_shot(void)
{
	slot.mode = HAMLYN_SLOT_PARANOID_ONE_SHOT;
	m->state = HAMLYN_META_ARMED;
}

static void one_shot_takes_one_message_an_arming(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);
	u32 i;

	(void)state;
	one_shot();
	for (i = 0; i < 3; i++) {
		expect(&h, -1);
		assert_int_equal(m->state, 0);
		memset(area, UNIT_GUARD, 4096);
		expect(&h, HAMLYN_REJECT_ONE_SHOT);
		untouched();
		m->state = HAMLYN_META_ARMED;
	}
}

static void entry_that_was_never_armed_is_closed(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	m->state = 0;
	expect(&h, HAMLYN_REJECT_ONE_SHOT);
	untouched();
}

static void silent_messages_are_rejected(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	h.flags |= HAMLYN_PACKET_NO_NOTIFY;
	expect(&h, HAMLYN_REJECT_FORMAT);
	untouched();
}

/* All but the last packet of a message: nobody is told. */
static void begin_message(struct hamlyn_packet *h)
{
	u32 i;

	h->flags = 0;
	h->delta = 1;
	for (i = 0; i < 3; i++) {
		receive(h);
		assert_int_equal(told, 0);
	}
	h->delta = -3;
}

static void several_packets_are_one_message(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	begin_message(&h);
	expect(&h, -1);
	expect(&h, HAMLYN_REJECT_ONE_SHOT);
}

static void several_packets_are_one_message_without_one_shot(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	begin_message(&h);
	expect(&h, -1);
	receive(&h);
	assert_int_equal(told, 1);
}

static void one_shot_tells_of_the_packet(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	h.source = 7;
	expect(&h, -1);
	assert_int_equal(last.source, 7);
	assert_int_equal(last.length, 8);
	assert_int_equal(last.flags, HAMLYN_NQE_SINGLE);
}

static void rejected_packets_leave_the_entry_armed(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	h.key++;
	expect(&h, HAMLYN_REJECT_KEY);
	h = packet(HIGH, 8);
	expect(&h, HAMLYN_REJECT_BOUNDS);
	assert_int_equal(m->state, HAMLYN_META_ARMED);
	h = packet(LOW, 8);
	expect(&h, -1);
}

/* A second message, whole, while the first is being placed. */
static void last_packet(void)
{
	struct hamlyn_packet h = packet(LOW + 50, 8);

	h.flags = 0;
	h.delta = -1;
	receive(&h);
	/* It is there, but the first may still be writing: not a word yet. */
	assert_int_equal(told, 0);
}

static void nobody_is_told_while_a_packet_is_landing(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	h.flags = 0;
	h.delta = 1;
	half_way = last_packet;
	receive(&h);
	assert_int_equal(m->accumulator, 0);
	assert_int_equal(told, 1);
	assert_int_equal(m->state, 0);
	expect(&h, HAMLYN_REJECT_ONE_SHOT);
}

/* Both of them, or a part of each, would be told of as one. */
static void another_message(void)
{
	struct hamlyn_packet h = packet(LOW + 50, 8);

	expect(&h, HAMLYN_REJECT_ONE_SHOT);
	h.flags = 0;
	h.delta = 3;
	expect(&h, HAMLYN_REJECT_ONE_SHOT);
	assert_true(unit_all(area + 1000 + LOW + 8, UNIT_GUARD, 100));
	assert_int_equal(m->accumulator, 0);
}

static void a_message_of_one_packet_is_alone_in_its_entry(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	half_way = another_message;
	expect(&h, -1);
	assert_int_equal(told, 1);
	assert_int_equal(m->state, 0);
	assert_int_equal(m->length, 8);
}

static void a_whole_message(void)
{
	struct hamlyn_packet h = packet(LOW + 50, 8);

	expect(&h, HAMLYN_REJECT_ONE_SHOT);
	assert_true(unit_all(area + 1000 + LOW + 8, UNIT_GUARD, 100));
}

static void a_message_of_one_packet_keeps_out_of_others(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	h.flags = 0;
	h.delta = 1;
	half_way = a_whole_message;
	receive(&h);
	assert_int_equal(m->state, HAMLYN_META_ARMED);
	assert_int_equal(m->length, 8);
	h.delta = -1;
	receive(&h);
	assert_int_equal(told, 1);
	assert_int_equal(m->length, 16);
}

/* The owner has thought better of it: the entry is somebody else's now. */
static void armed_for_another(void)
{
	m->state = 0;
	m->key = SECOND + 1;
	m->state = HAMLYN_META_ARMED;
}

static void packet_of_the_last_arming_does_not_enter_the_next(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	at_the_door = armed_for_another;
	expect(&h, HAMLYN_REJECT_KEY);
	untouched();
	assert_int_equal(m->state, HAMLYN_META_ARMED);
	h.key++;
	expect(&h, -1);
}

static void limits_of_another(void)
{
	m->state = 0;
	m->low = LOW + 1;
	m->state = HAMLYN_META_ARMED;
}

static void limits_are_those_of_the_arming_that_is_entered(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	at_the_door = limits_of_another;
	expect(&h, HAMLYN_REJECT_BOUNDS);
	untouched();
	assert_int_equal(m->state, HAMLYN_META_ARMED);
}

/* Whoever it is for has its last packet in, and is gone. */
static void message_complete(void)
{
	m->state |= HAMLYN_META_COMPLETE;
}

static void armed_and_used_by_another(void)
{
	armed_for_another();
	at_the_door = message_complete;
}

static void message_is_told_though_the_last_to_leave_was_refused(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	h.source = 7;
	h.flags = 0;
	h.delta = 1;
	at_the_door = armed_and_used_by_another;
	receive(&h);
	assert_int_equal(told, 1);
	assert_int_equal(stats.rejects[HAMLYN_REJECT_KEY], 1);
	assert_int_equal(m->state, 0);
	untouched();
	assert_int_equal(last.index, ENTRY);
	assert_int_equal(last.data, (u64)ENTRY * HAMLYN_METADATA_SIZE);
	assert_int_equal(last.source, 0);
	assert_int_equal(last.flags, 0);
}

static void nonsense_in_the_word_tells_nobody_else_anything(void **state)
{
	static const u32 words[] = { 1, 0x3fffffff, HAMLYN_META_COMPLETE,
		HAMLYN_META_ARMED | HAMLYN_META_COMPLETE,
		HAMLYN_META_ARMED | 5, 0xffffffff };
	struct hamlyn_packet h = packet(LOW, 8);
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(words); i++) {
		one_shot();
		m->state = words[i];
		receive(&h);
		receive(&h);
	}
	assert_int_equal(told, 0);
	assert_true(unit_all(area, UNIT_GUARD, 1000 + LOW));
	assert_true(unit_all(area + 1000 + HIGH, UNIT_GUARD, 500));
}

static void lost_race_for_the_word_is_run_again(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	h.flags = 0;
	lose = ONE_SHOT_TRIES - 1;
	expect(&h, -1);
	assert_int_equal(lose, 0);
	assert_int_equal(m->state, 0);
}

/* An owner that rewrites the word all the time keeps nobody busy for ever. */
static void entry_that_never_stands_still_lets_nobody_in(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	h.flags = 0;
	lose = ONE_SHOT_TRIES;
	expect(&h, HAMLYN_REJECT_ONE_SHOT);
	untouched();
	expect(&h, -1);
}

/* Who comes alone has lost it to somebody who is inside, or to the owner. */
static void lost_race_keeps_a_message_of_one_packet_out(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	lose = 1;
	expect(&h, HAMLYN_REJECT_ONE_SHOT);
	untouched();
	assert_int_equal(m->state, HAMLYN_META_ARMED);
	expect(&h, -1);
}

static void receive_pieces(const struct hamlyn_packet *h)
{
	struct hml_piece piece = { unit_ref(data), 0, LENGTH };
	struct hml_payload payload = { .piece = &piece };

	hml_rx(&nic, h, &payload, &sender);
}

/* It has entered, so it has to leave. A message of one packet may be tried again. */
static void message_that_cannot_be_read_leaves_its_entry(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	unreadable = true;
	receive_pieces(&h);
	assert_int_equal(told, 0);
	assert_int_equal(m->state, HAMLYN_META_ARMED);
	h.flags = 0;
	h.delta = 1;
	receive_pieces(&h);
	assert_int_equal(told, 0);
	assert_int_equal(m->state, HAMLYN_META_ARMED);
	assert_int_equal(m->accumulator, 0);
	assert_int_equal(m->length, 0);
	unreadable = false;
	h.flags = HAMLYN_PACKET_SINGLE;
	h.delta = 0;
	receive_pieces(&h);
	assert_int_equal(told, 1);
	assert_int_equal(m->state, 0);
}

static void message_that_cannot_be_read_is_not_counted(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	unreadable = true;
	receive_pieces(&h);
	h.flags = 0;
	h.delta = 1;
	receive_pieces(&h);
	assert_int_equal(told, 0);
	assert_int_equal(m->accumulator, 0);
}

static void rewrite_once(void)
{
	lose = 1;
}

static void message_of_one_packet_leaves_in_spite_of_a_lost_race(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	half_way = rewrite_once;
	receive(&h);
	assert_int_equal(told, 1);
	assert_int_equal(lose, 0);
	assert_int_equal(m->state, 0);
}

static void rewrite_for_ever(void)
{
	lose = UINT32_MAX;
}

static void entry_that_never_stands_still_tells_nobody(void **state)
{
	struct hamlyn_packet h = packet(LOW, 8);

	(void)state;
	one_shot();
	h.flags = 0;
	half_way = rewrite_for_ever;
	receive(&h);
	assert_int_equal(told, 0);
	assert_int_equal(lose, UINT32_MAX - ONE_SHOT_TRIES);
	assert_int_equal(stats.rejects[HAMLYN_REJECT_ONE_SHOT], 0);
}

static u32 enough;

static void *hammer(void *arg)
{
	struct hamlyn_packet h = packet(LOW, 8);
	struct hml_payload payload = { .flat = data };
	struct hml_sender mine = { .stats = arg };

	while (!smp_load_acquire(&enough))
		hml_rx(&nic, &h, &payload, &mine);
	return NULL;
}

static void an_arming_lets_exactly_one_notification_through(void **state)
{
	struct hml_stats each[3] = {};
	pthread_t threads[3];
	time_t end = time(NULL) + 30;
	u32 armed = 0;
	u32 i;

	(void)state;
	one_shot();
	armed++;
	enough = 0;
	for (i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, hammer, &each[i]);
	while (armed < 300 && time(NULL) < end) {
		if (READ_ONCE(told) != armed) {
			sched_yield();
			continue;
		}
		assert_int_equal(READ_ONCE(m->state), 0);
		armed++;
		smp_store_release(&m->state, HAMLYN_META_ARMED); /* B10 */
	}
	smp_store_release(&enough, 1);
	for (i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	assert_true(told == armed || told + 1 == armed);
	assert_true(armed > 1);
}

#define TEST(t)	cmocka_unit_test_setup_teardown(t, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(secondary_key_supersedes_the_slots),
		TEST(secondary_key_wrong_by_one_bit_is_rejected),
		TEST(each_entry_has_its_own_key),
		TEST(entry_without_a_key_lets_nobody_in),
		TEST(packet_outside_the_secondary_limits_is_rejected),
		TEST(secondary_limits_do_not_widen_the_slots),
		TEST(limits_upside_down_let_nothing_in),
		TEST(fast_messages_have_no_entry_and_are_rejected),
		TEST(paranoid_entry_takes_message_after_message),

		TEST(one_shot_takes_one_message_an_arming),
		TEST(entry_that_was_never_armed_is_closed),
		TEST(silent_messages_are_rejected),
		TEST(several_packets_are_one_message),
		TEST(several_packets_are_one_message_without_one_shot),
		TEST(one_shot_tells_of_the_packet),
		TEST(rejected_packets_leave_the_entry_armed),
		TEST(nobody_is_told_while_a_packet_is_landing),
		TEST(a_message_of_one_packet_is_alone_in_its_entry),
		TEST(a_message_of_one_packet_keeps_out_of_others),
		TEST(packet_of_the_last_arming_does_not_enter_the_next),
		TEST(limits_are_those_of_the_arming_that_is_entered),
		TEST(message_is_told_though_the_last_to_leave_was_refused),
		TEST(nonsense_in_the_word_tells_nobody_else_anything),
		TEST(lost_race_for_the_word_is_run_again),
		TEST(lost_race_keeps_a_message_of_one_packet_out),
		TEST(message_that_cannot_be_read_leaves_its_entry),
		TEST(message_that_cannot_be_read_is_not_counted),
		TEST(message_of_one_packet_leaves_in_spite_of_a_lost_race),
		TEST(entry_that_never_stands_still_lets_nobody_in),
		TEST(entry_that_never_stands_still_tells_nobody),
		TEST(an_arming_lets_exactly_one_notification_through),
	};

	return cmocka_run_group_tests_name("paranoid", tests, NULL, NULL);
}
