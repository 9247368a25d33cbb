// SPDX-License-Identifier: GPL-2.0-only
/*
 * Metrics of NICs and peers. Labels are what an administrator has made (NICs, peers) and words of
 * lists (states, reasons): what users can make, contexts, slots, termini or user ids, is counted
 * and never a label, so that nobody can make the monitoring system keep more series.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "health/metrics.h"
#include "record/netlink.h"
#include "record/output.h"

enum kind {
	GAUGE,
	COUNTER,
	MICROSECONDS,	/* a gauge, told in seconds */
	STATE,		/* a gauge for each word, 1 for the one that holds */
	IS_UP,		/* a gauge: is the state up? */
	WORD,		/* 1, with the word as a label; nothing if it is the first one */
	REASONS,	/* a counter for each reason */
	NIC_INFO,
	PEER_INFO,
};

enum source {
	OF_NIC,
	OF_STATS,
	OF_PEER,
	SOURCES
};

struct family {
	const char *name;	/* without _total and _info */
	const char *unit;	/* the name ends with it */
	enum kind kind;
	enum source source;
	uint16_t attr;
	const char *help;
	const char *label;
	const char *const *words;
	size_t word_count;
};

#define PLAIN(name, unit, kind, source, attr, help) \
	{ "hamlyn_" name, unit, kind, source, attr, help, NULL, NULL, 0 }

static const struct family families[] = {
	PLAIN("nic", NULL, NIC_INFO, OF_NIC, 0, "What a NIC is."),
	{ "hamlyn_nic_state", NULL, STATE, OF_NIC, HAMLYN_A_STATE,
	  "State of a NIC: 1 for the one that it is in.", "state", state_names,
	  HAMLYN_NL_STATE_UNFED + 1 },
	PLAIN("nic_contexts", NULL, GAUGE, OF_NIC, HAMLYN_A_CONTEXTS,
	      "Open files of the device of a NIC."),
	PLAIN("nic_areas", NULL, GAUGE, OF_NIC, HAMLYN_A_AREAS, "Areas of wired memory."),
	PLAIN("nic_slots", NULL, GAUGE, OF_NIC, HAMLYN_A_SLOTS, "Slots in use."),
	PLAIN("nic_slots_limit", NULL, GAUGE, OF_NIC, HAMLYN_A_MAX_SLOTS, "Slots of a NIC."),
	PLAIN("nic_notification_queues", NULL, GAUGE, OF_NIC, HAMLYN_A_NQS,
	      "Notification queues."),
	PLAIN("nic_termini", NULL, GAUGE, OF_NIC, HAMLYN_A_TERMINI, "Termini."),
	PLAIN("nic_kernel_memory_bytes", "bytes", GAUGE, OF_NIC, HAMLYN_A_KERNEL_BYTES,
	      "Memory of the kernel that users of a NIC have."),
	PLAIN("nic_wired_memory_bytes", "bytes", GAUGE, OF_NIC, HAMLYN_A_WIRED_BYTES,
	      "Memory of their own that users of a NIC have wired."),
	PLAIN("nic_messages", NULL, COUNTER, OF_STATS, HAMLYN_A_MESSAGES, "Messages that left."),
	PLAIN("nic_packets", NULL, COUNTER, OF_STATS, HAMLYN_A_PACKETS, "Packets that left."),
	PLAIN("nic_sent_bytes", "bytes", COUNTER, OF_STATS, HAMLYN_A_BYTES,
	      "Payload that left."),
	PLAIN("nic_failed_messages", NULL, COUNTER, OF_STATS, HAMLYN_A_FAILED,
	      "Messages refused with a status."),
	PLAIN("nic_notifications", NULL, COUNTER, OF_STATS, HAMLYN_A_NOTIFICATIONS,
	      "Entries appended to notification queues."),
	PLAIN("nic_overruns", NULL, COUNTER, OF_STATS, HAMLYN_A_OVERRUNS,
	      "Notifications lost to a full queue."),
	PLAIN("nic_doorbells", NULL, COUNTER, OF_STATS, HAMLYN_A_KICKS, "Calls of KICK."),
	PLAIN("nic_pauses", NULL, COUNTER, OF_STATS, HAMLYN_A_PAUSES,
	      "Times that a terminus was paused because its user guesses keys."),
	{ "hamlyn_nic_rejected_packets", NULL, REASONS, OF_STATS, HAMLYN_A_REJECTS,
	  "Packets discarded at their receivers, by reason.", "reason", NULL, 0 },
	PLAIN("peer", NULL, PEER_INFO, OF_PEER, 0, "Where another host is."),
	PLAIN("peer_up", NULL, IS_UP, OF_PEER, HAMLYN_A_PEER_STATE,
	      "Whether another host is connected (1) or not (0)."),
	{ "hamlyn_peer_last_end", NULL, WORD, OF_PEER, HAMLYN_A_PEER_REASON,
	  "Why the last connection to another host ended, or none came about.", "reason",
	  peer_reason_names, HAMLYN_NL_PEER_REASON_DOWN + 1 },
	PLAIN("peer_round_trip_seconds", "seconds", MICROSECONDS, OF_PEER, HAMLYN_A_PEER_RTT_US,
	      "Round trip to another host."),
	PLAIN("peer_connections", NULL, COUNTER, OF_PEER, HAMLYN_A_PEER_EPOCH,
	      "Connections to another host."),
	PLAIN("peer_watches", NULL, GAUGE, OF_PEER, HAMLYN_A_PEER_WATCHES,
	      "Watches of this host on slots of another one."),
	PLAIN("peer_watched", NULL, GAUGE, OF_PEER, HAMLYN_A_PEER_WATCHED,
	      "Watches of another host on slots of this one."),
	PLAIN("peer_calls", NULL, GAUGE, OF_PEER, HAMLYN_A_PEER_CALLS,
	      "Calls of this host to names of another one that are under way."),
	PLAIN("peer_called", NULL, GAUGE, OF_PEER, HAMLYN_A_PEER_CALLED,
	      "Calls of another host to names of this one that are under way."),
	PLAIN("peer_sent_bytes", "bytes", COUNTER, OF_PEER, HAMLYN_A_PEER_SENT_BYTES,
	      "Bytes sent to another host."),
	PLAIN("peer_received_bytes", "bytes", COUNTER, OF_PEER, HAMLYN_A_PEER_RECEIVED_BYTES,
	      "Bytes received from another host."),
	PLAIN("peer_sent_packets", NULL, COUNTER, OF_PEER, HAMLYN_A_PEER_SENT_PACKETS,
	      "Packets sent to another host."),
	PLAIN("peer_received_packets", NULL, COUNTER, OF_PEER, HAMLYN_A_PEER_RECEIVED_PACKETS,
	      "Packets received from another host."),
	PLAIN("peer_stalls", NULL, COUNTER, OF_PEER, HAMLYN_A_PEER_STALLS,
	      "Packets that had to wait for room on their way to another host."),
	PLAIN("peer_dropped_packets", NULL, COUNTER, OF_PEER, HAMLYN_A_PEER_DROPPED,
	      "Packets of another host not looked at, because their sender guesses keys."),
	PLAIN("peer_lost_packets", NULL, COUNTER, OF_PEER, HAMLYN_A_PEER_LOST,
	      "Packets for another host while it could not be reached."),
	PLAIN("peer_refused", NULL, COUNTER, OF_PEER, HAMLYN_A_PEER_REFUSED,
	      "Connections and frames of another host that were refused."),
};

static const struct family up = PLAIN("up", NULL, GAUGE, OF_NIC, 0,
				      "Whether the module answers (1) or not (0).");
static const struct family build = PLAIN("build", NULL, NIC_INFO, OF_NIC, 0,
					 "Which hamlynctl tells this.");

/* ---- lines --------------------------------------------------------------- */

static const char *suffix(enum kind kind)
{
	switch (kind) {
	case COUNTER:
	case REASONS:
		return "_total";
	case NIC_INFO:
	case PEER_INFO:
		return "_info";
	default:
		return "";
	}
}

/* In OpenMetrics a family is called without the suffix of its samples. */
static void put_head(FILE *out, enum metrics_format format, const struct family *family)
{
	const char *end = suffix(family->kind), *type = "gauge";

	if (!strcmp(end, "_total"))
		type = "counter";
	else if (*end && format == METRICS_OPEN)
		type = "info";
	if (format == METRICS_OPEN)
		end = "";
	fprintf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", family->name, end, family->help,
		family->name, end, type);
	if (family->unit && format == METRICS_OPEN)
		fprintf(out, "# UNIT %s %s\n", family->name, family->unit);
}

/* What a sample is of. */
struct place {
	FILE *out;
	const struct family *family;
	char labels[96];
};

static void put_name(const struct place *at)
{
	fprintf(at->out, "%s%s{%s", at->family->name, suffix(at->family->kind), at->labels);
}

static void put_number(const struct place *at, uint64_t number)
{
	put_name(at);
	fprintf(at->out, "} %" PRIu64 "\n", number);
}

static void put_word(const struct place *at, const char *label, const char *word, uint64_t number)
{
	put_name(at);
	fprintf(at->out, ",%s=\"%s\"} %" PRIu64 "\n", label, word, number);
}

static void put_seconds(const struct place *at, uint64_t microseconds)
{
	put_name(at);
	fprintf(at->out, "} %" PRIu64 ".%06" PRIu64 "\n", microseconds / 1000000,
		microseconds % 1000000);
}

static bool number_of(const struct nlattr *attr, uint64_t *number)
{
	*number = 0;
	return attr && attr_number(attr, number);
}

static const char *word_of(const struct nlattr *attr, const char *const *words, size_t count)
{
	uint64_t number;

	return number_of(attr, &number) && number < count ? words[number] : "unknown";
}

static struct nlattr *find_in(struct nlattr *nest, int attr)
{
	return nla_find(nla_data(nest), nla_len(nest), attr);
}

static void put_reasons(const struct place *at, struct nlattr *nest)
{
	const struct field *field;
	uint64_t number;

	for (field = reject_fields; field->name; field++)
		if (number_of(find_in(nest, field->attr), &number))
			put_word(at, at->family->label, field->name, number);
}

static void put_nic_info(const struct place *at, struct nlattr *const *attrs)
{
	struct nlattr *fabric = attrs[HAMLYN_A_FABRIC];
	uint64_t host;

	number_of(attrs[HAMLYN_A_HOST], &host);
	put_name(at);
	fprintf(at->out, ",host=\"%" PRIu64 "\",engine=\"%s\",fabric=\"%s\"} 1\n", host,
		word_of(attrs[HAMLYN_A_ENGINE_MODE], engine_names, HAMLYN_NL_ENGINE_POLL + 1),
		fabric ? word_of(find_in(fabric, HAMLYN_A_FAB_KIND), fabric_names,
				 HAMLYN_NL_FABRIC_TCP + 1) : "loop");
}

static void put_peer_info(const struct place *at, const struct nlattr *address)
{
	char text[INET6_ADDRSTRLEN] = "unknown";
	int length = address ? nla_len(address) : 0;

	if (length == 4 || length == 16)
		inet_ntop(length == 4 ? AF_INET : AF_INET6, nla_data(address), text, sizeof(text));
	put_name(at);
	fprintf(at->out, ",address=\"%s\"} 1\n", text);
}

static void put_states(const struct place *at, uint64_t state)
{
	const struct family *family = at->family;
	size_t i;

	for (i = 0; i < family->word_count; i++)
		put_word(at, family->label, family->words[i], state == i);
}

static void put_sample(const struct place *at, struct nlattr *const *attrs)
{
	const struct family *family = at->family;
	struct nlattr *attr = attrs[family->attr];
	uint64_t number;

	if (family->kind == NIC_INFO)
		put_nic_info(at, attrs);
	else if (family->kind == PEER_INFO)
		put_peer_info(at, attrs[HAMLYN_A_PEER_ADDRESS]);
	else if (family->kind == REASONS && attr)
		put_reasons(at, attr);
	else if (!number_of(attr, &number))
		return;
	else if (family->kind == STATE)
		put_states(at, number);
	else if (family->kind == IS_UP)
		put_number(at, number == HAMLYN_NL_PEER_STATE_UP);
	else if (family->kind == WORD && number)
		put_word(at, family->label, word_of(attr, family->words, family->word_count), 1);
	else if (family->kind == MICROSECONDS)
		put_seconds(at, number);
	else if (family->kind == GAUGE || family->kind == COUNTER)
		put_number(at, number);
}

/* ---- what the kernel tells ----------------------------------------------- */

static const uint8_t commands[SOURCES] = {
	[OF_NIC] = HAMLYN_NL_CMD_NIC_GET,
	[OF_STATS] = HAMLYN_NL_CMD_STATS_GET,
	[OF_PEER] = HAMLYN_NL_CMD_PEER_GET,
};

/* @attrs: room for all of a NIC, or of a peer, of which there are fewer */
static bool take_place(struct place *at, struct nl_msg *msg, struct nlattr **attrs)
{
	struct nlattr *peer[HAMLYN_A_PEER_MAX + 1];
	uint64_t nic, host;

	if (netlink_attrs(msg, attrs) || !number_of(attrs[HAMLYN_A_NIC], &nic))
		return false;
	snprintf(at->labels, sizeof(at->labels), "nic=\"hamlyn%" PRIu64 "\"", nic);
	if (at->family->source != OF_PEER)
		return true;
	if (!attrs[HAMLYN_A_PEER] ||
	    nla_parse_nested(peer, HAMLYN_A_PEER_MAX, attrs[HAMLYN_A_PEER], NULL) ||
	    !number_of(peer[HAMLYN_A_PEER_HOST], &host))
		return false;
	snprintf(at->labels + strlen(at->labels), sizeof(at->labels) - strlen(at->labels),
		 ",peer=\"%" PRIu64 "\"", host);
	memcpy(attrs, peer, sizeof(peer));
	return true;
}

static void put_family(FILE *out, enum metrics_format format, const struct family *family,
		       const struct replies *replies)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];
	struct place at = { .out = out, .family = family };
	size_t i;

	_Static_assert((int)HAMLYN_A_PEER_MAX <= (int)HAMLYN_A_MAX, "a peer's attributes fit");
	if (!replies->count)
		return;
	put_head(out, format, family);
	for (i = 0; i < replies->count; i++)
		if (take_place(&at, replies->at[i], attrs))
			put_sample(&at, attrs);
}

/* Whoever may not see counters or peers is not told of them. */
static int take_all(struct replies *replies)
{
	struct netlink nl;
	int err = netlink_try(&nl);
	size_t i;

	if (err)
		return err;
	nl.quiet = true;
	for (i = 0; i < SOURCES && !err; i++) {
		err = netlink_dump(&nl, netlink_message(&nl, commands[i]), &replies[i]);
		if (err == -EPERM && i != OF_NIC) {
			replies_free(&replies[i]);
			err = 0;
		}
	}
	netlink_close(&nl);
	return err;
}

static void put_all(FILE *out, enum metrics_format format)
{
	struct replies replies[SOURCES] = { 0 };
	int err = take_all(replies);
	size_t i;

	put_head(out, format, &build);
	fprintf(out, "hamlyn_build_info{version=\"%s\"} 1\n", HAMLYN_VERSION);
	put_head(out, format, &up);
	fprintf(out, "hamlyn_up %d\n", !err);
	for (i = 0; i < ARRAY_SIZE(families) && !err; i++)
		put_family(out, format, &families[i], &replies[families[i].source]);
	if (format == METRICS_OPEN)
		fputs("# EOF\n", out);
	for (i = 0; i < SOURCES; i++)
		replies_free(&replies[i]);
}

char *metrics_text(enum metrics_format format, size_t *length)
{
	char *text = NULL;
	FILE *out = must_alloc(open_memstream(&text, length));

	put_all(out, format);
	if (fclose(out))
		must_alloc(NULL);
	return must_alloc(text);
}

/* ---- the verbs ----------------------------------------------------------- */

static int metrics_show(const struct options *options, const struct verb *verb,
			struct words *words)
{
	int status = words_end(words);
	size_t length;
	char *text;

	(void)options;
	(void)verb;
	if (status)
		return status;
	text = metrics_text(METRICS_OPEN, &length);
	fwrite(text, 1, length, stdout);
	free(text);
	return output_check();
}

static int write_all(int fd, const char *text, size_t length)
{
	ssize_t n;

	for (; length; text += n, length -= (size_t)n) {
		n = write(fd, text, length);
		if (n < 0)
			return -errno;
	}
	return 0;
}

/* A reader finds the old file or the new one, whole. */
static int replace_file(const char *name, const char *text, size_t length)
{
	char *other;
	struct stat old;
	int fd, err;

	/* What is there may be a device, or /dev/stdout */
	if (!lstat(name, &old) && !S_ISREG(old.st_mode))
		return -EEXIST;
	if (asprintf(&other, "%s.%d", name, getpid()) < 0)
		must_alloc(NULL);
	fd = open(other, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
	err = fd < 0 ? -errno : write_all(fd, text, length);
	if (fd >= 0 && close(fd) && !err)
		err = -errno;
	if (!err && rename(other, name))
		err = -errno;
	if (err && fd >= 0)
		unlink(other);
	free(other);
	return err;
}

static int metrics_write(const struct options *options, const struct verb *verb,
			 struct words *words)
{
	const char *name = words_take(words);
	int status, err;
	size_t length;
	char *text;

	(void)options;
	(void)verb;
	if (!name)
		return misused("write to which file?");
	status = words_end(words);
	if (status)
		return status;
	text = metrics_text(METRICS_TEXT, &length);
	err = replace_file(name, text, length);
	free(text);
	return err ? refused("%s: %s", name, strerror(-err)) : STATUS_OK;
}

/* Of a machine that has no such user, nobody is admitted by that name. */
static int take_reader(struct readers *readers, const char *word)
{
	uint64_t uid;

	if (!strcmp(word, "any")) {
		readers->any = true;
		return STATUS_OK;
	}
	if (readers->count == MAX_READERS)
		return misused("no more than %d users", MAX_READERS);
	if (!find_user(word, &uid))
		warn("there is no user \"%s\" yet", word);
	else
		readers->uids[readers->count++] = (uid_t)uid;
	return STATUS_OK;
}

static int metrics_serve(const struct options *options, const struct verb *verb,
			 struct words *words)
{
	struct readers readers = { .uids = { 0 }, .count = 1 };		/* root */
	const char *word;
	int status = STATUS_OK;

	(void)options;
	(void)verb;
	while (!status && (word = words_take(words)))
		status = take_reader(&readers, word);
	return status ? status : exporter_run(&readers);
}

static const struct verb verbs[] = {
	{ "show", "", "print them, as OpenMetrics", NULL, metrics_show },
	{ "write", "FILE", "replace a file of the textfile collector", NULL, metrics_write },
	{ "serve", "[USER|any]...", "over HTTP, on a socket of systemd's", NULL, metrics_serve },
	{ 0 }
};

const struct object metrics_object = { "metrics", "for Prometheus", verbs };
