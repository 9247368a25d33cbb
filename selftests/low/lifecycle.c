// SPDX-License-Identifier: GPL-2.0-only
/*
 * Objects come and go: every order, the limits, and what is left behind.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

FIXTURE(lifecycle) {
	struct h_dev *dev;
	struct hamlyn_query query;
	long page;
};

FIXTURE_SETUP(lifecycle)
{
	ASSERT_EQ(0, ht_open(&self->dev));
	ASSERT_EQ(0, h_query(self->dev, &self->query));
	self->page = sysconf(_SC_PAGESIZE);
}

FIXTURE_TEARDOWN(lifecycle)
{
	h_close(self->dev);
}

/* One of everything, used by one another as far as possible. */
enum object { AREA, META, NQ, SLOT, BUFFER, TERMINUS, OBJECTS };

struct set {
	struct h_area *area;
	struct h_area *meta;
	struct h_area *buffer;
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_terminus *terminus;
};

static int create_set(struct h_dev *dev, struct set *set)
{
	struct h_slot_attr attr = { 0 };
	int ret;

	ret = h_area_alloc(dev, 4096, &set->area);
	if (!ret)
		ret = h_area_alloc(dev, 4096, &set->meta);
	if (!ret)
		ret = h_area_alloc(dev, 4096, &set->buffer);
	if (!ret)
		ret = h_nq_create(dev, 8, &set->nq);
	if (ret)
		return ret;
	attr.area = set->area;
	attr.meta_area = set->meta;
	attr.meta_count = 4;
	attr.nq = set->nq;
	ret = h_slot_create(dev, &attr, &set->slot);
	if (!ret)
		ret = h_terminus_create(dev, NULL, &set->terminus);
	if (!ret)
		ret = h_terminus_bind(set->terminus, 0, set->buffer, 0, 0);
	return ret;
}

static int destroy_object(struct set *set, enum object object)
{
	switch (object) {
	case AREA:
		return h_area_remove(set->area);
	case META:
		return h_area_remove(set->meta);
	case NQ:
		return h_nq_destroy(set->nq);
	case SLOT:
		return h_slot_destroy(set->slot);
	case BUFFER:
		return h_area_remove(set->buffer);
	default:
		return h_terminus_destroy(set->terminus);
	}
}

/* What must be gone before @object may go. */
static unsigned int users(enum object object)
{
	switch (object) {
	case AREA:
	case META:
	case NQ:
		return 1U << SLOT;
	case BUFFER:
		return 1U << TERMINUS;
	default:
		return 0;
	}
}

/* The @number-th permutation of all objects. */
static void permute(unsigned int number, enum object *order)
{
	unsigned int left[OBJECTS];
	unsigned int i, j, pick;

	for (i = 0; i < OBJECTS; i++)
		left[i] = i;
	for (i = 0; i < OBJECTS; i++) {
		pick = number % (OBJECTS - i);
		number /= OBJECTS - i;
		order[i] = left[pick];
		for (j = pick; j + 1 < OBJECTS - i; j++)
			left[j] = left[j + 1];
	}
}

/* Destroy in @order; what is still in use goes in the second round. */
static const char *destroy_in_order(struct set *set, const enum object *order)
{
	unsigned int gone = 0;
	unsigned int i, round;
	int want, got;

	for (round = 0; round < 2; round++)
		for (i = 0; i < OBJECTS; i++) {
			if (gone & (1U << order[i]))
				continue;
			want = users(order[i]) & ~gone ? -EBUSY : 0;
			got = destroy_object(set, order[i]);
			if (got != want)
				return want ? "destroyed while in use" :
					      "not destroyed though unused";
			if (!got)
				gone |= 1U << order[i];
		}
	return gone == (1U << OBJECTS) - 1 ? NULL : "something is left";
}

TEST_F(lifecycle, objects_die_in_every_order_but_not_while_used)
{
	enum object order[OBJECTS];
	unsigned int number;
	struct set set;

	for (number = 0; number < 720; number++) {
		memset(&set, 0, sizeof(set));
		ASSERT_EQ(0, create_set(self->dev, &set));
		permute(number, order);
		ASSERT_NO(destroy_in_order(&set, order))
			TH_LOG("order number %u", number);
	}
}

TEST_F(lifecycle, unbinding_the_last_tag_frees_an_area)
{
	struct h_area *area, *other;
	struct h_terminus *t;

	ASSERT_EQ(0, h_area_alloc(self->dev, 8192, &area));
	ASSERT_EQ(0, h_area_alloc(self->dev, 8192, &other));
	ASSERT_EQ(0, h_terminus_create(self->dev, NULL, &t));
	ASSERT_EQ(0, h_terminus_bind(t, 0, area, 0, 0));
	ASSERT_EQ(0, h_terminus_bind(t, 7, area, 4096, 0));
	EXPECT_EQ(-EBUSY, h_area_remove(area));
	ASSERT_EQ(0, h_terminus_bind(t, 0, NULL, 0, 0));
	EXPECT_EQ(-EBUSY, h_area_remove(area));
	ASSERT_EQ(0, h_terminus_bind(t, 7, other, 0, 0));
	EXPECT_EQ(0, h_area_remove(area));
	EXPECT_EQ(-EBUSY, h_area_remove(other));
	ASSERT_EQ(0, h_terminus_destroy(t));
	EXPECT_EQ(0, h_area_remove(other));
}

TEST_F(lifecycle, an_area_is_busy_until_its_last_slot_is_gone)
{
	struct h_slot_attr attr = { 0 };
	struct h_slot *slots[3];
	struct h_area *area;
	struct h_nq *nq;
	unsigned int i;

	ASSERT_EQ(0, h_area_alloc(self->dev, 8192, &area));
	ASSERT_EQ(0, h_nq_create(self->dev, 8, &nq));
	attr.area = area;
	attr.nq = nq;
	attr.length = 4096;
	attr.meta_area = area;
	attr.meta_base = 4096;
	attr.meta_count = 2;
	for (i = 0; i < ARRAY_SIZE(slots); i++) {
		ASSERT_EQ(0, h_slot_create(self->dev, &attr, &slots[i]));
	}
	for (i = 0; i < ARRAY_SIZE(slots); i++) {
		EXPECT_EQ(-EBUSY, h_area_remove(area));
		EXPECT_EQ(-EBUSY, h_nq_destroy(nq));
		ASSERT_EQ(0, h_slot_destroy(slots[i]));
	}
	EXPECT_EQ(0, h_area_remove(area));
	EXPECT_EQ(0, h_nq_destroy(nq));
}

TEST_F(lifecycle, a_failed_removal_leaves_the_objects_working)
{
	struct hamlyn_nq_entry entry;
	struct h_ticket ticket;
	struct set set = { 0 };
	struct h_msg msg = { .ticket = &ticket, .data = "still", .length = 5 };

	ASSERT_EQ(0, create_set(self->dev, &set));
	EXPECT_EQ(-EBUSY, h_area_remove(set.area));
	EXPECT_EQ(-EBUSY, h_area_remove(set.meta));
	EXPECT_EQ(-EBUSY, h_area_remove(set.buffer));
	EXPECT_EQ(-EBUSY, h_nq_destroy(set.nq));
	ASSERT_EQ(0, h_slot_ticket(set.slot, 0, 0, 0, &ticket));
	ASSERT_EQ(1, ht_send_sync(set.terminus, &msg));
	ASSERT_EQ(1, ht_recv(set.nq, &entry));
	EXPECT_EQ(0, memcmp(h_area_addr(set.area), "still", 5));
}

TEST_F(lifecycle, close_frees_everything_hundreds_of_times)
{
	struct h_area *area;
	struct h_dev *dev;
	struct set set;
	int slots, areas;
	int i, j;

	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &area));
	slots = ht_count_slots(self->dev, area, 2000);
	areas = ht_count_areas(self->dev, 1 << 20, 32);
	ASSERT_GT(slots, 0);
	ASSERT_GT(areas, 0);
	for (i = 0; i < 200; i++) {
		ASSERT_EQ(0, ht_open(&dev));
		for (j = 0; j < 12; j++) {
			memset(&set, 0, sizeof(set));
			ASSERT_EQ(0, create_set(dev, &set))
				TH_LOG("round %d", i);
		}
		h_close(dev);
	}
	EXPECT_EQ(slots, ht_count_slots(self->dev, area, 2000));
	EXPECT_EQ(areas, ht_count_areas(self->dev, 1 << 20, 32));
	h_close(NULL);
}

/* A message through each slot, which tells which one it came through. */
static const char *use_slots(struct h_dev *dev, struct h_slot **slots, int n,
			     struct h_nq *nq)
{
	struct hamlyn_nq_entry entry;
	struct h_terminus *terminus;
	struct h_ticket ticket;
	struct h_msg msg = { .ticket = &ticket };
	int i;

	if (h_terminus_create(dev, NULL, &terminus))
		return "no terminus";
	for (i = 0; i < n; i++) {
		if (h_slot_ticket(slots[i], 0, 0, HAMLYN_META_FAST, &ticket))
			return "no ticket";
		ht_tell_key(ticket.key);
		msg.word = (uint64_t)i;
		if (ht_send_sync(terminus, &msg) != 1)
			return "not sent";
		if (ht_recv(nq, &entry) != 1 || entry.data != (uint64_t)i ||
		    entry.slot != h_slot_number(slots[i]))
			return "wrong notification";
	}
	return NULL;
}

/* H 6.6: Slots are abundant and cheap: they are in main memory, not in the card. */
TEST_F(lifecycle, a_thousand_slots_have_their_own_numbers_and_keys)
{
	enum { MANY = 1000 };
	static struct h_slot *slots[MANY];
	struct h_slot_attr attr = { 0 };
	struct h_ticket tickets[2];
	struct h_area *area;
	struct h_nq *nq;
	int i, j;

	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &area));
	ASSERT_EQ(0, h_nq_create(self->dev, 8, &nq));
	attr.area = area;
	attr.nq = nq;
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, h_slot_create(self->dev, &attr, &slots[i]))
			TH_LOG("slot %d", i);
	}
	for (i = 0; i < MANY; i++) {
		h_slot_ticket(slots[i], 0, 0, 0, &tickets[0]);
		EXPECT_LT(tickets[0].slot, self->query.max_slots);
		EXPECT_EQ(tickets[0].slot, h_slot_number(slots[i]));
		EXPECT_EQ(tickets[0].host, self->query.host);
		for (j = 0; j < i; j++) {
			h_slot_ticket(slots[j], 0, 0, 0, &tickets[1]);
			ASSERT_NE(tickets[0].slot, tickets[1].slot);
			ASSERT_NE(tickets[0].key, tickets[1].key);
		}
	}
	ASSERT_NO(use_slots(self->dev, slots, MANY, nq));
	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, h_slot_destroy(slots[(i * 7) % MANY]));
	}
	EXPECT_EQ(0, h_nq_destroy(nq));
	EXPECT_EQ(0, h_area_remove(area));
}

TEST_F(lifecycle, slots_run_out_with_ENOSPC_and_come_back)
{
	uint32_t n, round, most = self->query.max_slots;
	struct h_slot *one, *extra = NULL;
	struct h_slot_attr attr = { 0 };
	struct h_dev *hog;
	int ret = 0;

	/* Closing gives them back all at once, and they are there again. */
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(0, ht_open(&hog));
		ASSERT_EQ(0, h_area_alloc(hog, 4096, &attr.area));
		ASSERT_EQ(0, h_slot_create(hog, &attr, &one));
		for (n = 1; n <= most; n++) {
			ret = h_slot_create(hog, &attr, &extra);
			if (ret)
				break;
		}
		EXPECT_EQ(-ENOSPC, ret) {
			TH_LOG("after %u slots", n);
		}
		/* Nobody else is on the NIC; a few may be kept back. */
		EXPECT_GE(n + 16, most);
		EXPECT_LE(n, most);
		ASSERT_EQ(0, h_slot_destroy(one));
		EXPECT_EQ(0, h_slot_create(hog, &attr, &one));
		EXPECT_EQ(-ENOSPC, h_slot_create(hog, &attr, &extra));
		h_close(hog);
	}
}

TEST_F(lifecycle, given_keys_are_taken)
{
	static const uint64_t keys[] = {
		1, 0x8000000000000000ULL, 0x0123456789abcdefULL, ~0ULL,
	};
	struct h_slot_attr attr = { .flags = HAMLYN_SLOT_KEY_GIVEN };
	struct h_ticket ticket;
	struct h_slot *slot;
	unsigned int i;

	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &attr.area));
	for (i = 0; i < ARRAY_SIZE(keys); i++) {
		attr.key = keys[i];
		ASSERT_EQ(0, h_slot_create(self->dev, &attr, &slot));
		ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &ticket));
		EXPECT_EQ(keys[i], ticket.key);
		ASSERT_EQ(0, h_slot_rekey(slot));
		ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &ticket));
		EXPECT_NE(keys[i], ticket.key);
		ASSERT_EQ(0, h_slot_destroy(slot));
	}
}

TEST_F(lifecycle, new_areas_are_zero_page_aligned_and_whole_pages)
{
	static const size_t lengths[] = { 1, 100, 4096, 4097, 65536, 1000001 };
	struct h_area *area;
	unsigned int i, round;
	size_t length;

	for (round = 0; round < 20; round++)
		for (i = 0; i < ARRAY_SIZE(lengths); i++) {
			ASSERT_EQ(0, h_area_alloc(self->dev, lengths[i],
						  &area));
			length = h_area_length(area);
			EXPECT_GE(length, lengths[i]);
			EXPECT_LT(length - lengths[i], (size_t)self->page);
			EXPECT_EQ(0, length % self->page);
			EXPECT_EQ(0, (uintptr_t)h_area_addr(area) %
				     self->page);
			ASSERT_EQ(length, ht_match_byte(h_area_addr(area),
							length, 0));
			memset(h_area_addr(area), 0xff, length);
			ASSERT_EQ(0, h_area_remove(area));
		}
}

TEST_F(lifecycle, query_tells_sane_limits)
{
	const struct hamlyn_query *q = &self->query;

	EXPECT_EQ(HAMLYN_ABI_VERSION, q->abi_version);
	EXPECT_LE(q->engine_mode, HAMLYN_ENGINE_POLL);
	EXPECT_GE(q->packet_size, HAMLYN_MIN_PACKET);
	EXPECT_LE(q->packet_size, HAMLYN_MAX_PACKET);
	EXPECT_GE(q->max_slots, 1000);
	EXPECT_GE(q->max_nq_entries, 2);
	EXPECT_GE(q->max_wq_entries, 64);
	EXPECT_GE(q->max_entry_size, 512);
	EXPECT_EQ(0, q->fabric);
	EXPECT_GT(q->max_area, 0);
	EXPECT_GE(q->max_message, q->packet_size);
	EXPECT_LE(q->max_message, HAMLYN_MAX_MESSAGE);
}

TEST_F(lifecycle, notification_queues_have_limits)
{
	const uint32_t most = self->query.max_nq_entries;
	const uint32_t bad[] = { 0, 1, 3, 6, 7, 9, 1000, most - 1, most + 1,
				 most * 2, 0x80000000, 0xffffffff };
	struct h_nq *nq;
	uint32_t entries;
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, h_nq_create(self->dev, bad[i], &nq))
			TH_LOG("case %u", i);
	}
	for (entries = 2; entries <= most && entries <= 8192; entries *= 2) {
		EXPECT_EQ(0, h_nq_create(self->dev, entries, &nq));
		EXPECT_EQ(0, h_nq_lost(nq));
		EXPECT_EQ(0, h_nq_destroy(nq));
	}
	/* The largest is legal, whether or not there is room for it now. */
	ret = h_nq_create(self->dev, most, &nq);
	EXPECT_TRUE(ret == 0 || ret == -ENOSPC || ret == -ENOMEM)
		TH_LOG("%d for %u entries", ret, most);
}

TEST_F(lifecycle, termini_have_limits)
{
	const uint32_t most = self->query.max_wq_entries;
	const uint32_t wide = self->query.max_entry_size;
	const struct h_terminus_attr bad[] = {
		{ .entries = 1 }, { .entries = 3 }, { .entries = 63 },
		{ .entries = most - 1 }, { .entries = most * 2 },
		{ .entries = 0xffffffff }, { .entry_size = 1 },
		{ .entry_size = 64 }, { .entry_size = 127 },
		{ .entry_size = 192 }, { .entry_size = wide * 2 },
		{ .entry_size = 0x80000000 }, { .flags = 1U << 31 },
		{ .flags = 2 },
	};
	struct h_terminus_attr good = { 0 };
	struct h_terminus *t;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		EXPECT_EQ(-EINVAL, h_terminus_create(self->dev, &bad[i], &t))
			TH_LOG("attributes %u", i);
	}
	for (good.entries = 2; good.entries <= most; good.entries *= 2)
		for (good.entry_size = 128; good.entry_size <= wide;
		     good.entry_size *= 2) {
			if ((uint64_t)good.entries * good.entry_size > 1 << 20)
				continue;
			ASSERT_EQ(0, h_terminus_create(self->dev, &good, &t));
			ASSERT_EQ(0, h_terminus_destroy(t));
		}
}

/* L 3.4: A program has one block of wired memory. */
/* not kept: it may have as many areas as its limits allow */
TEST_F(lifecycle, areas_have_limits)
{
	uint64_t most = self->query.max_area;
	struct h_area *area;
	char byte;

	EXPECT_EQ(-EINVAL, h_area_alloc(self->dev, 0, &area));
	EXPECT_EQ(-E2BIG, h_area_alloc(self->dev, most + 1, &area));
	EXPECT_EQ(-E2BIG, h_area_alloc(self->dev, SIZE_MAX, &area));
	EXPECT_EQ(-E2BIG, h_area_alloc(self->dev, SIZE_MAX - 4095, &area));
	EXPECT_EQ(-EINVAL, h_area_add(self->dev, &byte, 0, 0, &area));
	EXPECT_EQ(-EINVAL, h_area_add(self->dev, &byte, 1, 2, &area));
	EXPECT_EQ(-EINVAL, h_area_add(self->dev, &byte, 1, 1U << 31, &area));
	/* What the process has is not the segment's. */
	EXPECT_EQ(h_dev_is_embedded(self->dev) ? -EFAULT : -E2BIG,
		  h_area_add(self->dev, &byte, most + 1, 0, &area));
}

TEST_F(lifecycle, slots_must_lie_inside_their_areas)
{
	struct h_area *area, *meta;
	struct h_slot *slot;

	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &area));
	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &meta));
	const struct {
		int want;
		struct h_slot_attr attr;
	} cases[] = {
		{ 0, { .area = area, .base = 4095, .length = 1 } },
		{ 0, { .area = area, .base = 0, .length = 4096 } },
		{ -ERANGE, { .area = area, .base = 0, .length = 4097 } },
		{ -ERANGE, { .area = area, .base = 4096, .length = 1 } },
		{ -ERANGE, { .area = area, .base = 4097 } },
		{ -ERANGE, { .area = area, .base = 1, .length = 4096 } },
		{ -ERANGE, { .area = area, .base = ~0ULL, .length = 1 } },
		{ -ERANGE, { .area = area, .base = ~0ULL, .length = 2 } },
		{ -ERANGE, { .area = area, .base = 1, .length = ~0ULL } },
		{ -ERANGE, { .area = area, .base = 4095, .length = ~0ULL } },
		{ 0, { .area = area, .meta_area = meta, .meta_count = 32 } },
		{ 0, { .area = area, .meta_area = meta, .meta_count = 1,
		       .meta_base = 4096 - 128 } },
		{ -ERANGE, { .area = area, .meta_area = meta,
			     .meta_count = 33 } },
		{ -ERANGE, { .area = area, .meta_area = meta, .meta_count = 1,
			     .meta_base = 4096 } },
		{ -ERANGE, { .area = area, .meta_area = meta, .meta_count = 2,
			     .meta_base = 4096 - 128 } },
		{ -ERANGE, { .area = area, .meta_area = meta, .meta_count = 1,
			     .meta_base = 0 - 128ULL } },
		{ -ERANGE, { .area = area, .meta_area = meta,
			     .meta_count = 0x02000000 } },
		{ -ERANGE, { .area = area, .meta_area = meta,
			     .meta_count = 0xffffffff } },
		{ -EINVAL, { .area = area, .meta_area = meta, .meta_count = 1,
			     .meta_base = 64 } },
		{ -EINVAL, { .area = area, .meta_area = meta, .meta_count = 1,
			     .meta_base = 1 } },
		{ -EINVAL, { .area = area, .meta_area = meta } },
		{ -EINVAL, { .area = area, .meta_count = 1 } },
		{ -EINVAL, { .area = area, .mode = 1000 } },
		{ -EINVAL, { .area = area, .flags = 4 } },
		{ -EINVAL, { .area = area, .flags = 1U << 31 } },
		{ -EINVAL, { .area = NULL } },
	};
	unsigned int i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ret = h_slot_create(self->dev, &cases[i].attr, &slot);
		EXPECT_EQ(cases[i].want, ret) TH_LOG("case %u", i);
		if (!ret) {
			EXPECT_EQ(0, h_slot_destroy(slot));
		}
	}
	EXPECT_EQ(0, h_area_remove(area));
	EXPECT_EQ(0, h_area_remove(meta));
}

TEST_F(lifecycle, send_buffer_areas_must_lie_inside_their_areas)
{
	struct h_terminus *t;
	struct h_area *area;

	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &area));
	ASSERT_EQ(0, h_terminus_create(self->dev, NULL, &t));
	EXPECT_EQ(0, h_terminus_bind(t, 0, area, 4095, 1));
	EXPECT_EQ(0, h_terminus_bind(t, 7, area, 0, 4096));
	EXPECT_EQ(-ERANGE, h_terminus_bind(t, 0, area, 0, 4097));
	EXPECT_EQ(-ERANGE, h_terminus_bind(t, 0, area, 4097, 0));
	EXPECT_EQ(-ERANGE, h_terminus_bind(t, 0, area, 4096, 1));
	EXPECT_EQ(-ERANGE, h_terminus_bind(t, 0, area, ~0ULL, 2));
	EXPECT_EQ(-ERANGE, h_terminus_bind(t, 0, area, 1, ~0ULL));
	EXPECT_EQ(-EINVAL, h_terminus_bind(t, HAMLYN_MAX_TAGS, area, 0, 0));
	EXPECT_EQ(-EINVAL, h_terminus_bind(t, 0xffffffff, area, 0, 0));
	EXPECT_EQ(-EINVAL, h_terminus_bind(t, HAMLYN_MAX_TAGS, NULL, 0, 0));
	EXPECT_EQ(0, h_terminus_destroy(t));
	EXPECT_EQ(0, h_area_remove(area));
}

TEST_F(lifecycle, tickets_must_lie_inside_their_slot)
{
	struct h_slot_attr attr = { .base = 100, .length = 1000,
				    .meta_count = 3 };
	struct h_ticket t;
	struct h_slot *slot;

	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &attr.area));
	attr.meta_area = attr.area;
	attr.meta_base = 2048;
	ASSERT_EQ(0, h_slot_create(self->dev, &attr, &slot));
	EXPECT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &t));
	EXPECT_EQ(1000, t.length);
	EXPECT_EQ(0, t.base);
	EXPECT_EQ(0, t.flags);
	EXPECT_EQ(0, h_slot_ticket(slot, 10, 0, 2, &t));
	EXPECT_EQ(990, t.length);
	EXPECT_EQ(10, t.base);
	EXPECT_EQ(2, t.meta_index);
	EXPECT_EQ(0, h_slot_ticket(slot, 999, 1, HAMLYN_META_FAST, &t));
	EXPECT_EQ(1, t.length);
	EXPECT_EQ(-ERANGE, h_slot_ticket(slot, 0, 1001, 0, &t));
	EXPECT_EQ(-ERANGE, h_slot_ticket(slot, 1001, 0, 0, &t));
	EXPECT_EQ(-ERANGE, h_slot_ticket(slot, 1000, 1, 0, &t));
	EXPECT_EQ(-ERANGE, h_slot_ticket(slot, 1, ~0ULL, 0, &t));
	EXPECT_EQ(-ERANGE, h_slot_ticket(slot, ~0ULL, 2, 0, &t));
	EXPECT_EQ(-ERANGE, h_slot_ticket(slot, 0, 0, 3, &t));
	EXPECT_EQ(-ERANGE, h_slot_ticket(slot, 0, 0, 0xfffffffe, &t));
}

TEST_F(lifecycle, objects_of_another_device_are_refused)
{
	struct h_slot_attr attr = { 0 };
	struct h_slot *slot;
	struct h_dev *other;
	struct set set = { 0 };
	struct set theirs = { 0 };

	ASSERT_EQ(0, ht_open(&other));
	ASSERT_EQ(0, create_set(self->dev, &set));
	ASSERT_EQ(0, create_set(other, &theirs));
	attr.area = theirs.area;
	EXPECT_EQ(-EINVAL, h_slot_create(self->dev, &attr, &slot));
	attr.area = set.area;
	attr.nq = theirs.nq;
	EXPECT_EQ(-EINVAL, h_slot_create(self->dev, &attr, &slot));
	attr.nq = set.nq;
	attr.meta_area = theirs.meta;
	attr.meta_count = 1;
	EXPECT_EQ(-EINVAL, h_slot_create(self->dev, &attr, &slot));
	EXPECT_EQ(-EINVAL, h_terminus_bind(set.terminus, 1, theirs.buffer,
					   0, 0));
	h_close(other);
}

TEST_F(lifecycle, added_memory_can_be_received_into_on_the_kernel_device_only)
{
	int embedded = h_dev_is_embedded(self->dev);
	struct h_slot_attr attr = { 0 };
	struct h_slot *slot;
	char *memory;
	int ret;

	memory = aligned_alloc(4096, 8192);
	ASSERT_NE(NULL, memory);
	memset(memory, 0, 8192);
	ASSERT_EQ(0, h_area_add(self->dev, memory + 1, 8000, 0, &attr.area));
	EXPECT_EQ(memory + 1, h_area_addr(attr.area));
	EXPECT_EQ(8000, h_area_length(attr.area));
	EXPECT_EQ(embedded ? -EOPNOTSUPP : 0,
		  h_slot_create(self->dev, &attr, &slot));
	if (!embedded) {
		EXPECT_EQ(0, h_slot_destroy(slot));
	}
	EXPECT_EQ(0, h_area_remove(attr.area));
	ASSERT_EQ(0, h_area_add(self->dev, memory, 4096, HAMLYN_AREA_READONLY,
				&attr.area));
	/* The embedded device has two reasons to refuse this one. */
	ret = h_slot_create(self->dev, &attr, &slot);
	EXPECT_TRUE(ret == -EACCES || (embedded && ret == -EOPNOTSUPP))
		TH_LOG("%d", ret);
	EXPECT_EQ(0, h_area_remove(attr.area));
	free(memory);
}

/* L 3.4: Memory that is to be wired has to be the program's own, to read and to write. */
TEST_F(lifecycle, added_memory_must_be_mapped_with_the_rights_needed)
{
	size_t page = (size_t)self->page;
	struct h_area *area;
	char *p;

	p = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	memset(p, 1, 4 * page);
	ASSERT_EQ(0, mprotect(p + page, page, PROT_READ));
	ASSERT_EQ(0, mprotect(p + 2 * page, page, PROT_NONE));
	ASSERT_EQ(0, munmap(p + 3 * page, page));
	EXPECT_EQ(-EFAULT, h_area_add(self->dev, p + page, page, 0, &area));
	EXPECT_EQ(-EFAULT, h_area_add(self->dev, p, page + 1, 0, &area));
	EXPECT_EQ(-EFAULT, h_area_add(self->dev, p + 2 * page, 1,
				      HAMLYN_AREA_READONLY, &area));
	EXPECT_EQ(-EFAULT, h_area_add(self->dev, p + 3 * page, 1,
				      HAMLYN_AREA_READONLY, &area));
	EXPECT_EQ(-EFAULT, h_area_add(self->dev, p, 4 * page,
				      HAMLYN_AREA_READONLY, &area));
	EXPECT_EQ(-EFAULT, h_area_add(self->dev, NULL, page, 0, &area));
	ASSERT_EQ(0, h_area_add(self->dev, p, 2 * page, HAMLYN_AREA_READONLY,
				&area));
	EXPECT_EQ(0, h_area_remove(area));
	ASSERT_EQ(0, h_area_add(self->dev, p + 7, page - 7, 0, &area));
	EXPECT_EQ(0, h_area_remove(area));
	EXPECT_EQ(1, p[page - 1]);
}

TEST_F(lifecycle, metadata_entries_are_aligned_by_address)
{
	int embedded = h_dev_is_embedded(self->dev);
	struct h_slot_attr attr = { .meta_count = 1 };
	struct h_slot *slot;
	char *memory;
	int base, ret;

	memory = aligned_alloc(4096, 8192);
	ASSERT_NE(NULL, memory);
	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &attr.area));
	ASSERT_EQ(0, h_area_add(self->dev, memory + 32, 4096, 0,
				&attr.meta_area));
	for (base = 0; base <= 256; base++) {
		attr.meta_base = (uint64_t)base;
		ret = h_slot_create(self->dev, &attr, &slot);
		if (base % 128 == 96) {
			EXPECT_EQ(embedded ? -EOPNOTSUPP : 0, ret);
		} else {
			EXPECT_TRUE(ret == -EINVAL ||
				    (embedded && ret == -EOPNOTSUPP))
				TH_LOG("%d at %d", ret, base);
		}
	}
}

TEST_F(lifecycle, a_device_tells_its_kind)
{
	const char *name = h_dev_name(self->dev);
	int embedded = strncmp(name, "/dev/", 5) != 0;

	if (ht_device()) {
		EXPECT_STREQ(ht_device(), name);
	}
	EXPECT_EQ(embedded, h_dev_is_embedded(self->dev));
	if (embedded) {
		EXPECT_EQ(-EOPNOTSUPP, h_dev_fd(self->dev));
	} else {
		EXPECT_GE(h_dev_fd(self->dev), 0);
	}
}

TEST_HARNESS_MAIN
