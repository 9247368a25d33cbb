/* SPDX-License-Identifier: MIT */
/* The table of user-managed pages. */
#ifndef TEMPEST_PAGE_H
#define TEMPEST_PAGE_H

#include "base/lock.h"
#include "memory/segment.h"

enum {
	PAGE_FREE,
	PAGE_MOVING,	/* owned by the call that maps, unmaps or moves it */
	PAGE_MAPPED,
};

/*
 * @state: an owner sets it to PAGE_MAPPED when all else is written, and to PAGE_MOVING
 *	before it takes anything away
 * @open: tag that all its blocks have at least, if the application view is open; see
 *	view.c for who writes it
 * @mode, @home, @usr_ptr: as mapped; others may ask while an owner writes them
 */
struct tempest_page {
	_Atomic uint8_t state;
	_Atomic uint8_t open;
	_Atomic TPPI_PageMode mode;
	_Atomic TPPI_NodeId home;
	void *_Atomic usr_ptr;
};

static inline TPPI_PageInfo tempest_page_info(const struct tempest_page *page)
{
	return (TPPI_PageInfo){
		.mode = atomic_load_explicit(&page->mode, memory_order_relaxed),
		.usr_ptr = atomic_load_explicit(&page->usr_ptr, memory_order_relaxed),
		.home = atomic_load_explicit(&page->home, memory_order_relaxed),
	};
}

static inline void tempest_page_describe(struct tempest_page *page, TPPI_PageInfo info)
{
	atomic_store_explicit(&page->mode, info.mode, memory_order_relaxed);
	atomic_store_explicit(&page->home, info.home, memory_order_relaxed);
	atomic_store_explicit(&page->usr_ptr, info.usr_ptr, memory_order_relaxed);
}

extern struct tempest_page *tempest_pages;

/**
 * tempest_page_start() - make the table
 * @limit: bytes of memory that pages may have
 */
void tempest_page_start(uintptr_t limit);

/* Of an address inside the segment. */
static inline struct tempest_page *tempest_page(uintptr_t va)
{
	return &tempest_pages[(va - SEGMENT_BASE) >> TPPI_PAGE_SHIFT];
}

static inline bool tempest_mapped(uintptr_t va)
{
	return atomic_load_explicit(&tempest_page(va)->state, memory_order_acquire) ==
	       PAGE_MAPPED;
}

/* Wait until nobody is about to map, unmap or move it; owners wait for no other page. */
void tempest_page_settle(const struct tempest_page *page);

/* Is all of it in mapped pages, once nobody is about to map or unmap them? Not under a lock. */
bool tempest_settle(uintptr_t va, size_t bytes);

/* Ends the program, naming @call, unless all of it is in mapped pages. */
void tempest_check_mapped(uintptr_t va, size_t bytes, const char *call);

#endif /* TEMPEST_PAGE_H */
