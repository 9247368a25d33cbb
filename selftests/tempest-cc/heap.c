// SPDX-License-Identifier: GPL-2.0-only
/*
 * A heap in the segment under which the tags change all the time: a thread takes blocks away
 * at random, with what is in them, and leaves nonsense there; the handlers of faults bring
 * them back. Blocks that nobody has used yet are Invalid.
 *
 *	CHAOS=N		pause after N blocks; 0: nothing is taken away, and all are Writable
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tempest.h>
#include <time.h>

#include "base/abi.h"

#define BLOCK		((size_t)TPPI_TAG_BLK_SIZE)
#define PAGE		((size_t)TPPI_PAGE_SIZE)
#define CLASSES		32
#define RECENT		512

/* In front of what has been allocated */
struct header {
	uint64_t size_class;
	struct header *next_free;
};

/* What was taken away. No access to the segment is made with the lock held. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *shadow;
static _Atomic size_t mapped;
static unsigned long faults, taken;
static TPPI_BlkAccTag at_first = TPPI_Blk_Invalid;

/* The program's thread is the only one that allocates. */
static struct header *free_of[CLASSES];
static size_t used;

static void give_up(const char *what)
{
	fprintf(stderr, "heap: %s: %s\n", what, strerror(errno));
	_Exit(125);
}

static size_t offset(const void *va)
{
	return ((size_t)((const char *)va - TPPI_SEG_BASE)) & ~(BLOCK - 1);
}

/* ---- tags ---- */

static void bring_back(void *va, int write)
{
	char *contents = shadow + offset(va);

	pthread_mutex_lock(&lock);
	faults++;
	switch (TPPI_get_blk_acc(va)) {
	case TPPI_Blk_Invalid:
		TPPI_change_blk_acc_and_copy(va, TPPI_TAG_BLK_SIZE, write ? TPPI_Blk_Validate_RW :
					     TPPI_Blk_Validate_RO, contents);
		break;
	case TPPI_Blk_ReadOnly:
		if (write)
			TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Upgrade_RW);
		break;
	default:
		break;
	}
	pthread_mutex_unlock(&lock);
	TPPI_resume_va(va, TPPI_TAG_BLK_SIZE);
}

static void on_read(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	(void)home;
	bring_back(va, 0);
}

static void on_write(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	(void)home;
	bring_back(va, 1);
}

/* A node's copy is dropped: nothing that it finds there later is right. */
static void take(void *va)
{
	char *alias = (char *)TPPI_SEG_BASE + TEMPEST_ALIAS_OFFSET + offset(va);

	TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
	memcpy(shadow + offset(va), alias, BLOCK);
	memset(alias, 0xa5, BLOCK);
}

static void change(void *va, unsigned int how)
{
	TPPI_BlkAccTag tag;

	pthread_mutex_lock(&lock);
	tag = TPPI_get_blk_acc(va);
	if (tag == TPPI_Blk_Writable && how & 1)
		TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Downgrade_RO);
	else if (tag == TPPI_Blk_Writable || tag == TPPI_Blk_ReadOnly)
		take(va);
	taken += tag == TPPI_Blk_Writable || tag == TPPI_Blk_ReadOnly;
	pthread_mutex_unlock(&lock);
}

/* Half of the time it is one of the newest blocks, which are in use. */
static void *change_tags(void *count)
{
	struct timespec pause = { 0, 50000 };
	long i, n = (long)count;
	unsigned int random = 1;

	for (i = 0;; i++) {
		size_t blocks = mapped / BLOCK, most = blocks, at;

		if (!(i % n) || !blocks) {
			nanosleep(&pause, NULL);
			continue;
		}
		if (rand_r(&random) & 1 && blocks > RECENT)
			most = RECENT;
		at = blocks - 1 - (size_t)rand_r(&random) % most;
		change((char *)TPPI_SEG_BASE + at * BLOCK, (unsigned int)rand_r(&random) >> 4);
	}
	return NULL;
}

__attribute__((constructor))
static void begin(void)
{
	const char *chaos = getenv("CHAOS");
	long n = chaos ? atol(chaos) : 16;
	pthread_t thread;

	shadow = mmap(NULL, TPPI_seg_size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (shadow == MAP_FAILED)
		give_up("shadow");
	TPPI_register_blk_acc_fault_handler(0, TPPI_Blk_Invalid, TPPI_ReadAccess, on_read);
	TPPI_register_blk_acc_fault_handler(0, TPPI_Blk_Invalid, TPPI_WriteAccess, on_write);
	TPPI_register_blk_acc_fault_handler(0, TPPI_Blk_ReadOnly, TPPI_WriteAccess, on_write);
	if (!n)
		at_first = TPPI_Blk_Writable;
	else if (pthread_create(&thread, NULL, change_tags, (void *)n))
		give_up("thread");
}

__attribute__((destructor))
static void end(void)
{
	fprintf(stderr, "heap: %zu bytes, %lu faults, %lu taken\n", used, faults, taken);
}

/* ---- the heap ---- */

static void map_until(size_t end)
{
	for (; mapped < end; mapped += PAGE)
		if (!TPPI_alloc_and_map((char *)TPPI_SEG_BASE + mapped, 0, at_first, 0, NULL))
			give_up("no page");
}

static struct header *new_header(unsigned int class)
{
	struct header *header = (struct header *)((char *)TPPI_SEG_BASE + used);
	size_t size = ((size_t)1 << class) + sizeof(*header);

	if (used + size > TPPI_seg_size)
		return NULL;
	used += size;
	map_until(used);
	header->size_class = class;
	return header;
}

void *heap_malloc(size_t size)
{
	unsigned int class = size <= 16 ? 4 : 64 - (unsigned int)__builtin_clzl(size - 1);
	struct header *header;

	if (class >= CLASSES)
		return NULL;
	header = free_of[class];
	if (header)
		free_of[class] = header->next_free;
	else
		header = new_header(class);
	return header ? header + 1 : NULL;
}

void heap_free(void *p)
{
	struct header *header = (struct header *)p - 1;

	if (!p)
		return;
	header->next_free = free_of[header->size_class];
	free_of[header->size_class] = header;
}

void *heap_calloc(size_t n, size_t size)
{
	void *p = size && n > SIZE_MAX / size ? NULL : heap_malloc(n * size);

	if (p)
		memset(p, 0, n * size);
	return p;
}

void *heap_realloc(void *p, size_t size)
{
	size_t old = p ? (size_t)1 << ((struct header *)p - 1)->size_class : 0;
	void *new;

	if (p && size <= old)
		return p;
	new = heap_malloc(size);
	if (new && p) {
		memcpy(new, p, old);
		heap_free(p);
	}
	return new;
}
