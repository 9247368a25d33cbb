// SPDX-License-Identifier: GPL-2.0-only
/*
 * When and where the threads run. What polls for a message keeps its processor, and each of them
 * has next to nothing to do, but at once.
 */
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bridge.h"

#define SLICE_NS	100000		/* the shortest that there is */
#define MOST_APART	8		/* times in a row that the work was on another processor */
#define LEAST_STAY_NS	(20 * NS_PER_MS)

/* struct sched_attr, which is in one of two headers that exclude each other, or in none */
struct attributes {
	u32 size;
	u32 policy;
	u64 flags;
	s32 nice;
	u32 priority;
	u64 runtime;
	u64 deadline;
	u64 period;
};

/*
 * Whoever wakes up is let in before the slice of who runs is over only if its own is shorter: so it
 * is from Linux 6.12 on. Older ones take no notice. Threads to come have it as well.
 */
void place_init(void)
{
	struct attributes a = { .size = sizeof(a) };

	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) || a.policy != SCHED_OTHER)
		return;
	a.runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &a, 0);
}

/* Not to stay: it may be moved away again at once. */
static void go_to(u32 cpu)
{
	cpu_set_t may, there;

	CPU_ZERO(&there);
	CPU_SET(cpu, &there);
	if (!sched_getaffinity(0, sizeof(may), &may) &&
	    !sched_setaffinity(0, sizeof(there), &there))
		sched_setaffinity(0, sizeof(may), &may);
}

/*
 * The calling thread was woken from there. To wake somebody on another processor is an interrupt,
 * and that takes a guest 20 us; the system itself moves whom it wakes only to where there is less
 * to be done. If it has a better place, one that is free, this one is not insisted on.
 */
void place_follow(struct place *p, u32 cpu)
{
	int64_t now;

	if (cpu >= CPU_SETSIZE || cpu == (u32)sched_getcpu()) {
		p->apart = 0;
		return;
	}
	if (++p->apart < MOST_APART)
		return;
	p->apart = 0;
	now = h__now_ns();
	if (now - p->moved_ns < LEAST_STAY_NS)
		return;
	p->moved_ns = now;
	go_to(cpu);
}
