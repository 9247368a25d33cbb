// SPDX-License-Identifier: MIT
/* Receiving: waiting, and the rare entries that are no messages. */
#include <time.h>
#include <unistd.h>

#include "low/device.h"

int h__nq_sleep(struct h_nq *nq, int64_t deadline_ns)
{
	return nq->dev->ops->nq_sleep(nq, deadline_ns);
}

/*
 * Polling longer than a sleep and a wake cost gains nothing; how many polls
 * that is does not matter much. One processor: the sender cannot run.
 */
#define SPINS_BEFORE_SLEEP	2000

/* How many empty polls make up some ms, by how long the last ones took. */
static uint32_t polls_until_next(struct h_nq *nq)
{
	uint32_t now = (uint32_t)(h__now_ns() >> 20);	/* about ms */
	uint32_t took = now - h__read_once(&nq->looked);
	uint32_t polls = h__read_once(&nq->polls);

	/* Some poll without a pause, others once a while: look every 16 ms. */
	if (took > 16)
		polls = polls > took / 8 ? polls / (took / 8) : 1;
	else if (took < 8 && polls < H_PATIENCE)
		polls *= 2;
	h__write_once(&nq->looked, now);
	h__write_once(&nq->polls, polls);
	return polls;
}

int h__nq_idle(struct h_nq *nq)
{
	/* The kernel looks after its queues: not even the clock is read. */
	if (!nq->dev->ops->nq_mend) {
		h__write_once(&nq->patience, INT32_MAX);
		return 0;
	}
	h__write_once(&nq->patience, polls_until_next(nq));
	nq->dev->ops->nq_mend(nq);
	return 0;
}

static bool lost_untold(const struct h_nq *nq)
{
	return h_nq_lost(nq) != h__read_once(&nq->told);
}

int h__nq_odd(struct h_nq *nq, struct hamlyn_nq_entry *entry)
{
	const struct h_dev_ops *ops = nq->dev->ops;

	if (entry->flags & HAMLYN_NQE_PEER_GONE &&
	    (!ops->nq_gone || ops->nq_gone(nq, entry)))
		return 1;
	/*
	 * Not an error: what died before it was sent was never sent. But it may have
	 * been the report of an overrun, which those whose entries were lost since
	 * relied on. Who is killed otherwise may cause one report too many.
	 */
	if (!(entry->flags & HAMLYN_NQE_OVERRUN) &&
	    !(entry->flags & HAMLYN_NQE_VOID && lost_untold(nq)))
		return h_recv(nq, entry);
	h__write_once(&nq->told, h_nq_lost(nq));
	/* What a watch has to tell found no room either. */
	h__nq_idle(nq);
	return -EOVERFLOW;
}

uint32_t h_nq_lost(const struct h_nq *nq)
{
	return h__read_once(&nq->ring->lost);
}

static bool single_processor(void)
{
	static int processors;
	int n = h__read_once(&processors);

	if (!n) {
		n = (int)sysconf(_SC_NPROCESSORS_ONLN);
		h__write_once(&processors, n);
	}
	return n == 1;
}

int h_recv_block(struct h_nq *nq, struct hamlyn_nq_entry *entry,
		 int64_t timeout_ns)
{
	int64_t deadline = h__deadline(timeout_ns);
	int spins = single_processor() ? 1 : SPINS_BEFORE_SLEEP;
	int ret, i;

	for (;;) {
		for (i = 0; i < spins; i++) {
			ret = h_recv(nq, entry);
			if (ret)
				return h__taken(ret);
		}
		ret = nq->dev->ops->nq_sleep(nq, deadline);
		if (ret < 0)
			break;
	}
	/* It may have come between the last look and the deadline. */
	if (ret == -ETIMEDOUT) {
		int got = h_recv(nq, entry);

		if (got)
			return h__taken(got);
		if (timeout_ns == H_NOWAIT)
			return -EAGAIN;
	}
	return ret;
}
