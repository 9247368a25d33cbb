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
	struct hf_match *match;		/* @own, or that of what it shares */
	struct hf_match own;
	bool takes;			/* buffers can be posted here, in the short way */
	struct hf_rdm *next;		/* of the domain's */

	/* of shared.c */
	int users;			/* end points */
	struct hf_ep *hungry;		/* of FI_EP_MSG: who waits for a buffer, longest first */
	struct hf_ep **last_hungry;

	/* of link.c */
	struct hf_source listener;
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

/* Whose buffers messages that come to @ep are put into; NULL: its own, without matching. */
static inline struct hf_match *hf_match_of(const struct hf_ep *ep)
{
	const struct hf_rdm *rdm = ep->rdm ? ep->rdm : ep->srx;

	return rdm ? rdm->match : NULL;
}

/* Of FI_EP_MSG: was a buffer posted that it may take? */
static inline bool hf_rdm_has_recv(const struct hf_ep *ep)
{
	return ep->srx ? *hf_match_find(&ep->srx->match->plain, ep->place, 0) : ep->first_recv;
}

void hf_rdm_init(struct hf_rdm *rdm, struct hf_domain *domain);
extern struct fi_ops_ep hf_rdm_ops;

int hf_rdm_bind(struct fid *fid, struct fid *other, uint64_t flags);
int hf_rdm_receive(struct hf_rdm *rdm, struct hf_wish *wish, fi_addr_t src);
int hf_rdm_open(struct fid_domain *domain, struct fi_info *info, struct fid_ep **ep,
		void *context);

#endif
