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
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hosts/agent.h"
#include "hosts/bridge.h"
#include "hosts/link.h"
#include "message.h"
#include "orphans.h"
#include "pmi_line.h"
#include "process.h"
#include "watch.h"
#include "hosts/start.h"

#ifndef HAMLYN_VERSION
#define HAMLYN_VERSION "unknown"
#endif

#define GRACE_MS	2000	/* from SIGTERM to SIGKILL, when nobody says so */
#define KILL_TIMES	100	/* a process that cannot be killed is left */

/* Places in agent.fds, and three for each process */
enum { FD_SIGNALS, FD_KEEPER, FD_IN, FD_OUT, FD_FEED, FD_CHILDREN };
enum { FD_PMI, FD_LINES, FDS_EACH = FD_LINES + 2 };

/**
 * struct child - a process
 * @pid: 0 before it starts and after its end
 * @pmi_fd: our end of its socket, or -1
 * @lines: of its standard output and error, or -1
 * @rest: bytes that are still read of @lines, or -1: all that come
 */
struct child {
	pid_t pid;
	int pmi_fd;
	int lines[2];
	int rest[2];
};

/**
 * struct agent - all of them
 * @bridge: to other hosts
 * @start: what they are
 * @started: that has come
 * @ending: FRAME_END or FRAME_KILL has
 * @told: FRAME_DONE was sent, since @ending was set
 * @alone: the link has ended
 * @kills: how often all were killed because of that
 * @window: bytes that may be sent of output and error
 * @turn: the process that is read first
 * @feed_fd: standard input of the one that reads it, or -1
 * @feed: bytes that wait for it
 * @feed_len: their number
 * @feed_end: and no more will come
 */
struct agent {
	struct link link;
	struct surroundings surroundings;
	struct orphans orphans;
	struct bridge bridge;
	struct start start;
	struct child *children;
	struct pollfd *fds;
	int alive;
	bool started;
	bool ending;
	bool told;
	bool alone;
	int kills;
	size_t window[2];
	int turn;
	int feed_fd;
	char *feed;
	size_t feed_len;
	bool feed_end;
	int signal_fd;
	int keeper_fd;
};

static int rank_of(const struct agent *agent, int i)
{
	return agent->start.first + i;
}

static void shut(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* ---- ending ------------------------------------------------------------- */

static void signal_all(struct agent *agent, int number)
{
	int i;

	for (i = 0; i < agent->start.processes; i++)
		if (agent->children[i].pid)
			kill(agent->children[i].pid, number);
}

static void ask_to_end(struct agent *agent)
{
	agent->ending = true;
	agent->told = false;
	signal_all(agent, SIGTERM);
	signal_all(agent, SIGCONT);
	orphans_ask(&agent->orphans);
}

static void kill_all(struct agent *agent)
{
	agent->ending = true;
	agent->told = false;
	signal_all(agent, SIGKILL);
	orphans_kill(&agent->orphans);
}

static void be_alone(struct agent *agent)
{
	if (agent->alone)
		return;
	agent->alone = true;
	link_uninit(&agent->link);
	ask_to_end(agent);
}

/* ---- what processes do -------------------------------------------------- */

/* An answer: it fits, unless it reads none */
static void answer(struct agent *agent, int i, const struct frame *frame)
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

/* Return: whether there was something */
static bool read_pmi(struct agent *agent, int i)
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

/* At most @most bytes. Return: how many */
static size_t read_lines(struct agent *agent, int i, int which, size_t most)
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

static void end_child(struct agent *agent, int i, int status)
{
	struct child *child = &agent->children[i];
	const int64_t numbers[] = { child->pid, status };

	child->pid = 0;
	agent->alive--;
	while (read_pmi(agent, i))
		;
	shut(&child->pmi_fd);
	link_put(&agent->link, FRAME_EXIT, (uint32_t)rank_of(agent, i), numbers, sizeof(numbers));
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
				end_child(agent, i, status);
				break;
			}
	}
	if (agent->ending)
		orphans_ask(&agent->orphans);
}

/* What is in the pipe now is the last: who still writes to it may do so faster than we can send */
static void drain_lines(struct agent *agent, int i, int which)
{
	struct child *child = &agent->children[i];
	int *rest = &child->rest[which];

	if (child->lines[which] >= 0 && *rest < 0 && ioctl(child->lines[which], FIONREAD, rest) < 0)
		*rest = 0;
	while (*rest > 0 && agent->window[which] && child->lines[which] >= 0)
		*rest -= (int)read_lines(agent, i, which, (size_t)*rest);
	if (*rest <= 0)
		shut(&child->lines[which]);
}

static void drain(struct agent *agent)
{
	int i;

	for (i = 0; i < agent->start.processes; i++) {
		drain_lines(agent, i, 0);
		drain_lines(agent, i, 1);
	}
}

static bool has_lines(const struct agent *agent)
{
	int i;

	for (i = 0; i < agent->start.processes; i++)
		if (agent->children[i].lines[0] >= 0 || agent->children[i].lines[1] >= 0)
			return true;
	return false;
}

static void tell_done(struct agent *agent)
{
	if (!agent->started || agent->alive || agent->told)
		return;
	drain(agent);
	if (has_lines(agent) || (agent->ending && orphans_left(&agent->orphans)))
		return;
	agent->told = true;
	link_put(&agent->link, FRAME_DONE, agent->ending, NULL, 0);
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

static void start_child(struct agent *agent, int i)
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
		end_child(agent, i, 1 << 8);
	}
}

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

static void prepare(struct agent *agent)
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

/* Return: 0, or -1 if it is none */
static int take_start(struct agent *agent, const struct frame *frame)
{
	int i;

	if (agent->started || start_unpack(&agent->start, frame->data, frame->n) < 0)
		return -1;
	agent->started = true;
	prepare(agent);
	take_variables(agent->start.variables);
	if (chdir(agent->start.folder) < 0) {
		refuse(agent, "its folder cannot be entered: %s", agent->start.folder);
		agent->start.processes = 0;
	}
	for (i = 0; i < agent->start.processes; i++)
		start_child(agent, i);
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
	answer(agent, (int)i, frame);
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
		signal_all(agent, (int)frame->rank);
		return 0;
	case FRAME_END:
		ask_to_end(agent);
		return 0;
	case FRAME_KILL:
		kill_all(agent);
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
	int i, which;

	watch(&agent->fds[FD_SIGNALS], agent->signal_fd, POLLIN);
	watch(&agent->fds[FD_KEEPER], agent->keeper_fd, POLLIN);
	watch(&agent->fds[FD_IN], agent->link.in_fd, POLLIN);
	watch(&agent->fds[FD_OUT], link_unsent(&agent->link) ? agent->link.out_fd : -1, POLLOUT);
	/* Without anything to write: that nobody reads it any more */
	watch(&agent->fds[FD_FEED], agent->feed_fd, agent->feed_len ? POLLOUT : 0);
	for (i = 0; i < agent->start.processes; i++, entry += FDS_EACH) {
		struct child *child = &agent->children[i];

		watch(&entry[FD_PMI], child->pmi_fd, POLLIN);
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
			read_lines(agent, i, which, FRAME_BYTES);
	if (entry[FD_PMI].revents)
		read_pmi(agent, i);
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
		kill_all(agent);
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
