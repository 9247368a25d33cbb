// SPDX-License-Identifier: MIT
/* Serving the network: what has arrived, acknowledgments, time-outs (P 5.2.1). */
#include <sched.h>

#include "am.h"

#define MAX_AT_ONCE	4096	/* notifications of one call */
#define ACK_PATIENCE	512	/* empty polls until what is owed is sent */
#define LOOK_EVERY	64	/* polls, at the clock, if something is owed */
/* Empty polls, powers of two: others may want the processor; the program's own may. */
#define YIELD_EVERY	4096
#define YIELD_CROWDED	64
#define MAX_DOUBLINGS	8	/* of the time-out: many tries before it is given up */
#define SELDOM		8	/* of a time-out without a look at the clock */
#define LATE_TRIES	1	/* retransmissions to a process of which nothing is known */

int am_lost_error(struct am *am, int peer)
{
	int error = am->peers[peer].lost;

	if (error == -ETIMEDOUT)
		return am_fail(error,
			       "process %d (pid %d) has not answered for %llu ms",
			       peer, am->peers[peer].pid,
			       (unsigned long long)(am->give_up /
						    am->ticks_per_us / 1000));
	return am_fail(error, "process %d (pid %d) is gone", peer,
		       am->peers[peer].pid);
}

/* Nothing is sent to it any more; its requests are as if answered. */
void am_lose(struct am *am, int lost, int error)
{
	struct am_peer *peer = &am->peers[lost];
	uint32_t i;

	if (peer->lost || (uint32_t)lost == am->self)
		return;
	peer->lost = error;
	am->news++;
	if (!am->lost)
		am->lost = lost + 1;
	for (i = 0; i < AM_GETS; i++)
		if (am->gets[i].active == lost + 1)
			am->gets[i].active = 0;
	for (i = 0; i < am->depth; i++) {
		am->counting -= peer->request[i].state == AM_COUNTING;
		am_state_move(&peer->request[i].state, AM_EV_LOST);
		am_state_move(&peer->reply[i].state, AM_EV_LOST);
	}
	am->owing -= peer->owed != 0;
	peer->owed = 0;
	peer->owed_count = 0;
	memset(peer->segments, 0, sizeof(peer->segments));
	peer->free_transfers = (1U << AM_TRANSFERS) - 1;
}

/*
 * What is sent to a slot that is gone is discarded without a word. A watch tells at once.
 * There is room for a few in each process of the largest program, so the oldest one
 * of these ends. Return: 0 if those that are new have to be heard first.
 */
static int watch_late(struct am *am, uint32_t peer)
{
	struct h_ticket ticket = am->peers[peer].ticket;
	int *place = &am->late[am->next_late % AM_LATE_WATCHES];
	struct h_watch **old;

	if (am->new_late == AM_LATE_WATCHES)
		return 0;
	am->new_late++;
	if (*place) {
		old = &am->peers[*place - 1].watch;
		if (h_unwatch(*old))
			return 1;
		*old = NULL;
		*place = 0;
	}
	ticket.length = 1;
	/* Without it there is still the time-out. */
	if (h_watch(am->dev, &ticket, am->nq, peer, &am->peers[peer].watch))
		return 1;
	*place = (int)peer + 1;
	am->next_late++;
	return 1;
}

static int is_given_up(const struct am *am, const struct am_send *r)
{
	return (int64_t)(am->now - r->first) > (int64_t)am->give_up;
}

/*
 * The first time-out is over, by a clock that is behind by some polls: all of its own? Who
 * is given up need not wait for that, which after some tries is as long as all before.
 */
static void check_late(struct am *am, uint32_t peer, uint32_t instance)
{
	struct am_send *r = &am->peers[peer].request[instance];
	int64_t limit = (int64_t)(am->timeout << (r->tries < MAX_DOUBLINGS ?
						  r->tries : MAX_DOUBLINGS));
	int64_t waited = (int64_t)(am->now - r->stamp);

	if (am_likely(waited < limit && !is_given_up(am, r)))
		return;
	/* We did not poll, or were stopped, perhaps with all others: not its fault. */
	if (waited > 2 * limit)
		r->first += (uint64_t)(waited - limit);
	if (is_given_up(am, r))
		am_lose(am, (int)peer, -ETIMEDOUT);
	else if (r->tries < LATE_TRIES || am->peers[peer].watch || watch_late(am, peer))
		am_request_again(am, (int)peer, instance);
}

static inline void check(struct am *am, uint32_t peer, uint32_t instance)
{
	struct am_send *r = &am->peers[peer].request[instance];

	if (r->state != AM_COUNTING)
		return;
	/* Most are answered before it is looked at them. */
	if (!r->stamp) {
		r->stamp = am_clock();
		if (!r->tries)
			r->first = r->stamp;
	} else if (am_unlikely((int64_t)(am->now - r->stamp) >=
			       (int64_t)am->timeout)) {
		check_late(am, peer, instance);
	}
}

/* For who does not poll often enough to get round by am_serve(). */
void am_check_all(struct am *am)
{
	uint32_t p;
	uint32_t i;

	if (!am->reliable)
		return;
	am->now = am_clock();
	for (p = 0; p < am->procs; p++)
		for (i = 0; i < am->depth; i++)
			check(am, p, i);
}

static __attribute__((noinline)) void check_next_peer(struct am *am)
{
	uint64_t before = am->now;

	am->check_instance = 0;
	if (++am->check_peer >= am->procs)
		am->check_peer = 0;
	am->now = am_clock();
	if (am_unlikely(am->now - before > am->timeout / SELDOM))
		am_check_all(am);
}

/* The next one of all requests, process by process. */
static inline void check_one(struct am *am)
{
	if (++am->check_instance >= am->depth)
		check_next_peer(am);
	check(am, am->check_peer, am->check_instance);
}

/* Before who waits for an acknowledgment sends again. */
static int is_overdue(const struct am *am)
{
	return (int64_t)(am_clock() - am->owed_since) >
	       (int64_t)(am->timeout / 8);
}

static void found_nothing(struct am *am)
{
	int yields;

	am->empty++;
	yields = !(am->empty & ((am->crowded ? YIELD_CROWDED : YIELD_EVERY) - 1));
	if (am->owing && (am->empty >= ACK_PATIENCE || yields ||
			  (am->empty % LOOK_EVERY == 1 && is_overdue(am))))
		am_acks_flush(am);
	if (yields)
		sched_yield();
}

/* Who has much to do for one process may owe to another. */
static void found_something(struct am *am)
{
	am->empty = 0;
	if (am->owing && ++am->busy % LOOK_EVERY == 0 && is_overdue(am))
		am_acks_flush(am);
}

/*
 * All that has arrived, and one time-out. For the main context. Return: how many
 * messages were handled.
 */
int am_serve(struct am *am)
{
	struct hamlyn_nq_entry entry;
	int handled = 0;
	int taken = 0;
	int rc;

	while (taken < MAX_AT_ONCE && (rc = h_recv(am->nq, &entry))) {
		taken++;
		if (am_unlikely(rc < 0)) {
			/* Their data are there; the time-outs see to the rest. */
			am->stats.overruns++;
			continue;
		}
		handled += am_arrive(am, &entry);
	}
	am->new_late = 0;
	if (taken)
		found_something(am);
	else
		found_nothing(am);
	if (am->counting && am->reliable)
		check_one(am);
	if (am_unlikely(am->stores))
		am_bulk_continue(am);
	return handled;
}
