// SPDX-License-Identifier: GPL-2.0-only
/*
 * Tickets as file descriptors (H 6.5).
 *
 * The file holds a copy of what it stands for and no reference: a ticket
 * that somebody has keeps no slot. It is good as long as the slot of that number
 * has that ticket key, which is random and new with every slot and every rekey;
 * neither key nor copy is ever shown to a process.
 */
#include <linux/anon_inodes.h>
#include <linux/fcntl.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/nospec.h>
#include <linux/slab.h>

#include "fabric/peer.h"
#include "hml.h"
#include "trace.h"

#define FIRST_TICKETS	16	/* length of a new key table; then it doubles */

/**
 * struct ticket_file - what a descriptor of a ticket is of
 * @ticket: the ticket; constant
 * @device: NIC of who pays for it, with a reference
 * @payer: who pays for it
 *
 * The NIC may be deleted meanwhile: of it there is the structure only then.
 */
struct ticket_file {
	struct hml_ticket ticket;
	struct hml_device *device;
	struct hml_payer payer;
};

/* With what the kernel has of an open file, about. */
static u32 file_price(void)
{
	return hml_price(sizeof(struct ticket_file)) +
	       hml_price(sizeof(struct file));
}

static struct ticket_file *file_new(struct hml_context *c)
{
	int err = hml_user_charge_small(c, file_price());
	struct ticket_file *f;

	if (err)
		return ERR_PTR(err);
	f = kzalloc(sizeof(*f), GFP_KERNEL_ACCOUNT);
	if (!f) {
		hml_user_uncharge_small(c->device, hml_payer(c), file_price());
		return ERR_PTR(-ENOMEM);
	}
	f->device = c->device;
	get_device(&f->device->dev);
	f->payer = hml_payer(c);
	return f;
}

static void file_free(struct ticket_file *f)
{
	hml_user_uncharge_small(f->device, f->payer, file_price());
	put_device(&f->device->dev);
	kfree_sensitive(f);
}

static int ticket_release(struct inode *inode, struct file *file)
{
	file_free(file->private_data);
	return 0;
}

/* The owner: no unloading while somebody has a ticket, perhaps in a message. */
static const struct file_operations ticket_fops = {
	.owner		= THIS_MODULE,
	.release	= ticket_release,
	.llseek		= noop_llseek,
};

/* ---- making one ---- */

static int fill_ticket(struct hml_context *c, struct hml_ticket *k,
		       const struct hamlyn_ticket_create *arg)
{
	struct hml_slot_object *s;
	int err = 0;

	mutex_lock(&c->lock);
	s = hml_slot_find(c, arg->slot);
	if (!s) {
		err = -ENOENT;
	} else if (!hml_view_covers(s->core.data.length, arg->base,
				    arg->length)) {
		err = -ERANGE;
	} else {
		k->key = READ_ONCE(s->core.ticket_key);
		k->base = arg->base;
		k->length = arg->length ?: s->core.data.length - arg->base;
		k->host = c->device->nic.host;
		k->slot = arg->slot;
	}
	mutex_unlock(&c->lock);
	return err;
}

/* The file, which owns @f from then on, and a descriptor reserved for it. */
static int open_ticket(struct ticket_file *f, struct file **file)
{
	int fd = get_unused_fd_flags(O_CLOEXEC);

	if (fd < 0)
		return fd;
	*file = anon_inode_getfile("[hamlyn-ticket]", &ticket_fops, f,
				   O_RDONLY);
	if (IS_ERR(*file)) {
		put_unused_fd(fd);
		return PTR_ERR(*file);
	}
	return fd;
}

/**
 * hml_ticket_create() - make a ticket, up to the point of no return
 * @c: the context
 * @arg: TICKET_CREATE; its fd is reserved, but there is no file behind it yet
 * @file: the file that belongs there, one reference
 *
 * Once a descriptor has its file other threads may close, copy or pass it on,
 * and nobody can take it back. So that comes last, after the result was told:
 * hml_ticket_commit(), or hml_ticket_undo() if it could not be told. Until then
 * close() of the number fails, and so does dup2() to it.
 *
 * Return: 0, or -EINVAL, -ENOENT, -ERANGE, -ENOMEM, -EDQUOT, -EMFILE, -ENFILE.
 */
int hml_ticket_create(struct hml_context *c, struct hamlyn_ticket_create *arg,
		      struct file **file)
{
	struct ticket_file *f;
	int ret;

	if (arg->flags)
		return -EINVAL;
	f = file_new(c);
	if (IS_ERR(f))
		return PTR_ERR(f);
	ret = fill_ticket(c, &f->ticket, arg);
	if (!ret)
		ret = open_ticket(f, file);
	if (ret < 0) {
		file_free(f);
		return ret;
	}
	arg->fd = ret;
	trace_hamlyn_ticket_create(c, f->ticket.slot, f->ticket.base,
				   f->ticket.length);
	return 0;
}

void hml_ticket_commit(const struct hamlyn_ticket_create *arg,
		       struct file *file)
{
	fd_install(arg->fd, file);
}

void hml_ticket_undo(const struct hamlyn_ticket_create *arg, struct file *file)
{
	put_unused_fd(arg->fd);
	fput(file);
}

/* ---- using one ---- */

/* A copy of the ticket behind a descriptor, or -EBADF. */
int hml_ticket_of_fd(int fd, struct hml_ticket *k)
{
	struct file *file = fget(fd);
	int err = 0;

	if (!file)
		return -EBADF;
	/* Its contents never change, so the copy needs no lock. */
	if (file->f_op == &ticket_fops)
		*k = ((const struct ticket_file *)file->private_data)->ticket;
	else
		err = -EBADF;
	fput(file);
	return err;
}

/*
 * Whether it is good may be over the next moment. That is no race to worry about: what counts is
 * the look at the key for every packet, in admit_packet().
 *
 * Return: 0, -ENOKEY, or -EXDEV if the slot's number is one of another host's.
 */
static int look_at_slot(struct hml_device *d, const struct hml_ticket *k)
{
	const struct hml_slot *slot = NULL;
	struct hml_nic *nic;
	int err = -ENOKEY;

	/* Whoever rekeys waits for us: we must not lose the processor here. */
	hml_section_begin();
	nic = hml_port_route(&d->nic, k->host);
	if (nic && hml_peer_of(nic))
		err = -EXDEV;
	else if (nic)
		slot = hml_port_slot(&nic->port, k->slot);
	if (slot && READ_ONCE(slot->ticket_key) == k->key)
		err = 0;
	hml_section_end();
	return err;
}

static u32 table_price(u32 count)
{
	return hml_price(count * sizeof(struct hml_ticket));
}

/* Nobody looks at the table any more. What is in it may still open something. */
void hml_tickets_free(struct hml_term *t)
{
	if (!t->core.ticket_count)
		return;
	hml_user_uncharge_small(t->device, t->payer,
				table_price(t->core.ticket_count));
	kvfree_sensitive(t->core.tickets,
			 t->core.ticket_count * sizeof(*t->core.tickets));
}

/* Terminus held: nobody else looks at the table, and it may move. */
static int grow(struct hml_context *c, struct hml_term *t)
{
	u32 old = t->core.ticket_count;
	u32 count = old ? 2 * old : FIRST_TICKETS;
	struct hml_ticket *tickets;
	int err;

	if (old >= HAMLYN_MAX_TICKETS)
		return -ENOSPC;
	count = min_t(u32, count, HAMLYN_MAX_TICKETS);
	err = hml_user_charge_small(c, table_price(count));
	if (err)
		return err;
	tickets = kvcalloc(count, sizeof(*tickets), GFP_KERNEL_ACCOUNT);
	if (!tickets) {
		hml_user_uncharge_small(c->device, hml_payer(c),
					table_price(count));
		return -ENOMEM;
	}
	if (old)
		memcpy(tickets, t->core.tickets, old * sizeof(*tickets));
	hml_tickets_free(t);
	t->core.tickets = tickets;
	t->core.ticket_count = count;
	return 0;
}

/* Terminus held. The lowest free index, or an error. */
static int add_ticket(struct hml_context *c, struct hml_term *t,
		      const struct hml_ticket *k)
{
	u32 i;
	int err;

	for (i = 0; i < t->core.ticket_count; i++)
		if (!t->core.tickets[i].key)
			break;
	if (i == t->core.ticket_count) {
		err = grow(c, t);
		if (err)
			return err;
	}
	t->core.tickets[i] = *k;
	return i;
}

static int import(struct hml_context *c, struct hml_term *t,
		  const struct hml_ticket *k)
{
	int ret = hml_term_hold(t);

	if (ret)
		return ret;
	ret = add_ticket(c, t, k);
	hml_term_release(t);
	return ret;
}

static int import_ticket(struct hml_context *c,
			 struct hamlyn_ticket_import *arg, struct hml_ticket *k,
			 struct hml_term **term)
{
	struct hml_term *t;
	int ret;

	ret = hml_ticket_of_fd(arg->fd, k);
	if (ret)
		return ret;
	ret = look_at_slot(c->device, k);
	if (ret == -EXDEV)
		hml_explain(c, "a ticket's descriptor does not reach host %u: it is another one",
			    k->host);
	if (ret)
		return ret;
	t = hml_term_get(c, arg->terminus);
	if (!t)
		return -ENOENT;
	ret = import(c, t, k);
	if (ret == -ENOSPC)
		hml_explain(c, "a terminus holds at most %u tickets",
			    HAMLYN_MAX_TICKETS);
	if (ret < 0) {
		hml_term_put(t);
		return ret;
	}
	*term = t;
	arg->index = ret;
	arg->host = k->host;
	arg->slot = k->slot;
	arg->base = k->base;
	arg->length = k->length;
	trace_hamlyn_ticket_import(c, arg);
	return 0;
}

/**
 * hml_ticket_import() - put a ticket into a terminus' table
 * @c: the context
 * @arg: in: the ticket's descriptor, the terminus; out: its index, and what it is for
 * @term: out: the terminus, whose reference is the caller's, until the process has been
 *	told: by its number it might be another one by then
 *
 * Return: 0, or a negative errno: then there is no reference.
 */
int hml_ticket_import(struct hml_context *c, struct hamlyn_ticket_import *arg,
		      struct hml_term **term)
{
	struct hml_ticket k;
	int ret = import_ticket(c, arg, &k, term);

	memzero_explicit(&k, sizeof(k));
	return ret;
}

/* ---- forgetting one ---- */

static bool in_use(const struct hml_term *t, const struct hml_ticket *k)
{
	const struct hamlyn_packet *h = &t->core.message.header;

	return t->core.busy && h->flags & HAMLYN_PACKET_TICKET &&
	       h->ticket_key == k->key;
}

/* Terminus held, until after the table was changed: no new message begins. */
static int remove_ticket(struct hml_term *t, u32 index)
{
	struct hml_ticket *k;
	int err = 0;

	if (index >= t->core.ticket_count)
		return -ENOKEY;
	k = &t->core.tickets[array_index_nospec(index, t->core.ticket_count)];
	if (!k->key)
		return -ENOKEY;
	/* It has the key in its header already. */
	if (in_use(t, k))
		err = hml_term_finish(t);
	if (!err)
		memzero_explicit(k, sizeof(*k));
	return err;
}

int hml_ticket_drop(struct hml_context *c, const struct hamlyn_ticket_drop *arg)
{
	struct hml_term *t;
	int err;

	if (arg->reserved)
		return -EINVAL;
	t = hml_term_get(c, arg->terminus);
	if (!t)
		return -ENOENT;
	err = hml_term_hold(t);
	if (!err) {
		err = remove_ticket(t, arg->index);
		hml_term_release(t);
	}
	hml_term_put(t);
	if (!err)
		trace_hamlyn_ticket_drop(c, arg);
	return err;
}

/*
 * Nobody was told of it: there is no message to wait for, and no signal is an excuse. The
 * reference is put. The table is the one that has the index: tables only grow.
 */
void hml_ticket_undo_import(const struct hamlyn_ticket_import *arg, struct hml_term *t)
{
	if (!hml_term_hold_killable(t)) {
		memzero_explicit(&t->core.tickets[arg->index], sizeof(*t->core.tickets));
		hml_term_release(t);
	}
	hml_term_put(t);
}
