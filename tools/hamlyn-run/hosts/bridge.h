/* SPDX-License-Identifier: GPL-2.0-only */
/* The bridge of a host, which an agent runs beside its processes. */
#ifndef RUN_BRIDGE_H
#define RUN_BRIDGE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "process.h"

/**
 * struct bridge - hamlyn-bridge, and who waits for it
 * @pid: its process, or 0
 * @device: the segment
 * @waiter: the process that ends with 0 when all peers are up, or 0
 */
struct bridge {
	pid_t pid;
	char *device;
	pid_t waiter;
};

/* @words: FRAME_BRIDGE, of @n bytes. Return: 0 or -errno; -EPROTO if there is a bridge. */
int bridge_start(struct bridge *bridge, const struct surroundings *surroundings,
		 const char *words, size_t n);

/* Ends it, and waits for that a short time; a segment that nobody uses goes with it */
void bridge_end(struct bridge *bridge);

#endif /* RUN_BRIDGE_H */
