// SPDX-License-Identifier: MIT
/* One subscriber, as its publisher has it: what it wants, what it gets, when it is given up. */
#include <stdlib.h>

#include "publish/publish.h"

#define ROOM_NS		10000000	/* that the NIC may take to make room in its work queue */
#define GIVEN_UP_FOR	100		/* times the patience, or ROOM_NS, that somebody took */

/* ---- sending ---- */

static uint64_t first_kept(const struct h_publisher *p)
{
	return p->next > p->attr.history ? p->next - p->attr.history : 1;
}

static void drop_until(struct h_reader *r, uint64_t number)
{
	uint64_t n = number > r->next ? number - r->next : 0;

	r->next += n;
	r->info.dropped += n;
	r->publisher->counters.dropped += n;
}

/* Is it the work queue that is full, which all share? */
static bool has_room(struct h_channel *ch)
{
	bool room;

	if (h__sending_lock(ch->sender, H_NOWAIT))
		return false;
	room = !ch->rest && !h__stream_wait_for_ticket(ch->sender, H_NOWAIT);
	h__channel_sent(ch);
	return room;
}

/*
 * As h__channel_send_lent() without waiting for the subscriber, but for the NIC. That may
 * take as long as a host takes nothing, from which subscribers on others wait for nothing:
 * after it was in vain it is not waited for again, whoever is next, for a hundred times as long.
 */
static int send_one(struct h_reader *r, const struct h_kept *k)
{
	struct h_publisher *p = r->publisher;
	struct h_wait wait = { 0 };
	int64_t deadline = 0;
	int err;

	for (;;) {
		err = h__channel_send_lent(r->channel, k->lent, k->length, H_NOWAIT);
		if (err != -EAGAIN || !has_room(r->channel))
			return err;
		if (!deadline) {
			if (h__now_ns() < p->nic_again_ns)
				return err;
			deadline = h__now_ns() + ROOM_NS;
		}
		if (h__wait_for_room(p->server->manager, &wait, deadline))
			break;
	}
	p->nic_again_ns = h__now_ns() + GIVEN_UP_FOR * ROOM_NS;
	return err;
}

/* What is kept for it, as far as there is room. */
static void send_kept(struct h_reader *r)
{
	struct h_publisher *p = r->publisher;
	int err = 0;

	drop_until(r, first_kept(p));
	while (r->next < p->next && !err) {
		err = send_one(r, &p->kept[r->next % p->attr.history]);
		if (err == -EMSGSIZE) {
			/* It has said that it takes none that long. */
			drop_until(r, r->next + 1);
			err = 0;
		} else if (!err) {
			r->next++;
			r->info.sent++;
			p->counters.sent++;
			r->in_the_way_ns = 0;
		}
	}
	r->stuck = err;
	if (err && err != -EAGAIN)
		r->doomed = err;
}

static void send_to(struct h_reader *r)
{
	if (!r->stuck)
		send_kept(r);
	if (r->info.policy == H_DROP_NEWEST)
		drop_until(r, r->publisher->next);
	else
		drop_until(r, first_kept(r->publisher));
}

void h__readers_send(struct h_publisher *p)
{
	struct h_reader *r;

	for (r = p->readers; r; r = r->next_reader)
		if (r->welcome && !r->doomed)
			send_to(r);
	h__readers_sweep(p);
}

/* Its channel has news: perhaps room. */
void h__reader_room(struct h_channel *channel)
{
	struct h_reader *r = h_channel_data(channel);

	if (!r->welcome || r->doomed || !r->stuck)
		return;
	send_kept(r);
	if (r->info.policy == H_DROP_NEWEST)
		drop_until(r, r->publisher->next);
}

/* ---- those that lag ---- */

static bool is_in_the_way(const struct h_publisher *p, const struct h_reader *r)
{
	return r->info.policy == H_WAIT && r->welcome && !r->doomed &&
	       r->next + p->attr.history <= p->next;
}

struct h_reader *h__reader_in_the_way(struct h_publisher *p)
{
	struct h_reader *r, *longest = NULL;
	int64_t now = 0;

	/* The time of all runs from now on, or each would have its own after the others'. */
	for (r = p->readers; r; r = r->next_reader) {
		if (!is_in_the_way(p, r))
			continue;
		if (!now)
			now = h__now_ns();
		if (!r->in_the_way_ns)
			r->in_the_way_ns = now;
		if (!longest || r->in_the_way_ns < longest->in_the_way_ns)
			longest = r;
	}
	return longest;
}

bool h__readers_lag(const struct h_publisher *p)
{
	const struct h_reader *r;

	for (r = p->readers; r; r = r->next_reader)
		if (r->welcome && !r->doomed && r->next < p->next)
			return true;
	return false;
}

void h__readers_leave(struct h_publisher *p, struct h_lent *l)
{
	struct h_reader *r;
	int err;

	if (!h__read_once(&l->rests))
		return;
	for (r = p->readers; r; r = r->next_reader) {
		err = h__channel_copy_rest(r->channel, l);
		if (err)
			r->doomed = err;
	}
}

void h__readers_sweep(struct h_publisher *p)
{
	struct h_reader *r, *next;

	for (r = p->readers; r; r = next) {
		next = r->next_reader;
		if (r->doomed)
			h__server_drop(p->server, r->channel, r->doomed);
	}
}

/* ---- users that are not waited for ---- */

static struct h_given_up *given_up_entry(struct h_publisher *p, uid_t uid)
{
	struct h_given_up *g = p->given_up, *first = g;
	unsigned int i;

	for (i = 0; i < H_GIVEN_UP; i++) {
		if (g[i].until_ns && g[i].uid == uid)
			return &g[i];
		if (g[i].until_ns < first->until_ns)
			first = &g[i];
	}
	return first;
}

static bool is_waited_for(struct h_publisher *p, uid_t uid)
{
	const struct h_given_up *g = given_up_entry(p, uid);

	return !g->until_ns || g->uid != uid || g->until_ns <= h__now_ns();
}

/* One that was given up answers for its user, or that could keep the publisher with the next. */
int64_t h__reader_patience(struct h_publisher *p, const struct h_reader *r, int64_t now_ns)
{
	int64_t spent = now_ns - r->in_the_way_ns;

	if (p->attr.patience_ns < 0)
		return INT64_MAX;
	if (!is_waited_for(p, r->info.peer.uid) || spent >= p->attr.patience_ns)
		return 0;
	return p->attr.patience_ns - spent;
}

void h__reader_give_up(struct h_reader *r)
{
	struct h_publisher *p = r->publisher;
	uid_t uid = r->info.peer.uid;
	int64_t most = INT64_MAX / 4 / GIVEN_UP_FOR;
	int64_t patience = p->attr.patience_ns < most ? p->attr.patience_ns : most;

	*given_up_entry(p, uid) = (struct h_given_up) {
		.uid = uid,
		.until_ns = h__now_ns() + GIVEN_UP_FOR * patience,
	};
	p->counters.given_up++;
	h__server_drop(p->server, r->channel, -ETIMEDOUT);
}

/* ---- from hello to end ---- */

int h__reader_add(struct h_channel *channel, void *arg)
{
	struct h_publisher *p = arg;
	struct h_reader *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->publisher = p;
	r->channel = channel;
	h_channel_peer(channel, &r->info.peer);
	h_channel_set_data(channel, r);
	r->next_reader = p->readers;
	if (p->readers)
		p->readers->prev_reader = r;
	p->readers = r;
	return 0;
}

static void unlink_reader(struct h_reader *r)
{
	if (r->prev_reader)
		r->prev_reader->next_reader = r->next_reader;
	else
		r->publisher->readers = r->next_reader;
	if (r->next_reader)
		r->next_reader->prev_reader = r->prev_reader;
}

void h__reader_end(struct h_channel *channel, int reason, void *arg)
{
	struct h_reader *r = h_channel_data(channel);
	struct h_publisher *p = arg;

	unlink_reader(r);
	if (r->welcome && p->attr.on_end)
		p->attr.on_end(&r->info, reason, p->attr.arg);
	free(r);
}

static bool takes_hello(struct h_reader *r, const struct h_message *m)
{
	const unsigned char *p = m->data;

	if (r->welcome || m->length != H_HELLO_BYTES || h__get(p, 8) != H_HELLO_MAGIC)
		return false;
	r->info.policy = (uint32_t)h__get(p + 8, 4);
	r->info.history = (uint32_t)h__get(p + 12, 4);
	return r->info.policy <= H_WAIT;
}

static enum h_welcome judge(struct h_reader *r)
{
	struct h_publisher *p = r->publisher;

	if (r->info.policy == H_WAIT && !p->attr.patience_ns)
		return H_WELCOME_NO_WAIT;
	if (r->info.policy == H_WAIT && !is_waited_for(p, r->info.peer.uid))
		return H_WELCOME_NO_MORE;
	if (p->attr.on_subscriber && p->attr.on_subscriber(&r->info, p->attr.arg))
		return H_WELCOME_NOT;
	return H_WELCOME;
}

/* It begins with what is kept, as far as it wants that. */
static void begin(struct h_reader *r)
{
	struct h_publisher *p = r->publisher;
	uint64_t kept = p->next - first_kept(p);

	r->next = p->next - (r->info.history < kept ? r->info.history : kept);
	r->welcome = true;
}

/* The server's handler: whoever says anything else, or more, is dropped. */
int h__reader_hears(struct h_channel *channel, const struct h_message *m, void *arg)
{
	struct h_reader *r = h_channel_data(channel);
	unsigned char bytes[H_WELCOME_BYTES];
	enum h_welcome answer;
	int err;

	(void)arg;
	if (!takes_hello(r, m))
		return -EPROTO;
	answer = judge(r);
	if (answer == H_WELCOME)
		begin(r);
	h__put(h__put(h__put(bytes, H_WELCOME_MAGIC, 8), answer, 8), r->next, 8);
	err = h_channel_send(channel, bytes, sizeof(bytes), H_NOWAIT);
	/* It has all its buffers, but that is its word. */
	if (err || answer != H_WELCOME)
		return err == -EAGAIN ? -EPROTO : err ? err : -ENODATA;
	send_kept(r);
	return r->doomed;
}
