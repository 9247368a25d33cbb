/* SPDX-License-Identifier: GPL-2.0-only */
/* Channels over two file descriptors: what sys_unix.c, sys_pipe.c, sys_tcp.c, sys_vsock.c share. */
#ifndef HAMLYN_PERF_FDCHAN_H
#define HAMLYN_PERF_FDCHAN_H

#include "system/chan.h"

/* fds[side][0] is what the side reads from, fds[side][1] what it writes to. */
struct fd_stage {
	int fds[2][2];
};

struct fd_stage *fd_stage_new(void);
/* Of a connection that goes both ways, whose ends are the stage's from then on, or closed. */
struct fd_stage *fd_stage_both(const int ends[2]);
void fd_stage_free(void *stage);
struct chan *fd_open(struct side *side, void *stage, const struct system *system);
/* The same, but the side asks again and again where fd_open()'s would sleep. */
struct chan *fd_open_spin(struct side *side, void *stage, const struct system *system);
void fd_close(struct chan *chan);
void *fd_reserve(struct chan *chan);
int fd_commit(struct chan *chan);
const void *fd_take(struct chan *chan);
int fd_release(struct chan *chan);

/* What they have in common in their struct system. */
#define FD_METHODS					\
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE, \
	.unmake = fd_stage_free,			\
	.close = fd_close,				\
	.reserve = fd_reserve,				\
	.commit = fd_commit,				\
	.take = fd_take,				\
	.release = fd_release

#endif /* HAMLYN_PERF_FDCHAN_H */
