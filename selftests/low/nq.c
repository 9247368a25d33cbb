// SPDX-License-Identifier: GPL-2.0-only
/*
 * Notification queues: room, overruns, wrap-around, and waiting.
 */
#include "kselftest_harness.h"
#include "conformance.h"

#include <pthread.h>
#include <signal.h>

/*
 * On the embedded device who sleeps looks by himself each half second: nobody waits
 * for ever, and a wake-up that was lost is told by the time alone.
 */
#define WOKEN_NS	(250 * HT_MS)	/* nobody who was woken takes as long */
#define LOST_NS		(400 * HT_MS)	/* whoever was not takes longer */

FIXTURE(nq) {
	struct ht_pair pair;
	struct h_ticket fast;
	uint32_t entries;
	uint64_t sent;
};

FIXTURE_VARIANT(nq) {
	uint32_t entries;
};

FIXTURE_VARIANT_ADD(nq, of_2) { .entries = 2 };
FIXTURE_VARIANT_ADD(nq, of_4) { .entries = 4 };
FIXTURE_VARIANT_ADD(nq, of_64) { .entries = 64 };
FIXTURE_VARIANT_ADD(nq, of_1024) { .entries = 1024 };

FIXTURE_SETUP(nq)
{
	struct ht_pair_attr attr = {
		.length = 8192,
		.nq_entries = variant->entries,
	};

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->entries = variant->entries;
	self->fast = self->pair.ticket;
	self->fast.meta_index = HAMLYN_META_FAST;
}

FIXTURE_TEARDOWN(nq)
{
	ht_pair_close(&self->pair);
}

/* @count messages, numbered on; all have landed when it returns. */
static const char *send_numbered(FIXTURE_DATA(nq) *self, uint32_t count)
{
	struct h_msg msg = { .ticket = &self->fast };
	int64_t handle = 0;

	if (!count)
		return NULL;
	while (count--) {
		msg.word = self->sent++;
		handle = ht_send(self->pair.terminus, &msg);
		if (handle < 0)
			return "not sent";
	}
	return ht_send_wait(self->pair.terminus, handle) == 1 ? NULL :
	       "did not leave";
}

/* The next @count notifications have the numbers from @from on. */
static const char *not_numbered(FIXTURE_DATA(nq) *self, uint64_t from,
				uint32_t count)
{
	struct hamlyn_nq_entry entry;

	while (count--) {
		if (h_recv(self->pair.nq, &entry) != 1)
			return "a notification is missing";
		if (entry.data != from++)
			return "not the notification that is next";
	}
	return NULL;
}

/* SP AM: Entries are popped from the receive queue lazily, several at a time. */
/* not kept: a pop is a store into memory, so each entry is free as soon as it was received */
TEST_F(nq, all_entries_but_one_hold_notifications)
{
	struct hamlyn_nq_entry entry;
	unsigned int round;

	for (round = 0; round < 5; round++) {
		EXPECT_EQ(0, h_recv(self->pair.nq, &entry));
		ASSERT_NO(send_numbered(self, self->entries - 1));
		ASSERT_NO(not_numbered(self, self->sent - self->entries + 1,
				       self->entries - 1));
		EXPECT_EQ(0, h_recv(self->pair.nq, &entry));
		EXPECT_EQ(0, h_nq_lost(self->pair.nq));
	}
}

TEST_F(nq, an_overrun_is_told_once_where_it_happened)
{
	static const uint32_t losses[] = { 1, 2, 3, 10, 1000 };
	struct hamlyn_stats slot, nic0, nic1;
	struct hamlyn_nq_entry entry;
	uint32_t room = self->entries - 1;
	uint64_t lost = 0;
	unsigned int i;

	ASSERT_EQ(0, h_dev_stats(self->pair.rx, &nic0));
	for (i = 0; i < ARRAY_SIZE(losses); i++) {
		ASSERT_NO(send_numbered(self, room + losses[i]));
		lost += losses[i];
		EXPECT_EQ(lost, h_nq_lost(self->pair.nq));
		ASSERT_NO(not_numbered(self, self->sent - room - losses[i],
				       room));
		EXPECT_EQ(-EOVERFLOW, h_recv(self->pair.nq, &entry));
		EXPECT_EQ(0, h_recv(self->pair.nq, &entry));
		/* And traffic goes on. */
		ASSERT_NO(send_numbered(self, room));
		ASSERT_NO(not_numbered(self, self->sent - room, room));
		EXPECT_EQ(0, h_recv(self->pair.nq, &entry));
		EXPECT_EQ(lost, h_nq_lost(self->pair.nq));
	}
	ASSERT_EQ(0, h_slot_stats(self->pair.slot, &slot));
	EXPECT_EQ(lost, slot.overruns);
	ASSERT_EQ(0, h_dev_stats(self->pair.rx, &nic1));
	EXPECT_EQ(lost, nic1.overruns - nic0.overruns);
	EXPECT_EQ(64, ht_match_byte(slot.rejects, 64, 0));
}

TEST_F(nq, the_data_of_a_lost_notification_are_in_memory)
{
	struct ht_pair *pair = &self->pair;
	struct h_msg msg = { .ticket = &pair->ticket, .data = pair->send };

	ASSERT_NO(send_numbered(self, self->entries + 1));
	ht_fill(pair->send, pair->length, 77);
	msg.length = pair->query.packet_size < pair->length ?
		     pair->query.packet_size : pair->length;
	ASSERT_EQ(1, ht_send_sync(pair->terminus, &msg));
	EXPECT_EQ(3, h_nq_lost(pair->nq));
	EXPECT_EQ(msg.length, ht_match(pair->data, msg.length, 77));
}

/* What a reader may conclude: see h_recv(). */
struct model {
	uint64_t next;		/* number expected */
	uint64_t missing;	/* numbers that never came */
	uint64_t reports;	/* since the last good one */
};

static const char *step(struct model *m, int ret,
			const struct hamlyn_nq_entry *entry)
{
	uint64_t gap;

	if (ret == -EOVERFLOW) {
		m->reports++;
		return NULL;
	}
	if (ret != 1)
		return "an error of another kind";
	if (entry->data < m->next)
		return "out of order, or twice";
	gap = entry->data - m->next;
	if (gap && !m->reports)
		return "lost without a word";
	if (m->reports && !gap)
		return "a report though nothing was lost";
	if (m->reports > 1)
		return "reported more than once";
	m->missing += gap;
	m->next = entry->data + 1;
	m->reports = 0;
	return NULL;
}

TEST_F(nq, any_mix_of_sending_and_taking_adds_up)
{
	struct hamlyn_nq_entry entry;
	struct model model = { 0 };
	uint64_t random = ht_seed();
	uint32_t i, n;
	int round, ret;

	for (round = 0; round < 2000; round++) {
		n = (uint32_t)(ht_random(&random) % (self->entries + 2));
		if (self->entries > 64 && round % 50)
			n %= 32;
		ASSERT_NO(send_numbered(self, n));
		n = (uint32_t)(ht_random(&random) % (self->entries + 2));
		for (i = 0; i < n; i++) {
			ret = h_recv(self->pair.nq, &entry);
			if (!ret)
				break;
			ASSERT_NO(step(&model, ret, &entry)) {
				TH_LOG("round %d, seed %ju", round,
				       (uintmax_t)ht_seed());
			}
		}
	}
	while ((ret = h_recv(self->pair.nq, &entry))) {
		ASSERT_NO(step(&model, ret, &entry));
	}
	ASSERT_NO(send_numbered(self, 1));
	ret = h_recv(self->pair.nq, &entry);
	ASSERT_NO(step(&model, ret, &entry));
	EXPECT_EQ(self->sent, model.next);
	EXPECT_EQ(model.missing, h_nq_lost(self->pair.nq));
}

TEST_F(nq, thousands_of_laps)
{
	uint32_t room = self->entries - 1;
	uint32_t laps = self->entries < 64 ? 4000 : 50000 / self->entries;
	struct hamlyn_nq_entry entry;
	uint32_t i, n;

	for (i = 0; i < laps; i++) {
		n = 1 + i % room;
		ASSERT_NO(send_numbered(self, n));
		ASSERT_NO(not_numbered(self, self->sent - n, n)) {
			TH_LOG("lap %u", i);
		}
	}
	EXPECT_EQ(0, h_recv(self->pair.nq, &entry));
	EXPECT_EQ(0, h_nq_lost(self->pair.nq));
}

TEST_F(nq, sequence_numbers_count_positions)
{
	struct hamlyn_nq_entry entry;
	uint32_t i;

	for (i = 0; i < 3 * self->entries; i++) {
		ASSERT_NO(send_numbered(self, 1));
		ASSERT_EQ(1, h_recv(self->pair.nq, &entry));
		ASSERT_EQ(i + 1, entry.sequence);
	}
}

/* A second NQ and slot of the same receiver, and the same sender. */
struct bystander {
	struct h_nq *nq;
	struct h_slot *slot;
	struct h_ticket ticket;
};

static int open_bystander(struct ht_pair *pair, struct bystander *b)
{
	struct h_slot_attr attr = { .area = pair->fence_area };
	int ret;

	ret = h_nq_create(pair->rx, 8, &b->nq);
	if (ret)
		return ret;
	attr.nq = b->nq;
	ret = h_slot_create(pair->rx, &attr, &b->slot);
	if (ret)
		return ret;
	return h_slot_ticket(b->slot, 0, 0, HAMLYN_META_FAST, &b->ticket);
}

static const char *bystander_suffers(struct ht_pair *pair, struct bystander *b)
{
	struct h_msg msg = { .ticket = &b->ticket };
	struct hamlyn_nq_entry entry;
	int i;

	for (i = 0; i < 20; i++) {
		msg.word = (uint64_t)i;
		if (ht_send_sync(pair->terminus, &msg) != 1)
			return "the sender is stuck";
		if (ht_recv(b->nq, &entry) != 1)
			return "another NQ is stuck";
		if (entry.data != (uint64_t)i)
			return "another NQ got something wrong";
	}
	return h_nq_lost(b->nq) ? "another NQ lost something" : NULL;
}

TEST_F(nq, a_wrong_consumer_index_hurts_its_owner_only)
{
	const uint32_t wrong[] = {
		1, 2, self->entries - 1, self->entries, self->entries + 1,
		1000000, 0x7fffffff, 0x80000000, 0x80000001, 0xffffffff,
		0xfffffffe, 0 - self->entries, 0 - self->entries - 1,
	};
	struct ht_pair *pair = &self->pair;
	struct bystander b;
	struct h_slot_attr attr = { .area = pair->area };
	struct hamlyn_nq_entry entry;
	uint32_t at;
	unsigned int i;

	ASSERT_EQ(0, open_bystander(pair, &b));
	for (i = 0; i < ARRAY_SIZE(wrong); i++) {
		at = h__read_once(&pair->nq->control->consumer);
		h__store_release(&pair->nq->control->consumer, at + wrong[i]);
		EXPECT_NO(send_numbered(self, 3 * self->entries)) {
			TH_LOG("consumer %x", wrong[i]);
		}
		EXPECT_NO(bystander_suffers(pair, &b)) {
			TH_LOG("consumer %x", wrong[i]);
		}
	}
	EXPECT_TRUE(ht_pair_untouched(pair));
	/* The owner may throw it away and begin anew. */
	ASSERT_EQ(0, h_slot_destroy(pair->slot));
	ASSERT_EQ(0, h_slot_destroy(pair->fence_slot));
	ASSERT_EQ(0, h_nq_destroy(pair->nq));
	ASSERT_EQ(0, h_nq_create(pair->rx, self->entries, &pair->nq));
	attr.nq = pair->nq;
	ASSERT_EQ(0, h_slot_create(pair->rx, &attr, &pair->slot));
	ASSERT_EQ(0, h_slot_ticket(pair->slot, 0, 0, HAMLYN_META_FAST,
				   &self->fast));
	EXPECT_EQ(0, h_recv(pair->nq, &entry));
	ASSERT_NO(send_numbered(self, self->entries - 1));
	EXPECT_NO(not_numbered(self, self->sent - self->entries + 1,
			       self->entries - 1));
}

TEST_F(nq, slots_that_share_an_nq_are_told_apart)
{
	enum { SLOTS = 10 };
	struct h_slot_attr attr = { .area = self->pair.fence_area,
				    .nq = self->pair.nq };
	struct h_ticket tickets[SLOTS];
	struct h_slot *slots[SLOTS];
	struct h_msg msg = { 0 };
	struct hamlyn_nq_entry entry;
	uint64_t random = ht_seed();
	unsigned int i, n;

	for (i = 0; i < SLOTS; i++) {
		ASSERT_EQ(0, h_slot_create(self->pair.rx, &attr, &slots[i]));
		ASSERT_EQ(0, h_slot_ticket(slots[i], 0, 0, HAMLYN_META_FAST,
					   &tickets[i]));
	}
	for (i = 0; i < 1000; i++) {
		n = ht_random(&random) % SLOTS;
		msg.ticket = &tickets[n];
		msg.word = i;
		ASSERT_EQ(1, ht_send_sync(self->pair.terminus, &msg));
		ASSERT_EQ(1, h_recv(self->pair.nq, &entry));
		ASSERT_EQ(i, entry.data);
		ASSERT_EQ(h_slot_number(slots[n]), entry.slot);
	}
}

TEST_F(nq, notifications_go_to_the_nq_of_their_slot)
{
	enum { NQS = 6 };
	struct h_slot_attr attr = { .area = self->pair.fence_area };
	struct h_ticket tickets[NQS];
	struct h_nq *nqs[NQS];
	struct h_slot *slot;
	struct h_msg msg = { 0 };
	struct hamlyn_nq_entry entry;
	unsigned int i, j;

	for (i = 0; i < NQS; i++) {
		ASSERT_EQ(0, h_nq_create(self->pair.rx, self->entries,
					 &nqs[i]));
		attr.nq = nqs[i];
		ASSERT_EQ(0, h_slot_create(self->pair.rx, &attr, &slot));
		ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, HAMLYN_META_FAST,
					   &tickets[i]));
	}
	for (i = 0; i < NQS; i++) {
		msg.ticket = &tickets[i];
		msg.word = i;
		ASSERT_EQ(1, ht_send_sync(self->pair.terminus, &msg));
		for (j = 0; j < NQS; j++) {
			ASSERT_EQ(i == j, h_recv(nqs[j], &entry));
		}
		ASSERT_EQ(0, h_recv(self->pair.nq, &entry));
	}
}

TEST_F(nq, a_slot_without_an_nq_takes_data_silently)
{
	struct h_slot_attr attr = { .area = self->pair.area };
	struct h_ticket ticket;
	struct h_slot *slot;
	struct h_msg msg = { .ticket = &ticket, .data = "silent", .length = 6 };

	ASSERT_EQ(0, h_slot_create(self->pair.rx, &attr, &slot));
	ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &ticket));
	ASSERT_EQ(1, ht_send_sync(self->pair.terminus, &msg));
	ticket.meta_index = HAMLYN_META_FAST;
	ASSERT_EQ(1, ht_send_sync(self->pair.terminus, &msg));
	EXPECT_EQ(0, ht_pair_fence(&self->pair));
	EXPECT_EQ(0, memcmp(h_area_addr(self->pair.area), "silent", 6));
	EXPECT_EQ(0, h_nq_lost(self->pair.nq));
}

/* ---- waiting ------------------------------------------------------------ */

FIXTURE(nq_wait) {
	struct ht_pair pair;
};

FIXTURE_SETUP(nq_wait)
{
	struct ht_pair_attr attr = { .nq_entries = 16 };

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
}

FIXTURE_TEARDOWN(nq_wait)
{
	ht_pair_close(&self->pair);
}

static int send_word(struct ht_pair *pair, uint64_t word)
{
	struct h_msg msg = { .ticket = &pair->fence, .word = word };

	return ht_send_sync(pair->terminus, &msg);
}

TEST_F(nq_wait, times_out_and_not_before_the_time)
{
	static const int64_t timeouts[] = {
		0, 1, 1000, HT_MS, 5 * HT_MS, 50 * HT_MS, 300 * HT_MS,
	};
	struct hamlyn_nq_entry entry;
	unsigned int i;
	int64_t took;

	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		took = ht_now_ns();
		EXPECT_EQ(timeouts[i] ? -ETIMEDOUT : -EAGAIN,
			  h_recv_block(self->pair.nq, &entry, timeouts[i]));
		took = ht_now_ns() - took;
		EXPECT_GE(took, timeouts[i]);
		EXPECT_LT(took, timeouts[i] + ht_patience_ns());
	}
}

TEST_F(nq_wait, takes_what_is_there_at_once)
{
	static const int64_t timeouts[] = { 0, 1, HT_SEC, INT64_MAX, -1,
					    INT64_MIN };
	struct hamlyn_nq_entry entry;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(timeouts); i++) {
		ASSERT_EQ(1, send_word(&self->pair, i));
		ASSERT_EQ(0, h_recv_block(self->pair.nq, &entry, timeouts[i]));
		EXPECT_EQ(i, entry.data);
	}
}

TEST_F(nq_wait, tells_an_overrun)
{
	struct hamlyn_nq_entry entry;
	int i;

	for (i = 0; i < 17; i++) {
		ASSERT_EQ(1, send_word(&self->pair, i));
	}
	for (i = 0; i < 15; i++) {
		ASSERT_EQ(0, h_recv_block(self->pair.nq, &entry, -1));
	}
	EXPECT_EQ(-EOVERFLOW, h_recv_block(self->pair.nq, &entry, -1));
	EXPECT_EQ(-EAGAIN, h_recv_block(self->pair.nq, &entry, 0));
}

struct waiter {
	struct ht_pair *pair;
	int64_t timeout;
	int result;
	int64_t took;
	int64_t ended;
	uint64_t word;
	pid_t tid;
	int finished;
};

static void *block(void *arg)
{
	struct waiter *w = arg;
	struct hamlyn_nq_entry entry;
	int64_t began = ht_now_ns();

	h__store_release(&w->tid, gettid());
	w->result = h_recv_block(w->pair->nq, &entry, w->timeout);
	w->ended = ht_now_ns();
	w->took = w->ended - began;
	w->word = entry.data;
	h__store_release(&w->finished, 1);
	return NULL;
}

TEST_F(nq_wait, a_sleeping_receiver_is_woken)
{
	struct waiter w = { .pair = &self->pair };
	pthread_t thread;
	uint64_t i;

	for (i = 0; i < 20; i++) {
		w.finished = 0;
		w.timeout = i % 2 ? -1 : ht_patience_ns();
		ASSERT_EQ(0, pthread_create(&thread, NULL, block, &w));
		/* Long enough that it sleeps, most of the time. */
		ht_sleep_ns(i * 2 * HT_MS);
		ASSERT_EQ(1, send_word(&self->pair, i));
		pthread_join(thread, NULL);
		EXPECT_EQ(0, w.result);
		EXPECT_EQ(i, w.word);
		EXPECT_LT(w.took, ht_patience_ns());
	}
}

/* Does the receiver sleep, and not for long enough to look by himself soon? */
static bool falls_asleep(const struct waiter *w)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (!h__load_acquire(&w->tid))
		if (!ht_poll_more(&poll))
			return false;
	if (!ht_task_is(w->tid, 'S'))
		return false;
	ht_sleep_ns(20 * HT_MS);
	return true;
}

TEST_F(nq_wait, a_sleeping_receiver_is_woken_at_once)
{
	enum { ROUNDS = 20 };
	struct waiter w;
	unsigned int quick = 0;
	pthread_t thread;
	int64_t sent;
	uint64_t i;

	if (!h_dev_is_embedded(self->pair.rx))
		SKIP(return, "kernel: who is not woken sleeps on there");
	for (i = 0; i < ROUNDS; i++) {
		w = (struct waiter) { .pair = &self->pair, .timeout = -1 };
		ASSERT_EQ(0, pthread_create(&thread, NULL, block, &w));
		ASSERT_TRUE(falls_asleep(&w));
		sent = ht_now_ns();
		ASSERT_EQ(1, send_word(&self->pair, i));
		pthread_join(thread, NULL);
		EXPECT_EQ(0, w.result);
		EXPECT_EQ(i, w.word);
		quick += w.ended - sent < WOKEN_NS;
	}
	/* Whoever is not woken is never quick; who is may be slow for other reasons. */
	EXPECT_LE(ROUNDS / 2, quick) {
		TH_LOG("%u of %d were woken at once", quick, ROUNDS);
	}
}

/*
 * Each waits for the other: a lost wake-up stops both, on the embedded device until
 * they look by themselves.
 */
struct player {
	struct h_nq *nq;
	struct h_terminus *terminus;
	struct h_ticket *to;
	int rounds;
	int failed;
};

static void *play(void *arg)
{
	struct player *p = arg;
	struct h_msg msg = { .ticket = p->to };
	struct hamlyn_nq_entry entry;
	int i;

	for (i = 0; i < p->rounds; i++) {
		if (h_recv_block(p->nq, &entry, ht_patience_ns()) != 0 ||
		    entry.data != (uint64_t)i) {
			p->failed = i + 1;
			break;
		}
		msg.word = (uint64_t)i;
		if (ht_send(p->terminus, &msg) < 0) {
			p->failed = -1;
			break;
		}
	}
	return NULL;
}

TEST_F(nq_wait, no_wake_up_is_lost_in_thousands_of_round_trips)
{
	enum { ROUNDS = 5000, FEW = 5 };
	bool embedded = h_dev_is_embedded(self->pair.rx);
	struct bystander b;
	struct player player = { .rounds = ROUNDS };
	struct h_msg msg = { 0 };
	struct hamlyn_nq_entry entry;
	pthread_t thread;
	int64_t begun;
	int i, slow = 0;

	ASSERT_EQ(0, open_bystander(&self->pair, &b));
	player.nq = b.nq;
	player.to = &self->pair.fence;
	ASSERT_EQ(0, h_terminus_create(self->pair.rx, NULL, &player.terminus));
	ASSERT_EQ(0, pthread_create(&thread, NULL, play, &player));
	msg.ticket = &b.ticket;
	for (i = 0; i < ROUNDS; i++) {
		msg.word = (uint64_t)i;
		begun = ht_now_ns();
		ASSERT_GE(ht_send(self->pair.terminus, &msg), 0);
		ASSERT_EQ(0, h_recv_block(self->pair.nq, &entry,
					  ht_patience_ns())) {
			TH_LOG("round %d", i);
		}
		ASSERT_EQ((uint64_t)i, entry.data);
		slow += embedded && ht_now_ns() - begun > LOST_NS;
		/* A few may have had no processor for so long. */
		ASSERT_LE(slow, FEW) {
			TH_LOG("round %d", i);
		}
	}
	pthread_join(thread, NULL);
	EXPECT_EQ(0, player.failed);
}

static void ignore(int sig)
{
	(void)sig;
}

/* Signal the thread until its wait is over. */
static const char *interrupt(pthread_t thread, struct waiter *w)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (!h__load_acquire(&w->finished)) {
		if (!ht_poll_more(&poll))
			return "the wait does not end";
		ht_sleep_ns(HT_MS);
		pthread_kill(thread, SIGUSR1);
	}
	pthread_join(thread, NULL);
	return NULL;
}

TEST_F(nq_wait, a_signal_ends_it_with_EINTR)
{
	struct sigaction action = { .sa_handler = ignore };
	struct waiter w = { .pair = &self->pair };
	struct hamlyn_nq_entry entry;
	pthread_t thread;
	int i;

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	for (i = 0; i < 10; i++) {
		w.finished = 0;
		w.timeout = i % 2 ? -1 : 10 * ht_patience_ns();
		ASSERT_EQ(0, pthread_create(&thread, NULL, block, &w));
		ASSERT_NO(interrupt(thread, &w));
		EXPECT_EQ(-EINTR, w.result);
	}
	/* Nothing was lost by it. */
	ASSERT_EQ(1, send_word(&self->pair, 5));
	ASSERT_EQ(0, h_recv_block(self->pair.nq, &entry, -1));
	EXPECT_EQ(5, entry.data);
}

TEST_F(nq_wait, signals_do_not_move_the_time_out)
{
	struct sigaction action = { .sa_handler = ignore,
				    .sa_flags = SA_RESTART };
	struct waiter w = { .pair = &self->pair, .timeout = 100 * HT_MS };
	pthread_t thread;

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, block, &w));
	ASSERT_NO(interrupt(thread, &w));
	EXPECT_TRUE(w.result == -EINTR || w.result == -ETIMEDOUT) {
		TH_LOG("%d", w.result);
	}
	if (w.result == -ETIMEDOUT) {
		EXPECT_GE(w.took, w.timeout);
	}
}

TEST_HARNESS_MAIN
