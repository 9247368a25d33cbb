/* SPDX-License-Identifier: GPL-2.0-only */
/* Watches between hosts. */
#ifndef HML_FAR_H
#define HML_FAR_H

#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/types.h>
#include <linux/workqueue.h>

#include "core/wire.h"
#include "user/user.h"

struct hml_far_user;
struct hml_nic;
struct hml_watch;

/**
 * struct hml_far_side - watches that this host and another one have on each other's slots
 * @ours: struct hml_far, on their slots, by id
 * @theirs: struct hml_far, on our slots, by id
 * @payers: struct hml_far_payer, of ours, by key
 * @out: struct hml_far of which the other host is to be told
 * @held: struct hml_far of theirs whose key may not be tried yet
 * @ours_count: how many
 * @theirs_count: how many
 * @next_id: the next of ours has this id, or a later one
 * @up: the other host can be told
 * @known: keys by which it watches; under its own lock
 * @io: tells it; constant
 * @nic: the NIC here; constant
 * @host: id of the other host; constant
 *
 * All of it but @known is under hml_watch_lock.
 */
struct hml_far_side {
	struct rb_root ours;
	struct rb_root theirs;
	struct rb_root payers;
	struct list_head out;
	struct list_head held;
	u32 ours_count;
	u32 theirs_count;
	u32 next_id;
	bool up;
	struct hml_known known;
	struct work_struct *io;
	struct hml_nic *nic;
	u32 host;
};

/**
 * struct hml_far_note - something to be told to the other host
 * @type: HML_WIRE_WATCH, HML_WIRE_UNWATCH or HML_WIRE_GONE
 * @why: of the last
 * @watch: of which only the id counts, but for WATCH
 */
struct hml_far_note {
	u32 type;
	u32 why;
	struct hml_wire_watch watch;
};

#define HML_FAR_MOST	262144	/* watches of one host on another's slots */

void hml_far_init(struct hml_far_side *side, struct hml_nic *nic, u32 host,
		  struct work_struct *io);
void hml_far_up(struct hml_far_side *side);
void hml_far_lost(struct hml_far_side *side);
bool hml_far_next(struct hml_far_side *side, struct hml_far_note *note);
u32 hml_far_pack(struct hml_wire_tx *tx, u8 *to, void *note);

bool hml_far_watch(struct hml_far_side *side, struct hml_far_user *who,
		   const struct hml_wire_watch *arg);
void hml_far_retry(struct hml_far_side *side);
void hml_far_unwatch(struct hml_far_side *side, u32 id);
void hml_far_gone(struct hml_far_side *side, u32 id);

#endif /* HML_FAR_H */
