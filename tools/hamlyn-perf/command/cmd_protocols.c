// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the upper layer's protocols cost above raw messages (H 4.1: 1.4 us above 12.7):
 * one thread sends itself a message and receives it, in each way, the raw one beside it.
 */
#include "load/endpoint.h"
#include "load/load.h"
#include "load/pair.h"
#include "load/probe.h"
#include "load/protocols.h"
#include "report/report.h"
#include "report/table.h"

static const size_t sizes[] = { 16, 64, 256, 1024, 4096 };

#define LONGEST	4096	/* what a stream's and a channel's first buffers hold */

struct both {
	struct endpoint ep;
	struct h_ticket ticket;
	struct protocols p;
	int (*way)(void *protocols);
};

static const struct way {
	const char *name;
	uint32_t flags;
	int (*run)(void *protocols);
} ways[] = {
	{ "stream", 0, protocols_stream },
	{ "stream-one", H_MANAGER_SINGLE, protocols_stream },
	{ "datagram", 0, protocols_datagram },
	{ "datagram-one", H_MANAGER_SINGLE, protocols_datagram },
	{ "tagged", 0, protocols_tagged },
	{ "tagged-one", H_MANAGER_SINGLE, protocols_tagged },
	{ "channel", 0, protocols_channel },
	{ "channel-one", H_MANAGER_SINGLE, protocols_channel },
};

enum { COL_SIZE, COL_TIME, COL_RAW, COL_MORE, COL_RATIO, COLS };

static const struct column columns[COLS] = {
	{ "size", "size", COLUMN_SIZE, 8 },
	{ "message_ns", "message", COLUMN_NS, 11 },
	{ "raw_ns", "raw", COLUMN_NS, 11 },
	{ "more_ns", "more", COLUMN_NS, 11 },
	{ "ratio", "ratio", COLUMN_RATIO, 8 },
};

static int raw_one(void *arg)
{
	struct both *b = arg;
	struct hamlyn_nq_entry entry;

	return endpoint_send(&b->ep, &b->ticket, h_area_addr(b->ep.out), b->p.size) < 0 ||
	       endpoint_recv(&b->ep, &entry) < 0 ? -1 : 0;
}

static int way_one(void *arg)
{
	struct both *b = arg;

	return b->way(&b->p);
}

static const struct cell *cells_of(struct cell *cells, size_t size, const struct probe *way,
				   const struct probe *raw)
{
	cells[COL_SIZE] = CELL(size);
	cells[COL_TIME] = CELL(way->median);
	cells[COL_RAW] = CELL(raw->median);
	cells[COL_MORE] = CELL(way->median - raw->median);
	cells[COL_RATIO] = CELL(way->median / raw->median);
	return cells;
}

static int run_size(struct both *b, const struct table *table, const char *name, size_t size)
{
	struct cell cells[COLS];
	struct probe way, raw;

	b->p.size = size;
	b->ticket.length = size;
	if (probe_two(&way, &raw, table->options, way_one, raw_one, b) < 0)
		return -1;
	table_row(table, name, cells_of(cells, size, &way, &raw));
	return 0;
}

static int run_way(struct both *b, const struct table *table, const struct way *way)
{
	const struct options *options = table->options;
	const size_t *list = options->nsizes ? options->sizes : sizes;
	uint32_t n = options->nsizes ? options->nsizes : ARRAY_SIZE(sizes);
	uint32_t i;
	int ret = 0;

	if (protocols_open(&b->p, h_dev_name(b->ep.dev), way->flags, LONGEST) < 0)
		return -1;
	b->way = way->run;
	for (i = 0; i < n && !ret; i++)
		ret = run_size(b, table, way->name, list[i]);
	protocols_close(&b->p);
	return ret;
}

static int check_sizes(const struct options *options)
{
	uint32_t i;

	for (i = 0; i < options->nsizes; i++)
		if (!options->sizes[i] || options->sizes[i] > LONGEST)
			return fail_usage("protocols takes --sizes from 1 to %d", LONGEST);
	return 0;
}

static int run_ways(struct both *b, const struct options *options)
{
	const struct table table = {
		.options = options, .test = "protocols", .columns = columns, .ncolumns = COLS,
	};
	struct load before, after;
	size_t i;

	load_look(&before, options);
	if (options->format == FORMAT_TABLE)
		report_machine();
	table_names(&table);
	table_head(&table, "a message to itself, sent, received and released, beside a raw one");
	for (i = 0; i < ARRAY_SIZE(ways); i++)
		if (run_way(b, &table, &ways[i]) < 0)
			return -1;
	load_look(&after, options);
	table_end(&table, load_foreign(&before, &after));
	return 0;
}

int cmd_protocols(const struct options *options)
{
	const struct endpoint_attr attr = { .bytes = LONGEST, .metas = 1, .notifications = 31 };
	struct both b = { 0 };
	int ret;

	wait_setup(options->ncpus, options->timeout_s);
	if (check_sizes(options) < 0 || pair_pin(options->cpus[0]) < 0 ||
	    endpoint_open(&b.ep, options, &attr) < 0)
		return -1;
	b.ticket = b.ep.own;
	ret = run_ways(&b, options);
	endpoint_close(&b.ep);
	return ret;
}
