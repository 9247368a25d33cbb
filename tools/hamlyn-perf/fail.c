// SPDX-License-Identifier: GPL-2.0-only
/*
 * Failures. Two processes measure together, and when one of them fails the
 * other one fails a moment later for want of a partner: only the first
 * failure says anything, so only the first is kept.
 */
#include <stdarg.h>
#include <stdio.h>

#include "perf.h"

static struct failure own;
static struct failure *sink = &own;
static const char *prefix;

/* Always returns -1, so that callers can return what it returns. */
int fail(const char *format, ...)
{
	uint32_t unset = 0;
	va_list args;
	int n = 0;

	if (!__atomic_compare_exchange_n(&sink->set, &unset, 1, 0,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return -1;
	if (prefix)
		n = snprintf(sink->text, sizeof(sink->text), "%.40s: ", prefix);
	va_start(args, format);
	vsnprintf(sink->text + n, sizeof(sink->text) - (size_t)n, format, args);
	va_end(args);
	__atomic_store_n(&sink->set, 2, __ATOMIC_RELEASE);
	return -1;
}

bool fail_happened(void)
{
	return __atomic_load_n(&sink->set, __ATOMIC_ACQUIRE) != 0;
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
