// SPDX-License-Identifier: GPL-2.0-only
/* Results as a table for people, or as JSON lines or CSV for programs. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "machine.h"
#include "plan.h"
#include "report.h"

struct test_words {
	const char *name;
	const char *title;
	const char *key;	/* of the value in JSON */
};

static const struct test_words words[TEST_KINDS] = {
	[TEST_LAT] = { "lat", "one-way latency", "median_ns" },
	[TEST_BW] = { "bw", "bandwidth", "bytes_per_s" },
	[TEST_RATE] = { "rate", "messages per second", "msgs_per_s" },
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

static void format_value(char *text, size_t room, enum test_kind test, double value)
{
	if (test == TEST_LAT)
		report_ns(text, room, value);
	else if (test == TEST_RATE)
		snprintf(text, room, "%.3g M/s", value / 1e6);
	else if (value < 1e9)
		snprintf(text, room, "%.0f MB/s", value / 1e6);
	else
		snprintf(text, room, "%.2f GB/s", value / 1e9);
}

static void format_ratio(char *text, size_t room, double ratio)
{
	if (ratio <= 0)
		snprintf(text, room, "-");
	else if (ratio < 0.095)
		snprintf(text, room, "x%.3f", ratio);
	else if (ratio < 99.5)
		snprintf(text, room, "x%.2f", ratio);
	else
		snprintf(text, room, "x%.0f", ratio);
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

static void print_machine(const struct plan *plan, const struct options *options)
{
	static const char *const touch[] = { "every line", "both ends", "nothing" };

	report_machine();
	printf("processes on CPUs %d and %d; median of %u repetition%s; "
	       "receiver reads %s of a message\n",
	       options->cpus[0], options->cpus[1], plan->reps,
	       plan->reps == 1 ? "" : "s", touch[options->touch]);
	report_foreign(plan->foreign);
	if (options->ncpus < 2)
		printf("only one CPU: every message costs two context switches\n");
}

static void print_list(const struct plan *plan)
{
	char size[24], value[24], p99[24], min[24];
	const struct point *point;
	const struct result *result;
	uint32_t i, s;

	for (i = 0; i < plan->npoints; i++) {
		point = &plan->points[i];
		if (!i || point->test != point[-1].test)
			printf("\n%-20s %10s %12s %10s %10s\n", words[point->test].title,
			       "size", "median", point->test ? "" : "p99",
			       point->test ? "" : "min");
		for (s = 0; s < plan->nsystems; s++) {
			result = &plan->results[s][i];
			if (!result->valid)
				continue;
			report_size(size, sizeof(size), point->size);
			format_value(value, sizeof(value), point->test, result->value);
			report_ns(p99, sizeof(p99), result->p99);
			report_ns(min, sizeof(min), result->min);
			printf("%-20s %10s %12s %10s %10s\n", plan->systems[s]->name,
			       size, value, point->test ? "" : p99,
			       point->test ? "" : min);
		}
	}
}

static void print_cell(const struct result *result, enum test_kind test)
{
	char value[24] = "-", ratio[24] = "";

	if (result->valid) {
		format_value(value, sizeof(value), test, result->value);
		format_ratio(ratio, sizeof(ratio), result->ratio);
	}
	printf(" %9s %-6s", value, ratio);
}

/* A column per system that has something to say about the test. */
static bool takes_part(const struct plan *plan, uint32_t system, enum test_kind test)
{
	uint32_t i;

	for (i = 0; i < plan->npoints; i++)
		if (plan->points[i].test == test && plan->results[system][i].valid)
			return true;
	return false;
}

static void print_grid(const struct plan *plan, enum test_kind test)
{
	char size[24];
	uint32_t i, s;

	printf("\n%s, and how many times the limit that is\n%8s", words[test].title, "");
	for (s = 0; s < plan->nsystems; s++)
		if (takes_part(plan, s, test))
			printf(" %16s", plan->systems[s]->name);
	putchar('\n');
	for (i = 0; i < plan->npoints; i++) {
		if (plan->points[i].test != test)
			continue;
		report_size(size, sizeof(size), plan->points[i].size);
		printf("%8s", size);
		for (s = 0; s < plan->nsystems; s++)
			if (takes_part(plan, s, test))
				print_cell(&plan->results[s][i], test);
		putchar('\n');
	}
}

static void print_legend(const struct plan *plan)
{
	uint32_t s;

	putchar('\n');
	for (s = 0; s < plan->nsystems; s++)
		printf("%-15s %s\n", plan->systems[s]->name, plan->systems[s]->what);
}

static bool has_test(const struct plan *plan, enum test_kind test)
{
	uint32_t i;

	for (i = 0; i < plan->npoints; i++)
		if (plan->points[i].test == test)
			return true;
	return false;
}

static void print_table(const struct plan *plan, const struct options *options, bool grid)
{
	uint32_t test;

	print_machine(plan, options);
	if (!grid) {
		print_list(plan);
		return;
	}
	for (test = 0; test < TEST_KINDS; test++)
		if (has_test(plan, test))
			print_grid(plan, test);
	print_legend(plan);
}

/* ---- for programs ------------------------------------------------------- */

static void print_json_text(FILE *file, const char *text)
{
	putc('"', file);
	for (; *text; text++) {
		if (*text == '"' || *text == '\\')
			fprintf(file, "\\%c", *text);
		else if ((unsigned char)*text < 0x20)
			fprintf(file, "\\u%04x", (unsigned int)(unsigned char)*text);
		else
			putc(*text, file);
	}
	putc('"', file);
}

void report_json_machine(FILE *file, const struct options *options, double foreign)
{
	struct machine machine;

	machine_look(&machine);
	fprintf(file, "{\"system\":\"machine\",\"test\":\"machine\",\"size\":0,\"cpu\":");
	print_json_text(file, machine.cpu);
	fprintf(file, ",\"kernel\":");
	print_json_text(file, machine.kernel);
	fprintf(file, ",\"cores\":%ld,\"virtual\":%s,\"cpus\":[%d,%d],"
	       "\"foreign_load\":%.3f}\n", machine.cores,
	       machine.virtual ? "true" : "false", options->cpus[0], options->cpus[1],
	       foreign);
}

static void print_json_result(FILE *file, const struct system *system,
			      const struct point *point, const struct result *result)
{
	fprintf(file, "{\"system\":\"%s\",\"test\":\"%s\",\"size\":%zu,\"%s\":%.1f",
	       system->name, words[point->test].name, point->size,
	       words[point->test].key, result->value);
	if (point->test == TEST_LAT)
		fprintf(file, ",\"p99_ns\":%.1f,\"min_ns\":%.1f", result->p99, result->min);
	fprintf(file, ",\"samples\":%llu,\"ratio_to_limit\":", (unsigned long long)result->n);
	if (result->ratio > 0)
		fprintf(file, "%.4f}\n", result->ratio);
	else
		fprintf(file, "null}\n");
}

static void print_csv_result(FILE *file, const struct system *system,
			     const struct point *point, const struct result *result)
{
	fprintf(file, "%s,%s,%zu,%s,%.1f,", system->name, words[point->test].name, point->size,
	       words[point->test].key, result->value);
	if (point->test == TEST_LAT)
		fprintf(file, "%.1f,%.1f,", result->p99, result->min);
	else
		fprintf(file, ",,");
	if (result->ratio > 0)
		fprintf(file, "%.4f", result->ratio);
	putc('\n', file);
}

static void print_lines(FILE *file, const struct plan *plan, enum perf_format format)
{
	uint32_t i, s;

	for (i = 0; i < plan->npoints; i++)
		for (s = 0; s < plan->nsystems; s++) {
			if (!plan->results[s][i].valid)
				continue;
			if (format == FORMAT_JSON)
				print_json_result(file, plan->systems[s],
						  &plan->points[i],
						  &plan->results[s][i]);
			else
				print_csv_result(file, plan->systems[s],
						 &plan->points[i],
						 &plan->results[s][i]);
		}
}

static void print_json(FILE *file, const struct plan *plan, const struct options *options)
{
	report_json_machine(file, options, plan->foreign);
	print_lines(file, plan, FORMAT_JSON);
}

static int save(const struct plan *plan, const struct options *options)
{
	FILE *file = fopen(options->save, "w");

	if (!file)
		return fail("cannot write %s: %s", options->save, strerror(errno));
	print_json(file, plan, options);
	if (fclose(file))
		return fail("cannot write %s: %s", options->save, strerror(errno));
	return 0;
}

int report_print(const struct plan *plan, const struct options *options, bool grid)
{
	switch (options->format) {
	case FORMAT_TABLE:
		print_table(plan, options, grid);
		break;
	case FORMAT_JSON:
		print_json(stdout, plan, options);
		break;
	case FORMAT_CSV:
		printf("system,test,size,unit,value,p99_ns,min_ns,ratio_to_limit\n");
		print_lines(stdout, plan, options->format);
		break;
	}
	return options->save ? save(plan, options) : 0;
}
