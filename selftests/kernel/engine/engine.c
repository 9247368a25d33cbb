// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who serves a terminus, and when: the engine of a NIC of one's own, where nobody else
 * disturbs. Kernel device only, run as root.
 */
#include "kselftest_harness.h"
#include "genl.h"
#include "hostile.h"
#include "nics.h"

#include <fcntl.h>
#include <sys/ioctl.h>

#define WINDOW_US	1000000	/* doorbells in a row, also on a slow machine */
#define IDLE_US		1000
#define PACKET		1024
#define GUESSES		3	/* after the first one each takes a second */

FIXTURE(engine) {
	struct genl g;
	int nic;
	struct party p;
};

/* Root's, on a NIC whose engine polls if it can. */
static int own_nic(FIXTURE_DATA(engine) *self)
{
	self->nic = NIC_MAKE(&self->g, { HAMLYN_A_ENGINE_MODE, HAMLYN_NL_ENGINE_POLL },
			     { HAMLYN_A_ENGINES, 1 }, { HAMLYN_A_GUESSES, 1 },
			     { HAMLYN_A_PACKET_SIZE, PACKET },
			     { HAMLYN_A_IDLE_US, IDLE_US },
			     { HAMLYN_A_KICK_WINDOW_US, WINDOW_US });
	if (self->nic < 0)
		return self->nic;
	nic_use((uint32_t)self->nic);
	return party_open(&self->p);
}

FIXTURE_SETUP(engine)
{
	self->p.fd = -1;
	ASSERT_EQ(0, genl_open(&self->g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION));
	ASSERT_EQ(0, own_nic(self));
}

FIXTURE_TEARDOWN(engine)
{
	party_close(&self->p);
	if (self->nic >= 0)
		EXPECT_EQ(0, nic_delete_soon(&self->g, (uint32_t)self->nic));
	genl_close(&self->g);
}

static bool polls(const struct party *p)
{
	return p->query.engine_mode == HAMLYN_ENGINE_POLL;
}

static bool is_asleep(const struct party *p)
{
	return h__read_once(&p->terminus.status->need_kick);
}

/* Whether one is asked for or not. */
static int ring(struct party *p)
{
	return ioctl(p->fd, HAMLYN_IOC_KICK, (unsigned long)p->terminus.arg.terminus);
}

/* Doorbells in a row, until the engine takes it up. */
static bool take_up(struct party *p)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (is_asleep(p))
		if (!ht_poll_more(&poll) || ring(p))
			return false;
	/* By now it may be asleep again. */
	return true;
}

/* A thread that polls would keep the only processor from those that it waits for. */
TEST_F(engine, who_has_one_processor_has_no_engine_that_polls)
{
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	EXPECT_EQ(processors > 1, polls(&self->p));
	EXPECT_EQ(polls(&self->p), self->p.query.engines);
}

/* Which is not told that there is nothing to ring for. */
TEST_F(engine, who_is_polled_may_ring)
{
	struct hamlyn_trb trb = to_party(&self->p);
	struct party other;
	int i;

	ASSERT_EQ(0, party_open(&other));
	for (i = 0; i < 300; i++)
		ASSERT_EQ(0, ring(&self->p));
	EXPECT_EQ(0, post(&self->p.terminus, &trb));
	ASSERT_EQ(0, ht_raw_id(self->p.fd, HAMLYN_IOC_TERMINUS_DESTROY,
			       self->p.terminus.arg.terminus));
	/* It is served no more, and its engine goes on with others. */
	for (i = 0; i < 300; i++)
		ASSERT_EQ(0, ring(&other));
	EXPECT_EQ(0, post(&other.terminus, &trb));
	EXPECT_TRUE(came(&self->p));
	EXPECT_TRUE(came(&self->p));
	EXPECT_FALSE(came(&self->p));
	party_close(&other);
}

#define TIMES		9

/* Until a doorbell is asked for again. */
static int64_t polled_ns(struct party *p)
{
	int64_t begin = ht_now_ns();
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (!is_asleep(p) && ht_poll_more(&poll))
		ht_sleep_ns(HT_MS);
	return ht_now_ns() - begin;
}

/*
 * Somebody else who wants its processor ends that, too; not so soon, and not so often.
 */
TEST_F(engine, who_has_nothing_to_send_is_polled_no_more)
{
	int64_t ns[TIMES];
	int i;

	if (!polls(&self->p))
		SKIP(return, "kernel: with engine=poll");
	for (i = 0; i < TIMES; i++) {
		ASSERT_TRUE(take_up(&self->p));
		ns[i] = polled_ns(&self->p);
	}
	qsort(ns, TIMES, sizeof(*ns), ht_by_size);
	TH_LOG("median %lld us, longest %lld us", (long long)ns[TIMES / 2] / 1000,
	       (long long)ns[TIMES - 1] / 1000);
	EXPECT_LT(ns[TIMES / 2], 300 * HT_MS * ht_scale());
}

/* ---- a machine that is suspended ------------------------------------------------------ */

#define PF_NOFREEZE	0x8000		/* linux/sched.h */

/* Of the kernel thread, from /proc/PID/stat; 0: there is none. */
static unsigned long flags_of(pid_t pid)
{
	unsigned long flags = 0;
	char line[512], *end;
	FILE *f;

	snprintf(line, sizeof(line), "/proc/%d/stat", pid);
	f = fopen(line, "re");
	end = f && fgets(line, sizeof(line), f) ? strrchr(line, ')') : NULL;
	if (end)
		sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %lu", &flags);
	if (f)
		fclose(f);
	return flags;
}

static bool can_suspend(void)
{
	FILE *f = fopen("/sys/power/state", "re");
	int c = f ? fgetc(f) : EOF;

	if (f)
		fclose(f);
	return c != EOF && c != '\n';
}

/* It would write to memory while that is written to disk. */
TEST_F(engine, its_thread_is_frozen_when_the_machine_is_suspended)
{
	unsigned long flags;

	if (!polls(&self->p))
		SKIP(return, "kernel: with engine=poll");
	if (!can_suspend())
		SKIP(return, "kernel: with CONFIG_SUSPEND or CONFIG_HIBERNATION");
	/* It says so itself, when it has begun. */
	ASSERT_TRUE(take_up(&self->p));
	flags = flags_of(nic_engine((uint32_t)self->nic));
	ASSERT_NE(0, flags);
	EXPECT_EQ(0, flags & PF_NOFREEZE);
}

/* ---- who goes while he is served ---------------------------------------------------- */

#define TRACING		"/sys/kernel/tracing/"
#define PROBE		TRACING "events/kprobes/hml_frees/"

static int put_text(const char *file, const char *text)
{
	int fd = open(file, O_WRONLY | O_APPEND | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : write(fd, text, strlen(text));

	if (fd >= 0)
		close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -1;
}

/* Watch who takes kernel mappings away; an engine is called hamlynN/N. */
static int watch_frees(void)
{
	return put_text(TRACING "kprobe_events", "p:hml_frees vunmap\n") ||
	       put_text(PROBE "filter", "comm ~ \"hamlyn*/*\"") ||
	       put_text(TRACING "trace", "") || put_text(PROBE "enable", "1");
}

static void unwatch_frees(void)
{
	put_text(PROBE "enable", "0");
	put_text(TRACING "kprobe_events", "-:hml_frees\n");
}

static unsigned int frees_seen(void)
{
	FILE *f = fopen(TRACING "trace", "re");
	unsigned int n = 0;
	char line[512];

	while (f && fgets(line, sizeof(line), f))
		n += !!strstr(line, "hml_frees:");
	if (f)
		fclose(f);
	return n;
}

/* A large work queue goes when it has just been taken up, or is being served. */
static int come_and_go(void)
{
	struct hamlyn_terminus_create t = { .size = sizeof(t), .entries = 4096,
					    .entry_size = 512 };
	int fd = ht_raw_open(), ret, i;

	if (fd < 0)
		return fd;
	ret = ht_raw(fd, HAMLYN_IOC_TERMINUS_CREATE, &t);
	for (i = 0; !ret && i < 20; i++)
		if (ioctl(fd, HAMLYN_IOC_KICK, (unsigned long)t.terminus))
			ret = -errno;
	close(fd);
	return ret;
}

/* It serves others: who goes pays for it himself. */
TEST_F(engine, it_frees_nothing)
{
	int64_t end;

	if (!polls(&self->p))
		SKIP(return, "kernel: with engine=poll");
	/* It may be there from a run that was killed. */
	unwatch_frees();
	if (watch_frees()) {
		unwatch_frees();
		SKIP(return, "kernel: with kprobes, and tracefs in its place");
	}
	for (end = ht_now_ns() + 2 * HT_SEC; ht_now_ns() < end;)
		ASSERT_EQ(0, come_and_go());
	EXPECT_EQ(0, frees_seen());
	unwatch_frees();
}

/* ---- who is held back --------------------------------------------------------------- */

/* One doorbell for all of them: what is behind a pause waits for its end. */
static int guess_and_sleep(void *arg)
{
	const struct party *to = arg;
	struct hamlyn_trb *trb;
	struct party p;
	int i, status;

	if (party_open(&p))
		return 90;
	for (i = 0; i < GUESSES; i++) {
		trb = ht_raw_entry(&p.terminus);
		memset(trb, 0, p.terminus.arg.entry_size);
		*trb = to_party(to);
		trb->key ^= 1;
		p.terminus.producer++;
	}
	if (ht_raw_publish(&p.terminus, p.terminus.producer) < 0)
		return 91;
	/* Rings only if it is asked to. */
	if (ht_raw_done(&p.terminus, GUESSES - 1, &status))
		return 92;
	return 0;
}

TEST_F(engine, who_was_held_back_is_served_again_without_a_doorbell)
{
	EXPECT_EQ(0, as(somebody(1), guess_and_sleep, &self->p));
	EXPECT_EQ(GUESSES, rejects(&self->p, HAMLYN_REJECT_KEY));
}

TEST_HARNESS_MAIN
