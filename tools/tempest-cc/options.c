// SPDX-License-Identifier: GPL-2.0-only
/* The command line: a few words are ours, wherever they stand; the rest is the compiler's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "options.h"

static void help(void)
{
	printf("usage: hamlyn-tempest-cc [OPTION]... COMPILER-OPTION...\n"
	       "       hamlyn-tempest-c++ [OPTION]... COMPILER-OPTION...\n\n"
	       "Compiles programs for Tempest: loads and stores that may reach the shared\n"
	       "segment look at the tag of their block first, which saves the trap that they\n"
	       "would take without. What is not checked is trapped, so any object and library\n"
	       "may be linked.\n\n"
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
	       "nothing is checked.\n\n"
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
	const char *p = strstr(list, arg);

	return p && p[-1] == ' ' && p[strlen(arg)] == ' ';
}

/* What the compiler's own words mean for us. The last one of several counts. */
static void look(struct options *o, const char *arg, int *sources)
{
	if (is_one_of(arg, " -c -S -E -M -MM -fsyntax-only "))
		o->links = false;
	else if (is_one_of(arg, " -fPIC -fpic -fPIE -fpie -pie "))
		o->why_plain = "position-independent";
	else if (is_one_of(arg, " -fno-PIC -fno-pic -fno-PIE -fno-pie -no-pie "))
		o->why_plain = NULL;
	else if (!strcmp(arg, "-shared"))
		o->shared = true;
	else if (is_source(arg) && !(*sources)++)
		o->source = arg;
}

static int words(int argc, char **argv, struct options *o)
{
	int i, n, sources = 0;

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
		look(o, argv[i], &sources);
		o->rest[o->n++] = argv[i];
	}
	if (sources > 1)
		o->source = NULL;
	if (o->shared)
		o->why_plain = "part of a shared library";
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
