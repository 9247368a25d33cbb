/* SPDX-License-Identifier: GPL-2.0-only */
/* Notification queues of a context. */
#ifndef HML_NQ_H
#define HML_NQ_H

#include <linux/list.h>
#include <linux/refcount.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/nic.h"

struct hamlyn_nq_create;
struct hamlyn_wait;
struct hml_context;
struct hml_ring;

/**
 * struct hml_nqueue - NQ of a context
 * @core: control block
 * @context: owner, with a reference
 * @ref: 1 for the context's table, 1 for each WAIT in progress, for who is about
 *	to wake it, and for @waking
 * @id: id in the context
 * @users: slots and watches; under the context's lock
 * @dead: destroyed, sleepers must leave
 * @untold: struct hml_watch that found it full; under hml_watch_lock
 * @late: in the list of NQs with such ones; under hml_watch_lock
 * @wait: WAIT sleeps here
 * @waking: wakes them in the background; queued with a reference
 * @freeing: frees it in the background
 * @ring: struct hamlyn_nq_ring and the entries; mapped read-only
 * @control: struct hamlyn_nq_control; mapped writable
 */
struct hml_nqueue {
	struct hml_nq core;
	struct hml_context *context;
	refcount_t ref;
	u32 id;
	u32 users;
	bool dead;
	struct list_head untold;
	struct list_head late;
	wait_queue_head_t wait;
	struct work_struct waking;
	struct work_struct freeing;
	struct hml_ring *ring;
	struct hml_ring *control;
};

int hml_nqs_init(void);
void hml_nqs_exit(void);
struct hml_nqueue *hml_nq_find(struct hml_context *c, u32 id);
int hml_nq_create(struct hml_context *c, struct hamlyn_nq_create *arg);
int hml_nq_destroy(struct hml_context *c, u32 id);
void hml_nq_destroy_all(struct hml_context *c);
int hml_nq_wait(struct hml_context *c, const struct hamlyn_wait *arg);
bool hml_nq_arm_all(struct hml_context *c);
bool hml_nq_crowd(struct wait_queue_head *head, bool *crowded);
bool hml_nq_crowded(struct hml_context *c);
void hml_nq_wake_polls(struct work_struct *work);
extern struct workqueue_struct *hml_workers;
void hml_nq_wake(struct hml_nqueue *nq, bool later);
void hml_nq_wake_brief(struct hml_nqueue *nq);
void hml_nq_put(struct hml_nqueue *nq);
void hml_nq_put_later(struct hml_nqueue *nq);

#endif /* HML_NQ_H */
