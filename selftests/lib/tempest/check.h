/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of Tempest and those of Stache share. */
#ifndef TEMPEST_CHECK_H
#define TEMPEST_CHECK_H

#include <stdint.h>

/* $HAMLYN_TEST_SCALE, at least 1. */
int scale(void);

/* Nanoseconds. */
int64_t now_ns(void);

/* Ends the test: what was expected is not so. */
__attribute__((noreturn, format(printf, 3, 4)))
void failed(const char *file, int line, const char *format, ...);

#define CHECK(condition)	\
	do { if (!(condition)) failed(__FILE__, __LINE__, "%s", #condition); } while (0)

#define CHECK_EQUAL(a, b)	\
	do { \
		long long a_ = (long long)(a), b_ = (long long)(b); \
		if (a_ != b_) \
			failed(__FILE__, __LINE__, "%s is %lld, not %s, %lld", #a, a_, #b, b_); \
	} while (0)

#endif /* TEMPEST_CHECK_H */
