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
	return strstr(explained(other), "all NICs") ? 0 : 4;
}

TEST(several_nics_are_no_more_memory_for_a_user)
{
	if (access("/dev/hamlyn1", F_OK))
		SKIP(return, "kernel: with nics=2");
	EXPECT_EQ(0, as(somebody(1), take_from_both, NULL));
}

TEST_HARNESS_MAIN
