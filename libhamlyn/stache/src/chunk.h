/* SPDX-License-Identifier: MIT */
/*
 * Chunks: how Stache's part of the segment is given out. All pages of a chunk are alike:
 * size of blocks, and how homes are chosen. Node 0 knows all chunks; the others ask it when
 * they first meet one.
 */
#ifndef STACHE_CHUNK_H
#define STACHE_CHUNK_H

#include <stdbool.h>

#include "stache.h"

#define CHUNK_BYTES	((size_t)1 << 20)

/* What there is to know of a chunk, as it travels; 0 where there is none, or none known. */
typedef uint32_t stache_chunk;

static inline stache_chunk stache_chunk_make(enum stache_homes homes, TPPI_NodeId home,
					     int block_bytes)
{
	return (stache_chunk)homes | home << 8 | (uint32_t)block_bytes << 16;
}

static inline int stache_chunk_block(stache_chunk chunk)
{
	return chunk >> 16;
}

void stache_chunk_start(void);

/* Is it in Stache's part? */
bool stache_inside(const void *va);

/* The chunk around it; 0 if it is not known here. */
stache_chunk stache_chunk_at(const void *va);

/* Home of a page of a chunk. */
TPPI_NodeId stache_chunk_home(stache_chunk chunk, const void *va);

/* Protocol thread: ask for the chunk, and resume the threads that are suspended in it. */
void stache_chunk_ask(void *va);

/* Computation threads: new chunks, one after the other; NULL if there are no so many. */
void *stache_chunk_take(size_t number, stache_chunk chunk);

#endif /* STACHE_CHUNK_H */
