// SPDX-License-Identifier: GPL-2.0-only
/* What a request says of a fabric between hosts, and of addresses on it. */
#include <linux/in.h>
#include <linux/inetdevice.h>
#include <linux/netdevice.h>
#include <linux/string.h>
#include <net/ipv6.h>
#include <net/rtnetlink.h>

#include "hml.h"
#include "netlink/family.h"

/* ---- addresses ---- */

static int refuse_address(const struct nlattr *attr, struct netlink_ext_ack *extack)
{
	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "address must be that of one host, 4 bytes for IPv4, 16 for IPv6");
	return -EINVAL;
}

static bool one_host_v4(__be32 address)
{
	return !ipv4_is_zeronet(address) && !ipv4_is_multicast(address) &&
	       !ipv4_is_lbcast(address);
}

/* An IPv4 address is given as one: so there is one way to write each. */
static bool one_host_v6(const struct in6_addr *address)
{
	return !ipv6_addr_any(address) && !ipv6_addr_is_multicast(address) &&
	       !ipv6_addr_v4mapped(address);
}

/**
 * hml_netlink_address() - take an address and a port from a request
 * @address: the address
 * @port: the port, or NULL: HML_TCP_PORT
 * @to: out: both
 * @extack: why not
 *
 * Return: 0 or -EINVAL.
 */
int hml_netlink_address(const struct nlattr *address, const struct nlattr *port,
			struct sockaddr_storage *to, struct netlink_ext_ack *extack)
{
	__be16 number = htons(port ? nla_get_u16(port) : HML_TCP_PORT);
	struct sockaddr_in6 *in6 = (void *)to;
	struct sockaddr_in *in = (void *)to;

	BUILD_BUG_ON(HML_TCP_PORT != HAMLYN_FABRIC_PORT);

	memset(to, 0, sizeof(*to));
	switch (nla_len(address)) {
	case sizeof(in->sin_addr):
		in->sin_family = AF_INET;
		in->sin_port = number;
		memcpy(&in->sin_addr, nla_data(address), sizeof(in->sin_addr));
		return one_host_v4(in->sin_addr.s_addr) ? 0 : refuse_address(address, extack);
	case sizeof(in6->sin6_addr):
		in6->sin6_family = AF_INET6;
		in6->sin6_port = number;
		memcpy(&in6->sin6_addr, nla_data(address), sizeof(in6->sin6_addr));
		return one_host_v6(&in6->sin6_addr) ? 0 : refuse_address(address, extack);
	}
	return refuse_address(address, extack);
}

/* ---- netdevs ---- */

static bool encrypts(const struct net_device *netdev)
{
	const struct rtnl_link_ops *ops = netdev->rtnl_link_ops;

	return ops && !strcmp(ops->kind, "wireguard");
}

static int check_netdev(const struct nlattr *attr, struct net *net, bool clear,
			struct netlink_ext_ack *extack)
{
	char name[IFNAMSIZ];
	struct net_device *netdev;
	bool there, safe;

	nla_strscpy(name, attr, sizeof(name));
	rcu_read_lock();
	netdev = dev_get_by_name_rcu(net, name);
	there = netdev;
	safe = there && encrypts(netdev);
	rcu_read_unlock();
	if (!there) {
		HML_COMPAT_REFUSE(extack, attr, "no such device in the NIC's network namespace",
				  "no device %s in the NIC's network namespace", name);
		return -ENODEV;
	}
	if (!safe && !clear) {
		HML_COMPAT_REFUSE(extack, attr,
				  "it does not encrypt: one of WireGuard is needed, or clear",
				  "%s does not encrypt: one of WireGuard is needed, or clear",
				  name);
		return -EINVAL;
	}
	return 0;
}

static int need_netdev(struct nlattr **tb, struct net *net, struct netlink_ext_ack *extack)
{
	bool clear = tb[HAMLYN_A_FAB_CLEAR];

	if (tb[HAMLYN_A_FAB_DEVICE])
		return check_netdev(tb[HAMLYN_A_FAB_DEVICE], net, clear, extack);
	if (clear)
		return 0;
	NL_SET_ERR_MSG(extack,
		       "device is needed, one of WireGuard; or clear, which anybody can read");
	return -EINVAL;
}

/* ---- the fabric ---- */

static int need_id(const struct nlattr *id, struct netlink_ext_ack *extack)
{
	if (!id) {
		NL_SET_ERR_MSG(extack,
			       "id of the fabric is needed: 16 bytes, the same on all hosts");
		return -EINVAL;
	}
	if (!memchr_inv(nla_data(id), 0, nla_len(id))) {
		NL_SET_ERR_MSG_ATTR(extack, id, "id of the fabric must not be all 0");
		return -EINVAL;
	}
	return 0;
}

static int refuse_loop(struct nlattr **tb, struct netlink_ext_ack *extack)
{
	u32 i;

	for (i = HAMLYN_A_FAB_KIND + 1; i < ARRAY_SIZE(hamlyn_fabric_nl_policy); i++) {
		if (!tb[i])
			continue;
		NL_SET_ERR_MSG_ATTR(extack, tb[i],
				    "the loop fabric has nothing to set: only kind tcp has");
		return -EINVAL;
	}
	return 0;
}

static int take_tcp(struct nlattr **tb, struct net *net, struct hml_tcp_attr *attr,
		    struct netlink_ext_ack *extack)
{
	int err = need_id(tb[HAMLYN_A_FAB_ID], extack);

	if (err)
		return err;
	if (!tb[HAMLYN_A_FAB_ADDRESS]) {
		NL_SET_ERR_MSG(extack, "address is needed: the NIC's own, of this host");
		return -EINVAL;
	}
	*attr = (struct hml_tcp_attr) {
		.clear = tb[HAMLYN_A_FAB_CLEAR],
		.dead_ms = HML_TCP_DEAD_MS,
		.stall_ms = HML_TCP_STALL_MS,
	};
	err = hml_netlink_address(tb[HAMLYN_A_FAB_ADDRESS], tb[HAMLYN_A_FAB_PORT],
				  &attr->address, extack) ?:
	      need_netdev(tb, net, extack);
	if (err)
		return err;
	memcpy(attr->id, nla_data(tb[HAMLYN_A_FAB_ID]), sizeof(attr->id));
	if (tb[HAMLYN_A_FAB_DEVICE])
		nla_strscpy(attr->netdev, tb[HAMLYN_A_FAB_DEVICE], sizeof(attr->netdev));
	hml_netlink_u32(tb[HAMLYN_A_FAB_DEAD_MS], &attr->dead_ms);
	hml_netlink_u32(tb[HAMLYN_A_FAB_STALL_MS], &attr->stall_ms);
	return 0;
}

/**
 * hml_netlink_fabric() - take the fabric of a new NIC from a request
 * @nest: what the request says of it
 * @net: the NIC's network namespace
 * @attr: out: its end of a fabric between hosts, if it is on one
 * @extack: why not
 *
 * Return: 1 if it is on one, 0 if it is on the loop; -EINVAL, or -ENODEV if there is no
 * such netdev in @net.
 */
int hml_netlink_fabric(struct nlattr *nest, struct net *net, struct hml_tcp_attr *attr,
		       struct netlink_ext_ack *extack)
{
	struct nlattr *tb[ARRAY_SIZE(hamlyn_fabric_nl_policy)];
	int err;

	err = nla_parse_nested(tb, ARRAY_SIZE(tb) - 1, nest, hamlyn_fabric_nl_policy, extack);
	if (err)
		return err;
	if (!tb[HAMLYN_A_FAB_KIND]) {
		NL_SET_ERR_MSG_ATTR(extack, nest, "kind of the fabric is needed: loop or tcp");
		return -EINVAL;
	}
	if (nla_get_u32(tb[HAMLYN_A_FAB_KIND]) == HAMLYN_NL_FABRIC_LOOP)
		return refuse_loop(tb, extack);
	return take_tcp(tb, net, attr, extack) ?: 1;
}
