// SPDX-License-Identifier: GPL-2.0-only
/* When and where a bridge's threads run, beside processes that keep their processors. */
#include "bridge_hosts.h"

#include <dirent.h>
#include <sched.h>
#include <sys/syscall.h>

#define MOST_THREADS	8
#define SLICE_NS	100000
#define ROUNDS		64

/* struct sched_attr, up to what is looked at */
struct attributes {
	u32 size, policy;
	u64 flags;
	s32 nice;
	u32 priority;
	u64 runtime, deadline, period;
};

/* The slice of a thread, 0 where Linux does not tell (before 6.12), or a negative errno */
static int64_t slice_of(pid_t tid)
{
	struct attributes a = { .size = sizeof(a) };

	if (syscall(SYS_sched_getattr, tid, &a, sizeof(a), 0))
		return -errno;
	return a.policy == SCHED_OTHER ? (int64_t)a.runtime : -EINVAL;
}

static int threads_of(pid_t pid, pid_t tid[MOST_THREADS])
{
	const struct dirent *e;
	char path[64];
	int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	d = opendir(path);
	while (d && n < MOST_THREADS && (e = readdir(d)))
		if (e->d_name[0] != '.')
			tid[n++] = atoi(e->d_name);
	if (d)
		closedir(d);
	return n;
}

static int send_word(struct host *a, const struct host *b)
{
	const struct h_msg m = { .ticket = &b->ticket, .length = 8, .data = a->data };

	return ht_send_sync(a->terminus, &m) == 1 ? 0 : -1;
}

static int gets_word(struct host *b)
{
	struct hamlyn_nq_entry e;

	return ht_recv(b->nq, &e) == 1 ? 0 : -1;
}

/* What a sender says of itself is there until the bridge has woken up. */
static bool waker_becomes(const struct host *a, u32 waker)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (READ_ONCE(seg_of(a)->bridge.waker) != waker)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

static bool falls_asleep(const struct host *a)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (!READ_ONCE(seg_of(a)->bridge.asleep))
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

/* Asleep, and stopped there: it wakes up four times a second by itself. */
static bool is_stopped_asleep(const struct host *a)
{
	int status;

	for (;;) {
		if (!falls_asleep(a) || kill(a->bridge, SIGSTOP) ||
		    waitpid(a->bridge, &status, WUNTRACED) != a->bridge || !WIFSTOPPED(status))
			return false;
		if (READ_ONCE(seg_of(a)->bridge.asleep))
			return true;
		kill(a->bridge, SIGCONT);
	}
}

/* Return: its number */
static int stay_on_one(void)
{
	int cpu = CPU_SETSIZE - 1;
	cpu_set_t may, there;

	if (sched_getaffinity(0, sizeof(may), &may))
		return -1;
	while (!CPU_ISSET(cpu, &may))
		cpu--;
	CPU_ZERO(&there);
	CPU_SET(cpu, &there);
	return sched_setaffinity(0, sizeof(there), &there) ? -1 : cpu;
}

TEST_F(bridge, its_threads_have_a_short_slice)
{
	pid_t tid[MOST_THREADS];
	int n, i;

	if (!slice_of(0))
		SKIP(return, "Linux 6.12 or later");
	n = threads_of(self->host[0].bridge, tid);
	EXPECT_GE(n, 3);
	for (i = 0; i < n; i++)
		EXPECT_EQ(SLICE_NS, slice_of(tid[i]));
}

TEST_F(bridge, it_is_told_where_it_is_woken_from)
{
	struct host *a = &self->host[0], *b = &self->host[1];
	int cpu = stay_on_one();

	ASSERT_GE(cpu, 0);
	EXPECT_TRUE(is_stopped_asleep(a));
	EXPECT_EQ(0, send_word(a, b));
	EXPECT_TRUE(waker_becomes(a, (u32)cpu + 1));
	kill(a->bridge, SIGCONT);
	EXPECT_EQ(0, gets_word(b));
	EXPECT_TRUE(waker_becomes(a, 0));
}

/* Any number may be there, and anybody may write it again and again. */
TEST_F(bridge, it_may_run_afterwards_where_it_might_before)
{
	struct host *a = &self->host[0], *b = &self->host[1];
	pid_t tid[MOST_THREADS];
	cpu_set_t may, now;
	int n, i;

	for (i = 0; i < ROUNDS; i++) {
		EXPECT_TRUE(falls_asleep(a));
		WRITE_ONCE(seg_of(a)->bridge.waker, i % 16 ? (u32)i / 16 + 1 : UINT32_MAX);
		h__shm_bell(seg_of(a));
		ht_sleep_ns(HT_MS);
	}
	EXPECT_EQ(0, send_word(a, b));
	EXPECT_EQ(0, gets_word(b));
	ASSERT_EQ(0, sched_getaffinity(0, sizeof(may), &may));
	n = threads_of(a->bridge, tid);
	for (i = 0; i < n; i++) {
		ASSERT_EQ(0, sched_getaffinity(tid[i], sizeof(now), &now));
		EXPECT_TRUE(CPU_EQUAL(&may, &now));
	}
}

TEST_HARNESS_MAIN
