// SPDX-License-Identifier: GPL-2.0-only
#include <sys/socket.h>
#include <sys/un.h>
#include "both.h"

static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "job.sock" };

static void subscribe(long count)
{
	int fd = check(socket(AF_UNIX, SOCK_SEQPACKET, 0), "socket");
	char message[65536];

	(void)count;
	while (connect(fd, (const void *)&address, sizeof(address)))
		usleep(1000);
	while (check(recv(fd, message, sizeof(message), 0), "receive") > 0)
		;
	close(fd);
}

static void run_server(void)
{
	several(SENDERS, subscribe, 0);
}

/* One that is slow keeps all others waiting */
static void run_client(long count)
{
	int fds[SENDERS], i, listener = check(socket(AF_UNIX, SOCK_SEQPACKET, 0), "socket");
	char message[64] = "news";

	check(bind(listener, (const void *)&address, sizeof(address)), "bind");
	check(listen(listener, SENDERS), "listen");
	for (i = 0; i < SENDERS; i++)
		fds[i] = check(accept(listener, NULL, NULL), "accept");
	while (count--)
		for (i = 0; i < SENDERS; i++)
			check(send(fds[i], message, sizeof(message), MSG_NOSIGNAL), "send");
	for (i = 0; i < SENDERS; i++) {
		shutdown(fds[i], SHUT_WR);
		check(recv(fds[i], message, sizeof(message), 0), "end");
	}
}
