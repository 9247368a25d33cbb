/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Two processes that meet by a name of host 2, as far as a test lets them, and say what their last
 * call returned once the test has struck.
 */
#ifndef DEATHS_H
#define DEATHS_H

#include "hamlyn_test.h"

#include <hamlyn/channel.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEATHS_NAME	"deaths"
#define DEATHS_PATH	"2/" DEATHS_NAME
#define LONG_BYTES	(4u << 20)	/* more than the buffers of who receives */
#define LONG_BEGUN	32768		/* bytes of it that have left: it is under way */

/* How far the two have come when it happens. */
enum state {
	LISTENING,	/* nobody has called */
	CONNECTING,	/* the call waits at the name */
	HEARD,		/* the server has read it, and has not answered */
	ANSWERED,	/* it has, but the client has not looked */
	QUIET,		/* both wait for a message */
	SENDING,	/* in the middle of a message for which the server has no room */
	CLOSING,	/* the client waits until all has arrived, and the server does not look */
	TALKING,	/* nothing happens: one message, and the end */
};

/* What both processes do, in this order. */
enum point { OPEN = 1, CALLED, THERE, STRUCK, TOLD, ENDED };

enum side { CLIENT, SERVER, SIDES };	/* on hosts 1 and 2 */

/**
 * struct scene - what the test and the two have in common
 * @state: how far they come
 * @at: the last point that each has reached
 * @may: the last one to which it may go
 * @err: of the call in which it happened
 */
struct scene {
	enum state state;
	struct {
		_Atomic int at;
		_Atomic int may;
		_Atomic int err;
	} side[SIDES];
};

/**
 * struct party - one of the two
 * @scene: shared
 * @side: which one it is
 * @device: for h_open()
 * @take_name: HEARD: takes the name without the library; 0, or a negative errno
 * @hear: HEARD: reads the call; 0, or a negative errno
 * @answer: HEARD: answers it; the same
 * @name: for these three
 * @number: likewise
 * @dev: open
 * @m: of @dev
 * @l: the server's
 * @ch: once they have met
 */
struct party {
	struct scene *scene;
	enum side side;
	const char *device;
	int (*take_name)(struct party *p);
	int (*hear)(struct party *p);
	int (*answer)(struct party *p);
	int name;
	uint64_t number;
	struct h_dev *dev;
	struct h_manager *m;
	struct h_listener *l;
	struct h_channel *ch;
};

/* ---- how far they are ---- */

static inline struct scene *scene_make(void)
{
	struct scene *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return s == MAP_FAILED ? NULL : s;
}

static inline bool reached(_Atomic int *what, int point)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (atomic_load(what) < point)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

static inline bool party_is_at(struct scene *s, int side, enum point point)
{
	return reached(&s->side[side].at, point);
}

static inline void party_may(struct scene *s, int side, enum point point)
{
	atomic_store(&s->side[side].may, point);
}

static inline void come_to(struct party *p, enum point point)
{
	atomic_store(&p->scene->side[p->side].at, point);
}

static inline void await(struct party *p, enum point point)
{
	if (!reached(&p->scene->side[p->side].may, point))
		_exit(9);
}

/* ---- what they do ---- */

static inline int party_open(struct party *p)
{
	struct h_listener_attr attr = {};
	int ret = h_open(p->device, &p->dev) ?: h_manager_create(p->dev, NULL, &p->m);

	if (ret || p->side == CLIENT)
		return ret;
	if (p->scene->state == HEARD)
		return p->take_name(p);
	attr.dev = p->dev;
	return h_listener_create(DEATHS_PATH, &attr, &p->l);
}

/* Whatever comes, to the end. */
static inline int party_receive(struct party *p)
{
	struct h_message m;
	int ret;

	do {
		ret = h_channel_receive(p->ch, &m, H_FOREVER);
		if (!ret && (m.length != 5 || memcmp(m.data, "said", 5)))
			ret = -EBADMSG;
		if (!ret)
			h_channel_release(p->ch, &m);
	} while (!ret);
	return ret;
}

static inline int party_close(struct party *p, int64_t timeout)
{
	struct h_channel *ch = p->ch;

	p->ch = NULL;
	return h_channel_close(ch, timeout);
}

static inline int accept_client(struct party *p, int64_t timeout)
{
	return h_channel_accept(p->l, p->m, NULL, &p->ch, timeout);
}

/* A call can be read and left without the library only. */
static inline int serve_by_hand(struct party *p)
{
	int ret = p->hear(p);

	if (ret)
		return ret;
	come_to(p, THERE);
	await(p, STRUCK);
	return p->answer(p);
}

/* There is one, and it waits. */
static inline void await_call(struct party *p)
{
	struct pollfd fd = { .fd = h_listener_fd(p->l), .events = POLLIN };

	if (poll(&fd, 1, (int)(ht_patience_ns() / HT_MS)) != 1)
		_exit(8);
	come_to(p, CALLED);
	await(p, THERE);
}

static inline int be_server(struct party *p)
{
	enum state state = p->scene->state;
	int ret;

	if (state == HEARD)
		return serve_by_hand(p);
	if (state == CONNECTING || state == ANSWERED)
		await_call(p);
	if (state <= CONNECTING) {
		come_to(p, THERE);
		await(p, STRUCK);
		ret = accept_client(p, H_NOWAIT);
		return ret ?: party_receive(p);
	}
	ret = accept_client(p, ht_patience_ns());
	if (ret)
		return ret;
	come_to(p, THERE);
	if (state == SENDING || state == CLOSING)
		await(p, STRUCK);
	return party_receive(p);
}

static inline int send_much(struct party *p)
{
	void *much = calloc(1, LONG_BYTES);
	int ret = much ? h_channel_send(p->ch, much, LONG_BYTES, H_FOREVER) : -ENOMEM;

	free(much);
	return ret;
}

static inline int say_and_close(struct party *p)
{
	int ret = h_channel_send(p->ch, "said", 5, H_FOREVER);

	come_to(p, THERE);
	return ret ?: party_close(p, H_FOREVER);
}

static inline int be_client(struct party *p)
{
	enum state state = p->scene->state;
	int ret;

	if (state <= ANSWERED)
		come_to(p, THERE);
	if (state == LISTENING)
		await(p, STRUCK);
	ret = h_channel_connect(p->m, DEATHS_PATH, NULL, &p->ch, H_FOREVER);
	if (ret)
		return ret;
	if (state >= CLOSING)
		return say_and_close(p);
	come_to(p, THERE);
	return state == SENDING ? send_much(p) : party_receive(p);
}

/*
 * In a child. What it has opened is there until the test has looked at it, and then the kernel, or
 * the segment's other processes, have to clear up.
 */
static inline void be_party(struct party *p)
{
	int ret = party_open(p);

	if (ret)
		_exit(1);
	come_to(p, OPEN);
	await(p, CALLED);
	ret = p->side == SERVER ? be_server(p) : be_client(p);
	if (p->ch)
		party_close(p, 0);
	atomic_store(&p->scene->side[p->side].err, ret);
	come_to(p, TOLD);
	await(p, ENDED);
	_exit(0);
}

/* ---- what the test sees ---- */

/* Before it looks at the answer. */
static inline bool stop_client(struct scene *s, pid_t client)
{
	return party_is_at(s, SERVER, CALLED) && ht_task_is(client, 'S') &&
	       !kill(client, SIGSTOP) && ht_task_is(client, 'T');
}

/* Both, to where it happens. */
static inline bool scene_goes(struct scene *s, const pid_t *pid)
{
	party_may(s, CLIENT, THERE);
	party_may(s, SERVER, CALLED);
	if (s->state == ANSWERED && !stop_client(s, pid[CLIENT]))
		return false;
	party_may(s, SERVER, THERE);
	return party_is_at(s, CLIENT, THERE) && party_is_at(s, SERVER, THERE);
}

/* In the call in which it happens. */
static inline bool scene_waits(struct scene *s, const pid_t *pid)
{
	return ht_task_is(pid[CLIENT], s->state == ANSWERED ? 'T' : 'S') &&
	       ht_task_is(pid[SERVER], 'S');
}

/* By what it happened. */
enum end { PROCESS, HOST, BRIDGE };

/* Of a server that has accepted nobody yet. A name ends with its bridge. */
static inline bool no_client_is_promised(enum state state, enum end by, int err)
{
	if (by == BRIDGE)
		return err == -ECONNRESET;
	/* One that has gone is forgotten, or taken in the last moment and gone then. */
	return err == -EAGAIN || (state == CONNECTING && err == -ECONNRESET);
}

/* What the headers let the last call of a side return. */
static inline bool is_promised(enum state state, int side, enum end by, int err)
{
	if (side == SERVER && state <= CONNECTING)
		return no_client_is_promised(state, by, err);
	switch (state) {
	case LISTENING:
		return err == (by == PROCESS ? -ENOENT : -EHOSTDOWN);
	case CONNECTING:
		return err == -ECONNRESET;
	case SENDING:
		return err == (side == SERVER ? -ECONNRESET : -EPIPE);
	case CLOSING:
		if (side == CLIENT)
			return err == -EPIPE;
		/* That it closed may have been said, or not. */
		return err == -ECONNRESET || err == -ENODATA;
	case TALKING:
		return err == (side == SERVER ? -ENODATA : 0);
	default:
		return err == -ECONNRESET;
	}
}

static inline bool party_is_told(struct scene *s, int side, enum end by)
{
	int err;

	if (!party_is_at(s, side, TOLD)) {
		printf("# host %d: it waits\n", side + 1);
		return false;
	}
	err = atomic_load(&s->side[side].err);
	if (is_promised(s->state, side, by, err))
		return true;
	printf("# host %d: %s\n", side + 1, strerror(-err));
	return false;
}

#endif /* DEATHS_H */
