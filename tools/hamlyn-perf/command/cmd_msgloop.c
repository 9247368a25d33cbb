// SPDX-License-Identifier: GPL-2.0-only
/*
 * One thread sends itself 16 bytes and receives them, over and over. Nobody
 * else needs a CPU for it but a NIC engine that is awake, so the time per
 * message can be had where two spinning processes cannot: in a virtual machine
 * with one processor whose clock counts instructions.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/endpoint.h"

#define DEFAULT_N	10000
#define WARM_UP		100
#define LOOP_BYTES	16

struct loop {
	struct endpoint ep;
	int in;
	int out;
};

struct loop_system {
	const char *name;
	int (*open)(struct loop *loop, const struct options *options);
	int (*once)(struct loop *loop, unsigned char *data);
	uint64_t (*kicks)(struct loop *loop);
	void (*close)(struct loop *loop);
};

/* ---- Hamlyn ------------------------------------------------------------- */

static int hamlyn_open(struct loop *loop, const struct options *options)
{
	const struct endpoint_attr attr = {
		.bytes = 4096, .metas = 1, .notifications = 31,
	};

	return endpoint_open(&loop->ep, options, &attr);
}

static int hamlyn_once(struct loop *loop, unsigned char *data)
{
	struct endpoint *ep = &loop->ep;
	struct hamlyn_nq_entry entry;

	if (endpoint_send(ep, &ep->own, data, LOOP_BYTES) < 0 ||
	    endpoint_recv(ep, &entry) < 0)
		return -1;
	memcpy(data, h_area_addr(ep->in), LOOP_BYTES);
	return 0;
}

static uint64_t hamlyn_kicks(struct loop *loop)
{
	struct hamlyn_stats stats = { 0 };

	return h_terminus_stats(loop->ep.terminus, &stats) < 0 ? 0 : stats.kicks;
}

static void hamlyn_close(struct loop *loop)
{
	endpoint_close(&loop->ep);
}

/* ---- descriptors -------------------------------------------------------- */

static int pipe_open(struct loop *loop, const struct options *options)
{
	int fds[2];

	(void)options;
	if (pipe(fds) < 0)
		return fail("no pipe: %s", strerror(errno));
	loop->in = fds[0];
	loop->out = fds[1];
	return 0;
}

static int socket_open(struct loop *loop, int type)
{
	int fds[2];

	if (socketpair(AF_UNIX, type, 0, fds) < 0)
		return fail("no AF_UNIX socket pair: %s", strerror(errno));
	loop->in = fds[0];
	loop->out = fds[1];
	return 0;
}

static int stream_open(struct loop *loop, const struct options *options)
{
	(void)options;
	return socket_open(loop, SOCK_STREAM);
}

static int seqpacket_open(struct loop *loop, const struct options *options)
{
	(void)options;
	return socket_open(loop, SOCK_SEQPACKET);
}

static int fd_once(struct loop *loop, unsigned char *data)
{
	if (write(loop->out, data, LOOP_BYTES) != LOOP_BYTES ||
	    read(loop->in, data, LOOP_BYTES) != LOOP_BYTES)
		return fail("cannot write and read %d bytes: %s", LOOP_BYTES,
			    strerror(errno));
	return 0;
}

static void fd_close(struct loop *loop)
{
	close(loop->in);
	close(loop->out);
}

static const struct loop_system systems[] = {
	{ "hamlyn", hamlyn_open, hamlyn_once, hamlyn_kicks, hamlyn_close },
	{ "pipe", pipe_open, fd_once, NULL, fd_close },
	{ "unix-stream", stream_open, fd_once, NULL, fd_close },
	{ "unix-seqpacket", seqpacket_open, fd_once, NULL, fd_close },
};

/* ---- the loop ----------------------------------------------------------- */

static int run(const struct loop_system *system, struct loop *loop, uint64_t n)
{
	unsigned char data[LOOP_BYTES] = { 0 };
	uint64_t i, number;

	for (i = 0; i < n; i++) {
		memcpy(data, &i, sizeof(i));
		if (system->once(loop, data) < 0)
			return -1;
		memcpy(&number, data, sizeof(number));
		if (number != i)
			return fail("message %" PRIu64 " arrived where %" PRIu64 " was due",
				    number, i);
	}
	return 0;
}

static void print(const struct options *options, const char *name, uint64_t n,
		  uint64_t ns, uint64_t kicks)
{
	double each = (double)ns / (double)n;

	switch (options->format) {
	case FORMAT_TABLE:
		printf("%-14s %10.1f ns per message (%" PRIu64 " messages of %d bytes, %"
		       PRIu64 " kicks)\n", name, each, n, LOOP_BYTES, kicks);
		break;
	case FORMAT_JSON:
		printf("{\"system\":\"%s\",\"test\":\"msgloop\",\"size\":%d,"
		       "\"ns_per_message\":%.1f,\"messages\":%" PRIu64 ",\"kicks\":%" PRIu64
		       "}\n", name, LOOP_BYTES, each, n, kicks);
		break;
	case FORMAT_CSV:
		printf("%s,msgloop,%d,%.1f,%" PRIu64 ",%" PRIu64 "\n", name, LOOP_BYTES, each,
		       n, kicks);
		break;
	}
}

static int measure(const struct loop_system *system, const struct options *options)
{
	uint64_t n = options->n ? options->n : DEFAULT_N;
	uint64_t start, ns, kicks = 0;
	struct loop loop = { .in = -1 };
	int ret;

	if (system->open(&loop, options) < 0)
		return -1;
	ret = run(system, &loop, WARM_UP);
	if (system->kicks)
		kicks = system->kicks(&loop);
	start = clock_ns();
	if (!ret)
		ret = run(system, &loop, n);
	ns = clock_ns() - start;
	if (system->kicks)
		kicks = system->kicks(&loop) - kicks;
	system->close(&loop);
	if (!ret)
		print(options, system->name, n, ns, kicks);
	return ret;
}

static const struct loop_system *find(const char *name, size_t length)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(systems); i++)
		if (strlen(systems[i].name) == length &&
		    !memcmp(systems[i].name, name, length))
			return &systems[i];
	fail_usage("msgloop knows no \"%.*s\"; it knows hamlyn, pipe, unix-stream and "
		   "unix-seqpacket", (int)length, name);
	return NULL;
}

static int check_names(const char *names)
{
	size_t length;

	for (;; names += length + 1) {
		length = strcspn(names, ",");
		if (!find(names, length))
			return -1;
		if (!names[length])
			return 0;
	}
}

int cmd_msgloop(const struct options *options)
{
	const char *names = options->systems ? options->systems : "hamlyn";
	size_t length;

	if (check_names(names) < 0)
		return -1;
	wait_setup(options->ncpus, options->timeout_s);
	if (options->format == FORMAT_CSV)
		printf("system,test,size,ns_per_message,messages,kicks\n");
	for (;; names += length + 1) {
		length = strcspn(names, ",");
		if (measure(find(names, length), options) < 0)
			return -1;
		if (!names[length])
			return 0;
	}
}
