/* SPDX-License-Identifier: GPL-2.0-only */
/* The network namespace of the second process. */
#ifndef HAMLYN_PERF_NETNS_H
#define HAMLYN_PERF_NETNS_H

/* Into that of @name: ip-netns's, a path, or a process id. -1 with the failure told. */
int netns_enter(const char *name);

/*
 * The same for a while: a descriptor by which netns_leave() comes back, or -1 with the failure
 * told. @name may be NULL: then nothing happens, and the descriptor is -2.
 */
int netns_visit(const char *name);
int netns_leave(int own);

#endif /* HAMLYN_PERF_NETNS_H */
