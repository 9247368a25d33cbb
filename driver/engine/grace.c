// SPDX-License-Identifier: GPL-2.0-only
/*
 * The grace period: who takes something away from packets waits until no section that may have
 * found it goes on. Sections begin and end in port_linux.h. Compiled as a part of
 * build_datapath.c.
 */
#include <linux/delay.h>

#include "hml.h"

#define LOOKS_AT_ONCE	1000	/* at a section that goes on, before we sleep */

DEFINE_PER_CPU_SHARED_ALIGNED(struct hml_passage, hml_passage);

/* Until a processor has left the section that it is in, if it is in one. */
static void wait_for(const struct hml_passage *p)
{
	u32 turn = smp_load_acquire(&p->turn);	/* B8: its section before what follows here */
	u32 looks = 0;

	while (turn & 1 && smp_load_acquire(&p->turn) == turn) { /* B8: the same */
		if (++looks % LOOKS_AT_ONCE)
			cpu_relax();
		else
			usleep_range(10, 50);
	}
}

/**
 * hml_grace_wait() - wait for all packets that are landing now
 *
 * Bounded by what a terminus sends in one turn, for sections are not preempted. It
 * disturbs nobody, however often users ask for it: processors are looked at, and not
 * interrupted. A full barrier (B18).
 */
void hml_grace_wait(void)
{
	int cpu;

	might_sleep();
	smp_mb();		/* B8: taken away before sections are looked at */
	for_each_possible_cpu(cpu)
		wait_for(per_cpu_ptr(&hml_passage, cpu));
	smp_mb();		/* B18: an era that was read before it has ended */
}
