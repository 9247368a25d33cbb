// SPDX-License-Identifier: MIT
#include "domain/domain.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <rdma/fi_endpoint.h>

#include "domain/av.h"
#include "domain/mr.h"
#include "domain/opened.h"
#include "endpoint/atomic.h"
#include "endpoint/ep.h"
#include "event/cntr.h"
#include "event/cq.h"
#include "event/eq.h"
#include "event/pollset.h"
#include "rdm/link.h"
#include "rdm/shared.h"
#include "transfer/progress.h"

/* After so many polls in vain others may have the processor: from 2 to 80 microseconds. */
#define LEAST_PATIENCE	64
#define MOST_PATIENCE	2048

/* How often it is looked whether a process asks for a link: a system call. */
#define SOCKET_POLLS	64

/* How often it is looked for messages of others while one sends without a pause, or pauses. */
#define OTHERS_POLLS	4
#define QUIET_POLLS	16

void hf_domain_get(struct hf_domain *domain)
{
	__atomic_add_fetch(&domain->users, 1, __ATOMIC_RELAXED);
}

void hf_domain_put(struct hf_domain *domain)
{
	__atomic_sub_fetch(&domain->users, 1, __ATOMIC_RELEASE);
}

static void idle(struct hf_domain *domain)
{
	if (++domain->idle < domain->patience)
		return;
	domain->idle = 0;
	domain->yielded = true;
	sched_yield();
}

/*
 * Something has arrived. If it did while another had the processor, that was worth while: there are
 * more processes than processors. If it came during polls, the peer has a processor of its own.
 */
static void learn(struct hf_domain *domain)
{
	uint32_t patience = domain->patience;

	if (domain->yielded && domain->idle < 2 && patience > LEAST_PATIENCE)
		domain->patience = patience / 2;
	else if (domain->idle > LEAST_PATIENCE / 2 && patience < MOST_PATIENCE)
		domain->patience = patience + patience / 4;
	domain->yielded = false;
	domain->idle = 0;
}

/*
 * Take what has arrived, and try again what had to wait. Domain locked. Applications call this
 * in loops: where there are more of them than processors, the one that is waited for needs ours.
 */
void hf_domain_progress(struct hf_domain *domain)
{
	bool some = domain->hot && hf_progress_hot(domain);

	domain->polls++;
	if ((!domain->hot || domain->polls % (some ? OTHERS_POLLS : QUIET_POLLS) == 0) &&
	    !h_manager_wait(domain->manager, H_NOWAIT))
		some = h_manager_dispatch(domain->manager) > 0 || some;
	if (some)
		learn(domain);
	else
		idle(domain);
	if (domain->stuck)
		hf_progress_stuck(domain);
	if (domain->backlog)
		hf_link_retry(domain);
	if (domain->attend || (domain->rdms && domain->polls % SOCKET_POLLS == 0))
		hf_link_progress(domain);
}

/* For somebody who sleeps on it: what arrives makes it readable, whoever sent it. Domain locked. */
int hf_domain_fd(struct hf_domain *domain)
{
	domain->has_fd = true;
	if (domain->hot)
		hf_progress_cool(domain);
	return h_manager_fd(domain->manager);
}

/* FI_PROGRESS_AUTO: somebody makes progress while the application does something else. */
static void *make_progress(void *arg)
{
	struct hf_domain *domain = arg;
	struct pollfd fds[2] = {
		{ .fd = h_manager_fd(domain->manager), .events = POLLIN },
		{ .fd = domain->stop, .events = POLLIN },
	};

	for (;;) {
		/* The limit is for what is stuck for want of a completion queue's room. */
		poll(fds, 2, 10);
		if (fds[1].revents)
			return NULL;
		hf_domain_lock(domain);
		hf_link_progress(domain);
		hf_domain_progress(domain);
		hf_domain_unlock(domain);
	}
}

static int start_thread(struct hf_domain *domain)
{
	int fd = hf_domain_fd(domain);

	if (fd < 0)
		return fd;
	domain->stop = eventfd(0, EFD_CLOEXEC);
	if (domain->stop < 0)
		return -errno;
	return -pthread_create(&domain->thread, NULL, make_progress, domain);
}

static void stop_thread(struct hf_domain *domain)
{
	const uint64_t one = 1;

	if (domain->stop < 0)
		return;
	if (domain->thread && write(domain->stop, &one, sizeof(one)) == sizeof(one))
		pthread_join(domain->thread, NULL);
	close(domain->stop);
}

static void domain_free(struct hf_domain *domain)
{
	stop_thread(domain);
	if (domain->links >= 0)
		close(domain->links);
	h_manager_destroy(domain->manager);
	h_close(domain->dev);
	free(domain->name);
	pthread_mutex_destroy(&domain->lock);
	free(domain);
}

static int domain_close(struct fid *fid)
{
	struct hf_domain *domain = hf_container(fid, struct hf_domain, fid.fid);
	struct hf_fabric *fabric = domain->fabric;

	if (__atomic_load_n(&domain->users, __ATOMIC_ACQUIRE))
		return -FI_EBUSY;
	if (domain->eq)
		__atomic_sub_fetch(&domain->eq->users, 1, __ATOMIC_RELEASE);
	hf_opened_remove_domain(domain);
	domain_free(domain);
	hf_fabric_put(fabric);
	return 0;
}

static int domain_bind(struct fid *fid, struct fid *other, uint64_t flags)
{
	struct hf_domain *domain = hf_container(fid, struct hf_domain, fid.fid);

	if (flags & ~FI_REG_MR)
		return -FI_EBADFLAGS;
	if (other->fclass != FI_CLASS_EQ || domain->eq)
		return -FI_EINVAL;
	domain->eq = hf_container(other, struct hf_eq, fid.fid);
	domain->mr_events = flags;
	__atomic_add_fetch(&domain->eq->users, 1, __ATOMIC_RELAXED);
	return 0;
}

static int domain_control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	switch (command) {
	case FI_MAP_RAW_MR:
		return hf_mr_map_raw(arg);
	case FI_UNMAP_KEY:
		return 0;
	default:
		return -FI_ENOSYS;
	}
}

static int scalable_ep(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		       void *context)
{
	(void)domain;
	(void)info;
	(void)ep;
	(void)context;
	return -FI_ENOSYS;
}

static int query_collective(struct fid_domain *domain, enum fi_collective_op coll,
			    struct fi_collective_attr *attr, uint64_t flags)
{
	(void)domain;
	(void)coll;
	(void)attr;
	(void)flags;
	return -FI_ENOSYS;
}

static int endpoint(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		    void *context)
{
	bool linked = info->ep_attr && info->ep_attr->type == FI_EP_RDM;

	return linked ? hf_rdm_open(domain, info, ep, context) :
			hf_ep_open(domain, info, ep, context);
}

static int endpoint2(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		     uint64_t flags, void *context)
{
	return flags ? -FI_ENOSYS : endpoint(domain, info, ep, context);
}

static struct fi_ops_domain domain_ops = {
	.size = sizeof(struct fi_ops_domain),
	.av_open = hf_av_open,
	.cq_open = hf_cq_open,
	.endpoint = endpoint,
	.scalable_ep = scalable_ep,
	.cntr_open = hf_cntr_open,
	.poll_open = hf_poll_open,
	.stx_ctx = hf_stx_open,
	.srx_ctx = hf_srx_open,
	.query_atomic = hf_atomic_query,
	.query_collective = query_collective,
	.endpoint2 = endpoint2,
};

static struct fi_ops fid_ops = {
	HF_FID_OPS(domain_close),
	.bind = domain_bind,
	.control = domain_control,
};

static void set_modes(struct hf_domain *domain, const struct fi_domain_attr *attr)
{
	bool helped = attr->data_progress == FI_PROGRESS_AUTO;

	domain->locked = attr->threading != FI_THREAD_DOMAIN || helped;
	domain->virtual_address = attr->mr_mode == HF_MR_BASIC ||
				  (attr->mr_mode & FI_MR_VIRT_ADDR);
	domain->given_keys = attr->mr_mode != HF_MR_BASIC && !(attr->mr_mode & FI_MR_PROV_KEY);
}

static int open_device(struct hf_domain *domain, const struct fi_domain_attr *attr)
{
	/* All calls are under the domain's lock. */
	const struct h_manager_attr manager = { .flags = H_MANAGER_SINGLE };
	char why[HAMLYN_EXPLAIN_BYTES];
	int err;

	err = h_open(attr->name, &domain->dev);
	if (err) {
		h_explain(NULL, why, sizeof(why));
		hf_warn("%s: %s\n", attr->name ? attr->name : "default device", why);
		return err;
	}
	err = h_manager_create(domain->dev, &manager, &domain->manager);
	if (err) {
		h_explain(domain->dev, why, sizeof(why));
		hf_warn("manager: %s\n", why);
	}
	return err;
}

int hf_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **out,
		   void *context)
{
	struct hf_domain *domain = calloc(1, sizeof(*domain));
	int err;

	if (!domain)
		return -FI_ENOMEM;
	domain->stop = -1;
	domain->links = epoll_create1(EPOLL_CLOEXEC);
	domain->patience = MOST_PATIENCE;
	pthread_mutex_init(&domain->lock, NULL);
	set_modes(domain, info->domain_attr);
	domain->name = strdup(info->domain_attr->name ? info->domain_attr->name : "");
	err = domain->links < 0 || !domain->name ? -errno : open_device(domain, info->domain_attr);
	if (!err && info->domain_attr->data_progress == FI_PROGRESS_AUTO)
		err = start_thread(domain);
	if (err) {
		domain_free(domain);
		return err;
	}
	domain->fabric = hf_container(fabric, struct hf_fabric, fid);
	hf_fabric_get(domain->fabric);
	domain->fid.fid.fclass = FI_CLASS_DOMAIN;
	domain->fid.fid.context = context;
	domain->fid.fid.ops = &fid_ops;
	domain->fid.ops = &domain_ops;
	domain->fid.mr = &hf_mr_ops;
	hf_opened_add_domain(domain);
	*out = &domain->fid;
	return 0;
}
