// SPDX-License-Identifier: GPL-2.0-only
/* Contexts: one is one open file of a NIC's device. */
#include "record/output.h"

static const struct field context_fields[] = {
	{ "nic", HAMLYN_A_NIC, FIELD_NIC, NULL, NULL },
	{ "context", HAMLYN_A_CONTEXT, FIELD_NUMBER, NULL, NULL },
	{ "pid", HAMLYN_A_PID, FIELD_NUMBER, NULL, NULL },
	{ "comm", HAMLYN_A_COMM, FIELD_TEXT, NULL, NULL },
	{ "uid", HAMLYN_A_UID, FIELD_USER, NULL, NULL },
	{ "areas", HAMLYN_A_AREAS, FIELD_NUMBER, NULL, NULL },
	{ "slots", HAMLYN_A_SLOTS, FIELD_NUMBER, NULL, NULL },
	{ "nqs", HAMLYN_A_NQS, FIELD_NUMBER, NULL, NULL },
	{ "termini", HAMLYN_A_TERMINI, FIELD_NUMBER, NULL, NULL },
	{ "watches", HAMLYN_A_WATCHES, FIELD_NUMBER, NULL, NULL },
	{ "kernel-bytes", HAMLYN_A_KERNEL_BYTES, FIELD_SIZE, NULL, NULL },
	{ "wired-bytes", HAMLYN_A_WIRED_BYTES, FIELD_SIZE, NULL, NULL },
	{ 0 }
};

static int context_show(const struct options *options, const struct verb *verb, struct words *words)
{
	(void)verb;
	return show_objects(options, words, HAMLYN_NL_CMD_CONTEXT_GET, false, context_fields);
}

static const struct verb verbs[] = {
	{ "show", "[NIC]", "who has NICs open, and what he has of them", NULL,
	  context_show },
	{ 0 }
};

const struct object context_object = { "context", "open files of NICs", verbs };
