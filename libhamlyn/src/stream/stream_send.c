// SPDX-License-Identifier: MIT
/* The sending end of a stream. */
#include <stdlib.h>

#include "stream/stream.h"

/* Above, data of bound areas is sent from where it is. */
#define COPY_AT_MOST	1024
#define POLL_EVERY	8	/* records, so that it is seen that the peer is gone */
#define HELLO_NS	1000000000LL	/* for room in the work queue */

/* ---- credits ---- */

static struct h_stream_sender *of(struct h_receiver *r)
{
	return (struct h_stream_sender *)r;
}

/* Larger ones are taken by who sends next; smaller ones also where nobody does. */
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
 * Numbers wrap around, so the start must not stay far behind: it follows by whole
 * laps, which leaves each record's buffer as it was.
 */
static void move_start(struct h_stream_sender *s)
{
	uint32_t ahead = h__load_acquire(&s->released) - s->start;

	if ((int32_t)ahead > 0)
		s->start += ahead & ~(s->entries - 1);
}

static bool pending(const struct h_receiver *r)
{
	const struct h_stream_sender *s = (const struct h_stream_sender *)r;

	if (h__stream_failed(s) && !s->told)
		return true;
	return (s->wanted || s->refused) &&
	       (h__stream_failed(s) || s->grows || h__read_once(&s->unwatched) ||
		(h__stream_tickets(s) && h__read_once(&s->held_by) < 0));
}

static void settle_offer(struct h_receiver *r)
{
	h_receiver_owes(r, false);
	h__chore_add(r->manager, &of(r)->shed);
}

static const struct h_receiver_class credit_class = {
	.name = "stream sender",
	.process_arrival = process_credit,
	.process_overrun = process_lost_credits,
	.pending = pending,
	.settle = settle_offer,
};

bool h__is_stream_sender(const struct h_receiver *r)
{
	return r->class_ == &credit_class;
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

static int end_watch(struct h_stream_sender *s)
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
	int err = end_watch(s);

	if (err)
		return err;
	return s->claims && s->generation == 1 ?
	       claim(s, fd) :
	       h_receiver_watch(&s->r, &s->ticket, fd, s->generation, &s->watch);
}

/* By who sends, or waits with a deadline of his own. */
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
static int adopt(struct h_stream_sender *s, const struct h_seed *seed, int fd, bool smaller)
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
	s->entries = f.entries;
	s->buffer = f.buffer;
	s->most = whole_to(s, f.buffer);
	s->at_once = at_once(s);
	s->start = s->sent;
	h__write_once(&s->starts, true);
	if (smaller)
		s->shrunk = s->sent;
	err = s->generation > 1 ? watch_now(s) : watch(s, fd);
	/*
	 * That is nothing against the other end: records go without one as well. With the
	 * first one there may be other reasons than being held back.
	 */
	if (err == -EAGAIN || (err && s->generation > 1)) {
		h__write_once(&s->unwatched, true);
		err = 0;
	}
	return err;
}

/* Until there is one it has to be tried again and again, by who waits too. */
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

static int turn(struct h_stream_sender *s, bool smaller)
{
	struct h_seed next;

	h_receiver_lock(&s->r);
	next = s->next;
	h__write_once(smaller ? &s->shrinks : &s->grows, false);
	h_receiver_unlock(&s->r);
	if (!adopt(s, &next, -1, smaller))
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
		if (h__load_acquire(smaller ? &s->shrinks : &s->grows) && turn(s, smaller))
			return true;
	}
	return !s->starts || s->generation == 1 || h__stream_post(s, NULL, 0, 0, 0, H_NOWAIT) >= 0;
}

/* ---- records ---- */

/*
 * The other end may free no buffer before we have taken what it sends. Not again from within: who
 * polls there pays debts, also this channel's.
 */
static __attribute__((noinline)) int
take_and_wait(struct h_stream_sender *s, uint32_t seen, int64_t deadline_ns)
{
	void (*take_in)(struct h_stream_sender *s) = s->take_in;
	uint32_t comes = h_receiver_events(s->comes);

	s->take_in = NULL;
	take_in(s);
	s->take_in = take_in;
	/* Both are tried again soon, where nobody says that the other end is gone. */
	if (s->unwatched)
		return h__receiver_wait(&s->r, seen, true, deadline_ns);
	return h__receiver_wait_either(&s->r, seen, s->comes, comes, deadline_ns);
}

/* A send waits: another thread, or the same one by polling, may look at the sender. */
static int wait_within(struct h_stream_sender *s, uint32_t seen, int64_t deadline_ns)
{
	bool before = s->within;
	int err;

	s->within = true;
	if (h__unlikely(s->take_in))
		err = take_and_wait(s, seen, deadline_ns);
	else
		err = h__receiver_wait(&s->r, seen, s->unwatched, deadline_ns);
	s->within = before;
	return err;
}

/* Wait for a buffer to send to. */
int h__stream_wait_for_ticket(struct h_stream_sender *s, int64_t deadline_ns)
{
	unsigned int rounds = 0;

	for (;;) {
		uint32_t seen = h_receiver_events(&s->r);
		int err = 0;

		h__stream_sender_watch(s);
		if (h__stream_failed(s))
			return -EPIPE;
		if (h__load_acquire(&s->grows))
			err = turn(s, false);
		move_start(s);
		if (err || h__stream_tickets(s))
			return err;
		if (!rounds)
			h__count(&s->waits, 1);
		/* Credits may come that release nothing. */
		err = h__go_on(&rounds, deadline_ns);
		if (err)
			return err;
		err = wait_within(s, seen, deadline_ns);
		if (err)
			return err;
	}
}

/*
 * Which credits were seen is said when there are two of them, or there is something else to say:
 * the receiver has buffers for two more meanwhile, and none is left for the sender to wait for.
 */
static inline bool are_several(uint32_t credits, uint32_t told)
{
	uint32_t news = credits ^ told;

	return news && news & ~(0xffu << (__builtin_ctz(news) & ~7));
}

static __attribute__((noinline)) size_t
write_note(struct h_stream_sender *s, unsigned char *bytes, uint32_t credits,
	   uint64_t more, uint64_t flags)
{
	if (s->starts && s->generation > 1)
		flags |= H_NOTE_START;
	if (!flags && !more && !are_several(credits, s->credits_told))
		return 0;
	s->credits_told = credits;
	h__put(bytes, flags, 4);
	h__put(bytes + 4, credits, 4);
	h__put(bytes + 8, s->sent, 8);
	h__put(bytes + 16, more, 8);
	if (h__likely(!(flags >> H_LABEL_SHIFT)))
		return H_NOTE_BYTES;
	h__put(bytes + 24, flags >> H_LABEL_SHIFT, 4);
	return H_LABELLED_NOTE_BYTES;
}

/* The work queue is full for a moment only: the NIC is at work on it. */
static __attribute__((noinline)) int64_t
send_again(struct h_stream_sender *s, const void *data, size_t length, const void *note,
	   size_t note_length, int64_t deadline_ns)
{
	struct h_manager *m = s->r.manager;
	struct h_wait wait = { 0 };
	int64_t ret;
	int err;

	do {
		s->within = true;
		err = h__wait_for_room(m, &wait, deadline_ns);
		s->within = false;
		if (err)
			return err;
		if (h__stream_failed(s))
			return -EPIPE;
		ret = h_send_msg(m->terminus, &s->to, data, length, note, note_length);
	} while (ret == -EAGAIN);
	return ret;
}

/* A record whose length is known already. What makes no sense fits: turn() finds that out. */
static bool fits_offer(struct h_stream_sender *s, size_t length)
{
	struct h_seed_fields f;
	struct h_seed next;

	h_receiver_lock(&s->r);
	next = s->next;
	h_receiver_unlock(&s->r);
	return h__seed_get(&next, H_SEED_STREAM, &f) || length <= f.buffer;
}

/*
 * A sender that goes on and on, and waits for nothing else, sees that the peer is gone, and
 * takes what it has offered.
 */
static __attribute__((noinline)) void look_around(struct h_stream_sender *s, size_t length)
{
	s->within = true;
	h_manager_poll(s->r.manager);
	s->within = false;
	if (h__unlikely(h__load_acquire(&s->shrinks)) && fits_offer(s, length))
		turn(s, true);
	move_start(s);
}

/* Nothing was sent: as if nobody had tried. There is room when the oldest has left. */
static __attribute__((noinline)) int64_t undo(struct h_stream_sender *s, uint32_t told, int64_t err)
{
	const struct h_terminus *t = s->r.manager->terminus;

	if (err == -EAGAIN)
		h__write_once(&s->held_by, (int64_t)(h__read_once(&t->producer) - t->mask - 1));
	h__store_release(&s->sent, s->sent - 1);
	s->credits_told = told;
	return err;
}

int64_t h__stream_post(struct h_stream_sender *s, const void *data,
		       size_t length, uint64_t more, uint64_t flags,
		       int64_t deadline_ns)
{
	unsigned char note[H_LABELLED_NOTE_BYTES];
	uint32_t told = s->credits_told, credits, index;
	size_t n = 0;
	int64_t ret;

	if (s->sent % POLL_EVERY == 0)
		look_around(s, length);
	if (h__unlikely(!h__stream_can_go(s))) {
		ret = h__stream_wait_for_ticket(s, deadline_ns);
		if (ret)
			return ret;
	}
	index = (s->sent - s->start) & (s->entries - 1);
	s->to.base = s->ticket.base + (uint64_t)index * s->buffer;
	s->to.meta_index = index;
	credits = h__load_acquire(&s->credits_seen);
	if (h__unlikely(flags || more || s->starts || are_several(credits, told)))
		n = write_note(s, note, credits, more, flags);
	/* Before it is sent: the credit for it may come at any time then. */
	h__store_release(&s->sent, s->sent + 1);
	ret = h_send_msg(s->r.manager->terminus, &s->to, data, length, note, n);
	if (h__unlikely(ret == -EAGAIN) && deadline_ns != H_NOWAIT)
		ret = send_again(s, data, length, note, n, deadline_ns);
	if (h__unlikely(ret < 0))
		return undo(s, told, ret);
	h__write_once(&s->starts, false);
	return ret;
}

/* ---- sending ---- */

static bool in_place(const struct h_stream_sender *s, const void *data,
		     size_t length, int64_t deadline_ns)
{
	return length > COPY_AT_MOST && !h__may_stay(s->r.manager, deadline_ns) &&
	       h__terminus_find_tag(s->r.manager->terminus, data, length) >= 0;
}

/* Returns bytes taken, or an errno if none. */
static ssize_t send_copied(struct h_stream_sender *s, const char *data,
			   size_t length, int64_t deadline_ns)
{
	size_t n;
	int err;

	if (s->staged == s->stage_size) {
		err = h__stage_flush(s, length, 0, deadline_ns);
		if (err)
			return err;
	}
	if (!s->staged) {
		err = h__stage_begin(s, s->most, deadline_ns);
		if (err)
			return err;
	}
	n = h__stage_put(s, data, length);
	/* A full one that does not go now goes before what comes next. */
	if (s->staged == s->stage_size && n == length)
		h__stage_flush(s, 0, 0, H_NOWAIT);
	return (ssize_t)n;
}

static ssize_t send_in_place(struct h_stream_sender *s, const char *data,
			     size_t length, int64_t deadline_ns,
			     int64_t *handle)
{
	int64_t ret;
	size_t n;

	ret = h__stage_flush(s, length, 0, deadline_ns);
	if (ret)
		return ret;
	/* The buffers may be larger than a moment ago. */
	ret = h__stream_wait_for_ticket(s, deadline_ns);
	if (ret)
		return ret;
	n = length < s->most ? length : s->most;
	ret = h__stream_post(s, data, n, length - n, 0, deadline_ns);
	if (ret < 0)
		return ret;
	*handle = ret;
	return (ssize_t)n;
}

/* ---- who was refused is called back ---- */

/* What has to leave first tells nobody when it does. */
static int look_for_room(struct h_debt *d)
{
	struct h_stream_sender *s = (void *)((char *)d - offsetof(struct h_stream_sender, room));
	int64_t handle = h__read_once(&s->held_by);

	if (handle >= 0 && !h_send_done(s->r.manager->terminus, handle))
		return -EBUSY;
	h__write_once(&s->held_by, -1);
	h__receiver_look(&s->r);
	return 0;
}

static void look_again(struct h_stream_sender *s)
{
	struct h_manager *m = s->r.manager;

	h__receiver_look(&s->r);
	if (h__read_once(&s->held_by) < 0)
		return;
	h__lock(&m->lock);
	h__chore_add(m, &s->room);
	h__unlock(&m->lock);
	h__manager_owes(m);
}

/*
 * A send did not take everything. That stays so until the call back, whatever is sent
 * meanwhile: it may be another thread's. What is waited for may have come already.
 */
static void refuse(struct h_stream_sender *s)
{
	h_receiver_lock(&s->r);
	s->refused = true;
	h_receiver_unlock(&s->r);
	look_again(s);
}

/* What is wanted may have come before it was said to be. */
void h__stream_want(struct h_stream_sender *s, bool wanted)
{
	if (!s->wanted && !wanted)
		return;
	h_receiver_lock(&s->r);
	s->wanted = wanted;
	h_receiver_unlock(&s->r);
	if (wanted)
		look_again(s);
}

static ssize_t send_all(struct h_stream_sender *s, const char *data,
			size_t length, int64_t deadline_ns)
{
	int64_t handle = -1;
	size_t done = 0;
	ssize_t n = 0;

	if (h__stream_failed(s))
		return -EPIPE;
	while (done < length) {
		size_t left = length - done;

		n = in_place(s, data + done, left, deadline_ns) ?
		    send_in_place(s, data + done, left, deadline_ns, &handle) :
		    send_copied(s, data + done, left, deadline_ns);
		if (n < 0)
			break;
		done += (size_t)n;
	}
	/*
	 * A message that its NIC refused went nowhere, and neither will others. With a deadline
	 * there is none where it would not leave by itself.
	 */
	if (handle >= 0 &&
	    h_send_wait(s->r.manager->terminus, handle, H_FOREVER) < 0)
		return -EPIPE;
	if (h__likely(done == length))
		return (ssize_t)done;
	if (done || n != -EPIPE)
		refuse(s);
	return done ? (ssize_t)done : n;
}

/*
 * Who is refused it says so, and looks again. Who gives it up looks afterwards whether
 * anybody has said so: one of the two sees the other.
 */
int h__sending_refused(struct h_stream_sender *s)
{
	h__write_once(&s->contended, true);
	h__full_barrier();					/* B15 */
	return h__mutex_lock(s->r.manager, &s->sending, H_NOWAIT);
}

/* A thread that has it meanwhile will look in turn. */
bool h__sending_contended(struct h_stream_sender *s)
{
	if (h__mutex_lock(s->r.manager, &s->sending, H_NOWAIT))
		return false;
	h__write_once(&s->contended, false);
	return true;
}

void h__stream_sent(struct h_stream_sender *s)
{
	while (h__sending_unlock(s))
		refuse(s);
}

/* ---- what is collected, when the manager is to be drained ---- */

static int pay_staged(struct h_debt *d)
{
	struct h_stream_sender *s = (void *)((char *)d - offsetof(struct h_stream_sender, debt));
	int err;

	if (h__mutex_lock(s->r.manager, &s->sending, H_NOWAIT))
		return -EBUSY;
	err = h__stream_failed(s) ? 0 : h__stage_flush(s, 0, 0, H_NOWAIT);
	/* Without room at the other end it waits for a credit. */
	if (err)
		err = h__stream_wait_for_ticket(s, H_NOWAIT) == -EAGAIN ? -EAGAIN : -EBUSY;
	if (h__stream_failed(s))
		err = 0;
	h__stream_sent(s);
	return err;
}

static struct h_debt *collected(struct h_receiver *r)
{
	struct h_stream_sender *s = of(r);

	return r->class_ == &credit_class && h__read_once(&s->staged) ? &s->debt : NULL;
}

ssize_t h_stream_send(struct h_stream_sender *s, const void *data,
		      size_t length, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	ssize_t ret;

	ret = h__sending_lock(s, deadline);
	if (ret)
		return ret;
	ret = s->closed ? -EPIPE : send_all(s, data, length, deadline);
	h__stream_sent(s);
	return ret;
}

int h_stream_flush(struct h_stream_sender *s, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	int ret;

	ret = h__sending_lock(s, deadline);
	if (ret)
		return ret;
	ret = h__stream_failed(s) ? -EPIPE : h__stage_flush(s, 0, 0, deadline);
	if (ret && ret != -EPIPE)
		refuse(s);
	h__stream_sent(s);
	return ret;
}

/*
 * Who is refused from here on is called back again. An error is told once: who has
 * nothing to send does nothing about it.
 */
static void call_ready(struct h_receiver *r, void *arg)
{
	struct h_stream_sender *s = of(r);
	void (*ready)(struct h_stream_sender *sender, void *arg);

	h_receiver_lock(r);
	ready = s->ready;
	arg = s->ready_arg;
	if (ready) {
		s->refused = false;
		s->told = h__stream_failed(s);
	}
	h_receiver_unlock(r);
	if (ready)
		ready(s, arg);
}

void h_stream_sender_on_ready(struct h_stream_sender *s,
			      void (*ready)(struct h_stream_sender *sender,
					    void *arg),
			      void *arg)
{
	h_receiver_on_ready(&s->r, NULL, NULL);
	h_receiver_lock(&s->r);
	s->ready = ready;
	s->ready_arg = arg;
	h_receiver_unlock(&s->r);
	if (ready)
		h_receiver_on_ready(&s->r, call_ready, NULL);
}

/* ---- from seed to end ---- */

static int credits_init(struct h_stream_sender *s, uint32_t slot_flags)
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

/* The first record tells the receiver where credits go. */
static int hello(struct h_stream_sender *s)
{
	struct h_seed seed;
	int64_t ret;

	h__stream_sender_credits(s, &seed);
	ret = h__stream_post(s, &seed, sizeof(seed), 0, H_NOTE_HELLO, h_deadline(HELLO_NS));
	return ret < 0 ? (int)ret : 0;
}

int h__stream_sender_destroy(struct h_stream_sender *s)
{
	int err;

	h__debt_remove(s->r.manager, &s->debt);
	h__debt_remove(s->r.manager, &s->shed);
	h__debt_remove(s->r.manager, &s->room);
	/* If it stays, so does the slot that it tells. */
	err = end_watch(s);

	h__stage_end(s);
	h__ticket_drop(s->r.manager, &s->ticket);
	if (!err && s->credits.slot)
		err = h__place_exit(&s->credits, &s->r);
	if (err && s->credits.slot)
		h__place_abandon(&s->credits, &s->r);
	h__receiver_remove(&s->r);
	free(s);
	return err;
}

/* Of one that could not be made. */
static void sender_undo(struct h_stream_sender *s)
{
	struct h_dev *dev = s->r.manager->dev;
	struct h_why why;

	h__why_keep(dev, &why);
	h__stream_sender_destroy(s);
	h__why_restore(dev, &why);
}

int h__stream_sender_prepare(struct h_manager *m, uint32_t slot_flags,
			     struct h_stream_sender **sender)
{
	struct h_stream_sender *s = calloc(1, sizeof(*s));
	int err;

	*sender = NULL;
	if (!s)
		return -ENOMEM;
	s->debt.pay = pay_staged;
	s->shed = (struct h_debt) { .pay = h__shed_sender, .chore = true };
	s->room = (struct h_debt) { .pay = look_for_room, .chore = true };
	s->held_by = -1;
	s->stage_handle[0] = -1;
	s->stage_handle[1] = -1;
	s->fin_handle = -1;
	s->fixed = slot_flags & HAMLYN_SLOT_TICKET_ONLY;
	h__debts_collected_by(m, collected);
	h__budget_unneeded_by(m, h__stream_unneeded);
	h__receiver_add(&s->r, m, &credit_class);
	err = credits_init(s, slot_flags);
	if (!err)
		err = h__stage_reserve(s);
	if (err)
		sender_undo(s);
	else
		*sender = s;
	return err;
}

int h__stream_sender_attach(struct h_stream_sender *s,
			    const struct h_seed *seed, int fd)
{
	return adopt(s, seed, fd, false);
}

int h_stream_sender_create(struct h_manager *m, const struct h_seed *seed,
			   struct h_stream_sender **sender)
{
	int err;

	err = h__stream_sender_prepare(m, 0, sender);
	if (err)
		return err;
	(*sender)->claims = true;
	err = adopt(*sender, seed, -1, false);
	if (!err)
		err = hello(*sender);
	if (err) {
		sender_undo(*sender);
		*sender = NULL;
	}
	return err;
}

/* Everything, and that it was everything. */
static int send_fin(struct h_stream_sender *s, int64_t deadline_ns)
{
	int64_t handle;
	int err;

	err = h__stage_flush(s, 0, 0, deadline_ns);
	if (err)
		return err;
	handle = h__stream_post(s, NULL, 0, 0, H_NOTE_FIN, deadline_ns);
	if (handle < 0)
		return (int)handle;
	s->closed = true;
	s->fin_handle = handle;
	return 0;
}

/* Or the receiver might be told first that the sender is gone. */
static int fin_left(struct h_stream_sender *s, int64_t deadline_ns)
{
	int ret;

	if (s->fin_handle < 0)
		return 0;
	ret = h__wait_left(s->r.manager, s->fin_handle, deadline_ns);
	if (h__is_late(ret))
		return ret;
	s->fin_handle = -1;
	if (ret >= 0)
		return 0;
	/* It has not left, and is not sent again: nobody will say that everything has arrived. */
	h__write_once(&s->broken, true);
	return -EPIPE;
}

int h__stream_finish(struct h_stream_sender *s, int64_t deadline_ns)
{
	unsigned int rounds = 0;
	int err;

	err = s->closed ? 0 : send_fin(s, deadline_ns);
	if (!err)
		err = fin_left(s, deadline_ns);
	if (err)
		return err;
	for (;;) {
		uint32_t seen = h_receiver_events(&s->r);

		h__stream_sender_watch(s);
		if (h__read_once(&s->finished))
			return 0;
		if (h__stream_failed(s))
			return -EPIPE;
		/* Credits may come without end that say nothing. */
		err = h__go_on(&rounds, deadline_ns);
		if (!err)
			err = h__receiver_wait(&s->r, seen, s->unwatched, deadline_ns);
		if (err)
			return err;
	}
}

int h_stream_sender_shutdown(struct h_stream_sender *s, int64_t timeout_ns)
{
	int64_t deadline = h_deadline(timeout_ns);
	int err;

	err = h__sending_lock(s, deadline);
	if (err)
		return err;
	err = h__stream_finish(s, deadline);
	h__stream_sent(s);
	return err;
}

static void end_left(struct h_manager *m, struct h_leaving *l)
{
	struct h_stream_sender *s = (void *)((char *)l - offsetof(struct h_stream_sender, closing));

	h__closed(m, -1);
	h__stream_sender_destroy(s);
}

static void leave(struct h_stream_sender *s)
{
	struct h_manager *m = s->r.manager;

	h_stream_sender_on_ready(s, NULL, NULL);
	h__debt_remove(m, &s->shed);
	s->closing.end = end_left;
	h__closed(m, 1);
	h__leave(m, &s->closing);
}

int h_stream_sender_close(struct h_stream_sender *s, int64_t timeout_ns)
{
	int ret, err;

	if (!s)
		return 0;
	h__debt_remove(s->r.manager, &s->debt);
	ret = h__stream_finish(s, h_deadline(timeout_ns));
	if (h__leaves_later(s->r.manager, &s->closing)) {
		leave(s);
		return ret;
	}
	err = h__stream_sender_destroy(s);
	return ret ? ret : err;
}
