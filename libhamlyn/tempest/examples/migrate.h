/* SPDX-License-Identifier: MIT */
/*
 * A small protocol from nothing: each block is at one node at a time, and goes to whichever
 * accesses it. Documentation/tempest-tutorial.rst explains it.
 *
 * Node 0 is the home of all pages. It knows where each block is, and sends it on: to one
 * node after the other, in the order in which they have asked.
 */
#ifndef MIGRATE_H
#define MIGRATE_H

#include <tempest.h>

#define HOME	0
#define BLOCKS	(TPPI_PAGE_SIZE / TPPI_TAG_BLK_SIZE)
#define NODES	64

/*
 * What the home knows of a block. A node asks once, since its tag is Busy then: there are
 * never more who wait than nodes.
 */
struct block {
	TPPI_NodeId owner;
	int moving;		/* it is on its way to who is first in the queue */
	TPPI_NodeId queue[NODES];
	unsigned int first, end;
};

/* Home only; handlers run one after the other, so there is nothing to lock. */
static struct block blocks[BLOCKS];

static struct block *block_of(void *va)
{
	return &blocks[((char *)va - TPPI_SEG_BASE) / TPPI_TAG_BLK_SIZE % BLOCKS];
}

/* ---- messages; each carries the block's address ---- */

static void on_block(TPPI_NodeId src, int size);
static void on_done(TPPI_NodeId src, int size);

/* Owner: hand the block over. No store of this node's threads comes after that. */
static void on_recall(TPPI_NodeId src, int size)
{
	void *va = TPPI_recv_P();
	TPPI_NodeId to = TPPI_recv_W();

	(void)src;
	(void)size;
	TPPI_send_items(to, on_block, "PBa", va, va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
}

static void move_on(void *va, struct block *block)
{
	if (block->moving || block->first == block->end)
		return;
	block->moving = 1;
	TPPI_send_items(block->owner, on_recall, "PW", va, block->queue[block->first % NODES]);
}

/* Home: a node wants the block. */
static void on_request(TPPI_NodeId src, int size)
{
	void *va = TPPI_recv_P();
	struct block *block = block_of(va);

	(void)size;
	block->queue[block->end++ % NODES] = src;
	move_on(va, block);
}

/* Who has asked: here it is. */
static void on_block(TPPI_NodeId src, int size)
{
	void *va = TPPI_recv_P();

	(void)src;
	(void)size;
	TPPI_recv_Ba(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
	TPPI_resume_va(va, TPPI_TAG_BLK_SIZE);
	TPPI_send_items(HOME, on_done, "P", va);
}

/* Home: the block has arrived. */
static void on_done(TPPI_NodeId src, int size)
{
	void *va = TPPI_recv_P();
	struct block *block = block_of(va);

	(void)size;
	block->owner = src;
	block->first++;
	block->moving = 0;
	move_on(va, block);
}

/* ---- faults ---- */

static void ask(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalid_To_Busy);
	TPPI_send_items(home, on_request, "P", va);
}

/* Another thread of this node has asked: the block's arrival resumes both. */
static void has_asked(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)va;
	(void)usr_ptr;
	(void)home;
}

static void register_handlers(void)
{
	for (int access = TPPI_ReadAccess; access <= TPPI_WriteAccess; access++) {
		TPPI_register_blk_acc_fault_handler(0, TPPI_Blk_Invalid, access, ask);
		TPPI_register_blk_acc_fault_handler(0, TPPI_Blk_Busy, access, has_asked);
	}
}

#endif /* MIGRATE_H */
