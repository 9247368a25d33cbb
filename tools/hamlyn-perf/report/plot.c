// SPDX-License-Identifier: GPL-2.0-only
/* Running gnuplot: a script to its standard input, an SVG from its output. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/machine.h"
#include "system/peer.h"
#include "report/plot.h"

#define PATIENCE_S	60

static int open_output(const char *file, int flags)
{
	int fd = open(file, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);

	return fd < 0 ? fail("cannot write %s: %s", file, strerror(errno)) : fd;
}

int plot_ready(const char *file)
{
	int fd;

	if (!peer_installed("gnuplot"))
		return fail("--plot needs gnuplot, which is not installed (Debian: gnuplot-nox)");
	fd = open_output(file, 0);
	if (fd < 0)
		return -1;
	close(fd);
	return 0;
}

int plot_add(struct plot *plot, const char *system, enum test_kind test, size_t size,
	     double value)
{
	struct plot_point *point;
	uint32_t i;

	for (i = 0; i < plot->n; i++) {
		point = &plot->points[i];
		if (point->test == test && point->size == size &&
		    !strcmp(point->system, system))
			break;
	}
	if (i == PLOT_MAX_POINTS)
		return fail("too many results for one diagram: more than %d",
			    PLOT_MAX_POINTS);
	point = &plot->points[i];
	snprintf(point->system, sizeof(point->system), "%s", system);
	point->test = test;
	point->size = size;
	point->value = value;
	if (i == plot->n)
		plot->n++;
	return 0;
}

static _Noreturn void gnuplot(int script, int output)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(script, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0)
		_exit(126);
	execlp("gnuplot", "gnuplot", "-d", (char *)NULL);
	_exit(127);
}

/* Its exit status, or -1. Bounded, whatever gnuplot does. */
static int reap(pid_t pid)
{
	uint64_t deadline = clock_ns() + PATIENCE_S * NSEC_PER_SEC;
	const struct timespec nap = { .tv_nsec = 10000000 };
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (clock_ns() > deadline) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return fail("gnuplot was not through within %d s", PATIENCE_S);
		}
		nanosleep(&nap, NULL);
	}
	if (WIFEXITED(status) && !WEXITSTATUS(status))
		return 0;
	return fail("gnuplot failed (status %#x); the diagram is not drawn", status);
}

/* The script is shorter than a pipe: writing it never waits for gnuplot. */
static int feed(const struct plot *plot, int output)
{
	void (*before)(int number);
	int ends[2];
	FILE *script;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fail("no pipe: %s", strerror(errno));
	fflush(stdout);
	pid = fork();
	if (!pid)
		gnuplot(ends[0], output);
	close(ends[0]);
	if (pid < 0) {
		close(ends[1]);
		return fail("no new process: %s", strerror(errno));
	}
	fcntl(ends[1], F_SETPIPE_SZ, 1 << 20);
	before = signal(SIGPIPE, SIG_IGN);
	script = fdopen(ends[1], "w");
	if (script) {
		plot_script(script, plot);
		fclose(script);
	} else {
		close(ends[1]);
	}
	signal(SIGPIPE, before);
	return reap(pid);
}

int plot_draw(const struct plot *plot, const char *file)
{
	struct stat stat;
	int output, ret;

	output = open_output(file, O_TRUNC);
	if (output < 0)
		return -1;
	ret = feed(plot, output);
	if (!ret && (fstat(output, &stat) < 0 || (S_ISREG(stat.st_mode) && !stat.st_size)))
		ret = fail("gnuplot wrote nothing to %s", file);
	close(output);
	return ret;
}

int plot_plan(const struct plan *plan, const char *file)
{
	static struct plot plot;
	struct machine machine;
	uint32_t i, s;

	machine_look(&machine);
	snprintf(plot.title, sizeof(plot.title), "%s%s, %s", machine.cpu,
		 machine.virtual ? " (virtual)" : "", machine.kernel);
	for (s = 0; s < plan->nsystems; s++)
		for (i = 0; i < plan->npoints; i++)
			if (plan->results[s][i].valid &&
			    plot_add(&plot, plan->systems[s]->name, plan->points[i].test,
				     plan->points[i].size,
				     plan->results[s][i].median.value) < 0)
				return -1;
	return plot_draw(&plot, file);
}
