// SPDX-License-Identifier: MIT
/* A sender, from seed to end. */
#include <stddef.h>
#include <stdlib.h>

#include "stream/stream.h"

#define HELLO_NS	1000000000LL	/* for room in the work queue */

/* The first record tells the receiver where credits go. */
static int hello(struct h_stream_sender *s)
{
	struct h_seed seed;
	int64_t ret;

	h__stream_sender_credits(s, &seed);
	ret = h__stream_post(s, &seed, sizeof(seed), 0, H_NOTE_HELLO, h_deadline(HELLO_NS));
	return ret < 0 ? (int)ret : 0;
}

/* What others can keep from ending. */
static int end_place(struct h_stream_sender *s)
{
	/* If it stays, so does the slot that it tells. */
	int err = h__stream_sender_unwatch(s);

	return err || !s->credits.slot ? err : h__place_exit(&s->credits, &s->r);
}

static void end_again(struct h_manager *m, struct h_leaving *l)
{
	struct h_stream_sender *s = (void *)((char *)l - offsetof(struct h_stream_sender, closing));

	h__closed(m, -1);
	h__stream_sender_destroy(s);
}

int h__stream_sender_destroy(struct h_stream_sender *s)
{
	int err;

	h__debt_remove(s->r.manager, &s->debt);
	h__debt_remove(s->r.manager, &s->shed);
	h__debt_remove(s->r.manager, &s->room);
	err = end_place(s);
	s->closing.end = end_again;
	if (h__ends_later(s->r.manager, &s->closing, err))
		return 0;
	h__stage_end(s);
	h__ticket_drop(s->r.manager, &s->ticket);
	if (err && s->credits.slot)
		h__place_abandon(&s->credits, &s->r);
	h__receiver_remove(&s->r);
	free(s);
	return err;
}

/* Of one that could not be made. */
static void sender_undo(struct h_stream_sender *s)
{
	struct h_dev *dev = s->r.manager->dev;
	struct h_why why;

	h__why_keep(dev, &why);
	h__stream_sender_destroy(s);
	h__why_restore(dev, &why);
}

int h__stream_sender_prepare(struct h_manager *m, uint32_t slot_flags,
			     struct h_stream_sender **sender)
{
	struct h_stream_sender *s = calloc(1, sizeof(*s));
	int err;

	*sender = NULL;
	if (!s)
		return -ENOMEM;
	s->debt.pay = h__stream_pay_staged;
	s->shed = (struct h_debt) { .pay = h__shed_sender, .chore = true };
	s->room = (struct h_debt) { .pay = h__stream_look_for_room, .chore = true };
	s->held_by = -1;
	s->stage_handle[0] = -1;
	s->stage_handle[1] = -1;
	s->fin_handle = -1;
	s->fixed = slot_flags & HAMLYN_SLOT_TICKET_ONLY;
	h__debts_collected_by(m, h__stream_collected);
	h__budget_unneeded_by(m, h__stream_unneeded);
	h__receiver_add(&s->r, m, &h__stream_sender_class);
	err = h__stream_credits_init(s, slot_flags);
	if (!err)
		err = h__stage_reserve(s);
	if (err)
		sender_undo(s);
	else
		*sender = s;
	return err;
}

int h__stream_sender_attach(struct h_stream_sender *s,
			    const struct h_seed *seed, int fd)
{
	return h__stream_adopt(s, seed, fd, false);
}

int h_stream_sender_create(struct h_manager *m, const struct h_seed *seed,
			   struct h_stream_sender **sender)
{
	int err;

	err = h__stream_sender_prepare(m, 0, sender);
	if (err)
		return err;
	(*sender)->claims = true;
	err = h__stream_adopt(*sender, seed, -1, false);
	if (!err)
		err = hello(*sender);
	if (err) {
		sender_undo(*sender);
		*sender = NULL;
	}
	return err;
}

/* Everything, and that it was everything. */
static int send_fin(struct h_stream_sender *s, int64_t deadline_ns)
{
	int64_t handle;
	int err;

	err = h__stage_flush(s, 0, 0, deadline_ns);
	if (err)
		return err;
	handle = h__stream_post(s, NULL, 0, 0, H_NOTE_FIN, deadline_ns);
	if (handle < 0)
		return (int)handle;
	s->closed = true;
	s->fin_handle = handle;
	return 0;
}

/* Or the receiver might be told first that the sender is gone. */
static int fin_left(struct h_stream_sender *s, int64_t deadline_ns)
{
	int ret;

	if (s->fin_handle < 0)
		return 0;
	ret = h__wait_left(s->r.manager, s->fin_handle, deadline_ns);
	if (h__is_late(ret))
		return ret;
	s->fin_handle = -1;
	if (ret >= 0)
		return 0;
	/* It has not left, and is not sent again: nobody will say that everything has arrived. */
	h__write_once(&s->broken, true);
	return -EPIPE;
}

int h__stream_finish(struct h_stream_sender *s, int64_t deadline_ns)
{
	unsigned int rounds = 0;
	int err;

	err = s->closed ? 0 : send_fin(s, deadline_ns);
	if (!err)
		err = fin_left(s, deadline_ns);
	if (err)
		return err;
	for (;;) {
		uint32_t seen = h_receiver_events(&s->r);

		h__stream_sender_watch(s);
		if (h__read_once(&s->finished))
			return 0;
		if (h__stream_failed(s))
			return -EPIPE;
		/* Credits may come without end that say nothing. */
		err = h__go_on(&rounds, deadline_ns);
		if (!err)
			err = h__receiver_wait(&s->r, seen, s->unwatched, deadline_ns);
		if (err)
			return err;
	}
}

int h_stream_sender_shutdown(struct h_stream_sender *s, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	int err;

	err = h__sending_lock(s, deadline);
	if (err)
		return err;
	err = h__stream_finish(s, deadline);
	h__stream_sent(s);
	return err;
}

static void leave(struct h_stream_sender *s)
{
	struct h_manager *m = s->r.manager;

	h__debt_remove(m, &s->shed);
	s->closing.end = end_again;
	h__closed(m, 1);
	h__leave(m, &s->closing);
}

int h_stream_sender_close(struct h_stream_sender *s, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	struct h_change_limit before;
	int ret, err;

	if (!s)
		return 0;
	h__debt_remove(s->r.manager, &s->debt);
	ret = h__stream_finish(s, deadline);
	h_stream_sender_on_ready(s, NULL, NULL);
	if (h__leaves_later(s->r.manager, &s->closing)) {
		leave(s);
		return ret;
	}
	before = h__change_limit(deadline);
	err = h__stream_sender_destroy(s);
	h__change_restore(before);
	return ret ? ret : err;
}
