/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Objects of the driver.
 *
 * Ownership: the open file (context) owns areas, NQs, slots and termini. A
 * slot uses its areas and NQ, a terminus the areas bound to its tags; users
 * are counted, and what is used cannot be removed. Lock order and the life
 * cycle: Documentation/locking.rst.
 */
#ifndef HML_H
#define HML_H

#ifndef CONFIG_64BIT
#error "hamlyn needs a 64-bit kernel"
#endif
/* As in Kconfig, for those who build the module by itself. */
#if defined(CONFIG_ARCH_HAS_CPU_CACHE_ALIASING) || defined(CONFIG_MIPS) || \
	defined(CONFIG_PARISC) || defined(CONFIG_SPARC)
#error "hamlyn needs caches that do not alias"
#endif

#include <linux/cdev.h>
#include <linux/completion.h>
#include <linux/device.h>
#include <linux/list.h>
#include <linux/lockdep.h>
#include <linux/log2.h>
#include <linux/mutex.h>
#include <linux/pid.h>
#include <linux/rbtree.h>
#include <linux/refcount.h>
#include <linux/sched/user.h>
#include <linux/sizes.h>
#include <linux/spinlock.h>
#include <linux/timerqueue.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/net_namespace.h>

#include <linux/hamlyn_netlink.h>

#include "core/guard.h"
#include "core/link.h"
#include "core/nic.h"
#include "core/notify.h"
#include "core/rx.h"
#include "core/sched.h"
#include "core/tx.h"
#include "audit.h"
#include "chardev.h"
#include "context.h"
#include "doorbell.h"
#include "engine/datapath.h"
#include "engine/engine.h"
#include "engine/grace.h"
#include "engine/loan.h"
#include "engine/placement.h"
#include "explain.h"
#include "fabric/adversary.h"
#include "fabric/fabric.h"
#include "fabric/loop.h"
#include "fabric/tcp.h"
#include "main.h"
#include "netlink/event.h"
#include "nic.h"
#include "object/area.h"
#include "object/memory.h"
#include "object/mmap.h"
#include "object/name.h"
#include "object/nq.h"
#include "object/pin.h"
#include "object/slot.h"
#include "object/tag.h"
#include "object/terminus.h"
#include "object/ticket.h"
#include "watch/watch.h"
#include "stats.h"
#include "user/charge.h"
#include "user/user.h"
#include "shared_lock.h"

#define HML_MAX_NQ_ENTRIES	SZ_1M
#define HML_MAX_WQ_ENTRIES	4096
#define HML_MAX_ENTRY_SIZE	4096
#define HML_MIN_ENTRY_SIZE	128
#define HML_MAX_AREA		(64ULL * SZ_1G)
#define HML_MAX_IDS		65535
#define HML_PASS_BUDGET		16	/* packets of one terminus in one pass */
#define HML_KICK_BUDGET		64	/* and in one KICK */
#define HML_STALLED_NS		NSEC_PER_SEC	/* until a stalled message is given up */
#define HML_REFUSED_NS		(10 * NSEC_PER_SEC)	/* in sum, if some is taken in between */
#define HML_KICKS_TO_WAKE	4	/* doorbells in a row that make us poll */
#define HML_MAX_NICS		256
#define HML_MAX_ENGINES		16
#define HML_MAX_SLOTS		SZ_1M
#define HML_PACKETS_PER_XMIT	4	/* with an adversary */
#define HML_USER_WATCHES	65536	/* of a user, or of a container */
#define HML_AUDIT_NIC		1024	/* discarded packets remembered by a NIC */
#define HML_AUDIT_CONTEXT	64	/* and by a context, of its own slots */

#endif /* HML_H */
