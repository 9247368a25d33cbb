// SPDX-License-Identifier: GPL-2.0-only
/* Gathers and barriers among threads and processes; who is gone is told. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include <hamlyn/barrier.h>
#include <hamlyn/gather.h>

#include "kselftest_harness.h"
#include "hamlyn_test.h"

#define MOST		5	/* members, and one more: the root */
#define GATHER_ROUNDS	7
#define BARRIER_ROUNDS	200
#define SHORT		(20 * HT_MS)

/* ---- what threads and processes do -------------------------------------- */

struct end {
	struct h_dev *dev;
	struct h_manager *m;
};

/* The first one is the root's. */
static int end_open(struct end *e, bool first)
{
	int err = first ? ht_open(&e->dev) : ht_open_tx(&e->dev);

	return err ? err : h_manager_create(e->dev, NULL, &e->m);
}

static int end_close(struct end *e)
{
	int err = h_manager_destroy(e->m);

	h_close(e->dev);
	return err;
}

/* What all of a test share; in shared memory. */
struct all {
	int participants;	/* with the root */
	uint64_t lengths[MOST];
	int rounds;
	int dies;		/* member that is killed in the middle, or -1 */
	int entered;
};

struct peer {
	struct all *all;
	int number;		/* of the member */
	struct h_seed seed;
	int fds[2];		/* for processes: where the seed comes from */
	pid_t pid;
	pthread_t thread;
	int (*run)(struct peer *peer);
	int result;
};

static uint64_t pattern(int member, int round)
{
	return (uint64_t)(round * 100 + member + 1);
}

static int gather_rounds(struct peer *p, struct h_gather_member *g,
			 unsigned char *data)
{
	uint64_t length = p->all->lengths[p->number];
	int i;

	if (h_gather_length(g) != length)
		return 4;
	for (i = 0; i < p->all->rounds; i++) {
		ht_fill(data, length, pattern(p->number, i));
		if (h_gather_send(g, data, length, ht_patience_ns()))
			return 5;
	}
	/* Some wait for the end, some leave at once. */
	if (p->number % 2 && h_gather_wait(g, ht_patience_ns()))
		return 6;
	return 0;
}

static int gather_peer(struct peer *p)
{
	struct h_gather_member *g;
	struct end e;
	void *data;
	int ret;

	if (end_open(&e, false))
		return 1;
	if (h_gather_join(e.m, &p->seed, &g))
		return 2;
	if (h_manager_alloc(e.m, p->all->lengths[p->number] + 1, &data))
		return 3;
	ret = gather_rounds(p, g, data);
	h_manager_free(e.m, data);
	if (h_gather_leave(g) && !ret)
		ret = 7;
	return end_close(&e) && !ret ? 8 : ret;
}

/* Nobody is out before all are in. */
static int barrier_rounds(struct all *all, struct h_barrier *b, bool dies)
{
	int i, n, err;

	for (i = 0; i < all->rounds; i++) {
		if (dies && i == all->rounds / 2)
			raise(SIGKILL);
		__atomic_fetch_add(&all->entered, 1, __ATOMIC_SEQ_CST);
		err = h_barrier_wait(b, ht_patience_ns());
		if (err)
			return err;
		n = __atomic_load_n(&all->entered, __ATOMIC_SEQ_CST);
		if (n < (i + 1) * all->participants ||
		    n > (i + 2) * all->participants)
			return -EBADE;
	}
	return 0;
}

static int barrier_peer(struct peer *p)
{
	struct h_barrier *b;
	struct end e;
	int ret;

	if (end_open(&e, false))
		return 1;
	if (h_barrier_join(e.m, &p->seed, &b))
		return 2;
	ret = -barrier_rounds(p->all, b, p->all->dies == p->number);
	if (h_barrier_destroy(b) && !ret)
		ret = 3;
	return end_close(&e) && !ret ? 4 : ret;
}

/* ---- peers -------------------------------------------------------------- */

static struct all *all_new(int participants, int rounds)
{
	struct all *all = mmap(NULL, sizeof(*all), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	all->participants = participants;
	all->rounds = rounds;
	all->dies = -1;
	/* It is found out in the first call: not in many threads. */
	ht_patience_ns();
	return all;
}

/* Processes are forked before the device is open, and get their seed later. */
static int peers_fork(struct peer *peers, struct all *all,
		      int (*run)(struct peer *))
{
	struct peer *p;
	int i;

	for (i = 0; i < all->participants - 1; i++) {
		p = &peers[i];
		*p = (struct peer) { .all = all, .number = i, .run = run };
		if (pipe(p->fds))
			return -errno;
		p->pid = ht_fork();
		if (p->pid < 0)
			return -errno;
		if (p->pid)
			continue;
		if (ht_read_all(p->fds[0], &p->seed, sizeof(p->seed)))
			_exit(9);
		_exit(run(p));
	}
	return 0;
}

static void *peer_thread(void *arg)
{
	struct peer *p = arg;

	p->result = p->run(p);
	return NULL;
}

static void peers_prepare(struct peer *peers, struct all *all,
			  int (*run)(struct peer *))
{
	int i;

	for (i = 0; i < all->participants - 1; i++)
		peers[i] = (struct peer) { .all = all, .number = i, .run = run };
}

static int peer_start(struct peer *p)
{
	if (p->pid)
		return ht_write_all(p->fds[1], &p->seed, sizeof(p->seed));
	return -pthread_create(&p->thread, NULL, peer_thread, p);
}

static int peer_end(struct peer *p)
{
	if (!p->pid) {
		pthread_join(p->thread, NULL);
		return p->result;
	}
	close(p->fds[0]);
	close(p->fds[1]);
	return ht_reap(p->pid);
}

/* ---- gathers ------------------------------------------------------------ */

static const char *wrong_round(const struct h_gather *g, const struct all *all,
			       const unsigned char *data, int round)
{
	int i;

	for (i = 0; i < all->participants - 1; i++) {
		uint64_t offset = h_gather_offset(g, (uint32_t)i);

		if (ht_match(data + offset, all->lengths[i],
			     pattern(i, round)) != all->lengths[i])
			return "wrong data";
	}
	return NULL;
}

static const char *gather_root(struct h_gather *g, struct all *all)
{
	const void *data;
	int i;

	for (i = 0; i < all->rounds; i++) {
		if (h_gather_receive(g, &data, ht_patience_ns()))
			return "no round";
		if (wrong_round(g, all, data, i))
			return "wrong data";
		if (h_gather_release(g))
			return "not released";
	}
	return NULL;
}

static void run_gather(struct __test_metadata *_metadata, int members,
		       uint64_t length, bool processes)
{
	struct all *all = all_new(members + 1, GATHER_ROUNDS);
	struct peer peers[MOST];
	struct h_gather *g;
	struct end e;
	int i;

	for (i = 0; i < members; i++)
		all->lengths[i] = length + length / 3 * (uint64_t)i;
	if (processes) {
		ASSERT_EQ(0, peers_fork(peers, all, gather_peer));
	} else {
		peers_prepare(peers, all, gather_peer);
	}
	ASSERT_EQ(0, end_open(&e, true));
	ASSERT_EQ(0, h_gather_create(e.m, (uint32_t)members, all->lengths, 0,
				     &g));
	for (i = 0; i < members; i++) {
		ASSERT_EQ(0, h_gather_seed(g, (uint32_t)i, &peers[i].seed));
		ASSERT_EQ(0, peer_start(&peers[i]));
	}
	EXPECT_NO(gather_root(g, all))
		TH_LOG("%d members, %llu bytes", members,
		       (unsigned long long)length);
	for (i = 0; i < members; i++) {
		EXPECT_EQ(0, peer_end(&peers[i]))
			TH_LOG("member %d of %d", i, members);
	}
	/* All have left, however they have done it. */
	EXPECT_EQ(-EPIPE, h_gather_receive(g, NULL, ht_patience_ns()));
	EXPECT_EQ(0, h_gather_destroy(g));
	EXPECT_EQ(0, end_close(&e));
	munmap(all, sizeof(*all));
}

static const uint64_t lengths[] = { 0, 1, 100, 4096, 70001 };

TEST(parts_of_threads_are_gathered)
{
	unsigned int i;
	int members;

	for (members = 1; members <= MOST; members += 2)
		for (i = 0; i < ARRAY_SIZE(lengths); i++)
			run_gather(_metadata, members, lengths[i], false);
}

TEST(parts_of_processes_are_gathered)
{
	unsigned int i;
	int members;

	for (members = 1; members <= MOST; members += 2)
		for (i = 0; i < ARRAY_SIZE(lengths); i++)
			run_gather(_metadata, members, lengths[i], true);
}

/* A root and two members, in one thread. */
FIXTURE(three) {
	struct end ends[3];
	struct h_gather *g;
	struct h_gather_member *members[2];
};

FIXTURE_SETUP(three)
{
	struct h_seed seed;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, end_open(&self->ends[i], !i));
	}
	ASSERT_EQ(0, h_gather_create(self->ends[0].m, 2, NULL, 8, &self->g));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, h_gather_seed(self->g, i, &seed));
		ASSERT_EQ(0, h_gather_join(self->ends[i + 1].m, &seed,
					   &self->members[i]));
	}
}

FIXTURE_TEARDOWN(three)
{
	int i;

	EXPECT_EQ(0, h_gather_leave(self->members[0]));
	EXPECT_EQ(0, h_gather_leave(self->members[1]));
	EXPECT_EQ(0, h_gather_destroy(self->g));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, end_close(&self->ends[i]));
	}
}

static int send_number(struct h_gather_member *m, uint64_t number,
		       int64_t timeout)
{
	return h_gather_send(m, &number, sizeof(number), timeout);
}

TEST_F(three, members_are_at_most_two_buffers_ahead)
{
	const uint64_t *first, *second;
	uint64_t i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, send_number(self->members[0], i, ht_patience_ns()));
		ASSERT_EQ(0, send_number(self->members[1], i + 10,
					 ht_patience_ns()));
	}
	EXPECT_EQ(-EAGAIN, send_number(self->members[0], 2, H_NOWAIT));
	EXPECT_EQ(-ETIMEDOUT, send_number(self->members[0], 2, SHORT));
	EXPECT_EQ(-EINVAL, h_gather_release(self->g));
	ASSERT_EQ(0, h_gather_receive(self->g, (const void **)&first,
				      ht_patience_ns()));
	ASSERT_EQ(0, h_gather_receive(self->g, (const void **)&second,
				      ht_patience_ns()));
	EXPECT_EQ(-EBUSY, h_gather_receive(self->g, NULL, H_NOWAIT));
	EXPECT_EQ(0, first[0]);
	EXPECT_EQ(10, first[1]);
	EXPECT_EQ(1, second[0]);
	EXPECT_EQ(11, second[1]);
	ASSERT_EQ(0, h_gather_release(self->g));
	ASSERT_EQ(0, send_number(self->members[0], 2, ht_patience_ns()));
	EXPECT_EQ(-ETIMEDOUT, send_number(self->members[0], 3, SHORT));
	EXPECT_EQ(-ETIMEDOUT, h_gather_wait(self->members[1], SHORT));
	ASSERT_EQ(0, h_gather_release(self->g));
	EXPECT_EQ(0, h_gather_wait(self->members[1], ht_patience_ns()));
	EXPECT_EQ(-ETIMEDOUT, h_gather_receive(self->g, NULL, SHORT));
	ASSERT_EQ(0, send_number(self->members[1], 12, ht_patience_ns()));
	EXPECT_EQ(0, h_gather_receive(self->g, (const void **)&first,
				      ht_patience_ns()));
	EXPECT_EQ(2, first[0]);
	EXPECT_EQ(12, first[1]);
}

TEST_F(three, what_a_member_did_before_it_left_is_good)
{
	uint64_t i;

	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, send_number(self->members[0], i, ht_patience_ns()));
	}
	ASSERT_EQ(0, h_gather_leave(self->members[0]));
	self->members[0] = NULL;
	EXPECT_EQ(-ETIMEDOUT, h_gather_receive(self->g, NULL, SHORT));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, send_number(self->members[1], i, ht_patience_ns()));
	}
	ASSERT_EQ(0, h_gather_receive(self->g, NULL, ht_patience_ns()));
	ASSERT_EQ(0, h_gather_receive(self->g, NULL, ht_patience_ns()));
	EXPECT_EQ(0, h_gather_release(self->g));
	EXPECT_EQ(-EPIPE, h_gather_receive(self->g, NULL, ht_patience_ns()));
	/* The last one is still held, and will be released. */
	EXPECT_EQ(-ETIMEDOUT, h_gather_wait(self->members[1], SHORT));
	EXPECT_EQ(-EPIPE, send_number(self->members[1], 2, H_NOWAIT));
	EXPECT_EQ(0, h_gather_release(self->g));
	EXPECT_EQ(0, h_gather_wait(self->members[1], ht_patience_ns()));
}

TEST_F(three, members_are_told_that_the_root_is_gone)
{
	ASSERT_EQ(0, send_number(self->members[0], 1, ht_patience_ns()));
	ASSERT_EQ(0, send_number(self->members[1], 1, ht_patience_ns()));
	ASSERT_EQ(0, h_gather_receive(self->g, NULL, ht_patience_ns()));
	ASSERT_EQ(0, h_gather_release(self->g));
	ASSERT_EQ(0, send_number(self->members[1], 2, ht_patience_ns()));
	ASSERT_EQ(0, h_gather_destroy(self->g));
	self->g = NULL;
	/* One that was released is good. */
	EXPECT_EQ(0, h_gather_wait(self->members[0], ht_patience_ns()));
	EXPECT_EQ(-EPIPE, h_gather_wait(self->members[1], ht_patience_ns()));
	EXPECT_EQ(-EPIPE, send_number(self->members[1], 3, ht_patience_ns()));
}

TEST_F(three, what_makes_no_sense_is_refused)
{
	const uint64_t number[2] = { 1, 2 };
	struct h_gather_member *m;
	struct h_gather *g;
	struct h_seed seed;

	EXPECT_EQ(-ERANGE, h_gather_seed(self->g, 2, &seed));
	ASSERT_EQ(0, h_gather_seed(self->g, 1, &seed));
	seed.bytes[20] ^= 1;
	EXPECT_EQ(-EINVAL, h_gather_join(self->ends[1].m, &seed, &m));
	EXPECT_EQ(-ERANGE, h_gather_send(self->members[0], number, 9, H_NOWAIT));
	EXPECT_EQ(-EINVAL, h_gather_create(self->ends[0].m, 0, NULL, 8, &g));
	EXPECT_EQ(-E2BIG, h_gather_create(self->ends[0].m, 2, NULL,
					  HAMLYN_MAX_MESSAGE, &g));
	EXPECT_EQ(NULL, g);
	EXPECT_EQ(8, h_gather_offset(self->g, 1));
	EXPECT_EQ(16, h_gather_offset(self->g, 2));
}

/* ---- barriers ----------------------------------------------------------- */

static void run_barrier(struct __test_metadata *_metadata, int participants,
			bool processes, bool one_dies)
{
	struct all *all = all_new(participants, BARRIER_ROUNDS);
	struct peer peers[MOST];
	struct h_barrier *b;
	struct end e;
	int i;

	if (one_dies)
		all->dies = 1;
	if (processes) {
		ASSERT_EQ(0, peers_fork(peers, all, barrier_peer));
	} else {
		peers_prepare(peers, all, barrier_peer);
	}
	ASSERT_EQ(0, end_open(&e, true));
	ASSERT_EQ(0, h_barrier_create(e.m, (uint32_t)participants, &b));
	for (i = 0; i < participants - 1; i++) {
		ASSERT_EQ(0, h_barrier_seed(b, (uint32_t)i + 1, &peers[i].seed));
		ASSERT_EQ(0, peer_start(&peers[i]));
	}
	EXPECT_EQ(one_dies ? -ECONNRESET : 0, barrier_rounds(all, b, false));
	/* Those who wait get out whether or not this one stays. */
	if (!one_dies || participants % 2) {
		EXPECT_EQ(0, h_barrier_destroy(b));
		b = NULL;
	}
	for (i = 0; i < participants - 1; i++) {
		EXPECT_EQ(!one_dies ? 0 : i == 1 ? 128 + SIGKILL : ECONNRESET,
			  peer_end(&peers[i]))
			TH_LOG("%d of %d", i + 1, participants);
	}
	EXPECT_EQ(0, h_barrier_destroy(b));
	EXPECT_EQ(0, end_close(&e));
	munmap(all, sizeof(*all));
}

TEST(no_thread_gets_out_before_all_are_in)
{
	int n;

	for (n = 2; n <= MOST + 1; n += 2)
		run_barrier(_metadata, n, false, false);
}

TEST(no_process_gets_out_before_all_are_in)
{
	int n;

	for (n = 2; n <= MOST + 1; n += 2)
		run_barrier(_metadata, n, true, false);
}

TEST(a_participant_that_is_killed_is_told_to_the_others)
{
	int n;

	for (n = 3; n <= MOST + 1; n++)
		run_barrier(_metadata, n, true, true);
}

/* A creator that gives its seeds to others, takes part once, and is killed. */
static int mortal_creator(int out, int ready)
{
	struct h_barrier *b;
	struct h_seed seed;
	struct end e;
	uint32_t i;
	char byte;

	if (end_open(&e, true) || h_barrier_create(e.m, 3, &b))
		return 1;
	for (i = 1; i < 3; i++)
		if (h_barrier_seed(b, i, &seed) ||
		    ht_write_all(out, &seed, sizeof(seed)))
			return 2;
	if (h_barrier_wait(b, ht_patience_ns()) ||
	    h_manager_drain(e.m, ht_patience_ns()) ||
	    ht_read_all(ready, &byte, 1))
		return 3;
	raise(SIGKILL);
	return 4;
}

/* Both in the barrier, from one thread. */
static int both_wait(struct h_barrier **b, int64_t timeout)
{
	int err = h_barrier_wait(b[0], H_NOWAIT), other;

	if (err && err != -EAGAIN)
		return err;
	other = h_barrier_wait(b[1], timeout);
	return other ? other : err ? h_barrier_wait(b[0], timeout) : 0;
}

TEST(a_creator_that_is_killed_is_told_to_the_others)
{
	int seeds[2], ready[2], i;
	struct h_barrier *b[2];
	struct end ends[2];
	struct h_seed seed;
	pid_t pid;

	ASSERT_EQ(0, pipe(seeds));
	ASSERT_EQ(0, pipe(ready));
	pid = ht_fork();
	if (!pid)
		_exit(mortal_creator(seeds[1], ready[0]));
	for (i = 0; i < 2; i++) {
		ASSERT_EQ(0, ht_read_all(seeds[0], &seed, sizeof(seed)));
		ASSERT_EQ(0, end_open(&ends[i], !i));
		ASSERT_EQ(0, h_barrier_join(ends[i].m, &seed, &b[i]));
	}
	ASSERT_EQ(0, both_wait(b, ht_patience_ns()));
	EXPECT_EQ(-ETIMEDOUT, both_wait(b, SHORT));
	ASSERT_EQ(0, ht_write_all(ready[1], "", 1));
	EXPECT_EQ(-EPIPE, h_barrier_wait(b[0], ht_patience_ns()));
	EXPECT_EQ(-EPIPE, h_barrier_wait(b[1], ht_patience_ns()));
	EXPECT_EQ(128 + SIGKILL, ht_reap(pid));
	for (i = 0; i < 2; i++) {
		EXPECT_EQ(0, h_barrier_destroy(b[i]));
		EXPECT_EQ(0, end_close(&ends[i]));
	}
}

/* Three participants in one thread; the first one has created it. */
FIXTURE(barrier) {
	struct end ends[3];
	struct h_barrier *b[3];
};

FIXTURE_SETUP(barrier)
{
	struct h_seed seed;
	uint32_t i;

	for (i = 0; i < 3; i++) {
		ASSERT_EQ(0, end_open(&self->ends[i], !i));
	}
	ASSERT_EQ(0, h_barrier_create(self->ends[0].m, 3, &self->b[0]));
	for (i = 1; i < 3; i++) {
		ASSERT_EQ(0, h_barrier_seed(self->b[0], i, &seed));
		ASSERT_EQ(0, h_barrier_join(self->ends[i].m, &seed,
					    &self->b[i]));
	}
}

FIXTURE_TEARDOWN(barrier)
{
	int i;

	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, h_barrier_destroy(self->b[i]));
	}
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, end_close(&self->ends[i]));
	}
}

TEST_F(barrier, who_ran_out_of_time_is_still_in)
{
	int i;

	for (i = 0; i < 20; i++) {
		ASSERT_EQ(-ETIMEDOUT, h_barrier_wait(self->b[0], SHORT / 20));
		ASSERT_EQ(-EAGAIN, h_barrier_wait(self->b[1], H_NOWAIT));
		ASSERT_EQ(-ETIMEDOUT, h_barrier_wait(self->b[1], SHORT / 20));
		ASSERT_EQ(-ETIMEDOUT, h_barrier_wait(self->b[0], SHORT / 20));
		ASSERT_EQ(-EAGAIN, h_barrier_wait(self->b[2], H_NOWAIT));
		ASSERT_EQ(0, h_barrier_wait(self->b[0], ht_patience_ns()));
		ASSERT_EQ(0, h_barrier_wait(self->b[1], ht_patience_ns()));
		ASSERT_EQ(0, h_barrier_wait(self->b[2], ht_patience_ns()));
	}
}

TEST_F(barrier, who_leaves_is_told_to_the_others)
{
	EXPECT_EQ(-EAGAIN, h_barrier_wait(self->b[1], H_NOWAIT));
	ASSERT_EQ(0, h_barrier_destroy(self->b[2]));
	self->b[2] = NULL;
	EXPECT_EQ(-EPIPE, h_barrier_wait(self->b[0], ht_patience_ns()));
	EXPECT_EQ(-EPIPE, h_barrier_wait(self->b[0], H_NOWAIT));
	EXPECT_EQ(-EPIPE, h_barrier_wait(self->b[1], ht_patience_ns()));
}

TEST_F(barrier, who_leaves_does_not_wait)
{
	int64_t begin = ht_now_ns();

	EXPECT_EQ(-EAGAIN, h_barrier_wait(self->b[1], H_NOWAIT));
	ASSERT_EQ(0, h_barrier_destroy(self->b[1]));
	self->b[1] = NULL;
	/* Who joined, and never called. */
	ASSERT_EQ(0, h_barrier_destroy(self->b[2]));
	self->b[2] = NULL;
	EXPECT_GT(ht_patience_ns() / 2, ht_now_ns() - begin);
	/* The first one was in already, the other was not. */
	EXPECT_EQ(-EPIPE, h_barrier_wait(self->b[0], ht_patience_ns()));
}

TEST(who_never_joins_is_waited_for_until_the_time_is_over)
{
	struct h_barrier *b;
	struct end e;

	ASSERT_EQ(0, end_open(&e, true));
	ASSERT_EQ(0, h_barrier_create(e.m, 2, &b));
	EXPECT_EQ(-EAGAIN, h_barrier_wait(b, H_NOWAIT));
	EXPECT_EQ(-ETIMEDOUT, h_barrier_wait(b, SHORT));
	EXPECT_EQ(-EBUSY, h_manager_destroy(e.m));
	EXPECT_EQ(0, h_barrier_destroy(b));
	EXPECT_EQ(0, end_close(&e));
}

TEST_F(barrier, what_makes_no_sense_is_refused)
{
	struct h_barrier *b;
	struct h_seed seed;
	int i;

	EXPECT_EQ(-ERANGE, h_barrier_seed(self->b[0], 0, &seed));
	EXPECT_EQ(-ERANGE, h_barrier_seed(self->b[0], 3, &seed));
	EXPECT_EQ(-EINVAL, h_barrier_seed(self->b[1], 1, &seed));
	EXPECT_EQ(-EINVAL, h_barrier_create(self->ends[0].m, 0, &b));
	memset(&seed, 0, sizeof(seed));
	EXPECT_EQ(-EINVAL, h_barrier_join(self->ends[0].m, &seed, &b));
	EXPECT_EQ(NULL, b);
	/* Alone one waits for nobody. */
	ASSERT_EQ(0, h_barrier_create(self->ends[0].m, 1, &b));
	EXPECT_EQ(-ERANGE, h_barrier_seed(b, 1, &seed));
	for (i = 0; i < 3; i++) {
		EXPECT_EQ(0, h_barrier_wait(b, H_NOWAIT));
	}
	EXPECT_EQ(0, h_barrier_destroy(b));
}

TEST_HARNESS_MAIN
