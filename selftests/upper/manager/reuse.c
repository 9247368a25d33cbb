// SPDX-License-Identifier: GPL-2.0-only
/*
 * What others had sent is nobody else's. A NIC counts how many bytes have arrived, not
 * where: a hostile sender leaves gaps, and the receiver takes what was there before for
 * the sender's words.
 */
#include <hamlyn/datagram.h>
#include <hamlyn/group.h>
#include <hamlyn/stream.h>

#include <pthread.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define BUFFER		4096
#define SECRET		0xa7	/* each byte of what others had sent */
#define OFFSET_TICKET	8	/* of a seed */

FIXTURE(leftover) {
	struct h_dev *rx;
	struct h_dev *tx;
	struct h_manager *to;
	struct h_manager *from;
	unsigned char secret[BUFFER];
};

FIXTURE_SETUP(leftover)
{
	ASSERT_EQ(0, ht_open(&self->rx));
	ASSERT_EQ(0, ht_open_tx(&self->tx));
	ASSERT_EQ(0, h_manager_create(self->rx, NULL, &self->to));
	ASSERT_EQ(0, h_manager_create(self->tx, NULL, &self->from));
	memset(self->secret, SECRET, BUFFER);
}

FIXTURE_TEARDOWN(leftover)
{
	EXPECT_EQ(0, h_manager_destroy(self->to));
	EXPECT_EQ(0, h_manager_destroy(self->from));
	h_close(self->tx);
	h_close(self->rx);
}

static bool has_secret(const void *data, size_t length)
{
	return memchr(data, SECRET, length);
}

/* ---- streams ---- */

static const struct h_stream_attr stream_attr = {
	.buffers = 4,
	.buffer_size = BUFFER,
	.max_buffer_size = BUFFER,
};

static const char *fill_stream(FIXTURE_DATA(leftover) *self, const struct h_seed *seed,
			       struct h_stream_receiver *r)
{
	struct h_stream_sender *s;
	struct h_record record;
	int i;

	if (h_stream_sender_create(self->from, seed, &s))
		return "no sender";
	for (i = 0; i < 8; i++) {
		if (h_stream_send(s, self->secret, BUFFER, ht_patience_ns()) < 0 ||
		    h_stream_flush(s, ht_patience_ns()))
			return "it cannot be sent";
		if (h_stream_receive(r, &record, ht_patience_ns()) != 0)
			return "it does not arrive";
		if (!has_secret(record.data, record.length))
			return "it is not what was sent";
		h_stream_release(r, &record);
	}
	h_stream_sender_close(s, H_NOWAIT);
	return NULL;
}

/* A few bytes at the end of each buffer, and none where the record begins. */
static const char *gaps_in_stream(FIXTURE_DATA(leftover) *self, const struct h_seed *seed,
				  struct h_stream_receiver *r)
{
	struct h_ticket ticket;
	struct h_record record;
	unsigned int i;

	if (h_ticket_import(seed->bytes + OFFSET_TICKET, H_TICKET_BYTES, &ticket))
		return "no ticket in the seed";
	ticket.length = 64;
	for (i = 0; i < 4; i++) {
		char few[64] = "";

		ticket.base = (i + 1) * BUFFER - sizeof(few);
		ticket.meta_index = i;
		if (h_send_msg(h_manager_terminus(self->from), &ticket, few, sizeof(few), NULL,
			       0) < 0)
			return "they cannot be sent";
		if (h_stream_receive(r, &record, ht_patience_ns()) != 0)
			return "they do not arrive";
		if (record.length != sizeof(few))
			return "another record";
		if (has_secret(record.data, record.length))
			return "another sender's words";
		h_stream_release(r, &record);
	}
	return NULL;
}

TEST_F(leftover, a_stream_has_nothing_of_one_before_it)
{
	struct h_stream_receiver *r;
	struct h_seed seed;

	ASSERT_EQ(0, h_stream_receiver_create(self->to, &stream_attr, &r));
	h_stream_receiver_seed(r, &seed);
	EXPECT_EQ(NULL, ht_complain(fill_stream(self, &seed, r)));
	ASSERT_EQ(0, h_stream_receiver_destroy(r));
	ASSERT_EQ(0, h_stream_receiver_create(self->to, &stream_attr, &r));
	h_stream_receiver_seed(r, &seed);
	EXPECT_EQ(NULL, ht_complain(gaps_in_stream(self, &seed, r)));
	ASSERT_EQ(0, h_stream_receiver_destroy(r));
}

/* ---- datagrams ---- */

static const struct h_datagram_attr datagram_attr = { .length = BUFFER };

static const char *fill_datagram(FIXTURE_DATA(leftover) *self, const struct h_seed *seed,
				 struct h_datagram_receiver *d)
{
	struct h_datagram_address address;
	struct h_datagram datagram;

	if (h_datagram_resolve(seed, &address) ||
	    h_datagram_send(self->from, &address, 0, self->secret, BUFFER, NULL, ht_patience_ns()))
		return "it cannot be sent";
	if (h_datagram_receive(d, &datagram, ht_patience_ns()) ||
	    !has_secret(datagram.data, datagram.length))
		return "it does not arrive";
	h_datagram_release(d);
	return NULL;
}

/* One that says it begins at 0, and does not. */
static const char *gap_in_datagram(FIXTURE_DATA(leftover) *self, const struct h_seed *seed,
				   struct h_datagram_receiver *d)
{
	static const unsigned char meta[12] = { 17 };
	struct h_datagram_address address;
	struct h_datagram datagram;
	char few[17] = "";

	if (h_datagram_resolve(seed, &address))
		return "no address";
	address.ticket.base += 1000;
	address.ticket.length = sizeof(few);
	if (h_send_msg(h_manager_terminus(self->from), &address.ticket, few, sizeof(few), meta,
		       sizeof(meta)) < 0)
		return "it cannot be sent";
	if (h_datagram_receive(d, &datagram, ht_patience_ns()))
		return "it does not arrive";
	if (datagram.length != sizeof(few))
		return "it has another length";
	return has_secret(datagram.data, datagram.length) ? "another sender's words" : NULL;
}

TEST_F(leftover, a_datagram_receiver_has_nothing_of_one_before_it)
{
	struct h_datagram_receiver *d;
	struct h_seed seed;

	ASSERT_EQ(0, h_datagram_receiver_create(self->to, &datagram_attr, &d));
	h_datagram_receiver_seed(d, &seed);
	EXPECT_EQ(NULL, ht_complain(fill_datagram(self, &seed, d)));
	ASSERT_EQ(0, h_datagram_receiver_destroy(d));
	ASSERT_EQ(0, h_datagram_receiver_create(self->to, &datagram_attr, &d));
	h_datagram_receiver_seed(d, &seed);
	EXPECT_EQ(NULL, ht_complain(gap_in_datagram(self, &seed, d)));
	ASSERT_EQ(0, h_datagram_receiver_destroy(d));
}

/* ---- groups ---- */

static const char *send_share(FIXTURE_DATA(leftover) *self, struct h_group *g, size_t length)
{
	struct h_share share;

	h_group_share(g, &share);
	if (h_share_send(self->from, &share, self->secret, length, ht_patience_ns()))
		return "it cannot be sent";
	return h_group_receive(g, NULL, ht_patience_ns()) ? "it does not arrive" : NULL;
}

TEST_F(leftover, a_group_has_nothing_of_one_before_it)
{
	const void *data;
	struct h_group *g;

	ASSERT_EQ(0, h_group_create(self->to, BUFFER, NULL, &g));
	EXPECT_EQ(NULL, ht_complain(send_share(self, g, BUFFER)));
	ASSERT_EQ(0, h_group_destroy(g));
	ASSERT_EQ(0, h_group_create(self->to, BUFFER, NULL, &g));
	EXPECT_EQ(NULL, ht_complain(send_share(self, g, 0)));
	ASSERT_EQ(0, h_group_receive(g, &data, 0));
	EXPECT_FALSE(has_secret(data, BUFFER));
	ASSERT_EQ(0, h_group_destroy(g));
}

TEST_F(leftover, new_shares_have_nothing_of_the_old_ones)
{
	const void *data;
	struct h_group *g;

	ASSERT_EQ(0, h_group_create(self->to, BUFFER, NULL, &g));
	EXPECT_EQ(NULL, ht_complain(send_share(self, g, BUFFER)));
	ASSERT_EQ(0, h_group_reset(g, H_GROUP_NEW_KEY));
	EXPECT_EQ(NULL, ht_complain(send_share(self, g, 0)));
	ASSERT_EQ(0, h_group_receive(g, &data, 0));
	EXPECT_FALSE(has_secret(data, BUFFER));
	ASSERT_EQ(0, h_group_destroy(g));
}

/* ---- two at a time ---- */

struct sender {
	struct h_datagram_address address;
	size_t length;
	unsigned char what;
	uint32_t stop;		/* atomic */
	int result;
};

/* Of its own: so that two NICs' senders, or two threads of one, are at it at once. */
static void *send_on(void *arg)
{
	struct h_manager *manager;
	struct sender *s = arg;
	struct h_dev *dev;
	char *data;

	if (ht_open(&dev) || h_manager_create(dev, NULL, &manager) ||
	    h_manager_alloc(manager, s->length, (void **)&data)) {
		s->result = 1;
		return NULL;
	}
	memset(data, s->what, s->length);
	while (!__atomic_load_n(&s->stop, __ATOMIC_RELAXED))
		h_datagram_send(manager, &s->address, 0, data, s->length, NULL,
				ht_patience_ns());
	h_manager_destroy(manager);
	h_close(dev);
	return NULL;
}

TEST_F(leftover, datagrams_of_one_packet_do_not_mix)
{
	struct sender sender[2] = { { .what = 'a' }, { .what = 'b' } };
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct h_datagram_attr attr = { };
	uint32_t got[2] = {}, mixed = 0, i, rounds;
	struct h_datagram_receiver *d;
	struct h_datagram datagram;
	struct hamlyn_query query;
	pthread_t thread[2];
	struct h_seed seed;

	rounds = h_dev_is_embedded(self->rx) ? 60000 : 3000;
	ASSERT_EQ(0, h_query(self->rx, &query));
	attr.length = query.packet_size;
	ASSERT_EQ(0, h_datagram_receiver_create(self->to, &attr, &d));
	h_datagram_receiver_seed(d, &seed);
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, h_datagram_resolve(&seed, &sender[i].address));
		sender[i].length = attr.length;
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, send_on, &sender[i]));
	}
	while ((got[0] + got[1] < rounds || !got[0] || !got[1]) && ht_now_ns() < end) {
		const unsigned char *data;

		if (h_datagram_receive(d, &datagram, 10 * HT_MS))
			continue;
		data = datagram.data;
		got[data[0] == 'b']++;
		mixed += ht_match_byte(data, attr.length, data[0]) != attr.length;
		h_datagram_release(d);
	}
	for (i = 0; i < 2; i++) {
		__atomic_store_n(&sender[i].stop, 1, __ATOMIC_RELAXED);
		pthread_join(thread[i], NULL);
		EXPECT_EQ(0, sender[i].result);
		EXPECT_GT(got[i], 0);
	}
	EXPECT_EQ(0, mixed);
	EXPECT_EQ(0, h_datagram_receiver_destroy(d));
}

TEST_HARNESS_MAIN
