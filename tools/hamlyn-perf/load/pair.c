// SPDX-License-Identifier: GPL-2.0-only
/* Two pinned child processes with a pipe each way, or several such pairs. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* CPU sets */
#endif
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "load/crew.h"
#include "base/netns.h"
#include "load/pair.h"
#include "base/wait.h"

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

/*
 * One pair has the CPUs that the user chose. More pairs spread over all CPUs
 * that we may use, unless the user chose: then all share his two.
 */
int pair_cpu(const struct options *options, uint32_t pair, int id)
{
	uint32_t wanted;
	cpu_set_t set;
	int cpu;

	if (!pair || options->cpus_given || sched_getaffinity(0, sizeof(set), &set) < 0 ||
	    !CPU_COUNT(&set))
		return options->cpus[id];
	wanted = (2 * pair + (uint32_t)id) % (uint32_t)CPU_COUNT(&set);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && !wanted--)
			return cpu;
	return options->cpus[id];
}

int pair_gate(struct side *side)
{
	struct wait wait = WAIT("other pair at the start");
	uint32_t want = ++side->rounds * 2 * side->pairs;

	if (side->pairs < 2)
		return 0;
	__atomic_add_fetch(side->gate, 1, __ATOMIC_ACQ_REL);
	while ((int32_t)(__atomic_load_n(side->gate, __ATOMIC_ACQUIRE) - want) < 0)
		if (!wait_more(&wait))
			return -1;
	return 0;
}

struct pairs {
	struct side sides[2 * PERF_MAX_PAIRS];
	int pipes[2 * PERF_MAX_PAIRS][2];	/* [i]: what side i writes into */
	uint32_t count;				/* of sides */
	pair_fn fn;
	void *arg;
};

static void close_pipe(int *ends)
{
	int i;

	for (i = 0; i < 2; i++)
		if (ends[i] >= 0)
			close(ends[i]);
}

static void close_pipes(struct pairs *pairs)
{
	uint32_t i;

	for (i = 0; i < pairs->count; i++)
		close_pipe(pairs->pipes[i]);
}

static int open_pipes(struct pairs *pairs)
{
	uint32_t i;

	memset(pairs->pipes, 0xff, sizeof(pairs->pipes));
	for (i = 0; i < pairs->count; i++)
		if (pipe(pairs->pipes[i]) < 0) {
			fail("no pipe: %s", strerror(errno));
			close_pipes(pairs);
			return -1;
		}
	return 0;
}

static int run_side(void *arg, uint32_t member)
{
	struct pairs *pairs = arg;
	struct side *side = &pairs->sides[member];
	uint32_t peer = member ^ 1;
	uint32_t i;

	side->to_peer = pairs->pipes[member][1];
	side->from_peer = pairs->pipes[peer][0];
	/* Our copies of the peer's ends would hide its end from us. */
	close(pairs->pipes[member][0]);
	close(pairs->pipes[peer][1]);
	for (i = 0; i < pairs->count; i++)
		if (i / 2 != member / 2)
			close_pipe(pairs->pipes[i]);
	if (pair_pin(pair_cpu(side->options, side->pair, side->id)) < 0)
		return -1;
	if (side->id && side->options->peer_netns && netns_enter(side->options->peer_netns) < 0)
		return -1;
	return pairs->fn(side, pairs->arg);
}

/* With fewer CPUs than processes, nobody may poll for long. */
static struct options with_enough_cpus(const struct options *options, uint32_t pairs)
{
	struct options mine = *options;
	cpu_set_t set;

	if (pairs > 1 && (options->cpus_given || sched_getaffinity(0, sizeof(set), &set) < 0 ||
			  (uint32_t)CPU_COUNT(&set) < 2 * pairs))
		mine.ncpus = 1;
	return mine;
}

static struct options of_the_peer(const struct options *options)
{
	struct options theirs = *options;

	if (options->peer_device)
		theirs.device = options->peer_device;
	return theirs;
}

/* Run @fn as side 0 and side 1 of each pair. Only set-up is inherited. */
int pairs_run(const struct options *options, uint32_t count, pair_fn fn, void *arg,
	      void *shared, uint64_t limit_s)
{
	struct options mine = with_enough_cpus(options, count);
	struct options theirs = of_the_peer(&mine);
	struct pairs pairs = { .fn = fn, .arg = arg, .count = 2 * count };
	uint32_t *gate = crew_shared_new(sizeof(*gate));
	struct crew crew;
	uint32_t i;
	int ret;

	if (!gate)
		return -1;
	for (i = 0; i < pairs.count; i++)
		pairs.sides[i] = (struct side){ .id = (int)(i % 2), .shared = shared,
						.options = i % 2 ? &theirs : &mine,
						.pair = i / 2, .pairs = count, .gate = gate };
	ret = open_pipes(&pairs);
	if (!ret) {
		ret = crew_start(&crew, &mine, pairs.count, run_side, &pairs);
		close_pipes(&pairs);
		if (!ret)
			ret = crew_finish(&crew, 0, limit_s);
	}
	crew_shared_free(gate, sizeof(*gate));
	return ret;
}

int pair_run(const struct options *options, pair_fn fn, void *arg, void *shared)
{
	/* Each wait inside is bounded; this bounds their sum. */
	return pairs_run(options, 1, fn, arg, shared, options->timeout_s * 4ULL);
}
