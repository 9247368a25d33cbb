// SPDX-License-Identifier: GPL-2.0-only
/* Making an endpoint, and saying what is wrong with it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/endpoint.h"
#include "load/pair.h"

#define USUAL_MIB	32	/* of an embedded device */
#define HUGE_MIB	16	/* that rounding up to huge pages may take */

static const char *device_text(const struct options *options)
{
	return options->device ? options->device : "the default device";
}

/* As h_open(): an empty variable is none. */
const char *device_named(const struct options *options)
{
	const char *name = options->device ? options->device : getenv("HAMLYN_DEVICE");

	return name && *name ? name : NULL;
}

/* A device that exists keeps the size it has. */
const char *endpoint_name(const struct options *options, uint64_t bytes)
{
	const char *name = device_named(options);
	uint64_t mib = (bytes >> 20) + 5;
	static char text[256];
	const char *huge;

	if (!name && access("/dev/hamlyn0", R_OK | W_OK))
		name = "shm:default";
	if (!name || strncmp(name, "shm:", 4))
		return name;
	huge = options->huge && !strstr(name, ",huge") ? ",huge" : "";
	if (options->huge)
		mib += mib / 2 + HUGE_MIB;
	if (mib <= USUAL_MIB || strstr(name, "size="))
		snprintf(text, sizeof(text), "%s%s", name, huge);
	else
		snprintf(text, sizeof(text), "%s%s,size=%" PRIu64 "M", name, huge, mib);
	return text;
}

int endpoint_device(struct h_dev **dev, const struct options *options)
{
	int ret = h_open(options->device, dev);

	if (ret < 0) {
		*dev = NULL;
		return fail("cannot open %s: %s (--device takes /dev/hamlynN or shm:NAME)",
			    device_text(options), strerror(-ret));
	}
	return 0;
}

int endpoint_area(struct h_dev *dev, const struct options *options, size_t bytes,
		  struct h_area **area)
{
	int ret = h_area_alloc_flags(dev, bytes, options->huge ? HAMLYN_AREA_HUGE : 0, area);

	return ret < 0 ? fail("%s has no area of %zu bytes: %s", h_dev_name(dev), bytes,
			      strerror(-ret)) : 0;
}

static int make_areas(struct endpoint *ep, const struct options *options,
		      const struct endpoint_attr *attr)
{
	size_t metas = attr->metas * sizeof(struct hamlyn_metadata);

	if (endpoint_area(ep->dev, options, attr->bytes, &ep->in) < 0 ||
	    endpoint_area(ep->dev, options, attr->bytes, &ep->out) < 0)
		return -1;
	return endpoint_area(ep->dev, options, metas, &ep->meta);
}

static uint32_t nq_entries(const struct endpoint_attr *attr)
{
	uint32_t entries = 2;

	while (entries - 1 < attr->notifications)
		entries *= 2;
	return entries;
}

static int make_slot(struct endpoint *ep, const struct endpoint_attr *attr)
{
	struct h_slot_attr slot = {
		.area = ep->in,
		.meta_area = ep->meta,
		.meta_count = attr->metas,
	};
	int ret;

	ret = h_nq_create(ep->dev, nq_entries(attr), &ep->nq);
	if (ret < 0)
		return fail("no notification queue of %u entries: %s",
			    nq_entries(attr), strerror(-ret));
	slot.nq = ep->nq;
	ret = h_slot_create(ep->dev, &slot, &ep->slot);
	if (!ret)
		ret = h_slot_ticket(ep->slot, 0, 0, 0, &ep->own);
	return ret < 0 ? fail("no slot: %s", strerror(-ret)) : 0;
}

static int make_terminus(struct endpoint *ep)
{
	struct h_terminus_attr terminus = { .flags = H_TERMINUS_SINGLE };
	int ret;

	ret = h_terminus_create(ep->dev, &terminus, &ep->terminus);
	if (!ret)
		ret = h_terminus_bind(ep->terminus, 0, ep->out, 0, 0);
	return ret < 0 ? fail("no terminus: %s", strerror(-ret)) : 0;
}

int endpoint_open(struct endpoint *ep, const struct options *options,
		  const struct endpoint_attr *attr)
{
	memset(ep, 0, sizeof(*ep));
	if (endpoint_device(&ep->dev, options) < 0)
		return -1;
	if (make_areas(ep, options, attr) < 0 || make_slot(ep, attr) < 0 ||
	    make_terminus(ep) < 0) {
		endpoint_close(ep);
		return -1;
	}
	return 0;
}

void endpoint_close(struct endpoint *ep)
{
	h_close(ep->dev);
	ep->dev = NULL;
}

/* On the embedded device a process that sleeps with a watch finds out by itself, within 0.1 s. */
#define TOLD_NS	(200 * NSEC_PER_MSEC)

/* What is sent to a host that is down is lost, which only a watch is told of. 1: it is down. */
static int knock(struct endpoint *ep, struct h_nq *nq)
{
	struct hamlyn_nq_entry entry;
	struct h_watch *watch;
	int ret = h_watch(ep->dev, &ep->peer, nq, 0, &watch);

	if (ret)
		return fail("watch on %s: %s", h_dev_name(ep->dev), strerror(-ret));
	ret = h_recv_block(nq, &entry, TOLD_NS);
	h_unwatch(watch);
	if (ret < 0 && ret != -ETIMEDOUT)
		return endpoint_recv_odd(ep, ret);
	return !ret;
}

/* A bridge or a fabric that has only just been set up has not found the other host yet. */
static int reach(struct endpoint *ep)
{
	struct wait wait = WAIT("way to the peer's host");
	struct h_nq *nq;
	int ret;

	if (ep->peer.host == ep->own.host)
		return 0;
	ret = h_nq_create(ep->dev, 2, &nq);
	if (ret)
		return fail("no notification queue of 2 entries: %s", strerror(-ret));
	while ((ret = knock(ep, nq)) > 0 && wait_slow(&wait))
		;
	h_nq_destroy(nq);
	return ret ? -1 : 0;
}

int endpoint_meet(struct endpoint *ep, struct side *side)
{
	unsigned char mine[H_TICKET_BYTES];
	unsigned char theirs[H_TICKET_BYTES];
	int ret;

	h_ticket_export(&ep->own, mine);
	if (pair_swap(side, mine, theirs, sizeof(mine)) < 0)
		return -1;
	ret = h_ticket_import(theirs, sizeof(theirs), &ep->peer);
	return ret < 0 ? fail("not a ticket: %s", strerror(-ret)) : reach(ep);
}

/* No message came in time: tell what the NIC knows about it. Always -1. */
int endpoint_silence(struct endpoint *ep)
{
	struct hamlyn_stats sent = { 0 };
	struct hamlyn_stats got = { 0 };
	uint64_t rejects = 0;
	int i;

	if (h_terminus_stats(ep->terminus, &sent) < 0 ||
	    h_slot_stats(ep->slot, &got) < 0)
		return fail("no message in time on %s", h_dev_name(ep->dev));
	for (i = 0; i < HAMLYN_REJECT_REASONS; i++)
		rejects += got.rejects[i];
	return fail("no message in time (--timeout): sent %" PRIu64 " on %s, of which %" PRIu64
		    " failed; rejected %" PRIu64, (uint64_t)sent.messages,
		    h_dev_name(ep->dev), (uint64_t)sent.failed, rejects);
}

int endpoint_recv_odd(struct endpoint *ep, int error)
{
	if (error == -EOVERFLOW)
		return fail("%u notifications lost: the NQ was full",
			    h_nq_lost(ep->nq));
	return fail("receive on %s: %s", h_dev_name(ep->dev), strerror(-error));
}
