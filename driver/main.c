// SPDX-License-Identifier: GPL-2.0-only
/* Module: one NIC, host 0, on the loop fabric. */
#include <linux/module.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>

#include "compat.h"
#include "hml.h"

#define MAX_NICS	1
#define MAX_SLOTS_LIMIT	SZ_1M

static char *engine = "poll";
module_param(engine, charp, 0444);
MODULE_PARM_DESC(engine, "poll (a kernel thread; default) or inline (the sender)");

unsigned int hml_idle_us = 50;
module_param_named(idle_us, hml_idle_us, uint, 0644);
MODULE_PARM_DESC(idle_us, "us without work until a terminus is no longer polled (50)");

unsigned int hml_kick_window_us = 1000;
module_param_named(kick_window_us, hml_kick_window_us, uint, 0644);
MODULE_PARM_DESC(kick_window_us, "us between doorbells that make the engine poll (1000)");

static unsigned int packet_size = 16384;
module_param(packet_size, uint, 0444);
MODULE_PARM_DESC(packet_size, "most payload bytes of a packet, 1024 to 65536 (default 16384)");

static unsigned int max_slots = 65536;
module_param(max_slots, uint, 0444);
MODULE_PARM_DESC(max_slots, "slots of the NIC, 1 to 1048576 (default 65536)");

static unsigned int mem_limit_mb;
module_param(mem_limit_mb, uint, 0444);
MODULE_PARM_DESC(mem_limit_mb, "kernel memory of all users, in MiB (a quarter of the memory)");

static unsigned int user_mem_limit_mb;
module_param(user_mem_limit_mb, uint, 0444);
MODULE_PARM_DESC(user_mem_limit_mb, "kernel memory of one user, in MiB (half of that)");

static unsigned int user_max_slots;
module_param(user_max_slots, uint, 0444);
MODULE_PARM_DESC(user_max_slots, "slots of one user (half of max_slots)");

static dev_t hml_devt;
static struct class *hml_class;
static struct hml_device *hml_device;

static int engine_mode(u32 *mode)
{
	if (sysfs_streq(engine, "inline"))
		*mode = HAMLYN_ENGINE_INLINE;
	else if (sysfs_streq(engine, "poll"))
		*mode = num_online_cpus() > 1 ? HAMLYN_ENGINE_POLL :
						HAMLYN_ENGINE_INLINE;
	else
		return -EINVAL;
	return 0;
}

static int check_params(u32 *mode)
{
	int err = engine_mode(mode);

	if (err)
		pr_err("hamlyn: engine=%s: must be poll or inline\n", engine);
	if (packet_size < HAMLYN_MIN_PACKET ||
	    packet_size > HAMLYN_MAX_PACKET) {
		pr_err("hamlyn: packet_size=%u: must be %u to %u\n",
		       packet_size, HAMLYN_MIN_PACKET, HAMLYN_MAX_PACKET);
		err = -EINVAL;
	}
	if (!max_slots || max_slots > MAX_SLOTS_LIMIT) {
		pr_err("hamlyn: max_slots=%u: must be 1 to %u\n", max_slots,
		       MAX_SLOTS_LIMIT);
		err = -EINVAL;
	}
	return err;
}

static void device_release(struct device *dev)
{
	struct hml_device *d = container_of(dev, struct hml_device, dev);

	ida_destroy(&d->slot_ids);
	xa_destroy(&d->users);
	cleanup_srcu_struct(&d->srcu);
	kvfree(d->nic.port.slots);
	kfree(d);
}

static struct hml_device *device_new(void)
{
	struct hml_device *d = kzalloc(sizeof(*d), GFP_KERNEL);

	if (!d)
		return NULL;
	d->nic.port.slots = kvcalloc(max_slots, sizeof(*d->nic.port.slots),
				     GFP_KERNEL);
	if (!d->nic.port.slots || init_srcu_struct(&d->srcu)) {
		kvfree(d->nic.port.slots);
		kfree(d);
		return NULL;
	}
	d->nic.port.srcu = &d->srcu;
	d->nic.port.max_slots = max_slots;
	d->nic.packet_size = packet_size;
	d->max_pages = mem_limit_mb ?
		(unsigned long)mem_limit_mb << (20 - PAGE_SHIFT) :
		totalram_pages() / 4;
	d->max_user_pages = user_mem_limit_mb ?
		(unsigned long)user_mem_limit_mb << (20 - PAGE_SHIFT) :
		d->max_pages / 2;
	d->max_user_slots = user_max_slots ?: DIV_ROUND_UP(max_slots, 2);
	mutex_init(&d->users_lock);
	xa_init(&d->users);
	spin_lock_init(&d->termini_lock);
	INIT_LIST_HEAD(&d->termini);
	ida_init(&d->slot_ids);
	device_initialize(&d->dev);
	d->dev.class = hml_class;
	d->dev.devt = MKDEV(MAJOR(hml_devt), d->nic.host);
	d->dev.release = device_release;
	return d;
}

static int device_start(struct hml_device *d, u32 mode)
{
	int err;

	err = dev_set_name(&d->dev, "hamlyn%u", d->nic.host);
	if (err)
		return err;
	err = hml_engine_start(d, mode);
	if (err)
		return err;
	cdev_init(&d->cdev, &hml_fops);
	d->cdev.owner = THIS_MODULE;
	/* Last: from here on it can be opened. */
	err = cdev_device_add(&d->cdev, &d->dev);
	if (err)
		hml_engine_stop(d);
	return err;
}

/* As with RDMA: who may use it is limited by keys and quotas, not by root. */
static char *devnode(HML_COMPAT_CLASS_DEV *dev, umode_t *mode)
{
	if (mode)
		*mode = 0666;
	return NULL;
}

static int __init hml_init(void)
{
	u32 mode;
	int err;

	err = check_params(&mode);
	if (err)
		return err;
	err = alloc_chrdev_region(&hml_devt, 0, MAX_NICS, "hamlyn");
	if (err)
		return err;
	hml_class = hml_compat_class_create("hamlyn");
	if (IS_ERR(hml_class)) {
		err = PTR_ERR(hml_class);
		goto err_region;
	}
	hml_class->devnode = devnode;
	hml_device = device_new();
	if (!hml_device) {
		err = -ENOMEM;
		goto err_class;
	}
	err = device_start(hml_device, mode);
	if (err)
		goto err_put;
	return 0;

err_put:
	put_device(&hml_device->dev);
err_class:
	class_destroy(hml_class);
err_region:
	unregister_chrdev_region(hml_devt, MAX_NICS);
	return err;
}

static void __exit hml_exit(void)
{
	/* Nobody has it open: open files hold the module. */
	cdev_device_del(&hml_device->cdev, &hml_device->dev);
	hml_engine_stop(hml_device);
	put_device(&hml_device->dev);
	class_destroy(hml_class);
	unregister_chrdev_region(hml_devt, MAX_NICS);
}

module_init(hml_init);
module_exit(hml_exit);

MODULE_DESCRIPTION("Software Hamlyn network interface");
MODULE_LICENSE("GPL");
