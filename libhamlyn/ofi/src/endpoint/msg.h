/* SPDX-License-Identifier: MIT */
/* FI_MSG: sending and receiving messages. */
#ifndef HAMLYN_OFI_MSG_H
#define HAMLYN_OFI_MSG_H

#include "endpoint/ep.h"

extern struct fi_ops_msg hf_msg_ops;

/* Domain locked: what was posted and never came. */
void hf_msg_flush(struct hf_ep *ep, int err);
bool hf_msg_cancel(struct hf_ep *ep, const void *context);
void hf_msg_free(struct hf_ep *ep);

#endif
