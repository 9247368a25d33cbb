/* SPDX-License-Identifier: GPL-2.0-only */
/* The doorbell. */
#ifndef HML_DOORBELL_H
#define HML_DOORBELL_H

#include <linux/types.h>

struct hml_context;

int hml_doorbell_ring(struct hml_context *c, u32 id);
int hml_doorbell_ring_all(struct hml_context *c);

#endif /* HML_DOORBELL_H */
