// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files of lines "nic add ..." and "peer add ...": all are read before anything is done, and what
 * is there already as they say is left.
 */
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "object/nic.h"
#include "record/output.h"
#include "base/users.h"

#define SUFFIX		".conf"
#define BLANKS		" \t\r\n"
#define MAX_LINE_WORDS	96
#define MAX_FILE_BYTES	(1 << 20)

/**
 * struct order - a line: what shall be there
 * @file: where it is said
 * @line: and in what line
 * @is_peer: a peer of @nic; else a NIC, which is @nic if @named
 * @nic: see @is_peer
 * @named: the line says which one
 * @values: how it shall be
 */
struct order {
	const char *file;
	unsigned int line;
	bool is_peer;
	bool named;
	struct nic_name nic;
	struct values values;
};

/* What was read; @texts are what values and messages point to. */
struct plan {
	struct order *orders;
	size_t count, room;
	char **texts;
	size_t text_count;
};

/* ---- reading ------------------------------------------------------------- */

static char *keep_text(struct plan *plan, char *text)
{
	size_t bytes = (plan->text_count + 1) * sizeof(plan->texts[0]);

	plan->texts = must_alloc(realloc(plan->texts, bytes));
	plan->texts[plan->text_count++] = must_alloc(text);
	return text;
}

static struct order *new_order(struct plan *plan, const char *file, unsigned int line)
{
	struct order *order;

	if (plan->count == plan->room) {
		plan->room = plan->room ? 2 * plan->room : 16;
		plan->orders = must_alloc(realloc(plan->orders,
						  plan->room * sizeof(plan->orders[0])));
	}
	order = &plan->orders[plan->count++];
	*order = (struct order){ .file = file, .line = line };
	return order;
}

static void plan_free(struct plan *plan)
{
	while (plan->text_count)
		free(plan->texts[--plan->text_count]);
	free(plan->texts);
	free(plan->orders);
}

/* A NIC that is to be found again must be known by something. */
static int parse_nic_line(struct words *words, struct order *order)
{
	int status = nic_add_parse(words, &order->values);
	const struct value *index = values_find(&order->values, "index");
	const struct value *fabric = values_find(&order->values, "fabric");

	if (status)
		return status;
	if (!index && !(fabric && fabric->number == HAMLYN_NL_FABRIC_TCP))
		return misused("which NIC? in a file, nic add needs index N or fabric tcp");
	order->named = index;
	if (!index)
		return STATUS_OK;
	order->nic.index = (uint32_t)index->number;
	snprintf(order->nic.label, sizeof(order->nic.label), "hamlyn%" PRIu32, order->nic.index);
	return STATUS_OK;
}

static int parse_words(struct words *words, struct order *order)
{
	static const char *const objects[] = { "nic", "peer" };
	static const char *const verbs[] = { "add" };
	const char *word = words_take(words);
	int place = pick("object", word, objects, ARRAY_SIZE(objects), sizeof(objects[0]));

	if (place < 0)
		return STATUS_USAGE;
	word = words_take(words);
	if (!word)
		return misused("which verb? in a file, only add");
	if (pick("verb", word, verbs, ARRAY_SIZE(verbs), sizeof(verbs[0])) < 0)
		return STATUS_USAGE;
	order->is_peer = place;
	if (!order->is_peer)
		return parse_nic_line(words, order);
	order->named = true;
	return peer_add_parse(words, &order->nic, &order->values);
}

/* Words up to a # that begins one. */
static int parse_line(struct plan *plan, const char *file, unsigned int line, char *text)
{
	char *list[MAX_LINE_WORDS], *save = NULL;
	struct words words = { .at = list };
	char *word = strtok_r(text, BLANKS, &save);

	say_where(file, line);
	for (; word && *word != '#'; word = strtok_r(NULL, BLANKS, &save)) {
		if (words.left == MAX_LINE_WORDS)
			return misused("there are too many words");
		list[words.left++] = word;
	}
	return words.left ? parse_words(&words, new_order(plan, file, line)) : STATUS_OK;
}

static int parse_text(struct plan *plan, const char *file, char *text)
{
	unsigned int line = 1;
	int status = STATUS_OK;
	char *next;

	for (; text && !status; text = next, line++) {
		next = strchr(text, '\n');
		if (next)
			*next++ = 0;
		status = parse_line(plan, file, line, text);
	}
	say_where(NULL, 0);
	return status;
}

static int read_file(struct plan *plan, const char *path)
{
	char *text = keep_text(plan, malloc(MAX_FILE_BYTES + 1));
	const char *file = keep_text(plan, strdup(path));
	FILE *from = fopen(path, "re");
	size_t bytes;
	bool failed;

	if (!from)
		return refused("cannot open %s: %s", path, strerror(errno));
	bytes = fread(text, 1, MAX_FILE_BYTES + 1, from);
	failed = ferror(from);
	fclose(from);
	if (failed)
		return refused("cannot read %s: %s", path, strerror(errno));
	if (bytes > MAX_FILE_BYTES)
		return refused("%s: more than %d bytes are no such file", path, MAX_FILE_BYTES);
	text[bytes] = 0;
	if (strlen(text) != bytes)
		return misused("%s: a byte of 0 is in it: it is no text", path);
	return parse_text(plan, file, text);
}

static int is_wanted(const struct dirent *entry)
{
	size_t length = strlen(entry->d_name), suffix = strlen(SUFFIX);

	return entry->d_name[0] != '.' && length > suffix &&
	       !strcmp(entry->d_name + length - suffix, SUFFIX);
}

/* In the order of their names, whatever the language of the user. */
static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_folder(struct plan *plan, const char *path)
{
	struct dirent **entries;
	int i, count = scandir(path, &entries, is_wanted, by_name);
	int status = STATUS_OK;
	char *name;

	if (count < 0)
		return refused("cannot read %s: %s", path, strerror(errno));
	for (i = 0; i < count; i++) {
		if (!status && asprintf(&name, "%s/%s", path, entries[i]->d_name) < 0)
			must_alloc(NULL);
		if (!status)
			status = read_file(plan, keep_text(plan, name));
		free(entries[i]);
	}
	free(entries);
	return status;
}

static int read_path(struct plan *plan, const char *path)
{
	struct stat info;

	if (stat(path, &info))
		return refused("cannot open %s: %s", path, strerror(errno));
	return S_ISDIR(info.st_mode) ? read_folder(plan, path) : read_file(plan, path);
}

/* ---- what is there ------------------------------------------------------- */

/* The same attribute of what the kernel tells; NULL: it does not tell it. */
static struct nlattr *told(struct nlattr *const *attrs, const struct param *param)
{
	struct nlattr *nested[HAMLYN_A_MAX + 1];

	if (!param->group)
		return attrs[param->attr];
	if (!attrs[param->group] ||
	    nla_parse_nested(nested, HAMLYN_A_MAX, attrs[param->group], NULL) < 0)
		return NULL;
	return nested[param->attr];
}

static bool same_bytes(const struct nlattr *attr, const void *bytes, size_t length)
{
	return (size_t)nla_len(attr) == length && !memcmp(nla_data(attr), bytes, length);
}

static bool same_number(const struct value *value, const struct nlattr *attr)
{
	const struct param *param = value->param;
	uint64_t number;

	if (!attr_number(attr, &number))
		return false;
	/* It is unfed, or has none: that is no wish of anybody's. */
	if (!param->group && param->attr == HAMLYN_A_STATE &&
	    number == HAMLYN_NL_STATE_UNFED)
		return value->number == HAMLYN_NL_STATE_UP;
	if (!param->group && param->attr == HAMLYN_A_ENGINES && !number)
		return true;
	/* Memory is counted in pages. */
	if (param->kind == PARAM_LIMIT && param->bits == 64)
		return number == value->number || number == (value->number & ~(uint64_t)4095);
	return number == value->number;
}

static bool same_user_map(const struct nlattr *attr, const char *text)
{
	struct user_map map;

	return user_map_parse(text, &map) &&
	       same_bytes(attr, map.at, map.count * sizeof(map.at[0]));
}

static bool is_same(const struct value *value, struct nlattr *const *attrs)
{
	const struct param *param = value->param;
	const struct nlattr *attr;

	if (!param->attr || param->kind == PARAM_NETNS)
		return true;
	attr = told(attrs, param);
	if (param->kind == PARAM_USER_MAP)
		return attr && same_user_map(attr, value->text);
	if (value->length)
		return attr && same_bytes(attr, value->bytes, value->length);
	if (value->text)
		return attr && same_bytes(attr, value->text, strlen(value->text) + 1);
	if (!param->bits)
		return !attr == !value->number;
	return attr && same_number(value, attr);
}

/* Of a peer, a port that is not given is the usual one. */
static bool usual_port(const struct order *order, struct nlattr *const *attrs)
{
	static const struct param port = { .attr = HAMLYN_A_PEER_PORT, .group = HAMLYN_A_PEER };
	struct nlattr *attr;

	if (!order->is_peer || values_find(&order->values, "port"))
		return true;
	attr = told(attrs, &port);
	return attr && nla_len(attr) == sizeof(uint16_t) &&
	       nla_get_u16(attr) == HAMLYN_FABRIC_PORT;
}

/* Nor are its users taken for anybody. A module of before names does not say. */
static bool usual_users(const struct order *order, struct nlattr *const *attrs)
{
	static const struct param users = { .attr = HAMLYN_A_PEER_USERS, .group = HAMLYN_A_PEER };
	struct nlattr *attr;

	if (!order->is_peer || values_find(&order->values, "users"))
		return true;
	attr = told(attrs, &users);
	return !attr || (nla_len(attr) == sizeof(uint32_t) &&
			 nla_get_u32(attr) == HAMLYN_NL_PEER_USERS_NONE);
}

static int differs(const struct order *order, const char *what)
{
	const struct value *host = values_find(&order->values, "host");

	if (order->is_peer)
		return refused("%s has peer %" PRIu64 " already, with another %s; "
			       "change the line, or first: hamlynctl peer del %s host %" PRIu64,
			       order->nic.label, host->number, what, order->nic.label,
			       host->number);
	return refused("%s is there already, with another %s; "
		       "change the line, or first: hamlynctl nic del %s",
		       order->nic.label, what, order->nic.label);
}

static int compare(const struct order *order, struct nlattr *const *attrs)
{
	size_t i;

	for (i = 0; i < order->values.count; i++)
		if (!is_same(&order->values.at[i], attrs))
			return differs(order, order->values.at[i].param->name);
	if (!usual_port(order, attrs))
		return differs(order, "port");
	return usual_users(order, attrs) ? STATUS_OK : differs(order, "users");
}

/* A NIC that the line does not name is the one of that host on that fabric. */
static bool is_meant(const struct order *order, struct nlattr *const *attrs)
{
	static const char *const keys[] = { "fabric", "id", "host" };
	const struct value *value;
	size_t i;

	if (order->named)
		return true;
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		value = values_find(&order->values, keys[i]);
		if (!value)
			value = values_find(&order->values, "id-from");
		if (!is_same(value, attrs))
			return false;
	}
	return true;
}

static int check_replies(struct order *order, const struct replies *replies, bool *there)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];
	size_t i;

	for (i = 0; i < replies->count; i++) {
		if (netlink_attrs(replies->at[i], attrs) < 0)
			return refused("the kernel's answer is malformed");
		if (!is_meant(order, attrs))
			continue;
		*there = true;
		if (!order->named && attrs[HAMLYN_A_NIC])
			snprintf(order->nic.label, sizeof(order->nic.label), "hamlyn%" PRIu32,
				 nla_get_u32(attrs[HAMLYN_A_NIC]));
		return compare(order, attrs);
	}
	return STATUS_OK;
}

static void put_peer_host(struct nl_msg *msg, const struct values *values)
{
	struct values host = { .count = 1 };

	host.at[0] = *values_find(values, "host");
	netlink_put_values(msg, &host);
}

/* Is it there, and as the line says? */
static int look(struct netlink *nl, struct order *order, bool *there)
{
	struct replies replies = { 0 };
	struct nl_msg *msg;
	int err, status;

	msg = netlink_message(nl, order->is_peer ? HAMLYN_NL_CMD_PEER_GET :
						   HAMLYN_NL_CMD_NIC_GET);
	if (order->named)
		netlink_put_nic(msg, &order->nic);
	if (order->is_peer)
		put_peer_host(msg, &order->values);
	if (order->named && !order->is_peer)
		err = netlink_do(nl, msg, &replies);
	else
		err = netlink_dump(nl, msg, &replies);
	*there = false;
	if (!err)
		status = check_replies(order, &replies, there);
	else if (err == (order->is_peer ? -ENOENT : -ENODEV))
		status = STATUS_OK;
	else
		status = netlink_refused(nl, order->named ? order->nic.label : "all NICs", err);
	replies_free(&replies);
	return status;
}

/* ---- doing it ------------------------------------------------------------ */

/* Which NIC it has become. */
static void take_label(struct order *order, const struct replies *replies)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];

	if (replies->count && !netlink_attrs(replies->at[0], attrs) && attrs[HAMLYN_A_NIC])
		snprintf(order->nic.label, sizeof(order->nic.label), "hamlyn%" PRIu32,
			 nla_get_u32(attrs[HAMLYN_A_NIC]));
}

static void tell(const struct order *order)
{
	const struct value *host = values_find(&order->values, "host");

	if (order->is_peer)
		printf("%s:%u: %s: peer %" PRIu64 " added\n", order->file, order->line,
		       order->nic.label, host->number);
	else
		printf("%s:%u: %s added\n", order->file, order->line, order->nic.label);
}

static int add(struct netlink *nl, struct order *order)
{
	struct replies replies = { 0 };
	struct nl_msg *msg;
	int err;

	msg = netlink_message(nl, order->is_peer ? HAMLYN_NL_CMD_PEER_NEW :
						   HAMLYN_NL_CMD_NIC_NEW);
	if (order->is_peer)
		netlink_put_nic(msg, &order->nic);
	netlink_put_values(msg, &order->values);
	err = netlink_do(nl, msg, &replies);
	if (!err && !order->is_peer)
		take_label(order, &replies);
	replies_free(&replies);
	if (err)
		return netlink_refused(nl, order->named ? order->nic.label : "new NIC", err);
	tell(order);
	return STATUS_OK;
}

/* NICs are looked for, and peers added, in their own namespace; both may be made from ours. */
static int carry_out(struct order *order)
{
	struct netlink nl;
	bool there;
	int status;

	say_where(order->file, order->line);
	status = netlink_open_in(&nl, values_find(&order->values, "netns"));
	if (!status) {
		status = look(&nl, order, &there);
		if (!status && !there)
			status = add(&nl, order);
		netlink_close(&nl);
	}
	say_where(NULL, 0);
	return status;
}

static int apply(const struct options *options, const struct verb *verb, struct words *words)
{
	struct plan plan = { 0 };
	int status = STATUS_OK;
	const char *path = words_take(words);
	size_t i;

	(void)verb;
	if (options->json)
		return misused("apply prints no JSON");
	if (!path)
		return misused("apply what? a file, or a folder of files *" SUFFIX);
	for (; path && !status; path = words_take(words))
		status = read_path(&plan, path);
	for (i = 0; i < plan.count && !status; i++)
		status = carry_out(&plan.orders[i]);
	plan_free(&plan);
	return status;
}

static const struct verb verbs[] = {
	{ "", "FILE|FOLDER...", "make the NICs and peers that files tell, if they are not there",
	  NULL, apply },
	{ 0 }
};

const struct object apply_object = { "apply", "files of NICs and peers", verbs };
