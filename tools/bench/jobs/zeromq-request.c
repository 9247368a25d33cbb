// SPDX-License-Identifier: GPL-2.0-only
#include <zmq.h>
#include "both.h"

static void run_server(void)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_REP);
	char message[65536];
	int length;

	check(zmq_bind(socket, "ipc://job.sock"), "bind");
	for (;;) {
		length = check(zmq_recv(socket, message, sizeof(message), 0), "receive");
		check(zmq_send(socket, message, length, 0), "send");
	}
}

static void run_client(long count)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_REQ);
	char message[64] = "hello";
	int second = 1000, on = 1, none = 0;

	/* Else a socket whose reply did not come could not be used again */
	zmq_setsockopt(socket, ZMQ_REQ_RELAXED, &on, sizeof(on));
	zmq_setsockopt(socket, ZMQ_REQ_CORRELATE, &on, sizeof(on));
	zmq_setsockopt(socket, ZMQ_RCVTIMEO, &second, sizeof(second));
	zmq_setsockopt(socket, ZMQ_LINGER, &none, sizeof(none));
	check(zmq_connect(socket, "ipc://job.sock"), "connect");
	while (count--) {
		check(zmq_send(socket, message, sizeof(message), 0), "send");
		check(zmq_recv(socket, message, sizeof(message), 0), "no reply within a second");
	}
	zmq_close(socket);
	zmq_ctx_term(context);
}
