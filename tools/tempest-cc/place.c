// SPDX-License-Identifier: GPL-2.0-only
/* Where the parts are that a program is made with. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "folders.h"
#include "message.h"
#include "place.h"

#define LIBRARY "libhamlyn-tempest"

char *joined(const char *a, const char *b)
{
	size_t size = strlen(a) + strlen(b) + 1;
	char *s = enlarge(NULL, size);

	snprintf(s, size, "%s%s", a, b);
	return s;
}

static bool has(const char *folder, const char *name)
{
	char *path = joined(folder, name);
	bool found = !access(path, R_OK);

	free(path);
	return found;
}

/* Is that file this program? In /usr/bin, "as" is another. */
static bool is_me(const char *path)
{
	struct stat me, it;

	return !stat("/proc/self/exe", &me) && !stat(path, &it) && me.st_dev == it.st_dev &&
	       me.st_ino == it.st_ino;
}

/* The folder that this program is in. */
static char *own_folder(void)
{
	static char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	if (n <= 0)
		give_up("/proc/self/exe: %s", strerror(errno));
	path[n] = 0;
	*strrchr(path, '/') = 0;
	return path;
}

/* What stands in front of BINDIR: DESTDIR, if that has become a root of its own. */
static char *root_of(char *folder)
{
	size_t n = strlen(folder), end = strlen(TEMPEST_BINDIR);

	folder[n >= end && !strcmp(folder + n - end, TEMPEST_BINDIR) ? n - end : 0] = 0;
	return folder;
}

void places_find(struct places *places)
{
	char *folder = own_folder(), *as = joined(folder, "/as");

	places->built = is_me(as);
	free(as);
	if (places->built) {
		places->assembler = joined(folder, "/");
		places->headers = joined(folder, "/include");
		places->library = joined(folder, "/..");
		return;
	}
	folder = root_of(folder);
	places->assembler = joined(folder, TEMPEST_LIBEXEC "/");
	places->headers = joined(folder, TEMPEST_INCLUDEDIR);
	places->library = joined(folder, TEMPEST_LIBDIR);
	if (!has(places->assembler, "as"))
		give_up("%sas: %s; is it installed?", places->assembler, strerror(errno));
}

static bool library_in(const char *folder, bool is_static)
{
	return has(folder, "/" LIBRARY ".a") || (!is_static && has(folder, "/" LIBRARY ".so"));
}

/* Of those that were named, and those that the compiler knows */
static bool found_elsewhere(const struct options *o)
{
	char *path;
	bool found;
	int i;

	for (i = 0; i < o->n_words; i++) {
		const char *arg = o->words[i];

		if (strncmp(arg, "-L", 2))
			continue;
		if (!arg[2] && i + 1 < o->n_words)
			arg = o->words[++i];
		else
			arg += 2;
		if (library_in(arg, o->is_static))
			return true;
	}
	path = ask(o->compiler, "-print-file-name=" LIBRARY ".a");
	found = *path == '/';
	free(path);
	return found;
}

void places_need_library(const struct places *places, const struct options *o)
{
	if (!library_in(places->library, o->is_static) && (places->built || !found_elsewhere(o)))
		give_up(LIBRARY " is not in %s%s: %s", places->library, places->built ? "" :
			", nor in a folder of -L", places->built ? "run make" : "is it installed?");
}
