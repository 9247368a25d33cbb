// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "both.h"

static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "job.sock" };

static void run_server(void)
{
	int fd, listener = check(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
	static char part[65536];
	uint64_t total = 0;
	ssize_t length;

	check(bind(listener, (const void *)&address, sizeof(address)), "bind");
	check(listen(listener, 1), "listen");
	fd = check(accept(listener, NULL, NULL), "accept");
	while ((length = check(read(fd, part, sizeof(part)), "receive")) > 0)
		total += consume(part, length);
	check(send(fd, &total, sizeof(total), MSG_NOSIGNAL), "send");
}

static void run_client(long count)
{
	int fd = check(socket(AF_UNIX, SOCK_STREAM, 0), "socket");
	static char part[65536];
	size_t done;
	uint64_t total;
	long i;

	while (connect(fd, (const void *)&address, sizeof(address)))
		usleep(1000);
	for (i = 0; i < count * 16; i++)
		for (done = 0; done < sizeof(part);)
			done += check(send(fd, part + done, sizeof(part) - done, MSG_NOSIGNAL),
				      "send");
	shutdown(fd, SHUT_WR);
	if (check(read(fd, &total, sizeof(total)), "receive") != sizeof(total) ||
	    total != (uint64_t)count << 20)
		exit(1);
	close(fd);
}
