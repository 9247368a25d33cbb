// SPDX-License-Identifier: GPL-2.0-only
/* Two pinned child processes with a pipe each way. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* CPU sets */
#endif
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "crew.h"
#include "pair.h"

int pair_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return fail("cannot run on CPU %d: %s (--cpus A,B names the CPUs)",
			    cpu, strerror(errno));
	return 0;
}

static int swap_read(struct side *side, char *bytes, size_t length)
{
	struct pollfd pfd = { .fd = side->from_peer, .events = POLLIN };
	size_t done = 0;
	ssize_t n;

	while (done < length) {
		n = poll(&pfd, 1, (int)side->options->timeout_s * 1000);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail("the other process said nothing for %u s",
				    side->options->timeout_s);
		n = read(side->from_peer, bytes + done, length - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail("the other process ended early");
		done += (size_t)n;
	}
	return 0;
}

/*
 * Give the other side some bytes and get as many from it. Also a barrier.
 * @length fits a pipe, so that both can write before either reads.
 */
int pair_swap(struct side *side, const void *mine, void *theirs, size_t length)
{
	if (write(side->to_peer, mine, length) != (ssize_t)length)
		return fail("the other process ended early");
	return swap_read(side, theirs, length);
}

struct pair {
	struct side sides[2];
	int pipes[2][2];	/* [i]: what side i writes into */
	pair_fn fn;
	void *arg;
};

static void close_pipes(struct pair *pair)
{
	int i;

	for (i = 0; i < 4; i++)
		if (pair->pipes[i / 2][i % 2] >= 0)
			close(pair->pipes[i / 2][i % 2]);
}

static int open_pipes(struct pair *pair)
{
	memset(pair->pipes, 0xff, sizeof(pair->pipes));
	if (pipe(pair->pipes[0]) < 0 || pipe(pair->pipes[1]) < 0) {
		close_pipes(pair);
		return fail("no pipe: %s", strerror(errno));
	}
	return 0;
}

static int run_side(void *arg, uint32_t id)
{
	struct pair *pair = arg;
	struct side *side = &pair->sides[id];

	side->to_peer = pair->pipes[id][1];
	side->from_peer = pair->pipes[!id][0];
	/* Our copies of the peer's ends would hide its end from us. */
	close(pair->pipes[id][0]);
	close(pair->pipes[!id][1]);
	if (pair_pin(side->options->cpus[id]) < 0)
		return -1;
	return pair->fn(side, pair->arg);
}

/* Run @fn as side 0 and side 1 in two processes. Only set-up is inherited. */
int pair_run(const struct options *options, pair_fn fn, void *arg, void *shared)
{
	struct pair pair = { .fn = fn, .arg = arg };
	struct crew crew;
	int i, ret;

	for (i = 0; i < 2; i++)
		pair.sides[i] = (struct side){ .id = i, .options = options,
					       .shared = shared };
	if (open_pipes(&pair) < 0)
		return -1;
	ret = crew_start(&crew, options, 2, run_side, &pair);
	close_pipes(&pair);
	/* Each wait inside is bounded; this bounds their sum. */
	return ret < 0 ? ret : crew_finish(&crew, 0, options->timeout_s * 4ULL);
}
