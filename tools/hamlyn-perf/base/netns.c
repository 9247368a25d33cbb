// SPDX-License-Identifier: GPL-2.0-only
/* Other network namespaces: two hosts of one kernel. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* setns() */
#endif
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/netns.h"
#include "base/perf.h"

#define NONE	(-2)	/* nowhere to go */

static void make_path(const char *name, char *path, size_t size)
{
	if (strchr(name, '/'))
		snprintf(path, size, "%s", name);
	else if (*name && !name[strspn(name, "0123456789")])
		snprintf(path, size, "/proc/%s/ns/net", name);
	else
		snprintf(path, size, "/run/netns/%s", name);
}

int netns_enter(const char *name)
{
	char path[256];
	int fd, ret;

	make_path(name, path, sizeof(path));
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return fail("no network namespace %s: %s", path, strerror(errno));
	ret = setns(fd, CLONE_NEWNET);
	if (ret)
		fail("cannot enter %s: %s", path, strerror(errno));
	close(fd);
	return ret;
}

int netns_visit(const char *name)
{
	int own;

	if (!name)
		return NONE;
	own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (own < 0)
		return fail("no network namespace of our own: %s", strerror(errno));
	if (netns_enter(name) < 0) {
		close(own);
		return -1;
	}
	return own;
}

int netns_leave(int own)
{
	int ret;

	if (own == NONE)
		return 0;
	ret = setns(own, CLONE_NEWNET);
	if (ret)
		fail("cannot come back to our network namespace: %s", strerror(errno));
	close(own);
	return ret;
}
