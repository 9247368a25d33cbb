/* SPDX-License-Identifier: GPL-2.0-only */
/* A small io_uring, without its library. */
#ifndef URING_H
#define URING_H

#include "hamlyn_test.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define ENTRIES		4
#define NO_RING		"no io_uring here"

/* What a test of one request needs of a ring. */
struct ring {
	int fd;
	char *rings;
	size_t bytes;
	struct io_uring_sqe *sqes;
	struct io_uring_params params;
};

static inline uint32_t *field(const struct ring *r, uint32_t offset)
{
	return (uint32_t *)(void *)(r->rings + offset);
}

static inline int ring_open(struct ring *r)
{
	struct io_uring_params *p = &r->params;
	int prot = PROT_READ | PROT_WRITE;

	memset(r, 0, sizeof(*r));
	r->fd = (int)syscall(__NR_io_uring_setup, ENTRIES, p);
	if (r->fd < 0)
		return errno == EINVAL || errno == EMFILE || errno == ENOMEM ?
		       -errno : -EOPNOTSUPP;
	if (!(p->features & IORING_FEAT_SINGLE_MMAP))
		return -EOPNOTSUPP;
	r->bytes = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
	if (r->bytes < p->cq_off.cqes +
		       p->cq_entries * sizeof(struct io_uring_cqe))
		r->bytes = p->cq_off.cqes +
			   p->cq_entries * sizeof(struct io_uring_cqe);
	r->rings = mmap(NULL, r->bytes, prot, MAP_SHARED, r->fd,
			IORING_OFF_SQ_RING);
	r->sqes = mmap(NULL, p->sq_entries * sizeof(*r->sqes), prot, MAP_SHARED,
		       r->fd, IORING_OFF_SQES);
	return r->rings == MAP_FAILED || r->sqes == MAP_FAILED ? -ENOMEM : 0;
}

static inline void ring_close(struct ring *r)
{
	if (r->fd < 0)
		return;
	munmap(r->rings, r->bytes);
	munmap(r->sqes, r->params.sq_entries * sizeof(*r->sqes));
	close(r->fd);
}

/* The one request that there is at a time, to be filled in. */
static inline struct io_uring_sqe *ring_sqe(struct ring *r)
{
	memset(r->sqes, 0, sizeof(*r->sqes));
	*field(r, r->params.sq_off.array) = 0;
	return r->sqes;
}

static inline int ring_submit(struct ring *r)
{
	uint32_t *tail = field(r, r->params.sq_off.tail);

	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	return syscall(__NR_io_uring_enter, r->fd, 1, 0, 0, NULL, 0) == 1 ?
	       0 : -errno;
}

static inline bool next(struct ring *r, struct io_uring_cqe *cqe)
{
	const struct io_uring_params *p = &r->params;
	uint32_t *head = field(r, p->cq_off.head);
	uint32_t mask = *field(r, p->cq_off.ring_mask);

	if (*head == __atomic_load_n(field(r, p->cq_off.tail),
				     __ATOMIC_ACQUIRE))
		return false;
	*cqe = ((struct io_uring_cqe *)(void *)(r->rings +
						p->cq_off.cqes))[*head & mask];
	__atomic_store_n(head, *head + 1, __ATOMIC_RELEASE);
	return true;
}

/* The system calls between two looks let the kernel complete what it has. */
static inline bool comes(struct ring *r, struct io_uring_cqe *cqe)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (!next(r, cqe))
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

#endif /* URING_H */
