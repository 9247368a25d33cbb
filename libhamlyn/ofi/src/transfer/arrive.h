/* SPDX-License-Identifier: MIT */
/* One message of the peer: what it wants, and whether it may. Domain locked. */
#ifndef HAMLYN_OFI_ARRIVE_H
#define HAMLYN_OFI_ARRIVE_H

#include "endpoint/ep.h"

enum hf_arrival {
	HF_TAKEN,
	HF_LATER,	/* no buffer was posted for it, or its completion has no room */
	HF_BROKEN,	/* no message of this protocol */
};

/* A long message has its buffer: get it. */
void hf_arrive_long(struct hf_ep *ep, struct hf_work *work, struct hf_recv *recv,
		    const struct hf_header *header, uint64_t tag, const struct hf_place *places);
void hf_arrive_done(struct hf_ep *ep, uint32_t id, int err);
enum hf_arrival hf_arrive(struct hf_ep *ep, const void *data, size_t length);

#endif
