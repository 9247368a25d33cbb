// SPDX-License-Identifier: GPL-2.0-only
#include <zmq.h>
#include "both.h"

static void subscribe(long count)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_SUB);
	char message[65536];

	(void)count;
	zmq_setsockopt(socket, ZMQ_SUBSCRIBE, "", 0);
	check(zmq_connect(socket, "ipc://job.sock"), "connect");
	/* An empty message ends it */
	while (check(zmq_recv(socket, message, sizeof(message), 0), "receive") > 0)
		;
	zmq_close(socket);
	zmq_ctx_term(context);
}

static void run_server(void)
{
	several(SENDERS, subscribe, 0);
}

static void run_client(long count)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_XPUB);
	int i, on = 1;
	char message[64] = "news";

	/* Each subscription is told, and a slow one is waited for */
	zmq_setsockopt(socket, ZMQ_XPUB_VERBOSE, &on, sizeof(on));
	zmq_setsockopt(socket, ZMQ_XPUB_NODROP, &on, sizeof(on));
	check(zmq_bind(socket, "ipc://job.sock"), "bind");
	for (i = 0; i < SENDERS; i++)
		check(zmq_recv(socket, message, sizeof(message), 0), "subscription");
	while (count--)
		check(zmq_send(socket, message, sizeof(message), 0), "send");
	check(zmq_send(socket, message, 0, 0), "send");
	zmq_close(socket);
	zmq_ctx_term(context);
}
