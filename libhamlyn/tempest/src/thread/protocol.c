// SPDX-License-Identifier: MIT
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "base/array.h"
#include "base/control.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/quiet.h"
#include "base/settings.h"
#include "memory/segment.h"
#include "node/link.h"
#include "node/message.h"
#include "thread/fault.h"
#include "thread/protocol.h"
#include "thread/timer.h"

#define RETRY_NS	100000	/* until what could not be sent is tried again */
#define RETRY_EVENTS	16	/* or so many events have been handled meanwhile */

__thread bool tempest_is_protocol __attribute__((tls_model("initial-exec")));

/*
 * How often it has been kicked. It looks for work after it has read this, and sleeps only
 * if it is still the same: what was queued before a kick is found, or the sleep is none.
 */
static _Atomic uint32_t kicks;
static _Atomic bool sleeps;

/* Where it runs, and where the last thread that it resumed was suspended. */
static _Atomic int here = -1;
static int last_resumed = -1;

bool tempest_protocol_is_here(void)
{
	return here == sched_getcpu();
}

void tempest_protocol_resumed(int processor)
{
	if (tempest_is_protocol)
		last_resumed = processor;
}

void tempest_protocol_kick(void)
{
	atomic_fetch_add(&kicks, 1);
	/* One of those who find it asleep is enough */
	if (!sleeps || !atomic_exchange(&sleeps, false))
		return;
	if (TPPI_num_nodes > 1)
		tempest_link_ring();
	else
		tempest_futex(&kicks, FUTEX_WAKE, 1, NULL);
}

/*
 * Sending comes last, and this thread may never run out of events: what could not be sent
 * does not wait for that.
 */
static void retry(void)
{
	static unsigned int events;

	if (tempest_link_owes() && ++events % RETRY_EVENTS == 0)
		tempest_link_flush();
}

/* One event of the highest priority that has any. */
static bool run_one(void)
{
	retry();
	if (CONTROL(CONTROL_MESSAGES_FIRST))
		return tempest_message_run() || tempest_timer_run() || tempest_fault_run();
	return tempest_fault_run() || tempest_timer_run() || tempest_message_run() ||
	       tempest_link_flush();
}

/* A child that a handler has made, and that returns from it, would go on as this thread. */
static bool run_next(void)
{
	bool found = run_one();

	tempest_not_by_child("return from a handler");
	return found;
}

/*
 * Awake for a while: the next event may be near. False if there was none. Not while the
 * thread that it would come from is likely to wait for this processor.
 */
static bool spin(uint32_t seen)
{
	int64_t end = tempest_now() + tempest_settings.spin_ns;

	if (last_resumed == here)
		return false;
	for (unsigned int i = 0; i % 64 || tempest_now() < end; i++) {
		if (kicks != seen || tempest_timer_next() <= end)
			return true;
		if (TPPI_num_nodes > 1 && run_next())
			return true;
		__builtin_ia32_pause();
	}
	return false;
}

/* Until the next timer expires, or what could not be sent is to be tried again. */
static int64_t longest_sleep(void)
{
	int64_t next = tempest_timer_next();
	int64_t left = next == INT64_MAX ? INT64_MAX : next - tempest_now();

	return tempest_link_owes() && left > RETRY_NS ? RETRY_NS : left;
}

static void sleep_on_futex(uint32_t seen, int64_t ns)
{
	struct timespec timeout = { .tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000 };

	/* FUTEX_WAIT compares again, after the kicker has had a chance to see that we sleep */
	tempest_futex(&kicks, FUTEX_WAIT, seen, ns == INT64_MAX ? NULL : &timeout);
}

static void sleep_until_kicked(uint32_t seen)
{
	int64_t ns = longest_sleep();

	if (ns <= 0)
		return;
	sleeps = true;
	if (TPPI_num_nodes == 1)
		sleep_on_futex(seen, ns);
	else if (kicks == seen)	/* who kicks after this look rings */
		tempest_link_sleep(ns);
	sleeps = false;
}

/* By pthread_exit() of a handler: nobody would run the others. */
static void is_over(void *unused)
{
	(void)unused;
	tempest_die("a handler has ended the protocol thread");
}

static void *run(void *unused)
{
	tempest_is_protocol = true;
	pthread_cleanup_push(is_over, unused);
	for (;;) {
		uint32_t seen = kicks;

		here = sched_getcpu();
		while (run_next())
			;
		if (!spin(seen))
			sleep_until_kicked(seen);
	}
	pthread_cleanup_pop(0);
	return NULL;
}

/* Signals are for the program's threads; but what a handler does wrong ends the program. */
void tempest_protocol_block_signals(sigset_t *old)
{
	static const int own_faults[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT };
	sigset_t set;

	sigfillset(&set);
	for (size_t i = 0; i < ARRAY_SIZE(own_faults); i++)
		sigdelset(&set, own_faults[i]);
	pthread_sigmask(SIG_SETMASK, &set, old);
}

void tempest_protocol_start(void)
{
	pthread_t thread;
	sigset_t old;
	int error;

	tempest_protocol_block_signals(&old);
	error = pthread_create(&thread, NULL, run, NULL);
	if (error)
		tempest_refuse("no protocol thread: %s", strerror(error));
	pthread_detach(thread);
	pthread_setname_np(thread, "tempest");
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}
