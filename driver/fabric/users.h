/* SPDX-License-Identifier: GPL-2.0-only */
/* For whom the users of another host are taken here. */
#ifndef HML_USERS_H
#define HML_USERS_H

#include <linux/types.h>
#include <linux/uidgid.h>

#include <linux/hamlyn_netlink.h>

struct user_namespace;

/**
 * struct hml_user_range - users of another host, and as many here
 * @from: the first one there
 * @to: for whom that one is taken here
 * @count: how many
 */
struct hml_user_range {
	u32 from;
	u32 to;
	u32 count;
};

/**
 * struct hml_peer_users - for whom those of a host are taken
 * @kind: enum hamlyn_nl_peer_users
 * @count: how many of @ranges there are; 0 unless @kind is a map
 * @ranges: without a user there in common
 *
 * So few that a frame's user is looked for from the first to the last.
 */
struct hml_peer_users {
	u32 kind;
	u32 count;
	struct hml_user_range ranges[HAMLYN_PEER_USER_RANGES];
};

const char *hml_users_wrong(const struct hml_peer_users *users);
kuid_t hml_users_find(const struct hml_peer_users *users, struct user_namespace *ns, u32 user);

#endif /* HML_USERS_H */
