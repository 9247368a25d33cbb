// SPDX-License-Identifier: MIT
/* Letting in: a guest that makes sense gets an end of a channel, or an errno that says why not. */
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "rendezvous/rendezvous_guests.h"

#define TURN_NS			100000000LL	/* nobody changes the tables for as long */

static bool its_fault(int err)
{
	return err == -EINVAL || err == -EPROTO || err == -EPROTOTYPE ||
	       err == -EBADF || err == -ENOKEY || err == -ECONNRESET ||
	       /* Descriptors do not reach another host. */
	       err == -EXDEV;
}

static int welcome(struct h_half *half, const struct h_listener *l,
		   const struct h_guest *g)
{
	bool tickets = l->flags & H_CONNECT_TICKETS;
	struct h_saying s = {
		.what = H_SAYS_REPLY,
		.kind = half->kind,
		.flags = l->flags & H_CONNECT_TICKETS,
	};
	int err;

	err = h__half_join(half, g->says.card, tickets ? g->fds : NULL);
	if (err)
		return err;
	h_dev_fabric(half->manager->dev, &s.fabric);
	h__half_card(half, s.card);
	err = h__guest_reply(l, g, &s, tickets ? half->fds : NULL);
	if (err == -ETOOMANYREFS)
		return h__refuse(half->manager->dev, err,
				 "too many descriptors of this user are on their way");
	return err == -EPIPE ? -ECONNRESET : err;
}

/*
 * Whoever has given up meanwhile has nothing left that could be watched: it would be
 * known for the price of two slots, and of two packets that come too late.
 */
static bool hung_up(const struct h_guest *g)
{
	struct pollfd p = { .fd = g->fd, .events = POLLRDHUP };

	/* The kernel forgets a call that is given up; if it was heard, answering it fails. */
	return !g->called && poll(&p, 1, 0) > 0;
}

/* 0: it is in. 1: it is not, by its own fault. */
static int receive_guest(struct h_half *half, const struct h_listener *l,
			 struct h_manager *m, const struct h_stream_attr *attr,
			 struct h_guest *g)
{
	bool tickets = l->flags & H_CONNECT_TICKETS;
	int err;

	if (hung_up(g))
		return 1;
	if (!m) {
		h__guest_refuse(l, g, -EUSERS);
		return -ECANCELED;
	}
	if (!h_dev_reaches(m->dev, &g->says.fabric)) {
		h__guest_refuse(l, g, -EXDEV);
		return 1;
	}
	err = h__half_create(half, m, attr, tickets);
	if (err) {
		h__guest_refuse(l, g, -EUSERS);
		return err;
	}
	err = hung_up(g) ? -ECONNRESET : welcome(half, l, g);
	if (!err) {
		h__half_close_fds(half);
		return 0;
	}
	h__half_destroy(half);
	h__guest_refuse(l, g, its_fault(err) ? -EPROTO : -EUSERS);
	if (its_fault(err))
		return 1;
	/* It would be taken for: nobody is there. */
	return err == -EAGAIN ? -EBUSY : err;
}

static int wait_for_guest(struct h_listener *l, uint32_t kind, struct h_guest *g,
			  int64_t deadline_ns)
{
	int ret;

	for (;;) {
		ret = h__guest_look(l, kind, g, deadline_ns);
		if (ret)
			return ret < 0 ? ret : 0;
		/* There may always be something to read, and never any sense in it. */
		if (h__is_over(deadline_ns))
			return -ETIMEDOUT;
		ret = h__poll_until(l->epoll, POLLIN, deadline_ns);
		if (ret || deadline_ns == H_NOWAIT)
			return ret ? ret : -EAGAIN;
	}
}

static int accept_one(struct h_half *half, struct h_listener *l,
		      struct h_manager *m, const struct h_stream_attr *attr,
		      struct h_peer *peer, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	unsigned int sent_away = 0;
	struct h_guest g;
	int err;

	for (;;) {
		err = wait_for_guest(l, half->kind, &g, deadline);
		if (err)
			return m ? h__no_descriptor(m, err) : err;
		err = receive_guest(half, l, m, attr, &g);
		if (err)
			h__close_fds_later(g.fds);
		else
			h__close_fds(g.fds);
		h__guest_part(l, &g, !err);
		if (err != 1)
			break;
		if (h__is_over(deadline))
			return -ETIMEDOUT;
		if (deadline == H_NOWAIT && ++sent_away == H_ROUNDS_AT_ONCE)
			return -EAGAIN;
	}
	*peer = g.peer;
	return err;
}

/*
 * A client that was taken would have to be turned away if its end could not be made: so it is
 * seen first whether the tables are to be had. If they are lost in between they have a moment
 * more, in which all who are not stopped get on.
 */
static int accept_in_time(struct h_half *half, struct h_listener *l, struct h_manager *m,
			  const struct h_stream_attr *attr, struct h_peer *peer,
			  int64_t timeout_ns)
{
	struct h_change_limit before = h__change_limit(h_deadline(timeout_ns));
	int err = m && h__change_limited() ? h__dev_await_change(m->dev) : 0;

	h__change_still(TURN_NS);
	if (!err)
		err = accept_one(half, l, m, attr, peer, timeout_ns);
	h__change_restore(before);
	return err;
}

/* A thread cancelled in the middle would leave half an end, and the listener locked. */
int h__half_accept(struct h_half *half, struct h_listener *l, struct h_manager *m,
		   const struct h_stream_attr *attr, struct h_peer *peer,
		   int64_t timeout_ns)
{
	int err, cancel;

	/* Of a parent: it would wait for ever. */
	if (l->epoll < 0)
		return -EBADF;
	cancel = h__cancel_off();
	err = accept_in_time(half, l, m, attr, peer, timeout_ns);
	h__cancel_restore(cancel);
	return err;
}

int h__listener_accept(struct h_listener *l, struct h_manager *m,
		       const struct h_stream_attr *attr, size_t size,
		       struct h_stream_pair *pair, int64_t timeout_ns)
{
	struct h_half half = { .kind = H_KIND_STREAMS };
	struct h_stream_attr at;
	int err;

	*pair = (struct h_stream_pair) {};
	err = H_TAKE_ATTR(m ? m->dev : NULL, &at, attr, size);
	if (!err)
		err = h__half_accept(&half, l, m, &at, &pair->peer, timeout_ns);
	if (err)
		return err;
	pair->sender = half.sender;
	pair->receiver = half.receiver;
	return 0;
}
