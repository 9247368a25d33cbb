/* SPDX-License-Identifier: MIT */
/*
 * What a thread sleeps on until a completion queue or a counter changes: a descriptor that becomes
 * readable when something arrives, or when another thread's call changes it. Domain locked.
 */
#ifndef HAMLYN_OFI_WAIT_H
#define HAMLYN_OFI_WAIT_H

#include <rdma/fi_eq.h>

#include "domain/domain.h"

struct hf_waitset;

struct hf_wait {
	int fd;			/* epoll: @bell, the manager's, and the sockets of links; or -1 */
	int bell;		/* eventfd: it changed while @armed; or -1 */
	bool armed;		/* somebody may be asleep on it */
	struct hf_waitset *set;	/* that it is in, or NULL */
};

/* May one sleep now? */
enum hf_calm {
	HF_QUIET,	/* yes: whatever comes next makes the descriptor readable */
	HF_STUCK,	/* there is nothing, but something has to be tried again before long */
	HF_READY,	/* there is something */
};

/* How often what waits for others' room is tried again. */
#define HF_STUCK_MS	10

int hf_wait_check(enum fi_wait_obj obj);
int hf_wait_open(struct hf_wait *wait, struct hf_domain *domain, enum fi_wait_obj obj,
		 struct fid_wait *set, struct fid *whose);
void hf_wait_close(struct hf_wait *wait, struct fid *whose);
int hf_wait_control(const struct hf_wait *wait, enum fi_wait_obj obj, int command, void *arg);
bool hf_wait_arm(struct hf_wait *wait);
void hf_wait_ring(struct hf_wait *wait);

#endif
