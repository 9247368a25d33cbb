// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that is loaded to a random place, with shared libraries, by two or more
 * processes: addresses of static variables, handlers of the program and of a library,
 * and as many libraries as there may be. Prints TAP-like lines; ends with 1 if one
 * failed. "shared runs" says that it runs.
 */
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gam.h"

static int failed;
static int me;
static long mine[4];
static volatile int arrived;

static void check(int good, const char *name)
{
	if (!me)
		printf("%s - %s\n", good ? "ok" : "not ok", name);
	failed |= !good;
}

static void stored(vnn_t source, void *addr, int nbytes, void *arg)
{
	arrived += source == mine[0] && addr == mine && nbytes == (int)sizeof(mine) &&
		   arg == &arrived;
}

static void elsewhere(int to)
{
	const long values[4] = { me, 2, 3, 4 };
	void *heap = malloc(8);

	check(am_store(to, values, am_static(to, mine), sizeof(mine), stored,
		       am_static(to, (const void *)(uintptr_t)&arrived)) == 0 &&
	      lam_sync_all() == 0 && arrived == 1 && mine[3] == 4,
	      "static variables of other processes are where am_static() says");
	check(am_static(me, mine) == mine, "one's own are where they are");
	check(!am_static(to, heap) && !am_static(to, values) &&
	      !am_static(to, (void *)(uintptr_t)stdout) && !am_static(am_procs(), mine) &&
	      !am_static(-1, mine), "nothing else has an address there");
	free(heap);
}

/* ---- many libraries ---- */

#define MOST	64

/* What are loaded, and one of them to make copies of. */
struct libraries {
	int count;
	char path[4096];
	size_t bytes;		/* of the file, as far as they are loaded */
};

static int count_one(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct libraries *all = arg;
	int i;

	(void)size;
	/* Neither the program nor the kernel's has a path. */
	if (!strchr(info->dlpi_name, '/'))
		return 0;
	all->count++;
	/* Not libhamlyn: each copy would want a place among all threads' variables. */
	if (!strstr(info->dlpi_name, "libhamlyn-am.so"))
		return 0;
	snprintf(all->path, sizeof(all->path), "%s", info->dlpi_name);
	for (i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && p->p_offset + p->p_filesz > all->bytes)
			all->bytes = p->p_offset + p->p_filesz;
	}
	return 0;
}

/* Another file is another library, whatever is in it. */
static int load_copy(const struct libraries *all)
{
	FILE *file = fopen(all->path, "r");
	char *bytes = malloc(all->bytes);
	int fd = memfd_create("copy", 0);
	char path[64];
	int good;

	good = file && bytes && fread(bytes, 1, all->bytes, file) == all->bytes &&
	       write(fd, bytes, all->bytes) == (ssize_t)all->bytes;
	if (file)
		fclose(file);
	free(bytes);
	/* It stays open: a path that comes again would be the same library. */
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return good && dlopen(path, RTLD_NOW) != NULL;
}

static int load_until(int count)
{
	struct libraries all = { 0 };

	for (dl_iterate_phdr(count_one, &all); all.count < count; all.count++)
		if (!load_copy(&all))
			return 0;
	return all.count == count;
}

/* A program of one process with so many. Return: of am_enable(), or 1. */
static int enable_with(int count)
{
	int status = 0;
	pid_t child = fork();

	if (!child) {
		unsetenv("PMI_FD");
		unsetenv("PMI_PORT");
		unsetenv("PMIX_NAMESPACE");
		if (!load_until(count))
			_exit(255);
		status = am_enable();
		if (status)
			fprintf(stderr, "with %d libraries: %s\n", count, am_error());
		else
			am_disable();
		_exit(-status);
	}
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) ||
	    WEXITSTATUS(status) == 255)
		return 1;
	return -WEXITSTATUS(status);
}

static void many_libraries(void)
{
	check(enable_with(MOST) == 0, "64 libraries are not too many");
	check(enable_with(MOST + 1) == -E2BIG, "65 are");
}

int main(int argc, char **argv)
{
	const char *rank = getenv("PMI_RANK");
	int rc;
	int to;

	if (argc == 2 && !strcmp(argv[1], "runs"))
		return 0;
	if (!rank || !strcmp(rank, "0"))
		many_libraries();
	if (am_enable()) {
		printf("not ok - am_enable: %s\n", am_error());
		return 1;
	}
	me = am_my_proc();
	to = (me + 1) % am_procs();
	elsewhere(to);
	/* As a handler it does nothing. */
	rc = am_request_0(to, (handler_0_t)(void (*)(void))am_procs);
	check(rc == 0 && lam_sync_all() == 0, "a handler may be in a library");
	check(am_disable() == 0, "am_disable()");
	return failed;
}
