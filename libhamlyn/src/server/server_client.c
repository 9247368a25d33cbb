// SPDX-License-Identifier: MIT
/* One client of a server, from its welcome to its end. */
#include <stdlib.h>

#include "server/server.h"

#define MESSAGES_AT_ONCE	32	/* then the others have their turn */
#define LOOK_NS			1000000	/* how often, while all are to end */

/* ---- ending ---- */

static void set_late(struct h_client *c, enum h_client_late late)
{
	struct h_server *s = c->server;

	s->late += late && !c->late;
	s->late -= !late && c->late;
	c->late = late;
	if (late)
		h__server_late(s);
}

static void let_go(struct h_client *c)
{
	if (c->holds)
		h_channel_release(c->channel, &c->message);
	c->holds = false;
}

/* From here on there is no such client. */
static void drop(struct h_client *c, int reason)
{
	struct h_server *s = c->server;

	let_go(c);
	if (c->welcome && s->attr.on_end)
		s->attr.on_end(c->channel, reason, s->arg);
	set_late(c, H_CLIENT_PROMPT);
	h_channel_close(c->channel, H_NOWAIT);
	H_UNLINK(s->clients, c);
	h__write_once(&s->count, s->count - 1);
	free(c);
}

/* It is told that this is the end. Whoever does not look for that holds its own channel only. */
static void try_end(struct h_client *c)
{
	int err = h_channel_shutdown(c->channel, H_NOWAIT);

	if (err == -EAGAIN)
		set_late(c, H_CLIENT_ENDING);
	else
		drop(c, c->reason);
}

static void end(struct h_client *c, int reason)
{
	let_go(c);
	h_channel_on_ready(c->channel, NULL, NULL);
	c->reason = reason;
	try_end(c);
}

/* ---- messages ---- */

/* 0: the next one, please; else it is not the time for that, or there is no client any more. */
static int handle(struct h_client *c)
{
	struct h_server *s = c->server;
	int ret = s->handler(c->channel, &c->message, s->arg);

	if (ret == -EAGAIN) {
		/* Of what else it sends nothing is wanted, or that would call back for ever. */
		h_channel_pause(c->channel, true);
		set_late(c, h__read_once(&c->channel->blocked) ? H_CLIENT_PROMPT : H_CLIENT_HELD);
		return ret;
	}
	if (ret == -ENODATA) {
		end(c, ret);
		return ret;
	}
	if (ret < 0) {
		drop(c, ret);
		return ret;
	}
	let_go(c);
	return 0;
}

static int handle_again(struct h_client *c)
{
	int ret = handle(c);

	if (ret)
		return ret;
	set_late(c, H_CLIENT_PROMPT);
	h_channel_pause(c->channel, false);
	return 0;
}

static void client_ready(struct h_channel *channel, void *arg)
{
	struct h_client *c = arg;
	unsigned int i;
	int ret;

	if (c->server->on_room)
		c->server->on_room(channel);
	if (c->holds && handle_again(c))
		return;
	for (i = 0; i < MESSAGES_AT_ONCE; i++) {
		ret = h_channel_receive(channel, &c->message, H_NOWAIT);
		if (ret == -EAGAIN || ret == -ENOMEM)
			return;
		if (ret == -ENODATA) {
			end(c, 0);
			return;
		}
		if (ret) {
			drop(c, ret);
			return;
		}
		c->holds = true;
		if (handle(c))
			return;
	}
}

/* ---- welcome ---- */

static uint32_t count_of(const struct h_server *s, uid_t uid)
{
	const struct h_client *c;
	uint32_t n = 0;

	for (c = s->clients; c; c = c->next)
		n += c->uid == uid;
	return n;
}

/* It is one of ours from here on, or it is closed. */
static struct h_client *client_of(struct h_server *s, struct h_channel *channel)
{
	uint32_t most = s->attr.clients_of_user;
	struct h_client *c = calloc(1, sizeof(*c));
	struct h_peer peer;

	h_channel_peer(channel, &peer);
	if (!c || (most && count_of(s, peer.uid) >= most)) {
		h_channel_close(channel, H_NOWAIT);
		free(c);
		return NULL;
	}
	c->server = s;
	c->channel = channel;
	c->uid = peer.uid;
	H_LINK(s->clients, c);
	h__write_once(&s->count, s->count + 1);
	return c;
}

int h__server_accept(struct h_server *s)
{
	bool full = s->attr.clients && s->count >= s->attr.clients;
	struct h_channel *channel;
	struct h_client *c;
	int err;

	err = h__channel_accept(s->listener, full ? NULL : s->manager, &s->channel,
				sizeof(s->channel), &channel, H_NOWAIT);
	if (err)
		return err;
	c = client_of(s, channel);
	if (!c)
		return 0;
	err = s->attr.on_client ? s->attr.on_client(channel, s->arg) : 0;
	if (err) {
		drop(c, err);
		return 0;
	}
	c->welcome = true;
	h_channel_on_ready(channel, client_ready, c);
	return 0;
}

/* ---- those that are late ---- */

void h__clients_look(struct h_server *s)
{
	struct h_client *c, *next;

	for (c = s->clients; c; c = next) {
		next = c->next;
		if (c->late == H_CLIENT_HELD)
			handle_again(c);
		else if (c->late == H_CLIENT_ENDING)
			try_end(c);
	}
}

void h__server_drop(struct h_server *s, struct h_channel *channel, int reason)
{
	struct h_client *c = s->clients;

	while (c && c->channel != channel)
		c = c->next;
	if (!c)
		return;
	/* Or it would take what it has for all there was. */
	h__channel_tear(channel);
	drop(c, reason);
}

int h__clients_end(struct h_server *s, int64_t deadline_ns)
{
	struct h_client *c, *next;
	int err = 0;

	for (c = s->clients; c; c = next) {
		next = c->next;
		end(c, 0);
	}
	while (s->clients && !err) {
		h_manager_poll(s->manager);
		h__clients_look(s);
		if (s->clients)
			err = h__sleep_a_little(LOOK_NS, deadline_ns);
		if (err == -EINTR)
			err = 0;
	}
	while (s->clients)
		drop(s->clients, 0);
	return err;
}
