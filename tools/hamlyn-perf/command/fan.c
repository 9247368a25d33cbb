// SPDX-License-Identifier: GPL-2.0-only
/*
 * Many processes that send to one, or to one each. A sender has a ring of places
 * in its receiver's area and may be so many messages ahead. Each message says
 * its number twice: in the area, and in the fast mode word, with its sender.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* CPU sets */
#endif
#include <sched.h>

#include "base/clock.h"
#include "measure/cost.h"
#include "load/endpoint.h"
#include "command/fan.h"
#include "load/pair.h"
#include "base/stats.h"

/*
 * Messages that a sender may be ahead. Where processors are scarce it is what
 * fits into one turn of the sender's and one of the receiver's.
 */
#define WINDOW		256
#define PLACE		64	/* bytes from one to the next */
#define MESSAGE		16	/* bytes */
#define NUMBER_BITS	48	/* of the word; the rest is the sender */
#define LOOK		64	/* messages until the clock is read */
#define MAX_CPUS	1024
#define DEFAULT_MS	300	/* of a repetition */
#define DEFAULT_REPS	3

/* Of one sender. Its receiver writes taken; it writes sent. */
struct lane {
	uint64_t taken;
	uint64_t at_start;	/* taken when the time began */
	uint64_t apart[6];
	uint64_t sent;
	uint64_t apart_too[7];
};

struct fan {
	const struct options *options;
	uint32_t senders;
	uint32_t receivers;
	uint64_t ns;
	int cpus[MAX_CPUS];
	uint32_t ncpus;
	/* Shared. */
	struct fan_shared {
		struct lane lanes[PERF_MAX_SENDERS];	/* first: at the head of a page */
		uint32_t listening;	/* receivers that have told their tickets */
		uint32_t ready;		/* senders */
		uint32_t timing;	/* receivers whose time runs */
		uint32_t stop[PERF_MAX_SENDERS];	/* of receivers: its time is over */
		/* While it ran, of all. */
		uint64_t cpu_ns;
		uint64_t engine_ns;
		uint64_t kicks;
		struct h_ticket tickets[PERF_MAX_SENDERS];	/* of receivers */
		uint64_t spans[PERF_MAX_SENDERS];	/* ns that each took messages */
	} *shared;
};

static int await(const uint32_t *counter, uint32_t value, const char *what)
{
	struct wait wait = WAIT(what);

	while (__atomic_load_n(counter, __ATOMIC_ACQUIRE) < value)
		if (!wait_more(&wait))
			return -1;
	return 0;
}

/* A receiver has places for its own senders only. */
static size_t place_of(const struct fan *fan, uint32_t sender, uint64_t number)
{
	return (sender / fan->receivers * WINDOW + number % WINDOW) * PLACE;
}

/* ---- what it costs ------------------------------------------------------ */

/* A process' clocks when the time began. */
struct bill {
	bool open;
	uint64_t cpu_ns;
	uint64_t engine_ns;
	uint64_t kicks;
};

static uint64_t kicks_of(struct endpoint *ep)
{
	struct hamlyn_stats stats = { 0 };

	return h_terminus_stats(ep->terminus, &stats) < 0 ? 0 : stats.kicks;
}

static void bill_open(struct bill *bill, struct endpoint *ep)
{
	*bill = (struct bill){
		.open = true,
		.kicks = kicks_of(ep),
		.engine_ns = cost_engines_ns(),
		.cpu_ns = cost_process_ns(),
	};
}

/* @engines: they serve all, so that one process charges them. */
static void bill_close(const struct bill *bill, struct fan *fan, struct endpoint *ep,
		       bool engines)
{
	struct fan_shared *shared = fan->shared;

	if (!bill->open)
		return;
	__atomic_add_fetch(&shared->cpu_ns, cost_process_ns() - bill->cpu_ns,
			   __ATOMIC_RELAXED);
	__atomic_add_fetch(&shared->kicks, kicks_of(ep) - bill->kicks, __ATOMIC_RELAXED);
	if (engines)
		shared->engine_ns = cost_engines_ns() - bill->engine_ns;
}

/* ---- a receiver --------------------------------------------------------- */

static int take(struct fan *fan, struct endpoint *ep, const struct hamlyn_nq_entry *entry)
{
	uint32_t sender = (uint32_t)(entry->data >> NUMBER_BITS);
	uint64_t number = entry->data & ((1ULL << NUMBER_BITS) - 1);
	const unsigned char *place = h_area_addr(ep->in);
	struct lane *lane;
	uint64_t got;

	if (!(entry->flags & HAMLYN_NQE_FAST) || sender >= fan->senders)
		return fail("a message that nobody has sent");
	lane = &fan->shared->lanes[sender];
	if (number != lane->taken)
		return fail("message %llu of sender %u came where %llu was due",
			    (unsigned long long)number, sender, (unsigned long long)lane->taken);
	place += place_of(fan, sender, number);
	memcpy(&got, place, sizeof(got));
	if (got != entry->data)
		return fail("message %llu of sender %u was announced and is not there",
			    (unsigned long long)number, sender);
	__atomic_store_n(&lane->taken, number + 1, __ATOMIC_RELEASE);
	return 0;
}

/* At least one message: on a busy machine the senders may not have had their turn. */
static int take_for(struct fan *fan, struct endpoint *ep, uint64_t ns, uint64_t *took)
{
	struct wait wait = WAIT("message from any sender");
	uint64_t start = clock_ns();
	struct hamlyn_nq_entry entry;
	uint64_t messages = 0;
	uint32_t i;
	int n;

	do {
		for (i = 0; i < LOOK; i++) {
			n = h_recv(ep->nq, &entry);
			if (n < 0)
				return endpoint_recv_odd(ep, n);
			if (n) {
				wait = WAIT("message from any sender");
				messages++;
				if (take(fan, ep, &entry) < 0)
					return -1;
			} else if (!wait_more(&wait)) {
				return -1;
			}
		}
		*took = clock_ns() - start;
	} while (*took < ns || !messages);
	return 0;
}

/* Of the senders of this receiver. */
static bool is_mine(const struct fan *fan, uint32_t sender, uint32_t receiver)
{
	return sender % fan->receivers == receiver;
}

static void mark_start(struct fan *fan, uint32_t receiver)
{
	uint32_t i;

	for (i = 0; i < fan->senders; i++)
		if (is_mine(fan, i, receiver))
			fan->shared->lanes[i].at_start = fan->shared->lanes[i].taken;
}

static void mark_end(struct fan *fan, uint32_t receiver)
{
	struct lane *lane;
	uint32_t i;

	for (i = 0; i < fan->senders; i++) {
		lane = &fan->shared->lanes[i];
		if (is_mine(fan, i, receiver))
			lane->at_start = lane->taken - lane->at_start;
	}
}

static int receive(struct fan *fan, uint32_t receiver)
{
	uint32_t senders = fan->senders / fan->receivers;
	const struct endpoint_attr attr = {
		.bytes = (size_t)senders * WINDOW * PLACE,
		.metas = 1,
		.notifications = senders * WINDOW,
	};
	struct endpoint ep;
	struct bill bill;
	uint64_t took;
	int ret;

	if (endpoint_open(&ep, fan->options, &attr) < 0)
		return -1;
	fan->shared->tickets[receiver] = ep.own;
	__atomic_add_fetch(&fan->shared->listening, 1, __ATOMIC_RELEASE);
	ret = await(&fan->shared->ready, fan->senders, "sign of life of the senders");
	if (!ret)
		ret = take_for(fan, &ep, fan->ns / 4, &took);
	mark_start(fan, receiver);
	__atomic_add_fetch(&fan->shared->timing, 1, __ATOMIC_RELEASE);
	bill_open(&bill, &ep);
	if (!ret)
		ret = take_for(fan, &ep, fan->ns, &fan->shared->spans[receiver]);
	mark_end(fan, receiver);
	bill_close(&bill, fan, &ep, !receiver);
	__atomic_store_n(&fan->shared->stop[receiver], 1, __ATOMIC_RELEASE);
	endpoint_close(&ep);
	return ret;
}

/* ---- a sender ----------------------------------------------------------- */

/* One CPU for all: who cannot go on lets the others go on. */
static int await_room(const struct lane *lane, const uint32_t *stop)
{
	struct wait wait = WAIT("room at the receiver");

	while (lane->sent - __atomic_load_n(&lane->taken, __ATOMIC_ACQUIRE) >= WINDOW) {
		if (__atomic_load_n(stop, __ATOMIC_RELAXED))
			return 1;
		if (!wait_more(&wait))
			return -1;
	}
	return 0;
}

static int fire(const struct fan *fan, struct endpoint *ep, const struct h_ticket *ticket,
		uint32_t sender, uint64_t number)
{
	uint64_t data[MESSAGE / 8] = { (uint64_t)sender << NUMBER_BITS | number };
	const struct h_msg msg = {
		.ticket = ticket,
		.offset = place_of(fan, sender, number),
		.data = data,
		.length = sizeof(data),
		.word = data[0],
	};
	struct wait wait = WAIT("room in the work queue");
	int64_t handle;

	while ((handle = h_send(ep->terminus, &msg)) == -EAGAIN)
		if (!wait_more(&wait))
			return -1;
	return endpoint_sent(ep, handle) < 0 ? -1 : 0;
}

static int fire_all(struct fan *fan, struct endpoint *ep, uint32_t sender, struct bill *bill)
{
	/* Not when another one's is over: its own may not have had a turn yet. */
	const uint32_t *stop = &fan->shared->stop[sender % fan->receivers];
	struct lane *lane = &fan->shared->lanes[sender];
	struct h_ticket ticket = fan->shared->tickets[sender % fan->receivers];
	int ret;

	ticket.meta_index = HAMLYN_META_FAST;
	while (!__atomic_load_n(stop, __ATOMIC_ACQUIRE)) {
		if (!bill->open && __atomic_load_n(&fan->shared->timing, __ATOMIC_RELAXED))
			bill_open(bill, ep);
		ret = await_room(lane, stop);
		if (ret)
			return ret < 0 ? -1 : 0;
		if (fire(fan, ep, &ticket, sender, lane->sent) < 0)
			return -1;
		lane->sent++;
	}
	return 0;
}

static int send_some(struct fan *fan, uint32_t sender)
{
	const struct endpoint_attr attr = { .bytes = 4096, .metas = 1, .notifications = 1 };
	struct bill bill = { 0 };
	struct endpoint ep;
	int ret;

	if (endpoint_open(&ep, fan->options, &attr) < 0)
		return -1;
	ret = await(&fan->shared->listening, fan->receivers, "ticket");
	__atomic_add_fetch(&fan->shared->ready, 1, __ATOMIC_RELEASE);
	if (!ret)
		ret = await(&fan->shared->ready, fan->senders, "other senders");
	if (!ret)
		ret = fire_all(fan, &ep, sender, &bill);
	bill_close(&bill, fan, &ep, false);
	endpoint_close(&ep);
	return ret;
}

/* ---- all of them -------------------------------------------------------- */

/* The two of --cpus, and what else there is. */
static void list_cpus(struct fan *fan)
{
	const int *first = fan->options->cpus;
	cpu_set_t set;
	int cpu;

	fan->cpus[fan->ncpus++] = first[0];
	if (first[1] != first[0])
		fan->cpus[fan->ncpus++] = first[1];
	if (sched_getaffinity(0, sizeof(set), &set) < 0 || fan->ncpus < 2)
		return;
	for (cpu = 0; cpu < CPU_SETSIZE && fan->ncpus < MAX_CPUS; cpu++)
		if (CPU_ISSET(cpu, &set) && cpu != first[0] && cpu != first[1])
			fan->cpus[fan->ncpus++] = cpu;
}

/* That this process may use. */
uint32_t fan_cpus(void)
{
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return 1;
	return (uint32_t)CPU_COUNT(&set);
}

/* One receiver keeps its CPU for itself; pairs take two CPUs each, in turn. */
static int cpu_of(const struct fan *fan, uint32_t number, bool receiver)
{
	if (fan->receivers > 1)
		return fan->cpus[(2 * number + receiver) % fan->ncpus];
	if (receiver || fan->ncpus < 2)
		return fan->cpus[0];
	return fan->cpus[1 + number % (fan->ncpus - 1)];
}

static int run_member(void *arg, uint32_t member)
{
	struct fan *fan = arg;
	bool receiver = member < fan->receivers;
	uint32_t number = receiver ? member : member - fan->receivers;

	if (pair_pin(cpu_of(fan, number, receiver)) < 0)
		return -1;
	return receiver ? receive(fan, number) : send_some(fan, number);
}

static void sum_up(const struct fan *fan, struct fan_result *result)
{
	const struct lane *lane;
	double rate;
	uint32_t i;

	*result = (struct fan_result){ 0 };
	for (i = 0; i < fan->senders; i++) {
		lane = &fan->shared->lanes[i];
		rate = (double)lane->at_start * 1e9 /
		       (double)fan->shared->spans[i % fan->receivers];
		result->rate += rate;
		result->n += lane->at_start;
		if (!i || rate < result->least)
			result->least = rate;
		if (!i || rate > result->most)
			result->most = rate;
	}
	if (!result->n)
		return;
	result->cpu_ns = (double)fan->shared->cpu_ns / (double)result->n;
	result->engine_ns = (double)fan->shared->engine_ns / (double)result->n;
	result->kicks = (double)fan->shared->kicks / (double)result->n;
}

uint32_t fan_reps(const struct options *options)
{
	return options->reps ? options->reps : DEFAULT_REPS;
}

int fan_once(struct fan_result *result, const struct options *options, uint32_t senders,
	     bool pairs)
{
	uint32_t ms = options->point_ms ? options->point_ms : DEFAULT_MS;
	struct fan fan = {
		.options = options, .senders = senders,
		.receivers = pairs ? senders : 1, .ns = ms * NSEC_PER_MSEC,
	};
	uint64_t limit_s = 4ULL * options->timeout_s + ms / 1000;
	struct crew crew;
	int ret;

	fan.shared = crew_shared_new(sizeof(*fan.shared));
	if (!fan.shared)
		return -1;
	list_cpus(&fan);
	ret = crew_start(&crew, options, fan.receivers + fan.senders, run_member, &fan);
	if (!ret)
		ret = crew_finish(&crew, 0, limit_s);
	if (!ret)
		sum_up(&fan, result);
	crew_shared_free(fan.shared, sizeof(*fan.shared));
	return ret;
}

#define MEDIAN(member)	stats_median_at(results, n, sizeof(*results), \
					offsetof(struct fan_result, member))

void fan_median(struct fan_result *median, const struct fan_result *results, uint32_t n)
{
	uint32_t i;

	*median = (struct fan_result){
		.rate = MEDIAN(rate),
		.least = MEDIAN(least),
		.most = MEDIAN(most),
		.cpu_ns = MEDIAN(cpu_ns),
		.engine_ns = MEDIAN(engine_ns),
		.kicks = MEDIAN(kicks),
	};
	for (i = 0; i < n; i++)
		median->n += results[i].n;
}
