// SPDX-License-Identifier: GPL-2.0-only
/* The phases of test_xfer and test_med. */
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "gam.h"
#include "landing.h"
#include "options.h"
#include "stats.h"
#include "torture.h"
#include "world.h"

#define SPOILT_EVERY	16

enum phase { ONE_TO_ONE, ALL_TO_ONE, ALL_TO_ALL, PHASES };

static const char *const phase_names[PHASES] = {
	[ONE_TO_ONE] = "1-to-1", [ALL_TO_ONE] = "all-to-1", [ALL_TO_ALL] = "all-to-all",
};

static unsigned long count, seed, max_size;
static bool corrupt;
static enum phase phase;
static size_t most;

static const struct option_word words[] = {
	{ "count", OPTION_NUMBER, &count, "N", "messages of each process and phase (default 10000)",
	  1, 1000000000 },
	{ "max-size", OPTION_NUMBER, &max_size, "N",
	  "bytes of the largest message (default: see above)", 1, 1UL << 28 },
	{ "seed", OPTION_NUMBER, &seed, "N", "another seed, another test (default 1)", 0, ~0UL },
	{ "corrupt", OPTION_FLAG, &corrupt, NULL,
	  "spoil a byte of some messages: does the receiver notice?", 0, 0 },
	{ NULL, OPTION_FLAG, NULL, NULL, NULL, 0, 0 },
};

const char *torture_phase(void)
{
	return phase_names[phase];
}

size_t torture_most(void)
{
	return most;
}

static int choose_dest(int source, uint64_t random)
{
	switch (phase) {
	case ONE_TO_ONE:
		return !source;
	case ALL_TO_ONE:
		return 0;
	default:
		return (int)(random % (uint64_t)am_procs());
	}
}

void torture_plan(int source, uint32_t number, struct torture_message *message)
{
	uint64_t random = check_key(seed + ((uint64_t)phase << 56), (uint64_t)source, number);
	uint64_t bits;

	message->source = source;
	message->number = number;
	message->key = random;
	message->dest = choose_dest(source, check_random(&random));
	message->kind = (uint32_t)check_random(&random);
	message->size = check_random_size(&random, most, (size_t)am_max_size());
	bits = check_random(&random);
	message->at = bits % LANDING_ROOM;
	message->from = (bits >> 8) % LANDING_ROOM;
}

static bool is_spoilt(const struct torture_message *message)
{
	return corrupt && message->size && message->number % SPOILT_EVERY == 1;
}

void torture_fill(void *to, const struct torture_message *message)
{
	unsigned char *bytes = to;

	check_fill(to, message->size, message->key, 0);
	if (is_spoilt(message))
		bytes[message->key % message->size] ^= 1;
}

void torture_check_source(const void *at, const struct torture_message *message)
{
	if (!is_spoilt(message))
		check_same(at, message->size, message->key, 0, "%s: at its source",
			   torture_text(message));
}

const char *torture_text(const struct torture_message *message)
{
	static char text[120];

	snprintf(text, sizeof(text), "%s, message %u of process %d to %d (%zu bytes)",
		 phase_names[phase], message->number, message->source, message->dest,
		 message->size);
	return text;
}

/* Process 0 receives in all-to-1, and those that are neither 0 nor 1 in 1-to-1 nothing. */
static unsigned long messages_of(int source)
{
	if (phase == ONE_TO_ONE)
		return source < 2 ? count : 0;
	return phase == ALL_TO_ONE && !source ? 0 : count;
}

static void count_arrived(const struct torture *torture)
{
	struct torture_message message;
	unsigned long expected;
	uint32_t number;
	int p;

	for (p = 0; p < am_procs(); p++) {
		expected = 0;
		for (number = 0; number < messages_of(p); number++) {
			torture_plan(p, number, &message);
			expected += message.dest == am_my_proc() && torture->arrives(&message);
		}
		if (*torture->arrived(p) != expected)
			die("%s: %lu messages of process %d arrived, not %lu",
			    phase_names[phase], *torture->arrived(p), p, expected);
		*torture->arrived(p) = 0;
	}
}

static unsigned long send_all(const struct torture *torture)
{
	struct torture_message message;
	unsigned long bytes = 0;
	uint32_t number;

	for (number = 0; number < messages_of(am_my_proc()); number++) {
		torture_plan(am_my_proc(), number, &message);
		torture->send(&message);
		bytes += message.size;
	}
	WAIT_FOR(torture->idle());
	return bytes;
}

static void report(const struct torture *torture, const unsigned long *sums, double seconds)
{
	if (common.json) {
		json_open(torture->name, most);
		json_text("phase", phase_names[phase]);
		json_number("messages", (double)sums[0]);
		json_number("bytes", (double)sums[1]);
		json_number("seconds", seconds);
		json_number("seed", (double)seed);
		json_text("result", "correct");
		json_close();
		return;
	}
	printf("%s: %-10s %10lu messages, %12lu bytes, all correct (%.2f s)\n", torture->name,
	       phase_names[phase], sums[0], sums[1], seconds);
	fflush(stdout);
}

static void run_phase(const struct torture *torture)
{
	uint64_t start = clock_ns();
	unsigned long sums[2];

	world_barrier();
	sums[0] = messages_of(am_my_proc());
	sums[1] = send_all(torture);
	world_barrier();	/* all have their answers: no message is under way */
	count_arrived(torture);
	torture->phase_end(phase_names[phase]);
	world_sum(sums, 2);
	if (!am_my_proc())
		report(torture, sums, (double)(clock_ns() - start) / 1e9);
}

int torture_main(int argc, char **argv, const struct torture *torture)
{
	const struct usage usage = { torture->name, torture->what, words };

	seed = 1;
	options_parse(argc, argv, &usage);
	count = option_or(count, 300, 10000);
	world_enable(torture->name, 2, 0);
	most = torture->most(max_size);
	torture->begin();
	for (phase = 0; phase < PHASES; phase++)
		run_phase(torture);
	return world_disable();
}
