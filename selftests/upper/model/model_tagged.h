/* SPDX-License-Identifier: GPL-2.0-only */
/* Of model.c: tagged: a set of tags, each with a place of its own. */
#ifndef MODEL_TAGGED_H
#define MODEL_TAGGED_H

#include "model_pair.h"

static const char *tagged_open(struct pair *p, uint64_t *random)
{
	struct tagged *t = &p->tagged;
	struct h_tagged_attr attr = {};
	struct h_seed seed;
	int err;

	t->size = at_most(any_size(random), p->world->packet);
	t->rounds = below(random, 8);
	attr.length = PLACES * t->size;
	err = h_tagged_receiver_create(p->world->to, &attr, &t->r);
	if (err)
		return complain("no receiver: %d", err);
	h_tagged_receiver_seed(t->r, &seed);
	err = h_tagged_resolve(&seed, &t->to);
	return err ? complain("no address: %d", err) : NULL;
}

/* The tag tells the place, and makes the bytes. */
static const char *tagged_write(struct pair *p, uint32_t place,
				uint64_t *random, int64_t timeout)
{
	struct tagged *t = &p->tagged;
	struct write *write = &t->place[place];
	uint64_t tag = pattern_of(p, t->writes) / PLACES * PLACES + place;
	size_t n = below(random, (uint32_t)t->size + 1);
	unsigned char *data = place_for(p, n, below(random, 2));
	int ret;

	fill(data, n, tag);
	ret = h_tagged_send(p->world->from, &t->to, place * t->size, data, n,
			    tag, timeout);
	done_with(p, data, n);
	if (ret)
		return later(ret) && timeout == H_NOWAIT ? NULL :
		       complain("write of %zu: %d", n, ret);
	t->writes++;
	*write = (struct write) {
		.there = true, .tag = tag, .length = (uint32_t)n,
	};
	return NULL;
}

static const char *tagged_got(struct pair *p, uint64_t tag, uint32_t length)
{
	struct tagged *t = &p->tagged;
	struct write *write = &t->place[tag % PLACES];
	const unsigned char *data = h_tagged_receiver_data(t->r);

	if (!write->there || write->tag != tag)
		return complain("tag %#llx was not sent",
				(unsigned long long)tag);
	if (write->length != length)
		return complain("%u bytes, not %u", length, write->length);
	write->there = false;
	return check(data + tag % PLACES * t->size, length, tag);
}

/* Any, or that of a place. */
static const char *tagged_get(struct pair *p, uint64_t *random, int64_t timeout)
{
	struct tagged *t = &p->tagged;
	const struct write *write = &t->place[below(random, PLACES)];
	uint64_t tag = write->tag;
	uint32_t length;
	int ret;

	if (below(random, 2)) {
		ret = h_tagged_get_tag(t->r, &tag, &length, timeout);
	} else {
		/* One that was got, or never sent, is not there. */
		ret = h_tagged_get_specific_tag(t->r, tag, &length,
						write->there ? timeout : H_NOWAIT);
		if (!ret && !write->there)
			return "a tag is there twice";
	}
	if (later(ret) && (ret == -EAGAIN || timeout < ht_patience_ns()))
		return NULL;
	return ret ? complain("tag: %d", ret) : tagged_got(p, tag, length);
}

static uint32_t tagged_left(const struct pair *p)
{
	uint32_t i, n = 0;

	for (i = 0; i < PLACES; i++)
		n += p->tagged.place[i].there;
	return n;
}

static const char *tagged_step(struct pair *p, uint64_t *random)
{
	uint32_t place = below(random, PLACES);

	if (below(random, 100) < 45)
		return p->tagged.place[place].there ? NULL :
		       tagged_write(p, place, random, H_NOWAIT);
	return tagged_get(p, random, H_NOWAIT);
}

static const char *tagged_finish(struct pair *p, uint64_t *random)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	const char *wrong = NULL;
	uint64_t tag;

	while (!wrong && tagged_left(p)) {
		wrong = tagged_get(p, random, H_NOWAIT);
		if (ht_now_ns() > end)
			wrong = complain("%u tags are missing", tagged_left(p));
	}
	if (!wrong && h_tagged_get_tag(p->tagged.r, &tag, NULL, 0) != -EAGAIN)
		wrong = "a tag too many";
	return wrong;
}

/* All places, in rounds: nobody writes where the other one reads. */
static const char *tagged_writer(struct pair *p, uint64_t *random)
{
	struct tagged *t = &p->tagged;
	const char *wrong = NULL;
	uint32_t round, i;

	for (round = 0; round < t->rounds && !wrong; round++) {
		uint32_t first = below(random, PLACES);

		for (i = 0; i < PLACES && !wrong; i++)
			wrong = tagged_write(p, (first + i) % PLACES, random,
					     ht_patience_ns());
		__atomic_store_n(&t->round, 2 * round + 1, __ATOMIC_SEQ_CST);
		if (!wrong && !wait_for_round(&t->round, 2 * round + 2))
			wrong = "nobody reads";
	}
	return wrong;
}

static const char *tagged_reader(struct pair *p, uint64_t *random)
{
	struct tagged *t = &p->tagged;
	const char *wrong = NULL;
	uint32_t round;

	for (round = 0; round < t->rounds && !wrong; round++) {
		if (!wait_for_round(&t->round, 2 * round + 1))
			return "nobody writes";
		while (!wrong && tagged_left(p))
			wrong = tagged_get(p, random, ht_patience_ns());
		__atomic_store_n(&t->round, 2 * round + 2, __ATOMIC_SEQ_CST);
	}
	return wrong;
}

static const char *tagged_judge(struct pair *p)
{
	return tagged_left(p) ? "tags are missing" : NULL;
}

static const char *tagged_close(struct pair *p)
{
	settle(p);
	return h_tagged_receiver_destroy(p->tagged.r) ? "it stays" : NULL;
}

#endif /* MODEL_TAGGED_H */
