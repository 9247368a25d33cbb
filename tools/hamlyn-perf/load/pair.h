/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two processes that measure together. Side 0 measures latency and sends
 * streams; side 1 answers and receives them.
 */
#ifndef HAMLYN_PERF_PAIR_H
#define HAMLYN_PERF_PAIR_H

#include <stddef.h>

#include "base/perf.h"

struct side {
	int id;			/* 0 or 1 */
	int to_peer;		/* pipes: for setting up only, never while measuring */
	int from_peer;
	const struct options *options;
	void *shared;		/* memory that both sides and their parent see */
	uint32_t pair;		/* which of @pairs, from 0 on */
	uint32_t pairs;		/* at work at the same time */
	uint32_t *gate;		/* how often somebody of all pairs came to it, */
	uint32_t rounds;	/* and how often we did */
};

typedef int (*pair_fn)(struct side *side, void *arg);

int pair_run(const struct options *options, pair_fn fn, void *arg, void *shared);
int pairs_run(const struct options *options, uint32_t pairs, pair_fn fn, void *arg,
	      void *shared, uint64_t limit_s);
/* Where side @id of a pair runs. */
int pair_cpu(const struct options *options, uint32_t pair, int id);
/* Goes on when all sides of all pairs have come here. */
int pair_gate(struct side *side);
int pair_swap(struct side *side, const void *mine, void *theirs, size_t length);
int pair_pin(int cpu);

#endif /* HAMLYN_PERF_PAIR_H */
