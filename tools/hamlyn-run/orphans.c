// SPDX-License-Identifier: GPL-2.0-only
/*
 * The children of children. Only the kernel knows them: it lists our children in a file that
 * some are built without, and then there are none as far as we know.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "message.h"
#include "orphans.h"

struct child {
	pid_t pid;
	bool orphan;
};

static struct child *find(const struct orphans *orphans, pid_t pid)
{
	size_t i;

	for (i = 0; i < orphans->n; i++)
		if (orphans->known[i].pid == pid)
			return &orphans->known[i];
	return NULL;
}

static void add(struct orphans *orphans, pid_t pid, bool orphan)
{
	if (orphans->n == orphans->room) {
		orphans->room = 2 * orphans->room + 16;
		orphans->known = enlarge(orphans->known,
					 orphans->room * sizeof(*orphans->known));
	}
	orphans->known[orphans->n++] = (struct child){ pid, orphan };
}

void orphans_except(struct orphans *orphans, pid_t pid)
{
	add(orphans, pid, false);
}

void orphans_forget(struct orphans *orphans, pid_t pid)
{
	struct child *child = find(orphans, pid);

	if (child)
		*child = orphans->known[--orphans->n];
}

/* Not if it has ended, or if /proc is another namespace's and the number somebody else's */
static bool is_child(pid_t pid)
{
	siginfo_t info = { 0 };

	return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && !info.si_pid;
}

/* Programs may take a second SIGTERM for haste */
static void ask(struct orphans *orphans, pid_t pid)
{
	if (find(orphans, pid))
		return;
	add(orphans, pid, true);
	kill(pid, SIGTERM);
	/* One that is stopped would not see it */
	kill(pid, SIGCONT);
}

static void end(struct orphans *orphans, pid_t pid)
{
	(void)orphans;
	kill(pid, SIGKILL);
}

/* @act on each orphan, or on none. Return: how many there are that we may signal */
static size_t each(struct orphans *orphans, void (*act)(struct orphans *orphans, pid_t pid))
{
	const struct child *child;
	char path[64];
	size_t n = 0;
	FILE *file;
	int pid;

	snprintf(path, sizeof(path), "/proc/self/task/%ld/children", (long)getpid());
	file = fopen(path, "re");
	if (!file)
		return 0;
	while (fscanf(file, "%d", &pid) == 1) {
		child = find(orphans, pid);
		if ((child && !child->orphan) || !is_child(pid))
			continue;
		if (act)
			act(orphans, pid);
		n += !kill(pid, 0);
	}
	fclose(file);
	return n;
}

void orphans_ask(struct orphans *orphans)
{
	each(orphans, ask);
}

void orphans_kill(struct orphans *orphans)
{
	each(orphans, end);
}

bool orphans_left(struct orphans *orphans)
{
	return each(orphans, NULL) > 0;
}

void orphans_init(struct orphans *orphans)
{
	*orphans = (struct orphans){ 0 };
	/* Who became hamlyn-run by exec may have left children, which are none of the job's */
	each(orphans, orphans_except);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

void orphans_uninit(struct orphans *orphans)
{
	free(orphans->known);
}
