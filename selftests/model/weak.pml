/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Memory whose stores take their time, for models of which that is the point: steps of
 * spin are seen by everybody at once, a processor's stores are not.
 *
 * Each process (@me) has a buffer of stores that only it sees. They become visible in any
 * order, but those to one word in theirs, and a release store behind all that are before
 * it. With TSO: in order. Loads are done in the order of the program, when they are; for
 * loads that pass each other there are the tests in selftests/litmus.
 *
 * Whoever includes this defines WORDS, CPUS and, if 3 stores are not enough, BUF.
 */
#ifndef BUF
#define BUF 3
#endif

byte mem[WORDS];

typedef stores {
	byte n;
	byte word[BUF];
	byte value[BUF];
	bit release[BUF]
}

stores sb[CPUS];

#define PUT(w, v, r) \
	atomic { sb[me].n < BUF -> d_step { \
		sb[me].word[sb[me].n] = w; \
		sb[me].value[sb[me].n] = v; \
		sb[me].release[sb[me].n] = r; \
		sb[me].n++ } }

#define STORE(w, v) PUT(w, v, 0)
#define STORE_RELEASE(w, v) PUT(w, v, 1)

/* Full barrier, also of whoever changes a word in one step: mem[] is his to use then */
#define DRAINED (sb[me].n == 0)
#define MB DRAINED

#define OWN(i, w) (sb[me].n > i && sb[me].word[i] == w)
#if BUF == 3
#define LOAD(w) (OWN(2, w) -> sb[me].value[2] : \
		 (OWN(1, w) -> sb[me].value[1] : (OWN(0, w) -> sb[me].value[0] : mem[w])))
#elif BUF == 4
#define LOAD(w) (OWN(3, w) -> sb[me].value[3] : (OWN(2, w) -> sb[me].value[2] : \
		 (OWN(1, w) -> sb[me].value[1] : (OWN(0, w) -> sb[me].value[0] : mem[w]))))
#endif

#define OTHER(i, j) (sb[c].word[i] != sb[c].word[j])
#define PASSES(i) (!sb[c].release[i])
#define SEEN(i) mem[sb[c].word[i]] = sb[c].value[i]
#define SHIFT(i) \
	sb[c].word[i] = sb[c].word[(i) + 1]; \
	sb[c].value[i] = sb[c].value[(i) + 1]; \
	sb[c].release[i] = sb[c].release[(i) + 1]
#define DROP_LAST \
	sb[c].n--; \
	sb[c].word[sb[c].n] = 0; \
	sb[c].value[sb[c].n] = 0; \
	sb[c].release[sb[c].n] = 0

/* What makes the stores of @c visible. It never stops one for good. */
proctype Drain(byte c)
{
	byte i;

end:
	do
	:: d_step { sb[c].n > 0 -> SEEN(0); i = 0;
		do
		:: i + 1 < sb[c].n -> SHIFT(i); i++
		:: else -> break
		od;
		DROP_LAST; i = 0 }
#ifndef TSO
	:: d_step { sb[c].n > 1 && PASSES(1) && OTHER(0, 1) -> SEEN(1); i = 1;
		do
		:: i + 1 < sb[c].n -> SHIFT(i); i++
		:: else -> break
		od;
		DROP_LAST; i = 0 }
	:: d_step { sb[c].n > 2 && PASSES(2) && OTHER(0, 2) && OTHER(1, 2) -> SEEN(2); i = 2;
		do
		:: i + 1 < sb[c].n -> SHIFT(i); i++
		:: else -> break
		od;
		DROP_LAST; i = 0 }
#endif
	od
}
