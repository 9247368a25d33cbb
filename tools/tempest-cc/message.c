// SPDX-License-Identifier: GPL-2.0-only
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "message.h"

static void print(const char *format, va_list args)
{
	fprintf(stderr, ME ": ");
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
}

void say(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(format, args);
	va_end(args);
}

void give_up(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	print(format, args);
	va_end(args);
	exit(1);
}

void *enlarge(void *p, size_t size)
{
	p = realloc(p, size);
	if (!p)
		give_up("out of memory (%zu bytes)", size);
	return p;
}
