/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who works on a terminus, and when it sleeps, for spin: h__terminus_post() of libhamlyn,
 * KICK (driver/doorbell.c, driver/engine/datapath.c) and the engine's thread, with doze()
 * (driver/engine/engine.c). Barriers B2 and B7 of Documentation/barriers.rst. Stores take their time: see weak.pml.
 *
 * A threads of an application post K requests each and ring the doorbell if they are asked
 * to; with ALWAYS one that has not heard of barriers rings it for each. A thread that
 * binds memory holds the terminus meanwhile (HOLDER). When nothing more can happen,
 * everything must have been sent.
 */
#ifndef A
#define A 2
#endif
#ifndef K
#define K 1
#endif

#define ENGINE A		/* the last of the processes */
#ifdef HOLDER
#define CPUS (A + 2)
#else
#define CPUS (A + 1)
#endif

#define POSTED	0		/* sequences of the entries: how many are there */
#define NEED	1		/* need_kick */
#define HELD	2
#define WORDS	3

#include "weak.pml"

byte head;			/* how many were sent; its holder's */
byte holders;
bit app_lock, engine_lock;
bit in_order;			/* of the engine; engine_lock */
bit awake = 1;			/* the thread */
byte wanted;
byte busy = A;			/* who has not ended */

#define LOCK(l) atomic { !l -> l = 1 }
/* Release: what was stored is there before the next one has the lock */
#define UNLOCK(l) atomic { DRAINED -> l = 0 }
#define PENDING (LOAD(POSTED) > head)

#ifdef BUG_TRY_NO_MB
/* A test that fails stores nothing, and orders nothing by itself */
#define HOLD_TRY(yes, no) \
	if \
	:: atomic { DRAINED && mem[HELD] == 0 -> mem[HELD] = 1; assert(holders == 0); holders++ } yes \
	:: LOAD(HELD) == 1 -> no \
	fi
#else
#define HOLD_TRY(yes, no) \
	MB; \
	if \
	:: atomic { DRAINED && mem[HELD] == 0 -> mem[HELD] = 1; assert(holders == 0); holders++ } yes \
	:: LOAD(HELD) == 1 -> no \
	fi
#endif

#define RELEASE \
	holders--; \
	STORE_RELEASE(HELD, 0)

/* hml_term_run(): the terminus as long as there is something, unless somebody has it */
inline run_terminus()
{
	do
	:: wanted -> break
	:: !wanted ->
		HOLD_TRY(skip, break);
		do
		:: PENDING -> head++
		:: else -> break
		od;
		RELEASE;
#ifndef BUG_RELEASE_NO_MB
		MB;
#endif
#ifdef BUG_RELEASE_NO_LOOK
		break
#else
		if
		:: PENDING
		:: else -> break
		fi
#endif
	od
}

inline activate()
{
#ifndef BUG_ACTIVATE_UNLOCKED
	LOCK(engine_lock);
#endif
	in_order = 1;
	STORE(NEED, 0);
#ifndef BUG_ACTIVATE_UNLOCKED
	UNLOCK(engine_lock);
#endif
#ifndef BUG_NO_WAKE
	awake = 1
#endif
}

/* KICK, and kick_rest(). Whether it is rung often enough is anybody's guess. */
inline kick()
{
	run_terminus();
	if
#ifndef BUG_KICK_LEAVES
	:: PENDING -> activate()
#else
	:: PENDING
#endif
	:: !PENDING
	:: !PENDING -> activate()
	fi
}

proctype App(byte me)
{
	byte k;
	bit asked;

	do
	:: k < K ->
#ifndef SINGLE
		LOCK(app_lock);
#endif
		STORE_RELEASE(POSTED, LOAD(POSTED) + 1);
#ifdef ALWAYS
		asked = 1;
#else
#ifndef BUG_POST_NO_MB
		MB;
#endif
		asked = LOAD(NEED);
#endif
#ifndef SINGLE
		UNLOCK(app_lock);
#endif
		if
		:: asked -> kick()
		:: else
		fi;
		asked = 0;
		k++
	:: else -> break
	od;
	busy--
}

inline doze()
{
	LOCK(engine_lock);
	STORE(NEED, 1);
#ifndef BUG_DOZE_NO_MB
	MB;
#endif
	if
#ifndef BUG_DOZE_NO_LOOK
	:: PENDING -> STORE(NEED, 0)
#endif
#ifndef BUG_DOZE_NO_LOOK
	:: else -> in_order = 0
#else
	:: true -> in_order = 0
#endif
	fi;
	UNLOCK(engine_lock)
}

proctype Engine(byte me)
{
	do
	:: in_order ->
		run_terminus();
		if
		:: PENDING
		:: !PENDING -> doze()
		fi
	:: !in_order ->
		awake = 0;
		if
		:: in_order
		:: else ->
end_asleep:		awake
		fi
	od
}

#ifdef HOLDER
/* hml_term_hold() and hml_term_release(): who waits for it meanwhile has rung, and waits */
proctype Holder(byte me)
{
	wanted++;
	do
	:: HOLD_TRY(break, skip)
	od;
	wanted--;
	RELEASE;
	MB
}
#endif

proctype Clock()
{
	timeout;
	assert(busy == 0);
	assert(head == A * K)
}

init
{
	byte i;

	atomic {
		mem[NEED] = 1;
		do
		:: i < A -> run App(i); run Drain(i); i++
		:: else -> break
		od;
		run Engine(ENGINE);
		run Drain(ENGINE);
#ifdef HOLDER
		run Holder(A + 1);
		run Drain(A + 1);
#endif
		run Clock();
		i = 0
	}
}
