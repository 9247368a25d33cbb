// SPDX-License-Identifier: GPL-2.0-only
/*
 * What instructions.py counts (P 7.2, Table 2): HPAM_4() from process 0, with nothing
 * else to do, and the HPAM_poll() of process 1 that finds that one message. They take
 * turns, so that each call does just its part.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "gam.h"
#include "hpam.h"
#include "options.h"
#include "world.h"

static const char *path;
static unsigned long rounds = 100;

static const struct option_word words[] = {
	{ "turns", OPTION_TEXT, &path, "PREFIX", "of two pipes, made by the caller", 0, 0 },
	{ "count", OPTION_NUMBER, &rounds, "N", "messages (default 100)", 1, 100000 },
	{ NULL, OPTION_FLAG, NULL, NULL, NULL, 0, 0 },
};

static const struct usage usage = {
	"cost",
	"For instructions.py: sends and receives in turns, in functions of their own.",
	words,
};

static unsigned long got;

static void take(unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	got += a + b + c + d;
}

__attribute__((noinline)) static void cost_send(unsigned long n)
{
	must(HPAM_4(1, take, n, 0, 0, 0), "HPAM_4");
}

__attribute__((noinline)) static void cost_receive(void)
{
	must(HPAM_poll(), "HPAM_poll");
}

static int turn(char which, int flags)
{
	char name[4096];
	int fd;

	snprintf(name, sizeof(name), "%s%c", path, which);
	fd = open(name, flags);
	if (fd < 0)
		die("%s cannot be opened", name);
	return fd;
}

static void pass(int fd)
{
	if (write(fd, "", 1) != 1)
		die("the other process is gone");
}

static void wait_turn(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		die("the other process is gone");
}

int main(int argc, char **argv)
{
	unsigned long expected = 0;
	unsigned long i;
	int to, from;

	options_parse(argc, argv, &usage);
	if (!path)
		options_refuse("--turns is needed: this program is for instructions.py");
	world_enable(usage.name, 2, 2);
	/* Both in the same order, or they wait for each other. */
	to = turn(am_my_proc() ? 'b' : 'a', O_RDWR);
	from = turn(am_my_proc() ? 'a' : 'b', O_RDWR);
	world_barrier();
	for (i = 0; i < rounds; i++) {
		if (am_my_proc()) {
			wait_turn(from);
			cost_receive();
			expected += i;
			if (got != expected)
				die("message %lu was not there", i);
			pass(to);
		} else {
			cost_send(i);
			pass(to);
			wait_turn(from);
		}
	}
	return world_disable();
}
