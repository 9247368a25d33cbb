/* SPDX-License-Identifier: MIT */
/*
 * Changes of tags.
 *
 * A downgrade is: store the tags; close the application view of their pages; make every
 * other thread leave the section of a checked access (membarrier restarts those that have
 * not committed, and a commit is visible once it returns); wait for accesses out of line
 * that were announced before. Then nobody writes any more, and the contents are final.
 *
 * An upgrade is: contents, then tags. Loads of checked code read the tag first, and x86
 * keeps the order of loads and that of stores.
 */
#ifndef TEMPEST_BLOCK_H
#define TEMPEST_BLOCK_H

#include "base/settings.h"
#include "memory/segment.h"

/* For whom the contents must be final, and what goes there. */
struct tempest_copy {
	void *out;		/* contents after a downgrade, before an upgrade */
	const void *in;		/* new contents */
};

/*
 * Where an instruction of a loop is in the one that checks nothing, and in the other one: abi.h.
 * The last one is 0.
 */
struct tempest_loop {
	uintptr_t plain, checked;
};

/* The loop that this thread was last in. */
extern __thread const struct tempest_loop *tempest_loop __attribute__((tls_model("initial-exec")));

/**
 * tempest_block_start() - get ready for downgrades
 * @checks: what is wanted
 */
void tempest_block_start(enum tempest_checks checks);

/**
 * tempest_block_lower() - downgrade all of a range that has more than this tag
 * @start: first byte, of a block
 * @bytes: whole blocks
 * @tag: the new one
 */
void tempest_block_lower(uintptr_t start, size_t bytes, uint8_t tag);

/**
 * tempest_block_change() - change a block's or superblock's tags, and copy
 * @blk_va: anywhere within
 * @blk_len: of the block
 * @change: TPPI_Blk_*
 * @copy: what to copy, may be empty
 * @call: for messages
 */
void tempest_block_change(void *blk_va, int blk_len, TPPI_BlkTagChange change,
			  struct tempest_copy copy, const char *call);

/* Where the library reads or writes what a call was given: the alias, or the place itself. */
void *tempest_block_reach(const void *va, size_t bytes, const char *call);

/* First byte of the block, wherever that is; ends the program if none is so long. */
uintptr_t tempest_block_at(const void *va, int blk_len, const char *call);

/* First byte of the block; ends the program if there is no such block. */
uintptr_t tempest_block_first(const void *blk_va, int blk_len, const char *call);

#endif /* TEMPEST_BLOCK_H */
