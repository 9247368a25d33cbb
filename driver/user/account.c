// SPDX-License-Identifier: GPL-2.0-only
#include "user/account.h"

#include <linux/slab.h>

#include "hml.h"
#include "user/pool.h"
#include "user/refusal.h"

/* A NIC's limit is not enough where there are several: the memory is one. */
static DEFINE_RAW_SPINLOCK(all_lock);	/* what follows, and what is in accounts */
static unsigned long all_pages;
static unsigned long all_wired;
static unsigned long all_small;
static struct rb_root accounts = RB_ROOT;

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
struct hml_account *hml_account_get(u64 key)
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

void hml_account_put(struct hml_account *a)
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

/* ---- what is charged ---- */

/**
 * hml_account_charge() - charge kernel memory to all NICs together
 * @a: who pays
 * @alone: keeps out of the reserve, see pool.c
 * @pages: how much
 * @exempt: passes the user's limit, nobody that of all
 * @r: of which @attr is set; out: what was in the way, or that nothing was
 */
void hml_account_charge(struct hml_account *a, bool alone, unsigned long pages, bool exempt,
			struct hml_refusal *r)
{
	struct hml_pool pool = { hml_max_pages(), 0, HML_LEAST_PAGES };

	r->what = "kernel memory of all NICs";
	hml_lock(&all_lock);
	pool.taken = all_pages;
	r->all = hml_refusal_over(r, pages, all_pages, pool.total);
	if (!r->all &&
	    (exempt || !hml_pool_refuses(r, &pool, pages, a->pages, ULONG_MAX, alone))) {
		r->attr = 0;
		all_pages += pages;
		a->pages += pages;
	}
	hml_unlock(&all_lock);
}

void hml_account_uncharge(struct hml_account *a, unsigned long pages)
{
	hml_lock(&all_lock);
	all_pages -= pages;
	a->pages -= pages;
	hml_unlock(&all_lock);
}

/*
 * Contexts, NQs, slots, watches, tickets: what the kernel has of each is counted in bytes, by
 * itself, so that areas and rings get all that the limits for memory say: of all NICs together it
 * may be a quarter of that in addition.
 */
static unsigned long small_total(void)
{
	return max(hml_max_pages() << (PAGE_SHIFT - 2), (unsigned long)SZ_16M);
}

/**
 * hml_account_charge_small() - charge an object of the kernel to all NICs together
 * @a: who pays
 * @alone: as of hml_account_charge()
 * @bytes: the object's price
 * @exempt: as of hml_account_charge()
 * @r: out: what was in the way, if anything was
 */
void hml_account_charge_small(struct hml_account *a, bool alone, u32 bytes, bool exempt,
			      struct hml_refusal *r)
{
	struct hml_pool pool = { small_total(), 0, HML_LEAST_SMALL };

	hml_lock(&all_lock);
	pool.taken = all_small;
	r->all = hml_refusal_over(r, bytes, all_small, pool.total);
	if (r->all || (!exempt && hml_pool_refuses(r, &pool, bytes, a->small, ULONG_MAX, alone))) {
		r->attr = HAMLYN_A_KERNEL_BYTES;
	} else {
		all_small += bytes;
		a->small += bytes;
	}
	hml_unlock(&all_lock);
}

void hml_account_uncharge_small(struct hml_account *a, u32 bytes)
{
	hml_lock(&all_lock);
	all_small -= bytes;
	a->small -= bytes;
	hml_unlock(&all_lock);
}

/**
 * hml_account_charge_wired() - charge pinned memory to all NICs together
 * @a: who pays
 * @alone: as of hml_account_charge()
 * @pages: how much
 * @exempt: passes both limits
 * @r: out: what was in the way, if anything was
 */
void hml_account_charge_wired(struct hml_account *a, bool alone, unsigned long pages, bool exempt,
			      struct hml_refusal *r)
{
	struct hml_pool pool = { hml_max_wired(), 0, HML_LEAST_PAGES };

	hml_lock(&all_lock);
	pool.taken = all_wired;
	if (!exempt && (hml_pool_refuses(r, &pool, pages, a->wired, ULONG_MAX, alone) ||
			hml_refusal_over(r, pages, all_wired, pool.total))) {
		r->attr = HAMLYN_A_WIRED_BYTES;
	} else {
		all_wired += pages;
		a->wired += pages;
	}
	hml_unlock(&all_lock);
}

void hml_account_uncharge_wired(struct hml_account *a, unsigned long pages)
{
	hml_lock(&all_lock);
	all_wired -= pages;
	a->wired -= pages;
	hml_unlock(&all_lock);
}

/**
 * hml_account_charge_locked() - RLIMIT_MEMLOCK of all subordinate uids of a user together
 * @a: the user's account
 * @pages: how much more
 * @limit: the limit, in pages
 * @had: out: how much there was
 *
 * What the kernel counts, it counts for each uid.
 *
 * Return: whether it is within the limit, and charged.
 */
bool hml_account_charge_locked(struct hml_account *a, unsigned long pages, unsigned long limit,
			       unsigned long *had)
{
	bool may;

	hml_lock(&all_lock);
	*had = a->locked;
	may = !hml_refusal_exceeds(*had, pages, limit);
	if (may)
		a->locked += pages;
	hml_unlock(&all_lock);
	return may;
}

void hml_account_uncharge_locked(struct hml_account *a, unsigned long pages)
{
	hml_lock(&all_lock);
	a->locked -= pages;
	hml_unlock(&all_lock);
}
