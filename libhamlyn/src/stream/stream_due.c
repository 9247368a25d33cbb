// SPDX-License-Identifier: MIT
/* What a receiver owes its sender: credits, and buffers of another size. */
#include "stream/stream.h"

#define GROW_BY			4
#define ROOM_NS			5000000LL	/* for the work queue to empty */
#define OLD_GRACE_NS		100000000LL	/* a sender that came in since may be stopped */
#define RETIRE_AGAIN_NS		10000000LL	/* while somebody is inside the NIC */

static struct h_stream_receiver *of(struct h_receiver *r)
{
	return (struct h_stream_receiver *)r;
}

/* ---- credits ---- */

_Static_assert(H_CREDITS == 4, "counts are bytes of 32 bits");

/* A buffer of which the sender has seen all, or H_CREDITS. */
static uint32_t free_credit(const struct h_stream_receiver *r)
{
	uint32_t busy = r->credit_sent ^ r->credit_seen, i;

	for (i = 0; i < H_CREDITS; i++, busy >>= 8)
		if (!(busy & 0xff))
			break;
	return i;
}

/* One for the last one is kept apart: it must get through. */
static bool credit_can_go(const struct h_stream_receiver *r)
{
	return r->connected && !r->gone && free_credit(r) < H_CREDITS;
}

static int64_t send_credit(struct h_stream_receiver *r, uint32_t index,
			   const unsigned char *bytes, size_t length)
{
	struct h_ticket t = r->credit;
	bool before;
	int64_t ret;

	t.base += (uint64_t)index * H_CREDIT_BYTES;
	t.meta_index = index;
	/* Locked, and perhaps called by the thread that takes arrivals for all. */
	before = h__send_now_or_not(true);
	ret = h_send_msg(r->r.manager->terminus, &t, bytes, length, NULL, 0);
	h__send_now_or_not(before);
	if (ret >= 0)
		h__write_once(&r->credit_handle, ret);
	return ret;
}

/* What finds no room to go is for whoever polls next, be it in a call of another end point. */
static void note_debt(struct h_stream_receiver *r)
{
	h_receiver_owes(&r->r, r->late || r->fin_due || r->old_due);
}

void h__stream_credit_fin(struct h_stream_receiver *r)
{
	unsigned char bytes[H_CREDIT_SHORT];

	r->fin_due = false;
	if (r->connected && !r->gone) {
		h__put(bytes, r->high, 4);	/* nothing is sent any more */
		h__put(bytes + 4, H_CREDIT_FIN, 4);
		r->fin_due = send_credit(r, H_CREDITS, bytes, sizeof(bytes)) == -EAGAIN;
	}
	note_debt(r);
}

static bool credit_due(const struct h_stream_receiver *r)
{
	const struct h_generation *g = &r->gen[r->arriving];

	if (h__likely(!r->seed_due)) {
		if ((int32_t)(r->released - r->credited) <= 0 || !h__sender_is_to_know(r, g))
			return false;
		/* The sender has been told where to go on, and does so with the next record. */
		if (r->gens == 2 && !r->gen[1].started && !h__stream_shrinks(r))
			return false;
	}
	return !r->fin && credit_can_go(r);
}

static size_t write_credit(struct h_stream_receiver *r, unsigned char *bytes,
			   uint32_t *index)
{
	struct h_seed seed;

	*index = free_credit(r);
	r->credit_sent = h__credit_count(r->credit_sent, *index);
	r->credited = r->released;
	h__put(bytes, r->released, 4);
	h__put(bytes + 4, 0, 4);
	if (h__likely(!r->seed_due))
		return H_CREDIT_SHORT;
	r->seed_due = false;
	h__put(bytes + 4, h__stream_shrinks(r) ? H_CREDIT_SMALLER : H_CREDIT_SEED, 4);
	h__generation_seed(&r->gen[1], &seed);
	memcpy(bytes + H_CREDIT_SHORT, seed.bytes, H_SEED_BYTES);
	return H_CREDIT_LONG;
}

/* One that does not go is as if it had not been thought of. */
static bool due_credit_goes(struct h_stream_receiver *r)
{
	unsigned char bytes[H_CREDIT_BYTES];
	uint32_t credited = r->credited, sent = r->credit_sent;
	bool seed = r->seed_due;
	uint32_t index;
	size_t length;

	length = write_credit(r, bytes, &index);
	if (send_credit(r, index, bytes, length) != -EAGAIN)
		return true;
	r->credit_sent = sent;
	r->credited = credited;
	r->seed_due = seed;
	return false;
}

static bool credit_goes(struct h_stream_receiver *r)
{
	return !credit_due(r) || due_credit_goes(r);
}

/* Locked. True if nothing is left to be said. */
static bool try_credit(struct h_stream_receiver *r)
{
	/* Whoever receives this end may never call again. */
	if (r->fin_due)
		h__stream_credit_fin(r);
	r->late = !credit_goes(r);
	note_debt(r);
	return !r->late && !r->fin_due;
}

void h__stream_settle(struct h_receiver *r)
{
	if (of(r)->old_due) {
		of(r)->old_due = false;
		h__chore_add(r->manager, &of(r)->shed);
	}
	try_credit(of(r));
}

/* After the end the application may never poll again. */
static int64_t last_words_ns(const struct h_stream_receiver *r, int64_t deadline_ns)
{
	int64_t left = deadline_ns < 0 ? H_SETTLE_NS : deadline_ns - h__now_ns();

	if (left < ROOM_NS || h__read_once(&r->r.manager->far))
		return ROOM_NS;
	return left < H_SETTLE_NS ? left : H_SETTLE_NS;
}

/* True if none is late any more. */
static bool credit_settles(struct h_stream_receiver *r, int64_t deadline_ns)
{
	struct h_wait wait = { 0 };
	bool done, last;
	int64_t end = 0;

	for (;;) {
		h_receiver_lock(&r->r);
		done = try_credit(r);
		last = r->fin_due;
		h_receiver_unlock(&r->r);
		if (done)
			return true;
		if (!end)
			end = h__change_end(h__now_ns(), last ? last_words_ns(r, deadline_ns) :
						    ROOM_NS);
		if (h__wait_more(&wait, end))
			return false;
	}
}

bool h__stream_unwatched(struct h_stream_receiver *r)
{
	bool unwatched;

	h_receiver_lock(&r->r);
	unwatched = r->unwatched;
	h_receiver_unlock(&r->r);
	return unwatched;
}

/*
 * The work queue is full for a moment only, as long as the NIC's engine is not kept from
 * running. Otherwise whoever polls tries again, also a thread that went to sleep, or back to an
 * event loop, when there was nothing to try.
 */
void h__stream_give_credit(struct h_stream_receiver *r, int64_t deadline_ns)
{
	bool owed;

	h_receiver_lock(&r->r);
	owed = r->late && !r->fin_due;
	if (owed)
		try_credit(r);
	h_receiver_unlock(&r->r);
	if (!owed && !credit_settles(r, deadline_ns))
		h__manager_owes(r->r.manager);
}

/* ---- what is due ---- */

static void tell_slot(struct h_stream_receiver *r, struct h_slot *slot)
{
	h_receiver_lock(&r->r);
	r->r.slot = slot;
	h_receiver_unlock(&r->r);
}

int h__stream_end_watch(struct h_watch **watch)
{
	int err = *watch ? h_unwatch(*watch) : 0;

	if (!err)
		*watch = NULL;
	return err;
}

/*
 * The watch tells a slot, so it is renewed before the slot is replaced. The old slot stays until
 * the old watch has ended; otherwise the next owner of the slot's number would be told.
 */
static int renew_watch(struct h_stream_receiver *r, struct h_slot *slot)
{
	struct h_slot *was = r->r.slot;
	struct h_watch *watch;
	int err;

	err = h__stream_end_watch(&r->former);
	if (err || (r->watch && slot == was))
		return err;
	tell_slot(r, slot);
	err = h_receiver_watch(&r->r, &r->credit, -1, 0, &watch);
	if (err) {
		tell_slot(r, was);
		return err;
	}
	r->former = r->watch;
	r->watch = watch;
	return h__stream_end_watch(&r->former);
}

/*
 * Without one nobody would tell that the sender is gone. It may be refused for a
 * moment: then it is tried again as a credit is that is late.
 */
static void begin_watch(struct h_stream_receiver *r)
{
	bool again = h__stream_unwatched(r);
	int err = -EAGAIN;

	if (!h__dev_changing(r->r.manager->dev))
		err = renew_watch(r, r->r.slot);
	h_receiver_lock(&r->r);
	r->unwatched = err;
	h_receiver_unlock(&r->r);
	if (err && !again)
		h__receiver_wake(&r->r);
}

/* Others may have given some back when as much has come again. */
static void grow_later(struct h_stream_receiver *r)
{
	h_receiver_lock(&r->r);
	h__stream_pay_anew(r);
	h_receiver_unlock(&r->r);
}

static void offer_larger(struct h_stream_receiver *r)
{
	uint32_t size = r->gen[0].buffer * GROW_BY;
	struct h_manager *m = r->r.manager;
	struct h_generation g;
	size_t bytes;

	/* The next record that fills its buffer asks again. */
	if (h__dev_changing(m->dev))
		return;
	if (size > r->max_buffer)
		size = r->max_buffer;
	bytes = (size_t)r->gen[0].entries * size;
	/* What there is will do, if there is no more memory. */
	if (!h__budget_take(m, bytes)) {
		grow_later(r);
		return;
	}
	if (h__generation_init(&g, &r->r, r->gen[0].entries, size, H_GROWN)) {
		h__budget_give(m, bytes);
		grow_later(r);
		return;
	}
	g.grown = bytes;
	h_receiver_lock(&r->r);
	r->gen[1] = g;
	r->gens = 2;
	r->seed_due = true;
	h_receiver_unlock(&r->r);
}

/* There will be a next time. What there was is charged until it is gone. */
static void offer_smaller(struct h_stream_receiver *r)
{
	struct h_manager *m = r->r.manager;
	struct h_generation g;

	if (h__dev_changing(m->dev) ||
	    h__generation_init(&g, &r->r, r->gen[0].entries, r->least, H_WISHED))
		return;
	h_receiver_lock(&r->r);
	r->gen[1] = g;
	r->gens = 2;
	r->seed_due = true;
	r->offered = true;
	r->quiet = 0;
	r->patience = 2 * r->patience + 1;
	if (r->patience > H_MOST_QUIET)
		r->patience = H_MOST_QUIET;
	h_receiver_unlock(&r->r);
	__atomic_fetch_add(&m->budget.offered, 1, __ATOMIC_RELAXED);
}

/* busy, or being destroyed. */
void h__stream_offer_over(struct h_stream_receiver *r)
{
	if (r->offered)
		__atomic_fetch_sub(&r->r.manager->budget.offered, 1, __ATOMIC_RELAXED);
	r->offered = false;
}

static bool outgrown(const struct h_stream_receiver *r)
{
	return r->gens == 2 && r->gen[1].started &&
	       (int32_t)(r->released - r->gen[1].start) >= 0;
}

/* Numbers wrap around: by whole laps, each record's buffer is as it was. */
static void retire_later(struct h_stream_receiver *r)
{
	struct h_generation *g = &r->gen[1];

	h_receiver_lock(&r->r);
	g->start += (r->released - g->start) & ~(g->entries - 1);
	h_receiver_unlock(&r->r);
}

/*
 * A process of the segment may have been stopped inside the NIC, or while it changed the
 * tables, for hours: destroying a slot would wait for it. Whether that is over is looked
 * at now and then, by who is busy.
 */
static bool may_retire(struct h_stream_receiver *r)
{
	struct h_dev *dev = r->r.manager->dev;
	int64_t now;

	if (!h__grace_needed(dev))
		return true;
	now = h__now_ns();
	if (now < r->retire_ns)
		return false;
	if (now - r->retire_ns > OLD_GRACE_NS)
		h__grace_end(&r->grace);
	if (!h__dev_changing(dev) &&
	    h__grace_over(dev, &r->grace, r->gen[0].place.number))
		return true;
	r->retire_ns = now + RETIRE_AGAIN_NS;
	return false;
}

static void retire(struct h_stream_receiver *r)
{
	struct h_generation old;

	/* A slot that is to be told stays until another one is. */
	if (!may_retire(r) ||
	    (r->connected && renew_watch(r, r->gen[1].place.slot))) {
		retire_later(r);
		return;
	}
	h_receiver_lock(&r->r);
	old = r->gen[0];
	r->gen[0] = r->gen[1];
	r->gen[1] = (struct h_generation) {};
	r->gens = 1;
	r->arriving = 0;
	h_receiver_unlock(&r->r);
	h__stream_offer_over(r);
	if (h__generation_exit(&old, &r->r))
		h__generation_abandon(&old, &r->r);
}

/* Not in process_arrival(), which must not wait for the device. */
void h__stream_do_in_time(struct h_stream_receiver *r, int64_t deadline_ns)
{
	bool watch, grow, old;

	h_receiver_lock(&r->r);
	if (r->busy || !r->connected) {
		h_receiver_unlock(&r->r);
		return;
	}
	watch = r->watch_due || r->unwatched;
	grow = r->grow_due && r->gens == 1;
	old = outgrown(r);
	r->watch_due = false;
	r->grow_due = false;
	r->busy = true;
	h_receiver_unlock(&r->r);
	if (watch)
		begin_watch(r);
	if (old)
		retire(r);
	if (grow)
		offer_larger(r);
	h_receiver_lock(&r->r);
	r->busy = false;
	h_receiver_unlock(&r->r);
	h__stream_give_credit(r, deadline_ns);
}

void h__stream_do_what_is_due(struct h_stream_receiver *r)
{
	h__stream_do_in_time(r, H_NOWAIT);
}

void h__stream_answer_end(struct h_stream_receiver *r, int64_t deadline_ns)
{
	if (h__read_once(&r->fin_due))
		h__stream_give_credit(r, deadline_ns);
}

void h__stream_shed(struct h_stream_receiver *r)
{
	bool old, smaller;

	h_receiver_lock(&r->r);
	if (r->busy || !r->connected || r->over) {
		h_receiver_unlock(&r->r);
		return;
	}
	old = outgrown(r);
	smaller = r->gens == 1 && r->gen[0].buffer > r->least && r->quiet;
	r->busy = true;
	h_receiver_unlock(&r->r);
	if (old)
		retire(r);
	else if (smaller)
		offer_smaller(r);
	h_receiver_lock(&r->r);
	r->busy = false;
	try_credit(r);
	h_receiver_unlock(&r->r);
}

void h__stream_receiver_watch(struct h_stream_receiver *r)
{
	if (h__stream_unwatched(r))
		h__stream_do_what_is_due(r);
}

/* Locked. */
static bool is_due(const struct h_stream_receiver *r)
{
	return r->dues || (r->gens == 2 && outgrown(r));
}

/* What is to be done when the receiver is unlocked. */
enum { NOTHING = 0, CREDIT = 1, DUE = 2 };

/* A credit that goes at once is no more to be done: nobody waits for it, nor locks again. */
static bool credit_waits(struct h_stream_receiver *r)
{
	return credit_due(r) && (r->late || r->fin_due || !due_credit_goes(r));
}

unsigned int h__stream_look_closely(struct h_stream_receiver *r)
{
	unsigned int due = credit_waits(r) ? CREDIT : NOTHING;

	return due | (is_due(r) ? DUE : NOTHING);
}

void h__stream_see_to(struct h_stream_receiver *r, unsigned int due)
{
	if (due & CREDIT)
		h__stream_give_credit(r, H_NOWAIT);
	if (due & DUE)
		h__stream_do_what_is_due(r);
}
