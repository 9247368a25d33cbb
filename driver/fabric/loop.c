// SPDX-License-Identifier: GPL-2.0-only
/*
 * The loop fabric: the switch inside one kernel, between all its NICs. It is asked only where
 * something is in doubt; otherwise packets go by hml_port_carry(). Compiled as a part of
 * build_datapath.c.
 */
#include <linux/random.h>

#include "hml.h"

static u32 loop_flags(struct hml_fabric *f)
{
	return 0;
}

/* It has room for everything: where a packet ends it is at once. */
static bool loop_xmit(struct hml_fabric *f, struct hml_nic *from, hml_path_t path,
		      const struct hamlyn_packet *h, const struct hml_payload *payload,
		      struct hml_sender *sender)
{
	hml_tx_local(from, path, h, payload, sender);
	return true;
}

static const struct hml_fabric_ops loop_ops = {
	.name = "loop",
	.flags = loop_flags,
	.xmit = loop_xmit,
};

struct hml_fabric hml_loop = {
	.ops = &loop_ops,
	.hosts = XARRAY_INIT(hml_loop.hosts, XA_FLAGS_ALLOC),
};

/* Another one with each module that is loaded, and so in each kernel. */
void __init hml_loop_init(void)
{
	get_random_bytes(hml_loop.id, sizeof(hml_loop.id));
}
