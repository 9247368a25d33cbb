/* SPDX-License-Identifier: MIT */
/*
 * A computation thread that waits for an answer. The record is on its stack; its address
 * travels with the question, comes back with the answer, and is used on this node only.
 */
#ifndef STACHE_WAIT_H
#define STACHE_WAIT_H

#include <stdint.h>

#include "order.h"

/**
 * struct stache_wait - who waits
 * @state: 1 while it waits, 2 while it sleeps, 0 when the answer is there
 * @answer: written before @state becomes 0
 */
struct stache_wait {
	_Atomic uint32_t state;
	uint64_t answer;
};

#define STACHE_WAIT	{ .state = 1 }

/* What the question says of it. */
static inline void *stache_wait_name(struct stache_wait *wait)
{
	stache_left_to_others(wait);
	return wait;
}

/* Until it is answered. */
uint64_t stache_wait(struct stache_wait *wait);

/* Answer. @wait is gone then. */
void stache_wake(struct stache_wait *wait, uint64_t answer);

#endif /* STACHE_WAIT_H */
