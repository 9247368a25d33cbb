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

/* One place, of which hf_span_set() would say the same. */
static inline int hf_span_one(struct hf_span *span, const void *data, size_t length)
{
	if (length > HF_MAX_MESSAGE)
		return -FI_EMSGSIZE;
	span->count = length != 0;
	span->length = length;
	span->iov[0].iov_base = (void *)(uintptr_t)data;
	span->iov[0].iov_len = length;
	return 0;
}

int hf_span_set(struct hf_span *span, const struct iovec *iov, size_t count);
void hf_span_part(const struct hf_span *span, uint64_t offset, uint64_t length,
		  struct hf_span *part);
void hf_span_put(const struct hf_span *span, uint64_t offset, const void *data, size_t length);

#endif
