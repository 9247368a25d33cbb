// SPDX-License-Identifier: GPL-2.0-only
/*
 * Latency under load: one way, at half of the rate that the same pair has just reached. The
 * sender keeps a timetable, whatever becomes of the messages, and the time of each counts from
 * when it was due: one that waits for those before it is as late as its user would find it. Both
 * sides read the same clock.
 */
#include <sched.h>

#include "base/clock.h"
#include "base/payload.h"
#include "measure/cost.h"
#include "measure/tail.h"

#define SHARE		0.5
#define MIN_MESSAGES	64
#define MAX_MESSAGES	1000000
#define LEAD_NS		NSEC_PER_MSEC	/* until both are there */

/* Message i, from 0 on, is due at start + i * interval. */
struct timetable {
	double interval;	/* ns */
	uint64_t start;
	uint64_t n;
};

static inline uint64_t due(const struct timetable *table, uint64_t i)
{
	return table->start + (uint64_t)((double)i * table->interval);
}

/* Threads of the system's that have the sender's processor need it meanwhile. */
static inline void wait_until(uint64_t time, bool yields)
{
	while (clock_ns() < time)
		if (yields)
			sched_yield();
}

static int send_all(struct chan *chan, const struct timetable *table)
{
	void *buffer;
	uint64_t i;

	for (i = 0; i < table->n; i++) {
		wait_until(due(table, i), chan->system->helped);
		buffer = chan->system->reserve(chan);
		if (!buffer)
			return -1;
		payload_stamp(buffer, chan->size, i + 1);
		if (chan->system->commit(chan) < 0)
			return -1;
	}
	return 0;
}

static int take_all(struct chan *chan, const struct timetable *table, double *times)
{
	uint64_t i, now, then;
	uint32_t position;
	const void *buffer;

	for (i = 0; i < table->n; i++) {
		position = chan->in_pos;
		buffer = chan->system->take(chan);
		if (!buffer || payload_use(chan->side->options, buffer, chan->size, position,
					   i + 1) < 0)
			return -1;
		now = clock_ns();
		then = due(table, i);
		times[i] = now > then ? (double)(now - then) : 0;
		if (chan->system->release(chan) < 0)
			return -1;
	}
	return 0;
}

static int agree(struct chan *chan, double rate, uint32_t budget_ms, struct timetable *table)
{
	double n = rate * SHARE * budget_ms / 1000;
	struct timetable mine = {
		.interval = (double)NSEC_PER_SEC / (rate * SHARE),
		.start = clock_ns() + LEAD_NS,
		.n = n < MIN_MESSAGES ? MIN_MESSAGES :
		     n > MAX_MESSAGES ? MAX_MESSAGES : (uint64_t)n,
	};

	if (pair_swap(chan->side, &mine, table, sizeof(mine)) < 0)
		return -1;
	if (!chan->side->id)
		*table = mine;
	return 0;
}

/* The receiver has seen the times, the sender reports them. */
static int tell(struct chan *chan, struct measure *measure)
{
	struct measure theirs;

	if (pair_swap(chan->side, measure, &theirs, sizeof(theirs)) < 0)
		return -1;
	theirs.cpu_ns = measure->cpu_ns;
	theirs.poller_ns = measure->poller_ns;
	if (!chan->side->id)
		*measure = theirs;
	return 0;
}

static int run(struct chan *chan, const struct timetable *table, double *times,
	       struct measure *measure)
{
	struct cost cost;
	int ret;

	cost_begin(&cost, chan);
	ret = chan->side->id ? take_all(chan, table, times) : send_all(chan, table);
	if (!ret && chan->system->settle)
		ret = chan->system->settle(chan);
	if (ret < 0 || cost_end(&cost, chan, table->n, measure) < 0)
		return -1;
	if (chan->side->id)
		tail_evaluate(times, table->n, measure);
	return tell(chan, measure);
}

int test_load(struct chan *chan, uint32_t budget_ms, struct measure *measure)
{
	double rate = stream_rate(chan, budget_ms, false, measure);
	struct timetable table;
	double *times;
	int ret;

	if (rate <= 0)
		return -1;
	*measure = (struct measure){ 0 };
	times = (void *)chan_alloc(MAX_MESSAGES * sizeof(*times));
	if (!times)
		return -1;
	ret = agree(chan, rate, budget_ms, &table);
	if (!ret)
		ret = run(chan, &table, times, measure);
	if (!ret)
		measure->offered = (double)NSEC_PER_SEC / table.interval;
	free(times);
	return ret;
}
