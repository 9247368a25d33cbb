// SPDX-License-Identifier: GPL-2.0-only
/*
 * What one user may have of a NIC, so that there is something for the others.
 *
 * Not by cgroups, which are not a module's to ask: ucounts are not exported, and the misc
 * controller's resources are an enum of the kernel. Nor could they say what is left for those
 * who come later. What the kernel allocates is charged to the memory cgroup as well
 * (GFP_KERNEL_ACCOUNT), which may be stricter.
 */
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
 * The uid to charge: the creator of the outermost user namespace that root did not make, so
 * that subordinate uids share one quota, and one bucket of wrong keys, also inside of
 * containers that root makes for others.
 */
static kuid_t responsible(void)
{
	const struct user_namespace *ns = current_user_ns();
	kuid_t uid = current_euid();

	for (; ns != &init_user_ns; ns = ns->parent)
		if (!uid_eq(ns->owner, GLOBAL_ROOT_UID))
			uid = ns->owner;
	return uid;
}

/*
 * Whose share: the user's, or if root made the outermost namespace all of that container's
 * together. It has its number as long as there is anybody in it, and one in a pipe of which memory
 * outlived it is nothing to worry about.
 */
static u64 share_key(void)
{
	const struct user_namespace *ns = current_user_ns();

	if (ns == &init_user_ns)
		return __kuid_val(responsible());
	while (ns->parent != &init_user_ns)
		ns = ns->parent;
	return uid_eq(ns->owner, GLOBAL_ROOT_UID) ?
	       BIT_ULL(32) | ns->ns.inum : __kuid_val(responsible());
}

/* ---- all NICs together ---- */

/* A NIC's limit is not enough where there are several: the memory is one. */
static DEFINE_RAW_SPINLOCK(all_lock);	/* what follows, and what is in accounts */
static unsigned long all_pages;
static unsigned long all_wired;
static unsigned long all_small;
static struct rb_root accounts = RB_ROOT;

/**
 * struct hml_account - what one user, or one container, has of all NICs
 * @node: in accounts, by @key
 * @key: as in struct hml_quota, or a uid; constant
 * @ref: records of NICs
 * @pages: kernel memory
 * @wired: pinned pages
 * @small: bytes of objects
 * @locked: those that count against RLIMIT_MEMLOCK
 */
struct hml_account {
	struct rb_node node;
	u64 key;
	u32 ref;
	unsigned long pages;
	unsigned long wired;
	unsigned long small;
	unsigned long locked;
};

/* Where an account of @key hangs, or would. */
static struct rb_node **account_place(u64 key, struct rb_node **parent)
{
	struct rb_node **link = &accounts.rb_node;

	lockdep_assert_held(&all_lock);
	*parent = NULL;
	while (*link) {
		struct hml_account *a = rb_entry(*link, struct hml_account,
						 node);

		if (key == a->key)
			break;
		*parent = *link;
		link = key < a->key ? &(*link)->rb_left : &(*link)->rb_right;
	}
	return link;
}

/* @fresh, or what there was of that key. */
static struct hml_account *account_find(struct hml_account *fresh)
{
	struct rb_node *parent, **link = account_place(fresh->key, &parent);

	if (*link)
		return rb_entry(*link, struct hml_account, node);
	rb_link_node(&fresh->node, parent, link);
	rb_insert_color(&fresh->node, &accounts);
	return fresh;
}

/* With one more reference, or NULL. */
static struct hml_account *account_get(u64 key)
{
	struct hml_account *fresh = kzalloc(sizeof(*fresh), GFP_KERNEL_ACCOUNT);
	struct hml_account *a;

	if (!fresh)
		return NULL;
	fresh->key = key;
	hml_lock(&all_lock);
	a = account_find(fresh);
	a->ref++;
	hml_unlock(&all_lock);
	if (a != fresh)
		kfree(fresh);
	return a;
}

static void account_put(struct hml_account *a)
{
	bool last;

	hml_lock(&all_lock);
	last = !--a->ref;
	if (last)
		rb_erase(&a->node, &accounts);
	hml_unlock(&all_lock);
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

static u64 *quota_told(struct hml_user *u, u32 attr)
{
	switch (attr) {
	case HAMLYN_A_KERNEL_BYTES:
		return &u->quota_told[0];
	case HAMLYN_A_WIRED_BYTES:
		return &u->quota_told[1];
	case HAMLYN_A_SLOTS:
		return &u->quota_told[2];
	}
	return &u->quota_told[HML_QUOTA_KINDS - 1];
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
	if (r->all && hml_nic_admin(c->device))
		hml_explain(c, "%s: %lu KiB asked for, %lu of %lu KiB in use",
			    r->what, more, used, limit);
	else if (r->all)
		hml_explain(c, "%s: %lu KiB asked for, more than others leave of %lu KiB",
			    r->what, more, limit);
	else
		hml_explain(c, "%s: %lu%s asked for, %lu%s of the user's %lu%s in use",
			    r->what, more, unit, used, unit, limit, unit);
	trace_hamlyn_quota(c, r->what, more, used, limit);
	if (hml_event_again(quota_told(c->user, r->attr)))
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
 * A user that closes everything and begins anew must not find its bucket full again:
 * so a record outlives its last reference until it is, a moment later.
 */
static bool forgettable(const struct hml_user *u)
{
	return !u->ref && !u->limited &&
	       hml_bucket_full(&u->bucket, ktime_get_ns());
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
	hml_known_init(&u->known);
	u->account = account_get(__kuid_val(uid));
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

	hml_lock(&d->users_lock);
	u = user_from(d, __kuid_val(from));
	/* What is under another lock, or none, stays. */
	if (u)
		*copy = (struct hml_user) {
			.uid = u->uid,
			.ref = u->ref,
			.contexts = u->contexts,
			.used = u->used,
			.limits = u->limits,
			.limited = u->limited,
		};
	hml_unlock(&d->users_lock);
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

		hml_lock_step();
		if (forget(d, u))
			gone[n++] = u;
		u = rb_entry_safe(next, struct hml_user, node);
	}
	d->users_seen = u ? __kuid_val(u->uid) : 0;
}

/* ---- shares ---- */

/*
 * As whose other hosts are told of packets and watches. They have a bucket of wrong keys for each
 * user that they are told of, and not for many: so it is one for all uids of a share. That of a
 * container is the number of a namespace: above all uids that there are.
 */
u32 hml_user_told(const struct hml_context *c)
{
	return lower_32_bits(c->share->key);
}

/* What a context costs that is the first one of its user, and of its share. */
u32 hml_user_price(void)
{
	return hml_price(sizeof(struct hml_user)) + hml_price(sizeof(struct hml_quota)) +
	       2 * hml_price(sizeof(struct hml_account));
}

static void share_free(struct hml_quota *s)
{
	if (!s)
		return;
	account_put(s->account);
	kfree(s);
}

static struct hml_quota *share_new(void)
{
	struct hml_quota *s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);

	if (!s)
		return NULL;
	s->key = share_key();
	s->account = account_get(s->key);
	if (s->account)
		return s;
	kfree(s);
	return NULL;
}

/* That of *@fresh's key: *@fresh, which is NULL from then on, or what there was. */
static struct hml_quota *share_find(struct hml_device *d,
				    struct hml_quota **fresh)
{
	struct rb_node **link = &d->shares.rb_node, *parent = NULL;
	struct hml_quota *s;

	lockdep_assert_held(&d->users_lock);
	while (*link) {
		s = rb_entry(*link, struct hml_quota, node);
		if ((*fresh)->key == s->key)
			return s;
		parent = *link;
		link = (*fresh)->key < s->key ? &parent->rb_left :
						&parent->rb_right;
	}
	s = *fresh;
	rb_link_node(&s->node, parent, link);
	rb_insert_color(&s->node, &d->shares);
	*fresh = NULL;
	return s;
}

/* users_lock is held. One more object of theirs. */
static void payer_get(struct hml_payer p)
{
	p.user->ref++;
	p.share->ref++;
}

/* users_lock is held. Return: what payer_free() is to free. */
static struct hml_payer payer_put(struct hml_device *d, struct hml_payer p)
{
	struct hml_payer gone = {};

	lockdep_assert_held(&d->users_lock);
	p.user->ref--;
	gone.user = forget(d, p.user);
	if (--p.share->ref)
		return gone;
	rb_erase(&p.share->node, &d->shares);
	gone.share = p.share;
	return gone;
}

static void payer_free(struct hml_payer gone)
{
	user_free(gone.user);
	share_free(gone.share);
}

/**
 * hml_user_get() - who pays for a new context
 * @d: the NIC
 * @payer: out: the records of the current user, with one more reference
 *
 * Return: 0 or -ENOMEM.
 */
int hml_user_get(struct hml_device *d, struct hml_payer *payer)
{
	struct hml_user *gone[FORGET_BATCH] = {};
	struct hml_user *user = user_new(responsible());
	struct hml_quota *share = share_new();
	u32 i;

	if (!user || !share) {
		payer_free((struct hml_payer) { user, share });
		return -ENOMEM;
	}
	hml_lock(&d->users_lock);
	forget_some(d, gone);
	payer->user = user_find(d, &user);
	payer->share = share_find(d, &share);
	payer_get(*payer);
	payer->user->contexts++;
	hml_unlock(&d->users_lock);
	payer_free((struct hml_payer) { user, share });
	for (i = 0; i < FORGET_BATCH; i++)
		user_free(gone[i]);
	return 0;
}

/* A context is gone. */
void hml_user_put(struct hml_device *d, struct hml_payer payer)
{
	struct hml_payer gone;

	hml_lock(&d->users_lock);
	payer.user->contexts--;
	gone = payer_put(d, payer);
	hml_unlock(&d->users_lock);
	payer_free(gone);
}

/* The NIC is gone, and with it all shares. */
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

	hml_lock(&d->users_lock);
	link = user_place(d, uid, &parent);
	l = *link ? hml_user_limits(d, rb_entry(*link, struct hml_user, node)) :
		    d->user_limits;
	hml_unlock(&d->users_lock);
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
	hml_lock(&d->users_lock);
	u = user_find(d, &fresh);
	u->limited = limits;
	if (limits)
		u->limits = *limits;
	u = forget(d, u);
	hml_unlock(&d->users_lock);
	user_free(fresh);
	user_free(u);
	/* It may be listed now, or no more. */
	hml_changed();
	return 0;
}

/* ---- shares that nobody can take ---- */

/*
 * What there is of something is @total. Nobody knows who comes yet, so a part is open
 * to those only that have little:
 *
 *	least = min(guaranteed, total / 14)
 *	reserve = min(16 * least, total / 2)
 *
 * Up to @least anybody may take from all of it: so there is something left for at least
 * the tenth, also on a small machine, where two have taken three quarters of what is open to
 * all. Above, from what is not reserved, and no more than is left free of that then
 * (Choudhury and Hahne's dynamic threshold): one user alone gets a half of it, two a third
 * each, and so on. A user for whom an administrator has set limits keeps out of the
 * reserve, and has no such threshold.
 */
#define LEAST_SLOTS	128
#define LEAST_PAGES	(SZ_32M >> PAGE_SHIFT)
#define LEAST_SMALL	SZ_4M

static unsigned long most_of(unsigned long total, unsigned long taken,
			     unsigned long used, unsigned long guaranteed,
			     bool alone)
{
	unsigned long least = min(guaranteed, total / 14);
	unsigned long open = total - min(16 * least, total / 2);
	unsigned long free = open - min(open, taken);

	if (alone)
		return max(least, used + free);
	return max(least, used + (free - min(free, used)) / 2);
}

/**
 * hml_user_most_of() - what one may have of something else that many share
 * @total: all there is
 * @taken: of which all have
 * @used: of which this one has
 * @guaranteed: that everybody can have, if there is enough
 *
 * Return: how much this one may have now.
 */
unsigned long hml_user_most_of(unsigned long total, unsigned long taken, unsigned long used,
			       unsigned long guaranteed)
{
	return min(total - taken + used, most_of(total, taken, used, guaranteed, false));
}

/**
 * struct pool - something that all share
 * @total: all there is; ULONG_MAX: there is no end of it
 * @taken: of which all have
 * @guaranteed: that everybody can have, if there is enough
 */
struct pool {
	unsigned long total;
	unsigned long taken;
	unsigned long guaranteed;
};

/* May one who has @used of it have @more? Else @r says why not. */
static bool pool_refuses(struct refusal *r, const struct pool *p,
			 unsigned long more, unsigned long used,
			 unsigned long limit, bool alone)
{
	return over(r, more, used,
		    min(limit, most_of(p->total, p->taken, used, p->guaranteed,
				       alone)));
}

/* As charge_pages(); under its lock. */
static void charge_all(struct hml_payer payer, unsigned long pages, bool exempt,
		       struct refusal *r)
{
	struct pool pool = { hml_max_pages(), 0, LEAST_PAGES };
	struct hml_account *a = payer.share->account;

	r->what = "kernel memory of all NICs";
	hml_lock(&all_lock);
	pool.taken = all_pages;
	r->all = over(r, pages, all_pages, pool.total);
	if (!r->all &&
	    (exempt || !pool_refuses(r, &pool, pages, a->pages, ULONG_MAX,
				     payer.user->limited))) {
		r->attr = 0;
		all_pages += pages;
		a->pages += pages;
	}
	hml_unlock(&all_lock);
}

static void uncharge_all(struct hml_account *a, unsigned long pages)
{
	hml_lock(&all_lock);
	all_pages -= pages;
	a->pages -= pages;
	hml_unlock(&all_lock);
}

static void charge_pages(struct hml_context *c, unsigned long pages,
			 bool exempt, struct refusal *r)
{
	struct hml_device *d = c->device;
	struct hml_user *u = user_of(c);
	struct hml_limits limits = hml_user_limits(d, u);
	const struct pool pool = { d->max_pages, d->pages, LEAST_PAGES };

	r->attr = HAMLYN_A_KERNEL_BYTES;
	r->had = u->used;
	r->what = "kernel memory of the NIC";
	r->all = over(r, pages, d->pages, d->max_pages);
	if (r->all)
		return;
	r->what = "kernel memory";
	if (!exempt &&
	    (pool_refuses(r, &pool, pages, u->used.pages, limits.pages,
			  u->limited) ||
	     pool_refuses(r, &pool, pages, c->share->used.pages, limits.pages,
			  u->limited)))
		return;
	charge_all(hml_payer(c), pages, exempt, r);
	if (r->attr)
		return;
	d->pages += pages;
	u->used.pages += pages;
	c->share->used.pages += pages;
}

/* users_lock is held. */
static void uncharge_pages(struct hml_device *d, struct hml_payer p,
			   unsigned long pages)
{
	lockdep_assert_held(&d->users_lock);
	d->pages -= pages;
	p.user->used.pages -= pages;
	p.share->used.pages -= pages;
	uncharge_all(p.share->account, pages);
}

/**
 * hml_user_charge() - charge kernel memory to the NIC and to a context's user
 * @c: the context; its payer gets one more reference
 * @pages: how much
 *
 * Return: 0, or -EDQUOT. CAP_SYS_RESOURCE passes the user's limit, nobody the NIC's.
 */
int hml_user_charge(struct hml_context *c, unsigned long pages)
{
	bool exempt = exempt_user();
	struct refusal r = {};

	hml_lock(&c->device->users_lock);
	charge_pages(c, pages, exempt, &r);
	if (!r.attr)
		payer_get(hml_payer(c));
	hml_unlock(&c->device->users_lock);
	return refuse(c, &r);
}

/**
 * hml_user_uncharge() - less kernel memory
 * @d: the NIC
 * @payer: who paid
 * @pages: how much less
 * @all: that was all: the reference is put
 */
void hml_user_uncharge(struct hml_device *d, struct hml_payer payer,
		       unsigned long pages, bool all)
{
	struct hml_payer gone = {};

	hml_lock(&d->users_lock);
	uncharge_pages(d, payer, pages);
	if (all)
		gone = payer_put(d, payer);
	hml_unlock(&d->users_lock);
	payer_free(gone);
}

/* ---- objects of the kernel ---- */

/*
 * Contexts, NQs, slots, watches, tickets: what the kernel has of each is counted in bytes, by
 * itself, so that areas and rings get all that the limits for memory say: of all NICs together it
 * may be a quarter of that in addition.
 */
static unsigned long small_total(void)
{
	return max(hml_max_pages() << (PAGE_SHIFT - 2), (unsigned long)SZ_16M);
}

static void charge_small(struct hml_payer p, u32 bytes, bool exempt,
			 struct refusal *r)
{
	struct pool pool = { small_total(), 0, LEAST_SMALL };
	struct hml_account *a = p.share->account;

	hml_lock(&all_lock);
	pool.taken = all_small;
	r->all = over(r, bytes, all_small, pool.total);
	if (r->all || (!exempt && pool_refuses(r, &pool, bytes, a->small,
					       ULONG_MAX, p.user->limited))) {
		r->attr = HAMLYN_A_KERNEL_BYTES;
	} else {
		all_small += bytes;
		a->small += bytes;
	}
	hml_unlock(&all_lock);
}

/**
 * hml_user_charge_small() - charge an object of the kernel
 * @c: the context; its payer gets one more reference
 * @bytes: its price, hml_price()
 *
 * Return: 0, or -EDQUOT.
 */
int hml_user_charge_small(struct hml_context *c, u32 bytes)
{
	struct refusal r = { .what = "objects of the kernel" };
	bool exempt = exempt_user();

	hml_lock(&c->device->users_lock);
	r.had = c->user->used;
	charge_small(hml_payer(c), bytes, exempt, &r);
	if (!r.attr)
		payer_get(hml_payer(c));
	hml_unlock(&c->device->users_lock);
	/* Told in pages, as memory is. */
	r.more = DIV_ROUND_UP(r.more, PAGE_SIZE);
	r.used = DIV_ROUND_UP(r.used, PAGE_SIZE);
	r.limit >>= PAGE_SHIFT;
	return refuse(c, &r);
}

/* An object of that price is gone. */
void hml_user_uncharge_small(struct hml_device *d, struct hml_payer payer,
			     u32 bytes)
{
	struct hml_payer gone;

	hml_lock(&d->users_lock);
	hml_lock(&all_lock);
	all_small -= bytes;
	payer.share->account->small -= bytes;
	hml_unlock(&all_lock);
	gone = payer_put(d, payer);
	hml_unlock(&d->users_lock);
	payer_free(gone);
}

/* ---- pinned memory ---- */

static void charge_all_wired(struct hml_payer p, unsigned long pages,
			     bool exempt, struct refusal *r)
{
	struct pool pool = { hml_max_wired(), 0, LEAST_PAGES };
	struct hml_account *a = p.share->account;

	hml_lock(&all_lock);
	pool.taken = all_wired;
	if (!exempt &&
	    (pool_refuses(r, &pool, pages, a->wired, ULONG_MAX,
			  p.user->limited) ||
	     over(r, pages, all_wired, pool.total))) {
		r->attr = HAMLYN_A_WIRED_BYTES;
	} else {
		all_wired += pages;
		a->wired += pages;
	}
	hml_unlock(&all_lock);
}

/**
 * hml_user_charge_wired() - charge pinned memory to a context's user
 * @c: the context
 * @payer: none yet; out: the payer, with one more reference if there was none
 * @had: what is charged already of what is being pinned
 * @pages: how much more
 *
 * Return: 0, or -EDQUOT.
 */
int hml_user_charge_wired(struct hml_context *c, struct hml_payer *payer,
			  unsigned long had, unsigned long pages)
{
	struct refusal r = { .what = "wired memory (folios whole)" };
	struct hml_payer p = hml_payer(c);
	bool exempt = exempt_user();
	struct hml_limits limits;

	hml_lock(&c->device->users_lock);
	limits = hml_user_limits(c->device, p.user);
	r.had = p.user->used;
	if (!exempt && (over(&r, pages, p.user->used.wired, limits.wired) ||
			over(&r, pages, p.share->used.wired, limits.wired)))
		r.attr = HAMLYN_A_WIRED_BYTES;
	else
		charge_all_wired(p, pages, exempt, &r);
	if (r.attr) {
		/* All that is being pinned was asked for, and none of it is in use. */
		r.more += had;
		r.used -= min(r.used, had);
	} else {
		p.user->used.wired += pages;
		p.share->used.wired += pages;
		c->device->wired += pages;
		if (!payer->user)
			payer_get(p);
		*payer = p;
	}
	hml_unlock(&c->device->users_lock);
	return refuse(c, &r);
}

/* As hml_user_uncharge(), of pinned memory. */
void hml_user_uncharge_wired(struct hml_device *d, struct hml_payer payer,
			     unsigned long pages, bool all)
{
	struct hml_payer gone = {};

	hml_lock(&d->users_lock);
	payer.user->used.wired -= pages;
	payer.share->used.wired -= pages;
	d->wired -= pages;
	hml_lock(&all_lock);
	all_wired -= pages;
	payer.share->account->wired -= pages;
	hml_unlock(&all_lock);
	if (all)
		gone = payer_put(d, payer);
	hml_unlock(&d->users_lock);
	payer_free(gone);
}

/**
 * hml_user_charge_locked() - RLIMIT_MEMLOCK of all subordinate uids of a user together
 * @u: the user
 * @pages: how much more
 * @limit: the limit, in pages
 * @had: out: how much there was
 *
 * What the kernel counts, it counts for each uid.
 *
 * Return: whether it is within the limit, and charged.
 */
bool hml_user_charge_locked(struct hml_user *u, unsigned long pages,
			    unsigned long limit, unsigned long *had)
{
	bool may;

	hml_lock(&all_lock);
	*had = u->account->locked;
	may = !exceeds(*had, pages, limit);
	if (may)
		u->account->locked += pages;
	hml_unlock(&all_lock);
	return may;
}

void hml_user_uncharge_locked(struct hml_user *u, unsigned long pages)
{
	hml_lock(&all_lock);
	u->account->locked -= pages;
	hml_unlock(&all_lock);
}

/* ---- objects by number ---- */

/**
 * hml_user_charge_slot() - count one more slot
 * @c: the context
 *
 * Return: 0, or -EDQUOT.
 */
int hml_user_charge_slot(struct hml_context *c)
{
	struct hml_device *d = c->device;
	struct pool pool = { d->nic.port.max_slots, 0, LEAST_SLOTS };
	struct refusal r = { .what = "slots" };
	bool exempt = exempt_user();
	struct hml_limits limits;
	struct hml_user *u;

	hml_lock(&d->users_lock);
	u = user_of(c);
	limits = hml_user_limits(d, u);
	pool.taken = d->slots_taken;
	r.had = u->used;
	if (!exempt &&
	    (pool_refuses(&r, &pool, 1, u->used.slots, limits.slots,
			  u->limited) ||
	     pool_refuses(&r, &pool, 1, c->share->used.slots, limits.slots,
			  u->limited))) {
		r.attr = HAMLYN_A_SLOTS;
	} else {
		u->used.slots++;
		c->share->used.slots++;
		d->slots_taken++;
	}
	hml_unlock(&d->users_lock);
	return refuse(c, &r);
}

void hml_user_uncharge_slot(struct hml_context *c)
{
	hml_lock(&c->device->users_lock);
	user_of(c)->used.slots--;
	c->share->used.slots--;
	c->device->slots_taken--;
	hml_unlock(&c->device->users_lock);
}

/* One more of what a share may have a fixed number of. Return: 0, or -EDQUOT. */
static int charge_number(struct hml_context *c, unsigned long *count, unsigned long limit,
			 const char *what, unsigned long *had)
{
	bool exempt = exempt_user();
	bool may;

	hml_lock(&c->device->users_lock);
	*had = *count;
	may = exempt || *had < limit;
	if (may)
		++*count;
	hml_unlock(&c->device->users_lock);
	if (may)
		return 0;
	hml_explain(c, "%s: 1 asked for, %lu of the user's %lu in use", what, *had, limit);
	trace_hamlyn_quota(c, what, 1, *had, limit);
	return -EDQUOT;
}

static void uncharge_number(struct hml_device *d, unsigned long *count)
{
	hml_lock(&d->users_lock);
	--*count;
	hml_unlock(&d->users_lock);
}

/**
 * hml_user_charge_watch() - count one more watch
 * @c: the context
 *
 * Return: 0, or -EDQUOT.
 */
int hml_user_charge_watch(struct hml_context *c)
{
	unsigned long had;

	return charge_number(c, &c->share->watches, HML_USER_WATCHES, "watches", &had);
}

void hml_user_uncharge_watch(struct hml_context *c)
{
	uncharge_number(c->device, &c->share->watches);
}

/**
 * hml_user_charge_name() - count one more name
 * @c: the context
 *
 * Return: 0, or -EDQUOT.
 */
int hml_user_charge_name(struct hml_context *c)
{
	unsigned long had;

	return charge_number(c, &c->share->names, HML_USER_NAMES, "names", &had);
}

/* Its payer has a reference still. */
void hml_user_uncharge_name(struct hml_device *d, struct hml_payer payer)
{
	uncharge_number(d, &payer.share->names);
}

/**
 * hml_user_charge_call() - count one more call of a name
 * @c: the context
 * @had: out: how many there were
 *
 * Return: 0, or -EDQUOT.
 */
int hml_user_charge_call(struct hml_context *c, unsigned long *had)
{
	return charge_number(c, &c->share->calls, HML_USER_CALLS, "calls of names", had);
}

/* As hml_user_uncharge_name(). */
void hml_user_uncharge_call(struct hml_device *d, struct hml_payer payer)
{
	uncharge_number(d, &payer.share->calls);
}

/**
 * hml_user_charge_terminus() - count one more terminus
 * @c: the context
 *
 * Of termini there is no end: what they cost is memory.
 *
 * Return: 0, or -EDQUOT.
 */
int hml_user_charge_terminus(struct hml_context *c)
{
	struct refusal r = { .what = "termini" };
	bool exempt = exempt_user();
	struct hml_limits limits;
	struct hml_user *u;

	hml_lock(&c->device->users_lock);
	u = user_of(c);
	limits = hml_user_limits(c->device, u);
	r.had = u->used;
	if (!exempt &&
	    (over(&r, 1, u->used.termini, limits.termini) ||
	     over(&r, 1, c->share->used.termini, limits.termini))) {
		r.attr = HAMLYN_A_TERMINI;
	} else {
		u->used.termini++;
		c->share->used.termini++;
		c->device->term_count++;
	}
	hml_unlock(&c->device->users_lock);
	return refuse(c, &r);
}

void hml_user_uncharge_terminus(struct hml_context *c)
{
	hml_lock(&c->device->users_lock);
	user_of(c)->used.termini--;
	c->share->used.termini--;
	c->device->term_count--;
	hml_unlock(&c->device->users_lock);
}
