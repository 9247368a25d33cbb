// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink dumps. One goes on where the last message did not fit any more, by
 * index and ids; what appears or goes meanwhile is told as NLM_F_DUMP_INTR.
 */
#include <linux/ktime.h>
#include <linux/sched/signal.h>
#include <net/sock.h>

#include "hml.h"
#include "locked.h"
#include "netlink/family.h"
#include "object/name.h"

#define AUDIT_BATCH	8
#define PATIENCE_US	(100 * USEC_PER_MSEC)	/* of a dump, for all contexts that are in use */

/**
 * struct position - where a dump goes on; in netlink_callback.ctx
 * @started: when it began, ns; 0: not yet
 * @object: id of the object, uid, sequence of the audit record, or number of the name
 * @context: id of the context
 * @nic: index of the NIC
 * @waited_us: for contexts whose owners are at them
 * @nic_found: there was a NIC to list, if it is there no more
 * @context_found: and a context
 * @peer_found: and a peer
 */
struct position {
	u64 started;
	u64 object;
	unsigned long context;
	u32 nic;
	u32 waited_us;
	bool nic_found;
	bool context_found;
	bool peer_found;
};

/**
 * struct dump - one call of a dump
 * @skb: where to
 * @cb: the dump
 * @at: where it is
 * @kind: what it lists
 * @attrs: attributes of the request
 * @net: whose NICs
 * @reader: for whom
 */
struct dump {
	struct sk_buff *skb;
	struct netlink_callback *cb;
	struct position *at;
	const struct kind *kind;
	struct nlattr **attrs;
	const struct net *net;
	struct hml_reader reader;
};

/**
 * struct kind - what dumps can list
 * @command: HAMLYN_NL_CMD_*
 * @allowed: attributes of a request, one bit each
 * @fill: writes a message about one
 * @nic: lists those of a NIC
 * @context: lists those of a context, which is locked
 * @busy: the same of one that somebody else has locked, or NULL: nothing
 * @table: where the context has them
 */
struct kind {
	u8 command;
	u64 allowed;
	hml_fill_fn fill;
	int (*nic)(struct dump *dump, struct hml_device *d);
	int (*context)(struct dump *dump, struct hml_context *c);
	int (*busy)(struct dump *dump, struct hml_context *c);
	size_t table;
};

static int message_of(struct dump *dump, const struct hml_subject *subject)
{
	struct sk_buff *skb = dump->skb;
	void *header = genlmsg_put(skb, NETLINK_CB(dump->cb->skb).portid,
				   dump->cb->nlh->nlmsg_seq,
				   &hml_netlink_family, NLM_F_MULTI,
				   dump->kind->command);

	if (!header)
		return -EMSGSIZE;
	genl_dump_check_consistent(dump->cb, header);
	if (dump->kind->fill(skb, &dump->reader, subject)) {
		genlmsg_cancel(skb, header);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return 0;
}

static int message(struct dump *dump, struct hml_device *d,
		   struct hml_context *c, void *object)
{
	struct hml_subject subject = { .d = d, .c = c, .object = object };

	return message_of(dump, &subject);
}

/* ---- of a NIC ---- */

static int list_nic(struct dump *dump, struct hml_device *d)
{
	return message(dump, d, NULL, NULL);
}

static bool user_visible(const struct dump *dump, const struct hml_user *u)
{
	/* Some are kept for what they have done only. */
	if (!u->ref && !u->limited)
		return false;
	return dump->reader.admin || uid_eq(u->uid, dump->reader.uid);
}

static int list_users(struct dump *dump, struct hml_device *d)
{
	struct hml_user u;
	int err;

	while (dump->at->object <= U32_MAX &&
	       hml_user_next(d, KUIDT_INIT(dump->at->object), &u)) {
		dump->at->object = __kuid_val(u.uid);
		err = user_visible(dump, &u) ? message(dump, d, NULL, &u) : 0;
		if (err)
			return err;
		dump->at->object++;
		if (fatal_signal_pending(current))
			return -EINTR;
		cond_resched();
	}
	return 0;
}

static bool name_visible(const struct dump *dump, const struct hml_name_info *n)
{
	return dump->reader.admin || uid_eq(n->uid, dump->reader.uid) ||
	       uid_eq(n->answers, dump->reader.uid);
}

static int list_names(struct dump *dump, struct hml_device *d)
{
	struct hml_name_info n;
	int err = 0;

	while (!err && hml_name_next(d, &dump->at->object, &n)) {
		if (name_visible(dump, &n))
			err = message(dump, d, NULL, &n);
		put_pid(n.pid);
		if (err)
			return err;
		dump->at->object++;
		if (fatal_signal_pending(current))
			err = -EINTR;
		cond_resched();
	}
	return err;
}

/* Whoever is rejected as fast as we read must not keep us here. */
static int list_audit(struct dump *dump, struct hml_device *d,
		      struct hml_context *c, struct hml_audit *audit)
{
	struct hamlyn_audit_entry entries[AUDIT_BATCH];
	u64 next = dump->at->object;
	u32 n, i;

	do {
		n = hml_audit_read(audit, &next, entries, AUDIT_BATCH);
		for (i = 0; i < n; i++) {
			if (entries[i].time_ns > dump->at->started)
				return 0;
			dump->at->object = entries[i].sequence;
			if (message(dump, d, c, &entries[i]))
				return -EMSGSIZE;
		}
	} while (n);
	return 0;
}

static bool context_visible(const struct dump *dump,
			    const struct hml_context *c)
{
	return dump->reader.admin || uid_eq(c->uid, dump->reader.uid) ||
	       uid_eq(c->user->uid, dump->reader.uid);
}

/*
 * Its owner may keep the lock for as long as it likes, in as many contexts as it has, and is not to
 * keep anybody from seeing those of the others.
 */
static bool lock_patiently(struct dump *dump, struct hml_context *c)
{
	u64 begin;

	while (!mutex_trylock(&c->lock)) {
		if (dump->at->waited_us >= PATIENCE_US ||
		    fatal_signal_pending(current))
			return false;
		begin = ktime_get_ns();
		usleep_range(50, 200);
		dump->at->waited_us += 1 + (u32)((ktime_get_ns() - begin) /
						 NSEC_PER_USEC);
	}
	return true;
}

/* Something is left out: as what changes meanwhile that is NLM_F_DUMP_INTR. */
static void mark_incomplete(struct dump *dump)
{
	dump->cb->prev_seq = dump->cb->seq == 1 ? 2 : 1;
}

static int list_busy(struct dump *dump, struct hml_context *c)
{
	if (dump->attrs[HAMLYN_A_CONTEXT]) {
		NL_SET_ERR_MSG(dump->cb->extack,
			       "the context is in a call of its owner's: try again");
		return -EBUSY;
	}
	mark_incomplete(dump);
	return dump->kind->busy ? dump->kind->busy(dump, c) : 0;
}

/* Goes on at the place where it was, if that is still there. */
static int list_context(struct dump *dump, struct hml_context *c)
{
	int err = 0;

	if (dump->at->context != c->id) {
		dump->at->context = c->id;
		dump->at->object = 0;
	}
	if (lock_patiently(dump, c)) {
		if (!c->closing)
			err = dump->kind->context(dump, c);
		mutex_unlock(&c->lock);
	} else {
		err = list_busy(dump, c);
	}
	if (!err) {
		dump->at->context++;
		dump->at->object = 0;
	}
	return err;
}

/* The first from @first to @last, with a reference, or NULL. */
static struct hml_context *next_context(const struct dump *dump,
					struct hml_device *d,
					unsigned long first, unsigned long last)
{
	struct hml_context *c;

	while (first <= min_t(unsigned long, last, INT_MAX)) {
		c = hml_context_from(d, first);
		if (!c)
			return NULL;
		if (c->id <= last && context_visible(dump, c))
			return c;
		first = (unsigned long)c->id + 1;
		hml_context_put(c);
		if (fatal_signal_pending(current))
			return NULL;
		cond_resched();
	}
	return NULL;
}

/*
 * One at a time: the process that has the context may keep its lock for as long as it likes,
 * and must not keep the others from opening and closing theirs.
 */
static int list_contexts(struct dump *dump, struct hml_device *d)
{
	const struct nlattr *named = dump->attrs[HAMLYN_A_CONTEXT];
	unsigned long first = dump->at->context;
	unsigned long last = ULONG_MAX;
	struct hml_context *c;
	int err = 0;

	if (named) {
		last = nla_get_u32(named);
		first = max(first, last);
	}
	while (!err && (c = next_context(dump, d, first, last))) {
		dump->at->context_found = true;
		first = (unsigned long)c->id + 1;
		err = list_context(dump, c);
		hml_context_put(c);
	}
	if (!named || dump->at->context_found)
		return err;
	NL_SET_ERR_MSG(dump->cb->extack,
		       "the NIC has no such context, or it is another user's");
	return -ENOENT;
}

/* To administrators the NIC tells all, also what came to no slot. */
static int list_nic_audit(struct dump *dump, struct hml_device *d)
{
	if (dump->reader.admin && !dump->attrs[HAMLYN_A_CONTEXT])
		return list_audit(dump, d, NULL, d->audit);
	return list_contexts(dump, d);
}

/* ---- peers of a NIC ---- */

/* Which one it is about, or whether the request says nothing of that. */
static int named_peer(struct dump *dump, bool *named, u32 *host)
{
	const struct nlattr *nest = dump->attrs[HAMLYN_A_PEER];

	*named = nest;
	return nest ? hml_netlink_peer_host(nest, host, dump->cb->extack) : 0;
}

/* Its administrator may be at it. */
static int next_peer(struct dump *dump, struct hml_device *d, u32 *host,
		     struct hml_peer_info *info)
{
	int err;

	if (mutex_lock_killable(&d->admin))
		return -EINTR;
	if (READ_ONCE(d->listed) && net_eq(read_pnet(&d->net), dump->net))
		err = hml_tcp_next_peer(d, host, info);
	else
		err = -ENOENT;
	mutex_unlock(&d->admin);
	return err;
}

static int list_peers(struct dump *dump, struct hml_device *d)
{
	struct hml_peer_info info;
	bool named;
	u32 host = 0, only;
	int err = named_peer(dump, &named, &only);

	if (!err && named)
		dump->at->object = max_t(u64, dump->at->object, only);
	while (!err && dump->at->object < HAMLYN_NONE) {
		host = dump->at->object;
		err = next_peer(dump, d, &host, &info);
		if (err || (named && host != only))
			break;
		dump->at->peer_found = true;
		dump->at->object = host;
		err = message(dump, d, NULL, &info);
		if (!err)
			dump->at->object++;
	}
	return err == -ENOENT ? 0 : err;
}

/* ---- of a context ---- */

static int list_itself(struct dump *dump, struct hml_context *c)
{
	return message(dump, c->device, c, NULL);
}

static int list_who(struct dump *dump, struct hml_context *c)
{
	struct hml_subject subject = { .d = c->device, .c = c, .busy = true };

	return message_of(dump, &subject);
}

static int list_table(struct dump *dump, struct hml_context *c)
{
	struct xarray *table = (void *)c + dump->kind->table;
	unsigned long id;
	void *object;

	xa_for_each_start(table, id, object, dump->at->object) {
		dump->at->object = id;
		if (message(dump, c->device, c, object))
			return -EMSGSIZE;
	}
	return 0;
}

static int list_context_audit(struct dump *dump, struct hml_context *c)
{
	return list_audit(dump, c->device, c, c->audit);
}

/* ---- of all ---- */

/* The NIC to go on with, with a reference, or NULL. */
static struct hml_device *next_nic(const struct dump *dump)
{
	u32 from = dump->at->nic;
	struct hml_device *d;

	while ((d = hml_nic_get(dump->net, from))) {
		if (hml_netlink_names(dump->attrs, d))
			return d;
		from = d->index + 1;
		put_device(&d->dev);
	}
	return NULL;
}

static int list_nics(struct dump *dump)
{
	struct position *at = dump->at;
	struct hml_device *d;
	int err;

	while ((d = next_nic(dump))) {
		at->nic_found = true;
		if (at->nic != d->index) {
			at->nic = d->index;
			at->context = 0;
			at->object = 0;
		}
		err = dump->kind->nic(dump, d);
		put_device(&d->dev);
		if (err)
			return err;
		at->nic++;
		at->context = 0;
		at->object = 0;
	}
	if (!at->nic_found &&
	    (dump->attrs[HAMLYN_A_NIC] || dump->attrs[HAMLYN_A_NAME]))
		return hml_netlink_no_nic(dump->attrs, dump->cb->extack);
	if (dump->attrs[HAMLYN_A_PEER] && !at->peer_found) {
		NL_SET_ERR_MSG_ATTR(dump->cb->extack, dump->attrs[HAMLYN_A_PEER],
				    "no such peer; peer-get lists what there is");
		return -ENOENT;
	}
	return 0;
}

static int begin(struct dump *dump)
{
	struct netlink_ext_ack *extack = dump->cb->extack;
	struct nlattr **attrs = dump->attrs;
	int err;

	err = hml_netlink_check(attrs, dump->kind->allowed, extack);
	if (err)
		return err;
	if (attrs[HAMLYN_A_CONTEXT] && !attrs[HAMLYN_A_NIC] &&
	    !attrs[HAMLYN_A_NAME]) {
		NL_SET_ERR_MSG(extack,
			       "context is an id of one NIC: nic or name is needed, too");
		return -EINVAL;
	}
	dump->at->started = ktime_get_ns();
	return 0;
}

static int run(const struct kind *kind, struct sk_buff *skb,
	       struct netlink_callback *cb)
{
	struct dump dump = {
		.skb = skb,
		.cb = cb,
		.at = (struct position *)cb->ctx,
		.kind = kind,
		.attrs = hml_compat_dump_attrs(cb),
		.net = sock_net(cb->skb->sk),
	};
	int err = 0;

	BUILD_BUG_ON(sizeof(struct position) > sizeof(cb->ctx));

	hml_reader_init(&dump.reader, cb->skb, dump.net);
	if (!dump.at->started)
		err = begin(&dump);
	if (err)
		return err;
	cb->seq = atomic_read(&hml_generation);
	err = list_nics(&dump);
	/* What changed meanwhile is told by the message after these. */
	cb->seq = atomic_read(&hml_generation);
	if (err && (err != -EMSGSIZE || !skb->len))
		return err;
	return skb->len;
}

#define OF_NIC(cmd, fill_fn, list)					\
	{								\
		.command = HAMLYN_NL_CMD_##cmd,				\
		.allowed = HML_ATTRS_NIC,				\
		.fill = fill_fn,					\
		.nic = list,						\
	}

#define OF_CONTEXT(cmd, fill_fn, member)				\
	{								\
		.command = HAMLYN_NL_CMD_##cmd,				\
		.allowed = HML_ATTRS_NIC | HML_ATTR(CONTEXT),		\
		.fill = fill_fn,					\
		.nic = list_contexts,					\
		.context = list_table,					\
		.table = offsetof(struct hml_context, member),		\
	}

static const struct kind nics = OF_NIC(NIC_GET, hml_fill_nic, list_nic);
static const struct kind stats = OF_NIC(STATS_GET, hml_fill_stats, list_nic);
static const struct kind users = OF_NIC(USER_GET, hml_fill_user, list_users);
static const struct kind names = OF_NIC(NAME_GET, hml_fill_name, list_names);
static const struct kind areas = OF_CONTEXT(AREA_GET, hml_fill_area, areas);
static const struct kind slots = OF_CONTEXT(SLOT_GET, hml_fill_slot, slots);
static const struct kind nqs = OF_CONTEXT(NQ_GET, hml_fill_nq, nqs);
static const struct kind termini =
	OF_CONTEXT(TERMINUS_GET, hml_fill_term, termini);
static const struct kind peers = {
	.command = HAMLYN_NL_CMD_PEER_GET,
	.allowed = HML_ATTRS_NIC | HML_ATTR(PEER),
	.fill = hml_fill_peer,
	.nic = list_peers,
};

static const struct kind contexts = {
	.command = HAMLYN_NL_CMD_CONTEXT_GET,
	.allowed = HML_ATTRS_NIC,
	.fill = hml_fill_context,
	.nic = list_contexts,
	.context = list_itself,
	.busy = list_who,
};

static const struct kind audit = {
	.command = HAMLYN_NL_CMD_AUDIT_GET,
	.allowed = HML_ATTRS_NIC | HML_ATTR(CONTEXT),
	.fill = hml_fill_audit,
	.nic = list_nic_audit,
	.context = list_context_audit,
};

int hamlyn_nl_nic_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return run(&nics, skb, cb);
}

int hamlyn_nl_stats_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return run(&stats, skb, cb);
}

int hamlyn_nl_user_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return run(&users, skb, cb);
}

int hamlyn_nl_context_get_dumpit(struct sk_buff *skb,
				 struct netlink_callback *cb)
{
	return run(&contexts, skb, cb);
}

int hamlyn_nl_area_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return run(&areas, skb, cb);
}

int hamlyn_nl_slot_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return run(&slots, skb, cb);
}

int hamlyn_nl_nq_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return run(&nqs, skb, cb);
}

int hamlyn_nl_terminus_get_dumpit(struct sk_buff *skb,
				  struct netlink_callback *cb)
{
	return run(&termini, skb, cb);
}

int hamlyn_nl_audit_get_dumpit(struct sk_buff *skb,
			       struct netlink_callback *cb)
{
	return run(&audit, skb, cb);
}

int hamlyn_nl_peer_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return run(&peers, skb, cb);
}

int hamlyn_nl_name_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb)
{
	return run(&names, skb, cb);
}
