/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two more who sleep, for spin. Stores take their time: see weak.pml.
 *
 * The sleepers of a manager (libhamlyn/src/manager/poll.c, B13). T threads wait for a message each,
 * for a receiver of its own; one of them leads, that is, sleeps on the NQ, the others on a
 * word of theirs. Whoever takes messages gives them to their receivers and wakes those who
 * have news, the leader by a message to the manager itself. That the NQ itself wakes who
 * sleeps on it is the business of nq.pml, and certain here. POLLER: another thread that
 * only polls, for whatever comes.
 *
 * TABLES: those who wait for the lock of an embedded device's tables (try_again() and
 * h__shm_unlock() in libhamlyn/src/embedded/shm_lock.c, B14). No sleep ends by itself here.
 */
#ifndef T
#define T 2
#endif
#ifdef POLLER
#define CPUS (T + 1)
#else
#define CPUS T
#endif

#ifdef TABLES

#define LOCKED	0		/* the kernel's */
#define CHANGES	1
#define WORDS	2
#include "weak.pml"

bit asleep[CPUS];
byte inside;

proctype Thread(byte me)
{
	byte i, seen;

	do
	:: skip;
#ifdef BUG_TRY_FIRST
		if
		:: atomic { DRAINED && mem[LOCKED] == 0 -> mem[LOCKED] = 1 } break
		:: LOAD(LOCKED) == 1
		fi;
		seen = LOAD(CHANGES);
#else
		seen = LOAD(CHANGES);
		if
		:: atomic { DRAINED && mem[LOCKED] == 0 -> mem[LOCKED] = 1 } break
		:: LOAD(LOCKED) == 1
		fi;
#endif
		/* The kernel compares once more */
		if
#ifndef BUG_NO_COMPARE
		:: atomic { DRAINED && mem[CHANGES] == seen -> asleep[me] = 1 }
end_asleep:		!asleep[me]
		:: DRAINED && mem[CHANGES] != seen
#else
		:: asleep[me] = 1;
end_asleep2:		!asleep[me]
#endif
		fi
	od;
	inside++;
	assert(inside == 1);
	inside--;
	STORE_RELEASE(LOCKED, 0);
#ifdef BUG_UNLOCK_NO_MB
	STORE(CHANGES, LOAD(CHANGES) + 1);
	MB;
#elif defined(BUG_WAKE_FIRST)
	skip;
#else
	atomic { DRAINED -> mem[CHANGES]++ }
#endif
	/* One of them */
	if
	:: atomic { asleep[0] -> asleep[0] = 0 }
	:: atomic { asleep[1] -> asleep[1] = 0 }
#if T > 2
	:: atomic { asleep[2] -> asleep[2] = 0 }
	:: !asleep[0] && !asleep[1] && !asleep[2]
#else
	:: !asleep[0] && !asleep[1]
#endif
	fi;
#ifdef BUG_WAKE_FIRST
	atomic { DRAINED -> mem[CHANGES]++ }
#endif
	i = 0;
	seen = 0
}

proctype Clock()
{
	byte i;

	timeout;
	do
	:: i < T -> assert(!asleep[i]); i++
	:: else -> break
	od
}

#else /* the manager */

#define EVENTS(r) (r)
#define ASLEEP	T
#define WORDS	(T + 1)
#include "weak.pml"

#define NUDGE T			/* a message to the manager itself */

chan nq = [T + 4] of { byte };
bit polling, mutex, led, nudged;
bit leads[CPUS], on_nq[CPUS], listed[CPUS], woken[CPUS];
bit done[T], sent[T];

#define LOCK(l) atomic { !l -> l = 1 }
#define UNLOCK(l) atomic { DRAINED -> l = 0 }
#define HAS_NEWS(t) (LOAD(EVENTS(t)) == 1)

inline nudge()
{
	if
#ifndef BUG_NUDGE_NEVER
	:: atomic { !nudged -> nudged = 1; nq!NUDGE }
	:: nudged
#else
	:: true
#endif
	fi
}

/* m->mutex held. The leader looks for itself before it goes to sleep on the NQ. */
inline wake_sleepers()
{
	LOCK(mutex);
	t = 0;
	n = 0;
	do
	:: t < T ->
		if
		:: listed[t] && HAS_NEWS(t) && !leads[t] -> woken[t] = 1
		:: listed[t] && HAS_NEWS(t) && leads[t] && on_nq[t] -> n = 1
		:: else
		fi;
		t++
	:: else -> break
	od;
	t = 0;
	UNLOCK(mutex);
	if
	:: n -> nudge()
	:: else
	fi;
	n = 0
}

/* h__manager_take() */
inline take()
{
	if
	:: atomic { !polling -> polling = 1 }
		took = 0;
		do
		:: nq?m ->
			took = 1;
			if
#ifndef BUG_NUDGE_STAYS
			:: m == NUDGE -> nudged = 0
#else
			:: m == NUDGE
#endif
			:: m != NUDGE -> STORE_RELEASE(EVENTS(m), 1)
			fi;
			m = 0
		:: empty(nq) -> break
		od;
		if
		:: !took -> UNLOCK(polling)
		:: else ->
			took = 0;
#ifdef BUG_UNLOCK_NO_MB
			/* A release store of the lock: everything of ours is on its way */
			polling = 0;
#else
			UNLOCK(polling);
#endif
#ifndef BUG_NO_WAKE
			if
			:: LOAD(ASLEEP) > 0 -> wake_sleepers()
			:: else
			fi
#endif
		fi
	:: polling
	fi
}

inline sleep_in_turn()
{
	do
	:: leads[me] || woken[me] -> break
	:: else ->
		UNLOCK(mutex);
end_word:	leads[me] || woken[me];
		LOCK(mutex)
	od;
	do
	:: !leads[me] || HAS_NEWS(me) -> break
	:: else ->
		on_nq[me] = 1;
		UNLOCK(mutex);
end_nq:		nempty(nq);
		LOCK(mutex);
		on_nq[me] = 0;
		UNLOCK(mutex);
		take();
		LOCK(mutex)
	od
}

inline sleep()
{
	LOCK(mutex);
	listed[me] = 1;
	woken[me] = 0;
	leads[me] = !led;
	led = 1;
#ifdef BUG_COUNT_NO_MB
	STORE(ASLEEP, LOAD(ASLEEP) + 1);
#else
	atomic { DRAINED -> mem[ASLEEP]++ }
#endif
#ifdef BUG_NO_LOOK
	sleep_in_turn();
#else
	if
	:: HAS_NEWS(me)
	:: else -> sleep_in_turn()
	fi;
#endif
	atomic { DRAINED -> mem[ASLEEP]-- }
	listed[me] = 0;
	if
	:: leads[me] ->
		leads[me] = 0;
		led = 0;
#ifndef BUG_NO_HEIR
		t = 0;
		do
		:: t < T && !listed[t] -> t++
		:: t < T && listed[t] -> woken[t] = 1; leads[t] = 1; led = 1; break
		:: t == T -> break
		od;
		t = 0
#endif
	:: else
	fi;
	woken[me] = 0;
	UNLOCK(mutex)
}

proctype Thread(byte me)
{
	byte m, t;
	bit took, n;

	do
	:: skip;
		take();
		if
		:: HAS_NEWS(me) -> break
		:: else -> sleep()
		fi
	od;
	done[me] = 1
}

#ifdef POLLER
proctype Poller(byte me)
{
	byte m, t;
	bit took, n;

	take();
	take()
}
#endif

/* Some wait for ever, and that must not keep others from what is there */
#define SENDS(r) if :: true :: atomic { sent[r] = 1; nq!r } fi

proctype Sender()
{
	SENDS(0);
	SENDS(1)
#if T > 2
	; SENDS(2)
#endif
}

proctype Clock()
{
	byte i;

	timeout;
	do
	:: i < T -> assert(done[i] || !sent[i]); i++
	:: else -> break
	od
}
#endif

init
{
	byte i;

	atomic {
		do
		:: i < T -> run Thread(i); run Drain(i); i++
		:: else -> break
		od;
#ifdef POLLER
		run Poller(T);
		run Drain(T);
#endif
#ifndef TABLES
		run Sender();
#endif
		run Clock();
		i = 0
	}
}
