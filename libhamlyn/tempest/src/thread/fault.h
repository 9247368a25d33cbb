/* SPDX-License-Identifier: MIT */
/*
 * Threads that are suspended until their access is allowed.
 *
 * A suspended thread waits in its trap handler, and its record is in the list of those.
 * Until the protocol thread takes the fault, or the thread is resumed, it is in the queue
 * too. List, queue and what a record says change under one lock: a resumption that found
 * a thread between two of them would lose it.
 */
#ifndef TEMPEST_FAULT_H
#define TEMPEST_FAULT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct tempest_thread;

/**
 * struct tempest_access - what an instruction does to the segment
 * @va: first address
 * @size: bytes
 * @write: a store, or a load and a store
 * @pc: of the instruction
 */
struct tempest_access {
	uintptr_t va;
	unsigned int size;
	bool write;
	uintptr_t pc;
};

/*
 * @access: that waits
 * @va: an address of it in the block or page in the way
 * @tag: what was there, for the tests
 * @is_page: the page was not mapped
 * @resumes: how often it has been resumed and has found something in its way again
 * @granted: it need not check again, the access is in flight
 * @processor: where it was suspended
 * @waits: futex, 1 while suspended, 2 while it may sleep
 * @queued: nobody has seen to it
 * @next, @previous: in the list
 * @next_queued: in the queue
 */
struct tempest_fault {
	struct tempest_access access;
	uintptr_t va;
	uint8_t tag;
	bool is_page;
	bool granted;
	bool queued;
	unsigned int resumes;
	int processor;
	_Atomic uint32_t waits;
	struct tempest_thread *next, *previous;
	struct tempest_thread *next_queued;
};

/*
 * Wait until the thread is resumed. True if the access is in flight: it is to be made, and
 * nothing to be checked.
 */
bool tempest_fault_suspend(struct tempest_thread *thread, uintptr_t va, bool is_page);

/* Protocol thread: run the handler of a fault. False if there is none in the queue. */
bool tempest_fault_run(void);

/* The first address of the access that is in its way, if there is one. */
bool tempest_fault_conflict(const struct tempest_access *access, uintptr_t *va, bool *is_page);

#endif /* TEMPEST_FAULT_H */
