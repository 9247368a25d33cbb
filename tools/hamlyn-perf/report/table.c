// SPDX-License-Identifier: GPL-2.0-only
/* Rows of figures, for people or for programs. */
#include <stdio.h>
#include <string.h>

#include "report/report.h"
#include "report/table.h"

#define SYSTEM_WIDTH	14

static bool shown(const struct table *table, uint32_t column)
{
	return !(table->hidden & 1U << column);
}

/* For CSV: once, before the first row. For tables of other columns: again. */
void table_names(const struct table *table)
{
	uint32_t i;

	if (table->options->format != FORMAT_CSV)
		return;
	printf("system,test");
	for (i = 0; i < table->ncolumns; i++)
		printf(",%s", table->columns[i].key);
	putchar('\n');
}

void table_head(const struct table *table, const char *title)
{
	uint32_t i;

	if (table->options->format != FORMAT_TABLE)
		return;
	printf("\n%s\n%-*s", title, SYSTEM_WIDTH, "");
	for (i = 0; i < table->ncolumns; i++)
		if (shown(table, i))
			printf(" %*s", table->columns[i].width, table->columns[i].title);
	putchar('\n');
}

static void format_cell(char *text, size_t room, enum column_kind kind,
			const struct cell *cell)
{
	if (cell->text) {
		snprintf(text, room, "%s", cell->text);
		return;
	}
	if (!isfinite(cell->value)) {
		snprintf(text, room, "-");
		return;
	}
	switch (kind) {
	case COLUMN_SIZE:
		report_size(text, room, (size_t)cell->value);
		break;
	case COLUMN_NS:
		report_ns(text, room, cell->value);
		break;
	case COLUMN_RATE:
		snprintf(text, room, "%.4g/s", cell->value);
		break;
	case COLUMN_RATIO:
		snprintf(text, room, "x%.2f", cell->value);
		break;
	case COLUMN_NUMBER:
		snprintf(text, room, "%.3g", cell->value);
		break;
	default:
		snprintf(text, room, "%.0f", cell->value);
	}
}

static void print_text_row(const struct table *table, const char *system,
			   const struct cell *cells)
{
	char text[64];
	uint32_t i;

	printf("%-*s", SYSTEM_WIDTH, system);
	for (i = 0; i < table->ncolumns; i++) {
		if (!shown(table, i))
			continue;
		format_cell(text, sizeof(text), table->columns[i].kind, &cells[i]);
		printf(" %*s", table->columns[i].width, text);
	}
	putchar('\n');
}

static int decimals(enum column_kind kind)
{
	switch (kind) {
	case COLUMN_COUNT:
	case COLUMN_SIZE:
		return 0;
	case COLUMN_NS:
	case COLUMN_RATE:
		return 1;
	default:
		return 6;
	}
}

static void print_json_row(const struct table *table, const char *system,
			   const struct cell *cells)
{
	const struct column *column;
	uint32_t i;

	printf("{\"system\":\"%s\",\"test\":\"%s\"", system, table->test);
	for (i = 0; i < table->ncolumns; i++) {
		column = &table->columns[i];
		if (cells[i].text)
			printf(",\"%s\":\"%s\"", column->key, cells[i].text);
		else if (!isfinite(cells[i].value))
			printf(",\"%s\":null", column->key);
		else
			printf(",\"%s\":%.*f", column->key, decimals(column->kind),
			       cells[i].value);
	}
	printf("}\n");
}

static void print_csv_row(const struct table *table, const char *system,
			  const struct cell *cells)
{
	uint32_t i;

	printf("%s,%s", system, table->test);
	for (i = 0; i < table->ncolumns; i++) {
		if (cells[i].text)
			printf(",%s", cells[i].text);
		else if (!isfinite(cells[i].value))
			putchar(',');
		else
			printf(",%.*f", decimals(table->columns[i].kind), cells[i].value);
	}
	putchar('\n');
}

/* A cell for each column; texts have neither quotes nor commas in them. */
void table_row(const struct table *table, const char *system, const struct cell *cells)
{
	switch (table->options->format) {
	case FORMAT_TABLE:
		print_text_row(table, system, cells);
		break;
	case FORMAT_JSON:
		print_json_row(table, system, cells);
		break;
	case FORMAT_CSV:
		print_csv_row(table, system, cells);
		break;
	}
	fflush(stdout);
}

/* On what all of it was measured, and how busy that was. */
void table_end(const struct table *table, double foreign)
{
	if (table->options->format == FORMAT_JSON)
		report_json_machine(stdout, table->options, foreign);
	if (table->options->format == FORMAT_TABLE)
		report_foreign(foreign);
}
