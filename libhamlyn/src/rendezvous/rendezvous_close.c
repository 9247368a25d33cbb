// SPDX-License-Identifier: MIT
/*
 * To close what a stranger has sent may take as long as he likes: a socket that lingers, a
 * file of a file system of his own. With a socket go the messages that nobody read, and what
 * is in them. That is done with nothing locked, in threads that nobody waits for: so many of
 * them, with so many descriptors waiting. What is more the caller closes himself.
 */
#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rendezvous/rendezvous.h"

#define THREADS		16
#define THREAD_STACK	(128 * 1024)
#define WAITING		256

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif

static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
/* Behind a listener's, and not for long: forks wait for it. */
static uint32_t lock;		/* lock.h */
static int *waiting;
static unsigned int count, room;
static unsigned int threads;

/* ---- forks ---- */

static void before_fork(void)
{
	h__lock(&lock);
}

static void after_fork_parent(void)
{
	h__unlock(&lock);
}

/* Copies, and hardly ever the last ones: the parent would have been faster. */
static void after_fork_child(void)
{
	while (count)
		close(waiting[--count]);
	threads = 0;
	h__lock_forked();
	h__lock_renew(&lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

void h__close_watch_forks(void)
{
	pthread_once(&fork_once, watch_forks);
}

/* ---- threads ---- */

/*
 * With the lock, which is let go meanwhile. The last that came is the first to go: a caller
 * who has to close his own does not do so for those who came before.
 */
static void close_down_to(unsigned int most)
{
	while (count > most) {
		int fd = waiting[--count];

		h__unlock(&lock);
		close(fd);
		h__lock(&lock);
	}
}

static void *close_all(void *arg)
{
	h__lock(&lock);
	close_down_to(0);
	threads--;
	h__unlock(&lock);
	return arg;
}

static int start_thread(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	int err;

	if (pthread_attr_init(&attr))
		return -ENOMEM;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, THREAD_STACK);
	/* Signals are the application's. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(&thread, &attr, close_all, NULL);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return -err;
}

void h__close_waiting(void)
{
	bool start;
	int err;

	h__lock(&lock);
	start = count && threads < THREADS;
	threads += start;
	h__unlock(&lock);
	err = start ? start_thread() : 0;
	h__lock(&lock);
	threads -= err != 0;
	close_down_to(threads ? WAITING : 0);
	h__unlock(&lock);
}

/* ---- what is to be closed ---- */

static bool make_room(void)
{
	unsigned int more = room ? 2 * room : WAITING;
	int *p;

	if (count < room)
		return true;
	p = realloc(waiting, more * sizeof(*p));
	if (!p)
		return false;
	waiting = p;
	room = more;
	return true;
}

void h__close_later(int fd)
{
	bool later;

	h__close_watch_forks();
	h__lock(&lock);
	later = make_room();
	if (later)
		waiting[count++] = fd;
	h__unlock(&lock);
	/* Without memory there is nothing better. */
	if (!later)
		close(fd);
}

void h__close_fds_later(const int *fds)
{
	int i;

	for (i = 0; i < 2; i++)
		if (fds[i] >= 0)
			h__close_later(fds[i]);
}

void h__take_no_descriptors(int sock)
{
	const int off = 0;

	setsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof(off));
}

/* Nor will anything come: it was shut down. */
static bool holds_nothing(int sock)
{
	struct msghdr msg = {};
	socklen_t n = sizeof(int);
	int on = 1, tries = 2;
	ssize_t ret;

	if (!getsockopt(sock, SOL_SOCKET, SO_PASSRIGHTS, &on, &n) && !on)
		return true;
	/* Who sent it does not fit: so an empty message does not look like the end. */
	on = 1;
	if (setsockopt(sock, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)))
		return false;
	do
		ret = recvmsg(sock, &msg, MSG_PEEK | MSG_DONTWAIT);
	while (ret < 0 && errno == ECONNRESET && --tries);
	if (ret < 0)
		return errno == ENOTCONN;
	return !ret && !(msg.msg_flags & MSG_CTRUNC);
}

void h__hang_up(int sock)
{
	/* A child that was forked just now may not have closed its copy yet. */
	shutdown(sock, SHUT_RDWR);
	if (holds_nothing(sock))
		close(sock);
	else
		h__close_later(sock);
}
