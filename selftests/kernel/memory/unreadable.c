// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory of a sender that cannot be read, because it has gone bad: the machine goes on, the
 * sender is told, and nobody gets a message of which a part is missing. As root, on a
 * kernel that can have the function fail that reads (fail_function).
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <fcntl.h>

#define FAULTS	"/sys/kernel/debug/fail_function/"
#define READS	"hml_mem_try_copy"
#define LENGTH	65536U

/* The read after @skipped others fails, and no other. */
static int break_read(unsigned int skipped)
{
	char text[16];

	/* Each that passes takes one of space, and leaves one. */
	snprintf(text, sizeof(text), "%u", skipped + 1);
	return ht_put(FAULTS "times", "0") ?: ht_put(FAULTS "space", text) ?:
	       ht_put(FAULTS "times", "1");
}

FIXTURE(unreadable)
{
	struct ht_pair pair;
	bool ready;
};

FIXTURE_SETUP(unreadable)
{
	const struct ht_pair_attr attr = { .length = LENGTH, .meta = 1 };

	self->ready = !ht_put(FAULTS "inject", READS);
	if (!self->ready)
		return;
	ASSERT_EQ(0, ht_put(FAULTS "verbose", "0"));
	ASSERT_EQ(0, ht_put(FAULTS "times", "0"));
	ASSERT_EQ(0, ht_put(FAULTS "interval", "1"));
	ASSERT_EQ(0, ht_put(FAULTS "probability", "100"));
	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
}

FIXTURE_TEARDOWN(unreadable)
{
	if (!self->ready)
		return;
	ht_put(FAULTS "times", "0");
	ht_put(FAULTS "inject", "!" READS);
	ht_pair_close(&self->pair);
}

#define NEED_FAULTS	"kernel: as root, with fail_function"

/* What was sent before has landed, whether or not it was told of. */
static int tells_nothing(struct ht_pair *pair)
{
	int others = ht_pair_fence(pair);

	return others ? others : ht_pair_guarded(pair) ? 0 : -EIO;
}

/* Of one that was cut short the accumulator does not come to 0: its owner resets that. */
static int one_passes(struct ht_pair *pair)
{
	struct h_msg msg = { .ticket = &pair->ticket, .data = pair->send, .length = LENGTH };
	int ret;

	ht_pair_clear(pair);
	ht_fill(pair->send, LENGTH, 7);
	ret = ht_send_sync(pair->terminus, &msg);
	if (ret != 1 || ht_pair_fence(pair) != 1)
		return ret < 0 ? ret : -ENOMSG;
	return memcmp(pair->data, pair->send, LENGTH) ? -EIO : 0;
}

TEST_F(unreadable, a_message_ends_where_it_cannot_be_read)
{
	struct ht_pair *pair = &self->pair;
	struct h_msg msg = { .ticket = &pair->ticket, .data = pair->send, .length = LENGTH };
	unsigned int packets, i;

	if (!self->ready)
		SKIP(return, NEED_FAULTS);
	packets = (LENGTH + pair->query.packet_size - 1) / pair->query.packet_size;
	for (i = 0; i < packets; i++) {
		struct hamlyn_stats before, after;

		ASSERT_EQ(0, h_terminus_stats(pair->terminus, &before));
		ASSERT_EQ(0, break_read(i));
		EXPECT_EQ(-EIO, ht_send_sync(pair->terminus, &msg));
		EXPECT_EQ(0, tells_nothing(pair));
		ASSERT_EQ(0, h_terminus_stats(pair->terminus, &after));
		/* The fence is one more packet, and one more message. */
		EXPECT_EQ(i + 2, after.packets - before.packets);
		EXPECT_EQ(1, after.failed - before.failed);
		EXPECT_EQ(0, one_passes(pair));
	}
}

/* Read in another way: a word that somebody polls is written as one. */
TEST_F(unreadable, the_same_of_a_short_piece)
{
	struct ht_pair *pair = &self->pair;
	struct iovec iov[2] = {
		{ pair->send, 2048 },
		{ pair->send + 4096, 16 },
	};
	struct h_msg msg = { .ticket = &pair->ticket, .iov = iov, .iovcnt = 2 };

	if (!self->ready)
		SKIP(return, NEED_FAULTS);
	ASSERT_EQ(0, break_read(1));
	EXPECT_EQ(-EIO, ht_send_sync(pair->terminus, &msg));
	EXPECT_EQ(0, tells_nothing(pair));
	EXPECT_EQ(1, ht_send_sync(pair->terminus, &msg));
	EXPECT_EQ(1, ht_pair_fence(pair));
	EXPECT_EQ(0, one_passes(pair));
}

TEST_HARNESS_MAIN
