// SPDX-License-Identifier: GPL-2.0-only
/* Users: what each has of a NIC, and may have. */
#include "record/output.h"

static const struct field user_fields[] = {
	{ "nic", HAMLYN_A_NIC, FIELD_NIC, NULL, NULL },
	{ "uid", HAMLYN_A_UID, FIELD_USER, NULL, NULL },
	{ "contexts", HAMLYN_A_CONTEXTS, FIELD_NUMBER, NULL, NULL },
	{ "slots", HAMLYN_A_SLOTS, FIELD_NUMBER, NULL, NULL },
	{ "termini", HAMLYN_A_TERMINI, FIELD_NUMBER, NULL, NULL },
	{ "kernel-bytes", HAMLYN_A_KERNEL_BYTES, FIELD_SIZE, NULL, NULL },
	{ "wired-bytes", HAMLYN_A_WIRED_BYTES, FIELD_SIZE, NULL, NULL },
	{ "limits", HAMLYN_A_LIMITS, FIELD_NEST, NULL, limit_fields },
	{ 0 }
};

static int user_show(const struct options *options, const struct verb *verb, struct words *words)
{
	(void)verb;
	return show_objects(options, words, HAMLYN_NL_CMD_USER_GET, false, user_fields);
}

static const struct verb verbs[] = {
	{ "show", "[NIC]", "what users have, and limits of their own", NULL,
	  user_show },
	{ 0 }
};

const struct object user_object = { "user", "users of NICs", verbs };
