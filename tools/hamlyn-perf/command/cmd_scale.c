// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a message costs as the work around it grows: termini, slots, sending
 * processes, pairs, open contexts. A curve each: x, figure, ratio to the first.
 */
#include <stdio.h>
#include <stdlib.h>

#include "command/bytes.h"
#include "base/clock.h"
#include "load/contexts.h"
#include "load/crew.h"
#include "load/duo.h"
#include "command/engines.h"
#include "command/fan.h"
#include "load/load.h"
#include "load/probe.h"
#include "report/report.h"
#include "base/stats.h"
#include "report/table.h"

#define MESSAGE		16	/* bytes */
#define MAX_TERMINI	1024
#define MAX_SLOTS	100000	/* slots has more */
#define MAX_PAIRS	(PERF_MAX_SENDERS / 2)
#define MAX_IDLE	1000
#define KICKS_TO_WAKE	8	/* doorbells in a row that make the engine poll */
#define MAX_TRIPS	2000	/* of a repetition */
#define WARM_UP		64

enum scale_column {
	COL_X,
	COL_MEDIAN,
	COL_P99,
	COL_RATE,
	COL_LEAST,
	COL_MOST,
	COL_RATIO,
	COL_SAMPLES,
	COLS,
};

static const struct column columns[COLS] = {
	{ "x", "x", COLUMN_COUNT, 8 },
	{ "median_ns", "a message", COLUMN_NS, 11 },
	{ "p99_ns", "p99", COLUMN_NS, 10 },
	{ "msgs_per_s", "messages", COLUMN_RATE, 13 },
	{ "least_msgs_per_s", "least", COLUMN_RATE, 13 },
	{ "most_msgs_per_s", "most", COLUMN_RATE, 13 },
	{ "ratio", "to first", COLUMN_RATIO, 9 },
	{ "samples", "samples", COLUMN_COUNT, 10 },
};

#define HIDE_RATES	(1U << COL_RATE | 1U << COL_LEAST | 1U << COL_MOST)
#define HIDE_TIMES	(1U << COL_MEDIAN | 1U << COL_P99)

struct scale {
	const struct options *options;
	struct hamlyn_query nic;
	bool embedded;
	struct table table;
	double first;		/* figure of the first row of this curve */
	/* One process that sends to itself. */
	struct endpoint ep;
	struct h_terminus **termini;
	struct h_slot **slots;
	uint32_t used;		/* termini, or slots, that take turns */
	uint32_t next;
	bool recent;		/* all termini are used before one is timed */
	uint64_t number;	/* of messages */
};

/* ---- rows --------------------------------------------------------------- */

static void begin_curve(struct scale *s, const char *test, const char *title, uint32_t hidden)
{
	/* One line of names for all that have these columns. */
	if (!s->table.test)
		table_names(&s->table);
	s->table.test = test;
	s->table.hidden = hidden;
	s->first = 0;
	table_head(&s->table, title);
}

static double to_first(struct scale *s, double value)
{
	if (s->first <= 0)
		s->first = value;
	return s->first > 0 ? value / s->first : NAN;
}

static void time_row(struct scale *s, uint32_t x, double median, double p99, uint64_t n)
{
	const struct cell cells[COLS] = {
		CELL(x), CELL(median), CELL(p99), CELL_NONE, CELL_NONE, CELL_NONE,
		CELL(to_first(s, median)), CELL(n),
	};

	table_row(&s->table, "hamlyn", cells);
}

static void rate_row(struct scale *s, uint32_t x, const struct fan_result *r)
{
	const struct cell cells[COLS] = {
		CELL(x), CELL_NONE, CELL_NONE, CELL(r->rate), CELL(r->least), CELL(r->most),
		CELL(to_first(s, r->rate)), CELL(r->n),
	};

	table_row(&s->table, "hamlyn", cells);
}

/* The curve ends early: say so beside it, and go on. */
static void cut_short(uint32_t x, uint32_t wanted, const char *what, const char *why)
{
	fprintf(stderr, "hamlyn-perf: %u of %u %s: %s\n", x, wanted, what, why);
}

/* The largest x of a curve. */
static uint32_t most(const struct scale *s, uint32_t usual)
{
	uint32_t count = s->options->count;

	return count && count < usual ? count : usual;
}

/* ---- a process that sends to itself ------------------------------------- */

static int send_self(struct scale *s, struct h_terminus *terminus,
		     const struct h_ticket *ticket)
{
	uint64_t data[MESSAGE / 8] = { s->number, ~s->number };
	struct wait wait = WAIT("room in the work queue");
	struct hamlyn_nq_entry entry;
	int64_t handle;

	while ((handle = h_send_msg(terminus, ticket, data, sizeof(data), NULL, 0)) == -EAGAIN)
		if (!wait_more(&wait))
			return -1;
	if (endpoint_sent(&s->ep, handle) < 0 || endpoint_recv(&s->ep, &entry) < 0)
		return -1;
	if (entry.slot != ticket->slot || memcmp(h_area_addr(s->ep.in), data, sizeof(data)))
		return fail("message %llu did not arrive as it was sent",
			    (unsigned long long)s->number);
	s->number++;
	return 0;
}

static int open_self(struct scale *s)
{
	const struct endpoint_attr attr = { .bytes = 4096, .metas = 1, .notifications = 31 };

	s->next = 0;
	return pair_pin(s->options->cpus[0]) < 0 ? -1 :
	       endpoint_open(&s->ep, s->options, &attr);
}

static int probe_row(struct scale *s, uint32_t x, probe_fn fn)
{
	struct probe probe;

	if (probe_run(&probe, s->options, fn, s) < 0)
		return -1;
	time_row(s, x, probe.median, probe.p99, probe.n);
	return 0;
}

/* ---- termini ------------------------------------------------------------ */

static int through_first(void *arg)
{
	struct scale *s = arg;

	return send_self(s, s->termini[0], &s->ep.own);
}

static int through_all(void *arg)
{
	struct scale *s = arg;

	if (s->next >= s->used)
		s->next = 0;
	return send_self(s, s->termini[s->next++], &s->ep.own);
}

static int more_termini(struct scale *s, uint32_t count, uint32_t wanted)
{
	const struct h_terminus_attr attr = { .flags = H_TERMINUS_SINGLE };
	int ret;

	for (; s->used < count; s->used++) {
		ret = h_terminus_create(s->ep.dev, &attr, &s->termini[s->used]);
		if (ret < 0) {
			cut_short(s->used, wanted, "termini", strerror(-ret));
			return ret;
		}
	}
	return 0;
}

/*
 * Each terminus has just been used, often enough that the engine polls it: until
 * idle_us are over, it looks at all of them in turn. With the usual 50 us few of
 * them are left when the time begins; with a large one this shows how long the
 * engine's round is.
 */
static int use_all(struct scale *s)
{
	uint64_t deadline = clock_ns() + s->options->timeout_s * NSEC_PER_SEC;
	uint32_t i, k;

	for (i = 0; i < s->used; i++) {
		if (clock_ns() > deadline)
			return fail("only %u of %u termini used within %u s (--timeout)", i,
				    s->used, s->options->timeout_s);
		for (k = 0; k < KICKS_TO_WAKE; k++)
			if (send_self(s, s->termini[i], &s->ep.own) < 0)
				return -1;
	}
	return 0;
}

static int recent_row(struct scale *s, uint32_t x)
{
	uint32_t reps = s->options->reps ? s->options->reps : PROBE_REPS;
	double medians[PERF_MAX_REPS], p99s[PERF_MAX_REPS];
	struct options once = *s->options;
	struct probe probe = { 0 };
	uint64_t n = 0;
	uint32_t rep;

	once.reps = 1;
	for (rep = 0; rep < reps; rep++) {
		if (use_all(s) < 0 || probe_run(&probe, &once, through_first, s) < 0)
			return -1;
		medians[rep] = probe.median;
		p99s[rep] = probe.p99;
		n += probe.n;
	}
	time_row(s, x, stats_median(medians, reps), stats_median(p99s, reps), n);
	return 0;
}

static int termini_rows(struct scale *s, probe_fn fn)
{
	uint32_t last = most(s, MAX_TERMINI);
	uint32_t x;

	s->termini[0] = s->ep.terminus;
	s->used = 1;
	for (x = 1; x <= last; x = x < last && x * 4 > last ? last : x * 4) {
		if (more_termini(s, x, last) < 0)
			return 0;
		if ((s->recent ? recent_row(s, x) : probe_row(s, x, fn)) < 0)
			return -1;
	}
	return 0;
}

static int termini_curve(struct scale *s, probe_fn fn)
{
	int ret;

	s->termini = calloc(MAX_TERMINI, sizeof(struct h_terminus *));
	if (!s->termini)
		return fail("out of memory");
	ret = open_self(s);
	if (!ret) {
		ret = termini_rows(s, fn);
		endpoint_close(&s->ep);
	}
	s->recent = false;
	free(s->termini);
	return ret;
}

static int run_termini(struct scale *s)
{
	begin_curve(s, "scale-termini", "x termini are open, messages go through one of them",
		    HIDE_RATES);
	return termini_curve(s, through_first);
}

static int run_spread(struct scale *s)
{
	begin_curve(s, "scale-spread", "x termini, messages go through all of them in turn",
		    HIDE_RATES);
	return termini_curve(s, through_all);
}

static int run_recent(struct scale *s)
{
	begin_curve(s, "scale-recent", "x termini have just been used (up to idle_us before), "
		    "messages go through one of them", HIDE_RATES);
	s->recent = true;
	return termini_curve(s, through_first);
}

/* ---- slots -------------------------------------------------------------- */

/* Not the same order each time: a stride that shares nothing with powers of 10. */
static int through_slot(void *arg)
{
	struct scale *s = arg;
	struct h_ticket ticket;

	s->next = (s->next + 7919) % s->used;
	if (h_slot_ticket(s->slots[s->next], 0, 0, 0, &ticket) < 0)
		return fail("no ticket");
	return send_self(s, s->ep.terminus, &ticket);
}

static int more_slots(struct scale *s, uint32_t count, uint32_t wanted)
{
	const struct h_slot_attr attr = { .area = s->ep.in, .nq = s->ep.nq };
	uint64_t deadline = clock_ns() + s->options->timeout_s * NSEC_PER_SEC;
	int ret;

	for (; s->used < count; s->used++) {
		ret = h_slot_create(s->ep.dev, &attr, &s->slots[s->used]);
		if (!ret && !(s->used % 1024) && clock_ns() > deadline)
			ret = -ETIME;
		if (ret < 0) {
			cut_short(s->used, wanted, "slots", strerror(-ret));
			return ret;
		}
	}
	return 0;
}

static int slots_rows(struct scale *s, uint32_t last)
{
	uint32_t x;

	s->used = 0;
	for (x = 1; x <= last; x = x < last && x * 10 > last ? last : x * 10) {
		if (more_slots(s, x, last) < 0)
			return 0;
		if (probe_row(s, x, through_slot) < 0)
			return -1;
	}
	return 0;
}

static int run_slots(struct scale *s)
{
	uint32_t last = most(s, MAX_SLOTS);
	int ret;

	/* One is the endpoint's own. */
	if (last > s->nic.max_slots - 1)
		last = s->nic.max_slots - 1;
	begin_curve(s, "scale-slots", "x slots of one area, messages go through all of them "
		    "(up to 10^6: see the command slots)", HIDE_RATES);
	s->slots = calloc(last, sizeof(struct h_slot *));
	if (!s->slots)
		return fail("out of memory");
	ret = open_self(s);
	if (!ret) {
		ret = slots_rows(s, last);
		endpoint_close(&s->ep);
	}
	free(s->slots);
	return ret;
}

/* ---- processes ---------------------------------------------------------- */

static int fan_curve(struct scale *s, uint32_t last, bool pairs)
{
	struct fan_result results[PERF_MAX_REPS], median;
	uint32_t reps = fan_reps(s->options);
	uint32_t rep, x;

	for (x = 1; x <= last; x = x < last && x * 2 > last ? last : x * 2) {
		for (rep = 0; rep < reps; rep++)
			if (fan_once(&results[rep], s->options, x, pairs) < 0)
				return -1;
		fan_median(&median, results, reps);
		rate_row(s, x, &median);
	}
	return 0;
}

static int run_senders(struct scale *s)
{
	char title[160];

	snprintf(title, sizeof(title), "x processes send to one, which is on CPU %d; "
		 "CPUs for the senders: %u", s->options->cpus[0],
		 s->options->ncpus < 2 ? 1 : fan_cpus() - 1);
	begin_curve(s, "scale-senders", title, HIDE_TIMES);
	return fan_curve(s, most(s, PERF_MAX_SENDERS), false);
}

static int run_engines(struct scale *s)
{
	return engines_curve(s->options, s->options->op);
}

static int run_bytes(struct scale *s)
{
	return bytes_curve(s->options);
}

static int run_pairs(struct scale *s)
{
	char title[160];

	snprintf(title, sizeof(title), "x pairs of processes; CPUs: %u; engines of the NIC: %u%s",
		 fan_cpus(), s->nic.engines,
		 s->nic.engines ? "" : " (the senders do its work)");
	begin_curve(s, "scale-pairs", title, HIDE_TIMES);
	return fan_curve(s, most(s, MAX_PAIRS), true);
}

/* ---- idle contexts ------------------------------------------------------ */

/* What side 0 found out. */
struct trips {
	double median;
	double p99;
	double ns[MAX_TRIPS];
};

static int ask(struct duo *duo, struct trips *trips)
{
	double cost = clock_cost();
	uint64_t start, value;
	uint32_t i;

	for (i = 0; i < WARM_UP + MAX_TRIPS; i++) {
		start = clock_ns();
		if (duo_send(duo, i) < 0 || duo_take(duo, &value) < 0)
			return -1;
		trips->ns[i < WARM_UP ? 0 : i - WARM_UP] =
			((double)(clock_ns() - start) - cost) / 2;
	}
	stats_sort(trips->ns, MAX_TRIPS);
	trips->median = stats_quantile(trips->ns, MAX_TRIPS, 0.5);
	trips->p99 = stats_quantile(trips->ns, MAX_TRIPS, 0.99);
	return 0;
}

static int answer(struct duo *duo)
{
	uint64_t value;
	uint32_t i;

	for (i = 0; i < WARM_UP + MAX_TRIPS; i++)
		if (duo_take(duo, &value) < 0 || duo_send(duo, value) < 0)
			return -1;
	return 0;
}

static int latency_side(struct side *side, void *arg)
{
	struct duo duo;

	(void)arg;
	if (duo_open(&duo, side, 4096) < 0)
		return -1;
	return duo_close(&duo, side->id ? answer(&duo) : ask(&duo, side->shared));
}

static int latency(struct scale *s, struct trips *trips, uint32_t x)
{
	uint32_t reps = s->options->reps ? s->options->reps : PROBE_REPS;
	double medians[PERF_MAX_REPS], p99s[PERF_MAX_REPS];
	uint32_t rep;

	for (rep = 0; rep < reps; rep++) {
		if (pair_run(s->options, latency_side, NULL, trips) < 0)
			return -1;
		medians[rep] = trips->median;
		p99s[rep] = trips->p99;
	}
	time_row(s, x, stats_median(medians, reps), stats_median(p99s, reps),
		 (uint64_t)reps * MAX_TRIPS);
	return 0;
}

static int idle_rows(struct scale *s, struct contexts *contexts, struct trips *shared,
		     uint32_t last)
{
	uint32_t x;
	int ret;

	ret = latency(s, shared, 0);
	for (x = 1; !ret && x <= last; x = x < last && x * 10 > last ? last : x * 10) {
		ret = contexts_open(contexts, s->options, x);
		if (!ret && contexts->count < x) {
			cut_short(contexts->count, last, "idle contexts", contexts->why);
			/* Those that there are count as well. */
			return latency(s, shared, contexts->count);
		}
		if (!ret)
			ret = latency(s, shared, x);
	}
	return ret;
}

/* It is us who have the idle contexts; the pair are two children of ours. */
static int run_idle(struct scale *s)
{
	uint32_t last = most(s, MAX_IDLE);
	struct contexts contexts;
	struct trips *shared;
	int ret;

	begin_curve(s, "scale-idle", "x idle contexts of another process; one-way latency of "
		    "an active pair", HIDE_RATES);
	if (contexts_init(&contexts, last) < 0)
		return -1;
	shared = crew_shared_new(sizeof(*shared));
	ret = shared ? idle_rows(s, &contexts, shared, last) : -1;
	crew_shared_free(shared, sizeof(*shared));
	contexts_close(&contexts);
	return ret;
}

/* ---- all curves --------------------------------------------------------- */

static const struct curve {
	const char *name;
	const char *what;
	int (*run)(struct scale *s);
} curves[] = {
	{ "engines", "engines of the NIC (NICs that have so many, see hamlynctl nic add)",
	  run_engines },
	/* Last those that pin this process: its children would inherit that. */
	{ "senders", "processes that send to one", run_senders },
	{ "pairs", "pairs of processes at the same time", run_pairs },
	{ "idle", "idle contexts of another process", run_idle },
	{ "termini", "termini, of which one is used", run_termini },
	{ "spread", "termini that are used in turn", run_spread },
	{ "recent", "termini that have just been used", run_recent },
	{ "slots", "slots that messages go through", run_slots },
	{ "bytes", "bytes of a message to itself, beside a bare copy of them", run_bytes },
};

void cmd_scale_ops(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(curves); i++)
		printf("  %-12s %s\n", curves[i].name, curves[i].what);
}

static int ask_nic(struct scale *s)
{
	struct h_dev *dev;
	int ret;

	if (endpoint_device(&dev, s->options) < 0)
		return -1;
	s->embedded = h_dev_is_embedded(dev);
	ret = h_query(dev, &s->nic);
	h_close(dev);
	return ret < 0 ? fail("the NIC does not tell its limits: %s", strerror(-ret)) : 0;
}

static int check_op(const char *op)
{
	size_t i;

	for (i = 0; op && i < ARRAY_SIZE(curves); i++)
		if (!strcmp(op, curves[i].name))
			return 0;
	return op ? fail_usage("no curve is called \"%s\"; there are engines, termini, spread, "
			       "recent, slots, bytes, senders, pairs and idle", op) : 0;
}

static int run_curves(struct scale *s, const char *op)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(curves); i++) {
		if (op && strcmp(op, curves[i].name))
			continue;
		fail_prefix(curves[i].name);
		if (curves[i].run(s) < 0)
			return -1;
	}
	fail_prefix(NULL);
	return 0;
}

int cmd_scale(const struct options *options)
{
	struct scale s = {
		.options = options,
		.table = { .options = options, .columns = columns, .ncolumns = COLS },
	};
	struct load before, after;
	int ret;

	wait_setup(options->ncpus, options->timeout_s);
	if (check_op(options->op) < 0 || bytes_check(options) < 0 || ask_nic(&s) < 0)
		return -1;
	load_look_all(&before);
	if (options->format == FORMAT_TABLE) {
		report_machine();
		printf("%s device; messages of %d bytes where nothing else is said\n",
		       s.embedded ? "embedded" : "kernel", MESSAGE);
	}
	ret = run_curves(&s, options->op);
	load_look_all(&after);
	if (!ret)
		table_end(&s.table, load_foreign(&before, &after));
	return ret;
}
