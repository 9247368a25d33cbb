/* SPDX-License-Identifier: GPL-2.0-only */
/* A system whose headers were not there when this program was compiled. */
#ifndef HAMLYN_PERF_ABSENT_H
#define HAMLYN_PERF_ABSENT_H

#include "system/chan.h"

#define SYSTEM_ABSENT(symbol, called, text, package)				\
static const char *symbol##_missing(const struct options *options)		\
{										\
	(void)options;								\
	return "this program was compiled without " package;			\
}										\
										\
const struct system symbol = {							\
	.name = called,								\
	.what = text,								\
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,			\
	.missing = symbol##_missing,						\
}

#endif /* HAMLYN_PERF_ABSENT_H */
