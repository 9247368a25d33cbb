// SPDX-License-Identifier: MIT
/*
 * Sending on the embedded device: the NIC core runs in the sender. It is
 * compiled into this file, so that the compiler sees the whole path.
 */
#include <linux/futex.h>
#include <limits.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm.h"

#include "guard.c"
#include "link.c"
#include "notify.c"
#include "rx.c"
#include "tx.c"

#define SPINS_BEFORE_YIELD	256

void hml_port_nq_wake(const struct hml_port *port, struct hml_nq *nq)
{
	(void)port;
	/* The one who clears it wakes: one system call for each sleep. */
	if (__atomic_exchange_n(&nq->armed, 0, __ATOMIC_ACQ_REL))
		syscall(SYS_futex, &nq->armed, FUTEX_WAKE, INT_MAX, NULL, NULL,
			0);
}

/*
 * Here, and by values: a pointer to the header that leaves this file would keep
 * all headers in memory, also those of good packets, and out of registers.
 */
void hml_port_rejected(struct hml_nic *nic, const struct hml_slot *slot,
		       const struct hamlyn_packet *h, int reason,
		       const struct hml_sender *sender)
{
	struct hamlyn_audit_entry e = {
		.offset = h->offset,
		.length = h->length,
		.slot = h->slot,
		.reason = (u32)reason,
		.source = h->source,
		.pid = sender->pid,
		.uid = sender->uid,
	};

	h__shm_audit_add(nic, slot, e);
}

/* Full barrier: whoever replaced a key sees us, or we see the new key (B8). */
u32 h__shm_hold(struct shm_terminus *r)
{
	unsigned int spins = 0;
	u32 hold = READ_ONCE(r->hold);

	for (;;) {
		if (likely(!(hold & 1))) {
			u32 seen = hml_atomic_cmpxchg(&r->hold, hold, hold + 1);

			if (likely(seen == hold))
				return hold + 1;
			hold = seen;
			continue;
		}
		if (++spins % SPINS_BEFORE_YIELD == 0)
			sched_yield();
		hold = READ_ONCE(r->hold);
	}
}

void h__shm_release(struct shm_terminus *r, u32 hold)
{
	smp_store_release(&r->hold, hold + 1);			/* B8 */
}

/*
 * Between two packets of a message: who replaced a key need not wait for the
 * rest of it, for the next packet sees the new one. Still held.
 */
static u32 between_packets(struct shm_terminus *r, u32 hold)
{
	smp_store_release(&r->hold, hold + 2);			/* B8 */
	smp_mb();						/* B8 */
	return hold + 2;
}

static void post_status(struct h_terminus *t, u32 handle, int err)
{
	s32 *status = (s32 *)(t->status + 1) + (handle & t->mask);

	WRITE_ONCE(t->producer, handle + 1);
	if (*status != err)
		smp_store_release(status, err);			/* B6 */
	if (err)
		WRITE_ONCE(t->status->failed, t->status->failed + 1);
	smp_store_release(&t->status->completed, t->producer);	/* B6 */
}

/* Terminus held: is it to wait, because it guessed keys? */
static inline bool held_back(struct shm_sender *s)
{
	struct hml_guard *guard = &s->core.sender.guard;

	return unlikely(guard->until) &&
	       hml_guard_paused(&s->shm->nic, guard);
}

static int64_t transmit(struct h_terminus *t, struct hamlyn_trb *trb,
			const void *meta, const void *tail, u64 tail_size)
{
	struct shm_sender *s = t->priv;
	struct hml_terminus *core = &s->core;
	struct hml_nic *nic = &s->shm->nic;
	u32 hold = h__shm_hold(s->record);
	int64_t handle = t->producer;
	int err;

	if (unlikely(held_back(s))) {
		h__shm_release(s->record, hold);
		return -EAGAIN;
	}
	err = hml_tx_begin(nic, core, trb, meta, tail, tail_size);

	if (likely(!err)) {
		for (;;) {
			hml_tx_packet(nic, core);
			if (!core->busy)
				break;
			hold = between_packets(s->record, hold);
		}
	} else {
		core->sender.stats->failed++;
	}
	post_status(t, (u32)handle, err);
	h__shm_release(s->record, hold);
	return handle;
}

/*
 * The common case, all of it in one piece of code: a short message from
 * anywhere. What does not fit here goes the general way.
 */
__attribute__((flatten))
int64_t h__shm_send_short(struct h_terminus *t, const struct h_ticket *k,
			  const void *data, size_t length, const void *meta,
			  size_t meta_length)
{
	struct shm_sender *s = t->priv;
	struct hamlyn_trb trb = {
		.host = k->host,
		.slot = k->slot,
		.key = k->key,
		.offset = k->base,
		.length = length,
		.meta_index = k->meta_index,
		.meta_length = (u16)meta_length,
	};
	u32 hold = h__shm_hold(s->record);
	int64_t handle = t->producer;
	int err;

	if (unlikely(held_back(s))) {
		h__shm_release(s->record, hold);
		return -EAGAIN;
	}
	err = hml_tx_flat(&s->shm->nic, &s->core, &trb, meta, data);

	if (unlikely(err))
		s->core.sender.stats->failed++;
	post_status(t, (u32)handle, err);
	h__shm_release(s->record, hold);
	return handle;
}

int64_t h__shm_send(struct h_terminus *t, const struct h_msg *m)
{
	struct hamlyn_fragment f[HAMLYN_MAX_FRAGMENTS];
	unsigned char small[4096];
	struct hamlyn_trb trb;
	uint64_t length = m->length;
	size_t room = h__msg_room(t, m);
	int i, n;

	if (m->iov) {
		for (i = 0, length = 0; i < m->iovcnt; i++)
			length += m->iov[i].iov_len;
	}
	h__msg_to_trb(m, length, &trb);
	/* Direct I/O: from any memory. */
	if (!m->iov && length <= room)
		return transmit(t, &trb, m->meta, m->data, length);
	if (length <= room) {
		for (i = 0, n = 0; i < m->iovcnt; i++) {
			memcpy(small + n, m->iov[i].iov_base,
			       m->iov[i].iov_len);
			n += (int)m->iov[i].iov_len;
		}
		return transmit(t, &trb, m->meta, small, length);
	}
	n = h__msg_fragments(t, m, f);
	if (n < 0)
		return n;
	if ((size_t)n * sizeof(f[0]) > room)
		return -EMSGSIZE;
	trb.fragments = (u16)n;
	return transmit(t, &trb, m->meta, f, (size_t)n * sizeof(f[0]));
}
