// SPDX-License-Identifier: GPL-2.0-only
/*
 * Watches between hosts. Each host keeps those that are on its slots, as it keeps its own, and
 * tells the other one when one of them is to be told. What there is to tell waits in a list of
 * what exists anyway, so a peer that takes nothing costs no memory.
 *
 * A watch of ours on another host's slot is armed here until that host says that the slot is gone
 * (or never opened to the key), or is lost itself. Whatever comes first marks it as told, under
 * the lock, and tells: exactly once.
 */
#include <linux/slab.h>

#include "hml.h"
#include "core/wire.h"
#include "fabric/peer.h"
#include "watch/far.h"
#include "watch/watching.h"
#include "trace.h"
#include "user/pool.h"

#define ID_TRIES	16
#define LEAST		1024	/* watches on a host that everybody may have */
#define RETRIES		4096	/* in one go */

/* What the other host is to be told, or knows. */
enum {
	FAR_WATCH,	/* ours: WATCH is to be sent */
	FAR_UNWATCH,	/* ours, and ended: UNWATCH is to be sent */
	FAR_GONE,	/* theirs: GONE is to be sent */
	FAR_HELD,	/* theirs: its key is to be tried, when its user may */
	FAR_SENT,	/* nothing */
};

/**
 * struct hml_far_payer - who has how many watches on a host's slots
 * @node: in side.payers, or unused
 * @key: as in struct hml_quota; constant
 * @count: how many, with those that have ended but of which the host is not told yet
 *
 * Under hml_watch_lock.
 */
struct hml_far_payer {
	struct rb_node node;
	u64 key;
	u32 count;
};

/**
 * struct hml_far - a watch, as two hosts know it
 * @node: in a tree of @side
 * @out: in side.out or side.held, or empty
 * @side: the two hosts; constant
 * @watch: the watch; NULL if its owner has ended it
 * @who: theirs: whose, as the other host says; constant
 * @payer: ours: whose, or until it is armed, memory for that
 * @key: by which; constant
 * @id: that whose watch it is has given it; constant
 * @slot: slot number; constant
 * @meta_index: as in struct hamlyn_watch; constant
 * @flags: HAMLYN_WATCH_*; constant
 * @user: whose; constant
 * @due: what is to be told
 * @why: theirs: HML_WIRE_WATCH_GONE or CLAIMED, for GONE
 * @told: ours: its owner was told
 *
 * Under hml_watch_lock.
 */
struct hml_far {
	struct rb_node node;
	struct list_head out;
	struct hml_far_side *side;
	struct hml_watch *watch;
	struct hml_far_user *who;
	struct hml_far_payer *payer;
	u64 key;
	u32 id;
	u32 slot;
	u32 meta_index;
	u32 flags;
	u32 user;
	u32 due;
	u32 why;
	bool told;
};

void hml_far_init(struct hml_far_side *side, struct hml_nic *nic, u32 host,
		  struct work_struct *io)
{
	side->ours = RB_ROOT;
	side->theirs = RB_ROOT;
	side->payers = RB_ROOT;
	INIT_LIST_HEAD(&side->out);
	INIT_LIST_HEAD(&side->held);
	hml_known_init(&side->known);
	side->io = io;
	side->nic = nic;
	side->host = host;
}

static struct hml_far *far_new(gfp_t flags)
{
	struct hml_far *far = kzalloc(sizeof(*far), flags);

	if (!far)
		return NULL;
	INIT_LIST_HEAD(&far->out);
	RB_CLEAR_NODE(&far->node);
	return far;
}

/**
 * hml_far_new() - memory for a watch of a task's own
 * @user: whose it is, for the other host
 * @key: and for this one, as in struct hml_quota
 *
 * Return: it, for hml_far_arm() or hml_far_free(), or NULL.
 */
struct hml_far *hml_far_new(u32 user, u64 key)
{
	struct hml_far *far = far_new(GFP_KERNEL_ACCOUNT);

	if (!far)
		return NULL;
	far->payer = kzalloc(sizeof(*far->payer), GFP_KERNEL_ACCOUNT);
	if (!far->payer) {
		kfree(far);
		return NULL;
	}
	far->user = user;
	far->payer->key = key;
	return far;
}

/* With what nobody else uses of it. */
void hml_far_free(struct hml_far *far)
{
	if (far)
		kfree(far->payer);
	kfree_sensitive(far);
}

static struct hml_far *find(const struct rb_root *root, u32 id)
{
	struct rb_node *n = root->rb_node;

	lockdep_assert_held(&hml_watch_lock);
	while (n) {
		struct hml_far *far = rb_entry(n, struct hml_far, node);

		hml_lock_step();
		if (id == far->id)
			return far;
		n = id < far->id ? n->rb_left : n->rb_right;
	}
	return NULL;
}

/* Return: false if its id is there already. */
static bool insert(struct rb_root *root, struct hml_far *far)
{
	struct rb_node **link = &root->rb_node, *parent = NULL;

	lockdep_assert_held(&hml_watch_lock);
	while (*link) {
		u32 id = rb_entry(*link, struct hml_far, node)->id;

		parent = *link;
		hml_lock_step();
		if (far->id == id)
			return false;
		link = far->id < id ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&far->node, parent, link);
	rb_insert_color(&far->node, root);
	return true;
}

static void tell_later(struct hml_far *far, u32 due)
{
	struct hml_far_side *side = far->side;

	lockdep_assert_held(&hml_watch_lock);
	far->due = due;
	if (!side->up)
		return;
	if (list_empty(&far->out))
		list_add_tail(&far->out, &side->out);
	queue_work(hml_wire_workers, side->io);
}

/* ---- ours ---- */

/* Whose watch it is: somebody who has others, or @fresh, which is in the tree then. */
static struct hml_far_payer *payer_find(struct hml_far_side *side, struct hml_far_payer *fresh)
{
	struct rb_node **link = &side->payers.rb_node, *parent = NULL;

	lockdep_assert_held(&hml_watch_lock);
	while (*link) {
		struct hml_far_payer *p = rb_entry(*link, struct hml_far_payer, node);

		hml_lock_step();
		if (fresh->key == p->key)
			return p;
		parent = *link;
		link = fresh->key < p->key ? &parent->rb_left : &parent->rb_right;
	}
	rb_link_node(&fresh->node, parent, link);
	rb_insert_color(&fresh->node, &side->payers);
	return fresh;
}

/* One watch less. What is @far's alone goes with it. */
static void pay_no_more(struct hml_far *far)
{
	struct hml_far_payer *p = far->payer;

	lockdep_assert_held(&hml_watch_lock);
	if (--p->count)
		far->payer = NULL;
	else
		rb_erase(&p->node, &far->side->payers);
}

/*
 * Memory for a payer that there was already is the caller's again, in @spare. The first watch of
 * a payer is never refused while there is room for one: so none is left in the tree without any.
 *
 * Return: 0, or -EDQUOT.
 */
static int pay(struct hml_far_side *side, struct hml_far *far, struct hml_far_payer **spare)
{
	struct hml_far_payer *p = payer_find(side, far->payer);

	if (p->count >= hml_pool_most_of(HML_FAR_MOST, side->ours_count, p->count, LEAST))
		return -EDQUOT;
	p->count++;
	if (p != far->payer)
		*spare = far->payer;
	far->payer = p;
	return 0;
}

/* After 2^32 watches ids come again, and some may be in use still. */
static bool enlist_ours(struct hml_far_side *side, struct hml_far *far)
{
	u32 n;

	for (n = 0; n < ID_TRIES; n++) {
		far->id = side->next_id++;
		if (insert(&side->ours, far)) {
			side->ours_count++;
			return true;
		}
	}
	return false;
}

static void leave_ours(struct hml_far *far)
{
	rb_erase(&far->node, &far->side->ours);
	far->side->ours_count--;
	pay_no_more(far);
}

/**
 * hml_far_arm() - watch a slot of another host
 * @side: the two hosts
 * @far: becomes the watch's
 * @w: the watch; told at once if the other host is not there
 * @arg: what was asked for
 * @spare: out: to be freed behind the lock, or NULL
 *
 * Of more than HML_FAR_MOST the other host would end the connection, so a part of them is kept
 * for those that have few.
 *
 * Return: 0, -EDQUOT if the caller has its share, or -ENOSPC.
 */
int hml_far_arm(struct hml_far_side *side, struct hml_far *far, struct hml_watch *w,
		const struct hamlyn_watch *arg, struct hml_far_payer **spare)
{
	int err;

	lockdep_assert_held(&hml_watch_lock);
	*spare = NULL;
	far->side = side;
	far->watch = w;
	far->key = arg->key;
	far->slot = arg->slot;
	far->meta_index = arg->meta_index;
	far->flags = arg->flags;
	if (!side->up) {
		w->far = far;
		hml_watch_tell_one(w);
		return 0;
	}
	if (side->ours_count == HML_FAR_MOST)
		return -ENOSPC;
	err = pay(side, far, spare);
	if (err)
		return err;
	if (!enlist_ours(side, far)) {
		pay_no_more(far);
		return -ENOSPC;
	}
	w->far = far;
	tell_later(far, FAR_WATCH);
	return 0;
}

/**
 * hml_far_end() - a context's watch ends
 * @w: the watch
 *
 * Return: what the caller is to free, or NULL. While the other host is still to be told, that is
 * left to who tells it.
 */
struct hml_far *hml_far_end(struct hml_watch *w)
{
	struct hml_far *far = w->far;

	lockdep_assert_held(&hml_watch_lock);
	if (!far)
		return NULL;
	w->far = NULL;
	far->watch = NULL;
	if (RB_EMPTY_NODE(&far->node))
		return far;
	if (far->due != FAR_WATCH) {
		tell_later(far, FAR_UNWATCH);
		return NULL;
	}
	list_del_init(&far->out);
	leave_ours(far);
	return far;
}

/**
 * hml_far_gone() - the other host says that a slot of its is gone
 * @side: the two hosts
 * @id: the watch
 *
 * It may have ended meanwhile. Then UNWATCH is on its way, or in the list.
 */
void hml_far_gone(struct hml_far_side *side, u32 id)
{
	struct hml_far *far;

	hml_lock(&hml_watch_lock);
	far = find(&side->ours, id);
	if (far && far->watch && !far->told) {
		far->told = true;
		hml_watch_tell_one(far->watch);
	}
	hml_unlock(&hml_watch_lock);
}

/* ---- theirs ---- */

struct hml_known *hml_far_known(const struct hml_watch *w)
{
	return &w->far->side->known;
}

/* A slot here, which the other host watches, is gone. */
void hml_far_tell(struct hml_watch *w)
{
	tell_later(w->far, FAR_GONE);
}

/* As a packet's wrong key. */
static void take_guess(const struct hml_far *far, int reject)
{
	struct hml_far_side *side = far->side;

	if (reject != HAMLYN_REJECT_KEY && reject != HAMLYN_REJECT_TICKET)
		return;
	if (!hml_watch_knew(&side->known, side->nic->host, far->slot, far->key))
		hml_bucket_take(&far->who->bucket, READ_ONCE(side->nic->guesses),
				ktime_get_ns());
}

static struct hml_watch *watch_new(struct hml_far_side *side, struct hml_far_user *who,
				   const struct hml_wire_watch *arg)
{
	struct hml_watch *w = kzalloc(sizeof(*w), GFP_KERNEL | __GFP_NOWARN);
	struct hml_far *far = far_new(GFP_KERNEL | __GFP_NOWARN);

	if (!w || !far) {
		kfree(w);
		kfree(far);
		return NULL;
	}
	INIT_LIST_HEAD(&w->place);
	RB_CLEAR_NODE(&w->known);
	w->far = far;
	w->host = side->nic->host;
	w->slot = arg->slot;
	far->side = side;
	far->watch = w;
	far->who = who;
	far->key = arg->key;
	far->id = arg->id;
	far->slot = arg->slot;
	far->meta_index = arg->meta_index;
	far->flags = arg->flags;
	far->user = arg->user;
	return w;
}

/* Return: whether it is new, and one more may be kept. */
static bool enlist_theirs(struct hml_far_side *side, struct hml_watch *w)
{
	lockdep_assert_held(&hml_watch_lock);
	if (!side->up || side->theirs_count == HML_FAR_MOST || !insert(&side->theirs, w->far))
		return false;
	side->theirs_count++;
	return true;
}

/*
 * A key may be tried, as WATCH of a user here would be; if not now, then later: nobody learns
 * anything of slot and key from that, and an honest user is not told that a slot is gone.
 */
static int try_key(struct hml_far *far, struct hml_slot *slot)
{
	const struct hamlyn_watch by = {
		.key = far->key,
		.slot = far->slot,
		.meta_index = far->meta_index,
		.flags = far->flags,
	};
	int reject;

	lockdep_assert_held(&hml_watch_lock);
	if (hml_bucket_until(&far->who->bucket, ktime_get_ns())) {
		far->due = FAR_HELD;
		list_add_tail(&far->out, &far->side->held);
		return HML_WATCH_ARMED;
	}
	far->due = FAR_SENT;
	reject = hml_watch_arm_on(far->side->nic, slot, far->watch, &by);
	take_guess(far, reject);
	if (reject == HML_WATCH_CLAIMED)
		far->why = HML_WIRE_WATCH_CLAIMED;
	if (reject != HML_WATCH_ARMED)
		hml_watch_tell_one(far->watch);
	return reject;
}

/**
 * hml_far_watch() - the other host watches a slot here
 * @side: the two hosts
 * @who: whose watch it is, as the other host says
 * @arg: what it asks for
 *
 * Return: false if it cannot be kept: the other host would never be told.
 */
bool hml_far_watch(struct hml_far_side *side, struct hml_far_user *who,
		   const struct hml_wire_watch *arg)
{
	struct hml_watch *w = watch_new(side, who, arg);
	int reject = HML_WATCH_ARMED;
	struct hml_slot *slot;
	bool is_new;

	if (!w)
		return false;
	hml_section_begin();
	slot = hml_port_slot(&side->nic->port, arg->slot);
	hml_lock(&hml_watch_lock);
	is_new = enlist_theirs(side, w);
	if (is_new)
		reject = try_key(w->far, slot);
	hml_unlock(&hml_watch_lock);
	if (reject >= 0)
		hml_watch_note_reject(side->nic, slot, arg->slot, side->host, 0, arg->user,
				      reject);
	hml_section_end();
	if (!is_new) {
		kfree_sensitive(w->far);
		kfree(w);
	}
	return is_new;
}

/* The first of those that are held back has its turn. Return: false if there is none. */
static bool retry_one(struct hml_far_side *side)
{
	int reject = HML_WATCH_ARMED;
	struct hml_slot *slot = NULL;
	u32 number = 0, user = 0;
	struct hml_far *far;

	hml_section_begin();
	hml_lock(&hml_watch_lock);
	far = list_first_entry_or_null(&side->held, struct hml_far, out);
	if (far) {
		list_del_init(&far->out);
		number = far->slot;
		user = far->user;
		slot = hml_port_slot(&side->nic->port, number);
		reject = try_key(far, slot);
	}
	/* It may end behind the lock. */
	hml_unlock(&hml_watch_lock);
	if (reject >= 0)
		hml_watch_note_reject(side->nic, slot, number, side->host, 0, user, reject);
	hml_section_end();
	return far;
}

/* Now and then: some of those that are held back may be tried. */
void hml_far_retry(struct hml_far_side *side)
{
	u32 n;

	for (n = 0; n < RETRIES && !list_empty_careful(&side->held) && retry_one(side); n++)
		cond_resched();
}

/* Out of the tree: nobody finds it any more. */
static void take_out(struct hml_far_side *side, struct hml_watch *w)
{
	lockdep_assert_held(&hml_watch_lock);
	hml_watch_detach(w);
	list_del_init(&w->far->out);
	rb_erase(&w->far->node, &side->theirs);
	side->theirs_count--;
}

static void free_theirs(struct hml_watch *w)
{
	hml_watch_forget(w);
	kfree_sensitive(w->far);
	kfree_sensitive(w);
}

void hml_far_unwatch(struct hml_far_side *side, u32 id)
{
	struct hml_watch *w = NULL;
	struct hml_far *far;

	hml_lock(&hml_watch_lock);
	far = find(&side->theirs, id);
	if (far) {
		w = far->watch;
		take_out(side, w);
	}
	hml_unlock(&hml_watch_lock);
	if (w)
		free_theirs(w);
}

/* ---- what is to be told ---- */

static void note_of(const struct hml_far *far, struct hml_far_note *note)
{
	static const u32 types[] = {
		[FAR_WATCH] = HML_WIRE_WATCH,
		[FAR_UNWATCH] = HML_WIRE_UNWATCH,
		[FAR_GONE] = HML_WIRE_GONE,
	};

	*note = (struct hml_far_note) {
		.type = types[far->due],
		.why = far->why,
		.watch = {
			.key = far->key,
			.id = far->id,
			.flags = far->flags,
			.slot = far->slot,
			.meta_index = far->meta_index,
			.user = far->user,
		},
	};
}

/**
 * hml_far_next() - what is to be told next
 * @side: the two hosts
 * @note: what
 *
 * The caller has room for it.
 *
 * Return: false if there is nothing.
 */
bool hml_far_next(struct hml_far_side *side, struct hml_far_note *note)
{
	struct hml_far *far, *ended = NULL;

	if (list_empty_careful(&side->out))
		return false;
	hml_lock(&hml_watch_lock);
	far = list_first_entry_or_null(&side->out, struct hml_far, out);
	if (far) {
		list_del_init(&far->out);
		note_of(far, note);
		if (far->due == FAR_UNWATCH) {
			leave_ours(far);
			ended = far;
		}
		far->due = FAR_SENT;
	}
	hml_unlock(&hml_watch_lock);
	hml_far_free(ended);
	if (far && note->type == HML_WIRE_GONE)
		trace_hamlyn_peer_told(side->nic, side->host, note->watch.slot, note->watch.user,
				       note->why);
	return far;
}

/* For hml_outbox_control(). */
u32 hml_far_pack(struct hml_wire_tx *tx, u8 *to, void *note)
{
	const struct hml_far_note *n = note;

	switch (n->type) {
	case HML_WIRE_WATCH:
		return hml_wire_pack_watch(tx, to, &n->watch);
	case HML_WIRE_UNWATCH:
		return hml_wire_pack_unwatch(tx, to, n->watch.id);
	default:
		return hml_wire_pack_gone(tx, to, n->watch.id, n->why);
	}
}

/* ---- a connection ---- */

void hml_far_up(struct hml_far_side *side)
{
	hml_lock(&hml_watch_lock);
	side->up = true;
	hml_unlock(&hml_watch_lock);
}

/* The first that is left of ours: it is told. Return: what is to be freed. */
static struct hml_far *lose_one(struct hml_far_side *side)
{
	struct rb_node *n = rb_first(&side->ours);
	struct hml_far *far = n ? rb_entry(n, struct hml_far, node) : NULL;

	lockdep_assert_held(&hml_watch_lock);
	if (!far)
		return NULL;
	list_del_init(&far->out);
	leave_ours(far);
	if (far->watch) {
		far->watch->far = NULL;
		if (!far->told)
			hml_watch_tell_one(far->watch);
	}
	return far;
}

static bool lose_ours(struct hml_far_side *side)
{
	struct hml_far *far;

	hml_lock(&hml_watch_lock);
	side->up = false;
	far = lose_one(side);
	hml_unlock(&hml_watch_lock);
	hml_far_free(far);
	return far;
}

static bool lose_theirs(struct hml_far_side *side)
{
	struct hml_watch *w = NULL;
	struct rb_node *n;

	hml_lock(&hml_watch_lock);
	n = rb_first(&side->theirs);
	if (n) {
		w = rb_entry(n, struct hml_far, node)->watch;
		take_out(side, w);
	}
	hml_unlock(&hml_watch_lock);
	if (w)
		free_theirs(w);
	return w;
}

/**
 * hml_far_lost() - the other host is lost
 * @side: the two hosts
 *
 * Every watch of ours on its slots is told; it has none on ours any more.
 */
void hml_far_lost(struct hml_far_side *side)
{
	while (lose_ours(side))
		cond_resched();
	while (lose_theirs(side))
		cond_resched();
}
