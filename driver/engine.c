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
#include <linux/percpu.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <linux/timekeeping.h>

#include "hml.h"

#define PASS_BUDGET	16	/* packets of one terminus in one pass */
#define SECTION_BYTES	SZ_64K	/* payload moved without preemption */
#define KICK_BUDGET	64	/* packets in one KICK */
#define MAX_KICKS_TO_WAKE 1024	/* the same while processors are scarce */

static bool hold_try(struct hml_term *t)
{
	/* Full barrier whether it succeeds or not: B7. */
	smp_mb__before_atomic();
	return !test_and_set_bit(0, &t->held);
}

/* Whoever holds it lets go after a few packets, and nobody else gets it. */
static int hold(struct hml_term *t, bool whatever)
{
	int err = 0;

	atomic_inc(&t->wanted);
	while (!hold_try(t)) {
		if (!whatever && READ_ONCE(t->dead))
			err = -ENOENT;
		else if (!whatever && fatal_signal_pending(current))
			err = -EINTR;
		if (err)
			break;
		usleep_range(10, 50);
	}
	atomic_dec(&t->wanted);
	return err;
}

/**
 * hml_term_hold() - wait until the terminus is ours
 * @t: the terminus
 *
 * Return: 0, -ENOENT if it was destroyed meanwhile, -EINTR if we were killed.
 */
int hml_term_hold(struct hml_term *t)
{
	return hold(t, false);
}

/* Destroyed, and removed from the engine: hold it, and never let go. */
void hml_term_retire(struct hml_term *t)
{
	hold(t, true);
}

void hml_term_release(struct hml_term *t)
{
	clear_bit_unlock(0, &t->held);
}

/* NQs to wake when preemption is on again: at most one a packet. */
struct wakes {
	u32 count;
	struct hml_nqueue *nqs[PASS_BUDGET];
};

static DEFINE_PER_CPU(struct wakes, wakes);

/* In rx, in the section below: slots, and with them their NQs, outlive it. */
void hml_port_nq_wake(const struct hml_port *port, struct hml_nq *nq)
{
	struct wakes *w = this_cpu_ptr(&wakes);

	/* The one who clears it wakes: one wake for each time it was armed. */
	if (xchg(&nq->armed, 0))
		w->nqs[w->count++] = container_of(nq, struct hml_nqueue, core);
}

static u32 run_section(struct hml_device *d, struct hml_term *t, u32 budget,
		       struct wakes *woken)
{
	struct wakes *w;
	u32 sent;

	preempt_disable();
	w = this_cpu_ptr(&wakes);
	sent = hml_tx_run(&d->nic, &t->core, budget);
	woken->count = w->count;
	memcpy(woken->nqs, w->nqs, w->count * sizeof(w->nqs[0]));
	w->count = 0;
	preempt_enable();
	return sent;
}

/**
 * hml_term_work() - let the core work on a terminus
 * @t: the terminus, held
 * @budget: most packets; fewer are sent if they would take long
 *
 * One section of SRCU: whoever unlinks a slot or replaces a key waits for us.
 * In KICK we are an ordinary process, of any user and any priority. So that
 * nobody waits until that process gets a processor, preemption is off, for as
 * long as it takes to copy SECTION_BYTES or one packet. The wake-ups come
 * after: their locks may sleep (PREEMPT_RT).
 *
 * Return: packets sent.
 */
u32 hml_term_work(struct hml_term *t, u32 budget)
{
	struct hml_device *d = t->device;
	u32 most = clamp_t(u32, SECTION_BYTES / d->nic.packet_size, 1,
			   PASS_BUDGET);
	struct wakes woken;
	int section = srcu_read_lock(&d->srcu);
	u32 sent = run_section(d, t, min(budget, most), &woken);
	u32 i;

	for (i = 0; i < woken.count; i++)
		hml_nq_wake(woken.nqs[i]);
	srcu_read_unlock(&d->srcu, section);
	return sent;
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
		sent += hml_term_work(t, budget - sent);
		hml_term_release(t);
		smp_mb();					/* B7 */
		if (!hml_tx_pending(&t->core))
			break;
		cond_resched();
	}
	return sent;
}

/* ---- the active list ---- */

static void activate(struct hml_term *t)
{
	struct hml_engine *e = &t->device->engine;

	spin_lock(&e->lock);
	if (!t->dead) {
		WRITE_ONCE(t->idle_since, ktime_get_ns());
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
	WRITE_ONCE(t->dead, true);
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
	s64 idle_ns = (s64)READ_ONCE(hml_idle_us) * NSEC_PER_USEC;

	if (run(t, PASS_BUDGET)) {
		WRITE_ONCE(t->idle_since, ktime_get_ns());
		t->kicks_to_wake = HML_KICKS_TO_WAKE;
		return;
	}
	/*
	 * Polling an empty queue while somebody else, perhaps the sender, waits
	 * for this processor: that costs a time slice for each message.
	 */
	if (!single_task_running()) {
		t->kicks_to_wake = min(2 * t->kicks_to_wake, MAX_KICKS_TO_WAKE);
		doze(t);
		return;
	}
	/* Signed: a KICK may have set it to a later time than ours. */
	if ((s64)(ktime_get_ns() - READ_ONCE(t->idle_since)) > idle_ns)
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
			/* A thread that never sleeps must say so to RCU-tasks. */
			cond_resched_tasks_rcu_qs();
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
	if (row < READ_ONCE(t->kicks_to_wake))
		return false;
	WRITE_ONCE(t->kicks_in_row, 0);
	return true;
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
	u32 sent;

	hml_atomic_inc64(&t->stats.kicks);
	sent = run(t, KICK_BUDGET);
	more = hml_tx_pending(&t->core);
	if (e->thread) {
		if (more || kicked_often(t))
			activate(t);
		return 0;
	}
	if (!more)
		return 0;
	/* Somebody else holds it, and may need this processor to go on. */
	if (!sent)
		usleep_range(10, 50);
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
