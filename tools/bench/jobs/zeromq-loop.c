// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <zmq.h>
#include "both.h"

/* The descriptor tells of edges: all that is there must be taken before it is waited for */
static void serve(void *socket)
{
	char client[256], message[65536];
	int from, length, events;
	size_t size = sizeof(events);

	while (!zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) && events & ZMQ_POLLIN) {
		from = check(zmq_recv(socket, client, sizeof(client), ZMQ_DONTWAIT), "receive");
		length = check(zmq_recv(socket, message, sizeof(message), ZMQ_DONTWAIT), "receive");
		check(zmq_send(socket, client, from, ZMQ_SNDMORE), "send");
		check(zmq_send(socket, message, length, 0), "send");
	}
}

static void run_server(void)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_ROUTER);
	const struct itimerspec second = { { 1, 0 }, { 1, 0 } };
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	size_t size = sizeof(fds[0].fd);
	uint64_t ticks;

	check(zmq_bind(socket, "ipc://job.sock"), "bind");
	check(zmq_getsockopt(socket, ZMQ_FD, &fds[0].fd, &size), "descriptor");
	fds[1].fd = check(timerfd_create(CLOCK_MONOTONIC, 0), "timer");
	timerfd_settime(fds[1].fd, 0, &second, NULL);
	for (;;) {
		serve(socket);
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			check(-1, "poll");
		if (fds[1].revents)
			check(read(fds[1].fd, &ticks, sizeof(ticks)), "timer");
	}
}

static void run_client(long count)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_DEALER);
	char message[64] = "hello";

	check(zmq_connect(socket, "ipc://job.sock"), "connect");
	while (count--) {
		check(zmq_send(socket, message, sizeof(message), 0), "send");
		check(zmq_recv(socket, message, sizeof(message), 0), "receive");
	}
	zmq_close(socket);
	zmq_ctx_term(context);
}
