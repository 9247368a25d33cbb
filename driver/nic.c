// SPDX-License-Identifier: GPL-2.0-only
/*
 * NICs: made and deleted one at a time, each with a device node, a host id on
 * the loop fabric and a network namespace.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "hml.h"
#include "locked.h"
#include "trace.h"

#define DEFAULT_USER_TERMINI	1024

static unsigned int dev_mode = 0666;
module_param(dev_mode, uint, 0444);
MODULE_PARM_DESC(dev_mode, "access rights of the device nodes (0666)");

static unsigned int dev_gid;
module_param(dev_gid, uint, 0444);
MODULE_PARM_DESC(dev_gid, "group of the device nodes (0)");

static dev_t hml_devt;
static struct class *hml_class;

DEFINE_MUTEX(hml_nics_lock);	/* the list, hosts, links, namespaces */
static LIST_HEAD(nics);
static DEFINE_IDA(nic_ids);	/* indices in use */

struct list_head *hml_nics(void)
{
	lockdep_assert_held(&hml_nics_lock);
	return &nics;
}

static void device_release(struct device *dev)
{
	struct hml_device *d = container_of(dev, struct hml_device, dev);

	hml_users_free(d);
	ida_destroy(&d->slot_ids);
	xa_destroy(&d->contexts);
	hml_audit_free(d->audit);
	kvfree(d->nic.port.slots);
	kfree(d);
}

/* As with RDMA: who may use it is limited by keys and quotas, not by root. */
static char *devnode(HML_COMPAT_TYPE_DEV *dev, umode_t *mode, kuid_t *uid,
		     kgid_t *gid)
{
	if (mode)
		*mode = dev_mode & 0777;
	if (gid)
		*gid = make_kgid(&init_user_ns, dev_gid);
	return NULL;
}

static const struct device_type hml_type = {
	.name = "hamlyn",
	.devnode = devnode,
};

static void init_limits(struct hml_device *d, const struct hml_nic_attr *attr)
{
	d->max_pages = attr->max_pages ?: hml_max_pages();
	d->user_limits = attr->user;
	if (!d->user_limits.pages)
		d->user_limits.pages = d->max_pages / 2;
	if (!d->user_limits.wired)
		d->user_limits.wired = totalram_pages() / 2;
	if (!d->user_limits.slots)
		d->user_limits.slots = DIV_ROUND_UP(attr->max_slots, 2);
	if (!d->user_limits.termini)
		d->user_limits.termini = DEFAULT_USER_TERMINI;
}

static void init_nic(struct hml_device *d, const struct hml_nic_attr *attr)
{
	d->nic.link = &d->link;
	d->nic.packet_size = attr->packet_size;
	d->pass_budget = hml_pass_budget(attr->packet_size);
	d->nic.guesses = attr->guesses;
	d->nic.port.max_slots = attr->max_slots;
	d->idle_us = attr->idle_us;
	d->kick_window_us = attr->kick_window_us;
	mutex_init(&d->contexts_lock);
	xa_init_flags(&d->contexts, XA_FLAGS_ALLOC);
	raw_spin_lock_init(&d->users_lock);
	d->users = RB_ROOT;
	mutex_init(&d->termini_lock);
	INIT_LIST_HEAD(&d->termini);
	ida_init(&d->slot_ids);
	init_limits(d, attr);
}

/* From here on put_device() frees it. */
static struct hml_device *device_new(const struct hml_nic_attr *attr)
{
	struct hml_device *d = kzalloc(sizeof(*d), GFP_KERNEL);

	if (!d)
		return NULL;
	d->gone = true;
	INIT_LIST_HEAD(&d->list);
	init_nic(d, attr);
	device_initialize(&d->dev);
	d->dev.class = hml_class;
	d->dev.type = &hml_type;
	d->dev.release = device_release;
	d->nic.port.slots = kvcalloc(attr->max_slots,
				     sizeof(*d->nic.port.slots), GFP_KERNEL);
	d->audit = hml_audit_alloc(HML_AUDIT_NIC);
	if (!d->nic.port.slots || !d->audit) {
		put_device(&d->dev);
		return NULL;
	}
	return d;
}

static int take_index(struct hml_device *d, u32 index)
{
	u32 from = index == HAMLYN_NONE ? 0 : index;
	u32 to = index == HAMLYN_NONE ? HML_MAX_NICS - 1 : index;
	int got;

	if (to >= HML_MAX_NICS)
		return -EINVAL;
	got = ida_alloc_range(&nic_ids, from, to, GFP_KERNEL);
	if (got < 0)
		return got == -ENOSPC && index != HAMLYN_NONE ? -EEXIST : got;
	d->index = got;
	d->dev.devt = MKDEV(MAJOR(hml_devt), got);
	return 0;
}

/* Or that it is there. Return: false if somebody has it open. */
static bool set_gone(struct hml_device *d, bool gone)
{
	bool empty;

	mutex_lock(&d->contexts_lock);
	empty = !*hml_opens(d);
	if (empty)
		WRITE_ONCE(d->gone, gone);
	mutex_unlock(&d->contexts_lock);
	return empty;
}

/*
 * Last: from here on it can be opened, and packets for it find it. The character device is
 * there before it is known that it stays: who opens it meanwhile waits for us.
 */
static int device_start(struct hml_device *d, const struct hml_nic_attr *attr)
{
	int err;

	err = dev_set_name(&d->dev, "hamlyn%u", d->index);
	if (err)
		return err;
	err = hml_fabric_attach(d, attr->host);
	if (err)
		return err;
	err = hml_engine_start(d, attr->engine_mode, attr->engines);
	if (err)
		goto err_detach;
	cdev_init(&d->cdev, &hml_fops);
	d->cdev.owner = THIS_MODULE;
	err = cdev_device_add(&d->cdev, &d->dev);
	if (err)
		goto err_stop;
	set_gone(d, false);
	return 0;

err_stop:
	hml_engine_stop(d);
err_detach:
	hml_fabric_detach(d);
	return err;
}

static bool attr_valid(const struct hml_nic_attr *attr)
{
	return attr->packet_size >= HAMLYN_MIN_PACKET &&
	       attr->packet_size <= HAMLYN_MAX_PACKET &&
	       attr->max_slots && attr->max_slots <= HML_MAX_SLOTS &&
	       attr->engine_mode <= HAMLYN_ENGINE_POLL &&
	       attr->engines && attr->engines <= HML_MAX_ENGINES;
}

/**
 * hml_nic_create() - make a NIC
 * @attr: its properties
 * @net: its network namespace
 * @setup: what else there is to set, before anybody can open it; or NULL
 * @arg: for @setup
 *
 * hml_nics_lock is held.
 *
 * Return: the NIC, or ERR_PTR() of -EINVAL, -EEXIST if index or host is taken,
 * -ENOSPC, -ENOMEM, or what @setup returned.
 */
struct hml_device *hml_nic_create(const struct hml_nic_attr *attr,
				  struct net *net, hml_nic_setup_fn setup,
				  const void *arg)
{
	struct hml_device *d;
	int err;

	lockdep_assert_held(&hml_nics_lock);
	if (!attr_valid(attr))
		return ERR_PTR(-EINVAL);
	d = device_new(attr);
	if (!d)
		return ERR_PTR(-ENOMEM);
	err = take_index(d, attr->index);
	if (err)
		goto err_put;
	write_pnet(&d->net, net);
	err = setup ? setup(d, arg) : 0;
	if (!err)
		err = device_start(d, attr);
	if (err)
		goto err_adversary;
	list_add_tail(&d->list, hml_nics());
	hml_changed();
	hml_event_nic(d, HAMLYN_NL_EVENT_NIC_NEW);
	trace_hamlyn_nic_create(d);
	return d;

err_adversary:
	hml_adversary_stop(d);
	ida_free(&nic_ids, d->index);
err_put:
	put_device(&d->dev);
	return ERR_PTR(err);
}

/**
 * hml_nic_delete() - delete a NIC that nobody has open
 * @d: the NIC
 *
 * hml_nics_lock is held.
 *
 * Return: 0, or -EBUSY.
 */
int hml_nic_delete(struct hml_device *d)
{
	u32 index = d->index;

	lockdep_assert_held(&hml_nics_lock);
	/* Who opens it from here on gets -ENODEV. */
	if (!set_gone(d, true))
		return -EBUSY;
	trace_hamlyn_nic_delete(d);
	list_del(&d->list);
	hml_changed();
	hml_event_nic(d, HAMLYN_NL_EVENT_NIC_DEL);
	cdev_device_del(&d->cdev, &d->dev);
	hml_fabric_detach(d);
	hml_engine_stop(d);
	hml_adversary_stop(d);
	put_device(&d->dev);
	ida_free(&nic_ids, index);
	return 0;
}

/* May the caller administrate the NIC? */
bool hml_nic_admin(const struct hml_device *d)
{
	bool admin;

	rcu_read_lock();
	admin = ns_capable(read_pnet(&d->net)->user_ns, CAP_NET_ADMIN);
	rcu_read_unlock();
	return admin;
}

static int check_set(const struct hamlyn_nic_set *set)
{
	if (set->flags & ~(HAMLYN_NIC_SET_STATE | HAMLYN_NIC_SET_WATCHDOG |
			   HAMLYN_NIC_FEED) ||
	    set->state > HAMLYN_NIC_DOWN ||
	    set->watchdog_ms > HAMLYN_MAX_WATCHDOG_MS)
		return -EINVAL;
	return 0;
}

/**
 * hml_nic_set() - up, down, watchdog (H 2.8)
 * @d: the NIC
 * @set: what to change
 *
 * hml_nics_lock is held.
 *
 * Return: 0 or -EINVAL; 1 if it was set down, also if it was down: call
 * hml_nic_tell_down(), which puts a reference of @d that we got, when hml_nics_lock is free
 * again. Not for a NIC that is being made: nobody watches it.
 */
int hml_nic_set(struct hml_device *d, const struct hamlyn_nic_set *set)
{
	bool was_up = !READ_ONCE(d->link.down);
	bool down;

	lockdep_assert_held(&hml_nics_lock);
	if (check_set(set))
		return -EINVAL;
	hml_link_set(&d->nic, set);
	trace_hamlyn_nic_set(d, set);
	if (!(set->flags & HAMLYN_NIC_SET_STATE) || list_empty(&d->list))
		return 0;
	down = READ_ONCE(d->link.down);
	if (was_up == down)
		hml_event_nic(d, down ? HAMLYN_NL_EVENT_NIC_DOWN :
					HAMLYN_NL_EVENT_NIC_UP);
	if (!down)
		return 0;
	if (was_up)
		smp_store_release(&d->down_era, hml_watch_down());	/* B18 */
	get_device(&d->dev);
	return 1;
}

/**
 * hml_nic_tell_down() - tell who watches the slots of a NIC that was set down
 * @d: the NIC; its reference is put
 *
 * Without hml_nics_lock: they may be millions, and others have NICs as well. Who is told
 * already by another one who has set it down is not told again: it is waited for.
 */
void hml_nic_tell_down(struct hml_device *d)
{
	u64 era = READ_ONCE(d->down_era);		/* B18 */

	/*
	 * What is landing has landed when they are told. Of an era that begins behind it,
	 * when it was up again meanwhile, that were not so.
	 */
	hml_fabric_quiesce();
	hml_watch_tell_all(d, era);
	put_device(&d->dev);
}

int hml_nic_set_checked(struct hml_context *c, const struct hamlyn_nic_set *set)
{
	int err;

	if (!hml_nic_admin(c->device)) {
		hml_explain(c, "this needs CAP_NET_ADMIN in the network namespace");
		return -EPERM;
	}
	/* Not behind everybody who lists NICs: the watchdog is waiting. */
	if (set->flags == HAMLYN_NIC_FEED && !check_set(set)) {
		hml_link_set(&c->device->nic, set);
		trace_hamlyn_nic_set(c->device, set);
		return 0;
	}
	mutex_lock(&hml_nics_lock);
	err = hml_nic_set(c->device, set);
	mutex_unlock(&hml_nics_lock);
	if (err > 0) {
		hml_nic_tell_down(c->device);
		err = 0;
	}
	return err;
}

/*
 * A namespace goes: its NICs go with it, or, if one is open, to the first
 * namespace, as hardware does. A process outside may have it open, and so may one
 * that is killed: it leaves its namespaces before it closes its files. Early,
 * for whoever reads d->net under RCU may still use the old one until the next
 * grace period.
 */
static void __net_exit net_exit(struct net *net)
{
	struct hml_device *d, *next;

	mutex_lock(&hml_nics_lock);
	list_for_each_entry_safe(d, next, hml_nics(), list) {
		if (!net_eq(read_pnet(&d->net), net))
			continue;
		if (!hml_nic_delete(d))
			continue;
		write_pnet(&d->net, &init_net);
		hml_changed();
		hml_event_nic(d, HAMLYN_NL_EVENT_NIC_NEW);
	}
	mutex_unlock(&hml_nics_lock);
}

static struct pernet_operations net_ops = {
	.pre_exit = net_exit,
};

int hml_nics_init(void)
{
	int err;

	err = alloc_chrdev_region(&hml_devt, 0, HML_MAX_NICS, "hamlyn");
	if (err)
		return err;
	hml_class = hml_compat_class_create("hamlyn");
	if (IS_ERR(hml_class)) {
		err = PTR_ERR(hml_class);
		goto err_region;
	}
	err = register_pernet_subsys(&net_ops);
	if (err)
		goto err_class;
	return 0;

err_class:
	class_destroy(hml_class);
err_region:
	unregister_chrdev_region(hml_devt, HML_MAX_NICS);
	return err;
}

/* Nobody has a NIC open. */
void hml_nics_exit(void)
{
	struct hml_device *d, *next;

	unregister_pernet_subsys(&net_ops);
	mutex_lock(&hml_nics_lock);
	list_for_each_entry_safe(d, next, hml_nics(), list)
		hml_nic_delete(d);
	mutex_unlock(&hml_nics_lock);
	class_destroy(hml_class);
	unregister_chrdev_region(hml_devt, HML_MAX_NICS);
}
