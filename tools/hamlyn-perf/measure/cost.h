/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What messages cost in CPU time: of the processes that exchange them, and of
 * the kernel device's engines, which poll on behalf of everybody.
 */
#ifndef HAMLYN_PERF_COST_H
#define HAMLYN_PERF_COST_H

#include "system/chan.h"

struct cost {
	uint64_t cpu;
	uint64_t engines;
};

/* In the parent: children inherit what it has found. Returns how many there are. */
uint32_t cost_find_engines(const struct options *options);

/* Nanoseconds so far: of this process; of the engines that have been found. */
uint64_t cost_process_ns(void);
uint64_t cost_engines_ns(void);

/* Around the messages that are timed; both sides call both. */
void cost_begin(struct cost *cost, const struct chan *chan);
int cost_end(const struct cost *cost, struct chan *chan, uint64_t messages,
	     struct measure *measure);

#endif /* HAMLYN_PERF_COST_H */
