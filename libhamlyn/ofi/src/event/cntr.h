/* SPDX-License-Identifier: MIT */
/* Counters of completions. */
#ifndef HAMLYN_OFI_CNTR_H
#define HAMLYN_OFI_CNTR_H

#include "event/wait.h"

struct hf_cntr {
	struct fid_cntr fid;
	struct hf_domain *domain;
	int users;
	uint64_t value;
	uint64_t errors;
	enum fi_wait_obj wait_obj;
	struct hf_wait wait;
	uint64_t told_value;	/* when somebody wanted to sleep last */
	uint64_t told_errors;
};

int hf_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr, struct fid_cntr **cntr,
		 void *context);
int hf_cntr_calm(struct hf_cntr *cntr);

/* Domain locked. */
static inline void hf_cntr_count(struct hf_cntr *cntr, bool failed)
{
	if (!cntr)
		return;
	__atomic_add_fetch(failed ? &cntr->errors : &cntr->value, 1, __ATOMIC_RELEASE);
	if (cntr->wait.armed)
		hf_wait_ring(&cntr->wait);
}

#endif
