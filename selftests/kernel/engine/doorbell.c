// SPDX-License-Identifier: GPL-2.0-only
/*
 * What rings besides the ioctl: io_uring, and fsync() where the module has it, which QUERY
 * tells and the library believes. Kernel device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"
#include "uring.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#define MANY	200	/* messages: more than one KICK sends */

FIXTURE(doorbell) {
	struct party rx, tx;
	struct ring ring;
};

FIXTURE_SETUP(doorbell)
{
	self->ring.fd = -1;
	ASSERT_EQ(0, party_open(&self->rx));
	ASSERT_EQ(0, party_open(&self->tx));
}

FIXTURE_TEARDOWN(doorbell)
{
	ring_close(&self->ring);
	party_close(&self->rx);
	party_close(&self->tx);
}

static bool falls_asleep(const struct ht_raw_terminus *t)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (!h__read_once(&t->status->need_kick))
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

/* Posted, and not rung for: the engine is asleep, or there is none. */
static void put(struct ht_raw_terminus *t, const struct party *to)
{
	struct hamlyn_trb *trb = ht_raw_entry(t);

	memset(trb, 0, t->arg.entry_size);
	*trb = to_party(to);
	__atomic_store_n(&trb->sequence, t->producer + 1, __ATOMIC_RELEASE);
	t->producer++;
}

/* Without another doorbell, of whatever kind. */
static bool is_sent(const struct ht_raw_terminus *t)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (h__load_acquire(&t->status->completed) != t->producer)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

/* What became of a request for @fd with @kick. */
static int ring_with(struct ring *r, int fd, uint32_t op, const struct hamlyn_uring_kick *kick)
{
	struct io_uring_sqe *sqe = ring_sqe(r);
	struct io_uring_cqe cqe;
	int ret;

	sqe->opcode = IORING_OP_URING_CMD;
	sqe->fd = fd;
	sqe->cmd_op = op;
	memcpy(sqe->cmd, kick, sizeof(*kick));
	ret = ring_submit(r);
	if (ret)
		return ret;
	return comes(r, &cqe) ? cqe.res : -ETIMEDOUT;
}

static int ring_for(struct ring *r, int fd, uint32_t terminus)
{
	struct hamlyn_uring_kick kick = { .terminus = terminus };

	return ring_with(r, fd, HAMLYN_IOC_KICK, &kick);
}

#define HAVE_RING() do {						\
	int ret = ring_open(&self->ring);				\
									\
	if (ret == -EOPNOTSUPP)						\
		SKIP(return, NO_RING);					\
	ASSERT_EQ(0, ret);						\
} while (0)

TEST_F(doorbell, a_request_of_a_ring_sends_what_was_posted)
{
	struct ht_raw_terminus *t = &self->tx.terminus;
	int i;

	HAVE_RING();
	for (i = 0; i < 20; i++) {
		ASSERT_TRUE(falls_asleep(t));
		put(t, &self->rx);
		ASSERT_EQ(0, ring_for(&self->ring, self->tx.fd, t->arg.terminus));
		ASSERT_TRUE(is_sent(t));
		ASSERT_TRUE(came(&self->rx));
	}
}

TEST_F(doorbell, a_request_of_a_ring_sends_all_of_it)
{
	struct ht_raw_terminus t;
	int i;

	HAVE_RING();
	ASSERT_EQ(0, ht_raw_terminus_create(self->tx.fd, 256, 128, &t));
	for (i = 0; i < MANY; i++)
		put(&t, &self->rx);
	ASSERT_EQ(0, ring_for(&self->ring, self->tx.fd, t.arg.terminus));
	if (self->tx.query.engine_mode == HAMLYN_ENGINE_INLINE)
		EXPECT_EQ(MANY, h__load_acquire(&t.status->completed));
	EXPECT_TRUE(is_sent(&t));
	ht_raw_terminus_unmap(&t);
}

TEST_F(doorbell, a_request_that_is_wrong_is_refused)
{
	uint32_t id = self->tx.terminus.arg.terminus;
	struct hamlyn_uring_kick kick;
	int i;

	HAVE_RING();
	EXPECT_EQ(-ENOENT, ring_for(&self->ring, self->tx.fd, id + 1));
	EXPECT_EQ(-ENOENT, ring_for(&self->ring, self->tx.fd, 1U << 31));
	for (i = 0; i < 3; i++) {
		kick = (struct hamlyn_uring_kick) { .terminus = id };
		kick.reserved[i] = 1;
		EXPECT_EQ(-EINVAL, ring_with(&self->ring, self->tx.fd, HAMLYN_IOC_KICK, &kick));
	}
	kick = (struct hamlyn_uring_kick) { .terminus = id };
	EXPECT_EQ(-ENOTTY, ring_with(&self->ring, self->tx.fd, HAMLYN_IOC_QUERY, &kick));
	EXPECT_EQ(-ENOTTY, ring_with(&self->ring, self->tx.fd, 0, &kick));
	EXPECT_EQ(0, ring_with(&self->ring, self->tx.fd, HAMLYN_IOC_KICK, &kick));
}

TEST_F(doorbell, query_tells_which_doorbells_there_are)
{
	struct ht_raw_terminus *t = &self->tx.terminus;
	uint32_t told = self->tx.query.doorbells;

	/* As modules of a kernel tree are. */
	if (getenv("HAMLYN_TEST_NO_FSYNC"))
		EXPECT_EQ(0, told & HAMLYN_DOORBELL_FSYNC);
	if (!ring_open(&self->ring))
		EXPECT_NE(0, told & HAMLYN_DOORBELL_URING);
	EXPECT_EQ(0, told & ~(HAMLYN_DOORBELL_URING | HAMLYN_DOORBELL_FSYNC));
	ASSERT_TRUE(falls_asleep(t));
	put(t, &self->rx);
	if (told & HAMLYN_DOORBELL_FSYNC) {
		EXPECT_EQ(0, fsync(self->tx.fd));
	} else {
		TH_LOG(NO_FSYNC);
		EXPECT_EQ(-1, fsync(self->tx.fd));
		EXPECT_EQ(EINVAL, errno);
		EXPECT_EQ(-1, fdatasync(self->tx.fd));
		EXPECT_EQ(EINVAL, errno);
		EXPECT_FALSE(came(&self->rx));
		EXPECT_LE(0, ioctl(self->tx.fd, HAMLYN_IOC_KICK, (unsigned long)t->arg.terminus));
	}
	EXPECT_TRUE(is_sent(t));
	EXPECT_TRUE(came(&self->rx));
}

/* By the only terminus of a device, where it would take fsync(), and by one of two. */
TEST_F(doorbell, the_library_sends_by_what_there_is)
{
	struct h_terminus *t[2] = { NULL };
	struct h_ticket ticket = {
		.host = self->rx.query.host, .slot = self->rx.slot.slot,
		.key = self->rx.slot.key, .length = PAGE,
	};
	struct h_dev *dev;
	int64_t handle;
	int i, n;

	ASSERT_EQ(0, ht_open(&dev));
	for (n = 0; n < 2; n++) {
		ASSERT_EQ(0, h_terminus_create(dev, NULL, &t[n]));
		for (i = 0; i < 20; i++) {
			handle = h_send_msg(t[n], &ticket, "rung", 5, NULL, 0);
			ASSERT_LE(0, handle);
			/* To wait would ring as well. */
			if (self->tx.query.engine_mode == HAMLYN_ENGINE_INLINE)
				ASSERT_EQ(1, h_send_done(t[n], handle));
			ASSERT_EQ(0, h_send_wait(t[n], handle, ht_patience_ns()));
			ASSERT_TRUE(came(&self->rx));
		}
	}
	EXPECT_EQ(0, h_terminus_destroy(t[0]));
	EXPECT_EQ(0, h_terminus_destroy(t[1]));
	h_close(dev);
}

TEST_HARNESS_MAIN
