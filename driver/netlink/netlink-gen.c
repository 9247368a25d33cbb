// SPDX-License-Identifier: GPL-2.0-only
/* Do not edit directly, auto-generated from: */
/*	Documentation/netlink/hamlyn.yaml */
/* YNL-GEN kernel source */

#include <net/netlink.h>
#include <net/genetlink.h>

#include "netlink-gen.h"

#include <linux/hamlyn_netlink.h>

/* Integer value ranges */
static struct netlink_range_validation hamlyn_a_netns_fd_range = {
	.max	= 2147483647ULL,
};

static struct netlink_range_validation hamlyn_a_watchdog_ms_range = {
	.max	= 86400000ULL,
};

static struct netlink_range_validation hamlyn_a_idle_us_range = {
	.max	= 10000000ULL,
};

static struct netlink_range_validation hamlyn_a_kick_window_us_range = {
	.max	= 10000000ULL,
};

static struct netlink_range_validation hamlyn_a_packet_size_range = {
	.min	= 1024ULL,
	.max	= 65536ULL,
};

static struct netlink_range_validation hamlyn_a_max_slots_range = {
	.min	= 1ULL,
	.max	= 1048576ULL,
};

static struct netlink_range_validation hamlyn_a_fab_dead_ms_range = {
	.min	= 100ULL,
	.max	= 600000ULL,
};

static struct netlink_range_validation hamlyn_a_fab_stall_ms_range = {
	.min	= 100ULL,
	.max	= 600000ULL,
};

static struct netlink_range_validation hamlyn_a_adv_drop_range = {
	.max	= 1000000ULL,
};

static struct netlink_range_validation hamlyn_a_adv_duplicate_range = {
	.max	= 1000000ULL,
};

static struct netlink_range_validation hamlyn_a_adv_corrupt_range = {
	.max	= 1000000ULL,
};

static struct netlink_range_validation hamlyn_a_adv_reorder_range = {
	.max	= 1000000ULL,
};

static struct netlink_range_validation hamlyn_a_adv_delay_us_range = {
	.max	= 10000000ULL,
};

static struct netlink_range_validation hamlyn_a_adv_stall_range = {
	.max	= 1000000ULL,
};

/* Common nested types */
const struct nla_policy hamlyn_adversary_nl_policy[HAMLYN_A_ADV_STALL + 1] = {
	[HAMLYN_A_ADV_SEED] = { .type = NLA_U64, },
	[HAMLYN_A_ADV_DROP] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_adv_drop_range),
	[HAMLYN_A_ADV_DUPLICATE] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_adv_duplicate_range),
	[HAMLYN_A_ADV_CORRUPT] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_adv_corrupt_range),
	[HAMLYN_A_ADV_REORDER] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_adv_reorder_range),
	[HAMLYN_A_ADV_DELAY_US] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_adv_delay_us_range),
	[HAMLYN_A_ADV_STALL] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_adv_stall_range),
};

const struct nla_policy hamlyn_fabric_nl_policy[HAMLYN_A_FAB_STALL_MS + 1] = {
	[HAMLYN_A_FAB_KIND] = NLA_POLICY_MAX(NLA_U32, 1),
	[HAMLYN_A_FAB_ID] = NLA_POLICY_EXACT_LEN(16),
	[HAMLYN_A_FAB_ADDRESS] = { .type = NLA_BINARY, },
	[HAMLYN_A_FAB_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
	[HAMLYN_A_FAB_DEVICE] = { .type = NLA_NUL_STRING, .len = HAMLYN_FABRIC_DEVICE_MAX, },
	[HAMLYN_A_FAB_CLEAR] = { .type = NLA_FLAG, },
	[HAMLYN_A_FAB_DEAD_MS] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_fab_dead_ms_range),
	[HAMLYN_A_FAB_STALL_MS] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_fab_stall_ms_range),
};

const struct nla_policy hamlyn_limits_nl_policy[HAMLYN_A_LIMITS_PAD + 1] = {
	[HAMLYN_A_LIMITS_KERNEL_BYTES] = { .type = NLA_U64, },
	[HAMLYN_A_LIMITS_USER_KERNEL_BYTES] = { .type = NLA_U64, },
	[HAMLYN_A_LIMITS_USER_WIRED_BYTES] = { .type = NLA_U64, },
	[HAMLYN_A_LIMITS_USER_SLOTS] = { .type = NLA_U32, },
	[HAMLYN_A_LIMITS_USER_TERMINI] = { .type = NLA_U32, },
};

const struct nla_policy hamlyn_peer_nl_policy[HAMLYN_A_PEER_CALLED + 1] = {
	[HAMLYN_A_PEER_HOST] = { .type = NLA_U32, },
	[HAMLYN_A_PEER_ADDRESS] = { .type = NLA_BINARY, },
	[HAMLYN_A_PEER_PORT] = NLA_POLICY_MIN(NLA_U16, 1),
	[HAMLYN_A_PEER_STATE] = NLA_POLICY_MAX(NLA_U32, 2),
	[HAMLYN_A_PEER_REASON] = NLA_POLICY_MAX(NLA_U32, 11),
	[HAMLYN_A_PEER_EPOCH] = { .type = NLA_U32, },
	[HAMLYN_A_PEER_INCARNATION] = { .type = NLA_U64, },
	[HAMLYN_A_PEER_RTT_US] = { .type = NLA_U32, },
	[HAMLYN_A_PEER_WATCHES] = { .type = NLA_U32, },
	[HAMLYN_A_PEER_WATCHED] = { .type = NLA_U32, },
	[HAMLYN_A_PEER_SENT_BYTES] = { .type = NLA_U64, },
	[HAMLYN_A_PEER_RECEIVED_BYTES] = { .type = NLA_U64, },
	[HAMLYN_A_PEER_SENT_PACKETS] = { .type = NLA_U64, },
	[HAMLYN_A_PEER_RECEIVED_PACKETS] = { .type = NLA_U64, },
	[HAMLYN_A_PEER_STALLS] = { .type = NLA_U64, },
	[HAMLYN_A_PEER_DROPPED] = { .type = NLA_U64, },
	[HAMLYN_A_PEER_LOST] = { .type = NLA_U64, },
	[HAMLYN_A_PEER_REFUSED] = { .type = NLA_U64, },
	[HAMLYN_A_PEER_USERS] = NLA_POLICY_MAX(NLA_U32, 2),
	[HAMLYN_A_PEER_USER_MAP] = { .type = NLA_BINARY, },
	[HAMLYN_A_PEER_CALLS] = { .type = NLA_U32, },
	[HAMLYN_A_PEER_CALLED] = { .type = NLA_U32, },
};

/* Global operation policy for hamlyn */
const struct nla_policy hamlyn_nl_policy[HAMLYN_A_PEER + 1] = {
	[HAMLYN_A_NIC] = NLA_POLICY_MAX(NLA_U32, 255),
	[HAMLYN_A_NAME] = { .type = NLA_NUL_STRING, .len = HAMLYN_NIC_NAME_MAX, },
	[HAMLYN_A_CONTEXT] = { .type = NLA_U32, },
	[HAMLYN_A_ID] = { .type = NLA_U32, },
	[HAMLYN_A_UID] = { .type = NLA_U32, },
	[HAMLYN_A_HOST] = { .type = NLA_U32, },
	[HAMLYN_A_NETNS_FD] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_netns_fd_range),
	[HAMLYN_A_STATE] = NLA_POLICY_MAX(NLA_U32, 1),
	[HAMLYN_A_WATCHDOG_MS] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_watchdog_ms_range),
	[HAMLYN_A_ENGINE_MODE] = NLA_POLICY_MAX(NLA_U32, 1),
	[HAMLYN_A_ENGINES] = NLA_POLICY_RANGE(NLA_U32, 1, 16),
	[HAMLYN_A_IDLE_US] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_idle_us_range),
	[HAMLYN_A_KICK_WINDOW_US] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_kick_window_us_range),
	[HAMLYN_A_PACKET_SIZE] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_packet_size_range),
	[HAMLYN_A_MAX_SLOTS] = NLA_POLICY_FULL_RANGE(NLA_U32, &hamlyn_a_max_slots_range),
	[HAMLYN_A_GUESSES] = { .type = NLA_U32, },
	[HAMLYN_A_ADVERSARY] = NLA_POLICY_NESTED(hamlyn_adversary_nl_policy),
	[HAMLYN_A_LIMITS] = NLA_POLICY_NESTED(hamlyn_limits_nl_policy),
	[HAMLYN_A_PRIORITY] = NLA_POLICY_MAX(NLA_U32, 2),
	[HAMLYN_A_WEIGHT] = NLA_POLICY_RANGE(NLA_U32, 1, 64),
	[HAMLYN_A_FABRIC] = NLA_POLICY_NESTED(hamlyn_fabric_nl_policy),
	[HAMLYN_A_PEER] = NLA_POLICY_NESTED(hamlyn_peer_nl_policy),
};

/* Ops table for hamlyn */
const struct genl_small_ops hamlyn_nl_ops[19] = {
	{
		.cmd	= HAMLYN_NL_CMD_NIC_GET,
		.doit	= hamlyn_nl_nic_get_doit,
		.dumpit	= hamlyn_nl_nic_get_dumpit,
	},
	{
		.cmd	= HAMLYN_NL_CMD_NIC_NEW,
		.doit	= hamlyn_nl_nic_new_doit,
		.flags	= GENL_ADMIN_PERM,
	},
	{
		.cmd	= HAMLYN_NL_CMD_NIC_DEL,
		.doit	= hamlyn_nl_nic_del_doit,
		.flags	= GENL_ADMIN_PERM,
	},
	{
		.cmd	= HAMLYN_NL_CMD_NIC_SET,
		.doit	= hamlyn_nl_nic_set_doit,
		.flags	= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd	= HAMLYN_NL_CMD_NIC_FEED,
		.doit	= hamlyn_nl_nic_feed_doit,
		.flags	= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd	= HAMLYN_NL_CMD_CONTEXT_GET,
		.dumpit	= hamlyn_nl_context_get_dumpit,
	},
	{
		.cmd	= HAMLYN_NL_CMD_AREA_GET,
		.dumpit	= hamlyn_nl_area_get_dumpit,
	},
	{
		.cmd	= HAMLYN_NL_CMD_SLOT_GET,
		.dumpit	= hamlyn_nl_slot_get_dumpit,
	},
	{
		.cmd	= HAMLYN_NL_CMD_NQ_GET,
		.dumpit	= hamlyn_nl_nq_get_dumpit,
	},
	{
		.cmd	= HAMLYN_NL_CMD_TERMINUS_GET,
		.dumpit	= hamlyn_nl_terminus_get_dumpit,
	},
	{
		.cmd	= HAMLYN_NL_CMD_TERMINUS_SET,
		.doit	= hamlyn_nl_terminus_set_doit,
		.flags	= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd	= HAMLYN_NL_CMD_STATS_GET,
		.doit	= hamlyn_nl_stats_get_doit,
		.dumpit	= hamlyn_nl_stats_get_dumpit,
		.flags	= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd	= HAMLYN_NL_CMD_USER_GET,
		.dumpit	= hamlyn_nl_user_get_dumpit,
	},
	{
		.cmd	= HAMLYN_NL_CMD_LIMIT_SET,
		.doit	= hamlyn_nl_limit_set_doit,
		.flags	= GENL_ADMIN_PERM,
	},
	{
		.cmd	= HAMLYN_NL_CMD_AUDIT_GET,
		.dumpit	= hamlyn_nl_audit_get_dumpit,
	},
	{
		.cmd	= HAMLYN_NL_CMD_PEER_NEW,
		.doit	= hamlyn_nl_peer_new_doit,
		.flags	= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd	= HAMLYN_NL_CMD_PEER_DEL,
		.doit	= hamlyn_nl_peer_del_doit,
		.flags	= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd	= HAMLYN_NL_CMD_PEER_GET,
		.dumpit	= hamlyn_nl_peer_get_dumpit,
		.flags	= GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd	= HAMLYN_NL_CMD_NAME_GET,
		.dumpit	= hamlyn_nl_name_get_dumpit,
	},
};

const struct genl_multicast_group hamlyn_nl_mcgrps[] = {
	[HAMLYN_NLGRP_EVENTS] = { "events", GENL_MCAST_CAP_NET_ADMIN },
};
