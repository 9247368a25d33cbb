// SPDX-License-Identifier: GPL-2.0-only
#include <time.h>
#include <zmq.h>
#include "both.h"

#define AT_ONCE	2
#define WORKERS	64
#define PATIENCE 1

/* ZeroMQ does not tell of the dead: one that has an item for too long is taken for dead. */
struct worker {
	char name[256], held[AT_ONCE][64];
	int length, number;
	time_t since;
};

static struct worker all[WORKERS];
static int workers;
static char again[WORKERS * AT_ONCE][64];
static int lost;
static long fresh;
static void *router;

static void work(long last)
{
	void *context = zmq_ctx_new(), *socket = zmq_socket(context, ZMQ_DEALER);
	char item[65536];

	check(zmq_connect(socket, "ipc://job.sock"), "connect");
	check(zmq_send(socket, "", 0, 0), "send");
	/* An empty one ends it */
	while (check(zmq_recv(socket, item, sizeof(item), 0), "receive") > 0) {
		if (--last == 0)
			_exit(0);
		check(zmq_send(socket, item, 1, 0), "send");
	}
	zmq_close(socket);
	zmq_ctx_term(context);
}

static void run_server(void)
{
	if (check(fork(), "fork") == 0) {
		work(10);
		exit(0);
	}
	several(SENDERS, work, 0);
}

static int next(char *item)
{
	if (lost) {
		memcpy(item, again[--lost], 64);
		return 1;
	}
	memcpy(item, "item", 5);
	return fresh && fresh--;
}

static void send_to(struct worker *worker, const char *item, size_t length)
{
	check(zmq_send(router, worker->name, worker->length, ZMQ_SNDMORE), "send");
	check(zmq_send(router, item, length, 0), "send");
}

static void hand_out(struct worker *worker)
{
	while (worker->number < AT_ONCE && next(worker->held[worker->number]))
		send_to(worker, worker->held[worker->number++], 64);
}

static struct worker *who(const char *name, int length)
{
	int i;

	for (i = 0; i < workers; i++)
		if (all[i].length == length && !memcmp(all[i].name, name, length))
			return &all[i];
	return NULL;
}

static int take_result(void)
{
	char name[256], result[65536];
	int from = check(zmq_recv(router, name, sizeof(name), 0), "receive");
	int length = check(zmq_recv(router, result, sizeof(result), 0), "receive");
	struct worker *worker = who(name, from);

	if (!length && !worker && workers < WORKERS) {
		worker = &all[workers++];
		memcpy(worker->name, name, from);
		worker->length = from;
		worker->number = 0;
	}
	if (!worker)
		return 0;
	if (length) {
		memmove(worker->held[0], worker->held[1], sizeof(worker->held) - 64);
		worker->number--;
	}
	worker->since = time(NULL);
	hand_out(worker);
	return length > 0;
}

static void forget_the_dead(void)
{
	int i;

	for (i = 0; i < workers; i++)
		if (all[i].number && time(NULL) > all[i].since + PATIENCE) {
			while (all[i].number)
				memcpy(again[lost++], all[i].held[--all[i].number], 64);
			all[i--] = all[--workers];
		}
	for (i = 0; i < workers; i++)
		hand_out(&all[i]);
}

static void run_client(long count)
{
	void *context = zmq_ctx_new();
	zmq_pollitem_t item = { .events = ZMQ_POLLIN };
	long done = 0;
	int i;

	router = zmq_socket(context, ZMQ_ROUTER);
	item.socket = router;
	check(zmq_bind(router, "ipc://job.sock"), "bind");
	fresh = count;
	while (done < count) {
		if (check(zmq_poll(&item, 1, PATIENCE * 1000), "poll"))
			done += take_result();
		else
			forget_the_dead();
	}
	for (i = 0; i < workers; i++)
		send_to(&all[i], "", 0);
	zmq_close(router);
	zmq_ctx_term(context);
}
