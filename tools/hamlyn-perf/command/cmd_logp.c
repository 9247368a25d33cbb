// SPDX-License-Identifier: GPL-2.0-only
/*
 * The parameters of the LogP and LogGP models, after the microbenchmarks of
 * Culler, Liu, Martin, Yoshikawa: "LogP Performance Assessment of Fast Network
 * Interfaces" (IEEE Micro, 1996), and Alexandrov et al. (SPAA 1995) for G.
 *
 * o_s	the processor's time to send: time until FEW messages are issued, without
 *	waiting for anything, divided by FEW.
 * o_r	the processor's time to receive: one side sends, works for longer than a
 *	round trip takes, and only then receives what is there already.
 * g	the gap: of two trains of messages of different length, the difference of
 *	the times until the other side has received all, by that of the lengths.
 * G	the gap per byte: the same of two sizes, by the difference of the sizes.
 * L	the latency: half of the round trip less o_s and o_r.
 *
 * L, o_s and o_r add up to half of a round trip because that is how L is found.
 * So there are checks of figures that nothing was derived from: one way timed by
 * two clock readings, one on each side (there and back, so that it does not
 * matter if the two processors' clocks differ; "skew" is half of what they seem
 * to differ), by L + o_s + o_r; and a train of TRAIN_CHECKED messages and its answer
 * by what the model says of it, 2 (L + o_s + o_r) + (M - 1) max(g, o_s).
 *
 * The signature is the classical one: time to issue a message in a train of M,
 * with work behind each. Short trains show o_s; long ones what the NIC takes, if
 * that is more (g); with enough work o_s again.
 *
 * All of it is repeated, and what is derived is derived in each repetition: how
 * far apart two virtual processors are may change from one second to the next.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "load/crew.h"
#include "load/duo.h"
#include "load/load.h"
#include "report/report.h"
#include "base/stats.h"
#include "report/table.h"

#define FEW		8
#define TRAIN_CHECKED	64
#define TRAIN		1024	/* the longest one, of short messages */
#define LONG_TRAIN	32	/* of long ones */
#define SIZE_A		4096
#define SIZE_B		65536
#define AREA		((size_t)LONG_TRAIN * SIZE_B)
#define DEFAULT_N	40	/* rounds for each figure in a repetition */
#define MAX_N		100000
#define DEFAULT_REPS	7
#define WARM_UP		16
#define WARM_TRAINS	2
#define MIN_WORK_NS	2000.0
#define WORK_STEPS	6

static const uint32_t trains[] = { 1, 2, 4, FEW, 16, 32, 64, 128, 256, TRAIN / 2, TRAIN };

#define TRAINS	ARRAY_SIZE(trains)

struct signature {
	uint32_t messages;
	double work_ns;		/* behind each */
	double issue_ns;	/* each message, without the work */
	double total_ns;	/* each, until all were received and that was told */
	double kicks;		/* system calls each */
};

struct logp {
	double os, or, g, gap_byte, latency;
	double rtt, one_way, skew;
	double train_check;	/* measured by model */
	double kicks;		/* system calls per message of the round trips */
	struct signature trains[TRAINS];
	struct signature work[WORK_STEPS];
};

struct run {
	struct duo duo;
	struct logp *logp;	/* shared; side 0 writes it */
	uint32_t n;
	double cost;		/* of the clock */
	double loops_per_ns;
	double *samples[2];
};

/* ---- work --------------------------------------------------------------- */

static void work(uint64_t loops)
{
	uint64_t i;

	for (i = 0; i < loops; i++)
		__asm__ volatile("" : : : "memory");
}

static double loops_per_ns(void)
{
	const uint64_t loops = 20000;
	uint64_t start, ns, best = UINT64_MAX;
	int try;

	for (try = 0; try < 5; try++) {
		start = clock_ns();
		work(loops);
		ns = clock_ns() - start;
		if (ns < best)
			best = ns;
	}
	return (double)loops / (double)(best ? best : 1);
}

static void work_until(uint64_t time)
{
	while (clock_ns() < time)
		__asm__ volatile("" : : : "memory");
}

/* ---- trains ------------------------------------------------------------- */

struct train {
	uint32_t messages;
	uint64_t loops;		/* of work behind each message */
};

/* Time for the sends alone: what the work takes is found out right after. */
static int issue(struct run *run, const struct train *train, double *ns)
{
	uint64_t start = clock_ns();
	uint32_t i;

	for (i = 0; i < train->messages; i++) {
		if (duo_send(&run->duo, i) < 0)
			return -1;
		if (train->loops)
			work(train->loops);
	}
	*ns = (double)(clock_ns() - start) - run->cost;
	return 0;
}

static double work_alone(const struct run *run, const struct train *train)
{
	uint64_t start = clock_ns();
	uint32_t i;

	if (!train->loops)
		return 0;
	for (i = 0; i < train->messages; i++)
		work(train->loops);
	return (double)(clock_ns() - start) - run->cost;
}

/* Side 1 answers when it has all. */
static int lead_train(struct run *run, const struct train *train, struct signature *s)
{
	double *issued = run->samples[0], *total = run->samples[1];
	uint64_t start, value, kicks = duo_kicks(&run->duo);
	uint32_t rounds = WARM_TRAINS + run->n;
	double alone = 0;
	uint32_t i, at;

	for (i = 0; i < rounds; i++) {
		at = i < WARM_TRAINS ? 0 : i - WARM_TRAINS;
		start = clock_ns();
		if (issue(run, train, &issued[at]) < 0 || duo_take(&run->duo, &value) < 0)
			return -1;
		total[at] = (double)(clock_ns() - start) - run->cost;
		alone = work_alone(run, train);
		issued[at] -= alone;
	}
	s->kicks = (double)(duo_kicks(&run->duo) - kicks) / ((double)rounds * train->messages);
	s->messages = train->messages;
	s->work_ns = alone / train->messages;
	s->issue_ns = stats_median(issued, run->n) / train->messages;
	s->total_ns = stats_median(total, run->n) / train->messages;
	return 0;
}

static int follow_train(struct run *run, const struct train *train)
{
	uint64_t value;
	uint32_t i, m;

	for (i = 0; i < WARM_TRAINS + run->n; i++) {
		for (m = 0; m < train->messages; m++)
			if (duo_take(&run->duo, &value) < 0)
				return -1;
		if (duo_send(&run->duo, i) < 0)
			return -1;
	}
	return 0;
}

static int one_train(struct run *run, const struct train *train, struct signature *s)
{
	return run->duo.side->id ? follow_train(run, train) : lead_train(run, train, s);
}

/* o_s, and g by the two longest trains; the queue is full in these. */
static int measure_trains(struct run *run)
{
	struct logp *logp = run->logp;
	struct signature *s = logp->trains;
	uint32_t i;

	for (i = 0; i < TRAINS; i++) {
		struct train train = { .messages = trains[i] };

		if (one_train(run, &train, &s[i]) < 0)
			return -1;
		if (trains[i] == FEW)
			logp->os = s[i].issue_ns;
	}
	logp->g = (s[TRAINS - 1].total_ns * TRAIN - s[TRAINS - 2].total_ns * (TRAIN / 2)) /
		  (TRAIN / 2);
	return 0;
}

/* Work of 1/4, 1/2, 1, 2, 4, 8 gaps behind each of 256 messages. */
static int measure_work(struct run *run)
{
	double gap = run->logp->g > 1 ? run->logp->g : 1;
	uint32_t i;

	for (i = 0; i < WORK_STEPS; i++) {
		double ns = gap * (double)(1U << i) / 4;
		struct train train = { 256, 1 + (uint64_t)(ns * run->loops_per_ns) };

		if (one_train(run, &train, &run->logp->work[i]) < 0)
			return -1;
	}
	return 0;
}

/* ---- round trips -------------------------------------------------------- */

static int follow_trips(struct run *run)
{
	uint64_t value;
	uint32_t i;

	for (i = 0; i < WARM_UP + run->n; i++)
		if (duo_take(&run->duo, &value) < 0 || duo_send(&run->duo, i) < 0)
			return -1;
	return 0;
}

static int measure_rtt(struct run *run)
{
	uint64_t start, value, kicks;
	uint32_t i;

	if (run->duo.side->id)
		return follow_trips(run);
	kicks = duo_kicks(&run->duo);
	for (i = 0; i < WARM_UP + run->n; i++) {
		start = clock_ns();
		if (duo_send(&run->duo, i) < 0 || duo_take(&run->duo, &value) < 0)
			return -1;
		run->samples[0][i < WARM_UP ? 0 : i - WARM_UP] =
			(double)(clock_ns() - start) - run->cost;
	}
	run->logp->rtt = stats_median(run->samples[0], run->n);
	run->logp->kicks = (double)(duo_kicks(&run->duo) - kicks) / (WARM_UP + run->n);
	return 0;
}

static void check_train(struct logp *logp)
{
	double each = logp->g > logp->os ? logp->g : logp->os;
	double model = logp->rtt + (TRAIN_CHECKED - 1) * each;
	uint32_t i;

	for (i = 0; i < TRAINS; i++)
		if (trains[i] == TRAIN_CHECKED)
			logp->train_check = logp->trains[i].total_ns * TRAIN_CHECKED / model;
}

/* Between sending and receiving there is work for several round trips. */
static int measure_or(struct run *run)
{
	struct logp *logp = run->logp;
	uint64_t start, value;
	double wait_ns;
	uint32_t i;

	if (run->duo.side->id)
		return follow_trips(run);
	wait_ns = logp->rtt * 4 > MIN_WORK_NS ? logp->rtt * 4 : MIN_WORK_NS;
	for (i = 0; i < WARM_UP + run->n; i++) {
		start = clock_ns();
		if (duo_send(&run->duo, i) < 0)
			return -1;
		work_until(start + (uint64_t)wait_ns);
		start = clock_ns();
		if (duo_take(&run->duo, &value) < 0)
			return -1;
		run->samples[0][i < WARM_UP ? 0 : i - WARM_UP] =
			(double)(clock_ns() - start) - run->cost;
	}
	logp->or = stats_median(run->samples[0], run->n);
	logp->latency = logp->rtt / 2 - logp->os - logp->or;
	check_train(logp);
	return 0;
}

/* The follower tells when, by its clock, it had the message and sent the answer. */
static int measure_one_way(struct run *run)
{
	double there, back;
	uint64_t start, value;
	uint32_t i, at;

	for (i = 0; i < WARM_UP + run->n; i++) {
		if (run->duo.side->id) {
			if (duo_take(&run->duo, &value) < 0 ||
			    duo_send(&run->duo, clock_ns()) < 0)
				return -1;
			continue;
		}
		at = i < WARM_UP ? 0 : i - WARM_UP;
		start = clock_ns();
		if (duo_send(&run->duo, i) < 0 || duo_take(&run->duo, &value) < 0)
			return -1;
		run->samples[0][at] = (double)(int64_t)(value - start) - run->cost;
		run->samples[1][at] = (double)(int64_t)(clock_ns() - value) - run->cost;
	}
	if (run->duo.side->id)
		return 0;
	there = stats_median(run->samples[0], run->n);
	back = stats_median(run->samples[1], run->n);
	run->logp->one_way = (there + back) / 2;
	run->logp->skew = (there - back) / 2;
	return 0;
}

/* ---- long messages ------------------------------------------------------ */

/* Gap of messages of @size: of a train of all places, and of one of half of them. */
static int gap_of(struct run *run, size_t size, double *gap)
{
	struct train train = { .messages = LONG_TRAIN };
	struct train half_train = { .messages = LONG_TRAIN / 2 };
	struct signature all = { 0 }, half = { 0 };

	if (duo_layout(&run->duo, size, LONG_TRAIN) < 0 ||
	    one_train(run, &train, &all) < 0 || one_train(run, &half_train, &half) < 0)
		return -1;
	*gap = (all.total_ns * LONG_TRAIN - half.total_ns * (LONG_TRAIN / 2)) /
	       (LONG_TRAIN / 2);
	return 0;
}

static int measure_bytes(struct run *run)
{
	double a = 0, b = 0;

	if (gap_of(run, SIZE_A, &a) < 0 || gap_of(run, SIZE_B, &b) < 0)
		return -1;
	if (!run->duo.side->id)
		run->logp->gap_byte = (b - a) / (SIZE_B - SIZE_A);
	return 0;
}

/* ---- both sides --------------------------------------------------------- */

static int measure(struct run *run)
{
	if (duo_layout(&run->duo, DUO_MIN, DUO_PLACES) < 0 || measure_rtt(run) < 0 ||
	    measure_trains(run) < 0 || measure_or(run) < 0 || measure_one_way(run) < 0 ||
	    measure_work(run) < 0)
		return -1;
	return measure_bytes(run);
}

/* Of all repetitions; what side 1 has of figures that only side 0 knows is void. */
static int measure_all(struct run *run, struct side *side, uint32_t reps)
{
	struct logp *results = side->shared;
	struct logp scratch = { 0 };
	uint32_t rep;

	for (rep = 0; rep < reps; rep++) {
		run->logp = side->id ? &scratch : &results[rep];
		run->loops_per_ns = loops_per_ns();
		if (measure(run) < 0)
			return -1;
	}
	return 0;
}

struct effort {
	uint32_t n;
	uint32_t reps;
};

static int run_side(struct side *side, void *arg)
{
	const struct effort *effort = arg;
	struct run run = { .n = effort->n };
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(run.samples); i++) {
		run.samples[i] = calloc(run.n, sizeof(double));
		if (!run.samples[i])
			return fail("out of memory");
	}
	run.cost = clock_cost();
	if (duo_open(&run.duo, side, AREA) < 0)
		return -1;
	return duo_close(&run.duo, measure_all(&run, side, effort->reps));
}

/* ---- the median of all repetitions, figure by figure -------------------- */

/* @offset: of a double in struct logp */
static double median_at(const struct logp *results, uint32_t reps, size_t offset)
{
	return stats_median_at(results, reps, sizeof(*results), offset);
}

#define MEDIAN(field)	median_at(results, reps, offsetof(struct logp, field))

static void median_signature(struct signature *s, const struct logp *results, uint32_t reps,
			     size_t offset)
{
	*s = *(const struct signature *)(const void *)((const char *)results + offset);
	s->work_ns = median_at(results, reps, offset + offsetof(struct signature, work_ns));
	s->issue_ns = median_at(results, reps, offset + offsetof(struct signature, issue_ns));
	s->total_ns = median_at(results, reps, offset + offsetof(struct signature, total_ns));
	s->kicks = median_at(results, reps, offset + offsetof(struct signature, kicks));
}

static void median_of(struct logp *logp, const struct logp *results, uint32_t reps)
{
	uint32_t i;

	logp->os = MEDIAN(os);
	logp->or = MEDIAN(or);
	logp->g = MEDIAN(g);
	logp->gap_byte = MEDIAN(gap_byte);
	logp->latency = MEDIAN(latency);
	logp->rtt = MEDIAN(rtt);
	logp->one_way = MEDIAN(one_way);
	logp->skew = MEDIAN(skew);
	logp->train_check = MEDIAN(train_check);
	logp->kicks = MEDIAN(kicks);
	for (i = 0; i < TRAINS; i++)
		median_signature(&logp->trains[i], results, reps,
				 offsetof(struct logp, trains) + i * sizeof(*logp->trains));
	for (i = 0; i < WORK_STEPS; i++)
		median_signature(&logp->work[i], results, reps,
				 offsetof(struct logp, work) + i * sizeof(*logp->work));
}

/* ---- report ------------------------------------------------------------- */

enum {
	COL_L,
	COL_OS,
	COL_OR,
	COL_G,
	COL_GAP_BYTE,
	COL_HALF_RTT,
	COL_SUM,
	COL_ONE_WAY,
	COL_SKEW,
	COL_RATIO,
	COL_TRAIN,
	COL_KICKS,
	COL_N,
	COLS,
};

static const struct column columns[COLS] = {
	{ "latency_ns", "L", COLUMN_NS, 9 },
	{ "send_overhead_ns", "o_s", COLUMN_NS, 9 },
	{ "receive_overhead_ns", "o_r", COLUMN_NS, 9 },
	{ "gap_ns", "g", COLUMN_NS, 9 },
	{ "gap_per_byte_ns", "G ns/B", COLUMN_NUMBER, 8 },
	{ "half_round_trip_ns", "RTT/2", COLUMN_NS, 9 },
	{ "sum_ns", "L+o_s+o_r", COLUMN_NS, 10 },
	{ "one_way_ns", "one way", COLUMN_NS, 9 },
	{ "skew_ns", "skew", COLUMN_NS, 8 },
	{ "one_way_ratio", "check", COLUMN_RATIO, 7 },
	{ "train_ratio", "train", COLUMN_RATIO, 7 },
	{ "kicks_per_message", "kicks", COLUMN_NUMBER, 7 },
	{ "rounds", "rounds", COLUMN_COUNT, 7 },
};

enum {
	SIG_M,
	SIG_WORK,
	SIG_ISSUE,
	SIG_TOTAL,
	SIG_KICKS,
	SIGS,
};

static const struct column signature_columns[SIGS] = {
	{ "messages", "M", COLUMN_COUNT, 6 },
	{ "work_ns", "work", COLUMN_NS, 10 },
	{ "issue_ns", "issue", COLUMN_NS, 10 },
	{ "total_ns", "all", COLUMN_NS, 10 },
	{ "kicks_per_message", "kicks", COLUMN_NUMBER, 7 },
};

static void print_signature(struct table *table, const struct signature *s, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct cell cells[SIGS] = {
			CELL(s[i].messages), CELL(s[i].work_ns), CELL(s[i].issue_ns),
			CELL(s[i].total_ns), CELL(s[i].kicks),
		};

		table_row(table, "hamlyn", cells);
	}
}

/* A difference that noise has made negative is no measurement. */
static struct cell possible(double value)
{
	return value > 0 ? CELL(value) : CELL_NONE;
}

/* What the reader has to know to believe it, or not. */
static void print_doubts(const struct options *options, const struct logp *logp)
{
	if (options->format != FORMAT_TABLE)
		return;
	if (logp->g <= 0 || logp->gap_byte <= 0)
		printf("-: noise was larger than what was to be measured\n");
	if (logp->latency <= 0)
		printf("L is not above 0: round trips and trains found the NIC, or the machine, "
		       "in different states\n(compare the kicks)\n");
}

static void print(const struct options *options, const struct logp *logp, uint32_t n,
		  double foreign)
{
	/* Of each repetition it is RTT/2; of the medians, nearly. */
	double sum = logp->latency + logp->os + logp->or;
	struct table table = {
		.options = options, .test = "logp", .columns = columns, .ncolumns = COLS,
	};
	struct table signature = {
		.options = options, .test = "logp-signature",
		.columns = signature_columns, .ncolumns = SIGS,
	};
	const struct cell cells[COLS] = {
		CELL(logp->latency), CELL(logp->os), CELL(logp->or), possible(logp->g),
		possible(logp->gap_byte), CELL(logp->rtt / 2), CELL(sum), CELL(logp->one_way),
		CELL(logp->skew), CELL(sum > 0 ? logp->one_way / sum : NAN),
		CELL(logp->train_check), CELL(logp->kicks), CELL(n),
	};

	if (options->format == FORMAT_TABLE)
		report_machine();
	table_names(&table);
	table_head(&table, "LogGP parameters, messages of 16 bytes (G: of 4 and 64 KiB);\n"
		   "check: one way by L+o_s+o_r; train: 64 messages and the answer by the model");
	table_row(&table, "hamlyn", cells);
	table_names(&signature);
	table_head(&signature, "time per message of a train of M, with work behind each (not "
		   "counted in \"issue\");\n\"all\": until all were received and that was told");
	print_signature(&signature, logp->trains, TRAINS);
	print_signature(&signature, logp->work, WORK_STEPS);
	print_doubts(options, logp);
	table_end(&table, foreign);
}

int cmd_logp(const struct options *options)
{
	struct effort effort = {
		.n = options->n ? (uint32_t)options->n : DEFAULT_N,
		.reps = options->reps ? options->reps : DEFAULT_REPS,
	};
	size_t bytes = effort.reps * sizeof(struct logp);
	struct load before, after;
	struct logp *results, logp;
	int ret;

	if (options->n > MAX_N)
		return fail_usage("logp takes --n up to %d", MAX_N);
	results = crew_shared_new(bytes);
	if (!results)
		return -1;
	load_look(&before, options);
	ret = pair_run(options, run_side, &effort, results);
	load_look(&after, options);
	if (!ret) {
		median_of(&logp, results, effort.reps);
		print(options, &logp, effort.n * effort.reps, load_foreign(&before, &after));
	}
	crew_shared_free(results, bytes);
	return ret;
}
