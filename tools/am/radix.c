// SPDX-License-Identifier: GPL-2.0-only
/*
 * Radix sort in the Split-C manner (L 4.3, Table 4.3). Each process holds a block of the
 * keys. Each pass, from the lowest digit to the highest, has three phases:
 *
 * fill		count the digits of the own keys;
 * wave-scan	a wave goes through the processes and adds up their counts, digit by
 *		digit; a second one brings the totals to all. Both go in pieces, so that a
 *		process adds one while the next is under way. From them each process knows
 *		where its first key of each digit belongs;
 * coalesce	every key goes to its place, which is in some process's block.
 *
 * A phase's time is that until all processes are through.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "gam.h"
#include "options.h"
#include "radix.h"
#include "stats.h"
#include "world.h"

#define KEY_BITS	32
#define MAX_RADIX_BITS	20
#define MAX_PASSES	KEY_BITS
#define MAX_PROCS	16
#define PIECE		1024	/* counts that go on together */

enum phase { FILL, WAVE_SCAN, COALESCE, PHASES };

static const char *const phase_names[PHASES] = { "fill", "wave-scan", "coalesce" };

static unsigned long nkeys, radix_bits, seed;
static const char *way_name;

static const struct option_word words[] = {
	{ "keys", OPTION_NUMBER, &nkeys, "N", "keys in all (default 10000000)", 1, 1UL << 31 },
	{ "bits", OPTION_NUMBER, &radix_bits, "N", "of a digit (default 16: two passes)", 1,
	  MAX_RADIX_BITS },
	{ "coalesce", OPTION_TEXT, &way_name, "HOW",
	  "keys travel as: medium (messages full of keys; default), words (five keys a\n"
	  "                     short message), runs (am_store() of those of one digit)", 0, 0 },
	{ "seed", OPTION_NUMBER, &seed, "N", "other keys (default 1)", 0, ~0UL },
	{ NULL, OPTION_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct usage usage = {
	"radix",
	"Radix sort of 32-bit keys by 2 to 16 processes; the result is checked.",
	words,
};

static uint32_t *counts;	/* of the own keys: of each digit */
static uint32_t *before;	/* of the processes before this one */
static uint32_t *totals;	/* of all */
static unsigned char *before_there, *totals_there;	/* of each piece: has it come? */
static unsigned long *before_of, *totals_of;		/* addresses in the others */
static double seconds[MAX_PASSES][PHASES];

static unsigned int digits(void)
{
	return 1U << radix_bits;
}

static unsigned int pieces(void)
{
	return (digits() + PIECE - 1) / PIECE;
}

/* ---- fill --------------------------------------------------------------- */

static void fill(const struct radix *radix)
{
	unsigned long i;

	memset(counts, 0, digits() * sizeof(*counts));
	for (i = 0; i < radix->mine; i++)
		counts[radix_digit(radix, radix->from[i])]++;
}

/* ---- wave-scan ---------------------------------------------------------- */

static void before_arrived(vnn_t source, void *addr, int nbytes, void *piece)
{
	(void)source;
	(void)addr;
	(void)nbytes;
	before_there[(unsigned long)piece] = 1;
}

static void totals_arrived(vnn_t source, void *addr, int nbytes, void *piece)
{
	(void)source;
	(void)addr;
	(void)nbytes;
	totals_there[(unsigned long)piece] = 1;
}

static void pass_on(int dest, const uint32_t *from, unsigned long to, unsigned long piece,
		    handler_mem_t handler)
{
	unsigned int first = (unsigned int)piece * PIECE, n = digits() - first;

	if (n > PIECE)
		n = PIECE;
	must(am_store(dest, from + first, (uint32_t *)to + first, (int)(n * sizeof(*from)),
		      handler, (void *)piece), "am_store");
}

/* One piece of the first wave: the last process has the totals then. */
static void add_piece(unsigned long piece, uint32_t *sums)
{
	unsigned int first = (unsigned int)piece * PIECE, i;
	int me = am_my_proc(), last = am_procs() - 1;

	for (i = first; i < first + PIECE && i < digits(); i++)
		sums[i] = before[i] + counts[i];
	if (me < last) {
		pass_on(me + 1, sums, before_of[me + 1], piece, before_arrived);
		return;
	}
	totals_there[piece] = 1;
	pass_on(0, sums, totals_of[0], piece, totals_arrived);
}

/* The second wave, from the last process to 0, 1, ...: it ends one before the last. */
static void wave_scan(void)
{
	int me = am_my_proc(), last = am_procs() - 1;
	uint32_t *sums = me == last ? totals : world_alloc(digits() * sizeof(*sums));
	unsigned long piece;

	for (piece = 0; piece < pieces(); piece++) {
		WAIT_FOR(!me || before_there[piece]);
		add_piece(piece, sums);
	}
	for (piece = 0; piece < pieces(); piece++) {
		WAIT_FOR(totals_there[piece]);
		if (me + 1 < last)
			pass_on(me + 1, totals, totals_of[me + 1], piece, totals_arrived);
	}
	if (me != last)
		free(sums);
}

/* Where the first own key of each digit belongs: into counts[]. */
static void find_places(void)
{
	uint32_t sum = 0, here;
	unsigned int d;

	for (d = 0; d < digits(); d++) {
		here = sum + before[d];
		sum += totals[d];
		counts[d] = here;
	}
}

static void clear_waves(void)
{
	memset(before_there, 0, pieces());
	memset(totals_there, 0, pieces());
}

/* ---- passes ------------------------------------------------------------- */

static double since(uint64_t *start)
{
	uint64_t now = clock_ns();
	double passed = (double)(now - *start) / 1e9;

	*start = now;
	return passed;
}

static void run_pass(struct radix *radix, unsigned int pass)
{
	uint64_t start;

	radix->shift = pass * (unsigned int)radix_bits;
	radix->mask = digits() - 1;
	radix->received = 0;
	clear_waves();
	world_barrier();
	start = clock_ns();
	fill(radix);
	world_barrier();
	seconds[pass][FILL] = since(&start);
	wave_scan();
	find_places();
	world_barrier();
	seconds[pass][WAVE_SCAN] = since(&start);
	radix_coalesce(radix, counts);
	world_barrier();
	seconds[pass][COALESCE] = since(&start);
	radix_swap(radix);
}

/* ---- are they sorted, and the same keys? -------------------------------- */

struct sums {
	unsigned long n, sum, xor, hash, first, last, unsorted;
};

#define SUMS	(sizeof(struct sums) / sizeof(long))

static void sum_up(const struct radix *radix, struct sums *sums)
{
	unsigned long i;

	*sums = (struct sums){ .n = radix->mine };
	for (i = 0; i < radix->mine; i++) {
		sums->sum += radix->from[i];
		sums->xor ^= radix->from[i];
		sums->hash += check_mix(radix->from[i]);
		sums->unsorted += i && radix->from[i] < radix->from[i - 1];
	}
	if (radix->mine) {
		sums->first = radix->from[0];
		sums->last = radix->from[radix->mine - 1];
	}
}

/* Of all processes; unsorted also counts neighbours in two processes. */
static void sum_all(const struct radix *radix, struct sums *all)
{
	struct sums each[MAX_PROCS], mine;
	const struct sums *previous = NULL;
	int p;

	sum_up(radix, &mine);
	world_share((unsigned long *)&mine, SUMS, (unsigned long *)each);
	*all = (struct sums){ 0 };
	for (p = 0; p < am_procs(); p++) {
		all->n += each[p].n;
		all->sum += each[p].sum;
		all->xor ^= each[p].xor;
		all->hash += each[p].hash;
		all->unsorted += each[p].unsorted;
		if (!each[p].n)
			continue;
		all->unsorted += previous && each[p].first < previous->last;
		previous = &each[p];
	}
}

static void verify(const struct radix *radix, const struct sums *old)
{
	struct sums new;

	sum_all(radix, &new);
	if (new.n != nkeys || new.sum != old->sum || new.xor != old->xor ||
	    new.hash != old->hash)
		die("not the keys that there were: sum %#lx, not %#lx; xor %#lx, not %#lx; "
		    "hash %#lx, not %#lx", new.sum, old->sum, new.xor, old->xor, new.hash,
		    old->hash);
	if (new.unsorted)
		die("not sorted: %lu keys are less than that before them", new.unsorted);
}

/* ---- begin, end --------------------------------------------------------- */

static void make_keys(struct radix *radix)
{
	unsigned long i;

	for (i = 0; i < radix->mine; i++)
		radix->from[i] = (uint32_t)check_key(seed, radix->first + i, 0);
}

static void *share_counts(unsigned long **addresses)
{
	void *memory = world_alloc(digits() * sizeof(*counts));

	memset(memory, 0, digits() * sizeof(*counts));
	*addresses = world_alloc((unsigned long)am_procs() * sizeof(long));
	world_share_pointer(memory, *addresses);
	return memory;
}

static void report(unsigned int passes)
{
	double total = 0;
	unsigned int pass, phase;

	if (!common.json)
		printf("Radix sort of %lu keys, %d processes, coalesce: %s\n", nkeys, am_procs(),
		       way_name);
	for (pass = 0; pass < passes; pass++)
		for (phase = 0; phase < PHASES; phase++) {
			total += seconds[pass][phase];
			if (!common.json) {
				printf("Pass %-2u %-10s %10.4f s\n", pass + 1, phase_names[phase],
				       seconds[pass][phase]);
				continue;
			}
			json_open("radix-phase", nkeys);
			json_number("pass", pass + 1);
			json_text("phase", phase_names[phase]);
			printf(",\"seconds\":%.6f", seconds[pass][phase]);
			json_close();
		}
	if (!common.json) {
		printf("TOTAL              %10.4f s, %.1f million keys/s; sorted, the same keys\n",
		       total, (double)nkeys / total / 1e6);
		return;
	}
	json_open("radix", nkeys);
	json_text("coalesce", way_name);
	json_number("passes", passes);
	printf(",\"seconds\":%.6f,\"keys_per_s\":%.0f", total, (double)nkeys / total);
	json_text("result", "sorted");
	json_close();
}

int main(int argc, char **argv)
{
	unsigned int pass, passes;
	struct radix radix;
	struct sums old;

	seed = 1;
	way_name = "medium";
	options_parse(argc, argv, &usage);
	nkeys = option_or(nkeys, 100000, 10000000);
	radix_bits = option_or(radix_bits, 16, 16);
	passes = (KEY_BITS + (unsigned int)radix_bits - 1) / (unsigned int)radix_bits;
	if (!radix_way_exists(way_name))
		options_refuse("--coalesce takes medium, words or runs, not \"%s\"", way_name);
	world_enable(usage.name, 2, MAX_PROCS);
	radix_open(&radix, nkeys, way_name);
	counts = world_alloc(digits() * sizeof(*counts));
	before = share_counts(&before_of);
	totals = share_counts(&totals_of);
	before_there = world_alloc(pieces());
	totals_there = world_alloc(pieces());
	make_keys(&radix);
	sum_all(&radix, &old);
	for (pass = 0; pass < passes; pass++)
		run_pass(&radix, pass);
	verify(&radix, &old);
	if (!am_my_proc())
		report(passes);
	return world_disable();
}
