/* SPDX-License-Identifier: MIT */
/*
 * The lock of all that threads of a process share, and how to wait for what has none.
 *
 * A word has the number of the thread that holds it, or 0: one atomic instruction takes it
 * and one gives it back. A thread that finds it taken looks again for about as long as a
 * section lasts, and then sleeps in the kernel, which lends the holder the priority of its
 * waiters: a holder that was preempted would otherwise not run before those that wait for it.
 */
#ifndef H_LOCK_H
#define H_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <hamlyn.h>

/* 0: not known yet. */
extern __thread uint32_t h__own_number
	__attribute__((tls_model("initial-exec"), visibility("hidden")));

/* gettid(), the system asked once. */
uint32_t h__thread_number(void);

/* As h__lock_until(), of a word that was found taken. */
int h__lock_slow(uint32_t *word, int64_t deadline_ns);
void h__unlock_slow(uint32_t *word);

/* A test's: what may happen whenever a lock was taken (1) or let go (-1). */
#ifdef H_LOCK_STEPS
void h__lock_step(int by);
#else
static inline void h__lock_step(int by)
{
	(void)by;
}
#endif

/* False also of a thread whose number is not known: for what follows only. */
static inline bool h__lock_free(uint32_t *word)
{
	uint32_t self = h__own_number, none = 0;

	return h__likely(self) &&
	       h__likely(__atomic_compare_exchange_n(word, &none, self, false,
						     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
}

static inline void h__lock(uint32_t *word)
{
	if (!h__lock_free(word))
		h__lock_slow(word, H_FOREVER);
	h__lock_step(1);
}

/* Does not wait for anything. */
static inline bool h__lock_at_once(uint32_t *word)
{
	/* A thread that does nothing else would be without a number for ever. */
	if (h__unlikely(!h__own_number))
		h__thread_number();
	if (!h__lock_free(word))
		return false;
	h__lock_step(1);
	return true;
}

/* Waits only for a holder that is about to let go. */
static inline bool h__try_lock(uint32_t *word)
{
	if (!h__lock_free(word) && h__lock_slow(word, H_NOWAIT))
		return false;
	h__lock_step(1);
	return true;
}

/*
 * A full barrier where an atomic instruction is one; where somebody sleeps for the lock, the
 * system call is.
 */
static inline void h__unlock(uint32_t *word)
{
	uint32_t self = h__own_number;

	if (h__unlikely(!__atomic_compare_exchange_n(word, &self, 0, false, __ATOMIC_SEQ_CST,
						     __ATOMIC_RELAXED)))
		h__unlock_slow(word);
	h__lock_step(-1);
}

/* After h__unlock(), or another SEQ_CST atomic: on x86 those are full barriers themselves. */
static inline void h__full_barrier_behind_atomic(void)
{
#if !defined(__x86_64__)
	h__full_barrier();					/* B13, B15 */
#endif
}

/* 0, or -EAGAIN or -ETIMEDOUT. */
static inline int h__lock_until(uint32_t *word, int64_t deadline_ns)
{
	int err = h__lock_free(word) ? 0 : h__lock_slow(word, deadline_ns);

	if (!err)
		h__lock_step(1);
	return err;
}

/*
 * In the child of a fork(), whose only thread has another number, before it takes any: and
 * of a lock that was taken before the fork, and is free now.
 */
void h__lock_forked(void);

static inline void h__lock_renew(uint32_t *word)
{
	h__store_release(word, 0);
}

/* ---- what has no lock: another process, an engine, a call back ---- */

#define H_ROUNDS_PER_CLOCK	32

/* Zero at first. */
struct h_wait {
	unsigned int rounds;
	int64_t begun_ns;
};

/*
 * Each time that a look was in vain. Spins, gives the processor away, and then sleeps a
 * part of the time that it took so far: whoever is waited for runs, whatever the priorities.
 * 0, or -EAGAIN or -ETIMEDOUT when it has taken long enough.
 */
int h__wait_more(struct h_wait *w, int64_t deadline_ns);
/* The same for the longest that a send waits for another one through the same terminus. */
int h__wait_to_send(struct h_wait *w);
/*
 * This thread sends for others meanwhile, and there are more of them: it does not wait for
 * the terminus. Returns what it was.
 */
bool h__send_now_or_not(bool now_or_not);
/*
 * What this thread has begun to send to another host is given up then, if its own NIC sends it
 * and cannot; 0: when that has taken far too long. Returns what it was.
 */
int64_t h__send_until(int64_t time_ns);
int64_t h__sends_until(void);

#endif /* H_LOCK_H */
