// SPDX-License-Identifier: GPL-2.0-only
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "load/meeting.h"
#include "system/bus.h"

/* The two processors that the two processes have, and no others. */
static void pin(const struct options *options)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET((size_t)options->cpus[0], &cpus);
	CPU_SET((size_t)options->cpus[1], &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static void run(const struct options *options, pid_t parent, const char *listen, int said)
{
	char print[32];
	int null;

	snprintf(print, sizeof(print), "--print-address=%d", said);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	pin(options);
	/* It grumbles at limits that only root may raise, and works. */
	null = open("/dev/null", O_WRONLY);
	if (null >= 0)
		dup2(null, STDERR_FILENO);
	execlp(BUS_PROGRAM, BUS_PROGRAM, "--session", "--nofork", "--nopidfile", "--nosyslog",
	       listen, print, NULL);
	_exit(127);
}

/* It says where it is when one can connect. */
static int hear(struct bus *bus, int said)
{
	FILE *file = fdopen(said, "r");
	char *line = file ? fgets(bus->address, sizeof(bus->address), file) : NULL;

	if (file)
		fclose(file);
	else
		close(said);
	if (!line)
		return fail("%s did not start", BUS_PROGRAM);
	bus->address[strcspn(bus->address, "\n")] = 0;
	return 0;
}

static int start(struct bus *bus, const struct options *options)
{
	struct meeting here;
	pid_t self = getpid();
	int said[2];

	if (meeting_make(&here, "--address=unix:abstract=") < 0)
		return -1;
	if (pipe(said) < 0)
		return fail("no pipe: %s", strerror(errno));
	bus->daemon = fork();
	if (!bus->daemon) {
		close(said[0]);
		run(options, self, here.address, said[1]);
	}
	close(said[1]);
	if (bus->daemon < 0) {
		close(said[0]);
		return fail("no new process: %s", strerror(errno));
	}
	return hear(bus, said[0]);
}

struct bus *bus_start(const struct options *options)
{
	struct bus *bus = calloc(1, sizeof(*bus));

	if (!bus) {
		fail("out of memory");
		return NULL;
	}
	if (start(bus, options) < 0) {
		bus_stop(bus);
		return NULL;
	}
	return bus;
}

void bus_stop(struct bus *bus)
{
	if (bus->daemon > 0) {
		kill(bus->daemon, SIGKILL);
		while (waitpid(bus->daemon, NULL, 0) < 0 && errno == EINTR)
			;
	}
	free(bus);
}
