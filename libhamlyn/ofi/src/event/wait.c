// SPDX-License-Identifier: MIT
#include "event/wait.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "event/waitset.h"

/* Wake whoever sleeps on it. */
void hf_wait_ring(struct hf_wait *wait)
{
	const uint64_t one = 1;

	if (!wait->armed)
		return;
	wait->armed = false;
	if (write(wait->bell, &one, sizeof(one)) < 0)
		hf_warn("bell: %s\n", strerror(errno));
}

/* Nothing is there; false: that cannot be promised of what comes next. */
bool hf_wait_arm(struct hf_wait *wait)
{
	uint64_t drop;

	/* What the bell says is known: it is empty now, or nobody has rung. */
	if (read(wait->bell, &drop, sizeof(drop)) < 0 && errno != EAGAIN)
		return false;
	wait->armed = true;
	return true;
}

int hf_wait_check(enum fi_wait_obj obj)
{
	switch (obj) {
	case FI_WAIT_NONE:
	case FI_WAIT_UNSPEC:
	case FI_WAIT_SET:
	case FI_WAIT_FD:
	case FI_WAIT_YIELD:
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

/* Arrivals, who wants a link, and what other threads' calls change. Domain not locked. */
static int open_fds(struct hf_wait *wait, struct hf_domain *domain)
{
	struct epoll_event event = { .events = EPOLLIN };
	int manager;

	wait->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	wait->fd = epoll_create1(EPOLL_CLOEXEC);
	if (wait->bell < 0 || wait->fd < 0)
		return -errno;
	hf_domain_lock(domain);
	manager = hf_domain_fd(domain);
	hf_domain_unlock(domain);
	if (manager < 0)
		return manager;
	if (epoll_ctl(wait->fd, EPOLL_CTL_ADD, wait->bell, &event) ||
	    epoll_ctl(wait->fd, EPOLL_CTL_ADD, manager, &event) ||
	    epoll_ctl(wait->fd, EPOLL_CTL_ADD, domain->links, &event))
		return -errno;
	return 0;
}

/* Without a descriptor, if nobody sleeps on @obj. Domain not locked. */
int hf_wait_open(struct hf_wait *wait, struct hf_domain *domain, enum fi_wait_obj obj,
		 struct fid_wait *set, struct fid *whose)
{
	int err;

	*wait = (struct hf_wait){ .fd = -1, .bell = -1 };
	if (obj == FI_WAIT_NONE || obj == FI_WAIT_YIELD)
		return 0;
	err = open_fds(wait, domain);
	if (!err && obj == FI_WAIT_SET)
		err = hf_waitset_join(set, domain->fabric, whose, wait->fd, &wait->set);
	return err;
}

void hf_wait_close(struct hf_wait *wait, struct fid *whose)
{
	if (wait->set)
		hf_waitset_leave(wait->set, whose, wait->fd);
	if (wait->fd >= 0)
		close(wait->fd);
	if (wait->bell >= 0)
		close(wait->bell);
}

int hf_wait_control(const struct hf_wait *wait, enum fi_wait_obj obj, int command, void *arg)
{
	switch (command) {
	case FI_GETWAIT:
		if (obj != FI_WAIT_FD)
			return -FI_ENODATA;
		*(int *)arg = wait->fd;
		return 0;
	case FI_GETWAITOBJ:
		*(enum fi_wait_obj *)arg = obj;
		return 0;
	default:
		return -FI_ENOSYS;
	}
}
