// SPDX-License-Identifier: MIT
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/control.h"
#include "base/error.h"
#include "memory/segment.h"

_Atomic uint8_t *tempest_tags, *tempest_whole_tags;
bool tempest_forked;
uintptr_t TPPI_seg_size;

static int memory = -1;

#ifdef TEMPEST_TEST_CONTROLS
_Atomic long tempest_pages_left = LONG_MAX;
#endif

int tempest_segment_fd(void)
{
	return memory;
}

/* Nothing may be there, neither now nor later, not even where the segment is not used. */
static void reserve(uintptr_t address, uintptr_t bytes, const char *what)
{
	void *at = mmap((void *)address, bytes, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);

	if (at == (void *)address)
		return;
	if (at != MAP_FAILED)	/* before Linux 4.17 the flag is a mere hint */
		errno = EEXIST;
	tempest_refuse("%s needs addresses 0x%lx to 0x%lx, which are not free: %s", what,
		       (unsigned long)address, (unsigned long)(address + bytes), strerror(errno));
}

static void map(uintptr_t address, uintptr_t bytes, int flags, int fd, const char *what)
{
	void *at = mmap((void *)address, bytes, PROT_READ | PROT_WRITE,
			flags | MAP_FIXED | MAP_NORESERVE, fd, 0);

	if (at == MAP_FAILED)
		tempest_refuse("%s cannot be mapped: %s", what, strerror(errno));
}

/* The file is the parent's: a child that returned a page would take it from there. */
static void after_fork(void)
{
	tempest_forked = true;
	close(memory);
	memory = -1;
}

/*
 * A child would share the segment's memory, but nothing that guards it. Its checked
 * accesses find no tag that allows them, and trap; trap.c says why.
 */
static void not_for_children(uintptr_t size, uintptr_t tag_bytes, uintptr_t whole_bytes)
{
	if (madvise((void *)SEGMENT_BASE, size, MADV_DONTFORK) ||
	    madvise(tempest_alias(SEGMENT_BASE), size, MADV_DONTFORK) ||
	    madvise((void *)TEMPEST_TAG_BASE, tag_bytes, MADV_WIPEONFORK) ||
	    madvise((void *)TEMPEST_WHOLE_BASE, whole_bytes, MADV_WIPEONFORK))
		tempest_refuse("the segment cannot be kept from children: %s", strerror(errno));
	if (pthread_atfork(NULL, NULL, after_fork))
		tempest_refuse("no memory");
}

void tempest_segment_start(uintptr_t size, bool checked)
{
	/* The last byte of an access may be beyond the end of the segment: one page more */
	uintptr_t tag_bytes = (SEGMENT_MOST >> TEMPEST_TAG_SHIFT) + PAGE_BYTES;
	uintptr_t whole_bytes = (SEGMENT_MOST >> TPPI_PAGE_SHIFT) + PAGE_BYTES;

	memory = memfd_create("tempest", MFD_CLOEXEC);
	if (memory < 0 || ftruncate(memory, size))
		tempest_refuse("no memory file for the segment: %s", strerror(errno));
	reserve(SEGMENT_BASE, SEGMENT_MOST, "the segment");
	reserve(SEGMENT_BASE + TEMPEST_ALIAS_OFFSET, SEGMENT_MOST, "the segment's alias");
	reserve(TEMPEST_TAG_BASE, tag_bytes, "the table of tags");
	reserve(TEMPEST_WHOLE_BASE, whole_bytes, "the table of whole pages");
	map(SEGMENT_BASE, size, MAP_SHARED, memory, "the segment");
	map(SEGMENT_BASE + TEMPEST_ALIAS_OFFSET, size, MAP_SHARED, memory, "the segment's alias");
	map(TEMPEST_TAG_BASE, tag_bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1, "the table of tags");
	map(TEMPEST_WHOLE_BASE, whole_bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	    "the table of whole pages");
	not_for_children(size, tag_bytes, whole_bytes);
	tempest_tags = (_Atomic uint8_t *)TEMPEST_TAG_BASE;
	/* Unless every access is to trap */
	tempest_whole_tags = checked ? (_Atomic uint8_t *)TEMPEST_WHOLE_BASE : NULL;
	if (!checked) {
		tempest_tags = mmap(NULL, size >> TEMPEST_TAG_SHIFT, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (tempest_tags == MAP_FAILED ||
		    madvise((void *)tempest_tags, size >> TEMPEST_TAG_SHIFT, MADV_WIPEONFORK))
			tempest_refuse("no memory for the tags: %s", strerror(errno));
	}
	TPPI_seg_size = size;
}

/* No place to be cancelled at: quiet.h. */
static long allocate(int mode, uintptr_t page)
{
	long result;

	do
		result = syscall(SYS_fallocate, memory, mode, page - SEGMENT_BASE, PAGE_BYTES);
	while (result && errno == EINTR);
	return result;
}

bool tempest_segment_take(uintptr_t page)
{
	return !CONTROL_NO_PAGE() && !allocate(0, page);
}

void tempest_segment_drop(uintptr_t page)
{
	if (allocate(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, page))
		tempest_die("a page's memory cannot be returned: %s", strerror(errno));
	CONTROL_PAGE_BACK();
}
