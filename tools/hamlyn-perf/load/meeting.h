/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the two processes meet: an address in the abstract namespace, which leaves no file behind.
 * Nobody else can guess it; who reads it in /proc/net/unix can only spoil what is measured.
 */
#ifndef HAMLYN_PERF_MEETING_H
#define HAMLYN_PERF_MEETING_H

#include "load/pair.h"

struct meeting {
	char address[64];
};

/* A new one, that begins with @prefix. */
int meeting_make(struct meeting *meeting, const char *prefix);
/* Side 1 tells its own, when it is there already; side 0 gets it. */
int meeting_tell(struct meeting *meeting, struct side *side);

#endif /* HAMLYN_PERF_MEETING_H */
