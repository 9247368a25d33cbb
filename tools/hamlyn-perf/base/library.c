// SPDX-License-Identifier: GPL-2.0-only
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/library.h"
#include "base/perf.h"

static int find_calls(const struct library *library, void *handle)
{
	void *found;
	size_t i;

	for (i = 0; i < library->ncalls; i++) {
		found = dlsym(handle, library->calls[i].name);
		if (!found)
			return fail("%s has no %s()", library->file, library->calls[i].name);
		memcpy(library->calls[i].pointer, &found, sizeof(found));
	}
	return 0;
}

int library_load(const struct library *library)
{
	void *handle = dlopen(library->file, RTLD_NOW | RTLD_LOCAL);

	return handle ? find_calls(library, handle) :
			fail("cannot load %s: %s", library->file, dlerror());
}

/* In a child: UCX, for one, puts itself in the way of mmap() as soon as it is loaded. */
const char *library_missing(const struct library *library)
{
	static char text[128];
	int status = -1;
	pid_t child;

	snprintf(text, sizeof(text), "%s cannot be loaded: is it installed?", library->file);
	child = fork();
	if (!child) {
		struct failure unheard = { 0 };

		fail_redirect(&unheard);
		_exit(library_load(library) < 0);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	return child > 0 && WIFEXITED(status) && !WEXITSTATUS(status) ? NULL : text;
}
