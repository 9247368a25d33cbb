// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdalign.h>
#include <string.h>
#include <sys/mman.h>

#include "base/control.h"
#include "base/error.h"
#include "base/quiet.h"
#include "memory/block.h"
#include "memory/page.h"
#include "node/channel.h"

struct tempest_page *tempest_pages;

#define SPINS	1000

#ifdef TEMPEST_TEST_CONTROLS
void (*tempest_owned)(void);
#endif

static _Atomic uintptr_t memory_left;

/*
 * TPPI_remap() needs a page for a moment, and must not fail for want of one. Its own
 * lock, so that two calls do not count on the same reserve.
 */
static struct tempest_lock remap_lock;
static char reserve[TPPI_PAGE_SIZE] __attribute__((aligned(TPPI_PAGE_SIZE)));

void tempest_page_start(uintptr_t limit)
{
	size_t bytes = (TPPI_seg_size >> TPPI_PAGE_SHIFT) * sizeof(struct tempest_page);

	tempest_pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (tempest_pages == MAP_FAILED)
		tempest_refuse("no memory for the table of pages: %s", strerror(errno));
	memory_left = limit & ~(PAGE_BYTES - 1);
	/* Present from now on, however short memory becomes */
	memset(reserve, 1, sizeof(reserve));
}

void tempest_check_mapped(uintptr_t va, size_t bytes, const char *call)
{
	uintptr_t last = va + bytes - 1;

	if (!bytes)
		return;
	if (!tempest_inside(va) || !tempest_inside(last) || last < va)
		tempest_die("%s: %zu bytes at %p are not in the segment", call, bytes, (void *)va);
	for (uintptr_t page = tempest_page_of(va); page <= last; page += PAGE_BYTES) {
		if (!tempest_mapped(page))
			tempest_die("%s: %p is not mapped", call, (void *)page);
	}
}

bool tempest_settle(uintptr_t va, size_t bytes)
{
	uintptr_t last = va + bytes - 1;

	if (!bytes || !tempest_inside(va) || !tempest_inside(last) || last < va)
		return false;
	for (uintptr_t page = tempest_page_of(va); page <= last; page += PAGE_BYTES) {
		tempest_page_settle(tempest_page(page));
		if (!tempest_mapped(page))
			return false;
	}
	return true;
}

/* The page's entry if @pg is where a page can be. */
static struct tempest_page *at(const void *pg)
{
	uintptr_t va = (uintptr_t)pg;

	return tempest_inside(va) && va % PAGE_BYTES == 0 ? tempest_page(va) : NULL;
}

void tempest_page_settle(const struct tempest_page *page)
{
	for (unsigned int i = 0; page->state == PAGE_MOVING; i++) {
		if (i < SPINS)
			__builtin_ia32_pause();
		else
			tempest_nap(20000);
	}
}

/* Become the page's owner if it is in this state, else tell in which one it is. */
static bool try_own(struct tempest_page *page, uint8_t *state)
{
	return atomic_compare_exchange_strong(&page->state, state, PAGE_MOVING);
}

/*
 * The same, after whoever owns it now: what it will be is not known before. What decides is
 * the state that was found, as the owner may publish the next one just then.
 */
static bool own(struct tempest_page *page, uint8_t state)
{
	uint8_t found;

	if (!page)
		return false;
	while (found = state, !try_own(page, &found)) {
		if (found != PAGE_MOVING)
			return false;
		tempest_page_settle(page);
	}
	return true;
}

/* A page's tags, eight by one load or store: others look at them meanwhile, checked code too. */
#define TAG_WORDS	(BLOCKS_A_PAGE / sizeof(uint64_t))
#define EACH_BYTE	UINT64_C(0x0101010101010101)

static uint64_t *tag_words(uintptr_t page)
{
	return (uint64_t *)tempest_tag(page);
}

static void fill_tags(uintptr_t page, uint8_t tag)
{
	for (size_t i = 0; i < TAG_WORDS; i++)
		__atomic_store_n(&tag_words(page)[i], tag * EACH_BYTE, __ATOMIC_RELAXED);
}

static void load_tags(uintptr_t page, uint64_t *tags)
{
	for (size_t i = 0; i < TAG_WORDS; i++)
		tags[i] = __atomic_load_n(&tag_words(page)[i], __ATOMIC_RELAXED);
}

static void store_tags(uintptr_t page, const uint64_t *tags)
{
	for (size_t i = 0; i < TAG_WORDS; i++)
		__atomic_store_n(&tag_words(page)[i], tags[i], __ATOMIC_RELAXED);
}

static void publish(struct tempest_page *page, uint8_t state)
{
	atomic_store_explicit(&page->state, state, memory_order_release);
}

static bool charge(void)
{
	uintptr_t left = memory_left;

	do {
		if (left < PAGE_BYTES)
			return false;
	} while (!atomic_compare_exchange_weak(&memory_left, &left, left - PAGE_BYTES));
	return true;
}

static void uncharge(void)
{
	atomic_fetch_add(&memory_left, PAGE_BYTES);
}

int TPPI_alloc_and_map(void *pg, TPPI_PageMode mode, TPPI_BlkAccTag acc, TPPI_NodeId home,
		       void *usr_ptr)
{
	TPPI_PageInfo info = { .mode = mode, .usr_ptr = usr_ptr, .home = home };
	struct tempest_page *page = at(pg);

	QUIET();
	if (tempest_forked || (unsigned int)acc > TPPI_MAX_BLK_ACC_TAG || !own(page, PAGE_FREE))
		return 0;
	if (!charge()) {
		publish(page, PAGE_FREE);
		return 0;
	}
	if (!tempest_segment_take((uintptr_t)pg)) {
		uncharge();
		publish(page, PAGE_FREE);
		return 0;
	}
	tempest_page_describe(page, info);
	/* With the tags checked code comes in: they follow the memory */
	atomic_thread_fence(memory_order_release);
	fill_tags((uintptr_t)pg, acc);
	tempest_tell_whole((uintptr_t)pg, acc);
	publish(page, PAGE_MAPPED);
	return 1;
}

/* Nobody is in the page any more, and nobody enters it. */
static void evacuate(uintptr_t page)
{
	tempest_block_lower(page, PAGE_BYTES, TPPI_Blk_Invalid);
}

/*
 * Buffers of channels stay where they are. A channel is listed before it looks which pages are
 * mapped, and waits for those that are owned: one of the two sees the other. The first look is
 * for the sender's sake, which takes a page that is owned for one that is not mapped.
 */
static bool is_held(void *pg)
{
	return at(pg) && !CONTROL(CONTROL_NO_HOLD) && tempest_channel_holds((uintptr_t)pg);
}

int TPPI_unmap_and_free(void *pg)
{
	struct tempest_page *page = at(pg);

	QUIET();
	if (tempest_forked || is_held(pg) || !own(page, PAGE_MAPPED))
		return 0;
	CONTROL_OWNED();
	if (is_held(pg)) {
		publish(page, PAGE_MAPPED);
		return 0;
	}
	evacuate((uintptr_t)pg);
	tempest_segment_drop((uintptr_t)pg);
	uncharge();
	publish(page, PAGE_FREE);
	return 1;
}

/*
 * Memory for the new place. If there is none, that of the old one: its contents wait in
 * the reserve until the system has given back a page that this process has just returned.
 */
static bool move_memory(uintptr_t from, uintptr_t to)
{
	if (tempest_segment_take(to)) {
		memcpy(tempest_alias(to), tempest_alias(from), PAGE_BYTES);
		tempest_segment_drop(from);
		return true;
	}
	if (CONTROL(CONTROL_NO_SPARE))
		return false;
	memcpy(reserve, tempest_alias(from), PAGE_BYTES);
	tempest_segment_drop(from);
	while (!tempest_segment_take(to))
		tempest_nap(100000);
	memcpy(tempest_alias(to), reserve, PAGE_BYTES);
	return true;
}

/* Both or none. An owner that waited for another one could wait for it in turn. */
static bool own_both(struct tempest_page *new, struct tempest_page *old)
{
	while (old && own(new, PAGE_FREE)) {
		uint8_t found = PAGE_MAPPED;

		if (try_own(old, &found))
			return true;
		publish(new, PAGE_FREE);
		if (old == new || found == PAGE_FREE)
			return false;
		tempest_page_settle(old);
	}
	return false;
}

int TPPI_remap(void *old_pg, void *new_pg)
{
	struct tempest_page *old = at(old_pg), *new = at(new_pg);
	uint64_t tags[TAG_WORDS];
	bool moved;

	QUIET();
	if (tempest_forked || is_held(old_pg) || !own_both(new, old))
		return 0;
	if (is_held(old_pg)) {
		publish(new, PAGE_FREE);
		publish(old, PAGE_MAPPED);
		return 0;
	}
	load_tags((uintptr_t)old_pg, tags);
	evacuate((uintptr_t)old_pg);
	tempest_lock(&remap_lock);
	moved = move_memory((uintptr_t)old_pg, (uintptr_t)new_pg);
	tempest_unlock(&remap_lock);
	if (!moved) {
		publish(new, PAGE_FREE);
		publish(old, PAGE_MAPPED);
		return 0;
	}
	tempest_page_describe(new, tempest_page_info(old));
	atomic_thread_fence(memory_order_release);
	store_tags((uintptr_t)new_pg, tags);
	publish(old, PAGE_FREE);
	publish(new, PAGE_MAPPED);
	return 1;
}

int TPPI_get_page_info(void *va, TPPI_PageInfo *info_ptr)
{
	if (!tempest_inside((uintptr_t)va) || (uintptr_t)info_ptr % alignof(TPPI_PageInfo))
		return -1;
	if (tempest_forked)
		return 0;
	tempest_page_settle(tempest_page((uintptr_t)va));
	if (!tempest_mapped((uintptr_t)va))
		return 0;
	if (info_ptr)
		*info_ptr = tempest_page_info(tempest_page((uintptr_t)va));
	return 1;
}

/* Outside the segment: whatever a free page would say. */
static const struct tempest_page *known(const void *va)
{
	static const struct tempest_page none;

	return tempest_inside((uintptr_t)va) ? tempest_page((uintptr_t)va) : &none;
}

void *TPPI_get_page_user_ptr(void *va)
{
	return atomic_load_explicit(&known(va)->usr_ptr, memory_order_relaxed);
}

TPPI_PageMode TPPI_get_page_mode(void *va)
{
	return atomic_load_explicit(&known(va)->mode, memory_order_relaxed);
}

TPPI_NodeId TPPI_get_page_home(void *va)
{
	return atomic_load_explicit(&known(va)->home, memory_order_relaxed);
}
