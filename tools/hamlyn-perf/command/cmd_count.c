// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counting instructions: one process, one operation, N times. What is counted
 * is inside the perf_op_ functions, which keep their names so that
 * "valgrind --tool=callgrind --toggle-collect=perf_op_..." finds them; what an
 * operation needs before or after it (a message to hit, a message to get rid
 * of) is outside. count.sh does the arithmetic.
 */
#include <inttypes.h>
#include <stdio.h>

#include "load/endpoint.h"
#include "load/protocols.h"

#if defined(__has_attribute)
#if __has_attribute(noipa)
#define kept __attribute__((noipa, used))
#endif
#endif
#ifndef kept
#define kept __attribute__((noinline, used))
#endif

#define DEFAULT_N	100000

struct count {
	struct endpoint ep;
	struct h_ticket ticket;
	struct hamlyn_nq_entry entry;
	unsigned char data[16];
	struct protocols p;
};

int perf_op_nothing(void *a, void *b);
int perf_op_emptypoll(struct h_nq *nq, struct hamlyn_nq_entry *entry);
int perf_op_hit(struct h_nq *nq, struct hamlyn_nq_entry *entry);
int64_t perf_op_send16(struct h_terminus *terminus, const struct h_ticket *ticket,
		       const void *data);

int perf_op_streamsend(struct h_stream_sender *s, const void *data);
int perf_op_streamrecv(struct h_stream_receiver *r, struct h_record *record);
int perf_op_channelsend(struct h_channel *channel, const void *data);
int perf_op_channelrecv(struct h_channel *channel, struct h_message *message);

/* The cost of calling one of these functions at all: to be subtracted. */
kept int perf_op_nothing(void *a, void *b)
{
	__asm__ volatile("" : : "r"(a), "r"(b) : "memory");
	return 0;
}

kept int perf_op_emptypoll(struct h_nq *nq, struct hamlyn_nq_entry *entry)
{
	return h_recv(nq, entry);
}

kept int perf_op_hit(struct h_nq *nq, struct hamlyn_nq_entry *entry)
{
	return h_recv(nq, entry);
}

kept int64_t perf_op_send16(struct h_terminus *terminus, const struct h_ticket *ticket,
			    const void *data)
{
	return h_send_msg(terminus, ticket, data, 16, NULL, 0);
}

kept int perf_op_streamsend(struct h_stream_sender *s, const void *data)
{
	return h_stream_send(s, data, 16, H_NOWAIT) == 16 ? h_stream_flush(s, H_NOWAIT) : -1;
}

kept int perf_op_streamrecv(struct h_stream_receiver *r, struct h_record *record)
{
	int n = h_stream_receive(r, record, H_NOWAIT);

	if (!n)
		h_stream_release(r, record);
	return n;
}

kept int perf_op_channelsend(struct h_channel *channel, const void *data)
{
	return h_channel_send(channel, data, 16, H_NOWAIT);
}

kept int perf_op_channelrecv(struct h_channel *channel, struct h_message *message)
{
	int n = h_channel_receive(channel, message, H_NOWAIT);

	if (!n)
		h_channel_release(channel, message);
	return n;
}

static int do_nothing(struct count *count)
{
	return perf_op_nothing(count->ep.nq, &count->entry);
}

static int do_emptypoll(struct count *count)
{
	int n = perf_op_emptypoll(count->ep.nq, &count->entry);

	if (n)
		return fail("a poll that should find nothing returned %d", n);
	return 0;
}

static int do_send16(struct count *count)
{
	int64_t handle = perf_op_send16(count->ep.terminus, &count->ticket, count->data);

	if (endpoint_sent(&count->ep, handle) < 0)
		return -1;
	return endpoint_recv(&count->ep, &count->entry);
}

/* A message must have left before it can be hit at the first look. */
static int do_hit(struct count *count)
{
	struct wait wait = WAIT("end of a send");
	int64_t handle = endpoint_send(&count->ep, &count->ticket, count->data,
				       sizeof(count->data));
	int n;

	if (handle < 0)
		return -1;
	while (!h_send_done(count->ep.terminus, handle))
		if (!wait_more(&wait))
			return -1;
	n = perf_op_hit(count->ep.nq, &count->entry);
	return n == 1 ? 0 : fail("a poll that should hit returned %d", n);
}

/* On the kernel device it is on its way for a moment. */
static int came(int (*receive)(struct count *count), struct count *count, const char *what)
{
	struct wait wait = WAIT(what);
	int n;

	while ((n = receive(count)) == -EAGAIN)
		if (!wait_more(&wait))
			return -1;
	return n ? fail("%s: %s", what, strerror(-n)) : 0;
}

static int stream_came(struct count *count)
{
	return perf_op_streamrecv(count->p.stream_in, &count->p.record);
}

static int do_stream(struct count *count)
{
	if (perf_op_streamsend(count->p.stream_out, count->data) < 0)
		return fail("a stream takes no 16 bytes");
	return came(stream_came, count, "end of a stream");
}

static int channel_came(struct count *count)
{
	return perf_op_channelrecv(count->p.there, &count->p.message);
}

static int do_channel(struct count *count)
{
	if (perf_op_channelsend(count->p.here, count->data) < 0)
		return fail("a channel takes no 16 bytes");
	return came(channel_came, count, "end of a channel");
}

static const struct op {
	const char *name;
	const char *what;
	int (*run)(struct count *count);
} ops[] = {
	{ "nothing", "a call that does nothing", do_nothing },
	{ "send16", "h_send_msg() of 16 bytes", do_send16 },
	{ "emptypoll", "h_recv() that finds nothing", do_emptypoll },
	{ "hit", "h_recv() that finds a message", do_hit },
	{ "streamsend", "h_stream_send() and h_stream_flush() of 16 bytes", do_stream },
	{ "streamrecv", "h_stream_receive() and h_stream_release() of them", do_stream },
	{ "channelsend", "h_channel_send() of 16 bytes", do_channel },
	{ "channelrecv", "h_channel_receive() and h_channel_release() of them", do_channel },
};

void cmd_count_ops(void)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ops); i++)
		printf("  %-12s %s\n", ops[i].name, ops[i].what);
}

static const struct op *find_op(const char *name)
{
	size_t i;

	for (i = 0; name && i < ARRAY_SIZE(ops); i++)
		if (!strcmp(ops[i].name, name))
			return &ops[i];
	if (name)
		fail_usage("no operation is called \"%s\"; --help lists them", name);
	else
		fail_usage("count needs --op; --help lists the operations");
	return NULL;
}

int cmd_count(const struct options *options)
{
	const struct endpoint_attr attr = {
		.bytes = 4096, .metas = 1, .notifications = 31,
	};
	uint64_t n = options->n ? options->n : DEFAULT_N;
	const struct op *op = find_op(options->op);
	struct count count;
	uint64_t i;
	int ret = 0;

	if (!op || endpoint_open(&count.ep, options, &attr) < 0)
		return -1;
	wait_setup(options->ncpus, options->timeout_s);
	if (protocols_open(&count.p, h_dev_name(count.ep.dev), H_MANAGER_SINGLE,
			   sizeof(count.data)) < 0) {
		endpoint_close(&count.ep);
		return -1;
	}
	count.ticket = count.ep.own;
	memset(count.data, 1, sizeof(count.data));
	for (i = 0; i < n && !ret; i++)
		ret = op->run(&count);
	protocols_close(&count.p);
	endpoint_close(&count.ep);
	if (!ret)
		printf("%s: %" PRIu64 " times\n", op->name, n);
	return ret;
}
