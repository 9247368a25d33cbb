// SPDX-License-Identifier: GPL-2.0-only
/*
 * Up, down and the watchdog (H 2.8): what the state is, and that a NIC that
 * is down, on either side, discards without a word to the sender.
 */
#include "unit.h"

/* Right before something is published by the core. */
static void (*before_release)(void);

#undef smp_store_release
#define smp_store_release(p, v) do {					\
	if (before_release)						\
		before_release();					\
	__atomic_store_n(p, v, __ATOMIC_RELEASE);			\
} while (0)

#include "unit_world.h"

#define MS	250		/* of the watchdog */

static struct hml_nic *nic;

static int setup(void **state)
{
	world_setup(state);
	nic = &hosts[0].nic;
	before_release = NULL;
	return 0;
}

static void set(struct hml_nic *n, u32 flags, u32 state, u32 watchdog_ms)
{
	const struct hamlyn_nic_set arg = {
		.size = sizeof(arg),
		.flags = flags,
		.state = state,
		.watchdog_ms = watchdog_ms,
	};

	hml_link_set(n, &arg);
}

static void go_down(struct hml_nic *n)
{
	set(n, HAMLYN_NIC_SET_STATE, HAMLYN_NIC_DOWN, 0);
}

static void go_up(struct hml_nic *n)
{
	set(n, HAMLYN_NIC_SET_STATE, HAMLYN_NIC_UP, 0);
}

static void feed(struct hml_nic *n)
{
	set(n, HAMLYN_NIC_FEED, 0, 0);
}

static void watch(struct hml_nic *n, u32 ms)
{
	set(n, HAMLYN_NIC_SET_WATCHDOG, 0, ms);
}

static void assert_state(const struct hml_nic *n, u32 state)
{
	assert_int_equal(hml_link_state(n), state);
	assert_int_equal(hml_link_up(n), state == HAMLYN_NIC_UP);
}

/* ---- state --------------------------------------------------------------- */

static void new_nic_is_up_without_a_watchdog(void **state)
{
	(void)state;
	assert_state(nic, HAMLYN_NIC_UP);
	unit_now_ns += 1000000 * UNIT_SECOND;
	assert_state(nic, HAMLYN_NIC_UP);
}

static void nic_is_down_from_set_down_to_set_up(void **state)
{
	(void)state;
	go_down(nic);
	assert_state(nic, HAMLYN_NIC_DOWN);
	go_down(nic);
	assert_state(nic, HAMLYN_NIC_DOWN);
	go_up(nic);
	assert_state(nic, HAMLYN_NIC_UP);
	go_up(nic);
	assert_state(nic, HAMLYN_NIC_UP);
}

static void one_nics_state_is_not_the_others(void **state)
{
	(void)state;
	go_down(nic);
	watch(&hosts[1].nic, MS);
	unit_now_ns += 2 * MS * UNIT_MS;
	assert_state(nic, HAMLYN_NIC_DOWN);
	assert_state(&hosts[1].nic, HAMLYN_NIC_UNFED);
	go_up(nic);
	assert_state(nic, HAMLYN_NIC_UP);
}

static void watchdog_that_is_fed_in_time_keeps_the_nic_up(void **state)
{
	u32 i;

	(void)state;
	watch(nic, MS);
	for (i = 0; i < 1000; i++) {
		unit_now_ns += MS * UNIT_MS;
		assert_state(nic, HAMLYN_NIC_UP);
		feed(nic);
	}
}

static void watchdog_bites_a_nanosecond_after_its_time(void **state)
{
	(void)state;
	watch(nic, MS);
	unit_now_ns += MS * UNIT_MS;
	assert_state(nic, HAMLYN_NIC_UP);
	unit_now_ns++;
	assert_state(nic, HAMLYN_NIC_UNFED);
	unit_now_ns += 1000 * UNIT_SECOND;
	assert_state(nic, HAMLYN_NIC_UNFED);
}

static void feeding_brings_an_unfed_nic_back(void **state)
{
	u32 i;

	(void)state;
	watch(nic, MS);
	for (i = 0; i < 5; i++) {
		unit_now_ns += 2 * MS * UNIT_MS;
		assert_state(nic, HAMLYN_NIC_UNFED);
		feed(nic);
		assert_state(nic, HAMLYN_NIC_UP);
	}
}

static void setting_the_watchdog_feeds_it(void **state)
{
	(void)state;
	watch(nic, MS);
	unit_now_ns += MS * UNIT_MS + 1;
	watch(nic, MS);
	assert_state(nic, HAMLYN_NIC_UP);
	unit_now_ns += MS * UNIT_MS + 1;
	assert_state(nic, HAMLYN_NIC_UNFED);
}

static void watchdog_of_nothing_is_none(void **state)
{
	(void)state;
	watch(nic, MS);
	unit_now_ns += 1000 * UNIT_SECOND;
	watch(nic, 0);
	assert_state(nic, HAMLYN_NIC_UP);
	unit_now_ns += 1000 * UNIT_SECOND;
	assert_state(nic, HAMLYN_NIC_UP);
}

static void feeding_does_not_bring_up_what_an_administrator_set_down(void **state)
{
	(void)state;
	watch(nic, MS);
	go_down(nic);
	feed(nic);
	assert_state(nic, HAMLYN_NIC_DOWN);
	unit_now_ns += 2 * MS * UNIT_MS;
	assert_state(nic, HAMLYN_NIC_DOWN);
	/* Up again it is as hungry as it is. */
	go_up(nic);
	assert_state(nic, HAMLYN_NIC_UNFED);
	feed(nic);
	assert_state(nic, HAMLYN_NIC_UP);
}

static void who_fed_late_takes_back_nobodys_food(void **state)
{
	(void)state;
	watch(nic, 10);
	unit_now_ns += 20 * UNIT_MS;
	feed(nic);
	/* He had looked at the clock before. */
	unit_now_ns -= 15 * UNIT_MS;
	feed(nic);
	unit_now_ns += 23 * UNIT_MS;
	assert_state(nic, HAMLYN_NIC_UP);
}

static void only_what_the_flags_name_is_changed(void **state)
{
	(void)state;
	set(nic, 0, HAMLYN_NIC_DOWN, MS);
	assert_state(nic, HAMLYN_NIC_UP);
	assert_int_equal(hosts[0].link.watchdog_ms, 0);
	assert_int_equal(hosts[0].link.fed, 0);
	set(nic, HAMLYN_NIC_FEED, HAMLYN_NIC_DOWN, MS);
	assert_state(nic, HAMLYN_NIC_UP);
	assert_int_equal(hosts[0].link.watchdog_ms, 0);
	set(nic, HAMLYN_NIC_SET_WATCHDOG, HAMLYN_NIC_DOWN, MS);
	assert_state(nic, HAMLYN_NIC_UP);
	unit_now_ns += UNIT_MS;
	set(nic, HAMLYN_NIC_SET_STATE, HAMLYN_NIC_UP, 5 * MS);
	assert_int_equal(hosts[0].link.watchdog_ms, MS);
	assert_int_equal(hosts[0].link.fed, unit_now_ns - UNIT_MS);
}

static void all_flags_at_once_do_all(void **state)
{
	(void)state;
	set(nic, HAMLYN_NIC_SET_STATE | HAMLYN_NIC_SET_WATCHDOG |
	    HAMLYN_NIC_FEED, HAMLYN_NIC_DOWN, MS);
	assert_state(nic, HAMLYN_NIC_DOWN);
	assert_int_equal(hosts[0].link.watchdog_ms, MS);
	assert_int_equal(hosts[0].link.fed, unit_now_ns);
}

static u32 releases;

static void already_fed(void)
{
	releases++;
	assert_int_equal(hosts[0].link.fed, unit_now_ns);
	assert_int_equal(hosts[0].link.watchdog_ms, 0);
}

static void watchdog_is_fed_before_it_can_bite(void **state)
{
	(void)state;
	releases = 0;
	before_release = already_fed;
	watch(nic, MS);
	assert_int_equal(releases, 1);
}

/* Fed by another processor since this one looked at the clock. */
static void watchdog_that_was_fed_a_moment_later_does_not_bite(void **state)
{
	(void)state;
	watch(nic, MS);
	unit_now_ns += 3;
	feed(nic);
	unit_now_ns -= 3;
	assert_state(nic, HAMLYN_NIC_UP);
}

static void longest_watchdog_is_a_day(void **state)
{
	(void)state;
	watch(nic, HAMLYN_MAX_WATCHDOG_MS);
	unit_now_ns += 24 * 3600 * UNIT_SECOND;
	assert_state(nic, HAMLYN_NIC_UP);
	unit_now_ns++;
	assert_state(nic, HAMLYN_NIC_UNFED);
	watch(nic, 1);
	unit_now_ns += UNIT_MS;
	assert_state(nic, HAMLYN_NIC_UP);
	unit_now_ns++;
	assert_state(nic, HAMLYN_NIC_UNFED);
}

/* ---- packets ------------------------------------------------------------- */

/* Everything is done and counted as sent, and nobody else hears of it. */
static void assert_discarded(u32 messages, u64 packets)
{
	u32 i;

	assert_int_equal(snd.t.status->completed, messages);
	assert_int_equal(snd.t.status->failed, 0);
	assert_int_equal(snd.stats.messages, messages);
	assert_int_equal(snd.stats.packets, packets);
	assert_int_equal(snd.stats.failed, 0);
	for (i = 0; i < HAMLYN_REJECT_REASONS; i++)
		assert_int_equal(snd.stats.rejects[i],
				 i == HAMLYN_REJECT_DOWN ? packets : 0);
	assert_int_equal(world_slot_rejects(), 0);
	assert_int_equal(world_rejected, 0);
	assert_int_equal(world_wakes, 0);
	assert_int_equal(snd.bucket.full, 0);
	world_assert_nothing_landed();
}

/* One packet, three, none of payload, fast, silent, and of a wrong key. */
static void send_all_kinds(void)
{
	struct hamlyn_trb trb;

	trb = world_request(8);
	assert_int_equal(world_send(&snd, &trb), 0);
	trb = world_request(3 * WORLD_PACKET);
	assert_int_equal(world_send(&snd, &trb), 0);
	trb = world_request(0);
	trb.meta_length = 5;
	assert_int_equal(world_send(&snd, &trb), 0);
	trb = world_request(8);
	trb.flags = HAMLYN_TRB_FAST;
	trb.meta_index = HAMLYN_META_FAST;
	assert_int_equal(world_send(&snd, &trb), 0);
	trb = world_request(8);
	trb.flags = HAMLYN_TRB_NO_NOTIFY;
	assert_int_equal(world_send(&snd, &trb), 0);
	trb = world_request(8);
	trb.key++;
	assert_int_equal(world_send(&snd, &trb), 0);
	trb = world_request(8);
	trb.slot = 0;
	assert_int_equal(world_send(&snd, &trb), 0);
}

static void packets_of_a_sender_that_is_down_land_nowhere(void **state)
{
	(void)state;
	go_down(&hosts[0].nic);
	send_all_kinds();
	assert_discarded(7, 9);
	assert_int_equal(snd.stats.bytes, 5 * 8 + 3 * WORLD_PACKET);
}

static void packets_for_a_receiver_that_is_down_land_nowhere(void **state)
{
	(void)state;
	go_down(&hosts[1].nic);
	send_all_kinds();
	assert_discarded(7, 9);
	assert_int_equal(snd.stats.bytes, 5 * 8 + 3 * WORLD_PACKET);
}

static void packets_between_nics_that_are_unfed_land_nowhere(void **state)
{
	u32 i;

	for (i = 0; i < WORLD_HOSTS; i++) {
		watch(&hosts[i].nic, MS);
		unit_now_ns += MS * UNIT_MS + 1;
		send_all_kinds();
		assert_discarded(7, 9);
		world_teardown(state);
		setup(state);
	}
}

static void nic_that_is_down_does_not_reach_itself(void **state)
{
	struct hamlyn_trb trb = world_request(8);

	(void)state;
	trb.host = 0;
	go_down(&hosts[0].nic);
	assert_int_equal(world_send(&snd, &trb), 0);
	assert_discarded(1, 1);
	go_up(&hosts[0].nic);
	assert_int_equal(world_send(&snd, &trb), 0);
	world_assert_landed(0, 1, 0, 8);
	assert_int_equal(world_told(0), 1);
}

static void nic_that_is_down_takes_no_part_in_what_others_send(void **state)
{
	struct hamlyn_trb trb = world_request(8);

	(void)state;
	go_down(&hosts[1].nic);
	trb.host = 0;
	assert_int_equal(world_send(&snd, &trb), 0);
	world_assert_landed(0, 1, 0, 8);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_DOWN], 0);
}

static void request_that_is_malformed_is_refused_by_a_nic_that_is_down(void **state)
{
	struct hamlyn_trb trb = world_request(8);

	(void)state;
	go_down(&hosts[0].nic);
	trb.flags = 1U << 31;
	assert_int_equal(world_send(&snd, &trb), -EINVAL);
	trb = world_request(8);
	trb.host = WORLD_HOSTS;
	assert_int_equal(world_send(&snd, &trb), -EHOSTUNREACH);
	assert_int_equal(snd.stats.packets, 0);
}

static void traffic_goes_on_when_both_are_up_again(void **state)
{
	struct hamlyn_trb trb = world_request(3 * WORLD_PACKET);
	u32 i;

	(void)state;
	watch(&hosts[1].nic, MS);
	for (i = 1; i <= 3; i++) {
		go_down(&hosts[0].nic);
		assert_int_equal(world_send(&snd, &trb), 0);
		go_up(&hosts[0].nic);
		unit_now_ns += 2 * MS * UNIT_MS;
		assert_int_equal(world_send(&snd, &trb), 0);
		assert_int_equal(world_told(1), i - 1);
		feed(&hosts[1].nic);
		assert_int_equal(world_send(&snd, &trb), 0);
		assert_int_equal(world_told(1), i);
		world_assert_landed(1, 1, 0, 3 * WORLD_PACKET);
		assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_DOWN], i * 6);
	}
}

/* The packets while it is down are missing, so the message is never told. */
static void lose_packets(u32 side, u32 from, u32 n)
{
	struct hamlyn_trb trb = world_request(6 * WORLD_PACKET);
	const u8 *area = hosts[1].area[1] + WORLD_BASE;
	u32 i;

	world_post(&snd, &trb);
	world_run(&snd, from);
	go_down(&hosts[side].nic);
	world_run(&snd, n);
	go_up(&hosts[side].nic);
	world_run(&snd, 100);
	for (i = 0; i < 6 * WORLD_PACKET; i++) {
		u32 packet = i / WORLD_PACKET;
		bool lost = packet >= from && packet < from + n;

		assert_int_equal(area[i], lost ? UNIT_GUARD : world_byte(i));
	}
	assert_int_equal(world_told(1), 0);
	assert_int_equal(snd.t.status->completed, 1);
	assert_int_equal(snd.t.status->failed, 0);
	assert_int_equal(snd.stats.packets, 6);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_DOWN], n);
	assert_int_equal(world_rejected, 0);
}

static void nic_down_in_the_middle_of_a_message_loses_those_packets(void **state)
{
	u32 side, from, n;

	for (side = 0; side < WORLD_HOSTS; side++)
		for (from = 0; from < 6; from++)
			for (n = 1; n <= 6 - from; n++) {
				lose_packets(side, from, n);
				world_teardown(state);
				setup(state);
			}
}

static void watchdog_that_bites_in_the_middle_counts_too(void **state)
{
	struct hamlyn_trb trb = world_request(6 * WORLD_PACKET);

	(void)state;
	watch(&hosts[0].nic, MS);
	world_post(&snd, &trb);
	world_run(&snd, 2);
	unit_now_ns += MS * UNIT_MS + 1;
	world_run(&snd, 3);
	feed(&hosts[0].nic);
	world_run(&snd, 100);
	assert_int_equal(snd.stats.rejects[HAMLYN_REJECT_DOWN], 3);
	assert_int_equal(snd.t.status->completed, 1);
	assert_int_equal(world_told(1), 0);
}

#define TEST(f)	cmocka_unit_test_setup_teardown(f, setup, world_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		TEST(new_nic_is_up_without_a_watchdog),
		TEST(nic_is_down_from_set_down_to_set_up),
		TEST(one_nics_state_is_not_the_others),
		TEST(watchdog_that_is_fed_in_time_keeps_the_nic_up),
		TEST(watchdog_bites_a_nanosecond_after_its_time),
		TEST(feeding_brings_an_unfed_nic_back),
		TEST(setting_the_watchdog_feeds_it),
		TEST(watchdog_of_nothing_is_none),
		TEST(feeding_does_not_bring_up_what_an_administrator_set_down),
		TEST(who_fed_late_takes_back_nobodys_food),
		TEST(only_what_the_flags_name_is_changed),
		TEST(all_flags_at_once_do_all),
		TEST(watchdog_is_fed_before_it_can_bite),
		TEST(watchdog_that_was_fed_a_moment_later_does_not_bite),
		TEST(longest_watchdog_is_a_day),

		TEST(packets_of_a_sender_that_is_down_land_nowhere),
		TEST(packets_for_a_receiver_that_is_down_land_nowhere),
		TEST(packets_between_nics_that_are_unfed_land_nowhere),
		TEST(nic_that_is_down_does_not_reach_itself),
		TEST(nic_that_is_down_takes_no_part_in_what_others_send),
		TEST(request_that_is_malformed_is_refused_by_a_nic_that_is_down),
		TEST(traffic_goes_on_when_both_are_up_again),
		TEST(nic_down_in_the_middle_of_a_message_loses_those_packets),
		TEST(watchdog_that_bites_in_the_middle_counts_too),
	};

	return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
