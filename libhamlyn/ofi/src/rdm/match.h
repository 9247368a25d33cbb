/* SPDX-License-Identifier: MIT */
/*
 * Which message goes into which buffer, at an end point of FI_EP_RDM: the buffers that were posted
 * and the messages that came before theirs, those with tags and those without. Both are searched
 * from the oldest on, which is the order that FI_ORDER_SAS promises. Domain locked.
 */
#ifndef HAMLYN_OFI_MATCH_H
#define HAMLYN_OFI_MATCH_H

#include "transfer/arrive.h"

/* Of a link's messages that wait for buffers; then the link waits. */
#define HF_EARLY_BYTES	(64U << 20)

/* A message that came before its buffer. All but the link is the peer's word. */
struct hf_early {
	struct hf_early *next;
	struct hf_rdm *rdm;		/* to whom it was sent */
	struct hf_ep *link;		/* where the rest is, or whom to answer; NULL: it is gone */
	const void *claim;		/* the context by which it was claimed */
	struct hf_header header;
	uint64_t tag;
	uint32_t place;
	uint64_t rest_length;
	unsigned char rest[];		/* the message, or struct hf_place, if it is long */
};

struct hf_queue {
	struct hf_recv *first;
	struct hf_recv **last;
	struct hf_early *early;
	struct hf_early **last_early;
};

struct hf_match {
	struct hf_queue plain;
	struct hf_queue tagged;
	struct hf_early *claimed;
	struct hf_recv *spare;
	size_t recvs;
	size_t least;			/* FI_OPT_MIN_MULTI_RECV */
	bool backlog;			/* of what has come there is more for posted buffers */
	bool shared;			/* by several end points: shared.h */
};

/* What a call of the application wants. */
struct hf_wish {
	const struct hf_span *span;
	void *context;
	uint64_t flags;
	uint64_t tag;
	uint64_t ignore;
	uint32_t place;
	bool tagged;
	bool report;		/* a success, too */
};

void hf_match_init(struct hf_match *match);
void hf_match_free(struct hf_match *match);
void hf_match_leave(struct hf_rdm *rdm);
struct hf_recv *hf_match_take(struct hf_ep *link, const struct hf_header *header, uint64_t tag);
bool hf_match_keep(struct hf_ep *link, const struct hf_header *header, uint64_t tag,
		   const void *rest, size_t length);
int hf_match_post(struct hf_rdm *rdm, const struct hf_wish *wish);
int hf_match_peek(struct hf_rdm *rdm, const struct hf_wish *wish);
int hf_match_claim(struct hf_rdm *rdm, const struct hf_wish *wish);
int hf_match_cancel(struct hf_rdm *rdm, const void *context);
bool hf_match_part_ends(struct hf_recv *recv);
void hf_match_defer(struct hf_rdm *rdm);
void hf_match_retry(struct hf_rdm *rdm);
void hf_match_orphan(struct hf_ep *link);
void hf_match_lost(struct hf_ep *link);

static inline struct hf_queue *hf_match_queue(struct hf_match *match, bool tagged)
{
	return tagged ? &match->tagged : &match->plain;
}

static inline bool hf_match_same(uint64_t tag, uint64_t other, uint64_t ignore)
{
	return !((tag ^ other) & ~ignore);
}

/* Where the oldest buffer is that takes a message; there may be none. */
static inline struct hf_recv **hf_match_find(struct hf_queue *queue, uint32_t place, uint64_t tag)
{
	struct hf_recv **at = &queue->first, *recv;

	for (recv = *at; recv; at = &recv->next, recv = *at)
		if ((!recv->place || recv->place == place) &&
		    hf_match_same(recv->tag, tag, recv->ignore))
			break;
	return at;
}

static inline void hf_match_append(struct hf_match *match, struct hf_queue *queue,
				   struct hf_recv *recv)
{
	recv->next = NULL;
	*queue->last = recv;
	queue->last = &recv->next;
	match->recvs++;
}

static inline void hf_match_unlink(struct hf_match *match, struct hf_queue *queue,
				   struct hf_recv **at)
{
	struct hf_recv *recv = *at;

	*at = recv->next;
	if (!*at)
		queue->last = at;
	match->recvs--;
}

/* It is in no queue. */
static inline void hf_match_recycle(struct hf_match *match, struct hf_recv *recv)
{
	recv->next = match->spare;
	match->spare = recv;
}

#endif
