// SPDX-License-Identifier: GPL-2.0-only
/*
 * The processes of one host, for a hamlyn-run that is on another one. It decides nothing:
 * what happens is told, and what is to happen comes. When nobody is there any more who could
 * decide, all of them end.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hosts/agent.h"
#include "hosts/child.h"
#include "message.h"
#include "watch.h"

#ifndef HAMLYN_VERSION
#define HAMLYN_VERSION "unknown"
#endif

#define GRACE_MS	2000	/* from SIGTERM to SIGKILL, when nobody says so */
#define KILL_TIMES	100	/* a process that cannot be killed is left */

/* ---- ending ------------------------------------------------------------- */

static void be_alone(struct agent *agent)
{
	if (agent->alone)
		return;
	agent->alone = true;
	link_uninit(&agent->link);
	children_ask(agent);
}

static void refuse(struct agent *agent, const char *format, const char *detail)
{
	char why[256];
	int n = snprintf(why, sizeof(why), format, detail);

	link_put(&agent->link, FRAME_REFUSE, 0, why,
		 (size_t)n < sizeof(why) ? (size_t)n : sizeof(why) - 1);
}

/* Return: is it one of these? */
static bool take_end_of_bridge(struct agent *agent, pid_t pid, int status)
{
	struct bridge *bridge = &agent->bridge;

	if (pid == bridge->waiter) {
		bridge->waiter = 0;
		if (status)
			refuse(agent, "%s", "its bridge has not found all others");
		else
			link_put(&agent->link, FRAME_BRIDGED, 0, NULL, 0);
		return true;
	}
	if (pid != bridge->pid)
		return false;
	bridge->pid = -1;
	refuse(agent, "%s", "its bridge has ended");
	return true;
}

static void reap(struct agent *agent)
{
	int status, i;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		orphans_forget(&agent->orphans, pid);
		if (take_end_of_bridge(agent, pid, status))
			continue;
		for (i = 0; i < agent->start.processes; i++)
			if (agent->children[i].pid == pid) {
				child_end(agent, i, status);
				break;
			}
	}
	if (agent->ending)
		orphans_ask(&agent->orphans);
}

static void tell_done(struct agent *agent)
{
	if (!agent->started || agent->alive || agent->told)
		return;
	children_drain(agent);
	if (children_write(agent) || (agent->ending && orphans_left(&agent->orphans)))
		return;
	agent->told = true;
	link_put(&agent->link, FRAME_DONE, agent->ending, NULL, 0);
}

/* ---- what it is to start -------------------------------------------------- */

static void take_variables(char **variables)
{
	char *end;

	for (; *variables; variables++) {
		end = strchr(*variables, '=');
		if (!end)
			continue;
		*end = 0;
		setenv(*variables, end + 1, 0);
	}
}

/* Return: 0, or -1 if it is none */
static int take_start(struct agent *agent, const struct frame *frame)
{
	int i;

	if (agent->started || start_unpack(&agent->start, frame->data, frame->n) < 0)
		return -1;
	agent->started = true;
	children_prepare(agent);
	take_variables(agent->start.variables);
	if (chdir(agent->start.folder) < 0) {
		refuse(agent, "its folder cannot be entered: %s", agent->start.folder);
		agent->start.processes = 0;
	}
	for (i = 0; i < agent->start.processes; i++)
		child_start(agent, i);
	return 0;
}

/* Return: 0, or -1 if it is none */
static int take_bridge(struct agent *agent, const struct frame *frame)
{
	int ret = bridge_start(&agent->bridge, &agent->surroundings, frame->data, frame->n);

	if (agent->bridge.pid > 0)
		orphans_except(&agent->orphans, agent->bridge.pid);
	if (agent->bridge.waiter > 0)
		orphans_except(&agent->orphans, agent->bridge.waiter);
	if (ret == -EPROTO)
		return -1;
	if (ret < 0)
		refuse(agent, "its bridge cannot be started: %s", strerror(-ret));
	return 0;
}

/* ---- what comes over the link ------------------------------------------- */

/* Its end tells who reads it as well */
static void no_feed(struct agent *agent)
{
	shut(&agent->feed_fd);
	agent->feed_len = 0;
	link_put_number(&agent->link, FRAME_FED, 0, -1);
}

static void write_feed(struct agent *agent)
{
	ssize_t n;

	if (agent->feed_fd < 0)
		return;
	n = agent->feed_len ? write(agent->feed_fd, agent->feed, agent->feed_len) : 0;
	if (n < 0 && errno != EAGAIN && errno != EINTR) {
		no_feed(agent);
		return;
	}
	if (n > 0) {
		agent->feed_len -= (size_t)n;
		memmove(agent->feed, agent->feed + n, agent->feed_len);
		link_put_number(&agent->link, FRAME_FED, 0, n);
	}
	if (agent->feed_end && !agent->feed_len)
		shut(&agent->feed_fd);
}

static int take_stdin(struct agent *agent, const struct frame *frame)
{
	if (!frame->n)
		agent->feed_end = true;
	if (frame->n > WINDOW_BYTES - agent->feed_len)
		return -1;
	if (agent->feed_fd < 0)
		return 0;
	if (!agent->feed)
		agent->feed = allocate(WINDOW_BYTES, 1);
	memcpy(agent->feed + agent->feed_len, frame->data, frame->n);
	agent->feed_len += frame->n;
	write_feed(agent);
	return 0;
}

static int take_window(struct agent *agent, const struct frame *frame)
{
	int64_t n = frame_number(frame, 0);

	if (frame->rank > 1 || n < 0 || (size_t)n > WINDOW_BYTES - agent->window[frame->rank])
		return -1;
	agent->window[frame->rank] += (size_t)n;
	return 0;
}

static int take_answer(struct agent *agent, const struct frame *frame)
{
	int64_t i = (int64_t)frame->rank - agent->start.first;

	if (i < 0 || i >= agent->start.processes)
		return -1;
	child_answer(agent, (int)i, frame);
	return 0;
}

/* Return: 0, or -1 if nobody sends such */
static int take_frame(struct agent *agent, const struct frame *frame)
{
	switch (frame->type) {
	case FRAME_BRIDGE:
		return take_bridge(agent, frame);
	case FRAME_START:
		return take_start(agent, frame);
	case FRAME_SIGNAL:
		children_signal(agent, (int)frame->rank);
		return 0;
	case FRAME_END:
		children_ask(agent);
		return 0;
	case FRAME_KILL:
		children_kill(agent);
		return 0;
	case FRAME_TAKEN:
		return take_window(agent, frame);
	case FRAME_STDIN:
		return take_stdin(agent, frame);
	case FRAME_PMI:
		return take_answer(agent, frame);
	case FRAME_PING:
		link_put(&agent->link, FRAME_PONG, 0, NULL, 0);
		return 0;
	default:
		return -1;
	}
}

static void serve_link(struct agent *agent)
{
	struct frame frame;
	int ret = link_read(&agent->link);

	while (ret >= 0) {
		ret = link_next(&agent->link, &frame);
		if (ret <= 0)
			break;
		if (take_frame(agent, &frame) < 0)
			ret = -EPROTO;
	}
	if (ret == -EPROTO)
		say("agent: what comes over the link makes no sense");
	if (ret < 0)
		be_alone(agent);
}

/* ---- the loop ----------------------------------------------------------- */

static nfds_t watch_all(struct agent *agent)
{
	struct pollfd *entry = agent->fds + FD_CHILDREN;
	/* Lines have windows; requests wait while hamlyn-run takes nothing */
	bool may_ask = link_unsent(&agent->link) < WINDOW_BYTES;
	int i, which;

	watch(&agent->fds[FD_SIGNALS], agent->signal_fd, POLLIN);
	watch(&agent->fds[FD_KEEPER], agent->keeper_fd, POLLIN);
	watch(&agent->fds[FD_IN], agent->link.in_fd, POLLIN);
	watch(&agent->fds[FD_OUT], link_unsent(&agent->link) ? agent->link.out_fd : -1, POLLOUT);
	/* Without anything to write: that nobody reads it any more */
	watch(&agent->fds[FD_FEED], agent->feed_fd, agent->feed_len ? POLLOUT : 0);
	for (i = 0; i < agent->start.processes; i++, entry += FDS_EACH) {
		struct child *child = &agent->children[i];

		watch(&entry[FD_PMI], may_ask ? child->pmi_fd : -1, POLLIN);
		for (which = 0; which < 2; which++)
			watch(&entry[FD_LINES + which],
			      agent->window[which] ? child->lines[which] : -1, POLLIN);
	}
	return (nfds_t)(entry - agent->fds);
}

static void serve_child(struct agent *agent, int i)
{
	const struct pollfd *entry = &agent->fds[FD_CHILDREN + i * FDS_EACH];
	int which;

	/* Those before it may have used up the window */
	for (which = 0; which < 2; which++)
		if (entry[FD_LINES + which].revents && agent->window[which])
			child_read_lines(agent, i, which, FRAME_BYTES);
	if (entry[FD_PMI].revents)
		child_read_pmi(agent, i);
}

static void take_signals(struct agent *agent)
{
	struct signalfd_siginfo info;

	while (read(agent->signal_fd, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			be_alone(agent);
	reap(agent);
}

static void serve_all(struct agent *agent)
{
	int i, n = agent->start.processes;

	for (i = 0; i < n; i++)
		serve_child(agent, (agent->turn + i) % n);
	agent->turn = n ? (agent->turn + 1) % n : 0;
	if (agent->fds[FD_FEED].revents & (POLLERR | POLLHUP))
		no_feed(agent);
	else if (agent->fds[FD_FEED].revents)
		write_feed(agent);
	if (agent->fds[FD_SIGNALS].revents)
		take_signals(agent);
	if (agent->fds[FD_KEEPER].revents) {
		agent->keeper_fd = -1;
		be_alone(agent);
	}
	/* Last, as the processes may be told by it */
	if (agent->fds[FD_IN].revents && !agent->alone)
		serve_link(agent);
	tell_done(agent);
	if (!agent->alone && link_flush(&agent->link) < 0)
		be_alone(agent);
}

static bool is_running(struct agent *agent)
{
	if (!agent->alone)
		return true;
	return agent->kills < KILL_TIMES && (agent->alive || orphans_left(&agent->orphans));
}

static void turn(struct agent *agent)
{
	nfds_t places = watch_all(agent);
	int ret = poll(agent->fds, places, agent->alone ? GRACE_MS : -1);

	if (ret < 0 && errno != EINTR) {
		say("agent: poll: %s", strerror(errno));
		exit(1);
	}
	if (ret > 0)
		serve_all(agent);
	/* Nobody says so, and they had their time */
	if (!ret && agent->alone) {
		agent->kills++;
		children_kill(agent);
	}
}

/* ---- all of it ---------------------------------------------------------- */

/* Not 0 and 1: processes and libraries write there */
static int take_link(struct agent *agent)
{
	int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (in < 0 || out < 0 || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0)
		return -1;
	close(null);
	link_init(&agent->link, in, out);
	return 0;
}

static void uninit(struct agent *agent)
{
	int i, which;

	bridge_end(&agent->bridge);
	for (i = 0; i < agent->start.processes; i++) {
		shut(&agent->children[i].pmi_fd);
		for (which = 0; which < 2; which++)
			shut(&agent->children[i].lines[which]);
	}
	link_uninit(&agent->link);
	shut(&agent->feed_fd);
	free(agent->feed);
	free(agent->children);
	free(agent->fds);
	start_free(&agent->start);
	orphans_uninit(&agent->orphans);
	close(agent->signal_fd);
}

int agent_run(const struct options *options, int keeper_fd)
{
	static const char greeting[] = GREETING HAMLYN_VERSION "\n";
	struct agent agent = {
		.window = { WINDOW_BYTES, WINDOW_BYTES }, .feed_fd = -1, .keeper_fd = keeper_fd,
	};

	(void)options;
	agent.fds = allocate(FD_CHILDREN, sizeof(*agent.fds));
	orphans_init(&agent.orphans);
	getrlimit(RLIMIT_NOFILE, &agent.surroundings.files);
	agent.signal_fd = surroundings_take_signals(&agent.surroundings);
	if (take_link(&agent) < 0) {
		say("agent: its standard input and output are no link: %s", strerror(errno));
		return 1;
	}
	link_put_raw(&agent.link, greeting, strlen(greeting));
	if (link_flush(&agent.link) < 0)
		be_alone(&agent);
	while (is_running(&agent))
		turn(&agent);
	uninit(&agent);
	return 0;
}
