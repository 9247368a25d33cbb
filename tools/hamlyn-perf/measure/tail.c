// SPDX-License-Identifier: GPL-2.0-only
/* The percentiles of times. */
#include "base/stats.h"
#include "measure/tail.h"

/* 0, which stands for not known, if too few times are beyond it to tell. */
static double tail(const double *times, uint64_t n, double q)
{
	return (double)n * (1 - q) < 0.999 ? 0 : stats_quantile(times, n, q);
}

void tail_evaluate(double *times, uint64_t n, struct measure *measure)
{
	stats_sort(times, n);
	measure->value = stats_quantile(times, n, 0.5);
	measure->p90 = tail(times, n, 0.9);
	measure->p99 = tail(times, n, 0.99);
	measure->p999 = tail(times, n, 0.999);
	measure->p9999 = tail(times, n, 0.9999);
	measure->min = times[0];
	measure->max = times[n - 1];
	measure->n = n;
}
