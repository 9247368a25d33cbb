/* SPDX-License-Identifier: MIT */
/* Address vectors: of both types an entry is called by its number. */
#ifndef HAMLYN_OFI_AV_H
#define HAMLYN_OFI_AV_H

#include <netinet/in.h>

#include "domain/domain.h"

struct hf_eq;

struct hf_av_entry {
	struct sockaddr_in address;
	uint32_t place;			/* hosts.h; 0: unused */
};

struct hf_av {
	struct fid_av fid;
	struct hf_domain *domain;
	struct hf_eq *eq;
	int users;			/* end points */
	bool events;			/* FI_EVENT */
	struct hf_av_entry *entries;
	uint32_t size;
	uint32_t end;			/* behind the last one that is used */
	uint32_t *of_place;		/* its number, and 1 more; 0: none */
};

int hf_av_open(struct fid_domain *domain, struct fi_av_attr *attr, struct fid_av **av,
	       void *context);

/* 0: no such entry. */
static inline uint32_t hf_av_place(const struct hf_av *av, fi_addr_t addr)
{
	return addr < av->end ? av->entries[addr].place : 0;
}

static inline fi_addr_t hf_av_addr(const struct hf_av *av, uint32_t place)
{
	return av->of_place[place] ? av->of_place[place] - 1 : FI_ADDR_NOTAVAIL;
}

#endif
