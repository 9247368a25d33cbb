// SPDX-License-Identifier: GPL-2.0-only
#include <linux/user_namespace.h>

#include "fabric/users.h"

/* U32_MAX is no user. */
static bool has_users(const struct hml_user_range *r)
{
	return r->count && r->count <= U32_MAX - r->from && r->count <= U32_MAX - r->to;
}

static bool has(const struct hml_user_range *r, u32 user)
{
	return user >= r->from && user - r->from < r->count;
}

/**
 * hml_users_wrong() - what is wrong with the ranges of an administrator?
 * @users: which
 *
 * Return: words for that, or NULL: nothing is.
 */
const char *hml_users_wrong(const struct hml_peer_users *users)
{
	const struct hml_user_range *r = users->ranges;
	u32 i, k;

	for (i = 0; i < users->count; i++) {
		if (!has_users(&r[i]))
			return "a range of users is empty, or too long";
		for (k = 0; k < i; k++)
			if (has(&r[i], r[k].from) || has(&r[k], r[i].from))
				return "two ranges have users of the peer in common";
	}
	return NULL;
}

/**
 * hml_users_find() - for whom is a user of another host taken?
 * @users: what an administrator says
 * @ns: whose users that one means; it may be of a container, who has to do with the users of
 *	that only
 * @user: as the host claims
 *
 * Return: INVALID_UID, nobody, unless the administrator says so.
 */
kuid_t hml_users_find(const struct hml_peer_users *users, struct user_namespace *ns, u32 user)
{
	const struct hml_user_range *r;

	if (users->kind == HAMLYN_NL_PEER_USERS_SAME)
		return make_kuid(ns, user);
	for (r = users->ranges; r < users->ranges + users->count; r++)
		if (has(r, user))
			return make_kuid(ns, r->to + (user - r->from));
	return INVALID_UID;
}
