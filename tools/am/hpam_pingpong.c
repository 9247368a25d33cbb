// SPDX-License-Identifier: GPL-2.0-only
/*
 * The measurements of the HPAM paper, chapter 7: the round trip of HPAM_4() and
 * HPAM_reply_4(), that of packets of a size (HPAM_xfer() and HPAM_reply_xfer(), 7.1.1),
 * and the bandwidth of packets in one direction, which the receiver measures from the
 * first that arrives to the last (7.1.2).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "gam.h"
#include "hpam.h"
#include "options.h"
#include "stats.h"
#include "sweep.h"
#include "world.h"

#define MAX_REPS	101
#define WORDS	4
#define SIZE	(WORDS * sizeof(long))

static struct option_list sizes;
static unsigned long count;
static unsigned long packets;
static unsigned long reps;

static const struct option_word words[] = {
	{ "count", OPTION_NUMBER, &count, "N", "round trips (default 100000; of packets a tenth)",
	  10, 100000000 },
	{ "packets", OPTION_NUMBER, &packets, "N",
	  "packets of each size in one direction (default 5000, as in the paper)", 2, 100000000 },
	{ "reps", OPTION_NUMBER, &reps, "N",
	  "repetitions of that, of which the median counts (default 5)", 1, MAX_REPS },
	{ "sizes", OPTION_LIST, &sizes, "LIST",
	  "bytes of a packet (default 16 to the largest)", 1, 1UL << 30 },
	{ NULL, OPTION_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct usage usage = {
	"hpam_pingpong",
	"Round trip of HPAM_4() and HPAM_reply_4(), and of packets; bandwidth of HPAM_xfer().",
	words,
};

/* ---- round trip of four words ------------------------------------------- */

static unsigned long returned, wrong;

static void pong(unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	wrong += b != a + 1 || c != a + 2 || d != a + 3;
	returned = a;
}

static void ping(unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	must(HPAM_reply_4(pong, a, b, c, d), "HPAM_reply_4");
}

static void trip(unsigned long number)
{
	must(HPAM_4(1, ping, number, number + 1, number + 2, number + 3), "HPAM_4");
	WAIT_FOR(returned == number);
}

/* ---- round trip of packets ---------------------------------------------- */

static unsigned char *block;	/* process 0: what is sent; 1: where to */
static unsigned char *echo;	/* process 0: where it comes back to */
static unsigned long peer_block;
static size_t size;		/* of a packet */

static void packet_back(void *arg, void *base, int length)
{
	wrong += base != echo || (size_t)length != size || arg;
	returned++;
}

static void packet_there(void *arg, void *base, int length)
{
	must(HPAM_reply_xfer(base, arg, length, packet_back, NULL), "HPAM_reply_xfer");
}

static void packet_trip(unsigned long number)
{
	must(HPAM_xfer(1, block, (void *)peer_block, (int)size, packet_there, echo),
	     "HPAM_xfer");
	WAIT_FOR(returned == number);
}

/* ---- both --------------------------------------------------------------- */

static void measure_trips(void (*once)(unsigned long number), unsigned long trips,
			  struct stats *stats)
{
	double *samples = world_alloc(trips * sizeof(*samples));
	unsigned long number = 0, warm = trips / 10 + 1, i;
	uint64_t before, now;

	returned = 0;
	while (number < warm)
		once(++number);
	before = clock_ns();
	for (i = 0; i < trips; i++) {
		once(++number);
		now = clock_ns();
		samples[i] = (double)(now - before);
		before = now;
	}
	if (wrong)
		die("%lu of %lu replies were not what they should be", wrong, number);
	stats_of(samples, trips, stats);
	free(samples);
}

static void report(const char *test, unsigned long bytes, const struct stats *stats)
{
	if (!common.json) {
		stats_line(bytes, stats);
		return;
	}
	json_open(test, bytes);
	stats_json(stats);
	json_close();
}

static void measure_all_trips(const struct sweep *sweep)
{
	struct stats stats;
	size_t i;

	if (!common.json)
		stats_heading("Round trip of HPAM_4() and HPAM_reply_4()");
	measure_trips(trip, count, &stats);
	report("hpam_pingpong", SIZE, &stats);
	if (!common.json)
		stats_heading("Round trip of HPAM_xfer() and HPAM_reply_xfer()");
	for (i = 0; i < sweep->n; i++) {
		size = sweep->sizes[i];
		check_fill(block, size, i, 0);
		memset(echo, 0, size);
		measure_trips(packet_trip, count / 10, &stats);
		check_same(echo, size, i, 0, "packets of %zu bytes", size);
		report("hpam_packet", size, &stats);
	}
}

/* ---- one direction ------------------------------------------------------ */

static uint64_t first_ns, last_ns;
static unsigned long arrived;
static double told_ns;		/* process 0: of the receiver */

static void streamed(void *arg, void *base, int length)
{
	wrong += base != block || (size_t)length != size || arg;
	last_ns = clock_ns();
	if (!arrived++)
		first_ns = last_ns;
	if (arrived > packets)
		die("packet %lu of %lu arrived", arrived, packets);
}

static void told(unsigned long ns, unsigned long wrongs, unsigned long c, unsigned long d)
{
	wrong += wrongs + c + d;
	told_ns = (double)ns;
}

static void stream_out(void)
{
	unsigned long i;

	told_ns = 0;
	for (i = 0; i < packets; i++)
		must(HPAM_xfer(1, block, (void *)peer_block, (int)size, streamed, NULL),
		     "HPAM_xfer");
	WAIT_FOR(told_ns > 0);
	if (wrong)
		die("%lu packets arrived elsewhere or with another length", wrong);
}

static void stream_in(size_t i)
{
	WAIT_FOR(arrived == packets);
	arrived = 0;
	check_same(block, size, i, 0, "packets of %zu bytes", size);
	memset(block, 0, size);
	must(HPAM_4(0, told, last_ns > first_ns ? last_ns - first_ns : 1, wrong, 0, 0), "HPAM_4");
}

static void stream(size_t i)
{
	world_barrier();
	if (HPAM_self_address == 0)
		stream_out();
	else if (HPAM_self_address == 1)
		stream_in(i);
}

static void measure_stream(struct sweep *sweep, size_t i)
{
	double times[MAX_REPS], ns;
	unsigned long rep;

	size = sweep->sizes[i];
	if (!HPAM_self_address)
		check_fill(block, size, i, 0);
	for (rep = 0; rep < reps; rep++) {
		stream(i);
		times[rep] = told_ns;
	}
	if (HPAM_self_address)
		return;
	ns = stats_median(times, reps);
	sweep_result(sweep, i, packets, 1e9 * (double)(packets - 1) * (double)size / ns,
		     ns / (double)(packets - 1));
}

/* ---- main --------------------------------------------------------------- */

static void open_blocks(const struct sweep *sweep)
{
	unsigned long *all = world_alloc((unsigned long)HPAM_partition_size * sizeof(*all));
	unsigned long most = 0;
	size_t i;

	for (i = 0; i < sweep->n; i++)
		if (sweep->sizes[i] > most)
			most = sweep->sizes[i];
	if (most > (unsigned long)am_max_size())
		die("--sizes: a packet carries at most %d bytes, not %lu", am_max_size(), most);
	block = world_alloc(most);
	echo = world_alloc(most);
	memset(block, 0, most);
	world_share_pointer(block, all);
	peer_block = all[1];
	free(all);
}

int main(int argc, char **argv)
{
	struct sweep sweep;
	size_t i;

	options_parse(argc, argv, &usage);
	count = option_or(count, 500, 100000);
	packets = option_or(packets, 200, 5000);
	reps = option_or(reps, 1, 5);
	world_enable(usage.name, 2, 0);
	sweep_begin(&sweep, "hpam_xfer", &sizes, 16, (unsigned long)am_max_size(),
		    common.quick ? 16 : 2);
	open_blocks(&sweep);
	if (HPAM_self_address) {
		world_serve();
	} else {
		measure_all_trips(&sweep);
		world_release();
		sweep_heading("Bandwidth of HPAM_xfer(), measured by the receiver");
	}
	for (i = 0; i < sweep.n; i++)
		measure_stream(&sweep, i);
	if (!HPAM_self_address)
		sweep_end(&sweep);
	return world_disable();
}
