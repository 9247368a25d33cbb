// SPDX-License-Identifier: GPL-2.0-only
/* Notification queues. */
#include "record/output.h"

static const struct field nq_fields[] = {
	{ "nic", HAMLYN_A_NIC, FIELD_NIC, NULL, NULL },
	{ "context", HAMLYN_A_CONTEXT, FIELD_NUMBER, NULL, NULL },
	{ "id", HAMLYN_A_ID, FIELD_NUMBER, NULL, NULL },
	{ "entries", HAMLYN_A_ENTRIES, FIELD_NUMBER, NULL, NULL },
	{ "used", HAMLYN_A_USED, FIELD_NUMBER, NULL, NULL },
	{ "lost", HAMLYN_A_LOST, FIELD_NUMBER, NULL, NULL },
	{ "slots", HAMLYN_A_SLOTS, FIELD_NUMBER, NULL, NULL },
	{ "armed", HAMLYN_A_ARMED, FIELD_FLAG, NULL, NULL },
	{ 0 }
};

static int nq_show(const struct options *options, const struct verb *verb, struct words *words)
{
	(void)verb;
	return show_objects(options, words, HAMLYN_NL_CMD_NQ_GET, true, nq_fields);
}

static const struct verb verbs[] = {
	{ "show", "[NIC [context ID]]", "queues, how full they are, what was lost", NULL,
	  nq_show },
	{ 0 }
};

const struct object nq_object = { "nq", "notification queues", verbs };
