// SPDX-License-Identifier: GPL-2.0-only
/* Locks, barriers, flags and counters, by several threads of each node. */
#include <stdlib.h>
#include <unistd.h>

#include "test.h"

#define THREADS	2

static char name_a, name_b;	/* static data have the same address everywhere */
static volatile uint32_t *shared;

static void begin(void)
{
	stache_init(NULL);
	shared = tell_all(ME ? NULL : stache_malloc(4096));
}

static void count(unsigned int thread)
{
	(void)thread;
	for (int i = 0; i < 200; i++) {
		stache_lock((void *)shared);
		/* In two blocks, so that it takes two transfers */
		CHECK_EQUAL(shared[0], shared[256]);
		shared[0] = shared[0] + 1;
		shared[256] = shared[256] + 1;
		stache_unlock((void *)shared);
	}
}

static void locks(void)
{
	begin();
	in_threads(THREADS, count);
	TPPI_barrier();
	CHECK_EQUAL(shared[0], 200 * THREADS * NODES);
	CHECK_EQUAL(shared[256], 200 * THREADS * NODES);
}

/* Two locks do not wait for each other. */
static void two_locks(void)
{
	begin();
	if (!ME) {
		stache_lock(&name_a);
		stache_flag_set(&name_a);
		stache_flag_wait(&name_b);
		stache_unlock(&name_a);
	}
	if (TPPI_self_address == NODES - 1) {
		stache_flag_wait(&name_a);
		stache_lock(&name_b);
		stache_unlock(&name_b);
		stache_flag_set(&name_b);
	}
}

static void pass(unsigned int thread)
{
	unsigned int self = ME * THREADS + thread, all = THREADS * NODES;

	for (uint32_t i = 1; i < 200; i++) {
		shared[self * 32] = i;
		stache_barrier(&name_a, all);
		for (unsigned int other = 0; other < all; other++)
			CHECK_EQUAL(shared[other * 32], i);
		stache_barrier(&name_b, all);
	}
}

static void barriers(void)
{
	begin();
	in_threads(THREADS, pass);
}

/* What was stored before a flag is raised is seen by those who have waited for it. */
static void flags(void)
{
	begin();
	for (uint32_t i = 1; i < 200; i++) {
		if (i % NODES == ME) {
			shared[0] = i;
			stache_flag_set(&name_a);
		}
		stache_flag_wait(&name_a);
		CHECK_EQUAL(shared[0], i);
		TPPI_barrier();
		if (!ME)
			stache_flag_clear(&name_a);
		TPPI_barrier();
	}
}

/*
 * Once a flag is raised, or a pointer published, it is so for all who learn of it: who then
 * lowers the flag lowers it, and who looks for the pointer finds this one.
 */
static void known(void)
{
	begin();
	for (uintptr_t i = 1; i < 10; i++) {
		if (!ME) {
			stache_flag_set(&name_a);
			stache_publish(&name_b, (void *)i);
		}
		TPPI_barrier();
		CHECK_EQUAL((uintptr_t)stache_find(&name_b), i);
		if (TPPI_self_address == NODES - 1) {
			stache_flag_clear(&name_a);
			shared[0] = 0;
		}
		TPPI_barrier();
		if (TPPI_self_address == NODES - 1) {
			usleep(50000);
			shared[0] = i;
			stache_flag_set(&name_a);
		} else {
			stache_flag_wait(&name_a);
			CHECK_EQUAL(shared[0], i);
		}
		TPPI_barrier();
		if (!ME)
			stache_flag_clear(&name_a);
		TPPI_barrier();
	}
}

static void take(unsigned int thread)
{
	(void)thread;
	for (;;) {
		unsigned int number = stache_count(&name_a);

		if (number >= 1000)
			return;
		__atomic_add_fetch(&shared[number], 1, __ATOMIC_RELAXED);
	}
}

static void counters(void)
{
	begin();
	for (unsigned int round = 1; round < 3; round++) {
		in_threads(THREADS, take);
		TPPI_barrier();
		for (int i = 0; i < 1000; i++)
			CHECK_EQUAL(shared[i], round);
		TPPI_barrier();
		if (!ME)
			stache_count_reset(&name_a);
		TPPI_barrier();
	}
}

/* Of memory that is elsewhere on each node, even if it is not so today. */
static void private_name(void)
{
	void *memory = malloc(1);

	begin();
	stache_lock(memory);
}

static void not_locked(void)
{
	begin();
	stache_unlock(&name_a);
	TPPI_barrier();
	TPPI_barrier();
}

const struct test tests[] = {
	{ "locks", locks, CONTROL_NO_EXCLUSION, NULL },
	{ "two_locks", two_locks, 0, NULL },
	{ "barriers", barriers, CONTROL_NO_WAIT, NULL },
	{ "flags", flags, CONTROL_NO_WAIT, NULL },
	{ "known", known, CONTROL_NO_ANSWER, NULL },
	{ "counters", counters, 0, NULL },
	{ "private_name", private_name, 0, "neither in the segment" },
	{ "not_locked", not_locked, 0, "not locked" },
	{ 0 }
};
