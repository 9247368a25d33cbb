/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes of the fuzzer come and go, are stopped and killed. */
#ifndef FUZZ_CALLS_HERD_H
#define FUZZ_CALLS_HERD_H

#include "fuzz_calls_worker.h"

static struct {
	pid_t pid;
	uint32_t generation;
	bool stopped;
} processes[MAX_PROCESSES];

static uint64_t killed, ended, odd_ends;

/* Seeds of a process: the same again with the same --seed. */
static uint64_t seed_of(unsigned int process)
{
	uint64_t s = option.seed * 1000003 + process;

	s = ht_random(&s) + processes[process].generation;
	return ht_random(&s);
}

static int start_process(unsigned int i, uint16_t family)
{
	pid_t pid;

	processes[i].generation++;
	processes[i].stopped = false;
	fflush(stdout);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		process_main(i, seed_of(i), family);
	}
	processes[i].pid = pid;
	return pid < 0 ? -errno : 0;
}

/* What the killer did is expected; what it did not is worth a word. */
static void note_end(unsigned int i, int status)
{
	ended++;
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
		return;
	odd_ends++;
	if (odd_ends < 20)
		printf("# process %u (generation %u) ended by itself: %s %d\n",
		       i, processes[i].generation,
		       WIFSIGNALED(status) ? "signal" : "status",
		       WIFSIGNALED(status) ? WTERMSIG(status) :
					     WEXITSTATUS(status));
}

static void reap_and_restart(uint16_t family)
{
	unsigned int i;
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		for (i = 0; i < option.processes; i++) {
			if (processes[i].pid != pid)
				continue;
			note_end(i, status);
			start_process(i, family);
		}
	}
}

/* At @now; about one is killed a second. */
static void harass(struct thread *t, int64_t now)
{
	static int64_t next;
	unsigned int i = below(t, option.processes);
	pid_t pid = processes[i].pid;

	if (pid <= 0)
		return;
	if (processes[i].stopped) {
		kill(pid, SIGCONT);
		processes[i].stopped = false;
	}
	if (now > next) {
		kill(pid, SIGKILL);
		killed++;
		next = now + below(t, 2000) * HT_MS;
		return;
	}
	switch (below(t, 100)) {
	case 1 ... 4:
		kill(pid, SIGSTOP);
		processes[i].stopped = true;
		break;
	case 5 ... 20:
		kill(pid, SIGUSR1);
		break;
	}
}

/* With children and all: true once nobody is left. */
static bool end_processes(void)
{
	int64_t end = ht_now_ns() + ht_patience_ns();
	unsigned int i;
	pid_t pid;

	__atomic_store_n(&shared->stop, 1, __ATOMIC_RELAXED);
	for (i = 0; i < option.processes; i++)
		if (processes[i].pid > 0)
			kill(-processes[i].pid, SIGKILL);
	for (;;) {
		pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0)
			return errno == ECHILD;
		if (!pid && ht_now_ns() > end)
			return false;
		if (!pid)
			ht_sleep_ns(10 * HT_MS);
	}
}

#endif /* FUZZ_CALLS_HERD_H */
