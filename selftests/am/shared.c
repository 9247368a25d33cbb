// SPDX-License-Identifier: GPL-2.0-only
/*
 * A program that is loaded to a random place, with shared libraries, by two or more
 * processes: addresses of static variables, handlers of the program and of a library.
 * Prints TAP-like lines; ends with 1 if one failed. "shared runs" says that it runs.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gam.h"

static int failed;
static int me;
static long mine[4];
static volatile int arrived;

static void check(int good, const char *name)
{
	if (!me)
		printf("%s - %s\n", good ? "ok" : "not ok", name);
	failed |= !good;
}

static void stored(vnn_t source, void *addr, int nbytes, void *arg)
{
	arrived += source == mine[0] && addr == mine && nbytes == (int)sizeof(mine) &&
		   arg == &arrived;
}

static void elsewhere(int to)
{
	const long values[4] = { me, 2, 3, 4 };
	void *heap = malloc(8);

	check(am_store(to, values, am_static(to, mine), sizeof(mine), stored,
		       am_static(to, (const void *)(uintptr_t)&arrived)) == 0 &&
	      lam_sync_all() == 0 && arrived == 1 && mine[3] == 4,
	      "static variables of other processes are where am_static() says");
	check(am_static(me, mine) == mine, "one's own are where they are");
	check(!am_static(to, heap) && !am_static(to, values) &&
	      !am_static(to, (void *)(uintptr_t)stdout) && !am_static(am_procs(), mine) &&
	      !am_static(-1, mine), "nothing else has an address there");
	free(heap);
}

int main(int argc, char **argv)
{
	int rc;
	int to;

	if (argc == 2 && !strcmp(argv[1], "runs"))
		return 0;
	if (am_enable()) {
		printf("not ok - am_enable: %s\n", am_error());
		return 1;
	}
	me = am_my_proc();
	to = (me + 1) % am_procs();
	elsewhere(to);
	/* As a handler it does nothing. */
	rc = am_request_0(to, (handler_0_t)(void (*)(void))am_procs);
	check(rc == 0 && lam_sync_all() == 0, "a handler may be in a library");
	check(am_disable() == 0, "am_disable()");
	return failed;
}
