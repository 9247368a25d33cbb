// SPDX-License-Identifier: MIT
/*
 * Clients that have called a server. A listener keeps those that have not said yet what they
 * want in a table, and reads from whichever has something to say: one that is silent waits
 * beside the others, for a while, and in its user's share of the table.
 */
#include <linux/sockios.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rendezvous/rendezvous_guests.h"

#define CALLERS_AT_ONCE		16	/* between looks at the deadline */
#define UNREAD_OF_USER		32

/* ---- sending away ---- */

/* It need not listen to that, and we do not wait for it to. */
static void say_no(int fd, int err)
{
	const struct h_saying s = {
		.what = H_SAYS_REPLY,
		.status = (uint32_t)-err,
	};

	h__say(fd, &s, NULL);
}

static void note_refusal(const struct h_peer *peer, int err)
{
	char text[64];

	if (h__log_wanted(H_LOG_INFO))
		h__log(H_LOG_INFO, "client %d of user %u is sent away: %s", (int)peer->pid,
		       (unsigned int)peer->uid, strerror_r(-err, text, sizeof(text)));
}

int h__guest_reply(const struct h_listener *l, const struct h_guest *g, const struct h_saying *s,
		   const int *fds)
{
	return g->called ? h__name_answer(l->fd, g->number, s) : h__say(g->fd, s, fds);
}

void h__guest_refuse(const struct h_listener *l, const struct h_guest *g, int err)
{
	const struct h_saying s = {
		.what = H_SAYS_REPLY,
		.status = (uint32_t)-err,
	};

	note_refusal(&g->peer, err);
	h__guest_reply(l, g, &s, NULL);
}

static void refuse(int fd, const struct h_peer *peer, int err)
{
	note_refusal(peer, err);
	say_no(fd, err);
	h__hang_up(fd);
}

/*
 * Out of the table; its descriptor is the caller's. A child of a fork may have it open,
 * too, so closing it would not take it out of the epoll.
 */
static int take_out(struct h_listener *l, struct h_waiting *w)
{
	int fd = w->fd;

	epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, NULL);
	w->fd = -1;
	return fd;
}

static bool has_spoken(const struct h_waiting *w)
{
	struct pollfd p = { .fd = w->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

static void expire(struct h_listener *l)
{
	int64_t now = h__now_ns();
	uint32_t i;

	for (i = 0; i < l->waiting; i++) {
		struct h_waiting *w = &l->clients[i];

		if (w->fd < 0 || w->until > now)
			continue;
		/* It was in time; that we are late is no fault of its own. */
		if (has_spoken(w))
			w->until = INT64_MAX;
		else
			h__hang_up(take_out(l, w));
	}
}

static uint32_t count_of(const struct h_listener *l, uid_t uid)
{
	uint32_t i, n = 0;

	for (i = 0; i < l->waiting; i++)
		n += l->clients[i].fd >= 0 && l->clients[i].peer.uid == uid;
	return n;
}

/* The table is full: the user with most of it gives up the client that waited longest. */
static struct h_waiting *make_room(struct h_listener *l)
{
	struct h_waiting *victim = NULL;
	uint32_t i, most = 0;

	for (i = 0; i < l->waiting; i++) {
		struct h_waiting *w = &l->clients[i];
		uint32_t n;

		if (victim && w->peer.uid == victim->peer.uid) {
			if (w->until < victim->until)
				victim = w;
			continue;
		}
		n = count_of(l, w->peer.uid);
		if (n > most) {
			most = n;
			victim = w;
		}
	}
	refuse(take_out(l, victim), &victim->peer, -EUSERS);
	return victim;
}

/* ---- callers; l->lock held ---- */

static struct h_waiting *free_place(struct h_listener *l)
{
	uint32_t i;

	for (i = 0; i < l->waiting; i++)
		if (l->clients[i].fd < 0)
			return &l->clients[i];
	return make_room(l);
}

static void let_wait(struct h_listener *l, int fd)
{
	struct h_waiting w = {
		.fd = fd,
		/* For ever is far away, and later for who came later: make_room(). */
		.until = h__deadline(l->patience_ns < 0 ? INT64_MAX / 2 : l->patience_ns),
	};
	struct epoll_event e = { .events = EPOLLIN };
	struct h_waiting *place;

	if (h__peer_of(fd, &w.peer)) {
		h__hang_up(fd);
		return;
	}
	if (!h__uid_in(w.peer.uid, l->uids, l->uid_count)) {
		refuse(fd, &w.peer, -EACCES);
		return;
	}
	place = free_place(l);
	e.data.u32 = (uint32_t)(place - l->clients);
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e)) {
		refuse(fd, &w.peer, -EUSERS);
		return;
	}
	*place = w;
}

static int take_callers(struct h_listener *l)
{
	int fd, n;

	for (n = 0; n < CALLERS_AT_ONCE; n++) {
		fd = h__fd(accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC));
		if (fd >= 0)
			let_wait(l, fd);
		else if (fd != -ECONNABORTED && fd != -EINTR)
			/* The callers that were taken come first: there may be no others. */
			return fd == -EAGAIN || n ? 0 : fd;
	}
	return 0;
}

/* ---- replies that nobody reads; l->lock held ---- */

/* Processes of our own user could use up that user's allowance without our help. */
static bool is_counted(const struct h_listener *l, uid_t uid)
{
	return l->flags & H_CONNECT_TICKETS && uid != getuid();
}

/* In the other end's queue they count as sent by this socket, until that is closed. */
static void forget_read(struct h_listener *l)
{
	uint32_t i = 0;

	while (i < l->unread_count) {
		int bytes = 0;

		if (!ioctl(l->unread[i].fd, SIOCOUTQ, &bytes) && bytes) {
			i++;
			continue;
		}
		h__hang_up(l->unread[i].fd);
		l->unread[i] = l->unread[--l->unread_count];
	}
}

/* With those who are being answered, whose replies will need a place. */
static bool has_too_many_unread(const struct h_listener *l, uid_t uid)
{
	uint32_t i, all = l->unread_count, of_user = 0;
	const struct h_guest *g;

	if (!is_counted(l, uid))
		return false;
	for (i = 0; i < l->unread_count; i++)
		of_user += l->unread[i].uid == uid;
	for (g = l->guests; g; g = g->next) {
		all += g->makes_sense && is_counted(l, g->peer.uid);
		of_user += g->makes_sense && g->peer.uid == uid;
	}
	return all >= H_UNREAD || of_user >= UNREAD_OF_USER;
}

/* It was answered: here, as the lock keeps a child from closing another file by then. */
void h__guest_part(struct h_listener *l, struct h_guest *g, bool welcome)
{
	h__lock(&l->lock);
	H_UNLINK(l->guests, g);
	if (welcome && is_counted(l, g->peer.uid))
		l->unread[l->unread_count++] = (struct h_unread) {
			.fd = g->fd,
			.uid = g->peer.uid,
		};
	else if (!g->called)
		h__hang_up(g->fd);
	h__unlock(&l->lock);
	h__close_waiting();
}

/* ---- those who have something to say ---- */

/* What is wrong with what it says? */
static int wrong_with(const struct h_listener *l, const struct h_saying *s,
		      uint32_t kind, const int *fds)
{
	bool tickets = l->flags & H_CONNECT_TICKETS;

	if (s->what != H_SAYS_REQUEST)
		return -EPROTO;
	if (s->flags != (l->flags & H_CONNECT_TICKETS))
		return -EPROTONOSUPPORT;
	if (s->kind != kind)
		return -EPROTOTYPE;
	return tickets && fds[0] < 0 ? -EPROTO : 0;
}

/* If its reply has a place, it gets one. */
static int check_unread(struct h_listener *l, struct h_guest *g)
{
	int err;

	h__lock(&l->lock);
	err = has_too_many_unread(l, g->peer.uid) ? -EUSERS : 0;
	g->makes_sense = !err;
	h__unlock(&l->lock);
	return err;
}

static void send_away(struct h_listener *l, struct h_guest *g, int err)
{
	h__guest_refuse(l, g, err);
	h__close_fds_later(g->fds);
	h__guest_part(l, g, false);
}

/*
 * 1 if this client said what makes sense; 0 if not, or an errno: it is gone then. With
 * nothing locked: descriptors that do not get in are closed by the kernel meanwhile.
 */
static int hear_guest(struct h_listener *l, uint32_t kind, struct h_guest *g)
{
	bool tickets = l->flags & H_CONNECT_TICKETS;
	int err;

	err = g->called ? g->heard : h__hear(g->fd, &g->says, tickets ? g->fds : NULL);
	if (err == -EMFILE || err == -ENFILE || err == -ENOMEM || err == -ENOBUFS) {
		send_away(l, g, -EUSERS);
		return err;
	}
	if (g->called && !h__uid_in(g->peer.uid, l->uids, l->uid_count))
		err = -EACCES;
	else
		err = err ? -EPROTO : wrong_with(l, &g->says, kind, g->fds);
	if (!err)
		err = check_unread(l, g);
	if (!err)
		return 1;
	send_away(l, g, err);
	return 0;
}

/* A child of a fork finds it among the guests. */
static void invite(struct h_listener *l, struct h_waiting *w, struct h_guest *g)
{
	*g = (struct h_guest) {
		.peer = w->peer,
		.fd = take_out(l, w),
		.fds = { -1, -1 },
	};
	H_LINK(l->guests, g);
}

/* It is in the table of the kernel until then. */
static int take_call(struct h_listener *l, struct h_guest *g)
{
	struct h_heard heard;
	int ret = h__name_hear(l->fd, &heard);

	if (ret <= 0)
		return ret;
	*g = (struct h_guest) {
		.called = true,
		.number = heard.number,
		.heard = heard.err,
		.peer = heard.peer,
		.says = heard.says,
		.fd = -1,
		.fds = { -1, -1 },
	};
	H_LINK(l->guests, g);
	return 0;
}

/* 1, and a guest perhaps; 0 if nobody has anything to say; or an errno of accepting. */
static int next_guest(struct h_listener *l, struct h_guest *g)
{
	struct epoll_event e;
	int err = 0;

	g->fd = -1;
	g->called = false;
	/* One by one: what else was ready may be gone by then. */
	if (epoll_wait(l->epoll, &e, 1, 0) <= 0)
		return 0;
	if (e.data.u32 == H_LISTENING)
		err = l->named ? take_call(l, g) : take_callers(l);
	else if (l->clients[e.data.u32].fd >= 0)
		invite(l, &l->clients[e.data.u32], g);
	return err ? err : 1;
}

/*
 * 1 with a guest, 0 if nobody has anything to say, or nothing that makes sense until
 * the deadline, or an errno of accepting.
 */
int h__guest_look(struct h_listener *l, uint32_t kind, struct h_guest *g, int64_t deadline_ns)
{
	unsigned int round;
	int ret;

	for (round = 0; round < H_ROUNDS_AT_ONCE; round++) {
		h__lock(&l->lock);
		if (!round) {
			expire(l);
			forget_read(l);
		}
		ret = next_guest(l, g);
		h__unlock(&l->lock);
		h__close_waiting();
		if (ret <= 0)
			return ret;
		ret = g->fd >= 0 || g->called ? hear_guest(l, kind, g) : 0;
		if (ret || h__is_over(deadline_ns))
			return ret;
	}
	return 0;
}
