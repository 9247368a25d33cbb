// SPDX-License-Identifier: GPL-2.0-only
/*
 * What one user may have of a NIC, so that there is something for the others.
 *
 * Not by cgroups, which are not a module's to ask: ucounts are not exported, and the misc
 * controller's resources are an enum of the kernel. Nor could they say what is left for those
 * who come later. What the kernel allocates is charged to the memory cgroup as well
 * (GFP_KERNEL_ACCOUNT), which may be stricter.
 */
#include "user/charge.h"

#include <linux/capability.h>

#include "hml.h"
#include "trace.h"
#include "user/account.h"
#include "user/pool.h"
#include "user/refusal.h"

/* Asked at every call of everybody: no word of it in the audit log. */
static bool exempt_user(void)
{
	return ns_capable_noaudit(&init_user_ns, CAP_SYS_RESOURCE);
}

/* A context's, for what is counted of it. */
static struct hml_user *user_of(struct hml_context *c)
{
	lockdep_assert_held(&c->device->users_lock);
	return c->user;
}

static void charge_pages(struct hml_context *c, unsigned long pages,
			 bool exempt, struct hml_refusal *r)
{
	struct hml_device *d = c->device;
	struct hml_user *u = user_of(c);
	struct hml_limits limits = hml_user_limits(d, u);
	const struct hml_pool pool = { d->max_pages, d->pages, HML_LEAST_PAGES };

	r->attr = HAMLYN_A_KERNEL_BYTES;
	r->had = u->used;
	r->what = "kernel memory of the NIC";
	r->all = hml_refusal_over(r, pages, d->pages, d->max_pages);
	if (r->all)
		return;
	r->what = "kernel memory";
	if (!exempt &&
	    (hml_pool_refuses(r, &pool, pages, u->used.pages, limits.pages, u->limited) ||
	     hml_pool_refuses(r, &pool, pages, c->share->used.pages, limits.pages, u->limited)))
		return;
	hml_account_charge(c->share->account, u->limited, pages, exempt, r);
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
	hml_account_uncharge(p.share->account, pages);
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
	struct hml_refusal r = {};

	hml_lock(&c->device->users_lock);
	charge_pages(c, pages, exempt, &r);
	if (!r.attr)
		hml_payer_get(hml_payer(c));
	hml_unlock(&c->device->users_lock);
	return hml_refusal_tell(c, &r);
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
		gone = hml_payer_put(d, payer);
	hml_unlock(&d->users_lock);
	hml_payer_free(gone);
}

/* ---- objects of the kernel ---- */

/**
 * hml_user_charge_small() - charge an object of the kernel
 * @c: the context; its payer gets one more reference
 * @bytes: its price, hml_price()
 *
 * Return: 0, or -EDQUOT.
 */
int hml_user_charge_small(struct hml_context *c, u32 bytes)
{
	struct hml_refusal r = { .what = "objects of the kernel" };
	bool exempt = exempt_user();

	hml_lock(&c->device->users_lock);
	r.had = c->user->used;
	hml_account_charge_small(c->share->account, c->user->limited, bytes, exempt, &r);
	if (!r.attr)
		hml_payer_get(hml_payer(c));
	hml_unlock(&c->device->users_lock);
	/* Told in pages, as memory is. */
	r.more = DIV_ROUND_UP(r.more, PAGE_SIZE);
	r.used = DIV_ROUND_UP(r.used, PAGE_SIZE);
	r.limit >>= PAGE_SHIFT;
	return hml_refusal_tell(c, &r);
}

/* An object of that price is gone. */
void hml_user_uncharge_small(struct hml_device *d, struct hml_payer payer,
			     u32 bytes)
{
	struct hml_payer gone;

	hml_lock(&d->users_lock);
	hml_account_uncharge_small(payer.share->account, bytes);
	gone = hml_payer_put(d, payer);
	hml_unlock(&d->users_lock);
	hml_payer_free(gone);
}

/* ---- pinned memory ---- */

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
	struct hml_refusal r = { .what = "wired memory (folios whole)" };
	struct hml_payer p = hml_payer(c);
	bool exempt = exempt_user();
	struct hml_limits limits;

	hml_lock(&c->device->users_lock);
	limits = hml_user_limits(c->device, p.user);
	r.had = p.user->used;
	if (!exempt && (hml_refusal_over(&r, pages, p.user->used.wired, limits.wired) ||
			hml_refusal_over(&r, pages, p.share->used.wired, limits.wired)))
		r.attr = HAMLYN_A_WIRED_BYTES;
	else
		hml_account_charge_wired(p.share->account, p.user->limited, pages, exempt, &r);
	if (r.attr) {
		/* All that is being pinned was asked for, and none of it is in use. */
		r.more += had;
		r.used -= min(r.used, had);
	} else {
		p.user->used.wired += pages;
		p.share->used.wired += pages;
		c->device->wired += pages;
		if (!payer->user)
			hml_payer_get(p);
		*payer = p;
	}
	hml_unlock(&c->device->users_lock);
	return hml_refusal_tell(c, &r);
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
	hml_account_uncharge_wired(payer.share->account, pages);
	if (all)
		gone = hml_payer_put(d, payer);
	hml_unlock(&d->users_lock);
	hml_payer_free(gone);
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
	struct hml_pool pool = { d->nic.port.max_slots, 0, HML_LEAST_SLOTS };
	struct hml_refusal r = { .what = "slots" };
	bool exempt = exempt_user();
	struct hml_limits limits;
	struct hml_user *u;

	hml_lock(&d->users_lock);
	u = user_of(c);
	limits = hml_user_limits(d, u);
	pool.taken = d->slots_taken;
	r.had = u->used;
	if (!exempt &&
	    (hml_pool_refuses(&r, &pool, 1, u->used.slots, limits.slots, u->limited) ||
	     hml_pool_refuses(&r, &pool, 1, c->share->used.slots, limits.slots, u->limited))) {
		r.attr = HAMLYN_A_SLOTS;
	} else {
		u->used.slots++;
		c->share->used.slots++;
		d->slots_taken++;
	}
	hml_unlock(&d->users_lock);
	return hml_refusal_tell(c, &r);
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
	struct hml_refusal r = { .what = "termini" };
	bool exempt = exempt_user();
	struct hml_limits limits;
	struct hml_user *u;

	hml_lock(&c->device->users_lock);
	u = user_of(c);
	limits = hml_user_limits(c->device, u);
	r.had = u->used;
	if (!exempt &&
	    (hml_refusal_over(&r, 1, u->used.termini, limits.termini) ||
	     hml_refusal_over(&r, 1, c->share->used.termini, limits.termini))) {
		r.attr = HAMLYN_A_TERMINI;
	} else {
		u->used.termini++;
		c->share->used.termini++;
		c->device->term_count++;
	}
	hml_unlock(&c->device->users_lock);
	return hml_refusal_tell(c, &r);
}

void hml_user_uncharge_terminus(struct hml_context *c)
{
	hml_lock(&c->device->users_lock);
	user_of(c)->used.termini--;
	c->share->used.termini--;
	c->device->term_count--;
	hml_unlock(&c->device->users_lock);
}
