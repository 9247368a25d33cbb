// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who does the NIC's work: a polling thread, or the sender in a system call? An
 * engine is a property of a NIC. Where there are NICs of both kinds they are
 * measured in turn; the embedded device has no engine, its senders always do the
 * work themselves.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "load/crew.h"
#include "load/duo.h"
#include "load/load.h"
#include "load/nics.h"
#include "load/probe.h"
#include "report/report.h"
#include "base/stats.h"
#include "report/table.h"

#define DEFAULT_REPS	5
#define DEFAULT_MS	40
#define WARM_UP		64
#define MIN_TRIPS	64
#define MAX_TRIPS	5000
#define MIN_ROUNDS	4
#define MAX_ROUNDS	1000
#define AREA		(4U << 20)
#define BURST		64	/* messages on their way in a stream, at most */

static const size_t default_sizes[] = { 16, 256, 4096, 65536 };

/* Of one size. Side 0 fills it in. */
struct figures {
	double latency, p99;
	double rate;
	double kicks;		/* per message of the latency test */
	double rate_kicks;
};

struct modes {
	const struct options *options;
	struct nic nics[2];
	uint32_t nnics;
	uint32_t reps;
	uint32_t ms;
	const size_t *sizes;
	uint32_t nsizes;
	struct figures *figures;	/* shared; [size], of one repetition */
	struct figures *all[2];		/* [rep * nsizes + size] of each NIC */
	double self[2][PERF_MAX_REPS];	/* ns per message to itself */
	double self_kicks[2];
};

/* ---- two processes ------------------------------------------------------ */

static int swap_count(struct duo *duo, uint64_t *n)
{
	uint64_t theirs;

	if (pair_swap(duo->side, n, &theirs, sizeof(theirs)) < 0)
		return -1;
	if (duo->side->id)
		*n = theirs;
	return 0;
}

static uint64_t count_for(double each_ns, uint32_t ms, uint64_t least, uint64_t most)
{
	double n = ms * (double)NSEC_PER_MSEC / (each_ns > 1 ? each_ns : 1);

	return n < (double)least ? least : n > (double)most ? most : (uint64_t)n;
}

static int trip(struct duo *duo)
{
	uint64_t value;

	if (duo->side->id)
		return duo_take(duo, &value) < 0 ? -1 : duo_send(duo, value);
	return duo_send(duo, duo->sent) < 0 ? -1 : duo_take(duo, &value);
}

static int run_trips(struct duo *duo, uint64_t n, double *ns)
{
	uint64_t start, i;

	for (i = 0; i < n; i++) {
		start = clock_ns();
		if (trip(duo) < 0)
			return -1;
		ns[i] = (double)(clock_ns() - start);
	}
	return 0;
}

static int latency(struct duo *duo, uint32_t ms, double *ns, struct figures *f)
{
	double cost = clock_cost();
	uint64_t kicks, n = 0;

	if (run_trips(duo, WARM_UP, ns) < 0)
		return -1;
	n = count_for(stats_median(ns, WARM_UP), ms, MIN_TRIPS, MAX_TRIPS);
	if (swap_count(duo, &n) < 0)
		return -1;
	kicks = duo_kicks(duo);
	if (run_trips(duo, n, ns) < 0)
		return -1;
	stats_sort(ns, n);
	f->latency = (stats_quantile(ns, n, 0.5) - cost) / 2;
	f->p99 = (stats_quantile(ns, n, 0.99) - cost) / 2;
	f->kicks = (double)(duo_kicks(duo) - kicks) / (double)n;
	return 0;
}

/*
 * Bursts of half of the places, one ahead: the answer to the last one is awaited
 * while this one is on its way.
 */
static int bursts(struct duo *duo, uint64_t rounds)
{
	uint32_t half = duo->places / 2;
	uint64_t value, i;
	uint32_t m;

	for (i = 0; i < rounds; i++) {
		for (m = 0; m < half; m++)
			if ((duo->side->id ? duo_take(duo, &value) : duo_send(duo, i)) < 0)
				return -1;
		if (duo->side->id ? duo_send(duo, i) < 0 : i && duo_take(duo, &value) < 0)
			return -1;
	}
	return duo->side->id ? 0 : duo_take(duo, &value);
}

static int rate(struct duo *duo, uint32_t ms, struct figures *f)
{
	uint32_t half = duo->places / 2;
	uint64_t kicks, n = 0;
	uint64_t start = clock_ns();

	if (bursts(duo, MIN_ROUNDS) < 0)
		return -1;
	n = count_for((double)(clock_ns() - start) / MIN_ROUNDS, ms, MIN_ROUNDS, MAX_ROUNDS);
	if (swap_count(duo, &n) < 0)
		return -1;
	kicks = duo_kicks(duo);
	start = clock_ns();
	if (bursts(duo, n) < 0)
		return -1;
	f->rate = (double)(n * half) * 1e9 / (double)(clock_ns() - start);
	f->rate_kicks = (double)(duo_kicks(duo) - kicks) / (double)(n * half);
	return 0;
}

static int run_sizes(struct duo *duo, const struct modes *m, double *ns)
{
	struct figures scratch;
	struct figures *f;
	uint32_t i, places;

	for (i = 0; i < m->nsizes; i++) {
		f = duo->side->id ? &scratch : &m->figures[i];
		places = (uint32_t)(AREA / ((m->sizes[i] + 63) & ~(size_t)63));
		if (places > BURST)
			places = BURST;
		if (duo_layout(duo, m->sizes[i], places) < 0 ||
		    latency(duo, m->ms, ns, f) < 0 || rate(duo, m->ms, f) < 0)
			return -1;
	}
	return 0;
}

static int run_side(struct side *side, void *arg)
{
	const struct modes *m = arg;
	double *ns = calloc(MAX_TRIPS, sizeof(*ns));
	struct duo duo;
	int ret;

	if (!ns)
		return fail("out of memory");
	ret = duo_open(&duo, side, AREA);
	if (ret >= 0)
		ret = duo_close(&duo, run_sizes(&duo, m, ns));
	free(ns);
	return ret;
}

/* ---- one process that sends to itself ----------------------------------- */

static int once(void *arg)
{
	uint64_t data[2] = { 1, 2 };
	struct endpoint *ep = arg;
	struct hamlyn_nq_entry entry;

	if (endpoint_send(ep, &ep->own, data, sizeof(data)) < 0 ||
	    endpoint_recv(ep, &entry) < 0)
		return -1;
	return memcmp(h_area_addr(ep->in), data, sizeof(data)) ?
	       fail("a message did not arrive as it was sent") : 0;
}

struct self {
	const struct options *options;
	double ns;
	double kicks;
};

/* In a child: it is pinned, and we are not to be. */
static int run_self(void *arg, uint32_t member)
{
	const struct endpoint_attr attr = { .bytes = 4096, .metas = 1, .notifications = 31 };
	struct self *self = *(struct self **)arg;
	struct options options = *self->options;
	struct hamlyn_stats before = { 0 }, after = { 0 };
	struct endpoint ep;
	struct probe probe = { 0 };
	int ret;

	(void)member;
	options.reps = 1;
	if (pair_pin(options.cpus[0]) < 0 || endpoint_open(&ep, &options, &attr) < 0)
		return -1;
	h_terminus_stats(ep.terminus, &before);
	ret = probe_run(&probe, &options, once, &ep);
	h_terminus_stats(ep.terminus, &after);
	endpoint_close(&ep);
	self->ns = probe.median;
	if (after.messages > before.messages)
		self->kicks = (double)(after.kicks - before.kicks) /
			      (double)(after.messages - before.messages);
	return ret;
}

/* ---- all NICs ----------------------------------------------------------- */

static int one_turn(struct modes *m, uint32_t nic, uint32_t rep, struct self *self)
{
	struct options options = *m->options;
	struct crew crew;

	options.device = m->nics[nic].device;
	fail_prefix(options.device);
	if (pair_run(&options, run_side, m, NULL) < 0)
		return -1;
	memcpy(&m->all[nic][rep * m->nsizes], m->figures, m->nsizes * sizeof(*m->figures));
	self->options = &options;
	if (crew_start(&crew, &options, 1, run_self, &self) < 0 ||
	    crew_finish(&crew, 0, 4ULL * options.timeout_s) < 0)
		return -1;
	m->self[nic][rep] = self->ns;
	m->self_kicks[nic] += self->kicks / m->reps;
	fail_prefix(NULL);
	return 0;
}

static int run_turns(struct modes *m)
{
	struct self *self = crew_shared_new(sizeof(*self));
	uint32_t rep, nic;
	int ret = self ? 0 : -1;

	for (rep = 0; !ret && rep < m->reps; rep++)
		for (nic = 0; !ret && nic < m->nnics; nic++)
			ret = one_turn(m, nic, rep, self);
	crew_shared_free(self, sizeof(*self));
	return ret;
}

/* ---- report ------------------------------------------------------------- */

enum {
	COL_DEVICE,
	COL_MODE,
	COL_ENGINES,
	COL_TEST,
	COL_SIZE,
	COL_LATENCY,
	COL_P99,
	COL_LAT_KICKS,
	COL_RATE,
	COL_RATE_KICKS,
	COLS,
};

static const struct column columns[COLS] = {
	{ "device", "device", COLUMN_TEXT, 14 },
	{ "mode", "who works", COLUMN_TEXT, 10 },
	{ "engines", "engines", COLUMN_COUNT, 7 },
	{ "between", "between", COLUMN_TEXT, 8 },
	{ "size", "size", COLUMN_SIZE, 8 },
	{ "median_ns", "one way", COLUMN_NS, 9 },
	{ "p99_ns", "p99", COLUMN_NS, 9 },
	{ "kicks_per_message", "kicks", COLUMN_NUMBER, 6 },
	{ "msgs_per_s", "messages", COLUMN_RATE, 12 },
	{ "stream_kicks_per_message", "kicks", COLUMN_NUMBER, 6 },
};

static double median_at(const struct modes *m, uint32_t nic, uint32_t size, size_t offset)
{
	return stats_median_at(&m->all[nic][size], m->reps,
			       m->nsizes * sizeof(struct figures), offset);
}

#define MEDIAN(field)	median_at(m, nic, size, offsetof(struct figures, field))

static const char *mode_name(const struct nic *nic)
{
	if (nic->embedded)
		return "sender";
	return nic->mode == HAMLYN_ENGINE_POLL ? "poll" : "inline";
}

static void print_size(const struct modes *m, const struct table *table, uint32_t nic,
		       uint32_t size)
{
	const struct nic *n = &m->nics[nic];
	const struct cell cells[COLS] = {
		CELL_TEXT(n->device), CELL_TEXT(mode_name(n)), CELL(n->engines),
		CELL_TEXT("two"), CELL(m->sizes[size]), CELL(MEDIAN(latency)), CELL(MEDIAN(p99)),
		CELL(MEDIAN(kicks)), CELL(MEDIAN(rate)), CELL(MEDIAN(rate_kicks)),
	};

	table_row(table, "hamlyn", cells);
}

/* To itself: with two processors, the other one is the engine's. */
static void print_self(struct modes *m, const struct table *table, uint32_t nic)
{
	const struct nic *n = &m->nics[nic];
	const struct cell cells[COLS] = {
		CELL_TEXT(n->device), CELL_TEXT(mode_name(n)), CELL(n->engines),
		CELL_TEXT("self"), CELL(DUO_MIN), CELL(stats_median(m->self[nic], m->reps)),
		CELL_NONE, CELL(m->self_kicks[nic]), CELL_NONE, CELL_NONE,
	};

	table_row(table, "hamlyn", cells);
}

static void explain(const struct modes *m)
{
	if (m->options->format != FORMAT_TABLE)
		return;
	if (m->nics[0].embedded)
		printf("The embedded device has no engine: every sender does the NIC's work, "
		       "without a system call.\nThere is nothing to compare.\n");
	else if (m->nnics < 2)
		printf("There is no NIC with the other kind of engine: \"hamlynctl nic add "
		       "engine %s\" makes one.\n",
		       m->nics[0].mode == HAMLYN_ENGINE_POLL ? "inline" : "poll");
	printf("kicks: system calls per message of the one that is timed. With a processor for "
	       "each process\nand each thread of the NIC, poll should have none.\n");
}

static void print(struct modes *m, double foreign)
{
	const struct table table = {
		.options = m->options, .test = "inline-vs-poll", .columns = columns,
		.ncolumns = COLS,
	};
	uint32_t nic, size;

	if (m->options->format == FORMAT_TABLE)
		report_machine();
	table_names(&table);
	table_head(&table, "one-way latency and messages per second, between two processes, and "
		   "a message to itself");
	for (size = 0; size < m->nsizes; size++)
		for (nic = 0; nic < m->nnics; nic++)
			print_size(m, &table, nic, size);
	for (nic = 0; nic < m->nnics; nic++)
		print_self(m, &table, nic);
	explain(m);
	table_end(&table, foreign);
}

/* ---- which NICs --------------------------------------------------------- */

/* The first NIC of the other kind that this process may open. */
static void find_other(struct modes *m)
{
	uint32_t number = 0;

	while (m->nnics < 2 && nic_next(&m->nics[1], &number))
		if (m->nics[1].mode != m->nics[0].mode)
			m->nnics = 2;
}

static int find_nics(struct modes *m)
{
	if (nic_first(&m->nics[0], m->options) < 0)
		return -1;
	m->nnics = 1;
	if (!m->nics[0].embedded)
		find_other(m);
	return 0;
}

static int set_sizes(struct modes *m)
{
	uint32_t i;

	m->sizes = m->options->nsizes ? m->options->sizes : default_sizes;
	m->nsizes = m->options->nsizes ? m->options->nsizes : ARRAY_SIZE(default_sizes);
	for (i = 0; i < m->nsizes; i++)
		if (m->sizes[i] < DUO_MIN || m->sizes[i] > AREA / 4)
			return fail_usage("inline-vs-poll takes --sizes from %d to %d", DUO_MIN,
				    AREA / 4);
	return 0;
}

static int run(struct modes *m)
{
	size_t bytes = m->nsizes * sizeof(struct figures);
	struct load before, after;
	int ret = -1;

	m->figures = crew_shared_new(bytes);
	m->all[0] = calloc(m->reps, bytes);
	m->all[1] = calloc(m->reps, bytes);
	if (!m->all[0] || !m->all[1])
		fail("out of memory");
	load_look(&before, m->options);
	if (m->figures && m->all[0] && m->all[1])
		ret = run_turns(m);
	load_look(&after, m->options);
	if (!ret)
		print(m, load_foreign(&before, &after));
	free(m->all[0]);
	free(m->all[1]);
	crew_shared_free(m->figures, bytes);
	return ret;
}

int cmd_modes(const struct options *options)
{
	struct modes modes = {
		.options = options,
		.reps = options->reps ? options->reps : DEFAULT_REPS,
		.ms = options->point_ms ? options->point_ms : DEFAULT_MS,
	};

	if (set_sizes(&modes) < 0 || find_nics(&modes) < 0)
		return -1;
	return run(&modes);
}
