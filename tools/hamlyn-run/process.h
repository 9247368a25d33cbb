/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RUN_PROCESS_H
#define RUN_PROCESS_H

#include <signal.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

#include "options.h"

/**
 * struct surroundings - what hamlyn-run changed for itself and processes get as it was
 * @mask: signals that were blocked
 * @sigpipe: what SIGPIPE did
 * @files: how many descriptors were allowed
 */
struct surroundings {
	sigset_t mask;
	struct sigaction sigpipe;
	struct rlimit files;
};

/* So many for us; the limit that processes inherit is the old one */
void surroundings_allow_files(struct surroundings *surroundings, rlim_t wanted);

/* Return: a descriptor of SIGCHLD, SIGINT and SIGTERM, which are blocked from now on */
int surroundings_take_signals(struct surroundings *surroundings);

/**
 * struct plan - one process that is to be
 * @options: the command line
 * @surroundings: see there
 * @rank: its number
 * @pmi_fd: its end of the socket
 * @in_fd: its standard input if it reads one, or -1: ours
 * @out_fd: its standard output, or -1: ours
 * @err_fd: its standard error, or -1: ours
 */
struct plan {
	const struct options *options;
	const struct surroundings *surroundings;
	int rank;
	int pmi_fd;
	int in_fd;
	int out_fd;
	int err_fd;
};

/*
 * Returns when PROGRAM runs, or cannot. @failed: the errno if it cannot.
 * Return: the process, also of one that failed and is ending; or -1 if there is none.
 */
pid_t process_start(const struct plan *plan, int *failed);

/* What was given to the process is not ours any more */
void plan_close(const struct plan *plan);

/* Status of waitpid() as one that we can exit with */
int process_exit_status(int status);

/* "exited with status 3", "was killed by signal 9 (Killed)" */
void process_describe(int status, char *text, size_t size);

#endif /* RUN_PROCESS_H */
