// SPDX-License-Identifier: GPL-2.0-only
/* Streams: in order, whole, with few buffers and many, with and without locks. */
#include <pthread.h>

#include <hamlyn/stream.h>

/* For the numbers of records: nobody can wait until they wrap around. */
#include "stream/stream.h"

#include "kselftest_harness.h"
#include "hamlyn_test.h"
#include "nics.h"
#include "refused_watch.h"
#include "used_tags.h"

#define SECOND	1000000000LL

FIXTURE(stream) {
	struct h_dev *rx;
	struct h_dev *tx;
	struct h_manager *to;
	struct h_manager *from;
	struct h_stream_receiver *receiver;
	struct h_stream_sender *sender;
	unsigned char *data;
};

FIXTURE_VARIANT(stream) {
	bool one_manager;
	uint32_t flags;
	struct h_stream_attr attr;
	uint32_t wq_entries, wq_entry_size;
};

FIXTURE_VARIANT_ADD(stream, defaults) {
};

FIXTURE_VARIANT_ADD(stream, one_manager) {
	.one_manager = true,
};

FIXTURE_VARIANT_ADD(stream, single) {
	.flags = H_MANAGER_SINGLE,
};

FIXTURE_VARIANT_ADD(stream, fewest_buffers) {
	.attr = { .buffers = 2, .buffer_size = 128, .max_buffer_size = 1 },
	.wq_entries = 2, .wq_entry_size = 256,
};

FIXTURE_VARIANT_ADD(stream, growing) {
	.attr = { .buffers = 4, .buffer_size = 128,
		  .max_buffer_size = 1 << 20 },
};

#define LONGEST	(3u << 20)

FIXTURE_SETUP(stream)
{
	struct h_manager_attr attr = {
		.flags = variant->flags,
		.wq_entries = variant->wq_entries,
		.wq_entry_size = variant->wq_entry_size,
	};
	struct h_seed seed;

	ASSERT_EQ(0, h_open(ht_device(), &self->rx));
	self->tx = self->rx;
	if (!variant->one_manager)
		ASSERT_EQ(0, ht_open_tx(&self->tx));
	ASSERT_EQ(0, h_manager_create(self->rx, &attr, &self->to));
	self->from = self->to;
	if (!variant->one_manager)
		ASSERT_EQ(0, h_manager_create(self->tx, &attr, &self->from));
	ASSERT_EQ(0, h_stream_receiver_create(self->to, &variant->attr,
					      &self->receiver));
	h_stream_receiver_seed(self->receiver, &seed);
	ASSERT_EQ(0, h_stream_sender_create(self->from, &seed, &self->sender));
	self->data = malloc(LONGEST);
	ASSERT_NE(NULL, self->data);
}

FIXTURE_TEARDOWN(stream)
{
	h_stream_sender_close(self->sender, H_NOWAIT);
	EXPECT_EQ(0, h_stream_receiver_destroy(self->receiver));
	EXPECT_EQ(0, h_manager_destroy(self->to));
	if (self->from != self->to) {
		EXPECT_EQ(0, h_manager_destroy(self->from));
		h_close(self->tx);
	}
	h_close(self->rx);
	free(self->data);
}

/* What arrives until nothing does; every byte is as sent from @at on. */
static const char *drain(struct h_stream_receiver *r, uint64_t seed,
			 uint64_t *at)
{
	struct h_record record;
	int ret;

	while ((ret = h_stream_receive(r, &record, H_NOWAIT)) == 0) {
		const unsigned char *p = record.data;
		size_t i;

		for (i = 0; i < record.length; i++)
			if (p[i] != (unsigned char)((*at + i) * 31 + seed))
				return "wrong data";
		*at += record.length;
		h_stream_release(r, &record);
	}
	return ret == -EAGAIN ? NULL : "cannot receive";
}

/* So many bytes from end to end, of which @sent and @got came before. */
static const char *pass(FIXTURE_DATA(stream) *self, size_t length, uint64_t *sent,
			uint64_t *got)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	const char *wrong = NULL;
	size_t done = 0, i;
	ssize_t n;

	for (i = 0; i < length; i++)
		self->data[i] = (unsigned char)((*sent + i) * 31 + 7);
	*sent += length;
	while (*got < *sent && !wrong) {
		n = done < length ? h_stream_send(self->sender, self->data + done,
						  length - done, H_NOWAIT) :
				    h_stream_flush(self->sender, H_NOWAIT);
		if (n < 0 && n != -EAGAIN)
			return "cannot send";
		done += n > 0 ? (size_t)n : 0;
		wrong = drain(self->receiver, 7, got);
		if (ht_now_ns() > end)
			return "it does not arrive";
	}
	return wrong;
}

/* Its own NIC refuses it: nobody will say that everything has arrived. */
TEST_F(stream, an_end_that_does_not_leave_is_not_waited_for)
{
	uint64_t sent = 0, got = 0;

	ASSERT_NO(pass(self, 10, &sent, &got));
	self->sender->to.host = 4711;
	EXPECT_EQ(-EPIPE, h_stream_sender_shutdown(self->sender, SECOND));
	EXPECT_EQ(-EPIPE, h_stream_sender_shutdown(self->sender, SECOND));
}

/* H 3.3: A stream arrives whole and in order. */
TEST_F(stream, any_size_arrives_whole_and_in_order)
{
	static const size_t sizes[] = { 1, 2, 60, 127, 128, 129, 1000, 4095,
		4096, 4097, 65536, 100000, LONGEST };
	uint64_t sent = 0, got = 0;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		ASSERT_NO(pass(self, sizes[i], &sent, &got)) {
			TH_LOG("%zu bytes", sizes[i]);
		}
		ASSERT_EQ(sent, got);
	}
}

TEST_F(stream, who_gets_no_larger_memory_sends_from_what_there_is)
{
	uint64_t sent = 0, got = 0;

	ASSERT_NO(pass(self, 2, &sent, &got));
	ASSERT_NO(use_up_tags(self->from));
	ASSERT_NO(pass(self, LONGEST, &sent, &got));
	ASSERT_NO(pass(self, 1, &sent, &got));
	EXPECT_LE(self->sender->stage_size, self->sender->buffer);
}

struct feeder {
	struct h_stream_sender *sender;
	uint64_t bytes;
	int result;
};

static void *feed(void *arg)
{
	struct feeder *f = arg;
	unsigned char chunk[5000];
	uint64_t at = 0;

	while (at < f->bytes) {
		size_t n = 1 + (at * 7 + at / 3) % sizeof(chunk), i;
		ssize_t ret;

		if (n > f->bytes - at)
			n = f->bytes - at;
		for (i = 0; i < n; i++)
			chunk[i] = (unsigned char)((at + i) * 31 + 9);
		ret = h_stream_send(f->sender, chunk, n, 20 * SECOND);
		if (ret != (ssize_t)n) {
			f->result = ret < 0 ? (int)ret : -EIO;
			return NULL;
		}
		at += n;
	}
	f->result = h_stream_sender_close(f->sender, 20 * SECOND);
	return NULL;
}

/* H 6.4: A sender closes a stream gracefully: nothing that was sent before is lost. */
TEST_F(stream, a_closed_stream_ends_with_its_last_byte)
{
	struct feeder f = { .sender = self->sender, .bytes = 2000000 };
	struct h_record record;
	pthread_t thread;
	uint64_t at = 0;
	int ret;

	if (variant->one_manager && variant->flags & H_MANAGER_SINGLE)
		SKIP(return, "one thread");
	ASSERT_EQ(0, pthread_create(&thread, NULL, feed, &f));
	while ((ret = h_stream_receive(self->receiver, &record,
				       20 * SECOND)) == 0) {
		const unsigned char *p = record.data;
		size_t i;

		for (i = 0; i < record.length; i++) {
			if (p[i] == (unsigned char)((at + i) * 31 + 9))
				continue;
			ASSERT_EQ(p[i], (unsigned char)((at + i) * 31 + 9));
		}
		at += record.length;
		h_stream_release(self->receiver, &record);
	}
	EXPECT_EQ(-ENODATA, ret);
	EXPECT_EQ(f.bytes, at);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, f.result);
	self->sender = NULL;
}

/* Each try is cut off at once; only the receiver's progress ends it. */
TEST_F(stream, it_is_shut_down_in_as_many_tries_as_it_takes)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	bool refused = false;
	size_t got = 0;
	ssize_t taken;
	int ret;

	do {
		taken = h_stream_send(self->sender, self->data, 1000, H_NOWAIT);
	} while (taken == 1000 && (got += 1000) < 1000000);
	taken = got + (taken > 0 && taken < 1000 ? taken : 0);
	got = 0;
	while ((ret = h_stream_sender_shutdown(self->sender, H_NOWAIT)) == -EAGAIN &&
	       ht_now_ns() < end) {
		struct h_record record;

		refused = true;
		h_manager_poll(self->to);
		if (h_stream_receive(self->receiver, &record, H_NOWAIT) != 0)
			continue;
		got += record.length;
		h_stream_release(self->receiver, &record);
	}
	EXPECT_EQ(0, ret);
	EXPECT_EQ(true, refused);
	EXPECT_EQ(0, h_stream_sender_shutdown(self->sender, H_NOWAIT));
	EXPECT_EQ(-EPIPE, h_stream_send(self->sender, "x", 1, H_NOWAIT));
	EXPECT_EQ(0, h_stream_sender_close(self->sender, H_NOWAIT));
	self->sender = NULL;
	while ((ret = (int)h_stream_receive_copy(self->receiver, self->data, 1000, SECOND)) > 0)
		got += (size_t)ret;
	EXPECT_EQ(-ENODATA, ret);
	EXPECT_EQ((size_t)taken, got);
}

static uint32_t buffers(const struct h_stream_attr *attr)
{
	return attr->buffers ? attr->buffers : 16;
}

/* A record of one byte; false if there is no buffer for it. */
static bool send_byte(struct h_stream_sender *s, uint64_t seed, uint64_t at)
{
	unsigned char byte = (unsigned char)(at * 31 + seed);
	int64_t end = ht_now_ns() + ht_patience_ns();

	/* Nothing is collected when the one before went. */
	if (h_stream_send(s, &byte, 1, H_NOWAIT) != 1)
		return false;
	while (h_stream_flush(s, H_NOWAIT) == -EAGAIN)
		if (s->staged && s->entries == s->sent - s->released)
			return false;
		else if (ht_now_ns() > end)
			return false;
	return true;
}

/* As many as go, then all that was collected after room was made. */
static const char *fill_and_drain(FIXTURE_DATA(stream) *self, uint32_t most,
				  uint64_t *sent, uint64_t *got)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	const char *complaint;
	uint32_t n = 0;
	bool room;

	do {
		room = send_byte(self->sender, 5, *sent);
		++*sent;
		if (++n > most + 1)
			return "more than there are buffers";
	} while (room);
	do {
		complaint = drain(self->receiver, 5, got);
		if (complaint)
			return complaint;
		h_stream_flush(self->sender, H_NOWAIT);
		if (ht_now_ns() > end)
			return "not all arrived";
	} while (*got < *sent);
	return NULL;
}

/* Nothing is under way: as if so many more had been sent. */
static const char *skip_records(FIXTURE_DATA(stream) *self, uint32_t by)
{
	struct h_stream_receiver *r = self->receiver;
	struct h_stream_sender *s = self->sender;
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (s->released != r->credited || r->high != s->sent) {
		h_manager_poll(self->from);
		h_manager_poll(self->to);
		if (!ht_poll_more(&poll))
			return "never quiet";
	}
	s->sent += by;
	s->released += by;
	r->high += by;
	r->next += by;
	r->released += by;
	r->credited += by;
	return NULL;
}

TEST_F(stream, numbers_of_records_wrap_around)
{
	/* Half of all, and then the rest, nearly. */
	static const uint32_t by[] = { 0, (1u << 31) - 2048, (1u << 31) - 2048 };
	uint32_t most = buffers(&variant->attr), i;
	uint64_t sent = 0, got = 0;

	for (i = 0; i < ARRAY_SIZE(by); i++) {
		uint64_t end = sent + (i ? 4500 : 50);

		ASSERT_NO(skip_records(self, by[i]));
		while (sent < end) {
			ASSERT_NO(fill_and_drain(self, most, &sent, &got));
		}
	}
	EXPECT_LT(self->sender->sent, 1u << 30);
}

/* H 3.3: What was received is not copied, and stays until it is released. */
TEST_F(stream, who_holds_pieces_can_hold_as_many_as_there_are_buffers)
{
	uint32_t most = buffers(&variant->attr), held = 0, i;
	struct h_record record, last = { };
	uint64_t sent = 0, got = 0;
	struct ht_poll poll;

	/* Too few are released for the sender to be told of it at once. */
	for (i = 0; i < most / 8; i++) {
		ASSERT_TRUE(send_byte(self->sender, 3, sent++));
	}
	ht_poll_begin(&poll);
	while (got < sent) {
		ASSERT_NO(drain(self->receiver, 3, &got));
		ASSERT_TRUE(ht_poll_more(&poll));
	}
	ht_poll_begin(&poll);
	do {
		if (send_byte(self->sender, 3, sent))
			sent++;
		h_stream_flush(self->sender, H_NOWAIT);
		while (h_stream_receive(self->receiver, &record, H_NOWAIT) == 0) {
			last = record;
			held += (uint32_t)record.length;
		}
	} while (held < most && ht_poll_more(&poll));
	EXPECT_GE(held, most);
	h_stream_release(self->receiver, &last);
}

/* All that moves it are call backs, in whichever thread. */
struct mover {
	uint64_t bytes;
	uint64_t sent;		/* one call back at a time */
	uint64_t got;		/* atomic */
	uint32_t wrong;		/* atomic */
	bool flushed;
};

static void go_on_sending(struct h_stream_sender *s, void *arg)
{
	struct mover *m = arg;
	unsigned char data[300];
	ssize_t n = 1;

	while (m->sent < m->bytes && n > 0) {
		size_t length = 1 + m->sent % sizeof(data), i;

		if (length > m->bytes - m->sent)
			length = m->bytes - m->sent;
		for (i = 0; i < length; i++)
			data[i] = (unsigned char)((m->sent + i) * 31 + 1);
		n = h_stream_send(s, data, length, H_NOWAIT);
		if (n > 0)
			m->sent += (uint64_t)n;
	}
	if (m->sent == m->bytes && !m->flushed)
		m->flushed = !h_stream_flush(s, H_NOWAIT);
}

static void go_on_receiving(struct h_stream_receiver *r, void *arg)
{
	struct mover *m = arg;
	uint64_t at = m->got;

	if (drain(r, 1, &at))
		__atomic_add_fetch(&m->wrong, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&m->got, at, __ATOMIC_SEQ_CST);
}

struct dispatcher {
	struct h_manager *manager;
	struct mover *mover;
	int64_t end;
};

static void *keep_dispatching(void *arg)
{
	struct dispatcher *d = arg;

	while (__atomic_load_n(&d->mover->got, __ATOMIC_SEQ_CST) <
	       d->mover->bytes && ht_now_ns() < d->end) {
		h_manager_wait(d->manager, 20 * HT_MS);
		h_manager_dispatch(d->manager);
	}
	return NULL;
}

TEST_F(stream, call_backs_move_it)
{
	struct mover m = { .bytes = h_dev_is_embedded(self->rx) ? 1000000 :
								 200000 };
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct dispatcher d[] = { { self->to, &m, end }, { self->from, &m, end } };
	bool single = variant->flags & H_MANAGER_SINGLE;
	pthread_t thread[4];
	int i, n = single ? 2 : 4;

	h_stream_receiver_on_ready(self->receiver, go_on_receiving, &m);
	h_stream_sender_on_ready(self->sender, go_on_sending, &m);
	/* The first time nothing has to have failed before. */
	go_on_sending(self->sender, &m);
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, keep_dispatching,
					    &d[i % 2]));
	}
	for (i = 0; i < n; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, m.wrong);
	EXPECT_EQ(m.bytes, m.got);
	h_stream_receiver_on_ready(self->receiver, NULL, NULL);
	h_stream_sender_on_ready(self->sender, NULL, NULL);
}

struct writer {
	struct h_stream_sender *sender;
	ssize_t result;
};

static void *write_one(void *arg)
{
	static const unsigned char data[4096];
	struct writer *w = arg;

	w->result = h_stream_send(w->sender, data, sizeof(data), 60 * SECOND);
	return NULL;
}

static void count_calls(struct h_stream_sender *s, void *arg)
{
	(void)s;
	++*(unsigned int *)arg;
}

TEST_F(stream, who_is_kept_out_by_another_thread_is_called_back)
{
	struct writer w = { .sender = self->sender };
	struct h_record record;
	unsigned int called = 0;
	struct ht_poll poll;
	pthread_t thread;

	if (variant->flags & H_MANAGER_SINGLE)
		SKIP(return, "two threads send");
	while (h_stream_send(self->sender, self->data, 4096, H_NOWAIT) > 0)
		;
	/* That the last of these was refused is not what is called back for. */
	self->sender->refused = false;
	ASSERT_EQ(0, pthread_create(&thread, NULL, write_one, &w));
	ht_poll_begin(&poll);
	while (h__try_lock(&self->sender->sending)) {
		h__unlock(&self->sender->sending);
		ht_sleep_ns(HT_MS);
		ASSERT_TRUE(ht_poll_more(&poll));
	}
	h_stream_sender_on_ready(self->sender, count_calls, &called);
	EXPECT_EQ(-EAGAIN, h_stream_send(self->sender, "x", 1, H_NOWAIT));
	ht_poll_begin(&poll);
	while (!called && ht_poll_more(&poll)) {
		while (h_stream_receive(self->receiver, &record, H_NOWAIT) == 0)
			h_stream_release(self->receiver, &record);
		h_manager_dispatch(self->from);
	}
	EXPECT_LT(0, called);
	pthread_join(thread, NULL);
	EXPECT_EQ(4096, w.result);
	h_stream_sender_on_ready(self->sender, NULL, NULL);
}

struct nibbler {
	unsigned char data[100];
	size_t got;
};

static void nibble(struct h_stream_receiver *r, void *arg)
{
	struct nibbler *n = arg;

	if (h_stream_receive_copy(r, n->data + n->got, 1, H_NOWAIT) == 1)
		n->got++;
}

TEST_F(stream, the_rest_of_a_piece_is_told_again)
{
	struct nibbler n = {};
	struct ht_poll poll;

	ht_fill(self->data, sizeof(n.data), 1);
	ASSERT_EQ(sizeof(n.data), h_stream_send(self->sender, self->data,
						sizeof(n.data), SECOND));
	ASSERT_EQ(0, h_stream_flush(self->sender, H_NOWAIT));
	h_stream_receiver_on_ready(self->receiver, nibble, &n);
	ht_poll_begin(&poll);
	while (n.got < sizeof(n.data) && ht_poll_more(&poll))
		h_manager_dispatch(self->to);
	ASSERT_EQ(sizeof(n.data), n.got);
	EXPECT_EQ(sizeof(n.data), ht_match(n.data, sizeof(n.data), 1));
	h_stream_receiver_on_ready(self->receiver, NULL, NULL);
}

TEST_F(stream, who_is_gone_is_told_at_once)
{
	struct h_record record;

	EXPECT_EQ(-EAGAIN, h_stream_receive(self->receiver, &record, H_NOWAIT));
	ASSERT_EQ(0, h_stream_receiver_destroy(self->receiver));
	self->receiver = NULL;
	EXPECT_EQ(-EPIPE, h_stream_sender_close(self->sender, SECOND));
	self->sender = NULL;
}

/* Of the first memory there is only a part of what a buffer holds. */
TEST_F(stream, who_gets_little_memory_sends_from_that)
{
	static const struct h_stream_attr attr = { .buffer_size = 65536 };
	static const char data[200000];
	struct h_stream_receiver *r;
	struct h_stream_sender *s;
	struct h_seed seed;
	char room[3000];
	ssize_t n, got = 0;
	void *piece;
	struct ht_poll poll;

	ASSERT_EQ(0, h_manager_alloc(self->from, 64, &piece));
	ASSERT_NO(use_up_tags(self->from));
	ASSERT_EQ(0, h_stream_receiver_create(self->to, &attr, &r));
	h_stream_receiver_seed(r, &seed);
	ASSERT_EQ(0, h_stream_sender_create(self->from, &seed, &s));
	EXPECT_EQ(sizeof(data), h_stream_send(s, data, sizeof(data), SECOND));
	EXPECT_EQ(0, h_stream_flush(s, SECOND));
	ht_poll_begin(&poll);
	while (got < (ssize_t)sizeof(data) && ht_poll_more(&poll)) {
		n = h_stream_receive_copy(r, room, sizeof(room), H_NOWAIT);
		got += n > 0 ? n : 0;
	}
	EXPECT_EQ(sizeof(data), got);
	EXPECT_GE(s->stage_size, 4096);
	EXPECT_LT(s->stage_size, s->buffer);
	h_stream_sender_close(s, H_NOWAIT);
	EXPECT_EQ(0, h_stream_receiver_destroy(r));
}

/* ---- watches are refused for a while ---- */

FIXTURE(unwatched) {
	struct h_dev *dev[2];
	struct h_manager *to;
	struct h_manager *from;
	struct h_stream_receiver *receiver;
	struct h_stream_sender *sender;
};

FIXTURE_SETUP(unwatched)
{
	static const struct h_stream_attr attr = {
		.buffers = 4, .buffer_size = 128, .max_buffer_size = 4096,
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
}

FIXTURE_TEARDOWN(unwatched)
{
	h_stream_sender_close(self->sender, H_NOWAIT);
	h_stream_receiver_destroy(self->receiver);
	EXPECT_EQ(0, h_manager_destroy(self->to));
	EXPECT_EQ(0, h_manager_destroy(self->from));
	h_close(self->dev[0]);
	h_close(self->dev[1]);
}

/* Until the sender has turned to larger buffers, and no watch of them was let in. */
static const char *grow_unwatched(FIXTURE_DATA(unwatched) *self)
{
	unsigned char data[3000] = { 0 }, room[3000];
	struct ht_poll poll;
	ssize_t n;

	watches_may_be_refused(self->dev[1]);
	refuse_watches(true);
	ht_poll_begin(&poll);
	while (self->sender->generation < 2) {
		n = h_stream_send(self->sender, data, sizeof(data), H_NOWAIT);
		if (n < 0 && n != -EAGAIN)
			return "a refused watch breaks it";
		while (h_stream_receive_copy(self->receiver, room, sizeof(room),
					     H_NOWAIT) > 0)
			;
		if (!ht_poll_more(&poll))
			return "it does not grow";
	}
	return watches_refused() ? NULL : "nothing was refused";
}

struct stuck {
	struct h_stream_sender *sender;
	ssize_t result;
	int64_t told;
};

static void *send_until_told(void *arg)
{
	static const unsigned char data[10000];
	struct stuck *s = arg;

	do
		s->result = h_stream_send(s->sender, data, sizeof(data),
					  30 * SECOND);
	while (s->result == sizeof(data));
	/* What was taken before is told first. */
	if (s->result > 0)
		s->result = h_stream_send(s->sender, data, 1, 30 * SECOND);
	s->told = ht_now_ns();
	return NULL;
}

TEST_F(unwatched, a_sender_that_sleeps_watches_when_it_may)
{
	struct stuck s = { .sender = self->sender };
	pthread_t thread;
	int64_t gone;

	ASSERT_NO(grow_unwatched(self));
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_until_told, &s));
	ht_sleep_ns(50 * HT_MS);
	refuse_watches(false);
	ht_sleep_ns(50 * HT_MS);
	gone = ht_now_ns();
	EXPECT_EQ(0, h_stream_receiver_destroy(self->receiver));
	self->receiver = NULL;
	pthread_join(thread, NULL);
	EXPECT_EQ(-EPIPE, s.result);
	EXPECT_GT(gone + ht_patience_ns() / 20, s.told);
}

static void send_in_vain(struct h_stream_sender *s, void *arg)
{
	static const unsigned char data[10000];
	ssize_t *result = arg;

	*result = h_stream_send(s, data, sizeof(data), H_NOWAIT);
}

TEST_F(unwatched, an_event_loop_that_sends_watches_when_it_may)
{
	struct ht_poll poll;
	ssize_t result = 0;

	ASSERT_NO(grow_unwatched(self));
	h_stream_sender_on_ready(self->sender, send_in_vain, &result);
	ht_poll_begin(&poll);
	do
		send_in_vain(self->sender, &result);
	while (result > 0 && ht_poll_more(&poll));
	ASSERT_EQ(-EAGAIN, result);
	EXPECT_EQ(0, h_stream_receiver_destroy(self->receiver));
	self->receiver = NULL;
	refuse_watches(false);
	/* From here on nothing but call backs. */
	ht_poll_begin(&poll);
	while (result == -EAGAIN && ht_poll_more(&poll)) {
		h_manager_wait(self->from, 20 * HT_MS);
		h_manager_dispatch(self->from);
	}
	EXPECT_EQ(-EPIPE, result);
}

static void receive_in_vain(struct h_stream_receiver *r, void *arg)
{
	struct h_record record;
	int *result = arg;

	*result = h_stream_receive(r, &record, H_NOWAIT);
}

TEST_F(unwatched, an_event_loop_that_receives_watches_when_it_may)
{
	int result = -EAGAIN, i;
	struct ht_poll poll;

	watches_may_be_refused(self->dev[0]);
	refuse_watches(true);
	h_stream_receiver_on_ready(self->receiver, receive_in_vain, &result);
	ht_poll_begin(&poll);
	while (!watches_refused() && ht_poll_more(&poll))
		h_manager_dispatch(self->to);
	ASSERT_LT(0, watches_refused());
	/* It ends without a word: as if it had been killed. */
	h__stream_sender_destroy(self->sender);
	self->sender = NULL;
	for (i = 0; i < 100; i++)
		h_manager_dispatch(self->to);
	EXPECT_EQ(-EAGAIN, result);
	refuse_watches(false);
	ht_poll_begin(&poll);
	while (result == -EAGAIN && ht_poll_more(&poll)) {
		h_manager_wait(self->to, 20 * HT_MS);
		h_manager_dispatch(self->to);
	}
	EXPECT_EQ(-ECONNRESET, result);
}

/* ---- the other end breaks the rules ---- */

/*
 * Two managers, an honest stream on the first, and one whose other end, on the
 * second, says what it likes with the keys that it was given.
 */
FIXTURE(hostile) {
	struct h_dev *dev[2];
	struct h_manager *good;
	struct h_manager *bad;
	struct h_terminus *raw;
	struct h_stream_receiver *honest_r;
	struct h_stream_sender *honest_s;
	struct h_stream_receiver *r;
	struct h_stream_sender *s;
	uint64_t random;
	uint32_t rounds;
};

static const struct h_stream_attr few = {
	.buffers = 4, .buffer_size = 128, .max_buffer_size = 2048,
};

static int connect_two(struct h_manager *to, struct h_manager *from,
		       const struct h_stream_attr *attr,
		       struct h_stream_receiver **r, struct h_stream_sender **s)
{
	struct h_seed seed;
	int err;

	*s = NULL;
	err = h_stream_receiver_create(to, attr, r);
	if (err)
		return err;
	h_stream_receiver_seed(*r, &seed);
	return h_stream_sender_create(from, &seed, s);
}

static bool is_embedded(void)
{
	return !ht_device() || !strncmp(ht_device(), "shm:", 4);
}

/* @guesses: wrong keys a second, on the embedded device. */
static int open_both(FIXTURE_DATA(hostile) *self, int guesses)
{
	const char *name = ht_device();
	char own[64];
	int i, err = 0;

	if (is_embedded()) {
		snprintf(own, sizeof(own), "shm:hostile%d-%d,guesses=%d",
			 (int)getpid(), guesses, guesses);
		name = own;
	}
	for (i = 0; i < 2 && !err; i++)
		err = h_open(name, &self->dev[i]);
	if (!err)
		err = h_manager_create(self->dev[0], NULL, &self->good);
	if (!err)
		err = h_manager_create(self->dev[1], NULL, &self->bad);
	if (err)
		return err;
	self->raw = h_manager_terminus(self->bad);
	return connect_two(self->good, self->good, &few, &self->honest_r, &self->honest_s);
}

static int close_both(FIXTURE_DATA(hostile) *self)
{
	int err;

	h_stream_sender_close(self->s, H_NOWAIT);
	h_stream_receiver_destroy(self->r);
	err = h_stream_sender_close(self->honest_s, 10 * SECOND);
	h_stream_receiver_destroy(self->honest_r);
	if (!err)
		err = h_manager_destroy(self->good);
	if (!err)
		err = h_manager_destroy(self->bad);
	h_close(self->dev[0]);
	h_close(self->dev[1]);
	return err;
}

FIXTURE_SETUP(hostile)
{
	/* Rejected packets are no guesses here: nobody is to be held back. */
	ASSERT_EQ(0, open_both(self, 0));
	self->random = ht_seed();
	self->rounds = h_dev_is_embedded(self->dev[0]) ? 60000 : 3000;
}

FIXTURE_TEARDOWN(hostile)
{
	EXPECT_EQ(0, close_both(self));
}

static bool honest_works(FIXTURE_DATA(hostile) *self, uint32_t i)
{
	uint32_t got = 0;

	return h_stream_send(self->honest_s, &i, 4, SECOND * 10) == 4 &&
	       !h_stream_flush(self->honest_s, SECOND * 10) &&
	       h_stream_receive_copy(self->honest_r, &got, 4, SECOND * 10) == 4 &&
	       got == i;
}

/* ---- one lie at a time ---- */

/* What the receiver owes for a record that keeps to the rules, and for the others. */
static int64_t as_long_as(int result)
{
	return result == -ETIMEDOUT ? SECOND / 5 : ht_patience_ns();
}

static const char *disconnect(FIXTURE_DATA(hostile) *self)
{
	h_stream_sender_close(self->s, H_NOWAIT);
	self->s = NULL;
	if (h_stream_receiver_destroy(self->r))
		return "the receiver does not end";
	self->r = NULL;
	return honest_works(self, 1) ? NULL : "somebody else is cut off";
}

/* One whose other end has said nothing yet. */
static int connect_silent(FIXTURE_DATA(hostile) *self)
{
	struct h_seed seed;
	int err;

	err = h_stream_receiver_create(self->good, &few, &self->r);
	if (err)
		return err;
	h_stream_receiver_seed(self->r, &seed);
	err = h__stream_sender_prepare(self->bad, 0, &self->s);
	return err ? err : h__stream_sender_attach(self->s, &seed, -1);
}

static const struct record_lie {
	const char *what;
	bool silent;		/* it is the first record */
	bool twice;		/* into the same buffer, as a group of two */
	bool damaged;		/* the seed that is in it */
	size_t length;
	uint32_t flags;
	uint32_t credits;
	int result;
} record_lies[] = {
	{ "none", .length = 64 },
	{ "unknown flags", .length = 64, .flags = H_NOTE_FLAGS + 1,
	  .result = -EPROTO },
	{ "unknown flags, high ones", .length = 64, .flags = 1u << 31,
	  .result = -EPROTO },
	{ "a message without payload", .flags = H_NOTE_EMPTY,
	  .result = -EPROTO },
	{ "a payload longer than its buffer", .twice = true, .length = 128,
	  .result = -EPROTO },
	/* None was sent: that one was not seen yet is what may be. */
	{ "the last credits are under way", .length = 64,
	  .credits = 0xffffffff },
	{ "a credit that was not sent", .length = 64, .credits = 1,
	  .result = -EPROTO },
	{ "one in the second buffer", .length = 64, .credits = 1 << 8,
	  .result = -EPROTO },
	{ "one in the third", .length = 64, .credits = 1 << 16,
	  .result = -EPROTO },
	{ "one in the last", .length = 64, .credits = 1 << 24,
	  .result = -EPROTO },
	{ "two in one buffer not seen", .length = 64, .credits = 0xfe,
	  .result = -EPROTO },
	{ "two in the last", .length = 64, .credits = 0xfeu << 24,
	  .result = -EPROTO },
	{ "a second hello", .length = H_SEED_BYTES, .flags = H_NOTE_HELLO,
	  .result = -EPROTO },
	{ "none: the first hello", .silent = true, .length = H_SEED_BYTES,
	  .flags = H_NOTE_HELLO, .result = -ETIMEDOUT },
	{ "a long hello", .silent = true, .length = H_SEED_BYTES + 1,
	  .flags = H_NOTE_HELLO, .result = -EPROTO },
	{ "a short hello", .silent = true, .length = H_SEED_BYTES - 1,
	  .flags = H_NOTE_HELLO, .result = -EPROTO },
	{ "a hello that is none", .silent = true, .damaged = true,
	  .length = H_SEED_BYTES, .flags = H_NOTE_HELLO, .result = -EPROTO },
};

static const char *send_raw(FIXTURE_DATA(hostile) *self, struct h_msg *msg)
{
	int64_t handle = h_send(self->raw, msg);

	return handle < 0 || ht_send_wait(self->raw, handle) != 1 ?
	       "cannot send" : NULL;
}

/* The next record, as it would be sent, but for the note. */
static const char *send_record_raw(FIXTURE_DATA(hostile) *self,
				   const struct record_lie *l, uint32_t number,
				   uint64_t more)
{
	struct h_stream_sender *s = self->s;
	unsigned char note[H_NOTE_BYTES] = { 0 }, data[128] = { 0 };
	struct h_ticket t = s->ticket;
	struct h_msg msg = {
		.ticket = &t,
		.data = data,
		.length = l->length,
		.meta = note,
		.meta_length = H_NOTE_BYTES,
		.delta = l->twice,
	};
	const char *complaint;
	struct h_seed seed;

	h__stream_sender_credits(s, &seed);
	memcpy(data, seed.bytes, H_SEED_BYTES);
	data[0] ^= l->damaged;
	h__put(note, l->flags, 4);
	h__put(note + 4, l->credits, 4);
	h__put(note + 8, number, 4);
	h__put(note + 16, more, 8);
	t.meta_index = (s->sent - s->start) & (s->entries - 1);
	t.base += (uint64_t)t.meta_index * s->buffer;
	complaint = send_raw(self, &msg);
	msg.delta = UINT32_MAX;
	if (l->twice && !complaint)
		complaint = send_raw(self, &msg);
	h__store_release(&s->sent, s->sent + 1);
	return complaint;
}

static void count_warnings(int level, const char *text, void *arg)
{
	(void)text;
	*(int *)arg += level == H_LOG_WARNING;
}

TEST_F(hostile, each_lie_of_a_sender_is_found_out)
{
	struct h_record record;
	int warnings = 0, lies = 0;
	unsigned int i;

	h_log_set(H_LOG_WARNING, count_warnings, &warnings);
	for (i = 0; i < ARRAY_SIZE(record_lies); i++) {
		const struct record_lie *l = &record_lies[i];

		ASSERT_EQ(0, l->silent ? connect_silent(self) :
			  connect_two(self->good, self->bad, &few, &self->r,
				      &self->s));
		ASSERT_NO(send_record_raw(self, l, self->s->sent, 0));
		EXPECT_EQ(l->result, h_stream_receive(self->r, &record,
						      as_long_as(l->result))) {
			TH_LOG("%s", l->what);
		}
		/* It stays so. */
		if (l->result == -EPROTO) {
			EXPECT_EQ(-EPROTO, h_stream_receive(self->r, &record,
							    H_NOWAIT));
			lies++;
		}
		ASSERT_NO(disconnect(self));
	}
	h_log_set(H_LOG_ERROR, NULL, NULL);
	EXPECT_EQ(lies, warnings);
}

TEST_F(hostile, nothing_is_received_behind_the_end)
{
	static const struct record_lie end = { .flags = H_NOTE_FIN };
	struct h_record record;

	ASSERT_EQ(0, connect_two(self->good, self->bad, &few, &self->r,
				 &self->s));
	ASSERT_NO(send_record_raw(self, &record_lies[0], self->s->sent, 0));
	ASSERT_NO(send_record_raw(self, &end, self->s->sent, 0));
	ASSERT_NO(send_record_raw(self, &record_lies[0], self->s->sent, 0));
	EXPECT_EQ(0, h_stream_receive(self->r, &record, ht_patience_ns()));
	EXPECT_EQ(-ENODATA, h_stream_receive(self->r, &record, ht_patience_ns()));
	EXPECT_EQ(-ENODATA, h_stream_receive(self->r, &record, H_NOWAIT));
	ASSERT_NO(disconnect(self));
}

/* Until the sender has been offered larger buffers, and goes on in them. */
static const char *turn_to_larger(FIXTURE_DATA(hostile) *self)
{
	struct h_record record;
	struct ht_poll poll;

	if (connect_two(self->good, self->bad, &few, &self->r, &self->s))
		return "cannot connect";
	/* As if it had sent enough for that. */
	h_receiver_lock(&self->r->r);
	self->r->paid = 1 << 20;
	h_receiver_unlock(&self->r->r);
	if (send_record_raw(self, &record_lies[0], self->s->sent, 1 << 20))
		return "cannot send";
	if (h_stream_receive(self->r, &record, ht_patience_ns()) != 0)
		return "cannot receive";
	ht_poll_begin(&poll);
	while (self->s->generation < 2) {
		h_manager_poll(self->bad);
		if (h__load_acquire(&self->s->grows))
			h__stream_wait_for_ticket(self->s, H_NOWAIT);
		if (!ht_poll_more(&poll))
			return "it does not grow";
	}
	return NULL;
}

static const struct {
	const char *what;
	uint32_t flags;
	uint32_t ahead;		/* of the record that it is */
	int result;
} turns[] = {
	{ "none", H_NOTE_START, 0, 0 },
	{ "it does not say so", 0, 0, -ETIMEDOUT },
	{ "a later one", H_NOTE_START, 1, -ETIMEDOUT },
	{ "an earlier one", H_NOTE_START, UINT32_MAX, -ETIMEDOUT },
	{ "one of another lap", H_NOTE_START, 4, -ETIMEDOUT },
	{ "unknown flags", H_NOTE_START | 1u << 31, 0, -EPROTO },
};

TEST_F(hostile, a_generation_begins_with_the_next_record_only)
{
	struct h_record record;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(turns); i++) {
		const struct record_lie l = {
			.length = 64, .flags = turns[i].flags,
		};

		ASSERT_NO(turn_to_larger(self));
		ASSERT_NO(send_record_raw(self, &l,
					  self->s->sent + turns[i].ahead, 0));
		EXPECT_EQ(turns[i].result,
			  h_stream_receive(self->r, &record,
					   as_long_as(turns[i].result))) {
			TH_LOG("%s", turns[i].what);
		}
		ASSERT_NO(disconnect(self));
	}
}

static const struct h_stream_attr not_smallest = {
	.buffers = 4, .buffer_size = 256, .max_buffer_size = 2048,
};

static const struct credit_lie {
	const char *what;
	size_t length;		/* 0: as it should be */
	uint32_t ahead;		/* of all that was sent */
	uint32_t flags;
	/* of the seed */
	uint32_t kind;
	uint32_t entries;
	uint32_t buffer;
	uint32_t too_long;
	bool damaged;
	bool fixed;		/* there must not be any */
	int records;		/* that were sent before */
	int result;
} credit_lies[] = {
	{ "none", .ahead = 0 },
	{ "an old one", .ahead = UINT32_MAX },
	{ "the oldest one", .ahead = 1u << 31 },
	{ "for one that was not sent", .ahead = 1, .result = -EPIPE },
	{ "for many", .ahead = INT32_MAX - 1, .result = -EPIPE },
	{ "a short one", .length = H_CREDIT_SHORT - 1, .result = -EPIPE },
	{ "a very short one", .length = 1, .result = -EPIPE },
	{ "a seed, but nothing wrong", .flags = H_CREDIT_SEED, .buffer = 512 },
	{ "a short seed", .flags = H_CREDIT_SEED, .buffer = 512, .length = H_CREDIT_LONG - 1,
	  .result = -EPIPE },
	{ "no seed at all", .flags = H_CREDIT_SEED, .buffer = 512, .length = H_CREDIT_SHORT,
	  .result = -EPIPE },
	{ "a seed where none may be", .flags = H_CREDIT_SEED, .buffer = 512, .fixed = true,
	  .result = -EPIPE },
	{ "a damaged seed", .flags = H_CREDIT_SEED, .buffer = 512, .damaged = true,
	  .result = -EPIPE },
	{ "another kind", .flags = H_CREDIT_SEED, .buffer = 512, .kind = H_SEED_CREDIT,
	  .result = -EPIPE },
	{ "smaller buffers", .flags = H_CREDIT_SEED, .buffer = 128,
	  .result = -EPIPE },
	{ "no larger ones", .flags = H_CREDIT_SEED, .buffer = 256,
	  .result = -EPIPE },
	{ "of no power of two", .flags = H_CREDIT_SEED, .buffer = 3000,
	  .result = -EPIPE },
	{ "too large ones", .flags = H_CREDIT_SEED,
	  .buffer = 2 * H_STREAM_MAX_SIZE, .result = -EPIPE },
	{ "one buffer", .flags = H_CREDIT_SEED, .buffer = 512, .entries = 1,
	  .result = -EPIPE },
	{ "three", .flags = H_CREDIT_SEED, .buffer = 512, .entries = 3, .result = -EPIPE },
	{ "too many", .flags = H_CREDIT_SEED, .buffer = 512,
	  .entries = 2 * H_STREAM_MAX_BUFFERS, .result = -EPIPE },
	{ "a ticket that is too long", .flags = H_CREDIT_SEED, .buffer = 512, .too_long = 1,
	  .result = -EPIPE },
	{ "smaller ones, but nothing wrong", .flags = H_CREDIT_SMALLER, .buffer = 128,
	  .records = 4 },
	{ "smaller ones once more than they have been used", .flags = H_CREDIT_SMALLER,
	  .buffer = 128, .records = 2, .result = -EPIPE },
	{ "larger smaller ones", .flags = H_CREDIT_SMALLER, .buffer = 512, .records = 4,
	  .result = -EPIPE },
	{ "smaller ones of the same size", .flags = H_CREDIT_SMALLER, .buffer = 256, .records = 4,
	  .result = -EPIPE },
	{ "no seed of smaller ones", .flags = H_CREDIT_SMALLER, .buffer = 128, .records = 4,
	  .length = H_CREDIT_LONG - 1, .result = -EPIPE },
	{ "smaller ones where none may be", .flags = H_CREDIT_SMALLER, .buffer = 128,
	  .records = 4, .fixed = true, .result = -EPIPE },
	{ "larger and smaller ones", .flags = H_CREDIT_SMALLER | H_CREDIT_SEED, .buffer = 512,
	  .records = 4, .result = -EPIPE },
};

static void make_seed(FIXTURE_DATA(hostile) *self, const struct credit_lie *l,
		      unsigned char *bytes)
{
	const struct h_generation *g = &self->r->gen[0];
	struct h_seed_fields f = {
		.kind = l->kind ? l->kind : H_SEED_STREAM,
		.entries = l->entries ? l->entries : g->entries,
		.buffer = l->buffer ? l->buffer : g->buffer,
	};
	struct h_seed seed;

	h_slot_ticket(g->place.slot, 0, 0, 0, &f.ticket);
	f.ticket.key = g->key;
	f.ticket.length = (uint64_t)f.entries * f.buffer + l->too_long;
	h__seed_put(&seed, &f);
	seed.bytes[H_SEED_BYTES - 1] ^= l->damaged;
	memcpy(bytes, seed.bytes, H_SEED_BYTES);
}

static const char *send_credit_raw(FIXTURE_DATA(hostile) *self,
				   const struct credit_lie *l)
{
	unsigned char bytes[H_CREDIT_LONG];
	struct h_ticket t = self->r->credit;
	struct h_msg msg = {
		.ticket = &t, .data = bytes, .length = H_CREDIT_LONG,
	};

	/* The first buffer is for its own. */
	t.meta_index = 1;
	t.base += H_CREDIT_BYTES;
	/* What a short one leaves as it was is all there, so that only its length tells. */
	h__put(bytes, self->s->sent, 4);
	h__put(bytes + 4, 0, 4);
	make_seed(self, l, bytes + H_CREDIT_SHORT);
	if (send_raw(self, &msg))
		return "cannot send";
	h_manager_poll(self->good);
	h__put(bytes, self->s->sent + l->ahead, 4);
	h__put(bytes + 4, l->flags, 4);
	msg.length = l->length ? l->length :
		     l->flags ? H_CREDIT_LONG : H_CREDIT_SHORT;
	return send_raw(self, &msg);
}

static const char *hear_hello(FIXTURE_DATA(hostile) *self)
{
	struct h_record record;
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (!self->r->connected) {
		if (h_stream_receive(self->r, &record, H_NOWAIT) != -EAGAIN)
			return "there is something else";
		if (!ht_poll_more(&poll))
			return "no hello";
	}
	return NULL;
}

/* As h_stream_send() or, if that is content, h_stream_flush(). */
static int send_one(struct h_stream_sender *s)
{
	ssize_t n = h_stream_send(s, "x", 1, ht_patience_ns());

	return n == 1 ? h_stream_flush(s, ht_patience_ns()) : (int)n;
}

/* What its own receiver says of them is only that they were released. */
static const char *send_some(FIXTURE_DATA(hostile) *self, int n)
{
	struct h_record record;
	struct ht_poll poll;

	for (; n; n--) {
		if (send_one(self->s))
			return "cannot send";
		ht_poll_begin(&poll);
		while (h_stream_receive(self->r, &record, H_NOWAIT))
			if (!ht_poll_more(&poll))
				return "nothing comes";
	}
	return NULL;
}

/* What was offered is taken soon, not at once. */
static void take_offer(struct h_stream_sender *s)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	do {
		h_manager_poll(s->r.manager);
	} while (h__owes_soon(s->r.manager) && ht_poll_more(&poll));
}

TEST_F(hostile, each_lie_of_a_receiver_is_found_out)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(credit_lies); i++) {
		const struct credit_lie *l = &credit_lies[i];

		ASSERT_EQ(0, connect_two(self->bad, self->good, &not_smallest,
					 &self->r, &self->s));
		ASSERT_NO(hear_hello(self));
		ASSERT_NO(send_some(self, l->records));
		self->s->fixed = l->fixed;
		ASSERT_NO(send_credit_raw(self, l));
		take_offer(self->s);
		EXPECT_EQ(l->result, send_one(self->s)) {
			TH_LOG("%s", l->what);
		}
		/* The first time and from then on. */
		if (l->result) {
			EXPECT_EQ(l->result, h_stream_send(self->s, "x", 1,
							   H_NOWAIT));
		} else {
			EXPECT_EQ(l->flags ? 2 : 1, self->s->generation);
		}
		ASSERT_NO(disconnect(self));
	}
}

/* Each larger than the one before: so there is an end of them. */
TEST_F(hostile, larger_and_larger_buffers_have_an_end)
{
	struct credit_lie l = { .flags = H_CREDIT_SEED, .buffer = 256 };
	unsigned int i;

	ASSERT_EQ(0, connect_two(self->bad, self->good, &not_smallest, &self->r, &self->s));
	ASSERT_NO(hear_hello(self));
	for (i = 0; i < 32; i++) {
		l.buffer *= 2;
		ASSERT_NO(send_credit_raw(self, &l));
		h_manager_poll(self->good);
		if (send_one(self->s))
			break;
	}
	EXPECT_LE(i, 12);
	EXPECT_GE(self->s->buffer, 1024);
	ASSERT_NO(disconnect(self));
}

/* On another host the receiver has to be asked: the second one is made, and told soon. */
static const char *is_told_soon(FIXTURE_DATA(stream) *self, const struct h_seed *seed)
{
	struct h_stream_sender *second;
	struct ht_poll poll;
	int ret = h_stream_sender_create(self->from, seed, &second);

	if (ret)
		return ret == -EPIPE ? NULL : "not made, and not for what is to be told";
	ht_poll_begin(&poll);
	do {
		h_manager_dispatch(self->from);
		ret = h_stream_flush(second, H_NOWAIT);
	} while (!ret && ht_poll_more(&poll));
	h_stream_sender_close(second, H_NOWAIT);
	return ret == -EPIPE ? NULL : "not told";
}

/* Its records would be rejected, or taken for the first one's. */
/* H 3.3: It has one sender and one receiver. */
TEST_F(stream, a_seed_is_for_one_sender)
{
	struct h_stream_sender *second = (void *)1;
	char why[HAMLYN_EXPLAIN_BYTES];
	struct h_record record;
	struct h_seed seed;
	bool far = ht_is_remote() && self->rx != self->tx;

	h_stream_receiver_seed(self->receiver, &seed);
	if (far) {
		EXPECT_NO(is_told_soon(self, &seed));
	} else {
		EXPECT_EQ(-EALREADY, h_stream_sender_create(self->from, &seed, &second));
		EXPECT_EQ(NULL, second);
		ASSERT_EQ(0, h_explain(self->tx, why, sizeof(why)));
		EXPECT_NE(NULL, strstr(why, "made from this seed before"));
	}
	EXPECT_EQ(3, h_stream_send(self->sender, "one", 3, SECOND));
	EXPECT_EQ(0, h_stream_flush(self->sender, SECOND));
	ASSERT_EQ(0, h_stream_receive(self->receiver, &record, 10 * SECOND));
	EXPECT_EQ(0, memcmp(record.data, "one", 3));
	h_stream_release(self->receiver, &record);
	h_stream_sender_close(self->sender, H_NOWAIT);
	self->sender = NULL;
	if (far) {
		EXPECT_NO(is_told_soon(self, &seed));
	} else {
		EXPECT_EQ(-EALREADY, h_stream_sender_create(self->from, &seed, &second));
	}
}

/* ---- what is said to have been received and was rejected ---- */

/*
 * An honest end that may present one wrong key a second, beside one that makes it present
 * them all the time. If they were held against it, this would take as many seconds.
 */
FIXTURE(blamed) {
	FIXTURE_DATA(hostile) ends;
	struct genl g;
	int nic;		/* of its own, on the kernel device */
};

FIXTURE_SETUP(blamed)
{
	self->nic = -1;
	if (!is_embedded()) {
		if (geteuid())
			SKIP(return, "only root makes a NIC with so few guesses");
		ASSERT_EQ(0, genl_open(&self->g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION));
		self->nic = NIC_MAKE(&self->g, { HAMLYN_A_GUESSES, 1 });
		ASSERT_LE(0, self->nic);
		nic_use((uint32_t)self->nic);
	}
	ASSERT_EQ(0, open_both(&self->ends, 1));
}

FIXTURE_TEARDOWN(blamed)
{
	if (self->ends.good)
		EXPECT_EQ(0, close_both(&self->ends));
	if (self->nic < 0)
		return;
	EXPECT_EQ(0, nic_delete_soon(&self->g, (uint32_t)self->nic));
	genl_close(&self->g);
}

#define LIES	1000

static uint64_t wrong_keys(struct h_slot *slot)
{
	struct hamlyn_stats stats;

	return h_slot_stats(slot, &stats) ? 0 : stats.rejects[HAMLYN_REJECT_KEY];
}

static void change_keys(struct h_place *place, uint32_t entries)
{
	uint32_t i;

	for (i = 0; i < entries; i++)
		h__place_entry(place, i)->key ^= 1;
}

/* All that was sent is said to have been received. */
static const char *credit_all(FIXTURE_DATA(hostile) *self)
{
	unsigned char bytes[H_CREDIT_SHORT] = { 0 };
	struct h_ticket t = self->r->credit;
	struct h_msg msg = { .ticket = &t, .data = bytes, .length = sizeof(bytes) };
	const char *complaint;

	t.meta_index = self->s->sent % H_CREDITS;
	t.base += t.meta_index * H_CREDIT_BYTES;
	h__put(bytes, self->s->sent, 4);
	complaint = send_raw(self, &msg);
	h_manager_poll(self->good);
	h_manager_poll(self->bad);
	return complaint;
}

TEST_F(blamed, a_receiver_that_changes_its_keys_holds_up_nobody)
{
	FIXTURE_DATA(hostile) *ends = &self->ends;
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct h_generation *g;
	uint32_t i;

	ASSERT_EQ(0, connect_two(ends->bad, ends->good, NULL, &ends->r, &ends->s));
	ASSERT_NO(hear_hello(ends));
	g = &ends->r->gen[0];
	change_keys(&g->place, g->entries);
	for (i = 0; i < LIES && ht_now_ns() < end; i++) {
		ASSERT_EQ(0, send_one(ends->s));
		ASSERT_NO(credit_all(ends));
		if (i % 64 == 0)
			ASSERT_TRUE(honest_works(ends, i));
	}
	EXPECT_EQ(LIES, i);
	EXPECT_TRUE(honest_works(ends, i));
	EXPECT_LE(LIES, wrong_keys(g->place.slot));
}

/* What was under way when the receiver ended, for as long as the sender has not let go. */
TEST_F(blamed, a_key_from_before_a_rekey_is_late)
{
	FIXTURE_DATA(hostile) *ends = &self->ends;
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct h_terminus *t = h_manager_terminus(ends->good);
	struct h_slot *slot;
	uint32_t i;

	ASSERT_EQ(0, connect_two(ends->bad, ends->good, NULL, &ends->r, &ends->s));
	ASSERT_NO(hear_hello(ends));
	slot = ends->r->gen[0].place.slot;
	ASSERT_EQ(0, h_slot_rekey(slot));
	change_keys(&ends->r->gen[0].place, ends->r->gen[0].entries);
	for (i = 0; i < LIES && ht_now_ns() < end;)
		if (h_send_msg(t, &ends->s->ticket, "x", 1, NULL, 0) != -EAGAIN)
			i++;
	EXPECT_EQ(LIES, i);
	EXPECT_TRUE(honest_works(ends, i));
	EXPECT_EQ(LIES, wrong_keys(slot));
}

TEST_F(blamed, a_sender_that_changes_its_keys_holds_up_nobody)
{
	FIXTURE_DATA(hostile) *ends = &self->ends;
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct record_lie l = { .length = 64 };
	struct h_record record;
	uint32_t i;

	ASSERT_EQ(0, connect_two(ends->good, ends->bad, &few, &ends->r, &ends->s));
	ASSERT_NO(hear_hello(ends));
	/* It begins the watch. */
	ASSERT_EQ(-EAGAIN, h_stream_receive(ends->r, &record, H_NOWAIT));
	change_keys(&ends->s->credits, H_CREDITS);
	for (i = 0; i < LIES && ht_now_ns() < end; i++) {
		l.credits = ends->r->credit_sent;
		ASSERT_NO(send_record_raw(ends, &l, ends->s->sent, 0));
		ASSERT_EQ(0, h_stream_receive(ends->r, &record, ht_patience_ns()));
		h_stream_release(ends->r, &record);
		if (i % 64 == 0)
			ASSERT_TRUE(honest_works(ends, i));
	}
	EXPECT_EQ(LIES, i);
	EXPECT_TRUE(honest_works(ends, i));
	EXPECT_LE(LIES / 4, wrong_keys(ends->s->credits.slot));
}

/* ---- any lies, one after the other ---- */

static uint32_t any(FIXTURE_DATA(hostile) *self, uint32_t n)
{
	return (uint32_t)(ht_random(&self->random) >> 20) % n;
}

/* Near to what is right, or anything. */
static uint32_t near(FIXTURE_DATA(hostile) *self, uint32_t right)
{
	switch (any(self, 4)) {
	case 0:
		return (uint32_t)ht_random(&self->random);
	case 1:
		return right + any(self, 5) - 2;
	default:
		return right;
	}
}

/* Also a little less than nothing, which wraps around. */
static uint64_t any_more(FIXTURE_DATA(hostile) *self)
{
	switch (any(self, 4)) {
	case 0:
		return ht_random(&self->random);
	case 1:
		return 0 - (uint64_t)any(self, 200);
	default:
		return 0;
	}
}

static void bad_record(FIXTURE_DATA(hostile) *self)
{
	static const uint32_t flags[] = { 0, 0, 0, 0, H_NOTE_START,
		H_NOTE_START, H_NOTE_HELLO, H_NOTE_FIN, H_NOTE_EMPTY, 0x80 };
	struct h_stream_sender *s = self->s;
	uint32_t index = near(self, (s->sent - s->start) & (s->entries - 1));
	unsigned char note[H_NOTE_BYTES], data[128] = { 0 };
	struct h_ticket t = s->ticket;
	struct h_msg msg = { .ticket = &t, .data = data, .meta = note };

	index %= s->entries;
	t.base += (uint64_t)index * s->buffer;
	t.meta_index = index;
	h__put(note, flags[any(self, ARRAY_SIZE(flags))], 4);
	h__put(note + 4, near(self, s->credits_seen), 4);
	h__put(note + 8, near(self, s->sent), 4);
	h__put(note + 16, any_more(self), 8);
	msg.length = any(self, 3) ? any(self, sizeof(data) + 1) : 0;
	if (any(self, 3))
		msg.meta_length = any(self, 4) ? H_NOTE_BYTES : 5;
	if (!any(self, 20))
		msg.delta = 1u << 31;
	if (!any(self, 20))
		msg.flags = HAMLYN_TRB_NO_NOTIFY;
	h_send(self->raw, &msg);
	if (any(self, 2))
		h__store_release(&s->sent, s->sent + 1);
}

TEST_F(hostile, nonsense_from_a_sender_harms_nobody_else)
{
	struct h_record record;
	uint32_t i, found = 0;

	/* On a busy machine much of it arrives when its receiver has gone. */
	for (i = 0; i < self->rounds || (found <= 10 && i < 10 * self->rounds); i++) {
		int ret;

		if (!self->s) {
			ASSERT_EQ(0, connect_two(self->good, self->bad, &few,
						 &self->r, &self->s));
		}
		bad_record(self);
		h_manager_poll(self->bad);
		if (any(self, 2) && h__load_acquire(&self->s->grows))
			h__stream_wait_for_ticket(self->s, H_NOWAIT);
		ret = h_stream_receive(self->r, &record, H_NOWAIT);
		if (ret == 0 && any(self, 4))
			h_stream_release(self->r, &record);
		if (i % 64 == 0) {
			ASSERT_TRUE(honest_works(self, i));
		}
		if ((ret == 0 || ret == -EAGAIN) && any(self, 200))
			continue;
		found += ret == -EPROTO;
		h_stream_sender_close(self->s, H_NOWAIT);
		self->s = NULL;
		ASSERT_EQ(0, h_stream_receiver_destroy(self->r));
		self->r = NULL;
	}
	/* Not only those that end for no reason. */
	EXPECT_GT(found, 10);
}

static void bad_credit(FIXTURE_DATA(hostile) *self)
{
	static const uint32_t flags[] = { 0, 0, 0, H_CREDIT_SEED, H_CREDIT_SEED,
		H_CREDIT_FIN, 3, 0x80 };
	struct h_stream_receiver *r = self->r;
	struct h_ticket t = r->credit;
	unsigned char bytes[H_CREDIT_BYTES] = { 0 };
	uint32_t index = any(self, H_CREDITS + 1);
	struct h_msg msg = { .ticket = &t, .data = bytes };
	struct h_seed_fields f = { .kind = H_SEED_STREAM };
	struct h_seed seed;

	t.base += (uint64_t)index * H_CREDIT_BYTES;
	t.meta_index = index;
	h__put(bytes, near(self, r->high), 4);
	h__put(bytes + 4, flags[any(self, ARRAY_SIZE(flags))], 4);
	h_slot_ticket(r->gen[0].place.slot, 0, 0, 0, &f.ticket);
	f.ticket.key = r->gen[0].key;
	f.entries = 1u << any(self, 12);
	f.buffer = 32u << any(self, 17);
	if (any(self, 2))
		f.ticket.length = (uint64_t)f.entries * f.buffer;
	h__seed_put(&seed, &f);
	if (!any(self, 10))
		seed.bytes[any(self, H_SEED_BYTES)] ^= 1;
	memcpy(bytes + H_CREDIT_SHORT, seed.bytes, H_SEED_BYTES);
	msg.length = any(self, 4) ? H_CREDIT_LONG : any(self, H_CREDIT_BYTES + 1);
	h_send(self->raw, &msg);
}

TEST_F(hostile, nonsense_from_a_receiver_harms_nobody_else)
{
	unsigned char data[3000] = { 0 };
	struct h_record record;
	uint32_t i, found = 0;

	for (i = 0; i < self->rounds || (found <= 10 && i < 10 * self->rounds); i++) {
		ssize_t ret;

		if (!self->s) {
			ASSERT_EQ(0, connect_two(self->bad, self->good, &few,
						 &self->r, &self->s));
		}
		if (h_stream_receive(self->r, &record, H_NOWAIT) == 0)
			h_stream_release(self->r, &record);
		if (self->r->connected && any(self, 2))
			bad_credit(self);
		ret = h_stream_send(self->s, data, 1 + any(self, sizeof(data)),
				    H_NOWAIT);
		if (ret > 0)
			h_stream_flush(self->s, H_NOWAIT);
		if (i % 64 == 0) {
			ASSERT_TRUE(honest_works(self, i));
		}
		if ((ret > 0 || ret == -EAGAIN) && any(self, 200))
			continue;
		found += ret == -EPIPE;
		h_stream_sender_close(self->s, H_NOWAIT);
		self->s = NULL;
		ASSERT_EQ(0, h_stream_receiver_destroy(self->r));
		self->r = NULL;
	}
	/* Not only those that end for no reason. */
	EXPECT_GT(found, 10);
}

TEST_HARNESS_MAIN
