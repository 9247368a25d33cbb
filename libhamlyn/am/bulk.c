// SPDX-License-Identifier: MIT
/*
 * Memory, in segments of a page: each is a request of its own. A get is made of
 * requests that are answered with a page each: so nobody needs more room than the
 * instances have, and nothing can deadlock (P 5.2.3).
 */
#include "am.h"

#define ANNOUNCED_AT_ONCE	8	/* segments by one doorbell */

static struct am_packet segment(const struct am *am, enum am_kind kind,
				uint64_t handler, const void *arg,
				const void *to, uint32_t total, uint32_t offset,
				uint8_t transfer)
{
	uint32_t left = total - offset;

	return (struct am_packet){
		.kind = (uint8_t)kind,
		.handler = handler,
		.length = left < am->page ? left : am->page,
		.args = { (uintptr_t)arg, (uintptr_t)to,
			  total | (uint64_t)(transfer % AM_TRANSFERS) << 32,
			  offset },
	};
}

/* Only what is longer than a segment needs one. Return: 1, or 0 if all are taken. */
static int take_transfer(struct am *am, int dest, uint32_t total,
			 uint8_t *transfer)
{
	struct am_peer *peer = &am->peers[dest];

	*transfer = AM_NO_TRANSFER;
	if (total <= am->page)
		return 1;
	if (!peer->free_transfers)
		return 0;
	*transfer = (uint8_t)__builtin_ctz(peer->free_transfers);
	peer->free_transfers &= peer->free_transfers - 1;
	peer->segments[*transfer] = (total + am->page - 1) / am->page;
	return 1;
}

static int store_to_self(struct am *am, enum am_kind kind, uint64_t handler,
			 const void *from, void *to, uint32_t length, void *arg)
{
	struct am_packet p = segment(am, kind, handler, arg, to, length, 0, 0);

	memmove(to, from, length);
	am_call_own(am, &p, to);
	return 0;
}

static int send_segments(struct am *am, int dest, enum am_kind kind,
			 uint64_t handler, const unsigned char *from, void *to,
			 uint32_t length, void *arg, uint8_t transfer)
{
	uint32_t corked = 0;
	uint32_t offset = 0;
	int rc = 0;

	do {
		struct am_packet p = segment(am, kind, handler, arg, to, length,
					     offset, transfer);
		uint32_t instance;

		if (corked && (corked == ANNOUNCED_AT_ONCE ||
			       !am_request_try(am, dest, &instance))) {
			h_uncork(am->terminus);
			am->stats.doorbells++;
			corked = 0;
		}
		rc = am_request_acquire(am, dest, &instance);
		if (rc)
			break;
		if (!corked++ && length > am->page)
			h_cork(am->terminus);
		am_request_issue(am, dest, instance, &p, from + offset, transfer);
		offset += p.length;
	} while (offset < length);
	if (am->terminus->corked) {
		h_uncork(am->terminus);
		am->stats.doorbells++;
	}
	return rc;
}

int am_bulk_store(struct am *am, int dest, enum am_kind kind, uint64_t handler,
		  const void *from, void *to, int length, void *arg)
{
	uint8_t transfer;

	if ((uint32_t)dest == am->self)
		return store_to_self(am, kind, handler, from, to,
				     (uint32_t)length, arg);
	while (!take_transfer(am, dest, (uint32_t)length, &transfer)) {
		am_serve(am);
		if (am->peers[dest].lost)
			return am_lost_error(am, dest);
	}
	return send_segments(am, dest, kind, handler, from, to,
			     (uint32_t)length, arg, transfer);
}

static struct am_store *free_store(struct am *am)
{
	uint32_t i;

	for (i = 0; i < AM_STORES; i++)
		if (!am->store[i].active)
			return &am->store[i];
	return NULL;
}

int am_bulk_async(struct am *am, int dest, uint64_t handler, const void *from,
		  void *to, int length, void *arg, handler_mem_t end,
		  void *end_arg)
{
	struct am_store *s = free_store(am);

	if (!s) {
		am_serve(am);
		s = free_store(am);
	}
	if (!s)
		return am_fail(-EAGAIN, "%d am_store_async() are under way",
			       AM_STORES);
	*s = (struct am_store){
		.from = from, .to = to, .handler = handler, .arg = arg,
		.end = end, .end_arg = end_arg, .total = (uint32_t)length,
		.dest = dest, .transfer = AM_NO_TRANSFER, .active = 1,
	};
	am->stores++;
	am_bulk_continue(am);
	return 0;
}

static void store_ends(struct am *am, struct am_store *s)
{
	struct am_store done = *s;

	s->active = 0;
	am->stores--;
	if (!done.end)
		return;
	am->context = AM_IN_REPLY;
	done.end((int)am->self, (void *)(uintptr_t)done.from, (int)done.total,
		 done.end_arg);
	am->context = AM_MAIN;
}

/* As many segments as there are instances for. */
static void continue_store(struct am *am, struct am_store *s)
{
	uint32_t instance;

	if (am->peers[s->dest].lost) {
		store_ends(am, s);
		return;
	}
	if ((uint32_t)s->dest == am->self) {
		store_to_self(am, AM_MEMORY, s->handler, s->from, s->to,
			      s->total, s->arg);
		store_ends(am, s);
		return;
	}
	if (!s->offset && s->transfer == AM_NO_TRANSFER &&
	    !take_transfer(am, s->dest, s->total, &s->transfer))
		return;
	while (am_request_try(am, s->dest, &instance)) {
		struct am_packet p = segment(am, AM_MEMORY, s->handler, s->arg,
					     s->to, s->total, s->offset,
					     s->transfer);

		am_request_issue(am, s->dest, instance, &p,
				 p.length ? s->from + s->offset : NULL,
				 s->transfer);
		s->offset += p.length;
		if (s->offset == s->total) {
			store_ends(am, s);
			return;
		}
	}
}

void am_bulk_continue(struct am *am)
{
	uint32_t i;

	for (i = 0; i < AM_STORES; i++)
		if (am->store[i].active)
			continue_store(am, &am->store[i]);
}

static int get_from_self(struct am *am, const void *from, void *to, int length,
			 handler_mem_t handler, void *arg)
{
	memmove(to, from, (size_t)length);
	am->context = AM_IN_REPLY;
	handler((int)am->self, to, length, arg);
	am->context = AM_MAIN;
	return 0;
}

static int find_get(struct am *am, int source, uint32_t *which)
{
	for (;;) {
		for (*which = 0; *which < AM_GETS; ++*which)
			if (!am->gets[*which].active)
				return 0;
		am_serve(am);
		if (am->peers[source].lost)
			return am_lost_error(am, source);
	}
}

int am_bulk_get(struct am *am, int source, const void *from, void *to, int length,
		handler_mem_t handler, void *arg)
{
	uint32_t total = (uint32_t)length;
	uint32_t offset = 0;
	uint32_t which;
	int rc;

	if ((uint32_t)source == am->self)
		return get_from_self(am, from, to, length, handler, arg);
	rc = find_get(am, source, &which);
	if (rc)
		return rc;
	am->gets[which] = (struct am_get){
		.to = to, .total = total, .missing = total, .handler = handler,
		.arg = arg, .active = source + 1,
	};
	do {
		uint32_t n = total - offset < am->page ? total - offset :
							 am->page;
		struct am_packet p = {
			.kind = AM_GET,
			.args = { (uintptr_t)from + offset, n, offset, which },
		};

		rc = am_request_send(am, source, &p, NULL, AM_NO_TRANSFER);
		if (rc) {
			am->gets[which].active = 0;
			return rc;
		}
		offset += n;
	} while (offset < total);
	return 0;
}

/* The request of a get. */
void am_bulk_give(struct am *am, const struct am_packet *packet)
{
	struct am_packet p = {
		.kind = AM_GOT,
		.length = packet->args[1] < am->page ?
			  (uint32_t)packet->args[1] : am->page,
		.args = { packet->args[2], packet->args[3] },
	};

	am_reply_send(am, &p, (const void *)(uintptr_t)packet->args[0]);
}

/* A segment of a get is in its place. */
void am_bulk_got(struct am *am, const struct am_packet *packet)
{
	struct am_get *get = &am->gets[packet->args[1] % AM_GETS];
	struct am_get done = *get;

	if (!get->active || packet->length > get->missing)
		return;
	get->missing -= packet->length;
	if (get->missing)
		return;
	get->active = 0;
	done.handler(done.active - 1, done.to, (int)done.total, done.arg);
}
