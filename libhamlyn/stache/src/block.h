/* SPDX-License-Identifier: MIT */
/* How blocks and requests for them are named in messages. */
#ifndef STACHE_BLOCK_H
#define STACHE_BLOCK_H

#include "stache.h"

/* The first minimal block's number in the segment: 64 GiB have 2^31. */
static inline int stache_block_name(const void *va, int bytes)
{
	uintptr_t start = (uintptr_t)va & -(uintptr_t)bytes;

	return (int)((start - (uintptr_t)TPPI_SEG_BASE) >> TPPI_TAG_BLK_SHIFT);
}

static inline void *stache_block_va(int name)
{
	return TPPI_SEG_BASE + ((uintptr_t)(unsigned int)name << TPPI_TAG_BLK_SHIFT);
}

static inline void *stache_page_of(const void *va)
{
	return (void *)((uintptr_t)va & -(uintptr_t)TPPI_PAGE_SIZE);
}

/* Place of a block among those of its page. */
static inline unsigned int stache_block_index(const void *va, int bytes)
{
	return (uintptr_t)va % TPPI_PAGE_SIZE / bytes;
}

/**
 * enum stache_want - what a node asks of a block's home
 * @WANT_READ: a copy
 * @WANT_WRITE: the block, for itself alone
 * @WANT_UPGRADE: the same, and it has a copy unless that is dropped meanwhile
 */
enum stache_want {
	WANT_READ,
	WANT_WRITE,
	WANT_UPGRADE,
};

#endif /* STACHE_BLOCK_H */
