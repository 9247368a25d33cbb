// SPDX-License-Identifier: MIT
/*
 * What the memory cgroups of this process leave. Memory of tmpfs that exceeds a limit is
 * not refused: the kernel kills a process for it. So whoever is about to commit much of it
 * asks first. Another process may take the same memory meanwhile; that is what it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "low/device.h"

#define ROOT		"/sys/fs/cgroup"
#define DEPTH_MOST	64

/**
 * struct files - names of a version of cgroups
 * @root: where its tree is mounted
 * @limit: bytes that there may be, or "max"
 * @used: bytes that there are
 * @file: in memory.stat: what is taken back before anybody is killed, two names
 * @swap_limit: bytes of swap that there may be, or NULL
 * @swap_used: bytes of swap that there are
 */
struct files {
	const char *root;
	const char *limit;
	const char *used;
	const char *file[2];
	const char *swap_limit;
	const char *swap_used;
};

static const struct files version_2 = {
	.root = ROOT,
	.limit = "memory.max",
	.used = "memory.current",
	.file = { "inactive_file", "active_file" },
	.swap_limit = "memory.swap.max",
	.swap_used = "memory.swap.current",
};

static const struct files version_1 = {
	.root = ROOT "/memory",
	.limit = "memory.limit_in_bytes",
	.used = "memory.usage_in_bytes",
	.file = { "total_inactive_file", "total_active_file" },
};

/* Return: whether the file could be read; then it ends with a 0 */
static bool read_file(const char *directory, const char *name, char *text, size_t size)
{
	char path[PATH_MAX];
	ssize_t n;
	int fd;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return false;
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	if (n < 0)
		return false;
	text[n] = 0;
	return true;
}

static bool read_bytes(const char *directory, const char *name, int64_t *bytes)
{
	char text[64], *end;
	unsigned long long n;

	if (!read_file(directory, name, text, sizeof(text)))
		return false;
	if (!strncmp(text, "max", 3)) {
		*bytes = INT64_MAX;
		return true;
	}
	errno = 0;
	n = strtoull(text, &end, 10);
	if (errno || end == text)
		return false;
	*bytes = n > INT64_MAX ? INT64_MAX : (int64_t)n;
	return true;
}

static int64_t stat_of(const char *stat, const char *name)
{
	size_t n = strlen(name);
	const char *line;

	for (line = stat; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (!strncmp(line, name, n) && line[n] == ' ')
			return atoll(line + n);
	}
	return 0;
}

static int64_t can_be_taken_back(const char *directory, const struct files *f)
{
	char stat[8192];

	if (!read_file(directory, "memory.stat", stat, sizeof(stat)))
		return 0;
	return stat_of(stat, f->file[0]) + stat_of(stat, f->file[1]);
}

/* tmpfs can be swapped out, as far as there is swap. */
static int64_t swap_left(const char *directory, const struct files *f)
{
	char info[4096];
	const char *line;
	int64_t limit, used, left;

	if (!f->swap_limit || !read_file("/proc", "meminfo", info, sizeof(info)))
		return 0;
	line = strstr(info, "\nSwapFree:");
	left = line ? atoll(line + strlen("\nSwapFree:")) * 1024 : 0;
	if (!left || !read_bytes(directory, f->swap_limit, &limit) ||
	    !read_bytes(directory, f->swap_used, &used))
		return left;
	limit = limit > used ? limit - used : 0;
	return left < limit ? left : limit;
}

/* Of one cgroup, INT64_MAX if it has no limit. */
static int64_t left_in(const char *directory, const struct files *f)
{
	int64_t limit, used;

	/* Without one version 1 says a number that is larger than any memory. */
	if (!read_bytes(directory, f->limit, &limit) || limit >= INT64_MAX / 2 ||
	    !read_bytes(directory, f->used, &used))
		return INT64_MAX;
	limit -= used;
	limit += can_be_taken_back(directory, f) + swap_left(directory, f);
	return limit > 0 ? limit : 0;
}

/* Of a cgroup and all above it; a container sees those from its own on. */
static int64_t left_along(const char *path, const struct files *f)
{
	char directory[PATH_MAX], *slash;
	size_t root = strlen(f->root);
	int64_t least = INT64_MAX, left;
	int depth;

	if (snprintf(directory, sizeof(directory), "%s%s", f->root, path) >= (int)sizeof(directory))
		return INT64_MAX;
	for (depth = 0; depth < DEPTH_MOST; depth++) {
		left = left_in(directory, f);
		least = left < least ? left : least;
		slash = strrchr(directory, '/');
		if (!slash || (size_t)(slash - directory) < root)
			break;
		*slash = 0;
	}
	return least;
}

int64_t h__memory_left(void)
{
	char text[4096], *line, *end, *controllers, *path;
	int64_t least = INT64_MAX, left;

	if (!read_file("/proc/self", "cgroup", text, sizeof(text)))
		return INT64_MAX;
	for (line = text; *line; line = end) {
		end = strchrnul(line, '\n');
		if (*end)
			*end++ = 0;
		/* NUMBER:CONTROLLERS:PATH */
		controllers = strchr(line, ':');
		path = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		if (controllers[1] && strcmp(controllers + 1, "memory"))
			continue;
		left = left_along(path, controllers[1] ? &version_1 : &version_2);
		least = left < least ? left : least;
	}
	return least;
}
