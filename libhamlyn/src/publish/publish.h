/* SPDX-License-Identifier: MIT */
/*
 * Publishers and subscribers, and what they say to each other.
 *
 * The first message of a subscriber says what it wants, the first of a publisher
 * whether it has that. All that follows are publications: a head, the same for
 * all, and the bytes.
 */
#ifndef H_PUBLISH_INTERNAL_H
#define H_PUBLISH_INTERNAL_H

#include <hamlyn/publish.h>

#include "server/server.h"

#define H_HELLO_BYTES	16	/* magic; policy, history */
#define H_WELCOME_BYTES	24	/* magic; enum h_welcome; number of the next message */
#define H_HEAD_BYTES	16	/* number of the message; 0, so that data is aligned */

#define H_HELLO_MAGIC	0x3142555348ULL		/* "HSUB1" */
#define H_WELCOME_MAGIC	0x3142555048ULL		/* "HPUB1" */

enum h_welcome {
	H_WELCOME,
	H_WELCOME_NOT,		/* on_subscriber said so */
	H_WELCOME_NO_WAIT,	/* the publisher waits for nobody */
	H_WELCOME_NO_MORE,	/* nor for this user, for now */
};

/* One subscriber, as the publisher has it. */
struct h_reader {
	struct h_publisher *publisher;
	struct h_channel *channel;
	struct h_reader *next_reader;
	struct h_reader *prev_reader;
	struct h_subscription info;
	bool welcome;		/* it has said what it wants, and has it */
	bool stuck;		/* it has no room, as far as is known */
	int doomed;		/* an errno: it is to be dropped */
	int reason;		/* why it ends, if that is not the channel's; or 0 */
	uint64_t next;		/* number of the message that it gets next */
	int64_t in_the_way_ns;	/* since then, or 0; H_WAIT */
};

/* A message that is kept. */
struct h_kept {
	struct h_lent *lent;
	size_t length;		/* with its head */
};

/* A user that is not waited for. */
struct h_given_up {
	uid_t uid;
	int64_t until_ns;
};

#define H_GIVEN_UP	16

struct h_publisher {
	struct h_server *server;
	struct h_publisher_attr attr;	/* uids are not kept */
	uint32_t lock;			/* what follows */
	uint32_t owner;			/* thread that has it; atomic */
	struct h_reader *readers;
	struct h_kept *kept;		/* by number, modulo attr.history */
	uint64_t next;			/* number of the next message */
	struct h_lent *loans;
	struct h_lent *spare;		/* for the next ones, when they have left */
	uint64_t loans_made;
	int64_t looked_ns;		/* at the listener */
	int64_t nic_again_ns;		/* until then the NIC is not waited for */
	struct h_given_up given_up[H_GIVEN_UP];
	struct h_publisher_counters counters;
};

struct h_subscriber {
	struct h_channel *channel;
	uint64_t next;			/* number of the message that is expected */
	bool watched;			/* by its descriptor */
};

/* ---- publisher.c ---- */

/* -EBUSY in a callback. Nobody sleeps with it. */
int h__publisher_lock(struct h_publisher *p);
void h__publisher_unlock(struct h_publisher *p);
/* Look at what has come, and now and then at who wants to come. Locked. */
void h__publisher_look(struct h_publisher *p);

/* ---- publisher_reader.c; locked ---- */

/* The server's callbacks. */
int h__reader_add(struct h_channel *channel, void *arg);
int h__reader_hears(struct h_channel *channel, const struct h_message *m, void *arg);
void h__reader_end(struct h_channel *channel, int reason, void *arg);
void h__reader_room(struct h_channel *channel);

/* Send all of them the last message, or as their policies say. */
void h__readers_send(struct h_publisher *p);
/* The one of H_WAIT that has been in the way of the next message for longest, or NULL. */
struct h_reader *h__reader_in_the_way(struct h_publisher *p);
/* For how long it is waited for still. */
int64_t h__reader_patience(struct h_publisher *p, const struct h_reader *r, int64_t now_ns);
void h__reader_give_up(struct h_reader *r);
/* Are there messages that are kept, and are to be sent? */
bool h__readers_lag(const struct h_publisher *p);
/* Nobody has @l any more: those that have it as a rest get a copy. */
void h__readers_leave(struct h_publisher *p, struct h_lent *l);
/* Those that can be sent nothing any more. */
void h__readers_sweep(struct h_publisher *p);

/* ---- publisher_send.c ---- */

void h__publisher_free_kept(struct h_publisher *p);

#endif /* H_PUBLISH_INTERNAL_H */
