// SPDX-License-Identifier: MIT
/*
 * Names of hosts. The bridge has them, and carries calls: a process has a socket to it for each
 * name and each call, which is what a descriptor of the kernel device is there. So nothing of it
 * is in the segment, and what a process has ends with it.
 */
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "embedded/shm.h"

#define ANSWER_MS	10000	/* a bridge that is stopped answers nobody */

/* Whoever else has got the name is of another user. */
static bool is_ours(int fd)
{
	struct ucred cred;
	socklen_t n = sizeof(cred);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &n) && cred.uid == geteuid();
}

static int no_bridge(struct h_dev *dev)
{
	return h__refuse(dev, -EHOSTDOWN,
			 "HOST/NAME needs a hamlyn-bridge, and the segment has none");
}

/* A socket to the bridge, or an error. */
static int knock(struct h_dev *dev)
{
	const struct shm_bridge *b = &shm_of(dev)->seg->bridge;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	u32 door = READ_ONCE(b->door);
	int n, fd;

	if (!READ_ONCE(b->owner) || !door)
		return no_bridge(dev);
	n = snprintf(a.sun_path + 1, sizeof(a.sun_path) - 1, H_DOOR_NAME, READ_ONCE(b->pid), door);
	fd = h__fd(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	if (fd < 0)
		return fd;
	if (!connect(fd, (struct sockaddr *)&a,
		     (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)n)) &&
	    is_ours(fd))
		return fd;
	n = errno;
	close(fd);
	/* More than it has taken up: it is busy, or stopped. */
	return n == EAGAIN ? h__refuse(dev, -EUSERS, "the bridge has too many callers") :
			     no_bridge(dev);
}

static int ask(struct h_dev *dev, const struct shm_ask *head, const void *said)
{
	struct {
		struct shm_ask head;
		unsigned char said[HAMLYN_MAX_CALL];
	} m = { .head = *head };
	size_t n = sizeof(m.head) + head->length;
	int fd;

	if (head->length > sizeof(m.said))
		return -EINVAL;
	if (head->length)
		memcpy(m.said, said, head->length);
	fd = knock(dev);
	if (fd < 0)
		return fd;
	if (send(fd, &m, n, MSG_NOSIGNAL) == (ssize_t)n)
		return fd;
	close(fd);
	return no_bridge(dev);
}

/* Whether the name is ours now. */
static int hear(struct h_dev *dev, int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct hamlyn_caller says;
	int n;

	do
		n = poll(&p, 1, ANSWER_MS);
	while (n < 0 && errno == EINTR);
	if (!n)
		return h__refuse(dev, -EHOSTDOWN, "the bridge does not answer: it is stopped");
	if (n < 0 || recv(fd, &says, sizeof(says), 0) != sizeof(says))
		return no_bridge(dev);
	if (says.error == EDQUOT)
		return h__refuse(dev, -EDQUOT,
				 "this process has as many names and calls as it may");
	return -says.error;
}

int h__shm_listen(struct h_dev *dev, const char *name, uint32_t name_length)
{
	struct shm_ask head = {
		.what = H_DOOR_LISTEN,
		.host = shm_of(dev)->nic.host,
		.name_length = name_length,
	};
	int fd, err;

	memcpy(head.name, name, name_length);
	fd = ask(dev, &head, NULL);
	if (fd < 0)
		return fd;
	err = hear(dev, fd);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* What is known here is said at once. */
static int check_host(struct h_dev *dev, u32 host)
{
	const struct shm_segment *seg = shm_of(dev)->seg;
	u32 peer;

	if (host == shm_of(dev)->nic.host)
		return 0;
	peer = h__shm_peer(seg, host);
	if (peer == SHM_MAX_PEERS)
		return h__refuse(dev, -EHOSTUNREACH, "host %u is no peer of the bridge here", host);
	if (!shm_peer_up(READ_ONCE(seg->bridge.peer[peer].state)))
		return h__refuse(dev, -EHOSTDOWN, "host %u is not there", host);
	return 0;
}

int h__shm_call(struct h_dev *dev, const struct h_name *name, const void *said,
		uint32_t length)
{
	struct shm_ask head = {
		.what = H_DOOR_CALL,
		.host = name->host,
		.name_length = name->length,
		.length = length,
	};
	int err = check_host(dev, name->host);

	if (err)
		return err;
	memcpy(head.name, name->name, name->length);
	return ask(dev, &head, said);
}
