/* SPDX-License-Identifier: GPL-2.0-only */
/* Child processes, watched by their parent and ended by their ids. */
#ifndef HAMLYN_PERF_CREW_H
#define HAMLYN_PERF_CREW_H

#include <signal.h>
#include <sys/types.h>

#include "base/perf.h"

#define CREW_MAX	(PERF_MAX_SENDERS + 1)

typedef int (*crew_fn)(void *arg, uint32_t member);

struct crew {
	const struct options *options;
	uint32_t count;
	pid_t pids[CREW_MAX];
	struct failure *failure;	/* shared by all */
	sigset_t signals;		/* to go back to */
};

int crew_start(struct crew *crew, const struct options *options, uint32_t count,
	       crew_fn fn, void *arg);
int crew_finish(struct crew *crew, int ret, uint64_t limit_s);

/* Zeroed bytes that the caller and all its children see. */
void *crew_shared_new(size_t bytes);
void crew_shared_free(void *shared, size_t bytes);

#endif /* HAMLYN_PERF_CREW_H */
