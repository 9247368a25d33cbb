// SPDX-License-Identifier: GPL-2.0-only
/* Messages to the user, and being interrupted by him. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* ppoll() */
#endif
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/ctl.h"

static volatile sig_atomic_t stopped;

static struct {
	const char *file;
	unsigned int line;
} where;

void say_where(const char *file, unsigned int line)
{
	where.file = file;
	where.line = line;
}

static void say(const char *format, va_list args)
{
	fflush(stdout);
	fputs("hamlynctl: ", stderr);
	if (where.file)
		fprintf(stderr, "%s:%u: ", where.file, where.line);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

int refused(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	return STATUS_REFUSED;
}

int misused(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	return STATUS_USAGE;
}

void warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}

void *must_alloc(void *memory)
{
	if (!memory) {
		fputs("hamlynctl: out of memory\n", stderr);
		exit(STATUS_REFUSED);
	}
	return memory;
}

static void on_signal(int number)
{
	(void)number;
	stopped = 1;
}

/* The signals stay blocked but in stop_wait(), so that none comes just before the sleep. */
void stop_on_signal(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
}

bool stop_wait(int fd, int milliseconds)
{
	struct pollfd wait = { .fd = fd, .events = POLLIN };
	struct timespec time = {
		.tv_sec = milliseconds / 1000,
		.tv_nsec = milliseconds % 1000 * 1000000L,
	};
	sigset_t none;

	sigemptyset(&none);
	return ppoll(&wait, 1, milliseconds < 0 ? NULL : &time, &none) > 0;
}

/* ppoll() lets none in where there is something to read at once, and there may be for ever. */
bool stop_asked(void)
{
	sigset_t waiting;

	return stopped || (!sigpending(&waiting) &&
			   (sigismember(&waiting, SIGINT) || sigismember(&waiting, SIGTERM)));
}
