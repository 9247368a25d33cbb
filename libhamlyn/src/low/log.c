// SPDX-License-Identifier: MIT
/* What the library notices, for the application to write down. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "low/low.h"

/*
 * Read without a lock: a thread may log with any lock held. @turn is odd while the rest
 * changes; nobody waits for that, so a line may be lost then. A pair inside one process:
 * h_log_set() makes @turn odd before, and even after all else; h__log() reads it before and
 * after all else.
 */
static struct {
	uint32_t lock;
	uint32_t turn;
	int level;
	void (*log)(int level, const char *text, void *arg);
	void *arg;
} sink = { .level = -1 };

static pthread_once_t watched = PTHREAD_ONCE_INIT;

static void before_fork(void)
{
	h__lock(&sink.lock);
}

static void after_fork_parent(void)
{
	h__unlock(&sink.lock);
}

static void after_fork_child(void)
{
	h__lock_forked();
	h__lock_renew(&sink.lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

uint32_t h_version(void)
{
	return H_VERSION;
}

void h_log_set(int level, void (*log)(int level, const char *text, void *arg), void *arg)
{
	pthread_once(&watched, watch_forks);
	h__lock(&sink.lock);
	h__write_once(&sink.turn, sink.turn + 1);
	h__full_barrier();
	h__store_release(&sink.level, log ? level : -1);
	h__store_release(&sink.log, log);
	h__store_release(&sink.arg, arg);
	h__store_release(&sink.turn, sink.turn + 1);
	h__unlock(&sink.lock);
}

bool h__log_wanted(int level)
{
	return h__unlikely(level <= h__read_once(&sink.level));
}

void h__log(int level, const char *format, ...)
{
	void (*log)(int level, const char *text, void *arg);
	char text[H_LOG_BYTES];
	va_list args;
	uint32_t turn;
	int old, wanted;
	void *arg;

	if (!h__log_wanted(level))
		return;
	turn = h__load_acquire(&sink.turn);
	log = h__load_acquire(&sink.log);
	arg = h__load_acquire(&sink.arg);
	wanted = h__load_acquire(&sink.level);
	if (turn & 1 || turn != h__load_acquire(&sink.turn) || !log || level > wanted)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* The hook may be a cancellation point, and what is locked here must be released. */
	old = h__cancel_off();
	log(level, text, arg);
	h__cancel_restore(old);
}
