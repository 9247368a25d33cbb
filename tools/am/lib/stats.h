/* SPDX-License-Identifier: GPL-2.0-only */
/* Time, and figures made of many times. */
#ifndef HAMLYN_AM_STATS_H
#define HAMLYN_AM_STATS_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* From the clock that nobody slews. */
static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * 1000000000ULL + (uint64_t)now.tv_nsec;
}

/* What one clock_ns() adds to an interval, in ns. */
double clock_cost(void);

struct stats {
	double min, median, p90, p99, p999, max, mean;
	size_t n;
};

double stats_median(double *values, size_t n);	/* sorts them */
void stats_of(double *values, size_t n, struct stats *stats);	/* sorts them */

/* The same, as members of a JSON object: median_ns, mean_ns, ... */
void stats_json(const struct stats *stats);

/* The table of round-trip times: a heading, and a line for each size. */
void stats_heading(const char *what);
void stats_line(unsigned long size, const struct stats *stats);

#endif /* HAMLYN_AM_STATS_H */
