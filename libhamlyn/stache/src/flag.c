// SPDX-License-Identifier: MIT
#include "control.h"
#include "named.h"

static void raise_flag(void *flag)
{
	struct stache_named *named = flag;

	named->value = 1;
	stache_named_wake_all(named, 0);
}

static void set(TPPI_NodeId src, int size)
{
	void *wait;
	struct stache_named *named = stache_named_receive(KIND_FLAG, &wait, NULL);

	(void)size;
	/* What comes, on a slow network, of a thread that does not wait */
	if (CONTROL(CONTROL_NO_ANSWER))
		TPPI_schedule_timer(20000, raise_flag, named);
	else
		raise_flag(named);
	stache_named_answer(src, wait, 0);
}

static void clear(TPPI_NodeId src, int size)
{
	void *wait;
	struct stache_named *named = stache_named_receive(KIND_FLAG, &wait, NULL);

	(void)size;
	named->value = 0;
	stache_named_answer(src, wait, 0);
}

static void wait_for(TPPI_NodeId src, int size)
{
	void *wait;
	struct stache_named *named = stache_named_receive(KIND_FLAG, &wait, NULL);

	(void)size;
	if (named->value || CONTROL(CONTROL_NO_WAIT))
		stache_named_answer(src, wait, 0);
	else
		stache_named_wait(named, src, wait);
}

/*
 * Both wait until it is so: the thread may tell others by memory or a barrier, and they wait
 * for the flag, or change it.
 */
void stache_flag_set(const void *name)
{
	stache_named_ask(name, set, 0);
}

void stache_flag_clear(const void *name)
{
	stache_named_ask(name, clear, 0);
}

void stache_flag_wait(const void *name)
{
	stache_named_ask(name, wait_for, 0);
}
