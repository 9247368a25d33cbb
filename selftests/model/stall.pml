/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who waits for room on a connection, and who sends, for spin: termini whose packets go into the
 * ring of a peer, and a socket that takes what it has room for. Barriers B19 and B20 of
 * Documentation/barriers.rst. Stores take their time, those that release a lock too: see weak.pml.
 *
 * T termini have K packets each, the first one MORE of them, on E engines. A ring has room for
 * ROOM packets, and the socket for one. Whoever has put something into the ring sends from it, and
 * so does a worker when the socket has room again. When nothing more can happen, everything must
 * have arrived.
 */
#ifndef T
#define T 2
#endif
#ifndef E
#define E 2
#endif
#ifndef K
#define K 1
#endif
#ifndef MORE
#define MORE 0
#endif
#ifndef ROOM
#define ROOM 1
#endif

#define WORKER E		/* the last of the processes */
#define CPUS (E + 1)

#define SENDING	0		/* somebody sends from the ring */
#define RING	1		/* packets in it; changed under its lock */
#define EVENTS	2		/* of the NIC: how often there was room again */
#define RING_LOCK 3
#define LISTED	4		/* by engine: termini in its list; changed under its lock */
#define LIST_LOCK (LISTED + E)	/* by engine */
#define CALLS	(LIST_LOCK + E)	/* with COUNT: how often somebody wanted to send */
#define WORDS	(CALLS + 1)

#include "weak.pml"

bit wanted;			/* somebody waits for room; ring lock */
byte left[T] = K;		/* packets to be sent; its engine's */
bit listed[T];			/* list lock of its engine */
bit awake[E];
byte senders;			/* how many send from the ring: at most one */

bit busy;			/* the socket has a packet */
bit nospace;			/* and has said so: it will start the worker */
bit work;			/* the worker has been started */
byte arrived;

#define OF(t) ((t) % E)		/* its engine */

/* Acquire and release, and no more than that */
#define LOCK(l) atomic { mem[l] == 0 -> mem[l] = 1 }
#define UNLOCK(l) STORE_RELEASE(l, 0)

/* B20: test SENDING after a full barrier, so that whoever lets go sees what was there before */
#ifdef BUG_TRY_NO_MB
#define TRY_MB skip
#else
#define TRY_MB MB
#endif

#ifdef BUG_RELEASE_NO_MB
#define RELEASE_MB skip
#else
#define RELEASE_MB MB
#endif

#ifdef BUG_EVENTS_NO_MB
#define EVENTS_MB skip
#else
#define EVENTS_MB MB
#endif

#ifdef BUG_LIST_NO_MB
#define LIST_MB skip
#else
#define LIST_MB MB
#endif

/* There is room: back into the order with all that wait for it (B19) */
inline wake_all()
{
#ifndef BUG_EVENTS_LATE
	STORE(EVENTS, LOAD(EVENTS) + 1);
	EVENTS_MB;
#endif
	e = 0;
	do
	:: e < E ->
		if
		:: LOAD(LISTED + e) ->
			LOCK(LIST_LOCK + e);
			t = e;
			do
			:: t < T -> listed[t] = 0; t = t + E
			:: else -> break
			od;
			STORE(LISTED + e, 0);
			awake[e] = 1;
			UNLOCK(LIST_LOCK + e)
		:: else
		fi;
		e++
	:: else -> break
	od;
	e = 0;
	t = 0;
#ifdef BUG_EVENTS_LATE
	STORE(EVENTS, LOAD(EVENTS) + 1);
	EVENTS_MB
#endif
}

/* Take a packet out of the ring that the socket has taken */
inline consume()
{
	LOCK(RING_LOCK);
	STORE(RING, LOAD(RING) - 1);
	wake = wanted;
	wanted = 0;
	UNLOCK(RING_LOCK);
	if
	:: wake -> wake = 0; wake_all()
	:: else
	fi
}

/*
 * Is there something to be sent? A socket that has refused starts the worker, but that may have
 * come while we were there. One that was not asked starts nobody, whether it has room or not.
 */
#if defined(BUG_NO_LOOK)
#define AGAIN 0
#elif defined(BUG_TRUST_WORKER)
#define AGAIN (LOAD(RING) && !refused)
#elif defined(BUG_TRUST_SOCKET)
#define AGAIN (LOAD(RING) && !busy)
#elif defined(BUG_LOOK_RING)
#define AGAIN LOAD(RING)
#else
#define AGAIN (LOAD(RING) && (!refused || !busy))
#endif

#define TRY_TO_SEND(no) \
	TRY_MB; \
	if \
	:: atomic { mem[SENDING] == 0 && LOAD(SENDING) == 0 -> mem[SENDING] = 1; \
		    senders++; assert(senders == 1) } \
	:: LOAD(SENDING) == 1 -> no \
	fi

#define LET_GO \
	senders--; \
	STORE_RELEASE(SENDING, 0); \
	RELEASE_MB

#ifdef COUNT
/*
 * Whoever wants to send counts that, and the holder compares: then it need not know why. The
 * count is one step of memory's, which no store of ours before it waits for.
 */
inline flush()
{
#ifndef BUG_COUNT_NO_MB
	MB;
#endif
	mem[CALLS]++;
	do
	:: true ->
		TRY_TO_SEND(break);
		calls = mem[CALLS];
		more = 0;
		if
		:: LOAD(RING) ->
			if
			:: atomic { !busy -> busy = 1; more = 1 } consume()
			:: atomic { busy -> nospace = 1 }
			fi
		:: else
		fi;
		LET_GO;
		if
		:: (more && LOAD(RING)) || mem[CALLS] != calls
		:: else -> break
		fi
	od;
	more = 0;
	calls = 0
}
#else
/* Send as much as the socket takes, unless somebody does (B20) */
inline flush()
{
	do
	:: true ->
		TRY_TO_SEND(break);
		do
		:: LOAD(RING) ->
			if
			:: atomic { !busy -> busy = 1; refused = 0 } consume()
			:: atomic { busy -> nospace = 1; refused = 1 } break
			fi
		:: else -> refused = 0; break
		od;
		LET_GO;
		if
		:: AGAIN
		:: else -> break
		fi
	od;
	refused = 0
}
#endif

/* hml_tx_run(): until there is no room */
inline run_terminus()
{
	stalled = 0;
	do
	:: !left[t] -> break
	:: left[t] ->
		LOCK(RING_LOCK);
		if
		:: LOAD(RING) < ROOM ->
			STORE(RING, LOAD(RING) + 1);
			left[t]--
		:: else ->
			stalled = 1;
#ifndef BUG_WANTED_UNLOCKED
			wanted = 1
#endif
		fi;
		UNLOCK(RING_LOCK);
#ifdef BUG_WANTED_UNLOCKED
		wanted = wanted | stalled;
#endif
		if
		:: stalled -> break
		:: else
		fi
	od
}

/* Out of the order, unless there has been room since @seen (B19) */
inline list_terminus()
{
	LOCK(LIST_LOCK + me);
	listed[t] = 1;
	STORE(LISTED + me, 1);
	LIST_MB;
#ifndef BUG_NO_EVENTS
	if
	:: LOAD(EVENTS) != seen ->
		/* The word may stay: whoever looks finds nothing. */
		listed[t] = 0
	:: else
	fi;
#endif
	UNLOCK(LIST_LOCK + me)
}

#define READY(t) ((t) < T && left[t] && !listed[t])

proctype Engine(byte me)
{
	byte t, e, turn, seen;
	bit stalled, wake, refused, more;
	byte calls;

	do
	:: READY(me) || READY(me + E) ->
		if
		:: READY(me) -> t = me
		:: READY(me + E) -> t = me + E
		fi;
#ifndef BUG_EVENTS_READ_LATE
		seen = LOAD(EVENTS);
#endif
		run_terminus();
#ifdef BUG_EVENTS_READ_LATE
		seen = LOAD(EVENTS);
#endif
#ifdef LIST_FIRST
		if
		:: stalled -> list_terminus()
		:: else
		fi;
		stalled = 0;
		flush()
#else
		turn = t;
		flush();
		t = turn;
		if
		:: stalled -> list_terminus()
		:: else
		fi
#endif
	:: else ->
		stalled = 0; seen = 0; t = 0;
end_asleep:	atomic { awake[me] -> awake[me] = 0 }
	od
}

proctype Worker(byte me)
{
	byte t, e;
	bit wake, refused, more;
	byte calls;

end:
	do
	:: atomic { work -> work = 0 } flush()
	od
}

/* The network, and what it calls when there is room: write_space() */
proctype Network()
{
end:
	do
	:: atomic { busy -> busy = 0; arrived++; work = work | nospace; nospace = 0 }
	od
}

proctype Clock()
{
	timeout;
	assert(arrived == T * K + MORE)
}

init
{
	byte i;

	atomic {
		left[0] = K + MORE;
		do
		:: i < E -> run Engine(i); run Drain(i); i++
		:: else -> break
		od;
		run Worker(WORKER);
		run Drain(WORKER);
		run Network();
		run Clock();
		i = 0
	}
}
