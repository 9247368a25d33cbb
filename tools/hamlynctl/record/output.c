// SPDX-License-Identifier: GPL-2.0-only
/* Text or JSON, from one list of fields. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <json-c/json.h>

#include "record/item.h"
#include "record/layouts.h"

#define LINE_WIDTH	80

/* ---- paragraphs --------------------------------------------------------- */

struct paragraph {
	FILE *to;
	size_t column;
	bool wrap;
};

static void new_line(struct paragraph *p, int indent)
{
	fprintf(p->to, "\n%*s", indent, "");
	p->column = (size_t)indent;
}

static void add_pair(struct paragraph *p, const char *name, const char *text, int indent)
{
	size_t length = strlen(name) + 1 + strlen(text);

	if (p->wrap && p->column + 1 + length > LINE_WIDTH)
		new_line(p, indent);
	else if (p->column)
		p->column += (size_t)fprintf(p->to, " ");
	p->column += (size_t)fprintf(p->to, "%s%s%s", name, *name ? " " : "", text);
}

static int add_fields(struct paragraph *p, const struct field *fields,
		      struct nlattr *const *attrs, int indent);

/* A line of its own for the members of @item, if they are not the record's own. */
static int add_nest(struct paragraph *p, const struct item *item, int indent)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];
	int status = parse_nest(item, attrs);

	if (status)
		return status;
	if (item->field->kind == FIELD_PART)
		return add_fields(p, item->field->nested, attrs, indent);
	new_line(p, indent);
	p->column += (size_t)fprintf(p->to, "%s:", item->field->name);
	return add_fields(p, item->field->nested, attrs, indent + INDENT);
}

static int add_fields(struct paragraph *p, const struct field *fields,
		      struct nlattr *const *attrs, int indent)
{
	const struct field *field;
	struct item item;
	char *text;
	int status;

	for (field = fields; field->name; field++) {
		status = read_item(field, attrs, &item);
		if (status)
			return status;
		if (!item.here)
			continue;
		if (item.nest) {
			status = add_nest(p, &item, indent);
			if (status)
				return status;
			continue;
		}
		text = item_text(&item);
		if (!text)
			return STATUS_REFUSED;
		add_pair(p, field->name, text, indent);
		free(text);
	}
	return STATUS_OK;
}

/* The first field heads the paragraph. */
static int print_paragraph(const struct output *out, struct nlattr *const *attrs)
{
	struct paragraph p = { .to = stdout, .wrap = out->layout == LAYOUT_BLOCK };
	struct item item;
	char *text;
	int status = read_item(out->fields, attrs, &item);

	if (status)
		return status;
	text = item_text(&item);
	if (!text)
		return STATUS_REFUSED;
	p.column = (size_t)printf("%s%s", text, p.wrap ? ":" : "");
	free(text);
	status = add_fields(&p, out->fields + 1, attrs, INDENT);
	putchar('\n');
	return status;
}

/* ---- all records -------------------------------------------------------- */

void output_begin(struct output *out, const struct options *options,
		  const struct field *fields, enum layout layout)
{
	*out = (struct output){ .options = options, .fields = fields, .layout = layout };
	if (layout == LAYOUT_EVENT)
		setvbuf(stdout, NULL, _IOLBF, 0);
	else if (options->json)
		out->array = must_alloc(json_object_new_array());
	if (layout == LAYOUT_TABLE && !options->json)
		table_heads(out);
}

static int record_json(struct output *out, struct nlattr *const *attrs)
{
	struct json_object *object;
	int status = json_fields(out->fields, attrs, &object);

	if (status)
		return status;
	if (!out->array)
		output_json(out->options, object);
	else if (json_object_array_add(out->array, object) < 0)
		must_alloc(NULL);
	return STATUS_OK;
}

static int print_record(struct output *out, struct nl_msg *msg)
{
	struct nlattr *attrs[HAMLYN_A_MAX + 1];

	if (netlink_attrs(msg, attrs) < 0)
		return refused("the kernel's answer is malformed");
	if (out->options->json)
		return record_json(out, attrs);
	if (out->layout == LAYOUT_TABLE)
		return table_row(out, attrs);
	return print_paragraph(out, attrs);
}

int output_record(struct output *out, struct nl_msg *msg)
{
	int status = print_record(out, msg);

	if (status)
		out->failed = true;
	return status;
}

int output_check(void)
{
	if (fflush(stdout) || ferror(stdout))
		return refused("cannot write the output: %s", strerror(errno));
	return STATUS_OK;
}

/* A table is printed only when all of it could be read. */
int output_end(struct output *out)
{
	if (out->array && !out->failed)
		output_json(out->options, out->array);
	else if (out->array)
		json_object_put(out->array);
	if (out->cells && !out->failed)
		table_print(out);
	while (out->count)
		free(out->cells[--out->count]);
	free(out->cells);
	return out->failed ? STATUS_REFUSED : output_check();
}
