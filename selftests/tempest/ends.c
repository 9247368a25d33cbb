// SPDX-License-Identifier: GPL-2.0-only
/* Programs whose first thread ends, and not the process: the last one does that. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

#define PATIENCE_MS	60000
#define SHORT_MS	3000	/* of what is not to come */
#define AS_PROGRAM	"HAMLYN_TEST_END"

/* ---- the programs, which write a letter for what they have done ---- */

static void say(char letter)
{
	CHECK_EQUAL(write(STDOUT_FILENO, &letter, 1), 1);
}

/* In whatever thread that is: the segment can be used, and signals come. */
static void say_exit(void)
{
	sigset_t mask;

	checked_add(page_at(0), 1);
	/* Atomic, as the thread sanitizer does not see that this follows the others' ends */
	CHECK_EQUAL(atomic_load((atomic_int *)page_at(0)), 4);
	CHECK(!pthread_sigmask(SIG_BLOCK, NULL, &mask));
	CHECK(!sigismember(&mask, SIGUSR1) && sigismember(&mask, SIGUSR2));
	say('x');
}

static void *be_last(void *unused)
{
	usleep(50000);
	atomic_fetch_add((atomic_int *)page_at(0), 1);
	say('c');
	return unused;
}

/* No thread of the library's has seen it, and it ends before the next one does. */
static void *be_next(void *unused)
{
	pthread_t thread;

	usleep(50000);
	checked_add(page_at(0), 1);
	say('b');
	CHECK(!pthread_create(&thread, NULL, be_last, NULL));
	CHECK(!pthread_detach(thread));
	return unused;
}

static void prepare(void)
{
	sigset_t mask;

	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	CHECK(!pthread_sigmask(SIG_BLOCK, &mask, NULL));
	map_mixed(page_at(0));
	*(volatile int *)page_at(0) = 1;
	CHECK(!atexit(say_exit));
	say('a');
}

static void alone(void)
{
	prepare();
	*(volatile int *)page_at(0) = 3;
	pthread_exit(NULL);
}

static void others_follow(void)
{
	pthread_t thread;

	prepare();
	CHECK(!pthread_create(&thread, NULL, be_next, NULL));
	CHECK(!pthread_detach(thread));
	pthread_exit(NULL);
}

static void *cancel(void *first)
{
	CHECK(!pthread_cancel(*(pthread_t *)first));
	return be_next(NULL);
}

static void cancelled(void)
{
	static pthread_t first;
	pthread_t thread;

	first = pthread_self();
	prepare();
	CHECK(!pthread_create(&thread, NULL, cancel, &first));
	CHECK(!pthread_detach(thread));
	for (;;)
		pause();
}

/* A child has only the threads that it makes. */
static void in_fork(void)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid)
		pthread_exit(NULL);
	CHECK_EQUAL(waitpid(pid, &status, 0), pid);
	CHECK_EQUAL(status, 0);
	prepare();
	*(volatile int *)page_at(0) = 3;
	exit(0);
}

/* ---- and the tests ---- */

static pid_t begin_program(const char *test, int output)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv(AS_PROGRAM, "1", 1);
		dup2(output, STDOUT_FILENO);
		execl("/proc/self/exe", "ends", test, tempest_control ? "--control" : NULL, NULL);
		_exit(3);
	}
	close(output);
	return pid;
}

/* All it says until its end, or until patience is. */
static void listen_to(int input, char *said, size_t most)
{
	int64_t end = now_ns() + (tempest_control ? SHORT_MS : PATIENCE_MS * scale()) * 1000000LL;
	size_t length = 0;
	ssize_t bytes = 1;

	while (bytes > 0 && length < most - 1 && now_ns() < end) {
		struct pollfd more = { .fd = input, .events = POLLIN };

		if (poll(&more, 1, 100) <= 0)
			continue;
		bytes = read(input, said + length, most - 1 - length);
		if (bytes > 0)
			length += bytes;
	}
	said[length] = '\0';
	if (bytes)
		failed(__FILE__, __LINE__, "it does not end, and has said \"%s\"", said);
}

static void ends_well(const char *test, const char *expected)
{
	char said[16];
	int status, ends[2];
	pid_t pid;

	CHECK(!pipe2(ends, O_CLOEXEC));
	fflush(stdout);
	pid = begin_program(test, ends[1]);
	listen_to(ends[0], said, sizeof(said));
	CHECK_EQUAL(waitpid(pid, &status, 0), pid);
	if (status || strcmp(said, expected))
		failed(__FILE__, __LINE__, "status %x, \"%s\"", status, said);
}

/* A program if it is executed as one, else the test that it ends. */
static void run_as(const char *test, void (*program)(void), const char *expected)
{
	if (getenv(AS_PROGRAM))
		program();
	else
		ends_well(test, expected);
}

static void first_is_last(void)
{
	run_as("first-is-last", alone, "ax");
}

static void last_ends(void)
{
	run_as("last-ends", others_follow, "abcx");
}

static void first_is_cancelled(void)
{
	run_as("first-is-cancelled", cancelled, "abcx");
}

static void child_ends(void)
{
	run_as("child-ends", in_fork, "ax");
}

const struct test tests[] = {
	{ "first-is-last", first_is_last, CONTROL_NO_LAST, 0, 0 },
	{ "last-ends", last_ends, CONTROL_NO_LAST, 0, 0 },
	{ "first-is-cancelled", first_is_cancelled, CONTROL_NO_LAST, 0, 0 },
	{ "child-ends", child_ends, 0, 0, 0 },
	{ 0 }
};
