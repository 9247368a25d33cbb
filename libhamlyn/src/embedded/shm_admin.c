// SPDX-License-Identifier: MIT
/* The embedded device as a whole: properties, counters, state, audit. */
#include "embedded/shm.h"

int h__shm_query(struct h_dev *dev, struct hamlyn_query *q)
{
	struct shm_dev *shm = shm_of(dev);

	*q = (struct hamlyn_query) {
		.size = sizeof(*q),
		.abi_version = HAMLYN_ABI_VERSION,
		.host = shm->nic.host,
		.engine_mode = HAMLYN_ENGINE_INLINE,
		.packet_size = shm->nic.packet_size,
		.max_slots = SHM_MAX_SLOTS,
		.max_nq_entries = SHM_MAX_NQ_ENTRIES,
		.max_wq_entries = SHM_MAX_WQ_ENTRIES,
		.max_entry_size = SHM_MAX_ENTRY_SIZE,
		.max_area = (shm->pages - shm->data_first) * SHM_PAGE,
		.max_message = HAMLYN_MAX_MESSAGE,
		.state = hml_link_state(&shm->nic),
		.max_tags = HAMLYN_MAX_TAGS,
		.max_tickets = HAMLYN_MAX_TICKETS,
	};
	memcpy(q->fabric_id, shm->seg->fabric, sizeof(q->fabric_id));
	return 0;
}

/* ---- counters ---- */

_Static_assert(sizeof(struct hml_stats) % sizeof(u64) == 0, "only counters");

/*
 * Not for the thread sanitizer: each counter has one writer, which counts plainly, as a locked or a
 * volatile one costs each message instructions; whoever reads gets some value that was there.
 */
__attribute__((no_sanitize("thread")))
void h__shm_stats_add(struct hml_stats *sum, const struct hml_stats *s)
{
	const u64 *from = (const u64 *)s;
	u64 *to = (u64 *)sum;
	size_t i;

	for (i = 0; i < sizeof(*s) / sizeof(u64); i++)
		to[i] += READ_ONCE(from[i]);
}

/* As the kernel does: a sender does not learn what became of its packets. */
static void tell_sent(struct hamlyn_stats *to, const struct hml_stats *from)
{
	to->messages = READ_ONCE(from->messages);
	to->packets = READ_ONCE(from->packets);
	to->bytes = READ_ONCE(from->bytes);
	to->failed = READ_ONCE(from->failed);
}

static void tell_all(const struct shm_segment *seg, struct hamlyn_stats *to)
{
	struct hml_stats sum = {};
	u32 i;

	h__shm_stats_add(&sum, &seg->retired);
	for (i = 0; i < SHM_MAX_TERMINI; i++)
		if (READ_ONCE(seg->termini[i].owner))
			h__shm_stats_add(&sum, &seg->termini[i].stats);
	tell_sent(to, &sum);
	to->notifications = sum.notifications;
	to->overruns = sum.overruns;
	for (i = 0; i < HAMLYN_REJECT_REASONS; i++)
		to->rejects[i] = sum.rejects[i];
}

int h__shm_stats(struct h_dev *dev, struct hamlyn_stats *s)
{
	struct shm_segment *seg = shm_of(dev)->seg;
	u32 i;

	if (s->kind == HAMLYN_STATS_TERMINUS) {
		tell_sent(s, &seg->termini[s->id].stats);
	} else if (s->kind == HAMLYN_STATS_SLOT) {
		const struct hml_slot *slot = &seg->slots[s->id].slot;

		for (i = 0; i < HAMLYN_REJECT_REASONS; i++)
			s->rejects[i] = READ_ONCE(slot->rejects[i]);
		s->overruns = READ_ONCE(slot->overruns);
	} else {
		tell_all(seg, s);
	}
	return 0;
}

/* ---- up and down (H 2.8) ---- */

/* Segment locked, and unlocked when it returns. */
static int set_link(struct h_dev *dev, const struct hamlyn_nic_set *set)
{
	struct shm_dev *shm = shm_of(dev);
	struct shm_segment *seg = shm->seg;
	bool goes = set->flags & HAMLYN_NIC_SET_STATE &&
		    set->state == HAMLYN_NIC_DOWN && !seg->link.down;
	bool locked = true;
	int err = 0;

	/* First: if we die before the rest, watches tell all the same. */
	if (goes)
		WRITE_ONCE(seg->downs, seg->downs + 1);
	hml_link_set(&shm->nic, set);
	/* What is landing has landed when they are told. */
	if (goes)
		err = h__shm_quiesce_long(dev, &locked);
	if (goes && locked)
		h__shm_tell(dev);
	if (locked)
		h__shm_unlock(dev);
	return err;
}

int h__shm_nic_set(struct h_dev *dev, const struct hamlyn_nic_set *set)
{
	int err;

	if (set->flags & ~(HAMLYN_NIC_SET_STATE | HAMLYN_NIC_SET_WATCHDOG |
			   HAMLYN_NIC_FEED) ||
	    set->state > HAMLYN_NIC_DOWN ||
	    set->watchdog_ms > HAMLYN_MAX_WATCHDOG_MS)
		return h__refuse(dev, -EINVAL,
				 "flags %#x, state %u or watchdog_ms %u is none; at most %u ms",
				 set->flags, set->state, set->watchdog_ms,
				 HAMLYN_MAX_WATCHDOG_MS);
	err = h__shm_lock(dev);
	if (err)
		return err;
	return set_link(dev, set);
}

/* ---- audit ---- */

#define WRITERS_NS	1000000ll

/*
 * Called from the NIC, or with the segment locked. Whoever finds the place
 * taken, by somebody slow, dead or a lap ahead, gives up: a gap tells.
 */
void h__shm_audit_add(struct hml_nic *nic, const struct hml_slot *slot,
		      struct hamlyn_audit_entry e)
{
	struct shm_segment *seg = (struct shm_segment *)nic->port.base;
	const struct shm_slot *s = (const struct shm_slot *)slot;
	u64 sequence = __atomic_fetch_add(&seg->audit_next, 1,
					  __ATOMIC_RELAXED);
	struct shm_audit_entry *a = &seg->audit[sequence % SHM_AUDIT_ENTRIES];
	u64 word = READ_ONCE(a->word);

	e.time_ns = hml_port_now_ns(&nic->port);
	/* SHM_AUDIT_BUSY is more than any. */
	if (word > sequence ||
	    !__atomic_compare_exchange_n(&a->word, &word,
					 SHM_AUDIT_BUSY | sequence, false,
					 __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
		return;
	__atomic_thread_fence(__ATOMIC_RELEASE);		/* B12 */
	a->born = s ? READ_ONCE(s->born) : 0;
	e.sequence = sequence;
	a->e = e;
	smp_store_release(&a->word, sequence + 1);		/* B12 */
}

/* Of a slot that we have, and had then? */
static bool ours(const struct shm_dev *shm, const struct shm_audit_entry *a)
{
	const struct shm_slot *s;

	if (a->e.slot >= SHM_MAX_SLOTS)
		return false;
	s = &shm->seg->slots[a->e.slot];
	return s->owner == shm->attach + 1 && s->born == a->born;
}

/* Takes a copy of what is in a place that may be written to meanwhile. */
static bool copy_entry(const struct shm_audit_entry *a, u64 sequence,
		       struct shm_audit_entry *copy)
{
	if (smp_load_acquire(&a->word) != sequence + 1)		/* B12 */
		return false;
	memcpy(copy, a, sizeof(*copy));
	__atomic_thread_fence(__ATOMIC_ACQUIRE);		/* B12 */
	return READ_ONCE(a->word) == sequence + 1;
}

/*
 * Wait for those who are filling places. Then, whoever had begun before and did
 * not end is dead; who began since is not. A peer that is stopped makes a gap.
 */
static void wait_for_writers(struct h_dev *dev)
{
	struct shm_segment *seg = shm_of(dev)->seg;
	u64 was[SHM_AUDIT_ENTRIES];
	u32 i;

	for (i = 0; i < SHM_AUDIT_ENTRIES; i++)
		was[i] = READ_ONCE(seg->audit[i].word);
	if (h__shm_quiesce(dev, WRITERS_NS))
		return;
	for (i = 0; i < SHM_AUDIT_ENTRIES; i++)
		if (was[i] & SHM_AUDIT_BUSY)
			__atomic_compare_exchange_n(&seg->audit[i].word,
						    &was[i], 0, false,
						    __ATOMIC_RELAXED,
						    __ATOMIC_RELAXED);
}

/* Segment locked. */
static int read_audit(struct h_dev *dev, struct hamlyn_audit_entry *entries,
		      u32 count, u64 *sequence)
{
	struct shm_dev *shm = shm_of(dev);
	u64 sure = READ_ONCE(shm->seg->audit_next), i = *sequence, end;
	struct shm_audit_entry copy;
	u32 n = 0;

	wait_for_writers(dev);
	end = READ_ONCE(shm->seg->audit_next);
	if (end > SHM_AUDIT_ENTRIES && i < end - SHM_AUDIT_ENTRIES)
		i = end - SHM_AUDIT_ENTRIES;
	for (; i < end && n < count; i++) {
		const struct shm_audit_entry *a =
			&shm->seg->audit[i % SHM_AUDIT_ENTRIES];

		if (copy_entry(a, i, &copy)) {
			if (ours(shm, &copy))
				entries[n++] = copy.e;
		} else if (i >= sure &&
			   (READ_ONCE(a->word) & ~SHM_AUDIT_BUSY) <= i) {
			break;	/* still being filled: next time */
		}
	}
	if (i > *sequence)
		*sequence = i;
	return (int)n;
}

int h__shm_audit(struct h_dev *dev, struct hamlyn_audit_entry *entries,
		 uint32_t count, uint64_t *sequence)
{
	int ret = h__shm_lock(dev);

	if (ret)
		return ret;
	ret = read_audit(dev, entries, count, sequence);
	h__shm_unlock(dev);
	return ret;
}
