// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Notification: appending to an NQ from many places at once (H 2.6). */
#include "notify.h"

/*
 * Contended appenders retry. Each failure means that another appender succeeded,
 * so to fail this often takes as many other appends during this one. Giving up
 * is not silent: it counts as an overrun.
 */
#define RESERVE_TRIES	1000000

enum reserve_result {
	RESERVE_OK,		/* room for the notification */
	RESERVE_LAST,		/* the last entry: for the overrun report */
	RESERVE_FULL,		/* no room even for that */
};

/*
 * How many entries are in use at @cursor. Read the consumer index from the
 * application only if the NIC's own copy of it leaves no room: that way its cache
 * line moves once per lap, not once per message.
 */
static u32 entries_used(struct hml_nic *nic, struct hml_nq *nq, u32 cursor)
{
	const struct hamlyn_nq_control *control;
	u32 used = cursor - smp_load_acquire(&nq->consumer);	/* B4: before the entry is filled */
	u32 consumer;

	if (likely(used < nq->mask))
		return used;
	control = hml_ref_deref(&nic->port, nq->control);
	consumer = smp_load_acquire(&control->consumer);	/* B4: its reader is done */
	used = cursor - consumer;
	/* More than all: the owner wrote nonsense, and gets overruns. */
	if (used > nq->mask + 1)
		return nq->mask + 1;
	smp_store_release(&nq->consumer, consumer);	/* B4: hands that on to other senders */
	return used;
}

/*
 * Is the last entry an overrun report that has not been taken yet? It stands for
 * all losses that follow; a new one for each entry that is taken would fill the queue
 * with reports.
 */
static bool overrun_told(struct hml_nic *nic, struct hml_nq *nq, u32 cursor)
{
	const struct hamlyn_nq_entry *e = hml_ref_deref(&nic->port,
							nq->entries);

	e += (cursor - 1) & nq->mask;
	return smp_load_acquire(&e->sequence) == cursor &&	/* B3: before its flags are read */
	       READ_ONCE(e->flags) & HAMLYN_NQE_OVERRUN;
}

static enum reserve_result reserve(struct hml_nic *nic, struct hml_nq *nq,
				   u32 taker, u32 *position)
{
	u32 tries;

	for (tries = 0; tries < RESERVE_TRIES; tries++) {
		/* Before the consumer index; otherwise an empty queue may look full. */
		u32 cursor = hml_port_nq_cursor(nq, taker);	/* B4: before the consumer index */
		u32 used = entries_used(nic, nq, cursor);

		if (used == nq->mask && overrun_told(nic, nq, cursor))
			used++;
		if (unlikely(used > nq->mask)) {
			/* A stale cursor looks full, too: if it is one, look again. */
			if (cursor != hml_port_nq_cursor(nq, taker))
				continue;
			return RESERVE_FULL;
		}
		if (!hml_port_nq_take(nq, taker, cursor))
			continue;
		*position = cursor;
		return likely(used < nq->mask) ? RESERVE_OK : RESERVE_LAST;
	}
	return RESERVE_FULL;
}

static __always_inline void fill(struct hamlyn_nq_entry *e, const struct hamlyn_nq_entry *entry)
{
	WRITE_ONCE(e->data, entry->data);
	WRITE_ONCE(e->slot, entry->slot);
	WRITE_ONCE(e->index, entry->index);
	WRITE_ONCE(e->source, entry->source);
	WRITE_ONCE(e->length, entry->length);
	WRITE_ONCE(e->flags, entry->flags);
}

static void publish(struct hamlyn_nq_entry *e, u32 position,
		    const struct hamlyn_nq_entry *entry)
{
	fill(e, entry);
	hml_store_release_mb(&e->sequence, position + 1);	/* B3: after it; B5: before armed */
}

static const struct hamlyn_nq_entry overrun = {
	.slot = HAMLYN_NONE,
	.index = HAMLYN_NONE,
	.flags = HAMLYN_NQE_OVERRUN,
};

/*
 * struct reserved - what became of a notification
 * @result: which entry it got
 * @position: position of that entry
 * @others_lost: this one was lost, and others were lost after the entry for the report was
 *	taken and before it was filled. If one of them woke the sleeper, the sleeper may
 *	have found no entry yet, and gone back to sleep
 */
struct reserved {
	enum reserve_result result;
	u32 position;
	bool others_lost;
};

/*
 * @entry by value: a pointer would force the entry into memory even on the fast path,
 * which does not come here.
 */
static noinline struct reserved append_slowly(struct hml_nic *nic,
					      struct hml_nq *nq, u32 taker,
					      struct hamlyn_nq_entry entry)
{
	struct hamlyn_nq_entry *e = hml_ref_deref(&nic->port, nq->entries);
	struct hamlyn_nq_ring *ring = hml_ref_deref(&nic->port, nq->ring);
	struct reserved r = { .position = 0 };
	u32 lost = READ_ONCE(ring->lost), now;

	r.result = reserve(nic, nq, taker, &r.position);
	e += r.position & nq->mask;
	if (r.result == RESERVE_OK) {
		publish(e, r.position, &entry);
		return r;
	}
	if (r.result == RESERVE_LAST)
		publish(e, r.position, &overrun);
	else
		smp_mb();	/* B5: what was found full before armed is read */
	now = hml_atomic_add_return(&ring->lost, 1);	/* B5: lost before armed is read */
	r.others_lost = now != lost + 1;
	return r;
}

/* Like hml_packet_copy(). */
static __always_inline struct hamlyn_nq_entry
copy_entry(const struct hamlyn_nq_entry *e)
{
	return (struct hamlyn_nq_entry) {
		.data = e->data,
		.slot = e->slot,
		.index = e->index,
		.source = e->source,
		.length = e->length,
		.flags = e->flags,
		.sequence = e->sequence,
	};
}

/* Nearly always there is room, and no other appender competes for it. */
static __always_inline struct reserved append_at_once(struct hml_nic *nic,
						      struct hml_nq *nq,
						      struct hml_nq_place place,
						      const struct hamlyn_nq_entry *entry,
						      bool wake)
{
	u32 cursor = place.cursor;
	u32 used = cursor - smp_load_acquire(&nq->consumer);	/* B4: before the entry is filled */

	if (unlikely(used >= nq->mask ||
		     !hml_port_nq_take(nq, place.taker, cursor)))
		return append_slowly(nic, nq, place.taker, copy_entry(entry));
	fill(place.entry, entry);
	/* B3: after it; B5: before armed. A quiet one looks at the cursor behind it, too. */
	hml_port_nq_publish(wake ? place.taker : HML_TAKER_NONE, &place.entry->sequence,
			    cursor + 1);
	return (struct reserved) { RESERVE_OK, cursor, false };
}

/*
 * Publishing the entry ends in a full barrier (B5). The appender of a later entry may have
 * woken the sleeper before ours was there; the sleeper then saw nothing and went back to
 * sleep. So a quiet entry that is not the last has to wake it, too.
 */
static __always_inline bool append_one(struct hml_nic *nic, struct hml_nq *nq,
				       struct hml_nq_place place,
				       const struct hamlyn_nq_entry *entry,
				       bool wake, u32 *position)
{
	struct reserved r;

	hml_port_notify_enter(&nic->port);
	r = append_at_once(nic, nq, place, entry, wake);
	hml_port_notify_exit(&nic->port);
	*position = r.position;
	if (unlikely(!wake) && (r.result == RESERVE_FULL ||
				(hml_port_nq_seen(nq) == r.position + 1 &&
				 !r.others_lost)))
		return r.result == RESERVE_OK;
	/* Even if this one was lost: all entries that fill the queue may be quiet. */
	if (unlikely(READ_ONCE(nq->armed)))
		hml_port_nq_wake(&nic->port, nq);
	return r.result == RESERVE_OK;
}

/* Out of line, so that nothing has to be kept for it while nobody traces. */
static noinline bool append_traced(struct hml_nic *nic, struct hml_nq *nq,
				   struct hml_nq_place place,
				   struct hamlyn_nq_entry entry, bool wake)
{
	u32 position = 0;
	bool done = append_one(nic, nq, place, &entry, wake, &position);

	hml_port_trace_notify(nic, nq, &entry, position, !done);
	return done;
}

bool hml_nq_append(struct hml_nic *nic, struct hml_nq *nq,
		   struct hml_nq_place place,
		   const struct hamlyn_nq_entry *entry, bool wake)
{
	u32 position;

	if (hml_port_traces_notify())
		return append_traced(nic, nq, place, copy_entry(entry), wake);
	return append_one(nic, nq, place, entry, wake, &position);
}

bool hml_nq_ready(const struct hml_nic *nic, const struct hml_nq *nq,
		  u32 position)
{
	const struct hamlyn_nq_entry *e = hml_ref_deref(&nic->port,
							nq->entries);
	u32 behind = hml_port_nq_seen(nq) - position;

	/* So far behind that its sequence numbers may have wrapped; but not ahead. */
	if (behind > nq->mask + 1 && -behind > nq->mask + 1)
		return true;
	e += position & nq->mask;
	/* A later lap will do: the caller's position was overtaken. */
	return (s32)(smp_load_acquire(&e->sequence) -	/* B3: before its contents are read */
		     (position + 1)) >= 0;
}
