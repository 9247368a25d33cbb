// SPDX-License-Identifier: MIT
/*
 * Servers. A listener keeps the clients that have not said yet what they want in a
 * table, and reads from whichever has something to say: one that is silent waits
 * beside the others, for a while, and in its user's share of the table.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "rendezvous.h"

#define DEFAULT_WAITING		256
#define MAX_WAITING		1024
#define DEFAULT_PATIENCE_NS	1000000000LL
#define BACKLOG			256
#define CALLERS_AT_ONCE		16	/* between looks at the deadline */
#define ROUNDS_AT_ONCE		64
#define NAP_NS			1000000L
#define LOCK_TRIES		500
#define ASK_TIMES		5

#define LISTENING	UINT32_MAX	/* among indices of clients */

/* A client that was not heard yet; fd -1: none. */
struct waiting {
	int fd;
	int64_t until;
	struct h_peer peer;
};

/* One that has. */
struct guest {
	int fd;
	int fds[2];
	struct h_peer peer;
	struct h_saying says;
};

struct h_listener {
	pthread_mutex_t lock;	/* the clients */
	struct waiting *clients;
	uint32_t waiting;	/* room for them */
	uint32_t flags;
	int64_t patience_ns;
	int fd;
	int epoll;
	uid_t *uids;
	uint32_t uid_count;
	char *path;		/* to be removed, or NULL */
	dev_t path_dev;
	ino_t path_ino;
	pid_t pid;		/* who listens; not its children */
};

/* ---- sending away ---- */

/* It need not listen to that, and we do not wait for it to. */
static void refuse(int fd, int err)
{
	const struct h_saying s = {
		.what = H_SAYS_REPLY,
		.status = (uint32_t)-err,
	};

	h__say(fd, &s, NULL);
	close(fd);
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
			close(take_out(l, w));
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
	refuse(take_out(l, victim), -EUSERS);
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
	struct waiting w = { .fd = fd,
			     .until = h__deadline(l->patience_ns) };
	struct epoll_event e = { .events = EPOLLIN };
	struct waiting *place;

	if (h__peer_of(fd, &w.peer)) {
		close(fd);
		return;
	}
	if (!h__uid_in(w.peer.uid, l->uids, l->uid_count)) {
		refuse(fd, -EACCES);
		return;
	}
	place = free_place(l);
	e.data.u32 = (uint32_t)(place - l->clients);
	if (epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &e)) {
		refuse(fd, -EUSERS);
		return;
	}
	*place = w;
}

static int take_callers(struct h_listener *l)
{
	int fd, n;

	for (n = 0; n < CALLERS_AT_ONCE; n++) {
		fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0)
			let_wait(l, fd);
		else if (errno != ECONNABORTED && errno != EINTR)
			return errno == EAGAIN ? 0 : -errno;
	}
	return 0;
}

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

/* Did this client say something that makes sense? Then it is out of the table. */
static bool hear_client(struct h_listener *l, struct waiting *w, uint32_t kind,
			struct guest *g)
{
	bool tickets = l->flags & H_CONNECT_TICKETS;
	int err;

	g->fds[0] = -1;
	g->fds[1] = -1;
	err = h__hear(w->fd, &g->says, tickets ? g->fds : NULL);
	if (err == -EAGAIN)
		return false;
	g->fd = take_out(l, w);
	g->peer = w->peer;
	err = err ? -EPROTO : wrong_with(l, &g->says, kind, g->fds);
	if (!err)
		return true;
	h__close_fds(g->fds);
	refuse(g->fd, err);
	return false;
}

static bool is_over(int64_t deadline_ns)
{
	return deadline_ns > 0 && h__now_ns() >= deadline_ns;
}

/*
 * 1 with a guest, 0 if nobody has anything to say, or nothing that makes sense until
 * the deadline, or an errno of accepting.
 */
static int next_guest(struct h_listener *l, uint32_t kind, struct guest *g,
		      int64_t deadline_ns)
{
	unsigned int round;
	int err = 0;

	expire(l);
	for (round = 0; round < ROUNDS_AT_ONCE && !err; round++) {
		struct epoll_event e;

		/* One by one: what else was ready may be gone by then. */
		if (epoll_wait(l->epoll, &e, 1, 0) <= 0)
			return 0;
		if (e.data.u32 == LISTENING)
			err = take_callers(l);
		else if (l->clients[e.data.u32].fd >= 0 &&
			 hear_client(l, &l->clients[e.data.u32], kind, g))
			return 1;
		if (is_over(deadline_ns))
			break;
	}
	return err;
}

/* ---- guests ---- */

static bool its_fault(int err)
{
	return err == -EINVAL || err == -EPROTO || err == -EPROTOTYPE ||
	       err == -EBADF || err == -ENOKEY || err == -ECONNRESET;
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
	h__saying_device(&s, half->manager->dev);
	h__half_card(half, s.card);
	return h__say(g->fd, &s, tickets ? half->fds : NULL) ? -ECONNRESET : 0;
}

/* 0: it is in. 1: it is not, by its own fault. */
static int receive_guest(struct h_half *half, const struct h_listener *l,
			 struct h_manager *m, const struct h_stream_attr *attr,
			 struct guest *g)
{
	bool tickets = l->flags & H_CONNECT_TICKETS;
	int err;

	if (!m) {
		refuse(g->fd, -EUSERS);
		return -ECANCELED;
	}
	if (!h__same_device(&g->says, m->dev)) {
		refuse(g->fd, -EXDEV);
		return 1;
	}
	err = h__half_create(half, m, attr, tickets);
	if (err) {
		refuse(g->fd, -EUSERS);
		return err;
	}
	err = welcome(half, l, g);
	if (!err) {
		h__half_close_fds(half);
		close(g->fd);
		return 0;
	}
	h__half_destroy(half);
	refuse(g->fd, its_fault(err) ? -EPROTO : -EUSERS);
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
		pthread_mutex_lock(&l->lock);
		ret = next_guest(l, kind, g, deadline_ns);
		pthread_mutex_unlock(&l->lock);
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

int h__accept(struct h_half *half, struct h_listener *l, struct h_manager *m,
	      const struct h_stream_attr *attr, struct h_peer *peer,
	      int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	unsigned int sent_away = 0;
	struct guest g;
	int err;

	for (;;) {
		err = wait_for_guest(l, half->kind, &g, deadline);
		if (err)
			return err;
		err = receive_guest(half, l, m, attr, &g);
		h__close_fds(g.fds);
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

int h_listener_accept(struct h_listener *l, struct h_manager *m,
		      const struct h_stream_attr *attr,
		      struct h_stream_pair *pair, int64_t timeout_ns)
{
	struct h_half half = { .kind = H_KIND_STREAMS };
	int err;

	*pair = (struct h_stream_pair) {};
	err = h__accept(&half, l, m, attr, &pair->peer, timeout_ns);
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

/* ---- from create to destroy ---- */

static void nap(void)
{
	const struct timespec ts = { .tv_nsec = NAP_NS };

	nanosleep(&ts, NULL);
}

/*
 * Servers that start in one directory do so one after the other. Else one would find
 * another's socket between its bind() and listen(), take it for that of a dead server
 * and remove it; and two that find the same dead one would remove it both, the second
 * time in place of the first one's own.
 *
 * Return: a descriptor for unlock(), or -1 if there is no lock to be had: the directory
 * may not be read, or somebody keeps it locked for other reasons.
 */
static int lock_directory_of(const char *path)
{
	const char *slash = strrchr(path, '/');
	char directory[sizeof(((struct sockaddr_un *)0)->sun_path)] = ".";
	int fd, tries;

	if (slash && (size_t)(slash - path) < sizeof(directory) - 1) {
		memcpy(directory, path, (size_t)(slash - path) + 1);
		directory[slash - path + 1] = 0;
	}
	fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (tries = 0; fd >= 0 && flock(fd, LOCK_EX | LOCK_NB); tries++) {
		if (tries == LOCK_TRIES ||
		    (errno != EWOULDBLOCK && errno != EINTR)) {
			close(fd);
			return -1;
		}
		nap();
	}
	return fd;
}

static void unlock(int fd)
{
	if (fd < 0)
		return;
	/* Closing it is not enough while a child of a fork has it open, too. */
	flock(fd, LOCK_UN);
	close(fd);
}

/* 0: it is dead. */
static int ask_server(const struct sockaddr_un *address, unsigned int length)
{
	struct stat st;
	int fd, err = 0;

	if (lstat(address->sun_path, &st))
		return errno == ENOENT ? 0 : -errno;
	if (!S_ISSOCK(st.st_mode))
		return -EEXIST;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (!connect(fd, (const struct sockaddr *)address, length) ||
	    (errno != ECONNREFUSED && errno != ENOENT))
		err = -EADDRINUSE;
	close(fd);
	return err;
}

/*
 * Is the server that made this path dead? One that does not lock the directory, as
 * others' servers do not, may be about to listen.
 */
static int look_for_server(const struct sockaddr_un *address,
			   unsigned int length)
{
	int i, err;

	for (i = 0; i < ASK_TIMES; i++) {
		if (i)
			nap();
		err = ask_server(address, length);
		if (err)
			return err;
	}
	return 0;
}

static int take_address(struct h_listener *l, const char *path)
{
	struct sockaddr_un address;
	unsigned int length;
	int err;

	err = h__address(path, &address, &length);
	if (err)
		return err;
	if (!bind(l->fd, (struct sockaddr *)&address, length))
		return 0;
	if (errno != EADDRINUSE || *path == '@')
		return -errno;
	err = look_for_server(&address, length);
	if (err)
		return err;
	unlink(path);
	return bind(l->fd, (struct sockaddr *)&address, length) ? -errno : 0;
}

/* So that another server's path is not removed in place of ours. */
static int keep_path(struct h_listener *l, const char *path, uint32_t mode)
{
	struct stat st;

	if (*path == '@')
		return 0;
	if ((mode && chmod(path, mode)) || lstat(path, &st))
		return -errno;
	l->path = strdup(path);
	l->path_dev = st.st_dev;
	l->path_ino = st.st_ino;
	return l->path ? 0 : -ENOMEM;
}

/* From bind() to listen(). */
static int take_path(struct h_listener *l, const char *path, uint32_t mode)
{
	int err;

	err = take_address(l, path);
	if (!err)
		err = keep_path(l, path, mode);
	if (!err && listen(l->fd, BACKLOG))
		err = -errno;
	return err;
}

static int take_path_alone(struct h_listener *l, const char *path, uint32_t mode)
{
	/* Who is cancelled in the middle would leave the directory locked. */
	int cancel = h__cancel_off();
	int lock = *path == '@' ? -1 : lock_directory_of(path);
	int err = take_path(l, path, mode);

	unlock(lock);
	h__cancel_restore(cancel);
	return err;
}

static int listen_at(struct h_listener *l, const char *path, uint32_t mode)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = LISTENING };
	int err;

	l->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (l->fd < 0 || l->epoll < 0)
		return -errno;
	/* The path never has a wider mode than it should. */
	if (mode && fchmod(l->fd, mode))
		return -errno;
	err = take_path_alone(l, path, mode);
	if (err)
		return err;
	return epoll_ctl(l->epoll, EPOLL_CTL_ADD, l->fd, &e) ? -errno : 0;
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

int h_listener_create(const char *path, const struct h_listener_attr *attr,
		      struct h_listener **listener)
{
	static const struct h_listener_attr defaults;
	struct h_listener *l;
	int err;

	*listener = NULL;
	if (!attr)
		attr = &defaults;
	if (attr->flags & ~H_CONNECT_TICKETS || attr->mode & ~07777U ||
	    attr->patience_ns < 0 || attr->waiting > MAX_WAITING)
		return -EINVAL;
	l = calloc(1, sizeof(*l));
	if (!l)
		return -ENOMEM;
	l->fd = -1;
	l->epoll = -1;
	l->pid = getpid();
	pthread_mutex_init(&l->lock, NULL);
	err = listener_init(l, attr);
	if (!err)
		err = listen_at(l, path, attr->mode);
	if (err)
		h_listener_destroy(l);
	else
		*listener = l;
	return err;
}

static void remove_path(const struct h_listener *l)
{
	struct stat st;

	if (l->pid == getpid() && !lstat(l->path, &st) &&
	    st.st_dev == l->path_dev && st.st_ino == l->path_ino)
		unlink(l->path);
}

void h_listener_destroy(struct h_listener *l)
{
	uint32_t i;

	if (!l)
		return;
	if (l->path)
		remove_path(l);
	for (i = 0; l->clients && i < l->waiting; i++)
		if (l->clients[i].fd >= 0)
			close(l->clients[i].fd);
	if (l->epoll >= 0)
		close(l->epoll);
	if (l->fd >= 0)
		close(l->fd);
	pthread_mutex_destroy(&l->lock);
	free(l->path);
	free(l->clients);
	free(l->uids);
	free(l);
}
