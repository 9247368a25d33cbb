// SPDX-License-Identifier: GPL-2.0-only
/* What one user may have of a NIC, so that there is something for the others. */
#include <linux/capability.h>
#include <linux/cred.h>
#include <linux/slab.h>

#include "hml.h"

/**
 * hml_user_get() - the record of the current user
 * @d: the NIC
 *
 * Return: the record, with one more reference, or an ERR_PTR().
 */
struct hml_user *hml_user_get(struct hml_device *d)
{
	kuid_t uid = current_euid();
	struct hml_user *u;
	int err;

	mutex_lock(&d->users_lock);
	u = xa_load(&d->users, __kuid_val(uid));
	if (!u) {
		u = kzalloc(sizeof(*u), GFP_KERNEL_ACCOUNT);
		err = u ? xa_err(xa_store(&d->users, __kuid_val(uid), u,
					  GFP_KERNEL_ACCOUNT)) : -ENOMEM;
		if (err) {
			kfree(u);
			u = ERR_PTR(err);
			goto out;
		}
		u->uid = uid;
	}
	u->ref++;
out:
	mutex_unlock(&d->users_lock);
	return u;
}

static void put_locked(struct hml_device *d, struct hml_user *u)
{
	lockdep_assert_held(&d->users_lock);
	if (--u->ref)
		return;
	xa_erase(&d->users, __kuid_val(u->uid));
	kfree(u);
}

void hml_user_put(struct hml_device *d, struct hml_user *u)
{
	mutex_lock(&d->users_lock);
	put_locked(d, u);
	mutex_unlock(&d->users_lock);
}

/**
 * hml_user_charge() - charge kernel memory to the NIC and to a context's user
 * @c: the context; its user gets one more reference
 * @pages: how much
 *
 * Return: 0, or -EDQUOT. CAP_SYS_RESOURCE passes the user's limit, nobody the
 * NIC's.
 */
int hml_user_charge(struct hml_context *c, unsigned long pages)
{
	bool exempt = capable(CAP_SYS_RESOURCE);
	struct hml_device *d = c->device;
	struct hml_user *u = c->user;
	int err = 0;

	mutex_lock(&d->users_lock);
	if (pages > d->max_pages - d->pages ||
	    (!exempt && (u->pages > d->max_user_pages ||
			 pages > d->max_user_pages - u->pages))) {
		err = -EDQUOT;
	} else {
		d->pages += pages;
		u->pages += pages;
		u->ref++;
	}
	mutex_unlock(&d->users_lock);
	return err;
}

void hml_user_uncharge(struct hml_device *d, struct hml_user *u,
		       unsigned long pages)
{
	mutex_lock(&d->users_lock);
	d->pages -= pages;
	u->pages -= pages;
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
	bool exempt = capable(CAP_SYS_RESOURCE);
	struct hml_device *d = c->device;
	int err = 0;

	mutex_lock(&d->users_lock);
	if (!exempt && c->user->slots >= d->max_user_slots)
		err = -EDQUOT;
	else
		c->user->slots++;
	mutex_unlock(&d->users_lock);
	return err;
}

void hml_user_uncharge_slot(struct hml_context *c)
{
	mutex_lock(&c->device->users_lock);
	c->user->slots--;
	mutex_unlock(&c->device->users_lock);
}
