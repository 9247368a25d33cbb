// SPDX-License-Identifier: MIT
/*
 * One end of a connection: what it says of itself on a card, and what it makes of
 * the other end's.
 *
 * All that each end needs is on the cards: also where the credits go, which a stream
 * that was made from a seed alone is told by its first record. So both know from the
 * beginning whom to watch, and neither waits for one who never says a word.
 */
#include <unistd.h>

#include "rendezvous.h"

/* Where things are on a card. */
#define CREDITS		H_SEED_BYTES
#define LIMIT		(2 * H_SEED_BYTES)
#define KIND		(LIMIT + 8)
#define CHECK		(KIND + 4)

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

/*
 * The watches tell at once if there is nothing at the other end. Without them others could
 * leave us any number of ends whose other one is gone.
 */
static int still_there(struct h_half *h)
{
	if (h__read_once(&h->sender->unwatched) || h__stream_unwatched(h->receiver))
		return h__refuse(h->manager->dev, -EBUSY,
				 "held back for guesses: nobody can be watched for a moment");
	h_manager_poll(h->manager);
	return h__stream_failed(h->sender) ? -ECONNRESET : 0;
}

int h__half_join(struct h_half *h, const unsigned char *card, const int *fds)
{
	struct h_seed seed;
	int err;

	if (h__get(card + CHECK, 4) != h__check_word(card, CHECK))
		return -EINVAL;
	if (h__get(card + KIND, 4) != h->kind)
		return -EPROTOTYPE;
	h->peer_limit = h__get(card + LIMIT, 8);
	memcpy(seed.bytes, card + CREDITS, H_SEED_BYTES);
	err = h__stream_receiver_attach(h->receiver, &seed, fds ? fds[1] : -1);
	if (err)
		return err;
	memcpy(seed.bytes, card, H_SEED_BYTES);
	err = h__stream_sender_attach(h->sender, &seed, fds ? fds[0] : -1);
	return err ? err : still_there(h);
}
