/* SPDX-License-Identifier: GPL-2.0-only */
/* What the tests of Tempest share. */
#ifndef TEMPEST_TEST_H
#define TEMPEST_TEST_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/control.h"
#include "tempest.h"
#include "tempest/check.h"

/**
 * struct test - a test; each runs in a process of its own
 * @name: for people, and to choose it
 * @run: calls CHECK()
 * @control: CONTROL_*: without this mechanism the test fails; 0 if it needs none
 * @dies: signal that is to end it, or 0
 * @noticed: signal by which it may fail without the mechanism, where no CHECK() gets to see that
 */
struct test {
	const char *name;
	void (*run)(void);
	unsigned int control;
	int dies;
	int noticed;
};

/* Of each program; the last one has no name. */
extern const struct test tests[];

/* A page of the segment. */
static inline char *page_at(int number)
{
	return TPPI_SEG_BASE + (size_t)number * TPPI_PAGE_SIZE;
}

/* Map a page or fail. */
void map_page(void *page, TPPI_PageMode mode, TPPI_BlkAccTag tag);

/* Page of Writable blocks but for its last one: the application view remains closed. */
void map_mixed(void *page);

/* Wait until it is so, with patience; fails the test otherwise. */
void wait_for(bool (*condition)(void *), void *argument, const char *what);
void wait_past(const atomic_ulong *counter, unsigned long before, const char *what);

/* Begin again with this in the environment, unless it is there. */
void require_setting(const char *name, const char *value);

/* Run it in a child, which ends with us. */
pid_t begin_child(void (*run)(void *), void *argument);

/* The same, and wait for its end. Returns its status as wait(2) does. */
int in_child(void (*run)(void *), void *argument);

#ifdef BY_TEMPEST_CC
/* hamlyn-tempest-cc checks them: selftests/tempest-cc. */
static inline uint32_t checked_load(const volatile void *from)
{
	return *(const volatile uint32_t *)from;
}

static inline void checked_store(volatile void *to, uint32_t value)
{
	*(volatile uint32_t *)to = value;
}

static inline void checked_add(volatile void *to, uint32_t value)
{
	*(volatile uint32_t *)to += value;
}
#else
/* checked.S */
uint32_t checked_load(const volatile void *from);
uint64_t checked_load_8(const volatile void *from);
void checked_store(volatile void *to, uint32_t value);
void checked_add(volatile void *to, uint32_t value);
#endif

#endif /* TEMPEST_TEST_H */
