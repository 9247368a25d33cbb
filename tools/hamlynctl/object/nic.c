// SPDX-License-Identifier: GPL-2.0-only
/* NICs: make, remove, set up, feed. */
#include <string.h>

#include "object/limit.h"
#include "object/nic.h"
#include "record/output.h"

#define MAX_WATCHDOG_MS	(24 * 60 * 60 * 1000)
#define MAX_US		10000000

static const struct field nic_fields[] = {
	{ "nic", HAMLYN_A_NIC, FIELD_NIC, NULL, NULL },
	{ "host", HAMLYN_A_HOST, FIELD_NUMBER, NULL, NULL },
	{ "state", HAMLYN_A_STATE, FIELD_WORD, state_names, NULL },
	{ "watchdog-ms", HAMLYN_A_WATCHDOG_MS, FIELD_NUMBER, NULL, NULL },
	{ "fed", HAMLYN_A_FED, FIELD_FLAG, NULL, NULL },
	{ "engine", HAMLYN_A_ENGINE_MODE, FIELD_WORD, engine_names, NULL },
	{ "engines", HAMLYN_A_ENGINES, FIELD_NUMBER, NULL, NULL },
	{ "idle-us", HAMLYN_A_IDLE_US, FIELD_NUMBER, NULL, NULL },
	{ "kick-window-us", HAMLYN_A_KICK_WINDOW_US, FIELD_NUMBER, NULL, NULL },
	{ "packet-size", HAMLYN_A_PACKET_SIZE, FIELD_SIZE, NULL, NULL },
	{ "max-slots", HAMLYN_A_MAX_SLOTS, FIELD_SIZE, NULL, NULL },
	{ "guesses", HAMLYN_A_GUESSES, FIELD_NUMBER, NULL, NULL },
	{ "fabric-id", HAMLYN_A_FABRIC_ID, FIELD_BYTES, NULL, NULL },
	{ "contexts", HAMLYN_A_CONTEXTS, FIELD_NUMBER, NULL, NULL },
	{ "areas", HAMLYN_A_AREAS, FIELD_NUMBER, NULL, NULL },
	{ "slots", HAMLYN_A_SLOTS, FIELD_NUMBER, NULL, NULL },
	{ "nqs", HAMLYN_A_NQS, FIELD_NUMBER, NULL, NULL },
	{ "termini", HAMLYN_A_TERMINI, FIELD_NUMBER, NULL, NULL },
	{ "kernel-bytes", HAMLYN_A_KERNEL_BYTES, FIELD_SIZE, NULL, NULL },
	{ "wired-bytes", HAMLYN_A_WIRED_BYTES, FIELD_SIZE, NULL, NULL },
	{ "fabric", HAMLYN_A_FABRIC, FIELD_NEST, NULL, fabric_fields },
	{ "adversary", HAMLYN_A_ADVERSARY, FIELD_NEST, NULL, adversary_fields },
	{ "limits", HAMLYN_A_LIMITS, FIELD_NEST, NULL, limit_fields },
	{ 0 }
};

static const struct field made_fields[] = {
	{ "nic", HAMLYN_A_NIC, FIELD_NIC, NULL, NULL },
	{ 0 }
};

#define PARAM(name, value, what, kind, attr, min, max) \
	{ name, value, what, kind, 32, attr, 0, min, max, NULL, NULL }
#define RATE(name, what, attr) \
	{ name, "RATE", what, PARAM_RATE, 32, attr, HAMLYN_A_ADVERSARY, 0, 0, NULL, NULL }

#define FABRIC(name, value, what, kind, bits, attr, min, max, names) \
	{ name, value, what, kind, bits, attr, HAMLYN_A_FABRIC, min, max, names, NULL }
#define FABRIC_NAME	"hamlyn"

/* Ranges are those of the netlink policy; the driver's own may be narrower. */
static const struct param set_params[] = {
	PARAM("up", NULL, "in operation", PARAM_SET, HAMLYN_A_STATE, HAMLYN_NL_STATE_UP, 0),
	PARAM("down", NULL, "accepts packets and discards them", PARAM_SET, HAMLYN_A_STATE,
	      HAMLYN_NL_STATE_DOWN, 0),
	PARAM("watchdog-ms", "MS", "goes down when not fed for that long; 0: no watchdog",
	      PARAM_NUMBER, HAMLYN_A_WATCHDOG_MS, 0, MAX_WATCHDOG_MS),
	PARAM("idle-us", "US", "without work until a terminus is no longer polled", PARAM_NUMBER,
	      HAMLYN_A_IDLE_US, 0, MAX_US),
	PARAM("kick-window-us", "US", "doorbells closer together make the engine poll",
	      PARAM_NUMBER, HAMLYN_A_KICK_WINDOW_US, 0, MAX_US),
	PARAM("guesses", "N", "wrong keys a second of a user; 0: no limit",
	      PARAM_NUMBER, HAMLYN_A_GUESSES, 0, UINT32_MAX),
	PARAM("netns", "NAME|PATH|PID",
	      "the network namespace to be in; with set, the only keyword",
	      PARAM_NETNS, HAMLYN_A_NETNS_FD, 0, 0),
	PARAM("adversary", NULL, "what the fabric does to packets on purpose, one or more of:",
	      PARAM_GROUP, HAMLYN_A_ADVERSARY, 0, 0),
	RATE("drop", "packets are lost", HAMLYN_A_ADV_DROP),
	RATE("duplicate", "packets arrive twice", HAMLYN_A_ADV_DUPLICATE),
	RATE("corrupt", "packets arrive changed", HAMLYN_A_ADV_CORRUPT),
	RATE("reorder", "packets are overtaken", HAMLYN_A_ADV_REORDER),
	{ "delay-us", "US", "every packet is late", PARAM_NUMBER, 32, HAMLYN_A_ADV_DELAY_US,
	  HAMLYN_A_ADVERSARY, 0, MAX_US, NULL, NULL },
	RATE("stall", "no more packets are taken for a while", HAMLYN_A_ADV_STALL),
	{ "seed", "N", "of its random numbers", PARAM_NUMBER, 64, HAMLYN_A_ADV_SEED,
	  HAMLYN_A_ADVERSARY, 0, UINT64_MAX, NULL, NULL },
	{ "off", NULL, "nothing of all that", PARAM_OFF, 0, 0, HAMLYN_A_ADVERSARY, 0, 0, NULL,
	  NULL },
	{ 0 }
};

static const char *const security_names[] = { "encrypted", "clear", NULL };

const struct param nic_add_params[] = {
	PARAM("index", "N", "the N of /dev/hamlynN, else the first free one", PARAM_NUMBER,
	      HAMLYN_A_NIC, 0, MAX_NIC),
	PARAM("host", "N", "host id on the fabric; on loop, else the first free one", PARAM_NUMBER,
	      HAMLYN_A_HOST, 0, MAX_HOST),
	FABRIC("fabric", "loop|tcp", "to NICs of this kernel, or to other hosts", PARAM_WORD, 32,
	       HAMLYN_A_FAB_KIND, 0, 0, fabric_names),
	FABRIC("id", "HEX32", "of the fabric, the same on all of its hosts", PARAM_ID, 0,
	       HAMLYN_A_FAB_ID, 0, 0, NULL),
	FABRIC("id-from", "NAME", "an id made from a name; else from " FABRIC_NAME, PARAM_ID_FROM,
	       0, HAMLYN_A_FAB_ID, 0, 0, NULL),
	FABRIC("device", "NAME", "WireGuard device that packets come and go by", PARAM_DEVICE, 0,
	       HAMLYN_A_FAB_DEVICE, 0, 0, NULL),
	FABRIC("address", "ADDRESS", "own address, IPv4 or IPv6", PARAM_ADDRESS, 0,
	       HAMLYN_A_FAB_ADDRESS, 0, 0, NULL),
	FABRIC("port", "N", "TCP port at that address, else 927", PARAM_NUMBER, 16,
	       HAMLYN_A_FAB_PORT, 1, UINT16_MAX, NULL),
	FABRIC("security", "encrypted|clear", "clear: all on the way may read and change",
	       PARAM_WORD, 0, HAMLYN_A_FAB_CLEAR, 0, 0, security_names),
	FABRIC("dead-ms", "MS", "a peer not heard for so long is dead, else 5000", PARAM_NUMBER,
	       32, HAMLYN_A_FAB_DEAD_MS, 100, 600000, NULL),
	FABRIC("stall-ms", "MS", "so is one that takes nothing for so long, else 1000",
	       PARAM_NUMBER, 32, HAMLYN_A_FAB_STALL_MS, 100, 600000, NULL),
	{ "engine", "poll|inline", "polling threads, or the kicking caller", PARAM_WORD, 32,
	  HAMLYN_A_ENGINE_MODE, 0, 0, 0, engine_names, NULL },
	PARAM("engines", "N", "polling threads", PARAM_NUMBER, HAMLYN_A_ENGINES, 1, 16),
	PARAM("packet-size", "SIZE", "most payload bytes of a packet", PARAM_SIZE,
	      HAMLYN_A_PACKET_SIZE, 1024, 65536),
	PARAM("max-slots", "N", "slots of the NIC", PARAM_SIZE, HAMLYN_A_MAX_SLOTS, 1, 1048576),
	PARAM("limits", NULL, "what its users may have, one or more of:", PARAM_GROUP,
	      HAMLYN_A_LIMITS, 0, 0),
	PARAM_KERNEL_MEMORY,
	PARAM_USER_KERNEL_MEMORY,
	PARAM_USER_WIRED_MEMORY,
	PARAM_USER_SLOTS,
	PARAM_USER_TERMINI,
	{ .more = set_params }
};

static const struct param feed_params[] = {
	PARAM("every", "MS", "else a third of the watchdog's time", PARAM_LOCAL, 0, 1,
	      MAX_WATCHDOG_MS),
	PARAM("count", "N", "that many times, else until interrupted", PARAM_LOCAL, 0, 1,
	      UINT32_MAX),
	{ 0 }
};

static int nic_show(const struct options *options, const struct verb *verb, struct words *words)
{
	(void)verb;
	return show_nics(options, words, HAMLYN_NL_CMD_NIC_GET, nic_fields);
}

/* A default of a fabric between hosts, if nothing else was given. */
static int add_default(struct values *values, const char *name, const unsigned char *bytes)
{
	struct value value = { .param = nic_add_params };
	size_t i;

	while (strcmp(value.param->name, name))
		value.param = param_here(value.param + 1);
	for (i = 0; i < values->count; i++)
		if (values->at[i].param->group == value.param->group &&
		    values->at[i].param->attr == value.param->attr)
			return STATUS_OK;
	if (bytes) {
		value.length = VALUE_BYTES;
		memcpy(value.bytes, bytes, VALUE_BYTES);
	}
	return values_add(values, &value);
}

int nic_add_parse(struct words *words, struct values *values)
{
	int status = params_parse(nic_add_params, words, values);
	const struct value *fabric = values_find(values, "fabric");
	unsigned char id[VALUE_BYTES];

	if (status || !fabric || fabric->number != HAMLYN_NL_FABRIC_TCP)
		return status;
	if (!values_find(values, "host"))
		return misused("host is needed: the NIC's own id on a fabric between hosts");
	if (!values_find(values, "address"))
		return misused("address is needed: the NIC's own, of this host");
	id_from_name(FABRIC_NAME, id);
	status = add_default(values, "id", id);
	return status ? status : add_default(values, "security", NULL);
}

static int nic_add(const struct options *options, const struct verb *verb, struct words *words)
{
	struct netlink nl;
	struct nl_msg *msg;
	struct values values;
	int status = nic_add_parse(words, &values);

	(void)verb;
	if (!status)
		status = netlink_open(&nl);
	if (status)
		return status;
	msg = netlink_message(&nl, HAMLYN_NL_CMD_NIC_NEW);
	netlink_put_values(msg, &values);
	status = show(&nl, options, msg, false, "new NIC", made_fields, LAYOUT_EVENT);
	netlink_close(&nl);
	return status;
}

static int nic_del(const struct options *options, const struct verb *verb, struct words *words)
{
	struct nic_name nic;
	int status = words_take_nic(words, &nic);

	(void)options;
	(void)verb;
	if (!status)
		status = words_end(words);
	return status ? status : netlink_order_nic(HAMLYN_NL_CMD_NIC_DEL, NULL, &nic, NULL);
}

static int nic_set(const struct options *options, const struct verb *verb, struct words *words)
{
	struct values values;
	struct nic_name nic;
	int status = params_parse_of_nic(verb->params, words, &nic, &values);

	(void)options;
	if (!status && !values.count)
		status = misused("set what? (see nic set --help)");
	return status ? status : netlink_order_nic(HAMLYN_NL_CMD_NIC_SET, NULL, &nic, &values);
}

/* ---- feeding ------------------------------------------------------------ */

/* A third of the watchdog's time: two feedings may come late or get lost. */
static int third_of_watchdog(struct netlink *nl, const struct nic_name *nic, uint64_t *every)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];
	struct replies replies = { 0 };
	struct nl_msg *msg = netlink_message(nl, HAMLYN_NL_CMD_NIC_GET);
	int err, status = STATUS_OK;

	netlink_put_nic(msg, nic);
	*every = 0;
	err = netlink_do(nl, msg, &replies);
	if (!err && replies.count && !netlink_attrs(replies.at[0], attrs) &&
	    attrs[HAMLYN_A_WATCHDOG_MS])
		attr_number(attrs[HAMLYN_A_WATCHDOG_MS], every);
	if (err)
		status = netlink_refused(nl, nic->label, err);
	else if (!*every)
		status = refused("%s: has no watchdog; set one with nic set, or say every MS",
				 nic->label);
	replies_free(&replies);
	*every = *every < 3 ? 1 : *every / 3;
	return status;
}

static int feed(struct netlink *nl, const struct nic_name *nic, uint64_t every, uint64_t count)
{
	uint64_t i;
	struct nl_msg *msg;
	int status;

	stop_on_signal();
	for (i = 0; !stop_asked(); ) {
		msg = netlink_message(nl, HAMLYN_NL_CMD_NIC_FEED);
		netlink_put_nic(msg, nic);
		status = netlink_order(nl, msg, nic->label);
		if (status || ++i == count)
			return status;
		stop_wait(-1, (int)every);
	}
	return STATUS_OK;
}

static int nic_feed(const struct options *options, const struct verb *verb, struct words *words)
{
	const struct value *every, *count;
	struct values values;
	struct nic_name nic;
	struct netlink nl;
	uint64_t period = 0;
	int status = params_parse_of_nic(verb->params, words, &nic, &values);

	(void)options;
	if (!status)
		status = netlink_open(&nl);
	if (status)
		return status;
	every = values_find(&values, "every");
	count = values_find(&values, "count");
	if (every)
		period = every->number;
	else
		status = third_of_watchdog(&nl, &nic, &period);
	if (!status)
		status = feed(&nl, &nic, period, count ? count->number : 0);
	netlink_close(&nl);
	return status;
}

static const struct verb verbs[] = {
	{ "show", "[NIC]", "what NICs are and how they are set up", NULL, nic_show },
	{ "add", "[KEYWORD VALUE]...", "make a NIC and tell which it is", nic_add_params, nic_add },
	{ "del", "NIC", "remove a NIC that nobody has open", NULL, nic_del },
	{ "set", "NIC KEYWORD [VALUE]...", "change a NIC, all or nothing", set_params, nic_set },
	{ "feed", "NIC [every MS] [count N]", "keep its watchdog satisfied", feed_params,
	  nic_feed },
	{ 0 }
};

const struct object nic_object = { "nic", "network interfaces", verbs };
