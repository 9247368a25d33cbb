// SPDX-License-Identifier: GPL-2.0-only
/* The words after a verb. Messages name what was wrong, and what is allowed. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* asprintf() */
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "base/users.h"

#define NETNS_FOLDER	"/run/netns"
#define DEVICE_MAX	15	/* bytes of a netdev's name */
#define PPM		1000000

const char *words_take(struct words *words)
{
	if (!words->left)
		return NULL;
	words->left--;
	return *words->at++;
}

int words_end(const struct words *words)
{
	if (words->left)
		return misused("\"%s\" is too much (see --help)", words->at[0]);
	return STATUS_OK;
}

/* ---- one of several words ----------------------------------------------- */

static const char *name_at(const void *names, size_t stride, size_t i)
{
	return *(const char *const *)(const void *)((const char *)names + i * stride);
}

/* The names that begin with @start, as "a, b, c"; to be freed. */
static char *list_names(const char *start, const void *names, size_t count, size_t stride)
{
	char *text = NULL;
	size_t i, size;
	FILE *list = must_alloc(open_memstream(&text, &size));
	const char *comma = "";

	for (i = 0; i < count; i++)
		if (!strncmp(name_at(names, stride, i), start, strlen(start))) {
			fprintf(list, "%s%s", comma, name_at(names, stride, i));
			comma = ", ";
		}
	fclose(list);
	return must_alloc(text);
}

int pick(const char *what, const char *word, const void *names, size_t count, size_t stride)
{
	int found = -1, matches = 0;
	char *list;
	size_t i;

	for (i = 0; i < count; i++) {
		if (!strcmp(name_at(names, stride, i), word))
			return (int)i;
		if (*word && !strncmp(name_at(names, stride, i), word, strlen(word))) {
			found = (int)i;
			matches++;
		}
	}
	if (matches == 1)
		return found;
	list = list_names(matches ? word : "", names, count, stride);
	if (matches)
		misused("%s \"%s\" is ambiguous: %s", what, word, list);
	else
		misused("%s \"%s\" is unknown; allowed: %s", what, word, list);
	free(list);
	return -1;
}

/* ---- values ------------------------------------------------------------- */

/* Digits, decimal or 0x; false if there are none or too many. */
static bool take_digits(const char *text, char **end, uint64_t *number)
{
	bool hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');

	if (text[0] < '0' || text[0] > '9')
		return false;
	errno = 0;
	*number = strtoull(text, end, hex ? 16 : 10);
	return !errno && *end != text + 1 + (hex ? 0 : -1);
}

static int bad_number(const char *what, const char *text, uint64_t min, uint64_t max,
		      const char *units)
{
	if (max == UINT64_MAX)
		return misused("%s takes a number of at least %" PRIu64 "%s, not \"%s\"", what,
			       min, units, text);
	return misused("%s takes a number from %" PRIu64 " to %" PRIu64 "%s, not \"%s\"", what,
		       min, max, units, text);
}

int parse_number(const char *what, const char *text, uint64_t min, uint64_t max,
		 uint64_t *number)
{
	char *end;

	if (!take_digits(text, &end, number) || *end || *number < min || *number > max)
		return bad_number(what, text, min, max, "");
	return STATUS_OK;
}

int parse_size(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *number)
{
	static const char units[] = "KMGT";
	const char *unit;
	int shift = 0;
	char *end;

	if (!take_digits(text, &end, number))
		goto bad;
	unit = *end ? strchr(units, *end) : NULL;
	if (unit) {
		shift = 10 * (int)(unit - units + 1);
		end++;
	}
	if (*end || *number > UINT64_MAX >> shift)
		goto bad;
	*number <<= shift;
	if (*number >= min && *number <= max)
		return STATUS_OK;
bad:
	return bad_number(what, text, min, max, ", with K, M, G or T if you like");
}

static int parse_limit(const struct param *param, const char *text, uint64_t *number)
{
	uint64_t max = param->bits == 32 ? UINT32_MAX : UINT64_MAX;

	if (!strcmp(text, "unlimited")) {
		*number = max;
		return STATUS_OK;
	}
	if (!take_digits(text, &(char *){ NULL }, number))
		return misused("%s takes a number, with K, M, G or T if you like, or unlimited; "
			       "not \"%s\"", param->name, text);
	return parse_size(param->name, text, 0, max - 1, number);
}

/* Packets in a million, of 0, 0.5% or 5000ppm. A bare 1 could be either, and is refused. */
int parse_rate(const char *what, const char *text, uint64_t *ppm)
{
	uint64_t unit = PPM / 100, fraction = 0;
	char *end;

	if (!take_digits(text, &end, ppm) || *ppm > PPM)
		goto bad;
	if (!strcmp(end, "ppm") || (!*end && !*ppm))
		return STATUS_OK;
	if (*ppm > 100)
		goto bad;
	*ppm *= unit;
	if (*end == '.')
		for (end++; *end >= '0' && *end <= '9'; end++) {
			unit /= 10;
			if (!unit && *end != '0')
				goto bad;
			fraction += unit * (uint64_t)(*end - '0');
		}
	*ppm += fraction;
	if (!strcmp(end, "%") && *ppm <= PPM)
		return STATUS_OK;
bad:
	return misused("%s takes a rate from 0 to 100%%, such as 1%%, 0.0005%% or 5ppm; not \"%s\"",
		       what, text);
}

int parse_seconds(const char *what, const char *text, uint32_t *milliseconds)
{
	double seconds;
	char *end;

	errno = 0;
	seconds = strtod(text, &end);
	if (errno || end == text || *end || !(seconds >= 0.1 && seconds <= 3600))
		return misused("%s takes seconds from 0.1 to 3600, not \"%s\"", what, text);
	*milliseconds = (uint32_t)(seconds * 1000 + 0.5);
	return STATUS_OK;
}

bool find_user(const char *text, uint64_t *uid)
{
	struct passwd *user;
	char *end;

	if (take_digits(text, &end, uid) && !*end && *uid < UINT32_MAX)
		return true;
	user = getpwnam(text);
	if (user)
		*uid = user->pw_uid;
	return user;
}

int parse_user(const char *text, uint64_t *uid)
{
	return find_user(text, uid) ? STATUS_OK :
	       misused("there is no user \"%s\"; give a user's name or number", text);
}

/* The descriptor stays open until the program ends. */
static int parse_netns(const char *text, uint64_t *number)
{
	char path[PATH_MAX];
	uint64_t pid;
	char *end;
	int fd;

	snprintf(path, sizeof(path), "%s%s", strchr(text, '/') ? "" : NETNS_FOLDER "/", text);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 && take_digits(text, &end, &pid) && !*end) {
		snprintf(path, sizeof(path), "/proc/%" PRIu64 "/ns/net", pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
	}
	if (fd < 0)
		return misused("there is no network namespace \"%s\" (%s: %s); give a name from "
			       NETNS_FOLDER ", a path or a process id",
			       text, path, strerror(errno));
	*number = (uint64_t)fd;
	return STATUS_OK;
}

static int parse_device(const char *what, struct value *value)
{
	const char *text = value->text;

	if (*text && strlen(text) <= DEVICE_MAX && !strpbrk(text, "/: \t"))
		return STATUS_OK;
	return misused("%s takes the name of a network device, of up to %d bytes; not \"%s\"",
		       what, DEVICE_MAX, text);
}

static int parse_address(const char *what, const char *text, struct value *value)
{
	value->length = 4;
	if (inet_pton(AF_INET, text, value->bytes) == 1)
		return STATUS_OK;
	value->length = 16;
	if (inet_pton(AF_INET6, text, value->bytes) == 1)
		return STATUS_OK;
	return misused("%s takes an IPv4 or IPv6 address, such as 10.9.0.1 or fd00::1; not \"%s\"",
		       what, text);
}

/* ---- ids of fabrics ------------------------------------------------------ */

static int digit_of(char c)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	const char *place = c ? strchr(digits, c) : NULL;
	int digit = place ? (int)(place - digits) : -1;

	return digit > 15 ? digit - 6 : digit;
}

static bool take_id(const char *text, unsigned char *id)
{
	unsigned char sum = 0;
	size_t i;

	if (strlen(text) != 2 * VALUE_BYTES)
		return false;
	for (i = 0; i < VALUE_BYTES; i++) {
		int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		id[i] = (unsigned char)(16 * high + low);
		sum |= id[i];
	}
	return sum;
}

static int parse_id(const char *what, const char *text, struct value *value)
{
	value->length = VALUE_BYTES;
	if (take_id(text, value->bytes))
		return STATUS_OK;
	return misused("%s takes 32 hexadecimal digits, not all of them 0; not \"%s\"", what,
		       text);
}

void id_from_name(const char *name, unsigned char *id)
{
	const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;
	unsigned __int128 hash = (unsigned __int128)0x6c62272e07bb0142 << 64 | 0x62b821756295c58d;
	size_t i;

	for (; *name; name++)
		hash = (hash ^ (unsigned char)*name) * prime;
	for (i = VALUE_BYTES; i--; hash >>= 8)
		id[i] = (unsigned char)hash;
}

static int parse_id_from(const char *what, const char *text, struct value *value)
{
	if (!*text)
		return misused("%s takes a name, which is not empty", what);
	value->length = VALUE_BYTES;
	id_from_name(text, value->bytes);
	return STATUS_OK;
}

/* ---- NICs ---------------------------------------------------------------- */

/* 0, hamlyn0 or /dev/hamlyn0 */
int parse_nic(const char *text, struct nic_name *nic)
{
	const char *digits = text;
	uint64_t number;
	char *end;

	if (!strncmp(digits, "/dev/", 5))
		digits += 5;
	if (!strncmp(digits, "hamlyn", 6))
		digits += 6;
	if (!take_digits(digits, &end, &number) || *end || number > MAX_NIC)
		return misused("\"%s\" is no NIC; give hamlynN or N, from 0 to %d", text, MAX_NIC);
	nic->index = (uint32_t)number;
	snprintf(nic->label, sizeof(nic->label), "hamlyn%" PRIu32, nic->index);
	return STATUS_OK;
}

int words_take_nic(struct words *words, struct nic_name *nic)
{
	const char *word = words_take(words);

	if (!word)
		return misused("which NIC? (see hamlynctl nic show)");
	return parse_nic(word, nic);
}

int words_take_id(struct words *words, const char *what, uint32_t *id)
{
	const char *word = words_take(words);
	uint64_t number;
	int status;

	if (!word)
		return misused("which %s?", what);
	status = parse_number(what, word, 0, UINT32_MAX, &number);
	*id = (uint32_t)number;
	return status;
}

/* ---- keywords ----------------------------------------------------------- */

static size_t count_names(const char *const *names)
{
	size_t n = 0;

	while (names[n])
		n++;
	return n;
}

static int parse_word(const struct param *param, const char *text, uint64_t *number)
{
	int place = pick(param->name, text, param->names, count_names(param->names),
			 sizeof(param->names[0]));

	*number = (uint64_t)place;
	return place < 0 ? STATUS_USAGE : STATUS_OK;
}

/* A map is another attribute than a word, but the same keyword. */
static int parse_users(const struct param *param, const char *text, struct value *value)
{
	static const struct param user_map = {
		.name = "users", .kind = PARAM_USER_MAP, .attr = HAMLYN_A_PEER_USER_MAP,
		.group = HAMLYN_A_PEER,
	};
	struct user_map map;

	if (!strchr(text, ':'))
		return parse_word(param, text, &value->number);
	if (!user_map_parse(text, &map))
		return misused("users takes same, none, or up to %d ranges of numbers, such as "
			       "1000:2000,3000-3999:5000; not \"%s\"", HAMLYN_PEER_USER_RANGES,
			       text);
	value->param = &user_map;
	value->text = text;
	return STATUS_OK;
}

static int parse_value(const struct param *param, const char *text, struct value *value)
{
	switch (param->kind) {
	case PARAM_NUMBER:
	case PARAM_LOCAL:
		return parse_number(param->name, text, param->min, param->max, &value->number);
	case PARAM_SIZE:
		return parse_size(param->name, text, param->min, param->max, &value->number);
	case PARAM_LIMIT:
		return parse_limit(param, text, &value->number);
	case PARAM_RATE:
		return parse_rate(param->name, text, &value->number);
	case PARAM_WORD:
		return parse_word(param, text, &value->number);
	case PARAM_USER:
		return parse_user(text, &value->number);
	case PARAM_USERS:
		return parse_users(param, text, value);
	case PARAM_NETNS:
		return parse_netns(text, &value->number);
	case PARAM_DEVICE:
		value->text = text;
		return parse_device(param->name, value);
	case PARAM_ADDRESS:
		return parse_address(param->name, text, value);
	case PARAM_ID:
		return parse_id(param->name, text, value);
	case PARAM_ID_FROM:
		return parse_id_from(param->name, text, value);
	default:
		return STATUS_USAGE;
	}
}

int values_add(struct values *values, const struct value *value)
{
	const struct param *other, *param = value->param;
	size_t i;

	for (i = 0; i < values->count; i++) {
		other = values->at[i].param;
		if (!strcmp(other->name, param->name))
			return misused("%s is given twice", param->name);
		if (other->attr && other->attr == param->attr && other->group == param->group)
			return misused("\"%s\" contradicts \"%s\"", param->name, other->name);
	}
	if (values->count == MAX_VALUES)
		return misused("there are too many words");
	values->at[values->count++] = *value;
	return STATUS_OK;
}

static int add_off(const struct param *params, const struct param *off, struct values *values)
{
	const struct param *param;
	int status = STATUS_OK;

	for (param = param_here(params); param; param = param_here(param + 1))
		if (!status && param->group == off->group && param->bits == 32)
			status = values_add(values, &(struct value){ .param = param });
	return status;
}

static bool has_keyword(const struct param *params, uint16_t group)
{
	const struct param *param;

	for (param = param_here(params); param; param = param_here(param + 1))
		if (param->kind == PARAM_GROUP && param->attr == group)
			return true;
	return false;
}

/* The keyword that @word means: those of the group that is open, and those of none. */
static const struct param *find_param(const struct param *params, const char *word,
				      uint16_t group)
{
	const struct param *allowed[MAX_VALUES];
	const char *names[MAX_VALUES];
	const struct param *param;
	size_t n = 0;
	int place;

	for (param = param_here(params); param; param = param_here(param + 1)) {
		if (n == MAX_VALUES || (param->group && param->group != group &&
					has_keyword(params, param->group)))
			continue;
		allowed[n] = param;
		names[n++] = param->name;
	}
	place = pick("keyword", word, names, n, sizeof(names[0]));
	return place < 0 ? NULL : allowed[place];
}

static int take_value(const struct param *params, const struct param *param,
		      struct words *words, struct values *values)
{
	struct value value = { .param = param, .number = param->min };
	const char *text;
	int status;

	if (param->kind == PARAM_OFF)
		return add_off(params, param, values);
	if (param->kind != PARAM_SET) {
		text = words_take(words);
		if (!text)
			return misused("%s needs a value: %s", param->name, param->value);
		status = parse_value(param, text, &value);
		if (status)
			return status;
	}
	return values_add(values, &value);
}

int params_parse(const struct param *params, struct words *words, struct values *values)
{
	const struct param *param, *open = NULL;
	uint16_t group = 0;
	const char *word;
	int status = STATUS_OK;

	values->count = 0;
	while (!status && (word = words_take(words))) {
		param = find_param(params, word, group);
		if (!param)
			return STATUS_USAGE;
		if (open && !param->group)
			break;
		if (param->kind == PARAM_GROUP) {
			group = param->attr;
			open = param;
			continue;
		}
		if (!param->group)
			group = 0;
		open = NULL;
		status = take_value(params, param, words, values);
	}
	if (open)
		return misused("%s needs at least one keyword behind it (see --help)",
			       open->name);
	return status;
}

int params_parse_of_nic(const struct param *params, struct words *words, struct nic_name *nic,
			struct values *values)
{
	int status = words_take_nic(words, nic);

	values->count = 0;
	return status ? status : params_parse(params, words, values);
}

const struct value *values_find(const struct values *values, const char *name)
{
	size_t i;

	for (i = 0; i < values->count; i++)
		if (!strcmp(values->at[i].param->name, name))
			return &values->at[i];
	return NULL;
}
