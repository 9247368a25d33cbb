// SPDX-License-Identifier: GPL-2.0-only
#include <nng/nng.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include "both.h"

#define PATIENCE 1000

static void must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "%s: %s\n", what, nng_strerror(err));
		exit(1);
	}
}

static void work(long last)
{
	nng_socket items, results;
	nng_msg *item;

	must(nng_pull0_open(&items), "socket");
	must(nng_push0_open(&results), "socket");
	must(nng_dial(items, "ipc://job.sock", NULL, NNG_FLAG_NONBLOCK), "connect");
	must(nng_dial(results, "ipc://job-results.sock", NULL, NNG_FLAG_NONBLOCK), "connect");
	for (;;) {
		must(nng_recvmsg(items, &item, 0), "receive");
		if (--last == 0)
			_exit(0);
		nng_msg_chop(item, nng_msg_len(item) - 1);
		must(nng_sendmsg(results, item, 0), "send");
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
	nng_socket socket;
	char item[64] = "item";

	must(nng_push0_open(&socket), "socket");
	must(nng_listen(socket, "ipc://job.sock", NULL, 0), "listen");
	while (count--)
		must(nng_send(socket, item, sizeof(item), 0), "send");
	/* nng_close() would drop what is under way. */
	pause();
}

/* Nobody tells of an item that is lost: when no result comes for a second, no more will. */
static void run_client(long count)
{
	pid_t pusher = check(fork(), "fork");
	nng_socket socket;
	char result[64];
	size_t length = sizeof(result);
	long done = 0;

	if (pusher == 0) {
		push_all(count);
		exit(0);
	}
	must(nng_pull0_open(&socket), "socket");
	must(nng_socket_set_ms(socket, NNG_OPT_RECVTIMEO, PATIENCE), "option");
	must(nng_listen(socket, "ipc://job-results.sock", NULL, 0), "listen");
	while (done < count && nng_recv(socket, result, &length, 0) == 0) {
		length = sizeof(result);
		done++;
	}
	printf("lost: %ld\n", count - done);
	kill(pusher, SIGTERM);
	nng_close(socket);
}
