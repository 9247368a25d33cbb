/* SPDX-License-Identifier: MIT */
/* Bytes that are in up to four places. */
#ifndef HAMLYN_OFI_SPAN_H
#define HAMLYN_OFI_SPAN_H

#include "provider.h"

struct hf_span {
	struct iovec iov[HF_IOV_LIMIT];
	uint32_t count;
	uint64_t length;
};

int hf_span_set(struct hf_span *span, const struct iovec *iov, size_t count);
void hf_span_part(const struct hf_span *span, uint64_t offset, uint64_t length,
		  struct hf_span *part);
void hf_span_put(const struct hf_span *span, uint64_t offset, const void *data, size_t length);

#endif
