// SPDX-License-Identifier: MIT
#include <stdlib.h>

#include "error.h"
#include "named.h"

#define ROWS	1024

static struct stache_named *rows[ROWS];

/* Of the name alone: the same on all nodes. */
static uint64_t mix(const void *name)
{
	uint64_t mixed = ((uintptr_t)name + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return mixed ^ mixed >> 32;
}

TPPI_NodeId stache_named_home(const void *name)
{
	return mix(name) % TPPI_num_nodes;
}

struct stache_named *stache_named_find(const void *name, enum stache_kind kind)
{
	struct stache_named **row = &rows[(mix(name) >> 8) % ROWS], *named = *row;

	while (named && (named->name != name || named->kind != kind))
		named = named->next;
	if (named)
		return named;
	named = calloc(1, sizeof(*named));
	if (!named)
		stache_die("no memory for a lock or the like");
	named->name = name;
	named->kind = kind;
	named->next = *row;
	*row = named;
	return named;
}

void stache_named_wait(struct stache_named *named, TPPI_NodeId node, void *wait)
{
	struct stache_waiter *waiter = calloc(1, sizeof(*waiter));

	if (!waiter)
		stache_die("no memory for a thread that waits");
	waiter->node = node;
	waiter->wait = wait;
	if (named->waiters)
		named->last->next = waiter;
	else
		named->waiters = waiter;
	named->last = waiter;
}

static void wake(TPPI_NodeId src, int size)
{
	struct stache_wait *wait = TPPI_recv_P();

	(void)src;
	(void)size;
	stache_wake(wait, (uintptr_t)TPPI_recv_P());
}

void stache_named_answer(TPPI_NodeId node, void *wait, uintptr_t answer)
{
	TPPI_send_items(node, wake, "PP", wait, (void *)answer);
}

void stache_named_wake_first(struct stache_named *named, uintptr_t answer)
{
	struct stache_waiter *waiter = named->waiters;

	named->waiters = waiter->next;
	stache_named_answer(waiter->node, waiter->wait, answer);
	free(waiter);
}

void stache_named_wake_all(struct stache_named *named, uintptr_t answer)
{
	while (named->waiters)
		stache_named_wake_first(named, answer);
}

uintptr_t stache_named_ask(const void *name, TPPI_MessageHandlerPtr handler, uintptr_t value)
{
	struct stache_wait wait = STACHE_WAIT;

	TPPI_send_items(stache_named_home(name), handler, "PPP", name, &wait,
			(void *)value);
	return stache_wait(&wait);
}

void stache_named_tell(const void *name, TPPI_MessageHandlerPtr handler)
{
	TPPI_send_items(stache_named_home(name), handler, "P", name);
}
