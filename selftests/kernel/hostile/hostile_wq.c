// SPDX-License-Identifier: GPL-2.0-only
/*
 * A work queue is written by its owner as it likes: each malformed request
 * ends with its status, and nothing leaves the bounds. Kernel device only.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <pthread.h>

#define PAGE		4096
#define ENTRIES		8
#define ENTRY_SIZE	256
#define TAIL		(ENTRY_SIZE - sizeof(struct hamlyn_trb))
#define VIEW_BASE	1000	/* of the send buffer area, tag 2 */
#define VIEW_LENGTH	2000
#define OUTSIDE		0xdd	/* bytes of the area outside that view */
#define SLOT_BASE	512	/* of the message area */
#define SLOT_LENGTH	3000

FIXTURE(hostile_wq) {
	int fd;
	struct hamlyn_query query;
	struct hamlyn_slot_create slot;
	struct ht_raw_terminus terminus;
	struct ht_raw_nq nq;
	struct hamlyn_area_alloc message_area;
	struct hamlyn_area_alloc meta_area;
	struct hamlyn_area_alloc send_area;
	unsigned char *message;
	struct hamlyn_metadata *meta;
	unsigned char *send;
};

static int make_slot(FIXTURE_DATA(hostile_wq) *self)
{
	struct hamlyn_slot_create *slot = &self->slot;

	memset(slot, 0, sizeof(*slot));
	slot->size = sizeof(*slot);
	slot->area = self->message_area.area;
	slot->base = SLOT_BASE;
	slot->length = SLOT_LENGTH;
	slot->meta_area = self->meta_area.area;
	slot->meta_count = 1;
	slot->meta_base = sizeof(*self->meta);
	slot->nq = self->nq.arg.nq;
	return ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, slot);
}

FIXTURE_SETUP(hostile_wq)
{
	self->fd = ht_raw_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, ht_raw_query(self->fd, &self->query));
	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &self->message_area,
				       (void **)&self->message));
	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &self->meta_area,
				       (void **)&self->meta));
	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &self->send_area,
				       (void **)&self->send));
	ASSERT_EQ(0, ht_raw_nq_create(self->fd, 64, &self->nq));
	ASSERT_EQ(0, make_slot(self));
	ASSERT_EQ(0, ht_raw_terminus_create(self->fd, ENTRIES, ENTRY_SIZE,
					    &self->terminus));
	ASSERT_EQ(0, ht_raw_bind(self->fd, self->terminus.arg.terminus, 2,
				 self->send_area.area, VIEW_BASE,
				 VIEW_LENGTH));
	memset(self->message, HT_GUARD, PAGE);
	memset(self->send, OUTSIDE, PAGE);
	ht_fill(self->send + VIEW_BASE, VIEW_LENGTH, 1);
}

FIXTURE_TEARDOWN(hostile_wq)
{
	close(self->fd);
}

/* ---- good requests ------------------------------------------------------ */

/* @length bytes in the entry. */
static struct hamlyn_trb *fill_inline(FIXTURE_DATA(hostile_wq) *self,
				      uint64_t length)
{
	struct hamlyn_trb *trb = ht_raw_entry(&self->terminus);

	memset(trb, 0, ENTRY_SIZE);
	trb->host = self->query.host;
	trb->slot = self->slot.slot;
	trb->key = self->slot.key;
	trb->length = length;
	memset(trb + 1, 'i', TAIL);
	return trb;
}

static struct hamlyn_fragment *fragments(struct hamlyn_trb *trb)
{
	return (struct hamlyn_fragment *)(trb + 1);
}

/* @count fragments of 100 bytes each, one behind the other. */
static struct hamlyn_trb *fill_fragments(FIXTURE_DATA(hostile_wq) *self,
					 unsigned int count)
{
	struct hamlyn_trb *trb = fill_inline(self, 100ULL * count);
	struct hamlyn_fragment *f = fragments(trb);
	unsigned int i;

	trb->fragments = (uint16_t)count;
	for (i = 0; i < count && (i + 1) * sizeof(*f) <= TAIL; i++) {
		f[i].tag = 2;
		f[i].reserved = 0;
		f[i].offset = 100 * i;
		f[i].length = 100;
	}
	return trb;
}

static bool untouched(FIXTURE_DATA(hostile_wq) *self)
{
	return ht_match_byte(self->message, PAGE, HT_GUARD) == PAGE &&
	       ht_match_byte(self->meta, PAGE, 0) == PAGE;
}

/* The entry filled last: post it, and see what it ends with. */
static const char *ends_not_with(FIXTURE_DATA(hostile_wq) *self, int want)
{
	struct ht_raw_terminus *t = &self->terminus;
	uint32_t index = t->producer;
	uint32_t failed = h__read_once(&t->status->failed);
	struct hamlyn_nq_entry entry;
	int status;

	if (ht_raw_post(t) < 0)
		return "the kick failed";
	if (ht_raw_done(t, index, &status))
		return "it does not end";
	if (status != want) {
		fprintf(stderr, "# status %d, not %d\n", status, want);
		return "the wrong status";
	}
	if (h__read_once(&t->status->failed) - failed != (want != 0))
		return "miscounted in the status";
	if (!want)
		return NULL;
	if (ht_raw_recv(&self->nq, &entry))
		return "somebody was notified";
	return untouched(self) ? NULL : "memory was touched";
}

static const char *good_does_not_pass(FIXTURE_DATA(hostile_wq) *self)
{
	struct hamlyn_nq_entry entry;
	const char *complaint;

	fill_inline(self, 50);
	complaint = ends_not_with(self, 0);
	if (complaint)
		return complaint;
	if (!ht_raw_recv(&self->nq, &entry))
		return "a good message is not notified";
	if (ht_match_byte(self->message + SLOT_BASE, 50, 'i') != 50)
		return "a good message does not arrive";
	memset(self->message + SLOT_BASE, HT_GUARD, 50);
	fill_fragments(self, 3);
	complaint = ends_not_with(self, 0);
	if (complaint)
		return complaint;
	if (!ht_raw_recv(&self->nq, &entry))
		return "a good message in fragments is not notified";
	if (ht_match(self->message + SLOT_BASE, 300, 1) != 300)
		return "a good message in fragments does not arrive";
	memset(self->message + SLOT_BASE, HT_GUARD, 300);
	return untouched(self) ? NULL : "more than that was touched";
}

/* What was filled is refused with @want, and the next ones pass. */
static const char *accepted(FIXTURE_DATA(hostile_wq) *self, int want)
{
	const char *complaint = ends_not_with(self, want);

	return complaint ? complaint : good_does_not_pass(self);
}

TEST_F(hostile_wq, good_messages_pass)
{
	int i;

	for (i = 0; i < 5 * ENTRIES; i++) {
		ASSERT_NO(good_does_not_pass(self));
	}
}

/* ---- malformed requests ------------------------------------------------- */

TEST_F(hostile_wq, undefined_flags_are_EINVAL)
{
	uint32_t bit;

	for (bit = 1; bit; bit <<= 1) {
		if (bit & HAMLYN_TRB_FLAGS)
			continue;
		fill_inline(self, 10)->flags = bit;
		EXPECT_NO(accepted(self, -EINVAL)) {
			TH_LOG("flag %x", bit);
		}
	}
}

TEST_F(hostile_wq, quiet_requests_pass_and_tickets_must_be_imported)
{
	struct hamlyn_nq_entry entry;
	int bit;

	fill_inline(self, 10)->flags = HAMLYN_TRB_QUIET;
	ASSERT_NO(ends_not_with(self, 0));
	EXPECT_TRUE(ht_raw_recv(&self->nq, &entry));
	memset(self->message, HT_GUARD, PAGE);
	for (bit = 0; bit < 32; bit++) {
		fill_inline(self, 10)->flags = HAMLYN_TRB_TICKET;
		EXPECT_NO(accepted(self, -ENOKEY));
		fill_inline(self, 10)->flags = HAMLYN_TRB_TICKET;
		ht_raw_entry(&self->terminus)->ticket = 1U << bit;
		EXPECT_NO(accepted(self, -ENOKEY)) {
			TH_LOG("bit %d", bit);
		}
	}
}

TEST_F(hostile_wq, reserved_bits_are_EINVAL)
{
	struct hamlyn_trb *trb;
	int bit;

	for (bit = 0; bit < 32; bit++) {
		/* An index of a ticket, without the flag that says so. */
		fill_inline(self, 10)->ticket = 1U << bit;
		EXPECT_NO(accepted(self, -EINVAL)) {
			TH_LOG("bit %d of the ticket", bit);
		}
	}
	for (bit = 0; bit < 32; bit++) {
		trb = fill_fragments(self, 2);
		fragments(trb)[bit % 2].reserved = 1U << bit;
		EXPECT_NO(accepted(self, -EINVAL)) {
			TH_LOG("bit %d of a fragment", bit);
		}
	}
}

TEST_F(hostile_wq, more_than_fits_the_entry_is_EINVAL)
{
	const uint64_t beyond[] = {
		TAIL + 1, TAIL + 2, ENTRY_SIZE, PAGE, 1 << 20,
		HAMLYN_MAX_MESSAGE, HAMLYN_MAX_MESSAGE + 1, 1ULL << 32,
		(1ULL << 32) + 1, 1ULL << 63, ~0ULL, ~0ULL - 63,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(beyond); i++) {
		fill_inline(self, beyond[i]);
		EXPECT_NO(accepted(self, -EINVAL)) {
			TH_LOG("case %u", i);
		}
		fill_inline(self, beyond[i] - HAMLYN_TRB_METADATA_SPACE)
			->meta_length = 1;
		EXPECT_NO(accepted(self, -EINVAL)) {
			TH_LOG("case %u, with metadata", i);
		}
	}
}

TEST_F(hostile_wq, what_just_fits_the_entry_passes)
{
	struct hamlyn_nq_entry entry;
	size_t n;

	for (n = TAIL - 2; n <= TAIL; n++) {
		fill_inline(self, n);
		ASSERT_NO(ends_not_with(self, 0));
		ASSERT_TRUE(ht_raw_recv(&self->nq, &entry));
		EXPECT_EQ(n, entry.length);
		EXPECT_EQ(n, ht_match_byte(self->message + SLOT_BASE, n, 'i'));
	}
	memset(self->message, HT_GUARD, PAGE);
	n = TAIL - HAMLYN_TRB_METADATA_SPACE;
	fill_inline(self, n)->meta_length = HAMLYN_MAX_METADATA;
	ASSERT_NO(ends_not_with(self, 0));
	ASSERT_TRUE(ht_raw_recv(&self->nq, &entry));
	EXPECT_EQ(n, ht_match_byte(self->message + SLOT_BASE, n, 'i'));
	EXPECT_EQ(HT_GUARD, self->message[SLOT_BASE + n]);
	EXPECT_EQ(HAMLYN_MAX_METADATA, self->meta[1].meta_length);
	EXPECT_EQ(HAMLYN_MAX_METADATA,
		  ht_match_byte(self->meta[1].user, HAMLYN_MAX_METADATA, 'i'));
}

TEST_F(hostile_wq, too_much_metadata_is_EINVAL)
{
	uint32_t n;

	for (n = HAMLYN_MAX_METADATA + 1; n <= 0xffff;
	     n += n < 300 ? 1 : 997) {
		fill_inline(self, 0)->meta_length = (uint16_t)n;
		EXPECT_NO(ends_not_with(self, -EINVAL)) {
			TH_LOG("%u bytes", n);
		}
	}
	fill_inline(self, 0)->meta_length = 0xffff;
	EXPECT_NO(accepted(self, -EINVAL));
}

TEST_F(hostile_wq, too_many_fragments_are_EINVAL)
{
	const unsigned int fit = TAIL / sizeof(struct hamlyn_fragment);
	const unsigned int less = (TAIL - HAMLYN_TRB_METADATA_SPACE) /
				  sizeof(struct hamlyn_fragment);
	struct hamlyn_nq_entry entry;
	struct hamlyn_trb *trb;
	unsigned int n;

	for (n = fit + 1; n <= 0xffff; n += n < 40 ? 1 : 2999) {
		fill_fragments(self, n);
		EXPECT_NO(accepted(self, -EINVAL)) {
			TH_LOG("%u fragments", n);
		}
	}
	fill_fragments(self, less + 1)->meta_length = 8;
	EXPECT_NO(accepted(self, -EINVAL));
	fill_fragments(self, fit);
	ASSERT_NO(ends_not_with(self, 0));
	ASSERT_TRUE(ht_raw_recv(&self->nq, &entry));
	EXPECT_EQ(100 * fit, ht_match(self->message + SLOT_BASE, 100 * fit, 1));
	/* And with metadata before them. */
	memset(self->message, HT_GUARD, PAGE);
	trb = fill_fragments(self, less);
	memmove((char *)(trb + 1) + HAMLYN_TRB_METADATA_SPACE, trb + 1,
		less * sizeof(struct hamlyn_fragment));
	trb->meta_length = 8;
	ASSERT_NO(ends_not_with(self, 0));
	ASSERT_TRUE(ht_raw_recv(&self->nq, &entry));
	EXPECT_EQ(100 * less, ht_match(self->message + SLOT_BASE, 100 * less,
				       1));
}

TEST_F(hostile_wq, fragments_must_add_up)
{
	struct hamlyn_fragment *f;
	struct hamlyn_trb *trb;
	const uint64_t lengths[] = { 0, 1, 299, 301, 100, 200, 1ULL << 32,
				     HAMLYN_MAX_MESSAGE,
				     HAMLYN_MAX_MESSAGE + 1, 1ULL << 63,
				     ~0ULL, ~0ULL - 299 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		fill_fragments(self, 3)->length = lengths[i];
		EXPECT_NO(accepted(self, -EINVAL)) {
			TH_LOG("case %u", i);
		}
	}
	trb = fill_fragments(self, 3);
	f = fragments(trb);
	f[2].length = 99;
	EXPECT_NO(accepted(self, -EINVAL));
	trb = fill_fragments(self, 3);
	f = fragments(trb);
	f[0].length = 101;
	EXPECT_NO(accepted(self, -EINVAL));
}

TEST_F(hostile_wq, a_tag_that_is_not_bound_is_ENXIO)
{
	/* In its table, and behind the end of it. */
	static const uint32_t tags[] = {
		0, 1, 3, 7, 8, 9, 10, 16, 255, 256, 258, 1024, HAMLYN_MAX_TAGS - 1,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(tags); i++) {
		fragments(fill_fragments(self, 2))[1].tag = tags[i];
		EXPECT_NO(accepted(self, -ENXIO)) {
			TH_LOG("tag %u", tags[i]);
		}
	}
	/* One that was bound is not. */
	ASSERT_EQ(0, ht_raw_bind(self->fd, self->terminus.arg.terminus, 2,
				 HAMLYN_NONE, 0, 0));
	fill_fragments(self, 1);
	EXPECT_NO(ends_not_with(self, -ENXIO));
	ASSERT_EQ(0, ht_raw_bind(self->fd, self->terminus.arg.terminus, 2,
				 self->send_area.area, VIEW_BASE,
				 VIEW_LENGTH));
	EXPECT_NO(good_does_not_pass(self));
}

/* Any of two errors will do; nothing may come of it. */
static const char *accepted_either(FIXTURE_DATA(hostile_wq) *self, int one,
				   int other)
{
	struct ht_raw_terminus *t = &self->terminus;
	uint32_t index = t->producer;
	struct hamlyn_nq_entry entry;
	int status;

	if (ht_raw_post(t) < 0)
		return "the kick failed";
	if (ht_raw_done(t, index, &status))
		return "it does not end";
	if (status != one && status != other) {
		fprintf(stderr, "# status %d\n", status);
		return "the wrong status";
	}
	if (ht_raw_recv(&self->nq, &entry))
		return "somebody was notified";
	return untouched(self) ? good_does_not_pass(self) :
	       "memory was touched";
}

TEST_F(hostile_wq, tags_there_are_none_of_are_refused)
{
	static const uint32_t tags[] = {
		HAMLYN_MAX_TAGS, HAMLYN_MAX_TAGS + 1, HAMLYN_MAX_TAGS + 2, 65536,
		0x7fffffff, 0x80000002, 0xfffffffe, 0xffffffff,
	};
	unsigned int i;

	/* Whatever was made of such a tag, it would be one that is bound. */
	for (i = 0; i < HAMLYN_MAX_TAGS; i++) {
		ASSERT_EQ(0, ht_raw_bind(self->fd, self->terminus.arg.terminus,
					 i, self->send_area.area, VIEW_BASE,
					 VIEW_LENGTH));
	}
	for (i = 0; i < ARRAY_SIZE(tags); i++) {
		fragments(fill_fragments(self, 1))[0].tag = tags[i];
		EXPECT_NO(accepted(self, -EINVAL)) {
			TH_LOG("tag %x", tags[i]);
		}
	}
}

TEST_F(hostile_wq, fragments_outside_the_send_buffer_area_are_ERANGE)
{
	static const struct {
		uint64_t offset;
		uint64_t length;
	} cases[] = {
		{ VIEW_LENGTH - 99, 100 },
		{ VIEW_LENGTH, 1 },
		{ VIEW_LENGTH + 1, 1 },
		{ 0, VIEW_LENGTH + 1 },
		{ 1, VIEW_LENGTH },
		{ ~0ULL, 1 },
		{ ~0ULL, 2 },
		{ ~0ULL - 99, 100 },
		{ ~0ULL - 99, 200 },
		{ 1ULL << 31, 10 },
		{ 1ULL << 32, 10 },
		{ (1ULL << 32) + 5, 10 },
		{ 1ULL << 63, 10 },
		/* What a sum with the view's base would let pass. */
		{ 0 - (uint64_t)VIEW_BASE, 10 },
		{ 0 - (uint64_t)VIEW_BASE, VIEW_BASE },
		{ 0 - 10ULL, 20 },
	};
	struct hamlyn_fragment *f;
	struct hamlyn_trb *trb;
	unsigned int i, at;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		for (at = 0; at < 3; at++) {
			trb = fill_fragments(self, 3);
			f = fragments(trb);
			f[at].offset = cases[i].offset;
			f[at].length = cases[i].length;
			trb->length = 200 + cases[i].length;
			EXPECT_NO(accepted(self, -ERANGE)) {
				TH_LOG("case %u, fragment %u", i, at);
			}
		}
}

TEST_F(hostile_wq, lengths_that_wrap_2_to_the_64_are_refused)
{
	static const struct {
		uint64_t offset[2];
		uint64_t length[2];
		uint64_t total;
	} cases[] = {
		{ { 0, 0 }, { ~0ULL, 101 }, 100 },
		{ { 0, 0 }, { 101, ~0ULL }, 100 },
		{ { 1, 0 }, { ~0ULL, 1 }, 0 },
		{ { 0, 100 }, { 1ULL << 63, 1ULL << 63 }, 0 },
		{ { 0, 0 }, { 0 - 1000ULL, 1300 }, 300 },
		{ { 10, 0 }, { 0 - 10ULL, 20 }, 10 },
	};
	struct hamlyn_fragment *f;
	struct hamlyn_trb *trb;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		trb = fill_fragments(self, 2);
		f = fragments(trb);
		for (j = 0; j < 2; j++) {
			f[j].offset = cases[i].offset[j];
			f[j].length = cases[i].length[j];
		}
		trb->length = cases[i].total;
		EXPECT_NO(accepted_either(self, -ERANGE, -EINVAL)) {
			TH_LOG("case %u", i);
		}
	}
}

TEST_F(hostile_wq, fast_requests_must_be_fast_in_every_way)
{
	struct hamlyn_trb *trb;

	trb = fill_inline(self, 10);
	trb->flags = HAMLYN_TRB_FAST;
	trb->meta_index = HAMLYN_META_FAST;
	trb->meta_length = 1;
	EXPECT_NO(accepted(self, -EINVAL));
	trb = fill_inline(self, 10);
	trb->flags = HAMLYN_TRB_FAST;
	trb->meta_index = 0;
	EXPECT_NO(accepted(self, -EINVAL));
	trb = fill_inline(self, 10);
	trb->word = 1;
	EXPECT_NO(accepted(self, -EINVAL));
	/* The index alone does not make it fast: there is no such entry. */
	trb = fill_inline(self, 10);
	trb->meta_index = HAMLYN_META_FAST;
	EXPECT_NO(accepted_either(self, 0, -EINVAL));
}

TEST_F(hostile_wq, an_unknown_host_is_EHOSTUNREACH)
{
	int bit;

	/* The first few may be there: module parameter nics. */
	for (bit = 3; bit < 32; bit++) {
		fill_inline(self, 10)->host = self->query.host ^ 1U << bit;
		EXPECT_NO(accepted(self, -EHOSTUNREACH)) {
			TH_LOG("bit %d", bit);
		}
	}
}

TEST_F(hostile_wq, what_the_receiver_rejects_is_status_0)
{
	struct hamlyn_trb *trb;
	unsigned int i;

	for (i = 0; i < 6; i++) {
		trb = fill_inline(self, 10);
		if (i == 0)
			trb->key ^= 1;
		else if (i == 1)
			trb->slot = self->query.max_slots;
		else if (i == 2)
			trb->offset = SLOT_LENGTH;
		else if (i == 3)
			trb->offset = ~0ULL;
		else if (i == 4)
			trb->meta_index = 1;
		else
			trb->slot = 0xffffffff;
		EXPECT_NO(accepted_either(self, 0, 0)) {
			TH_LOG("case %u", i);
		}
	}
}

TEST_F(hostile_wq, a_mix_of_good_and_bad_ends_each_with_its_own_status)
{
	static const int wants[ENTRIES] = { 0, -EINVAL, 0, -ENXIO, -ERANGE, 0,
					    -EHOSTUNREACH, 0 };
	struct ht_raw_terminus *t = &self->terminus;
	struct hamlyn_nq_entry entry;
	struct hamlyn_trb *trb;
	uint32_t first;
	int round, i, status;

	for (round = 0; round < 50; round++) {
		first = t->producer;
		for (i = 0; i < ENTRIES; i++) {
			trb = fill_fragments(self, 1);
			if (wants[i] == -EINVAL)
				trb->flags = 0x100;
			else if (wants[i] == -ENXIO)
				fragments(trb)->tag = 7;
			else if (wants[i] == -ERANGE)
				fragments(trb)->offset = VIEW_LENGTH;
			else if (wants[i])
				trb->host = ~self->query.host;
			t->producer++;
		}
		/* All at once. */
		ASSERT_GE(ht_raw_publish(t, t->producer), 0);
		for (i = 0; i < ENTRIES; i++) {
			ASSERT_EQ(0, ht_raw_done(t, first + i, &status));
			EXPECT_EQ(wants[i], status);
		}
		for (i = 0; i < 4; i++) {
			EXPECT_TRUE(ht_raw_recv(&self->nq, &entry));
		}
		EXPECT_FALSE(ht_raw_recv(&self->nq, &entry));
	}
}

/* ---- sequence and producer index ---------------------------------------- */

TEST_F(hostile_wq, nonsense_in_sequences_and_index_posts_nothing)
{
	static const uint32_t steps[] = {
		ENTRIES + 1, ENTRIES + 2, 2 * ENTRIES, 1000, 1 << 20,
		0x7ffffff0, 0x7fffffff, 0x80000000, 0x80000001, 0xf0000000,
		0 - 1000U, 0 - (ENTRIES + 1U), 0 - ENTRIES, 0 - 2U, 0 - 1U,
	};
	struct ht_raw_terminus *t = &self->terminus;
	struct hamlyn_nq_entry entry;
	unsigned int i, k;

	for (i = 0; i < ARRAY_SIZE(steps); i++) {
		for (k = 0; k < ENTRIES; k++) {
			struct hamlyn_trb *trb = fill_inline(self, 10);

			t->producer++;
			h__store_release(&trb->sequence,
					 t->producer + steps[i]);
		}
		t->producer -= ENTRIES;
		h__write_once(&t->wq->producer, t->producer + steps[i]);
		for (k = 0; k < 3; k++) {
			EXPECT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_KICK,
					    (void *)(uintptr_t)
					    t->arg.terminus));
		}
		ht_sleep_ns(2 * HT_MS);
		EXPECT_FALSE(ht_raw_recv(&self->nq, &entry));
		EXPECT_TRUE(untouched(self));
		EXPECT_EQ(t->producer,
			  h__load_acquire(&t->status->completed));
		EXPECT_NO(good_does_not_pass(self)) {
			TH_LOG("moved by %x", steps[i]);
		}
	}
}

TEST_F(hostile_wq, other_words_of_the_mapping_mean_nothing)
{
	struct ht_raw_terminus *t = &self->terminus;

	memset(t->wq->reserved, 0xff, sizeof(t->wq->reserved));
	EXPECT_NO(good_does_not_pass(self));
	h__write_once(&self->nq.control->reserved[0], 0xffffffff);
	EXPECT_NO(good_does_not_pass(self));
}

/* ---- rewriting while the engine reads ----------------------------------- */

struct racer {
	FIXTURE_DATA(hostile_wq) *self;
	struct hamlyn_trb *trb;
	int stop;
	uint64_t seed;
};

/* Values that would do harm if they were used after others were checked. */
static void rewrite(struct racer *r, uint64_t choice)
{
	struct hamlyn_fragment *f = fragments(r->trb);
	uint64_t value = choice >> 8;

	switch (choice % 14) {
	case 0:
		h__write_once(&r->trb->offset, value & 1 ? 0 :
			      SLOT_LENGTH - 1 + (value & 0xff));
		break;
	case 1:
		h__write_once(&r->trb->offset, value & 1 ? 0 :
			      0 - (uint64_t)(value & 0x3ff));
		break;
	case 2:
		h__write_once(&r->trb->length, value & 1 ? 200 :
			      SLOT_LENGTH + (value & 0xfff));
		break;
	case 3:
		h__write_once(&r->trb->length, 200);
		break;
	case 4:
		h__write_once(&f[0].offset, value & 1 ? 0 :
			      VIEW_LENGTH - (value & 0xff));
		break;
	case 5:
		h__write_once(&f[0].offset, value & 1 ? 0 :
			      0 - (uint64_t)VIEW_BASE);
		break;
	case 6:
		h__write_once(&f[0].length, value & 1 ? 100 :
			      VIEW_LENGTH + (value & 0xfff));
		break;
	case 7:
		h__write_once(&f[0].length, 100);
		break;
	case 8:
		h__write_once(&f[1].tag, value & 1 ? 2 : (uint32_t)value);
		break;
	case 9:
		h__write_once(&r->trb->fragments,
			      (uint16_t)(value & 1 ? 2 : value));
		break;
	case 10:
		h__write_once(&r->trb->meta_index,
			      value & 1 ? 0 : (uint32_t)(value & 3));
		break;
	case 11:
		h__write_once(&r->trb->flags, value & 3 ? 0 :
			      HAMLYN_TRB_TICKET);
		break;
	case 12:
		h__write_once(&r->trb->ticket,
			      (uint32_t)(value & 3 ? 0 : value));
		break;
	default:
		h__write_once(&r->trb->meta_length,
			      (uint16_t)(value & 1 ? 0 : value));
		break;
	}
}

static void *rewrite_all_the_time(void *arg)
{
	struct racer *r = arg;

	while (!h__load_acquire(&r->stop))
		rewrite(r, ht_random(&r->seed));
	return NULL;
}

TEST_F(hostile_wq, a_request_that_changes_while_it_is_read_stays_in_bounds)
{
	struct ht_raw_terminus *t = &self->terminus;
	struct racer racer = { .self = self, .seed = ht_seed() };
	int64_t end = ht_now_ns() + 5 * HT_SEC;
	struct hamlyn_nq_entry entry;
	unsigned char *after = self->message + SLOT_BASE + SLOT_LENGTH;
	pthread_t thread;
	int i, status;

	/* One entry is raced for; the others carry nothing that lands. */
	racer.trb = fill_fragments(self, 2);
	ASSERT_EQ(0, pthread_create(&thread, NULL, rewrite_all_the_time,
				    &racer));
	for (i = 0; i < 20000 && ht_now_ns() < end; i++) {
		uint32_t index = t->producer;
		struct hamlyn_trb *trb = ht_raw_entry(t);

		if (trb != racer.trb)
			fill_inline(self, 10)->key ^= 1;
		ASSERT_GE(ht_raw_post(t), 0);
		ASSERT_EQ(0, ht_raw_done(t, index, &status));
		ASSERT_TRUE(status == 0 || status == -EINVAL ||
			    status == -ERANGE || status == -ENXIO ||
			    status == -ENOKEY) {
			TH_LOG("status %d", status);
		}
		while (ht_raw_recv(&self->nq, &entry))
			;
		if (trb != racer.trb)
			continue;
		/* At once: the next one would land on what this one left. */
		ASSERT_EQ(SLOT_BASE, ht_match_byte(self->message, SLOT_BASE,
						   HT_GUARD));
		ASSERT_EQ(PAGE - SLOT_BASE - SLOT_LENGTH,
			  ht_match_byte(after, PAGE - SLOT_BASE - SLOT_LENGTH,
					HT_GUARD));
		ASSERT_EQ(sizeof(*self->meta),
			  ht_match_byte(self->meta, sizeof(*self->meta), 0));
		ASSERT_EQ(PAGE - 2 * sizeof(*self->meta),
			  ht_match_byte(self->meta + 2,
					PAGE - 2 * sizeof(*self->meta), 0));
		/* Nothing from beside the send buffer area got out. */
		ASSERT_EQ(NULL, memmem(self->message, PAGE,
				       "\xdd\xdd\xdd\xdd\xdd\xdd\xdd\xdd", 8));
	}
	h__store_release(&racer.stop, 1);
	pthread_join(thread, NULL);
	memset(self->message, HT_GUARD, PAGE);
	memset(self->meta, 0, PAGE);
	for (i = 0; i < 2 * ENTRIES; i++) {
		EXPECT_NO(good_does_not_pass(self));
	}
}

static void *stretch_all_the_time(void *arg)
{
	struct racer *r = arg;
	unsigned int turn = 0;

	/*
	 * One store a turn: where both share the processor of an emulator, this is stopped
	 * between turns only, and the store that ends a turn would be all that is ever seen.
	 */
	while (!h__load_acquire(&r->stop)) {
		h__write_once(&r->trb->length, turn++ & 1 ? 8 : 2 * ENTRY_SIZE);
	}
	return NULL;
}

/* What fits the entry is checked once: a length that does not is never used. */
TEST_F(hostile_wq, a_length_that_changes_is_used_as_it_was_checked)
{
	struct ht_raw_terminus *t = &self->terminus;
	struct racer racer = { .self = self };
	int64_t end = ht_now_ns() + 3 * HT_SEC;
	struct hamlyn_nq_entry entry;
	int i, k, status, passed = 0, refused = 0;
	pthread_t thread;

	racer.trb = fill_inline(self, 8);
	ASSERT_EQ(0, pthread_create(&thread, NULL, stretch_all_the_time,
				    &racer));
	for (i = 0; i < 20000 && ht_now_ns() < end; i++) {
		uint32_t first = t->producer;

		ASSERT_EQ(racer.trb, ht_raw_entry(t));
		ASSERT_GE(ht_raw_post(t), 0);
		ASSERT_EQ(0, ht_raw_done(t, first, &status));
		ASSERT_TRUE(status == 0 || status == -EINVAL);
		refused += status != 0;
		while (ht_raw_recv(&self->nq, &entry)) {
			/* 0: some kernels copy byte by byte. */
			ASSERT_TRUE(entry.length == 8 || !entry.length);
			passed++;
		}
		/* Round to the same entry again. */
		for (k = 1; k < ENTRIES; k++) {
			fill_inline(self, 8)->flags = 1U << 31;
			t->producer++;
		}
		ASSERT_GE(ht_raw_publish(t, t->producer), 0);
		ASSERT_EQ(0, ht_raw_done(t, t->producer - 1, &status));
	}
	h__store_release(&racer.stop, 1);
	pthread_join(thread, NULL);
	/* Of both, or nothing was raced for. */
	EXPECT_LT(0, passed);
	EXPECT_LT(0, refused);
	TH_LOG("%d of %d passed, %d refused", passed, i, refused);
}

/* ---- the end of a terminus with work left -------------------------------- */

TEST_F(hostile_wq, a_terminus_may_end_with_work_in_its_queue)
{
	struct ht_raw_terminus t;
	struct hamlyn_trb *trb;
	int round, i;

	for (round = 0; round < 200; round++) {
		ASSERT_EQ(0, ht_raw_terminus_create(self->fd, ENTRIES,
						    ENTRY_SIZE, &t));
		ASSERT_EQ(0, ht_raw_bind(self->fd, t.arg.terminus, 2,
					 self->send_area.area, 0, PAGE));
		for (i = 0; i < ENTRIES; i++) {
			trb = ht_raw_entry(&t);
			memset(trb, 0, ENTRY_SIZE);
			trb->host = self->query.host;
			trb->slot = self->slot.slot;
			trb->key = self->slot.key;
			trb->flags = HAMLYN_TRB_NO_NOTIFY;
			trb->length = 2 * PAGE;
			trb->fragments = 2;
			fragments(trb)[0].tag = 2;
			fragments(trb)[0].length = PAGE;
			fragments(trb)[1].tag = 2;
			fragments(trb)[1].length = PAGE;
			t.producer++;
		}
		h__store_release(&t.wq->producer, t.producer);
		if (round % 2)
			ht_raw(self->fd, HAMLYN_IOC_KICK,
			       (void *)(uintptr_t)t.arg.terminus);
		ASSERT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_TERMINUS_DESTROY,
				       t.arg.terminus));
		ht_raw_terminus_unmap(&t);
	}
	memset(self->message, HT_GUARD, PAGE);
	EXPECT_NO(good_does_not_pass(self));
}

TEST_HARNESS_MAIN
