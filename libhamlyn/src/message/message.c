// SPDX-License-Identifier: MIT
/*
 * Messages whose data the caller may change afterwards.
 *
 * So whoever sends waits until the NIC has read them. Where that may be for as long as another
 * host likes, and the caller has a deadline, it is a copy that is sent, and stays behind.
 */
#include "message/message.h"

static int64_t post(struct h_manager *m, const struct h_msg *msg,
		    int64_t deadline_ns)
{
	struct h_wait wait = { 0 };
	int64_t ret;
	int err;

	for (;;) {
		ret = h_send(m->terminus, msg);
		if (ret != -EAGAIN || deadline_ns == H_NOWAIT)
			return ret;
		err = h__wait_for_room(m, &wait, deadline_ns);
		if (err)
			return err;
	}
}

/* The NIC is at work on it: that the deadline passes changes nothing. */
static int post_and_wait(struct h_manager *m, const struct h_msg *msg,
			 int64_t deadline_ns)
{
	int64_t ret = post(m, msg, deadline_ns);

	if (ret >= 0)
		ret = h_send_wait(m->terminus, ret, H_FOREVER);
	return ret < 0 ? (int)ret : 0;
}

static int post_copy(struct h_manager *m, const struct h_msg *msg,
		     int64_t deadline_ns)
{
	struct h_msg copy = *msg;
	void *addr;
	int err;

	err = h_manager_alloc(m, msg->length, &addr);
	if (err)
		return err;
	memcpy(addr, msg->data, msg->length);
	copy.data = addr;
	err = post_and_wait(m, &copy, deadline_ns);
	h_manager_free(m, addr);
	return err;
}

/* -EAGAIN: not while as much as may stay behind does so. */
static int copy_make(struct h_manager *m, const struct h_msg *msg, struct h_copy **copy)
{
	int err = h__copy_begin(m, msg->length, copy);

	if (err)
		return err;
	err = h_manager_alloc(m, msg->length, &(*copy)->memory);
	if (err)
		h__copy_drop(m, *copy);
	else
		memcpy((*copy)->memory, msg->data, msg->length);
	return err;
}

static int copy_when_there_is_room(struct h_manager *m, const struct h_msg *msg,
				   int64_t deadline_ns, struct h_copy **copy)
{
	struct h_wait wait = { 0 };
	int err;

	while ((err = copy_make(m, msg, copy)) == -EAGAIN && deadline_ns != H_NOWAIT) {
		err = h__wait_for_room(m, &wait, deadline_ns);
		if (err)
			break;
	}
	return err;
}

/* What has not left when the time is over does so later, and nobody learns how. */
static int post_to_stay(struct h_manager *m, const struct h_msg *msg, int64_t deadline_ns)
{
	struct h_msg sent = *msg;
	struct h_copy *copy;
	int64_t handle;
	int ret;

	ret = copy_when_there_is_room(m, msg, deadline_ns, &copy);
	if (ret)
		return ret;
	sent.data = copy->memory;
	handle = post(m, &sent, deadline_ns);
	ret = handle < 0 ? (int)handle : h__wait_left(m, handle, deadline_ns);
	if (handle >= 0 && h__is_late(ret)) {
		h__copy_leave(m, copy, handle);
		return 0;
	}
	h__copy_drop(m, copy);
	return ret < 0 ? ret : 0;
}

static int post_long(struct h_manager *m, const struct h_msg *msg, int64_t deadline_ns)
{
	if (h__may_stay(m, deadline_ns))
		return post_to_stay(m, msg, deadline_ns);
	if (h__terminus_find_tag(m->terminus, msg->data, msg->length) < 0)
		return post_copy(m, msg, deadline_ns);
	return post_and_wait(m, msg, deadline_ns);
}

/* There is no way back from what its own NIC has begun to send, but to give it up. */
static int post_until(struct h_manager *m, const struct h_msg *msg, int64_t deadline_ns)
{
	int64_t now = h__now_ns(), before;
	int ret;

	before = h__send_until((deadline_ns > now ? deadline_ns : now) + H_BEYOND_NS);
	ret = post_long(m, msg, deadline_ns);
	h__send_until(before);
	return ret;
}

int h__post(struct h_manager *m, const struct h_msg *msg, int64_t deadline_ns)
{
	int64_t ret;

	h__manager_reaches(m, msg->ticket->host);
	if (msg->length <= h__msg_room(m->terminus, msg)) {
		ret = post(m, msg, deadline_ns);
		return ret < 0 ? (int)ret : 0;
	}
	/* Before it is copied. */
	if (msg->offset > msg->ticket->length ||
	    msg->length > msg->ticket->length - msg->offset)
		return -ERANGE;
	if (deadline_ns < 0 || msg->ticket->host == m->self_ticket.host ||
	    msg->length <= h__dev_whole(m->dev))
		return post_long(m, msg, deadline_ns);
	if (deadline_ns == H_NOWAIT && msg->length > h__dev_at_once(m->dev))
		return h__refuse(m->dev, -EMSGSIZE,
				 "%zu bytes to another host without waiting: at most %llu",
				 msg->length, (unsigned long long)h__dev_at_once(m->dev));
	return post_until(m, msg, deadline_ns);
}
