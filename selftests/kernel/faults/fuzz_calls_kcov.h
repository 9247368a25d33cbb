/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The fuzzer's eyes: which code of the module a program reached (KCOV). Only
 * what the calling thread does itself is seen, not what an engine does.
 */
#ifndef FUZZ_CALLS_KCOV_H
#define FUZZ_CALLS_KCOV_H

#include "fuzz_calls.h"

#include <fcntl.h>
#include <stdio.h>

#define KCOV_INIT_TRACE		_IOR('c', 1, unsigned long)
#define KCOV_ENABLE		_IO('c', 100)
#define KCOV_TRACE_PC		0
#define KCOV_WORDS		(1U << 16)
#define KCOV_FILE		"/sys/kernel/debug/kcov"

/* Where the module's text is: 0, or a negative errno. */
static int coverage_range(struct coverage *c)
{
	FILE *f = fopen("/proc/modules", "re");
	char line[512], name[64];
	unsigned long size, start;
	int ret = -ENOENT;

	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%63s %lu %*d %*s %*s %lx", name, &size,
			   &start) != 3 || strcmp(name, "hamlyn"))
			continue;
		c->start = start;
		c->end = start + size;
		ret = start ? 0 : -EPERM;
	}
	if (f)
		fclose(f);
	return ret;
}

/* For a process that is root still: one descriptor for each thread. */
static int kcov_open(int number)
{
	int fd = open(KCOV_FILE, O_RDWR | O_CLOEXEC), ret;

	if (fd < 0)
		return -errno;
	ret = dup3(fd, FD_KCOV + number, O_CLOEXEC);
	close(fd);
	if (ret < 0 || ioctl(ret, KCOV_INIT_TRACE, (unsigned long)KCOV_WORDS))
		return -errno;
	return 0;
}

static int kcov_start(struct thread *t)
{
	void *p = mmap(NULL, KCOV_WORDS * sizeof(*t->kcov),
		       PROT_READ | PROT_WRITE, MAP_SHARED, FD_KCOV + t->number,
		       0);

	if (p == MAP_FAILED ||
	    ioctl(FD_KCOV + t->number, KCOV_ENABLE,
		  (unsigned long)KCOV_TRACE_PC))
		return -errno;
	t->kcov = p;
	return 0;
}

static void kcov_reset(struct thread *t)
{
	__atomic_store_n(&t->kcov[0], 0, __ATOMIC_RELAXED);
}

/* Was it never seen? */
static bool note_pc(struct coverage *c, uint64_t pc)
{
	uint32_t entry = (uint32_t)(pc - c->start) + 1, i, n;

	i = entry * 2654435761U >> 15;
	for (n = 0; n < ARRAY_SIZE(c->table); n++) {
		uint32_t *at = &c->table[(i + n) % ARRAY_SIZE(c->table)];
		uint32_t had = 0;

		if (__atomic_load_n(at, __ATOMIC_RELAXED) == entry)
			return false;
		if (__atomic_compare_exchange_n(at, &had, entry, false,
						__ATOMIC_RELAXED,
						__ATOMIC_RELAXED)) {
			__atomic_fetch_add(&c->pcs, 1, __ATOMIC_RELAXED);
			return true;
		}
		if (had == entry)
			return false;
	}
	return false;
}

/* How many places that @t has been to since kcov_reset() are new? */
static uint32_t kcov_news(struct thread *t)
{
	uint64_t n = __atomic_load_n(&t->kcov[0], __ATOMIC_RELAXED), i;
	struct coverage *c = &shared->coverage;
	uint32_t news = 0;

	for (i = 1; i <= n && i < KCOV_WORDS; i++)
		if (t->kcov[i] >= c->start && t->kcov[i] < c->end)
			news += note_pc(c, t->kcov[i]);
	return news;
}

/* ---- the corpus ---- */

static void keep(const struct program *p)
{
	struct coverage *c = &shared->coverage;
	uint32_t i = __atomic_fetch_add(&c->programs, 1, __ATOMIC_RELAXED);

	c->corpus[i % CORPUS] = *p;
}

/* One that reached something new, changed a little; or NULL. */
static void choose_program(struct thread *t, struct program *p)
{
	struct coverage *c = &shared->coverage;
	uint32_t n = __atomic_load_n(&c->programs, __ATOMIC_RELAXED), i;

	p->count = 1 + below(t, PROGRAM);
	for (i = 0; i < p->count; i++)
		p->ops[i] = draw(t);
	if (!n || one_in(t, 3))
		return;
	*p = c->corpus[below(t, n < CORPUS ? n : CORPUS)];
	/* It may have been half written when its author was killed. */
	if (!p->count || p->count > PROGRAM)
		p->count = PROGRAM;
	for (i = below(t, 4); i; i--)
		p->ops[below(t, p->count)] = draw(t);
	if (one_in(t, 2) && p->count < PROGRAM)
		p->ops[p->count++] = draw(t);
}

#endif /* FUZZ_CALLS_KCOV_H */
