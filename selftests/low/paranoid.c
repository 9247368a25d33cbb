// SPDX-License-Identifier: GPL-2.0-only
/* Slots in the paranoid modes (H 2.7): every sender has a key and limits. */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define SENDERS	4
#define SHARE	1000	/* bytes of the message area for each */

FIXTURE(paranoid)
{
	struct h_dev *rx;
	struct h_dev *tx;
	struct h_area *area;
	struct h_area *meta;
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_terminus *terminus;
	struct ht_pair mark;
	struct h_ticket tickets[SENDERS];
	unsigned char *data;
};

FIXTURE_VARIANT(paranoid)
{
	uint32_t mode;
};

FIXTURE_VARIANT_ADD(paranoid, paranoid) { .mode = HAMLYN_SLOT_PARANOID };
FIXTURE_VARIANT_ADD(paranoid, one_shot) {
	.mode = HAMLYN_SLOT_PARANOID_ONE_SHOT
};

FIXTURE_SETUP(paranoid)
{
	struct h_slot_attr attr = {
		.mode = variant->mode,
		.meta_count = SENDERS,
	};
	uint32_t i;

	ASSERT_EQ(0, ht_open(&self->rx));
	ASSERT_EQ(0, ht_open_tx(&self->tx));
	ASSERT_EQ(0, h_area_alloc(self->rx, SENDERS * SHARE, &self->area));
	ASSERT_EQ(0, h_area_alloc(self->rx, 4096, &self->meta));
	ASSERT_EQ(0, h_nq_create(self->rx, 64, &self->nq));
	attr.area = self->area;
	attr.meta_area = self->meta;
	attr.nq = self->nq;
	ASSERT_EQ(0, h_slot_create(self->rx, &attr, &self->slot));
	ASSERT_EQ(0, h_terminus_create(self->tx, NULL, &self->terminus));
	self->mark = (struct ht_pair) {
		.rx = self->rx, .tx = self->tx, .terminus = self->terminus,
	};
	ASSERT_EQ(0, ht_pair_mark(&self->mark));
	for (i = 0; i < SENDERS; i++) {
		ASSERT_EQ(0, h_slot_entry_grant(self->slot, i, i * SHARE, SHARE,
						&self->tickets[i]));
	}
	self->data = h_area_addr(self->area);
	memset(self->data, HT_GUARD, SENDERS * SHARE);
}

FIXTURE_TEARDOWN(paranoid)
{
	ht_pair_unmark(&self->mark);
	h_close(self->tx);
	h_close(self->rx);
}

static const char *passes(FIXTURE_DATA(paranoid) *self, const struct h_msg *m)
{
	struct hamlyn_nq_entry e;

	if (ht_send_sync(self->terminus, m) != 1)
		return "not sent";
	if (ht_recv(self->nq, &e) != 1)
		return "not notified";
	if (e.index != m->ticket->meta_index ||
	    e.slot != h_slot_number(self->slot))
		return "the notification is another's";
	return NULL;
}

/* Nothing is notified, nothing in the area changes, the right reason counts. */
static const char *rejected(FIXTURE_DATA(paranoid) *self, const struct h_msg *m,
			    enum hamlyn_reject reason)
{
	struct hamlyn_stats before, after;
	struct hamlyn_nq_entry e;
	unsigned char was[SENDERS * SHARE];

	memcpy(was, self->data, sizeof(was));
	if (h_slot_stats(self->slot, &before))
		return "no counters";
	if (ht_send_sync(self->terminus, m) != 1)
		return "the sender was told";
	if (h_recv(self->nq, &e))
		return "notified";
	if (memcmp(was, self->data, sizeof(was)))
		return "something landed";
	if (h_slot_stats(self->slot, &after) ||
	    after.rejects[reason] != before.rejects[reason] + 1)
		return "counted for another reason";
	return NULL;
}

#define EXPECT_NO(complaint) EXPECT_EQ(NULL, ht_complain(complaint))

TEST_F(paranoid, each_sender_writes_to_its_share)
{
	uint32_t i;

	for (i = 0; i < SENDERS; i++) {
		struct h_msg m = { .ticket = &self->tickets[i],
				   .data = "mine", .length = 4,
				   .offset = SHARE - 4 };

		EXPECT_NO(passes(self, &m));
		EXPECT_EQ(0, memcmp(self->data + (i + 1) * SHARE - 4, "mine", 4));
	}
}

TEST_F(paranoid, nobody_writes_to_the_neighbours_share)
{
	struct h_ticket k = self->tickets[1];
	struct h_msg m = { .ticket = &k, .data = "12345678", .length = 8 };

	/* Forged: the library keeps honest senders inside their tickets. */
	k.base = 0;
	k.length = SENDERS * SHARE;
	m.offset = SHARE - 1;
	EXPECT_NO(rejected(self, &m, HAMLYN_REJECT_BOUNDS));
	m.offset = 2 * SHARE - 7;
	EXPECT_NO(rejected(self, &m, HAMLYN_REJECT_BOUNDS));
	m.offset = 0;
	EXPECT_NO(rejected(self, &m, HAMLYN_REJECT_BOUNDS));
	m.offset = 2 * SHARE - 8;
	EXPECT_NO(passes(self, &m));
}

TEST_F(paranoid, the_slots_key_and_other_entries_keys_do_not_help)
{
	struct h_ticket k = self->tickets[1];
	struct h_msg m = { .ticket = &k, .data = "x", .length = 1 };
	int bit;

	k.key = self->tickets[2].key;
	EXPECT_NO(rejected(self, &m, HAMLYN_REJECT_KEY));
	k.key = 0;
	EXPECT_NO(rejected(self, &m, HAMLYN_REJECT_KEY));
	for (bit = 0; bit < 64; bit++) {
		k.key = self->tickets[1].key ^ 1ULL << bit;
		EXPECT_NO(rejected(self, &m, HAMLYN_REJECT_KEY));
	}
}

TEST_F(paranoid, revoking_one_sender_leaves_the_others)
{
	struct h_msg m = { .ticket = &self->tickets[1], .data = "x",
			   .length = 1 };

	ASSERT_EQ(0, h_slot_entry_revoke(self->slot, 1));
	EXPECT_NO(rejected(self, &m, HAMLYN_REJECT_KEY));
	m.ticket = &self->tickets[2];
	EXPECT_NO(passes(self, &m));
	m.ticket = &self->tickets[1];
	ASSERT_EQ(0, h_slot_entry_grant(self->slot, 1, SHARE, SHARE,
					&self->tickets[3]));
	EXPECT_NO(rejected(self, &m, HAMLYN_REJECT_KEY));
	m.ticket = &self->tickets[3];
	EXPECT_NO(passes(self, &m));
}

TEST_F(paranoid, a_message_needs_an_entry)
{
	struct h_ticket k = self->tickets[0];
	struct h_msg m = { .ticket = &k, .word = 5 };

	k.meta_index = HAMLYN_META_FAST;
	EXPECT_NO(rejected(self, &m, HAMLYN_REJECT_METADATA));
	m.word = 0;
	k.meta_index = SENDERS;
	EXPECT_NO(rejected(self, &m, HAMLYN_REJECT_METADATA));
	EXPECT_EQ(-ERANGE, h_slot_ticket(self->slot, 0, 0, HAMLYN_META_FAST,
					 &k));
}

TEST_F(paranoid, limits_change_without_a_call)
{
	struct h_msg m = { .ticket = &self->tickets[0], .data = "x",
			   .length = 1, .offset = 500 };
	struct hamlyn_metadata *entry = h_slot_entry(self->slot, 0);

	ASSERT_NE(NULL, entry);
	h__write_once(&entry->high, 500);
	EXPECT_NO(rejected(self, &m, HAMLYN_REJECT_BOUNDS));
	h__write_once(&entry->high, 501);
	EXPECT_NO(passes(self, &m));
}

TEST_F(paranoid, one_message_an_arming_in_one_shot_mode_only)
{
	struct h_msg m = { .ticket = &self->tickets[0], .data = "x",
			   .length = 1 };
	int i;

	for (i = 0; i < 10; i++) {
		EXPECT_NO(passes(self, &m));
		if (variant->mode != HAMLYN_SLOT_PARANOID_ONE_SHOT)
			continue;
		EXPECT_NO(rejected(self, &m, HAMLYN_REJECT_ONE_SHOT));
		ASSERT_EQ(0, h_slot_entry_arm(self->slot, 0));
	}
}

/* H 2.7: an NQ with more entries than there are metadata entries is safe. */
TEST_F(paranoid, one_shot_bounds_what_a_sender_can_queue)
{
	struct h_msg m = { .ticket = &self->tickets[0], .data = "x",
			   .length = 1 };
	struct hamlyn_nq_entry e;
	int i, n = 0, ret;

	for (i = 0; i < 200; i++) {
		ASSERT_EQ(1, ht_send_sync(self->terminus, &m));
	}
	while ((ret = h_recv(self->nq, &e)) == 1)
		n++;
	if (variant->mode == HAMLYN_SLOT_PARANOID_ONE_SHOT) {
		EXPECT_EQ(0, ret);
		EXPECT_EQ(1, n);
		EXPECT_EQ(0, h_nq_lost(self->nq));
	} else {
		EXPECT_EQ(-EOVERFLOW, ret);
		EXPECT_EQ(63, n);
	}
}

TEST_F(paranoid, long_messages_with_metadata_are_one_message)
{
	struct hamlyn_query q;
	struct h_slot_attr attr = { .mode = variant->mode, .meta_count = 1 };
	struct h_area *from;
	struct h_slot *slot;
	struct h_ticket k;
	struct h_msg m = { .ticket = &k, .meta = "about it", .meta_length = 8 };
	struct hamlyn_nq_entry e;

	ASSERT_EQ(0, h_query(self->rx, &q));
	m.length = 3 * q.packet_size + 5;
	ASSERT_EQ(0, h_area_alloc(self->rx, m.length, &attr.area));
	ASSERT_EQ(0, h_area_alloc(self->rx, 4096, &attr.meta_area));
	attr.nq = self->nq;
	ASSERT_EQ(0, h_slot_create(self->rx, &attr, &slot));
	ASSERT_EQ(0, h_slot_entry_grant(slot, 0, 0, m.length, &k));
	ASSERT_EQ(0, h_area_alloc(self->tx, m.length, &from));
	ASSERT_EQ(0, h_terminus_bind(self->terminus, 0, from, 0, 0));
	ht_fill(h_area_addr(from), m.length, 3);
	m.data = h_area_addr(from);
	ASSERT_EQ(1, ht_send_sync(self->terminus, &m));
	ASSERT_EQ(1, ht_recv(self->nq, &e));
	EXPECT_EQ(m.length, ht_match(h_area_addr(attr.area), m.length, 3));
	EXPECT_EQ(0, memcmp(h_slot_entry(slot, 0)->user, "about it", 8));
	EXPECT_EQ(0, h_slot_entry(slot, 0)->accumulator);
	EXPECT_EQ(0, h_recv(self->nq, &e));
}

TEST(a_paranoid_slot_needs_metadata_entries_and_a_known_mode)
{
	struct h_slot_attr attr = { .mode = HAMLYN_SLOT_PARANOID };
	struct h_slot *slot;
	struct h_ticket k;
	struct h_dev *dev;

	ASSERT_EQ(0, ht_open(&dev));
	ASSERT_EQ(0, h_area_alloc(dev, 4096, &attr.area));
	EXPECT_EQ(-EINVAL, h_slot_create(dev, &attr, &slot));
	attr.mode = 3;
	EXPECT_EQ(-EINVAL, h_slot_create(dev, &attr, &slot));
	attr.mode = HAMLYN_SLOT_NORMAL;
	ASSERT_EQ(0, h_slot_create(dev, &attr, &slot));
	EXPECT_EQ(-EINVAL, h_slot_entry_grant(slot, 0, 0, 0, &k));
	EXPECT_EQ(-ERANGE, h_slot_entry_arm(slot, 0));
	EXPECT_EQ(NULL, h_slot_entry(slot, 0));
	h_close(dev);
}

TEST_HARNESS_MAIN
