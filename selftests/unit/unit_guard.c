// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holding back who guesses keys (H 6.5): what a bucket holds, when a sender is paused
 * and for how long, and what becomes of its work queue meanwhile.
 */
#include <pthread.h>

#include "unit_world.h"

#define FREE		4		/* wrong keys a second, of the receiving NIC */
#define EACH		(UNIT_SECOND / FREE)
#define HOUR		(3600 * UNIT_SECOND)

static struct hml_nic *nic;
static struct hml_guard *guard;
static struct hml_bucket *bucket;

static int setup(void **state)
{
	world_setup(state);
	nic = &hosts[1].nic;
	nic->guesses = FREE;
	guard = &snd.t.sender.guard;
	bucket = &snd.bucket;
	return 0;
}

static void guess(void)
{
	hml_guard_guess(nic, &snd.t.sender);
}

static u64 pause_left(void)
{
	return guard->until > unit_now_ns ? guard->until - unit_now_ns : 0;
}

/* Wait until it may send, and no longer. */
static void sit_out(void)
{
	unit_now_ns += pause_left();
	assert_false(hml_guard_paused(nic, guard));
}

/* How many wrong keys the bucket has taken, if nothing has been given back. */
static u64 taken(void)
{
	return bucket->full > unit_now_ns ? (bucket->full - unit_now_ns) / EACH : 0;
}

/* ---- hml_guard_guess() --------------------------------------------------- */

static void a_seconds_worth_costs_nothing_and_the_next_one_a_pause(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < FREE; i++) {
		guess();
		assert_false(hml_guard_paused(nic, guard));
		assert_int_equal(snd.stats.pauses, 0);
	}
	guess();
	assert_true(hml_guard_paused(nic, guard));
	assert_int_equal(snd.stats.pauses, 1);
	assert_int_equal(pause_left(), EACH);
}

static void default_rate_is_kept_exactly(void **state)
{
	u32 i;

	(void)state;
	nic->guesses = HML_GUARD_RATE;
	for (i = 0; i < HML_GUARD_RATE; i++)
		guess();
	assert_false(hml_guard_paused(nic, guard));
	guess();
	assert_true(hml_guard_paused(nic, guard));
	assert_int_equal(pause_left(), 100000);
}

static void no_pause_is_longer_than_the_first(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < FREE; i++)
		guess();
	for (i = 0; i < 1000; i++) {
		guess();
		assert_int_equal(pause_left(), EACH);
		sit_out();
	}
	assert_int_equal(snd.stats.pauses, 1000);
}

static void pause_ends_at_its_time_and_not_a_nanosecond_before(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i <= FREE; i++)
		guess();
	unit_now_ns += EACH - 1;
	assert_true(hml_guard_paused(nic, guard));
	assert_int_not_equal(guard->until, 0);
	unit_now_ns++;
	assert_false(hml_guard_paused(nic, guard));
	assert_int_equal(guard->until, 0);
	/* It is over for good, also for a clock that were to go back. */
	unit_now_ns -= EACH;
	assert_false(hml_guard_paused(nic, guard));
}

static void each_interval_gives_one_back_up_to_a_seconds_worth(void **state)
{
	u32 intervals, i;

	(void)state;
	for (intervals = 0; intervals <= FREE + 2; intervals++) {
		u32 free = 0;

		bucket->full = 0;
		guard->until = 0;
		for (i = 0; i < FREE; i++)
			guess();
		unit_now_ns += intervals * EACH;
		while (!hml_guard_paused(nic, guard)) {
			guess();
			free++;
		}
		assert_int_equal(free - 1, intervals < FREE ? intervals : FREE);
	}
}

static void interval_that_is_not_over_gives_nothing_back(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < FREE; i++)
		guess();
	unit_now_ns += EACH - 1;
	guess();
	assert_int_equal(pause_left(), 1);
}

static void long_silence_saves_up_no_more_than_a_second(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 50; i++)
		guess();
	unit_now_ns += 365 * 24 * HOUR;
	assert_false(hml_guard_paused(nic, guard));
	for (i = 0; i < FREE; i++)
		guess();
	assert_false(hml_guard_paused(nic, guard));
	guess();
	assert_int_equal(pause_left(), EACH);
}

static void without_a_rate_all_are_free(void **state)
{
	u32 i;

	(void)state;
	nic->guesses = 0;
	for (i = 0; i < 100000; i++)
		guess();
	assert_int_equal(guard->until, 0);
	assert_int_equal(snd.stats.pauses, 0);
	assert_false(hml_guard_paused(nic, guard));
	/* Nor are they counted where they are not, nor remembered. */
	assert_true(hml_bucket_full(bucket, unit_now_ns));
}

/* Rounded, it would be a little more than the rate, or no limit at all. */
static void rate_that_is_no_part_of_a_second_is_not_exceeded(void **state)
{
	static const u32 rates[] = { 1, 3, 7, 11, 9999, 999999999, 1000000001,
				     UINT32_MAX };
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(rates); i++) {
		u64 each;

		bucket->full = 0;
		hml_bucket_take(bucket, rates[i], unit_now_ns);
		each = bucket->full - unit_now_ns;
		assert_true(each && (rates[i] > UNIT_SECOND ||
				     each * rates[i] >= UNIT_SECOND));
	}
}

static void clock_that_stands_still_or_goes_back_gives_nothing_back(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < FREE; i++) {
		guess();
		unit_now_ns -= 10 * UNIT_SECOND;
	}
	guess();
	assert_true(hml_guard_paused(nic, guard));
}

static void clock_may_begin_at_nothing(void **state)
{
	u32 i;

	(void)state;
	unit_now_ns = 0;
	for (i = 0; i <= FREE; i++)
		guess();
	assert_int_equal(guard->until, EACH);
	assert_true(hml_guard_paused(nic, guard));
	unit_now_ns = EACH;
	assert_false(hml_guard_paused(nic, guard));
}

/* Whatever its pace, over hours: a second's worth, and the rate. */
static u64 guesses_in_hours(u32 hours, u64 (*pace)(u64 *rng))
{
	u64 end = unit_now_ns + hours * HOUR;
	u64 rng = unit_seed();
	u64 n = 0;

	while (unit_now_ns < end) {
		guess();
		n++;
		sit_out();
		unit_now_ns += pace(&rng);
	}
	return n;
}

static u64 at_once(u64 *state)
{
	(void)state;
	return 0;
}

static u64 now_and_then(u64 *state)
{
	return unit_below(state, 8) ? unit_below(state, 1000) :
				      unit_below(state, 3 * UNIT_SECOND);
}

static u64 an_interval_less_something(u64 *state)
{
	return EACH - unit_below(state, 2) * unit_below(state, EACH);
}

/* Saves up all that can be, and spends it in one go. */
static u64 in_bursts(u64 *state)
{
	return *state++ % (2 * FREE) ? 0 : UNIT_SECOND;
}

static void in_the_long_run_it_is_the_rate(void **state)
{
	static u64 (*const paces[])(u64 *) = {
		at_once, now_and_then, an_interval_less_something, in_bursts,
	};
	u32 i;

	(void)state;
	for (i = 0; i < ARRAY_SIZE(paces); i++) {
		bucket->full = 0;
		assert_true(guesses_in_hours(6, paces[i]) <=
			    FREE + 1 + 6 * 3600 * FREE);
	}
	/* And it is not less either: an honest mistake costs its interval. */
	bucket->full = 0;
	assert_true(guesses_in_hours(6, at_once) >= 6 * 3600 * FREE);
}

/* ---- one bucket for all that a user has ---------------------------------- */

static void senders_of_a_user_share_what_there_is(void **state)
{
	static struct world_sender other;
	u32 i;

	(void)state;
	world_sender_init(&other, 0);
	hml_guard_begin(&other.t.sender.guard, bucket, unit_now_ns);
	for (i = 0; i < FREE; i++)
		hml_guard_guess(nic, i % 2 ? &snd.t.sender : &other.t.sender);
	assert_false(hml_guard_paused(nic, guard));
	hml_guard_guess(nic, &other.t.sender);
	assert_true(hml_guard_paused(nic, &other.t.sender.guard));
	/* The one that has not guessed sends; when it does it waits for both. */
	assert_false(hml_guard_paused(nic, guard));
	guess();
	assert_int_equal(pause_left(), 2 * EACH);
	assert_int_equal(snd.stats.pauses, 1);
	world_sender_free(&other);
}

static void new_sender_begins_with_what_there_is(void **state)
{
	struct hml_guard to = { 0 };
	u32 i;

	(void)state;
	for (i = 0; i < FREE; i++)
		guess();
	hml_guard_begin(&to, bucket, unit_now_ns);
	assert_ptr_equal(to.bucket, bucket);
	assert_int_equal(to.until, 0);
	guess();
	hml_guard_begin(&to, bucket, unit_now_ns);
	assert_int_equal(to.until, guard->until);
	assert_true(hml_guard_paused(nic, &to));
}

/* A new terminus for each guess is no way round it. */
static void new_sender_for_each_guess_guesses_no_faster(void **state)
{
	u64 end = unit_now_ns + HOUR;
	u64 n = 0;

	(void)state;
	while (unit_now_ns < end) {
		hml_guard_begin(guard, bucket, unit_now_ns);
		if (!hml_guard_paused(nic, guard)) {
			guess();
			n++;
		}
		unit_now_ns += EACH / 10;
	}
	assert_true(n <= FREE + 1 + 3600 * FREE);
}

#define THREADS		4
#define EACH_TAKES	100000

static void *take_many(void *arg)
{
	u32 i;

	for (i = 0; i < EACH_TAKES; i++)
		hml_bucket_take(arg, 10, 0);
	return NULL;
}

static void what_many_take_at_once_is_all_counted(void **state)
{
	pthread_t threads[THREADS];
	u32 i;

	(void)state;
	for (i = 0; i < THREADS; i++)
		assert_int_equal(0, pthread_create(&threads[i], NULL, take_many, bucket));
	for (i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(bucket->full, THREADS * EACH_TAKES * (UNIT_SECOND / 10));
}

static void bucket_is_full_when_all_was_given_back(void **state)
{
	(void)state;
	assert_true(hml_bucket_full(bucket, 0));
	guess();
	guess();
	assert_false(hml_bucket_full(bucket, unit_now_ns));
	assert_false(hml_bucket_full(bucket, unit_now_ns + 2 * EACH - 1));
	assert_true(hml_bucket_full(bucket, unit_now_ns + 2 * EACH));
}

static void bucket_is_empty_while_more_than_a_second_is_owed(void **state)
{
	(void)state;
	assert_int_equal(hml_bucket_until(bucket, unit_now_ns), 0);
	bucket->full = unit_now_ns + UNIT_SECOND;
	assert_int_equal(hml_bucket_until(bucket, unit_now_ns), 0);
	bucket->full++;
	assert_int_equal(hml_bucket_until(bucket, unit_now_ns), unit_now_ns + 1);
	/* Nothing wraps where the clock is younger than a second. */
	bucket->full = 10;
	assert_int_equal(hml_bucket_until(bucket, 5), 0);
}

/* ---- what counts --------------------------------------------------------- */

/* A packet that is rejected for that reason. */
static struct hamlyn_packet rejected_packet(int reason)
{
	struct hml_slot *slot = &hosts[1].slots[1];
	struct hamlyn_packet h = {
		.version = HAMLYN_PACKET_VERSION,
		.flags = HAMLYN_PACKET_SINGLE,
		.host = 1,
		.slot = 1,
		.key = WORLD_KEY,
	};

	switch (reason) {
	case HAMLYN_REJECT_SLOT:
		h.slot = 0;
		break;
	case HAMLYN_REJECT_KEY:
		h.key++;
		break;
	case HAMLYN_REJECT_BOUNDS:
		h.offset = WORLD_LENGTH + 1;
		break;
	case HAMLYN_REJECT_METADATA:
		h.meta_index = WORLD_META;
		break;
	case HAMLYN_REJECT_FORMAT:
		h.version++;
		break;
	case HAMLYN_REJECT_ONE_SHOT:
		slot->mode = HAMLYN_SLOT_PARANOID_ONE_SHOT;
		hosts[1].entries[1]->key = WORLD_KEY;
		break;
	case HAMLYN_REJECT_TICKET:
		slot->flags = HAMLYN_SLOT_TICKET_ONLY;
		break;
	}
	return h;
}

static void wrong_key_and_missing_ticket_count_and_nothing_else(void **state)
{
	const struct hml_payload nothing = { 0 };
	int reason;

	for (reason = 0; reason < HAMLYN_REJECT_DOWN; reason++) {
		bool counts = reason == HAMLYN_REJECT_KEY ||
			      reason == HAMLYN_REJECT_TICKET;
		struct hamlyn_packet h = rejected_packet(reason);
		u32 i;

		for (i = 0; i <= FREE; i++) {
			/* Each of another message. */
			snd.t.sender.guessed = false;
			hml_rx(nic, &h, &nothing, &snd.t.sender);
		}
		assert_int_equal(snd.stats.rejects[reason], FREE + 1);
		assert_int_equal(taken(), counts ? FREE + 1 : 0);
		assert_int_equal(hml_guard_paused(nic, guard), counts);
		assert_int_equal(snd.stats.pauses, counts);
		world_teardown(state);
		setup(state);
	}
}

/* Nobody chose its key; and whom the owner has given one was let in by it. */
static void void_ticket_is_no_guess(void **state)
{
	const struct hml_payload nothing = { 0 };
	struct hamlyn_packet h = rejected_packet(-1);

	(void)state;
	h.flags |= HAMLYN_PACKET_TICKET;
	h.ticket_key = WORLD_TICKET + 1;
	hml_rx(nic, &h, &nothing, &snd.t.sender);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_KEY], 1);
	assert_int_equal(taken(), 0);
	h.slot = UINT32_MAX;
	hml_rx(nic, &h, &nothing, &snd.t.sender);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_SLOT], 1);
	assert_int_equal(taken(), 0);
	h.slot = 1;
	hosts[1].slots[1].mode = HAMLYN_SLOT_PARANOID;
	hml_rx(nic, &h, &nothing, &snd.t.sender);
	h.ticket_key = WORLD_TICKET;
	hml_rx(nic, &h, &nothing, &snd.t.sender);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_KEY], 3);
	assert_int_equal(taken(), 0);
}

/* Also where the owner has changed it without a call, which it may in the paranoid modes. */
static void key_that_was_right_is_late(void **state)
{
	static const u8 modes[] = { HAMLYN_SLOT_NORMAL, HAMLYN_SLOT_PARANOID,
				    HAMLYN_SLOT_PARANOID_ONE_SHOT };
	const struct hml_payload nothing = { 0 };
	struct hamlyn_packet h = rejected_packet(HAMLYN_REJECT_KEY);
	u32 i, k;

	(void)state;
	world_known = h.key;
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		hosts[1].slots[1].mode = modes[i];
		for (k = 0; k < 10 * FREE; k++) {
			snd.t.sender.guessed = false;
			hml_rx(nic, &h, &nothing, &snd.t.sender);
		}
	}
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_KEY], 30 * FREE);
	assert_int_equal(taken(), 0);
	assert_false(hml_guard_paused(nic, guard));
	/* It opens nothing else. */
	h.key++;
	snd.t.sender.guessed = false;
	hml_rx(nic, &h, &nothing, &snd.t.sender);
	assert_int_equal(taken(), 1);
}

static void secondary_key_counts_and_secondary_limits_do_not(void **state)
{
	const struct hml_payload nothing = { 0 };
	struct hamlyn_packet h = rejected_packet(-1);

	(void)state;
	hosts[1].slots[1].mode = HAMLYN_SLOT_PARANOID;
	hml_rx(nic, &h, &nothing, &snd.t.sender);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_KEY], 1);
	assert_int_equal(taken(), 1);
	hosts[1].entries[1]->key = WORLD_KEY;
	hosts[1].entries[1]->low = 5;
	hml_rx(nic, &h, &nothing, &snd.t.sender);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_BOUNDS], 1);
	assert_int_equal(taken(), 1);
}

static void packets_that_land_do_not_count(void **state)
{
	struct hamlyn_trb trb = world_request(1);
	u32 i;

	(void)state;
	for (i = 0; i < 100; i++)
		world_send(&snd, &trb);
	assert_int_equal(taken(), 0);
	assert_int_equal(world_told(1), 100);
}

/* ---- hml_tx_run() -------------------------------------------------------- */

static void guess_at(u64 offset)
{
	struct hamlyn_trb trb = world_request(8);

	trb.key++;
	trb.offset = offset;
	world_post(&snd, &trb);
}

static void sender_that_guessed_too_often_sends_nothing_until_its_time(void **state)
{
	struct hamlyn_trb trb = world_request(8);
	u32 i;

	(void)state;
	for (i = 0; i <= FREE; i++)
		guess_at(0);
	world_post(&snd, &trb);
	/* It stops in the middle of its budget: right behind the guess. */
	assert_int_equal(world_run(&snd, 100), FREE + 1);
	assert_int_equal(snd.stats.packets, FREE + 1);
	for (i = 0; i < 10; i++) {
		assert_int_equal(world_run(&snd, 100), 0);
		unit_now_ns += EACH / 10 - 1;
	}
	assert_true(hml_tx_pending(&snd.t));
	assert_int_equal(world_told(1), 0);
	unit_now_ns += 10;
	assert_int_equal(world_run(&snd, 100), 1);
	assert_int_equal(world_told(1), 1);
	assert_false(hml_tx_pending(&snd.t));
}

static void pause_costs_no_credit(void **state)
{
	s64 bytes = 100;
	u32 i;

	(void)state;
	for (i = 0; i <= FREE; i++)
		guess_at(0);
	world_run(&snd, 100);
	guess_at(0);
	assert_int_equal(hml_tx_run(snd.nic, &snd.t, 10, &bytes), 0);
	assert_int_equal(bytes, 100);
}

static void sender_that_is_not_paused_is_not_held_up_by_one_that_is(void **state)
{
	static struct world_sender other;
	struct hamlyn_trb trb = world_request(8);
	u32 i;

	(void)state;
	world_sender_init(&other, 0);
	for (i = 0; i <= FREE; i++)
		guess_at(0);
	world_run(&snd, 100);
	assert_true(hml_guard_paused(nic, guard));
	assert_int_equal(world_send(&other, &trb), 0);
	assert_int_equal(world_told(1), 1);
	world_sender_free(&other);
}

/* Its packets have one slot and one key. */
static void message_is_one_guess_however_many_packets_it_has(void **state)
{
	struct hamlyn_trb trb = world_request(12 * WORLD_PACKET);

	(void)state;
	trb.key++;
	world_post(&snd, &trb);
	assert_int_equal(world_run(&snd, 100), 12);
	assert_int_equal(taken(), 1);
	world_post(&snd, &trb);
	assert_int_equal(world_run(&snd, 100), 12);
	assert_int_equal(taken(), 2);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_KEY], 24);
}

static void use_up_free_guesses(void)
{
	struct hamlyn_trb trb = world_request(1);
	u32 i;

	trb.key++;
	for (i = 0; i < FREE; i++) {
		world_post(&snd, &trb);
		assert_int_equal(world_run(&snd, 100), 1);
	}
	assert_int_equal(snd.t.sender.guard.until, 0);
}

static void paused_message_goes_on_where_it_was(void **state)
{
	struct hamlyn_trb trb = world_request(12 * WORLD_PACKET);

	(void)state;
	use_up_free_guesses();
	trb.key++;
	world_post(&snd, &trb);
	assert_int_equal(world_run(&snd, 100), 1);
	assert_true(snd.t.busy);
	assert_int_equal(snd.t.status->completed, FREE);
	assert_int_equal(world_run(&snd, 100), 0);
	sit_out();
	assert_int_equal(world_run(&snd, 100), 11);
	assert_int_equal(snd.stats.packets, FREE + 12);
	assert_int_equal(snd.stats.bytes, FREE + 12 * WORLD_PACKET);
	assert_int_equal(snd.t.status->completed, FREE + 1);
	assert_int_equal(snd.t.status->failed, 0);
	world_assert_nothing_landed();
}

/* A message that was let in, of which the key changed half way. */
static void pause_in_the_middle_loses_no_byte_of_the_rest(void **state)
{
	struct hamlyn_trb trb = world_request(14 * WORLD_PACKET);
	struct hml_slot *slot = &hosts[1].slots[1];
	u64 i;

	(void)state;
	use_up_free_guesses();
	world_post(&snd, &trb);
	assert_int_equal(world_run(&snd, 2), 2);
	slot->key++;
	assert_int_equal(world_run(&snd, 100), 1);
	slot->key--;
	assert_int_equal(world_run(&snd, 100), 0);
	sit_out();
	assert_int_equal(world_run(&snd, 100), 14 - 2 - 1);
	for (i = 0; i < 14 * WORLD_PACKET; i++)
		assert_int_equal(hosts[1].area[1][WORLD_BASE + i],
				 i / WORLD_PACKET == 2 ? UNIT_GUARD :
							 world_byte(i));
}

/* Guesses and good messages, mixed: all good ones arrive, in their order. */
static void paused_queue_loses_nothing_and_keeps_its_order(void **state)
{
	u64 rng = unit_seed();
	u32 posted_good = 0, posted_all = 0, seen = 0;
	struct hamlyn_trb trb;

	(void)state;
	nic->guesses = 1;
	while (posted_all < 2000 || hml_tx_pending(&snd.t)) {
		while (posted_all < 2000 &&
		       snd.wq.producer - snd.t.status->completed < WORLD_WQ) {
			trb = world_request(0);
			trb.flags = HAMLYN_TRB_FAST;
			trb.meta_index = HAMLYN_META_FAST;
			if (unit_below(&rng, 3))
				trb.word = ++posted_good;
			else
				trb.key ^= 1 + unit_below(&rng, 1000);
			world_post(&snd, &trb);
			posted_all++;
		}
		world_run(&snd, 1 + unit_below(&rng, 20));
		while (seen != world_told(1)) {
			struct hamlyn_nq_entry *e =
				&hosts[1].nq.entries[seen % WORLD_NQ];

			assert_int_equal(e->data, ++seen);
			hosts[1].nq.control->consumer = seen;
		}
		unit_now_ns += unit_below(&rng, 50 * UNIT_MS);
	}
	assert_int_equal(seen, posted_good);
	assert_int_equal(snd.stats.messages, 2000);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_KEY],
			 2000 - posted_good);
	assert_true(snd.stats.pauses > 100);
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(a_seconds_worth_costs_nothing_and_the_next_one_a_pause),
		TEST(default_rate_is_kept_exactly),
		TEST(no_pause_is_longer_than_the_first),
		TEST(pause_ends_at_its_time_and_not_a_nanosecond_before),
		TEST(each_interval_gives_one_back_up_to_a_seconds_worth),
		TEST(interval_that_is_not_over_gives_nothing_back),
		TEST(long_silence_saves_up_no_more_than_a_second),
		TEST(without_a_rate_all_are_free),
		TEST(rate_that_is_no_part_of_a_second_is_not_exceeded),
		TEST(clock_that_stands_still_or_goes_back_gives_nothing_back),
		TEST(clock_may_begin_at_nothing),
		TEST(in_the_long_run_it_is_the_rate),

		TEST(senders_of_a_user_share_what_there_is),
		TEST(new_sender_begins_with_what_there_is),
		TEST(new_sender_for_each_guess_guesses_no_faster),
		TEST(what_many_take_at_once_is_all_counted),
		TEST(bucket_is_full_when_all_was_given_back),
		TEST(bucket_is_empty_while_more_than_a_second_is_owed),

		TEST(wrong_key_and_missing_ticket_count_and_nothing_else),
		TEST(void_ticket_is_no_guess),
		TEST(key_that_was_right_is_late),
		TEST(secondary_key_counts_and_secondary_limits_do_not),
		TEST(packets_that_land_do_not_count),

		TEST(sender_that_guessed_too_often_sends_nothing_until_its_time),
		TEST(pause_costs_no_credit),
		TEST(sender_that_is_not_paused_is_not_held_up_by_one_that_is),
		TEST(message_is_one_guess_however_many_packets_it_has),
		TEST(paused_message_goes_on_where_it_was),
		TEST(pause_in_the_middle_loses_no_byte_of_the_rest),
		TEST(paused_queue_loses_nothing_and_keeps_its_order),
	};

	return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
