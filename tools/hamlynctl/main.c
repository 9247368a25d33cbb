// SPDX-License-Identifier: GPL-2.0-only
/* hamlynctl: administration of hamlyn NICs. Finds the object and the verb. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/args.h"
#include "record/output.h"

#ifndef HAMLYN_VERSION
#define HAMLYN_VERSION	"unknown"
#endif

#define MAX_VERBS	8

static const struct object *const objects[] = {
	&nic_object, &context_object, &area_object, &slot_object, &nq_object, &terminus_object,
	&name_object, &stats_object, &user_object, &limit_object, &audit_object, &peer_object,
	&apply_object, &monitor_object, &top_object, &doctor_object, &metrics_object,
};

static const char option_help[] =
"\nOptions:\n"
"  -j, --json      JSON: an array of objects; of monitor and top, an object a line\n"
"  -p, --pretty    with --json: indented, on several lines\n"
"  -h, --help      this text, or that of OBJECT or VERB\n"
"  -V, --version   the version\n";

static const char status_help[] =
"\nObjects, verbs and keywords may be abbreviated as long as one only is meant.\n"
"A NIC is hamlynN, or N. Exit status: 0; 1, the kernel refused;\n"
"2, wrong command line.\n";

/* ---- help --------------------------------------------------------------- */

static int help_all(void)
{
	size_t i;

	printf("usage: hamlynctl [OPTION]... OBJECT [VERB] [ARGUMENT]...\n\nObjects:\n");
	for (i = 0; i < ARRAY_SIZE(objects); i++)
		printf("  %-14s  %s\n", objects[i]->name, objects[i]->what);
	fputs(option_help, stdout);
	fputs(status_help, stdout);
	return STATUS_OK;
}

static void help_line(const struct object *object, const struct verb *verb)
{
	printf("usage: hamlynctl [OPTION]... %s%s%s%s%s\n", object->name, *verb->name ? " " : "",
	       verb->name, *verb->usage ? " " : "", verb->usage);
}

static void help_params(const struct param *params)
{
	const struct param *param;
	char left[64];

	printf("\nKeywords:\n");
	for (param = param_here(params); param; param = param_here(param + 1)) {
		snprintf(left, sizeof(left), "%s%s%s", param->name, param->value ? " " : "",
			 param->value ? param->value : "");
		printf("  %-26s  %s\n", left, param->what);
	}
}

static int help_verb(const struct object *object, const struct verb *verb)
{
	help_line(object, verb);
	printf("\n  %s\n", verb->what);
	if (verb->params)
		help_params(verb->params);
	fputs(option_help, stdout);
	if (object == &top_object)
		fputs(top_help, stdout);
	return STATUS_OK;
}

static int help_object(const struct object *object)
{
	const struct verb *verb;

	if (!*object->verbs[0].name)
		return help_verb(object, object->verbs);
	printf("usage: hamlynctl [OPTION]... %s VERB [ARGUMENT]...\n\n%s: %s. Verbs:\n",
	       object->name, object->name, object->what);
	for (verb = object->verbs; verb->name; verb++)
		printf("  %-6s %-36s  %s\n", verb->name, verb->usage, verb->what);
	fputs(option_help, stdout);
	return STATUS_OK;
}

/* ---- the command line --------------------------------------------------- */

static const struct object *find_object(const char *word)
{
	const char *names[ARRAY_SIZE(objects)];
	size_t i;
	int place;

	for (i = 0; i < ARRAY_SIZE(objects); i++)
		names[i] = objects[i]->name;
	place = pick("object", word, names, ARRAY_SIZE(objects), sizeof(names[0]));
	return place < 0 ? NULL : objects[place];
}

static const struct verb *find_verb(const struct object *object, const char *word)
{
	const char *names[MAX_VERBS];
	size_t n = 0;
	int place;

	while (object->verbs[n].name && n < MAX_VERBS) {
		names[n] = object->verbs[n].name;
		n++;
	}
	place = pick("verb", word, names, n, sizeof(names[0]));
	return place < 0 ? NULL : &object->verbs[place];
}

struct line {
	struct options options;
	bool help, version;
	char top_option;	/* the last option that only top has; 0: none */
};

static int take_option(int id, struct line *line)
{
	line->top_option = strchr("dnb", id) ? (char)id : line->top_option;
	switch (id) {
	case 'j':
		line->options.json = true;
		return STATUS_OK;
	case 'p':
		line->options.pretty = true;
		return STATUS_OK;
	case 'h':
		line->help = true;
		return STATUS_OK;
	case 'V':
		line->version = true;
		return STATUS_OK;
	case 'b':
		line->options.batch = true;
		return STATUS_OK;
	case 'd':
		return parse_seconds("-d", optarg, &line->options.delay_ms);
	case 'n':
		return parse_number("-n", optarg, 1, UINT32_MAX, &line->options.count);
	}
	return misused("see --help for the options");
}

/* Options may stand anywhere. */
static int parse_options(int argc, char **argv, struct line *line)
{
	static const struct option longs[] = {
		{ "json", no_argument, NULL, 'j' },
		{ "pretty", no_argument, NULL, 'p' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ "delay", required_argument, NULL, 'd' },
		{ "count", required_argument, NULL, 'n' },
		{ "batch", no_argument, NULL, 'b' },
		{ 0 }
	};
	int id, status = STATUS_OK;

	optind = 0;
	while (!status && (id = getopt_long(argc, argv, "jphVd:n:b", longs, NULL)) != -1)
		status = take_option(id, line);
	return status;
}

/* "help" may also be said as a word. */
static bool is_help(const struct words *words)
{
	return words->left && !strcmp(words->at[0], "help");
}

static int run_object(const struct object *object, struct line *line, struct words *words)
{
	const struct verb *verb = object->verbs;
	bool given = words->left;

	if (line->top_option && object != &top_object)
		return misused("-%c is for top only", line->top_option);
	if (*verb->name && words->left && !is_help(words)) {
		verb = find_verb(object, words_take(words));
		if (!verb)
			return STATUS_USAGE;
		if (line->help || is_help(words))
			return help_verb(object, verb);
	}
	if (line->help || is_help(words))
		return help_object(object);
	if (*verb->name && strcmp(verb->name, "show") && !given)
		return misused("which verb? (see hamlynctl %s --help)", object->name);
	return verb->run(&line->options, verb, words);
}

static int run_line(struct line *line, struct words *words)
{
	const struct object *object;

	if (line->version) {
		printf("hamlynctl %s\n", HAMLYN_VERSION);
		return STATUS_OK;
	}
	if (is_help(words) || (line->help && !words->left))
		return help_all();
	if (!words->left)
		return misused("which object? (see --help)");
	object = find_object(words_take(words));
	if (!object)
		return STATUS_USAGE;
	return run_object(object, line, words);
}

int main(int argc, char **argv)
{
	struct line line = { .options = { .delay_ms = 1000 } };
	struct words words;
	int status;

	status = parse_options(argc, argv, &line);
	if (status)
		return status;
	words = (struct words){ .at = argv + optind, .left = argc - optind };
	status = run_line(&line, &words);
	/* Help and version, too: what could not be told was not told */
	return status ? status : output_check();
}
