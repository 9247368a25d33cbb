// SPDX-License-Identifier: GPL-2.0-only
/* Streams: when a sender is called back, for what, and how often. */
#include <pthread.h>

#include <hamlyn/stream.h>

/* To see that another thread is in the middle of a send. */
#include "stream/stream.h"

#include "kselftest_harness.h"
#include "hamlyn_test.h"
#include "stopped.h"

#define BUFFER	4096
#define LONG	(1 << 20)

FIXTURE(calls) {
	struct h_dev *dev[2];
	struct h_manager *to;
	struct h_manager *from;
	struct h_stream_receiver *receiver;
	struct h_stream_sender *sender;
	unsigned char *data;
	uint32_t called;
	int result;		/* of what the call back did */
};

FIXTURE_SETUP(calls)
{
	static const struct h_stream_attr attr = {
		.buffers = 4, .buffer_size = BUFFER, .max_buffer_size = BUFFER,
	};
	struct h_seed seed;
	int i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, i ? ht_open_tx(&self->dev[i]) : ht_open(&self->dev[i]));
	}
	ASSERT_EQ(0, h_manager_create(self->dev[0], NULL, &self->to));
	ASSERT_EQ(0, h_manager_create(self->dev[1], NULL, &self->from));
	ASSERT_EQ(0, h_stream_receiver_create(self->to, &attr,
					      &self->receiver));
	h_stream_receiver_seed(self->receiver, &seed);
	ASSERT_EQ(0, h_stream_sender_create(self->from, &seed, &self->sender));
	self->data = calloc(1, LONG);
	ASSERT_NE(NULL, self->data);
}

FIXTURE_TEARDOWN(calls)
{
	h_stream_sender_close(self->sender, H_NOWAIT);
	EXPECT_EQ(0, h_stream_receiver_destroy(self->receiver));
	EXPECT_EQ(0, h_manager_destroy(self->from));
	EXPECT_EQ(0, h_manager_destroy(self->to));
	h_close(self->dev[0]);
	h_close(self->dev[1]);
	free(self->data);
}

/* ---- what is collected ---- */

TEST_F(calls, who_drains_sends_what_was_collected)
{
	struct h_record record;

	ASSERT_EQ(3, h_stream_send(self->sender, "abc", 3, H_NOWAIT));
	EXPECT_EQ(-EAGAIN, h_stream_receive(self->receiver, &record, H_NOWAIT));
	ASSERT_EQ(0, h_manager_drain(self->from, ht_patience_ns()));
	ASSERT_EQ(0, h_stream_receive(self->receiver, &record, ht_patience_ns()));
	EXPECT_EQ(3, record.length);
	h_stream_release(self->receiver, &record);
}

/* H 3.3: Small sends are collected into one piece, and a flush forces it out. */
TEST_F(calls, a_flush_sends_what_was_collected_in_one_piece)
{
	struct h_record record;

	ASSERT_EQ(3, h_stream_send(self->sender, "abc", 3, H_NOWAIT));
	ASSERT_EQ(2, h_stream_send(self->sender, "de", 2, H_NOWAIT));
	EXPECT_EQ(-EAGAIN, h_stream_receive(self->receiver, &record, H_NOWAIT));
	ASSERT_EQ(0, h_stream_flush(self->sender, ht_patience_ns()));
	ASSERT_EQ(0, h_stream_receive(self->receiver, &record, ht_patience_ns()));
	ASSERT_EQ(5, record.length);
	EXPECT_EQ(0, memcmp(record.data, "abcde", 5));
	h_stream_release(self->receiver, &record);
}

/* H 3.3: A sender that is as far ahead as there are buffers waits. */
TEST_F(calls, who_drains_says_so_when_there_is_no_room)
{
	ssize_t n;

	do
		n = h_stream_send(self->sender, self->data, LONG, 10 * HT_MS);
	while (n > 0);
	ASSERT_EQ(-ETIMEDOUT, n);
	EXPECT_EQ(-EAGAIN, h_manager_drain(self->from, H_NOWAIT));
	EXPECT_EQ(-ETIMEDOUT, h_manager_drain(self->from, HT_MS));
}

/* ---- call backs ---- */

static void count(struct h_stream_sender *s, void *arg)
{
	FIXTURE_DATA(calls) *self = arg;

	(void)s;
	self->called++;
}

static void count_and_send(struct h_stream_sender *s, void *arg)
{
	FIXTURE_DATA(calls) *self = arg;

	self->called++;
	self->result = (int)h_stream_send(s, self->data, LONG, H_NOWAIT);
}

static void count_and_flush(struct h_stream_sender *s, void *arg)
{
	FIXTURE_DATA(calls) *self = arg;

	self->called++;
	self->result = h_stream_flush(s, H_NOWAIT);
}

static void receive_all(FIXTURE_DATA(calls) *self)
{
	struct h_record record;

	while (h_stream_receive(self->receiver, &record, H_NOWAIT) == 0)
		h_stream_release(self->receiver, &record);
}

static bool is_called(FIXTURE_DATA(calls) *self)
{
	bool far = getenv("HAMLYN_TX_LANDS") && self->receiver;
	uint32_t before = self->called;
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (self->called == before && ht_poll_more(&poll)) {
		h_manager_dispatch(self->from);
		/* Between hosts some may be on their way: credits go for half of the buffers. */
		if (far)
			receive_all(self);
	}
	return self->called != before;
}

/*
 * Who sleeps until there is something to do sleeps, and dispatches in vain. Between two hosts news
 * of room may still come, one by one.
 */
static bool is_quiet(FIXTURE_DATA(calls) *self)
{
	uint32_t before = self->called, left = getenv("HAMLYN_TX_LANDS") ? 100 : 1, i;
	int err;

	do {
		for (i = 0; i < 10; i++)
			h_manager_dispatch(self->from);
		err = h_manager_wait(self->from, 50 * HT_MS);
	} while (!err && self->called == before && --left);
	return self->called == before && err == -ETIMEDOUT;
}

/* ---- and what goes on meanwhile ---- */

/* Between two hosts what was sent is still to come: something of it gives room. */
static void receive_some(FIXTURE_DATA(calls) *self)
{
	/* Between hosts is_called() may have taken all that there was, and takes what comes. */
	int64_t wait = getenv("HAMLYN_TX_LANDS") ? 20 * HT_MS : ht_patience_ns();
	struct h_record record;

	if (!h_stream_receive(self->receiver, &record, wait))
		h_stream_release(self->receiver, &record);
	receive_all(self);
}

static void fill(struct __test_metadata *_metadata, FIXTURE_DATA(calls) *self)
{
	ssize_t n;

	do
		n = h_stream_send(self->sender, self->data, LONG, H_NOWAIT);
	while (n > 0);
	ASSERT_EQ(-EAGAIN, n);
}

struct other {
	struct h_stream_sender *sender;
	const void *data;
	size_t length;		/* 0: flush */
	int again;		/* bytes */
	ssize_t result;
	uint32_t done;		/* atomic */
};

static void *send_too(void *arg)
{
	struct other *o = arg;

	o->result = o->length ? h_stream_send(o->sender, o->data, o->length,
					      ht_patience_ns()) :
				h_stream_flush(o->sender, ht_patience_ns());
	if (o->again)
		o->result += h_stream_send(o->sender, o->data, o->again,
					   ht_patience_ns());
	__atomic_store_n(&o->done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* It ends with that others can send as well. */
static bool gets_through(FIXTURE_DATA(calls) *self, struct other *o,
			 pthread_t thread)
{
	struct ht_poll poll;
	bool done;

	ht_poll_begin(&poll);
	do {
		receive_all(self);
		done = __atomic_load_n(&o->done, __ATOMIC_SEQ_CST);
	} while (!done && ht_poll_more(&poll));
	pthread_join(thread, NULL);
	/* Between two hosts some of it is still on its way. */
	if (getenv("HAMLYN_TX_LANDS") && ht_drain(self->from))
		return false;
	receive_all(self);
	return done && o->result == (ssize_t)o->length + o->again;
}

/* ---- refused ---- */

/* Refused here, and before anybody is called back another thread is not. */
static void other_is_faster(struct __test_metadata *_metadata,
			    FIXTURE_DATA(calls) *self, size_t length)
{
	struct other o = {
		.sender = self->sender, .data = self->data, .length = length,
	};
	pthread_t thread;

	h_stream_sender_on_ready(self->sender, count, self);
	fill(_metadata, self);
	EXPECT_TRUE(is_quiet(self));
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_too, &o));
	ASSERT_TRUE(gets_through(self, &o, thread));
	EXPECT_EQ(0, self->called);
	EXPECT_TRUE(is_called(self));
}

TEST_F(calls, another_threads_send_takes_nobodys_call_back)
{
	other_is_faster(_metadata, self, 1);
}

TEST_F(calls, another_threads_long_send_takes_nobodys_call_back)
{
	other_is_faster(_metadata, self, LONG);
}

TEST_F(calls, another_threads_flush_takes_nobodys_call_back)
{
	other_is_faster(_metadata, self, 0);
}

TEST_F(calls, who_was_kept_out_is_called_although_the_other_sends_again)
{
	struct other o = {
		.sender = self->sender, .data = self->data, .length = LONG,
		.again = 1,
	};
	uint32_t *sending = &self->sender->sending;
	struct ht_poll poll;
	pthread_t thread;

	h_stream_sender_on_ready(self->sender, count, self);
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_too, &o));
	ht_poll_begin(&poll);
	while (h__try_lock(sending)) {
		h__unlock(sending);
		ht_sleep_ns(HT_MS);
		ASSERT_TRUE(ht_poll_more(&poll));
	}
	/* It does not get further than four buffers. */
	EXPECT_EQ(-EAGAIN, h_stream_send(self->sender, "x", 1, H_NOWAIT));
	ASSERT_TRUE(gets_through(self, &o, thread));
	EXPECT_EQ(0, self->called);
	EXPECT_TRUE(is_called(self));
}

/* Between two hosts room from before may come behind the refusal: until there is none. */
static bool is_full(struct __test_metadata *_metadata, FIXTURE_DATA(calls) *self)
{
	unsigned int left = getenv("HAMLYN_TX_LANDS") ? 100 : 1;

	do
		fill(_metadata, self);
	while (!is_quiet(self) && --left);
	return left;
}

TEST_F(calls, who_does_nothing_is_called_once_for_each_time_it_was_refused)
{
	uint32_t round, before;

	h_stream_sender_on_ready(self->sender, count, self);
	for (round = 1; round <= 3; round++) {
		EXPECT_TRUE(is_full(_metadata, self));
		before = self->called;
		receive_some(self);
		EXPECT_TRUE(is_called(self));
		EXPECT_TRUE(is_quiet(self));
		EXPECT_EQ(before + 1, self->called);
	}
}

TEST_F(calls, who_is_refused_in_its_call_back_is_called_again)
{
	uint32_t round;

	fill(_metadata, self);
	h_stream_sender_on_ready(self->sender, count_and_send, self);
	for (round = 0; round < 20; round++) {
		receive_some(self);
		ASSERT_TRUE(is_called(self));
		/* A part of it, or at times nothing. */
		EXPECT_TRUE(self->result == -EAGAIN ||
			    (self->result > 0 && self->result < LONG))
			TH_LOG("%d", self->result);
	}
}

TEST_F(calls, who_was_refused_before_it_said_whom_to_call_is_called)
{
	fill(_metadata, self);
	receive_some(self);
	h_stream_sender_on_ready(self->sender, count, self);
	EXPECT_TRUE(is_called(self));
}

/* ---- the receiver is gone ---- */

static void end_receiver(struct __test_metadata *_metadata,
			 FIXTURE_DATA(calls) *self)
{
	ASSERT_EQ(0, h_stream_receiver_destroy(self->receiver));
	self->receiver = NULL;
}

TEST_F(calls, who_has_nothing_to_send_is_told_once_that_the_receiver_is_gone)
{
	h_stream_sender_on_ready(self->sender, count, self);
	EXPECT_TRUE(is_quiet(self));
	end_receiver(_metadata, self);
	EXPECT_TRUE(is_called(self));
	EXPECT_TRUE(is_quiet(self));
	EXPECT_EQ(1, self->called);
	EXPECT_EQ(-EPIPE, h_stream_send(self->sender, "x", 1, H_NOWAIT));
	EXPECT_EQ(-EPIPE, h_stream_flush(self->sender, H_NOWAIT));
	EXPECT_TRUE(is_quiet(self));
}

TEST_F(calls, who_says_late_whom_to_call_is_told_that_the_receiver_is_gone)
{
	struct ht_poll poll;
	ssize_t n;

	end_receiver(_metadata, self);
	ht_poll_begin(&poll);
	do {
		/* Or it would look only when it has filled all buffers, byte by byte. */
		h_manager_poll(self->from);
		n = h_stream_send(self->sender, self->data, 1, H_NOWAIT);
	} while (n != -EPIPE && ht_poll_more(&poll));
	ASSERT_EQ(-EPIPE, n);
	h_stream_sender_on_ready(self->sender, count, self);
	EXPECT_TRUE(is_called(self));
	EXPECT_TRUE(is_quiet(self));
}

TEST_F(calls, who_was_refused_is_told_that_the_receiver_is_gone)
{
	h_stream_sender_on_ready(self->sender, count_and_send, self);
	fill(_metadata, self);
	end_receiver(_metadata, self);
	ASSERT_TRUE(is_called(self));
	EXPECT_EQ(-EPIPE, self->result);
	EXPECT_TRUE(is_quiet(self));
}

TEST_F(calls, who_flushes_is_not_told_for_ever_that_the_receiver_is_gone)
{
	h_stream_sender_on_ready(self->sender, count_and_flush, self);
	fill(_metadata, self);
	end_receiver(_metadata, self);
	ASSERT_TRUE(is_called(self));
	EXPECT_EQ(-EPIPE, self->result);
	EXPECT_TRUE(is_quiet(self));
}

/* ---- a process that is stopped in the NIC ---- */

/* The most time that a call which does not wait takes, while the stream grows. */
static const char *grow(struct h_stream_sender *s, struct h_stream_receiver *r, int64_t *longest)
{
	static unsigned char data[LONG];
	size_t sent = 0, got = 0, most = sizeof(data);
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct h_record record;

	*longest = 0;
	while (got < most) {
		int64_t took = -ht_now_ns();
		ssize_t n;
		int ret;

		if (sent < most) {
			n = h_stream_send(s, data + sent, most - sent, H_NOWAIT);
			if (n < 0 && n != -EAGAIN)
				return "it cannot be sent";
			sent += n > 0 ? (size_t)n : 0;
		} else {
			h_stream_flush(s, H_NOWAIT);
		}
		ret = h_stream_receive(r, &record, H_NOWAIT);
		if (ret == 0) {
			got += record.length;
			h_stream_release(r, &record);
		} else if (ret != -EAGAIN) {
			return "it cannot be received";
		}
		took += ht_now_ns();
		if (took > *longest)
			*longest = took;
		if (ht_now_ns() > end)
			return "it does not end";
	}
	return NULL;
}

TEST_F(calls, who_is_stopped_in_the_nic_holds_up_no_stream)
{
	static const struct h_stream_attr attr = {
		.buffers = 4, .buffer_size = 128, .max_buffer_size = 65536,
	};
	struct h_datagram_address address;
	struct h_datagram_receiver *d;
	struct h_stream_receiver *r;
	struct h_stream_sender *s;
	struct h_seed seed;
	int64_t longest;
	pid_t pid;

	if (!h_dev_is_embedded(self->dev[0]))
		SKIP(return, "the NIC does not stop with who sends");
	ASSERT_EQ(0, h_datagram_receiver_create(self->to, NULL, &d));
	h_datagram_receiver_seed(d, &seed);
	ASSERT_EQ(0, h_datagram_resolve(&seed, &address));
	ASSERT_EQ(0, h_stream_receiver_create(self->to, &attr, &r));
	h_stream_receiver_seed(r, &seed);
	ASSERT_EQ(0, h_stream_sender_create(self->from, &seed, &s));
	pid = stopped_sender(&address);
	ASSERT_GT(pid, 0);
	EXPECT_EQ(NULL, ht_complain(grow(s, r, &longest)));
	EXPECT_LT(longest, stopped_soon());
	/* The old buffers are still there, and go when it goes on. */
	EXPECT_EQ(128, r->gen[0].buffer);
	kill(pid, SIGCONT);
	EXPECT_EQ(0, ht_reap(pid));
	ht_sleep_ns(200 * HT_MS);
	EXPECT_EQ(NULL, ht_complain(grow(s, r, &longest)));
	EXPECT_LT(128, r->gen[0].buffer);
	h_stream_sender_close(s, H_NOWAIT);
	EXPECT_EQ(0, h_stream_receiver_destroy(r));
	EXPECT_EQ(0, h_datagram_receiver_destroy(d));
}

TEST_HARNESS_MAIN
