/* SPDX-License-Identifier: GPL-2.0-only */
/* Many processes that send to one, or to one each, as fast as they may. */
#ifndef HAMLYN_PERF_FAN_H
#define HAMLYN_PERF_FAN_H

#include "load/crew.h"

struct fan_result {
	double rate;		/* messages a second, all together */
	double least;		/* that of the slowest sender */
	double most;
	/* A message: */
	double cpu_ns;		/* CPU time of all the processes, */
	double engine_ns;	/* and of the engines, if cost_find_engines() found any */
	double kicks;
	uint64_t n;
};

/* Repetitions, by --reps; each takes --time ms. */
uint32_t fan_reps(const struct options *options);
/* @pairs: each sender has a receiver of its own. */
int fan_once(struct fan_result *result, const struct options *options, uint32_t senders,
	     bool pairs);
/* Of each member; but the messages of all of them. */
void fan_median(struct fan_result *median, const struct fan_result *results, uint32_t n);

uint32_t fan_cpus(void);

#endif /* HAMLYN_PERF_FAN_H */
