// SPDX-License-Identifier: GPL-2.0-only
/* Tagged remote writes: tags by turn and by name, threads, losses. */
#include <pthread.h>

#include <hamlyn/tagged.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

FIXTURE(tagged) {
	struct h_dev *rx;
	struct h_dev *tx;
	struct h_manager *to;
	struct h_manager *from;
	struct h_tagged_receiver *receiver;
	struct h_tagged_address address;
	size_t packet;
	unsigned char *data;
};

FIXTURE_SETUP(tagged)
{
	struct h_manager_attr small = { .nq_entries = 512 };
	struct h_tagged_attr attr = { .max_tags = 1000 };
	struct hamlyn_query query;
	struct h_seed seed;

	ASSERT_EQ(0, h_open(ht_device(), &self->rx));
	ASSERT_EQ(0, ht_open_tx(&self->tx));
	ASSERT_EQ(0, h_query(self->rx, &query));
	self->packet = query.packet_size;
	attr.length = 2 * self->packet;
	ASSERT_EQ(0, h_manager_create(self->rx, &small, &self->to));
	ASSERT_EQ(0, h_manager_create(self->tx, NULL, &self->from));
	ASSERT_EQ(0, h_tagged_receiver_create(self->to, &attr,
					      &self->receiver));
	h_tagged_receiver_seed(self->receiver, &seed);
	ASSERT_EQ(0, h_tagged_resolve(&seed, &self->address));
	self->data = malloc(2 * self->packet);
	ASSERT_NE(NULL, self->data);
	ht_fill(self->data, 2 * self->packet, 3);
}

FIXTURE_TEARDOWN(tagged)
{
	EXPECT_EQ(0, h_tagged_receiver_destroy(self->receiver));
	EXPECT_EQ(0, h_manager_destroy(self->to));
	EXPECT_EQ(0, h_manager_destroy(self->from));
	h_close(self->tx);
	h_close(self->rx);
	free(self->data);
}

static int write_tag(FIXTURE_DATA(tagged) *self, size_t offset, size_t length,
		     uint64_t tag)
{
	return h_tagged_send(self->from, &self->address, offset,
			     self->data + offset, length, tag, 10 * HT_SEC);
}

/* H 3.3: A tagged write is one packet, to an offset of the sender's choice. */
TEST_F(tagged, what_was_written_is_there_with_its_tag)
{
	const size_t sizes[] = { 0, 1, 16, 448, 449, 1000, self->packet };
	const unsigned char *there = h_tagged_receiver_data(self->receiver);
	uint32_t length;
	uint64_t tag;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t at = 2 * self->packet - sizes[i];

		ASSERT_EQ(0, write_tag(self, at, sizes[i], ~0ull - i));
		ASSERT_EQ(0, h_tagged_get_tag(self->receiver, &tag, &length,
					      10 * HT_SEC));
		EXPECT_EQ(~0ull - i, tag);
		EXPECT_EQ(sizes[i], length);
		EXPECT_EQ(0, memcmp(there + at, self->data + at, sizes[i]));
	}
	EXPECT_EQ(-EMSGSIZE, write_tag(self, 0, self->packet + 1, 0));
	EXPECT_EQ(-ERANGE, write_tag(self, 2 * self->packet, 1, 0));
	EXPECT_EQ(-EAGAIN, h_tagged_get_tag(self->receiver, &tag, NULL,
					    H_NOWAIT));
	EXPECT_EQ(-ETIMEDOUT, h_tagged_get_specific_tag(self->receiver, 1, NULL,
							10 * HT_MS));
}

/* H 3.3: Tags are queued, and a certain one can be asked for. */
TEST_F(tagged, a_certain_tag_leaves_the_others_where_they_are)
{
	uint64_t tag;
	uint32_t n, i;

	/* Equal tags come in their order. */
	for (i = 0; i < 300; i++) {
		ASSERT_EQ(0, write_tag(self, 0, i, i / 2));
	}
	for (i = 299; i > 100; i--) {
		if (i / 2 % 2 == 0)
			continue;
		ASSERT_EQ(0, h_tagged_get_specific_tag(self->receiver, i / 2,
						       &n, 10 * HT_SEC));
		ASSERT_EQ(i ^ 1, n);
	}
	for (i = 0; i < 300; i++) {
		if (i > 100 && i / 2 % 2)
			continue;
		ASSERT_EQ(0, h_tagged_get_tag(self->receiver, &tag, &n,
					      10 * HT_SEC));
		ASSERT_EQ(i / 2, tag);
	}
	EXPECT_EQ(-EAGAIN, h_tagged_get_tag(self->receiver, &tag, NULL,
					    H_NOWAIT));
}

TEST_F(tagged, a_loss_is_told_once)
{
	uint64_t tag, i;
	int n = 0;

	/* More than are kept. */
	for (i = 0; i < 1010; i++) {
		ASSERT_EQ(0, write_tag(self, 0, 0, i));
		/* Between two hosts many may come at once, and overrun the NQ. */
		if (i % 100 == 99)
			ASSERT_EQ(0, ht_drain(self->from));
		ASSERT_EQ(-EAGAIN, h_tagged_get_specific_tag(self->receiver,
							     5000, NULL, 0));
		if (i == 999)
			break;
	}
	/* What is on its way with a polling engine. */
	while (h_tagged_get_specific_tag(self->receiver, 5000, NULL,
					 20 * HT_MS) == -EOVERFLOW)
		n++;
	EXPECT_EQ(0, n);
	ASSERT_EQ(0, write_tag(self, 0, 0, 5001));
	EXPECT_EQ(-EOVERFLOW, h_tagged_get_specific_tag(self->receiver, 5001,
							NULL, 10 * HT_SEC));
	for (i = 0; i < 1000; i++) {
		ASSERT_EQ(0, h_tagged_get_tag(self->receiver, &tag, NULL,
					      H_NOWAIT));
		ASSERT_EQ(i, tag);
	}
	/* More than the NQ holds while nobody polls. */
	for (i = 0; i < 600; i++) {
		ASSERT_EQ(0, write_tag(self, 0, 0, i));
	}
	ASSERT_EQ(0, ht_drain(self->from));
	for (n = 0; (i = h_tagged_get_tag(self->receiver, &tag, NULL,
					  50 * HT_MS)) != (uint64_t)-ETIMEDOUT;)
		n += (int)i == -EOVERFLOW;
	EXPECT_EQ(1, n);
}

enum { OTHERS = 3000 };

/* They may go on coming for ever. */
TEST_F(tagged, who_does_not_wait_takes_only_so_many_others)
{
	const struct h_tagged_attr attr = { .arrivals = OTHERS };
	struct h_tagged_receiver *receiver;
	struct h_manager *m;
	struct h_seed seed;
	unsigned int i;

	ASSERT_EQ(0, h_manager_create(self->rx, NULL, &m));
	ASSERT_EQ(0, h_tagged_receiver_create(m, &attr, &receiver));
	h_tagged_receiver_seed(receiver, &seed);
	ASSERT_EQ(0, h_tagged_resolve(&seed, &self->address));
	for (i = 0; i < OTHERS; i++) {
		ASSERT_EQ(0, write_tag(self, 0, 0, 1));
	}
	ASSERT_EQ(0, ht_drain(self->from));
	EXPECT_EQ(-EAGAIN, h_tagged_get_specific_tag(receiver, 2, NULL,
						     H_NOWAIT));
	EXPECT_GT(h_manager_poll(m), 0);
	EXPECT_EQ(0, h_tagged_receiver_destroy(receiver));
	EXPECT_EQ(0, h_manager_destroy(m));
}

TEST_F(tagged, old_seeds_are_void_after_a_rekey)
{
	struct h_seed seed;
	uint64_t tag;

	ASSERT_EQ(0, h_tagged_receiver_rekey(self->receiver, &seed));
	ASSERT_EQ(0, write_tag(self, 0, 8, 1));
	EXPECT_EQ(-ETIMEDOUT, h_tagged_get_tag(self->receiver, &tag, NULL,
					       20 * HT_MS));
	ASSERT_EQ(0, h_tagged_resolve(&seed, &self->address));
	ASSERT_EQ(0, write_tag(self, 0, 8, 2));
	ASSERT_EQ(0, h_tagged_get_tag(self->receiver, &tag, NULL, 10 * HT_SEC));
	EXPECT_EQ(2, tag);
}

enum { THREADS = 4, TAGS = 500 };

struct getter {
	struct h_tagged_receiver *receiver;
	uint64_t first;
	int result;
	int got;
};

static void *get_own(void *arg)
{
	struct getter *g = arg;
	int i;

	for (i = 0; i < TAGS && !g->result; i++) {
		g->result = h_tagged_get_specific_tag(g->receiver,
						      g->first + i, NULL,
						      30 * HT_SEC);
		h__store_release(&g->got, g->result ? TAGS : i + 1);
	}
	return NULL;
}

/* So that the NQ, which is small, is not overrun. */
static bool have_got(struct getter *getters, int n)
{
	struct ht_poll poll;
	int i;

	ht_poll_begin(&poll);
	for (i = 0; i < THREADS; i++)
		while (h__load_acquire(&getters[i].got) < n)
			if (!ht_poll_more(&poll))
				return false;
	return true;
}

TEST_F(tagged, each_of_many_threads_gets_its_own)
{
	struct getter getters[THREADS];
	pthread_t threads[THREADS];
	int i, j;

	for (i = 0; i < THREADS; i++) {
		getters[i] = (struct getter) {
			.receiver = self->receiver,
			.first = i * 10000,
		};
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, get_own,
					    &getters[i]));
	}
	for (j = 0; j < TAGS; j++) {
		for (i = THREADS - 1; i >= 0; i--) {
			ASSERT_EQ(0, write_tag(self, 0, 8, i * 10000 + j));
		}
		if (j % 50 == 49)
			ASSERT_TRUE(have_got(getters, j + 1));
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, getters[i].result);
	}
}

TEST_HARNESS_MAIN
