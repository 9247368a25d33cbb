/* SPDX-License-Identifier: GPL-2.0-only */
/* What is in use: by the device, and by this process. */
#ifndef FAIL_NTH_STATE_H
#define FAIL_NTH_STATE_H

#include "fail_nth_arm.h"
#include "fuzz_calls_figures.h"

#include <dirent.h>

struct state {
	struct figures f;
	uint64_t pinned;
	uint64_t locked;
	unsigned int fds;
	int next_fd;		/* one that is reserved is not listed */
};

static unsigned int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (d && readdir(d))
		n++;
	if (d)
		closedir(d);
	return n;
}

static void state_own(struct state *s)
{
	s->pinned = proc_number("/proc/self/status", "VmPin");
	s->locked = proc_number("/proc/self/status", "VmLck");
	s->fds = count_fds();
	s->next_fd = dup(0);
	close(s->next_fd);
}

static int state_take(struct state *s)
{
	state_own(s);
	return figures_take(&s->f);
}

/* NULL, or what is not as it was. */
static const char *state_differs(const struct state *start)
{
	struct state now;
	enum figure differs;

	differs = figures_settle(&start->f, &now.f, 10 * HT_SEC);
	state_own(&now);
	if (differs != FIGURES)
		return figure_names[differs];
	if (now.pinned != start->pinned)
		return "VmPin";
	if (now.locked != start->locked)
		return "VmLck";
	if (now.fds != start->fds)
		return "open descriptors";
	if (now.next_fd != start->next_fd)
		return "reserved descriptors";
	return NULL;
}

/* ---- kmemleak ---- */

#define KMEMLEAK	"/sys/kernel/debug/kmemleak"

/* 1: it found something, which is printed; 0: nothing; -1: it is off. */
static int find_leaks(void)
{
	char line[256];
	int found = 0;
	FILE *f;

	if (write_text(KMEMLEAK, "scan"))
		return -1;
	/* What it finds is not reported before it is some seconds old. */
	sleep(7);
	write_text(KMEMLEAK, "scan");
	f = fopen(KMEMLEAK, "re");
	while (f && fgets(line, sizeof(line), f)) {
		printf("# %s", line);
		found = 1;
	}
	if (f)
		fclose(f);
	return found;
}

#endif /* FAIL_NTH_STATE_H */
