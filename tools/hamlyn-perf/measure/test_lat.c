// SPDX-License-Identifier: GPL-2.0-only
/* One-way latency: half of a round trip, each one timed on its own. */
#include "system/chan.h"
#include "base/clock.h"
#include "measure/cost.h"
#include "measure/tail.h"
#include "base/payload.h"
#include "base/stats.h"

#define MAX_WARM_UP	(PAYLOAD_SAMPLE + 1)	/* what is timed does not begin with a check */
#define MIN_TRIPS	16
#define MAX_TRIPS	100000

static inline int put(struct chan *chan, uint64_t number)
{
	void *buffer = chan->system->reserve(chan);

	if (!buffer)
		return -1;
	payload_stamp(buffer, chan->size, number);
	return chan->system->commit(chan);
}

static inline int get(struct chan *chan, uint64_t number)
{
	uint32_t position = chan->in_pos;
	const void *buffer = chan->system->take(chan);

	if (!buffer || payload_use(chan->side->options, buffer, chan->size,
				   position, number) < 0)
		return -1;
	return chan->system->release(chan);
}

/* Large messages warm up everything sooner, and may take long. */
static uint64_t warm_up_count(const struct chan *chan)
{
	if (chan->size >= 1U << 20)
		return 8;
	return chan->size >= 1U << 16 ? 16 : MAX_WARM_UP;
}

static int answer(struct chan *chan, uint64_t first, uint64_t n)
{
	uint64_t i;

	for (i = first; i < first + n; i++)
		if (get(chan, i) < 0 || put(chan, i) < 0)
			return -1;
	return 0;
}

/* The end of one trip is the start of the next: one clock read a trip. */
static int ask(struct chan *chan, uint64_t first, uint64_t n, double *trips)
{
	uint64_t before = clock_ns();
	uint64_t now, i;

	for (i = 0; i < n; i++) {
		if (put(chan, first + i) < 0 || get(chan, first + i) < 0)
			return -1;
		now = clock_ns();
		trips[i] = (double)(now - before);
		before = now;
	}
	return 0;
}

static uint64_t choose_count(double trip_ns, uint32_t budget_ms)
{
	double n = budget_ms * (double)NSEC_PER_MSEC / (trip_ns > 1 ? trip_ns : 1);

	if (n < MIN_TRIPS)
		return MIN_TRIPS;
	return n > MAX_TRIPS ? MAX_TRIPS : (uint64_t)n;
}

/* @clock_read: what reading the clock added to each trip */
static void evaluate(double *trips, uint64_t n, double clock_read, struct measure *measure)
{
	uint64_t i;

	for (i = 0; i < n; i++)
		trips[i] = trips[i] > clock_read ? (trips[i] - clock_read) / 2 : 0;
	tail_evaluate(trips, n, measure);
}

static int lead(struct chan *chan, uint32_t budget_ms, double *trips,
		struct measure *measure)
{
	double clock_read = clock_cost();
	struct cost cost;
	uint64_t warm = warm_up_count(chan);
	uint64_t n, same;

	if (ask(chan, 1, warm, trips) < 0)
		return -1;
	n = choose_count(stats_median(trips, warm), budget_ms);
	if (pair_swap(chan->side, &n, &same, sizeof(n)) < 0)
		return -1;
	cost_begin(&cost, chan);
	if (ask(chan, 1 + warm, n, trips) < 0 ||
	    cost_end(&cost, chan, 2 * n, measure) < 0)
		return -1;
	evaluate(trips, n, clock_read, measure);
	return 0;
}

static int follow(struct chan *chan, struct measure *measure)
{
	uint64_t warm = warm_up_count(chan);
	struct cost cost;
	uint64_t n;

	if (answer(chan, 1, warm) < 0)
		return -1;
	if (pair_swap(chan->side, &(uint64_t){ 0 }, &n, sizeof(n)) < 0)
		return -1;
	cost_begin(&cost, chan);
	if (answer(chan, 1 + warm, n) < 0)
		return -1;
	return cost_end(&cost, chan, 2 * n, measure);
}

int test_lat(struct chan *chan, uint32_t budget_ms, struct measure *measure)
{
	double *trips;
	int ret;

	if (chan->side->id)
		return follow(chan, measure);
	trips = calloc(MAX_TRIPS, sizeof(*trips));
	if (!trips)
		return fail("out of memory");
	ret = lead(chan, budget_ms, trips, measure);
	free(trips);
	return ret;
}
