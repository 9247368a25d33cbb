// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watches: tell me when that slot is gone (H 6.3).
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
 *
 * None is lost: WATCH looks at the slot under the lock. Whoever ends a slot
 * first does so -- unlinks it, replaces its key, sets the NIC down -- and then
 * takes the lock to tell. Either it finds the watch, or WATCH finds the end.
 */
#include <linux/cred.h>
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/preempt.h>
#include <linux/rbtree.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/workqueue.h>

#include "hml.h"
#include "locked.h"
#include "watch/watching.h"
#include "fabric/peer.h"
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
	done = hml_nq_append(nic, &nq->core, hml_nq_expect(nic, &nq->core), &e,
			     true);
	hml_notify_end_later();
	if (done)
		trace_hamlyn_peer_gone(nq, w->id, w->host, w->slot);
	return done;
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
	LIST_HEAD(todo);

	hml_lock(&hml_watch_lock);
	list_splice_init(&late, &todo);
	while ((nq = list_first_entry_or_null(&todo, struct hml_nqueue,
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

/* ---- keys that were right ---- */

/*
 * A tree, not a hash: a user pays for it by its watches, and nobody can choose keys that make a
 * look long. The depth is at most twice the logarithm of all watches that its uid has.
 */

void hml_known_init(struct hml_known *known)
{
	raw_spin_lock_init(&known->lock);
	known->watches = RB_ROOT;
}

static struct hml_known *known_of(const struct hml_watch *w)
{
	return w->nq ? &w->nq->context->user->known : hml_far_known(w);
}

/* Is what is looked for before @w, or after it? 0: it is that. */
static int compare(u32 host, u32 slot, u64 key, const struct hml_watch *w)
{
	if (host != w->host)
		return host < w->host ? -1 : 1;
	if (slot != w->slot)
		return slot < w->slot ? -1 : 1;
	if (key != w->key)
		return key < w->key ? -1 : 1;
	return 0;
}

/* Of those with one key each has a place of its own. */
static void insert_known(struct rb_root *root, struct hml_watch *w)
{
	struct rb_node **link = &root->rb_node, *parent = NULL;

	while (*link) {
		parent = *link;
		hml_lock_step();
		link = compare(w->host, w->slot, w->key,
			       rb_entry(parent, struct hml_watch, known)) < 0 ?
		       &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&w->known, parent, link);
	rb_insert_color(&w->known, root);
}

/* For as long as there is the watch, told or not: what is on its way comes later. */
static void remember(struct hml_watch *w, u64 key)
{
	struct hml_known *known = known_of(w);

	w->key = key;
	hml_lock(&known->lock);
	insert_known(&known->watches, w);
	hml_unlock(&known->lock);
}

void hml_watch_forget(struct hml_watch *w)
{
	struct hml_known *known = known_of(w);

	hml_lock(&known->lock);
	if (!RB_EMPTY_NODE(&w->known))
		rb_erase(&w->known, &known->watches);
	hml_unlock(&known->lock);
}

bool hml_watch_knew(struct hml_known *known, u32 host, u32 slot, u64 key)
{
	struct rb_node *n;
	int order;

	hml_lock(&known->lock);
	n = known->watches.rb_node;
	while (n) {
		hml_lock_step();
		order = compare(host, slot, key, rb_entry(n, struct hml_watch, known));
		if (!order)
			break;
		n = order < 0 ? n->rb_left : n->rb_right;
	}
	hml_unlock(&known->lock);
	return n;
}

/**
 * hml_port_knew() - is a wrong key late, and no guess?
 * @nic: the slot's NIC
 * @h: the packet
 * @sender: who sent it, and no adversary
 *
 * Its user has it from the slot's owner if it was right when the user began to watch by it.
 *
 * Return: true if so.
 */
bool hml_port_knew(const struct hml_nic *nic, const struct hamlyn_packet *h,
		   const struct hml_sender *sender)
{
	struct hml_known *known;

	if (sender->far)
		known = &container_of(sender, struct hml_far_user, sender)->peer->far.known;
	else
		known = &container_of(sender->guard.bucket, struct hml_user, bucket)->known;
	return hml_watch_knew(known, nic->host, h->slot, h->key);
}

/* ---- making one ---- */

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
	w->era = eras;
	list_add_tail(&w->place, &s->watches);
	if (!(arg->flags & HAMLYN_WATCH_TICKET))
		remember(w, arg->key);
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

/* Module is going away, and there is no context any more. */
void hml_watch_exit(void)
{
	flush_work(&crowd_work);
	cancel_delayed_work_sync(&retry_work);
}
