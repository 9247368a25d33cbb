/* SPDX-License-Identifier: GPL-2.0-only */
/* Time, from the clock that nobody slews. */
#ifndef HAMLYN_PERF_CLOCK_H
#define HAMLYN_PERF_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NSEC_PER_SEC	1000000000ULL
#define NSEC_PER_MSEC	1000000ULL

static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC_RAW, &now);
	return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

double clock_cost(void);

#endif /* HAMLYN_PERF_CLOCK_H */
