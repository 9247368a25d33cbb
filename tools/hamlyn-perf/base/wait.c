// SPDX-License-Identifier: GPL-2.0-only
/* The slow side of bounded spinning: every so many polls we get here. */
#include <sched.h>

#include "base/clock.h"
#include "base/perf.h"
#include "base/wait.h"

/*
 * On a busy machine a yield lasts as long as the other program likes, so a
 * partner that copies a large message is worth waiting for.
 */
#define SPIN_NS			20000
#define MIN_POLLS		256	/* powers of two */
#define MAX_POLLS		32768
#define CALIBRATION		256
#define LOADS_PER_POLL		8	/* about what h_recv() does */

uint32_t wait_mask = MIN_POLLS - 1;
static uint64_t patience_ns = 30 * NSEC_PER_SEC;

/* What something like a poll takes here; an emulated CPU needs far longer. */
static double poll_ns(void)
{
	volatile uint32_t word = 0;
	uint64_t start, ns, best = UINT64_MAX;
	uint32_t try, i;

	for (try = 0; try < 3; try++) {
		start = clock_ns();
		for (i = 0; i < CALIBRATION * LOADS_PER_POLL; i++)
			if (word)
				break;
		ns = clock_ns() - start;
		if (ns < best)
			best = ns;
	}
	return (double)(best ? best : 1) / CALIBRATION;
}

/*
 * With one CPU the partner runs only when we do not: polling again before
 * yielding would cost a whole time slice per message.
 */
void wait_setup(int cpus, uint32_t timeout_s)
{
	uint32_t polls = MIN_POLLS;
	double ns = poll_ns();

	while (polls < MAX_POLLS && polls * ns < SPIN_NS)
		polls *= 2;
	wait_mask = cpus > 1 ? polls - 1 : 0;
	patience_ns = timeout_s * NSEC_PER_SEC;
}

/* False when waiting longer makes no sense; the reason has been told. */
bool wait_slow(struct wait *wait)
{
	uint64_t now = clock_ns();

	if (!wait->deadline)
		wait->deadline = now + patience_ns;
	if (fail_happened())
		return false;
	if (now > wait->deadline) {
		if (wait->what)
			fail("no %s within %llu s (--timeout sets the limit)", wait->what,
			     (unsigned long long)(patience_ns / NSEC_PER_SEC));
		return false;
	}
	sched_yield();
	return true;
}
