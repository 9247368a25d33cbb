/* SPDX-License-Identifier: GPL-2.0-only */
/* Faults: the kernel lets the n-th of its allocations and user copies fail. */
#ifndef FAIL_NTH_ARM_H
#define FAIL_NTH_ARM_H

#include "hamlyn_test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_POINTS	5000	/* of one call */

static int nth_fd = -1;
static int lasting_fd = -1;	/* if what follows a fault fails as well */

static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	int ret = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		ret = -errno;
	close(fd);
	return ret;
}

/* Allocations that may wait fail too, and nobody is told at the console. */
static int prepare_kernel(void)
{
	static const char *const files[][2] = {
		{ "failslab/ignore-gfp-wait", "N" },
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/verbose", "0" },
		{ "fail_usercopy/verbose", "0" },
	};
	char path[96];
	size_t i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(files); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s",
			 files[i][0]);
		ret = write_text(path, files[i][1]);
		if (ret)
			return ret;
	}
	nth_fd = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
	return nth_fd < 0 ? -errno : 0;
}

/*
 * From a fault on all allocations of this task fail: what is tried again, or in
 * another way, comes to its end too.
 */
static int prepare_lasting(void)
{
	static const char *const files[][2] = {
		{ "task-filter", "Y" }, { "times", "-1" },
		{ "probability", "100" },
	};
	static const char *const kinds[] = { "failslab", "fail_page_alloc" };
	char path[96];
	size_t i;
	int ret;

	for (i = 0; i < ARRAY_SIZE(files) * ARRAY_SIZE(kinds); i++) {
		snprintf(path, sizeof(path), "/sys/kernel/debug/%s/%s",
			 kinds[i % 2], files[i / 2][0]);
		ret = write_text(path, files[i / 2][1]);
		if (ret)
			return ret;
	}
	lasting_fd = open("/proc/thread-self/make-it-fail", O_RDWR | O_CLOEXEC);
	return lasting_fd < 0 ? -errno : 0;
}

static void put_number(int fd, unsigned int n)
{
	char text[16];
	int length = snprintf(text, sizeof(text), "%u", n), tries;

	/* What is left from before may make this write fail, but once only. */
	for (tries = 0; tries < 3; tries++)
		if (pwrite(fd, text, (size_t)length, 0) == length)
			return;
	_exit(3);
}

/* While a number is set, nothing else fails than what it counts. */
static void arm(unsigned int n)
{
	if (lasting_fd >= 0)
		put_number(lasting_fd, 1);
	put_number(nth_fd, n);
}

/* How many points came since arm(MANY_POINTS). */
#define MANY_POINTS	1000000

static unsigned int count_points(void)
{
	char text[16] = "";
	ssize_t n = pread(nth_fd, text, sizeof(text) - 1, 0);

	return n > 0 ? MANY_POINTS - (unsigned int)atoi(text) : 0;
}

/* Did the point that was armed come? Reading that may be one itself. */
static bool disarm(void)
{
	char text[16] = "";
	ssize_t n = pread(nth_fd, text, sizeof(text) - 1, 0);

	put_number(nth_fd, 0);
	if (lasting_fd >= 0)
		put_number(lasting_fd, 0);
	return n > 0 && atoi(text) == 0;
}

#endif /* FAIL_NTH_ARM_H */
