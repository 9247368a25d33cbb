/* SPDX-License-Identifier: MIT */
/* A server, and its clients. */
#ifndef H_SERVER_INTERNAL_H
#define H_SERVER_INTERNAL_H

#include <hamlyn/server.h>

#include "channel/channel.h"

/* Why a client is looked at when the timer says so: nothing else would tell. */
enum h_client_late {
	H_CLIENT_PROMPT,
	H_CLIENT_HELD,		/* its handler said -EAGAIN for a reason of its own */
	H_CLIENT_ENDING,	/* it is to know that this is the end, and has not said so */
};

struct h_client {
	struct h_server *server;
	struct h_channel *channel;
	struct h_client *next;
	struct h_client *prev;
	uid_t uid;
	bool welcome;			/* on_client was called */
	bool holds;			/* message: the handler is to be called again */
	enum h_client_late late;
	int reason;			/* for on_end */
	struct h_message message;
};

struct h_server {
	struct h_dev *dev;
	struct h_manager *manager;
	struct h_listener *listener;
	struct h_server_attr attr;	/* uids are not kept */
	struct h_channel_attr channel;
	int (*handler)(struct h_channel *channel, const struct h_message *message, void *arg);
	void *arg;
	void (*on_room)(struct h_channel *channel);	/* of a layer above: it is ready */
	struct h_client *clients;
	uint32_t count;			/* atomic */
	uint32_t late;			/* clients that the timer is for */
	bool deaf;			/* no descriptor left: the listener is not watched */
	bool inside;			/* in a callback */
	bool watched;			/* h_server_fd() has added the manager's descriptor */
	uint32_t stopped;		/* and no h_server_run() has returned for it; atomic */
	int64_t tick_ns;		/* until the timer's next, and twice as long each time */
	int epoll;
	int stop;
	int timer;
	struct h_fork_fds fork_fds[2];
};

/* ---- server_client.c ---- */

/* Take one client that waits: 0, or an errno of accepting. */
int h__server_accept(struct h_server *s);
/* Look after those that are late. */
void h__clients_look(struct h_server *s);
/* It is one of the server's, and outside of its callbacks. */
void h__server_drop(struct h_server *s, struct h_channel *channel, int reason);
/* Say to all of them that this is the end, and wait until they know. */
int h__clients_end(struct h_server *s, int64_t deadline_ns);

/* ---- server.c ---- */

/* From now on @on_room is called, before anything else, when a channel may have room again. */
void h__server_on_room(struct h_server *s, void (*on_room)(struct h_channel *channel));
/* As h_server_dispatch(), without a system call unless @all: what clients have sent only. */
void h__server_look(struct h_server *s, bool all);
/* There is a client more that the timer is for. */
void h__server_late(struct h_server *s);

#endif /* H_SERVER_INTERNAL_H */
