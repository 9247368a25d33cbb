// SPDX-License-Identifier: MIT
#include "control.h"
#include "error.h"
#include "named.h"

static void arrive(TPPI_NodeId src, int size)
{
	struct stache_named *named = stache_named_find(TPPI_recv_P(), KIND_BARRIER);
	void *wait = TPPI_recv_P();
	unsigned int threads = (uintptr_t)TPPI_recv_P();

	(void)size;
	if (CONTROL(CONTROL_NO_WAIT)) {
		stache_named_answer(src, wait, 0);
		return;
	}
	stache_named_wait(named, src, wait);
	if (++named->value < threads)
		return;
	if (named->value > threads)
		stache_die("barrier %p is for %u threads, and for %zu", named->name, threads,
			   (size_t)named->value);
	named->value = 0;
	stache_named_wake_all(named, 0);
}

void stache_barrier(const void *name, unsigned int threads)
{
	stache_named_ask(name, arrive, threads);
}
