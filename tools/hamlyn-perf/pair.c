// SPDX-License-Identifier: GPL-2.0-only
/* Two pinned child processes, watched by their parent and ended by their id. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE	/* CPU sets */
#endif
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "clock.h"
#include "pair.h"
#include "wait.h"

void *pair_shared_new(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		fail("no shared memory of %zu bytes: %s", bytes, strerror(errno));
		return NULL;
	}
	return p;
}

void pair_shared_free(void *shared, size_t bytes)
{
	if (shared)
		munmap(shared, bytes);
}

int pair_pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return fail("cannot run on CPU %d: %s (--cpus A,B names the CPUs)",
			    cpu, strerror(errno));
	return 0;
}

static int swap_read(struct side *side, char *bytes, size_t length)
{
	struct pollfd pfd = { .fd = side->from_peer, .events = POLLIN };
	size_t done = 0;
	ssize_t n;

	while (done < length) {
		n = poll(&pfd, 1, (int)side->options->timeout_s * 1000);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail("the other process said nothing for %u s",
				    side->options->timeout_s);
		n = read(side->from_peer, bytes + done, length - done);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return fail("the other process ended early");
		done += (size_t)n;
	}
	return 0;
}

/*
 * Give the other side some bytes and get as many from it. Also a barrier.
 * @length fits a pipe, so that both can write before either reads.
 */
int pair_swap(struct side *side, const void *mine, void *theirs, size_t length)
{
	if (write(side->to_peer, mine, length) != (ssize_t)length)
		return fail("the other process ended early");
	return swap_read(side, theirs, length);
}

struct pair {
	struct side sides[2];
	int pipes[2][2];	/* [i]: what side i writes into */
	pid_t parent;
	pid_t pids[2];
	struct failure *failure;
};

static void close_pipes(struct pair *pair)
{
	int i;

	for (i = 0; i < 4; i++)
		if (pair->pipes[i / 2][i % 2] >= 0)
			close(pair->pipes[i / 2][i % 2]);
}

static int open_pipes(struct pair *pair)
{
	memset(pair->pipes, 0xff, sizeof(pair->pipes));
	if (pipe(pair->pipes[0]) < 0 || pipe(pair->pipes[1]) < 0) {
		close_pipes(pair);
		return fail("no pipe: %s", strerror(errno));
	}
	return 0;
}

static _Noreturn void child(struct pair *pair, int id, pair_fn fn, void *arg,
			    const sigset_t *signals)
{
	struct side *side = &pair->sides[id];

	/* Nobody would end us if the parent were killed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != pair->parent)
		_exit(1);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_SETMASK, signals, NULL);
	fail_redirect(pair->failure);
	wait_setup(side->options->ncpus, side->options->timeout_s);

	side->to_peer = pair->pipes[id][1];
	side->from_peer = pair->pipes[!id][0];
	/* Our copies of the peer's ends would hide its end from us. */
	close(pair->pipes[id][0]);
	close(pair->pipes[!id][1]);
	if (pair_pin(side->options->cpus[id]) < 0 || fn(side, arg) < 0) {
		fail("process %d failed and did not say why", id);
		_exit(1);
	}
	_exit(0);
}

static int start(struct pair *pair, pair_fn fn, void *arg, const sigset_t *signals)
{
	int i;

	for (i = 0; i < 2; i++) {
		pair->pids[i] = fork();
		if (pair->pids[i] < 0)
			return fail("no new process: %s", strerror(errno));
		if (!pair->pids[i])
			child(pair, i, fn, arg, signals);
	}
	return 0;
}

/* Reap what has ended. Returns how many are left, or -1 if one has failed. */
static int reap(struct pair *pair)
{
	int left = 0;
	int i, status;

	for (i = 0; i < 2; i++) {
		if (pair->pids[i] <= 0)
			continue;
		if (waitpid(pair->pids[i], &status, WNOHANG) != pair->pids[i]) {
			left++;
			continue;
		}
		pair->pids[i] = 0;
		if (WIFSIGNALED(status))
			return fail("process %d was killed by signal %d (%s)", i,
				    WTERMSIG(status), strsignal(WTERMSIG(status)));
		if (WEXITSTATUS(status))
			return -1;
	}
	return left;
}

static void end(struct pair *pair)
{
	int i;

	for (i = 0; i < 2; i++) {
		if (pair->pids[i] <= 0)
			continue;
		kill(pair->pids[i], SIGKILL);
		waitpid(pair->pids[i], NULL, 0);
	}
}

/*
 * The parent sleeps in sigtimedwait(): waking up now and then to look would
 * disturb a core that is being measured.
 */
static int watch(struct pair *pair, uint64_t limit_s)
{
	uint64_t deadline = clock_ns() + limit_s * NSEC_PER_SEC;
	struct timespec second = { .tv_sec = 1 };
	sigset_t sigchld;
	int left;

	sigemptyset(&sigchld);
	sigaddset(&sigchld, SIGCHLD);
	for (;;) {
		left = reap(pair);
		if (left <= 0)
			return left;
		if (clock_ns() > deadline)
			return fail("no result within %llu s",
				    (unsigned long long)limit_s);
		sigtimedwait(&sigchld, NULL, &second);
	}
}

/* Run @fn as side 0 and side 1 in two processes. Only set-up is inherited. */
int pair_run(const struct options *options, pair_fn fn, void *arg, void *shared)
{
	struct pair pair = { .parent = getpid() };
	sigset_t block, old;
	int i, ret;

	pair.failure = pair_shared_new(sizeof(*pair.failure));
	if (!pair.failure)
		return -1;
	for (i = 0; i < 2; i++)
		pair.sides[i] = (struct side){ .id = i, .options = options,
					       .shared = shared };
	sigemptyset(&block);
	sigaddset(&block, SIGCHLD);
	sigprocmask(SIG_BLOCK, &block, &old);
	ret = open_pipes(&pair);
	if (!ret) {
		ret = start(&pair, fn, arg, &old);
		close_pipes(&pair);
		/* Each wait inside is bounded; this bounds their sum. */
		if (!ret)
			ret = watch(&pair, options->timeout_s * 4ULL);
		end(&pair);
	}
	sigprocmask(SIG_SETMASK, &old, NULL);
	if (pair.failure->set)
		ret = fail("%s", pair.failure->text);
	pair_shared_free(pair.failure, sizeof(*pair.failure));
	return ret;
}
