// SPDX-License-Identifier: GPL-2.0-only
/* Conformance, H 2.5 and 2.6: packet counting, message arrival notification. */
#include "kselftest_harness.h"
#include "conformance.h"

#include <pthread.h>

#define ENTRIES		8	/* metadata entries of the pair */
#define NQ_ENTRIES	16	/* 15 notifications fit */

FIXTURE(conformance) {
	struct ht_pair pair;
	size_t packet;
};

FIXTURE_SETUP(conformance)
{
	struct ht_pair_attr attr = {
		.meta = ENTRIES,
		.nq_entries = NQ_ENTRIES,
	};

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->packet = self->pair.query.packet_size;
	ht_fill(self->pair.send, self->pair.send_length, 1);
}

FIXTURE_TEARDOWN(conformance)
{
	ht_pair_close(&self->pair);
}

/* ---- 2.5 packet counting ---- */

/* A part of a group: @length bytes at @offset, for entry 0. */
static int share(struct h_terminus *t, const struct h_ticket *k,
		 const void *data, size_t offset, size_t length, uint32_t delta)
{
	struct h_msg m = {
		.ticket = k,
		.data = data,
		.offset = offset,
		.length = length,
		.delta = delta,
	};

	return ht_send_sync(t, &m);
}

/* One notification, of entry 0, whose accumulator is 0 again. */
static const char *complete(struct ht_pair *p)
{
	struct hamlyn_nq_entry e;

	if (ht_recv(p->nq, &e) != 1)
		return "no notification";
	if (e.index || e.slot != h_slot_number(p->slot))
		return "of another message";
	if (p->meta[0].accumulator)
		return "the accumulator is not 0";
	return ht_pair_fence(p) ? "more than one notification" : NULL;
}

/* The accumulator is 0 again, and tells, when all packets of a message are there. */
TEST_F(conformance, h2_5_single_message_receive)
{
	struct ht_pair *p = &self->pair;
	size_t n;

	for (n = self->packet - 1; n <= p->length; n += self->packet / 2 + 1) {
		memset(p->data, 0, n);
		ASSERT_EQ(1, share(p->terminus, &p->ticket, p->send, 0, n, 0));
		ASSERT_NO(complete(p)) TH_LOG("%zu bytes", n);
		EXPECT_EQ(n, ht_match(p->data, n, 1));
	}
}

/* The deltas of a message's packets add up to the Y its sender gave. */
TEST_F(conformance, h2_5_deltas_add_up_to_y)
{
	static const uint32_t ys[] = { 4, 5, 1000, 0x7fffffff, 0x80000000,
				       0xfffffffc };
	struct ht_pair *p = &self->pair;
	unsigned int i, packets;

	for (i = 0; i < ARRAY_SIZE(ys); i++)
		for (packets = 1; packets <= 4; packets++) {
			ASSERT_EQ(1, share(p->terminus, &p->ticket, p->send, 0,
					   packets * self->packet, ys[i]));
			ASSERT_EQ(0, ht_pair_fence(p));
			EXPECT_EQ(ys[i], p->meta[0].accumulator);
			p->meta[0].accumulator = 0;
		}
}

/* Counts are modulo 2^32: the sum may pass any value but 0. */
TEST_F(conformance, h2_5_counts_modulo_2_to_the_32)
{
	static const uint32_t shares[] = { 0x7fffffff, 1, 0x40000000,
					   0x3fffffff, 1 };
	struct ht_pair *p = &self->pair;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(shares); i++) {
		EXPECT_EQ(0, ht_pair_fence(p));
		ASSERT_EQ(1, share(p->terminus, &p->ticket, p->send, 0, 1,
				   shares[i]));
	}
	EXPECT_NO(complete(p));
}

/* A single packet with delta 0 tells without the accumulator being consulted. */
TEST_F(conformance, h2_5_single_packet_short_cut)
{
	struct ht_pair *p = &self->pair;
	struct hamlyn_nq_entry e;

	p->meta[0].accumulator = 12345;
	ASSERT_EQ(1, share(p->terminus, &p->ticket, "x", 0, 1, 0));
	ASSERT_EQ(1, ht_recv(p->nq, &e));
	EXPECT_EQ(12345, p->meta[0].accumulator);
	EXPECT_TRUE(e.flags & HAMLYN_NQE_SINGLE);
	EXPECT_EQ(1, e.length);
	/* A message of several packets does consult it. */
	ASSERT_EQ(1, share(p->terminus, &p->ticket, p->send, 0,
			   2 * self->packet, 0));
	EXPECT_EQ(0, ht_pair_fence(p));
	EXPECT_EQ(12345, p->meta[0].accumulator);
}

/* Packets may arrive in any order: the last to arrive tells, whichever it is. */
TEST_F(conformance, h2_5_any_order)
{
	static const unsigned int orders[][3] = {
		{ 0, 1, 2 }, { 0, 2, 1 }, { 1, 0, 2 },
		{ 1, 2, 0 }, { 2, 0, 1 }, { 2, 1, 0 },
	};
	/* As the packets of a message have them, the last one's the rest. */
	static const uint32_t deltas[] = { 1, 1, 0 - 2U };
	struct ht_pair *p = &self->pair;
	unsigned int i, j;

	for (i = 0; i < ARRAY_SIZE(orders); i++) {
		memset(p->data, 0, 3 * self->packet);
		for (j = 0; j < 3; j++) {
			unsigned int k = orders[i][j];
			size_t offset = k * self->packet;

			EXPECT_EQ(0, ht_pair_fence(p));
			ASSERT_EQ(1, share(p->terminus, &p->ticket,
					   p->send + offset, offset,
					   self->packet, deltas[k]));
		}
		ASSERT_NO(complete(p)) TH_LOG("order %u", i);
		EXPECT_EQ(3 * self->packet,
			  ht_match(p->data, 3 * self->packet, 1));
	}
}

/* In a process: @count single-packet shares that make @y, then done. */
static int member(const struct h_ticket *k, size_t offset, uint32_t y,
		  uint32_t count)
{
	struct h_terminus *t;
	struct h_dev *dev;
	uint32_t i;

	if (ht_open(&dev) || h_terminus_create(dev, NULL, &t))
		return 1;
	for (i = 0; i + 1 < count; i++)
		if (share(t, k, "member", offset, 6, 1) != 1)
			return 2;
	if (share(t, k, "member", offset, 6, y - (count - 1)) != 1)
		return 3;
	h_close(dev);
	return 0;
}

/* A group of senders makes one notification if their shares add up to 2^32. */
TEST_F(conformance, h2_5_group_receive)
{
	enum { SENDERS = 4 };
	static const uint32_t ys[SENDERS] = { 100, 0x80000000, 0x12345678,
					      0 - 0x92345678U - 100U };
	struct ht_pair *p = &self->pair;
	pid_t pids[SENDERS];
	int i;

	for (i = 0; i < SENDERS; i++) {
		pids[i] = ht_fork();
		ASSERT_GE(pids[i], 0);
		if (!pids[i])
			_exit(member(&p->ticket, (size_t)i * 10, ys[i],
				     1 + (uint32_t)i));
	}
	for (i = 0; i < SENDERS; i++)
		EXPECT_EQ(0, ht_reap(pids[i]));
	EXPECT_NO(complete(p));
	for (i = 0; i < SENDERS; i++)
		EXPECT_EQ(0, memcmp(p->data + i * 10, "member", 6));
}

static int delegate(const struct h_ticket *k, uint32_t y)
{
	pid_t j = ht_fork();
	pid_t i;

	if (!j)
		_exit(member(k, 0, 77, 3));
	i = ht_fork();
	if (!i)
		_exit(member(k, 10, y - 77, 2));
	return ht_reap(j) | ht_reap(i);
}

/* A member may delegate its share to others, whom the receiver need not know. */
TEST_F(conformance, h2_5_shares_are_delegated)
{
	struct ht_pair *p = &self->pair;
	pid_t pid;

	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(delegate(&p->ticket, 0xabcdef));
	EXPECT_EQ(0, ht_reap(pid));
	EXPECT_EQ(0, ht_pair_fence(p));
	EXPECT_EQ(0xabcdef, p->meta[0].accumulator);
	ASSERT_EQ(1, share(p->terminus, &p->ticket, "own", 20, 3,
			   0 - 0xabcdefU));
	EXPECT_NO(complete(p));
	EXPECT_EQ(0, memcmp(p->data, "member", 6));
	EXPECT_EQ(0, memcmp(p->data + 10, "member", 6));
}

/* Scatter-gather: a group whose messages all come from one sender. */
TEST_F(conformance, h2_5_scatter_gather)
{
	struct ht_pair *p = &self->pair;
	const size_t places[] = { 2 * self->packet, 17, self->packet - 1 };
	unsigned int i;

	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, ht_pair_fence(p));
		ASSERT_EQ(1, share(p->terminus, &p->ticket, p->send, places[i],
				   200, i < 2 ? 1 : 0 - 2U));
	}
	EXPECT_NO(complete(p));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(200, ht_match(p->data + places[i], 200, 1));
		memset(p->data + places[i], HT_GUARD, 200);
	}
	EXPECT_TRUE(ht_pair_untouched(p));
}

/* ---- 2.6 message arrival notification ---- */

/* A message may move data and notify nobody. */
TEST_F(conformance, h2_6_no_notification)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &p->ticket, .data = p->send,
			   .flags = HAMLYN_TRB_NO_NOTIFY };
	size_t n;

	for (n = 1; n < p->length; n += self->packet - 1) {
		m.length = n;
		ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
		EXPECT_EQ(0, ht_pair_fence(p));
		EXPECT_EQ(n, ht_match(p->data, n, 1));
		EXPECT_EQ(0, p->meta[0].accumulator);
	}
}

/* An entry tells slot, notification index, and where the metadata entry is. */
TEST_F(conformance, h2_6_entries_tell_the_message)
{
	struct ht_pair *p = &self->pair;
	struct h_ticket k = p->ticket;
	struct h_msg m = { .ticket = &k, .data = p->send };
	char *base = h_area_addr(p->meta_area);
	struct hamlyn_nq_entry e;
	uint32_t i;

	for (i = 0; i < 2 * ENTRIES; i++) {
		k.meta_index = i % ENTRIES;
		m.length = i * self->packet / 8;
		ASSERT_NO(cf_lands(p, &m, &e));
		EXPECT_EQ(h_slot_number(p->slot), e.slot);
		EXPECT_EQ(i % ENTRIES, e.index);
		EXPECT_EQ((char *)&p->meta[i % ENTRIES], base + e.data);
		EXPECT_EQ(p->from, e.source);
		if (m.length <= self->packet) {
			EXPECT_EQ(m.length, e.length);
		}
	}
}

/* The queue is circular; a reader that polls knows a new entry from an old one. */
TEST_F(conformance, h2_6_the_queue_wraps)
{
	struct ht_pair *p = &self->pair;
	struct h_msg m = { .ticket = &p->fence };
	struct hamlyn_nq_entry e;
	uint64_t sent = 0, got = 0;
	uint32_t n;

	for (n = 1; n < 10 * NQ_ENTRIES; n++) {
		while (sent - got < n % NQ_ENTRIES) {
			m.word = sent++;
			ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
		}
		while (got < sent - n % 3 % (sent - got + 1)) {
			ASSERT_EQ(1, h_recv(p->nq, &e));
			EXPECT_EQ(got, e.data);
			EXPECT_EQ((uint32_t)++got, e.sequence);
		}
		if (sent == got) {
			EXPECT_EQ(0, h_recv(p->nq, &e));
		}
	}
	EXPECT_EQ(0, h_nq_lost(p->nq));
}

/* Several slots may use one queue: in order of arrival, each by its number. */
TEST_F(conformance, h2_6_several_slots_on_one_queue)
{
	enum { SLOTS = 7 };
	struct ht_pair *p = &self->pair;
	struct h_slot_attr attr = { .area = p->area, .nq = p->nq };
	struct h_slot *slots[SLOTS];
	struct h_ticket k;
	struct h_msg m = { .ticket = &k };
	struct hamlyn_nq_entry e;
	int i;

	for (i = 0; i < SLOTS; i++) {
		ASSERT_EQ(0, h_slot_create(p->rx, &attr, &slots[i]));
	}
	for (i = 0; i < 2 * SLOTS; i++) {
		ASSERT_EQ(0, h_slot_ticket(slots[i * 3 % SLOTS], 0, 0,
					   HAMLYN_META_FAST, &k));
		m.word = (uint64_t)i;
		ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
	}
	EXPECT_EQ(-EBUSY, h_nq_destroy(p->nq));
	for (i = 0; i < 2 * SLOTS; i++) {
		ASSERT_EQ(1, h_recv(p->nq, &e));
		EXPECT_EQ(h_slot_number(slots[i * 3 % SLOTS]), e.slot);
		EXPECT_EQ((uint64_t)i, e.data);
	}
}

/* The queue is read-only to the application. */
TEST_F(conformance, h2_6_the_queue_is_read_only)
{
	volatile struct hamlyn_nq_entry *e = (void *)
		(uintptr_t)&self->pair.nq->entries[1];
	struct ht_pair_attr attr = { 0 };
	pid_t pid;

	if (h_dev_is_embedded(self->pair.rx))
		SKIP(return, "embedded: its users can write to all of the segment");
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		/* One of its own: mappings are not inherited. */
		if (ht_pair_open(&self->pair, &attr))
			_exit(1);
		e = (void *)(uintptr_t)&self->pair.nq->entries[1];
		if (e->sequence)
			_exit(2);
		e->sequence = 2;
		_exit(3);
	}
	EXPECT_EQ(128 + SIGSEGV, ht_reap(pid));
}

/* An overrun is told where it happened, and counted; the data are there. */
TEST_F(conformance, h2_6_overruns_are_told)
{
	struct ht_pair *p = &self->pair;
	struct h_ticket k = p->ticket;
	struct h_msg m = { .ticket = &k, .length = 8 };
	struct hamlyn_nq_entry e;
	struct hamlyn_stats stats;
	uint64_t i;
	int round;

	k.meta_index = HAMLYN_META_FAST;
	for (round = 1; round <= 3; round++) {
		for (i = 0; i < NQ_ENTRIES + 9; i++) {
			m.data = &i;
			m.offset = i * 8;
			m.word = i;
			ASSERT_EQ(1, ht_send_sync(p->terminus, &m));
		}
		EXPECT_EQ(round * 10, h_nq_lost(p->nq));
		for (i = 0; i < NQ_ENTRIES - 1; i++) {
			ASSERT_EQ(1, h_recv(p->nq, &e));
			EXPECT_EQ(i, e.data);
		}
		EXPECT_EQ(-EOVERFLOW, h_recv(p->nq, &e));
		EXPECT_EQ(0, h_recv(p->nq, &e));
		for (i = 0; i < NQ_ENTRIES + 9; i++)
			EXPECT_EQ(0, memcmp(p->data + i * 8, &i, 8));
		memset(p->data, 0, (NQ_ENTRIES + 9) * 8);
	}
	ASSERT_EQ(0, h_slot_stats(p->slot, &stats));
	EXPECT_EQ(30, stats.overruns);
	EXPECT_EQ(0, ht_pair_fence(p));
}

/* A receiver that sleeps until there is a notification. */
struct sleeper {
	struct h_nq *nq;
	struct hamlyn_nq_entry entry;
	pthread_t thread;
	pid_t tid;
	int result;
	int finished;
};

static void *sleep_in_recv(void *arg)
{
	struct sleeper *s = arg;

	h__store_release(&s->tid, gettid());
	s->result = h_recv_block(s->nq, &s->entry, ht_patience_ns());
	h__store_release(&s->finished, 1);
	return NULL;
}

static const char *go_to_sleep(struct ht_pair *p, struct sleeper *s)
{
	struct ht_poll poll;

	*s = (struct sleeper) { .nq = p->nq };
	if (pthread_create(&s->thread, NULL, sleep_in_recv, s))
		return "no thread";
	ht_poll_begin(&poll);
	while (!h__load_acquire(&s->tid))
		if (!ht_poll_more(&poll))
			return "it does not begin";
	return ht_task_is(s->tid, 'S') ? NULL : "it does not sleep";
}

static int send_word(struct ht_pair *p, uint64_t word, uint32_t flags)
{
	struct h_msg m = { .ticket = &p->fence, .word = word, .flags = flags };

	return ht_send_sync(p->terminus, &m);
}

/* With "interrupt", the default, a message wakes a receiver that sleeps. */
TEST_F(conformance, h2_6_interrupt_wakes_a_sleeper)
{
	struct ht_pair *p = &self->pair;
	int64_t took, least = INT64_MAX;
	struct sleeper s;
	uint64_t i;

	for (i = 0; i < 10; i++) {
		ASSERT_NO(go_to_sleep(p, &s));
		took = ht_now_ns();
		ASSERT_EQ(1, send_word(p, i, 0));
		pthread_join(s.thread, NULL);
		took = ht_now_ns() - took;
		if (took < least)
			least = took;
		EXPECT_EQ(0, s.result);
		EXPECT_EQ(i, s.entry.data);
	}
	/* On the embedded device it wakes by itself, but not that soon. */
	EXPECT_LT(least, 250 * HT_MS);
}

/* Without it a message wakes nobody; it is seen by polling, as any other. */
TEST_F(conformance, h2_6_quiet_is_seen_by_polling)
{
	struct ht_pair *p = &self->pair;
	struct hamlyn_nq_entry e;
	uint64_t i;

	for (i = 0; i < 40; i++) {
		ASSERT_EQ(1, send_word(p, i, HAMLYN_TRB_QUIET));
		ASSERT_EQ(1, h_recv(p->nq, &e));
		EXPECT_EQ(i, e.data);
		EXPECT_EQ(0, h_recv(p->nq, &e));
	}
}

/* A quiet message leaves a sleeper asleep; the next loud one shows it as well. */
TEST_F(conformance, h2_6_quiet_does_not_wake)
{
	struct ht_pair *p = &self->pair;
	struct hamlyn_nq_entry e;
	struct sleeper s;
	int slept = 0;
	int i;

	/* It may wake by itself to look around, but not each time. */
	for (i = 0; i < 10 && !slept; i++) {
		ASSERT_NO(go_to_sleep(p, &s));
		ASSERT_EQ(1, send_word(p, 1, HAMLYN_TRB_QUIET));
		ht_sleep_ns(100 * HT_MS);
		slept = !h__load_acquire(&s.finished);
		ASSERT_EQ(1, send_word(p, 2, 0));
		pthread_join(s.thread, NULL);
		EXPECT_EQ(0, s.result);
		EXPECT_EQ(1, s.entry.data);
		ASSERT_EQ(1, h_recv(p->nq, &e));
		EXPECT_EQ(2, e.data);
	}
	EXPECT_TRUE(slept);
}

/* One wake-up is for all that has arrived: none needs one of its own. */
TEST_F(conformance, h2_6_one_wake_up_for_many)
{
	struct ht_pair *p = &self->pair;
	struct hamlyn_nq_entry e;
	struct sleeper s;
	uint64_t i, n;

	for (n = 2; n < NQ_ENTRIES; n++) {
		ASSERT_NO(go_to_sleep(p, &s));
		for (i = 1; i <= n; i++) {
			ASSERT_EQ(1, send_word(p, i, i < n ?
					       HAMLYN_TRB_QUIET : 0));
		}
		pthread_join(s.thread, NULL);
		EXPECT_EQ(0, s.result);
		EXPECT_EQ(1, s.entry.data);
		for (i = 2; i <= n; i++) {
			ASSERT_EQ(1, h_recv(p->nq, &e));
			EXPECT_EQ(i, e.data);
		}
		EXPECT_EQ(0, h_recv(p->nq, &e));
	}
}

/* Who polls and then sleeps misses no wake-up, however close they are. */
TEST_F(conformance, h2_6_no_wake_up_is_lost)
{
	struct ht_pair *p = &self->pair;
	struct sleeper s;
	uint64_t i;

	for (i = 0; i < 100; i++) {
		s = (struct sleeper) { .nq = p->nq };
		ASSERT_EQ(0, pthread_create(&s.thread, NULL, sleep_in_recv,
					    &s));
		ht_sleep_ns((int64_t)i * 10000);
		ASSERT_EQ(1, send_word(p, i, 0));
		pthread_join(s.thread, NULL);
		ASSERT_EQ(0, s.result);
		EXPECT_EQ(i, s.entry.data);
	}
}

TEST_HARNESS_MAIN
