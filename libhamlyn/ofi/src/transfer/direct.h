/* SPDX-License-Identifier: MIT */
/*
 * One copy, by the kernel, between the memory of two processes of one user. The end that was
 * asked does it, after it has checked key and bounds; the other has said where its own bytes are.
 */
#ifndef HAMLYN_OFI_DIRECT_H
#define HAMLYN_OFI_DIRECT_H

#include <sys/types.h>

#include "base/span.h"
#include "connect/wire.h"

bool hf_direct_probe(pid_t pid, uint64_t address, uint64_t probe);
int hf_direct_get(pid_t pid, const struct hf_span *to, const struct hf_place *from,
		  uint32_t places);
int hf_direct_put(pid_t pid, const struct hf_span *from, const struct hf_place *to,
		  uint32_t places);

#endif
