// SPDX-License-Identifier: GPL-2.0-only
/*
 * Errors that are the sender's own are told to it, and to nobody else.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

FIXTURE(send_errors) {
	struct ht_pair pair;
	size_t longer;		/* than direct I/O carries */
};

FIXTURE_SETUP(send_errors)
{
	struct ht_pair_attr attr = { .meta = 2 };

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->longer = 512 - 64 + 1;
}

FIXTURE_TEARDOWN(send_errors)
{
	ht_pair_close(&self->pair);
}

static const char *arrived_anything(struct ht_pair *pair)
{
	if (ht_pair_fence(pair))
		return "a notification";
	return ht_pair_untouched(pair) ? NULL : "memory was touched";
}

static const char *next_does_not_pass(struct ht_pair *pair)
{
	struct h_msg msg = {
		.ticket = &pair->ticket,
		.data = pair->send,
		.length = 1000,
	};
	struct hamlyn_nq_entry entry;

	ht_fill(pair->send, 1000, 9);
	if (ht_send_sync(pair->terminus, &msg) != 1)
		return "the next message was not sent";
	if (ht_recv(pair->nq, &entry) != 1)
		return "the next message was not notified";
	if (ht_match(pair->data, 1000, 9) != 1000)
		return "the next message is wrong";
	return NULL;
}

TEST_F(send_errors, memory_that_is_not_bound_is_EFAULT)
{
	struct ht_pair *pair = &self->pair;
	unsigned char *heap = calloc(1, 1 << 20);
	unsigned char *send = pair->send;
	struct h_msg msg = { .ticket = &pair->ticket };
	const struct {
		unsigned char *data;
		size_t length;
	} cases[] = {
		{ heap, self->longer },
		{ heap, 8192 },
		{ NULL, self->longer },
		{ send - 1, self->longer },
		{ send + 1, pair->send_length },
		{ send + pair->send_length, self->longer },
		{ send + pair->send_length - 1, self->longer },
		{ (unsigned char *)UINTPTR_MAX, self->longer },
	};
	unsigned int i;

	ASSERT_NE(NULL, heap);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		msg.data = cases[i].data;
		msg.length = cases[i].length;
		EXPECT_EQ(-EFAULT, h_send(pair->terminus, &msg))
			TH_LOG("case %u", i);
		EXPECT_EQ(-EFAULT, h_send_msg(pair->terminus, &pair->ticket,
					      msg.data, msg.length, NULL, 0));
	}
	ASSERT_EQ(0, h_terminus_bind(pair->terminus, 0, NULL, 0, 0));
	msg.data = send;
	msg.length = self->longer;
	EXPECT_EQ(-EFAULT, h_send(pair->terminus, &msg));
	EXPECT_NO(arrived_anything(pair));
	ASSERT_EQ(0, h_terminus_bind(pair->terminus, 0, pair->send_area,
				     0, 0));
	EXPECT_NO(next_does_not_pass(pair));
	free(heap);
}

TEST_F(send_errors, a_ticket_that_does_not_cover_the_message_is_ERANGE)
{
	struct ht_pair *pair = &self->pair;
	struct h_ticket part;
	struct h_msg msg = { .ticket = &part, .data = pair->send };
	static const struct {
		uint64_t offset;
		size_t length;
	} cases[] = {
		{ 0, 101 }, { 1, 100 }, { 100, 1 }, { 101, 0 }, { 99, 2 },
		{ ~0ULL, 1 }, { ~0ULL, 0 }, { ~0ULL - 50, 100 }, { 0, 3000 },
	};
	unsigned int i;

	ASSERT_EQ(0, h_slot_ticket(pair->slot, 50, 100, 0, &part));
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		msg.offset = cases[i].offset;
		msg.length = cases[i].length;
		EXPECT_EQ(-ERANGE, h_send(pair->terminus, &msg))
			TH_LOG("case %u", i);
	}
	EXPECT_EQ(-ERANGE, h_send_msg(pair->terminus, &part, pair->send, 101,
				      NULL, 0));
	EXPECT_EQ(-ERANGE, h_send_msg(pair->terminus, &part, pair->send, 3000,
				      NULL, 0));
	EXPECT_NO(arrived_anything(pair));
	msg.offset = 100;
	msg.length = 0;
	EXPECT_EQ(1, ht_send_sync(pair->terminus, &msg));
	EXPECT_NO(next_does_not_pass(pair));
}

TEST_F(send_errors, too_much_metadata_is_EMSGSIZE)
{
	struct ht_pair *pair = &self->pair;
	char user[1024] = "";
	struct h_msg msg = {
		.ticket = &pair->ticket,
		.data = pair->send,
		.meta = user,
	};
	static const size_t lengths[] = { 61, 62, 64, 128, 1024, 65536 + 1,
					  65536 + 60, SIZE_MAX };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		msg.meta_length = lengths[i];
		EXPECT_EQ(-EMSGSIZE, h_send(pair->terminus, &msg))
			TH_LOG("%zu bytes", lengths[i]);
		EXPECT_EQ(-EMSGSIZE,
			  h_send_msg(pair->terminus, &pair->ticket, pair->send,
				     0, user, lengths[i]));
	}
	EXPECT_NO(arrived_anything(pair));
	EXPECT_NO(next_does_not_pass(pair));
}

TEST_F(send_errors, an_unknown_host_is_told_in_the_status)
{
	struct ht_pair *pair = &self->pair;
	struct h_ticket away = pair->ticket;
	struct h_msg msg = { .ticket = &away, .data = pair->send };
	const size_t lengths[] = { 0, 100, 1000, 4 * pair->query.packet_size };
	struct hamlyn_stats before, after;
	int64_t handle, good;
	unsigned int i;

	ASSERT_EQ(0, h_terminus_stats(pair->terminus, &before));
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		away.host = pair->query.host ^ (0x40000000U + i);
		msg.length = lengths[i];
		handle = ht_send(pair->terminus, &msg);
		ASSERT_GE(handle, 0);
		EXPECT_EQ(-EHOSTUNREACH, ht_send_wait(pair->terminus, handle));
		EXPECT_EQ(-EHOSTUNREACH, h_send_done(pair->terminus, handle));
		EXPECT_NO(arrived_anything(pair));
		/* One between bad ones is not taken for one of them. */
		good = ht_send(pair->terminus, &(struct h_msg) {
				.ticket = &pair->fence,
				.flags = HAMLYN_TRB_NO_NOTIFY });
		EXPECT_EQ(1, ht_send_wait(pair->terminus, good));
		EXPECT_EQ(-EHOSTUNREACH, h_send_done(pair->terminus, handle));
	}
	ASSERT_EQ(0, h_terminus_stats(pair->terminus, &after));
	EXPECT_EQ(before.failed + i, after.failed);
	/* Of the good ones there were a fence and another one each time. */
	EXPECT_EQ(before.messages + 2 * i, after.messages);
	EXPECT_NO(next_does_not_pass(pair));
}

TEST_F(send_errors, a_status_is_forgotten_when_its_entry_is_used_again)
{
	struct ht_pair *pair = &self->pair;
	struct h_ticket away = pair->ticket;
	struct h_msg bad = { .ticket = &away };
	struct h_msg good = { .ticket = &pair->fence,
			      .flags = HAMLYN_TRB_NO_NOTIFY };
	int64_t first, last = 0;
	int i;

	away.host = ~pair->query.host;
	first = ht_send(pair->terminus, &bad);
	ASSERT_GE(first, 0);
	ASSERT_EQ(-EHOSTUNREACH, ht_send_wait(pair->terminus, first));
	/* The default is 64 entries. */
	for (i = 0; i < 64; i++) {
		EXPECT_EQ(-EHOSTUNREACH, h_send_done(pair->terminus, first))
			TH_LOG("%d later", i);
		last = ht_send(pair->terminus, &good);
		ASSERT_EQ(1, ht_send_wait(pair->terminus, last));
	}
	EXPECT_EQ(1, h_send_done(pair->terminus, first));
	EXPECT_EQ(1, h_send_done(pair->terminus, last));
}

TEST_F(send_errors, unknown_flags_are_refused)
{
	struct ht_pair *pair = &self->pair;
	struct h_msg msg = { .ticket = &pair->ticket };
	unsigned int bit;
	int64_t ret;

	for (bit = 0; bit < 32; bit++) {
		msg.flags = 1U << bit;
		if (msg.flags == HAMLYN_TRB_QUIET ||
		    msg.flags == HAMLYN_TRB_NO_NOTIFY)
			continue;
		ret = ht_send_sync(pair->terminus, &msg);
		EXPECT_EQ(-EINVAL, ret) TH_LOG("bit %u", bit);
	}
	EXPECT_NO(arrived_anything(pair));
	EXPECT_NO(next_does_not_pass(pair));
}

TEST_F(send_errors, tickets_with_flags_are_refused)
{
	struct ht_pair *pair = &self->pair;
	struct h_ticket ticket = pair->ticket;
	struct h_msg msg = { .ticket = &ticket };
	unsigned int bit;

	for (bit = 0; bit < 31; bit++) {
		ticket.flags = 1U << bit;
		EXPECT_EQ(-EINVAL, h_send(pair->terminus, &msg)) {
			TH_LOG("bit %u", bit);
		}
		EXPECT_EQ(-EINVAL, h_send_msg(pair->terminus, &ticket, "x", 1,
					      NULL, 0));
	}
	ticket.flags = H_TICKET_IMPORTED;
	EXPECT_EQ(-ENOKEY, ht_send_sync(pair->terminus, &msg));
	EXPECT_NO(arrived_anything(pair));
	EXPECT_NO(next_does_not_pass(pair));
}

TEST_F(send_errors, waiting_for_a_message_not_sent_times_out)
{
	struct ht_pair *pair = &self->pair;
	struct h_msg msg = { .ticket = &pair->fence,
			     .flags = HAMLYN_TRB_NO_NOTIFY };
	int64_t handle, began;

	handle = ht_send(pair->terminus, &msg);
	ASSERT_EQ(1, ht_send_wait(pair->terminus, handle));
	EXPECT_EQ(0, h_send_done(pair->terminus, handle + 1));
	began = ht_now_ns();
	EXPECT_EQ(-ETIMEDOUT, h_send_wait(pair->terminus, handle + 1,
					  20 * HT_MS));
	EXPECT_GE(ht_now_ns() - began, 20 * HT_MS);
	EXPECT_EQ(-EAGAIN, h_send_wait(pair->terminus, handle + 1, 0));
}

/*
 * A handle is of 32 bits, and 2^32 messages are a few minutes' worth. No device: it
 * is about arithmetic only.
 */
TEST(a_handle_of_long_ago_is_of_a_message_that_has_left)
{
	struct {
		struct hamlyn_terminus_status status;
		int32_t codes[8];
	} page = { 0 };
	struct h_terminus t = { .status = &page.status, .mask = 7 };
	static const uint32_t ages[] = {
		9, 1000, 0x7fffffff, 0x80000000, 0x80000005, 0xfffffff0,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(ages); i++) {
		t.producer = 100 + ages[i];
		page.status.completed = t.producer;
		EXPECT_EQ(1, h_send_done(&t, 100)) {
			TH_LOG("age %#x", ages[i]);
		}
		/* The last ones have not left. */
		page.status.completed = t.producer - 3;
		EXPECT_EQ(1, h_send_done(&t, 100));
		EXPECT_EQ(0, h_send_done(&t, t.producer));
		EXPECT_EQ(0, h_send_done(&t, t.producer - 1));
		EXPECT_EQ(0, h_send_done(&t, t.producer - 3));
		EXPECT_EQ(1, h_send_done(&t, t.producer - 4));
	}
}

TEST_HARNESS_MAIN
