// SPDX-License-Identifier: GPL-2.0-only
/*
 * ping_bulk of the GAM basic benchmarks (L 4.1): process 0 stores a block in process 1,
 * whose handler sends it back with am_reply_xfer(). Bandwidth: 2 n bytes / time.
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
	{ "sizes", OPTION_LIST, &sizes, "LIST",
	  "bytes of a block (default 16 to what one reply carries)", 1, 1UL << 30 },
	{ "bytes", OPTION_NUMBER, &bytes, "N", "bytes to move each way per size (default 64M)",
	  1, 1UL << 40 },
	{ "reps", OPTION_NUMBER, &reps, "N", "repetitions, of which the median counts (default 5)",
	  1, MAX_REPS },
	{ NULL, OPTION_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct usage usage = {
	"ping_bulk",
	"Bandwidth of am_store() to process 1 and am_reply_xfer() back, block by block.",
	words,
};

struct buffers {
	unsigned char *out, *in;	/* process 1 has no use for out */
	unsigned long peer_in;
	size_t size;			/* of the block */
};

static struct buffers buffers;
static unsigned long returned;

static void back(vnn_t source, void *addr, int nbytes, void *arg)
{
	if (source != 1 || addr != buffers.in || (size_t)nbytes != buffers.size || arg)
		die("the block came back to %p with %d bytes, not to %p with %zu", addr, nbytes,
		    (void *)buffers.in, buffers.size);
	returned++;
}

static void there(vnn_t source, void *addr, int nbytes, void *arg)
{
	must(am_reply_xfer(source, addr, arg, nbytes, back, NULL), "am_reply_xfer");
}

static void trip(void)
{
	unsigned long number = returned + 1;

	must(am_store(1, buffers.out, (void *)buffers.peer_in, (int)buffers.size, there,
		      buffers.in), "am_store");
	WAIT_FOR(returned == number);
}

/* Return: ns. */
static double run(unsigned long trips, size_t key)
{
	uint64_t start, ns;
	unsigned long n;

	memset(buffers.in, 0, buffers.size);
	start = clock_ns();
	for (n = 0; n < trips; n++)
		trip();
	ns = clock_ns() - start;
	check_same(buffers.in, buffers.size, key, 0, "blocks of %zu bytes", buffers.size);
	return (double)ns;
}

static void measure(struct sweep *sweep, size_t i)
{
	unsigned long trips = sweep_count(bytes / reps, sweep->sizes[i]), rep;
	double times[MAX_REPS], ns;

	buffers.size = sweep->sizes[i];
	check_fill(buffers.out, buffers.size, i, 0);
	run(trips / 10 + 1, i);
	for (rep = 0; rep < reps; rep++)
		times[rep] = run(trips, i);
	ns = stats_median(times, reps);
	sweep_result(sweep, i, trips * reps, 2e9 * (double)trips * (double)buffers.size / ns,
		     ns / (double)trips / 2);
}

static void open_buffers(const struct sweep *sweep)
{
	unsigned long *all = world_alloc((unsigned long)am_procs() * sizeof(*all));
	unsigned long most = 0;
	size_t i;

	for (i = 0; i < sweep->n; i++)
		if (sweep->sizes[i] > most)
			most = sweep->sizes[i];
	if (most > (unsigned long)am_max_size())
		die("--sizes: a reply carries at most %d bytes, not %lu", am_max_size(), most);
	buffers.out = world_alloc(most);
	buffers.in = world_alloc(most);
	memset(buffers.in, 0, most);
	world_share_pointer(buffers.in, all);
	buffers.peer_in = all[1];
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
	sweep_begin(&sweep, usage.name, &sizes, 16, (unsigned long)am_max_size(),
		    common.quick ? 16 : 2);
	open_buffers(&sweep);
	if (am_my_proc()) {
		world_serve();
		return world_disable();
	}
	sweep_heading("Bandwidth of am_store() and am_reply_xfer() in turn");
	for (i = 0; i < sweep.n; i++)
		measure(&sweep, i);
	sweep_end(&sweep);
	world_release();
	return world_disable();
}
