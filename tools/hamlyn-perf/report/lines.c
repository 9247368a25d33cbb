// SPDX-License-Identifier: GPL-2.0-only
/* Results as JSON, an object a line (see schema/), or as CSV. */
#include <stdio.h>

#include "report/lines.h"
#include "base/machine.h"
#include "report/report.h"

const char *const lines_test[TEST_KINDS] = {
	[TEST_LAT] = "lat", [TEST_BW] = "bw", [TEST_RATE] = "rate",
	[TEST_LOAD] = "load",
};

const char *const lines_key[TEST_KINDS] = {
	[TEST_LAT] = "median_ns", [TEST_BW] = "bytes_per_s", [TEST_RATE] = "msgs_per_s",
	[TEST_LOAD] = "median_ns",
};

static void print_text(FILE *file, const char *text)
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
	print_text(file, machine.cpu);
	fprintf(file, ",\"kernel\":");
	print_text(file, machine.kernel);
	fprintf(file, ",\"cores\":%ld,\"virtual\":%s,\"cpus\":[%d,%d],"
		"\"foreign_load\":%.3f}\n", machine.cores,
		machine.virtual ? "true" : "false", options->cpus[0], options->cpus[1],
		foreign);
}

static void print_left_out(FILE *file, const struct left_out *left_out)
{
	fprintf(file, "{\"system\":\"%s\",\"test\":\"left-out\",\"size\":0,\"why\":",
		left_out->system->name);
	print_text(file, left_out->why);
	fprintf(file, "}\n");
}

/* A figure that is known, or null. */
static void print_figure(FILE *file, const char *key, double figure, int digits)
{
	if (figure > 0)
		fprintf(file, ",\"%s\":%.*f", key, digits, figure);
	else
		fprintf(file, ",\"%s\":null", key);
}

static void print_latencies(FILE *file, const struct measure *m)
{
	print_figure(file, "p90_ns", m->p90, 1);
	print_figure(file, "p99_ns", m->p99, 1);
	print_figure(file, "p999_ns", m->p999, 1);
	print_figure(file, "p9999_ns", m->p9999, 1);
	print_figure(file, "max_ns", m->max, 1);
	print_figure(file, "min_ns", m->min, 1);
}

static void print_round_trips(FILE *file, const struct measure *m)
{
	print_figure(file, "rtt_median_ns", 2 * m->value, 1);
	print_figure(file, "rtt_p90_ns", 2 * m->p90, 1);
	print_figure(file, "rtt_p99_ns", 2 * m->p99, 1);
	print_figure(file, "rtt_p999_ns", 2 * m->p999, 1);
	print_figure(file, "rtt_p9999_ns", 2 * m->p9999, 1);
	print_figure(file, "rtt_max_ns", 2 * m->max, 1);
}

static void print_pairs(FILE *file, const struct plan *plan, const struct result *result)
{
	uint32_t i;

	fprintf(file, ",\"pairs\":%u,\"each_pair_msgs_per_s\":[", plan->pairs);
	if (plan->pairs < 2)
		fprintf(file, "%.1f", result->median.value);
	for (i = 0; plan->pairs > 1 && i < plan->pairs; i++)
		fprintf(file, "%s%.1f", i ? "," : "", result->median.each[i]);
	fputc(']', file);
}

static void print_json(FILE *file, const struct plan *plan, uint32_t system,
		       uint32_t point_number)
{
	const struct result *result = &plan->results[system][point_number];
	const struct point *point = &plan->points[point_number];
	const struct measure *m = &result->median;

	fprintf(file, "{\"system\":\"%s\",\"test\":\"%s\",\"size\":%zu,\"%s\":%.1f",
		plan->systems[system]->name, lines_test[point->test], point->size,
		lines_key[point->test], m->value);
	if (point->test == TEST_LAT || point->test == TEST_LOAD)
		print_latencies(file, m);
	if (point->test == TEST_LAT)
		print_round_trips(file, m);
	if (point->test == TEST_LOAD)
		print_figure(file, "offered_msgs_per_s", m->offered, 1);
	if (point->test == TEST_RATE)
		print_pairs(file, plan, result);
	fprintf(file, ",\"lowest\":%.1f,\"highest\":%.1f", result->lowest, result->highest);
	print_figure(file, "cpu_ns_per_msg", m->cpu_ns, 1);
	fprintf(file, ",\"engine_ns_per_msg\":%.1f,\"samples\":%llu,\"repetitions\":%u",
		m->poller_ns, (unsigned long long)m->n, result->reps);
	print_figure(file, "ratio_to_limit", result->ratio, 4);
	print_figure(file, "ratio_lowest", result->ratio_lowest, 4);
	print_figure(file, "ratio_highest", result->ratio_highest, 4);
	fprintf(file, "}\n");
}

/* A figure that is known, or nothing. */
static void print_column(FILE *file, double figure, int digits)
{
	if (figure > 0)
		fprintf(file, ",%.*f", digits, figure);
	else
		putc(',', file);
}

static void print_csv(FILE *file, const struct plan *plan, uint32_t system,
		      uint32_t point_number)
{
	const struct result *result = &plan->results[system][point_number];
	const struct point *point = &plan->points[point_number];
	const struct measure *m = &result->median;

	fprintf(file, "%s,%s,%zu,%s,%.1f", plan->systems[system]->name,
		lines_test[point->test], point->size, lines_key[point->test], m->value);
	print_column(file, m->p90, 1);
	print_column(file, m->p99, 1);
	print_column(file, m->p999, 1);
	print_column(file, m->p9999, 1);
	print_column(file, m->max, 1);
	print_column(file, m->min, 1);
	print_column(file, point->test == TEST_LAT ? 2 * m->value : 0, 1);
	fprintf(file, ",%u,%.1f,%.1f", plan->pairs, result->lowest, result->highest);
	print_column(file, m->cpu_ns, 1);
	fprintf(file, ",%.1f", m->poller_ns);
	print_column(file, result->ratio, 4);
	print_column(file, result->ratio_lowest, 4);
	print_column(file, result->ratio_highest, 4);
	putc('\n', file);
}

static void print_all(FILE *file, const struct plan *plan,
		      void (*print)(FILE *file, const struct plan *plan, uint32_t system,
				    uint32_t point))
{
	uint32_t i, s;

	for (i = 0; i < plan->npoints; i++)
		for (s = 0; s < plan->nsystems; s++)
			if (plan->results[s][i].valid)
				print(file, plan, s, i);
}

static void print_areas(FILE *file, const struct plan *plan)
{
	if (plan->area_page)
		fprintf(file, "{\"system\":\"hamlyn\",\"test\":\"areas\",\"size\":0,"
			"\"page_bytes\":%zu}\n", plan->area_page);
}

void lines_json(FILE *file, const struct plan *plan, const struct options *options)
{
	uint32_t i;

	report_json_machine(file, options, plan->foreign);
	print_areas(file, plan);
	for (i = 0; i < plan->nleft_out; i++)
		print_left_out(file, &plan->left_out[i]);
	print_all(file, plan, print_json);
}

void lines_csv(FILE *file, const struct plan *plan)
{
	fprintf(file, "system,test,size,unit,value,p90_ns,p99_ns,p999_ns,p9999_ns,max_ns,min_ns,"
		"rtt_median_ns,pairs,lowest,highest,cpu_ns_per_msg,engine_ns_per_msg,"
		"ratio_to_limit,ratio_lowest,ratio_highest\n");
	print_all(file, plan, print_csv);
}
