// SPDX-License-Identifier: GPL-2.0-only
/*
 * io_uring by its system calls. Headers older than Linux 5.17 know too little
 * of it: then there are no messages between rings in this build.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/perf.h"
#include "system/uring.h"

#include <linux/io_uring.h>	/* Linux 5.1: older than any that we run on */

#if defined(IOSQE_CQE_SKIP_SUCCESS) && defined(__NR_io_uring_setup)

#define SUBMISSIONS	8	/* one at a time, in fact */
#define MSG_RING	40	/* IORING_OP_MSG_RING, an enumerator of newer headers */
#define PROBE_OPS	256

static int io_uring_setup(uint32_t entries, struct io_uring_params *params)
{
	return (int)syscall(__NR_io_uring_setup, entries, params);
}

static int io_uring_enter(int fd, uint32_t submit, uint32_t wait, uint32_t flags,
			  void *argument, size_t size)
{
	return (int)syscall(__NR_io_uring_enter, fd, submit, wait, flags, argument, size);
}

static bool has_messages(int fd)
{
	struct io_uring_probe *probe;
	bool has = false;

	probe = calloc(1, sizeof(*probe) + PROBE_OPS * sizeof(probe->ops[0]));
	if (probe && !syscall(__NR_io_uring_register, fd, IORING_REGISTER_PROBE, probe,
			      PROBE_OPS))
		has = probe->last_op >= MSG_RING &&
		      probe->ops[MSG_RING].flags & IO_URING_OP_SUPPORTED;
	free(probe);
	return has;
}

const char *uring_missing(void)
{
	struct io_uring_params params = { 0 };
	int fd = io_uring_setup(SUBMISSIONS, &params);
	static char text[96];
	const char *missing = NULL;

	if (fd < 0) {
		snprintf(text, sizeof(text), "io_uring is not to be had: %s", strerror(errno));
		return text;
	}
	if (!(params.features & IORING_FEAT_EXT_ARG) || !has_messages(fd))
		missing = "this kernel's io_uring has no MSG_RING (Linux 5.18 has)";
	close(fd);
	return missing;
}

int uring_make(struct uring_made *made, uint32_t completions)
{
	struct io_uring_params params = {
		.flags = IORING_SETUP_CQSIZE,
		.cq_entries = completions,
	};
	uint32_t end;

	made->fd = io_uring_setup(SUBMISSIONS, &params);
	if (made->fd < 0)
		return fail("no io_uring: %s", strerror(errno));
	made->sq_entries = params.sq_entries;
	made->sq_tail = params.sq_off.tail;
	made->sq_mask = params.sq_off.ring_mask;
	made->sq_array = params.sq_off.array;
	made->cq_head = params.cq_off.head;
	made->cq_tail = params.cq_off.tail;
	made->cq_mask = params.cq_off.ring_mask;
	made->cqes = params.cq_off.cqes;
	made->sq_bytes = params.sq_off.array + params.sq_entries * sizeof(uint32_t);
	end = params.cq_off.cqes + params.cq_entries * (uint32_t)sizeof(struct io_uring_cqe);
	if (end > made->sq_bytes)
		made->sq_bytes = end;
	return 0;
}

static void *map(int fd, size_t bytes, uint64_t offset)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
		       (off_t)offset);

	if (p == MAP_FAILED) {
		fail("cannot map an io_uring: %s", strerror(errno));
		return NULL;
	}
	return p;
}

int uring_map(struct uring *ring, const struct uring_made *made)
{
	char *base;

	*ring = (struct uring){ .fd = made->fd, .rings_bytes = made->sq_bytes };
	ring->sqes_bytes = made->sq_entries * sizeof(struct io_uring_sqe);
	ring->rings = map(ring->fd, ring->rings_bytes, IORING_OFF_SQ_RING);
	ring->sqes = map(ring->fd, ring->sqes_bytes, IORING_OFF_SQES);
	if (!ring->rings || !ring->sqes) {
		uring_unmap(ring);
		return -1;
	}
	base = ring->rings;
	ring->sq_tail = (uint32_t *)(void *)(base + made->sq_tail);
	ring->sq_array = (uint32_t *)(void *)(base + made->sq_array);
	ring->sq_mask = *(uint32_t *)(void *)(base + made->sq_mask);
	ring->cq_head = (uint32_t *)(void *)(base + made->cq_head);
	ring->cq_tail = (uint32_t *)(void *)(base + made->cq_tail);
	ring->cq_mask = *(uint32_t *)(void *)(base + made->cq_mask);
	ring->cqes = base + made->cqes;
	return 0;
}

void uring_unmap(struct uring *ring)
{
	if (ring->rings)
		munmap(ring->rings, ring->rings_bytes);
	if (ring->sqes)
		munmap(ring->sqes, ring->sqes_bytes);
	ring->rings = NULL;
	ring->sqes = NULL;
}

int uring_tell(struct uring *ring, int peer, uint64_t data)
{
	uint32_t tail = *ring->sq_tail;
	uint32_t place = tail & ring->sq_mask;
	struct io_uring_sqe *sqe = (struct io_uring_sqe *)ring->sqes + place;
	int n;

	memset(sqe, 0, sizeof(*sqe));
	sqe->opcode = MSG_RING;
	sqe->flags = IOSQE_CQE_SKIP_SUCCESS;
	sqe->fd = peer;
	sqe->off = data;
	ring->sq_array[place] = place;
	__atomic_store_n(ring->sq_tail, tail + 1, __ATOMIC_RELEASE);
	do {
		n = io_uring_enter(ring->fd, 1, 0, 0, NULL, 0);
	} while (n < 0 && errno == EINTR);
	if (n != 1)
		return fail("io_uring takes no message: %s",
			    n < 0 ? strerror(errno) : "none was submitted");
	return 0;
}

bool uring_next(struct uring *ring, uint64_t *data, int32_t *result)
{
	uint32_t head = *ring->cq_head;
	const struct io_uring_cqe *cqe;

	if (head == __atomic_load_n(ring->cq_tail, __ATOMIC_ACQUIRE))
		return false;
	cqe = (const struct io_uring_cqe *)ring->cqes + (head & ring->cq_mask);
	*data = cqe->user_data;
	*result = cqe->res;
	__atomic_store_n(ring->cq_head, head + 1, __ATOMIC_RELEASE);
	return true;
}

int uring_wait(struct uring *ring, uint32_t timeout_s)
{
	struct __kernel_timespec limit = { .tv_sec = timeout_s };
	struct io_uring_getevents_arg argument = { .ts = (uint64_t)(uintptr_t)&limit };
	int n;

	do {
		n = io_uring_enter(ring->fd, 0, 1,
				   IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG,
				   &argument, sizeof(argument));
	} while (n < 0 && errno == EINTR);
	if (n >= 0)
		return 0;
	if (errno == ETIME)
		return fail("no io_uring message within %u s (--timeout sets the limit)",
			    timeout_s);
	return fail("cannot wait for io_uring: %s", strerror(errno));
}

#else

const char *uring_missing(void)
{
	return "this hamlyn-perf was built with headers older than Linux 5.17";
}

int uring_make(struct uring_made *made, uint32_t completions)
{
	(void)completions;
	made->fd = -1;
	return fail("%s", uring_missing());
}

int uring_map(struct uring *ring, const struct uring_made *made)
{
	(void)ring;
	(void)made;
	return -1;
}

void uring_unmap(struct uring *ring)
{
	(void)ring;
}

int uring_tell(struct uring *ring, int peer, uint64_t data)
{
	(void)ring;
	(void)peer;
	(void)data;
	return -1;
}

bool uring_next(struct uring *ring, uint64_t *data, int32_t *result)
{
	(void)ring;
	(void)data;
	(void)result;
	return false;
}

int uring_wait(struct uring *ring, uint32_t timeout_s)
{
	(void)ring;
	(void)timeout_s;
	return -1;
}

#endif
