/* SPDX-License-Identifier: GPL-2.0-only */
/* Of model.c: streams: a queue of bytes. */
#ifndef MODEL_STREAM_H
#define MODEL_STREAM_H

#include "model_pair.h"

static const char *stream_open(struct pair *p, uint64_t *random)
{
	static const uint32_t buffers[] = { 2, 4, 16, 64 };
	static const uint32_t sizes[] = { 128, 256, 1024, 4096 };
	struct world *w = p->world;
	struct h_seed seed;
	int err;

	p->stream.attr = (struct h_stream_attr) {
		.buffers = buffers[below(random, ARRAY_SIZE(buffers))],
		.buffer_size = sizes[below(random, ARRAY_SIZE(sizes))],
		.max_buffer_size = below(random, 2) ? 65536 : 1,
	};
	p->stream.copies = below(random, 2);
	p->stream.to_send = below(random, 200000);
	err = h_stream_receiver_create(w->to, &p->stream.attr, &p->stream.r);
	if (err)
		return complain("no receiver: %d", err);
	h_stream_receiver_seed(p->stream.r, &seed);
	err = h_stream_sender_create(w->from, &seed, &p->stream.s);
	return err ? complain("no sender: %d", err) : NULL;
}

static bool receiver_gone(struct pair *p)
{
	return __atomic_load_n(&p->stream.receiver_gone, __ATOMIC_SEQ_CST);
}

static const char *stream_send(struct pair *p, uint64_t *random, bool wait)
{
	size_t n = any_size(random), i;
	unsigned char *data = (void *)p->wired;
	bool wired = below(random, 2);
	ssize_t ret;

	if (p->world->threads && n > p->stream.to_send - p->stream.sent)
		n = p->stream.to_send - p->stream.sent;
	if (!wired)
		data = malloc(n);
	for (i = 0; i < n; i++)
		data[i] = byte_at(p->pattern, p->stream.sent + i);
	ret = h_stream_send(p->stream.s, data, n, any_timeout(random, wait));
	/* Taken is taken. */
	memset(data, 0xee, n);
	if (!wired)
		free(data);
	if (ret == -EPIPE && receiver_gone(p))
		return NULL;
	if (ret > (ssize_t)n || (ret <= 0 && n && !later(ret)))
		return complain("send of %zu: %zd", n, ret);
	if (ret > 0)
		p->stream.sent += (uint64_t)ret;
	if (below(random, 3))
		return NULL;
	ret = h_stream_flush(p->stream.s, any_timeout(random, wait));
	if (ret && !later(ret) && !(ret == -EPIPE && receiver_gone(p)))
		return complain("flush: %zd", ret);
	return NULL;
}

static const char *compare(struct pair *p, const unsigned char *data, size_t n)
{
	uint64_t at = p->stream.got;
	size_t i;

	for (i = 0; i < n; i++)
		if (data[i] != byte_at(p->pattern, at + i))
			return complain("byte %llu is wrong (%zu of %zu)",
					(unsigned long long)(at + i), i, n);
	p->stream.got += n;
	return NULL;
}

static const char *at_end(struct pair *p, ssize_t ret)
{
	if (ret != -ENODATA && ret != -ECONNRESET)
		return complain("receive: %zd", ret);
	if (ret != -ENODATA && !p->world->threads && !p->stream.sender_gone)
		return complain("lost the sender, who is there");
	p->stream.ended = true;
	return NULL;
}

static void release_some(struct pair *p, uint32_t n)
{
	struct stream *s = &p->stream;

	if (!n)
		return;
	h_stream_release(s->r, &s->held[n - 1]);
	memmove(s->held, s->held + n, (s->holds - n) * sizeof(s->held[0]));
	s->holds -= n;
}

static void stream_release(struct pair *p)
{
	release_some(p, p->stream.holds);
}

static const char *stream_receive(struct pair *p, uint64_t *random, bool wait)
{
	int64_t timeout = any_timeout(random, wait);
	struct stream *s = &p->stream;
	struct h_record *record;
	const char *wrong;
	ssize_t ret;

	if (s->ended)
		return NULL;
	if (s->copies) {
		unsigned char data[5000];

		ret = h_stream_receive_copy(s->r, data, 1 + below(random, sizeof(data)),
					    timeout);
		if (ret > 0)
			return compare(p, data, (size_t)ret);
		return later(ret) ? NULL : at_end(p, ret);
	}
	/* Nothing comes any more when all buffers are held. */
	if (s->holds && (s->holds == MOST_HELD ||
			 s->holds >= s->attr.buffers || !below(random, 3)))
		release_some(p, 1 + below(random, s->holds));
	record = &s->held[s->holds];
	ret = h_stream_receive(s->r, record, timeout);
	if (ret != 0)
		return later(ret) ? NULL : at_end(p, ret);
	wrong = compare(p, record->data, record->length);
	s->holds++;
	return wrong;
}

static const char *stream_flush(struct pair *p, bool wait)
{
	ssize_t ret = h_stream_flush(p->stream.s, wait ? ht_patience_ns() :
							 H_NOWAIT);

	if (!ret || (later(ret) && !wait) ||
	    (ret == -EPIPE && receiver_gone(p)))
		return NULL;
	return complain("flush of the last: %zd", ret);
}

static const char *stream_close(struct pair *p, bool wait)
{
	int ret = h_stream_sender_close(p->stream.s, wait ? ht_patience_ns() :
					     H_NOWAIT);

	p->stream.s = NULL;
	p->stream.sender_gone = !wait;
	if (!ret || (later(ret) && !wait) ||
	    (ret == -EPIPE && receiver_gone(p)))
		return NULL;
	return complain("close: %d", ret);
}

static void stream_drop_sender(struct pair *p)
{
	p->stream.sender_gone = true;
	h_stream_sender_close(p->stream.s, H_NOWAIT);
	p->stream.s = NULL;
}

static void stream_drop_receiver(struct pair *p)
{
	__atomic_store_n(&p->stream.receiver_gone, true, __ATOMIC_SEQ_CST);
	h_stream_receiver_destroy(p->stream.r);
	p->stream.r = NULL;
	p->stream.holds = 0;
}

static const char *receive_all(struct pair *p, uint64_t *random)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	const char *wrong = NULL;

	/* A flush at a time, for what is received makes room for it. */
	while (!wrong && p->stream.got < p->stream.sent && !p->stream.ended) {
		wrong = stream_flush(p, false);
		if (!wrong)
			wrong = stream_receive(p, random, false);
		h_manager_poll(p->world->from);
		if (ht_now_ns() > end)
			wrong = complain("%llu of %llu bytes arrived",
					 (unsigned long long)p->stream.got,
					 (unsigned long long)p->stream.sent);
	}
	return wrong;
}

/* On one manager the sender polls for the receiver while it waits. */
static const char *stream_finish(struct pair *p, uint64_t *random)
{
	bool wait = p->world->from == p->world->to;
	int64_t end = ht_now_ns() + ht_patience_ns();
	const char *wrong;

	if (!p->stream.s || !p->stream.r)
		return NULL;
	wrong = receive_all(p, random);
	/* The end needs a buffer as well. */
	stream_release(p);
	if (!wrong)
		wrong = stream_close(p, wait);
	while (!wrong && !p->stream.ended) {
		wrong = stream_receive(p, random, false);
		if (ht_now_ns() > end)
			wrong = "no end";
	}
	if (!wrong && p->stream.got != p->stream.sent)
		wrong = "more than was sent";
	return wrong;
}

static const char *stream_judge(struct pair *p)
{
	struct stream *s = &p->stream;

	if (s->got > s->sent)
		return "more than was sent";
	if (s->got < s->sent && !s->sender_gone && !s->receiver_gone)
		return complain("%llu of %llu bytes arrived",
				(unsigned long long)s->got,
				(unsigned long long)s->sent);
	return NULL;
}

static const char *stream_drop(struct pair *p)
{
	if (p->stream.s)
		stream_drop_sender(p);
	if (p->stream.r)
		stream_drop_receiver(p);
	return p->stream.got > p->stream.sent ? "more than was sent" : NULL;
}

static const char *stream_step(struct pair *p, uint64_t *random)
{
	uint32_t what = below(random, 1000);

	if (what < 500 && !p->stream.s)
		return NULL;
	if (what < 2)
		stream_drop_sender(p);
	else if (what < 500)
		return stream_send(p, random, false);
	else if (!p->stream.r)
		return NULL;
	else if (what < 502)
		stream_drop_receiver(p);
	else
		return stream_receive(p, random, false);
	return NULL;
}

static const char *stream_sending(struct pair *p, uint64_t *random)
{
	struct stream *s = &p->stream;
	/* One in eight is gone in the middle. */
	uint64_t until = below(random, 8) ? s->to_send : s->to_send / 2;
	const char *wrong = NULL;

	while (!wrong && s->sent < until && !receiver_gone(p))
		wrong = stream_send(p, random, true);
	if (!wrong && until == s->to_send && !receiver_gone(p))
		wrong = stream_flush(p, true);
	if (!wrong && until == s->to_send)
		return stream_close(p, true);
	stream_drop_sender(p);
	return wrong;
}

static const char *stream_receiving(struct pair *p, uint64_t *random)
{
	struct stream *s = &p->stream;
	uint64_t until = below(random, 8) ? UINT64_MAX : s->to_send / 3;
	const char *wrong = NULL;

	while (!wrong && !s->ended && s->got <= until)
		wrong = stream_receive(p, random, true);
	if (!s->ended)
		stream_drop_receiver(p);
	return wrong;
}

#endif /* MODEL_STREAM_H */
