/* SPDX-License-Identifier: MIT */
/* FI_RMA: reading and writing regions of the peer. */
#ifndef HAMLYN_OFI_RMA_H
#define HAMLYN_OFI_RMA_H

#include <rdma/fi_rma.h>

#include "endpoint/ep.h"

extern struct fi_ops_rma hf_rma_ops;

#endif
