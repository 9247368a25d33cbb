// SPDX-License-Identifier: MIT
/*
 * What is said on the socket on which two ends meet: one message each way, of fixed
 * length, little endian. Each is checked before any of it is believed.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rendezvous/rendezvous.h"

#define MAGIC		0x76526d48u	/* "HmRv" */
#define VERSION		3	/* 1: channels without requests; 2: without a fabric */

/* Magic, version and status stay where they are in other versions. */
#define AT_VERSION	4
#define AT_STATUS	8
#define AT_WHAT		12
#define AT_KIND		16
#define AT_FLAGS	20
#define AT_FABRIC	24
#define AT_CARD		(AT_FABRIC + HAMLYN_FABRIC_ID_BYTES)
#define AT_CHECK	(AT_CARD + H_CARD_BYTES)
#define BYTES		(AT_CHECK + 4)

#define MOST_FDS	253	/* SCM_MAX_FD of the kernel */

/* ---- messages ---- */

_Static_assert(BYTES == H_SAYING_BYTES && BYTES <= HAMLYN_MAX_CALL, "it is a call's");

void h__saying_put(const struct h_saying *s, unsigned char *p)
{
	memset(p, 0, BYTES);
	h__put(p, MAGIC, 4);
	h__put(p + AT_VERSION, VERSION, 4);
	h__put(p + AT_STATUS, s->status, 4);
	h__put(p + AT_WHAT, s->what, 4);
	h__put(p + AT_KIND, s->kind, 4);
	h__put(p + AT_FLAGS, s->flags, 4);
	memcpy(p + AT_FABRIC, s->fabric.bytes, HAMLYN_FABRIC_ID_BYTES);
	memcpy(p + AT_CARD, s->card, H_CARD_BYTES);
	h__put(p + AT_CHECK, h__check_word(p, AT_CHECK), 4);
}

int h__saying_take(struct h_saying *s, const unsigned char *p, size_t n)
{
	*s = (struct h_saying) {};
	if (n < AT_WHAT || h__get(p, 4) != MAGIC)
		return -EPROTO;
	s->status = (uint32_t)h__get(p + AT_STATUS, 4);
	s->other_version = h__get(p + AT_VERSION, 4) != VERSION;
	if (n != BYTES || s->other_version ||
	    h__get(p + AT_CHECK, 4) != h__check_word(p, AT_CHECK))
		return -EPROTO;
	s->what = (uint32_t)h__get(p + AT_WHAT, 4);
	s->kind = (uint32_t)h__get(p + AT_KIND, 4);
	s->flags = (uint32_t)h__get(p + AT_FLAGS, 4);
	memcpy(s->fabric.bytes, p + AT_FABRIC, HAMLYN_FABRIC_ID_BYTES);
	memcpy(s->card, p + AT_CARD, H_CARD_BYTES);
	return s->flags & ~H_CONNECT_TICKETS ? -EPROTO : 0;
}

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(2 * sizeof(int))];
};

int h__say(int sock, const struct h_saying *s, const int *fds)
{
	unsigned char bytes[BYTES];
	struct iovec iov = { .iov_base = bytes, .iov_len = BYTES };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control = {};
	struct cmsghdr *c;

	h__saying_put(s, bytes);
	if (fds) {
		msg.msg_control = &control;
		msg.msg_controllen = sizeof(control);
		c = CMSG_FIRSTHDR(&msg);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(2 * sizeof(int));
		memcpy(CMSG_DATA(c), fds, 2 * sizeof(int));
	}
	return sendmsg(sock, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

void h__close_fds(int *fds)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (fds[i] >= 0)
			close(fds[i]);
		fds[i] = -1;
	}
}

/*
 * As many as a message can have: what does not fit the kernel closes before recvmsg()
 * returns.
 */
union any_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(MOST_FDS * sizeof(int))];
};

/* The first two, if @fds. All the others are closed. Returns how many have come. */
static size_t take_fds(struct msghdr *msg, int *fds)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	size_t i, n;

	if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS ||
	    c->cmsg_len < CMSG_LEN(0))
		return 0;
	n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	for (i = 0; i < n; i++) {
		int fd;

		memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		if (fds && i < 2)
			fds[i] = fd;
		else
			h__close_later(fd);
	}
	return n;
}

/*
 * The end of a socket that still has something to say is told as a reset first, if
 * the other end did not read all that we said.
 */
static ssize_t receive(int sock, struct msghdr *msg)
{
	size_t room = msg->msg_controllen;
	ssize_t n;

	n = recvmsg(sock, msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	if (n >= 0 || errno != ECONNRESET)
		return n;
	msg->msg_controllen = room;
	return recvmsg(sock, msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
}

/*
 * Some did not get in: the kernel does not tell if there was no room, or we may not have
 * them. Two of @sock are as many as were to come.
 */
static int why_cut(int sock)
{
	int tried[2], err = -EPROTO;

	tried[0] = fcntl(sock, F_DUPFD_CLOEXEC, 0);
	tried[1] = fcntl(sock, F_DUPFD_CLOEXEC, 0);
	if (tried[0] < 0 || tried[1] < 0)
		err = errno == ENFILE ? -ENFILE : -EMFILE;
	h__close_fds(tried);
	return err;
}

int h__hear(int sock, struct h_saying *s, int *fds)
{
	unsigned char bytes[BYTES + 1];
	struct iovec iov = { .iov_base = bytes, .iov_len = sizeof(bytes) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union any_control control = {};
	size_t came;
	ssize_t n;
	int err;

	if (fds) {
		fds[0] = -1;
		fds[1] = -1;
	}
	msg.msg_control = &control;
	msg.msg_controllen = sizeof(control);
	n = receive(sock, &msg);
	if (n < 0)
		return errno == EINTR ? -EAGAIN : -errno;
	/* Also of an empty message, which looks like the end. */
	came = take_fds(&msg, fds);
	err = n ? h__saying_take(s, bytes, (size_t)n) : -ECONNRESET;
	/* Both, or none: one alone is the first. */
	if (!err && fds && came < 2 && msg.msg_flags & MSG_CTRUNC)
		err = why_cut(sock);
	else if (!err && fds && came && came != 2)
		err = -EPROTO;
	h__close_waiting();
	return err;
}

/* ---- sockets ---- */

int h__peer_of(int sock, struct h_peer *peer)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	if (getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &cred, &n))
		return -errno;
	*peer = (struct h_peer) {
		.pid = cred.pid,
		.uid = cred.uid,
		.gid = cred.gid,
		.host = HAMLYN_NONE,
		.user = cred.uid,
	};
	return 0;
}

bool h__uid_in(uid_t uid, const uid_t *uids, uint32_t count)
{
	uint32_t i;

	for (i = 0; uids && i < count; i++)
		if (uids[i] == uid)
			return true;
	return !uids;
}

int h__address(const char *path, struct sockaddr_un *a, unsigned int *length)
{
	size_t n = strlen(path);

	*a = (struct sockaddr_un) { .sun_family = AF_UNIX };
	if (!n || (n == 1 && *path == '@'))
		return -EINVAL;
	if (n >= sizeof(a->sun_path))
		return -ENAMETOOLONG;
	memcpy(a->sun_path, path, n);
	*length = (unsigned int)(offsetof(struct sockaddr_un, sun_path) + n);
	/* An abstract name has no 0 at its end. */
	if (*path == '@')
		a->sun_path[0] = 0;
	else
		++*length;
	return 0;
}

int h__poll_until(int fd, int events, int64_t deadline_ns)
{
	struct pollfd p = { .fd = fd, .events = (short)events };
	int64_t left = deadline_ns > 0 ? deadline_ns - h__now_ns() : 0;
	struct timespec ts;
	int n;

	if (left < 0)
		left = 0;
	ts.tv_sec = left / 1000000000;
	ts.tv_nsec = left % 1000000000;
	n = ppoll(&p, 1, deadline_ns < 0 ? NULL : &ts, NULL);
	if (n < 0)
		return -errno;
	if (n)
		return 0;
	return deadline_ns == H_NOWAIT ? -EAGAIN : -ETIMEDOUT;
}
