// SPDX-License-Identifier: GPL-2.0-only
/*
 * What does it cost to have Hamlyn open and do nothing? Many contexts, each with
 * an area, an NQ, a slot and a terminus; the CPU time that their process and the
 * NIC's threads use meanwhile, and that of a receiver that sleeps in
 * h_recv_block() all the time. Then, with all of them open: how soon after the
 * last message the NIC's threads are asleep, and what the first message costs
 * that finds them so.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/contexts.h"
#include "load/endpoint.h"
#include "load/kthread.h"
#include "load/load.h"
#include "load/pair.h"
#include "report/report.h"
#include "base/stats.h"
#include "report/table.h"

#define DEFAULT_COUNT	1000
#define MAX_COUNT	100000
#define DEFAULT_MS	2000
#define DEFAULT_N	50
#define MAX_N		10000
#define SETTLE_NS	(300 * NSEC_PER_MSEC)	/* until what opening began is over */
#define FIRST_LAST	10	/* contexts that are timed at the beginning and the end */
#define BUSY_SENDS	4096	/* at least, to wake the engine */
#define BUSY_NS		(50 * NSEC_PER_MSEC)	/* at most */
#define ASLEEP_NS	(2 * NSEC_PER_SEC)	/* longest time until it sleeps */
#define MESSAGE		16

struct idle {
	const struct options *options;
	struct contexts contexts;
	struct kthreads threads;
	struct endpoint ep;
	bool embedded;
	uint32_t engines;
	uint32_t wanted;
	uint32_t n;
	uint64_t number;
	/* What came out. */
	double first_open, last_open;	/* ns each */
	double seconds;
	double own;			/* CPU seconds per second */
	double engine;
	double sleeper;
	double asleep, asleep_p99;	/* ns after the last message */
	double waking, waking_p99;	/* the first message, */
	double awake;			/* and one of many */
	double kicks;			/* of the first messages */
};

/* ---- many contexts ------------------------------------------------------ */

static int open_timed(struct idle *idle, uint32_t count, double *each)
{
	uint32_t before = idle->contexts.count;
	uint64_t start = clock_ns();

	if (contexts_open(&idle->contexts, idle->options, count) < 0)
		return -1;
	if (idle->contexts.count > before)
		*each = (double)(clock_ns() - start) / (idle->contexts.count - before);
	return 0;
}

static int open_all(struct idle *idle)
{
	uint32_t first = idle->wanted < FIRST_LAST ? idle->wanted : FIRST_LAST;
	uint32_t middle = idle->wanted > 2 * FIRST_LAST ? idle->wanted - FIRST_LAST : first;
	double ignored;

	if (contexts_init(&idle->contexts, idle->wanted) < 0 ||
	    open_timed(idle, first, &idle->first_open) < 0)
		return -1;
	idle->last_open = idle->first_open;
	if (open_timed(idle, middle, &ignored) < 0)
		return -1;
	if (idle->contexts.count == middle &&
	    open_timed(idle, idle->wanted, &idle->last_open) < 0)
		return -1;
	if (idle->contexts.count < idle->wanted)
		fprintf(stderr, "hamlyn-perf: %u of %u contexts: %s\n", idle->contexts.count,
			idle->wanted, idle->contexts.why);
	return 0;
}

static double cpu_of(clockid_t clock)
{
	struct timespec used;

	clock_gettime(clock, &used);
	return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

static void sleep_ns(uint64_t ns)
{
	struct timespec left = {
		.tv_sec = (time_t)(ns / NSEC_PER_SEC), .tv_nsec = (long)(ns % NSEC_PER_SEC),
	};

	nanosleep(&left, NULL);
}

/* A receiver that nobody sends to. */
struct sleeper {
	struct h_nq *nq;
	uint64_t ns;
	double cpu;		/* seconds */
	int result;
};

static void *sleep_in_recv(void *arg)
{
	struct sleeper *sleeper = arg;
	struct hamlyn_nq_entry entry;
	double before = cpu_of(CLOCK_THREAD_CPUTIME_ID);

	sleeper->result = h_recv_block(sleeper->nq, &entry, (int64_t)sleeper->ns);
	sleeper->cpu = cpu_of(CLOCK_THREAD_CPUTIME_ID) - before;
	return NULL;
}

static int watch(struct idle *idle)
{
	uint32_t ms = idle->options->point_ms ? idle->options->point_ms : DEFAULT_MS;
	struct sleeper sleeper = { .ns = ms * NSEC_PER_MSEC };
	double own, engine;
	pthread_t thread;
	uint64_t start;

	if (h_nq_create(idle->contexts.devs[0], 16, &sleeper.nq) < 0)
		return fail("no NQ to sleep on");
	sleep_ns(SETTLE_NS);
	engine = kthreads_cpu(&idle->threads);
	own = cpu_of(CLOCK_PROCESS_CPUTIME_ID);
	start = clock_ns();
	if (pthread_create(&thread, NULL, sleep_in_recv, &sleeper))
		return fail("no thread");
	pthread_join(thread, NULL);
	idle->own = cpu_of(CLOCK_PROCESS_CPUTIME_ID) - own - sleeper.cpu;
	idle->engine = kthreads_cpu(&idle->threads) - engine;
	idle->seconds = (double)(clock_ns() - start) / 1e9;
	idle->own /= idle->seconds;
	idle->engine /= idle->seconds;
	idle->sleeper = sleeper.cpu / idle->seconds;
	return sleeper.result == -ETIMEDOUT ? 0 : fail("h_recv_block() that had nothing to "
						       "receive returned %d", sleeper.result);
}

/* ---- falling asleep, waking up ------------------------------------------ */

static int message(struct idle *idle)
{
	uint64_t data[MESSAGE / 8] = { ++idle->number, 1 };
	struct hamlyn_nq_entry entry;

	if (endpoint_send(&idle->ep, &idle->ep.own, data, sizeof(data)) < 0 ||
	    endpoint_recv(&idle->ep, &entry) < 0)
		return -1;
	return memcmp(h_area_addr(idle->ep.in), data, sizeof(data)) ?
	       fail("a message did not arrive as it was sent") : 0;
}

/* Returns what one of them took. */
static int busy(struct idle *idle, double *each)
{
	uint64_t start = clock_ns();
	uint64_t now = start;
	uint32_t i;

	for (i = 0; i < BUSY_SENDS && now < start + BUSY_NS; i++) {
		if (message(idle) < 0)
			return -1;
		if (i % 64 == 63)
			now = clock_ns();
	}
	*each = (double)(clock_ns() - start) / i;
	return 0;
}

/* @ns: what it took, or how long we waited for it */
static bool falls_asleep(const struct idle *idle, double *ns)
{
	uint64_t start = clock_ns();
	uint64_t now;

	do {
		if (!kthreads_run(&idle->threads))
			break;
		now = clock_ns();
	} while (now - start < ASLEEP_NS);
	*ns = (double)(clock_ns() - start);
	return *ns < (double)ASLEEP_NS;
}

static uint64_t kicks(struct idle *idle)
{
	struct hamlyn_stats stats = { 0 };

	return h_terminus_stats(idle->ep.terminus, &stats) < 0 ? 0 : stats.kicks;
}

static int first_message(struct idle *idle, double cost, double *ns)
{
	uint64_t before = kicks(idle);
	uint64_t start = clock_ns();

	if (message(idle) < 0)
		return -1;
	*ns = (double)(clock_ns() - start) - cost;
	idle->kicks += (double)(kicks(idle) - before) / idle->n;
	return 0;
}

static int rounds(struct idle *idle, double *asleep, double *waking, double *awake)
{
	double cost = clock_cost();
	uint32_t i;

	for (i = 0; i < idle->n; i++) {
		if (busy(idle, &awake[i]) < 0)
			return -1;
		if (!falls_asleep(idle, &asleep[i]))
			return fail("the NIC's threads still run 2 s after the last message "
				    "(does somebody else send?)");
		/* Deeply asleep, and everybody's caches used for something else. */
		sleep_ns(NSEC_PER_MSEC);
		if (first_message(idle, cost, &waking[i]) < 0)
			return -1;
	}
	return 0;
}

static void evaluate(struct idle *idle, double *asleep, double *waking, double *awake)
{
	idle->awake = stats_median(awake, idle->n);
	idle->asleep = stats_median(asleep, idle->n);
	idle->asleep_p99 = stats_quantile(asleep, idle->n, 0.99);
	idle->waking = stats_median(waking, idle->n);
	idle->waking_p99 = stats_quantile(waking, idle->n, 0.99);
}

static int wake_and_sleep(struct idle *idle)
{
	const struct endpoint_attr attr = { .bytes = 4096, .metas = 1, .notifications = 31 };
	double *asleep = calloc(3 * (size_t)idle->n, sizeof(*asleep));
	double *waking = asleep + idle->n;
	double *awake = waking + idle->n;
	int ret;

	if (!asleep)
		return fail("out of memory");
	ret = endpoint_open(&idle->ep, idle->options, &attr);
	if (!ret) {
		ret = rounds(idle, asleep, waking, awake);
		endpoint_close(&idle->ep);
	}
	if (!ret)
		evaluate(idle, asleep, waking, awake);
	free(asleep);
	return ret;
}

/* ---- report ------------------------------------------------------------- */

enum {
	COL_CONTEXTS,
	COL_FIRST,
	COL_LAST,
	COL_SECONDS,
	COL_OWN,
	COL_SLEEPER,
	COL_ENGINES,
	COL_ENGINE,
	COL_ASLEEP,
	COL_ASLEEP_P99,
	COL_WAKING,
	COL_WAKING_P99,
	COL_AWAKE,
	COL_KICKS,
	COLS,
};

static const struct column columns[COLS] = {
	{ "contexts", "contexts", COLUMN_COUNT, 8 },
	{ "first_open_ns", "open first", COLUMN_NS, 10 },
	{ "last_open_ns", "open last", COLUMN_NS, 10 },
	{ "seconds", "seconds", COLUMN_NUMBER, 7 },
	{ "process_cpu", "process", COLUMN_NUMBER, 8 },
	{ "blocked_cpu", "blocked", COLUMN_NUMBER, 8 },
	{ "engines", "engines", COLUMN_COUNT, 7 },
	{ "engine_cpu", "threads", COLUMN_NUMBER, 8 },
	{ "asleep_after_ns", "asleep", COLUMN_NS, 9 },
	{ "asleep_after_p99_ns", "p99", COLUMN_NS, 9 },
	{ "first_message_ns", "first msg", COLUMN_NS, 9 },
	{ "first_message_p99_ns", "p99", COLUMN_NS, 9 },
	{ "message_ns", "message", COLUMN_NS, 9 },
	{ "kicks_of_first", "kicks", COLUMN_NUMBER, 6 },
};

static void print(const struct idle *idle, double foreign)
{
	const struct table table = {
		.options = idle->options, .test = "idle", .columns = columns, .ncolumns = COLS,
	};
	bool seen = idle->threads.count;
	const struct cell cells[COLS] = {
		CELL(idle->contexts.count), CELL(idle->first_open), CELL(idle->last_open),
		CELL(idle->seconds), CELL(idle->own), CELL(idle->sleeper),
		CELL(idle->engines),
		seen ? CELL(idle->engine) : CELL_NONE,
		seen ? CELL(idle->asleep) : CELL_NONE,
		seen ? CELL(idle->asleep_p99) : CELL_NONE,
		CELL(idle->waking), CELL(idle->waking_p99), CELL(idle->awake),
		CELL(idle->kicks),
	};

	if (idle->options->format == FORMAT_TABLE)
		report_machine();
	table_names(&table);
	table_head(&table, "idle contexts; CPU seconds per second of their process, of a receiver "
		   "blocked in\nh_recv_block(), and of the NIC's threads; how soon those\nsleep; "
		   "the first message after a pause, to itself, and one of many");
	table_row(&table, "hamlyn", cells);
	if (idle->options->format == FORMAT_TABLE && !idle->embedded && idle->engines && !seen)
		printf("the NIC has %u threads, but none is to be seen in /proc (a PID "
		       "namespace?)\n", idle->engines);
	table_end(&table, foreign);
}

static int ask_nic(struct idle *idle)
{
	struct h_dev *dev = idle->contexts.devs[0];
	struct hamlyn_query query;

	idle->embedded = h_dev_is_embedded(dev);
	if (h_query(dev, &query) < 0)
		return fail("the NIC does not tell its limits");
	idle->engines = query.engines;
	if (!idle->embedded && query.engines)
		kthreads_find(&idle->threads, h_dev_name(dev));
	return 0;
}

static int run(struct idle *idle)
{
	if (open_all(idle) < 0 || ask_nic(idle) < 0)
		return -1;
	return watch(idle) < 0 ? -1 : wake_and_sleep(idle);
}

int cmd_idle(const struct options *options)
{
	struct idle idle = {
		.options = options,
		.wanted = options->count ? options->count : DEFAULT_COUNT,
		.n = options->n ? (uint32_t)options->n : DEFAULT_N,
	};
	struct load before, after;
	int ret;

	if (idle.wanted > MAX_COUNT || options->n > MAX_N)
		return fail_usage("idle takes --count up to %d and --n up to %d", MAX_COUNT, MAX_N);
	wait_setup(options->ncpus, options->timeout_s);
	if (pair_pin(options->cpus[0]) < 0)
		return -1;
	load_look(&before, options);
	ret = run(&idle);
	load_look(&after, options);
	if (!ret)
		print(&idle, load_foreign(&before, &after));
	if (!ret && options->count && idle.contexts.count < options->count)
		ret = fail("only %u of %u contexts: %s", idle.contexts.count, options->count,
			   idle.contexts.why);
	contexts_close(&idle.contexts);
	return ret;
}
