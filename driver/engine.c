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
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>

#include "hml.h"
#include "trace.h"

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
	struct hml_nqueue *nqs[PASS_BUDGET * HML_PACKETS_PER_XMIT];
};

static DEFINE_PER_CPU(struct wakes, wakes);

/* In rx, between hml_notify_begin() and end: the slot keeps the NQ. */
void hml_port_nq_wake(const struct hml_port *port, struct hml_nq *core)
{
	struct hml_nqueue *nq = container_of(core, struct hml_nqueue, core);
	struct wakes *w = this_cpu_ptr(&wakes);

	/* The one who clears it wakes: one wake for each time it was armed. */
	if (WARN_ON_ONCE(w->count == ARRAY_SIZE(w->nqs)) ||
	    !xchg(&core->armed, 0))
		return;
	refcount_inc(&nq->ref);
	w->nqs[w->count++] = nq;
}

/**
 * hml_notify_begin() - packets will land, and NQ entries be appended
 *
 * A section of SRCU: whoever unlinks a slot or replaces a key waits for us. In
 * KICK we are an ordinary process, of any user and any priority, and while we
 * fill an NQ entry everybody's later ones wait behind it. So that nobody waits
 * until that process gets a processor, preemption is off, first and last.
 *
 * Return: for hml_notify_end().
 */
int hml_notify_begin(void)
__acquires(&hml_srcu)
{
	preempt_disable();
	return srcu_read_lock(&hml_srcu);
}

static noinline void wake_noted(int section)
__releases(&hml_srcu)
{
	struct wakes *w = this_cpu_ptr(&wakes);
	struct wakes woken;
	u32 i;

	woken.count = w->count;
	memcpy(woken.nqs, w->nqs, w->count * sizeof(w->nqs[0]));
	w->count = 0;
	srcu_read_unlock(&hml_srcu, section);
	preempt_enable();
	for (i = 0; i < woken.count; i++) {
		hml_nq_wake(woken.nqs[i]);
		hml_nq_put(woken.nqs[i]);
	}
}

/**
 * hml_notify_end() - wake who is to be woken for what was appended
 * @section: what hml_notify_begin() returned
 *
 * Behind the section, for these wake-ups' locks may sleep (PREEMPT_RT), and we
 * may lose the processor. Not under a lock: it may be us who free the NQ.
 */
void hml_notify_end(int section)
__releases(&hml_srcu)
{
	if (unlikely(this_cpu_read(wakes.count))) {
		wake_noted(section);
		return;
	}
	srcu_read_unlock(&hml_srcu, section);
	preempt_enable();
}

/* As hml_tx_run(). */
static noinline u32 tx_run_traced(struct hml_term *t, u32 budget, s64 *bytes)
{
	u64 before = t->stats.bytes;
	u32 sent = hml_tx_run(&t->device->nic, &t->core, budget, bytes);

	trace_hamlyn_work(t, sent, t->stats.bytes - before);
	return sent;
}

/**
 * hml_term_work() - let the core work on a terminus
 * @t: the terminus, held
 * @budget: most packets; fewer are sent if they would take long
 * @bytes: most bytes, as for hml_tx_run()
 *
 * One section, as long as it takes to copy SECTION_BYTES or one packet.
 *
 * Return: packets sent.
 */
u32 hml_term_work(struct hml_term *t, u32 budget, s64 *bytes)
{
	struct hml_device *d = t->device;
	u32 most = clamp_t(u32, SECTION_BYTES / d->nic.packet_size, 1,
			   PASS_BUDGET);
	u64 pauses = t->stats.pauses;
	int section;
	u32 sent;

	section = hml_notify_begin();
	if (trace_hamlyn_work_enabled())
		sent = tx_run_traced(t, min(budget, most), bytes);
	else
		sent = hml_tx_run(&d->nic, &t->core, min(budget, most), bytes);
	hml_notify_end(section);
	if (unlikely(t->stats.pauses != pauses)) {
		trace_hamlyn_pause(t);
		hml_event_paused(t);
	}
	return sent;
}

/* Held back for guessing, with something to send. */
bool hml_term_paused(const struct hml_term *t)
{
	return READ_ONCE(t->core.sender.guard.until);
}

/*
 * Work on the terminus unless somebody does already. If so it is theirs: they
 * look at the queue again after they have let go (B7).
 */
static u32 run(struct hml_term *t, u32 budget, s64 *bytes)
{
	u32 sent = 0;

	while (sent < budget && *bytes > 0 && !atomic_read(&t->wanted)) {
		if (!hold_try(t))
			break;
		sent += hml_term_work(t, budget - sent, bytes);
		hml_term_release(t);
		smp_mb();					/* B7 */
		if (!hml_tx_pending(&t->core) || hml_term_paused(t))
			break;
		cond_resched();
	}
	return sent;
}

/* ---- the order of service ---- */

static bool in_order(const struct hml_term *t)
{
	return t->turn.next;
}

/* Engine locked. Returns true if the caller has a reference to put. */
static bool take_out(struct hml_term *t)
{
	if (in_order(t)) {
		hml_order_remove(&t->engine->order, &t->turn);
		trace_hamlyn_poll_stop(t);
	} else if (!RB_EMPTY_NODE(&t->paused.node)) {
		timerqueue_del(&t->engine->paused, &t->paused);
	} else {
		return false;
	}
	return true;
}

/* Engine locked. */
static void put_in(struct hml_term *t)
{
	if (in_order(t))
		return;
	if (!RB_EMPTY_NODE(&t->paused.node))
		timerqueue_del(&t->engine->paused, &t->paused);
	else
		refcount_inc(&t->ref);
	hml_order_add(&t->engine->order, &t->turn);
	trace_hamlyn_poll_start(t);
}

static void activate(struct hml_term *t)
{
	struct hml_engine *e = t->engine;

	spin_lock(&e->lock);
	if (!t->dead) {
		WRITE_ONCE(t->idle_since, ktime_get_ns());
		put_in(t);
		WRITE_ONCE(t->core.status->need_kick, 0);
	}
	spin_unlock(&e->lock);
	wake_up(&e->wait);
}

/* No more polling: ask for a doorbell, then look a last time (B2). */
static void doze(struct hml_term *t)
{
	struct hml_engine *e = t->engine;
	bool removed = false;

	spin_lock(&e->lock);
	WRITE_ONCE(t->core.status->need_kick, 1);
	smp_mb();						/* B2 */
	if (hml_tx_pending(&t->core))
		WRITE_ONCE(t->core.status->need_kick, 0);
	else
		removed = take_out(t);
	spin_unlock(&e->lock);
	if (removed)
		hml_term_put(t);
}

/* Has something to send and may not: out of the way until it may. */
static void set_aside(struct hml_term *t)
{
	struct hml_engine *e = t->engine;

	spin_lock(&e->lock);
	if (in_order(t)) {
		hml_order_remove(&e->order, &t->turn);
		t->paused.expires = READ_ONCE(t->core.sender.guard.until);
		timerqueue_add(&e->paused, &t->paused);
		trace_hamlyn_poll_stop(t);
	}
	spin_unlock(&e->lock);
}

/*
 * Back into the order with those whose pause is over. Returns the time until
 * the next one's is, in jiffies.
 */
static long readmit(struct hml_engine *e)
{
	struct timerqueue_node *node;
	u64 now, next = U64_MAX;

	/* Before every turn, and only we put something in. */
	if (likely(!READ_ONCE(e->paused.rb_root.rb_root.rb_node)))
		return MAX_SCHEDULE_TIMEOUT;
	now = ktime_get_ns();
	spin_lock(&e->lock);
	while ((node = timerqueue_getnext(&e->paused))) {
		if (node->expires > (s64)now) {
			next = node->expires;
			break;
		}
		put_in(container_of(node, struct hml_term, paused));
	}
	spin_unlock(&e->lock);
	return next == U64_MAX ? MAX_SCHEDULE_TIMEOUT :
				 1 + nsecs_to_jiffies(next - now);
}

/**
 * hml_engine_adopt() - choose who serves a new terminus
 * @t: the terminus
 * @priority: enum hamlyn_priority
 * @weight: at least 1
 */
void hml_engine_adopt(struct hml_term *t, u32 priority, u32 weight)
{
	struct hml_device *d = t->device;
	u32 n = atomic_inc_return(&d->next_engine);

	t->engine = &d->engines[n % d->engine_count];
	t->turn.priority = priority;
	t->turn.weight = weight;
}

/* Change them, also while it is served. */
void hml_engine_set_turn(struct hml_term *t, u32 priority, u32 weight)
{
	struct hml_engine *e = t->engine;
	bool served;

	spin_lock(&e->lock);
	served = in_order(t);
	if (served)
		hml_order_remove(&e->order, &t->turn);
	t->turn.priority = priority;
	t->turn.weight = weight;
	if (served)
		hml_order_add(&e->order, &t->turn);
	spin_unlock(&e->lock);
}

/* Destroyed: nobody takes it up again. */
void hml_engine_remove(struct hml_term *t)
{
	struct hml_engine *e = t->engine;
	bool removed;

	spin_lock(&e->lock);
	WRITE_ONCE(t->dead, true);
	removed = take_out(t);
	spin_unlock(&e->lock);
	if (removed)
		hml_term_put(t);
}

/* ---- the polling thread ---- */

/**
 * struct turn - a turn that a terminus has
 * @t: the terminus, with a reference
 * @credit: bytes that it may send
 * @sent: packets that it did send
 */
struct turn {
	struct hml_term *t;
	s64 credit;
	u32 sent;
};

static void serve(struct turn *turn)
{
	struct hml_term *t = turn->t;
	s64 idle_ns = (s64)READ_ONCE(t->device->idle_us) * NSEC_PER_USEC;

	turn->sent = run(t, HML_PACKET_SHARE * t->turn.weight, &turn->credit);
	if (turn->sent) {
		WRITE_ONCE(t->idle_since, ktime_get_ns());
		t->kicks_to_wake = HML_KICKS_TO_WAKE;
		return;
	}
	if (hml_term_paused(t) && hml_tx_pending(&t->core)) {
		set_aside(t);
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

/* The last turn is over, if there was one; whose is the next? */
static bool next_turn(struct hml_engine *e, struct turn *turn)
{
	struct hml_term *last = turn->t;
	struct hml_turn *next;

	spin_lock(&e->lock);
	if (last)
		hml_order_done(&e->order, &last->turn, turn->credit,
			       turn->sent);
	next = hml_order_next(&e->order);
	turn->t = NULL;
	if (next) {
		turn->t = container_of(next, struct hml_term, turn);
		turn->credit = hml_turn_credit(next,
					       e->device->nic.packet_size);
		refcount_inc(&turn->t->ref);
	}
	spin_unlock(&e->lock);
	if (last)
		hml_term_put(last);
	return turn->t;
}

static bool served(const struct hml_engine *e)
{
	u32 i;

	for (i = 0; i < HAMLYN_PRIORITIES; i++)
		if (READ_ONCE(e->order.count[i]))
			return true;
	return false;
}

static int engine_thread(void *data)
{
	struct hml_engine *e = data;
	struct turn turn = {};

	while (!kthread_should_stop()) {
		long pause = readmit(e);

		if (next_turn(e, &turn)) {
			serve(&turn);
			/* A thread that never sleeps must say so to RCU-tasks. */
			cond_resched_tasks_rcu_qs();
			cpu_relax();
			continue;
		}
		wait_event_interruptible_timeout(e->wait,
						 served(e) ||
						 kthread_should_stop(), pause);
	}
	if (turn.t)
		hml_term_put(turn.t);
	return 0;
}

/* ---- the doorbell ---- */

/* Doorbells in quick succession: a thread that polls is cheaper. */
static bool kicked_often(struct hml_term *t)
{
	u64 now = ktime_get_ns();
	u64 window = (u64)READ_ONCE(t->device->kick_window_us) * NSEC_PER_USEC;
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
	s64 bytes = S64_MAX;
	bool more;
	u32 sent;

	trace_hamlyn_kick(t);
	hml_atomic_inc64(&t->stats.kicks);
	sent = run(t, KICK_BUDGET, &bytes);
	trace_hamlyn_kick_done(t, sent);
	more = hml_tx_pending(&t->core);
	if (t->engine->thread) {
		if (more || kicked_often(t))
			activate(t);
		return 0;
	}
	if (!more)
		return 0;
	if (hml_term_paused(t))
		schedule_timeout_interruptible(1 + msecs_to_jiffies(1));
	else if (!sent)
		/* Somebody else holds it, and may need this processor. */
		usleep_range(10, 50);
	return signal_pending(current) ? -EINTR : 1;
}

/* ---- start and stop ---- */

static int run_thread(struct hml_engine *e, u32 number)
{
	struct task_struct *thread;

	thread = kthread_run(engine_thread, e, "hamlyn%u/%u", e->device->index,
			     number);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	e->thread = thread;
	return 0;
}

/**
 * hml_engine_start() - start the engines of a NIC
 * @d: the NIC
 * @mode: enum hamlyn_engine_mode; with a single processor it is always inline
 * @count: polling threads
 *
 * Return: 0 or -ENOMEM.
 */
int hml_engine_start(struct hml_device *d, u32 mode, u32 count)
{
	u32 i;
	int err;

	if (num_online_cpus() == 1)
		mode = HAMLYN_ENGINE_INLINE;
	/* In inline mode there is an engine too, but nobody in it. */
	if (mode == HAMLYN_ENGINE_INLINE)
		count = 1;
	d->engines = kcalloc(count, sizeof(*d->engines), GFP_KERNEL);
	if (!d->engines)
		return -ENOMEM;
	d->engine_mode = mode;
	d->engine_count = count;
	for (i = 0; i < count; i++) {
		struct hml_engine *e = &d->engines[i];

		e->device = d;
		spin_lock_init(&e->lock);
		timerqueue_init_head(&e->paused);
		init_waitqueue_head(&e->wait);
	}
	for (i = 0; i < count && mode != HAMLYN_ENGINE_INLINE; i++) {
		err = run_thread(&d->engines[i], i);
		if (err) {
			hml_engine_stop(d);
			return err;
		}
	}
	return 0;
}

void hml_engine_stop(struct hml_device *d)
{
	u32 i;

	for (i = 0; i < d->engine_count; i++)
		if (d->engines[i].thread)
			kthread_stop(d->engines[i].thread);
	kfree(d->engines);
	d->engines = NULL;
	d->engine_count = 0;
}
