/* SPDX-License-Identifier: MIT */
/* What connections do not have: whoever calls it nevertheless is told so. */
#ifndef HAMLYN_OFI_ABSENT_H
#define HAMLYN_OFI_ABSENT_H

#include <rdma/fi_atomic.h>
#include <rdma/fi_tagged.h>

extern struct fi_ops_tagged hf_no_tagged_ops;
extern struct fi_ops_atomic hf_no_atomic_ops;

#endif
