/* SPDX-License-Identifier: MIT */
/* fi_getinfo(): what there is, and whether it fits the hints. */
#ifndef HAMLYN_OFI_INFO_H
#define HAMLYN_OFI_INFO_H

#include "base/provider.h"

int hf_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **info);

#endif
