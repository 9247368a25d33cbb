/* SPDX-License-Identifier: GPL-2.0-only */
/* A job, for what it is made of: its own processes (job.c) and other hosts (hosts/remote.c). */
#ifndef RUN_JOB_STATE_H
#define RUN_JOB_STATE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hosts/bridges.h"
#include "hosts/far.h"
#include "orphans.h"
#include "output.h"
#include "pmi.h"
#include "process.h"

#define NEVER		INT64_MAX

/* Places in job.fds: those of the job, three for each process, two for each other host */
enum { FD_SIGNALS, FD_KEEPER, FD_STDIN, FD_SINKS, FD_PROCESSES = FD_SINKS + 2 };
enum { FD_PMI, FD_OUT, FD_ERR, FDS_EACH };
enum { FD_FROM, FD_TO, FDS_FAR };

/**
 * struct process - one of them
 * @pid: 0 before it starts and after its end, and always on another host
 * @far: that host, or NULL
 * @ended: it has, or never began; only on another host
 * @streams: its lines, with --tag-output or from another host
 */
struct process {
	pid_t pid;
	struct far *far;
	bool ended;
	struct stream streams[2];
};

/**
 * struct job - all of them
 * @fars: other hosts
 * @n_fars: how many
 * @bridges: what joins them
 * @orphans: what they have left behind
 * @fds: of what is to be looked at; its place says what it is, -1 that it is not
 * @polled: those of @fds that there are
 * @stdin_ended: nothing is left of our standard input
 * @alive: how many have not ended
 * @ended: a process that has, or -1
 * @status: to exit with
 * @failed: the first failure has been told, the others are to end
 * @deadline: when --timeout is over, or NEVER
 * @flush_at: when parts of lines from other hosts are written, or NEVER
 * @kill_at: when those that are to end are killed (again), or NEVER
 * @hurried: lines that nobody takes are not waited for
 * @one_place: both sinks write to it
 * @signal_fd: SIGCHLD, SIGINT, SIGTERM
 * @keeper_fd: ends when the process that waits for this one is gone; -1 then
 */
struct job {
	const struct options *options;
	struct surroundings surroundings;
	struct pmi_server pmi;
	struct process *processes;
	struct far *fars;
	int n_fars;
	struct bridges bridges;
	struct orphans orphans;
	struct sink sinks[2];
	struct pollfd *fds;
	struct pollfd *polled;
	bool stdin_ended;
	int alive;
	int ended;
	int status;
	bool failed;
	bool hurried;
	bool one_place;
	int64_t deadline;
	int64_t flush_at;
	int64_t kill_at;
	int signal_fd;
	int keeper_fd;
};

int64_t now_ms(void);

/* The first failure: the others are asked to end. Later ones change nothing. */
__attribute__((format(printf, 3, 4)))
void job_fail(struct job *job, int status, const char *format, ...);

/* As pmi.error says */
void job_fail_pmi(struct job *job);

/* A failure that leaves the others alone with --keep-going */
__attribute__((format(printf, 3, 4)))
void job_fail_alone(struct job *job, int status, const char *format, ...);

void job_cannot_run(struct job *job, int err);

/* Waiting for one that has ended is waiting for ever */
void job_check_barrier(struct job *job);

/* @status: as waitpid() tells it */
void job_end_process(struct job *job, int rank, pid_t pid, int status);

#endif /* RUN_JOB_STATE_H */
