// SPDX-License-Identifier: GPL-2.0-only
/* Results as tables for people. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "report/lines.h"
#include "base/machine.h"
#include "report/report.h"

static const char *const titles[TEST_KINDS] = {
	[TEST_LAT] = "one-way latency",
	[TEST_BW] = "bandwidth",
	[TEST_RATE] = "messages per second",
	[TEST_LOAD] = "one-way latency at half of the rate",
};

/* ---- figures ------------------------------------------------------------ */

void report_size(char *text, size_t room, size_t size)
{
	if (size >= 1U << 20 && !(size % (1U << 20)))
		snprintf(text, room, "%zu MiB", size >> 20);
	else if (size >= 1U << 10 && !(size % (1U << 10)))
		snprintf(text, room, "%zu KiB", size >> 10);
	else
		snprintf(text, room, "%zu B", size);
}

void report_ns(char *text, size_t room, double ns)
{
	if (ns < 9999.5)
		snprintf(text, room, "%.0f ns", ns);
	else if (ns < 9999.5e3)
		snprintf(text, room, "%.1f us", ns / 1e3);
	else
		snprintf(text, room, "%.1f ms", ns / 1e6);
}

static bool is_latency(enum test_kind test)
{
	return test == TEST_LAT || test == TEST_LOAD;
}

static void format_value(char *text, size_t room, enum test_kind test, double value)
{
	if (is_latency(test))
		report_ns(text, room, value);
	else if (test == TEST_RATE)
		snprintf(text, room, "%.3g M/s", value / 1e6);
	else if (value < 9.95e6)
		snprintf(text, room, "%.1f MB/s", value / 1e6);
	else if (value < 1e9)
		snprintf(text, room, "%.0f MB/s", value / 1e6);
	else
		snprintf(text, room, "%.2f GB/s", value / 1e9);
}

/* Two or three digits, whatever its size. */
static void format_factor(char *text, size_t room, double factor)
{
	if (factor < 0.095)
		snprintf(text, room, "%.2g", factor);
	else
		snprintf(text, room, "%.*f", factor < 9.95 ? 2 : factor < 99.5 ? 1 : 0, factor);
}

/* ---- tables ------------------------------------------------------------- */

void report_machine(void)
{
	struct machine machine;

	machine_look(&machine);
	printf("%s, %ld core%s%s, %s\n", machine.cpu, machine.cores,
	       machine.cores == 1 ? "" : "s",
	       machine.virtual ? " of a virtual machine" : "", machine.kernel);
}

/* Only if it is worth a line. */
void report_foreign(double foreign)
{
	if (foreign >= 0.02)
		printf("others (kernel threads included) used %.0f %% of these CPUs "
		       "meanwhile%s\n", foreign * 100,
		       foreign < 0.1 ? "" : ": what polls looks slower than it is");
}

/* --huge is a wish: has it come true? */
static void print_areas(const struct plan *plan)
{
	char size[24];

	if (!plan->area_page)
		return;
	report_size(size, sizeof(size), plan->area_page);
	printf("Hamlyn's areas are of pages of %s%s\n", size,
	       plan->area_page > 4096 ? "" : ": no huge ones here (/dev/shm mounted with huge=?)");
}

static void print_machine(const struct plan *plan, const struct options *options)
{
	static const char *const touch[] = { "every line", "both ends", "nothing" };
	uint32_t i;

	report_machine();
	if (plan->pairs > 1)
		printf("%u pairs of processes at the same time on %s", plan->pairs,
		       options->cpus_given ? "two CPUs" : "all CPUs");
	else
		printf("processes on CPUs %d and %d", options->cpus[0], options->cpus[1]);
	printf("; median of %u repetition%s; receiver reads %s of a message\n", plan->reps,
	       plan->reps == 1 ? "" : "s", touch[options->touch]);
	report_foreign(plan->foreign);
	print_areas(plan);
	if (options->ncpus < 2)
		printf("only one CPU: every message costs two context switches\n");
	for (i = 0; i < plan->nleft_out; i++)
		printf("left out: %s: %s\n", plan->left_out[i].system->name,
		       plan->left_out[i].why);
}

/* Of latencies, what is unknown is 0. */
static void print_ns(double ns)
{
	char text[24] = "-";

	if (ns > 0)
		report_ns(text, sizeof(text), ns);
	printf(" %9s", text);
}

static void print_cost(const struct plan *plan, const struct result *result)
{
	print_ns(result->median.cpu_ns);
	if (plan->engines)
		print_ns(result->median.poller_ns);
}

static void print_ratio(const struct result *result)
{
	char ratio[24], lowest[24], highest[24];

	if (result->ratio <= 0)
		return;
	format_factor(ratio, sizeof(ratio), result->ratio);
	format_factor(lowest, sizeof(lowest), result->ratio_lowest);
	format_factor(highest, sizeof(highest), result->ratio_highest);
	printf("  x%s (%s-%s)", ratio, lowest, highest);
}

static void print_list_head(const struct plan *plan, enum test_kind test)
{
	printf("\n%-20s %8s", titles[test], "size");
	if (is_latency(test))
		printf(" %9s %9s %9s %9s %9s %9s %9s %9s", "p50", "p90", "p99", "p99.9",
		       "p99.99", "max", "2-way p50", "2-way p99");
	else
		printf(" %12s %25s", "median", "repetitions");
	if (test == TEST_RATE && plan->pairs > 1)
		printf(" %25s", "each pair");
	printf(" %9s%s\n", "CPU/msg", plan->engines ? "  engines" : "");
}

static void print_span(enum test_kind test, double lowest, double highest)
{
	char from[24], to[24], text[56];

	format_value(from, sizeof(from), test, lowest);
	format_value(to, sizeof(to), test, highest);
	snprintf(text, sizeof(text), "%s - %s", from, to);
	printf(" %25s", text);
}

static void print_each(const struct plan *plan, const struct result *result)
{
	double lowest = result->median.each[0], highest = lowest;
	uint32_t i;

	for (i = 1; i < plan->pairs; i++) {
		if (result->median.each[i] < lowest)
			lowest = result->median.each[i];
		if (result->median.each[i] > highest)
			highest = result->median.each[i];
	}
	print_span(TEST_RATE, lowest, highest);
}

static void print_list_row(const struct plan *plan, const struct point *point,
			   const struct system *system, const struct result *result)
{
	const struct measure *m = &result->median;
	char size[24], value[24];

	report_size(size, sizeof(size), point->size);
	format_value(value, sizeof(value), point->test, m->value);
	printf("%-20s %8s", system->name, size);
	if (is_latency(point->test)) {
		print_ns(m->value);
		print_ns(m->p90);
		print_ns(m->p99);
		print_ns(m->p999);
		print_ns(m->p9999);
		print_ns(m->max);
		print_ns(point->test == TEST_LAT ? 2 * m->value : 0);
		print_ns(point->test == TEST_LAT ? 2 * m->p99 : 0);
	} else {
		printf(" %12s", value);
		print_span(point->test, result->lowest, result->highest);
	}
	if (point->test == TEST_RATE && plan->pairs > 1)
		print_each(plan, result);
	print_cost(plan, result);
	print_ratio(result);
	putchar('\n');
}

static void print_list(const struct plan *plan)
{
	uint32_t i, s;

	for (i = 0; i < plan->npoints; i++) {
		if (!i || plan->points[i].test != plan->points[i - 1].test)
			print_list_head(plan, plan->points[i].test);
		for (s = 0; s < plan->nsystems; s++)
			if (plan->results[s][i].valid)
				print_list_row(plan, &plan->points[i], plan->systems[s],
					       &plan->results[s][i]);
	}
}

/* ---- comparing: a row per system, a column per size --------------------- */

#define NAME_WIDTH	20
#define TABLE_WIDTH	132

struct grid {
	const char *title;
	int width;		/* of a cell */
	void (*cell)(char *text, size_t room, enum test_kind test,
		     const struct result *result);
};

static void cell_value(char *text, size_t room, enum test_kind test,
		       const struct result *result)
{
	format_value(text, room, test, result->median.value);
}

static void cell_p99(char *text, size_t room, enum test_kind test,
		     const struct result *result)
{
	if (is_latency(test) && result->median.p99 > 0)
		report_ns(text, room, result->median.p99);
}

static void cell_offered(char *text, size_t room, enum test_kind test,
			 const struct result *result)
{
	if (test == TEST_LOAD)
		format_value(text, room, TEST_RATE, result->median.offered);
}

static void cell_ratio(char *text, size_t room, enum test_kind test,
		       const struct result *result)
{
	char ratio[16], lowest[16], highest[16];

	(void)test;
	if (result->ratio <= 0)
		return;
	format_factor(ratio, sizeof(ratio), result->ratio);
	format_factor(lowest, sizeof(lowest), result->ratio_lowest);
	format_factor(highest, sizeof(highest), result->ratio_highest);
	snprintf(text, room, "%s (%s-%s)", ratio, lowest, highest);
}

static void cell_cost(char *text, size_t room, enum test_kind test,
		      const struct result *result)
{
	double ns = result->median.cpu_ns + result->median.poller_ns;

	(void)test;
	if (result->median.cpu_ns > 0)
		report_ns(text, room, ns);
}

static const struct grid grids[] = {
	{ "median", 11, cell_value },
	{ "times the limit: median (lowest-highest) of the repetitions", 18, cell_ratio },
	{ "99 of 100 took no longer", 11, cell_p99 },
	{ "CPU time per message, of both processes and the NIC's engines", 11, cell_cost },
	{ "messages per second that were offered", 11, cell_offered },
};

/* Has the system anything to say about the test? */
static bool takes_part(const struct plan *plan, uint32_t system, enum test_kind test)
{
	uint32_t i;

	for (i = 0; i < plan->npoints; i++)
		if (plan->points[i].test == test && plan->results[system][i].valid)
			return true;
	return false;
}

static void print_grid_row(const struct plan *plan, const struct grid *grid, uint32_t system,
			   uint32_t from, uint32_t to)
{
	const struct result *result;
	char text[64];
	uint32_t i;

	printf("%-*s", NAME_WIDTH, plan->systems[system]->name);
	for (i = from; i < to; i++) {
		result = &plan->results[system][i];
		snprintf(text, sizeof(text), "-");
		if (result->valid)
			grid->cell(text, sizeof(text), plan->points[i].test, result);
		printf(" %*s", grid->width, text);
	}
	putchar('\n');
}

/* As many columns as fit, and the rest below. */
static void print_grid(const struct plan *plan, const struct grid *grid, uint32_t from,
		       uint32_t to)
{
	uint32_t columns = (uint32_t)((TABLE_WIDTH - NAME_WIDTH) / (grid->width + 1));
	enum test_kind test = plan->points[from].test;
	char size[24];
	uint32_t last, i;

	printf("\n%s, %s\n", titles[test], grid->title);
	for (; from < to; from = last) {
		last = to - from > columns ? from + columns : to;
		printf("%-*s", NAME_WIDTH, "");
		for (i = from; i < last; i++) {
			report_size(size, sizeof(size), plan->points[i].size);
			printf(" %*s", grid->width, size);
		}
		putchar('\n');
		for (i = 0; i < plan->nsystems; i++)
			if (takes_part(plan, i, test))
				print_grid_row(plan, grid, i, from, last);
	}
}

static bool has_grid(enum test_kind test, const struct grid *grid)
{
	if (grid->cell == cell_p99)
		return is_latency(test);
	/* At other rates, with a sender that does nothing but wait */
	if (grid->cell == cell_ratio || grid->cell == cell_cost)
		return test != TEST_LOAD;
	return grid->cell != cell_offered || test == TEST_LOAD;
}

/* Points of one test follow each other. */
static void print_grids(const struct plan *plan, uint32_t from, uint32_t to)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(grids); i++)
		if (has_grid(plan->points[from].test, &grids[i]))
			print_grid(plan, &grids[i], from, to);
}

static void print_legend(const struct plan *plan)
{
	uint32_t s;

	putchar('\n');
	for (s = 0; s < plan->nsystems; s++)
		printf("%-19s %s\n", plan->systems[s]->name, plan->systems[s]->what);
}

static void print_table(const struct plan *plan, const struct options *options, bool grid)
{
	uint32_t from, to;

	print_machine(plan, options);
	if (!grid) {
		print_list(plan);
		return;
	}
	for (from = 0; from < plan->npoints; from = to) {
		for (to = from; to < plan->npoints; to++)
			if (plan->points[to].test != plan->points[from].test)
				break;
		print_grids(plan, from, to);
	}
	print_legend(plan);
}

static int save(const struct plan *plan, const struct options *options)
{
	FILE *file = fopen(options->save, "w");

	if (!file)
		return fail("cannot write %s: %s", options->save, strerror(errno));
	lines_json(file, plan, options);
	if (fclose(file))
		return fail("cannot write %s: %s", options->save, strerror(errno));
	return 0;
}

int report_ready(const struct options *options)
{
	FILE *file = options->save ? fopen(options->save, "a") : NULL;

	if (options->save && !file)
		return fail("cannot write %s: %s", options->save, strerror(errno));
	if (file)
		fclose(file);
	return 0;
}

int report_print(const struct plan *plan, const struct options *options, bool grid)
{
	switch (options->format) {
	case FORMAT_TABLE:
		print_table(plan, options, grid);
		break;
	case FORMAT_JSON:
		lines_json(stdout, plan, options);
		break;
	case FORMAT_CSV:
		lines_csv(stdout, plan);
		break;
	}
	return options->save ? save(plan, options) : 0;
}
