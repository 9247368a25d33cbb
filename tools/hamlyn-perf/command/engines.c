// SPDX-License-Identifier: GPL-2.0-only
/*
 * What more engines bring, and cost. The number of its polling threads is a
 * property of a NIC: a point of this curve is a NIC that has so many. Several
 * processes send to one, which has the first CPU; whatever an engine does for
 * them is in its CPU time.
 */
#include <stdlib.h>

#include "measure/cost.h"
#include "command/engines.h"
#include "command/fan.h"
#include "load/nics.h"
#include "report/table.h"

#define MAX_POINTS	17	/* inline, and 1 to 16 threads */
#define DEFAULT_SENDERS	4

enum {
	COL_X,
	COL_DEVICE,
	COL_SENDERS,
	COL_RATE,
	COL_LEAST,
	COL_MOST,
	COL_RATIO,
	COL_EACH,
	COL_CPU,
	COL_ENGINE,
	COL_KICKS,
	COL_SAMPLES,
	COLS,
};

static const struct column columns[COLS] = {
	{ "x", "x", COLUMN_COUNT, 3 },
	{ "device", "device", COLUMN_TEXT, 14 },
	{ "senders", "senders", COLUMN_COUNT, 7 },
	{ "msgs_per_s", "messages", COLUMN_RATE, 12 },
	{ "least_msgs_per_s", "least", COLUMN_RATE, 12 },
	{ "most_msgs_per_s", "most", COLUMN_RATE, 12 },
	{ "ratio", "to first", COLUMN_RATIO, 8 },
	{ "ns_per_message", "a message", COLUMN_NS, 10 },
	{ "cpu_ns_per_message", "processes", COLUMN_NS, 10 },
	{ "engine_ns_per_message", "engines", COLUMN_NS, 10 },
	{ "kicks_per_message", "kicks", COLUMN_NUMBER, 6 },
	{ "samples", "samples", COLUMN_COUNT, 10 },
};

/* NICs by the number of their engines, and what came out. */
struct points {
	const struct options *options;
	struct nic nics[MAX_POINTS];
	struct fan_result results[MAX_POINTS][PERF_MAX_REPS];
	uint32_t count;
};

static bool has(const struct points *points, uint32_t x)
{
	return *points->nics[x].device;
}

static void add(struct points *points, const struct nic *nic)
{
	/* In inline mode it is the senders. */
	uint32_t x = nic->embedded || nic->mode == HAMLYN_ENGINE_INLINE ? 0 : nic->engines;

	if (x >= MAX_POINTS || has(points, x))
		return;
	points->nics[x] = *nic;
	points->count++;
}

static int find_nics(struct points *points)
{
	uint32_t number = 0;
	struct nic nic;

	if (nic_first(&nic, points->options) < 0)
		return -1;
	add(points, &nic);
	while (!nic.embedded && nic_next(&nic, &number))
		add(points, &nic);
	return 0;
}

static uint32_t senders(const struct options *options)
{
	return options->senders ? options->senders : DEFAULT_SENDERS;
}

static int measure(struct points *points, uint32_t x, uint32_t rep)
{
	struct options options = *points->options;

	options.device = points->nics[x].device;
	cost_find_engines(&options);
	return fan_once(&points->results[x][rep], &options, senders(&options), false);
}

/* In turn, so that what disturbs meets all alike. */
static int measure_all(struct points *points)
{
	uint32_t reps = fan_reps(points->options);
	uint32_t rep, x;

	for (rep = 0; rep < reps; rep++)
		for (x = 0; x < MAX_POINTS; x++)
			if (has(points, x) && measure(points, x, rep) < 0)
				return -1;
	return 0;
}

static void print_row(const struct table *table, const struct points *points, uint32_t x,
		      const struct fan_result *r, double first)
{
	const struct cell cells[COLS] = {
		CELL(x), CELL_TEXT(points->nics[x].device), CELL(senders(points->options)),
		CELL(r->rate), CELL(r->least), CELL(r->most), CELL(r->rate / first),
		CELL(1e9 / r->rate), CELL(r->cpu_ns), CELL(r->engine_ns), CELL(r->kicks),
		CELL(r->n),
	};

	table_row(table, "hamlyn", cells);
}

static void print(const struct points *points)
{
	const struct table table = {
		.options = points->options, .test = "scale-engines", .columns = columns,
		.ncolumns = COLS,
	};
	struct fan_result r;
	double first = 0;
	uint32_t x;

	table_names(&table);
	table_head(&table, "NICs with x engines (0: the senders do its work), several processes "
		   "send to one");
	for (x = 0; x < MAX_POINTS; x++) {
		if (!has(points, x))
			continue;
		fan_median(&r, points->results[x], fan_reps(points->options));
		if (first <= 0)
			first = r.rate;
		print_row(&table, points, x, &r, first);
	}
}

int engines_curve(const struct options *options, bool asked)
{
	struct points *points = calloc(1, sizeof(*points));
	int ret;

	if (!points)
		return fail("out of memory");
	points->options = options;
	ret = find_nics(points);
	if (!ret && (asked || points->count > 1)) {
		ret = measure_all(points);
		if (!ret)
			print(points);
	}
	free(points);
	return ret;
}
