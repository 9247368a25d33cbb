// SPDX-License-Identifier: GPL-2.0-only
/* System calls of a program that is linked with wrap.opt, on closed pages. */
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "test.h"

#define BYTES	(3 << 20)
#define PAGES	(BYTES / TPPI_PAGE_SIZE)

static volatile int faults, none;

/* A block at a time, as a protocol would fetch them. */
static void validate(void *va, void *usr_ptr, TPPI_NodeId home)
{
	(void)usr_ptr;
	(void)home;
	faults++;
	TPPI_change_blk_acc(va, TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
	TPPI_resume_va(va, TPPI_TAG_BLK_SIZE);
}

/* All pages closed, one block of each Invalid. */
static char *map_closed(int pages)
{
	for (int access = TPPI_ReadAccess; access <= TPPI_WriteAccess; access++)
		TPPI_register_blk_acc_fault_handler(0, TPPI_Blk_Invalid, access, validate);
	for (int i = 0; i < pages; i++)
		map_mixed(page_at(i));
	return page_at(0);
}

static void close_again(int pages)
{
	for (int i = 0; i < pages; i++)
		TPPI_change_blk_acc(page_at(i) + 64, TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
}

static unsigned char byte_at(int i)
{
	return i * 31 + (i >> 8);
}

/* Copied at once: each access to a closed page is a trap. */
static bool is_pattern(const char *at, int first, int bytes)
{
	static char copy[BYTES];

	memcpy(copy, at, bytes);
	for (int i = 0; i < bytes; i++) {
		if ((unsigned char)copy[i] != byte_at(first + i))
			return false;
	}
	return true;
}

static void fill(char *start)
{
	static char pattern[BYTES];

	for (int i = 0; i < BYTES; i++)
		pattern[i] = byte_at(i);
	memcpy(start, pattern, BYTES);
}

static int file_with_pattern(int bytes)
{
	int fd = memfd_create("test", 0);

	CHECK(fd >= 0);
	for (int i = 0; i < bytes; i++) {
		char byte = byte_at(i);

		CHECK_EQUAL(write(fd, &byte, 1), 1);
	}
	lseek(fd, 0, SEEK_SET);
	return fd;
}

/* What is not wrapped says so. */
static void not_wrapped(void)
{
	char *page = map_closed(1);
	int fd = file_with_pattern(16);

	CHECK(syscall(SYS_read, fd, page, 16) < 0 && errno == EFAULT);
}

static void files(void)
{
	char *page = map_closed(2);
	int fd = file_with_pattern(8192), copy = memfd_create("copy", 0);

	CHECK_EQUAL(read(fd, page, 8192), 8192);
	CHECK(is_pattern(page, 0, 8192));
	CHECK(faults > 0);
	CHECK_EQUAL(read(fd, page, 8192), 0);
	close_again(2);
	CHECK_EQUAL(pread(fd, page + 10, 100, 77), 100);
	CHECK(is_pattern(page + 10, 77, 100));
	CHECK_EQUAL(pread(fd, page, 100, 8191), 1);
	close_again(2);
	CHECK_EQUAL(pwrite(copy, page + 10, 90, 500), 90);
	CHECK_EQUAL(lseek(copy, 0, SEEK_END), 590);
	close_again(2);
	CHECK_EQUAL(write(copy, page + 10, 90), 90);
	CHECK(read(-1, page, 4) < 0 && errno == EBADF);
	CHECK(write(-1, page, 4) < 0 && errno == EBADF);
}

static void long_files(void)
{
	char *start = map_closed(PAGES);
	int fd = memfd_create("long", 0);

	fill(start);
	close_again(PAGES);
	TPPI_change_blk_acc(start + 64, TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
	CHECK_EQUAL(write(fd, start, BYTES), BYTES);
	memset(start, 0, BYTES);
	CHECK_EQUAL(pread(fd, start, BYTES, 0), BYTES);
	CHECK(is_pattern(start, 0, BYTES));
}

static void pieces(void)
{
	char *page = map_closed(2), outside[50];
	int fd = file_with_pattern(500), copy = memfd_create("copy", 0);
	struct iovec iov[] = { { page, 100 }, { outside, 50 }, { page + 4090, 200 } };

	CHECK_EQUAL(readv(fd, iov, 3), 350);
	CHECK(is_pattern(page, 0, 100) && is_pattern(outside, 100, 50));
	CHECK(is_pattern(page + 4090, 150, 200));
	close_again(2);
	CHECK_EQUAL(writev(copy, iov, 3), 350);
	CHECK_EQUAL(pread(copy, page + 1000, 350, 0), 350);
	CHECK(is_pattern(page + 1000, 0, 350));
	CHECK_EQUAL(readv(fd, iov, 3), 150);
	CHECK(readv(fd, iov, none - 1) < 0 && errno == EINVAL);
}

static void sockets(void)
{
	char *page = map_closed(2);
	struct iovec iov[] = { { page, 10 }, { page + 200, 30 } };
	struct msghdr message = { .msg_iov = iov, .msg_iovlen = 2 };
	int ends[2];

	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	for (int i = 0; i < 40; i++)
		page[i] = byte_at(i);
	close_again(2);
	CHECK_EQUAL(send(ends[0], page, 40, 0), 40);
	CHECK_EQUAL(recvmsg(ends[1], &message, 0), 40);
	CHECK(is_pattern(page, 0, 10) && is_pattern(page + 200, 10, 30));
	close_again(2);
	CHECK_EQUAL(sendmsg(ends[0], &message, 0), 40);
	CHECK_EQUAL(recv(ends[1], page + 1000, 20, MSG_TRUNC), 40);
	CHECK(is_pattern(page + 1000, 0, 20));
	CHECK_EQUAL(page[1020], 0);
	CHECK_EQUAL(sendto(ends[0], page + 1000, 20, 0, NULL, 0), 20);
	CHECK_EQUAL(recvfrom(ends[1], page + 2000, 100, 0, NULL, NULL), 20);
	CHECK(is_pattern(page + 2000, 0, 20));
	CHECK(recv(ends[1], page, 4, MSG_DONTWAIT) < 0 && errno == EAGAIN);
	/* The kernel would read what is there no more */
	CHECK(send(ends[0], page, 4, MSG_ZEROCOPY) < 0 && errno == EOPNOTSUPP);
	CHECK(sendmsg(ends[0], &message, MSG_ZEROCOPY) < 0 && errno == EOPNOTSUPP);
}

/* What tells of pieces may be in the segment itself. */
static void lists(void)
{
	char *page = map_closed(2), text[4] = "abc", more[4] = "def";
	struct iovec *iov = (struct iovec *)(page + 1024);
	struct msghdr *message = (struct msghdr *)(page + 2048);
	static struct iovec many[IOV_MAX + 1];
	int ends[2];

	CHECK(!socketpair(AF_UNIX, SOCK_DGRAM, 0, ends));
	iov[0] = (struct iovec){ text, 3 };
	iov[1] = (struct iovec){ more, 3 };
	*message = (struct msghdr){ .msg_iov = iov, .msg_iovlen = 2 };
	CHECK_EQUAL(writev(ends[0], iov, 2), 6);
	CHECK_EQUAL(sendmsg(ends[0], message, 0), 6);
	memset(text, 0, 3);
	CHECK_EQUAL(readv(ends[1], iov, 2), 6);
	CHECK(!memcmp(text, "abc", 3));
	memset(more, 0, 3);
	CHECK_EQUAL(recvmsg(ends[1], message, 0), 6);
	CHECK(!memcmp(more, "def", 3));
	many[0] = (struct iovec){ page, 1 };
	CHECK(writev(ends[0], many, IOV_MAX + 1) < 0 && errno == EINVAL);
	CHECK_EQUAL(send(ends[0], "abc", 3, 0), 3);
	*message = (struct msghdr){ .msg_iov = many, .msg_iovlen = IOV_MAX + 1 };
	CHECK(sendmsg(ends[0], message, 0) < 0 && errno == EMSGSIZE);
	CHECK(recvmsg(ends[1], message, 0) < 0 && errno == EMSGSIZE);
	CHECK_EQUAL(recv(ends[1], text, 3, 0), 3);
}

/* ---- one call is one ---- */

static int record_file;
static volatile off_t written = -1;

static void note_size(void *va, void *usr_ptr, TPPI_NodeId home)
{
	written = lseek(record_file, 0, SEEK_END);
	validate(va, usr_ptr, home);
}

/* Others who write to the file have nothing between two parts of it: it has none. */
static void whole_records(void)
{
	TPPI_register_blk_acc_fault_handler(0, TPPI_Blk_Invalid, TPPI_ReadAccess, note_size);
	for (int i = 0; i < PAGES; i++)
		map_page(page_at(i), 0, TPPI_Blk_Writable);
	TPPI_change_blk_acc(page_at(PAGES) - 1, TPPI_TAG_BLK_SIZE, TPPI_Blk_Invalidate);
	record_file = memfd_create("record", 0);
	CHECK_EQUAL(write(record_file, page_at(0), BYTES), BYTES);
	CHECK_EQUAL(written, 0);
}

/* ---- a thread that is cancelled in a call ---- */

static void *read_forever(void *from)
{
	CHECK(read(*(int *)from, page_at(0), PAGES * TPPI_PAGE_SIZE) < 0);
	return NULL;
}

static long mapped_pages(void)
{
	FILE *file = fopen("/proc/self/statm", "r");
	long pages;

	CHECK(file && fscanf(file, "%ld", &pages) == 1);
	fclose(file);
	return pages;
}

static void cancelled(void)
{
	long before = 0;
	pthread_t thread;
	int ends[2];

	map_closed(PAGES);
	CHECK(!pipe(ends));
	for (int i = 0; i < 10; i++) {
		CHECK(!pthread_create(&thread, NULL, read_forever, &ends[0]));
		usleep(10000);
		CHECK(!pthread_cancel(thread));
		CHECK(!pthread_join(thread, NULL));
		if (i == 1)
			before = mapped_pages();
	}
	CHECK(mapped_pages() < before + 2 * PAGES);
}

static void streams(void)
{
	char *start = map_closed(PAGES);
	FILE *file = tmpfile();

	CHECK(file);
	fill(start);
	close_again(PAGES);
	TPPI_change_blk_acc(start + 64, TPPI_TAG_BLK_SIZE, TPPI_Blk_Validate_RW);
	CHECK_EQUAL(fwrite(start, 4, BYTES / 4, file), BYTES / 4);
	rewind(file);
	memset(start, 0, BYTES);
	CHECK_EQUAL(fread(start, 1, BYTES, file), BYTES);
	CHECK(is_pattern(start, 0, BYTES));
	CHECK_EQUAL(fread(start, 8, 1, file), 0);
	CHECK(feof(file));
	fclose(file);
}

const struct test tests[] = {
	{ "not-wrapped", not_wrapped, 0, 0, 0 },
	{ "files", files, 0, 0, 0 },
	{ "long-files", long_files, 0, 0, 0 },
	{ "pieces", pieces, 0, 0, 0 },
	{ "sockets", sockets, 0, 0, 0 },
	{ "lists", lists, 0, 0, 0 },
	{ "whole-records", whole_records, 0, 0, 0 },
	{ "cancelled", cancelled, 0, 0, 0 },
	{ "streams", streams, 0, 0, 0 },
	{ 0 }
};
