// SPDX-License-Identifier: GPL-2.0-only
/*
 * Timing something short. Clocks tick too rarely for one message, so a sample is
 * a batch of them; a repetition has a median of its samples, and the median of
 * these counts. Between two repetitions there is a pause: whether the NIC's
 * thread polls is decided anew after it, and lasts.
 */
#include <stdlib.h>

#include "base/clock.h"
#include "load/probe.h"
#include "base/stats.h"

#define BATCH		16
#define WARM_UP		4	/* batches */
#define MIN_SAMPLES	16	/* of a repetition */
#define MAX_SAMPLES	1000
#define DEFAULT_MS	30	/* of a repetition */
#define PAUSE_NS	(5 * NSEC_PER_MSEC)

static int batch(probe_fn fn, void *arg, double cost, double *ns)
{
	uint64_t start = clock_ns();
	uint32_t i;
	double all;

	for (i = 0; i < BATCH; i++)
		if (fn(arg) < 0)
			return -1;
	all = (double)(clock_ns() - start) - cost;
	*ns = all > 0 ? all / BATCH : 0;
	return 0;
}

/* What is not over in twice the time ends early: a busy machine has its limits. */
static int repetition(probe_fn fn, void *arg, uint32_t ms, double *samples, uint32_t *n)
{
	uint64_t deadline = clock_ns() + 2 * ms * NSEC_PER_MSEC;
	double cost = clock_cost();
	uint32_t wanted, i;
	double warm[WARM_UP];
	double each;

	for (i = 0; i < WARM_UP; i++)
		if (batch(fn, arg, cost, &warm[i]) < 0)
			return -1;
	each = stats_median(warm, WARM_UP) * BATCH + 1;
	each = (double)(ms * NSEC_PER_MSEC) / each;
	wanted = each > MAX_SAMPLES ? MAX_SAMPLES : (uint32_t)each;
	if (wanted < MIN_SAMPLES)
		wanted = MIN_SAMPLES;
	for (i = 0; i < wanted && (i < MIN_SAMPLES || clock_ns() < deadline); i++)
		if (batch(fn, arg, cost, &samples[i]) < 0)
			return -1;
	*n = i;
	return 0;
}

struct trial {
	probe_fn fn;
	double *samples;
	uint32_t n;
	double medians[PERF_MAX_REPS];
};

static int run(struct trial *trials, uint32_t count, const struct options *options, void *arg)
{
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint32_t ms = options->point_ms ? options->point_ms : DEFAULT_MS;
	uint32_t reps = options->reps ? options->reps : PROBE_REPS;
	struct trial *t;
	uint32_t rep, n;

	for (rep = 0; rep < reps; rep++)
		for (t = trials; t < trials + count; t++) {
			nanosleep(&pause, NULL);
			if (repetition(t->fn, arg, ms, t->samples + t->n, &n) < 0)
				return -1;
			t->medians[rep] = stats_median(t->samples + t->n, n);
			t->n += n;
		}
	return 0;
}

static void evaluate(struct probe *probe, struct trial *t, const struct options *options)
{
	stats_sort(t->samples, t->n);
	probe->median = stats_median(t->medians, options->reps ? options->reps : PROBE_REPS);
	probe->p99 = stats_quantile(t->samples, t->n, 0.99);
	probe->n = (uint64_t)t->n * BATCH;
}

int probe_two(struct probe *a, struct probe *b, const struct options *options, probe_fn fn_a,
	      probe_fn fn_b, void *arg)
{
	struct trial trials[2] = { { .fn = fn_a }, { .fn = fn_b } };
	size_t room = (size_t)PERF_MAX_REPS * MAX_SAMPLES;
	uint32_t count = fn_b ? 2 : 1;
	int ret;

	trials[0].samples = calloc(room * count, sizeof(double));
	if (!trials[0].samples)
		return fail("out of memory");
	trials[1].samples = trials[0].samples + room;
	ret = run(trials, count, options, arg);
	if (!ret)
		evaluate(a, &trials[0], options);
	if (!ret && fn_b)
		evaluate(b, &trials[1], options);
	free(trials[0].samples);
	return ret;
}

int probe_run(struct probe *probe, const struct options *options, probe_fn fn, void *arg)
{
	return probe_two(probe, NULL, options, fn, NULL, arg);
}
