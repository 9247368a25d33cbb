/* SPDX-License-Identifier: GPL-2.0-only */
/* Operations of the fuzzer: mappings, and writes to what is mapped. */
#ifndef FUZZ_CALLS_MEMORY_H
#define FUZZ_CALLS_MEMORY_H

#include "fuzz_calls.h"

#include <fcntl.h>

/* ---- mapping ---- */

/* Into a cell; which one, or another one if it did not work. */
static uint32_t map_at(struct thread *t, uint64_t offset, uint64_t length,
		       int prot)
{
	uint32_t cell = below(t, CELLS);
	int flags = MAP_SHARED | MAP_FIXED;
	void *p;

	if (!length && !one_in(t, 8))
		return cell;
	if (length > CELL)
		length = CELL;
	if (one_in(t, 32))
		length = some_size(t, CELL);
	if (one_in(t, 64))
		offset = one_in(t, 2) ? odd_number(t) : offset + PAGE;
	if (one_in(t, 64))
		flags ^= MAP_SHARED | MAP_PRIVATE;
	if (one_in(t, 64))
		prot = (int)below(t, 8);
	if (one_in(t, 16))
		flags |= MAP_POPULATE;
	p = mmap(cell_at(cell), length, prot, flags, t->fd, (off_t)offset);
	count_errno(K_MMAP, p == MAP_FAILED ? -1 : 0);
	return cell;
}

static void map_area(struct thread *t, struct area *a)
{
	a->cell = map_at(t, a->offset, a->length, PROT_READ | PROT_WRITE);
}

static void map_queue(struct thread *t, struct queue *q)
{
	q->ring_cell = map_at(t, q->ring_offset, q->ring_length, PROT_READ);
	q->control_cell = map_at(t, q->control_offset, q->control_length,
				 PROT_READ | PROT_WRITE);
}

static void map_sender(struct thread *t, struct sender *s)
{
	s->wq_cell = map_at(t, s->wq_offset, s->wq_length,
			    PROT_READ | PROT_WRITE);
	s->status_cell = map_at(t, s->status_offset, s->status_length,
				PROT_READ);
}

static void op_mmap(struct thread *t)
{
	switch (below(t, 3)) {
	case 0:
		map_area(t, some_area(t));
		break;
	case 1:
		map_queue(t, some_queue(t));
		break;
	default:
		map_sender(t, some_sender(t));
	}
}

/* ---- unmapping, moving, rights ---- */

/* Some pages of a cell, or all of it. */
static char *some_range(struct thread *t, size_t *length)
{
	char *p = cell_at(below(t, CELLS));
	size_t from = 0;

	*length = CELL;
	if (one_in(t, 2)) {
		from = PAGE * (some_size(t, 64) - 1);
		*length = PAGE * some_size(t, 64);
	}
	if (*length > CELL - from)
		*length = CELL - from;
	return p + from;
}

/* Nobody allocates once the threads run: a hole stays one. */
static void op_munmap(struct thread *t)
{
	size_t length;
	char *p = some_range(t, &length);
	void *hole;

	if (one_in(t, 2)) {
		count_errno(K_MUNMAP, munmap(p, length));
		return;
	}
	hole = mmap(p, length, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE,
		    -1, 0);
	count_errno(K_MUNMAP, hole == MAP_FAILED ? -1 : 0);
}

static void op_mremap(struct thread *t)
{
	char *to = cell_at(below(t, CELLS));
	int flags = MREMAP_MAYMOVE | MREMAP_FIXED;
	size_t from, into;
	char *p = some_range(t, &from);
	void *ret;

	into = one_in(t, 2) ? from : PAGE * some_size(t, 64);
	if (into > CELL)
		into = CELL;
	if (one_in(t, 8) && into == from)
		flags |= MREMAP_DONTUNMAP;
	if (one_in(t, 4) && into <= from) {
		flags = 0;
		to = p;
	}
	/* 0: a second mapping of what is shared. */
	if (one_in(t, 8) && flags)
		from = 0;
	ret = flags ? mremap(p, from, into, flags, to) :
		      mremap(p, from, into, 0);
	count_errno(K_MREMAP, ret == MAP_FAILED ? -1 : 0);
}

static void op_mprotect(struct thread *t)
{
	static const int prots[] = {
		PROT_NONE, PROT_READ, PROT_READ | PROT_WRITE,
		PROT_READ | PROT_WRITE, PROT_READ | PROT_WRITE | PROT_EXEC,
	};
	size_t length;
	char *p = some_range(t, &length);

	count_errno(K_MPROTECT, mprotect(p, length,
					 prots[below(t, ARRAY_SIZE(prots))]));
}

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ	22
#define MADV_POPULATE_WRITE	23
#endif

static void op_madvise(struct thread *t)
{
	static const int advices[] = {
		MADV_DONTNEED, MADV_FREE, MADV_REMOVE, MADV_DOFORK,
		MADV_DONTFORK, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_COLD,
		MADV_PAGEOUT, MADV_DODUMP, MADV_WIPEONFORK, MADV_MERGEABLE,
		MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_WILLNEED,
	};
	size_t length;
	char *p = some_range(t, &length);
	int ret;

	switch (below(t, 6)) {
	case 0:
		ret = mlock(p, length);
		break;
	case 1:
		ret = munlock(p, length);
		break;
	case 2:
		ret = msync(p, length, MS_SYNC | MS_INVALIDATE);
		break;
	default:
		ret = madvise(p, length,
			      advices[below(t, ARRAY_SIZE(advices))]);
	}
	count_errno(K_MADVISE, ret);
}

/* Memory of the process itself, to be wired. */
static void own_memory(struct thread *t, uint32_t cell)
{
	size_t length = one_in(t, 8) ? CELL : PAGE * some_size(t, 64);
	int flags = MAP_FIXED | MAP_NORESERVE;
	int prot = one_in(t, 16) ? PROT_READ : PROT_READ | PROT_WRITE;
	int fd = -1;
	void *p;

	if (one_in(t, 4)) {
		flags |= one_in(t, 4) ? MAP_PRIVATE : MAP_SHARED;
		fd = FD_SHARED;
	} else {
		flags |= MAP_ANONYMOUS | (one_in(t, 4) ? MAP_SHARED :
							 MAP_PRIVATE);
	}
	p = mmap(cell_at(cell), length, prot, flags, fd, 0);
	count_errno(K_OWN, p == MAP_FAILED ? -1 : 0);
}

static void op_own(struct thread *t)
{
	own_memory(t, below(t, CELLS));
}

/* ---- writing ---- */

static uint64_t some_word(struct thread *t)
{
	const struct notice *n = &shared->board[below(t, BOARD)];

	switch (below(t, 6)) {
	case 0:
		return n->key;
	case 1:
		return (uint64_t)n->slot << 32 | n->host;
	case 2:
		return below(t, 64);
	default:
		return odd_number(t);
	}
}

/* Into a control word, an entry's head or anywhere. */
static size_t some_place(struct thread *t)
{
	switch (below(t, 4)) {
	case 0:
		return 4 * below(t, 32);
	case 1:
		return 64 + (64U << below(t, 6)) * below(t, 32) +
		       8 * below(t, 8);
	case 2:
		return PAGE - 8 + 4 * below(t, 4);
	default:
		return (size_t)(some_size(t, 64 * PAGE) - 1) & ~3UL;
	}
}

/* By way of the kernel, which forces a write where a debugger may. */
static void poke_forced(struct thread *t, char *p)
{
	uint64_t word = some_word(t);

	count_errno(K_POKE, pwrite(FD_MEM, &word, sizeof(word),
				   (off_t)(uintptr_t)p));
}

static void op_poke(struct thread *t)
{
	char *cell = cell_at(below(t, CELLS));
	volatile uint32_t *p;
	int i, n = 1 + (int)below(t, 16);

	if (one_in(t, 16)) {
		poke_forced(t, cell + some_place(t));
		return;
	}
	if (one_in(t, 8))
		cell = scribbled;
	if (guard(t)) {
		count(K_POKE, -EFAULT);
		return;
	}
	for (i = 0; i < n; i++) {
		uint64_t word = some_word(t);

		p = (void *)(cell + (cell == scribbled ? 4 * below(t, 64) :
							some_place(t)));
		p[0] = (uint32_t)word;
		if (one_in(t, 2))
			p[1] = (uint32_t)(word >> 32);
	}
	unguard(t);
	count(K_POKE, 0);
}

#endif /* FUZZ_CALLS_MEMORY_H */
