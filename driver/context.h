/* SPDX-License-Identifier: GPL-2.0-only */
/* An open file: a context, and what it has. */
#ifndef HML_CONTEXT_H
#define HML_CONTEXT_H

#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include "core/nic.h"
#include "user/user.h"

struct file;
struct hml_audit;
struct hml_device;
struct hml_loan;
struct hml_term;
struct inode;

/**
 * struct hml_context - one open file
 * @ref: 1 for the open file, 1 for each NQ, 1 for each dump that is listing it,
 *	1 for @waking
 * @node: in device.contexts; under device.contexts_lock
 * @device: the NIC, with a reference
 * @id: id on the NIC
 * @user: whose limits and guesses count
 * @loan: who pays for engines, with a reference
 * @share: whose share of the NIC
 * @uid: who opened it; @user's, or one that is subordinate to it
 * @pid: process that opened it
 * @comm: its name then
 * @lock: protects the tables, the users counts and the bindings. Taken under
 *	mmap_lock (mmap); so no user memory is touched under it.
 * @writable: it may change things: open for writing; constant
 * @closing: the file is being closed: whoever found it before has no business
 *	here; under @lock
 * @areas: struct hml_area by id
 * @nqs: struct hml_nqueue by id
 * @slots: struct hml_slot_object by slot number
 * @termini: struct hml_term by id
 * @only: the one in @termini, or NULL: none or several. Written under @lock, read
 *	in sections
 * @watches: struct hml_watch by id
 * @audit: packets discarded at its slots
 * @explain_lock: protects @explainers; taken alone
 * @explainers: struct hml_explainer by task: calls that are to say why they fail
 * @crowded: once too many have polled it
 * @wait: poll() sleeps here until any NQ has an entry
 * @waking: wakes them in the background, later if the account is overdrawn; queued with a
 *	reference
 */
struct hml_context {
	refcount_t ref;
	struct rb_node node;
	struct hml_device *device;
	u32 id;
	struct hml_user *user;
	struct hml_loan *loan;
	struct hml_quota *share;
	kuid_t uid;
	struct pid *pid;
	char comm[TASK_COMM_LEN];
	struct mutex lock;
	bool writable;
	bool closing;
	struct xarray areas;
	struct xarray nqs;
	struct xarray slots;
	struct xarray termini;
	struct hml_term __rcu *only;
	struct xarray watches;
	struct hml_audit *audit;
	raw_spinlock_t explain_lock;
	struct rb_root explainers;
	bool crowded;
	wait_queue_head_t wait;
	struct delayed_work waking;
};

int hml_context_open(struct inode *inode, struct file *file);
int hml_context_close(struct inode *inode, struct file *file);
struct hml_context *hml_context_from(struct hml_device *d, u32 id);
void hml_context_get(struct hml_context *c);
void hml_context_put(struct hml_context *c);
void hml_context_stay(struct hml_device *d);
void hml_context_leave(struct hml_device *d);
u32 hml_context_count(struct hml_device *d);

static inline struct hml_payer hml_payer(const struct hml_context *c)
{
	return (struct hml_payer) { c->user, c->share };
}

#endif /* HML_CONTEXT_H */
