// SPDX-License-Identifier: MIT
#include "transfer/arrive.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "domain/mr.h"
#include "endpoint/atomic.h"
#include "rdm/match.h"
#include "rdm/rdm.h"
#include "rdm/short.h"
#include "transfer/complete.h"
#include "transfer/direct.h"
#include "transfer/stream.h"

/* A message, taken apart: everything in it is the peer's word. */
struct arrival {
	struct hf_header header;
	struct hf_target target;
	uint64_t tag;
	struct hf_place places[HF_MAX_PLACES];
	const unsigned char *payload;
	size_t length;
};

static bool has_target(uint8_t op)
{
	return op == HF_WRITE || op == HF_WRITE_LONG || op == HF_READ ||
	       op == HF_ATOMIC;
}

static bool has_tag(const struct hf_header *header)
{
	return header->flags & HF_TAGGED && (header->op == HF_SEND || header->op == HF_SEND_LONG);
}

/* Its own copy of the next @size bytes, if there are as many. */
static bool cut(void *to, size_t size, const unsigned char **at, size_t *length)
{
	if (*length < size)
		return false;
	memcpy(to, *at, size);
	*at += size;
	*length -= size;
	return true;
}

/* The buffer is the peer's too: each part is copied before it is looked at. */
static bool parse(struct arrival *a, const void *data, size_t length)
{
	const unsigned char *at = data;

	a->tag = 0;
	if (!cut(&a->header, sizeof(a->header), &at, &length))
		return false;
	if (has_target(a->header.op) && !cut(&a->target, sizeof(a->target), &at, &length))
		return false;
	if (has_tag(&a->header) && !cut(&a->tag, sizeof(a->tag), &at, &length))
		return false;
	if (a->header.places > HF_MAX_PLACES ||
	    !cut(a->places, a->header.places * sizeof(a->places[0]), &at, &length))
		return false;
	a->payload = at;
	a->length = length;
	return a->header.length <= HF_MAX_MESSAGE;
}

/* May it be got straight from where the peer says it is? */
static bool is_direct(const struct hf_ep *ep, const struct hf_header *header)
{
	return ep->pid && header->places;
}

/*
 * A process id is of the peer as long as the peer lives, and its socket says whether it does: a
 * peer that died, and whose number another process got meanwhile, must not be written to.
 */
static bool peer_lives(const struct hf_ep *ep)
{
	char byte;

	return ep->state == HF_EP_CONNECTED && ep->conn &&
	       recv(ep->conn->source.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	       errno == EAGAIN;
}

void hf_arrive_done(struct hf_ep *ep, uint32_t id, int err)
{
	if (id != HF_NO_ID)
		hf_stream_reply(ep, HF_DONE, id, 0, (uint64_t)err);
}

/* ---- messages ----------------------------------------------------------- */

/* Of FI_EP_MSG: is there a buffer, and room to tell of it? */
static bool may_take(const struct hf_ep *ep)
{
	return hf_rdm_has_recv(ep) && ep->rx_cq && hf_cq_room(ep->rx_cq);
}

/* NULL: there is no memory for a part of one. */
static struct hf_recv *take_recv(struct hf_ep *ep, const struct hf_header *header)
{
	struct hf_recv *recv = ep->first_recv;

	if (ep->srx)
		return hf_match_take(ep, header, 0);
	ep->first_recv = recv->next;
	if (!ep->first_recv)
		ep->last_recv = &ep->first_recv;
	ep->recvs--;
	return recv;
}

/* A buffer for it, which is out of the queue then, or NULL: it was kept, or has to wait. */
static struct hf_recv *find_recv(struct hf_ep *ep, const struct arrival *a,
				 enum hf_arrival *result)
{
	bool is_long = a->header.op == HF_SEND_LONG;
	struct hf_recv *recv;

	*result = HF_LATER;
	if (!ep->rdm)
		return may_take(ep) ? take_recv(ep, &a->header) : NULL;
	/* A completion without room waits with its message, and others come behind it. */
	recv = ep->rx_cq && hf_cq_room(ep->rx_cq) && !ep->rdm->match->backlog ?
	       hf_match_take(ep, &a->header, a->tag) : NULL;
	if (!recv && hf_match_keep(ep, &a->header, a->tag, is_long ? (void *)a->places : a->payload,
				   is_long ? a->header.places * sizeof(a->places[0]) : a->length))
		*result = HF_TAKEN;
	return recv;
}

static void copy_in(const struct hf_recv *recv, const struct arrival *a)
{
	uint64_t fits = a->length < recv->span.length ? a->length : recv->span.length;

	if (recv->span.count == 1)
		memcpy(recv->span.iov[0].iov_base, a->payload, fits);
	else
		hf_span_put(&recv->span, 0, a->payload, fits);
}

static enum hf_arrival on_send(struct hf_ep *ep, const struct arrival *a)
{
	enum hf_arrival result;
	struct hf_recv *recv;
	struct hf_sent sent;

	if (a->length != a->header.length || (a->header.flags & HF_TAGGED && !ep->rdm))
		return HF_BROKEN;
	recv = find_recv(ep, a, &result);
	if (!recv)
		return result;
	copy_in(recv, a);
	sent = hf_sent_by(ep->place, &a->header, a->tag);
	hf_complete_recv(ep, recv, &sent);
	if (a->header.flags & HF_WANT_DONE)
		hf_arrive_done(ep, a->header.id, 0);
	return HF_TAKEN;
}

/* Get it directly, or ask for pieces. True: it has ended, with @err. */
static bool fetch(struct hf_ep *ep, const struct hf_header *header, const struct hf_place *places,
		  struct hf_work *work, int *err)
{
	*err = 0;
	if (!work->length)
		return true;
	if (is_direct(ep, header))
		*err = -hf_direct_get(ep->pid, &work->span, places, header->places);
	/*
	 * Else it may have been another process's memory, of the same number, or what the peer has
	 * there since it gave up; and nobody would answer.
	 */
	if (!peer_lives(ep)) {
		*err = ECONNRESET;
		return true;
	}
	if (is_direct(ep, header)) {
		if (*err != EPERM && *err != ENOSYS)
			return true;
		ep->pid = 0;
	}
	hf_stream_reply(ep, HF_CLEAR, header->id, work->length, work->id);
	return false;
}

void hf_arrive_long(struct hf_ep *ep, struct hf_work *work, struct hf_recv *recv,
		    const struct hf_header *header, uint64_t tag, const struct hf_place *places)
{
	int err;

	work->context = recv;
	work->wire_flags = header->flags;
	work->data = header->data;
	work->tag = tag;
	work->peer_id = header->id;
	work->whole = header->length;
	work->length = work->whole < recv->span.length ? work->whole : recv->span.length;
	hf_span_part(&recv->span, 0, work->length, &work->span);
	ep->rx_cq->promised++;
	if (fetch(ep, header, places, work, &err)) {
		uint32_t id = work->peer_id;

		hf_complete_work(ep, work, err);
		hf_arrive_done(ep, id, err);
	}
}

static enum hf_arrival on_send_long(struct hf_ep *ep, const struct arrival *a)
{
	enum hf_arrival result;
	struct hf_recv *recv;
	struct hf_work *work;

	if (a->length || (a->header.flags & HF_TAGGED && !ep->rdm))
		return HF_BROKEN;
	work = ep->rdm || may_take(ep) ? hf_work_new(&ep->works, HF_WORK_IN_RECV) : NULL;
	if (!work)
		return HF_LATER;
	recv = find_recv(ep, a, &result);
	if (!recv) {
		hf_work_end(&ep->works, work);
		return result;
	}
	hf_arrive_long(ep, work, recv, &a->header, a->tag, a->places);
	return HF_TAKEN;
}

/* ---- regions ------------------------------------------------------------ */

/* Data for the target's completion needs room there. */
static bool may_tell(const struct hf_ep *ep, const struct arrival *a)
{
	return !(a->header.flags & HF_HAS_DATA) || !ep->rx_cq || hf_cq_room(ep->rx_cq);
}

static enum hf_arrival on_write(struct hf_ep *ep, const struct arrival *a)
{
	struct hf_span to;
	int err;

	if (a->length != a->header.length)
		return HF_BROKEN;
	if (!may_tell(ep, a))
		return HF_LATER;
	err = hf_mr_find(ep->domain, a->target.key, FI_REMOTE_WRITE, a->target.address,
			 a->length, &to);
	if (!err) {
		hf_span_put(&to, 0, a->payload, a->length);
		hf_mr_written(ep->domain, a->target.key);
		hf_complete_remote(ep, HF_COUNT_REMOTE_WRITE, a->length, a->header.flags,
				   a->header.data);
	}
	hf_arrive_done(ep, a->header.id, -err);
	return HF_TAKEN;
}

static enum hf_arrival on_write_long(struct hf_ep *ep, const struct arrival *a)
{
	struct hf_work *work;
	struct hf_span to;
	int err;

	if (a->length)
		return HF_BROKEN;
	if (!may_tell(ep, a))
		return HF_LATER;
	err = hf_mr_find(ep->domain, a->target.key, FI_REMOTE_WRITE, a->target.address,
			 a->header.length, &to);
	if (err) {
		hf_arrive_done(ep, a->header.id, -err);
		return HF_TAKEN;
	}
	work = hf_work_new(&ep->works, HF_WORK_IN_WRITE);
	if (!work)
		return HF_LATER;
	work->span = to;
	work->key = a->target.key;
	work->address = a->target.address;
	work->length = a->header.length;
	work->wire_flags = a->header.flags;
	work->data = a->header.data;
	work->peer_id = a->header.id;
	if (work->wire_flags & HF_HAS_DATA && ep->rx_cq)
		ep->rx_cq->promised++;
	if (fetch(ep, &a->header, a->places, work, &err)) {
		uint32_t id = work->peer_id;

		hf_complete_work(ep, work, err);
		hf_arrive_done(ep, id, err);
	}
	return HF_TAKEN;
}

/* @bytes more are kept for the peer to get. False: it may not have so much under way. */
static bool keep(struct hf_ep *ep, uint64_t bytes)
{
	if (ep->kept_bytes + bytes > (uint64_t)HF_TX_SIZE_MAX * HF_ORDERED)
		return false;
	ep->kept_bytes += bytes;
	return true;
}

/* There was no room for it, and writes behind it do not wait: it gets what is there now. */
static enum hf_arrival read_now(struct hf_ep *ep, struct hf_work *work, const struct hf_span *from)
{
	uint32_t id = work->peer_id;
	void *now;

	if (!keep(ep, work->length))
		return HF_BROKEN;
	now = malloc(work->length);
	work->kind = HF_WORK_IN_FETCH;
	work->context = now;
	if (!now) {
		hf_complete_work(ep, work, ENOMEM);
		hf_arrive_done(ep, id, ENOMEM);
		return HF_TAKEN;
	}
	hf_span_get(from, now);
	hf_span_one(&work->span, now, work->length);
	return HF_TAKEN;
}

/* The target puts: at once where the peer said, or in pieces. */
static enum hf_arrival on_read(struct hf_ep *ep, const struct arrival *a)
{
	struct hf_work *work;
	struct hf_span from;
	uint32_t id;
	int err;

	if (a->length)
		return HF_BROKEN;
	err = hf_mr_find(ep->domain, a->target.key, FI_REMOTE_READ, a->target.address,
			 a->header.length, &from);
	if (!err && is_direct(ep, &a->header) && a->header.length > HF_EAGER && peer_lives(ep)) {
		err = hf_direct_put(ep->pid, &from, a->places, a->header.places);
		if (!err) {
			hf_complete_remote(ep, HF_COUNT_REMOTE_READ, a->header.length, 0, 0);
			hf_arrive_done(ep, a->header.id, 0);
			return HF_TAKEN;
		}
		/* Let it try pieces: if its own buffer is bad, that is found there. */
		ep->pid = 0;
		err = 0;
	}
	if (err) {
		hf_arrive_done(ep, a->header.id, -err);
		return HF_TAKEN;
	}
	work = hf_work_new(&ep->works, HF_WORK_IN_READ);
	if (!work)
		return HF_LATER;
	work->key = a->target.key;
	work->address = a->target.address;
	work->length = a->header.length;
	work->peer_id = a->header.id;
	id = work->id;
	hf_stream_add(ep, work);
	hf_stream_flush(ep);
	work = hf_work_find(&ep->works, id);
	return work && work->length <= HF_ORDERED ? read_now(ep, work, &from) : HF_TAKEN;
}

/* What was there goes back as a read's bytes do. */
static enum hf_arrival fetch_atomic(struct hf_ep *ep, const struct arrival *a,
				    const struct hf_atomic *atomic, const struct hf_span *at)
{
	size_t length = hf_atomic_bytes(atomic);
	struct hf_work *work = hf_work_new(&ep->works, HF_WORK_IN_FETCH);
	void *was = work ? malloc(length) : NULL;

	if (!was) {
		if (work)
			hf_work_end(&ep->works, work);
		return HF_LATER;
	}
	if (!keep(ep, length)) {
		hf_work_end(&ep->works, work);
		free(was);
		return HF_BROKEN;
	}
	hf_atomic_apply(atomic, at, a->payload, was);
	if (atomic->op != FI_ATOMIC_READ)
		hf_mr_written(ep->domain, a->target.key);
	work->context = was;
	work->length = length;
	work->peer_id = a->header.id;
	hf_span_one(&work->span, was, length);
	hf_stream_add(ep, work);
	hf_stream_flush(ep);
	return HF_TAKEN;
}

static enum hf_arrival on_atomic(struct hf_ep *ep, const struct arrival *a)
{
	struct hf_atomic atomic;
	struct hf_span at;
	int err;

	if (!ep->rdm || a->length != a->header.length ||
	    !hf_atomic_parse(a->header.data, a->length, &atomic))
		return HF_BROKEN;
	err = hf_mr_find(ep->domain, a->target.key, hf_atomic_access(&atomic), a->target.address,
			 hf_atomic_bytes(&atomic), &at);
	if (!err && atomic.kind != HF_ATOMIC_BASE)
		return fetch_atomic(ep, a, &atomic, &at);
	if (!err) {
		hf_atomic_apply(&atomic, &at, a->payload, NULL);
		hf_mr_written(ep->domain, a->target.key);
		hf_complete_remote(ep, HF_COUNT_REMOTE_WRITE, a->length, 0, 0);
	}
	hf_arrive_done(ep, a->header.id, -err);
	return HF_TAKEN;
}

/* ---- operations under way ----------------------------------------------- */

static enum hf_arrival on_clear(struct hf_ep *ep, const struct arrival *a)
{
	struct hf_work *work = hf_work_find(&ep->works, a->header.id);

	if (!work || (work->kind != HF_WORK_SEND && work->kind != HF_WORK_WRITE) ||
	    work->streaming || a->header.length > work->span.length)
		return HF_BROKEN;
	work->length = a->header.length;
	work->moved = 0;
	work->peer_id = (uint32_t)a->header.data;
	hf_stream_add(ep, work);
	hf_stream_flush(ep);
	return HF_TAKEN;
}

static bool takes_pieces(const struct hf_work *work)
{
	return work->kind == HF_WORK_READ || work->kind == HF_WORK_FETCH ||
	       work->kind == HF_WORK_IN_RECV || work->kind == HF_WORK_IN_WRITE;
}

/* Where a piece goes: in a region, if that is still there. */
static int find_room(struct hf_ep *ep, const struct hf_work *work, const struct arrival *a,
		     struct hf_span *to)
{
	if (work->kind == HF_WORK_IN_WRITE)
		return hf_mr_find(ep->domain, work->key, FI_REMOTE_WRITE,
				  work->address + a->header.data, a->length, to);
	hf_span_part(&work->span, a->header.data, a->length, to);
	return 0;
}

static enum hf_arrival on_piece(struct hf_ep *ep, const struct arrival *a)
{
	struct hf_work *work = hf_work_find(&ep->works, a->header.id);
	struct hf_span to;
	int err;

	/* A write may have ended early, when its region was closed. */
	if (!work)
		return HF_TAKEN;
	/* Pieces come in order: so all of it is there when it has all come. */
	if (!takes_pieces(work) || a->header.data != work->moved ||
	    a->length > work->length - work->moved)
		return HF_BROKEN;
	err = find_room(ep, work, a, &to);
	if (!err) {
		hf_span_put(&to, 0, a->payload, a->length);
		work->moved += a->length;
	}
	if (err || work->moved == work->length) {
		uint32_t id = hf_work_is_ours(work->kind) ? HF_NO_ID : work->peer_id;

		hf_complete_work(ep, work, -err);
		hf_arrive_done(ep, id, -err);
	}
	return HF_TAKEN;
}

static enum hf_arrival on_done(struct hf_ep *ep, const struct arrival *a)
{
	struct hf_work *work = hf_work_find(&ep->works, a->header.id);

	if (!work || !hf_work_is_ours(work->kind) || a->header.data > INT32_MAX)
		return HF_BROKEN;
	hf_complete_work(ep, work, (int)a->header.data);
	return HF_TAKEN;
}

static __attribute__((noinline)) enum hf_arrival
arrive_any(struct hf_ep *ep, const void *data, size_t length)
{
	static enum hf_arrival (*const handlers[])(struct hf_ep *ep, const struct arrival *a) = {
		[HF_SEND] = on_send,
		[HF_SEND_LONG] = on_send_long,
		[HF_WRITE] = on_write,
		[HF_WRITE_LONG] = on_write_long,
		[HF_READ] = on_read,
		[HF_CLEAR] = on_clear,
		[HF_PIECE] = on_piece,
		[HF_DONE] = on_done,
		[HF_ATOMIC] = on_atomic,
	};
	struct arrival a;

	if (!parse(&a, data, length) || a.header.op < HF_SEND || a.header.op > HF_ATOMIC)
		return HF_BROKEN;
	return handlers[a.header.op](ep, &a);
}

enum hf_arrival hf_arrive(struct hf_ep *ep, const void *data, size_t length)
{
	return hf_likely(hf_short_arrive(ep, data, length)) ? HF_TAKEN :
							      arrive_any(ep, data, length);
}
