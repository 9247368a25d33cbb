// SPDX-License-Identifier: GPL-2.0-only
/* AF_UNIX sockets: streams and packets, with processes that sleep or poll. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "system/fdchan.h"

/* Without privilege, net.core.wmem_max keeps it smaller than this. */
static void widen(int fd)
{
	int bytes = 4 * (int)PERF_MAX_SIZE;

	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0)
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
}

static void *make_pair(int type)
{
	int fds[2];

	if (socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, fds) < 0) {
		fail("no AF_UNIX socket pair: %s", strerror(errno));
		return NULL;
	}
	if (type == SOCK_SEQPACKET) {
		widen(fds[0]);
		widen(fds[1]);
	}
	return fd_stage_both(fds);
}

/* A packet must fit the send buffer; the kernel keeps 32 bytes of it. */
static size_t seqpacket_max(void)
{
	static int bytes;
	socklen_t length = sizeof(bytes);
	int fd;

	if (bytes)
		return (size_t)bytes;
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return PERF_MAX_SIZE;
	widen(fd);
	if (getsockopt(fd, SOL_SOCKET, SO_SNDBUF, &bytes, &length) < 0 || bytes <= 32)
		bytes = 1;
	else
		bytes -= 32;
	close(fd);
	return (size_t)bytes;
}

static void *stream_make(const struct options *options)
{
	(void)options;
	return make_pair(SOCK_STREAM);
}

static void *seqpacket_make(const struct options *options)
{
	(void)options;
	return make_pair(SOCK_SEQPACKET);
}

static struct chan *stream_open(struct side *side, void *stage)
{
	return fd_open(side, stage, &sys_unix_stream);
}

static struct chan *stream_spin_open(struct side *side, void *stage)
{
	return fd_open_spin(side, stage, &sys_unix_stream_spin);
}

static struct chan *seqpacket_open(struct side *side, void *stage)
{
	return fd_open(side, stage, &sys_unix_seqpacket);
}

static struct chan *seqpacket_spin_open(struct side *side, void *stage)
{
	return fd_open_spin(side, stage, &sys_unix_seqpacket_spin);
}

const struct system sys_unix_stream = {
	.name = "unix-stream",
	.what = "AF_UNIX stream socket, blocking",
	.make = stream_make,
	.open = stream_open,
	FD_METHODS,
};

const struct system sys_unix_stream_spin = {
	.name = "unix-stream-spin",
	.what = "AF_UNIX stream socket, both sides poll",
	.make = stream_make,
	.open = stream_spin_open,
	FD_METHODS,
};

const struct system sys_unix_seqpacket = {
	.name = "unix-seqpacket",
	.what = "AF_UNIX seqpacket socket, blocking",
	.max_size = seqpacket_max,
	.make = seqpacket_make,
	.open = seqpacket_open,
	FD_METHODS,
};

const struct system sys_unix_seqpacket_spin = {
	.name = "unix-seqpacket-spin",
	.what = "AF_UNIX seqpacket socket, both sides poll",
	.max_size = seqpacket_max,
	.make = seqpacket_make,
	.open = seqpacket_spin_open,
	FD_METHODS,
};
