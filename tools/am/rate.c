// SPDX-License-Identifier: GPL-2.0-only
/*
 * Requests a second to one process, of one word or as segments of memory, and what it
 * takes beside them: acknowledgments, the messages and doorbells that those and the
 * requests are (S; P 5.2.2).
 */
#include <stdio.h>
#include <stdlib.h>

#include "gam.h"
#include "options.h"
#include "stats.h"
#include "world.h"

static unsigned long count, bytes;

static const struct option_word words[] = {
	{ "count", OPTION_NUMBER, &count, "N", "requests (default 1000000)", 1, 1000000000 },
	{ "store", OPTION_NUMBER, &bytes, "BYTES", "of memory instead of words", 1, 1 << 30 },
	{ NULL, OPTION_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct usage usage = {
	"rate",
	"Requests a second from process 0 to process 1, and the messages, doorbells and\n"
	"acknowledgments of both for each of them.",
	words,
};

static unsigned long sum, handled;
static unsigned char *from, *to;
static unsigned long *tos;

static void take(vnn_t source, long number)
{
	(void)source;
	sum += (unsigned long)number;
	handled++;
}

static void landed(vnn_t source, void *addr, int n, void *arg)
{
	(void)source;
	(void)addr;
	(void)arg;
	sum += (unsigned long)n;
	handled++;
}

static void send_all(unsigned long n)
{
	unsigned long i;

	for (i = 1; i <= n; i++) {
		if (bytes)
			must(am_store(1, from, (void *)tos[1], (int)bytes, landed, NULL),
			     "am_store");
		else
			must(am_request_1(1, take, (long)i), "am_request_1");
	}
}

/* Of both processes; what they did before is taken off. */
static void counters(unsigned long c[5])
{
	struct am_stats s;

	am_get_stats(&s);
	c[0] = s.requests;
	c[1] = s.messages;
	c[2] = s.doorbells;
	c[3] = s.acks;
	c[4] = s.ack_messages;
	world_sum(c, 5);
}

static void report(double seconds, const unsigned long before[5], const unsigned long after[5])
{
	static const char *const names[5] = {
		"requests", "messages", "doorbells", "acks", "ack_messages",
	};
	double requests = (double)(after[0] - before[0]);
	int i;

	if (common.json) {
		json_open(bytes ? "rate-store" : "rate", bytes ? bytes : sizeof(long));
		json_number("msgs_per_s", (double)count / seconds);
		for (i = 1; i < 5; i++) {
			char key[64];

			snprintf(key, sizeof(key), "%s_per_request", names[i]);
			json_number(key, (double)(after[i] - before[i]) / requests);
		}
		json_close();
		return;
	}
	printf("%.0f %s a second\n", (double)count / seconds, bytes ? "transfers" : "requests");
	for (i = 1; i < 5; i++)
		printf("%-14s %.3f for each request\n", names[i],
		       (double)(after[i] - before[i]) / requests);
}

static void measure(void)
{
	unsigned long before[5], after[5], expected;
	double seconds = 0;
	uint64_t begun;

	send_all(am_my_proc() ? 0 : count / 10 + 1);
	world_barrier();
	sum = 0;
	handled = 0;
	counters(before);
	begun = clock_ns();
	if (!am_my_proc())
		send_all(count);
	else if (am_my_proc() == 1)
		WAIT_FOR(handled == count);
	/* When this returns all have been handled. */
	world_barrier();
	seconds = (double)(clock_ns() - begun) / 1e9;
	counters(after);
	expected = bytes ? bytes * count : count * (count + 1) / 2;
	if (am_my_proc() == 1 && sum != expected)
		die("what arrived adds up to %lu, not %lu", sum, expected);
	if (!am_my_proc())
		report(seconds, before, after);
}

int main(int argc, char **argv)
{
	options_parse(argc, argv, &usage);
	count = option_or(count, 10000, 1000000);
	world_enable(usage.name, 2, 0);
	from = world_alloc(bytes + 1);
	to = world_alloc(bytes + 1);
	tos = world_alloc((unsigned long)am_procs() * sizeof(*tos));
	world_share_pointer(to, tos);
	measure();
	return world_disable();
}
