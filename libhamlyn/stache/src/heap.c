// SPDX-License-Identifier: MIT
/* What stache_malloc() cuts chunks into. Each node has heaps of its own. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

#include "chunk.h"
#include "error.h"
#include "settings.h"

/**
 * struct heap - the memory that is left of chunks that are alike
 * @next: next heap
 * @chunk: what they are like
 * @at: what is free, to @end
 * @end: end of the chunks
 */
struct heap {
	struct heap *next;
	stache_chunk chunk;
	char *at, *end;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct heap *heaps;

static struct heap *heap_of(stache_chunk chunk)
{
	struct heap *heap = heaps;

	while (heap && heap->chunk != chunk)
		heap = heap->next;
	if (heap)
		return heap;
	heap = calloc(1, sizeof(*heap));
	if (!heap)
		stache_die("no memory for a heap");
	heap->chunk = chunk;
	heap->next = heaps;
	heaps = heap;
	return heap;
}

static size_t chunks_for(size_t bytes)
{
	return (bytes - 1) / CHUNK_BYTES + 1;
}

/* What is left of the old chunks is lost, unless the new ones follow them. */
static bool add_chunks(struct heap *heap, size_t number)
{
	char *start = stache_chunk_take(number, heap->chunk);

	if (!start)
		return false;
	if (start != heap->end)
		heap->at = start;
	heap->end = start + number * CHUNK_BYTES;
	return true;
}

static size_t left(const struct heap *heap)
{
	return heap->end - heap->at;
}

/* At the end of the segment there may be too few for all of it, but enough beside what is left. */
static bool refill(struct heap *heap, size_t bytes)
{
	size_t number = chunks_for(bytes), fewer = chunks_for(bytes - left(heap));

	if (add_chunks(heap, number))
		return true;
	return fewer < number && add_chunks(heap, fewer) && bytes <= left(heap);
}

static void *take(stache_chunk chunk, size_t bytes)
{
	struct heap *heap = heap_of(chunk);
	char *at;

	if (bytes > left(heap) && !refill(heap, bytes))
		return NULL;
	at = heap->at;
	heap->at += bytes;
	return at;
}

static stache_chunk chunk_for(const struct stache_place *place)
{
	int block = place->block_bytes ? place->block_bytes : stache_settings.block_bytes;
	enum stache_homes homes = place->homes;

	stache_check_block(block);
	if (homes == STACHE_HOMES_DEFAULT)
		homes = stache_settings.homes;
	if (homes > STACHE_HOMES_ONE)
		stache_die("there are no homes %d", homes);
	if (homes != STACHE_HOMES_ONE)
		return stache_chunk_make(homes, 0, block);
	if (place->home >= TPPI_num_nodes)
		stache_die("a home is node %u of %u", place->home, TPPI_num_nodes);
	return stache_chunk_make(homes, place->home, block);
}

/* What is a page or more begins with one, so that it is in as few as can be. */
static void align(struct heap *heap)
{
	size_t rest = (uintptr_t)heap->at % TPPI_PAGE_SIZE;

	/* The chunks end with a page, too */
	if (rest)
		heap->at += TPPI_PAGE_SIZE - rest;
}

void *stache_malloc_place(size_t bytes, const struct stache_place *place)
{
	stache_chunk chunk = chunk_for(place);
	size_t block = stache_chunk_block(chunk);
	void *va;

	if (bytes > stache_settings.bytes)
		return NULL;
	bytes = bytes ? (bytes + block - 1) & ~(block - 1) : block;
	pthread_mutex_lock(&lock);
	if (bytes >= TPPI_PAGE_SIZE)
		align(heap_of(chunk));
	va = take(chunk, bytes);
	pthread_mutex_unlock(&lock);
	return va;
}

void *stache_malloc(size_t bytes)
{
	return stache_malloc_place(bytes, &(struct stache_place){ 0 });
}

void *stache_malloc_local(size_t bytes)
{
	return stache_malloc_place(bytes, &(struct stache_place){ .homes = STACHE_HOMES_ONE,
								   .home = TPPI_self_address });
}
