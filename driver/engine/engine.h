/* SPDX-License-Identifier: GPL-2.0-only */
/* Polling threads, and the termini that they serve. */
#ifndef HML_ENGINE_H
#define HML_ENGINE_H

#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/timerqueue.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/nic.h"
#include "core/sched.h"

struct hml_context;
struct hml_device;
struct hml_loan;
struct hml_term;

/**
 * struct hml_client - a user that an engine works for
 * @node: in engine.clients, by @uid; under engine.lock
 * @share: its part of the order; under engine.lock
 * @loan: who pays; constant
 * @uid: constant
 * @left: ns that the engine may still work for it; the engine's thread only
 * @users: termini of the user that the engine has; under engine.lock
 */
struct hml_client {
	struct rb_node node;
	struct hml_share share;
	struct hml_loan *loan;
	kuid_t uid;
	s64 left;
	u32 users;
};

/**
 * struct hml_engine - one polling thread, and the termini it serves
 * @device: the NIC
 * @lock: protects @order, @paused, @clients, and need_kick of its termini
 * @order: termini that are polled
 * @paused: termini with something to send that are held back, or stalled, or whose user is
 *	broke, by when they are to be looked at again
 * @retry: looks at them where there is no thread
 * @leaver: waits for the turn of @serving to end, which is destroyed; under @lock
 * @serving: whose turn it is: who destroys a terminus waits until it is not its;
 *	under @lock
 * @clients: struct hml_client by uid
 * @clock: when time was charged to a client last, ns of sched_clock(); the thread only
 * @switches: how often it had lost the processor by then; the thread only
 * @looks: turns without work since then; the thread only
 * @most_looks: at so many time is charged; the thread only
 * @random: for @most_looks; the thread only
 * @room_seen: device.room when it last looked for termini that are stalled; the thread only
 * @wait: where the thread sleeps while @order is empty
 * @thread: polling thread, or NULL in inline mode
 * @cpus: where it may run, or NULL: anywhere; constant
 * @node: where it runs, or NUMA_NO_NODE; constant
 */
struct hml_engine {
	struct hml_device *device;
	raw_spinlock_t lock;
	struct hml_order order;
	struct timerqueue_head paused;
	struct delayed_work retry;
	struct hml_term *serving;
	struct completion *leaver;
	struct rb_root clients;
	u64 clock;
	unsigned long switches;
	u32 looks;
	u32 most_looks;
	u32 random;
	u32 room_seen;
	wait_queue_head_t wait;
	struct task_struct *thread;
	const struct cpumask *cpus;
	int node;
};

/* client.c */
struct hml_client *hml_client_get(struct hml_engine *e, struct hml_context *c);
void hml_client_put(struct hml_engine *e, struct hml_client *client);

/* stalled.c */
void hml_engine_take_stalled(struct hml_term *t);

/* engine.c */
int hml_engine_start(struct hml_device *d, u32 mode, u32 count);
void hml_engine_stop(struct hml_device *d);
void hml_engine_activate(struct hml_term *t);
int hml_engine_adopt(struct hml_context *c, struct hml_term *t, u32 priority,
		     u32 weight);
void hml_engine_disown(struct hml_term *t);
void hml_engine_remove(struct hml_term *t);
void hml_engine_leave(const struct hml_term *t);
void hml_engine_set_turn(struct hml_term *t, u32 priority, u32 weight);

#endif /* HML_ENGINE_H */
