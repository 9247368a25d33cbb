/* SPDX-License-Identifier: MIT */
/* Counters of completions. */
#ifndef HAMLYN_OFI_CNTR_H
#define HAMLYN_OFI_CNTR_H

#include "domain/domain.h"

struct hf_cntr {
	struct fid_cntr fid;
	struct hf_domain *domain;
	int users;
	uint64_t value;
	uint64_t errors;
};

int hf_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		 void *context);

static inline void hf_cntr_count(struct hf_cntr *cntr, bool failed)
{
	if (cntr)
		__atomic_add_fetch(failed ? &cntr->errors : &cntr->value, 1, __ATOMIC_RELEASE);
}

#endif
