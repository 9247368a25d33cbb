// SPDX-License-Identifier: MIT
/* Huge pages: mapping so that they can be used, and which there are. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "low/device.h"

#define THP_SIZE	"/sys/kernel/mm/transparent_hugepage/hpage_pmd_size"
#define SMAPS		"/proc/self/smaps"

/* What the kernel maps by one entry, or 0 if it has no such pages. */
size_t h__huge_page_size(void)
{
	static size_t known = 1;
	size_t size = __atomic_load_n(&known, __ATOMIC_RELAXED);
	unsigned long read = 0;
	FILE *f;

	if (size != 1)
		return size;
	f = fopen(THP_SIZE, "re");
	if (f) {
		if (fscanf(f, "%lu", &read) != 1 || read & (read - 1))
			read = 0;
		fclose(f);
	}
	__atomic_store_n(&known, (size_t)read, __ATOMIC_RELAXED);
	return read;
}

/*
 * Shared, to read and write, at a multiple of the size of huge pages. Room for
 * it is kept by a mapping of nothing, whose ends are given back.
 */
void *h__map_aligned(size_t length, int fd, uint64_t offset, int flags)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t align = h__huge_page_size();
	int prot = PROT_READ | PROT_WRITE;
	char *room, *p;
	size_t lead;

	flags |= MAP_SHARED;
	if (align <= page || length < align)
		return mmap(NULL, length, prot, flags, fd, (off_t)offset);
	length = (length + page - 1) & ~(page - 1);
	room = mmap(NULL, length + align, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (room == MAP_FAILED)
		return MAP_FAILED;
	lead = -(uintptr_t)room & (align - 1);
	p = mmap(room + lead, length, prot, flags | MAP_FIXED, fd,
		 (off_t)offset);
	if (p == MAP_FAILED) {
		int err = errno;

		munmap(room, length + align);
		errno = err;
		return MAP_FAILED;
	}
	if (lead)
		munmap(room, lead);
	munmap(p + length, align - lead);
	return p;
}

/* ---- which there are ---- */

/* One mapping of /proc/self/smaps; sizes in KiB. */
struct vma {
	unsigned long start;
	unsigned long end;
	unsigned long kernel_page;
	unsigned long by_pmd;
};

/* The next mapping of @f, whose first line is in @line if there is one. */
static bool next_vma(FILE *f, char *line, size_t room, struct vma *v)
{
	unsigned long kib;

	if (sscanf(line, "%lx-%lx ", &v->start, &v->end) != 2)
		return false;
	v->kernel_page = 0;
	v->by_pmd = 0;
	while (fgets(line, (int)room, f)) {
		unsigned long start, end;

		if (sscanf(line, "%lx-%lx ", &start, &end) == 2)
			return true;
		if (sscanf(line, "KernelPageSize: %lu", &kib) == 1)
			v->kernel_page = kib;
		else if (sscanf(line, "AnonHugePages: %lu", &kib) == 1 ||
			 sscanf(line, "ShmemPmdMapped: %lu", &kib) == 1 ||
			 sscanf(line, "FilePmdMapped: %lu", &kib) == 1)
			v->by_pmd += kib;
	}
	line[0] = 0;
	return true;
}

/* Of all that @v could have by whole huge pages: 0 unless it has. */
static size_t page_size_of(const struct vma *v)
{
	size_t huge = h__huge_page_size();
	unsigned long first, last;

	if (v->kernel_page * 1024 > (unsigned long)sysconf(_SC_PAGESIZE))
		return v->kernel_page * 1024;	/* hugetlbfs */
	if (!huge)
		return 0;
	first = (v->start + huge - 1) & ~(huge - 1);
	last = v->end & ~(huge - 1);
	return last > first && v->by_pmd * 1024 >= last - first ? huge : 0;
}

/*
 * The size of the smallest page that the memory is mapped by. It is a lower
 * bound: the kernel tells of whole mappings only.
 */
size_t h__mapped_page_size(const void *addr, size_t length)
{
	uintptr_t at = (uintptr_t)addr, end = at + length;
	size_t page = (size_t)sysconf(_SC_PAGESIZE), least = 0;
	char line[512] = "";
	struct vma v;
	FILE *f = fopen(SMAPS, "re");

	if (!f)
		return page;
	if (!fgets(line, sizeof(line), f))
		line[0] = 0;
	while (at < end && next_vma(f, line, sizeof(line), &v)) {
		size_t size;

		if (v.end <= at || v.start >= end)
			continue;
		size = page_size_of(&v);
		/* Its first and last bytes may be outside of all huge pages. */
		if (!size || at < ((v.start + size - 1) & ~(size - 1)) ||
		    (end < v.end ? end : v.end) > (v.end & ~(size - 1)))
			size = page;
		if (!least || size < least)
			least = size;
		at = v.end;
	}
	fclose(f);
	return at < end || !least ? page : least;
}
