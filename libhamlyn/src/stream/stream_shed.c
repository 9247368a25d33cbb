// SPDX-License-Identifier: MIT
/*
 * Buffers of streams that have grown, and that nobody needs: less memory does as well.
 *
 * Whether they are needed is counted, where it is counted at any rate: how many records have
 * come since it was looked last, and how many bytes. A receiver whose records would have fitted
 * the smaller buffers, one with the other, offers its sender those. If they had to grow again it
 * looks twice as often before the next time. What a sender collects small sends in goes when it
 * has sent nothing.
 */
#include "stream/stream.h"

static struct h_stream_sender *sender_of(struct h_receiver *r)
{
	return (struct h_stream_sender *)r;
}

static struct h_stream_receiver *receiver_of(struct h_receiver *r)
{
	return (struct h_stream_receiver *)r;
}

/* ---- what there is to do; manager->lock held ---- */

/* Locked. @any: something has come at all. */
static bool was_quiet(struct h_stream_receiver *r, bool *any)
{
	uint32_t records = r->high - r->looked_high;
	uint64_t bytes = r->paid - r->looked_paid;

	r->looked_high = r->high;
	r->looked_paid = r->paid;
	*any = records;
	return bytes <= (uint64_t)records * r->least;
}

static bool receiver_unneeded(struct h_stream_receiver *r, bool pressed)
{
	bool any, quiet = was_quiet(r, &any);

	if (r->gens == 2 || r->gen[0].buffer > r->least)
		h__budget_grows(r->r.manager);
	if (r->over || !r->connected)
		return false;
	if (r->gens == 2)
		return r->gen[1].started;
	if (!quiet || r->gen[0].buffer == r->least) {
		r->quiet = 0;
		return false;
	}
	r->quiet++;
	if (!r->may_shrink || r->released != r->high || r->ahead)
		return false;
	return r->quiet > r->patience || (pressed && !any);
}

static bool sender_unneeded(struct h_stream_sender *s)
{
	uint32_t sent = h__load_acquire(&s->sent);
	bool idle = sent == s->looked_sent;
	bool starts = h__read_once(&s->starts) && s->generation > 1;
	bool shrinks = h__read_once(&s->shrinks) || starts;
	bool has = h__read_once(&s->grows) || h__read_once(&s->stage_grown);

	s->looked_sent = sent;
	if (shrinks || has)
		h__budget_grows(s->r.manager);
	return shrinks || (idle && has);
}

struct h_debt *h__stream_unneeded(struct h_receiver *r, bool pressed)
{
	struct h_debt *d = NULL;

	h_receiver_lock(r);
	if (r->class_ == &h__stream_class && receiver_unneeded(receiver_of(r), pressed))
		d = &receiver_of(r)->shed;
	if (h__is_stream_sender(r) && sender_unneeded(sender_of(r)))
		d = &sender_of(r)->shed;
	h_receiver_unlock(r);
	return d;
}

/* ---- doing it ---- */

int h__shed_receiver(struct h_debt *d)
{
	h__stream_shed((void *)((char *)d - offsetof(struct h_stream_receiver, shed)));
	return 0;
}

/* What cannot be done now the next look finds; a thread that sends without end does it itself. */
int h__shed_sender(struct h_debt *d)
{
	struct h_stream_sender *s = (void *)((char *)d - offsetof(struct h_stream_sender, shed));

	if (h__mutex_lock(s->r.manager, &s->sending, H_NOWAIT))
		return 0;
	if (!s->within && !s->closed && !h__stream_failed(s) && h__stream_turn(s))
		h__stage_shed(s);
	if (s->unlock)
		s->unlock(s);
	else
		h__stream_sent(s);
	/* Room that no credit tells of. */
	h__receiver_look(&s->r);
	return 0;
}
