/* SPDX-License-Identifier: GPL-2.0-only */
/* A message to oneself beside a bare copy of as many bytes. */
#ifndef HAMLYN_PERF_BYTES_H
#define HAMLYN_PERF_BYTES_H

#include "base/perf.h"

/* Whether --sizes are for it. */
int bytes_check(const struct options *options);

/* Pins this process. */
int bytes_curve(const struct options *options);

#endif /* HAMLYN_PERF_BYTES_H */
