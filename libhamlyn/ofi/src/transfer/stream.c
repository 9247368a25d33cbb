// SPDX-License-Identifier: MIT
#include "transfer/stream.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "domain/mr.h"
#include "transfer/complete.h"

/*
 * Answers are to operations of the peer, of which it may have HF_TX_SIZE_MAX under way, and each
 * has at most two. Whoever causes more breaks the rules.
 */
#define MAX_REPLIES	(2 * HF_TX_SIZE_MAX)

static int send_short(struct h_channel *channel, const struct hf_header *header, const void *more,
		      size_t more_length, const struct hf_span *payload)
{
	unsigned char whole[HF_SHORT];
	size_t at = sizeof(*header);

	memcpy(whole, header, sizeof(*header));
	if (more_length)
		memcpy(whole + at, more, more_length);
	at += more_length;
	if (payload)
		at += hf_span_get(payload, whole + at);
	return h_channel_send(channel, whole, at, H_NOWAIT);
}

static int send_long(struct h_channel *channel, const struct hf_header *header, const void *more,
		     size_t more_length, const struct hf_span *payload)
{
	struct iovec iov[2 + HF_IOV_LIMIT];
	int n = 0;

	iov[n].iov_base = (void *)(uintptr_t)header;
	iov[n++].iov_len = sizeof(*header);
	if (more_length) {
		iov[n].iov_base = (void *)(uintptr_t)more;
		iov[n++].iov_len = more_length;
	}
	for (uint32_t i = 0; payload && i < payload->count; i++)
		iov[n++] = payload->iov[i];
	return h_channel_sendv(channel, iov, n, H_NOWAIT);
}

static int told_as(int err)
{
	return err == -EAGAIN || err == -ENOMEM ? -FI_EAGAIN : -FI_ENOTCONN;
}

/* 0, -FI_EAGAIN, or -FI_ENOTCONN: then the caller has hf_ep_lost() to call. */
int hf_stream_send(struct hf_ep *ep, const struct hf_header *header, const void *more,
		   size_t more_length, const struct hf_span *payload)
{
	size_t length = sizeof(*header) + more_length + (payload ? payload->length : 0);
	int err = (length <= HF_SHORT ? send_short : send_long)(ep->channel, header, more,
								more_length, payload);

	return err ? told_as(err) : 0;
}

/* The channel said so to a call of the application. */
int hf_stream_refused(struct hf_ep *ep, int err)
{
	err = told_as(err);
	if (err == -FI_ENOTCONN)
		hf_ep_lost(ep, FI_ECONNRESET);
	return err;
}

/* Of what no call of the application waits for; false: not now. */
static bool send_own(struct hf_ep *ep, const struct hf_header *header,
		     const struct hf_span *payload)
{
	int err = hf_stream_send(ep, header, NULL, 0, payload);

	if (err == -FI_ENOTCONN)
		hf_ep_lost(ep, FI_ECONNRESET);
	return !err;
}

void hf_stream_reply(struct hf_ep *ep, enum hf_wire_op op, uint32_t id, uint64_t length,
		     uint64_t data)
{
	const struct hf_header header = {
		.op = (uint8_t)op, .id = id, .length = length, .data = data
	};
	struct hf_reply *reply;

	if (!ep->replies && send_own(ep, &header, NULL))
		return;
	if (ep->state != HF_EP_CONNECTED)
		return;
	reply = ep->replies_count < MAX_REPLIES ? malloc(sizeof(*reply)) : NULL;
	if (!reply) {
		hf_ep_lost(ep, FI_ENOMEM);
		return;
	}
	reply->header = header;
	reply->next = NULL;
	*ep->last_reply = reply;
	ep->last_reply = &reply->next;
	ep->replies_count++;
	hf_ep_stick(ep);
}

static void pop_reply(struct hf_ep *ep)
{
	struct hf_reply *reply = ep->replies;

	ep->replies = reply->next;
	if (!ep->replies)
		ep->last_reply = &ep->replies;
	ep->replies_count--;
	free(reply);
}

void hf_stream_add(struct hf_ep *ep, struct hf_work *work)
{
	work->streaming = true;
	work->next = NULL;
	*ep->last_stream = work;
	ep->last_stream = &work->next;
	hf_ep_stick(ep);
}

void hf_stream_remove(struct hf_ep *ep, struct hf_work *work)
{
	struct hf_work **at = &ep->streams;

	while (*at != work)
		at = &(*at)->next;
	*at = work->next;
	if (!*at)
		ep->last_stream = at;
	work->streaming = false;
}

/* Where the next piece is: of a region it is looked up again, for it may be gone. */
static int find_piece(struct hf_ep *ep, const struct hf_work *work, uint64_t length,
		      struct hf_span *piece)
{
	if (work->kind == HF_WORK_IN_READ)
		return hf_mr_find(ep->domain, work->key, FI_REMOTE_READ,
				  work->address + work->moved, length, piece);
	hf_span_part(&work->span, work->moved, length, piece);
	return 0;
}

/* One piece of an operation; false: not now. */
static bool send_piece(struct hf_ep *ep, struct hf_work *work)
{
	uint64_t left = work->length - work->moved;
	uint64_t length = left < HF_PIECE_BYTES ? left : HF_PIECE_BYTES;
	const struct hf_header header = {
		.op = HF_PIECE,
		.flags = length == left ? HF_LAST : 0,
		.id = work->peer_id,
		.length = length,
		.data = work->moved,
	};
	struct hf_span piece;
	int err = find_piece(ep, work, length, &piece);

	if (err) {
		uint32_t id = work->peer_id;

		hf_complete_work(ep, work, -err);
		hf_stream_reply(ep, HF_DONE, id, 0, (uint64_t)-err);
		return true;
	}
	if (!send_own(ep, &header, &piece))
		return false;
	work->moved += length;
	if (work->moved < work->length)
		return true;
	/* Our own end when the peer says so; what it reads is out. */
	if (work->kind == HF_WORK_IN_READ || work->kind == HF_WORK_IN_FETCH)
		hf_complete_work(ep, work, 0);
	else
		hf_stream_remove(ep, work);
	return true;
}

/* True if nothing is left. */
bool hf_stream_flush(struct hf_ep *ep)
{
	while (ep->state == HF_EP_CONNECTED && ep->replies) {
		const struct hf_header header = ep->replies->header;

		if (!send_own(ep, &header, NULL))
			return false;
		pop_reply(ep);
	}
	while (ep->state == HF_EP_CONNECTED && ep->streams) {
		if (!send_piece(ep, ep->streams))
			return false;
		if (ep->replies)
			return false;
	}
	return true;
}

/* Nobody is there to hear it. */
void hf_stream_drop(struct hf_ep *ep)
{
	while (ep->replies)
		pop_reply(ep);
}
