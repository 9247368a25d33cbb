// SPDX-License-Identifier: GPL-2.0-only
/* Streaming: side 0 sends as fast as it may, side 1 uses what arrives. */
#include "system/chan.h"
#include "base/clock.h"
#include "measure/cost.h"
#include "base/payload.h"

#define WARM_UP_MIN	8
#define MAX_MESSAGES	(1ULL << 24)

static int send_all(struct chan *chan, uint64_t first, uint64_t n)
{
	uint64_t i;
	void *buffer;

	for (i = first; i < first + n; i++) {
		buffer = chan->system->reserve(chan);
		if (!buffer)
			return -1;
		payload_stamp(buffer, chan->size, i);
		if (chan->system->commit(chan) < 0)
			return -1;
	}
	return 0;
}

static int take_all(struct chan *chan, uint64_t first, uint64_t n)
{
	uint32_t position;
	const void *buffer;
	uint64_t i;

	for (i = first; i < first + n; i++) {
		position = chan->in_pos;
		buffer = chan->system->take(chan);
		if (!buffer || payload_use(chan->side->options, buffer, chan->size,
					   position, i) < 0 ||
		    chan->system->release(chan) < 0)
			return -1;
	}
	return 0;
}

/* When a side began and when it was through. */
struct span {
	uint64_t begin;
	uint64_t end;
};

/*
 * Time from the sender's beginning to the receiver's end: the receiver alone
 * would not see what was sent while it did not run. Both sides are told.
 */
static int run(struct chan *chan, bool alone, uint64_t first, uint64_t n,
	       struct measure *measure)
{
	struct span spans[2];
	struct span *mine = &spans[chan->side->id];
	struct cost cost;
	int ret = 0;

	if (pair_gate(chan->side) < 0)
		return -1;
	cost_begin(&cost, chan);
	mine->begin = clock_ns();
	if (chan->side->id == 0)
		ret = alone ? chan->system->solo(chan, n) : send_all(chan, first, n);
	else if (!alone)
		ret = take_all(chan, first, n);
	mine->end = clock_ns();
	if (!ret && chan->system->settle)
		ret = chan->system->settle(chan);
	if (ret < 0 || cost_end(&cost, chan, n, measure) < 0 ||
	    pair_swap(chan->side, mine, &spans[!chan->side->id], sizeof(*mine)) < 0)
		return -1;
	measure->begin = spans[0].begin;
	measure->end = spans[alone ? 0 : 1].end;
	if (measure->end == measure->begin)
		measure->end++;
	return 0;
}

/* At least once around the ring: nothing is fresh from the kernel then. */
static uint64_t warm_up_count(const struct chan *chan)
{
	return chan->count < WARM_UP_MIN ? WARM_UP_MIN : chan->count;
}

static uint64_t choose_count(const struct chan *chan, double each_ns, uint32_t budget_ms)
{
	double n = budget_ms * (double)NSEC_PER_MSEC / each_ns;

	if (n < (double)warm_up_count(chan))
		return warm_up_count(chan);
	return n > (double)MAX_MESSAGES ? MAX_MESSAGES : (uint64_t)n;
}

/*
 * The warm-up comes in two parts. What the first one takes, with cold caches
 * and maybe a partner that is not there yet, says little: it chooses how long
 * the second one is, and that one how long the real one is.
 */
double stream_rate(struct chan *chan, uint32_t budget_ms, bool alone,
		   struct measure *measure)
{
	uint32_t budgets[] = { (budget_ms + 7) / 8, budget_ms };
	uint64_t n = warm_up_count(chan);
	uint64_t first = 1;
	double each;
	uint32_t i;

	for (i = 0; ; i++) {
		if (run(chan, alone, first, n, measure) < 0)
			return 0;
		each = (double)(measure->end - measure->begin) / (double)n;
		if (i == ARRAY_SIZE(budgets))
			break;
		first += n;
		n = choose_count(chan, each, budgets[i]);
	}
	measure->n = n;
	return (double)NSEC_PER_SEC / each;
}
