// SPDX-License-Identifier: GPL-2.0-only
/* A work queue and its workers: good ones, slow ones, rude ones and dead ones. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <hamlyn/work.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define ITEMS		400
#define LONG		300000
#define SHORT_PATIENCE	(50 * HT_MS)

FIXTURE(work) {
	char path[64];
	struct h_work_queue *q;
	int done[ITEMS + 1];	/* how often, by number of the item */
	int failed[ITEMS + 1];
	int wrong;
	int welcome;
	int ended;
	int reason;
	bool refuse;
	int add_more;		/* items that are added when one has ended */
	int busy;
	struct h_worker *leave[2];	/* when one has ended */
};

static void add_another(FIXTURE_DATA(work) *self, uint64_t id)
{
	uint64_t next = id + 1;

	if (!self->add_more)
		return;
	self->add_more--;
	self->wrong += h_work_add(self->q, &next, sizeof(next), NULL, H_FOREVER) != 0;
	self->busy += h_work_run(self->q, H_NOWAIT) == -EBUSY &&
		      h_work_close(self->q, H_NOWAIT) == -EBUSY;
}

/* An item is a number, and its result twice that; long ones are followed by a pattern. */
static void on_done(uint64_t id, const void *result, size_t length, void *arg)
{
	FIXTURE_DATA(work) *self = arg;
	uint64_t value = 0;

	if (length >= sizeof(value))
		memcpy(&value, result, sizeof(value));
	if (id > ITEMS || value != 2 * id ||
	    ht_match((const char *)result + 8, length - 8, id) != length - 8) {
		self->wrong++;
		return;
	}
	self->done[id]++;
	add_another(self, id);
}

static void on_failed(uint64_t id, const void *data, size_t length, void *arg)
{
	FIXTURE_DATA(work) *self = arg;

	(void)data;
	(void)length;
	if (id <= ITEMS)
		self->failed[id]++;
	add_another(self, id);
}

static int on_worker(const struct h_peer *peer, void *arg)
{
	FIXTURE_DATA(work) *self = arg;

	if (self->refuse || peer->uid != geteuid())
		return -EACCES;
	self->welcome++;
	return 0;
}

static void on_end(const struct h_peer *peer, int reason, void *arg)
{
	FIXTURE_DATA(work) *self = arg;
	int i;

	(void)peer;
	self->ended++;
	self->reason = reason;
	for (i = 0; i < 2; i++) {
		h_worker_close(self->leave[i], H_NOWAIT);
		self->leave[i] = NULL;
	}
}

static int create(FIXTURE_DATA(work) *self, struct h_work_attr attr)
{
	attr.device = ht_device();
	attr.on_done = on_done;
	attr.on_failed = on_failed;
	attr.on_worker = on_worker;
	attr.on_end = on_end;
	attr.arg = self;
	return h_work_create(self->path, &attr, &self->q);
}

/* The item of that number, with so many bytes behind it. */
static int add(FIXTURE_DATA(work) *self, uint64_t number, size_t more, int64_t timeout_ns)
{
	static unsigned char bytes[8 + LONG];
	uint64_t id = 0;
	int err;

	memcpy(bytes, &number, sizeof(number));
	ht_fill(bytes + 8, more, number);
	err = h_work_add(self->q, bytes, 8 + more, &id, timeout_ns);
	return err ? err : id == number ? 0 : -EBADMSG;
}

/* ---- workers ---- */

static int join(FIXTURE_DATA(work) *self, struct h_worker_attr attr, struct h_worker **w)
{
	attr.device = ht_device();
	attr.flags |= H_CONNECT_WAIT;
	return h_worker_create(self->path, &attr, w, ht_patience_ns());
}

static int do_it(struct h_worker *w, struct h_work_item *item)
{
	unsigned char *result = malloc(item->length);
	uint64_t number;
	int err;

	memcpy(&number, item->data, sizeof(number));
	memcpy(result, item->data, item->length);
	number *= 2;
	memcpy(result, &number, sizeof(number));
	err = h_worker_done(w, item, result, item->length, ht_patience_ns());
	free(result);
	return err;
}

/* What a worker process does with each item: 0: it is done; else what its process ends with. */
typedef int what(struct h_worker *w, struct h_work_item *item);

static pid_t start_worker(FIXTURE_DATA(work) *self, struct h_worker_attr attr, what *doing)
{
	struct h_work_item item;
	struct h_worker *w;
	pid_t pid = ht_fork();
	int ret;

	if (pid)
		return pid;
	if (join(self, attr, &w))
		_exit(10);
	while (!(ret = h_worker_take(w, &item, ht_patience_ns()))) {
		ret = doing(w, &item);
		if (ret)
			_exit(ret);
	}
	h_worker_close(w, HT_MS);
	_exit(ret == -ENODATA ? 0 : ret == -ECONNRESET ? 12 : 13);
}

static int good(struct h_worker *w, struct h_work_item *item)
{
	return do_it(w, item) ? 14 : 0;
}

/* Of each process' own course: killed with the item, before it, or behind it. */
static int mortal(struct h_worker *w, struct h_work_item *item)
{
	static uint64_t state;

	if (!state)
		state = (uint64_t)getpid() * 7919;
	if (ht_random(&state) % 16 == 0)
		raise(SIGKILL);
	if (do_it(w, item))
		return 14;
	if (ht_random(&state) % 16 == 0)
		raise(SIGKILL);
	return 0;
}

/* The third item kills whoever has it. */
static int third_kills(struct h_worker *w, struct h_work_item *item)
{
	if (item->id == 3)
		raise(SIGKILL);
	return good(w, item);
}

static int fails_at_first(struct h_worker *w, struct h_work_item *item)
{
	if (item->delivery < 3)
		return h_worker_fail(w, item, ht_patience_ns()) ? 15 : 0;
	return good(w, item);
}

static int stops(struct h_worker *w, struct h_work_item *item)
{
	if (item->delivery == 1)
		raise(SIGSTOP);
	return good(w, item);
}

static int each_once(FIXTURE_DATA(work) *self, int first, int last)
{
	int i;

	for (i = first; i <= last; i++)
		if (self->done[i] != 1)
			return i;
	return 0;
}

/* Until there are so many workers. */
static bool has_workers(FIXTURE_DATA(work) *self, int n)
{
	int64_t end = ht_now_ns() + ht_patience_ns();

	while (self->welcome - self->ended != n && ht_now_ns() < end) {
		h_work_dispatch(self->q);
		ht_sleep_ns(HT_MS);
	}
	return self->welcome - self->ended == n;
}

FIXTURE_SETUP(work)
{
	snprintf(self->path, sizeof(self->path), "/tmp/hamlyn-work.%d", getpid());
}

FIXTURE_TEARDOWN(work)
{
	h_work_close(self->q, H_NOWAIT);
	EXPECT_EQ(self->welcome, self->ended);
	EXPECT_EQ(0, self->wrong);
	EXPECT_NE(0, access(self->path, F_OK));
}

/* ---- what is done ---- */

TEST_F(work, each_item_is_done_once)
{
	struct h_work_counters c;
	pid_t pid[3];
	int i;

	ASSERT_EQ(0, create(self, (struct h_work_attr) {}));
	for (i = 0; i < 3; i++)
		pid[i] = start_worker(self, (struct h_worker_attr) { .at_once = i }, good);
	for (i = 1; i <= ITEMS; i++)
		ASSERT_EQ(0, add(self, i, i % 50 ? i : LONG, ht_patience_ns()));
	ASSERT_EQ(0, h_work_run(self->q, ht_patience_ns()));
	EXPECT_EQ(0, each_once(self, 1, ITEMS));
	EXPECT_EQ(0, h_work_stats(self->q, &c));
	EXPECT_EQ(ITEMS, c.added);
	EXPECT_EQ(ITEMS, c.done);
	EXPECT_EQ(ITEMS, c.deliveries);
	EXPECT_EQ(0, c.waiting + c.out + c.failed);
	EXPECT_EQ(0, h_work_run(self->q, H_NOWAIT));
	/* They may only be about to join. */
	ASSERT_TRUE(has_workers(self, 3));
	EXPECT_EQ(0, h_work_close(self->q, ht_patience_ns()));
	self->q = NULL;
	for (i = 0; i < 3; i++)
		EXPECT_EQ(0, ht_reap(pid[i]));
}

TEST_F(work, those_that_die_leave_no_item_undone)
{
	struct h_work_counters c;
	pid_t pids[3] = { 0 };
	int i, ret;

	ASSERT_EQ(0, create(self, (struct h_work_attr) { .deliveries = 1000 }));
	for (i = 1; i <= ITEMS; i++)
		ASSERT_EQ(0, add(self, i, i, ht_patience_ns()));
	do {
		for (i = 0; i < 3; i++) {
			if (pids[i] && waitpid(pids[i], NULL, WNOHANG) != pids[i])
				continue;
			pids[i] = start_worker(self, (struct h_worker_attr) { .at_once = 3 },
					       mortal);
			ASSERT_LT(0, pids[i]);
		}
		ret = h_work_run(self->q, 2 * HT_MS);
	} while (ret == -ETIMEDOUT);
	ASSERT_EQ(0, ret);
	EXPECT_EQ(0, each_once(self, 1, ITEMS));
	EXPECT_EQ(0, h_work_stats(self->q, &c));
	EXPECT_EQ(0, c.failed);
	EXPECT_LT(ITEMS, c.deliveries);
	h_work_close(self->q, H_NOWAIT);
	self->q = NULL;
	/* One that was about to join would wait a minute for another queue of that name. */
	for (i = 0; i < 3; i++)
		kill(pids[i], SIGKILL);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

TEST_F(work, one_that_kills_workers_is_given_up)
{
	struct h_work_counters c;
	int i;

	ASSERT_EQ(0, create(self, (struct h_work_attr) { .deliveries = 3 }));
	for (i = 0; i < 5; i++)
		start_worker(self, (struct h_worker_attr) {}, third_kills);
	ASSERT_TRUE(has_workers(self, 5));
	for (i = 1; i <= 20; i++)
		ASSERT_EQ(0, add(self, i, 10, ht_patience_ns()));
	ASSERT_EQ(0, h_work_run(self->q, ht_patience_ns()));
	EXPECT_EQ(0, each_once(self, 1, 2));
	EXPECT_EQ(0, each_once(self, 4, 20));
	EXPECT_EQ(0, self->done[3]);
	EXPECT_EQ(1, self->failed[3]);
	EXPECT_EQ(3, self->ended);
	EXPECT_EQ(0, h_work_stats(self->q, &c));
	EXPECT_EQ(1, c.failed);
	EXPECT_EQ(19 + 3, c.deliveries);
	EXPECT_EQ(2, c.workers);
	h_work_close(self->q, H_NOWAIT);
	self->q = NULL;
	while (waitpid(-1, NULL, 0) > 0)
		;
}

TEST_F(work, one_that_is_given_back_is_delivered_again)
{
	struct h_work_counters c;
	int i;

	ASSERT_EQ(0, create(self, (struct h_work_attr) {}));
	start_worker(self, (struct h_worker_attr) {}, fails_at_first);
	for (i = 1; i <= 10; i++)
		ASSERT_EQ(0, add(self, i, 10, ht_patience_ns()));
	ASSERT_EQ(0, h_work_run(self->q, ht_patience_ns()));
	EXPECT_EQ(0, each_once(self, 1, 10));
	EXPECT_EQ(0, h_work_stats(self->q, &c));
	EXPECT_EQ(30, c.deliveries);
	h_work_close(self->q, ht_patience_ns());
	self->q = NULL;
	while (waitpid(-1, NULL, 0) > 0)
		;
}

TEST_F(work, one_that_stops_keeps_its_item_for_so_long)
{
	pid_t pid[2];
	int i;

	ASSERT_EQ(0, create(self, (struct h_work_attr) { .patience_ns = SHORT_PATIENCE }));
	pid[0] = start_worker(self, (struct h_worker_attr) {}, stops);
	ASSERT_TRUE(has_workers(self, 1));
	ASSERT_EQ(0, add(self, 1, 10, H_NOWAIT));
	EXPECT_EQ(-ETIMEDOUT, h_work_run(self->q, HT_MS));
	pid[1] = start_worker(self, (struct h_worker_attr) {}, stops);
	ASSERT_EQ(0, h_work_run(self->q, ht_patience_ns()));
	EXPECT_EQ(1, self->done[1]);
	EXPECT_EQ(1, self->ended);
	EXPECT_EQ(-ETIMEDOUT, self->reason);
	/* It is told, and what it says of the item is not heard. */
	ASSERT_EQ(0, kill(pid[0], SIGCONT));
	i = ht_reap(pid[0]);
	EXPECT_TRUE(i == 12 || i == 14) TH_LOG("%d", i);
	EXPECT_EQ(1, self->done[1]);
	kill(pid[1], SIGKILL);
	waitpid(pid[1], NULL, 0);
}

/* ---- limits ---- */

static void *run(void *arg)
{
	FIXTURE_DATA(work) *self = arg;

	return h_work_run(self->q, ht_patience_ns()) ? self : NULL;
}

struct joiner {
	FIXTURE_DATA(work) *self;
	struct h_worker_attr attr;
	struct h_worker *w;
	int result;
	int joined;		/* atomic */
};

static void *join_it(void *arg)
{
	struct joiner *j = arg;

	j->result = join(j->self, j->attr, &j->w);
	__atomic_store_n(&j->joined, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* A worker in this process, where the master is too. */
static int joins(FIXTURE_DATA(work) *self, struct h_worker_attr attr, struct h_worker **w)
{
	struct joiner j = { .self = self, .attr = attr };
	pthread_t t;

	if (pthread_create(&t, NULL, join_it, &j))
		return -EAGAIN;
	while (!__atomic_load_n(&j.joined, __ATOMIC_SEQ_CST)) {
		h_work_dispatch(self->q);
		ht_sleep_ns(HT_MS / 10);
	}
	pthread_join(t, NULL);
	*w = j.w;
	return j.result;
}

TEST_F(work, no_more_at_once_than_a_worker_wants)
{
	struct h_work_item item[3], copy;
	struct h_work_counters c;
	struct ht_poll poll;
	struct h_worker *w;
	int i;

	ASSERT_EQ(0, create(self, (struct h_work_attr) {}));
	ASSERT_EQ(0, joins(self, (struct h_worker_attr) { .at_once = 3 }, &w));
	for (i = 1; i <= 6; i++)
		ASSERT_EQ(0, add(self, i, 10, H_NOWAIT));
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, h_worker_take(w, &item[i], ht_patience_ns()));
		EXPECT_EQ(i + 1, item[i].id);
		EXPECT_EQ(1, item[i].delivery);
	}
	EXPECT_EQ(0, h_work_dispatch(self->q));
	EXPECT_EQ(-EAGAIN, h_worker_take(w, &copy, H_NOWAIT));
	/* In any order; and what it leaves undone is for others, in order. */
	EXPECT_EQ(0, do_it(w, &item[2]));
	EXPECT_EQ(NULL, item[2].data);
	EXPECT_EQ(-EINVAL, h_worker_done(w, &item[2], NULL, 0, H_NOWAIT));
	EXPECT_EQ(0, do_it(w, &item[0]));
	/* Until both are known to be done, and two more are handed out. */
	ht_poll_begin(&poll);
	do {
		ASSERT_EQ(-EAGAIN, h_work_run(self->q, H_NOWAIT));
		ASSERT_EQ(0, h_work_stats(self->q, &c));
	} while (c.deliveries < 5 && ht_poll_more(&poll));
	EXPECT_EQ(5, c.deliveries);
	h_worker_close(w, H_NOWAIT);
	ASSERT_TRUE(has_workers(self, 0));
	EXPECT_EQ(0, each_once(self, 1, 1));
	EXPECT_EQ(0, each_once(self, 3, 3));
	ASSERT_EQ(0, joins(self, (struct h_worker_attr) { .at_once = 1 }, &w));
	for (i = 2; i <= 6; i++) {
		if (i == 3)
			continue;
		do {
			h_work_dispatch(self->q);
		} while (h_worker_take(w, &item[0], HT_MS) == -ETIMEDOUT);
		EXPECT_EQ(i, item[0].id);
		/* The second was taken, the fourth and fifth were on their way. */
		EXPECT_EQ(i < 6 ? 2 : 1, item[0].delivery);
		EXPECT_EQ(0, do_it(w, &item[0]));
	}
	EXPECT_EQ(0, h_work_run(self->q, ht_patience_ns()));
	EXPECT_EQ(0, each_once(self, 1, 6));
	h_worker_close(w, H_NOWAIT);
	ASSERT_TRUE(has_workers(self, 0));
}

TEST_F(work, a_full_queue_takes_no_more)
{
	ASSERT_EQ(0, create(self, (struct h_work_attr) {
		.items = 2, .bytes = 1000, .max_message = 2008,
	}));
	EXPECT_EQ(-EMSGSIZE, add(self, 1, 2001, H_NOWAIT));
	/* By itself it may be longer than all together. */
	ASSERT_EQ(0, add(self, 1, 2000, H_NOWAIT));
	EXPECT_EQ(-EAGAIN, add(self, 2, 0, H_NOWAIT));
	EXPECT_EQ(-ETIMEDOUT, add(self, 2, 0, HT_MS));
	EXPECT_EQ(-ETIMEDOUT, h_work_run(self->q, HT_MS));
	start_worker(self, (struct h_worker_attr) {}, good);
	ASSERT_EQ(0, add(self, 2, 0, ht_patience_ns()));
	ASSERT_EQ(0, add(self, 3, 0, ht_patience_ns()));
	ASSERT_EQ(0, add(self, 4, 0, ht_patience_ns()));
	ASSERT_EQ(0, h_work_run(self->q, ht_patience_ns()));
	EXPECT_EQ(0, each_once(self, 1, 4));
	h_work_close(self->q, ht_patience_ns());
	self->q = NULL;
	while (waitpid(-1, NULL, 0) > 0)
		;
}

TEST_F(work, what_is_done_adds_more)
{
	ASSERT_EQ(0, create(self, (struct h_work_attr) {}));
	start_worker(self, (struct h_worker_attr) {}, good);
	self->add_more = 4;
	ASSERT_EQ(0, add(self, 1, 0, H_NOWAIT));
	ASSERT_EQ(0, h_work_run(self->q, ht_patience_ns()));
	EXPECT_EQ(0, self->add_more);
	EXPECT_EQ(0, each_once(self, 1, 5));
	EXPECT_EQ(4, self->busy);
	h_work_close(self->q, ht_patience_ns());
	self->q = NULL;
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* The item of one that is ended finds that the others have gone just now. */
TEST_F(work, workers_that_are_all_gone_make_no_item_fail)
{
	struct h_work_counters c;
	struct h_work_item item;
	struct h_worker *first;
	int i;

	ASSERT_EQ(0, create(self, (struct h_work_attr) { .patience_ns = SHORT_PATIENCE }));
	ASSERT_EQ(0, joins(self, (struct h_worker_attr) {}, &first));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, joins(self, (struct h_worker_attr) {}, &self->leave[i]));
	ASSERT_EQ(0, add(self, 1, 10, H_NOWAIT));
	ASSERT_EQ(0, h_worker_take(first, &item, ht_patience_ns()));
	ht_sleep_ns(SHORT_PATIENCE);
	ASSERT_EQ(0, h_work_dispatch(self->q));
	ASSERT_TRUE(has_workers(self, 0));
	EXPECT_EQ(0, self->failed[1]);
	ASSERT_EQ(0, h_work_stats(self->q, &c));
	EXPECT_EQ(1, c.waiting);
	h_worker_close(first, H_NOWAIT);
}

/* What it dials with has a queue for them. */
TEST_F(work, a_worker_with_many_buffers)
{
	const struct h_worker_attr attr = {
		.buffers = 1024,
		.buffer_size = 128,
		.max_buffer_size = 256,
	};
	struct h_worker *w;

	ASSERT_EQ(0, create(self, (struct h_work_attr) {}));
	ASSERT_EQ(0, joins(self, attr, &w));
	h_worker_close(w, H_NOWAIT);
	ASSERT_TRUE(has_workers(self, 0));
}

/* Also when an item that fails was the last one that waited: nothing else hands it out. */
TEST_F(work, what_is_added_when_one_fails_is_handed_out)
{
	struct h_work_item item;
	struct h_worker *w;

	ASSERT_EQ(0, create(self, (struct h_work_attr) { .items = 1 }));
	ASSERT_EQ(0, joins(self, (struct h_worker_attr) { .max_message = 100 }, &w));
	self->add_more = 1;
	ASSERT_EQ(0, add(self, 1, 93, H_NOWAIT));
	EXPECT_EQ(1, self->failed[1]);
	ASSERT_EQ(0, h_worker_take(w, &item, ht_patience_ns()));
	EXPECT_EQ(2, item.id);
	ASSERT_EQ(0, do_it(w, &item));
	ASSERT_EQ(0, h_work_run(self->q, ht_patience_ns()));
	EXPECT_EQ(1, self->done[2]);
	h_worker_close(w, H_NOWAIT);
	ASSERT_TRUE(has_workers(self, 0));
}

TEST_F(work, longer_than_a_worker_takes)
{
	struct h_worker *small;
	int i;

	ASSERT_EQ(0, create(self, (struct h_work_attr) {}));
	ASSERT_EQ(0, joins(self, (struct h_worker_attr) { .max_message = 100 }, &small));
	ASSERT_EQ(0, add(self, 1, 93, H_NOWAIT));
	ASSERT_EQ(0, h_work_dispatch(self->q));
	EXPECT_EQ(1, self->failed[1]);
	start_worker(self, (struct h_worker_attr) {}, good);
	ASSERT_TRUE(has_workers(self, 2));
	for (i = 2; i < 6; i++)
		ASSERT_EQ(0, add(self, i, 93, H_NOWAIT));
	ASSERT_EQ(0, h_work_run(self->q, ht_patience_ns()));
	EXPECT_EQ(0, each_once(self, 2, 5));
	h_worker_close(small, H_NOWAIT);
	h_work_close(self->q, ht_patience_ns());
	self->q = NULL;
	while (waitpid(-1, NULL, 0) > 0)
		;
}

TEST_F(work, an_item_is_done_once_by_the_worker_that_has_it)
{
	const struct h_worker_attr two = { .at_once = 2 };
	const uint64_t result = 2 * 2;
	struct h_work_item item, copy, more;
	struct h_worker *w, *other;

	ASSERT_EQ(0, create(self, (struct h_work_attr) {}));
	ASSERT_EQ(0, joins(self, two, &w));
	ASSERT_EQ(0, add(self, 1, 10, H_NOWAIT));
	ASSERT_EQ(0, add(self, 2, LONG, H_NOWAIT));
	ASSERT_EQ(0, h_worker_take(w, &item, ht_patience_ns()));
	ASSERT_EQ(0, joins(self, two, &other));
	EXPECT_EQ(-EINVAL, h_worker_done(other, &item, NULL, 0, H_NOWAIT));
	copy = item;
	ASSERT_EQ(0, do_it(w, &item));
	EXPECT_EQ(-EALREADY, h_worker_done(w, &copy, NULL, 0, H_NOWAIT));
	EXPECT_EQ(-EALREADY, h_worker_fail(w, &copy, H_NOWAIT));
	/* One that takes more than a buffer, in whatever turn its parts come. */
	while (h_worker_take(w, &more, HT_MS) == -ETIMEDOUT)
		ASSERT_EQ(0, h_work_dispatch(self->q));
	copy = more;
	ASSERT_EQ(0, h_worker_done(w, &more, &result, sizeof(result), H_NOWAIT));
	EXPECT_EQ(-EALREADY, h_worker_done(w, &copy, NULL, 0, H_NOWAIT));
	EXPECT_EQ(0, h_work_run(self->q, ht_patience_ns()));
	EXPECT_EQ(0, each_once(self, 1, 2));
	EXPECT_TRUE(has_workers(self, 2));
	h_worker_close(w, H_NOWAIT);
	h_worker_close(other, H_NOWAIT);
}

/* ---- bad ones ---- */

TEST_F(work, one_that_says_done_of_what_it_has_not)
{
	struct h_work_item item, other;
	struct h_worker *w;

	ASSERT_EQ(0, create(self, (struct h_work_attr) {}));
	ASSERT_EQ(0, joins(self, (struct h_worker_attr) {}, &w));
	ASSERT_EQ(0, add(self, 1, 10, H_NOWAIT));
	ASSERT_EQ(0, h_worker_take(w, &item, ht_patience_ns()));
	other = item;
	other.id = 2;
	EXPECT_EQ(0, h_worker_done(w, &other, NULL, 0, ht_patience_ns()));
	ASSERT_TRUE(has_workers(self, 0));
	EXPECT_EQ(-EPROTO, self->reason);
	EXPECT_EQ(0, self->done[1]);
	h_worker_close(w, H_NOWAIT);
	start_worker(self, (struct h_worker_attr) {}, good);
	ASSERT_EQ(0, h_work_run(self->q, ht_patience_ns()));
	EXPECT_EQ(1, self->done[1]);
	h_work_close(self->q, ht_patience_ns());
	self->q = NULL;
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static bool explained(const char *words)
{
	char text[HAMLYN_EXPLAIN_BYTES];

	return !h_explain(NULL, text, sizeof(text)) && strstr(text, words);
}

static int not_welcome(struct h_worker *w, struct h_work_item *item)
{
	(void)w;
	(void)item;
	return 1;
}

TEST_F(work, one_that_is_not_welcome)
{
	pid_t pid;

	self->refuse = true;
	ASSERT_EQ(0, create(self, (struct h_work_attr) {}));
	pid = start_worker(self, (struct h_worker_attr) {}, not_welcome);
	while (!waitpid(pid, NULL, WNOHANG))
		ASSERT_EQ(0, h_work_dispatch(self->q));
	EXPECT_EQ(0, self->welcome);
}

/* ---- ends ---- */

TEST_F(work, the_master_is_killed)
{
	struct h_work_item item;
	struct h_worker *w;
	int ret;
	pid_t pid = ht_fork();

	if (!pid) {
		int failed = create(self, (struct h_work_attr) {}) || add(self, 1, 10, H_NOWAIT);

		h_work_run(self->q, H_FOREVER);
		_exit(failed);
	}
	do {
		ret = join(self, (struct h_worker_attr) {}, &w);
	} while (ret == -ENOENT || ret == -ECONNREFUSED);
	ASSERT_EQ(0, ret);
	ASSERT_EQ(0, h_worker_take(w, &item, ht_patience_ns()));
	kill(pid, SIGKILL);
	ASSERT_EQ(pid, waitpid(pid, NULL, 0));
	/* Until it is known that nobody hears it. */
	while (!(ret = h_worker_done(w, &item, NULL, 0, ht_patience_ns())))
		item.message.held = 1;
	EXPECT_TRUE(ret == -EPIPE || ret == -EINVAL || ret == -EALREADY) TH_LOG("%d", ret);
	EXPECT_EQ(-ECONNRESET, h_worker_take(w, &item, ht_patience_ns()));
	h_worker_close(w, H_NOWAIT);
	EXPECT_EQ(0, unlink(self->path));
}

/* Sleeps for ever if a descriptor does not tell. */
TEST_F(work, in_event_loops)
{
	struct pollfd p[2] = { { .events = POLLIN }, { .events = POLLIN } };
	struct h_work_item item;
	struct h_worker *w;
	int i, ret;

	ASSERT_EQ(0, create(self, (struct h_work_attr) {}));
	ASSERT_EQ(0, joins(self, (struct h_worker_attr) {}, &w));
	p[0].fd = h_work_fd(self->q);
	p[1].fd = h_worker_fd(w);
	for (i = 1; i <= 50; i++)
		ASSERT_EQ(0, add(self, i, 10, H_NOWAIT));
	while (!self->done[50]) {
		ASSERT_LT(0, poll(p, 2, (int)(ht_patience_ns() / HT_MS)));
		if (p[0].revents)
			ASSERT_EQ(0, h_work_dispatch(self->q));
		while (!(ret = h_worker_take(w, &item, H_NOWAIT)))
			ASSERT_EQ(0, do_it(w, &item));
		ASSERT_EQ(-EAGAIN, ret);
	}
	EXPECT_EQ(0, each_once(self, 1, 50));
	h_worker_close(w, H_NOWAIT);
	ASSERT_TRUE(has_workers(self, 0));
}

TEST_F(work, any_thread_adds_and_runs)
{
	pthread_t t[2];
	void *failed;
	int i;

	ASSERT_EQ(0, create(self, (struct h_work_attr) { .items = 10 }));
	for (i = 0; i < 2; i++)
		start_worker(self, (struct h_worker_attr) { .at_once = 2 }, good);
	ASSERT_EQ(0, add(self, 1, 10, H_NOWAIT));
	for (i = 0; i < 2; i++)
		ASSERT_EQ(0, pthread_create(&t[i], NULL, run, self));
	for (i = 2; i <= ITEMS; i++)
		ASSERT_EQ(0, add(self, i, 10, ht_patience_ns()));
	for (i = 0; i < 2; i++) {
		pthread_join(t[i], &failed);
		EXPECT_EQ(NULL, failed);
	}
	EXPECT_EQ(0, h_work_run(self->q, ht_patience_ns()));
	EXPECT_EQ(0, each_once(self, 1, ITEMS));
	h_work_close(self->q, ht_patience_ns());
	self->q = NULL;
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static int cannot_be_used(FIXTURE_DATA(work) *self, struct h_worker *w)
{
	struct h_work_counters c;
	struct h_work_item item;

	return h_work_add(self->q, "", 0, NULL, H_NOWAIT) != -ENODEV ||
	       h_work_run(self->q, H_NOWAIT) != -ENODEV ||
	       h_work_dispatch(self->q) != -ENODEV || h_work_fd(self->q) != -ENODEV ||
	       h_work_stats(self->q, &c) != -ENODEV ||
	       h_worker_take(w, &item, H_NOWAIT) != -ENODEV || h_worker_fd(w) != -ENODEV ||
	       h_worker_done(w, &item, NULL, 0, H_NOWAIT) != -ENODEV;
}

TEST_F(work, children_leave_it_alone)
{
	struct h_work_item item;
	struct h_worker *w;
	pid_t pid;

	ASSERT_EQ(0, create(self, (struct h_work_attr) {}));
	ASSERT_EQ(0, joins(self, (struct h_worker_attr) {}, &w));
	ASSERT_EQ(0, add(self, 1, 10, H_NOWAIT));
	pid = ht_fork();
	if (!pid)
		_exit(cannot_be_used(self, w) || h_worker_close(w, H_FOREVER) ||
		      h_work_close(self->q, H_FOREVER));
	EXPECT_EQ(0, ht_reap(pid));
	ASSERT_EQ(0, h_worker_take(w, &item, ht_patience_ns()));
	ASSERT_EQ(0, do_it(w, &item));
	EXPECT_EQ(0, h_work_run(self->q, ht_patience_ns()));
	EXPECT_EQ(1, self->done[1]);
	h_worker_close(w, H_NOWAIT);
	ASSERT_TRUE(has_workers(self, 0));
}

TEST_F(work, what_is_wrong_is_said)
{
	struct h_work_attr attr = { .device = ht_device(), .workers = 65537 };
	struct h_worker_attr worker = { .device = ht_device(), .at_once = 1025 };
	struct h_work_queue *q;
	struct h_worker *w;

	EXPECT_EQ(-EINVAL, h_work_create(self->path, &attr, &q));
	EXPECT_EQ(NULL, q);
	EXPECT_TRUE(explained("65536"));
	attr.workers = 0;
	attr.patience_ns = -1;
	EXPECT_EQ(-EINVAL, h_work_create(self->path, &attr, &q));
	attr.patience_ns = 0;
	attr.reserved = 1;
	EXPECT_EQ(-EINVAL, h_work_create(self->path, &attr, &q));
	EXPECT_EQ(-EINVAL, h_worker_create(self->path, &worker, &w, H_NOWAIT));
	EXPECT_EQ(NULL, w);
	EXPECT_TRUE(explained("1024"));
	worker.at_once = 1;
	EXPECT_EQ(-ENOENT, h_worker_create(self->path, &worker, &w, H_NOWAIT));
	EXPECT_EQ(-EINVAL, h_worker_create(NULL, &worker, &w, H_NOWAIT));
	EXPECT_TRUE(explained("NULL"));
	EXPECT_EQ(0, h_work_close(NULL, H_FOREVER));
	EXPECT_EQ(0, h_worker_close(NULL, H_FOREVER));
}

TEST_HARNESS_MAIN
