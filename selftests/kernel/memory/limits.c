// SPDX-License-Identifier: GPL-2.0-only
/*
 * Memory: what is charged, what is refused, what rights are needed, and what
 * an area still names when its owner remaps. Kernel device only.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <fcntl.h>
#include <sched.h>
#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#define PAGE	4096UL
#define NOBODY	65534

static char some_data[64];

FIXTURE(limits) {
	int fd;
	struct hamlyn_query query;
};

FIXTURE_SETUP(limits)
{
	self->fd = ht_raw_open();
	ASSERT_GE(self->fd, 0);
	ASSERT_EQ(0, ht_raw_query(self->fd, &self->query));
}

FIXTURE_TEARDOWN(limits)
{
	close(self->fd);
}

static int area_add(int fd, const void *addr, uint64_t length, uint32_t flags,
		    uint32_t *id)
{
	struct hamlyn_area_add arg = {
		.size = sizeof(arg),
		.flags = flags,
		.addr = (uintptr_t)addr,
		.length = length,
	};
	int ret = ht_raw(fd, HAMLYN_IOC_AREA_ADD, &arg);

	*id = arg.area;
	return ret;
}

static int area_remove(int fd, uint32_t id)
{
	return ht_raw_id(fd, HAMLYN_IOC_AREA_REMOVE, id);
}

/* Pages that this process is charged for, locked or pinned. */
static long charged(void)
{
	FILE *file = fopen("/proc/self/status", "re");
	char line[256];
	long kib, sum = 0;

	if (!file)
		return -1;
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "VmLck: %ld", &kib) == 1 ||
		    sscanf(line, "VmPin: %ld", &kib) == 1)
			sum += kib;
	fclose(file);
	return sum * 1024 / (long)PAGE;
}

/* The charge may fall a moment after what it was for is gone. */
static bool charge_returns_to(long pages)
{
	struct ht_poll poll;

	ht_poll_begin(&poll);
	while (charged() != pages)
		if (!ht_poll_more(&poll))
			return false;
	return true;
}

static unsigned char *pages(unsigned long count)
{
	unsigned char *p = mmap(NULL, count * PAGE, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return NULL;
	/* Of which each is charged by itself. */
	madvise(p, count * PAGE, MADV_NOHUGEPAGE);
	memset(p, 1, count * PAGE);
	return p;
}

/* ---- accounting --------------------------------------------------------- */

TEST_F(limits, every_page_that_is_wired_is_charged_and_no_other)
{
	unsigned char *p = pages(20);
	const struct {
		size_t from;
		size_t length;
		long pages;
	} cases[] = {
		{ 0, 1, 1 }, { 0, PAGE, 1 }, { 0, PAGE + 1, 2 },
		{ PAGE - 1, 1, 1 }, { PAGE - 1, 2, 2 }, { 1, PAGE, 2 },
		{ 0, 20 * PAGE, 20 }, { PAGE - 1, PAGE + 2, 3 },
	};
	long before;
	uint32_t id;
	unsigned int i;

	ASSERT_NE(NULL, p);
	before = charged();
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		ASSERT_EQ(0, area_add(self->fd, p + cases[i].from,
				      cases[i].length, 0, &id));
		EXPECT_EQ(before + cases[i].pages, charged()) {
			TH_LOG("case %u", i);
		}
		ASSERT_EQ(0, area_remove(self->fd, id));
		EXPECT_TRUE(charge_returns_to(before)) {
			TH_LOG("case %u", i);
		}
	}
}

TEST_F(limits, failures_charge_nothing)
{
	unsigned char *p = pages(4);
	long before = charged();
	uint32_t id;

	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, munmap(p + 2 * PAGE, PAGE));
	EXPECT_EQ(-EFAULT, area_add(self->fd, p, 4 * PAGE, 0, &id));
	EXPECT_EQ(-EFAULT, area_add(self->fd, p, 2 * PAGE + 1, 0, &id));
	EXPECT_EQ(-EFAULT, area_add(self->fd, p + 2 * PAGE, 1, 0, &id));
	EXPECT_EQ(-EFAULT, area_add(self->fd, NULL, PAGE, 0, &id));
	EXPECT_EQ(-EINVAL, area_add(self->fd, p, 0, 0, &id));
	EXPECT_EQ(-E2BIG, area_add(self->fd, p, self->query.max_area + 1, 0,
				   &id));
	EXPECT_EQ(-E2BIG, area_add(self->fd, p, ~0ULL, 0, &id));
	EXPECT_EQ(-EFAULT, area_add(self->fd, (void *)(UINTPTR_MAX - 10), 20, 0,
				    &id));
	EXPECT_EQ(-EFAULT, area_add(self->fd, (void *)0xffff888000000000UL,
				    PAGE, 0, &id));
	EXPECT_EQ(before, charged());
}

TEST_F(limits, closing_gives_everything_back)
{
	unsigned char *p = pages(64);
	long before = charged();
	uint32_t id;
	int fd, round, i;

	for (round = 0; round < 10; round++) {
		fd = ht_raw_open();
		ASSERT_GE(fd, 0);
		for (i = 0; i < 16; i++) {
			ASSERT_EQ(0, area_add(fd, p + i * 4 * PAGE, 4 * PAGE,
					      0, &id));
		}
		EXPECT_EQ(before + 64, charged());
		close(fd);
		EXPECT_TRUE(charge_returns_to(before));
	}
}

TEST_F(limits, the_death_of_the_last_holder_gives_everything_back)
{
	unsigned char *p = pages(10);
	long before = charged();
	int fd = ht_raw_open();
	int pipefd[2];
	uint32_t id;
	char byte;
	pid_t pid;

	ASSERT_GE(fd, 0);
	ASSERT_EQ(0, area_add(fd, p, 10 * PAGE, 0, &id));
	ASSERT_EQ(0, pipe(pipefd));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid) {
		if (write(pipefd[1], "x", 1) == 1)
			pause();
		_exit(0);
	}
	ASSERT_EQ(0, ht_read_all(pipefd[0], &byte, 1));
	close(fd);
	/* Wired on behalf of this process, held by the other. */
	EXPECT_EQ(before + 10, charged());
	kill(pid, SIGKILL);
	EXPECT_EQ(128 + SIGKILL, ht_reap(pid));
	EXPECT_TRUE(charge_returns_to(before));
}

TEST_F(limits, allocated_areas_are_not_charged_to_the_process)
{
	struct hamlyn_area_alloc area;
	long before = charged();
	void *map;

	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, 1 << 20, &area, &map));
	EXPECT_EQ(before, charged());
}

/* ---- the limit ---------------------------------------------------------- */

/* As nobody, with a limit of 8 pages. Returns 0 or which step went wrong. */
static int live_within_limit(int fd)
{
	struct rlimit limit = { 8 * PAGE, 8 * PAGE };
	struct hamlyn_area_alloc alloc;
	unsigned char *p = pages(32);
	uint32_t ids[8], id;
	int i;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) ||
	    setresgid(NOBODY, NOBODY, NOBODY) ||
	    setresuid(NOBODY, NOBODY, NOBODY))
		return 1;
	if (charged())
		return 2;
	if (area_add(fd, p, 9 * PAGE, 0, &id) != -ENOMEM)
		return 3;
	if (area_add(fd, p + 1, 8 * PAGE, 0, &id) != -ENOMEM)
		return 4;
	if (charged())
		return 5;
	for (i = 0; i < 8; i++)
		if (area_add(fd, p + i * PAGE, PAGE, 0, &ids[i]))
			return 6;
	if (charged() != 8)
		return 7;
	if (area_add(fd, p + 8 * PAGE, 1, 0, &id) != -ENOMEM)
		return 8;
	/* Another context of the same process has the same limit. */
	i = ht_raw_open();
	if (i >= 0 && area_add(i, p + 8 * PAGE, 1, 0, &id) != -ENOMEM)
		return 9;
	if (area_remove(fd, ids[3]) ||
	    area_add(fd, p + 8 * PAGE, 1, 0, &ids[3]))
		return 10;
	if (area_add(fd, p + 9 * PAGE, 1, 0, &id) != -ENOMEM)
		return 11;
	/* What the kernel allocates is not under this limit. */
	if (ht_raw_area_alloc(fd, 64 * PAGE, &alloc, NULL))
		return 12;
	/* The limit may become less than what there is. */
	limit.rlim_cur = 4 * PAGE;
	if (setrlimit(RLIMIT_MEMLOCK, &limit) ||
	    area_add(fd, p + 9 * PAGE, 1, 0, &id) != -ENOMEM)
		return 16;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_MEMLOCK, &limit))
		return 17;
	for (i = 0; i < 8; i++)
		if (area_remove(fd, ids[i]))
			return 13;
	if (!charge_returns_to(0))
		return 14;
	if (area_add(fd, p, 8 * PAGE, 0, &id))
		return 15;
	return 0;
}

TEST_F(limits, RLIMIT_MEMLOCK_holds_for_the_unprivileged)
{
	pid_t pid = ht_fork();

	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(live_within_limit(self->fd));
	EXPECT_EQ(0, ht_reap(pid));
}

/* CAP_IPC_LOCK away, and nothing else. */
static int drop_ipc_lock(void)
{
	struct __user_cap_header_struct header = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &header, data))
		return -errno;
	data[0].effective &= ~(1U << CAP_IPC_LOCK);
	data[0].permitted &= ~(1U << CAP_IPC_LOCK);
	return syscall(SYS_capset, &header, data) ? -errno : 0;
}

static int wire_without_capability(void)
{
	struct rlimit limit = { 8 * PAGE, 8 * PAGE };
	unsigned char *p = pages(9);
	int fd = ht_raw_open();
	uint32_t id;

	if (!p || fd < 0 || setrlimit(RLIMIT_MEMLOCK, &limit) ||
	    drop_ipc_lock())
		return 1;
	if (area_add(fd, p, 9 * PAGE, 0, &id) != -ENOMEM)
		return 2;
	return area_add(fd, p, 8 * PAGE, 0, &id) ? 3 : 0;
}

/* What the exempt wire is not charged to those of the same uid who are not. */
TEST_F(limits, the_exempt_leave_the_others_of_their_uid_the_limit)
{
	unsigned char *p = pages(64);
	uint32_t id;
	pid_t pid;

	if (geteuid())
		SKIP(return, "kernel: as root");
	ASSERT_NE(NULL, p);
	ASSERT_EQ(0, area_add(self->fd, p, 64 * PAGE, 0, &id));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(wire_without_capability());
	EXPECT_EQ(0, ht_reap(pid));
	EXPECT_EQ(64, charged());
	ASSERT_EQ(0, area_remove(self->fd, id));
	EXPECT_TRUE(charge_returns_to(0));
}

/* A process that wires as much as it may, and is killed: a hundred times. */
TEST_F(limits, the_killed_keep_nothing_charged)
{
	struct rlimit limit = { 64 * PAGE, 64 * PAGE };
	int pipefd[2], round, fd;
	uint32_t id;
	char byte;
	pid_t pid;

	ASSERT_EQ(0, pipe(pipefd));
	for (round = 0; round < ht_rounds(100); round++) {
		pid = ht_fork();
		ASSERT_GE(pid, 0);
		if (!pid) {
			unsigned char *p = pages(64);

			/* Opened while it may: the node may be root's. */
			fd = ht_raw_open();
			if (fd < 0 || setrlimit(RLIMIT_MEMLOCK, &limit) ||
			    setresuid(NOBODY, NOBODY, NOBODY))
				_exit(1);
			ht_stay_child();
			if (area_add(fd, p, 64 * PAGE, 0, &id))
				_exit(2);
			if (write(pipefd[1], "x", 1) == 1)
				pause();
			_exit(3);
		}
		ASSERT_EQ(0, ht_read_all(pipefd[0], &byte, 1)) {
			TH_LOG("round %d", round);
		}
		kill(pid, SIGKILL);
		ASSERT_EQ(128 + SIGKILL, ht_reap(pid)) {
			TH_LOG("round %d", round);
		}
	}
}

/* ---- the limit for kernel memory ---------------------------------------- */

TEST_F(limits, allocated_areas_end_with_EDQUOT)
{
	enum { MOST = 4096 };
	static struct hamlyn_area_alloc areas[MOST];
	struct hamlyn_area_alloc one;
	int n, ret = 0, other;

	/* In pieces: the limit is the NIC's, not that of one area. */
	for (n = 0; n < MOST; n++) {
		ret = ht_raw_area_alloc(self->fd, 4 << 20, &areas[n], NULL);
		if (ret)
			break;
	}
	EXPECT_EQ(-EDQUOT, ret) {
		TH_LOG("after %d areas of 4 MiB", n);
	}
	/* For everybody on the NIC. */
	other = ht_raw_open();
	ASSERT_GE(other, 0);
	EXPECT_EQ(-EDQUOT, ht_raw_area_alloc(other, 4 << 20, &one, NULL));
	if (n) {
		ASSERT_EQ(0, area_remove(self->fd, areas[0].area));
		EXPECT_EQ(0, ht_raw_area_alloc(other, 4 << 20, &one, NULL));
	}
	close(other);
	close(self->fd);
	/* What they had is free again. */
	self->fd = ht_raw_open();
	ASSERT_GE(self->fd, 0);
	EXPECT_EQ(0, ht_raw_area_alloc(self->fd, 4 << 20, &one, NULL));
}

TEST_F(limits, the_largest_area_is_that_of_query)
{
	struct hamlyn_area_alloc arg = { .size = sizeof(arg) };
	static const uint64_t more[] = { 1, 4096, 1ULL << 32, 1ULL << 62 };
	unsigned int i;
	uint32_t id;
	int ret;

	for (i = 0; i < ARRAY_SIZE(more); i++) {
		arg.length = self->query.max_area + more[i];
		EXPECT_EQ(-E2BIG, ht_raw(self->fd, HAMLYN_IOC_AREA_ALLOC,
					 &arg));
	}
	arg.length = ~0ULL;
	EXPECT_EQ(-E2BIG, ht_raw(self->fd, HAMLYN_IOC_AREA_ALLOC, &arg));
	arg.length = 0;
	EXPECT_EQ(-EINVAL, ht_raw(self->fd, HAMLYN_IOC_AREA_ALLOC, &arg));
	arg.length = self->query.max_area;
	ret = ht_raw(self->fd, HAMLYN_IOC_AREA_ALLOC, &arg);
	EXPECT_TRUE(ret == 0 || ret == -ENOMEM || ret == -EDQUOT) {
		TH_LOG("%d", ret);
	}
	/* Of which one page is there. */
	ret = area_add(self->fd, pages(1), self->query.max_area, 0, &id);
	EXPECT_TRUE(ret == -EFAULT || ret == -ENOMEM || ret == -EDQUOT) {
		TH_LOG("%d", ret);
	}
}

/* ---- the limits of one user ---------------------------------------------- */

#define SOMEBODY	65533
#define CHUNK		(1UL << 20)

/* From here on this process is @uid, and has nothing special. */
static int become(unsigned int uid)
{
	if (setresgid(uid, uid, uid) || setresuid(uid, uid, uid))
		return -1;
	ht_stay_child();
	return 0;
}

static int alloc(int fd, size_t length, struct hamlyn_area_alloc *arg)
{
	return ht_raw_area_alloc(fd, length, arg, NULL);
}

/* As @uid: take all memory that one may have, say how it ended, and stay. */
static int hoard_memory(unsigned int uid, int out)
{
	struct hamlyn_terminus_create t = { .size = sizeof(t), .entries = 4096,
					    .entry_size = 4096 };
	struct hamlyn_nq_create nq = { .size = sizeof(nq), .entries = 65536 };
	struct hamlyn_area_alloc area;
	int fd, second, ret, n;

	if (become(uid))
		return 1;
	fd = ht_raw_open();
	second = ht_raw_open();
	if (fd < 0 || second < 0)
		return 2;
	for (n = 0; n < 65536; n++) {
		ret = alloc(fd, CHUNK, &area);
		if (ret)
			break;
	}
	if (ret != -EDQUOT || !n)
		return 3;
	/* Another context is not another user, rings are memory too. */
	if (alloc(second, CHUNK, &area) != -EDQUOT)
		return 4;
	if (ht_raw(second, HAMLYN_IOC_NQ_CREATE, &nq) != -EDQUOT)
		return 5;
	if (ht_raw(second, HAMLYN_IOC_TERMINUS_CREATE, &t) != -EDQUOT)
		return 6;
	/* What was let go may be had again. */
	if (ht_raw_id(fd, HAMLYN_IOC_AREA_REMOVE, 0) &&
	    ht_raw_id(fd, HAMLYN_IOC_AREA_REMOVE, 1))
		return 7;
	if (alloc(second, CHUNK, &area))
		return 8;
	if (write(out, "x", 1) == 1)
		pause();
	return 9;
}

/* As @uid: is there something left? */
static int take_a_little(unsigned int uid)
{
	struct hamlyn_slot_create slot;
	struct hamlyn_area_alloc area;
	int fd;

	if (uid && become(uid))
		return 1;
	fd = ht_raw_open();
	if (fd < 0)
		return 2;
	if (alloc(fd, CHUNK, &area))
		return 3;
	return ht_raw_slot_create(fd, area.area, 100, HAMLYN_NONE, &slot) ?
	       4 : 0;
}

static int as(unsigned int uid, int (*act)(unsigned int uid))
{
	pid_t pid = ht_fork();

	if (!pid)
		_exit(act(uid));
	return pid < 0 ? -errno : ht_reap(pid);
}

/* Start a process that takes all it can; 0 when it has. */
static int start_hoarder(int (*hoard)(unsigned int uid, int out), pid_t *pid)
{
	int pipefd[2], ret;
	char byte;

	if (pipe(pipefd))
		return -errno;
	*pid = ht_fork();
	if (!*pid)
		_exit(hoard(NOBODY, pipefd[1]));
	close(pipefd[1]);
	ret = *pid < 0 ? -errno : ht_read_all(pipefd[0], &byte, 1);
	close(pipefd[0]);
	return ret;
}

TEST_F(limits, one_user_cannot_take_all_memory)
{
	pid_t pid;

	ASSERT_EQ(0, start_hoarder(hoard_memory, &pid)) {
		TH_LOG("step %d", ht_reap(pid));
	}
	EXPECT_EQ(0, as(SOMEBODY, take_a_little));
	EXPECT_EQ(0, as(0, take_a_little));
	EXPECT_EQ(3, as(NOBODY, take_a_little));
	kill(pid, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, ht_reap(pid));
	EXPECT_EQ(0, as(NOBODY, take_a_little));
}

static int hoard_slots(unsigned int uid, int out)
{
	struct hamlyn_slot_create slot;
	struct hamlyn_area_alloc area;
	struct hamlyn_query query;
	uint32_t n, last = 0;
	int fd, ret = 0;

	if (become(uid))
		return 1;
	fd = ht_raw_open();
	if (fd < 0 || ht_raw_query(fd, &query) || alloc(fd, 1, &area))
		return 2;
	for (n = 0; n <= query.max_slots; n++) {
		ret = ht_raw_slot_create(fd, area.area, 1, HAMLYN_NONE, &slot);
		if (ret)
			break;
		last = slot.slot;
	}
	if (ret != -EDQUOT || !n || n >= query.max_slots)
		return 3;
	if (ht_raw_id(fd, HAMLYN_IOC_SLOT_DESTROY, last) ||
	    ht_raw_slot_create(fd, area.area, 1, HAMLYN_NONE, &slot))
		return 4;
	if (write(out, "x", 1) == 1)
		pause();
	return 5;
}

TEST_F(limits, one_user_cannot_take_all_slots)
{
	pid_t pid;

	ASSERT_EQ(0, start_hoarder(hoard_slots, &pid)) {
		TH_LOG("step %d", ht_reap(pid));
	}
	EXPECT_EQ(0, as(SOMEBODY, take_a_little));
	EXPECT_EQ(0, as(0, take_a_little));
	EXPECT_EQ(4, as(NOBODY, take_a_little));
	kill(pid, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, ht_reap(pid));
	EXPECT_EQ(0, as(NOBODY, take_a_little));
}

/* What is destroyed and still mapped is not free for something else. */
static int keep_mapped(unsigned int uid)
{
	enum { MOST = 4096 };
	static struct hamlyn_area_alloc areas[MOST];
	static void *maps[MOST];
	struct hamlyn_area_alloc area;
	int fd, n, i, ret = 0;

	if (become(uid))
		return 1;
	fd = ht_raw_open();
	if (fd < 0)
		return 2;
	for (n = 0; n < MOST; n++) {
		ret = ht_raw_area_alloc(fd, CHUNK, &areas[n], &maps[n]);
		if (ret)
			break;
	}
	if (ret != -EDQUOT)
		return 3;
	for (i = 0; i < n; i++)
		if (ht_raw_id(fd, HAMLYN_IOC_AREA_REMOVE, areas[i].area))
			return 4;
	if (alloc(fd, CHUNK, &area) != -EDQUOT)
		return 5;
	for (i = 0; i < n; i++)
		if (munmap(maps[i], areas[i].length))
			return 6;
	return alloc(fd, CHUNK, &area) ? 7 : 0;
}

TEST_F(limits, what_is_mapped_counts_until_it_is_unmapped)
{
	EXPECT_EQ(0, as(NOBODY, keep_mapped));
}

/* ---- what somebody holds without mapping it ------------------------------ */

#define HUGE		(2UL << 20)
#define IN_A_PIPE	16	/* pages, which any pipe has room for */

/* A page of each 2 MiB of the mapping goes into pipes. Returns -1 if not all. */
static int into_pipes(unsigned char *map, size_t length, int *pipes, int *count)
{
	size_t at, n;

	for (at = 0, n = 0; at < length; at += HUGE, n++) {
		struct iovec v = { map + at, PAGE };

		if (!(n % IN_A_PIPE)) {
			if (pipe(&pipes[*count]))
				return -1;
			*count += 2;
		}
		if (vmsplice(pipes[*count - 1], &v, 1, SPLICE_F_NONBLOCK) !=
		    (ssize_t)PAGE)
			return -1;
	}
	return 0;
}

/* Allocates at @fd until it is refused; all is gone again, but what pipes keep. */
static int keep_in_pipes(int fd, size_t length, int *pipes, int *count)
{
	struct hamlyn_area_alloc area = { .size = sizeof(area),
					  .flags = HAMLYN_AREA_HUGE,
					  .length = length };
	unsigned char *room, *map;
	int ret = ht_raw(fd, HAMLYN_IOC_AREA_ALLOC, &area);

	if (ret)
		return ret;
	room = mmap(NULL, length + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS,
		    -1, 0);
	map = (void *)(((uintptr_t)room + HUGE - 1) & ~(HUGE - 1));
	if (mmap(map, length, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
		 (off_t)area.mmap_offset) != map ||
	    into_pipes(map, length, pipes, count))
		return 1;
	munmap(room, length + HUGE);
	return ht_raw_id(fd, HAMLYN_IOC_AREA_REMOVE, area.area);
}

static unsigned long available_kib(void)
{
	unsigned long kib = 0;
	char line[256];
	FILE *f = fopen("/proc/meminfo", "re");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "MemAvailable: %lu", &kib) == 1)
			break;
	if (f)
		fclose(f);
	return kib;
}

static int fill_pipes(unsigned int uid)
{
	enum { MOST = 512 };
	static int pipes[4 * MOST];
	unsigned long before = available_kib();
	struct hamlyn_area_alloc area;
	struct ht_poll poll;
	int fd, n, i, ret = 0, count = 0;

	if (become(uid))
		return 1;
	fd = ht_raw_open();
	if (fd < 0)
		return 2;
	for (n = 0; n < MOST && !ret && count < 400; n++)
		ret = keep_in_pipes(fd, 8 * HUGE, pipes, &count);
	fprintf(stderr, "# %d areas of 16 MiB went, pipes keep %ld MiB; then %d\n",
		n - 1, ((long)before - (long)available_kib()) / 1024, ret);
	if (ret != -EDQUOT || n < 2)
		return 3;
	/* Nothing comes back by itself. */
	usleep(500000);
	if (alloc(fd, 8 * HUGE, &area) != -EDQUOT)
		return 4;
	for (i = 0; i < count; i++)
		close(pipes[i]);
	ht_poll_begin(&poll);
	for (i = 0; i < n - 1;)
		if (!alloc(fd, 8 * HUGE, &area))
			i++;
		else if (!ht_poll_more(&poll))
			return 5;
	return 0;
}

TEST_F(limits, what_a_pipe_keeps_counts_until_it_lets_go)
{
	EXPECT_EQ(0, as(NOBODY, fill_pipes));
}

/* Rings are mapped as well. */
static int keep_rings(unsigned int uid)
{
	struct hamlyn_nq_create nq;
	int fd, n, i, k, ret = 0;
	static int pipes[2 * 2048];
	struct ht_poll poll;
	int count = 0;

	if (become(uid))
		return 1;
	fd = ht_raw_open();
	for (n = 0; n < 64 && !ret; n++) {
		struct iovec v;

		nq = (struct hamlyn_nq_create){ .size = sizeof(nq),
						.entries = 1 << 20 };
		ret = ht_raw(fd, HAMLYN_IOC_NQ_CREATE, &nq);
		if (ret)
			break;
		v.iov_len = 16 * PAGE;
		v.iov_base = mmap(NULL, nq.ring_length, PROT_READ, MAP_SHARED,
				  fd, (off_t)nq.ring_offset);
		if (v.iov_base == MAP_FAILED)
			return 2;
		/* All of it, as far as pipes go. */
		for (k = 0; k < 8 && count < 2 * 2048; k++, count += 2) {
			if (pipe(&pipes[count]) ||
			    vmsplice(pipes[count + 1], &v, 1,
				     SPLICE_F_NONBLOCK) != (ssize_t)v.iov_len)
				return 3;
			v.iov_base = (char *)v.iov_base + v.iov_len;
		}
		munmap((char *)v.iov_base - k * v.iov_len, nq.ring_length);
		if (ht_raw_id(fd, HAMLYN_IOC_NQ_DESTROY, nq.nq))
			return 4;
		if (n == 7)
			break;
	}
	/* 8 rings of 16 MiB have gone, but for 128 pages each: so they are not charged. */
	if (n != 7)
		return 5;
	for (i = 0; i < count; i++)
		close(pipes[i]);
	ht_poll_begin(&poll);
	nq.entries = 1 << 20;
	while (ht_raw(fd, HAMLYN_IOC_NQ_CREATE, &nq))
		if (!ht_poll_more(&poll))
			return 6;
	return 0;
}

TEST_F(limits, of_rings_in_pipes_the_rest_is_free)
{
	EXPECT_EQ(0, as(NOBODY, keep_rings));
}

/* ---- what the kernel has of each object ---------------------------------- */

#define MANY	4096

static int make_ticket(int fd, uint32_t slot)
{
	struct hamlyn_ticket_create t = { .size = sizeof(t), .slot = slot };

	return ht_raw(fd, HAMLYN_IOC_TICKET_CREATE, &t);
}

/* One more of kind @kind: 0, or why not. */
static int make_one(int fd, int kind, const struct hamlyn_slot_create *slot,
		    uint32_t nq)
{
	struct hamlyn_query query;
	struct hamlyn_slot_create s;
	struct hamlyn_watch w;

	switch (kind) {
	case 0:
		return ht_raw_open() < 0 ? -errno : 0;
	case 1:
		return make_ticket(fd, slot->slot);
	case 2:
		return ht_raw_slot_create(fd, slot->area, 1, HAMLYN_NONE, &s);
	default:
		if (ht_raw_query(fd, &query))
			return -EIO;
		w = (struct hamlyn_watch){ .size = sizeof(w), .host = query.host,
					   .slot = slot->slot, .key = slot->key,
					   .nq = nq };
		return ht_raw(fd, HAMLYN_IOC_WATCH, &w);
	}
}

/* Open files until it is refused, and then of the others: 0, or the kind. */
static int make_small_ones(unsigned int uid)
{
	struct rlimit files = { 16 * MANY, 16 * MANY };
	struct hamlyn_nq_create nq = { .size = sizeof(nq), .entries = 2 };
	struct hamlyn_slot_create slot;
	struct hamlyn_area_alloc area;
	int fd, kind, n, ret = 0;

	if (setrlimit(RLIMIT_NOFILE, &files) || become(uid))
		return 90;
	fd = ht_raw_open();
	if (fd < 0 || alloc(fd, 1, &area) ||
	    ht_raw_slot_create(fd, area.area, 1, HAMLYN_NONE, &slot) ||
	    ht_raw(fd, HAMLYN_IOC_NQ_CREATE, &nq))
		return 91;
	for (kind = 0; kind < 4; kind++) {
		for (n = 0, ret = 0; n < (kind ? MANY : 14 * MANY) && !ret; n++)
			ret = make_one(fd, kind, &slot, nq.nq);
		fprintf(stderr, "# kind %d: %d, then %d\n", kind, n - 1, ret);
		if (ret != -EDQUOT)
			return kind + 1;
	}
	return 0;
}

TEST_F(limits, every_object_of_the_kernel_counts)
{
	EXPECT_EQ(0, as(NOBODY, make_small_ones));
}

#define CONTAINER_UIDS	65536
#define FIRST_UID	(1U << 20)

/* KiB of objects that the kernel has, of all kinds; -1: not told. */
static long slab_kib(void)
{
	FILE *file = fopen("/proc/meminfo", "re");
	char line[128];
	long kib = -1;

	while (file && kib < 0 && fgets(line, sizeof(line), file))
		if (sscanf(line, "SUnreclaim: %ld", &kib) != 1)
			kib = -1;
	if (file)
		fclose(file);
	return kib;
}

/* KiB that are charged, once there is no room for a ticket more; or -1. */
static long charged_objects(int fd, uint32_t slot)
{
	const char *at;
	long asked, used;

	ht_raw_explain(true);
	while (!make_ticket(fd, slot))
		;
	at = strstr(ht_raw_why(), "objects of the kernel: ");
	if (!at || sscanf(at, "objects of the kernel: %ld KiB asked for, %ld KiB of",
			  &asked, &used) != 2)
		return -1;
	return used;
}

/* Each file as another user, until it is refused. */
static int open_as_many(void)
{
	struct hamlyn_slot_create slot;
	struct hamlyn_area_alloc area;
	long before, taken, paid;
	unsigned int n;
	int fd;

	fd = ht_raw_open();
	if (fd < 0 || alloc(fd, 1, &area) ||
	    ht_raw_slot_create(fd, area.area, 1, HAMLYN_NONE, &slot))
		return 91;
	before = slab_kib();
	for (n = 1; n < 15 * MANY; n++)
		if (seteuid(0) || seteuid(n) || ht_raw_open() < 0)
			break;
	if (errno != EDQUOT)
		return 92;
	taken = slab_kib() - before;
	paid = charged_objects(fd, slot.slot);
	fprintf(stderr, "# %u users: %ld KiB taken, %ld charged\n", n, taken, paid);
	if (before < 0 || paid < 0)
		return 93;
	/* The allocator keeps some; the records of users are more than that. */
	return taken > paid + paid / 20 ? 1 : 0;
}

/* In a user namespace that root has made for another: all of it is one share. */
static int live_in_container(int socket, const struct rlimit *files)
{
	char byte = 0;

	if (setrlimit(RLIMIT_NOFILE, files) || unshare(CLONE_NEWUSER))
		return 94;
	ht_stay_child();
	if (write(socket, &byte, 1) != 1 || ht_read_all(socket, &byte, 1))
		return 95;
	return setresgid(0, 0, 0) || setresuid(0, 0, 0) ? 96 : open_as_many();
}

static int map_ids(pid_t pid, const char *file)
{
	char path[64], line[64];
	int fd, length, ret;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	length = snprintf(line, sizeof(line), "0 %u %u\n", FIRST_UID, CONTAINER_UIDS);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	ret = write(fd, line, (size_t)length) == length ? 0 : -errno;
	close(fd);
	return ret;
}

static bool has_kasan(void)
{
	FILE *f = fopen("/proc/kallsyms", "re");
	bool found = false;
	char line[300];

	while (f && !found && fgets(line, sizeof(line), f))
		found = strstr(line, " kasan_");
	if (f)
		fclose(f);
	return found;
}

TEST_F(limits, the_records_of_a_containers_users_count)
{
	const struct rlimit files = { 16 * MANY, 16 * MANY };
	int sockets[2];
	char byte;
	pid_t pid;

	if (has_kasan())
		SKIP(return, "KASAN: beside each object is memory that nobody is charged for");
	ASSERT_EQ(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets));
	pid = ht_fork();
	if (!pid)
		_exit(close(sockets[0]) ? 97 : live_in_container(sockets[1], &files));
	ASSERT_LT(0, pid);
	close(sockets[1]);
	if (ht_read_all(sockets[0], &byte, 1) || map_ids(pid, "uid_map") ||
	    map_ids(pid, "gid_map") || write(sockets[0], "x", 1) != 1)
		TH_LOG("no container: %d", errno);
	close(sockets[0]);
	EXPECT_EQ(0, ht_reap(pid));
}

/* ---- folios -------------------------------------------------------------- */

/*
 * A page of each of many huge ones: returns 100 plus how many could be pinned with 8 MiB
 * of RLIMIT_MEMLOCK, 99 if there are no huge pages.
 */
static int pin_parts(unsigned int uid)
{
	struct rlimit limit = { 8 << 20, 8 << 20 };
	struct hamlyn_area_add arg;
	unsigned char *p;
	int fd, n;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || become(uid))
		return 1;
	fd = ht_raw_open();
	p = mmap(NULL, 21 * HUGE, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (fd < 0 || p == MAP_FAILED)
		return 2;
	p = (void *)(((uintptr_t)p + HUGE - 1) & ~(HUGE - 1));
	madvise(p, 20 * HUGE, MADV_HUGEPAGE);
	ht_raw_explain(true);
	for (n = 0; n < 20; n++) {
		p[n * HUGE] = 1;
		arg = (struct hamlyn_area_add){ .size = sizeof(arg),
						.addr = (uintptr_t)p + n * HUGE,
						.length = PAGE };
		if (ht_raw(fd, HAMLYN_IOC_AREA_ADD, &arg))
			break;
		if (arg.page_size != HUGE)
			return 99;
	}
	if (n == 20)
		return 100 + n;
	if (!strstr(ht_raw_why(), "charged whole"))
		return 3;
	return 100 + n;
}

TEST_F(limits, of_huge_pages_each_is_charged_whole)
{
	int ret = as(NOBODY, pin_parts);

	if (ret == 99)
		SKIP(return, "no huge pages");
	EXPECT_EQ(104, ret);
}

/* RLIMIT_MEMLOCK is the user's, in however many processes. */
static int hoard_locked(unsigned int uid, int out)
{
	struct rlimit limit = { 8 * PAGE, 8 * PAGE };
	unsigned char *p = pages(8);
	uint32_t id;
	int fd;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || become(uid))
		return 1;
	fd = ht_raw_open();
	if (fd < 0 || area_add(fd, p, 8 * PAGE, 0, &id))
		return 2;
	if (write(out, "x", 1) == 1)
		pause();
	return 3;
}

static int lock_a_page(unsigned int uid)
{
	struct rlimit limit = { 8 * PAGE, 8 * PAGE };
	unsigned char *p = pages(1);
	uint32_t id;
	int fd, ret;

	if (setrlimit(RLIMIT_MEMLOCK, &limit) || become(uid))
		return 1;
	fd = ht_raw_open();
	if (fd < 0)
		return 2;
	ret = area_add(fd, p, PAGE, 0, &id);
	return ret ? ret == -ENOMEM ? 3 : 4 : 0;
}

TEST_F(limits, wired_pages_are_charged_to_the_user)
{
	pid_t pid;

	EXPECT_EQ(0, as(NOBODY, lock_a_page));
	ASSERT_EQ(0, start_hoarder(hoard_locked, &pid)) {
		TH_LOG("step %d", ht_reap(pid));
	}
	EXPECT_EQ(3, as(NOBODY, lock_a_page));
	EXPECT_EQ(0, as(SOMEBODY, lock_a_page));
	kill(pid, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, ht_reap(pid));
	EXPECT_EQ(0, as(NOBODY, lock_a_page));
}

/* ---- termini, wired memory, and what is said ----------------------------- */

/*
 * "slots: 1 asked for, 7 of the user's 7 are in use": do the numbers say why it
 * was refused?
 */
static bool tells_what_is_missing(const char *what)
{
	const char *text = ht_raw_why(), *p;
	unsigned long asked, used, limit;

	fprintf(stderr, "# %s\n", text);
	if (!strstr(text, what))
		return false;
	p = text + strcspn(text, "0123456789");
	if (sscanf(p, "%lu%*[^0-9]%lu%*[^0-9]%lu", &asked, &used, &limit) != 3)
		return false;
	return asked && used <= limit && asked > limit - used;
}

static int terminus(int fd)
{
	struct hamlyn_terminus_create t = { .size = sizeof(t), .entries = 2,
					    .entry_size = 128 };

	return ht_raw(fd, HAMLYN_IOC_TERMINUS_CREATE, &t);
}

#define MOST_TERMINI	1000

/*
 * Termini, with the longest tables: 0 with how many there were, or the step. The one whose table
 * could not grow still has what it had.
 */
static int make_tables(int fd, unsigned int *made)
{
	struct hamlyn_terminus_create t = { .size = sizeof(t), .entries = 2, .entry_size = 128 };
	const uint32_t last = HAMLYN_MAX_TAGS - 1;
	struct hamlyn_area_alloc area;
	unsigned int n;
	int ret = 0;

	if (alloc(fd, PAGE, &area))
		return 91;
	for (n = 0; n < MOST_TERMINI && !ret; n++) {
		if (ht_raw(fd, HAMLYN_IOC_TERMINUS_CREATE, &t) ||
		    ht_raw_bind(fd, t.terminus, 0, area.area, 0, PAGE))
			return 92;
		ret = ht_raw_bind(fd, t.terminus, last, area.area, 0, PAGE);
	}
	fprintf(stderr, "# %u tables, then %d\n", n - 1, ret);
	*made = n - 1;
	if (ret != -EDQUOT)
		return 1;
	if (!tells_what_is_missing("objects of the kernel"))
		return 2;
	if (ht_raw_bind(fd, t.terminus, 7, area.area, 0, PAGE) ||
	    ht_raw_bind(fd, t.terminus, last, HAMLYN_NONE, 0, 0))
		return 3;
	if (ht_raw_bind(fd, t.terminus, last, area.area, 0, PAGE) != -EDQUOT)
		return 4;
	/* What another one had is enough. */
	if (ht_raw_id(fd, HAMLYN_IOC_TERMINUS_DESTROY, 0) ||
	    ht_raw_bind(fd, t.terminus, last, area.area, 0, PAGE))
		return 5;
	return 0;
}

static int make_tables_twice(unsigned int uid)
{
	unsigned int made[2];
	int fd, i, ret;

	if (become(uid))
		return 90;
	ht_raw_explain(true);
	for (i = 0; i < 2; i++) {
		fd = ht_raw_open();
		if (fd < 0)
			return 89;
		ret = make_tables(fd, &made[i]);
		if (ret)
			return 10 * i + ret;
		close(fd);
	}
	/* All of the first time was given back. */
	return made[0] == made[1] ? 0 : 6;
}

TEST_F(limits, tables_of_tags_count)
{
	EXPECT_EQ(0, as(NOBODY, make_tables_twice));
}

static int hoard_termini(unsigned int uid, int out)
{
	int fd, second, n, ret = 0;

	if (become(uid))
		return 1;
	fd = ht_raw_open();
	second = ht_raw_open();
	if (fd < 0 || second < 0)
		return 2;
	ht_raw_explain(true);
	for (n = 0; n <= 65536 && !ret; n++)
		ret = terminus(n % 2 ? fd : second);
	if (ret != -EDQUOT || n < 2)
		return 3;
	if (!tells_what_is_missing("termini"))
		return 4;
	if (terminus(fd) != -EDQUOT || terminus(second) != -EDQUOT)
		return 5;
	if (ht_raw_id(fd, HAMLYN_IOC_TERMINUS_DESTROY, 0) || terminus(second))
		return 6;
	if (write(out, "x", 1) == 1)
		pause();
	return 7;
}

static int take_a_terminus(unsigned int uid)
{
	int fd;

	if (uid && become(uid))
		return 1;
	fd = ht_raw_open();
	return fd < 0 ? 2 : terminus(fd) ? 3 : 0;
}

TEST_F(limits, one_user_cannot_take_all_termini)
{
	pid_t pid;

	ASSERT_EQ(0, start_hoarder(hoard_termini, &pid)) {
		TH_LOG("step %d", ht_reap(pid));
	}
	EXPECT_EQ(0, as(SOMEBODY, take_a_terminus));
	EXPECT_EQ(0, as(0, take_a_terminus));
	EXPECT_EQ(3, as(NOBODY, take_a_terminus));
	kill(pid, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, ht_reap(pid));
	EXPECT_EQ(0, as(NOBODY, take_a_terminus));
}

/* Not by RLIMIT_MEMLOCK, but by the NIC's limit: the same pages, many times. */
static int hoard_wired(unsigned int uid, int out)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	unsigned char *p = pages(8192);
	uint32_t id = 0;
	int fd, n, ret = 0;

	if (!p || setrlimit(RLIMIT_MEMLOCK, &limit) || become(uid))
		return 1;
	fd = ht_raw_open();
	if (fd < 0)
		return 2;
	ht_raw_explain(true);
	for (n = 0; n < 4096 && !ret; n++)
		ret = area_add(fd, p, 8192 * PAGE, 0, &id);
	if (ret != -EDQUOT)
		return 3;
	if (!tells_what_is_missing("wired memory"))
		return 4;
	/* The rest of it, page by page, ends too. */
	for (n = 0, ret = 0; n <= 8192 && !ret; n++)
		ret = area_add(fd, p, PAGE, 0, &id);
	if (ret != -EDQUOT)
		return 5;
	if (write(out, "x", 1) == 1)
		pause();
	return 6;
}

static int wire_a_page(unsigned int uid)
{
	unsigned char *p = pages(1);
	uint32_t id;
	int fd, ret;

	if (uid && become(uid))
		return 1;
	fd = ht_raw_open();
	if (fd < 0)
		return 2;
	ret = area_add(fd, p, PAGE, 0, &id);
	return ret ? ret == -EDQUOT ? 3 : 4 : 0;
}

TEST_F(limits, one_user_cannot_wire_all_memory)
{
	pid_t pid;

	ASSERT_EQ(0, start_hoarder(hoard_wired, &pid)) {
		TH_LOG("step %d", ht_reap(pid));
	}
	EXPECT_EQ(0, as(SOMEBODY, wire_a_page));
	EXPECT_EQ(0, as(0, wire_a_page));
	EXPECT_EQ(3, as(NOBODY, wire_a_page));
	kill(pid, SIGKILL);
	ASSERT_EQ(128 + SIGKILL, ht_reap(pid));
	EXPECT_EQ(0, as(NOBODY, wire_a_page));
}

/* As nobody: every limit says what is missing. */
static int be_told(unsigned int uid)
{
	struct rlimit locked = { 2 * PAGE, 2 * PAGE };
	struct hamlyn_slot_create slot;
	struct hamlyn_area_alloc area;
	uint32_t id;
	int fd, n, ret = 0;

	if (setrlimit(RLIMIT_MEMLOCK, &locked) || become(uid))
		return 1;
	fd = ht_raw_open();
	if (fd < 0)
		return 2;
	ht_raw_explain(true);
	for (n = 0; n < 65536 && !ret; n++)
		ret = alloc(fd, CHUNK, &area);
	if (ret != -EDQUOT || !tells_what_is_missing("kernel memory"))
		return 3;
	/* Another failure, of which there is nothing to say, has not got this one's words. */
	if (ht_raw_id(fd, HAMLYN_IOC_AREA_REMOVE, HAMLYN_NONE) != -ENOENT || *ht_raw_why())
		return 4;
	/* A call that is fine leaves the buffer as it is. */
	if (ht_raw_id(fd, HAMLYN_IOC_AREA_REMOVE, 1) || *ht_raw_why())
		return 5;
	if (area_add(fd, pages(3), 3 * PAGE, 0, &id) != -ENOMEM ||
	    !tells_what_is_missing("RLIMIT_MEMLOCK"))
		return 7;
	for (n = 0, ret = 0; n < 65536 && !ret; n++)
		ret = ht_raw_slot_create(fd, 0, 1, HAMLYN_NONE, &slot);
	if (ret != -EDQUOT || !tells_what_is_missing("slots"))
		return 8;
	return 0;
}

TEST_F(limits, who_is_refused_is_told_what_is_missing)
{
	EXPECT_EQ(0, as(NOBODY, be_told));
}

/* ---- rights ------------------------------------------------------------- */

TEST_F(limits, wiring_needs_the_rights_that_will_be_used)
{
	unsigned char *p = pages(3);
	uint32_t id;

	ASSERT_EQ(0, mprotect(p + PAGE, PAGE, PROT_READ));
	ASSERT_EQ(0, mprotect(p + 2 * PAGE, PAGE, PROT_NONE));
	EXPECT_EQ(0, area_add(self->fd, p, PAGE, 0, &id));
	EXPECT_EQ(0, area_add(self->fd, p, PAGE, HAMLYN_AREA_READONLY, &id));
	EXPECT_EQ(-EFAULT, area_add(self->fd, p + PAGE, PAGE, 0, &id));
	EXPECT_EQ(-EFAULT, area_add(self->fd, p, 2 * PAGE, 0, &id));
	EXPECT_EQ(0, area_add(self->fd, p + PAGE, PAGE, HAMLYN_AREA_READONLY,
			      &id));
	EXPECT_EQ(0, area_add(self->fd, p, 2 * PAGE, HAMLYN_AREA_READONLY,
			      &id));
	EXPECT_EQ(-EFAULT, area_add(self->fd, p + 2 * PAGE, PAGE,
				    HAMLYN_AREA_READONLY, &id));
	EXPECT_EQ(-EFAULT, area_add(self->fd, p + 2 * PAGE, PAGE, 0, &id));
	EXPECT_EQ(-EFAULT, area_add(self->fd, p, 3 * PAGE,
				    HAMLYN_AREA_READONLY, &id));
}

TEST_F(limits, what_is_mapped_read_only_can_be_sent_from)
{
	static const int kinds[] = { MAP_PRIVATE, MAP_SHARED };
	unsigned char *p;
	unsigned int i;
	uint32_t id;
	int fd;

	for (i = 0; i < ARRAY_SIZE(kinds); i++) {
		p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
			 kinds[i] | MAP_ANONYMOUS, -1, 0);
		ASSERT_NE(MAP_FAILED, p);
		memset(p, 1, PAGE);
		ASSERT_EQ(0, mprotect(p, PAGE, PROT_READ));
		EXPECT_EQ(-EFAULT, area_add(self->fd, p, PAGE, 0, &id));
		EXPECT_EQ(0, area_add(self->fd, p, PAGE, HAMLYN_AREA_READONLY,
				      &id)) {
			TH_LOG("kind %u", i);
		}
	}
	/* Pages that were never written, too; and of a file. */
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(0, area_add(self->fd, p, PAGE, HAMLYN_AREA_READONLY, &id));
	fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	ASSERT_GE(fd, 0);
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(0, area_add(self->fd, p, PAGE, HAMLYN_AREA_READONLY, &id));
	close(fd);
}

TEST_F(limits, a_file_that_is_mapped_read_only_cannot_be_received_into)
{
	uint32_t id;
	void *p;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	ASSERT_GE(fd, 0);
	p = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-EFAULT, area_add(self->fd, p, PAGE, 0, &id));
	munmap(p, PAGE);
	p = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(-EFAULT, area_add(self->fd, p, PAGE, 0, &id));
	close(fd);
}

TEST_F(limits, a_readonly_area_is_for_sending_only)
{
	unsigned char *p = pages(1);
	struct hamlyn_slot_create slot;
	struct hamlyn_area_alloc area;
	struct ht_raw_terminus t;
	uint32_t id;

	ASSERT_EQ(0, area_add(self->fd, p, PAGE, HAMLYN_AREA_READONLY, &id));
	EXPECT_EQ(-EACCES, ht_raw_slot_create(self->fd, id, PAGE, HAMLYN_NONE,
					      &slot));
	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &area, NULL));
	slot = (struct hamlyn_slot_create) {
		.size = sizeof(slot),
		.area = area.area,
		.length = PAGE,
		.meta_area = id,
		.meta_count = 1,
		.nq = HAMLYN_NONE,
	};
	EXPECT_EQ(-EACCES, ht_raw(self->fd, HAMLYN_IOC_SLOT_CREATE, &slot));
	ASSERT_EQ(0, ht_raw_terminus_create(self->fd, 8, 256, &t));
	EXPECT_EQ(0, ht_raw_bind(self->fd, t.arg.terminus, 0, id, 0, PAGE));
}

/* ---- what an area names ------------------------------------------------- */

struct link {
	struct ht_raw_terminus terminus;
	struct hamlyn_slot_create slot;
	struct hamlyn_area_alloc area;
	unsigned char *to;
};

/* From area @id to one that shows what comes. */
static int make_link(FIXTURE_DATA(limits) *self, struct link *link,
		     uint32_t id)
{
	int ret = ht_raw_area_alloc(self->fd, PAGE, &link->area,
				    (void **)&link->to);

	if (!ret)
		ret = ht_raw_slot_create(self->fd, link->area.area, PAGE,
					 HAMLYN_NONE, &link->slot);
	if (!ret)
		ret = ht_raw_terminus_create(self->fd, 8, 256,
					     &link->terminus);
	if (!ret)
		ret = ht_raw_bind(self->fd, link->terminus.arg.terminus, 0,
				  id, 0, PAGE);
	return ret;
}

static int send_to(FIXTURE_DATA(limits) *self, struct link *link,
		   const struct hamlyn_slot_create *slot)
{
	struct hamlyn_trb *trb = ht_raw_entry(&link->terminus);
	struct hamlyn_fragment *f = (void *)(trb + 1);
	uint32_t index = link->terminus.producer;
	int status;

	memset(trb, 0, 256);
	trb->host = self->query.host;
	trb->slot = slot->slot;
	trb->key = slot->key;
	trb->length = 1000;
	trb->fragments = 1;
	f->length = 1000;
	if (ht_raw_post(&link->terminus) < 0 ||
	    ht_raw_done(&link->terminus, index, &status))
		return -1;
	return status;
}

TEST_F(limits, an_area_names_the_old_pages_after_munmap)
{
	unsigned char *p = pages(1);
	struct link link;
	uint32_t id;

	ASSERT_NE(NULL, p);
	ht_fill(p, PAGE, 5);
	ASSERT_EQ(0, area_add(self->fd, p, PAGE, 0, &id));
	ASSERT_EQ(0, make_link(self, &link, id));
	ASSERT_EQ(0, munmap(p, PAGE));
	ASSERT_EQ(p, mmap(p, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	memset(p, 0xee, PAGE);
	ASSERT_EQ(0, send_to(self, &link, &link.slot));
	EXPECT_EQ(1000, ht_match(link.to, 1000, 5));
}

TEST_F(limits, what_is_received_after_munmap_lands_in_the_old_pages)
{
	unsigned char *p = pages(1), *from = pages(1);
	struct hamlyn_slot_create slot;
	struct link link;
	uint32_t id, source;

	ASSERT_EQ(0, area_add(self->fd, p, PAGE, 0, &id));
	ASSERT_EQ(0, area_add(self->fd, from, PAGE, HAMLYN_AREA_READONLY,
			      &source));
	ASSERT_EQ(0, ht_raw_slot_create(self->fd, id, PAGE, HAMLYN_NONE,
					&slot));
	ASSERT_EQ(0, make_link(self, &link, source));
	ASSERT_EQ(0, munmap(p, PAGE));
	ASSERT_EQ(p, mmap(p, PAGE, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
	memset(p, HT_GUARD, PAGE);
	ASSERT_EQ(0, send_to(self, &link, &slot));
	EXPECT_EQ(PAGE, ht_match_byte(p, PAGE, HT_GUARD));
}

TEST_F(limits, an_allocated_area_is_the_same_after_munmap_and_fork)
{
	struct hamlyn_area_alloc area;
	struct link link;
	unsigned char *p;
	pid_t pid;

	ASSERT_EQ(0, ht_raw_area_alloc(self->fd, PAGE, &area, (void **)&p));
	ht_fill(p, PAGE, 6);
	ASSERT_EQ(0, make_link(self, &link, area.area));
	pid = ht_fork();
	ASSERT_GE(pid, 0);
	if (!pid)
		_exit(0);
	ASSERT_EQ(0, ht_reap(pid));
	ASSERT_EQ(0, munmap(p, PAGE));
	ASSERT_EQ(0, send_to(self, &link, &link.slot));
	EXPECT_EQ(1000, ht_match(link.to, 1000, 6));
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, self->fd,
		 (off_t)area.mmap_offset);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(PAGE, ht_match(p, PAGE, 6));
	ht_fill(p, PAGE, 7);
	ASSERT_EQ(0, send_to(self, &link, &link.slot));
	EXPECT_EQ(1000, ht_match(link.to, 1000, 7));
}

TEST_F(limits, memory_of_all_kinds_can_be_wired_or_is_refused)
{
	char name[] = "/tmp/hamlyn-test-XXXXXX";
	int file = mkstemp(name);
	struct ht_raw_nq nq;
	uint32_t id;
	int ret;
	void *p;

	/* Stack, data, and a shared mapping without a file. */
	EXPECT_EQ(0, area_add(self->fd, &ret, sizeof(ret), 0, &id));
	EXPECT_EQ(0, area_add(self->fd, some_data, 1, 0, &id));
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ASSERT_NE(MAP_FAILED, p);
	EXPECT_EQ(0, area_add(self->fd, p, PAGE, 0, &id));
	/* What is mapped read-only of the device itself is not writable. */
	ASSERT_EQ(0, ht_raw_nq_create(self->fd, 64, &nq));
	EXPECT_GT(0, area_add(self->fd, nq.ring, 64, 0, &id));
	if (file < 0)
		return;
	unlink(name);
	ASSERT_EQ(0, ftruncate(file, 2 * PAGE));
	p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	ASSERT_NE(MAP_FAILED, p);
	ret = area_add(self->fd, p, PAGE, 0, &id);
	EXPECT_TRUE(ret == 0 || ret == -EFAULT) {
		TH_LOG("%d", ret);
	}
	/* Behind the end of the file there is nothing to be wired. */
	ASSERT_EQ(0, ftruncate(file, PAGE));
	EXPECT_EQ(-EFAULT, area_add(self->fd, p, 2 * PAGE, 0, &id));
	close(file);
}

TEST_HARNESS_MAIN
