/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HAMLYN_PERF_LOAD_H
#define HAMLYN_PERF_LOAD_H

#include "base/perf.h"

/* CPU time, in clock ticks, of the CPUs that are looked at. */
struct load {
	uint64_t busy;		/* anybody's, the hypervisor's thefts included */
	uint64_t all;
	uint64_t own;		/* this process and its children */
};

void load_look(struct load *load, const struct options *options);
void load_look_all(struct load *load);	/* for processes on all CPUs that we may use */
double load_foreign(const struct load *before, const struct load *after);

#endif /* HAMLYN_PERF_LOAD_H */
