// SPDX-License-Identifier: MIT
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>

#include "error.h"
#include "mix.h"
#include "named.h"

#define ROWS	1024

static struct stache_named *rows[ROWS];

/* The program itself, from its first byte to the end of its data. */
static uintptr_t program, program_end;

/* The program is the first of the modules. */
static int look(struct dl_phdr_info *info, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	program = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *part = &info->dlpi_phdr[i];
		uintptr_t start = info->dlpi_addr + part->p_vaddr;

		if (part->p_type != PT_LOAD)
			continue;
		if (start < program)
			program = start;
		if (start + part->p_memsz > program_end)
			program_end = start + part->p_memsz;
	}
	return 1;
}

void stache_named_start(void)
{
	dl_iterate_phdr(look, NULL);
}

/* What else there is, as libraries' data, heap and stacks, is elsewhere on each node. */
static bool is_same_everywhere(const void *name)
{
	return (uintptr_t)name - program < program_end - program ||
	       (size_t)((const char *)name - TPPI_SEG_BASE) < TPPI_SEG_SIZE;
}

/* Ends the program if it is not the same name everywhere. */
static TPPI_NodeId home_of(const void *name)
{
	if (!is_same_everywhere(name))
		stache_die("%p is a name, but neither in the segment nor the program's own data",
			   name);
	return stache_mix((uintptr_t)name) % TPPI_num_nodes;
}

struct stache_named *stache_named_find(const void *name, enum stache_kind kind)
{
	struct stache_named **row = &rows[(stache_mix((uintptr_t)name) >> 8) % ROWS], *named = *row;

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

struct stache_named *stache_named_receive(enum stache_kind kind, void **wait, uintptr_t *value)
{
	struct stache_named *named = stache_named_find(TPPI_recv_P(), kind);
	uintptr_t received;

	*wait = TPPI_recv_P();
	received = (uintptr_t)TPPI_recv_P();
	if (value)
		*value = received;
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
	uintptr_t answer;

	stache_left_to_others(name);
	TPPI_send_items(home_of(name), handler, "PPP", name, stache_wait_name(&wait),
			(void *)value);
	answer = stache_wait(&wait);
	stache_got_from_others(name);
	return answer;
}

void stache_named_tell(const void *name, TPPI_MessageHandlerPtr handler)
{
	stache_left_to_others(name);
	TPPI_send_items(home_of(name), handler, "P", name);
}
