/* SPDX-License-Identifier: MIT */
/* Connection management of active end points. */
#ifndef HAMLYN_OFI_CM_H
#define HAMLYN_OFI_CM_H

#include <rdma/fi_cm.h>

extern struct fi_ops_cm hf_cm_ops;

#endif
