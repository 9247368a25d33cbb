/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the unit tests of the NIC core share.
 *
 * Each test program includes the .c files of the core that it is about, so
 * that it reaches their static functions, and stands in for the rest. The
 * home is the user-space one with a segment at address 0: references are
 * plain addresses.
 */
#ifndef HML_UNIT_H
#define HML_UNIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "guard.h"
#include "link.h"
#include "nic.h"
#include "notify.h"
#include "rx.h"
#include "sched.h"
#include "tx.h"

#ifndef ARRAY_SIZE
#define ARRAY_SIZE(a)	(sizeof(a) / sizeof((a)[0]))
#endif

/* ---- the clock: it stands still unless a test moves it ------------------- */

#define UNIT_MS		1000000ull
#define UNIT_SECOND	1000000000ull

static u64 unit_now_ns = 1000 * UNIT_SECOND;

static inline u64 unit_clock(const struct hml_port *port)
{
	(void)port;
	return unit_now_ns;
}

#define hml_port_now_ns(port)	unit_clock(port)

/* ---- memory -------------------------------------------------------------- */

/* What must not change is filled with it; what must not be read, with the other. */
#define UNIT_GUARD	0xa5
#define UNIT_SECRET	0x5e

static inline u64 unit_ref(const void *p)
{
	return (uintptr_t)p;
}

/* Memory that starts as guards, to a page's alignment. */
static inline void *unit_alloc(size_t size)
{
	void *p = aligned_alloc(4096, (size + 4095) & ~(size_t)4095);

	assert_non_null(p);
	return memset(p, UNIT_GUARD, (size + 4095) & ~(size_t)4095);
}

/* Memory of exactly that size: a sanitizer sees the first byte beyond. */
static inline void *unit_zalloc(size_t size)
{
	void *p = calloc(1, size ? size : 1);

	assert_non_null(p);
	return p;
}

static inline bool unit_all(const void *p, u8 byte, size_t n)
{
	const u8 *b = p;
	size_t i;

	for (i = 0; i < n; i++)
		if (b[i] != byte)
			return false;
	return true;
}

/* ---- random numbers ------------------------------------------------------ */

static inline u64 unit_random(u64 *state)
{
	u64 z = *state += 0x9e3779b97f4a7c15ULL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

static inline u64 unit_below(u64 *state, u64 n)
{
	return unit_random(state) % n;
}

static inline void unit_random_fill(u64 *state, void *p, size_t n)
{
	u8 *b = p;

	while (n--)
		*b++ = unit_random(state);
}

/* $HAMLYN_TEST_SEED or a fixed number; the test tells it when it fails. */
static inline u64 unit_seed(void)
{
	const char *s = getenv("HAMLYN_TEST_SEED");

	return s ? strtoull(s, NULL, 0) : 1996;
}

/* ---- a notification queue ------------------------------------------------ */

struct unit_nq {
	struct hml_nq nq;
	struct hamlyn_nq_ring *ring;
	struct hamlyn_nq_control *control;
	struct hamlyn_nq_entry *entries;
};

/* @start: value that all counters have already reached. */
static inline void unit_nq_init(struct unit_nq *q, u32 entries, u32 start)
{
	memset(&q->nq, 0, sizeof(q->nq));
	q->ring = unit_zalloc(sizeof(*q->ring));
	q->control = unit_zalloc(sizeof(*q->control));
	q->entries = unit_zalloc(entries * sizeof(*q->entries));
	q->ring->entries = entries;
	q->control->consumer = start;
	q->nq.cursor = start;
	q->nq.consumer = start;
	q->nq.mask = entries - 1;
	q->nq.ring = unit_ref(q->ring);
	q->nq.entries = unit_ref(q->entries);
	q->nq.control = unit_ref(q->control);
}

static inline void unit_nq_free(struct unit_nq *q)
{
	free(q->ring);
	free(q->control);
	free(q->entries);
}

#endif /* HML_UNIT_H */
