/* SPDX-License-Identifier: GPL-2.0-only */
/* Which process runs on which host. */
#ifndef RUN_HOSTS_H
#define RUN_HOSTS_H

#include <stdbool.h>

#define MAX_HOSTS	64
#define HOST_BYTES	256

/**
 * struct host - one of them
 * @name: as it was given; "." is this one
 * @address: where the others reach it, in numbers; or ""
 * @slots: processes that it takes, or 0: as many as the others
 * @first: its first process
 * @processes: how many it has, one after the other
 */
struct host {
	char name[HOST_BYTES];
	char address[HOST_BYTES];
	int slots;
	int first;
	int processes;
};

/**
 * struct hosts - all that were named
 * @host: each
 * @n: how many; 0: this one only
 */
struct hosts {
	struct host host[MAX_HOSTS];
	int n;
};

/* "NAME[=ADDRESS][:N],...". Return: 0, or -1 if it is wrong and that was said. */
int hosts_parse(struct hosts *hosts, const char *text);

/* Divides @processes among them. Return: 0, or -1 if they do not fit and that was said. */
int hosts_divide(struct hosts *hosts, int processes);

/*
 * Looks up the addresses of those that have none. Return: 0, or -1 if there is none and that
 * was said.
 */
int hosts_find(struct hosts *hosts);

static inline bool host_is_here(const struct host *host)
{
	return host->name[0] == '.' && !host->name[1];
}

#endif /* RUN_HOSTS_H */
