// SPDX-License-Identifier: GPL-2.0-only
/*
 * One user leaves something for the others, also where there are several NICs.
 * Kernel device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include <fcntl.h>
#include <sys/resource.h>

#define CHUNK		(16ull << 20)

/* MiB that can be had of a NIC until it refuses, and the errno that it did. */
static int take_all(int fd, int *err)
{
	int mib;

	for (mib = 0; mib < 1 << 16; mib += CHUNK >> 20) {
		struct hamlyn_area_alloc arg = {
			.size = sizeof(arg),
			.length = CHUNK,
		};

		*err = ht_raw(fd, HAMLYN_IOC_AREA_ALLOC, &arg);
		if (*err)
			break;
	}
	return mib;
}

/* Exits with 0 or the step that went wrong. */
static int take_from_both(void *arg)
{
	int one = open("/dev/hamlyn0", O_RDWR | O_CLOEXEC);
	int other = open("/dev/hamlyn1", O_RDWR | O_CLOEXEC);
	const char *why;
	int err, mib;

	(void)arg;
	ht_raw_explain(true);
	if (one < 0 || other < 0)
		return 1;
	mib = take_all(one, &err);
	fprintf(stderr, "# %d MiB of the first NIC, then %d\n", mib, err);
	if (!mib || err != -EDQUOT)
		return 2;
	mib = take_all(other, &err);
	fprintf(stderr, "# %d MiB of the second NIC, then %d\n", mib, err);
	if (mib > 2 * (int)(CHUNK >> 20) || err != -EDQUOT)
		return 3;
	/* Which limit, what was asked for, and whose it is. */
	why = ht_raw_why();
	if (!strstr(why, "all NICs: 16384 KiB asked for"))
		return 4;
	return strstr(why, "of the user's") ? 0 : 5;
}

TEST(several_nics_are_no_more_memory_for_a_user)
{
	if (access("/dev/hamlyn1", F_OK))
		SKIP(return, "kernel: with nics=2");
	EXPECT_EQ(0, as(somebody(1), take_from_both, NULL));
}

/* ---- the NIC's own limit ---- */

static void take_limit(const struct nlmsghdr *h, void *arg)
{
	const struct nlattr *nest = attr_of(h, HAMLYN_A_LIMITS);
	const char *p = (const char *)nest + NLA_HDRLEN;

	while (nest && p + NLA_HDRLEN <= (const char *)nest + nest->nla_len) {
		const struct nlattr *a = (const void *)p;

		if (a->nla_len < NLA_HDRLEN)
			break;
		if ((a->nla_type & NLA_TYPE_MASK) == HAMLYN_A_LIMITS_KERNEL_BYTES)
			memcpy(arg, p + NLA_HDRLEN, sizeof(uint64_t));
		p += NLA_ALIGN(a->nla_len);
	}
}

/* Bytes of kernel memory that NIC 0 may have: told, and set if it is not 0. */
static uint64_t nic_limit(uint64_t bytes)
{
	struct {
		struct nlattr a;
		unsigned char bytes[sizeof(uint64_t)];
	} limit = { { sizeof(limit), HAMLYN_A_LIMITS_KERNEL_BYTES }, { 0 } };
	struct request r;
	uint16_t family = 0;
	uint64_t had = 0;
	int fd = netlink_open(&family);

	request_init(&r, family, HAMLYN_NL_CMD_NIC_GET, NLM_F_ACK);
	request_u32(&r, HAMLYN_A_NIC, 0);
	if (ask(fd, &r, take_limit, &had))
		had = 0;
	memcpy(limit.bytes, &bytes, sizeof(bytes));
	request_init(&r, family, HAMLYN_NL_CMD_LIMIT_SET, NLM_F_ACK);
	request_u32(&r, HAMLYN_A_NIC, 0);
	request_attr(&r, HAMLYN_A_LIMITS | NLA_F_NESTED, &limit, sizeof(limit));
	if (bytes && ask(fd, &r, NULL, NULL))
		had = 0;
	close(fd);
	return had;
}

TEST(a_nic_has_no_more_memory_than_its_limit_not_even_for_root)
{
	int fd = open("/dev/hamlyn0", O_RDWR | O_CLOEXEC);
	uint64_t had;
	int err, mib, below, lowered;

	/* From here to where the limit is given back, nothing ends the test. */
	ASSERT_LE(0, fd);
	had = nic_limit(2 * CHUNK + PAGE);
	ASSERT_NE(0, had);
	ht_raw_explain(true);
	mib = take_all(fd, &err);
	EXPECT_NE(0, strlen(ht_raw_why()));
	/* There may be more than is allowed now: it stays, and nothing is added. */
	EXPECT_EQ(2 * CHUNK + PAGE, nic_limit(CHUNK));
	below = take_all(fd, &lowered);
	close(fd);
	EXPECT_EQ(CHUNK, nic_limit(had));
	EXPECT_EQ(2 * CHUNK >> 20, mib);
	EXPECT_EQ(-EDQUOT, err);
	EXPECT_EQ(0, below);
	EXPECT_EQ(-EDQUOT, lowered);
}

/* ---- a share that nobody can take ---- */

#define HOARDERS	8
#define CONTAINED	4
#define WIRED		(16u << 20)

/* Whatever there is, in ever smaller pieces. */
static void hoard_areas(int fd)
{
	uint64_t length;

	for (length = CHUNK; length >= PAGE; length /= 2) {
		struct hamlyn_area_alloc arg;

		do
			arg = (struct hamlyn_area_alloc){ .size = sizeof(arg),
							  .length = length };
		while (!ht_raw(fd, HAMLYN_IOC_AREA_ALLOC, &arg));
	}
}

/* The same memory again and again: each area counts. */
static void hoard_wired(int fd)
{
	unsigned char *p = mmap(NULL, WIRED, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	uint64_t length;

	madvise(p, WIRED, MADV_NOHUGEPAGE);
	for (length = WIRED; length >= PAGE; length /= 2) {
		struct hamlyn_area_add arg;

		do
			arg = (struct hamlyn_area_add){ .size = sizeof(arg),
							.addr = (uintptr_t)p,
							.length = length };
		while (!ht_raw(fd, HAMLYN_IOC_AREA_ADD, &arg));
	}
}

static unsigned int hoard_slots(int fd, uint32_t area)
{
	struct hamlyn_slot_create slot;
	unsigned int n = 0;

	while (!ht_raw_slot_create(fd, area, 1, HAMLYN_NONE, &slot))
		n++;
	return n;
}

static unsigned int make_termini(int fd, unsigned int most)
{
	unsigned int n;

	for (n = 0; n < most; n++) {
		struct hamlyn_terminus_create t = { .size = sizeof(t), .entries = 2,
						    .entry_size = 128 };

		if (ht_raw(fd, HAMLYN_IOC_TERMINUS_CREATE, &t))
			break;
	}
	return n;
}

/* Takes all that it can, tells @out, and stays. Never returns. */
static void hoard_all(unsigned int uid, int out)
{
	struct hamlyn_area_alloc area;
	int fd;

	if (uid && become(uid))
		_exit(1);
	fd = ht_raw_open();
	if (fd < 0 || ht_raw_area_alloc(fd, 1, &area, NULL))
		_exit(1);
	make_termini(fd, 4096);
	fprintf(stderr, "# uid %u: %u slots\n", uid, hoard_slots(fd, area.area));
	hoard_areas(fd);
	hoard_wired(fd);
	ht_stay_child();
	if (write(out, "x", 1) == 1)
		pause();
	_exit(2);
}

static pid_t start_hoarder(unsigned int uid)
{
	int pipefd[2];
	pid_t pid;
	char byte;

	if (pipe(pipefd))
		return -1;
	pid = ht_fork();
	if (!pid)
		hoard_all(uid, pipefd[1]);
	close(pipefd[1]);
	if (ht_read_all(pipefd[0], &byte, 1)) {
		fprintf(stderr, "# uid %u: ended %d\n", uid, ht_reap(pid));
		pid = -1;
	}
	close(pipefd[0]);
	return pid;
}

/* Of root's making, with many uids: they take what they can one after the other. */
static void live_in_container(int in, int out)
{
	unsigned int i;
	char byte;

	if (unshare(CLONE_NEWUSER) || write(out, "x", 1) != 1 ||
	    ht_read_all(in, &byte, 1))
		_exit(3);
	for (i = 1; i <= CONTAINED; i++)
		start_hoarder(i);
	ht_stay_child();
	if (write(out, "x", 1) == 1)
		pause();
	_exit(4);
}

static int map_ids(pid_t pid, const char *file)
{
	char path[64], line[64];
	int fd, length, ret;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
	length = snprintf(line, sizeof(line), "0 %u 16\n", somebody(40));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	ret = fd < 0 || write(fd, line, (size_t)length) != length;
	close(fd);
	return ret;
}

/* Its process, or -1 where there are no containers. */
static pid_t start_container(void)
{
	int up[2], down[2];
	char byte;
	pid_t pid;

	if (pipe(up) || pipe(down))
		return -1;
	pid = ht_fork();
	if (!pid)
		live_in_container(down[0], up[1]);
	close(up[1]);
	if (ht_read_all(up[0], &byte, 1))
		return -1;
	if (map_ids(pid, "uid_map") || map_ids(pid, "gid_map") ||
	    write(down[1], "x", 1) != 1 || ht_read_all(up[0], &byte, 1))
		return -1;
	return pid;
}

/* Returns 0, or the step that failed. */
static int come_last(void *arg)
{
	struct hamlyn_area_alloc area;
	struct hamlyn_area_add added = { .size = sizeof(added),
					 .length = WIRED };
	struct hamlyn_slot_create slot;
	struct hamlyn_trb trb;
	struct party p;
	void *memory;
	int i;

	(void)arg;
	ht_raw_explain(true);
	if (party_open(&p))
		return 1;
	if (make_termini(p.fd, 8) != 8)
		return 2;
	for (i = 0; i < 64; i++)
		if (ht_raw_slot_create(p.fd, p.area.area, 1, HAMLYN_NONE, &slot))
			return 3;
	if (ht_raw_area_alloc(p.fd, WIRED, &area, NULL)) {
		fprintf(stderr, "# %s\n", ht_raw_why());
		return 4;
	}
	memory = mmap(NULL, WIRED, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	added.addr = (uintptr_t)memory;
	if (memory == MAP_FAILED || ht_raw(p.fd, HAMLYN_IOC_AREA_ADD, &added)) {
		fprintf(stderr, "# %s\n", ht_raw_why());
		return 5;
	}
	trb = to_party(&p);
	if (post(&p.terminus, &trb) || !came(&p))
		return 6;
	return 0;
}

TEST(what_comes_last_has_a_share_whatever_others_took)
{
	struct rlimit limit = { RLIM_INFINITY, RLIM_INFINITY };
	pid_t pids[HOARDERS + 1];
	unsigned int i;

	if (geteuid())
		SKIP(return, "kernel: as root");
	ASSERT_EQ(0, setrlimit(RLIMIT_MEMLOCK, &limit));
	for (i = 0; i < HOARDERS; i++) {
		pids[i] = start_hoarder(somebody(10 + i));
		ASSERT_LT(0, pids[i]);
	}
	pids[i] = start_container();
	EXPECT_EQ(0, as(somebody(20), come_last, NULL));
	for (i = 0; i <= HOARDERS; i++) {
		if (pids[i] <= 0)
			continue;
		kill(pids[i], SIGKILL);
		ht_reap(pids[i]);
	}
}

TEST_HARNESS_MAIN
