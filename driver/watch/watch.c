// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watches: tell me when that slot is gone (H 6.3). Here they are made and ended; tell.c tells.
 *
 * None is lost: WATCH looks at the slot under hml_watch_lock. Whoever ends a slot
 * first does so -- unlinks it, replaces its key, sets the NIC down -- and then
 * takes the lock to tell. Either it finds the watch, or WATCH finds the end.
 */
#include <linux/cred.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uidgid.h>

#include "hml.h"
#include "locked.h"
#include "watch/watching.h"
#include "fabric/peer.h"
#include "trace.h"

/*
 * A wrong guess counts as a rejected packet does. Which it was the caller must
 * not learn sooner or more often than by sending one. This half is for the
 * slot's owner and is told while the slot is there.
 */
void hml_watch_note_reject(struct hml_nic *nic, struct hml_slot *slot, u32 number, u32 source,
			   u32 pid, u32 uid, int reject)
{
	const struct hamlyn_packet h = {
		.host = nic->host,
		.source = source,
		.slot = number,
	};
	struct hml_sender sender = { .pid = pid, .uid = uid };

	if (reject == HAMLYN_REJECT_DOWN)
		return;
	if (slot)
		hml_atomic_inc64(&slot->rejects[reject]);
	hml_port_rejected(nic, slot, &h, reject, &sender);
}

/* This half is for the caller. */
static void count_reject(struct hml_context *c, int reject)
{
	struct hml_stats stats = {};

	stats.rejects[reject]++;
	hml_lock(&c->device->termini_lock);
	hml_stats_add(hml_retired(c->device), &stats);
	hml_unlock(&c->device->termini_lock);
}

/* Return: HML_WATCH_ARMED, HML_WATCH_CLAIMED, or the enum hamlyn_reject why not. */
int hml_watch_arm_on(struct hml_nic *nic, struct hml_slot *slot, struct hml_watch *w,
		     const struct hamlyn_watch *arg)
{
	struct hml_slot_object *s;
	int reject;

	lockdep_assert_held(&hml_watch_lock);
	if (READ_ONCE(nic->link->down))
		return HAMLYN_REJECT_DOWN;
	reject = hml_slot_opens(nic, slot, arg->key, arg->meta_index,
				arg->flags & HAMLYN_WATCH_TICKET);
	if (reject >= 0)
		return reject;
	s = container_of(slot, struct hml_slot_object, core);
	if (arg->flags & HAMLYN_WATCH_CLAIM && s->claimed)
		return HML_WATCH_CLAIMED;
	s->claimed |= !!(arg->flags & HAMLYN_WATCH_CLAIM);
	hml_watch_attach(s, w);
	if (!(arg->flags & HAMLYN_WATCH_TICKET))
		hml_watch_remember(w, arg->key);
	return HML_WATCH_ARMED;
}

/*
 * As a packet's guess. Under the lock it is taken before anybody else's key is looked
 * at: so those who ask at the same moment are tried one after the other.
 */
static void take_guess(struct hml_context *c, const struct hml_nic *nic,
		       const struct hamlyn_watch *arg, int reject)
{
	lockdep_assert_held(&hml_watch_lock);
	if (reject != HAMLYN_REJECT_KEY && reject != HAMLYN_REJECT_TICKET)
		return;
	if (!hml_watch_knew(&c->user->known, arg->host, arg->slot, arg->key))
		hml_bucket_take(&c->user->bucket, READ_ONCE(nic->guesses),
				ktime_get_ns());
}

/*
 * By a key, which may be wrong. Whether one may be tried is asked before slot and key
 * are looked at, so that the answer tells nothing of them. Nobody waits here: a peer can
 * make others present wrong keys, and would stop all that they do. Nobody chooses the
 * key of a ticket: that is no guess.
 */
static bool may_try(struct hml_context *c, const struct hamlyn_watch *arg)
{
	lockdep_assert_held(&hml_watch_lock);
	return arg->flags & HAMLYN_WATCH_TICKET ||
	       !hml_bucket_until(&c->user->bucket, ktime_get_ns());
}

/* Is the slot of another host? A hint: peers come and go. */
static bool is_far(struct hml_context *c, u32 host)
{
	struct hml_nic *nic;
	bool far;

	hml_section_begin();
	nic = hml_port_route(&c->device->nic, host);
	far = nic && hml_peer_of(nic);
	hml_section_end();
	return far;
}

/*
 * In a section: the other host is to be asked, and nobody waits for what it says. If it does not
 * open the slot, that is as if the slot were gone. The key of a descriptor is this kernel's.
 *
 * Return: 0, -EXDEV, -ENOSPC, -EDQUOT, or -ENOMEM if the host is a peer only now.
 */
static int arm_far(struct hml_watch *w, struct hml_peer *p, struct hml_far **far,
		   const struct hamlyn_watch *arg)
{
	struct hml_far_payer *spare;
	int err;

	if (arg->flags & HAMLYN_WATCH_TICKET)
		return -EXDEV;
	if (!*far)
		return -ENOMEM;
	trace_hamlyn_watch(w->nq, w->id, w->host, w->slot);
	hml_lock(&hml_watch_lock);
	err = hml_far_arm(&p->far, *far, w, arg, &spare);
	hml_unlock(&hml_watch_lock);
	kfree(spare);
	if (!err)
		*far = NULL;
	return err;
}

/*
 * Arm the watch, or tell at once. In a section: NIC and slot stay
 * until it is in the slot's list, and the slot until that is empty again.
 *
 * Return: 0, -EAGAIN or -EALREADY.
 */
static int arm(struct hml_context *c, struct hml_watch *w, struct hml_far **far,
	       const struct hamlyn_watch *arg)
{
	struct hml_slot *slot = NULL;
	struct hml_nic *nic;
	int reject = HML_WATCH_ARMED;

	hml_section_begin();
	nic = hml_port_route(&c->device->nic, w->host);
	if (nic && hml_peer_of(nic)) {
		reject = arm_far(w, hml_peer_of(nic), far, arg);
		hml_section_end();
		return reject;
	}
	trace_hamlyn_watch(w->nq, w->id, w->host, w->slot);
	hml_lock(&hml_watch_lock);
	if (!may_try(c, arg)) {
		hml_unlock(&hml_watch_lock);
		hml_section_end();
		return -EAGAIN;
	}
	if (nic) {
		slot = hml_port_slot(&nic->port, w->slot);
		reject = hml_watch_arm_on(nic, slot, w, arg);
	}
	if (!(arg->flags & HAMLYN_WATCH_TICKET))
		take_guess(c, nic, arg, reject);
	/* Which hosts there are is no secret: see EHOSTUNREACH. */
	if (!nic || reject >= 0)
		hml_watch_tell_one(w);
	hml_unlock(&hml_watch_lock);
	if (reject >= 0)
		hml_watch_note_reject(nic, slot, arg->slot, c->device->nic.host,
				      task_tgid_nr(current), __kuid_val(c->uid), reject);
	hml_section_end();
	if (reject >= 0)
		count_reject(c, reject);
	return reject == HML_WATCH_CLAIMED ? -EALREADY : 0;
}

/* Context locked. It has an id, and its NQ cannot go any more. */
static int take_parts(struct hml_context *c, struct hml_watch *w, u32 nq)
{
	int err;

	w->nq = hml_nq_find(c, nq);
	if (!w->nq)
		return -ENOENT;
	err = xa_alloc(&c->watches, &w->id, w, XA_LIMIT(0, HML_MAX_IDS),
		       GFP_KERNEL_ACCOUNT);
	if (err)
		return err == -EBUSY ? -ENOSPC : err;
	w->nq->users++;
	return 0;
}

static void give_back_parts(struct hml_context *c, struct hml_watch *w)
{
	xa_erase(hml_table(c, &c->watches), w->id);
	w->nq->users--;
}

/*
 * By number, for others tell them, and as memory. There is no limit of those of one slot: whoever
 * has its key could use it up, and others that have it too would not be told. Nor is one
 * needed: whoever ends the slot tells some, and a worker the others.
 */
static int pay(struct hml_context *c)
{
	int err = hml_user_charge_watch(c);

	if (err)
		return err;
	err = hml_user_charge_small(c, hml_price(sizeof(struct hml_watch)));
	if (err)
		hml_user_uncharge_watch(c);
	return err;
}

static void pay_no_more(struct hml_context *c)
{
	hml_user_uncharge_small(c->device, hml_payer(c),
				hml_price(sizeof(struct hml_watch)));
	hml_user_uncharge_watch(c);
}

static struct hml_watch *watch_new(const struct hamlyn_watch *arg)
{
	struct hml_watch *w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);

	if (!w)
		return NULL;
	INIT_LIST_HEAD(&w->place);
	RB_CLEAR_NODE(&w->known);
	w->cookie = arg->cookie;
	w->host = arg->host;
	w->slot = arg->slot;
	return w;
}

/* Its key and place, where no process sees them. */
static int resolve_ticket(const struct hamlyn_watch *arg,
			  struct hamlyn_watch *by)
{
	struct hml_ticket k;
	int err;

	if (!(arg->flags & HAMLYN_WATCH_TICKET))
		return 0;
	if (arg->host || arg->slot || arg->meta_index)
		return -EINVAL;
	if (arg->key > INT_MAX)
		return -EBADF;
	err = hml_ticket_of_fd(arg->key, &k);
	if (err)
		return err;
	by->host = k.host;
	by->slot = k.slot;
	by->key = k.key;
	return 0;
}

/* Context locked. */
static int start(struct hml_context *c, struct hml_watch *w, struct hml_far **far,
		 const struct hamlyn_watch *by, u32 nq)
{
	int err = take_parts(c, w, nq);

	if (err)
		return err;
	err = arm(c, w, far, by);
	if (!err)
		return 0;
	if (err == -EALREADY)
		hml_explain(c, "the slot was claimed before");
	else if (err == -EAGAIN)
		hml_explain(c, "held back: this user guesses keys");
	else if (err == -EXDEV)
		hml_explain(c, "a ticket's descriptor does not reach host %u: it is another one",
			    w->host);
	else if (err == -EDQUOT)
		hml_explain(c, "watches: this user's share of those on host %u is taken", w->host);
	else if (err == -ENOSPC)
		hml_explain(c, "watches: there are %u on host %u", HML_FAR_MOST, w->host);
	give_back_parts(c, w);
	return err;
}

int hml_watch_create(struct hml_context *c, struct hamlyn_watch *arg)
{
	struct hamlyn_watch by = *arg;
	struct hml_far *far = NULL;
	struct hml_watch *w;
	int err;

	if (arg->flags & ~(HAMLYN_WATCH_TICKET | HAMLYN_WATCH_CLAIM) || arg->reserved)
		return -EINVAL;
	err = resolve_ticket(arg, &by);
	if (err)
		return err;
	err = pay(c);
	if (err)
		return err;
	w = watch_new(&by);
	if (w && is_far(c, by.host)) {
		far = hml_far_new(hml_user_told(c), c->share->key);
		if (!far) {
			kfree(w);
			w = NULL;
		}
	}
	if (!w) {
		pay_no_more(c);
		return -ENOMEM;
	}
	mutex_lock(&c->lock);
	err = start(c, w, &far, &by, arg->nq);
	if (!err)
		arg->watch = w->id;
	/* From here on another thread may destroy it: it is not ours. */
	mutex_unlock(&c->lock);
	hml_far_free(far);
	if (err) {
		pay_no_more(c);
		kfree(w);
	} else {
		hml_changed();
	}
	return err;
}

/* ---- the end of one ---- */

/* Context locked, and the watch out of its table. */
static void watch_free(struct hml_watch *w)
{
	struct hml_far *far;

	hml_context_assert_locked(w->nq->context);
	hml_lock(&hml_watch_lock);
	hml_watch_detach(w);
	far = hml_far_end(w);
	hml_unlock(&hml_watch_lock);
	hml_far_free(far);
	hml_watch_forget(w);
	trace_hamlyn_unwatch(w->nq, w->id, w->host, w->slot);
	w->nq->users--;
	pay_no_more(w->nq->context);
	kfree_sensitive(w);
}

int hml_watch_destroy(struct hml_context *c, u32 id)
{
	struct hml_watch *w;

	mutex_lock(&c->lock);
	w = xa_erase(&c->watches, id);
	if (w)
		watch_free(w);
	mutex_unlock(&c->lock);
	if (!w)
		return -ENOENT;
	hml_changed();
	return 0;
}

/* Context is going away: no call is in progress, but others may be telling. */
void hml_watch_destroy_all(struct hml_context *c)
{
	struct hml_watch *w;
	unsigned long id;

	xa_for_each(&c->watches, id, w) {
		watch_free(w);
		cond_resched();
	}
	xa_destroy(&c->watches);
}
