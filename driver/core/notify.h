/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Entries of NQs: appended by NICs (notify.c). Barrier pairs Bn: Documentation/barriers.rst. */
#ifndef HML_CORE_NOTIFY_H
#define HML_CORE_NOTIFY_H

#include "nic.h"

#ifndef HML_PORT_NQ
#define HML_TAKER_NONE		0
#define hml_port_taker(sender)	((void)(sender), HML_TAKER_NONE)
#define hml_port_nq_cursor(nq, taker) \
	((void)(taker), smp_load_acquire(&(nq)->cursor))	/* B4 */
#define hml_port_nq_seen(nq)	READ_ONCE((nq)->cursor)
#define hml_port_nq_take(nq, taker, at) ({				\
	u32 at_ = (at);							\
									\
	(void)(taker);							\
	hml_atomic_cmpxchg(&(nq)->cursor, at_, at_ + 1) == at_;	\
})
#define hml_port_nq_publish(taker, p, v) do {				\
	(void)(taker);							\
	hml_store_release_mb(p, v);					\
} while (0)
#endif

/**
 * struct hml_nq_place - where an entry will probably go
 * @cursor: its position
 * @taker: as whom it is taken
 * @entry: its memory
 */
struct hml_nq_place {
	u32 cursor;
	u32 taker;
	struct hamlyn_nq_entry *entry;
};

/**
 * hml_nq_expect() - prefetch an NQ's next entry
 * @nic: the NIC
 * @nq: the NQ
 * @taker: as whom, hml_port_taker(), or HML_TAKER_NONE
 *
 * The poller's processor has its cache line. Fetch it while the message is being placed,
 * rather than wait for it afterwards.
 *
 * Return: where an entry would go now, for hml_nq_append().
 */
static inline struct hml_nq_place hml_nq_expect(struct hml_nic *nic,
						struct hml_nq *nq, u32 taker)
{
	/* Before the consumer index; otherwise an empty queue may look full. */
	u32 cursor = hml_port_nq_cursor(nq, taker);	/* B4: read before the consumer index */
	struct hamlyn_nq_entry *e = hml_ref_deref(&nic->port, nq->entries);

	e += cursor & nq->mask;
	hml_prefetchw(e);
	return (struct hml_nq_place) { cursor, taker, e };
}

/**
 * hml_nq_append() - append an entry to an NQ (H 2.6)
 * @nic: the NIC
 * @nq: the NQ
 * @place: what hml_nq_expect() returned
 * @entry: the entry; its sequence is ignored
 * @wake: wake the sleeper if there is one
 *
 * Any number of callers may append to the same NQ concurrently. Even without @wake the
 * sleeper is woken if somebody appended after this entry or lost one meanwhile.
 *
 * Return: true; false if the NQ was full and the notification is lost.
 */
bool hml_nq_append(struct hml_nic *nic, struct hml_nq *nq,
		   struct hml_nq_place place,
		   const struct hamlyn_nq_entry *entry, bool wake);

/**
 * hml_nq_ready() - is there an entry at a position, or was there?
 * @nic: the NIC
 * @nq: the NQ
 * @position: the position
 *
 * Return: true if the entry is there, or has already been taken and replaced.
 */
bool hml_nq_ready(const struct hml_nic *nic, const struct hml_nq *nq,
		  u32 position);

#endif /* HML_CORE_NOTIFY_H */
