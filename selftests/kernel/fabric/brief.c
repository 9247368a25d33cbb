// SPDX-License-Identifier: GPL-2.0-only
/*
 * Short packets of another host, which are placed where they come: no task runs before whoever
 * waits for them sees them, and what is more than to place them is a worker's still. The other host
 * is the test's own socket. As root, kernel device only.
 */
#include "kselftest_harness.h"
#include "far_host.h"
#include "hosts.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#define NEED_ROOT	"as root, kernel device"
#define PATIENT_MS	120000	/* for a guest that gets no processor */
#define TYPE_DATA	2
#define TYPE_PING	3
#define TYPE_PONG	4
#define WORDS		200
#define TRACE		"/sys/kernel/tracing/instances/hamlyn_brief"

FIXTURE(brief) {
	struct hosts h;
	struct ht_pair pair;
	struct far far;		/* host 1 */
	uint8_t frames[4096], *end;
	bool there;
};

FIXTURE_SETUP(brief)
{
	struct ht_pair_attr attr = { .length = 0 };
	int one = 1;

	if (geteuid() || access("/dev/hamlyn0", F_OK))
		return;
	self->h.dead_ms = PATIENT_MS;
	self->h.stall_ms = PATIENT_MS;
	ASSERT_EQ(0, hosts_begin(&self->h));
	nic_use_tx(self->h.host[0].nic);
	nic_use(self->h.host[1].nic);
	ASSERT_EQ(0, ht_pair_open(&self->pair, &attr));
	ASSERT_EQ(0, far_begin(&self->far, &self->h, &self->h.host[0], &self->h.host[1],
			       self->pair.query.packet_size, 0));
	ASSERT_EQ(0, setsockopt(self->far.fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	self->end = self->frames;
	self->there = true;
}

FIXTURE_TEARDOWN(brief)
{
	if (!self->there)
		return;
	close(self->far.fd);
	ht_pair_close(&self->pair);
	EXPECT_EQ(0, hosts_end(&self->h));
}

#define NEED_HOSTS() do { if (!self->there) SKIP(return, NEED_ROOT); } while (0)

static void put_header(FIXTURE_DATA(brief) *self, uint8_t type, uint32_t body, uint32_t payload)
{
	uint8_t *p = self->end;

	p = far_put(p, 1, 1);			/* version */
	p = far_put(p, type, 1);
	p = far_put(p, body, 2);
	p = far_put(p, payload, 4);
	p = far_put(p, 1, 4);			/* epoch */
	self->end = far_put(p, self->far.sequence++, 4);
}

/* A message of 8 bytes: @value at its place of the message area. */
static void put_word(FIXTURE_DATA(brief) *self, const struct h_ticket *to, uint64_t value)
{
	uint8_t *p;

	put_header(self, TYPE_DATA, FAR_DATA, sizeof(value));
	p = self->end;
	p = far_put(p, HAMLYN_PACKET_SINGLE, 2);
	p = far_put(p, 0, 2);			/* metadata */
	p = far_put(p, to->slot, 4);
	p = far_put(p, 0, 4);			/* metadata entry */
	p = far_put(p, 0, 4);			/* delta */
	p = far_put(p, to->key, 8);
	p = far_put(p, 8 * (value % 8), 8);
	p = far_put(p, 1, 4);			/* sender */
	p = far_put(p, 1, 4);			/* user */
	memcpy(p, &value, sizeof(value));
	self->end = p + sizeof(value);
}

static int send_frames(FIXTURE_DATA(brief) *self)
{
	int ret = ht_write_all(self->far.fd, self->frames, (size_t)(self->end - self->frames));

	self->end = self->frames;
	return ret;
}

/* The next message is that one. */
static bool comes(FIXTURE_DATA(brief) *self, uint64_t value)
{
	struct hamlyn_nq_entry e;

	return ht_recv(self->pair.nq, &e) == 1 &&
	       !memcmp(self->pair.data + 8 * (value % 8), &value, sizeof(value));
}

static bool passes(FIXTURE_DATA(brief) *self, uint64_t value)
{
	put_word(self, &self->pair.ticket, value);
	return !send_frames(self) && comes(self, value);
}

static int trace(const char *file, const char *what)
{
	int fd = open(file, O_WRONLY | O_CLOEXEC), ret = -1;

	if (fd >= 0) {
		ret = write(fd, what, strlen(what)) == (ssize_t)strlen(what) ? 0 : -1;
		close(fd);
	}
	return ret;
}

/* How often peers' workers have begun since that was traced. */
static int count_workers(void)
{
	FILE *f = fopen(TRACE "/trace", "r");
	char line[512];
	int n = 0;

	while (f && fgets(line, sizeof(line), f))
		n += strstr(line, "function io [hamlyn]") != NULL;
	if (f)
		fclose(f);
	return n;
}

/* The first of a user is the worker's. Its other business, now and then, may fall into the time. */
TEST_F(brief, no_worker_is_between)
{
	uint64_t i;
	int begun;

	NEED_HOSTS();
	if (mkdir(TRACE, 0700) && errno != EEXIST)
		SKIP(return, "this kernel does not trace");
	ASSERT_TRUE(passes(self, 1));
	ASSERT_EQ(0, trace(TRACE "/events/workqueue/workqueue_execute_start/enable", "1"));
	for (i = 0; i < WORDS && passes(self, 2 + i); i++)
		continue;
	EXPECT_EQ(WORDS, i);
	EXPECT_EQ(0, trace(TRACE "/events/workqueue/workqueue_execute_start/enable", "0"));
	begun = count_workers();
	EXPECT_GT(WORDS / 2, begun);
	EXPECT_EQ(0, rmdir(TRACE));
}

/* Whatever is not only to be placed is left alone, and done once. */
TEST_F(brief, in_order_with_what_is_left_to_the_worker)
{
	const struct h_ticket *to = &self->pair.ticket;
	struct h_ticket wrong = *to, nowhere = *to;
	struct hamlyn_stats stats;
	uint64_t i, round;

	NEED_HOSTS();
	wrong.key ^= 1;
	nowhere.slot = HAMLYN_NONE;
	ASSERT_TRUE(passes(self, 0));
	for (round = 1; round <= 10; round++) {
		put_word(self, to, 1);
		put_word(self, &wrong, 2);
		put_word(self, to, 3);
		put_header(self, TYPE_PING, 8, 0);
		self->end = far_put(self->end, round, 8);
		put_word(self, to, 4);
		put_word(self, &nowhere, 5);
		put_word(self, to, 6);
		ASSERT_EQ(0, send_frames(self));
		for (i = 1; i <= 6; i++)
			if (i != 2 && i != 5)
				ASSERT_TRUE(comes(self, i));
		ASSERT_EQ(0, far_hear_type(&self->far, TYPE_PONG));
		EXPECT_EQ(round, far_get(self->far.body, 8));
	}
	ASSERT_EQ(0, h_slot_stats(self->pair.slot, &stats));
	EXPECT_EQ(10, stats.rejects[HAMLYN_REJECT_KEY]);
	EXPECT_EQ(HAMLYN_NL_PEER_STATE_UP,
		  host_peer(&self->h, &self->h.host[1], HAMLYN_A_PEER_STATE));
}

/* Frames that end anywhere: what is not whole waits, and the worker and the softirq take turns. */
TEST_F(brief, a_frame_comes_in_two)
{
	const size_t all = FAR_HEADER + FAR_DATA + 8;
	size_t first;

	NEED_HOSTS();
	ASSERT_TRUE(passes(self, 0));
	for (first = 1; first < all; first++) {
		self->end = self->frames;
		put_word(self, &self->pair.ticket, first);
		ASSERT_EQ(0, ht_write_all(self->far.fd, self->frames, first));
		ASSERT_EQ(0, ht_write_all(self->far.fd, self->frames + first, all - first));
		ASSERT_TRUE(comes(self, first));
	}
}

struct sleeper {
	struct h_ticket ticket;
	int ready;
};

/* Sleeps for a message that comes while it is stopped. */
static void sleeper_child(struct sleeper *shared)
{
	struct ht_pair_attr attr = { .length = 0 };
	struct hamlyn_nq_entry e;
	struct ht_pair pair;

	if (ht_pair_open(&pair, &attr))
		_exit(1);
	shared->ticket = pair.ticket;
	__atomic_store_n(&shared->ready, 1, __ATOMIC_RELEASE);
	_exit(ht_recv(pair.nq, &e) == 1 ? 0 : 2);
}

static bool is_asleep(const struct sleeper *shared)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (!__atomic_load_n(&shared->ready, __ATOMIC_ACQUIRE))
		if (!ht_poll_more(&poll))
			return false;
	usleep(10000);
	return true;
}

TEST_F(brief, a_sleeper_that_is_stopped_is_in_nobodys_way)
{
	struct sleeper *shared;
	int status = -1;
	uint64_t i;
	pid_t pid;

	NEED_HOSTS();
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		      -1, 0);
	ASSERT_NE(MAP_FAILED, shared);
	ASSERT_TRUE(passes(self, 0));
	pid = ht_fork();
	if (!pid)
		sleeper_child(shared);
	ASSERT_LT(0, pid);
	ASSERT_TRUE(is_asleep(shared));
	ASSERT_EQ(0, kill(pid, SIGSTOP));
	ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	for (i = 1; i <= WORDS; i++) {
		put_word(self, &shared->ticket, i);
		put_word(self, &self->pair.ticket, i);
		ASSERT_EQ(0, send_frames(self));
		ASSERT_TRUE(comes(self, i));
	}
	ASSERT_EQ(0, kill(pid, SIGCONT));
	ASSERT_EQ(pid, waitpid(pid, &status, 0));
	EXPECT_EQ(0, status);
	munmap(shared, sizeof(*shared));
}

TEST_HARNESS_MAIN
