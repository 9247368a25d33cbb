/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HAMLYN_PERF_STATS_H
#define HAMLYN_PERF_STATS_H

#include <stddef.h>

void stats_sort(double *values, size_t n);
double stats_quantile(const double *sorted, size_t n, double q);
double stats_median(double *values, size_t n);
/* Of the double at @offset of each of @n structures that are @stride bytes apart. */
double stats_median_at(const void *structures, size_t n, size_t stride, size_t offset);

#endif /* HAMLYN_PERF_STATS_H */
