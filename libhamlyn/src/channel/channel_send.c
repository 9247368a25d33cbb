// SPDX-License-Identifier: MIT
/* Sending messages. */
#include <stdlib.h>

#include "channel/channel.h"

/* What of a message has not been sent yet. */
struct cursor {
	const struct iovec *iov;
	size_t skip;		/* of the first one */
	uint64_t left;		/* of all */
	uint64_t label;		/* as flags: for the first record */
	struct h_lent *lent;	/* that all of it is in, or NULL: it may change when we return */
};

/* By any number, 0 included: pieces may be empty. */
static void advance(struct cursor *c, size_t n)
{
	c->left -= n;
	c->skip += n;
	while (c->left && c->skip >= c->iov->iov_len) {
		c->skip -= c->iov->iov_len;
		c->iov++;
	}
}

/* The next @n bytes, if they are in one place. */
static const char *in_one_piece(const struct cursor *c, size_t n)
{
	return c->iov->iov_len - c->skip >= n ?
	       (const char *)c->iov->iov_base + c->skip : NULL;
}

static void copy_out(struct cursor c, char *to)
{
	while (c.left) {
		size_t n = c.iov->iov_len - c.skip;

		if (n > c.left)
			n = c.left;
		memcpy(to, (const char *)c.iov->iov_base + c.skip, n);
		to += n;
		advance(&c, n);
	}
}

static void fill_stage(struct h_stream_sender *s, struct cursor c, size_t n)
{
	while (n) {
		size_t here = c.iov->iov_len - c.skip;

		if (here > n)
			here = n;
		h__stage_put(s, (const char *)c.iov->iov_base + c.skip, here);
		advance(&c, here);
		n -= here;
	}
}

/* ---- records ---- */

/* The NIC takes these out of the work queue's entry, also with a note. */
static bool is_short(const struct h_stream_sender *s, size_t n)
{
	return n + HAMLYN_TRB_METADATA_SPACE <=
	       s->r.manager->terminus->inline_max;
}

/* Up to @n bytes; returns how many. */
static ssize_t send_staged(struct h_stream_sender *s, const struct cursor *c,
			   size_t n, int64_t deadline_ns)
{
	int err;

	err = h__stage_begin(s, n, deadline_ns);
	if (err)
		return err;
	if (n > s->stage_size)
		n = s->stage_size;
	fill_stage(s, *c, n);
	err = h__stage_flush(s, c->left - n, c->label, deadline_ns);
	if (!err)
		return (ssize_t)n;
	h__stage_drop(s);
	return err;
}

/* Short ones are in the work queue's entry when they are sent, the others in memory still. */
static bool in_place(const struct h_stream_sender *s, const struct cursor *c, const char *p,
		     size_t n, int64_t deadline_ns)
{
	return is_short(s, n) || ((c->lent || !h__may_stay(s->r.manager, deadline_ns)) &&
		h__terminus_find_tag(s->r.manager->terminus, p, n) >= 0);
}

/* @handle: what has to have left before the caller may change the data. */
static int send_record(struct h_stream_sender *s, struct cursor *c,
		       int64_t deadline_ns, int64_t *handle)
{
	const char *p;
	int64_t ret;
	size_t n;

	/* Then it is known how large the buffers are. */
	ret = h__stream_wait_for_ticket(s, deadline_ns);
	if (ret)
		return (int)ret;
	n = c->left < s->most ? c->left : s->most;
	p = in_one_piece(c, n);
	if (p && in_place(s, c, p, n, deadline_ns)) {
		ret = h__stream_post(s, p, n, c->left - n, c->label, deadline_ns);
		if (ret >= 0 && !is_short(s, n))
			*handle = ret;
	} else {
		ret = send_staged(s, c, n, deadline_ns);
		if (ret > 0)
			n = (size_t)ret;
	}
	if (ret < 0)
		return (int)ret;
	c->label = 0;
	advance(c, n);
	return 0;
}

/*
 * A message that its NIC refused went nowhere, and neither will others. With a deadline there is
 * none where it would not leave by itself.
 */
static int wait_until_left(struct h_stream_sender *s, int64_t handle)
{
	if (handle < 0)
		return 0;
	return h_send_wait(s->r.manager->terminus, handle, H_FOREVER) < 0 ?
	       -EPIPE : 0;
}

static int send_records(struct h_stream_sender *s, struct cursor *c,
			int64_t deadline_ns)
{
	int64_t handle = -1;
	int err = 0, gone;

	while (c->left && !err)
		err = send_record(s, c, deadline_ns, &handle);
	if (c->lent) {
		if (handle >= 0)
			h__lent_sent(c->lent, handle);
		return err;
	}
	gone = wait_until_left(s, handle);
	return gone ? gone : err;
}

/* ---- what is left of a message ---- */

static void set_rest(struct h_channel *ch, char *rest)
{
	__atomic_store_n(&ch->rest, rest, __ATOMIC_RELEASE);
}

void h__channel_drop_rest(struct h_channel *ch)
{
	struct h_lent *lent = ch->rest_lent;

	if (!lent)
		free(ch->rest);
	ch->rest_lent = NULL;
	set_rest(ch, NULL);
	/* Behind its handle. */
	if (lent)
		__atomic_fetch_sub(&lent->rests, 1, __ATOMIC_RELEASE);
}

int h__channel_push(struct h_channel *ch, int64_t deadline_ns)
{
	struct h_stream_sender *s = ch->sender;
	struct iovec iov = { .iov_base = ch->rest, .iov_len = ch->rest_length };
	struct cursor c = {
		.iov = &iov,
		.skip = ch->rest_done,
		.left = ch->rest_length - ch->rest_done,
		.lent = ch->rest_lent,
	};
	int err;

	if (ch->torn || s->closed)
		return -EPIPE;
	if (!ch->rest)
		return 0;
	/* On a manager of one thread there is no lock that would keep it out. */
	if (ch->pushing)
		return -EAGAIN;
	ch->pushing = true;
	err = send_records(s, &c, deadline_ns);
	ch->pushing = false;
	ch->rest_done = ch->rest_length - c.left;
	if (err == -EPIPE)
		ch->torn = true;
	if (!c.left || err == -EPIPE)
		h__channel_drop_rest(ch);
	return err;
}

static void send_ready(struct h_stream_sender *s, void *arg);

static void arm(struct h_channel *ch)
{
	h_stream_sender_on_ready(ch->sender, send_ready, ch);
}

/* Go on when there are buffers again; said with sending held. */
static void want(struct h_channel *ch, bool wanted)
{
	if (wanted && !ch->armed) {
		ch->armed = true;
		arm(ch);
	}
	h__stream_want(ch->sender, wanted);
}

/*
 * There is nobody to tell that a send can be tried again: h_channel_on_ready() will
 * see to it. If it does so just now it has set whom to call before we look.
 */
static void leave_to_on_ready(struct h_channel *ch)
{
	ch->armed = false;
	h_stream_sender_on_ready(ch->sender, NULL, NULL);
	if (h__channel_call(ch).ready)
		arm(ch);
}

void h__channel_ready_set(struct h_channel *ch)
{
	if (h__read_once(&ch->blocked))
		arm(ch);
}

/* Called while buffers are free, or there never will be any. */
static void send_ready(struct h_stream_sender *s, void *arg)
{
	struct h_channel_call call = {};
	struct h_channel *ch = arg;

	if (h__mutex_lock(ch->manager, &s->sending, H_NOWAIT))
		return;
	h__channel_push(ch, H_NOWAIT);
	if (ch->blocked && !ch->rest)
		call = h__channel_call(ch);
	if (call.ready)
		h__write_once(&ch->blocked, false);
	want(ch, ch->rest || ch->blocked);
	if (!ch->rest && ch->blocked)
		leave_to_on_ready(ch);
	h__channel_sent(ch);
	if (!call.ready)
		return;
	h__receiver_hand_over(&s->r);
	/* Afterwards there may be no channel any more. */
	call.ready(ch, call.arg);
}

void h__channel_try_push(struct h_channel *ch)
{
	uint32_t *sending = &ch->sender->sending;

	if (h__mutex_lock(ch->manager, sending, H_NOWAIT))
		return;
	h__channel_push(ch, H_NOWAIT);
	h__channel_sent(ch);
}

int h__channel_pay(struct h_debt *d)
{
	struct h_channel *ch = (void *)((char *)d - offsetof(struct h_channel, debt));
	struct h_stream_sender *s = ch->sender;
	int err = 0;

	if (!h__load_acquire(&ch->rest))
		return 0;
	if (h__mutex_lock(ch->manager, &s->sending, H_NOWAIT))
		return -EBUSY;
	h__channel_push(ch, H_NOWAIT);
	/* Without room at the other end it waits for a credit. */
	if (ch->rest)
		err = h__stream_wait_for_ticket(s, H_NOWAIT) == -EAGAIN ? -EAGAIN : -EBUSY;
	h__channel_sent(ch);
	return err;
}

/* A send returns -EAGAIN. */
static void block(struct h_channel *ch)
{
	h__write_once(&ch->blocked, true);
	want(ch, true);
}

/* Somebody was refused sending while it was held, as it is again. */
static __attribute__((noinline)) void contended(struct h_channel *ch)
{
	do {
		block(ch);
	} while (h__sending_unlock(ch->sender));
}

void h__channel_sent(struct h_channel *ch)
{
	if (h__sending_unlock(ch->sender))
		contended(ch);
}

static void unlock(struct h_stream_sender *s)
{
	h__channel_sent(s->owner);
}

void h__channel_owns(struct h_channel *ch)
{
	ch->sender->owner = ch;
	ch->sender->unlock = unlock;
	ch->sender->comes = &ch->receiver->r;
}

/* It stays where it is. */
static void keep_lent(struct h_channel *ch, const struct cursor *c)
{
	__atomic_fetch_add(&c->lent->rests, 1, __ATOMIC_RELAXED);
	ch->rest_lent = c->lent;
	ch->rest_length = c->skip + c->left;
	ch->rest_done = c->skip;
	set_rest(ch, c->lent->memory);
}

static int keep_copy(struct h_channel *ch, const struct cursor *c)
{
	char *rest = malloc(c->left);

	if (!rest) {
		ch->torn = true;
		return -ENOMEM;
	}
	copy_out(*c, rest);
	ch->rest_length = c->left;
	ch->rest_done = 0;
	set_rest(ch, rest);
	return 0;
}

/* A part of the message is on its way: the rest has to follow. */
static int keep_rest(struct h_channel *ch, const struct cursor *c)
{
	int err = 0;

	if (c->lent)
		keep_lent(ch, c);
	else
		err = keep_copy(ch, c);
	if (err)
		return err;
	want(ch, true);
	h__debt_add(ch->manager, &ch->debt);
	/* Who is asleep because there was nothing to be done looks again. */
	h__receiver_wake(&ch->receiver->r);
	return 0;
}

/* ---- messages ---- */

static int send_empty(struct h_stream_sender *s, uint64_t label, int64_t deadline_ns)
{
	int64_t ret;

	ret = h__stream_post(s, NULL, 0, 0, H_NOTE_EMPTY | label, deadline_ns);
	return ret < 0 ? (int)ret : 0;
}

static uint64_t as_flags(uint32_t label)
{
	return (uint64_t)label << H_LABEL_SHIFT;
}

static int send_message(struct h_channel *ch, struct cursor *c,
			int64_t deadline_ns)
{
	uint64_t length = c->left;
	int err;

	/* Who waited would keep out h_channel_join(). */
	if (!ch->joined)
		return -ENOTCONN;
	err = h__channel_push(ch, deadline_ns);
	if (!err)
		err = length ? send_records(ch->sender, c, deadline_ns) :
			       send_empty(ch->sender, c->label, deadline_ns);
	if (err && c->left < length) {
		if (err != -EPIPE)
			return keep_rest(ch, c);
		ch->torn = true;
	}
	if (err == -EAGAIN)
		block(ch);
	return err;
}

/* The channel has taken a message. sending held. */
static inline void count_sent(struct h_channel *ch, size_t length)
{
	h__count(&ch->sent, 1);
	h__count(&ch->sent_bytes, length);
}

/* To a server that does not know h_channel_reply() a message that follows a request is that. */
static int send_plain(struct h_channel *ch, struct cursor *c, int64_t deadline_ns)
{
	uint32_t id = h__channel_unanswered(ch);
	size_t length = c->left;
	int err;

	if (id)
		c->label = as_flags(H_LABEL_REPLY | id);
	err = send_message(ch, c, deadline_ns);
	if (!err && id)
		h__channel_answered(ch, id);
	if (!err)
		count_sent(ch, length);
	return err;
}

int h_channel_sendv(struct h_channel *ch, const struct iovec *iov, int iovcnt,
		    int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	struct cursor c = { .iov = iov };
	int i, err;

	if (iovcnt < 0)
		return -EINVAL;
	for (i = 0; i < iovcnt; i++) {
		if (iov[i].iov_len > ch->peer_limit - c.left)
			return -EMSGSIZE;
		c.left += iov[i].iov_len;
	}
	advance(&c, 0);
	err = h__sending_lock(ch->sender, deadline);
	if (err)
		return err;
	err = send_plain(ch, &c, deadline);
	h__channel_sent(ch);
	return err;
}

static void take_in(struct h_stream_sender *s)
{
	h__channel_take_in(s->owner);
}

static int send_labelled(struct h_channel *ch, uint32_t label, const void *data, size_t length,
			 bool takes_in, int64_t deadline_ns)
{
	const struct iovec iov = { .iov_base = (void *)data, .iov_len = length };
	struct cursor c = { .iov = &iov, .left = length, .label = as_flags(label) };
	struct h_stream_sender *s = ch->sender;
	int err;

	if (length > ch->peer_limit)
		return -EMSGSIZE;
	err = h__sending_lock(s, deadline_ns);
	if (err)
		return err;
	s->take_in = takes_in ? take_in : NULL;
	err = send_message(ch, &c, deadline_ns);
	s->take_in = NULL;
	if (!err)
		count_sent(ch, length);
	h__channel_sent(ch);
	return err;
}

int h__channel_send_labelled(struct h_channel *ch, uint32_t label, const void *data,
			     size_t length, int64_t deadline_ns)
{
	return send_labelled(ch, label, data, length, false, deadline_ns);
}

int h__channel_send_request(struct h_channel *ch, uint32_t id, const void *data, size_t length,
			    int64_t deadline_ns)
{
	return send_labelled(ch, id, data, length, true, deadline_ns);
}

int h__channel_send_lent(struct h_channel *ch, struct h_lent *l, size_t length,
			 int64_t deadline_ns)
{
	const struct iovec iov = { .iov_base = l->memory, .iov_len = length };
	struct cursor c = { .iov = &iov, .left = length, .lent = l };
	int err;

	if (length > ch->peer_limit)
		return -EMSGSIZE;
	err = h__sending_lock(ch->sender, deadline_ns);
	if (err)
		return err;
	ch->torn = ch->torn || h__loan_was_refused(ch);
	err = send_plain(ch, &c, deadline_ns);
	h__channel_sent(ch);
	return err;
}

void h__channel_tear(struct h_channel *ch)
{
	if (h__sending_lock(ch->sender, H_FOREVER))
		return;
	ch->torn = true;
	h__channel_sent(ch);
}

static int copy_rest(struct h_channel *ch)
{
	size_t left = ch->rest_length - ch->rest_done;
	char *rest = malloc(left);

	if (rest)
		memcpy(rest, ch->rest + ch->rest_done, left);
	h__channel_drop_rest(ch);
	ch->rest_length = left;
	ch->rest_done = 0;
	ch->torn = ch->torn || !rest;
	set_rest(ch, rest);
	return rest ? 0 : -ENOMEM;
}

int h__channel_copy_rest(struct h_channel *ch, struct h_lent *l)
{
	int err = h__sending_lock(ch->sender, H_FOREVER);

	if (err)
		return err;
	err = ch->rest_lent == l ? copy_rest(ch) : 0;
	h__channel_sent(ch);
	return err;
}

/*
 * What fits one record, and goes with it, needs nothing else: not even to know until when it
 * may wait. sending held.
 */
static inline bool goes_at_once(const struct h_channel *ch, size_t length)
{
	const struct h_stream_sender *s = ch->sender;

	return length && length <= s->at_once && ch->joined && !ch->rest && !ch->torn &&
	       !s->closed && !h__read_once(&ch->asked_count) && h__stream_can_go(s);
}

/* sending held, until it returns. */
static __attribute__((noinline)) int
send_in_time(struct h_channel *ch, const void *data, size_t length, int64_t deadline_ns)
{
	const struct iovec iov = { .iov_base = (void *)data, .iov_len = length };
	struct cursor c = { .iov = &iov, .left = length };
	int err = send_plain(ch, &c, deadline_ns);

	h__channel_sent(ch);
	return err;
}

static __attribute__((noinline)) int
wait_to_send(struct h_channel *ch, const void *data, size_t length, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	int err = h__sending_lock(ch->sender, deadline);

	return err ? err : send_in_time(ch, data, length, deadline);
}

int h_channel_send(struct h_channel *ch, const void *data, size_t length,
		   int64_t timeout_ns)
{
	struct h_stream_sender *s = ch->sender;
	int64_t ret = -EAGAIN;

	if (length > ch->peer_limit)
		return -EMSGSIZE;
	if (h__unlikely(!h__mutex_lock_free(ch->manager, &s->sending)))
		return wait_to_send(ch, data, length, timeout_ns);
	if (h__likely(goes_at_once(ch, length)))
		ret = h__stream_post(s, data, length, 0, 0, H_NOWAIT);
	if (h__unlikely(ret == -EAGAIN))
		return send_in_time(ch, data, length, h_deadline(timeout_ns));
	if (h__likely(ret >= 0))
		count_sent(ch, length);
	if (h__unlikely(h__sending_unlock(s)))
		contended(ch);
	return ret < 0 ? (int)ret : 0;
}
