// SPDX-License-Identifier: MIT
/* An NQ's first sender, and the end of its having the NQ to itself: see shm_nq.h. */
#include "embedded/shm.h"

/* From now on it is nobody's own. Return: false: it is everybody's already. */
static bool end_bias(struct shm_bias *p)
{
	u32 bias = smp_load_acquire(&p->bias);			/* B24: before start */
	u32 was, next;

	while (bias != SHM_NQ_SHARED && bias != SHM_NQ_ENDING) {
		/* From a free one there is nobody to wait for: all begin at 0. */
		next = bias == SHM_NQ_FREE ? SHM_NQ_SHARED : SHM_NQ_ENDING;
		was = hml_atomic_cmpxchg(&p->bias, bias, next);
		bias = was == bias ? next : was;
	}
	return bias == SHM_NQ_ENDING;
}

/*
 * The NQ is everybody's when it returns. Any number may be at this at the same time: whoever
 * writes @start first has said it for all. Return: where the cursor counts from.
 */
noinline u32 h__shm_nq_share(struct shm_bias *p)
{
	u64 unset = 0;
	u32 own;

	if (!end_bias(p))
		return (u32)READ_ONCE(p->start);
	h__shm_fence();						/* B24 */
	own = smp_load_acquire(&p->own);			/* B24 */
	__atomic_compare_exchange_n(&p->start, &unset, SHM_NQ_STARTED | own, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	smp_store_release(&p->bias, SHM_NQ_SHARED);		/* B24 */
	return (u32)READ_ONCE(p->start);
}

noinline bool h__shm_nq_claim(struct shm_bias *p, u32 taker)
{
	return taker != HML_TAKER_NONE && taker != SHM_TAKER_FENCED &&
	       hml_atomic_cmpxchg(&p->bias, SHM_NQ_FREE, taker) == SHM_NQ_FREE;
}

/*
 * The cursor, for whoever takes nothing. False: it may be one too many. Who sees an entry taken
 * must not be told later that it was not: if the NQ is a sender's own after its count was read,
 * whoever ends that reads as much, or more.
 */
bool h__shm_nq_look(const void *nq, u32 *cursor)
{
	const struct shm_bias *p = shm_bias_of(nq);
	const u32 *shared = nq;
	u32 bias;

	*cursor = smp_load_acquire(&p->own);			/* B8, B24 */
	smp_mb();						/* B24 */
	bias = smp_load_acquire(&p->bias);			/* B24: before start */
	if (bias == SHM_NQ_SHARED)
		*cursor = smp_load_acquire(shared) + (u32)READ_ONCE(p->start);	/* B8 */
	return bias != SHM_NQ_ENDING;
}
