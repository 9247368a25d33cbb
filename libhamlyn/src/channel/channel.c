// SPDX-License-Identifier: MIT
/* Channels: from their making to their end. */
#include <stddef.h>
#include <stdlib.h>

#include "channel/channel.h"

static void channel_free(struct h_channel *ch)
{
	h__channel_drop_rest(ch);
	h__loans_exit(ch);
	if (!ch->in.lent)
		free(ch->in.to);
	h__budget_give(ch->manager, ch->in.charged);
	h__channel_requests_free(ch);
	h__longs_exit(ch);
	free(ch);
}

static uint64_t limit_of(const struct h_channel_attr *attr)
{
	if (!attr->max_message)
		return H_CHANNEL_DEFAULT_MAX;
	/* More than anybody can have; what follows is no length: see begin(). */
	return attr->max_message < H_MORE_LABELLED ? attr->max_message : H_MORE_LABELLED - 1;
}

static int take_attr(struct h_manager *m, struct h_channel_attr *at,
		     const struct h_channel_attr *attr, size_t size)
{
	struct h_dev *dev = m ? m->dev : NULL;
	int err = H_TAKE_ATTR(dev, at, attr, size);

	if (!err && at->reserved)
		err = h__attr_reserved(dev, at->reserved);
	return err;
}

static struct h_stream_attr stream_of(const struct h_channel_attr *attr)
{
	return (struct h_stream_attr) {
		.buffers = attr->buffers,
		.buffer_size = attr->buffer_size,
		.max_buffer_size = attr->max_buffer_size,
	};
}

static struct h_connect_attr connection_of(const struct h_channel_attr *attr)
{
	return (struct h_connect_attr) {
		.flags = attr->flags,
		.uid_count = attr->uid_count,
		.uids = attr->uids,
		.buffers = attr->buffers,
		.buffer_size = attr->buffer_size,
		.max_buffer_size = attr->max_buffer_size,
	};
}

static struct h_half half_of(const struct h_channel_attr *attr)
{
	return (struct h_half) {
		.fds = { -1, -1 },
		.kind = H_KIND_CHANNEL,
		.limit = limit_of(attr),
	};
}

/* Not 0, which is nobody's. */
static uint32_t next_id(void)
{
	static uint32_t last;
	uint32_t id;

	do {
		id = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
	} while (!id);
	return id;
}

/* The channel gets what the half has, or that is destroyed. */
static int channel_of(struct h_half *half, bool joined,
		      struct h_channel **channel)
{
	struct h_channel *ch = calloc(1, sizeof(*ch));

	if (!ch) {
		h__half_destroy(half);
		return -ENOMEM;
	}
	ch->manager = half->manager;
	ch->id = next_id();
	ch->sender = half->sender;
	ch->receiver = half->receiver;
	h__receiver_pair(&ch->sender->r, &ch->receiver->r);
	ch->limit = half->limit;
	ch->peer_limit = half->peer_limit;
	ch->debt.pay = h__channel_pay;
	h__channel_owns(ch);
	ch->stored_tail = &ch->stored;
	ch->joined = joined;
	*channel = ch;
	return 0;
}

/* ---- at a listener ---- */

int h__channel_connect(struct h_manager *m, const char *path,
		       const struct h_channel_attr *attr, size_t size,
		       struct h_channel **channel, int64_t timeout_ns)
{
	struct h_connect_attr connection;
	struct h_channel_attr at;
	struct h_half half;
	struct h_peer peer;
	int err;

	*channel = NULL;
	err = take_attr(m, &at, attr, size);
	if (err)
		return err;
	half = half_of(&at);
	connection = connection_of(&at);
	err = h__half_connect(&half, m, path, &connection, &peer, timeout_ns);
	if (!err)
		err = channel_of(&half, true, channel);
	if (err)
		return err;
	(*channel)->peer = peer;
	(*channel)->met = true;
	return 0;
}

int h__channel_accept(struct h_listener *listener, struct h_manager *m,
		      const struct h_channel_attr *attr, size_t size,
		      struct h_channel **channel, int64_t timeout_ns)
{
	struct h_stream_attr stream;
	struct h_channel_attr at;
	struct h_half half;
	struct h_peer peer;
	int err;

	*channel = NULL;
	err = take_attr(m, &at, attr, size);
	if (err)
		return err;
	half = half_of(&at);
	stream = stream_of(&at);
	err = h__half_accept(&half, listener, m, &stream, &peer, timeout_ns);
	if (!err)
		err = channel_of(&half, true, channel);
	if (err)
		return err;
	(*channel)->peer = peer;
	(*channel)->met = true;
	return 0;
}

int h_channel_peer(const struct h_channel *ch, struct h_peer *peer)
{
	*peer = ch->peer;
	return ch->met ? 0 : -ENOENT;
}

struct h_manager *h_channel_manager(const struct h_channel *ch)
{
	return ch->manager;
}

void h_channel_set_data(struct h_channel *ch, void *data)
{
	ch->data = data;
}

void *h_channel_data(const struct h_channel *ch)
{
	return ch->data;
}

/* ---- by seeds ---- */

int h__channel_create(struct h_manager *m, const struct h_channel_attr *attr, size_t size,
		      struct h_channel **channel)
{
	struct h_stream_attr stream;
	struct h_channel_attr at;
	struct h_half half;
	int err;

	*channel = NULL;
	err = take_attr(m, &at, attr, size);
	if (err)
		return err;
	half = half_of(&at);
	stream = stream_of(&at);
	err = h__half_create(&half, m, &stream, false);
	if (err)
		return err;
	/* Until it is known what they take. */
	half.peer_limit = UINT64_MAX;
	return channel_of(&half, false, channel);
}

static struct h_half as_half(const struct h_channel *ch)
{
	return (struct h_half) {
		.manager = ch->manager,
		.sender = ch->sender,
		.receiver = ch->receiver,
		.fds = { -1, -1 },
		.kind = H_KIND_CHANNEL,
		.limit = ch->limit,
	};
}

_Static_assert(H_CHANNEL_SEED_BYTES == H_CARD_BYTES, "a channel's seed is a card");

void h_channel_seed(const struct h_channel *ch, struct h_channel_seed *seed)
{
	const struct h_half half = as_half(ch);

	h__half_card(&half, seed->bytes);
}

int h_channel_join(struct h_channel *ch, const struct h_channel_seed *seed)
{
	struct h_half half = as_half(ch);
	int err;

	err = h__sending_lock(ch->sender, H_FOREVER);
	if (err)
		return err;
	ch->sender->claims = true;
	err = ch->joined ? -EISCONN : h__half_join(&half, seed->bytes, NULL);
	if (!err) {
		ch->peer_limit = half.peer_limit;
		ch->joined = true;
	}
	h__channel_sent(ch);
	return err == -EPROTOTYPE ? -EINVAL : err;
}

static int join_both(struct h_channel *a, struct h_channel *b)
{
	struct h_channel_seed seed;
	int err;

	h_channel_seed(b, &seed);
	err = h_channel_join(a, &seed);
	if (err)
		return err;
	h_channel_seed(a, &seed);
	return h_channel_join(b, &seed);
}

int h__channel_pair(struct h_manager *manager_a, struct h_manager *manager_b,
		    const struct h_channel_attr *attr, size_t size, struct h_channel **a,
		    struct h_channel **b)
{
	struct h_fabric_id fabric;
	struct h_why why[2];
	int err;

	*b = NULL;
	h_dev_fabric(manager_b->dev, &fabric);
	if (!h_dev_reaches(manager_a->dev, &fabric)) {
		*a = NULL;
		return -EXDEV;
	}
	err = h__channel_create(manager_a, attr, size, a);
	if (err)
		return err;
	err = h__channel_create(manager_b, attr, size, b);
	if (!err)
		err = join_both(*a, *b);
	if (!err)
		return 0;
	h__why_keep(manager_a->dev, &why[0]);
	h__why_keep(manager_b->dev, &why[1]);
	h_channel_close(*a, H_NOWAIT);
	h_channel_close(*b, H_NOWAIT);
	h__why_restore(manager_b->dev, &why[1]);
	h__why_restore(manager_a->dev, &why[0]);
	*a = NULL;
	*b = NULL;
	return err;
}

/* ---- event loops ---- */

struct h_channel_call h__channel_call(struct h_channel *ch)
{
	struct h_receiver *r = &ch->receiver->r;
	struct h_channel_call call;

	h_receiver_lock(r);
	call = ch->call;
	h_receiver_unlock(r);
	return call;
}

/* It may have been taken back since this was about to be called. */
static void receive_ready(struct h_stream_receiver *r, void *arg)
{
	struct h_channel *ch = arg;
	struct h_channel_call call = h__channel_call(ch);

	if (!call.ready)
		return;
	h__receiver_hand_over(&r->r);
	call.ready(ch, call.arg);
}

void h_channel_on_ready(struct h_channel *ch,
			void (*ready)(struct h_channel *channel, void *arg),
			void *arg)
{
	struct h_receiver *r = &ch->receiver->r;

	h_stream_receiver_on_ready(ch->receiver, NULL, NULL);
	h_receiver_lock(r);
	ch->call = (struct h_channel_call) { ready, arg };
	h_receiver_unlock(r);
	if (!ready)
		return;
	if (!h__read_once(&ch->told))
		h_stream_receiver_on_ready(ch->receiver, receive_ready, ch);
	/* Told just now: whoever was second of the two has taken it back. */
	if (h__read_once(&ch->told))
		h_receiver_on_ready(r, NULL, NULL);
	h__channel_ready_set(ch);
}

void h_channel_pause(struct h_channel *ch, bool paused)
{
	if (paused)
		h_stream_receiver_on_ready(ch->receiver, NULL, NULL);
	else if (!h__read_once(&ch->told))
		h_stream_receiver_on_ready(ch->receiver, receive_ready, ch);
}

/* ---- ending ---- */

/* Whoever has closed does not want any more from us. */
static bool peer_closed(struct h_stream_receiver *r)
{
	bool fin;

	h_receiver_lock(&r->r);
	fin = r->fin;
	h_receiver_unlock(&r->r);
	return fin;
}

static int finish(struct h_channel *ch, int64_t deadline_ns)
{
	int err;

	if (!ch->joined)
		return 0;
	/* Nothing need be sent to one who has gone. */
	h_manager_poll(ch->manager);
	/* Half a message is not to be followed by the end. */
	err = ch->sender->closed ? 0 : h__channel_push(ch, deadline_ns);
	if (!err)
		err = h__stream_finish(ch->sender, deadline_ns);
	return err == -EPIPE && peer_closed(ch->receiver) ? 0 : err;
}

int h_channel_shutdown(struct h_channel *ch, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	int err;

	err = h__sending_lock(ch->sender, deadline);
	if (err)
		return err;
	err = finish(ch, deadline);
	h__channel_sent(ch);
	return err;
}

/*
 * A send that has left a rest, or was refused, has send_ready() called back although
 * nobody may have set a call back: another thread that dispatches would go on with the
 * channel while it is finished and freed.
 */
static void call_no_more(struct h_channel *ch)
{
	h_receiver_lock(&ch->receiver->r);
	ch->call = (struct h_channel_call) {};
	h_receiver_unlock(&ch->receiver->r);
	h__receivers_silence(&ch->sender->r, &ch->receiver->r);
}

/* A child has no mappings: neither channel nor manager can be looked at closely. */
static int close_in_child(struct h_channel *ch)
{
	h_close(ch->manager->dev);
	h__loans_forget(ch);
	free(ch);
	return 0;
}

static int channel_end(struct h_channel *ch)
{
	int ret = h__stream_sender_destroy(ch->sender);
	int err = h__stream_receiver_end(ch->receiver);

	channel_free(ch);
	return ret ? ret : err;
}

static void end_left(struct h_manager *m, struct h_leaving *l)
{
	struct h_channel *ch = (void *)((char *)l - offsetof(struct h_channel, closing));

	h__closed(m, -2);
	channel_end(ch);
}

/* With it the other end would be told that we are gone before it has got what we have sent. */
static void leave(struct h_channel *ch)
{
	ch->closing.end = end_left;
	h__closed(ch->manager, 2);
	h__leave(ch->manager, &ch->closing);
}

int h_channel_close(struct h_channel *ch, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	struct h_change_limit before;
	struct h_manager *dialled;
	int ret, err;

	if (!ch)
		return 0;
	dialled = ch->dialled ? ch->manager : NULL;
	if (dialled && h__in_child(dialled->dev))
		return close_in_child(ch);
	call_no_more(ch);
	h__debt_remove(ch->manager, &ch->debt);
	ret = finish(ch, deadline);
	before = h__change_limit(deadline);
	err = 0;
	if (h__leaves_later(ch->manager, &ch->closing))
		leave(ch);
	else
		err = channel_end(ch);
	ret = ret ? ret : err;
	err = dialled ? h__channel_hang_up(dialled) : 0;
	h__change_restore(before);
	return err ? err : ret;
}
