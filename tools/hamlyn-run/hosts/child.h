/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes of an agent. */
#ifndef RUN_CHILD_H
#define RUN_CHILD_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "hosts/bridge.h"
#include "hosts/link.h"
#include "hosts/start.h"
#include "orphans.h"
#include "process.h"

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

/* Closes it, if it is open */
void shut(int *fd);

/* Memory for all of them */
void children_prepare(struct agent *agent);

/* The @i-th one is to run, and that it does, or cannot, is told */
void child_start(struct agent *agent, int i);

/* An answer: it fits, unless it reads none */
void child_answer(struct agent *agent, int i, const struct frame *frame);

/* Return: whether there was something */
bool child_read_pmi(struct agent *agent, int i);

/* At most @most bytes, and as many as there is a window for. Return: how many */
size_t child_read_lines(struct agent *agent, int i, int which, size_t most);

/* It has been waited for */
void child_end(struct agent *agent, int i, int status);

/* All have ended: what their pipes hold is sent, as far as there is a window for it */
void children_drain(struct agent *agent);

/* Is something left that they wrote, or may they write still? */
bool children_write(const struct agent *agent);

void children_signal(struct agent *agent, int number);

/* They are to end, with what they have left behind: FRAME_END, and FRAME_KILL */
void children_ask(struct agent *agent);
void children_kill(struct agent *agent);

#endif /* RUN_CHILD_H */
