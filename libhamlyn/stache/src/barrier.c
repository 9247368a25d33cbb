// SPDX-License-Identifier: MIT
#include "control.h"
#include "error.h"
#include "named.h"

static void arrive(TPPI_NodeId src, int size)
{
	uintptr_t threads;
	void *wait;
	struct stache_named *named = stache_named_receive(KIND_BARRIER, &wait, &threads);

	(void)size;
	if (CONTROL(CONTROL_NO_WAIT)) {
		stache_named_answer(src, wait, 0);
		return;
	}
	stache_named_wait(named, src, wait);
	if (++named->value < threads)
		return;
	if (named->value > threads)
		stache_die("barrier %p is for %zu threads, and for %zu", named->name,
			   (size_t)threads, (size_t)named->value);
	named->value = 0;
	stache_named_wake_all(named, 0);
}

void stache_barrier(const void *name, unsigned int threads)
{
	stache_named_ask(name, arrive, threads);
}
