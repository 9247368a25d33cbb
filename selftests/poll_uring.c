// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device in an io_uring: a poll that is asked for once goes on telling. Kernel
 * device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include <linux/io_uring.h>
#include <poll.h>
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

static uint32_t *field(const struct ring *r, uint32_t offset)
{
	return (uint32_t *)(void *)(r->rings + offset);
}

static int ring_open(struct ring *r)
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

static void ring_close(struct ring *r)
{
	if (r->fd < 0)
		return;
	munmap(r->rings, r->bytes);
	munmap(r->sqes, r->params.sq_entries * sizeof(*r->sqes));
	close(r->fd);
}

/* Tell whenever @fd is readable, until the ring is closed. */
static int poll_for_good(struct ring *r, int fd)
{
	uint32_t *tail = field(r, r->params.sq_off.tail);

	memset(r->sqes, 0, sizeof(*r->sqes));
	r->sqes->opcode = IORING_OP_POLL_ADD;
	r->sqes->fd = fd;
	r->sqes->len = IORING_POLL_ADD_MULTI;
	r->sqes->poll32_events = POLLIN;
	*field(r, r->params.sq_off.array) = 0;
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	return syscall(__NR_io_uring_enter, r->fd, 1, 0, 0, NULL, 0) == 1 ?
	       0 : -errno;
}

static bool next(struct ring *r, struct io_uring_cqe *cqe)
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
static bool comes(struct ring *r, struct io_uring_cqe *cqe)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (!next(r, cqe))
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

FIXTURE(poll_uring) {
	struct party rx, tx;
	struct ring ring;
};

FIXTURE_SETUP(poll_uring)
{
	ASSERT_EQ(0, party_open(&self->rx));
	ASSERT_EQ(0, party_open(&self->tx));
	self->ring.fd = -1;
}

FIXTURE_TEARDOWN(poll_uring)
{
	ring_close(&self->ring);
	party_close(&self->rx);
	party_close(&self->tx);
}

TEST_F(poll_uring, a_multishot_poll_tells_of_every_message)
{
	struct hamlyn_trb trb = to_party(&self->rx);
	struct io_uring_cqe cqe;
	unsigned int i;
	int ret = ring_open(&self->ring);

	if (ret == -EOPNOTSUPP)
		SKIP(return, NO_RING);
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, poll_for_good(&self->ring, self->rx.fd));
	for (i = 0; i < 20; i++) {
		ASSERT_EQ(0, post(&self->tx.terminus, &trb));
		ASSERT_TRUE(comes(&self->ring, &cqe)) {
			TH_LOG("nothing of message %u", i);
		}
		ASSERT_EQ(POLLIN, cqe.res);
		ASSERT_NE(0, cqe.flags & IORING_CQE_F_MORE);
		/* It may tell of one twice: the engine was not done when it looked. */
		while (next(&self->ring, &cqe))
			;
		ASSERT_TRUE(came(&self->rx));
	}
}

TEST_HARNESS_MAIN
