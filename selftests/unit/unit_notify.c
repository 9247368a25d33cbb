// SPDX-License-Identifier: GPL-2.0-only
/*
 * The notification queue: how it fills, what an overrun leaves behind, what a
 * hostile consumer index does, and when the sleeper is woken. Threads append
 * at once in unit_property.c; here every interleaving is made by hand.
 */
#include "unit.h"

static struct unit_nq q;
static struct hml_nic home;

/*
 * What others do while an appender runs: after_read() right after it has read
 * a word with READ_ONCE() or smp_load_acquire(); before_release() right before
 * it publishes.
 */
static void (*after_read)(const volatile void *p);
static void (*before_release)(void);

/* What an appender did with an entry, its barrier and the sleeper's flag. */
enum event { RELEASED, BARRIER, LOOKED };
static enum event events[16];
static u32 nr_events;

static void happened(enum event e)
{
	if (nr_events < ARRAY_SIZE(events))
		events[nr_events++] = e;
}

static void observe(const volatile void *p)
{
	if (p == &q.nq.armed)
		happened(LOOKED);
	if (after_read)
		after_read(p);
}

#undef READ_ONCE
#define READ_ONCE(x) ({						\
	__typeof__(x) val_ = __atomic_load_n(&(x), __ATOMIC_RELAXED);	\
	observe(&(x));							\
	val_;								\
})

#undef smp_load_acquire
#define smp_load_acquire(p) ({						\
	__typeof__(*(p)) val_ = __atomic_load_n(p, __ATOMIC_ACQUIRE);	\
	observe(p);							\
	val_;								\
})

#undef smp_store_release
#define smp_store_release(p, v) do {					\
	if (before_release)						\
		before_release();					\
	__atomic_store_n(p, v, __ATOMIC_RELEASE);			\
	happened(RELEASED);						\
} while (0)

#undef smp_mb
#define smp_mb()	happened(BARRIER)

#undef hml_store_release_mb
#define hml_store_release_mb(p, v) do {					\
	smp_store_release(p, v);					\
	smp_mb();							\
} while (0)

/* Somebody who debugs. */
static bool tracing;
static u32 nr_traced;
static struct {
	struct hamlyn_nq_entry entry;
	u32 position;
	bool lost;
} traced;

static void trace(const struct hamlyn_nq_entry *entry, u32 position, bool lost)
{
	nr_traced++;
	traced.entry = *entry;
	traced.position = position;
	traced.lost = lost;
}

#undef hml_port_traces_notify
#define hml_port_traces_notify()	tracing
#undef hml_port_trace_notify
#define hml_port_trace_notify(nic, nq, entry, position, lost) \
	trace(entry, position, lost)

#include "notify.c"

static u32 wakes;
static bool clear_armed;
static u32 awaited;
static bool was_ready;

void hml_port_nq_wake(const struct hml_port *port, struct hml_nq *nq)
{
	assert_ptr_equal(port, &home.port);
	assert_ptr_equal(nq, &q.nq);
	wakes++;
	was_ready = hml_nq_ready(&home, nq, awaited);
	if (clear_armed)
		nq->armed = 0;
}

static void begin(u32 entries, u32 start)
{
	unit_nq_free(&q);
	unit_nq_init(&q, entries, start);
}

static int setup(void **state)
{
	(void)state;
	unit_nq_init(&q, 8, 0);
	after_read = NULL;
	before_release = NULL;
	nr_events = 0;
	tracing = false;
	nr_traced = 0;
	wakes = 0;
	clear_armed = true;
	awaited = 0;
	was_ready = false;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	unit_nq_free(&q);
	return 0;
}

static struct hamlyn_nq_entry sample(u32 i)
{
	struct hamlyn_nq_entry e = {
		.data = 0x1111111122222222ULL + i,
		.slot = 100 + i,
		.index = 200 + i,
		.source = 300 + i,
		.length = 400 + i,
		.flags = HAMLYN_NQE_SINGLE,
		.sequence = 0xdeadbeefU,
	};

	return e;
}

static bool append(u32 i)
{
	struct hamlyn_nq_entry e = sample(i);

	return hml_nq_append(&home, &q.nq, hml_nq_expect(&home, &q.nq, 0), &e, true);
}

static bool append_quietly(u32 i)
{
	struct hamlyn_nq_entry e = sample(i);

	return hml_nq_append(&home, &q.nq, hml_nq_expect(&home, &q.nq, 0), &e, false);
}

static struct hamlyn_nq_entry *at(u32 position)
{
	return &q.entries[position & q.nq.mask];
}

static void assert_sample_at(u32 position, u32 i)
{
	struct hamlyn_nq_entry e = sample(i);

	e.sequence = position + 1;
	assert_memory_equal(at(position), &e, sizeof(e));
}

static void assert_overrun_at(u32 position)
{
	struct hamlyn_nq_entry e = {
		.slot = HAMLYN_NONE,
		.index = HAMLYN_NONE,
		.flags = HAMLYN_NQE_OVERRUN,
		.sequence = position + 1,
	};

	assert_memory_equal(at(position), &e, sizeof(e));
}

/* ---- appending ----------------------------------------------------------- */

static void entry_lands_whole_at_the_cursor(void **state)
{
	(void)state;
	assert_true(append(0));
	assert_sample_at(0, 0);
	assert_true(unit_all(q.entries + 1, 0, 7 * sizeof(*q.entries)));
	assert_int_equal(q.nq.cursor, 1);
	assert_true(append(1));
	assert_sample_at(0, 0);
	assert_sample_at(1, 1);
	assert_int_equal(q.ring->lost, 0);
	assert_int_equal(q.ring->entries, 8);
}

static void callers_sequence_is_ignored(void **state)
{
	struct hamlyn_nq_entry e = sample(0);

	(void)state;
	e.sequence = 5;
	assert_true(hml_nq_append(&home, &q.nq, hml_nq_expect(&home, &q.nq, 0), &e, true));
	assert_int_equal(at(0)->sequence, 1);
}

static void consumer_that_keeps_up_never_sees_an_overrun(void **state)
{
	static const u32 sizes[] = { 2, 4, 8, 64 };
	u32 i, k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(sizes); k++) {
		begin(sizes[k], 0);
		for (i = 0; i < 5 * sizes[k]; i++) {
			assert_true(append(i));
			assert_sample_at(i, i);
			q.control->consumer = i + 1;
		}
		assert_int_equal(q.ring->lost, 0);
	}
}

static void all_entries_but_one_fit_then_an_overrun_then_nothing(void **state)
{
	static const u32 sizes[] = { 2, 4, 8, 64 };
	u32 i, k;

	(void)state;
	for (k = 0; k < ARRAY_SIZE(sizes); k++) {
		u32 n = sizes[k];

		begin(n, 0);
		for (i = 0; i < n - 1; i++)
			assert_true(append(i));
		assert_int_equal(q.ring->lost, 0);
		assert_false(append(n - 1));
		assert_int_equal(q.ring->lost, 1);
		assert_overrun_at(n - 1);
		assert_int_equal(q.nq.cursor, n);
		assert_false(append(n));
		assert_false(append(n + 1));
		assert_int_equal(q.ring->lost, 3);
		assert_int_equal(q.nq.cursor, n);
		for (i = 0; i < n - 1; i++)
			assert_sample_at(i, i);
		assert_overrun_at(n - 1);
	}
}

static void full_queue_takes_a_notification_once_two_entries_are_free(void **state)
{
	u32 i;

	(void)state;
	begin(4, 0);
	for (i = 0; i < 5; i++)
		append(i);
	assert_int_equal(q.ring->lost, 2);
	q.control->consumer = 1;
	/* One is free, for a report; but one report is there, at the end. */
	assert_false(append(5));
	assert_overrun_at(3);
	assert_int_equal(q.nq.cursor, 4);
	assert_int_equal(q.ring->lost, 3);
	q.control->consumer = 2;
	assert_true(append(6));
	assert_sample_at(4, 6);
	assert_int_equal(q.ring->lost, 3);
}

/* Overload must not fill the queue with reports of overload. */
static void queue_that_stays_full_delivers_messages_not_reports(void **state)
{
	u32 taken = 0, reports = 0;
	u32 i;

	(void)state;
	begin(8, 0);
	for (i = 0; i < 8; i++)
		append(i);
	for (i = 0; i < 1000; i++) {
		struct hamlyn_nq_entry *e = at(q.control->consumer);

		if (e->flags & HAMLYN_NQE_OVERRUN)
			reports++;
		else
			taken++;
		q.control->consumer++;
		append(i);
	}
	assert_int_equal(reports, 1);
	assert_int_equal(taken, 999);
}

static void positions_wrap_at_2_to_the_32(void **state)
{
	u32 i;

	(void)state;
	begin(8, 0xfffffffcU);
	for (i = 0; i < 7; i++) {
		assert_true(append(i));
		assert_sample_at(0xfffffffcU + i, i);
	}
	assert_false(append(7));
	assert_overrun_at(3);
	assert_int_equal(q.nq.cursor, 4);
	assert_false(append(8));
	q.control->consumer = 4;
	assert_true(append(9));
	assert_sample_at(4, 9);
}

/* ---- reserve(), entries_used() ------------------------------------------- */

static enum reserve_result reserve_at(u32 used, u32 *position)
{
	q.nq.cursor = 1000 + used;
	q.nq.consumer = 1000;
	q.control->consumer = 1000;
	*position = 0;
	return reserve(&home, &q.nq, 0, position);
}

static void reservation_near_full_goes_from_ok_to_last_to_full(void **state)
{
	u32 position, used;

	(void)state;
	for (used = 0; used < 7; used++) {
		assert_int_equal(reserve_at(used, &position), RESERVE_OK);
		assert_int_equal(position, 1000 + used);
		assert_int_equal(q.nq.cursor, 1001 + used);
	}
	assert_int_equal(reserve_at(7, &position), RESERVE_LAST);
	assert_int_equal(position, 1007);
	assert_int_equal(q.nq.cursor, 1008);
	assert_int_equal(reserve_at(8, &position), RESERVE_FULL);
	assert_int_equal(q.nq.cursor, 1008);
}

static void consumer_index_is_not_read_while_there_is_room(void **state)
{
	u32 i;

	(void)state;
	q.control->consumer = 0x12345678U;
	for (i = 0; i < 7; i++)
		assert_int_equal(entries_used(&home, &q.nq, i), i);
	assert_int_equal(q.nq.consumer, 0);
}

static void consumer_index_is_read_when_the_copy_leaves_no_room(void **state)
{
	(void)state;
	q.control->consumer = 5;
	assert_int_equal(entries_used(&home, &q.nq, 7), 2);
	assert_int_equal(q.nq.consumer, 5);
}

static void nonsense_from_the_consumer_looks_full_and_is_not_kept(void **state)
{
	/* Ahead of the cursor, and behind by more than all entries. */
	static const u32 nonsense[] = {
		1009, 1010, 2000, 0x80000000U, 999, 998, 0, 0xffffffffU,
	};
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(nonsense); i++) {
		q.nq.cursor = 1008;
		q.nq.consumer = 1000;
		q.control->consumer = nonsense[i];
		assert_int_equal(entries_used(&home, &q.nq, 1008), 8);
		assert_int_equal(q.nq.consumer, 1000);
		assert_false(append(0));
		assert_int_equal(q.ring->lost, i + 1);
		assert_int_equal(q.nq.cursor, 1008);
	}
	assert_true(unit_all(q.entries, 0, 8 * sizeof(*q.entries)));
	q.control->consumer = 1008;
	assert_true(append(0));
}

static void consumer_that_goes_backwards_hurts_only_itself(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 7; i++)
		append(i);
	q.control->consumer = 7;
	assert_true(append(7));
	q.control->consumer = 0;
	for (i = 0; i < 100; i++)
		append(8 + i);
	assert_true(q.nq.cursor - q.nq.consumer <= 8);
	assert_true(q.ring->lost > 0);
}

static u32 others;

/* Others append and the consumer takes, whenever a cursor has been read. */
static void others_overtake(const volatile void *p)
{
	if (p != &q.nq.cursor || !others)
		return;
	others--;
	q.nq.cursor += 4;
	q.control->consumer = q.nq.cursor;
}

static void stale_cursor_that_looks_full_is_looked_at_again(void **state)
{
	(void)state;
	q.nq.cursor = 8;	/* full by the copy, taken meanwhile */
	others = 1;
	after_read = others_overtake;
	assert_true(append(0));
	assert_sample_at(12, 0);
	assert_int_equal(q.ring->lost, 0);
	assert_int_equal(q.nq.cursor, 13);
}

/* There is room all the time, but never at the cursor that was read. */
static void others_append(const volatile void *p)
{
	if (p != &q.nq.consumer || !others)
		return;
	others--;
	q.nq.consumer = q.nq.cursor;
	q.control->consumer = q.nq.cursor;
	q.nq.cursor++;
}

static void lost_race_for_a_position_is_run_again(void **state)
{
	(void)state;
	others = 3;
	after_read = others_append;
	assert_true(append(0));
	assert_int_equal(others, 0);
	assert_sample_at(3, 0);
	assert_int_equal(q.nq.cursor, 4);
	assert_int_equal(q.ring->lost, 0);
}

static void endless_contention_ends_as_a_counted_loss(void **state)
{
	(void)state;
	others = 0xffffffffU;
	after_read = others_append;
	assert_false(append(0));
	assert_int_equal(q.ring->lost, 1);
	assert_true(unit_all(q.entries, 0, 8 * sizeof(*q.entries)));
}

/* The sleeper's own copy of the index is older than the cursor. */
static void another_appenders_older_copy_of_the_index_does_no_harm(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 20; i++) {
		assert_true(append(i));
		q.control->consumer = i + 1;
		if (i > 8)
			q.nq.consumer = i - 8;
	}
	assert_int_equal(q.ring->lost, 0);
}

/* ---- publishing ---------------------------------------------------------- */

static u32 releases;

static void check_all_but_sequence(void)
{
	struct hamlyn_nq_entry e = sample(42);

	releases++;
	e.sequence = 2;		/* still that of the lap before */
	assert_memory_equal(at(9), &e, sizeof(e));
}

static void sequence_is_written_last(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 9; i++) {
		assert_true(append(i));
		q.control->consumer = i + 1;
	}
	assert_int_equal(at(9)->sequence, 2);
	releases = 0;
	before_release = check_all_but_sequence;
	assert_true(append(42));
	assert_int_equal(releases, 1);
	assert_sample_at(9, 42);
}

static void barrier_stands_between_the_entry_and_the_look_at_armed(void **state)
{
	(void)state;
	assert_true(append(0));
	assert_int_equal(nr_events, 3);
	assert_int_equal(events[0], RELEASED);
	assert_int_equal(events[1], BARRIER);
	assert_int_equal(events[2], LOOKED);
}

/* ---- waking -------------------------------------------------------------- */

static void nobody_is_woken_who_does_not_sleep(void **state)
{
	(void)state;
	assert_true(append(0));
	assert_int_equal(wakes, 0);
}

static void sleeper_is_woken_once_for_each_arming(void **state)
{
	(void)state;
	q.nq.armed = 1;
	assert_true(append(0));
	assert_int_equal(wakes, 1);
	assert_true(append(1));
	assert_true(append(2));
	assert_int_equal(wakes, 1);
	q.nq.armed = 1;
	assert_true(append(3));
	assert_int_equal(wakes, 2);
}

static void sleeper_is_woken_only_when_the_entry_is_there(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 6; i++) {
		was_ready = false;
		awaited = i;
		q.nq.armed = 1;
		assert_true(append(i));
		assert_int_equal(wakes, i + 1);
		assert_true(was_ready);
	}
}

static void arm(void)
{
	q.nq.armed = 1;
}

/* It armed after the appender began, and saw nothing. */
static void sleeper_that_arms_right_before_the_entry_appears_is_woken(void **state)
{
	(void)state;
	before_release = arm;
	assert_true(append(0));
	assert_int_equal(wakes, 1);
	assert_true(was_ready);
}

static void armed_flag_is_left_to_whoever_wakes(void **state)
{
	(void)state;
	clear_armed = false;
	q.nq.armed = 1;
	assert_true(append(0));
	assert_int_equal(q.nq.armed, 1);
	assert_int_equal(wakes, 1);
}

static void overrun_report_wakes_and_so_does_a_loss_without_entry(void **state)
{
	(void)state;
	begin(2, 0);
	assert_true(append(0));
	q.nq.armed = 1;
	awaited = 1;
	assert_false(append(1));
	assert_int_equal(wakes, 1);
	assert_true(was_ready);
	q.nq.armed = 1;
	assert_false(append(2));
	assert_int_equal(wakes, 2);
}

/* ---- quiet ones ---------------------------------------------------------- */

static void quiet_entry_is_appended_like_any_other_and_wakes_nobody(void **state)
{
	u32 i;

	(void)state;
	q.nq.armed = 1;
	for (i = 0; i < 7; i++) {
		assert_true(append_quietly(i));
		assert_sample_at(i, i);
		assert_true(hml_nq_ready(&home, &q.nq, i));
	}
	assert_int_equal(wakes, 0);
	assert_int_equal(q.nq.armed, 1);
	assert_int_equal(q.ring->lost, 0);
}

static void loud_entry_behind_quiet_ones_wakes_for_all_of_them(void **state)
{
	(void)state;
	q.nq.armed = 1;
	assert_true(append_quietly(0));
	assert_true(append_quietly(1));
	assert_int_equal(wakes, 0);
	assert_true(append(2));
	assert_int_equal(wakes, 1);
	assert_true(was_ready);
	assert_true(append_quietly(3));
	q.nq.armed = 1;
	assert_true(append_quietly(4));
	assert_int_equal(wakes, 1);
}

static void quiet_entry_that_is_the_last_does_not_look_at_armed(void **state)
{
	(void)state;
	assert_true(append_quietly(0));
	assert_int_equal(nr_events, 2);
	assert_int_equal(events[0], RELEASED);
	assert_int_equal(events[1], BARRIER);
}

/* A loud one took the next entry and woke the sleeper, who saw nothing yet. */
static void loud_one_comes_first(void)
{
	before_release = NULL;
	assert_true(append(1));
	assert_int_equal(wakes, 1);
	q.nq.armed = 1;
}

static void late_quiet_entry_wakes_for_the_loud_one_behind_it(void **state)
{
	(void)state;
	q.nq.armed = 1;
	clear_armed = true;
	before_release = loud_one_comes_first;
	assert_true(append_quietly(0));
	assert_int_equal(wakes, 2);
	assert_int_equal(q.nq.armed, 0);
}

/* The report's place is taken, and who was to be told looked before it was filled. */
static void loud_one_is_lost(void)
{
	/* Not when the copy of the consumer index is stored. */
	if (q.nq.cursor != 2)
		return;
	before_release = NULL;
	assert_false(append(2));
	assert_int_equal(wakes, 0);
	q.nq.armed = 1;
}

static void quiet_report_wakes_for_the_loud_one_that_relies_on_it(void **state)
{
	(void)state;
	begin(2, 0);
	assert_true(append_quietly(0));
	before_release = loud_one_is_lost;
	assert_false(append_quietly(1));
	assert_overrun_at(1);
	assert_int_equal(q.ring->lost, 2);
	assert_int_equal(wakes, 1);
}

static void quiet_overrun_is_reported_and_counted_and_wakes_nobody(void **state)
{
	(void)state;
	begin(2, 0);
	q.nq.armed = 1;
	assert_true(append_quietly(0));
	assert_false(append_quietly(1));
	assert_overrun_at(1);
	assert_int_equal(q.ring->lost, 1);
	assert_false(append_quietly(2));
	assert_int_equal(q.ring->lost, 2);
	assert_int_equal(wakes, 0);
}

/* Whose place the quiet ones have taken. Nothing else would wake it, ever. */
static void loud_one_that_finds_the_queue_full_of_quiet_ones_wakes(void **state)
{
	u32 quiet;

	(void)state;
	for (quiet = 0; quiet < 20; quiet++) {
		u32 i;

		begin(8, 0);
		wakes = 0;
		q.nq.armed = 1;
		for (i = 0; i < quiet; i++)
			append_quietly(i);
		assert_int_equal(wakes, 0);
		append(i);
		assert_int_equal(wakes, 1);
	}
}

/* ---- tracing ------------------------------------------------------------- */

static void traced_notification_is_like_any_other_and_told_of_once(void **state)
{
	struct hamlyn_nq_entry e;
	u32 i;

	(void)state;
	begin(4, 100);
	tracing = true;
	for (i = 0; i < 6; i++) {
		bool fits = i < 3;

		q.nq.armed = 1;
		e = sample(i);
		assert_int_equal(i & 1 ? append(i) : append_quietly(i), fits);
		assert_int_equal(wakes, (i + 1) / 2);
		assert_int_equal(nr_traced, i + 1);
		assert_memory_equal(&traced.entry, &e, sizeof(e));
		assert_int_equal(traced.lost, !fits);
		if (fits) {
			assert_int_equal(traced.position, 100 + i);
			assert_sample_at(100 + i, i);
		}
	}
	assert_overrun_at(103);
	assert_int_equal(q.ring->lost, 3);
	tracing = false;
	append(7);
	assert_int_equal(nr_traced, 6);
}

/* ---- hml_nq_ready() ------------------------------------------------------ */

static void entry_is_ready_when_it_is_there_and_not_before(void **state)
{
	(void)state;
	assert_false(hml_nq_ready(&home, &q.nq, 0));
	append(0);
	assert_true(hml_nq_ready(&home, &q.nq, 0));
	assert_false(hml_nq_ready(&home, &q.nq, 1));
}

static void entry_of_an_earlier_lap_is_not_ready(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 8; i++) {
		q.control->consumer = i;
		append(i);
	}
	assert_false(hml_nq_ready(&home, &q.nq, 8));
}

/* Who waits for a position that others took long ago must not sleep on. */
static void position_that_was_overtaken_is_ready(void **state)
{
	(void)state;
	append(0);
	assert_true(hml_nq_ready(&home, &q.nq, 0U - 8));
	assert_true(hml_nq_ready(&home, &q.nq, 0U - 16));
}

/* Seen from there the sequence numbers of what waits are those of the past. */
static void position_half_a_wrap_behind_is_ready(void **state)
{
	u32 far;

	(void)state;
	append(0);
	for (far = 9; far; far <<= 1)
		assert_true(hml_nq_ready(&home, &q.nq, 1 - far));
}

static void position_ahead_is_not_ready(void **state)
{
	u32 n;

	(void)state;
	append(0);
	for (n = 0; n <= q.nq.mask + 1; n++)
		assert_false(hml_nq_ready(&home, &q.nq, 1 + n));
}

static void reserved_entry_is_not_ready_until_it_is_published(void **state)
{
	struct hamlyn_nq_entry e = sample(0);
	u32 position;

	(void)state;
	assert_int_equal(reserve(&home, &q.nq, 0, &position), RESERVE_OK);
	append(1);
	assert_false(hml_nq_ready(&home, &q.nq, 0));
	assert_true(hml_nq_ready(&home, &q.nq, 1));
	publish(at(position), position, &e);
	assert_true(hml_nq_ready(&home, &q.nq, 0));
}

static void position_before_the_wrap_is_ready_with_sequence_0(void **state)
{
	(void)state;
	begin(4, 0xffffffffU);
	/* An unused entry has sequence 0 too. */
	at(0xffffffffU)->sequence = 0xfffffffcU;
	assert_false(hml_nq_ready(&home, &q.nq, 0xffffffffU));
	assert_true(append(0));
	assert_int_equal(at(0xffffffffU)->sequence, 0);
	assert_true(hml_nq_ready(&home, &q.nq, 0xffffffffU));
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(entry_lands_whole_at_the_cursor),
		TEST(callers_sequence_is_ignored),
		TEST(consumer_that_keeps_up_never_sees_an_overrun),
		TEST(all_entries_but_one_fit_then_an_overrun_then_nothing),
		TEST(full_queue_takes_a_notification_once_two_entries_are_free),
		TEST(queue_that_stays_full_delivers_messages_not_reports),
		TEST(positions_wrap_at_2_to_the_32),

		TEST(reservation_near_full_goes_from_ok_to_last_to_full),
		TEST(consumer_index_is_not_read_while_there_is_room),
		TEST(consumer_index_is_read_when_the_copy_leaves_no_room),
		TEST(nonsense_from_the_consumer_looks_full_and_is_not_kept),
		TEST(consumer_that_goes_backwards_hurts_only_itself),
		TEST(stale_cursor_that_looks_full_is_looked_at_again),
		TEST(lost_race_for_a_position_is_run_again),
		TEST(endless_contention_ends_as_a_counted_loss),
		TEST(another_appenders_older_copy_of_the_index_does_no_harm),

		TEST(sequence_is_written_last),
		TEST(barrier_stands_between_the_entry_and_the_look_at_armed),

		TEST(nobody_is_woken_who_does_not_sleep),
		TEST(sleeper_is_woken_once_for_each_arming),
		TEST(sleeper_is_woken_only_when_the_entry_is_there),
		TEST(sleeper_that_arms_right_before_the_entry_appears_is_woken),
		TEST(armed_flag_is_left_to_whoever_wakes),
		TEST(overrun_report_wakes_and_so_does_a_loss_without_entry),

		TEST(quiet_entry_is_appended_like_any_other_and_wakes_nobody),
		TEST(loud_entry_behind_quiet_ones_wakes_for_all_of_them),
		TEST(quiet_entry_that_is_the_last_does_not_look_at_armed),
		TEST(late_quiet_entry_wakes_for_the_loud_one_behind_it),
		TEST(quiet_report_wakes_for_the_loud_one_that_relies_on_it),
		TEST(quiet_overrun_is_reported_and_counted_and_wakes_nobody),
		TEST(loud_one_that_finds_the_queue_full_of_quiet_ones_wakes),

		TEST(traced_notification_is_like_any_other_and_told_of_once),

		TEST(entry_is_ready_when_it_is_there_and_not_before),
		TEST(entry_of_an_earlier_lap_is_not_ready),
		TEST(position_that_was_overtaken_is_ready),
		TEST(position_half_a_wrap_behind_is_ready),
		TEST(position_ahead_is_not_ready),
		TEST(reserved_entry_is_not_ready_until_it_is_published),
		TEST(position_before_the_wrap_is_ready_with_sequence_0),
	};

	return cmocka_run_group_tests_name("notify", tests, NULL, NULL);
}
