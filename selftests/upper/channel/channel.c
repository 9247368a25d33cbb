// SPDX-License-Identifier: GPL-2.0-only
/* Channels: messages whole, in order, whoever sends, closes, dies or lies. */
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include <hamlyn/channel.h>

/* For records that say anything, and to know what a thread is at. */
#include "channel/channel.h"

#include "kselftest_harness.h"
#include "hamlyn_test.h"
#include "refused_watch.h"
#include "used_tags.h"

#define SECOND	1000000000LL
#define LONGEST	(3u << 20)

FIXTURE(channel) {
	struct h_dev *dev[2];
	struct h_manager *m[2];
	struct h_channel *a;
	struct h_channel *b;
	unsigned char *data;
};

FIXTURE_VARIANT(channel) {
	bool one_manager;
	uint32_t flags;
	struct h_channel_attr attr;
	uint32_t wq_entries, wq_entry_size;
};

FIXTURE_VARIANT_ADD(channel, defaults) {
};

FIXTURE_VARIANT_ADD(channel, one_manager) {
	.one_manager = true,
};

FIXTURE_VARIANT_ADD(channel, single) {
	.flags = H_MANAGER_SINGLE,
};

FIXTURE_VARIANT_ADD(channel, fewest_buffers) {
	.attr = { .buffers = 2, .buffer_size = 128, .max_buffer_size = 1 },
	.wq_entries = 2, .wq_entry_size = 256,
};

FIXTURE_SETUP(channel)
{
	struct h_manager_attr attr = {
		.flags = variant->flags,
		.wq_entries = variant->wq_entries,
		.wq_entry_size = variant->wq_entry_size,
	};
	int i;

	for (i = 0; i < 2; i++) {
		self->dev[i] = self->dev[0];
		self->m[i] = self->m[0];
		if (i && variant->one_manager)
			break;
		ASSERT_EQ(0, i ? ht_open_tx(&self->dev[i]) : ht_open(&self->dev[i]));
		ASSERT_EQ(0, h_manager_create(self->dev[i], &attr,
					      &self->m[i]));
	}
	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], &variant->attr,
				    &self->a, &self->b));
	self->data = malloc(LONGEST);
	ASSERT_NE(NULL, self->data);
}

FIXTURE_TEARDOWN(channel)
{
	h_channel_close(self->a, H_NOWAIT);
	h_channel_close(self->b, H_NOWAIT);
	EXPECT_EQ(0, h_manager_destroy(self->m[0]));
	h_close(self->dev[0]);
	if (!variant->one_manager) {
		EXPECT_EQ(0, h_manager_destroy(self->m[1]));
		h_close(self->dev[1]);
	}
	free(self->data);
}

/* The next message at @to, while @from's manager is looked after as well. */
static int get(struct h_channel *to, struct h_manager *from,
	       struct h_message *m)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do {
		h_manager_dispatch(from);
		ret = h_channel_receive(to, m, H_NOWAIT);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	return ret;
}

/* A work queue may be full for a moment, and credits on their way. */
static int putv(struct h_channel *ch, struct h_manager *to,
		const struct iovec *iov, int iovcnt)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do {
		ret = h_channel_sendv(ch, iov, iovcnt, H_NOWAIT);
		if (ret == -EAGAIN)
			h_manager_poll(to);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	return ret;
}

static int put(struct h_channel *ch, struct h_manager *to, const void *data,
	       size_t length)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do {
		ret = h_channel_send(ch, data, length, H_NOWAIT);
		if (ret == -EAGAIN)
			h_manager_poll(to);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	return ret;
}

static const char *arrives(struct h_channel *to, struct h_manager *from,
			   size_t length, uint64_t seed)
{
	struct h_message m;
	const char *complaint = NULL;

	if (get(to, from, &m) != 0)
		return "it does not arrive";
	if (m.length != length)
		complaint = "the length is wrong";
	else if (ht_match(m.data, length, seed) != length)
		complaint = "the data is wrong";
	h_channel_release(to, &m);
	return complaint;
}

/* ---- messages ----------------------------------------------------------- */

static const size_t sizes[] = { 0, 1, 2, 60, 127, 128, 129, 191, 192, 193, 383,
	384, 385, 448, 449, 1000, 1024, 1025, 4095, 4096, 4097, 16384, 65535,
	65536, 65537, 100000, 1 << 20, LONGEST };

TEST_F(channel, any_size_arrives_whole_both_ways)
{
	unsigned int i;

	for (i = 0; i < 2 * ARRAY_SIZE(sizes); i++) {
		size_t n = sizes[i / 2];
		struct h_channel *from = i % 2 ? self->b : self->a;
		struct h_channel *to = i % 2 ? self->a : self->b;

		ht_fill(self->data, n, i);
		ASSERT_EQ(0, put(from, self->m[!(i % 2)], self->data, n)) {
			TH_LOG("%zu bytes", n);
		}
		/* It must not matter any more. */
		memset(self->data, 0xee, n);
		ASSERT_NO(arrives(to, self->m[i % 2], n, i)) {
			TH_LOG("%zu bytes", n);
		}
	}
}

TEST_F(channel, memory_of_the_manager_is_sent_in_place)
{
	unsigned int i;
	void *p;

	ASSERT_EQ(0, h_manager_alloc(self->m[0], LONGEST, &p));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ht_fill(p, sizes[i], i);
		ASSERT_EQ(0, put(self->a, self->m[1], p, sizes[i]));
		memset(p, 0xee, sizes[i]);
		ASSERT_NO(arrives(self->b, self->m[0], sizes[i], i));
	}
	h_manager_free(self->m[0], p);
}

TEST_F(channel, pieces_make_one_message)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		size_t n = sizes[i];
		const struct iovec iov[] = {
			{ self->data, n / 3 },
			{ NULL, 0 },
			{ self->data + n / 3, n / 2 - n / 3 },
			{ self->data + n / 2, n - n / 2 },
			{ self->data, 0 },
		};

		ht_fill(self->data, n, i);
		ASSERT_EQ(0, putv(self->a, self->m[1], iov, ARRAY_SIZE(iov)));
		memset(self->data, 0xee, n);
		ASSERT_NO(arrives(self->b, self->m[0], n, i));
	}
	EXPECT_EQ(0, putv(self->a, self->m[1], NULL, 0));
	EXPECT_NO(arrives(self->b, self->m[0], 0, 0));
	EXPECT_EQ(-EINVAL, h_channel_sendv(self->a, NULL, -1, H_NOWAIT));
}

TEST_F(channel, what_was_received_stays_until_it_is_released)
{
	struct h_message m[2], next;
	int i;

	for (i = 0; i < 2; i++) {
		ht_fill(self->data, 100, i);
		ASSERT_EQ(0, put(self->a, self->m[1], self->data, 100));
	}
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, get(self->b, self->m[0], &m[i]));
	}
	/* The younger one first: the older one must not go with it. */
	h_channel_release(self->b, &m[1]);
	h_channel_release(self->b, &m[1]);
	for (i = 0; i < 100; i++) {
		if (h_channel_send(self->a, self->data, 50, SECOND / 10))
			break;
		if (get(self->b, self->m[0], &next) != 0)
			break;
		h_channel_release(self->b, &next);
	}
	EXPECT_GT(100, i);
	EXPECT_EQ(100, ht_match(m[0].data, 100, 0));
	h_channel_release(self->b, &m[0]);
	EXPECT_EQ(NULL, m[0].data);
}

/*
 * On another host the end has to be asked. The second one is joined and told soon, or told while
 * it joins.
 */
static const char *is_told_soon(FIXTURE_DATA(channel) *self, struct h_channel *ch, int joined)
{
	struct ht_poll poll;

	if (joined)
		return joined == -ECONNRESET ? NULL : "not joined, and not for what is to be told";
	ht_poll_begin(&poll);
	do {
		h_manager_dispatch(self->m[0]);
		h_manager_dispatch(self->m[1]);
		if (h__stream_failed(ch->sender))
			return h_channel_send(ch, "x", 1, H_NOWAIT) == -EPIPE ? NULL : "it sends";
	} while (ht_poll_more(&poll));
	return "not told";
}

/* By whomever, and also if that one is gone: its place in the stream is not free again. */
TEST_F(channel, a_seed_makes_one_channel)
{
	bool far = ht_is_remote() && !variant->one_manager;
	struct h_channel *c[3], *first;
	struct h_channel_seed seed;
	unsigned int i;
	int ret;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, h_channel_create(self->m[i % 2], &variant->attr, &c[i]));
	}
	h_channel_seed(c[0], &seed);
	ASSERT_EQ(0, h_channel_join(c[1], &seed));
	ret = h_channel_join(c[2], &seed);
	if (far && !ret) {
		/* It is on that end's host, and has overtaken the other one. */
		EXPECT_NO(is_told_soon(self, c[1], 0));
		first = c[2];
		c[2] = c[1];
		c[1] = first;
	} else {
		EXPECT_EQ(-EALREADY, ret);
		EXPECT_TRUE(ht_is_explained(h_manager_dev(self->m[0]),
					    "made from this seed before"));
		EXPECT_EQ(-ENOTCONN, h_channel_send(c[2], "x", 1, H_NOWAIT));
	}
	h_channel_close(c[2], H_NOWAIT);
	h_channel_seed(c[1], &seed);
	ASSERT_EQ(0, h_channel_join(c[0], &seed));
	ASSERT_EQ(0, put(c[1], self->m[0], "one", 3));
	h_channel_close(c[1], H_NOWAIT);
	ASSERT_EQ(0, h_channel_create(self->m[1], &variant->attr, &c[1]));
	h_channel_seed(c[0], &seed);
	ret = h_channel_join(c[1], &seed);
	if (far) {
		EXPECT_NO(is_told_soon(self, c[1], ret));
	} else {
		EXPECT_EQ(-EALREADY, ret);
	}
	h_channel_close(c[1], H_NOWAIT);
	h_channel_close(c[0], H_NOWAIT);
}

/* One that is received in place, and one that is not. */
TEST_F(channel, a_message_is_released_once_whatever_it_was_copied_to)
{
	static const size_t lengths[] = { 100, LONGEST };
	struct h_dev *dev = h_manager_dev(self->m[1]);
	struct h_message first, copy, next;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ht_fill(self->data, lengths[i], i);
		ASSERT_EQ(0, put(self->a, self->m[1], self->data, lengths[i]));
		ASSERT_EQ(0, get(self->b, self->m[0], &first));
		copy = first;
		EXPECT_EQ(-EINVAL, h_channel_release(self->a, &first));
		EXPECT_TRUE(ht_is_explained(h_manager_dev(self->m[0]), "another channel"));
		EXPECT_EQ(lengths[i], ht_match(first.data, lengths[i], i));
		EXPECT_EQ(0, h_channel_release(self->b, &first));
		EXPECT_EQ(0, h_channel_release(self->b, &first));
		/* Its memory is the next one's, which must not go with it. */
		ht_fill(self->data, lengths[i], i + 1);
		ASSERT_EQ(0, put(self->a, self->m[1], self->data, lengths[i]));
		ASSERT_EQ(0, get(self->b, self->m[0], &next));
		first = copy;
		EXPECT_EQ(-EALREADY, h_channel_release(self->b, &first));
		EXPECT_TRUE(ht_is_explained(dev, "before"));
		EXPECT_EQ(-EALREADY, h_channel_release(self->b, &copy));
		EXPECT_EQ(lengths[i], ht_match(next.data, lengths[i], i + 1));
		copy = next;
		EXPECT_EQ(0, h_channel_release(self->b, &next));
		EXPECT_EQ(-EALREADY, h_channel_release(self->b, &copy));
	}
}

/* Whoever holds many long ones gives them back in any order. */
TEST_F(channel, many_long_messages_are_released_in_any_order)
{
	struct h_message m[23], copy[ARRAY_SIZE(m)];
	unsigned int i, at;

	for (i = 0; i < ARRAY_SIZE(m); i++) {
		ht_fill(self->data, LONGEST / 4, i);
		ASSERT_EQ(0, put(self->a, self->m[1], self->data, LONGEST / 4));
		ASSERT_EQ(0, get(self->b, self->m[0], &m[i]));
		copy[i] = m[i];
	}
	for (i = 0; i < ARRAY_SIZE(m); i++) {
		at = i * 7 % ARRAY_SIZE(m);
		ASSERT_EQ(LONGEST / 4, ht_match(m[at].data, LONGEST / 4, at));
		ASSERT_EQ(0, h_channel_release(self->b, &m[at]));
		ASSERT_EQ(-EALREADY, h_channel_release(self->b, &copy[at]));
	}
}

TEST_F(channel, a_message_that_is_too_long_for_the_caller_is_not_lost)
{
	static const size_t lengths[] = { 100, 100000 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		size_t n = lengths[i];
		struct ht_poll poll;
		ssize_t ret;

		ht_fill(self->data, n, i);
		ASSERT_EQ(0, put(self->a, self->m[1], self->data, n));
		memset(self->data, 0, n);
		ht_poll_begin(&poll);
		do {
			h_manager_dispatch(self->m[0]);
			ret = h_channel_receive_copy(self->b, self->data, n - 1,
						     H_NOWAIT);
		} while (ret == -EAGAIN && ht_poll_more(&poll));
		ASSERT_EQ(-EMSGSIZE, ret);
		EXPECT_EQ(-EMSGSIZE, h_channel_receive_copy(self->b, self->data, 0,
							    H_NOWAIT));
		EXPECT_EQ(n, h_channel_receive_copy(self->b, self->data, n, SECOND));
		EXPECT_EQ(n, ht_match(self->data, n, i));
		EXPECT_EQ(-EAGAIN, h_channel_receive_copy(self->b, self->data, n,
							  H_NOWAIT));
	}
}

/* A part of a message must not be lost when the time is over in the middle. */
TEST_F(channel, a_copy_that_was_interrupted_goes_on)
{
	const size_t n = 100000;
	unsigned char *room = malloc(n);
	struct ht_poll poll;
	unsigned int tries = 0;
	ssize_t ret;

	ASSERT_NE(NULL, room);
	ht_fill(self->data, n, 5);
	ASSERT_EQ(0, put(self->a, self->m[1], self->data, n));
	ht_poll_begin(&poll);
	do {
		memset(room, 0, n);
		ret = h_channel_receive_copy(self->b, room, n, H_NOWAIT);
		if (tries++ % 2)
			h_manager_dispatch(self->m[0]);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	EXPECT_EQ(n, (size_t)ret);
	EXPECT_EQ(n, ht_match(room, n, 5));
	free(room);
}

TEST_F(channel, the_rest_of_a_long_message_goes_out_later)
{
	struct h_message m;

	ht_fill(self->data, LONGEST, 3);
	ASSERT_EQ(0, put(self->a, self->m[1], self->data, LONGEST));
	EXPECT_EQ(-EAGAIN, h_channel_send(self->a, "x", 1, H_NOWAIT));
	EXPECT_EQ(-ETIMEDOUT, h_channel_send(self->a, "x", 1, 1000000));
	memset(self->data, 0xee, LONGEST);
	ASSERT_EQ(0, get(self->b, self->m[0], &m));
	EXPECT_EQ(LONGEST, m.length);
	EXPECT_EQ(LONGEST, ht_match(m.data, LONGEST, 3));
	h_channel_release(self->b, &m);
	ASSERT_EQ(0, put(self->a, self->m[1], "x", 1));
	ASSERT_EQ(0, get(self->b, self->m[0], &m));
	EXPECT_EQ(1, m.length);
	h_channel_release(self->b, &m);
}

TEST_F(channel, whoever_polls_pays_what_another_channel_owes)
{
	struct ht_poll poll;
	struct h_message m;
	int ret;

	ht_fill(self->data, LONGEST, 4);
	ASSERT_EQ(0, put(self->a, self->m[1], self->data, LONGEST));
	ht_poll_begin(&poll);
	do {
		h_manager_poll(self->m[0]);
		ret = h_channel_receive(self->b, &m, H_NOWAIT);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	ASSERT_EQ(0, ret);
	EXPECT_EQ(LONGEST, ht_match(m.data, LONGEST, 4));
	h_channel_release(self->b, &m);
}

struct taker {
	struct h_channel *ch;
	struct h_channel *tell;	/* somebody sleeps at its other end until this one is done */
	int result;
	size_t good;
};

static void *take_one(void *arg)
{
	struct taker *t = arg;
	struct h_message m;

	t->result = h_channel_receive(t->ch, &m, ht_patience_ns());
	if (!t->result) {
		t->good = ht_match(m.data, m.length, 5);
		h_channel_release(t->ch, &m);
	}
	if (t->tell)
		t->result = h_channel_send(t->tell, "x", 1, ht_patience_ns()) ?: t->result;
	return NULL;
}

TEST_F(channel, who_sleeps_for_another_channel_pays_too)
{
	struct taker t = { .ch = self->b };
	struct h_channel *from, *to;
	struct h_message m;
	pthread_t thread;

	/* On a manager of one thread its two ends would be two threads'. */
	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], NULL, &from, &to));
	ht_fill(self->data, LONGEST, 5);
	ASSERT_EQ(0, put(self->a, self->m[1], self->data, LONGEST));
	t.tell = to;
	ASSERT_EQ(0, pthread_create(&thread, NULL, take_one, &t));
	/* In one sleep: nothing comes before the long one has been taken. */
	ASSERT_EQ(0, h_channel_receive(from, &m, 2 * ht_patience_ns()));
	h_channel_release(from, &m);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, t.result);
	EXPECT_EQ(LONGEST, t.good);
	h_channel_close(from, H_NOWAIT);
	h_channel_close(to, H_NOWAIT);
}

TEST_F(channel, who_has_drained_owes_nothing)
{
	struct taker t = { .ch = self->b };
	pthread_t thread;

	ht_fill(self->data, LONGEST, 5);
	ASSERT_EQ(0, put(self->a, self->m[1], self->data, LONGEST));
	EXPECT_EQ(-EAGAIN, h_manager_drain(self->m[0], H_NOWAIT));
	EXPECT_EQ(-ETIMEDOUT, h_manager_drain(self->m[0], HT_MS));
	ASSERT_EQ(0, pthread_create(&thread, NULL, take_one, &t));
	EXPECT_EQ(0, h_manager_drain(self->m[0], ht_patience_ns()));
	/* From here on this end does nothing, as one that has ended. */
	pthread_join(thread, NULL);
	EXPECT_EQ(0, t.result);
	EXPECT_EQ(LONGEST, t.good);
	EXPECT_EQ(0, h_manager_drain(self->m[0], H_FOREVER));
}

TEST_F(channel, who_owes_to_one_that_is_gone_owes_nothing)
{
	ASSERT_EQ(0, put(self->a, self->m[1], self->data, LONGEST));
	EXPECT_EQ(-EAGAIN, h_manager_drain(self->m[0], H_NOWAIT));
	h_channel_close(self->b, H_NOWAIT);
	self->b = NULL;
	EXPECT_EQ(0, h_manager_drain(self->m[0], ht_patience_ns()));
}

TEST_F(channel, the_rest_goes_out_also_if_there_is_no_more_memory)
{
	ht_fill(self->data, 1000, 1);
	ASSERT_EQ(0, put(self->a, self->m[1], self->data, 1000));
	ASSERT_NO(arrives(self->b, self->m[0], 1000, 1));
	ASSERT_NO(use_up_tags(self->m[0]));
	ht_fill(self->data, LONGEST, 2);
	ASSERT_EQ(0, put(self->a, self->m[1], self->data, LONGEST));
	ASSERT_NO(arrives(self->b, self->m[0], LONGEST, 2));
	ASSERT_EQ(0, put(self->a, self->m[1], self->data, 1000));
	EXPECT_NO(arrives(self->b, self->m[0], 1000, 2));
}

/* ---- limits ------------------------------------------------------------- */

TEST_F(channel, neither_end_sends_more_than_the_other_takes)
{
	struct h_channel_attr attr = variant->attr;
	struct h_channel *a, *b;

	attr.max_message = 5000;
	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], &attr, &a, &b));
	EXPECT_EQ(-EMSGSIZE, h_channel_send(a, self->data, 5001, H_NOWAIT));
	ht_fill(self->data, 5000, 1);
	EXPECT_EQ(0, put(a, self->m[1], self->data, 5000));
	EXPECT_NO(arrives(b, self->m[0], 5000, 1));
	EXPECT_EQ(-EMSGSIZE, h_channel_send(b, self->data, SIZE_MAX, H_NOWAIT));
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
}

TEST_F(channel, not_joined_it_has_nobody_to_send_to)
{
	struct h_channel_seed seed;
	struct h_channel *ch;
	struct h_peer peer;
	char c;

	ASSERT_EQ(0, h_channel_create(self->m[0], NULL, &ch));
	/* Nor does it wait, and keep out who joins. */
	EXPECT_EQ(-ENOTCONN, h_channel_send(ch, "x", 1, H_FOREVER));
	EXPECT_EQ(-ENOTCONN, h_channel_send(ch, "x", 0, H_NOWAIT));
	EXPECT_EQ(-ETIMEDOUT, h_channel_receive_copy(ch, &c, 1, 1000000));
	EXPECT_EQ(-ENOENT, h_channel_peer(ch, &peer));
	memset(&seed, 0, sizeof(seed));
	EXPECT_EQ(-EINVAL, h_channel_join(ch, &seed));
	EXPECT_EQ(0, h_channel_shutdown(ch, SECOND));
	EXPECT_EQ(0, h_channel_close(ch, SECOND));
	h_channel_seed(self->a, &seed);
	EXPECT_EQ(-EISCONN, h_channel_join(self->b, &seed));
}

static struct {
	const struct h_dev_ops *real;
	const struct h_stream_receiver *joins;
	unsigned int calls;
	bool alone;
} joining;

/* The receiver's is let in, the sender's is not. */
static int watch_once(struct h_watch *w, const struct h_ticket *k, int fd,
		      uint64_t cookie)
{
	if (joining.calls++)
		return -ETIMEDOUT;
	joining.alone = joining.joins->busy;
	return joining.real->watch(w, k, fd, cookie);
}

/* Although all that it takes to send is there. */
TEST_F(channel, who_failed_to_join_does_not_send)
{
	struct h_channel *ch, *other;
	struct h_channel_seed seed;
	struct h_dev_ops ops;

	ASSERT_EQ(0, h_channel_create(self->m[0], NULL, &ch));
	ASSERT_EQ(0, h_channel_create(self->m[1], NULL, &other));
	h_channel_seed(other, &seed);
	joining.real = self->dev[0]->ops;
	joining.joins = ch->receiver;
	ops = *joining.real;
	ops.watch = watch_once;
	self->dev[0]->ops = &ops;
	EXPECT_EQ(-ETIMEDOUT, h_channel_join(ch, &seed));
	self->dev[0]->ops = joining.real;
	EXPECT_EQ(2, joining.calls);
	EXPECT_EQ(-ENOTCONN, h_channel_send(ch, "x", 1, H_NOWAIT));
	EXPECT_EQ(0, h_channel_close(ch, SECOND));
	EXPECT_EQ(0, h_channel_close(other, SECOND));
}

static const char *meet(struct h_channel *ch, const struct h_channel *other)
{
	struct h_channel_seed seed;

	h_channel_seed(other, &seed);
	return h_channel_join(ch, &seed) ? "cannot join" : NULL;
}

/* Another thread that receives would begin one in the same place, and one were lost. */
TEST_F(channel, who_joins_begins_its_watch_alone)
{
	struct h_channel *ch;
	struct h_dev_ops ops;

	ASSERT_EQ(0, h_channel_create(self->m[0], NULL, &ch));
	joining.real = self->dev[0]->ops;
	joining.joins = ch->receiver;
	ops = *joining.real;
	ops.watch = watch_once;
	self->dev[0]->ops = &ops;
	meet(ch, self->b);
	self->dev[0]->ops = joining.real;
	EXPECT_NE(0, joining.calls);
	EXPECT_TRUE(joining.alone);
	EXPECT_FALSE(ch->receiver->busy);
	h_channel_close(ch, H_NOWAIT);
}

/* Shut down, while nobody looks after the other end. */
static int shut_down(struct h_channel *ch)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do
		ret = h_channel_shutdown(ch, H_NOWAIT);
	while (ret == -EAGAIN && ht_poll_more(&poll));
	return ret;
}

TEST_F(channel, who_joins_late_answers_what_came_before)
{
	unsigned int sent = 0, i;
	struct h_channel *a, *b;
	struct h_message m;

	ASSERT_EQ(0, h_channel_create(self->m[0], &variant->attr, &a));
	ASSERT_EQ(0, h_channel_create(self->m[1], &variant->attr, &b));
	ASSERT_NO(meet(a, b));
	while (!h_channel_send(a, "x", 1, H_NOWAIT))
		ASSERT_GT(10000, sent++);
	for (i = 0; i < sent; i++) {
		ASSERT_EQ(0, get(b, self->m[0], &m));
		h_channel_release(b, &m);
	}
	ASSERT_NO(meet(b, a));
	/* Buffers are free, and nothing else has to happen there. */
	for (i = 0; i < sent && !h_channel_send(a, "x", 1, 20 * SECOND); i++)
		;
	EXPECT_EQ(sent, i);
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
}

TEST_F(channel, who_joins_late_answers_the_end)
{
	struct h_channel *a, *b;
	struct h_message m;

	ASSERT_EQ(0, h_channel_create(self->m[0], NULL, &a));
	ASSERT_EQ(0, h_channel_create(self->m[1], NULL, &b));
	ASSERT_NO(meet(a, b));
	ASSERT_EQ(0, h_channel_send(a, "x", 1, H_NOWAIT));
	EXPECT_EQ(-EAGAIN, h_channel_shutdown(a, H_NOWAIT));
	/* It finds the end before it knows to whom to say so. */
	ht_sleep_ns(20 * HT_MS);
	h_manager_poll(self->m[1]);
	ASSERT_NO(meet(b, a));
	EXPECT_EQ(0, get(b, self->m[0], &m));
	h_channel_release(b, &m);
	EXPECT_EQ(-ENODATA, get(b, self->m[0], &m));
	EXPECT_EQ(0, shut_down(a));
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
}

/* ---- the end ------------------------------------------------------------ */

struct closer {
	struct h_channel *channel;
	int result;
};

static void *close_it(void *arg)
{
	struct closer *c = arg;

	c->result = h_channel_close(c->channel, 20 * SECOND);
	return NULL;
}

/* That the other end is gone is known at once, but between hosts when its host has said so. */
static int send_to_nobody(struct h_channel *ch)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do
		ret = h_channel_send(ch, "x", 1, SECOND);
	while (!ret && ht_is_remote() && ht_poll_more(&poll));
	return ret;
}

TEST_F(channel, who_closes_is_the_end_behind_the_last_message)
{
	struct closer c = { .channel = self->a };
	struct h_message m;
	pthread_t thread;
	int i;

	if (variant->flags & H_MANAGER_SINGLE && variant->one_manager)
		SKIP(return, "one thread");
	if (variant->attr.buffers)
		SKIP(return, "room for three messages");
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, put(self->a, self->m[1], "x", 1));
	}
	ASSERT_EQ(0, pthread_create(&thread, NULL, close_it, &c));
	self->a = NULL;
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, h_channel_receive(self->b, &m, 20 * SECOND));
		h_channel_release(self->b, &m);
	}
	EXPECT_EQ(-ENODATA, h_channel_receive(self->b, &m, 20 * SECOND));
	EXPECT_EQ(-ENODATA, h_channel_receive(self->b, &m, H_NOWAIT));
	EXPECT_EQ(-ENODATA, h_channel_receive_copy(self->b, self->data, 1, H_NOWAIT));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, c.result);
	EXPECT_EQ(-EPIPE, send_to_nobody(self->b));
	EXPECT_EQ(0, h_channel_shutdown(self->b, SECOND));
	EXPECT_EQ(0, h_channel_close(self->b, SECOND));
	self->b = NULL;
}

TEST_F(channel, who_is_shut_down_can_still_receive)
{
	struct h_message m;
	struct ht_poll poll;
	int ret;

	ASSERT_EQ(0, put(self->a, self->m[1], "x", 1));
	ht_poll_begin(&poll);
	do {
		h_manager_poll(self->m[1]);
		ret = h_channel_shutdown(self->a, H_NOWAIT);
	} while (ret == -EAGAIN && ht_poll_more(&poll));
	ASSERT_EQ(0, ret);
	EXPECT_EQ(-EPIPE, h_channel_send(self->a, "x", 1, H_NOWAIT));
	ASSERT_EQ(0, get(self->b, self->m[0], &m));
	h_channel_release(self->b, &m);
	EXPECT_EQ(-ENODATA, get(self->b, self->m[0], &m));
	ASSERT_EQ(0, put(self->b, self->m[0], "yz", 2));
	ASSERT_EQ(0, get(self->a, self->m[1], &m));
	EXPECT_EQ(2, m.length);
	h_channel_release(self->a, &m);
}

TEST_F(channel, who_is_gone_is_told_at_once)
{
	struct h_message m;
	int64_t begin;

	ASSERT_EQ(0, put(self->a, self->m[1], "x", 1));
	ASSERT_EQ(0, put(self->a, self->m[1], self->data, LONGEST));
	/* In the middle of a message: that is no good end. */
	ASSERT_EQ(-EAGAIN, h_channel_close(self->a, H_NOWAIT));
	self->a = NULL;
	begin = ht_now_ns();
	ASSERT_EQ(0, h_channel_receive(self->b, &m, 20 * SECOND));
	h_channel_release(self->b, &m);
	EXPECT_EQ(-ECONNRESET, h_channel_receive(self->b, &m, 20 * SECOND));
	EXPECT_EQ(-EPIPE, h_channel_send(self->b, "x", 1, 20 * SECOND));
	EXPECT_EQ(-EPIPE, h_channel_close(self->b, 20 * SECOND));
	self->b = NULL;
	EXPECT_GT(begin + 10 * SECOND, ht_now_ns());
}

/* ---- event loops -------------------------------------------------------- */

struct echoer {
	struct h_channel *channel;
	struct h_message held;	/* to be sent when it can be */
	unsigned int echoed;
	int end;		/* what receiving or sending ended with */
};

static int echo_one(struct echoer *e)
{
	int ret = 0;

	if (!e->held.data)
		ret = h_channel_receive(e->channel, &e->held, H_NOWAIT);
	if (ret)
		return ret;
	ret = h_channel_send(e->channel, e->held.data, e->held.length, H_NOWAIT);
	if (ret == -EAGAIN)
		return ret;
	h_channel_release(e->channel, &e->held);
	e->echoed += !ret;
	return ret;
}

static void echo(struct h_channel *ch, void *arg)
{
	struct echoer *e = arg;
	int ret = echo_one(e);

	if (!ret || ret == -EAGAIN)
		return;
	e->end = ret;
	h_channel_release(ch, &e->held);
	h_channel_close(ch, H_NOWAIT);
	e->channel = NULL;
}

TEST_F(channel, an_event_loop_serves_and_closes_in_the_call_back)
{
	struct echoer e = { .channel = self->b };
	unsigned int i;

	h_channel_on_ready(self->b, echo, &e);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ht_fill(self->data, sizes[i], i);
		ASSERT_EQ(0, put(self->a, self->m[1], self->data, sizes[i]));
		memset(self->data, 0xee, sizes[i]);
		while (e.echoed <= i && !e.end) {
			h_manager_dispatch(self->m[1]);
			h_manager_dispatch(self->m[0]);
		}
		ASSERT_NO(arrives(self->a, self->m[1], sizes[i], i));
	}
	h_channel_close(self->a, H_NOWAIT);
	self->a = NULL;
	for (i = 0; i < 1000000 && e.channel; i++)
		h_manager_dispatch(self->m[1]);
	EXPECT_EQ(NULL, e.channel);
	self->b = NULL;
}

struct small {
	unsigned char data[100];
	size_t room;
	ssize_t got;
};

/* A little more room each time. */
static void copy_or_grow(struct h_channel *ch, void *arg)
{
	struct small *s = arg;

	s->got = h_channel_receive_copy(ch, s->data, s->room, H_NOWAIT);
	s->room += s->got == -EMSGSIZE;
}

TEST_F(channel, a_message_that_was_too_long_is_told_again)
{
	struct small s = { .room = 1 };
	struct ht_poll poll;

	ht_fill(self->data, sizeof(s.data), 1);
	ASSERT_EQ(0, put(self->a, self->m[1], self->data, sizeof(s.data)));
	h_channel_on_ready(self->b, copy_or_grow, &s);
	ht_poll_begin(&poll);
	while (s.got <= 0 && ht_poll_more(&poll))
		h_manager_dispatch(self->m[1]);
	ASSERT_EQ(sizeof(s.data), s.got);
	EXPECT_EQ(sizeof(s.data), s.room);
	EXPECT_EQ(sizeof(s.data), ht_match(s.data, sizeof(s.data), 1));
	/* And then no more. */
	h_manager_dispatch(self->m[1]);
	EXPECT_EQ(sizeof(s.data), s.got);
	h_channel_on_ready(self->b, NULL, NULL);
}

static void count(struct h_channel *ch, void *arg)
{
	(void)ch;
	++*(unsigned int *)arg;
}

TEST_F(channel, who_was_blocked_is_called_back)
{
	unsigned int called = 0, sent = 0;
	struct h_message m;
	struct ht_poll poll;

	if (variant->one_manager)
		SKIP(return, "counts calls for one end");
	h_channel_on_ready(self->a, count, &called);
	while (!h_channel_send(self->a, "x", 1, H_NOWAIT))
		ASSERT_GT(10000, sent++);
	h_manager_dispatch(self->m[0]);
	EXPECT_EQ(0, called);
	while (sent--) {
		ASSERT_EQ(0, get(self->b, self->m[1], &m));
		h_channel_release(self->b, &m);
	}
	ht_poll_begin(&poll);
	while (!called && ht_poll_more(&poll))
		h_manager_dispatch(self->m[0]);
	EXPECT_EQ(1, called);
	h_manager_dispatch(self->m[0]);
	EXPECT_EQ(1, called);
	EXPECT_EQ(0, h_channel_send(self->a, "x", 1, H_NOWAIT));
}

TEST_F(channel, who_was_blocked_is_called_back_also_if_he_says_so_later)
{
	unsigned int called = 0, sent = 0;
	struct h_message m;
	struct ht_poll poll;

	if (variant->one_manager)
		SKIP(return, "counts calls for one end");
	while (!h_channel_send(self->a, "x", 1, H_NOWAIT))
		ASSERT_GT(10000, sent++);
	while (sent--) {
		ASSERT_EQ(0, get(self->b, self->m[1], &m));
		h_channel_release(self->b, &m);
	}
	/* What could be sent again was found out when there was nobody to call. */
	ht_sleep_ns(20 * HT_MS);
	h_manager_dispatch(self->m[0]);
	h_manager_dispatch(self->m[0]);
	h_channel_on_ready(self->a, count, &called);
	ht_poll_begin(&poll);
	while (!called && ht_poll_more(&poll))
		h_manager_dispatch(self->m[0]);
	EXPECT_EQ(1, called);
	h_manager_dispatch(self->m[0]);
	EXPECT_EQ(1, called);
}

#define SENDS	2000

static void *keep_sending(void *channel)
{
	struct ht_poll poll;
	long sent = 0;

	ht_poll_begin(&poll);
	while (sent < SENDS && ht_poll_more(&poll)) {
		if (!h_channel_send(channel, "x", 1, H_NOWAIT))
			sent++;
	}
	return (void *)sent;
}

/* It looks whether the sender can go on while that is going on: the thread sanitizer watches. */
TEST_F(channel, one_thread_sends_and_another_dispatches)
{
	unsigned int called = 0, received = 0;
	struct h_message m;
	pthread_t thread;
	void *sent;

	if (variant->flags & H_MANAGER_SINGLE)
		SKIP(return, "its manager is for one thread");
	h_channel_on_ready(self->a, count, &called);
	ASSERT_EQ(0, pthread_create(&thread, NULL, keep_sending, self->a));
	for (; received < SENDS && !get(self->b, self->m[1], &m); received++) {
		h_channel_release(self->b, &m);
		h_manager_dispatch(self->m[0]);
	}
	pthread_join(thread, &sent);
	EXPECT_EQ(SENDS, received);
	EXPECT_EQ(SENDS, (long)sent);
}

struct sender {
	struct h_channel *channel;
	int result;
};

static void *send_one(void *arg)
{
	struct sender *s = arg;

	s->result = h_channel_send(s->channel, "x", 1, 60 * SECOND);
	return NULL;
}

/* Does a thread wait for buffers? */
static bool is_sending(struct h_channel *ch)
{
	uint32_t *sending = &ch->sender->sending;
	struct ht_poll poll;

	ht_poll_begin(&poll);
	do {
		if (!h__try_lock(sending))
			return true;
		h__unlock(sending);
		ht_sleep_ns(HT_MS);
	} while (ht_poll_more(&poll));
	return false;
}

TEST_F(channel, who_was_kept_out_by_another_thread_is_called_back)
{
	struct sender s = { .channel = self->a };
	unsigned int called = 0, sent = 1;
	struct h_message m;
	struct ht_poll poll;
	pthread_t thread;

	if (variant->one_manager || variant->flags & H_MANAGER_SINGLE)
		SKIP(return, "two threads send, and calls of one end count");
	while (!h_channel_send(self->a, "x", 1, H_NOWAIT))
		ASSERT_GT(10000, sent++);
	ht_sleep_ns(20 * HT_MS);
	/* Whoever was told of that is told no more. */
	h_channel_on_ready(self->a, count, &called);
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_one, &s));
	ASSERT_TRUE(is_sending(self->a));
	h__write_once(&self->a->blocked, false);
	EXPECT_EQ(-EAGAIN, h_channel_send(self->a, "y", 1, H_NOWAIT));
	while (sent--) {
		ASSERT_EQ(0, h_channel_receive(self->b, &m, 20 * SECOND));
		h_channel_release(self->b, &m);
	}
	pthread_join(thread, NULL);
	EXPECT_EQ(0, s.result);
	ht_poll_begin(&poll);
	while (!called && ht_poll_more(&poll))
		h_manager_dispatch(self->m[0]);
	EXPECT_EQ(1, called);
	EXPECT_EQ(0, h_channel_send(self->a, "y", 1, H_NOWAIT));
}

struct teller {
	unsigned int called;
	int told;
};

static void receive_all(struct h_channel *ch, void *arg)
{
	struct teller *t = arg;
	struct h_message m;

	t->called++;
	while ((t->told = h_channel_receive(ch, &m, H_NOWAIT)) == 0)
		h_channel_release(ch, &m);
}

TEST_F(channel, who_knows_of_the_end_is_not_called_again)
{
	struct teller first = {}, second = {};
	struct ht_poll poll;
	int i;

	h_channel_on_ready(self->b, receive_all, &first);
	/* It has not arrived, or both ends are of one manager. */
	h_channel_shutdown(self->a, H_NOWAIT);
	ht_poll_begin(&poll);
	while (first.told != -ENODATA && ht_poll_more(&poll))
		h_manager_dispatch(self->m[1]);
	ASSERT_EQ(-ENODATA, first.told);
	/* Nor is who comes later. */
	h_channel_on_ready(self->b, receive_all, &second);
	for (i = 0; i < 10; i++)
		h_manager_dispatch(self->m[1]);
	EXPECT_EQ(0, second.called);
	EXPECT_EQ(-ENODATA, h_channel_receive(self->b, &(struct h_message) {}, H_NOWAIT));
}

/* ---- many --------------------------------------------------------------- */

#define MANY	64

TEST_F(channel, many_channels_on_one_manager_do_not_mix)
{
	struct h_channel_attr attr = {
		.buffers = 4, .buffer_size = 256,
	};
	struct h_channel *a[MANY], *b[MANY];
	unsigned int i, round;

	for (i = 0; i < MANY; i++) {
		ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], &attr,
					    &a[i], &b[i]));
	}
	for (round = 0; round < 3; round++) {
		for (i = 0; i < MANY; i++) {
			ht_fill(self->data, 100 + 10 * i, i);
			ASSERT_EQ(0, put(a[i], self->m[1], self->data,
					 100 + 10 * i));
		}
		for (i = MANY; i--;) {
			ASSERT_NO(arrives(b[i], self->m[0], 100 + 10 * i, i));
		}
	}
	for (i = 0; i < MANY; i++) {
		h_channel_close(a[i], H_NOWAIT);
		h_channel_close(b[i], H_NOWAIT);
	}
}

#define SENDERS		4
#define EACH		500

struct crowd {
	struct h_channel *from;
	struct h_channel *to;
	uint32_t sender;
	uint32_t next[SENDERS];
	uint32_t taken;		/* atomic, of all */
	uint32_t wrong;
};

struct label {
	uint32_t sender;
	uint32_t number;
};

static size_t length_of(const struct label *l)
{
	return sizeof(*l) + (l->number * 37 + l->sender * 101) %
			    (l->number % 16 ? 400 : 20000);
}

static void *crowd_send(void *arg)
{
	struct crowd *c = arg;
	struct label l = {
		.sender = __atomic_fetch_add(&c->sender, 1, __ATOMIC_RELAXED),
	};
	unsigned char data[20100];

	for (; l.number < EACH; l.number++) {
		size_t n = length_of(&l);

		ht_fill(data, n, l.sender * EACH + l.number);
		memcpy(data, &l, sizeof(l));
		if (h_channel_send(c->from, data, n, 60 * SECOND)) {
			__atomic_fetch_add(&c->wrong, 1, __ATOMIC_RELAXED);
			return NULL;
		}
	}
	return NULL;
}

static bool message_is_right(const struct h_message *m)
{
	unsigned char data[20100];
	struct label l;

	if (m->length < sizeof(l) || m->length > sizeof(data))
		return false;
	memcpy(&l, m->data, sizeof(l));
	if (l.sender >= SENDERS || l.number >= EACH || m->length != length_of(&l))
		return false;
	ht_fill(data, m->length, l.sender * EACH + l.number);
	memcpy(data, &l, sizeof(l));
	return !memcmp(data, m->data, m->length);
}

static void *crowd_receive(void *arg)
{
	struct crowd *c = arg;
	struct h_message m;
	int ret;

	while (__atomic_load_n(&c->taken, __ATOMIC_RELAXED) < SENDERS * EACH) {
		ret = h_channel_receive(c->to, &m, 10000000);
		if (ret == -ETIMEDOUT || ret == -EINTR)
			continue;
		if (ret != 0 || !message_is_right(&m)) {
			__atomic_fetch_add(&c->wrong, 1, __ATOMIC_RELAXED);
			return NULL;
		}
		h_channel_release(c->to, &m);
		__atomic_fetch_add(&c->taken, 1, __ATOMIC_RELAXED);
	}
	return NULL;
}

TEST_F(channel, many_threads_send_and_receive_whole_messages)
{
	struct crowd c = { .from = self->a, .to = self->b };
	pthread_t threads[2 * SENDERS];
	int i;

	if (variant->flags & H_MANAGER_SINGLE)
		SKIP(return, "one thread");
	for (i = 0; i < SENDERS; i++) {
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, crowd_send, &c));
		ASSERT_EQ(0, pthread_create(&threads[SENDERS + i], NULL,
					    crowd_receive, &c));
	}
	for (i = 0; i < 2 * SENDERS; i++)
		pthread_join(threads[i], NULL);
	EXPECT_EQ(0, c.wrong);
	EXPECT_EQ(SENDERS * EACH, c.taken);
}

#define PARTS_MESSAGES	2000
#define PARTS_BYTES	(16 * 128)	/* of 2 buffers of 128 bytes at a time */

static void *send_in_parts(void *arg)
{
	struct h_channel *ch = arg;
	char data[PARTS_BYTES] = {};
	long i;

	for (i = 0; i < PARTS_MESSAGES; i++)
		if (h_channel_send(ch, data, sizeof(data), 60 * SECOND))
			return (void *)1;
	return NULL;
}

/* The other end may send as fast as we take: that keeps nobody who does not wait. */
TEST_F(channel, who_does_not_wait_gets_what_there_was)
{
	const struct h_channel_attr attr = {
		.buffers = 2, .buffer_size = 128, .max_buffer_size = 1,
	};
	struct h_channel *from, *to;
	unsigned int calls = 0, n = 0, fewest = -1;
	struct h_message m;
	struct ht_poll poll;
	pthread_t thread;
	void *failed;
	int ret;

	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], &attr, &from, &to));
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_in_parts, from));
	ht_poll_begin(&poll);
	while (n < PARTS_MESSAGES && ht_poll_more(&poll)) {
		ret = h_channel_receive(to, &m, H_NOWAIT);
		calls++;
		if (ret == -EAGAIN)
			continue;
		ASSERT_EQ(0, ret);
		ASSERT_EQ(PARTS_BYTES, m.length);
		h_channel_release(to, &m);
		if (calls < fewest)
			fewest = calls;
		calls = 0;
		n++;
		ht_poll_begin(&poll);
	}
	EXPECT_EQ(PARTS_MESSAGES, n);
	EXPECT_LE(PARTS_BYTES / 2 / 128, fewest);
	pthread_join(thread, &failed);
	EXPECT_EQ(NULL, failed);
	h_channel_close(from, H_NOWAIT);
	h_channel_close(to, H_NOWAIT);
}

/* ---- other processes ---------------------------------------------------- */

/* Echo until the end, on a device of one's own. */
static int echo_process(int in, int out)
{
	struct h_channel_seed seed;
	struct h_manager *m;
	struct h_channel *ch;
	struct h_message msg;
	struct h_dev *dev;
	int ret;

	if (h_open(ht_device(), &dev) || h_manager_create(dev, NULL, &m) ||
	    h_channel_create(m, NULL, &ch))
		return 10;
	h_channel_seed(ch, &seed);
	if (ht_write_all(out, &seed, sizeof(seed)) ||
	    ht_read_all(in, &seed, sizeof(seed)) || h_channel_join(ch, &seed))
		return 11;
	while ((ret = h_channel_receive(ch, &msg, 60 * SECOND)) == 0) {
		if (h_channel_send(ch, msg.data, msg.length, 60 * SECOND))
			return 12;
		h_channel_release(ch, &msg);
	}
	if (ret != -ENODATA)
		return 13;
	ret = h_channel_close(ch, 20 * SECOND) ? 14 : 0;
	if (h_manager_destroy(m))
		ret = 15;
	h_close(dev);
	return ret;
}

static const char *with_process(struct h_manager *m, pid_t *pid,
				struct h_channel **ch)
{
	struct h_channel_seed seed;
	int to[2], from[2];

	if (pipe(to) || pipe(from))
		return "no pipes";
	*pid = ht_fork();
	if (!*pid)
		_exit(echo_process(to[0], from[1]));
	close(to[0]);
	close(from[1]);
	if (*pid < 0 || h_channel_create(m, NULL, ch))
		return "no channel";
	h_channel_seed(*ch, &seed);
	if (ht_write_all(to[1], &seed, sizeof(seed)) ||
	    ht_read_all(from[0], &seed, sizeof(seed)) ||
	    h_channel_join(*ch, &seed))
		return "no seeds";
	close(to[1]);
	close(from[0]);
	return NULL;
}

/* H 3.3: A seed that another process was sent makes the other end there. */
TEST_F(channel, seeds_make_a_channel_between_processes)
{
	struct h_message reply;
	struct h_channel *ch;
	unsigned int i;
	pid_t pid;

	ASSERT_NO(with_process(self->m[0], &pid, &ch));
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ht_fill(self->data, sizes[i], i);
		ASSERT_EQ(0, h_channel_request(ch, self->data, sizes[i], &reply,
					       60 * SECOND));
		ASSERT_EQ(sizes[i], reply.length);
		ASSERT_EQ(sizes[i], ht_match(reply.data, sizes[i], i));
		h_channel_release(ch, &reply);
	}
	EXPECT_EQ(0, h_channel_close(ch, 20 * SECOND));
	EXPECT_EQ(0, ht_reap(pid));
}

struct victim {
	struct h_channel *channel;
	int64_t told;
	int result;
};

static void *wait_for_message(void *arg)
{
	struct victim *v = arg;
	struct h_message m;

	v->result = h_channel_receive(v->channel, &m, 30 * SECOND);
	v->told = ht_now_ns();
	return NULL;
}

static void *send_for_ever(void *arg)
{
	struct victim *v = arg;

	do
		v->result = h_channel_send(v->channel, "x", 1, 30 * SECOND);
	while (!v->result);
	v->told = ht_now_ns();
	return NULL;
}

/* H 6.3: The operating system tells that a peer is gone; nobody asks it. */
TEST_F(channel, who_sleeps_is_told_that_the_other_was_killed)
{
	struct victim v[2] = {};
	int64_t killed;
	pthread_t thread[2];
	pid_t pid;

	if (variant->flags & H_MANAGER_SINGLE)
		SKIP(return, "one thread");
	ASSERT_NO(with_process(self->m[0], &pid, &v[0].channel));
	v[1].channel = v[0].channel;
	/* The child stops, so that the sender runs out of buffers and sleeps. */
	kill(pid, SIGSTOP);
	ASSERT_EQ(0, pthread_create(&thread[0], NULL, wait_for_message, &v[0]));
	ASSERT_EQ(0, pthread_create(&thread[1], NULL, send_for_ever, &v[1]));
	ht_sleep_ns(50 * HT_MS);
	killed = ht_now_ns();
	kill(pid, SIGKILL);
	ht_reap(pid);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	EXPECT_EQ(-ECONNRESET, v[0].result);
	EXPECT_EQ(-EPIPE, v[1].result);
	EXPECT_GT(killed + ht_patience_ns() / 20, v[0].told);
	EXPECT_GT(killed + ht_patience_ns() / 20, v[1].told);
	EXPECT_EQ(-EPIPE, h_channel_close(v[0].channel, SECOND));
}

/* Ask twice for long replies: both ends want larger buffers, and turn to them. */
static const char *grow(struct h_channel *ch, unsigned char *data)
{
	struct h_message reply;
	int i;

	for (i = 0; i < 2; i++) {
		if (h_channel_request(ch, data, 1 << 20, &reply,
				      60 * SECOND) != 0)
			return "no reply";
		h_channel_release(ch, &reply);
	}
	return NULL;
}

TEST_F(channel, who_may_not_watch_for_a_moment_grows_and_is_told)
{
	struct h_message m;
	struct h_channel *ch;
	int64_t killed;
	pid_t pid;

	ASSERT_NO(with_process(self->m[0], &pid, &ch));
	watches_may_be_refused(self->dev[0]);
	refuse_watches(true);
	memset(self->data, 0, 1 << 20);
	ASSERT_NO(grow(ch, self->data));
	EXPECT_LT(0, watches_refused());
	killed = ht_now_ns();
	kill(pid, SIGKILL);
	ht_reap(pid);
	EXPECT_EQ(-ECONNRESET, h_channel_receive(ch, &m, 30 * SECOND));
	EXPECT_GT(killed + ht_patience_ns() / 20, ht_now_ns());
	refuse_watches(false);
	EXPECT_EQ(-EPIPE, h_channel_close(ch, SECOND));
}

/* ---- who guesses keys is held back, with its credits -------------------- */

FIXTURE(late) {
	struct h_dev *dev[2];
	struct h_manager *m[2];
	struct h_channel *a;
	struct h_channel *b;
};

FIXTURE_SETUP(late)
{
	static const struct h_channel_attr attr = {
		.buffers = 2,
	};
	const char *name = ht_device();
	char own[64];
	int i;

	if (name && strncmp(name, "shm:", 4))
		SKIP(return, "of the embedded device: who guesses waits itself");
	snprintf(own, sizeof(own), "shm:late%d,guesses=1", (int)getpid());
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, h_open(own, &self->dev[i]));
		ASSERT_EQ(0, h_manager_create(self->dev[i], NULL, &self->m[i]));
	}
	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], &attr, &self->a,
				    &self->b));
}

FIXTURE_TEARDOWN(late)
{
	int i;

	h_channel_close(self->a, H_NOWAIT);
	h_channel_close(self->b, H_NOWAIT);
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, h_manager_destroy(self->m[i]));
		h_close(self->dev[i]);
	}
}

#define FOR_A_SECOND		2	/* the first one is free */
#define ANSWERED_NS		(5 * SECOND * ht_scale())

static void guess_keys(FIXTURE_DATA(late) *self, int guesses)
{
	ht_guess_keys(h_manager_terminus(self->m[1]), self->b->sender->ticket, guesses);
}

struct stream_of_messages {
	struct h_channel *channel;
	unsigned int count;
	unsigned int done;	/* atomic */
};

static void *send_many(void *arg)
{
	struct stream_of_messages *s = arg;

	while (s->done < s->count &&
	       !h_channel_send(s->channel, "x", 1, 20 * SECOND))
		__atomic_add_fetch(&s->done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *receive_many(void *arg)
{
	struct stream_of_messages *s = arg;
	struct h_message m;

	while (s->done < s->count &&
	       h_channel_receive(s->channel, &m, 20 * SECOND) == 0) {
		h_channel_release(s->channel, &m);
		__atomic_add_fetch(&s->done, 1, __ATOMIC_SEQ_CST);
	}
	return NULL;
}

static bool late_yet(struct h_channel *ch)
{
	struct h_receiver *r = &ch->receiver->r;
	bool late;

	h_receiver_lock(r);
	late = ch->receiver->late;
	h_receiver_unlock(r);
	return late;
}

TEST_F(late, a_credit_goes_when_it_may)
{
	struct stream_of_messages to = { self->b, 40, 0 };
	struct stream_of_messages from = { self->a, 40, 0 };
	pthread_t thread[2];
	bool late = false;
	int64_t end;

	guess_keys(self, FOR_A_SECOND);
	end = ht_now_ns() + ht_patience_ns();
	ASSERT_EQ(0, pthread_create(&thread[0], NULL, receive_many, &to));
	ASSERT_EQ(0, pthread_create(&thread[1], NULL, send_many, &from));
	while (!late && __atomic_load_n(&to.done, __ATOMIC_SEQ_CST) < 40 &&
	       ht_now_ns() < end)
		late = late_yet(self->b);
	EXPECT_TRUE(late);
	pthread_join(thread[0], NULL);
	pthread_join(thread[1], NULL);
	EXPECT_EQ(40, to.done);
	EXPECT_EQ(40, from.done);
}

/* As much as @self->a may send until it has a credit. */
static const char *fill(FIXTURE_DATA(late) *self, struct h_message *m)
{
	int i;

	for (i = 0; i < 2; i++)
		if (h_channel_send(self->a, "x", 1, 20 * SECOND) ||
		    h_channel_receive(self->b, &m[i], 20 * SECOND) != 0)
			return "nothing goes";
	return NULL;
}

TEST_F(late, who_sleeps_sees_to_the_credit_of_another_thread)
{
	struct stream_of_messages to = { self->b, 1, 0 };
	struct h_message m[2];
	pthread_t thread;

	ASSERT_NO(fill(self, m));
	guess_keys(self, FOR_A_SECOND);
	ASSERT_EQ(0, pthread_create(&thread, NULL, receive_many, &to));
	ht_sleep_ns(50 * HT_MS);
	h_channel_release(self->b, &m[0]);
	h_channel_release(self->b, &m[1]);
	/* On a busy machine the pause may be over: nothing is shown then. */
	if (!late_yet(self->b))
		TH_LOG("the credit was not late");
	EXPECT_EQ(0, h_channel_send(self->a, "x", 1, 20 * SECOND));
	pthread_join(thread, NULL);
	EXPECT_EQ(1, to.done);
}

struct ending {
	struct h_channel *channel;
	int result;
	bool done;		/* atomic */
};

static void *end_it(void *arg)
{
	struct ending *e = arg;

	e->result = h_channel_shutdown(e->channel, ANSWERED_NS);
	__atomic_store_n(&e->done, true, __ATOMIC_SEQ_CST);
	return NULL;
}

/* As when the work queue is full for a moment: there is nothing more to be received. */
TEST_F(late, an_end_is_answered_although_nobody_receives_again)
{
	struct ending e = { .channel = self->a };
	struct h_message m;
	pthread_t thread;

	guess_keys(self, FOR_A_SECOND);
	/* Of which an eighth is left. */
	ht_sleep_ns(SECOND * 7 / 8);
	ASSERT_EQ(0, pthread_create(&thread, NULL, end_it, &e));
	EXPECT_EQ(-ENODATA, h_channel_receive(self->b, &m, 20 * SECOND));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, e.result);
}

/* What cannot be sent for a moment goes later. */
TEST_F(late, who_is_held_back_can_have_another_channel)
{
	struct h_channel *a, *b;
	struct h_message m;

	guess_keys(self, FOR_A_SECOND);
	ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1], NULL, &a, &b));
	EXPECT_EQ(0, h_channel_send(b, "x", 1, 20 * SECOND));
	ASSERT_EQ(0, h_channel_receive(a, &m, 20 * SECOND));
	h_channel_release(a, &m);
	/* Both are watched by then: the other one's end is told. */
	ASSERT_EQ(0, h_channel_send(a, "x", 1, 20 * SECOND));
	ASSERT_EQ(0, h_channel_receive(b, &m, 20 * SECOND));
	h_channel_release(b, &m);
	h_channel_close(a, H_NOWAIT);
	EXPECT_GT(0, h_channel_receive(b, &m, 20 * SECOND));
	h_channel_close(b, H_NOWAIT);
}

/* As guess_keys(), so that there is no watching for so long. */
static const char *watch_wrong_keys(FIXTURE_DATA(late) *self, int guesses)
{
	struct h_ticket t = self->b->sender->ticket;
	struct h_watch *w;
	struct h_nq *nq;
	int i, err;

	t.meta_index = 0;
	t.key ^= 0x5555;
	if (h_nq_create(self->dev[1], 64, &nq))
		return "no NQ";
	for (i = 0; i < guesses; i++) {
		while ((err = h_watch(self->dev[1], &t, nq, 0, &w)) == -EAGAIN)
			ht_sleep_ns(HT_MS);
		if (err || h_unwatch(w))
			return "no watch of a wrong key";
	}
	return h_nq_destroy(nq) ? "the NQ is in use" : NULL;
}

struct caller {
	struct h_manager *m;
	const char *path;
	int result;
};

static void *call_once(void *arg)
{
	struct caller *c = arg;
	struct h_channel *ch;

	c->result = h_channel_connect(c->m, c->path, NULL, &ch, 20 * SECOND);
	if (!c->result)
		h_channel_close(ch, H_NOWAIT);
	return NULL;
}

/*
 * Strangers may have had it present wrong keys: that is no reason to turn others away. It
 * watches them later, and is told of their end all the same.
 */
TEST_F(late, who_is_held_back_turns_nobody_away)
{
	struct caller c = { .m = self->m[0] };
	struct h_listener *l;
	struct h_channel *ch;
	struct h_message m;
	pthread_t thread;
	char path[64];

	snprintf(path, sizeof(path), "@hamlyn-late.%d", (int)getpid());
	c.path = path;
	ASSERT_EQ(0, h_listener_create(path, NULL, &l));
	ASSERT_NO(watch_wrong_keys(self, FOR_A_SECOND));
	ASSERT_EQ(0, pthread_create(&thread, NULL, call_once, &c));
	EXPECT_EQ(0, h_channel_accept(l, self->m[1], NULL, &ch, 20 * SECOND));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, c.result);
	EXPECT_GT(0, h_channel_receive(ch, &m, 20 * SECOND));
	h_channel_close(ch, H_NOWAIT);
	h_listener_destroy(l);
}

static uint64_t rejected(struct h_dev *dev)
{
	struct hamlyn_stats stats;

	return h_dev_stats(dev, &stats) ? UINT64_MAX :
	       stats.rejects[HAMLYN_REJECT_SLOT] + stats.rejects[HAMLYN_REJECT_KEY];
}

#define GIVE_UP		20

/* What they had is gone: to present it would be so many wrong keys of the server. */
TEST_F(late, clients_that_gave_up_cost_nothing)
{
	struct caller c = { .m = self->m[0] };
	uint64_t before = rejected(self->dev[1]);
	struct h_listener *l;
	struct h_channel *ch;
	pthread_t thread;
	char path[64];
	int i;

	snprintf(path, sizeof(path), "@hamlyn-gone.%d", (int)getpid());
	c.path = path;
	ASSERT_EQ(0, h_listener_create(path, NULL, &l));
	for (i = 0; i < GIVE_UP; i++)
		ASSERT_EQ(-ETIMEDOUT, h_channel_connect(self->m[0], path, NULL, &ch, HT_MS));
	ASSERT_EQ(0, pthread_create(&thread, NULL, call_once, &c));
	/* The first one that it gets. */
	EXPECT_EQ(0, h_channel_accept(l, self->m[1], NULL, &ch, 20 * SECOND));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, c.result);
	EXPECT_EQ(before, rejected(self->dev[1]));
	h_channel_close(ch, H_NOWAIT);
	h_listener_destroy(l);
}

static void *ask_once(void *arg)
{
	struct caller *c = arg;
	struct h_channel *ch;
	struct h_message m;

	c->result = h_channel_connect(c->m, c->path, NULL, &ch, 20 * SECOND);
	if (c->result)
		return NULL;
	c->result = h_channel_send(ch, "q", 1, 20 * SECOND);
	if (!c->result && h_channel_receive(ch, &m, 20 * SECOND) == 0)
		h_channel_release(ch, &m);
	h_channel_close(ch, SECOND);
	return NULL;
}

#define ORDERLY		300

/*
 * A server that closes at once when it has answered: the last words of its clients find
 * nobody. With these any number of connections are taken, although two wrong keys are
 * too many here.
 */
TEST_F(late, an_orderly_close_is_no_guess)
{
	struct caller c = { .m = self->m[0] };
	struct h_listener *l;
	struct h_channel *ch;
	struct h_message m;
	pthread_t thread;
	char path[64];
	int i;

	snprintf(path, sizeof(path), "@hamlyn-orderly.%d", (int)getpid());
	c.path = path;
	ASSERT_EQ(0, h_listener_create(path, NULL, &l));
	for (i = 0; i < ORDERLY; i++) {
		ASSERT_EQ(0, pthread_create(&thread, NULL, ask_once, &c));
		EXPECT_EQ(0, h_channel_accept(l, self->m[1], NULL, &ch, 20 * SECOND));
		EXPECT_EQ(0, h_channel_receive(ch, &m, 20 * SECOND));
		EXPECT_EQ(0, h_channel_send(ch, "x", 1, 20 * SECOND));
		h_channel_close(ch, H_NOWAIT);
		pthread_join(thread, NULL);
		ASSERT_EQ(0, c.result);
	}
	h_listener_destroy(l);
}

/*
 * Who has to wait for room sees to what it owes as well: it is what the other end waits
 * for before it receives.
 */
TEST_F(late, who_answers_gives_the_credit_that_it_owes)
{
	struct stream_of_messages from = { self->a, 3, 2 };
	static char answer[1 << 20];
	struct h_message m[2];
	pthread_t thread;
	int i;

	ASSERT_NO(fill(self, m));
	guess_keys(self, FOR_A_SECOND);
	h_channel_release(self->b, &m[0]);
	h_channel_release(self->b, &m[1]);
	if (!late_yet(self->b))
		TH_LOG("the credit was not late");
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_many, &from));
	/* Nobody receives: not all of it can go, but it has to let the other one go on. */
	for (i = 0; i < 5 && __atomic_load_n(&from.done, __ATOMIC_SEQ_CST) < 3; i++)
		h_channel_send(self->b, answer, sizeof(answer), ANSWERED_NS / 5);
	EXPECT_EQ(3, __atomic_load_n(&from.done, __ATOMIC_SEQ_CST));
	/* It has what it needs to end, if it has not ended. */
	for (i = 0; from.done < 3 && i < 2; i++)
		h_channel_receive(self->b, &m[i], HT_SEC);
	pthread_join(thread, NULL);
}

typedef const char *(*meanwhile_fn)(FIXTURE_DATA(late) *self, const struct ending *e);

static bool ends(const struct ending *e, int64_t end)
{
	return __atomic_load_n(&e->done, __ATOMIC_SEQ_CST) || ht_now_ns() >= end;
}

static const char *send_meanwhile(FIXTURE_DATA(late) *self, const struct ending *e)
{
	int64_t end = ht_now_ns() + ANSWERED_NS;
	static char more[8 * 4096];

	while (!ends(e, end))
		h_channel_send(self->b, more, sizeof(more), SECOND / 2);
	return NULL;
}

static const char *poll_meanwhile(FIXTURE_DATA(late) *self, const struct ending *e)
{
	int64_t end = ht_now_ns() + ANSWERED_NS;

	while (!ends(e, end)) {
		h_manager_poll(self->m[1]);
		ht_sleep_ns(HT_MS);
	}
	return NULL;
}

static void receive_one(struct h_channel *ch, void *arg)
{
	struct h_message m;

	*(int *)arg = h_channel_receive(ch, &m, H_NOWAIT);
}

static const char *dispatch_meanwhile(FIXTURE_DATA(late) *self, const struct ending *e)
{
	int64_t end = ht_now_ns() + ANSWERED_NS;
	int received = -EAGAIN;

	h_channel_on_ready(self->b, receive_one, &received);
	while (!ends(e, end)) {
		h_manager_wait(self->m[1], SECOND / 2);
		h_manager_dispatch(self->m[1]);
	}
	h_channel_on_ready(self->b, NULL, NULL);
	return received != -ENODATA ? "it is not told of the end" : NULL;
}

static const char *watch_meanwhile(FIXTURE_DATA(late) *self, const struct ending *e)
{
	struct pollfd pfd = { .fd = h_manager_fd(self->m[1]), .events = POLLIN };
	int64_t end = ht_now_ns() + ANSWERED_NS;
	int received = -EAGAIN;

	h_channel_on_ready(self->b, receive_one, &received);
	while (!ends(e, end))
		if (poll(&pfd, 1, 500) == 1)
			h_manager_dispatch(self->m[1]);
	h_channel_on_ready(self->b, NULL, NULL);
	return received != -ENODATA ? "it is not told of the end" : NULL;
}

static const char *end_is_answered(FIXTURE_DATA(late) *self, meanwhile_fn meanwhile)
{
	struct ending e = { .channel = self->a };
	const char *wrong;
	pthread_t thread;

	guess_keys(self, FOR_A_SECOND);
	if (pthread_create(&thread, NULL, end_it, &e))
		return "no thread";
	wrong = meanwhile(self, &e);
	pthread_join(thread, NULL);
	return wrong ? wrong : e.result ? "the end is not answered" : NULL;
}

TEST_F(late, an_end_is_answered_by_who_sends)
{
	EXPECT_NO(end_is_answered(self, send_meanwhile));
}

TEST_F(late, an_end_is_answered_by_who_polls)
{
	EXPECT_NO(end_is_answered(self, poll_meanwhile));
}

TEST_F(late, an_end_is_answered_by_a_loop_that_was_told)
{
	EXPECT_NO(end_is_answered(self, dispatch_meanwhile));
}

TEST_F(late, an_end_is_answered_by_a_loop_with_other_descriptors)
{
	EXPECT_NO(end_is_answered(self, watch_meanwhile));
}

/* ---- lies --------------------------------------------------------------- */

/* Record @number of the channel whose seed is @seed, with any note. */
static const char *forge(struct h_manager *m, const struct h_channel_seed *seed,
			 uint32_t number, size_t length, uint32_t flags,
			 uint64_t more)
{
	struct h_ticket t;
	uint32_t note[6] = { flags, 0, number };
	uint32_t entries, buffer;
	char data[128] = "forged";
	int64_t handle;

	memcpy(&note[4], &more, sizeof(more));
	if (h_ticket_import(seed->bytes + 8, H_TICKET_BYTES, &t))
		return "no ticket";
	memcpy(&entries, seed->bytes + 56, 4);
	memcpy(&buffer, seed->bytes + 60, 4);
	t.meta_index = number % entries;
	t.base = (uint64_t)t.meta_index * buffer;
	t.length = buffer;
	handle = h_send_msg(h_manager_terminus(m), &t, data, length, note,
			    sizeof(note));
	return handle < 0 || ht_send_wait(h_manager_terminus(m), handle) != 1 ?
	       "cannot send" : NULL;
}

static const struct lie {
	const char *what;
	size_t length;
	uint32_t flags;
	uint64_t more;
	int result;
} lies[] = {
	{ "a message longer than allowed", 64, 0, 17 << 20, -EPROTO },
	{ "the longest there is", 64, 0, UINT64_MAX, -EPROTO },
	{ "an empty one with payload", 64, 8, 0, -EPROTO },
	{ "an empty one with more to come", 0, 8, 64, -EPROTO },
	{ "unknown flags", 64, 1 << 9, 0, -EPROTO },
	{ "a second hello", 80, 1, 0, -EPROTO },
	{ "a long one, and nothing behind it", 64, 0, 15 << 20, -ETIMEDOUT },
	{ "the end of the stream", 0, 2, 0, -ENODATA },
};

TEST_F(channel, lies_are_found_out_and_cost_nothing)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lies); i++) {
		size_t before = mallinfo2().hblkhd + mallinfo2().uordblks;
		struct h_channel_seed seed;
		struct h_channel *a, *b;
		struct h_message m;

		ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1],
					    &variant->attr, &a, &b));
		h_channel_seed(b, &seed);
		ASSERT_NO(forge(self->m[0], &seed, 0, lies[i].length,
				lies[i].flags, lies[i].more));
		EXPECT_EQ(lies[i].result,
			  h_channel_receive(b, &m, lies[i].result == -EPROTO ?
					    20 * SECOND : SECOND / 5)) {
			TH_LOG("%s", lies[i].what);
		}
		EXPECT_GT(before + (2 << 20),
			  mallinfo2().hblkhd + mallinfo2().uordblks);
		h_channel_close(a, H_NOWAIT);
		h_channel_close(b, H_NOWAIT);
	}
}

TEST_F(channel, pieces_that_do_not_add_up_are_found_out)
{
	struct h_channel_seed seed;
	struct h_message m;

	h_channel_seed(self->b, &seed);
	ASSERT_NO(forge(self->m[0], &seed, 0, 64, 0, 100));
	EXPECT_EQ(-EAGAIN, h_channel_receive(self->b, &m, H_NOWAIT));
	ASSERT_NO(forge(self->m[0], &seed, 1, 64, 0, 100));
	EXPECT_EQ(-EPROTO, h_channel_receive(self->b, &m, 20 * SECOND));
	EXPECT_EQ(-EPROTO, h_channel_receive(self->b, &m, 20 * SECOND));
}

#define ROOM	100
#define GUARD	0x5a

/* One that says @more; then what it does to who receives it. */
static int say_more(struct h_channel *from, struct h_channel *to, size_t length,
		    uint64_t more, unsigned char *room, int64_t timeout_ns)
{
	static const unsigned char data[128];
	struct h_message m;
	int ret;

	if (h__stream_post(from->sender, data, length, more, 0, h_deadline(ht_patience_ns())) < 0)
		return -EIO;
	if (room)
		return (int)h_channel_receive_copy(to, room, ROOM, timeout_ns);
	ret = h_channel_receive(to, &m, timeout_ns);
	h_channel_release(to, &m);
	return ret;
}

TEST_F(channel, pieces_whose_sum_wraps_around_are_found_out)
{
	unsigned char room[2 * ROOM];
	int copied;

	memset(room, GUARD, sizeof(room));
	for (copied = 0; copied < 2; copied++) {
		unsigned char *to = copied ? room : NULL;
		struct h_channel *a, *b;

		ASSERT_EQ(0, h_channel_pair(self->m[0], self->m[1],
					    &variant->attr, &a, &b));
		ASSERT_EQ(0, h__stream_post(a->sender, room, 40, 60, 0,
					    h_deadline(SECOND)) < 0);
		EXPECT_EQ(-EPROTO, say_more(a, b, 64, 60ULL - 64, to,
					    10 * SECOND));
		h_channel_close(a, H_NOWAIT);
		h_channel_close(b, H_NOWAIT);
	}
	EXPECT_EQ(ROOM, ht_match_byte(room + ROOM, ROOM, GUARD));
}

/* Empty records that are no messages, several laps of them before there is one. */
TEST_F(channel, many_records_that_are_no_messages_stop_nothing)
{
	struct ht_poll poll;
	unsigned int i;
	char byte = 0;

	ht_poll_begin(&poll);
	for (i = 0; i < 1000; i++) {
		while (h__stream_post(self->a->sender, "", 0, 0, 0, H_NOWAIT) < 0) {
			ASSERT_EQ(-EAGAIN, h_channel_receive_copy(self->b, &byte, 1, H_NOWAIT));
			ASSERT_TRUE(ht_poll_more(&poll));
		}
	}
	for (i = 0; i < 1000; i++) {
		while (h_channel_send(self->a, "x", 1, H_NOWAIT)) {
			ASSERT_EQ(-EAGAIN, h_channel_receive_copy(self->b, &byte, 1, H_NOWAIT));
			ASSERT_TRUE(ht_poll_more(&poll));
		}
		ASSERT_EQ(1, h_channel_receive_copy(self->b, &byte, 1, 10 * SECOND));
		ASSERT_EQ('x', byte);
	}
}

struct dispatcher {
	struct h_manager *m;
	bool stop;
};

static void *dispatch_on(void *arg)
{
	struct dispatcher *d = arg;

	while (!__atomic_load_n(&d->stop, __ATOMIC_RELAXED))
		h_manager_dispatch(d->m);
	return NULL;
}

static void ignore(struct h_channel *ch, void *arg)
{
	(void)ch;
	(void)arg;
}

/* ---- several threads dispatch ------------------------------------------- */

struct visit {
	unsigned int called;	/* atomic, all */
	unsigned int inside;
	unsigned int together;
};

static void stay_inside(struct h_channel *ch, void *arg)
{
	struct visit *v = arg;

	(void)ch;
	if (__atomic_add_fetch(&v->inside, 1, __ATOMIC_SEQ_CST) > 1)
		__atomic_add_fetch(&v->together, 1, __ATOMIC_SEQ_CST);
	ht_sleep_ns(20 * HT_MS);
	__atomic_sub_fetch(&v->inside, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&v->called, 1, __ATOMIC_SEQ_CST);
}

static void receive_or_close(struct h_channel *ch, void *arg)
{
	struct h_message m;
	int ret = h_channel_receive(ch, &m, H_NOWAIT);

	if (ret == -EAGAIN)
		return;
	if (ret == 0) {
		h_channel_release(ch, &m);
		return;
	}
	h_channel_close(ch, H_NOWAIT);
	__atomic_add_fetch((unsigned int *)arg, 1, __ATOMIC_SEQ_CST);
}

FIXTURE(crowded) {
	struct h_dev *dev;
	struct h_manager *far;
	struct dispatcher d;
	pthread_t thread[2];
	struct h_channel *a;
	struct h_channel *b;
	unsigned char *data;
};

FIXTURE_SETUP(crowded)
{
	int i;

	ASSERT_EQ(0, h_open(ht_device(), &self->dev));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->d.m));
	ASSERT_EQ(0, h_manager_create(self->dev, NULL, &self->far));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&self->thread[i], NULL,
					    dispatch_on, &self->d));
	}
}

FIXTURE_TEARDOWN(crowded)
{
	int i;

	__atomic_store_n(&self->d.stop, true, __ATOMIC_RELAXED);
	for (i = 0; i < 2; i++)
		pthread_join(self->thread[i], NULL);
	h_channel_close(self->a, H_NOWAIT);
	EXPECT_EQ(0, h_manager_destroy(self->d.m));
	EXPECT_EQ(0, h_manager_destroy(self->far));
	h_close(self->dev);
	free(self->data);
}

/* Both of its directions have something to say: a send blocks, and the end comes. */
static const char *block_and_end(FIXTURE_DATA(crowded) *self,
				 void (*ready)(struct h_channel *ch, void *arg),
				 void *arg)
{
	unsigned int sent = 0;
	int ret;

	if (h_channel_pair(self->d.m, self->far, NULL, &self->a, &self->b))
		return "no channel";
	while (!(ret = h_channel_send(self->a, "x", 1, H_NOWAIT)))
		if (sent++ > 10000)
			return "it takes all";
	h_channel_on_ready(self->a, ready, arg);
	h_channel_close(self->b, H_NOWAIT);
	return ret == -EAGAIN ? NULL : "cannot send";
}

TEST_F(crowded, a_channel_is_called_back_by_one_thread_at_a_time)
{
	struct visit v = {};
	struct ht_poll poll;

	ASSERT_NO(block_and_end(self, stay_inside, &v));
	ht_poll_begin(&poll);
	while (__atomic_load_n(&v.called, __ATOMIC_SEQ_CST) < 5 &&
	       ht_poll_more(&poll))
		ht_sleep_ns(HT_MS);
	h_channel_on_ready(self->a, NULL, NULL);
	ht_sleep_ns(40 * HT_MS);
	EXPECT_LE(5, __atomic_load_n(&v.called, __ATOMIC_SEQ_CST));
	EXPECT_EQ(0, __atomic_load_n(&v.together, __ATOMIC_SEQ_CST));
}

/* For the address sanitizer. */
TEST_F(crowded, a_channel_may_be_closed_while_other_threads_dispatch)
{
	unsigned int closed = 0, i;
	struct ht_poll poll;

	for (i = 1; i <= 100; i++) {
		ASSERT_NO(block_and_end(self, receive_or_close, &closed));
		self->a = NULL;
		ht_poll_begin(&poll);
		while (__atomic_load_n(&closed, __ATOMIC_SEQ_CST) < i &&
		       ht_poll_more(&poll))
			ht_sleep_ns(HT_MS / 10);
		ASSERT_EQ(i, closed);
	}
}

/* A message that was only begun, to one who has gone on receiving for a moment. */
static void *take_some(void *arg)
{
	struct h_channel *ch = arg;
	struct h_message m;
	int i;

	for (i = 0; i < 20; i++)
		if (h_channel_receive(ch, &m, HT_MS) == 0)
			h_channel_release(ch, &m);
	return NULL;
}

static const char *begin_and_close(FIXTURE_DATA(crowded) *self, int i)
{
	struct h_channel *a;
	pthread_t thread;
	int err;

	/* Whose last words came too late, again and again, may be held back for a second. */
	err = h_channel_pair(self->d.m, self->far, NULL, &a, &self->b);
	if (err)
		return err == -EAGAIN ? NULL : "no channel";
	err = h_channel_send(a, self->data, LONGEST, H_NOWAIT);
	if (pthread_create(&thread, NULL, take_some, self->b))
		return "no thread";
	/* While the dispatchers send the rest: at whatever they are. */
	ht_sleep_ns(i % 20 * HT_MS / 20);
	h_channel_close(a, H_NOWAIT);
	pthread_join(thread, NULL);
	h_channel_close(self->b, H_NOWAIT);
	return err && err != -EAGAIN ? "cannot begin" : NULL;
}

/* It has nobody to call back, but the library goes on with it by itself. */
TEST_F(crowded, one_without_a_call_back_may_be_closed_by_any_thread)
{
	int64_t end = ht_now_ns() + 3 * SECOND;
	int i;

	self->data = calloc(1, LONGEST);
	ASSERT_NE(NULL, self->data);
	for (i = 0; i < 2000 && ht_now_ns() < end; i++)
		ASSERT_NO(begin_and_close(self, i));
}

/* For the thread sanitizer: without it, who calls back NULL is rarely caught. */
TEST(a_call_back_can_be_taken_back_meanwhile)
{
	struct h_channel *a, *b;
	struct dispatcher d = {};
	struct h_dev *dev;
	pthread_t thread;
	int i;

	ASSERT_EQ(0, h_open(ht_device(), &dev));
	ASSERT_EQ(0, h_manager_create(dev, NULL, &d.m));
	ASSERT_EQ(0, h_channel_pair(d.m, d.m, NULL, &a, &b));
	ASSERT_EQ(0, h_channel_send(a, "x", 1, SECOND));
	ASSERT_EQ(0, pthread_create(&thread, NULL, dispatch_on, &d));
	for (i = 0; i < 20000; i++) {
		h_channel_on_ready(b, ignore, NULL);
		h_channel_on_ready(b, NULL, NULL);
	}
	__atomic_store_n(&d.stop, true, __ATOMIC_RELAXED);
	pthread_join(thread, NULL);
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
	EXPECT_EQ(0, h_manager_destroy(d.m));
	h_close(dev);
}

TEST_HARNESS_MAIN
