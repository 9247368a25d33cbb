/* SPDX-License-Identifier: GPL-2.0-only */
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/hamlyn.yaml */
/* YNL-GEN kernel header */

#ifndef _LINUX_HAMLYN_GEN_H
#define _LINUX_HAMLYN_GEN_H

#include <net/netlink.h>
#include <net/genetlink.h>

#include <linux/hamlyn_netlink.h>

/* Common nested types */
extern const struct nla_policy hamlyn_adversary_nl_policy[HAMLYN_A_ADV_STALL + 1];
extern const struct nla_policy hamlyn_fabric_nl_policy[HAMLYN_A_FAB_STALL_MS + 1];
extern const struct nla_policy hamlyn_limits_nl_policy[HAMLYN_A_LIMITS_PAD + 1];
extern const struct nla_policy hamlyn_peer_nl_policy[HAMLYN_A_PEER_CALLED + 1];

/* Global operation policy for hamlyn */
extern const struct nla_policy hamlyn_nl_policy[HAMLYN_A_PEER + 1];

/* Ops table for hamlyn */
extern const struct genl_small_ops hamlyn_nl_ops[19];
extern const struct genl_multicast_group hamlyn_nl_mcgrps[];

int hamlyn_nl_nic_get_doit(struct sk_buff *skb, struct genl_info *info);
int hamlyn_nl_nic_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int hamlyn_nl_nic_new_doit(struct sk_buff *skb, struct genl_info *info);
int hamlyn_nl_nic_del_doit(struct sk_buff *skb, struct genl_info *info);
int hamlyn_nl_nic_set_doit(struct sk_buff *skb, struct genl_info *info);
int hamlyn_nl_nic_feed_doit(struct sk_buff *skb, struct genl_info *info);
int hamlyn_nl_context_get_dumpit(struct sk_buff *skb,
				 struct netlink_callback *cb);
int hamlyn_nl_area_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int hamlyn_nl_slot_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int hamlyn_nl_nq_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int hamlyn_nl_terminus_get_dumpit(struct sk_buff *skb,
				  struct netlink_callback *cb);
int hamlyn_nl_terminus_set_doit(struct sk_buff *skb, struct genl_info *info);
int hamlyn_nl_stats_get_doit(struct sk_buff *skb, struct genl_info *info);
int hamlyn_nl_stats_get_dumpit(struct sk_buff *skb,
			       struct netlink_callback *cb);
int hamlyn_nl_user_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int hamlyn_nl_limit_set_doit(struct sk_buff *skb, struct genl_info *info);
int hamlyn_nl_audit_get_dumpit(struct sk_buff *skb,
			       struct netlink_callback *cb);
int hamlyn_nl_peer_new_doit(struct sk_buff *skb, struct genl_info *info);
int hamlyn_nl_peer_del_doit(struct sk_buff *skb, struct genl_info *info);
int hamlyn_nl_peer_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);
int hamlyn_nl_name_get_dumpit(struct sk_buff *skb, struct netlink_callback *cb);

enum {
	HAMLYN_NLGRP_EVENTS,
};

#endif /* _LINUX_HAMLYN_GEN_H */
