// SPDX-License-Identifier: MIT
/* A subscriber. */
#include <stdlib.h>

#include "publish/publish.h"

/* ---- making ---- */

/* With its head; or the answer to what the subscriber wants, if that is longer. */
static uint64_t longest(uint64_t max_message)
{
	if (!max_message || max_message >= UINT64_MAX - H_HEAD_BYTES)
		return max_message;
	max_message += H_HEAD_BYTES;
	return max_message < H_WELCOME_BYTES ? H_WELCOME_BYTES : max_message;
}

static int dial(const char *path, const struct h_subscriber_attr *at, struct h_channel **channel,
		int64_t timeout_ns)
{
	const struct h_channel_attr attr = {
		.max_message = longest(at->max_message),
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

static int said(uint64_t answer)
{
	switch (answer) {
	case H_WELCOME:
		return 0;
	case H_WELCOME_NOT:
		return h__early(-EACCES, "the publisher has turned this subscriber away");
	case H_WELCOME_NO_WAIT:
		return h__early(-EOPNOTSUPP,
				"the publisher waits for no subscriber: take H_DROP_OLDEST");
	case H_WELCOME_NO_MORE:
		return h__early(-EBUSY, "the publisher has given up a subscriber of this user");
	default:
		return h__early(-EPROTO, "the publisher is of another version");
	}
}

static int take_welcome(struct h_subscriber *s, const struct h_message *m)
{
	const unsigned char *p = m->data;

	if (m->length != H_WELCOME_BYTES || h__get(p, 8) != H_WELCOME_MAGIC)
		return h__early(-EPROTO, "whoever listens there is no publisher");
	s->next = h__get(p + 16, 8);
	return said(h__get(p + 8, 8));
}

static int introduce(struct h_subscriber *s, const struct h_subscriber_attr *at,
		     int64_t deadline_ns)
{
	unsigned char bytes[H_HELLO_BYTES];
	struct h_message m;
	int err;

	h__put(h__put(h__put(bytes, H_HELLO_MAGIC, 8), at->policy, 4), at->history, 4);
	err = h_channel_send(s->channel, bytes, sizeof(bytes), h__time_left(deadline_ns));
	if (!err)
		err = h_channel_receive(s->channel, &m, h__time_left(deadline_ns));
	if (err == -ENODATA || err == -EPIPE)
		return h__early(-ECONNRESET, "the publisher has ended");
	if (err)
		return err;
	err = take_welcome(s, &m);
	h_channel_release(s->channel, &m);
	return err;
}

int h__subscriber_create(const char *path, const struct h_subscriber_attr *attr, size_t size,
			 struct h_subscriber **subscriber, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	struct h_subscriber_attr at;
	struct h_subscriber *s;
	int err;

	*subscriber = NULL;
	h__early_begin();
	err = H_TAKE_ATTR(NULL, &at, attr, size);
	if (err)
		return err;
	if (at.reserved || at.policy > H_WAIT)
		return h__early(-EINVAL, at.reserved ? "reserved is not 0" : "no such policy: %u",
				at.policy);
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	err = dial(path, &at, &s->channel, h__time_left(deadline));
	if (!err)
		err = introduce(s, &at, deadline);
	if (!err) {
		*subscriber = s;
		return 0;
	}
	h_channel_close(s->channel, H_NOWAIT);
	free(s);
	return err;
}

/* ---- receiving ---- */

int h_subscriber_fd(struct h_subscriber *s)
{
	return h__dialled_fd(s->channel, &s->watched);
}

static int take_head(struct h_subscriber *s, struct h_publication *pub)
{
	const struct h_message *m = &pub->message;
	uint64_t number;

	if (m->length < H_HEAD_BYTES)
		return -EPROTO;
	number = h__get(m->data, 8);
	if (number < s->next || number == UINT64_MAX)
		return -EPROTO;
	pub->data = (const char *)m->data + H_HEAD_BYTES;
	pub->length = m->length - H_HEAD_BYTES;
	pub->number = number;
	pub->lost = number - s->next;
	s->next = number + 1;
	return 0;
}

int h_subscriber_receive(struct h_subscriber *s, struct h_publication *pub, int64_t timeout_ns)
{
	int err;

	*pub = (struct h_publication) {};
	err = h__dialled_receive(s->channel, s->watched, &pub->message, timeout_ns);
	if (err)
		return err;
	err = take_head(s, pub);
	if (!err)
		return 0;
	h_channel_release(s->channel, &pub->message);
	*pub = (struct h_publication) {};
	return h__refuse(h_manager_dev(h_channel_manager(s->channel)), err,
			 "what has come is no publication");
}

int h_subscriber_release(struct h_subscriber *s, struct h_publication *pub)
{
	int err = h__dialled_release(s->channel, &pub->message);

	if (!err)
		*pub = (struct h_publication) {};
	return err;
}

struct h_channel *h_subscriber_channel(const struct h_subscriber *s)
{
	return s->channel;
}

/* ---- ending ---- */

int h_subscriber_close(struct h_subscriber *s)
{
	if (!s)
		return 0;
	/* All that it has said has arrived: the publisher has answered. */
	h_channel_close(s->channel, H_NOWAIT);
	free(s);
	return 0;
}
