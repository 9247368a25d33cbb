// SPDX-License-Identifier: GPL-2.0-only
/* Contexts: what an open file is, from open() to release(). */
#include <linux/fs.h>
#include <linux/nsproxy.h>
#include <linux/sched/task.h>
#include <linux/slab.h>

#include "hml.h"
#include "locked.h"
#include "trace.h"

void hml_context_get(struct hml_context *c)
{
	refcount_inc(&c->ref);
}

/* What is left of it after release() is for those who are about to wake it. */
void hml_context_put(struct hml_context *c)
{
	struct hml_device *d = c->device;

	if (!refcount_dec_and_test(&c->ref))
		return;
	if (c->loan)
		hml_loan_put(c->loan);
	hml_audit_free(c->audit);
	put_pid(c->pid);
	mutex_destroy(&c->lock);
	kfree(c);
	put_device(&d->dev);
}

static struct hml_context *context_new(struct hml_device *d)
{
	struct hml_context *c = kzalloc(sizeof(*c), GFP_KERNEL_ACCOUNT);

	if (!c)
		return NULL;
	c->device = d;
	get_device(&d->dev);
	refcount_set(&c->ref, 1);
	mutex_init(&c->lock);
	xa_init_flags(&c->areas, XA_FLAGS_ALLOC);
	xa_init_flags(&c->nqs, XA_FLAGS_ALLOC);
	xa_init(&c->slots);
	xa_init_flags(&c->termini, XA_FLAGS_ALLOC);
	xa_init_flags(&c->watches, XA_FLAGS_ALLOC);
	raw_spin_lock_init(&c->explain_lock);
	c->explainers = RB_ROOT;
	init_waitqueue_head(&c->wait);
	INIT_DELAYED_WORK(&c->waking, hml_nq_wake_polls);
	c->uid = current_euid();
	c->pid = get_pid(task_tgid(current));
	get_task_comm(c->comm, current);
	c->audit = hml_audit_alloc(HML_AUDIT_CONTEXT);
	if (!c->audit) {
		hml_context_put(c);
		return NULL;
	}
	return c;
}

/* May be opened from the namespace @net? */
static bool in_namespace(const struct hml_device *d, const struct net *net)
{
	return net_eq(net, read_pnet(&d->net));
}

/*
 * The namespace of whoever opens, with a reference, or NULL. A worker of an io_uring keeps
 * the namespaces that its maker had then, and its maker may have left them since, as whoever
 * enters a container does: those of the process count.
 */
static struct net *opener_net(void)
{
	struct task_struct *leader = current->group_leader;
	struct net *net = NULL;

	if (likely(!(current->flags & PF_IO_WORKER)))
		return get_net(current->nsproxy->net_ns);
	task_lock(leader);
	if (leader->nsproxy)
		net = get_net(leader->nsproxy->net_ns);
	task_unlock(leader);
	return net;
}

/* Where the context with @id hangs, or would. */
static struct rb_node **context_place(struct hml_device *d, u32 id,
				      struct rb_node **parent)
{
	struct rb_node **link = &hml_contexts(d)->rb_node;

	*parent = NULL;
	while (*link) {
		struct hml_context *c = rb_entry(*link, struct hml_context,
						 node);

		if (id == c->id)
			break;
		*parent = *link;
		link = id < c->id ? &(*link)->rb_left : &(*link)->rb_right;
	}
	return link;
}

/**
 * hml_context_from() - look at the contexts of a NIC in turn
 * @d: the NIC
 * @id: the least id of interest
 *
 * Return: the first one, with a reference, or NULL.
 */
struct hml_context *hml_context_from(struct hml_device *d, u32 id)
{
	struct hml_context *best = NULL;
	struct rb_node *n;

	hml_lock(&d->contexts_lock);
	n = hml_contexts(d)->rb_node;
	while (n) {
		struct hml_context *c = rb_entry(n, struct hml_context, node);

		if (c->id < id) {
			n = n->rb_right;
		} else {
			best = c;
			n = n->rb_left;
		}
	}
	if (best)
		hml_context_get(best);
	hml_unlock(&d->contexts_lock);
	return best;
}

/* Return: -EAGAIN if the id whose turn it was is in use: there is another one. */
static int context_insert(struct hml_context *c, const struct net *net)
{
	struct hml_device *d = c->device;
	struct rb_node *parent, **link;

	lockdep_assert_held(&d->contexts_lock);
	if (!in_namespace(d, net))
		return -EPERM;
	if (d->gone)
		return -ENODEV;
	c->id = d->next_context++ & INT_MAX;
	link = context_place(d, c->id, &parent);
	if (*link)
		return -EAGAIN;
	rb_link_node(&c->node, parent, link);
	rb_insert_color(&c->node, hml_contexts(d));
	++*hml_opens(d);
	return 0;
}

/*
 * Into the NIC's table. A NIC that is being deleted takes nobody, and one that
 * is open is not moved to another namespace.
 */
static int context_link(struct hml_context *c, const struct net *net)
{
	struct hml_device *d = c->device;
	int err;

	do {
		hml_lock(&d->contexts_lock);
		err = context_insert(c, net);
		hml_unlock(&d->contexts_lock);
	} while (err == -EAGAIN);
	return err;
}

/* Administrators find it no more, and the NIC may be deleted after @closed. */
static void context_unlink(struct hml_context *c, bool closed)
{
	struct hml_device *d = c->device;

	hml_lock(&d->contexts_lock);
	if (closed)
		--*hml_opens(d);
	else
		rb_erase(&c->node, hml_contexts(d));
	hml_unlock(&d->contexts_lock);
	hml_changed();
}

/* What has a descriptor of its own keeps the NIC open, as an open file does: one is open now. */
void hml_context_stay(struct hml_device *d)
{
	hml_lock(&d->contexts_lock);
	++*hml_opens(d);
	d->lines++;
	hml_unlock(&d->contexts_lock);
}

void hml_context_leave(struct hml_device *d)
{
	hml_lock(&d->contexts_lock);
	--*hml_opens(d);
	d->lines--;
	hml_unlock(&d->contexts_lock);
}

/* Without names and calls, which outlive the context that they were made by. */
u32 hml_context_count(struct hml_device *d)
{
	u32 n;

	hml_lock(&d->contexts_lock);
	n = *hml_opens(d) - d->lines;
	hml_unlock(&d->contexts_lock);
	return n;
}

/* Of a NIC that is being made it is not known yet whether it is there. */
static int wait_made(struct hml_device *d, const struct net *net)
{
	if (!in_namespace(d, net))
		return -EPERM;
	if (!READ_ONCE(d->gone))
		return 0;
	return wait_for_completion_killable(&d->made) ? -EINTR : 0;
}

static int open_loan(struct hml_context *c)
{
	struct hml_loan *a = hml_loan_get(c->user->uid);

	if (IS_ERR(a))
		return PTR_ERR(a);
	c->loan = a;
	return 0;
}

/*
 * Also for what the kernel has of an open file, about, and for the records of its user: in a
 * container each context may be the first one of another uid.
 */
static u32 context_price(void)
{
	return hml_price(sizeof(struct hml_context)) + hml_user_price() + hml_loan_price() +
	       hml_price(HML_AUDIT_CONTEXT *
			 sizeof(struct hamlyn_audit_entry)) +
	       hml_price(sizeof(struct file));
}

static int begin_paying(struct hml_context *c)
{
	struct hml_payer payer;
	int err = hml_user_get(c->device, &payer);

	if (err)
		return err;
	c->user = payer.user;
	c->share = payer.share;
	err = hml_user_charge_small(c, context_price());
	if (err)
		hml_user_put(c->device, payer);
	return err;
}

static void end_paying(struct hml_context *c)
{
	hml_user_uncharge_small(c->device, hml_payer(c), context_price());
	hml_user_put(c->device, hml_payer(c));
}

/* As seen from the namespace @net. */
static int open_in(struct hml_device *d, const struct net *net,
		   struct file *file)
{
	struct hml_context *c;
	int err;

	err = wait_made(d, net);
	if (err)
		return err;
	c = context_new(d);
	if (!c)
		return -ENOMEM;
	c->writable = file->f_mode & FMODE_WRITE;
	err = begin_paying(c);
	if (err)
		goto err_free;
	err = open_loan(c);
	if (!err)
		err = context_link(c, net);
	if (err)
		goto err_user;
	file->private_data = c;
	hml_changed();
	trace_hamlyn_context_open(c);
	hml_event_context(c, HAMLYN_NL_EVENT_CONTEXT_OPEN);
	return 0;

err_user:
	end_paying(c);
err_free:
	hml_context_put(c);
	return err;
}

/* open() of the device file */
int hml_context_open(struct inode *inode, struct file *file)
{
	struct hml_device *d = container_of(inode->i_cdev, struct hml_device,
					    cdev);
	struct net *net = opener_net();
	int err;

	if (!net)
		return -EPERM;
	err = open_in(d, net, file);
	put_net(net);
	return err ?: nonseekable_open(inode, file);
}

/*
 * release(): the last reference to the open file is gone, and with it every mapping and
 * every call in progress. What is left to fear are packets of others, on
 * their way into our slots, and administrators, who find us in the NIC's table.
 */
int hml_context_close(struct inode *inode, struct file *file)
{
	struct hml_context *c = file->private_data;

	trace_hamlyn_context_close(c);
	hml_event_context(c, HAMLYN_NL_EVENT_CONTEXT_CLOSE);
	/* 1. Nobody finds us, works on our termini, or tells our watches. */
	context_unlink(c, false);
	mutex_lock(&c->lock);
	*hml_closing(c) = true;
	mutex_unlock(&c->lock);
	hml_term_destroy_all(c);
	hml_watch_destroy_all(c);
	/* 2. No new packet finds our slots, and those that did have landed. */
	hml_slot_unlink_all(c);
	/* 3. Nothing refers to the rest any more. */
	hml_slot_destroy_all(c);
	hml_nq_destroy_all(c);
	flush_delayed_work(&c->waking);
	hml_area_destroy_all(c);
	end_paying(c);
	context_unlink(c, true);
	hml_context_put(c);
	return 0;
}
