// SPDX-License-Identifier: MIT
/*
 * Pages by mprotect(), where userfaultfd is denied. Open pages between closed ones cost
 * mappings, of which a process has a limited number.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/error.h"
#include "memory/view.h"

/*
 * Each makes two more mappings at most; by default a process has 65530. When there are
 * so many, all are closed: then all of the segment is one mapping again.
 */
#define MOST_OPEN	16384

static unsigned int number_open;

static const char *start(void)
{
	return mprotect((void *)SEGMENT_BASE, TPPI_seg_size, PROT_NONE) ? strerror(errno) : NULL;
}

static bool open_page(uintptr_t page, uint8_t tag)
{
	int rights = PROT_READ | (tag == TPPI_Blk_Writable ? PROT_WRITE : 0);

	/* It remains closed if there is no mapping left for it */
	if (number_open >= MOST_OPEN || mprotect((void *)page, PAGE_BYTES, rights))
		return false;
	number_open++;
	return true;
}

static bool close_page(uintptr_t page)
{
	if (number_open < MOST_OPEN && !mprotect((void *)page, PAGE_BYTES, PROT_NONE)) {
		number_open--;
		return false;
	}
	/* To close a page within an open range takes a mapping more; this never does */
	if (mprotect((void *)SEGMENT_BASE, TPPI_seg_size, PROT_NONE))
		tempest_die("the segment cannot be closed: %s", strerror(errno));
	number_open = 0;
	return true;
}

const struct tempest_view_ops tempest_view_mprotect = {
	.name = "mprotect",
	.locks = 1,
	.start = start,
	.open = open_page,
	.close = close_page,
};
