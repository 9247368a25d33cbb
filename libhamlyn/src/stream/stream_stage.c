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
void h__stage_free(struct h_stream_sender *s)
{
	h_manager_free(s->r.manager, s->stage[0]);
	h__budget_give(s->r.manager, s->stage_grown);
	s->stage[0] = NULL;
	s->stage[1] = NULL;
	s->stage_room = 0;
	s->stage_size = 0;
	h__write_once(&s->stage_grown, 0);
}

int h__stage_wait(struct h_stream_sender *s, int i)
{
	int ret = 0;

	if (s->stage_handle[i] >= 0)
		ret = h_send_wait(s->r.manager->terminus, s->stage_handle[i],
				  H_FOREVER);
	s->stage_handle[i] = -1;
	return ret < 0 ? -EPIPE : 0;
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

/* Larger again as soon as there is something long to send. */
bool h__stage_shed(struct h_stream_sender *s)
{
	void *memory;

	if (!s->stage_grown)
		return true;
	if (s->staged || !has_left(s, 0) || !has_left(s, 1) ||
	    h__wish(s->r.manager, 2 * (size_t)LEAST, false, &memory))
		return false;
	h__stage_free(s);
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
	h__stage_free(s);
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
int h__stage_begin(struct h_stream_sender *s, size_t want)
{
	int err;

	err = h__stage_wait(s, s->which);
	if (err)
		return err;
	s->stage_size = stage_size(s);
	if (want <= s->stage_size || s->stage_for == s->buffer ||
	    s->stage_size == s->most)
		return 0;
	/* Memory for it may have to be made known to the device: what there is will do. */
	if (h__dev_changing(s->r.manager->dev))
		return 0;
	err = h__stage_wait(s, !s->which);
	if (err)
		return err;
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
