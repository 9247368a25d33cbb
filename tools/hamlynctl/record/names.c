// SPDX-License-Identifier: GPL-2.0-only
/* Words for the kernel's numbers, and fields that several objects have. */
#include "record/output.h"

const char *const state_names[] = {
	[HAMLYN_NL_STATE_UP] = "up",
	[HAMLYN_NL_STATE_DOWN] = "down",
	[HAMLYN_NL_STATE_UNFED] = "unfed",
	NULL
};

const char *const engine_names[] = {
	[HAMLYN_NL_ENGINE_INLINE] = "inline",
	[HAMLYN_NL_ENGINE_POLL] = "poll",
	NULL
};

const char *const slot_mode_names[] = {
	[HAMLYN_NL_SLOT_MODE_NORMAL] = "normal",
	[HAMLYN_NL_SLOT_MODE_PARANOID] = "paranoid",
	[HAMLYN_NL_SLOT_MODE_PARANOID_ONE_SHOT] = "paranoid-one-shot",
	NULL
};

const char *const priority_names[] = {
	[HAMLYN_NL_PRIORITY_NORMAL] = "normal",
	[HAMLYN_NL_PRIORITY_BULK] = "bulk",
	[HAMLYN_NL_PRIORITY_HIGH] = "high",
	NULL
};

const char *const reason_names[] = {
	[HAMLYN_NL_REASON_SLOT] = "slot",
	[HAMLYN_NL_REASON_KEY] = "key",
	[HAMLYN_NL_REASON_BOUNDS] = "bounds",
	[HAMLYN_NL_REASON_METADATA] = "metadata",
	[HAMLYN_NL_REASON_FORMAT] = "format",
	[HAMLYN_NL_REASON_ONE_SHOT] = "one-shot",
	[HAMLYN_NL_REASON_TICKET] = "ticket",
	[HAMLYN_NL_REASON_DOWN] = "down",
	NULL
};

const char *const event_names[] = {
	[HAMLYN_NL_EVENT_NIC_NEW] = "nic-new",
	[HAMLYN_NL_EVENT_NIC_DEL] = "nic-del",
	[HAMLYN_NL_EVENT_NIC_UP] = "nic-up",
	[HAMLYN_NL_EVENT_NIC_DOWN] = "nic-down",
	[HAMLYN_NL_EVENT_CONTEXT_OPEN] = "context-open",
	[HAMLYN_NL_EVENT_CONTEXT_CLOSE] = "context-close",
	[HAMLYN_NL_EVENT_TERMINUS_PAUSED] = "terminus-paused",
	[HAMLYN_NL_EVENT_QUOTA] = "quota",
	[HAMLYN_NL_EVENT_PEER_UP] = "peer-up",
	[HAMLYN_NL_EVENT_PEER_DOWN] = "peer-down",
	NULL
};

const char *const fabric_names[] = {
	[HAMLYN_NL_FABRIC_LOOP] = "loop",
	[HAMLYN_NL_FABRIC_TCP] = "tcp",
	NULL
};

const char *const peer_state_names[] = {
	[HAMLYN_NL_PEER_STATE_IDLE] = "idle",
	[HAMLYN_NL_PEER_STATE_CONNECTING] = "connecting",
	[HAMLYN_NL_PEER_STATE_UP] = "up",
	NULL
};

const char *const peer_users_names[] = {
	[HAMLYN_NL_PEER_USERS_NONE] = "none",
	[HAMLYN_NL_PEER_USERS_SAME] = "same",
	[HAMLYN_NL_PEER_USERS_MAP] = "map",
	NULL
};

const char *const peer_reason_names[] = {
	[HAMLYN_NL_PEER_REASON_NONE] = "none",
	[HAMLYN_NL_PEER_REASON_UNREACHABLE] = "unreachable",
	[HAMLYN_NL_PEER_REASON_CLOSED] = "closed",
	[HAMLYN_NL_PEER_REASON_DEAD] = "dead",
	[HAMLYN_NL_PEER_REASON_STALLED] = "stalled",
	[HAMLYN_NL_PEER_REASON_NONSENSE] = "nonsense",
	[HAMLYN_NL_PEER_REASON_OTHER_VERSION] = "other-version",
	[HAMLYN_NL_PEER_REASON_OTHER_FABRIC] = "other-fabric",
	[HAMLYN_NL_PEER_REASON_OTHER_HOST] = "other-host",
	[HAMLYN_NL_PEER_REASON_SAME_HOST] = "same-host",
	[HAMLYN_NL_PEER_REASON_OTHER_SIZE] = "other-size",
	[HAMLYN_NL_PEER_REASON_DOWN] = "down",
	NULL
};

/* Called as the keywords that set them. */
const struct field limit_fields[] = {
	{ "kernel-memory", HAMLYN_A_LIMITS_KERNEL_BYTES, FIELD_LIMIT, NULL, NULL },
	{ "user-kernel-memory", HAMLYN_A_LIMITS_USER_KERNEL_BYTES, FIELD_LIMIT, NULL, NULL },
	{ "user-wired-memory", HAMLYN_A_LIMITS_USER_WIRED_BYTES, FIELD_LIMIT, NULL, NULL },
	{ "user-slots", HAMLYN_A_LIMITS_USER_SLOTS, FIELD_LIMIT, NULL, NULL },
	{ "user-termini", HAMLYN_A_LIMITS_USER_TERMINI, FIELD_LIMIT, NULL, NULL },
	{ 0 }
};

const struct field reject_fields[] = {
	{ "slot", HAMLYN_A_REJECTS_SLOT, FIELD_NUMBER, NULL, NULL },
	{ "key", HAMLYN_A_REJECTS_KEY, FIELD_NUMBER, NULL, NULL },
	{ "bounds", HAMLYN_A_REJECTS_BOUNDS, FIELD_NUMBER, NULL, NULL },
	{ "metadata", HAMLYN_A_REJECTS_METADATA, FIELD_NUMBER, NULL, NULL },
	{ "format", HAMLYN_A_REJECTS_FORMAT, FIELD_NUMBER, NULL, NULL },
	{ "one-shot", HAMLYN_A_REJECTS_ONE_SHOT, FIELD_NUMBER, NULL, NULL },
	{ "ticket", HAMLYN_A_REJECTS_TICKET, FIELD_NUMBER, NULL, NULL },
	{ "down", HAMLYN_A_REJECTS_DOWN, FIELD_NUMBER, NULL, NULL },
	{ 0 }
};

const struct field adversary_fields[] = {
	{ "drop", HAMLYN_A_ADV_DROP, FIELD_RATE, NULL, NULL },
	{ "duplicate", HAMLYN_A_ADV_DUPLICATE, FIELD_RATE, NULL, NULL },
	{ "corrupt", HAMLYN_A_ADV_CORRUPT, FIELD_RATE, NULL, NULL },
	{ "reorder", HAMLYN_A_ADV_REORDER, FIELD_RATE, NULL, NULL },
	{ "delay-us", HAMLYN_A_ADV_DELAY_US, FIELD_NUMBER, NULL, NULL },
	{ "stall", HAMLYN_A_ADV_STALL, FIELD_RATE, NULL, NULL },
	{ "seed", HAMLYN_A_ADV_SEED, FIELD_NUMBER, NULL, NULL },
	{ 0 }
};

/* Called as the keywords that set them. */
const struct field fabric_fields[] = {
	{ "kind", HAMLYN_A_FAB_KIND, FIELD_WORD, fabric_names, NULL },
	{ "id", HAMLYN_A_FAB_ID, FIELD_BYTES, NULL, NULL },
	{ "address", HAMLYN_A_FAB_ADDRESS, FIELD_ADDRESS, NULL, NULL },
	{ "port", HAMLYN_A_FAB_PORT, FIELD_NUMBER, NULL, NULL },
	{ "device", HAMLYN_A_FAB_DEVICE, FIELD_TEXT, NULL, NULL },
	{ "clear", HAMLYN_A_FAB_CLEAR, FIELD_SET, NULL, NULL },
	{ "dead-ms", HAMLYN_A_FAB_DEAD_MS, FIELD_NUMBER, NULL, NULL },
	{ "stall-ms", HAMLYN_A_FAB_STALL_MS, FIELD_NUMBER, NULL, NULL },
	{ 0 }
};
