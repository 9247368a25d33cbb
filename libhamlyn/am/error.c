// SPDX-License-Identifier: MIT
/* What was wrong, in words. */
#include <stdarg.h>
#include <stdio.h>

#include "am.h"

static char text[512];

int am_fail(int error, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return error;
}

const char *am_error_text(void)
{
	return text;
}
