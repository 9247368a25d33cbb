/* SPDX-License-Identifier: MIT */
/* Threads that have trapped, and their accesses that are under way out of line. */
#ifndef TEMPEST_THREAD_H
#define TEMPEST_THREAD_H

#include "memory/segment.h"
#include "thread/fault.h"

#define MOST_THREADS	4096
#define SLOT_BYTES	64

/*
 * In a table that no thread's end takes away; below it, at the same distance for all, is
 * the code of their slots.
 *
 * @in_flight: the access that has been admitted and is not yet made, 0 if there is none:
 *	its first address, and its size from IN_FLIGHT_SIZE up. The thread sets it, or the
 *	thread that resumes it on its behalf; the last instruction but one of the slot clears
 *	it
 * @tid: of the owner, 0 if it is free
 * @slot: where its slot is executed
 * @slot_write: where that is written
 * @fault: why it is suspended
 */
struct tempest_thread {
	_Atomic uint64_t in_flight;
	_Atomic int tid;
	uintptr_t slot;
	uint8_t *slot_write;
	struct tempest_fault fault;
} __attribute__((aligned(64)));

#define IN_FLIGHT_SIZE	48

/* Make the table. */
void tempest_thread_start(void);

/* The current thread's, which it gets when it traps for the first time. */
struct tempest_thread *tempest_thread_self(void);

/* The same if it has one, else NULL. */
struct tempest_thread *tempest_thread_known(void);

/* Announce an access; the tags are to be read after that. */
static inline void tempest_thread_enter(struct tempest_thread *thread, uintptr_t va,
					unsigned int size)
{
	atomic_store_explicit(&thread->in_flight, va | (uint64_t)size << IN_FLIGHT_SIZE,
			      memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

static inline void tempest_thread_leave(struct tempest_thread *thread)
{
	atomic_store_explicit(&thread->in_flight, 0, memory_order_release);
}

/* Wait until no other thread's announced access is in the range. */
void tempest_thread_drain(uintptr_t start, size_t bytes);

#endif /* TEMPEST_THREAD_H */
