// SPDX-License-Identifier: GPL-2.0-only
/*
 * What programs may rely on (Documentation/abi.rst): the version, the log, structures that
 * grow, and that results and time-outs mean the same in all calls.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <pthread.h>
#include <sys/wait.h>

#include <hamlyn/channel.h>

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

TEST_HARNESS_MAIN
