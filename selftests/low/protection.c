// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a packet may not touch it does not touch: nothing lands, nobody is
 * notified, the receiving side counts it, and the sender is not told.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <pthread.h>

#define ENTRIES	5

FIXTURE(protection) {
	struct ht_pair pair;
	struct h_ticket ticket;		/* forged: covers everything */
	size_t packet;
};

FIXTURE_VARIANT(protection) {
	uint32_t meta;
};

FIXTURE_VARIANT_ADD(protection, with_entries) {
	.meta = ENTRIES,
};

FIXTURE_VARIANT_ADD(protection, without_entries) {
};

FIXTURE_SETUP(protection)
{
	struct ht_pair_attr attr = {
		.length = HAMLYN_MIN_PACKET / 2 + 333,
		.shift = 29,
		.send_length = 4 * HAMLYN_MAX_PACKET,
		.meta = variant->meta,
	};

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->packet = self->pair.query.packet_size;
	self->ticket = self->pair.ticket;
	self->ticket.length = UINT64_MAX;
	ht_fill(self->pair.send, self->pair.send_length, 1);
}

FIXTURE_TEARDOWN(protection)
{
	ht_pair_close(&self->pair);
}

static unsigned int packets_of(const struct ht_pair *pair, size_t length)
{
	size_t packet = pair->query.packet_size;

	return length <= packet ? 1 : (unsigned int)((length - 1) / packet) + 1;
}

/* Did the counters grow by @packets of reason @why, and nothing else? */
static const char *miscounted(struct ht_pair *pair,
			      const struct ht_rejects *before,
			      enum hamlyn_reject why, unsigned int packets)
{
	struct ht_rejects after;
	uint64_t want;
	int i;

	if (ht_pair_rejects(pair, &after))
		return "no counters";
	for (i = 0; i < HAMLYN_REJECT_REASONS; i++) {
		want = i == (int)why ? packets : 0;
		if (after.nic[i] - before->nic[i] != want)
			return want ? "not counted by the NIC" :
				      "counted by the NIC for a wrong reason";
		/* There is no slot that could count this one. */
		if (why == HAMLYN_REJECT_SLOT)
			want = 0;
		if (after.slot[i] - before->slot[i] != want)
			return want ? "not counted by the slot" :
				      "counted by the slot for a wrong reason";
	}
	return NULL;
}

/* The message is sent: what has become of it? */
static const char *came_through(struct ht_pair *pair, const struct h_msg *msg,
				enum hamlyn_reject why, int64_t handle,
				const struct ht_rejects *before)
{
	int ret = handle < 0 ? (int)handle :
			       ht_send_wait(pair->terminus, handle);

	if (ret != 1)
		return ret == -EAGAIN || ret == -ETIMEDOUT ?
		       "not sent" : "the sender was told";
	ret = ht_pair_fence(pair);
	if (ret)
		return ret < 0 ? "no fence" : "somebody was notified";
	if (!ht_pair_untouched(pair)) {
		ht_pair_clear(pair);
		return "memory was touched";
	}
	return miscounted(pair, before, why, packets_of(pair, msg->length));
}

/* Send what must be discarded, by both ways that the library has. */
static const char *passed(struct ht_pair *pair, const struct h_msg *msg,
			  enum hamlyn_reject why)
{
	struct ht_rejects before;
	const char *complaint;
	int64_t handle;

	if (ht_pair_rejects(pair, &before))
		return "no counters";
	handle = ht_send(pair->terminus, msg);
	complaint = came_through(pair, msg, why, handle, &before);
	if (complaint)
		return complaint;
	if (ht_pair_rejects(pair, &before))
		return "no counters";
	if (!ht_send_msg(pair->terminus, msg, &handle))
		return NULL;
	return came_through(pair, msg, why, handle, &before);
}

static const char *good_does_not_pass(struct ht_pair *pair,
				      const struct h_ticket *ticket)
{
	struct h_msg msg = {
		.ticket = ticket,
		.data = pair->send,
		.length = pair->length,
	};
	struct ht_rejects before;
	const char *complaint;

	if (ht_pair_rejects(pair, &before))
		return "no counters";
	if (ht_send_sync(pair->terminus, &msg) != 1)
		return "a good message was not sent";
	if (ht_pair_fence(pair) != 1)
		return "a good message was not notified";
	if (ht_match(pair->data, pair->length, 1) != pair->length)
		return "a good message did not arrive";
	complaint = miscounted(pair, &before, HAMLYN_REJECT_KEY, 0);
	ht_pair_clear(pair);
	return complaint;
}

TEST_F(protection, keys_with_any_bit_wrong_are_rejected)
{
	uint64_t key = self->pair.ticket.key;
	struct h_msg msg = { .ticket = &self->ticket, .data = "x", .length = 1 };
	const uint64_t keys[] = {
		0, ~0ULL, ~key, key + 1, key - 1, key << 32 | key >> 32,
		(uint32_t)key, key >> 32, __builtin_bswap64(key),
		key & 0xffffffff00000000ULL,
	};
	unsigned int i;

	for (i = 0; i < 64; i++) {
		self->ticket.key = key ^ (1ULL << i);
		ASSERT_NO(passed(&self->pair, &msg, HAMLYN_REJECT_KEY)) {
			TH_LOG("bit %u", i);
		}
	}
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		if (keys[i] == key)
			continue;
		self->ticket.key = keys[i];
		ASSERT_NO(passed(&self->pair, &msg, HAMLYN_REJECT_KEY)) {
			TH_LOG("key %u", i);
		}
	}
	EXPECT_NO(good_does_not_pass(&self->pair, &self->pair.ticket));
}

/* Every kind of message, each legal but for what the ticket is. */
static const char *any_passed(struct ht_pair *pair,
			      const struct h_ticket *ticket,
			      enum hamlyn_reject why)
{
	const size_t packet = pair->query.packet_size;
	const size_t lengths[] = { 0, 1, 300, 500, packet, packet + 1,
				   3 * packet + 1 };
	struct h_ticket forged = *ticket;
	struct h_ticket fast;
	const char *complaint;
	unsigned int i, kind;

	/* The library would keep the longer ones back. */
	forged.length = UINT64_MAX;
	fast = forged;
	fast.meta_index = HAMLYN_META_FAST;
	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		for (kind = 0; kind < 5; kind++) {
			struct h_msg msg = {
				.ticket = &forged,
				.data = pair->send,
				.length = lengths[i],
			};

			if (kind == 1) {
				msg.flags = HAMLYN_TRB_NO_NOTIFY;
			} else if (kind == 2) {
				msg.meta = "metadata";
				msg.meta_length = 8;
			} else if (kind == 3) {
				msg.delta = 100;
			} else if (kind == 4) {
				msg.ticket = &fast;
				if (lengths[i] > packet)
					continue;
			}
			complaint = passed(pair, &msg, why);
			if (complaint) {
				fprintf(stderr, "# %zu bytes, kind %u\n",
					lengths[i], kind);
				return complaint;
			}
		}
	return NULL;
}

TEST_F(protection, no_kind_of_message_passes_without_the_key)
{
	self->ticket.key ^= 1ULL << 40;
	EXPECT_NO(any_passed(&self->pair, &self->ticket, HAMLYN_REJECT_KEY));
	EXPECT_NO(good_does_not_pass(&self->pair, &self->pair.ticket));
}

TEST_F(protection, tickets_from_before_a_rekey_are_void)
{
	struct h_ticket old[20], fresh;
	struct h_msg msg = { .data = "x", .length = 1 };
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(old); i++) {
		ASSERT_EQ(0, h_slot_ticket(self->pair.slot, 0, 0, 0, &old[i]));
		ASSERT_EQ(0, h_slot_rekey(self->pair.slot));
		for (j = 0; j <= i; j++) {
			msg.ticket = &old[j];
			ASSERT_NO(passed(&self->pair, &msg,
					 HAMLYN_REJECT_KEY)) {
				TH_LOG("ticket %u, rekey %u", j, i);
			}
		}
		ASSERT_EQ(0, h_slot_ticket(self->pair.slot, 0, 0, 0, &fresh));
		EXPECT_EQ(h_slot_number(self->pair.slot), fresh.slot);
		ASSERT_NO(good_does_not_pass(&self->pair, &fresh));
	}
	EXPECT_NO(any_passed(&self->pair, &old[0], HAMLYN_REJECT_KEY));
}

TEST_F(protection, slots_that_are_not_there_are_rejected)
{
	uint32_t most = self->pair.query.max_slots;
	uint32_t number = h_slot_number(self->pair.slot);
	const uint32_t numbers[] = {
		most, most + 1, most + number, 2 * most + number, 0x7fffffff,
		0x80000000, 0x80000000 | number, 0x10000000 | number,
		0xfffffffe, 0xffffffff, most - 1,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(numbers); i++) {
		self->ticket.slot = numbers[i];
		ASSERT_NO(any_passed(&self->pair, &self->ticket,
				     HAMLYN_REJECT_SLOT)) {
			TH_LOG("case %u", i);
		}
	}
	EXPECT_NO(good_does_not_pass(&self->pair, &self->pair.ticket));
}

/* The slot of the pair again, or another one like it. */
static int make_slot(struct ht_pair *pair, struct h_slot **slot)
{
	struct h_slot_attr attr = {
		.area = pair->area,
		.base = pair->base,
		.length = pair->length,
		.meta_area = pair->meta_area,
		.meta_base = pair->meta ? HT_META_GUARDS *
					  sizeof(*pair->meta) : 0,
		.meta_count = pair->meta_count,
		.nq = pair->nq,
	};

	return h_slot_create(pair->rx, &attr, slot);
}

TEST_F(protection, tickets_of_a_destroyed_slot_are_void)
{
	struct h_ticket stale;
	struct h_slot *slot;

	ASSERT_EQ(0, make_slot(&self->pair, &slot));
	ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &stale));
	ASSERT_EQ(0, h_slot_destroy(slot));
	EXPECT_NO(any_passed(&self->pair, &stale, HAMLYN_REJECT_SLOT));
	/* A slot that is not there has no key at all. */
	stale.key = 0;
	EXPECT_NO(any_passed(&self->pair, &stale, HAMLYN_REJECT_SLOT));
	stale.key = ~0ULL;
	EXPECT_NO(any_passed(&self->pair, &stale, HAMLYN_REJECT_SLOT));
	EXPECT_NO(good_does_not_pass(&self->pair, &self->pair.ticket));
}

/* All slots there are but @number, which is free when it returns 0. */
static int take_all_slots_but(uint32_t number, struct h_dev **hog)
{
	struct h_slot_attr attr = { 0 };
	struct h_slot *slot, *found = NULL;
	struct hamlyn_query query;
	uint32_t n;
	int ret;

	ret = ht_open(hog);
	if (!ret)
		ret = h_query(*hog, &query);
	if (!ret)
		ret = h_area_alloc(*hog, 4096, &attr.area);
	for (n = 0; !ret && n <= query.max_slots; n++) {
		ret = h_slot_create(*hog, &attr, &slot);
		if (!ret && h_slot_number(slot) == number)
			found = slot;
	}
	if (ret != -ENOSPC || !found)
		return -EIO;
	return h_slot_destroy(found);
}

TEST_F(protection, a_ticket_does_not_work_for_the_next_slot_of_its_number)
{
	struct ht_pair *pair = &self->pair;
	struct h_ticket stale = pair->ticket;
	uint32_t number = h_slot_number(pair->slot);
	struct h_dev *hog;

	ASSERT_EQ(0, h_slot_destroy(pair->slot));
	ASSERT_EQ(0, take_all_slots_but(number, &hog));
	ASSERT_EQ(0, make_slot(pair, &pair->slot));
	ASSERT_EQ(number, h_slot_number(pair->slot));
	EXPECT_NO(any_passed(pair, &stale, HAMLYN_REJECT_KEY));
	h_close(hog);
	ASSERT_EQ(0, h_slot_ticket(pair->slot, 0, 0, 0, &stale));
	EXPECT_NO(good_does_not_pass(pair, &stale));
}

TEST_F(protection, packets_outside_the_message_area_are_rejected)
{
	const uint64_t area = self->pair.length;
	const uint64_t base = self->pair.base;
	const struct {
		uint64_t offset;
		size_t length;
	} cases[] = {
		{ area, 1 },
		{ area + 1, 0 },
		{ area + 1, 1 },
		{ area - 1, 2 },
		{ area - 300, 301 },
		{ 1, area },
		{ 0, area + 1 },
		{ ~0ULL, 0 },
		{ ~0ULL, 1 },
		{ ~0ULL, 2 },
		{ ~0ULL - 9, 20 },
		{ 0 - area, area },
		{ 1ULL << 31, 1 },
		{ 1ULL << 32, 1 },
		{ (1ULL << 32) + 7, 7 },
		{ 1ULL << 63, 1 },
		{ 0x7fffffffffffffffULL, 2 },
		/* What a sum with the base in the area would let pass. */
		{ 0 - base, 1 },
		{ 0 - base, 400 },
		{ 0 - 1ULL - base, 2 },
		{ 0 - base / 2, 10 },
	};
	struct h_msg msg = { .data = self->pair.send };
	struct h_ticket fast;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		self->ticket.base = cases[i].offset;
		msg.ticket = &self->ticket;
		msg.length = cases[i].length;
		msg.flags = 0;
		EXPECT_NO(passed(&self->pair, &msg, HAMLYN_REJECT_BOUNDS)) {
			TH_LOG("case %u", i);
		}
		msg.flags = HAMLYN_TRB_NO_NOTIFY;
		EXPECT_NO(passed(&self->pair, &msg, HAMLYN_REJECT_BOUNDS)) {
			TH_LOG("case %u, without notification", i);
		}
		fast = self->ticket;
		fast.meta_index = HAMLYN_META_FAST;
		msg.ticket = &fast;
		EXPECT_NO(passed(&self->pair, &msg, HAMLYN_REJECT_BOUNDS)) {
			TH_LOG("case %u, fast", i);
		}
	}
	EXPECT_NO(good_does_not_pass(&self->pair, &self->pair.ticket));
}

TEST_F(protection, nothing_at_all_fits_at_the_very_end)
{
	struct h_msg msg = { .ticket = &self->ticket };

	self->ticket.base = self->pair.length;
	ASSERT_EQ(1, ht_send_sync(self->pair.terminus, &msg));
	EXPECT_EQ(1, ht_pair_fence(&self->pair));
	EXPECT_TRUE(ht_pair_untouched(&self->pair));
}

TEST_F(protection, metadata_entries_that_are_not_there_are_rejected)
{
	const uint32_t count = variant->meta;
	const uint32_t indices[] = {
		count ? count : 1, count + 1, count + 2, 31, 32, 0x02000000,
		0x02000001, 0x7fffffff, 0x80000000, 0xfffffffe, 0xfffffff0,
	};
	struct h_msg msg = { .ticket = &self->ticket, .data = self->pair.send };
	unsigned int i, kind;

	for (i = 0; i < ARRAY_SIZE(indices); i++)
		for (kind = 0; kind < 8; kind++) {
			self->ticket.meta_index = indices[i];
			msg.length = kind & 1 ? 300 : 0;
			msg.meta = kind & 2 ? "metadata" : NULL;
			msg.meta_length = kind & 2 ? 8 : 0;
			msg.delta = kind & 4 ? 100 : 0;
			EXPECT_NO(passed(&self->pair, &msg,
					 HAMLYN_REJECT_METADATA)) {
				TH_LOG("index %x, kind %u", indices[i], kind);
			}
		}
	self->ticket.meta_index = 0;
	EXPECT_NO(good_does_not_pass(&self->pair, &self->ticket));
}

/* A longer message area, for messages of several packets. */
FIXTURE(long_message) {
	struct ht_pair pair;
	size_t packet;
};

FIXTURE_SETUP(long_message)
{
}

FIXTURE_TEARDOWN(long_message)
{
	ht_pair_close(&self->pair);
}

static int open_wide(FIXTURE_DATA(long_message) *wide, uint32_t meta)
{
	struct ht_pair_attr attr = {
		.length = 2 * HAMLYN_MAX_PACKET + 100,
		.send_length = 4 * HAMLYN_MAX_PACKET,
		.meta = meta,
	};
	int ret = ht_pair_open(&wide->pair, &attr);

	if (ret)
		return ret;
	wide->packet = wide->pair.query.packet_size;
	ht_fill(wide->pair.send, wide->pair.send_length, 1);
	return 0;
}

TEST_F(long_message, several_packets_need_an_entry_to_be_counted_in)
{
	struct h_msg msg;
	unsigned int kind;

	ASSERT_EQ(0, open_wide(self, 0));
	for (kind = 0; kind < 4; kind++) {
		msg = (struct h_msg) {
			.ticket = &self->pair.ticket,
			.data = self->pair.send,
			.length = self->packet + (kind & 1 ? self->packet : 1),
			.delta = kind & 2 ? 100 : 0,
		};
		EXPECT_NO(passed(&self->pair, &msg, HAMLYN_REJECT_METADATA)) {
			TH_LOG("kind %u", kind);
		}
	}
	/* Not either if its last packet has a delta of 0, as if complete. */
	msg.delta = 1;
	msg.length = 2 * self->packet;
	EXPECT_NO(passed(&self->pair, &msg, HAMLYN_REJECT_METADATA));
	/* One packet with metadata, or as a share of a group, does so too. */
	msg = (struct h_msg) { .ticket = &self->pair.ticket, .meta = "m",
			       .meta_length = 1 };
	EXPECT_NO(passed(&self->pair, &msg, HAMLYN_REJECT_METADATA));
	msg.flags = HAMLYN_TRB_NO_NOTIFY;
	EXPECT_NO(passed(&self->pair, &msg, HAMLYN_REJECT_METADATA));
	msg = (struct h_msg) { .ticket = &self->pair.ticket, .delta = 1 };
	EXPECT_NO(passed(&self->pair, &msg, HAMLYN_REJECT_METADATA));
}

TEST_F(long_message, several_packets_that_are_not_counted_need_none)
{
	struct ht_pair *pair = &self->pair;
	struct h_msg msg = { .flags = HAMLYN_TRB_NO_NOTIFY };

	ASSERT_EQ(0, open_wide(self, 0));
	msg.ticket = &pair->ticket;
	msg.data = pair->send;
	for (msg.length = 1; msg.length <= pair->length;
	     msg.length += self->packet) {
		ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
		ASSERT_EQ(0, ht_pair_fence(pair));
		EXPECT_EQ(msg.length, ht_match(pair->data, msg.length, 1));
		ht_pair_clear(pair);
	}
}

TEST_F(long_message, a_message_over_the_end_is_cut_to_packets_and_not_notified)
{
	struct ht_rejects before;
	struct h_ticket forged;
	size_t inside, over;
	struct h_msg msg = { .ticket = &forged };

	ASSERT_EQ(0, open_wide(self, 1));
	for (over = 1; over <= self->packet; over += self->packet / 3) {
		forged = self->pair.ticket;
		forged.base = self->pair.length - 2 * self->packet + over;
		forged.length = UINT64_MAX;
		inside = self->packet;
		msg.data = self->pair.send;
		msg.length = 2 * self->packet;
		ASSERT_EQ(0, ht_pair_rejects(&self->pair, &before));
		ASSERT_EQ(1, ht_send_sync(self->pair.terminus, &msg));
		EXPECT_EQ(0, ht_pair_fence(&self->pair));
		EXPECT_TRUE(ht_pair_guarded(&self->pair));
		EXPECT_EQ(inside, ht_match(self->pair.data + forged.base,
					   inside, 1));
		EXPECT_EQ(self->pair.length - inside - forged.base,
			  ht_match_byte(self->pair.data + forged.base + inside,
					self->pair.length - inside -
					forged.base, HT_GUARD));
		EXPECT_NO(miscounted(&self->pair, &before,
				     HAMLYN_REJECT_BOUNDS, 1));
		ht_pair_clear(&self->pair);
	}
}

/*
 * A message that begins near 2^64 and goes on at 0: it names no range at all,
 * so no part of it may land, whoever refuses it.
 */
TEST_F(long_message, a_message_does_not_wrap_around_2_to_the_64)
{
	struct h_ticket forged;
	struct h_msg msg = { .ticket = &forged };
	unsigned int packets;
	int ret;

	ASSERT_EQ(0, open_wide(self, 1));
	for (packets = 1; packets < 4; packets++) {
		forged = self->pair.ticket;
		forged.base = 0 - (uint64_t)packets * self->packet;
		forged.length = UINT64_MAX;
		msg.data = self->pair.send;
		msg.length = (packets + 1) * self->packet;
		if (msg.length > self->pair.send_length)
			break;
		ret = ht_send_sync(self->pair.terminus, &msg);
		EXPECT_TRUE(ret == 1 || ret == -EINVAL) {
			TH_LOG("%d", ret);
		}
		EXPECT_EQ(0, ht_pair_fence(&self->pair));
		EXPECT_TRUE(ht_pair_untouched(&self->pair)) {
			TH_LOG("%u packets before 2^64", packets);
		}
		ht_pair_clear(&self->pair);
	}
}

TEST_F(protection, a_sender_cannot_tell_from_its_counters_either)
{
	static const char *const names[] = {
		"messages", "packets", "bytes", "failed", "notifications",
		"overruns", "kicks", "rejects",
	};
	struct ht_pair *pair = &self->pair;
	struct hamlyn_stats stats[3];
	struct h_msg msg = { .data = pair->send, .length = 300 };
	const uint64_t *seen[3];
	unsigned int i;

	ASSERT_EQ(0, h_terminus_stats(pair->terminus, &stats[0]));
	msg.ticket = &pair->ticket;
	ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
	ASSERT_EQ(0, h_terminus_stats(pair->terminus, &stats[1]));
	self->ticket.key ^= 4;
	msg.ticket = &self->ticket;
	ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
	ASSERT_EQ(0, h_terminus_stats(pair->terminus, &stats[2]));
	for (i = 0; i < 3; i++)
		seen[i] = (const void *)&stats[i].messages;
	for (i = 0; i < 7 + HAMLYN_STATS_REASONS; i++) {
		/* How often it kicked is the sender's own doing. */
		if (i == 6)
			continue;
		EXPECT_EQ(seen[1][i] - seen[0][i], seen[2][i] - seen[1][i]) {
			TH_LOG("%s", names[i < 7 ? i : 7]);
		}
	}
}

TEST_F(protection, neighbours_in_an_area_do_not_touch_each_other)
{
	enum { SLOTS = 8, EACH = 100 };
	struct h_slot_attr attr = { .length = EACH };
	struct ht_pair *pair = &self->pair;
	struct h_ticket tickets[SLOTS];
	struct h_slot *slot;
	struct h_msg msg = { .data = pair->send, .length = EACH };
	unsigned char *area;
	unsigned int i, j;

	ASSERT_EQ(0, h_area_alloc(pair->rx, SLOTS * EACH, &attr.area));
	area = h_area_addr(attr.area);
	for (i = 0; i < SLOTS; i++) {
		attr.base = i * EACH;
		ASSERT_EQ(0, h_slot_create(pair->rx, &attr, &slot));
		ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &tickets[i]));
		tickets[i].length = UINT64_MAX;
	}
	for (i = 0; i < SLOTS; i++) {
		memset(area, HT_GUARD, SLOTS * EACH);
		msg.ticket = &tickets[i];
		/* One byte too far on either side, then exactly. */
		msg.offset = 1;
		ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
		msg.offset = ~0ULL;
		tickets[i].length = 0;
		tickets[i].base = ~0ULL;
		tickets[i].length = UINT64_MAX;
		msg.offset = 0;
		ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
		ASSERT_EQ(0, ht_pair_fence(pair));
		EXPECT_EQ(SLOTS * EACH, ht_match_byte(area, SLOTS * EACH,
						      HT_GUARD));
		tickets[i].base = 0;
		ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
		ASSERT_EQ(0, ht_pair_fence(pair));
		EXPECT_EQ(EACH, ht_match(area + i * EACH, EACH, 1));
		for (j = 0; j < SLOTS; j++) {
			EXPECT_EQ(j == i ? 0 : EACH,
				  ht_match_byte(area + j * EACH, EACH,
						HT_GUARD));
		}
	}
}

TEST_F(protection, nothing_in_a_metadata_entry_is_trusted)
{
	struct ht_pair *pair = &self->pair;
	struct h_msg msg = { .ticket = &self->ticket, .data = pair->send };
	size_t bytes = pair->meta_count * sizeof(*pair->meta);
	uint64_t random = ht_seed();
	size_t i;
	int round;

	for (round = 0; round < 500; round++) {
		for (i = 0; i < bytes; i++)
			((unsigned char *)pair->meta)[i] =
				(unsigned char)ht_random(&random);
		self->ticket.meta_index = pair->meta_count ?
					  round % pair->meta_count : 0;
		self->ticket.base = ht_random(&random) % (pair->length + 50);
		msg.length = ht_random(&random) % 400;
		msg.delta = pair->meta_count ? (uint32_t)ht_random(&random) : 0;
		ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
		ASSERT_GE(ht_pair_fence(pair), 0);
		ASSERT_TRUE(ht_pair_guarded(pair)) {
			TH_LOG("round %d", round);
		}
	}
	ht_pair_clear(pair);
	EXPECT_NO(good_does_not_pass(pair, &pair->ticket));
}

/* ---- revocation while somebody sends ------------------------------------ */

struct enemy {
	struct ht_pair *pair;
	struct h_ticket ticket;
	int stop;
	int failed;
	uint64_t sent;
};

static void *send_all_the_time(void *arg)
{
	struct enemy *e = arg;
	struct h_msg msg = {
		.ticket = &e->ticket,
		.data = e->pair->send,
		.length = e->pair->length,
		.flags = HAMLYN_TRB_NO_NOTIFY,
	};
	int64_t handle;

	while (!h__load_acquire(&e->stop)) {
		handle = h_send(e->pair->terminus, &msg);
		if (handle == -EAGAIN)
			ht_sleep_ns(1000);
		else if (handle < 0)
			h__store_release(&e->failed, (int)handle);
		else
			h__store_release(&e->sent, e->sent + 1);
	}
	return NULL;
}

/* Wait until a message has landed, so that others are on their way. */
static bool wait_for_data(struct ht_pair *pair)
{
	const unsigned char *last = pair->data + pair->length - 1;
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (h__read_once(last) == HT_GUARD)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

static const char *landed_after(struct ht_pair *pair, struct enemy *enemy)
{
	uint64_t sent = h__load_acquire(&enemy->sent);
	struct ht_poll poll;

	/* From now on the message area is the owner's alone. */
	ht_pair_clear(pair);
	ht_poll_begin(&poll);
	while (h__load_acquire(&enemy->sent) - sent < 20)
		if (!ht_poll_more(&poll))
			return "the other sends no more";
	return ht_pair_untouched(pair) ? NULL : "something landed";
}

TEST_F(long_message, nothing_lands_after_a_rekey_or_the_end_of_a_slot)
{
	struct enemy enemy = { 0 };
	pthread_t thread;
	int round;

	ASSERT_EQ(0, open_wide(self, 1));
	enemy.pair = &self->pair;
	for (round = 0; round < 60; round++) {
		ASSERT_EQ(0, h_slot_ticket(self->pair.slot, 0, 0, 0,
					   &enemy.ticket));
		enemy.stop = 0;
		ASSERT_EQ(0, pthread_create(&thread, NULL, send_all_the_time,
					    &enemy));
		ASSERT_TRUE(wait_for_data(&self->pair));
		if (round % 2) {
			ASSERT_EQ(0, h_slot_destroy(self->pair.slot));
		} else {
			ASSERT_EQ(0, h_slot_rekey(self->pair.slot));
		}
		EXPECT_NO(landed_after(&self->pair, &enemy)) {
			TH_LOG("round %d", round);
		}
		h__store_release(&enemy.stop, 1);
		pthread_join(thread, NULL);
		EXPECT_EQ(0, enemy.failed);
		if (round % 2) {
			ASSERT_EQ(0, make_slot(&self->pair, &self->pair.slot));
		}
	}
}

TEST_HARNESS_MAIN
