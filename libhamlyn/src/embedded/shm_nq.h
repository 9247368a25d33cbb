/* SPDX-License-Identifier: MIT */
/*
 * How entries of an NQ are taken on the embedded device (B24).
 *
 * A locked instruction waits until all that its processor stored before has arrived, and most
 * NQs have one sender. So the first one that is alone on its terminus gets the NQ to itself:
 * it counts in a word that nobody else writes, by plain stores, and looks behind each whether
 * the NQ is its own still. When another one comes, that is over, for good: the newcomer says
 * so, has the system order everybody's stores (membarrier(2)), reads how far the first one has
 * come, and from there all count in the cursor, by compare-exchange. It waits for nobody: if
 * the first one was stopped between its store and its look, what the newcomer has read says
 * whether that entry counts, to both. If the newcomer dies, the next one does it again.
 *
 * In a segment that version 0.2 has made all share each NQ from the beginning, and nobody's
 * entry goes without a barrier behind it.
 */
#ifndef H_SHM_NQ_H
#define H_SHM_NQ_H

#include "embedded/port_user.h"

/**
 * struct shm_bias - who may take entries of an NQ by plain stores
 * @bias: number of the one that may, or SHM_NQ_*
 * @own: where that one's next entry goes; nobody else writes it
 * @start: SHM_NQ_STARTED and where all others began, 0: not yet, or at 0; written once
 */
struct shm_bias {
	u32 bias;
	u32 own;
	u64 start;
};

/* Of a struct shm_nq, by the address of its struct hml_nq, which begins with the cursor. */
#define SHM_BIAS_AT	48

static __always_inline struct shm_bias *shm_bias_of(const void *nq)
{
	return (struct shm_bias *)((uintptr_t)nq + SHM_BIAS_AT);
}

/* A bias that is no number of a sender. 0 is what is there in segments of version 0.2. */
#define SHM_NQ_SHARED	0u		/* counted in the cursor, from @start on */
#define SHM_NQ_ENDING	0xfffffffeu	/* no sender's own any more; @start is to be written */
#define SHM_NQ_FREE	0xfffffffdu	/* nobody has sent anything yet */

/*
 * Takers that are never a bias: who has not joined the fence, and who has, but not its terminus
 * to itself. A terminus' number is its index + 1.
 */
#define HML_TAKER_NONE		0xffffffffu
#define SHM_TAKER_FENCED	0xfffffff0u

#define SHM_NQ_STARTED	(1ull << 32)

/* shm_bias.c */
u32 h__shm_nq_share(struct shm_bias *p);
bool h__shm_nq_claim(struct shm_bias *p, u32 taker);
bool h__shm_nq_look(const void *nq, u32 *cursor);

/* Where the shared cursor counts from. */
static __always_inline u32 shm_nq_start(struct shm_bias *p)
{
	if (likely(smp_load_acquire(&p->bias) == SHM_NQ_SHARED))	/* B24: before start */
		return (u32)READ_ONCE(p->start);
	return h__shm_nq_share(p);
}

static __always_inline u32 shm_nq_cursor(const void *nq, u32 taker)
{
	struct shm_bias *p = shm_bias_of(nq);
	const u32 *shared = nq;
	u32 bias = READ_ONCE(p->bias), start;

	if (likely(bias == taker) ||
	    (unlikely(bias == SHM_NQ_FREE) && h__shm_nq_claim(p, taker)))
		return READ_ONCE(p->own);
	start = shm_nq_start(p);
	return smp_load_acquire(shared) + start;		/* B4: before the consumer index */
}

static inline u32 shm_nq_seen(const void *nq)
{
	u32 cursor;

	(void)h__shm_nq_look(nq, &cursor);
	return cursor;
}

/* If the bias has changed since the cursor was read, that was the right one nevertheless. */
static __always_inline bool shm_nq_take(void *nq, u32 taker, u32 cursor)
{
	struct shm_bias *p = shm_bias_of(nq);
	u32 *shared = nq, start;

	if (likely(READ_ONCE(p->bias) == taker)) {
		/* Never a bias: the publication need not ask again. */
		if (taker == HML_TAKER_NONE)
			__builtin_unreachable();
		/* Release: the sender is inside before it has an entry (B8) */
		smp_store_release(&p->own, cursor + 1);		/* B24 */
		hml_barrier();
		if (likely(READ_ONCE(p->bias) == taker))
			return true;
		return (s32)(h__shm_nq_share(p) - (cursor + 1)) >= 0;
	}
	start = shm_nq_start(p);
	return hml_atomic_cmpxchg(shared, cursor - start, cursor + 1 - start) == cursor - start;
}

/* What arms an NQ has our stores ordered before it looks: h__shm_fence() in shm_nq_sleep(). */
static __always_inline void shm_nq_publish(u32 taker, u32 *sequence, u32 value)
{
	if (likely(taker != HML_TAKER_NONE)) {
		smp_store_release(sequence, value);		/* B3 */
		hml_barrier();
	} else {
		hml_store_release_mb(sequence, value);		/* B3, B5 */
	}
}

#define HML_PORT_NQ
/* 0, in those that nobody has told, is HML_TAKER_NONE */
#define hml_port_taker(sender)	(~(sender)->taker)
#define hml_port_nq_cursor	shm_nq_cursor
#define hml_port_nq_seen	shm_nq_seen
#define hml_port_nq_take	shm_nq_take
#define hml_port_nq_publish	shm_nq_publish

#endif /* H_SHM_NQ_H */
