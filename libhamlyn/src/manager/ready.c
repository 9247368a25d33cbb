// SPDX-License-Identifier: MIT
/* Receivers that have something, and who is called back for them. */
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "manager/manager.h"

/* A receiver's queued. */
#define QUEUED		1	/* on the list */
#define CALLED		2	/* called back, by one thread at a time */
#define HANDED		3	/* and that is in the application's function (channels) */

/*
 * A call back that has begun. It may never return: an exception, pthread_exit() or
 * longjmp() leaves it. So it is the manager's, on no stack. manager->lock.
 */
struct h_call {
	struct h_call *next;
	struct h_receiver *receiver;	/* NULL: it is no more */
	uint64_t id;			/* of this use of the memory */
	uint32_t thread;
	uintptr_t frame;		/* of h_manager_dispatch(): compared, not followed */
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

	h__lock(&m->lock);
	h_receiver_lock(r);
	r->arg = arg;
	h__write_once(&r->on_ready, ready);
	h_receiver_unlock(r);
	h__unlock(&m->lock);
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

	h__lock(&m->lock);
	if (is_ready(r)) {
		h__ready_add(m, r);
		nudge = h__wake_sleepers(m);
	}
	h__unlock(&m->lock);
	if (nudge)
		h__manager_nudge(m);
}

void h__receiver_wake(struct h_receiver *r)
{
	struct h_manager *m = r->manager;
	bool nudge;

	h__lock(&m->lock);
	h_receiver_lock(r);
	h__store_release(&r->events, r->events + 1);
	h_receiver_unlock(r);
	if (is_ready(r))
		h__ready_add(m, r);
	nudge = h__wake_sleepers(m);
	h__unlock(&m->lock);
	if (nudge)
		h__manager_nudge(m);
}

/* ---- what could not be sent ---- */

void h_receiver_owes(struct h_receiver *r, bool owes)
{
	if (h__likely(r->owes == owes))
		return;
	h__write_once(&r->owes, owes);
	__atomic_fetch_add(&r->manager->owing, owes ? 1 : -1ULL, __ATOMIC_RELAXED);
}

static void settle_one(struct h_receiver *r)
{
	h_receiver_lock(r);
	if (r->owes)
		r->class_->settle(r);
	h_receiver_unlock(r);
}

/* Where there is a descriptor who polls has to tell by it whether anything is left. */
static void settle_all(struct h_manager *m)
{
	bool before = h__send_now_or_not(true);
	struct h_receiver *r;

	h__lock(&m->lock);
	for (r = m->receivers; r; r = r->next)
		if (h__read_once(&r->owes))
			settle_one(r);
	if (m->event)
		h__event_update(m);
	h__unlock(&m->lock);
	h__send_now_or_not(before);
}

/*
 * A peer may take nothing for hours: who waits for it is not to look a thousand times a second.
 * Whatever goes out in between makes it soon again.
 */
static void note_try(struct h_manager *m, int64_t waited_ns)
{
	uint32_t sent = h__read_once(&m->terminus->producer);
	int64_t ns = h__again_ns(m);

	h__write_once(&m->vain_from, sent);
	if (waited_ns >= ns)
		ns *= 2;
	h__write_once(&m->vain_ns, ns < H_MOST_AGAIN_NS ? ns : H_MOST_AGAIN_NS);
}

int64_t h__again_ns(const struct h_manager *m)
{
	return h__read_once(&m->terminus->producer) == h__read_once(&m->vain_from) ?
	       h__read_once(&m->vain_ns) : H_AGAIN_NS;
}

int64_t h__look_again_ns(const struct h_manager *m)
{
	if (h__owes_soon(m))
		return h__again_ns(m);
	return h__read_once(&m->budget.ages) ? H_AGE_NS : 0;
}

void h__manager_settle(struct h_manager *m, int arrived)
{
	uint64_t owing = h__read_once(&m->owing);
	int64_t now = h__now_ns();
	int64_t waited = now - h__read_once(&m->settled_ns);
	bool again = waited >= H_AGAIN_NS || h__read_once(&m->event);

	if (again) {
		note_try(m, waited);
		h__write_once(&m->settled_ns, now);
	}
	if (again && (uint32_t)owing)
		settle_all(m);
	if ((owing >= H_ONE_DEBT && (again || arrived)) || (again && h__read_once(&m->chores)))
		h__debts_pay(m);
}

void h__manager_owes(struct h_manager *m)
{
	bool nudge;

	h__lock(&m->lock);
	if (m->event)
		h__event_update(m);
	nudge = m->sleepers;
	h__unlock(&m->lock);
	if (nudge)
		h__manager_nudge(m);
}

void h__receiver_pair(struct h_receiver *a, struct h_receiver *b)
{
	struct h_manager *m = a->manager;

	h__lock(&m->lock);
	a->twin = b;
	b->twin = a;
	h__unlock(&m->lock);
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
	struct h_wait wait = { 0 };
	bool silent;

	for (;;) {
		h__lock(&m->lock);
		silent = silence(a);
		silent = silence(b) && silent;
		h__unlock(&m->lock);
		if (silent)
			return;
		h__wait_more(&wait, H_FOREVER);
	}
}

/* ---- calls that have begun; m->lock held ---- */

/* NULL: it cannot be called now. */
static struct h_call *call_begin(struct h_manager *m, struct h_receiver *r, uintptr_t frame)
{
	struct h_call *call = m->spare_calls;

	if (call)
		m->spare_calls = call->next;
	else
		call = malloc(sizeof(*call));
	if (!call)
		return NULL;
	*call = (struct h_call) {
		.next = m->calls,
		.receiver = r,
		.id = ++m->calls_made,
		.thread = h__thread_number(),
		.frame = frame,
	};
	h__write_once(&m->calls, call);
	r->queued = CALLED;
	return call;
}

/* Nothing is done for one that was ended before: its memory may be another's now. */
static void call_end(struct h_manager *m, struct h_call *call, uint64_t id)
{
	struct h_call **at = &m->calls;
	struct h_receiver *r;

	while (*at && *at != call)
		at = &(*at)->next;
	if (!*at || call->id != id)
		return;
	h__write_once(at, call->next);
	call->next = m->spare_calls;
	m->spare_calls = call;
	r = call->receiver;
	if (!r)
		return;
	r->queued = 0;
	if (is_ready(r))
		h__ready_add(m, r);
	if (r->twin && is_ready(r->twin))
		h__ready_add(m, r->twin);
}

/*
 * Was it left by longjmp()? A dispatch inside the call back has a frame below that of the
 * dispatch which called back; one at the same height or above can only have begun after
 * that one was left. A thread that is gone has left all of its own.
 */
static bool was_left(const struct h_call *call, uintptr_t frame)
{
	if (call->thread == h__thread_number())
		return call->frame <= frame;
	return syscall(SYS_tgkill, getpid(), call->thread, 0) && errno == ESRCH;
}

static void calls_mend(struct h_manager *m, uintptr_t frame)
{
	struct h_call *call, *next;

	for (call = m->calls; call; call = next) {
		next = call->next;
		if (was_left(call, frame))
			call_end(m, call, call->id);
	}
}

bool h__calls_mend(struct h_manager *m, void *frame)
{
	bool left;

	h__lock(&m->lock);
	calls_mend(m, (uintptr_t)frame);
	left = m->calls;
	h__unlock(&m->lock);
	return left;
}

void h__calls_exit(struct h_manager *m)
{
	struct h_call *call;

	while ((call = m->spare_calls)) {
		m->spare_calls = call->next;
		free(call);
	}
}

/* ---- calling back ---- */

struct call_scope {
	struct h_manager *manager;
	struct h_call *call;
	uint64_t id;
	bool returned;
};

/* By an exception, or by the end of the thread: h_manager_dispatch() is left as well. */
static void call_left(struct call_scope *s)
{
	struct h_manager *m = s->manager;
	bool nudge = false;

	if (s->returned)
		return;
	h__lock(&m->lock);
	call_end(m, s->call, s->id);
	if (m->event)
		h__event_update(m);
	if (m->ready)
		nudge = h__wake_sleepers(m);
	h__unlock(&m->lock);
	if (nudge)
		h__manager_nudge(m);
}

/*
 * Afterwards it may be gone; other threads leave it and its twin alone meanwhile. What
 * else is ready may be called by others, or by a loop inside the call back, and so may
 * what becomes ready: the descriptor says so. m->lock held.
 */
static bool call_back(struct h_manager *m, struct h_receiver *r, uintptr_t frame)
{
	__attribute__((cleanup(call_left))) struct call_scope s = {
		.manager = m,
		.returned = true,
	};
	void (*ready)(struct h_receiver *r, void *arg) = r->on_ready;
	void *arg = r->arg;

	s.call = call_begin(m, r, frame);
	if (!s.call) {
		h__ready_add(m, r);
		return false;
	}
	s.id = s.call->id;
	s.returned = false;
	m->dispatching--;
	if (m->ready && m->event)
		h__event_update(m);
	h__unlock(&m->lock);
	ready(r, arg);
	h__lock(&m->lock);
	s.returned = true;
	m->dispatching++;
	call_end(m, s.call, s.id);
	return true;
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
	const uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
	struct h_receiver *r;
	bool nudge = false;
	unsigned int n;
	int called = 0;

	h__lock(&m->lock);
	m->dispatching++;
	if (h__unlikely(m->calls))
		calls_mend(m, frame);
	h__unlock(&m->lock);
	take_all(m);
	h__budget_age(m);
	h__lock(&m->lock);
	for (n = count_ready(m); n && (r = first_ready(m)); n--) {
		if (!is_ready(r))
			continue;
		called += call_back(m, r, frame);
	}
	drop_unready(m);
	m->dispatching--;
	if (m->event)
		h__event_update(m);
	/* What is left behind is for whoever comes first. */
	if (m->ready)
		nudge = h__wake_sleepers(m);
	h__unlock(&m->lock);
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
