// SPDX-License-Identifier: GPL-2.0-only
/* What one user may have of a NIC, so that there is something for the others. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "hml.h"
#include "trace.h"

#define FORGET_BATCH	32	/* records looked at in one go */

/* Asked at every call of everybody: no word of it in the audit log. */
static bool exempt_user(void)
{
	return ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
}

static unsigned long kib(unsigned long pages)
{
	return pages << (PAGE_SHIFT - 10);
}

static bool exceeds(unsigned long used, unsigned long more, unsigned long limit)
{
	return used > limit || more > limit - used;
}

/* ---- records ---- */

/*
 * Who answers for the current user: himself, or who made the outermost of his user
 * namespaces. Else whoever has subordinate uids would have as many shares, and as many
 * free guesses. Not if that was root, who makes containers for others.
 */
static kuid_t responsible(void)
{
	const struct user_namespace *ns = current_user_ns();
	kuid_t uid = current_euid();

	for (; ns != &init_user_ns; ns = ns->parent)
		uid = ns->owner;
	return uid_eq(uid, GLOBAL_ROOT_UID) ? current_euid() : uid;
}

/* ---- all NICs together ---- */

/*
 * A NIC's limit is not enough where there are several: the memory is one. Half
 * of what all may have is one user's share.
 */
static DEFINE_RAW_SPINLOCK(all_lock);	/* all_pages, accounts and what is in them */
static unsigned long all_pages;
static struct rb_root accounts = RB_ROOT;

/**
 * struct hml_account - what one user has of all NICs
 * @node: in accounts, by @uid
 * @uid: the user; constant
 * @ref: records of NICs
 * @pages: kernel memory
 */
struct hml_account {
	struct rb_node node;
	kuid_t uid;
	u32 ref;
	unsigned long pages;
};

/* Where an account of @uid hangs, or would. */
static struct rb_node **account_place(kuid_t uid, struct rb_node **parent)
{
	struct rb_node **link = &accounts.rb_node;

	lockdep_assert_held(&all_lock);
	*parent = NULL;
	while (*link) {
		struct hml_account *a = rb_entry(*link, struct hml_account,
						 node);

		if (uid_eq(uid, a->uid))
			break;
		*parent = *link;
		link = uid_lt(uid, a->uid) ? &(*link)->rb_left :
					     &(*link)->rb_right;
	}
	return link;
}

/* @fresh, or what there was of that user. */
static struct hml_account *account_find(struct hml_account *fresh)
{
	struct rb_node *parent, **link = account_place(fresh->uid, &parent);

	if (*link)
		return rb_entry(*link, struct hml_account, node);
	rb_link_node(&fresh->node, parent, link);
	rb_insert_color(&fresh->node, &accounts);
	return fresh;
}

/* With one more reference, or NULL. */
static struct hml_account *account_get(kuid_t uid)
{
	struct hml_account *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	struct hml_account *a;

	if (!fresh)
		return NULL;
	fresh->uid = uid;
	raw_spin_lock(&all_lock);
	a = account_find(fresh);
	a->ref++;
	raw_spin_unlock(&all_lock);
	if (a != fresh)
		kfree(fresh);
	return a;
}

static void account_put(struct hml_account *a)
{
	bool last;

	raw_spin_lock(&all_lock);
	last = !--a->ref;
	if (last)
		rb_erase(&a->node, &accounts);
	raw_spin_unlock(&all_lock);
	if (last)
		kfree(a);
}

/* ---- what is in the way ---- */

/**
 * struct refusal - a limit that was in the way, to be told without locks
 * @what: of what
 * @attr: HAMLYN_A_*; 0: nothing is in the way
 * @all: it is a limit of all users together
 * @more: asked for
 * @used: in use
 * @limit: the limit
 * @had: what the user had
 */
struct refusal {
	const char *what;
	u32 attr;
	bool all;
	unsigned long more;
	unsigned long used;
	unsigned long limit;
	struct hml_limits had;
};

static bool in_pages(const struct refusal *r)
{
	return r->attr == HAMLYN_A_KERNEL_BYTES ||
	       r->attr == HAMLYN_A_WIRED_BYTES;
}

/*
 * After users_lock was let go, for which everybody waits: an event allocates, and copies to
 * whoever listens.
 */
static int refuse(struct hml_context *c, const struct refusal *r)
{
	unsigned long more = r->more, used = r->used, limit = r->limit;
	const char *unit = "";

	if (!r->attr)
		return 0;
	if (in_pages(r)) {
		more = kib(more);
		used = kib(used);
		limit = kib(limit);
		unit = " KiB";
	}
	if (r->all)
		hml_explain(c, "%s: %lu KiB asked for, %lu of %lu KiB in use",
			    r->what, more, used, limit);
	else
		hml_explain(c, "%s: %lu%s asked for, %lu%s of the user's %lu%s in use",
			    r->what, more, unit, used, unit, limit, unit);
	trace_hamlyn_quota(c, r->what, more, used, limit);
	hml_event_quota(c, r->attr, &r->had);
	return -EDQUOT;
}

/* Would @more be too much? Then @r says so. */
static bool over(struct refusal *r, unsigned long more, unsigned long used,
		 unsigned long limit)
{
	r->more = more;
	r->used = used;
	r->limit = limit;
	return exceeds(used, more, limit);
}

/* ---- records ---- */

/*
 * Whoever closes everything and begins anew must not have free guesses again, so a record
 * outlives its last reference until they are forgiven.
 */
static bool forgettable(const struct hml_user *u)
{
	return !u->ref && !u->limited &&
	       hml_guard_forgiven(&u->guard, ktime_get_ns());
}

/* Out of the NIC's tree. Return: @u if it is to be freed, without the lock; or NULL. */
static struct hml_user *forget(struct hml_device *d, struct hml_user *u)
{
	lockdep_assert_held(&d->users_lock);
	if (!forgettable(u))
		return NULL;
	rb_erase(&u->node, &d->users);
	return u;
}

static void user_free(struct hml_user *u)
{
	if (!u)
		return;
	account_put(u->account);
	kfree(u);
}

/*
 * Everybody's charges wait for users_lock, so what may have to wait, memory, is allocated
 * before it is taken, and freed after it was let go.
 */
static struct hml_user *user_new(kuid_t uid)
{
	struct hml_user *u = kzalloc(sizeof(*u), GFP_KERNEL_ACCOUNT);

	if (!u)
		return NULL;
	u->uid = uid;
	u->account = account_get(uid);
	if (u->account)
		return u;
	kfree(u);
	return NULL;
}

/* Where a record of @uid hangs, or would. */
static struct rb_node **user_place(struct hml_device *d, kuid_t uid,
				   struct rb_node **parent)
{
	struct rb_node **link = &d->users.rb_node;

	lockdep_assert_held(&d->users_lock);
	*parent = NULL;
	while (*link) {
		struct hml_user *u = rb_entry(*link, struct hml_user, node);

		if (uid_eq(uid, u->uid))
			break;
		*parent = *link;
		link = uid_lt(uid, u->uid) ? &(*link)->rb_left :
					     &(*link)->rb_right;
	}
	return link;
}

/* That of *@fresh's uid: *@fresh, which is NULL from then on, or what there was. */
static struct hml_user *user_find(struct hml_device *d, struct hml_user **fresh)
{
	struct rb_node *parent, **link = user_place(d, (*fresh)->uid, &parent);
	struct hml_user *u = *fresh;

	if (*link)
		return rb_entry(*link, struct hml_user, node);
	rb_link_node(&u->node, parent, link);
	rb_insert_color(&u->node, &d->users);
	*fresh = NULL;
	return u;
}

/* The first whose uid is @from or more, or NULL. */
static struct hml_user *user_from(struct hml_device *d, u32 from)
{
	struct rb_node *n = d->users.rb_node;
	struct hml_user *best = NULL;

	lockdep_assert_held(&d->users_lock);
	while (n) {
		struct hml_user *u = rb_entry(n, struct hml_user, node);

		if (__kuid_val(u->uid) < from) {
			n = n->rb_right;
		} else {
			best = u;
			n = n->rb_left;
		}
	}
	return best;
}

/**
 * hml_user_next() - look at the users of a NIC in turn
 * @d: the NIC
 * @from: the least uid of interest
 * @copy: out: the record of the first user from there on, as it was
 *
 * Return: whether there is one.
 */
bool hml_user_next(struct hml_device *d, kuid_t from, struct hml_user *copy)
{
	struct hml_user *u;

	raw_spin_lock(&d->users_lock);
	u = user_from(d, __kuid_val(from));
	if (u)
		*copy = *u;
	raw_spin_unlock(&d->users_lock);
	return u;
}

/* A context's, for what is counted of it. */
static struct hml_user *user_of(struct hml_context *c)
{
	lockdep_assert_held(&c->device->users_lock);
	return c->user;
}

/* Some records in turn: everybody's charges wait, and there may be many. */
static void forget_some(struct hml_device *d, struct hml_user **gone)
{
	struct hml_user *u = user_from(d, d->users_seen);
	u32 n = 0, seen = 0;

	lockdep_assert_held(&d->users_lock);
	for (; u && seen < FORGET_BATCH; seen++) {
		struct rb_node *next = rb_next(&u->node);

		if (forget(d, u))
			gone[n++] = u;
		u = rb_entry_safe(next, struct hml_user, node);
	}
	d->users_seen = u ? __kuid_val(u->uid) : 0;
}

/**
 * hml_user_get() - the record of the current user, for a new context
 * @d: the NIC
 *
 * Return: the record, with one more reference, or an ERR_PTR().
 */
struct hml_user *hml_user_get(struct hml_device *d)
{
	struct hml_user *gone[FORGET_BATCH] = {};
	struct hml_user *fresh = user_new(responsible());
	struct hml_user *u;
	u32 i;

	if (!fresh)
		return ERR_PTR(-ENOMEM);
	raw_spin_lock(&d->users_lock);
	forget_some(d, gone);
	u = user_find(d, &fresh);
	u->ref++;
	u->contexts++;
	raw_spin_unlock(&d->users_lock);
	user_free(fresh);
	for (i = 0; i < FORGET_BATCH; i++)
		user_free(gone[i]);
	return u;
}

/* Return: what user_free() is to free. */
static struct hml_user *put_locked(struct hml_device *d, struct hml_user *u)
{
	u->ref--;
	return forget(d, u);
}

/* A context is gone. */
void hml_user_put(struct hml_device *d, struct hml_user *u)
{
	raw_spin_lock(&d->users_lock);
	u->contexts--;
	u = put_locked(d, u);
	raw_spin_unlock(&d->users_lock);
	user_free(u);
}

/* The NIC is gone. */
void hml_users_free(struct hml_device *d)
{
	struct hml_user *u, *next;

	rbtree_postorder_for_each_entry_safe(u, next, &d->users, node)
		user_free(u);
}

/* ---- limits ---- */

/* d->users_lock is held. */
struct hml_limits hml_user_limits(const struct hml_device *d,
				  const struct hml_user *u)
{
	lockdep_assert_held(&d->users_lock);
	return u->limited ? u->limits : d->user_limits;
}

/**
 * hml_user_limits_of() - the limits of a user by number
 * @d: the NIC
 * @uid: the user, who may have nothing here
 *
 * Return: the limits.
 */
struct hml_limits hml_user_limits_of(struct hml_device *d, kuid_t uid)
{
	struct rb_node *parent, **link;
	struct hml_limits l;

	raw_spin_lock(&d->users_lock);
	link = user_place(d, uid, &parent);
	l = *link ? hml_user_limits(d, rb_entry(*link, struct hml_user, node)) :
		    d->user_limits;
	raw_spin_unlock(&d->users_lock);
	return l;
}

/**
 * hml_user_set_limits() - give a user limits of its own
 * @d: the NIC
 * @uid: the user
 * @limits: the limits, or NULL for those that all have
 *
 * What there is already is not taken away.
 *
 * Return: 0 or -ENOMEM.
 */
int hml_user_set_limits(struct hml_device *d, kuid_t uid,
			const struct hml_limits *limits)
{
	struct hml_user *fresh = user_new(uid);
	struct hml_user *u;

	if (!fresh)
		return -ENOMEM;
	raw_spin_lock(&d->users_lock);
	u = user_find(d, &fresh);
	u->limited = limits;
	if (limits)
		u->limits = *limits;
	u = forget(d, u);
	raw_spin_unlock(&d->users_lock);
	user_free(fresh);
	user_free(u);
	/* It may be listed now, or no more. */
	hml_changed();
	return 0;
}

/* As charge_pages(); under its lock. */
static void charge_all(struct hml_account *a, unsigned long pages, bool exempt,
		       struct refusal *r)
{
	unsigned long most = hml_max_pages();

	r->what = "kernel memory of all NICs";
	raw_spin_lock(&all_lock);
	r->all = over(r, pages, all_pages, most);
	if (!r->all && (exempt || !over(r, pages, a->pages, most / 2))) {
		r->attr = 0;
		all_pages += pages;
		a->pages += pages;
	}
	raw_spin_unlock(&all_lock);
}

static void uncharge_all(struct hml_account *a, unsigned long pages)
{
	raw_spin_lock(&all_lock);
	all_pages -= pages;
	a->pages -= pages;
	raw_spin_unlock(&all_lock);
}

static void charge_pages(struct hml_context *c, unsigned long pages,
			 bool exempt, struct refusal *r)
{
	struct hml_device *d = c->device;
	struct hml_user *u = user_of(c);
	struct hml_limits limits = hml_user_limits(d, u);

	r->attr = HAMLYN_A_KERNEL_BYTES;
	r->had = u->used;
	r->what = "kernel memory of the NIC";
	r->all = over(r, pages, d->pages, d->max_pages);
	if (r->all)
		return;
	r->what = "kernel memory";
	if (!exempt && over(r, pages, u->used.pages, limits.pages))
		return;
	charge_all(u->account, pages, exempt, r);
	if (r->attr)
		return;
	d->pages += pages;
	u->used.pages += pages;
	u->ref++;
}

/**
 * hml_user_charge() - charge kernel memory to the NIC and to a context's user
 * @c: the context; its user gets one more reference
 * @pages: how much
 *
 * Return: 0, or -EDQUOT. CAP_SYS_RESOURCE passes the user's limit, nobody the NIC's.
 */
int hml_user_charge(struct hml_context *c, unsigned long pages)
{
	bool exempt = exempt_user();
	struct refusal r = {};

	raw_spin_lock(&c->device->users_lock);
	charge_pages(c, pages, exempt, &r);
	raw_spin_unlock(&c->device->users_lock);
	return refuse(c, &r);
}

/**
 * hml_user_uncharge() - less kernel memory
 * @d: the NIC
 * @u: the user
 * @pages: how much less
 * @all: that was all: the reference is put
 */
void hml_user_uncharge(struct hml_device *d, struct hml_user *u,
		       unsigned long pages, bool all)
{
	raw_spin_lock(&d->users_lock);
	d->pages -= pages;
	u->used.pages -= pages;
	uncharge_all(u->account, pages);
	u = all ? put_locked(d, u) : NULL;
	raw_spin_unlock(&d->users_lock);
	user_free(u);
}

/**
 * hml_user_charge_wired() - charge pinned memory to a context's user
 * @c: the context
 * @u: the user, or NULL; out: the user, with one more reference if it was NULL
 * @had: what is charged already of what is being pinned
 * @pages: how much more
 *
 * Return: 0, or -EDQUOT.
 */
int hml_user_charge_wired(struct hml_context *c, struct hml_user **u,
			  unsigned long had, unsigned long pages)
{
	struct refusal r = { .what = "wired memory (folios whole)" };
	bool exempt = exempt_user();
	struct hml_user *user;
	struct hml_limits limits;

	raw_spin_lock(&c->device->users_lock);
	user = user_of(c);
	limits = hml_user_limits(c->device, user);
	r.had = user->used;
	if (!exempt && over(&r, pages, user->used.wired, limits.wired)) {
		/* All that is being pinned was asked for, and none of it is in use. */
		r.more += had;
		r.used -= had;
		r.attr = HAMLYN_A_WIRED_BYTES;
	} else {
		user->used.wired += pages;
		c->device->wired += pages;
		if (!*u)
			user->ref++;
		*u = user;
	}
	raw_spin_unlock(&c->device->users_lock);
	return refuse(c, &r);
}

/* As hml_user_uncharge(), of pinned memory. */
void hml_user_uncharge_wired(struct hml_device *d, struct hml_user *u,
			     unsigned long pages, bool all)
{
	raw_spin_lock(&d->users_lock);
	u->used.wired -= pages;
	d->wired -= pages;
	u = all ? put_locked(d, u) : NULL;
	raw_spin_unlock(&d->users_lock);
	user_free(u);
}

/**
 * hml_user_charge_slot() - count one more slot
 * @c: the context
 *
 * Return: 0, or -EDQUOT.
 */
int hml_user_charge_slot(struct hml_context *c)
{
	struct refusal r = { .what = "slots" };
	bool exempt = exempt_user();
	struct hml_limits limits;
	struct hml_user *u;

	raw_spin_lock(&c->device->users_lock);
	u = user_of(c);
	limits = hml_user_limits(c->device, u);
	r.had = u->used;
	if (!exempt && over(&r, 1, u->used.slots, limits.slots))
		r.attr = HAMLYN_A_SLOTS;
	else
		u->used.slots++;
	raw_spin_unlock(&c->device->users_lock);
	return refuse(c, &r);
}

void hml_user_uncharge_slot(struct hml_context *c)
{
	raw_spin_lock(&c->device->users_lock);
	user_of(c)->used.slots--;
	raw_spin_unlock(&c->device->users_lock);
}

/**
 * hml_user_charge_terminus() - count one more terminus
 * @c: the context
 * @guard: out: what earlier termini of the user were guilty of
 *
 * Return: 0, or -EDQUOT.
 */
int hml_user_charge_terminus(struct hml_context *c, struct hml_guard *guard)
{
	struct refusal r = { .what = "termini" };
	bool exempt = exempt_user();
	struct hml_limits limits;
	struct hml_user *u;

	raw_spin_lock(&c->device->users_lock);
	u = user_of(c);
	limits = hml_user_limits(c->device, u);
	r.had = u->used;
	if (!exempt && over(&r, 1, u->used.termini, limits.termini)) {
		r.attr = HAMLYN_A_TERMINI;
	} else {
		u->used.termini++;
		c->device->term_count++;
		*guard = u->guard;
	}
	raw_spin_unlock(&c->device->users_lock);
	return refuse(c, &r);
}

/* Free guesses that are left, beside those that are being made. */
static bool guess_left(const struct hml_device *d, const struct hml_user *u)
{
	u32 free = READ_ONCE(d->nic.guesses);
	u64 score = hml_guard_score(&u->guard, ktime_get_ns());

	return !free || score + u->guessing < free;
}

/*
 * May the user guess without a terminus? Counted until hml_user_guess_end(), for what
 * becomes of it is not known before: once there are no free guesses left there is one at a
 * time, so that each is answered by what is known of the one before.
 */
bool hml_user_guess_begin(struct hml_context *c)
{
	struct hml_device *d = c->device;
	struct hml_user *u;
	bool may;

	raw_spin_lock(&d->users_lock);
	u = user_of(c);
	may = !hml_guard_paused(&d->nic, &u->guard) &&
	      (!u->guessing || guess_left(d, u));
	if (may)
		u->guessing++;
	raw_spin_unlock(&d->users_lock);
	return may;
}

/* It was @wrong, at a NIC that leaves @free of them. A terminus made now begins with it. */
void hml_user_guess_end(struct hml_context *c, bool wrong, u32 free)
{
	struct hml_stats stats = {};
	struct hml_sender sender = { .stats = &stats };
	struct hml_user *u;

	raw_spin_lock(&c->device->users_lock);
	u = user_of(c);
	u->guessing--;
	if (wrong) {
		sender.guard = u->guard;
		hml_guard_wrong(free, hml_port_now_ns(&c->device->nic.port),
				&sender);
		u->guard = sender.guard;
	}
	raw_spin_unlock(&c->device->users_lock);
}

void hml_user_uncharge_terminus(struct hml_context *c,
				const struct hml_guard *guard)
{
	raw_spin_lock(&c->device->users_lock);
	user_of(c)->used.termini--;
	c->device->term_count--;
	hml_guard_inherit(&user_of(c)->guard, guard);
	raw_spin_unlock(&c->device->users_lock);
}
