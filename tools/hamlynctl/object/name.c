// SPDX-License-Identifier: GPL-2.0-only
/* Names by which processes of all hosts call. */
#include "record/output.h"

static const struct field name_fields[] = {
	{ "nic", HAMLYN_A_NIC, FIELD_NIC, NULL, NULL },
	{ "called-name", HAMLYN_A_CALLED_NAME, FIELD_TEXT, NULL, NULL },
	{ "uid", HAMLYN_A_UID, FIELD_USER, NULL, NULL },
	{ "pid", HAMLYN_A_PID, FIELD_NUMBER, NULL, NULL },
	{ "waiting", HAMLYN_A_WAITING, FIELD_NUMBER, NULL, NULL },
	{ "calls", HAMLYN_A_CALLS, FIELD_NUMBER, NULL, NULL },
	{ 0 }
};

static int name_show(const struct options *options, const struct verb *verb, struct words *words)
{
	(void)verb;
	return show_objects(options, words, HAMLYN_NL_CMD_NAME_GET, false, name_fields);
}

static const struct verb verbs[] = {
	{ "show", "[NIC]", "the NAMEs of HOST/NAME that are taken, and how many have called", NULL,
	  name_show },
	{ 0 }
};

const struct object name_object = { "name", "names that other hosts can call", verbs };
