// SPDX-License-Identifier: GPL-2.0-only
/* Tags of a terminus: as many as QUERY says, while others send, and until its end. */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <pthread.h>

/* To bind what overlaps, and to fail. */
#include "low/device.h"

#define PIECE	256	/* more than fits an entry: it is fetched */

FIXTURE(tags) {
	struct ht_pair pair;
	struct h_area *area;
	unsigned char *buffer;	/* of max_tags pieces, each unlike the others */
	uint32_t max;
};

FIXTURE_SETUP(tags)
{
	struct ht_pair_attr attr = {
		.length = 16384,
		.terminus = { .entries = 64, .entry_size = 128 },
	};
	uint32_t tag;

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->max = self->pair.query.max_tags;
	ASSERT_LE(4096, self->max);
	ASSERT_EQ(0, h_area_alloc(self->pair.tx, (size_t)self->max * PIECE, &self->area));
	self->buffer = h_area_addr(self->area);
	for (tag = 0; tag < self->max; tag++)
		ht_fill(self->buffer + (size_t)tag * PIECE, PIECE, tag);
}

FIXTURE_TEARDOWN(tags)
{
	ht_pair_close(&self->pair);
}

static int bind_piece(FIXTURE_DATA(tags) *self, uint32_t tag)
{
	return h_terminus_bind(self->pair.terminus, tag, self->area, (uint64_t)tag * PIECE, PIECE);
}

static int unbind(FIXTURE_DATA(tags) *self, uint32_t tag)
{
	return h_terminus_bind(self->pair.terminus, tag, NULL, 0, 0);
}

/* Send the piece of a tag, and see it there. */
static const char *piece_passes(FIXTURE_DATA(tags) *self, uint32_t tag)
{
	struct ht_pair *pair = &self->pair;
	struct h_msg msg = {
		.ticket = &pair->ticket,
		.data = self->buffer + (size_t)tag * PIECE,
		.length = PIECE,
		.flags = HAMLYN_TRB_NO_NOTIFY,
	};

	if (ht_send_sync(pair->terminus, &msg) != 1)
		return "it was not sent";
	if (ht_pair_fence(pair))
		return "something else came";
	return ht_match(pair->data, PIECE, tag) == PIECE ? NULL : "it is another's";
}

static const char *piece_is_none(FIXTURE_DATA(tags) *self, uint32_t tag)
{
	struct h_msg msg = {
		.ticket = &self->pair.ticket,
		.data = self->buffer + (size_t)tag * PIECE,
		.length = PIECE,
	};

	return h_send(self->pair.terminus, &msg) == -EFAULT ? NULL : "it is sent from nowhere";
}

TEST_F(tags, as_many_as_query_says)
{
	uint32_t tag;

	/* Tag 0 is the pair's. */
	ASSERT_EQ(0, unbind(self, 0));
	/* In no order: 1031 is no divisor of what is a power of two. */
	for (tag = 0; tag < self->max; tag++)
		ASSERT_EQ(0, bind_piece(self, tag * 1031 % self->max));
	for (tag = 0; tag < self->max; tag++)
		ASSERT_NO(piece_passes(self, tag))
			TH_LOG("tag %u", tag);
	/* Every other one goes. */
	for (tag = 0; tag < self->max; tag += 2)
		ASSERT_EQ(0, unbind(self, tag));
	for (tag = 0; tag < self->max; tag += 2) {
		ASSERT_NO(piece_is_none(self, tag));
		ASSERT_NO(piece_passes(self, tag + 1));
	}
	EXPECT_EQ(-EBUSY, h_area_remove(self->area));
	for (tag = 1; tag < self->max; tag += 2)
		ASSERT_EQ(0, unbind(self, tag));
	EXPECT_EQ(0, h_area_remove(self->area));
}

TEST_F(tags, one_more_is_refused_in_words)
{
	ASSERT_EQ(0, bind_piece(self, self->max - 1));
	EXPECT_EQ(-EINVAL, h_terminus_bind(self->pair.terminus, self->max, self->area, 0, 0));
	EXPECT_TRUE(ht_is_explained(self->pair.tx, "0 to 4095"));
	EXPECT_EQ(-EINVAL, h_terminus_bind(self->pair.terminus, self->max, NULL, 0, 0));
	EXPECT_EQ(-EINVAL, h_terminus_bind(self->pair.terminus, ~0U, self->area, 0, 0));
	EXPECT_NO(piece_passes(self, self->max - 1));
}

TEST_F(tags, what_is_not_bound_can_be_unbound)
{
	EXPECT_EQ(0, unbind(self, 1));
	EXPECT_EQ(0, unbind(self, 100));
	EXPECT_EQ(0, unbind(self, self->max - 1));
	ASSERT_EQ(0, bind_piece(self, 100));
	EXPECT_EQ(0, unbind(self, 100));
	EXPECT_EQ(0, unbind(self, 100));
	EXPECT_EQ(0, h_area_remove(self->area));
}

/* Then they are no longer in use, and there is room for others. */
TEST_F(tags, go_with_their_terminus)
{
	const struct h_terminus_attr attr = { .entries = 2, .entry_size = 128 };
	struct h_terminus *t;
	int i;

	for (i = 0; i < 50; i++) {
		ASSERT_EQ(0, h_terminus_create(self->pair.tx, &attr, &t));
		ASSERT_EQ(0, h_terminus_bind(t, 3, self->area, 0, 0));
		ASSERT_EQ(0, h_terminus_bind(t, self->max - 1, self->area, 0, 0));
		ASSERT_EQ(-EBUSY, h_area_remove(self->area));
		ASSERT_EQ(0, h_terminus_destroy(t));
	}
	EXPECT_EQ(0, h_area_remove(self->area));
}

/* ---- while others send ---- */

struct sender {
	FIXTURE_DATA(tags) *self;
	pthread_t thread;
	uint32_t tag;
	int stop;
	int sent;
	const char *failed;
};

/* Each with a place of its own, where there is nothing of the others. */
static const char *send_one(const struct sender *s)
{
	struct ht_pair *pair = &s->self->pair;
	const size_t at = (size_t)s->tag * PIECE;
	struct h_msg msg = {
		.ticket = &pair->ticket,
		.offset = at,
		.data = s->self->buffer + at,
		.length = PIECE,
		.flags = HAMLYN_TRB_NO_NOTIFY,
	};
	int64_t handle = h_send(pair->terminus, &msg);

	if (handle == -EAGAIN)
		return NULL;
	if (handle < 0)
		return "it is not sent";
	/* What was sent with the wrong tag, or offset, is another's piece. */
	if (h_send_wait(pair->terminus, handle, -1) < 0)
		return "the NIC refused it";
	return ht_match(pair->data + at, PIECE, s->tag) == PIECE ? NULL : "it is another's";
}

static void *send_pieces(void *arg)
{
	struct sender *s = arg;

	while (!h__load_acquire(&s->stop) && !s->failed) {
		s->failed = send_one(s);
		h__write_once(&s->sent, s->sent + 1);
	}
	return NULL;
}

static bool all_send(struct sender *s, int n, int more)
{
	struct ht_poll poll;
	int i, from[4];

	for (i = 0; i < n; i++)
		from[i] = h__read_once(&s[i].sent);
	for (i = 0; i < n; i++) {
		ht_poll_begin(&poll);
		while (h__read_once(&s[i].sent) - from[i] < more)
			if (!ht_poll_more(&poll))
				return false;
	}
	return true;
}

/* One length after the other, and back, while three send. */
TEST_F(tags, senders_in_traffic_see_no_wrong_tag)
{
	struct sender s[3] = { { .tag = 1 }, { .tag = 5 }, { .tag = 30 } };
	uint32_t tag, step;
	int i, round;

	ASSERT_EQ(0, unbind(self, 0));
	for (i = 0; i < 3; i++) {
		s[i].self = self;
		ASSERT_EQ(0, bind_piece(self, s[i].tag));
		ASSERT_EQ(0, pthread_create(&s[i].thread, NULL, send_pieces, &s[i]));
	}
	EXPECT_TRUE(all_send(s, 3, 1));
	for (round = 0; round < 2; round++)
		for (step = 1; step < self->max; step = step * 2 + 1) {
			/* Before all that is bound, between, and behind it. */
			for (tag = step; tag < self->max && tag < step + 70; tag++)
				if (tag != 1 && tag != 5 && tag != 30)
					ASSERT_EQ(0, bind_piece(self, tag));
			EXPECT_TRUE(all_send(s, 3, 3));
			for (tag = step; tag < self->max && tag < step + 70 && round; tag++)
				if (tag != 1 && tag != 5 && tag != 30)
					ASSERT_EQ(0, unbind(self, tag));
		}
	for (i = 0; i < 3; i++) {
		h__store_release(&s[i].stop, 1);
		pthread_join(s[i].thread, NULL);
		EXPECT_NO(s[i].failed);
	}
}

struct binder {
	FIXTURE_DATA(tags) *self;
	pthread_t thread;
	uint64_t random;
	int failed;
};

static void *bind_about(void *arg)
{
	struct binder *b = arg;
	int i;

	for (i = 0; i < 500 && !b->failed; i++) {
		/* All of them the same few tags, at times one far away. */
		uint32_t tag = 1 + (uint32_t)(ht_random(&b->random) % (i % 50 ? 4 : 2000));

		b->failed = ht_random(&b->random) % 3 ? bind_piece(b->self, tag) :
							unbind(b->self, tag);
	}
	return NULL;
}

/* However it ends: the NIC and the library think the same of each tag. */
TEST_F(tags, are_bound_by_several_threads_at_once)
{
	struct binder b[3] = { 0 };
	uint64_t offset;
	uint32_t tag;
	int i;

	ASSERT_EQ(0, unbind(self, 0));
	for (i = 0; i < 3; i++) {
		b[i].self = self;
		b[i].random = ht_seed() + (uint64_t)i;
		ASSERT_EQ(0, pthread_create(&b[i].thread, NULL, bind_about, &b[i]));
	}
	for (i = 0; i < 3; i++) {
		pthread_join(b[i].thread, NULL);
		EXPECT_EQ(0, b[i].failed);
	}
	for (tag = 1; tag < 2001; tag++) {
		const unsigned char *p = self->buffer + (size_t)tag * PIECE;

		const char *wrong;

		if (h__terminus_look(self->pair.terminus, p, PIECE, &offset) == (int)tag)
			wrong = piece_passes(self, tag);
		else
			wrong = piece_is_none(self, tag);
		ASSERT_NO(wrong);
		ASSERT_EQ(0, unbind(self, tag));
	}
	EXPECT_EQ(0, h_area_remove(self->area));
}

/* ---- which tag has an address ---- */

#define OVERLAPPING	40

struct range {
	uint64_t base;
	uint64_t length;	/* 0: not bound */
};

static bool covers(const struct range *r, uint64_t at, uint64_t n)
{
	return at >= r->base && at - r->base < r->length && n <= r->length - (at - r->base);
}

/* One of those that have all of it, if there is one. */
static const char *look_up(FIXTURE_DATA(tags) *self, const struct range *ranges, uint64_t at,
			   uint64_t n)
{
	uint64_t offset;
	int i, tag = h__terminus_look(self->pair.terminus, self->buffer + at, n, &offset);

	if (tag >= 0)
		return tag < OVERLAPPING && covers(&ranges[tag], at, n) &&
		       offset == at - ranges[tag].base ? NULL : "one that has not all of it";
	for (i = 0; i < OVERLAPPING; i++)
		if (covers(&ranges[i], at, n))
			return "none, and there is one";
	return NULL;
}

TEST_F(tags, that_overlap_are_found_if_one_has_all_of_it)
{
	struct range ranges[OVERLAPPING] = { { 0, 0 } };
	uint64_t random = ht_seed(), at, n;
	int round, i, tag;

	ASSERT_EQ(0, unbind(self, 0));
	for (round = 0; round < 2000; round++) {
		struct range *r;

		tag = (int)(ht_random(&random) % OVERLAPPING);
		r = &ranges[tag];
		/* Many begin, and end, at the same byte. */
		r->base = ht_random(&random) % 64 * 16;
		r->length = ht_random(&random) % 4 ? 16 << ht_random(&random) % 6 : 0;
		ASSERT_EQ(0, h_terminus_bind(self->pair.terminus, (uint32_t)tag,
					     r->length ? self->area : NULL,
					     r->length ? r->base : 0, r->length));
		for (i = 0; i < 20; i++) {
			at = ht_random(&random) % 1600;
			n = ht_random(&random) % 3 ? ht_random(&random) % 200 : 0;
			ASSERT_NO(look_up(self, ranges, at, n))
				TH_LOG("round %d: %ju at %ju", round, (uintmax_t)n, (uintmax_t)at);
		}
	}
}

/* ---- failures ---- */

static int (*real_bind)(struct h_terminus *t, uint32_t tag, struct h_area *a, uint64_t base,
			uint64_t length);
static bool no_memory;

static int bind_or_not(struct h_terminus *t, uint32_t tag, struct h_area *a, uint64_t base,
		       uint64_t length)
{
	return no_memory ? -ENOMEM : real_bind(t, tag, a, base, length);
}

TEST_F(tags, a_table_that_cannot_grow_stays_as_it_is)
{
	struct h_dev *dev = self->pair.tx;
	const struct h_dev_ops *real = dev->ops;
	struct h_dev_ops ops = *real;
	uint32_t tag;

	real_bind = real->terminus_bind;
	ops.terminus_bind = bind_or_not;
	ASSERT_EQ(0, unbind(self, 0));
	for (tag = 0; tag < 8; tag++)
		ASSERT_EQ(0, bind_piece(self, tag));
	dev->ops = &ops;
	no_memory = true;
	for (tag = 8; tag < self->max; tag = tag * 3 / 2)
		EXPECT_EQ(-ENOMEM, bind_piece(self, tag));
	EXPECT_EQ(-ENOMEM, h_terminus_bind(self->pair.terminus, 2, self->area, 0, 0));
	for (tag = 0; tag < 8; tag++)
		EXPECT_NO(piece_passes(self, tag));
	for (tag = 8; tag < self->max; tag = tag * 3 / 2)
		EXPECT_NO(piece_is_none(self, tag));
	no_memory = false;
	for (tag = 8; tag < self->max; tag = tag * 3 / 2) {
		EXPECT_EQ(0, bind_piece(self, tag));
		EXPECT_NO(piece_passes(self, tag));
	}
	dev->ops = real;
}

TEST_HARNESS_MAIN
