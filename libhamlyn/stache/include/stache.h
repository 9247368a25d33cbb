/* SPDX-License-Identifier: MIT */
/*
 * Stache: transparent shared memory, made of Tempest's calls alone.
 *
 * What stache_malloc() returns is one memory for all nodes. Each page has a home node, which
 * knows who has copies of its blocks; the others cache blocks in pages of their own, fetched
 * when they are accessed. A store takes the block away from all others first. See
 * hamlyn_stache(7).
 *
 * Where programs have protocols of their own beside it: Stache takes two page modes, a part
 * of the segment, and the handler of page faults, which passes on what is not Stache's.
 */
#ifndef STACHE_H
#define STACHE_H

#include <stddef.h>
#include <stdint.h>

#include <tempest.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * enum stache_homes - which node is the home of a page
 * @STACHE_HOMES_DEFAULT: as stache_init() was told
 * @STACHE_HOMES_STATIC: each node in its turn, page by page
 * @STACHE_HOMES_RANDOM: any, but for all nodes the same
 * @STACHE_HOMES_ONE: the one that is named, for all pages of an allocation
 */
enum stache_homes {
	STACHE_HOMES_DEFAULT,
	STACHE_HOMES_STATIC,
	STACHE_HOMES_RANDOM,
	STACHE_HOMES_ONE,
};

/**
 * struct stache_attr - how Stache is to be; 0 is the default of each
 * @homes: of pages: $HAMLYN_STACHE_HOMES, "static" or "random", or static
 * @block_bytes: of a block, a power of two from TPPI_TAG_BLK_SIZE to TPPI_PAGE_SIZE:
 *	$HAMLYN_STACHE_BLOCK, or 128
 * @most_pages: most pages that this node has of other homes, at least 16:
 *	$HAMLYN_STACHE_PAGES, or as many as there is memory for
 * @mode: the first of the two page modes that are Stache's
 * @from: where its part of the segment begins, a multiple of 1 MiB
 * @bytes: how long that is, a multiple of 1 MiB, or the rest of the segment
 * @page_fault: handler of page faults outside of it
 *
 * @from and @bytes are the same on all nodes.
 */
struct stache_attr {
	enum stache_homes homes;
	int block_bytes;
	unsigned int most_pages;
	TPPI_PageMode mode;
	void *from;
	size_t bytes;
	TPPI_PageFaultHandlerPtr page_fault;
};

/**
 * struct stache_place - where an allocation is to be; 0 is the default of each
 * @homes: homes of its pages
 * @home: the one of STACHE_HOMES_ONE
 * @block_bytes: of its blocks
 */
struct stache_place {
	enum stache_homes homes;
	TPPI_NodeId home;
	int block_bytes;
};

/**
 * struct stache_figures - what has happened at this node
 * @fetches: blocks that it has asked for
 * @upgrades: blocks that it had, and asked to store to
 * @invalidations: copies that others had it drop
 * @recalls: blocks that it had stored to, and others wanted
 * @pages: pages of other homes that it has now
 * @replaced: pages that it has given up, as there was a limit
 * @written_back: blocks of these that it had stored to
 */
struct stache_figures {
	uint64_t fetches;
	uint64_t upgrades;
	uint64_t invalidations;
	uint64_t recalls;
	uint64_t pages;
	uint64_t replaced;
	uint64_t written_back;
};

/* With the size of the structure that the program knows: Documentation/abi.rst. */
void stache__init(const struct stache_attr *attr, size_t size);

/**
 * stache_init() - begin
 * @attr: or NULL
 *
 * All nodes call it, once, before any other call of Stache; it waits for the others. What
 * cannot be ends the program with a message.
 */
static inline void stache_init(const struct stache_attr *attr)
{
	stache__init(attr, sizeof(*attr));
}

/* ---- memory ------------------------------------------------------------- */

/**
 * stache_malloc() - memory that all nodes share
 * @bytes: how many
 *
 * It is zero, of whole blocks, and remains until the program ends. Its pages' homes are those
 * of stache_init().
 *
 * Return: it; NULL if Stache's part of the segment is used up.
 */
void *stache_malloc(size_t bytes);

/**
 * stache_malloc_local() - the same with its home here
 * @bytes: how many
 *
 * Return: it; NULL if Stache's part of the segment is used up.
 */
void *stache_malloc_local(size_t bytes);

/**
 * stache_malloc_place() - the same with homes and blocks as the caller likes
 * @bytes: how many
 * @place: where
 *
 * Return: it; NULL if Stache's part of the segment is used up.
 */
void *stache_malloc_place(size_t bytes, const struct stache_place *place);

/**
 * stache_home() - home of shared memory
 * @va: an address in it, which this node has allocated or accessed
 *
 * Return: the node.
 */
TPPI_NodeId stache_home(void *va);

/* ---- locks, barriers, flags, counters, pointers ------------------------- */

/*
 * Each has a name, which is an address: that of the segment, or of the program's own static
 * data; any other, as of a library's data, ends the program with a message. It is not
 * accessed. All nodes that use the same name mean the same thing, and it needs no making.
 */

/**
 * stache_lock() - have a lock alone
 * @name: the lock
 *
 * Threads get it in the order in which they have asked its home.
 */
void stache_lock(const void *name);

/**
 * stache_unlock() - give it up
 * @name: the lock, which this thread has
 */
void stache_unlock(const void *name);

/**
 * stache_barrier() - wait until so many threads do
 * @name: the barrier
 * @threads: how many, of all nodes
 */
void stache_barrier(const void *name, unsigned int threads);

/**
 * stache_flag_set() - raise a flag
 * @name: the flag
 *
 * It is raised when this returns, for whoever learns of that.
 */
void stache_flag_set(const void *name);

/**
 * stache_flag_clear() - lower it
 * @name: the flag
 */
void stache_flag_clear(const void *name);

/**
 * stache_flag_wait() - wait until it is raised
 * @name: the flag
 */
void stache_flag_wait(const void *name);

/**
 * stache_count() - take the next number of a counter
 * @name: the counter, which begins with 0
 *
 * Return: its number; nobody else gets it.
 */
unsigned int stache_count(const void *name);

/**
 * stache_count_reset() - have a counter begin with 0 again
 * @name: the counter
 */
void stache_count_reset(const void *name);

/**
 * stache_publish() - have other nodes find a pointer
 * @name: of it
 * @pointer: any but NULL, usually one to shared memory
 *
 * Whoever learns that this has returned finds this pointer, or a later one.
 */
void stache_publish(const void *name, void *pointer);

/**
 * stache_find() - find a pointer
 * @name: of it; waits until it is published
 *
 * Return: the pointer that was published last.
 */
void *stache_find(const void *name);

/* ---- figures ------------------------------------------------------------ */

/**
 * stache_get_figures() - what has happened at this node
 * @figures: out
 */
void stache_get_figures(struct stache_figures *figures);

#ifdef __cplusplus
}
#endif

#endif /* STACHE_H */
