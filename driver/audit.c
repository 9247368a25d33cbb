// SPDX-License-Identifier: GPL-2.0-only
/* Audit: the last packets that were discarded, by NIC and by slot owner. */
#include <linux/cred.h>
#include <linux/hash.h>
#include <linux/ktime.h>
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

/* Whoever has a key has the first half, and users that have none a group of shares. */
#define KEYLESS_BITS	2
#define SHARES		(1 + BIT(KEYLESS_BITS))

/**
 * struct share - a ring of its own in an audit
 * @count: entries that were ever written here
 * @first: where it begins; constant
 * @mask: its length - 1; constant
 */
struct share {
	u64 count;
	u32 first;
	u32 mask;
};

/**
 * struct hml_audit - discarded packets, in shares
 * @lock: protects the rest. Raw: writers have preemption off, on PREEMPT_RT too
 * @next: sequence of the next entry
 * @shares: sending without a key is open to everybody, at any rate, and must not push out
 *	what was told of others
 * @entries: entry number n of a share is at first + (n & mask); pid as in the initial
 *	pid namespace, uid as a kuid
 */
struct hml_audit {
	raw_spinlock_t lock;
	u64 next;
	struct share shares[SHARES];
	struct hamlyn_audit_entry entries[];
};

static void divide(struct hml_audit *audit, u32 entries)
{
	u32 keyless = entries / 2 >> KEYLESS_BITS;
	u32 i;

	audit->shares[0].mask = entries / 2 - 1;
	for (i = 1; i < SHARES; i++) {
		audit->shares[i].first = entries / 2 + (i - 1) * keyless;
		audit->shares[i].mask = keyless - 1;
	}
}

/**
 * hml_audit_alloc() - an empty audit
 * @entries: how many it remembers; a power of two
 *
 * Return: the audit, or NULL.
 */
struct hml_audit *hml_audit_alloc(u32 entries)
{
	struct hml_audit *audit;

	audit = kvzalloc(struct_size(audit, entries, entries),
			 GFP_KERNEL_ACCOUNT);
	if (!audit)
		return NULL;
	raw_spin_lock_init(&audit->lock);
	divide(audit, entries);
	return audit;
}

/* NULL is none. */
void hml_audit_free(struct hml_audit *audit)
{
	kvfree(audit);
}

/* ---- writing ---- */

/* The number @n that was ever written to a share. */
static struct hamlyn_audit_entry *entry_at(struct hml_audit *audit,
					   const struct share *s, u64 n)
{
	return &audit->entries[s->first + (n & s->mask)];
}

static void add_entry(struct hml_audit *audit, u32 share,
		      const struct hamlyn_audit_entry *entry)
{
	struct hamlyn_audit_entry *e;
	struct share *s;

	if (!audit)
		return;
	hml_lock(&audit->lock);
	s = &audit->shares[share];
	e = entry_at(audit, s, s->count++);
	*e = *entry;
	e->sequence = audit->next++;
	hml_unlock(&audit->lock);
}

/*
 * Did the sender have a key? What is wrong beside it is found out after it, but for the
 * paranoid modes, where the key comes last.
 */
static bool had_key(const struct hml_slot *slot, const struct hamlyn_packet *h,
		    int reason)
{
	if (!slot || reason == HAMLYN_REJECT_SLOT ||
	    reason == HAMLYN_REJECT_KEY || reason == HAMLYN_REJECT_TICKET)
		return false;
	return slot->mode == HAMLYN_SLOT_NORMAL ||
	       reason == HAMLYN_REJECT_ONE_SHOT ||
	       h->flags & HAMLYN_PACKET_TICKET;
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

	u32 share = had_key(slot, h, reason) ?
		    0 : 1 + hash_32(sender->uid, KEYLESS_BITS);

	trace_hamlyn_reject(nic, h, reason, sender);
	add_entry(container_of(nic, struct hml_device, nic)->audit, share,
		  &entry);
	if (slot)
		add_entry(container_of(slot, struct hml_slot_object,
				       core)->context->audit, share, &entry);
}

/* ---- reading ---- */

/* The number in a share of the first entry from @from on. */
static u64 first_from(struct hml_audit *audit, const struct share *s, u64 from)
{
	u64 high = s->count;
	u64 low = high > s->mask ? high - s->mask - 1 : 0;

	while (low < high) {
		u64 middle = low + (high - low) / 2;

		hml_lock_step();
		if (entry_at(audit, s, middle)->sequence < from)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* The earliest of those that are next in their shares, of which it is the next no more. */
static const struct hamlyn_audit_entry *earliest(struct hml_audit *audit,
						 u64 *next)
{
	const struct hamlyn_audit_entry *best = NULL;
	u32 i, of = 0;

	for (i = 0; i < SHARES; i++) {
		const struct share *s = &audit->shares[i];
		const struct hamlyn_audit_entry *e;

		if (next[i] >= s->count)
			continue;
		e = entry_at(audit, s, next[i]);
		if (best && best->sequence < e->sequence)
			continue;
		best = e;
		of = i;
	}
	if (best)
		next[of]++;
	return best;
}

static u32 read_batch(struct hml_audit *audit, u64 *sequence,
		      struct hamlyn_audit_entry *entries, u32 count)
{
	const struct hamlyn_audit_entry *e;
	u64 next[SHARES];
	u32 n = 0;
	u32 i;

	hml_lock(&audit->lock);
	for (i = 0; i < SHARES; i++)
		next[i] = first_from(audit, &audit->shares[i], *sequence);
	while (n < count && (e = earliest(audit, next))) {
		hml_lock_step();
		entries[n++] = *e;
	}
	hml_unlock(&audit->lock);
	if (n)
		*sequence = entries[n - 1].sequence + 1;
	return n;
}

/**
 * hml_audit_read() - copy entries, as they are
 * @audit: the audit
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
 * Numbers are given anew: a process that began after the packet did not send it.
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

	/* A sender that fills it as fast as we read must not keep us here. */
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
