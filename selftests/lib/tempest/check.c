// SPDX-License-Identifier: GPL-2.0-only
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tempest.h"
#include "tempest/check.h"

int scale(void)
{
	const char *text = getenv("HAMLYN_TEST_SCALE");
	int value = text ? atoi(text) : 1;

	return value > 1 ? value : 1;
}

int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

void failed(const char *file, int line, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	printf("# node %u: %s:%d: ", TPPI_self_address, file, line);
	vprintf(format, args);
	printf("\n");
	va_end(args);
	fflush(stdout);
	_exit(1);
}
