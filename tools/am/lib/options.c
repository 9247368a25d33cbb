// SPDX-License-Identifier: GPL-2.0-only
/* The command line, and the help that is made of the same table. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "options.h"

#define MAX_WORDS	24
#define PATIENCE_S	2
#define FIRST		256	/* what getopt_long() returns for the first word */

struct common_options common;

static const struct option_word common_words[] = {
	{ "json", OPTION_FLAG, &common.json, NULL, "results as JSON, an object a line", 0, 0 },
	{ "quick", OPTION_FLAG, &common.quick, NULL, "a short check, not a measurement", 0, 0 },
	{ NULL, OPTION_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const char *program = "";

/*
 * The rank is not known before am_enable(), and all processes read the same command
 * line: the launchers' variables keep them from saying the same in chorus.
 */
static bool speaks(void)
{
	const char *rank = getenv("PMIX_RANK");

	if (!rank)
		rank = getenv("PMI_RANK");
	return !rank || !strcmp(rank, "0");
}

void options_refuse(const char *format, ...)
{
	va_list args;

	if (speaks()) {
		fflush(stdout);
		fprintf(stderr, "%s: ", program);
		va_start(args, format);
		vfprintf(stderr, format, args);
		va_end(args);
		fputc('\n', stderr);
	} else {
		/* The launcher ends all when one fails: that must not be before it speaks. */
		sleep(PATIENCE_S);
	}
	exit(2);
}

unsigned long option_or(unsigned long given, unsigned long quick, unsigned long normal)
{
	return given ? given : common.quick ? quick : normal;
}

/* ---- help --------------------------------------------------------------- */

static void help_words(const struct option_word *word)
{
	char left[40];

	for (; word->name; word++) {
		snprintf(left, sizeof(left), "--%s%s%s", word->name, word->value ? " " : "",
			 word->value ? word->value : "");
		printf("  %-18s %s\n", left, word->what);
	}
}

static _Noreturn void help(const struct usage *usage)
{
	if (speaks()) {
		printf("Usage: hamlyn-run -n N %s [OPTION]...\n%s\n\n", usage->name, usage->what);
		help_words(usage->words);
		help_words(common_words);
		printf("  %-18s %s\n", "--help", "this text");
	}
	exit(0);
}

/* ---- values ------------------------------------------------------------- */

static bool read_number(const char *text, const char *end, unsigned long *number)
{
	static const char units[] = "KMG";
	const char *unit;
	char *rest;

	errno = 0;
	*number = strtoul(text, &rest, 10);
	if (errno || rest == text || *text < '0' || *text > '9')
		return false;
	unit = rest < end ? strchr(units, *rest) : NULL;
	if (unit) {
		unsigned int bits = 10 * (unsigned int)(unit - units + 1);

		if (*number > (~0UL >> bits))
			return false;
		*number <<= bits;
		rest++;
	}
	return rest == end;
}

static void parse_number(const struct option_word *word, const char *text, const char *end,
			 unsigned long *number)
{
	if (!read_number(text, end, number) || *number < word->min || *number > word->max)
		options_refuse("--%s takes %s from %lu to %lu, not \"%.*s\"", word->name,
			       word->kind == OPTION_LIST ? "numbers" : "a number",
			       word->min, word->max, (int)(end - text), text);
}

static void parse_list(const struct option_word *word, const char *text)
{
	struct option_list *list = word->to;
	const char *end;

	for (list->n = 0;; text = end + 1) {
		end = strchrnul(text, ',');
		if (list->n == OPTIONS_LIST_MAX)
			options_refuse("--%s takes at most %d numbers", word->name,
				       OPTIONS_LIST_MAX);
		parse_number(word, text, end, &list->values[list->n++]);
		if (!*end)
			return;
	}
}

static void parse_value(const struct option_word *word, const char *text)
{
	switch (word->kind) {
	case OPTION_FLAG:
		*(bool *)word->to = true;
		break;
	case OPTION_NUMBER:
		parse_number(word, text, text + strlen(text), word->to);
		break;
	case OPTION_LIST:
		parse_list(word, text);
		break;
	case OPTION_TEXT:
		*(const char **)word->to = text;
		break;
	}
}

/* ---- the command line --------------------------------------------------- */

static int add_words(const struct option_word *word, const struct option_word **words,
		     struct option *options, int n)
{
	for (; word->name; word++, n++) {
		words[n] = word;
		options[n].name = word->name;
		options[n].has_arg = word->kind == OPTION_FLAG ? no_argument : required_argument;
		options[n].val = FIRST + n;
	}
	return n;
}

void options_parse(int argc, char **argv, const struct usage *usage)
{
	struct option options[MAX_WORDS + 2] = { 0 };
	const struct option_word *words[MAX_WORDS];
	int c, n;

	program = usage->name;
	n = add_words(usage->words, words, options, 0);
	n = add_words(common_words, words, options, n);
	options[n].name = "help";
	options[n].val = 'h';
	opterr = 0;
	while ((c = getopt_long(argc, argv, ":h", options, NULL)) != -1) {
		if (c == 'h')
			help(usage);
		if (c == ':')
			options_refuse("%s needs a value, see --help", argv[optind - 1]);
		if (c < FIRST)
			options_refuse("\"%s\" is no option here, see --help", argv[optind - 1]);
		parse_value(words[c - FIRST], optarg);
	}
	if (optind < argc)
		options_refuse("\"%s\" is one word too many, see --help", argv[optind]);
}
