// SPDX-License-Identifier: MIT
/*
 * What a block's tag means in a page of another home:
 *
 *	Invalid		there is no copy
 *	Busy		one was asked for
 *	ReadOnly	a copy; if marked as upgrading, more was asked for
 *	Writable	the block is here alone
 *
 * A page from which something was asked is not replaced until that has come.
 */
#include <stdbool.h>
#include <stdlib.h>

#include "block.h"
#include "control.h"
#include "copy.h"
#include "error.h"
#include "figures.h"
#include "home.h"
#include "move.h"
#include "settings.h"

#define MOST_BLOCKS	(TPPI_PAGE_SIZE / TPPI_TAG_BLK_SIZE)

/**
 * struct copy_page - a page of another home
 * @next: the one that was mapped after it
 * @start: its address
 * @bytes: of its blocks
 * @asked: how many of them were asked for, and have not come
 * @upgrading: those that are ReadOnly of these, a bit for each
 */
struct copy_page {
	struct copy_page *next;
	void *start;
	int bytes;
	unsigned int asked;
	uint64_t upgrading[MOST_BLOCKS / 64];
};

/* All, in the order in which they were mapped. */
static struct copy_page *pages, **pages_end = &pages;

static uint64_t *upgrading(struct copy_page *page, const void *va, uint64_t *mask)
{
	unsigned int index = stache_block_index(va, page->bytes);

	*mask = UINT64_C(1) << index % 64;
	return &page->upgrading[index / 64];
}

static bool is_upgrading(struct copy_page *page, const void *va)
{
	uint64_t mask, *word = upgrading(page, va, &mask);

	return *word & mask;
}

static void mark(struct copy_page *page, const void *va, bool is)
{
	uint64_t mask, *word = upgrading(page, va, &mask);

	*word = is ? *word | mask : *word & ~mask;
}

/* ---- replacement ---- */

static void write_back(const struct copy_page *page, TPPI_NodeId home)
{
	static const char nothing[TPPI_PAGE_SIZE];
	char *start = page->start;

	for (char *va = start; va < start + TPPI_PAGE_SIZE; va += page->bytes) {
		if (TPPI_get_blk_acc(va) != TPPI_Blk_Writable)
			continue;
		stache_add(&stache_counted.written_back, 1);
		if (CONTROL(CONTROL_NO_WRITE_BACK))
			TPPI_change_blk_acc_and_copy(va, page->bytes, TPPI_Blk_No_Tag_Change,
						     (void *)nothing);
		stache_move_out(home, stache_home_put, stache_block_name(va, page->bytes), 0,
				page->bytes, TPPI_Blk_Invalidate);
	}
}

static void unmap(struct copy_page **at)
{
	struct copy_page *page = *at;

	write_back(page, TPPI_get_page_home(page->start));
	/* Copies go without a word; the home may ask for them in vain */
	TPPI_unmap_and_free(page->start);
	*at = page->next;
	if (!*at)
		pages_end = at;
	free(page);
	stache_add(&stache_counted.pages, -1);
	stache_add(&stache_counted.replaced, 1);
}

/* The oldest page that waits for nothing. */
bool stache_copy_replace(void)
{
	struct copy_page **at = &pages;

	while (*at && (*at)->asked)
		at = &(*at)->next;
	if (!*at)
		return false;
	unmap(at);
	return true;
}

static void add(struct copy_page *page)
{
	*pages_end = page;
	pages_end = &page->next;
	stache_add(&stache_counted.pages, 1);
}

void stache_copy_map(void *start, TPPI_NodeId home, int block_bytes)
{
	struct copy_page *page = calloc(1, sizeof(*page));

	if (!page)
		stache_die("no memory for a page's record");
	page->start = start;
	page->bytes = block_bytes;
	/* Of what is asked for there is as much as there are threads: that may exceed the limit */
	while (stache_counted.pages >= stache_settings.most_pages && stache_copy_replace())
		;
	while (!TPPI_alloc_and_map(start, stache_mode_copy(), TPPI_Blk_Invalid, home, page)) {
		if (!stache_copy_replace())
			stache_die("no memory for the page at %p", start);
	}
	add(page);
}

/* ---- faults ---- */

static void ask(struct copy_page *page, void *va, TPPI_NodeId home, enum stache_want want)
{
	page->asked++;
	TPPI_send_WWW(home, stache_home_request, stache_block_name(va, page->bytes), want,
		      page->bytes);
}

static void fault_invalid(struct copy_page *page, void *va, TPPI_NodeId home,
			  enum stache_want want)
{
	stache_add(&stache_counted.fetches, 1);
	TPPI_change_blk_acc(va, page->bytes, TPPI_Blk_Invalid_To_Busy);
	ask(page, va, home, want);
}

static void read_invalid(void *va, void *page, TPPI_NodeId home)
{
	fault_invalid(page, va, home, WANT_READ);
}

static void write_invalid(void *va, void *page, TPPI_NodeId home)
{
	fault_invalid(page, va, home, WANT_WRITE);
}

static void write_read_only(void *va, void *page, TPPI_NodeId home)
{
	if (is_upgrading(page, va))
		return;
	stache_add(&stache_counted.upgrades, 1);
	mark(page, va, true);
	ask(page, va, home, WANT_UPGRADE);
}

/* What comes resumes all threads that wait for the block; those it does not suit ask again. */
static void wait_for_it(void *va, void *page, TPPI_NodeId home)
{
	(void)va;
	(void)page;
	(void)home;
}

/* ---- answers ---- */

/* The page of a block if it is mapped: it may have been replaced. */
static struct copy_page *page_of(void *va)
{
	TPPI_PageInfo info;

	return TPPI_get_page_info(va, &info) == 1 ? info.usr_ptr : NULL;
}

/* A page of which something was asked is not replaced. */
static void *receive_name(struct copy_page **page)
{
	void *va = stache_block_va(TPPI_recv_W());

	*page = page_of(va);
	if (!*page)
		stache_die("an answer for %p, of which nothing was asked", va);
	return va;
}

static void came(struct copy_page *page, void *va)
{
	page->asked--;
	mark(page, va, false);
	TPPI_resume_va(va, page->bytes);
}

static void receive_block(TPPI_BlkTagChange change)
{
	struct copy_page *page;
	void *va = receive_name(&page);

	TPPI_recv_W();
	stache_move_in(va, page->bytes, change);
	came(page, va);
}

void stache_copy_readable(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	receive_block(TPPI_Blk_Validate_RO);
}

void stache_copy_writable(TPPI_NodeId src, int size)
{
	(void)src;
	(void)size;
	receive_block(TPPI_Blk_Validate_RW);
}

void stache_copy_upgraded(TPPI_NodeId src, int size)
{
	struct copy_page *page;
	void *va = receive_name(&page);

	(void)src;
	(void)size;
	TPPI_change_blk_acc(va, page->bytes, TPPI_Blk_Upgrade_RW);
	came(page, va);
}

/* ---- what others need ---- */

static void drop(void *va)
{
	struct copy_page *page = page_of(va);

	if (!page || TPPI_get_blk_acc(va) != TPPI_Blk_ReadOnly)
		return;
	/* An upgrade that was asked for will come as a block */
	TPPI_change_blk_acc(va, page->bytes, is_upgrading(page, va) ? TPPI_Blk_Mark_Busy :
								     TPPI_Blk_Invalidate);
	mark(page, va, false);
}

void stache_copy_invalidate(TPPI_NodeId src, int size)
{
	int name = TPPI_recv_W();
	void *va = stache_block_va(name);

	(void)size;
	/* Nobody waits: on a slow network this is what comes of it */
	if (CONTROL(CONTROL_NO_ACKS))
		TPPI_schedule_timer(1000, drop, va);
	else
		drop(va);
	stache_add(&stache_counted.invalidations, 1);
	TPPI_send_W(src, stache_home_ack, name);
}

void stache_copy_recall(TPPI_NodeId src, int size)
{
	int name = TPPI_recv_W(), keep = TPPI_recv_W();
	void *va = stache_block_va(name);
	struct copy_page *page = page_of(va);
	TPPI_BlkTagChange change = keep ? TPPI_Blk_Downgrade_RO : TPPI_Blk_Invalidate;

	(void)size;
	/* Sent back already, as the page was replaced: the home takes that for the answer */
	if (!page || TPPI_get_blk_acc(va) != TPPI_Blk_Writable)
		return;
	if (keep && CONTROL(CONTROL_KEEP_RECALLED))
		change = TPPI_Blk_No_Tag_Change;
	stache_add(&stache_counted.recalls, 1);
	stache_move_out(src, stache_home_put, name, keep, page->bytes, change);
}

void stache_copy_start(void)
{
	TPPI_PageMode mode = stache_mode_copy();

	TPPI_register_blk_acc_fault_handler(mode, TPPI_Blk_Invalid, TPPI_ReadAccess, read_invalid);
	TPPI_register_blk_acc_fault_handler(mode, TPPI_Blk_Invalid, TPPI_WriteAccess,
					    write_invalid);
	TPPI_register_blk_acc_fault_handler(mode, TPPI_Blk_Busy, TPPI_ReadAccess, wait_for_it);
	TPPI_register_blk_acc_fault_handler(mode, TPPI_Blk_Busy, TPPI_WriteAccess, wait_for_it);
	TPPI_register_blk_acc_fault_handler(mode, TPPI_Blk_ReadOnly, TPPI_WriteAccess,
					    write_read_only);
}
