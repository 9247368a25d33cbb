/* SPDX-License-Identifier: MIT */
/* How operations end: in completion queues and counters. Domain locked. */
#ifndef HAMLYN_OFI_COMPLETE_H
#define HAMLYN_OFI_COMPLETE_H

#include "endpoint/ep.h"

/* What was sent, as its receiver is told. */
struct hf_sent {
	uint64_t length;
	uint64_t data;
	uint64_t tag;
	uint32_t place;		/* by whom */
	uint8_t flags;		/* of its header */
};

static inline struct hf_sent hf_sent_by(uint32_t place, const struct hf_header *header,
					uint64_t tag)
{
	return (struct hf_sent){
		.length = header->length,
		.flags = header->flags,
		.data = header->data,
		.tag = tag,
		.place = place,
	};
}

/* Of what was received, by the flags of its header. */
static inline uint64_t hf_recv_flags(uint8_t wire_flags)
{
	return FI_RECV | (wire_flags & HF_TAGGED ? FI_TAGGED : FI_MSG) |
	       (wire_flags & HF_HAS_DATA ? FI_REMOTE_CQ_DATA : 0);
}

/* Of an operation that was never a struct hf_work. */
void hf_complete_send(struct hf_ep *ep, uint64_t flags, void *context, bool report);
void hf_complete_recv(struct hf_ep *ep, struct hf_recv *recv, const struct hf_sent *sent);
void hf_complete_recv_error(struct hf_ep *ep, struct hf_recv *recv, int err);
void hf_complete_peek(struct hf_ep *ep, void *context, const struct hf_sent *sent);
void hf_complete_no_message(struct hf_ep *ep, void *context, bool tagged, uint64_t tag);
void hf_complete_remote(struct hf_ep *ep, enum hf_counter counter, uint64_t length,
			uint8_t wire_flags, uint64_t data);
/* And of one; it ends here, with a positive error number or 0. */
void hf_complete_work(struct hf_ep *ep, struct hf_work *work, int err);

#endif
