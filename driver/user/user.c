// SPDX-License-Identifier: GPL-2.0-only
#include "user/user.h"

#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/uidgid.h>
#include <linux/user_namespace.h>

#include "hml.h"
#include "user/account.h"

#define FORGET_BATCH	32	/* records looked at in one go */

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

/* ---- users ---- */

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
	hml_account_put(u->account);
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
	u->account = hml_account_get(__kuid_val(uid));
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
	hml_account_put(s->account);
	kfree(s);
}

static struct hml_quota *share_new(void)
{
	struct hml_quota *s = kzalloc(sizeof(*s), GFP_KERNEL_ACCOUNT);

	if (!s)
		return NULL;
	s->key = share_key();
	s->account = hml_account_get(s->key);
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
void hml_payer_get(struct hml_payer p)
{
	p.user->ref++;
	p.share->ref++;
}

/* users_lock is held. Return: what hml_payer_free() is to free. */
struct hml_payer hml_payer_put(struct hml_device *d, struct hml_payer p)
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

void hml_payer_free(struct hml_payer gone)
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
		hml_payer_free((struct hml_payer) { user, share });
		return -ENOMEM;
	}
	hml_lock(&d->users_lock);
	forget_some(d, gone);
	payer->user = user_find(d, &user);
	payer->share = share_find(d, &share);
	hml_payer_get(*payer);
	payer->user->contexts++;
	hml_unlock(&d->users_lock);
	hml_payer_free((struct hml_payer) { user, share });
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
	gone = hml_payer_put(d, payer);
	hml_unlock(&d->users_lock);
	hml_payer_free(gone);
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
