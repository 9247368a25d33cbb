// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine: who works through a terminus' queue, and when it sleeps.
 *
 * A terminus is worked on by whoever holds it: the polling thread while it is
 * on the active list, or a process in KICK. need_kick tells the application
 * that it is on nobody's list. In inline mode there is no thread and need_kick
 * is always set.
 */
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/timekeeping.h>

#include "hml.h"

#define PASS_BUDGET	16	/* packets of one terminus in one pass */
#define KICK_BUDGET	64	/* packets in one KICK */
#define KICKS_TO_WAKE	4	/* doorbells in a row that make us poll */

static bool hold_try(struct hml_term *t)
{
	/* Full barrier whether it succeeds or not: B7. */
	smp_mb__before_atomic();
	return !test_and_set_bit(0, &t->held);
}

/* Wait for the terminus. Bounded: who holds it lets go after a few packets. */
void hml_term_hold(struct hml_term *t)
{
	atomic_inc(&t->wanted);
	while (!hold_try(t))
		usleep_range(10, 50);
	atomic_dec(&t->wanted);
}

void hml_term_release(struct hml_term *t)
{
	clear_bit_unlock(0, &t->held);
}

/*
 * Work on the terminus unless somebody does already. If so it is theirs: they
 * look at the queue again after they have let go (B7).
 */
static u32 run(struct hml_term *t, u32 budget)
{
	u32 sent = 0;

	while (sent < budget && !atomic_read(&t->wanted)) {
		if (!hold_try(t))
			break;
		sent += hml_tx_run(&t->device->nic, &t->core, budget - sent);
		hml_term_release(t);
		smp_mb();					/* B7 */
		if (!hml_tx_pending(&t->core))
			break;
	}
	return sent;
}

/* ---- the active list ---- */

static void activate(struct hml_term *t)
{
	struct hml_engine *e = &t->device->engine;

	spin_lock(&e->lock);
	if (!t->dead) {
		t->idle_since = ktime_get_ns();
		if (list_empty(&t->active)) {
			refcount_inc(&t->ref);
			list_add_tail(&t->active, &e->active);
		}
		WRITE_ONCE(t->core.status->need_kick, 0);
	}
	spin_unlock(&e->lock);
	wake_up(&e->wait);
}

/* No more polling: ask for a doorbell, then look a last time (B2). */
static void doze(struct hml_term *t)
{
	struct hml_engine *e = &t->device->engine;
	bool removed = false;

	spin_lock(&e->lock);
	WRITE_ONCE(t->core.status->need_kick, 1);
	smp_mb();						/* B2 */
	if (hml_tx_pending(&t->core)) {
		WRITE_ONCE(t->core.status->need_kick, 0);
	} else if (!list_empty(&t->active)) {
		list_del_init(&t->active);
		removed = true;
	}
	spin_unlock(&e->lock);
	if (removed)
		hml_term_put(t);
}

/* Destroyed: nobody takes it up again. */
void hml_engine_remove(struct hml_term *t)
{
	struct hml_engine *e = &t->device->engine;
	bool removed = false;

	spin_lock(&e->lock);
	t->dead = true;
	if (!list_empty(&t->active)) {
		list_del_init(&t->active);
		removed = true;
	}
	spin_unlock(&e->lock);
	if (removed)
		hml_term_put(t);
}

static void serve(struct hml_term *t)
{
	u64 idle_ns = (u64)READ_ONCE(hml_idle_us) * NSEC_PER_USEC;

	if (run(t, PASS_BUDGET))
		t->idle_since = ktime_get_ns();
	else if (ktime_get_ns() - t->idle_since > idle_ns)
		doze(t);
}

/* Next terminus in turn, with a reference; it goes to the end of the list. */
static struct hml_term *next_term(struct hml_engine *e)
{
	struct hml_term *t;

	spin_lock(&e->lock);
	t = list_first_entry_or_null(&e->active, struct hml_term, active);
	if (t) {
		list_move_tail(&t->active, &e->active);
		refcount_inc(&t->ref);
	}
	spin_unlock(&e->lock);
	return t;
}

static int engine_thread(void *data)
{
	struct hml_engine *e = data;

	while (!kthread_should_stop()) {
		struct hml_term *t = next_term(e);

		if (t) {
			serve(t);
			hml_term_put(t);
			cond_resched();
			cpu_relax();
			continue;
		}
		wait_event_interruptible(e->wait,
					 !list_empty_careful(&e->active) ||
					 kthread_should_stop());
	}
	return 0;
}

/* ---- the doorbell ---- */

/* Doorbells in quick succession: a thread that polls is cheaper. */
static bool kicked_often(struct hml_term *t)
{
	u64 now = ktime_get_ns();
	u64 window = (u64)READ_ONCE(hml_kick_window_us) * NSEC_PER_USEC;
	bool quick = now - READ_ONCE(t->last_kick) < window;
	u32 row = quick ? READ_ONCE(t->kicks_in_row) + 1 : 0;

	WRITE_ONCE(t->last_kick, now);
	WRITE_ONCE(t->kicks_in_row, row);
	return row >= KICKS_TO_WAKE;
}

/**
 * hml_engine_kick() - doorbell: work on a terminus in the caller
 * @t: the terminus
 *
 * Return: 0 if the queue was emptied or the engine goes on with it; 1 if
 * there is more and the caller should call again; -EINTR.
 */
int hml_engine_kick(struct hml_term *t)
{
	struct hml_engine *e = &t->device->engine;
	bool more;

	hml_atomic_inc64(&t->stats.kicks);
	run(t, KICK_BUDGET);
	more = hml_tx_pending(&t->core);
	if (e->thread) {
		if (more || kicked_often(t))
			activate(t);
		return 0;
	}
	if (!more)
		return 0;
	return signal_pending(current) ? -EINTR : 1;
}

/* ---- start and stop ---- */

int hml_engine_start(struct hml_device *d, u32 mode)
{
	struct hml_engine *e = &d->engine;
	struct task_struct *thread;

	e->mode = mode;
	spin_lock_init(&e->lock);
	INIT_LIST_HEAD(&e->active);
	init_waitqueue_head(&e->wait);
	if (mode == HAMLYN_ENGINE_INLINE)
		return 0;
	thread = kthread_run(engine_thread, e, "hamlyn%u", d->nic.host);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	e->thread = thread;
	return 0;
}

void hml_engine_stop(struct hml_device *d)
{
	if (d->engine.thread)
		kthread_stop(d->engine.thread);
}
