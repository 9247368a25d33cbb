// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waking: the receiver sleeps, the sender sends; how long until the receiver's
 * first instruction? All kinds take turns, so that what the machine does
 * meanwhile meets all alike. The sender sees in /proc that the receiver sleeps
 * before it sends, and counts its kicks: with one the NIC's engine was asleep,
 * without one it was awake. Rows "awake" keep it awake by messages to the sender
 * itself. In the rows "poll" the receiver does not sleep but polls its NQ: what
 * the first message costs that finds the engine asleep.
 */
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/crew.h"
#include "load/duo.h"
#include "load/load.h"
#include "report/report.h"
#include "base/stats.h"
#include "report/table.h"

#define DEFAULT_N	200
#define MAX_N		10000
#define MIN_PAUSE_NS	(300 * 1000ULL)	/* longer than h_recv_block() polls */
#define MAX_PAUSE_NS	(100 * NSEC_PER_MSEC)
#define AWAKE_SENDS	4096		/* at least, to wake the engine */

/* What both sides see. */
struct bed {
	uint32_t going;		/* round that the receiver is about to sleep in */
	uint32_t risen;		/* round that it woke up in */
	uint64_t time;		/* when it did */
	pid_t pid;		/* the receiver */
	uint32_t futex;
};

struct wake;

struct wake_kind {
	const char *system;
	const char *how;
	int (*sleep)(struct wake *w);	/* receiver: returns when it was woken */
	int (*fire)(struct wake *w);
	bool hamlyn;
	bool awake;		/* the engine is */
	bool needs_fd;
	bool spins;
};

struct wake {
	struct duo duo;
	struct bed *bed;
	uint32_t round;
	int64_t patience_ns;
	int pipe[2];
	int event;
	int epoll;
	uint64_t pause_ns;	/* until the engine sleeps */
};

/* ---- Hamlyn ------------------------------------------------------------- */

static int rise(struct wake *w)
{
	w->bed->time = clock_ns();
	return 0;
}

static int hamlyn_took(struct wake *w, int n)
{
	uint64_t value;

	if (n == -ETIMEDOUT)
		return endpoint_silence(&w->duo.ep);
	if (n <= 0)
		return endpoint_recv_odd(&w->duo.ep, n);
	if (duo_look(&w->duo, &value) < 0)
		return -1;
	return value == w->round ? 0 : fail("woken by a message of another round");
}

static int block_sleep(struct wake *w)
{
	struct hamlyn_nq_entry entry;
	int n = h_recv_block(w->duo.ep.nq, &entry, w->patience_ns);

	rise(w);
	return hamlyn_took(w, n ? n : 1);
}

/* The NQs are armed by looking at the descriptor, so there is a look behind it. */
static int fd_took(struct wake *w, int ready)
{
	struct hamlyn_nq_entry entry;
	struct wait wait = WAIT("notification that poll() had promised");
	int n;

	if (ready <= 0)
		return fail("poll() on the device: %s",
			    ready ? strerror(errno) : "nothing in time (--timeout)");
	while (!(n = h_recv(w->duo.ep.nq, &entry)))
		if (!wait_more(&wait))
			return -1;
	return hamlyn_took(w, n);
}

static int poll_sleep(struct wake *w)
{
	struct pollfd pfd = { .fd = h_dev_fd(w->duo.ep.dev), .events = POLLIN };
	int ready = poll(&pfd, 1, (int)(w->patience_ns / (int64_t)NSEC_PER_MSEC));

	rise(w);
	return fd_took(w, ready);
}

static int epoll_sleep(struct wake *w)
{
	struct epoll_event event = { .events = EPOLLIN };
	int ready;

	if (w->epoll < 0) {
		w->epoll = epoll_create1(EPOLL_CLOEXEC);
		if (w->epoll < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD,
					      h_dev_fd(w->duo.ep.dev), &event) < 0)
			return fail("epoll on the device: %s", strerror(errno));
	}
	ready = epoll_wait(w->epoll, &event, 1,
			   (int)(w->patience_ns / (int64_t)NSEC_PER_MSEC));
	rise(w);
	return fd_took(w, ready);
}

static int spin_sleep(struct wake *w)
{
	struct wait wait = WAIT(NULL);
	struct hamlyn_nq_entry entry;
	int n;

	while (!(n = h_recv(w->duo.ep.nq, &entry)))
		if (!wait_more(&wait))
			return endpoint_silence(&w->duo.ep);
	rise(w);
	return hamlyn_took(w, n);
}

static int hamlyn_fire(struct wake *w)
{
	return duo_send(&w->duo, w->round);
}

/* ---- what else there is -------------------------------------------------- */

/* If the sender is gone, the parent ends the receiver: these waits need no limit. */
static int fd_sleep(struct wake *w, int fd)
{
	uint64_t value = 0;
	ssize_t n = read(fd, &value, sizeof(value));

	rise(w);
	return n == sizeof(value) && value == w->round ?
	       0 : fail("woken by another round's write");
}

static int fd_fire(struct wake *w, int fd)
{
	uint64_t value = w->round;

	return write(fd, &value, sizeof(value)) == sizeof(value) ?
	       0 : fail("cannot write: %s", strerror(errno));
}

static int pipe_sleep(struct wake *w)
{
	return fd_sleep(w, w->pipe[0]);
}

static int pipe_fire(struct wake *w)
{
	return fd_fire(w, w->pipe[1]);
}

static int event_sleep(struct wake *w)
{
	return fd_sleep(w, w->event);
}

static int event_fire(struct wake *w)
{
	return fd_fire(w, w->event);
}

static int futex_sleep(struct wake *w)
{
	struct timespec limit = { .tv_sec = (time_t)(w->patience_ns / 1000000000) };
	uint32_t *word = &w->bed->futex;
	uint32_t seen;
	long ret;

	do {
		seen = __atomic_load_n(word, __ATOMIC_ACQUIRE);
		if (seen == w->round)
			break;
		ret = syscall(SYS_futex, word, FUTEX_WAIT, seen, &limit, NULL, 0);
		if (ret < 0 && errno == ETIMEDOUT)
			return fail("nobody woke the futex (--timeout)");
	} while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != w->round);
	return rise(w);
}

static int futex_fire(struct wake *w)
{
	__atomic_store_n(&w->bed->futex, w->round, __ATOMIC_RELEASE);
	syscall(SYS_futex, &w->bed->futex, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return 0;
}

static const struct wake_kind kinds[] = {
	{ "hamlyn-block", "h_recv_block()", block_sleep, hamlyn_fire, .hamlyn = true },
	{ "hamlyn-block", "h_recv_block()", block_sleep, hamlyn_fire, .hamlyn = true,
	  .awake = true },
	{ "hamlyn-poll", "poll()", poll_sleep, hamlyn_fire, .hamlyn = true, .needs_fd = true },
	{ "hamlyn-poll", "poll()", poll_sleep, hamlyn_fire, .hamlyn = true, .awake = true,
	  .needs_fd = true },
	{ "hamlyn-epoll", "epoll_wait()", epoll_sleep, hamlyn_fire, .hamlyn = true,
	  .needs_fd = true },
	{ "hamlyn", "receiver polls", spin_sleep, hamlyn_fire, .hamlyn = true, .spins = true },
	{ "hamlyn", "receiver polls", spin_sleep, hamlyn_fire, .hamlyn = true, .awake = true,
	  .spins = true },
	{ "pipe", "read()", pipe_sleep, pipe_fire, .hamlyn = false },
	{ "eventfd", "read()", event_sleep, event_fire, .hamlyn = false },
	{ "futex", "limit", futex_sleep, futex_fire, .hamlyn = false },
};

#define KINDS	ARRAY_SIZE(kinds)

struct plan {
	uint32_t n;
	bool engine;		/* of the NIC: there is a thread that may be awake */
	bool fd;		/* the device has one */
	int pipe[2];
	int event;
};

/* What comes out of it, in shared memory. */
struct outcome {
	struct bed bed;
	uint32_t counts[KINDS];
	double samples[KINDS][MAX_N];
};

static bool takes_part(const struct plan *plan, const struct wake_kind *kind)
{
	return (!kind->awake || plan->engine) && (!kind->needs_fd || plan->fd);
}

/* ---- the receiver ------------------------------------------------------- */

static int lie_down(struct wake *w, const struct wake_kind *kind)
{
	__atomic_store_n(&w->bed->going, w->round, __ATOMIC_RELEASE);
	if (kind->sleep(w) < 0)
		return -1;
	__atomic_store_n(&w->bed->risen, w->round, __ATOMIC_RELEASE);
	return 0;
}

/* ---- the sender --------------------------------------------------------- */

static int await(const uint32_t *word, uint32_t value, const char *what)
{
	struct wait wait = WAIT(what);

	while (__atomic_load_n(word, __ATOMIC_ACQUIRE) != value)
		if (!wait_more(&wait))
			return -1;
	return 0;
}

static bool sleeps(pid_t pid)
{
	char path[32], text[256];
	const char *state;
	size_t n;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	file = fopen(path, "r");
	if (!file)
		return false;
	n = fread(text, 1, sizeof(text) - 1, file);
	fclose(file);
	text[n] = 0;
	state = strrchr(text, ')');
	return state && state[1] == ' ' && state[2] == 'S';
}

/* Nobody is told of them; the NIC works all the same. */
static int send_self(struct wake *w)
{
	struct h_ticket own = w->duo.ep.own;
	const struct h_msg msg = {
		.ticket = &own, .offset = 64, .data = &own, .length = 16,
		.flags = HAMLYN_TRB_NO_NOTIFY,
	};
	int64_t handle = h_send(w->duo.ep.terminus, &msg);

	return handle < 0 && handle != -EAGAIN ? fail("send: %s", strerror((int)-handle)) : 0;
}

static int keep_awake(struct wake *w, uint64_t until)
{
	uint32_t i;

	for (i = 0; i < AWAKE_SENDS || clock_ns() < until; i++)
		if (send_self(w) < 0)
			return -1;
	return 0;
}

static void rest_until(uint64_t time)
{
	struct timespec pause = { .tv_nsec = 50000 };

	while (clock_ns() < time)
		nanosleep(&pause, NULL);
}

/* Returns with the receiver asleep, if it is to be, and the engine as it is to be. */
static int await_sleep(struct wake *w, const struct wake_kind *kind)
{
	uint64_t limit = clock_ns() + (uint64_t)w->patience_ns;
	uint64_t pause = kind->hamlyn && !kind->awake ? w->pause_ns : MIN_PAUSE_NS;
	bool asleep;

	do {
		if (clock_ns() > limit)
			return fail("%s: the receiver does not sleep", kind->how);
		if (!kind->awake)
			rest_until(clock_ns() + pause);
		else if (keep_awake(w, clock_ns() + pause) < 0)
			return -1;
		asleep = kind->spins || sleeps(w->bed->pid);
	} while (!asleep);
	/* Looking took time in which an engine may have dozed off. */
	return kind->awake ? keep_awake(w, 0) : 0;
}

/* Returns 1 if the sample counts, 0 if the engine was not as it was to be. */
static int shoot(struct wake *w, const struct plan *plan, const struct wake_kind *kind,
		 double cost, double *ns)
{
	uint64_t kicks = kind->hamlyn ? duo_kicks(&w->duo) : 0;
	uint64_t start;
	bool awake;

	/* That was a system call. */
	if (kind->awake && keep_awake(w, 0) < 0)
		return -1;
	if (kind->awake)
		kicks = duo_kicks(&w->duo);
	start = clock_ns();
	if (kind->fire(w) < 0)
		return -1;
	awake = kind->hamlyn && duo_kicks(&w->duo) == kicks;
	if (await(&w->bed->risen, w->round, "sign that the receiver woke up") < 0)
		return -1;
	*ns = (double)(int64_t)(w->bed->time - start) - cost;
	if (!kind->hamlyn || !plan->engine)
		return 1;
	/* It dozes later than thought. */
	if (awake && !kind->awake && w->pause_ns < MAX_PAUSE_NS)
		w->pause_ns *= 2;
	return awake == kind->awake;
}

static int lead(struct wake *w, const struct plan *plan, struct outcome *outcome,
		uint32_t kind, double cost)
{
	double ns;
	int ret;

	if (await(&w->bed->going, w->round, "receiver") < 0 ||
	    await_sleep(w, &kinds[kind]) < 0)
		return -1;
	ret = shoot(w, plan, &kinds[kind], cost, &ns);
	if (ret > 0 && ns > 0)
		outcome->samples[kind][outcome->counts[kind]++] = ns;
	return ret < 0 ? -1 : 0;
}

/* ---- both --------------------------------------------------------------- */

static int run_rounds(struct wake *w, const struct plan *plan, struct outcome *outcome,
		      bool receiver)
{
	double cost = clock_cost();
	uint32_t i, kind;
	int ret;

	for (i = 0; i < plan->n; i++)
		for (kind = 0; kind < KINDS; kind++) {
			if (!takes_part(plan, &kinds[kind]))
				continue;
			w->round++;
			ret = receiver ? lie_down(w, &kinds[kind]) :
					 lead(w, plan, outcome, kind, cost);
			if (ret < 0)
				return -1;
		}
	return 0;
}

static int run_side(struct side *side, void *arg)
{
	const struct plan *plan = arg;
	struct outcome *outcome = side->shared;
	struct wake w = {
		.bed = &outcome->bed, .epoll = -1, .event = plan->event,
		.pipe = { plan->pipe[0], plan->pipe[1] }, .pause_ns = MIN_PAUSE_NS,
		.patience_ns = (int64_t)(side->options->timeout_s * NSEC_PER_SEC),
	};
	int ret;

	if (side->id)
		w.bed->pid = getpid();
	if (duo_open(&w.duo, side, 4096) < 0)
		return -1;
	ret = run_rounds(&w, plan, outcome, side->id);
	if (w.epoll >= 0)
		close(w.epoll);
	return duo_close(&w.duo, ret);
}

/* ---- report ------------------------------------------------------------- */

enum {
	COL_HOW,
	COL_ENGINE,
	COL_MIN,
	COL_MEDIAN,
	COL_P90,
	COL_P99,
	COL_MAX,
	COL_N,
	COLS,
};

static const struct column columns[COLS] = {
	{ "how", "how", COLUMN_TEXT, 15 },
	{ "engine", "engine", COLUMN_TEXT, 8 },
	{ "min_ns", "min", COLUMN_NS, 9 },
	{ "median_ns", "median", COLUMN_NS, 9 },
	{ "p90_ns", "p90", COLUMN_NS, 9 },
	{ "p99_ns", "p99", COLUMN_NS, 9 },
	{ "max_ns", "max", COLUMN_NS, 9 },
	{ "samples", "samples", COLUMN_COUNT, 8 },
};

static void print_kind(const struct table *table, const struct plan *plan,
		       const struct wake_kind *kind, double *ns, uint32_t n)
{
	const char *engine = !kind->hamlyn ? "-" : !plan->engine ? "none" :
			     kind->awake ? "awake" : "asleep";
	struct cell cells[COLS] = {
		CELL_TEXT(kind->how), CELL_TEXT(engine), CELL_NONE, CELL_NONE, CELL_NONE,
		CELL_NONE, CELL_NONE, CELL(n),
	};

	stats_sort(ns, n);
	if (n) {
		cells[COL_MIN] = CELL(ns[0]);
		cells[COL_MEDIAN] = CELL(stats_quantile(ns, n, 0.5));
		cells[COL_P90] = CELL(stats_quantile(ns, n, 0.9));
		cells[COL_P99] = CELL(stats_quantile(ns, n, 0.99));
		cells[COL_MAX] = CELL(ns[n - 1]);
	}
	table_row(table, kind->system, cells);
}

static void print(const struct options *options, const struct plan *plan,
		  struct outcome *outcome, double foreign)
{
	const struct table table = {
		.options = options, .test = "wake", .columns = columns, .ncolumns = COLS,
	};
	uint32_t i;

	if (options->format == FORMAT_TABLE)
		report_machine();
	table_names(&table);
	table_head(&table, "from the send to the receiver's first instruction after waking up");
	for (i = 0; i < KINDS; i++)
		if (takes_part(plan, &kinds[i]))
			print_kind(&table, plan, &kinds[i], outcome->samples[i],
				   outcome->counts[i]);
	if (options->format == FORMAT_TABLE && !plan->fd)
		printf("the embedded device has no descriptor for poll(), and no engine: the "
		       "sender does the work\n");
	table_end(&table, foreign);
}

static int ask_nic(struct plan *plan, const struct options *options)
{
	struct hamlyn_query query;
	struct h_dev *dev;
	int ret;

	if (endpoint_device(&dev, options) < 0)
		return -1;
	plan->fd = !h_dev_is_embedded(dev);
	ret = h_query(dev, &query);
	h_close(dev);
	plan->engine = query.engines > 0;
	return ret < 0 ? fail("the NIC does not tell its limits: %s", strerror(-ret)) : 0;
}

static int run(struct plan *plan, const struct options *options)
{
	struct outcome *outcome = crew_shared_new(sizeof(*outcome));
	struct load before, after;
	int ret;

	if (!outcome)
		return -1;
	load_look(&before, options);
	ret = pair_run(options, run_side, plan, outcome);
	load_look(&after, options);
	if (!ret)
		print(options, plan, outcome, load_foreign(&before, &after));
	crew_shared_free(outcome, sizeof(*outcome));
	return ret;
}

int cmd_wake(const struct options *options)
{
	struct plan plan = { .n = options->n ? (uint32_t)options->n : DEFAULT_N };
	int ret;

	if (options->n > MAX_N)
		return fail_usage("wake takes --n up to %d", MAX_N);
	if (ask_nic(&plan, options) < 0)
		return -1;
	plan.event = eventfd(0, EFD_CLOEXEC);
	if (plan.event < 0 || pipe(plan.pipe) < 0)
		return fail("no pipe or eventfd: %s", strerror(errno));
	ret = run(&plan, options);
	close(plan.event);
	close(plan.pipe[0]);
	close(plan.pipe[1]);
	return ret;
}
