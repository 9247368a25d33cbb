/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The notification queue, for spin: driver/core/notify.c, h_recv() in libhamlyn, those who
 * sleep (B5), and the mending of holes on the embedded device (mend_hole()).
 *
 * P producers append K notifications each, C consumers take them and sleep when there is
 * none; each stops when it has taken QUOTA. An entry is two words, to see it torn, and its
 * sequence. Stores take their time: see weak.pml.
 *
 * Who sleeps: in the kernel on a wait queue, which it joins before it looks; with FUTEX on
 * the word "armed" itself; FENCED: it has the system drain everybody's stores, and loud
 * producers have no barrier behind an entry. QUIET producers wake nobody if nobody has taken an entry
 * behind theirs. With KILL up to KILL producers die anywhere between two steps.
 *
 * The BUG_ switches each take a check or a barrier away: see check.sh.
 */
#ifndef P
#define P 2
#endif
#ifndef K
#define K 2
#endif
#ifndef C
#define C 1
#endif
#ifndef MASK
#define MASK 1
#endif
#ifndef QUOTA
#define QUOTA 100
#endif
#ifndef QUIET
#define QUIET 0		/* how many of the producers are */
#endif
#ifndef KILL
#define KILL 0
#endif

#define E (MASK + 1)
#define CPUS (P + C)

/* Words of memory; the cursor and the consumer index are changed in one step only */
#define KEPT	0		/* the consumer index as the NIC has last read it */
#define ARMED	1
#define SEQ(e)	(2 + (e))
#define A(e)	(2 + E + (e))
#define B(e)	(2 + 2 * E + (e))
#define WORDS	(2 + 3 * E)

#define REPORT	254
#define VOID	255
#define ID(p, k) ((p) * K + (k) + 1)

#include "weak.pml"

byte cursor, consumer;
bit asleep[CPUS];		/* may be woken */
bit lost[P * K + 1], seen[P * K + 1];
bit wasfull[P];			/* at some time since it began to append */
byte reports;
#if QUIET
byte losses;			/* ring->lost */
#endif
byte last[P];			/* the last one taken of each producer */
byte working = P;		/* producers that have not ended */

#if KILL
byte hold[P];
bit dead[P];
byte kills = KILL;
bit tables;			/* the segment's lock */
/* Anything may be its last step. Who is known to be dead has been off the processor */
#define MORTAL :: atomic { kills > 0 && me < P && DRAINED -> kills--; dead[me] = 1; goto ended }
#define STEP if :: true MORTAL fi
#else
#define STEP skip
#endif

#define USED(c, x) ((c) >= (x) -> (c) - (x) : 99)
#define FULL_NOW (cursor - consumer >= MASK)

inline took_entry()
{
	cursor++;
	x = 0;
	do
	:: x < P -> wasfull[x] = wasfull[x] || FULL_NOW; x++
	:: else -> break
	od;
	x = 0
}

#ifdef BUG_NO_CAS
#define TAKE_ENTRY(won, lost_it) \
	if \
	:: cursor != c -> lost_it \
	:: else -> d_step { cursor = c; took_entry() } won \
	fi
#else
#define TAKE_ENTRY(won, lost_it) \
	if \
	:: atomic { DRAINED && cursor == c -> d_step { took_entry() } } won \
	:: DRAINED && cursor != c -> lost_it \
	fi
#endif

/* entries_used() behind the first look */
#ifdef BUG_NO_ROOM
#define LOOK_AT_CONSUMER used = 0
#else
#define LOOK_AT_CONSUMER \
	y = consumer; \
	if \
	:: USED(c, y) > MASK + 1 -> used = MASK + 1 \
	:: else -> used = USED(c, y); STORE_RELEASE(KEPT, y) \
	fi; \
	y = 0
#endif

#define OK 0
#define LAST 1
#define FULL 2

/* RESERVE_FULL or not, at cursor c */
inline reserve()
{
	do
	:: skip;
#ifdef BUG_CONSUMER_FIRST
		y = consumer;
		c = cursor;
		used = (USED(c, y) > MASK + 1 -> MASK + 1 : USED(c, y));
#else
		c = cursor;
		used = USED(c, LOAD(KEPT));
		if
		:: used < MASK
		:: else -> LOOK_AT_CONSUMER
		fi;
#endif
#ifndef BUG_NO_REPORT
		if
		:: used == MASK ->
			if
			:: LOAD(SEQ((c + E - 1) % E)) != c
			:: else ->
				if
				:: LOAD(A((c + E - 1) % E)) == REPORT -> used++
				:: else
				fi
			fi
		:: else
		fi;
#endif
		if
		:: used > MASK ->
			if
#ifndef BUG_CONSUMER_FIRST
#ifndef BUG_STALE
			:: cursor != c
#endif
#endif
			:: else -> result = FULL; break
			fi
		:: used <= MASK ->
#ifdef BUG_NO_REPORT
			TAKE_ENTRY(result = OK; break, skip)
#else
			TAKE_ENTRY(result = (used < MASK -> OK : LAST); break, skip)
#endif
		fi
	od
}

inline publish(what)
{
	STEP;
	STORE(A(c % E), what);
	STORE(B(c % E), what);
	STEP;
#ifdef BUG_PLAIN_SEQUENCE
	STORE(SEQ(c % E), c + 1);
#else
	STORE_RELEASE(SEQ(c % E), c + 1);
#endif
#ifdef FENCED
	if
	:: what == REPORT || me < QUIET -> MB
	:: else
	fi
#elif !defined(BUG_PUBLISH_NO_MB)
	MB
#endif
}

/* All that sleep, or are about to and may be told */
inline wake_all()
{
	d_step {
		i = 0;
		do
		:: i < CPUS -> asleep[i] = 0; i++
		:: else -> break
		od;
		i = 0
	}
}

/* hml_port_nq_wake(): who clears it wakes */
inline disarm_and_wake()
{
	atomic { DRAINED -> y = mem[ARMED]; mem[ARMED] = 0 }
	if
	:: y -> STEP; wake_all()
	:: else
	fi;
	y = 0
}

inline append(id)
{
#if QUIET
	d_step { before = losses; others_lost = 0 }
	STEP;
#endif
	d_step { wasfull[me] = FULL_NOW; c = cursor }
	STEP;
	used = USED(c, LOAD(KEPT));
#ifdef BUG_NO_ROOM
	used = 0;
#endif
	if
	:: used >= MASK -> reserve()
	:: else -> TAKE_ENTRY(result = OK, reserve())
	fi;
	if
	:: result == OK -> publish(id)
	:: result == LAST -> publish(REPORT)
	:: result == FULL ->
#ifndef BUG_FULL_NO_MB
		MB
#else
		skip
#endif
	fi;
	if
	:: result != OK -> atomic {
		DRAINED;		/* hml_atomic_add_return() */
		lost[id] = 1;
		assert(wasfull[me]);
#if QUIET
		others_lost = losses != before;
		losses++
#endif
	}
	:: else
	fi;
	STEP;
#if !QUIET
#define SILENT false
#elif defined(BUG_QUIET)
#define SILENT (me < QUIET)
#elif defined(BUG_QUIET_REPORT)
#define SILENT (me < QUIET && (result == FULL || cursor == c + 1))
#else
#define SILENT (me < QUIET && (result == FULL || cursor == c + 1 && !others_lost))
#endif
	if
	:: SILENT
	:: else ->
		if
		:: LOAD(ARMED) -> disarm_and_wake()
		:: else
		fi
	fi
}

proctype Producer(byte me)
{
	byte c, used, result, x, y, i, k;
#if QUIET
	byte before;
	bit others_lost;
#endif

	do
	:: k < K ->
#if KILL
		atomic { DRAINED -> hold[me]++ }
#endif
		append(ID(me, k));
#if KILL
		/* A release store: what it did is seen before it */
		atomic { DRAINED -> hold[me]++ }
#endif
		k++
	:: else -> break
	od;
ended:
	atomic {
		working--; c = 0; used = 0; result = 0; x = 0; y = 0; i = 0; k = 0;
#if QUIET
		before = 0; others_lost = 0
#endif
	}
}

inline taken()
{
	d_step {
		assert(x == y);		/* not torn */
		if
		:: x == REPORT -> reports++
		:: x == VOID
		:: x != REPORT && x != VOID ->
			assert(x != 0 && !seen[x]);
			seen[x] = 1;
#if C == 1
			assert(x > last[(x - 1) / K]);
			last[(x - 1) / K] = x;
#endif
			quota++
		fi;
		x = 0; y = 0
	}
}

#if KILL
/* mend_hole(); the times it waits for somebody who lives, it gives up, and comes again */
inline mend()
{
	pos = consumer;
#ifndef BUG_MEND_ALL
	x = cursor;
#else
	x = 99;
#endif
	if
	:: x == pos || LOAD(SEQ(pos % E)) == pos + 1
	:: else ->
		if
		:: atomic { tables -> skip }
		:: atomic { !tables -> tables = 1 }
#ifndef BUG_MEND_NO_WAIT
			i = 0;
			y = 1;
			do
			:: i < P && y ->
				k = hold[i];
				if
				:: k % 2 == 0
				:: k % 2 && hold[i] != k
				:: k % 2 && dead[i] -> true
				:: k % 2 && hold[i] == k && !dead[i] -> y = 0
				fi;
				k = 0;
				i++
			:: else -> break
			od;
			i = 0;
#else
			y = 1;
#endif
			if
#ifndef BUG_FILL_NO_LOOK
			:: y && pos == consumer && LOAD(SEQ(pos % E)) != pos + 1 ->
#else
			:: y ->
#endif
				STORE(A(pos % E), VOID);
				STORE(B(pos % E), VOID);
				STORE_RELEASE(SEQ(pos % E), pos + 1)
			:: else
			fi;
			y = 0;
			atomic { DRAINED -> tables = 0 }
		fi
	fi;
	x = 0;
	pos = 0
}
#else
#define mend() skip
#endif

inline nap()
{
#ifndef FUTEX
	asleep[me] = 1;			/* prepare_to_wait() */
#endif
	STORE(ARMED, 1);
#ifndef BUG_ARM_NO_MB
	MB;
#endif
#if defined(FENCED) && !defined(BUG_ARM_NO_FENCE)
	i = 0;
	do
	:: i < CPUS -> sb[i].n == 0; i++
	:: else -> break
	od;
	i = 0;
#endif
	pos = consumer;
#ifdef BUG_NO_LOOK
	if
	:: false
#else
	if
	:: LOAD(SEQ(pos % E)) >= pos + 1 ->
#ifdef FUTEX
#ifndef BUG_KEEP_ARMED
		disarm_and_wake()
#else
		skip
#endif
#else
		asleep[me] = 0
#endif
#endif
	:: else ->
#ifdef FUTEX
		if
		:: atomic { DRAINED && mem[ARMED] == 1 -> asleep[me] = 1 }
end_futex:		!asleep[me];
			mend()
		:: DRAINED && mem[ARMED] == 0
		fi
#else
end_queue:	!asleep[me]
#endif
	fi;
	pos = 0
}

proctype Consumer(byte me)
{
	byte pos, x, y, i, k, quota;

end:
	do
	:: quota == QUOTA -> break
	:: quota < QUOTA ->
		pos = consumer;
		if
		:: LOAD(SEQ(pos % E)) != pos + 1 -> nap()
		:: else ->
#ifdef BUG_ADVANCE_FIRST
			atomic { DRAINED && consumer == pos -> consumer++ }
#endif
			x = LOAD(A(pos % E));
			y = LOAD(B(pos % E));
#ifdef BUG_ADVANCE_FIRST
			taken()
#elif defined(BUG_ADVANCE_STORE)
			atomic { consumer = pos + 1; taken() }
#else
			if
			:: atomic { DRAINED && consumer == pos -> consumer++; taken() }
			:: DRAINED && consumer != pos -> d_step { x = 0; y = 0 }
			fi
#endif
		fi;
		pos = 0
	od;
ended:
	atomic { pos = 0; quota = 0 }
}

/* When nothing else can happen */
proctype Clock()
{
	byte i, rounds;
	bit any;

	timeout;
#if KILL && !defined(BUG_NO_LOOK_AROUND)
	/* LOOK_AROUND_NS: a sleep has an end, if only one that nobody waits for */
	do
	:: consumer == cursor || rounds == P * K -> break
	:: else -> d_step { rounds++; i = 0;
		do
		:: i < CPUS -> asleep[i] = 0; i++
		:: else -> break
		od; i = 0 }
		timeout
	od;
#endif
	assert(working == 0);
#if QUIET == 0
	assert(consumer == cursor);	/* nobody sleeps for ever */
#elif QUIET < P
	/* The loud ones' last is not left */
	i = QUIET;
	do
	:: i < P -> assert(seen[ID(i, K - 1)] || lost[ID(i, K - 1)]); i++
	:: else -> break
	od;
	assert(consumer == cursor || mem[ARMED]);
	/* And if one was lost, that is known */
	i = QUIET * K + 1;
	do
	:: i <= P * K -> assert(!lost[i] || reports > 0); i++
	:: else -> break
	od
#endif
#if QUIET == 0
	i = 1;
	do
	:: i <= P * K ->
		any = any || lost[i];
		assert(!(seen[i] && lost[i]));
#if KILL
		assert(seen[i] || lost[i] || dead[(i - 1) / K]);
#else
		assert(seen[i] || lost[i]);
#endif
		i++
	:: else -> break
	od;
#if KILL
	assert(!any || reports > 0 || kills < KILL)
#else
	assert(!any || reports > 0)
#endif
#endif
}

init
{
	byte i;

	atomic {
		do
		:: i < P -> run Producer(i); run Drain(i); i++
		:: i >= P && i < CPUS -> run Consumer(i); run Drain(i); i++
		:: i == CPUS -> break
		od;
		run Clock();
		i = 0
	}
}
