// SPDX-License-Identifier: GPL-2.0-only
/*
 * Messages of every size, place and kind arrive whole, once, and nowhere else.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define PAGE	4096
#define ROOM	256	/* beside the longest message, for odd offsets */

FIXTURE(sendrecv) {
	struct ht_pair pair;
	size_t packet;
	size_t inline_max;	/* what direct I/O carries */
	size_t inline_meta;	/* and beside metadata */
};

FIXTURE_VARIANT(sendrecv) {
	bool one_context;
	struct h_terminus_attr terminus;
};

FIXTURE_VARIANT_ADD(sendrecv, two_contexts) {
};

FIXTURE_VARIANT_ADD(sendrecv, one_context_two_entries) {
	.one_context = true,
	.terminus = { .entries = 2, .entry_size = 256,
		      .flags = H_TERMINUS_SINGLE },
};

FIXTURE_VARIANT_ADD(sendrecv, shortest_entries) {
	.terminus = { .entries = 8, .entry_size = 128 },
};

FIXTURE_SETUP(sendrecv)
{
	struct ht_pair_attr attr = {
		.length = 3 * HAMLYN_MAX_PACKET + ROOM,
		.shift = 13,
		.meta = 4,
		.terminus = variant->terminus,
		.one_context = variant->one_context,
	};

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->packet = self->pair.query.packet_size;
	self->inline_max = (variant->terminus.entry_size ?
			    variant->terminus.entry_size : 512) - 64;
	self->inline_meta = self->inline_max - 64;
}

FIXTURE_TEARDOWN(sendrecv)
{
	ht_pair_close(&self->pair);
}

/*
 * Between two hosts a message is waited for over there, which takes many times as long, and a frame
 * holds bytes of any number alike: every fifth size. The step divides HAMLYN_MAX_METADATA.
 */
static size_t stride(void)
{
	return ht_is_remote() ? 5 : 1;
}

static uint32_t packets_of(const struct ht_pair *pair, size_t length)
{
	uint32_t packet = pair->query.packet_size;

	return length <= packet ? 1 : (uint32_t)((length + packet - 1) / packet);
}

/* Does the entry tell of a message of @length through metadata entry @index? */
static const char *wrong_entry(const struct ht_pair *pair,
			       const struct hamlyn_nq_entry *e, size_t length,
			       uint32_t index)
{
	size_t packet = pair->query.packet_size;
	size_t last = length % packet ? length % packet : packet;

	if (e->slot != h_slot_number(pair->slot))
		return "wrong slot";
	if (e->source != pair->from)
		return "wrong source host";
	if (e->index != index)
		return "wrong notification index";
	if (pair->meta_count &&
	    e->data != (HT_META_GUARDS + (uint64_t)index) *
		       HAMLYN_METADATA_SIZE)
		return "wrong place of the metadata entry";
	if (length > packet) {
		if (e->flags)
			return "wrong flags";
		return e->length == packet || e->length == last ?
		       NULL : "length of no packet";
	}
	if (e->flags != HAMLYN_NQE_SINGLE)
		return "not told to be the only packet";
	return e->length == length ? NULL : "wrong length";
}

/* Is the pattern at @at in the message area, and nothing around it? */
static const char *wrong_data(struct ht_pair *pair, size_t at, size_t length,
			      uint64_t seed)
{
	size_t after = pair->length - at - length;

	if (ht_match(pair->data + at, length, seed) != length)
		return "wrong data";
	if (ht_match_byte(pair->data, at, HT_GUARD) != at)
		return "bytes before the data were touched";
	if (ht_match_byte(pair->data + at + length, after, HT_GUARD) != after)
		return "bytes behind the data were touched";
	if (!ht_pair_guarded(pair))
		return "bytes outside the message area were touched";
	memset(pair->data + at, HT_GUARD, length);
	return NULL;
}

/* The message has been sent: take it, and nothing but it. */
static const char *take(struct ht_pair *pair, const struct h_msg *msg,
			size_t length, uint64_t seed)
{
	uint32_t index = msg->ticket->meta_index;
	const char *complaint;
	struct hamlyn_nq_entry entry;

	if (ht_recv(pair->nq, &entry) != 1)
		return "no notification";
	complaint = wrong_entry(pair, &entry, length, index);
	if (complaint)
		return complaint;
	if (pair->meta && pair->meta[index].accumulator)
		return "the accumulator did not return to 0";
	complaint = wrong_data(pair, msg->ticket->base + msg->offset, length,
			       seed);
	if (complaint)
		return complaint;
	return ht_pair_fence(pair) ? "more than one notification" : NULL;
}

/* Send @length bytes from @from to @at of the message area. */
static const char *exchange(struct ht_pair *pair, unsigned char *from,
			    size_t length, size_t at)
{
	struct h_msg msg = {
		.ticket = &pair->ticket,
		.offset = at,
		.data = from,
		.length = length,
	};
	uint64_t seed = length * 7919 + at;
	const char *complaint;
	int64_t handle;

	ht_fill(from, length, seed);
	if (ht_send_sync(pair->terminus, &msg) != 1)
		return "not sent";
	complaint = take(pair, &msg, length, seed);
	if (complaint)
		return complaint;
	if (!ht_send_msg(pair->terminus, &msg, &handle) || handle < 0 ||
	    ht_send_wait(pair->terminus, handle) != 1)
		return "not sent by h_send_msg()";
	return take(pair, &msg, length, seed);
}

static bool is_prime(size_t n)
{
	size_t i;

	for (i = 2; i * i <= n; i++)
		if (n % i == 0)
			return false;
	return n > 1;
}

static bool near_multiple(size_t n, size_t of)
{
	return n % of <= 2 || n % of >= of - 2;
}

/* Primes, each about 3 % above the one before. */
static size_t next_prime(size_t n)
{
	for (n += n / 32 + 1; !is_prime(n); n++)
		;
	return n;
}

TEST_F(sendrecv, sizes_up_to_three_packets)
{
	struct ht_pair *pair = &self->pair;
	size_t most = 3 * self->packet;
	size_t length, prime = 2;

	for (length = 0; length <= most; length++) {
		bool odd = length == prime;

		if (odd)
			prime = next_prime(prime);
		if (!odd && length > 64 && most - length > 2 &&
		    length + 2 - self->inline_max > 4 &&
		    !near_multiple(length, self->packet) &&
		    !near_multiple(length, PAGE))
			continue;
		ASSERT_NO(exchange(pair, pair->send, length, 0))
			TH_LOG("%zu bytes", length);
	}
}

TEST_F(sendrecv, every_size_up_to_2048)
{
	/* All with the defaults, every fifth with odd termini. */
	size_t step = (variant->terminus.entry_size ? 5 : 1) * stride();
	struct ht_pair *pair = &self->pair;
	size_t length;

	for (length = 0; length <= 2048; length += step) {
		ASSERT_NO(exchange(pair, pair->send + length % 67, length,
				   length % 131))
			TH_LOG("%zu bytes", length);
	}
}

TEST_F(sendrecv, unaligned_sources_and_destinations)
{
	const size_t lengths[] = { 1, 7, 8, 63, self->inline_max,
				   self->inline_max + 1, PAGE - 1, PAGE,
				   PAGE + 1, self->packet - 1, self->packet,
				   self->packet + 1, 2 * self->packet + 1 };
	struct ht_pair *pair = &self->pair;
	unsigned int i, from, to;

	for (i = 0; i < ARRAY_SIZE(lengths); i++)
		for (from = 0; from < 16; from += 3)
			for (to = 0; to < 16; to += 5) {
				ASSERT_NO(exchange(pair, pair->send + from,
						   lengths[i], to))
					TH_LOG("length %u, %u to %u", i, from,
					       to);
			}
}

TEST_F(sendrecv, the_last_bytes_of_the_message_area_can_be_written)
{
	struct ht_pair *pair = &self->pair;
	const size_t lengths[] = { 0, 1, 64, PAGE, self->packet,
				   2 * self->packet + 5, pair->length };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		ASSERT_NO(exchange(pair, pair->send, lengths[i],
				   pair->length - lengths[i]))
			TH_LOG("length %u", i);
	}
}

TEST_F(sendrecv, short_messages_come_from_any_memory)
{
	struct ht_pair *pair = &self->pair;
	unsigned char *heap = malloc(self->inline_max);
	struct hamlyn_nq_entry entry;
	int64_t handle;
	size_t n;

	ASSERT_NE(NULL, heap);
	for (n = 0; n <= self->inline_max; n++) {
		ht_fill(heap, n, n);
		handle = h_send_msg(pair->terminus, &pair->ticket, heap, n,
				    NULL, 0);
		memset(heap, 0xee, n);	/* the call has copied it */
		ASSERT_GE(handle, 0);
		ASSERT_EQ(1, ht_send_wait(pair->terminus, handle));
		ASSERT_EQ(1, ht_recv(pair->nq, &entry));
		ASSERT_EQ(n, entry.length);
		ASSERT_NO(wrong_data(pair, 0, n, n)) TH_LOG("%zu bytes", n);
	}
	free(heap);
}

TEST_F(sendrecv, long_messages_come_from_added_memory_too)
{
	struct ht_pair *pair = &self->pair;
	struct h_msg msg = { .ticket = &pair->ticket };
	size_t length = 2 * self->packet + 3;
	unsigned char *memory;
	struct h_area *area;

	memory = mmap(NULL, length + PAGE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, memory);
	memset(memory, 0, length + PAGE);
	ASSERT_EQ(0, h_area_add(pair->tx, memory + 5, length, 0, &area));
	ASSERT_EQ(0, h_terminus_bind(pair->terminus, 3, area, 0, 0));
	EXPECT_NO(exchange(pair, memory + 5, length, 1));
	ASSERT_EQ(0, h_terminus_bind(pair->terminus, 3, NULL, 0, 0));
	ASSERT_EQ(0, h_area_remove(area));

	/* Once more, read-only: mapped so, and registered so. */
	ht_fill(memory, length, 3);
	ASSERT_EQ(0, mprotect(memory, length + PAGE, PROT_READ));
	ASSERT_EQ(0, h_area_add(pair->tx, memory, length,
				HAMLYN_AREA_READONLY, &area));
	ASSERT_EQ(0, h_terminus_bind(pair->terminus, 3, area, 0, 0));
	msg.data = memory;
	msg.length = length;
	ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
	EXPECT_NO(take(pair, &msg, length, 3));
}

/* Behind page @readonly, of two, that may not be written to, are some without a byte yet. */
static const char *wire_then_write(struct ht_pair *pair, size_t packet,
				   unsigned int readonly)
{
	size_t length = 2 * packet + 3, mapped = length + 3 * PAGE;
	struct h_msg msg = { .ticket = &pair->ticket, .length = length };
	unsigned char *memory;
	struct h_area *area;
	const char *complaint;

	memory = mmap(NULL, mapped, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return "no memory";
	memory[0] = 1;
	if (mprotect(memory + readonly * PAGE, PAGE, PROT_READ) ||
	    h_area_add(pair->tx, memory, 2 * PAGE + length,
		       HAMLYN_AREA_READONLY, &area) ||
	    h_terminus_bind(pair->terminus, 3, area, 0, 0))
		return "cannot be wired";
	msg.data = memory + 2 * PAGE;
	ht_fill(memory + 2 * PAGE, length, 4 + readonly);
	if (ht_send_sync(pair->terminus, &msg) != 1)
		return "not sent";
	complaint = take(pair, &msg, length, 4 + readonly);
	if (h_terminus_bind(pair->terminus, 3, NULL, 0, 0) ||
	    h_area_remove(area) || munmap(memory, mapped))
		return "not let go";
	return complaint;
}

TEST_F(sendrecv, what_is_written_after_wiring_for_reading_is_sent)
{
	unsigned int readonly;

	for (readonly = 0; readonly < 2; readonly++) {
		EXPECT_NO(wire_then_write(&self->pair, self->packet, readonly)) {
			TH_LOG("page %u", readonly);
		}
	}
}

TEST_F(sendrecv, tickets_with_a_base_and_offsets_add_up)
{
	struct ht_pair *pair = &self->pair;
	struct h_ticket part;
	struct h_msg msg = { .ticket = &part, .length = 100 };
	uint64_t base;

	for (base = 0; base < 300; base += 7) {
		ASSERT_EQ(0, h_slot_ticket(pair->slot, base, 1000, 2, &part));
		msg.data = pair->send;
		msg.offset = base / 2;
		ht_fill(pair->send, 100, base);
		ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
		ASSERT_NO(take(pair, &msg, 100, base));
	}
}

/* The entry holds @length bytes of metadata, and its other members rest. */
static const char *wrong_metadata(struct hamlyn_metadata *m, size_t length,
				  uint64_t seed)
{
	size_t rest = HAMLYN_MAX_METADATA - length;

	if (m->meta_length != length)
		return "wrong meta_length";
	if (ht_match(m->user, length, seed) != length)
		return "wrong metadata";
	if (ht_match_byte(m->user + length, rest, HT_GUARD) != rest)
		return "more metadata than were sent";
	if (ht_match_byte(&m->key, 32, HT_GUARD) != 32 ||
	    ht_match_byte(&m->state, 28, HT_GUARD) != 28)
		return "members that are not the NIC's were touched";
	return NULL;
}

static const char *exchange_metadata(struct ht_pair *pair, uint32_t index,
				     size_t length, size_t meta_length)
{
	unsigned char user[HAMLYN_MAX_METADATA];
	struct h_ticket ticket = pair->ticket;
	struct hamlyn_metadata *m = &pair->meta[index];
	uint64_t seed = length + meta_length;
	const char *complaint;
	struct h_msg msg = {
		.ticket = &ticket,
		.data = pair->send,
		.length = length,
		.meta = user,
		.meta_length = meta_length,
	};
	int64_t handle;

	ticket.meta_index = index;
	memset(m, HT_GUARD, sizeof(*m));
	m->accumulator = 0;
	ht_fill(user, meta_length, ~seed);
	ht_fill(pair->send, length, seed);
	/* By one way or the other; which one has nothing to do with lengths. */
	if (pair->fences % 2 || !ht_send_msg(pair->terminus, &msg, &handle))
		handle = ht_send(pair->terminus, &msg);
	memset(user, 0, sizeof(user));
	if (handle < 0 || ht_send_wait(pair->terminus, handle) != 1)
		return "not sent";
	complaint = take(pair, &msg, length, seed);
	if (!complaint && meta_length)
		complaint = wrong_metadata(m, meta_length, ~seed);
	memset(m, 0, sizeof(*m));
	return complaint;
}

/* H 6.2: Metadata may lie on the stack: they are copied by the call, always. */
TEST_F(sendrecv, metadata_of_every_length_with_messages_of_any)
{
	const size_t p = self->packet;
	const size_t lengths[] = { 0, 1, self->inline_meta,
				   self->inline_meta + 1, self->inline_max,
				   self->inline_max + 1, p, p + 1, 2 * p,
				   2 * p + 1, 3 * p };
	size_t meta;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		/* The shortest entry has no room for metadata and more. */
		if (lengths[i] > self->inline_meta && self->inline_meta < 24)
			continue;
		for (meta = 0; meta <= HAMLYN_MAX_METADATA; meta += stride()) {
			ASSERT_NO(exchange_metadata(&self->pair, meta % 4,
						    lengths[i], meta))
				TH_LOG("length %u, %zu of metadata", i, meta);
		}
	}
}

TEST_F(sendrecv, too_much_for_an_entry_is_refused_not_mangled)
{
	struct ht_pair *pair = &self->pair;
	struct h_msg msg = {
		.ticket = &pair->ticket,
		.data = pair->send,
		.length = self->inline_meta + 1,
		.meta = "metadata",
		.meta_length = 8,
	};
	int64_t handle = ht_send(pair->terminus, &msg);

	if (self->inline_meta >= 24) {
		ASSERT_GE(handle, 0);
	} else {
		ASSERT_EQ(-EMSGSIZE, handle);
		ASSERT_EQ(0, ht_pair_fence(pair));
		EXPECT_TRUE(ht_pair_untouched(pair));
	}
	/* Whatever it was: the terminus goes on. */
	ht_pair_fence(pair);
	ht_pair_clear(pair);
	EXPECT_NO(exchange(pair, pair->send, 100, 0));
}

TEST_F(sendrecv, messages_without_notification_move_their_data)
{
	const size_t lengths[] = { 0, 1, self->inline_max + 1, self->packet,
				   3 * self->packet };
	struct ht_pair *pair = &self->pair;
	struct h_msg msg = {
		.ticket = &pair->ticket,
		.data = pair->send,
		.flags = HAMLYN_TRB_NO_NOTIFY,
	};
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		msg.length = lengths[i];
		ht_fill(pair->send, msg.length, i);
		ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
		ASSERT_EQ(0, ht_pair_fence(pair));
		EXPECT_EQ(0, pair->meta[0].accumulator);
		EXPECT_NO(wrong_data(pair, 0, msg.length, i));
		/* An ordinary one behind it is notified as ever. */
		EXPECT_NO(exchange(pair, pair->send, msg.length, 0));
	}
}

TEST_F(sendrecv, a_word_alone_is_a_fast_message)
{
	struct ht_pair *pair = &self->pair;
	struct h_ticket fast = pair->ticket;
	struct hamlyn_nq_entry entry;
	uint64_t word;

	EXPECT_EQ(-EINVAL, h_send_word(pair->terminus, &fast, 1));
	fast.meta_index = HAMLYN_META_FAST;
	for (word = 0x1122334455667700; word < 0x1122334455667764; word++) {
		ASSERT_GE(h_send_word(pair->terminus, &fast, word), 0);
		ASSERT_EQ(1, ht_recv(pair->nq, &entry));
		EXPECT_EQ(word, entry.data);
		EXPECT_EQ(HAMLYN_NQE_FAST | HAMLYN_NQE_SINGLE, entry.flags);
		EXPECT_EQ(0, entry.length);
	}
	fast.key ^= 1;
	ASSERT_GE(h_send_word(pair->terminus, &fast, 1), 0);
	ASSERT_EQ(0, ht_pair_fence(pair));
	EXPECT_EQ(0, h_recv(pair->nq, &entry));
}

/* A queue of two entries is full more often than not. */
static int64_t send_number(struct ht_pair *pair, unsigned int number)
{
	struct ht_poll poll;
	int64_t ret;

	ht_poll_begin(&poll);
	do
		ret = h_send_msg(pair->terminus, &pair->ticket, &number,
				 sizeof(number), NULL, 0);
	while (ret == -EAGAIN && ht_poll_more(&poll));
	return ret;
}

TEST_F(sendrecv, what_is_corked_arrives_when_it_is_uncorked)
{
	struct ht_pair *pair = &self->pair;
	struct hamlyn_nq_entry entry;
	unsigned int i;

	for (i = 0; i < 100; i++) {
		unsigned int n = 1 + i % 8, k;

		h_cork(pair->terminus);
		for (k = 0; k < n; k++) {
			ASSERT_GE(send_number(pair, k), 0);
		}
		ASSERT_EQ(0, h_uncork(pair->terminus));
		for (k = 0; k < n; k++) {
			ASSERT_EQ(1, ht_recv(pair->nq, &entry));
			EXPECT_EQ(sizeof(k), entry.length);
		}
	}
}

/* More than the work queue holds, and than is ever waiting in the NQ. */
TEST_F(sendrecv, what_is_corked_rings_when_the_queue_is_full)
{
	struct ht_pair_attr attr = {
		.nq_entries = 1024,
		.terminus = variant->terminus,
		.one_context = variant->one_context,
	};
	struct hamlyn_nq_entry entry;
	unsigned int i, got = 0;
	struct ht_pair pair;

	ASSERT_EQ(0, ht_pair_open(&pair, &attr));
	h_cork(pair.terminus);
	for (i = 0; i < 500; i++) {
		ASSERT_GE(send_number(&pair, i), 0);
	}
	ASSERT_EQ(0, h_uncork(pair.terminus));
	for (; got < 500; got++) {
		ASSERT_EQ(1, ht_recv(pair.nq, &entry));
	}
	EXPECT_EQ(0, h_recv(pair.nq, &entry));
	ht_pair_close(&pair);
}

TEST_F(sendrecv, fast_messages_carry_their_word_in_the_entry)
{
	static const uint64_t words[] = {
		0, 1, 0xffffffff, 0x100000000ULL, 0x0123456789abcdefULL, ~0ULL,
	};
	const size_t lengths[] = { 0, 1, self->inline_max,
				   self->inline_max + 1, self->packet };
	struct ht_pair *pair = &self->pair;
	struct h_ticket fast = pair->ticket;
	struct h_msg msg = { .ticket = &fast, .data = pair->send };
	struct hamlyn_nq_entry entry;
	unsigned int i, j;

	fast.meta_index = HAMLYN_META_FAST;
	for (i = 0; i < ARRAY_SIZE(words); i++)
		for (j = 0; j < ARRAY_SIZE(lengths); j++) {
			msg.word = words[i];
			msg.length = lengths[j];
			ht_fill(pair->send, msg.length, i + j);
			ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
			ASSERT_EQ(1, ht_recv(pair->nq, &entry));
			EXPECT_EQ(words[i], entry.data);
			EXPECT_EQ(HAMLYN_META_FAST, entry.index);
			EXPECT_EQ(HAMLYN_NQE_FAST | HAMLYN_NQE_SINGLE,
				  entry.flags);
			EXPECT_EQ(msg.length, entry.length);
			EXPECT_EQ(h_slot_number(pair->slot), entry.slot);
			EXPECT_NO(wrong_data(pair, 0, msg.length, i + j));
		}
	EXPECT_EQ(512, ht_match_byte(pair->meta, 512, 0));
	/* h_send_msg() takes the ticket's word for it, too. */
	ASSERT_GE(h_send_msg(pair->terminus, &fast, "fast", 4, NULL, 0), 0);
	ASSERT_EQ(1, ht_recv(pair->nq, &entry));
	EXPECT_EQ(0, entry.data);
	EXPECT_EQ(4, entry.length);
}

TEST_F(sendrecv, fast_messages_are_one_packet_without_metadata)
{
	struct ht_pair *pair = &self->pair;
	struct h_ticket fast = pair->ticket;
	struct h_msg msg = { .ticket = &fast, .data = pair->send };

	fast.meta_index = HAMLYN_META_FAST;
	msg.length = self->packet + 1;
	EXPECT_LT(h_send(pair->terminus, &msg), 0);
	msg.length = 1;
	msg.meta = "x";
	msg.meta_length = 1;
	EXPECT_LT(h_send(pair->terminus, &msg), 0);
	ASSERT_EQ(0, ht_pair_fence(pair));
	EXPECT_TRUE(ht_pair_untouched(pair));
}

TEST_F(sendrecv, many_messages_arrive_in_order)
{
	struct ht_pair *pair = &self->pair;
	struct h_msg msg = { .ticket = &pair->fence };
	struct hamlyn_nq_entry entry;
	uint64_t sent = 0, got = 0;

	while (got < 20000) {
		while (sent - got < 60 && sent < 20000) {
			msg.word = sent++;
			ASSERT_GE(ht_send(pair->terminus, &msg), 0);
		}
		ASSERT_EQ(1, ht_recv(pair->nq, &entry));
		ASSERT_EQ(got, entry.data);
		ASSERT_EQ((uint32_t)got + 1, entry.sequence);
		got++;
	}
}

/* H 6.2: A function tells when the buffer of a message may be used again. */
TEST_F(sendrecv, a_buffer_may_be_reused_when_send_done_says_so)
{
	struct ht_pair *pair = &self->pair;
	size_t length = 2 * self->packet + 100;
	struct h_msg msg = {
		.ticket = &pair->ticket,
		.data = pair->send,
		.length = length,
	};
	struct hamlyn_nq_entry entry;
	struct ht_poll poll;
	int64_t handle;
	int i, done;

	for (i = 0; i < 300; i++) {
		ht_fill(pair->send, length, (uint64_t)i);
		handle = ht_send(pair->terminus, &msg);
		ASSERT_GE(handle, 0);
		ht_poll_begin(&poll);
		while (!(done = h_send_done(pair->terminus, handle))) {
			ASSERT_TRUE(ht_poll_more(&poll));
		}
		ASSERT_EQ(1, done);
		memset(pair->send, 0xee, length);
		ASSERT_EQ(1, ht_recv(pair->nq, &entry));
		ASSERT_NO(wrong_data(pair, 0, length, (uint64_t)i))
			TH_LOG("message %d", i);
	}
	/* Old handles stay done. */
	EXPECT_EQ(1, h_send_done(pair->terminus, 0));
	EXPECT_EQ(0, h_send_wait(pair->terminus, handle, 0));
}

TEST_F(sendrecv, a_full_work_queue_is_EAGAIN_and_drains)
{
	struct ht_pair *pair = &self->pair;
	size_t length = 3 * self->packet;
	struct h_msg msg = {
		.ticket = &pair->ticket,
		.data = pair->send,
		.length = length,
		.flags = HAMLYN_TRB_NO_NOTIFY,
	};
	struct hamlyn_stats before, after;
	int64_t handle = 0;
	int i;

	ASSERT_EQ(0, h_terminus_stats(pair->terminus, &before));
	ht_fill(pair->send, length, 5);
	for (i = 0; i < 1000; i++) {
		handle = ht_send(pair->terminus, &msg);
		ASSERT_GE(handle, 0) TH_LOG("message %d", i);
	}
	ASSERT_EQ(1, ht_send_wait(pair->terminus, handle));
	ASSERT_EQ(0, h_terminus_stats(pair->terminus, &after));
	EXPECT_EQ(before.messages + 1000, after.messages);
	EXPECT_EQ(before.packets + 3000, after.packets);
	EXPECT_EQ(before.failed, after.failed);
	EXPECT_NO(wrong_data(pair, 0, length, 5));
}

TEST_F(sendrecv, counters_count_messages_packets_and_bytes)
{
	struct ht_pair *pair = &self->pair;
	const size_t lengths[] = { 0, 1, self->packet, self->packet + 1,
				   3 * self->packet };
	struct hamlyn_stats t0, t1, n0, n1, r0, r1, slot;
	uint64_t packets = 0, bytes = 0, marks;
	unsigned int i;

	ASSERT_EQ(0, h_terminus_stats(pair->terminus, &t0));
	ASSERT_EQ(0, h_dev_stats(pair->tx, &n0));
	ASSERT_EQ(0, h_dev_stats(pair->rx, &r0));
	marks = pair->marks;
	for (i = 0; i < ARRAY_SIZE(lengths); i++) {
		/* Twice, a fence behind each: that is a message as well. */
		ASSERT_NO(exchange(pair, pair->send, lengths[i], 0));
		packets += 2 * (packets_of(pair, lengths[i]) + 1);
		bytes += 2 * lengths[i];
	}
	ASSERT_EQ(0, h_terminus_stats(pair->terminus, &t1));
	ASSERT_EQ(0, h_dev_stats(pair->tx, &n1));
	ASSERT_EQ(0, h_dev_stats(pair->rx, &r1));
	/* Between two hosts: by which it is known that others have landed. */
	marks = pair->marks - marks;
	EXPECT_EQ(4 * i, t1.messages - t0.messages);
	EXPECT_EQ(4 * i + marks, n1.messages - n0.messages);
	EXPECT_EQ(packets, t1.packets - t0.packets);
	EXPECT_EQ(packets + marks, n1.packets - n0.packets);
	EXPECT_EQ(bytes + marks * sizeof(marks), n1.bytes - n0.bytes);
	EXPECT_EQ(4 * i, r1.notifications - r0.notifications);
	EXPECT_EQ(0, t1.failed);
	/* A slot counts only what goes wrong. */
	ASSERT_EQ(0, h_slot_stats(pair->slot, &slot));
	EXPECT_EQ(0, slot.messages | slot.packets | slot.bytes | slot.failed |
		     slot.notifications | slot.kicks);
	EXPECT_EQ(64, ht_match_byte(slot.rejects, 64, 0));
}

TEST_HARNESS_MAIN
