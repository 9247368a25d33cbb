// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "message.h"

#define SAY_MS	100	/* a reader that does not come in that time reads nothing */

/*
 * What poll() calls writable others may fill before we write, and O_NONBLOCK would be set
 * for them, too. Asked like this, pipes and sockets do not block even then, as far as the
 * kernel can do that; files have to be written as usual, and do not block for long.
 */
static ssize_t write_now(int fd, const char *text, size_t n)
{
	const struct iovec part = { .iov_base = (void *)(uintptr_t)text, .iov_len = n };
	struct stat status = { 0 };
	ssize_t written = -1;

	fstat(fd, &status);
	if (S_ISSOCK(status.st_mode))
		return send(fd, text, n, MSG_DONTWAIT | MSG_NOSIGNAL);
	errno = EOPNOTSUPP;
	if (S_ISFIFO(status.st_mode))
		written = pwritev2(fd, &part, 1, -1, RWF_NOWAIT);
	if (written < 0 && errno == EOPNOTSUPP)
		written = write(fd, text, n);
	return written;
}

ssize_t write_in_time(int fd, const char *text, size_t n, int timeout_ms)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	/* Also for an error, which the write then tells */
	if (poll(&room, 1, timeout_ms) > 0)
		return write_now(fd, text, n);
	errno = EAGAIN;
	return -1;
}

void say(const char *format, ...)
{
	static const char name[] = "hamlyn-run: ";
	char text[1024];
	va_list args;
	size_t n = sizeof(name) - 1;
	int length;

	length = snprintf(text, sizeof(text), "%s", name);
	va_start(args, format);
	length = vsnprintf(text + n, sizeof(text) - n - 1, format, args);
	va_end(args);
	if (length > 0)
		n += (size_t)length < sizeof(text) - n - 1 ? (size_t)length : sizeof(text) - n - 2;
	text[n++] = '\n';
	/* If it cannot be said there is nobody to tell that */
	if (write_in_time(STDERR_FILENO, text, n, SAY_MS) < 0)
		return;
}

static void *need(void *memory)
{
	if (memory)
		return memory;
	say("no memory");
	/* The processes end with this one (PR_SET_PDEATHSIG) */
	exit(1);
}

void *allocate(size_t n, size_t size)
{
	return need(calloc(n, size));
}

void *enlarge(void *memory, size_t size)
{
	return need(realloc(memory, size));
}
