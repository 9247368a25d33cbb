// SPDX-License-Identifier: GPL-2.0-only
/* Slots: the NIC's table of them, keys, and their end. */
#include <linux/bitmap.h>
#include <linux/random.h>
#include <linux/sched.h>
#include <linux/slab.h>

#include "hml.h"
#include "locked.h"
#include "trace.h"

/* The first free one of a range, which is taken; or -ENOSPC. */
static int number_take(struct hml_device *d, u32 from, u32 end)
{
	u32 n = from;

	for (;;) {
		n = find_next_zero_bit(d->slot_ids, end, n);
		if (n >= end)
			return -ENOSPC;
		/* Another task may be faster, and has got what it wanted. */
		if (!test_and_set_bit(n, d->slot_ids))
			return n;
	}
}

static int number_get(struct hml_device *d)
{
	u32 end = d->nic.port.max_slots;
	int n;

	n = number_take(d, READ_ONCE(d->slot_hint), end);
	if (n < 0)
		n = number_take(d, 0, end);
	if (n < 0)
		return n;
	/* A hint: a lost update costs an earlier reuse. */
	WRITE_ONCE(d->slot_hint, n == end - 1 ? 0 : n + 1);
	return n;
}

static void number_put(struct hml_device *d, u32 number)
{
	clear_bit_unlock(number, d->slot_ids);
	atomic_dec(&d->slot_count);
}

static u64 new_key(void)
{
	u64 key;

	do {
		key = get_random_u64();
	} while (!key);
	return key;
}

/* Context locked. A slot of it, or NULL. */
struct hml_slot_object *hml_slot_find(struct hml_context *c, u32 number)
{
	hml_context_assert_locked(c);
	return xa_load(&c->slots, number);
}

static void drop_users(struct hml_slot_object *s)
{
	hml_context_assert_locked(s->context);
	if (s->area)
		s->area->users--;
	if (s->meta_area)
		s->meta_area->users--;
	if (s->nq)
		s->nq->users--;
}

static int take_metadata(struct hml_context *c, struct hml_slot_object *s,
			 const struct hamlyn_slot_create *arg)
{
	struct hml_view view;
	int err;

	if (arg->meta_area == HAMLYN_NONE)
		return arg->meta_count || arg->meta_base ? -EINVAL : 0;
	if (!arg->meta_count)
		return -EINVAL;
	err = hml_area_view(c, arg->meta_area, arg->meta_base,
			    (u64)arg->meta_count * HAMLYN_METADATA_SIZE, true,
			    &s->meta_area, &view);
	if (err)
		return err;
	/* Aligned, so that no entry crosses a page and the next extent. */
	if (((uintptr_t)view.mem->extents[0].va + view.base) %
	    HAMLYN_METADATA_SIZE)
		return -EINVAL;
	s->core.meta_mem = view.mem;
	s->core.meta_base = view.base;
	s->core.meta_count = arg->meta_count;
	return 0;
}

/* Context locked. Counts in whatever it set are dropped by the caller. */
static int take_parts(struct hml_context *c, struct hml_slot_object *s,
		      const struct hamlyn_slot_create *arg)
{
	int err;

	err = hml_area_view(c, arg->area, arg->base, arg->length, true,
			    &s->area, &s->core.data);
	if (err)
		return err;
	err = take_metadata(c, s, arg);
	if (err || arg->nq == HAMLYN_NONE)
		return err;
	s->nq = hml_nq_find(c, arg->nq);
	if (!s->nq)
		return -ENOENT;
	s->nq->users++;
	s->core.nq = &s->nq->core;
	return 0;
}

static int link_slot(struct hml_context *c, struct hml_slot_object *s,
		     const struct hamlyn_slot_create *arg)
{
	u32 number = s->core.number;
	int err;

	mutex_lock(&c->lock);
	err = take_parts(c, s, arg);
	if (!err)
		err = xa_insert(&c->slots, number, s, GFP_KERNEL_ACCOUNT);
	if (err)
		drop_users(s);
	else
		rcu_assign_pointer(c->device->nic.port.slots[number], &s->core);
	mutex_unlock(&c->lock);
	if (!err)
		hml_changed();
	return err;
}

static struct hml_slot_object *slot_new(struct hml_context *c)
{
	struct hml_slot_object *s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);
	int number;

	if (!s)
		return ERR_PTR(-ENOMEM);
	number = number_get(c->device);
	if (number < 0) {
		/* No key yet. */
		kfree(s);
		return ERR_PTR(number);
	}
	s->core.number = number;
	s->core.live = 1;
	s->core.ticket_key = new_key();
	s->context = c;
	hml_watch_init_slot(s);
	atomic_inc(&c->device->slot_count);
	return s;
}

/* By number, and as memory. */
static int pay(struct hml_context *c)
{
	int err = hml_user_charge_slot(c);

	if (err)
		return err;
	err = hml_user_charge_small(c, hml_price(sizeof(struct hml_slot_object)));
	if (err)
		hml_user_uncharge_slot(c);
	return err;
}

static void pay_no_more(struct hml_context *c)
{
	hml_user_uncharge_small(c->device, hml_payer(c),
				hml_price(sizeof(struct hml_slot_object)));
	hml_user_uncharge_slot(c);
}

int hml_slot_create(struct hml_context *c, struct hamlyn_slot_create *arg)
{
	struct hml_slot_object *s;
	int err;

	if (arg->flags & ~(HAMLYN_SLOT_KEY_GIVEN | HAMLYN_SLOT_TICKET_ONLY) ||
	    arg->mode > HAMLYN_SLOT_PARANOID_ONE_SHOT ||
	    (arg->mode != HAMLYN_SLOT_NORMAL && !arg->meta_count))
		return -EINVAL;
	err = pay(c);
	if (err)
		return err;
	s = slot_new(c);
	if (IS_ERR(s)) {
		pay_no_more(c);
		return PTR_ERR(s);
	}
	if (!(arg->flags & HAMLYN_SLOT_KEY_GIVEN))
		arg->key = new_key();
	arg->slot = s->core.number;
	s->core.key = arg->key;
	s->core.mode = arg->mode;
	s->core.flags = arg->flags & HAMLYN_SLOT_TICKET_ONLY;
	err = link_slot(c, s, arg);
	if (err) {
		number_put(c->device, arg->slot);
		pay_no_more(c);
		kfree_sensitive(s);
	} else {
		trace_hamlyn_slot_create(c, arg);
	}
	return err;
}

static void unlink_slot(struct hml_context *c, struct hml_slot_object *s)
{
	hml_context_assert_locked(c);
	RCU_INIT_POINTER(c->device->nic.port.slots[s->core.number], NULL);
}

/* All its watches are told: its number may be another one's. */
void hml_slot_free(struct hml_device *d, struct hml_slot_object *s)
{
	number_put(d, s->core.number);
	kfree_sensitive(s);
}

/*
 * After a grace period: no packet sees the slot any more. How many watched it is not the
 * owner's doing, nor to pay for.
 */
static void slot_end(struct hml_context *c, struct hml_slot_object *s)
{
	drop_users(s);
	pay_no_more(c);
	if (!hml_watch_leave(s))
		hml_slot_free(c->device, s);
}

int hml_slot_destroy(struct hml_context *c, u32 number)
{
	struct hml_slot_object *s;
	u64 since;

	mutex_lock(&c->lock);
	s = xa_erase(&c->slots, number);
	if (s)
		unlink_slot(c, s);
	mutex_unlock(&c->lock);
	if (!s)
		return -ENOENT;
	since = hml_trace_clock(trace_hamlyn_slot_destroy_enabled());
	hml_grace_wait();
	trace_hamlyn_slot_destroy(c, number, hml_trace_ns(since));
	hml_watch_tell(s);
	hml_changed();
	mutex_lock(&c->lock);
	slot_end(c, s);
	mutex_unlock(&c->lock);
	return 0;
}

int hml_slot_rekey(struct hml_context *c, struct hamlyn_slot_rekey *arg)
{
	struct hml_slot_object *s;
	u64 since;

	if (arg->flags & ~HAMLYN_SLOT_KEY_GIVEN || arg->reserved)
		return -EINVAL;
	if (!(arg->flags & HAMLYN_SLOT_KEY_GIVEN))
		arg->key = new_key();
	mutex_lock(&c->lock);
	s = hml_slot_find(c, arg->slot);
	if (s) {
		hml_watch_rekey(s, arg->key, new_key());
		since = hml_trace_clock(trace_hamlyn_slot_rekey_enabled());
		hml_grace_wait();
		trace_hamlyn_slot_rekey(c, arg->slot, hml_trace_ns(since));
		hml_watch_tell_rekeyed(s);
	}
	mutex_unlock(&c->lock);
	return s ? 0 : -ENOENT;
}

/* Context is going away: no packet finds its slots after this. */
void hml_slot_unlink_all(struct hml_context *c)
{
	struct hml_slot_object *s;
	unsigned long number;
	u64 since;

	if (xa_empty(&c->slots))
		return;
	/* There may be a million. */
	xa_for_each(&c->slots, number, s) {
		unlink_slot(c, s);
		cond_resched();
	}
	since = hml_trace_clock(trace_hamlyn_slot_destroy_enabled());
	hml_grace_wait();
	since = hml_trace_ns(since);
	xa_for_each(&c->slots, number, s) {
		trace_hamlyn_slot_destroy(c, number, since);
		hml_watch_tell(s);
		cond_resched();
	}
	hml_changed();
}

/* After hml_slot_unlink_all(). */
void hml_slot_destroy_all(struct hml_context *c)
{
	struct hml_slot_object *s;
	unsigned long number;

	xa_for_each(&c->slots, number, s) {
		slot_end(c, s);
		cond_resched();
	}
	xa_destroy(&c->slots);
}
