/* SPDX-License-Identifier: MIT */
/*
 * A protocol that pushes: for memory that one node stores to and others read, step by step.
 *
 * A page has a producer, the only node that stores to it. The others fetch it once, and are
 * its consumers from then on. At each barrier the producer sends them the blocks that it has
 * stored to since the last one, so that no load of theirs ever waits again.
 *
 * It lives beside Stache: in a part of the segment of its own, with a page mode of its own.
 * One thread computes on each node.
 */
#ifndef UPDATE_H
#define UPDATE_H

#include <semaphore.h>
#include <stdlib.h>

#include <tempest.h>

#define UPDATE_MODE	8
#define UPDATE_FROM	(TPPI_SEG_BASE + TPPI_SEG_SIZE / 2)
#define UPDATE_PAGES	1024
#define UPDATE_NODES	64
#define UPDATE_BLOCKS	(TPPI_PAGE_SIZE / TPPI_TAG_BLK_SIZE)

/**
 * struct update_page - a page
 * @producer: who stores to it
 * @consumers: producer: who has asked for it, a bit for each node
 * @dirty: producer: blocks that were stored to since the last barrier, and how many
 */
struct update_page {
	TPPI_NodeId producer;
	uint64_t consumers;
	uint8_t dirty[UPDATE_BLOCKS];
	int number_dirty;
};

static struct update_page update_pages[UPDATE_PAGES];
static int update_used;

/* How many pages this node has asked for. */
static int update_fetched;

/* Nodes that are at the barrier: one for each, as one may be at the next one already. */
static sem_t update_there[UPDATE_NODES];

static inline char *update_va(int page)
{
	return UPDATE_FROM + (size_t)page * TPPI_PAGE_SIZE;
}

static inline int update_number(const void *va)
{
	return ((const char *)va - UPDATE_FROM) / TPPI_PAGE_SIZE;
}

/* ---- consumers ---- */

/* A page, or a block of it: the tag allows loads already if it is not the first time. */
static void update_on_data(TPPI_NodeId src, int size)
{
	char *va = TPPI_recv_P();
	int bytes = TPPI_recv_W();

	(void)src;
	(void)size;
	TPPI_recv_Ba(va, bytes, TPPI_get_blk_acc(va) == TPPI_Blk_ReadOnly ? TPPI_Blk_No_Tag_Change :
									    TPPI_Blk_Validate_RO);
	TPPI_resume_va(va, bytes);
}

static void update_on_request(TPPI_NodeId src, int size)
{
	int page = TPPI_recv_W();

	(void)size;
	update_pages[page].consumers |= UINT64_C(1) << src;
	TPPI_send_items(src, update_on_data, "PWBa", update_va(page), TPPI_PAGE_SIZE,
			update_va(page), TPPI_PAGE_SIZE, TPPI_Blk_No_Tag_Change);
}

/* Handler of page faults, which Stache passes on. */
static void update_page_fault(void *va, int pc, int is_write)
{
	int page = update_number(va);

	(void)pc;
	(void)is_write;
	if (page < 0 || page >= update_used)
		abort();
	if (!TPPI_alloc_and_map(update_va(page), UPDATE_MODE, TPPI_Blk_Invalid,
				update_pages[page].producer, NULL))
		abort();
	update_fetched++;
	TPPI_send_W(update_pages[page].producer, update_on_request, page);
}

/* The page was asked for when it was mapped. */
static void update_wait(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)va;
	(void)usr_ptr;
	(void)home;
}

/* ---- the producer ---- */

/* First store to a block since the last barrier. */
static void update_store(void *va, void *usr_ptr, TPPI_NodeId home)
{
	struct update_page *page = &update_pages[update_number(va)];

	(void)usr_ptr;
	if (home != TPPI_self_address)
		abort();
	page->dirty[page->number_dirty++] = (uintptr_t)va % TPPI_PAGE_SIZE / TPPI_TAG_BLK_SIZE;
	TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Upgrade_RW);
	TPPI_resume_va(va, TPPI_TAG_BLK_SIZE);
}

static void update_push_block(const struct update_page *page, char *va)
{
	TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Downgrade_RO);
	(void)page;
#ifndef UPDATE_PUSHES_NOTHING	/* the control of the test */
	for (TPPI_NodeId node = 0; node < TPPI_num_nodes; node++) {
		if (page->consumers >> node & 1)
			TPPI_send_items(node, update_on_data, "PWBa", va, TPPI_TAG_BLK_SIZE, va,
					TPPI_TAG_BLK_SIZE, TPPI_Blk_No_Tag_Change);
	}
#endif
}

static void update_on_there(TPPI_NodeId src, int size)
{
	(void)size;
	sem_post(&update_there[src]);
}

/*
 * By the protocol thread, as consumers come and go by its handlers. To each node what says
 * that this one is there follows what it has to say.
 */
static void update_on_push(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	for (int i = 0; i < update_used; i++) {
		struct update_page *page = &update_pages[i];

		while (page->number_dirty)
			update_push_block(page, update_va(i) + page->dirty[--page->number_dirty] *
								       TPPI_TAG_BLK_SIZE);
	}
	for (TPPI_NodeId node = 0; node < TPPI_num_nodes; node++)
		TPPI_send(node, update_on_there);
}

/* ---- the program's calls ---- */

/*
 * All nodes, before stache_init(): it keeps them from going on before all have handlers.
 */
static inline void update_init(void)
{
	for (int i = 0; i < UPDATE_NODES; i++)
		sem_init(&update_there[i], 0, 0);
	TPPI_register_blk_acc_fault_handler(UPDATE_MODE, TPPI_Blk_Invalid, TPPI_ReadAccess,
					    update_wait);
	TPPI_register_blk_acc_fault_handler(UPDATE_MODE, TPPI_Blk_ReadOnly, TPPI_WriteAccess,
					    update_store);
}

/* All nodes, in the same order, and a barrier before it is used: pages of a producer. */
static inline void *update_malloc(TPPI_NodeId producer, size_t bytes)
{
	char *start = update_va(update_used);

	for (size_t done = 0; done < bytes; done += TPPI_PAGE_SIZE, update_used++) {
		if (update_used == UPDATE_PAGES)
			abort();
		update_pages[update_used].producer = producer;
		if (producer == TPPI_self_address &&
		    !TPPI_alloc_and_map(update_va(update_used), UPDATE_MODE, TPPI_Blk_ReadOnly,
					producer, NULL))
			abort();
	}
	return start;
}

/* All nodes: each sees what the others have stored before. */
static inline void update_barrier(void)
{
	TPPI_send(TPPI_self_address, update_on_push);
	for (TPPI_NodeId node = 0; node < TPPI_num_nodes; node++) {
		while (sem_wait(&update_there[node]))
			;
	}
}

#endif /* UPDATE_H */
