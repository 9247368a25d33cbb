/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who has which entry of an NQ of the embedded device, for spin (B24): shm_nq_take() in
 * libhamlyn/src/embedded/shm_nq.h, h__shm_nq_share() in shm_bias.c, mend_hole() in
 * shm_device.c.
 *
 * The first that is ALONE gets the NQ to itself, and takes entries by plain stores; the others
 * (S in all, of which the first LONE are alone) end that, and wait for nobody. K entries each.
 * With KILL up to KILL die anywhere between two steps; HEIR: then another process has the
 * number of the first. One who mends holes looks on. Stores take their time: see weak.pml.
 *
 * No entry is taken twice, none is left out but those of the dead, and what was seen taken
 * nobody takes.
 */
#ifndef S
#define S 2
#endif
#ifndef LONE
#define LONE 1
#endif
#ifndef K
#define K 2
#endif
#ifndef KILL
#define KILL 0
#endif

#ifdef HEIR
#define SENDERS (S + 1)
#else
#define SENDERS S
#endif
#define MENDER SENDERS
#define CPUS (SENDERS + 1)

/* Words of memory; the cursor that all share is changed in one step only */
#define BIAS	0
#define MINE	1
#define START	2		/* and 1, if it was written */
#define WORDS	3

/* What a bias is besides the number of a sender; 0 is none either */
#define FREE	253
#define ENDING	254
#define SHARED	255

#include "weak.pml"

#define ENTRIES (SENDERS * K + 1)

byte cursor;			/* counts from START on */
bit taken[ENTRIES];
byte told;			/* entries before it were seen taken, by who mends */
byte through;
bit dead[SENDERS];
byte kills = KILL;

#if KILL
#define STEP \
	if \
	:: true \
	:: atomic { kills > 0 && DRAINED -> kills--; dead[me] = 1; goto ended } \
	fi
#else
#define STEP skip
#endif

#define TAKE(c) atomic { assert(!taken[c]); taken[c] = 1 }

/* membarrier(2): each processor at another time */
inline fence()
{
	MB;
#ifndef BUG_NO_FENCE
	i = 0;
	do
	:: i < CPUS -> sb[i].n == 0; i++
	:: else -> break
	od;
	i = 0
#endif
}

inline share()
{
	do
	:: LOAD(BIAS) == SHARED -> break
	:: LOAD(BIAS) != SHARED ->
		atomic { DRAINED -> if
		:: mem[BIAS] == FREE -> mem[BIAS] = SHARED; mem[START] = 1; break
		:: mem[BIAS] == SHARED -> break
		:: else -> mem[BIAS] = ENDING
		fi }
		STEP;
		fence();
		v = LOAD(MINE);
		STEP;
#ifdef BUG_START_AGAIN
		atomic { DRAINED -> mem[START] = v + 1 }
#else
		atomic { DRAINED -> if
		:: mem[START] == 0 -> mem[START] = v + 1
		:: else
		fi }
#endif
		v = 0;
		STEP;
		STORE_RELEASE(BIAS, SHARED);
		break
	od
}

inline take_shared()
{
	share();
	do
	:: c = cursor + LOAD(START) - 1;
		STEP;
		if
		:: atomic { DRAINED && cursor + mem[START] - 1 == c -> cursor++;
			assert(c >= told); assert(!taken[c]); taken[c] = 1 } break
		:: DRAINED && cursor + LOAD(START) - 1 != c
		fi
	od
}

inline take()
{
	if
	:: LOAD(BIAS) == number ->
		c = LOAD(MINE);
		STEP;
#ifdef BUG_LOOK_FIRST
		mine = LOAD(BIAS) == number;
		STORE_RELEASE(MINE, c + 1);
#else
		STORE_RELEASE(MINE, c + 1);
		STEP;
		mine = LOAD(BIAS) == number;
#endif
#ifdef BUG_NO_LOOK
		mine = 1;
#endif
		if
		:: mine -> TAKE(c)
		:: else ->
			share();
#ifdef BUG_NOT_COUNTED
			take_shared()
#else
			if
			:: LOAD(START) - 1 > c -> TAKE(c)
			:: else -> take_shared()
			fi
#endif
		fi;
		mine = 0
	:: else -> take_shared()
	fi
}

proctype Sender(byte me; byte number)
{
	byte c, v, i, k;
	bit mine;

#ifdef HEIR
	if
	:: me == S ->
end_heir:	dead[0]
	:: else
	fi;
#endif
	if
	:: number && LOAD(BIAS) == FREE -> atomic { DRAINED -> if
		:: mem[BIAS] == FREE -> mem[BIAS] = number
		:: else
		fi }
	:: else
	fi;
	do
	:: k < K -> STEP; take(); k++
	:: else -> break
	od;
ended:
	atomic { through++; c = 0; v = 0; i = 0; k = 0; mine = 0 }
}

/* It looks once, at any time; and not again if it may be one too many: others end that */
proctype Mender(byte me)
{
	byte c, b;

	c = LOAD(MINE);
	b = LOAD(BIAS);
	if
	:: b == SHARED -> c = cursor + LOAD(START) - 1
	:: else
	fi;
#ifndef BUG_SEEN_ENDING
	if
	:: b == ENDING
	:: else -> told = c
	fi;
#else
	told = c;
#endif
	c = 0;
	b = 0
}

proctype Clock()
{
	byte i, end;
	bit any;

	timeout;
#ifdef HEIR
	assert(through == SENDERS || !dead[0]);
#else
	assert(through == SENDERS);
#endif
	end = (mem[BIAS] == SHARED -> cursor + mem[START] - 1 : mem[MINE]);
	assert(mem[BIAS] == ENDING || end >= told);
	do
	:: i < ENTRIES -> any = any || !taken[i] && i < end; i++
	:: else -> break
	od;
	assert(mem[BIAS] == ENDING || !any || kills < KILL)
}

init
{
	byte i;

	atomic {
		mem[BIAS] = FREE;
		do
		:: i < SENDERS ->
			run Sender(i, (i < LONE -> i + 1 : (i == S -> 1 : 0)));
			run Drain(i);
			i++
		:: else -> break
		od;
		run Mender(MENDER);
		run Drain(MENDER);
		run Clock();
		i = 0
	}
}
