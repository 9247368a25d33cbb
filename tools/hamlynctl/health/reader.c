// SPDX-License-Identifier: GPL-2.0-only
/*
 * The readers of metrics over TCP. Any user of this machine may connect to a port on the loopback
 * device, but counters of what became of packets would tell a guesser which of its keys was right.
 * For a socket with a path the file's mode decides.
 */
#include <sys/socket.h>

#include "health/metrics.h"
#include "lib/sock_owner.h"

bool reader_is_admitted(const struct readers *readers, int fd)
{
	struct sockaddr_storage own;
	socklen_t length = sizeof(own);
	size_t i;
	uid_t uid;

	if (getsockname(fd, (struct sockaddr *)&own, &length))
		return false;
	if (readers->any || own.ss_family == AF_UNIX)
		return true;
	if (!sock_owner(fd, &uid))
		return false;
	for (i = 0; i < readers->count; i++)
		if (readers->uids[i] == uid)
			return true;
	return false;
}
