// SPDX-License-Identifier: MIT
#include "transfer/complete.h"

#include <stdlib.h>

#include "base/hosts.h"
#include "domain/mr.h"
#include "rdm/rdm.h"
#include "transfer/stream.h"

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

	hf_cq_add(cq, &entry, FI_ADDR_NOTAVAIL);
}

static void add_error(struct hf_cq *cq, const struct fi_cq_err_entry *error, int err)
{
	struct fi_cq_err_entry entry = *error;

	entry.err = err;
	entry.prov_errno = err;
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
	struct hf_match *match = hf_match_of(ep);
	struct hf_recv *parent = recv->parent;

	if (!match) {
		recv->next = ep->spare_recvs;
		ep->spare_recvs = recv;
		return;
	}
	hf_match_recycle(match, recv);
	if (!parent || !parent->retired || parent->parts)
		return;
	if (parent->err)
		hf_complete_recv_error(ep, parent, parent->err);
	else
		hf_match_recycle(match, parent);
}

/* Of a buffer that is shared it is not known before who tells of it. */
static bool reports(const struct hf_ep *ep, const struct hf_recv *recv)
{
	return recv->report || (ep->srx && !ep->rx_selective);
}

static fi_addr_t source(const struct hf_ep *ep, const struct hf_sent *sent)
{
	return ep->rdm ? hf_rdm_source(ep, sent->place) : FI_ADDR_NOTAVAIL;
}

/* With the sender, as far as it is known. */
static void tell_received(const struct hf_ep *ep, const struct fi_cq_tagged_entry *entry,
			  const struct hf_sent *sent)
{
	fi_addr_t from = source(ep, sent);
	struct sockaddr_in address;

	if (from != FI_ADDR_NOTAVAIL || !ep->rdm || !(ep->caps & FI_SOURCE_ERR)) {
		hf_cq_add(ep->rx_cq, entry, from);
		return;
	}
	hf_host_address(sent->place, &address);
	hf_cq_add_unknown(ep->rx_cq, entry, &address);
}

/* What of it fits is in the buffer. */
void hf_complete_recv(struct hf_ep *ep, struct hf_recv *recv, const struct hf_sent *sent)
{
	bool cut = sent->length > recv->span.length;
	struct fi_cq_tagged_entry entry = {
		.op_context = recv->context,
		.flags = hf_recv_flags(sent->flags),
		.len = sent->length,
		.buf = recv->span.count ? recv->span.iov[0].iov_base : NULL,
		.data = sent->data,
		.tag = sent->tag,
	};

	if (recv->parent && hf_match_part_ends(recv))
		entry.flags |= FI_MULTI_RECV;
	if (cut) {
		const struct fi_cq_err_entry error = {
			.op_context = entry.op_context,
			.flags = entry.flags,
			.len = recv->span.length,
			.buf = entry.buf,
			.data = entry.data,
			.tag = entry.tag,
			.olen = sent->length - recv->span.length,
		};

		add_error(ep->rx_cq, &error, FI_ETRUNC);
	} else if (reports(ep, recv) || entry.flags & FI_MULTI_RECV) {
		tell_received(ep, &entry, sent);
	}
	hf_cntr_count(ep->cntrs[HF_COUNT_RECV], cut);
	recv_end(ep, recv);
}

void hf_complete_recv_error(struct hf_ep *ep, struct hf_recv *recv, int err)
{
	struct fi_cq_err_entry error = {
		.op_context = recv->context,
		.flags = FI_RECV | (recv->tagged ? FI_TAGGED : FI_MSG),
		.tag = recv->tag,
	};

	/* Of many that were to get parts of it: now it is the application's again. */
	if (recv->multi || (recv->parent && hf_match_part_ends(recv)))
		error.flags |= FI_MULTI_RECV;
	/* A buffer that is shared is of use to others when its end point is closed. */
	if (!ep->discards || ep->srx) {
		add_error(ep->rx_cq, &error, err);
		hf_cntr_count(ep->cntrs[HF_COUNT_RECV], true);
	}
	recv_end(ep, recv);
}

/* A message has come, and nobody receives it yet. */
void hf_complete_peek(struct hf_ep *ep, void *context, const struct hf_sent *sent)
{
	const struct fi_cq_tagged_entry entry = {
		.op_context = context,
		.flags = hf_recv_flags(sent->flags),
		.len = sent->length,
		.data = sent->data,
		.tag = sent->tag,
	};

	tell_received(ep, &entry, sent);
}

void hf_complete_no_message(struct hf_ep *ep, void *context, bool tagged, uint64_t tag)
{
	const struct fi_cq_err_entry error = {
		.op_context = context,
		.flags = FI_RECV | (tagged ? FI_TAGGED : FI_MSG),
		.tag = tag,
	};

	add_error(ep->rx_cq, &error, FI_ENOMSG);
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
		[HF_WORK_ATOMIC] = { FI_WRITE | FI_ATOMIC, HF_COUNT_WRITE },
		[HF_WORK_FETCH] = { FI_READ | FI_ATOMIC, HF_COUNT_READ },
	};

	struct fi_cq_err_entry error = { 0 };

	if (work->report)
		ep->tx_cq->promised--;
	if (ep->discards)
		return;
	error.op_context = work->context;
	error.flags = kinds[work->kind].flags;
	if (work->wire_flags & HF_TAGGED)
		error.flags = FI_SEND | FI_TAGGED;
	if (err)
		add_error(ep->tx_cq, &error, err);
	else if (work->report)
		add(ep->tx_cq, work->context, error.flags, 0, NULL, 0);
	hf_cntr_count(ep->cntrs[kinds[work->kind].counter], err);
}

static void complete_in_recv(struct hf_ep *ep, struct hf_work *work, int err)
{
	const struct hf_sent sent = {
		.length = work->whole,
		.flags = work->wire_flags,
		.data = work->data,
		.tag = work->tag,
		.place = ep->place,
	};
	struct hf_recv *recv = work->context;

	ep->rx_cq->promised--;
	if (err)
		hf_complete_recv_error(ep, recv, err);
	else
		hf_complete_recv(ep, recv, &sent);
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
		if (err)
			break;
		hf_mr_written(ep->domain, work->key);
		hf_complete_remote(ep, HF_COUNT_REMOTE_WRITE, work->length, work->wire_flags,
				   work->data);
		break;
	case HF_WORK_IN_READ:
		if (!err)
			hf_complete_remote(ep, HF_COUNT_REMOTE_READ, work->length, 0, 0);
		break;
	case HF_WORK_IN_FETCH:
		free(work->context);
		ep->kept_bytes -= work->length;
		if (!err)
			hf_complete_remote(ep, HF_COUNT_REMOTE_READ, work->length, 0, 0);
		break;
	default:
		complete_own(ep, work, err);
	}
	hf_work_end(&ep->works, work);
}
