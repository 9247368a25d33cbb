// SPDX-License-Identifier: GPL-2.0-only
/*
 * Managers: who polls, who sleeps, and to whom arrivals go, with many threads;
 * call backs and descriptors; memory; and what happens when an NQ overruns.
 */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <hamlyn/stream.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define SECOND		1000000000LL
#define WINDOW		32	/* words on their way to a box */
#define BOXES		6
#define NQ_ENTRIES	4096

/* ---- a receiver of one's own: words that tell whose they are, and which ---- */

struct box {
	struct h_receiver r;
	struct h_ticket ticket;
	uint32_t id;
	/* locked */
	uint32_t waiting;	/* arrived, not taken yet */
	uint32_t taken;		/* atomic: also read by who sends */
	uint32_t next;		/* what the next word has to say */
	uint32_t wrong;
	uint32_t overruns;
	bool stalls;		/* atomic: whoever polls gets no further */
	/* of call backs */
	uint32_t called;
	uint32_t inside;
	uint32_t together;
	uint32_t leave;		/* take all but so many */
	bool slow;
	bool destroy;
	bool live;
};

static struct box *box_of(struct h_receiver *r)
{
	return (struct box *)r;
}

static void box_arrival(struct h_receiver *r, const struct hamlyn_nq_entry *e)
{
	struct box *b = box_of(r);

	while (__atomic_load_n(&b->stalls, __ATOMIC_SEQ_CST))
		ht_sleep_ns(HT_MS / 10);
	b->wrong += e->data >> 32 != b->id || (uint32_t)e->data != b->next;
	b->next = (uint32_t)e->data + 1;
	b->waiting++;
}

static void box_overrun(struct h_receiver *r)
{
	box_of(r)->overruns++;
}

static bool box_pending(const struct h_receiver *r)
{
	return ((const struct box *)r)->waiting;
}

static const struct h_receiver_class box_class = {
	.name = "box",
	.process_arrival = box_arrival,
	.process_overrun = box_overrun,
	.pending = box_pending,
};

static int box_init(struct box *b, struct h_manager *m, uint32_t id)
{
	static const struct h_receiver_attr attr = { .arrivals = WINDOW };
	int err;

	memset(b, 0, sizeof(*b));
	b->id = id;
	err = h_receiver_init(&b->r, m, &box_class, &attr);
	b->live = !err;
	return err ? err : h_slot_ticket(b->r.slot, 0, 0, HAMLYN_META_FAST,
					 &b->ticket);
}

/* What has arrived, all but @leave. */
static uint32_t box_take(struct box *b, uint32_t leave)
{
	uint32_t n;

	h_receiver_lock(&b->r);
	n = b->waiting > leave ? b->waiting - leave : 0;
	b->waiting -= n;
	h_receiver_unlock(&b->r);
	__atomic_add_fetch(&b->taken, n, __ATOMIC_SEQ_CST);
	return n;
}

static uint32_t box_waiting(struct box *b)
{
	uint32_t n;

	h_receiver_lock(&b->r);
	n = b->waiting;
	h_receiver_unlock(&b->r);
	return n;
}

static int send_word(struct h_manager *from, const struct box *b, uint32_t n)
{
	int64_t ret;

	do
		ret = h_send_word(h_manager_terminus(from), &b->ticket,
				  (uint64_t)b->id << 32 | n);
	while (ret == -EAGAIN);
	return ret < 0 ? (int)ret : 0;
}

/* Poll until there is something in the box. */
static bool box_fills(struct box *b)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	do {
		h_manager_poll(b->r.manager);
		if (box_waiting(b))
			return true;
	} while (ht_poll_more(&poll));
	return false;
}

/* ---- a manager to receive, one to send ---- */

FIXTURE(manager) {
	struct h_dev *rx;
	struct h_dev *tx;
	struct h_manager *to;
	struct h_manager *from;
	struct box box[BOXES];
	uint32_t words;		/* for tests of many */
};

FIXTURE_VARIANT(manager) {
	int64_t spin_ns;
};

/* Sleeps as soon as it may. */
FIXTURE_VARIANT_ADD(manager, sleepy) {
	.spin_ns = 1,
};

FIXTURE_VARIANT_ADD(manager, patient) {
	.spin_ns = 0,
};

FIXTURE_SETUP(manager)
{
	struct h_manager_attr attr = { .nq_entries = NQ_ENTRIES,
				       .spin_ns = variant->spin_ns };
	uint32_t i;

	ASSERT_EQ(0, h_open(ht_device(), &self->rx));
	ASSERT_EQ(0, ht_open_tx(&self->tx));
	ASSERT_EQ(0, h_manager_create(self->rx, &attr, &self->to));
	ASSERT_EQ(0, h_manager_create(self->tx, &attr, &self->from));
	for (i = 0; i < BOXES; i++) {
		ASSERT_EQ(0, box_init(&self->box[i], self->to, i + 1));
	}
	self->words = h_dev_is_embedded(self->rx) ? 3000 : 300;
}

FIXTURE_TEARDOWN(manager)
{
	uint32_t i;

	for (i = 0; i < BOXES; i++)
		if (self->box[i].live)
			EXPECT_EQ(0, h_receiver_exit(&self->box[i].r));
	EXPECT_EQ(0, h_manager_destroy(self->to));
	EXPECT_EQ(0, h_manager_destroy(self->from));
	h_close(self->tx);
	h_close(self->rx);
}

/* ---- waiting ---- */

struct waiter {
	struct box *box;
	uint32_t words;
	int64_t timeout_ns;
	int result;
	uint32_t done;		/* atomic */
};

static void *wait_for_all(void *arg)
{
	struct waiter *w = arg;
	struct box *b = w->box;

	while (b->taken != w->words) {
		uint32_t seen = h_receiver_events(&b->r);
		int err = 0;

		if (!box_take(b, 0))
			err = h_receiver_wait(&b->r, seen,
					      h_deadline(w->timeout_ns));
		if (err && err != -EINTR) {
			w->result = err;
			break;
		}
	}
	__atomic_store_n(&w->done, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* No more on its way than was set aside. */
static int send_all(struct h_manager *from, struct box *boxes, uint32_t n,
		    uint32_t words)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	uint32_t i, j;

	for (j = 0; j < words; j++)
		for (i = 0; i < n; i++) {
			while (j - __atomic_load_n(&boxes[i].taken,
						   __ATOMIC_SEQ_CST) >= WINDOW)
				if (ht_now_ns() > end)
					return -ETIMEDOUT;
			if (send_word(from, &boxes[i], j))
				return -EIO;
			/* Now and then all go to sleep. */
			if ((i + j) % 61 == 0)
				ht_sleep_ns(200000);
		}
	return 0;
}

struct poller {
	struct h_manager *manager;
	uint32_t stop;
};

static void *keep_polling(void *arg)
{
	struct poller *p = arg;

	while (!__atomic_load_n(&p->stop, __ATOMIC_SEQ_CST))
		if (!h_manager_poll(p->manager))
			ht_sleep_ns(50000);
	return NULL;
}

/* H 3.3: Whoever polls hands each arrival to the end point that it is for. */
TEST_F(manager, each_thread_gets_its_own_and_nobody_elses)
{
	struct poller poller = { .manager = self->to };
	struct waiter waiter[BOXES] = { };
	pthread_t thread[BOXES + 1];
	uint32_t i;

	ASSERT_EQ(0, pthread_create(&thread[BOXES], NULL, keep_polling,
				    &poller));
	for (i = 0; i < BOXES; i++) {
		waiter[i] = (struct waiter) { .box = &self->box[i],
			.words = self->words, .timeout_ns = ht_patience_ns() };
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, wait_for_all,
					    &waiter[i]));
	}
	EXPECT_EQ(0, send_all(self->from, self->box, BOXES, self->words));
	for (i = 0; i < BOXES; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(0, waiter[i].result);
		EXPECT_EQ(self->words, self->box[i].taken);
		EXPECT_EQ(0, self->box[i].wrong);
		EXPECT_EQ(0, self->box[i].overruns);
	}
	__atomic_store_n(&poller.stop, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread[BOXES], NULL);
}

TEST_F(manager, a_time_out_is_kept_by_who_leads_and_by_who_does_not)
{
	struct waiter waiter = { .box = &self->box[1], .words = 1,
				 .timeout_ns = H_FOREVER };
	struct h_receiver *r = &self->box[0].r;
	pthread_t thread;
	int64_t begin;
	int i;

	for (i = 0; i < 2; i++) {
		EXPECT_EQ(-EAGAIN, h_receiver_wait(r, h_receiver_events(r),
						   h_deadline(0)));
		begin = ht_now_ns();
		EXPECT_EQ(-ETIMEDOUT, h_receiver_wait(r, h_receiver_events(r),
						      h_deadline(20 * HT_MS)));
		EXPECT_GE(ht_now_ns(), begin + 20 * HT_MS);
		EXPECT_LT(ht_now_ns(), begin + ht_patience_ns());
		if (i)
			break;
		/* And now with somebody else on the NQ. */
		ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_all,
					    &waiter));
		ht_sleep_ns(20 * HT_MS);
	}
	EXPECT_EQ(0, send_word(self->from, &self->box[1], 0));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, waiter.result);
	EXPECT_EQ(1, self->box[1].taken);
	/* Something that has come already is no reason to wait. */
	EXPECT_EQ(0, h_receiver_wait(&self->box[1].r, 0, H_FOREVER));
}

/* How often the caller slept for as long as a receiver to which nothing comes was waited for. */
static long sleeps_while_waiting(struct h_receiver *r)
{
	struct rusage before, after;

	getrusage(RUSAGE_THREAD, &before);
	if (h_receiver_wait(r, h_receiver_events(r), h_deadline(5 * HT_MS)) != -ETIMEDOUT)
		return -1;
	getrusage(RUSAGE_THREAD, &after);
	return after.ru_nvcsw - before.ru_nvcsw;
}

TEST_F(manager, who_polls_for_longer_than_any_clock_goes_never_sleeps)
{
	struct h_manager_attr attr = { .nq_entries = 64, .spin_ns = INT64_MAX };
	struct h_manager *m;
	struct box b;
	long slept = 1;
	int i;

	ASSERT_EQ(0, h_manager_create(self->rx, &attr, &m));
	ASSERT_EQ(0, box_init(&b, m, 1));
	/* The kernel may make it sleep for other reasons: not each time */
	for (i = 0; i < 20 && slept; i++)
		slept = sleeps_while_waiting(&b.r);
	EXPECT_EQ(0, slept);
	EXPECT_EQ(0, h_receiver_exit(&b.r));
	EXPECT_EQ(0, h_manager_destroy(m));
	if (variant->spin_ns != 1)
		return;
	/* Nor may it get as far: what it waits for may be over first */
	for (i = 0, slept = 0; i < 20 && slept < 1; i++)
		slept = sleeps_while_waiting(&self->box[0].r);
	EXPECT_GE(slept, 1);
}

TEST_F(manager, a_sleeper_wakes_when_another_thread_took_its_arrival)
{
	uint32_t rounds = self->words / 6, i, j;
	int64_t end = ht_now_ns() + ht_patience_ns();

	for (j = 0; j < rounds; j++) {
		struct waiter waiter[2] = { };
		pthread_t thread[2];

		for (i = 0; i < 2; i++) {
			waiter[i] = (struct waiter) { .box = &self->box[i],
				.words = j + 1, .timeout_ns = H_FOREVER };
			ASSERT_EQ(0, pthread_create(&thread[i], NULL,
						    wait_for_all, &waiter[i]));
		}
		if (j % 3)
			ht_sleep_ns(j % 3 * 30000);
		for (i = 0; i < 2; i++) {
			ASSERT_EQ(0, send_word(self->from, &self->box[i], j));
			h_manager_poll(self->to);
		}
		/* This one takes what it can before they do. */
		for (i = 0; i < 2; i++)
			while (!__atomic_load_n(&waiter[i].done,
						__ATOMIC_SEQ_CST)) {
				h_manager_poll(self->to);
				ASSERT_LT(ht_now_ns(), end);
			}
		for (i = 0; i < 2; i++)
			pthread_join(thread[i], NULL);
	}
}

static void nothing(int sig)
{
	(void)sig;
}

TEST_F(manager, a_signal_is_told_of)
{
	struct sigaction sa = { .sa_handler = nothing };
	struct waiter waiter = { .box = &self->box[0], .words = 1,
				 .timeout_ns = ht_patience_ns() };
	pthread_t thread;
	int i;

	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_all, &waiter));
	for (i = 0; i < 20; i++) {
		ht_sleep_ns(HT_MS);
		pthread_kill(thread, SIGUSR1);
	}
	EXPECT_EQ(0, send_word(self->from, &self->box[0], 0));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, waiter.result);
}

/* ---- ends ---- */

TEST_F(manager, what_a_receiver_left_behind_reaches_nobody_else)
{
	/* Numbers of slots come again after all others. */
	uint32_t rounds = h_dev_is_embedded(self->rx) ? 4500 : 300, i;
	struct waiter waiter = { .box = &self->box[1], .words = rounds,
				 .timeout_ns = ht_patience_ns() };
	struct box *b = &self->box[0];
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_for_all, &waiter));
	for (i = 0; i < rounds; i++) {
		uint32_t j;

		for (j = 0; j < i % 5; j++) {
			ASSERT_EQ(0, send_word(self->from, b, j));
		}
		while (i - __atomic_load_n(&self->box[1].taken,
					   __ATOMIC_SEQ_CST) >= WINDOW)
			sched_yield();
		ASSERT_EQ(0, send_word(self->from, &self->box[1], i));
		ASSERT_EQ(0, h_receiver_exit(&b->r));
		ASSERT_EQ(0, b->wrong);
		ASSERT_EQ(0, box_init(b, self->to, i + 1000));
	}
	pthread_join(thread, NULL);
	EXPECT_EQ(0, waiter.result);
	EXPECT_EQ(0, self->box[1].wrong);
	EXPECT_EQ(0, b->wrong);
	EXPECT_EQ(0, box_waiting(b));
}

TEST_F(manager, a_manager_with_end_points_stays)
{
	char why[HAMLYN_EXPLAIN_BYTES];

	EXPECT_EQ(-EBUSY, h_manager_destroy(self->to));
	EXPECT_EQ(0, h_explain(self->rx, why, sizeof(why)));
	EXPECT_NE(NULL, strstr(why, "end points"));
	EXPECT_EQ(0, h_manager_destroy(NULL));
}

/* ---- call backs and descriptors ---- */

static int readable(int fd, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, ms);
}

static int patience_ms(void)
{
	return (int)(ht_patience_ns() / HT_MS);
}

static void box_ready(struct h_receiver *r, void *arg)
{
	struct box *b = box_of(r);

	(void)arg;
	b->together += __atomic_add_fetch(&b->inside, 1, __ATOMIC_SEQ_CST) > 1;
	b->called++;
	box_take(b, b->leave);
	if (b->slow)
		ht_sleep_ns(20000);
	if (b->destroy)
		b->live = h_receiver_exit(r);
	__atomic_sub_fetch(&b->inside, 1, __ATOMIC_SEQ_CST);
}

/* A message to another receiver makes it readable, too; dispatching ends that. */
static bool becomes_unreadable(struct h_manager *m, int fd)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	do {
		if (!readable(fd, 0))
			return true;
		if (h_manager_dispatch(m))
			return false;
	} while (ht_poll_more(&poll));
	return false;
}

static bool has_event_files(void)
{
	char path[32], is[64];
	ssize_t n;
	int fd;

	for (fd = 0; fd < 256; fd++) {
		snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		n = readlink(path, is, sizeof(is) - 1);
		if (n <= 0)
			continue;
		is[n] = 0;
		if (strstr(is, "[event"))
			return true;
	}
	return false;
}

TEST_F(manager, a_child_does_not_have_the_descriptor)
{
	int fd = h_manager_fd(self->to);
	pid_t pid;

	ASSERT_GE(fd, 0);
	ASSERT_TRUE(has_event_files());
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(has_event_files());
	EXPECT_EQ(0, ht_reap(pid));
	EXPECT_EQ(0, readable(fd, 0));
}

TEST_F(manager, the_descriptor_is_readable_while_there_is_something_to_do)
{
	struct box *b = &self->box[0], *other = &self->box[1];
	int fd = h_manager_fd(self->to), i;

	ASSERT_GE(fd, 0);
	EXPECT_EQ(fd, h_manager_fd(self->to));
	h_receiver_on_ready(&b->r, box_ready, NULL);
	h_receiver_on_ready(&other->r, box_ready, NULL);
	EXPECT_EQ(0, readable(fd, 0));
	for (i = 0; i < 20; i++) {
		b->called = 0;
		ASSERT_EQ(0, send_word(self->from, b, 2 * i));
		ASSERT_EQ(1, readable(fd, patience_ms()));
		ASSERT_EQ(1, readable(fd, 0));
		ASSERT_EQ(1, h_manager_dispatch(self->to));
		ASSERT_EQ(1, b->called);
		ASSERT_TRUE(becomes_unreadable(self->to, fd));
		EXPECT_EQ(0, readable(fd, 1));

		/* One that leaves something is called again. */
		b->leave = 1;
		ASSERT_EQ(0, send_word(self->from, b, 2 * i + 1));
		ASSERT_EQ(1, readable(fd, patience_ms()));
		ASSERT_EQ(1, h_manager_dispatch(self->to));
		ASSERT_EQ(1, readable(fd, 0));
		ASSERT_EQ(1, h_manager_dispatch(self->to));
		ASSERT_EQ(3, b->called);
		b->leave = 0;
		ASSERT_EQ(1, readable(fd, 0));
		ASSERT_EQ(1, h_manager_dispatch(self->to));
		ASSERT_TRUE(becomes_unreadable(self->to, fd));

		/* Taken by a poll, not by a dispatch. */
		ASSERT_EQ(0, send_word(self->from, other, i));
		ASSERT_TRUE(box_fills(other));
		ASSERT_EQ(1, readable(fd, patience_ms()));
		/* And received without a call back. */
		ASSERT_EQ(1, box_take(other, 0));
		ASSERT_TRUE(becomes_unreadable(self->to, fd));
	}
	EXPECT_EQ(0, b->wrong);
	EXPECT_EQ(0, other->called);
}

/* In a call back, after a loop that dispatches has found nothing more to do. */
struct nested {
	struct h_manager *from;
	struct box *quiet;	/* is waited for by a call */
	struct box *told;	/* is to be told of by the descriptor */
	int fd;
	bool idle;
	int readable;
};

static void loop_inside(struct h_receiver *r, void *arg)
{
	struct h_manager *m = r->manager;
	struct nested *n = arg;

	box_take(box_of(r), 0);
	n->idle = becomes_unreadable(m, n->fd);
	send_word(n->from, n->told, 0);
	send_word(n->from, n->quiet, 0);
	box_fills(n->quiet);
	n->readable = readable(n->fd, 100);
}

TEST_F(manager, the_descriptor_is_readable_for_others_during_a_call_back)
{
	struct nested n = {
		.from = self->from,
		.quiet = &self->box[1],
		.told = &self->box[2],
		.fd = h_manager_fd(self->to),
	};
	struct box *b = &self->box[0];

	h_receiver_on_ready(&n.told->r, box_ready, NULL);
	h_receiver_on_ready(&b->r, loop_inside, &n);
	ASSERT_EQ(0, send_word(self->from, b, 0));
	ASSERT_EQ(1, readable(n.fd, patience_ms()));
	while (!h_manager_dispatch(self->to))
		;
	EXPECT_TRUE(n.idle);
	EXPECT_EQ(1, n.readable);
	ASSERT_EQ(1, readable(n.fd, patience_ms()));
	while (!n.told->called)
		h_manager_dispatch(self->to);
	EXPECT_EQ(1, box_take(n.quiet, 0));
	ASSERT_TRUE(becomes_unreadable(self->to, n.fd));
}

TEST_F(manager, the_descriptor_can_be_in_an_epoll)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct box *b = &self->box[0];
	int fd = h_manager_fd(self->to), epoll;

	ASSERT_GE(fd, 0);
	epoll = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_GE(epoll, 0);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event));
	h_receiver_on_ready(&b->r, box_ready, NULL);
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
	ASSERT_EQ(0, send_word(self->from, b, 0));
	ASSERT_EQ(1, epoll_wait(epoll, &event, 1, patience_ms()));
	ASSERT_EQ(1, epoll_wait(epoll, &event, 1, 0));
	while (!h_manager_dispatch(self->to))
		;
	ASSERT_TRUE(becomes_unreadable(self->to, fd));
	EXPECT_EQ(0, epoll_wait(epoll, &event, 1, 0));
	close(epoll);
}

TEST_F(manager, who_is_ready_already_is_called_too)
{
	struct box *b = &self->box[0];
	int fd = h_manager_fd(self->to);

	ASSERT_EQ(0, send_word(self->from, b, 0));
	ASSERT_TRUE(box_fills(b));
	ASSERT_TRUE(becomes_unreadable(self->to, fd));
	h_receiver_on_ready(&b->r, box_ready, NULL);
	EXPECT_EQ(1, readable(fd, 0));
	EXPECT_EQ(1, h_manager_dispatch(self->to));
	h_receiver_on_ready(&b->r, NULL, NULL);
	ASSERT_EQ(0, send_word(self->from, b, 1));
	ASSERT_TRUE(box_fills(b));
	EXPECT_EQ(0, h_manager_dispatch(self->to));
	EXPECT_EQ(1, b->called);
}

TEST_F(manager, a_call_back_may_destroy_its_own)
{
	int fd = h_manager_fd(self->to);
	uint32_t i, called = 0;
	struct ht_poll poll;

	for (i = 0; i < BOXES; i++) {
		self->box[i].destroy = true;
		h_receiver_on_ready(&self->box[i].r, box_ready, NULL);
		ASSERT_EQ(0, send_word(self->from, &self->box[i], 0));
	}
	ht_poll_begin(&poll);
	while (called < BOXES && ht_poll_more(&poll))
		called += (uint32_t)h_manager_dispatch(self->to);
	EXPECT_EQ(BOXES, called);
	EXPECT_TRUE(becomes_unreadable(self->to, fd));
	EXPECT_EQ(0, h_manager_dispatch(self->to));
	for (i = 0; i < BOXES; i++)
		EXPECT_EQ(1, self->box[i].called);
}

/* ---- call backs that do not return ---- */

static jmp_buf way_out;

static void jump_out(struct h_receiver *r, void *arg)
{
	box_of(r)->called++;
	(void)arg;
	longjmp(way_out, 1);
}

static void end_thread(struct h_receiver *r, void *arg)
{
	box_of(r)->called++;
	*(pid_t *)arg = gettid();
	syscall(SYS_exit, 0);
}

/* True if the call back was left. */
static bool dispatch_and_leave(struct h_manager *m)
{
	if (setjmp(way_out))
		return true;
	h_manager_dispatch(m);
	return false;
}

/* What was there is overwritten. */
static __attribute__((noinline)) void use_stack(void)
{
	volatile unsigned char junk[8192];
	unsigned int i;

	for (i = 0; i < sizeof(junk); i++)
		junk[i] = 0x41;
}

TEST_F(manager, who_left_a_call_back_by_longjmp_is_called_again)
{
	struct box *b = &self->box[0];
	int i;

	ASSERT_EQ(0, send_word(self->from, b, 0));
	ASSERT_TRUE(box_fills(b));
	h_receiver_on_ready(&b->r, jump_out, NULL);
	for (i = 1; i <= 3; i++) {
		ASSERT_TRUE(dispatch_and_leave(self->to));
		use_stack();
		EXPECT_EQ(i, b->called);
		EXPECT_EQ(0, h_manager_wait(self->to, ht_patience_ns()));
	}
	h_receiver_on_ready(&b->r, box_ready, NULL);
	EXPECT_EQ(1, h_manager_dispatch(self->to));
	EXPECT_EQ(4, b->called);
	EXPECT_EQ(1, b->taken);
	ASSERT_EQ(0, send_word(self->from, b, 1));
	ASSERT_TRUE(box_fills(b));
	h_receiver_on_ready(&b->r, jump_out, NULL);
	ASSERT_TRUE(dispatch_and_leave(self->to));
	use_stack();
	/* Nor is anything written to what was on the stack. */
	ASSERT_EQ(0, h_receiver_exit(&b->r));
	b->live = false;
	EXPECT_EQ(0, h_manager_dispatch(self->to));
}

static void *dispatch_once(void *arg)
{
	h_manager_dispatch(arg);
	return NULL;
}

TEST_F(manager, what_a_thread_was_called_for_that_ended_is_called_again)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	struct box *b = &self->box[0];
	pthread_t thread;
	pid_t tid = 0;

#ifdef __SANITIZE_THREAD__
	SKIP(return, "the sanitizer waits for a thread that ends without its knowing");
#endif
	ASSERT_EQ(0, send_word(self->from, b, 0));
	ASSERT_TRUE(box_fills(b));
	h_receiver_on_ready(&b->r, end_thread, &tid);
	ASSERT_EQ(0, pthread_create(&thread, NULL, dispatch_once, self->to));
	ASSERT_EQ(0, pthread_join(thread, NULL));
	/* That can be over before the kernel has forgotten the thread. */
	while (!syscall(SYS_tgkill, getpid(), tid, 0) && ht_now_ns() < end)
		sched_yield();
	EXPECT_EQ(1, b->called);
	h_receiver_on_ready(&b->r, box_ready, NULL);
	EXPECT_EQ(1, h_manager_dispatch(self->to));
	EXPECT_EQ(2, b->called);
	EXPECT_EQ(1, b->taken);
}

/* Also one that calls another one back: it is inside of both. */
static void dispatch_inside(struct h_receiver *r, void *arg)
{
	struct box *b = box_of(r), *inner = arg;

	b->called++;
	box_take(b, 0);
	b->inside = (uint32_t)h_manager_dispatch(r->manager);
	b->together = inner->called;
}

TEST_F(manager, a_dispatch_in_a_call_back_does_not_call_it_again)
{
	struct box *b = &self->box[0], *inner = &self->box[1];

	h_receiver_on_ready(&b->r, dispatch_inside, inner);
	ASSERT_EQ(0, send_word(self->from, b, 0));
	ASSERT_TRUE(box_fills(b));
	ASSERT_EQ(0, send_word(self->from, b, 1));
	ASSERT_EQ(0, send_word(self->from, inner, 0));
	h_receiver_on_ready(&inner->r, box_ready, NULL);
	ASSERT_TRUE(box_fills(inner));
	EXPECT_LE(1, h_manager_dispatch(self->to));
	EXPECT_EQ(1, b->inside);
	EXPECT_EQ(1, b->together);
	b->inside = 0;
}

static void destroy_all(struct h_receiver *r, void *arg)
{
	struct h_manager *m = r->manager;
	int *result = arg;

	if (!h_receiver_exit(r))
		*result = h_manager_destroy(m);
}

TEST_F(manager, a_manager_that_calls_back_stays)
{
	char why[HAMLYN_EXPLAIN_BYTES];
	struct h_manager *m;
	int result = 1;
	struct box b;

	ASSERT_EQ(0, h_manager_create(self->rx, NULL, &m));
	ASSERT_EQ(0, box_init(&b, m, 100));
	h_receiver_on_ready(&b.r, destroy_all, &result);
	ASSERT_EQ(0, send_word(self->from, &b, 0));
	ASSERT_EQ(0, h_manager_wait(m, ht_patience_ns()));
	EXPECT_EQ(1, h_manager_dispatch(m));
	EXPECT_EQ(-EBUSY, result);
	EXPECT_EQ(0, h_explain(self->rx, why, sizeof(why)));
	EXPECT_NE(NULL, strstr(why, "calling back"));
	EXPECT_EQ(0, h_manager_destroy(m));
}

struct dispatcher {
	struct h_manager *manager;
	struct box *box;
	uint32_t words;
	int result;
};

static void *dispatch_all(void *arg)
{
	struct dispatcher *d = arg;

	while (__atomic_load_n(&d->box->taken, __ATOMIC_SEQ_CST) != d->words) {
		int err = h_manager_wait(d->manager, 10 * HT_MS);

		if (err && err != -ETIMEDOUT)
			d->result = err;
		h_manager_dispatch(d->manager);
	}
	return NULL;
}

TEST_F(manager, an_end_point_is_called_by_one_thread_at_a_time)
{
	struct dispatcher d = { .manager = self->to, .box = self->box,
				.words = self->words };
	pthread_t thread[3];
	int i;

	self->box[0].slow = true;
	h_receiver_on_ready(&self->box[0].r, box_ready, NULL);
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, dispatch_all, &d));
	}
	EXPECT_EQ(0, send_all(self->from, self->box, 1, self->words));
	for (i = 0; i < 3; i++)
		pthread_join(thread[i], NULL);
	EXPECT_EQ(0, d.result);
	EXPECT_EQ(0, self->box[0].together);
	EXPECT_EQ(0, self->box[0].wrong);
}

static void *wait_ready(void *arg)
{
	struct dispatcher *d = arg;

	d->result = h_manager_wait(d->manager, ht_patience_ns());
	return NULL;
}

TEST_F(manager, waiting_ends_when_there_is_something_to_dispatch)
{
	struct dispatcher d = { .manager = self->to };
	struct box *b = &self->box[0];
	pthread_t thread;
	int64_t begin;

	EXPECT_EQ(-EAGAIN, h_manager_wait(self->to, 0));
	begin = ht_now_ns();
	EXPECT_EQ(-ETIMEDOUT, h_manager_wait(self->to, 10 * HT_MS));
	EXPECT_GE(ht_now_ns(), begin + 10 * HT_MS);

	/* By an arrival. */
	h_receiver_on_ready(&b->r, box_ready, NULL);
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_ready, &d));
	ht_sleep_ns(10 * HT_MS);
	ASSERT_EQ(0, send_word(self->from, b, 0));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, d.result);
	EXPECT_EQ(1, h_manager_dispatch(self->to));

	/* By somebody who wants to be called for what came before. */
	h_receiver_on_ready(&b->r, NULL, NULL);
	ASSERT_EQ(0, send_word(self->from, b, 1));
	ASSERT_TRUE(box_fills(b));
	begin = ht_now_ns();
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_ready, &d));
	ht_sleep_ns(10 * HT_MS);
	h_receiver_on_ready(&b->r, box_ready, NULL);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, d.result);
	EXPECT_LT(ht_now_ns(), begin + ht_patience_ns() / 2);
	EXPECT_EQ(1, h_manager_dispatch(self->to));
}

/* ---- memory ---- */

TEST_F(manager, memory_is_apart_aligned_and_used_again)
{
	uint64_t seed = ht_seed();
	void *p[100], *again;
	uint32_t i;

	EXPECT_EQ(-EINVAL, h_manager_alloc(self->from, 0, &p[0]));
	EXPECT_EQ(NULL, p[0]);
	for (i = 0; i < 100; i++) {
		size_t length = 1 + ht_random(&seed) % 5000;

		ASSERT_EQ(0, h_manager_alloc(self->from, length, &p[i]));
		ASSERT_EQ(0, (uintptr_t)p[i] % 64);
		memset(p[i], (int)i, length);
		*(size_t *)p[i] = length << 8 | i;
	}
	for (i = 0; i < 100; i++) {
		size_t length = *(size_t *)p[i] >> 8;

		ASSERT_EQ(i, *(size_t *)p[i] & 0xff);
		if (length <= 8)
			continue;
		ASSERT_EQ(length - 8,
			  ht_match_byte((char *)p[i] + 8, length - 8,
					(unsigned char)i));
	}
	h_manager_free(self->from, p[7]);
	ASSERT_EQ(0, h_manager_alloc(self->from, *(size_t *)p[7] >> 8, &again));
	EXPECT_EQ(p[7], again);
	h_manager_free(self->from, NULL);
}

TEST_F(manager, memory_is_given_back_once_and_whole)
{
	size_t length = 1000, at;
	char foreign[64];
	void *p, *q, *r;

	ASSERT_EQ(0, h_manager_alloc(self->from, length, &p));
	memset(p, 'x', length);
	/* Nothing begins inside of it, whatever the address is aligned to. */
	for (at = 1; at < length; at++) {
		ASSERT_EQ(-EINVAL, h_manager_free(self->from, (char *)p + at));
		ASSERT_TRUE(ht_is_explained(self->tx, "first byte"));
	}
	ASSERT_EQ(0, h_manager_alloc(self->from, 64, &q));
	EXPECT_TRUE((char *)q < (char *)p || (char *)q >= (char *)p + length);
	EXPECT_EQ(length, ht_match_byte(p, length, 'x'));
	EXPECT_EQ(-EINVAL, h_manager_free(self->from, foreign));
	EXPECT_EQ(-EINVAL, h_manager_free(self->to, p));

	EXPECT_EQ(0, h_manager_free(self->from, p));
	EXPECT_EQ(-EALREADY, h_manager_free(self->from, p));
	EXPECT_TRUE(ht_is_explained(self->tx, "before"));
	ASSERT_EQ(0, h_manager_alloc(self->from, length, &q));
	ASSERT_EQ(0, h_manager_alloc(self->from, length, &r));
	EXPECT_NE(q, r);
	/* Whoever has it now gives it back, again once. */
	EXPECT_EQ(0, h_manager_free(self->from, q));
	EXPECT_EQ(-EALREADY, h_manager_free(self->from, q));
	EXPECT_EQ(0, h_manager_free(self->from, r));
}

TEST_F(manager, many_small_pieces_need_few_tags)
{
	uint32_t i, n = h_dev_is_embedded(self->rx) ? 3000 : 1000;
	char why[HAMLYN_EXPLAIN_BYTES];
	struct h_manager *m;
	struct h_dev *dev;
	char name[64];
	void *p;
	int err = 0;

	/* 12 MB, where chunks that double end at 8. */
	snprintf(name, sizeof(name), "shm:pieces%d,size=64M", (int)getpid());
	ASSERT_EQ(0, h_open(h_dev_is_embedded(self->rx) ? name : ht_device(),
			    &dev));
	ASSERT_EQ(0, h_manager_create(dev, NULL, &m));
	for (i = 0; i < n && !err; i++) {
		err = h_manager_alloc(m, 4096, &p);
		if (!err)
			*(uint32_t *)p = i;
	}
	if (err && !h_explain(dev, why, sizeof(why)))
		TH_LOG("piece %u: %s", i, why);
	EXPECT_EQ(0, err);
	EXPECT_EQ(0, h_manager_destroy(m));
	h_close(dev);
}

TEST_F(manager, registered_memory_is_the_callers)
{
	size_t length = 8192;
	char *p = aligned_alloc(4096, length);
	int i, err = 0;

	ASSERT_NE(NULL, p);
	EXPECT_EQ(-ENOENT, h_manager_unregister(self->from, p));
	for (i = 0; i < 100; i++) {
		ASSERT_EQ(0, h_manager_register(self->from, p, length));
		ASSERT_EQ(0, h_manager_unregister(self->from, p));
	}
	EXPECT_EQ(-ENOENT, h_manager_unregister(self->from, p));
	/* More than there are tags. */
	for (i = 0; i <= HAMLYN_MAX_TAGS && !err; i++)
		err = h_manager_register(self->from, p, length);
	EXPECT_EQ(-ENOSPC, err);
	EXPECT_TRUE(ht_is_explained(self->tx, "tags"));
	while (!h_manager_unregister(self->from, p))
		i--;
	EXPECT_EQ(1, i);
	/* Left to the end of the manager. */
	EXPECT_EQ(0, h_manager_register(self->from, p, length));
	free(p);
}

/* ---- limits, and beyond ---- */

TEST_F(manager, an_nq_has_room_for_all_or_says_why_not)
{
	struct h_manager_attr attr = { .nq_entries = 64 };
	struct h_receiver_attr large = { .arrivals = 40 };
	char why[HAMLYN_EXPLAIN_BYTES];
	struct box first, second;
	struct h_manager *m;
	uint32_t n;

	for (n = 2; n < 16; n *= 2) {
		attr.nq_entries = n;
		EXPECT_EQ(-EINVAL, h_manager_create(self->rx, &attr, &m));
		EXPECT_EQ(NULL, m);
	}
	attr.nq_entries = 64;
	ASSERT_EQ(0, h_manager_create(self->rx, &attr, &m));
	memset(&second, 0, sizeof(second));
	ASSERT_EQ(0, h_receiver_init(&first.r, m, &box_class, &large));
	EXPECT_EQ(-ENOSPC, h_receiver_init(&second.r, m, &box_class, &large));
	ASSERT_EQ(0, h_explain(self->rx, why, sizeof(why)));
	EXPECT_NE(NULL, strstr(why, "40 arrivals"));
	EXPECT_NE(NULL, strstr(why, "64 entries"));
	EXPECT_EQ(0, h_receiver_exit(&first.r));
	EXPECT_EQ(0, h_receiver_init(&second.r, m, &box_class, &large));
	EXPECT_EQ(0, h_receiver_exit(&second.r));
	EXPECT_EQ(0, h_manager_destroy(m));
}

/* What was done in vain is undone, and the reason is told all the same. */
TEST_F(manager, one_that_cannot_be_made_says_why_not)
{
	const struct h_manager_attr attr = { .wq_entry_size = 3000 };
	struct h_manager *m;

	EXPECT_EQ(-EINVAL, h_manager_create(self->rx, &attr, &m));
	EXPECT_EQ(NULL, m);
	EXPECT_TRUE(ht_is_explained(self->rx, "3000"));
}

/* What came to the NQs of the receiver's NIC, or was lost there. */
static uint64_t landed(FIXTURE_DATA(manager) *self)
{
	struct hamlyn_stats stats = {};

	h_dev_stats(h_manager_dev(self->to), &stats);
	return stats.notifications + stats.overruns;
}

/* More than the NQ has room for, while nobody polls: some notifications are lost. */
static void overfill(FIXTURE_DATA(manager) *self)
{
	struct h_terminus *t = h_manager_terminus(self->from);
	uint64_t before = landed(self);
	int64_t handle = -EAGAIN;
	struct ht_poll poll;
	uint32_t n;

	ht_poll_begin(&poll);
	for (n = 0; n < NQ_ENTRIES + 100; n++) {
		do
			handle = h_send_word(t, &self->box[0].ticket, n);
		while (handle == -EAGAIN && ht_poll_more(&poll));
	}
	h_send_wait(t, handle, ht_patience_ns());
	/* Between two hosts what has left is still to come. */
	ht_poll_begin(&poll);
	while (landed(self) - before < n && ht_poll_more(&poll))
		;
}

/* Bytes that tell their place; false if what arrived is anything else. */
static bool drain(struct h_stream_receiver *r, uint64_t *at)
{
	struct h_record record;
	int ret;

	while ((ret = h_stream_receive(r, &record, H_NOWAIT)) == 0) {
		const unsigned char *p = record.data;
		size_t i;

		for (i = 0; i < record.length; i++)
			if (p[i] != (unsigned char)((*at + i) * 31))
				return false;
		*at += record.length;
		h_stream_release(r, &record);
	}
	return ret == -EAGAIN;
}

TEST_F(manager, streams_lose_nothing_when_the_nq_overruns)
{
	struct h_stream_attr attr = { .buffers = 8, .buffer_size = 256,
				      .max_buffer_size = 4096 };
	uint32_t overfilled = 0, rounds, i;
	struct h_stream_receiver *r;
	struct h_stream_sender *s;
	uint64_t sent, got;
	struct h_seed seed;

	/* Streams come and go, both ends on the manager that overruns. */
	for (rounds = 0; rounds < 6; rounds++) {
		int64_t end = ht_now_ns() + ht_patience_ns();

		sent = 0;
		got = 0;
		ASSERT_EQ(0, h_stream_receiver_create(self->to, &attr, &r));
		h_stream_receiver_seed(r, &seed);
		ASSERT_EQ(0, h_stream_sender_create(self->to, &seed, &s));
		for (i = 0; i < 200; i++) {
			unsigned char data[1000];
			size_t n = 1 + (i * 37 + rounds) % sizeof(data), j;
			ssize_t ret;

			for (j = 0; j < n; j++)
				data[j] = (unsigned char)((sent + j) * 31);
			if (i % 64 == rounds * 10) {
				overfill(self);
				overfilled++;
			}
			ret = h_stream_send(s, data, n, H_NOWAIT);
			if (ret > 0)
				sent += (uint64_t)ret;
			else
				ASSERT_EQ(-EAGAIN, ret);
			if (i % 3 == 0)
				h_stream_flush(s, H_NOWAIT);
			if (i % 2) {
				ASSERT_TRUE(drain(r, &got));
			}
		}
		overfill(self);
		overfilled++;
		while ((h_stream_flush(s, H_NOWAIT) || got < sent) &&
		       ht_now_ns() < end) {
			ASSERT_TRUE(drain(r, &got));
		}
		ASSERT_EQ(sent, got);
		ASSERT_EQ(0, h_stream_sender_close(s, ht_patience_ns()));
		ASSERT_EQ(0, h_stream_receiver_destroy(r));
	}
	EXPECT_GE(self->box[0].overruns, overfilled);
}

struct maker {
	struct h_manager *manager;
	uint32_t stop;
	int result;
};

/* Ends of streams, made and destroyed all the time. */
static void *make_and_destroy(void *arg)
{
	struct maker *k = arg;

	while (!__atomic_load_n(&k->stop, __ATOMIC_SEQ_CST) && !k->result) {
		struct h_stream_receiver *r;
		struct h_stream_sender *s;
		struct h_seed seed;

		k->result = h_stream_receiver_create(k->manager, NULL, &r);
		if (k->result)
			break;
		h_stream_receiver_seed(r, &seed);
		k->result = h_stream_sender_create(k->manager, &seed, &s);
		if (k->result)
			break;
		if (h_stream_send(s, "x", 1, H_NOWAIT) != 1)
			k->result = -EIO;
		if (h_stream_sender_close(s, ht_patience_ns()))
			k->result = -EPIPE;
		h_stream_receiver_destroy(r);
	}
	return NULL;
}

TEST_F(manager, an_overrun_leaves_alone_who_is_being_made_or_destroyed)
{
	struct maker maker = { .manager = self->to };
	pthread_t thread;
	int i;

	ASSERT_EQ(0, pthread_create(&thread, NULL, make_and_destroy, &maker));
	for (i = 0; i < 50; i++) {
		/* The other thread polls, too: every second time it is not in time. */
		__atomic_store_n(&self->box[0].stalls, i % 2, __ATOMIC_SEQ_CST);
		overfill(self);
		__atomic_store_n(&self->box[0].stalls, false, __ATOMIC_SEQ_CST);
		h_manager_poll(self->to);
	}
	__atomic_store_n(&maker.stop, 1, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, maker.result);
	while (h_manager_poll(self->to))
		;
	EXPECT_GE(self->box[0].overruns, 1U);
}

/* ---- who sends without end ---- */

#define FLOOD_ENTRIES	1024

/* Each word that arrives sends another one, as a peer does that is as fast as we are. */
struct flood {
	struct h_receiver r;
	struct h_ticket ticket;
	uint32_t left;
	uint32_t came;
};

static void flood_arrival(struct h_receiver *r, const struct hamlyn_nq_entry *e)
{
	struct flood *f = (struct flood *)r;

	(void)e;
	f->came++;
	if (f->left && h_send_word(h_manager_terminus(r->manager), &f->ticket, 0) >= 0)
		f->left--;
}

static bool flood_pending(const struct h_receiver *r)
{
	(void)r;
	return false;
}

static const struct h_receiver_class flood_class = {
	.name = "flood",
	.process_arrival = flood_arrival,
	.pending = flood_pending,
};

TEST_F(manager, who_sends_without_end_keeps_no_call_back_waiting)
{
	const struct h_manager_attr attr = { .nq_entries = FLOOD_ENTRIES };
	static const struct h_receiver_attr of_one = { .arrivals = 1 };
	struct flood f = { .left = 8 * FLOOD_ENTRIES };
	struct h_manager *m;

	ASSERT_EQ(0, h_manager_create(h_manager_dev(self->to), &attr, &m));
	ASSERT_EQ(0, h_receiver_init(&f.r, m, &flood_class, &of_one));
	ASSERT_EQ(0, h_slot_ticket(f.r.slot, 0, 0, HAMLYN_META_FAST, &f.ticket));
	ASSERT_LE(0, h_send_word(h_manager_terminus(m), &f.ticket, 0));
	h_manager_dispatch(m);
	EXPECT_LE(f.came, FLOOD_ENTRIES + 128);
	f.left = 0;
	EXPECT_EQ(0, h_manager_drain(m, ht_patience_ns()));
	while (h_manager_poll(m))
		;
	EXPECT_EQ(0, h_receiver_exit(&f.r));
	EXPECT_EQ(0, h_manager_destroy(m));
}

TEST_HARNESS_MAIN
