// SPDX-License-Identifier: GPL-2.0-only
/*
 * Netlink requests that make, change and remove NICs, and their limits. They
 * hold the NIC's admin lock all along, but for telling of a NIC that was set down.
 */
#include <linux/capability.h>
#include <linux/user_namespace.h>
#include <net/sock.h>

#include "hml.h"
#include "locked.h"
#include "netlink/family.h"

#define ATTRS_SET	(HML_ATTR(STATE) | HML_ATTR(WATCHDOG_MS) | \
			 HML_ATTR(IDLE_US) | HML_ATTR(KICK_WINDOW_US) | \
			 HML_ATTR(GUESSES) | HML_ATTR(ADVERSARY))
#define ATTRS_NEW	(ATTRS_SET | HML_ATTR(NIC) | HML_ATTR(HOST) | \
			 HML_ATTR(NETNS_FD) | HML_ATTR(ENGINE_MODE) | \
			 HML_ATTR(ENGINES) | HML_ATTR(PACKET_SIZE) | \
			 HML_ATTR(MAX_SLOTS) | HML_ATTR(LIMITS) | \
			 HML_ATTR(FABRIC))

/* ---- limits ---- */

/* ULONG_MAX pages are no limit. */
static unsigned long pages_of(u64 bytes)
{
	return bytes == U64_MAX ? ULONG_MAX :
				  min_t(u64, bytes >> PAGE_SHIFT, ULONG_MAX);
}

static void take_pages(const struct nlattr *attr, unsigned long *pages)
{
	if (attr)
		*pages = pages_of(nla_get_u64(attr));
}

static void take_count(const struct nlattr *attr, unsigned long *count)
{
	u32 value;

	if (!attr)
		return;
	value = nla_get_u32(attr);
	*count = value == U32_MAX ? ULONG_MAX : value;
}

static int parse_limits(struct nlattr **tb, const struct nlattr *nest,
			struct netlink_ext_ack *extack)
{
	return nla_parse_nested(tb, ARRAY_SIZE(hamlyn_limits_nl_policy) - 1,
				nest, hamlyn_limits_nl_policy, extack);
}

static void take_limits(struct nlattr *const *tb, struct hml_limits *l)
{
	take_pages(tb[HAMLYN_A_LIMITS_USER_KERNEL_BYTES], &l->pages);
	take_pages(tb[HAMLYN_A_LIMITS_USER_WIRED_BYTES], &l->wired);
	take_count(tb[HAMLYN_A_LIMITS_USER_SLOTS], &l->slots);
	take_count(tb[HAMLYN_A_LIMITS_USER_TERMINI], &l->termini);
}

static void set_nic_limits(struct hml_device *d, struct nlattr *const *tb)
{
	hml_lock(&d->users_lock);
	take_pages(tb[HAMLYN_A_LIMITS_KERNEL_BYTES], &d->max_pages);
	take_limits(tb, hml_limits_of_all(d));
	hml_unlock(&d->users_lock);
}

static int set_user_limits(struct genl_info *info, struct hml_device *d,
			   kuid_t uid, struct nlattr **tb)
{
	struct hml_limits l;

	if (!info->attrs[HAMLYN_A_LIMITS])
		return hml_user_set_limits(d, uid, NULL);
	if (tb[HAMLYN_A_LIMITS_KERNEL_BYTES]) {
		NL_SET_ERR_MSG_ATTR(info->extack,
				    tb[HAMLYN_A_LIMITS_KERNEL_BYTES],
				    "kernel-bytes is for all users, user-kernel-bytes for one");
		return -EINVAL;
	}
	l = hml_user_limits_of(d, uid);
	take_limits(tb, &l);
	return hml_user_set_limits(d, uid, &l);
}

static int set_limits(struct sk_buff *skb, struct genl_info *info,
		      struct hml_device *d)
{
	struct nlattr *tb[ARRAY_SIZE(hamlyn_limits_nl_policy)] = {};
	struct nlattr *nest = info->attrs[HAMLYN_A_LIMITS];
	struct nlattr *user = info->attrs[HAMLYN_A_UID];
	kuid_t uid;
	int err;

	if (!user && !nest) {
		NL_SET_ERR_MSG(info->extack, "limits or uid is needed");
		return -EINVAL;
	}
	if (nest) {
		err = parse_limits(tb, nest, info->extack);
		if (err)
			return err;
	}
	if (!user) {
		set_nic_limits(d, tb);
		return 0;
	}
	uid = make_kuid(sk_user_ns(NETLINK_CB(skb).sk), nla_get_u32(user));
	if (!uid_valid(uid)) {
		NL_SET_ERR_MSG_ATTR(info->extack, user,
				    "your user namespace has no such user id");
		return -EINVAL;
	}
	return set_user_limits(info, d, uid, tb);
}

int hamlyn_nl_limit_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	return hml_netlink_with(skb, info, HML_ATTR(UID) | HML_ATTR(LIMITS), set_limits);
}

/* ---- changing a NIC ---- */

static int set_adversary(struct hml_device *d, const struct nlattr *nest,
			 struct netlink_ext_ack *extack)
{
	struct nlattr *tb[ARRAY_SIZE(hamlyn_adversary_nl_policy)];
	struct hml_adversary_attr adv;
	int err;

	err = nla_parse_nested(tb, ARRAY_SIZE(tb) - 1, nest,
			       hamlyn_adversary_nl_policy, extack);
	if (err)
		return err;
	hml_adversary_get(d, &adv);
	if (tb[HAMLYN_A_ADV_SEED])
		adv.seed = nla_get_u64(tb[HAMLYN_A_ADV_SEED]);
	hml_netlink_u32(tb[HAMLYN_A_ADV_DROP], &adv.drop);
	hml_netlink_u32(tb[HAMLYN_A_ADV_DUPLICATE], &adv.duplicate);
	hml_netlink_u32(tb[HAMLYN_A_ADV_CORRUPT], &adv.corrupt);
	hml_netlink_u32(tb[HAMLYN_A_ADV_REORDER], &adv.reorder);
	hml_netlink_u32(tb[HAMLYN_A_ADV_DELAY_US], &adv.delay_us);
	hml_netlink_u32(tb[HAMLYN_A_ADV_STALL], &adv.stall);
	err = hml_adversary_set(d, &adv);
	if (err == -ENOMEM)
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "no memory for what the adversary keeps back");
	if (err == -EOPNOTSUPP)
		NL_SET_ERR_MSG_ATTR(extack, nest,
				    "this kernel has no adversary (CONFIG_HAMLYN_ADVERSARY)");
	return err;
}

/* If it was set down the NIC is left in user_ptr[0] for hamlyn_nl_nic_set_doit(). */
static int set_state(struct hml_device *d, struct genl_info *info)
{
	struct hamlyn_nic_set set = { .size = sizeof(set) };
	struct nlattr **attrs = info->attrs;
	int err = 0;

	if (attrs[HAMLYN_A_STATE]) {
		set.flags |= HAMLYN_NIC_SET_STATE;
		set.state = nla_get_u32(attrs[HAMLYN_A_STATE]);
	}
	if (attrs[HAMLYN_A_WATCHDOG_MS]) {
		set.flags |= HAMLYN_NIC_SET_WATCHDOG;
		set.watchdog_ms = nla_get_u32(attrs[HAMLYN_A_WATCHDOG_MS]);
	}
	if (set.flags)
		err = hml_nic_set(d, &set);
	if (err <= 0)
		return err;
	info->user_ptr[0] = d;
	return 0;
}

static void set_u32(const struct nlattr *attr, u32 *value)
{
	if (attr)
		WRITE_ONCE(*value, nla_get_u32(attr));
}

/* What can fail comes first. */
static int change_nic(struct genl_info *info, struct hml_device *d)
{
	struct nlattr **attrs = info->attrs;
	int err;

	if (attrs[HAMLYN_A_ADVERSARY]) {
		err = set_adversary(d, attrs[HAMLYN_A_ADVERSARY], info->extack);
		if (err)
			return err;
	}
	set_u32(attrs[HAMLYN_A_IDLE_US], &d->idle_us);
	set_u32(attrs[HAMLYN_A_KICK_WINDOW_US], &d->kick_window_us);
	set_u32(attrs[HAMLYN_A_GUESSES], &d->nic.guesses);
	return set_state(d, info);
}

/* The namespace that netns-fd names, with a reference. */
static struct net *get_target(struct sk_buff *skb, struct genl_info *info)
{
	struct nlattr *fd = info->attrs[HAMLYN_A_NETNS_FD];
	struct net *net = get_net_ns_by_fd(nla_get_u32(fd));

	if (IS_ERR(net)) {
		NL_SET_ERR_MSG_ATTR(info->extack, fd,
				    "netns-fd is no descriptor of a network namespace");
		return net;
	}
	if (!netlink_ns_capable(skb, net->user_ns, CAP_NET_ADMIN)) {
		NL_SET_ERR_MSG_ATTR(info->extack, fd,
				    "this needs CAP_NET_ADMIN in that network namespace, too");
		put_net(net);
		return ERR_PTR(-EPERM);
	}
	return net;
}

static int refuse_busy(struct genl_info *info, const struct hml_device *d)
{
	HML_COMPAT_REFUSE(info->extack, NULL, "processes have the NIC open",
			  "%s is open: %u descriptors", d->name,
			  READ_ONCE(d->opens));
	return -EBUSY;
}

static int move_nic(struct genl_info *info, struct hml_device *d,
		    struct net *net)
{
	/* Of the request's socket, which keeps it. */
	struct net *from = genl_info_net(info);
	bool busy;

	if (net_eq(from, net))
		return 0;
	hml_lock(&d->contexts_lock);
	busy = *hml_opens(d);
	if (!busy)
		write_pnet(&d->net, net);
	hml_unlock(&d->contexts_lock);
	if (busy)
		return refuse_busy(info, d);
	hml_nic_show_in(d, net);
	hml_changed();
	hml_event_nic_in(d, from, HAMLYN_NL_EVENT_NIC_DEL);
	hml_event_nic(d, HAMLYN_NL_EVENT_NIC_NEW);
	return 0;
}

static int to_namespace(struct sk_buff *skb, struct genl_info *info,
			struct hml_device *d)
{
	struct hml_tcp_attr tcp;
	struct net *net;
	int err;

	err = hml_netlink_check(info->attrs, HML_ATTRS_NIC | HML_ATTR(NETNS_FD),
				NULL);
	if (err) {
		NL_SET_ERR_MSG_ATTR(info->extack,
				    info->attrs[HAMLYN_A_NETNS_FD],
				    "netns-fd comes alone: move the NIC, then change it there");
		return err;
	}
	/* Its connections, its address and its netdev are of where it was made. */
	if (hml_tcp_get(d, &tcp)) {
		HML_COMPAT_REFUSE(info->extack, info->attrs[HAMLYN_A_NETNS_FD],
				  "a NIC on a fabric between hosts stays where it was made",
				  "%s is on a fabric between hosts: it stays where it was made",
				  d->name);
		return -EOPNOTSUPP;
	}
	net = get_target(skb, info);
	if (IS_ERR(net))
		return PTR_ERR(net);
	err = move_nic(info, d, net);
	put_net(net);
	return err;
}

static int set_nic(struct sk_buff *skb, struct genl_info *info,
		   struct hml_device *d)
{
	struct nlattr **attrs = info->attrs;

	if (attrs[HAMLYN_A_NETNS_FD])
		return to_namespace(skb, info, d);
	/*
	 * Polling costs processors, what is kept back memory; and the guesses
	 * that are free here decide about pauses of senders on other NICs.
	 */
	if ((attrs[HAMLYN_A_IDLE_US] || attrs[HAMLYN_A_KICK_WINDOW_US] ||
	     attrs[HAMLYN_A_GUESSES] ||
	     attrs[HAMLYN_A_ADVERSARY]) &&
	    !netlink_capable(skb, CAP_NET_ADMIN)) {
		NL_SET_ERR_MSG(info->extack,
			       "idle-us, kick-window-us, guesses, adversary: host's admins only");
		return -EPERM;
	}
	return change_nic(info, d);
}

int hamlyn_nl_nic_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	int err;

	err = hml_netlink_with(skb, info, ATTRS_SET | HML_ATTR(NETNS_FD), set_nic);
	/* Whatever else could not be set. */
	if (info->user_ptr[0])
		hml_nic_tell_down(info->user_ptr[0]);
	return err;
}

/* Not after other administrators: the watchdog is waiting. */
int hamlyn_nl_nic_feed_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct hamlyn_nic_set set = {
		.size = sizeof(set),
		.flags = HAMLYN_NIC_FEED,
	};
	struct hml_device *d = hml_netlink_get(info, 0);
	int err;

	if (IS_ERR(d))
		return PTR_ERR(d);
	err = hml_nic_set(d, &set);
	put_device(&d->dev);
	return err;
}

/* ---- making and removing NICs ---- */

static void take_attr(struct nlattr **attrs, struct hml_nic_attr *attr)
{
	hml_nic_default_attr(attr);
	hml_netlink_u32(attrs[HAMLYN_A_NIC], &attr->index);
	hml_netlink_u32(attrs[HAMLYN_A_HOST], &attr->host);
	hml_netlink_u32(attrs[HAMLYN_A_ENGINE_MODE], &attr->engine_mode);
	hml_netlink_u32(attrs[HAMLYN_A_ENGINES], &attr->engines);
	hml_netlink_u32(attrs[HAMLYN_A_PACKET_SIZE], &attr->packet_size);
	hml_netlink_u32(attrs[HAMLYN_A_MAX_SLOTS], &attr->max_slots);
}

/* What is in the way of a new NIC, if @d is. */
static int check_other(struct genl_info *info, const struct hml_nic_attr *attr,
		       bool tcp, const struct hml_device *d)
{
	struct nlattr **attrs = info->attrs;

	/* What was not asked for is HAMLYN_NONE, and nobody's. */
	if (d->index == attr->index) {
		HML_COMPAT_REFUSE(info->extack, attrs[HAMLYN_A_NIC],
				  "there is such a NIC already",
				  "%s exists already", d->name);
		return -EEXIST;
	}
	/* Each NIC between hosts is on a fabric of its own. */
	if (!tcp && d->nic.port.fabric == &hml_loop && d->nic.host == attr->host) {
		HML_COMPAT_REFUSE(info->extack, attrs[HAMLYN_A_HOST],
				  "the host is taken by another NIC",
				  "host %u is taken by %s", attr->host,
				  d->name);
		return -EEXIST;
	}
	return 0;
}

/* Say what is in the way; the errno says it as well as hml_nic_create(). */
static int check_free(struct genl_info *info, const struct hml_nic_attr *attr, bool tcp)
{
	struct hml_device *d;
	u32 from = 0;
	int err = 0;

	if (info->attrs[HAMLYN_A_HOST] && attr->host == HAMLYN_NONE) {
		HML_COMPAT_REFUSE(info->extack, info->attrs[HAMLYN_A_HOST],
				  "host is out of range",
				  "host %u: must be 0 to %u", attr->host,
				  HAMLYN_NONE - 1);
		return -EINVAL;
	}
	if (!info->attrs[HAMLYN_A_HOST] && tcp) {
		NL_SET_ERR_MSG(info->extack,
			       "host is needed: the NIC's own id on a fabric between hosts");
		return -EINVAL;
	}
	while (!err && (d = hml_nic_get(NULL, from))) {
		err = check_other(info, attr, tcp, d);
		from = d->index + 1;
		put_device(&d->dev);
	}
	return err;
}

/**
 * struct wish - what a new NIC is to be like
 * @info: the request
 * @limits: its limits, parsed
 * @tcp: its end of a fabric between hosts
 * @is_tcp: whether it is on one
 */
struct wish {
	struct genl_info *info;
	struct nlattr *limits[ARRAY_SIZE(hamlyn_limits_nl_policy)];
	struct hml_tcp_attr tcp;
	bool is_tcp;
};

static int set_up(struct hml_device *d, const void *arg)
{
	const struct wish *wish = arg;
	int err = 0;

	set_nic_limits(d, wish->limits);
	/* Before the adversary, which stands before it. */
	if (wish->is_tcp)
		err = hml_tcp_create(d, &wish->tcp, wish->info->extack);
	return err ?: change_nic(wish->info, d);
}

static int parse_wish(struct wish *wish, struct net *net)
{
	struct netlink_ext_ack *extack = wish->info->extack;
	struct nlattr **attrs = wish->info->attrs;
	int err = 0;

	if (attrs[HAMLYN_A_LIMITS])
		err = parse_limits(wish->limits, attrs[HAMLYN_A_LIMITS], extack);
	if (!err && attrs[HAMLYN_A_FABRIC])
		err = hml_netlink_fabric(attrs[HAMLYN_A_FABRIC], net, &wish->tcp, extack);
	wish->is_tcp = err > 0;
	return min(err, 0);
}

static struct hml_device *create(const struct wish *wish, struct net *net)
{
	struct genl_info *info = wish->info;
	struct hml_nic_attr attr;
	struct hml_device *d;
	int err;

	take_attr(info->attrs, &attr);
	err = check_free(info, &attr, wish->is_tcp);
	if (err)
		return ERR_PTR(err);
	d = hml_nic_create(&attr, net, set_up, wish);
	if (d == ERR_PTR(-ENOSPC))
		HML_COMPAT_REFUSE(info->extack, NULL, "there are too many NICs",
				  "there are %u NICs, and no more can be",
				  HML_MAX_NICS);
	return d;
}

static int fill_new(struct sk_buff *skb, const struct hml_reader *r,
		    const struct hml_subject *s)
{
	return nla_put_u32(skb, HAMLYN_A_NIC, s->d->index) ?:
	       nla_put_string(skb, HAMLYN_A_NAME, s->d->name);
}

static int new_nic(struct sk_buff *request, struct genl_info *info,
		   struct net *net)
{
	struct wish wish = { .info = info };
	struct hml_device *d;
	struct sk_buff *skb;
	int err;

	err = parse_wish(&wish, net);
	if (err)
		return err;
	/* First, so that it is not made behind the back of the task that asked for it. */
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!skb)
		return -ENOMEM;
	d = create(&wish, net);
	if (IS_ERR(d)) {
		nlmsg_free(skb);
		return PTR_ERR(d);
	}
	err = hml_netlink_reply(skb, request, info, HAMLYN_NL_CMD_NIC_NEW,
				fill_new, d);
	put_device(&d->dev);
	return err;
}

int hamlyn_nl_nic_new_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct net *net;
	int err;

	err = hml_netlink_check(info->attrs, ATTRS_NEW, info->extack);
	if (err)
		return err;
	if (!info->attrs[HAMLYN_A_NETNS_FD])
		return new_nic(skb, info, genl_info_net(info));
	net = get_target(skb, info);
	if (IS_ERR(net))
		return PTR_ERR(net);
	err = new_nic(skb, info, net);
	put_net(net);
	return err;
}

static int delete_nic(struct sk_buff *skb, struct genl_info *info,
		      struct hml_device *d)
{
	int err = hml_nic_delete(d);

	return err == -EBUSY ? refuse_busy(info, d) : err;
}

int hamlyn_nl_nic_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	return hml_netlink_with(skb, info, 0, delete_nic);
}
