// SPDX-License-Identifier: MIT
/* Receivers that have something, and who is called back for them. */
#include <sched.h>

#include "manager.h"

/* A receiver's queued. */
#define QUEUED		1	/* on the list */
#define CALLED		2	/* called back, by one thread at a time */
#define HANDED		3	/* and that is in the application's function (channels) */

struct h_call {
	struct h_call *next;
	struct h_receiver *receiver;	/* NULL: it is no more */
};

/* On the list of those that h_manager_dispatch() calls back. m->lock held. */
void h__ready_add(struct h_manager *m, struct h_receiver *r)
{
	if (h__read_once(&r->queued))
		return;
	r->queued = QUEUED;
	r->next_ready = NULL;
	h__write_once(m->ready_tail, r);
	m->ready_tail = &r->next_ready;
	/* Who is about to call back does so itself, and spares a system call or two. */
	if (m->event && !m->dispatching)
		h__event_update(m);
}

void h_receiver_on_ready(struct h_receiver *r,
			 void (*ready)(struct h_receiver *r, void *arg),
			 void *arg)
{
	struct h_manager *m = r->manager;

	pthread_mutex_lock(&m->lock);
	h_receiver_lock(r);
	r->arg = arg;
	h__write_once(&r->on_ready, ready);
	h_receiver_unlock(r);
	pthread_mutex_unlock(&m->lock);
	/* Something may have come before. */
	if (ready)
		h__receiver_look(r);
}

/* Another thread may be handing it over just now. m->lock held. */
static bool is_called(const struct h_receiver *r)
{
	return h__read_once(&r->queued) >= CALLED;
}

/* m->lock held, as in all that follows. */
static struct h_receiver *first_ready(struct h_manager *m)
{
	struct h_receiver *r = m->ready;

	if (!r)
		return NULL;
	h__write_once(&m->ready, r->next_ready);
	if (!m->ready)
		m->ready_tail = &m->ready;
	r->queued = 0;
	return r;
}

static bool is_ready(struct h_receiver *r)
{
	bool pending;

	/* Its turn comes when its twin's call back has returned. */
	if (!r->on_ready || (r->twin && is_called(r->twin)))
		return false;
	h_receiver_lock(r);
	pending = r->class_->pending(r);
	h_receiver_unlock(r);
	return pending;
}

void h__receiver_look(struct h_receiver *r)
{
	struct h_manager *m = r->manager;
	bool nudge = false;

	pthread_mutex_lock(&m->lock);
	if (is_ready(r)) {
		h__ready_add(m, r);
		nudge = h__wake_sleepers(m);
	}
	pthread_mutex_unlock(&m->lock);
	if (nudge)
		h__manager_nudge(m);
}

void h__receiver_wake(struct h_receiver *r)
{
	struct h_manager *m = r->manager;
	bool nudge;

	pthread_mutex_lock(&m->lock);
	h_receiver_lock(r);
	h__store_release(&r->events, r->events + 1);
	h_receiver_unlock(r);
	if (is_ready(r))
		h__ready_add(m, r);
	nudge = h__wake_sleepers(m);
	pthread_mutex_unlock(&m->lock);
	if (nudge)
		h__manager_nudge(m);
}

/* ---- what could not be sent ---- */

void h_receiver_owes(struct h_receiver *r, bool owes)
{
	if (h__likely(r->owes == owes))
		return;
	h__write_once(&r->owes, owes);
	__atomic_fetch_add(&r->manager->owing, owes ? 1 : -1U, __ATOMIC_RELAXED);
}

static void settle_one(struct h_receiver *r)
{
	h_receiver_lock(r);
	if (r->owes)
		r->class_->settle(r);
	h_receiver_unlock(r);
}

/* Where there is a descriptor who polls has to tell by it whether anything is left. */
void h__manager_settle(struct h_manager *m)
{
	int64_t now = h__now_ns();
	struct h_receiver *r;

	if (now - h__read_once(&m->settled_ns) < H_AGAIN_NS && !h__read_once(&m->event))
		return;
	h__write_once(&m->settled_ns, now);
	pthread_mutex_lock(&m->lock);
	for (r = m->receivers; r; r = r->next)
		if (h__read_once(&r->owes))
			settle_one(r);
	if (m->event)
		h__event_update(m);
	pthread_mutex_unlock(&m->lock);
}

void h__manager_owes(struct h_manager *m)
{
	bool nudge;

	pthread_mutex_lock(&m->lock);
	if (m->event)
		h__event_update(m);
	nudge = m->sleepers;
	pthread_mutex_unlock(&m->lock);
	if (nudge)
		h__manager_nudge(m);
}

void h__receiver_pair(struct h_receiver *a, struct h_receiver *b)
{
	struct h_manager *m = a->manager;

	pthread_mutex_lock(&m->lock);
	a->twin = b;
	b->twin = a;
	pthread_mutex_unlock(&m->lock);
}

/*
 * By who calls it back, in the library still: its last words about @r, which may be
 * destroyed by others as soon as they have seen this.
 */
void h__receiver_hand_over(struct h_receiver *r)
{
	h__store_release(&r->queued, HANDED);			/* B17 */
}

/* True if nobody is in the library for it, nor will be. m->lock held. */
static bool silence(struct h_receiver *r)
{
	h_receiver_lock(r);
	h__write_once(&r->on_ready, NULL);
	h_receiver_unlock(r);
	return h__load_acquire(&r->queued) != CALLED;		/* B17 */
}

/*
 * It waits for the library only, which waits for nothing but its NIC, and for no function
 * of the application: that may need a lock which the caller has, or be the caller. Who
 * is in the library may set on_ready once more: it is silenced again each time.
 */
void h__receivers_silence(struct h_receiver *a, struct h_receiver *b)
{
	struct h_manager *m = a->manager;
	bool silent;

	for (;;) {
		pthread_mutex_lock(&m->lock);
		silent = silence(a);
		silent = silence(b) && silent;
		pthread_mutex_unlock(&m->lock);
		if (silent)
			return;
		sched_yield();
	}
}

static void call_forget(struct h_manager *m, struct h_call *call)
{
	struct h_call **at;

	for (at = &m->calls; *at != call; at = &(*at)->next)
		;
	*at = call->next;
}

/*
 * Afterwards it may be gone; other threads leave it and its twin alone meanwhile. What
 * else is ready may be called by others, or by a loop inside the call back, and so may
 * what becomes ready: the descriptor says so.
 */
static void call_back(struct h_manager *m, struct h_receiver *r)
{
	void (*ready)(struct h_receiver *r, void *arg) = r->on_ready;
	struct h_call call = { .next = m->calls, .receiver = r };
	void *arg = r->arg;

	m->calls = &call;
	r->queued = CALLED;
	m->dispatching--;
	if (m->ready && m->event)
		h__event_update(m);
	pthread_mutex_unlock(&m->lock);
	ready(r, arg);
	pthread_mutex_lock(&m->lock);
	m->dispatching++;
	call_forget(m, &call);
	if (!call.receiver)
		return;
	r->queued = 0;
	if (is_ready(r))
		h__ready_add(m, r);
	if (r->twin && is_ready(r->twin))
		h__ready_add(m, r->twin);
}

static unsigned int count_ready(const struct h_manager *m)
{
	const struct h_receiver *r;
	unsigned int n = 0;

	for (r = m->ready; r; r = r->next_ready)
		n++;
	return n;
}

static void drop_unready(struct h_manager *m)
{
	unsigned int n = count_ready(m);
	struct h_receiver *r;

	while (n--) {
		r = first_ready(m);
		if (is_ready(r))
			h__ready_add(m, r);
	}
}

/*
 * What there can be in the NQ, and no more: who sends faster than this takes must not keep
 * the others waiting for their call backs.
 */
static void take_all(struct h_manager *m)
{
	unsigned int rounds = (m->nq->mask + 1) / H_TAKE_AT_ONCE + 1;

	while (rounds-- && h_manager_poll(m) == H_TAKE_AT_ONCE)
		;
}

int h_manager_dispatch(struct h_manager *m)
{
	struct h_receiver *r;
	bool nudge = false;
	unsigned int n;
	int called = 0;

	pthread_mutex_lock(&m->lock);
	m->dispatching++;
	pthread_mutex_unlock(&m->lock);
	take_all(m);
	pthread_mutex_lock(&m->lock);
	for (n = count_ready(m); n && (r = first_ready(m)); n--) {
		if (!is_ready(r))
			continue;
		call_back(m, r);
		called++;
	}
	drop_unready(m);
	m->dispatching--;
	if (m->event)
		h__event_update(m);
	/* What is left behind is for whoever comes first. */
	if (m->ready)
		nudge = h__wake_sleepers(m);
	pthread_mutex_unlock(&m->lock);
	if (nudge)
		h__manager_nudge(m);
	return called;
}

void h__ready_remove(struct h_manager *m, struct h_receiver *r)
{
	struct h_receiver **at;
	struct h_call *call;

	if (r->twin)
		r->twin->twin = NULL;
	if (is_called(r))
		for (call = m->calls; call; call = call->next)
			if (call->receiver == r)
				call->receiver = NULL;
	if (r->queued != QUEUED)
		return;
	for (at = &m->ready; *at != r; at = &(*at)->next_ready)
		;
	h__write_once(at, r->next_ready);
	if (m->ready_tail == &r->next_ready)
		m->ready_tail = at;
	r->queued = 0;
}
