// SPDX-License-Identifier: GPL-2.0-only
/* A field of a record: as it arrived, and as text. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include "record/item.h"
#include "base/users.h"

#define USER_NAME_MAX	32

bool attr_number(const struct nlattr *attr, uint64_t *number)
{
	switch (nla_len(attr)) {
	case sizeof(uint16_t):
		*number = nla_get_u16(attr);
		return true;
	case sizeof(uint32_t):
		*number = nla_get_u32(attr);
		return true;
	case sizeof(uint64_t):
		*number = nla_get_u64(attr);
		return true;
	}
	return false;
}

char *format_size(uint64_t number, char *text)
{
	static const char units[] = "KMGT";
	int unit = -1;

	while (number && !(number & 1023) && unit + 1 < (int)strlen(units)) {
		number >>= 10;
		unit++;
	}
	sprintf(text, "%" PRIu64 "%.*s", number, unit < 0 ? 0 : 1, unit < 0 ? "" : units + unit);
	return text;
}

char *format_user(uint32_t uid, char *text)
{
	const struct passwd *user = getpwuid(uid);

	if (user)
		snprintf(text, USER_NAME_MAX + 1, "%s", user->pw_name);
	else
		snprintf(text, USER_NAME_MAX + 1, "%" PRIu32, uid);
	return text;
}

static int read_address(struct nlattr *attr, struct item *item)
{
	item->text = nla_data(attr);
	item->length = (size_t)nla_len(attr);
	if (item->length == 4 || item->length == 16)
		return STATUS_OK;
	return refused("the kernel's answer is malformed: %s has %zu bytes", item->field->name,
		       item->length);
}

static int read_user_map(struct nlattr *attr, struct item *item)
{
	item->text = nla_data(attr);
	item->length = (size_t)nla_len(attr) / sizeof(struct user_range);
	if (!((size_t)nla_len(attr) % sizeof(struct user_range)))
		return STATUS_OK;
	return refused("the kernel's answer is malformed: %s has %d bytes", item->field->name,
		       nla_len(attr));
}

int read_item(const struct field *field, struct nlattr *const *attrs, struct item *item)
{
	struct nlattr *attr = attrs[field->attr];

	*item = (struct item){ .field = field, .here = attr };
	if (field->kind == FIELD_FLAG || field->kind == FIELD_SET) {
		item->number = item->here;
		item->here |= field->kind == FIELD_FLAG;
	} else if (!attr) {
		return 0;
	} else if (field->kind == FIELD_TEXT) {
		item->text = nla_data(attr);
		item->length = strnlen(item->text, (size_t)nla_len(attr));
	} else if (field->kind == FIELD_BYTES) {
		item->text = nla_data(attr);
		item->length = (size_t)nla_len(attr);
	} else if (field->kind == FIELD_ADDRESS) {
		return read_address(attr, item);
	} else if (field->kind == FIELD_USER_MAP) {
		return read_user_map(attr, item);
	} else if (field->kind == FIELD_NEST || field->kind == FIELD_PART) {
		item->nest = attr;
	} else if (!attr_number(attr, &item->number)) {
		return refused("the kernel's answer is malformed: %s has %d bytes", field->name,
			       nla_len(attr));
	} else {
		item->wide = nla_len(attr) == sizeof(uint64_t);
	}
	return STATUS_OK;
}

char *hexadecimal(const struct item *item)
{
	char *text = must_alloc(calloc(1, 2 * item->length + 1));
	size_t i;

	for (i = 0; i < item->length; i++)
		sprintf(text + 2 * i, "%02x", (unsigned char)item->text[i]);
	return text;
}

const char *format_address(const struct item *item, char *text)
{
	return inet_ntop(item->length == 4 ? AF_INET : AF_INET6, item->text, text,
			 INET6_ADDRSTRLEN);
}

bool no_limit(const struct item *item)
{
	return item->number == (item->wide ? UINT64_MAX : UINT32_MAX);
}

const char *item_word(const struct item *item)
{
	const char *const *names = item->field->names;
	uint64_t i;

	for (i = 0; i <= item->number; i++)
		if (!names[i])
			return NULL;
	return names[item->number];
}

int parse_nest(const struct item *item, struct nlattr **attrs)
{
	if (nla_parse_nested(attrs, HAMLYN_A_MAX, item->nest, NULL) < 0)
		return refused("the kernel's answer is malformed: %s", item->field->name);
	return STATUS_OK;
}

static char *format_rate(uint64_t ppm, char *text)
{
	int length = sprintf(text, "%" PRIu64 ".%04" PRIu64, ppm / 10000, ppm % 10000);

	while (text[length - 1] == '0')
		length--;
	if (text[length - 1] == '.')
		length--;
	text[length++] = '%';
	text[length] = 0;
	return text;
}

/* As "key:3,bounds:1", without counters that are 0. */
static int print_nest(FILE *to, const struct item *item);

static int print_item(FILE *to, const struct item *item)
{
	uint64_t number = item->number;
	const char *word = NULL;
	char text[64];
	char *clean;

	if (!item->here) {
		fputc('-', to);
		return STATUS_OK;
	}
	switch (item->field->kind) {
	case FIELD_NEST:
		return print_nest(to, item);
	case FIELD_TEXT:
		clean = clean_text(item->text, item->length);
		fputs(*clean ? clean : "-", to);
		free(clean);
		return STATUS_OK;
	case FIELD_BYTES:
		clean = hexadecimal(item);
		fputs(*clean ? clean : "-", to);
		free(clean);
		return STATUS_OK;
	case FIELD_USER_MAP:
		clean = user_map_format(item->text, item->length);
		fputs(clean, to);
		free(clean);
		return STATUS_OK;
	case FIELD_LIMIT:
		word = no_limit(item) ? "unlimited" : format_size(number, text);
		break;
	case FIELD_SIZE:
		word = format_size(number, text);
		break;
	case FIELD_RATE:
		word = format_rate(number, text);
		break;
	case FIELD_USER:
		word = format_user((uint32_t)number, text);
		break;
	case FIELD_ADDRESS:
		word = format_address(item, text);
		break;
	case FIELD_FLAG:
	case FIELD_SET:
		word = number ? "yes" : "no";
		break;
	case FIELD_WORD:
		word = item_word(item);
		break;
	case FIELD_TIME:
		fprintf(to, "%" PRIu64 ".%09" PRIu64, number / 1000000000, number % 1000000000);
		return STATUS_OK;
	case FIELD_NIC:
		fprintf(to, "hamlyn%" PRIu64, number);
		return STATUS_OK;
	default:
		break;
	}
	if (word)
		fputs(word, to);
	else
		fprintf(to, "%" PRIu64, number);
	return STATUS_OK;
}

static int print_nest(FILE *to, const struct item *item)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];
	const struct field *field;
	const char *comma = "";
	struct item member;
	int status = parse_nest(item, attrs);

	for (field = item->field->nested; !status && field->name; field++) {
		status = read_item(field, attrs, &member);
		if (status || !member.here || (!member.number && field->kind == FIELD_NUMBER))
			continue;
		fprintf(to, "%s%s:", comma, field->name);
		status = print_item(to, &member);
		comma = ",";
	}
	if (!*comma)
		fputc('-', to);
	return status;
}

/* The text of an item; NULL after a failure. */
char *item_text(const struct item *item)
{
	char *text = NULL;
	size_t size;
	FILE *to = must_alloc(open_memstream(&text, &size));
	int status = print_item(to, item);

	fclose(to);
	must_alloc(text);
	if (!status)
		return text;
	free(text);
	return NULL;
}
