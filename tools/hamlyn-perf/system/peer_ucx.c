// SPDX-License-Identifier: GPL-2.0-only
/*
 * UCX, by its own ucx_perftest, over shared memory only: tagged messages, and
 * the put that Hamlyn resembles most, which says nothing to the receiver: its
 * test polls the last byte. Latencies are halves of round trips; of the
 * program's percentiles we take the median, as for ourselves. No option makes
 * its receiver read what it gets.
 */
#include <stdio.h>
#include <string.h>

#include "system/peer.h"

#define PROGRAM		"ucx_perftest"
#define MIN_COUNT	500
#define MAX_COUNT	1000000

/* Columns of "ucx_perftest -v" */
enum {
	COLUMN_COUNT,
	COLUMN_MEDIAN_US,
	COLUMN_RATE = 7,	/* messages per second, over the whole test */
	COLUMNS,
};

static const char *ucx_missing(const struct options *options)
{
	(void)options;
	return peer_installed(PROGRAM) ? NULL : PROGRAM " is not installed (ucx-utils)";
}

static void command_start(struct peer_command *command, int cpu)
{
	*command = (struct peer_command){ .cpu = cpu };
	/* Shared memory, one copy by system call for long messages; no network */
	command->env[0] = "UCX_TLS=posix,sysv,cma,self";
	command->env[1] = "UCX_WARN_UNUSED_ENV_VARS=n";
	peer_word(command, PROGRAM);
}

/* The server prints what it was asked to do. */
static int check_size(const char *text, size_t size)
{
	static const char title[] = "Message size:";
	const char *found = strstr(text, title);

	if (found && strtoull(found + strlen(title), NULL, 10) == size)
		return 0;
	return fail("%s did not measure messages of %zu bytes", PROGRAM, size);
}

static int parse(const struct peer_said said[2], const struct point *point,
		 uint64_t count, struct measure *measure)
{
	double numbers[COLUMNS];

	if (peer_numbers(said[1].text, numbers, COLUMNS) != COLUMNS ||
	    numbers[COLUMN_COUNT] < (double)count || numbers[COLUMN_MEDIAN_US] <= 0 ||
	    numbers[COLUMN_RATE] <= 0)
		return fail("%s printed no results that we understand", PROGRAM);
	measure->value = numbers[COLUMN_RATE];
	if (point->test == TEST_LAT)
		measure->value = numbers[COLUMN_MEDIAN_US] * 1e3;
	else if (point->test == TEST_BW)
		measure->value *= (double)point->size;
	return check_size(said[0].text, point->size);
}

static int run(const struct options *options, const struct point *point,
	       const struct peer_job *job, uint64_t count, struct measure *measure)
{
	static struct peer_said said[2];
	struct peer_command server, client;
	const char *test = job->arg;
	char port[8], size[24], n[24], warm[24];

	if (peer_port(port, sizeof(port)) < 0)
		return -1;
	snprintf(size, sizeof(size), "%zu", point->size);
	snprintf(n, sizeof(n), "%llu", (unsigned long long)count);
	snprintf(warm, sizeof(warm), "%llu", (unsigned long long)(count / 8 + 8));
	command_start(&server, options->cpus[1]);
	peer_words(&server, (const char *const[]){ "-p", port, NULL });
	command_start(&client, options->cpus[0]);
	peer_words(&client, (const char *const[]){ "127.0.0.1", "-p", port, "-t", test,
						   "-s", size, "-n", n, "-w", warm,
						   "-f", "-v", NULL });
	if (peer_run_pair(options, &server, &client, port, said) < 0)
		return -1;
	return parse(said, point, count, measure);
}

static int ucx_tag(const struct options *options, const struct point *point,
		   struct measure *measure)
{
	static struct peer_pace paces[TEST_KINDS];
	struct peer_job job = { run, "tag_bw", MIN_COUNT, MAX_COUNT };

	if (point->test == TEST_LAT)
		job.arg = "tag_lat";
	return peer_measure(options, point, &job, paces, measure);
}

static int ucx_put(const struct options *options, const struct point *point,
		   struct measure *measure)
{
	static const struct peer_job job = { run, "ucp_put_lat", MIN_COUNT, MAX_COUNT };
	static struct peer_pace paces[TEST_KINDS];

	/* Nothing to poll */
	if (!point->size)
		return 0;
	return peer_measure(options, point, &job, paces, measure);
}

const struct system sys_ucx = {
	.name = "ucx",
	.what = "UCX, tagged, shared memory (ucx_perftest: the data is not read)",
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.missing = ucx_missing,
	.external = ucx_tag,
};

const struct system sys_ucx_put = {
	.name = "ucx-put",
	.what = "UCX put, unprotected shared memory (ucx_perftest: last byte polled)",
	.tests = 1 << TEST_LAT,
	.missing = ucx_missing,
	.external = ucx_put,
};
