// SPDX-License-Identifier: MIT
/*
 * A process ends as by exit(0) when its last thread does, but the library's threads never end.
 * So once the program's first thread has ended, and not the process, a thread looks whether
 * there are others than these.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/control.h"
#include "base/error.h"
#include "base/lock.h"
#include "base/quiet.h"
#include "memory/segment.h"
#include "thread/last.h"
#include "thread/protocol.h"

#define LOOK_NS	10000000

static pthread_key_t at_end;
static unsigned long own;	/* threads of the library's */
static sigset_t mask;		/* of the first thread at its end */

/* The kernel's count: what a list tells may be of different times. 0 if it does not tell. */
static unsigned long count_threads(void)
{
	struct stat tasks;

	/* A folder for each thread, and two more */
	return stat("/proc/self/task", &tasks) || tasks.st_nlink < 2 ? 0 : tasks.st_nlink - 2;
}

/* It may still run other destructors. It is a zombie then for as long as there are others. */
static bool first_has_ended(void)
{
	char text[256] = "";
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	const char *name_end;

	if (fd < 0)
		return false;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	name_end = strrchr(text, ')');
	return name_end && !strncmp(name_end, ") Z", 3);
}

/* The zombie, and this thread */
static bool none_is_left(void)
{
	return count_threads() == own + 2 && first_has_ended();
}

static void *look(void *unused)
{
	(void)unused;
	while (!none_is_left())
		tempest_nap(LOOK_NS);
	/* The program's handlers run here */
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
	exit(EXIT_SUCCESS);
}

static void start_looking(void *unused)
{
	pthread_t thread;
	int error;

	(void)unused;
	/* The other threads of a child are its own */
	if (tempest_forked || CONTROL(CONTROL_NO_LAST))
		return;
	tempest_protocol_block_signals(&mask);
	error = pthread_create(&thread, NULL, look, NULL);
	if (error)
		tempest_warn("the program's last thread will not end it: %s", strerror(error));
	else
		pthread_detach(thread);
	pthread_sigmask(SIG_SETMASK, &mask, NULL);
}

void tempest_last_begin(void)
{
	own = count_threads();
}

void tempest_last_start(void)
{
	unsigned long now = count_threads();

	/* Where /proc is not to be had such a program does not end */
	if (!own || now < own)
		return;
	own = now - own;
	if (pthread_key_create(&at_end, start_looking) || pthread_setspecific(at_end, &own))
		tempest_refuse("no memory");
}
