// SPDX-License-Identifier: MIT
#include <string.h>

#include "base/array.h"
#include "base/control.h"
#include "base/error.h"
#include "base/lock.h"
#include "memory/page.h"
#include "memory/view.h"

#define LOCKS	256

static const struct tempest_view_ops *ops;

/* A page's "open" is written under the lock that it shares with others. */
static struct tempest_lock locks[LOCKS];

static struct tempest_lock *lock_of(uintptr_t page)
{
	return &locks[(page >> TPPI_PAGE_SHIFT) & (ops->locks - 1)];
}

void tempest_view_start(const char *name)
{
	static const struct tempest_view_ops *const ways[] = {
		&tempest_view_userfaultfd,
		&tempest_view_mprotect,
	};
	const char *why = "there is no such way";

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		if (name && strcmp(name, ways[i]->name))
			continue;
		ops = ways[i];
		why = ops->start();
		if (!why)
			return;
	}
	tempest_refuse("the segment cannot be closed by %s: %s", name ? name : "any means", why);
}

/* Or any that is less than what is needed. */
static uint8_t lowest_tag(uintptr_t page, uint8_t need)
{
	const _Atomic uint8_t *tags = tempest_tag(page);
	uint8_t lowest = TPPI_Blk_Writable;

	for (int i = 0; i < BLOCKS_A_PAGE; i++) {
		uint8_t tag = atomic_load_explicit(&tags[i], memory_order_relaxed);

		if (tag < need)
			return tag;
		if (tag < lowest)
			lowest = tag;
	}
	return lowest;
}

static void shut(uintptr_t page)
{
	if (ops->close(page)) {
		/* Most have never been used, and reading them takes no memory */
		for (uintptr_t i = 0; i < TPPI_seg_size >> TPPI_PAGE_SHIFT; i++) {
			if (tempest_pages[i].open)
				tempest_pages[i].open = 0;
		}
	}
	tempest_page(page)->open = 0;
}

/*
 * The page is marked before the tags are read for the last time. A downgrade stores the
 * tag before it looks for the mark: it waits for the lock and closes, or is seen here.
 */
static bool open_locked(uintptr_t page, uint8_t need)
{
	_Atomic uint8_t *open = &tempest_page(page)->open;
	uint8_t tag = lowest_tag(page, need);

	if (tag < need)
		return false;
	if (*open >= need)
		return !ops->reopen || CONTROL(CONTROL_NO_REOPEN) || ops->reopen(page, *open);
	if (*open)
		shut(page);
	*open = tag;
	atomic_thread_fence(memory_order_seq_cst);
	if (lowest_tag(page, tag) >= tag && ops->open(page, tag)) {
		tempest_tell_whole(page, tag);
		return true;
	}
	*open = 0;
	return false;
}

bool tempest_view_open(uintptr_t page, uint8_t need)
{
	struct tempest_lock *lock = lock_of(page);
	bool opened;

	/* Most pages that trap are mixed: no lock for those */
	if (lowest_tag(page, need) < need)
		return false;
	tempest_lock(lock);
	opened = tempest_mapped(page) && open_locked(page, need);
	tempest_unlock(lock);
	return opened;
}

void tempest_view_close(uintptr_t page, uint8_t tag)
{
	struct tempest_lock *lock = lock_of(page);

	tempest_lock(lock);
	if (tempest_page(page)->open > tag)
		shut(page);
	tempest_unlock(lock);
}
