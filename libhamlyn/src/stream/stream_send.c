// SPDX-License-Identifier: MIT
/* The sending end of a stream. */
#include "stream/stream.h"

/* Above, data of bound areas is sent from where it is. */
#define COPY_AT_MOST	1024
#define POLL_EVERY	8	/* records, so that it is seen that the peer is gone */

static struct h_stream_sender *of(struct h_receiver *r)
{
	return (struct h_stream_sender *)r;
}

/* ---- records ---- */

/*
 * Numbers wrap around, so the start must not stay far behind: it follows by whole
 * laps, which leaves each record's buffer as it was.
 */
static void move_start(struct h_stream_sender *s)
{
	uint32_t ahead = h__load_acquire(&s->released) - s->start;

	if ((int32_t)ahead > 0)
		h__write_once(&s->start, s->start + (ahead & ~(s->entries - 1)));
}

/*
 * The other end may free no buffer before we have taken what it sends. Not again from within:
 * polling there pays debts, also this channel's.
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
			err = h__stream_take_next(s, false);
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

/*
 * A record whose length is known already. What makes no sense fits: h__stream_take_next() finds
 * that out.
 */
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
		h__stream_take_next(s, true);
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

/* ---- a refused sender is called back ---- */

/* What has to leave first tells nobody when it does. */
int h__stream_look_for_room(struct h_debt *d)
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
 * A thread that is refused the lock says so, and looks again. The one that releases it looks
 * afterwards whether any thread has said so: one of the two sees the other.
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

int h__stream_pay_staged(struct h_debt *d)
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

struct h_debt *h__stream_collected(struct h_receiver *r)
{
	struct h_stream_sender *s = of(r);

	return r->class_ == &h__stream_sender_class && h__read_once(&s->staged) ? &s->debt : NULL;
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
 * Whoever is refused from here on is called back again. An error is told once: a caller that
 * has nothing to send would do nothing about it.
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
