// SPDX-License-Identifier: MIT
/* What an end of a channel has done, and how it stands. */
#include "channel/channel.h"

/* The newest buffers: older ones are on their way out. */
static void describe_buffers(struct h_stream_receiver *r, struct h_channel_counters *stats)
{
	const struct h_generation *gen;

	h_receiver_lock(&r->r);
	gen = &r->gen[r->gens - 1];
	stats->buffers = gen->entries;
	stats->buffer_size = gen->buffer;
	h_receiver_unlock(&r->r);
}

/* sending is not held: each of these is one load. */
static void describe_sender(struct h_stream_sender *s, struct h_channel_counters *stats)
{
	uint32_t released;

	h_receiver_lock(&s->r);
	released = s->released;
	h_receiver_unlock(&s->r);
	stats->waits = h__read_once(&s->waits);
	stats->in_flight = h__load_acquire(&s->sent) - released;
}

static void describe_messages(struct h_channel *ch, struct h_channel_counters *stats)
{
	stats->held = h__stream_held(ch->receiver);
	h__spin_lock(ch->manager, &ch->lock);
	stats->kept = h__read_once(&ch->stored_count);
	stats->requests = ch->request_count;
	h__spin_unlock(ch->manager, &ch->lock);
}

int h__channel_stats(struct h_channel *ch, struct h_channel_counters *stats, size_t size)
{
	struct h_channel_counters now = {
		.sent = h__read_once(&ch->sent),
		.sent_bytes = h__read_once(&ch->sent_bytes),
		.received = h__read_once(&ch->received),
		.received_bytes = h__read_once(&ch->received_bytes),
	};

	describe_sender(ch->sender, &now);
	describe_buffers(ch->receiver, &now);
	describe_messages(ch, &now);
	return h__copy_stats(stats, size, &now, sizeof(now));
}
