// SPDX-License-Identifier: GPL-2.0-only
/* Order statistics: means would tell of the noisy neighbour, not of us. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/perf.h"
#include "base/stats.h"

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

void stats_sort(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), compare);
}

/*
 * The smallest value that at least a share @q of the values do not exceed. A product may be
 * a little above what it should be: 0.07 * 100 is.
 */
double stats_quantile(const double *sorted, size_t n, double q)
{
	double rank = ceil(q * (double)n - 0.000001);
	size_t i = rank > 1 ? (size_t)rank - 1 : 0;

	if (!n)
		return 0;
	return sorted[i < n ? i : n - 1];
}

double stats_median(double *values, size_t n)
{
	stats_sort(values, n);
	if (!n)
		return 0;
	return n % 2 ? values[n / 2] :
		       (values[n / 2 - 1] + values[n / 2]) / 2;
}

double stats_median_at(const void *structures, size_t n, size_t stride, size_t offset)
{
	const char *first = (const char *)structures + offset;
	double values[PERF_MAX_REPS];
	size_t i;

	if (n > PERF_MAX_REPS)
		n = PERF_MAX_REPS;
	for (i = 0; i < n; i++)
		memcpy(&values[i], first + i * stride, sizeof(double));
	return stats_median(values, n);
}

/* What one clock_ns() adds to an interval, in ns. */
double clock_cost(void)
{
	double cost[501];
	uint64_t before = clock_ns();
	uint64_t now;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cost); i++) {
		now = clock_ns();
		cost[i] = (double)(now - before);
		before = now;
	}
	return stats_median(cost, ARRAY_SIZE(cost));
}
