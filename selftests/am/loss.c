// SPDX-License-Identifier: GPL-2.0-only
/*
 * Processes that are stopped, and that die. loss WHAT, for two or more processes, of
 * which 1 is lost, under hamlyn-run --keep-going:
 *   stopped   messages wait for a stopped process, and each is handled once
 *   flooded   as many as may be under way to a stopped process, from all others, and none is lost
 *   silent    a stopped process is given up (HAMLYN_AM_GIVE_UP_MS), by name
 *   sleeping  the same by one that mostly sleeps, in at most 4 s (times HAMLYN_TEST_SCALE)
 *   killed    a killed process is noticed long before that
 *   barrier   one process has given up 1, which goes on: all barriers fail
 *   stuck     1 is stopped before a barrier: it fails in all others
 *   leaving   1 dies when all are about to leave
 *   deaf      1 is killed, and the launcher answers nothing any more: 0 leaves all the same
 *   null      1 is asked for memory at NULL, and dies of that: it is not given up
 *   unwatched 3 to 10 are killed, which 0 does not watch: 1 can be reached all the time
 */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gam.h"

static volatile long count;
static volatile long pid;
static volatile int told;
static volatile int wanted;

static void fail(const char *what)
{
	printf("not ok - %s: %s\n", what, am_error());
	exit(1);
}

/* What to wait for at most, where all is as slow as HAMLYN_TEST_SCALE says. */
static double patience(double seconds)
{
	const char *scale = getenv("HAMLYN_TEST_SCALE");

	return scale && atoi(scale) > 1 ? seconds * atoi(scale) : seconds;
}

static void one(vnn_t source)
{
	(void)source;
	count++;
}

static void tell(vnn_t source)
{
	(void)source;
	told++;
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

static void meets(void)
{
	lam_sync_all();
	lam_sync_all();
	exit(am_disable() != 0);
}

/* ---- as many as may be under way, from all ---- */

#define DEPTH	16	/* $HAMLYN_AM_DEPTH is to say the same */

static void send_all_that_may_be(void)
{
	int i;

	for (i = 0; i < DEPTH; i++)
		if (am_request_0(1, one))
			fail("a message for a stopped process");
}

static void floods(void)
{
	am_wait_for(told);
	send_all_that_may_be();
	am_request_0(0, tell);
	meets();
}

/* HAMLYN_AM_TIMEOUT_US is so long that what was lost would not come again. */
static void is_flooded(void)
{
	struct am_stats s;
	int p;

	stop();
	for (p = 2; p < am_procs(); p++)
		am_request_0(p, tell);
	send_all_that_may_be();
	am_wait_for(told == am_procs() - 2);
	kill((pid_t)pid, SIGCONT);
	lam_sync_all();
	am_request_0(1, get_count);
	lam_sync_all();
	am_get_stats(&s);
	if (count != DEPTH * (am_procs() - 1) || s.retransmissions) {
		printf("not ok - %ld of %d handled, %lu sent again\n", count,
		       DEPTH * (am_procs() - 1), s.retransmissions);
		exit(1);
	}
	printf("ok - a stopped process has room for all that can be sent to it\n");
	exit(am_disable() != 0);
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

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void sleeps(void)
{
	double begun;
	int rc;

	stop();
	begun = now();
	rc = am_request_0(1, one);
	while (rc >= 0 && now() - begun < patience(60)) {
		am_sleep(1);
		rc = am_poll();
	}
	kill((pid_t)pid, SIGKILL);
	if (rc != -ETIMEDOUT || now() - begun > patience(10)) {
		printf("not ok - after %.1f s: %d\n", now() - begun, rc);
		exit(1);
	}
	printf("ok - a silent process is given up by one that sleeps\n");
	exit(am_disable() != -ETIMEDOUT);
}

/* ---- barriers that fail ---- */

static void may_go(vnn_t source, long all)
{
	(void)source;
	wanted = !all;
}

static void asks_to_go(vnn_t source)
{
	am_reply_1(source, may_go, told >= wanted);
}

/* For who has lost nobody, too. */
static void barriers_fail(void)
{
	if (lam_sync_all() != -ETIMEDOUT || !strstr(am_error(), "process 1"))
		fail("a barrier fails by the name of who is lost");
	if (lam_sync_all() != -ETIMEDOUT)
		fail("and so do all that follow");
}

static void fails_too(void)
{
	barriers_fail();
	if (am_request_0(0, tell))
		fail("process 0 can be reached");
	/* Who leaves is lost to those who have not failed yet. */
	for (wanted = 1; wanted && !am_request_0(0, asks_to_go);)
		nap_and_poll(10);
	if (am_disable() != -ETIMEDOUT)
		fail("am_disable() tells, too");
	exit(0);
}

static void others_fail(int others)
{
	double begun = now();

	wanted = others;
	while (told < others && now() - begun < patience(60))
		am_poll();
	if (told < others)
		fail("the others have heard of it");
	nap_and_poll(100);
}

static void goes_on(void)
{
	int rc = 0;
	int p;

	wanted = INT_MAX;
	stop();
	while (!rc)
		rc = am_request_0(1, one);
	kill((pid_t)pid, SIGCONT);
	for (p = 2; p < am_procs(); p++)
		am_request_0(p, tell);
	barriers_fail();
	others_fail(am_procs() - 1);
	printf("ok - who is given up, and who has given up nobody, hear of it in a barrier\n");
	exit(am_disable() != -ETIMEDOUT);
}

static void waits_in_barrier(void)
{
	wanted = INT_MAX;
	stop();
	barriers_fail();
	others_fail(am_procs() - 2);
	kill((pid_t)pid, SIGKILL);
	printf("ok - who waits for a silent process in a barrier gives it up\n");
	exit(am_disable() != -ETIMEDOUT);
}

/* By who sends nothing to it, too. */
static void is_killed(void)
{
	double begun = now();
	int rc = 0;

	kill((pid_t)pid, SIGKILL);
	while (rc >= 0 && now() - begun < 20)
		rc = am_poll();
	if (rc != -ECONNRESET || !strstr(am_error(), "process 1"))
		fail("a killed process is noticed by name");
	if (am_request_0(1, one) != -ECONNRESET)
		fail("and stays so");
	if (lam_sync_all() != -ECONNRESET)
		fail("lam_sync_all() tells");
	printf("ok - a killed process is noticed: %s\n", am_error());
	if (am_disable() != -ECONNRESET)
		fail("am_disable() tells, too");
	exit(0);
}

/* ---- memory that is not there ---- */

static void got(vnn_t source, void *data, int nbytes, void *arg)
{
	(void)source;
	(void)data;
	(void)nbytes;
	(void)arg;
	count++;
}

static void asks_for_null(void)
{
	static char here[100];
	double begun = now();
	int rc = am_get(1, NULL, here, sizeof(here), got, NULL);

	while (rc >= 0 && !count && now() - begun < patience(20))
		rc = am_poll();
	if (rc != -ECONNRESET || count)
		fail("who has no memory there dies");
	printf("ok - who is asked for memory at NULL dies: %s\n", am_error());
	exit(am_disable() != -ECONNRESET);
}

/* ---- the end ---- */

/* From now on nobody hears what is said to the launcher, nor answers. */
static void lose_launcher(void)
{
	const char *launcher = getenv("PMI_FD");
	int nobody[2];

	if (!launcher || socketpair(AF_UNIX, SOCK_STREAM, 0, nobody) ||
	    dup2(nobody[0], atoi(launcher)) < 0)
		fail("this is for hamlyn-run");
}

/* Its launcher never hears that it has come, and the others wait for it until it dies. */
static void dies_leaving(void)
{
	lose_launcher();
	alarm(1);
	am_disable();
	fail("a process that the launcher does not know of leaves");
}

/* That another one has left because of it may be what is seen first. */
static void leaves(void)
{
	if (am_disable() != -ECONNRESET || !strstr(am_error(), "is gone"))
		fail("who dies at the end is noticed");
	printf("ok - who dies when all are about to leave is noticed: %s\n", am_error());
	exit(0);
}

static void leaves_the_deaf(void)
{
	double begun;
	int rc;

	kill((pid_t)pid, SIGKILL);
	lose_launcher();
	begun = now();
	rc = am_disable();
	if (rc != -ECONNRESET)
		fail("am_disable() tells of the loss, not of the launcher");
	/* Without a loss it would wait 60 s */
	if (now() - begun > 20) {
		printf("not ok - a launcher that is deaf was waited for %.1f s\n", now() - begun);
		exit(1);
	}
	printf("ok - a launcher that is deaf holds up nobody after a loss: %s\n", am_error());
	exit(0);
}

/* ---- so many that not each watches all ---- */

#define FIRST_DEAD	3
#define DEAD		8
#define UNTOLD_S	10.0	/* instead of 30 */
#define HELD_BACK_S	5.0	/* a round trip; those of who guesses keys take more */

static void pong(vnn_t source, long value)
{
	(void)source;
	count = value;
}

static void ping(vnn_t source, long value)
{
	am_reply_1(source, pong, value);
}

/* How long it took. What it has found out about others is counted in @told. */
static double round_trip(long number)
{
	double begun = now();

	if (am_request_1(1, ping, number))
		fail("a live process is not lost");
	while (count != number && now() - begun < 2 * HELD_BACK_S)
		told += am_poll() == -ECONNRESET;
	return now() - begun;
}

static void meets_the_dead(void)
{
	double worst = 0;
	double begun;
	long n = 0;
	int i;

	/* Others watch them, and see to it that their slots are gone. */
	nap_and_poll(1000);
	for (i = 0; i < 4 * DEAD; i++)
		am_request_0(FIRST_DEAD + i % DEAD, one);
	begun = now();
	count = 0;
	while (told < DEAD && worst < HELD_BACK_S && now() - begun < UNTOLD_S) {
		double took = round_trip(++n);

		worst = took > worst ? took : worst;
		usleep(1000);
	}
	if (told == DEAD && worst < HELD_BACK_S)
		printf("ok - who is dead and unwatched is noticed, and holds nobody back\n");
	else
		printf("not ok - %d of %d told in %.1f s, the longest round trip took %.1f s\n",
		       told, DEAD, now() - begun, worst);
	for (i = 1; i < am_procs(); i++)
		am_request_0(i, tell);
	exit(am_disable() != -ECONNRESET);
}

static void serves_until_told(void)
{
	int me = am_my_proc();

	if (me >= FIRST_DEAD && me < FIRST_DEAD + DEAD)
		kill(getpid(), SIGKILL);
	while (!told)
		am_sleep(1);
	am_disable();
	exit(0);
}

/* ---- who does what ---- */

static void serves(void)
{
	for (;;)
		am_poll();
}

/* Until it is told of a loss, too. */
static void serves_asleep(void)
{
	do
		am_sleep(1);
	while (am_poll() >= 0);
	am_disable();
	exit(0);
}

static void is_told(void)
{
	am_wait_for(told);
	told = 0;
	fails_too();
}

static const struct what {
	const char *name;
	int procs;		/* at least */
	void (*zero)(void);
	void (*one)(void);
	void (*others)(void);
} cases[] = {
	{ "stopped", 2, is_stopped_meanwhile, meets, meets },
	{ "flooded", 3, is_flooded, meets, floods },
	{ "silent", 2, says_nothing, serves, serves_asleep },
	{ "sleeping", 2, sleeps, serves, serves_asleep },
	{ "killed", 2, is_killed, serves, serves_asleep },
	{ "barrier", 2, goes_on, fails_too, is_told },
	{ "stuck", 3, waits_in_barrier, serves, fails_too },
	{ "leaving", 2, leaves, dies_leaving, leaves },
	{ "deaf", 2, leaves_the_deaf, serves, serves_asleep },
	{ "null", 2, asks_for_null, serves, serves_asleep },
	{ "unwatched", 66, meets_the_dead, serves_until_told, serves_until_told },
	{ NULL, 0, NULL, NULL, NULL },
};

int main(int argc, char **argv)
{
	const struct what *what = cases;

	/* Hangs are what it is about. */
	alarm((unsigned int)patience(100));
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (am_enable())
		fail("am_enable");
	while (what->name && argc == 2 && strcmp(argv[1], what->name))
		what++;
	if (argc != 2 || !what->name || am_procs() < what->procs) {
		fprintf(stderr, "usage: hamlyn-run --keep-going -n N loss WHAT\n"
			"WHAT: stopped, silent, sleeping, killed, leaving, deaf, null, barrier; "
			"stuck and flooded, with an N of 3 and more; unwatched, with 66\n");
		return 2;
	}
	if (am_my_proc())
		(am_my_proc() == 1 ? what->one : what->others)();
	am_request_0(1, get_pid);
	am_wait_for(pid);
	what->zero();
	return 1;
}
