// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who loses the processor while he is about to wake a receiver keeps nobody else from waking
 * it. Somebody of a low priority sends to it without end; at random a real-time thread takes
 * his processor for as long as it takes another sender to be heard. Kernel device only, run
 * as root, on two processors. Without preemption in the kernel he never loses it there.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"
#include "genl.h"
#include "nics.h"

#include <pthread.h>
#include <sched.h>
#include <sys/sysinfo.h>

#define ROUNDS		300
#define END		UINT64_MAX
/* The kernel gives others some of the processor that is taken, each second: by then a host
 * that is busy may have kept the receiver from it, too.
 */
#define LATE		3
#define UNHURRIED	2000		/* loops between two messages: the receiver falls asleep */

/* Of the library: sleep until the NQ has something. */
int h__nq_sleep(struct h_nq *nq, int64_t deadline_ns);

FIXTURE(hostile_wake) {
	struct genl g;
	int nic;
	struct ht_pair pair;
	struct h_dev *dev;		/* of the other sender */
	struct h_terminus *terminus;
	struct h_ticket fast;
	/* atomic */
	uint64_t sent;			/* by the first one */
	uint64_t heard;			/* the last word of the other sender */
	uint32_t take;			/* the processor is to be taken: */
	uint32_t taken;			/* it is */
	uint32_t stop;
	int failed;
	unsigned int late;		/* heard when the first one had his processor again */
};

FIXTURE_SETUP(hostile_wake)
{
	const struct ht_pair_attr attr = { .length = 4096 };
	const struct h_terminus_attr terminus = { 0 };
	const struct nic_wish wish = { HAMLYN_A_ENGINE_MODE,
				       HAMLYN_NL_ENGINE_INLINE };

	ASSERT_EQ(0, genl_open(&self->g, HAMLYN_FAMILY_NAME,
			       HAMLYN_FAMILY_VERSION));
	self->nic = nic_make(&self->g, &wish, 1);
	ASSERT_LE(0, self->nic);
	nic_use((uint32_t)self->nic);
	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	ASSERT_EQ(0, ht_open(&self->dev));
	ASSERT_EQ(0, h_terminus_create(self->dev, &terminus, &self->terminus));
	self->fast = self->pair.ticket;
	self->fast.meta_index = HAMLYN_META_FAST;
}

FIXTURE_TEARDOWN(hostile_wake)
{
	h_close(self->dev);
	ht_pair_close(&self->pair);
	EXPECT_EQ(0, nic_delete_soon(&self->g, (uint32_t)self->nic));
	genl_close(&self->g);
}

static int run_on(int cpu, int policy, int priority)
{
	const struct sched_param param = { .sched_priority = priority };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) ?:
	       pthread_setschedparam(pthread_self(), policy, &param);
}

static void *receive(void *arg)
{
	FIXTURE_DATA(hostile_wake) *self = arg;
	struct hamlyn_nq_entry e;
	int ret;

	for (;;) {
		ret = h_recv(self->pair.nq, &e);
		if (!ret)
			ret = h__nq_sleep(self->pair.nq, -1);
		else if (ret == 1 && e.data)
			__atomic_store_n(&self->heard, e.data, __ATOMIC_RELEASE);
		if (ret < 0 && ret != -EOVERFLOW && ret != -EINTR)
			self->failed = ret;
		if (self->failed || self->heard == END)
			return NULL;
	}
}

static void *send_without_end(void *arg)
{
	FIXTURE_DATA(hostile_wake) *self = arg;
	const struct h_msg m = { .ticket = &self->fast };
	int i;

	self->failed = run_on(0, SCHED_BATCH, 0);
	while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED)) {
		ht_send(self->pair.terminus, &m);
		__atomic_fetch_add(&self->sent, 1, __ATOMIC_RELAXED);
		for (i = 0; i < UNHURRIED; i++)
			__asm__ volatile("" ::: "memory");
	}
	return NULL;
}

static void *take_processor(void *arg)
{
	FIXTURE_DATA(hostile_wake) *self = arg;

	if (run_on(0, SCHED_FIFO, 1))
		self->failed = -EPERM;
	while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED)) {
		ht_sleep_ns(HT_MS / 2);
		if (!__atomic_load_n(&self->take, __ATOMIC_ACQUIRE))
			continue;
		__atomic_store_n(&self->taken, 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&self->take, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&self->taken, 0, __ATOMIC_RELEASE);
	}
	return NULL;
}

static bool flag_becomes(const uint32_t *flag, uint32_t value)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

/* Again and again: it is lost when the first sender has filled the queue. */
static const char *say_until_heard(FIXTURE_DATA(hostile_wake) *self, uint64_t word)
{
	const struct h_msg m = { .ticket = &self->fast, .word = word };
	struct ht_poll poll;
	int i;

	ht_poll_begin(&poll);
	while (ht_poll_more(&poll)) {
		if (ht_send(self->terminus, &m) < 0)
			return "not sent";
		for (i = 0; i < 100; i++) {
			if (__atomic_load_n(&self->heard, __ATOMIC_ACQUIRE) >= word)
				return NULL;
			ht_sleep_ns(HT_MS / 10);
		}
	}
	return "the other sender is not heard";
}

/* While the first sender has no processor: NULL, or what went wrong. */
static const char *other_is_heard(FIXTURE_DATA(hostile_wake) *self, uint64_t word)
{
	const char *wrong;
	uint64_t sent;

	ht_sleep_ns((int64_t)(rand() % 2000) * 1000);
	__atomic_store_n(&self->take, 1, __ATOMIC_RELEASE);
	if (!flag_becomes(&self->taken, 1)) {
		__atomic_store_n(&self->take, 0, __ATOMIC_RELEASE);
		return "the processor was not taken";
	}
	sent = __atomic_load_n(&self->sent, __ATOMIC_RELAXED);
	wrong = say_until_heard(self, word);
	self->late += __atomic_load_n(&self->sent, __ATOMIC_RELAXED) != sent;
	__atomic_store_n(&self->take, 0, __ATOMIC_RELEASE);
	return flag_becomes(&self->taken, 0) ? wrong : "the processor was not given back";
}

TEST_F(hostile_wake, who_loses_the_processor_keeps_nobody_from_waking)
{
	void *(*const run[])(void *) = { receive, send_without_end, take_processor };
	const char *wrong = NULL;
	pthread_t threads[3];
	uint64_t i;

	if (get_nprocs() < 2)
		SKIP(return, "one processor");
	ASSERT_EQ(0, run_on(1, SCHED_OTHER, 0));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, run[i], self));
	for (i = 1; i <= ROUNDS && !wrong; i++)
		wrong = other_is_heard(self, i);
	EXPECT_NO(wrong) {
		TH_LOG("round %lu", (unsigned long)i - 1);
	}
	__atomic_store_n(&self->stop, 1, __ATOMIC_RELEASE);
	pthread_join(threads[1], NULL);
	pthread_join(threads[2], NULL);
	EXPECT_NO(say_until_heard(self, END));
	pthread_join(threads[0], NULL);
	EXPECT_EQ(0, self->failed);
	EXPECT_GE(LATE, self->late);
	TH_LOG("%u of %u late", self->late, ROUNDS);
}

TEST_HARNESS_MAIN
