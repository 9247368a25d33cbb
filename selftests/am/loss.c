// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that are stopped, and that die. loss WHAT, for two processes, of which 1 is
 * lost, under hamlyn-run --keep-going:
 *   stopped   messages wait for a stopped process, and each is handled once
 *   silent    a stopped process is given up (HAMLYN_AM_GIVE_UP_MS), by name
 *   killed    a killed process is noticed long before that
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gam.h"

static volatile long count;
static volatile long pid;
static volatile int stopping;

static void fail(const char *what)
{
	printf("not ok - %s: %s\n", what, am_error());
	exit(1);
}

static void one(vnn_t source)
{
	(void)source;
	count++;
}

static void my_pid(vnn_t source, long value)
{
	(void)source;
	pid = value;
}

static void get_pid(vnn_t source)
{
	am_reply_1(source, my_pid, (long)getpid());
}

static void counted(vnn_t source, long value)
{
	(void)source;
	count = value;
}

static void get_count(vnn_t source)
{
	am_reply_1(source, counted, count);
}

static int is_stopped(void)
{
	char path[64];
	char state = 0;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	file = fopen(path, "r");
	if (!file || fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = 0;
	if (file)
		fclose(file);
	return state == 'T';
}

static void stop(void)
{
	kill((pid_t)pid, SIGSTOP);
	while (!is_stopped())
		usleep(1000);
}

static void nap_and_poll(int ms)
{
	while (ms--) {
		am_poll();
		usleep(1000);
	}
}

/* As many as may be under way, sent again several times, and handled once each. */
static void is_stopped_meanwhile(void)
{
	struct am_stats s;
	int i;

	stop();
	for (i = 0; i < 4; i++)
		if (am_request_0(1, one))
			fail("a message for a stopped process");
	nap_and_poll(200);
	am_get_stats(&s);
	if (s.retransmissions < 4) {
		printf("not ok - only %lu were sent again\n", s.retransmissions);
		exit(1);
	}
	kill((pid_t)pid, SIGCONT);
	count = -1;
	am_request_0(1, get_count);
	am_wait_for(count != -1);
	/* The last of them may be overtaken by the question. */
	while (count < 4) {
		count = -1;
		am_request_0(1, get_count);
		am_wait_for(count != -1);
	}
	lam_sync_all();
	am_request_0(1, get_count);
	lam_sync_all();
	if (count != 4)
		fail("each is handled once");
	printf("ok - messages wait for a stopped process, and are handled once\n");
	am_disable();
	exit(0);
}

static void says_nothing(void)
{
	int rc = 0;

	stop();
	while (!rc)
		rc = am_request_0(1, one);
	kill((pid_t)pid, SIGKILL);
	if (rc != -ETIMEDOUT || !strstr(am_error(), "process 1"))
		fail("a silent process is given up by name");
	if (am_request_0(1, one) != -ETIMEDOUT)
		fail("and stays so");
	if (am_request_0(0, one) || !count)
		fail("others can be reached");
	printf("ok - a silent process is given up: %s\n", am_error());
	if (am_disable() != -ETIMEDOUT)
		fail("am_disable() tells, too");
	exit(0);
}

static void is_killed(void)
{
	int rc = 0;

	kill((pid_t)pid, SIGKILL);
	while (!rc)
		rc = am_request_0(1, one);
	if (rc != -ECONNRESET || !strstr(am_error(), "process 1"))
		fail("a killed process is noticed by name");
	if (lam_sync_all() != -ECONNRESET)
		fail("lam_sync_all() tells");
	printf("ok - a killed process is noticed: %s\n", am_error());
	if (am_disable() != -ECONNRESET)
		fail("am_disable() tells, too");
	exit(0);
}

int main(int argc, char **argv)
{
	if (am_enable())
		fail("am_enable");
	if (am_procs() != 2 || argc != 2) {
		fprintf(stderr, "usage: hamlyn-run -n 2 loss stopped|silent|killed\n");
		return 2;
	}
	if (am_my_proc() == 1) {
		if (!strcmp(argv[1], "stopped")) {
			lam_sync_all();
			lam_sync_all();
			return am_disable() != 0;
		}
		for (;;)
			am_poll();
	}
	am_request_0(1, get_pid);
	am_wait_for(pid);
	if (!strcmp(argv[1], "stopped"))
		is_stopped_meanwhile();
	else if (!strcmp(argv[1], "silent"))
		says_nothing();
	else
		is_killed();
	return 1;
}
