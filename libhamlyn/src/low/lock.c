// SPDX-License-Identifier: MIT
/* Locks that are taken, and waiting for what has no lock: see lock.h. */
#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "low/low.h"

#ifndef FUTEX_LOCK_PI2			/* Linux 5.14 */
#define FUTEX_LOCK_PI2	13
#endif

#define MOST_SPINS	128		/* of h__relax(): some microseconds */
#define LEAST_SPINS	8
#define YIELDS		16
#define SEND_NS		5000000
#define YIELD_NS	100000
#define LEAST_NAP_NS	20000
#define MOST_NAP_NS	1000000

/* The thread sanitizer does not see what the kernel does with the word. */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>

static void got_from_kernel(uint32_t *word)
{
	__tsan_acquire(word);
}

static void left_to_kernel(uint32_t *word)
{
	__tsan_release(word);
}
#else
static void got_from_kernel(uint32_t *word)
{
	(void)word;
}

static void left_to_kernel(uint32_t *word)
{
	(void)word;
}
#endif

__thread uint32_t h__own_number;

uint32_t h__thread_number(void)
{
	if (!h__own_number)
		h__own_number = (uint32_t)syscall(SYS_gettid);
	return h__own_number;
}

void h__lock_forked(void)
{
	h__own_number = 0;
}

static bool try_lock(uint32_t *word, uint32_t self)
{
	uint32_t none = 0;

	return !h__read_once(word) &&
	       __atomic_compare_exchange_n(word, &none, self, false, __ATOMIC_ACQUIRE,
					   __ATOMIC_RELAXED);
}

/*
 * Until the holder lets go, if it runs: as often as that was worth while lately. Not behind
 * others who sleep already: the kernel gives it to them.
 */
static bool spin(uint32_t *word, uint32_t self)
{
	static unsigned int worth = MOST_SPINS;
	unsigned int most = h__read_once(&worth), i;

	for (i = 0; i < most; i++) {
		uint32_t held = h__read_once(word);

		if (!held && try_lock(word, self)) {
			if (i > most / 2 && most < MOST_SPINS)
				h__write_once(&worth, 2 * most);
			return true;
		}
		if (held & FUTEX_WAITERS || (held & FUTEX_TID_MASK) == self)
			return false;
		h__relax();
	}
	if (most > LEAST_SPINS)
		h__write_once(&worth, most / 2);
	return false;
}

/*
 * A holder of our own priority that was preempted runs when we give way. Then the lock goes
 * to whoever comes first; the kernel would give it to one that has to be woken, while all
 * others wait for that.
 */
static bool after_others(uint32_t *word, uint32_t self, int64_t deadline_ns)
{
	unsigned int i;

	for (i = 0; i < YIELDS && !(h__read_once(word) & FUTEX_WAITERS); i++) {
		sched_yield();
		if (try_lock(word, self))
			return true;
		/* Each may have taken as long as the others' turns do. */
		if (deadline_ns > 0 && h__now_ns() >= deadline_ns)
			break;
	}
	return false;
}

/* As syscall(): -1 and errno. */
static long sleep_on(uint32_t *word, int64_t deadline_ns)
{
	const struct timespec ts = {
		.tv_sec = deadline_ns / 1000000000,
		.tv_nsec = deadline_ns % 1000000000,
	};

	if (deadline_ns < 0)
		return syscall(SYS_futex, word, FUTEX_LOCK_PI | FUTEX_PRIVATE_FLAG, 0, NULL,
			       NULL, 0);
	return syscall(SYS_futex, word, FUTEX_LOCK_PI2 | FUTEX_PRIVATE_FLAG, 0, &ts, NULL, 0);
}

/* Where the kernel cannot help: there is no such call, or no such thread. */
static int lock_alone(uint32_t *word, uint32_t self, int64_t deadline_ns)
{
	struct h_wait wait = { 0 };
	int err;

	while (!try_lock(word, self)) {
		err = h__wait_more(&wait, deadline_ns);
		if (err)
			return err;
	}
	return 0;
}

static int lock_asleep(uint32_t *word, uint32_t self, int64_t deadline_ns)
{
	/* EAGAIN: the holder is about to end. Who ends with a lock held is no more. */
	while (sleep_on(word, deadline_ns)) {
		if (errno == ETIMEDOUT)
			return -ETIMEDOUT;
		if (errno != EINTR)
			return lock_alone(word, self, deadline_ns);
	}
	got_from_kernel(word);
	return 0;
}

int h__lock_slow(uint32_t *word, int64_t deadline_ns)
{
	uint32_t self = h__thread_number();
	int old = errno, err;

	if (try_lock(word, self) || spin(word, self))
		return 0;
	if (deadline_ns == H_NOWAIT)
		return -EAGAIN;
	if (after_others(word, self, deadline_ns))
		return 0;
	err = lock_asleep(word, self, deadline_ns);
	errno = old;
	return err;
}

/* Somebody sleeps: the kernel gives it to the one of the highest priority. */
void h__unlock_slow(uint32_t *word)
{
	int old = errno;

	left_to_kernel(word);
	/* Not ours: then nobody would ever get it, without a word. */
	if (syscall(SYS_futex, word, FUTEX_UNLOCK_PI | FUTEX_PRIVATE_FLAG, 0, NULL, NULL, 0))
		abort();
	errno = old;
}

/* ---- waiting ---- */

/* Not the C library's, which is a cancellation point. */
static void nap(int64_t ns)
{
	const struct timespec ts = { .tv_nsec = ns };

	syscall(SYS_nanosleep, &ts, NULL);
}

static int64_t nap_of(int64_t waited, int64_t left)
{
	int64_t ns = waited / 8;

	if (ns < LEAST_NAP_NS)
		ns = LEAST_NAP_NS;
	if (ns > MOST_NAP_NS)
		ns = MOST_NAP_NS;
	return ns < left ? ns : left;
}

int h__wait_more(struct h_wait *w, int64_t deadline_ns)
{
	int64_t now;

	if (++w->rounds % H_ROUNDS_PER_CLOCK) {
		h__relax();
		return 0;
	}
	if (deadline_ns == H_NOWAIT)
		return -EAGAIN;
	now = h__now_ns();
	if (deadline_ns > 0 && now >= deadline_ns)
		return -ETIMEDOUT;
	if (!w->begun_ns)
		w->begun_ns = now;
	if (now - w->begun_ns < YIELD_NS)
		sched_yield();
	else
		nap(nap_of(now - w->begun_ns, deadline_ns < 0 ? INT64_MAX : deadline_ns - now));
	return 0;
}

static __thread bool now_or_not;

bool h__send_now_or_not(bool now)
{
	bool before = now_or_not;

	now_or_not = now;
	return before;
}

static __thread int64_t send_until;

int64_t h__send_until(int64_t time_ns)
{
	int64_t before = send_until;

	send_until = time_ns;
	return before;
}

int64_t h__sends_until(void)
{
	return send_until;
}

/* The clock is looked at when it has not been a matter of a few instructions. */
int h__wait_to_send(struct h_wait *w)
{
	return h__wait_more(w, now_or_not ? H_NOWAIT :
			    w->begun_ns ? w->begun_ns + SEND_NS : H_FOREVER);
}
