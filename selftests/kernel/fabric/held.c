// SPDX-License-Identifier: GPL-2.0-only
/*
 * Another host takes nothing, for as long as it likes, and the terminus stands still: calls with a
 * deadline return all the same, their data are the caller's again, and arrive as they were sent.
 * Where one does not return the test's own time ends it. Kernel device only, as root.
 */
#include "kselftest_harness.h"
#include "genl.h"
#include "nics.h"

#include <hamlyn/channel.h>
#include <hamlyn/datagram.h>
#include <hamlyn/stream.h>

#define SENDING		0	/* NIC with the adversary */
#define LENGTH		60000
#define SHORTLY		(20 * HT_MS)
#define BUDGET		(4 * LENGTH)
#define STREAMED	(4 * LENGTH)	/* more than the receiver has buffers for */
#define BUFFERS		16
#define BUFFER		4096
#define TAKEN		((BUFFERS - 1) * BUFFER)	/* one has the first record */
#define OTHERS		64	/* pieces of memory */

struct end {
	struct h_dev *dev;
	struct h_manager *m;
};

FIXTURE(held) {
	bool ready;
	struct genl genl;
	struct end a, b;
	char *data;		/* that the NIC of a can send from */
	char *heap;
};

/* Parts in a million of the packets to other hosts that are not taken. */
static int stall(FIXTURE_DATA(held) *self, uint32_t rate)
{
	struct genl *g = &self->genl;
	struct nlattr *nest;

	genl_begin(g, HAMLYN_NL_CMD_NIC_SET);
	genl_put_u32(g, HAMLYN_A_NIC, SENDING);
	nest = genl_put(g, HAMLYN_A_ADVERSARY | NLA_F_NESTED, NULL, 0);
	genl_put_u64(g, HAMLYN_A_ADV_SEED, 1);
	genl_put_u32(g, HAMLYN_A_ADV_STALL, rate);
	genl_end(g, nest);
	return genl_call(g);
}

#define NEVER	1000000
#define GO_ON	0

static int end_open(struct end *e, const char *path)
{
	const struct h_manager_attr attr = { .budget = BUDGET };

	return h_open(path, &e->dev) ?: h_manager_create(e->dev, &attr, &e->m);
}

FIXTURE_SETUP(held)
{
	void *data;

	if (geteuid() || access("/dev/hamlyn1", F_OK) ||
	    genl_open(&self->genl, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION)) {
		self->genl.fd = -1;
		SKIP(return, "kernel: with nics=2, as root");
	}
	if (stall(self, 1) == -EOPNOTSUPP)
		SKIP(return, "kernel: with CONFIG_HAMLYN_ADVERSARY");
	self->ready = true;
	ASSERT_EQ(0, stall(self, GO_ON));
	ASSERT_EQ(0, end_open(&self->a, "/dev/hamlyn0"));
	ASSERT_EQ(0, end_open(&self->b, "/dev/hamlyn1"));
	ASSERT_EQ(0, h_manager_alloc(self->a.m, STREAMED, &data));
	self->data = data;
	self->heap = malloc(STREAMED);
}

FIXTURE_TEARDOWN(held)
{
	if (!self->ready)
		return;
	EXPECT_EQ(0, stall(self, GO_ON));
	free(self->heap);
	if (self->a.m)
		EXPECT_EQ(0, h_manager_destroy(self->a.m));
	if (self->b.m)
		EXPECT_EQ(0, h_manager_destroy(self->b.m));
	h_close(self->a.dev);
	h_close(self->b.dev);
	genl_close(&self->genl);
}

/* What has been sent so far is nobody's hindrance any more. */
static bool all_left(FIXTURE_DATA(held) *self)
{
	return !stall(self, GO_ON) && !h_manager_drain(self->a.m, ht_patience_ns());
}

/* Somebody else has all memory that was given back. */
static int use_memory(FIXTURE_DATA(held) *self)
{
	void *memory[OTHERS];
	int i, n, err = 0;

	for (n = 0; n < OTHERS && !err; n++) {
		size_t length = n % 2 ? BUFFER : 2 * BUFFER;

		err = h_manager_alloc(self->a.m, length, &memory[n]);
		if (!err)
			memset(memory[n], 0xee, length);
	}
	for (i = 0; i < n - !!err; i++)
		h_manager_free(self->a.m, memory[i]);
	return err;
}

/* ---- channels ---- */

/* Messages until the time of one is over: how many were taken. They are changed at once. */
static int send_until_late(struct h_channel *ch, char *data, int64_t time)
{
	int n, err;

	for (n = 0; n < 1000; n++) {
		ht_fill(data, LENGTH, n);
		err = h_channel_send(ch, data, LENGTH, time);
		memset(data, 0, LENGTH);
		if (err)
			return err == (time ? -ETIMEDOUT : -EAGAIN) ? n : err;
	}
	return -E2BIG;
}

static int receive_all(FIXTURE_DATA(held) *self, struct h_channel *ch, int n)
{
	struct h_message m;
	struct ht_poll poll;
	int i, err;

	for (i = 0; i < n; i++) {
		ht_poll_begin(&poll);
		do {
			h_manager_poll(self->a.m);
			err = h_channel_receive(ch, &m, HT_MS);
		} while (err == -ETIMEDOUT && ht_poll_more(&poll));
		if (err)
			return err;
		if (m.length != LENGTH || ht_match(m.data, LENGTH, i) != LENGTH)
			return -EBADMSG;
		h_channel_release(ch, &m);
	}
	return 0;
}

static void channel_in_time(struct __test_metadata *_metadata, FIXTURE_DATA(held) *self,
			    char *data, int64_t time)
{
	struct h_channel *a, *b;
	int n;

	ASSERT_EQ(0, h_channel_pair(self->a.m, self->b.m, NULL, &a, &b));
	ASSERT_EQ(0, stall(self, NEVER));
	n = send_until_late(a, data, time);
	EXPECT_GT(n, 0);
	/* The rest of one is kept: polling does not wait for it either. */
	h_manager_poll(self->a.m);
	EXPECT_EQ(-EAGAIN, h_channel_shutdown(a, H_NOWAIT));
	ASSERT_EQ(0, stall(self, GO_ON));
	EXPECT_EQ(0, receive_all(self, b, n));
	h_channel_close(a, H_NOWAIT);
	h_channel_close(b, H_NOWAIT);
}

TEST_F(held, a_message_of_the_heap)
{
	channel_in_time(_metadata, self, self->heap, SHORTLY);
}

TEST_F(held, a_message_of_the_heap_without_waiting)
{
	channel_in_time(_metadata, self, self->heap, H_NOWAIT);
}

TEST_F(held, a_message_that_could_leave_from_where_it_is)
{
	channel_in_time(_metadata, self, self->data, SHORTLY);
}

TEST_F(held, a_message_that_could_leave_from_where_it_is_without_waiting)
{
	channel_in_time(_metadata, self, self->data, H_NOWAIT);
}

/* What was sent gets there, and then that it was all. */
TEST_F(held, closing)
{
	struct h_channel *a, *b;
	struct h_message m;

	ASSERT_EQ(0, h_channel_pair(self->a.m, self->b.m, NULL, &a, &b));
	ASSERT_EQ(0, stall(self, NEVER));
	ht_fill(self->heap, 3000, 1);
	ASSERT_EQ(0, h_channel_send(a, self->heap, 3000, SHORTLY));
	EXPECT_EQ(-EBUSY, h_manager_destroy(self->a.m));
	EXPECT_EQ(-ETIMEDOUT, h_channel_close(a, SHORTLY));
	EXPECT_EQ(0, use_memory(self));
	/* It is not told of the end either, which might overtake what is before that. */
	EXPECT_EQ(-ETIMEDOUT, h_channel_receive(b, &m, SHORTLY));
	ASSERT_TRUE(all_left(self));
	ASSERT_EQ(0, h_channel_receive(b, &m, ht_patience_ns()));
	EXPECT_EQ(3000u, ht_match(m.data, m.length, 1));
	h_channel_release(b, &m);
	EXPECT_EQ(-ENODATA, h_channel_receive(b, &m, ht_patience_ns()));
	h_channel_close(b, H_NOWAIT);
}

/* A loan is the library's memory: it is on its way as long as that takes. */
TEST_F(held, loans)
{
	struct h_channel *a, *b;
	struct h_message m;
	struct h_loan loan;

	ASSERT_EQ(0, h_channel_pair(self->a.m, self->b.m, NULL, &a, &b));
	ASSERT_EQ(0, stall(self, NEVER));
	ASSERT_EQ(0, h_channel_reserve(a, 3000, &loan));
	ht_fill(loan.data, 3000, 2);
	ASSERT_EQ(0, h_channel_commit(a, &loan, 3000, H_NOWAIT));
	EXPECT_EQ(-EAGAIN, h_channel_close(a, H_NOWAIT));
	EXPECT_EQ(0, use_memory(self));
	ASSERT_TRUE(all_left(self));
	ASSERT_EQ(0, h_channel_receive(b, &m, ht_patience_ns()));
	EXPECT_EQ(3000u, ht_match(m.data, m.length, 2));
	h_channel_release(b, &m);
	h_channel_close(b, H_NOWAIT);
}

/* One that never goes on: the manager ends, and with it what has not left. */
TEST_F(held, a_manager_ends)
{
	struct h_channel *a, *b;

	ASSERT_EQ(0, h_channel_pair(self->a.m, self->b.m, NULL, &a, &b));
	ASSERT_EQ(0, stall(self, NEVER));
	EXPECT_GT(send_until_late(a, self->heap, H_NOWAIT), 0);
	EXPECT_EQ(-EAGAIN, h_channel_close(a, H_NOWAIT));
	EXPECT_EQ(0, h_manager_destroy(self->a.m));
	self->a.m = NULL;
	h_channel_close(b, H_NOWAIT);
}

/* ---- streams ---- */

struct stream {
	struct h_stream_receiver *r;
	struct h_stream_sender *s;
};

static int stream_make(FIXTURE_DATA(held) *self, struct stream *st)
{
	const struct h_stream_attr attr = { .buffers = BUFFERS, .buffer_size = BUFFER };
	struct h_seed seed;
	int err;

	err = h_stream_receiver_create(self->b.m, &attr, &st->r);
	if (err)
		return err;
	h_stream_receiver_seed(st->r, &seed);
	return h_stream_sender_create(self->a.m, &seed, &st->s);
}

/* Bytes that were taken until the time was over; they are changed at once. */
static size_t stream_until_late(struct h_stream_sender *s, char *data, int64_t time)
{
	size_t sent = 0;
	ssize_t n;

	do {
		ht_fill(data, STREAMED, 7);
		n = h_stream_send(s, data + sent, STREAMED - sent, time);
		memset(data, 0, STREAMED);
		sent += n > 0 ? (size_t)n : 0;
	} while (n > 0 && sent < STREAMED);
	return n == (time ? -ETIMEDOUT : -EAGAIN) ? sent : 0;
}

static void stream_in_time(struct __test_metadata *_metadata, FIXTURE_DATA(held) *self,
			   char *data, int64_t time)
{
	struct h_stream_receiver *r;
	struct h_record record;
	size_t sent, got = 0;
	struct ht_poll poll;
	struct stream st;
	int err;

	ASSERT_EQ(0, stream_make(self, &st));
	r = st.r;
	ASSERT_EQ(0, stall(self, NEVER));
	sent = stream_until_late(st.s, data, time);
	/* As if it had left: nobody is refused while the receiver has buffers. */
	EXPECT_GE(sent, (size_t)TAKEN);
	EXPECT_EQ(-EAGAIN, h_stream_sender_close(st.s, H_NOWAIT));
	EXPECT_EQ(0, use_memory(self));
	ASSERT_TRUE(all_left(self));
	ht_fill(data, STREAMED, 7);
	ht_poll_begin(&poll);
	while ((err = h_stream_receive(r, &record, HT_MS)) != -ECONNRESET && ht_poll_more(&poll)) {
		h_manager_poll(self->a.m);
		if (err)
			continue;
		EXPECT_EQ(0, memcmp(record.data, data + got, record.length));
		got += record.length;
		h_stream_release(r, &record);
	}
	/* It is told that the sender is gone, behind all but what was collected last. */
	EXPECT_EQ(-ECONNRESET, err);
	EXPECT_GE(got, (size_t)TAKEN);
	EXPECT_LE(got, sent);
	h_stream_receiver_destroy(r);
}

TEST_F(held, a_stream_of_the_heap)
{
	stream_in_time(_metadata, self, self->heap, SHORTLY);
}

TEST_F(held, a_stream_of_the_heap_without_waiting)
{
	stream_in_time(_metadata, self, self->heap, H_NOWAIT);
}

TEST_F(held, a_stream_of_what_could_leave_from_where_it_is)
{
	stream_in_time(_metadata, self, self->data, SHORTLY);
}

static void count(struct h_stream_sender *s, void *arg)
{
	(void)s;
	++*(int *)arg;
}

/* It was refused, although the receiver has buffers: it is told when it can go on, not before. */
static void called_back(struct __test_metadata *_metadata, FIXTURE_DATA(held) *self,
			struct stream *st)
{
	struct ht_poll poll;
	int calls = 0, i;

	h_stream_sender_on_ready(st->s, count, &calls);
	for (i = 0; i < 20; i++) {
		h_manager_wait(self->a.m, HT_MS);
		h_manager_dispatch(self->a.m);
	}
	EXPECT_EQ(0, calls);
	ASSERT_EQ(0, stall(self, GO_ON));
	ht_poll_begin(&poll);
	while (!calls && ht_poll_more(&poll)) {
		h_manager_wait(self->a.m, HT_MS);
		h_manager_dispatch(self->a.m);
	}
	EXPECT_GT(calls, 0);
	h_stream_sender_close(st->s, H_NOWAIT);
	h_stream_receiver_destroy(st->r);
}

/* Datagrams without waiting, until one is not taken: why. */
static int send_until_refused(FIXTURE_DATA(held) *self, const struct h_datagram_address *to,
			      size_t length)
{
	int n, err = 0;

	for (n = 0; n < 10000 && !err; n++)
		err = h_datagram_send(self->a.m, to, 0, self->heap, length, NULL, H_NOWAIT);
	return err;
}

/* The NIC was given all of them: what is collected next may take their place. */
TEST_F(held, short_records_where_there_is_no_room_for_copies)
{
	const struct h_datagram_attr attr = { .length = LENGTH };
	struct h_datagram_receiver *other;
	struct h_datagram_address to;
	struct stream st;
	int i;

	ASSERT_EQ(0, h_datagram_receiver_create(self->b.m, &attr, &other));
	h_datagram_receiver_address(other, &to);
	ASSERT_EQ(0, stream_make(self, &st));
	ASSERT_EQ(0, stall(self, NEVER));
	ASSERT_EQ(-EAGAIN, send_until_refused(self, &to, LENGTH));
	for (i = 0; i < BUFFERS - 1; i++) {
		EXPECT_EQ(1, h_stream_send(st.s, "x", 1, H_NOWAIT));
		EXPECT_EQ(0, h_stream_flush(st.s, H_NOWAIT));
	}
	h_stream_sender_close(st.s, H_NOWAIT);
	h_stream_receiver_destroy(st.r);
	h_datagram_receiver_destroy(other);
}

/* @length: of the datagrams that have taken all there is. */
static void refused_behind(struct __test_metadata *_metadata, FIXTURE_DATA(held) *self,
			   size_t length)
{
	const struct h_datagram_attr attr = { .length = LENGTH };
	struct h_datagram_receiver *other;
	struct h_datagram_address to;
	struct stream st;

	ASSERT_EQ(0, h_datagram_receiver_create(self->b.m, &attr, &other));
	h_datagram_receiver_address(other, &to);
	ASSERT_EQ(0, stream_make(self, &st));
	ASSERT_EQ(0, stall(self, NEVER));
	ASSERT_EQ(-EAGAIN, send_until_refused(self, &to, length));
	EXPECT_LT(stream_until_late(st.s, self->heap, H_NOWAIT), (size_t)TAKEN);
	called_back(_metadata, self, &st);
	h_datagram_receiver_destroy(other);
}

TEST_F(held, who_found_the_work_queue_full_is_called_back)
{
	refused_behind(_metadata, self, 1);
}

TEST_F(held, who_found_no_room_for_copies_is_called_back)
{
	refused_behind(_metadata, self, LENGTH);
}

/* Who makes one has no deadline to give: a second, for the first record. */
TEST_F(held, a_new_sender)
{
	struct h_datagram_receiver *other;
	struct h_datagram_address to;
	struct h_stream_receiver *r;
	struct h_stream_sender *s;
	struct h_seed seed;

	ASSERT_EQ(0, h_datagram_receiver_create(self->b.m, NULL, &other));
	h_datagram_receiver_address(other, &to);
	ASSERT_EQ(0, h_stream_receiver_create(self->b.m, NULL, &r));
	h_stream_receiver_seed(r, &seed);
	ASSERT_EQ(0, stall(self, NEVER));
	EXPECT_EQ(-EAGAIN, send_until_refused(self, &to, 1));
	EXPECT_EQ(-ETIMEDOUT, h_stream_sender_create(self->a.m, &seed, &s));
	h_stream_receiver_destroy(r);
	h_datagram_receiver_destroy(other);
}

/* ---- datagrams, and with them tagged writes and groups ---- */

TEST_F(held, a_datagram)
{
	const struct h_datagram_attr attr = { .length = LENGTH };
	struct h_datagram_receiver *r;
	struct h_datagram_address to;
	struct h_datagram d;

	ASSERT_EQ(0, h_datagram_receiver_create(self->b.m, &attr, &r));
	h_datagram_receiver_address(r, &to);
	ASSERT_EQ(0, stall(self, NEVER));
	ht_fill(self->data, LENGTH, 4);
	ASSERT_EQ(0, h_datagram_send(self->a.m, &to, 0, self->data, LENGTH, NULL, SHORTLY));
	memset(self->data, 0, LENGTH);
	ASSERT_TRUE(all_left(self));
	ASSERT_EQ(0, h_datagram_receive(r, &d, ht_patience_ns()));
	EXPECT_EQ((size_t)LENGTH, ht_match(d.data, d.length, 4));
	h_datagram_receiver_destroy(r);
}

/* What stays behind is as much as the budget, whatever the work queue has room for. */
TEST_F(held, copies_are_few)
{
	const struct h_datagram_attr attr = { .length = LENGTH };
	struct h_datagram_receiver *r;
	struct h_datagram_address to;
	int n, round;

	ASSERT_EQ(0, h_datagram_receiver_create(self->b.m, &attr, &r));
	h_datagram_receiver_address(r, &to);
	for (round = 0; round < 2; round++) {
		ASSERT_EQ(0, stall(self, NEVER));
		for (n = 0; n < 100; n++)
			if (h_datagram_send(self->a.m, &to, 0, self->heap, LENGTH, NULL,
					    H_NOWAIT))
				break;
		EXPECT_EQ(BUDGET / LENGTH, n);
		EXPECT_EQ(-ETIMEDOUT, h_datagram_send(self->a.m, &to, 0, self->heap, LENGTH,
						      NULL, SHORTLY));
		ASSERT_TRUE(all_left(self));
	}
	h_datagram_receiver_destroy(r);
}

TEST_HARNESS_MAIN
