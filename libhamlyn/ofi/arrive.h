/* SPDX-License-Identifier: MIT */
/* One message of the peer: what it wants, and whether it may. Domain locked. */
#ifndef HAMLYN_OFI_ARRIVE_H
#define HAMLYN_OFI_ARRIVE_H

#include "ep.h"

enum hf_arrival {
	HF_TAKEN,
	HF_LATER,	/* no buffer was posted for it, or its completion has no room */
	HF_BROKEN,	/* no message of this protocol */
};

enum hf_arrival hf_arrive(struct hf_ep *ep, const void *data, size_t length);

#endif
