// SPDX-License-Identifier: GPL-2.0-only
/* Audit: the last packets that were discarded, by NIC and by slot owner. */
#include <linux/cred.h>
#include <linux/ktime.h>
#include <linux/log2.h>
#include <linux/mm.h>
#include <linux/overflow.h>
#include <linux/pid.h>
#include <linux/pid_namespace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uidgid.h>

#include "hml.h"
#include "trace.h"

#define READ_BATCH	16	/* entries copied with the writers kept out */
#define USER_BATCH	8	/* entries on the stack on their way out */

/**
 * struct hml_audit - ring of discarded packets
 * @lock: protects the rest. Raw: writers have preemption off, on PREEMPT_RT too
 * @next: sequence of the next entry
 * @mask: entries - 1; constant
 * @entries: entry s is at s & @mask; pid as in the initial pid namespace, uid
 *	as a kuid
 */
struct hml_audit {
	raw_spinlock_t lock;
	u64 next;
	u32 mask;
	struct hamlyn_audit_entry entries[];
};

/**
 * hml_audit_alloc() - an empty ring
 * @entries: how many it remembers; rounded up to a power of two
 *
 * Return: the ring, or NULL.
 */
struct hml_audit *hml_audit_alloc(u32 entries)
{
	struct hml_audit *audit;

	entries = roundup_pow_of_two(entries);
	audit = kvzalloc(struct_size(audit, entries, entries),
			 GFP_KERNEL_ACCOUNT);
	if (!audit)
		return NULL;
	raw_spin_lock_init(&audit->lock);
	audit->mask = entries - 1;
	return audit;
}

/* NULL is none. */
void hml_audit_free(struct hml_audit *audit)
{
	kvfree(audit);
}

/* ---- writing ---- */

static void add_entry(struct hml_audit *audit,
		      const struct hamlyn_audit_entry *entry)
{
	struct hamlyn_audit_entry *e;

	if (!audit)
		return;
	hml_lock(&audit->lock);
	e = &audit->entries[audit->next & audit->mask];
	*e = *entry;
	e->sequence = audit->next++;
	hml_unlock(&audit->lock);
}

/**
 * hml_port_rejected() - a packet was discarded
 * @nic: the NIC that did
 * @slot: the slot it came to, or NULL
 * @h: its header
 * @reason: enum hamlyn_reject
 * @sender: who sent it
 *
 * In a section, which the slot outlives, and its context the slot.
 */
void hml_port_rejected(struct hml_nic *nic, const struct hml_slot *slot,
		       const struct hamlyn_packet *h, int reason,
		       const struct hml_sender *sender)
{
	const struct hamlyn_audit_entry entry = {
		.time_ns = ktime_get_ns(),
		.offset = h->offset,
		.length = h->length,
		.slot = h->slot,
		.reason = reason,
		.source = h->source,
		.pid = sender->pid,
		.uid = sender->uid,
	};

	trace_hamlyn_reject(nic, h, reason, sender);
	add_entry(container_of(nic, struct hml_device, nic)->audit, &entry);
	if (slot)
		add_entry(container_of(slot, struct hml_slot_object,
				       core)->context->audit, &entry);
}

/* ---- reading ---- */

static u32 read_batch(struct hml_audit *audit, u64 *sequence,
		      struct hamlyn_audit_entry *entries, u32 count)
{
	u64 from = *sequence;
	u64 oldest;
	u32 n = 0;

	hml_lock(&audit->lock);
	oldest = audit->next > audit->mask ? audit->next - audit->mask - 1 : 0;
	from = max(from, oldest);
	while (n < count && from < audit->next) {
		hml_lock_step();
		entries[n++] = audit->entries[from++ & audit->mask];
	}
	hml_unlock(&audit->lock);
	*sequence = from;
	return n;
}

/**
 * hml_audit_read() - copy entries, as they are
 * @audit: the ring
 * @sequence: first entry of interest; where to go on. Entries that were
 *	overwritten are skipped
 * @entries: where to
 * @count: room there
 *
 * Pids are of the initial pid namespace, uids are kuids: the caller translates.
 *
 * Return: entries copied; fewer than @count if there are no more.
 */
u32 hml_audit_read(struct hml_audit *audit, u64 *sequence,
		   struct hamlyn_audit_entry *entries, u32 count)
{
	u32 done = 0;
	u32 n;

	do {
		n = read_batch(audit, sequence, entries + done,
			       min_t(u32, count - done, READ_BATCH));
		done += n;
	} while (n && done < count);
	return done;
}

/**
 * hml_audit_pid() - who sent what an entry is about, for a reader
 * @e: the entry, as hml_audit_read() has it
 * @ns: the reader's namespace
 *
 * Numbers are given anew: who began behind the packet did not send it.
 *
 * Return: the process' number there; 0 for one that has ended, or has none there.
 */
u32 hml_audit_pid(const struct hamlyn_audit_entry *e, struct pid_namespace *ns)
{
	const struct task_struct *task;
	struct pid *pid;
	u32 nr = 0;

	rcu_read_lock();
	pid = find_pid_ns(e->pid, &init_pid_ns);
	task = pid_task(pid, PIDTYPE_TGID);
	if (task && READ_ONCE(task->start_time) <= e->time_ns)
		nr = pid_nr_ns(pid, ns);
	rcu_read_unlock();
	return nr;
}

/* As the caller may see it. */
static void translate(struct hamlyn_audit_entry *e)
{
	e->pid = hml_audit_pid(e, task_active_pid_ns(current));
	e->uid = from_kuid_munged(current_user_ns(), KUIDT_INIT(e->uid));
}

static u32 read_translated(struct hml_audit *audit, u64 *sequence,
			   struct hamlyn_audit_entry *entries, u32 count)
{
	u32 n = hml_audit_read(audit, sequence, entries, count);
	u32 i;

	for (i = 0; i < n; i++)
		translate(&entries[i]);
	return n;
}

int hml_audit_get(struct hml_context *c, struct hamlyn_audit *arg)
{
	struct hamlyn_audit_entry __user *user = u64_to_user_ptr(arg->entries);
	struct hamlyn_audit_entry batch[USER_BATCH];
	u64 sequence = arg->sequence;
	u32 done = 0;
	u32 room;

	/* Who fills the ring as fast as we read must not keep us here. */
	room = min_t(u32, arg->count, HML_AUDIT_CONTEXT);
	while (done < room) {
		u32 n = read_translated(c->audit, &sequence, batch,
					min_t(u32, room - done, USER_BATCH));

		if (!n)
			break;
		if (copy_to_user(user + done, batch, n * sizeof(*batch)))
			return -EFAULT;
		done += n;
	}
	arg->count = done;
	arg->sequence = sequence;
	return 0;
}
