// SPDX-License-Identifier: GPL-2.0-only
/* How long the library's parts take, as medians. It judges nothing: the benchmark does. */
#include <linux/membarrier.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

#define SAMPLES	5000

static int64_t samples[SAMPLES];

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return x < y ? -1 : x > y;
}

static void report(const char *what)
{
	qsort(samples, SAMPLES, sizeof(samples[0]), by_size);
	CHECK(samples[0] > 0);
	printf("# %-46s median %6.2f us, p10 %6.2f, p90 %7.2f\n", what,
	       samples[SAMPLES / 2] / 1e3, samples[SAMPLES / 10] / 1e3,
	       samples[SAMPLES * 9 / 10] / 1e3);
}

static void validate(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	(void)home;
	TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
	TPPI_resume_va(va, TPPI_TAG_BLK_SIZE);
}

static void prepare_at(void *page)
{
	TPPI_register_blk_acc_fault_handler(0, TPPI_Blk_Invalid, TPPI_ReadAccess, validate);
	TPPI_register_blk_acc_fault_handler(0, TPPI_Blk_Invalid, TPPI_WriteAccess, validate);
	map_mixed(page);
}

static void prepare(void)
{
	prepare_at(page_at(0));
}

static void measure_faults(const char *what, bool checked)
{
	for (int i = 0; i < SAMPLES; i++) {
		int64_t begin;

		TPPI_change_blk_acc(page_at(0), TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
		begin = now_ns();
		if (checked)
			checked_store(page_at(0), i);
		else
			*(volatile int *)page_at(0) = i;
		samples[i] = now_ns() - begin;
	}
	report(what);
}

static void faults(void)
{
	prepare();
	measure_faults("block fault to resumed, plain store", false);
	measure_faults("block fault to resumed, checked store", true);
}

static void out_of_line(void)
{
	prepare();
	for (int i = 0; i < SAMPLES; i++) {
		int64_t begin = now_ns();

		*(volatile int *)page_at(0) = i;
		samples[i] = now_ns() - begin;
	}
	report("permitted plain store, closed page");
}

static atomic_bool stop;

/* Where there are two processors: else the scheduler may run one thread after the other. */
static void pin(int processor)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(processor, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static void *run_checked(void *page)
{
	pin(1);
	while (!stop)
		checked_add((char *)page + 64, 1);
	return NULL;
}

static int64_t downgrade_takes(void)
{
	int64_t begin;

	TPPI_change_blk_acc(page_at(0), TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
	begin = now_ns();
	TPPI_change_blk_acc(page_at(0), TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
	return now_ns() - begin;
}

static void measure_downgrades(const char *what)
{
	for (int i = 0; i < SAMPLES; i++)
		samples[i] = downgrade_takes();
	report(what);
}

/* What the kernel and the machine take of it: to interrupt another processor. */
static int64_t membarrier_takes(void)
{
	int64_t begin = now_ns();

	CHECK(!syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, 0, 0));
	return now_ns() - begin;
}

#define MOST_TRIES	(200 * SAMPLES)

/* The other one's processor is for others, too: those that it did not run in do not count. */
static void measure_beside_running(const char *what, int64_t (*takes)(void))
{
	int found = 0;

	for (int i = 0; found < SAMPLES && i < MOST_TRIES; i++) {
		uint32_t before = checked_load(page_at(0) + 64);
		int64_t took = takes();

		if (checked_load(page_at(0) + 64) != before)
			samples[found++] = took;
	}
	CHECK_EQUAL(found, SAMPLES);
	report(what);
}

static void downgrades(void)
{
	pthread_t thread;

	prepare();
	pin(0);
	measure_downgrades("downgrade, all other threads asleep");
	CHECK(!pthread_create(&thread, NULL, run_checked, page_at(0)));
	measure_beside_running("downgrade, another thread running", downgrade_takes);
	measure_beside_running("membarrier() alone, another thread running", membarrier_takes);
	stop = true;
	pthread_join(thread, NULL);
}

/* ---- what grows with threads, and with nodes ---- */

#define MOST_THREADS	1024

static atomic_int asleep;

/* Known to the library since its access has trapped. */
static void *sleep_known(void *page)
{
	*(volatile int *)page = 1;
	asleep++;
	pause();
	return NULL;
}

static void by_threads(void)
{
	pthread_attr_t attr;
	char what[64];

	prepare();
	pin(0);
	CHECK(!pthread_attr_init(&attr) && !pthread_attr_setstacksize(&attr, 64 << 10));
	for (int number = 0; number <= MOST_THREADS; number = number ? 4 * number : 1) {
		pthread_t thread;

		for (int i = asleep; i < number; i++)
			CHECK(!pthread_create(&thread, &attr, sleep_known, page_at(0)));
		while (asleep < number)
			usleep(1000);
		snprintf(what, sizeof(what), "downgrade, %d threads asleep", number);
		measure_downgrades(what);
	}
}

static void barriers(void)
{
	char what[64];

	for (int i = 0; i < SAMPLES; i++) {
		int64_t begin = now_ns();

		TPPI_barrier();
		samples[i] = now_ns() - begin;
	}
	snprintf(what, sizeof(what), "barrier, %u nodes", TPPI_num_nodes);
	if (!TPPI_self_address)
		report(what);
	TPPI_barrier();
}

static void open_and_close(void)
{
	prepare();
	map_page(page_at(1), 0, TPPI_Blk_Writable);
	for (int i = 0; i < SAMPLES; i++) {
		int64_t begin = now_ns();

		*(volatile int *)page_at(1) = i;
		samples[i] = now_ns() - begin;
		TPPI_change_blk_acc(page_at(1), TPPI_PAGE_SIZE, TPPI_Blk_Downgrade_RO);
		TPPI_change_blk_acc(page_at(1), TPPI_PAGE_SIZE, TPPI_Blk_Upgrade_RW);
	}
	report("store that opens a page");
}

/* ---- a block of the other node, whose threads sleep ---- */

static void take_block(TPPI_NodeId src, int size)
{
	void *va = TPPI_recv_P();

	(void)src;
	(void)size;
	TPPI_recv_Ba(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RO);
	TPPI_resume_va(va, TPPI_TAG_BLK_SIZE);
}

static void give_block(TPPI_NodeId src, int size)
{
	void *va = TPPI_recv_P();

	(void)size;
	TPPI_send_items(src, take_block, "PBa", va, va, TPPI_TAG_BLK_SIZE,
			TPPI_Blk_No_Tag_Change);
}

static void ask_home(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	TPPI_send_items(home, give_block, "P", va);
}

static int64_t load_takes(char *va)
{
	int64_t begin;

	TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
	begin = now_ns();
	checked_load(va);
	return now_ns() - begin;
}

/* Beside faults that this node's own handler answers, in turns. */
static void fetches(void)
{
	static int64_t others[SAMPLES];
	TPPI_NodeId home = TPPI_num_nodes - 1;

	TPPI_register_blk_acc_fault_handler(1, TPPI_Blk_Invalid, TPPI_ReadAccess, ask_home);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(0), 1, TPPI_self_address == home ?
				       TPPI_Blk_Writable : TPPI_Blk_Invalid, home, NULL), 1);
	prepare_at(page_at(1));
	TPPI_barrier();
	for (int i = 0; !TPPI_self_address && i < SAMPLES; i++) {
		samples[i] = load_takes(page_at(1));
		others[i] = load_takes(page_at(0));
	}
	if (!TPPI_self_address) {
		report("block fault to resumed, checked load");
		memcpy(samples, others, sizeof(samples));
		report(TPPI_num_nodes > 1 ? "fetch of a block, home on another node" :
					    "fetch of a block by messages to itself");
	}
	TPPI_barrier();
}

const struct test tests[] = {
	{ "faults", faults, 0, 0, 0 },
	{ "out-of-line", out_of_line, 0, 0, 0 },
	{ "downgrades", downgrades, 0, 0, 0 },
	{ "by-threads", by_threads, 0, 0, 0 },
	{ "barriers", barriers, 0, 0, 0 },
	{ "open-and-close", open_and_close, 0, 0, 0 },
	{ "fetches", fetches, 0, 0, 0 },
	{ 0 }
};
