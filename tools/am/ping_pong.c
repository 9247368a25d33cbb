// SPDX-License-Identifier: GPL-2.0-only
/*
 * ping_pong of the GAM basic benchmarks (L 4.1): the round trip of a request of four
 * words and its reply.
 */
#include <stdio.h>
#include <stdlib.h>

#include "gam.h"
#include "options.h"
#include "stats.h"
#include "world.h"

#define WORDS	4
#define SIZE	(WORDS * sizeof(long))

static unsigned long count;

static const struct option_word words[] = {
	{ "count", OPTION_NUMBER, &count, "N", "round trips (default 100000)", 1, 100000000 },
	{ NULL, OPTION_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct usage usage = {
	"ping_pong",
	"Round-trip time of am_request_4() and am_reply_4() between processes 0 and 1.\n"
	"A reading of the clock is part of each.",
	words,
};

/* What comes back; process 0 goes on when it is what was sent. */
static unsigned long returned;
static unsigned long wrong;

static void pong(vnn_t source, long a, long b, long c, long d)
{
	(void)source;
	wrong += b != a + 1 || c != a + 2 || d != a + 3;
	returned = (unsigned long)a;
}

static void ping(vnn_t source, long a, long b, long c, long d)
{
	must(am_reply_4(source, pong, a, b, c, d), "am_reply_4");
}

static void trip(unsigned long number)
{
	long a = (long)number;

	must(am_request_4(1, ping, a, a + 1, a + 2, a + 3), "am_request_4");
	WAIT_FOR(returned == number);
}

static void report(struct stats *stats)
{
	if (common.json) {
		json_open("ping_pong", SIZE);
		stats_json(stats);
		json_close();
		return;
	}
	stats_heading("Round trip of am_request_4() and am_reply_4()");
	stats_line(SIZE, stats);
}

static void measure(void)
{
	double *samples = world_alloc(count * sizeof(*samples));
	unsigned long number = 0, warm = count / 10 + 1, i;
	struct stats stats;
	uint64_t before, now;

	while (number < warm)
		trip(++number);
	before = clock_ns();
	for (i = 0; i < count; i++) {
		trip(++number);
		now = clock_ns();
		samples[i] = (double)(now - before);
		before = now;
	}
	if (wrong)
		die("%lu of %lu replies came back with other words", wrong, number);
	stats_of(samples, count, &stats);
	report(&stats);
	free(samples);
}

int main(int argc, char **argv)
{
	options_parse(argc, argv, &usage);
	count = option_or(count, 1000, 100000);
	world_enable(usage.name, 2, 0);
	if (am_my_proc()) {
		world_serve();
	} else {
		measure();
		world_release();
	}
	return world_disable();
}
