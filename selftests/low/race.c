// SPDX-License-Identifier: GPL-2.0-only
/*
 * Whatever can be taken away, taken away in full traffic; both devices. Each test
 * has a witness, a process whose messages must come as ever (race.h).
 *
 * What is elsewhere, and not repeated here:
 *
 *  - rekey and destroy against long messages: protection.c
 *    nothing_lands_after_a_rekey_or_the_end_of_a_slot, conformance_beyond.c
 *    beyond_{rekey,destroy}_stops_a_flood; with packets that the adversary keeps
 *    back: conformance_adversary.c beyond_{rekey,destroying}_*
 *  - objects that come and go beside traffic: threads.c
 *  - fork: fork_kill.c a_forking_parent_goes_on_while_children_come_and_go;
 *    exec with open descriptors, without traffic: inherit.c
 *  - death: fork_kill.c one by one, segment.c at every instruction, storm.c many
 *  - of the kernel device -- munmap, dup and close, waiters, areas of messages
 *    under way, NICs, lists of contexts, network namespaces, limits, weights, parameters:
 *    race_kernel.c; a waiter and its NQ, alone: poll_wait.c
 *
 *	race --nothing		ends at once: what a process becomes by exec
 */
#include "kselftest_harness.h"
#include "race.h"

#include <pthread.h>
#include <signal.h>

#define SENDERS		2

/* Shared by ordinary memory, so that only the traffic goes through Hamlyn. */
struct board {
	struct h_ticket ticket;
	uint32_t round;			/* whose ticket it is; 0: none */
	uint32_t sent[SENDERS];		/* under whatever ticket */
	uint32_t stop;
	uint32_t ready;
};

FIXTURE(race) {
	struct witness *witness;
	struct board *board;
	struct h_dev *dev;
	struct h_area *area;
	struct h_area *meta;
	struct h_nq *nq;
	struct h_slot *fence;
	struct h_terminus *terminus;
	struct h_ticket fence_ticket;
	unsigned char *data;
	uint64_t fences;
	uint64_t random;
	pid_t pids[SENDERS];
};

#define BYTES	(4 * HAMLYN_MAX_PACKET)
#define ENTRIES	SENDERS

FIXTURE_SETUP(race)
{
	struct h_slot_attr attr = { 0 };

	self->random = ht_seed();
	self->board = mmap(NULL, sizeof(*self->board), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, self->board);
	self->witness = witness_begin();
	ASSERT_NE(NULL, self->witness);
	ASSERT_EQ(0, ht_open(&self->dev));
	ASSERT_EQ(0, h_area_alloc(self->dev, BYTES, &self->area));
	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &self->meta));
	ASSERT_EQ(0, h_nq_create(self->dev, 1024, &self->nq));
	self->data = h_area_addr(self->area);
	attr.area = self->meta;
	attr.base = 2048;
	attr.nq = self->nq;
	ASSERT_EQ(0, h_slot_create(self->dev, &attr, &self->fence));
	ASSERT_EQ(0, h_slot_ticket(self->fence, 0, 0, HAMLYN_META_FAST,
				   &self->fence_ticket));
	ASSERT_EQ(0, h_terminus_create(self->dev, NULL, &self->terminus));
}

FIXTURE_TEARDOWN(race)
{
	h_close(self->dev);
	EXPECT_EQ(0, witness_end(self->witness));
}

/*
 * Take all that was appended before. Overruns are the floods' own. Returns how
 * many there were with @least or more in data, of other slots; or -1.
 */
static int pass_fence(FIXTURE_DATA(race) *self, uint64_t least)
{
	struct h_msg msg = { .ticket = &self->fence_ticket,
			     .word = ++self->fences };
	struct hamlyn_nq_entry e;
	struct ht_poll poll;
	int ret, n = 0;

	/* A full queue loses the fence, too: drain it, and send it again. */
	ht_poll_begin(&poll);
	for (;;) {
		if (ht_send_sync(self->terminus, &msg) != 1)
			return -1;
		while ((ret = h_recv(self->nq, &e))) {
			if (ret < 0)
				continue;
			if (e.slot != h_slot_number(self->fence))
				n += e.data >= least;
			else if (e.data == self->fences)
				return n;
		}
		if (!ht_poll_more(&poll))
			return -1;
	}
}

/* ---- rekey and destroy against all that is short ------------------------ */

enum kind { SHORT, METADATA, WORD, KINDS };

static int64_t send_one(struct h_terminus *t, struct h_ticket *k, enum kind kind,
			uint32_t who, uint32_t round)
{
	unsigned char bytes[100];
	struct h_msg msg = { .ticket = k, .offset = who * 4096U,
			     .data = bytes, .length = sizeof(bytes) };

	if (kind == WORD) {
		k->meta_index = HAMLYN_META_FAST;
		return h_send_word(t, k, round);
	}
	memset(bytes, 'x', sizeof(bytes));
	if (kind == SHORT)
		return h_send_msg(t, k, bytes, sizeof(bytes), NULL, 0);
	k->meta_index = who;
	msg.meta = &round;
	msg.meta_length = sizeof(round);
	return h_send(t, &msg);
}

/* With the ticket there is, as fast as it can, also when it is void. */
static int flood(struct board *b, uint32_t who, enum kind kind)
{
	struct h_ticket k = { 0 };
	struct h_terminus *t;
	struct h_dev *dev;
	uint32_t round = 0;
	int64_t ret;

	if (ht_open(&dev) || h_terminus_create(dev, NULL, &t))
		return 1;
	while (!h__load_acquire(&b->stop)) {
		uint32_t now = h__load_acquire(&b->round);

		if (now != round) {
			k = b->ticket;
			round = now;
		}
		if (!round) {
			sched_yield();
			continue;
		}
		ret = send_one(t, &k, kind, who, round);
		if (ret < 0 && ret != -EAGAIN)
			return 2;
		if (ret < 0)
			sched_yield();
		else
			__atomic_add_fetch(&b->sent[who], 1, __ATOMIC_RELEASE);
	}
	h_close(dev);
	return 0;
}

static int floods_begin(FIXTURE_DATA(race) *self, enum kind kind)
{
	uint32_t i;

	for (i = 0; i < SENDERS; i++) {
		self->pids[i] = ht_fork();
		if (!self->pids[i])
			_exit(flood(self->board, i, kind));
		if (self->pids[i] < 0)
			return -1;
	}
	return 0;
}

static const char *floods_end(FIXTURE_DATA(race) *self)
{
	const char *complaint = NULL;
	uint32_t i;

	h__store_release(&self->board->stop, 1);
	for (i = 0; i < SENDERS; i++)
		if (ht_reap(self->pids[i]))
			complaint = "a sender failed";
	return complaint;
}

/* All of them have sent @n more. */
static const char *floods_pass(FIXTURE_DATA(race) *self, uint32_t n)
{
	uint32_t before[SENDERS], i;
	struct hamlyn_nq_entry e;
	struct ht_poll poll;

	for (i = 0; i < SENDERS; i++)
		before[i] = h__load_acquire(&self->board->sent[i]);
	ht_poll_begin(&poll);
	for (i = 0; i < SENDERS; i++)
		while (h__load_acquire(&self->board->sent[i]) - before[i] < n) {
			h_recv(self->nq, &e);
			if (!ht_poll_more(&poll))
				return "a sender sends no more";
		}
	return NULL;
}

FIXTURE_VARIANT(race) {
	enum kind kind;
};

FIXTURE_VARIANT_ADD(race, short_messages) {
	.kind = SHORT,
};

FIXTURE_VARIANT_ADD(race, metadata) {
	.kind = METADATA,
};

FIXTURE_VARIANT_ADD(race, words) {
	.kind = WORD,
};

static int flooded_slot(FIXTURE_DATA(race) *self, struct h_slot **slot)
{
	struct h_slot_attr attr = {
		.area = self->area,
		.meta_area = self->meta,
		.meta_count = ENTRIES,
		.nq = self->nq,
	};

	return h_slot_create(self->dev, &attr, slot);
}

static const char *revoke_once(FIXTURE_DATA(race) *self, struct h_slot **slot,
			       uint32_t round)
{
	size_t bytes = ENTRIES * sizeof(struct hamlyn_metadata);
	const char *complaint;
	int came;

	if (h_slot_ticket(*slot, 0, 0, 0, &self->board->ticket))
		return "no ticket";
	h__store_release(&self->board->round, round);
	complaint = floods_pass(self, 1 + ht_random(&self->random) % 200);
	if (complaint)
		return complaint;
	if (round % 2 ? h_slot_rekey(*slot) : h_slot_destroy(*slot))
		return "no end of it";
	/* What was appended before came before; the memory is ours. */
	memset(self->data, HT_GUARD, BYTES);
	memset(h_area_addr(self->meta), HT_GUARD, bytes);
	if (pass_fence(self, 0) < 0)
		return "no fence";
	complaint = floods_pass(self, 200);
	if (complaint)
		return complaint;
	came = pass_fence(self, 0);
	if (ht_match_byte(self->data, BYTES, HT_GUARD) != BYTES)
		return "data landed afterwards";
	if (ht_match_byte(h_area_addr(self->meta), bytes, HT_GUARD) != bytes)
		return "metadata landed afterwards";
	memset(h_area_addr(self->meta), 0, bytes);
	if (came)
		return "notifications came afterwards";
	return round % 2 || !flooded_slot(self, slot) ? NULL : "no slot";
}

TEST_F(race, nothing_lands_when_a_slot_was_revoked)
{
	struct h_slot *slot;
	uint32_t round;

	ASSERT_EQ(0, flooded_slot(self, &slot));
	ASSERT_EQ(0, floods_begin(self, variant->kind));
	for (round = 1; round <= 60; round++) {
		ASSERT_NO(revoke_once(self, &slot, round)) {
			TH_LOG("round %u", round);
		}
	}
	EXPECT_NO(floods_end(self));
}

/* ---- one fixture, other tests: no variants ------------------------------ */

FIXTURE(taken) {
	FIXTURE_DATA(race) r;
};

FIXTURE_SETUP(taken)
{
	race_setup(_metadata, &self->r, NULL);
}

FIXTURE_TEARDOWN(taken)
{
	race_teardown(_metadata, &self->r, NULL);
}

/*
 * A receiver closes its device in full traffic, again and again. Its pages are
 * somebody else's at once, who finds in them what he wrote.
 */
TEST_F(taken, memory_given_back_by_close_is_not_written_to)
{
	FIXTURE_DATA(race) *r = &self->r;
	struct h_slot_attr attr = { 0 };
	struct h_area *again;
	struct h_slot *slot;
	struct h_dev *dev;
	unsigned int i;

	ASSERT_EQ(0, floods_begin(r, SHORT));
	for (i = 1; i <= 40; i++) {
		ASSERT_EQ(0, ht_open(&dev));
		ASSERT_EQ(0, h_area_alloc(dev, BYTES, &attr.area));
		ASSERT_EQ(0, h_nq_create(dev, 64, &attr.nq));
		ASSERT_EQ(0, h_slot_create(dev, &attr, &slot));
		ASSERT_EQ(0, h_slot_ticket(slot, 0, 0, 0, &r->board->ticket));
		h__store_release(&r->board->round, i);
		ASSERT_NO(floods_pass(r, 1 + ht_random(&r->random) % 100));
		h_close(dev);
		ASSERT_EQ(0, h_area_alloc(r->dev, BYTES, &again));
		ASSERT_EQ(BYTES, ht_match_byte(h_area_addr(again), BYTES, 0));
		memset(h_area_addr(again), HT_GUARD, BYTES);
		ASSERT_NO(floods_pass(r, 100));
		ASSERT_EQ(BYTES, ht_match_byte(h_area_addr(again), BYTES,
					       HT_GUARD)) {
			TH_LOG("round %u", i);
		}
		ASSERT_EQ(0, h_area_remove(again));
	}
	EXPECT_NO(floods_end(r));
}

/* Messages not yet sent are dropped: what comes is a beginning, in order. */
TEST_F(taken, a_terminus_destroyed_with_messages_posted)
{
	FIXTURE_DATA(race) *r = &self->r;
	struct h_ticket k = r->fence_ticket;
	struct h_msg fence = { .ticket = &k };
	struct hamlyn_nq_entry e;
	struct h_terminus *t;
	unsigned int i, n, next;

	for (i = 0; i < ht_rounds(400); i++) {
		uint64_t high = (uint64_t)(i + 1) << 32;

		ASSERT_EQ(0, h_terminus_create(r->dev, NULL, &t));
		n = ht_random(&r->random) % 60;
		for (next = 0; next < n; next++)
			ASSERT_GE(h_send_word(t, &k, high | next), 0);
		if (i % 3 == 0)
			sched_yield();
		ASSERT_EQ(0, h_terminus_destroy(t));
		fence.word = high | 1000;
		ASSERT_EQ(1, ht_send_sync(r->terminus, &fence));
		next = 0;
		do {
			ASSERT_EQ(1, ht_recv(r->nq, &e));
			if (e.data != fence.word)
				ASSERT_EQ(high | next++, e.data);
		} while (e.data != fence.word);
		ASSERT_LE(next, n);
		if (h_dev_is_embedded(r->dev))
			ASSERT_EQ(n, next);
	}
}

/* ---- watches against the end of what they watch ------------------------- */

/* A slot that is revoked and comes anew until it is killed, or told to stop. */
static int come_and_go(struct board *b, uint64_t random)
{
	struct h_slot_attr attr = { .length = 64 };
	struct h_slot *slot;
	struct h_dev *dev;
	uint32_t round;

	if (ht_open(&dev) || h_area_alloc(dev, 1, &attr.area))
		return 1;
	for (round = 1; !h__load_acquire(&b->stop); round++) {
		if (round % 2 && h_slot_create(dev, &attr, &slot))
			return 2;
		h__store_release(&b->round, 0);
		if (h_slot_ticket(slot, 0, 0, 0, &b->ticket))
			return 3;
		h__store_release(&b->round, round);
		ht_sleep_ns((int64_t)(ht_random(&random) % 100000));
		if (round % 2 ? h_slot_rekey(slot) : h_slot_destroy(slot))
			return 4;
	}
	return 0;
}

#define WATCHES	16

struct watcher {
	struct h_watch *watches[WATCHES];
	unsigned char told[WATCHES];
	uint64_t first;			/* cookie of watch 0 */
};

/* Cookies of a round that is over may still come, those of this one once. */
static const char *take_words(FIXTURE_DATA(race) *r, struct watcher *w)
{
	struct hamlyn_nq_entry e;
	int ret;

	while ((ret = h_recv(r->nq, &e))) {
		if (ret < 0)
			return "overrun";
		if (!(e.flags & HAMLYN_NQE_PEER_GONE))
			return "something else came";
		if (e.data >= w->first + WATCHES)
			return "a strange cookie";
		if (e.data < w->first)
			continue;
		if (w->told[e.data - w->first]++)
			return "told twice";
	}
	return NULL;
}

static const char *watch_round(FIXTURE_DATA(race) *r, struct watcher *w,
			       bool keep)
{
	const char *complaint = NULL;
	struct h_ticket k;
	unsigned int i;

	memset(w->told, 0, sizeof(w->told));
	for (i = 0; i < WATCHES && !complaint; i++) {
		/* Torn now and then: then it is a wrong key, and told at once. */
		k = r->board->ticket;
		if (h_watch(r->dev, &k, r->nq, w->first + i, &w->watches[i]))
			return "no watch";
		complaint = take_words(r, w);
	}
	for (i = 0; i < WATCHES && !complaint; i++) {
		struct ht_poll poll;

		ht_poll_begin(&poll);
		while (keep && !w->told[i] && !complaint) {
			complaint = take_words(r, w);
			if (!ht_poll_more(&poll))
				complaint = "not told";
		}
		if (h_unwatch(w->watches[i]))
			return "no unwatch";
	}
	return complaint ? complaint : take_words(r, w);
}

static bool may_guess(struct h_dev *dev, struct h_nq *nq)
{
	struct h_ticket k = { .key = 1 };
	struct hamlyn_nq_entry e;
	struct h_watch *w;
	int64_t begun = ht_now_ns();
	unsigned int i;

	for (i = 0; i < 600; i++) {
		if (h_watch(dev, &k, nq, 0, &w))
			return false;
		h_recv(nq, &e);
		h_unwatch(w);
		if (ht_now_ns() - begun > 20 * HT_SEC)
			return false;
	}
	while (h_recv(nq, &e))
		;
	return true;
}

TEST_F(taken, watches_made_while_their_slot_ends)
{
	FIXTURE_DATA(race) *r = &self->r;
	struct watcher w = { .first = 1000 };
	struct ht_poll poll;
	pid_t pid = 0;
	int i;

	if (!may_guess(r->dev, r->nq))
		SKIP(return, "guesses: wrong keys must be free (guesses=0)");
	for (i = 0; i < ht_rounds(60); i++) {
		if (i % 6 == 0) {
			h__store_release(&r->board->round, 0);
			pid = ht_fork();
			ASSERT_GE(pid, 0);
			if (!pid)
				_exit(come_and_go(r->board, (uint64_t)i));
			ht_poll_begin(&poll);
			while (!h__load_acquire(&r->board->round))
				ASSERT_TRUE(ht_poll_more(&poll));
		}
		ASSERT_NO(watch_round(r, &w, i % 3)) {
			TH_LOG("round %d", i);
		}
		w.first += WATCHES;
		if (i % 6 == 5) {
			kill(pid, SIGKILL);
			ASSERT_EQ(128 + SIGKILL, ht_reap(pid));
		}
	}
}

/* ---- tickets that are descriptors --------------------------------------- */

#define IMPORTED_ROUNDS	200

struct importer {
	FIXTURE_DATA(race) *r;
	pthread_t thread;
	int fds[IMPORTED_ROUNDS + 1];	/* of each round, open until the end */
	uint32_t failed;		/* a negative errno */
	uint32_t imported;
	uint32_t refused;
};

/* Import whatever there is, send the number of its round by it, drop it. */
static void *import_all_the_time(void *arg)
{
	struct importer *m = arg;
	struct board *b = m->r->board;
	struct h_terminus *t;
	struct h_ticket k;
	int ret;

	if (h_terminus_create(m->r->dev, NULL, &t)) {
		m->failed = 1;
		return NULL;
	}
	while (!h__load_acquire(&b->stop)) {
		uint32_t round = h__load_acquire(&b->round);

		if (!round)
			continue;
		ret = h_terminus_import(t, m->fds[round], &k);
		if (!ret) {
			k.meta_index = HAMLYN_META_FAST;
			while ((ret = (int)h_send_word(t, &k, round)) == -EAGAIN)
				sched_yield();
			if (ret >= 0)
				ret = h_terminus_drop(t, &k);
			m->imported++;
		} else if (ret == -ENOKEY) {
			m->refused++;
			ret = 0;
		}
		if (ret < 0)
			h__store_release(&m->failed, (uint32_t)ret);
		__atomic_add_fetch(&b->sent[0], 1, __ATOMIC_RELEASE);
		__atomic_add_fetch(&b->sent[1], 1, __ATOMIC_RELEASE);
	}
	h_terminus_destroy(t);
	return NULL;
}

TEST_F(taken, tickets_imported_while_they_are_revoked)
{
	FIXTURE_DATA(race) *r = &self->r;
	struct h_slot_attr attr = { .area = r->area, .nq = r->nq,
				    .flags = HAMLYN_SLOT_TICKET_ONLY };
	struct importer m = { .r = r };
	struct h_slot *slot;
	uint32_t round;

	ASSERT_EQ(0, h_slot_create(r->dev, &attr, &slot));
	ASSERT_EQ(0, pthread_create(&m.thread, NULL, import_all_the_time, &m));
	for (round = 1; round <= ht_rounds(IMPORTED_ROUNDS); round++) {
		ASSERT_EQ(0, h_slot_ticket_fd(slot, 0, 0, &m.fds[round]));
		h__store_release(&r->board->round, round);
		ASSERT_NO(floods_pass(r, 1 + ht_random(&r->random) % 10));
		if (round % 5) {
			ASSERT_EQ(0, h_slot_rekey(slot));
		} else {
			ASSERT_EQ(0, h_slot_destroy(slot));
			ASSERT_EQ(0, h_slot_create(r->dev, &attr, &slot));
		}
		ASSERT_LE(0, pass_fence(r, 0));
		ASSERT_NO(floods_pass(r, 3));
		ASSERT_EQ(0, pass_fence(r, 0)) {
			TH_LOG("a ticket of round %u lets in after its end",
			       round);
		}
	}
	h__store_release(&r->board->stop, 1);
	pthread_join(m.thread, NULL);
	while (--round)
		close(m.fds[round]);
	EXPECT_EQ(0, m.failed);
	EXPECT_LT(0, m.imported);
	EXPECT_LT(0, m.refused);
}

/* ---- exec --------------------------------------------------------------- */

/* In the child: where its threads send to. */
static struct h_ticket words_to;

static void *send_words(void *arg)
{
	struct h_ticket k = words_to;
	struct board *b = arg;
	struct h_terminus *t;
	struct h_dev *dev;
	int64_t ret;

	if (ht_open(&dev) || h_terminus_create(dev, NULL, &t))
		_exit(1);
	for (;;) {
		ret = h_send_word(t, &k, 1);
		if (ret == -EAGAIN)
			sched_yield();
		else if (ret < 0)
			_exit(2);
		else
			__atomic_add_fetch(&b->sent[0], 1, __ATOMIC_RELEASE);
	}
	return NULL;
}

/* Threads send, a slot is watched, and the process becomes another one. */
static int become_nothing(struct board *b, uint64_t random)
{
	char *const args[] = { (char *)"race", (char *)"--nothing", NULL };
	struct h_slot_attr attr = { 0 };
	struct h_slot *slot;
	struct h_ticket watched;
	struct ht_poll poll;
	struct h_dev *dev;
	pthread_t thread;
	int i;

	words_to = b->ticket;
	for (i = 0; i < 2; i++)
		if (pthread_create(&thread, NULL, send_words, b))
			return 3;
	if (ht_open(&dev) || h_area_alloc(dev, 1 << 16, &attr.area) ||
	    h_slot_create(dev, &attr, &slot) ||
	    h_slot_ticket(slot, 0, 0, 0, &watched))
		return 4;
	ht_poll_begin(&poll);
	while (!h__load_acquire(&b->sent[0]))
		if (!ht_poll_more(&poll))
			return 6;
	b->ticket = watched;
	h__store_release(&b->ready, 1);
	ht_poll_begin(&poll);
	while (h__load_acquire(&b->ready) != 2)
		if (!ht_poll_more(&poll))
			return 7;
	ht_sleep_ns((int64_t)(ht_random(&random) % HT_MS));
	execv("/proc/self/exe", args);
	return 5;
}

TEST_F(taken, exec_in_full_traffic_is_the_end_of_all_it_had)
{
	FIXTURE_DATA(race) *r = &self->r;
	int slots = ht_count_slots(r->dev, r->area, 300);
	int areas = ht_count_areas(r->dev, 1 << 16, 40);
	unsigned int i, told;
	struct hamlyn_nq_entry e;
	struct h_watch *watch;
	struct h_slot_attr attr = { .area = r->meta };
	struct h_slot *slot;
	struct ht_poll poll;
	struct h_nq *nq;
	pid_t pid;
	int ret;

	ASSERT_EQ(0, h_nq_create(r->dev, 4, &nq));
	attr.nq = nq;
	ASSERT_EQ(0, h_slot_create(r->dev, &attr, &slot));
	for (i = 0; i < 25; i++) {
		memset(r->board, 0, sizeof(*r->board));
		r->board->ticket = r->fence_ticket;
		pid = ht_fork();
		ASSERT_GE(pid, 0);
		if (!pid)
			_exit(become_nothing(r->board, i));
		ht_poll_begin(&poll);
		while (h__load_acquire(&r->board->ready) != 1)
			ASSERT_TRUE(ht_poll_more(&poll));
		ASSERT_EQ(0, h_watch(r->dev, &r->board->ticket, nq, i, &watch));
		h__store_release(&r->board->ready, 2);
		ASSERT_EQ(1, ht_recv(nq, &e));
		EXPECT_TRUE(e.flags & HAMLYN_NQE_PEER_GONE);
		EXPECT_EQ(i, e.data);
		ASSERT_EQ(0, ht_reap(pid));
		for (told = 0; told < 1000; told++)
			ASSERT_EQ(0, h_recv(nq, &e));
		ASSERT_EQ(0, h_unwatch(watch));
		/* Nothing comes any more: a fence passes all that there was. */
		r->fences += 1000;
		ASSERT_LE(0, pass_fence(r, 0));
		/* A dead one's hole may have kept the first fence until the next was sent. */
		while ((ret = h_recv(r->nq, &e))) {
			ASSERT_EQ(1, ret);
			ASSERT_EQ(r->fences, e.data);
		}
	}
	ASSERT_EQ(0, h_slot_destroy(slot));
	ASSERT_EQ(0, h_nq_destroy(nq));
	EXPECT_EQ(slots, ht_count_slots(r->dev, r->area, 300));
	EXPECT_EQ(areas, ht_count_areas(r->dev, 1 << 16, 40));
}

int main(int argc, char **argv)
{
	if (argc == 2 && !strcmp(argv[1], "--nothing"))
		return 0;
	return test_harness_run(argc, argv);
}
