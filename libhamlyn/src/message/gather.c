// SPDX-License-Identifier: MIT
/*
 * Gathers: group receives round after round, the root.
 *
 * A member that is gone, or has left, ends the gather as soon as the root has received
 * what can be complete. From then on the number of rounds is known: members wait for
 * the release of those only.
 */
#include <stdlib.h>

#include "message/gather.h"

#define ROUNDS		H_GATHER_ROUNDS
#define MOST_MEMBERS	(1U << 20)

struct member {
	struct h_share share;
	struct h_watch *watch;		/* who calls */
	bool watched;			/* who calls: or need not be */
	/* r.lock */
	struct h_ticket words;
	uint64_t told;
	uint32_t rounds;		/* sent, when it left */
	bool joined;
	bool left;
	bool gone;
};

struct h_gather {
	struct h_receiver r;
	uint32_t count;
	uint64_t key;
	uint64_t length;		/* of a round */
	uint64_t stride;		/* from one buffer to the other */
	struct member *members;
	uint32_t watched;		/* members; who calls */
	/* r.lock */
	bool granted;
	bool complete[ROUNDS];
	uint32_t joined;		/* members */
	uint32_t received;
	uint32_t released;
	int ended;			/* 0, or why there are no more rounds */
};

static struct h_gather *of(struct h_receiver *r)
{
	return (struct h_gather *)r;
}

/* ---- words to members; the receiver is locked ---- */

static uint64_t word_of(const struct h_gather *g)
{
	uint64_t word = g->released;

	if (!g->ended)
		return word;
	if (g->received != g->released)
		word |= H_GATHER_HELD;
	return word | (g->ended == -EPIPE ? H_GATHER_ENDED : H_GATHER_BROKEN);
}

/* True if there was no room in the work queue. */
static bool tell_one(struct h_gather *g, struct member *m)
{
	unsigned char bytes[H_GATHER_WORD_BYTES];
	const struct h_msg msg = {
		.ticket = &m->words,
		.data = bytes,
		.length = sizeof(bytes),
		.word = word_of(g),
	};

	if (!m->joined || m->left || m->gone || m->told == msg.word)
		return false;
	h__put(bytes, msg.word, sizeof(bytes));
	if (h_send(g->r.manager->terminus, &msg) == -EAGAIN)
		return true;
	m->told = msg.word;
	return false;
}

static bool tell_all(struct h_gather *g)
{
	bool before, more = false;
	uint32_t i;

	/* Locked, and there are many: none waits for the terminus. */
	before = h__send_now_or_not(true);
	for (i = 0; i < g->count; i++)
		more |= tell_one(g, &g->members[i]);
	h__send_now_or_not(before);
	h_receiver_owes(&g->r, more);
	return more;
}

/* ---- arrivals; the receiver is locked ---- */

/* Why the next round will never be complete; 0: it may be. */
static int verdict(const struct h_gather *g)
{
	int err = 0;
	uint32_t i;

	for (i = 0; i < g->count; i++) {
		const struct member *m = &g->members[i];

		if (m->gone && !m->left)
			return -ECONNRESET;
		if (m->left && (int32_t)(g->received - m->rounds) >= 0)
			err = -EPIPE;
	}
	return err;
}

/* The next round is complete also while both buffers are held. */
static void judge(struct h_gather *g)
{
	if (!g->ended && !g->complete[g->received % ROUNDS])
		g->ended = verdict(g);
}

static void look_at_round(struct h_gather *g, uint32_t i)
{
	if (!h__load_acquire(&g->r.metadata[i].state))
		g->complete[i] = true;
}

static struct hamlyn_metadata *entry_of(const struct h_gather *g, uint32_t member,
					uint32_t which)
{
	return &g->r.metadata[ROUNDS + member * H_GATHER_ENTRIES + which];
}

/* What it says; false: nothing yet, or nonsense. */
static bool read_entry(const struct hamlyn_metadata *entry, unsigned char *bytes,
		       uint32_t length)
{
	if (h__load_acquire(&entry->state) ||
	    h__read_once(&entry->meta_length) != length)
		return false;
	memcpy(bytes, entry->user, length);
	return true;
}

static void look_at_member(struct h_gather *g, uint32_t i)
{
	unsigned char bytes[HAMLYN_MAX_METADATA];
	struct member *m = &g->members[i];

	if (!m->joined &&
	    read_entry(entry_of(g, i, H_GATHER_HELLO), bytes, H_GATHER_HELLO_BYTES) &&
	    !h_ticket_import(bytes, H_TICKET_BYTES, &m->words)) {
		m->joined = true;
		g->joined++;
	}
	if (!m->left &&
	    read_entry(entry_of(g, i, H_GATHER_BYE), bytes, H_GATHER_BYE_BYTES)) {
		m->rounds = (uint32_t)h__get(bytes, H_GATHER_BYE_BYTES);
		m->left = true;
	}
}

static void look(struct h_gather *g, uint32_t index)
{
	uint32_t member = (index - ROUNDS) / H_GATHER_ENTRIES;

	if (index < ROUNDS)
		look_at_round(g, index);
	else if (member < g->count)
		look_at_member(g, member);
}

static void process_arrival(struct h_receiver *r,
			    const struct hamlyn_nq_entry *e)
{
	struct h_gather *g = of(r);
	uint32_t joined = g->joined;

	if (!g->granted)
		return;
	if (!(e->flags & HAMLYN_NQE_PEER_GONE))
		look(g, e->index);
	else if (e->data >> 32 < g->count)
		g->members[e->data >> 32].gone = true;
	judge(g);
	/*
	 * The end; or to one whose greeting was overtaken by its rounds, what has been
	 * released meanwhile.
	 */
	if (g->ended || g->joined != joined)
		tell_all(g);
}

static void process_overrun(struct h_receiver *r)
{
	struct h_gather *g = of(r);
	uint32_t i;

	for (i = 0; g->granted && i < ROUNDS; i++)
		look_at_round(g, i);
	for (i = 0; g->granted && i < g->count; i++)
		look_at_member(g, i);
	if (!g->granted)
		return;
	/* The end may have been lost as well, and the root be in no call. */
	judge(g);
	tell_all(g);
}

static bool pending(const struct h_receiver *r)
{
	const struct h_gather *g = (const struct h_gather *)r;

	return g->ended || g->complete[g->received % ROUNDS];
}

static void settle(struct h_receiver *r)
{
	tell_all(of(r));
}

static const struct h_receiver_class gather_class = {
	.name = "gather",
	.process_arrival = process_arrival,
	.process_overrun = process_overrun,
	.pending = pending,
	.settle = settle,
};

/* ---- receiving ---- */

/*
 * Until all know what there is to know, or for so long. The work queue needs nobody else
 * to empty; what is not told by then whoever polls tells.
 */
static void inform(struct h_gather *g, int64_t deadline)
{
	struct h_wait wait = { 0 };

	for (;;) {
		bool more;

		h_receiver_lock(&g->r);
		judge(g);
		more = tell_all(g);
		h_receiver_unlock(&g->r);
		if (!more || deadline == H_NOWAIT || h__now_ns() >= deadline)
			return;
		if (!h_manager_poll(g->r.manager))
			h__wait_more(&wait, deadline);
	}
}

/* To watch one whose slot is gone would be a guess: not where it has said so. */
static int watch_one(struct h_gather *g, uint32_t i)
{
	struct member *m = &g->members[i];
	struct h_ticket words;
	bool joined, over;
	int err = 0;

	h_receiver_lock(&g->r);
	joined = m->joined;
	over = m->left || m->gone;
	words = m->words;
	h_receiver_unlock(&g->r);
	if (!joined || m->watched)
		return 0;
	if (!over)
		err = h__dev_changing(g->r.manager->dev) ? -EAGAIN :
		      h_receiver_watch(&g->r, &words, -1, i, &m->watch);
	if (!err) {
		m->watched = true;
		g->watched++;
	}
	return err;
}

/* If one is gone already, that is told at once. */
static int watch_new(struct h_gather *g)
{
	uint32_t joined, i;
	int err = 0;

	h_receiver_lock(&g->r);
	joined = g->joined;
	h_receiver_unlock(&g->r);
	for (i = 0; i < g->count && g->watched != joined && !err; i++)
		err = watch_one(g, i);
	return err;
}

static int next_round(struct h_gather *g, const void **data)
{
	uint32_t i;
	int ret;

	h_receiver_lock(&g->r);
	i = g->received % ROUNDS;
	if (g->received - g->released == ROUNDS) {
		ret = -EBUSY;
	} else if (g->ended || !g->complete[i]) {
		ret = g->ended ? g->ended : -EAGAIN;
	} else {
		if (data)
			*data = (const char *)g->r.data + i * g->stride;
		g->received++;
		ret = 0;
	}
	h_receiver_unlock(&g->r);
	return ret;
}

int h_gather_receive(struct h_gather *g, const void **data, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	unsigned int rounds = 0;

	for (;;) {
		uint32_t seen = h_receiver_events(&g->r);
		int ret = watch_new(g);
		/* Held back, or by who changes the tables: what has arrived has nevertheless. */
		bool again = ret == -EAGAIN || ret == -ETIMEDOUT;

		if (ret && !again)
			return ret;
		/* What finds no room goes while this waits. */
		inform(g, H_NOWAIT);
		ret = next_round(g, data);
		if (ret != -EAGAIN)
			return ret;
		ret = h__go_on(&rounds, deadline);
		if (!ret)
			ret = h__receiver_wait(&g->r, seen, again, deadline);
		if (ret)
			return ret;
	}
}

int h_gather_release(struct h_gather *g)
{
	int ret = -EINVAL;
	uint32_t i;

	h_receiver_lock(&g->r);
	if (g->released != g->received) {
		i = g->released++ % ROUNDS;
		g->complete[i] = false;
		h__entry_arm(&g->r.metadata[i]);
		ret = 0;
	}
	h_receiver_unlock(&g->r);
	if (!ret)
		inform(g, h_deadline(H_GATHER_DRAIN_NS));
	return ret;
}

/* ---- seeds ---- */

uint64_t h_gather_offset(const struct h_gather *g, uint32_t member)
{
	return member < g->count ? g->members[member].share.ticket.base :
				   g->length;
}

int h_gather_seed(const struct h_gather *g, uint32_t member, struct h_seed *seed)
{
	struct h_seed_fields f = { .kind = H_SEED_GATHER };

	if (member >= g->count)
		return -ERANGE;
	f.ticket = g->members[member].share.ticket;
	f.ticket.meta_index = ROUNDS + member * H_GATHER_ENTRIES;
	f.entries = (uint32_t)g->members[member].share.counter;	/* 2^32: 0 */
	f.more = g->stride;
	h__seed_put(seed, &f);
	return 0;
}

/* ---- from create to destroy ---- */

static int divide(struct h_gather *g, const uint64_t *lengths)
{
	struct h_share whole = { .counter = 1ull << 32 }, *shares;
	uint32_t i;
	int err;

	h_slot_ticket(g->r.slot, 0, 0, 0, &whole.ticket);
	whole.ticket.length = g->length;
	whole.ticket.key = g->key;
	shares = calloc(g->count, sizeof(*shares));
	if (!shares)
		return -ENOMEM;
	err = h_share_split(&whole, g->count, lengths, shares);
	for (i = 0; i < g->count && !err; i++)
		g->members[i].share = shares[i];
	free(shares);
	return err;
}

static void grant(struct h_gather *g)
{
	uint32_t i;

	h_receiver_lock(&g->r);
	for (i = 0; i < ROUNDS; i++)
		h__entry_grant(&g->r.metadata[i], g->key, i * g->stride,
			       i * g->stride + g->length);
	for (i = 0; i < g->count * H_GATHER_ENTRIES; i++)
		h__entry_grant(&g->r.metadata[ROUNDS + i], g->key, 0, 0);
	g->granted = true;
	h_receiver_unlock(&g->r);
}

/* Equal parts are divided by h_share_split() as well. */
static int add_lengths(struct h_gather *g, const uint64_t *lengths,
		       uint64_t length)
{
	uint32_t i;

	for (i = 0; i < g->count; i++) {
		uint64_t n = lengths ? lengths[i] : length;

		if (n > HAMLYN_MAX_MESSAGE / 2 - g->length)
			return -E2BIG;
		g->length += n;
	}
	g->stride = (g->length + 63) & ~63ull;
	return 0;
}

static int gather_init(struct h_gather *g, struct h_manager *m,
		       const uint64_t *lengths)
{
	const struct h_receiver_attr at = {
		.length = ROUNDS * g->stride,
		.entries = ROUNDS + g->count * H_GATHER_ENTRIES,
		.mode = HAMLYN_SLOT_PARANOID_ONE_SHOT,
		.arrivals = ROUNDS + 3 * g->count,	/* and a watch each */
	};
	int err;

	err = h__key(&g->key);
	if (!err)
		err = h_receiver_init(&g->r, m, &gather_class, &at);
	if (err)
		return err;
	err = divide(g, lengths);
	if (err)
		h__receiver_drop(&g->r);
	else
		grant(g);
	return err;
}

int h_gather_create(struct h_manager *m, uint32_t members,
		    const uint64_t *lengths, uint64_t length,
		    struct h_gather **gather)
{
	struct h_gather *g;
	int err = -ENOMEM;

	*gather = NULL;
	if (!members || members > MOST_MEMBERS)
		return h__refuse(m->dev, -EINVAL, "%u members: 1 to %u", members,
				 MOST_MEMBERS);
	g = calloc(1, sizeof(*g));
	if (!g)
		return -ENOMEM;
	g->count = members;
	g->members = calloc(members, sizeof(*g->members));
	if (g->members)
		err = add_lengths(g, lengths, length);
	if (!err)
		err = gather_init(g, m, lengths);
	if (err) {
		free(g->members);
		free(g);
		return err;
	}
	*gather = g;
	return 0;
}

static int unwatch_all(struct h_gather *g)
{
	uint32_t i;
	int err;

	for (i = 0; i < g->count; i++) {
		if (!g->members[i].watch)
			continue;
		err = h_unwatch(g->members[i].watch);
		if (err)
			return err;
		g->members[i].watch = NULL;
		g->members[i].watched = false;
		g->watched--;
	}
	return 0;
}

int h_gather_destroy(struct h_gather *g)
{
	int err;

	if (!g)
		return 0;
	/* Or members might be told first that it is gone. */
	inform(g, h_deadline(H_GATHER_DRAIN_NS));
	h__manager_left(g->r.manager, H_GATHER_DRAIN_NS);
	err = unwatch_all(g);
	if (!err)
		err = h_receiver_exit(&g->r);
	if (err)
		return err;
	free(g->members);
	free(g);
	return 0;
}
