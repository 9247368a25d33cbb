// SPDX-License-Identifier: GPL-2.0-only
/* Counters of NICs. */
#include "record/output.h"

static const struct field stats_fields[] = {
	{ "nic", HAMLYN_A_NIC, FIELD_NIC, NULL, NULL },
	{ "messages", HAMLYN_A_MESSAGES, FIELD_NUMBER, NULL, NULL },
	{ "packets", HAMLYN_A_PACKETS, FIELD_NUMBER, NULL, NULL },
	{ "bytes", HAMLYN_A_BYTES, FIELD_NUMBER, NULL, NULL },
	{ "failed", HAMLYN_A_FAILED, FIELD_NUMBER, NULL, NULL },
	{ "notifications", HAMLYN_A_NOTIFICATIONS, FIELD_NUMBER, NULL, NULL },
	{ "overruns", HAMLYN_A_OVERRUNS, FIELD_NUMBER, NULL, NULL },
	{ "kicks", HAMLYN_A_KICKS, FIELD_NUMBER, NULL, NULL },
	{ "pauses", HAMLYN_A_PAUSES, FIELD_NUMBER, NULL, NULL },
	{ "rejects", HAMLYN_A_REJECTS, FIELD_NEST, NULL, reject_fields },
	{ 0 }
};

static int stats_show(const struct options *options, const struct verb *verb, struct words *words)
{
	(void)verb;
	return show_nics(options, words, HAMLYN_NL_CMD_STATS_GET, stats_fields);
}

static const struct verb verbs[] = {
	{ "show", "[NIC]", "counters of NICs", NULL, stats_show },
	{ 0 }
};

const struct object stats_object = { "stats", "counters", verbs };
