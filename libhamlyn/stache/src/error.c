// SPDX-License-Identifier: MIT
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "error.h"
#include "stache.h"

#define LINE_BYTES	512

void stache_die(const char *format, ...)
{
	char line[LINE_BYTES];
	int head = snprintf(line, sizeof(line), "stache: node %u: ", TPPI_self_address);
	va_list args;
	int length;

	va_start(args, format);
	length = head + vsnprintf(line + head, sizeof(line) - head - 1, format, args);
	va_end(args);
	if (length > LINE_BYTES - 2)
		length = LINE_BYTES - 2;
	line[length++] = '\n';
	/* One write(): lines of several nodes do not mix. If it fails, nothing can be said. */
	length = write(STDERR_FILENO, line, length);
	(void)length;
	abort();
}
