// SPDX-License-Identifier: GPL-2.0-only
/*
 * Threads of different priority on one manager: nobody waits for who is kept from the
 * processor by others, and no call outlasts its time because another thread does not get on.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <hamlyn/channel.h>

#include "channel/channel.h"
#include "embedded/shm.h"

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define SECTION_NS	(3 * HT_MS)	/* of processor time, as all that follow */
#define HOG_NS		(600 * HT_MS)	/* less than real-time threads get at once */
#define OWN_NS		(200 * HT_MS)	/* of a call, where a machine is not slow */
#define HIGH		10
#define MIDDLE		5

struct scene {
	struct h_dev *dev[2];
	struct h_manager *m;		/* the one whose locks are held */
	struct h_manager *peer;
	struct h_channel *ch;
	struct h_channel *other;
};

/* ---- the locks ------------------------------------------------------------- */

enum lock {
	MANAGER, POLLING, PAYING, AREAS, DEVICE, SENDER, RECEIVER, SENDING, READING, CHANNEL,
	TERMINUS, LOCKS
};

static const char *const lock_names[] = {
	"the manager's", "that of who polls", "that of who pays", "that of areas", "the device's",
	"the sender's", "the receiver's", "that of who sends", "that of who receives",
	"the channel's", "the terminus'",
};

static uint32_t *word_of(const struct scene *s, enum lock lock)
{
	uint32_t *const words[] = {
		&s->m->lock, &s->m->polling, &s->m->paying, &s->m->area_lock, &s->dev[0]->lock,
		&s->ch->sender->r.lock, &s->ch->receiver->r.lock, &s->ch->sender->sending,
		&s->ch->receiver->reading, &s->ch->lock, &s->m->terminus->lock,
	};

	return words[lock];
}

static void take(const struct scene *s, enum lock lock)
{
	if (lock != TERMINUS)
		h__lock(word_of(s, lock));
	else if (s->m->terminus->priv)
		h__shm_hold(s->m->terminus->priv);
	else
		while (!h__terminus_lock(s->m->terminus))
			;
}

static void let_go(const struct scene *s, enum lock lock)
{
	if (lock != TERMINUS)
		h__unlock(word_of(s, lock));
	else if (s->m->terminus->priv)
		h__shm_release(s->m->terminus->priv);
	else
		h__terminus_unlock(s->m->terminus);
}

/* ---- the calls ------------------------------------------------------------- */

static int receive_for(struct scene *s, int64_t timeout_ns)
{
	struct h_message m;
	int ret = h_channel_receive(s->ch, &m, timeout_ns);

	if (ret == 0)
		h_channel_release(s->ch, &m);
	return ret;
}

static int receive(struct scene *s)
{
	return receive_for(s, H_NOWAIT);
}

/* Something has come before. */
static int receive_in_time(struct scene *s)
{
	return receive_for(s, 400 * HT_MS);
}

static int send_word(struct scene *s)
{
	return h_channel_send(s->ch, "x", 1, H_NOWAIT);
}

static int send_raw(struct scene *s)
{
	int64_t ret = h_send_word(s->m->terminus, &s->m->self_ticket, 0);

	return ret < 0 ? (int)ret : 0;
}

static int poll_once(struct scene *s)
{
	h_manager_poll(s->m);
	return 0;
}

static int dispatch(struct scene *s)
{
	return h_manager_dispatch(s->m);
}

static int wait_none(struct scene *s)
{
	return h_manager_wait(s->m, H_NOWAIT);
}

static int drain(struct scene *s)
{
	return h_manager_drain(s->m, H_NOWAIT);
}

static int allocate(struct scene *s)
{
	void *p;
	int err = h_manager_alloc(s->m, 64, &p);

	return err ? err : h_manager_free(s->m, p);
}

static int explain(struct scene *s)
{
	char text[256];

	return h_explain(s->dev[0], text, sizeof(text));
}

static const struct {
	const char *name;
	int (*call)(struct scene *s);
} calls[] = {
	{ "h_channel_receive", receive },
	{ "h_channel_receive, which waits", receive_in_time },
	{ "h_channel_send", send_word },
	{ "h_send_word", send_raw },
	{ "h_manager_poll", poll_once },
	{ "h_manager_dispatch", dispatch },
	{ "h_manager_wait", wait_none },
	{ "h_manager_drain", drain },
	{ "h_manager_alloc", allocate },
	{ "h_explain", explain },
};

/* ---- three threads on one processor ---------------------------------------- */

struct act {
	struct scene *scene;
	enum lock lock;
	int (*call)(struct scene *s);
	sem_t held;		/* the low one has the lock */
	sem_t go;		/* the middle one may begin */
	int done;		/* the high one has called; atomic */
	int result;
	int64_t took;		/* its processor time */
	bool hogged;		/* the middle one had all of its time before */
};

static void work(int64_t ns)
{
	const int64_t begin = ht_thread_ns();

	while (ht_thread_ns() - begin < ns)
		;
}

static void *low(void *arg)
{
	struct act *a = arg;

	take(a->scene, a->lock);
	sem_post(&a->held);
	work(SECTION_NS);
	let_go(a->scene, a->lock);
	return NULL;
}

static void *middle(void *arg)
{
	struct act *a = arg;
	int64_t begin;

	sem_wait(&a->go);
	begin = ht_thread_ns();
	while (!__atomic_load_n(&a->done, __ATOMIC_ACQUIRE) && !a->hogged)
		a->hogged = ht_thread_ns() - begin > HOG_NS;
	return NULL;
}

static void *high(void *arg)
{
	struct act *a = arg;
	int64_t begin;

	sem_wait(&a->held);
	sem_post(&a->go);
	begin = ht_thread_ns();
	a->result = a->call(a->scene);
	a->took = ht_thread_ns() - begin;
	__atomic_store_n(&a->done, 1, __ATOMIC_RELEASE);
	return NULL;
}

/* 0, or EPERM where there is no right to real-time priorities. */
static int start(pthread_t *thread, int priority, void *(*fn)(void *arg), void *arg)
{
	struct sched_param param = { .sched_priority = priority };
	pthread_attr_t attr;
	cpu_set_t set, one;
	int cpu = 0, err;

	CPU_ZERO(&one);
	sched_getaffinity(0, sizeof(set), &set);
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	CPU_SET(cpu, &one);
	pthread_attr_init(&attr);
	pthread_attr_setaffinity_np(&attr, sizeof(one), &one);
	pthread_attr_setinheritsched(&attr, PTHREAD_EXPLICIT_SCHED);
	pthread_attr_setschedpolicy(&attr, priority ? SCHED_FIFO : SCHED_OTHER);
	pthread_attr_setschedparam(&attr, &param);
	err = pthread_create(thread, &attr, fn, arg);
	pthread_attr_destroy(&attr);
	return err;
}

/* NULL, or what went wrong. */
static const char *perform(struct act *a)
{
	pthread_t threads[3];

	sem_init(&a->held, 0, 0);
	sem_init(&a->go, 0, 0);
	if (start(&threads[0], HIGH, high, a) || start(&threads[1], MIDDLE, middle, a) ||
	    start(&threads[2], 0, low, a))
		return "no threads";
	pthread_join(threads[0], NULL);
	pthread_join(threads[1], NULL);
	pthread_join(threads[2], NULL);
	if (a->hogged)
		return "it waited for one that another thread kept from the processor";
	if (a->took > OWN_NS * ht_scale())
		return "it kept the processor from the one that it waited for";
	return a->result < 0 && a->result != -EAGAIN ? "it failed" : NULL;
}

static void *nothing(void *arg)
{
	return arg;
}

static bool may_be_real_time(void)
{
	pthread_t thread;

	if (start(&thread, MIDDLE, nothing, NULL))
		return false;
	pthread_join(thread, NULL);
	return true;
}

/* ---- the tests ------------------------------------------------------------- */

FIXTURE(priority) {
	struct scene scene;
};

/* @spin_ns: of the one whose locks are held. 0 or an errno. */
static int begin(struct scene *s, int64_t spin_ns)
{
	const struct h_manager_attr attr = { .spin_ns = spin_ns };

	return ht_open(&s->dev[0]) ?: ht_open(&s->dev[1]) ?:
	       h_manager_create(s->dev[0], &attr, &s->m) ?:
	       h_manager_create(s->dev[1], NULL, &s->peer) ?:
	       h_channel_pair(s->m, s->peer, NULL, &s->ch, &s->other) ?:
	       /* What both say first. */
	       h_channel_send(s->other, "first", 5, ht_patience_ns()) ?:
	       h_channel_send(s->ch, "first", 5, ht_patience_ns());
}

static void end(struct scene *s)
{
	h_channel_close(s->ch, H_NOWAIT);
	h_channel_close(s->other, H_NOWAIT);
	h_manager_destroy(s->m);
	h_manager_destroy(s->peer);
	h_close(s->dev[0]);
	h_close(s->dev[1]);
}

FIXTURE_SETUP(priority)
{
	ASSERT_EQ(0, begin(&self->scene, 0));
}

FIXTURE_TEARDOWN(priority)
{
	end(&self->scene);
}

TEST_F(priority, no_call_waits_for_who_is_kept_from_the_processor)
{
	struct scene *s = &self->scene;
	unsigned int lock, i;

	if (!may_be_real_time())
		SKIP(return, "no right to SCHED_FIFO");
	for (lock = 0; lock < LOCKS; lock++) {
		for (i = 0; i < ARRAY_SIZE(calls); i++) {
			struct act a = { .scene = s, .lock = lock, .call = calls[i].call };
			const char *wrong;

			/* There is something to receive, not taken yet, and room to send. */
			while (receive(s) == 0)
				;
			h_channel_send(s->other, "more", 4, H_NOWAIT);
			while (h_manager_poll(s->peer))
				;
			wrong = perform(&a);
			if (wrong)
				TH_LOG("%s while %s lock is held: %s (%d)", calls[i].name,
				       lock_names[lock], wrong, a.result);
			ASSERT_EQ(NULL, wrong);
		}
	}
}

/* It neither yields nor sleeps, whatever keeps it from taking what comes. */
TEST_F(priority, who_never_sleeps_does_not_keep_a_poller_from_the_processor)
{
	struct act a = { .lock = POLLING, .call = receive_in_time };
	struct scene spins;
	const char *wrong;

	if (!may_be_real_time())
		SKIP(return, "no right to SCHED_FIFO");
	ASSERT_EQ(0, begin(&spins, -1));
	a.scene = &spins;
	while (receive(&spins) == 0)
		;
	ASSERT_EQ(0, h_channel_send(spins.other, "more", 4, ht_patience_ns()));
	wrong = perform(&a);
	EXPECT_EQ(NULL, wrong) {
		TH_LOG("%s", wrong);
	}
	EXPECT_EQ(0, a.result);
	end(&spins);
}

struct holder {
	struct scene *scene;
	enum lock lock;
	sem_t held;
	sem_t end;
};

static void *hold(void *arg)
{
	struct holder *h = arg;

	take(h->scene, h->lock);
	sem_post(&h->held);
	sem_wait(&h->end);
	let_go(h->scene, h->lock);
	return NULL;
}

/* Their holders may wait for other processes, or for as long as the caller likes. */
static const enum lock slow_locks[] = { SENDING, READING, AREAS, DEVICE, POLLING, TERMINUS };

TEST_F(priority, no_call_outlasts_its_time_because_another_thread_stands_still)
{
	static const int64_t timeouts[] = { H_NOWAIT, 20 * HT_MS };
	struct scene *s = &self->scene;
	struct h_message m;
	unsigned int i, j;

	while (h_channel_receive(s->ch, &m, H_NOWAIT) == 0)
		h_channel_release(s->ch, &m);
	for (i = 0; i < ARRAY_SIZE(slow_locks); i++) {
		struct holder h = { .scene = s, .lock = slow_locks[i] };
		pthread_t thread;

		sem_init(&h.held, 0, 0);
		sem_init(&h.end, 0, 0);
		ASSERT_EQ(0, pthread_create(&thread, NULL, hold, &h));
		sem_wait(&h.held);
		/* The holder goes on only behind these: that they return is what is tested. */
		for (j = 0; j < ARRAY_SIZE(timeouts); j++) {
			const int over = timeouts[j] ? -ETIMEDOUT : -EAGAIN;
			int ret;

			EXPECT_EQ(over, h_channel_receive(s->ch, &m, timeouts[j]));
			ret = h_channel_send(s->ch, "x", 1, timeouts[j]);
			EXPECT_EQ(h.lock == SENDING || h.lock == TERMINUS ? over : 0, ret);
			h_manager_wait(s->m, timeouts[j]);
			h_manager_drain(s->m, timeouts[j]);
		}
		sem_post(&h.end);
		pthread_join(thread, NULL);
	}
}

static int send_in_a_ms(struct scene *s)
{
	return h_channel_send(s->ch, "x", 1, HT_MS);
}

/* A send of the library's own looks whether the terminus is free each time that it tries. */
TEST_F(priority, a_send_looks_at_the_clock_however_long_each_try_takes)
{
	struct holder h = { .scene = &self->scene, .lock = TERMINUS };
	int64_t begin, least = INT64_MAX, took;
	pthread_t thread;
	int i;

	sem_init(&h.held, 0, 0);
	sem_init(&h.end, 0, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, hold, &h));
	sem_wait(&h.held);
	for (i = 0; i < 5; i++) {
		begin = ht_now_ns();
		EXPECT_EQ(-ETIMEDOUT, send_in_a_ms(&self->scene));
		took = ht_now_ns() - begin;
		if (took < least)
			least = took;
	}
	sem_post(&h.end);
	pthread_join(thread, NULL);
	/* 32 tries are 160 ms and more. */
	EXPECT_LT(least, 100 * HT_MS);
}

/* The longest that it takes to receive what is there, each with no time to wait; ns, or -1. */
static int64_t receive_all(struct scene *s)
{
	int64_t longest = 0, begin, took;
	int i;

	while (h_manager_poll(s->m))
		;
	for (i = 0; i < 1000; i++) {
		begin = ht_now_ns();
		if (receive(s))
			return i > 8 ? longest : -1;
		took = ht_now_ns() - begin;
		if (took > longest)
			longest = took;
	}
	return -1;
}

/* Credits are due, and cannot be sent. */
TEST_F(priority, who_receives_does_not_wait_for_the_terminus_of_its_credits)
{
	struct holder h = { .scene = &self->scene, .lock = TERMINUS };
	int64_t least = INT64_MAX, longest;
	struct ht_poll poll;
	pthread_t thread;
	int i;

	for (i = 0; i < 3; i++) {
		while (!h_channel_send(self->scene.other, "more", 4, H_NOWAIT))
			h_manager_poll(self->scene.peer);
		sem_init(&h.held, 0, 0);
		sem_init(&h.end, 0, 0);
		ASSERT_EQ(0, pthread_create(&thread, NULL, hold, &h));
		sem_wait(&h.held);
		longest = receive_all(&self->scene);
		sem_post(&h.end);
		pthread_join(thread, NULL);
		EXPECT_LE(0, longest);
		if (longest < least)
			least = longest;
		/* What was due goes now. */
		ASSERT_EQ(0, h_manager_drain(self->scene.m, ht_patience_ns()));
		ht_poll_begin(&poll);
		while (!h_manager_poll(self->scene.peer) && ht_poll_more(&poll))
			h_manager_poll(self->scene.m);
	}
	EXPECT_LT(least, 100 * HT_MS);
}

static void *poll_only(void *arg)
{
	struct scene *s = arg;
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (!h_manager_poll(s->m))
		if (!ht_poll_more(&poll))
			return NULL;
	return arg;
}

TEST_F(priority, a_thread_that_does_nothing_but_poll_takes_what_comes)
{
	struct scene *s = &self->scene;
	pthread_t thread;
	void *took;

	ASSERT_EQ(0, h_channel_send(s->other, "more", 4, ht_patience_ns()));
	ASSERT_EQ(0, pthread_create(&thread, NULL, poll_only, s));
	pthread_join(thread, &took);
	EXPECT_EQ(s, took);
}

TEST_F(priority, a_raw_send_says_that_another_thread_stands_still)
{
	struct holder h = { .scene = &self->scene, .lock = TERMINUS };
	pthread_t thread;

	sem_init(&h.held, 0, 0);
	sem_init(&h.end, 0, 0);
	ASSERT_EQ(0, pthread_create(&thread, NULL, hold, &h));
	sem_wait(&h.held);
	EXPECT_EQ(-EAGAIN, send_raw(&self->scene));
	sem_post(&h.end);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, send_raw(&self->scene));
}

/* ---- the lock itself ------------------------------------------------------- */

#define THREADS	8
#define TURNS	2000

struct counted {
	uint32_t lock;
	unsigned int count;
	bool until;
};

static void *count(void *arg)
{
	struct counted *c = arg;
	int i;

	for (i = 0; i < TURNS; i++) {
		if (!c->until)
			h__lock(&c->lock);
		else
			while (h__lock_until(&c->lock, h__now_ns() + HT_MS))
				;
		c->count++;
		/* Now and then in the middle of it, so that others have to sleep. */
		if (i % 100 == 0)
			ht_sleep_ns(HT_MS / 10);
		h__unlock(&c->lock);
	}
	return NULL;
}

TEST(a_lock_is_one_threads)
{
	struct counted c = { 0 };
	pthread_t threads[THREADS];
	int i;

	do {
		c.count = 0;
		for (i = 0; i < THREADS; i++)
			ASSERT_EQ(0, pthread_create(&threads[i], NULL, count, &c));
		for (i = 0; i < THREADS; i++)
			pthread_join(threads[i], NULL);
		EXPECT_EQ(THREADS * TURNS, c.count);
		EXPECT_EQ(0, c.lock);
		c.until = !c.until;
	} while (c.until);
}

TEST(a_lock_that_is_held_is_waited_for_until_the_deadline)
{
	uint32_t lock = 0;
	int64_t begin;

	h__lock(&lock);
	EXPECT_FALSE(h__try_lock(&lock));
	EXPECT_EQ(-EAGAIN, h__lock_until(&lock, H_NOWAIT));
	h__unlock(&lock);
	ASSERT_TRUE(h__try_lock(&lock));
	h__unlock(&lock);
	/* A thread that there is not: the kernel does not help. */
	lock = 0x3ffffffe;
	begin = h__now_ns();
	EXPECT_EQ(-ETIMEDOUT, h__lock_until(&lock, begin + 20 * HT_MS));
	EXPECT_LE(20 * HT_MS, h__now_ns() - begin);
	EXPECT_EQ(0x3ffffffe, lock & 0x3fffffff);
}

static void *take_forever(void *arg)
{
	h__lock(arg);
	h__unlock(arg);
	return arg;
}

TEST(a_lock_of_nobody_is_taken_when_it_is_free)
{
	uint32_t lock = 0x3ffffffe;
	pthread_t thread;

	ASSERT_EQ(0, pthread_create(&thread, NULL, take_forever, &lock));
	ht_sleep_ns(10 * HT_MS);
	__atomic_store_n(&lock, 0, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	EXPECT_EQ(0, lock);
}

/* What the call backs of fork() do. */
TEST(a_child_knows_its_own_number)
{
	struct h_dev *dev, *its;
	pid_t child;

	ASSERT_EQ(0, ht_open(&dev));
	ASSERT_EQ((uint32_t)syscall(SYS_gettid), h__thread_number());
	child = ht_fork();
	if (!child)
		_exit(h__thread_number() != (uint32_t)getpid() || ht_open(&its));
	EXPECT_EQ(0, ht_reap(child));
	h_close(dev);
}

TEST_HARNESS_MAIN
