// SPDX-License-Identifier: GPL-2.0-only
/* Where hamlyn-bridge's threads go: seldom, to where they are woken from, and not for ever. */
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#define MAY	0x3f	/* processors of ours */

static int64_t now_ns;
static int at;
static uint64_t mask[4];	/* that were set, in turn */
static unsigned int times;
static int refused;

static uint64_t low_bits(const cpu_set_t *set)
{
	uint64_t bits;

	memcpy(&bits, set, sizeof(bits));
	return bits;
}

static int get_mask(cpu_set_t *set)
{
	const uint64_t bits = MAY;

	memset(set, 0, sizeof(*set));
	memcpy(set, &bits, sizeof(bits));
	return 0;
}

static int set_mask(const cpu_set_t *set)
{
	if (times < 4)
		mask[times] = low_bits(set);
	times++;
	return refused;
}

#define sched_getcpu()				at
#define sched_getaffinity(pid, n, set)		get_mask(set)
#define sched_setaffinity(pid, n, set)		set_mask(set)
#include "../../tools/hamlyn-bridge/place.c"

int64_t h__now_ns(void)
{
	return now_ns;
}

static int begin(void **state)
{
	(void)state;
	now_ns = 1000 * NS_PER_MS;
	at = 1;
	times = 0;
	refused = 0;
	return 0;
}

static void follow(struct place *p, u32 cpu, int n)
{
	while (n--)
		place_follow(p, cpu);
}

static void it_goes_where_it_was_woken_from_again_and_again(void **state)
{
	struct place p = { 0 };

	(void)state;
	follow(&p, 5, MOST_APART - 1);
	assert_int_equal(times, 0);
	follow(&p, 5, 1);
	assert_int_equal(times, 2);
	assert_int_equal(mask[0], 1 << 5);
}

static void it_may_run_afterwards_where_it_might_before(void **state)
{
	struct place p = { 0 };

	(void)state;
	follow(&p, 5, MOST_APART);
	assert_int_equal(times, 2);
	assert_int_equal(mask[1], MAY);
}

static void a_wakeup_from_where_it_is_ends_the_row(void **state)
{
	struct place p = { 0 };
	int i;

	(void)state;
	for (i = 0; i < 10; i++) {
		follow(&p, 5, MOST_APART - 1);
		follow(&p, 1, 1);
	}
	assert_int_equal(times, 0);
}

static void it_does_not_insist(void **state)
{
	struct place p = { 0 };

	(void)state;
	follow(&p, 5, MOST_APART);
	follow(&p, 5, 100 * MOST_APART);
	now_ns += LEAST_STAY_NS - 1;
	follow(&p, 5, 100 * MOST_APART);
	assert_int_equal(times, 2);
	now_ns++;
	follow(&p, 5, MOST_APART);
	assert_int_equal(times, 4);
}

static void numbers_that_are_no_processors_mean_nothing(void **state)
{
	struct place p = { 0 };

	(void)state;
	follow(&p, CPU_SETSIZE, 100);
	follow(&p, UINT32_MAX, 100);
	assert_int_equal(times, 0);
}

static void where_it_may_not_go_it_does_not(void **state)
{
	struct place p = { 0 };

	(void)state;
	refused = -1;
	follow(&p, 63, MOST_APART);
	assert_int_equal(times, 1);
}

#define TEST(name)	cmocka_unit_test_setup(name, begin)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(it_goes_where_it_was_woken_from_again_and_again),
		TEST(it_may_run_afterwards_where_it_might_before),
		TEST(a_wakeup_from_where_it_is_ends_the_row),
		TEST(it_does_not_insist),
		TEST(numbers_that_are_no_processors_mean_nothing),
		TEST(where_it_may_not_go_it_does_not),
	};

	return cmocka_run_group_tests_name("place", tests, NULL, NULL);
}
