// SPDX-License-Identifier: GPL-2.0-only
/*
 * A message to oneself beside a bare copy of as many bytes, from and to the same
 * places, in turn: what is left is what a message costs besides its bytes. No
 * other core has a part in it, so it can be had on a busy machine too.
 */
#include "command/bytes.h"
#include "load/endpoint.h"
#include "load/pair.h"
#include "load/probe.h"
#include "report/table.h"

#define ROOM	(8U << 20)	/* of an area */
#define RING	(4U << 20)	/* bytes of it that messages of a size use, at least two */
#define SMALLEST 8		/* the number of a message */

static const size_t sizes[] = {
	16, 64, 256, 1024, 2048, 4096, 8192, 16384, 65536, 262144, 1048576, 4194304,
};

struct bytes {
	struct endpoint ep;
	unsigned char *in;
	unsigned char *out;
	size_t size;
	uint32_t places;
	uint32_t next;
	uint64_t number;
};

enum {
	COL_X,
	COL_MESSAGE,
	COL_COPY,
	COL_MORE,
	COL_RATIO,
	COL_PAGE,
	COL_SAMPLES,
	COLS,
};

static const struct column columns[COLS] = {
	{ "size", "size", COLUMN_SIZE, 8 },
	{ "message_ns", "message", COLUMN_NS, 11 },
	{ "copy_ns", "copy", COLUMN_NS, 11 },
	{ "more_ns", "more", COLUMN_NS, 11 },
	{ "ratio", "ratio", COLUMN_RATIO, 8 },
	{ "page_bytes", "pages", COLUMN_SIZE, 8 },
	{ "samples", "samples", COLUMN_COUNT, 10 },
};

static size_t next_place(struct bytes *b)
{
	b->next = b->next + 1 < b->places ? b->next + 1 : 0;
	return b->next * ((b->size + 63) & ~(size_t)63);
}

static int send_one(void *arg)
{
	struct bytes *b = arg;
	struct h_ticket ticket = b->ep.own;
	struct hamlyn_nq_entry entry;
	size_t place = next_place(b);

	ticket.base += place;
	ticket.length = b->size;
	b->number++;
	memcpy(b->out + place, &b->number, sizeof(b->number));
	if (endpoint_send(&b->ep, &ticket, b->out + place, b->size) < 0 ||
	    endpoint_recv(&b->ep, &entry) < 0)
		return -1;
	return memcmp(b->in + place, &b->number, sizeof(b->number)) ?
	       fail("a message did not arrive as it was sent") : 0;
}

static int copy_one(void *arg)
{
	struct bytes *b = arg;
	size_t place = next_place(b);

	memcpy(b->in + place, b->out + place, b->size);
	/* The compiler must believe that somebody looks at each copy. */
	__asm__ volatile("" : : "r"(b->in) : "memory");
	return 0;
}

static void print_row(const struct table *table, size_t size, size_t page,
		      const struct probe *sent, const struct probe *copied)
{
	const struct cell cells[COLS] = {
		CELL(size), CELL(sent->median), CELL(copied->median),
		CELL(sent->median - copied->median), CELL(sent->median / copied->median),
		CELL(page), CELL(sent->n),
	};

	table_row(table, "hamlyn", cells);
}

static int run_size(struct bytes *b, const struct table *table, size_t size, size_t page)
{
	struct probe sent, copied;

	b->size = size;
	b->places = size < RING / 2 ? (uint32_t)(RING / ((size + 63) & ~(size_t)63)) : 2;
	if (b->places > 1024)
		b->places = 1024;
	b->next = 0;
	if (probe_two(&sent, &copied, table->options, send_one, copy_one, b) < 0)
		return -1;
	print_row(table, size, page, &sent, &copied);
	return 0;
}

static int run_sizes(struct bytes *b, const struct table *table)
{
	const struct options *options = table->options;
	const size_t *list = options->nsizes ? options->sizes : sizes;
	uint32_t n = options->nsizes ? options->nsizes : ARRAY_SIZE(sizes);
	size_t page = h_area_page_size(b->ep.in);
	uint32_t i;

	table_names(table);
	table_head(table, "a message to itself, a copy of the same bytes to the same place, and "
		   "the difference");
	for (i = 0; i < n; i++)
		if (run_size(b, table, list[i], page) < 0)
			return -1;
	return 0;
}

int bytes_check(const struct options *options)
{
	uint32_t i;

	for (i = 0; i < options->nsizes; i++)
		if (options->sizes[i] < SMALLEST)
			return fail_usage("the curve bytes takes --sizes from %d on", SMALLEST);
	return 0;
}

int bytes_curve(const struct options *options)
{
	const struct endpoint_attr attr = { .bytes = ROOM, .metas = 1, .notifications = 31 };
	const struct table table = {
		.options = options, .test = "scale-bytes", .columns = columns, .ncolumns = COLS,
	};
	struct options mine = *options;
	struct bytes b = { 0 };
	int ret;

	mine.device = endpoint_name(options, 2 * ROOM);
	if (pair_pin(options->cpus[0]) < 0 ||
	    endpoint_open(&b.ep, &mine, &attr) < 0)
		return -1;
	b.in = h_area_addr(b.ep.in);
	b.out = h_area_addr(b.ep.out);
	/* Its pages are there before anything is timed. */
	memset(b.in, 0, ROOM);
	memset(b.out, 1, ROOM);
	ret = run_sizes(&b, &table);
	endpoint_close(&b.ep);
	return ret;
}
