/* SPDX-License-Identifier: GPL-2.0-only */
/* What more engines bring, and cost: a curve over the NICs that have so many. */
#ifndef HAMLYN_PERF_ENGINES_H
#define HAMLYN_PERF_ENGINES_H

#include "base/perf.h"

/* @asked: by its name. Otherwise one point is no curve, and left out. */
int engines_curve(const struct options *options, bool asked);

#endif /* HAMLYN_PERF_ENGINES_H */
