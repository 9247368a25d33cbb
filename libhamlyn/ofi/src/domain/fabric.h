/* SPDX-License-Identifier: MIT */
#ifndef HAMLYN_OFI_FABRIC_H
#define HAMLYN_OFI_FABRIC_H

#include "base/provider.h"

struct hf_fabric {
	struct fid_fabric fid;
	struct hf_fabric *next;	/* of opened.c */
	int users;		/* domains, passive end points, event queues, wait sets */
};

int hf_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
void hf_fabric_get(struct hf_fabric *fabric);
void hf_fabric_put(struct hf_fabric *fabric);

#endif
