/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes that those of the job have started, and that have become our children when
 * their parent ended.
 */
#ifndef RUN_ORPHANS_H
#define RUN_ORPHANS_H

#include <stddef.h>
#include <stdbool.h>
#include <sys/types.h>

/**
 * struct orphans - what is known of our children; those that are not in here are orphans
 * @known: children that are no orphans, and orphans that have been asked to end
 * @n: how many
 * @room: how many fit
 */
struct orphans {
	struct child *known;
	size_t n;
	size_t room;
};

/* From now on they come to us */
void orphans_init(struct orphans *orphans);
void orphans_uninit(struct orphans *orphans);

/* @pid is one of the job's own */
void orphans_except(struct orphans *orphans, pid_t pid);

/* @pid has been waited for: its number may come again */
void orphans_forget(struct orphans *orphans, pid_t pid);

/* Those that have not been asked yet get SIGTERM */
void orphans_ask(struct orphans *orphans);
void orphans_kill(struct orphans *orphans);

/* Are there any that can be signalled? */
bool orphans_left(struct orphans *orphans);

#endif /* RUN_ORPHANS_H */
