// SPDX-License-Identifier: GPL-2.0-only
/*
 * Who asks for more than may be had, again and again, costs an event each time: do those who
 * listen drown in them, and does anybody wait? Kernel device only, run as root.
 */
#include "kselftest_harness.h"
#include "genl.h"
#include "hostile.h"
#include "nics.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#define ASKED		4000	/* times: more than any socket holds */
#define LISTENERS	64
#define ROUNDS		200	/* of an innocent */

/* What there is of each kind in one user's limits, and what asks for one more. */
static int ask_for_terminus(int fd)
{
	struct hamlyn_terminus_create arg = {
		.size = sizeof(arg), .entries = 2, .entry_size = 128,
	};

	return ht_raw(fd, HAMLYN_IOC_TERMINUS_CREATE, &arg);
}

static int ask_for_memory(int fd)
{
	struct hamlyn_area_alloc arg = { .size = sizeof(arg), .length = 1ull << 30 };

	return ht_raw(fd, HAMLYN_IOC_AREA_ALLOC, &arg);
}

FIXTURE(hostile_quota) {
	struct genl g;
	uint32_t nic;
	int listeners[LISTENERS];
	unsigned int count;
};

/* From here on that user has no terminus, and little memory. */
static int take_limits(struct genl *g, uint32_t nic, uint32_t uid)
{
	struct nlattr *nest;

	genl_begin(g, HAMLYN_NL_CMD_LIMIT_SET);
	genl_put_u32(g, HAMLYN_A_NIC, nic);
	genl_put_u32(g, HAMLYN_A_UID, uid);
	nest = genl_put(g, HAMLYN_A_LIMITS | NLA_F_NESTED, NULL, 0);
	genl_put_u32(g, HAMLYN_A_LIMITS_USER_TERMINI, 0);
	genl_put_u64(g, HAMLYN_A_LIMITS_USER_KERNEL_BYTES, 1 << 20);
	genl_end(g, nest);
	return genl_call(g);
}

FIXTURE_SETUP(hostile_quota)
{
	int nic;

	ASSERT_EQ(0, genl_open(&self->g, HAMLYN_FAMILY_NAME, HAMLYN_FAMILY_VERSION));
	/* The answer to opening it is still there. */
	for (; self->count < LISTENERS; self->count++) {
		self->listeners[self->count] = genl_listen(&self->g);
		ASSERT_LE(0, self->listeners[self->count]);
	}
	nic = nic_make(&self->g, NULL, 0);
	ASSERT_LE(0, nic);
	self->nic = (uint32_t)nic;
	nic_use(self->nic);
}

FIXTURE_TEARDOWN(hostile_quota)
{
	while (self->count)
		close(self->listeners[--self->count]);
	EXPECT_EQ(0, nic_delete_soon(&self->g, self->nic));
	genl_close(&self->g);
}

/* Of one user, as the first of those who listen has them. */
struct heard {
	unsigned int of;
	bool missed;		/* and some were lost */
};

static struct heard hear(int fd, uint32_t nic, uint32_t uid)
{
	struct heard h = {};
	struct nic_told told;

	for (;;) {
		errno = 0;
		if (nic_event(fd, nic, &told))
			h.of += told.event == HAMLYN_NL_EVENT_QUOTA && told.uid == uid;
		else if (errno == ENOBUFS)
			h.missed = true;
		else
			return h;
	}
}

/* ---- those who listen ---- */

static int ask_often(void *arg)
{
	int fd = ht_raw_open(), i;

	(void)arg;
	if (fd < 0)
		return 90;
	for (i = 0; i < ASKED; i++)
		if (ask_for_terminus(fd) != -EDQUOT || ask_for_memory(fd) != -EDQUOT)
			return 91;
	return 0;
}

static int ask_once(void *arg)
{
	int fd = ht_raw_open();

	(void)arg;
	return fd < 0 ? 90 : ask_for_terminus(fd) == -EDQUOT ? 0 : 91;
}

/* And another user's first one is not lost among them: nobody reads until all is over. */
TEST_F(hostile_quota, who_is_refused_in_a_loop_is_told_of_once_a_second)
{
	const unsigned int mallory = somebody(1), bob = somebody(2);
	int64_t begun, seconds;
	struct heard heard;

	ASSERT_EQ(0, take_limits(&self->g, self->nic, mallory));
	ASSERT_EQ(0, take_limits(&self->g, self->nic, bob));
	begun = ht_now_ns();
	EXPECT_EQ(0, as(mallory, ask_often, NULL));
	EXPECT_EQ(0, as(bob, ask_once, NULL));
	seconds = (ht_now_ns() - begun) / HT_SEC;
	heard = hear(self->listeners[0], self->nic, mallory);
	EXPECT_FALSE(heard.missed);
	/* Of each kind one, so that none hides the other. */
	EXPECT_LE(2, heard.of);
	EXPECT_GE(2 * (1 + seconds), heard.of);
	TH_LOG("%u of %u refusals in %lld s", heard.of, 2 * ASKED, (long long)seconds);
	heard = hear(self->listeners[1], self->nic, bob);
	EXPECT_FALSE(heard.missed);
	EXPECT_EQ(1, heard.of);
	EXPECT_EQ(0, nic_no_limit(&self->g, self->nic, mallory));
	EXPECT_EQ(0, nic_no_limit(&self->g, self->nic, bob));
}

/* ---- everybody else ---- */

static int ask_for_ever(void *arg)
{
	int fd = ht_raw_open();

	(void)arg;
	for (;;)
		if (fd < 0 || ask_for_terminus(fd) != -EDQUOT)
			return 91;
}

/* What takes the lock of all users: each has to be had at once, whoever is refused. */
static int live_on(void *arg)
{
	int64_t *worst = arg, begun;
	struct party p;
	int i;

	for (i = 0; i < ht_rounds(ROUNDS); i++) {
		begun = ht_now_ns();
		if (party_open(&p))
			return 91;
		party_close(&p);
		begun = ht_now_ns() - begun;
		if (begun > *worst)
			*worst = begun;
	}
	return 0;
}

/*
 * An event allocates and goes to each who listens. While one that is told holds what others
 * need they wait for it, or the debug kernel says that it sleeps where it must not.
 */
TEST_F(hostile_quota, who_is_refused_in_a_loop_keeps_nobody_waiting)
{
	const unsigned int mallory = somebody(3), bob = somebody(4);
	int64_t *worst = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t pid;

	ASSERT_NE(MAP_FAILED, (void *)worst);
	ASSERT_EQ(0, take_limits(&self->g, self->nic, mallory));
	pid = ht_fork();
	ASSERT_LE(0, pid);
	if (!pid)
		_exit(become(mallory) ? 99 : ask_for_ever(NULL));
	EXPECT_EQ(0, as(bob, live_on, worst));
	EXPECT_EQ(0, nic_call(&self->g, HAMLYN_NL_CMD_NIC_GET, self->nic));
	/* It was at it all the time. */
	EXPECT_EQ(0, kill(pid, SIGKILL));
	EXPECT_LE(128, ht_reap(pid));
	TH_LOG("the longest of %d took %lld us", ht_rounds(ROUNDS), (long long)*worst / 1000);
	EXPECT_EQ(0, nic_no_limit(&self->g, self->nic, mallory));
	munmap(worst, PAGE);
}

TEST_HARNESS_MAIN
