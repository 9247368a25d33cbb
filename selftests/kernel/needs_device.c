// SPDX-License-Identifier: GPL-2.0-only
/*
 * Skips a program where there is no device, as the tests of a kernel do. It is in their build only:
 * in a guest of the lab a device that is missing is a failure.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SKIPPED	4	/* KSFT_SKIP */

static __attribute__((constructor)) void skip_without_device(void)
{
	const char *name = getenv("HAMLYN_DEVICE");

	if (!name)
		name = "/dev/hamlyn0";
	if (!access(name, F_OK))
		return;
	printf("TAP version 13\n1..0 # SKIP there is no %s: modprobe hamlyn\n", name);
	exit(SKIPPED);
}
