// SPDX-License-Identifier: GPL-2.0-only
/*
 * A file that lies where a segment is expected, and is another user's or open to
 * all, is not used. Embedded device only.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Open the segment of a file that has these rights, and this owner. */
static int open_prepared(mode_t mode, uid_t owner)
{
	char path[128], name[64];
	struct h_dev *dev;
	int fd, ret;

	snprintf(name, sizeof(name), "shm:prepared%d", (int)getpid());
	snprintf(path, sizeof(path), "/dev/shm/hamlyn-%u-prepared%d",
		 ht_segment_uid(), (int)getpid());
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	if (fchmod(fd, mode) || (owner != geteuid() && fchown(fd, owner, -1)))
		ret = -ENOTSUP;
	else
		ret = h_open(name, &dev);
	if (!ret)
		h_close(dev);
	unlink(path);
	close(fd);
	return ret;
}

TEST(a_file_that_others_may_open_is_no_segment)
{
	static const mode_t modes[] = { 0666, 0660, 0640, 0604, 0602, 0610 };
	unsigned int i;

	if (ht_device() && strncmp(ht_device(), "shm:", 4))
		SKIP(return, "only for the embedded device");
	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		EXPECT_EQ(-EACCES, open_prepared(modes[i], geteuid())) {
			TH_LOG("mode %o", modes[i]);
		}
	}
}

TEST(a_file_of_another_user_is_no_segment)
{
	if (ht_device() && strncmp(ht_device(), "shm:", 4))
		SKIP(return, "only for the embedded device");
	if (geteuid())
		SKIP(return, "only root can give files away");
	EXPECT_EQ(-EACCES, open_prepared(0600, 65534));
}

TEST_HARNESS_MAIN
