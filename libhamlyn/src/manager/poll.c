// SPDX-License-Identifier: MIT
/*
 * Who polls, who sleeps, and to whom arrivals go (H 3.3).
 *
 * Arrivals are taken from the NQ by one thread at a time, under m->polling, so
 * that they reach their receivers in the order of the NQ. A thread that finds
 * nothing for its receiver sleeps: the first one on the NQ (it leads, and takes
 * what comes for the others meanwhile), the others each on a word of their own.
 * Who has taken arrivals wakes those whose receivers got some (B13), and the one
 * that leads as well, with a message to the manager itself: it may be asleep on
 * the NQ while somebody else took what it waits for. When the leader leaves,
 * another sleeper is woken to lead.
 */
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "manager/manager.h"

#define POLLS_PER_CLOCK		32
#define REFUSALS		1024		/* in a row or not: some 50 us and more */
#define SWITCH_NS	1000		/* to another thread, beside what yielding takes */
#define HOG_NS		1000000
#define HOGGED_NS	50000000
#define VAIN		4		/* times in a row: no accident */
#define TRY_EVERY	8		/* time after that all of spin_ns is polled, */
#define SHORT		16		/* otherwise this part of it */

struct h_sleeper {
	struct h_sleeper *next;
	struct h_sleeper *prev;
	const struct h_receiver *receiver;	/* NULL: any that is ready */
	const struct h_receiver *other;		/* or this one has news, or NULL */
	uint32_t seen;
	uint32_t other_seen;
	uint32_t woken;		/* futex */
	bool leads;
	bool on_nq;		/* it leads, and sleeps or is about to */
};

/* ---- locks ---- */

static bool try_lock(struct h_manager *m)
{
	return h__single(m) ||
	       (!h__read_once(&m->polling) && h__lock_at_once(&m->polling));
}

void h__polling_lock(struct h_manager *m)
{
	h__spin_lock(m, &m->polling);
}

/* Not the one that leads. */
static void sleeper_wake(struct h_sleeper *s)
{
	if (s->woken)
		return;
	h__write_once(&s->woken, 1);
	syscall(SYS_futex, &s->woken, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* True also of what another thread may take before this one does. */
static bool has_news(const struct h_manager *m, const struct h_sleeper *s)
{
	if (!s->receiver)
		return h__read_once(&m->ready) || h__read_once(&m->kicked);
	return h_receiver_events(s->receiver) != s->seen ||
	       (s->other && h_receiver_events(s->other) != s->other_seen);
}

/* Who leads and is not on the NQ looks for itself before it goes there. */
bool h__wake_sleepers(struct h_manager *m)
{
	struct h_sleeper *s;
	bool nudge = false;

	for (s = m->sleepers; s; s = s->next) {
		if (!has_news(m, s))
			continue;
		if (!s->leads)
			sleeper_wake(s);
		else if (s->on_nq)
			nudge = true;
	}
	return nudge;
}

static void wake_sleepers(struct h_manager *m)
{
	bool nudge;

	h__lock(&m->lock);
	nudge = h__wake_sleepers(m);
	h__unlock(&m->lock);
	if (nudge)
		h__manager_nudge(m);
}

/*
 * Unlocking orders the receivers' events before the look at m->asleep (B13):
 * who goes to sleep counts itself first and looks at its events then.
 */
static inline void polling_unlock(struct h_manager *m, bool took)
{
	if (h__single(m))
		return;
	h__unlock(&m->polling);					/* B13 */
	if (!took)
		return;
	h__full_barrier_behind_atomic();			/* B13 */
	if (h__unlikely(h__read_once(&m->asleep)))
		wake_sleepers(m);
}

void h__polling_unlock(struct h_manager *m, bool took)
{
	polling_unlock(m, took);
}

void h_receiver_lock(struct h_receiver *r)
{
	h__spin_lock(r->manager, &r->lock);
}

void h_receiver_unlock(struct h_receiver *r)
{
	h__spin_unlock(r->manager, &r->lock);
}

/* ---- taking arrivals ---- */

static void make_ready(struct h_manager *m, struct h_receiver *r)
{
	h__lock(&m->lock);
	if (r->on_ready)
		h__ready_add(m, r);
	h__unlock(&m->lock);
}

static void event_happened(struct h_receiver *r)
{
	h__store_release(&r->events, r->events + 1);
}

static inline __attribute__((always_inline)) void
give(struct h_manager *m, const struct hamlyn_nq_entry *e)
{
	/* A watch's cookie is of ours, whatever slot it watched. */
	uint32_t slot = e->flags & HAMLYN_NQE_PEER_GONE ? (uint32_t)e->data :
							  e->slot;
	struct h_receiver *r = slot < m->slots ? m->by_slot[slot] : NULL;

	if (h__unlikely(!r)) {
		if (e->slot == h_slot_number(m->self))
			h__write_once(&m->nudged, 0);
		return;
	}
	h__spin_lock(m, &r->lock);
	r->class_->process_arrival(r, e);
	event_happened(r);
	h__spin_unlock(m, &r->lock);
	if (h__read_once(&r->on_ready))
		make_ready(m, r);
}

/* m->lock held. Without a slot it is being made, or destroyed. */
static void overrun_of(struct h_manager *m, struct h_receiver *r)
{
	bool whole;

	h__spin_lock(m, &r->lock);
	whole = r->slot;
	if (whole) {
		r->class_->process_overrun(r);
		event_happened(r);
	}
	h__spin_unlock(m, &r->lock);
	if (whole && r->on_ready)
		h__ready_add(m, r);
}

/* Which notifications are missing nobody knows: each looks for itself. */
static void overrun(struct h_manager *m)
{
	struct h_receiver *r;

	h__write_once(&m->nudged, 0);
	h__lock(&m->lock);
	for (r = m->receivers; r; r = r->next)
		if (r->class_->process_overrun)
			overrun_of(m, r);
	h__unlock(&m->lock);
}

/* m->polling held. */
static inline __attribute__((always_inline)) int take(struct h_manager *m)
{
	struct hamlyn_nq_entry e;
	int n = 0, ret;

	while (n < H_TAKE_AT_ONCE && (ret = h_recv(m->nq, &e))) {
		if (h__likely(ret == 1))
			give(m, &e);
		else
			overrun(m);
		n++;
	}
	return n;
}

int h__take(struct h_manager *m)
{
	return take(m);
}

/* polling held, until it returns. */
static inline int take_and_unlock(struct h_manager *m)
{
	int n = take(m);

	polling_unlock(m, n);
	if (h__unlikely(h__read_once(&m->owing)))
		h__manager_settle(m, n);
	return n;
}

int h__manager_take(struct h_manager *m)
{
	return try_lock(m) ? take_and_unlock(m) : -EBUSY;
}

int h_manager_poll(struct h_manager *m)
{
	int n = h__manager_take(m);

	h__budget_age(m);
	return n < 0 ? 0 : n;
}

/* ---- sleeping ---- */

int64_t h_deadline(int64_t timeout_ns)
{
	return timeout_ns > 0 ? h__deadline(timeout_ns) :
	       timeout_ns ? H_FOREVER : H_NOWAIT;
}

static void sleeper_add(struct h_manager *m, struct h_sleeper *s)
{
	s->leads = !m->led;
	m->led = true;
	m->sleeps++;
	H_LINK(m->sleepers, s);
	__atomic_fetch_add(&m->asleep, 1, __ATOMIC_SEQ_CST);	/* B13 */
	h__full_barrier_behind_atomic();			/* B13 */
}

/* Somebody has to sleep on the NQ as long as anybody sleeps. */
static void sleeper_remove(struct h_manager *m, struct h_sleeper *s)
{
	struct h_sleeper *next;

	__atomic_fetch_sub(&m->asleep, 1, __ATOMIC_RELAXED);
	H_UNLINK(m->sleepers, s);
	if (!s->leads)
		return;
	next = m->sleepers;
	m->led = next;
	if (!next)
		return;
	sleeper_wake(next);
	next->leads = true;
}

/*
 * Behind a handler that was installed with SA_RESTART the system goes on with a sleep
 * that has no end, as the kernel device's WAIT does. With one it returns, as a sleep on
 * an NQ of the embedded device.
 */
static int sleep_on_word(const struct h_manager *m, struct h_sleeper *s,
			 int64_t deadline_ns)
{
	int64_t until = deadline_ns < 0 && h__dev_signal_ends(m->dev) ?
			INT64_MAX : deadline_ns;
	struct timespec ts = {
		.tv_sec = until / 1000000000,
		.tv_nsec = until % 1000000000,
	};
	long ret;

	/* With an absolute time of CLOCK_MONOTONIC. */
	ret = syscall(SYS_futex, &s->woken, FUTEX_WAIT_BITSET_PRIVATE, 0,
		      until < 0 ? NULL : &ts, NULL, FUTEX_BITSET_MATCH_ANY);
	return ret < 0 && errno != EAGAIN ? -errno : 0;
}

/* Has a call polled for long enough? */
struct patience {
	int64_t deadline_ns;	/* of the call */
	int64_t spin_from;	/* less what others took since; 0: not known yet */
	int64_t spin_ns;	/* for how long it may, once spin_from is known */
	int64_t spun_ns;	/* for how long it has, when it last looked at the clock */
	unsigned int polls;
	unsigned int refused;
};

enum verdict { POLL, SLEEP, GIVE_UP };

/*
 * Where there are more threads than processors, whoever is to send what is waited for may
 * need this one: it gets it, after each poll if that was so last time. What others take
 * does not count as polling; but who gives it away to one that keeps it for long, instead
 * of sleeping, has no right to be woken: then there is none of this for a while.
 *
 * Return: when that was over.
 */
static int64_t make_way(struct h_manager *m, struct patience *p, int64_t now)
{
	static int64_t least = INT64_MAX;	/* that it takes where there is nobody */
	int64_t back, alone;

	sched_yield();
	back = h__now_ns();
	alone = h__read_once(&least);
	if (back - now < alone) {
		alone = back - now;
		h__write_once(&least, alone);
	}
	if (back - now - alone < SWITCH_NS) {
		if (h__read_once(&m->crowded))
			h__write_once(&m->crowded, false);
		return back;
	}
	if (!h__read_once(&m->crowded))
		h__write_once(&m->crowded, true);
	if (back - now > HOG_NS)
		h__write_once(&m->hogged_ns, back + HOGGED_NS);
	else
		p->spin_from += back - now - alone;
	return back;
}

/*
 * What did not come in that time four times in a row will hardly come the fifth time: it takes
 * longer, or whoever is to send it needs this processor. Then the whole time is tried again
 * only now and then, unless it is the program's choice.
 */
static int64_t spin_for(const struct h_manager *m)
{
	uint32_t vain = h__read_once(&m->vain);

	if (h__read_once(&m->spin_learns) && vain >= VAIN && vain % TRY_EVERY)
		return m->spin_ns / SHORT;
	return m->spin_ns;
}

static enum verdict spun(struct h_manager *m, struct patience *p, int64_t now)
{
	p->spun_ns = now - p->spin_from;
	if (p->spun_ns < p->spin_ns)
		return POLL;
	h__write_once(&m->vain, h__read_once(&m->vain) + 1);
	return SLEEP;
}

/* What has come at once says nothing: that would have been the same in the short time. */
static void note_news(struct h_manager *m, const struct patience *p)
{
	if (h__unlikely(p->spun_ns > m->spin_ns / SHORT) && h__read_once(&m->vain))
		h__write_once(&m->vain, 0);
}

static enum verdict patience_left(struct h_manager *m, struct patience *p)
{
	int64_t now;

	if (++p->polls % POLLS_PER_CLOCK && !h__read_once(&m->crowded))
		return POLL;
	now = h__now_ns();
	if (p->deadline_ns >= 0 && now >= p->deadline_ns)
		return GIVE_UP;
	if (m->spin_ns < 0)
		return POLL;
	if (!p->spin_from) {
		p->spin_from = now;
		p->spin_ns = spin_for(m);
	}
	if (now >= h__read_once(&m->hogged_ns))
		now = make_way(m, p, now);
	return spun(m, p, now);
}

/*
 * As h__manager_take(), for one who goes on polling. If it never sleeps, it may be what keeps
 * a thread that has begun to take them from its processor.
 */
static int take_patiently(struct h_manager *m, struct patience *p)
{
	int n = h__manager_take(m);

	if (h__likely(n >= 0))
		return n;
	h__relax();
	if (m->spin_ns >= 0 || ++p->refused % REFUSALS ||
	    h__lock_until(&m->polling, p->deadline_ns))
		return n;
	return take_and_unlock(m);
}

/* What arrives for others starts patience anew, but holds up no deadline. */
static bool others_may(struct h_manager *m, struct patience *p)
{
	p->spin_from = 0;
	return patience_left(m, p) != GIVE_UP;
}

int h__go_on(unsigned int *rounds, int64_t deadline_ns)
{
	if (++*rounds % H_ROUNDS_PER_CLOCK)
		return 0;
	if (deadline_ns == H_NOWAIT)
		return -EAGAIN;
	return deadline_ns > 0 && h__now_ns() >= deadline_ns ? -ETIMEDOUT : 0;
}

/* A round may have taken as long as a send waits for the terminus: the clock each time. */
int h__wait_for_room(struct h_manager *m, struct h_wait *w, int64_t deadline_ns)
{
	if (deadline_ns > 0 && h__now_ns() >= deadline_ns)
		return -ETIMEDOUT;
	return h_manager_poll(m) ? 0 : h__wait_more(w, deadline_ns);
}

int64_t h__time_left(int64_t deadline_ns)
{
	int64_t left;

	if (deadline_ns == H_NOWAIT || deadline_ns < 0)
		return deadline_ns;
	left = deadline_ns - h__now_ns();
	return left > 0 ? left : H_NOWAIT;
}

/* Who leads was woken: for itself, for others, or by somebody who is at it. */
static void poll_awhile(struct h_manager *m, const struct h_sleeper *s,
			int64_t deadline_ns)
{
	struct patience p = { .deadline_ns = deadline_ns };
	int n;

	do {
		n = take_patiently(m, &p);
		if (has_news(m, s)) {
			note_news(m, &p);
			return;
		}
		if (n > 0)
			p.spin_from = 0;
	} while (patience_left(m, &p) == POLL);
	/* We may be what keeps a thread that has begun to take them from its processor. */
	if (n < 0 && !h__lock_until(&m->polling, deadline_ns))
		take_and_unlock(m);
}

/* The deadline, or sooner where something has to be sent yet. */
static int64_t until_settled(const struct h_manager *m, int64_t deadline_ns, int64_t most_ns)
{
	int64_t until = h__now_ns() +
			(h__owes_soon(m) ? h__again_ns(m) : most_ns);

	return deadline_ns >= 0 && deadline_ns < until ? deadline_ns : until;
}

/*
 * Sleep on the NQ, as long as what comes is for others. A nudge is a packet, and may be
 * lost: on a NIC that is down or unfed, or on its way. Nobody sends it again, so who leads
 * looks around whether it has news; and, as it was to take the word that is lost, whether
 * somebody else was kicked.
 */
static int lead(struct h_manager *m, struct h_sleeper *s, int64_t deadline_ns)
{
	int ret = 0;

	while (!ret && !has_news(m, s)) {
		int64_t until = until_settled(m, deadline_ns, h__look_around_ns(m));

		s->on_nq = true;
		h__unlock(&m->lock);
		ret = h__nq_sleep(m->nq, until);
		h__lock(&m->lock);
		s->on_nq = false;
		if (h__unlikely(h__read_once(&m->kicked)))
			h__wake_sleepers(m);
		/* Nobody has told of anything: then there is nothing to poll for. */
		if (ret == -ETIMEDOUT && until != deadline_ns) {
			ret = 0;
			if (!h__owes_soon(m)) {
				h__unlock(&m->lock);
				h__budget_age(m);
				h__lock(&m->lock);
				continue;
			}
		}
		if (ret)
			break;
		h__unlock(&m->lock);
		poll_awhile(m, s, deadline_ns);
		h__lock(&m->lock);
	}
	return ret;
}

/* Who was woken to lead, and has nothing else to do, does so. */
static int sleep_in_turn(struct h_manager *m, struct h_sleeper *s,
			 int64_t deadline_ns)
{
	int ret = 0;

	while (!s->leads && !h__read_once(&s->woken) && !ret) {
		h__unlock(&m->lock);
		ret = sleep_on_word(m, s, deadline_ns);
		h__lock(&m->lock);
	}
	return ret || !s->leads ? ret : lead(m, s, deadline_ns);
}

/* Nobody wakes it but what arrives, and kicks where it is to be kicked. */
static int sleep_single(struct h_manager *m, const struct h_sleeper *s, int64_t deadline_ns)
{
	m->sleeps++;
	if (has_news(m, s))
		return 0;
	if (!s->receiver || h__owes_soon(m) || h__read_once(&m->budget.ages))
		deadline_ns = until_settled(m, deadline_ns, h__look_around_ns(m));
	return h__nq_sleep(m->nq, deadline_ns);
}

/* Sleep until @s has news, or there is reason to look. */
static int sleep_as(struct h_manager *m, struct h_sleeper *s, int64_t deadline_ns)
{
	int ret = 0;

	if (h__single(m))
		return sleep_single(m, s, deadline_ns);
	h__lock(&m->lock);
	sleeper_add(m, s);
	if (!has_news(m, s))
		ret = sleep_in_turn(m, s, deadline_ns);
	sleeper_remove(m, s);
	h__unlock(&m->lock);
	return ret;
}

/* @other: or NULL, and @other_seen: as @r, and @events. */
static inline __attribute__((always_inline)) int
wait_for(struct h_receiver *r, uint32_t events, const struct h_receiver *other,
	 uint32_t other_seen, int64_t deadline_ns)
{
	struct patience p = { .deadline_ns = deadline_ns };
	struct h_manager *m = r->manager;
	struct h_sleeper s;
	int ret;

	for (;;) {
		ret = take_patiently(m, &p);
		if (h_receiver_events(r) != events ||
		    (other && h_receiver_events(other) != other_seen)) {
			note_news(m, &p);
			return 0;
		}
		if (ret > 0) {
			if (others_may(m, &p))
				continue;
			return deadline_ns == H_NOWAIT ? -EAGAIN : -ETIMEDOUT;
		}
		if (deadline_ns == H_NOWAIT)
			return -EAGAIN;
		switch (patience_left(m, &p)) {
		case POLL:
			continue;
		case GIVE_UP:
			return -ETIMEDOUT;
		case SLEEP:
			h__budget_age(m);
			s = (struct h_sleeper) { .receiver = r, .seen = events,
						 .other = other, .other_seen = other_seen };
			ret = sleep_as(m, &s, deadline_ns);
			if (ret < 0 && ret != -ETIMEDOUT)
				return ret;
			p = (struct patience) { .deadline_ns = deadline_ns,
						.polls = POLLS_PER_CLOCK - 2 };
		}
	}
}

int h_receiver_wait(struct h_receiver *r, uint32_t events, int64_t deadline_ns)
{
	return wait_for(r, events, NULL, 0, deadline_ns);
}

int h__receiver_wait_either(struct h_receiver *r, uint32_t seen, const struct h_receiver *other,
			    uint32_t other_seen, int64_t deadline_ns)
{
	return wait_for(r, seen, other, other_seen, deadline_ns);
}

int h__receiver_wait(struct h_receiver *r, uint32_t seen, bool again,
		     int64_t deadline_ns)
{
	int64_t soon;
	int ret;

	if (h__likely(!again) || deadline_ns == H_NOWAIT)
		return h_receiver_wait(r, seen, deadline_ns);
	soon = h__now_ns() + H_AGAIN_NS;
	if (deadline_ns > 0 && deadline_ns <= soon)
		return h_receiver_wait(r, seen, deadline_ns);
	ret = h_receiver_wait(r, seen, soon);
	return ret == -ETIMEDOUT ? 0 : ret;
}

static int sleep_to_dispatch(struct h_manager *m, int64_t deadline_ns)
{
	struct h_sleeper s = { 0 };
	int ret;

	h__kicks_expect(m);
	ret = sleep_as(m, &s, deadline_ns);
	h__kicks_end(m);
	return ret;
}

int h_manager_wait(struct h_manager *m, int64_t timeout_ns)
{
	struct patience p = { .deadline_ns = h_deadline(timeout_ns) };
	int ret;

	if (h__unlikely(h__read_once(&m->calls)))
		h__calls_mend(m, __builtin_frame_address(0));
	for (;;) {
		ret = take_patiently(m, &p);
		if (h__read_once(&m->ready) || h__kick_take(m)) {
			note_news(m, &p);
			return 0;
		}
		if (ret > 0) {
			if (others_may(m, &p))
				continue;
			return p.deadline_ns == H_NOWAIT ? -EAGAIN : -ETIMEDOUT;
		}
		if (p.deadline_ns == H_NOWAIT)
			return -EAGAIN;
		switch (patience_left(m, &p)) {
		case POLL:
			continue;
		case GIVE_UP:
			return -ETIMEDOUT;
		case SLEEP:
			h__budget_age(m);
			ret = sleep_to_dispatch(m, p.deadline_ns);
			if (ret < 0 && ret != -ETIMEDOUT)
				return ret;
			p = (struct patience) { .deadline_ns = p.deadline_ns,
						.polls = POLLS_PER_CLOCK - 2 };
		}
	}
}
