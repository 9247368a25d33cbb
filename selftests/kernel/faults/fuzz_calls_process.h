/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations of the fuzzer: descriptors, processes, and what is around them. */
#ifndef FUZZ_CALLS_PROCESS_H
#define FUZZ_CALLS_PROCESS_H

#include "fuzz_calls_netlink.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void run_ops(struct thread *t, unsigned int n);

/* ---- descriptors ---- */

static void op_open(struct thread *t)
{
	uint32_t i = t->focus ? t->focus - 1 : below(t, CONTEXTS);
	char path[] = "/dev/hamlyn0";
	struct hamlyn_query arg = { 0 };
	int fd, to = FD_CONTEXT + (int)i;

	if (one_in(t, 6))
		path[11] = (char)('0' + some_nic(t, NICS));
	fd = open(path, O_RDWR | O_CLOEXEC);
	count_errno(K_OPEN, fd);
	if (fd < 0)
		return;
	/* In the place of another one, which may be in use. */
	memset(&known[i], 0, sizeof(known[i]));
	dup3(fd, to, one_in(t, 2) ? O_CLOEXEC : 0);
	close(fd);
	known[i].open = 1;
	t->fd = to;
	if (!call(t, K_QUERY, &arg))
		known[i].host = arg.host;
}

static void op_close(struct thread *t)
{
	uint32_t i = below(t, DESCRIPTORS);

	if (i < CONTEXTS)
		known[i].open = 0;
	else if (i < CONTEXTS + TICKETS)
		tickets[i - CONTEXTS] = false;
	count_errno(K_CLOSE, close(FD_CONTEXT + (int)i));
}

static void op_dup(struct thread *t)
{
	uint32_t from = below(t, CONTEXTS), to = below(t, CONTEXTS);
	int ret = dup3(FD_CONTEXT + (int)from, FD_CONTEXT + (int)to, 0);

	count_errno(K_DUP, ret);
	if (ret >= 0 && from != to)
		known[to] = known[from];
}

/* A descriptor with what there is to know about it. Not to be copied. */
struct parcel {
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr header;
	} control;
	struct known copy;
	struct iovec iov;
	struct msghdr msg;
};

static void parcel_init(struct parcel *p)
{
	memset(p, 0, sizeof(*p));
	p->iov = (struct iovec) { &p->copy, sizeof(p->copy) };
	p->msg.msg_iov = &p->iov;
	p->msg.msg_iovlen = 1;
	p->msg.msg_control = p->control.bytes;
	p->msg.msg_controllen = sizeof(p->control.bytes);
}

/* To whoever takes it. Of other descriptors there is nothing to know. */
static void op_pass(struct thread *t)
{
	uint32_t i = below(t, DESCRIPTORS);
	int fd = FD_CONTEXT + (int)i;
	struct cmsghdr *c;
	struct parcel p;

	parcel_init(&p);
	p.copy = known[i % CONTEXTS];
	if (i >= CONTEXTS)
		p.iov.iov_len = 1;
	c = CMSG_FIRSTHDR(&p.msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	count_errno(K_PASS, sendmsg(FD_GIVE, &p.msg, MSG_DONTWAIT));
}

static void op_take(struct thread *t)
{
	uint32_t i = below(t, CONTEXTS);
	struct parcel p;
	ssize_t n;
	int fd;

	parcel_init(&p);
	n = recvmsg(FD_TAKE, &p.msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	count_errno(K_TAKE, n);
	if (n < 0 || !CMSG_FIRSTHDR(&p.msg))
		return;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&p.msg)), sizeof(fd));
	if (n == sizeof(p.copy)) {
		known[i] = p.copy;
		dup3(fd, FD_CONTEXT + (int)i, O_CLOEXEC);
		close(fd);
	} else if (one_in(t, 2)) {
		keep_ticket(t, fd);
	} else {
		keep_line(t, fd);
	}
}

/* ---- processes ---- */

/* As root in a namespace of its own, with a NIC there if it may have one. */
static void enter_namespace(struct thread *t)
{
	int flags = t->root ? CLONE_NEWNET : CLONE_NEWUSER | CLONE_NEWNET;
	int ret = unshare(flags);

	count_errno(K_NAMESPACE, ret);
	if (ret)
		return;
	new_socket(t);
	dup3(open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), FD_NETNS,
	     O_CLOEXEC);
}

static void child(struct thread *t, pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(0);
	/* Else it is the parent's next choice that decides: to kill it. */
	t->random = ~t->random;
	if (one_in(t, 4))
		enter_namespace(t);
	t->focus = 0;
	run_ops(t, 1 + below(t, 64));
	/* What is close-on-exec goes, and all of the memory at once. */
	if (one_in(t, 8)) {
		close(STDOUT_FILENO);
		execl("/proc/self/exe", "fuzz_calls", "--help", NULL);
	}
	_exit(0);
}

/* It inherits descriptors and, after MADV_DOFORK, mappings. */
static void op_fork(struct thread *t)
{
	pid_t parent = getpid(), pid;

	if (!one_in(t, 4))
		return;
	pid = fork();
	if (!pid)
		child(t, parent);
	count_errno(K_FORK, pid);
	if (pid > 0 && one_in(t, 2)) {
		usleep(below(t, 3000));
		kill(pid, SIGKILL);
	}
}

static void op_rlimit(struct thread *t)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_MEMLOCK, &limit))
		return;
	limit.rlim_cur = one_in(t, 3) ? some_size(t, 1 << 20) : 8 << 20;
	if (limit.rlim_cur > limit.rlim_max)
		limit.rlim_cur = limit.rlim_max;
	count_errno(K_RLIMIT, setrlimit(RLIMIT_MEMLOCK, &limit));
}

#endif /* FUZZ_CALLS_PROCESS_H */
