// SPDX-License-Identifier: MIT
#include "rdm/match.h"

#include <stdlib.h>
#include <string.h>

#include "rdm/rdm.h"
#include "rdm/shared.h"
#include "transfer/complete.h"

/* Without FI_OPT_MIN_MULTI_RECV */
#define LEAST	64

static void queue_init(struct hf_queue *queue)
{
	queue->last = &queue->first;
	queue->last_early = &queue->early;
}

void hf_match_init(struct hf_match *match)
{
	queue_init(&match->plain);
	queue_init(&match->tagged);
	match->least = LEAST;
}

/* ---- buffers ------------------------------------------------------------- */

static struct hf_recv *recv_new(struct hf_match *match)
{
	struct hf_recv *recv = match->spare;

	if (!recv)
		return calloc(1, sizeof(*recv));
	match->spare = recv->next;
	memset(recv, 0, sizeof(*recv));
	return recv;
}

/* Room for one message in a buffer of many; NULL: no memory. */
static struct hf_recv *cut_part(struct hf_match *match, struct hf_recv *recv, uint64_t length)
{
	uint64_t left = recv->span.length - recv->used, least = match->least ? match->least : 1;
	struct hf_recv *part = recv_new(match);

	if (!part)
		return NULL;
	part->parent = recv;
	part->context = recv->context;
	part->report = recv->report;
	part->apart = true;
	hf_span_part(&recv->span, recv->used, length < left ? length : left, &part->span);
	recv->parts++;
	recv->used += part->span.length;
	recv->retired = recv->span.length - recv->used < least;
	return part;
}

/* A part's message has ended. Is its buffer the application's again? */
bool hf_match_part_ends(struct hf_recv *recv)
{
	recv->parent->parts--;
	return recv->parent->retired && !recv->parent->parts && !recv->parent->err;
}

/* The oldest buffer that takes the message. It is out of the queue, or a part of it is. */
struct hf_recv *hf_match_take(struct hf_ep *link, const struct hf_header *header, uint64_t tag)
{
	struct hf_match *match = hf_match_of(link);
	struct hf_queue *queue = hf_match_queue(match, header->flags & HF_TAGGED);
	struct hf_recv **at = hf_match_find(queue, link->place, tag);
	struct hf_recv *recv = *at, *part;

	if (!recv)
		return NULL;
	if (!recv->multi) {
		hf_match_unlink(match, queue, at);
		return recv;
	}
	part = cut_part(match, recv, header->length);
	if (part && recv->retired)
		hf_match_unlink(match, queue, at);
	return part;
}

/* ---- messages ------------------------------------------------------------ */

static bool is_long(const struct hf_early *early)
{
	return early->header.op == HF_SEND_LONG;
}

/* Some buffers may have to be looked at again, before anything else gets one. */
void hf_match_defer(struct hf_rdm *rdm)
{
	rdm->match->backlog = true;
	rdm->ep.domain->backlog = true;
}

/* No buffer was there. False: the link has to wait. */
bool hf_match_keep(struct hf_ep *link, const struct hf_header *header, uint64_t tag,
		   const void *rest, size_t length)
{
	struct hf_queue *queue = hf_match_queue(link->rdm->match, header->flags & HF_TAGGED);
	size_t whole = sizeof(struct hf_early) + length;
	struct hf_early *early;

	if (link->early_bytes + whole > HF_EARLY_BYTES)
		return false;
	early = malloc(whole);
	if (!early)
		return false;
	early->next = NULL;
	early->rdm = link->rdm;
	early->link = link;
	early->claim = NULL;
	early->header = *header;
	early->tag = tag;
	early->place = link->place;
	early->rest_length = length;
	memcpy(early->rest, rest, length);
	link->early_bytes += whole;
	*queue->last_early = early;
	queue->last_early = &early->next;
	if (link->rx_cq && !hf_cq_room(link->rx_cq))
		hf_match_defer(link->rdm);
	return true;
}

static struct hf_early **find_early(struct hf_queue *queue, uint32_t place, uint64_t tag,
				    uint64_t ignore)
{
	struct hf_early **at = &queue->early;

	while (*at && !((!place || place == (*at)->place) &&
			hf_match_same(tag, (*at)->tag, ignore)))
		at = &(*at)->next;
	return at;
}

static struct hf_early *unlink_early(struct hf_queue *queue, struct hf_early **at)
{
	struct hf_early *early = *at;

	*at = early->next;
	if (!*at)
		queue->last_early = at;
	if (early->link)
		early->link->early_bytes -= sizeof(*early) + early->rest_length;
	return early;
}

static struct hf_early *unlink_claimed(struct hf_early **at)
{
	struct hf_early *early = *at;

	*at = early->next;
	return early;
}

/* A long one whose sender is there needs an operation of the link; *@work. */
static int prepare(const struct hf_early *early, struct hf_work **work)
{
	*work = NULL;
	if (!is_long(early) || !early->link)
		return 0;
	*work = hf_work_new(&early->link->works, HF_WORK_IN_RECV);
	return *work ? 0 : -FI_EAGAIN;
}

/* Both are out of their queues. */
static void deliver(struct hf_early *early, struct hf_recv *recv, struct hf_work *work)
{
	struct hf_ep *ep = &early->rdm->ep;
	const struct hf_sent sent = hf_sent_by(early->place, &early->header, early->tag);
	struct hf_place places[HF_MAX_PLACES] = { 0 };

	if (work) {
		memcpy(places, early->rest, early->rest_length);
		hf_arrive_long(early->link, work, recv, &early->header, early->tag, places);
	} else if (is_long(early)) {
		hf_complete_recv_error(ep, recv, FI_ECONNRESET);
	} else {
		hf_span_put(&recv->span, 0, early->rest, recv->span.length < sent.length ?
							 recv->span.length : sent.length);
		hf_complete_recv(ep, recv, &sent);
		if (early->link && early->header.flags & HF_WANT_DONE)
			hf_arrive_done(early->link, early->header.id, 0);
	}
	free(early);
}

/* Nobody wants it; its sender is told that it was taken. */
static void discard(struct hf_early *early)
{
	if (early->link && (is_long(early) || early->header.flags & HF_WANT_DONE))
		hf_arrive_done(early->link, early->header.id, 0);
	free(early);
}

/* ---- calls --------------------------------------------------------------- */

static void fill_recv(struct hf_recv *recv, const struct hf_wish *wish)
{
	recv->span = *wish->span;
	recv->context = wish->context;
	recv->report = wish->report;
	recv->tagged = wish->tagged;
	recv->tag = wish->tag;
	recv->ignore = wish->ignore;
	recv->place = wish->place;
	recv->multi = wish->flags & FI_MULTI_RECV;
}

/* One that has come, into the buffer or a part of it; *@more: the buffer has room for others. */
static int take_early(struct hf_rdm *rdm, struct hf_queue *queue, struct hf_recv *recv,
		      bool *more)
{
	struct hf_early **at = find_early(queue, recv->place, recv->tag, recv->ignore);
	struct hf_recv *to = recv;
	struct hf_work *work;
	int err;

	if (!*at)
		return -FI_ENOMSG;
	if (!hf_cq_room((*at)->rdm->ep.rx_cq))
		return -FI_EAGAIN;
	err = prepare(*at, &work);
	if (!err && recv->multi) {
		to = cut_part(rdm->match, recv, (*at)->header.length);
		err = to ? 0 : -FI_EAGAIN;
	}
	if (err) {
		if (work)
			hf_work_end(&(*at)->link->works, work);
		return err;
	}
	/* With its last part, which may end here, the buffer is gone. */
	*more = recv->multi && !recv->retired;
	deliver(unlink_early(queue, at), to, work);
	return 0;
}

int hf_match_post(struct hf_rdm *rdm, const struct hf_wish *wish)
{
	struct hf_match *match = rdm->match;
	struct hf_queue *queue = hf_match_queue(match, wish->tagged);
	struct hf_recv *recv = recv_new(match);
	bool more = true, used = false;
	int err = 0;

	if (!recv)
		return -FI_EAGAIN;
	fill_recv(recv, wish);
	recv->apart = recv->multi || match->shared || rdm->ep.caps & FI_SOURCE_ERR;
	if (match->backlog)
		hf_match_retry(rdm);
	if (match->backlog) {
		hf_match_append(match, queue, recv);
		return 0;
	}
	while (more && !err && queue->early) {
		err = take_early(rdm, queue, recv, &more);
		used = used || !err;
	}
	if (!more)
		return 0;
	if (err == -FI_EAGAIN && !used) {
		hf_match_recycle(match, recv);
		return err;
	}
	/* For some there was no room yet, and what comes must not overtake them. */
	if (err == -FI_EAGAIN)
		hf_match_defer(rdm);
	hf_match_append(match, queue, recv);
	return 0;
}

static void retry_queue(struct hf_rdm *rdm, struct hf_queue *queue)
{
	struct hf_recv **at = &queue->first;

	while (*at && queue->early) {
		struct hf_recv *next = (*at)->next;
		bool more = true;
		int err = 0;

		while (more && !err)
			err = take_early(rdm, queue, *at, &more);
		if (err == -FI_EAGAIN)
			hf_match_defer(rdm);
		if (more) {
			at = &(*at)->next;
			continue;
		}
		rdm->match->recvs--;
		*at = next;
		if (!next)
			queue->last = at;
	}
}

/* Completions were read: buffers may take more of what has come. */
void hf_match_retry(struct hf_rdm *rdm)
{
	rdm->match->backlog = false;
	retry_queue(rdm, &rdm->match->plain);
	retry_queue(rdm, &rdm->match->tagged);
}

/* What is early, to the queue of completions of its end point, and no more. */
static void tell(const struct hf_early *early, const struct hf_wish *wish)
{
	const struct hf_sent sent = hf_sent_by(early->place, &early->header, early->tag);

	hf_complete_peek(&early->rdm->ep, wish->context, &sent);
}

int hf_match_peek(struct hf_rdm *rdm, const struct hf_wish *wish)
{
	struct hf_queue *queue = hf_match_queue(rdm->match, wish->tagged);
	struct hf_early **at = find_early(queue, wish->place, wish->tag, wish->ignore);
	struct hf_ep *teller = hf_shared_teller(rdm);
	struct hf_early *early;

	if (!*at) {
		if (!teller)
			return -FI_ENOCQ;
		hf_complete_no_message(teller, wish->context, wish->tagged, wish->tag);
		return 0;
	}
	if (!hf_cq_room((*at)->rdm->ep.rx_cq))
		return -FI_EAGAIN;
	tell(*at, wish);
	if (!(wish->flags & (FI_CLAIM | FI_DISCARD)))
		return 0;
	early = unlink_early(queue, at);
	if (wish->flags & FI_DISCARD) {
		discard(early);
		return 0;
	}
	early->claim = wish->context;
	early->next = rdm->match->claimed;
	rdm->match->claimed = early;
	return 0;
}

/* Nothing of a claim is kept in the application's context: its address is enough. */
int hf_match_claim(struct hf_rdm *rdm, const struct hf_wish *wish)
{
	struct hf_early **at = &rdm->match->claimed;
	struct hf_recv *recv;
	struct hf_work *work;
	int err;

	while (*at && (*at)->claim != wish->context)
		at = &(*at)->next;
	if (!*at)
		return -FI_EINVAL;
	if (!hf_cq_room((*at)->rdm->ep.rx_cq))
		return -FI_EAGAIN;
	if (wish->flags & FI_DISCARD) {
		tell(*at, wish);
		discard(unlink_claimed(at));
		return 0;
	}
	err = prepare(*at, &work);
	if (err)
		return err;
	recv = recv_new(rdm->match);
	if (!recv) {
		if (work)
			hf_work_end(&(*at)->link->works, work);
		return -FI_EAGAIN;
	}
	fill_recv(recv, wish);
	recv->multi = false;
	deliver(unlink_claimed(at), recv, work);
	return 0;
}

/* ---- ending -------------------------------------------------------------- */

/* While parts of it are under way the buffer is not the application's yet. */
static void end_recv(struct hf_ep *teller, struct hf_recv *recv, int err)
{
	recv->retired = true;
	recv->err = err;
	if (!recv->parts)
		hf_complete_recv_error(teller, recv, err);
}

static bool cancel_in(struct hf_match *match, struct hf_queue *queue, const void *context,
		      struct hf_ep *teller)
{
	for (struct hf_recv **at = &queue->first; *at; at = &(*at)->next) {
		struct hf_recv *recv = *at;

		if (recv->context != context)
			continue;
		hf_match_unlink(match, queue, at);
		end_recv(teller, recv, FI_ECANCELED);
		return true;
	}
	return false;
}

int hf_match_cancel(struct hf_rdm *rdm, const void *context)
{
	struct hf_ep *teller = hf_shared_teller(rdm);
	struct hf_match *match = rdm->match;

	if (!teller)
		return -FI_ENOCQ;
	return cancel_in(match, &match->tagged, context, teller) ||
	       cancel_in(match, &match->plain, context, teller) ? 0 : -FI_ENOENT;
}

static void lose_recvs(struct hf_rdm *rdm, struct hf_queue *queue, uint32_t place)
{
	struct hf_recv **at = &queue->first;

	while (*at) {
		struct hf_recv *recv = *at;

		if (recv->place != place) {
			at = &recv->next;
			continue;
		}
		hf_match_unlink(rdm->match, queue, at);
		end_recv(&rdm->ep, recv, FI_ECONNRESET);
	}
}

static void orphan(struct hf_early *early, const struct hf_ep *link)
{
	for (; early; early = early->next)
		if (early->link == link)
			early->link = NULL;
}

/* What it had sent can be received; what is still there never will be. */
void hf_match_orphan(struct hf_ep *link)
{
	struct hf_match *match = link->rdm->match;

	orphan(match->plain.early, link);
	orphan(match->tagged.early, link);
	orphan(match->claimed, link);
	link->early_bytes = 0;
}

/* And nobody else sends what was to come from there. */
void hf_match_lost(struct hf_ep *link)
{
	struct hf_match *match = link->rdm->match;

	hf_match_orphan(link);
	lose_recvs(link->rdm, &match->plain, link->place);
	lose_recvs(link->rdm, &match->tagged, link->place);
}

static void free_early(struct hf_early *early)
{
	while (early) {
		struct hf_early *next = early->next;

		free(early);
		early = next;
	}
}

static void free_recvs(struct hf_recv *recv)
{
	while (recv) {
		struct hf_recv *next = recv->next;

		free(recv);
		recv = next;
	}
}

static void forget_early(struct hf_early **at, struct hf_early ***last, const struct hf_rdm *rdm)
{
	while (*at) {
		struct hf_early *early = *at;

		if (early->rdm != rdm) {
			at = &early->next;
			continue;
		}
		*at = early->next;
		free(early);
	}
	if (last)
		*last = at;
}

/* It is closed, and its links are: what came to it is received by nobody. */
void hf_match_leave(struct hf_rdm *rdm)
{
	struct hf_match *match = rdm->match;

	forget_early(&match->plain.early, &match->plain.last_early, rdm);
	forget_early(&match->tagged.early, &match->tagged.last_early, rdm);
	forget_early(&match->claimed, NULL, rdm);
}

/* Links are gone; what was posted ends silently, as fi_close() says. */
void hf_match_free(struct hf_match *match)
{
	free_early(match->plain.early);
	free_early(match->tagged.early);
	free_early(match->claimed);
	free_recvs(match->plain.first);
	free_recvs(match->tagged.first);
	free_recvs(match->spare);
}
