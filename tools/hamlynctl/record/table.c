// SPDX-License-Identifier: GPL-2.0-only
/* A table, which fits its terminal. */
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "record/item.h"
#include "record/layouts.h"

static void add_cell(struct output *out, char *text)
{
	if (out->count == out->room) {
		out->room = out->room ? 2 * out->room : 256;
		out->cells = must_alloc(realloc(out->cells, out->room * sizeof(out->cells[0])));
	}
	out->cells[out->count++] = text;
}

int table_row(struct output *out, struct nlattr *const *attrs)
{
	const struct field *field;
	struct item item;
	char *text;
	int status;

	for (field = out->fields; field->name; field++) {
		status = read_item(field, attrs, &item);
		text = status ? NULL : item_text(&item);
		if (!text)
			return STATUS_REFUSED;
		add_cell(out, text);
	}
	return STATUS_OK;
}

void table_heads(struct output *out)
{
	const struct field *field;
	char *text, *c;

	for (field = out->fields; field->name; field++) {
		text = must_alloc(strdup(field->name));
		for (c = text; *c; c++)
			if (*c >= 'a' && *c <= 'z')
				*c = (char)(*c - 'a' + 'A');
		add_cell(out, text);
		out->columns++;
	}
}

static bool is_right(const struct field *field)
{
	return field->kind == FIELD_NUMBER || field->kind == FIELD_SIZE ||
	       field->kind == FIELD_TIME;
}

int terminal_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_col)
		return size.ws_col;
	return columns ? atoi(columns) : 0;
}

#define HEAD_LEAST	4

/*
 * Blanks between columns. Where @most is too little, one is enough, and heads are no wider
 * than what is below them.
 */
static int fit(const struct output *out, int *widths, int most)
{
	int total = 0, gap = 2;
	size_t i, column;

	for (i = 0; i < out->columns; i++)
		total += widths[i] + (i ? gap : 0);
	if (!most || total <= most)
		return gap;
	if (total - (int)out->columns + 1 > most) {
		for (i = 0; i < out->columns; i++)
			widths[i] = HEAD_LEAST;
		for (i = out->columns; i < out->count; i++) {
			column = i % out->columns;
			if ((int)strlen(out->cells[i]) > widths[column])
				widths[column] = (int)strlen(out->cells[i]);
		}
		for (i = 0; i < out->columns; i++)
			if ((int)strlen(out->cells[i]) > widths[i])
				out->cells[i][widths[i]] = '\0';
	}
	return 1;
}

/* A row wider than @most goes on in the next line, at the same column in all rows. */
static void print_row(const struct output *out, size_t row, const int *widths, int gap, int most)
{
	const char *text;
	int at = 0, before;
	size_t i;

	for (i = 0; i < out->columns; i++) {
		before = i ? gap : 0;
		if (most && i && at + before + widths[i] > most) {
			putchar('\n');
			at = 0;
			before = INDENT;
		}
		at += before + widths[i];
		text = out->cells[row * out->columns + i];
		if (is_right(&out->fields[i]))
			printf("%*s%*s", before, "", widths[i], text);
		else
			printf("%*s%-*s", before, "", i + 1 < out->columns ? widths[i] : 0, text);
	}
	putchar('\n');
}

void table_print(const struct output *out)
{
	int *widths = must_alloc(calloc(out->columns, sizeof(*widths)));
	int width, gap, most = terminal_width();
	size_t i;

	for (i = 0; i < out->count; i++) {
		width = (int)strlen(out->cells[i]);
		if (width > widths[i % out->columns])
			widths[i % out->columns] = width;
	}
	gap = fit(out, widths, most);
	for (i = 0; i < out->count / out->columns; i++)
		print_row(out, i, widths, gap, most);
	free(widths);
}
