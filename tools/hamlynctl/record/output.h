/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the kernel tells, as text or JSON. Both are made from one list of fields, so that neither
 * can tell more than the other.
 */
#ifndef HAMLYNCTL_OUTPUT_H
#define HAMLYNCTL_OUTPUT_H

#include <stdio.h>

#include "record/netlink.h"

struct json_object;

enum field_kind {
	FIELD_NUMBER,	/* 32 or 64 bits */
	FIELD_SIZE,	/* text: with K, M, G or T when that is exact */
	FIELD_LIMIT,	/* the same; the highest number of its type is no limit, null in JSON */
	FIELD_RATE,	/* in a million; text: % */
	FIELD_TIME,	/* nanoseconds; text: seconds */
	FIELD_FLAG,	/* there or not */
	FIELD_SET,	/* the same; nothing is said of it if it is not */
	FIELD_WORD,	/* one of names */
	FIELD_TEXT,
	FIELD_BYTES,	/* hexadecimal */
	FIELD_ADDRESS,	/* IPv4 or IPv6 */
	FIELD_USER_MAP,	/* as it is given */
	FIELD_NIC,	/* text: hamlynN; JSON: also a second member, name, with that */
	FIELD_USER,	/* text: name; JSON: also a second member, user, if it has a name */
	FIELD_NEST,
	FIELD_PART,	/* the same, but its members are the record's own; not for tables */
};

/* In JSON - becomes _ in the name. A field that is not there is - in text, left out of JSON. */
struct field {
	const char *name;
	uint16_t attr;
	enum field_kind kind;
	const char *const *names;	/* ends with NULL */
	const struct field *nested;	/* ends with a nameless one */
};

enum layout {
	LAYOUT_TABLE,	/* a line a record, columns */
	LAYOUT_BLOCK,	/* a paragraph a record, "name value" */
	LAYOUT_EVENT,	/* a line a record, "name value", at once; JSON: a line a record */
};

struct output {
	const struct options *options;
	const struct field *fields;
	enum layout layout;
	struct json_object *array;
	char **cells;		/* of the table, row by row */
	size_t columns, count, room;
	bool failed;
};

/* Columns of the terminal; 0: nobody looks at it on one */
int terminal_width(void);

void output_begin(struct output *out, const struct options *options,
		  const struct field *fields, enum layout layout);
int output_record(struct output *out, struct nl_msg *msg);		/* status */
int output_end(struct output *out);					/* status */

/* A JSON value as one line, or as several with --pretty; frees it. */
void output_json(const struct options *options, struct json_object *value);
int output_check(void);		/* status: could all be written? */

/* Text from the kernel with nothing in it that a terminal would obey; to be freed. */
char *clean_text(const char *text, size_t length);
/* The same, with its blanks. */
char *clean_sentence(const char *text, size_t length);
/* The same with nothing in it that is not UTF-8. */
char *clean_utf8(const char *text, size_t length);

char *format_size(uint64_t number, char *text);		/* @text: 24 bytes */
char *format_user(uint32_t uid, char *text);		/* @text: 33 bytes */

bool attr_number(const struct nlattr *attr, uint64_t *number);

/* names.c: what several objects share */
extern const char *const state_names[];
extern const char *const engine_names[];
extern const char *const slot_mode_names[];
extern const char *const priority_names[];
extern const char *const reason_names[];
extern const char *const event_names[];
extern const struct field limit_fields[];
extern const struct field reject_fields[];
extern const struct field adversary_fields[];
extern const struct field fabric_fields[];
extern const char *const fabric_names[];
extern const char *const peer_state_names[];
extern const char *const peer_users_names[];
extern const char *const peer_reason_names[];

/* Runs a request or dump and prints all answers; status. Takes over @msg. */
int show(struct netlink *nl, const struct options *options, struct nl_msg *msg, bool dump,
	 const char *subject, const struct field *fields, enum layout layout);

/* "[NIC [context ID]]", and then the dump; @with_context: may the context be given? */
int show_objects(const struct options *options, struct words *words, uint8_t command,
		 bool with_context, const struct field *fields);

/* "[NIC]", and then a request or a dump, a paragraph a NIC. */
int show_nics(const struct options *options, struct words *words, uint8_t command,
	      const struct field *fields);

#endif /* HAMLYNCTL_OUTPUT_H */
