// SPDX-License-Identifier: GPL-2.0-only
/* A publisher and its subscribers: quick ones, slow ones, rude ones and dead ones. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn/publish.h>
#include <hamlyn/server.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define LONG		300000
#define LONG_ENOUGH	(3600 * HT_SEC)
#define SHORT_PATIENCE	(20 * HT_MS)
/* Not over, on a busy machine, between one call and the next. */
#define SOME_PATIENCE	(200 * HT_MS * ht_scale())

FIXTURE(publish) {
	char path[64];
	struct h_publisher *p;
	pthread_t thread;
	bool runs;
	/* atomic */
	int stop;
	int welcome;
	int ended;
	int reason;
	int refuse;
	int busy;
};

static int seen(int *counter)
{
	return __atomic_load_n(counter, __ATOMIC_SEQ_CST);
}

static bool becomes(int *counter, int value)
{
	int64_t end = ht_now_ns() + ht_patience_ns();

	while (seen(counter) != value && ht_now_ns() < end)
		ht_sleep_ns(HT_MS);
	return seen(counter) == value;
}

static int on_subscriber(const struct h_subscription *s, void *arg)
{
	FIXTURE_DATA(publish) *self = arg;

	if (s->peer.uid != geteuid())
		abort();
	if (seen(&self->refuse))
		return -EACCES;
	__atomic_add_fetch(&self->welcome, 1, __ATOMIC_SEQ_CST);
	if (self->p && (h_publisher_send(self->p, "x", 1, H_NOWAIT) == -EBUSY) &&
	    h_publisher_close(self->p, H_NOWAIT) == -EBUSY)
		__atomic_add_fetch(&self->busy, 1, __ATOMIC_SEQ_CST);
	return 0;
}

static void on_end(const struct h_subscription *s, int reason, void *arg)
{
	FIXTURE_DATA(publish) *self = arg;

	(void)s;
	__atomic_store_n(&self->reason, reason, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&self->ended, 1, __ATOMIC_SEQ_CST);
}

static int create(FIXTURE_DATA(publish) *self, struct h_publisher_attr attr)
{
	attr.device = ht_device();
	attr.on_subscriber = on_subscriber;
	attr.on_end = on_end;
	attr.arg = self;
	return h_publisher_create(self->path, &attr, &self->p);
}

static void *see_to_them(void *arg)
{
	FIXTURE_DATA(publish) *self = arg;

	while (!seen(&self->stop))
		h_publisher_run(self->p, HT_MS);
	return NULL;
}

static bool start(FIXTURE_DATA(publish) *self, struct h_publisher_attr attr)
{
	if (create(self, attr) || pthread_create(&self->thread, NULL, see_to_them, self))
		return false;
	self->runs = true;
	return true;
}

static void end_thread(FIXTURE_DATA(publish) *self)
{
	if (!self->runs)
		return;
	self->runs = false;
	__atomic_store_n(&self->stop, 1, __ATOMIC_SEQ_CST);
	pthread_join(self->thread, NULL);
}

static int subscribe(FIXTURE_DATA(publish) *self, struct h_subscriber_attr attr,
		     struct h_subscriber **s)
{
	attr.device = ht_device();
	return h_subscriber_create(self->path, &attr, s, ht_patience_ns());
}

/* Four buffers, of 256 bytes for ever. */
static const struct h_subscriber_attr few = {
	.buffers = 4, .buffer_size = 256, .max_buffer_size = 256,
};

static struct h_subscriber_attr few_of(uint32_t policy)
{
	struct h_subscriber_attr attr = few;

	attr.policy = policy;
	return attr;
}

static int publish(FIXTURE_DATA(publish) *self, uint64_t seed, size_t length, int64_t timeout_ns)
{
	struct h_loan loan;
	int err = h_publisher_reserve(self->p, length, &loan);

	if (err)
		return err;
	ht_fill(loan.data, length, seed);
	err = h_publisher_commit(self->p, &loan, length, timeout_ns);
	return err ? h_publisher_abandon(self->p, &loan) ?: err : 0;
}

/* The next one is the message of that number, which is its pattern; how many were lost, or -1. */
static int64_t gets(struct h_subscriber *s, uint64_t number, size_t length)
{
	struct h_publication pub;
	int64_t lost = -1;

	if (h_subscriber_receive(s, &pub, ht_patience_ns()))
		return -1;
	if (pub.number == number && pub.length == length &&
	    ht_match(pub.data, length, number) == length)
		lost = (int64_t)pub.lost;
	h_subscriber_release(s, &pub);
	return lost;
}

static int nothing_more(struct h_subscriber *s)
{
	struct h_publication pub;
	int ret = h_subscriber_receive(s, &pub, H_NOWAIT);

	if (!ret)
		h_subscriber_release(s, &pub);
	return ret;
}

FIXTURE_SETUP(publish)
{
	snprintf(self->path, sizeof(self->path), "/tmp/hamlyn-publish.%d", getpid());
}

FIXTURE_TEARDOWN(publish)
{
	end_thread(self);
	h_publisher_close(self->p, H_NOWAIT);
	EXPECT_EQ(self->welcome, self->ended);
	EXPECT_EQ(self->welcome, self->busy);
	EXPECT_NE(0, access(self->path, F_OK));
}

/* ---- what everybody gets ---- */

TEST_F(publish, each_gets_every_message)
{
	static const size_t sizes[] = { 0, 1, 100, 4000, 5000, 70000, LONG };
	struct h_subscriber *s[3];
	unsigned int i, j;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {}));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) { .policy = i % 2 },
				       &s[i]));
	for (j = 0; j < ARRAY_SIZE(sizes); j++) {
		ASSERT_EQ(0, publish(self, j + 1, sizes[j], H_NOWAIT));
		for (i = 0; i < 3; i++)
			ASSERT_EQ(0, gets(s[i], j + 1, sizes[j])) TH_LOG("%zu bytes", sizes[j]);
	}
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, h_subscriber_close(s[i]));
	EXPECT_TRUE(becomes(&self->ended, 3));
}

TEST_F(publish, what_is_sent_may_change_afterwards)
{
	struct h_subscriber *s;
	char data[] = "hello";
	struct h_publication pub;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {}));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &s));
	ASSERT_EQ(0, h_publisher_send(self->p, data, sizeof(data), H_NOWAIT));
	memset(data, 'x', sizeof(data));
	ASSERT_EQ(0, h_subscriber_receive(s, &pub, ht_patience_ns()));
	EXPECT_EQ(0, (uintptr_t)pub.data % 16);
	EXPECT_EQ(sizeof(data), pub.length);
	EXPECT_EQ(0, memcmp(pub.data, "hello", sizeof(data)));
	EXPECT_EQ(0, h_subscriber_release(s, &pub));
	EXPECT_EQ(NULL, pub.data);
	EXPECT_EQ(0, h_subscriber_close(s));
}

TEST_F(publish, nobody_needs_to_be_there)
{
	struct h_publisher_counters c;
	unsigned int i;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) { .history = 3 }));
	for (i = 1; i <= 100; i++)
		ASSERT_EQ(0, publish(self, i, 1000 * i, H_NOWAIT));
	EXPECT_EQ(0, h_publisher_stats(self->p, &c));
	EXPECT_EQ(100, c.published);
	EXPECT_EQ(0, c.sent);
}

TEST_F(publish, those_that_come_late)
{
	struct h_subscriber *now, *some, *all;
	unsigned int i;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) { .history = 8 }));
	for (i = 1; i <= 20; i++)
		ASSERT_EQ(0, publish(self, i, 100, H_NOWAIT));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &now));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) { .history = 3 }, &some));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) { .history = UINT32_MAX }, &all));
	ASSERT_EQ(0, publish(self, 21, 100, H_NOWAIT));
	EXPECT_EQ(0, gets(now, 21, 100));
	for (i = 18; i <= 21; i++)
		EXPECT_EQ(0, gets(some, i, 100));
	for (i = 13; i <= 21; i++)
		EXPECT_EQ(0, gets(all, i, 100));
	EXPECT_EQ(0, h_subscriber_close(now));
	EXPECT_EQ(0, h_subscriber_close(some));
	EXPECT_EQ(0, h_subscriber_close(all));
}

/* ---- policies ---- */

#define HISTORY	6

/* Its buffers hold the oldest ones, the publisher the last ones; what was between is lost. */
TEST_F(publish, the_oldest_are_dropped)
{
	struct h_subscriber *slow, *quick;
	uint64_t number, expected = 1, lost = 0, got = 0;
	struct h_publisher_counters c;
	struct h_publication pub;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) { .history = HISTORY }));
	ASSERT_EQ(0, subscribe(self, few, &slow));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &quick));
	for (number = 1; number <= 100; number++) {
		ASSERT_EQ(0, publish(self, number, 50, H_NOWAIT));
		ASSERT_EQ(0, gets(quick, number, 50));
	}
	ASSERT_EQ(0, h_publisher_stats(self->p, &c));
	EXPECT_EQ(200 - HISTORY, c.sent + c.dropped);
	while (expected <= 100) {
		ASSERT_EQ(0, h_subscriber_receive(slow, &pub, ht_patience_ns()));
		ASSERT_EQ(expected + pub.lost, pub.number);
		EXPECT_EQ(50, ht_match(pub.data, 50, pub.number));
		if (pub.lost)
			EXPECT_EQ(100 - HISTORY + 1, pub.number);
		expected = pub.number + 1;
		lost += pub.lost;
		got++;
		ASSERT_EQ(0, h_subscriber_release(slow, &pub));
	}
	EXPECT_EQ(100, lost + got);
	EXPECT_LE(HISTORY + 2, got);
	EXPECT_GE(HISTORY + 4, got);
	EXPECT_EQ(0, h_subscriber_close(slow));
	EXPECT_EQ(0, h_subscriber_close(quick));
}

TEST_F(publish, the_newest_are_dropped)
{
	struct h_publisher_counters c;
	struct h_subscriber *s;
	uint64_t number, got;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {}));
	ASSERT_EQ(0, subscribe(self, few_of(H_DROP_NEWEST), &s));
	for (number = 1; number <= 100; number++)
		ASSERT_EQ(0, publish(self, number, 50, H_NOWAIT));
	ASSERT_EQ(0, h_publisher_stats(self->p, &c));
	EXPECT_EQ(100, c.sent + c.dropped);
	/* As many as there was room for. */
	ASSERT_LE(2, c.sent);
	for (got = 0; got < c.sent; got++)
		ASSERT_EQ(0, gets(s, got + 1, 50));
	EXPECT_EQ(-EAGAIN, nothing_more(s));
	/* What comes next is sent as soon as it is known that there is room. */
	do {
		ASSERT_EQ(0, publish(self, number, 50, H_NOWAIT));
		ht_sleep_ns(HT_MS);
		number++;
		ASSERT_EQ(0, h_publisher_stats(self->p, &c));
	} while (c.lagging && number < 10000);
	ASSERT_EQ(0, publish(self, number, 50, H_NOWAIT));
	EXPECT_LE((int64_t)(100 - c.sent - 1), gets(s, number - 1, 50));
	EXPECT_EQ(0, gets(s, number, 50));
	EXPECT_EQ(0, h_subscriber_close(s));
}

/* Publishes until one that is waited for is in the way: how many were taken. */
static uint64_t publish_until_refused(FIXTURE_DATA(publish) *self, struct h_subscriber *other)
{
	uint64_t number;

	for (number = 1; number < 1000; number++) {
		int ret = publish(self, number, 50, H_NOWAIT);

		if (ret)
			return ret == -EAGAIN ? number - 1 : 0;
		if (other && gets(other, number, 50))
			return 0;
	}
	return 0;
}

TEST_F(publish, one_that_is_waited_for_loses_nothing)
{
	struct h_subscriber *slow, *quick;
	uint64_t taken, number;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {
		.history = HISTORY, .patience_ns = LONG_ENOUGH,
	}));
	ASSERT_EQ(0, subscribe(self, few_of(H_WAIT), &slow));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &quick));
	taken = publish_until_refused(self, quick);
	ASSERT_LE(HISTORY, taken);
	/* To all or to none. */
	EXPECT_EQ(-ETIMEDOUT, publish(self, taken + 1, 50, HT_MS));
	EXPECT_EQ(-EAGAIN, nothing_more(quick));
	EXPECT_EQ(0, gets(slow, 1, 50));
	EXPECT_EQ(0, gets(slow, 2, 50));
	EXPECT_EQ(0, gets(slow, 3, 50));
	ASSERT_EQ(0, publish(self, taken + 1, 50, ht_patience_ns()));
	EXPECT_EQ(0, gets(quick, taken + 1, 50));
	for (number = 4; number <= taken + 1; number++)
		EXPECT_EQ(0, gets(slow, number, 50));
	EXPECT_EQ(0, seen(&self->ended));
	EXPECT_EQ(0, h_subscriber_close(slow));
	EXPECT_EQ(0, h_subscriber_close(quick));
}

TEST_F(publish, one_that_stays_away_is_given_up)
{
	struct h_subscriber *slow, *quick, *again;
	struct h_publisher_counters c;
	struct h_publication pub;
	uint64_t number, got;
	int ret;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {
		.history = HISTORY, .patience_ns = SHORT_PATIENCE,
	}));
	ASSERT_EQ(0, subscribe(self, few_of(H_WAIT), &slow));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &quick));
	for (number = 1; number <= 200; number++) {
		ASSERT_EQ(0, publish(self, number, 50, H_FOREVER));
		ASSERT_EQ(0, gets(quick, number, 50));
	}
	EXPECT_EQ(1, seen(&self->ended));
	EXPECT_EQ(-ETIMEDOUT, seen(&self->reason));
	ASSERT_EQ(0, h_publisher_stats(self->p, &c));
	EXPECT_EQ(1, c.given_up);
	EXPECT_EQ(1, c.subscribers);
	/* It has what was sent to it, and is told. */
	for (got = 0; !(ret = h_subscriber_receive(slow, &pub, ht_patience_ns())); got++) {
		EXPECT_EQ(0, pub.lost);
		EXPECT_EQ(0, h_subscriber_release(slow, &pub));
	}
	EXPECT_EQ(-ECONNRESET, ret);
	EXPECT_LE(2, got);
	/* Nor can its user begin anew. */
	EXPECT_EQ(-EBUSY, subscribe(self, few_of(H_WAIT), &again));
	EXPECT_EQ(NULL, again);
	ASSERT_EQ(0, subscribe(self, few, &again));
	EXPECT_EQ(0, h_subscriber_close(again));
	EXPECT_EQ(0, h_subscriber_close(slow));
	EXPECT_EQ(0, h_subscriber_close(quick));
}

/* 40 of them, and the end. */
static void *take_slowly(void *arg)
{
	struct h_subscriber *s = arg;
	struct h_publication pub;
	uint64_t number;

	for (number = 1; number <= 40; number++) {
		ht_sleep_ns(SHORT_PATIENCE / 10);
		if (gets(s, number, 50))
			return s;
	}
	return h_subscriber_receive(s, &pub, ht_patience_ns()) == -ENODATA ? NULL : s;
}

static int close_publisher(FIXTURE_DATA(publish) *self, int64_t timeout_ns)
{
	struct h_publisher *p = self->p;

	end_thread(self);
	self->p = NULL;
	return h_publisher_close(p, timeout_ns);
}

/* Patience is for one that takes nothing. */
TEST_F(publish, a_slow_one_is_waited_for)
{
	struct h_subscriber *slow;
	uint64_t number;
	pthread_t t;
	void *failed;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {
		.history = HISTORY, .patience_ns = SHORT_PATIENCE * 50 * ht_scale(),
	}));
	ASSERT_EQ(0, subscribe(self, few_of(H_WAIT), &slow));
	ASSERT_EQ(0, pthread_create(&t, NULL, take_slowly, slow));
	for (number = 1; number <= 40; number++)
		ASSERT_EQ(0, publish(self, number, 50, H_FOREVER));
	EXPECT_EQ(0, seen(&self->ended));
	EXPECT_EQ(0, close_publisher(self, ht_patience_ns()));
	pthread_join(t, &failed);
	EXPECT_EQ(NULL, failed);
	EXPECT_EQ(0, h_subscriber_close(slow));
}

/* Two that take nothing cost the patience once, whatever the other one has room for. */
TEST_F(publish, a_user_that_was_given_up_is_not_waited_for_again)
{
	struct h_subscriber_attr more = few_of(H_WAIT);
	struct h_subscriber *a, *b;
	struct h_publisher_counters c;
	uint64_t number;

	more.buffers = 64;
	ASSERT_TRUE(start(self, (struct h_publisher_attr) {
		.history = HISTORY, .patience_ns = SOME_PATIENCE,
	}));
	ASSERT_EQ(0, subscribe(self, few_of(H_WAIT), &a));
	ASSERT_EQ(0, subscribe(self, more, &b));
	ASSERT_LE(HISTORY, publish_until_refused(self, NULL));
	ht_sleep_ns(SOME_PATIENCE);
	for (number = 0; number < 100; number++)
		ASSERT_EQ(0, publish(self, number, 50, H_NOWAIT));
	EXPECT_EQ(2, seen(&self->ended));
	ASSERT_EQ(0, h_publisher_stats(self->p, &c));
	EXPECT_EQ(2, c.given_up);
	EXPECT_EQ(0, h_subscriber_close(a));
	EXPECT_EQ(0, h_subscriber_close(b));
}

/* Until there are so many that have no room. */
static bool lag(FIXTURE_DATA(publish) *self, struct h_subscriber *takes, uint32_t n)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct h_publisher_counters c;
	struct h_publication pub;

	do {
		if (!h_subscriber_receive(takes, &pub, HT_MS))
			h_subscriber_release(takes, &pub);
		if (h_publisher_stats(self->p, &c))
			return false;
	} while (c.lagging != n && ht_now_ns() < end);
	return c.lagging == n;
}

/* The time of the second runs while the first is in the way, too. */
TEST_F(publish, those_in_the_way_are_waited_for_at_the_same_time)
{
	struct h_subscriber *stays, *takes;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {
		.history = HISTORY, .patience_ns = SOME_PATIENCE,
	}));
	ASSERT_EQ(0, subscribe(self, few_of(H_WAIT), &stays));
	ASSERT_EQ(0, subscribe(self, few_of(H_WAIT), &takes));
	ASSERT_LE(HISTORY, publish_until_refused(self, NULL));
	ht_sleep_ns(SOME_PATIENCE);
	ASSERT_TRUE(lag(self, takes, 1));
	EXPECT_EQ(0, publish(self, 1, 50, H_NOWAIT));
	EXPECT_EQ(1, seen(&self->ended));
	EXPECT_EQ(0, h_subscriber_close(stays));
	EXPECT_EQ(0, h_subscriber_close(takes));
}

static bool explained(const char *words)
{
	char text[HAMLYN_EXPLAIN_BYTES];

	return !h_explain(NULL, text, sizeof(text)) && strstr(text, words);
}

TEST_F(publish, nobody_is_waited_for_unless_it_is_said)
{
	struct h_subscriber *s;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {}));
	EXPECT_EQ(-EOPNOTSUPP, subscribe(self, few_of(H_WAIT), &s));
	EXPECT_EQ(NULL, s);
	EXPECT_TRUE(explained("H_DROP_OLDEST"));
	EXPECT_EQ(0, seen(&self->welcome));
}

/* ---- memory ---- */

/* What is kept for one that lags is where it was built: nothing has made a copy of it. */
TEST_F(publish, what_is_kept_is_not_copied)
{
	struct h_subscriber *s;
	struct h_publication pub;
	struct h_loan loan;
	uint64_t number;
	char *data;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) { .history = 64 }));
	ASSERT_EQ(0, subscribe(self, few, &s));
	for (number = 1; number <= 10; number++) {
		ASSERT_EQ(0, h_publisher_reserve(self->p, 200, &loan));
		data = loan.data;
		memcpy(data, "before", 7);
		ASSERT_EQ(0, h_publisher_commit(self->p, &loan, 200, H_NOWAIT));
		EXPECT_EQ(NULL, loan.data);
	}
	memcpy(data, "after", 6);
	for (number = 1; number <= 10; number++) {
		ASSERT_EQ(0, h_subscriber_receive(s, &pub, ht_patience_ns()));
		EXPECT_EQ(number, pub.number);
		EXPECT_STREQ(number < 10 ? "before" : "after", pub.data);
		EXPECT_EQ(0, h_subscriber_release(s, &pub));
	}
	EXPECT_EQ(0, h_subscriber_close(s));
}

/* Of those that stop in the middle of a message the rest is kept when its place is needed. */
TEST_F(publish, long_ones_for_those_that_have_little_room)
{
	struct h_subscriber *slow, *quick;
	struct h_publication pub;
	uint64_t number, last = 0;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) { .history = 2 }));
	ASSERT_EQ(0, subscribe(self, few, &slow));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &quick));
	for (number = 1; number <= 30; number++) {
		ASSERT_EQ(0, publish(self, number, 20000 + number, H_NOWAIT));
		ASSERT_EQ(0, gets(quick, number, 20000 + number));
	}
	while (last < 30) {
		ASSERT_EQ(0, h_subscriber_receive(slow, &pub, ht_patience_ns()));
		ASSERT_EQ(last + 1 + pub.lost, pub.number);
		ASSERT_EQ(20000 + pub.number, pub.length);
		ASSERT_EQ(pub.length, ht_match(pub.data, pub.length, pub.number));
		last = pub.number;
		ASSERT_EQ(0, h_subscriber_release(slow, &pub));
	}
	EXPECT_EQ(0, h_subscriber_close(slow));
	EXPECT_EQ(0, h_subscriber_close(quick));
}

#define LAGGARDS	20
#define BYTES		500000

/* Each stops in the middle of another message, which it would keep in wired memory. */
TEST_F(publish, those_that_stop_in_the_middle_take_no_wired_memory)
{
	struct h_subscriber *s[LAGGARDS];
	struct h_manager_counters c = {};
	struct h_publication pub;
	uint64_t number;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) { .history = 1 }));
	for (number = 1; number <= LAGGARDS; number++) {
		ASSERT_EQ(0, subscribe(self, few, &s[number - 1]));
		ASSERT_EQ(0, publish(self, number, BYTES, H_NOWAIT));
	}
	EXPECT_EQ(0, h_manager_stats(h_publisher_manager(self->p), &c));
	EXPECT_GT(LAGGARDS / 2 * BYTES, c.send_bytes);
	for (number = 1; number <= LAGGARDS; number++) {
		ASSERT_EQ(0, h_subscriber_receive(s[number - 1], &pub, ht_patience_ns()));
		EXPECT_EQ(number, pub.number);
		EXPECT_EQ(BYTES, ht_match(pub.data, pub.length, number));
		EXPECT_EQ(0, h_subscriber_release(s[number - 1], &pub));
		EXPECT_EQ(0, h_subscriber_close(s[number - 1]));
	}
}

TEST_F(publish, longer_than_somebody_takes)
{
	struct h_subscriber *s;
	struct h_loan loan;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) { .max_message = 1000 }));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) { .max_message = 500 }, &s));
	EXPECT_EQ(-EMSGSIZE, publish(self, 1, 1001, H_NOWAIT));
	EXPECT_EQ(-EMSGSIZE, h_publisher_send(self->p, &loan, SIZE_MAX, H_NOWAIT));
	ASSERT_EQ(0, publish(self, 1, 1000, H_NOWAIT));
	ASSERT_EQ(0, publish(self, 2, 501, H_NOWAIT));
	ASSERT_EQ(0, publish(self, 3, 500, H_NOWAIT));
	EXPECT_EQ(2, gets(s, 3, 500));
	EXPECT_EQ(0, h_subscriber_close(s));
}

TEST_F(publish, no_longer_than_the_least)
{
	struct h_subscriber *s;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {}));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) { .max_message = 1 }, &s));
	ASSERT_EQ(0, publish(self, 1, 9, H_NOWAIT));
	ASSERT_EQ(0, publish(self, 2, 8, H_NOWAIT));
	EXPECT_EQ(1, gets(s, 2, 8));
	EXPECT_EQ(0, h_subscriber_close(s));
}

TEST_F(publish, loans)
{
	struct h_loan a, b, copy;
	struct h_subscriber *s;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {}));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &s));
	ASSERT_EQ(0, h_publisher_reserve(self->p, 100, &a));
	ASSERT_EQ(0, h_publisher_reserve(self->p, 100, &b));
	ASSERT_NE(a.data, b.data);
	ht_fill(a.data, 100, 2);
	ht_fill(b.data, 100, 1);
	copy = b;
	EXPECT_EQ(-EINVAL, h_publisher_commit(self->p, &b, 101, H_NOWAIT));
	ASSERT_EQ(0, h_publisher_commit(self->p, &b, 100, H_NOWAIT));
	EXPECT_EQ(-EALREADY, h_publisher_commit(self->p, &copy, 100, H_NOWAIT));
	EXPECT_EQ(-EALREADY, h_publisher_abandon(self->p, &copy));
	EXPECT_EQ(-EINVAL, h_publisher_commit(self->p, &b, 0, H_NOWAIT));
	EXPECT_EQ(0, h_publisher_abandon(self->p, &b));
	EXPECT_EQ(-EINVAL, h_channel_abandon(h_subscriber_channel(s), &a));
	ASSERT_EQ(0, h_publisher_commit(self->p, &a, 100, H_NOWAIT));
	EXPECT_EQ(0, gets(s, 1, 100));
	EXPECT_EQ(0, gets(s, 2, 100));
	/* This one is out when the publisher ends. */
	ASSERT_EQ(0, h_publisher_reserve(self->p, 100, &a));
	EXPECT_EQ(0, h_subscriber_close(s));
}

/* ---- threads ---- */

#define THREADS	3
#define EACH	400

static void *publish_many(void *arg)
{
	FIXTURE_DATA(publish) *self = arg;
	uint64_t i;

	for (i = 0; i < EACH; i++)
		if (h_publisher_send(self->p, &i, sizeof(i), ht_patience_ns()))
			return self;
	return NULL;
}

TEST_F(publish, any_thread_publishes)
{
	struct h_publication pub;
	pthread_t t[THREADS];
	struct h_subscriber *s;
	void *failed;
	uint64_t i;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) { .patience_ns = LONG_ENOUGH }));
	ASSERT_EQ(0, subscribe(self, few_of(H_WAIT), &s));
	for (i = 0; i < THREADS; i++)
		ASSERT_EQ(0, pthread_create(&t[i], NULL, publish_many, self));
	for (i = 1; i <= THREADS * EACH; i++) {
		ASSERT_EQ(0, h_subscriber_receive(s, &pub, ht_patience_ns()));
		ASSERT_EQ(i, pub.number);
		ASSERT_EQ(0, pub.lost);
		ASSERT_EQ(0, h_subscriber_release(s, &pub));
	}
	for (i = 0; i < THREADS; i++) {
		pthread_join(t[i], &failed);
		EXPECT_EQ(NULL, failed);
	}
	EXPECT_EQ(0, h_subscriber_close(s));
}

/* ---- event loops ---- */

static void *close_it(void *arg)
{
	return close_publisher(arg, ht_patience_ns()) ? arg : NULL;
}

TEST_F(publish, a_subscriber_in_an_event_loop)
{
	struct pollfd p = { .events = POLLIN };
	pthread_t t;
	void *failed;
	struct h_publication pub;
	struct h_subscriber *s;
	uint64_t number = 0;
	int ret;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) { .patience_ns = LONG_ENOUGH }));
	ASSERT_EQ(0, subscribe(self, few_of(H_WAIT), &s));
	p.fd = h_subscriber_fd(s);
	ASSERT_LE(0, p.fd);
	while (number < 100) {
		ASSERT_EQ(0, publish(self, number + 1, 50, H_NOWAIT));
		ASSERT_EQ(1, poll(&p, 1, (int)(ht_patience_ns() / HT_MS)));
		while (!(ret = h_subscriber_receive(s, &pub, H_NOWAIT))) {
			EXPECT_EQ(++number, pub.number);
			EXPECT_EQ(0, h_subscriber_release(s, &pub));
		}
		ASSERT_EQ(-EAGAIN, ret);
	}
	/* What is on its way may still wake it, for nothing. */
	for (ret = 0; ret < 100 && poll(&p, 1, 0); ret++)
		EXPECT_EQ(-EAGAIN, nothing_more(s));
	EXPECT_GT(100, ret);
	ASSERT_EQ(0, pthread_create(&t, NULL, close_it, self));
	do {
		ASSERT_EQ(1, poll(&p, 1, (int)(ht_patience_ns() / HT_MS)));
		ret = nothing_more(s);
	} while (ret == -EAGAIN);
	pthread_join(t, &failed);
	EXPECT_EQ(NULL, failed);
	EXPECT_EQ(-ENODATA, ret);
	EXPECT_EQ(0, h_subscriber_close(s));
}

static void *subscribe_once(void *arg)
{
	FIXTURE_DATA(publish) *self = arg;
	struct h_subscriber_attr attr = { .history = 1 };
	struct h_subscriber *s;
	bool good;

	if (subscribe(self, attr, &s))
		return self;
	good = gets(s, 1, 50) == 0;
	h_subscriber_close(s);
	return good ? NULL : self;
}

/* Sleeps for ever if the descriptor does not tell. */
TEST_F(publish, a_publisher_in_an_event_loop)
{
	struct pollfd p = { .events = POLLIN };
	pthread_t t;
	void *failed;
	int i;

	ASSERT_EQ(0, create(self, (struct h_publisher_attr) {}));
	ASSERT_EQ(0, publish(self, 1, 50, H_NOWAIT));
	p.fd = h_publisher_fd(self->p);
	ASSERT_LE(0, p.fd);
	ASSERT_EQ(0, pthread_create(&t, NULL, subscribe_once, self));
	while (!seen(&self->ended)) {
		ASSERT_EQ(1, poll(&p, 1, (int)(ht_patience_ns() / HT_MS)));
		ASSERT_EQ(0, h_publisher_dispatch(self->p));
	}
	pthread_join(t, &failed);
	EXPECT_EQ(NULL, failed);
	/* What is on its way may still wake it, for nothing. */
	for (i = 0; i < 100 && poll(&p, 1, 0); i++)
		ASSERT_EQ(0, h_publisher_dispatch(self->p));
	EXPECT_GT(100, i);
}

/* ---- ends ---- */

TEST_F(publish, at_the_end_all_have_everything)
{
	struct h_subscriber *s;
	uint64_t number;
	void *failed;
	pthread_t t;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) { .history = 64 }));
	ASSERT_EQ(0, subscribe(self, few, &s));
	for (number = 1; number <= 40; number++)
		ASSERT_EQ(0, publish(self, number, 50, H_NOWAIT));
	/* Receives them while the publisher closes. */
	ASSERT_EQ(0, pthread_create(&t, NULL, take_slowly, s));
	EXPECT_EQ(0, close_publisher(self, ht_patience_ns()));
	pthread_join(t, &failed);
	EXPECT_EQ(NULL, failed);
	EXPECT_EQ(0, h_subscriber_close(s));
}

TEST_F(publish, who_lags_does_not_keep_a_publisher_from_closing)
{
	struct h_subscriber *s;
	uint64_t number;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {}));
	ASSERT_EQ(0, subscribe(self, few, &s));
	for (number = 1; number <= 40; number++)
		ASSERT_EQ(0, publish(self, number, 50, H_NOWAIT));
	EXPECT_EQ(-ETIMEDOUT, close_publisher(self, HT_MS));
	EXPECT_EQ(0, h_subscriber_close(s));
}

static void publish_for_ever(FIXTURE_DATA(publish) *self)
{
	struct h_publisher_attr attr = { .patience_ns = LONG_ENOUGH };
	uint64_t number;

	if (create(self, attr))
		_exit(1);
	for (number = 1;; number++)
		if (publish(self, number, 3000, ht_patience_ns()))
			_exit(2);
}

TEST_F(publish, the_publisher_is_killed)
{
	struct h_publication pub;
	struct h_subscriber *s;
	uint64_t number = 0;
	int ret, status;
	pid_t pid = ht_fork();

	if (!pid)
		publish_for_ever(self);
	do {
		ret = subscribe(self, (struct h_subscriber_attr) { .policy = H_WAIT }, &s);
	} while (ret == -ENOENT || ret == -ECONNREFUSED);
	ASSERT_EQ(0, ret);
	while (!(ret = h_subscriber_receive(s, &pub, ht_patience_ns()))) {
		ASSERT_EQ(3000, ht_match(pub.data, pub.length, pub.number));
		ASSERT_EQ(0, pub.lost);
		ASSERT_EQ(0, h_subscriber_release(s, &pub));
		number++;
		if (number == 50)
			ASSERT_EQ(0, kill(pid, SIGKILL));
	}
	EXPECT_EQ(-ECONNRESET, ret);
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, h_subscriber_close(s));
	EXPECT_EQ(0, unlink(self->path));
}

/* ---- bad ones ---- */

/* Subscribes, takes some, and is then stopped, killed, or does nothing any more. */
static pid_t start_victim(FIXTURE_DATA(publish) *self, unsigned int i, int *told)
{
	struct h_subscriber_attr attr = i % 2 ? few : (struct h_subscriber_attr) {};
	struct h_publication pub;
	struct h_subscriber *s;
	unsigned int n;
	pid_t pid = ht_fork();

	if (pid)
		return pid;
	attr.policy = i % 3 ? H_DROP_OLDEST : H_DROP_NEWEST;
	if (subscribe(self, attr, &s))
		_exit(1);
	if (write(told[1], "s", 1) != 1)
		_exit(2);
	for (n = 0; n < i * 7; n++)
		if (!h_subscriber_receive(s, &pub, HT_MS) && n % 2)
			h_subscriber_release(s, &pub);
	switch (i % 4) {
	case 0:
		raise(SIGKILL);
		break;
	case 1:
		raise(SIGSTOP);
		break;
	case 2:
		h_subscriber_close(s);
		break;
	default:
		break;
	}
	for (;;)
		pause();
}

#define VICTIMS	12

TEST_F(publish, slow_stopped_and_dead_ones_cost_the_others_nothing)
{
	pid_t pid[VICTIMS];
	struct h_subscriber *s;
	uint64_t number;
	int told[2], i;
	char c;

	ASSERT_EQ(0, pipe(told));
	ASSERT_TRUE(start(self, (struct h_publisher_attr) {
		.history = HISTORY, .patience_ns = LONG_ENOUGH,
	}));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) { .policy = H_WAIT }, &s));
	for (i = 0; i < VICTIMS; i++) {
		pid[i] = start_victim(self, i, told);
		ASSERT_LT(0, pid[i]);
	}
	for (i = 0; i < VICTIMS; i++)
		ASSERT_EQ(1, read(told[0], &c, 1));
	for (number = 1; number <= 2000; number++) {
		ASSERT_EQ(0, publish(self, number, number, ht_patience_ns()));
		ASSERT_EQ(0, gets(s, number, number));
	}
	for (i = 0; i < VICTIMS; i++) {
		kill(pid[i], SIGKILL);
		ASSERT_EQ(pid[i], waitpid(pid[i], NULL, 0));
	}
	EXPECT_TRUE(becomes(&self->ended, VICTIMS));
	ASSERT_EQ(0, publish(self, number, number, ht_patience_ns()));
	EXPECT_EQ(0, gets(s, number, number));
	EXPECT_EQ(0, h_subscriber_close(s));
}

/* Clients that are no subscribers, and subscribers that say more than they may. */
TEST_F(publish, rude_ones_are_sent_away)
{
	static const char nonsense[16] = "nonsense, really";
	const struct h_channel_attr attr = { .device = ht_device() };
	struct h_channel *ch[2];
	struct h_subscriber *s, *rude;
	struct h_message m;
	int ret;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {}));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &s));
	ASSERT_EQ(0, h_channel_dial(self->path, &attr, &ch[0], ht_patience_ns()));
	ASSERT_EQ(0, h_channel_dial(self->path, &attr, &ch[1], ht_patience_ns()));
	ASSERT_EQ(0, h_channel_send(ch[0], nonsense, sizeof(nonsense), ht_patience_ns()));
	ASSERT_EQ(-EMSGSIZE, h_channel_send(ch[0], nonsense, 17, ht_patience_ns()));
	ret = h_channel_receive(ch[0], &m, ht_patience_ns());
	EXPECT_TRUE(ret == -ENODATA || ret == -ECONNRESET) TH_LOG("%d", ret);
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &rude));
	/* One that says nothing gets nothing. */
	ASSERT_EQ(0, publish(self, 1, 50, H_NOWAIT));
	EXPECT_EQ(-EAGAIN, h_channel_receive(ch[1], &m, H_NOWAIT));
	EXPECT_EQ(0, gets(rude, 1, 50));
	ASSERT_EQ(0, h_channel_send(h_subscriber_channel(rude), nonsense, 16, ht_patience_ns()));
	EXPECT_TRUE(becomes(&self->ended, 1));
	EXPECT_EQ(-EPROTO, seen(&self->reason));
	EXPECT_EQ(0, gets(s, 1, 50));
	h_channel_close(ch[0], H_NOWAIT);
	h_channel_close(ch[1], H_NOWAIT);
	EXPECT_EQ(0, h_subscriber_close(rude));
	EXPECT_EQ(0, h_subscriber_close(s));
}

/* What would make the publisher wait for it, which it was not asked for when it came. */
TEST_F(publish, nobody_says_hello_again)
{
	const uint32_t hello[4] = { 0x42555348, 0x31, H_WAIT, 0 };
	struct h_subscriber *s, *again;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {}));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &s));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &again));
	ASSERT_EQ(0, publish(self, 1, 50, H_NOWAIT));
	EXPECT_EQ(0, gets(again, 1, 50));
	ASSERT_EQ(0, h_channel_send(h_subscriber_channel(again), hello, sizeof(hello),
				    ht_patience_ns()));
	EXPECT_TRUE(becomes(&self->ended, 1));
	EXPECT_EQ(-EPROTO, seen(&self->reason));
	EXPECT_EQ(0, gets(s, 1, 50));
	EXPECT_EQ(0, h_subscriber_close(again));
	EXPECT_EQ(0, h_subscriber_close(s));
}

TEST_F(publish, one_that_is_not_welcome)
{
	struct h_subscriber *s;

	self->refuse = 1;
	ASSERT_TRUE(start(self, (struct h_publisher_attr) {}));
	EXPECT_EQ(-EACCES, subscribe(self, (struct h_subscriber_attr) {}, &s));
	EXPECT_EQ(NULL, s);
	EXPECT_TRUE(explained("turned"));
	EXPECT_EQ(0, seen(&self->welcome));
}

TEST_F(publish, more_subscribers_than_there_may_be)
{
	struct h_subscriber *s[3];
	int ret;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) { .subscribers = 2 }));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &s[0]));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &s[1]));
	EXPECT_EQ(-EUSERS, subscribe(self, (struct h_subscriber_attr) {}, &s[2]));
	EXPECT_EQ(0, h_subscriber_close(s[0]));
	EXPECT_TRUE(becomes(&self->ended, 1));
	do {
		ret = subscribe(self, (struct h_subscriber_attr) {}, &s[0]);
	} while (ret == -EUSERS);
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, publish(self, 1, 50, H_NOWAIT));
	EXPECT_EQ(0, gets(s[0], 1, 50));
	EXPECT_EQ(0, gets(s[1], 1, 50));
	EXPECT_EQ(0, h_subscriber_close(s[0]));
	EXPECT_EQ(0, h_subscriber_close(s[1]));
}

static void come_and_go(FIXTURE_DATA(publish) *self)
{
	struct h_subscriber *s;
	unsigned int i;

	for (i = 0; i < 30; i++) {
		if (!subscribe(self, few, &s) && i % 2)
			h_subscriber_close(s);
	}
	_exit(0);
}

TEST_F(publish, many_that_come_and_go)
{
	struct h_subscriber *s;
	uint64_t number;
	pid_t pid[4];
	int i;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {
		.patience_ns = LONG_ENOUGH, .subscribers = 20,
	}));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) { .policy = H_WAIT }, &s));
	for (i = 0; i < 4; i++) {
		pid[i] = ht_fork();
		if (!pid[i])
			come_and_go(self);
		ASSERT_LT(0, pid[i]);
	}
	for (number = 1, i = 0; i < 4 || number < 1000; number++) {
		ASSERT_EQ(0, publish(self, number, 1000, ht_patience_ns()));
		ASSERT_EQ(0, gets(s, number, 1000));
		if (i < 4 && waitpid(pid[i], NULL, WNOHANG) == pid[i])
			i++;
	}
	EXPECT_EQ(0, h_subscriber_close(s));
	EXPECT_TRUE(becomes(&self->ended, seen(&self->welcome)));
}

static int echo(struct h_channel *ch, const struct h_message *m, void *arg)
{
	(void)arg;
	return h_channel_send(ch, m->data, m->length, H_NOWAIT);
}

static void *run_server(void *arg)
{
	h_server_run(arg, H_FOREVER);
	return NULL;
}

TEST_F(publish, a_server_is_no_publisher)
{
	const struct h_server_attr attr = { .device = ht_device() };
	struct h_server *server;
	struct h_subscriber *s;
	pthread_t t;

	ASSERT_EQ(0, h_server_create(self->path, echo, NULL, &attr, &server));
	ASSERT_EQ(0, pthread_create(&t, NULL, run_server, server));
	EXPECT_EQ(-EPROTO, subscribe(self, (struct h_subscriber_attr) {}, &s));
	EXPECT_TRUE(explained("no publisher"));
	h_server_stop(server);
	pthread_join(t, NULL);
	EXPECT_EQ(0, h_server_close(server, H_NOWAIT));
}

static int cannot_be_used(FIXTURE_DATA(publish) *self, struct h_subscriber *s,
			  struct h_publication *pub)
{
	struct h_publisher_counters c;
	struct h_loan loan;

	return h_publisher_send(self->p, "", 0, H_NOWAIT) != -ENODEV ||
	       h_publisher_reserve(self->p, 1, &loan) != -ENODEV ||
	       h_publisher_run(self->p, H_NOWAIT) != -ENODEV ||
	       h_publisher_dispatch(self->p) != -ENODEV || h_publisher_fd(self->p) != -ENODEV ||
	       h_publisher_stats(self->p, &c) != -ENODEV ||
	       h_subscriber_release(s, pub) != -ENODEV ||
	       h_subscriber_receive(s, pub, H_NOWAIT) != -ENODEV ||
	       h_subscriber_fd(s) != -ENODEV;
}

TEST_F(publish, children_leave_it_alone)
{
	struct h_publication pub = {};
	struct h_subscriber *s;
	pid_t pid;

	ASSERT_TRUE(start(self, (struct h_publisher_attr) {}));
	ASSERT_EQ(0, subscribe(self, (struct h_subscriber_attr) {}, &s));
	pid = ht_fork();
	if (!pid)
		_exit(cannot_be_used(self, s, &pub) || h_subscriber_close(s) ||
		      h_publisher_close(self->p, H_FOREVER));
	EXPECT_EQ(0, ht_reap(pid));
	ASSERT_EQ(0, publish(self, 1, 50, H_NOWAIT));
	EXPECT_EQ(0, gets(s, 1, 50));
	EXPECT_EQ(0, h_subscriber_close(s));
}

TEST_F(publish, what_is_wrong_is_said)
{
	struct h_publisher_attr attr = { .device = ht_device(), .history = 65537 };
	struct h_subscriber *s;
	struct h_publisher *p;

	EXPECT_EQ(-ENOENT, subscribe(self, (struct h_subscriber_attr) {}, &s));
	EXPECT_TRUE(explained(""));
	EXPECT_EQ(-EINVAL, subscribe(self, (struct h_subscriber_attr) { .policy = 3 }, &s));
	EXPECT_TRUE(explained("policy"));
	EXPECT_EQ(-EINVAL, subscribe(self, (struct h_subscriber_attr) { .reserved = 1 }, &s));
	EXPECT_EQ(-EINVAL, h_publisher_create(self->path, &attr, &p));
	EXPECT_EQ(NULL, p);
	EXPECT_TRUE(explained("65536"));
	attr.history = 0;
	attr.subscribers = 65537;
	EXPECT_EQ(-EINVAL, h_publisher_create(self->path, &attr, &p));
	EXPECT_EQ(0, h_publisher_close(NULL, H_FOREVER));
	EXPECT_EQ(0, h_subscriber_close(NULL));
	ASSERT_EQ(0, create(self, (struct h_publisher_attr) {}));
	EXPECT_EQ(-EADDRINUSE, h_publisher_create(self->path, NULL, &p));
}

TEST_HARNESS_MAIN
