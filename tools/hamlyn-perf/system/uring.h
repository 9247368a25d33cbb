/* SPDX-License-Identifier: GPL-2.0-only */
/* The little of io_uring that sys_uring.c needs, without liburing. */
#ifndef HAMLYN_PERF_URING_H
#define HAMLYN_PERF_URING_H

#include <stdbool.h>
#include <stdint.h>

/* One process's view of its ring: made from the descriptor after the fork. */
struct uring {
	int fd;
	void *rings;
	uint64_t rings_bytes;
	void *sqes;
	uint64_t sqes_bytes;
	uint32_t *sq_tail;
	uint32_t *sq_array;
	uint32_t sq_mask;
	uint32_t *cq_head;
	uint32_t *cq_tail;
	uint32_t cq_mask;
	void *cqes;
};

/* What made a ring, to be mapped with uring_map(). */
struct uring_made {
	int fd;
	uint32_t sq_bytes, sq_tail, sq_mask, sq_array, sq_entries;
	uint32_t cq_head, cq_tail, cq_mask, cqes;
};

/* NULL, or why messages between rings are not to be had here. */
const char *uring_missing(void);
int uring_make(struct uring_made *made, uint32_t completions);
int uring_map(struct uring *ring, const struct uring_made *made);
void uring_unmap(struct uring *ring);
/* A completion with @data for the ring behind @peer. */
int uring_tell(struct uring *ring, int peer, uint64_t data);
/* False: there is none. @result is negative for a message that failed. */
bool uring_next(struct uring *ring, uint64_t *data, int32_t *result);
/* Sleeps until there is a completion, at most @timeout_s. */
int uring_wait(struct uring *ring, uint32_t timeout_s);

#endif /* HAMLYN_PERF_URING_H */
