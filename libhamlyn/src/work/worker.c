// SPDX-License-Identifier: MIT
/* A worker. */
#include <stdlib.h>

#include "work/work.h"

/* ---- making ---- */

static int dial(const char *path, const struct h_worker_attr *at, struct h_channel **channel,
		int64_t timeout_ns)
{
	const struct h_channel_attr attr = {
		.max_message = at->max_message && at->max_message < UINT64_MAX - H_ITEM_BYTES ?
			       at->max_message + H_ITEM_BYTES : at->max_message,
		.flags = at->flags,
		.uid_count = at->uid_count,
		.uids = at->uids,
		.buffers = at->buffers,
		.buffer_size = at->buffer_size,
		.max_buffer_size = at->max_buffer_size,
		.device = at->device,
	};

	return h_channel_dial(path, &attr, channel, timeout_ns);
}

static int take_welcome(const struct h_message *m)
{
	const unsigned char *p = m->data;

	if (m->length != H_JOINED_BYTES || h__get(p, 8) != H_JOINED_MAGIC)
		return h__early(-EPROTO, "whoever listens there has no work queue");
	switch (h__get(p + 8, 8)) {
	case H_JOINED:
		return 0;
	case H_JOINED_NOT:
		return h__early(-EACCES, "the master has turned this worker away");
	default:
		return h__early(-EPROTO, "the work queue is of another version");
	}
}

static int introduce(struct h_worker *w, uint32_t at_once, int64_t deadline_ns)
{
	unsigned char bytes[H_JOIN_BYTES];
	struct h_message m;
	int err;

	h__put(h__put(h__put(bytes, H_JOIN_MAGIC, 8), at_once, 4), 0, 4);
	err = h_channel_send(w->channel, bytes, sizeof(bytes), h__time_left(deadline_ns));
	if (!err)
		err = h_channel_receive(w->channel, &m, h__time_left(deadline_ns));
	if (err == -ENODATA || err == -EPIPE)
		return h__early(-ECONNRESET, "the work queue has ended");
	if (err)
		return err;
	err = take_welcome(&m);
	h_channel_release(w->channel, &m);
	return err;
}

int h__worker_create(const char *path, const struct h_worker_attr *attr, size_t size,
		     struct h_worker **worker, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	struct h_worker_attr at;
	struct h_worker *w;
	int err;

	*worker = NULL;
	h__early_begin();
	err = H_TAKE_ATTR(NULL, &at, attr, size);
	if (err)
		return err;
	if (at.at_once > 1024)
		return h__early(-EINVAL, "a worker has at most 1024 items at once");
	w = calloc(1, sizeof(*w));
	if (!w)
		return -ENOMEM;
	err = dial(path, &at, &w->channel, h__time_left(deadline));
	if (!err)
		err = introduce(w, at.at_once ? at.at_once : 1, deadline);
	if (!err) {
		*worker = w;
		return 0;
	}
	h_channel_close(w->channel, H_NOWAIT);
	free(w);
	return err;
}

/* ---- items ---- */

int h_worker_fd(struct h_worker *w)
{
	return h__dialled_fd(w->channel, &w->watched);
}

int h_worker_take(struct h_worker *w, struct h_work_item *item, int64_t timeout_ns)
{
	struct h_message *m = &item->message;
	int err;

	*item = (struct h_work_item) {};
	err = h__dialled_receive(w->channel, w->watched, m, timeout_ns);
	if (err)
		return err;
	if (m->length < H_ITEM_BYTES) {
		h_channel_release(w->channel, m);
		return h__refuse(h_manager_dev(h_channel_manager(w->channel)), -EPROTO,
				 "what has come is no item");
	}
	item->data = (const char *)m->data + H_ITEM_BYTES;
	item->length = m->length - H_ITEM_BYTES;
	item->id = h__get(m->data, 8);
	item->delivery = (uint32_t)h__get((const unsigned char *)m->data + 8, 4);
	return 0;
}

/* What a master is told of an item that the worker does not have ends the worker. */
static int check_item(struct h_worker *w, const struct h_message *m)
{
	struct h_dev *dev = w->channel->manager->dev;

	if (h__is_forked(dev))
		return h__refuse_forked(dev);
	if (m->held != w->channel->id)
		return h__refuse(dev, -EINVAL, m->held ? "the item is of another worker" :
				 "there is no item");
	if (!h__channel_holds(w->channel, m))
		return h__refuse(dev, -EALREADY, "a copy of this item was done or failed before");
	return 0;
}

static int say(struct h_worker *w, struct h_work_item *item, enum h_verdict verdict,
	       const void *result, size_t length, int64_t timeout_ns)
{
	unsigned char head[H_ITEM_BYTES];
	const struct iovec iov[2] = {
		{ .iov_base = head, .iov_len = sizeof(head) },
		{ .iov_base = (void *)result, .iov_len = length },
	};
	int err = check_item(w, &item->message);

	if (err)
		return err;
	h__put(h__put(head, item->id, 8), verdict, 8);
	err = h_channel_sendv(w->channel, iov, length ? 2 : 1, timeout_ns);
	if (err)
		return err;
	h_channel_release(w->channel, &item->message);
	*item = (struct h_work_item) {};
	return 0;
}

int h_worker_done(struct h_worker *w, struct h_work_item *item, const void *result,
		  size_t length, int64_t timeout_ns)
{
	return say(w, item, H_VERDICT_DONE, result, length, timeout_ns);
}

int h_worker_fail(struct h_worker *w, struct h_work_item *item, int64_t timeout_ns)
{
	return say(w, item, H_VERDICT_FAILED, NULL, 0, timeout_ns);
}

/* ---- ending ---- */

int h_worker_close(struct h_worker *w, int64_t timeout_ns)
{
	int err;

	if (!w)
		return 0;
	err = h_channel_close(w->channel, timeout_ns);
	free(w);
	return err;
}
