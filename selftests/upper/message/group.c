// SPDX-License-Identifier: GPL-2.0-only
/*
 * Group receives: shares that add up to 2^32 make one notification (H 2.5).
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <pthread.h>

#define SENDERS	4

FIXTURE(group) {
	struct ht_pair pair;
	struct h_terminus *termini[SENDERS];
	struct h_dev *devs[SENDERS];
	struct h_area *areas[SENDERS];
	size_t packet;
	uint64_t random;
};

FIXTURE_SETUP(group)
{
	struct ht_pair_attr attr = {
		.length = SENDERS * 4 * HAMLYN_MAX_PACKET,
		.send_length = 4096,
		.meta = 8,
	};
	int i;

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->packet = self->pair.query.packet_size;
	self->random = ht_seed();
	for (i = 0; i < SENDERS; i++) {
		ASSERT_EQ(0, ht_open_tx(&self->devs[i]));
		ASSERT_EQ(0, h_terminus_create(self->devs[i], NULL,
					       &self->termini[i]));
		ASSERT_EQ(0, h_area_alloc(self->devs[i], 4 * self->packet,
					  &self->areas[i]));
		ASSERT_EQ(0, h_terminus_bind(self->termini[i], 0,
					     self->areas[i], 0, 0));
		ht_fill(h_area_addr(self->areas[i]), 4 * self->packet,
			(uint64_t)i);
	}
}

FIXTURE_TEARDOWN(group)
{
	int i;

	for (i = 0; i < SENDERS; i++)
		h_close(self->devs[i]);
	ht_pair_close(&self->pair);
}

static uint32_t packets_of(FIXTURE_DATA(group) *self, size_t length)
{
	return length ? (uint32_t)((length - 1) / self->packet) + 1 : 1;
}

/* Sender @i sends its share of the group that entry @index counts. */
static int send_share(FIXTURE_DATA(group) *self, int i, uint32_t index,
		      size_t length, uint32_t delta)
{
	struct h_ticket ticket = self->pair.ticket;
	struct h_msg msg = {
		.ticket = &ticket,
		.offset = (uint64_t)i * 4 * self->packet,
		.data = h_area_addr(self->areas[i]),
		.length = length,
		.delta = delta,
	};

	ticket.meta_index = index;
	return ht_send_sync(self->termini[i], &msg);
}

static const char *wrong_part(FIXTURE_DATA(group) *self, int i, size_t length)
{
	unsigned char *part = self->pair.data + (size_t)i * 4 * self->packet;

	if (ht_match(part, length, (uint64_t)i) != length)
		return "wrong data";
	memset(part, HT_GUARD, length);
	return NULL;
}

/* One notification, for entry @index, and the accumulator is back at 0. */
static const char *not_complete(FIXTURE_DATA(group) *self, uint32_t index)
{
	struct hamlyn_nq_entry entry;

	if (ht_recv(self->pair.nq, &entry) != 1)
		return "no notification";
	if (entry.index != index)
		return "notification of another entry";
	if (self->pair.meta[index].accumulator)
		return "the accumulator did not return to 0";
	return ht_pair_fence(&self->pair) ? "more than one notification" : NULL;
}

TEST_F(group, two_senders_make_one_notification)
{
	static const uint32_t shares[] = {
		1, 2, 3, 4, 5, 1000, 0x7fffffff, 0x80000000, 0x80000001,
		0xfffffffc, 0xfffffffd, 0xfffffffe, 0xffffffff,
	};
	const size_t lengths[] = { 0, 100, self->packet, self->packet + 1,
				   4 * self->packet };
	unsigned int i, j, k;

	for (i = 0; i < ARRAY_SIZE(shares); i++)
		for (j = 0; j < ARRAY_SIZE(lengths); j++)
			for (k = 0; k < ARRAY_SIZE(lengths); k++) {
				/* Else the count would pass 0 too early. */
				if (shares[i] < packets_of(self, lengths[j]) ||
				    0 - shares[i] < packets_of(self, lengths[k]))
					continue;
				ASSERT_EQ(1, send_share(self, 0, 3, lengths[j],
							shares[i]));
				ASSERT_EQ(0, ht_pair_fence(&self->pair))
					TH_LOG("share %x, length %u",
					       shares[i], j);
				ASSERT_EQ(shares[i],
					  self->pair.meta[3].accumulator);
				ASSERT_EQ(1, send_share(self, 1, 3, lengths[k],
							0 - shares[i]));
				ASSERT_NO(not_complete(self, 3))
					TH_LOG("share %x, lengths %u %u",
					       shares[i], j, k);
				ASSERT_NO(wrong_part(self, 0, lengths[j]));
				ASSERT_NO(wrong_part(self, 1, lengths[k]));
			}
}

TEST_F(group, a_share_may_be_divided_again)
{
	size_t lengths[SENDERS];
	uint64_t rest, share;
	int round, i;

	for (round = 0; round < 500; round++) {
		rest = 1ULL << 32;
		for (i = 0; i < SENDERS; i++) {
			/* At least as much as there can be packets. */
			share = 4 + ht_random(&self->random) % (rest / 2);
			if (i == SENDERS - 1)
				share = rest;
			rest -= share;
			lengths[i] = ht_random(&self->random) %
				     (4 * self->packet + 1);
			ASSERT_EQ(1, send_share(self, i, 7, lengths[i],
						(uint32_t)share));
			if (i < SENDERS - 1) {
				ASSERT_EQ(0, ht_pair_fence(&self->pair))
					TH_LOG("round %d, sender %d", round, i);
			}
		}
		ASSERT_NO(not_complete(self, 7)) TH_LOG("round %d", round);
		for (i = 0; i < SENDERS; i++) {
			ASSERT_NO(wrong_part(self, i, lengths[i]));
		}
	}
}

TEST_F(group, a_message_of_the_last_delta_zero_is_not_complete_by_itself)
{
	uint32_t packets;

	/* The share equals the count of the other packets: see the header. */
	for (packets = 2; packets <= 4; packets++) {
		ASSERT_EQ(1, send_share(self, 0, 0, packets * self->packet,
					packets - 1));
		ASSERT_EQ(0, ht_pair_fence(&self->pair));
		ASSERT_EQ(packets - 1, self->pair.meta[0].accumulator);
		ASSERT_EQ(1, send_share(self, 1, 0, 0, 1 - packets));
		ASSERT_NO(not_complete(self, 0));
	}
}

TEST_F(group, one_sender_may_be_the_whole_group)
{
	int i;

	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, send_share(self, 0, 1, 2 * self->packet, 10));
		ASSERT_EQ(1, send_share(self, 0, 1, 100, 20));
		ASSERT_EQ(0, ht_pair_fence(&self->pair));
		ASSERT_EQ(1, send_share(self, 0, 1, 50, 0 - 30U));
		ASSERT_NO(not_complete(self, 1));
	}
}

TEST_F(group, accumulators_of_different_entries_do_not_mix)
{
	uint32_t index;

	for (index = 0; index < 8; index++) {
		ASSERT_EQ(1, send_share(self, 0, index, 10, index + 1));
	}
	ASSERT_EQ(0, ht_pair_fence(&self->pair));
	for (index = 0; index < 8; index++) {
		EXPECT_EQ(index + 1, self->pair.meta[index].accumulator);
	}
	for (index = 8; index-- > 0;) {
		ASSERT_EQ(1, send_share(self, 1, index, 10, 0 - (index + 1)));
		ASSERT_NO(not_complete(self, index));
	}
}

TEST_F(group, an_ordinary_message_to_the_entry_does_not_disturb_the_count)
{
	struct hamlyn_nq_entry entry;

	ASSERT_EQ(1, send_share(self, 0, 2, 100, 5));
	ASSERT_EQ(1, send_share(self, 1, 2, 100, 0));
	ASSERT_EQ(1, ht_recv(self->pair.nq, &entry));
	EXPECT_EQ(2, entry.index);
	EXPECT_EQ(5, self->pair.meta[2].accumulator);
	ASSERT_EQ(1, send_share(self, 2, 2, 100, 0 - 5U));
	EXPECT_NO(not_complete(self, 2));
}

struct member {
	struct h_terminus *terminus;
	struct h_msg msg;
	pthread_barrier_t *start;
	int rounds;
	int failed;
};

static void *send_in_step(void *arg)
{
	struct member *m = arg;
	int i;

	for (i = 0; i < m->rounds; i++) {
		pthread_barrier_wait(m->start);
		if (ht_send_sync(m->terminus, &m->msg) != 1)
			m->failed++;
	}
	return NULL;
}

TEST_F(group, senders_at_the_same_time_make_one_notification)
{
	enum { ROUNDS = 1000 };
	static const uint32_t shares[SENDERS] = { 1, 0x7fffffff, 77,
						  0x80000000 - 77 };
	struct member members[SENDERS];
	pthread_t threads[SENDERS];
	pthread_barrier_t start;
	int i, round;

	pthread_barrier_init(&start, NULL, SENDERS + 1);
	for (i = 0; i < SENDERS; i++) {
		members[i] = (struct member) {
			.terminus = self->termini[i],
			.msg = {
				.ticket = &self->pair.ticket,
				.offset = (uint64_t)i * 4 * self->packet,
				.data = h_area_addr(self->areas[i]),
				.length = (size_t)i * self->packet + 10,
				.delta = shares[i],
			},
			.start = &start,
			.rounds = ROUNDS,
		};
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, send_in_step,
					    &members[i]));
	}
	for (round = 0; round < ROUNDS; round++) {
		pthread_barrier_wait(&start);
		ASSERT_NO(not_complete(self, 0)) TH_LOG("round %d", round);
		for (i = 0; i < SENDERS; i++) {
			ASSERT_NO(wrong_part(self, i, members[i].msg.length));
		}
	}
	for (i = 0; i < SENDERS; i++) {
		pthread_join(threads[i], NULL);
		EXPECT_EQ(0, members[i].failed);
	}
	pthread_barrier_destroy(&start);
}

TEST_HARNESS_MAIN
