// SPDX-License-Identifier: GPL-2.0-only
/*
 * One user leaves something for the others, also where there are several NICs.
 * Kernel device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include <fcntl.h>

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
	why = explained(other);
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
	mib = take_all(fd, &err);
	EXPECT_NE(0, strlen(explained(fd)));
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

TEST_HARNESS_MAIN
