// SPDX-License-Identifier: GPL-2.0-only
/*
 * Running a plan. All systems are measured once, then all of them again, and
 * so on: whatever the machine does meanwhile (another load, another clock
 * speed) meets all of them alike. Each turn has processes of its own, so that
 * lucky placement of one pair in memory does not decide the outcome.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "crew.h"
#include "load.h"
#include "plan.h"
#include "stats.h"

static int (*const tests[TEST_KINDS])(struct chan *, uint32_t, struct measure *) = {
	[TEST_LAT] = test_lat,
	[TEST_BW] = test_bw,
	[TEST_RATE] = test_rate,
};

struct turn {
	const struct plan *plan;
	const struct system *system;
	void *stage;
	struct measure *measures;	/* shared, one a point */
};

static int run_points(const struct turn *turn, struct chan *chan)
{
	const struct plan *plan = turn->plan;
	const struct point *point;
	struct measure measure;
	uint32_t i;

	for (i = 0; i < plan->npoints; i++) {
		point = &plan->points[i];
		if (!system_takes(turn->system, point->test, point->size))
			continue;
		memset(&measure, 0, sizeof(measure));
		if (chan_prepare(chan, point->test, point->size) < 0 ||
		    tests[point->test](chan, plan->point_ms, &measure) < 0)
			return -1;
		if (!chan->side->id)
			turn->measures[i] = measure;
	}
	return 0;
}

static int turn_side(struct side *side, void *arg)
{
	const struct turn *turn = arg;
	struct chan *chan = turn->system->open(side, turn->stage);
	char bye = 0;
	int ret;

	if (!chan)
		return -1;
	ret = run_points(turn, chan);
	/* Whoever closes first would take its slot from under the other. */
	if (!ret)
		ret = pair_swap(side, &bye, &bye, sizeof(bye));
	turn->system->close(chan);
	return ret;
}

static int run_turn(struct turn *turn, const struct options *options)
{
	int ret;

	memset(turn->measures, 0, sizeof(*turn->measures) * turn->plan->npoints);
	turn->stage = NULL;
	if (turn->system->make) {
		turn->stage = turn->system->make(options);
		if (!turn->stage)
			return -1;
	}
	ret = pair_run(options, turn_side, turn, turn->measures);
	if (turn->system->unmake)
		turn->system->unmake(turn->stage);
	return ret;
}

static void show_progress(const struct plan *plan, const struct options *options,
			  uint32_t rep, const struct system *system)
{
	if (options->quiet)
		return;
	if (isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[Krepetition %u of %u: %s", rep + 1,
			plan->reps, system->name);
	else if (system == plan->systems[0])
		fprintf(stderr, "repetition %u of %u: %s", rep + 1, plan->reps,
			system->name);
	else
		fprintf(stderr, ", %s", system->name);
	if (!isatty(STDERR_FILENO) && system == plan->systems[plan->nsystems - 1])
		fputc('\n', stderr);
}

static void end_progress(const struct options *options)
{
	if (!options->quiet && isatty(STDERR_FILENO))
		fprintf(stderr, "\r\033[K");
}

/* All repetitions of all systems' measures: [rep][system][point]. */
struct heap {
	const struct plan *plan;
	struct measure *measures;
};

static struct measure *heap_at(const struct heap *heap, uint32_t rep, uint32_t system,
			       uint32_t point)
{
	const struct plan *plan = heap->plan;

	return &heap->measures[(rep * plan->nsystems + system) * plan->npoints + point];
}

static void evaluate(struct plan *plan, const struct heap *heap, uint32_t system,
		     uint32_t point)
{
	struct result *result = &plan->results[system][point];
	double values[PERF_MAX_REPS], p99s[PERF_MAX_REPS];
	const struct measure *measure;
	uint32_t rep;

	memset(result, 0, sizeof(*result));
	for (rep = 0; rep < plan->reps; rep++) {
		measure = heap_at(heap, rep, system, point);
		values[rep] = measure->value;
		p99s[rep] = measure->p99;
		result->n += measure->n;
		if (!rep || measure->min < result->min)
			result->min = measure->min;
	}
	result->valid = result->n != 0;
	result->value = stats_median(values, plan->reps);
	result->p99 = stats_median(p99s, plan->reps);
}

static void add_ratios(struct plan *plan, uint32_t point)
{
	const struct result *limit = NULL;
	struct result *result;
	uint32_t i;

	for (i = 0; i < plan->nsystems; i++)
		if (plan->systems[i] == &sys_limit)
			limit = &plan->results[i][point];
	for (i = 0; limit && i < plan->nsystems; i++) {
		result = &plan->results[i][point];
		if (result->valid && limit->valid && limit->value > 0)
			result->ratio = result->value / limit->value;
	}
}

static int run_all(struct plan *plan, const struct options *options,
		   struct heap *heap, struct turn *turn)
{
	uint32_t rep, i;

	for (rep = 0; rep < plan->reps; rep++)
		for (i = 0; i < plan->nsystems; i++) {
			turn->system = plan->systems[i];
			show_progress(plan, options, rep, turn->system);
			fail_prefix(turn->system->name);
			if (run_turn(turn, options) < 0)
				return -1;
			memcpy(heap_at(heap, rep, i, 0), turn->measures,
			       plan->npoints * sizeof(*turn->measures));
		}
	return 0;
}

int plan_run(struct plan *plan, const struct options *options)
{
	size_t bytes = PLAN_MAX_POINTS * sizeof(struct measure);
	struct turn turn = { .plan = plan };
	struct heap heap = { .plan = plan };
	struct load before, after;
	uint32_t i, point;
	int ret = -1;

	heap.measures = calloc((size_t)plan->reps * plan->nsystems * plan->npoints,
			       sizeof(*heap.measures));
	turn.measures = crew_shared_new(bytes);
	if (!heap.measures)
		fail("out of memory");
	load_look(&before, options);
	if (heap.measures && turn.measures)
		ret = run_all(plan, options, &heap, &turn);
	load_look(&after, options);
	plan->foreign = load_foreign(&before, &after);
	end_progress(options);
	for (point = 0; !ret && point < plan->npoints; point++) {
		for (i = 0; i < plan->nsystems; i++)
			evaluate(plan, &heap, i, point);
		add_ratios(plan, point);
	}
	crew_shared_free(turn.measures, bytes);
	free(heap.measures);
	return ret;
}

static int add_system(struct plan *plan, const struct system *system)
{
	uint32_t i;

	for (i = 0; i < plan->nsystems; i++)
		if (plan->systems[i] == system)
			return fail("system %s is named twice", system->name);
	plan->systems[plan->nsystems++] = system;
	return 0;
}

static int unknown_system(const char *name, size_t length)
{
	char known[160] = "";
	size_t i;

	for (i = 0; i < systems_count; i++) {
		if (i)
			strncat(known, ", ", sizeof(known) - strlen(known) - 1);
		strncat(known, systems[i]->name, sizeof(known) - strlen(known) - 1);
	}
	return fail("no system is called \"%.*s\"; there are %s", (int)length, name,
		    known);
}

/* @names: separated by commas */
int plan_systems(struct plan *plan, const char *names)
{
	const struct system *system;
	size_t length;

	for (;; names += length + 1) {
		length = strcspn(names, ",");
		system = system_find(names, length);
		if (!system)
			return unknown_system(names, length);
		if (add_system(plan, system) < 0)
			return -1;
		if (!names[length])
			return 0;
	}
}

/* Points of one test: the sizes that the user gave, or else the given ones. */
void plan_sizes(struct plan *plan, enum test_kind test, const struct options *options,
		const size_t *sizes, uint32_t n)
{
	uint32_t i;

	if (options->nsizes) {
		sizes = options->sizes;
		n = options->nsizes;
	}
	for (i = 0; i < n && plan->npoints < PLAN_MAX_POINTS; i++)
		if (sizes[i] || test != TEST_BW)
			plan->points[plan->npoints++] =
				(struct point){ test, sizes[i] };
}
