// SPDX-License-Identifier: GPL-2.0-only
#include <zmq.h>
#include "both.h"

#define AT_ONCE	2
#define PATIENCE 1000

static void *connect_to(void *context, int type, const char *address)
{
	void *socket = zmq_socket(context, type);
	int few = AT_ONCE;

	check(zmq_setsockopt(socket, ZMQ_RCVHWM, &few, sizeof(few)), "option");
	check(zmq_setsockopt(socket, ZMQ_SNDHWM, &few, sizeof(few)), "option");
	check(zmq_connect(socket, address), "connect");
	return socket;
}

static void work(long last)
{
	void *context = zmq_ctx_new();
	void *items = connect_to(context, ZMQ_PULL, "ipc://job.sock");
	void *results = connect_to(context, ZMQ_PUSH, "ipc://job-results.sock");
	char item[65536];

	for (;;) {
		check(zmq_recv(items, item, sizeof(item), 0), "receive");
		if (--last == 0)
			_exit(0);
		check(zmq_send(results, item, 1, 0), "send");
	}
}

static void run_server(void)
{
	if (check(fork(), "fork") == 0) {
		work(10);
		exit(0);
	}
	several(SENDERS, work, 0);
}

static void push_all(long count)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_PUSH);
	char item[64] = "item";
	int few = AT_ONCE;

	check(zmq_setsockopt(socket, ZMQ_SNDHWM, &few, sizeof(few)), "option");
	check(zmq_bind(socket, "ipc://job.sock"), "bind");
	while (count--)
		check(zmq_send(socket, item, sizeof(item), 0), "send");
	/* Were it closed, a worker would not read all that is under way. */
	pause();
}

/* Nobody tells of an item that is lost: when no result comes for a second, no more will. */
static void run_client(long count)
{
	pid_t pusher = check(fork(), "fork");
	void *context, *socket;
	int patience = PATIENCE;
	char result[64];
	long done = 0;

	if (pusher == 0) {
		push_all(count);
		exit(0);
	}
	context = zmq_ctx_new();
	socket = zmq_socket(context, ZMQ_PULL);
	check(zmq_setsockopt(socket, ZMQ_RCVTIMEO, &patience, sizeof(patience)), "option");
	check(zmq_bind(socket, "ipc://job-results.sock"), "bind");
	while (done < count && zmq_recv(socket, result, sizeof(result), 0) > 0)
		done++;
	printf("lost: %ld\n", count - done);
	kill(pusher, SIGTERM);
	zmq_close(socket);
	zmq_ctx_term(context);
}
