/* SPDX-License-Identifier: MIT */
/* Poll sets: which of some completion queues and counters have something to say. */
#ifndef HAMLYN_OFI_POLLSET_H
#define HAMLYN_OFI_POLLSET_H

#include "domain/domain.h"

int hf_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr, struct fid_poll **set);

#endif
