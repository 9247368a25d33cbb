// SPDX-License-Identifier: GPL-2.0-only
/* Events, as they happen. */
#include <errno.h>

#include "record/output.h"

static const struct field peer_fields[] = {
	{ "peer", HAMLYN_A_PEER_HOST, FIELD_NUMBER, NULL, NULL },
	{ "reason", HAMLYN_A_PEER_REASON, FIELD_WORD, peer_reason_names, NULL },
	{ 0 }
};

static const struct field event_fields[] = {
	{ "event", HAMLYN_A_EVENT, FIELD_WORD, event_names, NULL },
	{ "nic", HAMLYN_A_NIC, FIELD_NIC, NULL, NULL },
	{ "context", HAMLYN_A_CONTEXT, FIELD_NUMBER, NULL, NULL },
	{ "id", HAMLYN_A_ID, FIELD_NUMBER, NULL, NULL },
	{ "pid", HAMLYN_A_PID, FIELD_NUMBER, NULL, NULL },
	{ "uid", HAMLYN_A_UID, FIELD_USER, NULL, NULL },
	{ "paused-ms", HAMLYN_A_PAUSED_MS, FIELD_NUMBER, NULL, NULL },
	{ "slots", HAMLYN_A_SLOTS, FIELD_NUMBER, NULL, NULL },
	{ "termini", HAMLYN_A_TERMINI, FIELD_NUMBER, NULL, NULL },
	{ "kernel-bytes", HAMLYN_A_KERNEL_BYTES, FIELD_SIZE, NULL, NULL },
	{ "wired-bytes", HAMLYN_A_WIRED_BYTES, FIELD_SIZE, NULL, NULL },
	{ "peer", HAMLYN_A_PEER, FIELD_PART, NULL, peer_fields },
	{ 0 }
};

static int print_events(struct netlink *nl, struct output *out)
{
	struct replies replies = { 0 };
	int err = netlink_events(nl, &replies);
	int status = STATUS_OK;
	size_t i;

	for (i = 0; i < replies.count && !status; i++)
		if (netlink_command(replies.at[i]) == HAMLYN_NL_CMD_EVENT)
			status = output_record(out, replies.at[i]);
	replies_free(&replies);
	if (err == -ENOBUFS)
		warn("events were lost: they came faster than they could be printed");
	else if (err && !status)
		status = netlink_refused(nl, "events", err);
	return status ? status : output_check();
}

static int monitor(const struct options *options, const struct verb *verb, struct words *words)
{
	struct output out;
	struct netlink nl;
	int status = words_end(words);

	(void)verb;
	if (!status)
		status = netlink_open(&nl);
	if (status)
		return status;
	status = netlink_join_events(&nl);
	output_begin(&out, options, event_fields, LAYOUT_EVENT);
	stop_on_signal();
	while (!status && !stop_asked())
		if (stop_wait(nl_socket_get_fd(nl.sock), -1))
			status = print_events(&nl, &out);
	netlink_close(&nl);
	return status;
}

static const struct verb verbs[] = {
	{ "", "", "print events until interrupted, one a line", NULL, monitor },
	{ 0 }
};

const struct object monitor_object = { "monitor", "events, as they happen", verbs };
