// SPDX-License-Identifier: GPL-2.0-only
/* Limits of a NIC, of each of its users, of one user. */
#include "object/limit.h"
#include "record/netlink.h"

#define PARAM_UID(what) \
	{ "uid", "USER", what, PARAM_USER, 32, HAMLYN_A_UID, 0, 0, 0, NULL, NULL }

static const struct param set_params[] = {
	PARAM_UID("for this user alone, else for all that have no limits of their own"),
	PARAM_KERNEL_MEMORY,
	PARAM_USER_KERNEL_MEMORY,
	PARAM_USER_WIRED_MEMORY,
	PARAM_USER_SLOTS,
	PARAM_USER_TERMINI,
	{ 0 }
};

static const struct param reset_params[] = {
	PARAM_UID("who shall have no limits of his own any more"),
	{ 0 }
};

static int limit_set(const struct options *options, const struct verb *verb, struct words *words)
{
	struct values values;
	struct nic_name nic;
	int status = params_parse_of_nic(verb->params, words, &nic, &values);

	(void)options;
	if (!status && values.count == (values_find(&values, "uid") ? 1 : 0))
		status = misused("set which limit? (see hamlynctl limit set --help)");
	return status ? status : netlink_order_nic(HAMLYN_NL_CMD_LIMIT_SET, NULL, &nic, &values);
}

/* Limits of a user without limits in them: none of its own. */
static int limit_reset(const struct options *options, const struct verb *verb,
		       struct words *words)
{
	struct values values;
	struct nic_name nic;
	int status = params_parse_of_nic(verb->params, words, &nic, &values);

	(void)options;
	if (!status && !values.count)
		status = misused("of which user? say uid USER");
	return status ? status : netlink_order_nic(HAMLYN_NL_CMD_LIMIT_SET, NULL, &nic, &values);
}

static const struct verb verbs[] = {
	{ "set", "NIC [uid USER] KEYWORD VALUE...", "change limits; nic and user show tell them",
	  set_params, limit_set },
	{ "reset", "NIC uid USER", "take a user's own limits away", reset_params, limit_reset },
	{ 0 }
};

const struct object limit_object = { "limit", "what users may have", verbs };
