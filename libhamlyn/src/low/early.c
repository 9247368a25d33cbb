// SPDX-License-Identifier: MIT
/* Why a call failed that makes what h_explain() is asked about. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "low/low.h"

/* Of the thread's last call of that kind; "" if it succeeded. */
static __thread char why[HAMLYN_EXPLAIN_BYTES];

void h__early_begin(void)
{
	why[0] = 0;
}

/* The innermost function knows best, and speaks first. */
int h__early(int err, const char *format, ...)
{
	va_list args;

	if (why[0])
		return err;
	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	return err;
}

int h__early_end(int err, const char *name)
{
	char text[64];

	/* Those that retry say why each time. */
	if (!err)
		why[0] = 0;
	else if (!why[0])
		h__early(err, "%.180s: %s", name, strerror_r(-err, text, sizeof(text)));
	if (err)
		h__log(H_LOG_INFO, "%s", why);
	return err;
}

void h__early_add(const char *text)
{
	size_t length = strlen(why), more = strlen(text);

	/* What was wrong is worth more */
	if (length + more < sizeof(why))
		memcpy(why + length, text, more + 1);
}

void h__early_read(char *text, size_t size)
{
	snprintf(text, size, "%s", why);
	why[0] = 0;
}
