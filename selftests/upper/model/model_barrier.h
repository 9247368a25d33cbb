/* SPDX-License-Identifier: GPL-2.0-only */
/* Of model.c: barriers: nobody gets out before everybody has got in. */
#ifndef MODEL_BARRIER_H
#define MODEL_BARRIER_H

#include "model_pair.h"

static const char *barrier_open(struct pair *p, uint64_t *random)
{
	struct barrier *b = &p->barrier;
	struct h_seed seed;
	uint32_t i;
	int err;

	b->participants = 1 + below(random, MOST_MEMBERS);
	b->rounds = below(random, 40);
	b->leaver = below(random, 8) || packets_are_late ?
		    MOST_MEMBERS : below(random, b->participants);
	err = h_barrier_create(p->world->to, b->participants, &b->b[0]);
	if (err)
		return complain("no barrier: %d", err);
	for (i = 1; i < b->participants; i++) {
		err = h_barrier_seed(b->b[0], i, &seed);
		if (!err)
			err = h_barrier_join(p->world->from, &seed, &b->b[i]);
		if (err)
			return complain("no participant: %d", err);
	}
	return h_barrier_seed(b->b[0], i, &seed) == -ERANGE ? NULL :
	       "a participant too many";
}

static uint32_t out_of(const struct barrier *b, uint32_t i)
{
	return __atomic_load_n(&b->out[i], __ATOMIC_SEQ_CST);
}

static uint32_t begun_by(const struct barrier *b, uint32_t i)
{
	return __atomic_load_n(&b->begun[i], __ATOMIC_SEQ_CST);
}

/* Has one left who did not get out of @round? It may have been in. */
static bool left_before(const struct barrier *b, uint32_t round)
{
	uint32_t i;

	for (i = 0; i < b->participants; i++)
		if (happened(&b->left[i]) && out_of(b, i) < round)
			return true;
	return false;
}

/* Wait for the round after the last one that it got out of. */
static const char *barrier_call(struct pair *p, uint32_t i, int64_t timeout)
{
	struct barrier *b = &p->barrier;
	uint32_t round = b->out[i] + 1, j;
	int ret;

	__atomic_store_n(&b->begun[i], round, __ATOMIC_SEQ_CST);
	ret = h_barrier_wait(b->b[i], timeout);
	if (ret == -EPIPE) {
		b->over[i] = true;
		return left_before(b, round) ? NULL : "nobody has left";
	}
	if (ret)
		return later(ret) ? NULL : complain("wait: %d", ret);
	if (b->over[i])
		return "it was over";
	for (j = 0; j < b->participants; j++)
		if (begun_by(b, j) < round)
			return complain("%u is out of round %u, %u is not in",
					i, round, j);
	__atomic_store_n(&b->out[i], round, __ATOMIC_SEQ_CST);
	return NULL;
}

static const char *barrier_leave(struct pair *p, uint32_t i)
{
	struct barrier *b = &p->barrier;
	int err;

	happens(&b->left[i]);
	err = h_barrier_destroy(b->b[i]);
	b->b[i] = NULL;
	/* Or others would send to it: as settle() says. */
	h_manager_poll(i ? p->world->to : p->world->from);
	return err ? complain("leave: %d", err) : NULL;
}

/* ---- one thread ---- */

static const char *barrier_step(struct pair *p, uint64_t *random)
{
	struct barrier *b = &p->barrier;
	uint32_t i = below(random, b->participants);

	if (!b->b[i])
		return NULL;
	if (!below(random, 1000) && !packets_are_late)
		return barrier_leave(p, i);
	return barrier_call(p, i, H_NOWAIT);
}

/* Everybody gets in and out, or is told that somebody has left. */
static const char *barrier_finish(struct pair *p, uint64_t *random)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct barrier *b = &p->barrier;
	uint32_t i, round = 0, waiting;
	const char *wrong = NULL;
	bool ends = false;

	for (i = 0; i < b->participants; i++) {
		ends |= b->left[i];
		if (b->begun[i] > round)
			round = b->begun[i];
	}
	do {
		waiting = 0;
		for (i = 0; i < b->participants && !wrong; i++) {
			if (!b->b[i] || (ends ? b->over[i] : b->out[i] == round))
				continue;
			waiting++;
			wrong = barrier_call(p, i, H_NOWAIT);
		}
		if (!wrong && ht_now_ns() > end)
			wrong = complain("%u are still in", waiting);
		if (below(random, 2))
			h_manager_poll(p->world->to);
	} while (!wrong && waiting);
	return wrong;
}

/* ---- two threads: who has created it, and all others ---- */

static bool is_done(const struct barrier *b, uint32_t i)
{
	return !b->b[i] || b->over[i] || b->out[i] == b->rounds;
}

/* At half of the rounds, if it is the one who leaves. */
static const char *barrier_go_on(struct pair *p, uint32_t i, int64_t timeout)
{
	struct barrier *b = &p->barrier;

	if (b->leaver == i && b->out[i] == b->rounds / 2)
		return barrier_leave(p, i);
	return barrier_call(p, i, timeout);
}

static const char *barrier_creator(struct pair *p, uint64_t *random)
{
	struct barrier *b = &p->barrier;
	const char *wrong = NULL;

	while (!wrong && !is_done(b, 0)) {
		uint32_t before = b->out[0];
		bool wait = below(random, 2);

		wrong = barrier_go_on(p, 0, wait ? ht_patience_ns() : H_NOWAIT);
		if (!wrong && wait && b->out[0] == before && !is_done(b, 0))
			wrong = "nobody comes";
	}
	return wrong;
}

/* One after the other: none of them may wait for those behind. */
static const char *barrier_others(struct pair *p, uint64_t *random)
{
	int64_t end = ht_now_ns() + 2 * ht_patience_ns();
	struct barrier *b = &p->barrier;
	const char *wrong = NULL;
	uint32_t i, waiting;

	do {
		waiting = 0;
		for (i = 1; i < b->participants && !wrong; i++) {
			if (is_done(b, i))
				continue;
			waiting++;
			wrong = barrier_go_on(p, i, below(random, 2) ? H_NOWAIT :
						    1 + below(random, 20000));
		}
		if (!wrong && ht_now_ns() > end)
			wrong = complain("%u are still in", waiting);
	} while (!wrong && waiting);
	return wrong;
}

static const char *barrier_judge(struct pair *p)
{
	const struct barrier *b = &p->barrier;
	uint32_t i;

	for (i = 0; i < b->participants; i++)
		if (b->leaver == MOST_MEMBERS && b->out[i] != b->rounds)
			return complain("%u: %u of %u rounds", i, b->out[i],
					b->rounds);
	return NULL;
}

static const char *barrier_close(struct pair *p)
{
	struct barrier *b = &p->barrier;
	const char *wrong = NULL;
	uint32_t i;

	settle(p);
	for (i = b->participants; i--;)
		if (h_barrier_destroy(b->b[i]))
			wrong = "a participant stays";
	return wrong;
}

#endif /* MODEL_BARRIER_H */
