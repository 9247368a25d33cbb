// SPDX-License-Identifier: MIT
#include <sched.h>

#include "base/control.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/quiet.h"
#include "base/settings.h"
#include "memory/block.h"
#include "memory/page.h"
#include "thread/fault.h"
#include "thread/protocol.h"
#include "thread/thread.h"

#define MOST_SLEEPERS	16	/* that are woken together */

static struct tempest_lock lock;
static struct tempest_thread *suspended;
static struct tempest_thread *queue, **queue_end = &queue;

static _Atomic(TPPI_PageFaultHandlerPtr) page_handler;
static _Atomic(TPPI_BlkAccFaultHandlerPtr)
	handlers[TPPI_NUM_PAGE_MODES][TPPI_NUM_BLK_ACC_TAGS][TPPI_WriteAccess + 1];

/* Of the fault whose handler runs. */
static uintptr_t handled_pc;

/* ---- handlers ---- */

void TPPI_register_page_fault_handler(TPPI_PageFaultHandlerPtr fn)
{
	page_handler = fn;
}

void TPPI_register_blk_acc_fault_handler(TPPI_PageMode mode, TPPI_BlkAccTag tag, int acc,
					 TPPI_BlkAccFaultHandlerPtr fn)
{
	if ((unsigned int)tag > TPPI_MAX_BLK_ACC_TAG || (unsigned int)acc > TPPI_WriteAccess)
		tempest_die("%s: there is no tag %d or no access %d", __func__, tag, acc);
	if (tag >= tempest_need(acc == TPPI_WriteAccess)) {
		tempest_warn("%s: no access of this kind conflicts with this tag", __func__);
		return;
	}
	handlers[mode][tag][acc] = fn;
}

uintptr_t TPPI_get_fault_pc(void)
{
	return handled_pc;
}

/* ---- list and queue; under the lock ---- */

static void list_add(struct tempest_thread *thread)
{
	thread->fault.previous = NULL;
	thread->fault.next = suspended;
	if (suspended)
		suspended->fault.previous = thread;
	suspended = thread;
}

static void list_remove(struct tempest_thread *thread)
{
	struct tempest_fault *fault = &thread->fault;

	if (fault->previous)
		fault->previous->fault.next = fault->next;
	else
		suspended = fault->next;
	if (fault->next)
		fault->next->fault.previous = fault->previous;
}

/* The protocol thread looks without the lock whether there is a first one. */
static void set_next(struct tempest_thread **at, struct tempest_thread *thread)
{
	__atomic_store_n(at, thread, __ATOMIC_RELAXED);
}

static void enqueue(struct tempest_thread *thread)
{
	thread->fault.queued = true;
	thread->fault.next_queued = NULL;
	set_next(queue_end, thread);
	queue_end = &thread->fault.next_queued;
}

static void dequeue(struct tempest_thread *thread)
{
	struct tempest_thread **at = &queue, *next = thread->fault.next_queued;

	if (!thread->fault.queued)
		return;
	while (*at != thread)
		at = &(*at)->fault.next_queued;
	set_next(at, next);
	if (!next)
		queue_end = at;
	thread->fault.queued = false;
}

/* ---- suspend and resume ---- */

bool tempest_fault_conflict(const struct tempest_access *access, uintptr_t *va, bool *is_page)
{
	uint8_t need = tempest_need(access->write);
	uintptr_t last = access->va + access->size - 1;

	for (uintptr_t at = access->va; at <= last; at = (at | (TPPI_TAG_BLK_SIZE - 1)) + 1) {
		/* What is beyond the segment is ordinary memory, or none */
		if (!tempest_inside(at))
			continue;
		*va = at;
		*is_page = !tempest_mapped(at);
		if (*is_page || atomic_load_explicit(tempest_tag(at), memory_order_acquire) < need)
			return true;
	}
	return false;
}

/* A short while awake: to be woken takes longer than most handlers do. */
static void wait_until_resumed(struct tempest_fault *fault)
{
	int64_t end = tempest_now() + tempest_settings.suspended_spin_ns;

	for (unsigned int i = 0; fault->waits == 1; i++) {
		uint32_t awake = 1;

		if (i % 64 || (tempest_now() < end && !tempest_protocol_is_here()))
			__builtin_ia32_pause();
		else
			atomic_compare_exchange_strong(&fault->waits, &awake, 2);
	}
	while (fault->waits)
		tempest_futex(&fault->waits, FUTEX_WAIT, 2, NULL);
}

bool tempest_fault_suspend(struct tempest_thread *thread, uintptr_t va, bool is_page)
{
	struct tempest_fault *fault = &thread->fault;

	fault->va = va;
	fault->is_page = is_page;
	fault->tag = *tempest_tag(va);
	fault->granted = false;
	tempest_lock(&lock);
	fault->waits = 1;
	fault->processor = sched_getcpu();
	list_add(thread);
	enqueue(thread);
	tempest_unlock(&lock);
	tempest_protocol_kick();
	wait_until_resumed(fault);
	fault->resumes++;
	return fault->granted;
}

/*
 * A resumed thread takes tens of microseconds to run, a recall of its block a few: it
 * might never get to see the block. So on its second resumption the access is announced
 * on its behalf, and the next downgrade waits for that one access.
 */
static void grant(struct tempest_thread *thread)
{
	struct tempest_fault *fault = &thread->fault;
	uintptr_t va;
	bool is_page;

	if (!fault->resumes || CONTROL(CONTROL_NO_GRANT))
		return;
	tempest_thread_enter(thread, fault->access.va, fault->access.size);
	fault->granted = !tempest_fault_conflict(&fault->access, &va, &is_page);
	if (!fault->granted)
		tempest_thread_leave(thread);
}

/*
 * Threads that sleep, and have been set free. They are woken without the lock: one that runs at
 * once, in place of the waker, would need it at its next fault.
 */
struct sleepers {
	unsigned int number;
	_Atomic uint32_t *at[MOST_SLEEPERS];
};

/* Its word is in a table: where a thread has ended, whoever has the place looks again. */
static void wake(struct sleepers *sleepers)
{
	for (unsigned int i = 0; i < sleepers->number; i++)
		tempest_futex(sleepers->at[i], FUTEX_WAKE, 1, NULL);
	sleepers->number = 0;
}

/* Under the lock. The thread may be gone once it is set free. */
static void resume(struct tempest_thread *thread, struct sleepers *sleepers)
{
	dequeue(thread);
	list_remove(thread);
	grant(thread);
	tempest_protocol_resumed(thread->fault.processor);
	if (atomic_exchange(&thread->fault.waits, 0) != 2)
		return;
	if (sleepers->number == MOST_SLEEPERS)
		wake(sleepers);
	sleepers->at[sleepers->number++] = &thread->fault.waits;
}

void TPPI_resume_va(void *blk_va, int blk_len)
{
	struct sleepers sleepers = { .number = 0 };
	struct tempest_thread *thread, *next;
	uintptr_t start = tempest_block_at(blk_va, blk_len, __func__);

	QUIET_CALL();
	tempest_lock(&lock);
	for (thread = suspended; thread; thread = next) {
		next = thread->fault.next;
		if (CONTROL(CONTROL_NO_DEQUEUE) && thread->fault.queued)
			continue;
		if (thread->fault.va - start < (uintptr_t)blk_len)
			resume(thread, &sleepers);
	}
	tempest_unlock(&lock);
	wake(&sleepers);
}

/* ---- protocol thread ---- */

static void run_page_handler(const struct tempest_fault *fault)
{
	TPPI_PageFaultHandlerPtr handler = page_handler;

	if (!handler)
		tempest_die("%p is not mapped, accessed at %p, and there is no page fault handler",
			    (void *)fault->va, (void *)fault->access.pc);
	handler((void *)fault->va, (int)fault->access.pc, fault->access.write);
}

static void run_block_handler(const struct tempest_fault *fault, uint8_t tag)
{
	static const char *const names[] = { "Invalid", "Busy", "ReadOnly", "Writable" };
	TPPI_PageInfo page = tempest_page_info(tempest_page(fault->va));
	TPPI_BlkAccFaultHandlerPtr handler = handlers[page.mode][tag][fault->access.write];

	if (!handler)
		tempest_die("no handler: %s of a block that is %s, page mode %u, at %p by %p",
			    fault->access.write ? "store" : "load", names[tag], page.mode,
			    (void *)fault->va, (void *)fault->access.pc);
	handler((void *)fault->va, page.usr_ptr, page.home);
}

/*
 * The first of the queue, and the lock with it; NULL and no lock if there is none. If another
 * thread is about to map its page, or to unmap it, that is waited for.
 */
static struct tempest_thread *lock_first(void)
{
	for (;;) {
		struct tempest_page *page;

		tempest_lock(&lock);
		page = queue ? tempest_page(queue->fault.va) : NULL;
		if (page && page->state != PAGE_MOVING)
			return queue;
		tempest_unlock(&lock);
		if (!page)
			return NULL;
		tempest_page_settle(page);
	}
}

/*
 * The first of the queue. The thread remains suspended, and others may resume it as soon
 * as the lock is free: what its handler needs is copied.
 *
 * The tag is what it is now, not what it was when the thread trapped: of two threads that
 * wait for the same block the second meets what the handler of the first has made of it,
 * Busy or even what it wanted.
 */
static bool take(struct tempest_fault *fault, uint8_t *tag)
{
	struct sleepers sleepers = { .number = 0 };
	struct tempest_thread *thread;
	bool ready;

	thread = lock_first();
	if (!thread)
		return false;
	dequeue(thread);
	*fault = thread->fault;
	fault->is_page = !tempest_mapped(fault->va);
	*tag = *tempest_tag(fault->va);
	ready = !fault->is_page && *tag >= tempest_need(fault->access.write);
	/* What was a page fault may be a block fault next: the thread looks again */
	ready |= thread->fault.is_page && !fault->is_page;
	if (CONTROL(CONTROL_STALE_DISPATCH)) {
		*tag = thread->fault.tag;
		ready = false;
	}
	if (ready)
		resume(thread, &sleepers);
	fault->queued = !ready;
	tempest_unlock(&lock);
	wake(&sleepers);
	return true;
}

bool tempest_fault_run(void)
{
	struct tempest_fault fault;
	uint8_t tag;

	/* The queue is looked at again before the protocol thread sleeps: protocol.c */
	if (!__atomic_load_n(&queue, __ATOMIC_RELAXED) || !take(&fault, &tag))
		return false;
	if (!fault.queued)
		return true;
	handled_pc = fault.access.pc;
	if (fault.is_page)
		run_page_handler(&fault);
	else
		run_block_handler(&fault, tag);
	return true;
}
