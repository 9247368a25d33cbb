// SPDX-License-Identifier: GPL-2.0-only
/* Module: parameters, the NICs there are from the start. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/mm.h>

#include "hml.h"

#ifdef CONFIG_PROVE_LOCKING
DEFINE_PER_CPU(struct hml_held, hml_held);
#endif

static char *engine = "poll";
module_param(engine, charp, 0444);
MODULE_PARM_DESC(engine, "poll (kernel threads; default) or inline (the sender)");

static unsigned int engines = 1;
module_param(engines, uint, 0444);
MODULE_PARM_DESC(engines, "polling threads of a NIC, 1 to 16 (default 1)");

static char *engine_cpus = "";
module_param(engine_cpus, charp, 0444);
MODULE_PARM_DESC(engine_cpus, "processors of polling threads, as 2-3,8, in turn (default any)");

static unsigned int nics = 1;
module_param(nics, uint, 0444);
MODULE_PARM_DESC(nics, "NICs to begin with, 0 to 256 (default 1)");

/* Of these, and of the limits of users, NICs have their own by netlink: what they begin with. */
static unsigned int idle_us = 50;
module_param(idle_us, uint, 0444);
MODULE_PARM_DESC(idle_us, "us without work until a terminus is no longer polled (50)");

static unsigned int kick_window_us = 1000;
module_param(kick_window_us, uint, 0444);
MODULE_PARM_DESC(kick_window_us, "us between doorbells that make the engine poll (1000)");

static unsigned int guesses = HML_GUARD_RATE;
module_param(guesses, uint, 0444);
MODULE_PARM_DESC(guesses, "wrong keys a second that a user may present; 0: no limit (10000)");

static unsigned int packet_size = 16384;
module_param(packet_size, uint, 0444);
MODULE_PARM_DESC(packet_size, "most payload bytes of a packet, 1024 to 65536 (default 16384)");

static unsigned int max_slots = 65536;
module_param(max_slots, uint, 0444);
MODULE_PARM_DESC(max_slots, "slots of a NIC, 1 to 1048576 (default 65536)");

static unsigned int mem_limit_mb;
module_param(mem_limit_mb, uint, 0444);
MODULE_PARM_DESC(mem_limit_mb, "kernel memory of all users, in MiB (a quarter of the memory)");

static unsigned int user_mem_limit_mb;
module_param(user_mem_limit_mb, uint, 0444);
MODULE_PARM_DESC(user_mem_limit_mb, "kernel memory of one user, in MiB (half of that)");

static unsigned int wired_limit_mb;
module_param(wired_limit_mb, uint, 0444);
MODULE_PARM_DESC(wired_limit_mb, "memory that all users may wire, in MiB (half the memory)");

static unsigned int user_wired_limit_mb;
module_param(user_wired_limit_mb, uint, 0444);
MODULE_PARM_DESC(user_wired_limit_mb, "memory that one user may wire, in MiB (half the memory)");

static unsigned int user_max_slots;
module_param(user_max_slots, uint, 0444);
MODULE_PARM_DESC(user_max_slots, "slots of one user (half of max_slots)");

static unsigned int user_max_termini;
module_param(user_max_termini, uint, 0444);
MODULE_PARM_DESC(user_max_termini, "termini of one user (1024)");

static unsigned long mb_to_pages(unsigned long mb)
{
	return mb << (20 - PAGE_SHIFT);
}

/* Kernel memory of all users of all NICs. */
unsigned long hml_max_pages(void)
{
	return mem_limit_mb ? mb_to_pages(mem_limit_mb) : totalram_pages() / 4;
}

/* Memory that all users of all NICs may wire. */
unsigned long hml_max_wired(void)
{
	return wired_limit_mb ? mb_to_pages(wired_limit_mb) :
				totalram_pages() / 2;
}

/* Index and host are left open; what is 0 gets its default from nic.c. */
static int default_attr(struct hml_nic_attr *attr)
{
	*attr = (struct hml_nic_attr) {
		.index = HAMLYN_NONE,
		.host = HAMLYN_NONE,
		.engines = engines,
		.idle_us = idle_us,
		.kick_window_us = kick_window_us,
		.packet_size = packet_size,
		.max_slots = max_slots,
		.guesses = guesses,
		.max_pages = mb_to_pages(mem_limit_mb),
		.user = {
			.pages = mb_to_pages(user_mem_limit_mb),
			.wired = mb_to_pages(user_wired_limit_mb),
			.slots = user_max_slots,
			.termini = user_max_termini,
		},
	};
	if (sysfs_streq(engine, "inline"))
		attr->engine_mode = HAMLYN_ENGINE_INLINE;
	else if (sysfs_streq(engine, "poll"))
		attr->engine_mode = HAMLYN_ENGINE_POLL;
	else
		return -EINVAL;
	return 0;
}

/**
 * hml_nic_default_attr() - what the module's parameters make of a new NIC
 * @attr: out: the properties
 */
void hml_nic_default_attr(struct hml_nic_attr *attr)
{
	/* It was checked when the module was loaded. */
	default_attr(attr);
}

static int check_params(void)
{
	struct hml_nic_attr attr;
	int err = default_attr(&attr);

	if (err)
		pr_err("engine=%s: must be poll or inline\n", engine);
	if (!engines || engines > HML_MAX_ENGINES) {
		pr_err("engines=%u: must be 1 to %u\n", engines,
		       HML_MAX_ENGINES);
		err = -EINVAL;
	}
	if (hml_placement_init(engine_cpus)) {
		pr_err("engine_cpus=%s: must be a list of processors\n",
		       engine_cpus);
		err = -EINVAL;
	}
	if (nics > HML_MAX_NICS) {
		pr_err("nics=%u: must be 0 to %u\n", nics,
		       HML_MAX_NICS);
		err = -EINVAL;
	}
	if (packet_size < HAMLYN_MIN_PACKET ||
	    packet_size > HAMLYN_MAX_PACKET) {
		pr_err("packet_size=%u: must be %u to %u\n",
		       packet_size, HAMLYN_MIN_PACKET, HAMLYN_MAX_PACKET);
		err = -EINVAL;
	}
	if (!max_slots || max_slots > HML_MAX_SLOTS) {
		pr_err("max_slots=%u: must be 1 to %u\n", max_slots,
		       HML_MAX_SLOTS);
		err = -EINVAL;
	}
	return err;
}

/*
 * Whoever opened a NIC that could not be made, or lists NICs, would be left in a module that
 * goes: from here on it stays, and an administrator may make those that are missing.
 */
static void __init create_nics(void)
{
	struct hml_nic_attr attr;
	struct hml_device *d;
	unsigned int i;

	hml_nic_default_attr(&attr);
	for (i = 0; i < nics; i++) {
		d = hml_nic_create(&attr, &init_net, NULL, NULL);
		if (!IS_ERR(d)) {
			put_device(&d->dev);
			continue;
		}
		pr_err("%u of %u NICs made: %ld\n", i, nics,
		       PTR_ERR(d));
		return;
	}
}

static int __init hml_init(void)
{
	int err;

	err = check_params();
	if (err)
		return err;
	hml_loop_init();
	err = hml_tcp_init();
	if (err)
		return err;
	err = hml_nqs_init();
	if (err)
		goto err_tcp;
	err = hml_nics_init();
	if (err)
		goto err_nqs;
	err = hml_netlink_init();
	if (err)
		goto err_nics;
	create_nics();
	return 0;

err_nics:
	hml_nics_exit();
	hml_loans_exit();
	hml_watch_exit();
err_nqs:
	hml_nqs_exit();
err_tcp:
	hml_tcp_exit();
	return err;
}

static void __exit hml_exit(void)
{
	/* Nobody makes NICs any more, and nobody has one open: open files hold
	 * the module.
	 */
	hml_netlink_exit();
	hml_memory_exit();
	hml_nics_exit();
	hml_loans_exit();
	hml_watch_exit();
	hml_nqs_exit();
	hml_tcp_exit();
}

module_init(hml_init);
module_exit(hml_exit);

MODULE_DESCRIPTION("Software Hamlyn network interface");
MODULE_LICENSE("GPL");
