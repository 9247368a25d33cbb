/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * One process's end of a Hamlyn conversation: an area with a slot for what
 * comes in, an area with a terminus for what goes out.
 */
#ifndef HAMLYN_PERF_ENDPOINT_H
#define HAMLYN_PERF_ENDPOINT_H

#include <hamlyn.h>

#include "base/perf.h"
#include "base/wait.h"

struct side;

struct endpoint_attr {
	size_t bytes;		/* of the message area, and of the send area */
	uint32_t metas;		/* metadata entries */
	uint32_t notifications;	/* that must fit the NQ */
};

struct endpoint {
	struct h_dev *dev;
	struct h_area *in;
	struct h_area *meta;
	struct h_area *out;
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_terminus *terminus;
	struct h_ticket own;	/* for own slot, all of the message area */
	struct h_ticket peer;	/* where to send to */
};

/* NULL: neither an option nor $HAMLYN_DEVICE names one. */
const char *device_named(const struct options *options);

/*
 * --device, or what it is by default. An embedded device is made large enough for
 * areas of @bytes, and of huge pages for --huge, unless its name says otherwise.
 */
const char *endpoint_name(const struct options *options, uint64_t bytes);
int endpoint_device(struct h_dev **dev, const struct options *options);
/* Of --huge if it was given: a wish, see h_area_page_size(). */
int endpoint_area(struct h_dev *dev, const struct options *options, size_t bytes,
		  struct h_area **area);
int endpoint_open(struct endpoint *ep, const struct options *options,
		  const struct endpoint_attr *attr);
void endpoint_close(struct endpoint *ep);
/* Both sides call it: from here on each can send to the other. */
int endpoint_meet(struct endpoint *ep, struct side *side);
int endpoint_silence(struct endpoint *ep);
int endpoint_recv_odd(struct endpoint *ep, int error);

static inline int endpoint_recv(struct endpoint *ep, struct hamlyn_nq_entry *entry)
{
	struct wait wait = WAIT(NULL);
	int n;

	while (!(n = h_recv(ep->nq, entry)))
		if (!wait_more(&wait))
			return endpoint_silence(ep);
	return n > 0 ? 0 : endpoint_recv_odd(ep, n);
}

/* The handle, or -1 with the failure told. */
static inline int64_t endpoint_sent(struct endpoint *ep, int64_t handle)
{
	if (__builtin_expect(handle >= 0, 1))
		return handle;
	return fail("send on %s: %s", h_dev_name(ep->dev), strerror((int)-handle));
}

static inline int64_t endpoint_send(struct endpoint *ep,
				    const struct h_ticket *ticket,
				    const void *data, size_t length)
{
	struct wait wait = WAIT("room in the work queue");
	int64_t handle;

	while ((handle = h_send_msg(ep->terminus, ticket, data, length, NULL, 0)) ==
	       -EAGAIN)
		if (!wait_more(&wait))
			return -1;
	return endpoint_sent(ep, handle);
}

static inline int64_t endpoint_send_word(struct endpoint *ep,
					 const struct h_ticket *fast, uint64_t word)
{
	struct wait wait = WAIT("room in the work queue");
	int64_t handle;

	while ((handle = h_send_word(ep->terminus, fast, word)) == -EAGAIN)
		if (!wait_more(&wait))
			return -1;
	return endpoint_sent(ep, handle);
}

#endif /* HAMLYN_PERF_ENDPOINT_H */
