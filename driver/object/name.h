/* SPDX-License-Identifier: GPL-2.0-only */
/* Names by which processes of all hosts find each other. */
#ifndef HML_NAME_H
#define HML_NAME_H

#include <linux/fs.h>
#include <linux/list.h>
#include <linux/pid.h>
#include <linux/poll.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <linux/uidgid.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "core/wire.h"
#include "user/user.h"

struct hamlyn_call;
struct hamlyn_listen;
struct hml_call;
struct hml_context;
struct hml_device;
struct hml_loan;

#define HML_USER_NAMES	256	/* of a user, or of a container, at a NIC */
#define HML_USER_CALLS	256	/* of a user, or of a container, not closed and told yet */
#define HML_NAME_CALLS	1024	/* that wait at a name */
#define HML_NAME_HOST	256	/* of them, of one host */
#define HML_NAME_USER	64	/* of these, of one user */
#define HML_CALLS_MOST	16384	/* of one host to another */
#define HML_CALLS_LEAST	16	/* of them, that a user has whatever others have */

/**
 * struct hml_line - an open descriptor of a name, or of a call
 * @device: the NIC, with a reference, and open
 * @payer: who pays for it
 * @price: how much
 * @loan: who pays for the time in which sleepers are woken, with a reference
 * @wait: poll() sleeps here
 * @waking: wakes them. Queued under hml_name_lock, while others find the line
 * @crowded: too many have polled it
 */
struct hml_line {
	struct hml_device *device;
	struct hml_payer payer;
	u32 price;
	struct hml_loan *loan;
	wait_queue_head_t wait;
	struct delayed_work waking;
	bool crowded;
};

/**
 * struct hml_name - a name, and who has called it
 * @line: its descriptor
 * @node: in device.names
 * @in_order: in device.names_in_order
 * @number: of the NIC's names, in the order in which they were taken
 * @calls: struct hml_call that are not answered, by number
 * @tallies: struct hml_tally: whose they are
 * @count: how many
 * @next: number of the next one
 * @unread: the first that was not read has this number, or a greater one
 * @uid: who has the name; constant
 * @pid: the process that took it, with a reference; constant
 * @ended: it can be called no more
 * @length: bytes of @name; constant
 * @name: what it is called; constant
 *
 * Under hml_name_lock.
 */
struct hml_name {
	struct hml_line line;
	struct rb_node node;
	struct rb_node in_order;
	u64 number;
	struct rb_root calls;
	struct rb_root tallies;
	u32 count;
	u64 next;
	u64 unread;
	kuid_t uid;
	struct pid *pid;
	bool ended;
	u32 length;
	char name[HAMLYN_MAX_NAME];
};

/**
 * struct hml_name_info - how things stand with a name
 * @uid: who has it
 * @answers: who answers for that user
 * @pid: the process that took it, with a reference
 * @waiting: calls that are not answered
 * @calls: calls so far
 * @name: what it is called
 */
struct hml_name_info {
	kuid_t uid;
	kuid_t answers;
	struct pid *pid;
	u32 waiting;
	u64 calls;
	char name[HAMLYN_MAX_NAME + 1];
};

/**
 * struct hml_call_side - calls between this host and another one
 * @ours: struct hml_call to their names, by id
 * @theirs: struct hml_call to our names, by id
 * @out: struct hml_call of which the other host is to be told
 * @ours_count: how many
 * @theirs_count: how many
 * @next_id: the next of ours has this id, or a later one
 * @up: the other host can be told
 * @able: it knows of names
 * @io: tells it; constant
 * @device: the NIC here; constant
 * @host: id of the other host; constant
 *
 * Under hml_name_lock.
 */
struct hml_call_side {
	struct rb_root ours;
	struct rb_root theirs;
	struct list_head out;
	u32 ours_count;
	u32 theirs_count;
	u32 next_id;
	bool up;
	bool able;
	struct work_struct *io;
	struct hml_device *device;
	u32 host;
};

/**
 * struct hml_call_note - something to be told to the other host
 * @type: HML_WIRE_CALL, HML_WIRE_ANSWER or HML_WIRE_CANCEL
 * @id: of the call
 * @status: HML_WIRE_ANSWER
 * @user: who says it
 * @name_length: bytes of @name
 * @length: bytes of @said
 * @share: HML_WIRE_CALL: whose calls count as one user's
 * @name: who is called
 * @said: what is said
 */
struct hml_call_note {
	u32 type;
	u32 id;
	u32 status;
	u32 user;
	u32 name_length;
	u32 length;
	u64 share;
	char name[HAMLYN_MAX_NAME];
	u8 said[HAMLYN_MAX_CALL];
};

extern raw_spinlock_t hml_name_lock;

/* line.c */
int hml_line_open(struct hml_context *c, struct hml_line *line, u32 bytes);
int hml_line_file(const char *what, const struct file_operations *fops, void *owner, int flags,
		  struct file **file);
void hml_line_close(struct hml_line *line);
void hml_line_wake(struct hml_line *line);
bool hml_line_poll(struct hml_line *line, struct file *file, poll_table *wait);

/* name.c */
int hml_name_listen(struct hml_context *c, struct hamlyn_listen *arg, struct file **file);
bool hml_name_next(struct hml_device *d, u64 *number, struct hml_name_info *info);
struct hml_name *hml_name_find(struct hml_device *d, const char *name, u32 length);

/* call.c */
int hml_call(struct hml_context *c, struct hamlyn_call *arg, struct file **file);

/* calls.c */
void hml_calls_init(struct hml_call_side *side, struct hml_device *device, u32 host,
		    struct work_struct *io);
void hml_calls_up(struct hml_call_side *side, bool able);
void hml_calls_lost(struct hml_call_side *side);
bool hml_calls_next(struct hml_call_side *side, struct hml_call_note *note);
u32 hml_calls_pack(struct hml_wire_tx *tx, u8 *to, void *note);
bool hml_calls_take(struct hml_call_side *side, const struct hml_wire_call *said, kuid_t uid);
void hml_calls_cancel(struct hml_call_side *side, u32 id);
void hml_calls_answer(struct hml_call_side *side, const struct hml_wire_answer *said, kuid_t uid);

#endif /* HML_NAME_H */
