/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The HPAM request/reply protocol of libhamlyn/am, for spin.
 *
 * "P" is the HPAM paper of 1995. What it leaves open is what is new here: a buffer for
 * messages that come in belongs to one (peer, instance), its sender has the NIC write to
 * it whenever it likes, and a notification names the buffer, never the message. So
 * there is no RX_FREE FIFO that protects a message that is being read.
 *
 * Two processes. For each requester (W of them) and instance (D) two links: the request
 * buffer of one and the in-buffer of the other, and the same for the reply. A message is
 * a header (sequence number, sum) and a body; they are written, and read, one after the
 * other. The number of the request is carried along in both, as a ghost: the protocol
 * sees it only modulo M in the header, and may not look at the body but to sum it.
 *
 * Networks (one of them):
 *  FIFO   loses nothing, keeps the order in each link; retransmissions come only from
 *	   time-outs. SPUR of them come too early (-1: any number); sums as in osus.
 *  BAG	   keeps no order; FAULTS messages are lost, repeated or damaged. All are summed.
 *  SET	   what was sent may be written at any time, any number of times, header and body
 *	   each alone, damaged too; LIFE: only of the last LIFE + 1 requests of a link.
 *	   Nothing need arrive: for safety only.
 *
 * FIFO and BAG with bounded SPUR and FAULTS end. Then, and only then (the "timeout" of
 * Promela), time-outs retransmit what is still counting; if nothing is, all must be done.
 *
 * The BUG_ switches each take a rule away; selftests/model/check.sh wants to see that
 * this is noticed. INPLACE, SCAN and DIRECT are what one might like to do.
 */

#ifndef W
#define W 1		/* processes that make requests: 1 or 2 */
#endif
#ifndef D
#define D 1		/* instances (P 5.2.2): 1 or 2 */
#endif
#ifndef N
#define N 2		/* requests of each requester, at most 5 */
#endif
#ifndef M
#define M 16		/* sequence numbers; above N + 1 as good as without end */
#endif
#ifndef C
#define C 3		/* messages under way in a link */
#endif
#ifndef FAULTS
#define FAULTS 0
#endif
#ifndef SPUR
#define SPUR 0
#endif

#define NR (W * D)	/* link i: requests, NR + i: replies to them */
#define OWNER(l) ((l) < NR -> (l) / D : 1 - ((l) - NR) / D)

/* States of the buffers for sending (P 6.1, table 1) */
#define FREE		0
#define TRANSMIT	1
#define COUNTING	2
#define WAITING		3

/* What the header says of the body */
#define PLAIN		0	/* no sum */
#define PROBE		1	/* there is none: that of the first transmission is meant */
#define SUM		2
#define SUM_OF(x)	(SUM + (x))	/* in memory: over the sequence number, too */

#define JUNK		0	/* body: of no message */

/* Buffers for sending; what is in them is n[i] for requests, handled[i] for replies */
byte ost[2 * NR];	/* state */
byte oflag[2 * NR];	/* the flag of the message in it */
bit osus[2 * NR];	/* suspect: more than one message may be under way to its in-buffer */
#ifdef CLEAR
/* What one might like to do: no suspicion after CLEAR messages that were sent once each */
bit twice[2 * NR];	/* the last one was not */
byte clean[2 * NR];
#endif
byte used[2];		/* ghost: those that are not free, of each process */

/* Buffers for receiving: header's number and flag, body, notifications of it */
byte ih[2 * NR], is[2 * NR], ib[2 * NR];
byte nf[2 * NR];

#ifndef SET
chan q[2 * NR] = [C] of { byte, byte };
#endif

byte n[NR];		/* last request: the sequence number of the requester */
byte handled[NR];	/* last request that was handled: that of the receiver */
byte done[NR];		/* last request whose reply was handled (ghost) */
byte issued[2];		/* requests so far */
#ifndef SET
short spur = SPUR;
byte faults = FAULTS;
#endif

#ifdef ACKS
/*
 * Requests that no handler replied to are acknowledged later, several in one message. It
 * has a buffer of its own for each requester and is always summed: nothing keeps its sender
 * from overwriting one that was not read, or is being read.
 */
bit acked[NR];		/* the answer to handled[i] is an acknowledgement */
bit owed[NR];
chan qa[W] = [2] of { byte, byte };
byte ia0[W], ia1[W];	/* the number for each instance; 0: not in the message */
bit itorn[W];
byte nfa[W];
#endif

/* The whole state machine of P 6.1, for requests and replies */
#define REQUEST_MOVE(a, b) \
	((a == FREE && b == TRANSMIT) || (a == TRANSMIT && b == COUNTING) || \
	 (a == COUNTING && b == TRANSMIT) || (a == COUNTING && b == FREE))
#define REPLY_MOVE(a, b) \
	((a == FREE && b == TRANSMIT) || (a == TRANSMIT && b == WAITING) || \
	 (a == WAITING && b == TRANSMIT))

inline move(l, to)
{
	assert((l < NR && REQUEST_MOVE(ost[l], to)) || (l >= NR && REPLY_MOVE(ost[l], to)));
	if
	:: ost[l] == FREE -> used[OWNER(l)]++; assert(used[OWNER(l)] <= 2 * D)
	:: to == FREE -> used[OWNER(l)]--
	:: else
	fi;
	ost[l] = to
}

/* Step 1.b and 2.e of P 5.2.1. The NIC reads the buffer later: see Tx */
inline post(l, again)
{
#ifdef FIFO
	/*
	 * Until something is sent twice at most one message is under way in a link, and its
	 * receiver has read it before there is a next: no sum is needed. The first that is sent
	 * twice must have one already if the flag can be read without the number (FINE).
	 */
#ifdef BUG_LATE_SUSPECT
	oflag[l] = (osus[l] -> SUM : PLAIN);
#endif
#ifdef CLEAR
	if
	:: again -> twice[l] = 1; clean[l] = 0
	:: !again && twice[l] -> twice[l] = 0
	:: !again && !twice[l] && osus[l] ->
		clean[l]++;
		osus[l] = (clean[l] >= CLEAR -> 0 : 1)
	:: else
	fi;
#endif
#ifndef BUG_NOSUSPECT
	if
	:: again -> osus[l] = 1
	:: else
	fi;
#endif
#ifndef BUG_LATE_SUSPECT
	oflag[l] = (osus[l] -> SUM : PLAIN);
#endif
#ifdef DIRECT_PROBE
	if
	:: again -> oflag[l] = PROBE
	:: else
	fi;
#endif
#else
	oflag[l] = SUM;
#endif
	move(l, TRANSMIT);
#ifdef SET
	move(l, (l < NR -> COUNTING : WAITING));
#endif
}

/*
 * The owner must not touch a buffer in Transmit. P 6.1 needs no such rule "because
 * the matching reply or request cannot be issued until the buffer has left the
 * transmit state". That is so for the first transmission only: the answer to it may
 * come while a retransmission is still queued.
 */
#ifdef BUG_EARLY_REUSE
#define MINE(l) (true)
#else
#define MINE(l) (ost[l] != TRANSMIT)
#endif

/* May the process look into the in-buffer? */
#ifdef SET
#define NOTIFIED(l) (true)
#define TAKE(l) skip
#elif defined(SCAN) || defined(SCAN_SUMMED)
/*
 * The notification queue was full: look at all buffers, whether told of them or not. (In
 * a d_step the first that can be done is done: those that were told of go first.)
 */
#define NOTIFIED(l) (nf[l] > 0 || (ih[l] != 0 && scans > 0))
#define TAKE(l) if :: nf[l] > 0 -> nf[l]--; scan = 0 :: scans > 0 -> scans--; scan = 1 fi
#else
#define NOTIFIED(l) (nf[l] > 0)
#define TAKE(l) nf[l]--
#endif

/*
 * hn, hs, hb: the copy of the message. Sums are taken to be perfect: a header and a body
 * that were not sent together do not fit.
 */
#ifdef BUG_TORN
#define FITS (hn != 0)
#elif defined(SCAN_SUMMED)
#define FITS (hn != 0 && (hs < SUM && scan == 0 || hs == SUM_OF(hn) && hb == hn))
#else
#define FITS (hn != 0 && (hs < SUM || (hs == SUM_OF(hn) && hb == hn)))
#endif

#define SEQ(x) ((x) % M)

#ifdef BUG_NOSEQ
#define NEW(i) (true)
#else
#define NEW(i) (SEQ(hn) == SEQ(handled[i] + 1))
#endif
#define SAME(i) (SEQ(hn) == SEQ(handled[i]))

#ifdef BUG_FREEANY
#define MATCH(i) (true)
#else
#define MATCH(i) (SEQ(hn) == SEQ(n[i]))
#endif

/* What a look at an in-buffer comes to */
#define DROP	0
#define RUN	1
#define REFLECT	2

inline handler_ran(number)
{
	assert(hb == hn);	/* neither torn nor damaged nor overwritten */
	assert(hb == number);	/* once, and in the order of the instance */
}

inline request(i)
{
	d_step {
		n[i]++;
		issued[p]++;
		post(i, 0)
	}
}

inline retransmit(i)
{
	d_step {
		post(i, 1)
	}
}

/* The header is read; before and after the body is the NIC may write to both */
#ifdef FINE
#define READ_FLAG(l) hs = is[l];
inline look(l)
{
	TAKE(l);
	hn = ih[l]
}
#else
#define READ_FLAG(l)
inline look(l)
{
	TAKE(l);
	hn = ih[l];
	hs = is[l]
}
#endif

inline replied(i, again)
{
#ifdef ACKS
	acked[i] = 0;
	owed[i] = 0;
#endif
	post(NR + i, again)
}

/* Step 2 of P 5.2.1, after the look at the header */
inline serve_request(i)
{
	READ_FLAG(i)
	d_step {
		hb = ib[i];
		if
		:: !(FITS) -> v = DROP
		:: (FITS) && NEW(i) -> v = RUN
		:: (FITS) && !(NEW(i)) && SAME(i) && handled[i] > 0 -> v = REFLECT
		:: else -> v = DROP
		fi
	}
#ifdef INPLACE
	/* Medium messages: the handler reads the in-buffer, not the copy that was summed */
#ifdef BUG_EARLY_REPLY
	d_step {
		if
		:: v == RUN -> handled[i]++; replied(i, 0)
		:: else
		fi
	}
#endif
	d_step {
		if
		:: v == RUN -> hb = ib[i]
		:: else
		fi
	}
#endif
	if
#ifdef BUG_EARLY_REPLY
	:: d_step { v == RUN -> handler_ran(handled[i]) }
#else
	:: d_step { v == RUN ->		/* 2.c to 2.e */
		handler_ran(handled[i] + 1);
		handled[i]++;
		replied(i, 0) }
#ifdef ACKS
	:: d_step { v == RUN ->		/* the handler did not reply */
		handler_ran(handled[i] + 1);
		handled[i]++;
		acked[i] = 1;
		owed[i] = 1 }
#endif
#endif
#ifdef BUG_NOREFLECT
	:: v == REFLECT
#elif defined(ACKS)
	:: d_step { v == REFLECT && acked[i] -> owed[i] = 1 }
	:: d_step { v == REFLECT && !acked[i] -> replied(i, 1) }
#else
	:: d_step { v == REFLECT -> replied(i, 1) }
#endif
	:: v == DROP
	fi;
	d_step { hn = 0; hs = 0; hb = 0; v = 0 }
}

/* Step 3 of P 5.2.1, likewise */
inline serve_reply(i)
{
	READ_FLAG(NR + i)
	d_step {
		hb = ib[NR + i];
		if
		:: (FITS) && ost[i] != FREE && MATCH(i) -> v = RUN
		:: else
		fi
	}
#ifdef INPLACE
	d_step {
		if
		:: v == RUN -> hb = ib[NR + i]
		:: else
		fi
	}
#endif
	d_step {
		if
		:: v == RUN ->
			handler_ran(n[i]);
			assert(done[i] == n[i] - 1);
			done[i] = n[i];
			move(i, FREE)		/* 3.d */
		:: else
		fi;
		hn = 0; hs = 0; hb = 0; v = 0
	}
}

#ifdef ACKS
/* One pair of a lone acknowledgement; no handler is called */
inline acknowledged(i, number)
{
	hn = number;
	if
	:: hn != 0 && ost[i] != FREE && MATCH(i) ->
		assert(hn == n[i] && handled[i] == n[i] && done[i] == n[i] - 1);
		done[i] = n[i];
		move(i, FREE)
	:: else
	fi;
	hn = 0
}
#endif

inline too_early(i)
{
	if
	:: spur > 0 -> spur--
	:: else
	fi;
	post(i, 1)
}

/*
 * A process that has to wait for a request buffer serves the network meanwhile, requests
 * too, else two that wait for each other do so for ever (P 5.2.1, 5.2.3).
 */
#ifdef BUG_DEAF
#define LISTENS (p >= W || issued[p] == N || ost[own] == FREE || ost[own + D - 1] == FREE)
#else
#define LISTENS (true)
#endif

#define MAY_REQUEST(i) (p < W && issued[p] < N && ost[i] == FREE)
#define MAY_RETRANSMIT(i) (p < W && spur != 0 && ost[i] == COUNTING)
#define MAY_SERVE(i) (1 - p < W && LISTENS && NOTIFIED(i) && MINE(NR + i))
#define MAY_FINISH(i) (p < W && NOTIFIED(NR + i) && MINE(i))

/* A process: what its polls do, in any order */
proctype Proc(byte p)
{
	byte hn, hs, hb;		/* the copy of a message */
	byte v;
#if defined(SCAN) || defined(SCAN_SUMMED)
	bit scan;
	byte scans = 1;
#endif
	byte own = p * D;		/* links of its requests, if it is a requester */
	byte peer = (1 - p) * D;	/* of those to it, if its peer is one */

end:
	do
	:: d_step { MAY_REQUEST(own) -> request(own) }
	:: d_step { MAY_SERVE(peer) -> look(peer) } serve_request(peer)
	:: d_step { MAY_FINISH(own) -> look(NR + own) } serve_reply(own)
#ifndef SET
	:: d_step { MAY_RETRANSMIT(own) -> too_early(own) }
#endif
#if D > 1
	:: d_step { MAY_REQUEST(own + 1) -> request(own + 1) }
	:: d_step { MAY_SERVE(peer + 1) -> look(peer + 1) } serve_request(peer + 1)
	:: d_step { MAY_FINISH(own + 1) -> look(NR + own + 1) } serve_reply(own + 1)
#ifndef SET
	:: d_step { MAY_RETRANSMIT(own + 1) -> too_early(own + 1) }
#endif
#endif
#ifdef ACKS
	/* Lazily: at any time, all that are owed */
	:: d_step { 1 - p < W && nfull(qa[1 - p]) && (owed[peer] || owed[peer + D - 1]) ->
		qa[1 - p]!(owed[peer] -> handled[peer] : 0),
			  (D > 1 && owed[peer + D - 1] -> handled[peer + D - 1] : 0);
		owed[peer] = 0;
		owed[peer + D - 1] = 0 }
	:: d_step { p < W && nfa[p] > 0 && MINE(own) && MINE(own + D - 1) ->
		nfa[p]--;
		if
		:: !itorn[p] ->
			acknowledged(own, ia0[p]);
#if D > 1
			acknowledged(own + 1, ia1[p])
#endif
		:: else
		fi }
#endif
	od
}

#ifndef SET
/* The sending half of the NIC: buffers from Transmit to the network, in any order */
proctype Tx()
{
	byte l;

end:
	do
	:: atomic {
		if
		:: ost[0] == TRANSMIT && nfull(q[0]) -> l = 0
		:: ost[1] == TRANSMIT && nfull(q[1]) -> l = 1
#if NR > 1
		:: ost[2] == TRANSMIT && nfull(q[2]) -> l = 2
		:: ost[3] == TRANSMIT && nfull(q[3]) -> l = 3
#endif
#if NR > 2
		:: ost[4] == TRANSMIT && nfull(q[4]) -> l = 4
		:: ost[5] == TRANSMIT && nfull(q[5]) -> l = 5
		:: ost[6] == TRANSMIT && nfull(q[6]) -> l = 6
		:: ost[7] == TRANSMIT && nfull(q[7]) -> l = 7
#endif
		fi;
#ifdef FIFO
		q[l]!(l < NR -> n[l % NR] : handled[l % NR]), oflag[l];
#else
		q[l]!!(l < NR -> n[l % NR] : handled[l % NR]), oflag[l]; /* sorted: fewer states */
#endif
		move(l, (l < NR -> COUNTING : WAITING));
		l = 0
	   }
	od
}

/*
 * Bulk data that is written where the user wants it: when the handler has run the memory
 * is the user's again, who may have changed it.
 */
#ifdef DIRECT
#define WRITES_BODY assert(x > (l < NR -> handled[l % NR] : done[l % NR])); ib[l] = b
#else
#define WRITES_BODY ib[l] = b
#endif
#define WRITES_HEADER ih[l] = x; is[l] = s

/*
 * The NIC must not wait for the process to look: it may wait for a buffer to leave
 * Transmit, thus for the NIC. Notifications beyond C are lost, others are left then.
 */
#define WRITTEN nf[l] = (nf[l] < C -> nf[l] + 1 : C); x = 0; s = 0; b = 0

#define FROM_BAG(k) q[l]??[k, SUM] -> q[l]??k, SUM; x = k

#ifdef BUG_NIC_WAITS
#define ROOM(l) (nf[l] < C)
#else
#define ROOM(l) (true)
#endif

/*
 * The receiving half, for one in-buffer: header and body are written in any order. FINE:
 * so are the sequence number and the sum.
 */
proctype Rx(byte l)
{
	byte x, s, b;
#ifdef FINE
	byte rest;
#endif

end:
	do
#ifdef FIFO
	:: d_step { nempty(q[l]) && ROOM(l) ->
		q[l]?x, s;
		b = x;
		s = (s == SUM -> SUM_OF(x) : s)
#ifdef FINE
		;
		rest = 7
#endif
	   }
#else
	:: atomic {
		if
		:: FROM_BAG(1)
		:: FROM_BAG(2)
		:: FROM_BAG(3)
		:: FROM_BAG(4)
		:: FROM_BAG(5)
		fi;
		s = SUM_OF(x);
		b = x;
		if
		:: true
		:: faults > 0 -> faults--; x = 0 /* lost */
		:: faults > 0 && nfull(q[l]) -> faults--; q[l]!!x, SUM /* repeated */
		:: faults > 0 -> faults--; b = JUNK
		fi
	   }
#endif
#ifdef FINE
		do
		:: d_step { rest & 1 -> ih[l] = x; rest = rest & 6 }
		:: d_step { rest & 2 -> is[l] = s; rest = rest & 5 }
		:: d_step { rest & 4 -> ib[l] = b; rest = rest & 3 }
		:: d_step { rest == 0 -> WRITTEN }
			break
		od
#else
		if
		:: x == 0 -> d_step { s = 0; b = 0 }
		:: d_step { x != 0 && s == PROBE -> WRITES_HEADER; WRITTEN }
		:: d_step { x != 0 && s != PROBE -> WRITES_HEADER }
			d_step { WRITES_BODY; WRITTEN }
		:: d_step { x != 0 && s != PROBE -> WRITES_BODY }
			d_step { WRITES_HEADER; WRITTEN }
		fi
#endif
	od
}

#ifdef ACKS
proctype RxAck(byte p)
{
	byte x, y;

end:
	do
	:: atomic { nempty(qa[p]) ->
		qa[p]?x, y;
		if
		:: true -> itorn[p] = 1 /* being written: its sum is wrong */
		:: faults > 0 -> faults--; x = 0; y = 0 /* lost */
		fi
	   }
		d_step {
			if
			:: x != 0 || y != 0 ->
				ia0[p] = x;
				ia1[p] = y;
				itorn[p] = 0;
				nfa[p] = (nfa[p] < C -> nfa[p] + 1 : C);
				x = 0;
				y = 0
			:: else
			fi
		}
	od
}
#endif

#define COUNTS(i) (ost[i] == COUNTING)

/*
 * Time-outs, when nothing else can happen. What does so more often than there are
 * causes (GIVE_UP) would be given up, after 30 s (P 5.2.1), though both live and the
 * network delivers again. Under NP spin looks for endless runs itself.
 */
#ifndef GIVE_UP
#define GIVE_UP (FAULTS + SPUR + 1)
#endif

proctype Clock()
{
	byte quiet, i;

	do
	:: timeout ->
		atomic {
			if
			:: COUNTS(0) -> i = 0
#if NR > 1
			:: COUNTS(1) -> i = 1
#endif
#if NR > 2
			:: COUNTS(2) -> i = 2
			:: COUNTS(3) -> i = 3
#endif
			:: else -> break
			fi;
#ifndef NP
			quiet++;
			assert(quiet <= GIVE_UP);
#endif
			post(i, 1);
			i = 0
		}
	od;
	atomic {
		i = 0;
		do
		:: i < NR ->
			assert(handled[i] == n[i] && done[i] == n[i]);
			assert(ost[i] == FREE);
			assert(ost[NR + i] == FREE || ost[NR + i] == WAITING);
			assert(nf[i] == 0 && nf[NR + i] == 0);
			i++
		:: else -> break
		od;
		assert(issued[0] == N && (W == 1 || issued[1] == N))
	}
}

#else

/* The network that may do anything but make up a message whose sum is right */
#ifdef LIFE
#define ALIVE(k) (k + LIFE >= n[l % NR])
#else
#define ALIVE(k) (true)
#endif
#define SENT(k) (k <= (l < NR -> n[l % NR] : handled[l % NR]) && ALIVE(k))
#define WRITES(k) \
	:: d_step { SENT(k) -> ih[l] = k; is[l] = SUM_OF(k) } \
	:: d_step { SENT(k) -> ib[l] = k }

proctype Rx(byte l)
{
end:
	do
	WRITES(1)
	WRITES(2)
	WRITES(3)
	WRITES(4)
	WRITES(5)
	:: ib[l] = JUNK
	od
}
#endif

init
{
	byte i;

	atomic {
		run Proc(0);
		run Proc(1);
		do
		:: i < 2 * NR -> run Rx(i); i++
		:: else -> break
		od;
#ifndef SET
		run Tx();
		run Clock();
#ifdef ACKS
		run RxAck(0);
		if
		:: W > 1 -> run RxAck(1)
		:: else
		fi
#endif
#endif
		i = 0
	}
}
