// SPDX-License-Identifier: GPL-2.0-only
/*
 * Holding back who guesses keys (H 6.5): when a sender is paused and for how
 * long, what is forgiven, and what becomes of its work queue meanwhile.
 */
#include "unit_world.h"

#define FREE		4		/* guesses, of the receiving NIC */
#define QUIET		(1ULL << 30)	/* what the guard takes for a second */
#define HOUR		(3600 * UNIT_SECOND)

static struct hml_nic *nic;
static struct hml_guard *guard;

static int setup(void **state)
{
	world_setup(state);
	nic = &hosts[1].nic;
	nic->guesses = FREE;
	guard = &snd.t.sender.guard;
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

/* ---- hml_guard_guess() --------------------------------------------------- */

static void free_guesses_cost_nothing_and_the_next_one_a_pause(void **state)
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
	assert_int_equal(pause_left(), HML_GUARD_SHORTEST_NS);
}

static void default_number_of_free_guesses_is_kept_exactly(void **state)
{
	u32 i;

	(void)state;
	nic->guesses = HML_GUARD_FREE;
	for (i = 0; i < HML_GUARD_FREE; i++)
		guess();
	assert_false(hml_guard_paused(nic, guard));
	guess();
	assert_true(hml_guard_paused(nic, guard));
}

static void each_pause_is_twice_as_long_up_to_about_a_second(void **state)
{
	u64 expected = UNIT_MS;
	u32 i;

	(void)state;
	for (i = 0; i < FREE; i++)
		guess();
	for (i = 0; i <= 10; i++) {
		guess();
		assert_int_equal(pause_left(), expected);
		sit_out();
		expected *= 2;
	}
	assert_int_equal(expected / 2, 1024 * UNIT_MS);
	for (i = 0; i < 100; i++) {
		guess();
		assert_int_equal(pause_left(), 1024 * UNIT_MS);
		sit_out();
	}
	assert_int_equal(snd.stats.pauses, 111);
}

static void pause_ends_at_its_time_and_not_a_nanosecond_before(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i <= FREE; i++)
		guess();
	unit_now_ns += HML_GUARD_SHORTEST_NS - 1;
	assert_true(hml_guard_paused(nic, guard));
	assert_int_not_equal(guard->until, 0);
	unit_now_ns++;
	assert_false(hml_guard_paused(nic, guard));
	assert_int_equal(guard->until, 0);
	/* It is over for good, also for a clock that were to go back. */
	unit_now_ns -= HML_GUARD_SHORTEST_NS;
	assert_false(hml_guard_paused(nic, guard));
}

static void each_quiet_second_forgives_one_guess(void **state)
{
	u32 seconds, i;

	(void)state;
	for (seconds = 0; seconds <= FREE + 2; seconds++) {
		u32 free = 0;

		memset(guard, 0, sizeof(*guard));
		for (i = 0; i < FREE; i++)
			guess();
		unit_now_ns += seconds * QUIET;
		while (!hml_guard_paused(nic, guard)) {
			guess();
			free++;
		}
		assert_int_equal(free - 1, seconds < FREE ? seconds : FREE);
	}
}

static void second_that_is_not_over_forgives_nothing(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < FREE; i++)
		guess();
	unit_now_ns += QUIET - 1;
	guess();
	assert_true(hml_guard_paused(nic, guard));
}

static void long_silence_forgives_all_and_no_more(void **state)
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
	assert_int_equal(pause_left(), HML_GUARD_SHORTEST_NS);
}

/* Forgetting is as slow as guessing: a long history takes as long to go. */
static void history_is_forgiven_a_second_a_guess(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 1000; i++)
		guess();
	unit_now_ns += (1000 - FREE) * QUIET;
	guess();
	assert_int_equal(pause_left(), HML_GUARD_SHORTEST_NS);
	unit_now_ns += 2 * QUIET;
	guess();
	assert_false(hml_guard_paused(nic, guard));
}

static void without_a_number_of_free_guesses_all_are_free(void **state)
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
	assert_true(hml_guard_forgiven(guard, unit_now_ns));
	nic->guesses = FREE;
	for (i = 0; i < FREE; i++)
		guess();
	assert_false(hml_guard_paused(nic, guard));
	guess();
	assert_true(hml_guard_paused(nic, guard));
}

static void score_does_not_come_round_to_nothing(void **state)
{
	(void)state;
	guard->score = UINT32_MAX - 1;
	guard->last = unit_now_ns;
	guess();
	assert_int_equal(guard->score, UINT32_MAX);
	guess();
	assert_int_equal(guard->score, UINT32_MAX);
	assert_int_equal(pause_left(), 1024 * UNIT_MS);
}

static void clock_that_stands_still_or_goes_back_forgives_nothing(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < FREE; i++) {
		guess();
		unit_now_ns -= 10 * QUIET;
	}
	guess();
	assert_true(hml_guard_paused(nic, guard));
	assert_int_equal(pause_left(), HML_GUARD_SHORTEST_NS);
}

static void clock_may_begin_at_nothing(void **state)
{
	u32 i;

	(void)state;
	unit_now_ns = 0;
	for (i = 0; i <= FREE; i++)
		guess();
	assert_int_equal(guard->until, HML_GUARD_SHORTEST_NS);
	assert_true(hml_guard_paused(nic, guard));
	unit_now_ns = HML_GUARD_SHORTEST_NS;
	assert_false(hml_guard_paused(nic, guard));
}

static void clock_may_be_late_in_its_range(void **state)
{
	u32 i;

	(void)state;
	unit_now_ns = U64_MAX - 100 * UNIT_SECOND;
	for (i = 0; i <= FREE + 20; i++)
		guess();
	assert_int_equal(pause_left(), 1024 * UNIT_MS);
	sit_out();
}

/* Whatever its pace, over hours: the free ones, then about one a second. */
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

static u64 a_second_less_something(u64 *state)
{
	return QUIET - unit_below(state, 2) * unit_below(state, QUIET);
}

/* Saves up all the free ones and spends them in one go. */
static u64 in_bursts(u64 *state)
{
	return *state++ % (HML_GUARD_FREE + 12) ? 0 :
						  HML_GUARD_FREE * QUIET;
}

static void in_the_long_run_it_is_about_one_guess_a_second(void **state)
{
	static u64 (*const paces[])(u64 *) = {
		at_once, now_and_then, a_second_less_something, in_bursts,
	};
	u32 i;

	(void)state;
	nic->guesses = HML_GUARD_FREE;
	for (i = 0; i < ARRAY_SIZE(paces); i++) {
		u64 n;

		memset(guard, 0, sizeof(*guard));
		n = guesses_in_hours(6, paces[i]);
		assert_true(n <= HML_GUARD_FREE + 12 +
			    6 * HOUR / (1024 * UNIT_MS));
	}
	/* And it is not less either: an honest mistake is not for ever. */
	memset(guard, 0, sizeof(*guard));
	assert_true(guesses_in_hours(6, at_once) > 6 * 3600 * 9 / 10);
}

/* ---- hml_guard_inherit() ------------------------------------------------- */

static void new_sender_inherits_score_and_pause(void **state)
{
	struct hml_guard to = { 0 };
	u32 i;

	(void)state;
	for (i = 0; i < FREE + 3; i++)
		guess();
	hml_guard_inherit(&to, guard);
	assert_int_equal(to.score, FREE + 3);
	assert_int_equal(to.last, guard->last);
	assert_int_equal(to.until, guard->until);
	assert_true(hml_guard_paused(nic, &to));
}

static void blameless_one_leaves_what_is_remembered_as_it_is(void **state)
{
	struct hml_guard blameless = { 0 };
	struct hml_guard remembered;
	u32 i;

	(void)state;
	for (i = 0; i < FREE + 3; i++)
		guess();
	remembered = *guard;
	hml_guard_inherit(&remembered, &blameless);
	assert_memory_equal(&remembered, guard, sizeof(*guard));
}

static void worse_score_of_the_two_counts_at_the_time_of_the_later(void **state)
{
	const struct hml_guard early = { .last = 10 * QUIET, .score = 9 };
	const struct hml_guard late = { .last = 15 * QUIET, .score = 3 };
	struct hml_guard to = early;

	(void)state;
	hml_guard_inherit(&to, &late);		/* 9 - 5 is more than 3 */
	assert_int_equal(to.score, 4);
	assert_int_equal(to.last, 15 * QUIET);
	to = late;
	hml_guard_inherit(&to, &early);
	assert_int_equal(to.score, 4);
	assert_int_equal(to.last, 15 * QUIET);
	to = (struct hml_guard) { .last = 10 * QUIET, .score = 7 };
	hml_guard_inherit(&to, &late);		/* 7 - 5 is less than 3 */
	assert_int_equal(to.score, 3);
}

static void longer_pause_of_the_two_counts(void **state)
{
	struct hml_guard to = { .until = 5 };
	struct hml_guard from = { .until = 7 };

	(void)state;
	hml_guard_inherit(&to, &from);
	assert_int_equal(to.until, 7);
	from.until = 6;
	hml_guard_inherit(&to, &from);
	assert_int_equal(to.until, 7);
}

static void inheriting_does_not_add_up(void **state)
{
	struct hml_guard remembered = { 0 };
	u32 i;

	(void)state;
	for (i = 0; i < 5; i++)
		guess();
	for (i = 0; i < 100; i++)
		hml_guard_inherit(&remembered, guard);
	assert_int_equal(remembered.score, 5);
}

/* A new terminus for each guess is no way round it. */
static void new_sender_for_each_guess_guesses_no_faster(void **state)
{
	struct hml_guard remembered = { 0 };
	u64 end = unit_now_ns + HOUR;
	u64 n = 0;

	(void)state;
	while (unit_now_ns < end) {
		*guard = remembered;
		if (!hml_guard_paused(nic, guard)) {
			guess();
			n++;
		}
		hml_guard_inherit(&remembered, guard);
		unit_now_ns += UNIT_MS / 10;
	}
	assert_true(n <= FREE + 12 + 3600);
}

/* ---- hml_guard_forgiven() ------------------------------------------------ */

static void is_forgiven_when_a_guess_has_been_forgiven_each_second(void **state)
{
	const struct hml_guard many = { .last = QUIET, .score = 5000 };

	(void)state;
	assert_false(hml_guard_forgiven(&many, many.last));
	assert_false(hml_guard_forgiven(&many, many.last + 2049 * UNIT_SECOND));
	assert_false(hml_guard_forgiven(&many, many.last + 5000 * QUIET - 1));
	assert_true(hml_guard_forgiven(&many, many.last + 5000 * QUIET));
	assert_true(hml_guard_forgiven(&(struct hml_guard) { 0 }, 0));
}

static void who_is_paused_is_not_forgiven(void **state)
{
	const struct hml_guard paused = { .until = 2 * QUIET, .last = QUIET / 2,
					  .score = 1 };

	(void)state;
	assert_false(hml_guard_forgiven(&paused, 2 * QUIET - 1));
	assert_true(hml_guard_forgiven(&paused, 2 * QUIET));
}

/* Whoever is forgotten then begins as who never guessed. */
static void who_is_forgiven_is_no_worse_off_than_others(void **state)
{
	u32 i;

	(void)state;
	for (i = 0; i < 3 * HML_GUARD_FREE; i++)
		guess();
	while (!hml_guard_forgiven(guard, unit_now_ns))
		unit_now_ns += UNIT_SECOND;
	for (i = 0; i < FREE; i++) {
		assert_false(hml_guard_paused(nic, guard));
		guess();
	}
	assert_false(hml_guard_paused(nic, guard));
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

static void wrong_slot_key_and_missing_ticket_count_and_nothing_else(void **state)
{
	const struct hml_payload nothing = { 0 };
	int reason;

	for (reason = 0; reason < HAMLYN_REJECT_DOWN; reason++) {
		bool counts = reason == HAMLYN_REJECT_SLOT ||
			      reason == HAMLYN_REJECT_KEY ||
			      reason == HAMLYN_REJECT_TICKET;
		struct hamlyn_packet h = rejected_packet(reason);
		u32 i;

		for (i = 0; i <= FREE; i++) {
			/* Each of another message. */
			snd.t.sender.guessed = false;
			hml_rx(nic, &h, &nothing, &snd.t.sender);
		}
		assert_int_equal(snd.stats.rejects[reason], FREE + 1);
		assert_int_equal(guard->score, counts ? FREE + 1 : 0);
		assert_int_equal(hml_guard_paused(nic, guard), counts);
		assert_int_equal(snd.stats.pauses, counts);
		world_teardown(state);
		setup(state);
	}
}

/* Nobody chose its key. In the paranoid modes there is another one to guess. */
static void void_ticket_is_no_guess(void **state)
{
	const struct hml_payload nothing = { 0 };
	struct hamlyn_packet h = rejected_packet(-1);

	(void)state;
	h.flags |= HAMLYN_PACKET_TICKET;
	h.ticket_key = WORLD_TICKET + 1;
	hml_rx(nic, &h, &nothing, &snd.t.sender);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_KEY], 1);
	assert_int_equal(guard->score, 0);
	h.slot = UINT32_MAX;
	hml_rx(nic, &h, &nothing, &snd.t.sender);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_SLOT], 1);
	assert_int_equal(guard->score, 0);
	h.slot = 1;
	hosts[1].slots[1].mode = HAMLYN_SLOT_PARANOID;
	hml_rx(nic, &h, &nothing, &snd.t.sender);
	assert_int_equal(guard->score, 1);
}

static void secondary_key_counts_and_secondary_limits_do_not(void **state)
{
	const struct hml_payload nothing = { 0 };
	struct hamlyn_packet h = rejected_packet(-1);

	(void)state;
	hosts[1].slots[1].mode = HAMLYN_SLOT_PARANOID;
	hml_rx(nic, &h, &nothing, &snd.t.sender);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_KEY], 1);
	assert_int_equal(guard->score, 1);
	hosts[1].entries[1]->key = WORLD_KEY;
	hosts[1].entries[1]->low = 5;
	hml_rx(nic, &h, &nothing, &snd.t.sender);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_BOUNDS], 1);
	assert_int_equal(guard->score, 1);
}

static void packets_that_land_do_not_count(void **state)
{
	struct hamlyn_trb trb = world_request(1);
	u32 i;

	(void)state;
	for (i = 0; i < 100; i++)
		world_send(&snd, &trb);
	assert_int_equal(guard->score, 0);
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
		unit_now_ns += HML_GUARD_SHORTEST_NS / 10 - 1;
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
	assert_int_equal(snd.t.sender.guard.score, 1);
	world_post(&snd, &trb);
	assert_int_equal(world_run(&snd, 100), 12);
	assert_int_equal(snd.t.sender.guard.score, 2);
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
		TEST(free_guesses_cost_nothing_and_the_next_one_a_pause),
		TEST(default_number_of_free_guesses_is_kept_exactly),
		TEST(each_pause_is_twice_as_long_up_to_about_a_second),
		TEST(pause_ends_at_its_time_and_not_a_nanosecond_before),
		TEST(each_quiet_second_forgives_one_guess),
		TEST(second_that_is_not_over_forgives_nothing),
		TEST(long_silence_forgives_all_and_no_more),
		TEST(history_is_forgiven_a_second_a_guess),
		TEST(without_a_number_of_free_guesses_all_are_free),
		TEST(score_does_not_come_round_to_nothing),
		TEST(clock_that_stands_still_or_goes_back_forgives_nothing),
		TEST(clock_may_begin_at_nothing),
		TEST(clock_may_be_late_in_its_range),
		TEST(in_the_long_run_it_is_about_one_guess_a_second),

		TEST(new_sender_inherits_score_and_pause),
		TEST(blameless_one_leaves_what_is_remembered_as_it_is),
		TEST(worse_score_of_the_two_counts_at_the_time_of_the_later),
		TEST(longer_pause_of_the_two_counts),
		TEST(inheriting_does_not_add_up),
		TEST(new_sender_for_each_guess_guesses_no_faster),

		TEST(is_forgiven_when_a_guess_has_been_forgiven_each_second),
		TEST(who_is_paused_is_not_forgiven),
		TEST(who_is_forgiven_is_no_worse_off_than_others),

		TEST(wrong_slot_key_and_missing_ticket_count_and_nothing_else),
		TEST(void_ticket_is_no_guess),
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
