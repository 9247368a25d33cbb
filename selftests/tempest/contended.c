// SPDX-License-Identifier: GPL-2.0-only
/*
 * All nodes, two threads each, count in words of one block, which the example's protocol
 * takes from one to the other as fast as it can. Each thread has a word of its own: a count
 * that is lost was stored after the block had been sent away.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../libhamlyn/tempest/examples/migrate.h"
#include "test.h"

#define THREADS		2
#define MOST_NODES	(TPPI_TAG_BLK_SIZE / 4 / THREADS)

static atomic_bool stop;
static atomic_ulong progress[THREADS];

/* One thread is instrumented, the other one is not. */
static void count_once(volatile uint32_t *word, long thread)
{
	if (thread)
		++*word;
	else
		checked_add(word, 1);
}

static void *keep_counting(void *number)
{
	long thread = (long)number;
	volatile uint32_t *word = (volatile uint32_t *)TPPI_SEG_BASE;
	uint32_t expected = 0;

	word += THREADS * TPPI_self_address + thread;
	while (!stop) {
		uint32_t found = thread ? *word : checked_load(word);

		if (found != expected)
			failed(__FILE__, __LINE__, "node %u, %s: %u counts, %u found",
			       TPPI_self_address, thread ? "plain" : "checked", expected, found);
		count_once(word, thread);
		expected++;
		progress[thread]++;
	}
	return NULL;
}

static int seconds(void)
{
	const char *text = getenv("HAMLYN_TEST_SECONDS");

	return tempest_control ? 30 : text ? atoi(text) : 3;
}

/* In each second, or as soon as that is so here. */
static void each_advances(void)
{
	unsigned long before[THREADS];

	for (int i = 0; i < THREADS; i++)
		before[i] = progress[i];
	sleep(1);
	for (int i = 0; i < THREADS; i++)
		wait_past(&progress[i], before[i], i ? "the plain thread to get the block" :
						       "the checked thread to get the block");
}

static void counts(void)
{
	pthread_t threads[THREADS];

	CHECK(TPPI_num_nodes <= MOST_NODES);
	register_handlers();
	map_page(TPPI_SEG_BASE, 0, TPPI_self_address == HOME ? TPPI_Blk_Writable :
							       TPPI_Blk_Invalid);
	/* Mixed, so that the application view remains closed */
	TPPI_change_blk_acc(TPPI_SEG_BASE + TPPI_TAG_BLK_SIZE, TPPI_TAG_BLK_SIZE,
			    TPPI_Blk_Mark_Busy);
	TPPI_barrier();
	for (long i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, keep_counting, (void *)i));
	for (int i = 0; i < seconds(); i++)
		each_advances();
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	TPPI_barrier();
}

const struct test tests[] = {
	{ "counts", counts, CONTROL_NO_HANDSHAKE | CONTROL_NO_DRAIN, 0, 0 },
	{ 0 }
};
