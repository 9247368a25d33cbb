// SPDX-License-Identifier: GPL-2.0-only
/*
 * Calls: a process says something to whoever has a name, at this host or another one, and has a
 * descriptor from which it reads the answer. There is one answer, if only that nobody gave one.
 */
#include <linux/fcntl.h>
#include <linux/fs.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "hml.h"
#include "fabric/peer.h"
#include "locked.h"
#include "object/calling.h"
#include "object/name.h"
#include "trace.h"

/**
 * struct caller - the descriptor of a call
 * @line: the descriptor
 * @call: the call
 */
struct caller {
	struct hml_line line;
	struct hml_call *call;
};

/* What the kernel has of one, besides its descriptor. */
static u32 call_price(void)
{
	return hml_price(sizeof(struct hml_call)) + 2 * hml_price(sizeof(struct hml_tally));
}

static bool add_tally(struct hml_call *call, gfp_t flags)
{
	struct hml_tally *t = kzalloc(sizeof(*t), flags);

	if (!t)
		return false;
	t->next = call->spare;
	call->spare = t;
	return true;
}

struct hml_call *hml_call_alloc(gfp_t flags, bool tallied)
{
	struct hml_call *call = kzalloc(sizeof(*call), flags);

	/* Of another host's there may be many. */
	BUILD_BUG_ON(sizeof(*call) > 512);
	if (!call)
		return NULL;
	INIT_LIST_HEAD(&call->out);
	RB_CLEAR_NODE(&call->node);
	call->host = HAMLYN_NONE;
	call->due = CALL_SENT;
	if (!tallied || (add_tally(call, flags) && add_tally(call, flags)))
		return call;
	hml_call_free(call);
	return NULL;
}

/* The NIC is there: its peers, which may have one of ours for longer than its user, end first. */
static void end_paying(struct hml_call *call)
{
	hml_user_uncharge_call(call->device, call->payer);
	hml_user_uncharge_small(call->device, call->payer, call_price());
}

/* Without locks. */
void hml_call_free(struct hml_call *call)
{
	struct hml_tally *t;

	if (!call)
		return;
	while (call->spare) {
		t = call->spare;
		call->spare = t->next;
		kfree(t);
	}
	if (call->device)
		end_paying(call);
	/* There are keys in what is said. */
	kfree_sensitive(call);
}

/**
 * hml_call_answer() - a call is answered
 * @call: the call, which is no other host's of ours that was given up
 * @status: HML_WIRE_ANSWERED ...
 * @user: who answers; 0 unless it is HML_WIRE_ANSWERED
 * @said: what is said
 * @length: bytes of it
 *
 * By somebody of this host, or because there is nobody.
 */
void hml_call_answer(struct hml_call *call, u32 status, u32 user, const void *said, u32 length)
{
	lockdep_assert_held(&hml_name_lock);
	hml_name_detach(call);
	/* How many have called is for whoever has the name. */
	call->number = 0;
	call->status = status;
	call->user = user;
	call->uid = status ? INVALID_UID : KUIDT_INIT(user);
	call->length = length;
	if (length)
		memcpy(call->said, said, length);
	call->answered = true;
	if (call->line)
		hml_line_wake(call->line);
	else
		hml_calls_tell_later(call, CALL_ANSWER);
}

/* ---- read, poll ---- */

static int error_of(const struct hml_call *call)
{
	static const int errors[HML_WIRE_ANSWERS] = {
		[HML_WIRE_NO_NAME] = ENOENT,
		[HML_WIRE_FULL] = EUSERS,
		[HML_WIRE_HUNG_UP] = ECONNRESET,
	};

	return errors[array_index_nospec(call->status, HML_WIRE_ANSWERS)];
}

/* The head, with whom it is from, and what is said. @room is enough for all of it. */
ssize_t hml_call_tell(const struct hml_call *call, char __user *to, size_t room)
{
	uid_t uid = from_kuid_munged(current_user_ns(), call->uid);
	const struct hamlyn_caller head = {
		.number = call->number,
		.host = call->host,
		/* Numbers of this kernel are not shown to containers. */
		.user = call->host == HAMLYN_NONE ? uid : call->user,
		.uid = uid,
		.length = call->length,
		.error = error_of(call),
	};

	if (copy_to_user(to, &head, sizeof(head)) ||
	    copy_to_user(to + sizeof(head), call->said, call->length))
		return -EFAULT;
	return sizeof(head) + call->length;
}

/* When it is answered nobody changes it any more. */
static bool is_answered(const struct caller *w)
{
	bool answered;

	hml_lock(&hml_name_lock);
	answered = w->call->answered;
	hml_unlock(&hml_name_lock);
	return answered;
}

static ssize_t call_read(struct file *file, char __user *to, size_t room, loff_t *pos)
{
	struct caller *w = file->private_data;

	if (room < sizeof(struct hamlyn_caller) + HAMLYN_MAX_CALL)
		return -EINVAL;
	return is_answered(w) ? hml_call_tell(w->call, to, room) : -EAGAIN;
}

static __poll_t call_poll(struct file *file, poll_table *wait)
{
	struct caller *w = file->private_data;

	if (!hml_line_poll(&w->line, file, wait))
		return EPOLLERR;
	return is_answered(w) ? EPOLLIN | EPOLLRDNORM : 0;
}

/* ---- from begin to end ---- */

/* It is nobody's any more, or the other host's side is to tell of it. */
static void hang_up(struct caller *w)
{
	struct hml_call *call = w->call;

	hml_lock(&hml_name_lock);
	call->line = NULL;
	if (call->side && !call->answered) {
		if (!hml_calls_hang_up(call))
			call = NULL;
	} else {
		hml_name_detach(call);
	}
	hml_unlock(&hml_name_lock);
	hml_call_free(call);
}

static void caller_free(struct caller *w)
{
	hang_up(w);
	hml_line_close(&w->line);
	kfree(w);
}

static int call_release(struct inode *inode, struct file *file)
{
	caller_free(file->private_data);
	return 0;
}

static const struct file_operations call_fops = {
	.owner		= THIS_MODULE,
	.read		= call_read,
	.poll		= call_poll,
	.release	= call_release,
	.llseek		= noop_llseek,
};

static int fill(struct hml_call *call, const struct hml_context *c, const struct hamlyn_call *arg)
{
	call->uid = c->uid;
	call->user = __kuid_val(c->uid);
	call->share = c->share->key;
	call->name_length = arg->name_length;
	memcpy(call->called, arg->name, arg->name_length);
	call->length = arg->length;
	return copy_from_user(call->said, u64_to_user_ptr(arg->said), arg->length) ? -EFAULT : 0;
}

/* A call that was given up is paid for until the other host is told. */
static int pay_for_call(struct hml_context *c, struct hml_call *call, unsigned long *had)
{
	int err = hml_user_charge_small(c, call_price());

	if (err)
		return err;
	err = hml_user_charge_call(c, had);
	if (err) {
		hml_user_uncharge_small(c->device, hml_payer(c), call_price());
		return err;
	}
	call->device = c->device;
	call->payer = hml_payer(c);
	return 0;
}

static int begin_paying(struct hml_context *c, struct caller *w, unsigned long *had)
{
	int err = hml_line_open(c, &w->line, hml_price(sizeof(*w)));

	if (err)
		return err;
	err = pay_for_call(c, w->call, had);
	if (err)
		hml_line_close(&w->line);
	return err;
}

static struct caller *caller_new(struct hml_context *c, const struct hamlyn_call *arg,
				 unsigned long *had)
{
	struct caller *w = kzalloc(sizeof(*w), GFP_KERNEL_ACCOUNT);
	int err = -ENOMEM;

	if (!w)
		return ERR_PTR(err);
	w->call = hml_call_alloc(GFP_KERNEL_ACCOUNT, true);
	if (w->call)
		err = fill(w->call, c, arg);
	if (!err)
		err = begin_paying(c, w, had);
	if (!err)
		return w;
	hml_call_free(w->call);
	kfree(w);
	return ERR_PTR(err);
}

/* ---- whom it goes to ---- */

static int call_here(struct hml_device *d, struct hml_call *call)
{
	struct hml_name *n;

	lockdep_assert_held(&hml_name_lock);
	if (!hml_link_up(&d->nic))
		return -EHOSTDOWN;
	n = hml_name_find(d, call->called, call->name_length);
	if (!n)
		return -ENOENT;
	return hml_name_attach(n, call) ? 0 : -EUSERS;
}

/* In a section: what a path leads to stays. */
static int call_at(struct hml_nic *nic, struct caller *w, unsigned long had)
{
	int err;

	if (!nic)
		return -EHOSTUNREACH;
	hml_lock(&hml_name_lock);
	w->call->line = &w->line;
	if (hml_peer_of(nic))
		err = hml_calls_dial(&hml_peer_of(nic)->names, w->call, had);
	else
		err = call_here(container_of(nic, struct hml_device, nic), w->call);
	hml_unlock(&hml_name_lock);
	return err;
}

static void explain(struct hml_context *c, const struct hamlyn_call *arg, int err)
{
	switch (err) {
	case -EHOSTUNREACH:
		hml_explain(c, "host %u is no host of this fabric", arg->host);
		break;
	case -EHOSTDOWN:
		hml_explain(c, "host %u cannot be reached now", arg->host);
		break;
	case -EPROTONOSUPPORT:
		hml_explain(c, "host %u has a version of hamlyn that knows no names", arg->host);
		break;
	case -ENOSPC:
		hml_explain(c, "users of this host have as many calls to host %u as there can be",
			    arg->host);
		break;
	}
}

static int dial(struct hml_context *c, struct caller *w, const struct hamlyn_call *arg,
		unsigned long had)
{
	int err;

	hml_section_begin();
	err = call_at(hml_port_route(&c->device->nic, arg->host), w, had);
	hml_section_end();
	trace_hamlyn_call(c->device, arg->host, arg->name, arg->name_length, __kuid_val(c->uid),
			  err);
	explain(c, arg, err);
	return err;
}

/**
 * hml_call() - call a name
 * @c: the context
 * @arg: CALL; its fd is reserved, but there is no file behind it yet
 * @file: the file that belongs there, one reference
 *
 * Return: 0, or -EINVAL, -EFAULT, -EHOSTUNREACH, -EHOSTDOWN, -EPROTONOSUPPORT, -ENOENT, -EUSERS,
 * -ENOSPC, -ENOMEM, -EDQUOT, -EMFILE, -ENFILE.
 */
int hml_call(struct hml_context *c, struct hamlyn_call *arg, struct file **file)
{
	unsigned long had;
	struct caller *w;
	int ret;

	if (arg->flags || arg->length > HAMLYN_MAX_CALL ||
	    !hml_wire_name_ok(arg->name, arg->name_length))
		return -EINVAL;
	w = caller_new(c, arg, &had);
	if (IS_ERR(w))
		return PTR_ERR(w);
	ret = dial(c, w, arg, had);
	if (!ret)
		ret = hml_line_file("[hamlyn-call]", &call_fops, w, O_RDONLY, file);
	if (ret < 0) {
		caller_free(w);
		return ret;
	}
	arg->fd = ret;
	return 0;
}
