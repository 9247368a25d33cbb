/* SPDX-License-Identifier: MIT */
/*
 * Memory regions: a record of what a peer may read or write by a key.
 *
 * A key of ours is 64 random bits, of which nothing follows from others; an old one opens nothing.
 * It is no password: it needs a connection to an end point of this domain as well, whose channel
 * has keys of its own that only the peer was given.
 */
#ifndef HAMLYN_OFI_MR_H
#define HAMLYN_OFI_MR_H

#include "base/span.h"
#include "domain/domain.h"

struct hf_mr {
	struct fid_mr fid;
	struct hf_domain *domain;
	struct hf_mr *next;	/* of its bucket */
	uint64_t key;
	uint64_t access;
	uint64_t base;		/* what the first byte is called */
	struct hf_span span;
	struct hf_cntr *writes;	/* counts what changes it, or NULL */
};

extern struct fi_ops_mr hf_mr_ops;

int hf_mr_map_raw(const struct fi_mr_map_raw *map);

int hf_mr_find(struct hf_domain *domain, uint64_t key, uint64_t access, uint64_t address,
	       uint64_t length, struct hf_span *part);
void hf_mr_count_write(struct hf_domain *domain, uint64_t key);

/* A peer has changed what is in the region, if that is still there. */
static inline void hf_mr_written(struct hf_domain *domain, uint64_t key)
{
	if (domain->counted_mrs)
		hf_mr_count_write(domain, key);
}

#endif
