// SPDX-License-Identifier: GPL-2.0-only
/* Group receives: shares divided and divided again make one notification. */
#include <pthread.h>

#include <hamlyn/group.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define LENGTH	500000

FIXTURE(share) {
	struct h_dev *rx;
	struct h_dev *tx;
	struct h_manager *to;
	struct h_manager *from;
	struct h_group *group;
	struct h_share share;
	unsigned char *data;
};

FIXTURE_SETUP(share)
{
	ASSERT_EQ(0, h_open(ht_device(), &self->rx));
	ASSERT_EQ(0, ht_open_tx(&self->tx));
	ASSERT_EQ(0, h_manager_create(self->rx, NULL, &self->to));
	ASSERT_EQ(0, h_manager_create(self->tx, NULL, &self->from));
	ASSERT_EQ(0, h_group_create(self->to, LENGTH, NULL, &self->group));
	h_group_share(self->group, &self->share);
	self->data = malloc(LENGTH);
	ASSERT_NE(NULL, self->data);
	ht_fill(self->data, LENGTH, 11);
}

FIXTURE_TEARDOWN(share)
{
	EXPECT_EQ(0, h_group_destroy(self->group));
	EXPECT_EQ(0, h_manager_destroy(self->to));
	EXPECT_EQ(0, h_manager_destroy(self->from));
	h_close(self->tx);
	h_close(self->rx);
	free(self->data);
}

static int send_share(FIXTURE_DATA(share) *self, const struct h_share *s,
		      size_t length)
{
	return h_share_send(self->from, s, self->data + s->ticket.base, length,
			    20 * HT_SEC);
}

static const char *not_complete(FIXTURE_DATA(share) *self)
{
	const void *data;

	if (h_group_receive(self->group, &data, 20 * HT_SEC))
		return "not complete";
	return memcmp(data, self->data, LENGTH) ? "wrong data" : NULL;
}

/* Divide until there is little left, at random, and send all in some order. */
static uint64_t send_divided(FIXTURE_DATA(share) *self, struct h_share *s,
			     uint64_t *random, int depth)
{
	struct h_share parts[4];
	uint64_t lengths[4], left = s->ticket.length, sum = 0;
	uint64_t counter = s->counter;
	int n = 1 + ht_random(random) % 4, i;
	bool equal = ht_random(random) % 2;

	if (!depth || ht_random(random) % 4 == 0)
		return send_share(self, s, s->ticket.length) ? 0 : counter;
	for (i = 0; i < n; i++) {
		lengths[i] = i == n - 1 ? left : ht_random(random) % (left + 1);
		left -= lengths[i];
	}
	if (h_share_split(s, n, equal ? NULL : lengths, parts))
		return 0;
	for (i = n; i-- > 0;) {
		struct h_seed seed;
		struct h_share far;

		if (h_share_export(&parts[i], &seed) ||
		    h_share_import(&seed, &far) ||
		    memcmp(&far, &parts[i], sizeof(far)))
			return 0;
		sum += send_divided(self, &far, random, depth - 1);
	}
	return sum;
}

TEST_F(share, however_it_is_divided_the_round_ends_once)
{
	uint64_t random = ht_seed();
	int round;

	for (round = 0; round < 50; round++) {
		struct h_share s = self->share;

		ASSERT_EQ(1ull << 32, send_divided(self, &s, &random, 5)) {
			TH_LOG("round %d", round);
		}
		ASSERT_NO(not_complete(self));
		ASSERT_EQ(0, h_group_reset(self->group, 0));
		ASSERT_EQ(-EAGAIN, h_group_receive(self->group, NULL, 0));
	}
}

TEST_F(share, not_before_the_last_and_with_less_than_its_part)
{
	struct h_share parts[10];
	int i, round;

	ASSERT_EQ(0, h_share_split(&self->share, 10, NULL, parts));
	for (round = 0; round < 3; round++) {
		for (i = 0; i < 10; i++) {
			EXPECT_EQ(-ETIMEDOUT, h_group_receive(self->group, NULL,
							      5 * HT_MS));
			EXPECT_EQ(-EBUSY, h_group_reset(self->group, 0));
			ASSERT_EQ(0, send_share(self, &parts[i],
						round == 1 ? i * 100 : 50000));
		}
		ASSERT_EQ(0, h_group_receive(self->group, NULL, 10 * HT_SEC));
		ASSERT_EQ(0, h_group_receive(self->group, NULL, H_NOWAIT));
		ASSERT_EQ(0, h_group_reset(self->group, 0));
	}
	EXPECT_EQ(-ERANGE, send_share(self, &parts[0], 50001));
}

TEST_F(share, what_makes_no_sense_is_not_divided)
{
	const uint64_t over[] = { LENGTH, 1 }, wraps[] = { UINT64_MAX, LENGTH + 1 };
	const uint64_t less[] = { LENGTH / 2, 1 };
	struct h_share parts[8], small, none = self->share;
	struct h_seed seed;
	unsigned int i;

	EXPECT_EQ(-EINVAL, h_share_split(&self->share, 0, NULL, parts));
	EXPECT_EQ(-ERANGE, h_share_split(&self->share, 2, over, parts));
	EXPECT_EQ(-ERANGE, h_share_split(&self->share, 2, wraps, parts));
	EXPECT_EQ(-ERANGE, h_share_split(&self->share, 2, less, parts));
	EXPECT_EQ(1ull << 32, self->share.counter);
	small = self->share;
	small.ticket.length = 0;
	small.counter = 7;
	EXPECT_EQ(-E2BIG, h_share_split(&small, 8, NULL, parts));
	ASSERT_EQ(0, h_share_split(&small, 7, NULL, parts));
	EXPECT_EQ(-EINVAL, h_share_split(&small, 1, NULL, parts));
	EXPECT_EQ(-EINVAL, send_share(self, &small, 0));
	EXPECT_EQ(-EINVAL, h_share_export(&small, &seed));
	none.counter = (1ull << 32) + 1;
	EXPECT_EQ(-EINVAL, h_share_export(&none, &seed));
	/* Too few for its packets: the count would pass 0 before the end. */
	none.counter = 2;
	EXPECT_EQ(-EINVAL, send_share(self, &none, 10));
	ASSERT_EQ(0, h_share_export(&self->share, &seed));
	for (i = 0; i < sizeof(seed) - 4; i++) {
		seed.bytes[i] ^= 0x80;
		EXPECT_NE(0, h_share_import(&seed, &none));
		seed.bytes[i] ^= 0x80;
	}
}

TEST_F(share, stragglers_of_a_round_that_was_given_up_are_kept_out)
{
	struct h_share parts[2], old;

	ASSERT_EQ(0, h_share_split(&self->share, 2, NULL, parts));
	ASSERT_EQ(0, send_share(self, &parts[0], LENGTH / 2));
	ASSERT_EQ(0, h_group_reset(self->group, H_GROUP_NEW_KEY));
	old = parts[1];
	h_group_share(self->group, &self->share);
	ASSERT_EQ(0, h_share_split(&self->share, 2, NULL, parts));
	ASSERT_EQ(0, send_share(self, &parts[0], LENGTH / 2));
	ASSERT_EQ(0, send_share(self, &old, LENGTH / 2));
	EXPECT_EQ(-ETIMEDOUT, h_group_receive(self->group, NULL, 50 * HT_MS));
	ASSERT_EQ(0, send_share(self, &parts[1], LENGTH / 2));
	ASSERT_NO(not_complete(self));
	EXPECT_EQ(-EINVAL, h_group_reset(self->group, 2));
	/* A round that is over can be given up as well. */
	ASSERT_EQ(0, h_group_reset(self->group, H_GROUP_NEW_KEY));
	EXPECT_EQ(-EAGAIN, h_group_receive(self->group, NULL, H_NOWAIT));
}

/* In a child: divides what it gets among threads' worth of sends. */
static int delegate(int from, const unsigned char *data)
{
	struct h_share share, parts[3];
	struct h_manager *m;
	struct h_dev *dev;
	struct h_seed seed;
	int i;

	if (h_open(ht_device(), &dev) || h_manager_create(dev, NULL, &m) ||
	    ht_read_all(from, &seed, sizeof(seed)) ||
	    h_share_import(&seed, &share) ||
	    h_share_split(&share, 3, NULL, parts))
		return 2;
	for (i = 0; i < 3; i++)
		if (h_share_send(m, &parts[i], data + parts[i].ticket.base,
				 parts[i].ticket.length, 20 * HT_SEC))
			return 3;
	if (h_share_send(m, &share, NULL, 0, 0) != -EINVAL)
		return 4;
	/* A short one may still be in the work queue. */
	if (h_manager_drain(m, 20 * HT_SEC))
		return 5;
	h_manager_destroy(m);
	h_close(dev);
	return 0;
}

TEST_F(share, processes_fill_one_buffer)
{
	enum { CHILDREN = 4 };
	struct h_share parts[CHILDREN];
	int fds[CHILDREN][2], i;
	pid_t pids[CHILDREN];

	ASSERT_EQ(0, h_share_split(&self->share, CHILDREN, NULL, parts));
	for (i = 0; i < CHILDREN; i++) {
		struct h_seed seed;

		ASSERT_EQ(0, pipe(fds[i]));
		pids[i] = ht_fork();
		if (!pids[i])
			_exit(delegate(fds[i][0], self->data));
		ASSERT_EQ(0, h_share_export(&parts[i], &seed));
		ASSERT_EQ(0, ht_write_all(fds[i][1], &seed, sizeof(seed)));
	}
	ASSERT_NO(not_complete(self));
	for (i = 0; i < CHILDREN; i++) {
		EXPECT_EQ(0, ht_reap(pids[i]));
	}
}

TEST_HARNESS_MAIN
