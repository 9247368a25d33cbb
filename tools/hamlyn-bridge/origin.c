// SPDX-License-Identifier: GPL-2.0-only
/*
 * On the loopback device any user may connect, and any user may listen on a port that we expect a
 * peer, or ssh, on: only connections of our own user are peers'.
 */
#include <unistd.h>

#include "bridge.h"
#include "lib/sock_owner.h"

bool origin_is_ours(int fd)
{
	struct address other = { .length = sizeof(other.at) };
	uid_t uid;

	if (getpeername(fd, (struct sockaddr *)&other.at, &other.length))
		return false;
	/* Of another machine nobody here knows. */
	if (!address_is_loopback(&other))
		return true;
	return sock_owner(fd, &uid) && uid == geteuid();
}
