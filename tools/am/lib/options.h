/* SPDX-License-Identifier: GPL-2.0-only */
/* The command line of the programs here: each has a table of its options. */
#ifndef HAMLYN_AM_OPTIONS_H
#define HAMLYN_AM_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#define OPTIONS_LIST_MAX	64

enum option_kind {
	OPTION_FLAG,	/* bool */
	OPTION_NUMBER,	/* unsigned long, from min to max; may end in K, M, G */
	OPTION_LIST,	/* struct option_list of such numbers, with commas between */
	OPTION_TEXT,	/* const char * */
};

struct option_list {
	size_t n;
	unsigned long values[OPTIONS_LIST_MAX];
};

/**
 * struct option_word - an option
 * @name: without the dashes; NULL ends a table
 * @kind: what it takes
 * @to: where that goes
 * @value: how the help calls it
 * @what: what it is for
 * @min: least number
 * @max: greatest number
 */
struct option_word {
	const char *name;
	enum option_kind kind;
	void *to;
	const char *value;
	const char *what;
	unsigned long min, max;
};

struct usage {
	const char *name;	/* of the program */
	const char *what;	/* it does, as sentences */
	const struct option_word *words;
};

/* What every program has. */
struct common_options {
	bool json;
	bool quick;
};

extern struct common_options common;

/*
 * Before am_enable(). Exits with status 0 after --help, with 2 if something is wrong;
 * of the processes of a launcher only the first one speaks.
 */
void options_parse(int argc, char **argv, const struct usage *usage);

/* @quick or @normal, unless @given is not 0. */
unsigned long option_or(unsigned long given, unsigned long quick, unsigned long normal);

/* Ends the program as bad options do; for what only the program can check. */
_Noreturn void options_refuse(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* HAMLYN_AM_OPTIONS_H */
