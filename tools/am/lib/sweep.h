/* SPDX-License-Identifier: GPL-2.0-only */
/* Bandwidth over a range of sizes, and the size where half of its peak is reached. */
#ifndef HAMLYN_AM_SWEEP_H
#define HAMLYN_AM_SWEEP_H

#include "options.h"

struct sweep {
	const char *test;
	size_t n;
	unsigned long sizes[OPTIONS_LIST_MAX];
	double bytes_per_s[OPTIONS_LIST_MAX];
};

/* @sizes, or if there are none those from @least to @most, each @step times the last. */
void sweep_begin(struct sweep *sweep, const char *test, const struct option_list *sizes,
		 unsigned long least, unsigned long most, unsigned long step);

/* How many messages of a size: @bytes in all, within reasonable limits. */
unsigned long sweep_count(unsigned long bytes, unsigned long size);

/* Process 0: the heading, a line with what was measured, and the end. */
void sweep_heading(const char *what);
void sweep_result(struct sweep *sweep, size_t i, unsigned long messages, double bytes_per_s,
		  double ns_per_message);
void sweep_end(const struct sweep *sweep);

#endif /* HAMLYN_AM_SWEEP_H */
