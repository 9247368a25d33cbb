// SPDX-License-Identifier: MIT
/*
 * What end points said was sent, and keep: the rest of a long message, bytes that are
 * collected. The manager owes it: whoever polls pays, for whatever it polls. And chores, which
 * nobody waits for.
 *
 * One thread pays at a time, and waits for nothing. It holds no lock of the manager
 * meanwhile, as sending polls: what is being paid is pinned by m->paid instead.
 */
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "manager/manager.h"

#define YIELDS	64		/* of who drains, before it naps */
#define NAP_NS	200000
#define CHORES	4		/* of one who polls: each may clear a megabyte */

/* m->lock held. */
static void debt_link(struct h_manager *m, struct h_debt *d)
{
	d->more = true;
	if (d->listed)
		return;
	d->listed = true;
	H_LINK(m->debts, d);
	__atomic_fetch_add(&m->owing, d->chore ? 1 : H_ONE_DEBT, __ATOMIC_RELAXED);
	h__write_once(&m->chores, m->chores + d->chore);
}

static void debt_unlink(struct h_manager *m, struct h_debt *d)
{
	if (!d->listed)
		return;
	d->listed = false;
	H_UNLINK(m->debts, d);
	__atomic_fetch_sub(&m->owing, d->chore ? 1 : H_ONE_DEBT, __ATOMIC_RELAXED);
	h__write_once(&m->chores, m->chores - d->chore);
}

void h__chore_add(struct h_manager *m, struct h_debt *d)
{
	if (d->pay)
		debt_link(m, d);
}

void h__debt_add(struct h_manager *m, struct h_debt *d)
{
	h__lock(&m->lock);
	debt_link(m, d);
	/* Why it did not go is not known: who sleeps looks again soon. */
	h__write_once(&m->debts_soon, true);
	h__unlock(&m->lock);
	h__manager_owes(m);
}

/* Who pays it just now does not wait for anything. */
void h__debt_remove(struct h_manager *m, struct h_debt *d)
{
	h__lock(&m->lock);
	while (m->paid == d) {
		h__unlock(&m->lock);
		h__lock(&m->paying);
		h__unlock(&m->paying);
		h__lock(&m->lock);
	}
	debt_unlink(m, d);
	d->pay = NULL;
	h__unlock(&m->lock);
}

/*
 * m->lock held, but not while @d is paid. Somebody may add to it when it was found that
 * nothing was left.
 */
static int pay_one(struct h_manager *m, struct h_debt *d)
{
	int ret;

	m->paid = d;
	d->more = false;
	h__unlock(&m->lock);
	ret = d->pay(d);
	h__lock(&m->lock);
	m->paid = NULL;
	return ret || !d->more ? ret : -EBUSY;
}

/* True if there is one to be tried again soon. */
static bool pay_all(struct h_manager *m)
{
	struct h_debt *d, *next;
	unsigned int chores = 0;
	bool soon = false;
	int ret;

	for (d = m->debts; d; d = next) {
		next = d->next;
		if (d->chore && chores++ >= CHORES)
			continue;
		ret = pay_one(m, d);
		next = d->next;
		soon = soon || (ret == -EBUSY && !d->chore);
		if (!ret)
			debt_unlink(m, d);
	}
	return soon;
}

void h__debts_pay(struct h_manager *m)
{
	bool before, soon;
	int cancel;

	if (h__read_once(&m->paying) || !h__try_lock(&m->paying))
		return;
	cancel = h__cancel_off();
	before = h__send_now_or_not(true);
	h__lock(&m->lock);
	soon = pay_all(m);
	h__write_once(&m->debts_soon, soon);
	if (m->event)
		h__event_update(m);
	h__unlock(&m->lock);
	h__unlock(&m->paying);
	h__send_now_or_not(before);
	h__cancel_restore(cancel);
}

void h__debts_collected_by(struct h_manager *m,
			   struct h_debt *(*collected)(struct h_receiver *r))
{
	h__lock(&m->lock);
	m->collected = collected;
	h__unlock(&m->lock);
}

static void collect(struct h_manager *m)
{
	struct h_receiver *r;
	struct h_debt *d;

	h__lock(&m->lock);
	for (r = m->collected ? m->receivers : NULL; r; r = r->next) {
		d = m->collected(r);
		if (d && d->pay)
			debt_link(m, d);
	}
	h__unlock(&m->lock);
}

static int nap(void)
{
	const struct timespec ts = { .tv_nsec = NAP_NS };

	/* Not the C library's, which is a cancellation point. */
	return syscall(SYS_nanosleep, &ts, NULL) ? -errno : 0;
}

int h__debts_drain(struct h_manager *m, int64_t deadline_ns)
{
	unsigned int rounds = 0;
	int err = 0;

	collect(m);
	while (h__read_once(&m->owing) >= H_ONE_DEBT) {
		h__manager_take(m);
		h__debts_pay(m);
		if (h__read_once(&m->owing) < H_ONE_DEBT)
			break;
		if (deadline_ns == H_NOWAIT)
			return -EAGAIN;
		if (deadline_ns > 0 && h__now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		if (rounds++ < YIELDS)
			sched_yield();
		else
			err = nap();
		if (err)
			return err;
	}
	return 0;
}
