// SPDX-License-Identifier: GPL-2.0-only
/* The library that leaves out what $HAMLYN_TEST_CONTROL says. */
#include <stdlib.h>

#include "control.h"

unsigned int stache_control;

__attribute__((constructor)) static void read_control(void)
{
	const char *text = getenv("HAMLYN_TEST_CONTROL");

	stache_control = text ? atoi(text) : 0;
}
