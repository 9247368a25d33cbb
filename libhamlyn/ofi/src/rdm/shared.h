/* SPDX-License-Identifier: MIT */
/*
 * What several end points share: fi_srx_context(3), buffers for messages to any of them, and
 * fi_stx_context(3), which has nothing in it here: nothing of sending is worth sharing.
 *
 * The former is made as an end point of FI_EP_RDM that has neither an address nor links.
 */
#ifndef HAMLYN_OFI_SHARED_H
#define HAMLYN_OFI_SHARED_H

#include "rdm/rdm.h"

struct hf_stx {
	struct fid_stx fid;
	struct hf_domain *domain;
	int users;			/* end points */
};

int hf_srx_open(struct fid_domain *domain, struct fi_rx_attr *attr, struct fid_ep **srx,
		void *context);
int hf_stx_open(struct fid_domain *domain, struct fi_tx_attr *attr, struct fid_stx **stx,
		void *context);
int hf_shared_bind(struct hf_ep *ep, struct fid *shared, uint64_t flags);
int hf_shared_check(const struct hf_ep *ep);
void hf_shared_put(struct hf_ep *ep);
struct hf_ep *hf_shared_teller(struct hf_rdm *rdm);
const struct hf_av *hf_shared_av(const struct hf_rdm *rdm);

#endif
