// SPDX-License-Identifier: GPL-2.0-only
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "message.h"

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
	if (write(STDERR_FILENO, text, n) < 0)
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
