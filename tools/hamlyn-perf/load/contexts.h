/* SPDX-License-Identifier: GPL-2.0-only */
/* Contexts (open devices with all that belongs to them) that do nothing. */
#ifndef HAMLYN_PERF_CONTEXTS_H
#define HAMLYN_PERF_CONTEXTS_H

#include <hamlyn.h>

#include "base/perf.h"

struct contexts {
	struct h_dev **devs;
	uint32_t room;
	uint32_t count;
	char why[160];		/* there are no more, or "" */
};

int contexts_init(struct contexts *contexts, uint32_t room);
int contexts_open(struct contexts *contexts, const struct options *options, uint32_t count);
void contexts_close(struct contexts *contexts);

#endif /* HAMLYN_PERF_CONTEXTS_H */
