/* SPDX-License-Identifier: GPL-2.0-only */
/* The fabric inside one kernel. */
#ifndef HML_LOOP_H
#define HML_LOOP_H

#include <linux/types.h>

struct hml_device;

int hml_fabric_attach(struct hml_device *d, u32 host);
void hml_fabric_detach(struct hml_device *d);

#endif /* HML_LOOP_H */
