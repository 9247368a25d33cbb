// SPDX-License-Identifier: GPL-2.0-only
/*
 * What a descriptor may do is what it was opened for, by the process that opened it. Kernel
 * device only.
 */
#include "kselftest_harness.h"
#include "hostile.h"
#include "uring.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sys/ioctl.h>

static const char *device_path(void)
{
	const char *path = getenv("HAMLYN_DEVICE");

	return path ? path : "/dev/hamlyn0";
}

/* ---- for reading only ---- */

FIXTURE(hostile_open) {
	int fd;
	char arg[4096];
};

FIXTURE_SETUP(hostile_open)
{
	self->fd = open(device_path(), O_RDONLY | O_CLOEXEC);
	ASSERT_LE(0, self->fd);
}

FIXTURE_TEARDOWN(hostile_open)
{
	close(self->fd);
}

/* As long as a page, and 0 but for that: legal, or refused for what it says. */
static int call(FIXTURE_DATA(hostile_open) *self, unsigned int command)
{
	uint32_t size = sizeof(self->arg);

	memset(self->arg, 0, sizeof(self->arg));
	memcpy(self->arg, &size, sizeof(size));
	return ht_raw(self->fd, _IO(HAMLYN_IOC_TYPE, command), self->arg);
}

static bool reads(unsigned int command)
{
	return command == HAMLYN_CMD_QUERY || command == HAMLYN_CMD_STATS ||
	       command == HAMLYN_CMD_AUDIT;
}

TEST_F(hostile_open, who_may_only_read_changes_nothing)
{
	unsigned int command, refused = 0;

	for (command = 0; command <= HAMLYN_CMD_CALL; command++) {
		int ret = call(self, command);

		if (reads(command) || command == HAMLYN_CMD_KICK) {
			EXPECT_NE(-EBADF, ret) {
				TH_LOG("command %u", command);
			}
			continue;
		}
		EXPECT_EQ(-EBADF, ret) {
			TH_LOG("command %u", command);
		}
		refused++;
	}
	/* All but those above, and KICK, which finds nothing to send. */
	EXPECT_EQ(HAMLYN_CMD_CALL - 3U, refused);
	EXPECT_EQ(-ENOENT, ioctl(self->fd, HAMLYN_IOC_KICK, 0) ? -errno : 0);
	EXPECT_EQ(0, fsync(self->fd));
}

TEST_F(hostile_open, who_may_only_read_is_told_so_and_may_look)
{
	struct hamlyn_area_alloc alloc = { .size = sizeof(alloc),
					   .length = PAGE };
	struct hamlyn_audit audit = { .size = sizeof(audit) };
	struct hamlyn_query query;
	int fd;

	ht_raw_explain(true);
	EXPECT_EQ(-EBADF, ht_raw(self->fd, HAMLYN_IOC_AREA_ALLOC, &alloc));
	EXPECT_NE(NULL, strstr(ht_raw_why(), "reading only"));
	ht_raw_explain(false);
	EXPECT_EQ(0, ht_raw_query(self->fd, &query));
	EXPECT_EQ(0, ht_raw(self->fd, HAMLYN_IOC_AUDIT, &audit));
	/* For writing only does: what is written to is what counts. */
	fd = open(device_path(), O_WRONLY | O_CLOEXEC);
	ASSERT_LE(0, fd);
	EXPECT_EQ(0, ht_raw(fd, HAMLYN_IOC_AREA_ALLOC, &alloc));
	close(fd);
}

/* ---- by a worker of an io_uring ---- */

/* What openat() returns, by a worker; -EAGAIN if none answers. */
static int open_by_worker(struct ring *r, const char *path)
{
	struct io_uring_sqe *sqe = ring_sqe(r);
	struct io_uring_cqe cqe;
	int ret;

	sqe->opcode = IORING_OP_OPENAT;
	sqe->flags = IOSQE_ASYNC;
	sqe->fd = AT_FDCWD;
	sqe->addr = (uintptr_t)path;
	sqe->open_flags = O_RDWR | O_CLOEXEC;
	ret = ring_submit(r);
	if (ret)
		return ret;
	return comes(r, &cqe) ? cqe.res : -EAGAIN;
}

#define NO_RING_HERE	100

/* Its worker begins before its network namespace is another one, and remains. */
static int open_after_unshare(void *arg)
{
	struct ring ring;
	int fd;

	(void)arg;
	if (ring_open(&ring))
		return NO_RING_HERE;
	fd = open_by_worker(&ring, device_path());
	if (fd < 0)
		return 1;
	close(fd);
	/* Not with a user namespace: whoever has a worker is not alone in its process. */
	if (unshare(CLONE_NEWNET))
		return 4;
	if (ht_raw_open() != -EPERM)
		return 2;
	return open_by_worker(&ring, device_path()) == -EPERM ? 0 : 3;
}

TEST(a_worker_opens_what_its_process_may_open)
{
	int ret = as(0, open_after_unshare, NULL);

	if (ret == NO_RING_HERE)
		SKIP(return, "no io_uring here");
	EXPECT_EQ(0, ret);
}

TEST_HARNESS_MAIN
