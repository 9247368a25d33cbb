// SPDX-License-Identifier: GPL-2.0-only
/*
 * Failures. Two processes measure together, and when one of them fails the
 * other one fails a moment later for want of a partner: only the first
 * failure says anything, so only the first is kept.
 */
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/perf.h"

static struct failure own;
static struct failure *sink = &own;
static const char *prefix;
static bool usage;

/* Whoever comes second ends soon, and the first is killed then: its text has to be whole. */
static void await_text(void)
{
	const struct timespec pause = { .tv_nsec = NSEC_PER_MSEC };
	int i;

	for (i = 0; i < 1000 && !fail_happened(); i++)
		nanosleep(&pause, NULL);
}

static void keep(const char *format, va_list args)
{
	uint32_t unset = 0;
	int n = 0;

	if (!__atomic_compare_exchange_n(&sink->set, &unset, 1, 0,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
		await_text();
		return;
	}
	if (prefix)
		n = snprintf(sink->text, sizeof(sink->text), "%.40s: ", prefix);
	vsnprintf(sink->text + n, sizeof(sink->text) - (size_t)n, format, args);
	__atomic_store_n(&sink->set, 2, __ATOMIC_RELEASE);
}

/* Always returns -1, so that callers can return what it returns. */
int fail(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	keep(format, args);
	va_end(args);
	return -1;
}

/* The same for what the command line says, before anything was begun. */
int fail_usage(const char *format, ...)
{
	va_list args;

	usage = true;
	va_start(args, format);
	keep(format, args);
	va_end(args);
	return -1;
}

bool fail_was_usage(void)
{
	return usage;
}

/* Not before all of the text is there. */
bool fail_happened(void)
{
	return __atomic_load_n(&sink->set, __ATOMIC_ACQUIRE) == 2;
}

const char *fail_text(void)
{
	return sink->text;
}

/* It has been dealt with: the next failure is the first one. */
void fail_forget(void)
{
	sink->text[0] = 0;
	__atomic_store_n(&sink->set, 0, __ATOMIC_RELEASE);
}

/* Failures of this process go to @sink, in memory shared with its parent. */
void fail_redirect(struct failure *to)
{
	sink = to;
	prefix = NULL;
}

/* What failures from now on begin with, or NULL. */
void fail_prefix(const char *name)
{
	prefix = name;
}
