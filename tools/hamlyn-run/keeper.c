// SPDX-License-Identifier: GPL-2.0-only
/*
 * Two processes, so that nothing of a job is left whichever of them is killed. The first one is
 * the one that the user sees; it waits. Its child runs the job and sees by the end of a pipe that
 * the first one is gone. If it is killed itself, what it leaves comes to the first one.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "keeper.h"
#include "message.h"
#include "orphans.h"
#include "process.h"

#define KILL_ROUNDS	200	/* what a process forks while it is killed comes in the next one */
#define ROUND_NS	10000000

/**
 * struct keeper - the first process
 * @job: process that runs the job
 * @orphans: what that one leaves behind
 * @signals: what is passed on to it, and SIGCHLD
 * @before: signals that were blocked when we began
 */
struct keeper {
	pid_t job;
	struct orphans orphans;
	sigset_t signals;
	sigset_t before;
};

static void block_signals(struct keeper *keeper)
{
	struct sigaction usual = { .sa_handler = SIG_DFL };

	/* With SIGCHLD ignored there is nothing to wait for */
	sigaction(SIGCHLD, &usual, NULL);
	sigemptyset(&keeper->signals);
	sigaddset(&keeper->signals, SIGCHLD);
	sigaddset(&keeper->signals, SIGINT);
	sigaddset(&keeper->signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &keeper->signals, &keeper->before);
}

static void kill_orphans(struct keeper *keeper)
{
	const struct timespec round = { .tv_nsec = ROUND_NS };
	int i;

	for (i = 0; i < KILL_ROUNDS && orphans_left(&keeper->orphans); i++) {
		orphans_kill(&keeper->orphans);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		nanosleep(&round, NULL);
	}
}

/* Return: whether the job has ended, with its status */
static bool job_ended(struct keeper *keeper, int *status)
{
	pid_t pid;

	/* Others are what was there before, or orphans of a job that has not failed */
	while ((pid = waitpid(-1, status, WNOHANG)) > 0)
		if (pid == keeper->job)
			return true;
	return false;
}

static int keep(struct keeper *keeper)
{
	siginfo_t info;
	int number, status;

	while (!job_ended(keeper, &status)) {
		number = sigwaitinfo(&keeper->signals, &info);
		/* What the terminal sends has come to the job as well */
		if (number > 0 && number != SIGCHLD && info.si_code != SI_KERNEL)
			kill(keeper->job, number);
	}
	if (WIFSIGNALED(status)) {
		say("the job was killed by signal %d (%s)", WTERMSIG(status),
		    strsignal(WTERMSIG(status)));
		kill_orphans(keeper);
	}
	return process_exit_status(status);
}

int keeper_run(const struct options *options,
	       int (*run)(const struct options *options, int keeper_fd))
{
	struct keeper keeper = { 0 };
	int life[2];
	int status;

	if (pipe2(life, O_CLOEXEC) < 0) {
		say("pipe: %s", strerror(errno));
		return 1;
	}
	orphans_init(&keeper.orphans);
	block_signals(&keeper);
	keeper.job = fork();
	if (keeper.job < 0) {
		say("fork: %s", strerror(errno));
		return 1;
	}
	if (!keeper.job) {
		close(life[1]);
		sigprocmask(SIG_SETMASK, &keeper.before, NULL);
		/* exit() and not _exit(): what is to be written is */
		return run(options, life[0]);
	}
	close(life[0]);
	orphans_except(&keeper.orphans, keeper.job);
	status = keep(&keeper);
	orphans_uninit(&keeper.orphans);
	return status;
}
