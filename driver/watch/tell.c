// SPDX-License-Identifier: GPL-2.0-only
/*
 * Telling that a slot is gone (H 6.3).
 *
 * The claim is: exactly once. A watch is in one place at a time,
 *
 *  - armed: in the slot's list;
 *  - leaving: in another one of the slot's, because it is gone or has a new key;
 *  - late: told to a full NQ, in the NQ's list, tried again every RETRY_MS, or
 *    later if there are very many of them;
 *  - told: nowhere. It keeps its id until UNWATCH.
 *
 * and moves under hml_watch_lock, under which the entry is appended as well. So
 * nobody tells twice, and after UNWATCH, which takes the lock too, nobody
 * tells. One lock for all NICs: a watch joins two of them, and neither keeps the
 * other's lock alive; and whoever needs it waits for a grace period anyway.
 */
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/workqueue.h>

#include "hml.h"
#include "locked.h"
#include "watch/watching.h"
#include "trace.h"

#define RETRY_MS	10	/* between looks at a full NQ */
#define RETRY_REST	15	/* and so many times as long as the looks take */
#define MOST_REST_MS	2000	/* also if they were held up by others */
#define LATE_BATCH	16	/* watches of an NQ told in one go */
#define OWNER_BATCHES	4	/* told by who ends a slot; the others by a worker */
#define TABLE_BATCH	4096	/* slots looked at in one go */
#define ALL		U64_MAX	/* after every era */

DEFINE_RAW_SPINLOCK(hml_watch_lock);

/* Slots with watches that a worker tells; under hml_watch_lock. */
static LIST_HEAD(crowds);

/* NQs that were full when they were to be told; under hml_watch_lock. */
static LIST_HEAD(late);

/* How many times NICs were set down; under hml_watch_lock. */
static u64 eras;

/* Until the next look, in jiffies; under hml_watch_lock. */
static unsigned long retry_after = 1;

static void tell_crowds(struct work_struct *work);
static DECLARE_WORK(crowd_work, tell_crowds);

static void retry(struct work_struct *work);
static DECLARE_DELAYED_WORK(retry_work, retry);

/* ---- telling ---- */

/* Others want the lock, and this processor; whatever the kernel's preemption. */
static void let_others(void)
{
	hml_unlock(&hml_watch_lock);
	cond_resched();
	hml_lock(&hml_watch_lock);
}

/*
 * Appending to a full queue counts and reports a loss, and here nothing is lost:
 * so look first. If others fill it in between, a report tells of one too many.
 */
static bool has_room(const struct hml_nqueue *nq)
{
	const struct hamlyn_nq_control *control = nq->control->va;
	u32 cursor = smp_load_acquire(&nq->core.cursor);	/* B4: before the consumer */

	return cursor - smp_load_acquire(&control->consumer) <	/* B4: reader is done with it */
	       nq->core.mask;
}

static bool append(const struct hml_watch *w)
{
	const struct hamlyn_nq_entry e = {
		.data = w->cookie,
		.slot = w->slot,
		.index = HAMLYN_NONE,
		.source = w->host,
		.flags = HAMLYN_NQE_PEER_GONE,
	};
	struct hml_nqueue *nq = w->nq;
	struct hml_nic *nic = &nq->context->device->nic;
	bool done;

	if (!has_room(nq))
		return false;
	/* As a packet would: a task that sleeps over an entry after ours is to be woken as well. */
	hml_notify_begin();
	done = hml_nq_append(nic, &nq->core, hml_nq_expect(nic, &nq->core, HML_TAKER_NONE), &e,
			     true);
	hml_notify_end_later();
	if (done)
		trace_hamlyn_peer_gone(nq, w->id, w->host, w->slot);
	return done;
}

/**
 * hml_watch_attach() - from now on a watch is told of the end of a slot, and of its key
 * @s: the slot, which is there
 * @w: the watch, in no list
 *
 * With hml_watch_lock.
 */
void hml_watch_attach(struct hml_slot_object *s, struct hml_watch *w)
{
	lockdep_assert_held(&hml_watch_lock);
	w->era = eras;
	list_add_tail(&w->place, &s->watches);
}

/* Out of wherever it is. */
void hml_watch_detach(struct hml_watch *w)
{
	lockdep_assert_held(&hml_watch_lock);
	list_del_init(&w->place);
	if (w->nq && list_empty(&w->nq->untold))
		list_del_init(&w->nq->late);
}

void hml_watch_tell_one(struct hml_watch *w)
{
	struct hml_nqueue *nq = w->nq;

	lockdep_assert_held(&hml_watch_lock);
	hml_watch_detach(w);
	if (!nq) {
		hml_far_tell(w);
		return;
	}
	if (append(w))
		return;
	list_add_tail(&w->place, &nq->untold);
	if (list_empty(&nq->late)) {
		list_add_tail(&nq->late, &late);
		queue_delayed_work(hml_workers, &retry_work, retry_after);
	}
}

/* Tell those that an NQ has room for. Return: false if it is full. */
static bool tell_late(struct hml_nqueue *nq)
{
	struct hml_watch *w;
	u32 i;

	lockdep_assert_held(&hml_watch_lock);
	for (i = 0; i < LATE_BATCH; i++) {
		hml_lock_step();
		w = list_first_entry_or_null(&nq->untold, struct hml_watch,
					     place);
		if (!w)
			break;
		if (!append(w))
			return false;
		hml_watch_detach(w);
	}
	return true;
}

/*
 * Its work is bounded by the number of NQs that are full, which users pay for,
 * not by that of their watches; and by its rests, for the processor's time is nobody's.
 * The lock may be let go between any two NQs: UNWATCH takes them out of any list that
 * they are in. Those that come meanwhile have their turn the next time, or there would
 * be no end of it.
 */
static void retry(struct work_struct *work)
{
	u64 begin = ktime_get_ns();
	struct hml_nqueue *nq;
	LIST_HEAD(tried);

	hml_lock(&hml_watch_lock);
	list_splice_init(&late, &tried);
	while ((nq = list_first_entry_or_null(&tried, struct hml_nqueue,
					      late))) {
		if (!tell_late(nq))
			list_move_tail(&nq->late, &late);
		let_others();
	}
	retry_after = msecs_to_jiffies(RETRY_MS) +
		      min(nsecs_to_jiffies(RETRY_REST * (ktime_get_ns() - begin)),
			  msecs_to_jiffies(MOST_REST_MS));
	if (!list_empty(&late))
		mod_delayed_work(hml_workers, &retry_work, retry_after);
	hml_unlock(&hml_watch_lock);
}

/*
 * Tell those in a list that were armed before an era: they come first.
 * Return: whether there may be more than a batch of them.
 */
static bool tell_some(struct list_head *watches, u64 before)
{
	struct hml_watch *w;
	u32 told = 0;

	lockdep_assert_held(&hml_watch_lock);
	while (told < LATE_BATCH &&
	       (w = list_first_entry_or_null(watches, struct hml_watch,
					     place))) {
		if (w->era >= before)
			break;
		hml_lock_step();
		hml_watch_tell_one(w);
		told++;
	}
	return told == LATE_BATCH;
}

/* ---- the end of a slot, and of a key ---- */

/*
 * A worker's time is nobody's. So the watcher's account pays for it, not the owner's: the time
 * is measured, and taken from what engines may still work for that user.
 */
static void tell_and_charge(struct list_head *watches)
{
	struct hml_watch *w;
	u64 begin;
	u32 i;

	lockdep_assert_held(&hml_watch_lock);
	for (i = 0; i < LATE_BATCH; i++) {
		struct hml_loan *loan;

		w = list_first_entry_or_null(watches, struct hml_watch, place);
		if (!w)
			break;
		hml_lock_step();
		loan = w->nq ? w->nq->context->loan : NULL;
		begin = sched_clock();
		hml_watch_tell_one(w);
		if (loan)
			hml_loan_debit(loan, sched_clock() - begin);
	}
}

/*
 * In turn, a batch of each slot, so that a slot with few watches does not wait for one with
 * many. It ends: each watch is told once, and a user has no more than HML_USER_WATCHES.
 */
static void tell_crowds(struct work_struct *work)
{
	struct hml_slot_object *s;
	struct hml_device *d;

	hml_lock(&hml_watch_lock);
	while ((s = list_first_entry_or_null(&crowds, struct hml_slot_object,
					     crowd))) {
		tell_and_charge(&s->leaving);
		if (!list_empty(&s->leaving)) {
			list_move_tail(&s->crowd, &crowds);
			let_others();
			continue;
		}
		list_del_init(&s->crowd);
		d = s->gone;
		hml_unlock(&hml_watch_lock);
		if (d) {
			hml_slot_free(d, s);
			put_device(&d->dev);
		}
		cond_resched();
		hml_lock(&hml_watch_lock);
	}
	hml_unlock(&hml_watch_lock);
}

/*
 * Whoever has a key may watch by it up to HML_USER_WATCHES times, and so may every other user.
 * So the owner tells some, and leaves the others to a worker.
 */
static void tell_leaving(struct hml_slot_object *s)
{
	bool more = true;
	u32 i;

	for (i = 0; more && i < OWNER_BATCHES; i++) {
		hml_lock(&hml_watch_lock);
		more = tell_some(&s->leaving, ALL);
		hml_unlock(&hml_watch_lock);
		cond_resched();
	}
	hml_lock(&hml_watch_lock);
	if (!list_empty(&s->leaving) && list_empty(&s->crowd)) {
		list_add_tail(&s->crowd, &crowds);
		queue_work(hml_workers, &crowd_work);
	}
	hml_unlock(&hml_watch_lock);
}

void hml_watch_init_slot(struct hml_slot_object *s)
{
	INIT_LIST_HEAD(&s->watches);
	INIT_LIST_HEAD(&s->old);
	INIT_LIST_HEAD(&s->leaving);
	INIT_LIST_HEAD(&s->crowd);
}

/**
 * hml_watch_tell() - a slot was unlinked from the NIC's table
 * @s: the slot; its number is not in use again, and it is not freed
 */
void hml_watch_tell(struct hml_slot_object *s)
{
	hml_lock(&hml_watch_lock);
	list_splice_tail_init(&s->watches, &s->leaving);
	hml_unlock(&hml_watch_lock);
	tell_leaving(s);
}

/**
 * hml_watch_leave() - a slot is about to be freed
 * @s: the slot, after hml_watch_tell()
 *
 * Return: true if that is done later, by hml_slot_free(), when all its watches are told.
 */
bool hml_watch_leave(struct hml_slot_object *s)
{
	struct hml_device *d = s->context->device;
	bool later;

	hml_lock(&hml_watch_lock);
	later = !list_empty(&s->crowd);
	if (later) {
		get_device(&d->dev);
		s->gone = d;
	}
	hml_unlock(&hml_watch_lock);
	return later;
}

/**
 * hml_watch_rekey() - replace the keys of a slot
 * @s: the slot
 * @key: its new key
 * @ticket_key: its new ticket key, different from the old one
 *
 * Under the lock, so that WATCH sees both old, and is told, or both new. When
 * no packet under the old keys can land any more call hml_watch_tell_rekeyed().
 */
void hml_watch_rekey(struct hml_slot_object *s, u64 key, u64 ticket_key)
{
	hml_context_assert_locked(s->context);
	hml_lock(&hml_watch_lock);
	WRITE_ONCE(s->core.key, key);
	WRITE_ONCE(s->core.ticket_key, ticket_key);
	list_splice_tail_init(&s->watches, &s->old);
	hml_unlock(&hml_watch_lock);
}

/**
 * hml_watch_tell_rekeyed() - a slot was rekeyed
 * @s: the slot
 *
 * Those with the new key are armed, and not told.
 */
void hml_watch_tell_rekeyed(struct hml_slot_object *s)
{
	hml_context_assert_locked(s->context);
	hml_lock(&hml_watch_lock);
	list_splice_tail_init(&s->old, &s->leaving);
	hml_unlock(&hml_watch_lock);
	tell_leaving(s);
}

/* ---- the end of a NIC ---- */

/* Everybody who ends something waits for a section: a batch of one slot in each. */
static bool tell_number(struct hml_device *d, u32 number, u64 before)
{
	struct hml_slot_object *s;
	struct hml_slot *slot;
	bool more = false;

	hml_section_begin();
	slot = hml_port_slot(&d->nic.port, number);
	if (slot) {
		s = container_of(slot, struct hml_slot_object, core);
		if (!list_empty(&s->watches)) {
			hml_lock(&hml_watch_lock);
			more = tell_some(&s->watches, before);
			hml_unlock(&hml_watch_lock);
		}
	}
	hml_section_end();
	return more;
}

/* Another one may be about to append for a watch that it has taken out of its list. */
static void wait_told(void)
{
	hml_lock(&hml_watch_lock);
	hml_unlock(&hml_watch_lock);
}

/**
 * hml_watch_down() - a NIC was set down: so are all its slots
 *
 * Every WATCH that has had the lock before is of an older era; every one that gets it
 * later sees that the NIC is down, until it is up again.
 *
 * Return: the era that begins with it.
 */
u64 hml_watch_down(void)
{
	u64 era;

	hml_lock(&hml_watch_lock);
	era = ++eras;
	hml_unlock(&hml_watch_lock);
	return era;
}

/**
 * hml_watch_tell_all() - tell who watched any slot of a NIC
 * @d: the NIC; a reference is held. It may be up again, or be deleted
 * @era: of hml_watch_down(): watches that were made since are not told
 */
void hml_watch_tell_all(struct hml_device *d, u64 era)
{
	u32 max = d->nic.port.max_slots;
	u32 number;

	for (number = 0; number < max; number++) {
		while (tell_number(d, number, era))
			cond_resched();
		if (!(number % TABLE_BATCH))
			cond_resched();
	}
	wait_told();
}

/* Module is going away, and there is no context any more. */
void hml_watch_exit(void)
{
	flush_work(&crowd_work);
	cancel_delayed_work_sync(&retry_work);
}
