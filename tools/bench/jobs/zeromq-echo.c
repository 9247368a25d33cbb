// SPDX-License-Identifier: GPL-2.0-only
#include <zmq.h>
#include "both.h"

static void run_server(void)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_ROUTER);
	char client[256], message[65536];
	int from, length;

	check(zmq_bind(socket, "ipc://job.sock"), "bind");
	for (;;) {
		from = check(zmq_recv(socket, client, sizeof(client), 0), "receive");
		length = check(zmq_recv(socket, message, sizeof(message), 0), "receive");
		check(zmq_send(socket, client, from, ZMQ_SNDMORE), "send");
		check(zmq_send(socket, message, length, 0), "send");
	}
}

static void run_client(long count)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_DEALER);
	char message[64] = "hello";

	check(zmq_connect(socket, "ipc://job.sock"), "connect");
	while (count--) {
		check(zmq_send(socket, message, sizeof(message), 0), "send");
		check(zmq_recv(socket, message, sizeof(message), 0), "receive");
	}
	zmq_close(socket);
	zmq_ctx_term(context);
}
