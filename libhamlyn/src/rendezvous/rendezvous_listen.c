// SPDX-License-Identifier: MIT
/* Servers, from create to destroy, and what a fork leaves of them. */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rendezvous/rendezvous_guests.h"

#define DEFAULT_WAITING		256
#define MAX_WAITING		1024
#define DEFAULT_PATIENCE_NS	1000000000LL

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
	struct h_guest *g;
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

int h_listener_fd(const struct h_listener *l)
{
	return l->epoll;
}

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
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = H_LISTENING };
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
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = H_LISTENING };

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
