// SPDX-License-Identifier: GPL-2.0-only
/* h_manager_kick(): which waits it ends, from where, and that none is lost. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/poll.h>

#include <hamlyn/datagram.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define ROUNDS		2000
#define SLOW_ROUNDS	9		/* an odd number */
/* A word that is lost costs the half of LOOK_AROUND_NS, on average. */
#define SOON_NS		(100 * HT_MS)

FIXTURE(kick) {
	struct h_dev *dev;
	struct h_manager *m;
};

FIXTURE_VARIANT(kick) {
	uint32_t flags;
};

FIXTURE_VARIANT_ADD(kick, threads) {
	.flags = 0,
};

FIXTURE_VARIANT_ADD(kick, single) {
	.flags = H_MANAGER_SINGLE,
};

static int make_manager(struct h_dev *dev, uint32_t flags, struct h_manager **m)
{
	const struct h_manager_attr attr = { .flags = flags, .spin_ns = 1 };

	return h_manager_create(dev, &attr, m);
}

FIXTURE_SETUP(kick)
{
	ASSERT_EQ(0, h_open(ht_device(), &self->dev));
	ASSERT_EQ(0, make_manager(self->dev, variant->flags, &self->m));
}

FIXTURE_TEARDOWN(kick)
{
	if (self->m)
		EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

/* ---- one that waits -------------------------------------------------------- */

/*
 * @asked: the number of the round that the other thread has begun; atomic, as the others
 * @answered: and of the one that this thread has seen
 * @returns: how often its wait has returned 0
 */
struct waiter {
	struct h_manager *m;
	uint32_t asked;
	uint32_t answered;
	uint32_t returns;
	uint32_t over;
	bool single;
	int wrong;
};

static uint32_t get(const uint32_t *word)
{
	return __atomic_load_n(word, __ATOMIC_RELAXED);
}

static void set(uint32_t *word, uint32_t value)
{
	__atomic_store_n(word, value, __ATOMIC_RELAXED);
}

static void *wait_again(void *arg)
{
	struct waiter *w = arg;

	while (!get(&w->over)) {
		int err = h_manager_wait(w->m, ht_patience_ns());

		if (err)
			w->wrong = err;
		set(&w->returns, get(&w->returns) + 1);
		set(&w->answered, get(&w->asked));
	}
	return NULL;
}

static bool sleeps(struct h_manager *m, uint32_t threads)
{
	struct h_manager_counters c;
	struct ht_poll poll;

	for (ht_poll_begin(&poll); ht_poll_more(&poll);)
		if (!h_manager_stats(m, &c) && c.sleepers == threads)
			return true;
	return false;
}

static bool is_answered(const struct waiter *w, uint32_t round)
{
	struct ht_poll poll;

	for (ht_poll_begin(&poll); ht_poll_more(&poll);)
		if (get(&w->answered) == round)
			return true;
	return false;
}

/*
 * Whether it took longer than it should, on a machine of which that can be said: where many wait
 * for each processor, whoever has been woken waits with them.
 */
static bool is_late(int64_t took)
{
	double waiting = 0;

	if (took <= SOON_NS * ht_scale())
		return false;
	return getloadavg(&waiting, 1) < 1 || waiting <= 3. * sysconf(_SC_NPROCESSORS_ONLN);
}

/* How long until it is answered, or negative. */
static int64_t one_round(struct waiter *w, uint32_t round, void (*kick)(struct h_manager *m))
{
	int64_t begin = ht_now_ns();

	set(&w->asked, round);
	kick(w->m);
	return is_answered(w, round) ? ht_now_ns() - begin : -1;
}

static int64_t median(int64_t *took, size_t n)
{
	qsort(took, n, sizeof(*took), ht_by_size);
	return took[n / 2];
}

static int end(struct waiter *w, pthread_t thread)
{
	set(&w->over, 1);
	h_manager_kick(w->m);
	pthread_join(thread, NULL);
	return w->wrong;
}

static struct h_manager *to_kick;

static void kick_in_handler(int sig)
{
	(void)sig;
	h_manager_kick(to_kick);
}

static void kick_by_signal(struct h_manager *m)
{
	to_kick = m;
	raise(SIGUSR1);
}

/* ---- tests ------------------------------------------------------------------ */

TEST_F(kick, one_before_the_wait_ends_it_and_several_are_one)
{
	EXPECT_EQ(-EAGAIN, h_manager_wait(self->m, H_NOWAIT));
	h_manager_kick(self->m);
	h_manager_kick(self->m);
	EXPECT_EQ(0, h_manager_wait(self->m, H_FOREVER));
	EXPECT_EQ(-EAGAIN, h_manager_wait(self->m, H_NOWAIT));
	EXPECT_EQ(-ETIMEDOUT, h_manager_wait(self->m, 10 * HT_MS));
	h_manager_kick(self->m);
	EXPECT_EQ(0, h_manager_wait(self->m, H_NOWAIT));
}

TEST_F(kick, no_other_call_takes_it)
{
	struct pollfd fd = { .events = POLLIN };

	h_manager_kick(self->m);
	EXPECT_EQ(0, h_manager_poll(self->m));
	EXPECT_EQ(0, h_manager_dispatch(self->m));
	EXPECT_EQ(0, h_manager_drain(self->m, H_NOWAIT));
	if (!variant->flags) {
		fd.fd = h_manager_fd(self->m);
		ASSERT_LE(0, fd.fd);
		EXPECT_EQ(0, poll(&fd, 1, 0));
	}
	EXPECT_EQ(0, h_manager_wait(self->m, H_FOREVER));
}

/* A failed call is told of although the thread has slept since, which makes a terminus. */
TEST_F(kick, a_wait_leaves_the_explanation)
{
	char why[HAMLYN_EXPLAIN_BYTES];
	struct h_nq *nq;

	ASSERT_EQ(-EINVAL, h_nq_create(self->dev, 3, &nq));
	EXPECT_EQ(-ETIMEDOUT, h_manager_wait(self->m, 10 * HT_MS));
	EXPECT_EQ(0, h_explain(self->dev, why, sizeof(why)));
	EXPECT_NE(0, why[0]);
}

enum { TERMINI = 4096 };	/* more than there can be, but on some devices for root */

static void count_line(int level, const char *text, void *lines)
{
	(void)level;
	(void)text;
	++*(uint32_t *)lines;
}

/* Without one to tell itself by, the manager looks for kicks, and for a terminus twice a second. */
TEST_F(kick, a_wait_without_a_terminus_left_does_not_try_all_the_time)
{
	static struct h_terminus *termini[TERMINI];
	int64_t begin, took;
	uint32_t lines = 0;
	int n = 0;

	while (n < TERMINI && !h_terminus_create(self->dev, NULL, &termini[n]))
		n++;
	ASSERT_LT(0, n);
	if (n == TERMINI)
		SKIP(return, "termini without end");
	h_log_set(H_LOG_INFO, count_line, &lines);
	begin = ht_now_ns();
	EXPECT_EQ(-ETIMEDOUT, h_manager_wait(self->m, 300 * HT_MS));
	took = ht_now_ns() - begin;
	h_log_set(0, NULL, NULL);
	EXPECT_LE(1, lines);
	EXPECT_LE(lines, 1 + took / (500 * HT_MS));
	while (n)
		EXPECT_EQ(0, h_terminus_destroy(termini[--n]));
}

TEST_F(kick, one_that_sleeps_returns_soon)
{
	struct waiter w = { .m = self->m };
	int64_t took[SLOW_ROUNDS];
	pthread_t thread;
	uint32_t i;

	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_again, &w));
	for (i = 0; i < SLOW_ROUNDS; i++) {
		if (variant->flags) {
			ht_sleep_ns(20 * HT_MS);
		} else {
			ASSERT_TRUE(sleeps(self->m, 1));
		}
		took[i] = one_round(&w, i + 1, h_manager_kick);
		ASSERT_LE(0, took[i]);
	}
	EXPECT_FALSE(is_late(median(took, SLOW_ROUNDS)));
	EXPECT_EQ(0, end(&w, thread));
	EXPECT_LE(w.returns, SLOW_ROUNDS + 1);
}

/* At all times before, in and after its sleep; every other one from a signal handler. */
TEST_F(kick, none_is_lost)
{
	struct sigaction sa = { .sa_handler = kick_in_handler };
	struct waiter w = { .m = self->m };
	uint64_t random = ht_seed();
	uint32_t i, late = 0;
	pthread_t thread;
	int64_t took;

	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_again, &w));
	for (i = 1; i <= ROUNDS; i++) {
		took = one_round(&w, i, i % 2 ? h_manager_kick : kick_by_signal);
		ASSERT_LE(0, took);
		late += is_late(took);
		for (uint64_t n = ht_random(&random) % 4096; n; n--)
			__asm__ volatile("");
	}
	EXPECT_LE(late, ROUNDS / 100);
	EXPECT_EQ(0, end(&w, thread));
}

/* ---- from signal handlers --------------------------------------------------- */

/*
 * What a handler may interrupt: locks of the manager, mostly while there is no kick that would
 * do for its own, and kicks.
 */
static void *be_inside(void *arg)
{
	struct waiter *w = arg;
	struct h_manager_counters c;
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &signals, NULL);
	for (uint32_t i = 0; !get(&w->over); i++) {
		if (i % 16384 == 0)
			h_manager_kick(w->m);
		if (!w->single)
			h_manager_stats(w->m, &c);
	}
	return NULL;
}

static pthread_t inside;

static void kick_from_inside(struct h_manager *m)
{
	(void)m;
	pthread_kill(inside, SIGUSR1);
}

TEST_F(kick, a_signal_handler_may)
{
	struct sigaction sa = { .sa_handler = kick_in_handler, .sa_flags = SA_RESTART };
	struct waiter w = { .m = self->m, .single = variant->flags };
	sigset_t signals, old;
	uint32_t late = 0, i;
	pthread_t thread;
	int64_t took;

	ASSERT_EQ(0, sigaction(SIGUSR1, &sa, NULL));
	to_kick = self->m;
	sigemptyset(&signals);
	sigaddset(&signals, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &signals, &old);
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_again, &w));
	ASSERT_EQ(0, pthread_create(&inside, NULL, be_inside, &w));
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	for (i = 1; i <= ROUNDS; i++) {
		took = one_round(&w, i, kick_from_inside);
		ASSERT_LE(0, took);
		late += is_late(took);
	}
	EXPECT_LE(late, ROUNDS / 100);
	set(&w.over, 1);
	pthread_join(inside, NULL);
	EXPECT_EQ(0, end(&w, thread));
}

/* ---- several that wait ------------------------------------------------------- */

struct listener {
	struct h_manager *m;
	struct h_datagram_receiver *receiver;
	uint32_t done;
	int result;
};

static void *listen(void *arg)
{
	struct listener *l = arg;
	struct h_datagram got;

	l->result = h_datagram_receive(l->receiver, &got, ht_patience_ns());
	if (!l->result)
		h_datagram_release(l->receiver);
	set(&l->done, 1);
	return NULL;
}

FIXTURE(several) {
	struct h_dev *dev;
	struct h_manager *m;
};

FIXTURE_SETUP(several)
{
	ASSERT_EQ(0, h_open(ht_device(), &self->dev));
	ASSERT_EQ(0, make_manager(self->dev, 0, &self->m));
}

FIXTURE_TEARDOWN(several)
{
	EXPECT_EQ(0, h_manager_destroy(self->m));
	h_close(self->dev);
}

/* The thread that sleeps on the NQ is not the one to be kicked, and has to pass it on. */
TEST_F(several, one_that_does_not_lead_is_kicked_and_a_receiver_sleeps_on)
{
	struct listener l = { .m = self->m };
	struct waiter w = { .m = self->m };
	struct h_datagram_address address;
	int64_t took[SLOW_ROUNDS];
	pthread_t thread, leader;
	uint32_t i;

	ASSERT_EQ(0, h_datagram_receiver_create(self->m, NULL, &l.receiver));
	ASSERT_EQ(0, pthread_create(&leader, NULL, listen, &l));
	ASSERT_TRUE(sleeps(self->m, 1));
	ASSERT_EQ(0, pthread_create(&thread, NULL, wait_again, &w));
	for (i = 0; i < SLOW_ROUNDS; i++) {
		ASSERT_TRUE(sleeps(self->m, 2));
		took[i] = one_round(&w, i + 1, h_manager_kick);
		ASSERT_LE(0, took[i]);
	}
	EXPECT_FALSE(is_late(median(took, SLOW_ROUNDS)));
	EXPECT_EQ(0, get(&l.done));
	EXPECT_EQ(0, end(&w, thread));
	h_datagram_receiver_address(l.receiver, &address);
	EXPECT_EQ(0, h_datagram_send(self->m, &address, 0, "x", 1, NULL, HT_SEC));
	pthread_join(leader, NULL);
	EXPECT_EQ(0, l.result);
	EXPECT_EQ(0, h_datagram_receiver_destroy(l.receiver));
}

static bool returned(const struct waiter *w, uint32_t times)
{
	struct ht_poll poll;

	for (ht_poll_begin(&poll); ht_poll_more(&poll);)
		if (get(&w[0].returns) + get(&w[1].returns) == times)
			return true;
	return false;
}

/* One kick is for one of them. */
TEST_F(several, each_kick_ends_one_wait)
{
	struct waiter w[2] = { { .m = self->m }, { .m = self->m } };
	pthread_t thread[2];
	uint32_t i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, pthread_create(&thread[i], NULL, wait_again, &w[i]));
	}
	for (i = 1; i <= SLOW_ROUNDS; i++) {
		ASSERT_TRUE(sleeps(self->m, 2));
		h_manager_kick(self->m);
		ASSERT_TRUE(returned(w, i));
	}
	ht_sleep_ns(50 * HT_MS);
	EXPECT_TRUE(returned(w, SLOW_ROUNDS));
	for (i = 0; i < 2; i++)
		set(&w[i].over, 1);
	for (i = 1; i <= 2; i++) {
		h_manager_kick(self->m);
		EXPECT_TRUE(returned(w, SLOW_ROUNDS + i));
	}
	for (i = 0; i < 2; i++)
		pthread_join(thread[i], NULL);
}

TEST_HARNESS_MAIN
