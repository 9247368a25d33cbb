// SPDX-License-Identifier: MIT
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/error.h"
#include "base/quiet.h"
#include "thread/thread.h"

#define SLOTS_BYTES	((size_t)MOST_THREADS * SLOT_BYTES)
#define SPINS		200

#ifndef MFD_EXEC
#define MFD_EXEC	0x0010U	/* Linux 6.3 */
#endif

static struct tempest_thread *threads;
/* No thread has a higher place; a thread raises it before its first access is announced. */
static _Atomic unsigned int high;
static pthread_key_t at_exit;

static __thread struct tempest_thread *self __attribute__((tls_model("initial-exec")));

/* The place of a thread that ends is for another. */
static void leave(void *thread)
{
	struct tempest_thread *place = thread;

	self = NULL;
	/* A cancellation may have ended it within its slot */
	tempest_thread_leave(place);
	atomic_store(&place->tid, 0);
}

/* Code is written at one place and executed at another: never both at the same. */
static void map_slots(uintptr_t execute, uint8_t **write)
{
	int fd = memfd_create("tempest-slots", MFD_CLOEXEC | MFD_EXEC);

	if (fd < 0)
		fd = memfd_create("tempest-slots", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, SLOTS_BYTES))
		tempest_refuse("no memory file for instructions: %s", strerror(errno));
	*write = mmap(NULL, SLOTS_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (*write == MAP_FAILED ||
	    mmap((void *)execute, SLOTS_BYTES, PROT_READ | PROT_EXEC, MAP_SHARED | MAP_FIXED, fd,
		 0) == MAP_FAILED)
		tempest_refuse("no memory that may be executed: %s", strerror(errno));
	close(fd);
	/* A child would write into the slots of its parent */
	madvise(*write, SLOTS_BYTES, MADV_DONTFORK);
	madvise((void *)execute, SLOTS_BYTES, MADV_DONTFORK);
}

void tempest_thread_start(void)
{
	size_t bytes = MOST_THREADS * sizeof(struct tempest_thread);
	uint8_t *write;
	char *at = mmap(NULL, SLOTS_BYTES + bytes, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED || pthread_key_create(&at_exit, leave))
		tempest_refuse("no memory for the table of threads: %s", strerror(errno));
	map_slots((uintptr_t)at, &write);
	threads = (struct tempest_thread *)(at + SLOTS_BYTES);
	for (unsigned int i = 0; i < MOST_THREADS; i++) {
		threads[i].slot = (uintptr_t)at + (size_t)i * SLOT_BYTES;
		threads[i].slot_write = write + (size_t)i * SLOT_BYTES;
	}
}

static bool claim(struct tempest_thread *thread, int found, int tid)
{
	return atomic_compare_exchange_strong(&thread->tid, &found, tid);
}

/* One that ended without saying so, as by a bare exit(2), or while it trapped once more. */
static bool is_gone(int tid)
{
	return tid && syscall(SYS_tgkill, getpid(), tid, 0) && errno == ESRCH;
}

static struct tempest_thread *find_place(int tid)
{
	for (unsigned int i = 0; i < MOST_THREADS; i++) {
		if (!threads[i].tid && claim(&threads[i], 0, tid))
			return &threads[i];
	}
	for (unsigned int i = 0; i < MOST_THREADS; i++) {
		int old = threads[i].tid;

		if (is_gone(old) && claim(&threads[i], old, tid))
			return &threads[i];
	}
	tempest_die("more than %d threads access the segment", MOST_THREADS);
}

struct tempest_thread *tempest_thread_known(void)
{
	return self;
}

struct tempest_thread *tempest_thread_self(void)
{
	unsigned int place, known;

	if (self)
		return self;
	self = find_place((int)syscall(SYS_gettid));
	self->in_flight = 0;
	place = self - threads + 1;
	known = high;
	while (known < place && !atomic_compare_exchange_weak(&high, &known, place))
		;
	/* If there is no memory for that its place is found again when all are used */
	pthread_setspecific(at_exit, self);
	return self;
}

static bool is_in(uint64_t in_flight, uintptr_t start, size_t bytes)
{
	uintptr_t va = in_flight & (((uint64_t)1 << IN_FLIGHT_SIZE) - 1);

	return in_flight && va < start + bytes && va + (in_flight >> IN_FLIGHT_SIZE) > start;
}

/*
 * The other may have been preempted within its slot: let it run. A thread whose access is
 * in flight does not wait for anything, so this ends.
 */
static void wait_for(struct tempest_thread *thread, uintptr_t start, size_t bytes)
{
	for (unsigned int i = 0; is_in(thread->in_flight, start, bytes); i++) {
		if (i < SPINS)
			__builtin_ia32_pause();
		else if (i < 2 * SPINS)
			sched_yield();
		else	/* of a lower priority, perhaps */
			tempest_nap(20000);
	}
}

void tempest_thread_drain(uintptr_t start, size_t bytes)
{
	unsigned int number = high;

	for (unsigned int i = 0; i < number; i++) {
		if (&threads[i] != self)
			wait_for(&threads[i], start, bytes);
	}
}
