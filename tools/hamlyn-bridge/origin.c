// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whose is the other end of a connection? On the loopback device any user may connect, and any user
 * may listen on a port that we expect a peer, or ssh, on. The kernel tells whose each socket is:
 * of one that is asked for, or, where it has no such interface, in a list. Whoever has thousands of
 * sockets makes the list long, and reading it keeps peers waiting. Of a socket that was closed
 * it says user 0, and no inode: that is nobody's.
 */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
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
	unsigned long inode;
	long long found = -1;
	FILE *f = fopen(list, "re");

	if (!f)
		return -1;
	while (found < 0 && fgets(line, sizeof(line), f))
		if (sscanf(line, " %*[^:]: %63s %63s %*s %*s %*s %*s %u %*s %lu", from, to, &uid,
			   &inode) == 4 && inode &&
		    !strcmp(from, local) && !strcmp(to, remote))
			found = uid;
	fclose(f);
	return found;
}

static void fill_end(const struct address *a, __be16 *port, __be32 *words)
{
	const struct sockaddr_in6 *six = (const void *)&a->at;
	const struct sockaddr_in *four = (const void *)&a->at;

	*port = six->sin6_port;		/* of both families at the same place */
	if (a->at.ss_family == AF_INET)
		words[0] = four->sin_addr.s_addr;
	else
		memcpy(words, &six->sin6_addr, sizeof(six->sin6_addr));
}

/* A listener is found if there is no connection: that one is not meant. */
static bool is_that(const struct inet_diag_sockid *a, const struct inet_diag_sockid *b)
{
	return a->idiag_sport == b->idiag_sport && a->idiag_dport == b->idiag_dport &&
	       !memcmp(a->idiag_src, b->idiag_src, sizeof(a->idiag_src)) &&
	       !memcmp(a->idiag_dst, b->idiag_dst, sizeof(a->idiag_dst));
}

/* Return: the user; -1: there is none; -2: it cannot be asked. */
static long long ask_kernel(int fd, const struct inet_diag_req_v2 *what)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 what;
	} ask = {
		.head = {
			.nlmsg_len = sizeof(ask),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.what = *what,
	};
	struct {
		struct nlmsghdr head;
		struct inet_diag_msg is;
		char rest[512];
	} answer;
	ssize_t n;

	if (send(fd, &ask, sizeof(ask), 0) != sizeof(ask))
		return -2;
	n = recv(fd, &answer, sizeof(answer), 0);
	if (n < (ssize_t)sizeof(answer.head))
		return -2;
	/* As well where it has no such interface: then the list says that there is none. */
	if (answer.head.nlmsg_type == NLMSG_ERROR)
		return -2;
	if (answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY ||
	    n < (ssize_t)(sizeof(answer.head) + sizeof(answer.is)))
		return -2;
	return is_that(&answer.is.id, &what->id) && answer.is.idiag_inode ?
	       (long long)answer.is.idiag_uid : -1;
}

static long long user_of(const struct address *local, const struct address *remote)
{
	struct inet_diag_req_v2 what = {
		.sdiag_family = (u8)local->at.ss_family,
		.sdiag_protocol = IPPROTO_TCP,
		.id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	long long uid;

	if (fd < 0)
		return -2;
	fill_end(local, &what.id.idiag_sport, what.id.idiag_src);
	fill_end(remote, &what.id.idiag_dport, what.id.idiag_dst);
	uid = ask_kernel(fd, &what);
	close(fd);
	return uid;
}

bool origin_is_ours(int fd)
{
	struct address own = { .length = sizeof(own.at) }, other = { .length = sizeof(other.at) };
	char local[64], remote[64];
	long long uid;

	if (getsockname(fd, (struct sockaddr *)&own.at, &own.length) ||
	    getpeername(fd, (struct sockaddr *)&other.at, &other.length))
		return false;
	/* Of another machine nobody here knows. */
	if (!address_is_loopback(&other))
		return true;
	uid = user_of(&other, &own);
	if (uid != -2)
		return uid == (long long)geteuid();
	as_listed(&other, local, sizeof(local));
	as_listed(&own, remote, sizeof(remote));
	return user_between(other.at.ss_family == AF_INET ? "/proc/self/net/tcp" :
			    "/proc/self/net/tcp6", local, remote) == (long long)geteuid();
}
