// SPDX-License-Identifier: GPL-2.0-only
/* Requests on a channel: each gets its own reply or none, whatever was given up before. */
#include <pthread.h>
#include <signal.h>

#include <hamlyn/channel.h>

/* For labels that say anything, and numbers near their end. */
#include "channel/channel.h"

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define SECOND	1000000000LL
#define LONG	100000		/* a message in several records */

FIXTURE(requests) {
	struct h_dev *dev[2];
	struct h_manager *m[2];
	struct h_channel *a;	/* asks */
	struct h_channel *b;	/* answers */
};

FIXTURE_VARIANT(requests) {
	bool one_manager;
	uint32_t flags;
	struct h_channel_attr attr;
};

FIXTURE_VARIANT_ADD(requests, defaults) {
};

FIXTURE_VARIANT_ADD(requests, one_manager) {
	.one_manager = true,
};

FIXTURE_VARIANT_ADD(requests, single) {
	.flags = H_MANAGER_SINGLE,
};

FIXTURE_VARIANT_ADD(requests, fewest_buffers) {
	.attr = { .buffers = 2, .buffer_size = 128, .max_buffer_size = 1 },
};

FIXTURE_SETUP(requests)
{
	const struct h_manager_attr attr = { .flags = variant->flags };
	int i;

	for (i = 0; i < 2; i++) {
		self->dev[i] = self->dev[0];
		self->m[i] = self->m[0];
		if (i && variant->one_manager)
			break;
		ASSERT_EQ(0, i ? ht_open_tx(&self->dev[i]) : ht_open(&self->dev[i]));
		ASSERT_EQ(0, h_manager_create(self->dev[i], &attr, &self->m[i]));
	}
	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], &variant->attr, &self->a, &self->b));
}

FIXTURE_TEARDOWN(requests)
{
	h_channel_close(self->a, H_NOWAIT);
	h_channel_close(self->b, H_NOWAIT);
	EXPECT_EQ(0, h_manager_destroy(self->m[0]));
	h_close(self->dev[0]);
	if (!variant->one_manager) {
		EXPECT_EQ(0, h_manager_destroy(self->m[1]));
		h_close(self->dev[1]);
	}
}

/* ---- both ends in one thread --------------------------------------------- */

/* For calls that ask for a point in time. */
static int64_t soon(void)
{
	return h_deadline(ht_patience_ns());
}

/* What is the other end's manager's is done as well. */
static int get(struct h_channel *ch, struct h_channel *other, struct h_message *m)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do {
		h_manager_dispatch(other->manager);
		ret = h_channel_receive(ch, m, H_NOWAIT);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	return ret;
}

static int get_reply(struct h_channel *ch, struct h_channel *other, uint32_t id,
		     struct h_message *m)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do {
		h_manager_dispatch(other->manager);
		ret = h_channel_request_wait(ch, id, m, H_NOWAIT);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	return ret;
}

/* @label: of a record of the library's, or 0: as the application sends it. */
static int send_one(struct h_channel *ch, uint32_t label, const void *data, size_t length)
{
	return label ? h__channel_send_labelled(ch, label, data, length, H_NOWAIT) :
		       h_channel_send(ch, data, length, H_NOWAIT);
}

static int put(struct h_channel *ch, struct h_channel *other, uint32_t label,
	       const void *data, size_t length)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do {
		h_manager_dispatch(other->manager);
		ret = send_one(ch, label, data, length);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	return ret;
}

static int puts_to(struct h_channel *ch, struct h_channel *other, const char *text)
{
	return put(ch, other, 0, text, strlen(text));
}

static int answer(struct h_channel *ch, struct h_channel *other,
		  const struct h_message *request, const char *text)
{
	return put(ch, other, H_LABEL_REPLY | h__message_id(request), text, strlen(text));
}

static uint32_t ask(struct h_channel *ch, struct h_channel *other, const char *text)
{
	struct ht_poll poll;
	uint32_t id;
	int ret;

	ht_poll_begin(&poll);
	do {
		h_manager_dispatch(other->manager);
		ret = h_channel_request_send(ch, text, strlen(text), &id, H_NOWAIT);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	return ret ? 0 : id;
}

static bool is(const struct h_message *m, const char *text)
{
	return m->length == strlen(text) && !memcmp(m->data, text, m->length);
}

/* The next message at @ch is @text. */
static bool brings(struct h_channel *ch, struct h_channel *other, const char *text)
{
	struct h_message m;
	bool right;

	if (get(ch, other, &m) != 0)
		return false;
	right = is(&m, text) && !h_channel_is_request(&m);
	h_channel_release(ch, &m);
	return right;
}

/* And so is the reply. */
static bool brings_reply(struct h_channel *ch, struct h_channel *other, uint32_t id,
			 const char *text)
{
	struct h_message m;
	bool right;

	if (get_reply(ch, other, id, &m) != 0)
		return false;
	right = is(&m, text) && !h_channel_is_request(&m);
	h_channel_release(ch, &m);
	return right;
}

/* The next request at @ch is @text; it is held. */
static bool comes(struct h_channel *ch, struct h_channel *other, const char *text,
		  struct h_message *m)
{
	return get(ch, other, m) == 0 && is(m, text) && h_channel_is_request(m);
}

/* One more request, by which is seen that they are in step. */
static bool in_step(struct h_channel *a, struct h_channel *b, const char *text)
{
	uint32_t n = a->request_count, id = ask(a, b, text);
	struct h_message m;

	if (!id || !comes(b, a, text, &m) || h_channel_reply(b, &m, text, strlen(text), 0))
		return false;
	h_channel_release(b, &m);
	return brings_reply(a, b, id, text) && a->request_count == n && !a->here;
}

/* ---- given up ------------------------------------------------------------ */

TEST_F(requests, after_a_time_out_the_next_one_gets_its_own_reply)
{
	static const int64_t times[] = { 1000000, H_NOWAIT };
	struct h_message late, m;
	unsigned int i;
	uint32_t id;

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		ASSERT_EQ(-ETIMEDOUT, h_channel_request(self->a, "Q0", 2, &m, times[i]));
		EXPECT_EQ(NULL, m.data);
		ASSERT_TRUE(comes(self->b, self->a, "Q0", &late));
		id = ask(self->a, self->b, "Q1");
		ASSERT_EQ(0, answer(self->b, self->a, &late, "late"));
		h_channel_release(self->b, &late);
		EXPECT_EQ(-EAGAIN, h_channel_request_wait(self->a, id, &m, H_NOWAIT));
		ASSERT_TRUE(comes(self->b, self->a, "Q1", &m));
		ASSERT_EQ(0, answer(self->b, self->a, &m, "own"));
		h_channel_release(self->b, &m);
		EXPECT_TRUE(brings_reply(self->a, self->b, id, "own"));
		EXPECT_EQ(-EAGAIN, h_channel_receive(self->a, &m, H_NOWAIT));
		EXPECT_TRUE(in_step(self->a, self->b, "Q2"));
	}
}

/* A server as they were before there was h_channel_reply(). */
TEST_F(requests, after_a_time_out_an_old_server_is_in_step)
{
	struct h_message m;
	uint32_t id;
	int i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(-ETIMEDOUT, h_channel_request(self->a, "Q0", 2, &m, 1000000));
		ASSERT_TRUE(comes(self->b, self->a, "Q0", &m));
		h_channel_release(self->b, &m);
		ASSERT_EQ(0, puts_to(self->b, self->a, "late"));
		id = ask(self->a, self->b, "Q1");
		ASSERT_TRUE(comes(self->b, self->a, "Q1", &m));
		h_channel_release(self->b, &m);
		ASSERT_EQ(0, puts_to(self->b, self->a, "own"));
		EXPECT_TRUE(brings_reply(self->a, self->b, id, "own"));
	}
	EXPECT_EQ(0, self->b->asked_count);
}

struct asker {
	struct h_channel *ch;
	uint32_t id;
	int ret;
	bool done;		/* atomic */
};

static void *ask_for_ever(void *arg)
{
	struct asker *k = arg;
	struct h_message m;

	k->ret = h_channel_request(k->ch, "Q0", 2, &m, H_FOREVER);
	__atomic_store_n(&k->done, true, __ATOMIC_RELEASE);
	return NULL;
}

static void nothing(int sig)
{
	(void)sig;
}

TEST_F(requests, after_a_signal_the_next_one_gets_its_own_reply)
{
	const struct sigaction sa = { .sa_handler = nothing };
	struct asker k = { .ch = self->a };
	struct h_message late;
	pthread_t thread;

	if (variant->flags & H_MANAGER_SINGLE)
		SKIP(return, "one thread");
	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, ask_for_ever, &k));
	ASSERT_TRUE(comes(self->b, self->a, "Q0", &late));
	while (!__atomic_load_n(&k.done, __ATOMIC_ACQUIRE)) {
		pthread_kill(thread, SIGUSR1);
		ht_sleep_ns(10000000);
	}
	pthread_join(thread, NULL);
	EXPECT_EQ(-EINPROGRESS, k.ret);
	EXPECT_EQ(0, self->a->request_count);
	ASSERT_EQ(0, answer(self->b, self->a, &late, "late"));
	h_channel_release(self->b, &late);
	EXPECT_TRUE(in_step(self->a, self->b, "Q1"));
}

struct answerer {
	struct h_channel *ch;
	bool goes_on;		/* atomic */
	int ret;
};

/* One thing at a time, each to its end: as the simplest server does it. */
static void *answer_all(void *arg)
{
	static const char reply[LONG];
	struct answerer *k = arg;
	struct h_message m;

	while (!(k->ret = h_channel_receive(k->ch, &m, H_FOREVER))) {
		while (!__atomic_load_n(&k->goes_on, __ATOMIC_ACQUIRE))
			ht_sleep_ns(1000000);
		k->ret = h_channel_reply(k->ch, &m, reply, LONG, H_FOREVER);
		h_channel_release(k->ch, &m);
		if (k->ret)
			break;
	}
	return NULL;
}

/*
 * The replies to what was given up fill the buffers here, so that the server, which takes nothing
 * before they have left, has none for the next request.
 */
TEST_F(requests, who_waits_to_ask_drops_what_is_late)
{
	static const char data[LONG];
	struct answerer k = { .ch = self->b };
	struct ht_poll poll;
	struct h_message m;
	pthread_t thread;
	int i, ret;

	ASSERT_EQ(0, pthread_create(&thread, NULL, answer_all, &k));
	ht_poll_begin(&poll);
	do
		ret = h_channel_request(self->a, data, LONG, &m, 1000000);
	while (ret == -ETIMEDOUT && ht_poll_more(&poll));
	EXPECT_EQ(-EAGAIN, ret);
	__atomic_store_n(&k.goes_on, true, __ATOMIC_RELEASE);
	for (i = 0, ret = 0; i < 2 && !ret; i++) {
		ret = h_channel_request(self->a, data, LONG, &m, ht_patience_ns());
		EXPECT_EQ(ret ? 0 : LONG, m.length);
		h_channel_release(self->a, &m);
	}
	EXPECT_EQ(0, ret);
	EXPECT_EQ(0, self->a->request_count);
	/* Or who answers would wait for ever. */
	EXPECT_EQ(0, h_channel_close(self->a, ret ? H_NOWAIT : ht_patience_ns()));
	self->a = NULL;
	pthread_join(thread, NULL);
	EXPECT_EQ(-ENODATA, k.ret);
}

TEST_F(requests, who_was_not_sent_is_told_so)
{
	uint32_t id = 7, n = 0, i;
	struct h_message m;
	int ret;

	do {
		ret = h_channel_send(self->a, "plain", 5, 10000000);
		n += !ret;
	} while (!ret);
	ASSERT_EQ(-ETIMEDOUT, ret);
	EXPECT_EQ(-EAGAIN, h_channel_request(self->a, "Q", 1, &m, H_NOWAIT));
	EXPECT_EQ(-EAGAIN, h_channel_request(self->a, "Q", 1, &m, 1000000));
	EXPECT_EQ(-ETIMEDOUT, h_channel_request_send(self->a, "Q", 1, &id, 1000000));
	EXPECT_EQ(0, id);
	EXPECT_EQ(0, self->a->request_count);
	for (i = 0; i < n; i++) {
		ASSERT_TRUE(brings(self->b, self->a, "plain"));
	}
	EXPECT_EQ(-EAGAIN, h_channel_receive(self->b, &m, H_NOWAIT));
	EXPECT_TRUE(in_step(self->a, self->b, "Q1"));
}

TEST_F(requests, a_time_over_can_be_gone_on_from)
{
	uint32_t id = ask(self->a, self->b, "Q0");
	struct h_message q, m;

	EXPECT_EQ(-EAGAIN, h_channel_request_wait(self->a, id, &m, H_NOWAIT));
	EXPECT_EQ(-ETIMEDOUT, h_channel_request_wait(self->a, id, &m, 1000000));
	ASSERT_TRUE(comes(self->b, self->a, "Q0", &q));
	ASSERT_EQ(0, answer(self->b, self->a, &q, "own"));
	h_channel_release(self->b, &q);
	EXPECT_TRUE(brings_reply(self->a, self->b, id, "own"));
	EXPECT_EQ(-EINVAL, h_channel_request_wait(self->a, id, &m, H_NOWAIT));
	EXPECT_EQ(-EINVAL, h_channel_request_wait(self->a, 0, &m, H_NOWAIT));
	h_channel_request_cancel(self->a, id);
}

/* ---- many under way ------------------------------------------------------ */

#define MANY	100

/* Also more replies than there are buffers, and none is taken before all have come. */
TEST_F(requests, replies_are_taken_in_any_order)
{
	struct h_message m;
	uint32_t id[MANY];
	char text[16];
	int i;

	for (i = 0; i < MANY; i++) {
		snprintf(text, sizeof(text), "Q%d", i);
		id[i] = ask(self->a, self->b, text);
		ASSERT_NE(0, id[i]);
		ASSERT_TRUE(comes(self->b, self->a, text, &m));
		EXPECT_EQ(-EAGAIN, h_channel_receive(self->a, &(struct h_message) {}, H_NOWAIT));
		ASSERT_EQ(0, answer(self->b, self->a, &m, text));
		h_channel_release(self->b, &m);
	}
	for (i = MANY; i--;) {
		snprintf(text, sizeof(text), "Q%d", i);
		ASSERT_TRUE(brings_reply(self->a, self->b, id[i], text));
	}
	EXPECT_EQ(0, self->a->here);
}

TEST_F(requests, numbers_wrap_around_and_none_is_taken_twice)
{
	struct h_message first, m;
	uint32_t id, old;

	old = ask(self->a, self->b, "old");
	ASSERT_EQ(1, old);
	ASSERT_TRUE(comes(self->b, self->a, "old", &m));
	first = m;
	h_channel_release(self->b, &m);
	self->a->last_id = H_LABEL_ID - 2;
	EXPECT_TRUE(in_step(self->a, self->b, "last but one"));
	EXPECT_EQ(H_LABEL_ID - 1, self->a->last_id);
	h_channel_request_cancel(self->a, 77);
	id = ask(self->a, self->b, "last");
	EXPECT_EQ(H_LABEL_ID, id);
	ASSERT_TRUE(comes(self->b, self->a, "last", &m));
	ASSERT_EQ(0, answer(self->b, self->a, &m, "last"));
	h_channel_release(self->b, &m);
	EXPECT_TRUE(brings_reply(self->a, self->b, id, "last"));
	id = ask(self->a, self->b, "next");
	/* 1 is under way still. */
	EXPECT_EQ(2, id);
	ASSERT_EQ(0, answer(self->b, self->a, &first, "first"));
	EXPECT_TRUE(brings_reply(self->a, self->b, old, "first"));
	ASSERT_TRUE(comes(self->b, self->a, "next", &m));
	ASSERT_EQ(0, answer(self->b, self->a, &m, "next"));
	h_channel_release(self->b, &m);
	EXPECT_TRUE(brings_reply(self->a, self->b, id, "next"));
}

TEST_F(requests, there_is_an_end_to_how_many)
{
	uint32_t id, first = 0, i;
	struct h_message m;

	for (i = 0; i < H_MOST_REQUESTS; i++) {
		id = ask(self->a, self->b, "Q");
		ASSERT_NE(0, id);
		first = first ? first : id;
		ASSERT_TRUE(comes(self->b, self->a, "Q", &m));
		h_channel_release(self->b, &m);
	}
	EXPECT_EQ(-EBUSY, h_channel_request_send(self->a, "Q", 1, &id, H_NOWAIT));
	EXPECT_EQ(0, id);
	EXPECT_EQ(-EBUSY, h_channel_request(self->a, "Q", 1, &m, H_NOWAIT));
	h_channel_request_cancel(self->a, first);
	EXPECT_NE(0, ask(self->a, self->b, "Q"));
	EXPECT_EQ(H_MOST_REQUESTS, self->a->request_count);
}

/* Of any length, both ways. */
TEST_F(requests, any_size)
{
	static const size_t sizes[] = { 0, 1, 127, 128, 129, 4096, 4097, LONG };
	unsigned char *data = malloc(LONG);
	struct h_message q, m;
	unsigned int i;
	uint32_t id;

	ASSERT_NE(NULL, data);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct ht_poll poll;
		int ret;

		ht_fill(data, sizes[i], i);
		ht_poll_begin(&poll);
		do {
			h_manager_dispatch(self->m[1]);
			ret = h_channel_request_send(self->a, data, sizes[i], &id, H_NOWAIT);
		} while (ret == -EAGAIN && ht_poll_more(&poll));
		ASSERT_EQ(0, ret);
		ASSERT_EQ(0, get(self->b, self->a, &q));
		EXPECT_EQ(1, h_channel_is_request(&q));
		ASSERT_EQ(sizes[i], q.length);
		EXPECT_EQ(sizes[i], ht_match(q.data, q.length, i));
		ht_fill(data, sizes[i], ~i);
		ASSERT_EQ(0, put(self->b, self->a, H_LABEL_REPLY | h__message_id(&q), data,
				 sizes[i]));
		h_channel_release(self->b, &q);
		ASSERT_EQ(0, get_reply(self->a, self->b, id, &m));
		ASSERT_EQ(sizes[i], m.length);
		EXPECT_EQ(sizes[i], ht_match(m.data, m.length, ~i));
		h_channel_release(self->a, &m);
	}
	free(data);
	EXPECT_TRUE(in_step(self->a, self->b, "Q"));
}

/* ---- others ------------------------------------------------------------------ */

static int called;

static void count_call(struct h_channel *ch, void *arg)
{
	(void)ch;
	(void)arg;
	called++;
}

/* What comes while a reply is waited for is kept, until there are @n. */
static bool keeps(struct h_channel *ch, uint32_t id, uint32_t n)
{
	struct ht_poll poll;
	struct h_message m;

	ht_poll_begin(&poll);
	do {
		if (h_channel_request_wait(ch, id, &m, H_NOWAIT) != -EAGAIN)
			return false;
	} while (ch->here < n && ht_poll_more(&poll));
	return ch->here == n;
}

TEST_F(requests, other_messages_are_kept_in_order)
{
	uint32_t id = ask(self->a, self->b, "Q");
	char data[8];
	struct h_message q;

	ASSERT_TRUE(comes(self->b, self->a, "Q", &q));
	h_channel_reply_only(self->b);
	ASSERT_EQ(0, puts_to(self->b, self->a, "first"));
	EXPECT_TRUE(keeps(self->a, id, 1));
	ASSERT_EQ(0, puts_to(self->b, self->a, "second"));
	EXPECT_TRUE(keeps(self->a, id, 2));
	ASSERT_EQ(0, answer(self->b, self->a, &q, "own"));
	h_channel_release(self->b, &q);
	EXPECT_TRUE(brings_reply(self->a, self->b, id, "own"));
	ASSERT_EQ(0, puts_to(self->b, self->a, "third"));
	called = 0;
	h_channel_on_ready(self->a, count_call, NULL);
	h_manager_dispatch(self->m[0]);
	EXPECT_LT(0, called);
	EXPECT_EQ(-EMSGSIZE, h_channel_receive_copy(self->a, data, 4, H_NOWAIT));
	EXPECT_EQ(5, h_channel_receive_copy(self->a, data, sizeof(data), H_NOWAIT));
	EXPECT_EQ(0, memcmp(data, "first", 5));
	EXPECT_EQ(-EMSGSIZE, h_channel_receive_copy(self->a, data, 5, H_NOWAIT));
	EXPECT_TRUE(brings(self->a, self->b, "second"));
	EXPECT_TRUE(brings(self->a, self->b, "third"));
	EXPECT_EQ(0, self->a->here);
	h_channel_on_ready(self->a, NULL, NULL);
	h_manager_dispatch(self->m[0]);
	called = 0;
	h_channel_on_ready(self->a, count_call, NULL);
	h_manager_dispatch(self->m[0]);
	EXPECT_EQ(0, called);
}

/* A reply that another call has found is something to be received. */
TEST_F(requests, a_loop_is_told_of_a_reply)
{
	uint32_t id = ask(self->a, self->b, "Q");
	struct ht_poll poll;
	struct h_message m;

	ASSERT_TRUE(comes(self->b, self->a, "Q", &m));
	ASSERT_EQ(0, h_channel_reply(self->b, &m, "own", 3, SECOND));
	h_channel_release(self->b, &m);
	ht_poll_begin(&poll);
	while (!self->a->here && ht_poll_more(&poll)) {
		h_manager_poll(self->m[1]);
		ASSERT_EQ(-EAGAIN, h_channel_receive(self->a, &m, H_NOWAIT));
	}
	called = 0;
	h_channel_on_ready(self->a, count_call, NULL);
	h_manager_dispatch(self->m[0]);
	EXPECT_LT(0, called);
	EXPECT_TRUE(brings_reply(self->a, self->b, id, "own"));
}

/* What is kept has a bound. Then the other end waits, and nothing is lost. */
TEST_F(requests, who_does_not_receive_keeps_no_more_than_so_much)
{
	uint32_t id = ask(self->a, self->b, "Q"), sent = 0, got = 0;
	size_t most;
	struct h_message q, m;
	struct ht_poll poll;
	static char data[4096];
	int64_t until = 0;
	int ret;

	self->a->limit = 100000;
	most = self->a->limit + sizeof(struct h_stored) + sizeof(data);
	ASSERT_TRUE(comes(self->b, self->a, "Q", &q));
	h_channel_reply_only(self->b);
	ht_poll_begin(&poll);
	do {
		memcpy(data, &sent, sizeof(sent));
		ret = h_channel_send(self->b, data, sizeof(data), H_NOWAIT);
		sent += !ret;
		if (!ret || self->a->stored_bytes < self->a->limit)
			until = ht_now_ns() + SECOND / 5 * ht_scale();
		ASSERT_EQ(-EAGAIN, h_channel_request_wait(self->a, id, &m, H_NOWAIT));
	} while (ht_now_ns() < until && ht_poll_more(&poll));
	EXPECT_EQ(-EAGAIN, ret);
	EXPECT_EQ(-ETIMEDOUT, h_channel_request_wait(self->a, id, &m, 1000000));
	EXPECT_GE(most, self->a->stored_bytes);
	EXPECT_LE(self->a->limit, self->a->stored_bytes);
	ht_poll_begin(&poll);
	while (got < sent && ht_poll_more(&poll)) {
		h_manager_dispatch(self->m[1]);
		ret = h_channel_receive(self->a, &m, H_NOWAIT);
		if (ret == -EAGAIN)
			continue;
		ASSERT_EQ(0, ret);
		ASSERT_EQ(sizeof(data), m.length);
		EXPECT_EQ(0, memcmp(m.data, &got, sizeof(got)));
		got++;
		h_channel_release(self->a, &m);
	}
	ASSERT_EQ(sent, got);
	ASSERT_EQ(0, answer(self->b, self->a, &q, "own"));
	h_channel_release(self->b, &q);
	EXPECT_TRUE(brings_reply(self->a, self->b, id, "own"));
}

/* Nor more than so many, however short they are. */
TEST_F(requests, who_does_not_receive_keeps_no_more_than_so_many)
{
	uint32_t id = ask(self->a, self->b, "Q"), sent = 0, got = 0;
	struct ht_poll poll;
	struct h_message m;

	self->a->limit = 16 << 20;
	ASSERT_TRUE(comes(self->b, self->a, "Q", &m));
	h_channel_release(self->b, &m);
	h_channel_reply_only(self->b);
	ht_poll_begin(&poll);
	while (!h__channel_is_full(self->a) && ht_poll_more(&poll)) {
		sent += !h_channel_send(self->b, "x", 1, H_NOWAIT);
		ASSERT_EQ(-EAGAIN, h_channel_request_wait(self->a, id, &m, H_NOWAIT));
	}
	EXPECT_EQ(H_MOST_STORED, self->a->stored_count);
	EXPECT_EQ(H_MOST_STORED, self->a->longs_max);
	ht_poll_begin(&poll);
	while (got < sent && ht_poll_more(&poll)) {
		h_manager_dispatch(self->m[1]);
		got += h_channel_receive(self->a, &m, H_NOWAIT) == 0;
		h_channel_release(self->a, &m);
	}
	EXPECT_EQ(sent, got);
	EXPECT_EQ(0, self->a->stored_count);
	EXPECT_EQ(0, self->a->stored_bytes);
	h_channel_request_cancel(self->a, id);
	EXPECT_TRUE(in_step(self->a, self->b, "Q1"));
}

enum { SHUT_DOWN, GONE, LIED };

/* As many as are kept, and then @how. */
static const char *fill_and_end(struct h_channel *a, struct h_channel **b, uint32_t id, int how,
				uint32_t *sent)
{
	struct ht_poll poll;
	struct h_message m;
	int ret = 0;

	h_channel_reply_only(*b);
	ht_poll_begin(&poll);
	while (!h__channel_is_full(a) && ht_poll_more(&poll)) {
		*sent += !h_channel_send(*b, "x", 1, H_NOWAIT);
		if (h_channel_request_wait(a, id, &m, H_NOWAIT) != -EAGAIN)
			return "cannot wait";
	}
	if (how == SHUT_DOWN)
		do {
			ret = h_channel_shutdown(*b, H_NOWAIT);
			h_manager_poll(a->manager);
		} while (ret == -EAGAIN && ht_poll_more(&poll));
	else if (how == LIED)
		ret = h__stream_post((*b)->sender, "x", 1, H_MORE_LABELLED, 0, soon()) < 0;
	if (how != GONE)
		return ret ? "cannot end" : NULL;
	/* As if it had been killed, after all had left: it does not say that this is the end. */
	if (h_manager_drain((*b)->manager, ht_patience_ns()))
		return "cannot drain";
	(*b)->sender->closed = true;
	h_channel_close(*b, H_NOWAIT);
	*b = NULL;
	return NULL;
}

/* The only thread waits for a reply, and nobody takes what is kept. */
TEST_F(requests, who_waits_is_told_of_the_end_whatever_is_kept)
{
	static const int results[] = { -ENODATA, -ECONNRESET, -EPROTO };
	int how;

	for (how = SHUT_DOWN; how <= LIED; how++) {
		uint32_t sent = 0, got = 0, id;
		struct h_channel *a, *b;
		struct h_message m;

		ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], &variant->attr, &a, &b));
		a->limit = 1;
		id = ask(a, b, "Q");
		ASSERT_NE(0, id);
		ASSERT_TRUE(comes(b, a, "Q", &m));
		h_channel_release(b, &m);
		ASSERT_NO(fill_and_end(a, &b, id, how, &sent));
		EXPECT_EQ(results[how], h_channel_request_wait(a, id, &m, ht_patience_ns())) {
			TH_LOG("%d", how);
		}
		while (h_channel_receive(a, &m, H_NOWAIT) == 0) {
			got++;
			h_channel_release(a, &m);
		}
		EXPECT_EQ(sent, got);
		EXPECT_EQ(results[how], h_channel_receive(a, &m, H_NOWAIT));
		h_channel_close(a, H_NOWAIT);
		h_channel_close(b, H_NOWAIT);
	}
}

/* It takes away what its credits go to, and goes on, so that there is always something. */
TEST_F(requests, who_goes_on_after_it_has_gone_is_not_heard)
{
	const struct hamlyn_nq_entry gone = { .flags = HAMLYN_NQE_PEER_GONE };
	struct h_receiver *r = &self->a->receiver->r;
	uint32_t sent = 0, got = 0;
	struct h_message m;
	int ret;

	while (!h_channel_send(self->b, "x", 1, H_NOWAIT))
		ASSERT_GT(2000, ++sent);
	while (h_manager_poll(self->m[0]))
		;
	h_receiver_lock(r);
	r->class_->process_arrival(r, &gone);
	h_receiver_unlock(r);
	while ((ret = h_channel_receive(self->a, &m, H_NOWAIT)) == 0 && got < 3000) {
		got++;
		h_channel_release(self->a, &m);
		/* Nobody tells it so. */
		self->b->sender->released++;
		sent += !h_channel_send(self->b, "x", 1, H_NOWAIT);
		h_manager_poll(self->m[0]);
	}
	EXPECT_EQ(-ECONNRESET, ret);
	EXPECT_GT(2000, got);
	EXPECT_LT(got, sent);
	EXPECT_EQ(-ECONNRESET, h_channel_request(self->a, "Q", 1, &m, H_NOWAIT));
}

TEST_F(requests, what_was_kept_comes_before_the_end)
{
	uint32_t id = ask(self->a, self->b, "Q");
	struct h_message m;
	struct ht_poll poll;
	int ret;

	ASSERT_TRUE(comes(self->b, self->a, "Q", &m));
	h_channel_release(self->b, &m);
	h_channel_reply_only(self->b);
	ASSERT_EQ(0, puts_to(self->b, self->a, "last words"));
	h_channel_on_ready(self->a, count_call, NULL);
	ht_poll_begin(&poll);
	do {
		ret = h_channel_shutdown(self->b, H_NOWAIT);
		h_manager_dispatch(self->m[0]);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	ASSERT_EQ(0, ret);
	EXPECT_EQ(-ENODATA, get_reply(self->a, self->b, id, &m));
	EXPECT_EQ(-EINVAL, h_channel_request_wait(self->a, id, &m, H_NOWAIT));
	EXPECT_EQ(-ENODATA, h_channel_request(self->a, "Q", 1, &m, SECOND));
	called = 0;
	h_manager_dispatch(self->m[0]);
	EXPECT_LT(0, called);
	EXPECT_TRUE(brings(self->a, self->b, "last words"));
	EXPECT_EQ(-ENODATA, h_channel_receive(self->a, &m, H_NOWAIT));
}

/* ---- servers that do not know of replies --------------------------------------- */

TEST_F(requests, a_plain_message_answers_what_was_received_before)
{
	struct h_message q[2], m;
	uint32_t id[2];
	char byte;

	/* One is never answered: the next answer is not for it. */
	id[0] = ask(self->a, self->b, "Q0");
	ASSERT_TRUE(comes(self->b, self->a, "Q0", &m));
	h_channel_release(self->b, &m);
	id[1] = ask(self->a, self->b, "Q1");
	ASSERT_TRUE(comes(self->b, self->a, "Q1", &m));
	h_channel_release(self->b, &m);
	ASSERT_EQ(0, puts_to(self->b, self->a, "A1"));
	ASSERT_EQ(0, puts_to(self->b, self->a, "plain"));
	EXPECT_TRUE(brings(self->a, self->b, "plain"));
	EXPECT_EQ(-EAGAIN, h_channel_request_wait(self->a, id[0], &m, H_NOWAIT));
	h_channel_request_cancel(self->a, id[0]);
	EXPECT_TRUE(brings_reply(self->a, self->b, id[1], "A1"));
	if (variant->attr.buffers != 2) {
		/* Two that are held are answered in turn. */
		id[0] = ask(self->a, self->b, "Q2");
		id[1] = ask(self->a, self->b, "Q3");
		ASSERT_TRUE(comes(self->b, self->a, "Q2", &q[0]));
		ASSERT_TRUE(comes(self->b, self->a, "Q3", &q[1]));
		ASSERT_EQ(0, puts_to(self->b, self->a, "A2"));
		ASSERT_EQ(0, puts_to(self->b, self->a, "A3"));
		h_channel_release(self->b, &q[0]);
		h_channel_release(self->b, &q[1]);
		EXPECT_TRUE(brings_reply(self->a, self->b, id[1], "A3"));
		EXPECT_TRUE(brings_reply(self->a, self->b, id[0], "A2"));
	}
	/* And what was received by copying. */
	id[0] = ask(self->a, self->b, "4");
	ASSERT_EQ(-EAGAIN, h_channel_receive(self->a, &m, H_NOWAIT));
	while (h_channel_receive_copy(self->b, &byte, 1, H_NOWAIT) == -EAGAIN)
		h_manager_dispatch(self->m[0]);
	ASSERT_EQ('4', byte);
	ASSERT_EQ(0, puts_to(self->b, self->a, ""));
	EXPECT_TRUE(brings_reply(self->a, self->b, id[0], ""));
}

TEST_F(requests, what_was_too_long_to_be_received_is_not_answered)
{
	uint32_t id = ask(self->a, self->b, "question");
	struct ht_poll poll;
	char data[16];
	int ret;

	ht_poll_begin(&poll);
	do {
		h_manager_dispatch(self->m[0]);
		ret = (int)h_channel_receive_copy(self->b, data, 2, H_NOWAIT);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	ASSERT_EQ(-EMSGSIZE, ret);
	ASSERT_EQ(0, puts_to(self->b, self->a, "plain"));
	EXPECT_TRUE(brings(self->a, self->b, "plain"));
	ASSERT_EQ(8, h_channel_receive_copy(self->b, data, sizeof(data), H_NOWAIT));
	ASSERT_EQ(0, puts_to(self->b, self->a, "own"));
	EXPECT_TRUE(brings_reply(self->a, self->b, id, "own"));
}

TEST_F(requests, who_knows_of_replies_answers_by_nothing_else)
{
	uint32_t id = ask(self->a, self->b, "Q");
	struct h_message m, copy;

	ASSERT_TRUE(comes(self->b, self->a, "Q", &m));
	copy = m;
	h_channel_release(self->b, &m);
	EXPECT_EQ(-EINVAL, h_channel_reply(self->b, &m, "x", 1, H_NOWAIT));
	h_channel_reply_only(self->b);
	ASSERT_EQ(0, puts_to(self->b, self->a, "plain"));
	EXPECT_TRUE(brings(self->a, self->b, "plain"));
	EXPECT_EQ(-EAGAIN, h_channel_request_wait(self->a, id, &m, H_NOWAIT));
	ASSERT_EQ(0, h_channel_reply(self->b, &copy, "own", 3, SECOND));
	EXPECT_TRUE(brings_reply(self->a, self->b, id, "own"));
	ASSERT_EQ(0, puts_to(self->b, self->a, "plain"));
	ASSERT_EQ(0, get(self->a, self->b, &m));
	EXPECT_EQ(-EINVAL, h_channel_reply(self->a, &m, "x", 1, H_NOWAIT));
	h_channel_release(self->a, &m);
}

TEST_F(requests, a_request_is_answered_on_its_own_channel_only)
{
	uint32_t id = ask(self->a, self->b, "Q");
	struct h_channel *c, *d;
	struct h_message q, m;

	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], &variant->attr, &c, &d));
	ASSERT_NE(0, ask(c, d, "other"));
	ASSERT_TRUE(comes(self->b, self->a, "Q", &q));
	EXPECT_EQ(-EINVAL, h_channel_reply(d, &q, "wrong", 5, H_NOWAIT));
	EXPECT_TRUE(ht_is_explained(self->dev[1], "another channel"));
	/* Nothing has happened to the other one, which answers as it did. */
	EXPECT_FALSE(d->replies);
	EXPECT_EQ(-EAGAIN, h_channel_request_wait(c, 1, &m, H_NOWAIT));
	ASSERT_EQ(0, answer(self->b, self->a, &q, "own"));
	h_channel_release(self->b, &q);
	EXPECT_EQ(-EINVAL, h_channel_reply(self->b, &q, "again", 5, H_NOWAIT));
	EXPECT_TRUE(ht_is_explained(self->dev[1], "released"));
	EXPECT_TRUE(brings_reply(self->a, self->b, id, "own"));
	h_channel_close(c, H_NOWAIT);
	h_channel_close(d, H_NOWAIT);
}

/* ---- one who keeps to no rule ----------------------------------------------------- */

/* Until all of it has left nothing is received. @label: as for put() */
static bool drops(struct h_channel *ch, struct h_channel *from, uint32_t label,
		  const void *data, size_t length)
{
	struct ht_poll poll;
	struct h_message m;
	int ret;

	ht_poll_begin(&poll);
	do {
		if (h_channel_receive(ch, &m, H_NOWAIT) != -EAGAIN)
			return false;
		ret = send_one(from, label, data, length);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	while (!ret && from->rest && ht_poll_more(&poll)) {
		h_manager_poll(from->manager);
		if (h_channel_receive(ch, &m, H_NOWAIT) != -EAGAIN)
			return false;
	}
	return !ret && !from->rest;
}

TEST_F(requests, replies_that_nobody_waits_for_are_dropped)
{
	static char data[LONG];
	struct ht_poll poll;
	struct h_message m;
	uint32_t id;
	int i, ret;

	id = ask(self->a, self->b, "Q");
	ASSERT_TRUE(comes(self->b, self->a, "Q", &m));
	h_channel_release(self->b, &m);
	h_channel_reply_only(self->b);
	for (i = 0; i < 100; i++) {
		/* Also the one that will be asked next. Buffers are free when they were seen. */
		ht_poll_begin(&poll);
		do {
			ret = h__channel_send_labelled(self->b, H_LABEL_REPLY | (id + 1 + i), "no",
						       2, H_NOWAIT);
			EXPECT_EQ(-EAGAIN, h_channel_request_wait(self->a, id, &m, H_NOWAIT));
		} while (ret == -EAGAIN && ht_poll_more(&poll));
		ASSERT_EQ(0, ret);
	}
	EXPECT_TRUE(drops(self->a, self->b, H_LABEL_REPLY | (id + 1), data, LONG));
	EXPECT_TRUE(drops(self->a, self->b, H_LABEL_REPLY | H_LABEL_ID, "", 0));
	EXPECT_FALSE(self->m[0]->budget.spare);
	/* Twice: the first one is kept for who asked. */
	EXPECT_TRUE(drops(self->a, self->b, H_LABEL_REPLY | id, "own", 3));
	EXPECT_TRUE(drops(self->a, self->b, H_LABEL_REPLY | id, "again", 5));
	/* Between two hosts these are still to come, and to be dropped, before there is room. */
	EXPECT_TRUE(drops(self->a, self->b, 0, "plain", 5));
	EXPECT_TRUE(brings(self->a, self->b, "plain"));
	EXPECT_TRUE(drops(self->a, self->b, H_LABEL_REPLY | id, data, LONG));
	EXPECT_TRUE(brings_reply(self->a, self->b, id, "own"));
	EXPECT_TRUE(in_step(self->a, self->b, "Q1"));
}

/* Begun while nobody waits for it, and ended while somebody does. */
TEST_F(requests, a_reply_that_is_half_dropped_is_dropped)
{
	static const char data[128];
	uint64_t label = (uint64_t)(H_LABEL_REPLY | 1) << H_LABEL_SHIFT;
	struct ht_poll poll;
	struct h_message m;
	uint32_t id;

	ASSERT_LE(0, h__stream_post(self->b->sender, data, 100, 100, label, soon()));
	ht_poll_begin(&poll);
	while (!self->a->in.done && ht_poll_more(&poll)) {
		ASSERT_EQ(-EAGAIN, h_channel_receive(self->a, &m, H_NOWAIT));
	}
	EXPECT_TRUE(self->a->in.drop);
	id = ask(self->a, self->b, "Q");
	ASSERT_EQ(1, id);
	ASSERT_LE(0, h__stream_post(self->b->sender, data, 100, 0, 0, soon()));
	ASSERT_TRUE(comes(self->b, self->a, "Q", &m));
	EXPECT_EQ(-ETIMEDOUT, h_channel_request_wait(self->a, id, &m, SECOND / 20));
	ASSERT_EQ(0, put(self->b, self->a, H_LABEL_REPLY | id, "own", 3));
	EXPECT_TRUE(brings_reply(self->a, self->b, id, "own"));
}

static const struct lie {
	const char *what;
	size_t length;
	uint64_t more;
	uint32_t flags;
	uint32_t label;
	bool second;		/* behind a first part of a message */
} lies[] = {
	{ "a reply to nothing", 5, 0, 0, H_LABEL_REPLY, false },
	{ "an end with a label", 0, 0, H_NOTE_FIN, 1, false },
	{ "an empty one that is no message", 0, 0, 0, 1, false },
	{ "an empty one with payload", 5, 0, H_NOTE_EMPTY, 1, false },
	{ "a label in the middle of a message", 40, 20, 0, 1, true },
	{ "a label at the end of a message", 60, 0, 0, H_LABEL_REPLY | 1, true },
	{ "more than there can be", 5, H_MORE_LABELLED, 0, 0, false },
	{ "the same, with a label", 5, H_MORE_LABELLED, 0, 1, false },
	{ "longer than is taken", 5, 17 << 20, 0, 1, false },
	{ "a reply longer than is taken", 5, 17 << 20, 0, H_LABEL_REPLY | 1, false },
};

TEST_F(requests, labels_that_lie_are_found_out)
{
	static const char data[128];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lies); i++) {
		const struct lie *l = &lies[i];
		struct h_channel *a, *b;
		struct h_message m;

		ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], &variant->attr, &a, &b));
		if (l->second) {
			ASSERT_LE(0, h__stream_post(b->sender, data, 40, 60, 0, soon()));
		}
		ASSERT_LE(0, h__stream_post(b->sender, data, l->length, l->more, l->flags |
					    (uint64_t)l->label << H_LABEL_SHIFT, soon()));
		EXPECT_EQ(-EPROTO, h_channel_receive(a, &m, 20 * SECOND)) {
			TH_LOG("%s", l->what);
		}
		EXPECT_EQ(-EPROTO, h_channel_request(a, "Q", 1, &m, SECOND)) {
			TH_LOG("%s", l->what);
		}
		h_channel_close(a, H_NOWAIT);
		h_channel_close(b, H_NOWAIT);
	}
}

TEST_F(requests, a_stream_has_no_labels)
{
	struct h_stream_receiver *r;
	struct h_stream_sender *s;
	struct h_record record;
	struct h_seed seed;

	ASSERT_EQ(0, h_stream_receiver_create(self->m[0], NULL, &r));
	h_stream_receiver_seed(r, &seed);
	ASSERT_EQ(0, h_stream_sender_create(self->m[1], &seed, &s));
	ASSERT_LE(0, h__stream_post(s, "x", 1, 0, 1ULL << H_LABEL_SHIFT, soon()));
	EXPECT_EQ(-EPROTO, h_stream_receive(r, &record, 20 * SECOND));
	h_stream_sender_close(s, H_NOWAIT);
	EXPECT_EQ(0, h_stream_receiver_destroy(r));
}

/* Without labels on its requests it would wait for ever. */
TEST_F(requests, an_end_of_another_version_is_refused)
{
	struct h_channel_seed seed;
	struct h_channel *a, *b;

	ASSERT_EQ(0, h_channel_create(self->m[0], NULL, &a));
	ASSERT_EQ(0, h_channel_create(self->m[1], NULL, &b));
	h_channel_seed(b, &seed);
	h__put(seed.bytes + 2 * H_SEED_BYTES + 8, 2, 4);
	h__put(seed.bytes + H_CARD_BYTES - 4, h__check_word(seed.bytes, H_CARD_BYTES - 4), 4);
	EXPECT_EQ(-EPROTO, h_channel_join(a, &seed));
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
}

/* ---- threads ------------------------------------------------------------------------ */

#define ASKERS	4
#define EACH	200
#define PLAIN	200
#define BATCH	3		/* answered in the wrong order */

struct crowd {
	struct h_channel *a, *b;
	uint32_t number;	/* atomic */
	uint32_t wrong;		/* atomic */
	uint32_t plain;		/* atomic, received */
	bool over;		/* atomic */
};

static void *ask_many(void *arg)
{
	struct crowd *c = arg;
	uint32_t i, n;

	for (i = 0; i < EACH; i++) {
		struct h_message m;
		int ret;

		n = __atomic_fetch_add(&c->number, 1, __ATOMIC_RELAXED);
		ret = h_channel_request(c->a, &n, sizeof(n), &m, n % 16 ? 60 * SECOND : 1000);
		if (!(n % 16) && (ret == -ETIMEDOUT || ret == -EAGAIN))
			continue;
		if (ret != 0 || m.length != sizeof(n) || memcmp(m.data, &n, sizeof(n)))
			__atomic_fetch_add(&c->wrong, 1, __ATOMIC_RELAXED);
		h_channel_release(c->a, &m);
	}
	return NULL;
}

/* The other end's messages meanwhile. */
static void *receive_plain(void *arg)
{
	struct crowd *c = arg;
	struct h_message m;
	uint32_t i;

	for (i = 0; i < PLAIN; i++) {
		if (h_channel_receive(c->a, &m, 60 * SECOND) != 0 ||
		    m.length != 1000 || memcmp(m.data, &i, sizeof(i)))
			__atomic_fetch_add(&c->wrong, 1, __ATOMIC_RELAXED);
		h_channel_release(c->a, &m);
	}
	return NULL;
}

static void *send_plain(void *arg)
{
	struct crowd *c = arg;
	char data[1000] = {};
	uint32_t i;

	for (i = 0; i < PLAIN; i++) {
		memcpy(data, &i, sizeof(i));
		if (h_channel_send(c->b, data, sizeof(data), 60 * SECOND))
			__atomic_fetch_add(&c->wrong, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

static void *serve(void *arg)
{
	struct crowd *c = arg;
	struct h_message m;
	uint32_t data[BATCH];
	struct h_message q[BATCH];
	int n = 0, ret = 0;

	while (!__atomic_load_n(&c->over, __ATOMIC_RELAXED)) {
		ret = h_channel_receive(c->b, &m, n ? 1000000 : 10000000);
		if (ret == 0 && m.length == sizeof(*data)) {
			memcpy(&data[n], m.data, sizeof(*data));
			q[n++] = m;
		}
		if (ret == 0)
			h_channel_release(c->b, &m);
		if (n < BATCH && ret != -ETIMEDOUT)
			continue;
		while (n--)
			if (h_channel_reply(c->b, &q[n], &data[n], sizeof(*data), 60 * SECOND))
				__atomic_fetch_add(&c->wrong, 1, __ATOMIC_RELAXED);
		n = 0;
	}
	return NULL;
}

TEST_F(requests, each_of_many_threads_gets_its_own)
{
	pthread_t askers[ASKERS], plain[2], server;
	struct crowd c = { .a = self->a, .b = self->b };
	int i;

	if (variant->flags & H_MANAGER_SINGLE)
		SKIP(return, "one thread");
	h_channel_reply_only(self->b);
	ASSERT_EQ(0, pthread_create(&server, NULL, serve, &c));
	ASSERT_EQ(0, pthread_create(&plain[0], NULL, receive_plain, &c));
	ASSERT_EQ(0, pthread_create(&plain[1], NULL, send_plain, &c));
	for (i = 0; i < ASKERS; i++)
		ASSERT_EQ(0, pthread_create(&askers[i], NULL, ask_many, &c));
	for (i = 0; i < ASKERS; i++)
		pthread_join(askers[i], NULL);
	pthread_join(plain[0], NULL);
	pthread_join(plain[1], NULL);
	__atomic_store_n(&c.over, true, __ATOMIC_RELAXED);
	pthread_join(server, NULL);
	EXPECT_EQ(0, c.wrong);
	EXPECT_EQ(0, self->a->request_count);
	EXPECT_EQ(0, self->a->waiting);
}

static void *wait_for_reply(void *arg)
{
	struct asker *k = arg;
	struct h_message m;

	k->ret = h_channel_request_wait(k->ch, k->id, &m, 60 * SECOND);
	h_channel_release(k->ch, &m);
	return NULL;
}

static void *receive_one(void *arg)
{
	struct asker *k = arg;
	struct h_message m;

	k->ret = h_channel_receive(k->ch, &m, 60 * SECOND);
	h_channel_release(k->ch, &m);
	return NULL;
}

/* A thread that sleeps with the right to receive tells the others what it finds for them. */
TEST_F(requests, who_waits_is_told_by_who_receives)
{
	uint32_t id = ask(self->a, self->b, "Q");
	struct asker k[2] = { { .ch = self->a, .id = id }, { .ch = self->a } };
	pthread_t thread[2];
	struct h_message q;
	int order;

	if (variant->flags & H_MANAGER_SINGLE)
		SKIP(return, "one thread");
	ASSERT_TRUE(comes(self->b, self->a, "Q", &q));
	h_channel_reply_only(self->b);
	for (order = 0; order < 2; order++) {
		k[0].ret = -1;
		k[1].ret = -1;
		ASSERT_EQ(0, pthread_create(&thread[order], NULL,
					    order ? receive_one : wait_for_reply, &k[order]));
		ht_sleep_ns(SECOND / 20);
		ASSERT_EQ(0, pthread_create(&thread[!order], NULL,
					    order ? wait_for_reply : receive_one, &k[!order]));
		while (!__atomic_load_n(&self->a->waiting, __ATOMIC_RELAXED))
			ht_sleep_ns(1000000);
		/* First what is for the one that was second. */
		ASSERT_EQ(0, order ? answer(self->b, self->a, &q, "own") :
				     puts_to(self->b, self->a, "plain"));
		pthread_join(thread[!order], NULL);
		EXPECT_EQ(0, k[!order].ret);
		ASSERT_EQ(0, order ? puts_to(self->b, self->a, "plain") :
				     answer(self->b, self->a, &q, "own"));
		pthread_join(thread[order], NULL);
		EXPECT_EQ(0, k[order].ret);
		h_channel_release(self->b, &q);
		if (order)
			break;
		k[0].id = ask(self->a, self->b, "Q");
		ASSERT_TRUE(comes(self->b, self->a, "Q", &q));
	}
}

TEST_HARNESS_MAIN
