// SPDX-License-Identifier: GPL-2.0-only
/* The loop fabric: the switch inside one kernel. */
#include "hml.h"

/**
 * hml_port_route() - where does a packet for a host go?
 * @nic: the sending NIC
 * @host: destination host id
 *
 * Return: the NIC whose hml_rx() takes it, or NULL.
 */
struct hml_nic *hml_port_route(struct hml_nic *nic, u32 host)
{
	return host == nic->host ? nic : NULL;
}
