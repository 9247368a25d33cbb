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

#include "measure/cost.h"
#include "load/crew.h"
#include "load/endpoint.h"
#include "load/load.h"
#include "measure/plan.h"
#include "base/stats.h"

static int (*const tests[TEST_KINDS])(struct chan *, uint32_t, struct measure *) = {
	[TEST_LAT] = test_lat,
	[TEST_BW] = test_bw,
	[TEST_RATE] = test_rate,
	[TEST_LOAD] = test_load,
};

struct turn {
	const struct plan *plan;
	const struct system *system;
	void *stages[PERF_MAX_PAIRS];
	struct measure *measures;	/* shared: [pair][point] */
};

static struct measure *turn_at(const struct turn *turn, uint32_t pair, uint32_t point)
{
	return &turn->measures[pair * turn->plan->npoints + point];
}

static size_t turn_bytes(const struct plan *plan)
{
	return sizeof(struct measure) * plan->pairs * plan->npoints;
}

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
			*turn_at(turn, chan->side->pair, i) = measure;
	}
	return turn->system->settle ? turn->system->settle(chan) : 0;
}

static int turn_side(struct side *side, void *arg)
{
	const struct turn *turn = arg;
	struct chan *chan = turn->system->open(side, turn->stages[side->pair]);
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

/* Half of the usual sizes show how a system that is slow to start behaves. */
static bool is_thin(const struct point *point)
{
	static const size_t sizes[] = { 8, 64, 4096, 65536, 1U << 20, 4U << 20 };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++)
		if (point->size == sizes[i])
			return true;
	return point->test == TEST_RATE;
}

static int run_external(struct turn *turn, const struct options *options)
{
	const struct plan *plan = turn->plan;
	const struct point *point;
	uint32_t i;

	for (i = 0; i < plan->npoints; i++) {
		point = &plan->points[i];
		if (system_takes(turn->system, point->test, point->size) &&
		    (!plan->thin || is_thin(point)) &&
		    turn->system->external(options, point, turn_at(turn, 0, i)) < 0)
			return -1;
	}
	return 0;
}

static void unmake_stages(struct turn *turn, uint32_t n)
{
	while (n-- && turn->system->unmake)
		turn->system->unmake(turn->stages[n]);
}

static int make_stages(struct turn *turn, const struct options *options)
{
	uint32_t i;

	for (i = 0; i < turn->plan->pairs; i++) {
		turn->stages[i] = NULL;
		if (!turn->system->make)
			continue;
		turn->stages[i] = turn->system->make(options);
		if (!turn->stages[i]) {
			unmake_stages(turn, i);
			return -1;
		}
	}
	return 0;
}

static int run_turn(struct turn *turn, const struct options *options)
{
	const struct plan *plan = turn->plan;
	uint64_t limit_s = options->timeout_s * 4ULL +
			   (uint64_t)plan->npoints * plan->point_ms * 4 / 1000;
	int ret;

	memset(turn->measures, 0, turn_bytes(plan));
	if (turn->system->external)
		return run_external(turn, options);
	if (make_stages(turn, options) < 0)
		return -1;
	ret = pairs_run(options, plan->pairs, turn_side, turn, turn->measures, limit_s);
	unmake_stages(turn, plan->pairs);
	return ret;
}

/*
 * What all pairs did together: from when the first began to when the last was
 * through. That some are through earlier only makes it look slower.
 */
static struct measure sum_pairs(const struct turn *turn, uint32_t point)
{
	const struct measure *one = turn_at(turn, 0, point);
	struct measure sum = *one;
	double cpu_ns = 0;
	uint32_t i;

	if (turn->plan->pairs < 2)
		return sum;
	sum.n = 0;
	for (i = 0; i < turn->plan->pairs; i++) {
		one = turn_at(turn, i, point);
		sum.n += one->n;
		sum.each[i] = one->value;
		cpu_ns += one->cpu_ns * (double)one->n;
		if (one->begin < sum.begin)
			sum.begin = one->begin;
		if (one->end > sum.end)
			sum.end = one->end;
	}
	if (!sum.n || sum.end <= sum.begin)
		return (struct measure){ 0 };
	sum.value = (double)sum.n * 1e9 / (double)(sum.end - sum.begin);
	sum.cpu_ns = cpu_ns / (double)sum.n;
	sum.poller_ns *= (double)turn_at(turn, 0, point)->n / (double)sum.n;
	return sum;
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

/*
 * A member of struct measure that is a double: its median over repetitions.
 * With @known 0 stands for what is not known: not in one, not at all.
 */
static double median_of(const struct heap *heap, uint32_t system, uint32_t point,
			size_t member, bool known)
{
	double values[PERF_MAX_REPS];
	const struct measure *measure;
	uint32_t rep, n = 0;

	for (rep = 0; rep < heap->plan->reps; rep++) {
		measure = heap_at(heap, rep, system, point);
		if (!measure->n)
			continue;
		memcpy(&values[n], (const char *)measure + member, sizeof(values[0]));
		if (known && values[n] <= 0)
			return 0;
		n++;
	}
	return stats_median(values, n);
}

static void find_extremes(struct result *result, const struct measure *measure)
{
	if (!result->reps || measure->min < result->median.min)
		result->median.min = measure->min;
	if (measure->max > result->median.max)
		result->median.max = measure->max;
	if (!result->reps || measure->value < result->lowest)
		result->lowest = measure->value;
	if (measure->value > result->highest)
		result->highest = measure->value;
	result->median.n += measure->n;
	result->reps++;
}

static void evaluate(struct plan *plan, const struct heap *heap, uint32_t system,
		     uint32_t point)
{
	static const size_t members[] = {
		offsetof(struct measure, value), offsetof(struct measure, p90),
		offsetof(struct measure, p99), offsetof(struct measure, p999),
		offsetof(struct measure, p9999), offsetof(struct measure, cpu_ns),
		offsetof(struct measure, offered),
		offsetof(struct measure, poller_ns),
	};
	struct result *result = &plan->results[system][point];
	const struct measure *measure;
	double median;
	uint32_t i;

	memset(result, 0, sizeof(*result));
	for (i = 0; i < plan->reps; i++) {
		measure = heap_at(heap, i, system, point);
		if (measure->n)
			find_extremes(result, measure);
	}
	result->valid = result->reps != 0;
	for (i = 0; i < ARRAY_SIZE(members); i++) {
		median = median_of(heap, system, point, members[i],
				   members[i] != offsetof(struct measure, poller_ns));
		memcpy((char *)&result->median + members[i], &median, sizeof(median));
	}
	for (i = 0; plan->pairs > 1 && i < plan->pairs; i++)
		result->median.each[i] = median_of(heap, system, point,
						   offsetof(struct measure, each) +
						   i * sizeof(double), true);
}

/*
 * Each repetition has a limit of its own, measured within the same seconds:
 * the ratios within repetitions differ less than the times do.
 */
static void add_ratio(struct plan *plan, const struct heap *heap, uint32_t limit,
		      uint32_t system, uint32_t point)
{
	struct result *result = &plan->results[system][point];
	const struct measure *one, *base;
	double ratios[PERF_MAX_REPS];
	uint32_t rep, n = 0;

	for (rep = 0; rep < plan->reps; rep++) {
		one = heap_at(heap, rep, system, point);
		base = heap_at(heap, rep, limit, point);
		if (one->n && base->n && base->value > 0)
			ratios[n++] = one->value / base->value;
	}
	if (!n)
		return;
	result->ratio = stats_median(ratios, n);
	result->ratio_lowest = ratios[0];
	result->ratio_highest = ratios[n - 1];
}

static void add_ratios(struct plan *plan, const struct heap *heap, uint32_t point)
{
	uint32_t limit, i;

	for (limit = 0; limit < plan->nsystems; limit++)
		if (plan->systems[limit] == &sys_limit)
			break;
	for (i = 0; limit < plan->nsystems && i < plan->nsystems; i++)
		add_ratio(plan, heap, limit, i, point);
}

/* Programs that are slow to start are in some repetitions, far apart. */
static bool takes_turn(const struct plan *plan, const struct system *system, uint32_t rep)
{
	uint32_t wanted = PLAN_EXTERNAL_REPS;
	uint32_t i;

	if (!system->external || plan->reps <= wanted)
		return true;
	for (i = 0; i < wanted; i++)
		if (rep == i * (plan->reps - 1) / (wanted - 1))
			return true;
	return false;
}

static void leave_out(struct plan *plan, const struct options *options,
		      const struct system *system, const char *why)
{
	struct left_out *left_out = &plan->left_out[plan->nleft_out++];

	left_out->system = system;
	snprintf(left_out->why, sizeof(left_out->why), "%s", why);
	if (!options->quiet)
		fprintf(stderr, "left out: %s: %s\n", system->name, why);
}

/*
 * Somebody else's program that fails does not cost us the results of others,
 * unless it was asked for by name. What it measured before stays.
 */
static int drop(struct plan *plan, const struct options *options, uint32_t index)
{
	const struct system *system = plan->systems[index];
	size_t prefix = strlen(system->name) + strlen(": ");
	const char *why = fail_text();

	if (!plan->lenient || !system->external)
		return -1;
	leave_out(plan, options, system, strlen(why) > prefix ? why + prefix : why);
	fail_forget();
	plan->dropped[index] = true;
	return 0;
}

static int run_all(struct plan *plan, const struct options *options,
		   struct heap *heap, struct turn *turn)
{
	uint32_t rep, i, point;

	for (rep = 0; rep < plan->reps; rep++)
		for (i = 0; i < plan->nsystems; i++) {
			turn->system = plan->systems[i];
			show_progress(plan, options, rep, turn->system);
			if (plan->dropped[i] || !takes_turn(plan, turn->system, rep))
				continue;
			fail_prefix(turn->system->name);
			if (run_turn(turn, options) < 0 && drop(plan, options, i) < 0)
				return -1;
			fail_prefix(NULL);
			for (point = 0; point < plan->npoints; point++)
				*heap_at(heap, rep, i, point) = sum_pairs(turn, point);
		}
	return 0;
}

static void evaluate_all(struct plan *plan, const struct heap *heap)
{
	uint32_t i, point;

	for (point = 0; point < plan->npoints; point++) {
		for (i = 0; i < plan->nsystems; i++)
			evaluate(plan, heap, i, point);
		add_ratios(plan, heap, point);
	}
}

static int measure_all(struct plan *plan, const struct options *options)
{
	struct turn turn = { .plan = plan };
	struct heap heap = { .plan = plan };
	struct load before, after;
	int ret = -1;

	heap.measures = calloc((size_t)plan->reps * plan->nsystems * plan->npoints,
			       sizeof(*heap.measures));
	turn.measures = crew_shared_new(turn_bytes(plan));
	if (!heap.measures)
		fail("out of memory");
	load_look(&before, options);
	if (heap.measures && turn.measures)
		ret = run_all(plan, options, &heap, &turn);
	load_look(&after, options);
	plan->foreign = load_foreign(&before, &after);
	end_progress(options);
	if (!ret)
		evaluate_all(plan, &heap);
	crew_shared_free(turn.measures, turn_bytes(plan));
	free(heap.measures);
	return ret;
}

static void size_buffers(const struct plan *plan)
{
	size_t room = 0, need;
	uint32_t i;

	for (i = 0; i < plan->npoints; i++) {
		need = chan_need(plan->points[i].test, plan->points[i].size);
		if (need > room)
			room = need;
	}
	chan_set_room(room);
}

static bool uses_areas(const struct plan *plan)
{
	uint32_t i;

	for (i = 0; i < plan->nsystems; i++)
		if (plan->systems[i]->engines)
			return true;
	return false;
}

/* Huge pages are a wish. What has it come to? */
static int look_at_pages(struct plan *plan, const struct options *options)
{
	struct h_area *area;
	struct h_dev *dev;
	int ret;

	if (!options->huge || !uses_areas(plan))
		return 0;
	if (endpoint_device(&dev, options) < 0)
		return -1;
	ret = endpoint_area(dev, options, chan_room(), &area);
	if (!ret) {
		/* Only pages that have been used are mapped. */
		memset(h_area_addr(area), 0, h_area_length(area));
		plan->area_page = h_area_page_size(area);
	}
	h_close(dev);
	return ret;
}

static bool takes_any(const struct plan *plan)
{
	uint32_t i, s;

	for (s = 0; s < plan->nsystems; s++)
		for (i = 0; i < plan->npoints; i++)
			if (system_takes(plan->systems[s], plan->points[i].test,
					 plan->points[i].size))
				return true;
	return false;
}

int plan_run(struct plan *plan, const struct options *options)
{
	struct options mine = *options;

	if (!takes_any(plan))
		return fail("none of these systems takes a message of such a size");
	plan->pairs = options->pairs ? options->pairs : 1;
	plan->engines = cost_find_engines(options);
	size_buffers(plan);
	/* Four areas of a pair, and what belongs to them. */
	mine.device = endpoint_name(options, plan->pairs * (4ULL * chan_room() + (1U << 20)));
	if (look_at_pages(plan, &mine) < 0)
		return -1;
	return measure_all(plan, &mine);
}

/* ---- what to measure ---------------------------------------------------- */

static int add_system(struct plan *plan, const struct system *system)
{
	uint32_t i;

	for (i = 0; i < plan->nsystems; i++)
		if (plan->systems[i] == system)
			return fail_usage("system %s is named twice", system->name);
	plan->systems[plan->nsystems++] = system;
	return 0;
}

/* Programs of somebody else's know less than we do. */
static const char *why_not(const struct system *system, const struct options *options)
{
	if (system->external && options->pairs > 1)
		return "it is a program that knows no pairs";
	if (system->external && options->corrupt)
		return "it is a program of its own: --corrupt does not reach it";
	return system_missing(system, options);
}

static int add_if_there(struct plan *plan, const struct options *options,
			const struct system *system)
{
	const char *why = why_not(system, options);

	if (!why)
		return add_system(plan, system);
	leave_out(plan, options, system, why);
	return 0;
}

static int add_named(struct plan *plan, const struct options *options,
		     const struct system *system)
{
	const char *why = why_not(system, options);

	return why ? fail("%s cannot be measured here: %s", system->name, why) :
	       add_system(plan, system);
}

typedef int (*add_fn)(struct plan *plan, const struct options *options,
		      const struct system *system);

static int add_names(struct plan *plan, const struct options *options, const char *names,
		     add_fn add)
{
	const struct system *system;
	size_t length;

	for (;; names += length + 1) {
		length = strcspn(names, ",");
		system = system_find(names, length);
		if (!system)
			return systems_known(names);
		if (add(plan, options, system) < 0)
			return -1;
		if (!names[length])
			return 0;
	}
}

int plan_systems(struct plan *plan, const struct options *options, const char *names)
{
	return add_names(plan, options, names, add_named);
}

int plan_default_systems(struct plan *plan, const struct options *options,
			 const char *names)
{
	size_t i;

	plan->lenient = true;
	if (names)
		return add_names(plan, options, names, add_if_there);
	for (i = 0; i < systems_count; i++)
		if (add_if_there(plan, options, systems[i]) < 0)
			return -1;
	return 0;
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
