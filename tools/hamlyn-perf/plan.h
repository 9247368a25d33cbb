/* SPDX-License-Identifier: GPL-2.0-only */
/* What to measure on which systems, and what came out. */
#ifndef HAMLYN_PERF_PLAN_H
#define HAMLYN_PERF_PLAN_H

#include "chan.h"

#define PLAN_MAX_POINTS		(2 * PERF_MAX_SIZES + 4)

struct point {
	enum test_kind test;
	size_t size;
};

struct result {
	bool valid;
	double value;		/* as in struct measure, median over repetitions */
	double p99;
	double min;
	uint64_t n;		/* trips or messages, all repetitions */
	double ratio;		/* to the limit, 0 if that was not measured */
};

struct plan {
	const struct system *systems[SYSTEMS_MAX];
	uint32_t nsystems;
	struct point points[PLAN_MAX_POINTS];
	uint32_t npoints;
	uint32_t reps;
	uint32_t point_ms;
	double foreign;		/* share of the CPUs that others used meanwhile */
	struct result results[SYSTEMS_MAX][PLAN_MAX_POINTS];
};

int plan_systems(struct plan *plan, const char *names);
void plan_sizes(struct plan *plan, enum test_kind test, const struct options *options,
		const size_t *sizes, uint32_t n);
int plan_run(struct plan *plan, const struct options *options);

int report_print(const struct plan *plan, const struct options *options, bool grid);

#endif /* HAMLYN_PERF_PLAN_H */
