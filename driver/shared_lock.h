/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Locks that users share: "The rule" in Documentation/locking.rst. A kernel with PROVE_LOCKING
 * complains of whoever breaks it; for others these are raw spinlocks and nothing else.
 */
#ifndef HML_SHARED_LOCK_H
#define HML_SHARED_LOCK_H

#include <linux/bug.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>

#define HML_LOCK_STEPS	96	/* of walks, while one is held */
#define HML_LOCK_DEPTH	4	/* locks inside of each other */

#ifdef CONFIG_PROVE_LOCKING

/**
 * struct hml_held - locks that a processor has
 * @depth: how many
 * @steps: of walks, since it got the first one
 *
 * Steps and not time: a machine may stand still at any place.
 */
struct hml_held {
	u32 depth;
	u32 steps;
};

DECLARE_PER_CPU(struct hml_held, hml_held);

static inline void hml_lock_enter(void)
{
	struct hml_held *held = this_cpu_ptr(&hml_held);

	WARN_ONCE(!in_task(), "hamlyn: a lock that users share, in an interrupt");
	if (!held->depth++)
		held->steps = 0;
	WARN_ONCE(held->depth > HML_LOCK_DEPTH,
		  "hamlyn: %u locks that users share\n", held->depth);
}

static inline void hml_lock_leave(void)
{
	struct hml_held *held = this_cpu_ptr(&hml_held);

	WARN_ONCE(!held->depth--, "hamlyn: not locked\n");
	WARN_ONCE(held->steps > HML_LOCK_STEPS,
		  "hamlyn: a walk of %u steps under a lock that users share\n",
		  held->steps);
}

/* Every walk under such a lock says this in each turn. */
static inline void hml_lock_step(void)
{
	struct hml_held *held = this_cpu_ptr(&hml_held);

	WARN_ONCE(!held->depth, "hamlyn: a step without a lock\n");
	held->steps++;
}

#else

static inline void hml_lock_enter(void)
{
}

static inline void hml_lock_leave(void)
{
}

static inline void hml_lock_step(void)
{
}

#endif

static __always_inline void hml_lock(raw_spinlock_t *lock)
	__acquires(lock)
{
	raw_spin_lock(lock);
	hml_lock_enter();
}

static __always_inline void hml_unlock(raw_spinlock_t *lock)
	__releases(lock)
{
	hml_lock_leave();
	raw_spin_unlock(lock);
}

#endif
