/* SPDX-License-Identifier: GPL-2.0-only */
/* Of model.c: channels: a queue of messages each way. */
#ifndef MODEL_CHANNEL_H
#define MODEL_CHANNEL_H

#include "model_pair.h"

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
		.buffers = buffers[below(random, 4)],
		.buffer_size = sizes[below(random, 4)],
		.max_buffer_size = below(random, 2) ? 65536 : 1,
	};
	int err;

	p->buffers = attr.buffers;
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

	if (ret != -ENODATA && (ret != -ECONNRESET || !happened(&p->end[!me].dropped)))
		return complain("receive: %zd", ret);
	end->ended = true;
	end->clean = ret == -ENODATA;
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

	ret = h_channel_receive_copy(end->channel, data, room, timeout);
	if (ret >= 0)
		wrong = message_compare(p, me, data, (size_t)ret);
	else if (!later(ret))
		wrong = ret == -EMSGSIZE && room < length ? NULL :
			channel_end(p, me, ret);
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
	if (ret != 0)
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

#endif /* MODEL_CHANNEL_H */
