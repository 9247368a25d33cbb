// SPDX-License-Identifier: GPL-2.0-only
/*
 * What the bridge tells people. Nobody has to listen: a pipe that is full, or a terminal that is
 * held, stops no thread that others wait for. What finds no room is not told.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "bridge.h"

#define AT_A_TIME	512	/* of a pipe that has room at all there is room for as much */

/* Another process may have filled it since poll(). */
static ssize_t write_now(int fd, const char *text, size_t n)
{
	struct iovec part = { (char *)(uintptr_t)text, n };
	struct stat st = { 0 };
	ssize_t put = -1;

	if (fstat(fd, &st))
		return -1;
	errno = EOPNOTSUPP;
	if (S_ISSOCK(st.st_mode))
		put = send(fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	else if (S_ISFIFO(st.st_mode))
		put = pwritev2(fd, &part, 1, -1, RWF_NOWAIT);
	/* Of pipes only from some version of the kernel on. */
	return put < 0 && errno == EOPNOTSUPP ? write(fd, text, n) : put;
}

static bool put_some(int fd, const char *text, size_t n)
{
	struct pollfd p = { .fd = fd, .events = POLLOUT };

	return poll(&p, 1, 0) > 0 && p.revents & POLLOUT && write_now(fd, text, n) == (ssize_t)n;
}

static void put(int fd, const char *text, size_t n)
{
	size_t part;

	for (; n; text += part, n -= part) {
		part = n < AT_A_TIME ? n : AT_A_TIME;
		if (!put_some(fd, text, part))
			return;
	}
}

static void put_line(const char *format, va_list args)
{
	char line[AT_A_TIME], text[AT_A_TIME - 32];
	int n;

	vsnprintf(text, sizeof(text), format, args);
	n = snprintf(line, sizeof(line), "hamlyn-bridge: %s\n", text);
	put(STDERR_FILENO, line, (size_t)n);
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	put_line(format, args);
	va_end(args);
}

void tell(const struct bridge *b, const char *format, ...)
{
	va_list args;

	if (b->set.quiet)
		return;
	va_start(args, format);
	put_line(format, args);
	va_end(args);
}

void say_status(const struct bridge *b)
{
	char *text = NULL;
	size_t n = 0;
	FILE *f = open_memstream(&text, &n);

	if (!f)
		return;
	status_print(b->seg, f);
	if (!fclose(f))
		put(STDOUT_FILENO, text, n);
	free(text);
}
