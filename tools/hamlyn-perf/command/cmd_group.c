// SPDX-License-Identifier: GPL-2.0-only
/*
 * Group receives (H 2.5): the messages of a group have shares of 2^32 and one
 * metadata entry; the last one to arrive, whichever that is, makes the only
 * notification. What does a message of a group cost, beside the same messages
 * sent singly, with a notification each? One process sends itself both kinds,
 * in turn: whoever receives is charged for all that there is to do.
 */
#include <stdio.h>

#include "base/clock.h"
#include "load/endpoint.h"
#include "load/load.h"
#include "load/pair.h"
#include "load/probe.h"
#include "report/report.h"
#include "report/table.h"

#define MAX_GROUP	64
#define MESSAGE		16	/* bytes */
#define PLACE		64
#define QUIET_LOOKS	64	/* polls that must not find a second notification */

struct group {
	const struct options *options;
	struct endpoint ep;
	uint32_t size;		/* messages */
	uint64_t number;	/* of groups */
};

enum {
	COL_SIZE,
	COL_GROUP,
	COL_GROUP_P99,
	COL_SINGLE,
	COL_SINGLE_P99,
	COL_RATIO,
	COL_N,
	COLS,
};

static const struct column columns[COLS] = {
	{ "group_size", "size", COLUMN_COUNT, 5 },
	{ "group_ns_per_message", "group", COLUMN_NS, 10 },
	{ "group_p99_ns", "p99", COLUMN_NS, 10 },
	{ "single_ns_per_message", "singly", COLUMN_NS, 10 },
	{ "single_p99_ns", "p99", COLUMN_NS, 10 },
	{ "ratio", "ratio", COLUMN_RATIO, 8 },
	{ "messages", "messages", COLUMN_COUNT, 10 },
};

/* The shares of a group add up to 2^32, which is 0. Alone, a message has none. */
static uint32_t share(const struct group *group, uint32_t member)
{
	uint32_t each = (uint32_t)((1ULL << 32) / group->size);

	if (group->size == 1)
		return 0;
	return member ? each : 0U - each * (group->size - 1);
}

static int send_member(struct group *group, uint32_t member, uint32_t delta)
{
	uint64_t data[MESSAGE / 8] = { group->number, member };
	const struct h_msg msg = {
		.ticket = &group->ep.own,
		.offset = (uint64_t)member * PLACE,
		.data = data,
		.length = sizeof(data),
		.delta = delta,
	};
	struct wait wait = WAIT("room in the work queue");
	int64_t handle;

	while ((handle = h_send(group->ep.terminus, &msg)) == -EAGAIN)
		if (!wait_more(&wait))
			return -1;
	return endpoint_sent(&group->ep, handle) < 0 ? -1 : 0;
}

static int look(struct group *group)
{
	const unsigned char *in = h_area_addr(group->ep.in);
	uint64_t data[MESSAGE / 8];
	uint32_t i;

	for (i = 0; i < group->size; i++) {
		memcpy(data, in + (size_t)i * PLACE, sizeof(data));
		if (data[0] != group->number || data[1] != i)
			return fail("message %u of group %llu is not there", i,
				    (unsigned long long)group->number);
	}
	group->number++;
	return 0;
}

static int once(struct group *group, bool singly)
{
	uint32_t notifications = singly ? group->size : 1;
	struct hamlyn_nq_entry entry;
	uint32_t i;

	for (i = 0; i < group->size; i++)
		if (send_member(group, i, singly ? 0 : share(group, i)) < 0)
			return -1;
	for (i = 0; i < notifications; i++)
		if (endpoint_recv(&group->ep, &entry) < 0)
			return -1;
	return look(group);
}

static int once_grouped(void *arg)
{
	return once(arg, false);
}

static int once_singly(void *arg)
{
	return once(arg, true);
}

/* One more than promised would be taken for one of the next kind. */
static int nothing_more(struct group *group)
{
	struct hamlyn_nq_entry entry;
	uint32_t i;

	for (i = 0; i < QUIET_LOOKS; i++)
		if (h_recv(group->ep.nq, &entry))
			return fail("groups of %u made more than one notification each",
				    group->size);
	return 0;
}

static int run_row(struct group *group, const struct table *table)
{
	struct probe grouped, singly;

	if (probe_two(&grouped, &singly, group->options, once_grouped, once_singly, group) < 0 ||
	    nothing_more(group) < 0)
		return -1;

	const struct cell cells[COLS] = {
		CELL(group->size), CELL(grouped.median / group->size),
		CELL(grouped.p99 / group->size), CELL(singly.median / group->size),
		CELL(singly.p99 / group->size),
		CELL(singly.median > 0 ? grouped.median / singly.median : NAN),
		CELL(grouped.n * group->size),
	};

	table_row(table, "hamlyn", cells);
	return 0;
}

/* Twice as many; the last one is @most. */
static uint32_t next_size(uint32_t size, uint32_t most)
{
	return size < most && 2 * size > most ? most : 2 * size;
}

static int run_rows(struct group *group)
{
	const struct table table = {
		.options = group->options, .test = "group", .columns = columns,
		.ncolumns = COLS,
	};
	uint32_t most = group->options->count ? group->options->count : MAX_GROUP;
	struct load before, after;

	if (most > MAX_GROUP)
		return fail_usage("group takes --count up to %d", MAX_GROUP);
	load_look(&before, group->options);
	if (group->options->format == FORMAT_TABLE)
		report_machine();
	table_names(&table);
	table_head(&table, "messages of 16 bytes to itself, in groups with one notification, "
		   "and singly; time per message");
	for (group->size = 1; group->size <= most; group->size = next_size(group->size, most))
		if (run_row(group, &table) < 0)
			return -1;
	load_look(&after, group->options);
	table_end(&table, load_foreign(&before, &after));
	return 0;
}

int cmd_group(const struct options *options)
{
	const struct endpoint_attr attr = {
		.bytes = (size_t)MAX_GROUP * PLACE, .metas = 1, .notifications = 2 * MAX_GROUP,
	};
	struct group group = { .options = options, .size = 1 };
	int ret;

	wait_setup(options->ncpus, options->timeout_s);
	if (pair_pin(options->cpus[0]) < 0 || endpoint_open(&group.ep, options, &attr) < 0)
		return -1;
	ret = run_rows(&group);
	endpoint_close(&group.ep);
	return ret;
}
