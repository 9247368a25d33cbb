// SPDX-License-Identifier: GPL-2.0-only
/* Peers: other hosts that a NIC reaches. */
#include <string.h>

#include "object/nic.h"
#include "record/output.h"

static const struct field peer_fields[] = {
	{ "host", HAMLYN_A_PEER_HOST, FIELD_NUMBER, NULL, NULL },
	{ "address", HAMLYN_A_PEER_ADDRESS, FIELD_ADDRESS, NULL, NULL },
	{ "port", HAMLYN_A_PEER_PORT, FIELD_NUMBER, NULL, NULL },
	{ "users", HAMLYN_A_PEER_USERS, FIELD_WORD, peer_users_names, NULL },
	{ "user-map", HAMLYN_A_PEER_USER_MAP, FIELD_USER_MAP, NULL, NULL },
	{ "state", HAMLYN_A_PEER_STATE, FIELD_WORD, peer_state_names, NULL },
	{ "reason", HAMLYN_A_PEER_REASON, FIELD_WORD, peer_reason_names, NULL },
	{ "epoch", HAMLYN_A_PEER_EPOCH, FIELD_NUMBER, NULL, NULL },
	{ "incarnation", HAMLYN_A_PEER_INCARNATION, FIELD_NUMBER, NULL, NULL },
	{ "rtt-us", HAMLYN_A_PEER_RTT_US, FIELD_NUMBER, NULL, NULL },
	{ "watches", HAMLYN_A_PEER_WATCHES, FIELD_NUMBER, NULL, NULL },
	{ "watched", HAMLYN_A_PEER_WATCHED, FIELD_NUMBER, NULL, NULL },
	{ "calls", HAMLYN_A_PEER_CALLS, FIELD_NUMBER, NULL, NULL },
	{ "called", HAMLYN_A_PEER_CALLED, FIELD_NUMBER, NULL, NULL },
	{ "sent-bytes", HAMLYN_A_PEER_SENT_BYTES, FIELD_NUMBER, NULL, NULL },
	{ "received-bytes", HAMLYN_A_PEER_RECEIVED_BYTES, FIELD_NUMBER, NULL, NULL },
	{ "sent-packets", HAMLYN_A_PEER_SENT_PACKETS, FIELD_NUMBER, NULL, NULL },
	{ "received-packets", HAMLYN_A_PEER_RECEIVED_PACKETS, FIELD_NUMBER, NULL, NULL },
	{ "stalls", HAMLYN_A_PEER_STALLS, FIELD_NUMBER, NULL, NULL },
	{ "dropped", HAMLYN_A_PEER_DROPPED, FIELD_NUMBER, NULL, NULL },
	{ "lost", HAMLYN_A_PEER_LOST, FIELD_NUMBER, NULL, NULL },
	{ "refused", HAMLYN_A_PEER_REFUSED, FIELD_NUMBER, NULL, NULL },
	{ 0 }
};

static const struct field record_fields[] = {
	{ "nic", HAMLYN_A_NIC, FIELD_NIC, NULL, NULL },
	{ "peer", HAMLYN_A_PEER, FIELD_PART, NULL, peer_fields },
	{ 0 }
};

#define PEER(name, value, what, kind, bits, attr, min, max) \
	{ name, value, what, kind, bits, attr, HAMLYN_A_PEER, min, max, NULL, NULL }
#define PARAM_HOST \
	PEER("host", "N", "host id of the peer", PARAM_NUMBER, 32, HAMLYN_A_PEER_HOST, 0, MAX_HOST)
#define PARAM_NIC_NETNS \
	{ "netns", "NAME|PATH|PID", "the network namespace that the NIC is in", PARAM_NETNS, 32, \
	  0, 0, 0, 0, NULL, NULL }

/* That it is a map is said by giving one. */
static const char *const users_words[] = { "none", "same", NULL };

static const struct param add_params[] = {
	PARAM_HOST,
	PEER("address", "ADDRESS", "its address, IPv4 or IPv6", PARAM_ADDRESS, 0,
	     HAMLYN_A_PEER_ADDRESS, 0, 0),
	PEER("port", "N", "its TCP port, else 927", PARAM_NUMBER, 16, HAMLYN_A_PEER_PORT, 1,
	     UINT16_MAX),
	{ "users", "same|none|FROM[-LAST]:TO,...",
	  "for whom its users are taken at HOST/NAME, else none", PARAM_USERS,
	  32, HAMLYN_A_PEER_USERS, HAMLYN_A_PEER, 0, 0, users_words, NULL },
	PARAM_NIC_NETNS,
	{ 0 }
};

static const struct param host_params[] = {
	PARAM_HOST,
	PARAM_NIC_NETNS,
	{ 0 }
};

static int need_host(const struct values *values)
{
	return values_find(values, "host") ? STATUS_OK :
					     misused("which peer? say host N");
}

int peer_add_parse(struct words *words, struct nic_name *nic, struct values *values)
{
	int status = params_parse_of_nic(add_params, words, nic, values);

	if (!status)
		status = need_host(values);
	if (!status && !values_find(values, "address"))
		status = misused("where is the peer? say address ADDRESS");
	return status;
}

static int order(uint8_t command, const struct nic_name *nic, const struct values *values)
{
	return netlink_order_nic(command, values_find(values, "netns"), nic, values);
}

static int peer_add(const struct options *options, const struct verb *verb, struct words *words)
{
	struct values values = { .count = 0 };
	struct nic_name nic;
	int status = peer_add_parse(words, &nic, &values);

	(void)options;
	(void)verb;
	return status ? status : order(HAMLYN_NL_CMD_PEER_NEW, &nic, &values);
}

static int peer_del(const struct options *options, const struct verb *verb, struct words *words)
{
	struct values values;
	struct nic_name nic;
	int status = params_parse_of_nic(verb->params, words, &nic, &values);

	(void)options;
	if (!status)
		status = need_host(&values);
	return status ? status : order(HAMLYN_NL_CMD_PEER_DEL, &nic, &values);
}

static int peer_show(const struct options *options, const struct verb *verb, struct words *words)
{
	struct values values = { .count = 0 };
	struct nic_name nic = { .label = "all NICs" };
	bool named = words->left && strcmp(words->at[0], "netns") &&
		     strcmp(words->at[0], "host");
	struct netlink nl;
	struct nl_msg *msg;
	int status = named ? words_take_nic(words, &nic) : STATUS_OK;

	if (!status)
		status = params_parse(verb->params, words, &values);
	if (!status && !named && values_find(&values, "host"))
		status = misused("host is an id of one NIC's peers: which NIC?");
	if (!status)
		status = netlink_open_in(&nl, values_find(&values, "netns"));
	if (status)
		return status;
	msg = netlink_message(&nl, HAMLYN_NL_CMD_PEER_GET);
	if (named)
		netlink_put_nic(msg, &nic);
	netlink_put_values(msg, &values);
	status = show(&nl, options, msg, true, nic.label, record_fields, LAYOUT_BLOCK);
	netlink_close(&nl);
	return status;
}

static const struct verb verbs[] = {
	{ "show", "[NIC [host N]] [netns NAME]", "what peers are and what passes", host_params,
	  peer_show },
	{ "add", "NIC host N address ADDRESS [port N]",
	  "let a NIC and another host reach each other", add_params, peer_add },
	{ "del", "NIC host N", "end that", host_params, peer_del },
	{ 0 }
};

const struct object peer_object = { "peer", "other hosts that NICs reach", verbs };
