// SPDX-License-Identifier: GPL-2.0-only
/* The command line: a few words are ours, wherever they stand; the rest is the compiler's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "file.h"
#include "message.h"
#include "options.h"
#include "text.h"

static void help(void)
{
	printf("usage: hamlyn-tempest-cc [OPTION]... COMPILER-OPTION...\n"
	       "       hamlyn-tempest-c++ [OPTION]... COMPILER-OPTION...\n\n"
	       "Compiles programs for Tempest, and links them with its library: loads and\n"
	       "stores that may reach the shared segment look at the tag of their block first,\n"
	       "which saves the trap that they would take without. What is not checked is\n"
	       "trapped, so any object and library may be linked.\n\n"
	       "Options:\n"
	       "  --plain          compile without checks, with the same options otherwise\n"
	       "  --report FILE    add to FILE how many accesses were checked, and which were\n"
	       "                   left plain and why; with the source's lines if -g is given\n"
	       "  --compiler NAME  gcc (default), clang, or another name of one of them; for\n"
	       "                   hamlyn-tempest-c++: g++ (default), clang++\n"
	       "  --version        print the version, and the compiler's\n"
	       "  --help           print this text\n\n"
	       "HAMLYN_TEMPEST_REPORT=FILE in the environment is as --report FILE.\n"
	       "Programs are not position-independent (-no-pie); of what is (-fPIC, -shared),\n"
	       "nothing is checked. With -nostdlib, -nodefaultlibs or -r no library is added.\n\n"
	       "Exit status: that of the compiler; 1 if hamlyn-tempest-cc fails, 2 for a wrong\n"
	       "command line.\n");
}

/* "--name VALUE" or "--name=VALUE". Return: how many words that is, -1: no value. */
static int value(char **argv, const char *name, const char **to)
{
	size_t n = strlen(name);

	if (strncmp(argv[0], name, n))
		return 0;
	if (argv[0][n] == '=') {
		*to = argv[0] + n + 1;
		return **to ? 1 : -1;
	}
	if (argv[0][n])
		return 0;
	*to = argv[1];
	return argv[1] ? 2 : -1;
}

static bool is_source(const char *arg)
{
	static const char *const ends[] = { ".c", ".i", ".cc", ".cpp", ".cxx", ".C", ".ii" };
	const char *end = strrchr(arg, '.');
	size_t i;

	for (i = 0; arg[0] != '-' && end && i < sizeof(ends) / sizeof(ends[0]); i++)
		if (!strcmp(end, ends[i]))
			return true;
	return false;
}

static bool is_one_of(const char *arg, const char *list)
{
	return in_list(list, arg, strlen(arg));
}

/**
 * struct seen - what the compiler's own words say together
 * @sources: how many files are compiled
 * @inputs: and how many there are of any kind
 * @no_libraries: they are all named
 * @value: this word is the value of the one before
 * @language: and that was -x
 * @assembly: the language of what comes now is the assembler's
 */
struct seen {
	int sources;
	int inputs;
	bool no_libraries;
	bool value;
	bool language;
	bool assembly;
};

/* Words whose value is the next one, and would be taken for a file */
static const char with_value[] =
	" -o -x -D -U -I -L -l -T -u -z -e -include -imacros -isystem -idirafter -iquote "
	"-iprefix -iwithprefix -MF -MT -MQ -Xlinker -Xassembler -Xpreprocessor -Xclang --param "
	"-aux-info -dumpbase -dumpdir -target -arch ";

/* -x LANGUAGE, or as one word */
static void look_for_language(const char *arg, struct seen *seen)
{
	bool here = seen->language;

	seen->language = !seen->value && !strcmp(arg, "-x");
	if (!here && (seen->value || !starts(arg, "-x") || !arg[2]))
		return;
	seen->assembly = starts(here ? arg : arg + 2, "assembler");
}

static void look_at_input(struct options *o, const char *arg, struct seen *seen)
{
	const char *end = strrchr(arg, '.');
	size_t before = o->given ? strlen(o->given) : 0, room = before + strlen(arg) + 2;

	seen->inputs++;
	if (!seen->assembly && (!end || strcmp(end, ".s")))
		return;
	o->given = enlarge(o->given, room);
	snprintf(o->given + before, room - before, "%s\n", arg);
}

/* What the compiler's own words mean for us. The last one of several counts. */
static void look(struct options *o, const char *arg, struct seen *seen)
{
	bool value = seen->value;

	look_for_language(arg, seen);
	seen->value = !value && is_one_of(arg, with_value);
	if (value)
		return;
	if (*arg != '-' || !arg[1])
		look_at_input(o, arg, seen);
	if (is_one_of(arg, " -c -S -E -M -MM -fsyntax-only "))
		o->links = false;
	else if (is_one_of(arg, " -fPIC -fpic -fPIE -fpie -pie -static-pie "))
		o->why_plain = "position-independent";
	else if (is_one_of(arg, " -fno-PIC -fno-pic -fno-PIE -fno-pie -no-pie "))
		o->why_plain = NULL;
	else if (!strcmp(arg, "-shared"))
		o->shared = true;
	else if (!strcmp(arg, "-fno-verbose-asm"))
		o->no_comments = true;
	else if (!strcmp(arg, "-static"))
		o->is_static = true;
	else if (is_one_of(arg, " -nostdlib -nodefaultlibs -r "))
		seen->no_libraries = true;
	else if (is_source(arg) && !seen->sources++)
		o->source = arg;
}

static void look_at_word(struct options *o, char *arg, struct seen *seen)
{
	int i = o->n_words;

	expand_word(arg, &o->words, &o->n_words);
	for (; i < o->n_words; i++)
		look(o, o->words[i], seen);
	/* As it is: what is in files may be too long for a command line. */
	o->rest[o->n++] = arg;
}

static int words(int argc, char **argv, struct options *o)
{
	struct seen seen = { 0 };
	int i, n;

	for (i = 1; i < argc; i += n) {
		n = value(argv + i, "--report", &o->report);
		if (!n)
			n = value(argv + i, "--compiler", &o->compiler);
		if (n < 0) {
			say("%s needs a value; see hamlyn-tempest-cc --help", argv[i]);
			return -1;
		}
		if (n)
			continue;
		n = 1;
		if (!strcmp(argv[i], "--plain")) {
			o->plain = true;
			continue;
		}
		look_at_word(o, argv[i], &seen);
	}
	if (seen.sources > 1)
		o->source = NULL;
	if (o->shared)
		o->why_plain = "part of a shared library";
	o->needs_library = o->links && !o->shared && seen.inputs && !seen.no_libraries;
	return 0;
}

int options_parse(int argc, char **argv, struct options *o)
{
	const char *me = strrchr(argv[0], '/');
	size_t n = strlen(me ? me : argv[0]);

	*o = (struct options){ .links = true };
	o->compiler = n > 3 && !strcmp((me ? me : argv[0]) + n - 3, "c++") ? "g++" : "gcc";
	if (argc == 1) {
		say("nothing to compile; see hamlyn-tempest-cc --help");
		return -1;
	}
	if (argc == 2 && !strcmp(argv[1], "--help")) {
		help();
		return 1;
	}
	o->rest = enlarge(NULL, (size_t)argc * sizeof(*o->rest));
	if (words(argc, argv, o))
		return -1;
	o->rest[o->n] = NULL;
	return 0;
}
