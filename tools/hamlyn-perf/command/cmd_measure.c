// SPDX-License-Identifier: GPL-2.0-only
/* lat, bw, rate, load: one test of Hamlyn. compare: all of them, on all systems. */
#include "measure/plan.h"
#include "report/plot.h"

#define KIB	(1U << 10)
#define MIB	(1U << 20)

static const size_t lat_sizes[] = {
	0, 8, 16, 64, 256, KIB, 4 * KIB, 64 * KIB, MIB, 4 * MIB,
};

static const size_t bw_sizes[] = {
	64, 256, KIB, 4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB,
};

static const size_t rate_sizes[] = { 16 };

static const size_t load_sizes[] = { 16 };

/* The fast mode word has 8 bytes: its rate needs a row. */
static const size_t compare_rate_sizes[] = { 8, 16 };

static const size_t quick_lat_sizes[] = { 8, 16, 4 * KIB };
static const size_t quick_bw_sizes[] = { 4 * KIB, 64 * KIB, MIB };

/* @names: what is measured unless the user says otherwise; NULL: everything. */
static int measure(const struct options *options, struct plan *plan,
		   const char *names, bool grid)
{
	int ret = options->systems ? plan_systems(plan, options, options->systems) :
				     plan_default_systems(plan, options, names);

	plan->thin = !options->nsizes;
	if (!ret)
		ret = report_ready(options);
	if (!ret && options->plot)
		ret = plot_ready(options->plot);
	if (!ret)
		ret = plan_run(plan, options);
	if (!ret)
		ret = report_print(plan, options, grid);
	if (!ret && options->plot)
		ret = plot_plan(plan, options->plot);
	return ret;
}

static void set_effort(struct plan *plan, const struct options *options, uint32_t reps,
		       uint32_t point_ms)
{
	plan->reps = options->reps ? options->reps : reps;
	plan->point_ms = options->point_ms ? options->point_ms : point_ms;
}

int cmd_lat(const struct options *options)
{
	static struct plan plan;

	set_effort(&plan, options, 5, 100);
	plan_sizes(&plan, TEST_LAT, options, lat_sizes, ARRAY_SIZE(lat_sizes));
	return measure(options, &plan, "hamlyn,fast,limit", false);
}

int cmd_bw(const struct options *options)
{
	static struct plan plan;

	set_effort(&plan, options, 5, 100);
	plan_sizes(&plan, TEST_BW, options, bw_sizes, ARRAY_SIZE(bw_sizes));
	return measure(options, &plan, "hamlyn,limit", false);
}

int cmd_rate(const struct options *options)
{
	static struct plan plan;

	set_effort(&plan, options, 5, 200);
	plan_sizes(&plan, TEST_RATE, options, rate_sizes, ARRAY_SIZE(rate_sizes));
	return measure(options, &plan, "hamlyn,limit", false);
}

int cmd_load(const struct options *options)
{
	static struct plan plan;

	set_effort(&plan, options, 5, 100);
	plan_sizes(&plan, TEST_LOAD, options, load_sizes, ARRAY_SIZE(load_sizes));
	return measure(options, &plan, "hamlyn,limit", false);
}

static void plan_quick(struct plan *plan, const struct options *options)
{
	set_effort(plan, options, 3, 15);
	plan_sizes(plan, TEST_LAT, options, quick_lat_sizes,
		   ARRAY_SIZE(quick_lat_sizes));
	plan_sizes(plan, TEST_BW, options, quick_bw_sizes, ARRAY_SIZE(quick_bw_sizes));
}

static void plan_full(struct plan *plan, const struct options *options)
{
	set_effort(plan, options, 7, 40);
	plan_sizes(plan, TEST_LAT, options, lat_sizes, ARRAY_SIZE(lat_sizes));
	plan_sizes(plan, TEST_BW, options, bw_sizes, ARRAY_SIZE(bw_sizes));
}

static const char quick_systems[] =
	"hamlyn,fast,unix-stream,unix-seqpacket,pipe,shm,limit";

int cmd_compare(const struct options *options)
{
	static const struct options rates;	/* --sizes is for neither rate nor load */
	static struct plan plan;

	if (options->quick)
		plan_quick(&plan, options);
	else
		plan_full(&plan, options);
	plan_sizes(&plan, TEST_RATE, &rates, compare_rate_sizes,
		   ARRAY_SIZE(compare_rate_sizes));
	plan_sizes(&plan, TEST_LOAD, &rates, load_sizes, ARRAY_SIZE(load_sizes));
	return measure(options, &plan, options->quick ? quick_systems : NULL, true);
}
