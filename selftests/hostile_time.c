// SPDX-License-Identifier: GPL-2.0-only
/*
 * An engine works for a user only as long as the user's own tasks have worked. Kernel device
 * only, run as root; what counts is processor time, not the clock.
 */
#include "kselftest_harness.h"
#include "genl.h"
#include "hostile.h"
#include "nics.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <time.h>

#define ENTRIES		64
#define BYTES		(32u << 20)	/* of a message: 64 of them take a good while */
#define PACKET		4096

/* driver/loan.c: what is lent beyond the user's own time, and some for the tick. */
#define LENT_NS		((20 + 2 + 1 + 20) * HT_MS)

/* What a sender tells of itself. */
struct report {
	int64_t own_ns;
	uint64_t messages;
	uint64_t asked;		/* to ring */
};

FIXTURE(hostile_time) {
	struct genl g;
	int nic;
	pid_t engine;
	struct report *report;
};

FIXTURE_SETUP(hostile_time)
{
	ASSERT_EQ(0, genl_open(&self->g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION));
	self->nic = NIC_MAKE(&self->g, { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_POLL },
			     { HAMLYN_A_ENGINES, 1 }, { HAMLYN_A_PACKET_SIZE, PACKET },
			     { HAMLYN_A_KICK_WINDOW_US, 1000000 });
	ASSERT_LE(0, self->nic);
	nic_use((uint32_t)self->nic);
	self->engine = nic_engine((uint32_t)self->nic);
	self->report = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			    -1, 0);
	ASSERT_NE(MAP_FAILED, self->report);
}

FIXTURE_TEARDOWN(hostile_time)
{
	munmap(self->report, PAGE);
	EXPECT_EQ(0, nic_delete_soon(&self->g, (uint32_t)self->nic));
	genl_close(&self->g);
}

/*
 * Processor time of a task, or -1. In ticks, but by the scheduler's count: not every kernel
 * has a schedstat.
 */
static int64_t ran_ns(pid_t pid)
{
	unsigned long utime, stime;
	char path[64], line[512];
	const char *end;
	int64_t ns = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "re");
	if (!f)
		return -1;
	end = fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (end && sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
			  &utime, &stime) == 2)
		ns = (int64_t)(utime + stime) * (HT_SEC / sysconf(_SC_CLK_TCK));
	fclose(f);
	return ns;
}

static int64_t own_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * HT_SEC + t.tv_nsec;
}

/* ---- the sender ---- */

struct sender {
	int fd;
	struct hamlyn_query query;
	struct hamlyn_area_alloc area;
	struct hamlyn_slot_create slot;
	struct ht_raw_terminus terminus;
};

static int sender_open(struct sender *s)
{
	void *data;
	int ret;

	memset(s, 0, sizeof(*s));
	s->fd = ht_raw_open();
	if (s->fd < 0)
		return s->fd;
	ret = ht_raw_query(s->fd, &s->query);
	if (!ret)
		ret = ht_raw_area_alloc(s->fd, BYTES, &s->area, &data);
	if (!ret)
		ret = ht_raw_slot_create(s->fd, s->area.area, BYTES, HAMLYN_NONE, &s->slot);
	if (!ret)
		ret = ht_raw_terminus_create(s->fd, ENTRIES, 256, &s->terminus);
	if (!ret)
		ret = ht_raw_bind(s->fd, s->terminus.arg.terminus, 0, s->area.area, 0, BYTES);
	return ret;
}

/* The next entry: a message of @length from the sender to itself. */
static void fill(struct sender *s, uint64_t length)
{
	struct hamlyn_trb *trb = ht_raw_entry(&s->terminus);
	struct hamlyn_fragment *f = (void *)(trb + 1);

	memset(trb, 0, s->terminus.arg.entry_size);
	trb->host = s->query.host;
	trb->slot = s->slot.slot;
	trb->key = s->slot.key;
	trb->length = length;
	trb->flags = HAMLYN_TRB_NO_NOTIFY;
	trb->fragments = 1;
	f->length = length;
	s->terminus.producer++;
}

static bool is_asleep(const struct sender *s)
{
	return h__read_once(&s->terminus.status->need_kick);
}

static bool has_room(const struct sender *s)
{
	return s->terminus.producer - h__load_acquire(&s->terminus.status->completed) <
	       ENTRIES;
}

/* Doorbells in a row, until the engine takes it up. */
static bool take_up(struct sender *s)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (is_asleep(s) && ht_poll_more(&poll))
		if (ioctl(s->fd, HAMLYN_IOC_KICK,
			  (unsigned long)s->terminus.arg.terminus) < 0)
			return false;
	return !is_asleep(s);
}

/* ---- who is away ---- */

static int post_much_and_stop(void *arg)
{
	struct sender s;
	int i;

	(void)arg;
	if (sender_open(&s))
		return 90;
	if (!take_up(&s))
		return 91;
	for (i = 0; i < ENTRIES; i++)
		fill(&s, BYTES);
	if (ht_raw_publish(&s.terminus, s.terminus.producer) < 0)
		return 92;
	raise(SIGSTOP);
	return 93;
}

TEST_F(hostile_time, an_engine_does_not_go_on_for_long_for_who_is_stopped)
{
	unsigned int uid = somebody(1);
	int64_t engine, own, begin;
	int status;
	pid_t pid;

	if (!self->engine)
		SKIP(return, "kernel: with engine=poll, on two processors");
	begin = ht_now_ns();
	engine = ran_ns(self->engine);
	pid = ht_fork();
	if (!pid)
		_exit(become(uid) ? 99 : post_much_and_stop(NULL));
	ASSERT_EQ(pid, waitpid(pid, &status, WUNTRACED));
	ASSERT_TRUE(WIFSTOPPED(status)) {
		TH_LOG("exited with %d", WEXITSTATUS(status));
	}
	ht_sleep_ns(HT_SEC / 2);
	own = ran_ns(pid);
	engine = ran_ns(self->engine) - engine;
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	TH_LOG("the sender ran %lld us, the engine %lld us", (long long)own / 1000,
	       (long long)engine / 1000);
	EXPECT_GT(2 * own + LENT_NS + (ht_now_ns() - begin) / 100, engine);
}

/* ---- who has few cycles ---- */

#define CYCLES		100
#define CYCLE_NS	(20 * HT_MS)
#define SHARE_NS	HT_MS		/* of a cycle: as with a quota of 5 % */

/* As much as goes into the queue, as often as it is asked to. */
static int send_now_and_then(void *arg)
{
	struct report *report = arg;
	struct sender s;
	int64_t begin;
	int i;

	if (sender_open(&s))
		return 90;
	if (!take_up(&s))
		return 91;
	for (i = 0; i < CYCLES; i++) {
		begin = own_ns();
		while (own_ns() - begin < SHARE_NS) {
			if (has_room(&s))
				fill(&s, BYTES / 32);
			report->asked += is_asleep(&s);
			if (ht_raw_publish(&s.terminus, s.terminus.producer) < 0)
				return 92;
		}
		ht_sleep_ns(CYCLE_NS - SHARE_NS);
	}
	report->own_ns = own_ns();
	return 0;
}

TEST_F(hostile_time, an_engine_works_for_a_user_about_as_long_as_that_does_itself)
{
	int64_t begin = ht_now_ns(), engine, wall;

	if (!self->engine)
		SKIP(return, "kernel: with engine=poll, on two processors");
	engine = ran_ns(self->engine);
	ASSERT_EQ(0, as(somebody(1), send_now_and_then, self->report));
	engine = ran_ns(self->engine) - engine;
	wall = ht_now_ns() - begin;
	TH_LOG("the sender ran %lld us, the engine %lld us, of %lld us",
	       (long long)self->report->own_ns / 1000, (long long)engine / 1000,
	       (long long)wall / 1000);
	EXPECT_LT(0, engine);
	EXPECT_GT(2 * self->report->own_ns + LENT_NS + wall / 100, engine);
}

/* ---- who works as much ---- */

static int send_all_the_time(void *arg)
{
	struct report *report = arg;
	int64_t begin = ht_now_ns(), now;
	struct sender s;

	if (sender_open(&s))
		return 90;
	if (!take_up(&s))
		return 91;
	while ((now = ht_now_ns()) < begin + HT_SEC) {
		if (now < begin + HT_SEC / 2)
			*report = (struct report) { 0 };
		if (!has_room(&s))
			continue;
		fill(&s, 64);
		report->messages++;
		if (ht_raw_publish(&s.terminus, s.terminus.producer) < 0)
			return 92;
		report->asked += is_asleep(&s);
	}
	return 0;
}

/* It goes on being polled, when it has long used up what was saved. */
TEST_F(hostile_time, who_spins_beside_its_engine_is_polled)
{
	if (!self->engine)
		SKIP(return, "kernel: with engine=poll, on two processors");
	ASSERT_EQ(0, as(somebody(1), send_all_the_time, self->report));
	TH_LOG("asked to ring %llu times for %llu messages",
	       (unsigned long long)self->report->asked,
	       (unsigned long long)self->report->messages);
	EXPECT_LT(0, self->report->messages);
	/* How often else is up to what else wants its processor. */
	EXPECT_GT(self->report->messages, self->report->asked);
}

TEST_HARNESS_MAIN
