/* SPDX-License-Identifier: GPL-2.0-only */
/* The threads of a NIC of the kernel device, as /proc shows them. */
#ifndef HAMLYN_PERF_KTHREAD_H
#define HAMLYN_PERF_KTHREAD_H

#include <sys/types.h>

#include "base/perf.h"

#define KTHREADS_MAX	16

struct kthreads {
	pid_t pids[KTHREADS_MAX];
	uint32_t count;
};

/* Of @device, /dev/hamlynN. None may be found: another PID namespace. */
void kthreads_find(struct kthreads *threads, const char *device);
/* Seconds that they were running, all together. */
double kthreads_cpu(const struct kthreads *threads);
/* Is any of them running, or waiting for a processor? */
bool kthreads_run(const struct kthreads *threads);

#endif /* HAMLYN_PERF_KTHREAD_H */
