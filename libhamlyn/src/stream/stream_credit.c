// SPDX-License-Identifier: MIT
/* What a sender is told: credits, larger and smaller buffers, and that the receiver is gone. */
#include "stream/stream.h"

/* ---- credits ---- */

static struct h_stream_sender *of(struct h_receiver *r)
{
	return (struct h_stream_sender *)r;
}

/* Larger buffers are for the next send; smaller ones are taken even if nobody sends. */
static void take_offer(struct h_stream_sender *s, const unsigned char *seed, bool smaller)
{
	if (s->fixed) {
		h__write_once(&s->broken, true);
		return;
	}
	memcpy(s->next.bytes, seed, H_SEED_BYTES);
	h__budget_grows(s->r.manager);
	if (smaller) {
		h__store_release(&s->shrinks, true);
		h_receiver_owes(&s->r, true);
	} else {
		h__store_release(&s->grows, true);
	}
}

/* The credit was copied; what it says is the other end's word. */
static void take_credit(struct h_stream_sender *s, const unsigned char *p,
			uint32_t length)
{
	uint32_t sent = h__load_acquire(&s->sent);
	uint32_t released = (uint32_t)h__get(p, 4);
	uint32_t flags = (uint32_t)h__get(p + 4, 4);

	if (length < H_CREDIT_SHORT ||
	    (flags & (H_CREDIT_SEED | H_CREDIT_SMALLER) && length < H_CREDIT_LONG)) {
		h__write_once(&s->broken, true);
		return;
	}
	/* An older one may come late. */
	if ((int32_t)(released - s->released) > 0) {
		if (released - s->released > sent - s->released) {
			h__write_once(&s->broken, true);
			return;
		}
		h__store_release(&s->released, released);
	}
	if (flags & H_CREDIT_FIN)
		h__write_once(&s->finished, true);
	if (flags & (H_CREDIT_SEED | H_CREDIT_SMALLER))
		take_offer(s, p + H_CREDIT_SHORT, flags & H_CREDIT_SMALLER);
}

/*
 * Credits are read when the notification has come, or when it was lost. The length
 * is the entry's: a notification that comes late may be of the one before.
 */
static void look_at_credit(struct h_stream_sender *s, uint32_t index)
{
	struct hamlyn_metadata *entry = h__place_entry(&s->credits, index);
	unsigned char bytes[H_CREDIT_BYTES];

	memcpy(bytes, (char *)s->credits.data.addr + index * H_CREDIT_BYTES,
	       sizeof(bytes));
	take_credit(s, bytes, h__read_once(&entry->length));
	h__entry_arm(entry);
	if (index == H_CREDITS)
		return;
	/* Behind arming: from now on the receiver may be told, and send another. */
	h__store_release(&s->credits_seen, h__credit_count(s->credits_seen, index));
}

static void process_credit(struct h_receiver *r,
			   const struct hamlyn_nq_entry *e)
{
	struct h_stream_sender *s = of(r);

	if (e->flags & HAMLYN_NQE_PEER_GONE) {
		/* Not if it is of a generation that was grown out of. */
		if (e->data >> 32 == s->generation)
			h__store_release(&s->gone, true);
		return;
	}
	/* Armed: process_lost_credits() was faster than this notification. */
	if (e->index <= H_CREDITS &&
	    !h__load_acquire(&h__place_entry(&s->credits, e->index)->state))
		look_at_credit(s, e->index);
}

static void process_lost_credits(struct h_receiver *r)
{
	struct h_stream_sender *s = of(r);
	uint32_t i;

	for (i = 0; i <= H_CREDITS; i++) {
		struct hamlyn_metadata *entry = h__place_entry(&s->credits, i);

		if (!h__load_acquire(&entry->state))
			look_at_credit(s, i);
	}
}

/*
 * h__stream_tickets() of another thread, while the sender may be about to change any of it: that
 * looks again once it is refused. Not the same function: loads of which each is made once take a
 * message four instructions more.
 */
static bool may_have_ticket(const struct h_stream_sender *s)
{
	uint32_t released = h__load_acquire(&s->released), start = h__read_once(&s->start);

	if ((int32_t)(released - start) < 0)
		released = start;
	return h__read_once(&s->entries) != h__read_once(&s->sent) - released;
}

static bool pending(const struct h_receiver *r)
{
	const struct h_stream_sender *s = (const struct h_stream_sender *)r;

	if (h__stream_failed(s) && !s->told)
		return true;
	return (s->wanted || s->refused) &&
	       (h__stream_failed(s) || h__read_once(&s->grows) || h__read_once(&s->unwatched) ||
		(may_have_ticket(s) && h__read_once(&s->held_by) < 0));
}

static void settle_offer(struct h_receiver *r)
{
	h_receiver_owes(r, false);
	h__chore_add(r->manager, &of(r)->shed);
}

const struct h_receiver_class h__stream_sender_class = {
	.name = "stream sender",
	.process_arrival = process_credit,
	.process_overrun = process_lost_credits,
	.pending = pending,
	.settle = settle_offer,
};

bool h__is_stream_sender(const struct h_receiver *r)
{
	return r->class_ == &h__stream_sender_class;
}

/* ---- generations ---- */

static bool seed_makes_sense(const struct h_seed_fields *f)
{
	return h__is_power_of_two(f->entries) &&
	       h__is_power_of_two(f->buffer) &&
	       f->entries >= H_STREAM_MIN_BUFFERS &&
	       f->entries <= H_STREAM_MAX_BUFFERS &&
	       f->buffer >= H_STREAM_MIN_SIZE &&
	       f->buffer <= H_STREAM_MAX_SIZE &&
	       f->ticket.length == (uint64_t)f->entries * f->buffer;
}

int h__stream_sender_unwatch(struct h_stream_sender *s)
{
	int err = s->watch ? h_unwatch(s->watch) : 0;

	if (!err)
		s->watch = NULL;
	return err;
}

/*
 * The application may have given the seed to two: each would have the other's records
 * rejected, which nobody is told.
 */
static int claim(struct h_stream_sender *s, int fd)
{
	struct h_manager *m = s->r.manager;
	int err;

	err = h__watch_claim(m->dev, &s->ticket, fd, m->nq,
			     h_receiver_cookie(&s->r, s->generation), &s->watch);
	if (err == -EALREADY)
		h__refuse(m->dev, err, "a sender was made from this seed before");
	return err;
}

static int watch(struct h_stream_sender *s, int fd)
{
	int err = h__stream_sender_unwatch(s);

	if (err)
		return err;
	return s->claims && s->generation == 1 ?
	       claim(s, fd) :
	       h_receiver_watch(&s->r, &s->ticket, fd, s->generation, &s->watch);
}

/* Called by a thread that sends, or that waits with a deadline of its own. */
static int watch_now(struct h_stream_sender *s)
{
	return h__dev_changing(s->r.manager->dev) ? -EAGAIN : watch(s, -1);
}

static uint32_t at_once(const struct h_stream_sender *s)
{
	uint32_t room = s->r.manager->terminus->inline_max - HAMLYN_TRB_METADATA_SPACE;

	return room < s->buffer ? room : s->buffer;
}

/*
 * Larger each time, or smaller after they were used: there are only so many. To have them grow
 * takes as many records as there are buffers.
 */
static bool may_follow(const struct h_stream_sender *s, uint32_t buffer, bool smaller)
{
	if (!smaller)
		return buffer > s->buffer;
	return buffer < s->buffer && s->sent - s->shrunk >= s->entries;
}

/*
 * What a NIC that works in its senders has begun to send to another host it cannot leave, so
 * records are no longer than what is sent as a whole, or not at all.
 */
static uint32_t whole_to(const struct h_stream_sender *s, uint32_t buffer)
{
	const struct h_manager *m = s->r.manager;
	uint64_t whole = h__dev_whole(m->dev);

	return s->ticket.host == m->self_ticket.host || whole > buffer ? buffer : (uint32_t)whole;
}

/* @fd: descriptor that the seed came with, or -1. */
int h__stream_adopt(struct h_stream_sender *s, const struct h_seed *seed, int fd, bool smaller)
{
	struct h_seed_fields f;
	int err;

	err = h__seed_get(seed, H_SEED_STREAM, &f);
	if (err)
		return err;
	if (!seed_makes_sense(&f) || !may_follow(s, f.buffer, smaller))
		return -EINVAL;
	if (fd >= 0)
		err = h__ticket_adopt(s->r.manager, fd, &f.ticket);
	if (err)
		return err;
	h_receiver_lock(&s->r);
	s->generation++;
	h_receiver_unlock(&s->r);
	s->ticket = f.ticket;
	s->ticket.length = f.buffer;
	s->to = s->ticket;
	h__manager_reaches(s->r.manager, s->ticket.host);
	h__write_once(&s->entries, f.entries);
	s->buffer = f.buffer;
	s->most = whole_to(s, f.buffer);
	s->at_once = at_once(s);
	h__write_once(&s->start, s->sent);
	h__write_once(&s->starts, true);
	if (smaller)
		s->shrunk = s->sent;
	err = s->generation > 1 ? watch_now(s) : watch(s, fd);
	/*
	 * That is nothing against the other end: records go without one as well. With the
	 * first one there may be other reasons than being held back.
	 */
	if (h__watch_comes_later(err) || (err && s->generation > 1)) {
		h__write_once(&s->unwatched, true);
		err = 0;
	}
	return err;
}

/* Until there is a watch it is tried again and again, also by threads that wait. */
void h__stream_sender_watch(struct h_stream_sender *s)
{
	int err;

	if (h__likely(!s->unwatched))
		return;
	err = watch_now(s);
	h__write_once(&s->unwatched, err);
	if (err == -EALREADY) {
		h_receiver_lock(&s->r);
		h__write_once(&s->broken, true);
		h_receiver_unlock(&s->r);
	}
}

int h__stream_take_next(struct h_stream_sender *s, bool smaller)
{
	struct h_seed next;

	h_receiver_lock(&s->r);
	next = s->next;
	h__write_once(smaller ? &s->shrinks : &s->grows, false);
	h_receiver_unlock(&s->r);
	if (!h__stream_adopt(s, &next, -1, smaller))
		return 0;
	h_receiver_lock(&s->r);
	h__write_once(&s->broken, true);
	h_receiver_unlock(&s->r);
	return -EPIPE;
}

/*
 * The record that starts a generation has nothing in it, if there is nothing else to send: or
 * the receiver would keep the other one. What is collected was for the larger buffers.
 */
bool h__stream_turn(struct h_stream_sender *s)
{
	bool smaller = h__load_acquire(&s->shrinks);

	if (smaller || h__load_acquire(&s->grows)) {
		if (h__stage_flush(s, 0, 0, H_NOWAIT))
			return false;
		if (h__load_acquire(smaller ? &s->shrinks : &s->grows) &&
		    h__stream_take_next(s, smaller))
			return true;
	}
	return !s->starts || s->generation == 1 || h__stream_post(s, NULL, 0, 0, 0, H_NOWAIT) >= 0;
}

/* ---- where credits go ---- */

int h__stream_credits_init(struct h_stream_sender *s, uint32_t slot_flags)
{
	const struct h_receiver_attr attr = {
		.length = (H_CREDITS + 1) * H_CREDIT_BYTES,
		.entries = H_CREDITS + 1,
		.mode = HAMLYN_SLOT_PARANOID_ONE_SHOT,
		.flags = slot_flags,
		.arrivals = H_CREDITS + 1 + 2,	/* two watches */
	};
	uint64_t key;
	uint32_t i;
	int err;

	err = h__key(&key);
	if (err)
		return err;
	err = h__place_init(&s->credits, &s->r, &attr);
	if (err)
		return err;
	for (i = 0; i <= H_CREDITS; i++)
		h__entry_grant(h__place_entry(&s->credits, i), key,
			       i * H_CREDIT_BYTES, (i + 1) * H_CREDIT_BYTES);
	/* Last: from here on process_lost_credits() may be called. */
	h_receiver_lock(&s->r);
	s->r.slot = s->credits.slot;
	h_receiver_unlock(&s->r);
	return 0;
}

void h__stream_sender_credits(const struct h_stream_sender *s,
			      struct h_seed *seed)
{
	struct h_seed_fields f = {
		.kind = H_SEED_CREDIT,
		.entries = H_CREDITS,
		.buffer = H_CREDIT_BYTES,
		.more = H_SEED_MAY_SHRINK,
	};

	h_slot_ticket(s->credits.slot, 0, 0, 0, &f.ticket);
	h__seed_put(seed, &f);
}
