/* SPDX-License-Identifier: GPL-2.0-only */
/* What one user, or one container, has of all NICs together. */
#ifndef HML_ACCOUNT_H
#define HML_ACCOUNT_H

#include <linux/rbtree.h>
#include <linux/types.h>

struct hml_refusal;

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

struct hml_account *hml_account_get(u64 key);
void hml_account_put(struct hml_account *a);
void hml_account_charge(struct hml_account *a, bool alone, unsigned long pages, bool exempt,
			struct hml_refusal *r);
void hml_account_uncharge(struct hml_account *a, unsigned long pages);
void hml_account_charge_small(struct hml_account *a, bool alone, u32 bytes, bool exempt,
			      struct hml_refusal *r);
void hml_account_uncharge_small(struct hml_account *a, u32 bytes);
void hml_account_charge_wired(struct hml_account *a, bool alone, unsigned long pages, bool exempt,
			      struct hml_refusal *r);
void hml_account_uncharge_wired(struct hml_account *a, unsigned long pages);
bool hml_account_charge_locked(struct hml_account *a, unsigned long pages, unsigned long limit,
			       unsigned long *had);
void hml_account_uncharge_locked(struct hml_account *a, unsigned long pages);

#endif /* HML_ACCOUNT_H */
