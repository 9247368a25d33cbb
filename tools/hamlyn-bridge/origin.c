// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose is the other end of a connection? On the loopback device any user may connect, and any user
 * may listen on a port that we expect a peer, or ssh, on. The kernel tells whose each socket is.
 */
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bridge.h"

/* As in /proc/net/tcp and tcp6: words of the address as they lie, and the port. */
static void as_listed(const struct address *a, char *text, size_t size)
{
	const struct sockaddr_in6 *six = (const void *)&a->at;
	const struct sockaddr_in *four = (const void *)&a->at;
	u32 w[4];

	if (a->at.ss_family == AF_INET) {
		snprintf(text, size, "%08X:%04X", four->sin_addr.s_addr, ntohs(four->sin_port));
		return;
	}
	memcpy(w, &six->sin6_addr, sizeof(w));
	snprintf(text, size, "%08X%08X%08X%08X:%04X", w[0], w[1], w[2], w[3],
		 ntohs(six->sin6_port));
}

/* The user of the socket between two addresses, or -1. */
static long long user_between(const char *list, const char *local, const char *remote)
{
	char line[512], from[64], to[64];
	unsigned int uid;
	long long found = -1;
	FILE *f = fopen(list, "re");

	if (!f)
		return -1;
	while (found < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, " %*[^:]: %63s %63s %*s %*s %*s %*s %u", from, to, &uid) == 3 &&
		    !strcmp(from, local) && !strcmp(to, remote))
			found = uid;
	fclose(f);
	return found;
}

bool origin_is_ours(int fd)
{
	struct address own = { .length = sizeof(own.at) }, other = { .length = sizeof(other.at) };
	char local[64], remote[64];

	if (getsockname(fd, (struct sockaddr *)&own.at, &own.length) ||
	    getpeername(fd, (struct sockaddr *)&other.at, &other.length))
		return false;
	/* Of another machine nobody here knows. */
	if (!address_is_loopback(&other))
		return true;
	as_listed(&other, local, sizeof(local));
	as_listed(&own, remote, sizeof(remote));
	return user_between(other.at.ss_family == AF_INET ? "/proc/self/net/tcp" :
			    "/proc/self/net/tcp6", local, remote) == (long long)geteuid();
}
