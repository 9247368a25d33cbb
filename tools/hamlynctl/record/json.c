// SPDX-License-Identifier: GPL-2.0-only
/* Records as JSON. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "record/item.h"
#include "record/layouts.h"
#include "base/users.h"

static void add_member(struct json_object *object, const char *name, struct json_object *value)
{
	char key[32];
	size_t i;

	for (i = 0; name[i] && i < sizeof(key) - 1; i++)
		key[i] = name[i] == '-' ? '_' : name[i];
	key[i] = 0;
	if (json_object_object_add(object, key, value) < 0)
		must_alloc(NULL);
}

static struct json_object *json_text(const char *text, size_t length)
{
	char *clean = clean_utf8(text, length);
	struct json_object *value = must_alloc(json_object_new_string(clean));

	free(clean);
	return value;
}

static int json_nest(const struct item *item, struct json_object **value)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];
	int status = parse_nest(item, attrs);

	return status ? status : json_fields(item->field->nested, attrs, value);
}

static int json_value(const struct item *item, struct json_object **value)
{
	char address[INET6_ADDRSTRLEN];
	const char *word;
	char *text;

	switch (item->field->kind) {
	case FIELD_BYTES:
		text = hexadecimal(item);
		*value = must_alloc(json_object_new_string(text));
		free(text);
		return STATUS_OK;
	case FIELD_USER_MAP:
		text = user_map_format(item->text, item->length);
		*value = must_alloc(json_object_new_string(text));
		free(text);
		return STATUS_OK;
	case FIELD_ADDRESS:
		*value = must_alloc(json_object_new_string(format_address(item, address)));
		return STATUS_OK;
	case FIELD_FLAG:
	case FIELD_SET:
		*value = must_alloc(json_object_new_boolean(item->number != 0));
		return STATUS_OK;
	case FIELD_TEXT:
		*value = json_text(item->text, item->length);
		return STATUS_OK;
	case FIELD_NEST:
		return json_nest(item, value);
	case FIELD_LIMIT:
		if (no_limit(item)) {
			*value = NULL;
			return STATUS_OK;
		}
		break;
	case FIELD_WORD:
		/* A number that has no word here is told as it is, by a newer kernel. */
		word = item_word(item);
		if (word) {
			*value = must_alloc(json_object_new_string(word));
			return STATUS_OK;
		}
		break;
	default:
		break;
	}
	*value = must_alloc(json_object_new_uint64(item->number));
	return STATUS_OK;
}

static void json_nic(struct json_object *object, uint64_t index)
{
	char name[32];

	snprintf(name, sizeof(name), "hamlyn%" PRIu64, index);
	add_member(object, "name", json_text(name, strlen(name)));
}

static void json_user(struct json_object *object, uint64_t uid)
{
	const struct passwd *user = getpwuid((uid_t)uid);

	if (user)
		add_member(object, "user", json_text(user->pw_name, strlen(user->pw_name)));
}

static int add_members(struct json_object *object, const struct field *fields,
		       struct nlattr *const *attrs);

static int add_part(struct json_object *object, const struct item *item)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];
	int status = parse_nest(item, attrs);

	return status ? status : add_members(object, item->field->nested, attrs);
}

static int add_item(struct json_object *object, const struct item *item)
{
	struct json_object *value;
	int status;

	if (item->field->kind == FIELD_PART)
		return add_part(object, item);
	status = json_value(item, &value);
	if (status)
		return status;
	add_member(object, item->field->name, value);
	if (item->field->kind == FIELD_USER)
		json_user(object, item->number);
	if (item->field->kind == FIELD_NIC)
		json_nic(object, item->number);
	return STATUS_OK;
}

static int add_members(struct json_object *object, const struct field *fields,
		       struct nlattr *const *attrs)
{
	const struct field *field;
	struct item item;
	int status = STATUS_OK;

	for (field = fields; !status && field->name; field++) {
		status = read_item(field, attrs, &item);
		if (!status && item.here)
			status = add_item(object, &item);
	}
	return status;
}

int json_fields(const struct field *fields, struct nlattr *const *attrs,
		struct json_object **object)
{
	int status;

	*object = must_alloc(json_object_new_object());
	status = add_members(*object, fields, attrs);
	if (status) {
		json_object_put(*object);
		*object = NULL;
	}
	return status;
}

void output_json(const struct options *options, struct json_object *value)
{
	int flags = JSON_C_TO_STRING_NOSLASHESCAPE;

	flags |= options->pretty ? JSON_C_TO_STRING_PRETTY | JSON_C_TO_STRING_SPACED :
				   JSON_C_TO_STRING_PLAIN;
	puts(must_alloc((void *)(uintptr_t)json_object_to_json_string_ext(value, flags)));
	json_object_put(value);
}
