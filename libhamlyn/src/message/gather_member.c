// SPDX-License-Identifier: MIT
/* Gathers: group receives round after round, the members. */
#include <stdlib.h>

#include "message/gather.h"

#define ARRIVALS	8	/* words for two rounds and the end, a watch */

struct h_gather_member {
	struct h_receiver r;		/* of words */
	struct h_share share;
	struct h_ticket entries;	/* the first one for this member */
	uint64_t stride;
	uint32_t sent;
	bool left;
	struct h_watch *watch;
	/* r.lock */
	uint32_t released;
	uint32_t limit;			/* how many rounds, once it has ended */
	int ended;
	bool gone;			/* the root is */
};

static struct h_gather_member *of(struct h_receiver *r)
{
	return (struct h_gather_member *)r;
}

/* ---- arrivals; the receiver is locked ---- */

static void take_word(struct h_gather_member *m, uint64_t word)
{
	if ((int32_t)((uint32_t)word - m->released) > 0)
		m->released = (uint32_t)word;
	if (m->ended || !(word & (H_GATHER_BROKEN | H_GATHER_ENDED)))
		return;
	m->ended = word & H_GATHER_ENDED ? -EPIPE : -ECONNRESET;
	m->limit = (uint32_t)word + !!(word & H_GATHER_HELD);
}

static void process_arrival(struct h_receiver *r,
			    const struct hamlyn_nq_entry *e)
{
	if (e->flags & HAMLYN_NQE_PEER_GONE)
		of(r)->gone = true;
	else if (e->flags & HAMLYN_NQE_FAST)
		take_word(of(r), e->data);
}

static void process_overrun(struct h_receiver *r)
{
	uint64_t bytes = h__read_once((const uint64_t *)r->data);

	take_word(of(r), h__get((const unsigned char *)&bytes, sizeof(bytes)));
}

static bool pending(const struct h_receiver *r)
{
	(void)r;
	return false;
}

static const struct h_receiver_class member_class = {
	.name = "gather member",
	.process_arrival = process_arrival,
	.process_overrun = process_overrun,
	.pending = pending,
};

/* ---- rounds ---- */

/* Locked. May there be @rounds, and are @released of them released? */
static int look(const struct h_gather_member *m, uint32_t rounds,
		uint32_t released)
{
	if (m->ended && (int32_t)(m->limit - rounds) < 0)
		return m->ended;
	if (m->gone && rounds != m->sent)
		return -EPIPE;
	if ((int32_t)(m->released - released) >= 0)
		return 0;
	return m->gone ? -EPIPE : -EAGAIN;
}

static int wait_for(struct h_gather_member *m, uint32_t rounds, uint32_t released,
		    int64_t deadline)
{
	unsigned int turns = 0;

	for (;;) {
		uint32_t seen = h_receiver_events(&m->r);
		int ret;

		h_receiver_lock(&m->r);
		ret = look(m, rounds, released);
		h_receiver_unlock(&m->r);
		if (ret != -EAGAIN)
			return ret;
		ret = h__go_on(&turns, deadline);
		if (!ret)
			ret = h_receiver_wait(&m->r, seen, deadline);
		if (ret)
			return ret;
	}
}

/* For the work queue, which is full for a moment at most. */
static int64_t time_left(int64_t deadline)
{
	int64_t now = h__now_ns();

	if (deadline <= 0)
		return deadline;
	return now < deadline ? deadline - now : 1;
}

uint64_t h_gather_length(const struct h_gather_member *m)
{
	return m->share.ticket.length;
}

int h_gather_send(struct h_gather_member *m, const void *data, size_t length,
		  int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	struct h_share share = m->share;
	uint32_t i = m->sent % H_GATHER_ROUNDS;
	int err;

	if (length > share.ticket.length)
		return -ERANGE;
	err = wait_for(m, m->sent + 1, m->sent + 1 - H_GATHER_ROUNDS, deadline);
	if (err)
		return err;
	share.ticket.base += i * m->stride;
	share.ticket.meta_index = i;
	err = h_share_send(m->r.manager, &share, data, length,
			   time_left(deadline));
	if (!err)
		m->sent++;
	return err;
}

int h_gather_wait(struct h_gather_member *m, int64_t timeout_ns)
{
	return wait_for(m, m->sent, m->sent, h_deadline(timeout_ns));
}

/* ---- from join to leave ---- */

static int say(struct h_gather_member *m, uint32_t which, const void *bytes,
	       size_t length)
{
	struct h_ticket to = m->entries;
	const struct h_msg msg = {
		.ticket = &to,
		.meta = bytes,
		.meta_length = length,
	};

	to.meta_index += which;
	return h__post(m->r.manager, &msg, h_deadline(H_GATHER_DRAIN_NS));
}

static int say_hello(struct h_gather_member *m)
{
	unsigned char bytes[H_GATHER_HELLO_BYTES];
	struct h_ticket words;

	h_slot_ticket(m->r.slot, 0, H_GATHER_WORD_BYTES, HAMLYN_META_FAST, &words);
	h_ticket_export(&words, bytes);
	return say(m, H_GATHER_HELLO, bytes, sizeof(bytes));
}

/* If it does not get there it is as if the member had died. */
static void say_bye(struct h_gather_member *m)
{
	unsigned char bytes[H_GATHER_BYE_BYTES];
	bool gone;

	if (m->left)
		return;
	m->left = true;
	/* Nothing need be sent to one who has gone. */
	h_manager_poll(m->r.manager);
	h_receiver_lock(&m->r);
	gone = m->gone;
	h_receiver_unlock(&m->r);
	if (gone)
		return;
	h__put(bytes, m->sent, sizeof(bytes));
	say(m, H_GATHER_BYE, bytes, sizeof(bytes));
	/* Before the root is told that the slot is gone. */
	h__manager_left(m->r.manager, H_GATHER_DRAIN_NS);
}

static int adopt(struct h_gather_member *m, const struct h_seed *seed)
{
	struct h_seed_fields f;
	int err;

	err = h__seed_get(seed, H_SEED_GATHER, &f);
	if (err)
		return err;
	m->share.ticket = f.ticket;
	m->share.counter = f.entries ? f.entries : 1ull << 32;
	m->entries = f.ticket;
	m->entries.base = 0;
	m->entries.length = 0;
	m->stride = f.more;
	return 0;
}

static int member_init(struct h_gather_member *m, struct h_manager *manager)
{
	const struct h_receiver_attr at = {
		.length = 64,
		.arrivals = ARRIVALS,
	};
	struct h_why why;
	int err;

	err = h_receiver_init(&m->r, manager, &member_class, &at);
	if (err)
		return err;
	err = h_receiver_watch(&m->r, &m->entries, -1, 0, &m->watch);
	if (!err)
		err = say_hello(m);
	if (!err)
		return 0;
	h__why_keep(manager->dev, &why);
	if (m->watch)
		h_unwatch(m->watch);
	h__receiver_drop(&m->r);
	h__why_restore(manager->dev, &why);
	return err;
}

int h_gather_join(struct h_manager *manager, const struct h_seed *seed,
		  struct h_gather_member **member)
{
	struct h_gather_member *m;
	int err;

	*member = NULL;
	m = calloc(1, sizeof(*m));
	if (!m)
		return -ENOMEM;
	err = adopt(m, seed);
	if (!err)
		err = member_init(m, manager);
	if (err) {
		free(m);
		return err;
	}
	*member = m;
	return 0;
}

int h_gather_leave(struct h_gather_member *m)
{
	int err;

	if (!m)
		return 0;
	say_bye(m);
	if (m->watch) {
		err = h_unwatch(m->watch);
		if (err)
			return err;
		m->watch = NULL;
	}
	err = h_receiver_exit(&m->r);
	if (err)
		return err;
	free(m);
	return 0;
}
