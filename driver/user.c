// SPDX-License-Identifier: GPL-2.0-only
/* What one user may have of a NIC, so that there is something for the others. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/ktime.h>
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

/*
 * Who closes everything and begins anew must not have his free guesses again,
 * so a record outlives its last reference until they are forgiven.
 */
static bool forgettable(const struct hml_user *u)
{
	return !u->ref && !u->limited &&
	       hml_guard_forgiven(&u->guard, ktime_get_ns());
}

static void forget(struct hml_device *d, struct hml_user *u)
{
	lockdep_assert_held(&d->users_lock);
	if (!forgettable(u))
		return;
	xa_erase(&d->users, __kuid_val(u->uid));
	kfree(u);
}

/*
 * Everybody's charges wait for users_lock: so memory, which one user may have to
 * wait for, is got before. A place that somebody gave back meanwhile is the
 * exception, and not waited for.
 */
static struct hml_user *user_new(struct hml_device *d, kuid_t uid)
{
	struct hml_user *u = kzalloc(sizeof(*u), GFP_KERNEL_ACCOUNT);

	if (!u)
		return NULL;
	u->uid = uid;
	if (!xa_reserve(&d->users, __kuid_val(uid), GFP_KERNEL_ACCOUNT))
		return u;
	kfree(u);
	return NULL;
}

/* That of @fresh's uid: @fresh, which is ours from here on, or what there was. */
static struct hml_user *user_find(struct hml_device *d, struct hml_user *fresh)
{
	unsigned long uid = __kuid_val(fresh->uid);
	struct hml_user *u = xa_load(&d->users, uid);
	int err = 0;

	lockdep_assert_held(&d->users_lock);
	if (!u)
		err = xa_err(xa_store(&d->users, uid, fresh,
				      GFP_NOWAIT | __GFP_NOWARN));
	if (!u && !err)
		return fresh;
	kfree(fresh);
	return u ?: ERR_PTR(err);
}

/* A context's, for what is counted of it. */
static struct hml_user *user_of(struct hml_context *c)
{
	lockdep_assert_held(&c->device->users_lock);
	return c->user;
}

/* Some records in turn: everybody's charges wait, and there may be many. */
static void forget_some(struct hml_device *d)
{
	unsigned long uid = d->users_seen;
	struct hml_user *u;
	u32 n = 0;

	lockdep_assert_held(&d->users_lock);
	xa_for_each_start(&d->users, uid, u, uid) {
		if (n++ == FORGET_BATCH)
			break;
		forget(d, u);
	}
	d->users_seen = u ? uid : 0;
}

/**
 * hml_user_get() - the record of the current user, for a new context
 * @d: the NIC
 *
 * Return: the record, with one more reference, or an ERR_PTR().
 */
struct hml_user *hml_user_get(struct hml_device *d)
{
	struct hml_user *u = user_new(d, responsible());

	if (!u)
		return ERR_PTR(-ENOMEM);
	mutex_lock(&d->users_lock);
	forget_some(d);
	u = user_find(d, u);
	if (!IS_ERR(u)) {
		u->ref++;
		u->contexts++;
	}
	mutex_unlock(&d->users_lock);
	return u;
}

static void put_locked(struct hml_device *d, struct hml_user *u)
{
	u->ref--;
	forget(d, u);
}

/* A context is gone. */
void hml_user_put(struct hml_device *d, struct hml_user *u)
{
	mutex_lock(&d->users_lock);
	u->contexts--;
	put_locked(d, u);
	mutex_unlock(&d->users_lock);
}

/* The NIC is gone. */
void hml_users_free(struct hml_device *d)
{
	struct hml_user *u;
	unsigned long uid;

	xa_for_each(&d->users, uid, u)
		kfree(u);
	xa_destroy(&d->users);
}

/* ---- all NICs together ---- */

/*
 * A NIC's limit is not enough where there are several: the memory is one. Half
 * of what all may have is one user's share.
 */
static DEFINE_MUTEX(all_lock);		/* all_pages, all_users */
static unsigned long all_pages;
static DEFINE_XARRAY(all_users);	/* pages, by uid */

static unsigned long pages_of(kuid_t uid)
{
	void *entry = xa_load(&all_users, __kuid_val(uid));

	lockdep_assert_held(&all_lock);
	return entry ? xa_to_value(entry) : 0;
}

static int set_pages(kuid_t uid, unsigned long pages)
{
	if (!pages) {
		xa_erase(&all_users, __kuid_val(uid));
		return 0;
	}
	return xa_err(xa_store(&all_users, __kuid_val(uid),
			       xa_mk_value(pages), GFP_NOWAIT | __GFP_NOWARN));
}

/* The user's limit of @what is in the way. */
static int refuse(struct hml_context *c, const char *what, const char *unit,
		  unsigned long more, unsigned long used, unsigned long limit,
		  u32 attr)
{
	hml_explain(c, "%s: %lu%s asked for, %lu%s of the user's %lu%s in use",
		    what, more, unit, used, unit, limit, unit);
	trace_hamlyn_quota(c, what, more, used, limit);
	hml_event_quota(c, attr);
	return -EDQUOT;
}

/* A limit of all users together is in the way. */
static int refuse_all(struct hml_context *c, const char *what,
		      unsigned long more, unsigned long used,
		      unsigned long limit)
{
	hml_explain(c, "%s: %lu KiB asked for, %lu of %lu KiB in use", what,
		    kib(more), kib(used), kib(limit));
	trace_hamlyn_quota(c, what, kib(more), kib(used), kib(limit));
	hml_event_quota(c, HAMLYN_A_KERNEL_BYTES);
	return -EDQUOT;
}

static int charge_all(struct hml_context *c, unsigned long pages, bool exempt)
{
	static const char what[] = "kernel memory of all NICs";
	unsigned long most = hml_max_pages();
	kuid_t uid = c->user->uid;
	unsigned long had;
	int err;

	mutex_lock(&all_lock);
	had = pages_of(uid);
	if (exceeds(all_pages, pages, most))
		err = refuse_all(c, what, pages, all_pages, most);
	else if (!exempt && exceeds(had, pages, most / 2))
		err = refuse(c, what, " KiB", kib(pages), kib(had),
			     kib(most / 2), HAMLYN_A_KERNEL_BYTES);
	else
		err = set_pages(uid, had + pages);
	if (!err)
		all_pages += pages;
	mutex_unlock(&all_lock);
	return err;
}

static void uncharge_all(kuid_t uid, unsigned long pages)
{
	mutex_lock(&all_lock);
	all_pages -= pages;
	set_pages(uid, pages_of(uid) - pages);
	mutex_unlock(&all_lock);
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
 * hml_user_set_limits() - give a user limits of his own
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
	struct hml_user *u = user_new(d, uid);
	int err = 0;

	if (!u)
		return -ENOMEM;
	mutex_lock(&d->users_lock);
	u = user_find(d, u);
	if (IS_ERR(u)) {
		err = PTR_ERR(u);
	} else {
		u->limited = limits;
		if (limits)
			u->limits = *limits;
		forget(d, u);
		/* It may be listed now, or no more. */
		hml_changed();
	}
	mutex_unlock(&d->users_lock);
	return err;
}

static int charge_pages(struct hml_context *c, unsigned long pages, bool exempt)
{
	struct hml_device *d = c->device;
	struct hml_user *u = c->user;
	struct hml_limits limits = hml_user_limits(d, u);
	int err;

	if (exceeds(d->pages, pages, d->max_pages))
		return refuse_all(c, "kernel memory of the NIC", pages,
				  d->pages, d->max_pages);
	if (!exempt && exceeds(u->used.pages, pages, limits.pages))
		return refuse(c, "kernel memory", " KiB", kib(pages),
			      kib(u->used.pages), kib(limits.pages),
			      HAMLYN_A_KERNEL_BYTES);
	err = charge_all(c, pages, exempt);
	if (err)
		return err;
	d->pages += pages;
	u->used.pages += pages;
	u->ref++;
	return 0;
}

/**
 * hml_user_charge() - charge kernel memory to the NIC and to a context's user
 * @c: the context; its user gets one more reference
 * @pages: how much
 *
 * Return: 0, -ENOMEM, or -EDQUOT. CAP_SYS_RESOURCE passes the user's limit,
 * nobody the NIC's.
 */
int hml_user_charge(struct hml_context *c, unsigned long pages)
{
	unsigned long uid = __kuid_val(c->user->uid);
	bool exempt = exempt_user();
	int err;

	/* As in user_new() */
	err = xa_reserve(&all_users, uid, GFP_KERNEL);
	if (err)
		return err;
	mutex_lock(&c->device->users_lock);
	err = charge_pages(c, pages, exempt);
	mutex_unlock(&c->device->users_lock);
	if (err)
		xa_release(&all_users, uid);
	return err;
}

void hml_user_uncharge(struct hml_device *d, struct hml_user *u,
		       unsigned long pages)
{
	mutex_lock(&d->users_lock);
	d->pages -= pages;
	u->used.pages -= pages;
	uncharge_all(u->uid, pages);
	put_locked(d, u);
	mutex_unlock(&d->users_lock);
}

/**
 * hml_user_charge_wired() - charge pinned memory to a context's user
 * @c: the context
 * @u: out: the user, with one more reference
 * @pages: how much
 *
 * Return: 0, or -EDQUOT.
 */
int hml_user_charge_wired(struct hml_context *c, struct hml_user **u,
			  unsigned long pages)
{
	bool exempt = exempt_user();
	struct hml_user *user = c->user;
	struct hml_limits limits;
	int err = 0;

	mutex_lock(&c->device->users_lock);
	limits = hml_user_limits(c->device, user);
	if (!exempt && exceeds(user->used.wired, pages, limits.wired)) {
		err = refuse(c, "wired memory", " KiB", kib(pages),
			     kib(user->used.wired), kib(limits.wired),
			     HAMLYN_A_WIRED_BYTES);
	} else {
		user->used.wired += pages;
		c->device->wired += pages;
		user->ref++;
		*u = user;
	}
	mutex_unlock(&c->device->users_lock);
	return err;
}

void hml_user_uncharge_wired(struct hml_device *d, struct hml_user *u,
			     unsigned long pages)
{
	mutex_lock(&d->users_lock);
	u->used.wired -= pages;
	d->wired -= pages;
	put_locked(d, u);
	mutex_unlock(&d->users_lock);
}

/**
 * hml_user_charge_slot() - count one more slot
 * @c: the context
 *
 * Return: 0, or -EDQUOT.
 */
int hml_user_charge_slot(struct hml_context *c)
{
	bool exempt = exempt_user();
	struct hml_user *u = c->user;
	struct hml_limits limits;
	int err = 0;

	mutex_lock(&c->device->users_lock);
	limits = hml_user_limits(c->device, u);
	if (!exempt && exceeds(u->used.slots, 1, limits.slots))
		err = refuse(c, "slots", "", 1, u->used.slots, limits.slots,
			     HAMLYN_A_SLOTS);
	else
		u->used.slots++;
	mutex_unlock(&c->device->users_lock);
	return err;
}

void hml_user_uncharge_slot(struct hml_context *c)
{
	mutex_lock(&c->device->users_lock);
	user_of(c)->used.slots--;
	mutex_unlock(&c->device->users_lock);
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
	bool exempt = exempt_user();
	struct hml_user *u = c->user;
	struct hml_limits limits;
	int err = 0;

	mutex_lock(&c->device->users_lock);
	limits = hml_user_limits(c->device, u);
	if (!exempt && exceeds(u->used.termini, 1, limits.termini)) {
		err = refuse(c, "termini", "", 1, u->used.termini,
			     limits.termini, HAMLYN_A_TERMINI);
	} else {
		u->used.termini++;
		c->device->term_count++;
		*guard = u->guard;
	}
	mutex_unlock(&c->device->users_lock);
	return err;
}

/*
 * May the user guess without a terminus? Then nobody else does until hml_user_guess_end():
 * whoever comes next is answered by what is known of this guess.
 */
bool hml_user_guess_begin(struct hml_context *c)
{
	mutex_lock(&c->device->users_lock);
	if (!hml_guard_paused(&c->device->nic, &user_of(c)->guard))
		return true;
	mutex_unlock(&c->device->users_lock);
	return false;
}

/* It was @wrong, at a NIC that leaves @free of them. Who makes a terminus now begins with it. */
void hml_user_guess_end(struct hml_context *c, bool wrong, u32 free)
{
	struct hml_stats stats = {};
	struct hml_sender sender = {
		.guard = user_of(c)->guard,
		.stats = &stats,
	};

	if (wrong) {
		hml_guard_wrong(free, hml_port_now_ns(&c->device->nic.port),
				&sender);
		user_of(c)->guard = sender.guard;
	}
	mutex_unlock(&c->device->users_lock);
}

void hml_user_uncharge_terminus(struct hml_context *c,
				const struct hml_guard *guard)
{
	mutex_lock(&c->device->users_lock);
	user_of(c)->used.termini--;
	c->device->term_count--;
	hml_guard_inherit(&user_of(c)->guard, guard);
	mutex_unlock(&c->device->users_lock);
}
