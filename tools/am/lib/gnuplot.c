// SPDX-License-Identifier: GPL-2.0-only
/* Running gnuplot: a script to its standard input, an SVG from its output. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gnuplot.h"
#include "world.h"

#define PATIENCE_TICKS	6000		/* a minute */
#define TICK_NS		10000000
#define SCRIPT_BYTES	(1 << 20)

static bool installed(const char *program)
{
	const char *at = getenv("PATH"), *end;
	char path[4096];

	for (; at && *at; at = *end ? end + 1 : end) {
		end = strchrnul(at, ':');
		snprintf(path, sizeof(path), "%.*s/%s", (int)(end - at), at, program);
		if (!access(path, X_OK))
			return true;
	}
	return false;
}

static int open_output(const char *file, int flags)
{
	return open(file, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0666);
}

const char *gnuplot_refusal(const char *file)
{
	int fd;

	if (!installed("gnuplot"))
		return "gnuplot is not installed (Debian: gnuplot-nox)";
	fd = open_output(file, 0);
	if (fd < 0)
		return strerror(errno);
	close(fd);
	return NULL;
}

static _Noreturn void run(int script, int output)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(script, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0)
		_exit(126);
	execlp("gnuplot", "gnuplot", "-d", (char *)NULL);
	_exit(127);
}

/* Polls meanwhile: the other processes may need this one. */
static void reap(pid_t pid)
{
	const struct timespec nap = { .tv_nsec = TICK_NS };
	int status, ticks;

	for (ticks = 0; waitpid(pid, &status, WNOHANG) == 0; ticks++) {
		if (ticks == PATIENCE_TICKS) {
			kill(pid, SIGKILL);
			die("gnuplot was not through within a minute");
		}
		world_poll();
		nanosleep(&nap, NULL);
	}
	if (!WIFEXITED(status) || WEXITSTATUS(status))
		die("gnuplot failed (status %#x): the diagram is not drawn", status);
}

/* The script is shorter than the pipe: writing it never waits for gnuplot. */
static void feed(int output, void (*script)(FILE *to, const void *arg), const void *arg)
{
	int ends[2];
	FILE *to;
	pid_t pid;

	signal(SIGPIPE, SIG_IGN);
	if (pipe2(ends, O_CLOEXEC) < 0)
		die("no pipe: %s", strerror(errno));
	fcntl(ends[1], F_SETPIPE_SZ, SCRIPT_BYTES);
	fflush(stdout);
	pid = fork();
	if (pid < 0)
		die("no new process: %s", strerror(errno));
	if (!pid)
		run(ends[0], output);
	close(ends[0]);
	to = fdopen(ends[1], "w");
	if (!to)
		die("no pipe: %s", strerror(errno));
	script(to, arg);
	fclose(to);
	reap(pid);
}

void gnuplot_draw(const char *file, void (*script)(FILE *to, const void *arg),
		  const void *arg)
{
	int output = open_output(file, O_TRUNC);
	struct stat stat;

	if (output < 0)
		die("cannot write %s: %s", file, strerror(errno));
	feed(output, script, arg);
	if (fstat(output, &stat) < 0 || (S_ISREG(stat.st_mode) && !stat.st_size))
		die("gnuplot wrote nothing to %s", file);
	close(output);
}
