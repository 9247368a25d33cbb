/* SPDX-License-Identifier: MIT */
/*
 * Which fabrics and domains are open, in the order in which they were opened: fi_getinfo(3) tells
 * of them, and takes them as hints. What is found is valid as long as nobody closes it, to which
 * fi_domain(3) and fi_fabric(3) hold the application.
 */
#ifndef HAMLYN_OFI_OPENED_H
#define HAMLYN_OFI_OPENED_H

#include "domain/domain.h"

void hf_opened_add_fabric(struct hf_fabric *fabric);
void hf_opened_remove_fabric(struct hf_fabric *fabric);
void hf_opened_add_domain(struct hf_domain *domain);
void hf_opened_remove_domain(struct hf_domain *domain);

/* The first one; of a fabric, or that one itself, if @fabric is not NULL. NULL: there is none. */
struct hf_fabric *hf_opened_fabric(const struct fid_fabric *fabric);
/* The same, of that name and of that fabric, of which NULL is any. */
struct hf_domain *hf_opened_domain(const struct fid_domain *domain, const char *name,
				   const struct fid_fabric *fabric);

#endif
