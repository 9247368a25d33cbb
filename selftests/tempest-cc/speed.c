// SPDX-License-Identifier: GPL-2.0-only
/*
 * What checks cost: each program without checks and with its data outside of the segment,
 * with checks, and with its data in the segment; in turns, as medians of processor time.
 * It judges what tempest.rst promises: exit status 1 if that is not so.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tempest.h>
#include <time.h>

#include "kernels.h"

#define TURNS		15
#define ARENA		(1 << 17)
#define CHASE_MOST	1.5
#define OUTSIDE_MOST	1.5

typedef uint64_t (*kernel)(void *arena, int rounds);

/**
 * struct program - one of kernels.h
 * @name: for people
 * @plain: without checks
 * @checked: with them
 * @rounds: how often it does what it does
 */
struct program {
	const char *name;
	kernel plain, checked;
	int rounds;
};

#define PROGRAM(name, what, rounds)	{ what, plain_##name, checked_##name, rounds },
static const struct program programs[] = { KERNELS(PROGRAM) };
#define N_PROGRAMS	(sizeof(programs) / sizeof(programs[0]))

enum way { PLAIN, OUTSIDE, INSIDE, WAYS };

static void *outside;
static double times[WAYS][TURNS];

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *of)
{
	qsort(of, TURNS, sizeof(*of), by_size);
	return of[TURNS / 2];
}

static double timed(kernel run, void *arena, int rounds, uint64_t *result)
{
	double begin = now();

	*result = run(arena, rounds);
	return now() - begin;
}

static void one_turn(const struct program *p, int turn)
{
	uint64_t results[WAYS];

	times[PLAIN][turn] = timed(p->plain, outside, p->rounds, &results[PLAIN]);
	times[OUTSIDE][turn] = timed(p->checked, outside, p->rounds, &results[OUTSIDE]);
	times[INSIDE][turn] = timed(p->checked, TPPI_SEG_BASE, p->rounds, &results[INSIDE]);
	if (results[PLAIN] != results[OUTSIDE] || results[PLAIN] != results[INSIDE]) {
		fprintf(stderr, "%s: other results with checks\n", p->name);
		exit(1);
	}
}

/* One in the segment, all Writable, and one outside */
static void map_arena(void)
{
	for (size_t at = 0; at <= ARENA; at += TPPI_PAGE_SIZE) {
		if (!TPPI_alloc_and_map(TPPI_SEG_BASE + at, 0, TPPI_Blk_Writable, 0, NULL)) {
			fprintf(stderr, "no page\n");
			exit(1);
		}
	}
	outside = aligned_alloc(4096, ARENA);
	if (!outside)
		exit(1);
	memset(outside, 0, ARENA);
}

int main(void)
{
	double ratios[2] = { 0 }, chase = 0, to[2], ms[WAYS];

	map_arena();
	printf("%-26s %9s %9s %7s %9s\n", "ms of processor time", "plain", "checked", "", "inside");
	for (size_t i = 0; i < N_PROGRAMS; i++) {
		for (int turn = 0; turn < TURNS; turn++)
			one_turn(&programs[i], turn);
		for (int way = 0; way < WAYS; way++)
			ms[way] = median(times[way]);
		to[0] = ms[OUTSIDE] / ms[PLAIN];
		to[1] = ms[INSIDE] / ms[PLAIN];
		ratios[0] += log(to[0]);
		ratios[1] += log(to[1]);
		if (!i)
			chase = to[1];
		printf("%-26s %9.3f %9.3f %6.2fx %9.3f %6.2fx\n", programs[i].name, ms[PLAIN],
		       ms[OUTSIDE], to[0], ms[INSIDE], to[1]);
	}
	to[0] = exp(ratios[0] / N_PROGRAMS);
	to[1] = exp(ratios[1] / N_PROGRAMS);
	printf("%-26s %9s %9s %6.2fx %9s %6.2fx\n", "geometric mean", "", "", to[0], "", to[1]);
	printf("# chase inside %.2fx (at most %.1fx), all outside %.2fx (at most %.1fx)\n", chase,
	       CHASE_MOST, to[0], OUTSIDE_MOST);
	return chase > CHASE_MOST || to[0] > OUTSIDE_MOST;
}
