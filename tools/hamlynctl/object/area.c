// SPDX-License-Identifier: GPL-2.0-only
/* Areas: memory that messages come from and go to. */
#include "record/output.h"

static const struct field area_fields[] = {
	{ "nic", HAMLYN_A_NIC, FIELD_NIC, NULL, NULL },
	{ "context", HAMLYN_A_CONTEXT, FIELD_NUMBER, NULL, NULL },
	{ "id", HAMLYN_A_ID, FIELD_NUMBER, NULL, NULL },
	{ "length", HAMLYN_A_LENGTH, FIELD_SIZE, NULL, NULL },
	{ "readonly", HAMLYN_A_READONLY, FIELD_FLAG, NULL, NULL },
	{ "allocated", HAMLYN_A_ALLOCATED, FIELD_FLAG, NULL, NULL },
	{ "users", HAMLYN_A_USERS, FIELD_NUMBER, NULL, NULL },
	{ 0 }
};

static int area_show(const struct options *options, const struct verb *verb, struct words *words)
{
	(void)verb;
	return show_objects(options, words, HAMLYN_NL_CMD_AREA_GET, true, area_fields);
}

static const struct verb verbs[] = {
	{ "show", "[NIC [context ID]]", "areas, how long they are, how many objects use them", NULL,
	  area_show },
	{ 0 }
};

const struct object area_object = { "area", "memory for messages", verbs };
