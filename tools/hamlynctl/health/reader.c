// SPDX-License-Identifier: GPL-2.0-only
/*
 * The readers of metrics over TCP. Any user of this machine may connect to a port on the loopback
 * device, but counters of what became of packets would tell a guesser which of its keys was right.
 * So the kernel is asked for the user of the socket at the other end. A socket that was closed
 * meanwhile has user 0, and no inode: it is nobody's. For a socket with a path the file's mode
 * decides.
 */
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "health/metrics.h"

#define NOBODY	((uid_t)-1)

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 what;
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

static uid_t ask(int fd, const struct question *question)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_msg is;
		char rest[512];
	} answer;
	ssize_t n;

	if (send(fd, question, sizeof(*question), 0) != sizeof(*question))
		return NOBODY;
	n = recv(fd, &answer, sizeof(answer), 0);
	if (n < (ssize_t)(sizeof(answer.head) + sizeof(answer.is)) ||
	    answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return NOBODY;
	return is_that(&answer.is.id, &question->what.id) && answer.is.idiag_inode ?
	       answer.is.idiag_uid : NOBODY;
}

/* The user of the socket at @local, connected to @remote */
static uid_t user_between(const struct sockaddr_storage *local,
			  const struct sockaddr_storage *remote)
{
	struct question question = {
		.head = {
			.nlmsg_len = sizeof(question),
			.nlmsg_type = SOCK_DIAG_BY_FAMILY,
			.nlmsg_flags = NLM_F_REQUEST,
		},
		.what = {
			.sdiag_family = (__u8)local->ss_family,
			.sdiag_protocol = IPPROTO_TCP,
			.id.idiag_cookie = { INET_DIAG_NOCOOKIE, INET_DIAG_NOCOOKIE },
		},
	};
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	uid_t uid;

	if (fd < 0)
		return NOBODY;
	fill_end(local, &question.what.id.idiag_sport, question.what.id.idiag_src);
	fill_end(remote, &question.what.id.idiag_dport, question.what.id.idiag_dst);
	uid = ask(fd, &question);
	close(fd);
	return uid;
}

bool reader_is_admitted(const struct readers *readers, int fd)
{
	struct sockaddr_storage own, other;
	socklen_t own_length = sizeof(own), other_length = sizeof(other);
	size_t i;
	uid_t uid;

	if (getsockname(fd, (struct sockaddr *)&own, &own_length) ||
	    getpeername(fd, (struct sockaddr *)&other, &other_length))
		return false;
	if (readers->any || own.ss_family == AF_UNIX)
		return true;
	unmap(&own);
	unmap(&other);
	uid = user_between(&other, &own);
	for (i = 0; i < readers->count && uid != NOBODY; i++)
		if (readers->uids[i] == uid)
			return true;
	return false;
}
