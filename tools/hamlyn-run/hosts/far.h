/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes of another host, as hamlyn-run sees them: a launcher, and an agent behind it. */
#ifndef RUN_FAR_H
#define RUN_FAR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hosts/hosts.h"
#include "hosts/link.h"
#include "options.h"

enum far_state {
	FAR_LAUNCHED,	/* its agent has not greeted */
	FAR_GREETED,	/* it waits for all to do so, and for its bridge */
	FAR_BRIDGED,
	FAR_RUNNING,
	FAR_DONE,	/* all of its processes have ended, and their lines have come */
	FAR_GONE,	/* nothing comes from there any more */
};

/**
 * struct far_events - what is told of a host; @context comes first
 * @started: process @rank runs
 * @unable: it cannot be run, for this errno; @exists: it is about to end
 * @deaf: it does not read its PMI descriptor
 * @pmi: it has sent @n bytes there
 * @lines: and to its standard output or, @which is 1, error
 * @ended: with the status of waitpid()
 * @refused: none of them can be started, as the text says
 * @lost: nothing comes from the host any more, for the reason in the text
 */
struct far_events {
	void (*started)(void *context, int rank, pid_t pid);
	void (*unable)(void *context, int rank, int err, bool exists);
	void (*deaf)(void *context, int rank);
	void (*pmi)(void *context, int rank, const char *text, size_t n);
	void (*lines)(void *context, int rank, int which, const char *text, size_t n);
	void (*ended)(void *context, int rank, pid_t pid, int status);
	void (*refused)(void *context, const struct host *host, const char *why);
	void (*lost)(void *context, const struct host *host, const char *why);
};

/**
 * struct far - one host
 * @host: its name and processes
 * @options: the command line
 * @events: what to tell, and @context for it
 * @state: how far it has come
 * @launcher: the process that reaches it, or 0
 * @link: to the agent
 * @ending: it was told to end them
 * @starting: processes that have not been started yet
 * @owed: bytes of lines that have come and may not come again yet, of output and error
 * @feed: bytes that may be sent to who reads standard input; -1: no more is read
 * @begun: when it was launched, in ms
 * @heard: when something came from there
 * @asked: when it was asked whether it is still there
 * @unanswered: how often it was since something came
 */
struct far {
	const struct host *host;
	const struct options *options;
	const struct far_events *events;
	void *context;
	enum far_state state;
	pid_t launcher;
	struct link link;
	bool ending;
	int starting;
	size_t owed[2];
	int64_t feed;
	int64_t begun;
	int64_t heard;
	int64_t asked;
	int unanswered;
};

/* Return: 0, or -errno if there is no launcher; no event comes from here */
int far_launch(struct far *far, int64_t now);
void far_uninit(struct far *far);

static inline bool far_has(const struct far *far, int rank)
{
	return rank >= far->host->first && rank < far->host->first + far->host->processes;
}

/* Reads and tells what has come, if anything has, and sends what is to be sent */
void far_serve(struct far *far, bool readable, int64_t now);

/* Asks whether it is there, and gives it up when it has been silent for too long */
void far_check(struct far *far, int64_t now);

/* When far_check() is to be called again */
int64_t far_next_check(const struct far *far);

/* Lines of @which may come again: those before them have room */
void far_room(struct far *far, int which);

/* What its agent is to do: FRAME_SIGNAL, FRAME_END, FRAME_KILL */
void far_order(struct far *far, enum frame_type type, int number);

/* Its agent has greeted: what it is to start, and where HAMLYN_DEVICE is @device if not NULL */
void far_start(struct far *far, const char *device);

/* Ours is the end of its processes: nothing is to be waited for any more */
void far_leave(struct far *far);

#endif /* RUN_FAR_H */
