/* SPDX-License-Identifier: MIT */
/* A channel: messages on the two streams of a connection. */
#ifndef H_CHANNEL_INTERNAL_H
#define H_CHANNEL_INTERNAL_H

#include <hamlyn/channel.h>

#include "rendezvous/rendezvous.h"

#define H_CHANNEL_DEFAULT_MAX	(16ULL << 20)

/* A message in several records, as far as it has come. receiver->reading. */
struct h_assembly {
	char *to;
	size_t room;
	size_t charged;		/* of it, to the manager's budget: it was a spare */
	size_t done;
	uint64_t total;		/* 0: none */
	bool lent;		/* to is the caller's */
	bool drop;		/* nobody waits for it: nothing is kept of it */
	uint32_t label;		/* or 0 */
};

/* A long message that the caller has, or a free place for one. */
struct h_long {
	void *heap;
	size_t room;
	uint64_t serial;	/* 0: free */
	uint32_t next;		/* free place */
};

/* Memory of the manager that a message leaves from: a loan, or on its way. */
struct h_lent {
	struct h_lent *next;
	char *memory;
	size_t room;
	size_t length;		/* that the caller wanted */
	uint64_t serial;	/* of the loan */
	int64_t handle;		/* of the last record that leaves from it, or -1; atomic */
	uint32_t rests;		/* channels that have a part of it to send still; atomic */
};

/* A request of ours that has no reply yet, or whose reply was not taken yet. */
struct h_request {
	struct h_request *next;
	uint32_t id;
	bool answered;
	struct h_message reply;
};

#define H_MOST_REQUESTS	1024

/* A message that came while only a reply was waited for. */
struct h_stored {
	struct h_stored *next;
	struct h_message message;
};

/*
 * Of these there may be as many bytes as the longest message has, or H_LEAST_STORED, and one
 * more; and so many, because what there is to free is in a table (channel_long.c) that is
 * copied with the channel locked.
 */
#define H_LEAST_STORED	65536
#define H_MOST_STORED	4096

/* A request of the other end's that was received, for servers that answer by h_channel_send(). */
struct h_asked {
	uint32_t id;
	bool released;
	pthread_t thread;	/* that has received it */
};

#define H_MOST_ASKED	16

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
	bool dialled;			/* manager and device are for it alone: they end with it */
	void *data;			/* the program's: h_channel_set_data() */
	struct h_peer peer;
	/* sender->sending */
	char *rest;			/* of the last message, not sent yet; atomic */
	struct h_lent *rest_lent;	/* that it is in, or NULL: it is on the heap */
	size_t rest_length;
	size_t rest_done;
	bool pushing;			/* it is being sent: who polls there does not */
	struct h_debt debt;		/* while there is a rest */
	uint64_t sent, sent_bytes;	/* for h_channel_stats() */
	bool torn;			/* it is lost: nothing can follow */
	bool blocked;			/* a send returned -EAGAIN */
	bool armed;			/* send_ready() is called */
	/* receiver->reading */
	struct h_assembly in;
	uint64_t received, received_bytes;	/* for h_channel_stats() */
	bool told;			/* the end, or that errno, was returned; atomic */
	/* lock */
	uint32_t lock;
	struct h_long *longs;
	uint32_t longs_max;		/* grown by who holds reading */
	uint32_t longs_free;		/* the first one; longs_max: none */
	uint64_t longs_made;
	struct h_message kept;		/* the next one: was too long for the caller */
	struct h_stored *stored;	/* and those behind it */
	struct h_stored **stored_tail;
	size_t stored_bytes;		/* atomic */
	uint32_t stored_count;		/* atomic */
	struct h_request *requests;
	uint32_t request_count;
	uint32_t last_id;
	union {
		struct {
			int failed;		/* an errno for ever: reading */
			uint32_t here;		/* kept, stored and answers; atomic */
		};
		uint64_t first;			/* both: before what comes; atomic */
	};
	uint32_t asked_count;		/* atomic */
	struct h_asked asked[H_MOST_ASKED];	/* the oldest first */
	bool replies;			/* it answers by h_channel_reply() only; atomic */
	struct h_lent *loans;		/* that the caller has */
	struct h_lent *leaving;		/* committed or abandoned: for the next ones */
	uint64_t loans_made;
	bool loan_refused;		/* the NIC has not sent what one had in it */
	/* */
	uint32_t waiting;		/* threads that were refused reading; atomic */
	bool resting;			/* who holds reading waits for messages; atomic */
	/* receiver->r.lock */
	struct h_channel_call call;
	struct h_leaving closing;	/* it is closed, and has not left */
};

/* ---- channel.c ---- */

/* Whom to call now. */
struct h_channel_call h__channel_call(struct h_channel *ch);

/* ---- channel_dial.c ---- */

/* What h__channel_dial() made below the channel, which is gone: 0 or -EBUSY. */
int h__channel_hang_up(struct h_manager *m);

/*
 * For what has one dialled channel, and a descriptor: nobody else dispatches its manager. Once the
 * descriptor was asked for, @watched, receiving looks after that, too.
 */
int h__dialled_fd(struct h_channel *ch, bool *watched);
int h__dialled_receive(struct h_channel *ch, bool watched, struct h_message *m, int64_t timeout_ns);
int h__dialled_release(struct h_channel *ch, struct h_message *m);

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
/* A request, or a reply. */
int h__channel_send_labelled(struct h_channel *ch, uint32_t label, const void *data,
			     size_t length, int64_t deadline_ns);
/* A request: whoever waits to send it takes in what comes, which nobody else may do. */
int h__channel_send_request(struct h_channel *ch, uint32_t id, const void *data, size_t length,
			    int64_t deadline_ns);
/* The first bytes of @l, without waiting until they have left. */
int h__channel_send_lent(struct h_channel *ch, struct h_lent *l, size_t length,
			 int64_t deadline_ns);
/* If the rest is in @l, it is copied, and @l is not needed for it any more. */
int h__channel_copy_rest(struct h_channel *ch, struct h_lent *l);
/* Nothing can follow, not even the end: closing it breaks the channel for the other end. */
void h__channel_tear(struct h_channel *ch);
/* Nobody will send the rest any more. */
void h__channel_drop_rest(struct h_channel *ch);
/* Give up sending. */
void h__channel_sent(struct h_channel *ch);
/* Its sender is given up in this way, also by the layer below. */
void h__channel_owns(struct h_channel *ch);
/* There is somebody to call now; a send may have returned -EAGAIN before. */
void h__channel_ready_set(struct h_channel *ch);

/* ---- channel_loan.c ---- */

int h__lent_init(struct h_manager *m, size_t room, struct h_lent *l);
/* When all has left. */
void h__lent_exit(struct h_manager *m, struct h_lent *l);
/* The NIC reads it until @handle has left, and all before that. */
void h__lent_sent(struct h_lent *l, int64_t handle);
/* Has all that was sent from it left? Or the errno with which the NIC refused some of it. */
int h__lent_has_left(const struct h_manager *m, const struct h_lent *l);
/* Of the channel, which has no sender any more. */
void h__loans_exit(struct h_channel *ch);
/* What the child of fork() has of them. */
void h__loans_forget(struct h_channel *ch);
/* Did the NIC refuse one? Asked once for each time. */
bool h__loan_was_refused(struct h_channel *ch);

/* ---- channel_receive.c ---- */

int h__channel_receive_reply(struct h_channel *ch, uint32_t id, struct h_message *m,
			     int64_t deadline_ns);
/* Put away what has come, for whoever it is for, as long as there is room. Without waiting. */
void h__channel_take_in(struct h_channel *ch);
/* Was it received, and not released? A copy tells as well; it is of this channel. */
bool h__channel_holds(struct h_channel *ch, const struct h_message *m);

/* The number of the request that it is, or 0. */
static inline uint32_t h__message_id(const struct h_message *m)
{
	return (uint32_t)(m->is_long >> 32);
}

/* ---- channel_request.c: requests under way, and what came that is for others ---- */

/* Is there anybody for the reply to @id? */
bool h__channel_awaits(struct h_channel *ch, uint32_t id);
/* The same: then the caller has it, and the request is done. */
bool h__channel_end_waiting(struct h_channel *ch, uint32_t id);
/* Hand a reply to whom it is for, or drop it. */
void h__channel_answer(struct h_channel *ch, uint32_t id, struct h_message *m);
/* 1 with the reply, 0 if there is none yet, -EINVAL if there is no such request. */
int h__channel_take_answer(struct h_channel *ch, uint32_t id, struct h_message *m);
/* Keep a message for h_channel_receive(); it is lost if there is no memory. */
int h__channel_store(struct h_channel *ch, struct h_message *m);
/* 1 with the first of them, 0, or -EMSGSIZE if it has more than @most bytes. */
int h__channel_take_stored(struct h_channel *ch, struct h_message *m, size_t most);
/* It is the first one still: there is none. */
void h__channel_keep(struct h_channel *ch, const struct h_message *m);
/* No more can be kept: what comes stays where it is. */
bool h__channel_is_full(struct h_channel *ch);
/* There is news for those who wait. */
void h__channel_tell(struct h_channel *ch);
/* The request that a plain message answers, or 0; it was received; answered; released. */
uint32_t h__channel_unanswered(struct h_channel *ch);
void h__channel_asked(struct h_channel *ch, uint32_t id);
void h__channel_answered(struct h_channel *ch, uint32_t id);
void h__channel_asked_released(struct h_channel *ch, uint32_t id);
void h__channel_requests_free(struct h_channel *ch);

#endif /* H_CHANNEL_INTERNAL_H */
