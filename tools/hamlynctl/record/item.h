/* SPDX-License-Identifier: GPL-2.0-only */
/* A field of a record, for those that make text or JSON of it. */
#ifndef HAMLYNCTL_ITEM_H
#define HAMLYNCTL_ITEM_H

#include "record/output.h"

/* A field as it arrived. Text that lacks its NUL ends with its attribute. */
struct item {
	const struct field *field;
	bool here;
	uint64_t number;
	bool wide;		/* @number has 64 bits */
	const char *text;
	size_t length;
	struct nlattr *nest;
};

int read_item(const struct field *field, struct nlattr *const *attrs,
	      struct item *item);				/* status */
int parse_nest(const struct item *item, struct nlattr **attrs);	/* status */

char *item_text(const struct item *item);		/* NULL after a failure; to be freed */
char *hexadecimal(const struct item *item);		/* to be freed */
const char *item_word(const struct item *item);		/* NULL: there is none for it here */
const char *format_address(const struct item *item, char *text);
bool no_limit(const struct item *item);

#endif /* HAMLYNCTL_ITEM_H */
