// SPDX-License-Identifier: GPL-2.0-only
/*
 * TCP with Nagle's delay off, and with processes that sleep or poll: over the loopback interface,
 * which never leaves this machine, or to where --peer-address says.
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

#include "system/fdchan.h"
#include "base/netns.h"

#define CONNECT_S	5

struct ends {
	int listener;
	int client;
	int server;
};

static bool listen_at(int listener, const struct options *options,
		      struct sockaddr_in *address)
{
	socklen_t length = sizeof(*address);

	*address = (struct sockaddr_in){
		.sin_family = AF_INET,
		.sin_addr.s_addr = options->peer_address ? options->peer_address :
							   htonl(INADDR_LOOPBACK),
	};	/* any port */
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

/* A socket belongs to the network namespace that it was made in. */
static bool make_listener(struct ends *ends, const struct options *options,
			  struct sockaddr_in *address)
{
	int own = netns_visit(options->peer_netns);
	bool listens;

	if (own == -1)
		return false;
	ends->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	listens = ends->listener >= 0 && listen_at(ends->listener, options, address);
	return !netns_leave(own) && listens;
}

static bool connect_ends(struct ends *ends, const struct options *options)
{
	struct timeval limit = { .tv_sec = CONNECT_S }, none = { 0 };
	struct sockaddr_in address;

	if (!make_listener(ends, options, &address))
		return false;
	ends->client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (ends->client < 0)
		return false;
	setsockopt(ends->listener, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(ends->client, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	if (connect(ends->client, (struct sockaddr *)&address, sizeof(address)) ||
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
static bool make_ends(struct ends *ends, const struct options *options)
{
	int error;
	bool made;

	*ends = (struct ends){ -1, -1, -1 };
	made = connect_ends(ends, options);
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

	if (!make_ends(&ends, options)) {
		snprintf(text, sizeof(text), "no TCP connection%s: %s", options->peer_address ?
			 " to --peer-address" : " over loopback (ip link set lo up?)",
			 strerror(errno));
		return text;
	}
	close(ends.client);
	close(ends.server);
	return NULL;
}

static void *tcp_make(const struct options *options)
{
	struct ends ends;

	if (!make_ends(&ends, options)) {
		fail("no TCP connection: %s", strerror(errno));
		return NULL;
	}
	return fd_stage_both((const int[]){ ends.client, ends.server });
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
	.what = "TCP, TCP_NODELAY, blocking",
	.missing = tcp_missing,
	.make = tcp_make,
	.open = tcp_open,
	FD_METHODS,
};

const struct system sys_tcp_spin = {
	.name = "tcp-spin",
	.what = "TCP, TCP_NODELAY, both sides poll",
	.missing = tcp_missing,
	.make = tcp_make,
	.open = spin_open,
	FD_METHODS,
};
