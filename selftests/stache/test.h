/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of Stache share. Each runs on several nodes at once. */
#ifndef STACHE_TEST_H
#define STACHE_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"
#include "stache.h"

/**
 * struct test - a test; each runs in processes of its own
 * @name: for people, and to choose it
 * @run: calls CHECK()
 * @controls: CONTROL_*: without any one of these mechanisms the test fails
 * @dies: signal that is to end it, or 0
 */
struct test {
	const char *name;
	void (*run)(void);
	unsigned int controls;
	int dies;
};

/* Of each program; the last one has no name. */
extern const struct test tests[];

#define ME	TPPI_self_address
#define NODES	TPPI_num_nodes

/* $HAMLYN_TEST_SCALE, at least 1. */
int scale(void);

/* $HAMLYN_TEST_ROUNDS, or this; more if a mechanism is left out, so that it is noticed. */
long rounds(long otherwise);

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
			failed(__FILE__, __LINE__, "node %u: %s is %lld, not %s, %lld", \
			       ME, #a, a_, #b, b_); \
	} while (0)

/* Next of a row of numbers that looks like chance, and begins with a seed. */
static inline uint32_t chance(uint32_t *seed)
{
	*seed = *seed * 1664525 + 1013904223;
	return *seed >> 8;
}

/* Run it by so many threads, with their numbers. */
void in_threads(unsigned int threads, void (*run)(unsigned int thread));

/* Memory that one node has made, told to all others: all call it, one has @memory. */
void *tell_all(void *memory);

#endif /* STACHE_TEST_H */
