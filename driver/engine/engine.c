// SPDX-License-Identifier: GPL-2.0-only
/*
 * The engine: who works through a terminus' queue, and when it sleeps.
 *
 * A terminus is worked on by whoever holds it: the polling thread while it is
 * on the active list, or a process in KICK. need_kick tells the application
 * that it is on nobody's list. In inline mode there is no thread and need_kick
 * is always set.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/completion.h>
#include <linux/freezer.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/sched/stat.h>
#include <linux/slab.h>
#include <linux/timekeeping.h>
#include <linux/topology.h>

#include "hml.h"
#include "engine/turns.h"
#include "fabric/peer.h"
#include "trace.h"

#define LOOKS		16	/* at a queue that no other one competes with */
#define CLOCK_TURNS	8	/* turns without work between two looks at the clock */
#define LOOKS_CHARGED	4	/* turns without work between two charges, at least */
#define MOST_CHARGED_NS	(10 * NSEC_PER_MSEC)	/* for a turn, */
#define SWITCH_CHARGED_NS (100 * NSEC_PER_USEC)	/* in which others had the processor */
#define READMIT_BATCH	32	/* termini in one section */
#define BROKE_NS	(10 * NSEC_PER_MSEC)	/* until an account is looked at again */
#define MAX_KICKS_TO_WAKE 1024	/* doorbells in a row, while processors are scarce */

/* ---- the order of service ---- */

static struct hml_order *order_of(struct hml_engine *e)
{
	lockdep_assert_held(&e->lock);
	return &e->order;
}

static bool in_order(const struct hml_term *t)
{
	lockdep_assert_held(&t->engine->lock);
	return t->turn.next;
}

/* Engine locked. Returns true if the caller has a reference to put. */
static bool take_out(struct hml_term *t)
{
	if (in_order(t)) {
		hml_order_remove(order_of(t->engine), &t->turn);
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
	hml_order_add(order_of(t->engine), &t->turn);
	trace_hamlyn_poll_start(t);
}

/* Engine locked. */
static void start_polling(struct hml_term *t)
{
	lockdep_assert_held(&t->engine->lock);
	if (t->dead)
		return;
	WRITE_ONCE(t->idle_since, ktime_get_ns());
	put_in(t);
	WRITE_ONCE(t->core.status->need_kick, 0);
}

/**
 * hml_engine_activate() - poll a terminus from now on
 * @t: the terminus, with a reference
 */
void hml_engine_activate(struct hml_term *t)
{
	struct hml_engine *e = t->engine;

	hml_lock(&e->lock);
	start_polling(t);
	hml_unlock(&e->lock);
	wake_up(&e->wait);
}

/*
 * Unless the engine has it already. If it was set aside, that was for its stall or for its
 * user's debt, and neither is over because somebody rings.
 */
void hml_engine_activate_unlisted(struct hml_term *t)
{
	struct hml_engine *e = t->engine;

	hml_lock(&e->lock);
	if (!in_order(t) && RB_EMPTY_NODE(&t->paused.node))
		start_polling(t);
	hml_unlock(&e->lock);
	wake_up(&e->wait);
}

/* No more polling: ask for a doorbell, then look a last time (B2). */
static void doze(struct hml_term *t)
{
	struct hml_engine *e = t->engine;
	bool removed = false;

	hml_lock(&e->lock);
	WRITE_ONCE(t->core.status->need_kick, 1);
	smp_mb();		/* B2: need_kick is set before the last look */
	if (hml_tx_pending(&t->core))
		WRITE_ONCE(t->core.status->need_kick, 0);
	else
		removed = take_out(t);
	hml_unlock(&e->lock);
	if (removed)
		hml_term_put(t);
}

/*
 * As doze(), but what was posted before may still be served: the user owes for it. Returns
 * true if there is something.
 */
static bool ask_to_ring(struct hml_term *t)
{
	struct hml_engine *e = t->engine;
	bool removed = false;
	bool pending;

	hml_lock(&e->lock);
	WRITE_ONCE(t->core.status->need_kick, 1);
	smp_mb();		/* B2: need_kick is set before the last look */
	pending = hml_tx_pending(&t->core);
	if (!pending)
		removed = take_out(t);
	hml_unlock(&e->lock);
	if (removed)
		hml_term_put(t);
	return pending;
}

/* Has something to send and may not: out of the way until it may. */
static void set_aside(struct hml_term *t, u64 until)
{
	struct hml_engine *e = t->engine;

	hml_lock(&e->lock);
	if (in_order(t)) {
		take_out(t);
		t->paused.expires = until;
		timerqueue_add(&e->paused, &t->paused);
	}
	hml_unlock(&e->lock);
}

/*
 * Back into the order with those whose pause is over. Returns the time until
 * the next one's is, in jiffies.
 */
static long readmit(struct hml_engine *e)
{
	struct timerqueue_node *node;
	u64 now, next = U64_MAX;
	u32 room, n = 0;

	/* Before every turn, and only we put something in. */
	if (likely(!READ_ONCE(e->paused.rb_root.rb_root.rb_node)))
		return MAX_SCHEDULE_TIMEOUT;
	room = atomic_read_acquire(&e->device->room);
	now = ktime_get_ns();
	/*
	 * B19: we are the ones who set aside, and look at the count behind that. Those that were
	 * held back for another reason are readmitted too soon, and set aside again.
	 */
	if (room != e->room_seen) {
		now += HML_STALL_NS;
		e->room_seen = room;
	}
	hml_lock(&e->lock);
	while ((node = timerqueue_getnext(&e->paused))) {
		if (node->expires > (s64)now) {
			next = node->expires;
			break;
		}
		hml_lock_step();
		put_in(container_of(node, struct hml_term, paused));
		if (++n == READMIT_BATCH) {
			next = now;
			break;
		}
	}
	hml_unlock(&e->lock);
	return next == U64_MAX ? MAX_SCHEDULE_TIMEOUT :
				 1 + nsecs_to_jiffies(next - now);
}

/*
 * In turn, but none on another node while there is one on the caller's. Either all
 * engines of a NIC have a node, or none has.
 */
static struct hml_engine *choose(struct hml_device *d)
{
	u32 first = atomic_inc_return(&d->next_engine);
	int here = numa_node_id();
	u32 i;

	for (i = 0; i < d->engine_count; i++) {
		struct hml_engine *e = &d->engines[(first + i) %
						   d->engine_count];

		if (e->node == here)
			return e;
	}
	return &d->engines[first % d->engine_count];
}

/**
 * hml_engine_adopt() - choose who serves a new terminus
 * @c: whose it is
 * @t: the terminus
 * @priority: enum hamlyn_priority
 * @weight: at least 1
 *
 * Return: 0, or -ENOMEM.
 */
int hml_engine_adopt(struct hml_context *c, struct hml_term *t, u32 priority,
		     u32 weight)
{
	struct hml_engine *e = choose(t->device);
	struct hml_client *client = hml_client_get(e, c);

	if (IS_ERR(client))
		return PTR_ERR(client);
	t->engine = e;
	t->client = client;
	t->turn.share = &client->share;
	t->turn.priority = priority;
	WRITE_ONCE(t->turn.weight, weight);
	return 0;
}

/* No engine finds it any more. */
void hml_engine_disown(struct hml_term *t)
{
	hml_client_put(t->engine, t->client);
}

/* Change them, also while it is served. */
void hml_engine_set_turn(struct hml_term *t, u32 priority, u32 weight)
{
	struct hml_engine *e = t->engine;
	bool served;

	hml_lock(&e->lock);
	served = in_order(t);
	if (served)
		hml_order_remove(order_of(e), &t->turn);
	t->turn.priority = priority;
	WRITE_ONCE(t->turn.weight, weight);
	if (served)
		hml_order_add(order_of(e), &t->turn);
	hml_unlock(&e->lock);
}

/* Destroyed: nobody takes it up again but the engine that has it in turn. */
void hml_engine_remove(struct hml_term *t)
{
	struct hml_engine *e = t->engine;
	bool removed;

	hml_lock(&e->lock);
	WRITE_ONCE(t->dead, true);
	removed = take_out(t);
	hml_unlock(&e->lock);
	if (removed)
		hml_term_put(t);
}

/*
 * Removed and retired: wait until the engine has nothing of it any more. It serves
 * others, and what a terminus leaves behind takes long to free, and locks that are
 * everybody's. An engine serves one terminus at a time, so no more than one waits here.
 */
void hml_engine_leave(const struct hml_term *t)
{
	DECLARE_COMPLETION_ONSTACK(left);
	struct hml_engine *e = t->engine;
	bool has_turn;

	hml_lock(&e->lock);
	has_turn = e->serving == t;
	if (has_turn)
		e->leaver = &left;
	hml_unlock(&e->lock);
	if (has_turn)
		wait_for_completion(&left);
}

/* Engine locked, for whoever changes whose turn it is: who is to be told, or NULL. */
struct completion *hml_engine_serve_next(struct hml_engine *e, struct hml_term *t)
{
	struct completion *leaver = e->leaver;

	lockdep_assert_held(&e->lock);
	e->serving = t;
	e->leaver = NULL;
	return leaver;
}

/* ---- the polling thread ---- */

/**
 * struct turn - a turn that a terminus has
 * @t: the terminus; engine.serving keeps it
 * @credit: bytes that it may send
 * @sent: packets that it did send
 */
struct turn {
	struct hml_term *t;
	s64 credit;
	u32 sent;
};

/* Termini that are polled. Without the lock: a hint. */
static u32 served(const struct hml_engine *e)
{
	return READ_ONCE(e->order.count);
}

/*
 * Is there work? Without holding the terminus: that is for those that have work. While
 * nobody else is waiting for a turn several looks are cheaper than as many
 * turns, and see a message sooner.
 */
static bool look(const struct hml_term *t)
{
	u32 looks = served(t->engine) == 1 ? LOOKS : 1;

	for (;;) {
		if (hml_tx_pending(&t->core))
			return true;
		if (!--looks)
			return false;
		cpu_relax();
	}
}

/* Has it been without work long enough? The clock is dearer than a look. */
static bool idle(struct hml_term *t)
{
	s64 idle_ns = (s64)READ_ONCE(t->device->idle_us) * NSEC_PER_USEC;
	u64 now;

	if (++t->idle_turns % CLOCK_TURNS)
		return false;
	now = ktime_get_ns();
	/* The first look at the clock since there was work: it begins here. */
	if (t->idle_turns == CLOCK_TURNS)
		WRITE_ONCE(t->idle_since, now);
	/* Signed: a KICK may have set it to a later time than ours. */
	return (s64)(now - READ_ONCE(t->idle_since)) > idle_ns;
}

/* The clock also runs while the thread does not: as far as that can be, it is nobody's time. */
static s64 worked_ns(struct hml_engine *e)
{
	unsigned long switches = current->nvcsw + current->nivcsw;
	u64 now = sched_clock();
	s64 ns = now - e->clock;

	e->clock = now;
	if (likely(switches == e->switches))
		return clamp_t(s64, ns, 0, MOST_CHARGED_NS);
	e->switches = switches;
	return clamp_t(s64, ns, 0, SWITCH_CHARGED_NS);
}

/*
 * Time since the last charge is the present client's. While nobody has work that is looked
 * at now and then, at random: so all pay for being polled, and nobody can be elsewhere when
 * it is paid for.
 */
static void charge(struct hml_engine *e, struct hml_client *client)
{
	client->left -= worked_ns(e);
	e->looks = 0;
	e->random = e->random * 1664525 + 1013904223;
	e->most_looks = LOOKS_CHARGED + (e->random >> 29);
}

static void charge_turn(struct hml_engine *e, const struct turn *turn)
{
	if (turn->sent || ++e->looks >= e->most_looks)
		charge(e, turn->t->client);
}

/* The user has used up what it was lent. May the terminus be served all the same? */
static noinline bool may_borrow(struct hml_term *t)
{
	switch (hml_loan_draw(t->client->loan, &t->client->left)) {
	case HML_CREDIT_GOOD:
		return true;
	case HML_CREDIT_OWES:
		return ask_to_ring(t);
	default:
		if (ask_to_ring(t))
			set_aside(t, ktime_get_ns() + BROKE_NS);
		return false;
	}
}

/* The end of its pause, or when the fabric may have room again. */
u64 hml_engine_when_to_look(const struct hml_term *t)
{
	return READ_ONCE(t->core.sender.guard.until) ?: ktime_get_ns() + HML_STALL_NS;
}

static void serve(struct turn *turn)
{
	struct hml_term *t = turn->t;
	u32 budget = HML_PACKET_SHARE * READ_ONCE(t->turn.weight);

	turn->sent = 0;
	if (unlikely(t->client->left <= 0) && !may_borrow(t))
		return;
	turn->sent = look(t) ? hml_term_run(t, budget, &turn->credit) : 0;
	if (turn->sent) {
		t->idle_turns = 0;
		WRITE_ONCE(t->kicks_to_wake, HML_KICKS_TO_WAKE);
		return;
	}
	if (hml_term_waits(t) && hml_tx_pending(&t->core)) {
		set_aside(t, hml_engine_when_to_look(t));
		return;
	}
	/*
	 * Polling an empty queue while somebody else, perhaps the sender, waits
	 * for this processor: that costs a time slice for each message.
	 */
	if (!single_task_running()) {
		WRITE_ONCE(t->kicks_to_wake,
			   min(2 * t->kicks_to_wake, MAX_KICKS_TO_WAKE));
		doze(t);
		return;
	}
	if (idle(t))
		doze(t);
}

/* The last turn is over, if there was one; whose is the next? */
static bool next_turn(struct hml_engine *e, struct turn *turn)
{
	struct hml_term *last = turn->t;
	struct completion *leaver;
	struct hml_turn *next;

	hml_lock(&e->lock);
	if (last)
		hml_order_done(order_of(e), &last->turn, turn->credit,
			       turn->sent);
	next = hml_order_next(order_of(e));
	turn->t = NULL;
	if (next) {
		turn->t = container_of(next, struct hml_term, turn);
		turn->credit = hml_turn_credit(next,
					       e->device->nic.packet_size);
	}
	leaver = hml_engine_serve_next(e, turn->t);
	hml_unlock(&e->lock);
	if (unlikely(leaver))
		complete(leaver);
	return turn->t;
}

/*
 * From 6.14 on the kernel sets where a thread runs before it calls us, after its maker
 * could. Not bound: an administrator may think better of it (taskset).
 */
static void take_place(const struct hml_engine *e)
{
	if (e->cpus && set_cpus_allowed_ptr(current, e->cpus))
		pr_warn("%s may not run on processors %*pbl\n", current->comm,
			cpumask_pr_args(e->cpus));
}

/* For those that are set aside, since they were looked at. */
static bool has_room(const struct hml_engine *e)
{
	return READ_ONCE(e->paused.rb_root.rb_root.rb_node) &&
	       atomic_read(&e->device->room) != e->room_seen;
}

static int engine_thread(void *data)
{
	struct hml_engine *e = data;
	struct turn turn = {};

	take_place(e);
	/*
	 * The kernel freezes tasks first and kernel threads after them, so whatever a task
	 * waits for in a turn still ends. A doorbell that was rung before leaves its
	 * terminus in the order, where the thread finds it when it is thawed.
	 */
	set_freezable();
	while (!kthread_freezable_should_stop(NULL)) {
		long pause = readmit(e);

		if (next_turn(e, &turn)) {
			serve(&turn);
			charge_turn(e, &turn);
			/* A thread that never sleeps must say so to RCU-tasks. */
			cond_resched_tasks_rcu_qs();
			cpu_relax();
			continue;
		}
		wait_event_freezable_timeout(e->wait,
					     served(e) || has_room(e) || kthread_should_stop(),
					     pause);
		worked_ns(e);
	}
	return 0;
}

/* ---- start and stop ---- */

static int run_thread(struct hml_engine *e, u32 number)
{
	struct hml_place place = hml_placement_next(number,
						    e->device->engine_count);
	struct task_struct *thread;

	e->node = place.node;
	e->cpus = place.cpus;
	/* To a thread of a node the kernel gives that back whenever processors come. */
	thread = kthread_create_on_node(engine_thread, e, NUMA_NO_NODE,
					"hamlyn%u/%u", e->device->index,
					number);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	e->thread = thread;
	wake_up_process(thread);
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
		e->node = NUMA_NO_NODE;
		raw_spin_lock_init(&e->lock);
		e->clients = RB_ROOT;
		timerqueue_init_head(&e->paused);
		init_waitqueue_head(&e->wait);
		INIT_DELAYED_WORK(&e->retry, hml_engine_retry);
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

	for (i = 0; i < d->engine_count; i++) {
		if (d->engines[i].thread)
			kthread_stop(d->engines[i].thread);
		cancel_delayed_work_sync(&d->engines[i].retry);
	}
	kfree(d->engines);
	d->engines = NULL;
	d->engine_count = 0;
}
