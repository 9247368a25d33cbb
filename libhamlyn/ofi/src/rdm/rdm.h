/* SPDX-License-Identifier: MIT */
/* End points without connections, FI_EP_RDM: what they share among their links. */
#ifndef HAMLYN_OFI_RDM_H
#define HAMLYN_OFI_RDM_H

#include "domain/av.h"
#include "endpoint/ep.h"
#include "rdm/match.h"

struct hf_rdm {
	struct hf_ep ep;		/* what links are made like; has no channel itself */
	struct hf_av *av;
	struct hf_match match;
	struct hf_rdm *next;		/* of the domain's */
	bool backlog;			/* of what has come there is more for posted buffers */

	/* of link.c */
	struct hf_source listener;
	int wait;			/* epoll: the listener, and the sockets of links */
	struct hf_ep **links;		/* by place: who is sent to; of each process one */
	struct hf_ep *all;		/* and all that there are */
	struct hf_conn *asked;		/* who has not said what it wants; the newest first */
	uint32_t asked_count;
	uint32_t asking;		/* links that wait for an answer */
	bool lost;			/* some links are to be freed */
};

/* By which number the application knows who that is, if it wants to. */
static inline fi_addr_t hf_rdm_source(const struct hf_ep *ep, uint32_t place)
{
	return ep->caps & FI_SOURCE ? hf_av_addr(ep->rdm->av, place) : FI_ADDR_NOTAVAIL;
}

int hf_rdm_receive(struct hf_rdm *rdm, struct hf_wish *wish, fi_addr_t src);
int hf_rdm_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		void *context);

#endif
