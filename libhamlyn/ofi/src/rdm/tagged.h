/* SPDX-License-Identifier: MIT */
/* FI_TAGGED: messages that their tags match to buffers. */
#ifndef HAMLYN_OFI_TAGGED_H
#define HAMLYN_OFI_TAGGED_H

#include <rdma/fi_tagged.h>

extern struct fi_ops_tagged hf_tagged_ops;

#endif
