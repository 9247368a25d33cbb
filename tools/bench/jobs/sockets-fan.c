// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
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
			/* An empty-handed sender wants to know that all has come */
			if (length == 1)
				length = send(fds[i].fd, message, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			if (length <= 0) {
				close(fds[i].fd);
				fds[i--] = fds[--n];
			}
		}
	}
}

static void send_all(long count)
{
	int fd = check(socket(AF_UNIX, SOCK_SEQPACKET, 0), "socket");
	char message[64] = "hello";

	while (connect(fd, (const void *)&address, sizeof(address)))
		usleep(1000);
	while (count--)
		check(send(fd, message, sizeof(message), MSG_NOSIGNAL), "send");
	check(send(fd, message, 1, MSG_NOSIGNAL), "send");
	check(recv(fd, message, 1, 0), "receive");
	close(fd);
}

static void run_client(long count)
{
	several(SENDERS, send_all, count / SENDERS);
}
