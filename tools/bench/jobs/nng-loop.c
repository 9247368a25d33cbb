// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <poll.h>
#include <sys/timerfd.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include "both.h"

static void must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "%s: %s\n", what, nng_strerror(err));
		exit(1);
	}
}

static void run_server(void)
{
	const struct itimerspec second = { { 1, 0 }, { 1, 0 } };
	struct pollfd fds[2] = { { .events = POLLIN }, { .events = POLLIN } };
	nng_socket socket;
	nng_msg *message;
	uint64_t ticks;
	int err;

	must(nng_rep0_open(&socket), "socket");
	must(nng_listen(socket, "ipc://job.sock", NULL, 0), "listen");
	must(nng_socket_get_int(socket, NNG_OPT_RECVFD, &fds[0].fd), "descriptor");
	fds[1].fd = check(timerfd_create(CLOCK_MONOTONIC, 0), "timer");
	timerfd_settime(fds[1].fd, 0, &second, NULL);
	for (;;) {
		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			check(-1, "poll");
		if (fds[1].revents)
			check(read(fds[1].fd, &ticks, sizeof(ticks)), "timer");
		while ((err = nng_recvmsg(socket, &message, NNG_FLAG_NONBLOCK)) == 0)
			must(nng_sendmsg(socket, message, 0), "send");
		if (err != NNG_EAGAIN)
			must(err, "receive");
	}
}

static void run_client(long count)
{
	char message[64] = "hello";
	nng_socket socket;
	size_t length;

	must(nng_req0_open(&socket), "socket");
	must(nng_dial(socket, "ipc://job.sock", NULL, NNG_FLAG_NONBLOCK), "connect");
	while (count--) {
		must(nng_send(socket, message, sizeof(message), 0), "send");
		length = sizeof(message);
		must(nng_recv(socket, message, &length, 0), "receive");
	}
	nng_close(socket);
}
