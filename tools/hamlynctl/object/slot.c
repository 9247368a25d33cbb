// SPDX-License-Identifier: GPL-2.0-only
/* Slots: where messages arrive. Keys are not told. */
#include "record/output.h"

static const struct field slot_fields[] = {
	{ "nic", HAMLYN_A_NIC, FIELD_NIC, NULL, NULL },
	{ "context", HAMLYN_A_CONTEXT, FIELD_NUMBER, NULL, NULL },
	{ "slot", HAMLYN_A_SLOT, FIELD_NUMBER, NULL, NULL },
	{ "mode", HAMLYN_A_SLOT_MODE, FIELD_WORD, slot_mode_names, NULL },
	{ "ticket-only", HAMLYN_A_TICKET_ONLY, FIELD_FLAG, NULL, NULL },
	{ "area", HAMLYN_A_AREA, FIELD_NUMBER, NULL, NULL },
	{ "base", HAMLYN_A_BASE, FIELD_SIZE, NULL, NULL },
	{ "length", HAMLYN_A_LENGTH, FIELD_SIZE, NULL, NULL },
	{ "meta-area", HAMLYN_A_META_AREA, FIELD_NUMBER, NULL, NULL },
	{ "meta-count", HAMLYN_A_META_COUNT, FIELD_NUMBER, NULL, NULL },
	{ "nq", HAMLYN_A_NQ, FIELD_NUMBER, NULL, NULL },
	{ "overruns", HAMLYN_A_OVERRUNS, FIELD_NUMBER, NULL, NULL },
	{ "rejects", HAMLYN_A_REJECTS, FIELD_NEST, NULL, reject_fields },
	{ 0 }
};

static int slot_show(const struct options *options, const struct verb *verb, struct words *words)
{
	(void)verb;
	return show_objects(options, words, HAMLYN_NL_CMD_SLOT_GET, true, slot_fields);
}

static const struct verb verbs[] = {
	{ "show", "[NIC [context ID]]", "slots, where they lead, what they rejected", NULL,
	  slot_show },
	{ 0 }
};

const struct object slot_object = { "slot", "destinations of messages", verbs };
