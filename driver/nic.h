/* SPDX-License-Identifier: GPL-2.0-only */
/* A NIC and its character device. */
#ifndef HML_DEVICE_H
#define HML_DEVICE_H

#include <linux/cdev.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "core/nic.h"
#include "stats.h"
#include "user/user.h"

struct hamlyn_nic_set;
struct hml_audit;
struct hml_context;
struct hml_engine;

/**
 * struct hml_nic_attr - properties of a new NIC; what is 0 has its default
 * @index: N of /dev/hamlynN, or HAMLYN_NONE: the first free one
 * @host: host id on the fabric, or HAMLYN_NONE: as @index, or the first free one
 * @engine_mode: enum hamlyn_engine_mode
 * @engines: polling threads
 * @idle_us: without work until a terminus is no longer polled
 * @kick_window_us: between doorbells that make the engine poll
 * @packet_size: most payload bytes of a packet
 * @max_slots: slots
 * @guesses: wrong keys a second that a user may present
 * @max_pages: kernel memory of all users
 * @user: limits of one user
 */
struct hml_nic_attr {
	u32 index;
	u32 host;
	u32 engine_mode;
	u32 engines;
	u32 idle_us;
	u32 kick_window_us;
	u32 packet_size;
	u32 max_slots;
	u32 guesses;
	unsigned long max_pages;
	struct hml_limits user;
};

/**
 * struct hml_device - one NIC and its character device
 * @nic: the core's part
 * @link: what nic.link points to; written under contexts_lock, but for its @fed and @remote
 * @down_era: of hml_watch_down(), when it was set down last; written under
 *	contexts_lock, read without
 * @index: N of /dev/hamlynN; constant
 * @admin: held by an administrator who changes or deletes it. Never waited for by
 *	anybody else, and by those so that they can be killed
 * @made: completed when it is known whether it could be made
 * @ended: completed when nothing is left of it but the structure
 * @ending: does what there is to do for that, in the background
 * @net: network namespace; changed under contexts_lock
 * @shown: where sysfs and uevents show it: @net, or where it was a moment ago. Changed
 *	with no other lock than the kernel's, while nobody else can move or delete it
 * @staying: @shown, with a reference while it is being deleted; or NULL
 * @showing: shows it elsewhere
 * @name: hamlynN; constant. The device's own name is freed when it is shown elsewhere
 * @dev: device, which owns this structure
 * @cdev: character device
 * @slot_ids: slot numbers in use, one bit each; changed atomically
 * @slot_count: how many
 * @area_count: areas
 * @nq_count: NQs
 * @wired: pinned pages; under users_lock
 * @term_count: termini; under users_lock
 * @slot_hint: where to look for the next one: numbers are reused late
 * @engine_mode: enum hamlyn_engine_mode; constant
 * @engine_count: polling threads, at least 1 structure also in inline mode;
 *	constant
 * @pass_budget: packets of a terminus in one section; constant
 * @engines: the engines
 * @next_engine: whose turn it is to get a terminus
 * @room: how often its fabric had room again for what it had refused
 * @idle_us: see struct hml_nic_attr; may change at any time
 * @kick_window_us: see struct hml_nic_attr; may change at any time
 * @contexts_lock: protects what follows up to @gone; a leaf but for hml_watch_lock
 * @contexts: struct hml_context, by id
 * @next_context: id of the next one, if it is free
 * @opens: open files: contexts, those that are being closed, names and calls
 * @lines: names and calls; under contexts_lock
 * @listed: requests find it
 * @gone: not there yet, or deleted: cannot be opened
 * @users_lock: protects @users, what is in them, @pages and the limits
 * @users: struct hml_user by uid
 * @shares: struct hml_quota by key; under @users_lock
 * @slots_taken: slots of all users; under @users_lock
 * @users_seen: where to look for one to be forgotten; under @users_lock
 * @pages: kernel memory for areas and rings of all users
 * @max_pages: its limit
 * @user_limits: limits of users who have none of their own
 * @termini_lock: protects what follows up to @walk
 * @termini: all termini, for the counters
 * @retired: counters of termini that are gone
 * @walk: who adds them all up, together
 * @names: struct hml_name, by name; under hml_name_lock
 * @names_in_order: the same, by number
 * @next_name: number of the next one
 * @audit: discarded packets
 * @rcu: readers of the table of NICs may look at it until after it was freed
 */
struct hml_device {
	struct hml_nic nic;
	struct hml_link link;
	u64 down_era;
	u32 index;
	struct mutex admin;
	struct completion made;
	struct completion ended;
	struct work_struct ending;
	possible_net_t net;
	struct net *shown;
	struct net *staying;
	struct work_struct showing;
	char name[16];
	struct device dev;
	struct cdev cdev;
	unsigned long *slot_ids;
	atomic_t slot_count;
	atomic_t area_count;
	atomic_t nq_count;
	unsigned long wired;
	u32 term_count;
	u32 slot_hint;
	u32 engine_mode;
	u32 engine_count;
	u32 pass_budget;
	struct hml_engine *engines;
	atomic_t next_engine;
	atomic_t room;
	u32 idle_us;
	u32 kick_window_us;
	raw_spinlock_t contexts_lock;
	struct rb_root contexts;
	u32 next_context;
	u32 opens;
	u32 lines;
	bool listed;
	bool gone;
	raw_spinlock_t users_lock;
	struct rb_root users;
	struct rb_root shares;
	unsigned long slots_taken;
	u32 users_seen;
	unsigned long pages;
	unsigned long max_pages;
	struct hml_limits user_limits;
	raw_spinlock_t termini_lock;
	struct list_head termini;
	struct hml_stats retired;
	struct hml_walk walk;
	struct rb_root names;
	struct rb_root names_in_order;
	u64 next_name;
	struct hml_audit *audit;
	struct rcu_head rcu;
};

struct hml_device *hml_nic_get(const struct net *net, u32 from);
int hml_nics_init(void);
void hml_nics_exit(void);
typedef int (*hml_nic_setup_fn)(struct hml_device *d, const void *arg);
struct hml_device *hml_nic_create(const struct hml_nic_attr *attr,
				  struct net *net, hml_nic_setup_fn setup,
				  const void *arg);
int hml_nic_delete(struct hml_device *d);
bool hml_nic_admin(const struct hml_device *d);
int hml_nic_set(struct hml_device *d, const struct hamlyn_nic_set *set);
void hml_nic_tell_down(struct hml_device *d);
void hml_nic_show_in(struct hml_device *d, struct net *net);
int hml_nic_set_checked(struct hml_context *c, const struct hamlyn_nic_set *set);

#endif /* HML_DEVICE_H */
