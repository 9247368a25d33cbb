// SPDX-License-Identifier: GPL-2.0-only
/* Child processes, watched by their parent and ended by their ids. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/crew.h"
#include "base/wait.h"

void *crew_shared_new(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED) {
		fail("no shared memory of %zu bytes: %s", bytes, strerror(errno));
		return NULL;
	}
	return p;
}

void crew_shared_free(void *shared, size_t bytes)
{
	if (shared)
		munmap(shared, bytes);
}

static _Noreturn void child(struct crew *crew, uint32_t member, pid_t parent, crew_fn fn,
			    void *arg)
{
	/* Nobody would end us if the parent were killed. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	signal(SIGPIPE, SIG_IGN);
	sigprocmask(SIG_SETMASK, &crew->signals, NULL);
	fail_redirect(crew->failure);
	wait_setup(crew->options->ncpus, crew->options->timeout_s);
	if (fn(arg, member) < 0) {
		fail("process %u failed and did not say why", member);
		_exit(1);
	}
	_exit(0);
}

/* Reap what has ended. Returns how many are left, or -1 if one has failed. */
static int reap(struct crew *crew)
{
	int left = 0;
	uint32_t i;
	int status;

	for (i = 0; i < crew->count; i++) {
		if (crew->pids[i] <= 0)
			continue;
		if (waitpid(crew->pids[i], &status, WNOHANG) != crew->pids[i]) {
			left++;
			continue;
		}
		crew->pids[i] = 0;
		if (WIFSIGNALED(status))
			return fail("process %u was killed by signal %d (%s)", i,
				    WTERMSIG(status), strsignal(WTERMSIG(status)));
		if (WEXITSTATUS(status))
			return -1;
	}
	return left;
}

static void end(struct crew *crew)
{
	uint32_t i;

	for (i = 0; i < crew->count; i++) {
		if (crew->pids[i] <= 0)
			continue;
		kill(crew->pids[i], SIGKILL);
		waitpid(crew->pids[i], NULL, 0);
	}
}

/*
 * The parent sleeps in sigtimedwait(): waking up now and then to look would
 * disturb a core that is being measured.
 */
static int watch(struct crew *crew, uint64_t limit_s)
{
	uint64_t deadline = clock_ns() + limit_s * NSEC_PER_SEC;
	struct timespec second = { .tv_sec = 1 };
	sigset_t sigchld;
	int left;

	sigemptyset(&sigchld);
	sigaddset(&sigchld, SIGCHLD);
	for (;;) {
		left = reap(crew);
		if (left <= 0)
			return left;
		if (clock_ns() > deadline)
			return fail("no result within %llu s",
				    (unsigned long long)limit_s);
		sigtimedwait(&sigchld, NULL, &second);
	}
}

/* Run @fn in @count processes. crew_finish() has to be called unless this fails. */
int crew_start(struct crew *crew, const struct options *options, uint32_t count,
	       crew_fn fn, void *arg)
{
	pid_t parent = getpid();
	sigset_t block;
	pid_t pid;

	*crew = (struct crew){ .options = options };
	if (count > CREW_MAX)
		return fail("at most %d processes, not %u", CREW_MAX, count);
	crew->failure = crew_shared_new(sizeof(*crew->failure));
	if (!crew->failure)
		return -1;
	sigemptyset(&block);
	sigaddset(&block, SIGCHLD);
	sigprocmask(SIG_BLOCK, &block, &crew->signals);
	while (crew->count < count) {
		pid = fork();
		if (pid < 0) {
			fail("no new process: %s", strerror(errno));
			return crew_finish(crew, -1, 0);
		}
		if (!pid)
			child(crew, crew->count, parent, fn, arg);
		crew->pids[crew->count++] = pid;
	}
	return 0;
}

/*
 * Wait until all have ended, unless @ret is negative already, and end those
 * that are left. Returns @ret, or -1 with the first failure of any of them.
 */
int crew_finish(struct crew *crew, int ret, uint64_t limit_s)
{
	if (!ret)
		ret = watch(crew, limit_s);
	end(crew);
	sigprocmask(SIG_SETMASK, &crew->signals, NULL);
	if (crew->failure->set)
		ret = fail("%s", crew->failure->text);
	crew_shared_free(crew->failure, sizeof(*crew->failure));
	return ret;
}
