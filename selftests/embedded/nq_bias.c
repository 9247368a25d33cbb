// SPDX-License-Identifier: GPL-2.0-only
/*
 * An NQ's first sender has it to itself until another one comes (B24): nothing is lost, taken
 * twice or held up by that, whoever is stopped or dies at which instruction. What may happen
 * between stores and loads is in litmus and model; nearly all of it is too seldom to be met.
 */
#include "embedded/port_user.h"

/* What others do before a taker counts on, and between that and its look. */
static void (*before_store)(void);
static void (*before_look)(void);

static inline void once(void (**what)(void))
{
	void (*now)(void) = *what;

	*what = NULL;
	if (now)
		now();
}

#undef smp_store_release
#define smp_store_release(p, v) do {				\
	once(&before_store);					\
	__atomic_store_n(p, v, __ATOMIC_RELEASE);		\
} while (0)
#undef hml_barrier
#define hml_barrier()	once(&before_look)
#include "embedded/shm_nq.h"
#include "embedded/shm.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define ENTRIES		4096
#define END_NS		(10 * HT_SEC * ht_scale())

FIXTURE(bias) {
	char name[64];
	struct h_dev *dev;
	struct h_slot_attr attr;
	struct h_slot *slot;
	struct h_ticket ticket;
	struct h_terminus *first;
	struct h_terminus *second;
	struct shm_bias *port;
	u32 *cursor;
	u32 number;
};

static struct h_terminus *the_second;
static struct h_ticket its_ticket;
static int64_t it_sent;

static void the_second_sends(void)
{
	it_sent = h_send_word(the_second, &its_ticket, 200);
}

/* The same queue, where another process has it. */
static struct hml_nq *seen_by(const struct h_dev *dev, FIXTURE_DATA(bias) *self)
{
	return &shm_of(dev)->seg->nqs[self->number].nq;
}

static int make_queue(FIXTURE_DATA(bias) *self)
{
	int err = h_nq_create(self->dev, ENTRIES, &self->attr.nq);

	if (!err)
		err = h_slot_create(self->dev, &self->attr, &self->slot);
	if (!err)
		err = h_slot_ticket(self->slot, 0, 0, 0, &self->ticket);
	if (err)
		return err;
	self->ticket.meta_index = HAMLYN_META_FAST;
	self->number = self->attr.nq->id;
	self->port = shm_bias_of(self->attr.nq->priv);
	self->cursor = &((struct hml_nq *)self->attr.nq->priv)->cursor;
	its_ticket = self->ticket;
	return 0;
}

static int end_queue(FIXTURE_DATA(bias) *self)
{
	int err = h_slot_destroy(self->slot);

	return err ? err : h_nq_destroy(self->attr.nq);
}

FIXTURE_SETUP(bias)
{
	const struct h_terminus_attr alone = { .flags = H_TERMINUS_SINGLE };
	const char *name = ht_device();

	before_store = NULL;
	before_look = NULL;
	self->attr.length = 4096;
	ASSERT_EQ(0, h_open(name, &self->dev));
	if (!h_dev_is_embedded(self->dev))
		SKIP(return, "the kernel's processors share each NQ from the beginning");
	h_close(self->dev);
	snprintf(self->name, sizeof(self->name), "shm:bias%d", (int)getpid());
	ASSERT_EQ(0, h_open(self->name, &self->dev));
	if (!shm_of(self->dev)->fenced)
		SKIP(return, "no membarrier(2)");
	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &self->attr.area));
	ASSERT_EQ(0, h_terminus_create(self->dev, &alone, &self->first));
	ASSERT_EQ(0, h_terminus_create(self->dev, &alone, &self->second));
	the_second = self->second;
	ASSERT_EQ(0, make_queue(self));
}

FIXTURE_TEARDOWN(bias)
{
	h_close(self->dev);
}

static int64_t take(FIXTURE_DATA(bias) *self)
{
	struct hamlyn_nq_entry e;
	int n = h_recv(self->attr.nq, &e);

	return n == 1 ? (int64_t)e.data : n;
}

static u32 number_of(const struct h_terminus *t)
{
	return t->id + 1;
}

TEST_F(bias, the_first_sender_has_the_queue_to_itself)
{
	int i;

	EXPECT_EQ(SHM_NQ_FREE, self->port->bias);
	for (i = 1; i <= 3; i++)
		ASSERT_LE(0, h_send_word(self->first, &self->ticket, i));
	EXPECT_EQ(number_of(self->first), self->port->bias);
	EXPECT_EQ(3, self->port->own);
	EXPECT_EQ(0, *self->cursor);
	for (i = 1; i <= 3; i++)
		EXPECT_EQ(i, take(self));
	EXPECT_EQ(0, take(self));
}

TEST_F(bias, the_second_sender_ends_that_for_good)
{
	int i;

	for (i = 1; i <= 3; i++)
		ASSERT_LE(0, h_send_word(self->first, &self->ticket, i));
	ASSERT_LE(0, h_send_word(self->second, &self->ticket, 4));
	EXPECT_EQ(SHM_NQ_SHARED, self->port->bias);
	EXPECT_EQ(SHM_NQ_STARTED | 3, self->port->start);
	ASSERT_LE(0, h_send_word(self->first, &self->ticket, 5));
	ASSERT_LE(0, h_send_word(self->second, &self->ticket, 6));
	EXPECT_EQ(3, *self->cursor);
	for (i = 1; i <= 6; i++)
		EXPECT_EQ(i, take(self));
	EXPECT_EQ(0, take(self));
}

/* Also over the end of the numbers, and of the queue. */
TEST_F(bias, a_queue_that_was_lent_fills_and_empties_like_any_other)
{
	struct h_terminus *sender[] = { self->first, self->second };
	u32 start = 0u - ENTRIES / 2;
	int64_t lost = 0;
	int i, s, got;

	self->port->own = start;
	self->attr.nq->control->consumer = start;
	((struct hml_nq *)self->attr.nq->priv)->consumer = start;
	for (s = 0; s < 2; s++) {
		for (i = 1; i <= ENTRIES + 7; i++)
			ASSERT_LE(0, h_send_word(sender[s], &self->ticket, i));
		for (got = 1; got < ENTRIES; got++)
			ASSERT_EQ(got, take(self));
		EXPECT_EQ(-EOVERFLOW, take(self));
		EXPECT_EQ(0, take(self));
		lost += 8;
		EXPECT_EQ(lost, h_nq_lost(self->attr.nq));
	}
	EXPECT_EQ(SHM_NQ_SHARED, self->port->bias);
}

TEST_F(bias, who_is_not_alone_on_its_terminus_shares_at_once)
{
	struct h_terminus *t;

	ASSERT_EQ(0, h_terminus_create(self->dev, NULL, &t));
	ASSERT_LE(0, h_send_word(t, &self->ticket, 1));
	EXPECT_EQ(SHM_NQ_SHARED, self->port->bias);
	/* Nobody had to be waited for. */
	EXPECT_EQ(0, self->port->start);
	ASSERT_LE(0, h_send_word(self->first, &self->ticket, 2));
	EXPECT_EQ(2, *self->cursor);
	EXPECT_EQ(1, take(self));
	EXPECT_EQ(2, take(self));
	EXPECT_EQ(0, h_terminus_destroy(t));
}

/* Programs of version 0.2 count in the cursor only, and have no barriers of others made. */
TEST_F(bias, in_a_segment_of_0_2_all_share_from_the_beginning)
{
	const struct h_terminus_attr alone = { .flags = H_TERMINUS_SINGLE };
	struct shm_segment *seg = shm_of(self->dev)->seg;
	struct h_dev *mine = self->dev;
	struct h_terminus *t;

	seg->abi = SHM_ABI_SHARED;
	ASSERT_EQ(0, h_open(self->name, &self->dev));
	seg->abi = SHM_ABI;
	ASSERT_EQ(0, h_area_alloc(self->dev, 4096, &self->attr.area));
	ASSERT_EQ(0, make_queue(self));
	ASSERT_EQ(0, h_terminus_create(self->dev, &alone, &t));
	EXPECT_EQ(SHM_NQ_SHARED, self->port->bias);
	EXPECT_EQ(HML_TAKER_NONE, hml_port_taker(&((struct shm_sender *)t->priv)->core.sender));
	ASSERT_LE(0, h_send_word(t, &self->ticket, 1));
	EXPECT_EQ(1, *self->cursor);
	EXPECT_EQ(1, take(self));
	h_close(self->dev);
	self->dev = mine;
}

/* It was stopped behind its store, which the other one has read. */
TEST_F(bias, an_entry_that_was_counted_is_its_takers)
{
	struct hml_nq *core = self->attr.nq->priv;
	struct hamlyn_nq_entry *e = hml_ref_deref(&shm_of(self->dev)->nic.port, core->entries);

	ASSERT_LE(0, h_send_word(self->first, &self->ticket, 1));
	before_look = the_second_sends;
	EXPECT_TRUE(shm_nq_take(self->attr.nq->priv, number_of(self->first), 1));
	EXPECT_LE(0, it_sent);
	EXPECT_EQ(SHM_NQ_SHARED, self->port->bias);
	EXPECT_EQ(1, take(self));
	EXPECT_EQ(0, take(self));
	e[1].data = 100;
	shm_nq_publish(number_of(self->first), &e[1].sequence, 2);
	EXPECT_EQ(100, take(self));
	EXPECT_EQ(200, take(self));
}

/* It was stopped before its store. */
TEST_F(bias, an_entry_that_was_not_counted_is_not_its_takers)
{
	ASSERT_LE(0, h_send_word(self->first, &self->ticket, 1));
	before_store = the_second_sends;
	EXPECT_FALSE(shm_nq_take(self->attr.nq->priv, number_of(self->first), 1));
	EXPECT_LE(0, it_sent);
	EXPECT_EQ(2, self->port->own);
	ASSERT_LE(0, h_send_word(self->first, &self->ticket, 3));
	EXPECT_EQ(1, take(self));
	EXPECT_EQ(200, take(self));
	EXPECT_EQ(3, take(self));
	EXPECT_EQ(0, take(self));
}

static struct shm_bias *the_port;

static void somebody_begins_to_end_it(void)
{
	the_port->bias = SHM_NQ_ENDING;
}

/* Who began to end it died, before or behind the taker's store: the taker goes on. */
TEST_F(bias, an_end_that_was_begun_by_a_dead_one_is_finished)
{
	the_port = self->port;
	ASSERT_LE(0, h_send_word(self->first, &self->ticket, 1));
	before_look = somebody_begins_to_end_it;
	EXPECT_TRUE(shm_nq_take(self->attr.nq->priv, number_of(self->first), 1));
	EXPECT_EQ(SHM_NQ_SHARED, self->port->bias);
	EXPECT_EQ(SHM_NQ_STARTED | 2, self->port->start);
}

TEST_F(bias, an_end_that_was_begun_is_finished_by_whoever_sends)
{
	ASSERT_LE(0, h_send_word(self->first, &self->ticket, 1));
	self->port->bias = SHM_NQ_ENDING;
	ASSERT_LE(0, h_send_word(self->second, &self->ticket, 2));
	EXPECT_EQ(SHM_NQ_SHARED, self->port->bias);
	EXPECT_EQ(1, take(self));
	EXPECT_EQ(2, take(self));
}

/* In place of the taker, who stored, and of who ended it, who read before that: not a hole. */
TEST_F(bias, an_entry_that_may_not_count_is_no_hole)
{
	struct hamlyn_nq_entry e;

	ASSERT_LE(0, h_send_word(self->first, &self->ticket, 1));
	EXPECT_EQ(1, take(self));
	self->port->own = 2;
	self->port->start = SHM_NQ_STARTED | 1;
	self->port->bias = SHM_NQ_ENDING;
	EXPECT_EQ(-ETIMEDOUT, h_recv_block(self->attr.nq, &e, HT_SEC / 20));
	EXPECT_EQ(1, self->attr.nq->control->consumer);
	ASSERT_LE(0, h_send_word(self->second, &self->ticket, 2));
	EXPECT_EQ(2, take(self));
}

/* Has taken an entry, and stops, inside the NIC. */
static void stop_with_an_entry(FIXTURE_DATA(bias) *self)
{
	const struct h_terminus_attr alone = { .flags = H_TERMINUS_SINGLE };
	struct h_terminus *t;
	struct h_dev *dev;

	if (h_open(self->name, &dev) || h_terminus_create(dev, &alone, &t) ||
	    h_send_word(t, &self->ticket, 1) < 0 ||
	    shm_bias_of(seen_by(dev, self))->bias != number_of(t))
		_exit(1);
	((struct shm_sender *)t->priv)->record->hold++;
	shm_bias_of(seen_by(dev, self))->own++;
	raise(SIGSTOP);
	_exit(1);
}

TEST_F(bias, who_is_stopped_or_killed_with_an_entry_holds_up_no_sender)
{
	struct hamlyn_nq_entry e;
	int64_t begin;
	int status;
	pid_t pid;

	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		stop_with_an_entry(self);
	ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status));
	begin = h__now_ns();
	ASSERT_LE(0, h_send_word(self->second, &self->ticket, 2));
	EXPECT_GT(HT_SEC / 5 * ht_scale(), h__now_ns() - begin);
	EXPECT_EQ(1, take(self));
	EXPECT_EQ(-ETIMEDOUT, h_recv_block(self->attr.nq, &e, HT_SEC / 20));
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, ht_reap(pid));
	ASSERT_EQ(0, h_recv_block(self->attr.nq, &e, END_NS));
	EXPECT_EQ(2, e.data);
}

/* ---- with all that may happen by chance ---- */

#define SENDERS		3
#define MESSAGES	400
#define ROUNDS		ht_rounds(900u)

struct stage {
	u32 round;
	u32 ended;
	u32 stop;
	struct h_ticket ticket;
};

static void send_rounds(FIXTURE_DATA(bias) *self, struct stage *stage, u32 id)
{
	const struct h_terminus_attr alone = { .flags = H_TERMINUS_SINGLE };
	u32 round, i, n = id * 7919 + 1;
	struct h_terminus *t;
	struct h_dev *dev;

	if (h_open(self->name, &dev) || h_terminus_create(dev, id < 2 ? &alone : NULL, &t))
		_exit(1);
	for (round = 1; ; round++) {
		while (smp_load_acquire(&stage->round) != round) {
			if (READ_ONCE(stage->stop))
				_exit(0);
			sched_yield();
		}
		/* Not all begin at the same time, nor in the same order */
		n = n * 1664525 + 1013904223;
		for (i = 0; i < n >> 20; i++)
			__asm__ volatile("" : : : "memory");
		for (i = 0; i < MESSAGES; i++)
			if (h_send_word(t, &stage->ticket, (u64)id << 32 | i) < 0)
				_exit(1);
		__atomic_add_fetch(&stage->ended, 1, __ATOMIC_SEQ_CST);
	}
}

/* Each of them once, in their order. */
static const char *take_round(FIXTURE_DATA(bias) *self)
{
	u32 next[SENDERS] = { 0 };
	struct hamlyn_nq_entry e;
	u32 i, id;
	int n;

	for (i = 0; i < SENDERS * MESSAGES; i++) {
		n = h_recv_block(self->attr.nq, &e, END_NS);
		if (n < 0)
			return n == -ETIMEDOUT ? "a message is missing" : "not received";
		id = (u32)(e.data >> 32);
		if (id >= SENDERS || (u32)e.data != next[id]++)
			return "another message, or one again";
	}
	return h_recv(self->attr.nq, &e) ? "one too many" : NULL;
}

TEST_F_TIMEOUT(bias, many_begin_at_the_same_time, 120)
{
	struct stage *stage = mmap(NULL, sizeof(*stage), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid[SENDERS];
	u32 i, round;

	ASSERT_NE(MAP_FAILED, stage);
	for (i = 0; i < SENDERS; i++) {
		pid[i] = ht_fork();
		ASSERT_GE(pid[i], 0);
		if (!pid[i])
			send_rounds(self, stage, i);
	}
	for (round = 1; round <= ROUNDS; round++) {
		stage->ticket = self->ticket;
		smp_store_release(&stage->round, round);
		ASSERT_NO(take_round(self));
		while (READ_ONCE(stage->ended) != round * SENDERS)
			sched_yield();
		ASSERT_EQ(0, end_queue(self));
		ASSERT_EQ(0, make_queue(self));
	}
	WRITE_ONCE(stage->stop, 1);
	for (i = 0; i < SENDERS; i++)
		EXPECT_EQ(0, ht_reap(pid[i]));
	munmap(stage, sizeof(*stage));
}

/* ---- who sleeps, and may not have the stores of others ordered ---- */

#define SILENT	5

/* Once it sleeps, an entry, as if its sender had looked before who sleeps had armed. */
static void publish_silently(FIXTURE_DATA(bias) *self, pid_t sleeper)
{
	const struct hamlyn_nq_control *control;
	struct hamlyn_nq_entry *entries;
	struct h_dev *dev;
	struct hml_nq *nq;
	u32 i;

	if (h_open(self->name, &dev))
		_exit(1);
	nq = seen_by(dev, self);
	entries = hml_ref_deref(&shm_of(dev)->nic.port, nq->entries);
	control = hml_ref_deref(&shm_of(dev)->nic.port, nq->control);
	for (i = 0; i < SILENT; i++) {
		if (!ht_task_is(sleeper, 'S'))
			_exit(1);
		shm_bias_of(nq)->own = i + 1;
		__atomic_store_n(&entries[i].sequence, i + 1, __ATOMIC_RELEASE);
		while (READ_ONCE(control->consumer) == i)
			sched_yield();
	}
	_exit(0);
}

/* At best: the one that publishes may lose its processor for longer than is waited for it. */
TEST_F(bias, who_may_not_order_others_stores_looks_again)
{
	int64_t begin, took, best = END_NS;
	struct hamlyn_nq_entry e;
	pid_t self_pid = getpid(), pid;
	u32 i;

	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		publish_silently(self, self_pid);
	if (ht_forbid_call(SYS_membarrier))
		SKIP(goto end, "no seccomp filters");
	for (i = 0; i < SILENT; i++) {
		begin = h__now_ns();
		ASSERT_EQ(0, h_recv_block(self->attr.nq, &e, END_NS));
		took = h__now_ns() - begin;
		if (took < best)
			best = took;
	}
	/* Else it sleeps for half a second. */
	EXPECT_GT(HT_SEC / 4, best);
	EXPECT_EQ(0, ht_reap(pid));
	return;
end:
	kill(pid, SIGKILL);
	ht_reap(pid);
}

TEST_HARNESS_MAIN
