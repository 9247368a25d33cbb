/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rows of figures: a table for people, one JSON object per row, or CSV with one
 * line of names per table. Each row is of one system.
 */
#ifndef HAMLYN_PERF_TABLE_H
#define HAMLYN_PERF_TABLE_H

#include <math.h>

#include "base/perf.h"

#define TABLE_MAX_COLUMNS	16

enum column_kind {
	COLUMN_TEXT,
	COLUMN_COUNT,
	COLUMN_SIZE,
	COLUMN_NS,
	COLUMN_RATE,	/* a second */
	COLUMN_RATIO,
	COLUMN_NUMBER,
};

struct column {
	const char *key;	/* in JSON and CSV */
	const char *title;
	enum column_kind kind;
	int width;
};

struct cell {
	const char *text;
	double value;		/* NAN: not measured */
};

#define CELL(v)		((struct cell){ NULL, (double)(v) })
#define CELL_TEXT(t)	((struct cell){ (t), 0 })
#define CELL_NONE	((struct cell){ NULL, NAN })

struct table {
	const struct options *options;
	const char *test;
	const struct column *columns;
	uint32_t ncolumns;
	uint32_t hidden;	/* columns that people are not shown: 1 << index */
};

void table_names(const struct table *table);
void table_head(const struct table *table, const char *title);
void table_end(const struct table *table, double foreign);
void table_row(const struct table *table, const char *system, const struct cell *cells);

#endif /* HAMLYN_PERF_TABLE_H */
