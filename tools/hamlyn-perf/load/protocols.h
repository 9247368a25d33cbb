/* SPDX-License-Identifier: GPL-2.0-only */
/* The upper layer's protocols, one process sending to itself. */
#ifndef HAMLYN_PERF_PROTOCOLS_H
#define HAMLYN_PERF_PROTOCOLS_H

#include <hamlyn/channel.h>
#include <hamlyn/datagram.h>
#include <hamlyn/stream.h>
#include <hamlyn/tagged.h>

#include "base/perf.h"

/* Both ends of each, on one manager. */
struct protocols {
	struct h_dev *dev;
	struct h_manager *manager;
	struct h_stream_receiver *stream_in;
	struct h_stream_sender *stream_out;
	struct h_channel *here;
	struct h_channel *there;
	struct h_datagram_receiver *datagrams;
	struct h_datagram_address to;
	struct h_tagged_receiver *tags;
	struct h_tagged_address place;
	uint64_t tag;
	struct h_record record;
	struct h_message message;
	unsigned char *data;	/* to be sent from; of h_manager_alloc() */
	size_t size;
};

/* @flags: H_MANAGER_SINGLE or 0; @size: longest message. */
int protocols_open(struct protocols *p, const char *device, uint32_t flags, size_t size);
void protocols_close(struct protocols *p);

/* A message each, of p->size bytes, received and released. */
int protocols_stream(void *arg);
int protocols_channel(void *arg);
int protocols_datagram(void *arg);
int protocols_tagged(void *arg);

#endif /* HAMLYN_PERF_PROTOCOLS_H */
