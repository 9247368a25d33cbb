// SPDX-License-Identifier: GPL-2.0-only
/*
 * process_vm_writev(): the kernel copies once, from one process into the
 * other one's private memory, if the one might also trace the other. A word
 * in shared memory says that something has arrived; the receiver polls it.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "system/ring.h"

struct vm_chan {
	struct ring_chan ring;
	unsigned char *in;	/* our own, which the peer writes to */
	pid_t peer;
	unsigned char *theirs;	/* the peer's, at its address */
};

/* What one side has to know of the other one. */
struct vm_home {
	pid_t pid;
	unsigned char *in;
};

static inline struct vm_chan *to_vm(struct chan *chan)
{
	return container_of(to_ring(chan), struct vm_chan, ring);
}

static ssize_t write_to(pid_t pid, void *to, void *from, size_t size)
{
	struct iovec local = { .iov_base = from, .iov_len = size };
	struct iovec remote = { .iov_base = to, .iov_len = size };

	return process_vm_writev(pid, &local, 1, &remote, 1, 0);
}

/* Yama may keep even the same user out; 1 lets those in who are invited. */
static int yama_scope(void)
{
	FILE *file = fopen("/proc/sys/kernel/yama/ptrace_scope", "r");
	int scope = 0;

	if (!file)
		return 0;
	if (fscanf(file, "%d", &scope) != 1)
		scope = 0;
	fclose(file);
	return scope;
}

static const char *vm_missing(const struct options *options)
{
	static char text[96];
	char to = 0, from = 1;

	(void)options;
	if (write_to(getpid(), &to, &from, 1) != 1) {
		snprintf(text, sizeof(text), "process_vm_writev() is not to be had: %s",
			 strerror(errno));
		return text;
	}
	if (yama_scope() >= 3 || (yama_scope() == 2 && geteuid()))
		return "kernel.yama.ptrace_scope forbids it (1 or 0 would not)";
	return NULL;
}

static void *vm_make(const struct options *options)
{
	(void)options;
	return ring_stage_new();
}

static void vm_unmake(void *stage)
{
	ring_stage_free(stage);
}

static void vm_close(struct chan *chan)
{
	ring_close(to_ring(chan));
	free(to_vm(chan)->in);
	free(to_vm(chan));
}

static int meet(struct vm_chan *vm)
{
	struct vm_home mine = { .pid = getpid(), .in = vm->in };
	struct vm_home theirs;

#ifdef PR_SET_PTRACER
	/* Fails without Yama, which is fine. */
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
#endif
	if (pair_swap(vm->ring.chan.side, &mine, &theirs, sizeof(mine)) < 0)
		return -1;
	vm->peer = theirs.pid;
	vm->theirs = theirs.in;
	return 0;
}

static struct chan *vm_open(struct side *side, void *stage)
{
	struct vm_chan *vm = calloc(1, sizeof(*vm));

	if (!vm) {
		fail("out of memory");
		return NULL;
	}
	vm->in = chan_alloc(chan_room());
	if (!vm->in || ring_open(&vm->ring, side, stage, &sys_vm_writev) < 0 ||
	    meet(vm) < 0) {
		vm_close(&vm->ring.chan);
		return NULL;
	}
	vm->ring.chan.in = vm->in;
	return &vm->ring.chan;
}

static int vm_commit(struct chan *chan)
{
	struct vm_chan *vm = to_vm(chan);
	ssize_t n;

	if (chan->size) {
		n = write_to(vm->peer, vm->theirs + chan->out_pos * chan->stride,
			     chan_out(chan), chan->size);
		if (n != (ssize_t)chan->size)
			return fail("process_vm_writev() of %zu bytes: %s%s", chan->size,
				    n < 0 ? strerror(errno) : "not all were written",
				    n < 0 && errno == EPERM ?
				    " (it needs the right to trace the other process)" : "");
	}
	ring_announce(&vm->ring);
	return 0;
}

static const void *vm_take(struct chan *chan)
{
	const unsigned char *buffer = chan_in(chan);

	return ring_take(chan) ? buffer : NULL;
}

const struct system sys_vm_writev = {
	.name = "vm-writev",
	.what = "process_vm_writev(), the receiver polls a word in shared memory",
	.tests = 1 << TEST_LAT | 1 << TEST_BW | 1 << TEST_RATE,
	.missing = vm_missing,
	.make = vm_make,
	.unmake = vm_unmake,
	.open = vm_open,
	.close = vm_close,
	.prepare = ring_prepare,
	.reserve = ring_reserve,
	.commit = vm_commit,
	.take = vm_take,
	.release = ring_release,
};
