// SPDX-License-Identifier: GPL-2.0-only
/*
 * 32-bit programs on a 64-bit kernel: every ioctl is ENOTTY for them and does
 * nothing. A 64-bit program can make their system calls as well, so none has
 * to be built. Kernel device only; arm64 has no such instruction.
 */
#include "kselftest_harness.h"
#include "hostile.h"

#include <sys/ioctl.h>

#define GETPID_32	20	/* numbers among the 32-bit calls */
#define IOCTL_32	54
#define COMMANDS	256	/* all that fit the number of an ioctl */

#if defined(__x86_64__)
static int call_32(int number, int a, unsigned int b, unsigned int c)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret)
			 : "a"((long)number), "b"((long)a), "c"((unsigned long)b),
			   "d"((unsigned long)c)
			 : "memory", "r8", "r9", "r10", "r11");
	return (int)ret;
}
#else
static int call_32(int number, int a, unsigned int b, unsigned int c)
{
	(void)number;
	(void)a;
	(void)b;
	(void)c;
	return -EOPNOTSUPP;
}
#endif

/* Memory that has an address of 32 bits. */
static void *low_page(void)
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS;

#ifdef MAP_32BIT
	flags |= MAP_32BIT;
#endif
	return mmap(NULL, PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
}

FIXTURE(compat32) {
	int fd;
	struct hamlyn_query *query;
};

/* Without them the instruction is an exception. */
static bool kernel_has_calls_32(void)
{
	pid_t pid = ht_fork();

	if (!pid)
		_exit(call_32(GETPID_32, 0, 0, 0) != getpid());
	return pid > 0 && !ht_reap(pid);
}

FIXTURE_SETUP(compat32)
{
#if !defined(__x86_64__)
	SKIP(return, "only on x86");
#endif
	if (!kernel_has_calls_32())
		SKIP(return, "this kernel has no 32-bit system calls (CONFIG_IA32_EMULATION)");
	self->fd = ht_raw_open();
	ASSERT_GE(self->fd, 0);
	self->query = low_page();
	ASSERT_NE(self->query, MAP_FAILED);
	self->query->size = sizeof(*self->query);
}

FIXTURE_TEARDOWN(compat32)
{
	munmap(self->query, PAGE);
	close(self->fd);
}

static unsigned int low(const void *p)
{
	return (unsigned int)(uintptr_t)p;
}

/* What is refused below is not refused because it does not arrive. */
TEST_F(compat32, the_calls_arrive)
{
	ASSERT_EQ(0, call_32(IOCTL_32, self->fd, FIOCLEX, 0));
	ASSERT_EQ(-EBADF, call_32(IOCTL_32, -1, HAMLYN_IOC_QUERY, low(self->query)));
	ASSERT_EQ(0, ioctl(self->fd, HAMLYN_IOC_QUERY, self->query));
	EXPECT_EQ(HAMLYN_ABI_VERSION, self->query->abi_version);
}

TEST_F(compat32, every_ioctl_is_ENOTTY)
{
	unsigned int i;

	for (i = 0; i < COMMANDS; i++)
		ASSERT_EQ(-ENOTTY, call_32(IOCTL_32, self->fd, _IO(HAMLYN_IOC_TYPE, i),
					   low(self->query))) {
			TH_LOG("ioctl %u", i);
		}
	EXPECT_EQ(0, self->query->abi_version);
}

TEST_HARNESS_MAIN
