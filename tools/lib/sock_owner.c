// SPDX-License-Identifier: GPL-2.0-only
/*
 * The kernel tells whose a socket is: of one that is asked for, or, where it has no such interface,
 * in a list. A user with thousands of sockets makes the list long, and reading it keeps others
 * waiting. Of a socket that was closed the kernel says user 0, and no inode: that is nobody's.
 */
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib/sock_owner.h"

enum answer {
	OWNED,
	NOBODYS,
	CANNOT_ASK,
};

/*
 * A socket for both protocols has addresses of IPv6 for connections over IPv4; the other end has
 * none, and would not be found.
 */
static void unmap(struct sockaddr_storage *address)
{
	struct sockaddr_in6 six;
	struct sockaddr_in four = { .sin_family = AF_INET };

	memcpy(&six, address, sizeof(six));
	if (six.sin6_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
		return;
	four.sin_port = six.sin6_port;
	memcpy(&four.sin_addr, &six.sin6_addr.s6_addr[12], sizeof(four.sin_addr));
	memcpy(address, &four, sizeof(four));
}

/* ---- one that is asked for ---- */

static void fill_end(const struct sockaddr_storage *address, __be16 *port, __be32 *words)
{
	const struct sockaddr_in6 *six = (const void *)address;
	const struct sockaddr_in *four = (const void *)address;

	*port = six->sin6_port;		/* of both families at the same place */
	if (address->ss_family == AF_INET)
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

static enum answer ask_at(int fd, const struct inet_diag_req_v2 *what, uid_t *uid)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req_v2 what;
	} question = {
		.head = {
			.nlmsg_len = sizeof(question),
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

	if (send(fd, &question, sizeof(question), 0) != sizeof(question))
		return CANNOT_ASK;
	n = recv(fd, &answer, sizeof(answer), 0);
	/* An error says that there is none, or no such interface: the list tells which. */
	if (n < (ssize_t)(sizeof(answer.head) + sizeof(answer.is)) ||
	    answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return CANNOT_ASK;
	if (!is_that(&answer.is.id, &what->id) || !answer.is.idiag_inode)
		return NOBODYS;
	*uid = answer.is.idiag_uid;
	return OWNED;
}

static enum answer ask(const struct sockaddr_storage *local, const struct sockaddr_storage *remote,
		       uid_t *uid)
{
	struct inet_diag_req_v2 what = {
		.sdiag_family = (__u8)local->ss_family,
		.sdiag_protocol = IPPROTO_TCP,
		.id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	enum answer answer;

	if (fd < 0)
		return CANNOT_ASK;
	fill_end(local, &what.id.idiag_sport, what.id.idiag_src);
	fill_end(remote, &what.id.idiag_dport, what.id.idiag_dst);
	answer = ask_at(fd, &what, uid);
	close(fd);
	return answer;
}

/* ---- in the list ---- */

/* As in /proc/net/tcp and tcp6: words of the address as they lie, and the port. */
static void as_listed(const struct sockaddr_storage *address, char *text, size_t size)
{
	const struct sockaddr_in6 *six = (const void *)address;
	const struct sockaddr_in *four = (const void *)address;
	unsigned int w[4];

	if (address->ss_family == AF_INET) {
		snprintf(text, size, "%08X:%04X", four->sin_addr.s_addr, ntohs(four->sin_port));
		return;
	}
	memcpy(w, &six->sin6_addr, sizeof(w));
	snprintf(text, size, "%08X%08X%08X%08X:%04X", w[0], w[1], w[2], w[3],
		 ntohs(six->sin6_port));
}

static bool is_listed(const char *list, const char *local, const char *remote, uid_t *uid)
{
	char line[512], from[64], to[64];
	unsigned int user;
	unsigned long inode;
	bool found = false;
	FILE *f = fopen(list, "re");

	if (!f)
		return false;
	while (!found && fgets(line, sizeof(line), f))
		found = sscanf(line, " %*[^:]: %63s %63s %*s %*s %*s %*s %u %*s %lu", from, to,
			       &user, &inode) == 4 &&
			inode && !strcmp(from, local) && !strcmp(to, remote);
	fclose(f);
	if (found)
		*uid = user;
	return found;
}

static bool look_up(const struct sockaddr_storage *local, const struct sockaddr_storage *remote,
		    uid_t *uid)
{
	char from[64], to[64];

	as_listed(local, from, sizeof(from));
	as_listed(remote, to, sizeof(to));
	return is_listed(local->ss_family == AF_INET ? "/proc/self/net/tcp" : "/proc/self/net/tcp6",
			 from, to, uid);
}

bool sock_owner(int fd, uid_t *uid)
{
	struct sockaddr_storage own, other;
	socklen_t own_length = sizeof(own), other_length = sizeof(other);
	enum answer answer;

	if (getsockname(fd, (struct sockaddr *)&own, &own_length) ||
	    getpeername(fd, (struct sockaddr *)&other, &other_length))
		return false;
	unmap(&own);
	unmap(&other);
	answer = ask(&other, &own, uid);
	if (answer == CANNOT_ASK)
		return look_up(&other, &own, uid);
	return answer == OWNED;
}
