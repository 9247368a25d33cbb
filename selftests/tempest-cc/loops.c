// SPDX-License-Identifier: GPL-2.0-only
/*
 * Loops that take pages for whole: in open pages nothing traps, in others they go on with checks,
 * and no store of theirs comes late. By hamlyn-tempest-cc only.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "memory/block.h"
#include "memory/page.h"
#include "test.h"

#define PAGES	4
#define WORDS	(PAGES * TPPI_PAGE_SIZE / 4)
#define A_PAGE	(TPPI_PAGE_SIZE / 4)
#define SOME	8	/* traps that opening a page or leaving a loop may take */

static void let_have(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	(void)home;
	TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
	TPPI_resume_va(va, TPPI_TAG_BLK_SIZE);
}

static void prepare(void)
{
	for (int tag = TPPI_Blk_Invalid; tag <= TPPI_Blk_ReadOnly; tag++) {
		if (tag != TPPI_Blk_ReadOnly)
			TPPI_register_blk_acc_fault_handler(0, tag, TPPI_ReadAccess, let_have);
		TPPI_register_blk_acc_fault_handler(0, tag, TPPI_WriteAccess, let_have);
	}
	for (int i = 0; i < PAGES; i++)
		map_page(page_at(i), 0, TPPI_Blk_Writable);
}

__attribute__((noinline))
static void count_up(uint32_t *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		words[i] += 1;
}

__attribute__((noinline))
static uint32_t sum_of(const uint32_t *words, size_t n)
{
	uint32_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += words[i];
	return sum;
}

static uint32_t *words_at(int page)
{
	return (uint32_t *)page_at(page);
}

static unsigned long traps_since(unsigned long before)
{
	return tempest_traps - before;
}

/* ---- pages all of whose blocks allow it ---- */

static void whole_pages(void)
{
	unsigned long before;

	prepare();
	count_up(words_at(0), WORDS);
	/* They are open now, which only an access that has trapped does */
	for (int i = 0; i < PAGES; i++)
		CHECK_EQUAL(tempest_page((uintptr_t)page_at(i))->open, TPPI_Blk_Writable);
	before = tempest_traps;
	for (int i = 0; i < 10; i++)
		count_up(words_at(0), WORDS);
	CHECK_EQUAL(sum_of(words_at(0), WORDS), 11 * WORDS);
	CHECK_EQUAL(traps_since(before), 0);
}

/* A page that is changed as a whole is told of, whatever it was. */
static void changed_as_a_whole(void)
{
	prepare();
	TPPI_change_blk_acc(page_at(1), TPPI_PAGE_SIZE, TPPI_Blk_Invalidate);
	CHECK_EQUAL(tempest_whole((uintptr_t)page_at(1)), 0);
	TPPI_change_blk_acc(page_at(1), TPPI_PAGE_SIZE, TPPI_Blk_Validate_RO);
	CHECK_EQUAL(tempest_whole((uintptr_t)page_at(1)), TPPI_Blk_ReadOnly);
	CHECK_EQUAL(sum_of(words_at(1), A_PAGE), 0);
	CHECK_EQUAL(tempest_page((uintptr_t)page_at(1))->open, TPPI_Blk_ReadOnly);
	TPPI_change_blk_acc(page_at(1), TPPI_TAG_BLK_SIZE, TPPI_Blk_Mark_Busy);
	CHECK_EQUAL(tempest_whole((uintptr_t)page_at(1)), 0);
	CHECK_EQUAL(tempest_page((uintptr_t)page_at(1))->open, 0);
	CHECK(TPPI_unmap_and_free(page_at(2)) == 1);
	CHECK_EQUAL(tempest_whole((uintptr_t)page_at(2)), 0);
	CHECK(TPPI_remap(page_at(3), page_at(2)) == 1);
	CHECK_EQUAL(tempest_whole((uintptr_t)page_at(3)), 0);
	count_up(words_at(2), A_PAGE);
	CHECK_EQUAL(sum_of(words_at(2), A_PAGE), A_PAGE);
}

/* ---- a page that is not whole, after one that is ---- */

static void mixed_pages(void)
{
	unsigned long before;

	prepare();
	/* Until it comes to the last block the page is not whole */
	for (int i = 2; i <= PAGES; i++)
		TPPI_change_blk_acc(page_at(i) - TPPI_TAG_BLK_SIZE, TPPI_TAG_BLK_SIZE,
				    TPPI_Blk_Invalidate);
	before = tempest_traps;
	count_up(words_at(0), WORDS);
	/* And a block each for the handler */
	CHECK(traps_since(before) <= SOME + 2 * PAGES);
	CHECK_EQUAL(sum_of(words_at(0), WORDS), WORDS);
}

/* Every block of it has a handler to run: one trap for it, and one for the way there. */
static void invalid_blocks(void)
{
	unsigned long before;

	prepare();
	for (int i = 1; i < PAGES; i++) {
		for (int at = 0; at < TPPI_PAGE_SIZE; at += TPPI_TAG_BLK_SIZE)
			TPPI_change_blk_acc(page_at(i) + at, TPPI_TAG_BLK_SIZE,
					    TPPI_Blk_Invalidate);
	}
	before = tempest_traps;
	count_up(words_at(0), WORDS);
	CHECK(traps_since(before) <= SOME + 2 * PAGES * TPPI_PAGE_SIZE / TPPI_TAG_BLK_SIZE);
	CHECK_EQUAL(sum_of(words_at(0), WORDS), WORDS);
}

/* ---- downgrades of what is open ---- */

static atomic_bool stop;
static atomic_ulong times;

static void *count_on(void *unused)
{
	while (!stop) {
		count_up(words_at(0), WORDS);
		times++;
	}
	return unused;
}

static bool is_final(char *va, int bytes, TPPI_BlkTagChange down, TPPI_BlkTagChange up)
{
	static char snapshot[TPPI_PAGE_SIZE];
	struct tempest_copy copy = { .out = snapshot };
	bool final;

	tempest_block_change(va, bytes, down, copy, "test");
	for (volatile int i = 0; i < 2000; i++)
		;
	final = !memcmp(snapshot, tempest_alias((uintptr_t)va), bytes);
	TPPI_change_blk_acc_and_copy(va, bytes, up, snapshot);
	TPPI_resume_va(va, bytes);
	return final;
}

static void leave_suspended(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)va;
	(void)usr_ptr;
	(void)home;
}

/* Blocks and whole pages in turn: the loop comes to pages that have just been closed. */
static void late(void)
{
	const char *text = getenv("HAMLYN_TEST_SECONDS");
	int64_t seconds = tempest_control ? 30 : text ? atoi(text) : 2, end;
	unsigned int random = 1, rounds = 0;
	pthread_t thread;
	bool final = true;

	prepare();
	for (int tag = TPPI_Blk_Invalid; tag <= TPPI_Blk_ReadOnly; tag++) {
		if (tag != TPPI_Blk_ReadOnly)
			TPPI_register_blk_acc_fault_handler(0, tag, TPPI_ReadAccess,
							    leave_suspended);
		TPPI_register_blk_acc_fault_handler(0, tag, TPPI_WriteAccess, leave_suspended);
	}
	CHECK(!pthread_create(&thread, NULL, count_on, NULL));
	for (end = now_ns() + seconds * 1000000000; now_ns() < end && final; rounds++) {
		int bytes = rand_r(&random) % 2 ? TPPI_PAGE_SIZE : TPPI_TAG_BLK_SIZE;
		char *va = page_at(0) + rand_r(&random) % (PAGES * TPPI_PAGE_SIZE / bytes) * bytes;

		if (rand_r(&random) % 2)
			final = is_final(va, bytes, TPPI_Blk_Invalidate, TPPI_Blk_Validate_RW);
		else
			final = is_final(va, bytes, TPPI_Blk_Downgrade_RO, TPPI_Blk_Upgrade_RW);
	}
	stop = true;
	TPPI_resume_va(page_at(0), PAGES * TPPI_PAGE_SIZE);
	pthread_join(thread, NULL);
	if (!final)
		failed(__FILE__, __LINE__, "a store came behind its downgrade, after %u", rounds);
	CHECK(rounds > 10 && times > 10);
	for (int i = 0; i < WORDS; i++)
		CHECK_EQUAL(words_at(0)[i], times);
}

const struct test tests[] = {
	{ "whole-pages", whole_pages, CONTROL_NOT_TOLD, 0, 0 },
	{ "changed-as-a-whole", changed_as_a_whole, CONTROL_NOT_TOLD, 0, 0 },
	{ "mixed-pages", mixed_pages, CONTROL_NO_SWITCH, 0, 0 },
	{ "invalid-blocks", invalid_blocks, CONTROL_NO_SWITCH, 0, 0 },
	{ "late", late, CONTROL_STAY_OPEN, 0, 0 },
	{ 0 }
};
