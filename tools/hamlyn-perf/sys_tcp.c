// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP over the loopback interface, which never leaves this machine, with
 * Nagle's delay off, and with processes that sleep or poll.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "fdchan.h"

#define CONNECT_S	5

struct ends {
	int listener;
	int client;
	int server;
};

static bool listen_on_loopback(int listener, struct sockaddr_in *address)
{
	socklen_t length = sizeof(*address);

	*address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),	/* any port */
	};
	return !bind(listener, (struct sockaddr *)address, length) &&
	       !listen(listener, 1) &&
	       !getsockname(listener, (struct sockaddr *)address, &length);
}

static void no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

/* Whoever else connects first is not our client, and is turned away. */
static bool accept_client(struct ends *ends)
{
	struct sockaddr_in from, client;
	socklen_t length = sizeof(client);
	int tries;

	if (getsockname(ends->client, (struct sockaddr *)&client, &length))
		return false;
	for (tries = 0; tries < 8; tries++) {
		length = sizeof(from);
		ends->server = accept4(ends->listener, (struct sockaddr *)&from, &length,
				       SOCK_CLOEXEC);
		if (ends->server < 0)
			return false;
		if (from.sin_port == client.sin_port &&
		    from.sin_addr.s_addr == client.sin_addr.s_addr)
			return true;
		close(ends->server);
		ends->server = -1;
	}
	errno = ECONNABORTED;
	return false;
}

static bool connect_ends(struct ends *ends)
{
	struct timeval limit = { .tv_sec = CONNECT_S }, none = { 0 };
	struct sockaddr_in address;

	ends->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ends->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ends->listener < 0 || ends->client < 0)
		return false;
	setsockopt(ends->listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(ends->client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (!listen_on_loopback(ends->listener, &address) ||
	    connect(ends->client, (struct sockaddr *)&address, sizeof(address)) ||
	    !accept_client(ends))
		return false;
	setsockopt(ends->client, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none));
	/* It has the listener's limit */
	setsockopt(ends->server, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof(none));
	no_delay(ends->client);
	no_delay(ends->server);
	return true;
}

/* Both ends of a connection, or false with errno set. */
static bool make_ends(struct ends *ends)
{
	int error;
	bool made;

	*ends = (struct ends){ -1, -1, -1 };
	made = connect_ends(ends);
	error = errno;
	if (ends->listener >= 0)
		close(ends->listener);
	if (!made && ends->client >= 0)
		close(ends->client);
	errno = error;
	return made;
}

static const char *tcp_missing(const struct options *options)
{
	static char text[128];
	struct ends ends;

	(void)options;
	if (!make_ends(&ends)) {
		snprintf(text, sizeof(text), "no TCP connection over loopback: %s "
			 "(ip link set lo up?)", strerror(errno));
		return text;
	}
	close(ends.client);
	close(ends.server);
	return NULL;
}

static void *tcp_make(const struct options *options)
{
	struct fd_stage *stage = fd_stage_new();
	struct ends ends;

	(void)options;
	if (!stage)
		return NULL;
	if (!make_ends(&ends)) {
		fail("no TCP connection over loopback: %s", strerror(errno));
		fd_stage_free(stage);
		return NULL;
	}
	stage->fds[0][0] = ends.client;
	stage->fds[0][1] = dup(ends.client);
	stage->fds[1][0] = ends.server;
	stage->fds[1][1] = dup(ends.server);
	return stage;
}

static struct chan *tcp_open(struct side *side, void *stage)
{
	return fd_open(side, stage, &sys_tcp);
}

static struct chan *spin_open(struct side *side, void *stage)
{
	return fd_open_spin(side, stage, &sys_tcp_spin);
}

const struct system sys_tcp = {
	.name = "tcp",
	.what = "TCP over loopback, TCP_NODELAY, blocking",
	.missing = tcp_missing,
	.make = tcp_make,
	.open = tcp_open,
	FD_METHODS,
};

const struct system sys_tcp_spin = {
	.name = "tcp-spin",
	.what = "TCP over loopback, TCP_NODELAY, both sides poll",
	.missing = tcp_missing,
	.make = tcp_make,
	.open = spin_open,
	FD_METHODS,
};
