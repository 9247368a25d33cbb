// SPDX-License-Identifier: GPL-2.0-only
/*
 * What others did on our CPUs meanwhile. Two processes that poll suffer from
 * it far more than two that sleep: a reader of the figures must be told.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* CPU sets */
#endif
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "load/load.h"
#include "load/pair.h"

static uint64_t ticks(const struct rusage *usage)
{
	double seconds = (double)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) +
			 (double)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1e6;

	return (uint64_t)(seconds * (double)sysconf(_SC_CLK_TCK));
}

static uint64_t own_ticks(void)
{
	struct rusage self = { 0 }, children = { 0 };

	getrusage(RUSAGE_SELF, &self);
	getrusage(RUSAGE_CHILDREN, &children);
	return ticks(&self) + ticks(&children);
}

static bool is_used(const struct options *options, int cpu)
{
	uint32_t pairs = options->pairs ? options->pairs : 1;
	uint32_t i;

	for (i = 0; i < 2 * pairs; i++)
		if (pair_cpu(options, i / 2, (int)(i % 2)) == cpu)
			return true;
	return false;
}

/* Whoever has pinned this process since does not change what is compared. */
static bool is_allowed(int cpu)
{
	static cpu_set_t set;

	if (!CPU_COUNT(&set) && sched_getaffinity(0, sizeof(set), &set) < 0)
		return false;
	return cpu >= 0 && cpu < CPU_SETSIZE && CPU_ISSET(cpu, &set);
}

/* @options: NULL for all that we may use */
static void add_line(struct load *load, const char *line, const struct options *options)
{
	uint64_t v[8] = { 0 };
	uint64_t all = 0;
	int cpu, i;

	/* user nice system idle iowait irq softirq steal */
	if (sscanf(line, "cpu%d %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
		   " %" SCNu64 " %" SCNu64 " %" SCNu64, &cpu, &v[0], &v[1], &v[2], &v[3],
		   &v[4], &v[5], &v[6], &v[7]) < 5)
		return;
	if (options ? !is_used(options, cpu) : !is_allowed(cpu))
		return;
	for (i = 0; i < 8; i++)
		all += v[i];
	load->all += all;
	load->busy += all - v[3] - v[4];
}

void load_look(struct load *load, const struct options *options)
{
	FILE *file = fopen("/proc/stat", "r");
	char line[512];

	*load = (struct load){ .own = own_ticks() };
	if (!file)
		return;
	while (fgets(line, sizeof(line), file))
		add_line(load, line, options);
	fclose(file);
}

void load_look_all(struct load *load)
{
	load_look(load, NULL);
}

/* Share of the CPUs' time that others used, 0 to 1; 0 if that is not known. */
double load_foreign(const struct load *before, const struct load *after)
{
	uint64_t busy = after->busy - before->busy;
	uint64_t own = after->own - before->own;
	uint64_t all = after->all - before->all;

	/* The system's figures are known to go backwards by some. */
	if (!all || (int64_t)busy < 0 || busy <= own)
		return 0;
	return (double)(busy - own) / (double)all;
}
