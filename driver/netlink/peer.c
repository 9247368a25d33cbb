// SPDX-License-Identifier: GPL-2.0-only
/* Netlink requests that let a NIC reach other hosts. */
#include "hml.h"
#include "netlink/family.h"

/* Of a new peer there is more to say. */
static bool is_said(u32 attr, u32 last)
{
	return (attr == HAMLYN_A_PEER_USERS || attr == HAMLYN_A_PEER_USER_MAP) &&
	       last != HAMLYN_A_PEER_HOST;
}

/* What requests can have of a peer comes first. */
static int parse(struct nlattr **tb, const struct nlattr *nest, u32 last,
		 struct netlink_ext_ack *extack)
{
	int err;
	u32 i;

	err = nla_parse_nested(tb, ARRAY_SIZE(hamlyn_peer_nl_policy) - 1, nest,
			       hamlyn_peer_nl_policy, extack);
	if (err)
		return err;
	for (i = last + 1; i < ARRAY_SIZE(hamlyn_peer_nl_policy); i++) {
		if (!tb[i] || is_said(i, last))
			continue;
		HML_COMPAT_REFUSE(extack, tb[i],
				  "the operation does not have this attribute of a peer",
				  "the operation does not have attribute %u of a peer", i);
		return -EINVAL;
	}
	if (!tb[HAMLYN_A_PEER_HOST]) {
		NL_SET_ERR_MSG_ATTR(extack, nest, "which peer? its host is needed");
		return -EINVAL;
	}
	if (nla_get_u32(tb[HAMLYN_A_PEER_HOST]) == HAMLYN_NONE) {
		HML_COMPAT_REFUSE(extack, tb[HAMLYN_A_PEER_HOST], "host is out of range",
				  "host %u: must be 0 to %u", HAMLYN_NONE, HAMLYN_NONE - 1);
		return -EINVAL;
	}
	return 0;
}

/**
 * hml_netlink_peer_host() - which peer does a request name?
 * @nest: what it says of it, which must be no more than that
 * @host: out: its host id
 * @extack: why not
 *
 * Return: 0 or -EINVAL.
 */
int hml_netlink_peer_host(const struct nlattr *nest, u32 *host,
			  struct netlink_ext_ack *extack)
{
	struct nlattr *tb[ARRAY_SIZE(hamlyn_peer_nl_policy)];
	int err = parse(tb, nest, HAMLYN_A_PEER_HOST, extack);

	if (!err)
		*host = nla_get_u32(tb[HAMLYN_A_PEER_HOST]);
	return err;
}

static int need_peer(struct genl_info *info, struct hml_device *d, struct hml_tcp_attr *own)
{
	if (!info->attrs[HAMLYN_A_PEER]) {
		NL_SET_ERR_MSG(info->extack, "which peer? its host is needed");
		return -EINVAL;
	}
	if (hml_tcp_get(d, own))
		return 0;
	HML_COMPAT_REFUSE(info->extack, NULL,
			  "the NIC is on the loop of this kernel: only one on a fabric has peers",
			  "%s is on the loop of this kernel: only NICs on tcp have peers",
			  d->name);
	return -EOPNOTSUPP;
}

static int take_map(struct genl_info *info, const struct nlattr *map,
		    struct hml_peer_users *users)
{
	u32 length = nla_len(map);
	const char *wrong;

	BUILD_BUG_ON(sizeof(users->ranges[0]) != 3 * sizeof(u32));
	if (!length || length % sizeof(users->ranges[0]) || length > sizeof(users->ranges)) {
		NL_SET_ERR_MSG_ATTR(info->extack, map,
				    "user-map must be 1 to 32 ranges of three numbers each");
		return -EINVAL;
	}
	memcpy(users->ranges, nla_data(map), length);
	users->count = length / sizeof(users->ranges[0]);
	wrong = hml_users_wrong(users);
	if (!wrong)
		return 0;
	HML_COMPAT_REFUSE(info->extack, map,
			  "a range of users is empty, too long, or has users in common",
			  "user-map: %s", wrong);
	return -EINVAL;
}

static int take_users(struct genl_info *info, struct nlattr **tb, struct hml_peer_users *users)
{
	struct nlattr *kind = tb[HAMLYN_A_PEER_USERS], *map = tb[HAMLYN_A_PEER_USER_MAP];
	bool mapped;

	memset(users, 0, sizeof(*users));
	users->kind = kind ? nla_get_u32(kind) : HAMLYN_NL_PEER_USERS_NONE;
	mapped = users->kind == HAMLYN_NL_PEER_USERS_MAP;
	if (mapped != !!map) {
		NL_SET_ERR_MSG_ATTR(info->extack, map ?: kind,
				    "user-map is needed with users map, and only with that");
		return -EINVAL;
	}
	return map ? take_map(info, map, users) : 0;
}

static int take_peer(struct genl_info *info, struct nlattr **tb, struct hml_peer_attr *attr)
{
	int err = take_users(info, tb, &attr->users);

	if (err)
		return err;
	attr->host = nla_get_u32(tb[HAMLYN_A_PEER_HOST]);
	if (!tb[HAMLYN_A_PEER_ADDRESS]) {
		NL_SET_ERR_MSG(info->extack, "address of the peer is needed");
		return -EINVAL;
	}
	return hml_netlink_address(tb[HAMLYN_A_PEER_ADDRESS], tb[HAMLYN_A_PEER_PORT],
				   &attr->address, info->extack);
}

static int check_peer(struct genl_info *info, struct nlattr **tb, const struct hml_device *d,
		      const struct hml_tcp_attr *own, const struct hml_peer_attr *attr)
{
	if (attr->host == d->nic.host) {
		HML_COMPAT_REFUSE(info->extack, tb[HAMLYN_A_PEER_HOST],
				  "this host id is the NIC's own: give another host's",
				  "host %u is %s itself: give another host's id",
				  attr->host, d->name);
		return -EINVAL;
	}
	if (attr->address.ss_family != own->address.ss_family) {
		NL_SET_ERR_MSG_ATTR(info->extack, tb[HAMLYN_A_PEER_ADDRESS],
				    "address must be as the NIC's own: both IPv4 or both IPv6");
		return -EAFNOSUPPORT;
	}
	return 0;
}

static int new_peer(struct sk_buff *skb, struct genl_info *info, struct hml_device *d)
{
	struct nlattr *tb[ARRAY_SIZE(hamlyn_peer_nl_policy)];
	struct hml_peer_attr attr;
	struct hml_tcp_attr own;
	int err;

	err = need_peer(info, d, &own) ?:
	      parse(tb, info->attrs[HAMLYN_A_PEER], HAMLYN_A_PEER_PORT, info->extack) ?:
	      take_peer(info, tb, &attr) ?:
	      check_peer(info, tb, d, &own, &attr) ?:
	      hml_tcp_add_peer(d, &attr, info->extack);
	if (!err)
		hml_changed();
	return err;
}

int hamlyn_nl_peer_new_doit(struct sk_buff *skb, struct genl_info *info)
{
	return hml_netlink_with(skb, info, HML_ATTR(PEER), new_peer);
}

static int delete_peer(struct sk_buff *skb, struct genl_info *info, struct hml_device *d)
{
	struct hml_tcp_attr own;
	u32 host;
	int err;

	err = need_peer(info, d, &own) ?:
	      hml_netlink_peer_host(info->attrs[HAMLYN_A_PEER], &host, info->extack) ?:
	      hml_tcp_delete_peer(d, host);
	if (!err)
		hml_changed();
	if (err == -ENOENT)
		NL_SET_ERR_MSG_ATTR(info->extack, info->attrs[HAMLYN_A_PEER],
				    "no such peer; peer-get lists what there is");
	return err;
}

int hamlyn_nl_peer_del_doit(struct sk_buff *skb, struct genl_info *info)
{
	return hml_netlink_with(skb, info, HML_ATTR(PEER), delete_peer);
}
