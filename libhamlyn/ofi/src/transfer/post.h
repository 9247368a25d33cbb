/* SPDX-License-Identifier: MIT */
/* What calls that send have in common. Domain locked. */
#ifndef HAMLYN_OFI_POST_H
#define HAMLYN_OFI_POST_H

#include "endpoint/ep.h"

/* Beside libfabric's flags: no completion but an error's. */
#define HF_POST_QUIET	(1ULL << 63)

/* A message is answered when it is in a buffer that was posted: that is as far as one can wait. */
#define HF_POST_ANSWERED	(FI_DELIVERY_COMPLETE | FI_MATCH_COMPLETE)

struct hf_post {
	struct hf_span span;
	struct hf_target target;	/* of RMA */
	uint64_t tag;
	bool tagged;
	uint64_t flags;
	uint64_t data;
	void *context;
	bool report;
};

/* All but the span. */
static inline void hf_post_call(struct hf_post *post, void *context, uint64_t flags, uint64_t data)
{
	post->flags = flags;
	post->data = data;
	post->context = context;
	post->tagged = false;
}

/*
 * May its bytes be taken along, and at once? Known before the peer is: asking for a link is not
 * the answer.
 */
static inline int hf_post_fits(const struct hf_post *post)
{
	if (post->flags & FI_TRIGGER)
		return -FI_EBADFLAGS;
	return post->flags & FI_INJECT && post->span.length > HF_INJECT_SIZE ? -FI_EMSGSIZE : 0;
}

/* Is a success told of? */
static inline bool hf_post_reports(const struct hf_ep *ep, uint64_t flags)
{
	return !(flags & HF_POST_QUIET) && (!ep->tx_selective || flags & FI_COMPLETION);
}

int hf_post_set(struct hf_post *post, const struct iovec *iov, size_t count, void *context,
		uint64_t flags, uint64_t data);
uint64_t hf_post_flags(const struct hf_ep *ep, uint64_t flags);
int hf_post_check(struct hf_ep *ep, struct hf_post *post);
/* It was sent, if @err is 0; else @work ends here. Returns @err. */
int hf_post_begun(struct hf_ep *ep, const struct hf_post *post, struct hf_work *work, int err);
int hf_post_send(struct hf_ep *ep, struct hf_post *post);
int hf_post_at_once(struct hf_ep *ep, const struct hf_post *post, enum hf_wire_op op);
int hf_post_work(struct hf_ep *ep, const struct hf_post *post, enum hf_wire_op op,
		 enum hf_work_kind kind, bool with_payload);

#endif
