/* SPDX-License-Identifier: MIT */
/*
 * Faults for the tests to make: a test of a promise must fail when its mechanism is left
 * out. Only the objects that the tests are linked with are compiled for it.
 */
#ifndef TEMPEST_CONTROL_H
#define TEMPEST_CONTROL_H

#include <stdatomic.h>

#ifdef TEMPEST_TEST_CONTROLS
extern _Atomic unsigned int tempest_control;
#define CONTROL(bit)	(atomic_load_explicit(&tempest_control, memory_order_relaxed) & (bit))

/* With CONTROL_TAG_FIRST: called between the tag and the contents, if not NULL. */
extern void (*tempest_between)(void);
#define CONTROL_BETWEEN()	(tempest_between ? tempest_between() : (void)0)

/* Called by the call that unmaps a page, once it owns that, if not NULL. */
extern void (*tempest_owned)(void);
#define CONTROL_OWNED()	(tempest_owned ? tempest_owned() : (void)0)

/* How many accesses have trapped. */
extern _Atomic unsigned long tempest_traps;
#define CONTROL_TRAPPED()	(tempest_traps++)

/* How many pages the system still has, and what becomes of that; see segment.c. */
extern _Atomic long tempest_pages_left;
#define CONTROL_NO_PAGE()	(atomic_fetch_sub(&tempest_pages_left, 1) <= 0 && \
				 (atomic_fetch_add(&tempest_pages_left, 1), 1))
#define CONTROL_PAGE_BACK()	atomic_fetch_add(&tempest_pages_left, 1)
#else
#define CONTROL(bit)	((bit) & 0u)
#define CONTROL_BETWEEN()	((void)0)
#define CONTROL_OWNED()	((void)0)
#define CONTROL_TRAPPED()	((void)0)
#define CONTROL_NO_PAGE()	0
#define CONTROL_PAGE_BACK()	((void)0)
#endif

#define CONTROL_NO_HANDSHAKE	0x1u	/* a downgrade does not wait for checked accesses */
#define CONTROL_NO_DRAIN	0x2u	/* nor for those out of line */
#define CONTROL_TAG_FIRST	0x4u	/* an upgrade sets the tag before the contents */
#define CONTROL_NO_GRANT	0x8u	/* resumed threads check again, however often */
#define CONTROL_STALE_DISPATCH	0x10u	/* the handler is that of the tag at the fault */
#define CONTROL_STAY_OPEN	0x20u	/* a downgrade leaves the application view open */
#define CONTROL_NO_DEQUEUE	0x40u	/* resume_va() leaves queued threads alone */
#define CONTROL_MESSAGES_FIRST	0x80u	/* priorities upside down */
#define CONTROL_EARLY_TIMERS	0x100u
#define CONTROL_NO_INTERPOSE	0x200u	/* sigaction() reaches the kernel as it is */
#define CONTROL_NO_SPARE	0x400u	/* remap() has nothing in reserve */
#define CONTROL_NO_UNWIND	0x800u	/* signal handlers begin within a slot */
#define CONTROL_NO_REOPEN	0x1000u	/* what is marked open is open */
#define CONTROL_NO_WIRE		0x2000u	/* channels use messages only */
#define CONTROL_NO_HOLD		0x4000u	/* buffers of channels may be unmapped */
#define CONTROL_WRONG_KEY	0x8000u	/* what the device sends is not accepted */
#define CONTROL_NO_SETTLE	0x10000u /* channels do not wait for those who unmap */
#define CONTROL_NOT_SENT	0x20000u /* what the device sends is never complete */
#define CONTROL_NOT_TOLD	0x40000u /* no loop learns that a page is whole */
#define CONTROL_NO_SWITCH	0x80000u /* no loop that was wrong goes on with checks */
#define CONTROL_NO_LAST	0x100000u /* the program's last thread ends itself alone */
#define CONTROL_RELAXED	0x200000u /* locks order nothing: for the thread sanitizer to see */

#endif /* TEMPEST_CONTROL_H */
