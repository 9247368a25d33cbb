// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "tempest.h"

#define LINE_BYTES	512

/* One write() so that the lines of several nodes do not mix. */
static void say(const char *format, va_list args)
{
	char line[LINE_BYTES];
	int head = snprintf(line, sizeof(line), "tempest: node %u: ", TPPI_self_address);
	int body = vsnprintf(line + head, sizeof(line) - head - 1, format, args);
	int length = head + body;

	if (length > LINE_BYTES - 2)
		length = LINE_BYTES - 2;
	line[length++] = '\n';
	/* There is nowhere to report that this fails */
	if (write(STDERR_FILENO, line, length) < 0)
		return;
}

void tempest_die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	abort();
}

void tempest_refuse(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
	_exit(EXIT_FAILURE);
}

void tempest_warn(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	say(format, args);
	va_end(args);
}
