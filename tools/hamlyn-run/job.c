// SPDX-License-Identifier: GPL-2.0-only
/*
 * All processes, in one loop that blocks in poll() only. The first failure decides: the
 * others are asked to end, and killed if they do not.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hosts/remote.h"
#include "job.h"
#include "job_state.h"
#include "message.h"
#include "watch.h"

#define GRACE_MS	2000	/* from SIGTERM to SIGKILL */

int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- ending ------------------------------------------------------------- */

/* A process that has not been waited for keeps its number: no other is met */
static void signal_all(struct job *job, int number)
{
	int i;

	for (i = 0; i < job->options->processes; i++)
		if (job->processes[i].pid)
			kill(job->processes[i].pid, number);
}

void job_fail(struct job *job, int status, const char *format, ...)
{
	char text[512];
	va_list args;

	if (job->failed)
		return;
	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	/* First, for it may take a while to say so */
	job->failed = true;
	/* With --keep-going another may have failed before */
	if (!job->status)
		job->status = status;
	job->kill_at = now_ms() + GRACE_MS;
	signal_all(job, SIGTERM);
	/* Those that are stopped would not see it */
	signal_all(job, SIGCONT);
	orphans_ask(&job->orphans);
	remote_order(job, FRAME_END, 0);
	say("%s%s", text, job->alive ? "; ending the others" : "");
}

void job_fail_pmi(struct job *job)
{
	job_fail(job, job->pmi.status, "%s", job->pmi.error);
}

void job_fail_alone(struct job *job, int status, const char *format, ...)
{
	char text[512];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	if (!job->options->keep_going) {
		job_fail(job, status, "%s", text);
		return;
	}
	say("%s", text);
	if (!job->status)
		job->status = status;
}

void job_check_barrier(struct job *job)
{
	int first;

	if (job->ended < 0 || !pmi_waiting(&job->pmi, &first))
		return;
	/* With --keep-going it was told, unless who has ended took leave */
	if (!job->status)
		job_fail_alone(job, 1, "process %d waits for all, and process %d has ended", first,
			       job->ended);
	if (job->options->keep_going && pmi_refuse(&job->pmi) < 0)
		job_fail_pmi(job);
}

/* "process 1 (pid 2)", "process 3 (pid 4 on b)" */
static void describe(const struct job *job, int rank, pid_t pid, char *text, size_t size)
{
	char place[PLACE_BYTES];

	remote_place(job, rank, place);
	snprintf(text, size, "process %d (pid %ld%s)", rank, (long)pid, place);
}

void job_end_process(struct job *job, int rank, pid_t pid, int status)
{
	char who[PLACE_BYTES + 64], text[128];

	/* Not to be signalled any more: the number may be another process's by now */
	job->processes[rank].pid = 0;
	job->processes[rank].ended = true;
	describe(job, rank, pid, who, sizeof(who));
	process_describe(status, text, sizeof(text));
	if (job->options->verbose)
		say("%s %s", who, text);
	job->alive--;
	job->ended = rank;
	if (pmi_detach(&job->pmi, rank) < 0)
		job_fail_pmi(job);
	if (status)
		job_fail_alone(job, process_exit_status(status), "%s %s", who, text);
	else if (job->pmi.clients[rank].state == PMI_JOINED)
		job_fail_alone(job, 1, "%s ended without taking leave of the others", who);
	job_check_barrier(job);
}

static void reap(struct job *job)
{
	int status, i;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		orphans_forget(&job->orphans, pid);
		for (i = 0; i < job->options->processes; i++)
			if (job->processes[i].pid == pid) {
				job_end_process(job, i, pid, status);
				break;
			}
		remote_reaped(job, pid);
	}
	/* It may have left us what it had started */
	if (job->failed)
		orphans_ask(&job->orphans);
}

/* ---- starting ----------------------------------------------------------- */

static bool open_stream(struct job *job, int rank, int which, int *write_fd)
{
	struct stream *stream = &job->processes[rank].streams[which];
	int fds[2];

	if (!job->options->tag_output)
		return true;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return false;
	fcntl(fds[0], F_SETFL, O_NONBLOCK);
	stream->fd = fds[0];
	*write_fd = fds[1];
	return true;
}

static bool open_pmi(struct job *job, int rank, int *client_fd)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return false;
	pmi_attach(&job->pmi, rank, fds[0]);
	*client_fd = fds[1];
	return true;
}

void job_cannot_run(struct job *job, int err)
{
	job_fail(job, err == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE,
		 "\"%.200s\" cannot be run: %s", job->options->command[0], strerror(err));
}

static void start(struct job *job, int rank)
{
	struct plan plan = {
		.options = job->options, .surroundings = &job->surroundings, .rank = rank,
		.pmi_fd = -1, .in_fd = -1, .out_fd = -1, .err_fd = -1,
	};
	int err = 0;
	pid_t pid = -1;

	if (open_pmi(job, rank, &plan.pmi_fd) && open_stream(job, rank, 0, &plan.out_fd) &&
	    open_stream(job, rank, 1, &plan.err_fd))
		pid = process_start(&plan, &err);
	else
		err = errno;
	plan_close(&plan);
	if (pid < 0) {
		job_fail(job, 1, "process %d cannot be started: %s", rank, strerror(err));
		return;
	}
	/* One that cannot be run is about to end by itself, and is waited for like all */
	job->processes[rank].pid = pid;
	orphans_except(&job->orphans, pid);
	job->alive++;
	if (err)
		job_cannot_run(job, err);
	else if (job->options->verbose)
		say("process %d has pid %ld", rank, (long)pid);
}

/*
 * Some have not seen what the terminal sends, and the others may wait for those that never
 * start: this ends them, also those that heed no SIGINT. A second signal is left for the loop.
 */
static void check_interrupt(struct job *job, int rank)
{
	const struct timespec at_once = { 0 };
	siginfo_t info;
	sigset_t asked;
	int number;

	sigemptyset(&asked);
	sigaddset(&asked, SIGINT);
	sigaddset(&asked, SIGTERM);
	number = sigtimedwait(&asked, &info, &at_once);
	if (number <= 0)
		return;
	/* All are there, and none has it: as pass_on() */
	if (rank == job->options->processes - 1 && info.si_code != SI_KERNEL)
		signal_all(job, number);
	else
		job_fail(job, 128 + number, "signal %d (%s) came while process %d was started",
			 number, strsignal(number), rank);
}

/* Other hosts first: they take longer, and nobody waits for them here */
static void start_all(struct job *job)
{
	int i;

	remote_launch(job);
	for (i = 0; i < job->options->processes && !job->failed; i++) {
		if (!job->processes[i].far)
			start(job, i);
		if (!job->failed)
			check_interrupt(job, i);
	}
}

/* ---- the loop ----------------------------------------------------------- */

/* The terminal has signalled those of its foreground group, to which we belong, already */
static void pass_on(struct job *job, const struct signalfd_siginfo *info)
{
	int i;
	pid_t pid;

	for (i = 0; i < job->options->processes; i++) {
		pid = job->processes[i].pid;
		if (pid && (info->ssi_code != SI_KERNEL || getpgid(pid) != getpgrp()))
			kill(pid, (int)info->ssi_signo);
	}
	if (remote_is_starting(job))
		job_fail(job, 128 + (int)info->ssi_signo, "signal %d (%s) came while processes "
			 "were started on other hosts", (int)info->ssi_signo,
			 strsignal((int)info->ssi_signo));
	else
		remote_order(job, FRAME_SIGNAL, (int)info->ssi_signo);
	/* Only lines are left, and who asks does not want to wait for who takes them */
	if (!job->alive && !job->failed)
		job->status = 128 + (int)info->ssi_signo;
	/* Who asks again while processes are ended is in a hurry */
	if (job->failed || !job->alive) {
		job->hurried = true;
		job->kill_at = now_ms();
	}
}

static void take_signals(struct job *job)
{
	struct signalfd_siginfo info;

	while (read(job->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			pass_on(job, &info);
	reap(job);
}

/* Nobody waits for the job any more, nor for its lines */
static void take_end_of_keeper(struct job *job)
{
	job->keeper_fd = -1;
	job->hurried = true;
	job_fail(job, 128 + SIGKILL, "hamlyn-run was killed");
}

static bool is_unwritten(const struct job *job)
{
	return sink_pending(&job->sinks[0]) || sink_pending(&job->sinks[1]);
}

/* Of processes that have ended: what the pipes hold as well */
static size_t bytes_left(const struct job *job)
{
	size_t n = sink_pending(&job->sinks[0]) + sink_pending(&job->sinks[1]);
	int i;

	for (i = 0; i < job->options->processes; i++)
		n += stream_pending(&job->processes[i].streams[0]) +
			stream_pending(&job->processes[i].streams[1]);
	return n;
}

/* The pipes and links too, or the next megabyte would be waited for as long */
static void drop_all(struct job *job)
{
	int i, which;

	remote_leave(job);
	for (which = 0; which < 2; which++) {
		sink_drop(&job->sinks[which]);
		for (i = 0; i < job->options->processes; i++)
			stream_drop(&job->processes[i].streams[which]);
	}
}

/* Who has ended in time has not failed, but who takes the lines has no more time either */
static void time_is_over(struct job *job)
{
	size_t left;

	job->deadline = NEVER;
	job->hurried = true;
	if (job->failed)
		return;
	if (job->alive) {
		/* Whatever went wrong before: this is what --timeout is for */
		job->status = EXIT_TIMEOUT;
		job_fail(job, EXIT_TIMEOUT, "the processes took more than %d s",
			 job->options->timeout_s);
		return;
	}
	job->kill_at = now_ms() + GRACE_MS;
	left = bytes_left(job);
	if (left)
		say("the processes have ended, and %zu bytes of theirs wait for who takes them, "
		    "%d s more", left, GRACE_MS / 1000);
}

static void take_time(struct job *job)
{
	int64_t now = now_ms();

	if (now >= job->flush_at)
		remote_flush_parts(job);
	if (now >= job->deadline)
		time_is_over(job);
	if (now >= job->kill_at) {
		job->kill_at = now + GRACE_MS;
		signal_all(job, SIGKILL);
		if (job->failed) {
			orphans_kill(&job->orphans);
			remote_order(job, FRAME_KILL, 0);
		}
		if (job->hurried && !job->alive)
			drop_all(job);
	}
}

static int until_next(const struct job *job)
{
	int64_t next = remote_next(job), left;

	if (job->deadline < next)
		next = job->deadline;
	if (job->kill_at < next)
		next = job->kill_at;
	if (next == NEVER)
		return -1;
	left = next - now_ms();
	if (left <= 0)
		return 0;
	return left < 1000000 ? (int)left : 1000000;
}

/* Not into the other one's line. That goes on: what waits there are whole lines. */
static bool may_write(const struct job *job, int which)
{
	return sink_pending(&job->sinks[which]) &&
		!(job->one_place && job->sinks[!which].in_line);
}

static nfds_t watch_all(struct job *job)
{
	struct pollfd *entry = job->fds + FD_PROCESSES;
	int i, which;

	watch(&job->fds[FD_SIGNALS], job->signal_fd, POLLIN);
	watch(&job->fds[FD_KEEPER], job->keeper_fd, POLLIN);
	watch(&job->fds[FD_STDIN], remote_reader(job) ? STDIN_FILENO : -1, POLLIN);
	for (i = 0; i < 2; i++)
		watch(&job->fds[FD_SINKS + i], may_write(job, i) ? job->sinks[i].fd : -1,
		      POLLOUT);
	for (i = 0; i < job->options->processes; i++, entry += FDS_EACH) {
		watch(&entry[FD_PMI], job->pmi.clients[i].fd, POLLIN);
		for (which = 0; which < 2; which++) {
			struct stream *stream = &job->processes[i].streams[which];

			watch(&entry[FD_OUT + which], stream_wants(stream) ? stream->fd : -1,
			      POLLIN);
		}
	}
	entry = remote_watch(job, entry);
	return (nfds_t)(entry - job->fds);
}

static void write_sink(struct job *job, struct sink *sink)
{
	int err = sink_write(sink);

	if (!err)
		return;
	sink_drop(sink);
	job_fail(job, 1, "standard %s cannot be written: %s", sink_name(sink), strerror(err));
}

static void serve_process(struct job *job, int rank, const struct pollfd *entry)
{
	struct process *process = &job->processes[rank];

	/* Before its lines: an error message comes before what it is about */
	if (entry[FD_OUT].revents)
		stream_read(&process->streams[0]);
	if (entry[FD_ERR].revents)
		stream_read(&process->streams[1]);
	if (entry[FD_PMI].revents && pmi_serve(&job->pmi, rank) < 0)
		job_fail_pmi(job);
}

static void serve_all(struct job *job)
{
	int i;

	for (i = 0; i < 2; i++)
		if (job->fds[FD_SINKS + i].revents && may_write(job, i))
			write_sink(job, &job->sinks[i]);
	for (i = 0; i < job->options->processes; i++)
		serve_process(job, i, &job->fds[FD_PROCESSES + i * FDS_EACH]);
	if (job->fds[FD_STDIN].revents)
		remote_feed(job);
	remote_serve(job, &job->fds[FD_PROCESSES + job->options->processes * FDS_EACH]);
	job_check_barrier(job);
	if (job->fds[FD_SIGNALS].revents)
		take_signals(job);
	if (job->fds[FD_KEEPER].revents)
		take_end_of_keeper(job);
	take_time(job);
}

/* More entries than there may be descriptors are an error, even if most are -1 */
static int poll_all(struct job *job, nfds_t places)
{
	nfds_t i, n = 0;
	int ret;

	for (i = 0; i < places; i++)
		if (job->fds[i].fd >= 0)
			job->polled[n++] = job->fds[i];
	ret = poll(job->polled, n, until_next(job));
	for (i = 0, n = 0; ret > 0 && i < places; i++)
		if (job->fds[i].fd >= 0)
			job->fds[i].revents = job->polled[n++].revents;
	return ret;
}

static void turn(struct job *job)
{
	nfds_t places = watch_all(job);

	if (poll_all(job, places) < 0) {
		if (errno == EINTR)
			return;
		/* Not to be gone on from: the processes end with us */
		say("poll: %s", strerror(errno));
		exit(1);
	}
	serve_all(job);
}

/* What a process that has ended wrote; others may still hold its pipe, nobody waits for them */
static void drain(struct job *job)
{
	struct stream *stream;
	int i, which;

	for (i = 0; i < job->options->processes; i++)
		for (which = 0; which < 2; which++) {
			stream = &job->processes[i].streams[which];
			stream_last(stream);
			while (stream_wants(stream) && stream_read(stream))
				;
			/* Of another host all has come */
			if (stream_wants(stream) || job->processes[i].far)
				stream_end(stream);
		}
}

static bool is_unread(const struct job *job)
{
	int i;

	for (i = 0; i < job->options->processes; i++)
		if (job->processes[i].streams[0].fd >= 0 || job->processes[i].streams[1].fd >= 0)
			return true;
	return false;
}

/* What processes leave behind is to end if the job has failed, and is let be if it has not */
static bool is_running(struct job *job)
{
	return job->alive || remote_is_running(job) || (job->failed && orphans_left(&job->orphans));
}

/* ---- all of it ---------------------------------------------------------- */

static void init(struct job *job, const struct options *options, int keeper_fd)
{
	size_t n = (size_t)options->processes;
	size_t places = FD_PROCESSES + n * FDS_EACH + (size_t)options->hosts.n * FDS_FAR;
	int i, which;

	memset(job, 0, sizeof(*job));
	job->options = options;
	job->ended = -1;
	job->keeper_fd = keeper_fd;
	job->kill_at = NEVER;
	job->flush_at = NEVER;
	job->deadline = options->timeout_s ? now_ms() + options->timeout_s * 1000LL : NEVER;
	job->processes = allocate(n, sizeof(*job->processes));
	job->fds = allocate(places, sizeof(*job->fds));
	job->polled = allocate(places, sizeof(*job->polled));
	for (which = 0; which < 2; which++)
		job->sinks[which].fd = which ? STDERR_FILENO : STDOUT_FILENO;
	job->one_place = sinks_meet(&job->sinks[0], &job->sinks[1]);
	for (i = 0; i < options->processes; i++)
		for (which = 0; which < 2; which++)
			stream_init(&job->processes[i].streams[which], i, &job->sinks[which]);
	pmi_init(&job->pmi, options->processes);
	remote_init(job);
	orphans_init(&job->orphans);
	surroundings_allow_files(&job->surroundings, (rlim_t)places + 64);
	job->signal_fd = surroundings_take_signals(&job->surroundings);
}

static void uninit(struct job *job)
{
	int i, which;

	pmi_uninit(&job->pmi);
	for (i = 0; i < job->options->processes; i++)
		for (which = 0; which < 2; which++)
			stream_uninit(&job->processes[i].streams[which]);
	remote_uninit(job);
	free(job->sinks[0].data);
	free(job->sinks[1].data);
	free(job->processes);
	free(job->fds);
	free(job->polled);
	orphans_uninit(&job->orphans);
	close(job->signal_fd);
}

int job_run(const struct options *options, int keeper_fd)
{
	struct job job;

	init(&job, options, keeper_fd);
	start_all(&job);
	/* A timeout or a signal ends the waiting for those who read the lines, too */
	do {
		while (is_running(&job))
			turn(&job);
		drain(&job);
		if (is_unwritten(&job))
			turn(&job);
	} while (is_running(&job) || is_unread(&job) || is_unwritten(&job));
	sink_tell(&job.sinks[0]);
	sink_tell(&job.sinks[1]);
	/* Whoever relies on the lines does not have them all */
	if (!job.status && (job.sinks[0].dropped || job.sinks[1].dropped))
		job.status = 1;
	uninit(&job);
	return job.status;
}
