// SPDX-License-Identifier: MIT
/*
 * A manager's descriptor for event loops.
 *
 * An eventfd says whether receivers are ready. A timer says when it is time to try again
 * what could not be sent, or to look which buffers nobody needs: nothing arrives for that,
 * and a loop that was told at once would be told without end. Whether the NQ has something
 * says the kernel device itself. They are watched by an epoll descriptor, which can be
 * watched in turn. The embedded device has nothing to watch: there a thread sleeps on the
 * NQ, says so with the same eventfd, and waits until the NQ has been emptied.
 */
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "manager/manager.h"

/* manager->lock, if nothing else is said. */
struct h_event {
	int fd;			/* what the application has */
	int ready_fd;		/* the eventfd */
	int timer_fd;
	int64_t timer_ns;	/* when it goes off, or has; 0: never */
	struct h_fork_fds fork_fds;
	bool readable;		/* it is */
	bool threaded;
	uint32_t nq_ready;	/* the thread found something; its futex */
	uint32_t stop;		/* atomic */
	pthread_t thread;
};

static bool nq_has_entry(const struct h_nq *nq)
{
	uint32_t pos = h__read_once(&nq->control->consumer);

	return h__load_acquire(&nq->entries[pos & nq->mask].sequence) ==
	       pos + 1;						/* B3 */
}

static void set_readable(struct h_event *e, bool readable)
{
	uint64_t n = 1;

	if (e->readable == readable)
		return;
	/*
	 * Neither can fail or wait: the counter is 0 or 1. Not the C library's, which
	 * are cancellation points: the manager is locked.
	 */
	if (syscall(readable ? SYS_write : SYS_read, e->ready_fd, &n, sizeof(n)))
		e->readable = readable;
}

/* An absolute time, or 0; that it went off before is forgotten. */
static void set_timer(struct h_event *e, int64_t at_ns)
{
	const struct itimerspec at = {
		.it_value = { .tv_sec = at_ns / 1000000000, .tv_nsec = at_ns % 1000000000 },
	};

	if (e->timer_ns == at_ns)
		return;
	if (!timerfd_settime(e->timer_fd, TFD_TIMER_ABSTIME, &at, NULL))
		e->timer_ns = at_ns;
}

/* One that goes off too soon costs less than a system call for each time that it would. */
static void update_timer(struct h_manager *m)
{
	struct h_event *e = m->event;
	int64_t now, ns = h__look_again_ns(m);

	if (!ns) {
		set_timer(e, 0);
		return;
	}
	now = h__now_ns();
	if (!e->timer_ns || now >= e->timer_ns || now + ns < e->timer_ns)
		set_timer(e, now + ns);
}

void h__event_update(struct h_manager *m)
{
	struct h_event *e = m->event;

	if (e->nq_ready && !nq_has_entry(m->nq)) {
		h__write_once(&e->nq_ready, 0);
		syscall(SYS_futex, &e->nq_ready, FUTEX_WAKE_PRIVATE, 1, NULL,
			NULL, 0);
	}
	set_readable(e, m->ready || e->nq_ready);
	update_timer(m);
}

/* ---- the embedded device's thread ---- */

static void *watch_nq(void *arg)
{
	struct h_manager *m = arg;
	struct h_event *e = m->event;

	while (!h__load_acquire(&e->stop)) {
		h__nq_sleep(m->nq, -1);
		if (!nq_has_entry(m->nq))
			continue;
		h__lock(&m->lock);
		h__write_once(&e->nq_ready, 1);
		set_readable(e, true);
		h__unlock(&m->lock);
		while (h__read_once(&e->nq_ready) && !h__load_acquire(&e->stop))
			syscall(SYS_futex, &e->nq_ready, FUTEX_WAIT_PRIVATE, 1,
				NULL, NULL, 0);
	}
	return NULL;
}

static int thread_start(struct h_manager *m)
{
	sigset_t all, old;
	int err;

	/* Signals are the application's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&m->event->thread, NULL, watch_nq, m);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	m->event->threaded = !err;
	return -err;
}

static void thread_stop(struct h_manager *m)
{
	struct h_event *e = m->event;

	h__store_release(&e->stop, 1);
	h__write_once(&e->nq_ready, 0);
	syscall(SYS_futex, &e->nq_ready, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	h__manager_nudge(m);
	pthread_join(e->thread, NULL);
}

/* ---- what is watched ---- */

/* @dev_fd: of the kernel device, or -1. */
static int watch_all(struct h_event *e, int dev_fd)
{
	struct epoll_event event = { .events = EPOLLIN };

	e->fd = h__fd(epoll_create1(EPOLL_CLOEXEC));
	if (e->fd < 0)
		return e->fd;
	if (epoll_ctl(e->fd, EPOLL_CTL_ADD, e->ready_fd, &event) ||
	    epoll_ctl(e->fd, EPOLL_CTL_ADD, e->timer_fd, &event) ||
	    (dev_fd >= 0 && epoll_ctl(e->fd, EPOLL_CTL_ADD, dev_fd, &event)))
		return -errno;
	return 0;
}

static void event_free(struct h_event *e)
{
	if (e->fd >= 0)
		close(e->fd);
	if (e->ready_fd >= 0)
		close(e->ready_fd);
	if (e->timer_fd >= 0)
		close(e->timer_fd);
	free(e);
}

static int open_all(struct h_event *e, int dev_fd)
{
	e->fd = -1;
	e->timer_fd = -1;
	e->ready_fd = h__fd(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	if (e->ready_fd < 0)
		return e->ready_fd;
	e->timer_fd = h__fd(timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	return e->timer_fd < 0 ? e->timer_fd : watch_all(e, dev_fd);
}

/* m->lock held. */
static int event_create(struct h_manager *m)
{
	struct h_event *e = calloc(1, sizeof(*e));
	int dev_fd = h_dev_fd(m->dev);
	int err;

	if (!e)
		return -ENOMEM;
	err = open_all(e, dev_fd);
	m->event = e;
	if (!err && dev_fd < 0)
		err = thread_start(m);
	if (err) {
		m->event = NULL;
		event_free(e);
		return err;
	}
	e->fork_fds.fd[0] = e->ready_fd;
	e->fork_fds.fd[1] = e->fd;
	e->fork_fds.fd[2] = e->timer_fd;
	h__fork_fds_add(m->dev, &e->fork_fds);
	return 0;
}

int h_manager_fd(struct h_manager *m)
{
	int cancel = h__cancel_off();
	int fd;

	if (h__unlikely(h__read_once(&m->calls)))
		h__calls_mend(m, __builtin_frame_address(0));
	h__lock(&m->lock);
	fd = m->event ? 0 : event_create(m);
	if (!fd) {
		fd = m->event->fd;
		h__event_update(m);
	}
	h__unlock(&m->lock);
	h__cancel_restore(cancel);
	switch (fd) {
	case -EMFILE:
		return h__refuse(m->dev, fd,
				 "this process has all descriptors of its RLIMIT_NOFILE");
	case -EAGAIN:
		return h__refuse(m->dev, fd,
				 "no thread for the manager: see RLIMIT_NPROC");
	}
	return fd;
}

void h__event_exit(struct h_manager *m)
{
	int cancel;

	if (!m->event)
		return;
	cancel = h__cancel_off();
	if (m->event->threaded)
		thread_stop(m);
	h__fork_fds_remove(m->dev, &m->event->fork_fds);
	event_free(m->event);
	m->event = NULL;
	h__cancel_restore(cancel);
}
