// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "chunk.h"
#include "error.h"
#include "mix.h"
#include "settings.h"
#include "wait.h"

#define GIVER	0	/* node that knows all chunks, and gives them out */

/*
 * By number. Computation threads write an entry before anybody else learns of an address in
 * the chunk, the protocol thread all others; entries change once.
 */
static _Atomic stache_chunk *chunks;
static size_t number_of_chunks;

/* Node GIVER: first chunk that is free. */
static size_t first_free;

void stache_chunk_start(void)
{
	number_of_chunks = stache_settings.bytes / CHUNK_BYTES;
	chunks = calloc(number_of_chunks, sizeof(*chunks));
	if (!chunks)
		stache_die("no memory for the table of chunks");
}

static size_t offset_of(const void *va)
{
	return (const char *)va - (const char *)stache_settings.from;
}

static char *start_of(size_t number)
{
	return (char *)stache_settings.from + number * CHUNK_BYTES;
}

bool stache_inside(const void *va)
{
	return offset_of(va) < stache_settings.bytes;
}

stache_chunk stache_chunk_at(const void *va)
{
	return chunks[offset_of(va) / CHUNK_BYTES];
}

TPPI_NodeId stache_chunk_home(stache_chunk chunk, const void *va)
{
	size_t page = offset_of(va) >> TPPI_PAGE_SHIFT;

	switch (chunk & 0xff) {
	case STACHE_HOMES_ONE:
		return chunk >> 8 & 0xff;
	case STACHE_HOMES_RANDOM:
		return stache_mix(page) % TPPI_num_nodes;
	default:
		return page % TPPI_num_nodes;
	}
}

TPPI_NodeId stache_home(void *va)
{
	stache_chunk chunk = stache_inside(va) ? stache_chunk_at(va) : 0;

	if (!chunk)
		stache_die("%s: %p is not known here", __func__, va);
	return stache_chunk_home(chunk, va);
}

/* ---- what a chunk is like ---- */

static void tell(TPPI_NodeId src, int size)
{
	size_t number = (unsigned int)TPPI_recv_W();
	stache_chunk chunk = TPPI_recv_W();

	(void)src;
	(void)size;
	if (!chunk)
		stache_die("an access within %p to %p, which nobody has allocated",
			   (void *)start_of(number), (void *)start_of(number + 1));
	chunks[number] = chunk;
	TPPI_resume_va(start_of(number), CHUNK_BYTES);
}

static void answer(TPPI_NodeId src, int size)
{
	size_t number = (unsigned int)TPPI_recv_W();

	(void)size;
	if (number >= number_of_chunks)
		stache_die("node %u has a larger part of the segment", src);
	TPPI_send_WW(src, tell, number, chunks[number]);
}

void stache_chunk_ask(void *va)
{
	TPPI_send_W(GIVER, answer, offset_of(va) / CHUNK_BYTES);
}

/* ---- giving out ---- */

static void given(TPPI_NodeId src, int size)
{
	struct stache_wait *wait = TPPI_recv_P();

	(void)src;
	(void)size;
	stache_wake(wait, (uintptr_t)TPPI_recv_P());
}

static void give(TPPI_NodeId src, int size)
{
	void *wait = TPPI_recv_P();
	size_t number = (unsigned int)TPPI_recv_W();
	stache_chunk chunk = TPPI_recv_W();
	char *start = NULL;

	(void)size;
	if (number <= number_of_chunks - first_free) {
		start = start_of(first_free);
		while (number--)
			chunks[first_free++] = chunk;
	}
	TPPI_send_items(src, given, "PP", wait, start);
}

void *stache_chunk_take(size_t number, stache_chunk chunk)
{
	struct stache_wait wait = STACHE_WAIT;
	char *start;
	size_t first;

	if (number > number_of_chunks)
		return NULL;
	TPPI_send_items(GIVER, give, "PWW", stache_wait_name(&wait), (int)number, (int)chunk);
	start = (char *)(uintptr_t)stache_wait(&wait);
	if (!start)
		return NULL;
	first = offset_of(start) / CHUNK_BYTES;
	if (offset_of(start) % CHUNK_BYTES || first >= number_of_chunks ||
	    number > number_of_chunks - first)
		stache_die("node %u has another part of the segment", GIVER);
	for (size_t i = 0; i < number; i++)
		chunks[first + i] = chunk;
	return start;
}
