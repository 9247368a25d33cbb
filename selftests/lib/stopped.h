/* SPDX-License-Identifier: GPL-2.0-only */
/* A process that is stopped while what it sends lands: on the embedded device only. */
#ifndef STOPPED_H
#define STOPPED_H

#include <hamlyn/datagram.h>

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hamlyn_test.h"

#define STOPPED_PAGE	4096

static char *stopped_unreadable;

static void stopped_first(int sig)
{
	(void)sig;
	raise(SIGSTOP);
	/* It lives, and goes on. */
	if (mprotect(stopped_unreadable, STOPPED_PAGE, PROT_READ | PROT_WRITE))
		_exit(1);
}

/* 64 bytes, of which 8 can be read before it goes on. */
static inline void stopped_child(const struct h_datagram_address *to)
{
	struct h_manager *from;
	struct h_dev *dev;
	char *p;

	p = mmap(NULL, 2 * STOPPED_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		 0);
	if (p == MAP_FAILED || mprotect(p + STOPPED_PAGE, STOPPED_PAGE, PROT_NONE) ||
	    h_open(ht_device(), &dev) || h_manager_create(dev, NULL, &from))
		_exit(1);
	stopped_unreadable = p + STOPPED_PAGE;
	signal(SIGSEGV, stopped_first);
	_exit(h_datagram_send(from, to, 0, stopped_unreadable - 8, 64, NULL, HT_SEC) ? 2 : 0);
}

/* A child that has stopped in there, and ends with 0 when it goes on; -1 if there is none. */
static inline pid_t stopped_sender(const struct h_datagram_address *to)
{
	pid_t pid = ht_fork();
	int status;

	if (!pid)
		stopped_child(to);
	if (pid < 0 || waitpid(pid, &status, WUNTRACED) != pid || !WIFSTOPPED(status))
		return -1;
	return pid;
}

/* A few ms, unless others need the processors; who waits for the one who is stopped: 5 s. */
static inline int64_t stopped_soon(void)
{
	return HT_SEC * ht_scale();
}

#endif /* STOPPED_H */
