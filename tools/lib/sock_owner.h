/* SPDX-License-Identifier: GPL-2.0-only */
/* Whose is the other end of a connection? Any user may connect on the loopback device. */
#ifndef SOCK_OWNER_H
#define SOCK_OWNER_H

#include <stdbool.h>
#include <sys/types.h>

/**
 * sock_owner() - the user of the socket at the other end of a connection within this machine
 * @fd: the connection, over TCP
 * @uid: receives the user
 *
 * Return: false if it is nobody's, as when it has been closed meanwhile, or nobody can tell.
 */
bool sock_owner(int fd, uid_t *uid);

#endif /* SOCK_OWNER_H */
