// SPDX-License-Identifier: GPL-2.0-only
#include <zmq.h>
#include "both.h"

static void run_server(void)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PAIR);
	static char part[65536];
	uint64_t total = 0;
	int length;

	check(zmq_bind(socket, "ipc://job.sock"), "bind");
	/* An empty message ends it */
	while ((length = check(zmq_recv(socket, part, sizeof(part), 0), "receive")) > 0)
		total += consume(part, length);
	check(zmq_send(socket, &total, sizeof(total), 0), "send");
	zmq_close(socket);
	zmq_ctx_term(context);
}

static void run_client(long count)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PAIR);
	static char part[65536];
	uint64_t total;
	long i;

	check(zmq_connect(socket, "ipc://job.sock"), "connect");
	for (i = 0; i < count * 16; i++)
		check(zmq_send(socket, part, sizeof(part), 0), "send");
	check(zmq_send(socket, part, 0, 0), "send");
	check(zmq_recv(socket, &total, sizeof(total), 0), "receive");
	if (total != (uint64_t)count << 20)
		exit(1);
	zmq_close(socket);
	zmq_ctx_term(context);
}
