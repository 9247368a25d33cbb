/* SPDX-License-Identifier: MIT */
/* Calls of computation threads during which no signal handler of the program runs. */
#ifndef TEMPEST_QUIET_H
#define TEMPEST_QUIET_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Of the current thread; the protocol thread has its signals blocked for good. */
extern __thread bool tempest_is_protocol __attribute__((tls_model("initial-exec")));

/* The kernel's mask: libc's sigset_t is larger, and its calls hide signals of its own. */
struct tempest_quiet {
	uint64_t mask;
	int cancel;
	bool changed;
};

/*
 * A handler of the program that ran while this thread holds a lock of the library would
 * wait for it forever as soon as it trapped. But it is told of a fault: calls copy its
 * memory, without a lock, which may be none.
 *
 * Nor may a cancellation end the thread, which would take a lock along.
 */
static inline struct tempest_quiet tempest_quiet_begin(void)
{
	struct tempest_quiet quiet = { .changed = !tempest_is_protocol };
	uint64_t all = ~(UINT64_C(1) << (SIGSEGV - 1) | UINT64_C(1) << (SIGBUS - 1));

	if (quiet.changed) {
		pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &quiet.cancel);
		syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &quiet.mask, sizeof(all));
	}
	return quiet;
}

static inline void tempest_quiet_end(struct tempest_quiet *quiet)
{
	if (!quiet->changed)
		return;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &quiet->mask, NULL, sizeof(quiet->mask));
	/* Here the thread may end. */
	pthread_setcancelstate(quiet->cancel, NULL);
}

/* Until the end of the block that it is in. */
#define QUIET()	\
	struct tempest_quiet quiet __attribute__((cleanup(tempest_quiet_end), unused)) = \
		tempest_quiet_begin()

static inline void tempest_nap(long ns)
{
	struct timespec time = { .tv_nsec = ns };

	syscall(SYS_nanosleep, &time, NULL);
}

#endif /* TEMPEST_QUIET_H */
