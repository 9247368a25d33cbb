/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef HAMLYN_PERF_TAIL_H
#define HAMLYN_PERF_TAIL_H

#include "system/chan.h"

/* Sorts the @n times of a test, at least one, and says how they are spread. */
void tail_evaluate(double *times, uint64_t n, struct measure *measure);

#endif /* HAMLYN_PERF_TAIL_H */
