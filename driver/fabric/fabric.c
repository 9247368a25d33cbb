// SPDX-License-Identifier: GPL-2.0-only
/*
 * The seam between the NIC and what carries its packets: host ids, ways, and who is asked to
 * take a packet. Compiled as a part of build_datapath.c.
 */
#include <linux/nospec.h>

#include "hml.h"
#include "trace.h"

/* A host id for a NIC, which others find by it at once. */
static int take_host(struct hml_fabric *f, struct hml_device *d, u32 host)
{
	int err;

	if (host != HAMLYN_NONE) {
		d->nic.host = host;
		err = xa_insert(&f->hosts, host, &d->nic, GFP_KERNEL);
		return err == -EBUSY ? -EEXIST : err;
	}
	err = take_host(f, d, d->index);
	if (err != -EEXIST)
		return err;
	err = xa_alloc(&f->hosts, &d->nic.host, &d->nic,
		       XA_LIMIT(0, HML_MAX_NICS - 1), GFP_KERNEL);
	return err == -EBUSY ? -ENOSPC : err;
}

/**
 * hml_fabric_attach() - let packets for a host find its NIC
 * @d: the NIC
 * @host: its host id, or HAMLYN_NONE for the NIC's index, or else the first free
 *	one
 *
 * Return: 0 with the id in d->nic.host, -EEXIST if it is taken, -ENOSPC, -ENOMEM.
 */
int hml_fabric_attach(struct hml_device *d, u32 host)
{
	struct hml_fabric *f = d->nic.port.fabric;
	int err = take_host(f, d, host);

	if (!err && d->nic.host < HML_NEAR_HOSTS)
		rcu_assign_pointer(f->near[d->nic.host], &d->nic);
	return err;
}

/* When it returns no packet is on its way to the NIC. */
void hml_fabric_detach(struct hml_device *d)
{
	struct hml_fabric *f = d->nic.port.fabric;

	/* Until it is erased nobody else has the id. */
	if (d->nic.host < HML_NEAR_HOSTS)
		RCU_INIT_POINTER(f->near[d->nic.host], NULL);
	xa_erase(&f->hosts, d->nic.host);
	hml_grace_wait();
}

/**
 * hml_fabric_enter() - change what a NIC's packets come to first
 * @d: the NIC, with d->admin held, or nobody else there
 * @first: its own fabric, or what stands before that
 *
 * When it returns no packet is on its way to the former one.
 */
void hml_fabric_enter(struct hml_device *d, struct hml_fabric *first)
{
	rcu_assign_pointer(d->nic.port.first, first);
	WRITE_ONCE(d->link.remote, first != d->nic.port.fabric);
	hml_grace_wait();
}

u32 hml_fabric_flags(struct hml_device *d)
{
	struct hml_fabric *f;
	u32 flags;

	hml_section_begin();
	f = hml_dereference(d->nic.port.first);
	flags = f->ops->flags(f);
	hml_section_end();
	return flags;
}

/**
 * hml_port_route() - where does a packet for a host go?
 * @nic: the sending NIC
 * @host: destination host id
 *
 * In a section, which keeps what is returned.
 *
 * Return: the path, or HML_PATH_NONE.
 */
hml_path_t hml_port_route(struct hml_nic *nic, u32 host)
{
	struct hml_fabric *f = nic->port.fabric;

	if (likely(host == nic->host))
		return nic;
	if (unlikely(host >= HML_NEAR_HOSTS))
		return xa_load(&f->hosts, host);
	host = array_index_nospec(host, HML_NEAR_HOSTS);
	return hml_dereference(f->near[host]);
}

/* One look at each NIC. */
bool hml_port_direct(const struct hml_nic *from, hml_path_t path)
{
	return !READ_ONCE(from->link->doubts) && path &&
	       (path == from || !READ_ONCE(path->link->doubts));
}

static noinline void carry_traced(struct hml_nic *from, struct hml_nic *to,
				  struct hamlyn_packet h,
				  struct hml_payload payload,
				  struct hml_sender *sender)
{
	trace_hamlyn_packet(from, &h, sender);
	hml_rx(to, &h, &payload, sender);
}

/* Tracing has a way of its own: what it needs is not kept on the short one. */
void hml_port_carry(struct hml_nic *from, hml_path_t path,
		    const struct hamlyn_packet *h,
		    const struct hml_payload *payload, struct hml_sender *sender)
{
	if (trace_hamlyn_packet_enabled())
		carry_traced(from, path, hml_packet_copy(h),
			     hml_payload_copy(payload), sender);
	else
		hml_rx(path, h, payload, sender);
}

bool hml_port_xmit(struct hml_nic *from, hml_path_t path,
		   const struct hamlyn_packet *h,
		   const struct hml_payload *payload, struct hml_sender *sender)
{
	struct hml_fabric *f = hml_dereference(from->port.first);

	/* Before what it causes, as on the direct way; what is not taken is traced again. */
	trace_hamlyn_packet(from, h, sender);
	return f->ops->xmit(f, from, path, h, payload, sender);
}
