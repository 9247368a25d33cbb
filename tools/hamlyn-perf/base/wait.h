/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Bounded spinning. Every wait of a test looks like this:
 *
 *	struct wait wait = WAIT("message");
 *	while (!there())
 *		if (!wait_more(&wait))
 *			return -1;
 */
#ifndef HAMLYN_PERF_WAIT_H
#define HAMLYN_PERF_WAIT_H

#include <stdbool.h>
#include <stdint.h>

struct wait {
	const char *what;	/* NULL: the caller tells that it waited in vain */
	uint64_t deadline;
	uint32_t polls;
};

#define WAIT(what)	((struct wait){ (what), 0, 0 })

extern uint32_t wait_mask;

void wait_setup(int cpus, uint32_t timeout_s);
bool wait_slow(struct wait *wait);

static inline bool wait_more(struct wait *wait)
{
	if (__builtin_expect(++wait->polls & wait_mask, 1))
		return true;
	return wait_slow(wait);
}

#endif /* HAMLYN_PERF_WAIT_H */
