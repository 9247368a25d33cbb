// SPDX-License-Identifier: MIT
#include "transfer/post.h"

#include "transfer/complete.h"
#include "transfer/stream.h"

#define LEVELS	(FI_INJECT_COMPLETE | FI_TRANSMIT_COMPLETE | HF_POST_ANSWERED)

int hf_post_set(struct hf_post *post, const struct iovec *iov, size_t count, void *context,
		uint64_t flags, uint64_t data)
{
	hf_post_call(post, context, flags, data);
	return hf_span_set(&post->span, iov, count);
}

/* Calls with flags of their own take how far to wait, if they do not say, from the end point. */
uint64_t hf_post_flags(const struct hf_ep *ep, uint64_t flags)
{
	return flags & LEVELS ? flags : flags | (ep->tx_flags & LEVELS);
}

/* May it be sent now, and will there be room for what becomes of it? */
int hf_post_check(struct hf_ep *ep, struct hf_post *post)
{
	/* Nor to a peer that has gone, though something of it may still be received. */
	if (ep->state != HF_EP_CONNECTED || ep->told)
		return -FI_ENOTCONN;
	post->report = hf_post_reports(ep, post->flags);
	if (ep->replies && !hf_stream_flush(ep) && ep->replies)
		return -FI_EAGAIN;
	if (ep->state != HF_EP_CONNECTED)
		return -FI_ENOTCONN;
	if (post->report && !hf_cq_room(ep->tx_cq))
		return -FI_EAGAIN;
	if (ep->works.ours >= ep->tx_size || (post->flags & FI_FENCE && ep->works.ours))
		return -FI_EAGAIN;
	return 0;
}

static void fill_header(const struct hf_post *post, enum hf_wire_op op, struct hf_header *header)
{
	*header = (struct hf_header){
		.op = (uint8_t)op,
		.flags = (post->flags & FI_REMOTE_CQ_DATA ? HF_HAS_DATA : 0) |
			 (post->tagged ? HF_TAGGED : 0),
		.length = post->span.length,
		.data = post->data,
	};
}

/* A message that is in the other end's memory when the call returns, and needs no answer. */
int hf_post_at_once(struct hf_ep *ep, const struct hf_post *post, enum hf_wire_op op)
{
	struct hf_header header;
	int err;

	fill_header(post, op, &header);
	err = hf_stream_send(ep, &header, &post->tag, post->tagged ? sizeof(post->tag) : 0,
			     &post->span);
	if (!err)
		hf_complete_send(ep, FI_SEND | (post->tagged ? FI_TAGGED : FI_MSG), post->context,
				 post->report);
	else if (err == -FI_ENOTCONN)
		hf_ep_lost(ep, FI_ECONNRESET);
	return err;
}

/* Where our bytes are, for a peer that may look there. */
static uint32_t fill_places(const struct hf_ep *ep, const struct hf_span *span,
			    struct hf_place *places)
{
	if (!ep->offers)
		return 0;
	for (uint32_t i = 0; i < span->count; i++) {
		places[i].address = (uintptr_t)span->iov[i].iov_base;
		places[i].length = span->iov[i].iov_len;
	}
	return span->count;
}

/* What is between a header and a payload: a target, or a tag, or neither, and places. */
struct more {
	struct hf_target target;
	struct hf_place places[HF_MAX_PLACES];
};

static size_t begin_more(struct more *more, const struct hf_post *post, enum hf_work_kind kind)
{
	if (kind != HF_WORK_SEND) {
		more->target = post->target;
		return 0;
	}
	if (!post->tagged)
		return sizeof(more->target);
	more->target.address = post->tag;
	return offsetof(struct hf_target, address);
}

int hf_post_begun(struct hf_ep *ep, const struct hf_post *post, struct hf_work *work, int err)
{
	if (!err) {
		work->context = post->context;
		work->report = post->report;
		if (post->report)
			ep->tx_cq->promised++;
		return 0;
	}
	hf_work_end(&ep->works, work);
	if (err == -FI_ENOTCONN)
		hf_ep_lost(ep, FI_ECONNRESET);
	return err;
}

/* One that the other end answers. */
int hf_post_work(struct hf_ep *ep, const struct hf_post *post, enum hf_wire_op op,
		 enum hf_work_kind kind, bool with_payload)
{
	struct more more;
	size_t begin = begin_more(&more, post, kind);
	struct hf_header header;
	struct hf_work *work;
	int err;

	work = hf_work_new(&ep->works, kind);
	if (!work)
		return -FI_EAGAIN;
	fill_header(post, op, &header);
	header.id = work->id;
	/* Bytes that go along are not asked for again: they may be the application's by then. */
	if (with_payload) {
		header.flags |= HF_WANT_DONE;
	} else {
		header.places = (uint16_t)fill_places(ep, &post->span, more.places);
		work->span = post->span;
	}
	work->length = post->span.length;
	work->wire_flags = header.flags & HF_TAGGED;
	err = hf_stream_send(ep, &header, (char *)&more + begin,
			     sizeof(more.target) - begin +
			     header.places * sizeof(more.places[0]),
			     with_payload ? &post->span : NULL);
	return hf_post_begun(ep, post, work, err);
}

int hf_post_send(struct hf_ep *ep, struct hf_post *post)
{
	int err = hf_post_check(ep, post);

	if (err)
		return err;
	if (post->span.length > HF_EAGER)
		return hf_post_work(ep, post, HF_SEND_LONG, HF_WORK_SEND, false);
	if (post->flags & HF_POST_ANSWERED)
		return hf_post_work(ep, post, HF_SEND, HF_WORK_SEND, true);
	return hf_post_at_once(ep, post, HF_SEND);
}
