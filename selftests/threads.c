// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that share a terminus or an NQ lose nothing and get nothing twice.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <pthread.h>
#include <sched.h>

#define THREADS		2
#define MESSAGES	20000	/* of each sending thread */
#define WINDOW		400	/* on their way at most; fits the NQ */

/* One word a message: which sender, and the how-many-th it is. */
#define WORD(sender, number)	((uint64_t)(sender) << 32 | (number))

struct traffic {
	struct ht_pair pair;
	struct h_ticket fast;
	uint32_t sent;
	uint32_t received;
	uint32_t expected;
	uint32_t failed;
	unsigned char *seen;	/* one byte a message */
};

struct worker {
	struct traffic *traffic;
	struct h_terminus *terminus;
	pthread_t thread;
	unsigned int number;
	bool block;
};

static uint32_t add(uint32_t *counter, uint32_t n)
{
	return __atomic_add_fetch(counter, n, __ATOMIC_SEQ_CST);
}

static void *send_numbers(void *arg)
{
	struct worker *w = arg;
	struct traffic *t = w->traffic;
	unsigned char payload[100];
	struct h_msg msg = {
		.ticket = &t->fast,
		.data = payload,
		.offset = w->number * sizeof(payload),
	};
	struct ht_poll poll;
	uint32_t i;

	for (i = 0; i < MESSAGES; i++) {
		ht_poll_begin(&poll);
		while (h__load_acquire(&t->sent) -
		       h__load_acquire(&t->received) >= WINDOW)
			if (!ht_poll_more(&poll))
				goto failed;
		add(&t->sent, 1);
		msg.word = WORD(w->number, i);
		msg.length = i % sizeof(payload);
		memset(payload, (int)i, msg.length);
		if (ht_send(w->terminus, &msg) < 0)
			goto failed;
	}
	return NULL;
failed:
	add(&t->failed, 1);
	return NULL;
}

static bool note(struct traffic *t, const struct hamlyn_nq_entry *entry)
{
	uint32_t sender = (uint32_t)(entry->data >> 32);
	uint32_t number = (uint32_t)entry->data;

	if (sender >= THREADS || number >= MESSAGES ||
	    entry->length != number % 100)
		return false;
	return !__atomic_exchange_n(&t->seen[sender * MESSAGES + number], 1,
				    __ATOMIC_RELAXED);
}

static void *receive_numbers(void *arg)
{
	struct worker *w = arg;
	struct traffic *t = w->traffic;
	struct hamlyn_nq_entry entry;
	uint32_t next[THREADS] = { 0 };
	struct ht_poll poll;
	uint32_t sender;
	int ret;

	ht_poll_begin(&poll);
	while (h__load_acquire(&t->received) < t->expected) {
		ret = w->block ?
		      h_recv_block(t->pair.nq, &entry, 10 * HT_MS) :
		      h_recv(t->pair.nq, &entry);
		if (ret == 0 || ret == -ETIMEDOUT) {
			if (ht_poll_more(&poll))
				continue;
			break;
		}
		ht_poll_begin(&poll);
		if (ret != 1 || !note(t, &entry)) {
			add(&t->failed, 1);
			break;
		}
		/* What one sender sent later, nobody gets earlier. */
		sender = (uint32_t)(entry.data >> 32);
		if ((uint32_t)entry.data < next[sender]) {
			add(&t->failed, 1);
			break;
		}
		next[sender] = (uint32_t)entry.data + 1;
		add(&t->received, 1);
	}
	return NULL;
}

FIXTURE(threads) {
	struct traffic traffic;
};

FIXTURE_VARIANT(threads) {
	unsigned int termini;
	unsigned int receivers;
	bool block;
};

FIXTURE_VARIANT_ADD(threads, one_terminus_one_receiver) {
	.termini = 1, .receivers = 1,
};

FIXTURE_VARIANT_ADD(threads, one_terminus_two_receivers) {
	.termini = 1, .receivers = 2,
};

FIXTURE_VARIANT_ADD(threads, two_termini_two_receivers) {
	.termini = 2, .receivers = 2,
};

FIXTURE_VARIANT_ADD(threads, two_termini_two_blocked_receivers) {
	.termini = 2, .receivers = 2, .block = true,
};

FIXTURE_SETUP(threads)
{
	struct ht_pair_attr attr = { .length = 4096, .nq_entries = 512 };
	struct traffic *t = &self->traffic;

	ASSERT_EQ(0, ht_pair_open(&t->pair, &attr));
	t->fast = t->pair.ticket;
	t->fast.meta_index = HAMLYN_META_FAST;
	t->expected = THREADS * MESSAGES;
	t->seen = calloc(THREADS, MESSAGES);
	ASSERT_NE(NULL, t->seen);
}

FIXTURE_TEARDOWN(threads)
{
	free(self->traffic.seen);
	ht_pair_close(&self->traffic.pair);
}

TEST_F(threads, lose_nothing_and_get_nothing_twice)
{
	struct traffic *t = &self->traffic;
	struct worker senders[THREADS], receivers[THREADS];
	struct h_terminus *second = NULL;
	unsigned int i;

	ASSERT_EQ(0, h_terminus_create(t->pair.tx, NULL, &second));
	for (i = 0; i < variant->receivers; i++) {
		receivers[i] = (struct worker) { .traffic = t,
						 .block = variant->block };
		ASSERT_EQ(0, pthread_create(&receivers[i].thread, NULL,
					    receive_numbers, &receivers[i]));
	}
	for (i = 0; i < THREADS; i++) {
		senders[i] = (struct worker) {
			.traffic = t,
			.number = i,
			.terminus = i && variant->termini > 1 ?
				    second : t->pair.terminus,
		};
		ASSERT_EQ(0, pthread_create(&senders[i].thread, NULL,
					    send_numbers, &senders[i]));
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(senders[i].thread, NULL);
	for (i = 0; i < variant->receivers; i++)
		pthread_join(receivers[i].thread, NULL);
	EXPECT_EQ(0, t->failed);
	EXPECT_EQ(t->expected, t->received);
	EXPECT_EQ(t->expected, ht_match_byte(t->seen, t->expected, 1));
	EXPECT_EQ(0, h_nq_lost(t->pair.nq));
	EXPECT_EQ(0, ht_pair_fence(&t->pair));
	EXPECT_TRUE(ht_pair_guarded(&t->pair));
}

/* Threads that make and destroy objects while others talk. */
static void *come_and_go(void *arg)
{
	struct worker *w = arg;
	struct h_dev *dev = w->traffic->pair.rx;
	struct h_terminus *terminus;
	struct h_slot_attr attr;
	struct h_slot *slot;
	int i;

	for (i = 0; i < 1000; i++) {
		memset(&attr, 0, sizeof(attr));
		if (h_area_alloc(dev, 8192, &attr.area) ||
		    h_nq_create(dev, 4, &attr.nq) ||
		    h_slot_create(dev, &attr, &slot) ||
		    h_terminus_create(dev, NULL, &terminus) ||
		    h_terminus_bind(terminus, 1, attr.area, 0, 0) ||
		    h_slot_rekey(slot) ||
		    h_terminus_destroy(terminus) || h_slot_destroy(slot) ||
		    h_nq_destroy(attr.nq) || h_area_remove(attr.area)) {
			add(&w->traffic->failed, 1);
			break;
		}
	}
	return NULL;
}

TEST_F(threads, may_come_and_go_while_others_talk)
{
	struct traffic *t = &self->traffic;
	struct worker builders[THREADS];
	struct h_msg msg = { .ticket = &t->fast };
	struct hamlyn_nq_entry entry;
	unsigned int i;

	for (i = 0; i < THREADS; i++) {
		builders[i] = (struct worker) { .traffic = t };
		ASSERT_EQ(0, pthread_create(&builders[i].thread, NULL,
					    come_and_go, &builders[i]));
	}
	for (i = 0; i < 5000; i++) {
		msg.word = i;
		ASSERT_GE(ht_send(t->pair.terminus, &msg), 0);
		ASSERT_EQ(1, ht_recv(t->pair.nq, &entry));
		ASSERT_EQ(i, entry.data);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(builders[i].thread, NULL);
	EXPECT_EQ(0, t->failed);
}

TEST_HARNESS_MAIN
