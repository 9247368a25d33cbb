/* SPDX-License-Identifier: MIT */
/* What arrives, and what can be done about it. Domain locked. */
#ifndef HAMLYN_OFI_PROGRESS_H
#define HAMLYN_OFI_PROGRESS_H

#include "endpoint/ep.h"

void hf_progress_ready(struct h_channel *channel, void *ep);
bool hf_progress_hot(struct hf_domain *domain);
void hf_progress_cool(struct hf_domain *domain);
void hf_progress_held(struct hf_ep *ep);
void hf_progress_stuck(struct hf_domain *domain);
void hf_progress_drop_held(struct hf_ep *ep);
void hf_progress_hungry(struct hf_rdm *srx);
void hf_progress_sated(struct hf_ep *ep);

#endif
