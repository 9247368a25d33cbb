// SPDX-License-Identifier: MIT
/*
 * Pages by userfaultfd: a page without an entry in the page table is closed. One mapping
 * for all of the segment, however many pages are open, and by its SIGBUS feature no other
 * thread is asked.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "memory/view.h"

/* Newer than some headers: Linux 5.11, and 6.4. */
#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif
#define CONTINUE_WRITE_PROTECTED	((__u64)1 << 1)

#define FEATURES	(UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM | \
			 UFFD_FEATURE_WP_HUGETLBFS_SHMEM | UFFD_FEATURE_SIGBUS)

#define KEEPER_STACK	(64UL << 10)

static int fd = -1;
static bool opens_read_only = true;

static void close_in_child(void)
{
	close(fd);
	fd = -1;
}

/*
 * A program that closes all descriptors, as daemons do, would end the registration, and the kernel
 * would open every page without a word. So a thread with a table of its own has this one, too: then
 * pages cannot be opened any more, which is slow, and correct.
 */
static void *keep(void *kept)
{
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, NULL);
	/* All or nothing: another's end may be told by a descriptor that nobody has any more */
	if (unshare(CLONE_FILES) || (fd && syscall(SYS_close_range, 0U, fd - 1U, 0)) ||
	    syscall(SYS_close_range, fd + 1U, ~0U, 0)) {
		sem_post(kept);
		return NULL;
	}
	sem_post(kept);
	for (;;)
		pause();
}

static bool start_keeper(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	sem_t kept;
	bool started;

	if (sem_init(&kept, 0, 0) || pthread_attr_init(&attr))
		return false;
	pthread_attr_setstacksize(&attr, KEEPER_STACK);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	started = !pthread_create(&thread, &attr, keep, &kept);
	pthread_attr_destroy(&attr);
	while (started && sem_wait(&kept))
		;
	sem_destroy(&kept);
	return started;
}

static const char *start(void)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };
	struct uffdio_register range = {
		.range = { SEGMENT_BASE, TPPI_seg_size },
		.mode = UFFDIO_REGISTER_MODE_MISSING | UFFDIO_REGISTER_MODE_MINOR |
			UFFDIO_REGISTER_MODE_WP,
	};

	/* It works on the parent's address space, whoever uses it */
	if (pthread_atfork(NULL, NULL, close_in_child))
		return "no memory";
	fd = syscall(SYS_userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	if (fd < 0)
		return strerror(errno);
	if (ioctl(fd, UFFDIO_API, &api) || ioctl(fd, UFFDIO_REGISTER, &range)) {
		int error = errno;

		close(fd);
		fd = -1;
		return strerror(error);
	}
	return start_keeper() ? NULL : "no memory for a thread";
}

static bool open_page(uintptr_t page, uint8_t tag)
{
	struct uffdio_continue map = {
		.range = { page, PAGE_BYTES },
		.mode = tag < TPPI_Blk_Writable ? CONTINUE_WRITE_PROTECTED : 0,
	};

	if (map.mode && !opens_read_only)
		return false;
	while (ioctl(fd, UFFDIO_CONTINUE, &map)) {
		/* The address space was being changed */
		if (errno == EAGAIN)
			continue;
		/* Before Linux 6.4 pages of ReadOnly blocks remain closed */
		if (errno == EINVAL && map.mode)
			opens_read_only = false;
		return errno == EEXIST;
	}
	return true;
}

static bool close_page(uintptr_t page)
{
	while (madvise((void *)page, PAGE_BYTES, MADV_DONTNEED)) {
		/* The program has called mlockall(): the alias keeps the page in memory */
		if (errno != EINVAL || syscall(SYS_munlock, SEGMENT_BASE, TPPI_seg_size))
			tempest_die("a page cannot be closed: %s", strerror(errno));
	}
	return false;
}

const struct tempest_view_ops tempest_view_userfaultfd = {
	.name = "userfaultfd",
	.locks = 256,
	.start = start,
	.open = open_page,
	/* Reclaim may take a page out of the page table, and the next access is a fault */
	.reopen = open_page,
	.close = close_page,
};
