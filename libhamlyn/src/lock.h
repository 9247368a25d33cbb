/* SPDX-License-Identifier: MIT */
/*
 * The lock of all that threads of a process share, and how to wait for what has none.
 *
 * A word has the number of the thread that holds it, or 0: one atomic instruction takes it
 * and one gives it back. Who finds it taken looks again for about as long as a section
 * lasts, and then sleeps in the kernel, which lends the holder the priority of who waits:
 * a holder that was preempted would otherwise not run before those that wait for it.
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

/* Does not wait, but for who is about to let go. */
static inline bool h__try_lock(uint32_t *word)
{
	if (!h__lock_free(word) && h__lock_slow(word, H_NOWAIT))
		return false;
	h__lock_step(1);
	return true;
}

/* A full barrier where an atomic instruction is one, see full_barrier_behind_atomic(). */
static inline void h__unlock(uint32_t *word)
{
	uint32_t self = h__own_number;

	if (h__unlikely(!__atomic_compare_exchange_n(word, &self, 0, false, __ATOMIC_SEQ_CST,
						     __ATOMIC_RELAXED)))
		h__unlock_slow(word);
	h__lock_step(-1);
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

/* The longest that a send waits for another one through the same terminus. */
#define H_SEND_NS	5000000

/* ---- what has no lock: another process, an engine, a call back ---- */

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

#endif /* H_LOCK_H */
