/* SPDX-License-Identifier: GPL-2.0-only */
/* What output.c makes of records. */
#ifndef HAMLYNCTL_LAYOUTS_H
#define HAMLYNCTL_LAYOUTS_H

#include "record/output.h"

#define INDENT	4	/* of what goes on in the next line */

int json_fields(const struct field *fields, struct nlattr *const *attrs,
		struct json_object **object);		/* status */

void table_heads(struct output *out);
int table_row(struct output *out, struct nlattr *const *attrs);	/* status */
void table_print(const struct output *out);

#endif /* HAMLYNCTL_LAYOUTS_H */
