// SPDX-License-Identifier: MIT
#include "complete.h"

#include <stdlib.h>

#include "stream.h"

static void add(struct hf_cq *cq, void *context, uint64_t flags, size_t length, void *buf,
		uint64_t data)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context = context,
		.flags = flags,
		.len = length,
		.buf = buf,
		.data = data,
	};

	hf_cq_add(cq, &entry);
}

static void add_error(struct hf_cq *cq, void *context, uint64_t flags, size_t length,
		      size_t overflow, int err)
{
	const struct fi_cq_err_entry entry = {
		.op_context = context,
		.flags = flags,
		.len = length,
		.olen = overflow,
		.err = err,
		.prov_errno = err,
	};

	if (cq)
		hf_cq_add_error(cq, &entry);
}

/* Unlike received ones, entries of what was sent have neither length nor buffer. */
void hf_complete_send(struct hf_ep *ep, uint64_t flags, void *context, bool report)
{
	if (report)
		add(ep->tx_cq, context, flags, 0, NULL, 0);
	hf_cntr_count(ep->cntrs[flags & FI_WRITE ? HF_COUNT_WRITE : HF_COUNT_SEND], false);
}

static void recv_end(struct hf_ep *ep, struct hf_recv *recv)
{
	recv->next = ep->spare_recvs;
	ep->spare_recvs = recv;
}

/* @whole: what was sent; what of it fits is in the buffer. */
void hf_complete_recv(struct hf_ep *ep, struct hf_recv *recv, uint64_t whole,
		      const struct hf_header *header)
{
	uint64_t flags = FI_RECV | FI_MSG;
	bool cut = whole > recv->span.length;

	if (header->flags & HF_HAS_DATA)
		flags |= FI_REMOTE_CQ_DATA;
	if (cut)
		add_error(ep->rx_cq, recv->context, flags, recv->span.length,
			  whole - recv->span.length, FI_ETRUNC);
	else if (recv->report)
		add(ep->rx_cq, recv->context, flags, whole,
		    recv->span.count ? recv->span.iov[0].iov_base : NULL, header->data);
	hf_cntr_count(ep->cntrs[HF_COUNT_RECV], cut);
	recv_end(ep, recv);
}

void hf_complete_recv_error(struct hf_ep *ep, struct hf_recv *recv, int err)
{
	if (!ep->discards) {
		add_error(ep->rx_cq, recv->context, FI_RECV | FI_MSG, 0, 0, err);
		hf_cntr_count(ep->cntrs[HF_COUNT_RECV], true);
	}
	recv_end(ep, recv);
}

/* What a peer has done to a region of ours. */
void hf_complete_remote(struct hf_ep *ep, enum hf_counter counter, uint64_t length,
			uint8_t wire_flags, uint64_t data)
{
	if (wire_flags & HF_HAS_DATA && ep->rx_cq)
		add(ep->rx_cq, NULL, FI_RMA | FI_REMOTE_WRITE | FI_REMOTE_CQ_DATA, length, NULL,
		    data);
	hf_cntr_count(ep->cntrs[counter], false);
}

static void complete_own(struct hf_ep *ep, struct hf_work *work, int err)
{
	static const struct {
		uint64_t flags;
		enum hf_counter counter;
	} kinds[] = {
		[HF_WORK_SEND] = { FI_SEND | FI_MSG, HF_COUNT_SEND },
		[HF_WORK_WRITE] = { FI_WRITE | FI_RMA, HF_COUNT_WRITE },
		[HF_WORK_READ] = { FI_READ | FI_RMA, HF_COUNT_READ },
	};

	if (work->report)
		ep->tx_cq->promised--;
	if (ep->discards)
		return;
	if (err)
		add_error(ep->tx_cq, work->context, kinds[work->kind].flags, 0, 0, err);
	else if (work->report)
		add(ep->tx_cq, work->context, kinds[work->kind].flags, 0, NULL, 0);
	hf_cntr_count(ep->cntrs[kinds[work->kind].counter], err);
}

static void complete_in_recv(struct hf_ep *ep, struct hf_work *work, int err)
{
	const struct hf_header header = { .flags = work->wire_flags, .data = work->data };
	struct hf_recv *recv = work->context;

	ep->rx_cq->promised--;
	if (err)
		hf_complete_recv_error(ep, recv, err);
	else
		hf_complete_recv(ep, recv, work->whole, &header);
}

void hf_complete_work(struct hf_ep *ep, struct hf_work *work, int err)
{
	if (work->streaming)
		hf_stream_remove(ep, work);
	switch (work->kind) {
	case HF_WORK_IN_RECV:
		complete_in_recv(ep, work, err);
		break;
	case HF_WORK_IN_WRITE:
		if (work->wire_flags & HF_HAS_DATA && ep->rx_cq)
			ep->rx_cq->promised--;
		if (!err)
			hf_complete_remote(ep, HF_COUNT_REMOTE_WRITE, work->length,
					   work->wire_flags, work->data);
		break;
	case HF_WORK_IN_READ:
		if (!err)
			hf_complete_remote(ep, HF_COUNT_REMOTE_READ, work->length, 0, 0);
		break;
	default:
		complete_own(ep, work, err);
	}
	hf_work_end(&ep->works, work);
}
