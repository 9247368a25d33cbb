/* SPDX-License-Identifier: GPL-2.0-only */
/* What carries packets between NICs. */
#ifndef HML_FABRIC_H
#define HML_FABRIC_H

#include <linux/types.h>
#include <linux/xarray.h>

#include "core/nic.h"

struct hml_device;
struct hml_fabric;

#define HML_NEAR_HOSTS	256	/* host ids that are found without a search */

/**
 * struct hml_fabric_ops - a kind of fabric
 * @name: its name
 * @flags: HAMLYN_FABRIC_*: what may happen to packets now
 * @xmit: take a packet, or say not now, as hml_port_xmit()
 *
 * Called in sections, preemption off. A path that is direct (hml_port_direct()) needs no
 * fabric, and none is asked.
 */
struct hml_fabric_ops {
	const char *name;
	u32 (*flags)(struct hml_fabric *f);
	bool (*xmit)(struct hml_fabric *f, struct hml_nic *from, hml_path_t path,
		     const struct hamlyn_packet *h, const struct hml_payload *payload,
		     struct hml_sender *sender);
};

/**
 * struct hml_fabric - a fabric, and who is on it
 * @ops: its kind; constant
 * @id: random, told by QUERY: no other fabric has it; constant once there are NICs
 * @hosts: NICs by host id; changed under its own lock, read in sections
 * @near: those with an id below HML_NEAR_HOSTS once more; read in sections
 *
 * Host ids of different fabrics are different ids. A NIC belongs to one fabric all its life.
 */
struct hml_fabric {
	const struct hml_fabric_ops *ops;
	u8 id[HAMLYN_FABRIC_ID_BYTES];
	struct xarray hosts;
	struct hml_nic __rcu *near[HML_NEAR_HOSTS];
};

int hml_fabric_attach(struct hml_device *d, u32 host);
void hml_fabric_detach(struct hml_device *d);
void hml_fabric_enter(struct hml_device *d, struct hml_fabric *first);
u32 hml_fabric_flags(struct hml_device *d);

#endif /* HML_FABRIC_H */
