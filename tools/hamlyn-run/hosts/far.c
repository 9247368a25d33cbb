// SPDX-License-Identifier: GPL-2.0-only
/*
 * A launcher (ssh, as a rule) runs the agent, and its standard input and output are the link.
 * It has a session of its own: what the terminal sends to us would end it before it could
 * pass anything on.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hosts/far.h"
#include "hosts/launch.h"
#include "message.h"
#include "hosts/start.h"

#ifndef HAMLYN_VERSION
#define HAMLYN_VERSION "unknown"
#endif

#define GREET_MS	60000		/* to connect, and to log in */
#define ASK_MS		5000
#define ASK_TIMES	6		/* counted, as we may have been stopped ourselves */
#define UNSENT_BYTES	(64 << 20)	/* an agent reads whatever comes */

/* ---- its end ------------------------------------------------------------ */

static void lose(struct far *far, const char *why)
{
	if (far->state == FAR_GONE)
		return;
	far->state = FAR_GONE;
	link_uninit(&far->link);
	far->events->lost(far->context, far->host, why);
}

void far_leave(struct far *far)
{
	far->state = FAR_GONE;
	link_uninit(&far->link);
}

void far_uninit(struct far *far)
{
	link_uninit(&far->link);
	if (far->launcher > 0) {
		kill(far->launcher, SIGKILL);
		waitpid(far->launcher, NULL, 0);
	}
	far->launcher = 0;
}

/* ---- launching ---------------------------------------------------------- */

__attribute__((noreturn))
static void become_launcher(const struct far *far, char **words, int in_fd, int out_fd,
			    pid_t parent)
{
	sigset_t none;

	if (!prctl(PR_SET_PDEATHSIG, SIGKILL) && getppid() != parent)
		_exit(1);
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	if (dup2(in_fd, STDIN_FILENO) >= 0 && dup2(out_fd, STDOUT_FILENO) >= 0)
		execvp(words[0], words);
	say("host %s: \"%.200s\" cannot be run: %s", far->host->name, words[0], strerror(errno));
	_exit(EXIT_NOT_EXECUTABLE);
}

static void close_both(const int *fds)
{
	int err = errno;

	close(fds[0]);
	close(fds[1]);
	errno = err;
}

static int open_pipes(int *to, int *from)
{
	if (pipe2(to, O_CLOEXEC) < 0)
		return -1;
	if (pipe2(from, O_CLOEXEC) == 0)
		return 0;
	close_both(to);
	return -1;
}

int far_launch(struct far *far, int64_t now)
{
	char **words = launch_words(far->options, far->host);
	pid_t parent = getpid();
	int to[2], from[2];

	if (open_pipes(to, from) < 0) {
		launch_free(words);
		return -errno;
	}
	far->launcher = fork();
	if (!far->launcher)
		become_launcher(far, words, to[0], from[1], parent);
	launch_free(words);
	if (far->launcher < 0) {
		close_both(to);
		close_both(from);
		return -errno;
	}
	close(to[0]);
	close(from[1]);
	link_init(&far->link, from[0], to[1]);
	far->state = FAR_LAUNCHED;
	far->starting = far->host->processes;
	far->feed = WINDOW_BYTES;
	far->begun = now;
	far->heard = now;
	far->asked = now;
	return 0;
}

void far_start(struct far *far, const char *device)
{
	struct options options = *far->options;
	size_t n;
	char *start;

	if (device)
		options.device = device;
	start = start_pack(&options, far->host->first, far->host->processes, &n);
	far->state = FAR_RUNNING;
	if (n <= START_BYTES)
		link_put(&far->link, FRAME_START, 0, start, n);
	else
		lose(far, "the program's arguments are too long");
	free(start);
}

/* What a shell says when it begins would come first, and is the usual reason */
static void take_greeting(struct far *far)
{
	char line[128], why[256];
	int ret = link_line(&far->link, line, sizeof(line));

	if (!ret)
		return;
	if (ret > 0 && !strcmp(line, GREETING HAMLYN_VERSION)) {
		far->state = FAR_GREETED;
		return;
	}
	if (ret > 0 && !strncmp(line, GREETING, strlen(GREETING)))
		snprintf(why, sizeof(why), "it has hamlyn-run %.40s, and this is " HAMLYN_VERSION,
			 line + strlen(GREETING));
	else
		snprintf(why, sizeof(why), "not hamlyn-run's agent answers there, but \"%.60s\"",
			 line);
	lose(far, why);
}

/* ---- frames ------------------------------------------------------------- */

static bool take_lines(struct far *far, const struct frame *frame)
{
	int which = frame->type == FRAME_ERR;

	far->owed[which] += frame->n;
	if (far->owed[which] > WINDOW_BYTES)
		return false;
	far->events->lines(far->context, (int)frame->rank, which, frame->data, frame->n);
	return true;
}

static bool take_fed(struct far *far, int64_t number)
{
	if (number < 0 || far->feed < 0) {
		far->feed = -1;
		return true;
	}
	if (number > WINDOW_BYTES - far->feed)
		return false;
	far->feed += number;
	return true;
}

static bool take_start(struct far *far, const struct frame *frame)
{
	int rank = (int)frame->rank;

	if (!far->starting)
		return false;
	far->starting--;
	if (frame->type == FRAME_STARTED)
		far->events->started(far->context, rank, (pid_t)frame_number(frame, 0));
	else
		far->events->unable(far->context, rank, (int)frame_number(frame, 0),
				    frame_number(frame, 1));
	return true;
}

static bool take_of_process(struct far *far, const struct frame *frame)
{
	int rank = (int)frame->rank;

	if (frame->rank > INT32_MAX || !far_has(far, rank))
		return false;
	switch (frame->type) {
	case FRAME_STARTED:
	case FRAME_UNABLE:
		return take_start(far, frame);
	case FRAME_DEAF:
		far->events->deaf(far->context, rank);
		return true;
	case FRAME_PMI:
		far->events->pmi(far->context, rank, frame->data, frame->n);
		return true;
	case FRAME_OUT:
	case FRAME_ERR:
		return take_lines(far, frame);
	case FRAME_EXIT:
		far->events->ended(far->context, rank, (pid_t)frame_number(frame, 0),
				   (int)frame_number(frame, 1));
		return true;
	default:
		return false;
	}
}

static void refuse(struct far *far, const struct frame *frame)
{
	char why[256];

	snprintf(why, sizeof(why), "%.*s", (int)(frame->n < 200 ? frame->n : 200), frame->data);
	far->events->refused(far->context, far->host, why);
}

/* Return: is it one that an agent sends? */
static bool take_frame(struct far *far, const struct frame *frame)
{
	switch (frame->type) {
	case FRAME_PONG:
		return true;
	case FRAME_BRIDGED:
		if (far->state == FAR_GREETED)
			far->state = FAR_BRIDGED;
		return true;
	case FRAME_FED:
		return take_fed(far, frame_number(frame, 0));
	case FRAME_REFUSE:
		refuse(far, frame);
		return true;
	case FRAME_DONE:
		/* One that has not heard yet that all are to end says so again */
		if (far->state == FAR_RUNNING && (frame->rank || !far->ending))
			far->state = FAR_DONE;
		return true;
	default:
		return take_of_process(far, frame);
	}
}

static int take_frames(struct far *far)
{
	struct frame frame;
	int ret = 0;

	while (far->state != FAR_LAUNCHED && far->state != FAR_GONE) {
		ret = link_next(&far->link, &frame);
		if (ret <= 0)
			break;
		if (!take_frame(far, &frame))
			return -EPROTO;
	}
	return ret;
}

static void end_of_link(struct far *far, int err)
{
	char why[256];

	/* All that it had to say was said */
	if (far->state == FAR_DONE) {
		far_leave(far);
		return;
	}
	if (err == -EPROTO)
		snprintf(why, sizeof(why), "what comes from there makes no sense");
	else if (far->state == FAR_LAUNCHED)
		snprintf(why, sizeof(why), "its launcher ended before hamlyn-run's agent answered");
	else
		snprintf(why, sizeof(why), "the connection to it has ended");
	lose(far, why);
}

void far_serve(struct far *far, bool readable, int64_t now)
{
	int ret = readable ? link_read(&far->link) : 0;

	if (ret > 0) {
		far->heard = now;
		far->unanswered = 0;
	}
	if (ret >= 0 && far->state == FAR_LAUNCHED)
		take_greeting(far);
	if (ret >= 0)
		ret = take_frames(far);
	/* What it sent before it ended was taken; an error of writing says no more than that end */
	if (ret >= 0 && far->state != FAR_GONE)
		link_flush(&far->link);
	if (ret < 0)
		end_of_link(far, ret);
}

/* ---- orders ------------------------------------------------------------- */

void far_order(struct far *far, enum frame_type type, int number)
{
	/* Nothing was started there, and nothing will be */
	if (far->state < FAR_RUNNING && type != FRAME_SIGNAL)
		lose(far, "it was not waited for any more");
	if (far->state != FAR_RUNNING && far->state != FAR_DONE)
		return;
	link_put(&far->link, type, (uint32_t)number, NULL, 0);
	if (type != FRAME_SIGNAL) {
		far->ending = true;
		far->state = FAR_RUNNING;
	}
	link_flush(&far->link);
}

void far_room(struct far *far, int which)
{
	if (!far->owed[which] || far->state == FAR_GONE)
		return;
	link_put_number(&far->link, FRAME_TAKEN, (uint32_t)which, (int64_t)far->owed[which]);
	far->owed[which] = 0;
	link_flush(&far->link);
}

void far_check(struct far *far, int64_t now)
{
	if (far->state == FAR_GONE)
		return;
	if (far->state == FAR_LAUNCHED) {
		if (now - far->begun >= GREET_MS)
			lose(far, "it has not answered within a minute");
		return;
	}
	if (link_unsent(&far->link) > UNSENT_BYTES) {
		lose(far, "it takes nothing any more");
		return;
	}
	if (now < far_next_check(far))
		return;
	if (far->unanswered++ == ASK_TIMES) {
		lose(far, "it does not answer any more");
		return;
	}
	far->asked = now;
	link_put(&far->link, FRAME_PING, 0, NULL, 0);
	link_flush(&far->link);
}

int64_t far_next_check(const struct far *far)
{
	int64_t since = far->heard > far->asked ? far->heard : far->asked;

	if (far->state == FAR_GONE)
		return INT64_MAX;
	return far->state == FAR_LAUNCHED ? far->begun + GREET_MS : since + ASK_MS;
}
