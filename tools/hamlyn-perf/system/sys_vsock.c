// SPDX-License-Identifier: GPL-2.0-only
/*
 * AF_VSOCK, which virtual machines talk to their host by, over its loopback transport
 * (vsock_loopback), and with processes that sleep or poll.
 */
#include <errno.h>
#include <linux/vm_sockets.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "system/fdchan.h"

#define CONNECT_S	5

struct ends {
	int listener;
	int client;
	int server;
};

static bool listen_here(struct ends *ends, struct sockaddr_vm *address)
{
	socklen_t length = sizeof(*address);

	*address = (struct sockaddr_vm){
		.svm_family = AF_VSOCK,
		.svm_cid = VMADDR_CID_LOCAL,
		.svm_port = VMADDR_PORT_ANY,
	};
	ends->listener = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return ends->listener >= 0 &&
	       !bind(ends->listener, (struct sockaddr *)address, length) &&
	       !listen(ends->listener, 1) &&
	       !getsockname(ends->listener, (struct sockaddr *)address, &length);
}

static bool connect_ends(struct ends *ends)
{
	struct timeval limit = { .tv_sec = CONNECT_S }, none = { 0 };
	struct sockaddr_vm address, client, from;
	socklen_t length = sizeof(client);

	if (!listen_here(ends, &address))
		return false;
	ends->client = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ends->client < 0 ||
	    connect(ends->client, (struct sockaddr *)&address, sizeof(address)) ||
	    getsockname(ends->client, (struct sockaddr *)&client, &length))
		return false;
	setsockopt(ends->listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	length = sizeof(from);
	ends->server = accept4(ends->listener, (struct sockaddr *)&from, &length, SOCK_CLOEXEC);
	if (ends->server < 0)
		return false;
	setsockopt(ends->server, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	/* Somebody else was faster. */
	errno = ECONNABORTED;
	return from.svm_port == client.svm_port && from.svm_cid == VMADDR_CID_LOCAL;
}

static void close_one(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* Both ends of a connection, or false with errno set. */
static bool make_ends(struct ends *ends)
{
	bool made;
	int error;

	*ends = (struct ends){ -1, -1, -1 };
	made = connect_ends(ends);
	error = errno;
	close_one(ends->listener);
	if (!made) {
		close_one(ends->client);
		close_one(ends->server);
	}
	errno = error;
	return made;
}

static const char *vsock_missing(const struct options *options)
{
	static char text[128];
	struct ends ends;

	(void)options;
	if (!make_ends(&ends)) {
		snprintf(text, sizeof(text), "no AF_VSOCK over loopback (modprobe "
			 "vsock_loopback?): %s", strerror(errno));
		return text;
	}
	close(ends.client);
	close(ends.server);
	return NULL;
}

static void *vsock_make(const struct options *options)
{
	struct ends ends;

	(void)options;
	if (!make_ends(&ends)) {
		fail("no AF_VSOCK connection: %s", strerror(errno));
		return NULL;
	}
	return fd_stage_both((const int[]){ ends.client, ends.server });
}

static struct chan *vsock_open(struct side *side, void *stage)
{
	return fd_open(side, stage, &sys_vsock);
}

static struct chan *spin_open(struct side *side, void *stage)
{
	return fd_open_spin(side, stage, &sys_vsock_spin);
}

const struct system sys_vsock = {
	.name = "vsock",
	.what = "AF_VSOCK stream over its loopback, blocking",
	.missing = vsock_missing,
	.make = vsock_make,
	.open = vsock_open,
	FD_METHODS,
};

const struct system sys_vsock_spin = {
	.name = "vsock-spin",
	.what = "AF_VSOCK stream over its loopback, both sides poll",
	.missing = vsock_missing,
	.make = vsock_make,
	.open = spin_open,
	FD_METHODS,
};
