// SPDX-License-Identifier: GPL-2.0-only
/* Order statistics, and the mean, which is what the papers give. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "stats.h"
#include "world.h"

#define COST_SAMPLES	501

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a;
	double y = *(const double *)b;

	return (x > y) - (x < y);
}

/*
 * The smallest value that at least a share @q of the values do not exceed. A product may be
 * a little above what it should be: 0.07 * 100 is.
 */
static double quantile(const double *sorted, size_t n, double q)
{
	double rank = ceil(q * (double)n - 0.000001);
	size_t i = rank > 1 ? (size_t)rank - 1 : 0;

	return sorted[i < n ? i : n - 1];
}

double stats_median(double *values, size_t n)
{
	if (!n)
		return 0;
	qsort(values, n, sizeof(*values), compare);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

void stats_of(double *values, size_t n, struct stats *stats)
{
	double sum = 0;
	size_t i;

	*stats = (struct stats){ .n = n };
	if (!n)
		return;
	for (i = 0; i < n; i++)
		sum += values[i];
	stats->mean = sum / (double)n;
	stats->median = stats_median(values, n);
	stats->min = values[0];
	stats->p90 = quantile(values, n, 0.9);
	stats->p99 = quantile(values, n, 0.99);
	stats->p999 = quantile(values, n, 0.999);
	stats->max = values[n - 1];
}

void stats_json(const struct stats *stats)
{
	json_number("median_ns", stats->median);
	json_number("mean_ns", stats->mean);
	json_number("min_ns", stats->min);
	json_number("p90_ns", stats->p90);
	json_number("p99_ns", stats->p99);
	json_number("p999_ns", stats->p999);
	json_number("max_ns", stats->max);
	json_number("samples", (double)stats->n);
}

void stats_heading(const char *what)
{
	printf("%s, ns\n%9s %10s %10s %10s %10s %10s %10s %10s %9s\n", what, "bytes", "median",
	       "mean", "min", "p90", "p99", "p99.9", "max", "samples");
}

void stats_line(unsigned long size, const struct stats *stats)
{
	printf("%9lu %10.0f %10.0f %10.0f %10.0f %10.0f %10.0f %10.0f %9zu\n", size,
	       stats->median, stats->mean, stats->min, stats->p90, stats->p99, stats->p999,
	       stats->max, stats->n);
}

double clock_cost(void)
{
	double cost[COST_SAMPLES];
	uint64_t before = clock_ns();
	uint64_t now;
	size_t i;

	for (i = 0; i < COST_SAMPLES; i++) {
		now = clock_ns();
		cost[i] = (double)(now - before);
		before = now;
	}
	return stats_median(cost, COST_SAMPLES);
}
