/* SPDX-License-Identifier: MIT */
/*
 * Faults for the tests to make: a test of a promise must fail when its mechanism is left
 * out. Only the objects that the tests are linked with are compiled for it.
 */
#ifndef STACHE_CONTROL_H
#define STACHE_CONTROL_H

#ifdef STACHE_TEST_CONTROLS
extern unsigned int stache_control;
#define CONTROL(bit)	(stache_control & (bit))
#else
#define CONTROL(bit)	((bit) & 0u)
#endif

#define CONTROL_NO_ACKS		0x1u	/* a store does not wait until copies are gone */
#define CONTROL_TAG_LAST	0x2u	/* a block is taken away after it has been sent */
#define CONTROL_TAG_FIRST	0x4u	/* a block is there before its contents */
#define CONTROL_NO_WRITE_BACK	0x8u	/* pages are replaced with what was stored in them */
#define CONTROL_NO_EXCLUSION	0x10u	/* locks are everybody's */
#define CONTROL_NO_WAIT		0x20u	/* barriers and flags let everybody through */
#define CONTROL_KEEP_RECALLED	0x40u	/* an owner stores on when others read */
#define CONTROL_NO_STATIC_DATA	0x80u	/* created processes begin with what they have */
#define CONTROL_ALL_STATIC_DATA	0x100u	/* or with libraries' variables of their parent */
#define CONTROL_NO_ANSWER	0x200u	/* a flag may be raised later than its thread goes on */

#endif /* STACHE_CONTROL_H */
