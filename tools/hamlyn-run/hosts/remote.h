/* SPDX-License-Identifier: GPL-2.0-only */
/* The other hosts of a job, all together. */
#ifndef RUN_REMOTE_H
#define RUN_REMOTE_H

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "hosts/hosts.h"
#include "hosts/link.h"

struct far;
struct job;

#define PLACE_BYTES	(HOST_BYTES + 8)

void remote_init(struct job *job);
void remote_uninit(struct job *job);

/* As many as can be, until one fails */
void remote_launch(struct job *job);

/* " on NAME", or nothing for this host */
void remote_place(const struct job *job, int rank, char place[PLACE_BYTES]);

/* Is there a host whose processes have not all begun, or not all ended? */
bool remote_is_starting(const struct job *job);
bool remote_is_running(const struct job *job);

/* FRAME_SIGNAL, FRAME_END or FRAME_KILL for all agents */
void remote_order(struct job *job, enum frame_type type, int number);

/* They are not waited for any more */
void remote_leave(struct job *job);

/* A child has been waited for: a launcher, perhaps */
void remote_reaped(struct job *job, pid_t pid);

/* The host whose process reads our standard input, while it wants more */
struct far *remote_reader(struct job *job);

/* Reads it once, if there is one */
void remote_feed(struct job *job);

/* Parts of lines are written that have waited for long enough */
void remote_flush_parts(struct job *job);

/* When there is something to do, even if nothing comes */
int64_t remote_next(const struct job *job);

/* From @entry on are their places. Return: behind them */
struct pollfd *remote_watch(const struct job *job, struct pollfd *entry);
void remote_serve(struct job *job, const struct pollfd *entry);

#endif /* RUN_REMOTE_H */
