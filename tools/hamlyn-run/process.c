// SPDX-License-Identifier: GPL-2.0-only
/* One process: what it finds when it begins, and what its end means. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "message.h"
#include "process.h"

/* ---- in the new process ------------------------------------------------- */

static bool set_number(const char *name, int number)
{
	char text[16];

	snprintf(text, sizeof(text), "%d", number);
	return !setenv(name, text, 1);
}

/*
 * If hamlyn-run itself was started by a launcher, that one's variables are for hamlyn-run:
 * a process that followed them would join the wrong program.
 */
static bool set_environment(const struct plan *plan)
{
	const struct options *options = plan->options;

	unsetenv("PMI_PORT");
	unsetenv("PMIX_NAMESPACE");
	unsetenv("PMIX_RANK");
	return set_number("PMI_FD", plan->pmi_fd) && set_number("PMI_RANK", plan->rank) &&
		set_number("PMI_SIZE", options->processes) && set_number("PMI_ID", plan->rank) &&
		(!options->device || !setenv("HAMLYN_DEVICE", options->device, 1));
}

static bool set_descriptors(const struct plan *plan)
{
	int fd;

	fd = plan->in_fd;
	if (plan->rank != plan->options->stdin_rank)
		fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	else if (fd < 0)
		fd = STDIN_FILENO;
	if (fd != STDIN_FILENO && dup2(fd, STDIN_FILENO) < 0)
		return false;
	if (plan->out_fd >= 0 && dup2(plan->out_fd, STDOUT_FILENO) < 0)
		return false;
	if (plan->err_fd >= 0 && dup2(plan->err_fd, STDERR_FILENO) < 0)
		return false;
	/* The only one of ours that survives exec */
	return fcntl(plan->pmi_fd, F_SETFD, 0) == 0;
}

static bool set_surroundings(const struct surroundings *surroundings)
{
	return !setrlimit(RLIMIT_NOFILE, &surroundings->files) &&
		!sigaction(SIGPIPE, &surroundings->sigpipe, NULL) &&
		!sigprocmask(SIG_SETMASK, &surroundings->mask, NULL);
}

/* Other flags stay as they are; a sandbox may allow none of this */
static bool set_personality(const struct options *options)
{
	const unsigned long query = 0xffffffff;
	int now;

	if (!options->same_addresses)
		return true;
	now = personality(query);
	return now >= 0 && personality((unsigned long)now | ADDR_NO_RANDOMIZE) >= 0;
}

__attribute__((noreturn))
static void become(const struct plan *plan, pid_t parent, int report_fd)
{
	char **command = plan->options->command;
	int err;

	/* Nothing is left over when hamlyn-run is killed; it may have been before this call */
	if (!prctl(PR_SET_PDEATHSIG, SIGKILL) && getppid() != parent)
		_exit(1);
	if (set_personality(plan->options) && set_environment(plan) && set_descriptors(plan) &&
	    set_surroundings(plan->surroundings))
		execvp(command[0], command);
	err = errno;
	/* If it cannot be told, our status still says that we failed */
	if (write(report_fd, &err, sizeof(err)) < 0)
		_exit(EXIT_NOT_EXECUTABLE);
	_exit(err == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE);
}

/* ---- in hamlyn-run ------------------------------------------------------ */

void surroundings_allow_files(struct surroundings *surroundings, rlim_t wanted)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &surroundings->files);
	files = surroundings->files;
	if (files.rlim_cur != RLIM_INFINITY && files.rlim_cur < wanted) {
		files.rlim_cur = files.rlim_max < wanted ? files.rlim_max : wanted;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

int surroundings_take_signals(struct surroundings *surroundings)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t ours;
	int fd;

	/* Whoever ignores SIGCHLD cannot wait for processes */
	sigaction(SIGCHLD, &usual, NULL);
	sigaction(SIGPIPE, &ignore, &surroundings->sigpipe);
	sigemptyset(&ours);
	sigaddset(&ours, SIGCHLD);
	sigaddset(&ours, SIGINT);
	sigaddset(&ours, SIGTERM);
	sigprocmask(SIG_BLOCK, &ours, &surroundings->mask);
	fd = signalfd(-1, &ours, SFD_CLOEXEC | SFD_NONBLOCK);
	if (fd < 0) {
		say("signalfd: %s", strerror(errno));
		exit(1);
	}
	return fd;
}

/* exec closes the other end: 0, or what is wrong */
static int hear(int fd)
{
	int err = 0;
	ssize_t n;

	do
		n = read(fd, &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	return n == sizeof(err) ? err : 0;
}

pid_t process_start(const struct plan *plan, int *failed)
{
	pid_t parent = getpid(), pid;
	int report[2];

	if (pipe2(report, O_CLOEXEC) < 0) {
		*failed = errno;
		return -1;
	}
	pid = fork();
	*failed = errno;
	if (!pid)
		become(plan, parent, report[1]);
	close(report[1]);
	if (pid > 0)
		*failed = hear(report[0]);
	close(report[0]);
	return pid;
}

void plan_close(const struct plan *plan)
{
	const int fds[] = { plan->pmi_fd, plan->in_fd, plan->out_fd, plan->err_fd };
	size_t i;

	for (i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int process_exit_status(int status)
{
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

void process_describe(int status, char *text, size_t size)
{
	if (WIFSIGNALED(status))
		snprintf(text, size, "was killed by signal %d (%s)%s", WTERMSIG(status),
			 strsignal(WTERMSIG(status)),
			 WCOREDUMP(status) ? " and dumped core" : "");
	else
		snprintf(text, size, "exited with status %d", WEXITSTATUS(status));
}
