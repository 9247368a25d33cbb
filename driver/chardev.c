// SPDX-License-Identifier: GPL-2.0-only
/* The character device: requests, and poll(). context.c opens and closes. */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "hml.h"
#include "locked.h"
#include "trace.h"

union hml_arg {
	u32 size;
	struct hamlyn_query query;
	struct hamlyn_area_add area_add;
	struct hamlyn_area_alloc area_alloc;
	struct hamlyn_id id;
	struct hamlyn_nq_create nq_create;
	struct hamlyn_slot_create slot_create;
	struct hamlyn_slot_rekey slot_rekey;
	struct hamlyn_terminus_create terminus_create;
	struct hamlyn_terminus_bind terminus_bind;
	struct hamlyn_wait wait;
	struct hamlyn_stats stats;
	struct hamlyn_watch watch;
	struct {
		struct hamlyn_ticket_create arg;
		struct file *file;	/* behind what is copied out */
	} ticket_create;
	struct {
		struct hamlyn_ticket_import arg;
		struct hml_term *term;	/* behind what is copied out */
	} ticket_import;
	struct hamlyn_ticket_drop ticket_drop;
	struct hamlyn_audit audit;
	struct hamlyn_nic_set nic_set;
	struct {
		struct hamlyn_listen arg;
		struct file *file;	/* behind what is copied out */
	} listen;
	struct {
		struct hamlyn_call arg;
		struct file *file;	/* behind what is copied out */
	} call;
};

static int do_query(struct hml_context *c, union hml_arg *arg)
{
	struct hml_device *d = c->device;

	arg->query = (struct hamlyn_query) {
		.size = arg->size,
		.abi_version = HAMLYN_ABI_VERSION,
		.host = d->nic.host,
		.engine_mode = d->engine_mode,
		.packet_size = d->nic.packet_size,
		.max_slots = d->nic.port.max_slots,
		.max_nq_entries = HML_MAX_NQ_ENTRIES,
		.max_wq_entries = HML_MAX_WQ_ENTRIES,
		.max_entry_size = HML_MAX_ENTRY_SIZE,
		.fabric = hml_fabric_flags(d),
		.max_area = HML_MAX_AREA,
		.max_message = HAMLYN_MAX_MESSAGE,
		.state = hml_link_state(&d->nic),
		.engines = d->engine_mode == HAMLYN_ENGINE_POLL ?
			   d->engine_count : 0,
		.max_tags = HAMLYN_MAX_TAGS,
		.max_tickets = HAMLYN_MAX_TICKETS,
		.doorbells = hml_doorbell_flags(),
	};
	memcpy(arg->query.fabric_id, d->nic.port.fabric->id, sizeof(arg->query.fabric_id));
	return 0;
}

static int do_area_add(struct hml_context *c, union hml_arg *arg)
{
	return hml_area_add(c, &arg->area_add);
}

/*
 * By number, here and below: a thread that meanwhile destroys what it was never told of, and
 * makes another, loses that. It is the same process's, and whole.
 */
static void undo_area_add(struct hml_context *c, union hml_arg *arg)
{
	hml_area_remove(c, arg->area_add.area);
}

static int do_area_alloc(struct hml_context *c, union hml_arg *arg)
{
	return hml_area_alloc(c, &arg->area_alloc);
}

static void undo_area_alloc(struct hml_context *c, union hml_arg *arg)
{
	hml_area_remove(c, arg->area_alloc.area);
}

static int do_area_remove(struct hml_context *c, union hml_arg *arg)
{
	return hml_area_remove(c, arg->id.id);
}

static int do_nq_create(struct hml_context *c, union hml_arg *arg)
{
	return hml_nq_create(c, &arg->nq_create);
}

static void undo_nq_create(struct hml_context *c, union hml_arg *arg)
{
	hml_nq_destroy(c, arg->nq_create.nq);
}

static int do_nq_destroy(struct hml_context *c, union hml_arg *arg)
{
	return hml_nq_destroy(c, arg->id.id);
}

static int do_slot_create(struct hml_context *c, union hml_arg *arg)
{
	return hml_slot_create(c, &arg->slot_create);
}

static void undo_slot_create(struct hml_context *c, union hml_arg *arg)
{
	hml_slot_destroy(c, arg->slot_create.slot);
}

static int do_slot_destroy(struct hml_context *c, union hml_arg *arg)
{
	return hml_slot_destroy(c, arg->id.id);
}

static int do_slot_rekey(struct hml_context *c, union hml_arg *arg)
{
	return hml_slot_rekey(c, &arg->slot_rekey);
}

static int do_terminus_create(struct hml_context *c, union hml_arg *arg)
{
	return hml_term_create(c, &arg->terminus_create);
}

static void undo_terminus_create(struct hml_context *c, union hml_arg *arg)
{
	hml_term_destroy(c, arg->terminus_create.terminus);
}

static int do_terminus_destroy(struct hml_context *c, union hml_arg *arg)
{
	return hml_term_destroy(c, arg->id.id);
}

static int do_terminus_bind(struct hml_context *c, union hml_arg *arg)
{
	return hml_tag_bind(c, &arg->terminus_bind);
}

static int do_wait(struct hml_context *c, union hml_arg *arg)
{
	return hml_nq_wait(c, &arg->wait);
}

static int do_stats(struct hml_context *c, union hml_arg *arg)
{
	return hml_stats_get(c, &arg->stats);
}

static int do_watch(struct hml_context *c, union hml_arg *arg)
{
	return hml_watch_create(c, &arg->watch);
}

static void undo_watch(struct hml_context *c, union hml_arg *arg)
{
	hml_watch_destroy(c, arg->watch.watch);
}

static int do_unwatch(struct hml_context *c, union hml_arg *arg)
{
	return hml_watch_destroy(c, arg->id.id);
}

static int do_ticket_create(struct hml_context *c, union hml_arg *arg)
{
	return hml_ticket_create(c, &arg->ticket_create.arg,
				 &arg->ticket_create.file);
}

static void commit_ticket_create(struct hml_context *c, union hml_arg *arg)
{
	hml_ticket_commit(&arg->ticket_create.arg, arg->ticket_create.file);
}

static void undo_ticket_create(struct hml_context *c, union hml_arg *arg)
{
	hml_ticket_undo(&arg->ticket_create.arg, arg->ticket_create.file);
}

static int do_ticket_import(struct hml_context *c, union hml_arg *arg)
{
	return hml_ticket_import(c, &arg->ticket_import.arg,
				 &arg->ticket_import.term);
}

static void commit_ticket_import(struct hml_context *c, union hml_arg *arg)
{
	hml_term_put(arg->ticket_import.term);
}

static void undo_ticket_import(struct hml_context *c, union hml_arg *arg)
{
	hml_ticket_undo_import(&arg->ticket_import.arg, arg->ticket_import.term);
}

static int do_ticket_drop(struct hml_context *c, union hml_arg *arg)
{
	return hml_ticket_drop(c, &arg->ticket_drop);
}

static int do_audit(struct hml_context *c, union hml_arg *arg)
{
	return hml_audit_get(c, &arg->audit);
}

static int do_nic_set(struct hml_context *c, union hml_arg *arg)
{
	return hml_nic_set_checked(c, &arg->nic_set);
}

static int do_listen(struct hml_context *c, union hml_arg *arg)
{
	return hml_name_listen(c, &arg->listen.arg, &arg->listen.file);
}

static void commit_listen(struct hml_context *c, union hml_arg *arg)
{
	fd_install(arg->listen.arg.fd, arg->listen.file);
}

static void undo_listen(struct hml_context *c, union hml_arg *arg)
{
	put_unused_fd(arg->listen.arg.fd);
	fput(arg->listen.file);
}

static int do_call(struct hml_context *c, union hml_arg *arg)
{
	return hml_call(c, &arg->call.arg, &arg->call.file);
}

static void commit_call(struct hml_context *c, union hml_arg *arg)
{
	fd_install(arg->call.arg.fd, arg->call.file);
}

static void undo_call(struct hml_context *c, union hml_arg *arg)
{
	put_unused_fd(arg->call.arg.fd);
	fput(arg->call.file);
}

/**
 * struct hml_ioctl - one ioctl
 * @size: size of its structure now
 * @min_size: size of its first published version
 * @run: does it
 * @undo: takes back what it made, when the result cannot be told; or NULL
 * @commit: makes it visible to others, once the result was told; or NULL
 * @result: there is something to tell
 * @reads: it changes nothing: the file may be open for reading only
 */
struct hml_ioctl {
	u32 size;
	u32 min_size;
	int (*run)(struct hml_context *c, union hml_arg *arg);
	void (*undo)(struct hml_context *c, union hml_arg *arg);
	void (*commit)(struct hml_context *c, union hml_arg *arg);
	bool result;
	bool reads;
};

#define IOCTL(cmd, type, last, fn, undo_fn, tells)			\
	[HAMLYN_CMD_##cmd] = {						\
		.size = sizeof(struct type),				\
		.min_size = offsetofend(struct type, last),		\
		.run = fn,						\
		.undo = undo_fn,					\
		.result = tells,					\
	}

#define IOCTL_READS(cmd, type, last, fn)				\
	[HAMLYN_CMD_##cmd] = {						\
		.size = sizeof(struct type),				\
		.min_size = offsetofend(struct type, last),		\
		.run = fn,						\
		.result = true,						\
		.reads = true,						\
	}

/*
 * KICK is not here: it takes no structure. Nor does it ask for write access: without that
 * there is no terminus to ring for.
 */
static const struct hml_ioctl ioctls[] = {
	IOCTL_READS(QUERY, hamlyn_query, max_message, do_query),
	IOCTL(AREA_ADD, hamlyn_area_add, reserved, do_area_add, undo_area_add,
	      true),
	IOCTL(AREA_ALLOC, hamlyn_area_alloc, reserved, do_area_alloc,
	      undo_area_alloc, true),
	IOCTL(AREA_REMOVE, hamlyn_id, id, do_area_remove, NULL, false),
	IOCTL(NQ_CREATE, hamlyn_nq_create, control_length, do_nq_create,
	      undo_nq_create, true),
	IOCTL(NQ_DESTROY, hamlyn_id, id, do_nq_destroy, NULL, false),
	IOCTL(SLOT_CREATE, hamlyn_slot_create, key, do_slot_create,
	      undo_slot_create, true),
	IOCTL(SLOT_DESTROY, hamlyn_id, id, do_slot_destroy, NULL, false),
	IOCTL(SLOT_REKEY, hamlyn_slot_rekey, key, do_slot_rekey, NULL, true),
	IOCTL(TERMINUS_CREATE, hamlyn_terminus_create, status_length,
	      do_terminus_create, undo_terminus_create, true),
	IOCTL(TERMINUS_DESTROY, hamlyn_id, id, do_terminus_destroy, NULL,
	      false),
	IOCTL(TERMINUS_BIND, hamlyn_terminus_bind, length, do_terminus_bind,
	      NULL, false),
	IOCTL(WAIT, hamlyn_wait, deadline_ns, do_wait, NULL, false),
	IOCTL_READS(STATS, hamlyn_stats, rejects, do_stats),
	IOCTL(WATCH, hamlyn_watch, reserved, do_watch, undo_watch, true),
	IOCTL(UNWATCH, hamlyn_id, id, do_unwatch, NULL, false),
	[HAMLYN_CMD_TICKET_CREATE] = {
		.size = sizeof(struct hamlyn_ticket_create),
		.min_size = offsetofend(struct hamlyn_ticket_create, length),
		.run = do_ticket_create,
		.undo = undo_ticket_create,
		.commit = commit_ticket_create,
		.result = true,
	},
	[HAMLYN_CMD_TICKET_IMPORT] = {
		.size = sizeof(struct hamlyn_ticket_import),
		.min_size = offsetofend(struct hamlyn_ticket_import, length),
		.run = do_ticket_import,
		.undo = undo_ticket_import,
		.commit = commit_ticket_import,
		.result = true,
	},
	IOCTL(TICKET_DROP, hamlyn_ticket_drop, reserved, do_ticket_drop, NULL,
	      false),
	IOCTL_READS(AUDIT, hamlyn_audit, entries, do_audit),
	IOCTL(NIC_SET, hamlyn_nic_set, watchdog_ms, do_nic_set, NULL, false),
	[HAMLYN_CMD_LISTEN] = {
		.size = sizeof(struct hamlyn_listen),
		.min_size = offsetofend(struct hamlyn_listen, name),
		.run = do_listen,
		.undo = undo_listen,
		.commit = commit_listen,
		.result = true,
	},
	[HAMLYN_CMD_CALL] = {
		.size = sizeof(struct hamlyn_call),
		.min_size = offsetofend(struct hamlyn_call, name),
		.run = do_call,
		.undo = undo_call,
		.commit = commit_call,
		.result = true,
	},
};

/* @arg is what the caller gave, in its first @size bytes. */
static int run_arg(struct hml_context *c, const struct hml_ioctl *op,
		   union hml_arg *arg, void __user *user, u32 size)
{
	int ret;

	ret = op->run(c, arg);
	if (ret || !op->result)
		return ret;
	if (copy_to_user(user, arg, min(size, op->size))) {
		if (op->undo)
			op->undo(c, arg);
		return -EFAULT;
	}
	if (op->commit)
		op->commit(c, arg);
	return 0;
}

/* @size: out: how much of it the caller has, as it said first */
static int take_arg(void *arg, u32 known, u32 least, void __user *user, u32 *size)
{
	if (get_user(*size, (u32 __user *)user))
		return -EFAULT;
	if (*size < least)
		return -EINVAL;
	if (*size > PAGE_SIZE)
		return -E2BIG;
	return copy_struct_from_user(arg, known, user, *size);
}

static int run_ioctl(struct hml_context *c, const struct hml_ioctl *op,
		     void __user *user)
{
	union hml_arg arg = {};
	u32 size;
	int ret;

	ret = take_arg(&arg, op->size, op->min_size, user, &size);
	if (ret)
		return ret;
	/* The first read counts, whatever the caller made of it since. */
	arg.size = size;
	ret = run_arg(c, op, &arg, user, size);
	/* There may have been a key in it. */
	memzero_explicit(&arg, sizeof(arg));
	return ret;
}

/* Whoever may only read the node may look, and leaves all as it is. */
static int check_mode(struct hml_context *c, const struct hml_ioctl *op)
{
	if (op->reads || c->writable)
		return 0;
	hml_explain(c, "the device is open for reading only: this needs O_RDWR");
	return -EBADF;
}

static const struct hml_ioctl *find_ioctl(u32 nr)
{
	if (nr >= ARRAY_SIZE(ioctls))
		return NULL;
	nr = array_index_nospec(nr, ARRAY_SIZE(ioctls));
	return ioctls[nr].run ? &ioctls[nr] : NULL;
}

static int run_command(struct hml_context *c, const struct hml_ioctl *op, void __user *arg)
{
	int ret = check_mode(c, op);

	return ret ? ret : run_ioctl(c, op, arg);
}

/* What it has to say, as much of it as fits. */
static int tell(struct hml_explainer *e, const struct hamlyn_explain *arg)
{
	size_t n = min_t(size_t, arg->text_size, sizeof(e->text));

	e->text[n - 1] = 0;
	return copy_to_user(u64_to_user_ptr(arg->text), e->text, strlen(e->text) + 1) ? -EFAULT : 0;
}

/*
 * What is called is in the number, where filters of system calls and security modules look,
 * and not in memory, where they do not.
 */
static int run_explained(struct hml_context *c, const struct hml_ioctl *op, void __user *user)
{
	struct hamlyn_explain explain = {};
	struct hml_explainer e;
	u32 size;
	int ret;

	ret = take_arg(&explain, sizeof(explain), offsetofend(struct hamlyn_explain, text), user,
		       &size);
	if (ret)
		return ret;
	if (!explain.text_size)
		return -EINVAL;
	hml_explain_begin(c, &e);
	ret = run_command(c, op, u64_to_user_ptr(explain.argument));
	hml_explain_end(c, &e);
	return ret && tell(&e, &explain) ? -EFAULT : ret;
}

static long hml_fop_ioctl(struct file *file, unsigned int cmd,
			  unsigned long arg)
{
	struct hml_context *c = file->private_data;
	void __user *user = (void __user *)arg;
	const struct hml_ioctl *op;

	BUILD_BUG_ON(ARRAY_SIZE(ioctls) != HAMLYN_CMD_CALL + 1);
	BUILD_BUG_ON(ARRAY_SIZE(ioctls) > HAMLYN_EXPLAINED);

	if (cmd == HAMLYN_IOC_KICK)
		return arg > HML_MAX_IDS ? -ENOENT :
					   hml_doorbell_ring(c, arg);
	if (cmd != _IO(HAMLYN_IOC_TYPE, _IOC_NR(cmd)))
		return -ENOTTY;
	op = find_ioctl(_IOC_NR(cmd) & ~HAMLYN_EXPLAINED);
	if (!op)
		return -ENOTTY;
	return _IOC_NR(cmd) & HAMLYN_EXPLAINED ? run_explained(c, op, user) :
						 run_command(c, op, user);
}

static __poll_t hml_fop_poll(struct file *file, poll_table *wait)
{
	struct hml_context *c = file->private_data;

	if (hml_nq_crowded(c))
		return EPOLLERR;
	hml_loan_pay_in(c->loan);
	poll_wait(file, &c->wait, wait);
	return hml_nq_arm_all(c) ? EPOLLIN | EPOLLRDNORM : 0;
}

const struct file_operations hml_fops = {
	.owner		= THIS_MODULE,
	.open		= hml_context_open,
	.release	= hml_context_close,
	.unlocked_ioctl	= hml_fop_ioctl,
	.uring_cmd	= hml_doorbell_uring,
	.fsync		= hml_doorbell_fsync,
	.mmap		= hml_mmap,
	.poll		= hml_fop_poll,
};
