// SPDX-License-Identifier: GPL-2.0-only
/*
 * What lies idle: memory of a process that has opened the device, and of contexts, managers and
 * channels that nobody sends by.
 */
#include <hamlyn/channel.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "load/endpoint.h"
#include "load/load.h"
#include "report/report.h"

#define DEFAULT_CHANNELS	1000
#define CONTEXTS		100
#define MANAGERS		10
#define BETWEEN			4	/* of those: two for channels of each kind */

struct idle {
	const struct options *options;
	struct h_dev *dev;
	struct h_manager *manager[MANAGERS];
	struct h_channel **end;
	uint32_t ends;
	char why[256];
	struct memory before;
};

static void print_head(const struct idle *s)
{
	if (s->options->format == FORMAT_CSV)
		printf("system,test,what,count,process_bytes,segment_bytes,machine_bytes,"
		       "kernel_bytes\n");
	if (s->options->format != FORMAT_TABLE)
		return;
	report_machine();
	printf("KiB of each while nobody uses it; machine and slab: whoever took it\n\n"
	       "%-10s %6s %10s %10s %10s %10s\n", "what", "count", "process", "segment",
	       "machine", "slab");
}

/* What each of @count has taken since the last row. */
static void print_row(struct idle *s, const char *what, uint32_t count)
{
	struct memory now;
	bool embedded = h_dev_is_embedded(s->dev);
	double own, shared, machine, slab;

	memory_look(&now);
	own = memory_each(now.own, s->before.own, count);
	shared = memory_each(now.shared, s->before.shared, count);
	/* Areas of the kernel device are no process's: by what is free. */
	machine = embedded ? 0 : memory_each(s->before.free, now.free, count);
	slab = embedded ? 0 : memory_each(now.slab, s->before.slab, count);
	if (s->options->format == FORMAT_JSON)
		printf("{\"system\":\"hamlyn\",\"test\":\"memory\",\"what\":\"%s\",\"count\":%u,"
		       "\"process_bytes\":%.0f,\"segment_bytes\":%.0f,\"machine_bytes\":%.0f,"
		       "\"kernel_bytes\":%.0f}\n", what, count, own, shared, machine, slab);
	else if (s->options->format == FORMAT_CSV)
		printf("hamlyn,memory,%s,%u,%.0f,%.0f,%.0f,%.0f\n", what, count, own, shared,
		       machine, slab);
	else
		printf("%-10s %6u %10.1f %10.1f %10.1f %10.1f\n", what, count, own / 1024,
		       shared / 1024, machine / 1024, slab / 1024);
	fflush(stdout);
	memory_look(&s->before);
}

static int contexts(struct idle *s)
{
	struct h_dev *dev[CONTEXTS];
	struct memory mapped;
	uint32_t n, i;
	int ret = 0;

	for (n = 0; n < CONTEXTS && !ret; n += !ret)
		ret = endpoint_device(&dev[n], s->options);
	/* The segment is the same, though each has mapped it. */
	memory_look(&mapped);
	s->before.shared = mapped.shared;
	if (n)
		print_row(s, "context", n);
	for (i = 0; i < n; i++)
		h_close(dev[i]);
	memory_look(&s->before);
	return ret;
}

/* Why the last call has failed. */
static const char *why(struct idle *s, int ret)
{
	return h_explain(s->dev, s->why, sizeof(s->why)) < 0 ? strerror(-ret) : s->why;
}

/* The last of them have room for so many channels. */
static int managers(struct idle *s, uint32_t channels)
{
	struct h_manager_attr attr = { .channels = channels };
	uint32_t i;
	int ret;

	for (i = 0; i < MANAGERS; i++) {
		ret = h_manager_create(s->dev, i < MANAGERS - BETWEEN ? NULL : &attr,
				       &s->manager[i]);
		if (ret < 0)
			return fail("manager %u: %s", i, why(s, ret));
		if (i + 1 == MANAGERS - BETWEEN)
			print_row(s, "manager", i + 1);
	}
	memory_look(&s->before);
	return 0;
}

/* Ends, as each process has one. */
static int channels(struct idle *s, struct h_manager **between, uint32_t count,
		    uint32_t buffer_size, const char *what)
{
	const struct h_channel_attr attr = { .buffer_size = buffer_size };
	uint32_t i;
	int ret;

	for (i = 0; i < count; i++) {
		ret = h_channel_pair(between[0], between[1], &attr, &s->end[s->ends],
				     &s->end[s->ends + 1]);
		if (ret < 0)
			return fail("channel %u: %s", i, why(s, ret));
		s->ends += 2;
	}
	print_row(s, what, 2 * count);
	return 0;
}

static int all(struct idle *s, uint32_t count)
{
	struct h_manager **between = s->manager + MANAGERS - BETWEEN;

	print_row(s, "attached", 1);
	if (contexts(s) < 0 || managers(s, 1 + count) < 0)
		return -1;
	return channels(s, between, 1, 0, "first") < 0 ||
	       channels(s, between, count, 0, "channel") < 0 ||
	       channels(s, between + 2, count, 1024, "1K buffers") < 0 ? -1 : 0;
}

static void end_all(struct idle *s)
{
	uint32_t i;

	for (i = 0; i < s->ends; i++)
		h_channel_close(s->end[i], H_NOWAIT);
	for (i = 0; i < MANAGERS && s->manager[i]; i++)
		h_manager_destroy(s->manager[i]);
	h_close(s->dev);
}

int cmd_memory(const struct options *options)
{
	struct idle s = { .options = options };
	uint32_t count = options->count ? options->count : DEFAULT_CHANNELS;
	struct load load, load_after;
	int ret;

	s.end = malloc((2 + 4 * (size_t)count) * sizeof(struct h_channel *));
	if (!s.end)
		return fail("out of memory");
	/* Not calloc(): its pages would come, and be counted, later. */
	memset(s.end, 0xff, (2 + 4 * (size_t)count) * sizeof(struct h_channel *));
	load_look(&load, options);
	print_head(&s);
	/* What the first looks take themselves. */
	memory_look(&s.before);
	memory_look(&s.before);
	if (endpoint_device(&s.dev, options) < 0) {
		free(s.end);
		return -1;
	}
	ret = all(&s, count);
	end_all(&s);
	free(s.end);
	load_look(&load_after, options);
	if (!ret && options->format == FORMAT_JSON)
		report_json_machine(stdout, options, load_foreign(&load, &load_after));
	return ret;
}
