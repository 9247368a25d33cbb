// SPDX-License-Identifier: GPL-2.0-only
/*
 * UCX's tagged messages over shared memory in our own loops, where its program ucx_perftest has
 * its own: the receiver reads and checks what it gets, and there is a timetable to keep. Receives
 * are posted ahead, so that nothing comes unexpected.
 */
#include "system/absent.h"

#define NAME	"ucx-tag"
#define WHAT	"UCX, tagged, shared memory, both sides poll (libucp, in our loops)"

#ifdef HAVE_UCP
#include <stdio.h>
#include <string.h>
#include <ucp/api/ucp.h>

#include "base/library.h"
#include "base/wait.h"

#define MAX_ADDRESS	4096
#define AHEAD		64	/* more receives that are posted only take lines of the cache */

static struct {
	__typeof__(ucp_config_read) *ucp_config_read;
	__typeof__(ucp_config_modify) *ucp_config_modify;
	__typeof__(ucp_config_release) *ucp_config_release;
	__typeof__(ucp_init_version) *ucp_init_version;
	__typeof__(ucp_cleanup) *ucp_cleanup;
	__typeof__(ucp_worker_create) *ucp_worker_create;
	__typeof__(ucp_worker_destroy) *ucp_worker_destroy;
	__typeof__(ucp_worker_get_address) *ucp_worker_get_address;
	__typeof__(ucp_worker_release_address) *ucp_worker_release_address;
	__typeof__(ucp_worker_progress) *ucp_worker_progress;
	__typeof__(ucp_worker_flush_nbx) *ucp_worker_flush_nbx;
	__typeof__(ucp_ep_create) *ucp_ep_create;
	__typeof__(ucp_tag_send_nbx) *ucp_tag_send_nbx;
	__typeof__(ucp_tag_recv_nbx) *ucp_tag_recv_nbx;
	__typeof__(ucp_request_check_status) *ucp_request_check_status;
	__typeof__(ucp_request_cancel) *ucp_request_cancel;
	__typeof__(ucp_request_free) *ucp_request_free;
} ucp;

static const struct library_call calls[] = {
	LIBRARY_CALL(ucp, ucp_config_read),
	LIBRARY_CALL(ucp, ucp_config_modify),
	LIBRARY_CALL(ucp, ucp_config_release),
	LIBRARY_CALL(ucp, ucp_init_version),
	LIBRARY_CALL(ucp, ucp_cleanup),
	LIBRARY_CALL(ucp, ucp_worker_create),
	LIBRARY_CALL(ucp, ucp_worker_destroy),
	LIBRARY_CALL(ucp, ucp_worker_get_address),
	LIBRARY_CALL(ucp, ucp_worker_release_address),
	LIBRARY_CALL(ucp, ucp_worker_progress),
	LIBRARY_CALL(ucp, ucp_worker_flush_nbx),
	LIBRARY_CALL(ucp, ucp_ep_create),
	LIBRARY_CALL(ucp, ucp_tag_send_nbx),
	LIBRARY_CALL(ucp, ucp_tag_recv_nbx),
	LIBRARY_CALL(ucp, ucp_request_check_status),
	LIBRARY_CALL(ucp, ucp_request_cancel),
	LIBRARY_CALL(ucp, ucp_request_free),
};

static const struct library library = { "libucp.so.0", calls, ARRAY_SIZE(calls) };

struct address {
	size_t length;
	unsigned char bytes[MAX_ADDRESS];
};

struct ucx_chan {
	struct chan chan;
	ucp_context_h context;
	ucp_worker_h worker;
	ucp_ep_h ep;
	void *sends[CHAN_MAX_COUNT];	/* by position; NULL: the buffer is free */
	void *receives[CHAN_MAX_COUNT];	/* NULL: it has arrived, or was not posted */
	uint32_t ahead;			/* receives that are posted */
	uint32_t post_pos;		/* where the next one goes */
};

static inline struct ucx_chan *to_ucx(struct chan *chan)
{
	return container_of(chan, struct ucx_chan, chan);
}

static int wrong(const char *what, ucs_status_t status)
{
	return fail("%s: UCX error %d", what, (int)status);
}

/* From 8 KiB on one side would have to go on while the other's time is taken. */
static size_t ucx_max(void)
{
	return 4096;
}

static const char *ucx_missing(const struct options *options)
{
	(void)options;
	return library_missing(&library);
}

/* Until a request is through, and then no more of it. */
static int finish(struct ucx_chan *u, void **request)
{
	struct wait wait = WAIT("end of a request");
	ucs_status_t status;

	if (!*request)
		return 0;
	while ((status = ucp.ucp_request_check_status(*request)) == UCS_INPROGRESS) {
		ucp.ucp_worker_progress(u->worker);
		if (!wait_more(&wait))
			return -1;
	}
	ucp.ucp_request_free(*request);
	*request = NULL;
	return status == UCS_OK || status == UCS_ERR_CANCELED ? 0 : wrong("a request", status);
}

static int finish_all(struct ucx_chan *u)
{
	uint32_t i;

	for (i = 0; i < CHAN_MAX_COUNT; i++) {
		if (u->receives[i])
			ucp.ucp_request_cancel(u->worker, u->receives[i]);
		if (finish(u, &u->sends[i]) < 0 || finish(u, &u->receives[i]) < 0)
			return -1;
	}
	return 0;
}

/* The process ends soon: an end point that was closed in peace would need the other one's help. */
static void ucx_close(struct chan *chan)
{
	struct ucx_chan *u = to_ucx(chan);

	if (u->worker && !finish_all(u))
		ucp.ucp_worker_destroy(u->worker);
	if (u->context)
		ucp.ucp_cleanup(u->context);
	free(chan->in);
	free(chan->out);
	free(u);
}

static int make_worker(struct ucx_chan *u)
{
	const ucp_worker_params_t worker = {
		.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE,
		.thread_mode = UCS_THREAD_MODE_SINGLE,
	};
	const ucp_params_t params = {
		.field_mask = UCP_PARAM_FIELD_FEATURES,
		.features = UCP_FEATURE_TAG,
	};
	ucp_config_t *config;
	ucs_status_t status = ucp.ucp_config_read(NULL, NULL, &config);

	if (status != UCS_OK)
		return wrong("ucp_config_read", status);
	/* As ucx_perftest is run */
	status = ucp.ucp_config_modify(config, "TLS", "posix,sysv,cma,self");
	if (status == UCS_OK)
		status = ucp.ucp_init_version(UCP_API_MAJOR, UCP_API_MINOR, &params, config,
					      &u->context);
	ucp.ucp_config_release(config);
	if (status == UCS_OK)
		status = ucp.ucp_worker_create(u->context, &worker, &u->worker);
	return status == UCS_OK ? 0 : wrong("no worker", status);
}

static int own_address(struct ucx_chan *u, struct address *own)
{
	ucp_address_t *address;
	ucs_status_t status = ucp.ucp_worker_get_address(u->worker, &address, &own->length);

	if (status != UCS_OK)
		return wrong("no address", status);
	if (own->length <= sizeof(own->bytes))
		memcpy(own->bytes, address, own->length);
	ucp.ucp_worker_release_address(u->worker, address);
	return own->length <= sizeof(own->bytes) ? 0 :
	       fail("an address of %zu bytes", own->length);
}

static int meet(struct ucx_chan *u)
{
	struct address own = { 0 }, peer;
	ucp_ep_params_t params = { .field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS };
	ucs_status_t status;

	if (own_address(u, &own) < 0 || pair_swap(u->chan.side, &own, &peer, sizeof(own)) < 0)
		return -1;
	params.address = (const ucp_address_t *)peer.bytes;
	status = ucp.ucp_ep_create(u->worker, &params, &u->ep);
	return status == UCS_OK ? 0 : wrong("no end point", status);
}

static struct chan *ucx_open(struct side *side, void *stage)
{
	struct ucx_chan *u = calloc(1, sizeof(*u));

	(void)stage;
	if (!u) {
		fail("out of memory");
		return NULL;
	}
	u->chan.system = &sys_ucx_tag;
	u->chan.side = side;
	u->chan.in = chan_alloc(chan_room());
	u->chan.out = chan_alloc(chan_room());
	if (!u->chan.in || !u->chan.out || library_load(&library) < 0 || make_worker(u) < 0 ||
	    meet(u) < 0) {
		ucx_close(&u->chan);
		return NULL;
	}
	return &u->chan;
}

static inline int posted(const char *what, ucs_status_ptr_t request, void **kept)
{
	if (__builtin_expect(UCS_PTR_IS_ERR(request), 0))
		return wrong(what, UCS_PTR_STATUS(request));
	*kept = request;
	return 0;
}

static inline int post_receive(struct ucx_chan *u)
{
	static const ucp_request_param_t params;
	uint32_t pos = u->post_pos;
	struct chan *chan = &u->chan;

	u->post_pos = chan_next(chan, pos);
	u->ahead++;
	return posted("ucp_tag_recv_nbx",
		      ucp.ucp_tag_recv_nbx(u->worker, chan->in + pos * chan->stride, chan->size,
					   chan->size, ~0ULL, &params), &u->receives[pos]);
}

/* What is posted for another size has to go: that is its tag, too. */
static int ucx_prepare(struct chan *chan)
{
	struct ucx_chan *u = to_ucx(chan);

	if (finish_all(u) < 0)
		return -1;
	u->post_pos = 0;
	u->ahead = 0;
	while (u->ahead < chan->count && u->ahead < AHEAD)
		if (post_receive(u) < 0)
			return -1;
	return 0;
}

static void *ucx_reserve(struct chan *chan)
{
	struct ucx_chan *u = to_ucx(chan);

	return finish(u, &u->sends[chan->out_pos]) < 0 ? NULL : chan_out(chan);
}

static int ucx_commit(struct chan *chan)
{
	static const ucp_request_param_t params;
	struct ucx_chan *u = to_ucx(chan);
	uint32_t pos = chan->out_pos;

	chan->out_pos = chan_next(chan, pos);
	return posted("ucp_tag_send_nbx",
		      ucp.ucp_tag_send_nbx(u->ep, chan->out + pos * chan->stride, chan->size,
					   chan->size, &params), &u->sends[pos]);
}

static const void *ucx_take(struct chan *chan)
{
	struct ucx_chan *u = to_ucx(chan);
	const unsigned char *buffer = chan_in(chan);

	if (finish(u, &u->receives[chan->in_pos]) < 0)
		return NULL;
	chan->in_pos = chan_next(chan, chan->in_pos);
	return buffer;
}

static int ucx_release(struct chan *chan)
{
	struct ucx_chan *u = to_ucx(chan);

	u->ahead--;
	return post_receive(u);
}

/* What waits for room needs us to go on. */
static int ucx_settle(struct chan *chan)
{
	static const ucp_request_param_t params;
	struct ucx_chan *u = to_ucx(chan);
	ucs_status_ptr_t flush;
	uint32_t i;

	for (i = 0; i < CHAN_MAX_COUNT; i++)
		if (finish(u, &u->sends[i]) < 0)
			return -1;
	flush = ucp.ucp_worker_flush_nbx(u->worker, &params);
	if (posted("ucp_worker_flush_nbx", flush, &flush) < 0)
		return -1;
	return finish(u, &flush);
}

const struct system sys_ucx_tag = {
	.name = NAME,
	.what = WHAT,
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.max_size = ucx_max,
	.missing = ucx_missing,
	.open = ucx_open,
	.close = ucx_close,
	.settle = ucx_settle,
	.prepare = ucx_prepare,
	.reserve = ucx_reserve,
	.commit = ucx_commit,
	.take = ucx_take,
	.release = ucx_release,
};

#else /* HAVE_UCP */
SYSTEM_ABSENT(sys_ucx_tag, NAME, WHAT, "libucx-dev");
#endif
