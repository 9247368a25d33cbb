/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Of model.c: gathers: a round is complete when all have done their part of it, and
 * nobody is two rounds ahead of what was released.
 */
#ifndef MODEL_GATHER_H
#define MODEL_GATHER_H

#include "model_pair.h"

#define NO_ROUND	UINT32_MAX

/* ---- what a round is made of: all know, nobody has to remember ---- */

static uint64_t part_pattern(const struct pair *p, uint32_t member,
			     uint32_t round)
{
	return pattern_of(p, (uint64_t)round * MOST_MEMBERS + member);
}

/* The first time all of it; later the rest stays as it was two rounds before. */
static size_t part_length(const struct pair *p, uint32_t member, uint32_t round)
{
	uint64_t random = part_pattern(p, member, round);
	uint64_t length = p->gather.length[member];

	if (round < 2 || below(&random, 4))
		return length;
	return below(&random, (uint32_t)length + 1);
}

static const char *part_check(const struct pair *p, uint32_t member,
			      uint32_t round, const unsigned char *data)
{
	uint64_t done = 0;

	for (;; round -= 2) {
		uint64_t pattern = part_pattern(p, member, round);
		size_t n = part_length(p, member, round);

		for (; done < n; done++)
			if (data[done] != byte_at(pattern, done))
				return complain("member %u: byte %llu is wrong",
						member,
						(unsigned long long)done);
		if (done == p->gather.length[member])
			return NULL;
	}
}

static const char *round_check(const struct pair *p, uint32_t round,
			       const void *data)
{
	const struct gather *g = &p->gather;
	const char *wrong = NULL;
	uint32_t i;

	for (i = 0; i < g->members && !wrong; i++)
		wrong = part_check(p, i, round, (const unsigned char *)data +
						h_gather_offset(g->root, i));
	return wrong ? complain("round %u: %s", round, wrong) : NULL;
}

/* Of those that have left: so many rounds can be complete. */
static uint32_t gather_limit(const struct gather *g)
{
	uint32_t limit = NO_ROUND, i;

	for (i = 0; i < g->members; i++)
		if (g->left[i] && g->sent[i] < limit)
			limit = g->sent[i];
	return limit;
}

/* By all. */
static uint32_t rounds_sent(const struct gather *g)
{
	uint32_t least = NO_ROUND, i;

	for (i = 0; i < g->members; i++)
		if (g->sent[i] < least)
			least = g->sent[i];
	return least;
}

/* ---- what each does ---- */

static const char *gather_open(struct pair *p, uint64_t *random)
{
	struct gather *g = &p->gather;
	bool equal = below(random, 2);
	struct h_seed seed;
	uint64_t end = 0;
	uint32_t i;
	int err;

	g->members = 1 + below(random, MOST_MEMBERS);
	for (i = 0; i < g->members; i++) {
		g->length[i] = below(random, 8) ? any_size(random) : 0;
		if (equal)
			g->length[i] = g->length[0];
	}
	g->rounds = below(random, 20);
	g->leaver = below(random, 8) || packets_are_late ?
		    MOST_MEMBERS : below(random, g->members);
	g->last = g->leaver == MOST_MEMBERS ? g->rounds : g->rounds / 2;
	err = h_gather_create(p->world->to, g->members,
			      equal ? NULL : g->length, g->length[0], &g->root);
	if (err)
		return complain("no root: %d", err);
	for (i = 0; i < g->members; i++) {
		if (h_gather_offset(g->root, i) < end)
			return "a part is within another one";
		end = h_gather_offset(g->root, i) + g->length[i];
	}
	if (h_gather_offset(g->root, i) < end)
		return "a part is beyond the end";
	/* With one thread they join when they have something to say. */
	for (i = 0; i < g->members && p->world->threads; i++) {
		h_gather_seed(g->root, i, &seed);
		err = h_gather_join(p->world->from, &seed, &g->member[i]);
		if (err)
			return complain("no member: %d", err);
	}
	return h_gather_seed(g->root, g->members, &seed) == -ERANGE ? NULL :
	       "a member too many";
}

static const char *member_join(struct pair *p, uint32_t i)
{
	struct gather *g = &p->gather;
	struct h_seed seed;
	int err;

	if (g->member[i])
		return NULL;
	h_gather_seed(g->root, i, &seed);
	err = h_gather_join(p->world->from, &seed, &g->member[i]);
	if (err)
		return complain("no member: %d", err);
	return h_gather_length(g->member[i]) == g->length[i] ? NULL :
	       "another one's part";
}

static const char *member_send(struct pair *p, uint32_t i, uint64_t *random,
			       int64_t timeout, int *ret)
{
	struct gather *g = &p->gather;
	uint32_t round = g->sent[i];
	size_t n = part_length(p, i, round);
	unsigned char *data = place_for(p, n, below(random, 2));

	fill(data, n, part_pattern(p, i, round));
	*ret = h_gather_send(g->member[i], data, n, timeout);
	done_with(p, data, n);
	if (*ret == -EPIPE)
		return gather_limit(g) <= round ? NULL :
		       complain("round %u: nobody has left", round);
	if (*ret && !later(*ret))
		return complain("round %u: send of %zu: %d", round, n, *ret);
	g->sent[i] += !*ret;
	return NULL;
}

static const char *member_wait(struct pair *p, uint32_t i, int64_t timeout,
			       int *ret)
{
	struct gather *g = &p->gather;

	*ret = h_gather_wait(g->member[i], timeout);
	if (*ret == -EPIPE)
		return gather_limit(g) < g->sent[i] ? NULL :
		       "wait: nobody has left";
	return !*ret || later(*ret) ? NULL : complain("wait: %d", *ret);
}

static const char *member_leave(struct pair *p, uint32_t i)
{
	struct gather *g = &p->gather;
	int err = h_gather_leave(g->member[i]);

	g->member[i] = NULL;
	g->left[i] = true;
	/* Or the root would send to it: as settle() says. */
	h_manager_poll(p->world->to);
	return err ? complain("leave: %d", err) : NULL;
}

static const char *root_receive(struct pair *p, int64_t timeout, int *ret)
{
	struct gather *g = &p->gather;
	const void *data;

	*ret = h_gather_receive(g->root, &data, timeout);
	if (g->received - g->released == 2)
		return *ret == -EBUSY ? NULL :
		       complain("with two rounds: %d", *ret);
	if (*ret)
		return *ret == -EPIPE || later(*ret) ? NULL :
		       complain("receive: %d", *ret);
	g->held[g->received % 2] = data;
	return round_check(p, g->received++, data);
}

/* It is what it was: whoever is ahead has written elsewhere. */
static const char *root_release(struct pair *p)
{
	struct gather *g = &p->gather;
	const char *wrong = NULL;
	int want = -EINVAL;
	int err;

	if (g->received != g->released) {
		wrong = round_check(p, g->released, g->held[g->released % 2]);
		g->released++;
		want = 0;
	}
	err = h_gather_release(g->root);
	if (wrong)
		return wrong;
	return err == want ? NULL : complain("release: %d", err);
}

/* ---- one thread ---- */

static const char *send_once(struct pair *p, uint32_t i, uint64_t *random)
{
	struct gather *g = &p->gather;
	bool ahead = g->sent[i] - g->released == 2;
	const char *wrong;
	int ret;

	wrong = member_send(p, i, random, H_NOWAIT, &ret);
	return !wrong && !ret && ahead ? "it is two rounds ahead" : wrong;
}

static const char *wait_once(struct pair *p, uint32_t i)
{
	struct gather *g = &p->gather;
	const char *wrong;
	int ret;

	wrong = member_wait(p, i, H_NOWAIT, &ret);
	return !wrong && !ret && g->sent[i] != g->released ?
	       "all are said to be released" : wrong;
}

static const char *receive_once(struct pair *p)
{
	struct gather *g = &p->gather;
	uint32_t round = g->received;
	const char *wrong;
	int ret;

	wrong = root_receive(p, H_NOWAIT, &ret);
	if (!ret && rounds_sent(g) <= round)
		return "complete, but not all was sent";
	if (!wrong && ret == -EPIPE && gather_limit(g) > round)
		return "it ends, and nobody has left";
	return wrong;
}

static const char *gather_step(struct pair *p, uint64_t *random)
{
	struct gather *g = &p->gather;
	uint32_t i = below(random, g->members);
	uint32_t what = below(random, 1000);
	const char *wrong;

	if (what < 250)
		return receive_once(p);
	if (what < 450)
		return root_release(p);
	if (g->left[i])
		return NULL;
	wrong = member_join(p, i);
	if (wrong)
		return wrong;
	if (what < 453 && !packets_are_late)
		return member_leave(p, i);
	return what < 900 ? send_once(p, i, random) : wait_once(p, i);
}

/* Who is behind catches up, but for rounds that will never be complete. */
static const char *catch_up(struct pair *p, uint32_t until, uint64_t *random)
{
	const struct gather *g = &p->gather;
	const char *wrong = NULL;
	uint32_t i;

	for (i = 0; i < g->members && !wrong; i++) {
		if (g->left[i] || g->sent[i] >= until)
			continue;
		wrong = member_join(p, i);
		if (!wrong)
			wrong = send_once(p, i, random);
	}
	return wrong;
}

/* All that were sent are received and released; then all know that. */
static const char *all_released(struct pair *p, uint32_t until)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct gather *g = &p->gather;
	const char *wrong = NULL;
	uint32_t i;
	int ret;

	for (i = 0; i < g->members && !wrong; i++) {
		if (!g->member[i])
			continue;
		do {
			wrong = member_wait(p, i, H_NOWAIT, &ret);
			/* Not all may have gone out at once. */
			h_manager_poll(p->world->to);
			if (!wrong && later(ret) && ht_now_ns() > end)
				wrong = "nobody tells what is released";
		} while (!wrong && later(ret));
		if (!wrong && ret != (g->sent[i] > until ? -EPIPE : 0))
			wrong = complain("at the end: %d", ret);
	}
	return wrong;
}

static const char *gather_finish(struct pair *p, uint64_t *random)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct gather *g = &p->gather;
	uint32_t until = 0, i;
	const char *wrong = NULL;
	bool ends;

	for (i = 0; i < g->members; i++)
		if (g->sent[i] > until)
			until = g->sent[i];
	ends = gather_limit(g) != NO_ROUND;
	if (ends)
		until = gather_limit(g);
	while (!wrong && g->released != until) {
		wrong = catch_up(p, until, random);
		if (!wrong)
			wrong = receive_once(p);
		if (!wrong && g->received != g->released)
			wrong = root_release(p);
		if (!wrong && ht_now_ns() > end)
			wrong = complain("%u of %u rounds", g->released, until);
	}
	/* It finds out that there are no more, and tells the others. */
	while (!wrong && ends && h_gather_receive(g->root, NULL, 0) != -EPIPE)
		if (ht_now_ns() > end)
			wrong = "no end";
	return wrong ? wrong : all_released(p, until);
}

/* ---- two threads: one is all the members ---- */

/* Nobody can be two rounds ahead of another one: that one is waited for. */
static uint32_t may_send(const struct gather *g, uint64_t *random)
{
	uint32_t least = rounds_sent(g), i;

	do {
		i = below(random, g->members);
	} while (g->sent[i] > least + 1 || g->sent[i] >= g->last);
	return i;
}

static const char *gather_sending(struct pair *p, uint64_t *random)
{
	struct gather *g = &p->gather;
	const char *wrong = NULL;
	uint32_t i;
	int ret;

	while (!wrong && rounds_sent(g) < g->last) {
		i = may_send(g, random);
		wrong = member_send(p, i, random, ht_patience_ns(), &ret);
		if (!wrong && ret)
			wrong = complain("round %u: %d", g->sent[i], ret);
	}
	if (!wrong && g->leaver < g->members)
		wrong = member_leave(p, g->leaver);
	for (i = 0; i < g->members && !wrong; i++) {
		if (!g->member[i])
			continue;
		/* A round that will never be complete: taken, if not told before. */
		if (g->leaver < g->members && below(random, 2))
			wrong = member_send(p, i, random, ht_patience_ns(), &ret);
		if (!wrong)
			wrong = member_wait(p, i, ht_patience_ns(), &ret);
		if (!wrong && ret != (g->sent[i] > g->last ? -EPIPE : 0))
			wrong = complain("at the end: %d", ret);
	}
	return wrong;
}

/* Who holds a round does not wait for the next one: others may wait for his. */
static const char *gather_receiving(struct pair *p, uint64_t *random)
{
	struct gather *g = &p->gather;
	bool ends = g->leaver < g->members;
	const char *wrong = NULL;
	int ret = 0;

	while (!wrong && !ret && (ends || g->received < g->last)) {
		bool holds = g->received != g->released && below(random, 2);

		while (!wrong && g->received - g->released > holds)
			wrong = root_release(p);
		if (!wrong)
			wrong = root_receive(p, holds ? H_NOWAIT :
						ht_patience_ns(), &ret);
		if (holds && ret == -EAGAIN)
			ret = 0;
	}
	if (!wrong && ret != (ends ? -EPIPE : 0))
		wrong = complain("round %u of %u: %d", g->received, g->last, ret);
	while (!wrong && g->released != g->received)
		wrong = root_release(p);
	return wrong;
}

static const char *gather_judge(struct pair *p)
{
	const struct gather *g = &p->gather;

	return g->received == g->last ? NULL :
	       complain("%u of %u rounds", g->received, g->last);
}

static const char *gather_close(struct pair *p)
{
	struct gather *g = &p->gather;
	bool first = p->random[0] % 2;
	const char *wrong = NULL;
	uint32_t i;

	settle(p);
	if (first && h_gather_destroy(g->root))
		wrong = "the root stays";
	for (i = 0; i < g->members; i++)
		if (h_gather_leave(g->member[i]))
			wrong = "a member stays";
	settle(p);
	if (!first && h_gather_destroy(g->root))
		wrong = "the root stays";
	return wrong;
}

#endif /* MODEL_GATHER_H */
