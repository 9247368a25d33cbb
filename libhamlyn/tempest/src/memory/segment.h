/* SPDX-License-Identifier: MIT */
/*
 * The segment: one memfd in two views, and its tags.
 *
 * A page's place in the file is that in the segment, so mappings are made once. The
 * application view at the segment's own addresses is closed except for pages that view.h
 * has opened; the alias view, which checked accesses and the library use, is always open.
 */
#ifndef TEMPEST_SEGMENT_H
#define TEMPEST_SEGMENT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/abi.h"
#include "base/control.h"
#include "base/error.h"
#include "tempest.h"

#define SEGMENT_BASE	((uintptr_t)TEMPEST_SEGMENT_BASE)
#define SEGMENT_MOST	((uintptr_t)1 << TEMPEST_SEGMENT_SHIFT)
#define SEGMENT_LEAST	((uintptr_t)1 << 30)
#define PAGE_BYTES	((uintptr_t)TPPI_PAGE_SIZE)
#define BLOCKS_A_PAGE	(TPPI_PAGE_SIZE / TPPI_TAG_BLK_SIZE)

/* Of the segment's first block; TEMPEST_TAG_BASE unless every access is to trap. */
extern _Atomic uint8_t *tempest_tags;

/* Of the segment's first page: what loops are told, or NULL if every access is to trap. */
extern _Atomic uint8_t *tempest_whole_tags;

/* True in a process that was forked: it has neither views nor a protocol thread. */
extern bool tempest_forked;

/* Ends a forked child, naming @call: what it has of the library is its parent's. */
static inline void tempest_not_by_child(const char *call)
{
	if (__builtin_expect(tempest_forked, false))
		tempest_die("%s: a forked child has no segment", call);
}

/* QUIET() of calls that change, send or wait; see quiet.h. */
#define QUIET_CALL()	\
	tempest_not_by_child(__func__); \
	QUIET()

/**
 * tempest_segment_start() - make the views and the table of tags
 * @size: bytes of the segment
 * @checked: may instrumented code see the tags?
 */
void tempest_segment_start(uintptr_t size, bool checked);

/* Give a page memory; false if there is none. */
bool tempest_segment_take(uintptr_t page);

/* Return a page's memory. */
void tempest_segment_drop(uintptr_t page);

static inline bool tempest_inside(uintptr_t va)
{
	return va - SEGMENT_BASE < TPPI_seg_size;
}

static inline uintptr_t tempest_page_of(uintptr_t va)
{
	return va & ~(PAGE_BYTES - 1);
}

static inline _Atomic uint8_t *tempest_tag(uintptr_t va)
{
	return tempest_tags + ((va - SEGMENT_BASE) >> TEMPEST_TAG_SHIFT);
}

/*
 * All blocks of the page have at least this tag, or not any more: loops that believe it may be
 * wrong, and are trapped then. So it is read and written in no order with anything else.
 */
static inline uint8_t tempest_whole(uintptr_t page)
{
	size_t number = (page - SEGMENT_BASE) >> TPPI_PAGE_SHIFT;

	return tempest_whole_tags ?
		atomic_load_explicit(&tempest_whole_tags[number], memory_order_relaxed) : 0;
}

static inline void tempest_set_whole(uintptr_t page, uint8_t tag)
{
	size_t number = (page - SEGMENT_BASE) >> TPPI_PAGE_SHIFT;

	if (tempest_whole_tags)
		atomic_store_explicit(&tempest_whole_tags[number], tag, memory_order_relaxed);
}

/* What all of a page's blocks have, for loops: nothing, if it allows nothing. */
static inline void tempest_tell_whole(uintptr_t page, uint8_t tag)
{
	if (tag >= TPPI_Blk_ReadOnly && !CONTROL(CONTROL_NOT_TOLD))
		tempest_set_whole(page, tag);
}

static inline void *tempest_alias(uintptr_t va)
{
	return (void *)(va + TEMPEST_ALIAS_OFFSET);
}

/* Lowest tag with which the access is no conflict. */
static inline uint8_t tempest_need(bool write)
{
	return write ? TPPI_Blk_Writable : TPPI_Blk_ReadOnly;
}

int tempest_segment_fd(void);

#endif /* TEMPEST_SEGMENT_H */
