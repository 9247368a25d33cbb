/* SPDX-License-Identifier: MIT */
/*
 * A domain: a device, a manager, and the lock of all that is made from it.
 *
 * The manager is for one thread at a time: the lock, or the application's promise of
 * FI_THREAD_DOMAIN, sees to that. Order of locks: an event queue's @cm, the domain's, an event
 * queue's @lock.
 */
#ifndef HAMLYN_OFI_DOMAIN_H
#define HAMLYN_OFI_DOMAIN_H

#include <pthread.h>

#include <rdma/fi_domain.h>

#include <hamlyn/channel.h>

#include "domain/fabric.h"

struct hf_ep;
struct hf_eq;
struct hf_mr;
struct hf_rdm;

#define HF_MR_BUCKETS	1024

struct hf_domain {
	struct fid_domain fid;
	struct hf_fabric *fabric;
	struct hf_domain *next;	/* of opened.c */
	char *name;		/* as in struct fi_info */
	struct h_dev *dev;
	struct h_manager *manager;
	pthread_mutex_t lock;
	bool locked;		/* false: FI_THREAD_DOMAIN, and no thread of our own */
	bool virtual_address;	/* FI_MR_BASIC */
	bool given_keys;	/* no FI_MR_PROV_KEY */
	int users;
	uint32_t idle;		/* times in a row that nothing had arrived */
	uint32_t patience;	/* so many, and others may have the processor */
	bool yielded;		/* since something had arrived */
	struct hf_ep *hot;	/* asked without a call back, see progress.c; or NULL */
	struct hf_ep *last_turn;	/* compared, not followed */
	uint32_t turns;		/* that it had in a row */
	bool flows;		/* the hot one's messages are there before they are asked for */
	bool has_fd;		/* the manager's descriptor was asked for */
	struct hf_ep *stuck;	/* end points that have something to try again */
	struct hf_rdm *rdms;	/* enabled ones */
	int links;		/* epoll: their listeners, and the sockets of links */
	bool attend;		/* hf_link_progress() has something to do, or waits for it */
	bool backlog;		/* hf_match_retry() has something to do */
	uint32_t polls;
	struct hf_mr *mrs[HF_MR_BUCKETS];
	uint32_t counted_mrs;	/* how many have a counter */
	struct hf_eq *eq;	/* of end points that have none of their own; or NULL */
	bool mr_events;		/* it is told of regions, too */
	/* data_progress FI_PROGRESS_AUTO */
	pthread_t thread;
	int stop;		/* eventfd, or -1: no thread */
};

int hf_domain_open(struct fid_fabric *fabric, struct fi_info *info, struct fid_domain **domain,
		   void *context);
void hf_domain_get(struct hf_domain *domain);
void hf_domain_put(struct hf_domain *domain);
void hf_domain_progress(struct hf_domain *domain);
int hf_domain_fd(struct hf_domain *domain);

static inline void hf_domain_lock(struct hf_domain *domain)
{
	if (domain->locked)
		pthread_mutex_lock(&domain->lock);
}

static inline void hf_domain_unlock(struct hf_domain *domain)
{
	if (domain->locked)
		pthread_mutex_unlock(&domain->lock);
}

#endif
