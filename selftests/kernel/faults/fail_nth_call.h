/* SPDX-License-Identifier: GPL-2.0-only */
/* A call that is made to fail, and what such calls work with and leave behind. */
#ifndef FAIL_NTH_CALL_H
#define FAIL_NTH_CALL_H

#include "fail_nth_state.h"

#include <sys/wait.h>

#define BIG		(700 * PAGE)	/* to be wired in more than one go */
#define OTHER_USER	4711

struct question;

/**
 * struct call - a call that is made to fail
 * @name: what it is
 * @before: makes what it needs, each time anew; or NULL
 * @act: the call: 0 or more, or a negative errno
 * @after: takes back what take_back() does not know of, whether the call worked
 *	or not; or NULL
 * @good: what it returns when nothing fails; 0 stands for 0 or more
 * @error: what it may return when something does, beside ENOMEM and EFAULT
 * @faults_once: not with --lasting: this process itself would not come out of it,
 *	because it gets no page that it writes to, or does not become root again
 * @afresh: in a context of its own, whose tables have no room yet
 * @length: of the area that is made
 * @flags: of it
 * @kind: HAMLYN_STATS_*
 * @id: of what the statistics are; NULL: 0
 * @offset: of what is mapped
 * @mapped: its length
 * @prot: how
 * @question: what is asked by netlink; or NULL
 */
struct call {
	const char *name;
	int (*before)(void);
	int (*act)(void);
	void (*after)(void);
	int good;
	int error;
	bool faults_once;
	bool afresh;
	size_t length;
	uint32_t flags;
	uint32_t kind;
	const __u32 *id;
	const __u64 *offset;
	const __u64 *mapped;
	int prot;
	const struct question *question;
};

static struct {
	const struct call *call;	/* that is being made */
	struct party p;
	struct hamlyn_area_alloc spare;	/* for what takes an area */
	char *own;			/* BIG bytes of this process, and more */
	int home;			/* the network namespace */
	int netns;			/* and another one */
	int listener;			/* to events */
	uint32_t context;
	/* What a call made, each until take_back(). */
	int fd;
	pid_t child;
	char *mapped;
	size_t mapped_length;
	uint32_t id;
	unsigned long destroy;		/* the ioctl that destroys it */
	__u64 area_offset;
	__u64 area_length;
} env = {
	.fd = -1,
	.id = HAMLYN_NONE,
};

static int do_ioctl(unsigned long request, void *arg)
{
	return ht_raw(env.call->afresh ? env.fd : env.p.fd, request, arg);
}

/* Notes an object that was made, if it was and does not end with its context. */
static int made(int ret, uint32_t id, unsigned long destroy)
{
	env.id = ret || env.call->afresh ? HAMLYN_NONE : id;
	env.destroy = destroy;
	return ret;
}

static int act_destroy(void)
{
	int ret = ht_raw_id(env.p.fd, env.destroy, env.id);

	if (!ret)
		env.id = HAMLYN_NONE;
	return ret;
}

static int made_fd(int fd)
{
	env.fd = fd < 0 ? -1 : fd;
	return fd;
}

static void take_back(void)
{
	if (env.child > 0)
		waitpid(env.child, NULL, 0);
	env.child = 0;
	if (env.mapped)
		munmap(env.mapped, env.mapped_length);
	env.mapped = NULL;
	if (env.fd >= 0)
		close(env.fd);
	env.fd = -1;
	if (env.id != HAMLYN_NONE)
		act_destroy();
	env.id = HAMLYN_NONE;
}

#endif /* FAIL_NTH_CALL_H */
