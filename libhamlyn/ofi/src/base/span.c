// SPDX-License-Identifier: MIT
#include "base/span.h"

#include <string.h>

static int gather(struct hf_span *span, const struct iovec *iov, size_t count, uint64_t most)
{
	if (count > HF_IOV_LIMIT)
		return -FI_EINVAL;
	span->count = 0;
	span->length = 0;
	for (size_t i = 0; i < count; i++) {
		if (!iov[i].iov_len)
			continue;
		if (iov[i].iov_len > most - span->length)
			return -FI_EMSGSIZE;
		span->iov[span->count++] = iov[i];
		span->length += iov[i].iov_len;
	}
	return 0;
}

int hf_span_set(struct hf_span *span, const struct iovec *iov, size_t count)
{
	return gather(span, iov, count, HF_MAX_MESSAGE);
}

/* Places that nothing has to be behind yet, and that no message has to fit. */
int hf_span_cover(struct hf_span *span, const struct iovec *iov, size_t count)
{
	if (gather(span, iov, count, UINT64_MAX))
		return -FI_EINVAL;
	for (uint32_t i = 0; i < span->count; i++)
		if (span->iov[i].iov_len > UINTPTR_MAX - (uintptr_t)span->iov[i].iov_base)
			return -FI_EINVAL;
	return 0;
}

/* Bytes @offset to @offset + @length, which are inside @span. */
void hf_span_part(const struct hf_span *span, uint64_t offset, uint64_t length,
		  struct hf_span *part)
{
	part->count = 0;
	part->length = length;
	for (uint32_t i = 0; i < span->count && length; i++) {
		uint64_t have = span->iov[i].iov_len;

		if (offset >= have) {
			offset -= have;
			continue;
		}
		have -= offset;
		if (have > length)
			have = length;
		/* Not by pointers: a place may begin at address 0. */
		part->iov[part->count].iov_base =
			(void *)((uintptr_t)span->iov[i].iov_base + offset);
		part->iov[part->count++].iov_len = have;
		length -= have;
		offset = 0;
	}
}

void hf_span_put(const struct hf_span *span, uint64_t offset, const void *data, size_t length)
{
	struct hf_span part;

	hf_span_part(span, offset, length, &part);
	for (uint32_t i = 0; i < part.count; i++) {
		memcpy(part.iov[i].iov_base, data, part.iov[i].iov_len);
		data = (const char *)data + part.iov[i].iov_len;
	}
}
