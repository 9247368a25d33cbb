// SPDX-License-Identifier: MIT
/* A server: what wakes it, and what it does then. */
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "server/server.h"

#define MOST_CLIENTS	65536
#define CLIENTS_AT_ONCE	16
#define ROUNDS_AT_ONCE	64	/* of messages, between two looks at everything else */
#define SPIN_NS		20000	/* as managers do, before sleeping */
#define FIRST_TICK_NS	1000000
#define LAST_TICK_NS	64000000

enum { MANAGER, LISTENER, STOP, TIMER };

/* ---- making ---- */

static int watch(struct h_server *s, int fd, uint32_t what)
{
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = what };

	return epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static int open_fds(struct h_server *s)
{
	s->epoll = h__fd(epoll_create1(EPOLL_CLOEXEC));
	s->stop = h__fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	s->timer = h__fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	s->fork_fds[0] = (struct h_fork_fds) { .fd = { s->epoll, s->stop, -1 } };
	s->fork_fds[1] = (struct h_fork_fds) { .fd = { s->timer, -1, -1 } };
	h__fork_fds_add(s->dev, &s->fork_fds[0]);
	h__fork_fds_add(s->dev, &s->fork_fds[1]);
	return s->epoll < 0 ? s->epoll : s->stop < 0 ? s->stop : s->timer < 0 ? s->timer : 0;
}

static void close_fds(struct h_server *s)
{
	int i;

	for (i = 0; i < 2; i++)
		h__fork_fds_remove(s->dev, &s->fork_fds[i]);
	for (i = 0; i < 3; i++) {
		int fd = s->fork_fds[i / 2].fd[i % 2];

		if (fd >= 0)
			close(fd);
	}
}

static int make_listener(struct h_server *s, const char *path, const struct h_server_attr *at)
{
	const struct h_listener_attr attr = {
		.flags = at->flags,
		.mode = at->mode,
		.uid_count = at->uid_count,
		.uids = at->uids,
		.dev = s->dev,
	};

	return h_listener_create(path, &attr, &s->listener);
}

static int watch_all(struct h_server *s)
{
	int err = watch(s, h_listener_fd(s->listener), LISTENER);

	if (!err)
		err = watch(s, s->stop, STOP);
	return err ? err : watch(s, s->timer, TIMER);
}

/* What can be undone by undo(), as far as it got. */
static int make(struct h_server *s, const char *path, const struct h_server_attr *at)
{
	const struct h_manager_attr attr = { .channels = at->clients };
	struct h_why why;
	int err;

	err = open_fds(s);
	if (err)
		return err;
	err = h_manager_create(s->dev, &attr, &s->manager);
	if (err) {
		h__why_keep(s->dev, &why);
		return why.text[0] ? h__early(err, "%s", why.text) : err;
	}
	err = make_listener(s, path, at);
	return err ? err : watch_all(s);
}

static int undo(struct h_server *s)
{
	int err;

	h_listener_destroy(s->listener);
	close_fds(s);
	err = h_manager_destroy(s->manager);
	if (!err)
		h_close(s->dev);
	free(s);
	return err;
}

static void fill_in(struct h_server *s, const struct h_server_attr *at)
{
	s->attr = *at;
	s->attr.uids = NULL;
	s->channel = (struct h_channel_attr) {
		.max_message = at->max_message,
		.buffers = at->buffers,
		.buffer_size = at->buffer_size,
		.max_buffer_size = at->max_buffer_size,
	};
}

static int create_on(struct h_dev *dev, const char *path, const struct h_server_attr *at,
		     struct h_server **server)
{
	struct h_server *s = calloc(1, sizeof(*s));
	int err;

	if (!s) {
		h_close(dev);
		return -ENOMEM;
	}
	s->dev = dev;
	fill_in(s, at);
	err = make(s, path, at);
	if (err)
		undo(s);
	else
		*server = s;
	return err;
}

int h__server_create(const char *path,
		     int (*handler)(struct h_channel *channel, const struct h_message *message,
				    void *arg),
		     void *arg, const struct h_server_attr *attr, size_t size,
		     struct h_server **server)
{
	struct h_server_attr at;
	struct h_dev *dev;
	int err;

	*server = NULL;
	h__early_begin();
	err = H_TAKE_ATTR(NULL, &at, attr, size);
	if (err)
		return err;
	if (!handler || at.clients > MOST_CLIENTS)
		return h__early(-EINVAL, handler ? "a server has at most %d clients" :
				"a server of %d clients at most needs a handler", MOST_CLIENTS);
	err = h_open(at.device, &dev);
	if (err)
		return err;
	err = create_on(dev, path, &at, server);
	if (err)
		return h__early_end(err, path);
	(*server)->handler = handler;
	(*server)->arg = arg;
	return 0;
}

/* ---- what happens ---- */

static void arm_timer(struct h_server *s)
{
	const struct itimerspec t = { .it_value.tv_nsec = s->tick_ns };

	timerfd_settime(s->timer, 0, &t, NULL);
}

void h__server_late(struct h_server *s)
{
	s->tick_ns = FIRST_TICK_NS;
	arm_timer(s);
}

static void listen_again(struct h_server *s)
{
	if (s->deaf && !watch(s, h_listener_fd(s->listener), LISTENER))
		s->deaf = false;
}

/* It is readable for as long as there is nothing to take the next client with. */
static void be_deaf(struct h_server *s)
{
	if (epoll_ctl(s->epoll, EPOLL_CTL_DEL, h_listener_fd(s->listener), NULL))
		return;
	s->deaf = true;
	s->tick_ns = LAST_TICK_NS;
	arm_timer(s);
}

/* Somebody is stopped with them: the listener is readable for as long, and in vain. */
static bool tables_are_stuck(struct h_server *s)
{
	struct h_change_limit before = h__change_limit(H_NOWAIT);
	int err = h__dev_await_change(s->dev);

	h__change_restore(before);
	return h__is_late(err);
}

static void take_clients(struct h_server *s)
{
	unsigned int i;
	int err = 0;

	for (i = 0; i < CLIENTS_AT_ONCE && err != -EAGAIN; i++) {
		err = h__server_accept(s);
		if (err == -EMFILE || err == -ENFILE) {
			be_deaf(s);
			return;
		}
	}
	/* None, although somebody has come */
	if (i == 1 && err == -EAGAIN && tables_are_stuck(s))
		be_deaf(s);
}

static void tick(struct h_server *s)
{
	uint64_t n;

	if (read(s->timer, &n, sizeof(n)) != sizeof(n))
		return;
	listen_again(s);
	s->tick_ns = s->tick_ns < LAST_TICK_NS ? 2 * s->tick_ns : LAST_TICK_NS;
	/* Before they are looked at: a new one makes it shorter again. */
	if (s->late || s->deaf)
		arm_timer(s);
	h__clients_look(s);
}

static void stop_now(struct h_server *s)
{
	uint64_t n;

	if (read(s->stop, &n, sizeof(n)) == sizeof(n))
		h__write_once(&s->stopped, 1);
}

static void handle_event(struct h_server *s, uint32_t what)
{
	switch (what) {
	case LISTENER:
		take_clients(s);
		break;
	case STOP:
		stop_now(s);
		break;
	case TIMER:
		tick(s);
		break;
	default:
		h_manager_dispatch(s->manager);
	}
}

/* 1 if anything has happened, 0, or an errno. */
static int look(struct h_server *s, int timeout_ms)
{
	struct epoll_event e[4];
	int i, n;

	n = epoll_wait(s->epoll, e, 4, timeout_ms);
	if (n < 0)
		return -errno;
	s->inside = true;
	for (i = 0; i < n; i++)
		handle_event(s, e[i].data.u32);
	s->inside = false;
	return n > 0;
}

void h__server_on_room(struct h_server *s, void (*on_room)(struct h_channel *channel))
{
	s->on_room = on_room;
}

void h__server_look(struct h_server *s, bool all)
{
	if (all)
		look(s, 0);
	s->inside = true;
	h_manager_dispatch(s->manager);
	s->inside = false;
}

/* In a child the numbers of its descriptors may be those of others. */
int h_server_fd(struct h_server *s)
{
	int fd, err;

	if (h__is_forked(s->dev))
		return h__refuse_forked(s->dev);
	if (s->watched)
		return s->epoll;
	fd = h_manager_fd(s->manager);
	if (fd < 0)
		return fd;
	err = watch(s, fd, MANAGER);
	if (err)
		return err;
	s->watched = true;
	return s->epoll;
}

int h_server_dispatch(struct h_server *s)
{
	int ret = h_server_fd(s);

	if (ret >= 0)
		ret = look(s, 0);
	return ret < 0 && ret != -EINTR ? ret : 0;
}

/* While messages follow each other closely nothing else is looked at for a while. */
static void handle_messages(struct h_server *s)
{
	int64_t until = h__now_ns() + SPIN_NS;
	unsigned int rounds = 0;

	s->inside = true;
	while (rounds < ROUNDS_AT_ONCE) {
		if (h_manager_dispatch(s->manager)) {
			rounds++;
			until = h__now_ns() + SPIN_NS;
		} else if (h__now_ns() >= until) {
			break;
		}
	}
	s->inside = false;
}

static int sleep_ms(int64_t deadline_ns)
{
	int64_t left = h__time_left(deadline_ns);

	if (left < 0)
		return -1;
	/* Not before the time is over. */
	left = left / 1000000 + (left % 1000000 != 0);
	return left < INT32_MAX ? (int)left : INT32_MAX;
}

int h_server_run(struct h_server *s, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	int ret = h_server_fd(s);

	while (ret >= 0) {
		ret = look(s, 0);
		if (ret < 0)
			break;
		if (__atomic_exchange_n(&s->stopped, 0, __ATOMIC_ACQUIRE))
			return 0;
		if (deadline > 0 && h__now_ns() >= deadline)
			return -ETIMEDOUT;
		handle_messages(s);
		if (deadline == H_NOWAIT)
			return -EAGAIN;
		if (!ret)
			ret = look(s, sleep_ms(deadline));
	}
	return ret;
}

void h_server_stop(struct h_server *s)
{
	const uint64_t one = 1;
	int old = errno;
	ssize_t n;

	/* A handler of signals that a child inherits would write into another file of its own. */
	if (h__is_forked(s->dev))
		return;
	n = write(s->stop, &one, sizeof(one));
	(void)n;	/* full: it was told often enough */
	errno = old;
}

struct h_manager *h_server_manager(const struct h_server *s)
{
	return s->manager;
}

uint32_t h_server_clients(const struct h_server *s)
{
	return h__read_once(&s->count);
}

/* ---- ending ---- */

/* Descriptors are closed already; there are no mappings to look at clients with. */
static void close_in_child(struct h_server *s)
{
	h_listener_destroy(s->listener);
	h_close(s->dev);
	free(s);
}

int h_server_close(struct h_server *s, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	struct h_change_limit before;
	int err, ret;

	if (!s)
		return 0;
	if (h__in_child(s->dev)) {
		close_in_child(s);
		return 0;
	}
	if (s->inside)
		return -EBUSY;
	h_listener_destroy(s->listener);
	s->listener = NULL;
	s->inside = true;
	ret = h__clients_end(s, deadline);
	before = h__change_limit(deadline);
	err = undo(s);
	h__change_restore(before);
	return err ? err : ret;
}
