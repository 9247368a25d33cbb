/* SPDX-License-Identifier: GPL-2.0-only */
/* What to measure on which systems, and what came out. */
#ifndef HAMLYN_PERF_PLAN_H
#define HAMLYN_PERF_PLAN_H

#include "system/chan.h"

#define PLAN_MAX_POINTS		(2 * PERF_MAX_SIZES + 4)
#define PLAN_EXTERNAL_REPS	3	/* programs take a second to start */

/* Over repetitions; with several pairs, each repetition is over all of them. */
struct result {
	bool valid;
	struct measure median;	/* of each member; but @n is the sum, @min the least */
	double lowest;		/* of the values of the repetitions, */
	double highest;		/* and the highest */
	uint32_t reps;		/* that it took part in */
	/* To the limit in the same repetition; 0 if that was not measured. */
	double ratio;
	double ratio_lowest;
	double ratio_highest;
};

struct left_out {
	const struct system *system;
	char why[128];
};

struct plan {
	const struct system *systems[SYSTEMS_MAX];
	uint32_t nsystems;
	struct point points[PLAN_MAX_POINTS];
	uint32_t npoints;
	uint32_t reps;
	uint32_t point_ms;
	uint32_t pairs;
	uint32_t engines;	/* kernel threads whose time is counted */
	size_t area_page;	/* --huge: what Hamlyn's areas came to be of; else 0 */
	bool thin;		/* slow starters take some of the sizes only */
	struct left_out left_out[SYSTEMS_MAX];
	uint32_t nleft_out;
	bool lenient;		/* a program that fails is left out */
	bool dropped[SYSTEMS_MAX];	/* has failed: no more turns */
	double foreign;		/* share of the CPUs that others used meanwhile */
	struct result results[SYSTEMS_MAX][PLAN_MAX_POINTS];
};

/* @names: separated by commas. One that cannot be measured here is a failure. */
int plan_systems(struct plan *plan, const struct options *options, const char *names);
/* The same, but it is left out, and the reader told; NULL: all there are. */
int plan_default_systems(struct plan *plan, const struct options *options,
			 const char *names);
void plan_sizes(struct plan *plan, enum test_kind test, const struct options *options,
		const size_t *sizes, uint32_t n);
int plan_run(struct plan *plan, const struct options *options);

/* Before anything is measured: can the results be kept? */
int report_ready(const struct options *options);
int report_print(const struct plan *plan, const struct options *options, bool grid);

#endif /* HAMLYN_PERF_PLAN_H */
