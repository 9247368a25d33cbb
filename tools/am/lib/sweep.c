// SPDX-License-Identifier: GPL-2.0-only
/* Bandwidth over sizes. */
#include <math.h>
#include <stdio.h>

#include "sweep.h"
#include "world.h"

#define FEWEST		16
#define MOST		50000

void sweep_begin(struct sweep *sweep, const char *test, const struct option_list *sizes,
		 unsigned long least, unsigned long most, unsigned long step)
{
	unsigned long size;
	size_t i;

	*sweep = (struct sweep){ .test = test };
	for (i = 0; i < sizes->n; i++)
		sweep->sizes[sweep->n++] = sizes->values[i];
	if (sizes->n)
		return;
	for (size = least; size < most && sweep->n < OPTIONS_LIST_MAX - 1; size *= step)
		sweep->sizes[sweep->n++] = size;
	sweep->sizes[sweep->n++] = most;
}

unsigned long sweep_count(unsigned long bytes, unsigned long size)
{
	unsigned long count = bytes / size;

	return count < FEWEST ? FEWEST : count > MOST ? MOST : count;
}

void sweep_heading(const char *what)
{
	if (!common.json)
		printf("%s\n%9s %10s %12s %14s\n", what, "bytes", "MB/s", "ns/message", "messages");
}

void sweep_result(struct sweep *sweep, size_t i, unsigned long messages, double bytes_per_s,
		  double ns_per_message)
{
	sweep->bytes_per_s[i] = bytes_per_s;
	if (!common.json) {
		printf("%9lu %10.1f %12.0f %14lu\n", sweep->sizes[i], bytes_per_s / 1e6,
		       ns_per_message, messages);
		return;
	}
	json_open(sweep->test, sweep->sizes[i]);
	json_number("bytes_per_s", bytes_per_s);
	json_number("ns_per_message", ns_per_message);
	json_number("messages", (double)messages);
	json_close();
}

static double peak_of(const struct sweep *sweep)
{
	double peak = 0;
	size_t i;

	for (i = 0; i < sweep->n; i++)
		if (sweep->bytes_per_s[i] > peak)
			peak = sweep->bytes_per_s[i];
	return peak;
}

/*
 * Where the curve first passes half of the peak, on a straight line between the two
 * sizes that were measured, both axes logarithmic; 0: before the first one.
 */
static double n_half(const struct sweep *sweep, double half)
{
	const double *speed = sweep->bytes_per_s;
	double share;
	size_t i;

	for (i = 0; i < sweep->n && speed[i] < half; i++)
		;
	if (!i || i == sweep->n)
		return 0;
	share = log(half / speed[i - 1]) / log(speed[i] / speed[i - 1]);
	return (double)sweep->sizes[i - 1] *
	       pow((double)sweep->sizes[i] / (double)sweep->sizes[i - 1], share);
}

void sweep_end(const struct sweep *sweep)
{
	double peak = peak_of(sweep), size = n_half(sweep, peak / 2);

	if (common.json) {
		printf("{\"test\":\"%s-n-half\",\"system\":\"hamlyn-am\",\"size\":", sweep->test);
		if (size > 0)
			printf("%.0f", size);
		else
			printf("null");
		printf(",\"peak_bytes_per_s\":%.0f}\n", peak);
		return;
	}
	printf("Peak %.1f MB/s; half of it ", peak / 1e6);
	if (size > 0)
		printf("at %.0f bytes (N-half, between sizes measured)\n", size);
	else
		printf("at the first size already\n");
}
