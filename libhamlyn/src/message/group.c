// SPDX-License-Identifier: MIT
/*
 * Shares and group receives (H 2.5).
 *
 * A message whose packet counter begins with Y adds Y to the accumulator, however many
 * packets it has: a share is used up by one message of any length. Y must not be
 * less than the number of packets, or the sum may pass 0 before the end. Packet sizes
 * differ between NICs: it is reckoned with the smallest.
 */
#include <stdlib.h>

#include <hamlyn/group.h>

#include "message/message.h"

#define WHOLE	(1ull << 32)

/* ---- shares ---- */

static uint64_t packets(uint64_t length)
{
	return length ? (length - 1) / HAMLYN_MIN_PACKET + 1 : 1;
}

static bool makes_sense(const struct h_share *s)
{
	return s->counter && s->counter <= WHOLE &&
	       s->ticket.length <= HAMLYN_MAX_MESSAGE &&
	       packets(s->ticket.length) <= s->counter;
}

static uint64_t part_length(const struct h_share *s, uint32_t count,
			    const uint64_t *lengths, uint32_t i)
{
	if (lengths)
		return lengths[i];
	return s->ticket.length / count + (i < s->ticket.length % count);
}

/* What is left of the count when each part has what it needs. */
static int split_surplus(const struct h_share *s, uint32_t count,
			 const uint64_t *lengths, uint64_t *surplus)
{
	uint64_t left = s->ticket.length, counter = s->counter;
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint64_t length = part_length(s, count, lengths, i);

		if (length > left)
			return -ERANGE;
		left -= length;
		if (packets(length) > counter)
			return -E2BIG;
		counter -= packets(length);
	}
	*surplus = counter;
	return left ? -ERANGE : 0;
}

int h_share_split(struct h_share *share, uint32_t count,
		  const uint64_t *lengths, struct h_share *shares)
{
	uint64_t at = share->ticket.base, surplus;
	uint32_t i;
	int err;

	if (!count || !makes_sense(share))
		return -EINVAL;
	err = split_surplus(share, count, lengths, &surplus);
	if (err)
		return err;
	for (i = 0; i < count; i++) {
		uint64_t length = part_length(share, count, lengths, i);

		shares[i].ticket = share->ticket;
		shares[i].ticket.base = at;
		shares[i].ticket.length = length;
		shares[i].counter = packets(length) + surplus / count +
				    (i < surplus % count);
		at += length;
	}
	share->counter = 0;
	return 0;
}

int h_share_export(const struct h_share *share, struct h_seed *seed)
{
	const struct h_seed_fields f = {
		.kind = H_SEED_GROUP,
		.ticket = share->ticket,
		.more = share->counter,
	};

	if (!makes_sense(share))
		return -EINVAL;
	h__seed_put(seed, &f);
	return 0;
}

int h_share_import(const struct h_seed *seed, struct h_share *share)
{
	struct h_seed_fields f;
	struct h_share s;
	int err;

	err = h__seed_get(seed, H_SEED_GROUP, &f);
	if (err)
		return err;
	s = (struct h_share) { .ticket = f.ticket, .counter = f.more };
	if (!makes_sense(&s))
		return -EINVAL;
	*share = s;
	return 0;
}

int h_share_send(struct h_manager *m, const struct h_share *share,
		 const void *data, size_t length, int64_t timeout_ns)
{
	const struct h_msg msg = {
		.ticket = &share->ticket,
		.data = data,
		.length = length,
		/* All of the count: 2^32 is 0, that of an ordinary message. */
		.delta = (uint32_t)share->counter,
	};

	if (!makes_sense(share))
		return -EINVAL;
	if (length > share->ticket.length)
		return -ERANGE;
	return h__post(m, &msg, h_deadline(timeout_ns));
}

/* ---- groups ---- */

struct h_group {
	struct h_receiver r;
	uint32_t keys;		/* who changes the key */
	size_t length;
	/* r.lock */
	uint64_t key;			/* 0: being changed */
	bool complete;
	void (*ready)(struct h_group *group, void *arg);
	void *ready_arg;
};

static struct h_group *of(struct h_receiver *r)
{
	return (struct h_group *)r;
}

/* Locked. The entry tells: a notification may be of a round that was given up. */
static void look(struct h_group *g)
{
	if (g->key && !h__load_acquire(&g->r.metadata->state))
		g->complete = true;
}

static void process_arrival(struct h_receiver *r,
			    const struct hamlyn_nq_entry *e)
{
	if (!(e->flags & HAMLYN_NQE_PEER_GONE))
		look(of(r));
}

static void process_overrun(struct h_receiver *r)
{
	if (r->slot)
		look(of(r));
}

static bool pending(const struct h_receiver *r)
{
	return ((const struct h_group *)r)->complete;
}

static const struct h_receiver_class group_class = {
	.name = "group",
	.process_arrival = process_arrival,
	.process_overrun = process_overrun,
	.pending = pending,
};

/* Locked. */
static void begin(struct h_group *g, uint64_t key)
{
	g->complete = false;
	g->key = key;
	h__entry_grant(g->r.metadata, key, 0, g->length);
}

int h_group_receive(struct h_group *g, const void **data, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	unsigned int rounds = 0;

	for (;;) {
		uint32_t seen = h_receiver_events(&g->r);
		bool complete;
		int err;

		h_receiver_lock(&g->r);
		complete = g->complete;
		h_receiver_unlock(&g->r);
		if (complete) {
			if (data)
				*data = g->r.data;
			return 0;
		}
		err = h__go_on(&rounds, deadline);
		if (!err)
			err = h_receiver_wait(&g->r, seen, deadline);
		if (err)
			return err;
	}
}

/* Nothing of the old round lands when h_slot_rekey() returns. */
static int give_up(struct h_group *g)
{
	uint64_t key;
	int err;

	err = h__key(&key);
	if (err)
		return err;
	h_receiver_lock(&g->r);
	g->key = 0;
	h__write_once(&g->r.metadata->key, 0);
	h_receiver_unlock(&g->r);
	err = h_slot_rekey(g->r.slot);
	if (err)
		return err;
	/* Who has the new shares may leave gaps, where the members so far have sent. */
	memset(g->r.data, 0, g->length);
	h_receiver_lock(&g->r);
	begin(g, key);
	h_receiver_unlock(&g->r);
	return 0;
}

int h_group_reset(struct h_group *g, uint32_t flags)
{
	int err = 0;

	if (flags & ~H_GROUP_NEW_KEY)
		return -EINVAL;
	h__lock(&g->keys);
	if (flags & H_GROUP_NEW_KEY) {
		err = give_up(g);
	} else {
		h_receiver_lock(&g->r);
		if (g->complete && g->key)
			begin(g, g->key);
		else
			err = -EBUSY;
		h_receiver_unlock(&g->r);
	}
	h__unlock(&g->keys);
	return err;
}

void h_group_share(struct h_group *g, struct h_share *share)
{
	share->counter = WHOLE;
	h_slot_ticket(g->r.slot, 0, 0, 0, &share->ticket);
	share->ticket.length = g->length;
	h_receiver_lock(&g->r);
	share->ticket.key = g->key;
	h_receiver_unlock(&g->r);
}

/* It may have been taken back since this was about to be called. */
static void call_ready(struct h_receiver *r, void *arg)
{
	void (*ready)(struct h_group *group, void *arg);

	h_receiver_lock(r);
	ready = of(r)->ready;
	arg = of(r)->ready_arg;
	h_receiver_unlock(r);
	if (ready)
		ready(of(r), arg);
}

void h_group_on_ready(struct h_group *g,
		      void (*ready)(struct h_group *group, void *arg), void *arg)
{
	h_receiver_on_ready(&g->r, NULL, NULL);
	h_receiver_lock(&g->r);
	g->ready = ready;
	g->ready_arg = arg;
	h_receiver_unlock(&g->r);
	if (ready)
		h_receiver_on_ready(&g->r, call_ready, NULL);
}

/* ---- from create to destroy ---- */

int h__group_create(struct h_manager *m, size_t length, const struct h_group_attr *attr,
		    size_t size, struct h_group **group)
{
	const struct h_receiver_attr at = {
		.length = length,
		.entries = 1,
		.mode = HAMLYN_SLOT_PARANOID_ONE_SHOT,
		.arrivals = 2,	/* one more after a reset */
	};
	struct h_group_attr a;
	struct h_group *g;
	uint64_t key;
	int err;

	*group = NULL;
	err = H_TAKE_ATTR(m->dev, &a, attr, size);
	if (err)
		return err;
	if (a.flags || length > HAMLYN_MAX_MESSAGE)
		return h__refuse(m->dev, -EINVAL,
				 "at most %llu bytes, and no flags",
				 (unsigned long long)HAMLYN_MAX_MESSAGE);
	err = h__key(&key);
	if (err)
		return err;
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->length = length;
	err = h_receiver_init(&g->r, m, &group_class, &at);
	if (err) {
		free(g);
		return err;
	}
	h_receiver_lock(&g->r);
	begin(g, key);
	h_receiver_unlock(&g->r);
	*group = g;
	return 0;
}

int h_group_destroy(struct h_group *g)
{
	int err;

	if (!g)
		return 0;
	err = h_receiver_exit(&g->r);
	if (err)
		return err;
	free(g);
	return 0;
}
