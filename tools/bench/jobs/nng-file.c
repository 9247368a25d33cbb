// SPDX-License-Identifier: GPL-2.0-only
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
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
	static char part[65536];
	nng_socket socket;
	uint64_t total = 0;
	size_t length;

	must(nng_pair0_open(&socket), "socket");
	must(nng_listen(socket, "ipc://job.sock", NULL, 0), "listen");
	do {
		length = sizeof(part);
		must(nng_recv(socket, part, &length, 0), "receive");
		total += consume(part, length);
	} while (length != 0);	/* an empty message ends it */
	must(nng_send(socket, &total, sizeof(total), 0), "send");
	pause();
}

static void run_client(long count)
{
	static char part[65536];
	nng_socket socket;
	uint64_t total;
	size_t length = sizeof(total);
	long i;

	must(nng_pair0_open(&socket), "socket");
	must(nng_dial(socket, "ipc://job.sock", NULL, NNG_FLAG_NONBLOCK), "connect");
	for (i = 0; i < count * 16; i++)
		must(nng_send(socket, part, sizeof(part), 0), "send");
	must(nng_send(socket, part, 0, 0), "send");
	must(nng_recv(socket, &total, &length, 0), "receive");
	if (total != (uint64_t)count << 20)
		exit(1);
	nng_close(socket);
}
