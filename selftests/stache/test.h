/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of Stache share. Each runs on several nodes at once. */
#ifndef STACHE_TEST_H
#define STACHE_TEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control.h"
#include "stache.h"
#include "tempest/check.h"

/**
 * struct test - a test; each runs in processes of its own
 * @name: for people, and to choose it
 * @run: calls CHECK()
 * @controls: CONTROL_*: without any one of these mechanisms the test fails
 * @dies: words of the message that one of the nodes is to end with, or NULL
 */
struct test {
	const char *name;
	void (*run)(void);
	unsigned int controls;
	const char *dies;
};

/* Of each program; the last one has no name. */
extern const struct test tests[];

/* Its accesses race on purpose, which the thread sanitizer is not to tell. */
#define RACES	__attribute__((no_sanitize("thread")))

#define ME	TPPI_self_address
#define NODES	TPPI_num_nodes

/* $HAMLYN_TEST_ROUNDS, or this; more if a mechanism is left out, so that it is noticed. */
long rounds(long otherwise);

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
