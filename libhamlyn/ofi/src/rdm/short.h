/* SPDX-License-Identifier: MIT */
/*
 * Short messages between end points of FI_EP_RDM, while there is nothing else to be seen to: as
 * nearly all. They have a way of their own, with less to look at. Each function says whether a
 * message is theirs; if not, nothing was done, and the way of all finds out what is to be. Domain
 * locked.
 */
#ifndef HAMLYN_OFI_SHORT_H
#define HAMLYN_OFI_SHORT_H

#include "rdm/rdm.h"
#include "transfer/complete.h"
#include "transfer/post.h"
#include "transfer/stream.h"

/* Behind the header and a tag. */
#define HF_SHORT_DATA	(HF_SHORT - sizeof(struct hf_header) - sizeof(uint64_t))

#define hf_likely(x)	__builtin_expect(!!(x), 1)
#define hf_unlikely(x)	__builtin_expect(!!(x), 0)

/* Most are of a word or two. */
static inline void hf_short_copy(void *to, const void *from, size_t n)
{
	uint64_t first, last;

	if (hf_likely(n - sizeof(first) <= sizeof(last))) {
		memcpy(&first, from, sizeof(first));
		memcpy(&last, (const char *)from + n - sizeof(last), sizeof(last));
		memcpy(to, &first, sizeof(first));
		memcpy((char *)to + n - sizeof(last), &last, sizeof(last));
	} else if (n) {
		memcpy(to, from, n);
	}
}

/* ---- sending ------------------------------------------------------------ */

/* Where a message goes, and what goes beside it. */
struct hf_outgoing {
	fi_addr_t dest;
	uint64_t tag;
	bool tagged;
	uint64_t flags;
	uint64_t data;
	void *context;
};

/* A link that has what hf_post_check() asks for, but for room for a completion. */
static inline struct hf_ep *hf_short_link(const struct hf_ep *ep, fi_addr_t dest)
{
	const struct hf_rdm *rdm = ep->rdm;
	struct hf_ep *link;

	if (hf_unlikely(!rdm || !rdm->links))
		return NULL;
	link = rdm->links[hf_av_place(rdm->av, dest)];
	return hf_likely(link && link->state == HF_EP_CONNECTED && !link->told &&
			 !link->replies && link->works.ours < link->tx_size) ? link : NULL;
}

/* Of constants, each of these is one. */
static inline uint64_t hf_short_first(const struct hf_outgoing *out)
{
	const uint8_t flags = out->tagged ? HF_TAGGED : 0;

	return out->flags & FI_REMOTE_CQ_DATA ? hf_first_word(HF_SEND, flags | HF_HAS_DATA) :
						hf_first_word(HF_SEND, flags);
}

static inline int hf_short_put(struct hf_ep *link, const void *data, size_t length,
			       const struct hf_outgoing *out)
{
	struct {
		struct hf_words header;
		uint64_t tag;
		unsigned char rest[HF_SHORT_DATA];
	} whole;
	size_t begin = out->tagged ? offsetof(typeof(whole), rest) : offsetof(typeof(whole), tag);

	whole.header.first = hf_short_first(out);
	whole.header.length = length;
	whole.header.data = out->data;
	whole.tag = out->tag;
	hf_short_copy((char *)&whole + begin, data, length);
	return h_channel_send(link->channel, &whole, begin + length, H_NOWAIT);
}

/* 1: not theirs. */
static inline __attribute__((always_inline)) int
hf_short_send(struct hf_ep *ep, const void *data, size_t length, const struct hf_outgoing *out)
{
	struct hf_ep *link = hf_short_link(ep, out->dest);
	bool report;
	int err;

	if (hf_unlikely(!link || length > HF_SHORT_DATA ||
			out->flags & (FI_FENCE | HF_POST_ANSWERED)))
		return 1;
	report = hf_post_reports(link, out->flags);
	if (hf_unlikely(report && !hf_cq_room(link->tx_cq)))
		return 1;
	err = hf_short_put(link, data, length, out);
	if (hf_unlikely(err))
		return hf_stream_refused(link, err);
	if (report) {
		struct fi_cq_tagged_entry *entry = hf_cq_next(link->tx_cq, FI_ADDR_NOTAVAIL);

		entry->op_context = out->context;
		entry->flags = FI_SEND | (out->tagged ? FI_TAGGED : FI_MSG);
		entry->len = 0;
		entry->buf = NULL;
		entry->data = 0;
		entry->tag = 0;
		hf_cq_added(link->tx_cq);
	}
	hf_cntr_count(link->cntrs[HF_COUNT_SEND], false);
	return 0;
}

/* ---- posting a buffer --------------------------------------------------- */

/* All but its bytes and whose they are: it is not cleared first. */
static inline void hf_short_fill(const struct hf_rdm *rdm, struct hf_recv *recv,
				 const struct hf_wish *wish)
{
	recv->context = wish->context;
	recv->report = !rdm->ep.rx_selective || wish->flags & FI_COMPLETION;
	recv->tagged = wish->tagged;
	recv->multi = false;
	recv->apart = false;
	recv->retired = false;
	recv->err = 0;
	recv->parts = 0;
	recv->used = 0;
	recv->tag = wish->tag;
	recv->ignore = wish->ignore;
	recv->parent = NULL;
}

/* No message is there that it could be for. */
static inline bool hf_short_post(struct hf_rdm *rdm, void *data, size_t length,
				 const struct hf_wish *wish, fi_addr_t src)
{
	struct hf_match *match = rdm->match;
	struct hf_queue *queue = hf_match_queue(match, wish->tagged);
	struct hf_recv *recv = match->spare;
	uint32_t place = 0;

	if (hf_unlikely(!recv || queue->early || length > HF_MAX_MESSAGE ||
			wish->flags & (FI_MULTI_RECV | FI_PEEK | FI_CLAIM | FI_DISCARD) ||
			!rdm->takes))
		return false;
	if (src != FI_ADDR_UNSPEC && rdm->ep.caps & FI_DIRECTED_RECV) {
		place = hf_av_place(rdm->av, src);
		if (!place)
			return false;
	}
	match->spare = recv->next;
	hf_span_one(&recv->span, data, length);
	hf_short_fill(rdm, recv, wish);
	recv->place = place;
	hf_match_append(match, queue, recv);
	return true;
}

/* ---- receiving ---------------------------------------------------------- */

/* What a message is, as the peer says. */
struct hf_incoming {
	uint8_t flags;		/* of its header */
	uint64_t data;
	uint64_t tag;
	const void *payload;
	size_t length;
};

/* The buffer is the peer's too: each word is read once, and what was read is looked at. */
static inline uint64_t hf_short_word(const void *message, size_t at)
{
	typedef uint64_t __attribute__((may_alias, aligned(1))) word;

	return *(const volatile word *)((const char *)message + at);
}

static inline bool hf_short_parse(const void *message, size_t length, struct hf_incoming *in)
{
	const uint64_t has_data = hf_first_word(0, HF_HAS_DATA);
	const uint64_t tagged = hf_first_word(0, HF_TAGGED);
	size_t begin = sizeof(struct hf_words);
	uint64_t first;

	if (length < begin)
		return false;
	first = hf_short_word(message, offsetof(struct hf_words, first));
	if ((first & ~(tagged | has_data)) != hf_first_word(HF_SEND, 0))
		return false;
	in->flags = (first & tagged ? HF_TAGGED : 0) | (first & has_data ? HF_HAS_DATA : 0);
	in->data = hf_short_word(message, offsetof(struct hf_words, data));
	in->tag = 0;
	if (first & tagged) {
		if (length < begin + sizeof(in->tag))
			return false;
		in->tag = hf_short_word(message, begin);
		begin += sizeof(in->tag);
	}
	in->payload = (const char *)message + begin;
	in->length = length - begin;
	return hf_short_word(message, offsetof(struct hf_words, length)) == in->length;
}

static inline void hf_short_complete(struct hf_ep *link, const struct hf_recv *recv,
				     const struct hf_incoming *in)
{
	if (recv->report) {
		struct fi_cq_tagged_entry *entry = hf_cq_next(link->rx_cq,
							       hf_rdm_source(link, link->place));

		entry->op_context = recv->context;
		entry->flags = hf_recv_flags(in->flags);
		entry->len = in->length;
		entry->buf = recv->span.count ? recv->span.iov[0].iov_base : NULL;
		entry->data = in->data;
		entry->tag = in->tag;
		hf_cq_added(link->rx_cq);
	}
	hf_cntr_count(link->cntrs[HF_COUNT_RECV], false);
}

/* Into the buffer that is its, if that is one of one place, where all of it fits. */
static inline bool hf_short_arrive(struct hf_ep *link, const void *message, size_t length)
{
	struct hf_rdm *rdm = link->rdm;
	struct hf_recv **at, *recv;
	struct hf_incoming in;
	struct hf_match *match;
	struct hf_queue *queue;

	if (!rdm || rdm->match->backlog || !link->rx_cq || !hf_cq_room(link->rx_cq) ||
	    !hf_short_parse(message, length, &in))
		return false;
	match = rdm->match;
	queue = hf_match_queue(match, in.flags & HF_TAGGED);
	at = hf_match_find(queue, link->place, in.tag);
	recv = *at;
	if (!recv || recv->apart || recv->span.count > 1 || in.length > recv->span.length)
		return false;
	hf_match_unlink(match, queue, at);
	hf_short_copy(recv->span.iov[0].iov_base, in.payload, in.length);
	hf_short_complete(link, recv, &in);
	hf_match_recycle(match, recv);
	return true;
}

#endif
