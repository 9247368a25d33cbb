/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Quiescence, for spin: when rekey or destroy has returned, no byte is written that was let
 * in by the old key (B8). S senders, whose message has two packets, each on a terminus of
 * its own, and one who replaces the key. Stores take their time: see weak.pml.
 *
 * Embedded device (the default): hold_soon(), between_packets(), leave() in
 * libhamlyn/src/embedded/shm_send.c; begin(), is_out() in shm_table.c. ALONE: by plain
 * stores, and the revoker has the system drain everybody's (h__shm_fence()). A sender that
 * dies inside is not waited for; KILL of them do.
 * SRCU: the kernel device, hml_notify_begin() and hml_grace_wait(), as readers of SRCU and
 * its grace period, which the driver had once. What it has now, turns of a processor, odd in
 * a section, with a full barrier inside and a release at the end, is what the default has.
 *
 * Old messages write 1. When the key was replaced the area is another's, who writes 2 and
 * wants to find 2.
 */
#ifndef S
#define S 2
#endif
#ifndef KILL
#define KILL 0
#endif

#define REVOKER S
#define CPUS (S + 1)
#define KEY	0		/* 0: the old one */
#define HOLD(s)	(1 + (s))
#define DATA(s)	(1 + S + (s))	/* what sender s writes to */
#define WORDS	(1 + 2 * S)

#include "weak.pml"

bit dead[S];
byte kills = KILL;
bit returned;
#ifdef SRCU
byte inside[2];			/* readers of each period */
bit period;
#endif

#if KILL
#define STEP \
	if \
	:: true \
	:: atomic { kills > 0 && DRAINED -> kills--; dead[me] = 1; goto ended } \
	fi
#else
#define STEP skip
#endif

#ifdef SRCU
#define ENTER atomic { DRAINED -> old = period; inside[old]++ }
#define LEAVE atomic { DRAINED -> inside[old]-- }
#define BETWEEN LEAVE; ENTER
#else

#if defined(ALONE)
#define ENTER STORE(HOLD(me), LOAD(HOLD(me)) + 1)
#elif defined(BUG_ENTER_NO_MB)
#define ENTER STORE(HOLD(me), LOAD(HOLD(me)) + 1)
#else
#define ENTER atomic { DRAINED -> mem[HOLD(me)]++ }
#endif

#ifdef BUG_LEAVE_PLAIN
#define LEAVE STORE(HOLD(me), LOAD(HOLD(me)) + 1)
#else
#define LEAVE STORE_RELEASE(HOLD(me), LOAD(HOLD(me)) + 1)
#endif

#ifdef BUG_BETWEEN_PLAIN
#define BETWEEN STORE(HOLD(me), LOAD(HOLD(me)) + 2); MB
#elif defined(ALONE) || defined(BUG_BETWEEN_NO_MB)
#define BETWEEN STORE_RELEASE(HOLD(me), LOAD(HOLD(me)) + 2)
#else
#define BETWEEN STORE_RELEASE(HOLD(me), LOAD(HOLD(me)) + 2); MB
#endif
#endif

inline packet()
{
#ifdef BUG_KEY_FIRST
	/* Was looked at before going in: as if the compiler had moved it */
#else
	key = LOAD(KEY);
#endif
	STEP;
	if
	:: key == 0 -> STORE(DATA(me), 1)
	:: else
	fi;
	STEP
}

proctype Sender(byte me)
{
	byte key;
	bit old;

#ifdef BUG_KEY_FIRST
	key = LOAD(KEY);
#endif
	ENTER;
	STEP;
	packet();
#ifdef BUG_ONE_LOOK
	/* The key of the message is good for all its packets */
	BETWEEN;
	if
	:: key == 0 -> STORE(DATA(me), 1)
	:: else
	fi;
#else
	BETWEEN;
	packet();
#endif
	LEAVE;
ended:
	atomic { key = 0; old = 0 }
}

/* Those who are inside, all at once */
inline begin()
{
	s = 0;
	do
	:: s < S -> inside_at[s] = LOAD(HOLD(s)); s++
	:: else -> break
	od
}

inline wait_out(s)
{
	if
	:: inside_at[s] % 2 == 0
	:: else ->
		/* It waits, until that changes or the other one is dead */
		if
		:: LOAD(HOLD(s)) != inside_at[s]
		:: dead[s] && LOAD(HOLD(s)) == inside_at[s]
#ifdef BUG_NO_WAIT
		:: true
#endif
		fi
	fi;
	inside_at[s] = 0
}

proctype Revoker(byte me)
{
	byte s;
	byte inside_at[S];
	bit old;

	STORE(KEY, 1);
#ifdef SRCU
#ifndef BUG_NO_SRCU
	/* A reader that took the last period's number late is waited for as well: twice */
	atomic { DRAINED -> old = period; period = 1 - period }
	inside[old] == 0;
	atomic { old = period; period = 1 - period }
	inside[old] == 0;
#endif
#else
#ifndef BUG_FENCE_NO_MB
	MB;
#endif
#if defined(ALONE) && !defined(BUG_NO_MEMBARRIER)
	/* Each at another time, of course */
	sb[0].n == 0;
	sb[S - 1].n == 0;
#endif
	begin();
	s = 0;
	do
	:: s < S -> wait_out(s); s++
	:: else -> break
	od;
#endif
	returned = 1;
	s = 0;
	do
	:: s < S ->
		/* That our own store is behind theirs is what was waited for */
		STORE(DATA(s), 2);
		s++
	:: else -> break
	od;
	MB;
	s = 0;
	do
	:: s < S -> assert(LOAD(DATA(s)) == 2); s++
	:: else -> break
	od
}

/* Nothing is left that could still be written over it */
proctype Clock()
{
	byte s;

	timeout;
	assert(returned);
	do
	:: s < S -> assert(mem[DATA(s)] == 2); s++
	:: else -> break
	od
}

init
{
	byte i;

	atomic {
		do
		:: i < S -> run Sender(i); run Drain(i); i++
		:: else -> break
		od;
		run Revoker(REVOKER);
		run Drain(REVOKER);
		run Clock();
		i = 0
	}
}
