// SPDX-License-Identifier: GPL-2.0-only
/*
 * A task that loses the processor while it is about to wake a receiver keeps nobody else from
 * waking it. A task of a low priority sends to it without end; at random a real-time thread takes
 * its processor for as long as it takes another sender to be heard. Kernel device only, run
 * as root, on two processors. Without preemption in the kernel it never loses it there.
 *
 * And what workers do to wake a crowd is bounded by what the crowd's user has worked itself.
 */
#include "kselftest_harness.h"
#include "calls.h"
#include "hostile.h"
#include "genl.h"
#include "nics.h"

#include <dirent.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/sysinfo.h>
#include <time.h>

#define ROUNDS		300
#define END		UINT64_MAX
/* The kernel gives others some of the processor that is taken, each second: by then a host
 * that is busy may have kept the receiver from it, too.
 */
#define LATE		3
#define UNHURRIED	2000		/* loops between two messages: the receiver falls asleep */

/* Of the library: sleep until the NQ has something. */
int h__nq_sleep(struct h_nq *nq, int64_t deadline_ns);

FIXTURE(hostile_wake) {
	struct genl g;
	int nic;
	struct ht_pair pair;
	struct h_dev *dev;		/* of the other sender */
	struct h_terminus *terminus;
	struct h_ticket fast;
	/* atomic */
	uint64_t sent;			/* by the first one */
	uint64_t heard;			/* the last word of the other sender */
	uint32_t take;			/* the processor is to be taken: */
	uint32_t taken;			/* it is */
	uint32_t stop;
	int failed;
	unsigned int late;		/* heard when the first one had its processor again */
};

FIXTURE_SETUP(hostile_wake)
{
	const struct ht_pair_attr attr = { .length = 4096 };
	const struct h_terminus_attr terminus = { 0 };
	const struct nic_wish wish = { HAMLYN_A_ENGINE_MODE,
				       HAMLYN_NL_ENGINE_INLINE };

	ASSERT_EQ(0, genl_open(&self->g, HAMLYN_FAMILY_NAME,
			       HAMLYN_FAMILY_VERSION));
	self->nic = nic_make(&self->g, &wish, 1);
	ASSERT_LE(0, self->nic);
	nic_use((uint32_t)self->nic);
	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	ASSERT_EQ(0, ht_open(&self->dev));
	ASSERT_EQ(0, h_terminus_create(self->dev, &terminus, &self->terminus));
	self->fast = self->pair.ticket;
	self->fast.meta_index = HAMLYN_META_FAST;
}

FIXTURE_TEARDOWN(hostile_wake)
{
	h_close(self->dev);
	ht_pair_close(&self->pair);
	EXPECT_EQ(0, nic_delete_soon(&self->g, (uint32_t)self->nic));
	genl_close(&self->g);
}

static int run_on(int cpu, int policy, int priority)
{
	const struct sched_param param = { .sched_priority = priority };
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return pthread_setaffinity_np(pthread_self(), sizeof(set), &set) ?:
	       pthread_setschedparam(pthread_self(), policy, &param);
}

static void *receive(void *arg)
{
	FIXTURE_DATA(hostile_wake) *self = arg;
	struct hamlyn_nq_entry e;
	int ret;

	for (;;) {
		ret = h_recv(self->pair.nq, &e);
		if (!ret)
			ret = h__nq_sleep(self->pair.nq, -1);
		else if (ret == 1 && e.data)
			__atomic_store_n(&self->heard, e.data, __ATOMIC_RELEASE);
		if (ret < 0 && ret != -EOVERFLOW && ret != -EINTR)
			self->failed = ret;
		if (self->failed || self->heard == END)
			return NULL;
	}
}

static void *send_without_end(void *arg)
{
	FIXTURE_DATA(hostile_wake) *self = arg;
	const struct h_msg m = { .ticket = &self->fast };
	int i;

	self->failed = run_on(0, SCHED_BATCH, 0);
	while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED)) {
		ht_send(self->pair.terminus, &m);
		__atomic_fetch_add(&self->sent, 1, __ATOMIC_RELAXED);
		for (i = 0; i < UNHURRIED; i++)
			__asm__ volatile("" ::: "memory");
	}
	return NULL;
}

static void *take_processor(void *arg)
{
	FIXTURE_DATA(hostile_wake) *self = arg;

	if (run_on(0, SCHED_FIFO, 1))
		self->failed = -EPERM;
	while (!__atomic_load_n(&self->stop, __ATOMIC_RELAXED)) {
		ht_sleep_ns(HT_MS / 2);
		if (!__atomic_load_n(&self->take, __ATOMIC_ACQUIRE))
			continue;
		__atomic_store_n(&self->taken, 1, __ATOMIC_RELEASE);
		while (__atomic_load_n(&self->take, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&self->taken, 0, __ATOMIC_RELEASE);
	}
	return NULL;
}

static bool flag_becomes(const uint32_t *flag, uint32_t value)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) != value)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

/* Again and again: it is lost when the first sender has filled the queue. */
static const char *say_until_heard(FIXTURE_DATA(hostile_wake) *self, uint64_t word)
{
	const struct h_msg m = { .ticket = &self->fast, .word = word };
	struct ht_poll poll;
	int i;

	ht_poll_begin(&poll);
	while (ht_poll_more(&poll)) {
		if (ht_send(self->terminus, &m) < 0)
			return "not sent";
		for (i = 0; i < 100; i++) {
			if (__atomic_load_n(&self->heard, __ATOMIC_ACQUIRE) >= word)
				return NULL;
			ht_sleep_ns(HT_MS / 10);
		}
	}
	return "the other sender is not heard";
}

/* While the first sender has no processor: NULL, or what went wrong. */
static const char *other_is_heard(FIXTURE_DATA(hostile_wake) *self, uint64_t word)
{
	const char *wrong;
	uint64_t sent;

	ht_sleep_ns((int64_t)(rand() % 2000) * 1000);
	__atomic_store_n(&self->take, 1, __ATOMIC_RELEASE);
	if (!flag_becomes(&self->taken, 1)) {
		__atomic_store_n(&self->take, 0, __ATOMIC_RELEASE);
		return "the processor was not taken";
	}
	sent = __atomic_load_n(&self->sent, __ATOMIC_RELAXED);
	wrong = say_until_heard(self, word);
	self->late += __atomic_load_n(&self->sent, __ATOMIC_RELAXED) != sent;
	__atomic_store_n(&self->take, 0, __ATOMIC_RELEASE);
	return flag_becomes(&self->taken, 0) ? wrong : "the processor was not given back";
}

TEST_F(hostile_wake, who_loses_the_processor_keeps_nobody_from_waking)
{
	void *(*const run[])(void *) = { receive, send_without_end, take_processor };
	const char *wrong = NULL;
	pthread_t threads[3];
	uint64_t i;

	if (get_nprocs() < 2)
		SKIP(return, "one processor");
	ASSERT_EQ(0, run_on(1, SCHED_OTHER, 0));
	for (i = 0; i < 3; i++)
		ASSERT_EQ(0, pthread_create(&threads[i], NULL, run[i], self));
	for (i = 1; i <= ROUNDS && !wrong; i++)
		wrong = other_is_heard(self, i);
	EXPECT_NO(wrong) {
		TH_LOG("round %lu", (unsigned long)i - 1);
	}
	__atomic_store_n(&self->stop, 1, __ATOMIC_RELEASE);
	pthread_join(threads[1], NULL);
	pthread_join(threads[2], NULL);
	EXPECT_NO(say_until_heard(self, END));
	pthread_join(threads[0], NULL);
	EXPECT_EQ(0, self->failed);
	EXPECT_GE(LATE, self->late);
	TH_LOG("%u of %u late", self->late, ROUNDS);
}

/* ---- who pays for it ---- */

#define CROWD		31		/* epolls, and files in each: less than may poll */
#define NESTED		15		/* epolls that are in another one */
#define CROWDS		8		/* contexts with such a crowd */
#define WAKES		150
#define CALLS		1000		/* of names need nobody to be armed, and are cheap */
#define TRIES		3		/* on a machine that is busy with something else */
/*
 * driver/engine/loan.c: what is lent, and what may be overdrawn before wake-ups are late; and some
 * for what else workers do, each of which tells its time in hundredths of a second.
 */
#define LENT_NS		((20 + 20 + 160) * HT_MS)
/* Of its own time: what the kernel needs to run a worker is not measured, and is nobody's. */
#define MOST_TIMES(ns)	((ns) * 5 / 2)

/* Processor time of one task, if it is a worker of no processor; else 0. */
static int64_t worker_ns(const char *pid)
{
	unsigned long utime, stime;
	char path[300], line[512];
	const char *end = NULL;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return 0;
	if (fgets(line, sizeof(line), f) && strstr(line, "(kworker/u"))
		end = strrchr(line, ')');
	fclose(f);
	if (!end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
			   &utime, &stime) != 2)
		return 0;
	return (int64_t)(utime + stime) * (HT_SEC / sysconf(_SC_CLK_TCK));
}

static int64_t workers_ns(void)
{
	const struct dirent *entry;
	DIR *dir = opendir("/proc");
	int64_t ns = 0;

	while (dir && (entry = readdir(dir)))
		ns += worker_ns(entry->d_name);
	if (dir)
		closedir(dir);
	return ns;
}

static int64_t own_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * HT_SEC + t.tv_nsec;
}

/*
 * As many entries of epolls as may be; nobody has to sleep there. Each entry of an epoll that is
 * in another one is two to be woken.
 */
static int crowd(int fd)
{
	struct epoll_event event = { .events = EPOLLIN };
	int outer = epoll_create1(EPOLL_CLOEXEC);
	int fds[CROWD], i, j, epoll;

	for (i = 0; i < CROWD; i++) {
		fds[i] = dup(fd);
		if (fds[i] < 0)
			return -errno;
	}
	for (i = 0; i < CROWD; i++) {
		epoll = epoll_create1(EPOLL_CLOEXEC);
		if (epoll < 0)
			return -errno;
		for (j = 0; j < CROWD; j++)
			if (epoll_ctl(epoll, EPOLL_CTL_ADD, fds[j], &event))
				return -errno;
		if (i < NESTED && epoll_ctl(outer, EPOLL_CTL_ADD, epoll, &event))
			return -errno;
	}
	return 0;
}

/* A message to each, by one doorbell: 0 when all have landed. */
static int post_to_all(struct party *crowds)
{
	struct ht_raw_terminus *t = &crowds[0].terminus;
	struct hamlyn_trb trb;
	int i, status;

	for (i = 0; i < CROWDS; i++) {
		trb = to_party(&crowds[i]);
		memset(ht_raw_entry(t), 0, t->arg.entry_size);
		memcpy(ht_raw_entry(t), &trb, sizeof(trb));
		t->producer++;
	}
	if (ht_raw_publish(t, t->producer) < 0 || ht_raw_done(t, t->producer - 1, &status))
		return -ETIMEDOUT;
	return status;
}

/* One call arms them all, and one has them all woken. */
static int wake_once(struct party *crowds, struct pollfd *looks)
{
	int i;

	if (poll(looks, CROWDS, 0))
		return 11;
	if (post_to_all(crowds))
		return 12;
	ht_sleep_ns(10 * HT_MS);
	for (i = 0; i < CROWDS; i++)
		if (!came(&crowds[i]))
			return 13;
	return 0;
}

/* What a user, and workers for it, have worked since. */
struct work {
	int64_t begin;
	int64_t own;
	int64_t workers;
};

static struct work work_begin(void)
{
	return (struct work) { ht_now_ns(), own_ns(), workers_ns() };
}

/* 0 if workers have worked no more for it than they may, -1 to try again, else what failed. */
static int work_end(const struct work *w, int wakes)
{
	int64_t own = own_ns() - w->own, workers = workers_ns() - w->workers;

	fprintf(stderr, "# %d x %d wake-ups: %d ms of its own, %d ms of workers, in %d ms\n",
		wakes, CROWDS, (int)(own / HT_MS), (int)(workers / HT_MS),
		(int)((ht_now_ns() - w->begin) / HT_MS));
	/* One that has ended took what it had worked along. */
	if (workers < 0)
		return -1;
	/* They have woken thousands. */
	if (!workers)
		return 3;
	return workers > LENT_NS + MOST_TIMES(own) ? -1 : 0;
}

static int wake_often(struct party *crowds, struct pollfd *looks)
{
	struct work work = work_begin();
	int i, ret = 0;

	for (i = 0; i < WAKES && !ret; i++)
		ret = wake_once(crowds, looks);
	return ret ?: work_end(&work, WAKES);
}

static int wake_crowds(void *arg)
{
	struct pollfd looks[CROWDS];
	struct party crowds[CROWDS];
	int i, ret = -1;

	(void)arg;
	for (i = 0; i < CROWDS; i++) {
		if (party_open(&crowds[i]) || crowd(crowds[i].fd))
			return 1;
		looks[i] = (struct pollfd) { .fd = crowds[i].fd, .events = POLLIN };
	}
	for (i = 0; i < TRIES && ret == -1; i++)
		ret = wake_often(crowds, looks);
	return ret == -1 ? 2 : ret;
}

TEST_F(hostile_wake, workers_wake_a_crowd_for_what_its_user_has_worked)
{
	EXPECT_EQ(0, as(somebody(1), wake_crowds, NULL));
}

static int call_often(int dev, uint32_t host)
{
	struct work work = work_begin();
	char name[8];
	int i, j, call;

	for (i = 0; i < CALLS; i++) {
		for (j = 0; j < CROWDS; j++) {
			snprintf(name, sizeof(name), "crowd%d", j);
			call = raw_call(dev, host, name);
			if (call < 0)
				return 12;
			close(call);
		}
		ht_sleep_ns(HT_MS);
	}
	return work_end(&work, CALLS);
}

static int call_crowds(void *arg)
{
	int dev = ht_raw_open(), name, i, ret = -1;
	struct hamlyn_query query;
	char text[8];

	(void)arg;
	if (dev < 0 || ht_raw_query(dev, &query))
		return 1;
	for (i = 0; i < CROWDS; i++) {
		snprintf(text, sizeof(text), "crowd%d", i);
		name = raw_listen(dev, text);
		if (name < 0 || crowd(name))
			return 1;
	}
	for (i = 0; i < TRIES && ret == -1; i++)
		ret = call_often(dev, query.host);
	return ret == -1 ? 2 : ret;
}

TEST_F(hostile_wake, calls_wake_a_crowd_for_what_its_user_has_worked)
{
	EXPECT_EQ(0, as(somebody(2), call_crowds, NULL));
}

TEST_HARNESS_MAIN
