// SPDX-License-Identifier: GPL-2.0-only
/* The netlink family: what requests name, replies about NICs, termini. */
#include <linux/module.h>

#include "hml.h"
#include "locked.h"
#include "netlink/family.h"

/* Of all tables: see hml_changed(). */
atomic_t hml_generation = ATOMIC_INIT(1);

bool hml_netlink_registered;

/* ---- what a request names ---- */

static u64 bit_of(u32 attr)
{
	bool told = attr > HAMLYN_A_WEIGHT && attr < HAMLYN_A_FABRIC;

	return told ? 0 : BIT_ULL(HML_ATTR_BIT(attr));
}

/**
 * hml_netlink_check() - has a request only what its operation knows?
 * @attrs: its attributes
 * @allowed: those that the operation knows, one bit each
 * @extack: why not
 *
 * What would be ignored could not be given a meaning later.
 *
 * Return: 0 or -EINVAL.
 */
int hml_netlink_check(struct nlattr **attrs, u64 allowed,
		      struct netlink_ext_ack *extack)
{
	u32 i;

	BUILD_BUG_ON(HML_ATTR_BIT(ARRAY_SIZE(hamlyn_nl_policy) - 1) > 63);

	for (i = 1; i < ARRAY_SIZE(hamlyn_nl_policy); i++) {
		if (!attrs[i] || allowed & bit_of(i))
			continue;
		HML_COMPAT_REFUSE(extack, attrs[i],
				  "the operation does not have this attribute",
				  "the operation does not have attribute %u",
				  i);
		return -EINVAL;
	}
	return 0;
}

/**
 * hml_netlink_names() - does a request mean this NIC?
 * @attrs: its attributes
 * @d: the NIC
 *
 * Return: true if it does, or names none.
 */
bool hml_netlink_names(struct nlattr **attrs, const struct hml_device *d)
{
	const struct nlattr *nic = attrs[HAMLYN_A_NIC];
	const struct nlattr *name = attrs[HAMLYN_A_NAME];

	return (!nic || nla_get_u32(nic) == d->index) &&
	       (!name || !nla_strcmp(name, d->name));
}

/* Return: -ENODEV, and why. */
int hml_netlink_no_nic(struct nlattr **attrs, struct netlink_ext_ack *extack)
{
	NL_SET_ERR_MSG_ATTR(extack, attrs[HAMLYN_A_NIC] ?: attrs[HAMLYN_A_NAME],
			    "no such NIC in this network namespace; nic-get lists what there is");
	return -ENODEV;
}

/**
 * hml_netlink_get() - the NIC that a request names
 * @info: the request
 * @allowed: its attributes, beside nic and name
 *
 * Return: the NIC, with a reference, or ERR_PTR() of -EINVAL or -ENODEV.
 */
struct hml_device *hml_netlink_get(struct genl_info *info, u64 allowed)
{
	struct nlattr **attrs = info->attrs;
	struct hml_device *d;
	u32 from = 0;
	int err;

	err = hml_netlink_check(attrs, HML_ATTRS_NIC | allowed, info->extack);
	if (err)
		return ERR_PTR(err);
	if (!attrs[HAMLYN_A_NIC] && !attrs[HAMLYN_A_NAME]) {
		NL_SET_ERR_MSG(info->extack, "which NIC? nic or name is needed");
		return ERR_PTR(-EINVAL);
	}
	while ((d = hml_nic_get(genl_info_net(info), from))) {
		if (hml_netlink_names(attrs, d))
			return d;
		from = d->index + 1;
		put_device(&d->dev);
	}
	return ERR_PTR(hml_netlink_no_nic(attrs, info->extack));
}

/* It may have been moved or deleted while its lock was waited for. */
static bool still_there(const struct hml_device *d, struct genl_info *info)
{
	return READ_ONCE(d->listed) &&
	       net_eq(read_pnet(&d->net), genl_info_net(info));
}

/**
 * hml_netlink_with() - do something to the NIC that a request names
 * @skb: the request
 * @info: the request
 * @allowed: its attributes, beside nic and name
 * @act: does it, under the NIC's admin lock
 *
 * Return: what @act returns, -EINVAL, -ENODEV or -EINTR.
 */
int hml_netlink_with(struct sk_buff *skb, struct genl_info *info, u64 allowed,
		     int (*act)(struct sk_buff *skb, struct genl_info *info,
				struct hml_device *d))
{
	struct hml_device *d = hml_netlink_get(info, allowed);
	int err = -EINTR;

	if (IS_ERR(d))
		return PTR_ERR(d);
	if (!mutex_lock_killable(&d->admin)) {
		err = still_there(d, info) ?
		      act(skb, info, d) :
		      hml_netlink_no_nic(info->attrs, info->extack);
		mutex_unlock(&d->admin);
	}
	put_device(&d->dev);
	return err;
}

/* ---- replies ---- */

/**
 * hml_netlink_reply() - send a reply
 * @skb: room for it; consumed
 * @request: the request
 * @info: the request
 * @command: HAMLYN_NL_CMD_*
 * @fill: writes what there is to tell
 * @d: the NIC that it is about
 *
 * Return: 0, -EMSGSIZE, or what sending it returned.
 */
int hml_netlink_reply(struct sk_buff *skb, struct sk_buff *request,
		      struct genl_info *info, u8 command, hml_fill_fn fill,
		      struct hml_device *d)
{
	struct hml_subject subject = { .d = d };
	struct hml_reader reader;
	void *header;

	hml_reader_init(&reader, request, genl_info_net(info));
	header = genlmsg_put_reply(skb, info, &hml_netlink_family, 0, command);
	if (!header || fill(skb, &reader, &subject)) {
		nlmsg_free(skb);
		return -EMSGSIZE;
	}
	genlmsg_end(skb, header);
	return genlmsg_reply(skb, info);
}

static int answer(struct sk_buff *request, struct genl_info *info, u8 command,
		  hml_fill_fn fill)
{
	struct hml_device *d = hml_netlink_get(info, 0);
	struct sk_buff *skb;
	int err = -ENOMEM;

	if (IS_ERR(d))
		return PTR_ERR(d);
	skb = genlmsg_new(GENLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (skb)
		err = hml_netlink_reply(skb, request, info, command, fill, d);
	put_device(&d->dev);
	return err;
}

int hamlyn_nl_nic_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	return answer(skb, info, HAMLYN_NL_CMD_NIC_GET, hml_fill_nic);
}

int hamlyn_nl_stats_get_doit(struct sk_buff *skb, struct genl_info *info)
{
	return answer(skb, info, HAMLYN_NL_CMD_STATS_GET, hml_fill_stats);
}

/* ---- termini ---- */

/* With a reference, or NULL. */
static struct hml_term *get_term(struct hml_device *d, u32 context, u32 id)
{
	struct hml_context *c = hml_context_from(d, context);
	struct hml_term *t = NULL;

	if (!c)
		return NULL;
	if (c->id == context)
		t = hml_term_get(c, id);
	hml_context_put(c);
	return t;
}

static int set_term(struct sk_buff *skb, struct genl_info *info,
		    struct hml_device *d)
{
	struct nlattr **attrs = info->attrs;
	u32 priority, weight;
	struct hml_term *t;

	if (!attrs[HAMLYN_A_CONTEXT] || !attrs[HAMLYN_A_ID]) {
		NL_SET_ERR_MSG(info->extack,
			       "which terminus? context and id are needed");
		return -EINVAL;
	}
	if (!attrs[HAMLYN_A_PRIORITY] && !attrs[HAMLYN_A_WEIGHT]) {
		NL_SET_ERR_MSG(info->extack, "priority or weight is needed");
		return -EINVAL;
	}
	t = get_term(d, nla_get_u32(attrs[HAMLYN_A_CONTEXT]),
		     nla_get_u32(attrs[HAMLYN_A_ID]));
	if (!t) {
		NL_SET_ERR_MSG_ATTR(info->extack, attrs[HAMLYN_A_ID],
				    "no such terminus; terminus-get lists what there is");
		return -ENOENT;
	}
	priority = READ_ONCE(t->turn.priority);
	weight = READ_ONCE(t->turn.weight);
	hml_netlink_u32(attrs[HAMLYN_A_PRIORITY], &priority);
	hml_netlink_u32(attrs[HAMLYN_A_WEIGHT], &weight);
	hml_engine_set_turn(t, priority, weight);
	hml_term_put(t);
	return 0;
}

/* Without the NIC's lock: nothing of the NIC is changed. */
int hamlyn_nl_terminus_set_doit(struct sk_buff *skb, struct genl_info *info)
{
	struct hml_device *d = hml_netlink_get(info, HML_ATTR(CONTEXT) |
					       HML_ATTR(ID) |
					       HML_ATTR(PRIORITY) |
					       HML_ATTR(WEIGHT));
	int err;

	if (IS_ERR(d))
		return PTR_ERR(d);
	err = set_term(skb, info, d);
	put_device(&d->dev);
	return err;
}

/* ---- the family ---- */

struct genl_family hml_netlink_family __ro_after_init = {
	.name		= HAMLYN_FAMILY_NAME,
	.version	= HAMLYN_FAMILY_VERSION,
	.maxattr	= ARRAY_SIZE(hamlyn_nl_policy) - 1,
	.policy		= hamlyn_nl_policy,
	.netnsok	= true,
	.parallel_ops	= true,
	.small_ops	= hamlyn_nl_ops,
	.n_small_ops	= ARRAY_SIZE(hamlyn_nl_ops),
	.mcgrps		= hamlyn_nl_mcgrps,
	.n_mcgrps	= 1,
	.module		= THIS_MODULE,
};

int __init hml_netlink_init(void)
{
	int err = genl_register_family(&hml_netlink_family);

	if (!err)
		WRITE_ONCE(hml_netlink_registered, true);
	return err;
}

void hml_netlink_exit(void)
{
	WRITE_ONCE(hml_netlink_registered, false);
	genl_unregister_family(&hml_netlink_family);
}
