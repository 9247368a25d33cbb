// SPDX-License-Identifier: MIT
/*
 * Servers. A listener keeps the clients that have not said yet what they want in a
 * table, and reads from whichever has something to say: one that is silent waits
 * beside the others, for a while, and in its user's share of the table.
 */
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rendezvous/rendezvous.h"

#define DEFAULT_WAITING		256
#define MAX_WAITING		1024
#define DEFAULT_PATIENCE_NS	1000000000LL
#define CALLERS_AT_ONCE		16	/* between looks at the deadline */
#define ROUNDS_AT_ONCE		64
#define TURN_NS			100000000LL	/* nobody changes the tables for as long */
/* Two descriptors each, and together fewer than RLIMIT_NOFILE mostly is. */
#define UNREAD			256
#define UNREAD_OF_USER		32

#define LISTENING	UINT32_MAX	/* among indices of clients */

/* A client that was not heard yet; fd -1: none. */
struct waiting {
	int fd;
	int64_t until;
	struct h_peer peer;
};

/* One that has said something, until it is answered. */
struct guest {
	struct guest *next;
	struct guest *prev;
	bool makes_sense;	/* so there will be a reply */
	bool called;		/* by HOST/NAME: no @fd */
	uint64_t number;	/* of the call */
	int heard;		/* of a call: whether it makes sense */
	int fd;			/* -1: nobody, or @called */
	int fds[2];
	struct h_peer peer;
	struct h_saying says;
};

/*
 * A reply with descriptors that is not known to be read. Until it is they count for the
 * user who sent them, whether or not the sender goes on having the socket: who has more
 * than RLIMIT_NOFILE of them on their way can send no more.
 */
struct unread {
	int fd;
	uid_t uid;
};

struct h_listener {
	struct h_listener *next;	/* list_lock */
	struct h_listener *prev;
	bool listed;
	uint32_t lock;	/* whom we talk to: all descriptors but these two */
	struct waiting *clients;
	uint32_t waiting;	/* room for them */
	struct guest *guests;
	struct unread unread[UNREAD];
	uint32_t unread_count;
	uint32_t flags;
	bool named;		/* HOST/NAME */
	int64_t patience_ns;
	int fd;
	int epoll;
	uid_t *uids;
	uint32_t uid_count;
	struct h_path path;
	pid_t pid;		/* who listens; not its children */
};

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

static int reply_to(const struct h_listener *l, const struct guest *g, const struct h_saying *s,
		    const int *fds)
{
	return g->called ? h__name_answer(l->fd, g->number, s) : h__say(g->fd, s, fds);
}

static void say_no_to(const struct h_listener *l, const struct guest *g, int err)
{
	const struct h_saying s = {
		.what = H_SAYS_REPLY,
		.status = (uint32_t)-err,
	};

	note_refusal(&g->peer, err);
	reply_to(l, g, &s, NULL);
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
static int take_out(struct h_listener *l, struct waiting *w)
{
	int fd = w->fd;

	epoll_ctl(l->epoll, EPOLL_CTL_DEL, fd, NULL);
	w->fd = -1;
	return fd;
}

static bool has_spoken(const struct waiting *w)
{
	struct pollfd p = { .fd = w->fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1 && p.revents & POLLIN;
}

static void expire(struct h_listener *l)
{
	int64_t now = h__now_ns();
	uint32_t i;

	for (i = 0; i < l->waiting; i++) {
		struct waiting *w = &l->clients[i];

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

/* The table is full: who has most of it gives up what he had longest. */
static struct waiting *make_room(struct h_listener *l)
{
	struct waiting *victim = NULL;
	uint32_t i, most = 0;

	for (i = 0; i < l->waiting; i++) {
		struct waiting *w = &l->clients[i];
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

static struct waiting *free_place(struct h_listener *l)
{
	uint32_t i;

	for (i = 0; i < l->waiting; i++)
		if (l->clients[i].fd < 0)
			return &l->clients[i];
	return make_room(l);
}

static void let_wait(struct h_listener *l, int fd)
{
	struct waiting w = {
		.fd = fd,
		/* For ever is far away, and later for who came later: make_room(). */
		.until = h__deadline(l->patience_ns < 0 ? INT64_MAX / 2 : l->patience_ns),
	};
	struct epoll_event e = { .events = EPOLLIN };
	struct waiting *place;

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
			/* Who was taken comes first: there may be nobody else. */
			return fd == -EAGAIN || n ? 0 : fd;
	}
	return 0;
}

/* ---- replies that nobody reads; l->lock held ---- */

/* Those of our own user could use up what he may have on their way without our help. */
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
	const struct guest *g;

	if (!is_counted(l, uid))
		return false;
	for (i = 0; i < l->unread_count; i++)
		of_user += l->unread[i].uid == uid;
	for (g = l->guests; g; g = g->next) {
		all += g->makes_sense && is_counted(l, g->peer.uid);
		of_user += g->makes_sense && g->peer.uid == uid;
	}
	return all >= UNREAD || of_user >= UNREAD_OF_USER;
}

/* It was answered: here, as the lock keeps a child from closing another file by then. */
static void part_with(struct h_listener *l, struct guest *g, bool welcome)
{
	h__lock(&l->lock);
	H_UNLINK(l->guests, g);
	if (welcome && is_counted(l, g->peer.uid))
		l->unread[l->unread_count++] = (struct unread) {
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
static int check_unread(struct h_listener *l, struct guest *g)
{
	int err;

	h__lock(&l->lock);
	err = has_too_many_unread(l, g->peer.uid) ? -EUSERS : 0;
	g->makes_sense = !err;
	h__unlock(&l->lock);
	return err;
}

static void send_away(struct h_listener *l, struct guest *g, int err)
{
	say_no_to(l, g, err);
	h__close_fds_later(g->fds);
	part_with(l, g, false);
}

/*
 * 1 if this client said what makes sense; 0 if not, or an errno: it is gone then. With
 * nothing locked: descriptors that do not get in are closed by the kernel meanwhile.
 */
static int hear_guest(struct h_listener *l, uint32_t kind, struct guest *g)
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

static bool is_over(int64_t deadline_ns)
{
	return deadline_ns > 0 && h__now_ns() >= deadline_ns;
}

/* A child of a fork finds it among the guests. */
static void invite(struct h_listener *l, struct waiting *w, struct guest *g)
{
	*g = (struct guest) {
		.peer = w->peer,
		.fd = take_out(l, w),
		.fds = { -1, -1 },
	};
	H_LINK(l->guests, g);
}

/* It is in the table of the kernel until then. */
static int take_call(struct h_listener *l, struct guest *g)
{
	struct h_heard heard;
	int ret = h__name_hear(l->fd, &heard);

	if (ret <= 0)
		return ret;
	*g = (struct guest) {
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
static int next_guest(struct h_listener *l, struct guest *g)
{
	struct epoll_event e;
	int err = 0;

	g->fd = -1;
	g->called = false;
	/* One by one: what else was ready may be gone by then. */
	if (epoll_wait(l->epoll, &e, 1, 0) <= 0)
		return 0;
	if (e.data.u32 == LISTENING)
		err = l->named ? take_call(l, g) : take_callers(l);
	else if (l->clients[e.data.u32].fd >= 0)
		invite(l, &l->clients[e.data.u32], g);
	return err ? err : 1;
}

/*
 * 1 with a guest, 0 if nobody has anything to say, or nothing that makes sense until
 * the deadline, or an errno of accepting.
 */
static int look_for_guest(struct h_listener *l, uint32_t kind, struct guest *g,
			  int64_t deadline_ns)
{
	unsigned int round;
	int ret;

	for (round = 0; round < ROUNDS_AT_ONCE; round++) {
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
		if (ret || is_over(deadline_ns))
			return ret;
	}
	return 0;
}

/* ---- guests ---- */

static bool its_fault(int err)
{
	return err == -EINVAL || err == -EPROTO || err == -EPROTOTYPE ||
	       err == -EBADF || err == -ENOKEY || err == -ECONNRESET ||
	       /* Descriptors do not reach another host. */
	       err == -EXDEV;
}

static int welcome(struct h_half *half, const struct h_listener *l,
		   const struct guest *g)
{
	bool tickets = l->flags & H_CONNECT_TICKETS;
	struct h_saying s = {
		.what = H_SAYS_REPLY,
		.kind = half->kind,
		.flags = l->flags & H_CONNECT_TICKETS,
	};
	int err;

	err = h__half_join(half, g->says.card, tickets ? g->fds : NULL);
	if (err)
		return err;
	h_dev_fabric(half->manager->dev, &s.fabric);
	h__half_card(half, s.card);
	err = reply_to(l, g, &s, tickets ? half->fds : NULL);
	if (err == -ETOOMANYREFS)
		return h__refuse(half->manager->dev, err,
				 "too many descriptors of this user are on their way");
	return err == -EPIPE ? -ECONNRESET : err;
}

/*
 * Whoever has given up meanwhile has nothing left that could be watched: it would be
 * known for the price of two slots, and of two packets that come too late.
 */
static bool hung_up(const struct guest *g)
{
	struct pollfd p = { .fd = g->fd, .events = POLLRDHUP };

	/* The kernel forgets a call that is given up; if it was heard, answering it fails. */
	return !g->called && poll(&p, 1, 0) > 0;
}

/* 0: it is in. 1: it is not, by its own fault. */
static int receive_guest(struct h_half *half, const struct h_listener *l,
			 struct h_manager *m, const struct h_stream_attr *attr,
			 struct guest *g)
{
	bool tickets = l->flags & H_CONNECT_TICKETS;
	int err;

	if (hung_up(g))
		return 1;
	if (!m) {
		say_no_to(l, g, -EUSERS);
		return -ECANCELED;
	}
	if (!h_dev_reaches(m->dev, &g->says.fabric)) {
		say_no_to(l, g, -EXDEV);
		return 1;
	}
	err = h__half_create(half, m, attr, tickets);
	if (err) {
		say_no_to(l, g, -EUSERS);
		return err;
	}
	err = hung_up(g) ? -ECONNRESET : welcome(half, l, g);
	if (!err) {
		h__half_close_fds(half);
		return 0;
	}
	h__half_destroy(half);
	say_no_to(l, g, its_fault(err) ? -EPROTO : -EUSERS);
	if (its_fault(err))
		return 1;
	/* It would be taken for: nobody is there. */
	return err == -EAGAIN ? -EBUSY : err;
}

static int wait_for_guest(struct h_listener *l, uint32_t kind, struct guest *g,
			  int64_t deadline_ns)
{
	int ret;

	for (;;) {
		ret = look_for_guest(l, kind, g, deadline_ns);
		if (ret)
			return ret < 0 ? ret : 0;
		/* There may always be something to read, and never any sense in it. */
		if (is_over(deadline_ns))
			return -ETIMEDOUT;
		ret = h__poll_until(l->epoll, POLLIN, deadline_ns);
		if (ret || deadline_ns == H_NOWAIT)
			return ret ? ret : -EAGAIN;
	}
}

static int accept_one(struct h_half *half, struct h_listener *l,
		      struct h_manager *m, const struct h_stream_attr *attr,
		      struct h_peer *peer, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	unsigned int sent_away = 0;
	struct guest g;
	int err;

	for (;;) {
		err = wait_for_guest(l, half->kind, &g, deadline);
		if (err)
			return m ? h__no_descriptor(m, err) : err;
		err = receive_guest(half, l, m, attr, &g);
		if (err)
			h__close_fds_later(g.fds);
		else
			h__close_fds(g.fds);
		part_with(l, &g, !err);
		if (err != 1)
			break;
		if (is_over(deadline))
			return -ETIMEDOUT;
		if (deadline == H_NOWAIT && ++sent_away == ROUNDS_AT_ONCE)
			return -EAGAIN;
	}
	*peer = g.peer;
	return err;
}

/*
 * A client that was taken would have to be turned away if its end could not be made: so it is
 * seen first whether the tables are to be had. If they are lost in between they have a moment
 * more, in which all who are not stopped get on.
 */
static int accept_in_time(struct h_half *half, struct h_listener *l, struct h_manager *m,
			  const struct h_stream_attr *attr, struct h_peer *peer,
			  int64_t timeout_ns)
{
	struct h_change_limit before = h__change_limit(h_deadline(timeout_ns));
	int err = m && h__change_limited() ? h__dev_await_change(m->dev) : 0;

	h__change_still(TURN_NS);
	if (!err)
		err = accept_one(half, l, m, attr, peer, timeout_ns);
	h__change_restore(before);
	return err;
}

/* Who is cancelled in the middle would leave half an end, and the listener locked. */
int h__half_accept(struct h_half *half, struct h_listener *l, struct h_manager *m,
		   const struct h_stream_attr *attr, struct h_peer *peer,
		   int64_t timeout_ns)
{
	int err, cancel;

	/* Of a parent: it would wait for ever. */
	if (l->epoll < 0)
		return -EBADF;
	cancel = h__cancel_off();
	err = accept_in_time(half, l, m, attr, peer, timeout_ns);
	h__cancel_restore(cancel);
	return err;
}

int h__listener_accept(struct h_listener *l, struct h_manager *m,
		       const struct h_stream_attr *attr, size_t size,
		       struct h_stream_pair *pair, int64_t timeout_ns)
{
	struct h_half half = { .kind = H_KIND_STREAMS };
	struct h_stream_attr at;
	int err;

	*pair = (struct h_stream_pair) {};
	err = H_TAKE_ATTR(m ? m->dev : NULL, &at, attr, size);
	if (!err)
		err = h__half_accept(&half, l, m, &at, &pair->peer, timeout_ns);
	if (err)
		return err;
	pair->sender = half.sender;
	pair->receiver = half.receiver;
	return 0;
}

int h_listener_fd(const struct h_listener *l)
{
	return l->epoll;
}

/* ---- forks ---- */

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static uint32_t list_lock;		/* lock.h */
static struct h_listener *listeners;

static void end(int *fd, void (*by)(int fd))
{
	if (*fd >= 0)
		by(*fd);
	*fd = -1;
}

static void close_copy(int fd)
{
	close(fd);
}

/* Those who called, and what they said, are not left for the kernel to close. */
static void stop_listening(int fd)
{
	int caller;

	shutdown(fd, SHUT_RDWR);
	do {
		caller = accept4(fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (caller >= 0)
			h__hang_up(caller);
	} while (caller >= 0 || errno == ECONNABORTED || errno == EINTR);
	/* It is empty then, but for a lack of descriptors. */
	if (errno == EAGAIN || errno == EINVAL)
		close(fd);
	else
		h__close_later(fd);
}

/* With list_lock held: all, or those of a child. */
static void close_all(struct h_listener *l, void (*by)(int fd))
{
	struct guest *g;
	uint32_t i;

	for (i = 0; l->clients && i < l->waiting; i++)
		end(&l->clients[i].fd, by);
	for (g = l->guests; g; g = g->next)
		end(&g->fd, by);
	l->guests = NULL;
	while (l->unread_count)
		by(l->unread[--l->unread_count].fd);
	end(&l->epoll, close_copy);
	end(&l->fd, by == close_copy ? close_copy : l->named ? h__name_close : stop_listening);
}

/*
 * With a child's copies of them open a name would stay taken, and clients that are sent
 * away, or whose server is gone, would not see the end. The locks are for the child: it
 * finds all that is open, and nothing that is closed.
 */
static void before_fork(void)
{
	struct h_listener *l;

	h__lock(&list_lock);
	for (l = listeners; l; l = l->next)
		h__lock(&l->lock);
}

static void after_fork_parent(void)
{
	struct h_listener *l;

	for (l = listeners; l; l = l->next)
		h__unlock(&l->lock);
	h__unlock(&list_lock);
}

static void after_fork_child(void)
{
	struct h_listener *l;

	h__lock_forked();
	for (l = listeners; l; l = l->next) {
		close_all(l, close_copy);
		l->listed = false;
		h__lock_renew(&l->lock);
	}
	listeners = NULL;
	h__lock_renew(&list_lock);
}

static void watch_forks(void)
{
	h__close_watch_forks();
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

static void enlist(struct h_listener *l)
{
	pthread_once(&fork_once, watch_forks);
	h__lock(&list_lock);
	H_LINK(listeners, l);
	l->listed = true;
	h__unlock(&list_lock);
}

/* ---- from create to destroy ---- */

static int open_both(struct h_listener *l)
{
	/* Forks see both or neither. */
	h__lock(&l->lock);
	l->fd = h__fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	l->epoll = l->fd < 0 ? l->fd : h__fd(epoll_create1(EPOLL_CLOEXEC));
	h__unlock(&l->lock);
	return l->epoll < 0 ? l->epoll : 0;
}

static int listen_at(struct h_listener *l, const char *path, uint32_t mode)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = LISTENING };
	int err;

	err = open_both(l);
	if (err)
		return err;
	if (!(l->flags & H_CONNECT_TICKETS))
		h__take_no_descriptors(l->fd);
	/* The path never has a wider mode than it should. */
	if (mode && fchmod(l->fd, mode))
		return -errno;
	err = h__path_take(&l->path, l->fd, path, mode);
	if (err)
		return err;
	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->fd, &e) ? -errno : 0;
}

static int listen_by_name(struct h_listener *l, const struct h_name *name, struct h_dev *dev)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = LISTENING };

	/* Forks see both or neither. */
	h__lock(&l->lock);
	l->named = true;
	l->fd = h__name_listen(name, dev);
	l->epoll = l->fd < 0 ? l->fd : h__fd(epoll_create1(EPOLL_CLOEXEC));
	h__unlock(&l->lock);
	if (l->epoll < 0)
		return l->epoll;
	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->fd, &e) ? -errno : 0;
}

static int check_name(int is_name, const struct h_listener_attr *attr)
{
	if (is_name == -ENAMETOOLONG)
		return h__early(is_name, "HOST/NAME: a name has at most %d characters",
				HAMLYN_MAX_NAME);
	if (is_name < 0)
		return h__early(is_name,
				"HOST/NAME: a name has printable characters, and no blanks");
	if (attr->flags & H_CONNECT_TICKETS)
		return h__early(-EOPNOTSUPP,
				"tickets (H_CONNECT_TICKETS) are descriptors, of one host");
	if (attr->mode)
		return h__early(-EINVAL, "mode 0%o: HOST/NAME has none, say uids", attr->mode);
	return 0;
}

/* The name keeps the NIC, not the device that it was had by. */
static int listen_at_host(struct h_listener *l, const struct h_name *name,
			  const struct h_listener_attr *attr)
{
	struct h_dev *dev = attr->dev;
	int err = dev ? 0 : h_open(NULL, &dev);

	if (err)
		return err;
	err = listen_by_name(l, name, dev);
	if (!attr->dev)
		h_close(dev);
	return err;
}

static int listen_anywhere(struct h_listener *l, const char *path,
			   const struct h_listener_attr *attr)
{
	struct h_name name;
	int is_name = h__name_of(path, &name);
	int err;

	if (!is_name)
		return listen_at(l, path, attr->mode);
	err = check_name(is_name, attr);
	return err ? err : listen_at_host(l, &name, attr);
}

static int listener_init(struct h_listener *l,
			 const struct h_listener_attr *attr)
{
	uint32_t i;

	l->flags = attr->flags;
	l->patience_ns = attr->patience_ns ? attr->patience_ns :
					     DEFAULT_PATIENCE_NS;
	l->waiting = attr->waiting ? attr->waiting : DEFAULT_WAITING;
	l->clients = calloc(l->waiting, sizeof(*l->clients));
	if (!l->clients)
		return -ENOMEM;
	for (i = 0; i < l->waiting; i++)
		l->clients[i].fd = -1;
	if (!attr->uids)
		return 0;
	l->uid_count = attr->uid_count;
	l->uids = calloc(l->uid_count + 1UL, sizeof(*l->uids));
	if (!l->uids)
		return -ENOMEM;
	memcpy(l->uids, attr->uids, l->uid_count * sizeof(*l->uids));
	return 0;
}

static int check_attr(const struct h_listener_attr *attr)
{
	if (attr->flags & ~H_CONNECT_TICKETS)
		return h__early(-EINVAL, "flags 0x%x: only H_CONNECT_TICKETS is allowed",
				attr->flags);
	if (attr->mode & ~07777U)
		return h__early(-EINVAL, "mode 0%o: at most 07777", attr->mode);
	if (attr->waiting > MAX_WAITING)
		return h__early(-EINVAL, "waiting %u: at most %d", attr->waiting, MAX_WAITING);
	return 0;
}

static int cannot_listen(const char *path, int err)
{
	switch (err) {
	case -EINVAL:
		return h__early(err, "\"%.100s\": must be a path, or '@' and a name", path);
	case -ENAMETOOLONG:
		return h__early(err, "%.60s...: a path of a socket has at most 107 bytes", path);
	case -EADDRINUSE:
		return h__early(err, "%.100s: another server listens there", path);
	case -EEXIST:
		return h__early(err, "%.100s is there, and is no socket", path);
	case -ENOENT:
		return h__early(err, "%.100s: the directory is not there", path);
	case -EACCES:
	case -EROFS:
		return h__early(err, "%.100s: this user may not make files in its directory",
				path);
	case -EMFILE:
		return h__early(err, "this process has all descriptors of its RLIMIT_NOFILE");
	}
	return h__early_end(err, path);
}

int h__listener_create(const char *path, const struct h_listener_attr *attr, size_t size,
		       struct h_listener **listener)
{
	struct h_listener_attr at;
	struct h_listener *l;
	int err, cancel;

	*listener = NULL;
	h__early_begin();
	h__lock_forked();
	err = H_TAKE_ATTR(NULL, &at, attr, size);
	if (!err && !path)
		err = h__early(-EINVAL, "the path is NULL");
	if (!err)
		err = check_attr(&at);
	if (err)
		return err;
	l = calloc(1, sizeof(*l));
	if (!l)
		return h__early_end(-ENOMEM, path);
	l->fd = -1;
	l->epoll = -1;
	l->pid = getpid();
	cancel = h__cancel_off();
	err = listener_init(l, &at);
	if (!err) {
		enlist(l);
		err = listen_anywhere(l, path, &at);
	}
	if (err)
		h_listener_destroy(l);
	else
		*listener = l;
	h__cancel_restore(cancel);
	return cannot_listen(path, err);
}

void h_listener_destroy(struct h_listener *l)
{
	bool ours;
	int cancel;

	if (!l)
		return;
	cancel = h__cancel_off();
	/* A child may have its parent's number, but not its socket. */
	ours = l->fd >= 0 && l->pid == getpid();
	if (ours)
		h__path_remove(&l->path);
	h__lock(&list_lock);
	close_all(l, ours ? h__hang_up : close_copy);
	if (l->listed)
		H_UNLINK(listeners, l);
	h__unlock(&list_lock);
	h__close_waiting();
	h__cancel_restore(cancel);
	free(l->path.name);
	free(l->clients);
	free(l->uids);
	free(l);
}
