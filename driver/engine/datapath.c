// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a message passes through: holding a terminus, and sections of
 * work on it. Compiled as a part of build_datapath.c.
 */
#include <linux/error-injection.h>
#include <linux/hrtimer.h>
#include <linux/kasan-checks.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>
#include <linux/swait.h>
#include <linux/uaccess.h>

#include "hml.h"
#include "fabric/peer.h"
#include "trace.h"

#define SECTION_BYTES	SZ_64K	/* payload moved without preemption */

static bool hold_try(struct hml_term *t)
{
	/* Full barrier whether it succeeds or not: B7. */
	smp_mb__before_atomic();
	return !test_and_set_bit(0, &t->held);
}

/*
 * Whoever lets go wakes one that waits, after a full barrier:
 *
 *	waits				lets go
 *	  counted, queued in @freed	  held = 0
 *	  full barrier			  full barrier
 *	  is it held?			  is anybody counted?
 *
 * so one of the two sees the other, and no wake-up is lost. It goes to one, who may not take what
 * it was woken for: a signal came, or the terminus is dead. So whoever leaves without the terminus
 * wakes the next. If that one finds it held by a task that came just then, it queues anew, and is
 * woken when that one lets go. Doorbells queue elsewhere, in @rung: they take nothing, and one that
 * has lost its processor would keep the wake-up from those that do. Simple wait queues: their lock
 * is raw, so that one may wake in a section, where nobody needs a reference to the terminus.
 */
static int wait_until_held(struct hml_term *t, unsigned int state, bool alive)
{
	DECLARE_SWAITQUEUE(wait);
	int err = 0;

	atomic_inc(&t->waiters);
	for (;;) {
		prepare_to_swait_exclusive(&t->freed, &wait, state);
		if (hold_try(t))
			break;
		if (alive && READ_ONCE(t->dead))
			err = -ENOENT;
		else if (signal_pending_state(state, current))
			err = -ERESTARTNOINTR;
		if (err)
			break;
		schedule();
	}
	finish_swait(&t->freed, &wait);
	atomic_dec(&t->waiters);
	if (err)
		swake_up_one(&t->freed);
	return err;
}

static int hold(struct hml_term *t, unsigned int state)
{
	int err = 0;

	atomic_inc(&t->wanted);
	if (!hold_try(t))
		err = wait_until_held(t, state, true);
	atomic_dec(&t->wanted);
	return err;
}

/*
 * A doorbell while somebody else holds it, or is about to: until that one lets go, but not for
 * longer than a caller with a deadline may wait in a call that has none.
 */
static void wait_a_little(struct hml_term *t)
{
	ktime_t time = ns_to_ktime(NSEC_PER_MSEC);
	DECLARE_SWAITQUEUE(wait);

	atomic_inc(&t->waiters);
	prepare_to_swait_exclusive(&t->rung, &wait, TASK_INTERRUPTIBLE);
	if ((READ_ONCE(t->held) || atomic_read(&t->wanted)) && !READ_ONCE(t->dead) &&
	    !signal_pending(current))
		schedule_hrtimeout_range(&time, 50 * NSEC_PER_USEC, HRTIMER_MODE_REL);
	finish_swait(&t->rung, &wait);
	atomic_dec(&t->waiters);
}

/**
 * hml_term_hold() - wait until the terminus is ours
 * @t: the terminus
 *
 * Whoever holds it lets go after a few packets, and nobody else gets it.
 *
 * Return: 0, -ENOENT if it was destroyed meanwhile, -ERESTARTNOINTR if a signal is to be
 * handled first: the holder before us may wait for the end of a message, and neither SIGSTOP
 * nor the machine's suspending may wait for that.
 */
int hml_term_hold(struct hml_term *t)
{
	return hold(t, TASK_INTERRUPTIBLE);
}

/* The same for what cannot be tried again: an error only if it, or we, will be no more. */
int hml_term_hold_killable(struct hml_term *t)
{
	return hold(t, TASK_KILLABLE);
}

/*
 * Destroyed, and removed from the engine: hold it, and never let go. Also if we were
 * killed: after this what it sends from is given back. It stays wanted: nobody is to
 * send by it any more.
 */
void hml_term_retire(struct hml_term *t)
{
	atomic_inc(&t->wanted);
	/* Those that wait for it, or hold it and wait for a pause to end, see that it is dead. */
	swake_up_all(&t->freed);
	if (!hold_try(t))
		wait_until_held(t, TASK_UNINTERRUPTIBLE, false);
}

/* One of those that want it, and one doorbell; other doorbells wait no longer than a moment. */
static noinline void let_in(struct hml_term *t)
{
	swake_up_one(&t->freed);
	swake_up_one(&t->rung);
}

static __always_inline void release(struct hml_term *t)
{
	clear_bit_unlock(0, &t->held);
	smp_mb__after_atomic();	/* B7: let go before the looks at waiters and queue */
	if (unlikely(atomic_read(&t->waiters)))
		let_in(t);
}

void hml_term_release(struct hml_term *t)
{
	release(t);
}

/* What is to be done when preemption is on again: NQs to wake, at most one a packet. */
struct wakes {
	u32 count;
	struct hml_peer *flush;
	struct hml_nqueue *nqs[HML_PASS_BUDGET * HML_PACKETS_PER_XMIT];
};

static DEFINE_PER_CPU(struct wakes, wakes);

/*
 * In rx, between hml_notify_begin() and end: the slot keeps the NQ. It stays armed until
 * we wake, for others who notify it: after the section we may lose the processor.
 */
void hml_port_nq_wake(const struct hml_port *port, struct hml_nq *core)
{
	struct hml_nqueue *nq = container_of(core, struct hml_nqueue, core);
	struct wakes *w = this_cpu_ptr(&wakes);

	if (w->count && w->nqs[w->count - 1] == nq)
		return;
	if (WARN_ON_ONCE(w->count == ARRAY_SIZE(w->nqs)))
		return;
	refcount_inc(&nq->ref);
	w->nqs[w->count++] = nq;
	__this_cpu_write(hml_passage.noted, 1);
}

/**
 * hml_notify_flush() - give a peer's socket what there is, when preemption is on again
 * @p: the peer, in whose ring the section has put a packet
 *
 * Messages in one section mostly go to one host. Of the others a worker takes care.
 */
void hml_notify_flush(struct hml_peer *p)
{
	struct wakes *w = this_cpu_ptr(&wakes);

	if (w->flush == p)
		return;
	if (w->flush) {
		queue_work(hml_wire_workers, &p->io);
		return;
	}
	refcount_inc(&p->ref);
	w->flush = p;
	__this_cpu_write(hml_passage.noted, 1);
}

/**
 * hml_notify_begin() - packets will land, and NQ entries be appended
 *
 * Whoever unlinks a slot or replaces a key waits for us. In
 * KICK we are an ordinary process, of any user and any priority, and while we
 * fill an NQ entry everybody's later ones wait behind it. So that nobody waits
 * until that process gets a processor, preemption is off, first and last.
 */
void hml_notify_begin(void)
{
	hml_section_begin();
}

/* What the section has noted is the caller's, and the section ends. */
static __always_inline void take_noted(struct wakes *w)
{
	struct wakes *noted = this_cpu_ptr(&wakes);

	w->count = noted->count;
	memcpy(w->nqs, noted->nqs, noted->count * sizeof(noted->nqs[0]));
	w->flush = noted->flush;
	noted->count = 0;
	noted->flush = NULL;
	__this_cpu_write(hml_passage.noted, 0);
	hml_section_end();
}

/* With locks held it is a worker's. */
static void flush_noted(struct hml_peer *p, bool later)
{
	if (later)
		queue_work(hml_wire_workers, &p->io);
	else
		hml_outbox_gather(p);
	hml_peer_put(p);
}

static noinline void wake_noted(bool later)
{
	struct wakes woken;
	u32 i;

	take_noted(&woken);
	if (woken.flush)
		flush_noted(woken.flush, later);
	for (i = 0; i < woken.count; i++) {
		hml_nq_wake(woken.nqs[i], later);
		if (current->flags & PF_KTHREAD)
			hml_nq_put_later(woken.nqs[i]);
		else
			hml_nq_put(woken.nqs[i]);
	}
}

static noinline void end_with_more(void)
{
	if (__this_cpu_read(hml_passage.noted))
		wake_noted(false);
	else
		hml_section_end();
}

/**
 * hml_notify_end() - wake who is to be woken for what was appended
 *
 * After the section, for these wake-ups' locks may sleep (PREEMPT_RT), and we
 * may lose the processor. Not under a lock: it may be us who free an NQ.
 */
void hml_notify_end(void)
{
	if (unlikely(__this_cpu_read(hml_passage.more))) {
		end_with_more();
		return;
	}
	hml_section_turn();	/* B8: all of the section before it is even */
	preempt_enable();
}

/* The same by a worker, for callers that have a lock, and know that somebody keeps the NQ. */
void hml_notify_end_later(void)
{
	wake_noted(true);
}

/* The same in a softirq, which receives only: nothing is freed there, nor sent. */
void hml_notify_end_brief(void)
{
	struct wakes woken;
	u32 i;

	if (!__this_cpu_read(hml_passage.noted)) {
		hml_section_end();
		return;
	}
	take_noted(&woken);
	for (i = 0; i < woken.count; i++) {
		hml_nq_wake_brief(woken.nqs[i]);
		hml_nq_put_later(woken.nqs[i]);
	}
}

/*
 * __flatten below: with all of hml_tx_run() that it calls, the other NIC's
 * hml_rx() too.
 */

/* As hml_tx_run(). */
static noinline u32 tx_run_traced(struct hml_term *t, u32 budget, s64 *bytes)
{
	u64 before = t->stats.bytes;
	u32 sent = hml_tx_run(&t->device->nic, &t->core, budget, bytes);

	trace_hamlyn_work(t, sent, t->stats.bytes - before);
	return sent;
}

/* What may be done in one section, terminus held. */
static __always_inline u32 work(struct hml_term *t, u32 budget, s64 *bytes)
{
	budget = min(budget, t->device->pass_budget);
	if (trace_hamlyn_work_enabled())
		return tx_run_traced(t, budget, bytes);
	return hml_tx_run(&t->device->nic, &t->core, budget, bytes);
}

/* Not in a section: events may sleep. */
static noinline void tell_paused(struct hml_term *t)
{
	trace_hamlyn_pause(t);
	if (hml_event_again(&container_of(t->core.sender.guard.bucket,
					  struct hml_user, bucket)->paused_told))
		hml_event_paused(t);
}

/**
 * hml_pass_budget() - most packets of one section
 * @packet_size: most payload bytes of one
 *
 * Return: as many as take about as long as to copy SECTION_BYTES, or one.
 */
u32 hml_pass_budget(u32 packet_size)
{
	return clamp_t(u32, SECTION_BYTES / packet_size, 1, HML_PASS_BUDGET);
}

/**
 * hml_term_work() - let the core work on a terminus
 * @t: the terminus, held
 * @budget: most packets; fewer are sent if they would take long
 * @bytes: most bytes, as for hml_tx_run()
 *
 * One section.
 *
 * Return: packets sent.
 */
u32 __flatten hml_term_work(struct hml_term *t, u32 budget, s64 *bytes)
{
	u64 pauses = t->stats.pauses;
	u32 sent;

	hml_notify_begin();
	sent = work(t, budget, bytes);
	hml_notify_end();
	if (unlikely(t->stats.pauses != pauses))
		tell_paused(t);
	return sent;
}

/* Held back for guessing, with something to send. */
bool hml_term_paused(const struct hml_term *t)
{
	return READ_ONCE(t->core.sender.guard.until);
}

/* The fabric did not take its last packet. */
bool hml_term_stalled(const struct hml_term *t)
{
	return READ_ONCE(t->core.stalled);
}

/* It is of no use to work on it now. */
bool hml_term_waits(const struct hml_term *t)
{
	return hml_term_paused(t) || hml_term_stalled(t);
}

/* Let go, and only then look whether somebody has posted more (B7). */
static bool release_and_look(struct hml_term *t)
{
	release(t);
	return hml_tx_pending(&t->core);
}

/**
 * hml_term_run() - work on a terminus unless somebody does already
 * @t: the terminus
 * @budget: most packets
 * @bytes: most bytes, as for hml_tx_run()
 *
 * If so it is theirs: they look at the queue again after they have let go (B7).
 *
 * Return: packets sent.
 */
u32 hml_term_run(struct hml_term *t, u32 budget, s64 *bytes)
{
	u32 sent = 0;

	while (sent < budget && *bytes > 0 && !atomic_read(&t->wanted)) {
		if (!hold_try(t))
			break;
		sent += hml_term_work(t, budget - sent, bytes);
		if (!release_and_look(t) || hml_term_waits(t))
			break;
		cond_resched();
	}
	return sent;
}

/* ---- memory ---- */

/**
 * hml_mem_try_copy() - read memory that may have gone bad
 * @to: where to
 * @from: what
 * @n: bytes
 *
 * An uncorrectable error is found by whoever reads there, and ends the machine unless the
 * kernel expects it. A function, so that a test can have it fail (fail_function).
 *
 * Return: 0, or -EIO: not all of it can be read.
 */
noinline int hml_mem_try_copy(void *to, const void *from, u32 n)
{
	kasan_check_read(from, n);
	kasan_check_write(to, n);
	return unlikely(copy_mc_to_kernel(to, from, n)) ? -EIO : 0;
}
ALLOW_ERROR_INJECTION(hml_mem_try_copy, ERRNO);

/* A word that another process polls is written as one, so it is not read and written at once. */
static __always_inline bool put_part(u8 *to, const u8 *from, u32 n, bool may_fail)
{
	u64 words[HML_MEM_SHORT / sizeof(u64)];

	if (n > HML_MEM_SHORT) {
		if (may_fail)
			return !hml_mem_try_copy(to, from, n);
		memcpy(to, from, n);
		return true;
	}
	if (may_fail) {
		if (unlikely(hml_mem_try_copy(words, from, n)))
			return false;
		from = (const u8 *)words;
	}
	hml_mem_short(to, from, n);
	return true;
}

static __always_inline bool put(hml_mem_t mem, u64 offset, const u8 *from, u32 n,
				bool may_fail)
{
	u32 i = hml_mem_find(mem, offset);

	for (;;) {
		u64 room = hml_mem_extent_end(mem, i) - offset;
		u32 part = min_t(u64, room, n);
		u8 *to = mem->extents[i].va + (offset - mem->extents[i].start);

		if (unlikely(!put_part(to, from, part, may_fail)))
			return false;
		n -= part;
		if (!n)
			return true;
		offset += part;
		from += part;
		i++;
	}
}

/**
 * hml_mem_write_long() - what is not short, or may be in several extents
 * @mem: the memory
 * @offset: where to
 * @from: what; the kernel's own memory
 * @n: bytes
 */
noinline void hml_mem_write_long(hml_mem_t mem, u64 offset, const u8 *from,
				 u32 n)
{
	put(mem, offset, from, n, false);
}

/**
 * hml_mem_copy() - copy from wired memory to wired memory
 * @port: the NIC's
 * @to_mem: where to
 * @to: first byte there
 * @from_mem: whence
 * @from: first byte there
 * @n: bytes
 *
 * Source and destination may overlap only if their owner wants a mess.
 *
 * Return: false if not all of it can be read.
 */
bool hml_mem_copy(const struct hml_port *port, hml_mem_t to_mem, u64 to,
		  hml_mem_t from_mem, u64 from, u32 n)
{
	u32 i = hml_mem_find(from_mem, from);

	for (;;) {
		u64 room = hml_mem_extent_end(from_mem, i) - from;
		const struct hml_extent *e = &from_mem->extents[i];
		u32 part = min_t(u64, room, n);

		if (unlikely(!put(to_mem, to, e->va + (from - e->start), part, true)))
			return false;
		n -= part;
		if (!n)
			return true;
		from += part;
		to += part;
		i++;
	}
}
