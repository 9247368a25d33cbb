// SPDX-License-Identifier: GPL-2.0-only
/*
 * As little of a runtime as lets instrumented code run alone: what is in the section "tpdata",
 * linked to the segment's address, is moved to a file that is mapped twice. The view that the
 * program has is closed; what traps there is executed in a single step with its pages open.
 *
 * CC_STUB=writable  all blocks are writable: whatever is checked traps nowhere
 *         invalid   no access is allowed: all of them trap
 *         loops     the same, but loops take all pages for whole: they trap, and some traps let
 *                   them go on with checks
 *         chaos     tags change all the time, signals interrupt, and so do loops
 */
#include <asm/prctl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/abi.h"

#define PAGE		4096ul
#define TRAP_FLAG	0x100

extern char __start_tpdata[], __stop_tpdata[];

long TEMPEST_RSEQ_CS, TEMPEST_LOOP;

/* What a loop says of itself: pairs of places, the last one 0 */
static __thread const uintptr_t *loop;

static char *const base = (char *)TEMPEST_SEGMENT_BASE;
static size_t size;
static unsigned long traps;
static bool chaos, loops;
static volatile unsigned long switches;

static void die(const char *what)
{
	perror(what);
	_exit(125);
}

static void protect(int how)
{
	if (mprotect(base, size, how))
		die("mprotect");
}

/* One time of eight, as it comes to a page that is whole or is not. */
static bool switch_loop(ucontext_t *u)
{
	static unsigned int seed = 1;
	const uintptr_t *at = loop;

	if (!at || rand_r(&seed) >> 4 & 7)
		return false;
	for (; *at; at += 2) {
		if (*at != (uintptr_t)u->uc_mcontext.gregs[REG_RIP])
			continue;
		u->uc_mcontext.gregs[REG_RIP] = (greg_t)at[1];
		switches++;
		return true;
	}
	return false;
}

static void on_access(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;
	uintptr_t at = (uintptr_t)info->si_addr - TEMPEST_SEGMENT_BASE;

	if (at >= size) {
		signal(sig, SIG_DFL);
		return;
	}
	traps++;
	if (switch_loop(u))
		return;
	protect(PROT_READ | PROT_WRITE);
	u->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *u = context;

	(void)sig;
	(void)info;
	u->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	protect(PROT_NONE);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* A block at a time forbids what is done to it, or allows it. */
static void *change_tags(void *unused)
{
	volatile uint8_t *tags = (uint8_t *)(TEMPEST_SEGMENT_BASE >> TEMPEST_TAG_SHIFT);
	size_t n = size >> TEMPEST_TAG_SHIFT;
	unsigned int seed = 1;

	for (;;) {
		tags[(size_t)rand_r(&seed) % n] = (uint8_t)(rand_r(&seed) >> 3 & 3);
		if (!(rand_r(&seed) & 63))
			usleep(1);
	}
	return unused;
}

static void catch(int sig, void (*with)(int, siginfo_t *, void *))
{
	struct sigaction act = { .sa_sigaction = with, .sa_flags = SA_SIGINFO | SA_RESTART };

	/* An alarm inside the single step would find the pages open, and steps of its own. */
	sigaddset(&act.sa_mask, SIGALRM);
	if (sigaction(sig, &act, NULL))
		die("sigaction");
}

static void move_data(void)
{
	int fd = memfd_create("segment", MFD_CLOEXEC);

	if (fd < 0 || write(fd, __start_tpdata, (size_t)(__stop_tpdata - __start_tpdata)) < 0 ||
	    ftruncate(fd, (off_t)size))
		die("memfd");
	if (mmap(base, size, PROT_NONE, MAP_SHARED | MAP_FIXED, fd, 0) == MAP_FAILED ||
	    mmap(base + TEMPEST_ALIAS_OFFSET, size, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED_NOREPLACE, fd, 0) == MAP_FAILED)
		die("mmap");
	close(fd);
}

static void make_tags(int tag)
{
	void *at = (void *)(TEMPEST_SEGMENT_BASE >> TEMPEST_TAG_SHIFT);
	size_t n = size >> TEMPEST_TAG_SHIFT;

	if (mmap(at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		 -1, 0) == MAP_FAILED)
		die("mmap");
	memset(at, tag, n);
	for (n = chaos ? n : 0; n; n--)
		((uint8_t *)at)[n - 1] = (uint8_t)(rand() >> 3 & 3);
}

/* Of which loops believe all: whatever they do as they were is trapped. */
static void make_whole_tags(int tag)
{
	void *at = (void *)TEMPEST_WHOLE_BASE;
	size_t n = (size >> TEMPEST_PAGE_SHIFT) + 1;

	if (mmap(at, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
		 -1, 0) == MAP_FAILED)
		die("mmap");
	memset(at, tag, n);
}

static void interrupt(void)
{
	struct itimerval often = { { 0, 500 }, { 0, 500 } };
	pthread_t thread;
	sigset_t all, old;

	signal(SIGALRM, on_alarm);
	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, &old);
	if (pthread_create(&thread, NULL, change_tags, NULL))
		die("pthread_create");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	setitimer(ITIMER_REAL, &often, NULL);
}

__attribute__((constructor(101)))
static void begin(void)
{
	const char *mode = getenv("CC_STUB");

	if (!mode)
		return;
	if (__start_tpdata != base) {
		fprintf(stderr, "tpdata is at %p\n", (void *)__start_tpdata);
		_exit(125);
	}
	if (!__rseq_size) {
		fprintf(stderr, "no rseq\n");
		_exit(125);
	}
	size = ((size_t)(__stop_tpdata - __start_tpdata) + PAGE) & ~(PAGE - 1);
	chaos = !strcmp(mode, "chaos");
	loops = chaos || !strcmp(mode, "loops");
	TEMPEST_LOOP = (char *)&loop - (char *)__builtin_thread_pointer();
	TEMPEST_RSEQ_CS = __rseq_offset + (long)offsetof(struct rseq, rseq_cs);
	catch(SIGSEGV, on_access);
	catch(SIGTRAP, on_step);
	move_data();
	make_tags(strcmp(mode, "invalid") ? TEMPEST_TAG_WRITABLE : TEMPEST_TAG_INVALID);
	make_whole_tags(loops ? TEMPEST_TAG_WRITABLE : 0);
	if (syscall(SYS_arch_prctl, ARCH_SET_GS, TEMPEST_ALIAS_OFFSET))
		die("arch_prctl");
	if (chaos)
		interrupt();
}

__attribute__((destructor))
static void end(void)
{
	if (size)
		fprintf(stderr, "traps: %lu\nswitches: %lu\n", traps, switches);
}
