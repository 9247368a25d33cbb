// SPDX-License-Identifier: MIT
#include "control.h"
#include "error.h"
#include "named.h"

static void lock(TPPI_NodeId src, int size)
{
	void *wait;
	struct stache_named *named = stache_named_receive(KIND_LOCK, &wait, NULL);

	(void)size;
	if (named->value && !CONTROL(CONTROL_NO_EXCLUSION)) {
		stache_named_wait(named, src, wait);
		return;
	}
	named->value = 1;
	stache_named_answer(src, wait, 0);
}

static void unlock(TPPI_NodeId src, int size)
{
	struct stache_named *named = stache_named_find(TPPI_recv_P(), KIND_LOCK);

	(void)size;
	if (!named->value && !CONTROL(CONTROL_NO_EXCLUSION))
		stache_die("node %u unlocks %p, which is not locked", src, named->name);
	if (named->waiters)
		stache_named_wake_first(named, 0);
	else
		named->value = 0;
}

void stache_lock(const void *name)
{
	stache_named_ask(name, lock, 0);
}

void stache_unlock(const void *name)
{
	stache_named_tell(name, unlock);
}
