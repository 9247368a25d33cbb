/* SPDX-License-Identifier: MIT */
/* Bytes that are in up to four places. */
#ifndef HAMLYN_OFI_SPAN_H
#define HAMLYN_OFI_SPAN_H

#include <string.h>

#include "base/provider.h"

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

/* All of its bytes, for which there is room; how many. */
static inline size_t hf_span_get(const struct hf_span *span, void *to)
{
	size_t at = 0;

	for (uint32_t i = 0; i < span->count; at += span->iov[i++].iov_len)
		memcpy((char *)to + at, span->iov[i].iov_base, span->iov[i].iov_len);
	return at;
}

int hf_span_set(struct hf_span *span, const struct iovec *iov, size_t count);
int hf_span_cover(struct hf_span *span, const struct iovec *iov, size_t count);
void hf_span_part(const struct hf_span *span, uint64_t offset, uint64_t length,
		  struct hf_span *part);
void hf_span_put(const struct hf_span *span, uint64_t offset, const void *data, size_t length);

#endif
