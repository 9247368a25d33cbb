// SPDX-License-Identifier: GPL-2.0-only
/*
 * thru_bulk of the GAM basic benchmarks (L 4.1): process 0 stores blocks in process 1
 * without waiting for each; the time ends when process 0 has learnt that all are there.
 * Bandwidth: n bytes / time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "gam.h"
#include "options.h"
#include "stats.h"
#include "sweep.h"
#include "world.h"

#define MAX_REPS	101

static struct option_list sizes;
static unsigned long bytes;
static unsigned long reps;

static const struct option_word words[] = {
	{ "sizes", OPTION_LIST, &sizes, "LIST", "bytes of a block (default 16 to 4M)", 1,
	  1UL << 30 },
	{ "bytes", OPTION_NUMBER, &bytes, "N", "bytes to move per size (default 64M)", 1,
	  1UL << 40 },
	{ "reps", OPTION_NUMBER, &reps, "N", "repetitions, of which the median counts (default 5)",
	  1, MAX_REPS },
	{ NULL, OPTION_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct usage usage = {
	"thru_bulk",
	"Bandwidth of am_store() from process 0 to process 1, as many as the network takes.",
	words,
};

static unsigned char *block;		/* process 0: what is sent; 1: where to */
static unsigned long peer_block;
static size_t size;			/* of the block */
static unsigned long expected, arrived;	/* blocks of this run */
static bool all_there;

static void told(vnn_t source)
{
	(void)source;
	all_there = true;
}

/* Blocks arrive in any order; the last of them to arrive says that all did. */
static void there(vnn_t source, void *addr, int nbytes, void *arg)
{
	if (source || addr != block || (size_t)nbytes != size || arg)
		die("a block came to %p with %d bytes, not to %p with %zu", addr, nbytes,
		    (void *)block, size);
	if (++arrived > expected)
		die("block %lu of %lu arrived", arrived, expected);
	if (arrived == expected)
		must(am_reply_0(source, told), "am_reply_0");
}

static double send_all(void)
{
	uint64_t start = clock_ns();
	unsigned long i;

	all_there = false;
	for (i = 0; i < expected; i++)
		must(am_store(1, block, (void *)peer_block, (int)size, there, NULL), "am_store");
	WAIT_FOR(all_there);
	return (double)(clock_ns() - start);
}

static void receive_all(size_t i)
{
	WAIT_FOR(arrived == expected);
	check_same(block, size, i, 0, "blocks of %zu bytes", size);
	memset(block, 0, size);
	arrived = 0;
}

/* Return: ns, of process 0. */
static double run(size_t i)
{
	world_barrier();
	if (am_my_proc() == 0)
		return send_all();
	if (am_my_proc() == 1)
		receive_all(i);
	return 0;
}

static void measure(struct sweep *sweep, size_t i)
{
	double times[MAX_REPS], ns;
	unsigned long rep;

	size = sweep->sizes[i];
	expected = sweep_count(bytes, size);
	if (!am_my_proc())
		check_fill(block, size, i, 0);
	run(i);		/* to warm up */
	for (rep = 0; rep < reps; rep++)
		times[rep] = run(i);
	if (am_my_proc())
		return;
	ns = stats_median(times, reps);
	sweep_result(sweep, i, expected, 1e9 * (double)expected * (double)size / ns,
		     ns / (double)expected);
}

static void open_block(const struct sweep *sweep)
{
	unsigned long *all = world_alloc((unsigned long)am_procs() * sizeof(*all));
	unsigned long most = 0;
	size_t i;

	for (i = 0; i < sweep->n; i++)
		if (sweep->sizes[i] > most)
			most = sweep->sizes[i];
	block = world_alloc(most);
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
	bytes = option_or(bytes, 64 << 10, 64 << 20);
	reps = option_or(reps, 1, 5);
	world_enable(usage.name, 2, 0);
	sweep_begin(&sweep, usage.name, &sizes, 16, common.quick ? 256 << 10 : 4 << 20,
		    common.quick ? 16 : 2);
	open_block(&sweep);
	if (!am_my_proc())
		sweep_heading("Bandwidth of am_store()");
	for (i = 0; i < sweep.n; i++)
		measure(&sweep, i);
	if (!am_my_proc())
		sweep_end(&sweep);
	return world_disable();
}
