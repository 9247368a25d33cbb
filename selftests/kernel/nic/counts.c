// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the NIC says that there is of each kind, and what its user has, is exact: behind
 * each object that comes and goes, and behind each that could not be made. Kernel device
 * only, run as root, with nobody else on the NIC.
 */
#include "kselftest_harness.h"
#include "hostile.h"
#include "genl.h"

#include <fcntl.h>

enum figure {
	CONTEXTS, AREAS, SLOTS, NQS, TERMINI, KERNEL, WIRED,
	USER_CONTEXTS, USER_SLOTS, USER_TERMINI, USER_KERNEL, USER_WIRED,
	FIGURES
};

static const struct {
	const char *name;
	uint16_t attr;
	bool user;
} told[FIGURES] = {
	[CONTEXTS] = { "contexts", HAMLYN_A_CONTEXTS, false },
	[AREAS] = { "areas", HAMLYN_A_AREAS, false },
	[SLOTS] = { "slots", HAMLYN_A_SLOTS, false },
	[NQS] = { "NQs", HAMLYN_A_NQS, false },
	[TERMINI] = { "termini", HAMLYN_A_TERMINI, false },
	[KERNEL] = { "kernel memory", HAMLYN_A_KERNEL_BYTES, false },
	[WIRED] = { "wired memory", HAMLYN_A_WIRED_BYTES, false },
	[USER_CONTEXTS] = { "the user's contexts", HAMLYN_A_CONTEXTS, true },
	[USER_SLOTS] = { "the user's slots", HAMLYN_A_SLOTS, true },
	[USER_TERMINI] = { "the user's termini", HAMLYN_A_TERMINI, true },
	[USER_KERNEL] = { "the user's kernel memory", HAMLYN_A_KERNEL_BYTES,
			  true },
	[USER_WIRED] = { "the user's wired memory", HAMLYN_A_WIRED_BYTES,
			 true },
};

struct use {
	int64_t of[FIGURES];
};

FIXTURE(counts) {
	int fd;
	int netlink;
	uint16_t family;
	uint32_t nic;
	struct hamlyn_area_alloc area;
	struct use was;
};

static void take(const struct nlmsghdr *h, struct use *u, bool user)
{
	int i;

	for (i = 0; i < FIGURES; i++)
		if (told[i].user == user)
			u->of[i] = (int64_t)genl_number(attr_of(h,
								told[i].attr));
}

static void take_nic(const struct nlmsghdr *h, void *arg)
{
	take(h, arg, false);
}

static void take_user(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *uid = attr_of(h, HAMLYN_A_UID);

	if (uid && attr_u32(uid) == geteuid())
		take(h, arg, true);
}

static int look(const FIXTURE_DATA(counts) *self, struct use *u)
{
	struct request r;
	int ret;

	memset(u, 0, sizeof(*u));
	request_init(&r, self->family, HAMLYN_NL_CMD_NIC_GET, NLM_F_ACK);
	request_u32(&r, HAMLYN_A_NIC, self->nic);
	ret = ask(self->netlink, &r, take_nic, u);
	request_init(&r, self->family, HAMLYN_NL_CMD_USER_GET, NLM_F_DUMP);
	request_u32(&r, HAMLYN_A_NIC, self->nic);
	return ret ? ret : ask(self->netlink, &r, take_user, u);
}

/* NULL if only @figures, a list ended by -1, have changed, each by the number behind it. */
static const char *differ(const FIXTURE_DATA(counts) *self,
			  const int64_t *figures)
{
	static char said[160];
	struct use want = self->was, is;
	int i;

	for (; *figures >= 0; figures += 2)
		want.of[figures[0]] += figures[1];
	if (look(self, &is))
		return "no answer";
	for (i = 0; i < FIGURES; i++) {
		if (is.of[i] == want.of[i])
			continue;
		snprintf(said, sizeof(said), "%s: %lld instead of %lld",
			 told[i].name, (long long)is.of[i],
			 (long long)want.of[i]);
		return said;
	}
	return NULL;
}

#define EXPECT_CHANGE(...) do { \
	const char *said_ = differ(self, (const int64_t[]) { __VA_ARGS__, \
							     -1 }); \
	EXPECT_EQ(NULL, said_) { TH_LOG("%s", said_); } \
} while (0)

#define EXPECT_NO_CHANGE()	EXPECT_CHANGE(CONTEXTS, 0)

/* Whoever was killed before us may not be gone yet. */
static int alone(FIXTURE_DATA(counts) *self)
{
	struct ht_poll poll;
	int ret;

	ht_poll_begin(&poll);
	do
		ret = look(self, &self->was);
	while (!ret && self->was.of[CONTEXTS] != 1 && ht_poll_more(&poll));
	return ret;
}

FIXTURE_SETUP(counts)
{
	const char *device = getenv("HAMLYN_DEVICE");

	if (!device || sscanf(device, "/dev/hamlyn%u", &self->nic) != 1)
		self->nic = 0;
	self->netlink = netlink_open(&self->family);
	ASSERT_GE(self->netlink, 0);
	self->fd = ht_raw_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &self->area, NULL));
	ASSERT_EQ(0, alone(self));
	EXPECT_EQ(1, self->was.of[CONTEXTS]);
	EXPECT_EQ(1, self->was.of[USER_CONTEXTS]);
	EXPECT_EQ(1, self->was.of[AREAS]);
	EXPECT_EQ(PAGE, self->was.of[KERNEL]);
	EXPECT_EQ(PAGE, self->was.of[USER_KERNEL]);
	EXPECT_EQ(0, self->was.of[SLOTS] + self->was.of[NQS] +
		     self->was.of[TERMINI] + self->was.of[WIRED]);
}

FIXTURE_TEARDOWN(counts)
{
	EXPECT_NO_CHANGE();
	close(self->fd);
	close(self->netlink);
}

/* ---- what comes and goes ------------------------------------------------------ */

TEST_F(counts, an_open_file)
{
	int fd = ht_raw_open();

	ASSERT_GE(fd, 0);
	EXPECT_CHANGE(CONTEXTS, 1, USER_CONTEXTS, 1);
	close(fd);
}

TEST_F(counts, memory)
{
	struct hamlyn_area_add add = { .size = sizeof(add), .length = PAGE };
	struct hamlyn_area_alloc area;

	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, 3 * PAGE, &area, NULL));
	EXPECT_CHANGE(AREAS, 1, KERNEL, 3 * PAGE, USER_KERNEL, 3 * PAGE);
	ASSERT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE, area.area));
	EXPECT_NO_CHANGE();
	add.addr = (uintptr_t)mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_AREA_ADD, &add));
	EXPECT_CHANGE(AREAS, 1, WIRED, PAGE, USER_WIRED, PAGE);
	ASSERT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_AREA_REMOVE, add.area));
}

TEST_F(counts, slots)
{
	struct hamlyn_slot_create slot;

	ASSERT_EQ(0, ht_raw_slot_create(self->fd, self->area.area, PAGE,
					HAMLYN_NONE, &slot));
	EXPECT_CHANGE(SLOTS, 1, USER_SLOTS, 1);
	ASSERT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_SLOT_DESTROY, slot.slot));
}

TEST_F(counts, queues_and_termini)
{
	struct ht_raw_terminus t;
	struct ht_raw_nq nq;

	ASSERT_EQ(0, ht_raw_nq_create(self->fd, 4, &nq));
	EXPECT_CHANGE(NQS, 1, KERNEL, 2 * PAGE, USER_KERNEL, 2 * PAGE);
	ht_raw_nq_unmap(&nq);
	ASSERT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_NQ_DESTROY, nq.arg.nq));
	EXPECT_NO_CHANGE();
	ASSERT_EQ(0, ht_raw_terminus_create(self->fd, 8, 256, &t));
	EXPECT_CHANGE(TERMINI, 1, USER_TERMINI, 1, KERNEL, 2 * PAGE,
		      USER_KERNEL, 2 * PAGE);
	ht_raw_terminus_unmap(&t);
	ASSERT_EQ(0, ht_raw_id(self->fd, HAMLYN_IOC_TERMINUS_DESTROY,
			       t.arg.terminus));
}

/* By the end of what has them, in place of one by one. */
TEST_F(counts, all_that_a_process_leaves)
{
	struct party p;

	ASSERT_EQ(0, party_open(&p));
	EXPECT_CHANGE(CONTEXTS, 1, USER_CONTEXTS, 1, AREAS, 1, SLOTS, 1,
		      USER_SLOTS, 1, NQS, 1, TERMINI, 1, USER_TERMINI, 1,
		      KERNEL, 5 * PAGE, USER_KERNEL, 5 * PAGE);
	party_close(&p);
}

static int open_and_look(void *arg)
{
	struct hamlyn_area_add add = { .size = sizeof(add), .length = PAGE };
	struct hamlyn_area_alloc area;
	uint16_t family = 0;
	int netlink = netlink_open(&family), fd = ht_raw_open();

	(void)arg;
	add.addr = (uintptr_t)mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || ht_raw(fd, HAMLYN_IOC_AREA_ADD, &add) ||
	    ht_raw_area_alloc(fd, PAGE, &area, NULL))
		return 100;
	return listed(netlink, family, geteuid());
}

TEST_F(counts, who_has_gone_is_not_listed)
{
	const unsigned int uid = somebody(5);

	EXPECT_EQ(1, as(uid, open_and_look, NULL));
	EXPECT_EQ(0, listed(self->netlink, self->family, uid));
}

/* ---- what could not be made --------------------------------------------------- */

TEST_F(counts, slots_that_are_refused)
{
	struct hamlyn_slot_create slot;
	uint32_t area = self->area.area;

	EXPECT_EQ(-ENOENT, ht_raw_slot_create(self->fd, area + 1, 1,
					      HAMLYN_NONE, &slot));
	EXPECT_EQ(-ENOENT, ht_raw_slot_create(self->fd, area, 1, 4242, &slot));
	EXPECT_EQ(-ERANGE, ht_raw_slot_create(self->fd, area, PAGE + 1,
					      HAMLYN_NONE, &slot));
	EXPECT_NO_CHANGE();
}

TEST_F(counts, memory_that_is_refused)
{
	struct hamlyn_area_add add = { .size = sizeof(add), .length = PAGE };
	struct hamlyn_area_alloc area = { .size = sizeof(area),
					  .length = 1ULL << 36 };

	EXPECT_NE(0, ht_raw(self->fd, HAMLYN_IOC_AREA_ALLOC, &area));
	/* Nothing there, and behind the end of what is. */
	add.addr = PAGE;
	EXPECT_EQ(-EFAULT, ht_raw(self->fd, HAMLYN_IOC_AREA_ADD, &add));
	add.addr = (uintptr_t)mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE,
				   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_EQ(0, munmap((void *)(uintptr_t)(add.addr + PAGE), PAGE));
	add.length = 2 * PAGE;
	EXPECT_EQ(-EFAULT, ht_raw(self->fd, HAMLYN_IOC_AREA_ADD, &add));
	EXPECT_NO_CHANGE();
}

TEST_F(counts, slots_when_there_are_no_more)
{
	struct hamlyn_slot_create slot;
	struct hamlyn_query query;
	uint32_t n;
	int fd, ret = 0;

	ASSERT_EQ(0, ht_raw_query(self->fd, &query));
	fd = ht_raw_open();
	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, ht_raw_area_alloc(fd, PAGE, &self->area, NULL));
	for (n = 0; !ret && n <= query.max_slots; n++)
		ret = ht_raw_slot_create(fd, self->area.area, 1, HAMLYN_NONE,
					 &slot);
	ASSERT_EQ(-ENOSPC, ret);
	EXPECT_CHANGE(CONTEXTS, 1, USER_CONTEXTS, 1, AREAS, 1, KERNEL, PAGE,
		      USER_KERNEL, PAGE, SLOTS, query.max_slots, USER_SLOTS,
		      query.max_slots);
	close(fd);
}

TEST_HARNESS_MAIN
