// SPDX-License-Identifier: GPL-2.0-only
/*
 * NICs: made and deleted one at a time, each with a device node, a host id on
 * the loop fabric and a network namespace.
 */
#include <linux/capability.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat/compat.h"
#include "hml.h"
#include "locked.h"
#include "trace.h"

#define DEFAULT_USER_TERMINI	1024

static dev_t hml_devt;

/*
 * NICs by index, from when an index is taken until nothing is left of the NIC. Changed under
 * nics_lock; read under RCU, with a reference where there is one left to get. Anybody may list
 * NICs, so nobody who does holds a lock.
 */
static struct hml_device __rcu *nics[HML_MAX_NICS];
static DEFINE_RAW_SPINLOCK(nics_lock);

static bool found(struct hml_device *d, const struct net *net)
{
	return d && READ_ONCE(d->listed) &&
	       (!net || net_eq(read_pnet(&d->net), net)) &&
	       kobject_get_unless_zero(&d->dev.kobj);
}

/**
 * hml_nic_get() - look at NICs in turn
 * @net: those of a network namespace, or NULL: of all
 * @from: the least index of interest
 *
 * Return: the first one, with a reference, or NULL.
 */
struct hml_device *hml_nic_get(const struct net *net, u32 from)
{
	struct hml_device *d = NULL;

	/* Grace periods are everybody's: not for a task that has lost its processor here. */
	preempt_disable();
	rcu_read_lock();
	for (; from < HML_MAX_NICS; from++) {
		d = rcu_dereference(nics[from]);
		if (found(d, net))
			break;
		d = NULL;
	}
	rcu_read_unlock();
	preempt_enable();
	return d;
}

static void device_release(struct device *dev)
{
	struct hml_device *d = container_of(dev, struct hml_device, dev);

	hml_tcp_free(d);
	hml_users_free(d);
	kvfree(d->slot_ids);
	hml_audit_free(d->audit);
	kvfree(d->nic.port.slots);
	mutex_destroy(&d->admin);
	kfree_rcu(d, rcu);
}

/* A NIC, and its uevents, are for those who could open it. */
static HML_COMPAT_NS nic_namespace(HML_COMPAT_CLASS_DEV *dev)
{
	struct hml_device *d = container_of(dev, struct hml_device, dev);

	return hml_compat_ns(READ_ONCE(d->shown));
}

static struct class hml_class = {
	.name = "hamlyn",
	HML_COMPAT_CLASS_OWNER
	.ns_type = &net_ns_type_operations,
	.namespace = nic_namespace,
};

/*
 * As with RDMA, keys and quotas limit what a user can do, so anybody may open a NIC. A site that
 * thinks otherwise says so in a udev rule.
 */
static char *devnode(HML_COMPAT_TYPE_DEV *dev, umode_t *mode, kuid_t *uid,
		     kgid_t *gid)
{
	if (mode)
		*mode = 0666;
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

static void end_nic(struct work_struct *work);
static void show(struct work_struct *work);

static void init_nic(struct hml_device *d, const struct hml_nic_attr *attr)
{
	d->nic.link = &d->link;
	d->nic.port.fabric = &hml_loop;
	RCU_INIT_POINTER(d->nic.port.first, &hml_loop);
	d->nic.packet_size = attr->packet_size;
	d->pass_budget = hml_pass_budget(attr->packet_size);
	d->nic.guesses = attr->guesses;
	d->nic.port.max_slots = attr->max_slots;
	d->idle_us = attr->idle_us;
	d->kick_window_us = attr->kick_window_us;
	mutex_init(&d->admin);
	init_completion(&d->made);
	init_completion(&d->ended);
	INIT_WORK(&d->ending, end_nic);
	INIT_WORK(&d->showing, show);
	raw_spin_lock_init(&d->contexts_lock);
	d->contexts = RB_ROOT;
	raw_spin_lock_init(&d->users_lock);
	d->users = RB_ROOT;
	raw_spin_lock_init(&d->termini_lock);
	INIT_LIST_HEAD(&d->termini);
	init_limits(d, attr);
}

/* From here on put_device() frees it. */
static struct hml_device *device_new(const struct hml_nic_attr *attr)
{
	struct hml_device *d = kzalloc(sizeof(*d), GFP_KERNEL);

	if (!d)
		return NULL;
	d->gone = true;
	init_nic(d, attr);
	device_initialize(&d->dev);
	d->dev.class = &hml_class;
	d->dev.type = &hml_type;
	d->dev.release = device_release;
	d->nic.port.slots = kvcalloc(attr->max_slots,
				     sizeof(*d->nic.port.slots), GFP_KERNEL);
	d->slot_ids = kvcalloc(BITS_TO_LONGS(attr->max_slots),
			       sizeof(*d->slot_ids), GFP_KERNEL);
	d->audit = hml_audit_alloc(HML_AUDIT_NIC);
	if (!d->nic.port.slots || !d->slot_ids || !d->audit) {
		put_device(&d->dev);
		return NULL;
	}
	return d;
}

/* The first index that is free, or an error. */
static int choose_index(u32 from, u32 to)
{
	u32 i;

	lockdep_assert_held(&nics_lock);
	for (i = from; i <= to; i++)
		if (!rcu_access_pointer(nics[i]))
			return i;
	return from == to ? -EEXIST : -ENOSPC;
}

static int take_index(struct hml_device *d, u32 index)
{
	u32 from = index == HAMLYN_NONE ? 0 : index;
	u32 to = index == HAMLYN_NONE ? HML_MAX_NICS - 1 : index;
	int got;

	if (to >= HML_MAX_NICS)
		return -EINVAL;
	hml_lock(&nics_lock);
	got = choose_index(from, to);
	if (got >= 0) {
		d->index = got;
		d->dev.devt = MKDEV(MAJOR(hml_devt), got);
		rcu_assign_pointer(nics[got], d);
	}
	hml_unlock(&nics_lock);
	return min(got, 0);
}

static void give_index(struct hml_device *d)
{
	hml_lock(&nics_lock);
	RCU_INIT_POINTER(nics[d->index], NULL);
	hml_unlock(&nics_lock);
}

/* From here on it can be found and opened. */
static void enlist(struct hml_device *d)
{
	hml_lock(&d->contexts_lock);
	WRITE_ONCE(d->gone, false);
	WRITE_ONCE(d->listed, true);
	hml_unlock(&d->contexts_lock);
}

/*
 * From here on nobody finds it, and opening it is -ENODEV.
 * Return: 0, -EBUSY if somebody has it open, -ENODEV if that was done already.
 */
static int delist(struct hml_device *d)
{
	int err = 0;

	hml_lock(&d->contexts_lock);
	if (READ_ONCE(d->gone))
		err = -ENODEV;
	else if (*hml_opens(d))
		err = -EBUSY;
	if (!err) {
		WRITE_ONCE(d->gone, true);
		WRITE_ONCE(d->listed, false);
	}
	hml_unlock(&d->contexts_lock);
	return err;
}

/*
 * Last: from here on packets for it find it. The character device is there before it is
 * known that it stays: an open() meanwhile waits for @made.
 */
static int device_start(struct hml_device *d, const struct hml_nic_attr *attr)
{
	int err;

	snprintf(d->name, sizeof(d->name), "hamlyn%u", d->index);
	err = dev_set_name(&d->dev, "%s", d->name);
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
	enlist(d);
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

/* Its lock is held: nobody changes or deletes it before it was told that it is there. */
static int make(struct hml_device *d, const struct hml_nic_attr *attr,
		hml_nic_setup_fn setup, const void *arg)
{
	int err = setup ? setup(d, arg) : 0;

	if (!err)
		err = device_start(d, attr);
	if (err)
		return err;
	hml_changed();
	hml_event_nic(d, HAMLYN_NL_EVENT_NIC_NEW);
	if (READ_ONCE(d->link.down))
		hml_event_nic(d, HAMLYN_NL_EVENT_NIC_DOWN);
	trace_hamlyn_nic_create(d);
	return 0;
}

/**
 * hml_nic_create() - make a NIC
 * @attr: its properties
 * @net: its network namespace
 * @setup: what else there is to set, before anybody can open it; or NULL
 * @arg: for @setup
 *
 * Return: the NIC, with a reference, or ERR_PTR() of -EINVAL, -EEXIST if index or host is
 * taken, -ENOSPC, -ENOMEM, or what @setup returned.
 */
struct hml_device *hml_nic_create(const struct hml_nic_attr *attr,
				  struct net *net, hml_nic_setup_fn setup,
				  const void *arg)
{
	struct hml_device *d;
	int err;

	if (!attr_valid(attr))
		return ERR_PTR(-EINVAL);
	d = device_new(attr);
	if (!d)
		return ERR_PTR(-ENOMEM);
	write_pnet(&d->net, net);
	d->shown = net;
	err = take_index(d, attr->index);
	if (err)
		goto err_put;
	/* For the table; it is ours until somebody deletes it. */
	get_device(&d->dev);
	mutex_lock(&d->admin);
	err = make(d, attr, setup, arg);
	if (err) {
		hml_tcp_stop(d);
		hml_adversary_stop(d);
	}
	mutex_unlock(&d->admin);
	complete_all(&d->made);
	if (!err)
		return d;
	give_index(d);
	put_device(&d->dev);
err_put:
	put_device(&d->dev);
	return ERR_PTR(err);
}

/*
 * Nobody finds it and nobody has it open, so d->admin is not needed: it may be held by the
 * one who waits for us. What is left to do waits for the kernel's locks and
 * for engines, and whoever deletes NICs, a network namespace that ends above all, does not.
 */
static void end_nic(struct work_struct *work)
{
	struct hml_device *d = container_of(work, struct hml_device, ending);

	cdev_device_del(&d->cdev, &d->dev);
	hml_tcp_stop(d);
	if (d->staying)
		put_net(d->staying);
	hml_fabric_detach(d);
	hml_engine_stop(d);
	hml_adversary_stop(d);
	give_index(d);
	complete_all(&d->ended);
	put_device(&d->dev);
}

/* ---- where it is shown ---- */

/*
 * By a worker, which does not lack the few bytes that this takes: half done, it could not be
 * done again.
 */
static void show(struct work_struct *work)
{
	struct hml_device *d = container_of(work, struct hml_device, showing);

	device_rename(&d->dev, d->name);
}

/**
 * hml_nic_show_in() - show a NIC in another network namespace
 * @d: the NIC, which nobody else moves or deletes meanwhile
 * @net: the namespace
 *
 * The former one is still there. It waits for the kernel's locks, for no user's.
 */
void hml_nic_show_in(struct hml_device *d, struct net *net)
{
	kobject_uevent(&d->dev.kobj, KOBJ_REMOVE);
	WRITE_ONCE(d->shown, net);
	queue_work(system_unbound_wq, &d->showing);
	flush_work(&d->showing);
	kobject_uevent(&d->dev.kobj, KOBJ_ADD);
}

/*
 * A namespace that ends is not there any more when a worker gets to deleting its NICs: what
 * refers to it goes before. Nobody is told: nobody is left there.
 */
static void leave(struct hml_device *d)
{
	dev_set_uevent_suppress(&d->dev, true);
	hml_nic_show_in(d, &init_net);
}

/* ---- deleting one ---- */

static int begin_end(struct hml_device *d)
{
	int err = delist(d);

	if (err)
		return err;
	d->staying = maybe_get_net(d->shown);
	if (!d->staying)
		leave(d);
	trace_hamlyn_nic_delete(d);
	hml_changed();
	hml_event_nic(d, HAMLYN_NL_EVENT_NIC_DEL);
	queue_work(hml_workers, &d->ending);
	return 0;
}

/**
 * hml_nic_delete() - delete a NIC that nobody has open
 * @d: the NIC; a reference is held
 *
 * A caller that is killed does not wait until it is gone.
 *
 * Return: 0, -EBUSY, -ENODEV or -EINTR.
 */
int hml_nic_delete(struct hml_device *d)
{
	int err = begin_end(d);

	if (err)
		return err;
	return wait_for_completion_killable(&d->ended) ? -EINTR : 0;
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

/* Return: whether it was up before; @set_down whether it is down now. */
static bool set_link(struct hml_device *d, const struct hamlyn_nic_set *set,
		     bool *is_down)
{
	bool was_up;

	hml_lock(&d->contexts_lock);
	was_up = !READ_ONCE(d->link.down);
	hml_link_set(&d->nic, set);
	*is_down = READ_ONCE(d->link.down);
	if (was_up && *is_down && READ_ONCE(d->listed))
		/* B18: it is down before its era is there to be read. */
		smp_store_release(&d->down_era, hml_watch_down());
	hml_unlock(&d->contexts_lock);
	return was_up;
}

/**
 * hml_nic_set() - up, down, watchdog (H 2.8)
 * @d: the NIC
 * @set: what to change
 *
 * d->admin is held, unless it only feeds: so events come in the order of what they tell.
 *
 * Return: 0 or -EINVAL; 1 if it was set down, also if it was down: call
 * hml_nic_tell_down(), which puts a reference of @d that we got, when d->admin is free
 * again. Not for a NIC that is being made: nobody watches it.
 */
int hml_nic_set(struct hml_device *d, const struct hamlyn_nic_set *set)
{
	bool was_up, down;

	if (check_set(set))
		return -EINVAL;
	was_up = set_link(d, set, &down);
	trace_hamlyn_nic_set(d, set);
	if (!(set->flags & HAMLYN_NIC_SET_STATE) || !READ_ONCE(d->listed))
		return 0;
	lockdep_assert_held(&d->admin);
	if (was_up == down)
		hml_event_nic(d, down ? HAMLYN_NL_EVENT_NIC_DOWN :
					HAMLYN_NL_EVENT_NIC_UP);
	if (!down)
		return 0;
	get_device(&d->dev);
	return 1;
}

/**
 * hml_nic_tell_down() - tell who watches the slots of a NIC that was set down
 * @d: the NIC; its reference is put
 *
 * Without the NIC's lock: they may be millions. Whoever is being told already by another task
 * that has set it down is not told again: it is waited for.
 */
void hml_nic_tell_down(struct hml_device *d)
{
	u64 era = READ_ONCE(d->down_era);	/* B18: read before the grace period begins */

	/*
	 * What is landing has landed when they are told. Of an era that begins after it,
	 * when it was up again meanwhile, that were not so.
	 */
	hml_grace_wait();
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
	/* Not after other administrators: the watchdog is waiting. */
	if (set->flags == HAMLYN_NIC_FEED && !check_set(set)) {
		hml_link_set(&c->device->nic, set);
		trace_hamlyn_nic_set(c->device, set);
		return 0;
	}
	if (mutex_lock_killable(&c->device->admin))
		return -EINTR;
	err = hml_nic_set(c->device, set);
	mutex_unlock(&c->device->admin);
	if (err > 0) {
		hml_nic_tell_down(c->device);
		err = 0;
	}
	return err;
}

/* Whose namespace goes, and somebody has it open. */
static void move_home(struct hml_device *d)
{
	hml_nic_show_in(d, &init_net);
	hml_lock(&d->contexts_lock);
	write_pnet(&d->net, &init_net);
	hml_unlock(&d->contexts_lock);
	hml_changed();
	hml_event_nic(d, HAMLYN_NL_EVENT_NIC_NEW);
}

/*
 * A namespace goes: its NICs go with it, or, if one is open, to the first
 * namespace, as hardware does. A process outside may have it open, and so may one
 * that is killed: it leaves its namespaces before it closes its files. Early,
 * for whoever reads d->net under RCU may still use the old one until the next
 * grace period.
 *
 * All namespaces that end wait for this one, so it waits for nobody: not for d->admin either,
 * which a task may hold that has a NIC open. Administrators who name a NIC do so by a socket of
 * its namespace, which keeps that from ending.
 */
static void __net_exit net_exit(struct net *net)
{
	struct hml_device *d;
	u32 from = 0;

	while ((d = hml_nic_get(net, from))) {
		from = d->index + 1;
		/* Its sockets end with the namespace, whoever has it open. */
		hml_tcp_stop(d);
		if (begin_end(d) == -EBUSY)
			move_home(d);
		put_device(&d->dev);
	}
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
	err = class_register(&hml_class);
	if (err)
		goto err_region;
	err = register_pernet_subsys(&net_ops);
	if (err)
		goto err_class;
	return 0;

err_class:
	class_unregister(&hml_class);
err_region:
	unregister_chrdev_region(hml_devt, HML_MAX_NICS);
	return err;
}

/* Nobody has a NIC open. */
void hml_nics_exit(void)
{
	/* It ends them all: every namespace's .pre_exit is called. */
	unregister_pernet_subsys(&net_ops);
	flush_workqueue(hml_workers);
	class_unregister(&hml_class);
	unregister_chrdev_region(hml_devt, HML_MAX_NICS);
}
