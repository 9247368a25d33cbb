// SPDX-License-Identifier: GPL-2.0-only
/* The last packets that were rejected. */
#include "record/output.h"

static const struct field audit_fields[] = {
	{ "nic", HAMLYN_A_NIC, FIELD_NIC, NULL, NULL },
	{ "sequence", HAMLYN_A_SEQUENCE, FIELD_NUMBER, NULL, NULL },
	{ "time-ns", HAMLYN_A_TIME_NS, FIELD_TIME, NULL, NULL },
	{ "reason", HAMLYN_A_REASON, FIELD_WORD, reason_names, NULL },
	{ "source", HAMLYN_A_SOURCE, FIELD_NUMBER, NULL, NULL },
	{ "slot", HAMLYN_A_SLOT, FIELD_NUMBER, NULL, NULL },
	{ "offset", HAMLYN_A_OFFSET, FIELD_NUMBER, NULL, NULL },
	{ "length", HAMLYN_A_LENGTH, FIELD_NUMBER, NULL, NULL },
	{ "pid", HAMLYN_A_PID, FIELD_NUMBER, NULL, NULL },
	{ "uid", HAMLYN_A_UID, FIELD_USER, NULL, NULL },
	{ "context", HAMLYN_A_CONTEXT, FIELD_NUMBER, NULL, NULL },
	{ 0 }
};

static int audit_show(const struct options *options, const struct verb *verb, struct words *words)
{
	(void)verb;
	return show_objects(options, words, HAMLYN_NL_CMD_AUDIT_GET, true, audit_fields);
}

static const struct verb verbs[] = {
	{ "show", "[NIC [context ID]]", "the last packets that were rejected, oldest first", NULL,
	  audit_show },
	{ 0 }
};

const struct object audit_object = { "audit", "rejected packets", verbs };
