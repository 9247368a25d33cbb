/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Of model.c: the upper layer's protocols, each beside a model that says what
 * is received. A row of the table at the end is a protocol.
 */
#ifndef MODEL_H
#define MODEL_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <hamlyn/channel.h>
#include <hamlyn/datagram.h>
#include <hamlyn/group.h>
#include <hamlyn/stream.h>
#include <hamlyn/tagged.h>

#include "hamlyn_test.h"

#define MOST_PAIRS	5
#define MOST_HELD	64
#define LARGEST		50000
#define PLACES		32	/* of a tagged receiver */
#define MOST_SHARES	40

struct stream {
	struct h_stream_attr attr;
	struct h_stream_sender *s;
	struct h_stream_receiver *r;
	uint64_t sent;
	uint64_t got;
	uint64_t to_send;	/* threads: so many in all */
	bool sender_gone;	/* not by a close that waited */
	bool receiver_gone;	/* atomic */
	bool ended;
	bool copies;		/* receives by h_stream_read() */
	struct h_record held[MOST_HELD];
	uint32_t holds;
};

/* One end of a channel. */
struct end {
	struct h_channel *channel;
	uint64_t sent;		/* messages; the pattern tells all about them */
	uint64_t got;
	bool shut;
	bool ended;		/* nothing more is received: */
	bool clean;		/* it was the end, nothing is lost */
	bool leaves;		/* atomic: it is being closed */
	bool dropped;		/* atomic: without an end */
	struct h_message held[MOST_HELD];
	uint32_t holds;
};

enum phase { READY, HERE, HELD };

struct datagram {
	struct h_datagram_receiver *r;
	struct h_datagram_receiver *replies;
	struct h_datagram_address to;
	struct h_datagram_address from;
	size_t length;
	enum phase phase;
	bool told;		/* that one is there */
	uint64_t number;	/* of the last one that was sent */
	struct h_datagram here;	/* what is, or is to be, received */
	uint64_t of_here;	/* its number */
	uint64_t received;
	uint64_t dropped;
	uint32_t requests;	/* threads */
};

struct write {
	bool there;		/* somebody has written, and nobody asked */
	uint64_t tag;
	uint32_t length;
};

struct tagged {
	struct h_tagged_receiver *r;
	struct h_tagged_address to;
	struct write place[PLACES];
	size_t size;		/* of a place */
	uint64_t writes;
	/* threads */
	uint32_t rounds;
	uint32_t round;		/* atomic */
};

struct group {
	struct h_group *g;
	size_t length;
	unsigned char *want;
	bool whole;		/* of the buffer nothing is known yet */
	struct h_share share[MOST_SHARES];
	bool done[MOST_SHARES];
	uint32_t shares;
	uint64_t writes;
	/* threads */
	uint32_t rounds;
	uint32_t round;		/* atomic */
};

/* Two ends, and what is known of them. */
struct pair {
	const struct protocol *protocol;
	struct world *world;
	uint64_t pattern;	/* of the bytes */
	char *wired;		/* of h_manager_alloc(), where one sends from */
	/* threads */
	uint64_t random[2];
	const char *wrong[2];
	union {
		struct stream stream;
		struct {
			struct end end[2];
			uint32_t buffers;
			uint64_t messages;	/* threads */
		};
		struct datagram datagram;
		struct tagged tagged;
		struct group group;
	};
};

/* A complaint, or NULL. */
struct protocol {
	const char *name;
	const char *(*open)(struct pair *p, uint64_t *random);
	/* One thread: one thing, without waiting. */
	const char *(*step)(struct pair *p, uint64_t *random);
	/* And all that was sent is received. */
	const char *(*finish)(struct pair *p, uint64_t *random);
	/* Two threads: one is the sender's, or that of the first end. */
	const char *(*talk[2])(struct pair *p, uint64_t *random);
	/* And afterwards. */
	const char *(*judge)(struct pair *p);
	/* At any time. */
	const char *(*close)(struct pair *p);
};

struct world {
	struct h_dev *dev[2];
	struct h_manager *to;
	struct h_manager *from;
	size_t packet;
	struct pair pair[MOST_PAIRS];
	uint32_t pairs;
	bool threads;
	uint32_t stop;		/* atomic */
};

static uint32_t below(uint64_t *random, uint32_t n)
{
	return (uint32_t)(ht_random(random) >> 32) % n;
}

/* Mostly small, sometimes on an edge, sometimes large. */
static size_t any_size(uint64_t *random)
{
	static const size_t edges[] = { 1, 127, 128, 129, 1023, 1024, 1025,
					4095, 4096, 4097, 16384, LARGEST };

	switch (below(random, 8)) {
	case 0:
		return edges[below(random, ARRAY_SIZE(edges))];
	case 1:
		return 1 + below(random, LARGEST);
	case 2:
	case 3:
		return 1 + below(random, 3000);
	default:
		return 1 + below(random, 100);
	}
}

static const char *complain(const char *format, ...)
{
	static _Thread_local char text[200];
	char whole[sizeof(text)] = "";
	va_list args;

	/* One may be said within another. */
	va_start(args, format);
	vsnprintf(whole, sizeof(whole), format, args);
	va_end(args);
	return memcpy(text, whole, sizeof(text));
}

/* The byte at a place of a stream, cheap for long ones. */
static unsigned char byte_at(uint64_t pattern, uint64_t at)
{
	return (unsigned char)((at * 0x9e3779b97f4a7c15ULL + pattern) >> 56);
}

static int64_t any_timeout(uint64_t *random, bool wait)
{
	if (!wait)
		return H_NOWAIT;
	switch (below(random, 3)) {
	case 0:
		return H_NOWAIT;
	case 1:
		return 1 + below(random, 1000000);
	default:
		return ht_patience_ns();
	}
}

static bool later(ssize_t ret)
{
	return ret == -EAGAIN || ret == -ETIMEDOUT;
}

static bool happened(const bool *what)
{
	return __atomic_load_n(what, __ATOMIC_SEQ_CST);
}

static void happens(bool *what)
{
	__atomic_store_n(what, true, __ATOMIC_SEQ_CST);
}

static void fill(unsigned char *data, size_t n, uint64_t pattern)
{
	size_t i;

	for (i = 0; i < n; i++)
		data[i] = byte_at(pattern, i);
}

static const char *check(const void *data, size_t n, uint64_t pattern)
{
	const unsigned char *byte = data;
	size_t i;

	for (i = 0; i < n; i++)
		if (byte[i] != byte_at(pattern, i))
			return complain("byte %zu of %zu is wrong", i, n);
	return NULL;
}

/* Of what is told apart by its number. */
static uint64_t pattern_of(const struct pair *p, uint64_t number)
{
	uint64_t random = p->pattern + number;

	return ht_random(&random);
}

/* Room for what is to be sent: some goes out without a copy. */
static unsigned char *place_for(struct pair *p, size_t n, bool wired)
{
	return wired ? (unsigned char *)p->wired : malloc(n + 1);
}

/* Taken is taken: afterwards it can be changed. */
static void done_with(struct pair *p, unsigned char *data, size_t n)
{
	memset(data, 0xee, n);
	if (data != (unsigned char *)p->wired)
		free(data);
}

static size_t at_most(size_t n, size_t most)
{
	return n < most ? n : most;
}

/* What was sent to one who is gone would pass for a guess of his key. */
static void settle(struct pair *p)
{
	h_manager_drain(p->world->from, ht_patience_ns());
}

/* The other thread goes on, or fails. */
static bool wait_for_round(const uint32_t *round, uint32_t wanted)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (__atomic_load_n(round, __ATOMIC_SEQ_CST) != wanted)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

/* ---- streams: a queue of bytes ---- */

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
	if (ret && ret != -ECONNRESET)
		return complain("receive: %zd", ret);
	if (ret && !p->world->threads && !p->stream.sender_gone)
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

		ret = h_stream_read(s->r, data, 1 + below(random, sizeof(data)),
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
	if (ret != 1)
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

/* ---- channels: a queue of messages each way ---- */

/* Both sides know how long a message is. */
static size_t message_length(const struct pair *p, int way, uint64_t number)
{
	uint64_t random = pattern_of(p, 2 * number + way);

	return below(&random, 16) ? any_size(&random) : 0;
}

static const char *channel_open(struct pair *p, uint64_t *random)
{
	static const uint32_t buffers[] = { 2, 4, 16, 64 };
	static const uint32_t sizes[] = { 128, 256, 1024, 4096 };
	struct h_channel_attr attr = {
		.max_message = LARGEST,
		.connect.stream = {
			.buffers = buffers[below(random, 4)],
			.buffer_size = sizes[below(random, 4)],
			.max_buffer_size = below(random, 2) ? 65536 : 1,
		},
	};
	int err;

	p->buffers = attr.connect.stream.buffers;
	p->messages = below(random, 40);
	err = h_channel_pair(p->world->from, p->world->to, &attr,
			     &p->end[0].channel, &p->end[1].channel);
	return err ? complain("no channel: %d", err) : NULL;
}

static const char *message_send(struct pair *p, int me, uint64_t *random,
				int64_t timeout)
{
	struct end *end = &p->end[me];
	size_t n = message_length(p, me, end->sent);
	/* It is of the first end's manager. */
	unsigned char *data = place_for(p, n, !me && below(random, 2));
	size_t head = below(random, (uint32_t)n + 1);
	struct iovec iov[2] = {
		{ .iov_base = data, .iov_len = head },
		{ .iov_base = data + head, .iov_len = n - head },
	};
	int ret;

	fill(data, n, pattern_of(p, 2 * end->sent + me));
	if (below(random, 3))
		ret = h_channel_send(end->channel, data, n, timeout);
	else
		ret = h_channel_sendv(end->channel, iov, 2, timeout);
	done_with(p, data, n);
	if (!ret) {
		end->sent++;
	} else if (ret == -EPIPE &&
		   (end->shut || happened(&p->end[!me].leaves))) {
		end->shut = true;
	} else if (!later(ret)) {
		return complain("send of %zu: %d", n, ret);
	} else if (!below(random, 4) &&
		   h_channel_send(end->channel, NULL, LARGEST + 1, timeout) !=
							-EMSGSIZE) {
		return "a message that is too long";
	}
	return NULL;
}

static void messages_release(struct end *end, uint64_t *random, uint32_t n)
{
	while (n--) {
		uint32_t i = random ? below(random, end->holds) :
				      end->holds - 1;

		h_channel_release(end->channel, &end->held[i]);
		end->held[i] = end->held[--end->holds];
	}
}

static const char *message_compare(struct pair *p, int me, const void *data,
				   size_t n)
{
	uint64_t number = p->end[me].got++;
	size_t length = message_length(p, !me, number);

	if (n != length)
		return complain("message %llu has %zu bytes, not %zu",
				(unsigned long long)number, n, length);
	return check(data, n, pattern_of(p, 2 * number + !me));
}

static const char *channel_end(struct pair *p, int me, ssize_t ret)
{
	struct end *end = &p->end[me];

	if (ret && (ret != -ECONNRESET || !happened(&p->end[!me].dropped)))
		return complain("receive: %zd", ret);
	end->ended = true;
	end->clean = !ret;
	return NULL;
}

static const char *message_copy(struct pair *p, int me, uint64_t *random,
				int64_t timeout)
{
	struct end *end = &p->end[me];
	size_t length = message_length(p, !me, end->got);
	size_t room = below(random, 4) ? length : below(random, LARGEST);
	unsigned char *data = malloc(room + 1);
	const char *wrong = NULL;
	ssize_t ret;

	ret = h_channel_recv(end->channel, data, room, timeout);
	if (ret >= 0)
		wrong = message_compare(p, me, data, (size_t)ret);
	else if (ret == -ENODATA || !later(ret))
		wrong = ret == -EMSGSIZE && room < length ? NULL :
			channel_end(p, me, ret == -ENODATA ? 0 : ret);
	free(data);
	return wrong;
}

static const char *message_receive(struct pair *p, int me, uint64_t *random,
				   int64_t timeout)
{
	struct end *end = &p->end[me];
	struct h_message *message;
	const char *wrong;
	int ret;

	if (end->ended)
		return NULL;
	/* Nothing comes any more when all buffers are held. */
	if (end->holds && (end->holds == MOST_HELD ||
			   end->holds >= p->buffers || !below(random, 3)))
		messages_release(end, random, 1 + below(random, end->holds));
	if (!below(random, 3))
		return message_copy(p, me, random, timeout);
	message = &end->held[end->holds];
	ret = h_channel_receive(end->channel, message, timeout);
	if (ret != 1)
		return later(ret) ? NULL : channel_end(p, me, ret);
	wrong = message_compare(p, me, message->data, message->length);
	end->holds++;
	return wrong;
}

static const char *message_shutdown(struct pair *p, int me, int64_t timeout)
{
	int ret = h_channel_shutdown(p->end[me].channel, timeout);

	if (later(ret))
		return NULL;
	if (ret && !(ret == -EPIPE && happened(&p->end[!me].leaves)))
		return complain("shutdown: %d", ret);
	p->end[me].shut = true;
	return NULL;
}

static const char *end_close(struct pair *p, int me, bool clean)
{
	struct end *end = &p->end[me];
	int ret;

	messages_release(end, NULL, end->holds);
	if (!clean)
		happens(&end->dropped);
	happens(&end->leaves);
	ret = h_channel_close(end->channel,
			      clean ? ht_patience_ns() : H_NOWAIT);
	end->channel = NULL;
	if (!ret || (!clean && later(ret)) ||
	    (ret == -EPIPE && happened(&p->end[!me].dropped)))
		return NULL;
	return complain("close: %d", ret);
}

static const char *channel_close(struct pair *p)
{
	const char *wrong[2] = { NULL, NULL };
	int i;

	for (i = 0; i < 2; i++)
		if (p->end[i].channel)
			wrong[i] = end_close(p, i, false);
	return wrong[0] ? wrong[0] : wrong[1];
}

static const char *channel_judge(struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		const struct end *to = &p->end[i], *from = &p->end[!i];

		if (to->got > from->sent)
			return "more than was sent";
		if (to->got < from->sent && (to->clean ||
					     (!to->dropped && !from->dropped)))
			return complain("%llu of %llu messages arrived",
					(unsigned long long)to->got,
					(unsigned long long)from->sent);
	}
	return NULL;
}

static const char *channel_step(struct pair *p, uint64_t *random)
{
	int me = (int)below(random, 2);
	uint32_t what = below(random, 1000);

	if (!p->end[me].channel)
		return NULL;
	if (what < 3)
		return end_close(p, me, false);
	if (what < 450)
		return message_send(p, me, random, H_NOWAIT);
	return message_receive(p, me, random, H_NOWAIT);
}

static const char *channel_finish(struct pair *p, uint64_t *random)
{
	int64_t until = ht_now_ns() + ht_patience_ns();
	const char *wrong = NULL;
	int i;

	if (!p->end[0].channel || !p->end[1].channel)
		return channel_judge(p);
	while (!wrong && !(p->end[0].ended && p->end[1].ended)) {
		for (i = 0; i < 2 && !wrong; i++) {
			wrong = message_receive(p, i, random, H_NOWAIT);
			/* The end needs a buffer as well. */
			messages_release(&p->end[!i], random, p->end[!i].holds);
			if (!wrong && p->end[!i].got == p->end[i].sent &&
			    !p->end[i].shut)
				wrong = message_shutdown(p, i, H_NOWAIT);
		}
		/* Who receives no more may still have a message under way. */
		h_manager_dispatch(p->world->from);
		h_manager_dispatch(p->world->to);
		if (ht_now_ns() > until)
			wrong = complain("%llu of %llu, %llu of %llu messages",
					 (unsigned long long)p->end[1].got,
					 (unsigned long long)p->end[0].sent,
					 (unsigned long long)p->end[0].got,
					 (unsigned long long)p->end[1].sent);
	}
	if (!wrong)
		wrong = channel_judge(p);
	return wrong ? wrong : channel_close(p);
}

static int64_t short_timeout(uint64_t *random)
{
	return below(random, 2) ? H_NOWAIT : 1 + below(random, 1000000);
}

/* Whoever sends receives as well, or both would wait for each other. */
static const char *channel_talk(struct pair *p, int me, uint64_t *random)
{
	/* One in eight is gone in the middle. */
	bool drops = !below(random, 8);
	uint64_t messages = drops ? p->messages / 2 : p->messages;
	int64_t until = ht_now_ns() + 2 * ht_patience_ns();
	struct end *end = &p->end[me];
	const char *wrong = NULL;

	while (!wrong && !(end->ended && end->shut) &&
	       !(drops && end->sent == messages)) {
		if (!end->shut && end->sent < messages)
			wrong = message_send(p, me, random,
					     short_timeout(random));
		else if (!end->shut)
			wrong = message_shutdown(p, me, short_timeout(random));
		if (!wrong)
			wrong = message_receive(p, me, random,
						short_timeout(random));
		if (ht_now_ns() > until)
			wrong = "no end";
	}
	return wrong ? wrong : end_close(p, me, !drops);
}

static const char *channel_talk_a(struct pair *p, uint64_t *random)
{
	return channel_talk(p, 0, random);
}

static const char *channel_talk_b(struct pair *p, uint64_t *random)
{
	return channel_talk(p, 1, random);
}

/* ---- datagrams: one at a time, others are dropped ---- */

static void datagram_told(struct h_datagram_receiver *r, void *arg)
{
	struct datagram *d = arg;

	(void)r;
	d->told = true;
}

static const char *datagram_open(struct pair *p, uint64_t *random)
{
	struct datagram *d = &p->datagram;
	struct h_datagram_attr attr = { .length = any_size(random) };
	struct h_seed seed;
	int err;

	d->length = attr.length;
	d->requests = below(random, 100);
	err = h_datagram_receiver_create(p->world->to, &attr, &d->r);
	if (!err)
		err = h_datagram_receiver_create(p->world->from, &attr,
						 &d->replies);
	if (err)
		return complain("no receiver: %d", err);
	h_datagram_receiver_seed(d->r, &seed);
	err = h_datagram_resolve(&seed, &d->to);
	if (err)
		return complain("no address: %d", err);
	h_datagram_receiver_address(d->replies, &d->from);
	if (!p->world->threads)
		h_datagram_receiver_on_ready(d->r, datagram_told, d);
	return NULL;
}

/* What happens to a datagram has happened before anything else does. */
static const char *datagram_outcome(struct pair *p)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct datagram *d = &p->datagram;
	struct h_datagram_stats stats;

	while (ht_now_ns() < end) {
		h_manager_dispatch(p->world->to);
		if (h_datagram_receiver_stats(d->r, &stats))
			return "no counters";
		if (stats.dropped > d->dropped || stats.malformed)
			return "dropped, but it was ready";
		if (d->phase == READY ? d->told : stats.dropped == d->dropped)
			return NULL;
	}
	return d->phase == READY ? "it did not arrive" : "it was not dropped";
}

static const char *datagram_send(struct pair *p, uint64_t *random)
{
	struct datagram *d = &p->datagram;
	size_t at = below(random, (uint32_t)d->length + 1);
	size_t n = below(random, 8) ?
		   at_most(any_size(random), d->length - at) : 0;
	bool reply = below(random, 2);
	uint64_t number = d->number + 1;
	unsigned char *data;
	const char *wrong;
	int ret;

	/* Dropped are packets: so it is known how many. */
	if (d->phase != READY)
		n = at_most(n, p->world->packet);
	data = place_for(p, n, below(random, 2));
	fill(data, n, pattern_of(p, number));
	ret = h_datagram_send(p->world->from, &d->to, at, data, n,
			      reply ? &d->from : NULL, H_NOWAIT);
	done_with(p, data, n);
	if (ret)
		return later(ret) ? NULL : complain("send of %zu: %d", n, ret);
	d->number = number;
	if (d->phase != READY)
		d->dropped++;
	else
		d->told = false;
	wrong = datagram_outcome(p);
	if (wrong || d->phase != READY)
		return wrong;
	d->phase = HERE;
	d->of_here = number;
	d->here = (struct h_datagram) {
		.offset = at, .length = n, .has_reply = reply,
	};
	return NULL;
}

static const char *datagram_check(struct pair *p)
{
	struct datagram *d = &p->datagram;

	return check(d->here.data, d->here.length, pattern_of(p, d->of_here));
}

static const char *datagram_receive(struct pair *p)
{
	struct datagram *d = &p->datagram;
	struct h_datagram got;
	int ret;

	ret = h_datagram_receive(d->r, &got, H_NOWAIT);
	if (ret != (d->phase == HERE ? 0 : -EAGAIN))
		return complain("receive: %d", ret);
	if (ret)
		return NULL;
	if (got.offset != d->here.offset || got.length != d->here.length ||
	    got.has_reply != d->here.has_reply)
		return "another one was sent";
	if (got.has_reply && (got.reply.ticket.key != d->from.ticket.key ||
			      got.reply.ticket.length != d->from.ticket.length))
		return "an answer would go elsewhere";
	d->here.data = got.data;
	d->phase = HELD;
	d->received++;
	return datagram_check(p);
}

static const char *datagram_release(struct pair *p)
{
	struct datagram *d = &p->datagram;
	const char *wrong = NULL;

	/* What came in the meantime is not in there. */
	if (d->phase == HELD) {
		wrong = datagram_check(p);
		d->phase = READY;
	}
	h_datagram_release(d->r);
	return wrong;
}

static const char *datagram_rekey(struct pair *p)
{
	struct datagram *d = &p->datagram;
	struct h_seed seed;
	int err;

	/* What is there keeps the old key: others do not count as dropped. */
	if (d->phase != READY)
		return NULL;
	err = h_datagram_rekey(d->r, &seed);
	if (!err)
		err = h_datagram_resolve(&seed, &d->to);
	return err ? complain("rekey: %d", err) : NULL;
}

static const char *datagram_step(struct pair *p, uint64_t *random)
{
	uint32_t what = below(random, 100);

	if (what < 50)
		return datagram_send(p, random);
	if (what < 75)
		return datagram_receive(p);
	if (what < 98)
		return datagram_release(p);
	return datagram_rekey(p);
}

static const char *datagram_finish(struct pair *p, uint64_t *random)
{
	struct datagram *d = &p->datagram;
	struct h_datagram_stats stats;
	const char *wrong;

	(void)random;
	wrong = datagram_receive(p);
	if (!wrong)
		wrong = datagram_release(p);
	if (!wrong)
		wrong = datagram_receive(p);
	if (wrong)
		return wrong;
	if (h_datagram_receiver_stats(d->r, &stats))
		return "no counters";
	if (stats.received != d->received || stats.dropped != d->dropped ||
	    stats.malformed)
		return "wrong counters";
	return NULL;
}

/* Whoever asks waits for the answer, and so nothing is dropped. */
static const char *datagram_ask(struct pair *p, uint64_t *random)
{
	struct datagram *d = &p->datagram;
	struct h_datagram answer;
	const char *wrong = NULL;
	uint32_t i;
	int ret;

	for (i = 0; i < d->requests && !wrong; i++) {
		size_t n = 1 + below(random, (uint32_t)d->length);
		unsigned char *data = place_for(p, n, below(random, 2));

		fill(data, n, pattern_of(p, 2 * i));
		ret = h_datagram_request(d->replies, &d->to, data, n, &answer,
					 ht_patience_ns());
		done_with(p, data, n);
		if (ret)
			return complain("request %u: %d", i, ret);
		if (answer.length != n || answer.offset || answer.has_reply)
			wrong = "another answer";
		else
			wrong = check(answer.data, n, pattern_of(p, 2 * i + 1));
		h_datagram_release(d->replies);
	}
	if (wrong)
		return wrong;
	ret = h_datagram_send(p->world->from, &d->to, 0, NULL, 0, NULL,
			      ht_patience_ns());
	return ret ? complain("the last one: %d", ret) : NULL;
}

static const char *datagram_answer(struct pair *p, uint64_t *random)
{
	struct datagram *d = &p->datagram;
	unsigned char *data = malloc(d->length);
	const char *wrong = NULL;
	struct h_datagram got;
	uint32_t i;
	int ret;

	(void)random;
	for (i = 0; i <= d->requests && !wrong; i++) {
		ret = h_datagram_receive(d->r, &got, ht_patience_ns());
		if (ret)
			wrong = complain("request %u: %d", i, ret);
		else if (got.has_reply != (i < d->requests))
			wrong = "too many or too few";
		else
			wrong = check(got.data, got.length,
				      pattern_of(p, 2 * i));
		if (wrong)
			break;
		h_datagram_release(d->r);
		if (!got.has_reply)
			break;
		fill(data, got.length, pattern_of(p, 2 * i + 1));
		ret = h_datagram_send(p->world->to, &got.reply, 0, data,
				      got.length, NULL, ht_patience_ns());
		if (ret)
			wrong = complain("answer %u: %d", i, ret);
	}
	free(data);
	return wrong;
}

static const char *datagram_judge(struct pair *p)
{
	struct h_datagram_stats stats;

	if (h_datagram_receiver_stats(p->datagram.r, &stats))
		return "no counters";
	return stats.dropped || stats.malformed ? "one was dropped" : NULL;
}

static const char *datagram_close(struct pair *p)
{
	settle(p);
	if (h_datagram_receiver_destroy(p->datagram.r) ||
	    h_datagram_receiver_destroy(p->datagram.replies))
		return "a receiver that stays";
	return NULL;
}

/* ---- tagged: a set of tags, each with a place of its own ---- */

static const char *tagged_open(struct pair *p, uint64_t *random)
{
	struct tagged *t = &p->tagged;
	struct h_tagged_attr attr = {};
	struct h_seed seed;
	int err;

	t->size = at_most(any_size(random), p->world->packet);
	t->rounds = below(random, 8);
	attr.length = PLACES * t->size;
	err = h_tagged_receiver_create(p->world->to, &attr, &t->r);
	if (err)
		return complain("no receiver: %d", err);
	h_tagged_receiver_seed(t->r, &seed);
	err = h_tagged_resolve(&seed, &t->to);
	return err ? complain("no address: %d", err) : NULL;
}

/* The tag tells the place, and makes the bytes. */
static const char *tagged_write(struct pair *p, uint32_t place,
				uint64_t *random, int64_t timeout)
{
	struct tagged *t = &p->tagged;
	struct write *write = &t->place[place];
	uint64_t tag = pattern_of(p, t->writes) / PLACES * PLACES + place;
	size_t n = below(random, (uint32_t)t->size + 1);
	unsigned char *data = place_for(p, n, below(random, 2));
	int ret;

	fill(data, n, tag);
	ret = h_tagged_send(p->world->from, &t->to, place * t->size, data, n,
			    tag, timeout);
	done_with(p, data, n);
	if (ret)
		return later(ret) && timeout == H_NOWAIT ? NULL :
		       complain("write of %zu: %d", n, ret);
	t->writes++;
	*write = (struct write) {
		.there = true, .tag = tag, .length = (uint32_t)n,
	};
	return NULL;
}

static const char *tagged_got(struct pair *p, uint64_t tag, uint32_t length)
{
	struct tagged *t = &p->tagged;
	struct write *write = &t->place[tag % PLACES];
	const unsigned char *data = h_tagged_receiver_data(t->r);

	if (!write->there || write->tag != tag)
		return complain("tag %#llx was not sent",
				(unsigned long long)tag);
	if (write->length != length)
		return complain("%u bytes, not %u", length, write->length);
	write->there = false;
	return check(data + tag % PLACES * t->size, length, tag);
}

/* Any, or that of a place. */
static const char *tagged_get(struct pair *p, uint64_t *random, int64_t timeout)
{
	struct tagged *t = &p->tagged;
	const struct write *write = &t->place[below(random, PLACES)];
	uint64_t tag = write->tag;
	uint32_t length;
	int ret;

	if (below(random, 2)) {
		ret = h_tagged_get_tag(t->r, &tag, &length, timeout);
	} else {
		/* One that was got, or never sent, is not there. */
		ret = h_tagged_get_specific_tag(t->r, tag, &length,
						write->there ? timeout : H_NOWAIT);
		if (!ret && !write->there)
			return "a tag is there twice";
	}
	if (later(ret) && (ret == -EAGAIN || timeout < ht_patience_ns()))
		return NULL;
	return ret ? complain("tag: %d", ret) : tagged_got(p, tag, length);
}

static uint32_t tagged_left(const struct pair *p)
{
	uint32_t i, n = 0;

	for (i = 0; i < PLACES; i++)
		n += p->tagged.place[i].there;
	return n;
}

static const char *tagged_step(struct pair *p, uint64_t *random)
{
	uint32_t place = below(random, PLACES);

	if (below(random, 100) < 45)
		return p->tagged.place[place].there ? NULL :
		       tagged_write(p, place, random, H_NOWAIT);
	return tagged_get(p, random, H_NOWAIT);
}

static const char *tagged_finish(struct pair *p, uint64_t *random)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	const char *wrong = NULL;
	uint64_t tag;

	while (!wrong && tagged_left(p)) {
		wrong = tagged_get(p, random, H_NOWAIT);
		if (ht_now_ns() > end)
			wrong = complain("%u tags are missing", tagged_left(p));
	}
	if (!wrong && h_tagged_get_tag(p->tagged.r, &tag, NULL, 0) != -EAGAIN)
		wrong = "a tag too many";
	return wrong;
}

/* All places, in rounds: nobody writes where the other one reads. */
static const char *tagged_writer(struct pair *p, uint64_t *random)
{
	struct tagged *t = &p->tagged;
	const char *wrong = NULL;
	uint32_t round, i;

	for (round = 0; round < t->rounds && !wrong; round++) {
		uint32_t first = below(random, PLACES);

		for (i = 0; i < PLACES && !wrong; i++)
			wrong = tagged_write(p, (first + i) % PLACES, random,
					     ht_patience_ns());
		__atomic_store_n(&t->round, 2 * round + 1, __ATOMIC_SEQ_CST);
		if (!wrong && !wait_for_round(&t->round, 2 * round + 2))
			wrong = "nobody reads";
	}
	return wrong;
}

static const char *tagged_reader(struct pair *p, uint64_t *random)
{
	struct tagged *t = &p->tagged;
	const char *wrong = NULL;
	uint32_t round;

	for (round = 0; round < t->rounds && !wrong; round++) {
		if (!wait_for_round(&t->round, 2 * round + 1))
			return "nobody writes";
		while (!wrong && tagged_left(p))
			wrong = tagged_get(p, random, ht_patience_ns());
		__atomic_store_n(&t->round, 2 * round + 2, __ATOMIC_SEQ_CST);
	}
	return wrong;
}

static const char *tagged_judge(struct pair *p)
{
	return tagged_left(p) ? "tags are missing" : NULL;
}

static const char *tagged_close(struct pair *p)
{
	settle(p);
	return h_tagged_receiver_destroy(p->tagged.r) ? "it stays" : NULL;
}

/* ---- groups: complete with the last share, in whatever order ---- */

static void group_begin(struct group *g)
{
	h_group_share(g->g, &g->share[0]);
	memset(g->done, 0, sizeof(g->done));
	g->shares = 1;
}

static const char *group_open(struct pair *p, uint64_t *random)
{
	struct group *g = &p->group;
	int err;

	g->length = below(random, 8) ? any_size(random) : 0;
	g->whole = true;
	g->rounds = below(random, 8);
	g->want = malloc(g->length + 1);
	err = h_group_create(p->world->to, g->length, NULL, &g->g);
	if (err)
		return complain("no group: %d", err);
	group_begin(g);
	return NULL;
}

/* Into at most four, which take its place and those at the end. */
static const char *group_split(struct pair *p, uint32_t which,
			       uint64_t *random)
{
	struct group *g = &p->group;
	struct h_share *share = &g->share[which];
	uint32_t n = 1 + below(random, 4), i;
	uint64_t lengths[4], left = share->ticket.length, count = 0;
	struct h_share part[4];
	struct h_seed seed;
	int err;

	if (g->done[which] || g->shares + n - 1 > MOST_SHARES ||
	    share->counter < n)
		return NULL;
	for (i = 0; i < n; i++) {
		lengths[i] = i == n - 1 ? left :
			     below(random, (uint32_t)left + 1);
		left -= lengths[i];
	}
	left = share->counter;
	err = h_share_split(share, n, below(random, 2) ? NULL : lengths, part);
	if (err)
		return complain("split: %d", err);
	for (i = 0; i < n; i++) {
		uint32_t at = i ? g->shares++ : which;

		count += part[i].counter;
		err = h_share_export(&part[i], &seed);
		if (!err)
			err = h_share_import(&seed, &g->share[at]);
		if (err)
			return complain("a share does not travel: %d", err);
	}
	return count == left ? NULL : "a part of the count is lost";
}

static const char *group_send(struct pair *p, uint32_t which, uint64_t *random,
			      int64_t timeout)
{
	struct group *g = &p->group;
	const struct h_share *share = &g->share[which];
	size_t n = share->ticket.length;
	unsigned char *data;
	int ret;

	if (g->done[which])
		return NULL;
	/* Less than its part: the rest stays as it was. */
	if (!g->whole && !below(random, 4))
		n = below(random, (uint32_t)n + 1);
	data = place_for(p, n, below(random, 2));
	fill(data, n, pattern_of(p, g->writes));
	ret = h_share_send(p->world->from, share, data, n, timeout);
	done_with(p, data, n);
	if (ret)
		return later(ret) && timeout == H_NOWAIT ? NULL :
		       complain("send of %zu: %d", n, ret);
	fill(g->want + share->ticket.base, n, pattern_of(p, g->writes++));
	g->done[which] = true;
	return NULL;
}

static bool group_done(const struct group *g)
{
	uint32_t i;

	for (i = 0; i < g->shares; i++)
		if (!g->done[i])
			return false;
	return true;
}

/* Not before all was sent. @over: now it is. */
static const char *group_receive(struct pair *p, int64_t timeout, bool *over)
{
	struct group *g = &p->group;
	const void *data;
	int ret;

	ret = h_group_receive(g->g, &data, timeout);
	*over = !ret;
	if (ret)
		return ret == -EAGAIN ? NULL : complain("receive: %d", ret);
	if (!group_done(g))
		return "complete, but not all was sent";
	return memcmp(data, g->want, g->length) ? "wrong bytes" : NULL;
}

static const char *group_reset(struct pair *p, uint64_t *random)
{
	struct group *g = &p->group;
	bool again = below(random, 2);
	int err;

	err = h_group_reset(g->g, again ? 0 : H_GROUP_NEW_KEY);
	if (err)
		return complain("reset: %d", err);
	g->whole = false;
	/* The same shares are good for another round. */
	if (again && below(random, 2))
		memset(g->done, 0, sizeof(g->done));
	else
		group_begin(g);
	return NULL;
}

static const char *group_give_up(struct pair *p)
{
	struct group *g = &p->group;
	int err;

	settle(p);
	err = h_group_reset(g->g, H_GROUP_NEW_KEY);
	if (err)
		return complain("reset: %d", err);
	/* Nobody knows what has landed. */
	g->whole = true;
	group_begin(g);
	return NULL;
}

static const char *group_step(struct pair *p, uint64_t *random)
{
	struct group *g = &p->group;
	uint32_t which = below(random, g->shares);
	uint32_t what = below(random, 1000);
	const char *wrong;
	bool over;

	if (what < 10)
		return group_give_up(p);
	if (what < 200)
		return group_split(p, which, random);
	if (what < 700)
		return group_send(p, which, random, H_NOWAIT);
	if (what < 750 && !group_done(g))
		return h_group_reset(g->g, 0) == -EBUSY ? NULL :
		       "a round that is not over begins anew";
	wrong = group_receive(p, H_NOWAIT, &over);
	return !wrong && over ? group_reset(p, random) : wrong;
}

static const char *group_finish(struct pair *p, uint64_t *random)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct group *g = &p->group;
	const char *wrong = NULL;
	bool over = false;
	uint32_t i;

	while (!wrong && !over) {
		for (i = 0; i < g->shares && !wrong; i++)
			wrong = group_send(p, i, random, H_NOWAIT);
		if (!wrong)
			wrong = group_receive(p, H_NOWAIT, &over);
		if (!wrong && !over && ht_now_ns() > end)
			wrong = "not complete";
	}
	return wrong ? wrong : group_reset(p, random);
}

/* In turns: a round is sent, and then received. */
static const char *group_sending(struct pair *p, uint64_t *random)
{
	struct group *g = &p->group;
	const char *wrong = NULL;
	uint32_t round;

	for (round = 0; round < g->rounds && !wrong; round++) {
		while (!wrong && !group_done(g)) {
			uint32_t which = below(random, g->shares);

			wrong = below(random, 3) ?
				group_send(p, which, random, ht_patience_ns()) :
				group_split(p, which, random);
		}
		__atomic_store_n(&g->round, 2 * round + 1, __ATOMIC_SEQ_CST);
		if (!wrong && !wait_for_round(&g->round, 2 * round + 2))
			wrong = "nobody receives";
	}
	return wrong;
}

static const char *group_receiving(struct pair *p, uint64_t *random)
{
	struct group *g = &p->group;
	const char *wrong = NULL;
	uint32_t round;
	bool over;

	for (round = 0; round < g->rounds && !wrong; round++) {
		/* It may well be asleep before all was sent. */
		if (h_group_receive(g->g, NULL, ht_patience_ns()))
			return "not complete";
		if (!wait_for_round(&g->round, 2 * round + 1))
			return "nobody sends";
		wrong = group_receive(p, H_NOWAIT, &over);
		if (!wrong)
			wrong = group_reset(p, random);
		__atomic_store_n(&g->round, 2 * round + 2, __ATOMIC_SEQ_CST);
	}
	return wrong;
}

static const char *nothing_to_judge(struct pair *p)
{
	(void)p;
	return NULL;
}

static const char *group_close(struct pair *p)
{
	settle(p);
	free(p->group.want);
	return h_group_destroy(p->group.g) ? "it stays" : NULL;
}

static const struct protocol protocols[] = {
	{
		.name = "stream",
		.open = stream_open,
		.step = stream_step,
		.finish = stream_finish,
		.talk = { stream_sending, stream_receiving },
		.judge = stream_judge,
		.close = stream_drop,
	},
	{
		.name = "channel",
		.open = channel_open,
		.step = channel_step,
		.finish = channel_finish,
		.talk = { channel_talk_a, channel_talk_b },
		.judge = channel_judge,
		.close = channel_close,
	},
	{
		.name = "datagram",
		.open = datagram_open,
		.step = datagram_step,
		.finish = datagram_finish,
		.talk = { datagram_ask, datagram_answer },
		.judge = datagram_judge,
		.close = datagram_close,
	},
	{
		.name = "tagged",
		.open = tagged_open,
		.step = tagged_step,
		.finish = tagged_finish,
		.talk = { tagged_writer, tagged_reader },
		.judge = tagged_judge,
		.close = tagged_close,
	},
	{
		.name = "group",
		.open = group_open,
		.step = group_step,
		.finish = group_finish,
		.talk = { group_sending, group_receiving },
		.judge = nothing_to_judge,
		.close = group_close,
	},
};

#endif /* MODEL_H */
