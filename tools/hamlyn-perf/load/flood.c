// SPDX-License-Identifier: GPL-2.0-only
/* Processes that send to one slot as fast as they can. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* CPU sets */
#endif
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "load/endpoint.h"
#include "load/flood.h"
#include "load/pair.h"

#define TURNS_PER_LOOK	64	/* turns through the termini until the clock is read */

struct gun {
	struct flood *flood;
	struct flood_sender *tally;
	uint32_t number;
	struct h_dev *dev;
	struct h_area *out;
	struct h_terminus **termini;
	struct h_ticket ticket;
	uint32_t round;
};

/* ---- for the process that is sent to ------------------------------------ */

/*
 * A sender that copies a ticket while it is replaced, FLOOD_TICKETS rounds too
 * late, sends with a key and a slot that do not belong together: it is refused.
 */
void flood_tell(struct flood *flood, const struct h_ticket *ticket)
{
	uint32_t round = flood->round + 1;

	flood->tickets[round % FLOOD_TICKETS] = *ticket;
	__atomic_store_n(&flood->round, round, __ATOMIC_RELEASE);
}

void flood_void(struct flood *flood)
{
	__atomic_store_n(&flood->void_round, flood->round, __ATOMIC_RELEASE);
}

void flood_stop(struct flood *flood)
{
	__atomic_store_n(&flood->stop, 1, __ATOMIC_RELEASE);
}

/* ---- a sender ----------------------------------------------------------- */

/* CPUs other than the receiver's, in turn, if there are any. */
static int pin(const struct options *options, uint32_t number)
{
	uint32_t others = 0, wanted;
	cpu_set_t set;
	int cpu;

	if (options->ncpus < 2 || !number)
		return pair_pin(options->cpus[1]);
	if (sched_getaffinity(0, sizeof(set), &set) < 0)
		return pair_pin(options->cpus[1]);
	CPU_CLR(options->cpus[0], &set);
	CPU_CLR(options->cpus[1], &set);
	others = (uint32_t)CPU_COUNT(&set);
	wanted = number % (others + 1);
	if (!wanted)
		return pair_pin(options->cpus[1]);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set) && !--wanted)
			return pair_pin(cpu);
	return 0;
}

static int make_terminus(struct gun *gun, struct h_terminus **terminus)
{
	const struct h_terminus_attr attr = { .flags = H_TERMINUS_SINGLE };
	int ret = h_terminus_create(gun->dev, &attr, terminus);

	if (!ret)
		ret = h_terminus_bind(*terminus, 0, gun->out, 0, 0);
	return ret < 0 ? fail("no terminus: %s", strerror(-ret)) : 0;
}

static int load(struct gun *gun, const struct options *options)
{
	size_t bytes = gun->flood->size;
	uint32_t i;
	int ret;

	if (endpoint_device(&gun->dev, options) < 0)
		return -1;
	ret = h_area_alloc(gun->dev, bytes, &gun->out);
	if (ret < 0)
		return fail("%s has no area of %zu bytes for sender %u: %s",
			    h_dev_name(gun->dev), bytes, gun->number, strerror(-ret));
	memset(h_area_addr(gun->out), FLOOD_BYTE, bytes);
	gun->termini = calloc(gun->flood->termini, sizeof(struct h_terminus *));
	if (!gun->termini)
		return fail("out of memory");
	for (i = 0; i < gun->flood->termini; i++)
		if (make_terminus(gun, &gun->termini[i]) < 0)
			return -1;
	return 0;
}

static int wait_ticket(struct gun *gun)
{
	struct wait wait = WAIT("ticket");

	while (!__atomic_load_n(&gun->flood->round, __ATOMIC_ACQUIRE)) {
		if (__atomic_load_n(&gun->flood->stop, __ATOMIC_ACQUIRE))
			return 0;
		if (!wait_more(&wait))
			return -1;
	}
	return 0;
}

static inline void look_at_ticket(struct gun *gun)
{
	uint32_t round = __atomic_load_n(&gun->flood->round, __ATOMIC_ACQUIRE);

	if (round == gun->round)
		return;
	gun->ticket = gun->flood->tickets[round % FLOOD_TICKETS];
	gun->round = round;
}

/* Returns 1 if it was sent, 0 if the queue is full. */
static int fire(struct gun *gun, uint32_t i)
{
	uint32_t place = gun->number * gun->flood->termini + i;
	struct h_msg msg = {
		.ticket = &gun->ticket,
		.data = h_area_addr(gun->out),
		.length = gun->flood->size,
	};
	bool late = __atomic_load_n(&gun->flood->void_round, __ATOMIC_ACQUIRE) == gun->round;
	int64_t handle;

	/* Huge ones are as long as the message area; small ones lie side by side. */
	if (msg.length == FLOOD_SMALL)
		msg.offset = (uint64_t)place * FLOOD_SPACE;
	gun->ticket.meta_index = place;
	handle = h_send(gun->termini[i], &msg);
	if (handle == -EAGAIN)
		return 0;
	if (handle < 0)
		return fail("sender %u: %s", gun->number, strerror((int)-handle));
	gun->tally->sent++;
	gun->tally->late += late;
	return 1;
}

/* Through all termini once. Returns how many messages were sent. */
static int turn(struct gun *gun)
{
	uint32_t i;
	int sent = 0;
	int ret;

	for (i = 0; i < gun->flood->termini; i++) {
		look_at_ticket(gun);
		ret = fire(gun, i);
		if (ret < 0)
			return -1;
		sent += ret;
	}
	return sent;
}

static int fire_all(struct gun *gun)
{
	uint64_t deadline = clock_ns() + gun->flood->limit_ns;
	uint32_t turns;
	int sent;

	for (turns = 0; !__atomic_load_n(&gun->flood->stop, __ATOMIC_ACQUIRE); turns++) {
		sent = turn(gun);
		if (sent < 0)
			return -1;
		/* All queues full: the NIC may need this processor. */
		if (!sent)
			sched_yield();
		if (turns % TURNS_PER_LOOK)
			continue;
		if (fail_happened())
			return -1;
		if (clock_ns() > deadline)
			return fail("sender %u was not told to stop", gun->number);
	}
	return 0;
}

int flood_send(struct flood *flood, const struct options *options, uint32_t sender)
{
	struct gun gun = {
		.flood = flood, .tally = &flood->senders[sender], .number = sender,
	};
	int ret;

	ret = pin(options, sender);
	if (!ret)
		ret = load(&gun, options);
	if (!ret) {
		__atomic_add_fetch(&flood->ready, 1, __ATOMIC_RELEASE);
		ret = wait_ticket(&gun);
	}
	if (!ret)
		ret = fire_all(&gun);
	h_close(gun.dev);
	free(gun.termini);
	return ret;
}
