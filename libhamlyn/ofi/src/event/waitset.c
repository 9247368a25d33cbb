// SPDX-License-Identifier: MIT
#include "event/waitset.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "event/cntr.h"
#include "event/cq.h"
#include "event/eq.h"

struct member {
	struct member *next;
	struct fid *fid;
};

/* Order of locks: @lock, then those of its members. */
struct hf_waitset {
	struct fid_wait fid;
	struct hf_fabric *fabric;
	enum fi_wait_obj wait_obj;
	pthread_mutex_t lock;
	struct member *members;
	int fd;			/* epoll: the descriptors of all members */
};

static struct hf_waitset *of(struct fid *fid)
{
	return hf_container(fid, struct hf_waitset, fid.fid);
}

/* ---- members ------------------------------------------------------------- */

int hf_waitset_join(struct fid_wait *fid, const struct hf_fabric *fabric, struct fid *whose,
		    int fd, struct hf_waitset **out)
{
	struct hf_waitset *set = fid ? of(&fid->fid) : NULL;
	struct epoll_event event = { .events = EPOLLIN };
	struct member *member;

	if (!set || set->fabric != fabric)
		return -FI_EINVAL;
	member = malloc(sizeof(*member));
	if (!member)
		return -FI_ENOMEM;
	if (epoll_ctl(set->fd, EPOLL_CTL_ADD, fd, &event)) {
		free(member);
		return -errno;
	}
	member->fid = whose;
	pthread_mutex_lock(&set->lock);
	member->next = set->members;
	set->members = member;
	pthread_mutex_unlock(&set->lock);
	*out = set;
	return 0;
}

void hf_waitset_leave(struct hf_waitset *set, const struct fid *whose, int fd)
{
	struct member **at = &set->members, *member;

	pthread_mutex_lock(&set->lock);
	while ((*at)->fid != whose)
		at = &(*at)->next;
	member = *at;
	*at = member->next;
	pthread_mutex_unlock(&set->lock);
	epoll_ctl(set->fd, EPOLL_CTL_DEL, fd, NULL);
	free(member);
}

/* ---- waiting ------------------------------------------------------------- */

static int calm_of_one(struct fid *fid)
{
	switch (fid->fclass) {
	case FI_CLASS_CQ:
		return hf_cq_calm(hf_container(fid, struct hf_cq, fid.fid));
	case FI_CLASS_CNTR:
		return hf_cntr_calm(hf_container(fid, struct hf_cntr, fid.fid));
	case FI_CLASS_EQ:
		return hf_eq_calm(hf_container(fid, struct hf_eq, fid.fid));
	default:
		return -FI_EINVAL;
	}
}

/* enum hf_calm of the one that is the least so. All are asked: each promises for itself alone. */
static int calm_of(struct hf_waitset *set)
{
	int calm = HF_QUIET;

	pthread_mutex_lock(&set->lock);
	for (struct member *m = set->members; m; m = m->next) {
		int one = calm_of_one(m->fid);

		if (one > calm)
			calm = one;
	}
	pthread_mutex_unlock(&set->lock);
	return calm;
}

int hf_trywait(struct fid *fid)
{
	int calm = fid->fclass == FI_CLASS_WAIT ? calm_of(of(fid)) : calm_of_one(fid);

	return calm > HF_QUIET ? -FI_EAGAIN : calm;
}

/* Until a member changes, for @limit_ms at most; -1: for ever. */
static int sleep_on(const struct hf_waitset *set, int limit_ms)
{
	struct pollfd fd = { .fd = set->fd, .events = POLLIN };

	if (set->wait_obj == FI_WAIT_YIELD) {
		sched_yield();
		return 0;
	}
	return poll(&fd, 1, limit_ms) < 0 ? -errno : 0;
}

static int wait_wait(struct fid_wait *fid, int timeout)
{
	struct hf_waitset *set = of(&fid->fid);
	int64_t begun = hf_now_ms();

	for (;;) {
		int calm = calm_of(set), limit, err;

		if (calm == HF_READY)
			return 0;
		limit = timeout < 0 ? -1 : (int)(begun + timeout - hf_now_ms());
		if (timeout >= 0 && limit <= 0)
			return -FI_ETIMEDOUT;
		if (calm == HF_STUCK && (limit < 0 || limit > HF_STUCK_MS))
			limit = HF_STUCK_MS;
		err = sleep_on(set, limit);
		if (err)
			return err;
	}
}

/* ---- making it ----------------------------------------------------------- */

static struct fi_ops_wait wait_ops = {
	.size = sizeof(struct fi_ops_wait),
	.wait = wait_wait,
};

static int wait_control(struct fid *fid, int command, void *arg)
{
	const struct hf_wait wait = { .fd = of(fid)->fd };

	return hf_wait_control(&wait, of(fid)->wait_obj, command, arg);
}

static int wait_close(struct fid *fid)
{
	struct hf_waitset *set = of(fid);
	struct hf_fabric *fabric = set->fabric;

	pthread_mutex_lock(&set->lock);
	if (set->members) {
		pthread_mutex_unlock(&set->lock);
		return -FI_EBUSY;
	}
	pthread_mutex_unlock(&set->lock);
	close(set->fd);
	pthread_mutex_destroy(&set->lock);
	free(set);
	hf_fabric_put(fabric);
	return 0;
}

static struct fi_ops fid_ops = {
	HF_FID_OPS(wait_close),
	.bind = hf_no_bind,
	.control = wait_control,
};

int hf_waitset_open(struct fid_fabric *fabric, struct fi_wait_attr *attr, struct fid_wait **out)
{
	struct hf_waitset *set;

	if (attr->flags)
		return -FI_EBADFLAGS;
	if (attr->wait_obj != FI_WAIT_UNSPEC && attr->wait_obj != FI_WAIT_FD &&
	    attr->wait_obj != FI_WAIT_YIELD)
		return -FI_ENOSYS;
	set = calloc(1, sizeof(*set));
	if (!set)
		return -FI_ENOMEM;
	set->fd = epoll_create1(EPOLL_CLOEXEC);
	if (set->fd < 0) {
		free(set);
		return -errno;
	}
	set->wait_obj = attr->wait_obj;
	pthread_mutex_init(&set->lock, NULL);
	set->fabric = hf_container(fabric, struct hf_fabric, fid);
	hf_fabric_get(set->fabric);
	set->fid.fid.fclass = FI_CLASS_WAIT;
	set->fid.fid.ops = &fid_ops;
	set->fid.ops = &wait_ops;
	*out = &set->fid;
	return 0;
}
