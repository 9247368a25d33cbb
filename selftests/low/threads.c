// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads that share a terminus or an NQ lose nothing and get nothing twice.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <pthread.h>
#include <sched.h>

#include <hamlyn/channel.h>

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
		      h_recv_block(t->pair.nq, &entry, 10 * HT_MS) ?: 1 :
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

/* Rounds, as many as there is time for. */
static bool goes_on(int round, int most, int64_t end)
{
	return round < most && (round < 10 || ht_now_ns() < end);
}

/* Threads that make and destroy objects while others talk. */
static void *come_and_go(void *arg)
{
	struct worker *w = arg;
	struct h_dev *dev = w->traffic->pair.rx;
	struct h_terminus *terminus;
	struct h_slot_attr attr;
	struct h_slot *slot;
	int64_t end = ht_now_ns() + ht_patience_ns() / 4;
	int i;

	for (i = 0; goes_on(i, 1000, end); i++) {
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
	int64_t end = ht_now_ns() + ht_patience_ns() / 4;
	struct hamlyn_nq_entry entry;
	int i;

	for (i = 0; i < THREADS; i++) {
		builders[i] = (struct worker) { .traffic = t };
		ASSERT_EQ(0, pthread_create(&builders[i].thread, NULL,
					    come_and_go, &builders[i]));
	}
	for (i = 0; goes_on(i, 5000, end); i++) {
		msg.word = i;
		ASSERT_GE(ht_send(t->pair.terminus, &msg), 0);
		ASSERT_EQ(1, ht_recv(t->pair.nq, &entry));
		ASSERT_EQ(i, entry.data);
	}
	for (i = 0; i < THREADS; i++)
		pthread_join(builders[i].thread, NULL);
	EXPECT_EQ(0, t->failed);
}

/* ---- threads that are cancelled ------------------------------------------ */

/* What one that was cancelled has locked stays locked. */
struct calls {
	struct h_dev *dev;
	struct h_dev *others[2];
	struct h_slot_attr attr;
	struct h_slot *slot;
	struct h_terminus *terminus;
	struct h_manager *manager;
	struct h_receiver receiver;
	struct h_listener *listener;
	char path[64];
	int ticket;
	unsigned int made;
};

static void no_arrival(struct h_receiver *r, const struct hamlyn_nq_entry *e)
{
	(void)r;
	(void)e;
}

static bool always(const struct h_receiver *r)
{
	(void)r;
	return true;
}

static void no_call(struct h_receiver *r, void *arg)
{
	(void)r;
	(void)arg;
}

static const struct h_receiver_class always_ready = {
	.name = "always ready",
	.process_arrival = no_arrival,
	.pending = always,
};

static int calls_open(struct calls *c)
{
	static const struct h_receiver_attr at = { .length = 64 };
	int ret;

	memset(c, 0, sizeof(*c));
	ret = ht_open(&c->dev);
	if (!ret)
		ret = ht_open(&c->others[0]);
	if (!ret)
		ret = ht_open(&c->others[1]);
	if (!ret)
		ret = h_area_alloc(c->dev, 4096, &c->attr.area);
	if (!ret)
		ret = h_slot_create(c->dev, &c->attr, &c->slot);
	if (!ret)
		ret = h_slot_ticket_fd(c->slot, 0, 0, &c->ticket);
	if (!ret)
		ret = h_terminus_create(c->dev, NULL, &c->terminus);
	if (!ret)
		ret = h_manager_create(c->dev, NULL, &c->manager);
	if (!ret)
		ret = h_receiver_init(&c->receiver, c->manager, &always_ready,
				      &at);
	snprintf(c->path, sizeof(c->path), "@hamlyn-threads.%d", (int)getpid());
	if (!ret)
		ret = h_listener_create(c->path, NULL, &c->listener);
	return ret;
}

static int call_open(struct calls *c)
{
	struct h_dev *dev;

	(void)c;
	return ht_open(&dev);
}

static int call_close(struct calls *c)
{
	h_close(c->others[c->made]);
	return 0;
}

static int call_alloc(struct calls *c)
{
	struct h_area *area;

	return h_area_alloc_flags(c->dev, 4096, HAMLYN_AREA_HUGE, &area);
}

static int call_slot(struct calls *c)
{
	struct h_slot *slot;

	return h_slot_create(c->dev, &c->attr, &slot);
}

static int call_rekey(struct calls *c)
{
	return h_slot_rekey(c->slot);
}

static int call_ticket(struct calls *c)
{
	int fd;

	return h_slot_ticket_fd(c->slot, 0, 0, &fd);
}

static int call_import(struct calls *c)
{
	struct h_ticket ticket;

	return h_terminus_import(c->terminus, c->ticket, &ticket);
}

static int call_event(struct calls *c)
{
	return h_manager_fd(c->manager) < 0 ? -EIO : 0;
}

/* The descriptor becomes readable, and is no more. */
static int call_ready(struct calls *c)
{
	if (!c->made && h_manager_fd(c->manager) < 0)
		return -EIO;
	h_receiver_on_ready(&c->receiver, no_call, NULL);
	return h_manager_dispatch(c->manager) < 0 ? -EIO : 0;
}

/* Nobody accepts. */
static int call_connect(struct calls *c)
{
	struct h_channel *ch;
	int ret;

	ret = h_channel_connect(c->manager, c->path, NULL, &ch, 10 * HT_MS);
	return ret == -ETIMEDOUT ? 0 : ret ? ret : -EIO;
}

static int call_connect_streams(struct calls *c)
{
	struct h_stream_pair pair;
	int ret;

	ret = h_connect(c->manager, c->path, NULL, &pair, 10 * HT_MS);
	return ret == -ETIMEDOUT ? 0 : ret ? ret : -EIO;
}

/* Nobody connects, but for those who did so in vain. */
static int call_accept(struct calls *c)
{
	struct h_channel *ch;
	int ret;

	if (!c->made && call_connect(c))
		return -EIO;
	ret = h_channel_accept(c->listener, c->manager, NULL, &ch, 10 * HT_MS);
	if (!ret)
		h_channel_close(ch, H_NOWAIT);
	return ret == -ETIMEDOUT ? 0 : ret;
}

static int call_accept_streams(struct calls *c)
{
	struct h_stream_pair pair;
	int ret;

	ret = h_listener_accept(c->listener, c->manager, NULL, &pair, 10 * HT_MS);
	return ret == -ETIMEDOUT ? 0 : ret ? ret : -EIO;
}

static int call_listen(struct calls *c)
{
	struct h_listener *second;
	int ret;

	if (!c->made) {
		h_listener_destroy(c->listener);
		c->listener = NULL;
	}
	ret = h_listener_create(c->path, NULL, &second);
	h_listener_destroy(second);
	return ret;
}

static const struct call {
	const char *name;
	int (*make)(struct calls *c);
} all_calls[] = {
	{ "h_open()", call_open },
	{ "h_close()", call_close },
	{ "h_area_alloc_flags()", call_alloc },
	{ "h_slot_create()", call_slot },
	{ "h_slot_rekey()", call_rekey },
	{ "h_slot_ticket_fd()", call_ticket },
	{ "h_terminus_import()", call_import },
	{ "h_manager_fd()", call_event },
	{ "h_receiver_on_ready()", call_ready },
	{ "h_channel_connect()", call_connect },
	{ "h_connect()", call_connect_streams },
	{ "h_channel_accept()", call_accept },
	{ "h_listener_accept()", call_accept_streams },
	{ "h_listener_create()", call_listen },
};

struct cancelled {
	struct calls *calls;
	const struct call *call;
	int ret;
};

static void *call_cancelled(void *arg)
{
	struct cancelled *c = arg;

	pthread_cancel(pthread_self());
	c->ret = c->call->make(c->calls);
	pthread_testcancel();
	return NULL;
}

/* A child, for what hangs is ended with it. The exit status tells the step. */
static int call_twice(const struct call *call)
{
	struct cancelled c = { .call = call, .ret = -ECANCELED };
	struct calls calls;
	pthread_t thread;
	void *end;

	c.calls = &calls;
	if (calls_open(&calls))
		return 1;
	if (pthread_create(&thread, NULL, call_cancelled, &c) ||
	    pthread_join(thread, &end) || end != PTHREAD_CANCELED)
		return 2;
	/* It ends after the call, not in it. */
	if (c.ret)
		return 3;
	calls.made = 1;
	return call->make(&calls) ? 4 : 0;
}

TEST(a_cancelled_thread_leaves_nothing_locked)
{
	unsigned int i;
	pid_t pid;

	for (i = 0; i < ARRAY_SIZE(all_calls); i++) {
		pid = ht_fork();
		ASSERT_GE(pid, 0);
		if (!pid)
			_exit(call_twice(&all_calls[i]));
		EXPECT_EQ(0, ht_reap(pid)) {
			TH_LOG("%s", all_calls[i].name);
		}
	}
}

TEST_HARNESS_MAIN
