// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two threads that sleep on one NQ: neither may keep the other asleep (B5). On the embedded
 * device the word that says that somebody sleeps is the one that is slept on. So that they
 * meet, the first one's system call is held up here. selftests/model/nq.pml found it.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <time.h>

#define MS		1000000ll
#define AWAKE_NS	(250 * MS)	/* half of what the embedded device sleeps at most */
#define HELD_UP_NS	(300 * MS)	/* on the kernel device nobody is */
#define TRIES		5

/* Of the library: what h_recv_block() does when there was nothing. */
int h__nq_sleep(struct h_nq *nq, int64_t deadline_ns);

struct sleeper {
	struct h_nq *nq;
	struct hamlyn_nq_entry entry;
	int64_t woken;
	int ret;
};

static _Thread_local bool to_hold_up;
static uint32_t held_up, go_on;

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

static bool wait_for(const uint32_t *flag, int64_t ns)
{
	int64_t end = now() + ns;

	while (!h__load_acquire(flag) && now() < end)
		sched_yield();
	return h__load_acquire(flag);
}

static long system_call(long number, const long *a)
{
#if defined(__x86_64__)
	register long a3 __asm__("r10") = a[3];
	register long a4 __asm__("r8") = a[4];
	register long a5 __asm__("r9") = a[5];

	__asm__ volatile("syscall" : "+a"(number) :
			 "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(a3), "r"(a4), "r"(a5) :
			 "rcx", "r11", "memory");
	return number;
#elif defined(__aarch64__)
	register long x8 __asm__("x8") = number;
	register long x0 __asm__("x0") = a[0];
	register long x1 __asm__("x1") = a[1];
	register long x2 __asm__("x2") = a[2];
	register long x3 __asm__("x3") = a[3];
	register long x4 __asm__("x4") = a[4];
	register long x5 __asm__("x5") = a[5];

	__asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4),
			 "r"(x5) : "memory");
	return x0;
#else
#error "how does one call the system here?"
#endif
}

/* In place of the C library's; as it, of most callers it reads more than they gave. */
__attribute__((no_sanitize("address")))
long syscall(long number, ...)
{
	long a[6], ret;
	va_list ap;
	int i;

	va_start(ap, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (to_hold_up && number == SYS_futex && (int)a[1] == FUTEX_WAIT) {
		to_hold_up = false;
		h__store_release(&held_up, 1);
		wait_for(&go_on, ht_patience_ns());
	}
	ret = system_call(number, a);
	if (ret < 0 && ret > -4096) {
		errno = (int)-ret;
		ret = -1;
	}
	return ret;
}

static void *sleep_for_one(void *arg)
{
	struct sleeper *s = arg;

	to_hold_up = true;
	s->ret = h_recv_block(s->nq, &s->entry, ht_patience_ns());
	s->woken = now();
	return NULL;
}

FIXTURE(two_sleepers) {
	struct ht_pair pair;
	struct h_ticket fast;
};

FIXTURE_SETUP(two_sleepers)
{
	struct ht_pair_attr attr = { .length = 4096 };

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->fast = self->pair.ticket;
	self->fast.meta_index = HAMLYN_META_FAST;
}

FIXTURE_TEARDOWN(two_sleepers)
{
	ht_pair_close(&self->pair);
}

/*
 * Both meet, and get a message each; @took is how long the first one slept once it
 * might go on. NULL, or what went wrong.
 */
static const char *meet(struct ht_pair *pair, const struct h_ticket *fast, int64_t *took)
{
	bool embedded = h_dev_is_embedded(pair->rx);
	struct sleeper s = { .nq = pair->nq };
	struct hamlyn_nq_entry entry;
	pthread_t thread;
	uint64_t i;

	h__store_release(&held_up, 0);
	h__store_release(&go_on, 0);
	if (pthread_create(&thread, NULL, sleep_for_one, &s))
		return "no thread";
	if (!wait_for(&held_up, embedded ? ht_patience_ns() : HELD_UP_NS) && embedded)
		return "it does not sleep as it is meant to here";
	for (i = 1; i <= 2; i++) {
		struct h_msg m = { .ticket = fast, .word = i };

		if (ht_send(pair->terminus, &m) < 0)
			return "not sent";
	}
	/* We are about to sleep as well, find the first one, and leave the second. */
	if (h__nq_sleep(pair->nq, now() + ht_patience_ns()))
		return "we have slept";
	if (h_recv_block(pair->nq, &entry, ht_patience_ns()) != 0)
		return "nothing for us";
	*took = now();
	h__store_release(&go_on, 1);
	if (pthread_join(thread, NULL) || s.ret)
		return "nothing for it";
	*took = s.woken - *took;
	return entry.data + s.entry.data == 3 ? NULL : "not the two that were sent";
}

/* Who is kept asleep is so each time; who is not may have no processor, now and then. */
TEST_F(two_sleepers, neither_keeps_the_other_asleep)
{
	int64_t took = INT64_MAX;
	int tries;

	for (tries = 0; tries < TRIES && took >= AWAKE_NS; tries++) {
		ASSERT_NO(meet(&self->pair, &self->fast, &took));
	}
	EXPECT_LT(took, AWAKE_NS);
}

TEST_HARNESS_MAIN
