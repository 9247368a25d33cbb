// SPDX-License-Identifier: GPL-2.0-only
/*
 * What programs may rely on (Documentation/abi.rst): the version, the log, structures that
 * grow, and that results and time-outs mean the same in all calls.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <hamlyn/barrier.h>
#include <hamlyn/channel.h>
#include <hamlyn/datagram.h>
#include <hamlyn/gather.h>
#include <hamlyn/group.h>
#include <hamlyn/publish.h>
#include <hamlyn/server.h>
#include <hamlyn/work.h>
#include <hamlyn/tagged.h>

/* ---- the version ---- */

TEST(version_is_that_of_the_headers)
{
	EXPECT_EQ((uint32_t)H_VERSION, h_version());
}

/* ---- the log ---- */

struct lines {
	int count;		/* atomic */
	int about;		/* atomic: of those, how many have .words in them */
	const char *words;
	int level;
	char last[512];
};

static void take_line(int level, const char *text, void *arg)
{
	struct lines *l = arg;

	l->level = level;
	snprintf(l->last, sizeof(l->last), "%s", text);
	if (l->words && strstr(text, l->words))
		__atomic_fetch_add(&l->about, 1, __ATOMIC_RELEASE);
	__atomic_fetch_add(&l->count, 1, __ATOMIC_RELEASE);
}

FIXTURE(log) {
	struct h_dev *dev;
	struct h_manager *m;
	struct lines lines;
};

FIXTURE_SETUP(log)
{
	ASSERT_EQ(0, ht_open(&self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->m));
	h_log_set(H_LOG_INFO, take_line, &self->lines);
}

FIXTURE_TEARDOWN(log)
{
	h_log_set(H_LOG_ERROR, NULL, NULL);
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

TEST_F(log, has_why_a_call_was_refused)
{
	char text[HAMLYN_EXPLAIN_BYTES];
	int on_stack;

	ASSERT_EQ(-EINVAL, h_manager_free(self->m, &on_stack));
	EXPECT_EQ(1, self->lines.count);
	EXPECT_EQ(H_LOG_INFO, self->lines.level);
	ASSERT_EQ(0, h_explain(self->dev, text, sizeof(text)));
	EXPECT_NE(0, (int)strlen(text));
	EXPECT_NE(NULL, strstr(self->lines.last, text));
	EXPECT_EQ(NULL, strchr(self->lines.last, '\n'));
}

TEST_F(log, has_why_there_is_no_device)
{
	struct h_dev *dev;

	ASSERT_EQ(-EINVAL, h_open("no such form", &dev));
	EXPECT_EQ(1, self->lines.count);
	EXPECT_NE(NULL, strstr(self->lines.last, "no such form"));
}

TEST_F(log, has_no_more_than_was_asked_for)
{
	int on_stack;

	h_log_set(H_LOG_WARNING, take_line, &self->lines);
	ASSERT_EQ(-EINVAL, h_manager_free(self->m, &on_stack));
	EXPECT_EQ(0, self->lines.count);
	h_log_set(H_LOG_INFO, NULL, &self->lines);
	ASSERT_EQ(-EINVAL, h_manager_free(self->m, &on_stack));
	EXPECT_EQ(0, self->lines.count);
}

static void *connect_for_streams(void *arg)
{
	const char *path = arg;
	struct h_stream_pair pair;
	struct h_manager *m;
	struct h_dev *dev;
	intptr_t ret;

	if (ht_open(&dev) || h_manager_create(dev, NULL, &m))
		return NULL;
	ret = h_connect(m, path, NULL, &pair, ht_patience_ns());
	h_manager_destroy(m);
	h_close(dev);
	return (void *)ret;
}

TEST_F(log, has_which_clients_were_sent_away)
{
	struct h_listener *listener;
	struct h_channel *ch;
	pthread_t thread;
	void *result;
	char words[32];
	char path[64];

	snprintf(path, sizeof(path), "@hamlyn-abi.%d", getpid());
	snprintf(words, sizeof(words), "client %d ", getpid());
	self->lines.words = words;
	ASSERT_EQ(0, h_listener_create(path, NULL, &listener));
	ASSERT_EQ(0, pthread_create(&thread, NULL, connect_for_streams, path));
	while (!__atomic_load_n(&self->lines.about, __ATOMIC_ACQUIRE))
		ASSERT_EQ(-ETIMEDOUT, h_channel_accept(listener, self->m, NULL, &ch, HT_MS));
	ASSERT_EQ(0, pthread_join(thread, &result));
	EXPECT_EQ(-EPROTOTYPE, (intptr_t)result);
	h_listener_destroy(listener);
}

/* One sink is set while another thread reads it: each line gets the argument of its hook. */
struct turn {
	uint64_t lines;
	uint64_t wrong;
	int which;
};

static void line_of_first(int level, const char *text, void *arg)
{
	struct turn *t = arg;

	(void)level;
	(void)text;
	__atomic_fetch_add(&t->lines, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&t->wrong, t->which != 1, __ATOMIC_RELAXED);
}

static void line_of_second(int level, const char *text, void *arg)
{
	struct turn *t = arg;

	(void)level;
	(void)text;
	__atomic_fetch_add(&t->lines, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&t->wrong, t->which != 2, __ATOMIC_RELAXED);
}

static void *fail_often(void *arg)
{
	FIXTURE_DATA(log) *self = arg;
	int i, on_stack;

	for (i = 0; i < 20000; i++)
		h_manager_free(self->m, &on_stack);
	return NULL;
}

TEST_F(log, a_line_goes_to_one_hook_with_its_own_argument)
{
	struct turn turns[2] = { { .which = 1 }, { .which = 2 } };
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, fail_often, self));
	while (pthread_tryjoin_np(thread, NULL)) {
		h_log_set(H_LOG_INFO, line_of_first, &turns[0]);
		h_log_set(H_LOG_INFO, line_of_second, &turns[1]);
	}
	EXPECT_EQ(0, turns[0].wrong + turns[1].wrong);
	h_log_set(H_LOG_INFO, line_of_first, &turns[0]);
	turns[0].lines = 0;
	fail_often(self);
	EXPECT_EQ(20000, turns[0].lines);
}

/* ---- NULL ---- */

/* selftests/static/api.py: none is left out. */
TEST(what_ends_an_object_takes_NULL)
{
	struct h_manager *m;
	struct h_dev *dev;

	h_close(NULL);
	EXPECT_EQ(0, h_area_remove(NULL));
	EXPECT_EQ(0, h_nq_destroy(NULL));
	EXPECT_EQ(0, h_slot_destroy(NULL));
	EXPECT_EQ(0, h_terminus_destroy(NULL));
	EXPECT_EQ(0, h_unwatch(NULL));
	EXPECT_EQ(0, h_manager_destroy(NULL));
	EXPECT_EQ(0, h_receiver_exit(NULL));
	EXPECT_EQ(0, h_stream_receiver_destroy(NULL));
	EXPECT_EQ(0, h_stream_sender_close(NULL, H_FOREVER));
	EXPECT_EQ(0, h_channel_close(NULL, H_FOREVER));
	EXPECT_EQ(0, h_server_close(NULL, H_FOREVER));
	EXPECT_EQ(0, h_publisher_close(NULL, H_FOREVER));
	EXPECT_EQ(0, h_subscriber_close(NULL));
	EXPECT_EQ(0, h_work_close(NULL, H_FOREVER));
	EXPECT_EQ(0, h_worker_close(NULL, H_FOREVER));
	h_listener_destroy(NULL);
	EXPECT_EQ(0, h_datagram_receiver_destroy(NULL));
	EXPECT_EQ(0, h_tagged_receiver_destroy(NULL));
	EXPECT_EQ(0, h_group_destroy(NULL));
	EXPECT_EQ(0, h_gather_destroy(NULL));
	EXPECT_EQ(0, h_gather_leave(NULL));
	EXPECT_EQ(0, h_barrier_destroy(NULL));
	ASSERT_EQ(0, ht_open(&dev));
	ASSERT_EQ(0, h_manager_create(dev, NULL, &m));
	EXPECT_EQ(0, h_manager_free(m, NULL));
	EXPECT_EQ(0, h_manager_destroy(m));
	h_close(dev);
}

/* ---- time-outs ---- */

FIXTURE(times) {
	struct h_dev *dev;
	struct h_manager *m;
	struct h_nq *nq;
	struct h_stream_receiver *stream;
	struct h_channel *a, *b;
	struct h_listener *listener;
	struct h_datagram_receiver *datagrams;
	struct h_tagged_receiver *tags;
	struct h_group *group;
	struct h_gather *gather;
	struct h_barrier *barrier;
	uint32_t request;
	timer_t timer;
	char path[64], nobody[64];
};

static void interrupt(int number)
{
	(void)number;
}

/* Again and again: the first ones may come before the call sleeps. */
static int begin_to_interrupt(timer_t *timer)
{
	const struct itimerspec often = { { 0, 20 * HT_MS }, { 0, 20 * HT_MS } };
	struct sigevent how = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	const struct sigaction action = { .sa_handler = interrupt };

	return sigaction(SIGUSR1, &action, NULL) || timer_create(CLOCK_MONOTONIC, &how, timer) ||
	       timer_settime(*timer, 0, &often, NULL);
}

FIXTURE_SETUP(times)
{
	snprintf(self->path, sizeof(self->path), "@hamlyn-times.%d", getpid());
	snprintf(self->nobody, sizeof(self->nobody), "@hamlyn-nobody.%d", getpid());
	ASSERT_EQ(0, ht_open(&self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->m));
	ASSERT_EQ(0, h_nq_create(self->dev, 16, &self->nq));
	ASSERT_EQ(0, h_stream_receiver_create(self->m, NULL, &self->stream));
	ASSERT_EQ(0, h_channel_pair(self->m, self->m, NULL, &self->a, &self->b));
	ASSERT_EQ(0, h_channel_request_send(self->b, NULL, 0, &self->request, H_FOREVER));
	ASSERT_EQ(0, h_listener_create(self->path, NULL, &self->listener));
	ASSERT_EQ(0, h_datagram_receiver_create(self->m, NULL, &self->datagrams));
	ASSERT_EQ(0, h_tagged_receiver_create(self->m, NULL, &self->tags));
	ASSERT_EQ(0, h_group_create(self->m, 64, NULL, &self->group));
	ASSERT_EQ(0, h_gather_create(self->m, 1, NULL, 64, &self->gather));
	ASSERT_EQ(0, h_barrier_create(self->m, 2, &self->barrier));
}

FIXTURE_TEARDOWN(times)
{
	EXPECT_EQ(0, h_barrier_destroy(self->barrier));
	EXPECT_EQ(0, h_gather_destroy(self->gather));
	EXPECT_EQ(0, h_group_destroy(self->group));
	EXPECT_EQ(0, h_tagged_receiver_destroy(self->tags));
	EXPECT_EQ(0, h_datagram_receiver_destroy(self->datagrams));
	h_listener_destroy(self->listener);
	h_channel_close(self->a, H_NOWAIT);
	h_channel_close(self->b, H_NOWAIT);
	EXPECT_EQ(0, h_stream_receiver_destroy(self->stream));
	EXPECT_EQ(0, h_nq_destroy(self->nq));
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

#define WAITER(name, expression) \
	static int64_t wait_##name(FIXTURE_DATA(times) *self, int64_t t) { return expression; }

static struct hamlyn_nq_entry entry;
static struct h_record record;
static struct h_message message;
static struct h_datagram datagram;
static struct h_stream_pair streams;
static struct h_channel *made;
static const struct h_connect_attr wait_for_it = { .flags = H_CONNECT_WAIT };
static const struct h_channel_attr wait_for_channel = { .flags = H_CONNECT_WAIT };
static char bytes[64];
static uint64_t tag;
static uint32_t count;

WAITER(nq, h_recv_block(self->nq, &entry, t))
WAITER(manager, h_manager_wait(self->m, t))
WAITER(stream, h_stream_receive(self->stream, &record, t))
WAITER(stream_copy, h_stream_receive_copy(self->stream, bytes, sizeof(bytes), t))
WAITER(channel, h_channel_receive(self->b, &message, t))
WAITER(channel_copy, h_channel_receive_copy(self->b, bytes, sizeof(bytes), t))
WAITER(reply, h_channel_request_wait(self->b, self->request, &message, t))
WAITER(accept, h_listener_accept(self->listener, self->m, NULL, &streams, t))
WAITER(accept_channel, h_channel_accept(self->listener, self->m, NULL, &made, t))
WAITER(connect, h_connect(self->m, self->nobody, &wait_for_it, &streams, t))
WAITER(connect_channel, h_channel_connect(self->m, self->nobody, &wait_for_channel, &made, t))
WAITER(datagram, h_datagram_receive(self->datagrams, &datagram, t))
WAITER(any_tag, h_tagged_get_tag(self->tags, &tag, &count, t))
WAITER(one_tag, h_tagged_get_specific_tag(self->tags, 1, &count, t))
WAITER(group, h_group_receive(self->group, NULL, t))
WAITER(gather, h_gather_receive(self->gather, NULL, t))
WAITER(barrier, h_barrier_wait(self->barrier, t))

static const struct waiter {
	char name[16];
	int64_t (*call)(FIXTURE_DATA(times) *self, int64_t timeout_ns);
} waiters[] = {
	{ "nq", wait_nq },
	/* First of the manager's: the others take what has arrived. */
	{ "stream", wait_stream }, { "stream_copy", wait_stream_copy },
	{ "channel", wait_channel }, { "channel_copy", wait_channel_copy },
	{ "reply", wait_reply }, { "accept", wait_accept },
	{ "accept_channel", wait_accept_channel }, { "connect", wait_connect },
	{ "connect_channel", wait_connect_channel }, { "datagram", wait_datagram },
	{ "any_tag", wait_any_tag }, { "one_tag", wait_one_tag }, { "group", wait_group },
	{ "gather", wait_gather }, { "barrier", wait_barrier }, { "manager", wait_manager },
};

#define EACH_WAITER(w) \
	for (w = waiters; w < waiters + sizeof(waiters) / sizeof(*waiters); w++)

TEST_F(times, of_0_do_not_wait)
{
	const struct waiter *w;

	EACH_WAITER(w)
		EXPECT_EQ(-EAGAIN, w->call(self, H_NOWAIT)) TH_LOG("%s", w->name);
}

/* H 3.3: A receive ends when its time does. */
TEST_F(times, that_are_over_are_told)
{
	const struct waiter *w;

	EACH_WAITER(w)
		EXPECT_EQ(-ETIMEDOUT, w->call(self, HT_MS)) TH_LOG("%s", w->name);
}

/* What ends the waiting is a signal: a call that took it for a time would not sleep so long. */
/* H 3.3: Or it blocks for as long as it takes. */
TEST_F(times, that_are_negative_are_never_over)
{
	static const int64_t all[] = { H_FOREVER, -2, INT64_MIN };
	const struct waiter *w;
	unsigned int i;

	ASSERT_EQ(0, begin_to_interrupt(&self->timer));
	EACH_WAITER(w) {
		for (i = 0; i < 3; i++)
			EXPECT_EQ(-EINTR, w->call(self, all[i])) TH_LOG("%s", w->name);
	}
	ASSERT_EQ(0, timer_delete(self->timer));
}

TEST_HARNESS_MAIN
