/* SPDX-License-Identifier: GPL-2.0-only */
/* What users have of a NIC, and may have. */
#ifndef HML_USER_H
#define HML_USER_H

#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/uidgid.h>

#include "core/nic.h"

struct hml_account;
struct hml_context;
struct hml_device;

/**
 * struct hml_limits - what one user may have of a NIC
 * @pages: kernel memory for areas and rings
 * @wired: pinned user memory, in pages
 * @slots: slots
 * @termini: termini
 */
struct hml_limits {
	unsigned long pages;
	unsigned long wired;
	unsigned long slots;
	unsigned long termini;
};

/**
 * struct hml_known - keys that a user has watched slots by, and that were right
 * @lock: protects @watches; innermost
 * @watches: struct hml_watch, by host, slot and key
 */
struct hml_known {
	raw_spinlock_t lock;
	struct rb_root watches;
};

#define HML_QUOTA_KINDS	4	/* that events tell of: memory, wired memory, slots, termini */

/**
 * struct hml_user - what one user has of a NIC
 * @node: in device.users, by @uid
 * @account: what it has of all NICs, with a reference; constant
 * @uid: who; constant
 * @ref: contexts and memory that count here
 * @contexts: contexts
 * @used: what there is
 * @limits: what there may be, if @limited
 * @limited: has limits of its own, not the NIC's
 * @bucket: wrong keys that it may present: of all its termini and watches. Without a
 *	lock
 * @known: keys that it has had
 * @paused_told: when an event told last that one of its termini pauses, ns; atomic
 * @quota_told: the same of a limit that was in the way, by what it limits
 *
 * All else under device.users_lock. Kept without a reference while it has limits of
 * its own, or something to remember.
 */
struct hml_user {
	struct rb_node node;
	struct hml_account *account;
	kuid_t uid;
	u32 ref;
	u32 contexts;
	struct hml_limits used;
	struct hml_limits limits;
	bool limited;
	struct hml_bucket bucket;
	struct hml_known known;
	u64 paused_told;
	u64 quota_told[HML_QUOTA_KINDS];
};

/**
 * struct hml_quota - what a user, or all users of a container, have of a NIC
 * @node: in device.shares, by @key
 * @key: whose; see share_key(); constant
 * @account: what it has of all NICs, with a reference; constant
 * @ref: contexts and memory that count here
 * @used: what there is
 * @watches: watches
 * @names: names
 * @calls: calls of names
 *
 * All under device.users_lock.
 */
struct hml_quota {
	struct rb_node node;
	u64 key;
	struct hml_account *account;
	u32 ref;
	struct hml_limits used;
	unsigned long watches;
	unsigned long names;
	unsigned long calls;
};

/**
 * struct hml_payer - who pays for something
 * @user: the user, or NULL: nobody
 * @share: its share
 */
struct hml_payer {
	struct hml_user *user;
	struct hml_quota *share;
};

u32 hml_user_told(const struct hml_context *c);
u32 hml_user_price(void);
void hml_users_free(struct hml_device *d);
int hml_user_get(struct hml_device *d, struct hml_payer *payer);
void hml_user_put(struct hml_device *d, struct hml_payer payer);
struct hml_limits hml_user_limits(const struct hml_device *d,
				  const struct hml_user *u);
struct hml_limits hml_user_limits_of(struct hml_device *d, kuid_t uid);
bool hml_user_next(struct hml_device *d, kuid_t from, struct hml_user *copy);
int hml_user_set_limits(struct hml_device *d, kuid_t uid,
			const struct hml_limits *limits);
void hml_payer_get(struct hml_payer p);
struct hml_payer hml_payer_put(struct hml_device *d, struct hml_payer p);
void hml_payer_free(struct hml_payer gone);

#endif /* HML_USER_H */
