// SPDX-License-Identifier: GPL-2.0-only
/* CPU time of processes and of the kernel device's engine threads. */
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "measure/cost.h"
#include "load/endpoint.h"
#include "load/kthread.h"

static struct kthreads engines;

uint64_t cost_process_ns(void)
{
	struct timespec used;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	return (uint64_t)used.tv_sec * NSEC_PER_SEC + (uint64_t)used.tv_nsec;
}

uint64_t cost_engines_ns(void)
{
	return (uint64_t)(kthreads_cpu(&engines) * (double)NSEC_PER_SEC);
}

uint32_t cost_find_engines(const struct options *options)
{
	const char *name = device_named(options);

	engines.count = 0;
	if (!name && !access("/dev/hamlyn0", R_OK | W_OK))
		name = "/dev/hamlyn0";
	if (name && name[0] == '/')
		kthreads_find(&engines, name);
	return engines.count;
}

/* The engines serve all pairs: one process of them all looks at their clocks. */
static bool looks_at_engines(const struct chan *chan)
{
	return chan->system->engines && engines.count && !chan->side->id && !chan->side->pair;
}

void cost_begin(struct cost *cost, const struct chan *chan)
{
	cost->engines = looks_at_engines(chan) ? cost_engines_ns() : 0;
	cost->cpu = cost_process_ns();
}

int cost_end(const struct cost *cost, struct chan *chan, uint64_t messages,
	     struct measure *measure)
{
	uint64_t mine = cost_process_ns() - cost->cpu;
	uint64_t now = looks_at_engines(chan) ? cost_engines_ns() : 0;
	uint64_t polled = now > cost->engines ? now - cost->engines : 0;
	uint64_t theirs;

	if (pair_swap(chan->side, &mine, &theirs, sizeof(mine)) < 0)
		return -1;
	measure->cpu_ns = (double)(mine + theirs) / (double)messages;
	measure->poller_ns = (double)polled / (double)messages;
	return 0;
}
