// SPDX-License-Identifier: GPL-2.0-only
/* Mapping, unmapping and moving pages, and what is known of them. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/stat.h>

#include "memory/segment.h"
#include "test.h"

#define USER	((void *)0x5678)

static void check_page(char *page, TPPI_PageMode mode, TPPI_NodeId home)
{
	TPPI_PageInfo info;

	CHECK_EQUAL(TPPI_get_page_info(page + 17, &info), 1);
	CHECK_EQUAL(info.mode, mode);
	CHECK_EQUAL(info.home, home);
	CHECK(info.usr_ptr == USER);
	CHECK_EQUAL(TPPI_get_page_mode(page + 4095), mode);
	CHECK_EQUAL(TPPI_get_page_home(page + 1), home);
	CHECK(TPPI_get_page_user_ptr(page + 2) == USER);
}

static void alloc(void)
{
	char here;

	CHECK(TPPI_SEG_SIZE >= (1ul << 30));
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(0), 255, TPPI_Blk_ReadOnly, 77, USER), 1);
	check_page(page_at(0), 255, 77);
	for (char *block = page_at(0); block < page_at(1); block += TPPI_TAG_BLK_SIZE)
		CHECK_EQUAL(TPPI_get_blk_acc(block), TPPI_Blk_ReadOnly);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(0), 0, TPPI_Blk_Invalid, 0, NULL), 0);
	check_page(page_at(0), 255, 77);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(1) + 32, 0, TPPI_Blk_Invalid, 0, NULL), 0);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(1), 0, 4, 0, NULL), 0);
	CHECK_EQUAL(TPPI_alloc_and_map(&here, 0, TPPI_Blk_Invalid, 0, NULL), 0);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(-1), 0, TPPI_Blk_Invalid, 0, NULL), 0);
	CHECK_EQUAL(TPPI_alloc_and_map(TPPI_SEG_BASE + TPPI_SEG_SIZE, 0, TPPI_Blk_Invalid, 0, NULL),
		    0);
	CHECK_EQUAL(TPPI_alloc_and_map(TPPI_SEG_BASE + TPPI_SEG_SIZE - TPPI_PAGE_SIZE, 0,
				       TPPI_Blk_Writable, 0, NULL), 1);
	TPPI_SEG_BASE[TPPI_SEG_SIZE - 1] = 1;
}

static void alloc_up_to_limit(void)
{
	require_setting("HAMLYN_TEMPEST_MEMORY", "12K");
	for (int i = 0; i < 3; i++)
		map_page(page_at(i), 0, TPPI_Blk_Writable);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(3), 0, TPPI_Blk_Writable, 0, NULL), 0);
	CHECK_EQUAL(TPPI_get_page_info(page_at(3), NULL), 0);
	CHECK_EQUAL(TPPI_unmap_and_free(page_at(1)), 1);
	map_page(page_at(3), 0, TPPI_Blk_Writable);
}

static blkcnt_t memory_used(void)
{
	struct stat file;

	CHECK(!fstat(tempest_segment_fd(), &file));
	return file.st_blocks;
}

static void unmap(void)
{
	blkcnt_t before = memory_used();

	CHECK_EQUAL(TPPI_unmap_and_free(page_at(0)), 0);
	map_page(page_at(0), 0, TPPI_Blk_Writable);
	memset(page_at(0), 5, TPPI_PAGE_SIZE);
	CHECK(memory_used() > before);
	CHECK_EQUAL(TPPI_unmap_and_free(page_at(0) + 1), 0);
	CHECK_EQUAL(TPPI_unmap_and_free(page_at(0)), 1);
	CHECK_EQUAL(TPPI_unmap_and_free(page_at(0)), 0);
	CHECK_EQUAL(memory_used(), before);
	CHECK_EQUAL(TPPI_get_blk_acc(page_at(0)), TPPI_Blk_Invalid);
	map_page(page_at(0), 0, TPPI_Blk_ReadOnly);
	for (int i = 0; i < TPPI_PAGE_SIZE; i++)
		CHECK_EQUAL(page_at(0)[i], 0);
}

static void info(void)
{
	TPPI_PageInfo found, *misaligned = (void *)((char *)&found + 1);

	map_page(page_at(0), 3, TPPI_Blk_Invalid);
	CHECK_EQUAL(TPPI_get_page_info(page_at(0) + 1, NULL), 1);
	CHECK_EQUAL(TPPI_get_page_info(page_at(1), NULL), 0);
	CHECK_EQUAL(TPPI_get_page_info(page_at(1), &found), 0);
	CHECK_EQUAL(TPPI_get_page_info(&found, &found), -1);
	CHECK_EQUAL(TPPI_get_page_info(page_at(0), misaligned), -1);
	CHECK_EQUAL(TPPI_get_page_info(TPPI_SEG_BASE + TPPI_SEG_SIZE, &found), -1);
	CHECK_EQUAL(TPPI_get_page_info(NULL, NULL), -1);
}

/* A page with all tags and contents of its own. */
static void make_page(char *page)
{
	static const TPPI_BlkTagChange changes[] = {
		TPPI_Blk_Invalidate, TPPI_Blk_Mark_Busy, TPPI_Blk_Validate_RO,
		TPPI_Blk_Validate_RW,
	};

	CHECK_EQUAL(TPPI_alloc_and_map(page, 9, TPPI_Blk_Writable, 10, USER), 1);
	for (int i = 0; i < TPPI_PAGE_SIZE; i++)
		page[i] = i * 7;
	for (int i = 0; i < TPPI_PAGE_SIZE / TPPI_TAG_BLK_SIZE; i++)
		TPPI_change_blk_acc(page + i * TPPI_TAG_BLK_SIZE, TPPI_TAG_BLK_SIZE,
				    changes[i % 4 == 2 ? 0 : i % 4]);
}

static void check_moved(char *page)
{
	static const TPPI_BlkAccTag tags[] = {
		TPPI_Blk_Invalid, TPPI_Blk_Busy, TPPI_Blk_Invalid, TPPI_Blk_Writable,
	};

	check_page(page, 9, 10);
	for (int i = 0; i < TPPI_PAGE_SIZE / TPPI_TAG_BLK_SIZE; i++)
		CHECK_EQUAL(TPPI_get_blk_acc(page + i * TPPI_TAG_BLK_SIZE), tags[i % 4]);
	TPPI_change_blk_acc(page, TPPI_PAGE_SIZE, TPPI_Blk_Validate_RW);
	for (int i = 0; i < TPPI_PAGE_SIZE; i++)
		CHECK_EQUAL((unsigned char)page[i], (unsigned char)(i * 7));
}

static void remap(void)
{
	make_page(page_at(0));
	map_page(page_at(1), 0, TPPI_Blk_Writable);
	CHECK_EQUAL(TPPI_remap(page_at(0), page_at(1)), 0);
	CHECK_EQUAL(TPPI_remap(page_at(0), page_at(0)), 0);
	CHECK_EQUAL(TPPI_remap(page_at(2), page_at(3)), 0);
	CHECK_EQUAL(TPPI_remap(page_at(0), page_at(2) + 64), 0);
	CHECK_EQUAL(TPPI_remap(page_at(0), TPPI_SEG_BASE + TPPI_SEG_SIZE), 0);
	CHECK_EQUAL(TPPI_get_page_info(page_at(3), NULL), 0);
	CHECK_EQUAL(TPPI_remap(page_at(0), page_at(3)), 1);
	CHECK_EQUAL(TPPI_get_page_info(page_at(0), NULL), 0);
	check_moved(page_at(3));
	/* The old place is as any other */
	map_page(page_at(0), 0, TPPI_Blk_ReadOnly);
	CHECK_EQUAL(page_at(0)[100], 0);
}

/* The system has as many pages as are mapped. */
static void remap_without_memory(void)
{
	tempest_pages_left = 2;
	make_page(page_at(0));
	map_page(page_at(1), 0, TPPI_Blk_Writable);
	CHECK_EQUAL(TPPI_alloc_and_map(page_at(2), 0, TPPI_Blk_Writable, 0, NULL), 0);
	CHECK_EQUAL(TPPI_remap(page_at(0), page_at(2)), 1);
	CHECK_EQUAL(tempest_pages_left, 0);
	check_moved(page_at(2));
}

/* ---- with threads in the page ---- */

static atomic_bool stop;
static atomic_ulong stores;

static void come_back(void *va, int pc, int is_write)
{
	(void)pc;
	(void)is_write;
	/* It is moved back and forth between two places, and is in one of them soon */
	TPPI_resume_va(va, TPPI_PAGE_SIZE);
}

/* Both words of the page are the same whenever it is elsewhere. */
static void *store_both(void *unused)
{
	for (uint32_t i = 0; !stop; i++) {
		*(volatile uint32_t *)page_at(0) = i;
		checked_store(page_at(0) + 2048, i);
		stores++;
	}
	return unused;
}

static void remap_under_stores(void)
{
	int rounds = tempest_control ? 1000000 : 5000 * scale();
	blkcnt_t used;
	pthread_t thread;

	TPPI_register_page_fault_handler(come_back);
	map_page(page_at(0), 0, TPPI_Blk_Writable);
	CHECK(!pthread_create(&thread, NULL, store_both, NULL));
	used = memory_used();
	for (int i = 0; i < rounds; i++) {
		uint32_t first, second;

		CHECK_EQUAL(TPPI_remap(page_at(0), page_at(1)), 1);
		first = *(uint32_t *)tempest_alias((uintptr_t)page_at(1));
		second = *(uint32_t *)tempest_alias((uintptr_t)page_at(1) + 2048);
		CHECK(first - second <= 1);
		for (volatile int pause = 0; pause < 300; pause++)
			;
		/* A late store would have made a page where none is */
		CHECK_EQUAL(memory_used(), used);
		CHECK_EQUAL(*(uint32_t *)tempest_alias((uintptr_t)page_at(1)), first);
		CHECK_EQUAL(*(uint32_t *)tempest_alias((uintptr_t)page_at(1) + 2048), second);
		CHECK_EQUAL(TPPI_remap(page_at(1), page_at(0)), 1);
		for (volatile int pause = 0; pause < (i * 7 & 4095); pause++)
			;
	}
	stop = true;
	pthread_join(thread, NULL);
	CHECK(stores > 0);
}

/* ---- cancellation ---- */

static void *unmap_cancelled(void *page)
{
	pthread_cancel(pthread_self());
	TPPI_unmap_and_free(page);
	TPPI_alloc_and_map(page, 0, TPPI_Blk_Writable, 0, NULL);
	TPPI_remap(page, (char *)page + TPPI_PAGE_SIZE);
	pthread_testcancel();
	failed(__FILE__, __LINE__, "the thread was not cancelled");
}

/* Calls are whole, or not made. */
static void cancelled(void)
{
	pthread_t thread;
	void *result;

	map_page(page_at(0), 0, TPPI_Blk_Writable);
	CHECK(!pthread_create(&thread, NULL, unmap_cancelled, page_at(0)));
	CHECK(!pthread_join(thread, &result));
	CHECK(result == PTHREAD_CANCELED);
	CHECK_EQUAL(TPPI_get_page_info(page_at(0), NULL), 0);
	CHECK_EQUAL(TPPI_get_page_info(page_at(1), NULL), 1);
	map_page(page_at(0), 0, TPPI_Blk_Writable);
	CHECK_EQUAL(TPPI_unmap_and_free(page_at(1)), 1);
}

/* ---- asked meanwhile ---- */

static void *map_and_unmap(void *page)
{
	for (uintptr_t i = 0; i < 2000; i++) {
		CHECK_EQUAL(TPPI_alloc_and_map(page, i & 1, TPPI_Blk_Writable, i & 1, page), 1);
		CHECK_EQUAL(TPPI_unmap_and_free(page), 1);
	}
	stop = true;
	return NULL;
}

static void info_meanwhile(void)
{
	TPPI_PageInfo info;
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, map_and_unmap, page_at(0)));
	while (!stop) {
		if (TPPI_get_page_info(page_at(0), &info) == 1)
			CHECK(info.usr_ptr == page_at(0) && info.mode <= 1 && info.home <= 1);
		CHECK(TPPI_get_page_mode(page_at(0)) <= 1);
		CHECK(TPPI_get_page_home(page_at(0)) <= 1);
	}
	pthread_join(thread, NULL);
}

const struct test tests[] = {
	{ "alloc", alloc, 0, 0, 0 },
	{ "alloc-up-to-limit", alloc_up_to_limit, 0, 0, 0 },
	{ "unmap", unmap, 0, 0, 0 },
	{ "info", info, 0, 0, 0 },
	{ "info-meanwhile", info_meanwhile, 0, 0, 0 },
	{ "cancelled", cancelled, 0, 0, 0 },
	{ "remap", remap, 0, 0, 0 },
	{ "remap-without-memory", remap_without_memory, CONTROL_NO_SPARE, 0, 0 },
	{ "remap-under-stores", remap_under_stores, CONTROL_NO_HANDSHAKE | CONTROL_NO_DRAIN, 0, 0 },
	{ 0 }
};
