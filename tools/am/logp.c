// SPDX-License-Identifier: GPL-2.0-only
/*
 * The LogP signature of am_request_4() and am_reply_4() (L 4.2, and Culler, Liu, Martin,
 * Yoshikawa, "Assessing Fast Network Interfaces", IEEE Micro 1996).
 *
 * Process 0 sends bursts of requests with work of a time Delta between them, which polls
 * nothing; am_request_4() itself serves the replies. The signature is the time for each
 * message, until the last is sent, over the length of the burst, a curve per Delta:
 *
 * o_s	that of bursts of a single message: no reply is there yet.
 * g	that at the end of long bursts, without work.
 * o_r	long bursts take g each until the work fills what was idle, and from there on
 *	o_s + o_r + Delta; the line gives o_s + o_r, and where it meets g is the knee.
 * L	half of the round trip less o_s and o_r.
 *
 * The end of long bursts is the second half of the longest: the first half has filled
 * the network by then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gam.h"
#include "gnuplot.h"
#include "options.h"
#include "stats.h"
#include "world.h"

#define MAX_ROUNDS	10000
#define MAX_BURST	4096
#define TRIPS_A_ROUND	50
#define WARM_UP		3
#define BURSTS		OPTIONS_LIST_MAX
#define DELTAS		16

static struct option_list deltas;
static unsigned long rounds, burst_max;
static const char *plot_file;

static const struct option_word words[] = {
	{ "rounds", OPTION_NUMBER, &rounds, "N", "bursts for each figure (default 100)", 1,
	  MAX_ROUNDS },
	{ "burst", OPTION_NUMBER, &burst_max, "N", "messages of the longest burst (default 512)",
	  2, MAX_BURST },
	{ "deltas", OPTION_LIST, &deltas, "LIST",
	  "Delta, ns (default: 0 and shares and multiples of g)", 0, 100000000 },
	{ "plot", OPTION_TEXT, &plot_file, "FILE",
	  "also draw FILE, an SVG of the signature (needs gnuplot)", 0, 0 },
	{ NULL, OPTION_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct usage usage = {
	"logp",
	"LogP parameters of am_request_4() and am_reply_4() between processes 0 and 1.",
	words,
};

struct signature {
	size_t nbursts, ndeltas;
	unsigned long bursts[BURSTS];
	uint64_t deltas[DELTAS];		/* ns */
	double each[DELTAS][BURSTS];		/* ns a message */
	double late[DELTAS];			/* of the second half of the longest burst */
	double idle[DELTAS];			/* the same, without the work */
};

struct logp {
	double os, or, g, latency, knee, rtt;
	double cost;			/* of the clock */
	struct signature signature;
};

/* ---- messages ----------------------------------------------------------- */

static unsigned long sent, answered;

static void answer(vnn_t source, long a, long b, long c, long d)
{
	(void)source;
	if (b != a + 1 || c != a + 2 || d != a + 3)
		die("reply %ld came back with other words", a);
	answered++;
}

static void ask(vnn_t source, long a, long b, long c, long d)
{
	must(am_reply_4(source, answer, a, b, c, d), "am_reply_4");
}

static void send_one(void)
{
	long a = (long)sent++;

	must(am_request_4(1, ask, a, a + 1, a + 2, a + 3), "am_request_4");
}

/* ---- bursts ------------------------------------------------------------- */

/*
 * By the clock, not by counting turns: how much a processor gets done in a time depends
 * on what its neighbour does. Return: ns it took, which is a little more.
 */
static uint64_t work(uint64_t ns)
{
	uint64_t start = clock_ns(), passed;

	do
		passed = clock_ns() - start;
	while (passed < ns);
	return passed;
}

/* ns a message: of a burst, of its second half, and of that without the work. */
struct pace {
	double all, late, idle;
};

/*
 * Until the last is sent; the work is between messages, not behind. A reading of the
 * clock falls between the work and the rest.
 */
static struct pace burst(const struct logp *logp, unsigned long messages, uint64_t delta)
{
	uint64_t start, middle, end, worked = 0;
	unsigned long half = messages / 2, i;
	double late;

	start = clock_ns();
	middle = start;
	send_one();
	for (i = 1; i < messages; i++) {
		if (i == half) {
			middle = clock_ns();
			worked = 0;
		}
		if (delta)
			worked += work(delta);
		send_one();
	}
	end = clock_ns();
	WAIT_FOR(answered == sent);
	late = (double)(end - middle) - logp->cost;
	return (struct pace){
		((double)(end - start) - logp->cost * (half ? 2 : 1)) / (double)messages,
		late / (double)(messages - half),
		(late - (double)worked) / (double)(messages - half) - (delta ? logp->cost : 0),
	};
}

static struct pace median_burst(const struct logp *logp, unsigned long messages, uint64_t delta)
{
	double all[MAX_ROUNDS], late[MAX_ROUNDS], idle[MAX_ROUNDS];
	struct pace pace;
	unsigned long i;

	for (i = 0; i < WARM_UP; i++)
		burst(logp, messages, delta);
	for (i = 0; i < rounds; i++) {
		pace = burst(logp, messages, delta);
		all[i] = pace.all;
		late[i] = pace.late;
		idle[i] = pace.idle;
	}
	return (struct pace){ stats_median(all, rounds), stats_median(late, rounds),
			      stats_median(idle, rounds) };
}

static double median_trip(void)
{
	unsigned long trips = rounds * TRIPS_A_ROUND, i;
	double *times = world_alloc(trips * sizeof(*times)), median;
	uint64_t before, now;

	before = clock_ns();
	for (i = 0; i < trips; i++) {
		send_one();
		WAIT_FOR(answered == sent);
		now = clock_ns();
		times[i] = (double)(now - before);
		before = now;
	}
	median = stats_median(times, trips);
	free(times);
	return median;
}

/* ---- the signature ------------------------------------------------------ */

static void choose_bursts(struct signature *s)
{
	unsigned long messages;

	for (messages = 1; messages < burst_max; messages *= 2)
		s->bursts[s->nbursts++] = messages;
	s->bursts[s->nbursts++] = burst_max;
}

/* None comes first; g, which is known roughly, tells which others are of interest. */
static void choose_deltas(struct logp *logp)
{
	static const double shares[] = { 0.25, 0.5, 1, 2, 4 };
	struct signature *s = &logp->signature;
	size_t i;

	s->deltas[s->ndeltas++] = 0;
	if (!deltas.n) {
		for (i = 0; i < sizeof(shares) / sizeof(*shares); i++)
			s->deltas[s->ndeltas++] = 1 + (uint64_t)(shares[i] * logp->g);
		return;
	}
	for (i = 0; i < deltas.n; i++)
		if (deltas.values[i])
			s->deltas[s->ndeltas++] = deltas.values[i];
}

static void measure_signature(struct logp *logp)
{
	struct signature *s = &logp->signature;
	struct pace pace;
	size_t d, b;

	for (d = 0; d < s->ndeltas; d++)
		for (b = 0; b < s->nbursts; b++) {
			pace = median_burst(logp, s->bursts[b], s->deltas[d]);
			s->each[d][b] = pace.all;
			s->late[d] = pace.late;
			s->idle[d] = pace.idle;
		}
	logp->g = s->late[0];
}

/*
 * o_s + o_r: what the late messages take besides the work where Delta alone is as much as
 * g, or with the greatest Delta if none is.
 */
static double overheads(const struct logp *logp)
{
	const struct signature *s = &logp->signature;
	size_t d, n = 0, greatest = 0;
	double idle[DELTAS];

	for (d = 0; d < s->ndeltas; d++) {
		if (s->deltas[d] > s->deltas[greatest])
			greatest = d;
		if (s->deltas[d] && (double)s->deltas[d] >= logp->g)
			idle[n++] = s->idle[d];
	}
	return n ? stats_median(idle, n) : s->idle[greatest];
}

static void measure(struct logp *logp)
{
	double both;

	logp->cost = clock_cost();
	logp->rtt = median_trip() - logp->cost;
	logp->g = median_burst(logp, burst_max, 0).late;
	choose_bursts(&logp->signature);
	choose_deltas(logp);
	measure_signature(logp);
	both = overheads(logp);
	logp->os = logp->signature.each[0][0];
	logp->or = both - logp->os;
	logp->knee = logp->g > both ? logp->g - both : 0;
	logp->latency = logp->rtt / 2 - both;
}

/* ---- report ------------------------------------------------------------- */

static void report_table(const struct logp *logp)
{
	const struct signature *s = &logp->signature;
	size_t b, d;

	printf("LogP signature of am_request_4(): ns a message, by burst and Delta\n%10s", "burst");
	for (d = 0; d < s->ndeltas; d++)
		printf(" D=%-8lu", (unsigned long)s->deltas[d]);
	for (b = 0; b < s->nbursts; b++) {
		printf("\n%10lu", s->bursts[b]);
		for (d = 0; d < s->ndeltas; d++)
			printf(" %-10.0f", s->each[d][b]);
	}
	printf("\n%10s", "late");
	for (d = 0; d < s->ndeltas; d++)
		printf(" %-10.0f", s->late[d]);
	printf("\n%10s", "late - D");
	for (d = 0; d < s->ndeltas; d++)
		printf(" %-10.0f", s->idle[d]);
	printf("\nRTT %.0f  L %.0f  o_s %.0f  o_r %.0f  g %.0f ns; g rises from Delta %.0f on\n",
	       logp->rtt, logp->latency, logp->os, logp->or, logp->g, logp->knee);
	if (logp->latency < 0)
		printf("L < 0: the overheads of long bursts are more than those of a round trip\n");
}

static void report_json(const struct logp *logp)
{
	const struct signature *s = &logp->signature;
	size_t b, d;

	json_open("logp", 4 * sizeof(long));
	json_number("median_ns", logp->rtt);
	json_number("latency_ns", logp->latency);
	json_number("os_ns", logp->os);
	json_number("or_ns", logp->or);
	json_number("g_ns", logp->g);
	json_number("knee_ns", logp->knee);
	json_close();
	for (d = 0; d < s->ndeltas; d++)
		for (b = 0; b < s->nbursts; b++) {
			json_open("logp-signature", 4 * sizeof(long));
			json_number("delta_ns", (double)s->deltas[d]);
			json_number("burst", (double)s->bursts[b]);
			json_number("median_ns", s->each[d][b]);
			json_close();
		}
}

static void script(FILE *to, const void *arg)
{
	const struct logp *logp = arg;
	const struct signature *s = &logp->signature;
	size_t b, d;

	for (d = 0; d < s->ndeltas; d++) {
		fprintf(to, "$curve%zu << END\n", d);
		for (b = 0; b < s->nbursts; b++)
			fprintf(to, "%lu %g\n", s->bursts[b], s->each[d][b]);
		fprintf(to, "END\n");
	}
	fprintf(to, "set encoding utf8\n"
		"set terminal svg size 900,620 background rgb 'white' font 'sans-serif,14'\n"
		"set title 'LogP signature of am\\_request\\_4(): RTT %.0f, L %.0f, o_s %.0f, "
		"o_r %.0f, g %.0f ns'\n"
		"set logscale x 2\nset grid lc rgb '#cccccc'\nset yrange [0:*]\n"
		"set xlabel 'burst size, messages'\nset ylabel 'time per message, ns'\n"
		"set key outside right top Left reverse\n"
		"set arrow from graph 0,first %g to graph 1,first %g nohead dt 3 lc rgb '#555555'\n"
		"set label 'g' at graph 0.99,first %g right offset 0,0.5\nplot ",
		logp->rtt, logp->latency, logp->os, logp->or, logp->g, logp->g, logp->g, logp->g);
	for (d = 0; d < s->ndeltas; d++)
		fprintf(to, "%s$curve%zu using 1:2 with linespoints lw 2 title 'Δ = %lu ns'",
			d ? ", " : "", d, (unsigned long)s->deltas[d]);
	fprintf(to, "\n");
}

/* ---- main --------------------------------------------------------------- */

static void lead(void)
{
	static struct logp logp;

	measure(&logp);
	if (common.json)
		report_json(&logp);
	else
		report_table(&logp);
	if (plot_file)
		gnuplot_draw(plot_file, script, &logp);
}

int main(int argc, char **argv)
{
	const char *refusal;

	options_parse(argc, argv, &usage);
	rounds = option_or(rounds, 5, 100);
	burst_max = option_or(burst_max, 64, 512);
	if (deltas.n > DELTAS - 1)
		options_refuse("--deltas takes at most %d numbers", DELTAS - 1);
	refusal = plot_file ? gnuplot_refusal(plot_file) : NULL;
	if (refusal)
		options_refuse("--plot %s: %s", plot_file, refusal);
	world_enable(usage.name, 2, 0);
	if (am_my_proc()) {
		world_serve();
	} else {
		lead();
		world_release();
	}
	return world_disable();
}
