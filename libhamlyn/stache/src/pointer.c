// SPDX-License-Identifier: MIT
#include "error.h"
#include "named.h"

static void publish(TPPI_NodeId src, int size)
{
	struct stache_named *named = stache_named_find(TPPI_recv_P(), KIND_POINTER);
	void *wait = TPPI_recv_P();

	(void)size;
	named->value = (uintptr_t)TPPI_recv_P();
	stache_named_wake_all(named, named->value);
	stache_named_answer(src, wait, 0);
}

static void find(TPPI_NodeId src, int size)
{
	struct stache_named *named = stache_named_find(TPPI_recv_P(), KIND_POINTER);
	void *wait = TPPI_recv_P();

	(void)size;
	TPPI_recv_P();
	if (named->value)
		stache_named_answer(src, wait, named->value);
	else
		stache_named_wait(named, src, wait);
}

/* Waits until it is: others may learn otherwise that there is a new one, and look for it. */
void stache_publish(const void *name, void *pointer)
{
	if (!pointer)
		stache_die("NULL is published, which nobody would find");
	stache_named_ask(name, publish, (uintptr_t)pointer);
}

void *stache_find(const void *name)
{
	return (void *)stache_named_ask(name, find, 0);
}
