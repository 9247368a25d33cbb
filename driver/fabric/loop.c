// SPDX-License-Identifier: GPL-2.0-only
/* The loop fabric: the switch inside one kernel, between all its NICs. */
#include <linux/nospec.h>

#include "hml.h"
#include "trace.h"

static DEFINE_RAW_SPINLOCK(hosts_lock);

/* By host id. Changed under hosts_lock, read in sections. */
static struct hml_device __rcu *hosts[HML_MAX_NICS];

static bool host_taken(u32 host)
{
	lockdep_assert_held(&hosts_lock);
	return rcu_access_pointer(hosts[host]);
}

/* A host id for a NIC, or an error. */
static int choose_host(const struct hml_device *d, u32 host)
{
	if (host != HAMLYN_NONE)
		return host_taken(host) ? -EEXIST : host;
	if (!host_taken(d->index))
		return d->index;
	for (host = 0; host < HML_MAX_NICS; host++)
		if (!host_taken(host))
			return host;
	return -ENOSPC;
}

/**
 * hml_fabric_attach() - let packets for a host find its NIC
 * @d: the NIC
 * @host: its host id, or HAMLYN_NONE for the NIC's index, or else the first free
 *	one
 *
 * Return: 0 with the id in d->nic.host, -EEXIST if it is taken, -EINVAL,
 * -ENOSPC.
 */
int hml_fabric_attach(struct hml_device *d, u32 host)
{
	int got;

	if (host != HAMLYN_NONE && host >= HML_MAX_NICS)
		return -EINVAL;
	hml_lock(&hosts_lock);
	got = choose_host(d, host);
	if (got >= 0) {
		d->nic.host = got;
		rcu_assign_pointer(hosts[got], d);
	}
	hml_unlock(&hosts_lock);
	return min(got, 0);
}

/* When it returns no packet is on its way to the NIC. */
void hml_fabric_detach(struct hml_device *d)
{
	hml_lock(&hosts_lock);
	RCU_INIT_POINTER(hosts[d->nic.host], NULL);
	hml_unlock(&hosts_lock);
	hml_grace_wait();
}

/**
 * hml_port_route() - where does a packet for a host go?
 * @nic: the sending NIC
 * @host: destination host id
 *
 * In a section, which keeps what is returned.
 *
 * Return: the NIC whose hml_rx() takes it, or NULL.
 */
struct hml_nic *hml_port_route(struct hml_nic *nic, u32 host)
{
	struct hml_device *d;

	if (likely(host == nic->host))
		return nic;
	if (host >= HML_MAX_NICS)
		return NULL;
	host = array_index_nospec(host, HML_MAX_NICS);
	d = hml_dereference(hosts[host]);
	return d ? &d->nic : NULL;
}

/* By values: see hml_packet_copy(). */
static noinline void carry_badly(struct hml_adversary *a, struct hml_nic *to,
				 struct hamlyn_packet h,
				 struct hml_payload payload,
				 struct hml_sender *sender)
{
	hml_adversary_xmit(a, to, &h, &payload, sender);
}

/* A packet crosses the fabric: directly, or by way of the adversary. */
static __always_inline void carry(struct hml_nic *from, struct hml_nic *to,
				  const struct hamlyn_packet *h,
				  const struct hml_payload *payload,
				  struct hml_sender *sender)
{
	struct hml_adversary *a = hml_dereference(from->port.adversary);

	if (likely(!a))
		hml_rx(to, h, payload, sender);
	else
		carry_badly(a, to, hml_packet_copy(h),
			    hml_payload_copy(payload), sender);
}

static noinline void trace_packet(struct hml_nic *from, struct hml_nic *to,
				  struct hamlyn_packet h,
				  struct hml_payload payload,
				  struct hml_sender *sender)
{
	trace_hamlyn_packet(from, &h, sender);
	carry(from, to, &h, &payload, sender);
}

/* Tracing has a way of its own: what it needs is not kept on the short one. */
void hml_port_xmit(struct hml_nic *from, struct hml_nic *to,
		   const struct hamlyn_packet *h,
		   const struct hml_payload *payload,
		   struct hml_sender *sender)
{
	if (trace_hamlyn_packet_enabled())
		trace_packet(from, to, hml_packet_copy(h),
			     hml_payload_copy(payload), sender);
	else
		carry(from, to, h, payload, sender);
}
