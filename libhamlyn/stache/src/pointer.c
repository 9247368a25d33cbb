// SPDX-License-Identifier: MIT
#include "error.h"
#include "named.h"

static void publish(TPPI_NodeId src, int size)
{
	uintptr_t value;
	void *wait;
	struct stache_named *named = stache_named_receive(KIND_POINTER, &wait, &value);

	(void)size;
	named->value = value;
	stache_named_wake_all(named, named->value);
	stache_named_answer(src, wait, 0);
}

static void find(TPPI_NodeId src, int size)
{
	void *wait;
	struct stache_named *named = stache_named_receive(KIND_POINTER, &wait, NULL);

	(void)size;
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
