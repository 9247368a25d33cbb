// SPDX-License-Identifier: GPL-2.0-only
/* The processes of an agent: how they begin, what they say, and their end. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hosts/child.h"
#include "message.h"
#include "pmi_line.h"

#define LAST_READS	1024	/* more than a socket holds */

static int rank_of(const struct agent *agent, int i)
{
	return agent->start.first + i;
}

void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- starting ----------------------------------------------------------- */

static int open_pair(int (*make)(int *fds), int *ours, int *theirs)
{
	int fds[2];

	if (make(fds) < 0)
		return -1;
	*ours = fds[0];
	*theirs = fds[1];
	return fcntl(*ours, F_SETFL, O_NONBLOCK);
}

static int make_pipe(int *fds)
{
	return pipe2(fds, O_CLOEXEC);
}

static int make_feed(int *fds)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return -1;
	fds[0] = ends[1];
	fds[1] = ends[0];
	return 0;
}

static int make_socket(int *fds)
{
	return socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds);
}

static int open_all(struct agent *agent, struct child *child, struct plan *plan)
{
	if (open_pair(make_socket, &child->pmi_fd, &plan->pmi_fd) < 0 ||
	    open_pair(make_pipe, &child->lines[0], &plan->out_fd) < 0 ||
	    open_pair(make_pipe, &child->lines[1], &plan->err_fd) < 0)
		return -1;
	if (plan->rank != agent->start.options.stdin_rank)
		return 0;
	return open_pair(make_feed, &agent->feed_fd, &plan->in_fd);
}

static void tell_start(struct agent *agent, int i, pid_t pid, int err)
{
	const int64_t numbers[] = { err, pid > 0 };
	uint32_t rank = (uint32_t)rank_of(agent, i);

	if (err)
		link_put(&agent->link, FRAME_UNABLE, rank, numbers, sizeof(numbers));
	else
		link_put_number(&agent->link, FRAME_STARTED, rank, pid);
}

void child_start(struct agent *agent, int i)
{
	struct plan plan = {
		.options = &agent->start.options, .surroundings = &agent->surroundings,
		.rank = rank_of(agent, i), .pmi_fd = -1, .in_fd = -1, .out_fd = -1, .err_fd = -1,
	};
	pid_t pid = -1;
	int err = 0;

	if (open_all(agent, &agent->children[i], &plan) == 0)
		pid = process_start(&plan, &err);
	else
		err = errno;
	plan_close(&plan);
	tell_start(agent, i, pid, err);
	agent->alive++;
	if (pid > 0) {
		agent->children[i].pid = pid;
		orphans_except(&agent->orphans, pid);
	} else {
		child_end(agent, i, 1 << 8);
	}
}

void children_prepare(struct agent *agent)
{
	size_t n = (size_t)agent->start.processes;
	size_t i;

	agent->children = allocate(n, sizeof(*agent->children));
	agent->fds = enlarge(agent->fds, (FD_CHILDREN + n * FDS_EACH) * sizeof(*agent->fds));
	for (i = 0; i < n; i++) {
		agent->children[i] = (struct child){
			.pmi_fd = -1, .lines = { -1, -1 }, .rest = { -1, -1 },
		};
	}
	surroundings_allow_files(&agent->surroundings, (rlim_t)n * FDS_EACH + 64);
}

/* ---- what processes do -------------------------------------------------- */

void child_answer(struct agent *agent, int i, const struct frame *frame)
{
	struct child *child = &agent->children[i];
	ssize_t sent;

	if (child->pmi_fd < 0)
		return;
	sent = send(child->pmi_fd, frame->data, frame->n, MSG_NOSIGNAL | MSG_DONTWAIT);
	if (sent == (ssize_t)frame->n || (sent < 0 && errno != EAGAIN))
		return;
	link_put(&agent->link, FRAME_DEAF, (uint32_t)rank_of(agent, i), NULL, 0);
}

bool child_read_pmi(struct agent *agent, int i)
{
	struct child *child = &agent->children[i];
	char text[PMI_LINE_BYTES];
	ssize_t n;

	if (child->pmi_fd < 0)
		return false;
	n = recv(child->pmi_fd, text, sizeof(text), MSG_DONTWAIT);
	if (n > 0)
		link_put(&agent->link, FRAME_PMI, (uint32_t)rank_of(agent, i), text, (size_t)n);
	else if (!n || (errno != EAGAIN && errno != EINTR))
		shut(&child->pmi_fd);
	return n > 0;
}

size_t child_read_lines(struct agent *agent, int i, int which, size_t most)
{
	int *fd = &agent->children[i].lines[which];
	char text[FRAME_BYTES];
	ssize_t n;

	if (most > agent->window[which])
		most = agent->window[which];
	if (most > sizeof(text))
		most = sizeof(text);
	n = read(*fd, text, most);
	if (n > 0) {
		link_put(&agent->link, which ? FRAME_ERR : FRAME_OUT, (uint32_t)rank_of(agent, i),
			 text, (size_t)n);
		agent->window[which] -= (size_t)n;
		return (size_t)n;
	}
	if (!n || (errno != EAGAIN && errno != EINTR))
		shut(fd);
	return 0;
}

void child_end(struct agent *agent, int i, int status)
{
	struct child *child = &agent->children[i];
	const int64_t numbers[] = { child->pid, status };
	int reads;

	child->pid = 0;
	agent->alive--;
	/* What is there; what it has left behind may go on without an end */
	for (reads = 0; reads < LAST_READS && child_read_pmi(agent, i); reads++)
		;
	shut(&child->pmi_fd);
	link_put(&agent->link, FRAME_EXIT, (uint32_t)rank_of(agent, i), numbers, sizeof(numbers));
}

/* What is in the pipe now is the last: who still writes to it may do so faster than we can send */
static void drain_lines(struct agent *agent, int i, int which)
{
	struct child *child = &agent->children[i];
	int *rest = &child->rest[which];

	if (child->lines[which] >= 0 && *rest < 0 && ioctl(child->lines[which], FIONREAD, rest) < 0)
		*rest = 0;
	while (*rest > 0 && agent->window[which] && child->lines[which] >= 0)
		*rest -= (int)child_read_lines(agent, i, which, (size_t)*rest);
	if (*rest <= 0)
		shut(&child->lines[which]);
}

void children_drain(struct agent *agent)
{
	int i;

	for (i = 0; i < agent->start.processes; i++) {
		drain_lines(agent, i, 0);
		drain_lines(agent, i, 1);
	}
}

bool children_write(const struct agent *agent)
{
	int i;

	for (i = 0; i < agent->start.processes; i++)
		if (agent->children[i].lines[0] >= 0 || agent->children[i].lines[1] >= 0)
			return true;
	return false;
}

/* ---- ending ------------------------------------------------------------- */

void children_signal(struct agent *agent, int number)
{
	int i;

	for (i = 0; i < agent->start.processes; i++)
		if (agent->children[i].pid)
			kill(agent->children[i].pid, number);
}

void children_ask(struct agent *agent)
{
	agent->ending = true;
	agent->told = false;
	children_signal(agent, SIGTERM);
	children_signal(agent, SIGCONT);
	orphans_ask(&agent->orphans);
}

void children_kill(struct agent *agent)
{
	agent->ending = true;
	agent->told = false;
	children_signal(agent, SIGKILL);
	orphans_kill(&agent->orphans);
}
