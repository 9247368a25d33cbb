/* SPDX-License-Identifier: MIT */
/* A channel: messages on the two streams of a connection. */
#ifndef H_CHANNEL_INTERNAL_H
#define H_CHANNEL_INTERNAL_H

#include <hamlyn/channel.h>

#include "rendezvous.h"

#define H_CHANNEL_DEFAULT_MAX	(16ULL << 20)

/* A message in several records, as far as it has come. receiver->reading. */
struct h_assembly {
	char *to;
	size_t room;
	size_t done;
	uint64_t total;		/* 0: none */
	bool lent;		/* to is the caller's */
};

/* A long message that the caller has, or a free place for one. */
struct h_long {
	void *heap;
	size_t room;
	uint64_t serial;	/* 0: free */
	uint32_t next;		/* free place */
};

/* Whom h_channel_on_ready() has set, if any. */
struct h_channel_call {
	void (*ready)(struct h_channel *channel, void *arg);
	void *arg;
};

struct h_channel {
	struct h_manager *manager;
	uint32_t id;			/* of the process' channels, in its messages */
	struct h_stream_sender *sender;
	struct h_stream_receiver *receiver;
	uint64_t limit;			/* longest message that we take */
	uint64_t peer_limit;		/* that they take */
	bool joined;
	bool met;			/* peer is known */
	struct h_peer peer;
	/* sender->sending */
	char *rest;			/* of the last message, not sent yet; atomic */
	size_t rest_length;
	size_t rest_done;
	bool pushing;			/* it is being sent: who polls there does not */
	struct h_debt debt;		/* while there is a rest */
	bool torn;			/* it is lost: nothing can follow */
	bool blocked;			/* a send returned -EAGAIN */
	bool armed;			/* send_ready() is called */
	/* receiver->reading */
	struct h_assembly in;
	struct h_message kept;		/* the next one: received, not taken */
	int failed;			/* an errno for ever */
	bool told;			/* the end, or that errno, was returned; atomic */
	/* lock */
	uint32_t lock;
	uint32_t handed;		/* records before this were handed to us */
	uint32_t low;			/* and before this are released */
	unsigned char *done;		/* those between that are to be released */
	uint32_t done_mask;
	struct h_long *longs;
	uint32_t longs_max;		/* grown by who holds reading */
	uint32_t longs_free;		/* the first one; longs_max: none */
	uint64_t longs_made;
	/* receiver->r.lock */
	struct h_channel_call call;
};

/* ---- channel.c ---- */

/* Whom to call now. */
struct h_channel_call h__channel_call(struct h_channel *ch);

/* ---- channel_long.c ---- */

/* See to it that h__long_add() finds a place. reading held, for both. */
int h__longs_reserve(struct h_channel *ch);
/* What is to be freed with @m, which is the caller's from now on. */
void h__long_add(struct h_channel *ch, struct h_message *m, void *heap, size_t room);
/* Channel locked. 0, or -EALREADY if that was done before. */
int h__long_take(struct h_channel *ch, const struct h_message *m, void **heap, size_t *room);
void h__longs_exit(struct h_channel *ch);

/* ---- channel_send.c ---- */

/* Send the rest of the last message. sending held. */
int h__channel_push(struct h_channel *ch, int64_t deadline_ns);
/* The same without waiting for anything, if there is one and nobody else does. */
void h__channel_try_push(struct h_channel *ch);
int h__channel_pay(struct h_debt *d);
/* Give up sending. */
void h__channel_sent(struct h_channel *ch);
/* There is somebody to call now; a send may have returned -EAGAIN before. */
void h__channel_ready_set(struct h_channel *ch);

#endif /* H_CHANNEL_INTERNAL_H */
