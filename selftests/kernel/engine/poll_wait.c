// SPDX-License-Identifier: GPL-2.0-only
/*
 * Waiting in the kernel: poll, epoll and WAIT. Kernel device only.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"
#include "hostile.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME	0x80
#endif

#define ENTRIES	16

FIXTURE(poll_wait) {
	struct ht_pair pair;
	struct h_nq *second;
	struct h_slot *slot;
	struct h_ticket ticket;		/* its notifications go to @second */
	int fd;
};

FIXTURE_SETUP(poll_wait)
{
	struct ht_pair_attr attr = { .nq_entries = ENTRIES };
	struct h_slot_attr slot = { 0 };

	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	self->fd = h_dev_fd(self->pair.rx);
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, h_nq_create(self->pair.rx, 4, &self->second));
	slot.area = self->pair.fence_area;
	slot.nq = self->second;
	ASSERT_EQ(0, h_slot_create(self->pair.rx, &slot, &self->slot));
	ASSERT_EQ(0, h_slot_ticket(self->slot, 0, 0, HAMLYN_META_FAST,
				   &self->ticket));
}

FIXTURE_TEARDOWN(poll_wait)
{
	ht_pair_close(&self->pair);
}

static int send_word(FIXTURE_DATA(poll_wait) *self,
		     const struct h_ticket *ticket, uint64_t word)
{
	struct h_msg msg = { .ticket = ticket, .word = word };

	return ht_send_sync(self->pair.terminus, &msg);
}

/* What poll() says within @ms. */
static int readable(int fd, int ms)
{
	struct pollfd pfd = { .fd = fd, .events = POLLIN | POLLOUT | POLLPRI };
	int ret = poll(&pfd, 1, ms);

	return ret <= 0 ? ret : pfd.revents;
}

static int patience_ms(void)
{
	return (int)(ht_patience_ns() / HT_MS);
}

/* ---- poll --------------------------------------------------------------- */

TEST_F(poll_wait, readable_as_long_as_any_nq_has_an_entry)
{
	const struct h_ticket *to[] = { &self->pair.fence, &self->ticket };
	struct h_nq *nqs[] = { self->pair.nq, self->second };
	struct hamlyn_nq_entry entry;
	unsigned int i;

	EXPECT_EQ(0, readable(self->fd, 0) & POLLIN);
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, send_word(self, to[i % 2], i));
		ASSERT_EQ(1, send_word(self, to[i % 2], i));
		/* Level-triggered: it stays so. */
		EXPECT_NE(0, readable(self->fd, patience_ms()) & POLLIN);
		EXPECT_NE(0, readable(self->fd, 0) & POLLIN);
		ASSERT_EQ(1, h_recv(nqs[i % 2], &entry));
		EXPECT_NE(0, readable(self->fd, 0) & POLLIN);
		ASSERT_EQ(1, h_recv(nqs[i % 2], &entry));
		EXPECT_EQ(0, readable(self->fd, 0) & POLLIN);
	}
	/* Of another context it is not. */
	ASSERT_EQ(1, send_word(self, &self->ticket, 0));
	EXPECT_EQ(0, readable(h_dev_fd(self->pair.tx), 20) & POLLIN);
}

TEST_F(poll_wait, an_overrun_is_readable_too)
{
	struct hamlyn_nq_entry entry;
	int i;

	for (i = 0; i < 4; i++) {
		ASSERT_EQ(1, send_word(self, &self->ticket, 0));
	}
	for (i = 0; i < 3; i++) {
		ASSERT_EQ(1, h_recv(self->second, &entry));
	}
	EXPECT_NE(0, readable(self->fd, 0) & POLLIN);
	EXPECT_EQ(-EOVERFLOW, h_recv(self->second, &entry));
	EXPECT_EQ(0, readable(self->fd, 0) & POLLIN);
}

struct late_sender {
	FIXTURE_DATA(poll_wait) *self;
	const struct h_ticket *ticket;
	int64_t delay;
	uint64_t word;
	int result;
};

static void *send_late(void *arg)
{
	struct late_sender *s = arg;

	ht_sleep_ns(s->delay);
	s->result = send_word(s->self, s->ticket, s->word);
	return NULL;
}

TEST_F(poll_wait, a_sleeping_poll_is_woken)
{
	struct late_sender s = { .self = self };
	struct hamlyn_nq_entry entry;
	pthread_t thread;
	int i;

	for (i = 0; i < 20; i++) {
		s.ticket = i % 2 ? &self->ticket : &self->pair.fence;
		s.delay = i * HT_MS;
		ASSERT_EQ(0, pthread_create(&thread, NULL, send_late, &s));
		EXPECT_NE(0, readable(self->fd, patience_ms()) & POLLIN) {
			TH_LOG("round %d", i);
		}
		pthread_join(thread, NULL);
		EXPECT_EQ(1, s.result);
		ASSERT_EQ(1, h_recv(i % 2 ? self->second : self->pair.nq,
				    &entry));
	}
}

TEST_F(poll_wait, no_wake_up_of_poll_is_lost)
{
	struct late_sender s = { .self = self, .ticket = &self->ticket };
	struct hamlyn_nq_entry entry;
	pthread_t thread;
	int i;

	/* No delay: the message and the going to sleep race. */
	for (i = 0; i < 500; i++) {
		s.delay = i % 50 * 1000;
		ASSERT_EQ(0, pthread_create(&thread, NULL, send_late, &s));
		ASSERT_NE(0, readable(self->fd, patience_ms()) & POLLIN) {
			TH_LOG("round %d", i);
		}
		pthread_join(thread, NULL);
		ASSERT_EQ(1, h_recv(self->second, &entry));
	}
}

TEST_F(poll_wait, poll_times_out)
{
	int64_t began = ht_now_ns();

	EXPECT_EQ(0, readable(self->fd, 30) & POLLIN);
	/* poll() returns at once if the file says that it is writable. */
	EXPECT_EQ(0, readable(self->fd, 0));
	EXPECT_GE(ht_now_ns() - began, 29 * HT_MS);
}

TEST_F(poll_wait, epoll_is_level_triggered_and_knows_edges)
{
	struct epoll_event event = { .events = EPOLLIN }, got;
	struct hamlyn_nq_entry entry;
	int level = epoll_create1(EPOLL_CLOEXEC);
	int edge = epoll_create1(EPOLL_CLOEXEC);
	int i;

	ASSERT_EQ(0, epoll_ctl(level, EPOLL_CTL_ADD, self->fd, &event));
	event.events = EPOLLIN | EPOLLET;
	ASSERT_EQ(0, epoll_ctl(edge, EPOLL_CTL_ADD, self->fd, &event));
	EXPECT_EQ(0, epoll_wait(level, &got, 1, 0));
	EXPECT_EQ(0, epoll_wait(edge, &got, 1, 0));
	for (i = 0; i < 10; i++) {
		ASSERT_EQ(1, send_word(self, &self->ticket, 0));
		ASSERT_EQ(1, epoll_wait(level, &got, 1, patience_ms())) {
			TH_LOG("round %d", i);
		}
		EXPECT_NE(0, got.events & EPOLLIN);
		EXPECT_EQ(1, epoll_wait(level, &got, 1, 0));
		EXPECT_EQ(1, epoll_wait(edge, &got, 1, patience_ms())) {
			TH_LOG("round %d", i);
		}
		EXPECT_EQ(0, epoll_wait(edge, &got, 1, 0));
		ASSERT_EQ(1, h_recv(self->second, &entry));
		EXPECT_EQ(0, epoll_wait(level, &got, 1, 0));
	}
	close(level);
	close(edge);
}

/* ---- WAIT --------------------------------------------------------------- */

static int64_t clock_ns(void)
{
	return ht_now_ns();	/* CLOCK_MONOTONIC, as the header has it */
}

static int wait_for_id(FIXTURE_DATA(poll_wait) *self, uint32_t nq,
		       uint32_t position, int64_t deadline)
{
	struct hamlyn_wait wait = {
		.size = sizeof(wait),
		.nq = nq,
		.position = position,
		.deadline_ns = deadline,
	};

	return ht_raw(self->fd, HAMLYN_IOC_WAIT, &wait);
}

static int wait_for(FIXTURE_DATA(poll_wait) *self, struct h_nq *nq,
		    uint32_t position, int64_t deadline)
{
	return wait_for_id(self, nq->id, position, deadline);
}

TEST_F(poll_wait, a_deadline_in_the_past_only_looks)
{
	static const int64_t deadlines[] = { 0, 1, 1000 };
	struct hamlyn_nq_entry entry;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(deadlines); i++) {
		EXPECT_EQ(-ETIMEDOUT, wait_for(self, self->pair.nq, i,
					       deadlines[i]));
		EXPECT_EQ(-ETIMEDOUT, wait_for(self, self->pair.nq, i,
					       clock_ns() - 1));
		ASSERT_EQ(1, send_word(self, &self->pair.fence, 0));
		EXPECT_EQ(0, wait_for(self, self->pair.nq, i, deadlines[i]));
		EXPECT_EQ(0, wait_for(self, self->pair.nq, i, -1));
		ASSERT_EQ(1, h_recv(self->pair.nq, &entry));
	}
}

TEST_F(poll_wait, a_deadline_is_absolute_and_kept)
{
	static const int64_t waits[] = { HT_MS, 10 * HT_MS, 200 * HT_MS };
	unsigned int i;
	int64_t deadline;

	for (i = 0; i < ARRAY_SIZE(waits); i++) {
		deadline = clock_ns() + waits[i];
		EXPECT_EQ(-ETIMEDOUT, wait_for(self, self->pair.nq, 0,
					       deadline));
		EXPECT_GE(clock_ns(), deadline);
		EXPECT_LT(clock_ns(), deadline + ht_patience_ns());
	}
}

TEST_F(poll_wait, it_waits_for_the_position_that_was_named)
{
	struct late_sender s = {
		.self = self,
		.ticket = &self->pair.fence,
		.delay = 30 * HT_MS,
	};
	struct hamlyn_nq_entry entry;
	pthread_t thread;

	ASSERT_EQ(1, send_word(self, &self->pair.fence, 1));
	EXPECT_EQ(0, wait_for(self, self->pair.nq, 0, 0));
	/* One is there, but not that one. */
	EXPECT_EQ(-ETIMEDOUT, wait_for(self, self->pair.nq, 1, 0));
	EXPECT_EQ(-ETIMEDOUT, wait_for(self, self->pair.nq, 1,
				       clock_ns() + 20 * HT_MS));
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_late, &s));
	EXPECT_EQ(0, wait_for(self, self->pair.nq, 1,
			      clock_ns() + ht_patience_ns()));
	pthread_join(thread, NULL);
	EXPECT_EQ(1, h_recv(self->pair.nq, &entry));
	EXPECT_EQ(1, h_recv(self->pair.nq, &entry));
}

/* No position makes it hang or crash; ends with one of these two. */
TEST_F(poll_wait, any_position_is_survived)
{
	static const uint32_t positions[] = {
		15, 16, 17, 1000, 0x7fffffff, 0x80000000, 0xfffffffe,
		0xffffffff,
	};
	unsigned int i;
	int ret;

	ASSERT_EQ(1, send_word(self, &self->pair.fence, 1));
	for (i = 0; i < ARRAY_SIZE(positions); i++) {
		ret = wait_for(self, self->pair.nq, positions[i],
			       clock_ns() + 5 * HT_MS);
		/* One that is not there yet is waited for. */
		EXPECT_TRUE(ret == -ETIMEDOUT ||
			    (ret == 0 && positions[i] > 1 + ENTRIES)) {
			TH_LOG("%d for %x", ret, positions[i]);
		}
	}
}

struct waiter {
	FIXTURE_DATA(poll_wait) *self;
	uint32_t nq;
	uint32_t position;
	int64_t deadline;
	pthread_t thread;
	int result;
	int finished;
};

static void *do_wait(void *arg)
{
	struct waiter *w = arg;

	w->result = wait_for_id(w->self, w->nq, w->position, w->deadline);
	h__store_release(&w->finished, 1);
	return NULL;
}

TEST_F(poll_wait, all_that_wait_are_woken)
{
	struct waiter waiters[4];
	struct hamlyn_nq_entry entry;
	unsigned int round, i;

	for (round = 0; round < 50; round++) {
		for (i = 0; i < ARRAY_SIZE(waiters); i++) {
			waiters[i] = (struct waiter) {
				.self = self,
				.nq = i % 2 ? self->second->id :
				      self->pair.nq->id,
				.position = round,
				.deadline = i / 2 ? -1 :
					    clock_ns() + ht_patience_ns(),
			};
			ASSERT_EQ(0, pthread_create(&waiters[i].thread, NULL,
						    do_wait, &waiters[i]));
		}
		ht_sleep_ns(round % 10 * HT_MS);
		ASSERT_EQ(1, send_word(self, &self->pair.fence, 0));
		ASSERT_EQ(1, send_word(self, &self->ticket, 0));
		for (i = 0; i < ARRAY_SIZE(waiters); i++) {
			pthread_join(waiters[i].thread, NULL);
			EXPECT_EQ(0, waiters[i].result) {
				TH_LOG("round %u, waiter %u", round, i);
			}
		}
		ASSERT_EQ(1, h_recv(self->pair.nq, &entry));
		ASSERT_EQ(1, h_recv(self->second, &entry));
	}
}

TEST_F(poll_wait, a_wait_and_a_poll_are_both_woken)
{
	struct waiter w = { .self = self, .nq = self->pair.nq->id,
			    .deadline = -1 };
	struct late_sender s = { .self = self, .ticket = &self->pair.fence,
				 .delay = 20 * HT_MS };
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&w.thread, NULL, do_wait, &w));
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_late, &s));
	EXPECT_NE(0, readable(self->fd, patience_ms()) & POLLIN);
	pthread_join(thread, NULL);
	pthread_join(w.thread, NULL);
	EXPECT_EQ(0, w.result);
}

static void ignore(int sig)
{
	(void)sig;
}

static const char *interrupt(struct waiter *w, int64_t every)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (!h__load_acquire(&w->finished)) {
		if (!ht_poll_more(&poll))
			return "the wait does not end";
		ht_sleep_ns(every);
		pthread_kill(w->thread, SIGUSR1);
	}
	pthread_join(w->thread, NULL);
	return NULL;
}

TEST_F(poll_wait, a_signal_ends_it_with_EINTR)
{
	struct sigaction action = { .sa_handler = ignore };
	struct waiter w;
	int i;

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	for (i = 0; i < 10; i++) {
		w = (struct waiter) {
			.self = self,
			.nq = self->pair.nq->id,
			.deadline = i % 2 ? -1 :
				    clock_ns() + 10 * ht_patience_ns(),
		};
		ASSERT_EQ(0, pthread_create(&w.thread, NULL, do_wait, &w));
		ASSERT_NO(interrupt(&w, HT_MS));
		EXPECT_EQ(-EINTR, w.result);
	}
}

TEST_F(poll_wait, under_SA_RESTART_it_goes_on_to_its_deadline)
{
	struct sigaction action = { .sa_handler = ignore,
				    .sa_flags = SA_RESTART };
	struct late_sender s = { .self = self, .ticket = &self->pair.fence,
				 .delay = 100 * HT_MS };
	struct waiter w = { .self = self, .nq = self->pair.nq->id };
	pthread_t thread;

	ASSERT_EQ(0, sigaction(SIGUSR1, &action, NULL));
	w.deadline = clock_ns() + 150 * HT_MS;
	ASSERT_EQ(0, pthread_create(&w.thread, NULL, do_wait, &w));
	/* A relative time-out would begin anew each time. */
	ASSERT_NO(interrupt(&w, 5 * HT_MS));
	EXPECT_EQ(-ETIMEDOUT, w.result);
	EXPECT_GE(clock_ns(), w.deadline);
	/* And it is still woken. */
	w.finished = 0;
	w.deadline = -1;
	ASSERT_EQ(0, pthread_create(&w.thread, NULL, do_wait, &w));
	ASSERT_EQ(0, pthread_create(&thread, NULL, send_late, &s));
	ASSERT_NO(interrupt(&w, 5 * HT_MS));
	pthread_join(thread, NULL);
	EXPECT_EQ(0, w.result);
}

TEST_F(poll_wait, a_wait_survives_the_end_of_its_nq)
{
	struct hamlyn_nq_create nq;
	struct waiter w;
	int i;

	for (i = 0; i < 20; i++) {
		nq = (struct hamlyn_nq_create) { .size = sizeof(nq),
						 .entries = 4 };
		ASSERT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_NQ_CREATE, &nq));
		w = (struct waiter) {
			.self = self,
			.nq = nq.nq,
			.deadline = clock_ns() + 200 * HT_MS,
		};
		ASSERT_EQ(0, pthread_create(&w.thread, NULL, do_wait, &w));
		ht_sleep_ns(i * HT_MS);
		ASSERT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_NQ_DESTROY, nq.nq));
		pthread_join(w.thread, NULL);
		EXPECT_NE(0, w.result);
		EXPECT_EQ(-ENOENT, wait_for_id(self, nq.nq, 0, 0));
	}
}

/* ---- sleepers that are early, and many ---------------------------------- */

/* One message to a context that has all but a terminus. */
static int send_to(struct party *tx, const struct party *rx)
{
	const struct hamlyn_trb trb = to_party(rx);

	return post(&tx->terminus, &trb);
}

/* Who is in poll() before there is an NQ could not ask it for a wake-up. */
TEST_F(poll_wait, whoever_polls_before_there_is_an_nq_is_woken)
{
	struct epoll_event event = { .events = EPOLLIN }, got;
	struct party rx = { .fd = -1 }, tx;
	int epoll;

	ASSERT_EQ(0, party_open(&tx));
	rx.fd = ht_raw_open();
	ASSERT_GE(rx.fd, 0);
	ASSERT_EQ(0, ht_raw_query(rx.fd, &rx.query));
	epoll = epoll_create1(EPOLL_CLOEXEC);
	ASSERT_GE(epoll, 0);
	ASSERT_EQ(0, epoll_ctl(epoll, EPOLL_CTL_ADD, rx.fd, &event));
	ASSERT_EQ(0, ht_raw_area_alloc(rx.fd, PAGE, &rx.area,
				       (void **)&rx.data));
	ASSERT_EQ(0, ht_raw_nq_create(rx.fd, 64, &rx.nq));
	ASSERT_EQ(0, party_slot(&rx, 0));
	ASSERT_EQ(0, send_to(&tx, &rx));
	EXPECT_EQ(1, epoll_wait(epoll, &got, 1, patience_ms()));
	close(epoll);
	party_close(&rx);
	party_close(&tx);
}

#define MANY		40	/* more than are woken at once */
#define MOST_POLLS	1024	/* of one open file (driver/object/nq.c) */

TEST_F(poll_wait, all_of_many_are_woken)
{
	struct epoll_event event = { .events = EPOLLIN }, got;
	struct hamlyn_nq_entry entry;
	struct waiter waiters[MANY];
	unsigned int round, i;
	int epolls[MANY];

	for (i = 0; i < MANY; i++) {
		epolls[i] = epoll_create1(EPOLL_CLOEXEC);
		ASSERT_GE(epolls[i], 0);
		ASSERT_EQ(0, epoll_ctl(epolls[i], EPOLL_CTL_ADD, self->fd,
				       &event));
	}
	for (round = 0; round < 5; round++) {
		for (i = 0; i < MANY; i++) {
			waiters[i] = (struct waiter) {
				.self = self,
				.nq = self->pair.nq->id,
				.position = round,
				.deadline = clock_ns() + ht_patience_ns(),
			};
			ASSERT_EQ(0, pthread_create(&waiters[i].thread, NULL,
						    do_wait, &waiters[i]));
		}
		ht_sleep_ns(round * 10 * HT_MS);
		/* They ask for the next wake-up. */
		for (i = 0; i < MANY; i++)
			ASSERT_EQ(0, epoll_wait(epolls[i], &got, 1, 0));
		ASSERT_EQ(1, send_word(self, &self->pair.fence, 0));
		for (i = 0; i < MANY; i++) {
			pthread_join(waiters[i].thread, NULL);
			EXPECT_EQ(0, waiters[i].result);
			EXPECT_EQ(1, epoll_wait(epolls[i], &got, 1,
						patience_ms()));
		}
		ASSERT_EQ(1, h_recv(self->pair.nq, &entry));
	}
	for (i = 0; i < MANY; i++)
		close(epolls[i]);
}

/* So that nobody who sends to us has to walk a list of any length. */
struct exclusive {
	int epoll;
	int result;
};

static void *epoll_once(void *arg)
{
	struct exclusive *e = arg;
	struct epoll_event got;

	e->result = epoll_wait(e->epoll, &got, 1, patience_ms() / 4);
	return NULL;
}

/* The only one that is woken may be killed before it looks, and nobody would be again. */
TEST_F(poll_wait, all_are_woken_also_those_that_are_exclusive)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLEXCLUSIVE };
	struct exclusive sleeper[3];
	pthread_t thread[3];
	int i;

	for (i = 0; i < 3; i++) {
		sleeper[i].epoll = epoll_create1(EPOLL_CLOEXEC);
		ASSERT_GE(sleeper[i].epoll, 0);
		ASSERT_EQ(0, epoll_ctl(sleeper[i].epoll, EPOLL_CTL_ADD, self->fd, &event));
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, epoll_once, &sleeper[i]));
	}
	/* Who does not sleep yet sees it all the same. */
	ht_sleep_ns(100 * HT_MS);
	ASSERT_EQ(1, send_word(self, &self->ticket, 0));
	for (i = 0; i < 3; i++) {
		pthread_join(thread[i], NULL);
		EXPECT_EQ(1, sleeper[i].result);
		close(sleeper[i].epoll);
	}
}

TEST_F(poll_wait, no_more_than_1024_poll_one_context)
{
	struct rlimit files = { 256, 256 };
	struct epoll_event event = { .events = EPOLLIN }, got;
	int epolls[MANY], fds[MANY];
	unsigned int i, j, n = 0, last = 0, refused = 0;

	ASSERT_EQ(0, setrlimit(RLIMIT_NOFILE, &files));
	for (i = 0; i < MANY; i++) {
		epolls[i] = epoll_create1(EPOLL_CLOEXEC);
		fds[i] = dup(self->fd);
		ASSERT_GE(epolls[i], 0);
		ASSERT_GE(fds[i], 0);
	}
	for (i = 0; i < MANY && n <= MOST_POLLS; i++)
		for (j = 0; j < MANY && n <= MOST_POLLS; j++, n++) {
			ASSERT_EQ(0, epoll_ctl(epolls[i], EPOLL_CTL_ADD, fds[j],
					       &event));
			last = i;
			if (n < MOST_POLLS - 1)
				continue;
			refused = epoll_wait(epolls[i], &got, 1, 0) == 1 &&
				  got.events & EPOLLERR;
			EXPECT_EQ(n == MOST_POLLS, refused) {
				TH_LOG("%u poll already", n);
			}
		}
	EXPECT_EQ(1, refused);
	EXPECT_EQ(POLLERR, readable(self->fd, 0));
	/* Who was not let in would never be told if that ended. */
	for (i = 0; i < MANY; i++)
		if (i != last)
			close(epolls[i]);
	EXPECT_EQ(1, epoll_wait(epolls[last], &got, 1, 0));
	EXPECT_EQ(POLLERR, readable(self->fd, 0));
	close(epolls[last]);
	for (i = 0; i < MANY; i++)
		close(fds[i]);
}

/* ---- clocks ------------------------------------------------------------- */

static int become_of_tomorrow(void)
{
	static const char offset[] = "monotonic 86400 0\n";
	int fd, ret;

	if (unshare(CLONE_NEWTIME))
		return -errno;
	fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = ht_write_all(fd, offset, sizeof(offset) - 1);
	close(fd);
	return ret;
}

/* Its own 20 ms, not a day and 20 ms. */
static int wait_shortly(void)
{
	struct ht_raw_nq nq;
	struct hamlyn_wait arg = { .size = sizeof(arg) };
	int fd = ht_raw_open();

	if (fd < 0 || ht_raw_nq_create(fd, 4, &nq))
		return 1;
	arg.nq = nq.arg.nq;
	arg.deadline_ns = clock_ns() + 20 * HT_MS;
	alarm((unsigned int)(ht_patience_ns() / HT_SEC) + 1);
	return ht_raw(fd, HAMLYN_IOC_WAIT, &arg) == -ETIMEDOUT &&
	       clock_ns() >= arg.deadline_ns ? 0 : 2;
}

TEST_F(poll_wait, a_deadline_is_of_the_time_namespace)
{
	pid_t pid = ht_fork(), inner;
	int ret;

	ASSERT_GE(pid, 0);
	if (!pid) {
		ret = become_of_tomorrow();
		if (ret == -EINVAL || ret == -EPERM)
			_exit(77);
		inner = ret ? -1 : ht_fork();
		if (!inner)
			_exit(wait_shortly());
		_exit(inner < 0 ? 3 : ht_reap(inner) ? 4 : 0);
	}
	ret = ht_reap(pid);
	if (ret == 77)
		SKIP(return, "no time namespaces");
	EXPECT_EQ(0, ret);
}

TEST_HARNESS_MAIN
