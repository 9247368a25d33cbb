// SPDX-License-Identifier: GPL-2.0-only
#include <stdatomic.h>
#include <nng/nng.h>
#include <nng/protocol/reqrep0/rep.h>
#include <nng/protocol/reqrep0/req.h>
#include "both.h"

#define AT_ONCE	2

static void must(int err, const char *what)
{
	if (err) {
		fprintf(stderr, "%s: %s\n", what, nng_strerror(err));
		exit(1);
	}
}

static void gone(nng_pipe pipe, nng_pipe_ev event, void *arg)
{
	(void)pipe;
	(void)event;
	(void)arg;
	_exit(0);
}

static void work(long last)
{
	nng_socket socket;
	nng_msg *item;

	must(nng_rep0_open(&socket), "socket");
	must(nng_pipe_notify(socket, NNG_PIPE_EV_REM_POST, gone, NULL), "notify");
	must(nng_dial(socket, "ipc://job.sock", NULL, NNG_FLAG_NONBLOCK), "connect");
	for (;;) {
		must(nng_recvmsg(socket, &item, 0), "receive");
		if (--last == 0)
			_exit(0);
		nng_msg_chop(item, nng_msg_len(item) - 1);
		must(nng_sendmsg(socket, item, 0), "send");
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

/* A request is sent again when who has it is gone; as many are under way as there are contexts. */
struct request {
	nng_ctx context;
	nng_aio *aio;
	int is_sent;
};

static struct request requests[SENDERS * AT_ONCE];
static atomic_long fresh, left;

static void ask(struct request *request)
{
	nng_msg *item;

	if (atomic_fetch_sub(&fresh, 1) <= 0)
		return;
	must(nng_msg_alloc(&item, 64), "memory");
	memcpy(nng_msg_body(item), "item", 5);
	nng_aio_set_msg(request->aio, item);
	request->is_sent = 0;
	nng_ctx_send(request->context, request->aio);
}

static void step(void *arg)
{
	struct request *request = arg;

	must(nng_aio_result(request->aio), "request");
	if (!request->is_sent) {
		request->is_sent = 1;
		nng_ctx_recv(request->context, request->aio);
		return;
	}
	nng_msg_free(nng_aio_get_msg(request->aio));
	atomic_fetch_sub(&left, 1);
	ask(request);
}

static void run_client(long count)
{
	nng_socket socket;
	int i;

	atomic_store(&fresh, count);
	atomic_store(&left, count);
	must(nng_req0_open(&socket), "socket");
	must(nng_listen(socket, "ipc://job.sock", NULL, 0), "listen");
	for (i = 0; i < SENDERS * AT_ONCE; i++) {
		must(nng_ctx_open(&requests[i].context, socket), "context");
		must(nng_aio_alloc(&requests[i].aio, step, &requests[i]), "memory");
		ask(&requests[i]);
	}
	while (atomic_load(&left) > 0)
		usleep(1000);
	nng_close(socket);
}
