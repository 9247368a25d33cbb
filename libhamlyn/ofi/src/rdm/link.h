/* SPDX-License-Identifier: MIT */
/*
 * Links: the connections between end points of FI_EP_RDM. One is made when something is sent to a
 * process for the first time, over the sockets of conn.h, and is used both ways. Domain locked.
 *
 * If both ask at the same time the one of the higher host, of one host that with the higher
 * port, wins: the other gives up its own question and answers. A process is believed to have an
 * address if the kernel says that it is the one that listens there, or, on another host, that it
 * is of that host and of a user whose processes are let in.
 */
#ifndef HAMLYN_OFI_LINK_H
#define HAMLYN_OFI_LINK_H

#include "rdm/rdm.h"

int hf_link_open(struct hf_rdm *rdm);
void hf_link_close(struct hf_rdm *rdm);
int hf_link_seek(struct hf_rdm *rdm, uint32_t place, fi_addr_t addr, struct hf_ep **link);
void hf_link_progress(struct hf_domain *domain);
void hf_link_retry(struct hf_domain *domain);
void hf_link_lost(struct hf_ep *link);

/* The link that a sending call means. -FI_EAGAIN: the other end is being asked. */
static inline int hf_link_toward(struct hf_ep *ep, fi_addr_t addr, struct hf_ep **link)
{
	uint32_t place;

	*link = ep->self;
	if (!ep->rdm)
		return 0;
	if (!ep->rdm->links)
		return -FI_EOPBADSTATE;
	place = hf_av_place(ep->rdm->av, addr);
	*link = ep->rdm->links[place];
	if (*link && (*link)->state == HF_EP_CONNECTED)
		return 0;
	return hf_link_seek(ep->rdm, place, addr, link);
}

#endif
