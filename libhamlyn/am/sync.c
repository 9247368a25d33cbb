// SPDX-License-Identifier: MIT
/*
 * All processes are here: in round k each tells the one 2^k further, and waits for the
 * one 2^k before. A round has one sender, so counting is enough to tell epochs apart.
 *
 * Who has lost a process sends no more rounds. So that nobody waits for them for ever who
 * has not lost it, it answers with the error what it is told or asked from then on, and
 * who waits asks whom it waits for now and then. To be asked also shows who is silent.
 */
#include "am.h"

#define ASK_EVERY_US	250000

/* The first loss that we know of: all barriers fail with that. Return: 0, or its error. */
static int failure(struct am *am)
{
	if (am_unlikely(am->lost && !am->sync_error)) {
		am->sync_lost = am->lost - 1;
		am->sync_teller = (int)am->self;
		am->sync_error = am->peers[am->sync_lost].lost;
	}
	return am->sync_error;
}

/* The same for a call that returns it, and says so. */
static int told_failure(struct am *am)
{
	if (am_likely(!failure(am)))
		return 0;
	if (am->sync_teller == (int)am->self)
		return am_lost_error(am, am->sync_lost);
	return am_fail(am->sync_error, "process %d says that process %d is lost",
		       am->sync_teller, am->sync_lost);
}

/* In a handler: its round, or the question of who waits for ours. */
void am_sync_arrives(struct am *am, const struct am_packet *packet)
{
	struct am_packet p = { .kind = AM_SYNC };
	int rc = failure(am);

	if (rc) {
		p.args[0] = (uint64_t)-rc;
		p.args[1] = (uint32_t)am->sync_lost;
		am_reply_send(am, &p, NULL);
	} else if (packet->args[0] < AM_SYNC_ROUNDS) {
		am->synced[packet->args[0]]++;
	}
}

/* The answer of one that has failed. */
void am_sync_failed(struct am *am, int teller, const struct am_packet *packet)
{
	if (am->sync_error)
		return;
	am->sync_error = packet->args[0] == ETIMEDOUT ? -ETIMEDOUT : -ECONNRESET;
	am->sync_lost = (int)packet->args[1];
	am->sync_teller = teller;
}

/* Unless as much as may be is under way to it, which gets its answers or time-outs. */
static void ask(struct am *am, int whom)
{
	const struct am_packet p = { .kind = AM_SYNC, .args = { AM_SYNC_ASK } };
	uint32_t instance;

	if (am_request_try(am, whom, &instance))
		am_request_issue(am, whom, instance, &p, NULL, AM_NO_TRANSFER);
}

static int wait_for(struct am *am, uint32_t round, int whom)
{
	uint64_t asked = am_clock();

	while ((int32_t)(am->synced[round] - am->sync_epoch) < 0) {
		int rc;

		am_serve(am);
		/* Whoever it is: others give up, and we may wait for those. */
		rc = told_failure(am);
		if (rc)
			return rc;
		if (am_clock() - asked > ASK_EVERY_US * am->ticks_per_us) {
			ask(am, whom);
			asked = am_clock();
		}
	}
	return 0;
}

int am_sync(struct am *am)
{
	uint32_t round;
	uint32_t step;
	int rc;

	/* What was sent before is handled before anybody goes on. */
	while (am->counting || am->stores)
		am_serve(am);
	rc = told_failure(am);
	am->sync_epoch++;
	for (round = 0, step = 1; !rc && step < am->procs; round++, step *= 2) {
		struct am_packet p = { .kind = AM_SYNC, .args = { round } };
		int dest = (int)((am->self + step) % am->procs);

		rc = am_can_request(am, dest);
		if (!rc)
			rc = am_request_send(am, dest, &p, NULL, AM_NO_TRANSFER);
		if (!rc)
			rc = wait_for(am, round, (int)((am->self + am->procs - step) %
						       am->procs));
	}
	return rc;
}
