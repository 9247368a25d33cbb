// SPDX-License-Identifier: MIT
#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>
#include <sys/rseq.h>

#include "base/control.h"
#include "base/error.h"
#include "base/quiet.h"
#include "memory/block.h"
#include "memory/page.h"
#include "memory/view.h"
#include "thread/thread.h"

#ifdef TEMPEST_TEST_CONTROLS
_Atomic unsigned int tempest_control;
void (*tempest_between)(void);
#endif

long TEMPEST_RSEQ_CS, TEMPEST_LOOP;

/* Where checked code enters sections that nobody looks at. */
static __thread uint64_t no_rseq_cs __attribute__((tls_model("initial-exec")));

__thread const struct tempest_loop *tempest_loop __attribute__((tls_model("initial-exec")));

static enum tempest_checks checks_used;

static int membarrier(int command)
{
	return syscall(SYS_membarrier, command, 0, 0);
}

void tempest_block_start(enum tempest_checks checks)
{
	checks_used = checks;
	TEMPEST_LOOP = (char *)&tempest_loop - (char *)__builtin_thread_pointer();
	if (checks == CHECKS_TRAP) {
		TEMPEST_RSEQ_CS = (char *)&no_rseq_cs - (char *)__builtin_thread_pointer();
		return;
	}
	if (!__rseq_size)
		tempest_refuse("no rseq by libc: HAMLYN_TEMPEST_CHECKS=trap does without");
	if (membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ))
		tempest_refuse("membarrier() does not restart rseq sections: %s", strerror(errno));
	TEMPEST_RSEQ_CS = __rseq_offset + (long)offsetof(struct rseq, rseq_cs);
}

/*
 * Accesses that trap need no more than the fences on both sides: they announce
 * themselves, and then look at the tag.
 */
static void handshake(void)
{
	if (checks_used != CHECKS_RSEQ || CONTROL(CONTROL_NO_HANDSHAKE))
		return;
	if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ))
		tempest_die("membarrier() fails: %s", strerror(errno));
}

static uint8_t tag_at(const _Atomic uint8_t *tag)
{
	return atomic_load_explicit(tag, memory_order_relaxed);
}

static void set_tags(uintptr_t start, size_t bytes, uint8_t tag)
{
	_Atomic uint8_t *tags = tempest_tag(start);

	for (size_t i = 0; i < bytes >> TEMPEST_TAG_SHIFT; i++)
		atomic_store_explicit(&tags[i], tag, memory_order_relaxed);
}

/*
 * Pages that change as a whole. Of others that become uniform loops are told when they are opened,
 * as the next change of a block may close them again: view.c.
 */
static void tell_loops(uintptr_t start, size_t bytes, uint8_t tag)
{
	if (bytes < PAGE_BYTES)
		return;
	for (uintptr_t page = start; page < start + bytes; page += PAGE_BYTES)
		tempest_tell_whole(page, tag);
}

static void lower_whole(uintptr_t start, size_t bytes, uint8_t tag)
{
	for (uintptr_t page = tempest_page_of(start); page < start + bytes; page += PAGE_BYTES) {
		if (tempest_whole(page) > tag)
			tempest_set_whole(page, tag < TPPI_Blk_ReadOnly ? 0 : tag);
	}
}

/*
 * What has less, once the rest of it has less than it had: a block that was lowered is not
 * stored again, as another thread may have raised it since.
 */
static void raise_tags(uintptr_t start, size_t bytes, uint8_t tag)
{
	_Atomic uint8_t *tags = tempest_tag(start);

	for (size_t i = 0; i < bytes >> TEMPEST_TAG_SHIFT; i++) {
		if (tag_at(&tags[i]) < tag)
			atomic_store_explicit(&tags[i], tag, memory_order_relaxed);
	}
}

void tempest_block_lower(uintptr_t start, size_t bytes, uint8_t tag)
{
	_Atomic uint8_t *tags = tempest_tag(start);

	lower_whole(start, bytes, tag);
	for (size_t i = 0; i < bytes >> TEMPEST_TAG_SHIFT; i++) {
		if (tag_at(&tags[i]) > tag)
			atomic_store_explicit(&tags[i], tag, memory_order_relaxed);
	}
	/*
	 * A thread that opens a page says so, and looks at the tags again: view.c. And an access
	 * that traps announces itself first: thread.c.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	for (uintptr_t page = tempest_page_of(start); page < start + bytes; page += PAGE_BYTES) {
		if (tempest_page(page)->open > tag && !CONTROL(CONTROL_STAY_OPEN))
			tempest_view_close(page, tag);
	}
	handshake();
	if (!CONTROL(CONTROL_NO_DRAIN))
		tempest_thread_drain(start, bytes);
}

static const int8_t tag_after[] = {
	[TPPI_Blk_Validate_RW] = TPPI_Blk_Writable,
	[TPPI_Blk_Upgrade_RW] = TPPI_Blk_Writable,
	[TPPI_Blk_Validate_RO] = TPPI_Blk_ReadOnly,
	[TPPI_Blk_Downgrade_RO] = TPPI_Blk_ReadOnly,
	[TPPI_Blk_Invalidate] = TPPI_Blk_Invalid,
	[TPPI_Blk_Mark_Busy] = TPPI_Blk_Busy,
	[TPPI_Blk_No_Tag_Change] = -1,
	[TPPI_Blk_Invalid_To_Busy] = TPPI_Blk_Busy,
	[TPPI_Blk_Busy_To_Invalid] = TPPI_Blk_Invalid,
};

uintptr_t tempest_block_at(const void *va, int blk_len, const char *call)
{
	if (blk_len < TPPI_TAG_BLK_SIZE || (blk_len & (blk_len - 1)))
		tempest_die("%s: %d is no length of a block", call, blk_len);
	return (uintptr_t)va & ~((uintptr_t)blk_len - 1);
}

uintptr_t tempest_block_first(const void *blk_va, int blk_len, const char *call)
{
	uintptr_t start = tempest_block_at(blk_va, blk_len, call);

	tempest_check_mapped(start, blk_len, call);
	return start;
}

void *tempest_block_reach(const void *va, size_t bytes, const char *call)
{
	if (!tempest_inside((uintptr_t)va))
		return (void *)va;
	tempest_check_mapped((uintptr_t)va, bytes, call);
	return tempest_alias((uintptr_t)va);
}

/* Does any of the range permit what it will not with this tag? Invalid and Busy do alike. */
static bool loses_access(uintptr_t start, size_t bytes, uint8_t tag)
{
	uint8_t most = tag < TPPI_Blk_ReadOnly ? TPPI_Blk_Busy : tag;
	const _Atomic uint8_t *tags = tempest_tag(start);

	for (size_t i = 0; i < bytes >> TEMPEST_TAG_SHIFT; i++) {
		if (tag_at(&tags[i]) > most)
			return true;
	}
	return false;
}

void tempest_block_change(void *blk_va, int blk_len, TPPI_BlkTagChange change,
			  struct tempest_copy copy, const char *call)
{
	uintptr_t start = tempest_block_first(blk_va, blk_len, call);
	bool lowered;
	int tag;

	if ((unsigned int)change >= sizeof(tag_after))
		tempest_die("%s: %d is no change of a tag", call, change);
	tag = tag_after[change];
	lowered = tag >= 0 && loses_access(start, blk_len, tag);
	if (lowered)
		tempest_block_lower(start, blk_len, tag);
	if (CONTROL(CONTROL_TAG_FIRST) && tag >= 0) {
		raise_tags(start, blk_len, tag);
		CONTROL_BETWEEN();
	}
	if (copy.out)
		memcpy(copy.out, tempest_alias(start), blk_len);
	if (copy.in)
		memmove(tempest_alias(start), copy.in, blk_len);
	atomic_thread_fence(memory_order_release);
	if (lowered)
		raise_tags(start, blk_len, tag);
	else if (tag >= 0)
		set_tags(start, blk_len, tag);
	if (tag >= 0)
		tell_loops(start, blk_len, tag);
}

TPPI_BlkAccTag TPPI_get_blk_acc(void *va)
{
	if (!tempest_inside((uintptr_t)va))
		return TPPI_Blk_Invalid;
	return atomic_load_explicit(tempest_tag((uintptr_t)va), memory_order_acquire);
}

void TPPI_change_blk_acc(void *blk_va, int blk_len, TPPI_BlkTagChange chg)
{
	QUIET_CALL();
	tempest_block_change(blk_va, blk_len, chg, (struct tempest_copy){ 0 }, __func__);
}

void TPPI_change_blk_acc_and_copy(void *blk_va, int blk_len, TPPI_BlkTagChange chg, void *from)
{
	struct tempest_copy copy = { .in = tempest_block_reach(from, blk_len, __func__) };

	QUIET_CALL();
	tempest_block_change(blk_va, blk_len, chg, copy, __func__);
}
