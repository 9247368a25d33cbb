// SPDX-License-Identifier: GPL-2.0-only
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define PATIENCE_SECONDS	60

void map_page(void *page, TPPI_PageMode mode, TPPI_BlkAccTag tag)
{
	CHECK_EQUAL(TPPI_alloc_and_map(page, mode, tag, 0, NULL), 1);
}

void map_mixed(void *page)
{
	map_page(page, 0, TPPI_Blk_Writable);
	TPPI_change_blk_acc((char *)page + TPPI_PAGE_SIZE - 1, TPPI_TAG_BLK_SIZE,
			    TPPI_Blk_Invalidate);
}

void wait_for(bool (*condition)(void *), void *argument, const char *what)
{
	int64_t end = now_ns() + PATIENCE_SECONDS * INT64_C(1000000000) * scale();

	for (unsigned int i = 0; !condition(argument); i++) {
		if (now_ns() > end)
			failed(__FILE__, __LINE__, "waited in vain for %s", what);
		if (i > 1000)
			usleep(100);
	}
}

struct counter {
	const atomic_ulong *at;
	unsigned long before;
};

static bool is_further(void *counter)
{
	const struct counter *c = counter;

	return *c->at != c->before;
}

void wait_past(const atomic_ulong *counter, unsigned long before, const char *what)
{
	struct counter c = { counter, before };

	wait_for(is_further, &c, what);
}

pid_t begin_child(void (*run)(void *), void *argument)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		run(argument);
		_exit(0);
	}
	CHECK(pid > 0);
	return pid;
}

int in_child(void (*run)(void *), void *argument)
{
	pid_t pid = begin_child(run, argument);
	int status;

	CHECK_EQUAL(waitpid(pid, &status, 0), pid);
	return status;
}

static char **arguments;

void require_setting(const char *name, const char *value)
{
	const char *found = getenv(name);

	if (found && !strcmp(found, value))
		return;
	setenv(name, value, 1);
	execv("/proc/self/exe", arguments);
	failed(__FILE__, __LINE__, "the program cannot be executed again");
}

static int list(void)
{
	for (const struct test *t = tests; t->name; t++)
		printf("%s %s %d %d\n", t->name, t->control ? "control" : "-", t->dies,
		       t->noticed);
	return 0;
}

int main(int argc, char **argv)
{
	const struct test *t = tests;

	arguments = argv;
	if (argc == 2 && !strcmp(argv[1], "--list"))
		return list();
	if (argc == 3 && !strcmp(argv[2], "--relaxed")) {
		tempest_control = CONTROL_RELAXED;
		argc = 2;
	}
	if (argc < 2 || argc > 3 || (argc == 3 && strcmp(argv[2], "--control"))) {
		fprintf(stderr, "Usage: %s --list | TEST [--control | --relaxed]\n", argv[0]);
		return 2;
	}
	while (t->name && strcmp(t->name, argv[1]))
		t++;
	if (!t->name || (argc == 3 && !t->control)) {
		fprintf(stderr, "%s: there is no such test\n", argv[0]);
		return 2;
	}
	if (argc == 3)
		tempest_control = t->control;
	t->run();
	return 0;
}
