/* SPDX-License-Identifier: MIT */
/*
 * Locks that a trap handler may take.
 *
 * No holder touches the application view, so a holder does not trap. A signal handler of
 * the program that interrupts a holder may: whoever takes one outside the trap handler and
 * the protocol thread has signals blocked meanwhile, see quiet.h. Nor does a holder touch
 * what a call was given: a handler of SIGSEGV may jump out of that.
 */
#ifndef TEMPEST_LOCK_H
#define TEMPEST_LOCK_H

#include <linux/futex.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/control.h"

static inline long tempest_futex(_Atomic uint32_t *word, int op, uint32_t value,
				 const struct timespec *timeout)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, timeout, NULL, 0);
}

/* 0: free, 1: held, 2: held, and somebody may sleep. */
struct tempest_lock {
	_Atomic uint32_t word;
};

#define LOCK_SPINS	100

static inline uint32_t tempest_lock_set(struct tempest_lock *lock, uint32_t value)
{
	if (CONTROL(CONTROL_RELAXED))
		return atomic_exchange_explicit(&lock->word, value, memory_order_relaxed);
	return atomic_exchange(&lock->word, value);
}

static inline void tempest_lock(struct tempest_lock *lock)
{
	uint32_t found;

	for (int i = 0; i < LOCK_SPINS; i++) {
		found = 0;
		if (atomic_compare_exchange_weak(&lock->word, &found, 1))
			return;
		__builtin_ia32_pause();
	}
	while (tempest_lock_set(lock, 2) != 0)
		tempest_futex(&lock->word, FUTEX_WAIT, 2, NULL);
}

static inline void tempest_unlock(struct tempest_lock *lock)
{
	if (tempest_lock_set(lock, 0) == 2)
		tempest_futex(&lock->word, FUTEX_WAKE, 1, NULL);
}

#endif /* TEMPEST_LOCK_H */
