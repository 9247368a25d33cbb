// SPDX-License-Identifier: MIT
/*
 * What small sends to a stream collect in: two halves, so that one can be filled
 * while the NIC sends from the other.
 */
#include "stream/stream.h"

/* What each end point has from the beginning: the other end's buffers, if it has its way. */
#define LEAST	4096

static void stage_set(struct h_stream_sender *s, void *memory, uint32_t room)
{
	s->stage[0] = memory;
	s->stage[1] = s->stage[0] + room;
	s->stage_room = room;
}

/*
 * Whatever others take of the device's memory, or of the terminus' tags, later: what was
 * made can send.
 */
int h__stage_reserve(struct h_stream_sender *s)
{
	void *memory;
	int err = h_manager_alloc(s->r.manager, 2 * (size_t)LEAST, &memory);

	if (!err)
		stage_set(s, memory, LEAST);
	return err;
}

/* Both halves are one piece of memory. */
static void stage_free(struct h_stream_sender *s)
{
	h_manager_free(s->r.manager, s->stage[0]);
	h__budget_give(s->r.manager, s->stage_grown);
	s->stage[0] = NULL;
	s->stage[1] = NULL;
	s->stage_room = 0;
	s->stage_size = 0;
	h__write_once(&s->stage_grown, 0);
}

/* Nobody waits for what the NIC was given as a whole, but it may have been refused already. */
static int wait_left(struct h_stream_sender *s, int i, int64_t deadline_ns)
{
	struct h_manager *m = s->r.manager;
	int ret = h_send_done(m->terminus, s->stage_handle[i]);

	return ret || s->stage_short[i] ? ret : h__wait_left(m, s->stage_handle[i], deadline_ns);
}

/* 0; -EAGAIN, -ETIMEDOUT: it has not left yet; -EPIPE. */
static int stage_wait(struct h_stream_sender *s, int i, int64_t deadline_ns)
{
	int ret = s->stage_handle[i] < 0 ? 0 : wait_left(s, i, deadline_ns);

	if (h__is_late(ret))
		return ret;
	s->stage_handle[i] = -1;
	return ret < 0 ? -EPIPE : 0;
}

/*
 * The NIC reads it still, for as long as another host likes: it stays behind, and another one is
 * filled, so that nobody is refused while the receiver has buffers.
 */
static int renew(struct h_stream_sender *s)
{
	struct h_manager *m = s->r.manager;
	size_t bytes = 2 * (size_t)s->stage_room;
	struct h_copy *old;
	void *memory;
	int err;

	if (h__dev_changing(m->dev))
		return -EAGAIN;
	err = h__copy_begin(m, bytes, &old);
	if (err)
		return err;
	err = h__wish(m, bytes, s->stage_grown, &memory);
	if (err) {
		h__copy_drop(m, old);
		return err;
	}
	old->memory = s->stage[0];
	/* The other half was sent after the one that comes next. */
	h__copy_leave(m, old, s->stage_handle[!s->which]);
	stage_set(s, memory, s->stage_room);
	s->stage_handle[0] = -1;
	s->stage_handle[1] = -1;
	return 0;
}

/* The half that comes next did not get ready, for @err: if it is late another one may do. */
static int go_on(struct h_stream_sender *s, int err)
{
	if (!h__is_late(err))
		return err;
	if (!renew(s))
		return 0;
	/* The caller is refused, and called back when that has left. */
	h__write_once(&s->held_by, s->stage_handle[s->which]);
	return err;
}

/* Has it left, without an error that somebody is to be told of? */
static bool has_left(struct h_stream_sender *s, int i)
{
	if (s->stage_handle[i] >= 0 &&
	    h_send_wait(s->r.manager->terminus, s->stage_handle[i], H_NOWAIT) < 0)
		return false;
	s->stage_handle[i] = -1;
	return true;
}

void h__stage_end(struct h_stream_sender *s)
{
	int i;

	/* With what has not left where others may take nothing, the manager ends. */
	for (i = 0; i < 2; i++)
		if (s->stage_handle[i] >= 0)
			h__wait_left(s->r.manager, s->stage_handle[i], H_NOWAIT);
	stage_free(s);
}

/* Larger again as soon as there is something long to send. */
bool h__stage_shed(struct h_stream_sender *s)
{
	void *memory;

	if (!s->stage_grown)
		return true;
	if (s->staged || !has_left(s, 0) || !has_left(s, 1) ||
	    h__wish(s->r.manager, 2 * (size_t)LEAST, false, &memory))
		return false;
	stage_free(s);
	stage_set(s, memory, LEAST);
	s->stage_for = 0;
	return true;
}

static int try_to_grow(struct h_stream_sender *s, uint32_t size)
{
	struct h_manager *m = s->r.manager;
	size_t bytes = 2 * (size_t)size;
	void *memory;
	int err;

	if (!h__budget_take(m, bytes))
		return -ENOSPC;
	err = h__wish(m, bytes, true, &memory);
	if (err) {
		h__budget_give(m, bytes);
		return err;
	}
	stage_free(s);
	stage_set(s, memory, size);
	h__write_once(&s->stage_grown, bytes);
	return 0;
}

/*
 * The old one stays until there is a new one. What could not be had is not asked for again
 * until the buffers have grown, for each try is a call of the device.
 */
static void stage_grow(struct h_stream_sender *s)
{
	uint32_t size = s->most;
	int err;

	while ((err = try_to_grow(s, size)) && h__is_too_much(err) && size / 2 > s->stage_room)
		size /= 2;
	if (!err || h__is_too_much(err))
		s->stage_for = s->buffer;
}

/* No more than a record, which is smaller when buffers have shrunk. */
static uint32_t stage_size(const struct h_stream_sender *s)
{
	return s->stage_room < s->most ? s->stage_room : s->most;
}

/* The stage is empty: make it as large as @want, if that can be had and a record can be. */
int h__stage_begin(struct h_stream_sender *s, size_t want, int64_t deadline_ns)
{
	int err;

	err = stage_wait(s, s->which, deadline_ns);
	if (err)
		err = go_on(s, err);
	if (err)
		return err;
	s->stage_size = stage_size(s);
	if (want <= s->stage_size || s->stage_for == s->buffer ||
	    s->stage_size == s->most)
		return 0;
	/* Memory for it may have to be made known to the device: what there is will do. */
	if (h__dev_changing(s->r.manager->dev))
		return 0;
	err = stage_wait(s, !s->which, deadline_ns);
	if (err)
		return h__is_late(err) ? 0 : err;
	stage_grow(s);
	s->stage_size = stage_size(s);
	return 0;
}

int h__stage_flush(struct h_stream_sender *s, uint64_t more, uint64_t flags,
		   int64_t deadline_ns)
{
	int64_t handle;

	if (!s->staged)
		return 0;
	if (s->flushing)
		return -EAGAIN;
	s->flushing = true;
	handle = h__stream_post(s, s->stage[s->which], s->staged, more, flags,
				deadline_ns);
	s->flushing = false;
	if (handle < 0)
		return (int)handle;
	s->stage_handle[s->which] = handle;
	s->stage_short[s->which] = s->staged <= s->at_once;
	s->which = !s->which;
	s->staged = 0;
	return 0;
}

size_t h__stage_put(struct h_stream_sender *s, const void *data, size_t length)
{
	size_t room = s->stage_size - s->staged;
	size_t n = length < room ? length : room;

	memcpy(s->stage[s->which] + s->staged, data, n);
	s->staged += (uint32_t)n;
	return n;
}

/* The half is still whose it was: nothing was sent from it. */
void h__stage_drop(struct h_stream_sender *s)
{
	s->staged = 0;
}
