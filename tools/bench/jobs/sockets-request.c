// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include "both.h"

static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "job.sock" };

static void run_server(void)
{
	int listener = check(socket(AF_UNIX, SOCK_SEQPACKET, 0), "socket");
	struct pollfd fds[128] = { { .fd = listener, .events = POLLIN } };
	char message[65536];
	int i, n = 1;
	ssize_t length;

	check(bind(listener, (const void *)&address, sizeof(address)), "bind");
	check(listen(listener, 64), "listen");
	for (;;) {
		if (poll(fds, n, -1) < 0 && errno != EINTR)
			check(-1, "poll");
		if (fds[0].revents && n < 128) {
			fds[n].fd = accept(listener, NULL, NULL);
			fds[n].revents = 0;
			if (fds[n].fd >= 0)
				fds[n++].events = POLLIN;
		}
		for (i = 1; i < n; i++) {
			if (!fds[i].revents)
				continue;
			length = recv(fds[i].fd, message, sizeof(message), 0);
			if (length > 0)
				length = send(fds[i].fd, message, length,
					      MSG_NOSIGNAL | MSG_DONTWAIT);
			if (length <= 0) {
				close(fds[i].fd);
				fds[i--] = fds[--n];
			}
		}
	}
}

static void run_client(long count)
{
	int fd = check(socket(AF_UNIX, SOCK_SEQPACKET, 0), "socket");
	struct pollfd ready = { .fd = fd, .events = POLLIN };
	struct {
		uint64_t number;
		char text[56];
	} request = { .text = "hello" }, reply;
	struct timespec now;
	int64_t until, left;

	while (connect(fd, (const void *)&address, sizeof(address)))
		usleep(1000);
	while (count--) {
		request.number++;
		check(send(fd, &request, sizeof(request), MSG_NOSIGNAL), "send");
		clock_gettime(CLOCK_MONOTONIC, &now);
		until = now.tv_sec * 1000 + now.tv_nsec / 1000000 + 1000;
		do {
			clock_gettime(CLOCK_MONOTONIC, &now);
			left = until - now.tv_sec * 1000 - now.tv_nsec / 1000000;
			if (left <= 0 || check(poll(&ready, 1, left), "poll") == 0) {
				fputs("no reply within a second\n", stderr);
				exit(1);
			}
			if (check(recv(fd, &reply, sizeof(reply), 0), "receive") == 0)
				exit(1);
			/* One that was given up may come late */
		} while (reply.number != request.number);
	}
	close(fd);
}
