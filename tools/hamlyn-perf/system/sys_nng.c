// SPDX-License-Identifier: GPL-2.0-only
/*
 * nng: two pair sockets over ipc. Threads of the library's in each process move the bytes, on the
 * processor of the one that they serve; the process sleeps meanwhile. nng_send() copies; what is
 * received is used where it is.
 */
#include "system/absent.h"

#define NAME	"nng"
#define WHAT	"nng, pair0 over ipc, blocking"

#ifdef HAVE_NNG
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>

#include "base/library.h"
#include "load/meeting.h"

static struct {
	__typeof__(nng_pair0_open) *nng_pair0_open;
	__typeof__(nng_close) *nng_close;
	__typeof__(nng_listen) *nng_listen;
	__typeof__(nng_dial) *nng_dial;
	__typeof__(nng_send) *nng_send;
	__typeof__(nng_recvmsg) *nng_recvmsg;
	__typeof__(nng_msg_body) *nng_msg_body;
	__typeof__(nng_msg_len) *nng_msg_len;
	__typeof__(nng_msg_free) *nng_msg_free;
	__typeof__(nng_strerror) *nng_strerror;
	__typeof__(nng_socket_set_ms) *nng_socket_set_ms;
	__typeof__(nng_socket_set_size) *nng_socket_set_size;
	__typeof__(nng_socket_set_int) *nng_socket_set_int;
} nng;

static const struct library_call calls[] = {
	LIBRARY_CALL(nng, nng_pair0_open),
	LIBRARY_CALL(nng, nng_close),
	LIBRARY_CALL(nng, nng_listen),
	LIBRARY_CALL(nng, nng_dial),
	LIBRARY_CALL(nng, nng_send),
	LIBRARY_CALL(nng, nng_recvmsg),
	LIBRARY_CALL(nng, nng_msg_body),
	LIBRARY_CALL(nng, nng_msg_len),
	LIBRARY_CALL(nng, nng_msg_free),
	LIBRARY_CALL(nng, nng_strerror),
	LIBRARY_CALL(nng, nng_socket_set_ms),
	LIBRARY_CALL(nng, nng_socket_set_size),
	LIBRARY_CALL(nng, nng_socket_set_int),
};

static const struct library library = { "libnng.so.1", calls, ARRAY_SIZE(calls) };

struct nng_chan {
	struct chan chan;
	nng_socket socket;
	nng_msg *message;
};

static inline struct nng_chan *to_nng(struct chan *chan)
{
	return container_of(chan, struct nng_chan, chan);
}

static int wrong(const char *what, int error)
{
	return fail("%s: %s", what, nng.nng_strerror(error));
}

static const char *nng_missing(const struct options *options)
{
	(void)options;
	return library_missing(&library);
}

static void nng_chan_close(struct chan *chan)
{
	struct nng_chan *n = to_nng(chan);

	if (n->socket.id)
		nng.nng_close(n->socket);
	free(chan->out);
	free(n);
}

static int make_socket(struct nng_chan *n, const struct options *options)
{
	nng_duration patience = (nng_duration)options->timeout_s * 1000;
	int error = nng.nng_pair0_open(&n->socket);

	if (!error)
		error = nng.nng_socket_set_ms(n->socket, NNG_OPT_RECVTIMEO, patience);
	if (!error)
		error = nng.nng_socket_set_ms(n->socket, NNG_OPT_SENDTIMEO, patience);
	/* Else it refuses more than 1 MiB */
	if (!error)
		error = nng.nng_socket_set_size(n->socket, NNG_OPT_RECVMAXSZ, 0);
	if (error)
		return wrong("no nng socket", error);
	/* Messages that it may keep; where it knows of no such thing it keeps one or two. */
	nng.nng_socket_set_int(n->socket, NNG_OPT_SENDBUF, CHAN_MAX_COUNT);
	nng.nng_socket_set_int(n->socket, NNG_OPT_RECVBUF, CHAN_MAX_COUNT);
	return 0;
}

static int meet(struct nng_chan *n)
{
	struct side *side = n->chan.side;
	struct meeting here;
	int error = 0;

	if (meeting_make(&here, "abstract://") < 0)
		return -1;
	if (side->id)
		error = nng.nng_listen(n->socket, here.address, NULL, 0);
	if (error)
		return wrong("nng_listen", error);
	if (meeting_tell(&here, side) < 0)
		return -1;
	if (!side->id)
		error = nng.nng_dial(n->socket, here.address, NULL, 0);
	return error ? wrong("nng_dial", error) : 0;
}

static struct chan *nng_open(struct side *side, void *stage)
{
	struct nng_chan *n = calloc(1, sizeof(*n));

	(void)stage;
	if (!n) {
		fail("out of memory");
		return NULL;
	}
	n->chan.system = &sys_nng;
	n->chan.side = side;
	n->chan.out = chan_alloc(chan_room());
	if (!n->chan.out || library_load(&library) < 0 ||
	    make_socket(n, side->options) < 0 || meet(n) < 0) {
		nng_chan_close(&n->chan);
		return NULL;
	}
	return &n->chan;
}

static void *nng_reserve(struct chan *chan)
{
	return chan_out(chan);
}

static int nng_commit(struct chan *chan)
{
	int error = nng.nng_send(to_nng(chan)->socket, chan_out(chan), chan->size, 0);

	if (error)
		return wrong("nng_send", error);
	chan->out_pos = chan_next(chan, chan->out_pos);
	return 0;
}

static const void *nng_take(struct chan *chan)
{
	struct nng_chan *n = to_nng(chan);
	int error = nng.nng_recvmsg(n->socket, &n->message, 0);

	if (error) {
		wrong("nng_recvmsg", error);
		return NULL;
	}
	if (!chan_fits(chan, nng.nng_msg_len(n->message)))
		return NULL;
	chan->in_pos = chan_next(chan, chan->in_pos);
	/* An empty body may have no address. */
	return chan->size ? nng.nng_msg_body(n->message) : n->message;
}

static int nng_release(struct chan *chan)
{
	nng.nng_msg_free(to_nng(chan)->message);
	return 0;
}

const struct system sys_nng = {
	.name = NAME,
	.what = WHAT,
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.helped = true,
	.missing = nng_missing,
	.open = nng_open,
	.close = nng_chan_close,
	.reserve = nng_reserve,
	.commit = nng_commit,
	.take = nng_take,
	.release = nng_release,
};

#else /* HAVE_NNG */
SYSTEM_ABSENT(sys_nng, NAME, WHAT, "libnng-dev");
#endif
