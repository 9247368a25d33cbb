/* SPDX-License-Identifier: GPL-2.0-only */
/* What the files of this folder share, and nobody else sees. */
#ifndef HML_WATCHING_H
#define HML_WATCHING_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct hamlyn_watch;
struct hml_far;
struct hml_far_payer;
struct hml_far_side;
struct hml_known;
struct hml_nic;
struct hml_nqueue;
struct hml_slot;
struct hml_slot_object;
struct hml_stats;
struct hml_watch;

/* What hml_watch_arm_on() returns besides enum hamlyn_reject. */
#define HML_WATCH_ARMED		(-1)
#define HML_WATCH_CLAIMED	(-2)	/* by somebody else: not armed, nor rejected */

/**
 * struct hml_watch - watch of a context, or of another host, on a slot
 * @place: in a list of the slot, in nq.untold, or empty; under hml_watch_lock
 * @known: in the user's known keys, or nowhere; under their lock
 * @key: the key that was right, if it is there; constant then
 * @nq: NQ to be told, which it keeps from being destroyed; NULL: another host watches; constant
 * @far: the other host's part, if another one watches, or the slot is another one's; or NULL
 * @cookie: what to tell it; constant
 * @era: of tell.c's, when it was armed; constant once armed
 * @host: host of the slot; constant
 * @slot: slot number; constant
 * @id: id in the context; constant
 */
struct hml_watch {
	struct list_head place;
	struct rb_node known;
	u64 key;
	struct hml_nqueue *nq;
	struct hml_far *far;
	u64 cookie;
	u64 era;
	u32 host;
	u32 slot;
	u32 id;
};

/*
 * Protects where watches are, nq.untold and nq.late, what hosts have to tell each other, and the
 * change of keys. Inside of hml_context.lock and sections; outside of wait queues.
 */
extern raw_spinlock_t hml_watch_lock;

/* tell.c; with the lock */
void hml_watch_tell_one(struct hml_watch *w);
void hml_watch_attach(struct hml_slot_object *s, struct hml_watch *w);
void hml_watch_detach(struct hml_watch *w);

/* known.c */
void hml_watch_remember(struct hml_watch *w, u64 key);
void hml_watch_forget(struct hml_watch *w);
bool hml_watch_knew(struct hml_known *known, u32 host, u32 slot, u64 key);

/* watch.c; with the lock */
int hml_watch_arm_on(struct hml_nic *nic, struct hml_slot *slot, struct hml_watch *w,
		     const struct hamlyn_watch *arg);

/* watch.c */
void hml_watch_note_reject(struct hml_nic *nic, struct hml_slot *slot, u32 number, u32 source,
			   u32 pid, u32 uid, int reject);

/* far.c; with the lock */
void hml_far_tell(struct hml_watch *w);
int hml_far_arm(struct hml_far_side *side, struct hml_far *far, struct hml_watch *w,
		const struct hamlyn_watch *arg, struct hml_far_payer **spare);
struct hml_far *hml_far_end(struct hml_watch *w);

/* far.c */
struct hml_far *hml_far_new(u32 user, u64 key);
void hml_far_free(struct hml_far *far);
struct hml_known *hml_far_known(const struct hml_watch *w);

#endif /* HML_WATCHING_H */
