// SPDX-License-Identifier: GPL-2.0-only
/*
 * Files as message areas, kernel device only. A file system is told when its pages are
 * about to be written to, and nobody tells it of what a NIC writes: pages of a disk's
 * file are not wired for that. $HAMLYN_TEST_DISK is a folder on a disk.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#define BYTES	(4 * 4096UL)

FIXTURE(on_disk) {
	const char *folder;
	struct h_dev *dev;
	int file;
};

FIXTURE_SETUP(on_disk)
{
	self->folder = getenv("HAMLYN_TEST_DISK");
	self->file = -1;
	ASSERT_EQ(0, ht_open(&self->dev));
	if (!self->folder)
		return;
	self->file = open(self->folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	ASSERT_GE(self->file, 0);
	ASSERT_EQ(0, ftruncate(self->file, BYTES));
}

FIXTURE_TEARDOWN(on_disk)
{
	if (self->file >= 0)
		close(self->file);
	h_close(self->dev);
}

static int add(struct h_dev *dev, int file, int map, uint32_t flags)
{
	int prot = PROT_READ | (flags & HAMLYN_AREA_READONLY ? 0 : PROT_WRITE);
	void *memory = mmap(NULL, BYTES, prot, map, file, 0);
	struct h_area *area;
	int ret;

	if (memory == MAP_FAILED)
		return -errno;
	ret = h_area_add(dev, memory, BYTES, flags, &area);
	if (!ret)
		ret = h_area_remove(area);
	munmap(memory, BYTES);
	return ret;
}

TEST_F(on_disk, its_pages_are_not_wired_for_writing)
{
	if (!self->folder)
		SKIP(return, "kernel: with a disk");
	EXPECT_EQ(-EFAULT, add(self->dev, self->file, MAP_SHARED, 0));
}

TEST_F(on_disk, its_pages_are_wired_for_reading)
{
	if (!self->folder)
		SKIP(return, "kernel: with a disk");
	EXPECT_EQ(0, add(self->dev, self->file, MAP_SHARED,
			 HAMLYN_AREA_READONLY));
}

TEST_F(on_disk, copies_of_its_pages_are_wired)
{
	if (!self->folder)
		SKIP(return, "kernel: with a disk");
	EXPECT_EQ(0, add(self->dev, self->file, MAP_PRIVATE, 0));
}

TEST_F(on_disk, what_is_on_no_disk_is_wired)
{
	int file = memfd_create("on_disk", MFD_CLOEXEC);

	ASSERT_GE(file, 0);
	ASSERT_EQ(0, ftruncate(file, BYTES));
	EXPECT_EQ(0, add(self->dev, file, MAP_SHARED, 0));
	EXPECT_EQ(0, add(self->dev, -1, MAP_SHARED | MAP_ANONYMOUS, 0));
	close(file);
}

TEST_HARNESS_MAIN
