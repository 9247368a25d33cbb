// SPDX-License-Identifier: GPL-2.0-only
/*
 * The other hosts of a job: what their agents tell becomes what happens to processes here, and
 * what the job decides becomes orders for all of them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hosts/remote.h"
#include "job_state.h"
#include "message.h"
#include "watch.h"

#define PART_MS	100	/* a prompt is not a line, and somebody is to see it */

void remote_place(const struct job *job, int rank, char place[PLACE_BYTES])
{
	const struct far *far = job->processes[rank].far;

	*place = 0;
	if (far && !host_is_here(far->host))
		snprintf(place, PLACE_BYTES, " on %s", far->host->name);
}

/* ---- what agents tell --------------------------------------------------- */

static void far_started(void *context, int rank, pid_t pid)
{
	struct job *job = context;
	char place[PLACE_BYTES];

	remote_place(job, rank, place);
	if (job->options->verbose)
		say("process %d has pid %ld%s", rank, (long)pid, place);
}

static void far_unable(void *context, int rank, int err, bool exists)
{
	struct job *job = context;
	char place[PLACE_BYTES];

	remote_place(job, rank, place);
	if (exists)
		job_cannot_run(job, err);
	else
		job_fail(job, 1, "process %d cannot be started%s: %s", rank, place, strerror(err));
}

static void far_deaf(void *context, int rank)
{
	struct job *job = context;

	pmi_deaf(&job->pmi, rank);
	job_fail_pmi(job);
}

static void far_pmi(void *context, int rank, const char *text, size_t n)
{
	struct job *job = context;

	if (job->processes[rank].ended)
		return;
	if (pmi_feed(&job->pmi, rank, text, n) < 0)
		job_fail_pmi(job);
}

static void answer_far(void *context, int rank, const char *text, size_t n)
{
	struct job *job = context;
	struct far *far = job->processes[rank].far;

	if (far->state == FAR_RUNNING)
		link_put(&far->link, FRAME_PMI, (uint32_t)rank, text, n);
}

static void far_lines(void *context, int rank, int which, const char *text, size_t n)
{
	struct job *job = context;
	struct stream *stream = &job->processes[rank].streams[which];

	stream_feed(stream, text, n);
	if (stream->plain && stream->len && job->flush_at == NEVER)
		job->flush_at = now_ms() + PART_MS;
}

/* Not while others wait for the sink: the rest of it may wait there, too */
void remote_flush_parts(struct job *job)
{
	int i, which;

	job->flush_at = NEVER;
	for (which = 0; which < 2; which++) {
		if (sink_pending(&job->sinks[which])) {
			job->flush_at = now_ms() + PART_MS;
			continue;
		}
		for (i = 0; i < job->options->processes; i++)
			stream_flush(&job->processes[i].streams[which]);
	}
}

static void far_ended(void *context, int rank, pid_t pid, int status)
{
	struct job *job = context;

	if (!job->processes[rank].ended)
		job_end_process(job, rank, pid, status);
}

/* Those of a host that will not tell */
static void end_unheard(struct job *job, const struct host *host)
{
	int i;

	for (i = host->first; i < host->first + host->processes; i++) {
		if (job->processes[i].ended)
			continue;
		job->processes[i].ended = true;
		job->ended = i;
		job->alive--;
		if (pmi_detach(&job->pmi, i) < 0)
			job_fail_pmi(job);
	}
	job_check_barrier(job);
}

static void far_refused(void *context, const struct host *host, const char *why)
{
	struct job *job = context;

	job_fail(job, 1, "host %s: %s", host->name, why);
	end_unheard(job, host);
}

static void far_lost(void *context, const struct host *host, const char *why)
{
	struct job *job = context;

	/* Those that were to end have, as far as we can know */
	if (!job->failed)
		job_fail_alone(job, 1, "host %s: %s", host->name, why);
	end_unheard(job, host);
}

static const struct far_events far_events = {
	.started = far_started,
	.unable = far_unable,
	.deaf = far_deaf,
	.pmi = far_pmi,
	.lines = far_lines,
	.ended = far_ended,
	.refused = far_refused,
	.lost = far_lost,
};

/* ---- how they are -------------------------------------------------------- */

bool remote_is_starting(const struct job *job)
{
	int i;

	for (i = 0; i < job->n_fars; i++)
		if (job->fars[i].state < FAR_RUNNING ||
		    (job->fars[i].state == FAR_RUNNING && job->fars[i].starting))
			return true;
	return false;
}

bool remote_is_running(const struct job *job)
{
	int i;

	for (i = 0; i < job->n_fars; i++)
		if (job->fars[i].state <= FAR_RUNNING)
			return true;
	return false;
}

int64_t remote_next(const struct job *job)
{
	int64_t next = job->flush_at, check;
	int i;

	for (i = 0; i < job->n_fars; i++) {
		check = far_next_check(&job->fars[i]);
		if (check < next)
			next = check;
	}
	return next;
}

/* The descriptors of a host that is gone are -1 */
struct pollfd *remote_watch(const struct job *job, struct pollfd *entry)
{
	int i;

	for (i = 0; i < job->n_fars; i++, entry += FDS_FAR) {
		const struct link *link = &job->fars[i].link;

		watch(&entry[FD_FROM], link->in_fd, POLLIN);
		watch(&entry[FD_TO], link_unsent(link) ? link->out_fd : -1, POLLOUT);
	}
	return entry;
}

struct far *remote_reader(struct job *job)
{
	struct far *far = job->options->stdin_rank == NO_STDIN ? NULL :
		job->processes[job->options->stdin_rank].far;

	return far && far->state == FAR_RUNNING && far->feed > 0 && !job->stdin_ended ? far : NULL;
}

void remote_feed(struct job *job)
{
	struct far *far = remote_reader(job);
	char text[FRAME_BYTES];
	size_t most = sizeof(text);
	ssize_t n;

	if (!far)
		return;
	if ((size_t)far->feed < most)
		most = (size_t)far->feed;
	n = read(STDIN_FILENO, text, most);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	/* What cannot be read has ended */
	if (n <= 0) {
		job->stdin_ended = true;
		n = 0;
	}
	link_put(&far->link, FRAME_STDIN, 0, text, (size_t)n);
	far->feed -= n;
}

void remote_serve(struct job *job, const struct pollfd *entry)
{
	struct far *far;
	int i, which;

	for (i = 0; i < job->n_fars; i++, entry += FDS_FAR) {
		far = &job->fars[i];
		if (far->state == FAR_GONE)
			continue;
		far_serve(far, entry[FD_FROM].revents, now_ms());
		for (which = 0; which < 2; which++)
			if (sink_wants(&job->sinks[which]))
				far_room(far, which);
		far_check(far, now_ms());
	}
	bridges_step(&job->bridges, job->fars, job->n_fars);
}

/* ---- from begin to end ---------------------------------------------------- */

void remote_order(struct job *job, enum frame_type type, int number)
{
	int i;

	for (i = 0; i < job->n_fars; i++)
		far_order(&job->fars[i], type, number);
}

static void launch(struct job *job, struct far *far)
{
	int ret = far_launch(far, now_ms());

	if (ret < 0) {
		job_fail(job, 1, "host %s: its launcher cannot be started: %s", far->host->name,
			 strerror(-ret));
		return;
	}
	orphans_except(&job->orphans, far->launcher);
	job->alive += far->host->processes;
}

void remote_launch(struct job *job)
{
	int i;

	for (i = 0; i < job->n_fars && !job->failed; i++)
		launch(job, &job->fars[i]);
}

void remote_reaped(struct job *job, pid_t pid)
{
	int i;

	for (i = 0; i < job->n_fars; i++)
		if (job->fars[i].launcher == pid)
			job->fars[i].launcher = 0;
}

void remote_leave(struct job *job)
{
	int i;

	for (i = 0; i < job->n_fars; i++)
		far_leave(&job->fars[i]);
}

static void init_far(struct job *job, const struct host *host)
{
	struct far *far;
	int i;

	/* With bridges this host is as the others: its processes wait for its bridge */
	if ((host_is_here(host) && !job->options->bridge_port) || !host->processes)
		return;
	far = &job->fars[job->n_fars++];
	*far = (struct far){
		.host = host, .options = job->options, .events = &far_events, .context = job,
		.state = FAR_GONE, .link = { .in_fd = -1, .out_fd = -1 },
	};
	for (i = host->first; i < host->first + host->processes; i++) {
		job->processes[i].far = far;
		job->processes[i].streams[0].plain = !job->options->tag_output;
		job->processes[i].streams[1].plain = !job->options->tag_output;
		job->pmi.clients[i].far = true;
	}
}

void remote_init(struct job *job)
{
	int i;

	job->pmi.send = answer_far;
	job->pmi.context = job;
	job->fars = allocate((size_t)job->options->hosts.n + 1, sizeof(*job->fars));
	for (i = 0; i < job->options->hosts.n; i++)
		init_far(job, &job->options->hosts.host[i]);
	bridges_init(&job->bridges, job->options);
}

void remote_uninit(struct job *job)
{
	int i;

	for (i = 0; i < job->n_fars; i++)
		far_uninit(&job->fars[i]);
	free(job->fars);
}
