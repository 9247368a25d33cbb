// SPDX-License-Identifier: GPL-2.0-only
/*
 * Counting system calls on the fast path. A child exchanges messages, with a
 * partner that echoes or with itself, between two system calls that no library
 * makes (getppid with arguments); its parent traces it and counts what the
 * child calls in between. There is no tracing cost where there is no call.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/hamlyn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "load/crew.h"
#include "load/endpoint.h"
#include "load/pair.h"

#define DEFAULT_N	10000
#define WARM_UP		1000
#define UNDER_WAY	8		/* messages: an engine with work stays awake */
#define MARK		0x48414d4cUL	/* first argument of the marking calls */

struct tally {
	uint64_t kicks;
	uint64_t waits;
	uint64_t own;		/* this program's, while it waits: yields, clock */
	uint64_t others;
	long other;		/* number of the first of the others */
};

/* ---- who is counted ----------------------------------------------------- */

static const struct endpoint_attr attr = {
	.bytes = 4096, .metas = 1, .notifications = 31,
};

static int put(struct endpoint *ep)
{
	static const unsigned char data[16];

	return endpoint_send(ep, &ep->peer, data, sizeof(data)) < 0 ? -1 : 0;
}

/* Every message that comes back, from the partner or from here, is sent again. */
static int converse(struct endpoint *ep, uint64_t n, bool first)
{
	uint64_t sent = 0, received;
	struct hamlyn_nq_entry entry;

	for (; first && sent < n && sent < UNDER_WAY; sent++)
		if (put(ep) < 0)
			return -1;
	for (received = 0; received < n; received++) {
		if (endpoint_recv(ep, &entry) < 0)
			return -1;
		if (sent == n)
			continue;
		if (put(ep) < 0)
			return -1;
		sent++;
	}
	return 0;
}

static void mark(unsigned long which)
{
	syscall(SYS_getppid, MARK, which);
}

static int counted(struct side *side, struct endpoint *ep, uint64_t n)
{
	int ret = converse(ep, WARM_UP, !side->id);

	mark(1);
	if (!ret)
		ret = converse(ep, n, !side->id);
	mark(2);
	return ret;
}

static int run_child(struct side *side, uint64_t n)
{
	struct endpoint ep;
	char bye = 0;
	int ret;

	if (endpoint_open(&ep, side->options, &attr) < 0)
		return -1;
	if (side->options->self) {
		ep.peer = ep.own;
		ret = counted(side, &ep, n);
	} else {
		ret = endpoint_meet(&ep, side);
		if (!ret && side->id)
			ret = converse(&ep, WARM_UP + n, false);
		else if (!ret)
			ret = counted(side, &ep, n);
		if (!ret)
			ret = pair_swap(side, &bye, &bye, sizeof(bye));
	}
	endpoint_close(&ep);
	return ret;
}

/* ---- who counts --------------------------------------------------------- */

static void tally_add(struct tally *tally, const struct __ptrace_syscall_info *info)
{
	unsigned long request = (unsigned long)info->entry.args[1];

	if (info->entry.nr == SYS_fdatasync ||
	    (info->entry.nr == SYS_ioctl && request == HAMLYN_IOC_KICK)) {
		tally->kicks++;
	} else if (info->entry.nr == SYS_ioctl && request == HAMLYN_IOC_WAIT) {
		tally->waits++;
	} else if (info->entry.nr == SYS_sched_yield ||
		   info->entry.nr == SYS_clock_gettime) {
		tally->own++;
	} else {
		if (!tally->others++)
			tally->other = (long)info->entry.nr;
	}
}

/* One stop of the child. Returns the signal to hand on to it. */
static int look(pid_t pid, int status, int *phase, struct tally *tally)
{
	struct __ptrace_syscall_info info;
	int sig = WSTOPSIG(status);

	if (sig != (SIGTRAP | 0x80))
		return sig == SIGTRAP || sig == SIGSTOP ? 0 : sig;
	if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) < 0 ||
	    info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return 0;
	if (info.entry.nr == SYS_getppid && info.entry.args[0] == MARK)
		*phase = (int)info.entry.args[1];
	else if (*phase == 1)
		tally_add(tally, &info);
	return 0;
}

static int child_end(int status)
{
	if (WIFSIGNALED(status))
		return fail("the counted process was killed by signal %d (%s)",
			    WTERMSIG(status), strsignal(WTERMSIG(status)));
	return WEXITSTATUS(status) ? fail("the counted process failed") : 0;
}

/* Follow the child to its end. The tracer must be the thread that began it. */
static int follow(pid_t pid, struct tally *tally)
{
	int phase = 0;
	int status, sig;

	if (waitpid(pid, &status, 0) != pid || !WIFSTOPPED(status))
		return fail("the counted process did not start");
	if (ptrace(PTRACE_SETOPTIONS, pid, 0,
		   PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0)
		return fail("cannot trace a process: %s", strerror(errno));
	for (sig = 0;;) {
		if (ptrace(PTRACE_SYSCALL, pid, 0, sig) < 0)
			return fail("cannot trace a process: %s", strerror(errno));
		if (waitpid(pid, &status, 0) != pid)
			return fail("lost the counted process: %s", strerror(errno));
		if (!WIFSTOPPED(status))
			break;
		sig = look(pid, status, &phase, tally);
	}
	return child_end(status) < 0 ? -1 :
	       phase == 2 ? 0 : fail("the counted process skipped its marks");
}

struct job {
	uint64_t n;
	struct tally *tally;
};

static _Noreturn void traced(struct side *side, struct job *job)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0) {
		fail("a process may not be traced here: %s", strerror(errno));
		_exit(1);
	}
	raise(SIGSTOP);
	_exit(run_child(side, job->n) < 0 ? 1 : 0);
}

/* Side 0 forks the counted process and traces it; side 1 is its partner. */
static int count_side(struct side *side, void *arg)
{
	struct job *job = arg;
	pid_t pid;
	int ret;

	if (side->id)
		return side->options->self ? 0 : run_child(side, job->n);
	pid = fork();
	if (pid < 0)
		return fail("no new process: %s", strerror(errno));
	if (!pid)
		traced(side, job);
	ret = follow(pid, job->tally);
	if (ret < 0) {
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	return ret;
}

static void print(const struct options *options, uint64_t n, const struct tally *tally)
{
	uint64_t calls = tally->kicks + tally->waits + tally->others;
	double each = (double)calls / (double)n;

	if (options->format == FORMAT_JSON) {
		printf("{\"system\":\"hamlyn\",\"test\":\"syscalls\",\"size\":16,"
		       "\"syscalls_per_message\":%.6f,\"messages\":%" PRIu64
		       ",\"kicks\":%" PRIu64 ",\"waits\":%" PRIu64 ",\"others\":%" PRIu64
		       ",\"own\":%" PRIu64 "}\n", each, n, tally->kicks,
		       tally->waits, tally->others, tally->own);
		return;
	}
	if (options->format == FORMAT_CSV) {
		printf("system,test,size,syscalls_per_message,messages,kicks,waits,others,own\n"
		       "hamlyn,syscalls,16,%.6f,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%"
		       PRIu64 ",%" PRIu64 "\n", each, n, tally->kicks, tally->waits,
		       tally->others, tally->own);
		return;
	}
	printf("system calls per message: %g (%" PRIu64 " messages)\n", each, n);
	printf("  KICK %" PRIu64 ", WAIT %" PRIu64 ", others %" PRIu64, tally->kicks,
	       tally->waits, tally->others);
	if (tally->others)
		printf(" (the first has number %ld)", tally->other);
	printf("\n  not counted: %" PRIu64 " sched_yield and clock_gettime of this program "
	       "while it waited\n", tally->own);
}

int cmd_syscalls(const struct options *options)
{
	struct job job = { .n = options->n ? options->n : DEFAULT_N };
	int ret;

	job.tally = crew_shared_new(sizeof(*job.tally));
	if (!job.tally)
		return -1;
	ret = pair_run(options, count_side, &job, NULL);
	if (!ret)
		print(options, job.n, job.tally);
	crew_shared_free(job.tally, sizeof(*job.tally));
	return ret;
}
