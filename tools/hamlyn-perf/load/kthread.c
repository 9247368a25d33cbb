// SPDX-License-Identifier: GPL-2.0-only
/* The threads of a NIC: hamlynN/0 and so on. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "load/kthread.h"

static bool read_file(pid_t pid, const char *name, char *text, size_t room)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, room - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

void kthreads_find(struct kthreads *threads, const char *device)
{
	const char *name = strrchr(device, '/');
	char comm[32], prefix[32];
	struct dirent *entry;
	DIR *dir;

	threads->count = 0;
	snprintf(prefix, sizeof(prefix), "%.24s/", name ? name + 1 : device);
	dir = opendir("/proc");
	if (!dir)
		return;
	while ((entry = readdir(dir)) && threads->count < KTHREADS_MAX) {
		pid_t pid = (pid_t)atoi(entry->d_name);

		if (pid > 0 && read_file(pid, "comm", comm, sizeof(comm)) &&
		    !strncmp(comm, prefix, strlen(prefix)))
			threads->pids[threads->count++] = pid;
	}
	closedir(dir);
}

/* schedstat has nanoseconds; where it is not, stat has ticks. */
static double cpu_of(pid_t pid)
{
	unsigned long long ns, user, sys;
	const char *rest;
	char text[512];

	if (read_file(pid, "schedstat", text, sizeof(text)) &&
	    sscanf(text, "%llu", &ns) == 1)
		return (double)ns / 1e9;
	if (!read_file(pid, "stat", text, sizeof(text)))
		return 0;
	rest = strrchr(text, ')');
	if (!rest || sscanf(rest, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu",
			    &user, &sys) != 2)
		return 0;
	return (double)(user + sys) / (double)sysconf(_SC_CLK_TCK);
}

double kthreads_cpu(const struct kthreads *threads)
{
	double seconds = 0;
	uint32_t i;

	for (i = 0; i < threads->count; i++)
		seconds += cpu_of(threads->pids[i]);
	return seconds;
}

bool kthreads_run(const struct kthreads *threads)
{
	const char *rest;
	char text[512];
	uint32_t i;

	for (i = 0; i < threads->count; i++) {
		if (!read_file(threads->pids[i], "stat", text, sizeof(text)))
			continue;
		rest = strrchr(text, ')');
		if (rest && rest[1] == ' ' && rest[2] == 'R')
			return true;
	}
	return false;
}
