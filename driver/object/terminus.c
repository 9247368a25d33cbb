// SPDX-License-Identifier: GPL-2.0-only
/* Send termini of a context. */
#include <linux/log2.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/slab.h>

#include "hml.h"
#include "locked.h"
#include "trace.h"

/**
 * hml_term_get() - find a terminus
 * @c: the context
 * @id: its id
 *
 * Return: a strong reference, or NULL.
 */
struct hml_term *hml_term_get(struct hml_context *c, u32 id)
{
	struct hml_term *t;

	rcu_read_lock();
	t = xa_load(&c->termini, id);
	if (t && !refcount_inc_not_zero(&t->ref))
		t = NULL;
	rcu_read_unlock();
	return t;
}

/* With the client of the engine, which the first one of a user has made. */
static u32 price(void)
{
	return hml_price(sizeof(struct hml_term)) + hml_price(sizeof(struct hml_client));
}

void hml_term_put(struct hml_term *t)
{
	if (!refcount_dec_and_test(&t->ref))
		return;
	hml_stats_retire(t);
	hml_ring_put(t->wq);
	hml_ring_put(t->status);
	hml_tickets_free(t);
	hml_tags_free(t);
	hml_engine_disown(t);
	hml_user_uncharge_small(t->device, t->payer, price());
	/* The key of the last long message; whoever still looks reads @ref only. */
	memzero_explicit(&t->core.message, sizeof(t->core.message));
	kfree_rcu(t, rcu);
}

static int alloc_rings(struct hml_context *c, struct hml_term *t, u32 entries,
		       u32 entry_size)
{
	struct hamlyn_terminus_status *status;

	/* Entries begin at a multiple of their size: in as few pages as can be. */
	t->wq = hml_ring_alloc(c, (size_t)(entries + 1) * entry_size);
	if (IS_ERR(t->wq))
		return PTR_ERR(t->wq);
	t->status = hml_ring_alloc(c, sizeof(*status) + entries * sizeof(s32));
	if (IS_ERR(t->status))
		return PTR_ERR(t->status);
	status = t->status->va;
	status->need_kick = 1;
	t->core.wq = t->wq->va;
	t->core.entries = t->wq->va + entry_size;
	t->core.status = status;
	t->core.sender.stats = &t->stats;
	t->core.mask = entries - 1;
	t->core.entry_size = entry_size;
	t->core.entry_shift = ilog2(entry_size);
	return 0;
}

static struct hml_term *term_new(struct hml_context *c,
				 const struct hamlyn_terminus_create *arg)
{
	int err = hml_user_charge_small(c, price());
	struct hml_term *t;

	if (err)
		return ERR_PTR(err);
	t = kzalloc(sizeof(*t), GFP_KERNEL_ACCOUNT);
	if (!t) {
		hml_user_uncharge_small(c->device, hml_payer(c), price());
		return ERR_PTR(-ENOMEM);
	}
	t->payer = hml_payer(c);
	t->device = c->device;
	t->context = c->id;
	refcount_set(&t->ref, 1);
	init_swait_queue_head(&t->freed);
	init_swait_queue_head(&t->rung);
	timerqueue_init(&t->paused);
	t->kicks_to_wake = HML_KICKS_TO_WAKE;
	t->core.sender.pid = task_tgid_nr(current);
	t->core.sender.uid = __kuid_val(c->uid);
	t->core.sender.share = hml_user_told(c);
	err = hml_engine_adopt(c, t, arg->priority, arg->weight ?: 1);
	if (err) {
		kfree(t);
		return ERR_PTR(err);
	}
	hml_stats_begin(t);
	err = alloc_rings(c, t, arg->entries, arg->entry_size);
	if (err) {
		hml_term_put(t);
		return ERR_PTR(err);
	}
	return t;
}

/* Context locked, its table changed. */
static void find_only(struct hml_context *c)
{
	unsigned long id = 0;
	struct hml_term *t;

	hml_context_assert_locked(c);
	t = xa_find(&c->termini, &id, ULONG_MAX, XA_PRESENT);
	if (t && xa_find_after(&c->termini, &id, ULONG_MAX, XA_PRESENT))
		t = NULL;
	rcu_assign_pointer(c->only, t);
}

static bool sizes_valid(const struct hamlyn_terminus_create *arg)
{
	return is_power_of_2(arg->entries) && arg->entries >= 2 &&
	       arg->entries <= HML_MAX_WQ_ENTRIES &&
	       is_power_of_2(arg->entry_size) &&
	       arg->entry_size >= HML_MIN_ENTRY_SIZE &&
	       arg->entry_size <= HML_MAX_ENTRY_SIZE;
}

int hml_term_create(struct hml_context *c, struct hamlyn_terminus_create *arg)
{
	struct hml_term *t;
	int err;

	if (!sizes_valid(arg))
		hml_explain(c, "%u entries of %u bytes: must be powers of two, 2 to %u of %u to %u",
			    arg->entries, arg->entry_size, HML_MAX_WQ_ENTRIES,
			    HML_MIN_ENTRY_SIZE, HML_MAX_ENTRY_SIZE);
	if (arg->reserved || !sizes_valid(arg) ||
	    arg->priority >= HAMLYN_PRIORITIES ||
	    arg->weight > HAMLYN_MAX_WEIGHT)
		return -EINVAL;
	if ((arg->priority == HAMLYN_PRIORITY_HIGH || arg->weight > 1) &&
	    !hml_nic_admin(c->device)) {
		hml_explain(c, "a high priority or a weight needs CAP_NET_ADMIN");
		return -EPERM;
	}
	err = hml_user_charge_terminus(c);
	if (err)
		return err;
	t = term_new(c, arg);
	if (IS_ERR(t)) {
		hml_user_uncharge_terminus(c);
		return PTR_ERR(t);
	}
	hml_guard_begin(&t->core.sender.guard, &c->user->bucket,
			ktime_get_ns());
	arg->entries_offset = arg->entry_size;
	arg->wq_length = hml_ring_bytes(t->wq);
	arg->status_length = hml_ring_bytes(t->status);
	mutex_lock(&c->lock);
	/* From here on another thread may destroy it: it is not ours. */
	err = xa_alloc(hml_table(c, &c->termini), &t->id, t,
		       XA_LIMIT(0, HML_MAX_IDS), GFP_KERNEL_ACCOUNT);
	arg->terminus = t->id;
	if (!err) {
		find_only(c);
		trace_hamlyn_terminus_create(t);
	}
	mutex_unlock(&c->lock);
	if (err) {
		hml_user_uncharge_terminus(c);
		hml_term_put(t);
		return err == -EBUSY ? -ENOSPC : err;
	}
	hml_changed();
	arg->wq_offset = hml_mmap_offset(HML_REGION_WQ, arg->terminus);
	arg->status_offset = hml_mmap_offset(HML_REGION_STATUS, arg->terminus);
	return 0;
}

/* Out of the tables already. Whoever still has a reference cannot hold it. */
static void shut(struct hml_context *c, struct hml_term *t)
{
	hml_engine_remove(t);
	hml_term_retire(t);
	hml_engine_leave(t);
	trace_hamlyn_terminus_destroy(t);
	hml_user_uncharge_terminus(c);
	hml_changed();
}

int hml_term_destroy(struct hml_context *c, u32 id)
{
	struct hml_term *t;

	mutex_lock(&c->lock);
	t = xa_erase(hml_table(c, &c->termini), id);
	if (t)
		find_only(c);
	mutex_unlock(&c->lock);
	if (!t)
		return -ENOENT;
	shut(c, t);
	/* A KICK that found it has no reference. */
	hml_grace_wait();
	mutex_lock(&c->lock);
	hml_tags_drop(c, t);
	mutex_unlock(&c->lock);
	hml_term_put(t);
	return 0;
}

/* Context is going away: no call is in progress. */
void hml_term_destroy_all(struct hml_context *c)
{
	struct hml_term *t;
	unsigned long id;

	xa_for_each(&c->termini, id, t) {
		/* An administrator may look for it until we are gone. */
		xa_erase(&c->termini, id);
		shut(c, t);
		hml_tags_drop(c, t);
		hml_term_put(t);
		cond_resched();
	}
	xa_destroy(&c->termini);
}

/* Packets were taken, or another message is under way. */
static void note_taken(struct hml_term *t, u64 now)
{
	if (t->refused_message != t->stats.messages) {
		t->refused_message = t->stats.messages;
		t->refused = 0;
		t->refused_sum = 0;
	}
	if (t->refused && t->refused_after != t->stats.packets) {
		t->refused_sum += min_t(u64, now - t->refused, HML_STALLED_NS);
		t->refused = 0;
	}
}

/*
 * Whether the fabric takes packets is up to a peer, which must not decide how long the owner
 * of a terminus waits for memory of its own: neither by taking nothing nor by taking too
 * little. Signals interrupt the wait, which then begins again, but not this measure of it.
 */
static void give_up_stalled(struct hml_term *t)
{
	u64 now = ktime_get_ns();

	note_taken(t, now);
	if (!hml_term_stalled(t))
		return;
	if (!t->refused) {
		t->refused = now;
		t->refused_after = t->stats.packets;
	}
	if (now - t->refused > HML_STALLED_NS || t->refused_sum > HML_REFUSED_NS) {
		t->refused = 0;
		t->refused_sum = 0;
		hml_tx_abort(&t->core, -ECANCELED);
	}
}

/* When the end of its pause is; a fabric that takes nothing does not say when it will again. */
static long look_again(const struct hml_term *t)
{
	u64 until = READ_ONCE(t->core.sender.guard.until), now = ktime_get_ns();

	if (!until)
		return 1 + msecs_to_jiffies(1);
	return until > now ? 1 + nsecs_to_jiffies(until - now) : 1;
}

/*
 * Terminus held, by us. Whoever destroys it, or sends a signal, wakes us. Not counted in
 * @waiters: nobody else lets go meanwhile, and retiring a terminus wakes all of @freed.
 */
static void wait_to_send(struct hml_term *t)
{
	long time = look_again(t);
	DECLARE_SWAITQUEUE(wait);

	prepare_to_swait_exclusive(&t->freed, &wait, TASK_INTERRUPTIBLE);
	if (!READ_ONCE(t->dead) && !signal_pending(current))
		schedule_timeout(time);
	finish_swait(&t->freed, &wait);
}

/*
 * Terminus held. A message that is half sent has resolved its fragments: let
 * it leave before the memory under them can go. Signals are handled in between.
 */
int hml_term_finish(struct hml_term *t)
{
	s64 bytes = S64_MAX;

	while (t->core.busy) {
		if (signal_pending(current))
			return -ERESTARTNOINTR;
		/* Whoever destroys it waits for us, and drops the message. */
		if (READ_ONCE(t->dead))
			return -ENOENT;
		hml_term_work(t, 1, &bytes);
		if (hml_term_waits(t))
			wait_to_send(t);
		give_up_stalled(t);
		cond_resched();
	}
	return 0;
}
