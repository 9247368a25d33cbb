// SPDX-License-Identifier: GPL-2.0-only
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "both.h"

#define AT_ONCE	2
#define WORKERS	64

static const struct sockaddr_un address = { .sun_family = AF_UNIX, .sun_path = "job.sock" };

/* What a worker has, in order; with the listener's descriptor first, which has nothing */
static char held[WORKERS][AT_ONCE][64];
static int number[WORKERS];
static struct pollfd fds[WORKERS];
static int workers = 1;

/* Of the dead, to be done again; and what nobody has had */
static char again[WORKERS * AT_ONCE][64];
static int lost;
static long fresh;

static void work(long last)
{
	int fd = check(socket(AF_UNIX, SOCK_SEQPACKET, 0), "socket");
	char item[65536];
	ssize_t length;

	while (connect(fd, (const void *)&address, sizeof(address)))
		usleep(1000);
	while ((length = recv(fd, item, sizeof(item), 0)) > 0) {
		if (--last == 0)
			_exit(0);
		check(send(fd, item, 1, MSG_NOSIGNAL), "send");
	}
	close(fd);
}

static void run_server(void)
{
	if (check(fork(), "fork") == 0) {
		work(10);
		exit(0);
	}
	several(SENDERS, work, 0);
}

static int next(char *item)
{
	if (lost) {
		memcpy(item, again[--lost], 64);
		return 1;
	}
	memcpy(item, "item", 5);
	return fresh && fresh--;
}

static void forget(int i)
{
	while (number[i])
		memcpy(again[lost++], held[i][--number[i]], 64);
	close(fds[i].fd);
	fds[i] = fds[--workers];
	memcpy(held[i], held[workers], sizeof(held[i]));
	number[i] = number[workers];
}

static int hand_out(int i)
{
	while (number[i] < AT_ONCE && next(held[i][number[i]]))
		if (send(fds[i].fd, held[i][number[i]++], 64, MSG_NOSIGNAL) < 0)
			return -1;
	return 0;
}

static int take_result(int i)
{
	char result[64];

	if (recv(fds[i].fd, result, sizeof(result), 0) <= 0)
		return -1;
	memmove(held[i][0], held[i][1], sizeof(held[i]) - 64);
	number[i]--;
	return 0;
}

static void run_client(long count)
{
	int i, listener = check(socket(AF_UNIX, SOCK_SEQPACKET, 0), "socket");
	long done = 0;

	check(bind(listener, (const void *)&address, sizeof(address)), "bind");
	check(listen(listener, 64), "listen");
	fds[0] = (struct pollfd){ .fd = listener, .events = POLLIN };
	fresh = count;
	while (done < count) {
		check(poll(fds, workers, -1), "poll");
		if (fds[0].revents && workers < WORKERS) {
			fds[workers].fd = check(accept(listener, NULL, NULL), "accept");
			fds[workers].events = POLLIN;
			fds[workers].revents = 0;
			number[workers++] = 0;
		}
		for (i = 1; i < workers; i++) {
			if (fds[i].revents) {
				if (take_result(i)) {
					forget(i--);
					continue;
				}
				done++;
			}
			if (hand_out(i))
				forget(i--);
		}
	}
}
