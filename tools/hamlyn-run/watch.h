/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RUN_WATCH_H
#define RUN_WATCH_H

#include <poll.h>

/* A place for poll(); @fd: -1: not now */
static inline void watch(struct pollfd *entry, int fd, short events)
{
	*entry = (struct pollfd){ .fd = fd, .events = events };
}

#endif /* RUN_WATCH_H */
