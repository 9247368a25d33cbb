// SPDX-License-Identifier: GPL-2.0-only
/*
 * ZeroMQ: two PAIR sockets over ipc, as between two processes of a machine. A thread of the
 * library's in each process moves the bytes, on the processor of the one that it serves; the
 * process sleeps meanwhile. zmq_send() copies; what is received is used where it is.
 */
#include "system/absent.h"

#define NAME	"zeromq"
#define WHAT	"ZeroMQ, PAIR over ipc, blocking"

#ifdef HAVE_ZEROMQ
#include <errno.h>
#include <string.h>
#include <zmq.h>

#include "base/library.h"
#include "load/meeting.h"

static struct {
	__typeof__(zmq_ctx_new) *zmq_ctx_new;
	__typeof__(zmq_ctx_term) *zmq_ctx_term;
	__typeof__(zmq_socket) *zmq_socket;
	__typeof__(zmq_close) *zmq_close;
	__typeof__(zmq_setsockopt) *zmq_setsockopt;
	__typeof__(zmq_bind) *zmq_bind;
	__typeof__(zmq_connect) *zmq_connect;
	__typeof__(zmq_send) *zmq_send;
	__typeof__(zmq_msg_init) *zmq_msg_init;
	__typeof__(zmq_msg_recv) *zmq_msg_recv;
	__typeof__(zmq_msg_data) *zmq_msg_data;
	__typeof__(zmq_msg_size) *zmq_msg_size;
	__typeof__(zmq_msg_close) *zmq_msg_close;
	__typeof__(zmq_errno) *zmq_errno;
	__typeof__(zmq_strerror) *zmq_strerror;
} zmq;

static const struct library_call calls[] = {
	LIBRARY_CALL(zmq, zmq_ctx_new),
	LIBRARY_CALL(zmq, zmq_ctx_term),
	LIBRARY_CALL(zmq, zmq_socket),
	LIBRARY_CALL(zmq, zmq_close),
	LIBRARY_CALL(zmq, zmq_setsockopt),
	LIBRARY_CALL(zmq, zmq_bind),
	LIBRARY_CALL(zmq, zmq_connect),
	LIBRARY_CALL(zmq, zmq_send),
	LIBRARY_CALL(zmq, zmq_msg_init),
	LIBRARY_CALL(zmq, zmq_msg_recv),
	LIBRARY_CALL(zmq, zmq_msg_data),
	LIBRARY_CALL(zmq, zmq_msg_size),
	LIBRARY_CALL(zmq, zmq_msg_close),
	LIBRARY_CALL(zmq, zmq_errno),
	LIBRARY_CALL(zmq, zmq_strerror),
};

static const struct library library = { "libzmq.so.5", calls, ARRAY_SIZE(calls) };

struct zeromq_chan {
	struct chan chan;
	void *context;
	void *socket;
	zmq_msg_t message;
};

static inline struct zeromq_chan *to_zeromq(struct chan *chan)
{
	return container_of(chan, struct zeromq_chan, chan);
}

static int wrong(const char *what)
{
	return fail("%s: %s", what, zmq.zmq_strerror(zmq.zmq_errno()));
}

static const char *zeromq_missing(const struct options *options)
{
	(void)options;
	return library_missing(&library);
}

static void zeromq_close(struct chan *chan)
{
	struct zeromq_chan *z = to_zeromq(chan);

	if (z->socket)
		zmq.zmq_close(z->socket);
	if (z->context)
		zmq.zmq_ctx_term(z->context);
	free(chan->out);
	free(z);
}

static int set(struct zeromq_chan *z, int option, int value)
{
	return zmq.zmq_setsockopt(z->socket, option, &value, sizeof(value)) ?
	       wrong("zmq_setsockopt") : 0;
}

/* As for the others, at most @count messages are to wait at either side. */
static int make_socket(struct zeromq_chan *z, uint32_t count)
{
	int patience = (int)z->chan.side->options->timeout_s * 1000;

	z->socket = zmq.zmq_socket(z->context, ZMQ_PAIR);
	if (!z->socket)
		return wrong("zmq_socket");
	if (set(z, ZMQ_SNDHWM, (int)count) < 0 || set(z, ZMQ_RCVHWM, (int)count) < 0 ||
	    set(z, ZMQ_LINGER, 0) < 0 || set(z, ZMQ_RCVTIMEO, patience) < 0)
		return -1;
	return set(z, ZMQ_SNDTIMEO, patience);
}

static int meet(struct zeromq_chan *z)
{
	struct side *side = z->chan.side;
	struct meeting here;

	if (meeting_make(&here, "ipc://@") < 0)
		return -1;
	if (side->id && zmq.zmq_bind(z->socket, here.address) < 0)
		return wrong("zmq_bind");
	if (meeting_tell(&here, side) < 0)
		return -1;
	if (!side->id && zmq.zmq_connect(z->socket, here.address) < 0)
		return wrong("zmq_connect");
	return 0;
}

static struct chan *zeromq_open(struct side *side, void *stage)
{
	struct zeromq_chan *z = calloc(1, sizeof(*z));

	(void)stage;
	if (!z) {
		fail("out of memory");
		return NULL;
	}
	z->chan.system = &sys_zeromq;
	z->chan.side = side;
	z->chan.out = chan_alloc(chan_room());
	if (!z->chan.out || library_load(&library) < 0) {
		zeromq_close(&z->chan);
		return NULL;
	}
	z->context = zmq.zmq_ctx_new();
	if (!z->context) {
		wrong("zmq_ctx_new");
		zeromq_close(&z->chan);
		return NULL;
	}
	zmq.zmq_msg_init(&z->message);
	return &z->chan;
}

/* Other limits need other sockets: changed ones have made a connected pair stop. */
static int zeromq_prepare(struct chan *chan)
{
	struct zeromq_chan *z = to_zeromq(chan);

	if (z->socket)
		zmq.zmq_close(z->socket);
	return make_socket(z, chan->count) < 0 ? -1 : meet(z);
}

static void *zeromq_reserve(struct chan *chan)
{
	return chan_out(chan);
}

static int zeromq_commit(struct chan *chan)
{
	while (zmq.zmq_send(to_zeromq(chan)->socket, chan_out(chan), chan->size, 0) < 0)
		if (zmq.zmq_errno() != EINTR)
			return wrong("zmq_send");
	chan->out_pos = chan_next(chan, chan->out_pos);
	return 0;
}

static const void *zeromq_take(struct chan *chan)
{
	struct zeromq_chan *z = to_zeromq(chan);

	while (zmq.zmq_msg_recv(&z->message, z->socket, 0) < 0)
		if (zmq.zmq_errno() != EINTR) {
			wrong("zmq_msg_recv");
			return NULL;
		}
	if (!chan_fits(chan, zmq.zmq_msg_size(&z->message)))
		return NULL;
	chan->in_pos = chan_next(chan, chan->in_pos);
	return zmq.zmq_msg_data(&z->message);
}

static int zeromq_release(struct chan *chan)
{
	struct zeromq_chan *z = to_zeromq(chan);

	zmq.zmq_msg_close(&z->message);
	zmq.zmq_msg_init(&z->message);
	return 0;
}

const struct system sys_zeromq = {
	.name = NAME,
	.what = WHAT,
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.helped = true,
	.missing = zeromq_missing,
	.open = zeromq_open,
	.close = zeromq_close,
	.prepare = zeromq_prepare,
	.reserve = zeromq_reserve,
	.commit = zeromq_commit,
	.take = zeromq_take,
	.release = zeromq_release,
};

#else /* HAVE_ZEROMQ */
SYSTEM_ABSENT(sys_zeromq, NAME, WHAT, "libzmq3-dev");
#endif
