// SPDX-License-Identifier: MIT
/* A receiver, from create to destroy. */
#include <stddef.h>
#include <stdlib.h>

#include "stream/stream.h"

#define DEFAULT_BUFFERS		16
#define DEFAULT_SIZE		4096
#define DEFAULT_MAX_SIZE	65536

_Static_assert(DEFAULT_BUFFERS + 1 + H_CREDITS + 1 + 2 == H_CHANNEL_ARRIVALS,
	       "what a channel has set aside");

static int check_attr(struct h_manager *m, const struct h_stream_attr *at)
{
	if (at->flags)
		return h__refuse(m->dev, -EINVAL, "flags 0x%x: must be 0",
				 at->flags);
	if (!h__is_power_of_two(at->buffers) ||
	    at->buffers < H_STREAM_MIN_BUFFERS ||
	    at->buffers > H_STREAM_MAX_BUFFERS)
		return h__refuse(m->dev, -EINVAL,
				 "%u buffers: a power of two, %u to %u",
				 at->buffers, H_STREAM_MIN_BUFFERS,
				 H_STREAM_MAX_BUFFERS);
	if (!h__is_power_of_two(at->buffer_size) || at->buffer_size < H_STREAM_MIN_SIZE ||
	    at->buffer_size > H_STREAM_MAX_SIZE)
		return h__refuse(m->dev, -EINVAL,
				 "buffers of %u bytes: a power of two, %u to %u",
				 at->buffer_size, H_STREAM_MIN_SIZE,
				 H_STREAM_MAX_SIZE);
	if (at->max_buffer_size > at->buffer_size &&
	    (!h__is_power_of_two(at->max_buffer_size) ||
	     at->max_buffer_size > H_STREAM_MAX_SIZE))
		return h__refuse(m->dev, -EINVAL,
				 "buffers of at most %u bytes: a power of two, at most %u",
				 at->max_buffer_size, H_STREAM_MAX_SIZE);
	return 0;
}

int h__stream_receiver_prepare(struct h_manager *m,
			       const struct h_stream_attr *attr,
			       uint32_t slot_flags,
			       struct h_stream_receiver **receiver)
{
	struct h_stream_attr at = *attr;
	struct h_stream_receiver *r;
	int err;

	*receiver = NULL;
	at.buffers = at.buffers ? at.buffers : DEFAULT_BUFFERS;
	at.buffer_size = at.buffer_size ? at.buffer_size : DEFAULT_SIZE;
	at.max_buffer_size = at.max_buffer_size ? at.max_buffer_size :
						  DEFAULT_MAX_SIZE;
	err = check_attr(m, &at);
	if (err)
		return err;
	/* The next generation's seed would have to come with a descriptor. */
	if (slot_flags & HAMLYN_SLOT_TICKET_ONLY &&
	    at.buffer_size < at.max_buffer_size)
		at.buffer_size = at.max_buffer_size;
	r = calloc(1, sizeof(*r));
	if (!r)
		return -ENOMEM;
	r->max_buffer = at.max_buffer_size;
	r->least = at.buffer_size;
	r->patience = H_FIRST_QUIET;
	r->shed = (struct h_debt) { .pay = h__shed_receiver, .chore = true };
	r->slot_flags = slot_flags;
	r->credit_handle = -1;
	h__budget_unneeded_by(m, h__stream_unneeded);
	h__receiver_add(&r->r, m, &h__stream_class);
	err = h__generation_init(&r->gen[0], &r->r, at.buffers, at.buffer_size, H_NEEDED);
	if (err) {
		h__receiver_remove(&r->r);
		free(r);
		return err;
	}
	h_receiver_lock(&r->r);
	r->gens = 1;
	r->gen[0].started = true;
	r->r.slot = r->gen[0].place.slot;
	h_receiver_unlock(&r->r);
	*receiver = r;
	return 0;
}

int h__stream_receiver_create(struct h_manager *m, const struct h_stream_attr *attr,
			      size_t size, struct h_stream_receiver **receiver)
{
	struct h_stream_attr at;
	int err;

	*receiver = NULL;
	err = H_TAKE_ATTR(m->dev, &at, attr, size);
	return err ? err : h__stream_receiver_prepare(m, &at, 0, receiver);
}

int h__stream_receiver_attach(struct h_stream_receiver *r,
			      const struct h_seed *seed, int fd)
{
	struct h_ticket t;
	bool may_shrink;
	int err;

	err = h__credit_ticket(seed, &t, &may_shrink);
	if (!err && fd >= 0)
		err = h__ticket_adopt(r->r.manager, fd, &t);
	if (err)
		return err;
	h__manager_reaches(r->r.manager, t.host);
	h_receiver_lock(&r->r);
	if (r->connected) {
		err = -EPROTO;
	} else {
		r->credit = t;
		r->may_shrink = may_shrink;
		r->connected = true;
		/* Or another thread could store a watch where this one's is stored next. */
		r->busy = true;
		if (r->fin)
			h__stream_credit_fin(r);
	}
	h_receiver_unlock(&r->r);
	if (err) {
		h__ticket_drop(r->r.manager, &t);
		return err;
	}
	err = h_receiver_watch(&r->r, &r->credit, fd, 0, &r->watch);
	/* Held back: it has an end that can be joined once only, and begin_watch(). */
	h_receiver_lock(&r->r);
	r->unwatched = h__watch_comes_later(err);
	r->busy = false;
	h_receiver_unlock(&r->r);
	if (err && !h__watch_comes_later(err))
		return err;
	/* The sender may be ahead, and wait for what was released before this. */
	h__stream_give_credit(r, H_NOWAIT);
	h__receiver_wake(&r->r);
	return 0;
}

static int64_t settle_ns(void)
{
	int64_t now = h__now_ns();

	return h__change_end(now, H_SETTLE_NS) - now;
}

/*
 * The last credit tells the sender that everything has arrived: not to be lost with
 * the ticket, or with the terminus of a manager that is destroyed next.
 */
static void settle_credits(struct h_stream_receiver *r)
{
	struct h_manager *m = r->r.manager;
	struct h_ticket credit;
	int64_t handle;

	/* It could not go when the end was received, and nobody polled. */
	if (h__read_once(&r->fin_due) && !m->ends)
		h__stream_give_credit(r, H_FOREVER);
	h_receiver_lock(&r->r);
	handle = r->credit_handle;
	credit = r->credit;
	r->credit_handle = -1;
	r->credit.flags = 0;
	/* Nothing may go by the ticket any more. */
	r->connected = false;
	h_receiver_unlock(&r->r);
	if (handle >= 0)
		h_send_wait(m->terminus, handle, m->ends ? H_NOWAIT : settle_ns());
	h__ticket_drop(m, &credit);
}

static void receiver_free(struct h_stream_receiver *r)
{
	h__stream_offer_over(r);
	h__receiver_remove(&r->r);
	h__grace_end(&r->grace);
	free(r);
}

int h_stream_receiver_destroy(struct h_stream_receiver *r)
{
	int err, i;

	if (!r)
		return 0;
	h__debt_remove(r->r.manager, &r->shed);
	err = h__stream_end_watch(&r->former);
	if (!err)
		err = h__stream_end_watch(&r->watch);
	if (err)
		return err;
	settle_credits(r);
	/* What arrives, or was lost, is looked at no more. */
	h_receiver_lock(&r->r);
	r->gens = 0;
	h_receiver_unlock(&r->r);
	for (i = 0; i < 2; i++) {
		if (!r->gen[i].place.slot)
			continue;
		err = h__generation_exit(&r->gen[i], &r->r);
		if (err)
			return err;
	}
	receiver_free(r);
	return 0;
}

static void end_again(struct h_manager *m, struct h_leaving *l)
{
	struct h_stream_receiver *r =
		(void *)((char *)l - offsetof(struct h_stream_receiver, closing));

	h__closed(m, -1);
	h__stream_receiver_end(r);
}

int h__stream_receiver_end(struct h_stream_receiver *r)
{
	struct h_manager *m = r->r.manager;
	int err = h_stream_receiver_destroy(r);
	int i;

	if (!err)
		return 0;
	r->closing.end = end_again;
	if (h__ends_later(m, &r->closing, err))
		return 0;
	for (i = 0; i < 2; i++)
		if (r->gen[i].place.slot)
			h__generation_abandon(&r->gen[i], &r->r);
	receiver_free(r);
	return err;
}

void h_stream_receiver_seed(const struct h_stream_receiver *r,
			    struct h_seed *seed)
{
	h__generation_seed(&r->gen[0], seed);
}
