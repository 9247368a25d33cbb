// SPDX-License-Identifier: GPL-2.0-only
/*
 * Buffers that have grown and are not needed any more: they are given back, to the others of the
 * manager and to the device, whatever the other end does; nothing that is under way is lost.
 */
#include <hamlyn/channel.h>

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

/* For how large buffers are, and for looks that come when they are wanted. */
#include "channel/channel.h"

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define CHANNELS	30
#define LONG		100000
#define MANY_RECORDS	600000	/* also of the largest */
#define MOST_LOOKS	100

FIXTURE(shed) {
	char name[64];
	char data[MANY_RECORDS];
	struct h_dev *dev[2];
	struct h_manager *m[2];
	struct h_channel *pair[CHANNELS][2];
	int n;
};

FIXTURE_VARIANT(shed) {
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(shed, threads) { .flags = 0 };
FIXTURE_VARIANT_ADD(shed, single) { .flags = H_MANAGER_SINGLE };

/* Or as much as one user may wire. */
static const char *device_of(FIXTURE_DATA(shed) *self)
{
	if (strncmp(ht_device(), "shm:", 4))
		return ht_device();
	snprintf(self->name, sizeof(self->name), "shm:shed%d,size=16M", (int)getpid());
	return self->name;
}

FIXTURE_SETUP(shed)
{
	struct h_manager_attr attr = { .flags = variant->flags };
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, h_open(device_of(self), &self->dev[i]));
		ASSERT_EQ(0, h_manager_create(self->dev[i], &attr, &self->m[i]));
	}
	for (i = 0; i < MANY_RECORDS; i++)
		self->data[i] = (char)(i * 7);
}

FIXTURE_TEARDOWN(shed)
{
	int i;

	while (self->n--)
		for (i = 0; i < 2; i++)
			h_channel_close(self->pair[self->n][i], H_NOWAIT);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, self->m[i]->budget.offered);
		EXPECT_EQ(0, self->m[i]->chores);
		EXPECT_EQ(0, h_manager_destroy(self->m[i]));
		h_close(self->dev[i]);
	}
}

static const char *make_some(FIXTURE_DATA(shed) *self, int n)
{
	struct h_channel **pair;

	while (n--) {
		pair = self->pair[self->n];
		if (h_channel_pair(self->m[0], self->m[1], NULL, &pair[0], &pair[1]))
			return "no channel";
		self->n++;
	}
	return NULL;
}

/* A message from end to end; NULL, or what does not work. */
static const char *pass_data(FIXTURE_DATA(shed) *self, struct h_channel *from,
			     struct h_channel *to, const void *data, size_t length)
{
	struct h_message m = {};
	struct ht_poll poll;
	const char *wrong;
	int ret;

	if (h_channel_send(from, data, length, H_NOWAIT))
		return "cannot send";
	ht_poll_begin(&poll);
	do {
		h_manager_dispatch(from->manager);
		ret = h_channel_receive(to, &m, H_NOWAIT);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	wrong = ret != 0 ? "cannot receive" :
		m.length != length || memcmp(m.data, self->data, length) ? "wrong data" : NULL;
	h_channel_release(to, &m);
	return wrong;
}

static const char *pass(FIXTURE_DATA(shed) *self, struct h_channel *from, struct h_channel *to,
			size_t length)
{
	return pass_data(self, from, to, self->data, length);
}

static const char *pass_all(FIXTURE_DATA(shed) *self, size_t length)
{
	const char *wrong = NULL;
	int i;

	for (i = 0; i < self->n && !wrong; i++) {
		wrong = pass(self, self->pair[i][0], self->pair[i][1], length);
		if (!wrong)
			wrong = pass(self, self->pair[i][1], self->pair[i][0], length);
	}
	return wrong;
}

static const char *be_busy(FIXTURE_DATA(shed) *self)
{
	const char *wrong = NULL;
	int i;

	for (i = 0; i < 12 && !wrong; i++)
		wrong = pass_all(self, LONG);
	return wrong;
}

/* Until words have come, and what they ask for was done. */
static void settle(FIXTURE_DATA(shed) *self)
{
	struct ht_poll poll;
	int i;

	ht_poll_begin(&poll);
	do {
		for (i = 0; i < 2; i++)
			h_manager_dispatch(self->m[i]);
	} while ((h__owes_soon(self->m[0]) || h__owes_soon(self->m[1])) && ht_poll_more(&poll));
}

/* As if as much time had passed as there is between two looks. */
static void look(struct h_manager *m)
{
	h__write_once(&m->budget.looked_ns, 0);
	h__write_once(&m->budget.used_ns, 0);
	h_manager_dispatch(m);
}

static void look_all(FIXTURE_DATA(shed) *self)
{
	int i;

	for (i = 0; i < 2; i++)
		look(self->m[i]);
	settle(self);
}

static bool is_small(const struct h_channel *ch)
{
	return ch->receiver->gens == 1 && ch->receiver->gen[0].buffer == ch->receiver->least &&
	       !ch->sender->stage_grown;
}

static int count_large(FIXTURE_DATA(shed) *self)
{
	int i, large = 0;

	for (i = 0; i < self->n; i++)
		large += !is_small(self->pair[i][0]) + !is_small(self->pair[i][1]);
	return large;
}

static int looks_until_small(FIXTURE_DATA(shed) *self)
{
	int looks = 0;

	while (looks < MOST_LOOKS && count_large(self)) {
		look_all(self);
		looks++;
	}
	return looks;
}

static size_t held(FIXTURE_DATA(shed) *self)
{
	struct h_manager_counters stats;
	size_t n = 0;
	int i;

	for (i = 0; i < 2; i++) {
		if (h_manager_stats(self->m[i], &stats))
			return SIZE_MAX;
		n += stats.receive_bytes + stats.send_bytes;
	}
	return n;
}

TEST_F(shed, idle_channels_that_were_busy_take_what_they_took_at_first)
{
	size_t base;
	int i, round;

	ASSERT_NO(make_some(self, CHANNELS));
	base = held(self);
	for (round = 0; round < 3; round++) {
		ASSERT_NO(be_busy(self));
		EXPECT_LT(0, count_large(self));
		EXPECT_LT(base + (2 << 20), held(self));
		EXPECT_GT(MOST_LOOKS, looks_until_small(self));
		look_all(self);
		look_all(self);
		EXPECT_EQ(base, held(self));
		for (i = 0; i < 2; i++) {
			EXPECT_EQ(0, self->m[i]->budget.taken);
			/* Nobody is woken for this any more. */
			EXPECT_EQ(0, self->m[i]->budget.ages);
		}
		ASSERT_NO(pass_all(self, 1000));
	}
}

/* Each time that it was wrong it is looked twice as often. */
TEST_F(shed, who_grows_again_and_again_is_left_alone_for_longer)
{
	int looks, before = 0, round;

	ASSERT_NO(make_some(self, 1));
	for (round = 0; round < 4; round++) {
		ASSERT_NO(be_busy(self));
		looks = looks_until_small(self);
		EXPECT_LT(before, looks);
		EXPECT_GT(MOST_LOOKS, looks);
		before = looks;
	}
	EXPECT_LT(8, before);
}

/* What came before it grew counts as well. */
TEST_F(shed, who_grows_is_not_quiet)
{
	int i;

	ASSERT_NO(make_some(self, 1));
	for (i = 0; i < 20; i++) {
		ASSERT_NO(pass_all(self, LONG));
		look_all(self);
	}
	EXPECT_EQ(65536, self->pair[0][0]->sender->buffer);
	EXPECT_EQ(3, self->pair[0][0]->sender->generation);
}

TEST_F(shed, what_is_needed_stays)
{
	uint32_t generation;
	int i;

	ASSERT_NO(make_some(self, 1));
	ASSERT_NO(be_busy(self));
	generation = self->pair[0][0]->sender->generation;
	for (i = 0; i < 20; i++) {
		ASSERT_NO(pass_all(self, LONG));
		look_all(self);
	}
	EXPECT_EQ(generation, self->pair[0][0]->sender->generation);
	/* Also while the messages that came in them are not released. */
	for (i = 0; i < 20; i++) {
		struct h_message m;
		struct ht_poll poll;
		int ret;

		if (!i) {
			ASSERT_EQ(0, h_channel_send(self->pair[0][0], self->data, 1000, H_NOWAIT));
			ht_poll_begin(&poll);
			while ((ret = h_channel_receive(self->pair[0][1], &m, H_NOWAIT)) ==
			       -EAGAIN && ht_poll_more(&poll))
				;
			ASSERT_EQ(0, ret);
		}
		look_all(self);
		EXPECT_EQ(0, memcmp(m.data, self->data, 1000));
		if (i == 19)
			EXPECT_EQ(0, h_channel_release(self->pair[0][1], &m));
	}
	EXPECT_EQ(generation, self->pair[0][0]->sender->generation);
	/* Short ones need none: however many. */
	for (i = 0; i < 20; i++) {
		ASSERT_NO(pass_all(self, 100));
		look_all(self);
	}
	EXPECT_EQ(0, count_large(self));
}

/* It is told, and takes its time; what it sends meanwhile comes. */
TEST_F(shed, a_sender_that_sleeps_loses_nothing)
{
	struct h_channel *a, *b;
	void *own;
	int i, k;

	ASSERT_NO(make_some(self, 1));
	a = self->pair[0][0];
	b = self->pair[0][1];
	ASSERT_NO(be_busy(self));
	/* From where it is, with nothing collected. */
	ASSERT_EQ(0, h_manager_alloc(self->m[0], MANY_RECORDS, &own));
	memcpy(own, self->data, MANY_RECORDS);
	for (i = 0; i < 20 && b->receiver->gens == 1; i++)
		look(self->m[1]);
	EXPECT_EQ(2, b->receiver->gens);
	EXPECT_EQ(65536, a->sender->buffer);
	/* It finds the offer in the middle of a message, and has records that do not fit. */
	ASSERT_NO(pass_data(self, a, b, own, MANY_RECORDS));
	for (k = 0; k < 40; k++)
		ASSERT_NO(pass(self, a, b, (size_t)k * 2500));
	look_all(self);
	EXPECT_EQ(1, b->receiver->gens);
	EXPECT_EQ(0, self->m[1]->budget.offered);
	EXPECT_EQ(0, h_manager_free(self->m[0], own));
}

static void count(struct h_channel *ch, void *arg)
{
	(void)ch;
	++*(int *)arg;
}

/*
 * It has no room in the larger buffers, and nothing that would fit the smaller ones. To begin with
 * those is no arrival, and the receiver may have none to tell of for long.
 */
TEST_F(shed, who_was_refused_is_called_when_smaller_buffers_give_room)
{
	struct h_channel *a, *b;
	struct ht_poll poll;
	int i, err, called = 0;

	ASSERT_NO(make_some(self, 1));
	a = self->pair[0][0];
	b = self->pair[0][1];
	ASSERT_NO(be_busy(self));
	for (i = 0; i < 20 && b->receiver->gens == 1; i++)
		look(self->m[1]);
	ASSERT_EQ(2, b->receiver->gens);
	do {
		err = h_channel_send(a, self->data, 60000, H_NOWAIT);
	} while (!err);
	ASSERT_EQ(-EAGAIN, err);
	EXPECT_TRUE(a->sender->shrinks);
	h_channel_on_ready(a, count, &called);
	ht_poll_begin(&poll);
	while (!called && ht_poll_more(&poll))
		h_manager_dispatch(self->m[0]);
	EXPECT_EQ(4096, a->sender->buffer);
	EXPECT_EQ(1, called);
}

/* The descriptor says when it is time to look. In as many seconds as it takes. */
TEST_F(shed, loops_that_sleep_are_woken_for_it_and_then_sleep)
{
	struct pollfd p[2] = { { .events = POLLIN }, { .events = POLLIN } };
	int64_t end = ht_now_ns() + ht_patience_ns();
	int i;

	ASSERT_NO(make_some(self, 2));
	ASSERT_NO(be_busy(self));
	for (i = 0; i < 2; i++) {
		p[i].fd = h_manager_fd(self->m[i]);
		ASSERT_LE(0, p[i].fd);
	}
	while (count_large(self) + self->m[0]->budget.ages + self->m[1]->budget.ages &&
	       ht_now_ns() < end)
		if (poll(p, 2, (int)((end - ht_now_ns()) / HT_MS) + 1) > 0)
			for (i = 0; i < 2; i++)
				if (p[i].revents)
					h_manager_dispatch(self->m[i]);
	EXPECT_EQ(0, count_large(self));
	EXPECT_EQ(0, poll(p, 2, 1500));
}

/* ---- streams ---- */

/* What was collected for the larger buffers goes in those. */
TEST_F(shed, what_a_stream_has_collected_is_not_lost)
{
	const struct h_stream_attr attr = { .buffers = 4, .buffer_size = 1024,
					    .max_buffer_size = 16384 };
	struct h_stream_receiver *r;
	struct h_stream_sender *s;
	struct ht_poll poll;
	char got[5000];
	struct h_seed seed;
	size_t done;
	int i;

	ASSERT_EQ(0, h_stream_receiver_create(self->m[1], &attr, &r));
	h_stream_receiver_seed(r, &seed);
	ASSERT_EQ(0, h_stream_sender_create(self->m[0], &seed, &s));
	for (i = 0; i < 40; i++) {
		ssize_t n = 0;

		ht_poll_begin(&poll);
		for (done = 0; done < 20000 && ht_poll_more(&poll);) {
			n = h_stream_send(s, self->data + done, 20000 - done, H_NOWAIT);
			done += n > 0 ? (size_t)n : 0;
			while (h_stream_receive_copy(r, got, sizeof(got), H_NOWAIT) > 0)
				;
		}
		h_stream_flush(s, H_NOWAIT);
	}
	settle(self);
	while (h_stream_receive_copy(r, got, sizeof(got), H_NOWAIT) > 0)
		;
	EXPECT_LT(4096, s->buffer);
	ASSERT_EQ(5000, h_stream_send(s, self->data, 5000, H_NOWAIT));
	for (i = 0; i < 20 && s->buffer > 1024; i++)
		look_all(self);
	EXPECT_EQ(1024, s->buffer);
	EXPECT_EQ(0, h_stream_flush(s, ht_patience_ns()));
	ht_poll_begin(&poll);
	for (done = 0; done < 5000 && ht_poll_more(&poll);) {
		ssize_t n = h_stream_receive_copy(r, got + done, 5000 - done, H_NOWAIT);

		done += n > 0 ? (size_t)n : 0;
	}
	EXPECT_EQ(5000, done);
	EXPECT_EQ(0, memcmp(got, self->data, 5000));
	h_stream_sender_close(s, H_NOWAIT);
	EXPECT_EQ(0, h_stream_receiver_destroy(r));
}

/* ---- who finds none ---- */

/* The first one who is idle has to give, as soon as somebody else has been refused. */
TEST_F(shed, who_finds_the_budget_used_up_gets_what_is_idle)
{
	struct h_manager *m = self->m[1];
	struct h_stream_receiver *first;
	int i;

	m->budget.most = 1500000;
	self->m[0]->budget.most = 1500000;
	ASSERT_NO(make_some(self, 1));
	ASSERT_NO(be_busy(self));
	first = self->pair[0][1]->receiver;
	EXPECT_EQ(65536, first->gen[0].buffer);
	look_all(self);
	EXPECT_FALSE(m->budget.pressed);
	ASSERT_NO(make_some(self, 1));
	for (i = 0; i < 12; i++)
		ASSERT_NO(pass(self, self->pair[1][0], self->pair[1][1], LONG));
	/* Or that look has come already. */
	EXPECT_TRUE(m->budget.pressed || first->patience > H_FIRST_QUIET);
	look_all(self);
	EXPECT_LT(H_FIRST_QUIET, first->patience);
	EXPECT_GE(1500000, m->budget.taken);
}

static void *poll_for(void *arg)
{
	struct h_manager *m = arg;

	while (!h__read_once(&m->spin_learns))
		h_manager_wait(m, HT_MS);
	return NULL;
}

/* All of the segment, whatever it takes. */
static void use_up(struct h_dev *dev)
{
	struct h_area *area;
	size_t size;

	for (size = 1 << 20; size >= 4096; size /= 2)
		while (!h_area_alloc(dev, size, &area))
			;
}

TEST_F(shed, what_is_idle_goes_before_anybody_is_told_that_there_is_none)
{
	pthread_t thread;
	struct ht_poll poll;
	size_t taken;
	void *p[2];
	int n = 0;

	if (!h_dev_is_embedded(self->dev[0]))
		SKIP(return, "would take all memory of a machine");
	ASSERT_NO(make_some(self, 8));
	ASSERT_NO(be_busy(self));
	settle(self);
	use_up(self->dev[0]);
	taken = self->m[1]->budget.taken;
	ASSERT_LT(2 << 20, taken);
	self->m[0]->spin_learns = false;
	ASSERT_EQ(0, pthread_create(&thread, NULL, poll_for, self->m[0]));
	/* Each try waits a little; the other thread may not have had a processor. */
	ht_poll_begin(&poll);
	while ((!n || taken == self->m[1]->budget.taken) && ht_poll_more(&poll))
		if (n < 2)
			n += !h_manager_alloc(self->m[1], 1 << 20, &p[n]);
	h__write_once(&self->m[0]->spin_learns, true);
	pthread_join(thread, NULL);
	EXPECT_LE(1, n);
	EXPECT_GT(taken, self->m[1]->budget.taken);
	while (n--)
		EXPECT_EQ(0, h_manager_free(self->m[1], p[n]));
	settle(self);
	ASSERT_NO(pass_all(self, LONG));
}

/* ---- in traffic ---- */

#define MESSAGES	400

struct traffic {
	struct h_channel *from, *to;
	const char *data;
	const char *wrong;
	bool over;		/* atomic */
};

static size_t length_of(unsigned int i)
{
	/* A while of short ones, a while of long ones. */
	return i / 40 % 2 ? i * 37 % 64 + 1 : (size_t)i * 2654435761u % LONG;
}

static void *send_them(void *arg)
{
	struct traffic *t = arg;
	unsigned int i;

	for (i = 0; i < MESSAGES && !t->wrong; i++) {
		if (h_channel_send(t->from, t->data, length_of(i), ht_patience_ns()))
			t->wrong = "cannot send";
		/* Then there is a look in between. */
		if (length_of(i) <= 64 && i % 4 == 0)
			ht_sleep_ns(HT_MS);
	}
	return NULL;
}

static void *take_them(void *arg)
{
	struct traffic *t = arg;
	struct h_message m;
	unsigned int i;

	for (i = 0; i < MESSAGES && !t->wrong; i++) {
		if (h_channel_receive(t->to, &m, ht_patience_ns()))
			t->wrong = "cannot receive";
		else if (m.length != length_of(i) || memcmp(m.data, t->data, m.length))
			t->wrong = "wrong data";
		if (!t->wrong && h_channel_release(t->to, &m))
			t->wrong = "cannot release";
	}
	__atomic_store_n(&t->over, true, __ATOMIC_RELEASE);
	return NULL;
}

TEST_F(shed, nothing_is_lost_while_buffers_change_size_in_traffic)
{
	struct traffic t = { .data = self->data };
	pthread_t thread[2];
	int i;

	ASSERT_NO(make_some(self, 1));
	t.from = self->pair[0][0];
	t.to = self->pair[0][1];
	ASSERT_EQ(0, pthread_create(&thread[0], NULL, send_them, &t));
	ASSERT_EQ(0, pthread_create(&thread[1], NULL, take_them, &t));
	while (!__atomic_load_n(&t.over, __ATOMIC_ACQUIRE)) {
		for (i = 0; i < 2; i++) {
			h__write_once(&self->m[i]->budget.looked_ns, 0);
			h__write_once(&self->m[i]->budget.pressed, true);
			/* One thread at a time on those that are for one. */
			if (!variant->flags)
				h_manager_poll(self->m[i]);
		}
		ht_sleep_ns(HT_MS / 10);
	}
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(NULL, t.wrong) {
		TH_LOG("%s", t.wrong);
	}
	/* More than it takes to grow: they have shrunk. */
	EXPECT_LT(3, t.from->sender->generation);
}

TEST_HARNESS_MAIN
