/* SPDX-License-Identifier: GPL-2.0-only */
/* Of model.c: groups: complete with the last share, in whatever order. */
#ifndef MODEL_GROUP_H
#define MODEL_GROUP_H

#include "model_pair.h"

static void group_begin(struct group *g)
{
	h_group_share(g->g, &g->share[0]);
	memset(g->done, 0, sizeof(g->done));
	g->shares = 1;
}

static const char *group_open(struct pair *p, uint64_t *random)
{
	struct group *g = &p->group;
	int err;

	g->length = below(random, 8) ? any_size(random) : 0;
	g->rounds = below(random, 8);
	g->want = calloc(1, g->length + 1);
	err = h_group_create(p->world->to, g->length, NULL, &g->g);
	if (err)
		return complain("no group: %d", err);
	group_begin(g);
	return NULL;
}

/* Into at most four, which take its place and those at the end. */
static const char *group_split(struct pair *p, uint32_t which,
			       uint64_t *random)
{
	struct group *g = &p->group;
	struct h_share *share = &g->share[which];
	uint32_t n = 1 + below(random, 4), i;
	uint64_t lengths[4], left = share->ticket.length, count = 0;
	struct h_share part[4];
	struct h_seed seed;
	int err;

	if (g->done[which] || g->shares + n - 1 > MOST_SHARES ||
	    share->counter < n)
		return NULL;
	for (i = 0; i < n; i++) {
		lengths[i] = i == n - 1 ? left :
			     below(random, (uint32_t)left + 1);
		left -= lengths[i];
	}
	left = share->counter;
	err = h_share_split(share, n, below(random, 2) ? NULL : lengths, part);
	if (err)
		return complain("split: %d", err);
	for (i = 0; i < n; i++) {
		uint32_t at = i ? g->shares++ : which;

		count += part[i].counter;
		err = h_share_export(&part[i], &seed);
		if (!err)
			err = h_share_import(&seed, &g->share[at]);
		if (err)
			return complain("a share does not travel: %d", err);
	}
	return count == left ? NULL : "a part of the count is lost";
}

static const char *group_send(struct pair *p, uint32_t which, uint64_t *random,
			      int64_t timeout)
{
	struct group *g = &p->group;
	const struct h_share *share = &g->share[which];
	size_t n = share->ticket.length;
	unsigned char *data;
	int ret;

	if (g->done[which])
		return NULL;
	/* Less than its part: the rest stays as it was. */
	if (!below(random, 4))
		n = below(random, (uint32_t)n + 1);
	data = place_for(p, n, below(random, 2));
	fill(data, n, pattern_of(p, g->writes));
	ret = h_share_send(p->world->from, share, data, n, timeout);
	done_with(p, data, n);
	if (ret)
		return later(ret) && timeout == H_NOWAIT ? NULL :
		       complain("send of %zu: %d", n, ret);
	fill(g->want + share->ticket.base, n, pattern_of(p, g->writes++));
	g->done[which] = true;
	return NULL;
}

static bool group_done(const struct group *g)
{
	uint32_t i;

	for (i = 0; i < g->shares; i++)
		if (!g->done[i])
			return false;
	return true;
}

/* Not before all was sent. @over: now it is. */
static const char *group_receive(struct pair *p, int64_t timeout, bool *over)
{
	struct group *g = &p->group;
	const void *data;
	int ret;

	ret = h_group_receive(g->g, &data, timeout);
	*over = !ret;
	if (ret)
		return ret == -EAGAIN ? NULL : complain("receive: %d", ret);
	if (!group_done(g))
		return "complete, but not all was sent";
	return memcmp(data, g->want, g->length) ? "wrong bytes" : NULL;
}

static const char *group_reset(struct pair *p, uint64_t *random)
{
	struct group *g = &p->group;
	bool again = below(random, 2);
	int err;

	err = h_group_reset(g->g, again ? 0 : H_GROUP_NEW_KEY);
	if (err)
		return complain("reset: %d", err);
	/* Who has new shares finds nothing of who had the old ones. */
	if (!again)
		memset(g->want, 0, g->length);
	/* The same shares are good for another round. */
	if (again && below(random, 2))
		memset(g->done, 0, sizeof(g->done));
	else
		group_begin(g);
	return NULL;
}

static const char *group_give_up(struct pair *p)
{
	struct group *g = &p->group;
	int err;

	settle(p);
	err = h_group_reset(g->g, H_GROUP_NEW_KEY);
	if (err)
		return complain("reset: %d", err);
	memset(g->want, 0, g->length);
	group_begin(g);
	return NULL;
}

static const char *group_step(struct pair *p, uint64_t *random)
{
	struct group *g = &p->group;
	uint32_t which = below(random, g->shares);
	uint32_t what = below(random, 1000);
	const char *wrong;
	bool over;

	if (what < 10)
		return group_give_up(p);
	if (what < 200)
		return group_split(p, which, random);
	if (what < 700)
		return group_send(p, which, random, H_NOWAIT);
	if (what < 750 && !group_done(g))
		return h_group_reset(g->g, 0) == -EBUSY ? NULL :
		       "a round that is not over begins anew";
	wrong = group_receive(p, H_NOWAIT, &over);
	return !wrong && over ? group_reset(p, random) : wrong;
}

static const char *group_finish(struct pair *p, uint64_t *random)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct group *g = &p->group;
	const char *wrong = NULL;
	bool over = false;
	uint32_t i;

	while (!wrong && !over) {
		for (i = 0; i < g->shares && !wrong; i++)
			wrong = group_send(p, i, random, H_NOWAIT);
		if (!wrong)
			wrong = group_receive(p, H_NOWAIT, &over);
		if (!wrong && !over && ht_now_ns() > end)
			wrong = "not complete";
	}
	return wrong ? wrong : group_reset(p, random);
}

/* In turns: a round is sent, and then received. */
static const char *group_sending(struct pair *p, uint64_t *random)
{
	struct group *g = &p->group;
	const char *wrong = NULL;
	uint32_t round;

	for (round = 0; round < g->rounds && !wrong; round++) {
		while (!wrong && !group_done(g)) {
			uint32_t which = below(random, g->shares);

			wrong = below(random, 3) ?
				group_send(p, which, random, ht_patience_ns()) :
				group_split(p, which, random);
		}
		__atomic_store_n(&g->round, 2 * round + 1, __ATOMIC_SEQ_CST);
		if (!wrong && !wait_for_round(&g->round, 2 * round + 2))
			wrong = "nobody receives";
	}
	return wrong;
}

static const char *group_receiving(struct pair *p, uint64_t *random)
{
	struct group *g = &p->group;
	const char *wrong = NULL;
	uint32_t round;
	bool over;

	for (round = 0; round < g->rounds && !wrong; round++) {
		/* It may well be asleep before all was sent. */
		if (h_group_receive(g->g, NULL, ht_patience_ns()))
			return "not complete";
		if (!wait_for_round(&g->round, 2 * round + 1))
			return "nobody sends";
		wrong = group_receive(p, H_NOWAIT, &over);
		if (!wrong)
			wrong = group_reset(p, random);
		__atomic_store_n(&g->round, 2 * round + 2, __ATOMIC_SEQ_CST);
	}
	return wrong;
}

static const char *group_close(struct pair *p)
{
	settle(p);
	free(p->group.want);
	return h_group_destroy(p->group.g) ? "it stays" : NULL;
}

#endif /* MODEL_GROUP_H */
