// SPDX-License-Identifier: GPL-2.0-only
/*
 * A compiler with an assembler of ours before its own: the compiler finds it by -B. The same
 * program is both; its name says which.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "as.h"
#include "folders.h"
#include "message.h"
#include "options.h"
#include "place.h"

#ifndef HAMLYN_VERSION
#define HAMLYN_VERSION "unknown"
#endif
/* Words that are added to the compiler's */
#define MOST_ADDED 24

/* No value: it is not there. */
static bool put(const char *name, const char *value)
{
	return value ? !setenv(name, value, 1) : !unsetenv(name);
}

static void environment(const struct options *o)
{
	char *as = ask(o->compiler, "-print-prog-name=as");

	if (!put(ENV_AS, *as ? as : "as") || (o->report && !put(ENV_REPORT, o->report)) ||
	    !put(ENV_SOURCE, o->source) || !put(ENV_GIVEN, o->given) ||
	    !put(ENV_PLAIN, o->why_plain))
		give_up("environment: %s", strerror(errno));
	free(as);
}

/**
 * struct words - a command line that grows
 * @argv: ended by NULL
 * @n: how many words there are
 */
struct words {
	char **argv;
	int n;
};

static void add(struct words *w, const char *word, const char *more)
{
	w->argv[w->n++] = joined(word, more);
	w->argv[w->n] = NULL;
}

/* What checks need: a register that is nobody else's, and flags that are not kept for long. */
static void add_code(struct words *w, const struct options *o, const struct places *places,
		     bool is_clang)
{
	if (!o->plain)
		add(w, "-B", places->assembler);
	if (is_clang) {
		add(w, "-fno-integrated-as", "");
	} else {
		add(w, "-ffixed-r11", "");
		add(w, "-fno-schedule-insns2", "");
	}
	add(w, "-fno-pie", "");
	if (o->links && !o->shared && !o->is_static)
		add(w, "-no-pie", "");
}

/* As pkg-config has it; of a folder that was built the archives, which need no path later. */
static void add_library(struct words *w, const struct places *places)
{
	const char *archive = places->built ? ":" : "", *lib = places->built ? "lib" : "";
	static const char *const names[] = { "hamlyn-tempest-wrap", "hamlyn-tempest", "hamlyn" };
	size_t i;

	/* Libraries' own calls may be wrapped, too, and libc's; those come later. */
	add(w, "-Wl,-u,__wrap_write,", TEMPEST_WRAPPED);
	add(w, "-L", places->library);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char name[64];

		snprintf(name, sizeof(name), "%s%s%s%s", archive, lib, names[i],
			 places->built ? ".a" : "");
		add(w, "-l", name);
	}
	add(w, "-lpthread", "");
	add(w, "-ldl", "");
}

static int compile(const struct options *o)
{
	struct words w = {
		.argv = enlarge(NULL, ((size_t)o->n + MOST_ADDED) * sizeof(*w.argv)),
	};
	char *version = ask(o->compiler, "--version");
	bool is_clang = strstr(version, "clang");
	struct places places;
	int i;

	free(version);
	places_find(&places);
	if (o->needs_library)
		places_need_library(&places, o);
	environment(o);
	add(&w, o->compiler, "");
	add_code(&w, o, &places, is_clang);
	for (i = 0; i < o->n; i++)
		w.argv[w.n++] = o->rest[i];
	/* Behind those that users name */
	add(&w, "-idirafter", places.headers);
	/* Comments tell where clang's file-scope asm is; gcc has #APP without them. */
	if (is_clang && o->no_comments)
		add(&w, "-fverbose-asm", "");
	if (o->needs_library)
		add_library(&w, &places);
	execvp(w.argv[0], w.argv);
	say("%s: %s", w.argv[0], strerror(errno));
	return 1;
}

static int print_version(const char *compiler)
{
	char *version = ask(compiler, "--version");

	printf(ME " " HAMLYN_VERSION "\n%s\n", version);
	free(version);
	return fflush(stdout) ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *me = strrchr(argv[0], '/');
	struct options o;
	int ret;

	if (!strcmp(me ? me + 1 : argv[0], "as"))
		return as_main(argc, argv);
	ret = options_parse(argc, argv, &o);
	if (ret)
		return ret < 0 ? 2 : fflush(stdout) ? 1 : 0;
	if (o.n == 1 && !strcmp(o.rest[0], "--version"))
		return print_version(o.compiler);
	return compile(&o);
}
