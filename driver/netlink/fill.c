// SPDX-License-Identifier: GPL-2.0-only
/* What netlink messages say about NICs and their objects, and to whom. */
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/ktime.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <net/sock.h>

#include "hml.h"
#include "locked.h"
#include "netlink/family.h"

/**
 * hml_reader_init() - who sent this request?
 * @r: out: the reader
 * @request: the request
 * @net: its network namespace
 *
 * A dump goes on in whoever reads the socket next, perhaps a program with more
 * rights than the one that asked. So the user is the socket's, and both must be
 * administrators.
 */
void hml_reader_init(struct hml_reader *r, struct sk_buff *request,
		     const struct net *net)
{
	struct sock *sk = NETLINK_CB(request).sk;

	r->admin = netlink_ns_capable(request, net->user_ns, CAP_NET_ADMIN);
	r->host_admin = netlink_capable(request, CAP_NET_ADMIN);
	r->uid = READ_ONCE(sk->sk_uid);
	r->user_ns = sk_user_ns(sk);
	r->pid_ns = task_active_pid_ns(current);
}

static int put_u32(struct sk_buff *skb, int attr, u32 value)
{
	return nla_put_u32(skb, attr, value);
}

static int put_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, HAMLYN_A_PAD);
}

static int put_flag(struct sk_buff *skb, int attr, bool value)
{
	return value ? nla_put_flag(skb, attr) : 0;
}

/* A limit of ULONG_MAX is none. */
static u64 bytes_of(unsigned long pages)
{
	return (u64)pages > U64_MAX >> PAGE_SHIFT ? U64_MAX :
						    (u64)pages << PAGE_SHIFT;
}

static int put_limits(struct sk_buff *skb, const struct hml_limits *l,
		      const unsigned long *max_pages)
{
	struct nlattr *nest = nla_nest_start(skb, HAMLYN_A_LIMITS);

	if (!nest ||
	    (max_pages &&
	     nla_put_u64_64bit(skb, HAMLYN_A_LIMITS_KERNEL_BYTES,
			       bytes_of(*max_pages), HAMLYN_A_LIMITS_PAD)) ||
	    nla_put_u64_64bit(skb, HAMLYN_A_LIMITS_USER_KERNEL_BYTES,
			      bytes_of(l->pages), HAMLYN_A_LIMITS_PAD) ||
	    nla_put_u64_64bit(skb, HAMLYN_A_LIMITS_USER_WIRED_BYTES,
			      bytes_of(l->wired), HAMLYN_A_LIMITS_PAD) ||
	    put_u32(skb, HAMLYN_A_LIMITS_USER_SLOTS,
		    min_t(u64, l->slots, U32_MAX)) ||
	    put_u32(skb, HAMLYN_A_LIMITS_USER_TERMINI,
		    min_t(u64, l->termini, U32_MAX)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_rejects(struct sk_buff *skb, const u64 *rejects)
{
	struct nlattr *nest = nla_nest_start(skb, HAMLYN_A_REJECTS);
	u32 i;

	BUILD_BUG_ON((int)HAMLYN_A_REJECTS_DOWN != HAMLYN_REJECT_REASONS);

	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < HAMLYN_REJECT_REASONS; i++)
		if (nla_put_u64_64bit(skb, i + 1, READ_ONCE(rejects[i]),
				      HAMLYN_A_REJECTS_PAD))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* ---- counts ---- */

/**
 * struct counts - what a context has
 * @areas: areas
 * @nqs: NQs
 * @termini: termini
 * @kernel: kernel memory of them, in bytes
 * @wired: pinned memory of them, in bytes
 */
struct counts {
	u32 areas;
	u32 nqs;
	u32 termini;
	u64 kernel;
	u64 wired;
};

static void breathe(u32 counted)
{
	if (!(counted & 1023))
		cond_resched();
}

static u32 entries_of(struct xarray *xa)
{
	unsigned long id;
	void *entry;
	u32 n = 0;

	xa_for_each(xa, id, entry)
		breathe(++n);
	return n;
}

static void count_areas(struct hml_context *c, struct counts *n)
{
	struct hml_area *a;
	unsigned long id;

	xa_for_each(&c->areas, id, a) {
		u64 bytes = (u64)a->pages << PAGE_SHIFT;

		if (a->allocated)
			n->kernel += bytes;
		else
			n->wired += bytes;
		breathe(++n->areas);
	}
}

/* Context locked. */
static void count_objects(struct hml_context *c, struct counts *n)
{
	struct hml_nqueue *nq;
	struct hml_term *t;
	unsigned long id;

	count_areas(c, n);
	xa_for_each(&c->nqs, id, nq) {
		n->kernel += hml_ring_bytes(nq->ring) +
			     hml_ring_bytes(nq->control);
		breathe(++n->nqs);
	}
	xa_for_each(&c->termini, id, t) {
		n->kernel += hml_ring_bytes(t->wq) + hml_ring_bytes(t->status);
		breathe(++n->termini);
	}
}

/* ---- NICs ---- */

static int fill_name(struct sk_buff *skb, const struct hml_device *d)
{
	return put_u32(skb, HAMLYN_A_NIC, d->index) ?:
	       nla_put_string(skb, HAMLYN_A_NAME, d->name);
}

static int fill_settings(struct sk_buff *skb, const struct hml_device *d)
{
	return put_u32(skb, HAMLYN_A_HOST, d->nic.host) ?:
	       nla_put(skb, HAMLYN_A_FABRIC_ID, HAMLYN_FABRIC_ID_BYTES, d->nic.port.fabric->id) ?:
	       put_u32(skb, HAMLYN_A_STATE, hml_link_state(&d->nic)) ?:
	       put_u32(skb, HAMLYN_A_WATCHDOG_MS,
		       READ_ONCE(d->link.watchdog_ms)) ?:
	       put_flag(skb, HAMLYN_A_FED, hml_link_fed(&d->nic)) ?:
	       put_u32(skb, HAMLYN_A_ENGINE_MODE, d->engine_mode) ?:
	       put_u32(skb, HAMLYN_A_ENGINES,
		       d->engine_mode == HAMLYN_ENGINE_POLL ?
		       d->engine_count : 0) ?:
	       put_u32(skb, HAMLYN_A_IDLE_US, READ_ONCE(d->idle_us)) ?:
	       put_u32(skb, HAMLYN_A_KICK_WINDOW_US,
		       READ_ONCE(d->kick_window_us)) ?:
	       put_u32(skb, HAMLYN_A_PACKET_SIZE, d->nic.packet_size) ?:
	       put_u32(skb, HAMLYN_A_MAX_SLOTS, d->nic.port.max_slots) ?:
	       put_u32(skb, HAMLYN_A_GUESSES, READ_ONCE(d->nic.guesses));
}

static int fill_limits(struct sk_buff *skb, struct hml_device *d)
{
	struct hml_limits limits;
	unsigned long max_pages;

	hml_lock(&d->users_lock);
	max_pages = d->max_pages;
	limits = *hml_limits_of_all(d);
	hml_unlock(&d->users_lock);
	return put_limits(skb, &limits, &max_pages);
}

/*
 * Counters, not a walk through everybody's objects: what others do with theirs must not
 * wait for it.
 */
static int fill_use(struct sk_buff *skb, struct hml_device *d)
{
	unsigned long pages, wired;
	u32 termini;

	hml_lock(&d->users_lock);
	termini = d->term_count;
	pages = d->pages;
	wired = d->wired;
	hml_unlock(&d->users_lock);
	return put_u64(skb, HAMLYN_A_KERNEL_BYTES, bytes_of(pages)) ?:
	       put_u64(skb, HAMLYN_A_WIRED_BYTES, bytes_of(wired)) ?:
	       put_u32(skb, HAMLYN_A_CONTEXTS, hml_context_count(d)) ?:
	       put_u32(skb, HAMLYN_A_AREAS, atomic_read(&d->area_count)) ?:
	       put_u32(skb, HAMLYN_A_SLOTS, atomic_read(&d->slot_count)) ?:
	       put_u32(skb, HAMLYN_A_NQS, atomic_read(&d->nq_count)) ?:
	       put_u32(skb, HAMLYN_A_TERMINI, termini);
}

static int put_used(struct sk_buff *skb, const struct hml_user *u)
{
	return put_u32(skb, HAMLYN_A_CONTEXTS, u->contexts) ?:
	       put_u32(skb, HAMLYN_A_SLOTS, u->used.slots) ?:
	       put_u32(skb, HAMLYN_A_TERMINI, u->used.termini) ?:
	       put_u64(skb, HAMLYN_A_KERNEL_BYTES, bytes_of(u->used.pages)) ?:
	       put_u64(skb, HAMLYN_A_WIRED_BYTES, bytes_of(u->used.wired));
}

/* Of one user: when others begin, and how much they have, is theirs. */
static int fill_own_use(struct sk_buff *skb, struct hml_device *d, kuid_t uid)
{
	struct hml_user u;

	if (!hml_user_next(d, uid, &u) || !uid_eq(u.uid, uid))
		u = (struct hml_user) {};
	return put_used(skb, &u);
}

static int fill_adversary(struct sk_buff *skb, struct hml_device *d)
{
	struct hml_adversary_attr adv;
	struct nlattr *nest;

	hml_adversary_get(d, &adv);
	nest = nla_nest_start(skb, HAMLYN_A_ADVERSARY);
	if (!nest ||
	    nla_put_u64_64bit(skb, HAMLYN_A_ADV_SEED, adv.seed,
			      HAMLYN_A_ADV_PAD) ||
	    put_u32(skb, HAMLYN_A_ADV_DROP, adv.drop) ||
	    put_u32(skb, HAMLYN_A_ADV_DUPLICATE, adv.duplicate) ||
	    put_u32(skb, HAMLYN_A_ADV_CORRUPT, adv.corrupt) ||
	    put_u32(skb, HAMLYN_A_ADV_REORDER, adv.reorder) ||
	    put_u32(skb, HAMLYN_A_ADV_DELAY_US, adv.delay_us) ||
	    put_u32(skb, HAMLYN_A_ADV_STALL, adv.stall))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* ---- fabrics, peers ---- */

static int put_address(struct sk_buff *skb, int attr, int port_attr,
		       const struct sockaddr_storage *address)
{
	const struct sockaddr_in6 *in6 = (const void *)address;
	const struct sockaddr_in *in = (const void *)address;

	if (address->ss_family == AF_INET)
		return nla_put(skb, attr, sizeof(in->sin_addr), &in->sin_addr) ?:
		       nla_put_u16(skb, port_attr, ntohs(in->sin_port));
	return nla_put(skb, attr, sizeof(in6->sin6_addr), &in6->sin6_addr) ?:
	       nla_put_u16(skb, port_attr, ntohs(in6->sin6_port));
}

static int put_tcp(struct sk_buff *skb, const struct hml_tcp_attr *tcp)
{
	return nla_put(skb, HAMLYN_A_FAB_ID, sizeof(tcp->id), tcp->id) ?:
	       put_address(skb, HAMLYN_A_FAB_ADDRESS, HAMLYN_A_FAB_PORT, &tcp->address) ?:
	       (tcp->netdev[0] ? nla_put_string(skb, HAMLYN_A_FAB_DEVICE, tcp->netdev) : 0) ?:
	       put_flag(skb, HAMLYN_A_FAB_CLEAR, tcp->clear) ?:
	       put_u32(skb, HAMLYN_A_FAB_DEAD_MS, tcp->dead_ms) ?:
	       put_u32(skb, HAMLYN_A_FAB_STALL_MS, tcp->stall_ms);
}

static int fill_fabric(struct sk_buff *skb, const struct hml_reader *r, struct hml_device *d)
{
	struct nlattr *nest = nla_nest_start(skb, HAMLYN_A_FABRIC);
	struct hml_tcp_attr tcp;
	bool is_tcp = hml_tcp_get(d, &tcp);

	if (!nest ||
	    put_u32(skb, HAMLYN_A_FAB_KIND,
		    is_tcp ? HAMLYN_NL_FABRIC_TCP : HAMLYN_NL_FABRIC_LOOP) ||
	    (is_tcp && r->admin && put_tcp(skb, &tcp)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int put_peer_u64(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, HAMLYN_A_PEER_PAD);
}

static int put_peer_users(struct sk_buff *skb, const struct hml_peer_users *users)
{
	return put_u32(skb, HAMLYN_A_PEER_USERS, users->kind) ?:
	       (users->count ? nla_put(skb, HAMLYN_A_PEER_USER_MAP,
				       users->count * sizeof(users->ranges[0]), users->ranges) : 0);
}

static int put_peer_state(struct sk_buff *skb, const struct hml_peer_info *p)
{
	BUILD_BUG_ON((int)HAMLYN_NL_PEER_STATE_UP != (int)HML_PEER_UP);
	BUILD_BUG_ON((int)HAMLYN_NL_PEER_REASON_DOWN + 1 != (int)HML_PEER_REASONS);

	return put_u32(skb, HAMLYN_A_PEER_HOST, p->attr.host) ?:
	       put_address(skb, HAMLYN_A_PEER_ADDRESS, HAMLYN_A_PEER_PORT, &p->attr.address) ?:
	       put_peer_users(skb, &p->attr.users) ?:
	       put_u32(skb, HAMLYN_A_PEER_STATE, p->state) ?:
	       (p->reason ? put_u32(skb, HAMLYN_A_PEER_REASON, p->reason) : 0);
}

static int put_peer_connection(struct sk_buff *skb, const struct hml_peer_info *p)
{
	return put_u32(skb, HAMLYN_A_PEER_EPOCH, p->epoch) ?:
	       (p->incarnation ?
		put_peer_u64(skb, HAMLYN_A_PEER_INCARNATION, p->incarnation) : 0) ?:
	       (p->rtt_us ? put_u32(skb, HAMLYN_A_PEER_RTT_US, p->rtt_us) : 0) ?:
	       put_u32(skb, HAMLYN_A_PEER_WATCHES, p->watches) ?:
	       put_u32(skb, HAMLYN_A_PEER_WATCHED, p->watched) ?:
	       put_u32(skb, HAMLYN_A_PEER_CALLS, p->calls) ?:
	       put_u32(skb, HAMLYN_A_PEER_CALLED, p->called);
}

static int put_peer_traffic(struct sk_buff *skb, const struct hml_peer_info *p)
{
	return put_peer_u64(skb, HAMLYN_A_PEER_SENT_BYTES, p->sent_bytes) ?:
	       put_peer_u64(skb, HAMLYN_A_PEER_RECEIVED_BYTES, p->received_bytes) ?:
	       put_peer_u64(skb, HAMLYN_A_PEER_SENT_PACKETS, p->sent_packets) ?:
	       put_peer_u64(skb, HAMLYN_A_PEER_RECEIVED_PACKETS, p->received_packets) ?:
	       put_peer_u64(skb, HAMLYN_A_PEER_STALLS, p->stalls) ?:
	       put_peer_u64(skb, HAMLYN_A_PEER_LOST, p->lost) ?:
	       put_peer_u64(skb, HAMLYN_A_PEER_REFUSED, p->refused);
}

/* A dump may go on in a program that has fewer rights than the one that began it. */
static int put_peer(struct sk_buff *skb, const struct hml_reader *r,
		    const struct hml_peer_info *p)
{
	int err = put_peer_state(skb, p);

	if (!err && r->admin)
		err = put_peer_connection(skb, p) ?: put_peer_traffic(skb, p);
	/* Of what was dropped a guesser could learn which key was right. */
	if (!err && r->host_admin)
		err = put_peer_u64(skb, HAMLYN_A_PEER_DROPPED, p->dropped);
	return err;
}

int hml_fill_peer(struct sk_buff *skb, const struct hml_reader *r,
		  const struct hml_subject *s)
{
	struct nlattr *nest;

	if (put_u32(skb, HAMLYN_A_NIC, s->d->index))
		return -EMSGSIZE;
	nest = nla_nest_start(skb, HAMLYN_A_PEER);
	if (!nest || put_peer(skb, r, s->object))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/* ---- all of a NIC ---- */

int hml_fill_nic(struct sk_buff *skb, const struct hml_reader *r,
		 const struct hml_subject *s)
{
	int err = fill_name(skb, s->d) ?:
		  fill_settings(skb, s->d) ?:
		  fill_fabric(skb, r, s->d) ?:
		  fill_limits(skb, s->d);

	if (err)
		return err;
	if (!r->admin)
		return fill_own_use(skb, s->d, r->uid);
	return fill_use(skb, s->d) ?: fill_adversary(skb, s->d);
}

static int fill_received(struct sk_buff *skb, const struct hml_stats *sum)
{
	return put_u64(skb, HAMLYN_A_NOTIFICATIONS, sum->notifications) ?:
	       put_u64(skb, HAMLYN_A_OVERRUNS, sum->overruns) ?:
	       put_rejects(skb, sum->rejects);
}

int hml_fill_stats(struct sk_buff *skb, const struct hml_reader *r,
		   const struct hml_subject *s)
{
	struct hml_stats sum = {};

	hml_stats_sum(s->d, &sum);
	return fill_name(skb, s->d) ?:
	       put_u64(skb, HAMLYN_A_MESSAGES, sum.messages) ?:
	       put_u64(skb, HAMLYN_A_PACKETS, sum.packets) ?:
	       put_u64(skb, HAMLYN_A_BYTES, sum.bytes) ?:
	       put_u64(skb, HAMLYN_A_FAILED, sum.failed) ?:
	       put_u64(skb, HAMLYN_A_KICKS, sum.kicks) ?:
	       put_u64(skb, HAMLYN_A_PAUSES, sum.pauses) ?:
	       (r->host_admin ? fill_received(skb, &sum) : 0);
}

/* Of a copy of the record: see hml_user_next(). */
int hml_fill_user(struct sk_buff *skb, const struct hml_reader *r,
		  const struct hml_subject *s)
{
	const struct hml_user *u = s->object;
	int err;

	err = put_u32(skb, HAMLYN_A_NIC, s->d->index) ?:
	      put_u32(skb, HAMLYN_A_UID,
		      from_kuid_munged(r->user_ns, u->uid)) ?:
	      put_used(skb, u);
	if (err || !u->limited)
		return err;
	return put_limits(skb, &u->limits, NULL);
}

/* Of a copy: see hml_name_next(). */
int hml_fill_name(struct sk_buff *skb, const struct hml_reader *r,
		  const struct hml_subject *s)
{
	const struct hml_name_info *n = s->object;

	BUILD_BUG_ON(HAMLYN_MAX_NAME != HAMLYN_CALLED_NAME_MAX);

	return put_u32(skb, HAMLYN_A_NIC, s->d->index) ?:
	       nla_put_string(skb, HAMLYN_A_CALLED_NAME, n->name) ?:
	       put_u32(skb, HAMLYN_A_UID, from_kuid_munged(r->user_ns, n->uid)) ?:
	       put_u32(skb, HAMLYN_A_PID, pid_nr_ns(n->pid, r->pid_ns)) ?:
	       put_u32(skb, HAMLYN_A_WAITING, n->waiting) ?:
	       put_u64(skb, HAMLYN_A_CALLS, n->calls);
}

/* ---- contexts and their objects; the context is locked ---- */

static int fill_place(struct sk_buff *skb, const struct hml_subject *s)
{
	lockdep_assert_held(&s->c->lock);
	return put_u32(skb, HAMLYN_A_NIC, s->d->index) ?:
	       put_u32(skb, HAMLYN_A_CONTEXT, s->c->id);
}

int hml_fill_context(struct sk_buff *skb, const struct hml_reader *r,
		     const struct hml_subject *s)
{
	struct hml_context *c = s->c;
	struct counts n = {};
	int err;

	err = fill_place(skb, s) ?:
	      put_u32(skb, HAMLYN_A_PID, pid_nr_ns(c->pid, r->pid_ns)) ?:
	      nla_put_string(skb, HAMLYN_A_COMM, c->comm) ?:
	      put_u32(skb, HAMLYN_A_UID, from_kuid_munged(r->user_ns, c->uid));
	/* What it has is known only to the task that has locked it. */
	if (err || s->busy)
		return err;
	count_objects(c, &n);
	return put_u32(skb, HAMLYN_A_AREAS, n.areas) ?:
	       put_u32(skb, HAMLYN_A_SLOTS, entries_of(&c->slots)) ?:
	       put_u32(skb, HAMLYN_A_NQS, n.nqs) ?:
	       put_u32(skb, HAMLYN_A_TERMINI, n.termini) ?:
	       put_u32(skb, HAMLYN_A_WATCHES, entries_of(&c->watches)) ?:
	       put_u64(skb, HAMLYN_A_KERNEL_BYTES, n.kernel) ?:
	       put_u64(skb, HAMLYN_A_WIRED_BYTES, n.wired);
}

int hml_fill_area(struct sk_buff *skb, const struct hml_reader *r,
		  const struct hml_subject *s)
{
	const struct hml_area *a = s->object;

	return fill_place(skb, s) ?:
	       put_u32(skb, HAMLYN_A_ID, a->id) ?:
	       put_u64(skb, HAMLYN_A_LENGTH, a->mem->length) ?:
	       put_flag(skb, HAMLYN_A_READONLY,
			a->flags & HAMLYN_AREA_READONLY) ?:
	       put_flag(skb, HAMLYN_A_ALLOCATED, a->allocated) ?:
	       put_u32(skb, HAMLYN_A_USERS, a->users);
}

static int fill_slot_parts(struct sk_buff *skb, const struct hml_slot_object *s)
{
	int err = put_u32(skb, HAMLYN_A_AREA, s->area->id) ?:
		  put_u64(skb, HAMLYN_A_BASE, s->core.data.base) ?:
		  put_u64(skb, HAMLYN_A_LENGTH, s->core.data.length);

	if (!err && s->meta_area)
		err = put_u32(skb, HAMLYN_A_META_AREA, s->meta_area->id) ?:
		      put_u32(skb, HAMLYN_A_META_COUNT, s->core.meta_count);
	if (!err && s->nq)
		err = put_u32(skb, HAMLYN_A_NQ, s->nq->id);
	return err;
}

int hml_fill_slot(struct sk_buff *skb, const struct hml_reader *r,
		  const struct hml_subject *s)
{
	const struct hml_slot_object *slot = s->object;

	return fill_place(skb, s) ?:
	       put_u32(skb, HAMLYN_A_SLOT, slot->core.number) ?:
	       put_u32(skb, HAMLYN_A_SLOT_MODE, slot->core.mode) ?:
	       put_flag(skb, HAMLYN_A_TICKET_ONLY,
			slot->core.flags & HAMLYN_SLOT_TICKET_ONLY) ?:
	       fill_slot_parts(skb, slot) ?:
	       put_u64(skb, HAMLYN_A_OVERRUNS,
		       READ_ONCE(slot->core.overruns)) ?:
	       put_rejects(skb, slot->core.rejects);
}

int hml_fill_nq(struct sk_buff *skb, const struct hml_reader *r,
		const struct hml_subject *s)
{
	const struct hml_nqueue *nq = s->object;
	const struct hamlyn_nq_control *control = nq->control->va;
	const struct hamlyn_nq_ring *ring = nq->ring->va;
	u32 entries = nq->core.mask + 1;
	/* The application may have written anything. */
	u32 used = min(READ_ONCE(nq->core.cursor) -
		       READ_ONCE(control->consumer), entries);

	return fill_place(skb, s) ?:
	       put_u32(skb, HAMLYN_A_ID, nq->id) ?:
	       put_u32(skb, HAMLYN_A_ENTRIES, entries) ?:
	       put_u32(skb, HAMLYN_A_USED, used) ?:
	       put_u64(skb, HAMLYN_A_LOST, READ_ONCE(ring->lost)) ?:
	       put_u32(skb, HAMLYN_A_SLOTS, nq->users) ?:
	       put_flag(skb, HAMLYN_A_ARMED, READ_ONCE(nq->core.armed));
}

static int fill_term_stats(struct sk_buff *skb, const struct hml_stats *s)
{
	return put_u64(skb, HAMLYN_A_MESSAGES, READ_ONCE(s->messages)) ?:
	       put_u64(skb, HAMLYN_A_PACKETS, READ_ONCE(s->packets)) ?:
	       put_u64(skb, HAMLYN_A_BYTES, READ_ONCE(s->bytes)) ?:
	       put_u64(skb, HAMLYN_A_FAILED, READ_ONCE(s->failed)) ?:
	       put_u64(skb, HAMLYN_A_KICKS, READ_ONCE(s->kicks));
}

/* A user that guesses keys would learn from it which guess was wrong. */
static int fill_pause(struct sk_buff *skb, const struct hml_reader *r,
		      const struct hml_term *t)
{
	u64 until = READ_ONCE(t->core.sender.guard.until);
	u64 now = ktime_get_ns();

	if (!r->admin || until <= now)
		return 0;
	return put_u32(skb, HAMLYN_A_PAUSED_MS,
		       DIV_ROUND_UP_ULL(until - now, NSEC_PER_MSEC));
}

int hml_fill_term(struct sk_buff *skb, const struct hml_reader *r,
		  const struct hml_subject *s)
{
	const struct hml_term *t = s->object;
	u32 entries = t->core.mask + 1;
	/* The application may have written anything. */
	u32 pending = min(READ_ONCE(t->core.wq->producer) -
			  READ_ONCE(t->core.status->completed), entries);

	return fill_place(skb, s) ?:
	       put_u32(skb, HAMLYN_A_ID, t->id) ?:
	       put_u32(skb, HAMLYN_A_ENTRIES, entries) ?:
	       put_u32(skb, HAMLYN_A_ENTRY_SIZE, t->core.entry_size) ?:
	       put_u32(skb, HAMLYN_A_PRIORITY, READ_ONCE(t->turn.priority)) ?:
	       put_u32(skb, HAMLYN_A_WEIGHT, READ_ONCE(t->turn.weight)) ?:
	       put_u32(skb, HAMLYN_A_PENDING, pending) ?:
	       put_flag(skb, HAMLYN_A_ACTIVE, READ_ONCE(t->turn.next)) ?:
	       fill_pause(skb, r, t) ?:
	       put_u32(skb, HAMLYN_A_TAGS, t->bound) ?:
	       fill_term_stats(skb, &t->stats);
}

/* ---- audit ---- */

int hml_fill_audit(struct sk_buff *skb, const struct hml_reader *r,
		   const struct hml_subject *s)
{
	const struct hamlyn_audit_entry *e = s->object;
	int err = put_u32(skb, HAMLYN_A_NIC, s->d->index) ?:
		  put_u64(skb, HAMLYN_A_SEQUENCE, e->sequence) ?:
		  put_u64(skb, HAMLYN_A_TIME_NS, e->time_ns) ?:
		  put_u32(skb, HAMLYN_A_REASON, e->reason) ?:
		  put_u32(skb, HAMLYN_A_SOURCE, e->source) ?:
		  put_u32(skb, HAMLYN_A_SLOT, e->slot) ?:
		  put_u64(skb, HAMLYN_A_OFFSET, e->offset) ?:
		  put_u64(skb, HAMLYN_A_LENGTH, e->length) ?:
		  put_u32(skb, HAMLYN_A_PID, hml_audit_pid(e, r->pid_ns)) ?:
		  put_u32(skb, HAMLYN_A_UID,
			  from_kuid_munged(r->user_ns, KUIDT_INIT(e->uid)));

	if (err || !s->c)
		return err;
	return put_u32(skb, HAMLYN_A_CONTEXT, s->c->id);
}
