// SPDX-License-Identifier: GPL-2.0-only
/* Two pipes, with processes that sleep or poll. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "system/fdchan.h"

static void *pipe_make(const struct options *options)
{
	struct fd_stage *stage = fd_stage_new();
	int there[2], back[2];

	(void)options;
	if (!stage)
		return NULL;
	if (pipe(there) < 0) {
		fail("no pipe: %s", strerror(errno));
		fd_stage_free(stage);
		return NULL;
	}
	stage->fds[1][0] = there[0];
	stage->fds[0][1] = there[1];
	if (pipe(back) < 0) {
		fail("no pipe: %s", strerror(errno));
		fd_stage_free(stage);
		return NULL;
	}
	stage->fds[0][0] = back[0];
	stage->fds[1][1] = back[1];
	return stage;
}

static struct chan *pipe_open(struct side *side, void *stage)
{
	return fd_open(side, stage, &sys_pipe);
}

static struct chan *spin_open(struct side *side, void *stage)
{
	return fd_open_spin(side, stage, &sys_pipe_spin);
}

const struct system sys_pipe = {
	.name = "pipe",
	.what = "pipe, blocking",
	.make = pipe_make,
	.open = pipe_open,
	FD_METHODS,
};

const struct system sys_pipe_spin = {
	.name = "pipe-spin",
	.what = "pipe, both sides poll",
	.make = pipe_make,
	.open = spin_open,
	FD_METHODS,
};
