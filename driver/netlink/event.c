// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink events, for administrators who listen. They take no lock, so that
 * they can be told from under any mutex.
 */
#include <linux/ktime.h>
#include <linux/pid_namespace.h>
#include <net/sock.h>

#include "hml.h"
#include "netlink/family.h"

/**
 * struct event - event that is being written
 * @net: where to, with a reference
 * @skb: the message
 * @header: its header
 * @gfp: how it is allocated
 */
struct event {
	struct net *net;
	struct sk_buff *skb;
	void *header;
	gfp_t gfp;
};

/*
 * The NIC may be about to move to another namespace: before this one is taken
 * down there is an RCU grace period (nic.c), and after it we get no reference.
 */
static struct net *net_get(const struct hml_device *d)
{
	struct net *net;

	rcu_read_lock();
	net = maybe_get_net(read_pnet(&d->net));
	rcu_read_unlock();
	return net;
}

static void end(struct event *e, int err)
{
	if (!err) {
		genlmsg_end(e->skb, e->header);
		genlmsg_multicast_netns(&hml_netlink_family, e->net, e->skb, 0,
					HAMLYN_NLGRP_EVENTS, e->gfp);
	} else {
		kfree_skb(e->skb);
		/* They know then that they have missed something. */
		genl_set_err(&hml_netlink_family, e->net, 0,
			     HAMLYN_NLGRP_EVENTS, -ENOBUFS);
	}
	put_net(e->net);
}

/* In e->net, of which a reference is held. False if nobody listens, or can be told. */
static bool begin_in(struct event *e, struct hml_device *d, u32 event,
		     gfp_t gfp)
{
	int err = -ENOMEM;

	if (!genl_has_listeners(&hml_netlink_family, e->net,
				HAMLYN_NLGRP_EVENTS)) {
		put_net(e->net);
		return false;
	}
	e->gfp = gfp;
	e->skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, gfp);
	if (!e->skb)
		goto err_end;
	err = -EMSGSIZE;
	e->header = genlmsg_put(e->skb, 0, 0, &hml_netlink_family, 0,
				HAMLYN_NL_CMD_EVENT);
	if (e->header && !nla_put_u32(e->skb, HAMLYN_A_EVENT, event) &&
	    !nla_put_u32(e->skb, HAMLYN_A_NIC, d->index) &&
	    !nla_put_string(e->skb, HAMLYN_A_NAME, d->name))
		return true;
err_end:
	end(e, err);
	return false;
}

static bool begin(struct event *e, struct hml_device *d, u32 event, gfp_t gfp)
{
	/* Before the family is registered, and when it is no more. */
	if (!READ_ONCE(hml_netlink_registered))
		return false;
	e->net = net_get(d);
	return e->net && begin_in(e, d, event, gfp);
}

static int put_uid(struct event *e, kuid_t uid)
{
	return nla_put_u32(e->skb, HAMLYN_A_UID,
			   from_kuid_munged(e->net->user_ns, uid));
}

/*
 * A listener in a container knows its processes as they know themselves. Those of
 * outside, which have come into its network only, have no number there: 0.
 */
static u32 pid_for(const struct event *e, struct pid *pid)
{
	struct pid_namespace *ns = ns_of_pid(pid);

	if (e->net->user_ns == &init_user_ns)
		return pid_nr(pid);
	while (ns && ns->user_ns != e->net->user_ns)
		ns = ns->parent;
	return ns ? pid_nr_ns(pid, ns) : 0;
}

static int put_context(struct event *e, const struct hml_context *c)
{
	return nla_put_u32(e->skb, HAMLYN_A_CONTEXT, c->id) ?:
	       nla_put_u32(e->skb, HAMLYN_A_PID, pid_for(e, c->pid)) ?:
	       put_uid(e, c->uid);
}

/**
 * hml_event_again() - may a user's doings be told of once more?
 * @told: when they were told of last, ns; atomic
 *
 * Once a second: what a user can repeat without end must not fill up the sockets of those who
 * listen, or they miss what others do.
 *
 * Return: whether it is time, and the caller the one who tells.
 */
bool hml_event_again(u64 *told)
{
	u64 now = ktime_get_ns();
	u64 last = READ_ONCE(*told);

	return now - last >= NSEC_PER_SEC &&
	       cmpxchg_relaxed(told, last, now) == last;
}

/**
 * hml_event_nic() - something happened to a NIC
 * @d: the NIC
 * @event: HAMLYN_NL_EVENT_NIC_*
 *
 * The NIC is in the namespace that is to be told. May sleep.
 */
void hml_event_nic(struct hml_device *d, u32 event)
{
	struct event e;

	if (begin(&e, d, event, GFP_KERNEL))
		end(&e, 0);
}

/**
 * hml_event_nic_in() - something happened to a NIC, to be told in a namespace that it has left
 * @d: the NIC
 * @net: the namespace, which the caller keeps
 * @event: HAMLYN_NL_EVENT_NIC_*
 *
 * May sleep.
 */
void hml_event_nic_in(struct hml_device *d, struct net *net, u32 event)
{
	struct event e = { .net = get_net(net) };

	if (begin_in(&e, d, event, GFP_KERNEL))
		end(&e, 0);
}

/**
 * hml_event_context() - a context was opened, or is being closed
 * @c: the context, with its user
 * @event: HAMLYN_NL_EVENT_CONTEXT_*
 *
 * May sleep.
 */
void hml_event_context(struct hml_context *c, u32 event)
{
	struct event e;

	if (begin(&e, c->device, event, GFP_KERNEL))
		end(&e, put_context(&e, c));
}

static int put_paused(struct event *e, const struct hml_term *t)
{
	u64 until = READ_ONCE(t->core.sender.guard.until);
	u64 now = ktime_get_ns();
	u32 left = until > now ? DIV_ROUND_UP_ULL(until - now, NSEC_PER_MSEC) :
				 0;

	return nla_put_u32(e->skb, HAMLYN_A_CONTEXT, t->context) ?:
	       nla_put_u32(e->skb, HAMLYN_A_ID, t->id) ?:
	       put_uid(e, KUIDT_INIT(t->core.sender.uid)) ?:
	       nla_put_u32(e->skb, HAMLYN_A_PAUSED_MS, left);
}

/**
 * hml_event_paused() - a terminus is not served for a while
 * @t: the terminus
 *
 * Does not sleep: its holder is waited for.
 */
void hml_event_paused(struct hml_term *t)
{
	struct event e;

	if (begin(&e, t->device, HAMLYN_NL_EVENT_TERMINUS_PAUSED,
		  GFP_NOWAIT | __GFP_NOWARN))
		end(&e, put_paused(&e, t));
}

static int put_used(struct event *e, const struct hml_limits *used, u32 attr)
{
	switch (attr) {
	case HAMLYN_A_KERNEL_BYTES:
		return nla_put_u64_64bit(e->skb, attr,
					 (u64)used->pages << PAGE_SHIFT,
					 HAMLYN_A_PAD);
	case HAMLYN_A_WIRED_BYTES:
		return nla_put_u64_64bit(e->skb, attr,
					 (u64)used->wired << PAGE_SHIFT,
					 HAMLYN_A_PAD);
	case HAMLYN_A_SLOTS:
		return nla_put_u32(e->skb, attr, used->slots);
	case HAMLYN_A_TERMINI:
		return nla_put_u32(e->skb, attr, used->termini);
	}
	return -EINVAL;
}

/**
 * hml_event_quota() - a limit was in the way
 * @c: the context that was refused something
 * @attr: which: HAMLYN_A_KERNEL_BYTES, WIRED_BYTES, SLOTS or TERMINI
 * @used: what its user had
 *
 * May sleep: under no lock that anybody else needs.
 */
void hml_event_quota(struct hml_context *c, u32 attr,
		     const struct hml_limits *used)
{
	struct event e;

	if (begin(&e, c->device, HAMLYN_NL_EVENT_QUOTA, GFP_KERNEL))
		end(&e, put_context(&e, c) ?: put_used(&e, used, attr));
}

static int put_peer(struct event *e, u32 host, u32 reason)
{
	struct nlattr *nest = nla_nest_start(e->skb, HAMLYN_A_PEER);

	if (!nest || nla_put_u32(e->skb, HAMLYN_A_PEER_HOST, host) ||
	    (reason && nla_put_u32(e->skb, HAMLYN_A_PEER_REASON, reason)))
		return -EMSGSIZE;
	nla_nest_end(e->skb, nest);
	return 0;
}

/**
 * hml_event_peer() - a peer can be reached, or can no more
 * @d: the NIC, with a reference
 * @host: host id of the peer
 * @event: HAMLYN_NL_EVENT_PEER_UP or PEER_DOWN
 * @reason: why it can no more, enum hml_peer_reason; 0: there is none
 *
 * May sleep.
 */
void hml_event_peer(struct hml_device *d, u32 host, u32 event, u32 reason)
{
	struct event e;

	if (begin(&e, d, event, GFP_KERNEL))
		end(&e, put_peer(&e, host, reason));
}
