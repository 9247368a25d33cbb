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

/* Limits of a user without limits in them: none of its own. */
static int send_limits(const struct nic_name *nic, const struct values *values)
{
	struct netlink nl;
	struct nl_msg *msg;
	int status = netlink_open(&nl);

	if (status)
		return status;
	msg = netlink_message(&nl, HAMLYN_NL_CMD_LIMIT_SET);
	netlink_put_nic(msg, nic);
	netlink_put_values(msg, values);
	status = netlink_order(&nl, msg, nic->label);
	netlink_close(&nl);
	return status;
}

static int limit_set(const struct options *options, const struct verb *verb, struct words *words)
{
	struct values values = { .count = 0 };
	struct nic_name nic;
	int status = words_take_nic(words, &nic);

	(void)options;
	if (!status)
		status = params_parse(verb->params, words, &values);
	if (!status && values.count == (values_find(&values, "uid") ? 1 : 0))
		status = misused("set which limit? (see hamlynctl limit set --help)");
	return status ? status : send_limits(&nic, &values);
}

static int limit_reset(const struct options *options, const struct verb *verb,
		       struct words *words)
{
	struct values values = { .count = 0 };
	struct nic_name nic;
	int status = words_take_nic(words, &nic);

	(void)options;
	if (!status)
		status = params_parse(verb->params, words, &values);
	if (!status && !values.count)
		status = misused("of which user? say uid USER");
	return status ? status : send_limits(&nic, &values);
}

static const struct verb verbs[] = {
	{ "set", "NIC [uid USER] KEYWORD VALUE...", "change limits; nic and user show tell them",
	  set_params, limit_set },
	{ "reset", "NIC uid USER", "take a user's own limits away", reset_params, limit_reset },
	{ 0 }
};

const struct object limit_object = { "limit", "what users may have", verbs };
