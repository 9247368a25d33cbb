// SPDX-License-Identifier: GPL-2.0-only
/*
 * The fabric between hosts: a NIC's end of it, over TCP. Only hosts that an administrator has
 * named exist; a connection from anywhere else is closed before a byte of it is read.
 */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/net.h>
#include <linux/netdevice.h>
#include <linux/random.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/sock.h>

#include "compat/compat.h"
#include "hml.h"
#include "fabric/peer.h"

#define BACKLOG		64
#define ACCEPTS		64	/* in one go */

/* ---- packets ---- */

static u32 tcp_flags(struct hml_fabric *f)
{
	return 0;
}

static bool tcp_xmit(struct hml_fabric *f, struct hml_nic *from, hml_path_t path,
		     const struct hamlyn_packet *h, const struct hml_payload *payload,
		     struct hml_sender *sender)
{
	struct hml_peer *p = hml_peer_of(path);

	if (p)
		return hml_outbox_put(p, h, payload, sender);
	hml_tx_local(from, path, h, payload, sender);
	return true;
}

static const struct hml_fabric_ops tcp_ops = {
	.name = "tcp",
	.flags = tcp_flags,
	.xmit = tcp_xmit,
};

static struct hml_tcp *tcp_of(const struct hml_device *d)
{
	struct hml_fabric *f = d->nic.port.fabric;

	return f->ops == &tcp_ops ? container_of(f, struct hml_tcp, fabric) : NULL;
}

/* What we say of ourselves. */
void hml_tcp_hello(const struct hml_tcp *t, struct hml_wire_hello *hello)
{
	*hello = (struct hml_wire_hello) {
		.least = HML_WIRE_VERSION,
		.greatest = HML_WIRE_VERSION,
		.host = t->device->nic.host,
		.packet_size = t->device->nic.packet_size,
		.features = HML_WIRE_FEATURES,
		.incarnation = t->incarnation,
	};
	memcpy(hello->fabric_id, t->attr.id, sizeof(hello->fabric_id));
}

/* ---- by workers ---- */

/**
 * struct call - something to be done to a fabric, by a worker
 * @work: does it
 * @tcp: the fabric
 * @fn: what
 * @arg: for @fn
 * @err: what it returned
 */
struct call {
	struct work_struct work;
	struct hml_tcp *tcp;
	int (*fn)(struct hml_tcp *t, void *arg);
	void *arg;
	int err;
};

static void do_call(struct work_struct *work)
{
	struct call *c = container_of(work, struct call, work);

	mutex_lock(&c->tcp->lock);
	c->err = c->tcp->ended ? -ENODEV : c->fn(c->tcp, c->arg);
	mutex_unlock(&c->tcp->lock);
}

/* Not by the task that asks for it: if it lost its processor, namespaces could not end. */
static int by_worker(struct hml_tcp *t, int (*fn)(struct hml_tcp *t, void *arg), void *arg)
{
	struct call c = { .tcp = t, .fn = fn, .arg = arg };

	INIT_WORK_ONSTACK(&c.work, do_call);
	/* Workers do it at once: all of them could wait for one that is left. */
	if (current->flags & PF_WQ_WORKER) {
		do_call(&c.work);
	} else {
		queue_work(hml_workers, &c.work);
		flush_work(&c.work);
	}
	destroy_work_on_stack(&c.work);
	return c.err;
}

/* ---- who connects ---- */

static bool same_address(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
	if (a->ss_family != b->ss_family)
		return false;
	if (a->ss_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return ipv6_addr_equal(&((const struct sockaddr_in6 *)a)->sin6_addr,
			       &((const struct sockaddr_in6 *)b)->sin6_addr);
}

/* The peer at an address that is to connect, not to be connected to. */
static struct hml_peer *find_by_address(struct hml_tcp *t, const struct sockaddr_storage *from)
{
	struct hml_nic *nic;
	unsigned long host;

	lockdep_assert_held(&t->lock);
	xa_for_each_range(&t->fabric.hosts, host, nic, 0, t->device->nic.host) {
		struct hml_peer *p = hml_peer_of(nic);

		if (p && same_address(&p->attr.address, from))
			return p;
	}
	return NULL;
}

static void take_connection(struct hml_tcp *t, struct socket *sock)
{
	struct sockaddr_storage from = {};
	struct hml_peer *p = NULL;

	/* The address says which host it is, the port that it is the host: see bind_to(). */
	if (kernel_getpeername(sock, (struct sockaddr *)&from) > 0 &&
	    ntohs(((struct sockaddr_in *)&from)->sin_port) < HML_TCP_RESERVED)
		p = find_by_address(t, &from);
	if (p) {
		hml_peer_arrived(p, sock);
		return;
	}
	sock_release(sock);
}

static void accept_some(struct work_struct *work)
{
	struct hml_tcp *t = container_of(to_delayed_work(work), struct hml_tcp, accepting);
	struct socket *sock;
	int err = 0;
	u32 n;

	mutex_lock(&t->lock);
	for (n = 0; n < ACCEPTS && t->listener; n++) {
		err = kernel_accept(t->listener, &sock, O_NONBLOCK);
		if (err)
			break;
		take_connection(t, sock);
	}
	mutex_unlock(&t->lock);
	if (n == ACCEPTS || (err && err != -EAGAIN))
		queue_delayed_work(hml_workers, &t->accepting, 1 + HZ / 100);
}

static void somebody_connects(struct sock *sk)
{
	struct hml_tcp *t;

	read_lock_bh(&sk->sk_callback_lock);
	t = sk->sk_user_data;
	if (t && sk->sk_state == TCP_LISTEN)
		queue_delayed_work(hml_workers, &t->accepting, 0);
	read_unlock_bh(&sk->sk_callback_lock);
}

static int listen(struct hml_tcp *t)
{
	struct sockaddr_storage own = t->attr.address;
	struct socket *sock;
	struct sock *sk;
	int err;

	err = sock_create_kern(t->net, own.ss_family, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (err)
		return err;
	sk = sock->sk;
	sock_set_reuseaddr(sk);
	if (t->ifindex)
		err = sock_bindtoindex(sk, t->ifindex, true);
	if (!err)
		err = kernel_bind(sock, HML_COMPAT_SOCKADDR(&own), sizeof(own));
	if (err) {
		sock_release(sock);
		return err;
	}
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = t;
	t->data_ready = sk->sk_data_ready;
	sk->sk_data_ready = somebody_connects;
	write_unlock_bh(&sk->sk_callback_lock);
	/* Before anybody can connect. */
	t->listener = sock;
	return kernel_listen(sock, BACKLOG);
}

static void listen_no_more(struct hml_tcp *t)
{
	struct socket *sock = t->listener;
	struct sock *sk;

	lockdep_assert_held(&t->lock);
	if (!sock)
		return;
	sk = sock->sk;
	t->listener = NULL;
	write_lock_bh(&sk->sk_callback_lock);
	sk->sk_user_data = NULL;
	sk->sk_data_ready = t->data_ready;
	write_unlock_bh(&sk->sk_callback_lock);
	kernel_sock_shutdown(sock, SHUT_RDWR);
	sock_release(sock);
}

/* ---- peers ---- */

static int add(struct hml_tcp *t, void *arg)
{
	struct hml_fabric *f = &t->fabric;
	struct hml_peer *p = arg;
	int err;

	if (t->peer_count == HML_PEER_MOST)
		return -ENOSPC;
	/* Those who connect are told apart by their addresses. */
	if (p->attr.host < t->device->nic.host && find_by_address(t, &p->attr.address))
		return -EADDRINUSE;
	err = xa_insert(&f->hosts, p->attr.host, &p->nic, GFP_KERNEL);
	if (err)
		return err == -EBUSY ? -EEXIST : err;
	if (p->attr.host < HML_NEAR_HOSTS)
		rcu_assign_pointer(f->near[p->attr.host], &p->nic);
	t->peer_count++;
	hml_peer_start(p);
	return 0;
}

/* Where others than the host itself could be in its place: only where all is in clear anyway. */
static int check_port(const struct sockaddr_storage *a, bool clear, struct netlink_ext_ack *extack)
{
	if (clear || ntohs(((const struct sockaddr_in *)a)->sin_port) < HML_TCP_RESERVED)
		return 0;
	NL_SET_ERR_MSG(extack, "port must be below 1024: others may be any user's; or clear");
	return -EINVAL;
}

/**
 * hml_tcp_add_peer() - let a NIC talk to another host
 * @d: the NIC, with d->admin held
 * @attr: the host, not @d's own, with an address of the family of @d's
 * @extack: why not
 *
 * Return: 0, -EOPNOTSUPP on a fabric without peers, -EINVAL, -EEXIST, -EADDRINUSE, -ENOSPC,
 * -ENOMEM, or -ENODEV if the NIC has left its fabric.
 */
int hml_tcp_add_peer(struct hml_device *d, const struct hml_peer_attr *attr,
		     struct netlink_ext_ack *extack)
{
	struct hml_tcp *t = tcp_of(d);
	struct hml_peer *p;
	int err;

	if (!t)
		return -EOPNOTSUPP;
	err = check_port(&attr->address, t->attr.clear, extack);
	if (err)
		return err;
	p = hml_peer_new(t, attr);
	if (!p)
		return -ENOMEM;
	err = by_worker(t, add, p);
	if (err)
		hml_peer_put(p);
	if (err == -EEXIST)
		NL_SET_ERR_MSG(extack, "there is a peer with that host id");
	if (err == -EADDRINUSE)
		NL_SET_ERR_MSG(extack, "a peer with a lower host id than ours has that address");
	if (err == -ENOSPC)
		NL_SET_ERR_MSG(extack, "the NIC has 1024 peers, and no more can be");
	return err;
}

/* From here on no packet goes to it. */
static void take_out(struct hml_tcp *t, struct hml_peer *p)
{
	if (p->attr.host < HML_NEAR_HOSTS)
		RCU_INIT_POINTER(t->fabric.near[p->attr.host], NULL);
	xa_erase(&t->fabric.hosts, p->attr.host);
	t->peer_count--;
}

static int delete(struct hml_tcp *t, void *arg)
{
	struct hml_nic *nic = xa_load(&t->fabric.hosts, *(u32 *)arg);
	struct hml_peer *p = nic ? hml_peer_of(nic) : NULL;

	if (!p)
		return -ENOENT;
	take_out(t, p);
	hml_grace_wait();
	hml_peer_stop(p);
	return 0;
}

/**
 * hml_tcp_delete_peer() - do not talk to a host any more
 * @d: the NIC, with d->admin held
 * @host: its id
 *
 * Return: 0, -EOPNOTSUPP, -ENOENT, or -ENODEV.
 */
int hml_tcp_delete_peer(struct hml_device *d, u32 host)
{
	struct hml_tcp *t = tcp_of(d);

	return t ? by_worker(t, delete, &host) : -EOPNOTSUPP;
}

static void tell(const struct hml_peer *p, struct hml_peer_info *info)
{
	*info = (struct hml_peer_info) {
		.attr = p->attr,
		.state = READ_ONCE(p->state),
		.reason = READ_ONCE(p->reason),
		.epoch = READ_ONCE(p->epoch),
		.incarnation = READ_ONCE(p->in.rx.incarnation),
		.rtt_us = READ_ONCE(p->rtt_us),
		.watches = READ_ONCE(p->far.ours_count),
		.watched = READ_ONCE(p->far.theirs_count),
		.calls = READ_ONCE(p->names.ours_count),
		.called = READ_ONCE(p->names.theirs_count),
		.sent_bytes = READ_ONCE(p->out.bytes),
		.received_bytes = READ_ONCE(p->in.taken),
		.sent_packets = READ_ONCE(p->out.packets),
		.received_packets = READ_ONCE(p->in.packets),
		.stalls = READ_ONCE(p->out.stalls),
		.dropped = READ_ONCE(p->in.dropped),
		.lost = READ_ONCE(p->out.lost),
		.refused = READ_ONCE(p->in.refused),
	};
}

/**
 * hml_tcp_next_peer() - look at peers in turn
 * @d: the NIC
 * @host: the least host id of interest; becomes the one that was found
 * @info: how things stand with it
 *
 * Return: 0, or -ENOENT if there is none.
 */
int hml_tcp_next_peer(struct hml_device *d, u32 *host, struct hml_peer_info *info)
{
	struct hml_tcp *t = tcp_of(d);
	unsigned long index = *host;
	struct hml_nic *nic;
	int err = -ENOENT;

	if (!t)
		return err;
	hml_section_begin();
	nic = xa_find(&t->fabric.hosts, &index, ULONG_MAX, XA_PRESENT);
	if (nic && !hml_peer_of(nic))
		nic = xa_find_after(&t->fabric.hosts, &index, ULONG_MAX, XA_PRESENT);
	if (nic) {
		*host = index;
		tell(hml_peer_of(nic), info);
		err = 0;
	}
	hml_section_end();
	return err;
}

/**
 * hml_tcp_add_stats() - what became of packets of other hosts
 * @d: the NIC
 * @sum: to which it is added; those of hosts that are no peers any more are in it
 *
 * One peer in a section, with others let in between.
 */
void hml_tcp_add_stats(struct hml_device *d, struct hml_stats *sum)
{
	struct hml_tcp *t = tcp_of(d);
	unsigned long index = 0;
	struct hml_nic *nic;

	if (!t)
		return;
	do {
		hml_section_begin();
		nic = xa_find(&t->fabric.hosts, &index, ULONG_MAX, XA_PRESENT);
		if (nic && hml_peer_of(nic))
			hml_stats_add(sum, &hml_peer_of(nic)->in.stats);
		hml_section_end();
		cond_resched();
	} while (nic && index++ != ULONG_MAX);
}

/* ---- the NIC's end ---- */

/* It may have gone since the request was checked. */
static int find_netdev(struct hml_tcp *t, struct netlink_ext_ack *extack)
{
	struct net_device *dev;

	if (!t->attr.netdev[0])
		return 0;
	rcu_read_lock();
	dev = dev_get_by_name_rcu(t->net, t->attr.netdev);
	t->ifindex = dev ? dev->ifindex : 0;
	rcu_read_unlock();
	if (dev)
		return 0;
	NL_SET_ERR_MSG(extack, "no such device in the NIC's network namespace");
	return -ENODEV;
}

static void explain_listen(int err, struct netlink_ext_ack *extack)
{
	if (err == -EADDRNOTAVAIL)
		NL_SET_ERR_MSG(extack, "address is none of this host's");
	else if (err == -EADDRINUSE)
		NL_SET_ERR_MSG(extack, "address and port are in use");
	else
		NL_SET_ERR_MSG(extack, "cannot listen at that address");
}

static int set_up(struct hml_tcp *t, struct netlink_ext_ack *extack)
{
	int err = find_netdev(t, extack);

	if (err)
		return err;
	err = listen(t);
	if (err)
		explain_listen(err, extack);
	return err;
}

/**
 * hml_tcp_create() - put a new NIC on a fabric over TCP
 * @d: the NIC, which is being made: it has its network namespace, and no host id yet
 * @attr: how: complete, with a netdev that encrypts unless it is in clear
 * @extack: why not
 *
 * Return: 0, -EINVAL, -ENODEV, -ENOMEM, or what the network says.
 */
int hml_tcp_create(struct hml_device *d, const struct hml_tcp_attr *attr,
		   struct netlink_ext_ack *extack)
{
	struct hml_tcp *t;
	int err;

	err = check_port(&attr->address, attr->clear, extack);
	if (err)
		return err;
	t = kvzalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);
	if (!t)
		return -ENOMEM;
	t->fabric.ops = &tcp_ops;
	memcpy(t->fabric.id, attr->id, sizeof(t->fabric.id));
	xa_init_flags(&t->fabric.hosts, XA_FLAGS_ALLOC);
	t->device = d;
	t->attr = *attr;
	get_random_bytes(&t->incarnation, sizeof(t->incarnation));
	t->incarnation |= 1;
	t->net = read_pnet(&d->net);
	mutex_init(&t->lock);
	INIT_DELAYED_WORK(&t->accepting, accept_some);
	d->nic.port.fabric = &t->fabric;
	RCU_INIT_POINTER(d->nic.port.first, &t->fabric);
	err = set_up(t, extack);
	if (err)
		hml_tcp_stop(d);
	return err;
}

static int stop(struct hml_tcp *t, void *arg)
{
	struct hml_nic *nic;
	unsigned long host;

	t->ended = true;
	listen_no_more(t);
	xa_for_each(&t->fabric.hosts, host, nic) {
		struct hml_peer *p = hml_peer_of(nic);

		if (!p)
			continue;
		take_out(t, p);
		hml_grace_wait();
		hml_peer_stop(p);
	}
	return 0;
}

/**
 * hml_tcp_stop() - close all sockets
 * @d: the NIC; nothing happens if that was done, or it is on no such fabric
 *
 * Before its network namespace ends, and before the NIC does. It waits for workers only.
 */
void hml_tcp_stop(struct hml_device *d)
{
	struct hml_tcp *t = tcp_of(d);

	if (!t)
		return;
	by_worker(t, stop, NULL);
	cancel_delayed_work_sync(&t->accepting);
}

/* Nobody refers to the NIC any more. */
void hml_tcp_free(struct hml_device *d)
{
	struct hml_tcp *t = tcp_of(d);

	if (!t)
		return;
	xa_destroy(&t->fabric.hosts);
	mutex_destroy(&t->lock);
	kvfree(t);
}

/**
 * hml_tcp_get() - how a NIC's end of its fabric was set up
 * @d: the NIC
 * @attr: how
 *
 * Return: false if it is on no such fabric.
 */
bool hml_tcp_get(struct hml_device *d, struct hml_tcp_attr *attr)
{
	const struct hml_tcp *t = tcp_of(d);

	if (t)
		*attr = t->attr;
	return t;
}

/* ---- the module ---- */

int __init hml_tcp_init(void)
{
	hml_wire_workers = alloc_workqueue("hamlyn_wire", WQ_UNBOUND | WQ_HIGHPRI, 0);
	return hml_wire_workers ? 0 : -ENOMEM;
}

/* After hml_workers, which free peers and wait for works of this one. */
void hml_tcp_exit(void)
{
	destroy_workqueue(hml_wire_workers);
}
