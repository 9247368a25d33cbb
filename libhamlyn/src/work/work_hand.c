// SPDX-License-Identifier: MIT
/* One worker, as its master has it: what it is given, and what it says. */
#include <stdlib.h>

#include "work/work.h"

#define MOST_AT_ONCE	1024

/* ---- handing out ---- */

static void link_hand(struct h_work_queue *q, struct h_hand *h)
{
	h->prev_hand = NULL;
	h->next_hand = q->hands;
	if (q->hands)
		q->hands->prev_hand = h;
	q->hands = h;
}

static void unlink_hand(struct h_work_queue *q, struct h_hand *h)
{
	if (h->prev_hand)
		h->prev_hand->next_hand = h->next_hand;
	else
		q->hands = h->next_hand;
	if (h->next_hand)
		h->next_hand->prev_hand = h->prev_hand;
}

static bool is_free(const struct h_hand *h)
{
	return h->welcome && !h->doomed && !h->blocked && h->out.count < h->at_once;
}

static bool takes(const struct h_hand *h, const struct h_task *t)
{
	return H_ITEM_BYTES + t->length <= h->channel->peer_limit;
}

/* One that has nothing, if there is one; of these the one that has waited longest. */
static struct h_hand *find_hand(struct h_work_queue *q, const struct h_task *t)
{
	struct h_hand *h, *best = NULL;

	for (h = q->hands; h; h = h->next_hand)
		if (is_free(h) && takes(h, t) && (!best || h->out.count <= best->out.count))
			best = h;
	return best;
}

/* Is there one that could have it, now or later? */
static bool is_taken_by_any(struct h_work_queue *q, const struct h_task *t)
{
	const struct h_hand *h;
	bool any = false;

	/* Those that are about to be dropped are no reason to give it up: others may come. */
	for (h = q->hands; h; h = h->next_hand) {
		if (!h->welcome || h->doomed)
			continue;
		any = true;
		if (takes(h, t))
			return true;
	}
	return !any;
}

static int give(struct h_hand *h, struct h_task *t)
{
	struct h_work_queue *q = h->queue;
	int err;

	h__put(h__put(h__put(t->bytes, t->id, 8), t->deliveries + 1, 4), 0, 4);
	err = h_channel_send(h->channel, t->bytes, H_ITEM_BYTES + t->length, H_NOWAIT);
	if (err)
		return err;
	h__tasks_remove(&q->waiting, t);
	t->deliveries++;
	t->since_ns = h__now_ns();
	h__tasks_append(&h->out, t);
	q->counters.deliveries++;
	/* The next one is for somebody else. */
	unlink_hand(q, h);
	link_hand(q, h);
	return 0;
}

static void fail_now(struct h_work_queue *q, struct h_task *t)
{
	h__tasks_remove(&q->waiting, t);
	t->deliveries = q->attr.deliveries;
	h__task_again(q, t);
}

/* False if nobody can have it now. */
static bool hand_out_one(struct h_work_queue *q, struct h_task *t)
{
	struct h_hand *h;
	int err;

	while ((h = find_hand(q, t))) {
		err = give(h, t);
		if (!err)
			return true;
		if (err == -EAGAIN)
			h->blocked = true;
		else
			h->doomed = err;
	}
	if (is_taken_by_any(q, t))
		return false;
	fail_now(q, t);
	return true;
}

/* All that wait, and what on_failed adds in their place; not for ever, if that fails as well. */
static void hand_out(struct h_work_queue *q)
{
	uint64_t n = 2ULL * q->attr.items;

	while (n-- && q->waiting.first && hand_out_one(q, q->waiting.first))
		;
}

void h__hand_room(struct h_channel *channel)
{
	struct h_hand *h = h_channel_data(channel);

	h->blocked = false;
}

/* ---- dropping ---- */

static void doom_the_slow(struct h_work_queue *q)
{
	int64_t now = q->attr.patience_ns ? h__now_ns() : 0;
	struct h_hand *h;

	if (!now)
		return;
	for (h = q->hands; h; h = h->next_hand)
		if (h->out.first && now - h->out.first->since_ns >= q->attr.patience_ns)
			h->doomed = h->doomed ? h->doomed : -ETIMEDOUT;
}

static bool drop_one(struct h_work_queue *q)
{
	struct h_hand *h = q->hands;

	while (h && !h->doomed)
		h = h->next_hand;
	if (h)
		h__server_drop(q->server, h->channel, h->doomed);
	return h;
}

/* Those that die leave items, and handing these out finds others that have died. */
void h__hands_settle(struct h_work_queue *q)
{
	doom_the_slow(q);
	do {
		hand_out(q);
	} while (drop_one(q));
}

/* ---- from joining to leaving ---- */

int h__hand_add(struct h_channel *channel, void *arg)
{
	struct h_work_queue *q = arg;
	struct h_hand *h = calloc(1, sizeof(*h));

	if (!h)
		return -ENOMEM;
	h->queue = q;
	h->channel = channel;
	h_channel_peer(channel, &h->peer);
	h_channel_set_data(channel, h);
	link_hand(q, h);
	return 0;
}

void h__hand_end(struct h_channel *channel, int reason, void *arg)
{
	struct h_hand *h = h_channel_data(channel);
	struct h_work_queue *q = arg;
	struct h_task *t;

	unlink_hand(q, h);
	/* The newest first, so that they wait in the order that they had. */
	while ((t = h->out.last)) {
		h__tasks_remove(&h->out, t);
		h__task_again(q, t);
	}
	if (h->welcome && q->attr.on_end)
		q->attr.on_end(&h->peer, reason, q->attr.arg);
	free(h);
}

static int hears_join(struct h_hand *h, const struct h_message *m)
{
	const unsigned char *p = m->data;
	struct h_work_queue *q = h->queue;
	unsigned char bytes[H_JOINED_BYTES];
	int err;

	if (m->length != H_JOIN_BYTES || h__get(p, 8) != H_JOIN_MAGIC)
		return -EPROTO;
	h->at_once = (uint32_t)h__get(p + 8, 4);
	if (!h->at_once || h->at_once > MOST_AT_ONCE)
		return -EPROTO;
	h->welcome = !q->attr.on_worker || !q->attr.on_worker(&h->peer, q->attr.arg);
	h__put(h__put(bytes, H_JOINED_MAGIC, 8), h->welcome ? H_JOINED : H_JOINED_NOT, 8);
	err = h_channel_send(h->channel, bytes, sizeof(bytes), H_NOWAIT);
	/* It has all its buffers, but that is its word. */
	if (err)
		return err == -EAGAIN ? -EPROTO : err;
	return h->welcome ? 0 : -ENODATA;
}

static struct h_task *find_task(struct h_hand *h, uint64_t id)
{
	struct h_task *t = h->out.first;

	while (t && t->id != id)
		t = t->next;
	return t;
}

/* The server's handler: whoever says anything of an item that it does not have is dropped. */
int h__hand_hears(struct h_channel *channel, const struct h_message *m, void *arg)
{
	struct h_hand *h = h_channel_data(channel);
	struct h_work_queue *q = arg;
	const unsigned char *p = m->data;
	struct h_task *t;
	uint64_t verdict;

	if (!h->welcome)
		return hears_join(h, m);
	t = m->length < H_ITEM_BYTES ? NULL : find_task(h, h__get(p, 8));
	verdict = t ? h__get(p + 8, 8) : 0;
	if (verdict != H_VERDICT_DONE && verdict != H_VERDICT_FAILED)
		return -EPROTO;
	h__tasks_remove(&h->out, t);
	if (verdict == H_VERDICT_FAILED) {
		h__task_again(q, t);
		return 0;
	}
	q->counters.done++;
	if (q->attr.on_done)
		q->attr.on_done(t->id, p + H_ITEM_BYTES, m->length - H_ITEM_BYTES, q->attr.arg);
	h__task_end(q, t);
	return 0;
}
