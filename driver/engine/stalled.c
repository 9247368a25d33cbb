// SPDX-License-Identifier: GPL-2.0-only
/*
 * Termini whose fabric has no room: where an engine has a thread, that goes on with them,
 * and else a worker.
 */
#include <linux/completion.h>
#include <linux/ktime.h>
#include <linux/sched/clock.h>
#include <linux/sizes.h>

#include "hml.h"
#include "locked.h"
#include "engine/turns.h"
#include "fabric/peer.h"

#define RETRY_BATCH	8	/* stalled termini in one turn of the worker, */
#define RETRY_BYTES	SZ_64K	/* and what it sends of each */

/*
 * When the worker goes on with it: at once if it need not wait, but never before its user
 * has paid for what workers have done already. Before the engine's lock, which is a leaf.
 */
static u64 when_to_retry(const struct hml_term *t)
{
	u64 owed = jiffies_to_nsecs(hml_loan_delay(t->client->loan));

	return (hml_term_waits(t) ? hml_engine_when_to_look(t) : ktime_get_ns()) + owed;
}

/* Engine locked. The reference is the list's. */
static void retry_at(struct hml_term *t, u64 when)
{
	lockdep_assert_held(&t->engine->lock);
	t->paused.expires = when;
	timerqueue_add(&t->engine->paused, &t->paused);
}

/*
 * What found no room has been set aside. There may be some since then, made by the very task:
 * what it put in before was sent behind the section, when there was nobody yet to be told.
 */
static void retry_later(struct hml_engine *e)
{
	smp_mb();		/* B19: set aside before the look at the count */
	if (atomic_read(&e->device->room) != READ_ONCE(e->room_seen))
		mod_delayed_work(hml_workers, &e->retry, 0);
	else
		queue_delayed_work(hml_workers, &e->retry, 1 + nsecs_to_jiffies(HML_STALL_NS));
}

/* The next whose time has come: it has its turn, and its reference is the caller's. */
static struct hml_term *next_stalled(struct hml_engine *e, u64 soon)
{
	struct timerqueue_node *node;
	struct hml_term *t = NULL;

	hml_lock(&e->lock);
	node = timerqueue_getnext(&e->paused);
	if (node && node->expires <= (s64)(ktime_get_ns() + soon)) {
		timerqueue_del(&e->paused, node);
		t = container_of(node, struct hml_term, paused);
	}
	e->serving = t;
	hml_unlock(&e->lock);
	return t;
}

/* Its turn is over. Until then whoever destroys it waits, so this reference is not the last. */
static void stalled_done(struct hml_engine *e, struct hml_term *t)
{
	u64 when = when_to_retry(t);
	struct completion *leaver;
	bool again;

	hml_lock(&e->lock);
	again = hml_tx_pending(&t->core) && !t->dead;
	if (again && RB_EMPTY_NODE(&t->paused.node))
		retry_at(t, when);
	else
		again = false;
	hml_unlock(&e->lock);
	if (!again)
		hml_term_put(t);
	hml_lock(&e->lock);
	leaver = hml_engine_serve_next(e, NULL);
	hml_unlock(&e->lock);
	if (leaver)
		complete(leaver);
}

/* On its user's time, and so little at a time that others need not wait long for their turn. */
static void retry_one(struct hml_term *t)
{
	u64 begin = sched_clock();
	s64 bytes = RETRY_BYTES;

	hml_term_run(t, HML_PASS_BUDGET, &bytes);
	hml_loan_debit(t->client->loan, sched_clock() - begin);
}

void hml_engine_retry(struct work_struct *work)
{
	struct hml_engine *e = container_of(to_delayed_work(work), struct hml_engine, retry);
	u32 room = atomic_read_acquire(&e->device->room);
	/* As in readmit() (B19). */
	u64 soon = room != e->room_seen ? HML_STALL_NS : 0;
	struct hml_term *t;
	u32 n;

	WRITE_ONCE(e->room_seen, room);
	for (n = 0; n < RETRY_BATCH && (t = next_stalled(e, soon)); n++) {
		retry_one(t);
		stalled_done(e, t);
		cond_resched();
	}
	if (READ_ONCE(e->paused.rb_root.rb_root.rb_node))
		retry_later(e);
}

/**
 * hml_engine_take_stalled() - go on with a terminus when its fabric may have room
 * @t: the terminus, with a reference, which has something to send
 *
 * So that a doorbell waits for no peer. The engine's thread does it, or if there is none, a
 * worker: its owner may not ring again.
 */
void hml_engine_take_stalled(struct hml_term *t)
{
	struct hml_engine *e = t->engine;
	u64 when;

	if (e->thread) {
		hml_engine_activate_unlisted(t);
		return;
	}
	when = when_to_retry(t);
	hml_lock(&e->lock);
	if (!t->dead && RB_EMPTY_NODE(&t->paused.node)) {
		refcount_inc(&t->ref);
		retry_at(t, when);
	}
	hml_unlock(&e->lock);
	retry_later(e);
}

/**
 * hml_engine_room() - the fabric has room for packets that it has refused
 * @d: the NIC
 *
 * Also with bottom halves off.
 */
void hml_engine_room(struct hml_device *d)
{
	u32 i;

	atomic_inc(&d->room);
	smp_mb__after_atomic();	/* B19: counted before the looks at who sleeps */
	for (i = 0; i < d->engine_count; i++) {
		struct hml_engine *e = &d->engines[i];

		if (e->thread)
			wake_up(&e->wait);
		else if (READ_ONCE(e->paused.rb_root.rb_root.rb_node))
			mod_delayed_work(hml_workers, &e->retry, 0);
	}
}
