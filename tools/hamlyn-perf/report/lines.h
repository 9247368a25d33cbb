/* SPDX-License-Identifier: GPL-2.0-only */
/* Results as lines for programs. */
#ifndef HAMLYN_PERF_LINES_H
#define HAMLYN_PERF_LINES_H

#include <stdio.h>

#include "measure/plan.h"

/* What a test is called in them, and its value. */
extern const char *const lines_test[TEST_KINDS];
extern const char *const lines_key[TEST_KINDS];

void lines_json(FILE *file, const struct plan *plan, const struct options *options);
void lines_csv(FILE *file, const struct plan *plan);

#endif /* HAMLYN_PERF_LINES_H */
