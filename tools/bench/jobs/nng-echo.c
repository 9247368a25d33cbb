// SPDX-License-Identifier: GPL-2.0-only
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
	nng_socket socket;
	nng_msg *message;

	must(nng_rep0_open(&socket), "socket");
	must(nng_listen(socket, "ipc://job.sock", NULL, 0), "listen");
	for (;;) {
		must(nng_recvmsg(socket, &message, 0), "receive");
		must(nng_sendmsg(socket, message, 0), "send");
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
