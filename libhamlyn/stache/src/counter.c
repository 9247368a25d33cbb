// SPDX-License-Identifier: MIT
#include "named.h"

static void take(TPPI_NodeId src, int size)
{
	void *wait;
	struct stache_named *named = stache_named_receive(KIND_COUNTER, &wait, NULL);

	(void)size;
	stache_named_answer(src, wait, named->value++);
}

static void reset(TPPI_NodeId src, int size)
{
	void *wait;
	struct stache_named *named = stache_named_receive(KIND_COUNTER, &wait, NULL);

	(void)size;
	named->value = 0;
	stache_named_answer(src, wait, 0);
}

unsigned int stache_count(const void *name)
{
	return stache_named_ask(name, take, 0);
}

void stache_count_reset(const void *name)
{
	stache_named_ask(name, reset, 0);
}
