// SPDX-License-Identifier: GPL-2.0-only
#include <nng/nng.h>
#include <nng/protocol/pair1/pair.h>
#include "both.h"

static void must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "%s: %s\n", what, nng_strerror(err));
		exit(1);
	}
}

/* Several to one, each of whom can be answered: pair1 in its polyamorous mode */
static void run_server(void)
{
	nng_socket socket;
	nng_msg *message;

	must(nng_pair1_open_poly(&socket), "socket");
	must(nng_listen(socket, "ipc://job.sock", NULL, 0), "listen");
	for (;;) {
		must(nng_recvmsg(socket, &message, 0), "receive");
		if (nng_msg_len(message) == 1)
			must(nng_sendmsg(socket, message, 0), "send");
		else
			nng_msg_free(message);
	}
}

static void send_all(long count)
{
	char message[64] = "hello";
	nng_socket socket;
	size_t length = sizeof(message);

	must(nng_pair1_open(&socket), "socket");
	must(nng_dial(socket, "ipc://job.sock", NULL, NNG_FLAG_NONBLOCK), "connect");
	while (count--)
		must(nng_send(socket, message, sizeof(message), 0), "send");
	must(nng_send(socket, message, 1, 0), "send");
	must(nng_recv(socket, message, &length, 0), "receive");
	nng_close(socket);
}

static void run_client(long count)
{
	several(SENDERS, send_all, count / SENDERS);
}
