/* SPDX-License-Identifier: GPL-2.0-only */
/* Timing something short that one thread does over and over. */
#ifndef HAMLYN_PERF_PROBE_H
#define HAMLYN_PERF_PROBE_H

#include "base/perf.h"

#define PROBE_REPS	5	/* unless --reps says otherwise */

struct probe {
	double median;		/* ns a call: median over repetitions of their medians */
	double p99;		/* of all batches */
	uint64_t n;		/* calls */
};

typedef int (*probe_fn)(void *arg);

int probe_run(struct probe *probe, const struct options *options, probe_fn fn, void *arg);
/* Two things beside each other: their repetitions take turns. */
int probe_two(struct probe *a, struct probe *b, const struct options *options, probe_fn fn_a,
	      probe_fn fn_b, void *arg);

#endif /* HAMLYN_PERF_PROBE_H */
