// SPDX-License-Identifier: MIT
/*
 * What small sends to a stream collect in: two halves, so that one can be filled
 * while the NIC sends from the other.
 */
#include "stream.h"

/* Less would be a record each for too few bytes. */
#define LEAST	4096

/* Both halves are one piece of memory. */
void h__stage_free(struct h_stream_sender *s)
{
	h_manager_free(s->r.manager, s->stage[0]);
	s->stage[0] = NULL;
	s->stage[1] = NULL;
	s->stage_size = 0;
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

/* With none yet a smaller one will do: the other end has chosen how large they are. */
static int stage_alloc(struct h_stream_sender *s, uint32_t *size, void **memory)
{
	int err;

	*size = s->buffer;
	while ((err = h_manager_alloc(s->r.manager, 2 * (size_t)*size, memory)) &&
	       h__is_too_much(err) && !s->stage_size && *size > LEAST)
		*size /= 2;
	return err;
}

/*
 * The old one stays until there is a new one: it may be the last memory there is. What
 * could not be had is not asked for again until the buffers have grown, for each try is
 * a call of the device.
 */
static int stage_grow(struct h_stream_sender *s)
{
	uint32_t size;
	void *memory;
	int err;

	err = stage_alloc(s, &size, &memory);
	if (err && !s->stage_size)
		return err;
	if (!err || h__is_too_much(err))
		s->stage_for = s->buffer;
	if (err)
		return 0;
	h__stage_free(s);
	s->stage[0] = memory;
	s->stage[1] = s->stage[0] + size;
	s->stage_size = size;
	return 0;
}

/* The stage is empty: make it as large as the receiver's buffers. */
int h__stage_begin(struct h_stream_sender *s, int64_t deadline_ns)
{
	int err;

	err = h__stage_wait(s, s->which);
	if (err || s->stage_for == s->buffer)
		return err;
	/* Memory for it may have to be made known to the device: what there is will do. */
	if (h__dev_changing(s->r.manager->dev)) {
		if (s->stage_size)
			return 0;
		if (deadline_ns == H_NOWAIT)
			return -EAGAIN;
	}
	err = h__stage_wait(s, !s->which);
	return err ? err : stage_grow(s);
}

int h__stage_flush(struct h_stream_sender *s, uint64_t more,
		   int64_t deadline_ns)
{
	int64_t handle;

	if (!s->staged)
		return 0;
	if (s->flushing)
		return -EAGAIN;
	s->flushing = true;
	handle = h__stream_post(s, s->stage[s->which], s->staged, more, 0,
				deadline_ns);
	s->flushing = false;
	if (handle < 0)
		return (int)handle;
	s->stage_handle[s->which] = handle;
	s->which = !s->which;
	s->staged = 0;
	return 0;
}

/* Buffers never become smaller. */
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
