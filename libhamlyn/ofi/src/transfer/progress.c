// SPDX-License-Identifier: MIT
#include "transfer/progress.h"

#include <errno.h>
#include <stdlib.h>

#include "rdm/rdm.h"
#include "transfer/arrive.h"
#include "transfer/stream.h"

/* Messages of one end point in a row, before others have their turn. */
#define TURN	64

/* So many turns in a row of the same one, and it is asked first. */
#define HOT_AFTER	8

static bool may_hold(const struct hf_ep *ep)
{
	return ep->held_count < HF_MAX_HELD;
}

static void pause_channel(struct hf_ep *ep, bool paused)
{
	if (ep->paused == paused)
		return;
	ep->paused = paused;
	h_channel_pause(ep->channel, paused || ep->domain->hot == ep);
}

/* From now on it calls back again. */
void hf_progress_cool(struct hf_domain *domain)
{
	struct hf_ep *ep = domain->hot;

	domain->hot = NULL;
	domain->turns = 0;
	if (ep)
		h_channel_pause(ep->channel, ep->paused);
}

/*
 * The channel from which one message comes after the other need not call back each time: it is
 * asked. Not while a thread sleeps on the manager: it would not be woken.
 */
static void heat(struct hf_ep *ep)
{
	struct hf_domain *domain = ep->domain;

	domain->turns = domain->last_turn == ep ? domain->turns + 1 : 1;
	domain->last_turn = ep;
	if (domain->turns < HOT_AFTER || domain->has_fd || ep->state != HF_EP_CONNECTED)
		return;
	hf_progress_cool(domain);
	domain->hot = ep;
	h_channel_pause(ep->channel, true);
}

/*
 * What may have to wait: messages, behind all that does, and what is done to regions, behind its
 * like, but not behind messages, whose buffers may come late. Answers never wait.
 */
enum sort {
	SORT_ANSWER,
	SORT_REGION,
	SORT_SEND,
};

static enum sort sort_of(const struct h_message *m)
{
	const struct hf_header *header = m->data;

	if (m->length < sizeof(*header))
		return SORT_ANSWER;
	switch (header->op) {
	case HF_SEND:
	case HF_SEND_LONG:
		return SORT_SEND;
	case HF_WRITE:
	case HF_WRITE_LONG:
	case HF_READ:
	case HF_ATOMIC:
		return SORT_REGION;
	default:
		return SORT_ANSWER;
	}
}

/* May one of this sort pass the first @count that are held? */
static bool may_pass(const struct hf_ep *ep, uint32_t count, enum sort sort)
{
	if (sort == SORT_SEND)
		return !count;
	for (uint32_t i = 0; sort == SORT_REGION && i < count; i++)
		if (sort_of(&ep->held[i]) == SORT_REGION)
			return false;
	return true;
}

/* A message that waits for a buffer waits for the application; else for room to tell of it. */
static bool waits_for_room(const struct hf_ep *ep)
{
	return ep->held_count &&
	       (hf_rdm_has_recv(ep) || !may_pass(ep, ep->held_count, SORT_REGION));
}

/* It waits for buffers that others take, too. */
static void starve(struct hf_ep *ep)
{
	struct hf_rdm *srx = ep->srx;

	if (ep->is_hungry)
		return;
	ep->is_hungry = true;
	ep->next_hungry = NULL;
	*srx->last_hungry = ep;
	srx->last_hungry = &ep->next_hungry;
}

/* What is held is tried again when there may be room, or a buffer is posted. */
static void wait_on(struct hf_ep *ep)
{
	if (waits_for_room(ep))
		hf_ep_stick(ep);
	else if (ep->srx && ep->held_count)
		starve(ep);
}

void hf_progress_sated(struct hf_ep *ep)
{
	struct hf_ep **at = &ep->srx->hungry;

	if (!ep->is_hungry)
		return;
	while (*at != ep)
		at = &(*at)->next_hungry;
	*at = ep->next_hungry;
	if (!*at)
		ep->srx->last_hungry = at;
	ep->is_hungry = false;
}

/* What is held goes first; false: something is still held. */
static bool retry_held(struct hf_ep *ep)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < ep->held_count; i++) {
		struct h_message *m = &ep->held[i];
		enum hf_arrival result = HF_LATER;

		if (may_pass(ep, kept, sort_of(m)))
			result = hf_arrive(ep, m->data, m->length);
		if (result == HF_LATER) {
			if (kept != i)
				ep->held[kept] = *m;
			kept++;
			continue;
		}
		h_channel_release(ep->channel, m);
		if (result == HF_BROKEN)
			hf_ep_lost(ep, FI_ECONNABORTED);
	}
	ep->held_count = kept;
	return !kept;
}

static void take(struct hf_ep *ep, struct h_message *m)
{
	enum hf_arrival result = HF_LATER;

	if (!ep->held_count || may_pass(ep, ep->held_count, sort_of(m)))
		result = hf_arrive(ep, m->data, m->length);
	if (result == HF_LATER) {
		ep->held[ep->held_count++] = *m;
		wait_on(ep);
		return;
	}
	h_channel_release(ep->channel, m);
	if (result == HF_BROKEN)
		hf_ep_lost(ep, FI_ECONNABORTED);
}

/* Up to @turn messages; how many there were. */
static int receive(struct hf_ep *ep, int turn)
{
	int n = 0;

	while (n < turn && ep->state == HF_EP_CONNECTED) {
		struct h_message m;
		int err;

		if (!may_hold(ep)) {
			pause_channel(ep, true);
			break;
		}
		err = h_channel_receive(ep->channel, &m, H_NOWAIT);
		if (!err) {
			take(ep, &m);
			n++;
			continue;
		}
		if (err != -EAGAIN && err != -EINTR && err != -ENOMEM)
			hf_ep_lost(ep, err == -EPROTO ? FI_ECONNABORTED : FI_ECONNRESET);
		break;
	}
	return n;
}

/* A buffer was posted, or a completion read. */
void hf_progress_held(struct hf_ep *ep)
{
	if (ep->held_count && !retry_held(ep) && !may_hold(ep))
		return;
	if (ep->paused) {
		pause_channel(ep, false);
		receive(ep, TURN);
	}
}

/* A buffer was posted that several share: to who has waited longest, and so on. */
void hf_progress_hungry(struct hf_rdm *srx)
{
	struct hf_ep *ep;

	while (srx->hungry && hf_rdm_has_recv(srx->hungry)) {
		ep = srx->hungry;
		hf_progress_sated(ep);
		hf_progress_held(ep);
		wait_on(ep);
	}
}

/* Called back by h_manager_dispatch(). */
void hf_progress_ready(struct h_channel *channel, void *arg)
{
	struct hf_ep *ep = arg;

	(void)channel;
	if (ep->state != HF_EP_CONNECTED)
		return;
	if (ep->replies || ep->streams)
		hf_stream_flush(ep);
	if (ep->held_count)
		hf_progress_held(ep);
	if (receive(ep, TURN))
		heat(ep);
}

/*
 * The hot one's messages: one, which the application waits for, or as many as there are once the
 * next one is there each time. False: there was none.
 */
bool hf_progress_hot(struct hf_domain *domain)
{
	struct hf_ep *ep = domain->hot;
	int n;

	if (ep->held_count || ep->paused || ep->state != HF_EP_CONNECTED) {
		hf_progress_cool(domain);
		return false;
	}
	n = receive(ep, domain->flows ? TURN : 1);
	domain->flows = domain->flows ? n > 1 : n && !domain->idle;
	return n;
}

/* What waits for the other end, or for room in a completion queue, is tried again. */
void hf_progress_stuck(struct hf_domain *domain)
{
	struct hf_ep *list = domain->stuck;

	domain->stuck = NULL;
	while (list) {
		struct hf_ep *ep = list;
		bool waits;

		list = ep->next_stuck;
		ep->is_stuck = false;
		waits = !hf_stream_flush(ep);
		hf_progress_held(ep);
		if (waits)
			hf_ep_stick(ep);
		wait_on(ep);
	}
}

void hf_progress_drop_held(struct hf_ep *ep)
{
	for (uint32_t i = 0; i < ep->held_count; i++)
		h_channel_release(ep->channel, &ep->held[i]);
	ep->held_count = 0;
}
