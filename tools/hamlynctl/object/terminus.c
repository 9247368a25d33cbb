// SPDX-License-Identifier: GPL-2.0-only
/* Termini: work queues of senders. */
#include "record/output.h"

static const struct field terminus_fields[] = {
	{ "nic", HAMLYN_A_NIC, FIELD_NIC, NULL, NULL },
	{ "context", HAMLYN_A_CONTEXT, FIELD_NUMBER, NULL, NULL },
	{ "id", HAMLYN_A_ID, FIELD_NUMBER, NULL, NULL },
	{ "entries", HAMLYN_A_ENTRIES, FIELD_NUMBER, NULL, NULL },
	{ "entry-size", HAMLYN_A_ENTRY_SIZE, FIELD_NUMBER, NULL, NULL },
	{ "priority", HAMLYN_A_PRIORITY, FIELD_WORD, priority_names, NULL },
	{ "weight", HAMLYN_A_WEIGHT, FIELD_NUMBER, NULL, NULL },
	{ "pending", HAMLYN_A_PENDING, FIELD_NUMBER, NULL, NULL },
	{ "active", HAMLYN_A_ACTIVE, FIELD_FLAG, NULL, NULL },
	{ "paused-ms", HAMLYN_A_PAUSED_MS, FIELD_NUMBER, NULL, NULL },
	{ "tags", HAMLYN_A_TAGS, FIELD_NUMBER, NULL, NULL },
	{ "messages", HAMLYN_A_MESSAGES, FIELD_NUMBER, NULL, NULL },
	{ "packets", HAMLYN_A_PACKETS, FIELD_NUMBER, NULL, NULL },
	{ "bytes", HAMLYN_A_BYTES, FIELD_NUMBER, NULL, NULL },
	{ "failed", HAMLYN_A_FAILED, FIELD_NUMBER, NULL, NULL },
	{ "kicks", HAMLYN_A_KICKS, FIELD_NUMBER, NULL, NULL },
	{ 0 }
};

static const struct param set_params[] = {
	{ "priority", "high|normal|bulk", "while a higher one has packets no lower one sends",
	  PARAM_WORD, 32, HAMLYN_A_PRIORITY, 0, 0, 0, priority_names, NULL },
	{ "weight", "N", "share among the termini of its priority", PARAM_NUMBER, 32,
	  HAMLYN_A_WEIGHT, 0, 1, 64, NULL, NULL },
	{ 0 }
};

static int terminus_show(const struct options *options, const struct verb *verb,
			 struct words *words)
{
	(void)verb;
	return show_objects(options, words, HAMLYN_NL_CMD_TERMINUS_GET, true, terminus_fields);
}

static int send_change(const struct nic_name *nic, uint32_t context, uint32_t id,
		       const struct values *values)
{
	struct netlink nl;
	struct nl_msg *msg;
	int status = netlink_open(&nl);

	if (status)
		return status;
	msg = netlink_message(&nl, HAMLYN_NL_CMD_TERMINUS_SET);
	netlink_put_nic(msg, nic);
	netlink_put_u32(msg, HAMLYN_A_CONTEXT, context);
	netlink_put_u32(msg, HAMLYN_A_ID, id);
	netlink_put_values(msg, values);
	status = netlink_order(&nl, msg, nic->label);
	netlink_close(&nl);
	return status;
}

static int terminus_set(const struct options *options, const struct verb *verb,
			struct words *words)
{
	struct values values = { .count = 0 };
	uint32_t context = 0, id = 0;
	struct nic_name nic;
	int status = words_take_nic(words, &nic);

	(void)options;
	if (!status)
		status = words_take_id(words, "context", &context);
	if (!status)
		status = words_take_id(words, "terminus", &id);
	if (!status)
		status = params_parse(verb->params, words, &values);
	if (!status && !values.count)
		status = misused("set what? priority or weight");
	return status ? status : send_change(&nic, context, id, &values);
}

static const struct verb verbs[] = {
	{ "show", "[NIC [context ID]]", "work queues, their place in the order, what they sent",
	  NULL, terminus_show },
	{ "set", "NIC CONTEXT ID KEYWORD VALUE...", "change its place in the order of service",
	  set_params, terminus_set },
	{ 0 }
};

const struct object terminus_object = { "terminus", "work queues of senders", verbs };
