/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects of the driver.
 *
 * Ownership: the open file (context) owns areas, NQs, slots and termini. A
 * slot uses its areas and NQ, a terminus the areas bound to its tags; users
 * are counted, and what is used cannot be removed. Lock order and the life
 * cycle: Documentation/locking.rst.
 */
#ifndef HML_H
#define HML_H

#include <linux/cdev.h>
#include <linux/device.h>
#include <linux/idr.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/refcount.h>
#include <linux/sched/user.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/xarray.h>

#include "core/nic.h"

#define HML_MAX_NQ_ENTRIES	SZ_1M
#define HML_MAX_WQ_ENTRIES	4096
#define HML_MAX_ENTRY_SIZE	4096
#define HML_MIN_ENTRY_SIZE	128
#define HML_MAX_AREA		(64ULL * SZ_1G)
#define HML_MAX_IDS		65535
#define HML_KICKS_TO_WAKE	4	/* doorbells in a row that make us poll */

/**
 * struct hml_user - what one user has of a NIC
 * @uid: who
 * @ref: contexts and memory that count here; under device.users_lock
 * @pages: kernel memory for areas and rings; under device.users_lock
 * @slots: slots; under device.users_lock
 */
struct hml_user {
	kuid_t uid;
	u32 ref;
	unsigned long pages;
	u32 slots;
};

/**
 * struct hml_engine - what works through the termini of a NIC
 * @mode: enum hamlyn_engine_mode; constant
 * @lock: protects @active, and need_kick of every terminus
 * @active: termini that are polled
 * @wait: where the thread sleeps while @active is empty
 * @thread: polling thread, or NULL in inline mode
 */
struct hml_engine {
	u32 mode;
	spinlock_t lock;
	struct list_head active;
	wait_queue_head_t wait;
	struct task_struct *thread;
};

/**
 * struct hml_device - one NIC and its character device
 * @nic: the core's part
 * @dev: device, which owns this structure
 * @cdev: character device
 * @srcu: what nic.port.srcu points to
 * @slot_ids: slot numbers in use
 * @slot_hint: where to look for the next one: numbers are reused late
 * @engine: the engine
 * @users_lock: protects @users, what is in them, and @pages
 * @users: struct hml_user by uid
 * @pages: kernel memory for areas and rings of all users
 * @max_pages: its limit; constant
 * @max_user_pages: the limit of one user; constant
 * @max_user_slots: the limit of one user; constant
 * @termini_lock: protects @termini and @retired
 * @termini: all termini, for the counters
 * @retired: counters of termini that are gone
 */
struct hml_device {
	struct hml_nic nic;
	struct device dev;
	struct cdev cdev;
	struct srcu_struct srcu;
	struct ida slot_ids;
	u32 slot_hint;
	struct hml_engine engine;
	struct mutex users_lock;
	struct xarray users;
	unsigned long pages;
	unsigned long max_pages;
	unsigned long max_user_pages;
	u32 max_user_slots;
	spinlock_t termini_lock;
	struct list_head termini;
	struct hml_stats retired;
};

/**
 * struct hml_context - one open file
 * @device: the NIC
 * @user: whose limits count: who opened it
 * @lock: protects the tables, the users counts and the bindings. Taken under
 *	mmap_lock (mmap); so no user memory is touched under it.
 * @areas: struct hml_area by id
 * @nqs: struct hml_nqueue by id
 * @slots: struct hml_slot_object by slot number
 * @termini: struct hml_term by id
 * @wait: poll() sleeps here until any NQ has an entry
 */
struct hml_context {
	struct hml_device *device;
	struct hml_user *user;
	struct mutex lock;
	struct xarray areas;
	struct xarray nqs;
	struct xarray slots;
	struct xarray termini;
	wait_queue_head_t wait;
};

/**
 * struct hml_memory - kernel memory that can be mapped
 * @ref: 1 for the object, 1 for each mapping
 * @device: the NIC
 * @user: who pays for it, with a reference; NULL: it costs nothing
 * @pages: its price
 * @free: frees what holds it
 *
 * It is paid for until the last mapping is gone too.
 */
struct hml_memory {
	refcount_t ref;
	struct hml_device *device;
	struct hml_user *user;
	unsigned long pages;
	void (*free)(struct hml_memory *memory);
};

/**
 * struct hml_area - wired memory of a context
 * @memory: reference count, and the price of allocated memory
 * @mem: its extents
 * @room: extents that @mem has room for
 * @id: id in the context
 * @flags: HAMLYN_AREA_*; constant
 * @users: slots and bound tags; under the context's lock
 * @allocated: kernel memory that can be mapped, not pinned user memory
 * @pages: number of pages
 * @mm: where pinned pages are shown as VmPin
 * @owner: whose RLIMIT_MEMLOCK pinned pages count against
 */
struct hml_area {
	struct hml_memory memory;
	struct hml_mem *mem;
	u32 room;
	u32 id;
	u32 flags;
	u32 users;
	bool allocated;
	unsigned long pages;
	struct mm_struct *mm;
	struct user_struct *owner;
};

/**
 * struct hml_ring - work queue, status or NQ memory
 * @memory: reference count and price
 * @va: its address in the kernel
 * @pages: its pages
 */
struct hml_ring {
	struct hml_memory memory;
	void *va;
	struct page **pages;
};

/**
 * struct hml_nqueue - NQ of a context
 * @core: control block
 * @context: owner; outlives the NQ
 * @ref: 1 for the context, 1 for each WAIT in progress
 * @id: id in the context
 * @users: slots; under the context's lock
 * @dead: destroyed, sleepers must leave
 * @wait: WAIT sleeps here
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
	wait_queue_head_t wait;
	struct hml_ring *ring;
	struct hml_ring *control;
};

/**
 * struct hml_slot_object - slot of a context
 * @core: what packets see
 * @area: message area's area
 * @meta_area: metadata entries' area, or NULL
 * @nq: NQ, or NULL
 */
struct hml_slot_object {
	struct hml_slot core;
	struct hml_area *area;
	struct hml_area *meta_area;
	struct hml_nqueue *nq;
};

/**
 * struct hml_term - send terminus of a context
 * @core: what the NIC core sees
 * @stats: its counters
 * @device: the NIC
 * @held: bit 0: somebody works on @core. Taken by trylock only (B7)
 * @wanted: somebody waits for @held: let go
 * @dead: destroyed; written under engine.lock
 * @active: in engine.active; under engine.lock
 * @all: in device.termini; under device.termini_lock
 * @ref: 1 for the context, 1 for each who works on it without its lock
 * @id: id in the context
 * @idle_since: when the engine last found work, ns; engine only
 * @last_kick: time of the last doorbell, ns; a hint
 * @kicks_in_row: doorbells in quick succession; a hint
 * @kicks_to_wake: how many of them start polling; a hint
 * @areas: areas bound to the tags; under the context's lock
 * @wq: work queue; mapped writable
 * @status: status; mapped read-only
 * @rcu: for lookups without the context's lock
 */
struct hml_term {
	struct hml_terminus core;
	struct hml_stats stats;
	struct hml_device *device;
	unsigned long held;
	atomic_t wanted;
	bool dead;
	struct list_head active;
	struct list_head all;
	refcount_t ref;
	u32 id;
	u64 idle_since;
	u64 last_kick;
	u32 kicks_in_row;
	u32 kicks_to_wake;
	struct hml_area *areas[HAMLYN_MAX_TAGS];
	struct hml_ring *wq;
	struct hml_ring *status;
	struct rcu_head rcu;
};

/* main.c */
extern unsigned int hml_idle_us;
extern unsigned int hml_kick_window_us;

/* chardev.c */
extern const struct file_operations hml_fops;

/* mmap.c */
enum hml_region {
	HML_REGION_AREA		= 1,
	HML_REGION_NQ_RING	= 2,
	HML_REGION_NQ_CONTROL	= 3,
	HML_REGION_WQ		= 4,
	HML_REGION_STATUS	= 5,
};

u64 hml_mmap_offset(enum hml_region region, u32 id);
int hml_mmap(struct file *file, struct vm_area_struct *vma);

/* memory.c */
int hml_memory_init(struct hml_memory *memory, struct hml_context *c,
		    unsigned long pages, void (*free)(struct hml_memory *m));
void hml_memory_put(struct hml_memory *memory);
struct hml_ring *hml_ring_alloc(struct hml_context *c, size_t bytes);
void hml_ring_put(struct hml_ring *ring);
size_t hml_ring_bytes(const struct hml_ring *ring);

/* user.c */
struct hml_user *hml_user_get(struct hml_device *d);
void hml_user_put(struct hml_device *d, struct hml_user *u);
int hml_user_charge(struct hml_context *c, unsigned long pages);
void hml_user_uncharge(struct hml_device *d, struct hml_user *u,
		       unsigned long pages);
int hml_user_charge_slot(struct hml_context *c);
void hml_user_uncharge_slot(struct hml_context *c);

/* area.c: ioctls, and for others under the context's lock */
int hml_area_add(struct hml_context *c, struct hamlyn_area_add *arg);
int hml_area_alloc(struct hml_context *c, struct hamlyn_area_alloc *arg);
int hml_area_remove(struct hml_context *c, u32 id);
void hml_area_destroy_all(struct hml_context *c);
int hml_area_view(struct hml_context *c, u32 id, u64 base, u64 length,
		  bool writable, struct hml_area **area, struct hml_view *view);

/* nq.c */
int hml_nq_create(struct hml_context *c, struct hamlyn_nq_create *arg);
int hml_nq_destroy(struct hml_context *c, u32 id);
void hml_nq_destroy_all(struct hml_context *c);
int hml_nq_wait(struct hml_context *c, const struct hamlyn_wait *arg);
bool hml_nq_arm_all(struct hml_context *c);
void hml_nq_wake(struct hml_nqueue *nq);

/* slot.c */
int hml_slot_create(struct hml_context *c, struct hamlyn_slot_create *arg);
int hml_slot_destroy(struct hml_context *c, u32 number);
int hml_slot_rekey(struct hml_context *c, struct hamlyn_slot_rekey *arg);
void hml_slot_unlink_all(struct hml_context *c);
void hml_slot_destroy_all(struct hml_context *c);

/* terminus.c */
int hml_term_create(struct hml_context *c, struct hamlyn_terminus_create *arg);
int hml_term_destroy(struct hml_context *c, u32 id);
void hml_term_destroy_all(struct hml_context *c);
int hml_term_bind(struct hml_context *c, const struct hamlyn_terminus_bind *arg);
struct hml_term *hml_term_get(struct hml_context *c, u32 id);
void hml_term_put(struct hml_term *t);

/* engine.c */
int hml_engine_start(struct hml_device *d, u32 mode);
void hml_engine_stop(struct hml_device *d);
int hml_engine_kick(struct hml_term *t);
u32 hml_term_work(struct hml_term *t, u32 budget);
void hml_engine_remove(struct hml_term *t);
int hml_term_hold(struct hml_term *t);
void hml_term_retire(struct hml_term *t);
void hml_term_release(struct hml_term *t);

/* stats.c */
void hml_stats_add(struct hml_stats *sum, const struct hml_stats *s);
int hml_stats_get(struct hml_context *c, struct hamlyn_stats *arg);

#endif /* HML_H */
