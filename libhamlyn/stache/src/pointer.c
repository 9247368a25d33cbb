// SPDX-License-Identifier: MIT
#include "error.h"
#include "named.h"

static void publish(TPPI_NodeId src, int size)
{
	struct stache_named *named = stache_named_find(TPPI_recv_P(), KIND_POINTER);

	(void)src;
	(void)size;
	named->value = (uintptr_t)TPPI_recv_P();
	stache_named_wake_all(named, named->value);
}

static void find(TPPI_NodeId src, int size)
{
	struct stache_named *named = stache_named_find(TPPI_recv_P(), KIND_POINTER);
	void *wait = TPPI_recv_P();

	(void)size;
	TPPI_recv_W();
	if (named->value)
		stache_named_answer(src, wait, named->value);
	else
		stache_named_wait(named, src, wait);
}

void stache_publish(const void *name, void *pointer)
{
	if (!pointer)
		stache_die("NULL is published, which nobody would find");
	stache_named_tell(name, publish, pointer);
}

void *stache_find(const void *name)
{
	return (void *)stache_named_ask(name, find, 0);
}
