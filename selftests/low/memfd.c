// SPDX-License-Identifier: GPL-2.0-only
/*
 * Areas on a memory file of the program's own, by a mapping of it: what is sent from there, what
 * arrives there, and what becomes of pages that the file gives up.
 */
#include "kselftest_harness.h"
#include "hamlyn_test.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	4096UL
#define PAGES	16
#define FIRST	3		/* page of the area, and not its beginning */
#define OFFSET	(FIRST * PAGE + 64)
#define LENGTH	(8 * PAGE)

FIXTURE(memfd) {
	int fd;
	unsigned char *wired;	/* the mapping that the area is made of */
	unsigned char *other;	/* and one that the device knows nothing of */
	struct h_dev *dev;
	struct h_terminus *t;
	struct h_area *area;
	struct h_slot *slot;
};

static unsigned char *map(int fd)
{
	return mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

FIXTURE_SETUP(memfd)
{
	self->fd = memfd_create("memfd-test", MFD_CLOEXEC);
	ASSERT_LE(0, self->fd);
	ASSERT_EQ(0, ftruncate(self->fd, PAGES * PAGE));
	self->wired = map(self->fd);
	self->other = map(self->fd);
	ASSERT_NE(MAP_FAILED, (void *)self->wired);
	ASSERT_NE(MAP_FAILED, (void *)self->other);
	ASSERT_EQ(0, h_open(ht_device(), &self->dev));
	ASSERT_EQ(0, h_terminus_create(self->dev, NULL, &self->t));
}

FIXTURE_TEARDOWN(memfd)
{
	if (self->slot)
		EXPECT_EQ(0, h_slot_destroy(self->slot));
	EXPECT_EQ(0, h_terminus_destroy(self->t));
	if (self->area)
		EXPECT_EQ(0, h_area_remove(self->area));
	h_close(self->dev);
	munmap(self->wired, PAGES * PAGE);
	munmap(self->other, PAGES * PAGE);
	close(self->fd);
}

/* All of @data to the slot; it needs no metadata, since nobody is notified. */
static int send_quietly(FIXTURE_DATA(memfd) *self, const void *data)
{
	struct h_ticket ticket;
	struct h_msg msg = {
		.ticket = &ticket,
		.data = data,
		.length = LENGTH,
		.flags = HAMLYN_TRB_NO_NOTIFY,
	};
	int err = h_slot_ticket(self->slot, 0, LENGTH, 0, &ticket);

	return err ? err : ht_send_sync(self->t, &msg);
}

static int make_slot(FIXTURE_DATA(memfd) *self, struct h_area *area)
{
	const struct h_slot_attr attr = { .area = area };

	return h_slot_create(self->dev, &attr, &self->slot);
}

TEST_F(memfd, what_is_written_by_another_mapping_is_sent)
{
	struct h_area *to;

	ASSERT_EQ(0, h_area_add(self->dev, self->wired + OFFSET, LENGTH, HAMLYN_AREA_READONLY,
				&self->area));
	ASSERT_EQ(0, h_area_alloc(self->dev, LENGTH, &to));
	ASSERT_EQ(0, make_slot(self, to));
	ASSERT_EQ(0, h_terminus_bind(self->t, 0, self->area, 0, 0));
	ht_fill(self->other + OFFSET, LENGTH, 1);
	EXPECT_EQ(1, send_quietly(self, self->wired + OFFSET));
	EXPECT_EQ(LENGTH, ht_match(h_area_addr(to), LENGTH, 1));
	EXPECT_EQ(0, h_slot_destroy(self->slot));
	self->slot = NULL;
	EXPECT_EQ(0, h_area_remove(to));
}

/* An embedded device says that it cannot, and what is said of it is so. */
TEST_F(memfd, what_arrives_is_in_the_file)
{
	struct h_area *from;

	ASSERT_EQ(0, h_area_add(self->dev, self->wired + OFFSET, LENGTH, 0, &self->area));
	if (h_dev_is_embedded(self->dev)) {
		EXPECT_EQ(-EOPNOTSUPP, make_slot(self, self->area));
		return;
	}
	ASSERT_EQ(0, make_slot(self, self->area));
	ASSERT_EQ(0, h_area_alloc(self->dev, LENGTH, &from));
	ASSERT_EQ(0, h_terminus_bind(self->t, 0, from, 0, 0));
	ht_fill(h_area_addr(from), LENGTH, 2);
	EXPECT_EQ(1, send_quietly(self, h_area_addr(from)));
	EXPECT_EQ(LENGTH, ht_match(self->other + OFFSET, LENGTH, 2));
	EXPECT_EQ(OFFSET, ht_match_byte(self->other, OFFSET, 0));
	/* A page that the file gives up remains the device's: what arrives there is in no file */
	ASSERT_EQ(0, fallocate(self->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			       (FIRST + 1) * PAGE, PAGE));
	ht_fill(h_area_addr(from), LENGTH, 3);
	EXPECT_EQ(1, send_quietly(self, h_area_addr(from)));
	EXPECT_EQ(PAGE, ht_match_byte(self->other + (FIRST + 1) * PAGE, PAGE, 0));
	EXPECT_EQ(PAGE - 64, ht_match(self->other + OFFSET, PAGE - 64, 3));
	EXPECT_EQ(0, h_terminus_bind(self->t, 0, NULL, 0, 0));
	EXPECT_EQ(0, h_area_remove(from));
}

TEST_HARNESS_MAIN
