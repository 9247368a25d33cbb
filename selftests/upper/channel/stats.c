// SPDX-License-Identifier: GPL-2.0-only
/* What channels and managers tell of themselves. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <hamlyn/channel.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define BUFFERS	4
#define ROOM	1024
#define PATIENCE_NS	60000000000LL
#define MOMENT_NS	200000000LL	/* what does not fit into the buffers leaves later */

FIXTURE(stats) {
	struct h_dev *dev;
	struct h_manager *m;
	struct h_channel *a;
	struct h_channel *b;
};

FIXTURE_VARIANT(stats) {
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(stats, shared) {
};

FIXTURE_VARIANT_ADD(stats, single) {
	.flags = H_MANAGER_SINGLE,
};

FIXTURE_SETUP(stats)
{
	const struct h_manager_attr manager = { .flags = variant->flags };

	static const struct h_channel_attr attr = {
		.buffers = BUFFERS, .buffer_size = ROOM, .max_buffer_size = ROOM,
	};

	ASSERT_EQ(0, h_open(ht_device(), &self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, &manager, &self->m));
	ASSERT_EQ(0, h_channel_pair(self->m, self->m, &attr, &self->a, &self->b));
}

FIXTURE_TEARDOWN(stats)
{
	h_channel_close(self->a, H_NOWAIT);
	h_channel_close(self->b, H_NOWAIT);
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

static struct h_channel_counters stats_of(struct h_channel *channel)
{
	struct h_channel_counters stats;

	memset(&stats, 0xee, sizeof(stats));
	if (h_channel_stats(channel, &stats))
		abort();
	return stats;
}

TEST_F(stats, messages_and_bytes_of_any_length)
{
	static const size_t sizes[] = { 0, 1, 100, ROOM, 5 * ROOM };
	static char data[5 * ROOM];
	struct h_channel_counters sent, received;
	struct h_message m;
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		bytes += sizes[i];
		ASSERT_EQ(0, h_channel_send(self->a, data, sizes[i],
					    sizes[i] > BUFFERS * ROOM ? MOMENT_NS :
									PATIENCE_NS));
		ASSERT_EQ(0, h_channel_receive(self->b, &m, PATIENCE_NS));
		ASSERT_EQ(sizes[i], m.length);
		ASSERT_EQ(0, h_channel_release(self->b, &m));
		sent = stats_of(self->a);
		received = stats_of(self->b);
		EXPECT_EQ(i + 1, sent.sent);
		EXPECT_EQ(bytes, sent.sent_bytes);
		EXPECT_EQ(i + 1, received.received);
		EXPECT_EQ(bytes, received.received_bytes);
	}
	EXPECT_EQ(0, sent.received);
	EXPECT_EQ(0, received.sent);
	EXPECT_EQ(BUFFERS, received.buffers);
	EXPECT_EQ(ROOM, received.buffer_size);
}

TEST_F(stats, a_sender_without_buffers_waits)
{
	struct h_channel_counters stats;
	struct h_message m[BUFFERS];
	char byte = 1;
	int i;

	for (i = 0; i < BUFFERS; i++) {
		ASSERT_EQ(0, h_channel_send(self->a, &byte, 1, PATIENCE_NS));
		ASSERT_EQ(0, h_channel_receive(self->b, &m[i], PATIENCE_NS));
		EXPECT_EQ(i + 1, (int)stats_of(self->b).held);
	}
	EXPECT_EQ(0, stats_of(self->a).waits);
	EXPECT_EQ(BUFFERS, stats_of(self->a).in_flight);
	ASSERT_EQ(-EAGAIN, h_channel_send(self->a, &byte, 1, H_NOWAIT));
	stats = stats_of(self->a);
	EXPECT_LT(0, stats.waits);
	EXPECT_EQ(BUFFERS, stats.sent);
	for (i = 0; i < BUFFERS; i++)
		ASSERT_EQ(0, h_channel_release(self->b, &m[i]));
	EXPECT_EQ(0, stats_of(self->b).held);
	ASSERT_EQ(0, h_channel_send(self->a, &byte, 1, PATIENCE_NS));
	EXPECT_GT(BUFFERS, stats_of(self->a).in_flight);
}

TEST_F(stats, requests_and_what_is_kept_meanwhile)
{
	struct h_channel_counters stats;
	struct h_message request, other, reply;
	uint32_t id;

	h_channel_reply_only(self->b);
	ASSERT_EQ(0, h_channel_request_send(self->a, "?", 1, &id, PATIENCE_NS));
	EXPECT_EQ(1, stats_of(self->a).requests);
	ASSERT_EQ(0, h_channel_receive(self->b, &request, PATIENCE_NS));
	ASSERT_EQ(0, h_channel_send(self->b, "other", 5, PATIENCE_NS));
	ASSERT_EQ(0, h_channel_reply(self->b, &request, "!", 1, PATIENCE_NS));
	ASSERT_EQ(0, h_channel_request_wait(self->a, id, &reply, PATIENCE_NS));
	stats = stats_of(self->a);
	EXPECT_EQ(0, stats.requests);
	EXPECT_EQ(1, stats.kept);
	EXPECT_EQ(2, stats.received);
	EXPECT_EQ(6, stats.received_bytes);
	ASSERT_EQ(0, h_channel_receive(self->a, &other, PATIENCE_NS));
	stats = stats_of(self->a);
	EXPECT_EQ(0, stats.kept);
	EXPECT_EQ(2, stats.received);
	EXPECT_EQ(2, stats_of(self->b).sent);
	EXPECT_EQ(6, stats_of(self->b).sent_bytes);
	h_channel_release(self->a, &other);
	h_channel_release(self->a, &reply);
	h_channel_release(self->b, &request);
}

TEST_F(stats, of_a_manager)
{
	struct h_manager_counters before, after;
	struct h_message m;
	void *memory;

	ASSERT_EQ(0, h_manager_stats(self->m, &before));
	EXPECT_LT(0, before.receivers);
	EXPECT_LE(2 * BUFFERS * ROOM, before.receive_bytes);
	EXPECT_LT(0, before.budget);
	EXPECT_EQ(0, before.sleepers);
	ASSERT_EQ(0, h_manager_alloc(self->m, 1 << 20, &memory));
	ASSERT_EQ(0, h_channel_send(self->a, "word", 4, PATIENCE_NS));
	ASSERT_EQ(0, h_channel_receive(self->b, &m, PATIENCE_NS));
	h_channel_release(self->b, &m);
	/* Nothing comes: it has to sleep. */
	ASSERT_EQ(-ETIMEDOUT, h_channel_receive(self->b, &m, 50000000));
	ASSERT_EQ(0, h_manager_stats(self->m, &after));
	EXPECT_LT(before.arrivals, after.arrivals);
	EXPECT_LT(before.sleeps, after.sleeps);
	EXPECT_LE(before.send_bytes + (1 << 20), after.send_bytes);
	ASSERT_EQ(0, h_manager_free(self->m, memory));
}

/* A program that was built with another version of the library. */
TEST_F(stats, an_older_and_a_newer_program)
{
	struct {
		struct h_channel_counters known;
		char more[16];
	} newer;
	struct h_channel_counters older;

	memset(&older, 0xee, sizeof(older));
	ASSERT_EQ(0, h_channel_send(self->a, "word", 4, PATIENCE_NS));
	ASSERT_EQ(0, h__channel_stats(self->a, &older, sizeof(older.sent)));
	EXPECT_EQ(1, older.sent);
	EXPECT_EQ(0xeeeeeeeeeeeeeeee, older.sent_bytes);
	memset(&newer, 0xee, sizeof(newer));
	ASSERT_EQ(0, h__channel_stats(self->a, &newer.known, sizeof(newer)));
	EXPECT_EQ(4, newer.known.sent_bytes);
	EXPECT_EQ(0, newer.more[0] | newer.more[15]);
	EXPECT_EQ(-EINVAL, h__channel_stats(self->a, &older, 0));
	EXPECT_EQ(-EINVAL, h__manager_stats(self->m, (void *)&older, 0));
}

TEST_HARNESS_MAIN
