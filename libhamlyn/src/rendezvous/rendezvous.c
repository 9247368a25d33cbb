// SPDX-License-Identifier: MIT
/*
 * One end of a connection: what it says of itself on a card, and what it makes of
 * the other end's.
 *
 * All that each end needs is on the cards: also where the credits go, which a stream
 * that was made from a seed alone is told by its first record. So both know from the
 * beginning whom to watch, and neither waits for one who never says a word.
 */
#include <time.h>
#include <unistd.h>

#include "rendezvous/rendezvous.h"

/* Where things are on a card. */
#define CREDITS		H_SEED_BYTES
#define LIMIT		(2 * H_SEED_BYTES)
#define KIND		(LIMIT + 8)
#define CHECK		(KIND + 4)

/* While it is held back: about as long as a few wrong keys take by default. */
#define WATCH_PAUSE_NS	100000
#define WATCH_TRIES	10

_Static_assert(CHECK + 4 == H_CARD_BYTES, "a card's bytes");

int h__no_descriptor(struct h_manager *m, int err)
{
	if (err != -EMFILE && err != -ENFILE)
		return err;
	return h__refuse(m->dev, err,
			 "there is no descriptor to be had for the connection");
}

static int make_tickets(struct h_half *h)
{
	int err;

	err = h_slot_ticket_fd(h->receiver->r.slot, 0, 0, &h->fds[0]);
	if (!err)
		err = h_slot_ticket_fd(h->sender->r.slot, 0, 0, &h->fds[1]);
	return h__no_descriptor(h->manager, err);
}

/* @half says already of what kind it is, and its limit. */
int h__half_create(struct h_half *h, struct h_manager *m,
		   const struct h_stream_attr *attr, bool tickets)
{
	uint32_t flags = tickets ? HAMLYN_SLOT_TICKET_ONLY : 0;
	int err;

	h->manager = m;
	h->sender = NULL;
	h->fds[0] = -1;
	h->fds[1] = -1;
	err = h__stream_receiver_prepare(m, attr, flags, &h->receiver);
	if (err)
		return err;
	h->receiver->messages = h->kind == H_KIND_CHANNEL;
	err = h__stream_sender_prepare(m, flags, &h->sender);
	if (!err && tickets)
		err = make_tickets(h);
	if (err)
		h__half_destroy(h);
	return err;
}

void h__half_close_fds(struct h_half *h)
{
	h__close_fds(h->fds);
}

/* Of a call that fails: h_explain() says the same after it as before. */
void h__half_destroy(struct h_half *h)
{
	struct h_why why;

	h__why_keep(h->manager->dev, &why);
	h__half_close_fds(h);
	if (h->sender)
		h__stream_sender_destroy(h->sender);
	h__stream_receiver_end(h->receiver);
	h->sender = NULL;
	h->receiver = NULL;
	h__why_restore(h->manager->dev, &why);
}

void h__half_card(const struct h_half *h, unsigned char *card)
{
	struct h_seed seed;

	h_stream_receiver_seed(h->receiver, &seed);
	memcpy(card, seed.bytes, H_SEED_BYTES);
	h__stream_sender_credits(h->sender, &seed);
	memcpy(card + CREDITS, seed.bytes, H_SEED_BYTES);
	h__put(card + LIMIT, h->limit, 8);
	h__put(card + KIND, h->kind, 4);
	h__put(card + CHECK, h__check_word(card, CHECK), 4);
}

static bool unwatched(const struct h_half *h)
{
	return h__read_once(&h->sender->unwatched) || h__stream_unwatched(h->receiver);
}

/*
 * Whom it may watch is a matter of a moment for a user that has presented wrong keys,
 * perhaps because strangers gave them to it. It must not be a way to have others turned
 * away: so if it takes longer, the end is taken as it is, and watched by who uses it.
 */
static void watch_both(struct h_half *h)
{
	const struct timespec pause = { .tv_nsec = WATCH_PAUSE_NS };
	unsigned int tries;

	for (tries = 0; tries < WATCH_TRIES && unwatched(h); tries++) {
		nanosleep(&pause, NULL);
		h__stream_sender_watch(h->sender);
		h__stream_receiver_watch(h->receiver);
	}
}

/* The watches tell at once if there is nothing at the other end. */
static int still_there(struct h_half *h)
{
	watch_both(h);
	h_manager_poll(h->manager);
	return h__stream_failed(h->sender) ? -ECONNRESET : 0;
}

int h__half_join(struct h_half *h, const unsigned char *card, const int *fds)
{
	struct h_seed seed;
	int err;

	if (h__get(card + CHECK, 4) != h__check_word(card, CHECK))
		return -EINVAL;
	if (h__get(card + KIND, 2) != (h->kind & 0xffff))
		return -EPROTOTYPE;
	if (h__get(card + KIND, 4) != h->kind)
		return -EPROTO;
	h->peer_limit = h__get(card + LIMIT, 8);
	memcpy(seed.bytes, card + CREDITS, H_SEED_BYTES);
	err = h__stream_receiver_attach(h->receiver, &seed, fds ? fds[1] : -1);
	if (err)
		return err;
	memcpy(seed.bytes, card, H_SEED_BYTES);
	err = h__stream_sender_attach(h->sender, &seed, fds ? fds[0] : -1);
	return err ? err : still_there(h);
}
