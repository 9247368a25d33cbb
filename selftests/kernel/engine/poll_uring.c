// SPDX-License-Identifier: GPL-2.0-only
/*
 * The device in an io_uring: a poll that is asked for once goes on telling. Kernel
 * device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"
#include "uring.h"

#include <poll.h>

/* Tell whenever @fd is readable, until the ring is closed. */
static int poll_for_good(struct ring *r, int fd)
{
	struct io_uring_sqe *sqe = ring_sqe(r);

	sqe->opcode = IORING_OP_POLL_ADD;
	sqe->fd = fd;
	sqe->len = IORING_POLL_ADD_MULTI;
	sqe->poll32_events = POLLIN;
	return ring_submit(r);
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
