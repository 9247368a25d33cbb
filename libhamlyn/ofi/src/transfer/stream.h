/* SPDX-License-Identifier: MIT */
/*
 * What goes out beside calls of the application: answers, and long messages in pieces. Both wait
 * for the other end's buffers without holding up anybody. Domain locked.
 */
#ifndef HAMLYN_OFI_STREAM_H
#define HAMLYN_OFI_STREAM_H

#include "endpoint/ep.h"

/* So long a message in one piece, its header included, goes along in a work queue's entry. */
#define HF_SHORT	160

int hf_stream_send(struct hf_ep *ep, const struct hf_header *header, const void *more,
		   size_t more_length, const struct hf_span *payload);
void hf_stream_reply(struct hf_ep *ep, enum hf_wire_op op, uint32_t id, uint64_t length,
		     uint64_t data);
void hf_stream_add(struct hf_ep *ep, struct hf_work *work);
void hf_stream_remove(struct hf_ep *ep, struct hf_work *work);
int hf_stream_refused(struct hf_ep *ep, int err);
bool hf_stream_flush(struct hf_ep *ep);
void hf_stream_drop(struct hf_ep *ep);

#endif
