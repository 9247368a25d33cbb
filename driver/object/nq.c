// SPDX-License-Identifier: GPL-2.0-only
/* Notification queues of a context, and sleeping on them. */
#include <linux/hrtimer.h>
#include <linux/log2.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/overflow.h>
#include <linux/poll.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/time_namespace.h>

#include "hml.h"
#include "locked.h"
#include "trace.h"

/*
 * How many sleep is up to an NQ's owner, and what wakes them may be an engine that
 * serves all: so it wakes no more than a few, and none that poll, whose epolls may wake
 * others in turn. A worker does the others, some at a time, for interrupts are off.
 * Pollers cannot be woken in parts: hence the limit, which is as high as epoll's own.
 */
#define FEW_SLEEPERS	16
#define SLEEPERS_AT_ONCE	64
#define MOST_POLLS	1024

/* Of no processor: what takes long here delays nobody else's work. */
struct workqueue_struct *hml_workers;

/* Context locked. An NQ of it, or NULL. */
struct hml_nqueue *hml_nq_find(struct hml_context *c, u32 id)
{
	hml_context_assert_locked(c);
	return xa_load(&c->nqs, id);
}

static struct hml_nqueue *nq_get(struct hml_context *c, u32 id)
{
	struct hml_nqueue *nq;

	mutex_lock(&c->lock);
	nq = hml_nq_find(c, id);
	if (nq)
		refcount_inc(&nq->ref);
	mutex_unlock(&c->lock);
	return nq;
}

static void nq_free(struct work_struct *work)
{
	struct hml_nqueue *nq = container_of(work, struct hml_nqueue, freeing);
	struct hml_context *c = nq->context;

	hml_ring_put(nq->ring);
	hml_ring_put(nq->control);
	hml_user_uncharge_small(c->device, hml_payer(c), hml_price(sizeof(*nq)));
	kfree(nq);
	hml_context_put(c);
}

void hml_nq_put(struct hml_nqueue *nq)
{
	if (refcount_dec_and_test(&nq->ref))
		nq_free(&nq->freeing);
}

/* For engines: they serve others, and to free takes long, and locks that are everybody's. */
void hml_nq_put_later(struct hml_nqueue *nq)
{
	if (refcount_dec_and_test(&nq->ref))
		queue_work(hml_workers, &nq->freeing);
}

/* ---- waking ---- */

/* How many there are, up to @most. The queue is locked. */
static u32 count(const struct wait_queue_head *head, u32 most)
{
	struct list_head *sleeper;
	u32 n = 0;

	list_for_each(sleeper, &head->head)
		if (++n == most)
			break;
	return n;
}

static u32 lock_and_count(struct wait_queue_head *head, u32 most)
{
	unsigned long flags;
	u32 n;

	spin_lock_irqsave(&head->lock, flags);
	n = count(head, most);
	spin_unlock_irqrestore(&head->lock, flags);
	return n;
}

/*
 * How many there are if they are few, or -1: to wait for a task that wakes or
 * counts them now is as bad. Under the lock, so that whoever comes later finds the
 * entry that is there by now.
 */
static int few(struct wait_queue_head *head)
{
	unsigned long flags;
	u32 n;

	/* There this lock sleeps, and whoever sleeps or polls may hold it without a processor. */
	if (IS_ENABLED(CONFIG_PREEMPT_RT))
		return -1;
	if (!spin_trylock_irqsave(&head->lock, flags))
		return -1;
	n = count(head, FEW_SLEEPERS + 1);
	spin_unlock_irqrestore(&head->lock, flags);
	return n <= FEW_SLEEPERS ? n : -1;
}

/*
 * For poll(): do too many poll? For good: epoll does not say whom it has not let in
 * when it looks again, and that one would sleep for ever.
 */
bool hml_nq_crowd(struct wait_queue_head *head, bool *crowded)
{
	if (READ_ONCE(*crowded))
		return true;
	if (lock_and_count(head, MOST_POLLS) < MOST_POLLS)
		return false;
	WRITE_ONCE(*crowded, true);
	return true;
}

bool hml_nq_crowded(struct hml_context *c)
{
	return hml_nq_crowd(&c->wait, &c->crowded);
}

/*
 * Tasks that come meanwhile sleep at the end of the queue. How many there are is not counted
 * one by one, with interrupts off: each has a reference.
 */
static void wake_sleepers(struct work_struct *work)
{
	struct hml_nqueue *nq = container_of(work, struct hml_nqueue, waking);
	u32 n = refcount_read(&nq->ref);
	u64 begin = sched_clock();
	u32 woken;

	for (woken = 0; woken < n && wq_has_sleeper(&nq->wait);
	     woken += SLEEPERS_AT_ONCE) {
		wake_up_nr(&nq->wait, SLEEPERS_AT_ONCE);
		cond_resched();
	}
	/* Never late: each that is woken pays more for coming back. */
	hml_loan_debit(nq->context->loan, sched_clock() - begin);
	hml_nq_put(nq);
}

/*
 * Without saying for what: so everybody comes and looks, which arms us again. A multishot
 * poll of io_uring would believe what it is told, and hear of nothing more. Everybody:
 * also of those that are exclusive. The one that is woken may be killed before it looks,
 * and nobody would be woken ever after.
 */
static void wake_up_polls(struct hml_context *c)
{
	wake_up_all(&c->wait);
}

/* Whoever closes the file waits for what is late. */
static unsigned long wake_delay(struct hml_context *c)
{
	return READ_ONCE(c->closing) ? 0 : hml_loan_delay(c->loan);
}

/*
 * A worker's time is nobody's, and an entry of an epoll stays here when it is woken: whoever
 * sleeps by many of them has all of them woken for the price of coming back with one. So it
 * is the owner's to pay.
 */
void hml_nq_wake_polls(struct work_struct *work)
{
	struct hml_context *c = container_of(to_delayed_work(work),
					     struct hml_context, waking);
	unsigned long delay = wake_delay(c);
	u64 begin = sched_clock();

	if (delay && queue_delayed_work(hml_workers, &c->waking, delay))
		return;
	if (!delay) {
		wake_up_polls(c);
		hml_loan_debit(c->loan, sched_clock() - begin);
	}
	hml_context_put(c);
	/* The end of the module waits for its workers, so also for what follows here. */
	module_put(THIS_MODULE);
}

/* A worker that is queued already has a reference, and sees what we have appended. */
static void wake_sleepers_later(struct hml_nqueue *nq)
{
	refcount_inc(&nq->ref);
	if (!queue_work(hml_workers, &nq->waking))
		/* Not the last: the caller has one. */
		refcount_dec(&nq->ref);
}

/* A timer may be running then, and the module must not end before. Nobody polls when it does. */
static void wake_polls_after(struct hml_context *c, unsigned long delay)
{
	if (!try_module_get(THIS_MODULE))
		return;
	refcount_inc(&c->ref);
	if (queue_delayed_work(hml_workers, &c->waking, delay))
		return;
	refcount_dec(&c->ref);
	module_put(THIS_MODULE);
}

static __always_inline void wake_waiters(struct hml_nqueue *nq, bool later)
{
	int n = few(&nq->wait);

	if (n < 0 || (n && later))
		wake_sleepers_later(nq);
	else if (n)
		wake_up_all(&nq->wait);
}

static void wake_polls_later(struct hml_context *c)
{
	wake_polls_after(c, wake_delay(c));
}

/* The caller has a reference. */
static void wake(struct hml_nqueue *nq, bool later)
{
	struct hml_context *c = nq->context;
	int n;

	trace_hamlyn_wake(nq);
	wake_waiters(nq, later);
	n = few(&c->wait);
	/* As with sockets, a process pays for whom it sends to. Engines do not. */
	if (n < 0 || (n && (later || current->flags & PF_KTHREAD)))
		wake_polls_later(c);
	else if (n)
		wake_up_polls(c);
}

/**
 * hml_nq_wake() - wake whoever has armed an NQ, and sleeps
 * @nq: the NQ, with a reference
 * @later: in the background; else only if there are many
 *
 * The task that clears @armed wakes: one wake for each time it was armed. Between the two
 * nobody else can, so no task may lose the processor there. On PREEMPT_RT, where
 * locks of wait queues sleep, a worker wakes.
 */
void hml_nq_wake(struct hml_nqueue *nq, bool later)
{
	preempt_disable();
	if (xchg(&nq->core.armed, 0))
		wake(nq, later);
	preempt_enable();
}

/* In a softirq: a worker wakes those who poll, and looks at their account, which has a lock. */
void hml_nq_wake_brief(struct hml_nqueue *nq)
{
	if (!xchg(&nq->core.armed, 0))
		return;
	trace_hamlyn_wake(nq);
	wake_waiters(nq, false);
	if (few(&nq->context->wait))
		wake_polls_after(nq->context, 0);
}

/* ---- making and ending ---- */

static int alloc_rings(struct hml_nqueue *nq, u32 entries)
{
	struct hamlyn_nq_ring *ring;

	nq->ring = hml_ring_alloc(nq->context, sizeof(*ring) +
				  entries * sizeof(struct hamlyn_nq_entry));
	if (IS_ERR(nq->ring))
		return PTR_ERR(nq->ring);
	nq->control = hml_ring_alloc(nq->context,
				     sizeof(struct hamlyn_nq_control));
	if (IS_ERR(nq->control))
		return PTR_ERR(nq->control);
	ring = nq->ring->va;
	ring->entries = entries;
	nq->core.mask = entries - 1;
	nq->core.ring = ring;
	nq->core.entries = ring + 1;
	nq->core.control = nq->control->va;
	return 0;
}

static struct hml_nqueue *nq_new(struct hml_context *c, u32 entries)
{
	int err = hml_user_charge_small(c, hml_price(sizeof(struct hml_nqueue)));
	struct hml_nqueue *nq;

	if (err)
		return ERR_PTR(err);
	nq = kzalloc(sizeof(*nq), GFP_KERNEL_ACCOUNT);
	if (!nq) {
		hml_user_uncharge_small(c->device, hml_payer(c),
					hml_price(sizeof(*nq)));
		return ERR_PTR(-ENOMEM);
	}
	nq->context = c;
	hml_context_get(c);
	refcount_set(&nq->ref, 1);
	INIT_LIST_HEAD(&nq->untold);
	INIT_LIST_HEAD(&nq->late);
	init_waitqueue_head(&nq->wait);
	INIT_WORK(&nq->waking, wake_sleepers);
	INIT_WORK(&nq->freeing, nq_free);
	/* Somebody may be in poll() already, who has not armed us. */
	nq->core.armed = 1;
	err = alloc_rings(nq, entries);
	if (err) {
		hml_nq_put(nq);
		return ERR_PTR(err);
	}
	return nq;
}

int hml_nq_create(struct hml_context *c, struct hamlyn_nq_create *arg)
{
	struct hml_nqueue *nq;
	int err;

	if (!is_power_of_2(arg->entries) || arg->entries < 2 ||
	    arg->entries > HML_MAX_NQ_ENTRIES) {
		hml_explain(c, "%u entries: must be a power of two, 2 to %u",
			    arg->entries, HML_MAX_NQ_ENTRIES);
		return -EINVAL;
	}
	nq = nq_new(c, arg->entries);
	if (IS_ERR(nq))
		return PTR_ERR(nq);
	arg->entries_offset = sizeof(struct hamlyn_nq_ring);
	arg->ring_length = hml_ring_bytes(nq->ring);
	arg->control_length = hml_ring_bytes(nq->control);
	mutex_lock(&c->lock);
	/* From here on another thread may destroy it: it is not ours. */
	err = xa_alloc(hml_table(c, &c->nqs), &nq->id, nq,
		       XA_LIMIT(0, HML_MAX_IDS), GFP_KERNEL_ACCOUNT);
	arg->nq = nq->id;
	if (!err) {
		trace_hamlyn_nq_create(nq);
		atomic_inc(&c->device->nq_count);
	}
	mutex_unlock(&c->lock);
	if (err) {
		hml_nq_put(nq);
		return err == -EBUSY ? -ENOSPC : err;
	}
	hml_changed();
	arg->ring_offset = hml_mmap_offset(HML_REGION_NQ_RING, arg->nq);
	arg->control_offset = hml_mmap_offset(HML_REGION_NQ_CONTROL, arg->nq);
	return 0;
}

int hml_nq_destroy(struct hml_context *c, u32 id)
{
	struct hml_nqueue *nq;
	int err = 0;

	mutex_lock(&c->lock);
	nq = hml_nq_find(c, id);
	if (!nq)
		err = -ENOENT;
	else if (nq->users)
		err = -EBUSY;
	else
		xa_erase(&c->nqs, id);
	if (err == -EBUSY)
		hml_explain(c, "NQ %u is still used by %u slots and watches",
			    id, nq->users);
	mutex_unlock(&c->lock);
	if (err)
		return err;
	trace_hamlyn_nq_destroy(nq);
	WRITE_ONCE(nq->dead, true);
	wake(nq, false);
	atomic_dec(&c->device->nq_count);
	hml_nq_put(nq);
	hml_changed();
	return 0;
}

/* Context is going away: no slot notifies, and no call is in progress. */
void hml_nq_destroy_all(struct hml_context *c)
{
	struct hml_nqueue *nq;
	unsigned long id;

	xa_for_each(&c->nqs, id, nq) {
		trace_hamlyn_nq_destroy(nq);
		atomic_dec(&c->device->nq_count);
		hml_nq_put(nq);
		cond_resched();
	}
	xa_destroy(&c->nqs);
}

/* ---- sleeping ---- */

/* Ask for a wake, then look: the other half of B5 is in hml_nq_append(). */
static bool arm(struct hml_nqueue *nq, u32 position)
{
	WRITE_ONCE(nq->core.armed, 1);
	smp_mb();		/* B5: armed before the last look at the ring */
	return hml_nq_ready(&nq->context->device->nic, &nq->core, position);
}

/**
 * hml_nq_arm_all() - for poll(): arm all NQs of a context
 * @c: the context
 *
 * Return: true if any has an entry that the application has not taken.
 */
bool hml_nq_arm_all(struct hml_context *c)
{
	struct hml_nqueue *nq;
	unsigned long id;
	bool ready = false;

	mutex_lock(&c->lock);
	xa_for_each(hml_table(c, &c->nqs), id, nq) {
		struct hamlyn_nq_control *control = nq->control->va;

		ready |= arm(nq, READ_ONCE(control->consumer));
	}
	mutex_unlock(&c->lock);
	return ready;
}

/* CLOCK_MONOTONIC as the caller's time namespace has it, to the host's. */
static s64 host_time(s64 deadline)
{
#ifdef CONFIG_TIME_NS
	s64 offset =
		timespec64_to_ns(&current->nsproxy->time_ns->offsets.monotonic);

	if (deadline < 0)
		return deadline;
	if (check_sub_overflow(deadline, offset, &deadline))
		return KTIME_MAX;
	return max_t(s64, deadline, 0);
#else
	return deadline;
#endif
}

static int sleep_on(struct hml_nqueue *nq, u32 position, s64 deadline)
{
	ktime_t expires = ns_to_ktime(deadline);
	DEFINE_WAIT(wait);
	bool late = false;
	int ret;

	for (;;) {
		prepare_to_wait_exclusive(&nq->wait, &wait, TASK_INTERRUPTIBLE);
		ret = 0;
		if (arm(nq, position))
			break;
		ret = -ENOENT;
		if (READ_ONCE(nq->dead))
			break;
		ret = -ETIMEDOUT;
		if (late || (deadline >= 0 && (s64)ktime_get_ns() >= deadline))
			break;
		ret = -ERESTARTSYS;
		if (signal_pending(current))
			break;
		if (deadline < 0)
			schedule();
		else
			late = !schedule_hrtimeout_range(&expires, 0,
							 HRTIMER_MODE_ABS);
	}
	finish_wait(&nq->wait, &wait);
	return ret;
}

/*
 * Whoever sleeps for an answer may have posted what engines send by and by only, because the
 * user has used up what it was lent: the task does it itself, on its own time.
 */
static void settle(struct hml_context *c, const struct hml_nqueue *nq,
		   u32 position, s64 deadline)
{
	while (hml_loan_broke(c->loan) &&
	       !hml_nq_ready(&c->device->nic, &nq->core, position) &&
	       !READ_ONCE(nq->dead) && !signal_pending(current) &&
	       (deadline < 0 || (s64)ktime_get_ns() < deadline) &&
	       hml_doorbell_ring_all(c) > 0)
		cond_resched();
}

/*
 * What found no room on its way to another host when we rang is the engine's, which may do it on
 * the trickle only: for so long we ring again and again.
 */
static s64 until(struct hml_context *c, s64 deadline)
{
	s64 soon;

	if (likely(!hml_loan_broke(c->loan)) || !hml_doorbell_pending(c))
		return deadline;
	soon = (s64)ktime_get_ns() + NSEC_PER_MSEC;
	return deadline < 0 ? soon : min(deadline, soon);
}

int hml_nq_wait(struct hml_context *c, const struct hamlyn_wait *arg)
{
	struct hml_nqueue *nq;
	s64 deadline, soon;
	int ret;

	if (arg->flags)
		return -EINVAL;
	nq = nq_get(c, arg->nq);
	if (!nq)
		return -ENOENT;
	deadline = host_time(arg->deadline_ns);
	do {
		settle(c, nq, arg->position, deadline);
		soon = until(c, deadline);
		ret = sleep_on(nq, arg->position, soon);
	} while (ret == -ETIMEDOUT && soon != deadline);
	hml_nq_put(nq);
	return ret;
}

/* ---- the module ---- */

int __init hml_nqs_init(void)
{
	hml_workers = alloc_workqueue("hamlyn", WQ_UNBOUND, 0);
	return hml_workers ? 0 : -ENOMEM;
}

/* There are no NICs any more. */
void hml_nqs_exit(void)
{
	destroy_workqueue(hml_workers);
}
