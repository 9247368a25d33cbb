// SPDX-License-Identifier: GPL-2.0-only
/*
 * Names: a process has a descriptor for one, from which it reads who calls, and to which it
 * writes the answers.
 *
 * Whoever calls is a stranger, perhaps of another host: it has a share of the places at a name
 * that neither it nor its host can enlarge, and waiting there costs whoever has the name nothing.
 * Nobody who answers is waited for.
 */
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "hml.h"
#include "locked.h"
#include "object/calling.h"
#include "object/name.h"
#include "trace.h"

/* Names and calls of all NICs: a call joins two of them, or a NIC and another host. */
DEFINE_RAW_SPINLOCK(hml_name_lock);

/* ---- whose calls wait ---- */

/* Which of a call's: a number of another host's may be any. */
static int compare_tally(const struct hml_call *call, u32 of, const struct hml_tally *t)
{
	if (call->host != t->host)
		return call->host < t->host ? -1 : 1;
	if (of != t->of)
		return of < t->of ? -1 : 1;
	if (of == TALLY_HOST || call->share == t->share)
		return 0;
	return call->share < t->share ? -1 : 1;
}

/* Where a tally hangs, or would. */
static struct rb_node **tally_place(struct hml_name *n, const struct hml_call *call, u32 of,
				    struct rb_node **parent)
{
	struct rb_node **link = &n->tallies.rb_node;

	lockdep_assert_held(&hml_name_lock);
	*parent = NULL;
	while (*link) {
		int order = compare_tally(call, of, rb_entry(*link, struct hml_tally, node));

		if (!order)
			break;
		*parent = *link;
		link = order < 0 ? &(*link)->rb_left : &(*link)->rb_right;
	}
	return link;
}

static u32 tally_of(struct hml_name *n, const struct hml_call *call, u32 of)
{
	struct rb_node *parent, *node = *tally_place(n, call, of, &parent);

	return node ? rb_entry(node, struct hml_tally, node)->count : 0;
}

static struct hml_tally *take_spare(struct hml_call *call, u32 of)
{
	struct hml_tally *t = call->spare;

	call->spare = t->next;
	t->host = call->host;
	t->of = of;
	t->share = call->share;
	t->count = 0;
	return t;
}

static void count_in(struct hml_name *n, struct hml_call *call, u32 of)
{
	struct rb_node *parent, **link = tally_place(n, call, of, &parent);
	struct hml_tally *t;

	if (*link) {
		t = rb_entry(*link, struct hml_tally, node);
	} else {
		t = take_spare(call, of);
		rb_link_node(&t->node, parent, link);
		rb_insert_color(&t->node, &n->tallies);
	}
	t->count++;
	call->tally[of] = t;
}

static void count_out(struct hml_name *n, struct hml_call *call, u32 of)
{
	struct hml_tally *t = call->tally[of];

	lockdep_assert_held(&hml_name_lock);
	call->tally[of] = NULL;
	if (--t->count)
		return;
	rb_erase(&t->node, &n->tallies);
	/* Freed with the call, not under the lock. */
	t->next = call->spare;
	call->spare = t;
}

/*
 * A host has a quarter of the places at most, and a user a quarter of its host's, with all uids
 * that it answers for; but neither more than it leaves free. Three hosts may fill three quarters,
 * then the next one has a half of what is left, and so on: there is always one for another host,
 * or another user.
 */
static bool has_place(struct hml_name *n, const struct hml_call *call)
{
	u32 of_host = tally_of(n, call, TALLY_HOST);
	u32 of_user = tally_of(n, call, TALLY_SHARE);

	return of_host < HML_NAME_CALLS - n->count &&
	       of_user < min_t(u32, HML_NAME_USER, HML_NAME_HOST - of_host);
}

/**
 * hml_name_attach() - a call waits at a name
 * @n: the name
 * @call: the call, with two tallies to spare
 *
 * Return: false if it has no place.
 */
bool hml_name_attach(struct hml_name *n, struct hml_call *call)
{
	struct rb_node **link = &n->calls.rb_node, *parent = NULL;

	lockdep_assert_held(&hml_name_lock);
	if (!has_place(n, call))
		return false;
	while (*link) {
		parent = *link;
		link = &parent->rb_right;
	}
	call->number = n->next++;
	call->name = n;
	rb_link_node(&call->at, parent, link);
	rb_insert_color(&call->at, &n->calls);
	count_in(n, call, TALLY_HOST);
	count_in(n, call, TALLY_SHARE);
	n->count++;
	hml_line_wake(&n->line);
	return true;
}

/* It waits there no more. */
void hml_name_detach(struct hml_call *call)
{
	struct hml_name *n = call->name;

	lockdep_assert_held(&hml_name_lock);
	if (!n)
		return;
	call->name = NULL;
	rb_erase(&call->at, &n->calls);
	count_out(n, call, TALLY_HOST);
	count_out(n, call, TALLY_SHARE);
	n->count--;
}

/* ---- names ---- */

static int compare(const struct hml_name *n, const char *name, u32 length)
{
	int order = memcmp(name, n->name, min(length, n->length));

	return order ?: (int)length - (int)n->length;
}

static struct rb_node **name_place(struct hml_device *d, const char *name, u32 length,
				   struct rb_node **parent)
{
	struct rb_node **link = &d->names.rb_node;

	lockdep_assert_held(&hml_name_lock);
	*parent = NULL;
	while (*link) {
		int order = compare(rb_entry(*link, struct hml_name, node), name, length);

		if (!order)
			break;
		*parent = *link;
		link = order < 0 ? &(*link)->rb_left : &(*link)->rb_right;
	}
	return link;
}

/* hml_name_lock is held, as long as it is used. */
struct hml_name *hml_name_find(struct hml_device *d, const char *name, u32 length)
{
	struct rb_node *parent, *node = *name_place(d, name, length, &parent);

	return rb_entry_safe(node, struct hml_name, node);
}

/* Behind all others. */
static void put_last(struct hml_name *n)
{
	struct hml_device *d = n->line.device;
	struct rb_node **link = &d->names_in_order.rb_node, *parent = NULL;

	lockdep_assert_held(&hml_name_lock);
	while (*link) {
		parent = *link;
		link = &parent->rb_right;
	}
	n->number = d->next_name++;
	rb_link_node(&n->in_order, parent, link);
	rb_insert_color(&n->in_order, &d->names_in_order);
}

static struct hml_name *name_from(struct hml_device *d, u64 number)
{
	struct rb_node *node = d->names_in_order.rb_node;
	struct hml_name *best = NULL;

	lockdep_assert_held(&hml_name_lock);
	while (node) {
		struct hml_name *n = rb_entry(node, struct hml_name, in_order);

		if (n->number < number) {
			node = node->rb_right;
		} else {
			best = n;
			node = node->rb_left;
		}
	}
	return best;
}

/**
 * hml_name_next() - look at the names of a NIC in turn
 * @d: the NIC
 * @number: the least of interest; becomes that of the one that was found
 * @info: out: how things stand with it; put_pid() its pid
 *
 * Return: false if there is none.
 */
bool hml_name_next(struct hml_device *d, u64 *number, struct hml_name_info *info)
{
	struct hml_name *n;

	hml_lock(&hml_name_lock);
	n = name_from(d, *number);
	if (n) {
		*number = n->number;
		info->uid = n->uid;
		info->answers = n->line.payer.user->uid;
		info->pid = get_pid(n->pid);
		info->waiting = n->count;
		info->calls = n->next;
		memcpy(info->name, n->name, n->length);
		info->name[n->length] = '\0';
	}
	hml_unlock(&hml_name_lock);
	return n;
}

static int enlist(struct hml_name *n)
{
	struct hml_device *d = n->line.device;
	struct rb_node *parent, **link;
	int err = 0;

	hml_lock(&hml_name_lock);
	link = name_place(d, n->name, n->length, &parent);
	if (*link) {
		err = -EADDRINUSE;
	} else {
		rb_link_node(&n->node, parent, link);
		rb_insert_color(&n->node, &d->names);
		put_last(n);
		n->ended = false;
	}
	hml_unlock(&hml_name_lock);
	if (!err)
		hml_changed();
	return err;
}

static void delist(struct hml_name *n)
{
	bool ended;

	hml_lock(&hml_name_lock);
	ended = n->ended;
	if (!ended) {
		rb_erase(&n->node, &n->line.device->names);
		rb_erase(&n->in_order, &n->line.device->names_in_order);
		/* Somebody else may have ended it. */
		hml_line_wake(&n->line);
	}
	n->ended = true;
	hml_unlock(&hml_name_lock);
	if (ended)
		return;
	hml_changed();
	trace_hamlyn_name_end(n);
}

/* The first that waits is told that nobody will answer. Return: false if there was none. */
static bool send_away(struct hml_name *n)
{
	struct rb_node *first;

	hml_lock(&hml_name_lock);
	first = rb_first(&n->calls);
	if (first)
		hml_call_answer(rb_entry(first, struct hml_call, at), HML_WIRE_HUNG_UP, 0, NULL,
				0);
	hml_unlock(&hml_name_lock);
	return first;
}

/* Nobody finds it any more, and nobody waits there. */
static void end_name(struct hml_name *n)
{
	delist(n);
	while (send_away(n))
		cond_resched();
}

/* ---- read, write, poll ---- */

/* The first call that has the number @from or a greater one. */
static struct hml_call *call_from(struct hml_name *n, u64 from)
{
	struct rb_node *node = n->calls.rb_node;
	struct hml_call *best = NULL;

	lockdep_assert_held(&hml_name_lock);
	while (node) {
		struct hml_call *call = rb_entry(node, struct hml_call, at);

		if (call->number < from) {
			node = node->rb_right;
		} else {
			best = call;
			node = node->rb_left;
		}
	}
	return best;
}

/* A copy of the next one, which is read then. */
static bool take_next(struct hml_name *n, struct hml_call *copy)
{
	struct hml_call *call;

	hml_lock(&hml_name_lock);
	call = call_from(n, n->unread);
	if (call) {
		n->unread = call->number + 1;
		copy->number = call->number;
		copy->host = call->host;
		copy->user = call->user;
		copy->uid = call->uid;
		copy->length = call->length;
		memcpy(copy->said, call->said, call->length);
	}
	hml_unlock(&hml_name_lock);
	return call;
}

static ssize_t name_read(struct file *file, char __user *to, size_t room, loff_t *pos)
{
	struct hml_name *n = file->private_data;
	struct hml_call *copy;
	ssize_t ret = -EAGAIN;

	if (room < sizeof(struct hamlyn_caller) + HAMLYN_MAX_CALL)
		return -EINVAL;
	copy = hml_call_alloc(GFP_KERNEL_ACCOUNT, false);
	if (!copy)
		return -ENOMEM;
	/* What cannot be told is not answered; the caller gives up some time. */
	if (take_next(n, copy))
		ret = hml_call_tell(copy, to, room);
	hml_call_free(copy);
	return ret;
}

static int answer(struct hml_name *n, u64 number, const u8 *said, u32 length)
{
	struct hml_call *call;
	bool waits;

	hml_lock(&hml_name_lock);
	call = call_from(n, number);
	/* Only what was read: numbers of others can be guessed. */
	waits = call && call->number == number && number < n->unread;
	if (waits)
		hml_call_answer(call, HML_WIRE_ANSWERED, __kuid_val(n->uid), said, length);
	hml_unlock(&hml_name_lock);
	trace_hamlyn_call_answer(n, number, waits);
	return waits ? 0 : -ECONNRESET;
}

static int take_answer(struct hml_name *n, const struct hamlyn_answer *a, const u8 *said,
		       size_t length)
{
	if (a->flags & ~HAMLYN_ANSWER_END || a->length != length)
		return -EINVAL;
	if (!(a->flags & HAMLYN_ANSWER_END))
		return answer(n, a->number, said, length);
	if (a->number || length)
		return -EINVAL;
	end_name(n);
	return 0;
}

static ssize_t name_write(struct file *file, const char __user *from, size_t bytes, loff_t *pos)
{
	struct {
		struct hamlyn_answer a;
		u8 said[HAMLYN_MAX_CALL];
	} in;
	int err;

	if (bytes < sizeof(in.a) || bytes > sizeof(in))
		return -EINVAL;
	if (copy_from_user(&in, from, bytes))
		return -EFAULT;
	err = take_answer(file->private_data, &in.a, in.said, bytes - sizeof(in.a));
	memzero_explicit(&in, sizeof(in));
	return err ?: bytes;
}

static __poll_t name_poll(struct file *file, poll_table *wait)
{
	struct hml_name *n = file->private_data;
	__poll_t ready = 0;

	if (!hml_line_poll(&n->line, file, wait))
		return EPOLLERR;
	hml_lock(&hml_name_lock);
	if (call_from(n, n->unread))
		ready |= EPOLLIN | EPOLLRDNORM;
	if (n->ended)
		ready |= EPOLLHUP;
	hml_unlock(&hml_name_lock);
	return ready;
}

/* ---- from begin to end ---- */

static void name_free(struct hml_name *n)
{
	struct hml_device *d = n->line.device;

	end_name(n);
	hml_user_uncharge_name(d, n->line.payer);
	hml_line_close(&n->line);
	put_pid(n->pid);
	kfree(n);
}

static int name_release(struct inode *inode, struct file *file)
{
	name_free(file->private_data);
	return 0;
}

/* The owner: calls wait in it, and their answers come from it. */
static const struct file_operations name_fops = {
	.owner		= THIS_MODULE,
	.read		= name_read,
	.write		= name_write,
	.poll		= name_poll,
	.release	= name_release,
	.llseek		= noop_llseek,
};

static struct hml_name *name_new(struct hml_context *c, const struct hamlyn_listen *arg)
{
	struct hml_name *n = kzalloc(sizeof(*n), GFP_KERNEL_ACCOUNT);
	int err;

	if (!n)
		return ERR_PTR(-ENOMEM);
	n->ended = true;
	n->uid = c->uid;
	n->pid = get_pid(task_tgid(current));
	n->length = arg->name_length;
	memcpy(n->name, arg->name, n->length);
	err = hml_line_open(c, &n->line, hml_price(sizeof(*n)));
	if (err)
		goto no_line;
	err = hml_user_charge_name(c);
	if (!err)
		return n;
	hml_line_close(&n->line);
no_line:
	put_pid(n->pid);
	kfree(n);
	return ERR_PTR(err);
}

/**
 * hml_name_listen() - take a name, up to the point of no return
 * @c: the context
 * @arg: LISTEN; its fd is reserved, but there is no file behind it yet
 * @file: the file that belongs there, one reference
 *
 * Return: 0, or -EINVAL, -EADDRINUSE, -ENOMEM, -EDQUOT, -EMFILE, -ENFILE.
 */
int hml_name_listen(struct hml_context *c, struct hamlyn_listen *arg, struct file **file)
{
	struct hml_name *n;
	int ret;

	if (arg->flags || !hml_wire_name_ok(arg->name, arg->name_length)) {
		hml_explain(c, "a name has 1 to %u printable characters, and no blank or '/'",
			    HAMLYN_MAX_NAME);
		return -EINVAL;
	}
	n = name_new(c, arg);
	if (IS_ERR(n))
		return PTR_ERR(n);
	ret = enlist(n);
	if (ret)
		hml_explain(c, "another process has that name");
	else
		ret = hml_line_file("[hamlyn-name]", &name_fops, n, O_RDWR, file);
	if (ret < 0) {
		name_free(n);
		return ret;
	}
	/* Nobody else has its descriptor yet. */
	trace_hamlyn_name_listen(n);
	arg->fd = ret;
	return 0;
}
